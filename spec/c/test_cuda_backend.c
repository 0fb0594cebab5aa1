/* test_cuda_backend.c: the back end as it ships, on the emulated CUDA runtime and NCCL: it leaves the host's current device unchanged and
 * no error behind, whatever is called; memory goes from queue to queue; and NCCL does more than sums. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <pthread.h>
#include "base/memory.h"
#include "cuda/library/library.h"
#include "cuda/runtime/runtime.h"
#include "one_value_store.h"
#include "ops/op.h"

enum { COUNT = 1000, BYTES = COUNT * 4, RANKS = 2 };

static const flow_accelerator *devices[2];
static const flow_accelerator_functions *gpu;

#define is(expected, call) assert_int_equal(call, expected)

/* The host has its own idea of the current device, and looks for its own errors. */
static void is_as_before(const char *call)
{
  int device;
  is(cudaSuccess, cudaGetDevice(&device));
  cudaError_t error = cudaGetLastError();
  if (device != 0 || error != cudaSuccess) fail_msg("%s leaves gpu:%d current, and %s", call, device, cudaGetErrorString(error));
}

#define leaves_all(call) do { is(FLOW_OK, call); is_as_before(#call); } while (0)
#define refused(call) do { assert_int_not_equal(call, FLOW_OK); is_as_before(#call); } while (0)

static const flow_accelerator *open_device(int index)
{
  is(FLOW_OK, flow_cuda_table.open(index, &devices[index]));
  is_as_before("open");
  gpu = devices[index]->functions;
  return devices[index];
}

static flow_status run_product(flow_queue *queue, char *data)
{
  flow_library_product formula = { .dtype = FLOW_FLOAT32, .result_dtype = FLOW_FLOAT32, .batch = 1, .m = 4, .n = 4, .k = 4,
                                   .alignment = FLOW_LIBRARY_ALIGNMENT };
  flow_attributes none = { 0 };
  flow_call call = { .op = FLOW_OP_matmul, .attributes = &none, .queue = queue };
  int before, after;
  is(cudaSuccess, cudaGetDevice(&before));
  const flow_library_plan *plan = flow_library_plan_product(&call, &formula);
  is(cudaSuccess, cudaGetDevice(&after));
  assert_int_equal(before, after);
  assert_non_null(plan);
  return flow_library_multiply(&call, plan, data, data + 256, NULL, data + 512, data + 1024);
}

static void the_back_end_leaves_the_current_device(void **state)
{
  (void)state;
  char *data, values[2 * BYTES] = { 0 };
  flow_queue *here, *queue, *other;
  flow_recording *recording;
  open_device(0);
  const flow_accelerator *device = open_device(1);
  leaves_all(gpu->queue_new(devices[0], &here));
  leaves_all(gpu->queue_new(device, &queue));
  leaves_all(gpu->queue_new(device, &other));
  leaves_all(gpu->allocate(queue, 2 * BYTES, (void **)&data));
  leaves_all(gpu->upload(queue, data, values, 2 * BYTES));
  leaves_all(gpu->follow(here, queue));
  leaves_all(gpu->copy(queue, data + BYTES, data, BYTES));
  leaves_all(gpu->clear(queue, data, 16));
  leaves_all(gpu->approve(queue, (double *)(void *)data));
  leaves_all(gpu->require_approval(queue, (double *)(void *)data, 1));
  gpu->synchronize(queue);
  is_as_before("synchronize");
  leaves_all(gpu->clear(queue, data, 256));
  flow_batch_table table = { .from = data + 256, .to = data + 512, .rows = 4, .row_bytes = 16 };
  leaves_all(gpu->take_batch(queue, &table, 1, NULL, 0, 2, (const flow_batch_step *)(void *)data));
  leaves_all(run_product(queue, data));
  leaves_all(gpu->download(queue, values, data, 2 * BYTES));
  leaves_all(gpu->record_begin(queue));
  leaves_all(gpu->follow(other, queue));
  leaves_all(gpu->clear(other, data, 16));
  leaves_all(gpu->follow(queue, other));
  leaves_all(gpu->record_end(queue, &recording));
  leaves_all(gpu->replay(queue, recording));
  gpu->recording_release(recording);
  is_as_before("recording_release");
  leaves_all(gpu->record_begin(queue));
  refused(gpu->upload(queue, data, values, BYTES));
  gpu->release(queue, data);                         /* kept until the end */
  is_as_before("release");
  refused(gpu->record_end(queue, &recording));
  leaves_all(gpu->synchronize(queue));
  leaves_all(gpu->record_begin(queue));
  leaves_all(gpu->follow(other, queue));
  leaves_all(gpu->allocate(here, BYTES, (void **)&data));      /* on another queue than those that are recorded */
  leaves_all(gpu->clear(here, data, BYTES));
  gpu->release(here, data);
  leaves_all(gpu->record_end(queue, &recording));
  gpu->recording_release(recording);
  refused(gpu->allocate(queue, (size_t)1 << 50, (void **)&data));
  refused(gpu->allocate(queue, (size_t)device->memory_bytes, (void **)&data));      /* some of it is in use */
  assert_true(gpu->free_memory(device) > 0);
  is_as_before("free_memory");
  gpu->queue_release(other);
  gpu->queue_release(queue);
  gpu->queue_release(here);
  is_as_before("queue_release");
}

static flow_status record_and_replay(flow_queue *queue, flow_queue *other, char *data)
{
  flow_recording *recording;
  FLOW_TRY(gpu->record_begin(queue));
  FLOW_TRY(gpu->follow(other, queue));
  FLOW_TRY(gpu->clear(other, data, 16));
  FLOW_TRY(gpu->follow(queue, other));
  FLOW_TRY(gpu->record_end(queue, &recording));
  flow_status status = gpu->replay(queue, recording);
  gpu->recording_release(recording);
  return status;
}

static flow_status add_up_alone(flow_queue *queue, float *data)
{
  flow_communicator *communicator;
  flow_transport_options options = { .timeout = 60, .group = "alone", .store = &store, .queue = queue };
  FLOW_TRY(flow_cuda_nccl_transport.open(0, 1, &options, &communicator));
  flow_status status = flow_cuda_nccl_transport.all_reduce(communicator, FLOW_FLOAT32, data, 4);
  if (status == FLOW_OK) status = flow_cuda_nccl_transport.barrier(communicator);
  flow_cuda_nccl_transport.abort(communicator, "enough");
  flow_cuda_nccl_transport.close(communicator);
  return status;
}

static flow_status use_queues(flow_queue *queue, flow_queue *other)
{
  char *data, values[2 * BYTES] = { 0 };
  FLOW_TRY(gpu->allocate(queue, 2 * BYTES, (void **)&data));
  FLOW_TRY(gpu->upload(queue, data, values, 2 * BYTES));
  FLOW_TRY(gpu->follow(other, queue));
  FLOW_TRY(gpu->copy(other, data + BYTES, data, BYTES));
  FLOW_TRY(gpu->follow(queue, other));
  flow_batch_table table = { .from = data + 256, .to = data + 512, .rows = 4, .row_bytes = 16 };
  FLOW_TRY(gpu->take_batch(queue, &table, 1, NULL, 0, 2, (const flow_batch_step *)(void *)data));
  FLOW_TRY(run_product(queue, data));
  FLOW_TRY(record_and_replay(queue, other, data));
  FLOW_TRY(add_up_alone(queue, (float *)(void *)data));
  FLOW_TRY(gpu->download(queue, values, data, 2 * BYTES));
  gpu->release(queue, data);
  return gpu->synchronize(queue);
}

/* Each step on its own thread, which has chosen no device: the first one is current there. */
static void *use_second_device(void *unused)
{
  static flow_queue *queue, *other;
  static int step;
  (void)unused;
  flow_status status = FLOW_OK;
  switch (step++) {
    case 0: status = flow_cuda_table.open(1, &devices[1]); gpu = devices[1]->functions; break;
    case 1: status = gpu->queue_new(devices[1], &queue); break;
    case 2: status = gpu->queue_new(devices[1], &other); break;
    case 3: status = use_queues(queue, other); break;
    case 4: gpu->queue_release(other); gpu->queue_release(queue); break;
    default: status = gpu->free_memory(devices[1]) > 0 ? FLOW_OK : FLOW_INTERNAL; break;
  }
  if (status != FLOW_OK) print_error("step %d: %s\n", step, flow_last_error());
  return status == FLOW_OK ? NULL : "failed";
}

static void a_process_on_one_device_makes_no_context_on_another(void **state)
{
  (void)state;
  int status;
  pid_t child = fork();
  if (child == 0) {
    void *failed = NULL;
    setenv("FLOW_EMULATED_ONLY", "1", 1);
    for (int step = 0; step < 6 && !failed; step++) {
      pthread_t thread;
      pthread_create(&thread, NULL, use_second_device, NULL);
      pthread_join(thread, &failed);
    }
    _exit(failed != NULL);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

/* All there is, to and fro between two queues: the second one waits and trims the pool. */
static void what_one_queue_releases_another_can_have(void **state)
{
  (void)state;
  flow_queue *queues[2];
  const flow_accelerator *device = open_device(0);
  for (int i = 0; i < 2; i++) leaves_all(gpu->queue_new(device, &queues[i]));
  for (int round = 0; round < 6; round++) {
    void *block;
    leaves_all(gpu->allocate(queues[round % 2], (size_t)(device->memory_bytes * 0.7) - (size_t)round * 4096, &block));
    gpu->release(queues[round % 2], block);
  }
  for (int i = 0; i < 2; i++) gpu->queue_release(queues[i]);
}

/* ---- sums and the like -------------------------------------------------------------------------------------------------------------- */

/* Each rank is a thread: its results, or why not. */
typedef struct rank {
  int         number, device;
  flow_queue *queue;
  float       gathered[2 * RANKS], sent[2];
  const char *problem;
  char        reason[512];
} rank;

#define TRY(call) do { if ((call) != FLOW_OK) return flow_last_error(); } while (0)

static const char *use_all(rank *self, flow_communicator *communicator)
{
  float mine[2] = { (float)self->number, (float)(self->number + 10) };
  char *data;
  TRY(gpu->allocate(self->queue, 256 * 2, (void **)&data));
  TRY(gpu->upload(self->queue, data, mine, sizeof mine));
  TRY(flow_communicator_barrier(communicator));
  TRY(flow_communicator_all_gather(communicator, data, sizeof mine, data + 256));
  TRY(flow_communicator_broadcast(communicator, 1, data, sizeof mine));
  TRY(gpu->download(self->queue, self->gathered, data + 256, sizeof self->gathered));
  TRY(gpu->download(self->queue, self->sent, data, sizeof self->sent));
  gpu->release(self->queue, data);
  return NULL;
}

static void *run_rank(void *argument)
{
  rank *self = argument;
  flow_communicator *communicator = NULL;
  flow_transport_options options = { .timeout = 20, .group = "test", .store = &store, .queue = self->queue };
  flow_status status = flow_cuda_nccl_transport.open(self->number, RANKS, &options, &communicator);
  self->problem = status == FLOW_OK ? use_all(self, communicator) : flow_last_error();
  if (self->problem) snprintf(self->reason, sizeof self->reason, "%s", self->problem);
  if (communicator) communicator->transport->close(communicator);
  cudaGetDevice(&self->device);
  return NULL;
}

static void ranks_gather_and_broadcast(void **state)
{
  (void)state;
  rank ranks[RANKS];
  pthread_t threads[RANKS];
  stored_bytes = 0;
  for (int r = 0; r < RANKS; r++) {
    ranks[r] = (rank){ .number = r };
    leaves_all(gpu->queue_new(open_device(r), &ranks[r].queue));
    assert_int_equal(pthread_create(&threads[r], NULL, run_rank, &ranks[r]), 0);
  }
  for (int r = 0; r < RANKS; r++) {
    pthread_join(threads[r], NULL);
    if (ranks[r].problem) fail_msg("rank %d: %s", r, ranks[r].reason);
    assert_int_equal(ranks[r].device, 0);            /* each thread's own */
    for (int i = 0; i < RANKS; i++) {
      assert_float_equal(ranks[r].gathered[2 * i], i, 0);
      assert_float_equal(ranks[r].gathered[2 * i + 1], i + 10, 0);
    }
    assert_float_equal(ranks[r].sent[0], 1, 0);
    assert_float_equal(ranks[r].sent[1], 11, 0);
    gpu->queue_release(ranks[r].queue);
  }
}

int main(void)
{
  setenv("FLOW_EMULATED_MEMORY", "8388608", 1);
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_process_on_one_device_makes_no_context_on_another),      /* first: the settings are read once */
    cmocka_unit_test(the_back_end_leaves_the_current_device), cmocka_unit_test(what_one_queue_releases_another_can_have),
    cmocka_unit_test(ranks_gather_and_broadcast),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
