/* test_pooling.c: every variant of max_pool, average_pool and their gradients, of every instruction set that runs here,
 * against loops that follow the definition. */
#include <math.h>
#include "kernel_call.h"

typedef struct pooling_case { int n, h, w, c, size[2], stride[2], padding[4]; } pooling_case;

static const pooling_case cases[] = {
  { 4,  8,  8, 16, { 2, 2 }, { 2, 2 }, { 0, 0, 0, 0 } },
  { 4,  9,  7,  3, { 2, 2 }, { 2, 2 }, { 0, 0, 0, 0 } },     /* last row and column unused */
  { 4,  9,  7, 17, { 2, 2 }, { 2, 2 }, { 0, 1, 0, 1 } },
  { 4, 10, 11, 33, { 3, 3 }, { 2, 2 }, { 1, 1, 1, 1 } },     /* windows overlap */
  { 4,  6, 12,  5, { 3, 2 }, { 1, 3 }, { 1, 1, 0, 0 } },
  { 4,  7,  5, 20, { 7, 5 }, { 7, 5 }, { 0, 0, 0, 0 } },     /* global */
  { 4,  5,  5,  1, { 5, 5 }, { 1, 1 }, { 2, 2, 2, 2 } },
  { 4,  4,  4,  9, { 2, 2 }, { 2, 2 }, { 2, 2, 2, 2 } },     /* windows of padding only */
  { 4,  5,  6,  8, { 1, 1 }, { 3, 2 }, { 0, 0, 0, 0 } },
};
enum { CASE_COUNT = sizeof cases / sizeof cases[0], NO_ARGMAX = 255 };

typedef struct fixture {
  flow_attributes attributes;
  test_tensor x, y, index, g, dx;
} fixture;

/* The lowest value of a dtype: what a window of padding only comes to. */
static double lowest_of(int dtype)
{
  switch (dtype) {
    case FLOW_INT8:  return INT8_MIN;
    case FLOW_INT32: return INT32_MIN;
    case FLOW_INT64: return (double)INT64_MIN;
    case FLOW_UINT8: case FLOW_BOOL: return 0;
    default: return -__builtin_inf();
  }
}

/* y, index and dx of a case by definition. */
static void reference(const pooling_case *c, fixture *f)
{
  const int64_t *out = f->y.operand.shape;
  memset(f->dx.operand.data, 0, f->dx.memory.bytes);
  for (int64_t i = 0; i < operand_size(&f->y.operand); i++) {
    int64_t channel = i % c->c, column = i / c->c % out[2], row = i / c->c / out[2] % out[1], image = i / c->c / out[2] / out[1];
    double best = lowest_of(f->x.operand.dtype);
    int64_t from = -1;
    int argmax = NO_ARGMAX;
    for (int k = 0; k < c->size[0] * c->size[1]; k++) {
      int64_t iy = row * c->stride[0] - c->padding[0] + k / c->size[1];
      int64_t ix = column * c->stride[1] - c->padding[2] + k % c->size[1];
      if (iy < 0 || iy >= c->h || ix < 0 || ix >= c->w) continue;
      int64_t at = ((image * c->h + iy) * c->w + ix) * c->c + channel;
      double value = tensor_get(&f->x, at);
      if (argmax == NO_ARGMAX || (best == best && (value > best || value != value))) { best = value; argmax = k; from = at; }
    }
    tensor_set(&f->y, i, best);
    tensor_set(&f->index, i, argmax);
    if (from >= 0) tensor_set(&f->dx, from, tensor_get(&f->dx, from) + tensor_get(&f->g, i));
  }
}

static void fixture_make(const pooling_case *c, int dtype, fixture *f)
{
  memset(f, 0, sizeof *f);
  int64_t x[4] = { c->n, c->h, c->w, c->c }, y[4] = { c->n, 0, 0, c->c };
  for (int axis = 0; axis < 2; axis++) {
    f->attributes.pool.size[axis] = c->size[axis];
    f->attributes.pool.stride[axis] = c->stride[axis];
    f->attributes.pool.input_size[axis] = (int32_t)x[1 + axis];
    y[1 + axis] = (x[1 + axis] + c->padding[2 * axis] + c->padding[2 * axis + 1] - c->size[axis]) / c->stride[axis] + 1;
  }
  memcpy(f->attributes.pool.padding, c->padding, sizeof c->padding);
  tensor_make(&f->x, dtype, 4, x);
  tensor_make(&f->dx, dtype, 4, x);
  tensor_make(&f->y, dtype, 4, y);
  tensor_make(&f->g, dtype, 4, y);
  tensor_make(&f->index, FLOW_UINT8, 4, y);
  uint32_t state = 99;
  for (int64_t i = 0; i < operand_size(&f->x.operand); i++) {
    double value = (next_random(&state) >> 16 & 15);
    tensor_set(&f->x, i, dtype == FLOW_BOOL ? value > 7 : dtype == FLOW_UINT8 ? value + 120 : value - 8);   /* uint8 beyond 127 */
  }
  tensor_fill_exact(&f->g, &state);
  if (dtype == FLOW_FLOAT32 || dtype == FLOW_FLOAT64)   /* a few NaN, two of them often in one window */
    for (int64_t i = 0; i < operand_size(&f->x.operand); i += 37) tensor_set(&f->x, i, __builtin_nan(""));
  reference(c, f);
}

static void fixture_free(fixture *f)
{
  tensor_free(&f->x), tensor_free(&f->dx), tensor_free(&f->y), tensor_free(&f->g), tensor_free(&f->index);
}

static void expect_equal(const test_tensor *expected, const test_tensor *found, const char *what, const char *isa,
                         const flow_kernel *kernel, int number)
{
  for (int64_t i = 0; i < operand_size(&expected->operand); i++) {
    double a = tensor_get(expected, i), b = tensor_get(found, i);
    if (a == b || (a != a && b != b)) continue;
    fail_msg("case %d, %s %s, %s[%lld] is %g, should be %g", number, isa, kernel->variant, what, (long long)i, b, a);
  }
}

typedef void (*check)(const flow_kernel *kernel, const pooling_case *c, fixture *f, const char *isa, int number);
static void each_variant(int op, int dtype, check run_check)
{
  for (int number = 0; number < CASE_COUNT; number++) {
    fixture f;
    fixture_make(&cases[number], dtype, &f);
    for (size_t i = 0; i < sizeof test_isas / sizeof test_isas[0]; i++) {
      const flow_device *device = flow_cpu_device_for(test_isas[i]);
      if (!device) continue;
      int ran = 0;
      for (const flow_kernel *kernel = device->kernels[op]; kernel->run; kernel++) {
        flow_operand outputs[2] = { f.y.operand, f.index.operand };
        flow_call call = { .op = op, .attributes = &f.attributes, .inputs = &f.x.operand, .output_count = 2, .outputs = outputs };
        outputs[1].unused = 1; /* nobody asks for positions: check_forward asks for them where the kernel gives them */
        if (kernel->supports && !kernel->supports(&call)) continue;
        run_check(kernel, &cases[number], &f, test_isas[i], number);
        ran++;
      }
      assert_true(ran >= 1);
    }
    fixture_free(&f);
  }
}

static void check_forward(const flow_kernel *kernel, const pooling_case *c, fixture *f, const char *isa, int number)
{
  const int chunks[] = { 1, c->n - 1, 0 }, none[] = { 0 };
  test_tensor y, index;
  tensor_make(&y, f->y.operand.dtype, 4, f->y.operand.shape);
  tensor_make(&index, FLOW_UINT8, 4, f->y.operand.shape);
  flow_operand inputs[1] = { f->x.operand }, outputs[2] = { y.operand, index.operand };
  flow_call call = { .op = FLOW_OP_max_pool, .attributes = &f->attributes, .input_count = 1, .output_count = 2,
                     .inputs = inputs, .outputs = outputs };
  if (!kernel->supports || kernel->supports(&call)) {
    run_in_chunks(kernel, &call, 1, 3, none);
    run_in_chunks(kernel, &call, 1, 3, chunks);
    expect_equal(&f->y, &y, "y", isa, kernel, number);
    expect_equal(&f->index, &index, "index", isa, kernel, number);
  }
  memset(y.operand.data, 0, y.memory.bytes);
  outputs[1].data = NULL;
  outputs[1].unused = 1;
  run_in_chunks(kernel, &call, 1, 3, chunks);
  expect_equal(&f->y, &y, "y without index", isa, kernel, number);
  tensor_free(&y), tensor_free(&index);
}

static void check_backward(const flow_kernel *kernel, const pooling_case *c, fixture *f, const char *isa, int number)
{
  const int chunks[] = { c->n - 1, 1, 0 }, none[] = { 0 };
  test_tensor dx;
  tensor_make(&dx, f->x.operand.dtype, 4, f->x.operand.shape);
  flow_operand inputs[2] = { f->g.operand, f->index.operand }, outputs[1] = { dx.operand };
  flow_call call = { .op = FLOW_OP_max_pool_gradient, .attributes = &f->attributes, .input_count = 2, .output_count = 1,
                     .inputs = inputs, .outputs = outputs };
  run_in_chunks(kernel, &call, 3, 1, none);
  run_in_chunks(kernel, &call, 3, 1, chunks);
  expect_equal(&f->dx, &dx, "dx", isa, kernel, number);
  tensor_free(&dx);
}

/* An index is data that nobody has checked: one that is not a cell of its window sends no gradient anywhere. */
static void check_foreign_indices(const flow_kernel *kernel, const pooling_case *c, fixture *f, const char *isa, int number)
{
  const int chunks[] = { c->n - 1, 1, 0 }, foreign[] = { c->size[0] * c->size[1], 200, 254 };
  test_tensor dx, zeros;
  tensor_make(&dx, f->x.operand.dtype, 4, f->x.operand.shape);
  tensor_make(&zeros, f->x.operand.dtype, 4, f->x.operand.shape);
  memset(zeros.operand.data, 0, zeros.memory.bytes);
  flow_operand inputs[2] = { f->g.operand, f->index.operand }, outputs[1] = { dx.operand };
  flow_call call = {
    .op = FLOW_OP_max_pool_gradient, .attributes = &f->attributes, .input_count = 2, .output_count = 1, .inputs = inputs, .outputs = outputs
  };
  for (size_t k = 0; k < sizeof foreign / sizeof foreign[0]; k++) {
    memset(f->index.operand.data, foreign[k], f->index.memory.bytes);
    run_in_chunks(kernel, &call, 3, 1, chunks);
    expect_equal(&zeros, &dx, "dx", isa, kernel, number);
  }
  tensor_free(&dx), tensor_free(&zeros);
}

/* ---- average pooling ---------------------------------------------------------------------------------------------------- */

/* Windows of padding only have no mean: the shape rule refuses their padding. */
static int has_means(const pooling_case *c)
{
  return c->padding[0] < c->size[0] && c->padding[1] < c->size[0] && c->padding[2] < c->size[1] && c->padding[3] < c->size[1];
}

/* y and dx of the case, x without its NaN: the divisor is the number of cells inside the image. */
static void reference_average(const pooling_case *c, fixture *f)
{
  const int64_t *out = f->y.operand.shape;
  memset(f->dx.operand.data, 0, f->dx.memory.bytes);
  for (int64_t i = 0; i < operand_size(&f->x.operand); i += 37) tensor_set(&f->x, i, 5);
  for (int64_t i = 0; i < operand_size(&f->y.operand); i++) {
    int64_t channel = i % c->c, column = i / c->c % out[2], row = i / c->c / out[2] % out[1], image = i / c->c / out[2] / out[1];
    int64_t cells[64], count = 0;
    double sum = 0;
    for (int k = 0; k < c->size[0] * c->size[1]; k++) {
      int64_t iy = row * c->stride[0] - c->padding[0] + k / c->size[1];
      int64_t ix = column * c->stride[1] - c->padding[2] + k % c->size[1];
      if (iy < 0 || iy >= c->h || ix < 0 || ix >= c->w) continue;
      cells[count++] = ((image * c->h + iy) * c->w + ix) * c->c + channel;
      sum += tensor_get(&f->x, cells[count - 1]);
    }
    tensor_set(&f->y, i, sum / (double)count);
    for (int64_t k = 0; k < count; k++)
      tensor_set(&f->dx, cells[k], tensor_get(&f->dx, cells[k]) + tensor_get(&f->g, i) / (double)count);
  }
}

/* One rounding for the quotient, and one for each window that a cell is in. */
static void expect_near(const test_tensor *expected, const test_tensor *found, const char *what, const char *isa,
                        const flow_kernel *kernel, int number)
{
  double tolerance = expected->operand.dtype == FLOW_FLOAT64 ? 1e-14 : 4e-6;
  for (int64_t i = 0; i < operand_size(&expected->operand); i++) {
    double a = tensor_get(expected, i), b = tensor_get(found, i);
    if (fabs(a - b) <= tolerance * (1 + fabs(a))) continue;
    fail_msg("case %d, %s %s, %s[%lld] is %.9g, should be %.9g", number, isa, kernel->variant, what, (long long)i, b, a);
  }
}

/* `from` through the kernel is `expected`, and the same bits whatever the chunks. */
static void check_average(int op, const flow_kernel *kernel, const pooling_case *c, fixture *f, const test_tensor *from,
                          const test_tensor *expected, const char *isa, int number)
{
  const int chunkings[2][4] = { { 1, c->n - 1, 0 }, { c->n, 0 } };
  test_tensor found[2];
  for (int i = 0; i < 2; i++) {
    tensor_make(&found[i], expected->operand.dtype, 4, expected->operand.shape);
    flow_operand inputs[1] = { from->operand }, outputs[1] = { found[i].operand };
    flow_call call = { .op = op, .attributes = &f->attributes, .input_count = 1, .output_count = 1, .inputs = inputs, .outputs = outputs };
    run_in_chunks(kernel, &call, 1, 1, chunkings[i]);
    expect_near(expected, &found[i], op == FLOW_OP_average_pool ? "y" : "dx", isa, kernel, number);
  }
  assert_memory_equal(found[0].operand.data, found[1].operand.data, found[0].memory.bytes);
  tensor_free(&found[0]), tensor_free(&found[1]);
}

static void check_average_forward(const flow_kernel *kernel, const pooling_case *c, fixture *f, const char *isa, int number)
{
  if (!has_means(c)) return;
  reference_average(c, f);
  check_average(FLOW_OP_average_pool, kernel, c, f, &f->x, &f->y, isa, number);
}

static void check_average_backward(const flow_kernel *kernel, const pooling_case *c, fixture *f, const char *isa, int number)
{
  if (!has_means(c)) return;
  reference_average(c, f);
  check_average(FLOW_OP_average_pool_gradient, kernel, c, f, &f->g, &f->dx, isa, number);
}

static void average_is_of_the_cells_inside(void **state)
{
  (void)state;
  each_variant(FLOW_OP_average_pool, FLOW_FLOAT32, check_average_forward);
  each_variant(FLOW_OP_average_pool, FLOW_FLOAT64, check_average_forward);
}

static void gradient_is_shared_by_the_cells_inside(void **state)
{
  (void)state;
  each_variant(FLOW_OP_average_pool_gradient, FLOW_FLOAT32, check_average_backward);
  each_variant(FLOW_OP_average_pool_gradient, FLOW_FLOAT64, check_average_backward);
}

/* ---- max pooling -------------------------------------------------------------------------------------------------------- */

static void forward_equals_definition(void **state)
{
  (void)state;
  const int dtypes[] = { FLOW_FLOAT32, FLOW_FLOAT64, FLOW_INT8, FLOW_UINT8, FLOW_INT32, FLOW_INT64, FLOW_BOOL };
  for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) each_variant(FLOW_OP_max_pool, dtypes[i], check_forward);
}

static void gradient_goes_to_the_argmax(void **state)
{
  (void)state;
  each_variant(FLOW_OP_max_pool_gradient, FLOW_FLOAT32, check_backward);
  each_variant(FLOW_OP_max_pool_gradient, FLOW_FLOAT64, check_backward);
}

static void indices_of_no_cell_get_no_gradient(void **state)
{
  (void)state;
  each_variant(FLOW_OP_max_pool_gradient, FLOW_FLOAT32, check_foreign_indices);
  each_variant(FLOW_OP_max_pool_gradient, FLOW_FLOAT64, check_foreign_indices);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(forward_equals_definition),
    cmocka_unit_test(gradient_goes_to_the_argmax),
    cmocka_unit_test(indices_of_no_cell_get_no_gradient),
    cmocka_unit_test(average_is_of_the_cells_inside),
    cmocka_unit_test(gradient_is_shared_by_the_cells_inside),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
