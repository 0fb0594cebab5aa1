/* test_float_state.c: a host may round upwards, flush subnormal numbers to zero, compute with few digits or trap: results are the same
 * bits, whoever computes first in the process, and the host finds its environment, flags included, as it was. Each environment has a
 * process of its own, since the threads of the team start in it. */
#include <fenv.h>
#include <math.h>
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

#include "base/hash.h"
#include "base/memory.h"
#include "base/team.h"
#include "image/image.h"
#include "image/resize.h"
#include "layers/initializers.h"
#include "models/model.h"
#include "train/schedules.h"
#include "temporary.h"

#define FOLDER "spec/golden/keras/"

enum { DIGESTS = 96, STEPS = 3, SIDE = 160 };

typedef struct results { int count; uint64_t digests[DIGESTS]; const char *names[DIGESTS]; } results;

static void add(results *all, const char *name, const void *bytes, size_t count)
{
  if (all->count == DIGESTS) _exit(9);
  all->names[all->count] = name;
  all->digests[all->count++] = flow_hash(FLOW_HASH_BEGIN, bytes, count);
}

static void must(flow_status status)
{
  if (status == FLOW_OK) return;
  fprintf(stderr, "%s\n", flow_last_error());
  _exit(8);
}

static void add_tensor(results *all, const char *name, flow_tensor *tensor)
{
  add(all, name, tensor->data, (size_t)(flow_shape_size(tensor->rank, tensor->shape) * flow_dtype_size(tensor->dtype)));
}

typedef enum scale { ORDINARY, SUBNORMAL, COLOURS, SCALES } scale;

enum { VALUES = 101 };
static float values[SCALES][VALUES];       /* made by the parent: the children cannot compute in their environments */

static void make_values(void)
{
  for (int i = 0; i < VALUES; i++) {
    values[ORDINARY][i] = (float)((i * 37) % VALUES - 50) / 64;
    values[SUBNORMAL][i] = values[ORDINARY][i] * 0x1p-130f;
    values[COLOURS][i] = values[ORDINARY][i] * 90;
  }
}

static flow_tensor *filled(int rank, const int64_t *shape, scale which)
{
  flow_tensor *tensor;
  must(flow_tensor_new(FLOW_FLOAT32, rank, shape, &tensor));
  int64_t count = flow_shape_size(rank, shape);
  for (int64_t i = 0; i < count; i++) ((float *)tensor->data)[i] = values[which][i % VALUES];
  return tensor;
}

/* ---- what is computed ------------------------------------------------------------------------------------------------------------ */

static void ops(flow_context *context, results *all, scale which)
{
  static const char *const names[] = { "exp", "tanh", "sqrt", "softmax", "sum", "mean", "square", "sigmoid", "cumsum" };
  const int64_t shape[2] = { SIDE, SIDE };
  flow_tensor *x = filled(2, shape, which), *y;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    int op = flow_op_find(names[i]);
    if (op < 0 || flow_apply(context, op, &x, 1, NULL, &y) != FLOW_OK) continue;
    add_tensor(all, names[i], y);
    flow_tensor_release(y);
  }
  must(flow_apply(context, flow_op_find("matmul"), (flow_tensor *[]){ x, x }, 2, NULL, &y));
  add_tensor(all, "matmul", y);
  flow_tensor_release(y);
  static const int dtypes[] = { FLOW_FLOAT16, FLOW_BFLOAT16, FLOW_FLOAT64, FLOW_INT8, FLOW_INT64 };
  for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
    flow_attributes attributes = { .cast = { .dtype = dtypes[i] } };
    must(flow_apply(context, flow_op_find("cast"), &x, 1, &attributes, &y));
    add_tensor(all, "cast", y);
    flow_tensor *copy;
    must(flow_tensor_new(dtypes[i], 2, shape, &copy));
    must(flow_tensor_copy(copy, x));
    add_tensor(all, "copy", copy);
    flow_tensor_release(copy);
    flow_tensor_release(y);
  }
  char text[4000];
  memset(text, 0, sizeof text);
  flow_tensor_format(x, text, sizeof text);
  add(all, "text", text, sizeof text);
  flow_tensor_release(x);
}

static void tensors(flow_context *context, results *all)
{
  static const char *const names[] = { "glorot_uniform", "random_normal", "truncated_normal", "he_normal", "random_uniform" };
  const int64_t shape[2] = { 40, 24 }, position[2] = { 3, 4 };
  flow_tensor *tensor;
  must(flow_tensor_arange(FLOW_FLOAT32, 0.1, 0.3, 500, &tensor));
  add_tensor(all, "arange", tensor);
  flow_tensor_release(tensor);
  must(flow_tensor_new(FLOW_FLOAT32, 2, shape, &tensor));
  must(flow_tensor_fill(tensor, 0.1));
  must(flow_tensor_set(tensor, position, 1.0 / 3));
  add_tensor(all, "fill", tensor);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    must(flow_initialize(context, names[i], NULL, 7, tensor));
    add_tensor(all, names[i], tensor);
  }
  flow_tensor_release(tensor);
}

static void numbers(results *all)
{
  static const char text[] = "[0.1, 2.5e-7, 123456789.123456789, 1e-310, 0.30000000000000004]";
  flow_json *json;
  char printed[400];
  memset(printed, 0, sizeof printed);
  must(flow_json_parse(text, sizeof text - 1, &json));
  for (const flow_json *at = flow_json_child(json); at; at = flow_json_next(at)) {
    double number = flow_json_number(at);
    add(all, "number", &number, sizeof number);
  }
  flow_json_print(json, printed, sizeof printed);
  add(all, "printed", printed, sizeof printed);
  flow_json_release(json);
  flow_arguments *arguments;
  flow_schedule *schedule;
  must(flow_arguments_new(&arguments));
  must(flow_arguments_set_number(arguments, "initial_learning_rate", 0.1));
  must(flow_arguments_set_number(arguments, "decay_steps", 1000));
  must(flow_schedule_new("CosineDecay", arguments, &schedule));
  double rate = flow_schedule_value(schedule, 333);
  add(all, "rate", &rate, sizeof rate);
  flow_schedule_release(schedule);
  flow_arguments_release(arguments);
}

static void pictures(results *all)
{
  const int64_t shape[4] = { 1, 30, 41, 3 };
  flow_tensor *picture = filled(4, shape, COLOURS), *small;
  static const char *const methods[] = { "bilinear", "bicubic", "area", "lanczos3" };
  for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
    if (flow_image_resize(picture, 17, 22, methods[i], 0, &small) != FLOW_OK) continue;
    add_tensor(all, methods[i], small);
    flow_tensor_release(small);
  }
  flow_tensor_release(picture);
}

static void add_file(results *all, const char *path)
{
  static char bytes[1 << 22];
  FILE *file = fopen(path, "rb");
  size_t count = file ? fread(bytes, 1, sizeof bytes, file) : 0;
  if (file) fclose(file);
  if (count == 0) _exit(7);
  add(all, "file", bytes, count);
}

static void models(flow_context *context, results *all)
{
  const int64_t shape[4] = { 71, 28, 28, 1 }, batch[2] = { 16, 6 }, count = 16;
  flow_model *model;
  flow_tensor *x, *y;
  double loss;
  char path[TEMPORARY_PATH];
  must(flow_model_load(context, FOLDER "mnist_small_compiled.keras", &model));
  x = filled(flow_model_input_rank(model, 0), shape, ORDINARY);
  for (int i = 0; i < 3; i++) {          /* alone, then by the team */
    must(flow_model_predict(context, model, &x, 1, &y));
    add_tensor(all, "predict", y);
    flow_tensor_release(y);
  }
  flow_tensor_release(x);
  flow_model_release(model);
  must(flow_model_load(context, FOLDER "trained_adam.keras", &model));
  x = filled(2, batch, ORDINARY);
  must(flow_tensor_new(FLOW_FLOAT32, 1, &count, &y));
  for (int i = 0; i < count; i++) ((float *)y->data)[i] = (float)(i % 3);
  for (int step = 0; step < STEPS; step++) {
    must(flow_model_train(context, model, &x, 1, y, &loss));
    add(all, "loss", &loss, sizeof loss);
  }
  must(flow_model_save(model, temporary(path, "floats.keras")));
  add_file(all, path);
  unlink(path);
  flow_tensor_release(x);
  flow_tensor_release(y);
  flow_model_release(model);
}

static int flags_after_models;

static void compute(results *all)
{
  flow_context *context;
  must(flow_team_set_size(2));
  must(flow_context_new(&context));
  ops(context, all, ORDINARY);
  ops(context, all, SUBNORMAL);
  tensors(context, all);
  numbers(all);
  pictures(all);
  feclearexcept(FE_ALL_EXCEPT);
  models(context, all);
  flags_after_models = fetestexcept(FE_ALL_EXCEPT);
  flow_context_release(context);
}

/* ---- environments ---------------------------------------------------------------------------------------------------------------- */

typedef enum environment { DEFAULT, UP, DOWN, TOWARDS_ZERO, FLUSHED, FEW_DIGITS, TRAPS, ENVIRONMENTS } environment;

static const char *const environment_names[] = { "default", "upward", "downward", "towards zero", "subnormal numbers flushed",
                                                 "x87 with 24 bits", "traps" };

static void set_environment(environment e)
{
  feclearexcept(FE_ALL_EXCEPT);
  if (e == UP) fesetround(FE_UPWARD);
  if (e == DOWN) fesetround(FE_DOWNWARD);
  if (e == TOWARDS_ZERO) fesetround(FE_TOWARDZERO);
#ifdef __x86_64__
  unsigned short few = 0x7f;
  if (e == FLUSHED) __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);
  if (e == FEW_DIGITS) __asm__ volatile("fldcw %0" : : "m"(few));
  if (e == TRAPS) __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() & ~0x1f80u);      /* inexact results, too */
#endif
}

/* The control words of this thread. */
static void read_environment(unsigned *words)
{
#ifdef __x86_64__
  unsigned short x87;
  words[0] = __builtin_ia32_stmxcsr() & ~0x3fu;
  __asm__ volatile("fnstcw %0" : "=m"(x87));
  words[1] = x87;
#else
  words[0] = (unsigned)fegetround();
  words[1] = 0;
#endif
}

static void compute_in(environment e, results *all)
{
  static char told[sizeof(results)];
  int pipes[2], status = -1;
  size_t got = 0;
  assert_int_equal(0, pipe(pipes));
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    static results mine;
    unsigned before[2], after[2];
    set_environment(e);
    read_environment(before);
    compute(&mine);
    read_environment(after);
    if (memcmp(before, after, sizeof before) != 0 || flags_after_models != 0) _exit(6);
    _exit(write(pipes[1], &mine, sizeof mine) == (ssize_t)sizeof mine ? 0 : 5);      /* names are where they are in the parent */
  }
  close(pipes[1]);
  for (ssize_t some; got < sizeof told && (some = read(pipes[0], told + got, sizeof told - got)) > 0;) got += (size_t)some;
  close(pipes[0]);
  assert_int_equal(child, waitpid(child, &status, 0));
  if (status != 0) fail_msg("%s: ended with status %x (6 << 8: the environment changed)", environment_names[e], (unsigned)status);
  memcpy(all, told, sizeof told);
}

static void results_do_not_depend_on_the_host(void **state)
{
  static results usual, other;
  (void)state;
  make_values();
  compute_in(DEFAULT, &usual);
  assert_true(usual.count > 50);
  for (environment e = UP; e < ENVIRONMENTS; e++) {
    compute_in(e, &other);
    assert_int_equal(usual.count, other.count);
    for (int i = 0; i < usual.count; i++)
      if (usual.digests[i] != other.digests[i]) fail_msg("%s: result %d, %s, has other bits", environment_names[e], i, usual.names[i]);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(results_do_not_depend_on_the_host) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
