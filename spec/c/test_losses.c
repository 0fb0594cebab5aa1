/* test_losses.c: values of losses and metrics by hand, label shapes, weights, logits that are the input of a softmax, failures. */
#include "floats.h"

#include "ops/op.h"

static flow_context *context;

static int make_context(void **state)
{
  (void)state;
  return flow_context_new(&context);
}

static int release_context(void **state)
{
  (void)state;
  flow_context_release(context);
  return 0;
}

static flow_tensor *floats(const double *values, int rank, const int64_t *shape) { return tensor_of(FLOW_FLOAT32, values, rank, shape); }
static flow_tensor *integers(const double *values, int rank, const int64_t *shape) { return tensor_of(FLOW_INT32, values, rank, shape); }

/* The loss's values; releases both tensors and the options. */
static flow_tensor *values_of(const char *loss, flow_arguments *options, flow_tensor *y_true, flow_tensor *y_pred)
{
  flow_tensor *values = NULL;
  flow_status status = flow_loss_values(context, flow_loss_find(loss), options, y_true, y_pred, &values);
  if (status != FLOW_OK) fail_msg("%s", flow_last_error());
  flow_tensor_release(y_true);
  flow_tensor_release(y_pred);
  flow_arguments_release(options);
  return values;
}

static flow_arguments *option(const char *name, double number)
{
  flow_arguments *options;
  assert_int_equal(flow_arguments_new(&options), FLOW_OK);
  if (strcmp(name, "from_logits") == 0) assert_int_equal(flow_arguments_set_boolean(options, name, number != 0), FLOW_OK);
  else assert_int_equal(flow_arguments_set_number(options, name, number), FLOW_OK);
  return options;
}

static void sparse_labels_of_any_shape_and_dtype(void **state)
{
  (void)state;
  /* -log of the label's share */
  const double *p = LIST(0.5, 0.25, 0.25, 0.125, 0.75, 0.125), *expected = LIST(log(2), log(8));
  const char *name = "SparseCategoricalCrossentropy";
  assert_values(values_of(name, NULL, integers(LIST(0, 2), SHAPE(2)), floats(p, SHAPE(2, 3))), expected, SHAPE(2));
  assert_values(values_of(name, NULL, integers(LIST(0, 2), SHAPE(2, 1)), floats(p, SHAPE(2, 3))), expected, SHAPE(2));
  assert_values(values_of(name, NULL, floats(LIST(0, 2), SHAPE(2)), floats(p, SHAPE(2, 3))), expected, SHAPE(2));
  assert_values(values_of(name, NULL, tensor_of(FLOW_UINT8, LIST(0, 2), SHAPE(2)), floats(p, SHAPE(2, 3))), expected, SHAPE(2));
  /* a probability of 0 is clipped: -log(1e-7 / (1 - 1e-7 + 1e-7)) */
  assert_values(values_of(name, NULL, integers(LIST(1), SHAPE(1)), floats(LIST(1, 0), SHAPE(1, 2))), LIST(16.118096), SHAPE(1));
  /* logits are not normalized */
  assert_values(values_of(name, option("from_logits", 1), integers(LIST(1), SHAPE(1)), floats(LIST(300, -300), SHAPE(1, 2))), LIST(600),
                SHAPE(1));
}

static void other_losses_by_hand(void **state)
{
  (void)state;
  const double *y = LIST(1, 0), *p = LIST(0.8, 0.4), *z = LIST(40, -2);
  assert_values(values_of("bce", NULL, floats(y, SHAPE(1, 2)), floats(p, SHAPE(1, 2))), LIST((-log(0.8) - log(0.6)) / 2), SHAPE(1));
  assert_values(values_of("bce", option("from_logits", 1), floats(y, SHAPE(1, 2)), floats(z, SHAPE(1, 2))),
                LIST((log1p(exp(-40)) + log1p(exp(-2))) / 2), SHAPE(1));
  assert_values(values_of("bce", option("label_smoothing", 0.2), floats(y, SHAPE(1, 2)), floats(p, SHAPE(1, 2))),
                LIST((-0.9 * log(0.8) - 0.1 * log(0.2) - 0.1 * log(0.4) - 0.9 * log(0.6)) / 2), SHAPE(1));
  /* probabilities are normalized: 2 of 8 */
  assert_values(values_of("categorical_crossentropy", NULL, floats(LIST(0, 1), SHAPE(1, 2)),
                          floats(LIST(6, 2), SHAPE(1, 2))), LIST(log(4)), SHAPE(1));
  assert_values(values_of("categorical_crossentropy", option("label_smoothing", 0.5), floats(LIST(0, 1), SHAPE(1, 2)),
                          floats(LIST(6, 2), SHAPE(1, 2))), LIST(0.75 * log(4) - 0.25 * log(0.75)), SHAPE(1));
  assert_values(values_of("mse", NULL, floats(LIST(1, 2, 3, 4), SHAPE(2, 2)), floats(LIST(1, 4, 6, 8), SHAPE(2, 2))), LIST(2, 12.5),
                SHAPE(2));
  assert_values(values_of("MeanAbsoluteError", NULL, floats(LIST(1, 2, 3, 4), SHAPE(2, 2)), floats(LIST(1, 4, 6, 8), SHAPE(2, 2))),
                LIST(1, 3.5), SHAPE(2));
  assert_values(values_of("mape", NULL, floats(LIST(2, 4), SHAPE(1, 2)), floats(LIST(3, 3), SHAPE(1, 2))), LIST(37.5), SHAPE(1));
  assert_values(values_of("msle", NULL, floats(LIST(1), SHAPE(1, 1)), floats(LIST(3), SHAPE(1, 1))), LIST(log(2) * log(2)), SHAPE(1));
  assert_values(values_of("huber", NULL, floats(LIST(0, 0), SHAPE(1, 2)), floats(LIST(0.5, -3), SHAPE(1, 2))), LIST((0.125 + 2.5) / 2),
                SHAPE(1));
  assert_values(values_of("huber", option("delta", 4), floats(LIST(0, 0), SHAPE(1, 2)), floats(LIST(0.5, -3), SHAPE(1, 2))),
                LIST((0.125 + 4.5) / 2), SHAPE(1));
}

static void a_trailing_dimension_of_one_is_aligned(void **state)
{
  (void)state;
  const double *y = LIST(1, 2, 3), *p = LIST(2, 4, 6), *expected = LIST(1, 4, 9);
  assert_values(values_of("mse", NULL, floats(y, SHAPE(3)), floats(p, SHAPE(3, 1))), expected, SHAPE(3));
  assert_values(values_of("mse", NULL, floats(y, SHAPE(3, 1)), floats(p, SHAPE(3))), expected, SHAPE(3));
  assert_values(values_of("mse", NULL, integers(y, SHAPE(3)), floats(p, SHAPE(3))), LIST(14.0 / 3), 0, NULL); /* one sample */
  assert_values(values_of("mse", NULL, floats(y, SHAPE(1, 3)), floats(p, SHAPE(1, 3, 1))), LIST(14.0 / 3), SHAPE(1));
}

/* Far beyond what a clipped probability can tell: the tape knows the softmax, the loss uses its input. */
static void logits_behind_a_softmax_are_used(void **state)
{
  (void)state;
  flow_tensor *z = floats(LIST(200, -200), SHAPE(1, 2)), *p = NULL;
  flow_tape *tape;
  assert_int_equal(flow_tape_begin(context, &tape), FLOW_OK);
  assert_int_equal(flow_tape_watch(tape, z), FLOW_OK);
  assert_int_equal(flow_activate(context, "softmax", z, &p), FLOW_OK);
  assert_values(values_of("sparse_categorical_crossentropy", NULL, integers(LIST(1), SHAPE(1)), flow_tensor_retain(p)), LIST(400),
                SHAPE(1));
  assert_values(values_of("categorical_crossentropy", NULL, floats(LIST(0, 1), SHAPE(1, 2)), flow_tensor_retain(p)), LIST(400), SHAPE(1));
  assert_int_equal(flow_tape_end(context, tape), FLOW_OK);
  flow_tape_release(tape);
  flow_tensor_release(p);
  flow_tensor_release(z);
}

static flow_tensor *mean_of(flow_tensor *values, flow_tensor *weights)
{
  flow_tensor *mean = NULL;
  assert_int_equal(flow_loss_reduce(context, values, weights, &mean), FLOW_OK);
  flow_tensor_release(values);
  flow_tensor_release(weights);
  return mean;
}

static void the_mean_counts_values_not_weights(void **state)
{
  (void)state;
  assert_values(mean_of(floats(LIST(1, 2, 6), SHAPE(3)), NULL), LIST(3), 0, NULL);
  assert_values(mean_of(floats(LIST(1, 2, 6), SHAPE(3)), floats(LIST(0, 3, 0), SHAPE(3))), LIST(2), 0, NULL);
  assert_values(mean_of(floats(LIST(1, 2, 6), SHAPE(3)), floats(LIST(0, 3, 0), SHAPE(3, 1))), LIST(2), 0, NULL);
  assert_values(mean_of(floats(LIST(1, 2, 3, 4), SHAPE(2, 2)), integers(LIST(0, 2), SHAPE(2))), LIST(3.5), 0, NULL);
  assert_values(mean_of(floats(LIST(0), SHAPE(0)), NULL), LIST(0), 0, NULL);
}

static flow_tensor *metric_of(const char *metric, flow_arguments *options, flow_tensor *y_true, flow_tensor *y_pred)
{
  flow_tensor *values = NULL;
  flow_status status = flow_metric_values(context, flow_metric_find(metric), options, y_true, y_pred, &values);
  if (status != FLOW_OK) fail_msg("%s", flow_last_error());
  assert_int_equal(flow_tensor_dtype(values), FLOW_FLOAT32);
  flow_tensor_release(y_true);
  flow_tensor_release(y_pred);
  flow_arguments_release(options);
  return values;
}

static void accuracy_is_chosen_by_shapes(void **state)
{
  (void)state;
  const double *scores = LIST(0.1, 0.7, 0.2, 0.5, 0.5, 0);      /* the first of equals: 0 */
  assert_values(metric_of("accuracy", NULL, integers(LIST(1, 1), SHAPE(2)), floats(scores, SHAPE(2, 3))), LIST(1, 0), SHAPE(2));
  assert_values(metric_of("Acc", NULL, integers(LIST(1, 0), SHAPE(2, 1)), floats(scores, SHAPE(2, 3))), LIST(1, 1), SHAPE(2));
  assert_values(metric_of("accuracy", NULL, floats(LIST(0, 0, 1, 1, 0, 0), SHAPE(2, 3)), floats(scores, SHAPE(2, 3))), LIST(0, 1),
                SHAPE(2));
  assert_values(metric_of("accuracy", NULL, integers(LIST(1, 0, 1), SHAPE(3)), floats(LIST(0.6, 0.4, 0.5), SHAPE(3, 1))), LIST(1, 1, 0),
                SHAPE(3, 1));
  assert_values(metric_of("BinaryAccuracy", option("threshold", 0.3), integers(LIST(1, 0, 1), SHAPE(3)),
                          floats(LIST(0.6, 0.4, 0.5), SHAPE(3))), LIST(1, 0, 1), SHAPE(3));
  assert_values(metric_of("accuracy", NULL, integers(LIST(1, 1), SHAPE(1, 2)), floats(scores, SHAPE(1, 2, 3))), LIST(1, 0), SHAPE(1, 2));
  assert_values(metric_of("mae", NULL, floats(LIST(1, 3), SHAPE(1, 2)), floats(LIST(2, 1), SHAPE(1, 2))), LIST(1.5), SHAPE(1));
}

static void assert_refused(const char *loss, flow_tensor *y_true, flow_tensor *y_pred, const char *text)
{
  flow_tensor *values = NULL;
  assert_int_equal(flow_loss_values(context, flow_loss_find(loss), NULL, y_true, y_pred, &values), FLOW_INVALID_ARGUMENT);
  assert_string_equal(flow_last_error(), text);
  assert_null(values);
  flow_tensor_release(y_true);
  flow_tensor_release(y_pred);
}

static void what_does_not_fit_is_named(void **state)
{
  (void)state;
  flow_tensor *values = NULL;
  const double *zeros = LIST(0, 0, 0, 0, 0, 0);
  assert_refused("sparse_categorical_crossentropy", integers(zeros, SHAPE(2, 3)), floats(zeros, SHAPE(2, 3)),
                 "sparse_categorical_crossentropy: y_true {2, 3} does not fit y_pred {2, 3}: "
                 "expected integer labels of one dimension less, {2}; for one-hot labels use categorical_crossentropy");
  assert_refused("categorical_crossentropy", integers(zeros, SHAPE(2)), floats(zeros, SHAPE(2, 3)),
                 "categorical_crossentropy: y_true {2} and y_pred {2, 3} must have one shape; for integer labels use "
                 "sparse_categorical_crossentropy");
  assert_refused("sparse_categorical_crossentropy", integers(zeros, SHAPE(3)), floats(zeros, SHAPE(2, 3)),
                 "sparse_categorical_crossentropy: y_true {3} does not fit y_pred {2, 3}: "
                 "expected integer labels of one dimension less, {2}; for one-hot labels use categorical_crossentropy");
  assert_refused("mse", floats(zeros, SHAPE(2, 2)), floats(zeros, SHAPE(2, 3)),
                 "mean_squared_error: y_true {2, 2} and y_pred {2, 3} do not fit: their dimensions, last to first, must be equal or 1");
  assert_refused("bce", floats(zeros, SHAPE(3, 1)), floats(zeros, SHAPE(2)),
                 "binary_crossentropy: y_true {3, 1} and y_pred {2} do not fit: their dimensions, last to first, must be equal or 1");
  flow_tensor *alone = floats(zeros, SHAPE(2));
  assert_int_equal(flow_loss_values(context, flow_loss_find("mse"), NULL, NULL, alone, &values), FLOW_INVALID_ARGUMENT);
  flow_tensor_release(alone);
  assert_string_equal(flow_last_error(), "flow_loss_values: y_true is NULL");
  assert_int_equal(flow_loss_find("mean_squred_error"), -1);
  assert_int_equal(flow_loss_find("mse|MSE"), -1);
  assert_int_equal(flow_loss_values(context, -1, NULL, NULL, NULL, &values), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_loss_values(context, flow_loss_find("mse"), NULL, NULL, NULL, &values), FLOW_INVALID_ARGUMENT);
  assert_null(flow_loss_name(1000));
  assert_null(flow_metric_name(-1));
}

/* Every allocation of a loss fails once; the sanitizers watch for leaks. */
static void memory_may_run_out_anywhere(void **state)
{
  (void)state;
  int failures = 0;
  flow_tensor *y = floats(LIST(1, 0), SHAPE(1, 2)), *p = floats(LIST(0.8, 0.4), SHAPE(1, 2));
  for (int after = 0;; after++) {
    flow_tensor *values = NULL;
    flow_fail_allocation(after);
    flow_status status = flow_loss_values(context, flow_loss_find("bce"), NULL, y, p, &values);
    flow_fail_allocation(-1);
    if (status == FLOW_OK) {
      flow_tensor_release(values);
      break;
    }
    assert_int_equal(status, FLOW_OUT_OF_MEMORY);
    assert_null(values);
    failures++;
  }
  assert_true(failures > 10);
  flow_tensor_release(y);
  flow_tensor_release(p);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(sparse_labels_of_any_shape_and_dtype),
    cmocka_unit_test(other_losses_by_hand),
    cmocka_unit_test(a_trailing_dimension_of_one_is_aligned),
    cmocka_unit_test(logits_behind_a_softmax_are_used),
    cmocka_unit_test(the_mean_counts_values_not_weights),
    cmocka_unit_test(accuracy_is_chosen_by_shapes),
    cmocka_unit_test(what_does_not_fit_is_named),
    cmocka_unit_test(memory_may_run_out_anywhere),
  };
  return cmocka_run_group_tests(tests, make_context, release_context);
}
