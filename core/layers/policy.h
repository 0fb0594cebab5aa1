/* policy.h: dtype policies (Keras: DTypePolicy): in which dtype a layer computes and in which it keeps its variables. "mixed_bfloat16"
 * and "mixed_float16" compute in 16 bits on variables of 32, which are cast where they are read. */
#ifndef FLOW_LAYERS_POLICY_H
#define FLOW_LAYERS_POLICY_H

#include "layers/layer.h"

/* The dtype that the layer computes in. */
int         flow_policy_dtype(const flow_layer *layer);
/* Casts what of inputs[] is a float to that dtype; cast[]: references for the caller to release, NULLs after a failure. A layer whose
 * record says full_precision computes in float32 meanwhile. */
flow_status flow_policy_cast_inputs(flow_context *context, const flow_layer *layer, flow_tensor *const *inputs, int count,
                                    flow_tensor **cast);
/* The result of such a layer in the layer's dtype, in place. */
flow_status flow_policy_cast_output(flow_context *context, const flow_layer *layer, flow_tensor **out);

#endif
