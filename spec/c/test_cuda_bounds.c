/* test_cuda_bounds.c: with FLOW_EMULATED_BOUNDS=1 the emulated device tells who touches bytes beside those that an op was given, although
 * they belong to the same block of memory (spec/cuda/emulation/bounds.c), and which threads of a launch meet at a byte (races.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "cuda/device/view_make.h"
#include "cuda/emulation/emulation.h"
#include "cuda/runtime/device_table.h"
#include "cuda/runtime/launch.h"

/* The kernels call functions of sanitizers for each access. In a build with one these are its own, not those of bounds.c. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define only_watched() skip()
#else
#define only_watched() ((void)0)
#endif

enum { COUNT = 100, ROOM = 5 * COUNT };

static const flow_accelerator *device;
static flow_queue *queue;
static float *memory;                            /* COUNT floats are an op's, in the middle of ROOM of them */

#define good(call) do { if ((call) != FLOW_OK) fail_msg("%s", flow_last_error()); } while (0)

static int set_up(void **state)
{
  void *made;
  (void)state;
  setenv("FLOW_EMULATED_BOUNDS", "1", 1);
  good(flow_cuda_table.open(0, &device));
  good(device->functions->queue_new(device, &queue));
  good(device->functions->allocate(queue, ROOM * sizeof *memory, &made));
  memory = (float *)made + COUNT;
  return 0;
}

static int tear_down(void **state)
{
  (void)state;
  device->functions->release(queue, memory - COUNT);
  device->functions->queue_release(queue);
  return 0;
}

static flow_operand floats_at(float *data, int64_t count)
{
  return (flow_operand){ .data = data, .dtype = FLOW_FLOAT32, .rank = 1, .shape = { count }, .strides = { 1 } };
}

/* Fills `count` floats from `from` on, of which the op has COUNT from `memory` on. */
static flow_status fill_from(float *from, int64_t count)
{
  flow_operand y = floats_at(memory, COUNT), all = floats_at(from, count);
  flow_call call = { .op = FLOW_OP_fill, .queue = queue, .outputs = &y, .output_count = 1 };
  fill_arguments a = { .y = flow_cuda_view(&all, 1, all.shape), .bytes = 4 };
  return flow_cuda_launch(&call, CUDA_fill, count, &a, sizeof a);
}

/* Copies `count` floats to where the op writes `written` and from where it reads COUNT. */
static flow_status copy(int64_t count, int64_t written)
{
  flow_operand x = floats_at(memory, COUNT), y = floats_at(memory + 2 * COUNT, written);
  flow_call call = { .op = FLOW_OP_abs, .queue = queue, .inputs = &x, .input_count = 1, .outputs = &y, .output_count = 1 };
  assign_units_arguments a = { .to = y.data, .from = x.data, .fault = flow_cuda_verdict(&call), .size = 4 };
  return flow_cuda_launch(&call, CUDA_assign_units, count, &a, sizeof a);
}

static void is_told(const char *what)
{
  assert_int_not_equal(device->functions->synchronize(queue), FLOW_OK);
  if (!strstr(flow_last_error(), what)) fail_msg("%s", flow_last_error());
  good(device->functions->synchronize(queue));      /* once */
}

static void what_an_op_has_it_may_touch(void **state)
{
  (void)state;
  good(fill_from(memory, COUNT));
  good(copy(COUNT, COUNT));
  good(device->functions->synchronize(queue));
}

static void a_write_beside_it_is_told(void **state)
{
  (void)state;
  only_watched();
  good(fill_from(memory, COUNT + 1));
  is_told("out of bounds: fill writes 4 bytes, of which the last is 4 bytes beside what it was given");
  good(fill_from(memory - 2, COUNT));
  is_told("out of bounds: fill writes");
}

static void a_read_beside_it_is_told(void **state)
{
  (void)state;
  only_watched();
  good(copy(COUNT + 3, COUNT + 3));
  is_told("out of bounds: abs reads 4 bytes");
  good(copy(COUNT, COUNT - 1));
  is_told("out of bounds: abs writes 4 bytes, of which the last is 4 bytes beside");
}

/* Two launches that become one have the bytes of both; a third one has its own. */
static void recordings_are_watched_too(void **state)
{
  flow_recording *recording;
  (void)state;
  only_watched();
  for (int over = 0; over < 2; over++) {
    good(device->functions->record_begin(queue));
    good(fill_from(memory, COUNT));
    good(copy(COUNT, COUNT));
    good(fill_from(memory, COUNT + over * (COUNT + 1)));
    good(device->functions->record_end(queue, &recording));
    for (int run = 0; run < 2; run++) {
      good(device->functions->replay(queue, recording));
      if (over) is_told("out of bounds");
      else good(device->functions->synchronize(queue));
    }
    device->functions->recording_release(recording);
  }
}

/* Each element of a copy reads what the one before it writes, or none does. */
static void elements_that_meet_are_told(void **state)
{
  (void)state;
  only_watched();
  for (int apart = 0; apart < 2; apart++) {
    flow_operand x = floats_at(memory, COUNT), y = floats_at(memory + (apart ? COUNT : 1), COUNT);
    flow_call call = { .op = FLOW_OP_abs, .queue = queue, .inputs = &x, .input_count = 1, .outputs = &y, .output_count = 1 };
    assign_units_arguments a = { .to = y.data, .from = x.data, .fault = flow_cuda_verdict(&call), .size = 4 };
    good(flow_cuda_launch(&call, CUDA_assign_units, COUNT, &a, sizeof a));
    if (apart) good(device->functions->synchronize(queue));
    else is_told("race: abs: thread ");
  }
}

/* A thread goes to a byte of the block's memory, or of the device's, and writes it or not; 1: nobody is told of a race. */
static int goes(int thread, int write, int is_shared)
{
  static char byte;
  emulated_here.thread = thread;
  return is_shared ? emulated_race_visit_shared(emulated_here.shared, 1, write) : emulated_race_visit(&byte, 1, write);
}

static void begin_block(int64_t block)
{
  static char in_common[8];
  emulated_races_block(block, in_common, sizeof in_common);
}

static void what_barriers_order_is_no_race(void **state)
{
  (void)state;
  for (int is_shared = 0; is_shared < 2; is_shared++) {
    for (int barrier = 0; barrier < 2; barrier++) {
      for (int writes = 0; writes < 4; writes++) {
        emulated_races_begin(FLOW_OP_abs);
        begin_block(0);
        assert_true(goes(3, writes & 1, is_shared));
        assert_true(goes(3, writes & 2, is_shared));
        emulated_here.barrier += barrier;
        assert_int_equal(goes(200, writes & 1, is_shared), barrier || writes == 0);
      }
    }
  }
}

/* Warps wait for their own threads in the middle of a turn; several that have read are as their warp. */
static void what_a_warp_waits_for_is_no_race(void **state)
{
  static const struct {
    int first, second, round, ordered;
  } cases[] = { { 3, 30, 1, 1 }, { 3, 30, 0, 0 }, { 3, 33, 1, 0 }, { 33, 63, 1, 1 }, { 3, EMULATED_ALL_THREADS, 1, 0 } };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    for (int readers = 0; readers < 2; readers++) {
      emulated_races_begin(FLOW_OP_abs);
      begin_block(0);
      assert_true(goes(cases[i].first, !readers, 1));
      if (readers) assert_true(goes(cases[i].first + 1, 0, 1));
      emulated_here.round = cases[i].round;
      assert_int_equal(goes(cases[i].second, 1, 1), cases[i].ordered);
    }
  }
  emulated_races_begin(FLOW_OP_abs);
  begin_block(0);
  assert_true(goes(3, 0, 1));
  assert_true(goes(33, 0, 1));
  emulated_here.round = 1;
  assert_false(goes(4, 1, 1));
}

static void end_block(void)
{
  begin_block(0);
  emulated_here.shared = NULL;
  emulated_here.shared_bytes = 0;
}

/* Blocks have their own memory; in the device's, the last one to arrive finds what those wrote that arrived before. */
static void what_blocks_arrive_for_is_no_race(void **state)
{
  static const uint32_t counter, another;
  (void)state;
  for (int is_shared = 0; is_shared < 2; is_shared++) {
    for (int arrives = 0; arrives < 3; arrives++) {
      emulated_races_begin(FLOW_OP_abs);
      begin_block(7);
      assert_true(goes(0, 1, is_shared));
      if (arrives) emulated_arrive(arrives == 1 ? &counter : &another, 0);
      begin_block(2);
      emulated_here.thread = 0;
      if (arrives) emulated_arrive(&counter, 1);
      assert_int_equal(goes(0, 0, is_shared), is_shared || arrives == 1);
    }
  }
  end_block();
}

/* One thread arrives for its block: others wait for each other before, where they have written, and afterwards, where they read. */
static void who_arrives_brings_what_barriers_are_before(void **state)
{
  static const uint32_t counter;
  (void)state;
  for (int writer = 0; writer < 2; writer++) {
    for (int barriers = 0; barriers < 4; barriers++) {
      for (int late = 0; late < 2; late++) {
        emulated_races_begin(FLOW_OP_abs);
        begin_block(7);
        if (!late) assert_true(goes(writer, 1, 0));
        emulated_here.barrier += barriers & 1;
        emulated_here.thread = 0;
        emulated_arrive(&counter, 0);
        emulated_here.barrier += late;
        if (late) assert_true(goes(writer, 1, 0));
        begin_block(2);
        emulated_here.thread = 3;
        emulated_arrive(&counter, 1);
        emulated_here.barrier += barriers >> 1;
        assert_int_equal(goes(4, 0, 0), !late && barriers >> 1 && (writer == 0 || barriers & 1));
      }
    }
  }
  end_block();
}

/* Beside a block's memory is nothing, and who has to come together comes. */
static void what_a_gpu_would_not_forgive_is_told(void **state)
{
  (void)state;
  emulated_races_begin(FLOW_OP_abs);
  begin_block(0);
  assert_true(emulated_race_visit_shared(emulated_here.shared + 4, 4, 1));
  assert_false(emulated_race_visit_shared(emulated_here.shared + 5, 4, 1));
  assert_non_null(strstr(emulated_refusal(), "abs writes 4 bytes, of which the last is 1 bytes beside the 8 bytes of the block's memory"));
  assert_false(emulated_race_visit_shared(emulated_here.shared - 1, 2, 0));
  emulated_together();
  assert_int_equal(emulated_bounds_leave(), 0);
  emulated_here.thread = 5;
  emulated_together();
  assert_int_equal(emulated_bounds_leave(), 1);
  assert_non_null(strstr(emulated_refusal(), "divergence: abs: thread 5 of block 0"));
  end_block();
}

static void nothing_is_told_unless_it_is_asked_for(void **state)
{
  (void)state;
  setenv("FLOW_EMULATED_BOUNDS", "0", 1);
  good(fill_from(memory, COUNT + 1));
  good(device->functions->synchronize(queue));
  setenv("FLOW_EMULATED_BOUNDS", "1", 1);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_an_op_has_it_may_touch),
    cmocka_unit_test(a_write_beside_it_is_told),
    cmocka_unit_test(a_read_beside_it_is_told),
    cmocka_unit_test(recordings_are_watched_too),
    cmocka_unit_test(elements_that_meet_are_told),
    cmocka_unit_test(what_barriers_order_is_no_race),
    cmocka_unit_test(what_a_warp_waits_for_is_no_race),
    cmocka_unit_test(what_blocks_arrive_for_is_no_race),
    cmocka_unit_test(who_arrives_brings_what_barriers_are_before),
    cmocka_unit_test(what_a_gpu_would_not_forgive_is_told),
    cmocka_unit_test(nothing_is_told_unless_it_is_asked_for),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
