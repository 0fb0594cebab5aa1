/* advance_updates.c: updates whose results are read again by what replicas add up.
 *
 *     update D by its gradient;  loss = f(D as it is now);  update G by loss's gradient
 *
 * The commit tail comes after all sums over replicas, so the first update cannot be part of it, and what a failed run has written cannot
 * be in variables. So the first update is made of a copy, in the body of every replica; the second part reads the copy; the commit tail
 * begins with writing the copies to their variables. All replicas update their copies by the same sums, and get the same bits. The same
 * holds for an output that a replica makes of its own rows and of what was updated: on the CPU the commit tail runs once for all replicas.
 *
 * Updates of overlapping groups of variables have copies of the parts that all of them write as a whole: an update of several parts
 * works on a value that is made of them and goes back to them.
 *
 * A copy is a RESULT that is marked `late`: it is written in place, so its readers and writers keep the order of the trace. */
#include <string.h>

#include "plan/passes/advance_updates.h"
#include "graph/variable.h"
#include "ops/optimizer_layout.h"

static const flow_attributes none;

/* Memory of variables that every update writes as a whole or not at all, and its copy. */
typedef struct shadow {
  const flow_tensor *tensor;           /* whose memory it is, or part of */
  char              *data;
  size_t             bytes;
  int                variable, copy;   /* values; variable -1: no variable of the graph is exactly this memory */
} shadow;
/* None overlaps another. In the order of the trace, which all workers have; those in the same block of memory by address. */
typedef struct shadows { shadow *list; int count, capacity; } shadows;

/* Effects write some of their operands in place. */
static int is_effect(const flow_node *node) { return (flow_op(node->op)->flags & FLOW_OP_EFFECT) != 0; }

/* Whether a node reads something as it is after an update. */
static int is_late(const flow_graph *graph, const flow_node *node)
{
  for (int i = 0; i < node->input_count; i++)
    if (graph->values[node->inputs[i]].late) return 1;
  return 0;
}

/* Whether an effect writes input i. */
static int writes(const flow_node *node, int input)
{
  return flow_effect_writes(node->op, &node->attributes, node->input_count, input);
}

/* One operand that is a variable which was or is written is enough for the commit tail, whatever the others are. */
int flow_is_advanced(const flow_graph *graph, const flow_node *node)
{
  int advanced = 0;
  for (int i = 0; i < node->input_count; i++) {
    const flow_value *v = &graph->values[node->inputs[i]];
    if (v->late && v->kind == FLOW_VALUE_VARIABLE) return 0;
    if (is_effect(node) && writes(node, i) && v->kind == FLOW_VALUE_VARIABLE) return 0;
    advanced |= v->late;
  }
  return advanced;
}

/* ---- which updates ------------------------------------------------------------------------------------------------------------------- */

/* Marks of nodes. OWN and UPDATED: what they are made of, see sources_of. SHOWN: an output depends on it. NEEDED: a sum over replicas
 * does, or an output that replicas make of their own rows and of what was updated. */
enum { OWN = 1, UPDATED = 2, SHOWN = 4, NEEDED = 8 };

/* A sum over replicas is the same for all of them, which is why it is not a replica's OWN any more. */
static int is_sum(const flow_node *node) { return (flow_op(node->op)->flags & FLOW_OP_COLLECTIVE) != 0; }

/* What a node is made of: of the replica's OWN part of the batch, of variables that were UPDATED before. */
static int sources_of(const flow_graph *graph, const flow_node *node, const char *marks)
{
  int sources = is_late(graph, node) ? UPDATED : 0;
  for (int i = 0; i < node->input_count; i++) {
    const flow_value *v = &graph->values[node->inputs[i]];
    if (v->kind == FLOW_VALUE_INPUT) sources |= OWN;
    if (v->kind == FLOW_VALUE_RESULT) sources |= marks[v->node] & (is_sum(&graph->nodes[v->node]) ? UPDATED : OWN | UPDATED);
  }
  return sources;
}

/* The last node that reads a variable after an update, and on which a sum over replicas or an output of each of them depends; -1: there is
 * none. */
static flow_status find_last(const flow_graph *graph, const char *live, const int *outputs, int output_count, int *last)
{
  enum { BOTH = OWN | UPDATED };
  void *block;
  *last = -1;
  FLOW_TRY(flow_alloc_zero((size_t)graph->node_count + 1, &block));
  char *marks = block;                     /* [node] */
  for (int n = 0; n < graph->node_count; n++) marks[n] = (char)sources_of(graph, &graph->nodes[n], marks);
  for (int i = 0; i < output_count && !graph->place; i++)
    if (graph->values[outputs[i]].kind == FLOW_VALUE_RESULT) marks[graph->values[outputs[i]].node] |= SHOWN;
  for (int n = graph->node_count - 1; n >= 0; n--) {
    const flow_node *node = &graph->nodes[n];
    if (live[n] && (is_sum(node) || ((marks[n] & SHOWN) && (marks[n] & BOTH) == BOTH))) marks[n] |= NEEDED;
    if ((marks[n] & NEEDED) && *last < 0 && is_late(graph, node)) *last = n;
    for (int i = 0; i < node->input_count; i++) {
      const flow_value *v = &graph->values[node->inputs[i]];
      if (v->kind == FLOW_VALUE_RESULT) marks[v->node] |= marks[n] & (SHOWN | NEEDED);
    }
  }
  flow_free(block);
  return FLOW_OK;
}

/* ---- copies -------------------------------------------------------------------------------------------------------------------------- */

/* Of a value that is a variable. */
static const flow_tensor *tensor_of(const flow_graph *graph, int value) { return graph->values[value].variable->tensor; }

static char *end_of(const flow_tensor *t)
{
  return t->data + (size_t)flow_shape_size(t->rank, t->shape) * (size_t)flow_dtype_size(t->dtype);
}

/* The first shadow that has some of the tensor's memory from `at` on; NULL: none has. */
static const shadow *find_shadow(const shadows *all, const flow_tensor *t, const char *at)
{
  for (int i = 0; i < all->count; i++) {
    const shadow *s = &all->list[i];
    if (s->tensor->storage == t->storage && s->data < end_of(t) && at < s->data + s->bytes) return s;
  }
  return NULL;
}

/* By insertion, sorted by address within each block of memory; a new block comes last. */
static flow_status add_shadow(shadows *all, shadow s)
{
  FLOW_TRY(flow_grow(&all->list, sizeof s, all->count + 1, &all->capacity));
  int at = all->count++;
  for (int i = 0; i < all->count - 1; i++) {
    if (all->list[i].tensor->storage != s.tensor->storage) continue;
    at = i + (all->list[i].data < s.data);
    if (at == i) break;
  }
  memmove(all->list + at + 1, all->list + at, sizeof s * (size_t)(all->count - 1 - at));
  all->list[at] = s;
  return FLOW_OK;
}

/* Cuts the shadow that goes over an address in two. */
static flow_status cut(shadows *all, const flow_tensor *t, char *at)
{
  for (int i = 0; i < all->count; i++) {
    shadow *s = &all->list[i], rest = *s;
    if (s->tensor->storage != t->storage || at <= s->data || s->data + s->bytes <= at) continue;
    s->bytes = (size_t)(at - s->data);
    rest.bytes -= s->bytes;
    rest.data = at;
    s->variable = rest.variable = -1;
    return add_shadow(all, rest);
  }
  return FLOW_OK;
}

/* Makes shadows for what of a variable's memory is in none. */
static flow_status cover(const flow_graph *graph, shadows *all, int variable)
{
  const flow_tensor *t = tensor_of(graph, variable);
  char *at = t->data, *end = end_of(t);
  while (at < end) {
    const shadow *s = find_shadow(all, t, at);
    char *next = s ? s->data : end;
    if (at < next) FLOW_TRY(add_shadow(all, (shadow){ t, at, (size_t)(next - at), at == t->data && next == end ? variable : -1, -1 }));
    at = s && next <= at ? s->data + s->bytes : next;
  }
  return FLOW_OK;
}

/* Whether a node uses the memory of its input i as it is after the updates before. */
static int uses_memory(const flow_graph *graph, const flow_node *node, int i)
{
  const flow_value *v = &graph->values[node->inputs[i]];
  return v->kind == FLOW_VALUE_VARIABLE && (v->late || is_effect(node));
}

/* Shadows of all that is written up to `last`: each update writes whole ones. What is read is in shadows as a whole, or not at all. */
static flow_status find_shadows(const flow_graph *graph, shadows *all, int last)
{
  for (int n = 0; n <= last; n++)
    for (int i = 0; is_effect(&graph->nodes[n]) && i < graph->nodes[n].input_count; i++) {
      int value = graph->nodes[n].inputs[i];
      if (graph->values[value].kind != FLOW_VALUE_VARIABLE || !writes(&graph->nodes[n], i)) continue;
      FLOW_TRY(cut(all, tensor_of(graph, value), tensor_of(graph, value)->data));
      FLOW_TRY(cut(all, tensor_of(graph, value), end_of(tensor_of(graph, value))));
      FLOW_TRY(cover(graph, all, value));
    }
  for (int before = -1; before != all->count;) {
    before = all->count;
    for (int n = 0; n <= last; n++)
      for (int i = 0; i < graph->nodes[n].input_count; i++) {
        int value = graph->nodes[n].inputs[i];
        if (!uses_memory(graph, &graph->nodes[n], i) || !find_shadow(all, tensor_of(graph, value), tensor_of(graph, value)->data)) continue;
        FLOW_TRY(cover(graph, all, value));
      }
  }
  return FLOW_OK;
}

/* A variable over exactly the shadow's memory. */
static flow_status name_memory(flow_graph *graph, shadow *s)
{
  flow_tensor *part;
  flow_variable *variable;
  int64_t bytes = flow_dtype_size(s->tensor->dtype), size = (int64_t)s->bytes / bytes, step = 1;
  FLOW_TRY(flow_tensor_view((flow_tensor *)s->tensor, 1, &size, &step, (s->data - s->tensor->data) / bytes, &part));
  flow_status status = flow_variable_over(part, "parameters", 0, FLOW_MIRRORED, &variable);
  flow_tensor_release(part);
  FLOW_TRY(status);
  status = flow_graph_variable(graph, variable, 0, &s->variable);
  flow_variable_release(variable);
  return status;
}

/* Inserts the copies at the beginning of the graph. */
static flow_status make_copies(flow_graph *graph, shadows *all)
{
  for (int i = 0; i < all->count; i++) {
    shadow *s = &all->list[i];
    if (s->variable < 0) FLOW_TRY(name_memory(graph, s));
    flow_signature signature = graph->values[s->variable].signature;
    FLOW_TRY(flow_graph_insert(graph, i, FLOW_OP_copy, &s->variable, 1, &none, &signature, &s->copy));
    graph->values[s->copy].late = 1;
  }
  return FLOW_OK;
}

/* ---- the rewriting ------------------------------------------------------------------------------------------------------------------- */

/* Inserts an op before node *n, which moves. */
static flow_status insert(flow_graph *graph, int *n, int op, const int *inputs, int count, const flow_attributes *attributes,
                          flow_signature made, int *out)
{
  FLOW_TRY(flow_graph_insert(graph, *n, op, inputs, count, attributes, &made, out));
  ++*n;
  return FLOW_OK;
}

/* A value with the dims that are wanted, of as many elements. */
static flow_status reshape(flow_graph *graph, int *n, int value, const flow_signature *wanted, int *out)
{
  flow_attributes shape = { .shape = { .rank = wanted->rank } };
  memcpy(shape.shape.dims, wanted->dims, sizeof(int64_t) * (size_t)wanted->rank);
  return insert(graph, n, FLOW_OP_reshape, &value, 1, &shape, *wanted, out);
}

/* Elements [begin, end) of a flat value. */
static flow_status take_part(flow_graph *graph, int *n, int value, int64_t begin, int64_t end, int *out)
{
  flow_signature part = { .dtype = graph->values[value].signature.dtype, .rank = 1, .dims = { end - begin } };
  flow_attributes slice = { .slice = { .rank = 1, .begin = { begin }, .end = { end }, .step = { 1 } } };
  return insert(graph, n, FLOW_OP_slice, &value, 1, &slice, part, out);
}

/* Appends to parts[] what of a tensor's memory is in a shadow: its copy, or part of it. Shadows that several variables have are flat. */
static flow_status add_part(flow_graph *graph, int *n, const shadow *s, const flow_tensor *t, int *parts, int *count)
{
  int64_t bytes = flow_dtype_size(t->dtype), size = (int64_t)s->bytes / bytes;
  int64_t begin = t->data > s->data ? (t->data - s->data) / bytes : 0;
  int64_t end = end_of(t) < s->data + s->bytes ? (end_of(t) - s->data) / bytes : size;
  parts[*count] = s->copy;
  if (end - begin < size) FLOW_TRY(take_part(graph, n, s->copy, begin, end, &parts[*count]));
  ++*count;
  return FLOW_OK;
}

/* Inserts before node *n what reads a variable's memory from its shadows, as a value with its own memory. */
static flow_status read_shadows(flow_graph *graph, const shadows *all, int *n, int variable, int *out)
{
  const flow_tensor *t = tensor_of(graph, variable);
  flow_signature wanted = graph->values[variable].signature, flat = { .dtype = wanted.dtype, .rank = 1 };
  void *block;
  int count = 0;
  FLOW_TRY(flow_alloc(sizeof(int) * (size_t)(all->count + 1), &block));
  int *parts = block;
  flow_status status = FLOW_OK;
  for (const shadow *s = find_shadow(all, t, t->data); s && status == FLOW_OK; s = find_shadow(all, t, s->data + s->bytes))
    status = add_part(graph, n, s, t, parts, &count);
  flat.dims[0] = flow_shape_size(wanted.rank, wanted.dims);
  *out = parts[0];
  if (status == FLOW_OK && count > 1) status = insert(graph, n, FLOW_OP_pack, parts, count, &none, flat, out);
  else if (status == FLOW_OK && graph->values[*out].late)
    status = insert(graph, n, FLOW_OP_copy, parts, 1, &none, graph->values[*out].signature, out);
  flow_free(block);
  FLOW_TRY(status);
  return reshape(graph, n, *out, &wanted, out);
}

/* Inserts after node n what writes a value, which it has updated, to the shadows of a variable's memory. */
static flow_status write_shadows(flow_graph *graph, const shadows *all, int n, int variable, int value)
{
  const flow_tensor *t = tensor_of(graph, variable);
  int64_t bytes = flow_dtype_size(t->dtype);
  n++;
  for (const shadow *s = find_shadow(all, t, t->data); s; s = find_shadow(all, t, s->data + s->bytes)) {
    flow_signature signature = graph->values[s->copy].signature;
    int64_t begin = (s->data - t->data) / bytes;
    int inputs[2] = { s->copy };
    FLOW_TRY(take_part(graph, &n, value, begin, begin + (int64_t)s->bytes / bytes, &inputs[1]));
    FLOW_TRY(reshape(graph, &n, inputs[1], &signature, &inputs[1]));
    FLOW_TRY(flow_graph_insert(graph, n++, FLOW_OP_assign, inputs, 2, &none, NULL, NULL));
  }
  return FLOW_OK;
}

/* What an effect works on in place of a variable that it writes: the variable's copy, or, where that is in parts, a value that is made of
 * them and goes back to them. */
static flow_status use_copy(flow_graph *graph, const shadows *all, int *n, int i)
{
  int variable = graph->nodes[*n].inputs[i], value;
  const flow_tensor *t = tensor_of(graph, variable);
  const shadow *s = find_shadow(all, t, t->data);
  if (s->bytes == (size_t)(end_of(t) - t->data)) {
    const flow_signature *found = &graph->values[s->copy].signature, *wanted = &graph->values[variable].signature;
    value = s->copy;
    if (!flow_shape_equal(found->rank, found->dims, wanted->rank, wanted->dims)) FLOW_TRY(reshape(graph, n, s->copy, wanted, &value));
    graph->values[value].late = 1;
  } else {
    FLOW_TRY(read_shadows(graph, all, n, variable, &value));
    graph->values[value].late = 1;
    FLOW_TRY(write_shadows(graph, all, *n, variable, value));
  }
  graph->nodes[*n].inputs[i] = value;
  return FLOW_OK;
}

/* Lets node *n work on copies: an effect on them, anything else on what it reads from them at this place. */
static flow_status use_shadows(flow_graph *graph, const shadows *all, int *n)
{
  for (int i = 0; i < graph->nodes[*n].input_count; i++) {
    int value = graph->nodes[*n].inputs[i];
    if (!uses_memory(graph, &graph->nodes[*n], i) || !find_shadow(all, tensor_of(graph, value), tensor_of(graph, value)->data)) continue;
    if (is_effect(&graph->nodes[*n]) && writes(&graph->nodes[*n], i)) {
      FLOW_TRY(use_copy(graph, all, n, i));
    } else {
      FLOW_TRY(read_shadows(graph, all, n, value, &value));
      graph->nodes[*n].inputs[i] = value;
    }
  }
  return FLOW_OK;
}

/* Rewrites all nodes up to `last`: copies at the beginning, updates and reads of them in between, and after `last` what writes the
 * copies to their variables. Nodes are inserted on the way, so that `last` moves. */
static flow_status advance(flow_graph *graph, shadows *all, int last)
{
  FLOW_TRY(find_shadows(graph, all, last));
  FLOW_TRY(make_copies(graph, all));
  last += all->count;
  for (int n = all->count; n <= last; n++) {
    int nodes = graph->node_count;
    FLOW_TRY(use_shadows(graph, all, &n));
    last += graph->node_count - nodes;
  }
  for (int i = 0; i < all->count; i++) {
    const int inputs[] = { all->list[i].variable, all->list[i].copy };
    FLOW_TRY(flow_graph_insert(graph, last + 1 + i, FLOW_OP_assign, inputs, 2, &none, NULL, NULL));
  }
  return FLOW_OK;
}

/* One replica, as known when the graph was traced, adds nothing up: its sums are its own gradients, and updates may stay where they
 * are. */
flow_status flow_graph_advance_updates(flow_graph *graph, const char *live, const int *outputs, int output_count)
{
  int last;
  shadows all = { .count = 0 };
  if (graph->replicas == 1) return FLOW_OK;
  FLOW_TRY(find_last(graph, live, outputs, output_count, &last));
  flow_status status = last < 0 ? FLOW_OK : advance(graph, &all, last);
  flow_free(all.list);
  return status;
}
