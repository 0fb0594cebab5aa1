/* policy.c: see policy.h. The casts are ordinary ops, so that they are traced and gradients flow back through them, and they are loose
 * (graph.h): a plan removes those that two neighbouring layers make against each other. A layer that computes in full precision casts
 * its inputs up and its outputs down; all others get inputs in the policy's dtype and give what their ops give. */
#include "layers/policy.h"
#include "autodiff/apply.h"
#include "graph/graph.h"

#include <string.h>

int flow_policy_named(const char *policy)
{
  if (strcmp(policy, "mixed_bfloat16") == 0) return FLOW_BFLOAT16;
  if (strcmp(policy, "float64") == 0) return FLOW_FLOAT64;
  return strcmp(policy, "mixed_float16") == 0 ? FLOW_FLOAT16 : FLOW_FLOAT32;
}

int flow_policy_dtype(const flow_layer *layer)
{
  return flow_policy_named(flow_argument_text(layer->arguments, "dtype"));
}

int flow_policy_variable_dtype(const flow_layer *layer)
{
  return flow_policy_dtype(layer) == FLOW_FLOAT64 ? FLOW_FLOAT64 : FLOW_FLOAT32;
}

int flow_policy_computes_in(const flow_layer *layer)
{
  return layer->class->full_precision ? flow_policy_variable_dtype(layer) : flow_policy_dtype(layer);
}

/* The cast is loose (flow_graph_loosen): a plan may leave out pairs of casts that undo each other, to which float64 does not belong. */
static flow_status cast_to(flow_context *context, flow_tensor *x, int dtype, flow_tensor **out)
{
  flow_attributes attributes = { .cast = { dtype } };
  FLOW_TRY(flow_apply1(context, FLOW_OP_cast, x, NULL, NULL, &attributes, out));
  if (dtype != FLOW_FLOAT64) flow_graph_loosen(*out);
  return FLOW_OK;
}

/* Tensors of float64 are not cast to less: it is never a default, so the user asked for it. */
static int is_cast(int dtype, int wanted)
{
  return dtype != wanted && (dtype == FLOW_FLOAT32 || dtype == FLOW_FLOAT16 || dtype == FLOW_BFLOAT16);
}

/* cast: new references, NULL where an input is; all or none. */
flow_status flow_policy_cast_inputs(flow_context *context, const flow_layer *layer, flow_tensor *const *inputs, int count,
                                    flow_tensor **cast)
{
  int wanted = flow_policy_computes_in(layer);
  for (int i = 0; i < count; i++) cast[i] = NULL;
  for (int i = 0; i < count; i++) {
    flow_status status = FLOW_OK;
    if (inputs[i] && is_cast(inputs[i]->dtype, wanted)) status = cast_to(context, inputs[i], wanted, &cast[i]);
    else cast[i] = flow_tensor_retain(inputs[i]);
    if (status == FLOW_OK) continue;
    while (i-- > 0) {
      flow_tensor_release(cast[i]);
      cast[i] = NULL;
    }
    return status;
  }
  return FLOW_OK;
}

/* Of layers that compute in float32 whatever their 16-bit policy is, and of those that do so under float64: others give their policy's
 * dtype by themselves. */
flow_status flow_policy_cast_output(flow_context *context, const flow_layer *layer, flow_tensor **out)
{
  int wanted = flow_policy_dtype(layer);
  flow_tensor *cast;
  if ((!layer->class->full_precision && wanted != FLOW_FLOAT64) || !is_cast((*out)->dtype, wanted)) return FLOW_OK;
  FLOW_TRY(cast_to(context, *out, wanted, &cast));
  flow_tensor_release(*out);
  *out = cast;
  return FLOW_OK;
}
