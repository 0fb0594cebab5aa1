/* test_convolution.c: every variant of convolution and convolution_gradient, of every instruction set that runs here,
 * against loops in double precision. Inputs are such that all sums are exact: results must be equal, not close. Calls
 * ask for exact algorithms; what may round differently is tested in test_winograd.c. */
#include "convolution_cases.h"
#include "kernel_call.h"
#include <stdio.h>

/* Operands of forward and backward calls and what they should come to. */
typedef struct fixture {
  flow_attributes attributes;
  int64_t out[2], result[2];                    /* conv output, y */
  test_tensor x, w, b, g, y, index;             /* y, index: the reference's results, inputs of the gradient */
  test_tensor dx, dw, db;                       /* references */
  int no_dx;                                    /* nobody reads dx, and the kernel is told beforehand */
} fixture;

enum { NO_ARGMAX = 255 };

static int64_t at4(const flow_operand *t, int64_t a, int64_t b, int64_t c, int64_t d)
{
  return ((a * t->shape[1] + b) * t->shape[2] + c) * t->shape[3] + d;
}

/* Calls visit for every (input, weight) pair under conv output (i, row, column, channel). */
typedef void (*visitor)(fixture *f, int64_t input, int64_t weight, double *value);
static void visit_taps(const convolution_case *c, fixture *f, int64_t i, int64_t row, int64_t column, int64_t channel,
                       visitor visit, double *value)
{
  int64_t group_in = c->ci / c->groups, group = channel / (c->co / c->groups);
  for (int64_t ky = 0; ky < c->kh; ky++)
    for (int64_t kx = 0; kx < c->kw; kx++)
      for (int64_t k = 0; k < group_in; k++) {
        int64_t iy = row * c->stride[0] + ky * c->dilation - c->padding[0];
        int64_t ix = column * c->stride[1] + kx * c->dilation - c->padding[2];
        if (iy < 0 || iy >= c->h || ix < 0 || ix >= c->w) continue;
        visit(f, at4(&f->x.operand, i, iy, ix, group * group_in + k), at4(&f->w.operand, ky, kx, k, channel), value);
      }
}

static void visit_forward(fixture *f, int64_t input, int64_t weight, double *value)
{
  *value += tensor_get(&f->x, input) * tensor_get(&f->w, weight);
}

static void visit_backward(fixture *f, int64_t input, int64_t weight, double *value)
{
  tensor_set(&f->dx, input, tensor_get(&f->dx, input) + *value * tensor_get(&f->w, weight));
  tensor_set(&f->dw, weight, tensor_get(&f->dw, weight) + *value * tensor_get(&f->x, input));
}

static void reference_forward(const convolution_case *c, fixture *f)
{
  int pooled = c->pool[0] > 0, windows = pooled ? c->pool[0] * c->pool[1] : 1, wide = pooled ? c->pool[1] : 1;
  for (int64_t i = 0; i < c->n; i++)
    for (int64_t row = 0; row < f->result[0]; row++)
      for (int64_t column = 0; column < f->result[1]; column++)
        for (int64_t channel = 0; channel < c->co; channel++) {
          double best = 0;
          int argmax = 0;
          for (int k = 0; k < windows; k++) {
            double value = c->bias ? tensor_get(&f->b, channel) : 0;
            int64_t r = (pooled ? row * c->pool_stride[0] : row) + k / wide;
            visit_taps(c, f, i, r, (pooled ? column * c->pool_stride[1] : column) + k % wide, channel, visit_forward, &value);
            if (k == 0 || value > best) { best = value; argmax = k; }
          }
          if (c->relu && best <= 0) { best = 0; argmax = NO_ARGMAX; }
          tensor_set(&f->y, at4(&f->y.operand, i, row, column, channel), best);
          if (pooled) tensor_set(&f->index, at4(&f->y.operand, i, row, column, channel), argmax);
        }
}

static void reference_backward(const convolution_case *c, fixture *f)
{
  int pooled = c->pool[0] > 0;
  memset(f->dx.operand.data, 0, f->dx.memory.bytes);
  memset(f->dw.operand.data, 0, f->dw.memory.bytes);
  memset(f->db.operand.data, 0, f->db.memory.bytes);
  for (int64_t i = 0; i < c->n; i++)
    for (int64_t row = 0; row < f->result[0]; row++)
      for (int64_t column = 0; column < f->result[1]; column++)
        for (int64_t channel = 0; channel < c->co; channel++) {
          int64_t at = at4(&f->y.operand, i, row, column, channel), r = row, k = column;
          double g = tensor_get(&f->g, at);
          if (c->relu && !(tensor_get(&f->y, at) > 0)) continue;
          if (pooled) {
            int argmax = (int)tensor_get(&f->index, at);
            r = row * c->pool_stride[0] + argmax / c->pool[1];
            k = column * c->pool_stride[1] + argmax % c->pool[1];
          }
          tensor_set(&f->db, channel, tensor_get(&f->db, channel) + g);
          visit_taps(c, f, i, r, k, channel, visit_backward, &g);
        }
}

typedef void (*filler)(test_tensor *t, uint32_t *state);

static void fixture_make(const convolution_case *c, int dtype, filler fill, fixture *f)
{
  memset(f, 0, sizeof *f);
  for (int axis = 0; axis < 2; axis++) {
    f->attributes.convolution.stride[axis] = c->stride[axis];
    f->attributes.convolution.dilation[axis] = c->dilation;
    f->attributes.convolution.pool[axis] = c->pool[axis];
    f->attributes.convolution.pool_stride[axis] = c->pool_stride[axis];
    f->attributes.convolution.input_size[axis] = axis ? c->w : c->h;
    int size = (axis ? c->w : c->h) + c->padding[2 * axis] + c->padding[2 * axis + 1], kernel = axis ? c->kw : c->kh;
    f->out[axis] = (size - (kernel - 1) * c->dilation - 1) / c->stride[axis] + 1;
    f->result[axis] = c->pool[0] ? (f->out[axis] - c->pool[axis]) / c->pool_stride[axis] + 1 : f->out[axis];
  }
  memcpy(f->attributes.convolution.padding, c->padding, sizeof c->padding);
  f->attributes.convolution.groups = c->groups;
  f->attributes.convolution.activation = c->relu ? FLOW_RELU : FLOW_LINEAR;
  f->attributes.convolution.has_bias = c->bias;
  int64_t x[4] = { c->n, c->h, c->w, c->ci }, w[4] = { c->kh, c->kw, c->ci / c->groups, c->co };
  int64_t b[1] = { c->bias ? c->co : 0 }, db[1] = { c->co };
  int64_t y[4] = { c->n, f->result[0], f->result[1], c->co }, none[1] = { 0 };
  tensor_make(&f->x, dtype, 4, x);
  tensor_make(&f->w, dtype, 4, w);
  tensor_make(&f->b, dtype, 1, b);
  tensor_make(&f->g, dtype, 4, y);
  tensor_make(&f->y, dtype, 4, y);
  tensor_make(&f->index, FLOW_UINT8, c->pool[0] ? 4 : 1, c->pool[0] ? y : none);
  tensor_make(&f->dx, dtype, 4, x);
  tensor_make(&f->dw, dtype, 4, w);
  tensor_make(&f->db, dtype, 1, db);
  uint32_t state = 12345u + (uint32_t)(c->ci * 31 + c->co);
  fill(&f->x, &state);
  fill(&f->w, &state);
  fill(&f->b, &state);
  fill(&f->g, &state);
  reference_forward(c, f);
  reference_backward(c, f);
}

static void fixture_free(fixture *f)
{
  test_tensor *all[] = { &f->x, &f->w, &f->b, &f->g, &f->y, &f->index, &f->dx, &f->dw, &f->db };
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) tensor_free(all[i]);
}

static void expect_equal(const test_tensor *expected, const test_tensor *found, const char *what, const char *isa,
                         const char *variant, int number)
{
  if (memcmp(expected->operand.data, found->operand.data, expected->memory.bytes) == 0) return;
  int64_t size = operand_size(&expected->operand);
  for (int64_t i = 0; i < size; i++)
    if (!(tensor_get(expected, i) == tensor_get(found, i)))
      fail_msg("case %d, %s %s: %s[%lld] is %g, should be %g", number, isa, variant, what, (long long)i,
               tensor_get(found, i), tensor_get(expected, i));
}

static test_tensor like(const test_tensor *t)
{
  test_tensor copy;
  tensor_make(&copy, t->operand.dtype, t->operand.rank, t->operand.shape);
  return copy;
}

static void run_forward(const flow_kernel *kernel, const convolution_case *c, fixture *f, test_tensor *y, test_tensor *index,
                        const int *chunks)
{
  flow_operand inputs[3] = { f->x.operand, f->w.operand, f->b.operand };
  flow_operand outputs[2] = { y->operand, index ? index->operand : f->index.operand };
  if (!index) outputs[1].data = NULL;
  flow_call call = { .op = FLOW_OP_convolution, .attributes = &f->attributes, .input_count = c->bias ? 3 : 2, .output_count = 2,
                     .inputs = inputs, .outputs = outputs, .exact = 1 };
  run_in_chunks(kernel, &call, 1, c->pool[0] ? 3 : 1, chunks);
}

/* Outputs that are NULL are not wanted. */
static void run_backward(const flow_kernel *kernel, const convolution_case *c, fixture *f, test_tensor *dx, test_tensor *dw,
                         test_tensor *db, const int *chunks)
{
  flow_operand inputs[5] = { f->g.operand, f->x.operand, f->w.operand, f->y.operand, f->index.operand };
  flow_operand outputs[3] = { f->dx.operand, f->dw.operand, f->db.operand };
  outputs[0].data = dx ? dx->operand.data : NULL;
  outputs[0].unused = f->no_dx;
  outputs[1].data = dw ? dw->operand.data : NULL;
  outputs[2].data = db ? db->operand.data : NULL;
  flow_call call = { .op = FLOW_OP_convolution_gradient, .attributes = &f->attributes, .input_count = 5, .output_count = 3,
                     .inputs = inputs, .outputs = outputs, .exact = 1 };
  run_in_chunks(kernel, &call, c->pool[0] ? 0x1b : 0x0b, 1, chunks);
}

/* Whether a variant takes this call; the first chunk decides as it would in the engine. */
static int supported(const flow_kernel *kernel, int op, const fixture *f)
{
  flow_operand forward[3] = { f->x.operand, f->w.operand, f->b.operand };
  flow_operand backward[5] = { f->g.operand, f->x.operand, f->w.operand, f->y.operand, f->index.operand };
  flow_operand outputs[3] = { f->y.operand, f->index.operand, f->db.operand };
  flow_call call = { .op = op, .attributes = &f->attributes, .inputs = op == FLOW_OP_convolution ? forward : backward, .outputs = outputs,
                     .input_count = op == FLOW_OP_convolution ? 3 : 5, .output_count = op == FLOW_OP_convolution ? 2 : 3, .exact = 1 };
  if (op == FLOW_OP_convolution_gradient) { outputs[0] = f->dx.operand; outputs[1] = f->dw.operand; outputs[0].unused = f->no_dx; }
  return !kernel->supports || kernel->supports(&call);
}

/* Runs a check for every variant of an op that this machine can run. */
typedef void (*check)(const flow_kernel *kernel, const convolution_case *c, fixture *f, const char *isa, int number);
static void each_variant_of(const convolution_case *c, int number, int op, int dtype, filler fill, check run_check)
{
  fixture f;
  fixture_make(c, dtype, fill, &f);
  for (size_t i = 0; i < sizeof test_isas / sizeof test_isas[0]; i++) {
    const flow_device *device = flow_cpu_device_for(test_isas[i]);
    if (!device) continue;
    int ran = 0;
    for (const flow_kernel *kernel = device->kernels[op]; kernel->run; kernel++)
      if (supported(kernel, op, &f)) { run_check(kernel, c, &f, test_isas[i], number); ran++; }
    assert_true(ran >= 1);
  }
  fixture_free(&f);
}

static void each_variant(int op, int dtype, filler fill, check run_check)
{
  for (int number = 0; number < CASE_COUNT; number++) each_variant_of(&cases[number], number, op, dtype, fill, run_check);
}

static void check_forward(const flow_kernel *kernel, const convolution_case *c, fixture *f, const char *isa, int number)
{
  const int chunks[] = { c->n - 1, 1, 0 };
  test_tensor y = like(&f->y), index = like(&f->index), alone = like(&f->y);
  run_forward(kernel, c, f, &y, &index, chunks);
  expect_equal(&f->y, &y, "y", isa, kernel->variant, number);
  expect_equal(&f->index, &index, "index", isa, kernel->variant, number);
  run_forward(kernel, c, f, &alone, NULL, chunks);   /* nobody reads the index */
  expect_equal(&f->y, &alone, "y without index", isa, kernel->variant, number);
  tensor_free(&y), tensor_free(&index), tensor_free(&alone);
}

static void check_backward(const flow_kernel *kernel, const convolution_case *c, fixture *f, const char *isa, int number)
{
  const int chunks[] = { 1, c->n - 1, 0 };
  test_tensor dx = like(&f->dx), dw = like(&f->dw), db = like(&f->db);
  test_tensor other_dx = like(&f->dx), other_dw = like(&f->dw), other_db = like(&f->db);
  run_backward(kernel, c, f, &dx, &dw, &db, chunks);
  expect_equal(&f->dx, &dx, "dx", isa, kernel->variant, number);
  expect_equal(&f->dw, &dw, "dw", isa, kernel->variant, number);
  expect_equal(&f->db, &db, "db", isa, kernel->variant, number);
  run_backward(kernel, c, f, NULL, &other_dw, &other_db, chunks);
  expect_equal(&f->dw, &other_dw, "dw without dx", isa, kernel->variant, number);
  expect_equal(&f->db, &other_db, "db without dx", isa, kernel->variant, number);
  run_backward(kernel, c, f, &other_dx, NULL, NULL, chunks);
  expect_equal(&f->dx, &other_dx, "dx alone", isa, kernel->variant, number);
  tensor_free(&dx), tensor_free(&dw), tensor_free(&db), tensor_free(&other_dx), tensor_free(&other_dw), tensor_free(&other_db);
}

static void forward_equals_reference(void **state)
{
  (void)state;
  each_variant(FLOW_OP_convolution, FLOW_FLOAT32, tensor_fill_exact, check_forward);
}

static void backward_equals_reference(void **state)
{
  (void)state;
  each_variant(FLOW_OP_convolution_gradient, FLOW_FLOAT32, tensor_fill_exact, check_backward);
}

static void forward_equals_reference_in_float64(void **state)
{
  (void)state;
  each_variant(FLOW_OP_convolution, FLOW_FLOAT64, tensor_fill_exact, check_forward);
}

static void backward_equals_reference_in_float64(void **state)
{
  (void)state;
  each_variant(FLOW_OP_convolution_gradient, FLOW_FLOAT64, tensor_fill_exact, check_backward);
}

/* Blocks of channels end at every lane. */
static void depthwise_of_any_width(void **state)
{
  (void)state;
  for (int channels = 2; channels <= 40; channels++) {
    const convolution_case c = { 2, 6, 7, channels, channels, 3, 3, { 1, 1 }, 1, channels, SAME3, channels % 2, 1, { 0, 0 }, { 0, 0 } };
    each_variant_of(&c, channels, FLOW_OP_convolution, FLOW_FLOAT32, tensor_fill_exact, check_forward);
    each_variant_of(&c, channels, FLOW_OP_convolution_gradient, FLOW_FLOAT32, tensor_fill_exact, check_backward);
  }
}

/* Every size of a tile, at every place of the kernel's reach. */
static void depthwise_of_any_size(void **state)
{
  (void)state;
  for (int size = 3; size <= 30; size += size < 16 ? 1 : 3) {
    const convolution_case cases_of_size[] = {
      { 2, 5, size, 17, 17, 3, 3, { 1, 1 }, 1, 17, SAME3,          1, 1, { 0, 0 }, { 0, 0 } },
      { 2, size, 5, 17, 17, 3, 3, { 2, 2 }, 1, 17, { 0, 1, 1, 1 }, 0, 1, { 0, 0 }, { 0, 0 } },
      { 2, 5, size, 17, 17, 5, 3, { 1, 1 }, 1, 17, { 2, 2, 1, 1 }, 0, 1, { 0, 0 }, { 0, 0 } },
      { 2, size, 5, 17, 17, 2, 4, { 1, 1 }, 1, 17, { 1, 0, 2, 1 }, 0, 1, { 0, 0 }, { 0, 0 } },
    };
    for (size_t i = 0; i < sizeof cases_of_size / sizeof cases_of_size[0]; i++) {
      each_variant_of(&cases_of_size[i], size, FLOW_OP_convolution, FLOW_FLOAT32, tensor_fill_exact, check_forward);
      each_variant_of(&cases_of_size[i], size, FLOW_OP_convolution_gradient, FLOW_FLOAT32, tensor_fill_exact, check_backward);
    }
  }
}

/* Images narrower than the kernel, with all of the padding on one side. */
static void depthwise_of_narrow_images(void **state)
{
  (void)state;
  for (int width = 1; width <= 3; width++)
    for (int left = 0; left <= 2; left++)
      for (int right = 2 - left; right <= 3; right++) {
        const convolution_case c = { 2, 5, width, 17, 17, 3, 3, { 1, 1 }, 1, 17, { 1, 1, left, right }, 0, 1, { 0, 0 }, { 0, 0 } };
        each_variant_of(&c, width, FLOW_OP_convolution, FLOW_FLOAT32, tensor_fill_exact, check_forward);
        each_variant_of(&c, width, FLOW_OP_convolution_gradient, FLOW_FLOAT32, tensor_fill_exact, check_backward);
      }
}

/* With sums that round, one chunk of all rows and two chunks must still agree in every bit. */
static void check_chunks(const flow_kernel *kernel, const convolution_case *c, fixture *f, const char *isa, int number)
{
  const int whole[] = { c->n, 0 }, split[] = { 1, c->n - 1, 0 };
  test_tensor y[2] = { like(&f->y), like(&f->y) }, index[2] = { like(&f->index), like(&f->index) };
  run_forward(kernel, c, f, &y[0], &index[0], whole);
  run_forward(kernel, c, f, &y[1], &index[1], split);
  expect_equal(&y[0], &y[1], "y in chunks", isa, kernel->variant, number);
  expect_equal(&index[0], &index[1], "index in chunks", isa, kernel->variant, number);
  for (int i = 0; i < 2; i++) tensor_free(&y[i]), tensor_free(&index[i]);
}

static void check_chunks_backward(const flow_kernel *kernel, const convolution_case *c, fixture *f, const char *isa, int number)
{
  const int whole[] = { c->n, 0 }, split[] = { 1, c->n - 1, 0 };
  test_tensor dx[2] = { like(&f->dx), like(&f->dx) }, dw[2] = { like(&f->dw), like(&f->dw) }, db[2] = { like(&f->db), like(&f->db) };
  run_backward(kernel, c, f, &dx[0], &dw[0], &db[0], whole);
  run_backward(kernel, c, f, &dx[1], &dw[1], &db[1], split);
  expect_equal(&dx[0], &dx[1], "dx in chunks", isa, kernel->variant, number);
  if (strcmp(kernel->variant, "winograd") != 0)   /* images of one call share its sums, test_winograd looks how closely */
    expect_equal(&dw[0], &dw[1], "dw in chunks", isa, kernel->variant, number);
  expect_equal(&db[0], &db[1], "db in chunks", isa, kernel->variant, number);
  for (int i = 0; i < 2; i++) tensor_free(&dx[i]), tensor_free(&dw[i]), tensor_free(&db[i]);
}

static void chunks_do_not_change_a_bit(void **state)
{
  (void)state;
  each_variant(FLOW_OP_convolution, FLOW_FLOAT32, tensor_fill_rough, check_chunks);
  each_variant(FLOW_OP_convolution_gradient, FLOW_FLOAT32, tensor_fill_rough, check_chunks_backward);
}

/* What the input is to be multiplied with; a power of two, so that sums stay exact. */
static void input_scale_counts(void **state)
{
  (void)state;
  for (int number = 0; number < CASE_COUNT; number++) {
    fixture f;
    fixture_make(&cases[number], FLOW_FLOAT32, tensor_fill_exact, &f);
    int64_t size = operand_size(&f.x.operand);
    for (int64_t i = 0; i < size; i++) tensor_set(&f.x, i, tensor_get(&f.x, i) / 4);
    reference_forward(&cases[number], &f);
    for (int64_t i = 0; i < size; i++) tensor_set(&f.x, i, tensor_get(&f.x, i) * 4);
    f.attributes.convolution.input_scale = 0.25;
    for (size_t i = 0; i < sizeof test_isas / sizeof test_isas[0]; i++) {
      const flow_device *device = flow_cpu_device_for(test_isas[i]);
      for (const flow_kernel *kernel = device ? device->kernels[FLOW_OP_convolution] : NULL; kernel && kernel->run; kernel++)
        if (supported(kernel, FLOW_OP_convolution, &f)) check_forward(kernel, &cases[number], &f, test_isas[i], number);
    }
    fixture_free(&f);
  }
}

/* An input of uint8 gives what the same numbers in float32 give; nobody asks for its gradient. */
static void bytes_are_numbers(void **state)
{
  (void)state;
  int forward = 0, backward = 0;
  for (int number = 0; number < CASE_COUNT; number++) {
    const convolution_case *c = &cases[number];
    fixture f;
    fixture_make(c, FLOW_FLOAT32, tensor_fill_exact, &f);
    test_tensor bytes, floats = f.x;
    tensor_make(&bytes, FLOW_UINT8, 4, f.x.operand.shape);
    for (int64_t i = 0; i < operand_size(&bytes.operand); i++) {
      tensor_set(&f.x, i, (double)(i % 7 == 3 ? 200 + i % 5 : i % 4));
      tensor_set(&bytes, i, tensor_get(&f.x, i));
    }
    reference_forward(c, &f);
    reference_backward(c, &f);
    f.x = bytes;
    for (size_t i = 0; i < sizeof test_isas / sizeof test_isas[0]; i++) {
      const flow_device *device = flow_cpu_device_for(test_isas[i]);
      for (const flow_kernel *kernel = device ? device->kernels[FLOW_OP_convolution] : NULL; kernel && kernel->run; kernel++)
        if (supported(kernel, FLOW_OP_convolution, &f)) check_forward(kernel, c, &f, test_isas[i], number), forward++;
      f.no_dx = 1;
      for (const flow_kernel *kernel = device ? device->kernels[FLOW_OP_convolution_gradient] : NULL; kernel && kernel->run; kernel++) {
        if (!supported(kernel, FLOW_OP_convolution_gradient, &f)) continue;
        const int chunks[] = { 1, c->n - 1, 0 };
        test_tensor dw = like(&f.dw), db = like(&f.db);
        run_backward(kernel, c, &f, NULL, &dw, &db, chunks);
        expect_equal(&f.dw, &dw, "dw of bytes", test_isas[i], kernel->variant, number);
        expect_equal(&f.db, &db, "db of bytes", test_isas[i], kernel->variant, number);
        tensor_free(&dw), tensor_free(&db);
        backward++;
      }
      f.no_dx = 0;
    }
    f.x = floats;
    tensor_free(&bytes);
    fixture_free(&f);
  }
  assert_true(forward > CASE_COUNT && backward > CASE_COUNT);
}

/* No rows: nothing is written but the sums, which are zero. */
static void check_no_rows(const flow_kernel *kernel, const convolution_case *c, fixture *f, const char *isa, int number)
{
  const int none[] = { 0 };
  test_tensor dw = like(&f->dw), zero = like(&f->dw);
  memset(zero.operand.data, 0, zero.memory.bytes);
  run_backward(kernel, c, f, NULL, &dw, NULL, none);
  expect_equal(&zero, &dw, "dw of no rows", isa, kernel->variant, number);
  tensor_free(&dw), tensor_free(&zero);
}

static void check_no_rows_forward(const flow_kernel *kernel, const convolution_case *c, fixture *f, const char *isa, int number)
{
  const int none[] = { 0 };
  test_tensor y = like(&f->y), untouched = like(&f->y), index = like(&f->index);
  run_forward(kernel, c, f, &y, &index, none);
  if (memcmp(y.operand.data, untouched.operand.data, y.memory.bytes) != 0)
    fail_msg("case %d, %s %s writes without rows", number, isa, kernel->variant);
  tensor_free(&y), tensor_free(&untouched), tensor_free(&index);
}

static void no_rows_are_fine(void **state)
{
  (void)state;
  each_variant(FLOW_OP_convolution, FLOW_FLOAT32, tensor_fill_exact, check_no_rows_forward);
  each_variant(FLOW_OP_convolution_gradient, FLOW_FLOAT32, tensor_fill_exact, check_no_rows);
}

/* A NaN in the input reaches exactly the outputs that see it, through relu and pooling, and is its window's maximum. */
static void nan_is_not_lost(void **state)
{
  (void)state;
  const convolution_case c = { 1, 8, 8, 2, 9, 1, 1, { 1, 1 }, 1, 1, NO_PAD, 1, 1, { 2, 2 }, { 2, 2 } };
  fixture f;
  fixture_make(&c, FLOW_FLOAT32, tensor_fill_exact, &f);
  tensor_set(&f.x, at4(&f.x.operand, 0, 3, 4, 1), __builtin_nan(""));   /* window (1, 2), position 2 */
  tensor_set(&f.x, at4(&f.x.operand, 0, 3, 5, 1), __builtin_nan(""));   /* position 3: the first one counts */
  for (size_t i = 0; i < sizeof test_isas / sizeof test_isas[0]; i++) {
    const flow_device *device = flow_cpu_device_for(test_isas[i]);
    if (!device) continue;
    for (const flow_kernel *kernel = device->kernels[FLOW_OP_convolution]; kernel->run; kernel++) {
      if (!supported(kernel, FLOW_OP_convolution, &f)) continue;
      if (strcmp(kernel->variant, "winograd") == 0) continue;   /* there it reaches all of its tile */
      const int chunks[] = { 1, 0 };
      test_tensor y = like(&f.y), index = like(&f.index);
      run_forward(kernel, &c, &f, &y, &index, chunks);
      int64_t size = operand_size(&y.operand);
      for (int64_t k = 0; k < size; k++) {
        int hit = k / 9 == 1 * 4 + 2;
        assert_int_equal(tensor_get(&y, k) != tensor_get(&y, k), hit);
        assert_int_equal((int)tensor_get(&index, k), hit ? 2 : (int)tensor_get(&f.index, k));
      }
      tensor_free(&y), tensor_free(&index);
    }
  }
  fixture_free(&f);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(forward_equals_reference),
    cmocka_unit_test(backward_equals_reference),
    cmocka_unit_test(forward_equals_reference_in_float64),
    cmocka_unit_test(backward_equals_reference_in_float64),
    cmocka_unit_test(depthwise_of_any_width),
    cmocka_unit_test(depthwise_of_any_size),
    cmocka_unit_test(depthwise_of_narrow_images),
    cmocka_unit_test(chunks_do_not_change_a_bit),
    cmocka_unit_test(input_scale_counts),
    cmocka_unit_test(bytes_are_numbers),
    cmocka_unit_test(no_rows_are_fine),
    cmocka_unit_test(nan_is_not_lost),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
