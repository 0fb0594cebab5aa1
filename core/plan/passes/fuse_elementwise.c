/* fuse_elementwise.c: chains of elementwise nodes become one `fused` node: one pass over memory instead of one per
 * op. Runs when a plan is made, after gradients were taken: the fused op has no gradient rule and needs none.
 *
 * Registers are float32. On a device whose kernels take 16-bit floats, operands and results may be of 16 bits, and casts are steps: each
 * step rounds what it gives to the dtype that its node had, so that a chain's numbers are those of its nodes. On the CPU comparisons, what
 * is made of conditions, and the choice by one are steps, too, with registers of bytes.
 *
 * A node joins its only reader when both have the same shape, so that nothing is computed more often than before. A comparison of what a
 * reader has anyway joins each of its readers: it takes less time than its bytes to memory and back. */
#include "graph/graph.h"
#include <string.h>
#include "tensor/place.h"

enum { MOST_STEPS = 12, MOST_INPUTS = 12 };

/* A chain under construction: like the attributes and inputs of a fused node. */
typedef struct chain { int inputs[MOST_INPUTS], input_count; flow_attributes attributes; } chain;

static int takes_half_floats(const flow_graph *graph) { return graph->place && flow_place_accelerator(graph->place)->device.half_floats; }

/* The kernel of the CPU has registers for conditions (fused.c), those of devices have not. */
static int takes_conditions(const flow_graph *graph)
{
  return !graph->place;
}

/* Whether the op's kernels map registers to a register; a cast does where registers are rounded, see above. */
static int is_known(const flow_graph *graph, int op)
{
  if (flow_op(op)->flags & FLOW_OP_CHAINS) return 1;
  if (op == FLOW_OP_cast) return takes_half_floats(graph);
  return takes_conditions(graph) && (op == FLOW_OP_where || flow_op_gives_condition(op));
}

static int fits_register(const flow_graph *graph, int value)
{
  int dtype = graph->values[value].signature.dtype;
  return dtype == FLOW_FLOAT32 || (takes_half_floats(graph) && (dtype == FLOW_FLOAT16 || dtype == FLOW_BFLOAT16));
}

static int is_condition(const flow_graph *graph, int value)
{
  return graph->values[value].signature.dtype == FLOW_BOOL;
}

/* Whether all operands fit the registers of a fused chain: conditions where the op takes or gives these, else numbers. */
static int fits_registers(const flow_graph *graph, const flow_node *node)
{
  const int gives = flow_op_gives_condition(node->op);
  for (int i = 0; i < node->input_count; i++) {
    int wanted = gives == 2 || (node->op == FLOW_OP_where && i == 0);
    if (wanted ? !is_condition(graph, node->inputs[i]) : !fits_register(graph, node->inputs[i])) return 0;
  }
  return gives ? is_condition(graph, node->outputs[0]) : fits_register(graph, node->outputs[0]);
}

/* A node as a chain of one step; 0 if its op cannot be part of a chain. */
static int as_chain(const flow_graph *graph, const flow_node *node, chain *c)
{
  memset(c, 0, sizeof *c);
  if (node->op == FLOW_OP_fused) {
    c->attributes = node->attributes;
    c->input_count = node->input_count;
    memcpy(c->inputs, node->inputs, sizeof(int) * (size_t)node->input_count);
    return 1;
  }
  if (!is_known(graph, node->op) || !fits_registers(graph, node)) return 0;
  c->attributes.fused.count = 1;
  c->attributes.fused.steps[0].op = (int16_t)node->op;
  c->attributes.fused.steps[0].dtype = (uint8_t)graph->values[node->outputs[0]].signature.dtype;
  for (int i = 0; i < node->input_count; i++) {
    int at = 0;
    while (at < c->input_count && c->inputs[at] != node->inputs[i]) at++;
    if (at == c->input_count) c->inputs[c->input_count++] = node->inputs[i];
    c->attributes.fused.steps[0].inputs[i] = (uint8_t)at;
  }
  return 1;
}

/* The number of an input of the chain, which is added if it is new; -1: the chain has too many. */
static int find_or_add(chain *c, int value)
{
  for (int i = 0; i < c->input_count; i++)
    if (c->inputs[i] == value) return i;
  if (c->input_count == MOST_INPUTS) return -1;
  c->inputs[c->input_count] = value;
  return c->input_count++;
}

/* Appends the steps of `from` to the `first` ones in `to`, with registers renumbered. Registers 0 to input_count - 1 of a chain are its
 * inputs, those after them the results of its steps; map[] says which input of `to` an input of `from` is. to->input_count is final by
 * then. */
static void append_steps(chain *to, const chain *from, const int *map, int first)
{
  for (int s = 0; s < from->attributes.fused.count; s++) {
    to->attributes.fused.steps[first + s] = from->attributes.fused.steps[s];
    for (int i = 0; i < 3; i++) {
      int r = from->attributes.fused.steps[s].inputs[i];
      int renumbered = r < from->input_count ? map[r] : to->input_count + first + r - from->input_count;
      to->attributes.fused.steps[first + s].inputs[i] = (uint8_t)renumbered;
    }
  }
}

/* producer's steps, then reader's, with `made` (producer's result) kept in a register. 0 if the chain would be too long. */
static int join(const chain *producer, const chain *reader, int made, chain *out)
{
  int from_producer[MOST_INPUTS], from_reader[MOST_INPUTS];
  int first = producer->attributes.fused.count, total = first + reader->attributes.fused.count;
  memset(out, 0, sizeof *out);
  if (total > MOST_STEPS) return 0;
  for (int i = 0; i < producer->input_count; i++)
    if ((from_producer[i] = find_or_add(out, producer->inputs[i])) < 0) return 0;
  for (int i = 0; i < reader->input_count; i++)
    if (reader->inputs[i] != made && (from_reader[i] = find_or_add(out, reader->inputs[i])) < 0) return 0;
  for (int i = 0; i < reader->input_count; i++)
    if (reader->inputs[i] == made) from_reader[i] = out->input_count + first - 1;
  append_steps(out, producer, from_producer, 0);
  append_steps(out, reader, from_reader, first);
  out->attributes.fused.count = total;
  return 1;
}

/* Whether the op's batch kind would change: rows must stay rows for both. */
static int same_shape(const flow_signature *a, const flow_signature *b)
{
  return flow_shape_equal(a->rank, a->dims, b->rank, b->dims);
}

/* Whether the chain reads a number: the kernel computes in the dtype of its numbers. */
static int has_numbers(const flow_graph *graph, const chain *c)
{
  for (int i = 0; i < c->input_count; i++)
    if (!is_condition(graph, c->inputs[i])) return 1;
  return 0;
}

/* Whether `made` is a comparison of what the reader has, or of single numbers. */
static int may_repeat(const flow_graph *graph, const chain *producer, const chain *reader)
{
  if (producer->attributes.fused.count > 1 || flow_op_gives_condition(producer->attributes.fused.steps[0].op) != 1) return 0;
  for (int i = 0; i < producer->input_count; i++) {
    int at = 0, has = graph->values[producer->inputs[i]].signature.rank == 0;
    while (!has && at < reader->input_count && reader->inputs[at] != producer->inputs[i]) at++;
    if (!has && at == reader->input_count) return 0;
  }
  return 1;
}

/* Makes node `index` the chain `both`, of it and of the one that makes `made`, which is dead if nothing else reads it. */
static flow_status take_chain(flow_graph *graph, int index, const chain *both, int made, int *uses)
{
  const flow_node *node = &graph->nodes[index], *producer = &graph->nodes[graph->values[made].node];
  flow_signature result = graph->values[node->outputs[0]].signature;
  for (int k = 0; k < node->input_count; k++) uses[node->inputs[k]]--;
  for (int k = 0; k < both->input_count; k++) uses[both->inputs[k]]++;
  for (int k = 0; uses[made] == 0 && k < producer->input_count; k++) uses[producer->inputs[k]]--;
  return flow_graph_rewrite(graph, index, FLOW_OP_fused, both->inputs, both->input_count, &both->attributes, &result, 1);
}

/* Joins node `index` with one of its producers; *joined tells whether it did. A producer that something else reads as well stays: its
 * result has to be written anyway. uses[] is kept up to date, so that the producer's producers can join next. */
static flow_status join_producer(flow_graph *graph, int index, int *uses, int *joined)
{
  chain reader, producer, both;
  *joined = 0;
  const flow_node *node = &graph->nodes[index];
  if (!as_chain(graph, node, &reader)) return FLOW_OK;
  for (int i = 0; i < reader.input_count; i++) {
    int made = reader.inputs[i], occurrences = 0;
    const flow_value *value = &graph->values[made];
    if (value->kind != FLOW_VALUE_RESULT || !same_shape(&value->signature, &graph->values[node->outputs[0]].signature)) continue;
    for (int k = 0; k < node->input_count; k++) occurrences += node->inputs[k] == made;
    if (!as_chain(graph, &graph->nodes[value->node], &producer)) continue;
    if (uses[made] != occurrences && !may_repeat(graph, &producer, &reader)) continue;
    if (!join(&producer, &reader, made, &both) || !has_numbers(graph, &both)) continue;
    *joined = 1;
    return take_chain(graph, index, &both, made, uses);
  }
  return FLOW_OK;
}

flow_status flow_graph_fuse_elementwise(flow_graph *graph, const char *live, const int *outputs, int output_count)
{
  void *block;
  FLOW_TRY(flow_alloc_zero(sizeof(int) * (size_t)(graph->value_count + 1), &block));
  int *uses = block;
  flow_graph_count_live_uses(graph, live, outputs, output_count, uses);
  flow_status status = FLOW_OK;
  for (int n = 0; n < graph->node_count && status == FLOW_OK; n++) {
    int joined = live[n] != 0;
    while (joined && status == FLOW_OK) status = join_producer(graph, n, uses, &joined);
  }
  flow_free(block);
  return status;
}
