/* masks.c: see masks.h. Names of inputs tell which input is the mask of which, as in Keras' signatures; nothing else does, so that a
 * record needs no table for it: "mask" and "mask[2]" belong to "inputs" and "inputs[2]", "query_mask" to "query". Bits of a mask of
 * inputs fit into an unsigned, since a record has at most FLOW_LAYER_MOST_INPUTS of them. */
#include "layers/masks.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"

/* How long the name of an argument is: "mask" of "mask[2]". */
static size_t base_length(const char *name) { return strcspn(name, "["); }

/* "mask", "mask[2]" and "query_mask" end in "mask" before their index. */
static int is_mask(const char *name)
{
  size_t length = base_length(name);
  return length >= 4 && strncmp(name + length - 4, "mask", 4) == 0;
}

static int same_base(const char *a, const char *b)
{
  size_t length = base_length(a);
  return length == base_length(b) && strncmp(a, b, length) == 0;
}

/* Which input is the mask of input `index` of a call on one tensor or list ("mask"), or on several ("query_mask"); -1: there is none. */
static int mask_input(const flow_layer_class *class, int index, int alone)
{
  char name[64];
  const char *input = class->input_names[index];
  size_t length = base_length(input);
  if (alone) snprintf(name, sizeof name, "mask%s", input + length);
  else snprintf(name, sizeof name, "%.*s_mask%s", (int)length, input, input + length);
  return flow_layer_find_input(class, name, 0);
}

/* Whether any entry of an argument is given. */
static int is_given(const flow_layer_class *class, flow_tensor *const *inputs, const char *argument)
{
  for (int i = 0; class->input_names[i]; i++)
    if (inputs[i] && same_base(class->input_names[i], argument)) return 1;
  return 0;
}

/* Whether the call has one argument of tensors, masks left aside. */
static int has_one_argument(const flow_layer_class *class, flow_tensor *const *inputs)
{
  for (int i = 0; class->input_names[i]; i++)
    if (inputs[i] && !same_base(class->input_names[i], class->input_names[0]) && strcmp(class->input_names[i], "mask") != 0 &&
        strncmp(class->input_names[i], "mask[", 5) != 0)
      return 0;
  return 1;
}

/* A mask that the caller gives wins over those that tensors carry. *filled: a bit for each input that was filled in here, whose
 * reference flow_masks_release gives back. */
void flow_masks_fill(const flow_layer *layer, flow_tensor **inputs, unsigned *filled)
{
  const flow_layer_class *class = layer->class;
  unsigned given = 0;
  int alone = has_one_argument(class, inputs);
  *filled = 0;
  for (int i = 0; class->input_names[i]; i++)
    if (is_mask(class->input_names[i]) && is_given(class, inputs, class->input_names[i])) given |= 1u << i;
  for (int i = 0; class->input_names[i]; i++) {
    flow_tensor *mask = inputs[i] && !is_mask(class->input_names[i]) ? inputs[i]->mask : NULL;
    int to = mask ? mask_input(class, i, alone) : -1;
    if (to < 0 || given >> to & 1) continue;
    inputs[to] = flow_tensor_retain(mask);
    *filled |= 1u << to;
  }
}

/* Only those that flow_masks_fill filled in: the others are the caller's. */
void flow_masks_release(flow_tensor **inputs, unsigned filled)
{
  for (int i = 0; filled; i++, filled >>= 1)
    if (filled & 1) flow_tensor_release(inputs[i]);
}

/* masks: borrowed, one for each tensor of the first argument. */
int flow_masks_of_inputs(const flow_layer *layer, flow_tensor *const *inputs, int given, flow_tensor **masks, int *count)
{
  const flow_layer_class *class = layer->class;
  int any = 0;
  *count = 0;
  for (int i = 0; i < given; i++) {
    flow_tensor *mask = inputs[i] ? inputs[i]->mask : NULL;
    if (class->input_names) {
      if (!same_base(class->input_names[i], class->input_names[0])) continue;
      int own = mask_input(class, i, 1);
      if (own >= 0 && is_given(class, inputs, "mask")) mask = inputs[own];
    }
    any |= mask != NULL;
    masks[(*count)++] = mask;
  }
  return any;
}

/* masks may hold NULLs; without a compute_mask the first one decides, as in Keras. */
flow_status flow_masks_compute(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, flow_tensor *const *masks, int count,
                               flow_tensor **out)
{
  *out = NULL;
  if (layer->class->compute_mask) return layer->class->compute_mask(context, layer, inputs, masks, count, out);
  if (count > 0) *out = flow_tensor_retain(masks[0]);
  return FLOW_OK;
}

/* The warning comes once for each layer, not once a call. */
flow_status flow_masks_pass(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, flow_tensor *const *masks, int count,
                            flow_tensor **outputs)
{
  int any = 0;
  flow_tensor *mask;
  for (int i = 0; i < count; i++) any |= masks[i] != NULL;
  if (!layer->class->supports_masking) {
    if (any && !layer->ended_masks) {
      char text[512];
      snprintf(text, sizeof text, "%s \"%s\" was called on a tensor with a mask, which it does not support: its output has none, and "
               "layers after it count every step", layer->class->name, layer->name);
      flow_log(FLOW_LOG_WARNING, text);
    }
    layer->ended_masks |= any;
    return FLOW_OK;
  }
  if (outputs[0]->mask || (!any && !layer->class->compute_mask)) return FLOW_OK;
  FLOW_TRY(flow_masks_compute(context, layer, inputs, masks, count, &mask));
  flow_status status = mask ? flow_tensor_set_mask(outputs[0], mask) : FLOW_OK;
  flow_tensor_release(mask);
  return status;
}
