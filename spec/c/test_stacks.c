/* test_stacks.c: callers have small stacks: the whole life of a model, an input pipeline, pictures and files in threads of 64 KB, also of a
 * model whose parts nest 30 deep, the team of two taking part. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <unistd.h>

#include "base/team.h"
#include "data/dataset.h"
#include "graph/context.h"
#include "models/model.h"
#include "temporary.h"

#define FOLDER "spec/golden/keras/"

enum { STACK_BYTES = 64 << 10, DEEP = 30, DEEPER = 60 };      /* files hold weights 31 deep, config.json is read 64 deep */

typedef struct job {
  flow_status (*run)(flow_context *context, const char *argument);
  const char   *argument;
  flow_status   status;
  char          why[400];
} job;

static void *run_job(void *argument)
{
  job *self = argument;
  flow_context *context;
  self->status = flow_context_new(&context);
  if (self->status != FLOW_OK) return NULL;
  self->status = self->run(context, self->argument);
  if (self->status != FLOW_OK) snprintf(self->why, sizeof self->why, "%s", flow_last_error());
  flow_context_release(context);
  return NULL;
}

static void in_small_thread(flow_status (*run)(flow_context *context, const char *argument), const char *argument)
{
  /* frames of sanitizers are large */
  pthread_attr_t small;
  pthread_t thread;
  job self = { .run = run, .argument = argument };
  assert_int_equal(0, pthread_attr_init(&small));
  assert_int_equal(0, pthread_attr_setstacksize(&small, getenv("FLOW_SANITIZED") ? 4 << 20 : STACK_BYTES));
  assert_int_equal(0, pthread_create(&thread, &small, run_job, &self));
  pthread_join(thread, NULL);
  pthread_attr_destroy(&small);
  if (self.status != FLOW_OK) fail_msg("%s: %s", argument, self.why);
}

/* ---- models -------------------------------------------------------------------------------------------------------------------- */

static flow_status inputs_of(const flow_model *model, int rows, flow_tensor **inputs)
{
  for (int i = 0; i < flow_model_input_count(model); i++) {
    int64_t shape[FLOW_MAX_RANK] = { rows };
    int rank = flow_model_input_rank(model, i);
    for (int axis = 1; axis < rank; axis++) shape[axis] = (int64_t)flow_model_input_dim(model, i, axis);
    FLOW_TRY(flow_tensor_new(FLOW_FLOAT32, rank, shape, &inputs[i]));
    FLOW_TRY(flow_tensor_fill(inputs[i], 0.5));
  }
  return FLOW_OK;
}

static flow_status live(flow_context *context, const char *path)
{
  flow_model *model, *again;
  flow_tensor *inputs[FLOW_MAX_OPERANDS] = { NULL }, *outputs[FLOW_MAX_OPERANDS], *targets;
  char saved[TEMPORARY_PATH];
  double loss;
  FLOW_TRY(flow_model_load(context, path, &model));
  FLOW_TRY(inputs_of(model, 40, inputs));
  for (int run = 0; run < 3; run++) {
    FLOW_TRY(flow_model_predict(context, model, inputs, flow_model_input_count(model), outputs));
    for (int i = 0; i < flow_model_output_count(model); i++) flow_tensor_release(outputs[i]);
  }
  if (model->optimizer && model->loss) {
    const int64_t rows = 40;
    FLOW_TRY(flow_tensor_new(FLOW_FLOAT32, 1, &rows, &targets));
    for (int step = 0; step < 3; step++) {
      flow_status status = flow_model_train(context, model, inputs, flow_model_input_count(model), targets, &loss);
      if (status != FLOW_OK && status != FLOW_INVALID_ARGUMENT) return status;      /* some losses want targets of other shapes */
    }
    flow_tensor_release(targets);
  }
  FLOW_TRY(flow_model_save(model, temporary(saved, "stacks.keras")));
  FLOW_TRY(flow_model_load(context, saved, &again));
  unlink(saved);
  for (int i = 0; i < flow_model_input_count(model); i++) flow_tensor_release(inputs[i]);
  flow_model_release(again);
  flow_model_release(model);
  return FLOW_OK;
}

static void models_live_in_small_threads(void **state)
{
  static const char *const names[] = { "flowers_small", "mnist_small_compiled", "func", "images", "adapted", "towers", "trained_adam",
                                       "trained_regularized" };
  (void)state;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char path[128];
    snprintf(path, sizeof path, FOLDER "%s.keras", names[i]);
    in_small_thread(live, path);
  }
}

static int add(char *text, int at, const char *more)
{
  memcpy(text + at, more, strlen(more) + 1);
  return at + (int)strlen(more);
}

/* Sequential in Sequential ... around a Dense layer of 3 units. */
static void save_nested(const char *path, int levels, int with_weights)
{
  static char config[300 * 200];
  int at = 0, paths = 0;
  for (int i = 0; i < levels; i++) {
    at = add(config, at, "{\"module\": \"keras\", \"class_name\": \"Sequential\", \"config\": {\"name\": \"s\", \"layers\": [");
    at = add(config, at, "{\"module\": \"keras.layers\", \"class_name\": \"InputLayer\", \"config\": {\"batch_shape\": [null, 2], "
                         "\"dtype\": \"float32\", \"name\": \"in\"}}, ");
  }
  at = add(config, at, "{\"module\": \"keras.layers\", \"class_name\": \"Dense\", \"config\": {\"name\": \"dense\", \"units\": 3}}");
  for (int i = 0; i < levels; i++) at = add(config, at, "]}}");
  static char longer[20 * 200];
  for (int i = 1; i < levels; i++) paths = add(longer, paths, "layers/sequential/");
  paths = add(longer, paths, "layers/dense/vars/");
  const int64_t shape[2] = { 2, 3 };
  flow_tensor *kernel, *bias;
  flow_tensor_writer *writer;
  flow_archive_writer *archive;
  assert_int_equal(FLOW_OK, flow_tensor_new(FLOW_FLOAT32, 2, shape, &kernel));
  assert_int_equal(FLOW_OK, flow_tensor_new(FLOW_FLOAT32, 1, shape + 1, &bias));
  assert_int_equal(FLOW_OK, flow_tensor_writer_new(&writer));
  longer[paths] = '0', longer[paths + 1] = '\0';
  if (with_weights) assert_int_equal(FLOW_OK, flow_tensor_writer_add(writer, longer, kernel));
  longer[paths] = '1';
  if (with_weights) assert_int_equal(FLOW_OK, flow_tensor_writer_add(writer, longer, bias));
  assert_int_equal(FLOW_OK, flow_archive_writer_new(path, &archive));
  assert_int_equal(FLOW_OK, flow_archive_writer_add_text(archive, "metadata.json", "{}", 2));
  assert_int_equal(FLOW_OK, flow_archive_writer_add_text(archive, "config.json", config, (double)strlen(config)));
  if (flow_archive_writer_add_tensors(archive, "model.weights.h5", writer, "hdf5") != FLOW_OK) fail_msg("%s", flow_last_error());
  if (flow_archive_writer_commit(archive) != FLOW_OK) fail_msg("%s", flow_last_error());
  flow_archive_writer_release(archive);
  flow_tensor_writer_release(writer);
  flow_tensor_release(kernel);
  flow_tensor_release(bias);
}

static flow_status refuse(flow_context *context, const char *path)
{
  flow_model *model;
  flow_status status = flow_model_load(context, path, &model);
  if (status == FLOW_CORRUPT_DATA && strstr(flow_last_error(), "expected 2 variables")) return FLOW_OK;
  return flow_fail(FLOW_INVALID_STATE, "status %d: %s", (int)status, flow_last_error());
}

static void nested_models_live_in_small_threads(void **state)
{
  char path[TEMPORARY_PATH];
  flow_model *model;
  save_nested(temporary(path, "nested.keras"), DEEP, 1);
  in_small_thread(live, path);
  save_nested(path, DEEPER, 0);
  in_small_thread(refuse, path);
  save_nested(path, 100, 0);
  assert_int_equal(FLOW_CORRUPT_DATA, flow_model_load(*state, path, &model));
  assert_non_null(strstr(flow_last_error(), "deep"));
  unlink(path);
}

/* ---- data and files -------------------------------------------------------------------------------------------------------------- */

static flow_status feed(flow_context *context, const char *unused)
{
  flow_dataset *stages[7] = { NULL };
  flow_iterator *iterator;
  flow_element element = { 0 };
  int count = 0;
  (void)unused;
  FLOW_TRY(flow_dataset_range(0, 500, 1, FLOW_INT64, &stages[0]));
  FLOW_TRY(flow_dataset_shuffle(stages[0], 100, 1, 2, 1, &stages[1]));
  FLOW_TRY(flow_dataset_batch(stages[1], 7, 0, &stages[2]));
  FLOW_TRY(flow_dataset_cache(stages[2], &stages[3]));
  FLOW_TRY(flow_dataset_repeat(stages[3], 2, &stages[4]));
  FLOW_TRY(flow_dataset_unbatch(stages[4], &stages[5]));
  FLOW_TRY(flow_dataset_prefetch(stages[5], -1, &stages[6]));
  FLOW_TRY(flow_iterator_new(context, stages[6], &iterator));
  do {
    FLOW_TRY(flow_iterator_next(iterator, &element));
    count += element.count > 0;
  } while (element.count > 0);
  flow_element_clear(&element);
  flow_iterator_close(iterator);
  for (int i = 0; i < 7; i++) flow_dataset_release(stages[i]);
  return count == 1000 ? FLOW_OK : flow_fail(FLOW_INVALID_STATE, "%d elements", count);
}

static flow_status look(flow_context *context, const char *path)
{
  flow_tensor *picture, *small;
  char saved[TEMPORARY_PATH];
  (void)context;
  flow_status status = flow_image_load(path, 3, &picture);
  if (status == FLOW_NOT_FOUND) return FLOW_OK;              /* built without the plugin */
  FLOW_TRY(status);
  FLOW_TRY(flow_image_resize(picture, 33, 20, "bicubic", 0, &small));
  flow_tensor_release(small);
  status = flow_image_save(temporary(saved, "stacks.jpg"), picture, 90);
  unlink(saved);
  flow_tensor_release(picture);
  return status == FLOW_NOT_FOUND ? FLOW_OK : status;
}

static flow_status open_tensors(flow_context *context, const char *path)
{
  flow_tensor *tensor;
  (void)context;
  FLOW_TRY(flow_tensor_load_npz(path, "func_x1", &tensor));
  flow_tensor_release(tensor);
  return FLOW_OK;
}

static void data_flows_in_small_threads(void **state)
{
  static const char *const pictures[] = { "daisy/b.jpg", "daisy/grey.jpg", "Rose/interlaced.png", "Rose/deep.png", "Rose/moving.gif" };
  (void)state;
  in_small_thread(feed, "a pipeline");
  for (size_t i = 0; i < sizeof pictures / sizeof *pictures; i++) {
    char path[128];
    snprintf(path, sizeof path, "spec/golden/pictures/%s", pictures[i]);
    in_small_thread(look, path);
  }
  in_small_thread(open_tensors, FOLDER "expected.npz");
}

static int set_up(void **state)
{
  return flow_team_set_size(2) == FLOW_OK && flow_context_new((flow_context **)state) == FLOW_OK ? 0 : -1;
}

static int tear_down(void **state)
{
  flow_context_release(*state);
  return 0;
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(models_live_in_small_threads),
    cmocka_unit_test(nested_models_live_in_small_threads),
    cmocka_unit_test(data_flows_in_small_threads),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
