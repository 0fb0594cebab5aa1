/* eager.h: what running an op at once has in common on the host and on a device. */
#ifndef FLOW_AUTODIFF_EAGER_H
#define FLOW_AUTODIFF_EAGER_H

#include "ops/launch.h"
#include "autodiff/apply.h"

/* A tensor as an operand: its memory, shape and strides. */
void flow_fill_operand(flow_operand *operand, const flow_tensor *tensor);

/* Where an op runs: on the device where an input is, or, without inputs, where the context makes tensors. *out NULL: on the host.
 * FLOW_INVALID_ARGUMENT names the two devices of inputs that are not on one. Borrowed. */
flow_status flow_place_of_call(flow_context *context, int op, flow_tensor *const *inputs, int input_count, flow_place **out);

/* flow_run_eager on a device: enqueues the op and returns. Inputs of the host are copied there; what an effect wrote in such a copy is
 * copied back. FLOW_UNSUPPORTED where the device has no kernel. What the kernel finds wrong in the data fails a later call that reads. */
flow_status flow_run_at(flow_context *context, flow_place *place, int op, flow_tensor *const *inputs, int input_count,
                        const flow_attributes *attributes, const flow_signature *results, flow_tensor **outputs);

/* A tensor of a device without gaps between its elements, by the device's own copy: itself where there are none. New reference. */
flow_status flow_pack_at(flow_context *context, flow_tensor *tensor, flow_tensor **out);

#endif
