/* test_cuda_device.c: the contract of accelerator.h: queues, memory, copies, recordings; on the emulated device also that whoever leaves
 * out a follow is found. */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include "cuda_runner.h"

static const flow_accelerator *device;
static const flow_accelerator_functions *gpu;
static flow_queue *first, *second;

enum { COUNT = 1000, BYTES = COUNT * 4 };

static int set_up(void **state)
{
  (void)state;
  device = cuda_device();
  gpu = device->functions;
  cuda_ok(gpu->queue_new(device, &first));
  cuda_ok(gpu->queue_new(device, &second));
  return 0;
}

static int tear_down(void **state)
{
  (void)state;
  gpu->queue_release(second);
  gpu->queue_release(first);
  return 0;
}

static int is_emulated(void) { return strstr(device->description, "emulates") != NULL; }

static void *memory_of(flow_queue *queue, size_t bytes)
{
  void *memory;
  cuda_ok(gpu->allocate(queue, bytes, &memory));
  assert_int_equal((uintptr_t)memory % 256, 0);
  return memory;
}

/* Enqueues the op fill: COUNT floats. */
static flow_status enqueue_fill(flow_queue *queue, void *to, double value)
{
  flow_attributes attributes = { .fill = { .value = value, .rank = 1, .dims = { COUNT } } };
  flow_operand y = { .data = to, .dtype = FLOW_FLOAT32, .rank = 1, .shape = { COUNT }, .strides = { 1 } };
  flow_call call = { .op = FLOW_OP_fill, .attributes = &attributes, .outputs = &y, .output_count = 1, .queue = queue };
  return device->device.kernels[FLOW_OP_fill]->run(&call, 0, 0, 1);
}

static void holds(flow_queue *queue, const void *memory, float expected)
{
  float values[COUNT];
  cuda_ok(gpu->download(queue, values, memory, BYTES));
  for (int i = 0; i < COUNT; i++) assert_float_equal(values[i], expected, 0);
}

static void fails(flow_status expected, const char *part, flow_status status)
{
  assert_int_equal(status, expected);
  if (!strstr(flow_last_error(), part)) fail_msg("\"%s\" does not contain \"%s\"", flow_last_error(), part);
}

#define only_emulated() do { if (!is_emulated()) skip(); } while (0)

static void copies_arrive_in_order(void **state)
{
  (void)state;
  float values[COUNT];
  char *a = memory_of(first, BYTES), *b = memory_of(first, BYTES);
  for (int i = 0; i < COUNT; i++) values[i] = 1;
  cuda_ok(gpu->upload(first, a, values, BYTES));
  for (int i = 0; i < COUNT; i++) values[i] = 2;      /* too late for the upload */
  cuda_ok(gpu->copy(first, b, a, BYTES));
  cuda_ok(gpu->clear(first, a, BYTES));
  holds(first, b, 1);
  holds(first, a, 0);
  gpu->release(first, a);
  gpu->release(first, b);
}

static void a_queue_that_follows_sees_what_was_written(void **state)
{
  (void)state;
  void *a = memory_of(first, BYTES), *b = memory_of(second, BYTES);
  for (int i = 0; i < 20; i++) {
    cuda_ok(gpu->follow(first, second));
    cuda_ok(enqueue_fill(first, a, i));
    cuda_ok(gpu->follow(second, first));
    cuda_ok(gpu->copy(second, b, a, BYTES));
    holds(second, b, (float)i);
  }
  cuda_ok(gpu->follow(first, second));
  gpu->release(first, a);
  gpu->release(second, b);
  cuda_ok(gpu->synchronize(first));
}

static void a_missing_follow_is_found(void **state)
{
  (void)state;
  only_emulated();
  void *a = memory_of(first, BYTES), *b = memory_of(second, BYTES);
  cuda_ok(enqueue_fill(first, a, 1));
  fails(FLOW_INTERNAL, "a copy on queue 1 reads bytes that fill on queue 0 writes", gpu->copy(second, b, a, BYTES));
  cuda_ok(gpu->follow(second, first));
  cuda_ok(gpu->copy(second, b, a, BYTES));
  fails(FLOW_INTERNAL, "fill on queue 0 writes bytes that a copy on queue 1 reads", enqueue_fill(first, a, 2));
  cuda_ok(gpu->copy(first, memory_of(first, BYTES), a, BYTES));      /* two that read need no order */
  cuda_ok(gpu->synchronize(second));                                 /* who is waited for is over */
  cuda_ok(enqueue_fill(first, a, 2));
  holds(first, a, 2);
  holds(second, b, 1);
}

/* The order is by bytes, not by blocks. */
static void halves_of_a_block_are_apart(void **state)
{
  (void)state;
  char *a = memory_of(first, 2 * BYTES);
  cuda_ok(gpu->follow(second, first));
  cuda_ok(enqueue_fill(first, a, 1));
  cuda_ok(enqueue_fill(second, a + BYTES, 2));
  holds(second, a + BYTES, 2);
  holds(first, a, 1);
}

static void what_was_released_too_early_is_found(void **state)
{
  (void)state;
  only_emulated();
  void *a = memory_of(first, BYTES), *b = memory_of(second, BYTES);
  cuda_ok(enqueue_fill(first, a, 1));
  cuda_ok(gpu->follow(second, first));
  cuda_ok(gpu->copy(second, b, a, BYTES));
  gpu->release(first, a);
  fails(FLOW_INTERNAL, "a release on queue 0 writes bytes that a copy on queue 1 reads", gpu->synchronize(first));
  cuda_ok(gpu->synchronize(first));                                  /* said once */
  fails(FLOW_INTERNAL, "which was released", enqueue_fill(first, a, 1));
  gpu->release(first, a);
  fails(FLOW_INTERNAL, "is not memory in use", gpu->synchronize(first));
}

static void memory_of_the_host_is_no_operand(void **state)
{
  (void)state;
  only_emulated();
  float values[COUNT];
  fails(FLOW_INTERNAL, "not in the memory of a device", enqueue_fill(first, values, 1));
  char *a = memory_of(first, BYTES);
  fails(FLOW_INTERNAL, "not in the memory of a device", enqueue_fill(first, a + 4, 1));
}

static void the_host_cannot_touch_memory_of_the_device(void **state)
{
  (void)state;
  only_emulated();
  volatile char *a = memory_of(first, BYTES);
  cuda_ok(gpu->clear(first, (void *)(uintptr_t)a, BYTES));
  cuda_ok(gpu->synchronize(first));
  pid_t child = fork();
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);
    _exit(*a);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) != 0);      /* a sanitizer exits */
}

static void new_memory_holds_nothing_of_use(void **state)
{
  (void)state;
  only_emulated();
  float values[COUNT];
  void *a = memory_of(first, BYTES);
  cuda_ok(gpu->clear(first, a, BYTES));
  gpu->release(first, a);
  a = memory_of(first, BYTES);
  cuda_ok(gpu->download(first, values, a, BYTES));
  assert_true(values[0] != values[0]);
}

static void too_much_memory_is_refused_with_sizes(void **state)
{
  (void)state;
  void *memory = &memory;
  fails(FLOW_OUT_OF_MEMORY, "gpu:0 is out of memory: 1125899906842624 bytes asked for", gpu->allocate(first, (size_t)1 << 50, &memory));
  assert_null(memory);
  fails(FLOW_OUT_OF_MEMORY, "free", gpu->allocate(first, SIZE_MAX, &memory));
}

static void *ask_for_all(void *status)
{
  void *memory;
  *(flow_status *)status = gpu->allocate(first, (size_t)device->memory_bytes, &memory);
  return NULL;
}

static void a_full_device_leaves_what_others_record_alone(void **state)
{
  (void)state;
  pthread_t thread;
  flow_status found = FLOW_OK;
  flow_recording *recording = NULL;
  void *a = memory_of(second, BYTES);
  cuda_ok(gpu->record_begin(second));
  assert_int_equal(pthread_create(&thread, NULL, ask_for_all, &found), 0);
  pthread_join(thread, NULL);
  cuda_ok(gpu->clear(second, a, BYTES));
  cuda_ok(gpu->record_end(second, &recording));
  assert_int_equal(found, FLOW_OUT_OF_MEMORY);
  gpu->recording_release(recording);
  gpu->release(second, a);
}

/* Ten times what there is, one after the other. */
static void released_memory_is_used_again(void **state)
{
  (void)state;
  size_t bytes = (size_t)(device->memory_bytes / 4);
  for (int i = 0; i < 40; i++) {
    void *a, *b;
    cuda_ok(gpu->allocate(i % 2 ? first : second, bytes - (size_t)i * 4096, &a));
    cuda_ok(gpu->allocate(i % 3 ? first : second, 100, &b));
    gpu->release(i % 2 ? first : second, a);
    gpu->release(i % 3 ? first : second, b);
    if (is_emulated()) break;                            /* NaNs in all of it take their time */
  }
  cuda_ok(gpu->synchronize(first));
  cuda_ok(gpu->synchronize(second));
}

static flow_recording *record_two_queues(void *a, void *b, void *c)
{
  flow_recording *recording;
  cuda_ok(gpu->record_begin(first));
  cuda_ok(gpu->copy(first, b, a, BYTES));
  cuda_ok(gpu->follow(second, first));
  cuda_ok(gpu->copy(second, c, b, BYTES));
  cuda_ok(enqueue_fill(first, a, 7));
  cuda_ok(gpu->follow(first, second));
  cuda_ok(enqueue_fill(first, b, 8));
  cuda_ok(gpu->record_end(first, &recording));
  assert_non_null(recording);
  return recording;
}

static void a_recording_is_carried_out_each_time(void **state)
{
  (void)state;
  void *a = memory_of(first, BYTES), *b = memory_of(first, BYTES), *c = memory_of(first, BYTES);
  cuda_ok(enqueue_fill(first, a, 1));
  cuda_ok(enqueue_fill(first, b, 2));
  cuda_ok(enqueue_fill(first, c, 3));
  flow_recording *recording = record_two_queues(a, b, c);
  assert_int_equal(gpu->recording_nodes(recording), 4);
  holds(first, a, 1);                                    /* nothing was carried out */
  holds(first, c, 3);
  cuda_ok(gpu->replay(first, recording));
  holds(first, a, 7);
  holds(first, b, 8);
  holds(first, c, 1);
  cuda_ok(gpu->replay(first, recording));
  cuda_ok(gpu->replay(first, recording));
  gpu->recording_release(recording);                     /* what is enqueued stays */
  holds(first, c, 7);
  gpu->recording_release(NULL);
}

static void accesses_of_a_recording_count(void **state)
{
  (void)state;
  only_emulated();
  void *a = memory_of(first, BYTES), *b = memory_of(first, BYTES), *c = memory_of(first, BYTES);
  cuda_ok(enqueue_fill(first, a, 1));
  flow_recording *recording = record_two_queues(a, b, c);
  fails(FLOW_INTERNAL, "hazard: ", gpu->replay(second, recording));
  cuda_ok(gpu->replay(first, recording));
  fails(FLOW_INTERNAL, "hazard: fill", enqueue_fill(second, b, 1));
  gpu->release(first, b);
  fails(FLOW_INTERNAL, "which was released", gpu->replay(first, recording));
  gpu->recording_release(recording);
}

static void hazards_inside_a_recording_are_found(void **state)
{
  (void)state;
  only_emulated();
  flow_recording *recording;
  void *a = memory_of(first, BYTES), *b = memory_of(first, BYTES);
  cuda_ok(gpu->record_begin(first));
  cuda_ok(gpu->follow(second, first));
  cuda_ok(enqueue_fill(first, a, 1));
  fails(FLOW_INTERNAL, "hazard: a copy", gpu->copy(second, b, a, BYTES));
  cuda_ok(gpu->follow(first, second));
  cuda_ok(gpu->record_end(first, &recording));
  gpu->recording_release(recording);
}

static void what_cannot_be_recorded_is_refused(void **state)
{
  (void)state;
  flow_recording *recording = (void *)&recording;
  float values[COUNT] = { 0 };
  void *more, *a = memory_of(first, BYTES);
  cuda_ok(gpu->synchronize(first));
  cuda_ok(gpu->record_begin(first));
  fails(FLOW_INVALID_STATE, "upload", gpu->upload(first, a, values, BYTES));
  fails(FLOW_INVALID_STATE, "download", gpu->download(first, values, a, BYTES));
  fails(FLOW_INVALID_STATE, "allocate", gpu->allocate(first, BYTES, &more));
  fails(FLOW_INVALID_STATE, "synchronize", gpu->synchronize(first));
  assert_int_not_equal(gpu->record_end(first, &recording), FLOW_OK);
  assert_null(recording);

  cuda_ok(enqueue_fill(first, a, 5));                    /* the queue works on */
  holds(first, a, 5);

  cuda_ok(gpu->record_begin(first));
  cuda_ok(gpu->follow(second, first));
  cuda_ok(gpu->clear(second, a, BYTES));
  fails(FLOW_INVALID_STATE, "not followed before the end", gpu->record_end(first, &recording));
  assert_null(recording);
  holds(first, a, 5);
  cuda_ok(gpu->synchronize(second));
  fails(FLOW_INVALID_STATE, "not begun", gpu->record_end(first, &recording));
}

static void devices_copy_from_each_other(void **state)
{
  (void)state;
  const flow_plugin *plugin;
  const flow_accelerator *other;
  char why[FLOW_ACCELERATOR_TEXT];
  cuda_ok(flow_plugin_open("cuda", &plugin));
  const flow_accelerator_table *table = plugin->functions;
  if (table->count(why, sizeof why) < 2) skip();
  cuda_ok(table->open(1, &other));
  assert_int_equal(other->index, 1);
  flow_queue *there;
  void *a = memory_of(first, BYTES), *b;
  cuda_ok(gpu->queue_new(other, &there));
  cuda_ok(gpu->allocate(there, BYTES, &b));
  cuda_ok(enqueue_fill(first, a, 3));
  cuda_ok(gpu->follow(there, first));
  cuda_ok(gpu->copy(there, b, a, BYTES));
  holds(there, b, 3);
  gpu->queue_release(there);
  fails(FLOW_INVALID_ARGUMENT, "there is no gpu:99", table->open(99, &other));
}

/* An op whose family forgot it has an empty list, made in device_table.c, and would only fail when it is called. Those that GPUs do not
 * have yet are named: quantized ones compute in float32, loops are written out, and only plans for the CPU take rows from their table or
 * compute separable convolutions by bands. */
static void every_op_has_kernels(void **state)
{
  (void)state;
  static const int without[] = { FLOW_OP_quantize,   FLOW_OP_quantize_weights, FLOW_OP_quantized_convolution, FLOW_OP_loop,
                                 FLOW_OP_gather_sum, FLOW_OP_gather_dense,     FLOW_OP_separable_convolution, FLOW_OP_convolution_add };
  int missing = 0;
  for (int op = 0; op < flow_op_count(); op++) {
    int known = 0;
    for (size_t i = 0; i < sizeof without / sizeof *without; i++) known |= without[i] == op;
    if (known) assert_null(device->device.kernels[op]->run);
    if (known || device->device.kernels[op]->run) continue;
    print_error("%s has no kernel on the device\n", flow_op_name(op));
    missing++;
  }
  assert_int_equal(missing, 0);
}

#define test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
  const struct CMUnitTest tests[] = {
    test(copies_arrive_in_order), test(a_queue_that_follows_sees_what_was_written), test(a_missing_follow_is_found),
    test(halves_of_a_block_are_apart), test(what_was_released_too_early_is_found), test(memory_of_the_host_is_no_operand),
    test(the_host_cannot_touch_memory_of_the_device), test(new_memory_holds_nothing_of_use), test(too_much_memory_is_refused_with_sizes),
    test(a_full_device_leaves_what_others_record_alone),
    test(released_memory_is_used_again), test(a_recording_is_carried_out_each_time), test(accesses_of_a_recording_count),
    test(hazards_inside_a_recording_are_found), test(what_cannot_be_recorded_is_refused), test(devices_copy_from_each_other),
    test(every_op_has_kernels),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
