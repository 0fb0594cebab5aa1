/* advance_updates.c: updates whose results are read again by what replicas add up.
 *
 *     update D by its gradient;  loss = f(D as it is now);  update G by loss's gradient
 *
 * The commit tail comes after all sums over replicas, so the first update cannot be part of it, and what a failed run has written cannot
 * be in variables. So the first update is made of a copy, in the body of every replica; the second part reads the copy; the commit tail
 * begins with writing the copies to their variables. All replicas update their copies by the same sums, and get the same bits. The same
 * holds for an output that a replica makes of its own rows and of what was updated: on the CPU the commit tail runs once for all replicas.
 *
 * A copy is a RESULT that is marked `late`: it is written in place, so whoever reads or writes it keeps the order of the trace. */
#include <string.h>

#include "plan/passes/advance_updates.h"
#include "graph/variable.h"
#include "ops/optimizer_layout.h"

static const flow_attributes none;

/* The memory of a variable that an update writes, and its copy. */
typedef struct shadow { const flow_tensor *tensor; size_t bytes; int variable, copy; } shadow;
typedef struct shadows { shadow *list; int count, capacity; } shadows;

static int is_effect(const flow_node *node) { return (flow_op(node->op)->flags & FLOW_OP_EFFECT) != 0; }

static int is_late(const flow_graph *graph, const flow_node *node)
{
  for (int i = 0; i < node->input_count; i++)
    if (graph->values[node->inputs[i]].late) return 1;
  return 0;
}

/* Whether an effect writes input i. */
static int writes(const flow_node *node, int input)
{
  const flow_optimizer_layout *layout = flow_optimizer_layout_of(node->op);
  const char *names[FLOW_MAX_SLOT_KINDS];
  if (!layout) return input == 0;
  int slots = layout->names(&node->attributes, names), found = input == 1;
  for (int s = 0; s < slots; s++) found |= input == layout->slots[s];
  return found;
}

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

enum { OWN = 1, UPDATED = 2, SHOWN = 4, NEEDED = 8 };

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

static size_t bytes_of(const flow_tensor *t) { return (size_t)flow_shape_size(t->rank, t->shape) * (size_t)flow_dtype_size(t->dtype); }

/* The copy that has the tensor's memory, or part of it; *offset: bytes from its beginning. NULL: nobody writes it. *split: part of what
 * is written is elsewhere. */
static const shadow *find_shadow(const shadows *all, const flow_tensor *t, size_t *offset, int *split)
{
  size_t bytes = bytes_of(t);
  *split = 0;
  for (int i = 0; i < all->count; i++) {
    const shadow *s = &all->list[i];
    if (s->tensor->storage != t->storage || t->data + bytes <= s->tensor->data || s->tensor->data + s->bytes <= t->data) continue;
    if (t->data >= s->tensor->data && t->data + bytes <= s->tensor->data + s->bytes) {
      *offset = (size_t)(t->data - s->tensor->data);
      return s;
    }
    *split = 1;
  }
  return NULL;
}

static flow_status fail_split(void)
{
  return flow_fail(FLOW_UNSUPPORTED, "all_reduce of what was read from a variable after it was assigned, and which two updates have "
                   "written in different groups: read it before, or update all variables of a model at once");
}

/* Inserts a copy of what node n's input i writes, at the beginning of the graph; n moves by one. */
static flow_status add_shadow(flow_graph *graph, shadows *all, int *n, int i)
{
  int value = graph->nodes[*n].inputs[i], copy, split;
  size_t offset;
  const flow_tensor *t = graph->values[value].variable->tensor;
  const shadow *known = find_shadow(all, t, &offset, &split);
  if (split || (known && known->bytes != bytes_of(t))) return fail_split();
  if (known) return FLOW_OK;
  FLOW_TRY(flow_grow(&all->list, sizeof *all->list, all->count + 1, &all->capacity));
  flow_signature signature = graph->values[value].signature;
  FLOW_TRY(flow_graph_insert(graph, 0, FLOW_OP_copy, &value, 1, &none, &signature, &copy));
  graph->values[copy].late = 1;
  ++*n;
  all->list[all->count++] = (shadow){ t, bytes_of(t), value, copy };
  return FLOW_OK;
}

/* Inserts what reads `value` from its copy before node *n, which moves; *out: what was read. */
static flow_status read_shadow(flow_graph *graph, const shadow *s, size_t offset, int value, int *n, int *out)
{
  flow_signature wanted = graph->values[value].signature, flat = { .dtype = wanted.dtype, .rank = 1 };
  flow_attributes part = { .slice = { .rank = 1, .step = { 1 } } }, shape = { .shape = { .rank = wanted.rank } };
  const flow_signature *whole = &graph->values[s->copy].signature;
  flat.dims[0] = flow_shape_size(wanted.rank, wanted.dims);
  if (offset == 0 && s->bytes == (size_t)flat.dims[0] * (size_t)flow_dtype_size(flat.dtype)) {
    flow_signature same = *whole;
    FLOW_TRY(flow_graph_insert(graph, (*n)++, FLOW_OP_copy, &s->copy, 1, &none, &same, out));
  } else {
    if (whole->rank != 1) return fail_split();
    part.slice.begin[0] = (int64_t)(offset / (size_t)flow_dtype_size(flat.dtype));
    part.slice.end[0] = part.slice.begin[0] + flat.dims[0];
    FLOW_TRY(flow_graph_insert(graph, (*n)++, FLOW_OP_slice, &s->copy, 1, &part, &flat, out));
  }
  memcpy(shape.shape.dims, wanted.dims, sizeof(int64_t) * (size_t)wanted.rank);
  return flow_graph_insert(graph, (*n)++, FLOW_OP_reshape, out, 1, &shape, &wanted, out);
}

/* Lets node *n work on copies: an effect on them, anything else on what it reads from them at this place. */
static flow_status use_shadows(flow_graph *graph, const shadows *all, int *n)
{
  for (int i = 0; i < graph->nodes[*n].input_count; i++) {
    int value = graph->nodes[*n].inputs[i], read, split;
    size_t offset;
    const flow_value *v = &graph->values[value];
    if (v->kind != FLOW_VALUE_VARIABLE || !(v->late || is_effect(&graph->nodes[*n]))) continue;
    const shadow *s = find_shadow(all, graph->values[value].variable->tensor, &offset, &split);
    if (split) return fail_split();
    if (!s) continue;
    if (is_effect(&graph->nodes[*n]) && offset == 0 && s->bytes == bytes_of(graph->values[value].variable->tensor)) {
      graph->nodes[*n].inputs[i] = s->copy;
      continue;
    }
    FLOW_TRY(read_shadow(graph, s, offset, value, n, &read));
    graph->nodes[*n].inputs[i] = read;
  }
  return FLOW_OK;
}

/* ---- the rewriting ------------------------------------------------------------------------------------------------------------------- */

static int is_ordered(const flow_graph *graph, int n) { return is_effect(&graph->nodes[n]) || is_late(graph, &graph->nodes[n]); }

static flow_status advance(flow_graph *graph, shadows *all, int last)
{
  for (int n = 0; n <= last; n++) {
    if (!is_effect(&graph->nodes[n])) continue;
    for (int i = 0, before = n; i < graph->nodes[n].input_count; i++) {
      if (!writes(&graph->nodes[n], i) || graph->values[graph->nodes[n].inputs[i]].kind != FLOW_VALUE_VARIABLE) continue;
      before = n;
      FLOW_TRY(add_shadow(graph, all, &n, i));
      last += n - before;
    }
  }
  for (int n = 0; n <= last; n++) {
    int before = n;
    if (!is_ordered(graph, n)) continue;
    FLOW_TRY(use_shadows(graph, all, &n));
    last += n - before;
  }
  for (int i = 0; i < all->count; i++) {
    const int inputs[] = { all->list[i].variable, all->list[i].copy };
    FLOW_TRY(flow_graph_insert(graph, last + 1 + i, FLOW_OP_assign, inputs, 2, &none, NULL, NULL));
  }
  return FLOW_OK;
}

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
