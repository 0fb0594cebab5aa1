/* test_shared_models.c: callers that open the same file get the same model, for as long as one of them has it. FLOW_CASES is how often each
 * thread opens it. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "folder.h"
#include "models/model.h"

#define GOLDEN "spec/golden/keras/"

enum { THREADS = 8, MOST_VALUES = 4096 };

static const char MODEL[] = GOLDEN "mnist_small_compiled.keras";
static flow_context *context;

static flow_tensor *images(const flow_model *model)
{
  int64_t shape[FLOW_MAX_RANK] = { 2 };
  int rank = flow_model_input_rank(model, 0);
  flow_tensor *x;
  for (int axis = 1; axis < rank; axis++) shape[axis] = (int64_t)flow_model_input_dim(model, 0, axis);
  if (flow_tensor_new(FLOW_FLOAT32, rank, shape, &x) != FLOW_OK || flow_tensor_fill(x, 0.25) != FLOW_OK) abort();
  return x;
}

/* What the model makes of two equal pictures: how many values, or 0 if it fails. */
static int predict(flow_context *own, flow_model *model, double *values)
{
  flow_tensor *x = images(model), *y = NULL;
  int count = 0;
  if (flow_model_predict(own, model, &x, 1, &y) == FLOW_OK) count = (int)flow_tensor_size(y);
  if (count > MOST_VALUES || (count > 0 && flow_tensor_read(y, values, count) != FLOW_OK)) count = 0;
  flow_tensor_release(y);
  flow_tensor_release(x);
  return count;
}

static void test_one_model_for_all_callers(void **state)
{
  (void)state;
  flow_model *first, *second, *own;
  double shared[MOST_VALUES], alone[MOST_VALUES];
  assert_int_equal(FLOW_OK, flow_model_share(context, MODEL, &first));
  assert_int_equal(FLOW_OK, flow_model_share(context, "spec/../" GOLDEN "mnist_small_compiled.keras", &second));
  assert_ptr_equal(first, second);
  flow_model_release(first);
  assert_int_equal(FLOW_OK, flow_model_load(context, MODEL, &own));
  int count = predict(context, second, shared);
  assert_int_equal(count, predict(context, own, alone));
  assert_true(count > 0);
  assert_memory_equal(alone, shared, sizeof *shared * (size_t)count);
  flow_model_release(own);
  flow_model_release(second);
}

static void test_is_not_trained(void **state)
{
  (void)state;
  flow_model *model, *own;
  const int64_t rows = 2;
  flow_tensor *labels;
  double loss, before[MOST_VALUES], after[MOST_VALUES];
  assert_int_equal(FLOW_OK, flow_model_share(context, MODEL, &model));
  assert_int_equal(FLOW_OK, flow_model_load(context, MODEL, &own));
  flow_tensor *x = images(model);
  assert_int_equal(FLOW_OK, flow_tensor_new(FLOW_INT32, 1, &rows, &labels));
  assert_int_equal(FLOW_OK, flow_tensor_fill(labels, 1));
  int count = predict(context, model, before);
  assert_int_equal(FLOW_INVALID_STATE, flow_model_train(context, model, &x, 1, labels, &loss));
  assert_non_null(strstr(flow_last_error(), "is shared"));
  assert_int_equal(FLOW_OK, flow_model_train(context, own, &x, 1, labels, &loss));
  assert_int_equal(count, predict(context, model, after));
  assert_memory_equal(before, after, sizeof *before * (size_t)count);
  flow_tensor_release(labels);
  flow_tensor_release(x);
  flow_model_release(own);
  flow_model_release(model);
}

static void test_a_file_that_was_replaced_is_another_model(void **state)
{
  (void)state;
  flow_model *own, *before, *after;
  assert_int_equal(FLOW_NOT_FOUND, flow_model_share(context, path, &before));
  assert_int_equal(FLOW_OK, flow_model_load(context, MODEL, &own));
  assert_int_equal(FLOW_OK, flow_model_save(own, path));
  assert_int_equal(FLOW_OK, flow_model_share(context, path, &before));
  assert_int_equal(FLOW_OK, flow_model_save(own, path));
  assert_int_equal(FLOW_OK, flow_model_share(context, path, &after));
  assert_ptr_not_equal(before, after);
  double values[MOST_VALUES];
  assert_true(predict(context, before, values) > 0);
  flow_model_release(before);
  flow_model_release(after);
  flow_model_release(own);
}

static _Atomic int failures;
static double wanted[MOST_VALUES];
static int cases;

static void *serve(void *argument)
{
  flow_context *own;
  (void)argument;
  if (flow_context_new(&own) != FLOW_OK) abort();
  for (int i = 0; i < cases; i++) {
    flow_model *model;
    double values[MOST_VALUES];
    if (flow_model_share(own, MODEL, &model) != FLOW_OK) {
      atomic_fetch_add(&failures, 1);
      continue;
    }
    int count = predict(own, model, values);
    if (count == 0 || memcmp(values, wanted, sizeof *values * (size_t)count) != 0) atomic_fetch_add(&failures, 1);
    flow_model_release(model);
  }
  flow_context_release(own);
  return NULL;
}

static void test_threads_open_and_close(void **state)
{
  (void)state;
  const char *text = getenv("FLOW_CASES");
  flow_model *model;
  pthread_t threads[THREADS];
  cases = text ? atoi(text) : 40;
  assert_int_equal(FLOW_OK, flow_model_load(context, MODEL, &model));
  assert_true(predict(context, model, wanted) > 0);
  flow_model_release(model);
  for (int i = 0; i < THREADS; i++) assert_int_equal(0, pthread_create(&threads[i], NULL, serve, NULL));
#ifdef __SANITIZE_ADDRESS__
  print_message("no child is made: gcc's AddressSanitizer does not free its allocator's locks in one\n");
#else
  pid_t child = fork();                      /* while they hold the list */
  if (child == 0) {
    double values[MOST_VALUES];
    alarm(CHILD_SECONDS);
    _exit(flow_model_share(context, MODEL, &model) == FLOW_OK && predict(context, model, values) > 0 ? 0 : 1);
  }
#endif
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
#ifndef __SANITIZE_ADDRESS__
  int status = -1;
  assert_true(child > 0 && waitpid(child, &status, 0) == child);
  assert_int_equal(0, status);
#endif
  assert_int_equal(0, failures);
}

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

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_one_model_for_all_callers, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(test_is_not_trained, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(test_a_file_that_was_replaced_is_another_model, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(test_threads_open_and_close, make_folder, remove_folder),
  };
  return cmocka_run_group_tests(tests, make_context, release_context);
}
