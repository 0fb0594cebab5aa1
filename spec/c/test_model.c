/* test_model.c: models without Lua: files of Keras load, predict what Keras predicts, train as Keras does, and are saved. Reference values:
 * spec/golden/keras_files.py. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "io/file.h"
#include "models/model.h"
#include "temporary.h"

#define FOLDER "spec/golden/keras/"

static flow_tensor *expected(const char *name, const char *kind, int index)
{
  char member[128];
  flow_tensor *tensor;
  if (index) snprintf(member, sizeof member, "%s_%s%d", name, kind, index);
  else snprintf(member, sizeof member, "%s_%s", name, kind);
  assert_int_equal(FLOW_OK, flow_tensor_load_npz(FOLDER "expected.npz", member, &tensor));
  return tensor;
}

static void assert_close(const flow_tensor *a, const flow_tensor *b, double bound)
{
  int count = (int)flow_tensor_size(b);
  assert_int_equal(count, (int)flow_tensor_size(a));
  double *x = malloc(sizeof(double) * (size_t)count), *y = malloc(sizeof(double) * (size_t)count);
  assert_int_equal(FLOW_OK, flow_tensor_read(a, x, count));
  assert_int_equal(FLOW_OK, flow_tensor_read(b, y, count));
  for (int i = 0; i < count; i++)
    if (!(fabs(x[i] - y[i]) <= bound)) fail_msg("element %d is %.9g, expected %.9g", i, x[i], y[i]);
  free(x);
  free(y);
}

static void assert_predicts(flow_context *context, flow_model *model, const char *name)
{
  flow_tensor *inputs[4], *outputs[4];
  int count = flow_model_input_count(model), output_count = flow_model_output_count(model);
  for (int i = 0; i < count; i++) inputs[i] = expected(name, "x", i + 1);
  assert_int_equal(FLOW_OK, flow_model_predict(context, model, inputs, count, outputs));
  for (int i = 0; i < output_count; i++) {
    flow_tensor *wanted = expected(name, "y", i + 1);
    assert_close(outputs[i], wanted, 1e-5);
    flow_tensor_release(wanted);
    flow_tensor_release(outputs[i]);
  }
  for (int i = 0; i < count; i++) flow_tensor_release(inputs[i]);
}

static void files_of_keras_predict_what_keras_predicts(void **state)
{
  static const char *const names[] = { "flowers_small", "mnist_small_compiled", "func", "dense_adam_trained_jax",
                                     "images", "adapted", "towers", "nested" };
  flow_context *context = *state;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char path[128];
    flow_model *model;
    snprintf(path, sizeof path, FOLDER "%s.keras", names[i]);
    if (flow_model_load(context, path, &model) != FLOW_OK) fail_msg("%s", flow_last_error());
    assert_predicts(context, model, names[i]);
    flow_model_release(model);
  }
}

static void training_goes_on_as_in_keras(void **state)
{
  static const char *const names[] = { "adam", "amsgrad", "momentum", "rmsprop", "adamw", "decay", "regularized" };
  flow_context *context = *state;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char path[128], name[64];
    flow_model *model;
    snprintf(name, sizeof name, "trained_%s", names[i]);
    snprintf(path, sizeof path, FOLDER "%s.keras", name);
    if (flow_model_load(context, path, &model) != FLOW_OK) fail_msg("%s", flow_last_error());
    flow_tensor *x = expected(name, "x", 0), *y = expected(name, "y", 0), *losses = expected(name, "loss", 0);
    for (int step = 0; step < 5; step++) {
      const int64_t shape[2] = { 16, 6 }, strides[2] = { 6, 1 }, one = 1, position = step;
      flow_tensor *batch, *targets;
      double loss, wanted;
      assert_int_equal(FLOW_OK, flow_tensor_view(x, 2, shape, strides, step * 96, &batch));
      assert_int_equal(FLOW_OK, flow_tensor_view(y, 1, shape, &one, step * 16, &targets));
      assert_int_equal(FLOW_OK, flow_model_train(context, model, &batch, 1, targets, &loss));
      assert_int_equal(FLOW_OK, flow_tensor_get(losses, &position, &wanted));
      if (!(fabs(loss - wanted) <= 1e-4 * wanted)) fail_msg("%s, step %d: loss %.9g, Keras has %.9g", name, step, loss, wanted);
      flow_tensor_release(batch);
      flow_tensor_release(targets);
    }
    flow_tensor_release(x);
    flow_tensor_release(y);
    flow_tensor_release(losses);
    flow_model_release(model);
  }
}

/* Rows beyond one batch, and what was saved, give the same. */
static void batches_and_saved_files_agree(void **state)
{
  flow_context *context = *state;
  flow_model *model, *again;
  char path[TEMPORARY_PATH];
  int descriptor = mkstemp(temporary(path, "model_XXXXXX"));
  assert_true(descriptor >= 0);
  close(descriptor);
  assert_int_equal(FLOW_OK, flow_model_load(context, FOLDER "trained_adam.keras", &model));
  const int64_t shape[2] = { 71, 6 };
  flow_tensor *x, *y, *z, *row;
  assert_int_equal(FLOW_OK, flow_tensor_arange(FLOW_FLOAT32, -1, 0.005, 71 * 6, &row));
  const int64_t strides[2] = { 6, 1 };
  assert_int_equal(FLOW_OK, flow_tensor_view(row, 2, shape, strides, 0, &x));
  assert_int_equal(FLOW_OK, flow_model_predict(context, model, &x, 1, &y));
  assert_int_equal(71, (int)flow_tensor_dim(y, 0));
  assert_int_equal(FLOW_OK, flow_model_save(model, path));
  assert_int_equal(FLOW_OK, flow_model_load(context, path, &again));
  assert_int_equal(FLOW_OK, flow_model_predict(context, again, &x, 1, &z));
  assert_close(z, y, 0);
  assert_int_equal(5, (int)again->steps_done);
  flow_tensor_release(row);
  flow_tensor_release(x);
  flow_tensor_release(y);
  flow_tensor_release(z);
  flow_model_release(model);
  flow_model_release(again);
  unlink(path);
}

static void assert_says(flow_status status, const char *part)
{
  assert_int_not_equal(FLOW_OK, status);
  if (!strstr(flow_last_error(), part)) fail_msg("\"%s\" is not in \"%s\"", part, flow_last_error());
}

static void failures_say_what_is_wrong(void **state)
{
  flow_context *context = *state;
  flow_model *model = NULL;
  flow_tensor *x, *y = NULL;
  const int64_t shape[2] = { 3, 5 };
  assert_says(flow_model_load(context, FOLDER "missing.keras", &model), "missing.keras");
  assert_says(flow_model_load(context, FOLDER "images.weights.h5", &model), "images.weights.h5");
  assert_null(model);
  assert_int_equal(FLOW_OK, flow_model_load(context, FOLDER "adapted.keras", &model));
  assert_int_equal(2, flow_model_input_rank(model, 0));
  assert_int_equal(4, (int)flow_model_input_dim(model, 0, 1));
  assert_int_equal(FLOW_OK, flow_tensor_new(FLOW_FLOAT32, 2, shape, &x));
  assert_says(flow_model_predict(context, model, &x, 1, &y), "input {None, 5} does not fit the shape {None, 4}");
  assert_says(flow_model_predict(context, model, &x, 0, &y), "the model has 1 inputs, found 0");
  assert_says(flow_model_predict(context, model, &y, 1, &y), "flow_model_predict: input \"");
  assert_says(flow_model_predict(context, model, &y, 1, &y), "\": it is NULL: a tensor is needed");
  assert_says(flow_model_train(context, model, &x, 1, x, NULL), "was saved without a loss and an optimizer");
  flow_tensor_release(x);
  flow_model_release(model);
}

static void memory_may_run_out_anywhere(void **state)
{
  flow_context *context = *state;
  int failed = 0;
  for (double after = 0; after < 100000; after++) {
    flow_model *model = NULL;
    flow_fail_allocation(after);
    flow_status status = flow_model_load(context, FOLDER "func.keras", &model);
    flow_fail_allocation(-1);
    if (status == FLOW_OK) {
      assert_predicts(context, model, "func");
      flow_model_release(model);
      assert_true(failed > 100);
      return;
    }
    failed++;
    assert_int_equal(FLOW_OUT_OF_MEMORY, status);
    assert_null(model);
  }
  fail();
}

/* ---- descriptions that lie -------------------------------------------------------------------------------------------------------- */

#define INPUT_LAYER(name)                                                                   \
  "{\"class_name\":\"InputLayer\",\"name\":\"" name "\",\"config\":{\"name\":\"" name "\"," \
  "\"batch_shape\":[null,4],\"dtype\":\"float32\"},\"inbound_nodes\":[]}"
#define TENSOR(name, output) "{\"class_name\":\"__keras_tensor__\",\"config\":{\"keras_history\":[\"" name "\",0," output "]}}"
#define CALL(name, output) "{\"args\":[" TENSOR(name, output) "],\"kwargs\":{}}"
#define FUNCTIONAL(name, layers, first, last)                                                                  \
  "{\"class_name\":\"Functional\",\"name\":\"" name "\",\"config\":{\"name\":\"" name "\",\"layers\":[" layers \
  "],\"input_layers\":[[\"" first "\",0,0]],\"output_layers\":[[\"" last "\",0,0]]}"
#define DENSE(name, calls)                                                                          \
  "{\"class_name\":\"Dense\",\"name\":\"" name "\",\"config\":{\"name\":\"" name "\",\"units\":4}," \
  "\"inbound_nodes\":[" calls "]}"
#define OPERATION(class, options, argument)                                                                                      \
  "{\"module\":\"keras.src.ops.numpy\",\"class_name\":\"" class "\",\"name\":\"o\","                                             \
                                                                "\"config\":{\"name\":\"o\"" options                             \
                                                                "},\"inbound_nodes\":[{\"args\":[" TENSOR("x", "0") "," argument \
                                                                                                                    "],\"kwargs\":{}}]}"

/* Opens a file that has nothing but this description; *model NULL after a failure. */
static flow_status open_description(flow_context *context, const char *config, flow_model **model)
{
  flow_archive_writer *archive;
  flow_tensor_writer *weights;
  char lies_path[TEMPORARY_PATH];
  *model = NULL;
  assert_int_equal(FLOW_OK, flow_tensor_writer_new(&weights));
  assert_int_equal(FLOW_OK, flow_archive_writer_new(temporary(lies_path, "lies.keras"), &archive));
  assert_int_equal(FLOW_OK, flow_archive_writer_add_text(archive, "metadata.json", "{}", 2));
  assert_int_equal(FLOW_OK, flow_archive_writer_add_text(archive, "config.json", config, (double)strlen(config)));
  assert_int_equal(FLOW_OK, flow_archive_writer_add_tensors(archive, "model.weights.h5", weights, "hdf5"));
  assert_int_equal(FLOW_OK, flow_archive_writer_commit(archive));
  flow_archive_writer_release(archive);
  flow_tensor_writer_release(weights);
  flow_status status = flow_model_load(context, lies_path, model);
  unlink(lies_path);
  return status;
}

static void expect_lie(flow_context *context, const char *config, const char *part)
{
  flow_model *model;
  assert_int_not_equal(FLOW_OK, open_description(context, config, &model));
  if (!strstr(flow_last_error(), part)) fail_msg("\"%s\" does not say \"%s\"", flow_last_error(), part);
}

static void descriptions_that_lie_are_refused(void **state)
{
  /* A layer that has its own calls stands among the inputs of a model inside of another. */
#define FOUR CALL("d", "0") "," CALL("d", "0") "," CALL("d", "0") "," CALL("d", "0")
#define SIXTEEN FOUR "," FOUR "," FOUR "," FOUR
  expect_lie(*state,
             FUNCTIONAL("outer",
                        INPUT_LAYER("x") "," FUNCTIONAL("inner", DENSE("d", SIXTEEN "," SIXTEEN), "d",
                                                        "d") ",\"inbound_nodes\":[" CALL("x", "0") "]}",
                        "x", "inner") "}",
             "input 1 of the model \"inner\" is not among its input layers");
  expect_lie(*state, FUNCTIONAL("outer", INPUT_LAYER("x") "," DENSE("d", CALL("x", "NaN")), "x", "d") "}",
             "refers to a tensor in a way that is not known");
  expect_lie(*state, FUNCTIONAL("outer", INPUT_LAYER("x") "," DENSE("d", CALL("x", "0.5")), "x", "d") "}",
             "refers to a tensor in a way that is not known");
#define SLICE(start) "{\"class_name\":\"slice\",\"config\":{\"start\":" start "}}"
  expect_lie(*state, FUNCTIONAL("outer", INPUT_LAYER("x") "," OPERATION("GetItem", "", "[" SLICE("0") "," SLICE("NaN") "]"), "x", "o") "}",
             "something that is not a number");
#define CONSTANT(dtype) "{\"class_name\":\"__numpy__\",\"config\":{\"value\":[1,2,3,4],\"dtype\":" dtype "}}"
  expect_lie(*state, FUNCTIONAL("outer", INPUT_LAYER("x") "," OPERATION("Multiply", "", CONSTANT("\"complex64\"")), "x", "o") "}",
             "a constant has the dtype \"complex64\", which is not known");
}

/* Each model calls the one inside of it twice, and the innermost one has no layer: 2^DEEP calls of models without any of a layer. */
static void models_of_models_end(void **state)
{
  enum { DEEP = 40, MOST = 1 << 16 };
  char *config = malloc(MOST), *at = config;
  for (int i = 0; i < DEEP; i++)
    at += sprintf(at,
                  "{\"class_name\":\"Functional\",\"name\":\"m\",\"config\":{\"name\":\"m\",\"input_layers\":[[\"x\",0,0]],"
                  "\"output_layers\":[[\"%s\",%d,0]],\"layers\":[" INPUT_LAYER("x") "%s",
                  i + 1 < DEEP ? "m" : "x", i + 1 < DEEP, i + 1 < DEEP ? "," : "");
  for (int i = DEEP; i-- > 0;) at += sprintf(at, "]},\"inbound_nodes\":[%s]}", i > 0 ? CALL("x", "0") "," CALL("m", "0") : "");
  assert_true(at - config < MOST);
  expect_lie(*state, config, "it has more than 100000 calls");
  free(config);
}

/* As many inputs as a small file can name, all of them the same layer: to look for each from the beginning of the list took minutes. */
static void many_inputs_are_refused_at_once(void **state)
{
  enum { MANY = 40000, MOST = MANY * 16 };
  static const char start[] = "{\"class_name\":\"Functional\",\"name\":\"m\",\"config\":{\"name\":\"m\",\"layers\":[" INPUT_LAYER("x");
  char *config = malloc(MOST), *at = config + sprintf(config, "%s],\"output_layers\":[[\"x\",0,0]],\"input_layers\":[", start);
  for (int i = 0; i < MANY; i++) at += sprintf(at, "%s[\"x\",0,0]", i > 0 ? "," : "");
  sprintf(at, "]}}");
  clock_t begin = clock();
  expect_lie(*state, config, "the model has 40000 inputs and 1 outputs, 1 to 256 are possible");
  assert_true(clock() - begin < 10 * CLOCKS_PER_SEC);
  free(config);
}

/* keras.ops.split(x, 1, axis = 1)[0]. */
static void a_split_may_have_one_part(void **state)
{
  flow_model *model;
  flow_tensor *x, *y;
  double item;
  const int64_t shape[2] = { 2, 4 };
#define ONE_PART OPERATION("Split", ",\"indices_or_sections\":1,\"axis\":1", "null")
  assert_int_equal(FLOW_OK, open_description(*state, FUNCTIONAL("outer", INPUT_LAYER("x") "," ONE_PART, "x", "o") "}", &model));
  assert_int_equal(FLOW_OK, flow_tensor_new(FLOW_FLOAT32, 2, shape, &x));
  ((float *)x->data)[7] = 3;
  assert_int_equal(FLOW_OK, flow_model_predict(*state, model, &x, 1, &y));
  assert_int_equal(4, (int)y->shape[1]);
  item = (double)((float *)y->data)[7];
  assert_true(item == 3);
  flow_tensor_release(x);
  flow_tensor_release(y);
  flow_model_release(model);
}

static int setup(void **state)
{
  flow_context *context;
  if (flow_context_new(&context) != FLOW_OK) return 1;
  *state = context;
  return 0;
}

static int teardown(void **state)
{
  flow_context_release(*state);
  return 0;
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(files_of_keras_predict_what_keras_predicts),
    cmocka_unit_test(training_goes_on_as_in_keras),
    cmocka_unit_test(batches_and_saved_files_agree),
    cmocka_unit_test(failures_say_what_is_wrong),
    cmocka_unit_test(memory_may_run_out_anywhere),
    cmocka_unit_test(descriptions_that_lie_are_refused),
    cmocka_unit_test(models_of_models_end),
    cmocka_unit_test(many_inputs_are_refused_at_once),
    cmocka_unit_test(a_split_may_have_one_part),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
