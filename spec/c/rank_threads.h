/* rank_threads.h: threads that are the ranks of a group. */
#ifndef FLOW_SPEC_RANK_THREADS_H
#define FLOW_SPEC_RANK_THREADS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <pthread.h>
#include <string.h>

#include "transport/transport.h"

enum { MOST = 8, TEXT = 1024 };

/* One thread that is a rank. `body` returns 0 if everything was as expected, else the number of a line. */
typedef struct worker {
  pthread_t          thread;
  int              (*body)(struct worker *);
  flow_communicator *link;
  int                rank, size;
  int                wrong;            /* what body returned */
  flow_status        status;           /* for bodies that are to fail */
  char               message[TEXT];
} worker;

#define CHECK(condition) do { if (!(condition)) return __LINE__; } while (0)

static inline void *worker_main(void *argument)
{
  worker *self = argument;
  self->wrong = self->body(self);
  return NULL;
}

static int share;                      /* whether the ranks hand bytes through memory that processes share, too */

static inline void *share_link(void *argument)
{
  worker *self = argument;
  self->status = flow_communicator_share(&self->link);
  return NULL;
}

static inline void share_all(worker *workers, int size)
{
  for (int rank = 0; rank < size; rank++) assert_int_equal(pthread_create(&workers[rank].thread, NULL, share_link, &workers[rank]), 0);
  for (int rank = 0; rank < size; rank++) pthread_join(workers[rank].thread, NULL);
  for (int rank = 0; rank < size; rank++) assert_int_equal(workers[rank].status, FLOW_OK);
}

static inline void open_all(worker *workers, int size, double timeout)
{
  flow_local_group *group;
  assert_int_equal(flow_local_group_new(size, &group), FLOW_OK);
  flow_transport_options options = { .timeout = timeout, .local = group };
  for (int rank = 0; rank < size; rank++) {
    workers[rank] = (worker){ .rank = rank, .size = size };
    assert_int_equal(flow_communicator_open("local", rank, size, &options, &workers[rank].link), FLOW_OK);
  }
  flow_local_group_release(group);                 /* the communicators hold it */
  if (!share) return;
  share_all(workers, size);
  for (int rank = 0; rank < size; rank++) assert_int_equal(flow_communicator_is_shared(workers[rank].link), size > 1);
}

static inline void start(worker *of, int (*body)(worker *))
{
  of->body = body;
  assert_int_equal(pthread_create(&of->thread, NULL, worker_main, of), 0);
}

static inline void join_and_close(worker *workers, int size)
{
  for (int rank = 0; rank < size; rank++) pthread_join(workers[rank].thread, NULL);
  for (int rank = 0; rank < size; rank++) flow_communicator_close(workers[rank].link);
  for (int rank = 0; rank < size; rank++) {
    if (workers[rank].wrong) fail_msg("rank %d of %d: line %d: %s", rank, size, workers[rank].wrong, workers[rank].message);
  }
}

static inline void run_all(int size, int (*body)(worker *))
{
  worker workers[MOST];
  open_all(workers, size, 60);
  for (int rank = 0; rank < size; rank++) start(&workers[rank], body);
  join_and_close(workers, size);
}

static inline int keep(worker *self, flow_status status)
{
  self->status = status;
  strncpy(self->message, flow_last_error(), TEXT - 1);
  return status == FLOW_OK;
}

static inline uint32_t mix(uint32_t x)
{
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

#endif
