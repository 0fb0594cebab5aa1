/* test_sessions.c: callers in several threads share what may be shared: a model with any numbers of rows, also while one trains or
 * saves it; eager ops; and get a clear error for what may not, an instance and a session.
 * FLOW_CASES is the number of calls that the threads make together, in each setting. */
#include <math.h>
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

#include "base/memory.h"
#include "base/philox.h"
#include "base/team.h"
#include "child.h"
#include "plan/plan.h"
#include "models/model.h"
#include "temporary.h"

#define FOLDER "spec/golden/keras/"

enum { THREADS = 8, MOST_ROWS = 70, MOST_OUTPUTS = 4 };

/* The calls of each thread. usual: of all together. */
static int calls_of_each(int usual, int threads)
{
  const char *text = getenv("FLOW_CASES");
  return ((text ? atoi(text) : usual) + threads - 1) / threads;
}

static int random_below(uint64_t *state, int bound)
{
  *state = flow_mix(*state, 1);
  return (int)((*state >> 33) % (uint64_t)bound);
}

/* ---- predictions -------------------------------------------------------------------------------------------------------------- */

typedef struct shared {
  flow_model    *model;
  flow_session  *session;                            /* one for all threads, where that is what is tested */
  flow_instance *instance;
  flow_tensor   *inputs[MOST_ROWS + 1][FLOW_MAX_OPERANDS];
  flow_tensor   *wanted[MOST_ROWS + 1][MOST_OUTPUTS];
  int            calls, sessions, input_count, output_count;
  _Atomic int    failures, refused, done;
} shared;

typedef struct member { shared *of; int number; pthread_t thread; char why[300]; } member;

static int64_t bytes_of(const flow_tensor *tensor)
{
  return flow_shape_size(tensor->rank, tensor->shape) * flow_dtype_size(tensor->dtype);
}

static int same_bits(const flow_tensor *a, const flow_tensor *b)
{
  return bytes_of(a) == bytes_of(b) && memcmp(a->data, b->data, (size_t)bytes_of(a)) == 0;
}

/* Inputs of `rows` rows with values from -1 to 1 that differ from row to row. */
static void make_inputs(const flow_model *model, int rows, flow_tensor **inputs)
{
  for (int i = 0; i < flow_model_input_count(model); i++) {
    int64_t shape[FLOW_MAX_RANK] = { rows };
    int rank = flow_model_input_rank(model, i);
    for (int axis = 1; axis < rank; axis++) shape[axis] = (int64_t)flow_model_input_dim(model, i, axis);
    assert_int_equal(FLOW_OK, flow_tensor_new(FLOW_FLOAT32, rank, shape, &inputs[i]));
    int64_t count = flow_shape_size(rank, shape);
    float *values = (float *)inputs[i]->data;
    for (int64_t k = 0; k < count; k++) values[k] = (float)((double)(flow_mix((uint64_t)k, 7) >> 40) / 8388608.0 - 1.0);
  }
}

/* What one caller alone gets, from its own model. */
static void make_wanted(flow_context *context, const char *path, shared *all)
{
  flow_model *alone;
  if (flow_model_load(context, path, &alone) != FLOW_OK) fail_msg("%s", flow_last_error());
  all->input_count = flow_model_input_count(alone);
  all->output_count = flow_model_output_count(alone);
  for (int rows = 1; rows <= MOST_ROWS; rows++) {
    make_inputs(alone, rows, all->inputs[rows]);
    assert_int_equal(FLOW_OK, flow_model_predict(context, alone, all->inputs[rows], all->input_count, all->wanted[rows]));
  }
  flow_model_release(alone);
}

static void release_wanted(shared *all)
{
  for (int rows = 1; rows <= MOST_ROWS; rows++) {
    for (int i = 0; i < all->input_count; i++) flow_tensor_release(all->inputs[rows][i]);
    for (int i = 0; i < all->output_count; i++) flow_tensor_release(all->wanted[rows][i]);
  }
}

static void note(member *self, const char *what, int rows)
{
  atomic_fetch_add(&self->of->failures, 1);
  snprintf(self->why, sizeof self->why, "thread %d, %d rows: %s", self->number, rows, what);
}

/* wanted NULL: only that there are results. */
static void predict_once(member *self, flow_context *context, flow_session *session, int rows, int compare)
{
  shared *of = self->of;
  flow_tensor *outputs[MOST_OUTPUTS];
  flow_status status = session ? flow_session_predict(context, session, of->inputs[rows], of->input_count, outputs)
                               : flow_model_predict(context, of->model, of->inputs[rows], of->input_count, outputs);
  if (status != FLOW_OK) {
    note(self, flow_last_error(), rows);
    return;
  }
  for (int i = 0; i < of->output_count; i++) {
    if (compare && !same_bits(outputs[i], of->wanted[rows][i])) note(self, "other bits than alone", rows);
    flow_tensor_release(outputs[i]);
  }
}

static void *predict_all(void *argument)
{
  member *self = argument;
  uint64_t random = (uint64_t)self->number + 1;
  flow_context *context;
  flow_session *session = NULL;
  if (flow_context_new(&context) != FLOW_OK) return NULL;
  if (self->of->sessions && flow_session_new(self->of->model, &session) != FLOW_OK) note(self, flow_last_error(), 0);
  for (int i = 0; i < self->of->calls; i++) predict_once(self, context, session, 1 + random_below(&random, MOST_ROWS), 1);
  flow_session_release(session);
  flow_context_release(context);
  return NULL;
}

static void run_threads(shared *all, void *(*run)(void *), int count)
{
  member members[THREADS + 1] = { 0 };
  all->failures = all->refused = 0;
  for (int i = 0; i < count; i++) {
    members[i] = (member){ .of = all, .number = i };
    assert_int_equal(0, pthread_create(&members[i].thread, NULL, run, &members[i]));
  }
  for (int i = 0; i < count; i++) pthread_join(members[i].thread, NULL);
  for (int i = 0; i < count; i++)
    if (members[i].why[0]) fail_msg("%d failures; %s", (int)all->failures, members[i].why);
}

static void threads_share_a_model(void **state)
{
  static const char *const names[] = { "flowers_small", "mnist_small_compiled", "func", "towers", "images" };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    shared all = { .calls = calls_of_each(200, THREADS) };
    char path[128];
    snprintf(path, sizeof path, FOLDER "%s.keras", names[i]);
    make_wanted(*state, path, &all);
    for (all.sessions = 0; all.sessions < 2; all.sessions++) {
      assert_int_equal(FLOW_OK, flow_model_load(*state, path, &all.model));
      run_threads(&all, predict_all, THREADS);
      flow_model_release(all.model);
    }
    release_wanted(&all);
  }
}

/* The last reference to a model may be a session's. */
static void a_session_keeps_its_model(void **state)
{
  shared all = { .calls = 0 };
  make_wanted(*state, FOLDER "func.keras", &all);
  flow_session *session;
  flow_tensor *outputs[MOST_OUTPUTS];
  assert_int_equal(FLOW_OK, flow_model_load(*state, FOLDER "func.keras", &all.model));
  assert_int_equal(FLOW_OK, flow_session_new(all.model, &session));
  flow_model_release(all.model);
  for (int rows = 1; rows <= MOST_ROWS; rows += 23) {
    assert_int_equal(FLOW_OK, flow_session_predict(*state, session, all.inputs[rows], all.input_count, outputs));
    for (int i = 0; i < all.output_count; i++) {
      assert_true(same_bits(outputs[i], all.wanted[rows][i]));
      flow_tensor_release(outputs[i]);
    }
  }
  flow_session_release(session);
  flow_session_release(NULL);
  assert_int_equal(FLOW_INVALID_ARGUMENT, flow_session_predict(*state, NULL, all.inputs[1], all.input_count, outputs));
  assert_non_null(strstr(flow_last_error(), "session"));
  assert_int_equal(FLOW_INVALID_ARGUMENT, flow_session_new(NULL, &session));
  release_wanted(&all);
}

static void *predict_with_one_session(void *argument)
{
  member *self = argument;
  flow_context *context;
  if (flow_context_new(&context) != FLOW_OK) return NULL;
  for (int i = 0; i < self->of->calls; i++) {
    flow_tensor *outputs[MOST_OUTPUTS];
    flow_status status = flow_session_predict(context, self->of->session, self->of->inputs[MOST_ROWS], self->of->input_count, outputs);
    for (int k = 0; k < self->of->output_count && status == FLOW_OK; k++) flow_tensor_release(outputs[k]);
    if (status == FLOW_INVALID_STATE && strstr(flow_last_error(), "another thread")) atomic_fetch_add(&self->of->refused, 1);
    else if (status != FLOW_OK) note(self, flow_last_error(), MOST_ROWS);
  }
  flow_context_release(context);
  return NULL;
}

static void one_session_serves_one_thread(void **state)
{
  shared all = { .calls = calls_of_each(400, THREADS) };
  make_wanted(*state, FOLDER "func.keras", &all);
  assert_int_equal(FLOW_OK, flow_model_load(*state, FOLDER "func.keras", &all.model));
  assert_int_equal(FLOW_OK, flow_session_new(all.model, &all.session));
  run_threads(&all, predict_with_one_session, THREADS);
  flow_session_release(all.session);
  flow_model_release(all.model);
  release_wanted(&all);
}

/* ---- training and saving meanwhile ------------------------------------------------------------------------------------------------ */

enum { STEPS = 12, BATCH_ROWS = 16 };

static flow_status train_step(flow_context *context, flow_model *model, int step, double *loss)
{
  flow_tensor *x, *y, *row;
  const int64_t shape[2] = { BATCH_ROWS, 6 }, strides[2] = { 6, 1 }, count = BATCH_ROWS;
  FLOW_TRY(flow_tensor_arange(FLOW_FLOAT32, -1, 0.02 + 0.001 * step, BATCH_ROWS * 6, &row));
  flow_status status = flow_tensor_view(row, 2, shape, strides, 0, &x);
  if (status == FLOW_OK) status = flow_tensor_new(FLOW_FLOAT32, 1, &count, &y);
  for (int i = 0; i < BATCH_ROWS && status == FLOW_OK; i++) ((float *)y->data)[i] = (float)(i % 3);
  if (status == FLOW_OK) status = flow_model_train(context, model, &x, 1, y, loss);
  flow_tensor_release(y);
  flow_tensor_release(x);
  flow_tensor_release(row);
  return status;
}

/* Member 0 trains, member 1 saves, the others predict until the training is done. */
static void *do_part(void *argument)
{
  member *self = argument;
  shared *of = self->of;
  uint64_t random = (uint64_t)self->number;
  flow_context *context;
  double loss;
  char path[TEMPORARY_PATH];
  temporary(path, "sessions.keras");
  if (flow_context_new(&context) != FLOW_OK) return NULL;
  if (self->number == 0) {
    for (int step = 0; step < STEPS; step++)
      if (train_step(context, of->model, step, &loss) != FLOW_OK) note(self, flow_last_error(), step);
    atomic_store(&of->done, 1);
  }
  do {
    if (self->number > 1) predict_once(self, context, NULL, 1 + random_below(&random, MOST_ROWS), 0);
    else if (self->number == 1 && flow_model_save(of->model, path) != FLOW_OK) note(self, flow_last_error(), 0);
  } while (!atomic_load(&of->done));
  if (self->number == 1) unlink(path);
  flow_context_release(context);
  return NULL;
}

static void training_goes_on_beside_predictions(void **state)
{
  flow_context *context = *state;
  shared all = { 0 };
  flow_model *alone;
  flow_tensor *outputs[MOST_OUTPUTS], *wanted[MOST_OUTPUTS];
  double loss, alone_loss;
  make_wanted(context, FOLDER "trained_adam.keras", &all);
  assert_int_equal(FLOW_OK, flow_model_load(context, FOLDER "trained_adam.keras", &alone));
  assert_int_equal(FLOW_OK, flow_model_load(context, FOLDER "trained_adam.keras", &all.model));
  all.model->seed = alone->seed;
  for (int step = 0; step < STEPS; step++) assert_int_equal(FLOW_OK, train_step(context, alone, step, &alone_loss));
  run_threads(&all, do_part, THREADS);
  assert_int_equal(FLOW_OK, flow_model_predict(context, all.model, all.inputs[9], 1, outputs));
  assert_int_equal(FLOW_OK, flow_model_predict(context, alone, all.inputs[9], 1, wanted));
  assert_true(same_bits(outputs[0], wanted[0]));
  assert_false(same_bits(outputs[0], all.wanted[9][0]));
  assert_int_equal(FLOW_OK, train_step(context, all.model, 5, &loss));
  assert_int_equal(FLOW_OK, train_step(context, alone, 5, &alone_loss));
  assert_memory_equal(&loss, &alone_loss, sizeof loss);
  flow_tensor_release(outputs[0]);
  flow_tensor_release(wanted[0]);
  flow_model_release(all.model);
  flow_model_release(alone);
  release_wanted(&all);
}

/* ---- ops and instances ---------------------------------------------------------------------------------------------------------- */

enum { SIDE = 96 };

static flow_status apply(flow_context *context, int op, flow_tensor *a, flow_tensor *b, flow_tensor **out)
{
  *out = NULL;
  return flow_apply(context, op, (flow_tensor *[]){ a, b }, 2, NULL, out);
}

static void *run_ops(void *argument)
{
  member *self = argument;
  flow_context *context;
  flow_tensor *a = self->of->inputs[1][0], *wanted = self->of->wanted[1][0];
  if (flow_context_new(&context) != FLOW_OK) return NULL;
  for (int i = 0; i < self->of->calls; i++) {
    flow_tensor *product = NULL, *sum = NULL;
    flow_status status = apply(context, FLOW_OP_matmul, a, a, &product);
    if (status == FLOW_OK) status = apply(context, FLOW_OP_add, product, a, &sum);
    if (status != FLOW_OK) note(self, flow_last_error(), SIDE);
    else if (!same_bits(sum, wanted)) note(self, "other bits than alone", SIDE);
    flow_tensor_release(product);
    flow_tensor_release(sum);
  }
  flow_context_release(context);
  return NULL;
}

static void *run_instance(void *argument)
{
  member *self = argument;
  flow_context *context;
  if (flow_context_new(&context) != FLOW_OK) return NULL;
  for (int i = 0; i < self->of->calls; i++) {
    flow_tensor *output = NULL;
    flow_status status = flow_instance_run(context, self->of->instance, self->of->inputs[1], 1, &output);
    if (status == FLOW_OK && !same_bits(output, self->of->wanted[1][0])) note(self, "other bits than alone", SIDE);
    if (status == FLOW_INVALID_STATE && strstr(flow_last_error(), "another thread")) atomic_fetch_add(&self->of->refused, 1);
    else if (status != FLOW_OK) note(self, flow_last_error(), SIDE);
    if (status == FLOW_OK) flow_tensor_release(output);
  }
  flow_context_release(context);
  return NULL;
}

static void ops_and_instances_in_threads(void **state)
{
  flow_context *context = *state;
  shared all = { .calls = calls_of_each(400, THREADS) };
  const int64_t shape[2] = { SIDE, SIDE };
  flow_tensor *a, *x, *product, *sum;
  flow_plan *plan;
  assert_int_equal(FLOW_OK, flow_tensor_new(FLOW_FLOAT32, 2, shape, &a));
  for (int i = 0; i < SIDE * SIDE; i++) ((float *)a->data)[i] = (float)(i % 17) * 0.25f - 2;
  assert_int_equal(FLOW_OK, apply(context, FLOW_OP_matmul, a, a, &product));
  assert_int_equal(FLOW_OK, apply(context, FLOW_OP_add, product, a, &all.wanted[1][0]));
  flow_tensor_release(product);
  all.inputs[1][0] = a;
  run_threads(&all, run_ops, THREADS);
  assert_int_equal(FLOW_OK, flow_trace_begin(context));
  assert_int_equal(FLOW_OK, flow_trace_input(context, FLOW_FLOAT32, 2, shape, &x));
  assert_int_equal(FLOW_OK, apply(context, FLOW_OP_matmul, x, x, &product));
  assert_int_equal(FLOW_OK, apply(context, FLOW_OP_add, product, x, &sum));
  assert_int_equal(FLOW_OK, flow_trace_end(context, &sum, 1, &plan));
  assert_int_equal(FLOW_OK, flow_instance_new(plan, 1, &all.instance));
  run_threads(&all, run_instance, THREADS);
  flow_instance_release(all.instance);
  flow_plan_release(plan);
  flow_tensor_release(sum);
  flow_tensor_release(product);
  flow_tensor_release(x);
  flow_tensor_release(a);
  flow_tensor_release(all.wanted[1][0]);
}

/* ---- forks ------------------------------------------------------------------------------------------------------------------------ */

/* Children made while threads predict: whatever lock was held, they predict, with the same bits. */
static void children_predict(void **state)
{
  shared all = { .calls = calls_of_each(80, 2) };
  member members[2] = { { .of = &all, .number = 0 }, { .of = &all, .number = 1 } };
  make_wanted(*state, FOLDER "func.keras", &all);
  assert_int_equal(FLOW_OK, flow_model_load(*state, FOLDER "func.keras", &all.model));
  for (int i = 0; i < 2; i++) assert_int_equal(0, pthread_create(&members[i].thread, NULL, predict_all, &members[i]));
  for (int i = 0; i < 10; i++) {
    int status = -1;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
      member inside = { .of = &all, .number = 9 };
      alarm(CHILD_SECONDS);
      all.failures = 0;
      predict_once(&inside, *state, NULL, 1 + i * 6, 1);
      if (all.failures) fprintf(stderr, "%s\n", inside.why);
      _exit(all.failures ? 3 : 0);
    }
    assert_int_equal(child, waitpid(child, &status, 0));
    assert_int_equal(0, status);
  }
  for (int i = 0; i < 2; i++) pthread_join(members[i].thread, NULL);
  assert_int_equal(0, all.failures);
  flow_model_release(all.model);
  release_wanted(&all);
}

/* ---- memory ----------------------------------------------------------------------------------------------------------------------- */

static double resident_megabytes(void)
{
  char line[200];
  double kilobytes = -1;
  FILE *file = fopen("/proc/self/smaps_rollup", "r");
  while (file && fgets(line, sizeof line, file))
    if (sscanf(line, "Pss: %lf kB", &kilobytes) == 1) break;
  if (file) fclose(file);
  return kilobytes / 1024;
}

enum { WIDE = 4096 };

/* A model of one Dense layer, 67 MB of weights. */
static void save_wide_model(const char *path)
{
  static const char config[] =
      "{\"module\": \"keras\", \"class_name\": \"Sequential\", \"config\": {\"name\": \"wide\", \"layers\": ["
      "{\"module\": \"keras.layers\", \"class_name\": \"InputLayer\", \"config\": {\"batch_shape\": [null, 4096], \"dtype\": \"float32\","
      " \"name\": \"in\"}}, {\"module\": \"keras.layers\", \"class_name\": \"Dense\", \"config\": {\"name\": \"dense\", \"units\": 4096,"
      " \"activation\": \"relu\", \"use_bias\": true}}]}}";
  const int64_t shape[2] = { WIDE, WIDE }, length = WIDE;
  flow_tensor *kernel, *bias;
  flow_tensor_writer *writer;
  flow_archive_writer *archive;
  assert_int_equal(FLOW_OK, flow_tensor_new(FLOW_FLOAT32, 2, shape, &kernel));
  assert_int_equal(FLOW_OK, flow_tensor_new(FLOW_FLOAT32, 1, &length, &bias));
  for (int i = 0; i < WIDE * WIDE; i++) ((float *)kernel->data)[i] = (float)(i % 13) * 0.01f - 0.05f;
  assert_int_equal(FLOW_OK, flow_tensor_writer_new(&writer));
  assert_int_equal(FLOW_OK, flow_tensor_writer_add(writer, "layers/dense/vars/0", kernel));
  assert_int_equal(FLOW_OK, flow_tensor_writer_add(writer, "layers/dense/vars/1", bias));
  assert_int_equal(FLOW_OK, flow_archive_writer_new(path, &archive));
  assert_int_equal(FLOW_OK, flow_archive_writer_add_text(archive, "metadata.json", "{}", 2));
  assert_int_equal(FLOW_OK, flow_archive_writer_add_text(archive, "config.json", config, (double)strlen(config)));
  assert_int_equal(FLOW_OK, flow_archive_writer_add_tensors(archive, "model.weights.h5", writer, "hdf5"));
  assert_int_equal(FLOW_OK, flow_archive_writer_commit(archive));
  flow_archive_writer_release(archive);
  flow_tensor_writer_release(writer);
  flow_tensor_release(kernel);
  flow_tensor_release(bias);
}

static void *predict_wide(void *argument)
{
  member *self = argument;
  flow_context *context;
  if (flow_context_new(&context) != FLOW_OK) return NULL;
  for (int rows = 1; rows <= 32; rows += 5) predict_once(self, context, NULL, rows, 0);
  flow_context_release(context);
  return NULL;
}

static void weights_exist_once(void **state)
{
  char path[TEMPORARY_PATH];
  shared all = { .input_count = 1, .output_count = 1 };
  if (getenv("FLOW_SANITIZED")) skip();              /* sanitizers have their own memory */
  save_wide_model(temporary(path, "wide.keras"));
  flow_memory_trim();
  double before = resident_megabytes();
  assert_int_equal(FLOW_OK, flow_model_load(*state, path, &all.model));
  unlink(path);
  for (int rows = 1; rows <= 32; rows += 5) make_inputs(all.model, rows, all.inputs[rows]);
  run_threads(&all, predict_wide, THREADS);
  double used = resident_megabytes() - before;
  if (!(used >= 64 && used < 100)) fail_msg("8 threads with one model of 67 MB take %.0f MB", used);
  for (int rows = 1; rows <= 32; rows += 5) flow_tensor_release(all.inputs[rows][0]);
  flow_model_release(all.model);
}

static int set_up(void **state) { return flow_context_new((flow_context **)state) == FLOW_OK ? 0 : -1; }

static int tear_down(void **state)
{
  flow_context_release(*state);
  return 0;
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(weights_exist_once),
    cmocka_unit_test(threads_share_a_model),
    cmocka_unit_test(a_session_keeps_its_model),
    cmocka_unit_test(one_session_serves_one_thread),
    cmocka_unit_test(training_goes_on_beside_predictions),
    cmocka_unit_test(ops_and_instances_in_threads),
    cmocka_unit_test(children_predict),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
