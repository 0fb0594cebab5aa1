/* devices.c: a context's places, one for each device that it uses, and what moves between them. */
#include "graph/tape.h"
#include "base/need.h"
#include "graph/variable.h"
#include "tensor/place.h"

/* A place that was made stays the context's to its end. */
flow_status flow_context_place_of(flow_context *context, int device, flow_place **out)
{
  *out = NULL;
  if (device == -1) return FLOW_OK;
  if (device < 0 || device >= FLOW_MOST_DEVICES) {
    const flow_accelerator *accelerator;
    FLOW_TRY(flow_accelerator_open(device, &accelerator));      /* which says what there is */
    return flow_fail(FLOW_UNSUPPORTED, "gpu:%d: a process uses at most %d GPUs", device, FLOW_MOST_DEVICES);
  }
  if (!context->places[device]) FLOW_TRY(flow_place_new(device, &context->places[device]));
  *out = context->places[device];
  return FLOW_OK;
}

flow_place *flow_context_place(const flow_context *context)
{
  int device = context->scopes->on_device;
  return device ? context->places[device - 1] : NULL;
}

flow_status flow_context_set_device(flow_context *context, int device)
{
  FLOW_NEED(context);
  flow_place *place;
  FLOW_TRY(flow_context_place_of(context, device, &place));
  context->scopes->on_device = device + 1;
  return FLOW_OK;
}

int flow_context_device(const flow_context *context)
{
  return context ? context->scopes->on_device - 1 : -1;
}

/* Zeros, on the host too (device -1). */
flow_status flow_tensor_new_on(flow_context *context, int device, int dtype, int rank, const int64_t *shape, flow_tensor **out)
{
  FLOW_NEED(out);
  flow_place *place;
  flow_tensor *made;
  *out = NULL;
  FLOW_NEED(context);
  if (rank > 0) FLOW_NEED(shape);
  if (device < 0) return flow_tensor_new(dtype, rank, shape, out);
  FLOW_TRY(flow_context_place_of(context, device, &place));
  FLOW_TRY(flow_tensor_new_at(place, dtype, rank, shape, &made));
  flow_status status = flow_tensor_fill(made, 0);
  if (status != FLOW_OK) flow_tensor_release(made);
  else *out = made;
  return status;
}

/* A tape sees the move as a copy, through which gradients flow. */
flow_status flow_tensor_to_device(flow_context *context, flow_tensor *tensor, int device, flow_tensor **out)
{
  FLOW_NEED(context, tensor, out);
  static const flow_attributes none;
  flow_place *place;
  FLOW_TRY(flow_check_concrete("to()", tensor));
  FLOW_TRY(flow_context_place_of(context, device, &place));
  if (flow_place_device(flow_tensor_place(tensor)) == device) {
    *out = flow_tensor_retain(tensor);
    return FLOW_OK;
  }
  flow_tensor *moved;
  FLOW_TRY(flow_tensor_at(tensor, place, &moved));
  flow_status status = FLOW_OK;
  if (context->scopes->tape_count) status = flow_tapes_record(context, FLOW_OP_copy, &tensor, 1, &none, &moved, 1);
  if (status != FLOW_OK) flow_tensor_release(moved);
  else *out = moved;
  return status;
}

flow_status flow_variable_to_device(flow_context *context, flow_variable *variable, int device)
{
  FLOW_NEED(context, variable);
  flow_place *place;
  FLOW_TRY(flow_check_variable("moving a variable", variable));
  FLOW_TRY(flow_context_place_of(context, device, &place));
  return flow_variable_move_to(variable, place);
}

/* Waits for what this context's place has enqueued, and raises what failed in it. */
flow_status flow_device_synchronize(flow_context *context, int device)
{
  FLOW_NEED(context);
  flow_place *place;
  FLOW_TRY(flow_context_place_of(context, device, &place));
  return place ? flow_place_synchronize(place) : FLOW_OK;
}
