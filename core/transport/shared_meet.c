/* shared_meet.c: ranks that have nothing but a store to meet in find out whether they share memory, before anybody opens a connection to
 * each of the others. What they tell each other for that (shared_open.c) goes through rank 0, which collects it and leaves it in the
 * store in one piece: the requests grow with the ranks, not with their square. */
#include "transport/shared.h"

#include <stdio.h>
#include <string.h>
#include "base/futex.h"
#include "base/memory.h"

enum { KEY = 128, MOST_PIECE = 32768 };          /* bytes of a key, of what is left under one */

typedef struct meeting {
  flow_communicator base;                /* first */
  const flow_store *store;
  /* a copy, since the meeting may outlive the options; longer names are cut */
  char              group[64];
  int               gathers;             /* done */
  int64_t           end;                 /* on the clock */
} meeting;

/* Waits for a rank's text under a key, within what is left of the time for the whole meeting. */
static flow_status take(meeting *self, const char *key, int rank, void *to, size_t bytes)
{
  double left = 1e-9 * (double)(self->end - flow_now_nanoseconds());
  void *found = NULL;
  size_t count = 0;
  flow_status status = self->store->get(self->store->state, key, left > 0 ? left : 0, &found, &count);
  if (status == FLOW_TIMED_OUT) {
    return flow_fail(status, "meeting in the store: rank %d of %d did not come within %g s", rank, self->base.size, self->base.timeout);
  }
  FLOW_TRY(status);
  if (count == bytes) memcpy(to, found, bytes);
  flow_free(found);
  if (count == bytes) return FLOW_OK;
  return flow_fail(FLOW_IO_ERROR, "meeting in the store: rank %d of %d left %zu bytes where %zu are expected: it is of another version",
                   rank, self->base.size, count, bytes);
}

/* Everything, in pieces: rank 0 leaves them, the others take them. */
static flow_status spread(meeting *self, const char *name, char *all, size_t bytes)
{
  char key[KEY];
  for (size_t at = 0; at < bytes; at += MOST_PIECE) {
    size_t piece = bytes - at < MOST_PIECE ? bytes - at : MOST_PIECE;
    snprintf(key, sizeof key, "%s/all/%zu", name, at);
    if (self->base.rank > 0) FLOW_TRY(take(self, key, 0, all + at, piece));
    else FLOW_TRY(self->store->set(self->store->state, key, all + at, piece));
  }
  return FLOW_OK;
}

/* Everybody leaves his part for rank 0, which collects them and leaves them all in one. Gathers are numbered, so that keys are new each
 * time. */
static flow_status all_gather(flow_communicator *communicator, const void *mine, int64_t bytes, void *all)
{
  meeting *self = (meeting *)communicator;
  char name[KEY - 32], key[KEY];
  size_t size = (size_t)bytes, total;
  FLOW_TRY(flow_multiply(size, (size_t)self->base.size, &total));
  snprintf(name, sizeof name, "meeting/%s/%d", self->group, self->gathers++);
  if (self->base.rank > 0) {
    snprintf(key, sizeof key, "%s/%d", name, self->base.rank);
    FLOW_TRY(self->store->set(self->store->state, key, mine, size));
  } else {
    memcpy(all, mine, size);
    for (int rank = 1; rank < self->base.size; rank++) {
      snprintf(key, sizeof key, "%s/%d", name, rank);
      FLOW_TRY(take(self, key, rank, (char *)all + (size_t)rank * size, size));
    }
  }
  return spread(self, name, all, total);
}

/* Nobody can be woken here: a rank that waits in the store waits until its time is over, or until the store itself ends the wait. */
static void abort_meeting(flow_communicator *self, const char *reason)
{
  (void)self, (void)reason;
}

static void close_meeting(flow_communicator *self)
{
  flow_free(self);
}

/* The rest is not called: who gets it only gathers. */
static const flow_transport transport = {
  .name = "store", .all_gather = all_gather, .abort = abort_meeting, .close = close_meeting,
};

/* No waiting here: the first gather waits for the others. options->timeout is for the whole meeting, not for each gather. */
flow_status flow_meeting_open(int rank, int size, const flow_transport_options *options, flow_communicator **out)
{
  void *block;
  *out = NULL;
  FLOW_TRY(flow_alloc_zero(sizeof(meeting), &block));
  meeting *self = block;
  self->base = (flow_communicator){ &transport, rank, size, options->timeout };
  self->store = options->store;
  self->end = flow_now_nanoseconds() + (int64_t)(options->timeout * 1e9);
  snprintf(self->group, sizeof self->group, "%s", options->group);
  *out = &self->base;
  return FLOW_OK;
}

/* The meeting lives inside the shared group afterwards, which closes it. */
flow_status flow_communicator_meet(int rank, int size, const flow_transport_options *options, flow_communicator **out)
{
  flow_communicator *communicator;
  *out = NULL;
  FLOW_TRY(flow_meeting_open(rank, size, options, &communicator));
  flow_status status = flow_communicator_share(&communicator);
  if (status == FLOW_OK && flow_communicator_is_shared(communicator)) *out = communicator;
  else close_meeting(communicator);
  return status;
}
