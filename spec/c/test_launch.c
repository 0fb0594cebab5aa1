/* test_launch.c: how calls that no plan cuts are spread over threads: gradients of convolutions go by slots of rows, whose number follows
 * from shapes alone. */
#include "kernel_call.h"

#include "base/team.h"
#include "ops/launch.h"
#include "ops/wide_sum.h"
#include "flow.h"

#define OK(call) assert_int_equal(call, FLOW_OK)

enum { SIDE = 20, CHANNELS = 16, KERNEL = 3 };

typedef struct gradient {
  flow_operand inputs[5], outputs[3];
  flow_attributes attributes;
  flow_call call;
} gradient;

static flow_operand shape_of(int dtype, int rank, const int64_t *dims)
{
  flow_operand x = { .dtype = dtype, .rank = rank };
  memcpy(x.shape, dims, sizeof *dims * (size_t)rank);
  flow_contiguous_strides(rank, dims, x.strides);
  return x;
}

/* Of images of SIDE x SIDE, without data. */
static void make_gradient(gradient *g, int64_t rows, int64_t filters)
{
  static const flow_scalars scalars;
  const int64_t x[] = { rows, SIDE, SIDE, CHANNELS }, w[] = { KERNEL, KERNEL, CHANNELS, filters };
  const int64_t y[] = { rows, SIDE - KERNEL + 1, SIDE - KERNEL + 1, filters }, none[] = { 0 };
  *g = (gradient){
    .inputs = { shape_of(FLOW_FLOAT32, 4, y), shape_of(FLOW_FLOAT32, 4, x), shape_of(FLOW_FLOAT32, 4, w), shape_of(FLOW_FLOAT32, 4, y),
                shape_of(FLOW_UINT8, 1, none) },
    .outputs = { shape_of(FLOW_FLOAT32, 4, x), shape_of(FLOW_FLOAT32, 4, w), shape_of(FLOW_FLOAT32, 1, &filters) },
    .attributes = { .convolution = { .stride = { 1, 1 }, .dilation = { 1, 1 }, .groups = 1, .input_size = { SIDE, SIDE } } },
  };
  g->call = (flow_call){
    .op = FLOW_OP_convolution_gradient,
    .attributes = &g->attributes,
    .input_count = 5,
    .output_count = 3,
    .inputs = g->inputs,
    .outputs = g->outputs,
    .scalars = &scalars
  };
}

static flow_cut cut_of(const gradient *g, size_t *shared)
{
  flow_cut cut;
  const flow_op_record *record = flow_op(g->call.op);
  const flow_kernel *kernel = flow_select_kernel(flow_cpu_device(), &g->call);
  flow_cut_call(record, kernel, &g->call, &cut);
  *shared = flow_shared_bytes(record, kernel, &g->call);
  return cut;
}

static void gradients_of_convolutions_go_by_slots(void **state)
{
  static const int64_t rows[] = { 2, 4, 16, 20, 37, 256 };
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    gradient g;
    size_t shared;
    make_gradient(&g, rows[i], 16);
    const flow_cut cut = cut_of(&g, &shared);
    const int64_t slots = cut.parts[0], least = rows[i] < 4 ? rows[i] : 4;
    assert_true(cut.by_rows && cut.sums && cut.phases == 2 && cut.parts[1] >= 2);
    assert_in_range(slots, least, FLOW_SUM_SLOTS);
    assert_true(slots * cut.chunk >= rows[i] && (slots - 1) * cut.chunk < rows[i]); /* all rows, none of them empty */
    assert_true(cut.partials + (size_t)slots * cut.slot_bytes <= shared);
    assert_true(cut.slot_bytes >= sizeof(float) * (KERNEL * KERNEL * CHANNELS * 16 + 16));
    for (int threads = 1; threads <= 5; threads++) {
      size_t same;
      OK(flow_set_threads(threads));
      assert_int_equal(cut_of(&g, &same).parts[0], slots);
      assert_int_equal(same, shared);
    }
    OK(flow_set_threads(0));
  }
}

static void what_nobody_reads_has_no_slots(void **state)
{
  gradient g;
  size_t shared;
  (void)state;
  make_gradient(&g, 16, 16);
  g.outputs[1].unused = g.outputs[2].unused = 1;
  flow_cut cut = cut_of(&g, &shared);
  assert_true(cut.by_rows && cut.slot_bytes == 0 && cut.parts[0] > 1 && cut.parts[1] == 0);
  make_gradient(&g, 1, 16); /* a single row is one part */
  cut = cut_of(&g, &shared);
  assert_true(!cut.by_rows && cut.parts[0] == 1);
}

/* Sums of many megabytes have few slots, and more memory than `usual` only for the first of them. */
static void slots_take_little_memory(void **state)
{
  (void)state;
  assert_int_equal(flow_slots_for_sums(0, 100, 1000), FLOW_SUM_SLOTS);
  assert_int_equal(flow_slots_for_sums(10, 100, 1000), 8);
  assert_int_equal(flow_slots_for_sums(200, 100, 1000), 4);
  assert_int_equal(flow_slots_for_sums(400, 100, 1000), 2);
  assert_int_equal(flow_slots_for_sums(4000, 100, 1000), 1);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(gradients_of_convolutions_go_by_slots),
    cmocka_unit_test(what_nobody_reads_has_no_slots),
    cmocka_unit_test(slots_take_little_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
