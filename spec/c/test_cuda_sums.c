/* test_cuda_sums.c: sums between the emulated devices (spec/cuda/emulation/nccl.c): enqueued and recorded, whatever comes first; who
 * waits in vain is let go by abort alone; steps that all make or none; and whoever leaves out a follow is found. */
#define _GNU_SOURCE                      /* pthread_tryjoin_np */
#include <errno.h>
#include <pthread.h>
#include "base/memory.h"
#include "base/plugin.h"
#include "cuda_runner.h"
#include "one_value_store.h"

enum { COUNT = 1000, BYTES = COUNT * 4, RANKS = 2 };

typedef struct rank { flow_queue *queue, *sums; flow_communicator *communicator; float *data; double *votes; } rank;

static const flow_accelerator_functions *gpu;
static rank ranks[RANKS];

typedef struct opening { int rank; flow_queue *queue; flow_status status; char reason[512]; } opening;

static void *open_one(void *argument)
{
  opening *o = argument;
  flow_transport_options options = { .timeout = 20, .group = "test", .store = &store, .queue = o->queue };
  o->status = flow_communicator_open("nccl", o->rank, RANKS, &options, &ranks[o->rank].communicator);
  snprintf(o->reason, sizeof o->reason, "%s", o->status == FLOW_OK ? "" : flow_last_error());
  return NULL;
}

static void open_on(flow_queue *first, flow_queue *second, opening o[RANKS])
{
  pthread_t thread;
  stored_bytes = 0;
  o[0] = (opening){ .rank = 0, .queue = first };
  o[1] = (opening){ .rank = 1, .queue = second };
  assert_int_equal(pthread_create(&thread, NULL, open_one, &o[1]), 0);
  open_one(&o[0]);
  pthread_join(thread, NULL);
}

/* ---- devices ----------------------------------------------------------------------------------------------------------------------- */

static const flow_accelerator *device_of(int index)
{
  const flow_plugin *plugin;
  const flow_accelerator *device;
  cuda_device();
  cuda_ok(flow_plugin_open("cuda", &plugin));
  cuda_ok(((const flow_accelerator_table *)plugin->functions)->open(index, &device));
  return device;
}

static void *memory_of(flow_queue *queue, size_t bytes)
{
  void *memory;
  cuda_ok(gpu->allocate(queue, bytes, &memory));
  return memory;
}

static int set_up(void **state)
{
  opening o[RANKS];
  (void)state;
  for (int r = 0; r < RANKS; r++) {
    const flow_accelerator *device = device_of(r);
    gpu = device->functions;
    cuda_ok(gpu->queue_new(device, &ranks[r].queue));
    cuda_ok(gpu->queue_new(device, &ranks[r].sums));
    ranks[r].data = memory_of(ranks[r].queue, BYTES);
    ranks[r].votes = memory_of(ranks[r].queue, 16);
    cuda_ok(gpu->clear(ranks[r].queue, ranks[r].votes, 16));
  }
  open_on(ranks[0].sums, ranks[1].sums, o);
  for (int r = 0; r < RANKS; r++)
    if (o[r].status != FLOW_OK) fail_msg("rank %d: %s", r, o[r].reason);
  return 0;
}

static int tear_down(void **state)
{
  (void)state;
  for (int r = 0; r < RANKS; r++) flow_communicator_close(ranks[r].communicator);
  for (int r = 0; r < RANKS; r++) {
    gpu->release(ranks[r].queue, ranks[r].data);
    gpu->release(ranks[r].queue, ranks[r].votes);
    gpu->queue_release(ranks[r].sums);
    gpu->queue_release(ranks[r].queue);
  }
  return 0;
}

static void put(const rank *r, float value)
{
  float values[COUNT];
  for (int i = 0; i < COUNT; i++) values[i] = value * (float)(i + 1);
  cuda_ok(gpu->upload(r->queue, r->data, values, BYTES));
}

static void holds(const rank *r, float expected)
{
  float values[COUNT];
  cuda_ok(gpu->download(r->queue, values, r->data, BYTES));
  for (int i = 0; i < COUNT; i++) assert_float_equal(values[i], expected * (float)(i + 1), 0);
}

static void sum(const rank *r)
{
  cuda_ok(gpu->follow(r->sums, r->queue));
  cuda_ok(flow_communicator_all_reduce(r->communicator, FLOW_FLOAT32, r->data, COUNT));
  cuda_ok(gpu->follow(r->queue, r->sums));
}

static void says(flow_status expected, const char *part, flow_status status)
{
  assert_int_equal(status, expected);
  if (!strstr(flow_last_error(), part)) fail_msg("\"%s\" does not contain \"%s\"", flow_last_error(), part);
}

/* ---- tests --------------------------------------------------------------------------------------------------------------------------- */

static void all_get_the_sum(void **state)
{
  (void)state;
  for (int round = 1; round <= 20; round++) {
    for (int r = 0; r < RANKS; r++) put(&ranks[r], (float)(round + r));
    for (int r = 0; r < RANKS; r++) sum(&ranks[r]);
    holds(&ranks[round % RANKS], (float)(2 * round + 1));
    holds(&ranks[0], (float)(2 * round + 1));
    holds(&ranks[1], (float)(2 * round + 1));
  }
}

/* Both recordings are carried out at the same time: each needs the other twice. */
static void recordings_add_up_each_time(void **state)
{
  (void)state;
  flow_recording *recordings[RANKS];
  for (int r = 0; r < RANKS; r++) {
    cuda_ok(gpu->record_begin(ranks[r].queue));
    sum(&ranks[r]);
    sum(&ranks[r]);
    cuda_ok(gpu->record_end(ranks[r].queue, &recordings[r]));
    assert_int_equal(gpu->recording_nodes(recordings[r]), 2);
  }
  for (int round = 1; round <= 10; round++) {
    for (int r = 0; r < RANKS; r++) put(&ranks[r], (float)(round * (r + 1)));
    for (int r = 0; r < RANKS; r++) cuda_ok(gpu->replay(ranks[r].queue, recordings[r]));
    holds(&ranks[round % RANKS], (float)(6 * round));
    holds(&ranks[(round + 1) % RANKS], (float)(6 * round));
  }
  for (int r = 0; r < RANKS; r++) gpu->recording_release(recordings[r]);
}

static void *wait_for(void *argument)
{
  const rank *r = argument;
  return gpu->synchronize(r->queue) == FLOW_OK ? NULL : (void *)flow_last_error();
}

static void vote(const rank *r)
{
  cuda_ok(gpu->approve(r->queue, r->votes));
  cuda_ok(gpu->follow(r->sums, r->queue));
  cuda_ok(flow_communicator_all_reduce(r->communicator, FLOW_FLOAT64, r->votes, 1));
  cuda_ok(gpu->follow(r->queue, r->sums));
  cuda_ok(gpu->require_approval(r->queue, r->votes, RANKS));
}

/* Enqueues the op assign_add, which writes unless something was refused. */
static void add_one(const rank *r, float *to)
{
  flow_attributes none = { 0 }, value = { .fill = { .value = 1, .rank = 1, .dims = { 1 } } };
  float *one = memory_of(r->queue, 4);
  const flow_kernel *const *kernels = cuda_device()->device.kernels;
  flow_operand operands[2] = { { .data = to, .dtype = FLOW_FLOAT32, .rank = 1, .shape = { 1 }, .strides = { 1 } } };
  operands[1] = operands[0];
  operands[1].data = one;
  flow_call fill = { .op = FLOW_OP_fill, .attributes = &value, .outputs = &operands[1], .output_count = 1, .queue = r->queue };
  cuda_ok(kernels[FLOW_OP_fill]->run(&fill, 0, 0, 1));
  flow_call call = { .op = FLOW_OP_assign_add, .attributes = &none, .inputs = operands, .input_count = 2, .queue = r->queue };
  cuda_ok(kernels[FLOW_OP_assign_add]->run(&call, 0, 0, 1));
  gpu->release(r->queue, one);
}

static void a_step_is_made_by_all_where_all_approve(void **state)
{
  (void)state;
  float value;
  for (int r = 0; r < RANKS; r++) cuda_ok(gpu->clear(ranks[r].queue, ranks[r].data, 4));
  for (int step = 1; step <= 3; step++) {
    for (int r = 0; r < RANKS; r++) {
      vote(&ranks[r]);
      add_one(&ranks[r], ranks[r].data);
    }
    for (int r = 0; r < RANKS; r++) {
      cuda_ok(gpu->download(ranks[r].queue, &value, ranks[r].data, 4));
      assert_float_equal(value, step, 0);
    }
  }
}

/* The second never comes. What was ended is not a sum, so the step is not made. */
static void abort_lets_a_device_go(void **state)
{
  (void)state;
  pthread_t thread;
  void *reason;
  float value;
  cuda_ok(gpu->clear(ranks[0].queue, ranks[0].data, 4));
  vote(&ranks[0]);
  vote(&ranks[1]);
  cuda_ok(gpu->synchronize(ranks[0].queue));
  cuda_ok(gpu->synchronize(ranks[1].queue));
  vote(&ranks[0]);
  add_one(&ranks[0], ranks[0].data);
  assert_int_equal(pthread_create(&thread, NULL, wait_for, &ranks[0]), 0);
  usleep(20000);
  flow_communicator_abort(ranks[0].communicator, "the other one is gone");
  pthread_join(thread, &reason);
  assert_non_null(reason);
  cuda_ok(gpu->download(ranks[0].queue, &value, ranks[0].data, 4));
  assert_float_equal(value, 0, 0);
  says(FLOW_ABORTED, "the other one is gone", flow_communicator_all_reduce(ranks[0].communicator, FLOW_FLOAT32, ranks[0].data, 1));
}

static void a_sum_that_is_not_followed_is_a_hazard(void **state)
{
  (void)state;
  for (int r = 0; r < RANKS; r++) {
    put(&ranks[r], 1);
    cuda_ok(gpu->follow(ranks[r].sums, ranks[r].queue));
    cuda_ok(flow_communicator_all_reduce(ranks[r].communicator, FLOW_FLOAT32, ranks[r].data, COUNT));
  }
  says(FLOW_INTERNAL, "and nothing orders the two", gpu->clear(ranks[0].queue, ranks[0].data, 4));
  says(FLOW_INTERNAL, "hazard: a clear on queue", gpu->clear(ranks[1].queue, ranks[1].data, 4));
  for (int r = 0; r < RANKS; r++) cuda_ok(gpu->follow(ranks[r].queue, ranks[r].sums));
}

static void *close_first(void *argument)
{
  (void)argument;
  flow_communicator_close(ranks[0].communicator);
  ranks[0].communicator = NULL;
  return NULL;
}

static void close_waits_for_recordings(void **state)
{
  (void)state;
  pthread_t thread;
  flow_recording *recording;
  cuda_ok(gpu->record_begin(ranks[0].queue));
  sum(&ranks[0]);
  cuda_ok(gpu->record_end(ranks[0].queue, &recording));
  assert_int_equal(pthread_create(&thread, NULL, close_first, NULL), 0);
  usleep(20000);
  assert_int_equal(pthread_tryjoin_np(thread, NULL), EBUSY);
  gpu->recording_release(recording);
  pthread_join(thread, NULL);
}

static void a_device_has_one_rank(void **state)
{
  (void)state;
  opening o[RANKS];
  for (int r = 0; r < RANKS; r++) flow_communicator_close(ranks[r].communicator);
  open_on(ranks[0].sums, ranks[0].queue, o);
  for (int r = 0; r < RANKS; r++) {
    assert_int_equal(o[r].status, FLOW_IO_ERROR);
    if (!strstr(o[r].reason, "Duplicate GPU detected : rank 0 and rank 1")) fail_msg("%s", o[r].reason);
    assert_null(ranks[r].communicator);
  }
}

#define test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
  const flow_plugin *plugin;
  char why[FLOW_ACCELERATOR_TEXT];
  cuda_device();
  if (flow_plugin_open("cuda", &plugin) != FLOW_OK || ((const flow_accelerator_table *)plugin->functions)->count(why, sizeof why) < RANKS) {
    printf("sums need %d devices\n", RANKS);
    return 3;
  }
  const struct CMUnitTest tests[] = {
    test(all_get_the_sum), test(recordings_add_up_each_time), test(a_step_is_made_by_all_where_all_approve), test(abort_lets_a_device_go),
    test(a_sum_that_is_not_followed_is_a_hazard), test(close_waits_for_recordings), test(a_device_has_one_rank),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
