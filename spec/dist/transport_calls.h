/* transport_calls.h: one process of a group: how it finds the others, and calls that go well, compared with plain loops. */
#ifndef FLOW_SPEC_TRANSPORT_CALLS_H
#define FLOW_SPEC_TRANSPORT_CALLS_H

#include <stdio.h>

#include "transport/transport.h"

enum { LONG = 1100003, PATH_BYTES = 4096 };

typedef struct setting {
  const char *transport, *mode, *folder;
  int         rank, size;              /* -1 for the launcher's */
  flow_store  store;
} setting;

#define EXPECT(condition)                                                                                            \
  do {                                                                                                               \
    if (!(condition)) {                                                                                              \
      printf("rank %d: line %d: not %s: %s\n", link ? link->rank : -1, __LINE__, #condition, flow_last_error());     \
      return 1;                                                                                                      \
    }                                                                                                                \
  } while (0)
void nap(double seconds);

/* The folder as key-value store. */
flow_store folder_store(setting *self);

/* Says that this rank's call has ended; waits until all others have said so. Without a folder, as under mpirun: waits that many seconds. */
void say_ended(const setting *self);
void wait_for_others(const setting *self, double seconds);

/* Joins that group; its ranks hand the bytes through memory, unless FLOW_SHARED_MEMORY is 0. */
flow_status open_link(const setting *self, const char *group, double timeout, flow_communicator **link);

/* 0: the sums of that many elements are right, and have the same bits on every rank. */
int check_sum_float(flow_communicator *link, int64_t count);
int check_sum_double(flow_communicator *link, int64_t count);

/* 0: all operations are right for all counts, also of ranks that come late. */
int check_calls(flow_communicator *link);

#endif
