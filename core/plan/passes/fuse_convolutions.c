/* fuse_convolutions.c: in plans for the CPU, what follows a convolution and alone reads its result becomes part of it. c: a number above 0,
 * as relu6 has it.
 *
 *   minimum(convolution(..), c)                                             ->  convolution(.., ceiling c)
 *   convolution(x, w, b) + r, relu(convolution(x, w, b) + r)                ->  convolution_add(x, w, b, r), of which r has the shape
 *   convolution(convolution(x, w in groups of one channel), p {1, 1, ..})   ->  separable_convolution(x, w, p), by bands of rows
 *
 * Training reads results again for its gradients, so that this happens in plans for predictions. Runs when a plan is made, after
 * convolutions have taken biases and relu. */
#include <math.h>

#include "plan/passes/fusion.h"

/* The weights of the pointwise convolution are read for each band: they stay in the second-level cache. */
enum { MOST_WEIGHT_BYTES = 512 << 10 };

static const flow_signature *signature_of(const flow_fusion *f, int value)
{
  return &f->graph->values[value].signature;
}

/* Whether the node is a convolution of float32 alone without a pool, of whose results one is read. */
static int is_plain(const flow_fusion *f, const flow_node *node)
{
  for (int i = 0; i < 2; i++)
    if (signature_of(f, node->inputs[i])->dtype != FLOW_FLOAT32) return 0;
  return !node->attributes.convolution.pool[0] && f->readers[node->outputs[1]] == 0;
}

static int is_depthwise(const flow_fusion *f, const flow_node *node)
{
  int64_t channels = signature_of(f, node->inputs[0])->dims[3];
  return is_plain(f, node) && channels > 1 && node->attributes.convolution.groups == channels &&
         signature_of(f, node->inputs[1])->dims[3] == channels;
}

static int is_pointwise(const flow_fusion *f, const flow_node *node)
{
  const __typeof__(node->attributes.convolution) *a = &node->attributes.convolution;
  const flow_signature *p = signature_of(f, node->inputs[1]);
  return is_plain(f, node) && p->dims[0] == 1 && p->dims[1] == 1 && a->groups == 1 && a->stride[0] == 1 && a->stride[1] == 1 &&
         !a->padding[0] && !a->padding[1] && !a->padding[2] && !a->padding[3] && a->input_scale == 0 &&
         p->dims[2] * p->dims[3] * (int64_t)sizeof(float) <= MOST_WEIGHT_BYTES;
}

/* The minimum `index` becomes the convolution whose result it limits. */
static flow_status fuse_ceiling(flow_fusion *f, int index)
{
  const flow_node *node = &f->graph->nodes[index];
  for (int side = 0; side < 2; side++) {
    double number = flow_constant_number(f->graph, node->inputs[side]);
    int below = node->inputs[1 - side];
    const flow_node *made = flow_sole_producer(f->graph, f->readers, below, FLOW_OP_convolution);
    if (!(number > 0) || !isfinite(number) || !made || !is_plain(f, made) || !flow_fusion_alike(f, below, node->outputs[0])) continue;
    flow_attributes attributes = made->attributes;
    flow_signature results[2] = { *signature_of(f, node->outputs[0]), *signature_of(f, made->outputs[1]) };
    if (attributes.convolution.ceiling == 0 || number < attributes.convolution.ceiling) attributes.convolution.ceiling = number;
    return flow_graph_rewrite(f->graph, index, FLOW_OP_convolution, made->inputs, made->input_count, &attributes, results, 2);
  }
  return FLOW_OK;
}

/* The sum `index` becomes the convolution to which it adds a tensor. Of two convolutions the later one: it is nearer to the sum. */
static flow_status fuse_sum(flow_fusion *f, int index)
{
  const flow_node *node = &f->graph->nodes[index], *made = NULL;
  int added = -1;
  for (int side = 0; side < 2; side++) {
    const flow_node *one = flow_sole_producer(f->graph, f->readers, node->inputs[side], FLOW_OP_convolution);
    if (!one || one < made || !is_plain(f, one) || one->input_count != 3 || one->attributes.convolution.groups != 1 ||
        one->attributes.convolution.activation != FLOW_LINEAR || one->attributes.convolution.ceiling != 0 ||
        !flow_fusion_alike(f, node->inputs[0], node->inputs[1]) || node->inputs[0] == node->inputs[1])
      continue;
    made = one;
    added = node->inputs[1 - side];
  }
  if (!made) return FLOW_OK;
  int inputs[4] = { made->inputs[0], made->inputs[1], made->inputs[2], added };
  flow_attributes attributes = made->attributes;
  flow_signature results[2] = { *signature_of(f, node->outputs[0]), *signature_of(f, made->outputs[1]) };
  return flow_graph_rewrite(f->graph, index, FLOW_OP_convolution_add, inputs, 4, &attributes, results, 2);
}

/* The relu `index` becomes the convolution_add before it. */
static flow_status fuse_relu_of_sum(flow_fusion *f, int index)
{
  const flow_node *node = &f->graph->nodes[index];
  const flow_node *made = flow_sole_producer(f->graph, f->readers, node->inputs[0], FLOW_OP_convolution_add);
  if (!made || made->attributes.convolution.activation != FLOW_LINEAR) return FLOW_OK;
  flow_attributes attributes = made->attributes;
  attributes.convolution.activation = FLOW_RELU;
  flow_signature results[2] = { *signature_of(f, node->outputs[0]), *signature_of(f, made->outputs[1]) };
  return flow_graph_rewrite(f->graph, index, FLOW_OP_convolution_add, made->inputs, made->input_count, &attributes, results, 2);
}

/* The pointwise convolution `index` becomes both. */
static flow_status fuse_pointwise(flow_fusion *f, int index)
{
  const flow_node *second = &f->graph->nodes[index];
  const flow_node *first = flow_sole_producer(f->graph, f->readers, second->inputs[0], FLOW_OP_convolution);
  if (!first || !is_depthwise(f, first) || !is_pointwise(f, second)) return FLOW_OK;
  flow_attributes attributes = first->attributes;
  int inputs[5] = { first->inputs[0], first->inputs[1], second->inputs[1] }, count = 3;
  if (first->input_count > 2) inputs[count++] = first->inputs[2];
  if (second->input_count > 2) inputs[count++] = second->inputs[2];
  attributes.convolution.pointwise_activation = second->attributes.convolution.activation;
  attributes.convolution.pointwise_has_bias = second->attributes.convolution.has_bias;
  attributes.convolution.pointwise_ceiling = second->attributes.convolution.ceiling;
  flow_signature result = *signature_of(f, second->outputs[0]);
  return flow_graph_rewrite(f->graph, index, FLOW_OP_separable_convolution, inputs, count, &attributes, &result, 1);
}

flow_status flow_graph_fuse_ceilings(flow_graph *graph, const char *live, const int *outputs, int output_count)
{
  return flow_fusion_run_on_cpu(graph, live, outputs, output_count, FLOW_OP_minimum, fuse_ceiling);
}

flow_status flow_graph_fuse_sums(flow_graph *graph, const char *live, const int *outputs, int output_count)
{
  FLOW_TRY(flow_fusion_run_on_cpu(graph, live, outputs, output_count, FLOW_OP_add, fuse_sum));
  return flow_fusion_run_on_cpu(graph, live, outputs, output_count, FLOW_OP_relu, fuse_relu_of_sum);
}

flow_status flow_graph_fuse_separable(flow_graph *graph, const char *live, const int *outputs, int output_count)
{
  return flow_fusion_run_on_cpu(graph, live, outputs, output_count, FLOW_OP_convolution, fuse_pointwise);
}
