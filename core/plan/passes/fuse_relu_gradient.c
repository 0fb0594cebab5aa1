/* fuse_relu_gradient.c: on a device, the gradient that a convolution hands to the relu before it is stopped by what makes it, while it
 * is in registers, and added up for the bias in front of that relu. x is the relu's result, which the convolution has at hand anyway:
 *
 *   dx, dw, db = convolution_gradient(g, x, w, ..); relu_gradient(dx, x)
 *     -> dx, dw, db, _ = convolution_gradient_relu(g, x, w, ..)
 *   dx, dw, db = convolution_gradient(g, x, w, ..); dx', dw', db' = convolution_gradient(dx, x', w', x, ..) of a convolution with relu
 *     -> dx, dw, db, db' = convolution_gradient_relu(g, x, w, ..); dx', dw', _ = convolution_gradient(dx, x', w', x, ..) without
 *
 * Where several read that x, dx is one of the gradients that are added up for it, and takes the sum over, too, if the others, r, are there
 * before:
 *
 *   dx, dw, db = convolution_gradient(g, x, w, ..); relu_gradient(dx + r, x)
 *     -> dx, dw, db, _ = convolution_gradient_relu(g, x, w, .., r)
 *
 * The second one keeps its relu where it pools: the index says then which numbers it let through. dx is left alone when somebody else
 * reads it. Runs when a plan is made, after gradients were taken. */
#include "plan/passes/fusion.h"

static const flow_signature *signature_of(const flow_fusion *f, int value) { return &f->graph->values[value].signature; }

/* The one node after `index` that reads `value`; -1: there is none, or something else reads it. */
static int sole_reader(const flow_fusion *f, int index, int value)
{
  if (f->readers[value] != 1) return -1;
  for (int n = index + 1; n < f->graph->node_count; n++)
    for (int i = 0; f->live[n] && i < f->graph->nodes[n].input_count; i++)
      if (f->graph->nodes[n].inputs[i] == value) return n;
  return -1;
}

/* Whether `reader` is a convolution's gradient of which relu, whose result was x, begins with dx. */
static int begins_with_relu(const flow_node *reader, int dx, int x)
{
  return reader->op == FLOW_OP_convolution_gradient && reader->attributes.convolution.activation == FLOW_RELU && reader->inputs[0] == dx &&
         reader->inputs[3] == x;
}

static int is_relu_gradient(const flow_fusion *f, const flow_node *reader, int dx, int x)
{
  return reader->op == FLOW_OP_relu_gradient && reader->inputs[0] == dx && reader->inputs[1] == x && flow_fusion_alike(f, dx, x);
}

/* What node `next` adds to the value, if it does no more and that is there when node `index` runs; -1: it does something else. */
static int addend_of(const flow_fusion *f, int index, int next, int value)
{
  const flow_node *sum = &f->graph->nodes[next];
  if (sum->op != FLOW_OP_add) return -1;
  int addend = sum->inputs[sum->inputs[0] == value];
  return flow_fusion_is_before(f, addend, index) && flow_fusion_alike(f, addend, value) ? addend : -1;
}

/* Makes node `index` stop its dx. addend: what is added to it before; sums: the value that its fourth output replaces; -1: none. */
static flow_status stop(flow_fusion *f, int index, int addend, int sums)
{
  const flow_node *node = &f->graph->nodes[index];
  const flow_signature *x = signature_of(f, node->inputs[1]);
  flow_signature signatures[4] = { [3] = { .dtype = x->dtype, .rank = 1, .dims = { x->dims[3] } } };
  flow_attributes attributes = node->attributes;
  int inputs[6] = { [5] = addend };
  for (int i = 0; i < 5; i++) inputs[i] = node->inputs[i];
  if (sums >= 0) signatures[3] = *signature_of(f, sums);
  FLOW_TRY(flow_graph_rewrite(f->graph, index, FLOW_OP_convolution_gradient_relu, inputs, addend < 0 ? 5 : 6, &attributes, signatures,
                              4));
  if (sums >= 0) f->same[sums] = f->graph->nodes[index].outputs[3];
  return FLOW_OK;
}

/* dx of a convolution, perhaps with an addend, whose only reader stops it by the relu that made x: then the convolution's op stops it
 * (and adds) itself. The reader is either the relu's gradient alone, which becomes dx, or another convolution's gradient that begins
 * with it: that leaves it out, and the sums of dx, its gradient of the bias, are made here, too. */
static flow_status fuse(flow_fusion *f, int index)
{
  const flow_node *node = &f->graph->nodes[index];
  int dx = node->outputs[0], x = node->inputs[1], dtype = signature_of(f, x)->dtype;
  if (dtype != signature_of(f, dx)->dtype || dtype == FLOW_FLOAT64) return FLOW_OK;
  int next = sole_reader(f, index, dx), value = dx, addend = next >= 0 ? addend_of(f, index, next, dx) : -1;
  if (addend >= 0) {
    value = f->graph->nodes[next].outputs[0];
    if (f->returned[value]) return FLOW_OK;
    next = sole_reader(f, next, value);
  }
  if (next < 0) return FLOW_OK;
  flow_node *reader = &f->graph->nodes[next];
  int last = reader->outputs[reader->output_count - 1];      /* db, or what the relu lets through */
  if (f->returned[last]) return FLOW_OK;
  if (is_relu_gradient(f, reader, value, x)) {
    f->same[last] = dx;
    return stop(f, index, addend, -1);
  }
  if (!begins_with_relu(reader, value, x)) return FLOW_OK;
  f->same[value] = dx;
  if (!reader->attributes.convolution.pool[0]) reader->attributes.convolution.activation = FLOW_LINEAR;
  return stop(f, index, addend, f->readers[last] > 0 ? last : -1);
}

flow_status flow_graph_fuse_relu_gradients(flow_graph *graph, const char *live, const int *outputs, int output_count)
{
  return flow_fusion_run(graph, live, outputs, output_count, FLOW_OP_convolution_gradient, fuse);
}
