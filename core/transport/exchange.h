/* exchange.h: sums of instances over processes: an interface that core/run uses, which knows nothing of sockets, and communication.c
 * implements.
 *
 * All workers (processes) begin the same sums in the same order. One thread at a time uses an exchange. After a failure everything that
 * follows fails with the first reason. */
#ifndef FLOW_TRANSPORT_EXCHANGE_H
#define FLOW_TRANSPORT_EXCHANGE_H

#include "flow.h"

enum { FLOW_MOST_COLLECTED = 65536, FLOW_MOST_ARRAYS = 4 };      /* bytes that collect hands over at once; arrays that it takes */

/* An array of which every rank has a part of `bytes`: `mine` is this rank's, which may be at its place in `all`, where the parts of all
 * ranks go in their order. */
typedef struct flow_gathering { const void *mine; void *all; int64_t bytes; } flow_gathering;

/* Memory that all workers see, from a page's boundary on, with anything in it. munmap gives it back, at any time. */
typedef struct flow_shared_region {
  char   *memory;
  int64_t bytes, number; /* which of the exchange's it is, from 1, 31 bits, the same at all workers; 0: there is none */
} flow_shared_region;

typedef struct flow_exchange flow_exchange;
struct flow_exchange {
  int workers, worker;               /* how many take part; which one this is, from 0 */
  /* replicas of all workers together, spread by flow_pairwise_begin; 0: each worker has as many as the others */
  int shards;
  /* nonzero: workers may join later, and this one pauses for them in all_gather; so the exchange is used even by a single worker */
  int grows;
  /* the dtype in which gradients are sent: FLOW_FLOAT32, or FLOW_BFLOAT16 or FLOW_FLOAT16, which begin then takes, too */
  int gradient_dtype;
  /* Begins to add up data[0 .. count) over the workers, in place (float32, float64), on the communication thread. No one may touch data
   * until finish has returned. */
  flow_status (*begin)(flow_exchange *self, int dtype, void *data, int64_t count, int64_t *ticket);
  /* Waits for that sum and all that were begun before. Returns, failed or not, only when nothing touches their data any more. */
  flow_status (*finish)(flow_exchange *self, int64_t ticket);
  /* all: workers x bytes, in the order of the workers. */
  flow_status (*all_gather)(flow_exchange *self, const void *mine, int64_t bytes, void *all);
  /* The same of several arrays, which have the same sizes at all workers and travel together. */
  flow_status (*gather)(flow_exchange *self, const flow_gathering *arrays, int count);
  /* The next call is a gather whose first array this is, complete already: sends some of it if that takes no waiting. Workers need not do
   * this alike. The memory stays until the gather has ended. */
  flow_status (*start_gather)(flow_exchange *self, const flow_gathering *first);
  /* (optional: where the workers share memory) Each of `count` arrays consists of units of `unit` bytes. Every worker w has made units
   * [first[w], first[w + 1]) and gets all others, in place. count * unit is at most FLOW_MOST_COLLECTED, count FLOW_MOST_ARRAYS. No
   * worker returns before all have called; with no units it is a barrier. After a failure received[w] is the number of units that have
   * arrived from the start of worker w's part, in all arrays; the rest is unchanged. */
  flow_status (*collect)(flow_exchange *self, void *const *arrays, int count, int64_t unit, const int64_t *first, int64_t *received);
  /* (optional, as collect) *out: this many bytes that all workers see; none (number 0), at all workers, if one of them cannot. */
  flow_status (*share_region)(flow_exchange *self, int64_t bytes, flow_shared_region *out);
  /* (optional) What all workers have announced to do together, such as a run, has failed here, for the reason that is this thread's last
   * error, which stays. The others may wait for sums that this worker will not begin. */
  void (*failed)(flow_exchange *self);
  /* (optional, default: not told) The step that begins, for the message when a worker is lost. */
  void (*progress)(flow_exchange *self, int64_t step);
  /* (optional) "worker:1 10.0.0.2:2222", valid until the thread has asked for three more. */
  const char *(*name)(const flow_exchange *self, int worker);
};

#endif
