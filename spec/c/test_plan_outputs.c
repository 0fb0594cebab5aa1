/* test_plan_outputs.c: outputs of a run are made where they belong if the layout allows it, else copied; either way a later run leaves
 * them alone. */
#include "graphs.h"
#include "autodiff/apply.h"
#include "run/replicas/replica_set.h"

enum { COLUMNS = 32, MOST = 50 };

/* An op's result, the same memory by another name, an input, what one output is made of and another one is, and a sum over rows. */
static flow_plan *plan_of_outputs(int replicas)
{
  flow_context_set_replicas(context, replicas);
  OK(flow_trace_begin(context));
  flow_context_set_replicas(context, 1);
  flow_tensor *x = input_of(FLOW_FLOAT32, 2, SHAPE(-1, COLUMNS)), *y = OP1(exp, x), *same, *total;
  OK(flow_apply1(context, FLOW_OP_reshape, y, NULL, NULL, &(flow_attributes){ .shape = { .rank = 3, .dims = { -1, COLUMNS, 1 } } }, &same));
  keep(same, release_tensor);
  OK(flow_sum_over_replicas(context, sum_of(x), &total));
  keep(total, release_tensor);
  return PLAN(y, same, x, OP1(neg, y), total);
}

static void outputs_stay(void **state)
{
  (void)state;
  enum { OUTPUTS = 5, RUNS = 4 };
  static const char moves[OUTPUTS] = { 1, 0, 0, 1, 0 };
  for (int replicas = 1; replicas <= 3; replicas++) {
    flow_instance *instance = instance_of(plan_of_outputs(replicas), MOST);
    if (replicas > 1) OK(flow_instance_set_replicas(instance, replicas, NULL, NULL));
    flow_tensor *x[RUNS], *outputs[RUNS][OUTPUTS];
    for (int r = 0; r < RUNS; r++) {
      x[r] = noise(2, SHAPE(r == 2 ? 1 : MOST - 7 * r, COLUMNS), (unsigned)r);
      run(instance, &x[r], 1, r == 1 ? NULL : outputs[r]);
      for (int i = 0; i < OUTPUTS; i++) {
        int root = instance->plan->roots[instance->plan->outputs[i]];
        if (replicas == 1) assert_int_equal(instance->output_moves[i], i == 4 ? instance->output_moves[4] : moves[i]);
        if (instance->output_moves[i]) assert_ptr_equal(instance->part.bases[root], instance->arena + instance->offsets[root]);
      }
    }
    for (int r = 0; r < RUNS; r++) {
      if (r == 1) continue;
      flow_tensor *y = OP1(exp, x[r]);
      expect_same_bits(outputs[r][0], y);
      assert_memory_equal(outputs[r][1]->data, y->data, sizeof(float) * (size_t)flow_tensor_size(y));
      expect_same_bits(outputs[r][2], x[r]);
      expect_same_bits(outputs[r][3], OP1(neg, y));
      expect_close(outputs[r][4], sum_of(x[r]), 1e-4);
    }
  }
}

/* Rows that are predicted batch by batch are those of one run, whether they lie on a cache line or not, and rows around them stay. */
static void rows_go_where_they_belong(void **state)
{
  (void)state;
  enum { ROWS = 43, WIDTHS = 2 };
  static const int64_t widths[WIDTHS] = { 32, 5 };
  for (int replicas = 1; replicas <= 3; replicas++)
    for (int w = 0; w < WIDTHS; w++)
      for (int64_t size = 1; size <= ROWS; size += 7) {
        flow_context_set_replicas(context, replicas);
        OK(flow_trace_begin(context));
        flow_context_set_replicas(context, 1);
        flow_tensor *x = input_of(FLOW_FLOAT32, 2, SHAPE(-1, widths[w])), *y = OP1(exp, x);
        flow_instance *instance = instance_of(PLAN(y, x, OP1(neg, y)), ROWS);
        if (replicas > 1) OK(flow_instance_set_replicas(instance, replicas, NULL, NULL));
        flow_tensor *given = noise(2, SHAPE(ROWS, widths[w]), (unsigned)size), *all[3], *outputs[3];
        run(instance, &given, 1, all);
        for (int i = 0; i < 3; i++) outputs[i] = noise(2, SHAPE(ROWS + 2, widths[w]), 99);
        const int64_t first = size % 5, rows = ROWS - 2 * first;
        OK(flow_instance_predict_rows(context, instance, &given, 1, (double)first, (double)rows, (double)size, outputs));
        for (int i = 0; i < 3; i++) {
          const size_t row = sizeof(float) * (size_t)widths[w], before = row * (size_t)first, some = row * (size_t)rows;
          const char *untouched = noise(2, SHAPE(ROWS + 2, widths[w]), 99)->data;
          assert_memory_equal(outputs[i]->data, untouched, before);
          assert_memory_equal(outputs[i]->data + before, all[i]->data + before, some);
          assert_memory_equal(outputs[i]->data + before + some, untouched + before + some, row * (ROWS + 2) - before - some);
        }
      }
}

static void refuses_outputs_that_cannot_take_the_rows(void **state)
{
  (void)state;
  OK(flow_trace_begin(context));
  flow_tensor *x = input_of(FLOW_FLOAT32, 2, SHAPE(-1, COLUMNS));
  flow_instance *instance = instance_of(PLAN(OP1(neg, x)), MOST);
  flow_tensor *given = noise(2, SHAPE(MOST, COLUMNS), 1), *few = noise(2, SHAPE(MOST - 1, COLUMNS), 2);
  flow_tensor *wide = noise(2, SHAPE(MOST, COLUMNS + 1), 3), *right = noise(2, SHAPE(MOST, COLUMNS), 4);
  OK(flow_instance_predict_rows(context, instance, &given, 1, MOST, 0, 8, &right));
  expect_same_bits(right, noise(2, SHAPE(MOST, COLUMNS), 4));
  FAILS(flow_instance_predict_rows(context, instance, &given, 1, 0, MOST, 8, &few), FLOW_INVALID_ARGUMENT, "cannot take 50 rows");
  FAILS(flow_instance_predict_rows(context, instance, &given, 1, 0, MOST, 8, &wide), FLOW_INVALID_ARGUMENT, "cannot take 50 rows");
  FAILS(flow_instance_predict_rows(context, instance, &given, 1, 0, MOST, 0, &right), FLOW_INVALID_ARGUMENT, "50 rows in batches of 0");
  FAILS(flow_instance_predict_rows(context, instance, &given, 1, -1, MOST, 8, &right), FLOW_INVALID_ARGUMENT, "the first row is -1");
  FAILS(flow_instance_predict_rows(context, instance, &few, 1, 0, MOST, 8, &right), FLOW_INVALID_ARGUMENT, "the plan was traced for");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    GRAPH_TEST(outputs_stay),
    GRAPH_TEST(rows_go_where_they_belong),
    GRAPH_TEST(refuses_outputs_that_cannot_take_the_rows),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
