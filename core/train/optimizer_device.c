/* optimizer_device.c: an optimizer's arenas on another device: the flat tensors are copied there, and every handle that lay in one is
 * in the copy from then on. */
#include "tensor/place.h"
#include "base/need.h"
#include "train/optimizer.h"

/* The same part of `to` that a variable's storage is of `from`; storages elsewhere stay. */
static flow_status move_part(flow_variable *variable, const flow_storage *from, flow_tensor *to)
{
  flow_tensor *part, *old = variable->tensor;
  if (old->storage != from) return FLOW_OK;
  int64_t offset = (old->data - (char *)from->data) / (int64_t)flow_dtype_size(old->dtype);
  FLOW_TRY(flow_tensor_view(to, old->rank, old->shape, old->strides, offset, &part));
  variable->tensor = part;
  flow_tensor_release(old);
  return FLOW_OK;
}

/* All of the optimizer's handles that are in `from`. */
static flow_status move_parts(flow_optimizer *optimizer, const flow_storage *from, flow_tensor *to)
{
  for (int a = 0; a < optimizer->arena_count; a++)
    for (int i = 0; i < optimizer->arenas[a]->count; i++) FLOW_TRY(move_part(optimizer->arenas[a]->variables[i], from, to));
  for (int i = 0; i < optimizer->slot_count; i++) FLOW_TRY(move_part(optimizer->slot_variables[i], from, to));
  for (int r = 0; r < optimizer->run_count; r++) {
    FLOW_TRY(move_part(optimizer->runs[r].parameters, from, to));
    for (int s = 0; s < optimizer->slot_kinds; s++) FLOW_TRY(move_part(optimizer->runs[r].slots[s], from, to));
  }
  return FLOW_OK;
}

/* Moves what `member` is in. The whole storage is copied once, whichever of its parts comes first; later parts find themselves there
 * already. */
static flow_status move_storage(flow_optimizer *optimizer, const flow_tensor *member, flow_place *place)
{
  flow_storage *from = member->storage;
  if (flow_place_device(from->place) == flow_place_device(place)) return FLOW_OK;
  int64_t each = (int64_t)flow_dtype_size(member->dtype), size = (int64_t)from->bytes / each, stride = 1;
  flow_tensor *whole, *moved = NULL;
  int64_t first = ((char *)from->data - member->data) / each;
  FLOW_TRY(flow_tensor_view((flow_tensor *)(uintptr_t)member, 1, &size, &stride, first, &whole));
  flow_status status = flow_tensor_at(whole, place, &moved);
  if (status == FLOW_OK) status = move_parts(optimizer, from, moved);      /* whole keeps `from` alive meanwhile */
  flow_tensor_release(moved);
  flow_tensor_release(whole);
  return status;
}

/* Not while a step runs. Traces that were made before refer to the old place and are to be made again. */
flow_status flow_optimizer_to_device(flow_context *context, flow_optimizer *optimizer, int device)
{
  FLOW_NEED(context, optimizer);
  flow_place *place;
  FLOW_TRY(flow_context_place_of(context, device, &place));
  for (int a = 0; a < optimizer->arena_count; a++) {
    flow_arena *arena = optimizer->arenas[a];
    for (int i = 0; i < arena->count; i++) {
      FLOW_TRY(flow_variable_own(arena->variables[i]));
      FLOW_TRY(move_storage(optimizer, arena->variables[i]->tensor, place));
    }
  }
  for (int i = 0; i < optimizer->slot_count; i++) {
    FLOW_TRY(flow_variable_own(optimizer->slot_variables[i]));
    FLOW_TRY(move_storage(optimizer, optimizer->slot_variables[i]->tensor, place));
  }
  return flow_optimizer_move_scalars(optimizer, place);
}
