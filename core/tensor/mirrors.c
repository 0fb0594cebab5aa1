/* mirrors.c: see mirrors.h. A mirror is up to date if its count of writes is that of the storage. The lists have one entry for each
 * device of a strategy, at most. Not locked: variables are written and mirrored by the thread that runs their plan. */
#include "tensor/mirrors.h"

#include "base/memory.h"

enum { PIECE = 16 << 20 };           /* bytes that are on the host at a time */

struct flow_mirror {
  flow_mirror *next;
  flow_place  *place;
  void        *data;
  uint64_t     writes;               /* of the storage, when it was the same */
};

/* The mirror at exactly this place, whether it is up to date or not; NULL: none. */
static flow_mirror *find(const flow_storage *storage, const flow_place *place)
{
  flow_mirror *mirror = storage->mirrors;
  while (mirror && mirror->place != place) mirror = mirror->next;
  return mirror;
}

/* A mirror that was out of date before stays so: the same write to old contents does not make it equal. */
void flow_mirrors_were_written(flow_storage *storage, flow_place *const *places, int count)
{
  flow_storage_written(storage);
  for (int i = 0; i < count; i++) {
    flow_mirror *mirror = find(storage, places[i]);
    if (mirror && mirror->writes + 1 == storage->writes) mirror->writes = storage->writes;
  }
}

/* Puts a new mirror into the storage's list: allocated, not copied. Its count of writes differs from the storage's (it
 * may wrap around from 0), so that it is copied before it is used, also if the first copy fails. */
static flow_status make(flow_storage *storage, flow_place *place, flow_mirror **out)
{
  void *block;
  FLOW_TRY(flow_alloc_zero(sizeof **out, &block));
  flow_mirror *mirror = block;
  flow_status status = flow_place_allocate(place, storage->bytes, &mirror->data);
  if (status != FLOW_OK) {
    flow_free(mirror);
    return status;
  }
  mirror->place = flow_place_retain(place);
  mirror->next = storage->mirrors;
  mirror->writes = storage->writes - 1;
  storage->mirrors = mirror;
  *out = mirror;
  return FLOW_OK;
}

/* The download waits for all that was enqueued at the storage's place; the upload has read `piece` when it returns. */
static flow_status copy_piece(const flow_storage *storage, const flow_mirror *mirror, char *piece, size_t at, size_t bytes)
{
  FLOW_TRY(flow_place_download(storage->place, piece, (const char *)storage->data + at, bytes));
  return flow_place_upload(mirror->place, (char *)mirror->data + at, piece, bytes);
}

/* By way of the host, piece after piece: there need not be memory for a whole arena there. */
static flow_status renew(const flow_storage *storage, const flow_mirror *mirror)
{
  void *piece;
  size_t most = storage->bytes < PIECE ? storage->bytes : PIECE;
  FLOW_TRY(flow_alloc(most, &piece));
  flow_status status = FLOW_OK;
  for (size_t at = 0; at < storage->bytes && status == FLOW_OK; at += most)
    status = copy_piece(storage, mirror, piece, at, storage->bytes - at < most ? storage->bytes - at : most);
  flow_free(piece);
  return status;
}

/* The address of the storage's contents on the device of `place`: its own where it is there, else the mirror's, copied again if the storage
 * was written since. */
flow_status flow_mirror_at(flow_storage *storage, flow_place *place, char **out)
{
  *out = storage->data;
  if (flow_place_device(storage->place) == flow_place_device(place)) return FLOW_OK;
  flow_mirror *mirror = find(storage, place);
  if (!mirror) FLOW_TRY(make(storage, place, &mirror));
  *out = mirror->data;
  if (mirror->writes == storage->writes) return FLOW_OK;
  FLOW_TRY(renew(storage, mirror));
  mirror->writes = storage->writes;
  return FLOW_OK;
}

void flow_mirror_find(const flow_storage *storage, int device, flow_place **place, const char **data)
{
  const flow_mirror *mirror = storage->mirrors;
  while (mirror && flow_place_device(mirror->place) != device) mirror = mirror->next;
  if (!mirror || mirror->writes != storage->writes) return;
  *place = mirror->place;
  *data = mirror->data;
}

/* When the last reference to the storage is given back: no other thread has it. */
void flow_mirrors_release(flow_storage *storage)
{
  for (flow_mirror *mirror = storage->mirrors, *next; mirror; mirror = next) {
    next = mirror->next;
    flow_place_free(mirror->place, mirror->data, storage->bytes);
    flow_place_release(mirror->place);
    flow_free(mirror);
  }
  storage->mirrors = NULL;
}
