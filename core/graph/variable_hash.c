/* variable_hash.c: the bytes of variables in 64 bits each, by which replicas find that they do not have the same ones any more. */
#include "base/memory.h"
#include "base/xxh64.h"
#include "graph/variable.h"
#include "tensor/mirrors.h"
#include "tensor/place.h"

enum { PIECE = 4 << 20 };           /* bytes of a device that are on the host at a time; a multiple of a stripe */

/* Of what `place` has at `data`. A device's bytes come in pieces, so that a variable of any size takes PIECE bytes of the host. */
static flow_status hash_at(flow_place *place, const char *data, size_t bytes, uint64_t *out)
{
  void *piece;
  flow_xxh64 hash;
  size_t at = 0;
  flow_xxh64_begin(&hash);
  if (!place) {
    *out = flow_xxh64_end(&hash, data, bytes);
    return FLOW_OK;
  }
  FLOW_TRY(flow_alloc(PIECE, &piece));
  flow_status status = FLOW_OK;
  for (; bytes - at > PIECE && status == FLOW_OK; at += PIECE) {
    status = flow_place_download(place, piece, data + at, PIECE);
    if (status == FLOW_OK) flow_xxh64_add(&hash, piece, PIECE);
  }
  if (status == FLOW_OK) status = flow_place_download(place, piece, data + at, bytes - at);
  if (status == FLOW_OK) *out = flow_xxh64_end(&hash, piece, bytes - at);
  flow_free(piece);
  return status;
}

/* Of the copy on `device`, if there is a mirror that is up to date, else of the variable itself; -1: the variable itself. */
static flow_status hash_variable(const flow_variable *variable, int device, uint64_t *out)
{
  const flow_tensor *tensor = variable->tensor;
  const flow_storage *storage = tensor->storage;
  size_t bytes = (size_t)(flow_tensor_size(tensor) * flow_dtype_size(tensor->dtype));
  size_t offset = (size_t)(tensor->data - (char *)storage->data);
  flow_place *place = storage->place;
  const char *data = storage->data;
  if (place && device >= 0 && device != flow_place_device(place)) flow_mirror_find(storage, device, &place, &data);
  return hash_at(place, data + offset, bytes, out);
}

/* Variables whose kind is a sum differ between replicas by design: their hash is 0. */
flow_status flow_variables_hash(flow_variable *const *variables, int count, int device, uint64_t *hashes)
{
  if (count < 0 || (count > 0 && (!variables || !hashes))) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "flow_variables_hash: %s",
                     count < 0 ? "count is negative" : variables ? "hashes is NULL" : "variables is NULL");
  }
  for (int i = 0; i < count; i++) {
    FLOW_TRY(flow_check_variable("flow_variables_hash", variables[i]));
    hashes[i] = 0;
    if (variables[i]->sync != FLOW_SUM_ON_READ) FLOW_TRY(hash_variable(variables[i], device, &hashes[i]));
  }
  return FLOW_OK;
}
