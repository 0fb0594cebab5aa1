/* test_communication.c: the communication thread: sums under way while the caller does something else, their order, what fails and when,
 * by workers that are threads of this process (the transport `local`). */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/memory.h"
#include "transport/communication.h"

enum { MOST = 4, LONG = 100003, STEPS = 300, TEXT = 1024 };

/* One thread that is a worker; `body` returns 0 if everything was as expected, else the number of a line. */
typedef struct worker {
  pthread_t           thread;
  int               (*body)(struct worker *);
  flow_communicator  *link;
  flow_communication *communication;
  flow_exchange      *exchange;
  int                 rank, size, wrong;
} worker;

#define CHECK(condition) do { if (!(condition)) return __LINE__; } while (0)

static void *worker_main(void *argument)
{
  worker *self = argument;
  self->wrong = self->body(self);
  return NULL;
}

static void open_all(worker *workers, int size, double timeout)
{
  flow_local_group *group;
  assert_int_equal(flow_local_group_new(size, &group), FLOW_OK);
  flow_transport_options options = { .timeout = timeout, .local = group };
  for (int rank = 0; rank < size; rank++) {
    worker *self = &workers[rank];
    *self = (worker){ .rank = rank, .size = size };
    assert_int_equal(flow_communicator_open("local", rank, size, &options, &self->link), FLOW_OK);
    assert_int_equal(flow_communication_start(self->link, 0, &self->communication), FLOW_OK);
    self->exchange = flow_communication_exchange(self->communication);
  }
  flow_local_group_release(group);
}

static void close_all(worker *workers, int size)
{
  for (int rank = 0; rank < size; rank++) {
    flow_communication_stop(workers[rank].communication);
    flow_communicator_close(workers[rank].link);
  }
}

static void start(worker *of, int (*body)(worker *))
{
  of->body = body;
  assert_int_equal(pthread_create(&of->thread, NULL, worker_main, of), 0);
}

static void join(worker *of)
{
  pthread_join(of->thread, NULL);
  if (of->wrong) fail_msg("worker %d of %d: line %d", of->rank, of->size, of->wrong);
}

static void run_all(int size, double timeout, int (*body)(worker *))
{
  worker workers[MOST];
  open_all(workers, size, timeout);
  for (int rank = 0; rank < size; rank++) start(&workers[rank], body);
  for (int rank = 0; rank < size; rank++) join(&workers[rank]);
  close_all(workers, size);
}

static void nap(double seconds)
{
  nanosleep(&(struct timespec){ .tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9) }, NULL);
}

/* ---- what goes well ------------------------------------------------------------------------------------------------------------ */

/* Steps as training makes them: a few sums of several sizes, finished together, one by one or out of order, small ones between them. */
static int take_steps(worker *self)
{
  static const int64_t counts[] = { LONG, 3, 5000, 0, 1 };
  enum { SUMS = sizeof counts / sizeof *counts };
  float *data[SUMS];
  for (int sum = 0; sum < SUMS; sum++) data[sum] = malloc((size_t)counts[sum] * sizeof(float) + 1);
  for (int step = 0; step < STEPS; step++) {
    int64_t tickets[SUMS];
    int32_t mine[8] = { self->rank, step }, all[8 * MOST];
    CHECK(self->exchange->all_gather(self->exchange, mine, sizeof mine, all) == FLOW_OK);
    for (int rank = 0; rank < self->size; rank++) CHECK(all[8 * rank] == rank && all[8 * rank + 1] == step);
    for (int sum = 0; sum < SUMS; sum++) {
      int64_t count = step % 7 ? counts[sum] % 1000 : counts[sum];
      for (int64_t i = 0; i < count; i++) data[sum][i] = (float)(self->rank + sum + step + i % 5);
      CHECK(self->exchange->begin(self->exchange, FLOW_FLOAT32, data[sum], count, &tickets[sum]) == FLOW_OK);
      if (step % 3 == 0 && sum == 1) CHECK(self->exchange->finish(self->exchange, tickets[0]) == FLOW_OK);
    }
    if (step % 5 == self->rank) nap(0.0002);
    for (int sum = SUMS; sum-- > 0 && step % 2;) CHECK(self->exchange->finish(self->exchange, tickets[sum]) == FLOW_OK);
    CHECK(self->exchange->finish(self->exchange, tickets[SUMS - 1]) == FLOW_OK);
    for (int sum = 0; sum < SUMS; sum++) {
      int64_t count = step % 7 ? counts[sum] % 1000 : counts[sum];
      float ranks = (float)(self->size * (self->size - 1) / 2);
      for (int64_t i = 0; i < count; i++) CHECK(data[sum][i] == ranks + (float)self->size * (float)(sum + step + i % 5));
    }
  }
  for (int sum = 0; sum < SUMS; sum++) free(data[sum]);
  return 0;
}

static void steps_add_up(void **state)
{
  (void)state;
  for (int size = 1; size <= MOST; size++) run_all(size, 60, take_steps);
}

/* More sums than the queue holds, in double precision; then a broadcast, which sees what came before it. */
static int begin_many(worker *self)
{
  enum { MANY = 1000 };
  double data[MANY], first = self->rank == 1, allocations = flow_allocation_count();
  int64_t ticket = 0;
  for (int sum = 0; sum < MANY; sum++) {
    data[sum] = sum + self->rank;
    CHECK(self->exchange->begin(self->exchange, FLOW_FLOAT64, &data[sum], 1, &ticket) == FLOW_OK);
    CHECK(ticket == sum + 1);
  }
  CHECK(flow_communication_broadcast(self->communication, 1, &first, sizeof first) == FLOW_OK);
  CHECK(first == 1);
  for (int sum = 0; sum < MANY; sum++) CHECK(data[sum] == 3 * sum + 3);
  CHECK(self->exchange->finish(self->exchange, 1) == FLOW_OK);               /* long over */
  CHECK(self->exchange->finish(self->exchange, ticket) == FLOW_OK);
  CHECK(self->exchange->finish(self->exchange, ticket + 1) == FLOW_INVALID_ARGUMENT);
  CHECK(flow_communication_barrier(self->communication) == FLOW_OK);
  CHECK(flow_allocation_count() == allocations);
  return 0;
}

static void more_sums_than_the_queue_holds(void **state)
{
  (void)state;
  run_all(3, 60, begin_many);
}

/* A large sum is over while the caller does nothing for it, and a small one that nobody waits for when the next begins. */
static int let_it_work(worker *self)
{
  static _Atomic float data[3][MOST][5000];
  int64_t ticket;
  for (int sum = 0; sum < 3; sum++) {
    data[sum][self->rank][0] = 1;
    CHECK(self->exchange->begin(self->exchange, FLOW_FLOAT32, (void *)data[sum][self->rank], sum == 1 ? 1 : 5000, &ticket) == FLOW_OK);
    if (sum == 1) continue;
    for (double end = flow_clock() + 30; data[sum][self->rank][0] != 2 && flow_clock() < end;) nap(0.001);
    CHECK(data[sum][self->rank][0] == 2);
  }
  CHECK(data[1][self->rank][0] == 2);
  return 0;
}

static void sums_go_on_while_the_caller_does_something_else(void **state)
{
  (void)state;
  run_all(2, 60, let_it_work);
}

static void stop_carries_out_what_was_begun(void **state)
{
  (void)state;
  worker workers[2];
  float data[2] = { 1, 2 };
  int64_t ticket;
  open_all(workers, 2, 60);
  for (int rank = 0; rank < 2; rank++) {
    assert_int_equal(workers[rank].exchange->begin(workers[rank].exchange, FLOW_FLOAT32, &data[rank], 1, &ticket), FLOW_OK);
  }
  /* The first cannot end before the second has come. */
  pthread_t thread;
  pthread_create(&thread, NULL, (void *(*)(void *))(void (*)(void))flow_communication_stop, workers[0].communication);
  flow_communication_stop(workers[1].communication);
  pthread_join(thread, NULL);
  assert_true(data[0] == 3 && data[1] == 3);
  for (int rank = 0; rank < 2; rank++) flow_communicator_close(workers[rank].link);
  flow_communication_stop(NULL);
}

/* ---- what fails ---------------------------------------------------------------------------------------------------------------- */

static int fails_with(flow_status expected, const char *reason, flow_status status)
{
  return status == expected && strstr(flow_last_error(), reason) != NULL;
}

/* The first sum succeeds, the second is aborted while it waits, the third is never carried out, nor anything after it. */
static int fail_in_the_second(worker *self)
{
  const char *reason = "all_reduce: worker:1 is silent";
  float data[3][5000] = { { 1 }, { 1 }, { 1 } };
  int64_t tickets[4];
  for (int sum = 0; sum < 3; sum++) {
    CHECK(self->exchange->begin(self->exchange, FLOW_FLOAT32, data[sum], 5000, &tickets[sum]) == FLOW_OK);
  }
  CHECK(fails_with(FLOW_ABORTED, reason, self->exchange->finish(self->exchange, tickets[2])));
  CHECK(self->exchange->finish(self->exchange, tickets[0]) == FLOW_OK && data[0][0] == 2);
  CHECK(fails_with(FLOW_ABORTED, reason, self->exchange->finish(self->exchange, tickets[1])));
  CHECK(data[2][0] == 1);
  CHECK(fails_with(FLOW_ABORTED, reason, self->exchange->begin(self->exchange, FLOW_FLOAT32, data[2], 5000, &tickets[3])));
  CHECK(fails_with(FLOW_ABORTED, reason, self->exchange->all_gather(self->exchange, tickets, 8, data)));
  CHECK(fails_with(FLOW_ABORTED, reason, flow_communication_barrier(self->communication)));
  CHECK(fails_with(FLOW_ABORTED, reason, flow_communication_broadcast(self->communication, 0, data, 8)));
  return 0;
}

static int sum_once(worker *self)
{
  static float data[5000] = { 1 };
  int64_t ticket;
  CHECK(self->exchange->begin(self->exchange, FLOW_FLOAT32, data, 5000, &ticket) == FLOW_OK);
  CHECK(self->exchange->finish(self->exchange, ticket) == FLOW_OK);
  return 0;
}

static void everything_after_a_failure_fails(void **state)
{
  (void)state;
  worker workers[2];
  open_all(workers, 2, 60);
  start(&workers[0], fail_in_the_second);
  start(&workers[1], sum_once);
  join(&workers[1]);
  nap(0.05);
  flow_communicator_abort(workers[1].link, "worker:1 is silent");
  join(&workers[0]);
  close_all(workers, 2);
}

static int fail_alone(worker *self)
{
  float data[4] = { 0 };
  int64_t ticket, all[MOST];
  if (self->rank == 1) return 0;
  CHECK(fails_with(FLOW_TIMED_OUT, "rank 1 did not come within 0.2 s", self->exchange->all_gather(self->exchange, "1234567", 8, all)));
  CHECK(fails_with(FLOW_TIMED_OUT, "all_gather: rank 1", self->exchange->begin(self->exchange, FLOW_FLOAT32, data, 4, &ticket)));
  CHECK(fails_with(FLOW_TIMED_OUT, "all_gather: rank 1", flow_communication_barrier(self->communication)));
  return 0;
}

static void a_worker_never_comes(void **state)
{
  (void)state;
  run_all(2, 0.2, fail_alone);
}

/* When finish returns, the memory is the caller's, whatever happened: ThreadSanitizer and AddressSanitizer would see it used. */
static int sum_until_aborted(worker *self)
{
  for (flow_status status = FLOW_OK; status == FLOW_OK;) {
    float *data[3];
    int64_t ticket = 0;
    for (int sum = 0; sum < 3; sum++) {
      data[sum] = calloc(LONG, sizeof(float));
      if (status == FLOW_OK) status = self->exchange->begin(self->exchange, FLOW_FLOAT32, data[sum], LONG, &ticket);
    }
    if (ticket) {
      flow_status finished = self->exchange->finish(self->exchange, ticket);
      if (status == FLOW_OK) status = finished;
    }
    for (int sum = 0; sum < 3; sum++) {
      memset(data[sum], 1, LONG * sizeof(float));
      free(data[sum]);
    }
    CHECK(status == FLOW_OK || status == FLOW_ABORTED);
  }
  return 0;
}

static void abort_in_the_middle_of_sums(void **state)
{
  (void)state;
  for (int round = 0; round < 30; round++) {
    worker workers[3];
    open_all(workers, 3, 60);
    for (int rank = 0; rank < 3; rank++) start(&workers[rank], sum_until_aborted);
    nap(0.001 + round * 37e-6);
    flow_communicator_abort(workers[0].link, "enough");
    for (int rank = 0; rank < 3; rank++) join(&workers[rank]);
    close_all(workers, 3);
  }
}

static void wrong_sums(void **state)
{
  (void)state;
  worker workers[1];
  int32_t data[2] = { 0 };
  int64_t ticket;
  open_all(workers, 1, 60);
  assert_int_equal(workers[0].exchange->begin(workers[0].exchange, FLOW_INT32, data, 2, &ticket), FLOW_OK);
  assert_true(fails_with(FLOW_INVALID_ARGUMENT, "int32", workers[0].exchange->finish(workers[0].exchange, ticket)));
  assert_true(fails_with(FLOW_INVALID_ARGUMENT, "int32", flow_communication_barrier(workers[0].communication)));
  close_all(workers, 1);
}

/* ---- what the host may expect -------------------------------------------------------------------------------------------------- */

/* Threads of this process but the present one that would take SIGTERM. */
static int count_taking_threads(void)
{
  int taking = 0;
  DIR *tasks = opendir("/proc/self/task");
  assert_non_null(tasks);
  for (struct dirent *entry; (entry = readdir(tasks));) {
    char path[64], line[256];
    int task = atoi(entry->d_name);
    if (task == 0 || task == gettid()) continue;
    snprintf(path, sizeof path, "/proc/self/task/%d/status", task);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) {
      if (strncmp(line, "SigBlk:", 7) == 0) taking += !(strtoull(line + 7, NULL, 16) >> (SIGTERM - 1) & 1);
    }
    if (file) fclose(file);
  }
  closedir(tasks);
  return taking;
}

static void the_thread_takes_no_signals(void **state)
{
  (void)state;
  worker workers[1];
  int before = count_taking_threads();
  open_all(workers, 1, 60);
  assert_int_equal(count_taking_threads(), before);
  close_all(workers, 1);
}

static void memory_that_is_not_there(void **state)
{
  (void)state;
  flow_local_group *group;
  flow_communicator *link;
  flow_communication *communication;
  assert_int_equal(flow_local_group_new(1, &group), FLOW_OK);
  flow_transport_options options = { .timeout = 1, .local = group };
  assert_int_equal(flow_communicator_open("local", 0, 1, &options, &link), FLOW_OK);
  flow_fail_allocation(0);
  assert_int_equal(flow_communication_start(link, 0, &communication), FLOW_OUT_OF_MEMORY);
  flow_fail_allocation(-1);
  assert_null(communication);
  flow_communicator_close(link);
  flow_local_group_release(group);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(steps_add_up), cmocka_unit_test(more_sums_than_the_queue_holds),
    cmocka_unit_test(sums_go_on_while_the_caller_does_something_else), cmocka_unit_test(stop_carries_out_what_was_begun),
    cmocka_unit_test(everything_after_a_failure_fails), cmocka_unit_test(a_worker_never_comes),
    cmocka_unit_test(abort_in_the_middle_of_sums), cmocka_unit_test(wrong_sums), cmocka_unit_test(the_thread_takes_no_signals),
    cmocka_unit_test(memory_that_is_not_there),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
