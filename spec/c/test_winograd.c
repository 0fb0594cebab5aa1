/* test_winograd.c: the variants "winograd" of convolution and convolution_gradient, of every instruction set that runs here, of kernels of
 * 3 x 3 by tiles of 4 x 4 and (exact) of 2 x 2, and of kernels of 5 x 5, against loops in double precision. Where values are nearly equal
 * the maximum of a pool and what relu leaves may differ from the reference: values are compared, and that the index points at a maximum. */
#include <math.h>
#include <stdio.h>
#include "kernel_call.h"

typedef struct shape { int n, h, w, ci, co, padding[4], relu, bias, pooled; } shape;

/* Operands, all in float32, and the results in double precision. */
typedef struct fixture {
  shape s;
  int taps;                                     /* of the kernel along an axis */
  int out[2], result[2];                        /* conv output, y */
  flow_attributes attributes;
  test_tensor x, w, b, g, y, index;             /* y, index: the reference's, as inputs of the gradient */
  double *conv, *best, *dx, *dw, *db;           /* conv: with bias; best: y */
  double largest, largest_dx, largest_dw, largest_db;
} fixture;

enum { NO_ARGMAX = 255 };

static double *zeros(int64_t n)
{
  double *block = calloc((size_t)n + 1, sizeof(double));
  assert_non_null(block);
  return block;
}

static double largest_of(const double *values, int64_t n)
{
  double largest = 0;
  for (int64_t i = 0; i < n; i++) largest = fabs(values[i]) > largest ? fabs(values[i]) : largest;
  return largest;
}

/* Widens a tensor, so that the loops below read doubles. */
static double *values_of(const test_tensor *t)
{
  int64_t n = operand_size(&t->operand);
  double *values = zeros(n);
  for (int64_t i = 0; i < n; i++) values[i] = tensor_get(t, i);
  return values;
}

static void forward_reference(fixture *f)
{
  const shape *s = &f->s;
  double *x = values_of(&f->x), *w = values_of(&f->w);
  for (int64_t i = 0; i < s->n; i++)
    for (int r = 0; r < f->out[0]; r++)
      for (int c = 0; c < f->out[1]; c++) {
        double *to = f->conv + ((i * f->out[0] + r) * f->out[1] + c) * s->co;
        for (int k = 0; k < s->co; k++) to[k] = s->bias ? tensor_get(&f->b, k) : 0;
        for (int tap = 0; tap < f->taps * f->taps; tap++) {
          int row = r + tap / f->taps - s->padding[0], column = c + tap % f->taps - s->padding[2];
          if (row < 0 || row >= s->h || column < 0 || column >= s->w) continue;
          const double *from = x + ((i * s->h + row) * s->w + column) * s->ci;
          for (int m = 0; m < s->ci; m++)
            for (int k = 0; k < s->co; k++) to[k] += from[m] * w[(tap * s->ci + m) * s->co + k];
        }
      }
  f->largest = largest_of(f->conv, (int64_t)s->n * f->out[0] * f->out[1] * s->co);
  free(x), free(w);
}

/* The conv output at position k of the window of element `at` of y. */
static double *under(fixture *f, int64_t at, int k)
{
  const shape *s = &f->s;
  if (!s->pooled) return &f->conv[at];
  int64_t channel = at % s->co, pixel = at / s->co, column = pixel % f->result[1] * 2 + k % 2;
  int64_t row = pixel / f->result[1] % f->result[0] * 2 + k / 2, image = pixel / f->result[1] / f->result[0];
  return &f->conv[((image * f->out[0] + row) * f->out[1] + column) * s->co + channel];
}

static void epilogue_reference(fixture *f)
{
  for (int64_t at = 0; at < operand_size(&f->y.operand); at++) {
    int argmax = 0;
    for (int k = 1; k < (f->s.pooled ? 4 : 1); k++)
      if (*under(f, at, k) > *under(f, at, argmax)) argmax = k;
    f->best[at] = *under(f, at, argmax);
    if (f->s.relu && f->best[at] <= 0) f->best[at] = 0, argmax = NO_ARGMAX;
    tensor_set(&f->y, at, f->best[at]);
    if (f->s.pooled) tensor_set(&f->index, at, argmax);
  }
}

/* Overwrites conv with its own gradient. */
static void backward_reference(fixture *f)
{
  const shape *s = &f->s;
  int64_t convs = (int64_t)s->n * f->out[0] * f->out[1];
  memset(f->conv, 0, (size_t)(convs * s->co) * sizeof(double));
  for (int64_t at = 0; at < operand_size(&f->y.operand); at++) {
    int argmax = s->pooled ? (int)tensor_get(&f->index, at) : tensor_get(&f->y, at) > 0 || !s->relu ? 0 : NO_ARGMAX;
    if (argmax != NO_ARGMAX) *under(f, at, argmax) = tensor_get(&f->g, at);
  }
  double *x = values_of(&f->x), *w = values_of(&f->w);
  for (int64_t pixel = 0; pixel < convs; pixel++) {
    const double *g = f->conv + pixel * s->co;
    for (int k = 0; k < s->co; k++) f->db[k] += g[k];
    for (int tap = 0; tap < f->taps * f->taps; tap++) {
      int64_t row = pixel / f->out[1] % f->out[0] + tap / f->taps - s->padding[0];
      int64_t column = pixel % f->out[1] + tap % f->taps - s->padding[2];
      if (row < 0 || row >= s->h || column < 0 || column >= s->w) continue;
      int64_t from = ((pixel / f->out[1] / f->out[0] * s->h + row) * s->w + column) * s->ci;
      for (int m = 0; m < s->ci; m++)
        for (int k = 0; k < s->co; k++) {
          int64_t weight = (tap * s->ci + m) * s->co + k;
          f->dx[from + m] += g[k] * w[weight];
          f->dw[weight] += g[k] * x[from + m];
        }
    }
  }
  f->largest_dx = largest_of(f->dx, (int64_t)s->n * s->h * s->w * s->ci);
  f->largest_dw = largest_of(f->dw, (int64_t)f->taps * f->taps * s->ci * s->co);
  f->largest_db = largest_of(f->db, s->co);
  free(x), free(w);
}

static void fixture_make(fixture *f, const shape *s, int taps)
{
  memset(f, 0, sizeof *f);
  f->s = *s;
  f->taps = taps;
  int in[2] = { s->h, s->w };
  for (int axis = 0; axis < 2; axis++) {
    f->out[axis] = in[axis] + s->padding[2 * axis] + s->padding[2 * axis + 1] - (f->taps - 1);
    f->result[axis] = s->pooled ? f->out[axis] / 2 : f->out[axis];
    f->attributes.convolution.stride[axis] = f->attributes.convolution.dilation[axis] = 1;
    if (s->pooled) f->attributes.convolution.pool[axis] = f->attributes.convolution.pool_stride[axis] = 2;
  }
  for (int i = 0; i < 4; i++) f->attributes.convolution.padding[i] = s->padding[i];
  f->attributes.convolution.groups = 1;
  f->attributes.convolution.activation = s->relu ? FLOW_RELU : FLOW_LINEAR;
  f->attributes.convolution.has_bias = s->bias;
  int64_t x[4] = { s->n, s->h, s->w, s->ci }, w[4] = { f->taps, f->taps, s->ci, s->co }, y[4] = { s->n, f->result[0], f->result[1], s->co };
  int64_t b[1] = { s->bias ? s->co : 0 }, none[1] = { 0 };
  tensor_make(&f->x, FLOW_FLOAT32, 4, x);
  tensor_make(&f->w, FLOW_FLOAT32, 4, w);
  tensor_make(&f->b, FLOW_FLOAT32, 1, b);
  tensor_make(&f->g, FLOW_FLOAT32, 4, y);
  tensor_make(&f->y, FLOW_FLOAT32, 4, y);
  tensor_make(&f->index, FLOW_UINT8, s->pooled ? 4 : 1, s->pooled ? y : none);
  uint32_t state = 4711u + (uint32_t)(s->h * 1009 + s->w * 97 + s->ci * 31 + s->co);
  tensor_fill_rough(&f->x, &state);
  tensor_fill_rough(&f->w, &state);
  tensor_fill_rough(&f->b, &state);
  tensor_fill_rough(&f->g, &state);
  f->conv = zeros((int64_t)s->n * f->out[0] * f->out[1] * s->co);
  f->best = zeros(operand_size(&f->y.operand));
  f->dx = zeros(operand_size(&f->x.operand));
  f->dw = zeros(operand_size(&f->w.operand));
  f->db = zeros(s->co);
  forward_reference(f);
  epilogue_reference(f);
}

static void fixture_free(fixture *f)
{
  tensor_free(&f->x), tensor_free(&f->w), tensor_free(&f->b), tensor_free(&f->g), tensor_free(&f->y), tensor_free(&f->index);
  free(f->conv), free(f->best), free(f->dx), free(f->dw), free(f->db);
}

static test_tensor like(const test_tensor *t)
{
  test_tensor copy;
  tensor_make(&copy, t->operand.dtype, t->operand.rank, t->operand.shape);
  return copy;
}

static void run_forward(const flow_kernel *kernel, const fixture *f, int exact, test_tensor *y, test_tensor *index, const int *chunks)
{
  flow_operand inputs[3] = { f->x.operand, f->w.operand, f->b.operand }, outputs[2] = { f->y.operand, f->index.operand };
  outputs[0].data = y ? y->operand.data : NULL;
  outputs[1].data = index ? index->operand.data : NULL;
  flow_call call = { .op = FLOW_OP_convolution, .attributes = &f->attributes, .input_count = f->s.bias ? 3 : 2, .output_count = 2,
                     .inputs = inputs, .outputs = outputs, .exact = exact };
  assert_true(kernel->supports(&call));
  run_in_chunks(kernel, &call, 1, f->s.pooled ? 3 : 1, chunks);
}

/* Gradients that are NULL are not wanted; known: and the kernel is told beforehand. */
static void run_backward(const flow_kernel *kernel, const fixture *f, int exact, int known, test_tensor *dx, test_tensor *dw,
                         test_tensor *db, const int *chunks)
{
  flow_operand inputs[5] = { f->g.operand, f->x.operand, f->w.operand, f->y.operand, f->index.operand };
  flow_operand outputs[3] = { f->x.operand, f->w.operand, { .dtype = FLOW_FLOAT32, .rank = 1, .shape = { f->s.co }, .strides = { 1 } } };
  test_tensor *wanted[3] = { dx, dw, db };
  for (int i = 0; i < 3; i++) {
    outputs[i].data = wanted[i] ? wanted[i]->operand.data : NULL;
    outputs[i].unused = known && !wanted[i];
  }
  flow_call call = { .op = FLOW_OP_convolution_gradient, .attributes = &f->attributes, .input_count = 5, .output_count = 3,
                     .inputs = inputs, .outputs = outputs, .exact = exact };
  assert_true(kernel->supports(&call));
  run_in_chunks(kernel, &call, f->s.pooled ? 0x1b : 0x0b, 1, chunks);
}

static const flow_kernel *winograd_of(const flow_device *device, int op, const char *variant)
{
  for (const flow_kernel *kernel = device->kernels[op]; kernel->run; kernel++)
    if (strcmp(kernel->variant, variant) == 0) return kernel;
  fail_msg("no variant %s", variant);
  return NULL;
}

typedef void (*check)(const flow_kernel *kernel, fixture *f, int exact, const char *name);

/* Runs a check for all builds and, of 3 x 3, both tile sizes. */
static void everywhere(int op, fixture *f, check run_check)
{
  for (size_t i = 0; i < sizeof test_isas / sizeof test_isas[0]; i++) {
    const flow_device *device = flow_cpu_device_for(test_isas[i]);
    for (int exact = 0; exact < (f->taps == 3 ? 2 : 1) && device; exact++) {
      char name[160];
      snprintf(name, sizeof name, "%s F(%d,%d): %d images %dx%dx%d -> %d, padding %d %d %d %d, relu %d, pooled %d", test_isas[i],
               exact || f->taps == 5 ? 2 : 4, f->taps, f->s.n, f->s.h, f->s.w, f->s.ci, f->s.co, f->s.padding[0], f->s.padding[1],
               f->s.padding[2], f->s.padding[3], f->s.relu, f->s.pooled);
      run_check(winograd_of(device, op, "winograd"), f, exact, name);
    }
  }
}

static void expect_near(const test_tensor *found, const double *expected, double tolerance, const char *what, const char *name)
{
  for (int64_t i = 0; i < operand_size(&found->operand); i++)
    if (!(fabs(tensor_get(found, i) - expected[i]) <= tolerance))
      fail_msg("%s: %s[%lld] is %.9g, should be %.9g within %.2g", name, what, (long long)i, tensor_get(found, i), expected[i], tolerance);
}

static void expect_same(const test_tensor *one, const test_tensor *other, const char *what, const char *name)
{
  if (memcmp(one->operand.data, other->operand.data, one->memory.bytes) != 0) fail_msg("%s: %s differs", name, what);
}

static void check_forward(const flow_kernel *kernel, fixture *f, int exact, const char *name)
{
  const int whole[] = { f->s.n, 0 }, split[] = { 1, f->s.n - 1, 0 };
  double tolerance = (exact ? 1e-6 : 3e-6) * f->largest;
  test_tensor y = like(&f->y), index = like(&f->index), other_y = like(&f->y), other_index = like(&f->index);
  run_forward(kernel, f, exact, &y, &index, whole);
  expect_near(&y, f->best, tolerance, "y", name);
  for (int64_t at = 0; at < operand_size(&index.operand); at++) {
    int argmax = (int)tensor_get(&index, at);
    double value = tensor_get(&y, at);
    int fine = argmax == NO_ARGMAX ? f->s.relu && value == 0 : argmax < 4 && !(f->s.relu && value <= 0)
                                                               && fabs(*under(f, at, argmax) - f->best[at]) <= 2 * tolerance;
    if (!fine) fail_msg("%s: index[%lld] is %d, should be %g", name, (long long)at, argmax, tensor_get(&f->index, at));
  }
  run_forward(kernel, f, exact, &other_y, &other_index, f->s.n > 1 ? split : whole);
  expect_same(&y, &other_y, "y in chunks", name);
  expect_same(&index, &other_index, "index in chunks", name);
  if (f->s.pooled) {
    test_tensor alone = like(&f->y), alone_index = like(&f->index);
    run_forward(kernel, f, exact, &alone, NULL, whole);
    run_forward(kernel, f, exact, NULL, &alone_index, whole);
    expect_same(&y, &alone, "y without index", name);
    expect_same(&index, &alone_index, "index without y", name);
    tensor_free(&alone), tensor_free(&alone_index);
  }
  tensor_free(&y), tensor_free(&index), tensor_free(&other_y), tensor_free(&other_index);
}

static void check_backward(const flow_kernel *kernel, fixture *f, int exact, const char *name)
{
  const int whole[] = { f->s.n, 0 }, split[] = { 1, f->s.n - 1, 0 }, *chunks = f->s.n > 1 ? split : whole;
  int64_t channels[1] = { f->s.co };
  double bound = exact ? 4e-6 : 2e-5;
  test_tensor dx = like(&f->x), dw = like(&f->w), db, other_dx = like(&f->x), other_dw = like(&f->w), other_db;
  tensor_make(&db, FLOW_FLOAT32, 1, channels);
  tensor_make(&other_db, FLOW_FLOAT32, 1, channels);
  run_backward(kernel, f, exact, 0, &dx, &dw, &db, whole);
  expect_near(&dx, f->dx, bound * f->largest_dx, "dx", name);
  expect_near(&dw, f->dw, bound * f->largest_dw, "dw", name);
  expect_near(&db, f->db, 4e-6 * (f->largest_db + 1), "db", name);
  run_backward(kernel, f, exact, 0, &other_dx, &other_dw, &other_db, chunks);
  expect_same(&dx, &other_dx, "dx in chunks", name);
  expect_near(&other_dw, f->dw, bound * f->largest_dw, "dw in chunks", name);   /* other tiles share a sum */
  expect_same(&db, &other_db, "db in chunks", name);
  run_backward(kernel, f, exact, 1, &other_dx, NULL, NULL, whole);
  run_backward(kernel, f, exact, 1, NULL, &other_dw, NULL, whole);
  run_backward(kernel, f, exact, 0, NULL, NULL, &other_db, whole);
  expect_same(&dx, &other_dx, "dx alone", name);
  expect_same(&dw, &other_dw, "dw alone", name);
  expect_same(&db, &other_db, "db alone", name);
  tensor_free(&dx), tensor_free(&dw), tensor_free(&db), tensor_free(&other_dx), tensor_free(&other_dw), tensor_free(&other_db);
}

/* A shape without a single output is skipped. */
static void both_ways_with(const shape *s, int taps)
{
  fixture f;
  if (s->h + s->padding[0] + s->padding[1] < taps + s->pooled || s->w + s->padding[2] + s->padding[3] < taps + s->pooled) return;
  fixture_make(&f, s, taps);
  everywhere(FLOW_OP_convolution, &f, check_forward);
  backward_reference(&f);
  everywhere(FLOW_OP_convolution_gradient, &f, check_backward);
  fixture_free(&f);
}

static void both_ways(const shape *s)
{
  both_ways_with(s, 3);
  both_ways_with(s, 5);
}

static void all_sizes(void **state)
{
  (void)state;
  for (int h = 1; h <= 13; h++)
    for (int w = 1; w <= 13; w += 2) {
      int pooled = (h + w / 2) % 2, relu = (h + w) % 3 > 0;
      both_ways(&(shape){ 2, h, w, 5, 7, { 1, 1, 1, 1 }, relu, h % 2, pooled });
      both_ways(&(shape){ 2, h, w, 3, 18, { 0, 0, 0, 0 }, relu, h % 2, !pooled });
    }
}

static void all_epilogues(void **state)
{
  (void)state;
  for (int i = 0; i < 8; i++) both_ways(&(shape){ 3, 11, 10, 17, 33, { 1, 1, 1, 1 }, i & 1, i >> 1 & 1, i >> 2 });
}

static void all_paddings(void **state)
{
  (void)state;
  static const int paddings[][4] = { { 0, 1, 1, 0 }, { 2, 2, 2, 2 }, { 0, 2, 1, 1 }, { 3, 0, 0, 4 }, { 5, 1, 9, 1 }, { 1, 7, 2, 6 } };
  for (size_t i = 0; i < sizeof paddings / sizeof paddings[0]; i++)
    for (int k = 0; k < 4; k++) {
      shape s = { 2, 6 + k, 9 - k, 6, 9, { 0 }, k % 2, 1, k / 2 };
      memcpy(s.padding, paddings[i], sizeof s.padding);
      both_ways(&s);
    }
}

static void all_channel_counts(void **state)
{
  (void)state;
  for (int c = 1; c <= 70; c++) both_ways(&(shape){ 2, 6, 7, c, (c * 37) % 71, { 1, 1, 1, 1 }, c % 2, 1, c % 3 == 0 });
}

/* Several chunks of tiles, groups of images and bands of a canvas; more inputs than are summed at a time. */
static void large_calls(void **state)
{
  (void)state;
  both_ways(&(shape){ 9, 8, 8, 64, 32, { 1, 1, 1, 1 }, 0, 1, 0 });
  both_ways(&(shape){ 3, 60, 61, 9, 40, { 1, 1, 1, 1 }, 1, 1, 1 });
  both_ways(&(shape){ 2, 50, 90, 16, 32, { 0, 0, 0, 0 }, 1, 1, 0 });
  both_ways(&(shape){ 5, 7, 7, 150, 131, { 1, 1, 1, 1 }, 1, 1, 0 });
}

/* A NaN reaches every output that sees it, and none but those of tiles that see it. */
static void check_nan(const flow_kernel *kernel, fixture *f, int exact, const char *name)
{
  const int whole[] = { 1, 0 };
  test_tensor y = like(&f->y), index = like(&f->index);
  run_forward(kernel, f, exact, &y, &index, whole);
  for (int64_t at = 0; at < operand_size(&y.operand); at++) {
    int64_t row = at / f->s.co / f->result[1], column = at / f->s.co % f->result[1];
    int is = tensor_get(&y, at) != tensor_get(&y, at);
    if (row == 0 && column == 0 && !is) fail_msg("%s: the NaN is lost", name);
    if ((row > 1 || column > 1) && is) fail_msg("%s: the NaN is in row %d, column %d", name, (int)row, (int)column);
    if (is) assert_int_not_equal((int)tensor_get(&index, at), NO_ARGMAX);
  }
  tensor_free(&y), tensor_free(&index);
}

static void nan_stays_in_its_tiles(void **state)
{
  (void)state;
  for (int taps = 3; taps <= 5; taps += 2) {
    fixture f;
    fixture_make(&f, &(shape){ 1, 12, 12, 3, 20, { 1, 1, 1, 1 }, 1, 1, 1 }, taps);
    tensor_set(&f.x, 0, __builtin_nan(""));
    everywhere(FLOW_OP_convolution, &f, check_nan);
    fixture_free(&f);
  }
}

/* Which of the variants costs less, by the shapes alone. Nobody reads dx of a few channels: those are a first layer's. */
static int winograd_is_cheaper(const flow_device *device, int op, int taps, const int *sizes)
{
  const int n = sizes[0], size = sizes[1], ci = sizes[2], co = sizes[3], pad = taps / 2;
  flow_attributes attributes = {
    .convolution = { .stride = { 1, 1 }, .dilation = { 1, 1 }, .padding = { pad, pad, pad, pad }, .groups = 1 },
  };
  flow_operand x = { .dtype = FLOW_FLOAT32, .rank = 4, .shape = { n, size, size, ci } }, y = x, w = x;
  y.shape[3] = co;
  w.shape[0] = w.shape[1] = taps;
  w.shape[2] = ci, w.shape[3] = co;
  flow_operand forward[2] = { x, w }, backward[5] = { y, x, w, y, y }, outputs[3] = { op == FLOW_OP_convolution ? y : x, w, w };
  outputs[0].unused = op == FLOW_OP_convolution_gradient && ci < 4;
  flow_call call = { .op = op, .attributes = &attributes, .inputs = op == FLOW_OP_convolution ? forward : backward, .outputs = outputs,
                     .input_count = op == FLOW_OP_convolution ? 2 : 5, .output_count = op == FLOW_OP_convolution ? 2 : 3 };
  const flow_kernel *winograd = winograd_of(device, op, "winograd"), *direct = winograd_of(device, op, "direct");
  return winograd->cost(&call) < direct->cost(&call);
}

static void cost_prefers_what_is_faster(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof test_isas / sizeof test_isas[0]; i++) {
    const flow_device *device = flow_cpu_device_for(test_isas[i]);
    for (int k = 0; k < 4 && device; k++) {
      int taps = k / 2 ? 5 : 3, op = k % 2 ? FLOW_OP_convolution_gradient : FLOW_OP_convolution;
      static const int better[][4] = { { 8, 56, 64, 64 }, { 8, 28, 128, 128 }, { 8, 32, 32, 32 }, { 8, 45, 32, 64 } };
      static const int worse[][4] = { { 8, 64, 3, 16 }, { 8, 64, 1, 32 }, { 1, 3, 512, 512 } };
      for (size_t m = 0; m < sizeof better / sizeof better[0]; m++)
        if (!winograd_is_cheaper(device, op, taps, better[m]))
          fail_msg("%s, op %d: %d taps, %d -> %d should go to winograd", test_isas[i], op, taps, better[m][2], better[m][3]);
      for (size_t m = 0; i > 0 && m < sizeof worse / sizeof worse[0]; m++)   /* plain multiplies so slowly that nothing is worse */
        if (winograd_is_cheaper(device, op, taps, worse[m]))
          fail_msg("%s, op %d: %d taps, %d -> %d should not go to winograd", test_isas[i], op, taps, worse[m][2], worse[m][3]);
    }
  }
}

/* What each thread needs for a layer of many channels, whose result relu changed: V and Z of a chunk, their sums, and the canvas. */
static void scratch_of_many_channels_is_bounded(void **state)
{
  (void)state;
  flow_attributes attributes = {
    .convolution = { .stride = { 1, 1 }, .dilation = { 1, 1 }, .padding = { 1, 1, 1, 1 }, .groups = 1, .activation = FLOW_RELU },
  };
  for (size_t i = 0; i < sizeof test_isas / sizeof test_isas[0]; i++) {
    const flow_device *device = flow_cpu_device_for(test_isas[i]);
    for (int channels = 256; channels <= 3072 && device; channels *= 2) {
      flow_operand x = { .dtype = FLOW_FLOAT32, .rank = 4, .shape = { 32, 7, 7, channels } };
      flow_operand w = { .dtype = FLOW_FLOAT32, .rank = 4, .shape = { 3, 3, channels, channels } };
      flow_operand inputs[5] = { x, x, w, x, x }, outputs[3] = { x, w, w };
      flow_call call = { .op = FLOW_OP_convolution_gradient,
                         .attributes = &attributes,
                         .inputs = inputs,
                         .outputs = outputs,
                         .input_count = 5,
                         .output_count = 3 };
      size_t bytes = winograd_of(device, FLOW_OP_convolution_gradient, "winograd")->scratch_bytes(&call);
      if (bytes > 12u << 20) fail_msg("%s, %d channels: %zu bytes", test_isas[i], channels, bytes);
    }
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(scratch_of_many_channels_is_bounded),
    cmocka_unit_test(all_sizes),
    cmocka_unit_test(all_epilogues),
    cmocka_unit_test(all_paddings),
    cmocka_unit_test(all_channel_counts),
    cmocka_unit_test(large_calls),
    cmocka_unit_test(nan_stays_in_its_tiles),
    cmocka_unit_test(cost_prefers_what_is_faster),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
