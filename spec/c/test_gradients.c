/* test_gradients.c: every gradient rule against differences of the op itself, in float64: first derivatives, second ones
 * (the rule differentiated again), and the same rule in a trace whose batch is symbolic. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "autodiff/gradients.h"
#include "autodiff/apply.h"
#include "gradient_cases.h"

/* ---- helpers --------------------------------------------------------------------------------------------------------------- */

#define OK(call) \
  do { \
    if ((call) != FLOW_OK) fail_msg("%s, case %d: %s", flow_op_name(c->op), (int)(c - cases), flow_last_error()); \
  } while (0)

/* A repeatable number in [0, 1) for element i of stream s, without a pattern that would cancel. */
static double noise(int s, int64_t i)
{
  double x = sin(12.9898 * (double)(i + 1) + 78.233 * (double)(s + 1)) * 43758.5453;
  return x - floor(x);
}

static int is_source(const gradient_case *c, int i)
{
  return flow_dtype_is_float(c->inputs[i].dtype);
}

static void make_inputs(const gradient_case *c, flow_tensor **inputs)
{
  double low = c->low, high = c->high;
  if (low == 0 && high == 0) {
    low = -1;
    high = 1;
  }
  for (int i = 0; i < c->count; i++) {
    const flow_signature *s = &c->inputs[i];
    OK(flow_tensor_new(s->dtype, s->rank, s->dims, &inputs[i]));
    int64_t size = flow_shape_size(s->rank, s->dims);
    double *values = malloc(sizeof(double) * (size_t)size);
    int floats = flow_dtype_is_float(s->dtype);
    for (int64_t k = 0; k < size; k++) values[k] = floats ? low + (high - low) * noise(i, k) : (double)((k * 2 + 1) % 3);
    OK(flow_tensor_write(inputs[i], values, (double)size));
    free(values);
  }
}

static void release(flow_tensor **tensors, int count)
{
  for (int i = 0; i < count; i++) flow_tensor_release(tensors[i]);
}

/* Weights that turn a result into one number. */
static flow_tensor *make_weights(const gradient_case *c, const flow_tensor *like, int stream)
{
  flow_tensor *weights;
  OK(flow_tensor_new(FLOW_FLOAT64, like->rank, like->shape, &weights));
  for (int64_t i = 0; i < flow_shape_size(like->rank, like->shape); i++) ((double *)weights->data)[i] = noise(stream, i) + 0.25;
  return weights;
}

/* sum(weights x^2): the square makes the gradient of every op depend on its inputs, so that there are second derivatives. */
static flow_tensor *sum_of_squares(const gradient_case *c, flow_context *context, flow_tensor *x, flow_tensor *weights)
{
  flow_tensor *square, *product, *sum;
  OK(flow_apply1(context, FLOW_OP_square, x, NULL, NULL, NULL, &square));
  OK(flow_apply1(context, FLOW_OP_mul, square, weights, NULL, NULL, &product));
  OK(flow_apply1(context, FLOW_OP_sum, product, NULL, NULL, NULL, &sum));
  flow_tensor_release(square);
  flow_tensor_release(product);
  return sum;
}

/* The scalar function whose derivatives are compared: of the op's first output. */
static flow_tensor *target_of(const gradient_case *c, flow_context *context, flow_tensor *const *inputs)
{
  flow_tensor *outputs[3];
  OK(flow_apply(context, c->op, inputs, c->count, &c->attributes, outputs));
  flow_tensor *weights = make_weights(c, outputs[0], 50);
  flow_tensor *target = sum_of_squares(c, context, outputs[0], weights);
  flow_tensor_release(weights);
  release(outputs, flow_op_outputs(c->op));
  return target;
}

static double number(flow_tensor *scalar)
{
  double value = NAN;
  assert_int_equal(flow_tensor_item(scalar, &value), FLOW_OK);
  flow_tensor_release(scalar);
  return value;
}

static void gradients_of(const gradient_case *c, flow_context *context, flow_tensor *const *inputs, flow_tensor **gradients)
{
  flow_tape *tape;
  OK(flow_tape_begin(context, &tape));
  for (int i = 0; i < c->count; i++) {
    if (is_source(c, i)) OK(flow_tape_watch(tape, inputs[i]));
  }
  flow_tensor *target = target_of(c, context, inputs);
  OK(flow_tape_end(context, tape));
  OK(flow_tape_gradient(context, tape, target, inputs, NULL, c->count, gradients));
  flow_tensor_release(target);
  flow_tape_release(tape);
}

/* The scalar function of the second derivatives: of all gradients. */
static flow_tensor *slope_of(const gradient_case *c, flow_context *context, flow_tensor *const *inputs)
{
  flow_tensor *gradients[MOST_INPUTS], *total = NULL;
  gradients_of(c, context, inputs, gradients);
  for (int i = 0; i < c->count; i++) {
    if (gradients[i] == NULL) continue;
    flow_tensor *weights = make_weights(c, gradients[i], 60 + i), *sum = sum_of_squares(c, context, gradients[i], weights), *before = total;
    flow_tensor_release(weights);
    if (before == NULL) {
      total = sum;
      continue;
    }
    OK(flow_apply1(context, FLOW_OP_add, before, sum, NULL, NULL, &total));
    flow_tensor_release(before);
    flow_tensor_release(sum);
  }
  release(gradients, c->count);
  return total;
}

typedef flow_tensor *scalar_function(const gradient_case *c, flow_context *context, flow_tensor *const *inputs);

/* gradients[i] (NULL: zero) against central differences of f. */
static void compare_with_differences(const gradient_case *c, flow_context *context, scalar_function *f, flow_tensor *const *inputs,
                                     flow_tensor *const *gradients, const char *what)
{
  const double h = 1e-5;
  for (int i = 0; i < c->count; i++) {
    if (!is_source(c, i)) {
      assert_null(gradients[i]);
      continue;
    }
    if (gradients[i]) {
      assert_int_equal(gradients[i]->dtype, inputs[i]->dtype);
      assert_true(flow_shape_equal(gradients[i]->rank, gradients[i]->shape, inputs[i]->rank, inputs[i]->shape));
    }
    int64_t size = flow_shape_size(inputs[i]->rank, inputs[i]->shape);
    double *analytic = calloc((size_t)size, sizeof(double)), *x = (double *)inputs[i]->data;
    if (gradients[i]) OK(flow_tensor_read(gradients[i], analytic, (double)size));
    for (int64_t k = 0; k < size; k++) {
      double at = x[k];
      x[k] = at + h;
      double above = number(f(c, context, inputs));
      x[k] = at - h;
      double below = number(f(c, context, inputs));
      x[k] = at;
      double numeric = (above - below) / (2 * h);
      if (!(fabs(numeric - analytic[k]) <= 1e-6 * (1 + fabs(numeric)))) {
        fail_msg("%s, case %d: %s by element %d of input %d is %.9g, differences give %.9g", flow_op_name(c->op), (int)(c - cases), what,
                 (int)k, i, analytic[k], numeric);
      }
    }
    free(analytic);
  }
}

/* ---- tests ------------------------------------------------------------------------------------------------------------------- */

static void every_rule_has_a_case(void **state)
{
  (void)state;
  int missing = 0;
  for (int op = 0; op < FLOW_OP_COUNT; op++) {
    /* The gradient ops are differentiated by the second derivatives of their forward ops. */
    if (op == FLOW_OP_convolution_gradient || op == FLOW_OP_max_pool_gradient || op == FLOW_OP_batch_norm_gradient) continue;
    if (op == FLOW_OP_simple_rnn_gradient || op == FLOW_OP_lstm_gradient || op == FLOW_OP_gru_gradient) continue;
    /* Its transforms have no derivative; spec/backend differentiates it by the image. */
    if (op == FLOW_OP_sample_image || op == FLOW_OP_sample_image_gradient) continue;
    /* Their rule says that there is none: spec/unit/quantization_spec.lua. */
    if (op == FLOW_OP_quantize || op == FLOW_OP_quantize_weights || op == FLOW_OP_quantized_convolution) continue;
    if (op == FLOW_OP_loop) continue;      /* its rule makes a loop of its body: spec/unit/loops_spec.lua, spec/golden/loops_spec.lua */
    if (!flow_gradient_of(op)) continue;
    int found = 0;
    for (int i = 0; i < CASE_COUNT; i++) found |= cases[i].op == op;
    if (found) continue;
    print_error("%s has a gradient rule and no case in gradient_cases.h\n", flow_op_name(op));
    missing++;
  }
  assert_int_equal(missing, 0);
}

/* Inputs that an op does not read. */
static int is_unread(const gradient_case *c, int input)
{
  return (c->op == FLOW_OP_relu_gradient && input == 1) || (c->op == FLOW_OP_gru && input == 3 && !c->attributes.recurrent.reset_after);
}

static void first_derivatives(void **state)
{
  flow_context *context = *state;
  for (const gradient_case *c = cases; c < cases + CASE_COUNT; c++) {
    flow_tensor *inputs[MOST_INPUTS], *gradients[MOST_INPUTS];
    make_inputs(c, inputs);
    gradients_of(c, context, inputs, gradients);
    for (int i = 0; i < c->count; i++) {
      if (is_source(c, i) && !is_unread(c, i)) assert_non_null(gradients[i]);
    }
    compare_with_differences(c, context, target_of, inputs, gradients, "the derivative");
    release(gradients, c->count);
    release(inputs, c->count);
  }
}

static void second_derivatives(void **state)
{
  flow_context *context = *state;
  for (const gradient_case *c = cases; c < cases + CASE_COUNT; c++) {
    flow_tensor *inputs[MOST_INPUTS], *gradients[MOST_INPUTS];
    flow_tape *tape;
    make_inputs(c, inputs);
    OK(flow_tape_begin(context, &tape));
    for (int i = 0; i < c->count; i++) {
      if (is_source(c, i)) OK(flow_tape_watch(tape, inputs[i]));
    }
    flow_tensor *slope = slope_of(c, context, inputs);
    OK(flow_tape_end(context, tape));
    OK(flow_tape_gradient(context, tape, slope, inputs, NULL, c->count, gradients));
    compare_with_differences(c, context, slope_of, inputs, gradients, "the second derivative");
    release(gradients, c->count);
    flow_tensor_release(slope);
    flow_tape_release(tape);
    release(inputs, c->count);
  }
}

/* Gradients of the plain sum of squares, for inputs that are concrete or traced. */
static void unweighted_gradients(const gradient_case *c, flow_context *context, const flow_attributes *attributes,
                                 flow_tensor *const *inputs, flow_tensor **gradients)
{
  flow_tensor *outputs[3], *square, *target;
  flow_tape *tape;
  OK(flow_tape_begin(context, &tape));
  for (int i = 0; i < c->count; i++) {
    if (is_source(c, i)) OK(flow_tape_watch(tape, inputs[i]));
  }
  OK(flow_apply(context, c->op, inputs, c->count, attributes, outputs));
  OK(flow_apply1(context, FLOW_OP_square, outputs[0], NULL, NULL, NULL, &square));
  OK(flow_apply1(context, FLOW_OP_sum, square, NULL, NULL, NULL, &target));
  OK(flow_tape_end(context, tape));
  OK(flow_tape_gradient(context, tape, target, inputs, NULL, c->count, gradients));
  flow_tape_release(tape);
  flow_tensor_release(target);
  flow_tensor_release(square);
  release(outputs, flow_op_outputs(c->op));
}

/* A plan of the gradients over symbolic inputs; which[k] is the input that its output k belongs to. */
static flow_plan *trace_gradients(const gradient_case *c, flow_context *context, int *which, int *count)
{
  flow_tensor *symbols[MOST_INPUTS], *gradients[MOST_INPUTS], *kept[MOST_INPUTS];
  flow_attributes attributes = c->attributes;
  flow_plan *plan;
  if (c->row_dims) attributes.shape.dims[0] = -1;
  OK(flow_trace_begin(context));
  for (int i = 0; i < c->count; i++) {
    flow_signature s = c->inputs[i];
    if (c->rows & 1 << i) s.dims[0] = -1;
    OK(flow_trace_input(context, s.dtype, s.rank, s.dims, &symbols[i]));
  }
  unweighted_gradients(c, context, &attributes, symbols, gradients);
  *count = 0;
  for (int i = 0; i < c->count; i++) {
    if (!gradients[i]) continue;
    assert_true(flow_shape_equal(gradients[i]->rank, gradients[i]->shape, symbols[i]->rank, symbols[i]->shape));
    which[*count] = i;
    kept[(*count)++] = gradients[i];
  }
  OK(flow_trace_end(context, kept, *count, &plan));
  release(gradients, c->count);
  release(symbols, c->count);
  return plan;
}

/* In a trace with a symbolic batch the same rules give the same gradients, for the batch that a run brings along. */
static void traced_derivatives(void **state)
{
  flow_context *context = *state;
  for (const gradient_case *c = cases; c < cases + CASE_COUNT; c++) {
    if (!c->rows) continue;
    flow_tensor *inputs[MOST_INPUTS], *eager[MOST_INPUTS], *traced[MOST_INPUTS];
    int which[MOST_INPUTS], count, eager_count = 0;
    make_inputs(c, inputs);
    unweighted_gradients(c, context, &c->attributes, inputs, eager);
    for (int i = 0; i < c->count; i++) eager_count += eager[i] != NULL;

    flow_instance *instance;
    flow_plan *plan = trace_gradients(c, context, which, &count);
    assert_int_equal(count, eager_count);
    OK(flow_instance_new(plan, 5, &instance));
    OK(flow_instance_run(context, instance, inputs, c->count, traced));
    for (int k = 0; k < count; k++) {
      const flow_tensor *want = eager[which[k]];
      assert_true(flow_shape_equal(traced[k]->rank, traced[k]->shape, want->rank, want->shape));
      for (int64_t j = 0; j < flow_shape_size(want->rank, want->shape); j++) {
        double a = ((const double *)want->data)[j], b = ((const double *)traced[k]->data)[j];
        if (!(fabs(a - b) <= 1e-12 * (1 + fabs(a)))) {
          fail_msg("%s, case %d: element %d of the traced gradient of input %d is %.15g, eager %.15g", flow_op_name(c->op),
                   (int)(c - cases), (int)j, which[k], b, a);
        }
      }
    }
    release(traced, count);
    flow_instance_release(instance);
    flow_plan_release(plan);
    release(eager, c->count);
    release(inputs, c->count);
  }
}

/* Where differences say nothing: at kinks, zeros and ties. */
static void gradient_at(flow_context *context, int op, int count, const double (*x)[2], const double (*want)[2])
{
  flow_tensor *inputs[2], *gradients[2], *y;
  flow_tape *tape;
  const int64_t shape[1] = { 2 };
  assert_int_equal(flow_tape_begin(context, &tape), FLOW_OK);
  for (int i = 0; i < count; i++) {
    assert_int_equal(flow_tensor_new(FLOW_FLOAT64, 1, shape, &inputs[i]), FLOW_OK);
    assert_int_equal(flow_tensor_write(inputs[i], x[i], 2), FLOW_OK);
    assert_int_equal(flow_tape_watch(tape, inputs[i]), FLOW_OK);
  }
  assert_int_equal(flow_apply(context, op, inputs, count, NULL, &y), FLOW_OK);
  assert_int_equal(flow_tape_end(context, tape), FLOW_OK);
  assert_int_equal(flow_tape_gradient(context, tape, y, inputs, NULL, count, gradients), FLOW_OK);
  for (int i = 0; i < count; i++) {
    double got[2];
    assert_int_equal(flow_tensor_read(gradients[i], got, 2), FLOW_OK);
    for (int k = 0; k < 2; k++) {
      if (fabs(got[k] - want[i][k]) > 1e-12 || isnan(got[k])) {
        fail_msg("%s: gradient %d of input %d is %g, expected %g", flow_op_name(op), k, i, got[k], want[i][k]);
      }
    }
  }
  release(gradients, count);
  release(inputs, count);
  flow_tensor_release(y);
  flow_tape_release(tape);
}

static void special_points(void **state)
{
  flow_context *context = *state;
  gradient_at(context, FLOW_OP_relu, 1, (const double[][2]){ { 0, 3 } }, (const double[][2]){ { 0, 1 } });
  gradient_at(context, FLOW_OP_abs, 1, (const double[][2]){ { 0, -3 } }, (const double[][2]){ { 0, -1 } });
  gradient_at(context, FLOW_OP_maximum, 2, (const double[][2]){ { 1, 2 }, { 1, 3 } }, (const double[][2]){ { 1, 0 }, { 0, 1 } });
  gradient_at(context, FLOW_OP_minimum, 2, (const double[][2]){ { 1, 2 }, { 1, 3 } }, (const double[][2]){ { 1, 1 }, { 0, 0 } });
  gradient_at(context, FLOW_OP_max, 1, (const double[][2]){ { 4, 4 } }, (const double[][2]){ { 0.5, 0.5 } });
  gradient_at(context, FLOW_OP_pow, 2, (const double[][2]){ { 0, 0 }, { 0, 2 } }, (const double[][2]){ { 0, 0 }, { 0, 0 } });
  gradient_at(context, FLOW_OP_pow, 2, (const double[][2]){ { -2, -3 }, { 2, 3 } }, (const double[][2]){ { -4, 27 }, { 0, 0 } });
  gradient_at(context, FLOW_OP_divide_no_nan, 2, (const double[][2]){ { 1, 2 }, { 0, 4 } },
              (const double[][2]){ { 0, 0.25 }, { 0, -0.125 } });
  gradient_at(context, FLOW_OP_prod, 1, (const double[][2]){ { 0, 3 } }, (const double[][2]){ { 3, 0 } });
  gradient_at(context, FLOW_OP_prod, 1, (const double[][2]){ { 0, 0 } }, (const double[][2]){ { 0, 0 } });
}

static int setup(void **state) { return flow_context_new((flow_context **)state) == FLOW_OK ? 0 : -1; }

static int teardown(void **state)
{
  flow_context_release(*state);
  return 0;
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_rule_has_a_case), cmocka_unit_test(first_derivatives), cmocka_unit_test(second_derivatives),
    cmocka_unit_test(traced_derivatives), cmocka_unit_test(special_points),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
