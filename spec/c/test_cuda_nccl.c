/* test_cuda_nccl.c: the transport "nccl" as far as it goes without a GPU: NCCL itself up to the point where it asks for the device, then
 * the communicator's own part, how it waits and gives up, over a stand-in of NCCL whose ranks are threads (spec/cuda/fake_nccl.c). */
#define _GNU_SOURCE                      /* pthread_tryjoin_np */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#if FLOW_CUDA
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/memory.h"
#include "cuda/runtime/runtime.h"
#include "transport/transport.h"

enum { MOST_RANKS = 4, MOST_KEYS = 16 };

/* ---- what the runtime would do on a device, on the host ------------------------------------------------------------------------- */

static _Atomic int opened_to_peers;
flow_status flow_runtime_enter(const flow_cuda_device *device, int *before) { (void)device; *before = 0; return FLOW_OK; }
void flow_runtime_leave(const flow_cuda_device *device, int before) { (void)device, (void)before; }
flow_status flow_runtime_allocate(flow_queue *queue, size_t bytes, void **out) { (void)queue; return flow_alloc(bytes, out); }
void flow_runtime_release(flow_queue *queue, void *memory) { (void)queue; flow_free(memory); }
flow_status flow_runtime_open_to_peers(const flow_cuda_device *of) { (void)of; opened_to_peers++; return FLOW_OK; }
flow_status flow_runtime_flush(flow_queue *queue) { (void)queue; return FLOW_OK; }
flow_status flow_runtime_synchronize(flow_queue *queue) { (void)queue; return FLOW_OK; }
flow_status flow_runtime_clear(flow_queue *queue, void *to, size_t bytes) { (void)queue; memset(to, 0, bytes); return FLOW_OK; }

static flow_cuda_device device;
static flow_queue queues[MOST_RANKS];

/* ---- a store between threads ---------------------------------------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct { char key[128], bytes[256]; size_t count; } stored[MOST_KEYS];
static int stored_count;

static flow_status set_key(void *state, const char *key, const void *bytes, size_t count)
{
  (void)state;
  pthread_mutex_lock(&lock);
  snprintf(stored[stored_count].key, sizeof stored[0].key, "%s", key);
  memcpy(stored[stored_count].bytes, bytes, count);
  stored[stored_count++].count = count;
  pthread_mutex_unlock(&lock);
  return FLOW_OK;
}

static int find_key(const char *key)
{
  int found = -1;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < stored_count; i++)
    if (strcmp(stored[i].key, key) == 0) found = i;
  pthread_mutex_unlock(&lock);
  return found;
}

static flow_status get_key(void *state, const char *key, double seconds, void **bytes, size_t *count)
{
  (void)state;
  int found = find_key(key);
  for (double waited = 0; found < 0 && waited < seconds; waited += 0.001, found = find_key(key)) usleep(1000);
  if (found < 0) return flow_fail(FLOW_TIMED_OUT, "no key %s", key);
  *count = stored[found].count;
  if (flow_alloc(*count, bytes) != FLOW_OK) return FLOW_OUT_OF_MEMORY;
  memcpy(*bytes, stored[found].bytes, *count);
  return FLOW_OK;
}

static const flow_store store = { set_key, get_key, NULL };

static flow_status open_one(int rank, int size, const char *group, double timeout, flow_communicator **out)
{
  queues[rank].device = &device;
  *out = NULL;
  flow_transport_options options = { .timeout = timeout, .group = group, .store = &store, .queue = &queues[rank] };
  return flow_cuda_nccl_transport.open(rank, size, &options, out);
}

static void says(const char *part)
{
  if (!strstr(flow_last_error(), part)) fail_msg("\"%s\" does not contain \"%s\"", flow_last_error(), part);
}

/* ---- NCCL itself ----------------------------------------------------------------------------------------------------------------- */

/* In a child, which finds the real library. 0: as expected, 77: there is a GPU, or no NCCL. */
static int try_real_nccl(void)
{
  int count;
  flow_communicator *communicator;
  unsetenv("FLOW_CUDA_LIBS");
  if (cudaGetDeviceCount(&count) == cudaSuccess) return 77;
  flow_status status = open_one(0, 2, "real", 20, &communicator);
  if (status == FLOW_NOT_FOUND) return 77;
  int key = find_key("nccl/real");
  int good = status == FLOW_IO_ERROR && strstr(flow_last_error(), "opening the transport nccl: NCCL: ") && key >= 0
    && stored[key].count == 128 && !communicator;
  if (!good) fprintf(stderr, "status %d, key %d: %s\n", (int)status, key, flow_last_error());
  return good ? 0 : 1;
}

static void nccl_itself_gives_an_id_and_misses_the_device(void **state)
{
  (void)state;
  int status;
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) _exit(try_real_nccl());
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) skip();
  assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- the communicator ------------------------------------------------------------------------------------------------------------- */

typedef struct rank_of_three { int rank; float sums[1000]; char text[8]; int gathered[3]; double wide; } rank_of_three;

static void *work_of_three(void *argument)
{
  rank_of_three *self = argument;
  flow_communicator *communicator;
  const flow_transport *nccl = &flow_cuda_nccl_transport;
  if (open_one(self->rank, 3, "three", 60, &communicator) != FLOW_OK) return "open";
  for (int i = 0; i < 1000; i++) self->sums[i] = (float)(i + self->rank * 1000);
  if (nccl->all_reduce(communicator, FLOW_FLOAT32, self->sums, 1000) != FLOW_OK) return "all_reduce";
  self->wide = 0.5 + self->rank;
  if (nccl->all_reduce(communicator, FLOW_FLOAT64, &self->wide, 1) != FLOW_OK) return "all_reduce of float64";
  snprintf(self->text, sizeof self->text, "rank %d", self->rank);
  if (nccl->broadcast(communicator, 2, self->text, sizeof self->text) != FLOW_OK) return "broadcast";
  int mine = 10 + self->rank;
  if (nccl->all_gather(communicator, &mine, sizeof mine, self->gathered) != FLOW_OK) return "all_gather";
  if (nccl->barrier(communicator) != FLOW_OK) return "barrier";
  nccl->close(communicator);
  return NULL;
}

static void three_ranks_add_up(void **state)
{
  (void)state;
  opened_to_peers = 0;
  pthread_t threads[3];
  rank_of_three ranks[3] = { { .rank = 0 }, { .rank = 1 }, { .rank = 2 } };
  for (int r = 2; r >= 0; r--) assert_int_equal(pthread_create(&threads[r], NULL, work_of_three, &ranks[r]), 0);
  for (int r = 0; r < 3; r++) {
    void *failed;
    pthread_join(threads[r], &failed);
    if (failed) fail_msg("rank %d: %s", r, (char *)failed);
    for (int i = 0; i < 1000; i++) assert_float_equal(ranks[r].sums[i], 3 * i + 3000, 0);
    assert_float_equal(ranks[r].wide, 4.5, 0);
    assert_string_equal(ranks[r].text, "rank 2");
    for (int i = 0; i < 3; i++) assert_int_equal(ranks[r].gathered[i], 10 + i);
  }
  assert_int_equal(opened_to_peers, 3);
}

static void a_rank_that_does_not_come_is_not_waited_for_forever(void **state)
{
  (void)state;
  flow_communicator *communicator;
  assert_int_equal(open_one(0, 2, "alone", 0.05, &communicator), FLOW_TIMED_OUT);
  says("opening the transport nccl: not every rank came within 0.05 s (rank 0 of 2");
  assert_null(communicator);
  assert_int_equal(open_one(1, 2, "nobody", 0.05, &communicator), FLOW_TIMED_OUT);
  says("no key nccl/nobody");
}

static void *open_second(void *argument)
{
  return open_one(1, 2, "pair", 60, argument) == FLOW_OK ? NULL : "open";
}

static void *wait_for_nobody(void *argument)
{
  float one = 1;
  flow_status status = flow_cuda_nccl_transport.all_reduce(argument, FLOW_FLOAT32, &one, 1);
  return status == FLOW_ABORTED && strstr(flow_last_error(), "all_reduce: worker 1 is gone") ? NULL : "not aborted";
}

static void abort_lets_those_go_who_wait(void **state)
{
  (void)state;
  pthread_t thread;
  flow_communicator *first, *second;
  void *failed;
  assert_int_equal(pthread_create(&thread, NULL, open_second, &second), 0);
  assert_int_equal(open_one(0, 2, "pair", 60, &first), FLOW_OK);
  pthread_join(thread, &failed);
  assert_null(failed);
  assert_int_equal(pthread_create(&thread, NULL, wait_for_nobody, first), 0);
  usleep(20000);
  flow_cuda_nccl_transport.abort(first, "worker 1 is gone");
  flow_cuda_nccl_transport.abort(first, "said twice");
  pthread_join(thread, &failed);
  assert_null(failed);
  assert_int_equal(flow_cuda_nccl_transport.barrier(first), FLOW_ABORTED);
  says("worker 1 is gone");
  flow_cuda_nccl_transport.close(first);
  flow_cuda_nccl_transport.close(second);
}

static void *close_held(void *argument)
{
  flow_cuda_nccl_transport.close(argument);
  return NULL;
}

/* A sum of 54,321 elements is as one that a graph holds: NCCL's abort returns when the graph is gone. */
static void abort_does_not_wait_for_recordings_but_close_does(void **state)
{
  (void)state;
  static float data[54321];
  pthread_t thread;
  flow_communicator *communicator;
  void *library = dlopen(FLOW_FAKE_NCCL "/libnccl.so.2", RTLD_NOW);
  void (*release)(void) = NULL;
  assert_non_null(library);
  *(void **)&release = dlsym(library, "fake_nccl_release_graphs");
  assert_int_equal(open_one(0, 1, "held", 60, &communicator), FLOW_OK);
  assert_int_equal(flow_cuda_nccl_transport.all_reduce(communicator, FLOW_FLOAT32, data, 54321), FLOW_OK);
  flow_cuda_nccl_transport.abort(communicator, "worker 1 is gone");
  assert_int_equal(flow_cuda_nccl_transport.all_reduce(communicator, FLOW_FLOAT32, data, 1), FLOW_ABORTED);
  assert_int_equal(pthread_create(&thread, NULL, close_held, communicator), 0);
  usleep(20000);
  assert_int_equal(pthread_tryjoin_np(thread, NULL), EBUSY);
  release();
  pthread_join(thread, NULL);
  dlclose(library);
}

static void *end_opening(void *argument)
{
  usleep(20000);
  __atomic_store_n((int *)argument, 1, __ATOMIC_RELEASE);
  return NULL;
}

static void opening_can_be_ended(void **state)
{
  (void)state;
  pthread_t thread;
  int ended = 0;
  flow_communicator *communicator = NULL;
  flow_transport_options options = { .timeout = 60, .group = "ended", .store = &store, .queue = &queues[0], .ended = &ended };
  assert_int_equal(pthread_create(&thread, NULL, end_opening, &ended), 0);
  assert_int_equal(flow_cuda_nccl_transport.open(0, 2, &options, &communicator), FLOW_ABORTED);
  pthread_join(thread, NULL);
  says("another rank cannot be opened");
  assert_null(communicator);
}

static void a_failure_of_nccl_is_told_and_stays(void **state)
{
  (void)state;
  static float data[12345];
  flow_communicator *communicator;
  assert_int_equal(open_one(0, 1, "single", 60, &communicator), FLOW_OK);
  assert_int_equal(flow_cuda_nccl_transport.all_reduce(communicator, FLOW_FLOAT32, data, 12345), FLOW_IO_ERROR);
  says("all_reduce: NCCL: system error: the fake one");
  assert_int_equal(flow_cuda_nccl_transport.all_reduce(communicator, FLOW_FLOAT32, data, 1), FLOW_IO_ERROR);
  says("NCCL: system error");
  flow_cuda_nccl_transport.close(communicator);
}

static void wrong_options_are_refused(void **state)
{
  (void)state;
  flow_communicator *communicator = NULL;
  flow_transport_options options = { .timeout = 1, .group = "x", .store = &store };
  assert_int_equal(flow_cuda_nccl_transport.open(0, 1, &options, &communicator), FLOW_INVALID_ARGUMENT);
  says("needs a device's queue");
  assert_int_equal(flow_cuda_nccl_transport.open(-1, -1, &options, &communicator), FLOW_INVALID_ARGUMENT);
  says("needs rank and size");
  assert_int_equal(set_key(NULL, "nccl/short", "abc", 3), FLOW_OK);
  assert_int_equal(open_one(1, 2, "short", 1, &communicator), FLOW_CORRUPT_DATA);
  says("an id of 3 bytes, not 128");
}

int main(void)
{
  setenv("FLOW_CUDA_LIBS", FLOW_FAKE_NCCL, 1);
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(nccl_itself_gives_an_id_and_misses_the_device), cmocka_unit_test(three_ranks_add_up),
    cmocka_unit_test(a_rank_that_does_not_come_is_not_waited_for_forever), cmocka_unit_test(abort_lets_those_go_who_wait),
    cmocka_unit_test(abort_does_not_wait_for_recordings_but_close_does), cmocka_unit_test(opening_can_be_ended),
    cmocka_unit_test(a_failure_of_nccl_is_told_and_stays), cmocka_unit_test(wrong_options_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

static void the_cuda_toolkit_is_missing(void **state)
{
  (void)state;
  skip();
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(the_cuda_toolkit_is_missing) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
