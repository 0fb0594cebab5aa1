/* policy.h: dtype policies (Keras: DTypePolicy): in which dtype a layer computes and in which it keeps its variables. "mixed_bfloat16"
 * and "mixed_float16" compute in 16 bits on variables of 32, which are cast where they are read; "float32" and "float64" compute in what
 * they keep. */
#ifndef FLOW_LAYERS_POLICY_H
#define FLOW_LAYERS_POLICY_H

#include "layers/layer.h"

/* The dtype of the outputs of layers under the policy of a name; float32 also where there is no such policy. */
int flow_policy_named(const char *policy);
/* The same of a layer's policy. */
int         flow_policy_dtype(const flow_layer *layer);
/* The dtype of its variables: float32, or float64. */
int flow_policy_variable_dtype(const flow_layer *layer);
/* The dtype that it computes in: of a layer whose record says full_precision that of its variables. */
int flow_policy_computes_in(const flow_layer *layer);
/* Casts what of inputs[] is a float to the dtype that the layer computes in; cast[]: references for the caller to release, NULLs after a
 * failure. */
flow_status flow_policy_cast_inputs(flow_context *context, const flow_layer *layer, flow_tensor *const *inputs, int count,
                                    flow_tensor **cast);
/* The result of a layer in the layer's dtype, in place, where the class may give another one. */
flow_status flow_policy_cast_output(flow_context *context, const flow_layer *layer, flow_tensor **out);

#endif
