/* Reductions and arg reductions against scalar references: every op, dtype, set of axes, layout and build. */
#include "kernel_arrays.h"
#include "ops/launch.h"
#include "ops/wide_sum.h"

typedef struct case_of { int rank; int64_t shape[FLOW_MAX_RANK]; } case_of;
static const case_of shapes[] = {
  { 0, { 0 } },           { 1, { 1 } },            { 1, { 9 } },             { 1, { 3000 } },        { 2, { 3, 5 } },
  { 2, { 4, 600 } },      { 2, { 70, 3 } },        { 2, { 600, 4 } },        { 3, { 2, 130, 5 } },   { 3, { 5, 1, 16 } },
  { 3, { 3, 40, 17 } },   { 4, { 2, 6, 7, 3 } },   { 4, { 2, 9, 8, 33 } },   { 4, { 3, 2, 5, 70 } }, { 5, { 2, 3, 2, 5, 3 } },
  { 2, { 0, 3 } },        { 2, { 3, 0 } },         { 3, { 2, 0, 3 } },
};
enum { SHAPE_COUNT = sizeof shapes / sizeof shapes[0] };

/* ---- the shape of a result, and which inputs belong to an output ------------------------------------------------------- */

static unsigned mask_of(const flow_attributes *attributes, int rank)
{
  unsigned mask = attributes->reduce.count == 0 ? (1u << rank) - 1 : 0;
  for (int i = 0; i < attributes->reduce.count; i++) {
    int axis = attributes->reduce.axes[i];
    mask |= 1u << (axis < 0 ? axis + rank : axis);
  }
  return mask;
}

static array result_of(int dtype, const flow_operand *in, unsigned mask, int keepdims)
{
  int64_t shape[FLOW_MAX_RANK];
  int rank = 0;
  for (int i = 0; i < in->rank; i++) {
    if (!(mask >> i & 1)) shape[rank++] = in->shape[i];
    else if (keepdims) shape[rank++] = 1;
  }
  return array_new(dtype, CONTIGUOUS, rank, shape);
}

/* The output, in row-major order, that input element i counts for, and the element's position among those. */
static int64_t output_of(const flow_operand *in, unsigned mask, int64_t i, int64_t *position)
{
  int64_t output = 0, output_step = 1, position_step = 1;
  *position = 0;
  for (int axis = in->rank - 1; axis >= 0; axis--) {
    int64_t index = i % in->shape[axis];
    if (mask >> axis & 1) {
      *position += index * position_step;
      position_step *= in->shape[axis];
    } else {
      output += index * output_step;
      output_step *= in->shape[axis];
    }
    i /= in->shape[axis];
  }
  return output;
}

/* ---- references ------------------------------------------------------------------------------------------------------------ */

typedef struct expectation { array in, out; unsigned mask; } expectation;

static double combine(int op, double a, double b)
{
  switch (op) {
    case FLOW_OP_sum: return a + b;
    case FLOW_OP_prod: return a * b;
    case FLOW_OP_max: return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
    case FLOW_OP_min: return isnan(a) || isnan(b) ? NAN : a < b ? a : b;
    case FLOW_OP_any: return a != 0 || b != 0;
    default: return a != 0 && b != 0;
  }
}

static int64_t combine_int(int op, int64_t a, int64_t b)
{
  switch (op) {
    case FLOW_OP_sum: return (int64_t)((uint64_t)a + (uint64_t)b);
    case FLOW_OP_prod: return (int64_t)((uint64_t)a * (uint64_t)b);
    default: return (int64_t)combine(op, (double)a, (double)b);
  }
}

static void check_reduced(const flow_call *call, void *argument)
{
  expectation *e = argument;
  const flow_operand *in = &e->in.operand, *out = &e->out.operand;
  const char *name = flow_op(call->op)->name;
  int64_t outputs = size_of(out->rank, out->shape), inputs = size_of(in->rank, in->shape), position;
  int is_float = flow_dtype_is_float(in->dtype);
  static const double identity[FLOW_OP_COUNT] = {
    [FLOW_OP_prod] = 1, [FLOW_OP_max] = -INFINITY, [FLOW_OP_min] = INFINITY, [FLOW_OP_all] = 1,
  };
  double *value = malloc(sizeof(double) * (size_t)(outputs + 1)), *sizes = malloc(sizeof(double) * (size_t)(outputs + 1));
  int64_t *whole = malloc(sizeof(int64_t) * (size_t)(outputs + 1));
  assert_true(value && sizes && whole);
  for (int64_t i = 0; i < outputs; i++) {
    value[i] = identity[call->op];
    sizes[i] = 0;
    whole[i] = call->op == FLOW_OP_max ? INT64_MIN : call->op == FLOW_OP_min ? INT64_MAX : (int64_t)identity[call->op];
  }
  for (int64_t i = 0; i < inputs; i++) {
    int64_t o = output_of(in, e->mask, i, &position);
    double x = read_double(in->dtype, element(in, i));
    value[o] = combine(call->op, value[o], x);
    sizes[o] += fabs(x);
    if (!is_float) whole[o] = combine_int(call->op, whole[o], read_int(in->dtype, element(in, i)));
  }
  for (int64_t i = 0; i < outputs; i++) {
    const void *found = element(out, i);
    if (!is_float || out->dtype == FLOW_BOOL) {
      int64_t expected = is_float ? value[i] != 0 : whole[i];
      if (read_int(out->dtype, found) != expected)
        fail_msg("%s, %s: output %lld is %lld, expected %lld", name, flow_dtype_name(in->dtype), (long long)i,
                 (long long)read_int(out->dtype, found), (long long)expected);
    } else if (call->op == FLOW_OP_max || call->op == FLOW_OP_min) {
      assert_close(name, out->dtype, read_double(out->dtype, found), value[i], 0);
    } else {
      /* Floats are added four at a time, and those sums as doubles; float64 one after the other. Products: a rounding per factor. */
      double each = (double)inputs / (double)outputs, units = call->op == FLOW_OP_sum ? 2.5 : 4 + each;
      double scale = call->op == FLOW_OP_sum ? sizes[i] : fabs(value[i]);
      if (out->dtype == FLOW_FLOAT64 && call->op == FLOW_OP_sum) units += each;
      double result = read_double(out->dtype, found), most = units * unit_in_last_place(out->dtype, scale);
      int same = result == value[i] || (isnan(result) && isnan(value[i]));
      if (!same && !(isfinite(value[i]) && fabs(result - value[i]) <= most))
        fail_msg("%s, %s: output %lld is %.17g, expected %.17g", name, flow_dtype_name(in->dtype), (long long)i, result,
                 value[i]);
    }
  }
  assert_guards(&e->out);
  memset(e->out.block + GUARD, GUARD_BYTE, e->out.bytes);
  free(value);
  free(sizes);
  free(whole);
}

static int result_dtype(int op, int dtype)
{
  if (op == FLOW_OP_any || op == FLOW_OP_all) return FLOW_BOOL;
  if (op == FLOW_OP_argmax || op == FLOW_OP_argmin) return FLOW_INT64;
  return (op == FLOW_OP_sum || op == FLOW_OP_prod) && !flow_dtype_is_float(dtype) ? FLOW_INT64 : dtype;
}

static int is_empty(const array *in, const array *out)
{
  return size_of(in->operand.rank, in->operand.shape) == 0 && size_of(out->operand.rank, out->operand.shape) > 0;
}

static void every_reduction_matches_its_reference(void **state)
{
  (void)state;
  static const int ops[] = { FLOW_OP_sum, FLOW_OP_prod, FLOW_OP_max, FLOW_OP_min, FLOW_OP_any, FLOW_OP_all };
  for (size_t o = 0; o < sizeof ops / sizeof ops[0]; o++)
    for (int dtype = 0; dtype < FLOW_DTYPE_COUNT; dtype++)
      for (int s = 0; s < SHAPE_COUNT; s++)
        for (unsigned mask = 0; mask < 1u << shapes[s].rank; mask++) {
          flow_attributes attributes = { .reduce = { .keepdims = (s + (int)mask) % 2 } };
          for (int i = 0; i < shapes[s].rank; i++)   /* negative axes count from the end */
            if (mask >> i & 1) attributes.reduce.axes[attributes.reduce.count++] = i % 2 ? i - shapes[s].rank : i;
          expectation e = { .mask = mask_of(&attributes, shapes[s].rank) };
          e.in = array_new(dtype, (layout_kind)((s + (int)mask + (int)o) % LAYOUT_COUNT), shapes[s].rank, shapes[s].shape);
          e.out = result_of(result_dtype(ops[o], dtype), &e.in.operand, e.mask, attributes.reduce.keepdims);
          array_fill_random(&e.in, 5, ops[o] == FLOW_OP_prod ? 0.9 : -1, ops[o] == FLOW_OP_prod ? 1.1 : 3);
          if (ops[o] == FLOW_OP_any || ops[o] == FLOW_OP_all)   /* one in eleven decides */
            for (int64_t i = s; i < size_of(shapes[s].rank, shapes[s].shape) + s; i++)
              write_double(dtype, element(&e.in.operand, i - s), (i % 11 == 10) == (ops[o] == FLOW_OP_any));
          flow_call call = call_of(ops[o], &attributes, &e.in.operand, 1, &e.out.operand);
          if (!is_empty(&e.in, &e.out) || (ops[o] != FLOW_OP_max && ops[o] != FLOW_OP_min)) run_everywhere(&call, check_reduced, &e);
          array_free(&e.in);
          array_free(&e.out);
        }
}

/* ---- sums ---------------------------------------------------------------------------------------------------------------- */

static const flow_kernel *sum_kernel(const flow_device *device, const flow_call *call)
{
  const flow_kernel *kernel = device->kernels[FLOW_OP_sum];
  while (kernel->supports && !kernel->supports(call)) kernel++;
  return kernel;
}

/* The partial sum of rows [first, end) of `in` in pieces of cut[0], cut[1], ... rows, the last one again and again. */
static char *partial_sum(const flow_device *device, const flow_attributes *attributes, const flow_operand *in, flow_operand out,
                         int64_t first, int64_t end, const int64_t *cut)
{
  size_t bytes = flow_wide_bytes(size_of(out.rank, out.shape));
  char *partial = malloc(bytes + GUARD);
  assert_non_null(partial);
  memset(partial, GUARD_BYTE, bytes + GUARD);      /* the first chunk overwrites it */
  out.data = partial;
  for (int64_t row = first, rows; row < end; row += rows, cut += cut[1] != 0) {
    flow_operand chunk = *in;
    rows = cut[0] < end - row ? cut[0] : end - row;
    chunk.shape[0] = rows;
    chunk.data = (char *)in->data + row * in->strides[0] * flow_dtype_size(in->dtype);
    flow_call call = call_of(FLOW_OP_sum, attributes, &chunk, 1, &out);
    call.first_row = row;
    call.accumulate = row > first;
    call.partial = 1;
    assert_int_equal(run_kernel(sum_kernel(device, &call), &call), FLOW_OK);
  }
  for (size_t i = 0; i < GUARD; i++) assert_int_equal((unsigned char)partial[bytes + i], GUARD_BYTE);
  return partial;
}

typedef struct sum_kind { int rank; int64_t shape[4]; int count; int axes[4]; } sum_kind;
static const sum_kind sum_kinds[] = {
  { 1, { 40 }, 0, { 0 } },           { 1, { 3000 }, 0, { 0 } },        { 2, { 1000, 5 }, 1, { 0 } },      { 2, { 400, 31 }, 1, { 0 } },
  { 2, { 100, 33 }, 1, { 0 } },      { 2, { 40, 70 }, 0, { 0 } },      { 2, { 40, 2000 }, 1, { 0 } },     { 2, { 300, 3 }, 0, { 0 } },
  { 4, { 40, 5, 6, 3 }, 0, { 0 } },  { 4, { 40, 5, 6, 33 }, 3, { 0, 1, 2 } }, { 4, { 40, 5, 6, 4 }, 3, { 0, 1, 2 } },
  { 3, { 40, 7, 130 }, 2, { 0, 2 } }, { 3, { 40, 7, 13 }, 2, { 0, 2 } }, { 3, { 40, 7, 130 }, 1, { 0 } }, { 2, { 40, 0 }, 0, { 0 } },
};
enum { SUM_KINDS = sizeof sum_kinds / sizeof sum_kinds[0] };

/* For every build, kind of sum, dtype and layout. */
static void for_each_sum(void (*check)(const flow_device *device, const flow_attributes *attributes, array *in))
{
  for (int isa = 0; isa < ISA_COUNT; isa++) {
    const flow_device *device = flow_cpu_device_for(isa_names[isa]);
    for (size_t k = 0; device && k < SUM_KINDS; k++)
      for (int dtype = 0; dtype < FLOW_DTYPE_COUNT; dtype++)
        for (int layout = 0; layout < LAYOUT_COUNT; layout++) {
          flow_attributes attributes = { .reduce = { .count = sum_kinds[k].count, .keepdims = (int)k % 2 } };
          for (int i = 0; i < sum_kinds[k].count; i++) attributes.reduce.axes[i] = sum_kinds[k].axes[i];
          array in = array_new(dtype, (layout_kind)layout, sum_kinds[k].rank, sum_kinds[k].shape);
          array_fill_random(&in, 11, -1, 2);
          check(device, &attributes, &in);
          array_free(&in);
        }
  }
}

static array sum_result(const flow_attributes *attributes, const array *in)
{
  int dtype = flow_dtype_is_float(in->operand.dtype) ? in->operand.dtype : FLOW_INT64;
  return result_of(dtype, &in->operand, mask_of(attributes, in->operand.rank), attributes->reduce.keepdims);
}

static void check_chunks(const flow_device *device, const flow_attributes *attributes, array *in)
{
  static const int64_t cuts[][5] = { { 1 << 20 }, { 1 }, { 1, 38, 1 << 20 }, { 13 }, { 30, 1, 8, 17 }, { 16 }, { 33, 64 } };
  array out = sum_result(attributes, in);
  int64_t rows = in->operand.shape[0];
  size_t bytes = flow_wide_bytes(size_of(out.operand.rank, out.operand.shape)), used = bytes & ~(size_t)63;
  char *whole = partial_sum(device, attributes, &in->operand, out.operand, 0, rows, cuts[0]);
  for (size_t c = 1; c < sizeof cuts / sizeof cuts[0]; c++) {
    char *pieces = partial_sum(device, attributes, &in->operand, out.operand, 0, rows, cuts[c]);
    assert_memory_equal(pieces, whole, used);
    free(pieces);
  }
  free(whole);
  array_free(&out);
}

static void a_sum_over_rows_does_not_depend_on_chunks(void **state)
{
  (void)state;
  for_each_sum(check_chunks);
}

/* What an eager sum does is what a plan does: slots of ceil(rows / 16) rows, added in order. */
static void check_slots(const flow_device *device, const flow_attributes *attributes, array *in)
{
  static const int64_t cut[2] = { 7 };
  array expected = sum_result(attributes, in), found = sum_result(attributes, in);
  int64_t n = size_of(expected.operand.rank, expected.operand.shape), rows = in->operand.shape[0], slot_rows = (rows + 15) / 16, slots = 0;
  size_t bytes = flow_wide_bytes(n);
  char *partial = malloc(16 * bytes);
  for (int64_t row = 0; row < rows; row += slot_rows) {
    char *slot = partial_sum(device, attributes, &in->operand, expected.operand, row, row + slot_rows < rows ? row + slot_rows : rows, cut);
    memcpy(partial + (size_t)slots++ * bytes, slot, bytes);
    free(slot);
  }
  flow_wide_finish(partial, bytes, slots, n, 0, n, expected.operand.dtype, expected.operand.data);
  flow_call call = call_of(FLOW_OP_sum, attributes, &in->operand, 1, &found.operand);
  assert_int_equal(run_kernel(sum_kernel(device, &call), &call), FLOW_OK);
  assert_memory_equal(found.operand.data, expected.operand.data, found.bytes);
  free(partial);
  array_free(&expected);
  array_free(&found);
}

static void a_sum_over_all_rows_has_the_bits_of_its_slots(void **state)
{
  (void)state;
  for_each_sum(check_slots);
}

/* Rows of a kept first axis have the same bits whether they come alone or with others. */
static void a_kept_first_axis_does_not_change_results(void **state)
{
  (void)state;
  int64_t shape[4] = { 6, 9, 8, 17 };
  static const int axes[][3] = { { 1, 2, 9 }, { 3, 9, 9 }, { 2, 9, 9 }, { 1, 2, 3 } };
  for (int isa = 0; isa < ISA_COUNT; isa++) {
    const flow_device *device = flow_cpu_device_for(isa_names[isa]);
    if (!device) continue;
    for (size_t k = 0; k < sizeof axes / sizeof axes[0]; k++)
      for (int layout = 0; layout < LAYOUT_COUNT; layout++) {
        flow_attributes attributes = { 0 };
        for (int i = 0; i < 3 && axes[k][i] != 9; i++) attributes.reduce.axes[attributes.reduce.count++] = axes[k][i];
        array in = array_new(FLOW_FLOAT32, (layout_kind)layout, 4, shape);
        array_fill_random(&in, 13, -1, 2);
        unsigned mask = mask_of(&attributes, 4);
        array all = result_of(FLOW_FLOAT32, &in.operand, mask, 0), alone = result_of(FLOW_FLOAT32, &in.operand, mask, 0);
        flow_call call = call_of(FLOW_OP_sum, &attributes, &in.operand, 1, &all.operand);
        assert_int_equal(run_kernel(sum_kernel(device, &call), &call), FLOW_OK);
        for (int64_t row = 0; row < 6; row++) {
          flow_operand x = in.operand, y = alone.operand;
          x.data = (char *)x.data + row * x.strides[0] * 4;
          y.data = (char *)y.data + row * y.strides[0] * 4;
          x.shape[0] = y.shape[0] = 1;
          flow_call one = call_of(FLOW_OP_sum, &attributes, &x, 1, &y);
          assert_int_equal(run_kernel(sum_kernel(device, &one), &one), FLOW_OK);
        }
        assert_memory_equal(all.operand.data, alone.operand.data, all.bytes);
        array_free(&in);
        array_free(&all);
        array_free(&alone);
      }
  }
}

static void check_accurate(const flow_call *call, void *argument)
{
  float found = *(float *)call->outputs[0].data;
  assert_close("sum", FLOW_FLOAT32, found, *(double *)argument, 0.5);
}

/* One after the other in float, four million times 0.1 come out 0.2 % too large. Of equal numbers no digit is lost. */
static void a_long_sum_of_floats_keeps_its_digits(void **state)
{
  (void)state;
  static const int64_t many[][2] = { { 1, 4000000 }, { 4000000, 1 }, { 1000000, 4 }, { 4, 1000000 }, { 1000, 4000 }, { 80000, 50 } };
  for (size_t k = 0; k < sizeof many / sizeof many[0]; k++)
    for (int axis = -1; axis < 2; axis++) {
      const int64_t *shape = many[k];
      array in = array_new(FLOW_FLOAT32, CONTIGUOUS, 2, shape);
      for (int64_t i = 0; i < 4000000; i++) ((float *)in.operand.data)[i] = 0.1f;
      flow_attributes attributes = { .reduce = { .count = axis >= 0, .axes = { axis } } };
      array out = result_of(FLOW_FLOAT32, &in.operand, axis < 0 ? 3u : 1u << axis, 0);
      double expected = (double)0.1f * (double)(axis < 0 ? 4000000 : shape[axis]);
      flow_call call = call_of(FLOW_OP_sum, &attributes, &in.operand, 1, &out.operand);
      run_everywhere(&call, check_accurate, &expected);
      array_free(&in);
      array_free(&out);
    }
}

/* ---- NaN, empty axes --------------------------------------------------------------------------------------------------------- */

static void check_nan(const flow_call *call, void *argument)
{
  const flow_operand *out = &call->outputs[0];
  int64_t poisoned = *(int64_t *)argument;
  for (int64_t i = 0; i < out->shape[0]; i++) assert_int_equal(isnan(read_double(out->dtype, element(out, i))) != 0, i == poisoned);
}

static void a_nan_wins_wherever_it_stands(void **state)
{
  (void)state;
  static const int dtypes[] = { FLOW_FLOAT32, FLOW_FLOAT64, FLOW_FLOAT16 };
  int64_t shape[2] = { 3, 75 };
  for (int op = FLOW_OP_max; op <= FLOW_OP_min; op++)
    for (size_t d = 0; d < 3; d++)
      for (int axis = 0; axis < 2; axis++)
        for (int64_t at = 0; at < 75; at++) {
          array in = array_new(dtypes[d], CONTIGUOUS, 2, shape);
          array_fill_random(&in, 17, -5, 5);
          write_double(dtypes[d], element(&in.operand, 75 + at), NAN);
          flow_attributes attributes = { .reduce = { .count = 1, .axes = { axis } } };
          array out = result_of(dtypes[d], &in.operand, 1u << axis, 0);
          int64_t poisoned = axis == 1 ? 1 : at;
          flow_call call = call_of(op, &attributes, &in.operand, 1, &out.operand);
          run_everywhere(&call, check_nan, &poisoned);
          array_free(&in);
          array_free(&out);
        }
}

static void there_is_no_largest_of_nothing(void **state)
{
  (void)state;
  static const int ops[] = { FLOW_OP_max, FLOW_OP_min, FLOW_OP_argmax, FLOW_OP_argmin };
  int64_t shape[2] = { 3, 0 };
  for (size_t o = 0; o < 4; o++) {
    array in = array_new(FLOW_FLOAT32, CONTIGUOUS, 2, shape);
    flow_attributes attributes = { .reduce = { .count = 1, .axes = { 1 } } };
    array out = result_of(result_dtype(ops[o], FLOW_FLOAT32), &in.operand, 2, 0);
    flow_call call = call_of(ops[o], &attributes, &in.operand, 1, &out.operand);
    for (const flow_kernel *kernel = flow_cpu_device()->kernels[ops[o]]; kernel->run; kernel++) {
      if (kernel->supports && !kernel->supports(&call)) continue;
      assert_int_equal(run_kernel(kernel, &call), FLOW_INVALID_ARGUMENT);
      assert_non_null(strstr(flow_last_error(), "of an empty axis"));
    }
    array_free(&in);
    array_free(&out);
  }
}

/* ---- parts of whole reductions -------------------------------------------------------------------------------------------------- */

static void a_large_reduction_over_rows_has_parts_that_make_up_the_whole(void **state)
{
  (void)state;
  int64_t shape[3] = { 40, 50, 700 };
  array in = array_new(FLOW_FLOAT32, CONTIGUOUS, 3, shape);
  array_fill_random(&in, 19, -5, 5);
  static const int axes[][2] = { { 0, 0 }, { 0, 1 }, { 0, 2 } };
  for (int k = 0; k < 3; k++) {
    flow_attributes attributes = { .reduce = { .count = k == 0 ? 1 : 2, .axes = { axes[k][0], axes[k][1] } } };
    expectation e = { .in = in, .mask = mask_of(&attributes, 3) };
    e.out = result_of(FLOW_FLOAT32, &in.operand, e.mask, 0);
    flow_call call = call_of(FLOW_OP_max, &attributes, &in.operand, 1, &e.out.operand);
    assert_true(flow_select_kernel(flow_cpu_device(), &call)->parts(&call, 0) > 1);
    run_everywhere(&call, check_reduced, &e);
    array_free(&e.out);
  }
  array_free(&in);
}

/* ---- argmax, argmin ---------------------------------------------------------------------------------------------------------------- */

static void check_position(const flow_call *call, void *argument)
{
  expectation *e = argument;
  const flow_operand *in = &e->in.operand, *out = &e->out.operand;
  int64_t outputs = size_of(out->rank, out->shape), inputs = size_of(in->rank, in->shape), position;
  int64_t *best = malloc(sizeof(int64_t) * (size_t)(outputs + 1));
  double *value = malloc(sizeof(double) * (size_t)(outputs + 1));
  assert_true(best && value);
  for (int64_t i = 0; i < outputs; i++) best[i] = -1;
  for (int64_t i = 0; i < inputs; i++) {   /* row-major: of equal ones the first comes first */
    int64_t o = output_of(in, e->mask, i, &position);
    double x = read_double(in->dtype, element(in, i));
    int wins = best[o] < 0 || (call->op == FLOW_OP_argmax ? x > value[o] : x < value[o]) || (isnan(x) && !isnan(value[o]));
    if (!wins) continue;
    best[o] = position;
    value[o] = x;
  }
  for (int64_t i = 0; i < outputs; i++) assert_int_equal(read_int(FLOW_INT64, element(out, i)), best[i] + call->attributes->reduce.base);
  assert_guards(&e->out);
  memset(e->out.block + GUARD, GUARD_BYTE, e->out.bytes);
  free(best);
  free(value);
}

static void positions_are_those_of_the_first_best(void **state)
{
  (void)state;
  for (int op = FLOW_OP_argmax; op <= FLOW_OP_argmin; op++)
    for (int dtype = 0; dtype < FLOW_DTYPE_COUNT; dtype++)
      for (int s = 0; s < SHAPE_COUNT; s++)
        for (int axis = -1; axis < shapes[s].rank; axis++)   /* -1: flattened */
          for (int layout = 0; layout < LAYOUT_COUNT; layout++) {
            flow_attributes attributes = { .reduce = { .count = axis >= 0, .axes = { axis }, .keepdims = s % 2, .base = s % 3 } };
            expectation e = { .mask = mask_of(&attributes, shapes[s].rank) };
            e.in = array_new(dtype, (layout_kind)layout, shapes[s].rank, shapes[s].shape);
            e.out = result_of(FLOW_INT64, &e.in.operand, e.mask, attributes.reduce.keepdims);
            array_fill_random(&e.in, 23, -4, 4);
            int64_t n = size_of(shapes[s].rank, shapes[s].shape);
            for (int64_t i = 0; i < n && flow_dtype_is_float(dtype); i++) {   /* ties, and a few NaNs */
              void *place = element(&e.in.operand, i);
              write_double(dtype, place, (s + i) % 29 == 5 ? NAN : floor(read_double(dtype, place)));
            }
            flow_call call = call_of(op, &attributes, &e.in.operand, 1, &e.out.operand);
            if (!is_empty(&e.in, &e.out)) run_everywhere(&call, check_position, &e);
            array_free(&e.in);
            array_free(&e.out);
          }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_reduction_matches_its_reference),
    cmocka_unit_test(a_sum_over_rows_does_not_depend_on_chunks),
    cmocka_unit_test(a_sum_over_all_rows_has_the_bits_of_its_slots),
    cmocka_unit_test(a_kept_first_axis_does_not_change_results),
    cmocka_unit_test(a_long_sum_of_floats_keeps_its_digits),
    cmocka_unit_test(a_nan_wins_wherever_it_stands),
    cmocka_unit_test(there_is_no_largest_of_nothing),
    cmocka_unit_test(a_large_reduction_over_rows_has_parts_that_make_up_the_whole),
    cmocka_unit_test(positions_are_those_of_the_first_best),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
