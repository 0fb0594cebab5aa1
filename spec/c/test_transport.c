/* test_transport.c: the transport between threads, alone and through memory that processes share: sums in the order of the ranks,
 * broadcasts, gathers; ranks that do not come, do not agree or are aborted. What goes between processes is tested in spec/dist. */
#define _GNU_SOURCE
#include "rank_threads.h"

#include <math.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { RANDOM_CALLS = 10000, LONG = 100003 };

/* Of numbers of very different sizes the sum shows in which order they were added. */
static double number(int call, int rank, int64_t i)
{
  uint32_t bits = mix((uint32_t)call * 2654435761u + (uint32_t)rank * 97u + (uint32_t)i);
  return ldexp((double)(int32_t)bits, (int)(bits % 40u) - 50);
}

static int sum_floats(worker *self, int call, int64_t count)
{
  float *data = malloc((size_t)count * sizeof *data + 1);
  for (int64_t i = 0; i < count; i++) data[i] = (float)number(call, self->rank, i);
  CHECK(keep(self, flow_communicator_all_reduce(self->link, FLOW_FLOAT32, data, count)));
  for (int64_t i = 0; i < count; i++) {
    float sum = (float)number(call, 0, i);
    for (int rank = 1; rank < self->size; rank++) sum += (float)number(call, rank, i);
    CHECK(memcmp(&sum, &data[i], sizeof sum) == 0);
  }
  free(data);
  return 0;
}

static int sum_doubles(worker *self, int call, int64_t count)
{
  double *data = malloc((size_t)count * sizeof *data + 1);
  for (int64_t i = 0; i < count; i++) data[i] = number(call, self->rank, i);
  CHECK(keep(self, flow_communicator_all_reduce(self->link, FLOW_FLOAT64, data, count)));
  for (int64_t i = 0; i < count; i++) {
    double sum = number(call, 0, i);
    for (int rank = 1; rank < self->size; rank++) sum += number(call, rank, i);
    CHECK(memcmp(&sum, &data[i], sizeof sum) == 0);
  }
  free(data);
  return 0;
}

static int broadcast_bytes(worker *self, int call, int64_t bytes)
{
  int from = (int)(mix((uint32_t)call) % (uint32_t)self->size);
  unsigned char *data = malloc((size_t)bytes + 1);
  for (int64_t i = 0; i < bytes; i++) data[i] = (unsigned char)mix((uint32_t)(call + self->rank + i));
  CHECK(keep(self, flow_communicator_broadcast(self->link, from, data, bytes)));
  for (int64_t i = 0; i < bytes; i++) CHECK(data[i] == (unsigned char)mix((uint32_t)(call + from + i)));
  free(data);
  return 0;
}

static int gather_bytes(worker *self, int call, int64_t bytes)
{
  unsigned char *mine = malloc((size_t)bytes + 1), *all = malloc((size_t)(bytes * self->size) + 1);
  for (int64_t i = 0; i < bytes; i++) mine[i] = (unsigned char)mix((uint32_t)(call + self->rank + i));
  CHECK(keep(self, flow_communicator_all_gather(self->link, mine, bytes, all)));
  for (int rank = 0; rank < self->size; rank++) {
    for (int64_t i = 0; i < bytes; i++) CHECK(all[rank * bytes + i] == (unsigned char)mix((uint32_t)(call + rank + i)));
  }
  free(mine);
  free(all);
  return 0;
}

/* Arrays of several sizes at once, of which every rank has its part in its place already; more than a message has stretches. */
static int gather_arrays(worker *self, int call, int64_t bytes)
{
  enum { ARRAYS = 19 };
  flow_gathering arrays[ARRAYS];
  for (int i = 0; i < ARRAYS; i++) {
    int64_t part = i % 3 == 1 ? 0 : bytes / (i + 1);
    unsigned char *all = calloc((size_t)(part * self->size) + 1, 1), *mine = all + part * self->rank;
    for (int64_t k = 0; k < part; k++) mine[k] = (unsigned char)mix((uint32_t)(call + i + self->rank + k));
    arrays[i] = (flow_gathering){ mine, all, part };
  }
  CHECK(keep(self, flow_communicator_gather(self->link, arrays, ARRAYS)));
  for (int i = 0; i < ARRAYS; i++) {
    const unsigned char *all = arrays[i].all;
    for (int64_t k = 0; k < arrays[i].bytes * self->size; k++)
      CHECK(all[k] == (unsigned char)mix((uint32_t)(call + i + k / arrays[i].bytes + k % arrays[i].bytes)));
    free(arrays[i].all);
  }
  return 0;
}

static const int64_t counts[] = { 0, 1, 2, 7, 15, 16, 17, 33, 127, 1000, 2048, 2049, 9999, LONG };

static int call_each_with_each_count(worker *self)
{
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    int wrong = sum_floats(self, (int)i, counts[i]);
    if (!wrong) wrong = sum_doubles(self, (int)i, counts[i]);
    if (!wrong) wrong = broadcast_bytes(self, (int)i, counts[i]);
    if (!wrong) wrong = gather_bytes(self, (int)i, counts[i]);
    if (!wrong) wrong = gather_arrays(self, (int)i, counts[i]);
    if (wrong) return wrong;
    CHECK(keep(self, flow_communicator_barrier(self->link)));
  }
  return 0;
}

static void sums_have_the_order_of_the_ranks(void **state)
{
  (void)state;
  for (int size = 1; size <= MOST; size++) run_all(size, call_each_with_each_count);
}

/* Threads come to each call at other times: some calls in a row are hurried, before others a rank rests. */
static int call_at_random(worker *self)
{
  static int (*const kinds[])(worker *, int, int64_t) = { sum_floats, sum_doubles, broadcast_bytes, gather_bytes };
  for (int call = 0; call < RANDOM_CALLS; call++) {
    uint32_t random = mix((uint32_t)call + 12345u), mine = mix(random + (uint32_t)self->rank);
    if (mine % 16 == 0) sched_yield();
    if (mine % 1024 == 0) nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
    if (random % 5 == 4) {
      CHECK(keep(self, flow_communicator_barrier(self->link)));
      continue;
    }
    int wrong = kinds[random % 5](self, call, (int64_t)((random >> 8) % 100u));
    if (wrong) return wrong;
  }
  return 0;
}

static void ten_thousand_calls(void **state)
{
  (void)state;
  run_all(3, call_at_random);
}

/* Each barrier lets go only when all have come: a rank that was let through early would see an old number. */
static _Atomic int steps[MOST];

static int count_steps(worker *self)
{
  for (int step = 1; step <= 500; step++) {
    steps[self->rank] = step;
    CHECK(keep(self, flow_communicator_barrier(self->link)));
    for (int rank = 0; rank < self->size; rank++) CHECK(steps[rank] == step || steps[rank] == step + 1);
  }
  return 0;
}

static void barriers_wait_for_all(void **state)
{
  (void)state;
  run_all(4, count_steps);
}

/* ---- failures ---------------------------------------------------------------------------------------------------------------- */

static int reduce_and_fail(worker *self)
{
  float data[100] = { 0 };
  CHECK(!keep(self, flow_communicator_all_reduce(self->link, FLOW_FLOAT32, data, 100)));
  flow_status first = self->status;
  CHECK(flow_communicator_barrier(self->link) == first);
  CHECK(flow_communicator_broadcast(self->link, 0, data, 4) == first);
  return 0;
}

static void a_rank_never_comes(void **state)
{
  (void)state;
  worker workers[MOST];
  open_all(workers, 4, 0.5);
  start(&workers[0], reduce_and_fail);
  start(&workers[2], reduce_and_fail);
  pthread_join(workers[0].thread, NULL);
  pthread_join(workers[2].thread, NULL);
  for (int rank = 0; rank <= 2; rank += 2) {
    assert_int_equal(workers[rank].wrong, 0);
    assert_int_equal(workers[rank].status, FLOW_TIMED_OUT);
    assert_non_null(strstr(workers[rank].message, "all_reduce: "));
    assert_non_null(strstr(workers[rank].message, "ranks 1, 3 did not come within 0.5 s"));
  }
  /* Those that come too late learn the same. */
  assert_int_equal(flow_communicator_barrier(workers[3].link), FLOW_TIMED_OUT);
  assert_non_null(strstr(flow_last_error(), "barrier: ranks 1, 3 did not come"));
  for (int rank = 0; rank < 4; rank++) flow_communicator_close(workers[rank].link);
}

static void abort_wakes_those_who_wait(void **state)
{
  (void)state;
  for (int rest = 0; rest < 3; rest++) {             /* before they wait, while they spin, while they sleep */
    worker workers[MOST];
    open_all(workers, 4, 60);
    for (int rank = 0; rank < 3; rank++) start(&workers[rank], reduce_and_fail);
    nanosleep(&(struct timespec){ .tv_nsec = rest == 0 ? 0 : rest == 1 ? 20000 : 20000000 }, NULL);
    flow_communicator_abort(workers[1].link, "worker:3 10.0.0.7:2222 is silent");
    flow_communicator_abort(workers[0].link, "a later reason");
    start(&workers[3], reduce_and_fail);
    join_and_close(workers, 4);
    for (int rank = 0; rank < 4; rank++) {
      assert_int_equal(workers[rank].status, FLOW_ABORTED);
      assert_string_equal(workers[rank].message, "all_reduce: worker:3 10.0.0.7:2222 is silent");
    }
  }
}

/* A rank may free its data as soon as its call has failed: nobody reads or writes them any more. */
static int reduce_until_aborted(worker *self)
{
  for (;;) {
    float *data = malloc(LONG * sizeof *data);
    memset(data, 0, LONG * sizeof *data);
    int ok = keep(self, flow_communicator_all_reduce(self->link, FLOW_FLOAT32, data, LONG));
    memset(data, 1, LONG * sizeof *data);
    free(data);
    if (ok) continue;
    CHECK(self->status == FLOW_ABORTED);
    return 0;
  }
}

static void abort_in_the_middle_of_sums(void **state)
{
  (void)state;
  for (int round = 0; round < 40; round++) {
    worker workers[MOST];
    open_all(workers, 3, 60);
    for (int rank = 0; rank < 3; rank++) start(&workers[rank], reduce_until_aborted);
    nanosleep(&(struct timespec){ .tv_nsec = 1000000 + round * 37000 }, NULL);
    flow_communicator_abort(workers[0].link, "enough");
    join_and_close(workers, 3);
  }
}

static int call_something_else(worker *self)
{
  float data[8] = { 0 };
  if (self->rank == 1) CHECK(!keep(self, flow_communicator_broadcast(self->link, 1, data, 12)));
  else CHECK(!keep(self, flow_communicator_all_reduce(self->link, FLOW_FLOAT32, data, 8)));
  return 0;
}

static void ranks_that_do_not_agree(void **state)
{
  (void)state;
  worker workers[MOST];
  open_all(workers, 3, 60);
  for (int rank = 0; rank < 3; rank++) start(&workers[rank], call_something_else);
  join_and_close(workers, 3);
  for (int rank = 0; rank < 3; rank++) {
    assert_int_equal(workers[rank].status, FLOW_INVALID_STATE);
    assert_non_null(strstr(workers[rank].message, "rank 0 calls all_reduce of 8 float32, rank 1 calls broadcast of 12 bytes from rank 1"));
  }
}

static void wrong_arguments(void **state)
{
  (void)state;
  flow_communicator *link, *second;
  flow_local_group *group;
  flow_transport_options options = { .timeout = 1 };
  assert_int_equal(flow_communicator_open("pigeon", 0, 1, &options, &link), FLOW_INVALID_ARGUMENT);
  assert_null(link);
  assert_int_equal(flow_communicator_open("local", 0, 1, &options, &link), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_local_group_new(0, &group), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_local_group_new(1, &group), FLOW_OK);
  options.local = group;
  assert_int_equal(flow_communicator_open("local", 1, 1, &options, &link), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_communicator_open("local", -1, -1, &options, &link), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_communicator_open("local", 0, 2, &options, &link), FLOW_INVALID_ARGUMENT);
  assert_non_null(strstr(flow_last_error(), "rank 0 of 2 joins a group that was made for 1"));
  options.timeout = (double)NAN;
  assert_int_equal(flow_communicator_open("local", 0, 1, &options, &link), FLOW_INVALID_ARGUMENT);
  options.timeout = 1;
  assert_int_equal(flow_communicator_open("local", 0, 1, &options, &link), FLOW_OK);
  assert_int_equal(flow_communicator_open("local", 0, 1, &options, &second), FLOW_INVALID_STATE);

  int32_t data[2] = { 5, 6 };
  assert_int_equal(flow_communicator_all_reduce(link, FLOW_INT32, data, 2), FLOW_INVALID_ARGUMENT);
  assert_non_null(strstr(flow_last_error(), "int32"));
  assert_int_equal(flow_communicator_all_reduce(link, FLOW_FLOAT32, data, -1), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_communicator_all_reduce(link, FLOW_FLOAT32, NULL, 1), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_communicator_all_reduce(link, FLOW_FLOAT64, data, INT64_MAX / 4), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_communicator_broadcast(link, 1, data, 8), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_communicator_broadcast(link, 0, data, 8), FLOW_OK);        /* none of this broke it */
  assert_int_equal(data[1], 6);
  flow_communicator_close(link);
  flow_communicator_close(NULL);
  flow_local_group_release(group);
}

#define TESTS_OF_BOTH                                                                                                           \
  cmocka_unit_test(sums_have_the_order_of_the_ranks), cmocka_unit_test(ten_thousand_calls), cmocka_unit_test(barriers_wait_for_all), \
  cmocka_unit_test(a_rank_never_comes), cmocka_unit_test(abort_wakes_those_who_wait), cmocka_unit_test(abort_in_the_middle_of_sums), \
  cmocka_unit_test(ranks_that_do_not_agree)

int main(void)
{
  const struct CMUnitTest local[] = { TESTS_OF_BOTH, cmocka_unit_test(wrong_arguments) };
  int failed = cmocka_run_group_tests(local, NULL, NULL);
  const struct CMUnitTest shared[] = { TESTS_OF_BOTH };
  share = 1;
  return failed + cmocka_run_group_tests(shared, NULL, NULL);
}
