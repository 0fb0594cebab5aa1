/* test_cuda_nccl.c: the transport "nccl" on emulated devices and the emulated NCCL (spec/cuda/emulation/nccl.c): ranks meet, wait, give up,
 * and say why. NVIDIA's library itself is asked by spec/cuda/bootstrap.c. */
#define _GNU_SOURCE                      /* pthread_tryjoin_np */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
#include "base/memory.h"
#include "cuda/runtime/runtime.h"
#include "transport/transport.h"

enum { MOST_RANKS = 4, MOST_KEYS = 16, COUNT = 1000 };

static const flow_accelerator_functions *gpu;
static flow_queue *queues[MOST_RANKS];
static const flow_transport *const nccl = &flow_cuda_nccl_transport;

static int set_up(void **state)
{
  (void)state;
  for (int r = 0; r < MOST_RANKS; r++) {
    const flow_accelerator *device;
    assert_int_equal(flow_cuda_table.open(r, &device), FLOW_OK);
    gpu = device->functions;
    assert_int_equal(gpu->queue_new(device, &queues[r]), FLOW_OK);
  }
  return 0;
}

static int tear_down(void **state)
{
  (void)state;
  for (int r = 0; r < MOST_RANKS; r++) gpu->queue_release(queues[r]);
  return 0;
}

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
  *out = NULL;
  flow_transport_options options = { .timeout = timeout, .group = group, .store = &store, .queue = queues[rank] };
  return nccl->open(rank, size, &options, out);
}

static void says(const char *part)
{
  if (!strstr(flow_last_error(), part)) fail_msg("\"%s\" does not contain \"%s\"", flow_last_error(), part);
}

static void *device_memory(int rank, size_t bytes)
{
  void *memory;
  assert_int_equal(gpu->allocate(queues[rank], bytes, &memory), FLOW_OK);
  assert_int_equal(gpu->clear(queues[rank], memory, bytes), FLOW_OK);
  return memory;
}

/* ---- three ranks ----------------------------------------------------------------------------------------------------------------- */

typedef struct device_part { double wide; float sums[COUNT]; int mine, gathered[3]; char text[8]; } device_part;
typedef struct rank_of_three { int rank; device_part *memory, values; } rank_of_three;

static void *work_of_three(void *argument)
{
  rank_of_three *self = argument;
  device_part *here = self->memory, *v = &self->values;
  flow_queue *queue = queues[self->rank];
  flow_communicator *communicator;
  if (open_one(self->rank, 3, "three", 60, &communicator) != FLOW_OK) return "open";
  *v = (device_part){ .wide = 0.5 + self->rank, .mine = 10 + self->rank };
  for (int i = 0; i < COUNT; i++) v->sums[i] = (float)(i + self->rank * 1000);
  snprintf(v->text, sizeof v->text, "rank %d", self->rank);
  if (gpu->upload(queue, here, v, sizeof *v) != FLOW_OK) return "upload";
  if (nccl->all_reduce(communicator, FLOW_FLOAT32, here->sums, COUNT) != FLOW_OK) return "all_reduce";
  if (nccl->all_reduce(communicator, FLOW_FLOAT64, &here->wide, 1) != FLOW_OK) return "all_reduce of float64";
  if (nccl->broadcast(communicator, 2, here->text, sizeof here->text) != FLOW_OK) return "broadcast";
  if (nccl->all_gather(communicator, &here->mine, sizeof here->mine, here->gathered) != FLOW_OK) return "all_gather";
  if (nccl->barrier(communicator) != FLOW_OK) return "barrier";
  if (gpu->download(queue, v, here, sizeof *v) != FLOW_OK) return "download";
  nccl->close(communicator);
  return NULL;
}

static void three_ranks_add_up(void **state)
{
  (void)state;
  pthread_t threads[3];
  rank_of_three *ranks = calloc(3, sizeof *ranks);
  assert_non_null(ranks);
  for (int r = 2; r >= 0; r--) {
    ranks[r] = (rank_of_three){ .rank = r, .memory = device_memory(r, sizeof(device_part)) };
    assert_int_equal(pthread_create(&threads[r], NULL, work_of_three, &ranks[r]), 0);
  }
  for (int r = 0; r < 3; r++) {
    void *failed;
    pthread_join(threads[r], &failed);
    if (failed) fail_msg("rank %d: %s", r, (char *)failed);
    const device_part *v = &ranks[r].values;
    for (int i = 0; i < COUNT; i++) assert_float_equal(v->sums[i], 3 * i + 3000, 0);
    assert_float_equal(v->wide, 4.5, 0);
    assert_string_equal(v->text, "rank 2");
    for (int i = 0; i < 3; i++) assert_int_equal(v->gathered[i], 10 + i);
    gpu->release(queues[r], ranks[r].memory);
  }
  free(ranks);
}

/* ---- ranks that do not come, and ends --------------------------------------------------------------------------------------------- */

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
  flow_status status = nccl->barrier(argument);
  return status == FLOW_ABORTED && strstr(flow_last_error(), "barrier: worker 1 is gone") ? NULL : "not aborted";
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
  nccl->abort(first, "worker 1 is gone");
  nccl->abort(first, "said twice");
  pthread_join(thread, &failed);
  if (failed) fail_msg("%s", (char *)failed);
  assert_int_equal(nccl->barrier(first), FLOW_ABORTED);
  says("worker 1 is gone");
  nccl->close(first);
  nccl->close(second);
}

static void *close_held(void *argument)
{
  nccl->close(argument);
  return NULL;
}

/* NCCL's abort returns when the last graph with the communicator's operations is gone. */
static void abort_does_not_wait_for_recordings_but_close_does(void **state)
{
  (void)state;
  pthread_t thread;
  flow_communicator *communicator;
  flow_recording *recording;
  float *data = device_memory(0, COUNT * sizeof *data);
  assert_int_equal(open_one(0, 1, "held", 60, &communicator), FLOW_OK);
  assert_int_equal(gpu->record_begin(queues[0]), FLOW_OK);
  assert_int_equal(nccl->all_reduce(communicator, FLOW_FLOAT32, data, COUNT), FLOW_OK);
  assert_int_equal(gpu->record_end(queues[0], &recording), FLOW_OK);
  nccl->abort(communicator, "worker 1 is gone");
  assert_int_equal(nccl->all_reduce(communicator, FLOW_FLOAT32, data, 1), FLOW_ABORTED);
  assert_int_equal(pthread_create(&thread, NULL, close_held, communicator), 0);
  usleep(20000);
  assert_int_equal(pthread_tryjoin_np(thread, NULL), EBUSY);
  gpu->recording_release(recording);
  pthread_join(thread, NULL);
  gpu->release(queues[0], data);
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
  flow_transport_options options = { .timeout = 60, .group = "ended", .store = &store, .queue = queues[0], .ended = &ended };
  assert_int_equal(pthread_create(&thread, NULL, end_opening, &ended), 0);
  assert_int_equal(nccl->open(0, 2, &options, &communicator), FLOW_ABORTED);
  pthread_join(thread, NULL);
  says("another rank cannot be opened");
  assert_null(communicator);
}

/* More than the memory has. */
static void a_failure_of_nccl_is_told_and_stays(void **state)
{
  (void)state;
  flow_communicator *communicator;
  float *data = device_memory(0, COUNT * sizeof *data);
  assert_int_equal(open_one(0, 1, "single", 60, &communicator), FLOW_OK);
  assert_int_equal(nccl->all_reduce(communicator, FLOW_FLOAT32, data, COUNT + 1), FLOW_IO_ERROR);
  says("all_reduce: NCCL: unhandled cuda error: Cuda failure 'a sum writes 4004 bytes");
  assert_int_equal(nccl->all_reduce(communicator, FLOW_FLOAT32, data, 1), FLOW_IO_ERROR);
  says("NCCL: unhandled cuda error");
  nccl->close(communicator);
  gpu->release(queues[0], data);
}

static void wrong_options_are_refused(void **state)
{
  (void)state;
  flow_communicator *communicator = NULL;
  flow_transport_options options = { .timeout = 1, .group = "x", .store = &store };
  assert_int_equal(nccl->open(0, 1, &options, &communicator), FLOW_INVALID_ARGUMENT);
  says("needs a device's queue");
  assert_int_equal(nccl->open(-1, -1, &options, &communicator), FLOW_INVALID_ARGUMENT);
  says("needs rank and size");
  assert_int_equal(set_key(NULL, "nccl/short", "abc", 3), FLOW_OK);
  assert_int_equal(open_one(1, 2, "short", 1, &communicator), FLOW_CORRUPT_DATA);
  says("an id of 3 bytes, not 128");
}

int main(void)
{
  setenv("FLOW_EMULATED_GPUS", "4", 1);
  setenv("FLOW_EMULATED_MEMORY", "8388608", 1);
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(three_ranks_add_up), cmocka_unit_test(a_rank_that_does_not_come_is_not_waited_for_forever),
    cmocka_unit_test(abort_lets_those_go_who_wait), cmocka_unit_test(abort_does_not_wait_for_recordings_but_close_does),
    cmocka_unit_test(opening_can_be_ended), cmocka_unit_test(a_failure_of_nccl_is_told_and_stays),
    cmocka_unit_test(wrong_options_are_refused),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
