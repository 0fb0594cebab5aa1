/* place.h: the memory of one accelerator, with the queue that orders the work on it. A tensor's storage names its place; NULL is the
 * host.
 *
 * A context has at most one place for each device, so that its work is carried out in the order of its calls. Tensors keep their
 * place alive. Each function takes the place's lock, so that tensors may be released by any thread. */
#ifndef FLOW_TENSOR_PLACE_H
#define FLOW_TENSOR_PLACE_H

#include "accelerator.h"
#include "tensor/tensor.h"

/* An accelerator of this process; they are looked for at the first question. accelerators.c
 * FLOW_NOT_FOUND names the devices that there are. */
flow_status flow_accelerator_open(int device, const flow_accelerator **out);

flow_status flow_place_new(int device, flow_place **out);      /* new reference */
flow_place *flow_place_retain(flow_place *place);              /* NULL is fine */
void        flow_place_release(flow_place *place);             /* NULL is fine */

int                     flow_place_device(const flow_place *place);        /* "gpu:0" is 0; -1: NULL, the host */
const char             *flow_place_name(const flow_place *place);          /* "gpu:0", "cpu"; borrowed as long as the place */
const flow_accelerator *flow_place_accelerator(const flow_place *place);

/* As the functions of accelerator.h; sizes of 0 do nothing. memory counts in flow_live_bytes. */
flow_status flow_place_allocate(flow_place *place, size_t bytes, void **out);
void        flow_place_free(flow_place *place, void *memory, size_t bytes);
flow_status flow_place_upload(flow_place *place, void *to, const void *host, size_t bytes);
flow_status flow_place_download(flow_place *place, void *host, const void *from, size_t bytes);
flow_status flow_place_copy(flow_place *place, void *to, const void *from, size_t bytes);
flow_status flow_place_clear(flow_place *place, void *to, size_t bytes);
flow_status flow_place_synchronize(flow_place *place);

/* Work that is enqueued at `place` from now on runs after all that was enqueued at `other`. Does nothing if both are the same place. The
 * caller must not hold a lock. */
flow_status flow_place_follow(flow_place *place, flow_place *other);

/* An observer of failures while waiting for a place or its bytes: settle gets the status, with flow_last_error() set, and returns the
 * status to fail with. Call watch and unwatch only while no thread waits for the place. */
typedef struct flow_place_watcher {
  flow_status (*settle)(void *state, flow_place *place, flow_status status);
  void        *state;
  struct flow_place_watcher *next;
} flow_place_watcher;
void flow_place_watch(flow_place *place, flow_place_watcher *watcher);
void flow_place_unwatch(flow_place *place, flow_place_watcher *watcher);

/* For several calls in a row: the queue, for use with the accelerator's functions until unlock. */
flow_queue *flow_place_lock(flow_place *place);
void        flow_place_unlock(flow_place *place);

/* Scalars of ops that are not part of a plan, all zero, in the place's memory. */
const flow_scalars *flow_place_scalars(const flow_place *place);

#endif
