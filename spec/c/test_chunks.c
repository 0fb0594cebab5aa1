/* test_chunks.c: how many rows go through the ops of a segment at a time: as many as the cache holds, more where an op reads more weights
 * than that for each chunk, and no more for a table of which an op reads single rows. */
#include "graphs.h"

static const flow_attributes same = { .convolution = { .stride = { 1, 1 }, .dilation = { 1, 1 }, .padding = { 1, 1, 1, 1 }, .groups = 1 } };

/* The stage of the only segment of rows, for a batch of that many. */
static const flow_stage *stage_of(flow_plan *plan, int rows)
{
  flow_instance *instance = instance_of(plan, rows);
  for (int s = 0; s < plan->segment_count; s++)
    if (plan->segments[s].by_rows) return &instance->stages[s];
  fail_msg("the plan has no segment of rows");
  return NULL;
}

/* Two convolutions of images of size x size pixels, and what is between them. */
static flow_plan *convolutions(int64_t size, int64_t channels)
{
  flow_variable *kernel = variable_of(noise(4, SHAPE(3, 3, channels, channels), 1), "kernel");
  OK(flow_trace_begin(context));
  flow_tensor *x = input_of(FLOW_FLOAT32, 4, SHAPE(-1, size, size, channels));
  flow_tensor *y = OP1(tanh, op3(FLOW_OP_convolution, x, reading(kernel), NULL, &same));
  return PLAN(op3(FLOW_OP_convolution, y, reading(kernel), NULL, &same));
}

static void test_rows_that_the_cache_holds(void **state)
{
  (void)state;
  const flow_stage *stage = stage_of(convolutions(64, 32), 64); /* 36 KB of weights, half a megabyte for each image */
  assert_true(stage->most_chunk <= 4);
}

static void test_more_rows_for_large_weights(void **state)
{
  (void)state;
  const flow_stage *stage = stage_of(convolutions(4, 512), 64); /* 9 MB of weights, 32 KB for each image */
  assert_true(stage->most_chunk >= 64);
}

static void test_tables_are_not_read_whole(void **state)
{
  (void)state;
  flow_variable *table = variable_of(noise(2, SHAPE(20000, 256), 1), "table"); /* 20 MB */
  OK(flow_trace_begin(context));
  flow_tensor *indices = input_of(FLOW_INT32, 2, SHAPE(-1, 64));
  const flow_stage *stage = stage_of(PLAN(OP1(tanh, OP2(gather, reading(table), indices))), 64); /* 64 KB for each row */
  assert_true(stage->most_chunk < 64);
}

int main(void)
{
  const struct CMUnitTest tests[] = { GRAPH_TEST(test_rows_that_the_cache_holds), GRAPH_TEST(test_more_rows_for_large_weights),
                                      GRAPH_TEST(test_tables_are_not_read_whole) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
