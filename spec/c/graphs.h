/* graphs.h: what the tests of tapes, plans and optimizers share: a context and a pool of references for each test, ops and
 * traces in one line, and a small network that trains. After each test everything must be given back. */
#ifndef FLOW_SPEC_GRAPHS_H
#define FLOW_SPEC_GRAPHS_H

#include <string.h>

#include "tensors.h"
#include "autodiff/apply.h"
#include "run/instance.h"
#include "graph/tape.h"
#include "graph/variable.h"

/* Each test program includes this once; not all use everything. */
#define HELPER static inline __attribute__((unused))

static flow_context *context;
enum { MOST_KEPT = 4096 };
static struct { void *object; void (*release)(void *); } kept[MOST_KEPT];
static int kept_count;

HELPER void *keep(void *object, void (*release)(void *))
{
  assert_true(kept_count < MOST_KEPT);
  kept[kept_count].object = object;
  kept[kept_count++].release = release;
  return object;
}

HELPER void release_tensor(void *p)    { flow_tensor_release(p); }
HELPER void release_variable(void *p)  { flow_variable_release(p); }
HELPER void release_plan(void *p)      { flow_plan_release(p); }
HELPER void release_instance(void *p)  { flow_instance_release(p); }
HELPER void release_tape(void *p)      { flow_tape_release(p); }
HELPER void release_optimizer(void *p) { flow_optimizer_release(p); }

HELPER void release_kept_down_to(int count)
{
  while (kept_count > count) {
    kept_count--;
    kept[kept_count].release(kept[kept_count].object);
  }
}

HELPER int begin_test(void **state)
{
  remember_live_bytes(state);
  kept_count = 0;
  return flow_context_new(&context) != FLOW_OK;
}

HELPER int end_test(void **state)
{
  flow_fail_allocation(-1);
  release_kept_down_to(0);
  flow_context_release(context);
  return expect_nothing_leaked(state);
}

#define GRAPH_TEST(name) cmocka_unit_test_setup_teardown(name, begin_test, end_test)

#define OK(call) do { if ((call) != FLOW_OK) fail_msg("%s: %s", #call, flow_last_error()); } while (0)
#define FAILS(call, status, text)                              \
  do {                                                         \
    assert_int_equal(call, status);                            \
    if (!strstr(flow_last_error(), text)) fail_msg("message is \"%s\"", flow_last_error()); \
  } while (0)

/* ---- tensors and ops: results belong to the test ----------------------------------------------------------------- */

#define DOUBLES(...) (const double[]){ __VA_ARGS__ }
HELPER flow_tensor *floats_of(int rank, const int64_t *shape, const double *numbers)
{
  return keep(from_numbers(FLOW_FLOAT32, rank, shape, numbers), release_tensor);
}
#define VECTOR(...) floats_of(1, SHAPE((int64_t)(sizeof(DOUBLES(__VA_ARGS__)) / sizeof(double))), DOUBLES(__VA_ARGS__))
HELPER flow_tensor *number(double value)
{
  flow_tensor *t;
  OK(flow_tensor_scalar(FLOW_FLOAT32, value, &t));
  return keep(t, release_tensor);
}

/* Values between -1 and 1 that look random; the same for the same seed. */
HELPER flow_tensor *noise(int rank, const int64_t *shape, unsigned seed)
{
  flow_tensor *t = keep(zeros(FLOW_FLOAT32, rank, shape), release_tensor);
  float *data = flow_tensor_data(t);
  for (int64_t i = 0; i < flow_shape_size(rank, shape); i++) {
    seed = seed * 1664525u + 1013904223u;
    data[i] = (float)(seed >> 8) / (float)(1 << 23) - 1.0f;
  }
  return t;
}

HELPER flow_tensor *op3(int op, flow_tensor *a, flow_tensor *b, flow_tensor *c, const flow_attributes *attributes)
{
  flow_tensor *out;
  OK(flow_apply1(context, op, a, b, c, attributes, &out));
  return keep(out, release_tensor);
}
#define OP1(name, a) op3(FLOW_OP_##name, a, NULL, NULL, NULL)
#define OP2(name, a, b) op3(FLOW_OP_##name, a, b, NULL, NULL)
HELPER flow_tensor *sum_of(flow_tensor *x) { return OP1(sum, x); }

HELPER flow_variable *variable_of(flow_tensor *initial, const char *name)
{
  flow_variable *v;
  OK(flow_variable_new(initial, name, 1, FLOW_MIRRORED, &v));
  return keep(v, release_variable);
}
HELPER flow_tensor *reading(flow_variable *v)
{
  flow_tensor *t;
  OK(flow_variable_read(context, v, &t));
  return keep(t, release_tensor);
}

/* ---- traces -------------------------------------------------------------------------------------------------------- */

HELPER flow_tensor *input_of(int dtype, int rank, const int64_t *shape)
{
  flow_tensor *t;
  OK(flow_trace_input(context, dtype, rank, shape, &t));
  return keep(t, release_tensor);
}

HELPER flow_plan *plan_of(flow_tensor *const *outputs, int count)
{
  flow_plan *plan;
  OK(flow_trace_end(context, outputs, count, &plan));
  return keep(plan, release_plan);
}
#define PLAN(...) plan_of((flow_tensor *[]){ __VA_ARGS__ }, (int)(sizeof((flow_tensor *[]){ __VA_ARGS__ }) / sizeof(flow_tensor *)))

HELPER flow_instance *instance_of(flow_plan *plan, double capacity)
{
  flow_instance *instance;
  OK(flow_instance_new(plan, capacity, &instance));
  return keep(instance, release_instance);
}

HELPER void run(flow_instance *instance, flow_tensor *const *inputs, int count, flow_tensor **outputs)
{
  OK(flow_instance_run(context, instance, inputs, count, outputs));
  for (int i = 0; outputs && i < instance->plan->output_count; i++) keep(outputs[i], release_tensor);
}

/* How often an op occurs in a plan. */
HELPER int count_op(const flow_plan *plan, int op)
{
  int count = 0;
  for (int k = 0; k < plan->order_count; k++) count += plan->graph->nodes[plan->order[k]].op == op;
  return count;
}

HELPER void expect_same_bits(const flow_tensor *a, const flow_tensor *b)
{
  assert_true(flow_shape_equal(a->rank, a->shape, b->rank, b->shape));
  assert_int_equal(a->dtype, b->dtype);
  assert_memory_equal(a->data, b->data, (size_t)flow_shape_size(a->rank, a->shape) * (size_t)flow_dtype_size(a->dtype));
}

HELPER void expect_close(const flow_tensor *a, const flow_tensor *b, double tolerance)
{
  assert_true(flow_shape_equal(a->rank, a->shape, b->rank, b->shape));
  for (int64_t i = 0; i < flow_shape_size(a->rank, a->shape); i++) {
    double x = ((const float *)(const void *)a->data)[i], y = ((const float *)(const void *)b->data)[i];
    if (!(x - y <= tolerance && y - x <= tolerance)) fail_msg("element %d: %g and %g", (int)i, x, y);
  }
}

/* ---- a small network: convolution, bias, relu, pooling, dense, cross-entropy ------------------------------------------ */

enum { NET_VARIABLES = 4, NET_SIZE = 6, NET_CLASSES = 3 };

typedef struct net { flow_variable *variables[NET_VARIABLES]; } net;

HELPER net make_net(void)
{
  return (net){ {
    variable_of(noise(4, SHAPE(3, 3, 1, 4), 1), "kernel"), variable_of(noise(1, SHAPE(4), 2), "bias"),
    variable_of(noise(2, SHAPE(36, NET_CLASSES), 3), "weights"), variable_of(noise(1, SHAPE(NET_CLASSES), 4), "offsets") } };
}

/* Calls ops that may fail: results go to made[], which the caller releases. Returns the first failure. */
typedef struct attempt { flow_tensor *made[64]; int count; flow_status status; } attempt;

HELPER flow_tensor *attempt_op(attempt *a, int op, flow_tensor *x, flow_tensor *y, const flow_attributes *attributes)
{
  flow_tensor *out = NULL;
  if (a->status == FLOW_OK) a->status = flow_apply1(context, op, x, y, NULL, attributes, &out);
  if (a->status != FLOW_OK) return NULL;
  return a->made[a->count++] = out;
}

HELPER flow_tensor *attempt_read(attempt *a, flow_variable *v)
{
  flow_tensor *out = NULL;
  if (a->status == FLOW_OK) a->status = flow_variable_read(context, v, &out);
  if (a->status != FLOW_OK) return NULL;
  return a->made[a->count++] = out;
}

HELPER void end_attempt(attempt *a)
{
  for (int i = 0; i < a->count; i++) flow_tensor_release(a->made[i]);
  a->count = 0;
}

/* Mean loss of images {rows, 6, 6, 1} with int32 labels {rows}; eager or traced. Borrowed from the attempt. */
HELPER flow_tensor *net_loss(attempt *a, const net *n, flow_tensor *images, flow_tensor *labels)
{
  const flow_attributes same = { .convolution = { .stride = { 1, 1 }, .dilation = { 1, 1 }, .padding = { 1, 1, 1, 1 }, .groups = 1 } };
  const flow_attributes pool = { .pool = { .size = { 2, 2 }, .stride = { 2, 2 } } };
  const flow_attributes flat = { .shape = { .rank = 2, .dims = { INT64_MIN, 36 } } };
  flow_tensor *x = attempt_op(a, FLOW_OP_convolution, images, attempt_read(a, n->variables[0]), &same);
  x = attempt_op(a, FLOW_OP_relu, attempt_op(a, FLOW_OP_add, x, attempt_read(a, n->variables[1]), NULL), NULL, NULL);
  x = attempt_op(a, FLOW_OP_reshape, attempt_op(a, FLOW_OP_max_pool, x, NULL, &pool), NULL, &flat);
  x = attempt_op(a, FLOW_OP_matmul, x, attempt_read(a, n->variables[2]), NULL);
  x = attempt_op(a, FLOW_OP_add, x, attempt_read(a, n->variables[3]), NULL);
  flow_tensor *loss = NULL, *values = attempt_op(a, FLOW_OP_sparse_cross_entropy, x, labels, NULL);
  if (a->status == FLOW_OK) a->status = flow_mean(context, values, NULL, &loss);
  if (a->status != FLOW_OK) return NULL;
  return a->made[a->count++] = loss;
}

/* One step: loss, gradients, update. The loss is borrowed from the attempt. */
HELPER flow_tensor *net_step(attempt *a, const net *n, flow_optimizer *optimizer, flow_tensor *images, flow_tensor *labels)
{
  flow_tape *tape = NULL;
  flow_tensor *gradients[NET_VARIABLES] = { NULL };
  a->status = flow_tape_begin(context, &tape);
  if (a->status != FLOW_OK) return NULL;
  flow_tensor *loss = net_loss(a, n, images, labels);
  flow_tape_end(context, tape);
  if (a->status == FLOW_OK) a->status = flow_tape_gradient(context, tape, loss, NULL, n->variables, NET_VARIABLES, gradients);
  if (a->status == FLOW_OK) a->status = flow_optimizer_apply(context, optimizer, gradients, n->variables, NET_VARIABLES);
  for (int i = 0; i < NET_VARIABLES; i++) flow_tensor_release(gradients[i]);
  flow_tape_release(tape);
  return a->status == FLOW_OK ? loss : NULL;
}

HELPER flow_status trace_step(const net *n, flow_optimizer *optimizer, flow_plan **plan)
{
  attempt a = { .count = 0 };
  flow_tensor *images = NULL, *labels = NULL, *loss = NULL;
  a.status = flow_trace_begin(context);
  if (a.status != FLOW_OK) return a.status;
  a.status = flow_trace_input(context, FLOW_FLOAT32, 4, SHAPE(-1, NET_SIZE, NET_SIZE, 1), &images);
  if (a.status == FLOW_OK) a.status = flow_trace_input(context, FLOW_INT32, 1, SHAPE(-1), &labels);
  if (a.status == FLOW_OK) loss = net_step(&a, n, optimizer, images, labels);
  if (a.status == FLOW_OK) a.status = flow_trace_end(context, &loss, 1, plan);
  else flow_trace_abort(context);
  flow_tensor_release(images);
  flow_tensor_release(labels);
  end_attempt(&a);
  return a.status;
}

HELPER flow_optimizer *optimizer_of(const char *class)
{
  flow_optimizer *optimizer;
  OK(flow_optimizer_new(class, NULL, NULL, &optimizer));
  return keep(optimizer, release_optimizer);
}

HELPER flow_tensor *images_of(int64_t rows, unsigned seed) { return noise(4, SHAPE(rows, NET_SIZE, NET_SIZE, 1), seed); }

HELPER flow_tensor *labels_of(int64_t rows)
{
  flow_tensor *t = keep(zeros(FLOW_INT32, 1, SHAPE(rows)), release_tensor);
  for (int64_t i = 0; i < rows; i++) ((int32_t *)(void *)t->data)[i] = (int32_t)(i * 7 % NET_CLASSES);
  return t;
}

/* A copy of a variable's value that belongs to the test. */
HELPER flow_tensor *value_of(flow_variable *v)
{
  flow_tensor *copy = keep(zeros(v->tensor->dtype, v->tensor->rank, v->tensor->shape), release_tensor);
  OK(flow_tensor_copy(copy, v->tensor));
  return copy;
}

#endif
