/* test_initializers.c: the distributions of initializers, and what their numbers depend on. */
#include "layer_options.h"

#include "layers/initializers.h"

enum { MANY = 40000 };

/* `count` numbers of an initializer for the shape {count / columns, columns}. */
static double *drawn(const char *initializer, const char *options, double seed, int64_t count, int64_t columns)
{
  flow_tensor *tensor;
  flow_arguments *arguments = options_of(options);
  int64_t shape[2] = { count / columns, columns };
  double *values = malloc(sizeof *values * (size_t)count);
  assert_non_null(values);
  assert_int_equal(flow_tensor_new(FLOW_FLOAT32, 2, shape, &tensor), FLOW_OK);
  if (flow_initialize(context, initializer, arguments, seed, tensor) != FLOW_OK) fail_msg("%s", flow_last_error());
  assert_int_equal(flow_tensor_read(tensor, values, (double)count), FLOW_OK);
  flow_tensor_release(tensor);
  flow_arguments_release(arguments);
  return values;
}

/* Mean, standard deviation and largest distance from `mean`, each within 2 % of the deviation. */
static void assert_distribution(const char *initializer, const char *options, double mean, double deviation, double most)
{
  double sum = 0, squares = 0, largest = 0, *values = drawn(initializer, options, 3, MANY, 200);
  for (int i = 0; i < MANY; i++) sum += values[i];
  for (int i = 0; i < MANY; i++) {
    squares += (values[i] - sum / MANY) * (values[i] - sum / MANY);
    largest = fmax(largest, fabs(values[i] - mean));
  }
  if (!(fabs(sum / MANY - mean) <= 0.02 * deviation && fabs(sqrt(squares / MANY) - deviation) <= 0.02 * deviation) || largest > most ||
      largest < 0.95 * (most < 4 * deviation ? most : 3 * deviation))
    fail_msg("%s: mean %g, deviation %g, largest %g; expected %g, %g, %g", initializer, sum / MANY, sqrt(squares / MANY), largest, mean,
             deviation, most);
  free(values);
}

static void initializers_have_their_distributions(void **state)
{
  (void)state;
  /* the shape is {200, 200}: fan in = fan out = 200; a normal cut at 2 deviations keeps 0.8796 of its deviation */
  double limit = sqrt(6.0 / 400), he = sqrt(2.0 / 200), cut = 0.87962566103423978;
  assert_distribution("glorot_uniform", "", 0, limit / sqrt(3), limit);
  assert_distribution("GlorotNormal", "", 0, sqrt(1.0 / 200), 2 * sqrt(1.0 / 200) / cut);
  assert_distribution("he_uniform", "", 0, he, he * sqrt(3));
  assert_distribution("he_normal", "", 0, he, 2 * he / cut);
  assert_distribution("lecun_uniform", "", 0, sqrt(1.0 / 200), sqrt(3.0 / 200));
  assert_distribution("lecun_normal", "", 0, sqrt(1.0 / 200), 2 * sqrt(1.0 / 200) / cut);
  assert_distribution("random_uniform", "minval=1 maxval=3", 2, 1 / sqrt(3), 1);
  assert_distribution("random_normal", "mean=5 stddev=2", 5, 2, INFINITY);
  assert_distribution("truncated_normal", "stddev=1", 0, cut, 2);
  assert_distribution("variance_scaling", "scale=3 mode=fan_out distribution=uniform", 0, sqrt(3.0 / 200), sqrt(9.0 / 200));
}

static void initializers_depend_on_seed_and_index_only(void **state)
{
  (void)state;
  double *few = drawn("truncated_normal", "", 11, 10, 1), *many = drawn("truncated_normal", "", 11, 1000, 1);
  double *other = drawn("truncated_normal", "", 12, 1000, 1), *named = drawn("truncated_normal", "seed=11", 12, 1000, 1);
  assert_memory_equal(few, many, 10 * sizeof *few);
  assert_memory_not_equal(many, other, 1000 * sizeof *many);
  assert_memory_equal(many, named, 1000 * sizeof *many);        /* its own seed wins */
  free(few), free(many), free(other), free(named);
}

/* A convolution's window counts for both fans: {3, 3, 2, 4} has 18 in and 36 out. */
static void fans_count_the_window(void **state)
{
  (void)state;
  flow_tensor *tensor;
  double values[72], largest = 0;
  const int64_t shape[4] = { 3, 3, 2, 4 };
  assert_int_equal(flow_tensor_new(FLOW_FLOAT32, 4, shape, &tensor), FLOW_OK);
  assert_int_equal(flow_initialize(context, "glorot_uniform", NULL, 1, tensor), FLOW_OK);
  assert_int_equal(flow_tensor_read(tensor, values, 72), FLOW_OK);
  for (int i = 0; i < 72; i++) largest = fmax(largest, fabs(values[i]));
  assert_true(largest <= sqrt(6.0 / 54) && largest > 0.9 * sqrt(6.0 / 54));
  assert_int_equal(flow_initialize(context, "glorot", NULL, 1, tensor), FLOW_INVALID_ARGUMENT);
  flow_tensor_release(tensor);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(initializers_have_their_distributions),
    cmocka_unit_test(initializers_depend_on_seed_and_index_only),
    cmocka_unit_test(fans_count_the_window),
  };
  return cmocka_run_group_tests(tests, make_context, release_context);
}
