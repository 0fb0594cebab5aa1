/* masks.h: masks that travel. A tensor may carry a mask (flow_tensor_mask): bool, of its first axes, false where a step does not count.
 * flow_layer_run, through which every call of a record goes, eager, traced and of models without Lua, hands masks on as Keras 3 does
 * (keras/src/layers/layer.py, __call__); for layers written in Lua lua/flow/layers/masks.lua does the same.
 *
 * How a layer gets a mask. One whose inputs have names has an input for it: "mask" of a layer that is called on one tensor, or list of
 * tensors ("mask[1]", ... of "inputs[1]", ...), "query_mask" of "query" where it is called on several. What the caller does not give comes
 * from the tensors; a mask that is given counts in place of those. "mask" is filled in only where one tensor or list is given: an LSTM with
 * { "sequence", "initial_state[1]", "initial_state[2]", "mask", NULL } gets the mask of its sequence unless it has an initial state, as in
 * Keras. A layer of unnamed inputs reads flow_tensor_mask(inputs[i]).
 *
 * What its output carries. supports_masking of the record: the mask of the first input, or what compute_mask gives. A call that sets the
 * mask of its output itself (flow_tensor_set_mask) is left alone. */
#ifndef FLOW_LAYERS_MASKS_H
#define FLOW_LAYERS_MASKS_H

#include "layers/layer.h"

/* Fills in the masks that a call of named inputs did not give: inputs has room for all names. They are references that flow_masks_release
 * gives back; `filled`: which ones, a bit each. */
void flow_masks_fill(const flow_layer *layer, flow_tensor **inputs, unsigned *filled);
void flow_masks_release(flow_tensor **inputs, unsigned filled);

/* The masks of what a call has for its first argument: one tensor, or all entries of the list; their number in *count. masks has room for
 * FLOW_LAYER_MOST_INPUTS or, of a layer of unnamed inputs, for `given` of them; borrowed. Returns whether there is one. */
int flow_masks_of_inputs(const flow_layer *layer, flow_tensor *const *inputs, int given, flow_tensor **masks, int *count);

/* compute_mask in Keras' words: *out: a new reference, or NULL: none. */
flow_status flow_masks_compute(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, flow_tensor *const *masks, int count,
                               flow_tensor **out);

/* After a call: the mask of the output, or the warning. masks: of the inputs, as flow_masks_of_inputs told before it. */
flow_status flow_masks_pass(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, flow_tensor *const *masks, int count,
                            flow_tensor **outputs);

#endif
