/* test_arguments.c: what a caller gives, what a record declares, and the sentences that tell them apart. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "layers/arguments.h"
#include "base/names.h"

static const flow_argument parameters[] = {
  { "filters", FLOW_INTEGER, NULL, NULL },
  { "kernel_size", FLOW_PAIR, "3,3", NULL },
  { "padding", FLOW_TEXT, "valid", "valid|same|!causal" },
  { "rate", FLOW_NUMBER, "1e-3", NULL },
  { "use_bias", FLOW_BOOLEAN, "true", NULL },
  { "activation", FLOW_ACTIVATION, "linear", NULL },
  { "kernel_initializer", FLOW_INITIALIZER, "glorot_uniform", NULL },
  { "target", FLOW_SHAPE, "2,-1", NULL },
  { "seed", FLOW_INTEGER, "null", NULL },
  { "kernel_regularizer", FLOW_ABSENT, "null", NULL },
  FLOW_ARGUMENTS_END
};

static flow_arguments *given(void)
{
  flow_arguments *arguments;
  assert_int_equal(flow_arguments_new(&arguments), FLOW_OK);
  return arguments;
}

/* Completes and releases `arguments`; the call must fail with this status. text is the whole message, or, with "..." at its end, how the
 * message begins. */
static void assert_refused(flow_arguments *arguments, flow_status status, const char *text)
{
  flow_arguments *complete = NULL;
  assert_int_equal(flow_arguments_complete("Box", parameters, arguments, &complete), status);
  size_t length = strlen(text);
  if (length > 3 && strcmp(text + length - 3, "...") == 0) assert_memory_equal(flow_last_error(), text, length - 3);
  else assert_string_equal(flow_last_error(), text);
  assert_null(complete);
  flow_arguments_release(arguments);
}

static void defaults_are_read_from_the_record(void **state)
{
  (void)state;
  flow_arguments *arguments = given(), *complete;
  const double *list;
  int32_t pair[2];
  flow_arguments_set_number(arguments, "filters", 16);
  assert_int_equal(flow_arguments_complete("Box", parameters, arguments, &complete), FLOW_OK);
  flow_arguments_release(arguments);      /* the completed set is a copy */
  assert_int_equal(flow_argument_integer(complete, "filters"), 16);
  flow_argument_pair(complete, "kernel_size", pair);
  assert_int_equal(pair[0], 3);
  assert_int_equal(pair[1], 3);
  assert_string_equal(flow_argument_text(complete, "padding"), "valid");
  assert_true(flow_argument_number(complete, "rate") == 0.001);      /* the very double that C reads */
  assert_true(flow_argument_boolean(complete, "use_bias"));
  assert_string_equal(flow_argument_text(complete, "activation"), "linear");
  assert_int_equal(flow_argument_list(complete, "target", &list), 2);
  assert_true(list[0] == 2 && list[1] == -1);
  assert_true(flow_argument_is_null(complete, "seed"));
  assert_true(flow_argument_is_null(complete, "kernel_initializer.seed"));
  assert_true(flow_argument_is_null(complete, "kernel_regularizer"));
  flow_arguments_release(complete);
}

static void given_values_replace_defaults(void **state)
{
  (void)state;
  flow_arguments *arguments = given(), *complete, *options;
  const double *list, shape[3] = { 7, -1, 2 };
  int32_t pair[2];
  flow_arguments_set_number(arguments, "filters", 1);
  flow_arguments_set_number(arguments, "filters", 8);       /* the last one counts */
  flow_arguments_set_number(arguments, "kernel_size", 5);
  flow_arguments_set_text(arguments, "padding", "SAME");
  flow_arguments_set_boolean(arguments, "use_bias", 0);
  flow_arguments_set_numbers(arguments, "target", shape, 3);
  flow_arguments_set_number(arguments, "seed", 9007199254740991.0);
  flow_arguments_set_text(arguments, "kernel_initializer", "RandomNormal");
  flow_arguments_set_number(arguments, "kernel_initializer.stddev", 0.5);
  flow_arguments_set_null(arguments, "rate");               /* null stands for the default */
  flow_arguments_set_null(arguments, "kernel_regularizer");
  assert_int_equal(flow_arguments_complete("Box", parameters, arguments, &complete), FLOW_OK);
  flow_arguments_release(arguments);
  assert_int_equal(flow_argument_integer(complete, "filters"), 8);
  flow_argument_pair(complete, "kernel_size", pair);
  assert_int_equal(pair[0], 5);
  assert_int_equal(pair[1], 5);
  assert_string_equal(flow_argument_text(complete, "padding"), "same");
  assert_false(flow_argument_boolean(complete, "use_bias"));
  assert_int_equal(flow_argument_list(complete, "target", &list), 3);
  assert_true(list[0] == 7 && list[1] == -1 && list[2] == 2);
  assert_int_equal(flow_argument_integer(complete, "seed"), INT64_C(9007199254740991));
  assert_true(flow_argument_number(complete, "rate") == 0.001);
  assert_string_equal(flow_argument_text(complete, "kernel_initializer"), "random_normal");
  assert_int_equal(flow_arguments_extract(complete, "kernel_initializer", &options), FLOW_OK);
  assert_true(flow_argument_number(options, "stddev") == 0.5);
  assert_true(flow_argument_number(options, "mean") == 0);
  assert_true(flow_argument_is_null(options, "seed"));
  flow_arguments_release(options);
  flow_arguments_release(complete);
}

static void missing_and_unknown_options_are_named(void **state)
{
  (void)state;
  const char *all = "filters, kernel_size, padding, rate, use_bias, activation, kernel_initializer, target, seed, kernel_regularizer";
  char expected[512];
  flow_arguments *arguments = given();
  snprintf(expected, sizeof expected, "Box: option \"filters\" is missing; it takes: %s", all);
  assert_refused(arguments, FLOW_INVALID_ARGUMENT, expected);
  arguments = given();
  flow_arguments_set_number(arguments, "filtres", 3);       /* reported before the missing filters */
  snprintf(expected, sizeof expected, "Box: unknown option \"filtres\"; did you mean \"filters\"? It takes: %s", all);
  assert_refused(arguments, FLOW_INVALID_ARGUMENT, expected);
  arguments = given();
  flow_arguments_set_number(arguments, "colour", 3);
  snprintf(expected, sizeof expected, "Box: unknown option \"colour\"; it takes: %s", all);
  assert_refused(arguments, FLOW_INVALID_ARGUMENT, expected);
}

/* One value for one option, and the sentence that refuses it. */
static void wrong_types_say_what_was_found(void **state)
{
  (void)state;
  const double three[3] = { 1, 2, 3 }, half_floats[2] = { 1, 0.5 }, many[9] = { 0 };
  flow_arguments *arguments = given();
  flow_arguments_set_text(arguments, "filters", "many");
  assert_refused(arguments, FLOW_INVALID_ARGUMENT, "Box: filters must be an integer, found \"many\"");
  arguments = given();
  flow_arguments_set_number(arguments, "filters", 1.5);
  assert_refused(arguments, FLOW_INVALID_ARGUMENT, "Box: filters must be an integer, found 1.5");
  arguments = given();
  flow_arguments_set_number(arguments, "filters", 1e300);
  assert_refused(arguments, FLOW_INVALID_ARGUMENT, "Box: filters must be an integer of a magnitude below 2^53, found 1e+300");

#define REFUSED(set, text)                              \
  arguments = given();                                  \
  flow_arguments_set_number(arguments, "filters", 1);   \
  set;                                                  \
  assert_refused(arguments, FLOW_INVALID_ARGUMENT, text)

  REFUSED(flow_arguments_set_numbers(arguments, "kernel_size", three, 3),
          "Box: kernel_size must be an integer or a list of two integers, found {1, 2, 3}");
  REFUSED(flow_arguments_set_numbers(arguments, "kernel_size", half_floats, 2),
          "Box: kernel_size must be an integer or a list of two integers, found {1, 0.5}");
  REFUSED(flow_arguments_set_numbers(arguments, "target", many, 9), "Box: target has 9 dimensions, at most 8 are possible");
  REFUSED(flow_arguments_set_number(arguments, "use_bias", 1), "Box: use_bias must be true or false, found 1");
  REFUSED(flow_arguments_set_boolean(arguments, "rate", 1), "Box: rate must be a number, found true");
  REFUSED(flow_arguments_set_number(arguments, "rate", NAN), "Box: rate must be a number, found nan");
  REFUSED(flow_arguments_set_text(arguments, "padding", "sam"),
          "Box: padding must be \"valid\" or \"same\", found \"sam\"; did you mean \"same\"?");
  REFUSED(flow_arguments_set_text(arguments, "padding", "full"), "Box: padding must be \"valid\" or \"same\", found \"full\"");
  REFUSED(flow_arguments_set_text(arguments, "activation", "rellu"),
          "Box: activation \"rellu\" is not known; did you mean \"relu\"? There are linear, relu, sigmoid, ...");
  REFUSED(flow_arguments_set_text(arguments, "kernel_initializer", "glorot_unform"),
          "Box: kernel_initializer \"glorot_unform\" is not known; did you mean \"glorot_uniform\"? There are ...");
  REFUSED(flow_arguments_set_number(arguments, "kernel_initializer.stddev", 1),
          "Box: kernel_initializer \"glorot_uniform\" takes no option \"stddev\"");
  REFUSED(flow_arguments_set_text(arguments, "kernel_initializer.seed", "x"),
          "Box: kernel_initializer.seed must be an integer, found \"x\"");
#undef REFUSED
}

static void what_keras_has_and_we_do_not_is_unsupported(void **state)
{
  (void)state;
  flow_arguments *arguments = given();
  flow_arguments_set_number(arguments, "filters", 1);
  flow_arguments_set_text(arguments, "kernel_regularizer", "l2");
  assert_refused(arguments, FLOW_UNSUPPORTED, "Box: option \"kernel_regularizer\" is not supported; leave it out");
  arguments = given();
  flow_arguments_set_number(arguments, "filters", 1);
  flow_arguments_set_text(arguments, "padding", "causal");
  assert_refused(arguments, FLOW_UNSUPPORTED, "Box: padding \"causal\" is not supported; use \"valid\" or \"same\"");
}

static void setters_refuse_null(void **state)
{
  (void)state;
  flow_arguments *arguments = given();
  assert_int_equal(flow_arguments_new(NULL), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_arguments_set_number(NULL, "x", 1), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_arguments_set_number(arguments, NULL, 1), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_arguments_set_text(arguments, "x", NULL), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_arguments_set_numbers(arguments, "x", NULL, 2), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_arguments_set_numbers(arguments, "x", NULL, -1), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_arguments_set_numbers(arguments, "x", NULL, 0), FLOW_OK);
  assert_int_equal(flow_arguments_set_nested(arguments, "x", (double[]){ 1 }, 1, NULL), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_arguments_set_nested(arguments, "x", (double[]){ 1 }, 0, (int[]){ 1 }), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_arguments_set_nested(arguments, "x", (double[]){ 1 }, 9, (int[9]){ 1 }), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_arguments_set_nested(arguments, "x", (double[]){ 1, 2 }, 2, (int[]){ 2, 1 }), FLOW_OK);
  flow_arguments_release(arguments);
  flow_arguments_release(NULL);
}

/* Every allocation of setting and completing fails once; nothing leaks or is half done (the sanitizers watch). */
static void memory_may_run_out_anywhere(void **state)
{
  (void)state;
  int failures = 0;
  for (int after = 0;; after++) {
    const double size[2] = { 3, 5 };
    flow_arguments *arguments = NULL, *complete = NULL;
    flow_fail_allocation(after);
    flow_status status = flow_arguments_new(&arguments);
    if (status == FLOW_OK) status = flow_arguments_set_number(arguments, "filters", 4);
    if (status == FLOW_OK) status = flow_arguments_set_text(arguments, "padding", "same");
    if (status == FLOW_OK) status = flow_arguments_set_numbers(arguments, "kernel_size", size, 2);
    if (status == FLOW_OK) status = flow_arguments_complete("Box", parameters, arguments, &complete);
    flow_fail_allocation(-1);
    flow_arguments_release(arguments);
    if (status == FLOW_OK) {
      flow_arguments_release(complete);
      break;
    }
    assert_int_equal(status, FLOW_OUT_OF_MEMORY);
    assert_null(complete);
    failures++;
  }
  assert_true(failures > 10);
}

static const char *nearest(const char *asked)
{
  static const char *const names[] = { "relu", "selu", "sigmoid", "MaxPooling2D", "a" };
  flow_suggestion suggestion = flow_suggestion_for(asked);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) flow_suggestion_offer(&suggestion, names[i]);
  return suggestion.best;
}

static void suggestions_are_near(void **state)
{
  (void)state;
  assert_string_equal(nearest("rleu"), "relu");             /* swapped neighbours are one mistake */
  assert_string_equal(nearest("maxpooling2d"), "MaxPooling2D");
  assert_string_equal(nearest("sigmod"), "sigmoid");
  assert_string_equal(nearest("A"), "a");
  assert_null(nearest("b"));                                /* another letter, not a wrong one */
  assert_null(nearest("tanh"));
  assert_null(nearest("relugramophone"));
}

static void names_are_in_snake_case(void **state)
{
  (void)state;
  static const char *const names[][2] = {
    { "Conv2D", "conv2d" }, { "Conv2DTranspose", "conv2d_transpose" }, { "MaxPooling2D", "max_pooling2d" }, { "ReLU", "re_lu" },
    { "PReLU", "p_re_lu" }, { "AUC", "auc" }, { "My Layer_2", "my_layer_2" }, { "XAbBc", "x_ab_bc" }, { "", "" },
  };
  char text[32];
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    assert_int_equal(flow_snake_case(names[i][0], text, sizeof text), strlen(names[i][1]));
    assert_string_equal(text, names[i][1]);
  }
  assert_int_equal(flow_snake_case("MaxPooling2D", text, 4), 13);      /* the whole length: the text is cut */
  assert_string_equal(text, "max");
}

static void the_first_of_the_nearest_names_is_meant(void **state)
{
  (void)state;
  const char *const names[] = { "epochs", "ab", "ac", "name" };
  assert_int_equal(flow_nearest_name("Epoch", names, 4, -1), 0);
  assert_int_equal(flow_nearest_name("aa", names, 4, -1), 1);
  assert_int_equal(flow_nearest_name("epo", names, 4, -1), -1);
  assert_int_equal(flow_nearest_name("epo", names, 4, 3), 0);
  assert_int_equal(flow_nearest_name("name", NULL, 0, -1), -1);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(defaults_are_read_from_the_record),
    cmocka_unit_test(given_values_replace_defaults),
    cmocka_unit_test(missing_and_unknown_options_are_named),
    cmocka_unit_test(wrong_types_say_what_was_found),
    cmocka_unit_test(what_keras_has_and_we_do_not_is_unsupported),
    cmocka_unit_test(setters_refuse_null),
    cmocka_unit_test(memory_may_run_out_anywhere),
    cmocka_unit_test(suggestions_are_near),
    cmocka_unit_test(names_are_in_snake_case),
    cmocka_unit_test(the_first_of_the_nearest_names_is_meant),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
