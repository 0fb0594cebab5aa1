/* test_shapes.c: shape rules give the right signature or the right sentence. In shapes -1 is the batch (rows), -k is
 * k x rows. */
#include "shape_cases.h"

/* ---- elementwise ------------------------------------------------------------------------------------------------ */

static void elementwise(void **state)
{
  (void)state;
  static const shape_case cases[] = {
    { FLOW_OP_neg, 1, { F(2, 3) }, .outputs = { F(2, 3) } },
    { FLOW_OP_relu, 1, { F(-1, 3) }, .outputs = { F(-1, 3) } },
    { FLOW_OP_exp, 1, { H(0) }, .outputs = { H(0) } },
    { FLOW_OP_exp, 1, { I32(2) }, .error = "the input is int32, expected a float" },
    { FLOW_OP_is_finite, 1, { F(-2, 3) }, .outputs = { B(-2, 3) } },
    { FLOW_OP_cast, 1, { F(-1) }, { .cast = { FLOW_INT64 } }, .outputs = { I64(-1) } },
    { FLOW_OP_cast, 1, { F(1) }, { .cast = { FLOW_DTYPE_COUNT } }, .error = "dtype number 9 is unknown" },
    { FLOW_OP_cast, 1, { F(1) }, { .cast = { -1 } }, .error = "dtype number -1 is unknown" },
    { FLOW_OP_add, 2, { F(2, 3), F(3) }, .outputs = { F(2, 3) } },
    { FLOW_OP_add, 2, { F(2, 1), F(1, 3) }, .outputs = { F(2, 3) } },
    { FLOW_OP_add, 2, { SCALAR(FLOW_FLOAT32), SCALAR(FLOW_FLOAT32) }, .outputs = { SCALAR(FLOW_FLOAT32) } },
    { FLOW_OP_add, 2, { F(0, 3), F(1, 3) }, .outputs = { F(0, 3) } },
    { FLOW_OP_add, 2, { F(-1, 3), F(-1, 1) }, .outputs = { F(-1, 3) } },
    { FLOW_OP_add, 2, { F(-4, 3), F(1, 3) }, .outputs = { F(-4, 3) } },
    { FLOW_OP_add, 2, { F(-1, 1), F(1, -1) }, .outputs = { F(-1, -1) } },
    { FLOW_OP_add, 2, { F(2, 3), F(2) }, .error = "shapes {2, 3} and {2} do not broadcast" },
    { FLOW_OP_add, 2, { F(0), F(2) }, .error = "shapes {0} and {2} do not broadcast" },
    { FLOW_OP_add, 2, { F(-1, 3), F(5, 3) }, .error = "number of rows is not known while tracing" },
    { FLOW_OP_add, 2, { F(-1, 3), F(-2, 3) }, .error = "do not broadcast" },
    { FLOW_OP_add, 2, { F(3), H(3) }, .error = "is float16, expected float32" },
    { FLOW_OP_add, 2, { F(INT64_C(1) << 40, 1), F(1, INT64_C(1) << 40) }, .error = "more elements than can be addressed" },
    { FLOW_OP_mul, 2, { F(-(INT64_C(1) << 40), 1), F(1, INT64_C(1) << 40) }, .error = "more elements than can be addressed" },
    { FLOW_OP_div, 2, { I32(3), I32(3) }, .error = "is int32, expected a float" },
    { FLOW_OP_le, 2, { I32(-1, 4), I32(4) }, .outputs = { B(-1, 4) } },
    { FLOW_OP_where, 3, { B(-1, 1), F(4), F(1) }, .outputs = { F(-1, 4) } },
    { FLOW_OP_where, 3, { U8(3), I32(2, 1), I32(1) }, .outputs = { I32(2, 3) } },
    { FLOW_OP_where, 3, { B(3), F(3), I32(3) }, .error = "the third input is int32, expected float32" },
    { FLOW_OP_where, 3, { B(2), F(3), F(3) }, .error = "shapes {2} and {3} do not broadcast" },
    { FLOW_OP_broadcast_to, 1, { F(3) }, TO(-1, 3), .outputs = { F(-1, 3) } },
    { FLOW_OP_broadcast_to, 1, { SCALAR(FLOW_FLOAT32) }, TO(2, 2), .outputs = { F(2, 2) } },
    { FLOW_OP_broadcast_to, 1, { F(-1, 1) }, TO(-1, 5), .outputs = { F(-1, 5) } },
    { FLOW_OP_broadcast_to, 1, { F(1) }, TO(0), .outputs = { F(0) } },
    { FLOW_OP_broadcast_to, 1, { F(2, 3) }, TO(3), .error = "shape {2, 3} cannot be repeated to {3}" },
    { FLOW_OP_broadcast_to, 1, { F(-1, 3) }, TO(8, 3), .error = "cannot be repeated to {8, 3}" },
    { FLOW_OP_broadcast_to, 1, { F(3) }, TO(ANY, 3), .error = "dimension 1 of the shape cannot be inferred" },
    { FLOW_OP_broadcast_to, 1, { F(3) }, { .shape = { .rank = 9 } }, .error = "9 dimensions, 0 to 8 are possible" },
    { FLOW_OP_dropout, 1, { F(-1, 8) }, { .dropout = { .rate = 0.5 } }, .outputs = { F(-1, 8) } },
    { FLOW_OP_dropout, 1, { F(-1, 8) }, { .dropout = { .rate = 1.5 } }, .error = "the rate is 1.5, expected 0 to 1" },
    { FLOW_OP_dropout, 1, { I32(4) }, { .dropout = { .rate = 0.5 } }, .error = "expected a float" },
  };
  CHECK(cases);
}

static void made_from_attributes(void **state)
{
  (void)state;
  static const shape_case cases[] = {
    { FLOW_OP_fill, 0, .attributes = { .fill = { .rank = 2, .dtype = FLOW_INT32, .dims = { 2, 3 } } }, .outputs = { I32(2, 3) } },
    { FLOW_OP_fill, 0, .attributes = { .fill = { .rank = 0, .dtype = FLOW_BOOL } }, .outputs = { SCALAR(FLOW_BOOL) } },
    { FLOW_OP_fill, 0, .attributes = { .fill = { .rank = -1 } }, .error = "-1 dimensions" },
    { FLOW_OP_fill, 0, .attributes = { .fill = { .rank = 1, .dtype = 77 } }, .error = "dtype number 77 is unknown" },
    { FLOW_OP_random_uniform, 0, .attributes = { .random = { .rank = 1, .dims = { 5 }, .high = 1 } }, .outputs = { F(5) } },
    { FLOW_OP_random_uniform, 0, .attributes = { .random = { .rank = 1, .dtype = FLOW_INT32, .dims = { 5 }, .high = 6 } },
      .outputs = { I32(5) } },
    { FLOW_OP_random_uniform, 0, .attributes = { .random = { .rank = 1, .dtype = FLOW_INT32, .dims = { 5 } } },
      .error = "the upper end is excluded" },
    { FLOW_OP_random_uniform, 0, .attributes = { .random = { .dtype = FLOW_INT64, .high = 1e30 } }, .error = "which int64 does not hold" },
    { FLOW_OP_random_uniform, 0, .attributes = { .random = { .dtype = FLOW_INT8, .low = .2, .high = .8 } }, .error = "no whole number" },
    { FLOW_OP_random_uniform, 0, .attributes = { .random = { .low = -1e308, .high = 1e308 } }, .error = "wider than a double" },
    { FLOW_OP_random_uniform, 0, .attributes = { .random = { .rank = 1, .dims = { 5 }, .low = 2, .high = 1 } },
      .error = "lower end first" },
    { FLOW_OP_random_uniform, 0, .attributes = { .random = { .dtype = FLOW_BOOL, .high = 1 } }, .error = "the result is bool" },
    { FLOW_OP_random_normal, 0, .attributes = { .random = { .rank = 1, .dims = { -1 }, .high = 1 } }, .outputs = { F(-1) } },
    { FLOW_OP_random_normal, 0, .attributes = { .random = { .rank = 1, .dims = { 2 }, .high = -1 } }, .error = "standard deviation is -1" },
    { FLOW_OP_random_normal, 0, .attributes = { .random = { .dtype = FLOW_INT32, .high = 1 } }, .error = "expected a float" },
    { FLOW_OP_all_gather, 1, { F(1LL << 40, 0) }, { .axis = { 1 << 30 } }, .error = "more elements than can be addressed" },
    { FLOW_OP_assign, 2, { F(4, 3), F(3) }, .error = NULL },
    { FLOW_OP_assign, 2, { F(4, 3), I32(4, 1) }, .error = NULL },
    { FLOW_OP_assign, 2, { F(3), F(4, 3) }, .error = "a value of shape {4, 3} does not fit a variable of shape {3}" },
    { FLOW_OP_assign_add, 2, { F(3), F(2) }, .error = "do not broadcast" },
  };
  CHECK(cases);
}

/* ---- reductions ------------------------------------------------------------------------------------------------- */

static void reductions(void **state)
{
  (void)state;
  static const shape_case cases[] = {
    { FLOW_OP_sum, 1, { F(2, 3) }, .outputs = { SCALAR(FLOW_FLOAT32) } },
    { FLOW_OP_sum, 1, { F(-1, 3) }, .outputs = { SCALAR(FLOW_FLOAT32) } },
    { FLOW_OP_sum, 1, { F(-1, 3, 4) }, { .reduce = { .count = 1, .axes = { 0 } } }, .outputs = { F(3, 4) } },
    { FLOW_OP_sum, 1, { F(-1, 3, 4) }, { .reduce = { .count = 1, .axes = { 0 }, .keepdims = 1 } }, .outputs = { F(1, 3, 4) } },
    { FLOW_OP_sum, 1, { F(-1, 3, 4) }, { .reduce = { .count = 2, .axes = { -1, 1 } } }, .outputs = { F(-1) } },
    { FLOW_OP_sum, 1, { F(2, 3) }, { .reduce = { .keepdims = 1 } }, .outputs = { F(1, 1) } },
    { FLOW_OP_sum, 1, { F(0, 3) }, { .reduce = { .count = 1 } }, .outputs = { F(3) } },
    { FLOW_OP_sum, 1, { H(3) }, .outputs = { SCALAR(FLOW_FLOAT16) } },
    { FLOW_OP_sum, 1, { U8(3) }, .outputs = { SCALAR(FLOW_INT64) } },
    { FLOW_OP_prod, 1, { B(3) }, .outputs = { SCALAR(FLOW_INT64) } },
    { FLOW_OP_max, 1, { U8(3) }, .outputs = { SCALAR(FLOW_UINT8) } },
    { FLOW_OP_max,
      1,
      { F(-1, 0) },
      { .reduce = { .count = 1, .axes = { 1 } } },
      .error = "no elements along the reduced axes of shape {None, 0}" },
    { FLOW_OP_max, 1, { F(0, 3) }, { .reduce = { .count = 1, .axes = { 1 } } }, .outputs = { F(0) } },
    { FLOW_OP_sum,
      1,
      { F(2, 3) },
      { .reduce = { .count = 1, .axes = { 2 } } },
      .error = "axis 3 (counted from 1) does not exist in shape {2, 3}" },
    { FLOW_OP_sum, 1, { F(2, 3) }, { .reduce = { .count = 1, .axes = { -3 } } }, .error = "axis -3" },
    { FLOW_OP_sum, 1, { F(2, 3) }, { .reduce = { .count = 2, .axes = { 1, -1 } } }, .error = "axis 2 (counted from 1) is given twice" },
    { FLOW_OP_sum, 1, { F(2, 3) }, { .reduce = { .count = 9 } }, .error = "9 axes given" },
    { FLOW_OP_any, 1, { F(-1, 3) }, { .reduce = { .count = 1, .axes = { 1 } } }, .outputs = { B(-1) } },
    { FLOW_OP_argmax, 1, { F(-1, 10) }, { .reduce = { .count = 1, .axes = { -1 } } }, .outputs = { I64(-1) } },
    { FLOW_OP_argmax, 1, { F(2, 10) }, .outputs = { SCALAR(FLOW_INT64) } },
    { FLOW_OP_argmax, 1, { F(2, 3) }, { .reduce = { .count = 2, .axes = { 0, 1 } } }, .error = "2 axes given, expected one" },
    { FLOW_OP_argmin, 1, { F(0) }, .error = "no elements along" },
    { FLOW_OP_element_count, 1, { I32(-1, 3) }, { .reduce = { .count = 1 } }, .outputs = { SCALAR(FLOW_FLOAT32) } },
    { FLOW_OP_element_count, 1, { F(-1, 3) }, { .reduce = { .count = 1, .axes = { 4 } } }, .error = "axis 5" },
  };
  CHECK(cases);
}

/* ---- movement --------------------------------------------------------------------------------------------------- */

static void reshapes(void **state)
{
  (void)state;
  static const shape_case cases[] = {
    { FLOW_OP_reshape, 1, { F(2, 6) }, TO(3, 4), .outputs = { F(3, 4) } },
    { FLOW_OP_reshape, 1, { F(2, 6) }, TO(ANY, 4), .outputs = { F(3, 4) } },
    { FLOW_OP_reshape, 1, { F(1, 1) }, { .shape = { .rank = 0 } }, .outputs = { SCALAR(FLOW_FLOAT32) } },
    { FLOW_OP_reshape, 1, { SCALAR(FLOW_INT32) }, TO(1, 1), .outputs = { I32(1, 1) } },
    { FLOW_OP_reshape, 1, { F(-1, 26, 26, 32) }, TO(ANY, 21632), .outputs = { F(-1, 21632) } },
    { FLOW_OP_reshape, 1, { F(-1, 26, 26, 32) }, TO(-1, 21632), .outputs = { F(-1, 21632) } },
    { FLOW_OP_reshape, 1, { F(-1, 26, 26, 32) }, TO(-1, ANY), .outputs = { F(-1, 21632) } },
    { FLOW_OP_reshape, 1, { F(-1, 4, 8) }, TO(ANY, 8), .outputs = { F(-4, 8) } },
    { FLOW_OP_reshape, 1, { F(-4, 8) }, TO(-1, 32), .outputs = { F(-1, 32) } },
    { FLOW_OP_reshape, 1, { F(-4, 8) }, TO(ANY, 16), .outputs = { F(-2, 16) } },
    { FLOW_OP_reshape, 1, { F(-1) }, TO(1, -1), .outputs = { F(1, -1) } },
    { FLOW_OP_reshape, 1, { F(-1, -1, 2) }, TO(-1, ANY), .outputs = { F(-1, -2) } },
    { FLOW_OP_reshape, 1, { F(0, 4) }, TO(ANY, 2), .outputs = { F(0, 2) } },
    { FLOW_OP_reshape, 1, { F(-1, 0) }, TO(0, 5), .outputs = { F(0, 5) } },
    { FLOW_OP_reshape, 1, { F(2, 6) }, TO(5, 2), .error = "shape {2, 6} does not have the elements of {5, 2}" },
    { FLOW_OP_reshape, 1, { F(2, 6) }, TO(ANY, 5), .error = "shape {2, 6} does not divide into {None, 5}" },
    { FLOW_OP_reshape, 1, { F(2, 6) }, TO(ANY, ANY), .error = "dimensions 1 and 2 are both to be inferred" },
    { FLOW_OP_reshape, 1, { F(2, 0) }, TO(ANY, 0), .error = "does not divide" },
    { FLOW_OP_reshape, 1, { F(-1, 6) }, TO(12), .error = "number of rows is not known while tracing" },
    { FLOW_OP_reshape, 1, { F(-1, 3) }, TO(ANY, 2), .error = "does not divide" },
    { FLOW_OP_reshape, 1, { F(-1, -1) }, TO(ANY), .error = "does not divide" },
    { FLOW_OP_reshape, 1, { F(12) }, TO(-1, 12), .error = "only a shape with rows" },
    { FLOW_OP_reshape, 1, { F(12) }, TO(INT64_C(1) << 40, INT64_C(1) << 40), .error = "more elements than can be addressed" },
    { FLOW_OP_reshape, 1, { F(12) }, { .shape = { .rank = 9 } }, .error = "9 dimensions" },
  };
  CHECK(cases);
}

static void movement(void **state)
{
  (void)state;
  static const shape_case cases[] = {
    { FLOW_OP_transpose, 1, { F(-1, 3, 4) }, { .transpose = { 3, { 2, 0, 1 } } }, .outputs = { F(4, -1, 3) } },
    { FLOW_OP_transpose, 1, { F(2, 3) }, { .transpose = { 2, { 0, 0 } } }, .error = "expected a permutation of the 2 axes" },
    { FLOW_OP_transpose, 1, { F(2, 3) }, { .transpose = { 2, { 0, 2 } } }, .error = "expected a permutation" },
    { FLOW_OP_transpose, 1, { F(2, 3) }, { .transpose = { 1, { 0 } } }, .error = "1 axes given for shape {2, 3}" },
    { FLOW_OP_concat, 3, { F(-1, 2), F(-1, 3), F(-1, 0) }, { .axis = { -1 } }, .outputs = { F(-1, 5) } },
    { FLOW_OP_concat, 2, { F(-1, 2), F(-3, 2) }, { .axis = { 0 } }, .outputs = { F(-4, 2) } },
    { FLOW_OP_concat, 1, { I32(2) }, { .axis = { 0 } }, .outputs = { I32(2) } },
    { FLOW_OP_concat, 2, { F(-1, 2), F(3, 2) }, { .axis = { 0 } }, .error = "cannot be joined along the batch" },
    { FLOW_OP_concat,
      2,
      { F(2, 2), F(3, 3) },
      { .axis = { 0 } },
      .error = "inputs 1 and 2 have shapes {2, 2} and {3, 3}; they may differ along axis 1 only" },
    { FLOW_OP_concat, 2, { F(2, 2), F(2) }, { .axis = { 0 } }, .error = "differ along axis 1 only" },
    { FLOW_OP_concat, 2, { F(2), I32(2) }, { .axis = { 0 } }, .error = "is int32, expected float32" },
    { FLOW_OP_concat, 2, { F(2), F(2) }, { .axis = { 1 } }, .error = "axis 2" },
    { FLOW_OP_concat, 1, { SCALAR(FLOW_FLOAT32) }, .error = "scalars cannot be joined" },
    { FLOW_OP_concat, 2, { F(INT64_MAX / 8), F(INT64_MAX / 8) }, { .axis = { 0 } }, .error = "addressed" },
    { FLOW_OP_slice,
      1,
      { F(10, 5) },
      { .slice = { .rank = 2, .begin = { 2, 0 }, .end = { 9, END }, .step = { 3, 1 } } },
      .outputs = { F(3, 5) } },
    { FLOW_OP_slice,
      1,
      { F(-1, 5) },
      { .slice = { .rank = 2, .begin = { 0, 1 }, .end = { END, 3 }, .step = { 1, 1 } } },
      .outputs = { F(-1, 2) } },
    { FLOW_OP_slice, 1, { F(4) }, { .slice = { .rank = 1, .begin = { 7 }, .end = { 9 }, .step = { 1 } } }, .outputs = { F(0) } },
    { FLOW_OP_slice,
      1,
      { F(-1, 5) },
      { .slice = { .rank = 2, .end = { 4, END }, .step = { 1, 1 } } },
      .error = "the batch axis of {None, 5} cannot be cut" },
    { FLOW_OP_slice,
      1,
      { F(-1) },
      { .slice = { .rank = 1, .begin = { 1 }, .end = { END }, .step = { 1 } } },
      .error = "number of rows is not known while tracing" },
    { FLOW_OP_slice, 1, { F(-1) }, { .slice = { .rank = 1, .end = { END }, .step = { 2 } } }, .error = "cannot be cut" },
    { FLOW_OP_slice, 1, { F(4) }, { .slice = { .rank = 1, .end = { 2 } } }, .error = "step 0" },
    { FLOW_OP_slice, 1, { F(4) }, { .slice = { .rank = 1, .begin = { 3 }, .end = { -1 }, .step = { -1 } } }, .outputs = { F(4) } },
    { FLOW_OP_slice, 1, { F(7) }, { .slice = { .rank = 1, .begin = { 5 }, .end = { 0 }, .step = { -2 } } }, .outputs = { F(3) } },
    { FLOW_OP_slice, 1, { F(4) }, { .slice = { .rank = 1, .begin = { 1 }, .end = { 1 }, .step = { -1 } } }, .outputs = { F(0) } },
    { FLOW_OP_slice, 1, { F(4) }, { .slice = { .rank = 1, .begin = { 4 }, .end = { 0 }, .step = { -1 } } }, .error = "has no element 4" },
    { FLOW_OP_slice, 1, { F(4) }, { .slice = { .rank = 1, .begin = { 3 }, .end = { -2 }, .step = { -1 } } }, .error = "end -2" },
    { FLOW_OP_slice, 1, { F(4) }, { .slice = { .rank = 1, .end = { 3 }, .step = { INT64_MAX } } }, .error = "at most 2^31" },
    { FLOW_OP_slice, 1, { F(-1) }, { .slice = { .rank = 1, .begin = { 1 }, .end = { -1 }, .step = { -1 } } }, .error = "cannot be cut" },
    { FLOW_OP_slice, 1, { F(4) }, { .slice = { .rank = 1, .begin = { -1 }, .end = { 2 }, .step = { 1 } } }, .error = "begin -1" },
    { FLOW_OP_slice, 1, { F(4, 4) }, { .slice = { .rank = 1, .end = { 2 }, .step = { 1 } } }, .error = "ranges for 1 axes given" },
    { FLOW_OP_slice_gradient,
      1,
      { F(3, 5) },
      { .slice = { .rank = 2, .begin = { 2, 0 }, .end = { 9, END }, .step = { 3, 1 }, .dims = { 10, 5 } } },
      .outputs = { F(10, 5) } },
    { FLOW_OP_slice_gradient,
      1,
      { F(-1, 2) },
      { .slice = { .rank = 2, .begin = { 0, 1 }, .end = { END, 3 }, .step = { 1, 1 }, .dims = { -1, 5 } } },
      .outputs = { F(-1, 5) } },
    { FLOW_OP_slice_gradient,
      1,
      { F(4, 5) },
      { .slice = { .rank = 2, .begin = { 2, 0 }, .end = { 9, END }, .step = { 3, 1 }, .dims = { 10, 5 } } },
      .error = "the gradient has shape {4, 5}, expected {3, 5}" },
    { FLOW_OP_pack, 3, { F(2, 3), F(0), SCALAR(FLOW_FLOAT32) }, .outputs = { F(7) } },
    { FLOW_OP_pack, 2, { F(2), F(-1) }, .error = "depends on the number of rows" },
    { FLOW_OP_pack, 2, { F(2), H(1) }, .error = "is float16, expected float32" },
  };
  CHECK(cases);
}

/* ---- linear algebra --------------------------------------------------------------------------------------------- */

static void products(void **state)
{
  (void)state;
  static const flow_attributes ta = { .matmul = { .transpose_a = 1 } }, tb = { .matmul = { .transpose_b = 1 } };
  const shape_case cases[] = {
    { FLOW_OP_matmul, 2, { F(2, 3), F(3, 4) }, .outputs = { F(2, 4) } },
    { FLOW_OP_matmul, 2, { F(-1, 3), F(3, 4) }, .outputs = { F(-1, 4) } },
    { FLOW_OP_matmul, 2, { F(-1, 3), F(-1, 4) }, ta, .outputs = { F(3, 4) } },
    { FLOW_OP_matmul, 2, { F(2, 3), F(4, 3) }, tb, .outputs = { F(2, 4) } },
    { FLOW_OP_matmul, 2, { F(3), F(3) }, .outputs = { SCALAR(FLOW_FLOAT32) } },
    { FLOW_OP_matmul, 2, { F(3), F(3) }, ta, .outputs = { SCALAR(FLOW_FLOAT32) } },
    { FLOW_OP_matmul, 2, { F(3), F(3, 4) }, .outputs = { F(4) } },
    { FLOW_OP_matmul, 2, { F(2, 3), F(3) }, .outputs = { F(2) } },
    { FLOW_OP_matmul, 2, { F(3), F(5, 3, 4) }, .outputs = { F(5, 4) } },
    { FLOW_OP_matmul, 2, { F(5, 2, 3), F(3) }, .outputs = { F(5, 2) } },
    { FLOW_OP_matmul, 2, { F(-1, 7, 3), F(3, 4) }, .outputs = { F(-1, 7, 4) } },
    { FLOW_OP_matmul, 2, { F(-1, 7, 3), F(-1, 3, 4) }, .outputs = { F(-1, 7, 4) } },
    { FLOW_OP_matmul, 2, { F(6, 1, 2, 3), F(5, 3, 4) }, .outputs = { F(6, 5, 2, 4) } },
    { FLOW_OP_matmul, 2, { F(2, 0), F(0, 4) }, .outputs = { F(2, 4) } },
    { FLOW_OP_matmul, 2, { I32(2, 3), I32(3, 4) }, .outputs = { I32(2, 4) } },
    { FLOW_OP_matmul, 2, { F(2, 3), F(4, 5) }, .error = "a {2, 3} has 3 columns, b {4, 5} has 4 rows" },
    { FLOW_OP_matmul, 2, { F(2, 3), F(3, 4) }, ta, .error = "a {2, 3} transposed has 2 columns" },
    { FLOW_OP_matmul, 2, { F(6, 2, 3), F(5, 3, 4) }, .error = "do not broadcast" },
    { FLOW_OP_matmul, 2, { F(2, 3), SCALAR(FLOW_FLOAT32) }, .error = "use mul" },
    { FLOW_OP_matmul, 2, { F(2, 3), H(3, 4) }, .error = "b is float16" },
    { FLOW_OP_dense, 3, { F(-1, 3), F(3, 4), F(4) }, .outputs = { F(-1, 4) } },
    { FLOW_OP_dense, 3, { F(-1, 7, 3), F(3, 4), F(4) }, { .matmul = { .activation = FLOW_RELU } }, .outputs = { F(-1, 7, 4) } },
    { FLOW_OP_dense, 3, { F(3), F(3, 4), F(4) }, .outputs = { F(4) } },
    { FLOW_OP_dense, 3, { F(-1, 5), F(3, 4), F(4) }, .error = "x {None, 5} has 5 values in its last axis, w {3, 4} expects 3" },
    { FLOW_OP_dense, 3, { F(-1, 3), F(3, 4), F(3) }, .error = "b has shape {3}, expected {4}" },
    { FLOW_OP_dense, 3, { F(-1, 3), F(3), F(3) }, .error = "w has 1 dimension {3}, expected 2 {inputs, units}" },
    { FLOW_OP_dense, 3, { F(-1, 3), F(3, 4), F(4) }, { .matmul = { .activation = 7 } }, .error = "activation number 7" },
    { FLOW_OP_dense, 3, { SCALAR(FLOW_FLOAT32), F(3, 4), F(4) }, .error = "x is a scalar" },
  };
  CHECK(cases);
}

/* ---- convolution and pooling ------------------------------------------------------------------------------------ */

#define CONVOLVE(...) { .convolution = { .stride = { 1, 1 }, .dilation = { 1, 1 }, .groups = 1, __VA_ARGS__ } }

/* Later members override the defaults of CONVOLVE on purpose. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"

static void convolutions(void **state)
{
  (void)state;
  static const shape_case cases[] = {
    { FLOW_OP_convolution, 3, { F(-1, 28, 28, 1), F(3, 3, 1, 32), F(32) }, CONVOLVE(.has_bias = 1),
      .outputs = { F(-1, 26, 26, 32), U8(0) } },
    { FLOW_OP_convolution, 2, { F(-1, 180, 180, 3), F(3, 3, 3, 16) }, CONVOLVE(.padding = { 1, 1, 1, 1 }),
      .outputs = { F(-1, 180, 180, 16), U8(0) } },
    { FLOW_OP_convolution, 2, { F(8, 9, 10, 4), F(3, 2, 2, 6) }, CONVOLVE(.groups = 2, .stride = { 2, 3 }),
      .outputs = { F(8, 4, 3, 6), U8(0) } },
    { FLOW_OP_convolution, 2, { F(1, 9, 9, 1), F(3, 3, 1, 1) }, CONVOLVE(.dilation = { 2, 4 }), .outputs = { F(1, 5, 1, 1), U8(0) } },
    { FLOW_OP_convolution, 3, { F(-1, 180, 180, 3), F(3, 3, 3, 16), F(16) },
      CONVOLVE(.padding = { 1, 1, 1, 1 }, .has_bias = 1, .activation = FLOW_RELU, .pool = { 2, 2 }, .pool_stride = { 2, 2 }),
      .outputs = { F(-1, 90, 90, 16), U8(-1, 90, 90, 16) } },
    { FLOW_OP_convolution, 2, { F(2, 7, 7, 1), F(1, 1, 1, 1) }, CONVOLVE(.pool = { 3, 3 }, .pool_stride = { 2, 2 }),
      .outputs = { F(2, 3, 3, 1), U8(2, 3, 3, 1) } },
    { FLOW_OP_convolution, 2, { F(0, 4, 4, 1), F(4, 4, 1, 2) }, CONVOLVE(), .outputs = { F(0, 1, 1, 2), U8(0) } },
    { FLOW_OP_convolution, 2, { F(-1, 2, 9, 1), F(3, 3, 1, 1) }, CONVOLVE(),
      .error = "Computed output size would be negative: the height of the input is 2" },
    { FLOW_OP_convolution, 2, { F(-1, 9, 4, 1), F(3, 3, 1, 1) }, CONVOLVE(.dilation = { 1, 2 }),
      .error = "the width of the input is 4 (4 with padding), a window spans 5" },
    { FLOW_OP_convolution, 2, { F(-1, 3, 3, 1), F(3, 3, 1, 1) }, CONVOLVE(.pool = { 2, 2 }, .pool_stride = { 2, 2 }),
      .error = "Computed output size would be negative" },
    { FLOW_OP_convolution, 2, { F(-1, 99, 99, 1), F(1, 1, 1, 1) }, CONVOLVE(.pool = { 16, 16 }, .pool_stride = { 1, 1 }),
      .error = "covers 256 cells, at most 254" },
    { FLOW_OP_convolution, 2, { F(-1, 9, 9, 1), F(1, 1, 1, 1) }, CONVOLVE(.pool = { 2, 0 }, .pool_stride = { 1, 1 }),
      .error = "pool size is {2, 0}" },
    { FLOW_OP_convolution, 2, { F(-1, 784), F(3, 3, 1, 32) }, CONVOLVE(),
      .error = "the input has 2 dimensions {None, 784}, expected 4 {batch, height, width, channels}" },
    { FLOW_OP_convolution, 2, { F(-1, 9, 9, 3), F(3, 3, 1, 4) }, CONVOLVE(),
      .error = "has 3 channels in 1 group, the kernel {3, 3, 1, 4} expects 1 in each" },
    { FLOW_OP_convolution, 2, { F(-1, 9, 9, 3), F(3, 3, 1, 4) }, CONVOLVE(.groups = 2), .error = "2 groups must both divide" },
    { FLOW_OP_convolution, 2, { F(-1, 9, 9, 4), F(3, 3, 2, 3) }, CONVOLVE(.groups = 2), .error = "the kernel 3 filters" },
    { FLOW_OP_convolution, 2, { F(-1, 9, 9, 1), F(3, 3, 1, 1) }, { .cast = { 0 } }, .error = "stride 0 and dilation 0 of the height" },
    { FLOW_OP_convolution, 2, { F(-1, 9, 9, 1), F(3, 3, 1, 1) }, CONVOLVE(.groups = 0), .error = "0 groups" },
    { FLOW_OP_convolution, 2, { F(-1, 9, 9, 1), F(3, 3, 1, 1) }, CONVOLVE(.padding = { 0, -1, 0, 0 }), .error = "padding -1" },
    { FLOW_OP_convolution, 2, { F(-1, 9, 9, 1), F(3, 3, 1, 1) }, CONVOLVE(.has_bias = 1), .error = "a bias is the third input" },
    { FLOW_OP_convolution, 3, { F(-1, 9, 9, 1), F(3, 3, 1, 2), F(3) }, CONVOLVE(.has_bias = 1),
      .error = "the bias has shape {3}, expected {2}" },
    { FLOW_OP_convolution, 2, { F(3, -1, 9, 1), F(3, 3, 1, 1) }, CONVOLVE(), .error = "depends on the number of rows beyond axis 1" },
    { FLOW_OP_convolution, 2, { F(1, 9, 9, 1), F(0, 3, 1, 1) }, CONVOLVE(), .error = "has no height" },
    { FLOW_OP_convolution, 2, { I32(1, 9, 9, 1), I32(3, 3, 1, 1) }, CONVOLVE(), .error = "the input is int32, expected a float" },
    { FLOW_OP_convolution, 2, { F(1, INT64_MAX, 9, 1), F(1, 1, 1, 1) }, CONVOLVE(.padding = { 1, 0, 0, 0 }), .error = "overflows" },
    { FLOW_OP_convolution, 2, { F(1, 9, 9, 1), F(INT64_MAX, 1, 1, 1) }, CONVOLVE(.dilation = { 3, 1 }), .error = "overflows" },
    { FLOW_OP_convolution_gradient, 5, { F(-1, 26, 26, 32), F(-1, 28, 28, 1), F(3, 3, 1, 32), F(-1, 26, 26, 32), U8(0) },
      CONVOLVE(.input_size = { 28, 28 }), .outputs = { F(-1, 28, 28, 1), F(3, 3, 1, 32), F(32) } },
    { FLOW_OP_convolution_gradient, 5, { F(-1, 26, 26, 32), F(-1, 28, 28, 1), F(3, 3, 1, 32), F(-1, 26, 26, 32), U8(0) },
      CONVOLVE(.input_size = { 28, 27 }), .error = "input_size is {28, 27}" },
    { FLOW_OP_convolution_gradient, 5, { F(-1, 25, 26, 32), F(-1, 28, 28, 1), F(3, 3, 1, 32), F(-1, 26, 26, 32), U8(0) },
      CONVOLVE(.input_size = { 28, 28 }), .error = "the gradient has shape {None, 25, 26, 32}, expected {None, 26, 26, 32}" },
    { FLOW_OP_convolution_gradient, 5, { F(-1, 26, 26, 32), F(-1, 28, 28, 1), F(3, 3, 1, 32), F(-1, 26, 26, 32), U8(1) },
      CONVOLVE(.input_size = { 28, 28 }), .error = "the index has shape {1}, expected {0}" },
  };
  CHECK(cases);
}

#pragma GCC diagnostic pop

static void pooling(void **state)
{
  (void)state;
  static const shape_case cases[] = {
    { FLOW_OP_max_pool, 1, { F(-1, 180, 180, 16) }, { .pool = { { 2, 2 }, { 2, 2 } } },
      .outputs = { F(-1, 90, 90, 16), U8(-1, 90, 90, 16) } },
    { FLOW_OP_max_pool, 1, { I32(2, 5, 7, 3) }, { .pool = { { 3, 2 }, { 2, 1 } } }, .outputs = { I32(2, 2, 6, 3), U8(2, 2, 6, 3) } },
    { FLOW_OP_max_pool, 1, { F(2, 5, 5, 3) }, { .pool = { { 2, 2 }, { 2, 2 }, { 0, 1, 0, 1 } } },
      .outputs = { F(2, 3, 3, 3), U8(2, 3, 3, 3) } },
    { FLOW_OP_max_pool, 1, { F(2, 1, 5, 3) }, { .pool = { { 2, 2 }, { 2, 2 } } }, .error = "Computed output size would be negative" },
    { FLOW_OP_max_pool, 1, { F(2, 0, 5, 3) }, { .pool = { { 2, 2 }, { 2, 2 }, { 1, 1, 1, 1 } } }, .error = "the height of the input is 0" },
    { FLOW_OP_max_pool, 1, { F(2, 5, 5, 3) }, { .pool = { { 2, 2 }, { 2, 2 }, { 0, 2, 0, 0 } } }, .error = "less than the window's 2" },
    { FLOW_OP_max_pool, 1, { F(2, 5, 5, 3) }, { .pool = { { 2, 2 }, { 0, 2 } } }, .error = "strides {0, 2}" },
    { FLOW_OP_max_pool, 1, { F(2, 50, 50, 3) }, { .pool = { { 17, 15 }, { 1, 1 } } }, .error = "covers 255 cells" },
    { FLOW_OP_max_pool, 1, { F(50, 50, 3) }, { .pool = { { 2, 2 }, { 2, 2 } } }, .error = "has 3 dimensions {50, 50, 3}" },
    { FLOW_OP_max_pool_gradient, 2, { F(-1, 90, 90, 16), U8(-1, 90, 90, 16) },
      { .pool = { { 2, 2 }, { 2, 2 }, .input_size = { 181, 180 } } },
      .outputs = { F(-1, 181, 180, 16) } },
    { FLOW_OP_max_pool_gradient, 2, { F(-1, 90, 90, 16), U8(-1, 90, 90, 16) },
      { .pool = { { 2, 2 }, { 2, 2 }, .input_size = { 182, 180 } } },
      .error = "expected {None, 91, 90, 16}" },
    { FLOW_OP_max_pool_gradient, 2, { F(2, 2, 2, 1), F(2, 2, 2, 1) }, { .pool = { { 2, 2 }, { 2, 2 }, .input_size = { 4, 4 } } },
      .error = "the index is float32, expected uint8" },
    { FLOW_OP_average_pool, 1, { F(-1, 180, 180, 16) }, { .pool = { { 3, 2 }, { 2, 2 }, { 0, 1, 0, 0 } } },
      .outputs = { F(-1, 90, 90, 16) } },
    { FLOW_OP_average_pool, 1, { F(2, 50, 50, 3) }, { .pool = { { 17, 15 }, { 1, 1 } } }, .outputs = { F(2, 34, 36, 3) } },
    { FLOW_OP_average_pool, 1, { F(2, 5, 5, 3) }, { .pool = { { 2, 2 }, { 0, 2 } } }, .error = "strides {0, 2}" },
    { FLOW_OP_average_pool, 1, { I32(2, 5, 5, 3) }, { .pool = { { 2, 2 }, { 2, 2 } } }, .error = "the input is int32, expected a float" },
    { FLOW_OP_average_pool, 1, { F(2, 5, 5, 3) }, { .pool = { { 2, 2 }, { 2, 2 }, { 0, 0, 2, 0 } } }, .error = "less than the window's 2" },
    { FLOW_OP_average_pool_gradient, 1, { F(-1, 90, 90, 16) }, { .pool = { { 2, 2 }, { 2, 2 }, .input_size = { 181, 180 } } },
      .outputs = { F(-1, 181, 180, 16) } },
    { FLOW_OP_average_pool_gradient, 1, { F(-1, 90, 90, 16) }, { .pool = { { 2, 2 }, { 2, 2 }, .input_size = { 182, 180 } } },
      .error = "expected {None, 91, 90, 16}" },
  };
  CHECK(cases);
}

/* ---- normalization, losses, optimizers -------------------------------------------------------------------------- */

static void normalization_and_losses(void **state)
{
  (void)state;
  static const shape_case cases[] = {
    { FLOW_OP_batch_norm, 3, { F(-1, 7, 7, 3), F(3), F(3) }, .outputs = { F(-1, 7, 7, 3), F(3), F(3) } },
    { FLOW_OP_batch_norm, 3, { F(-1, 7, 7, 3), F(4), F(3) }, .error = "gamma has shape {4}, expected {3}" },
    { FLOW_OP_batch_norm, 3, { F(-1, 3), F(3), H(3) }, .error = "beta is float16" },
    { FLOW_OP_batch_norm, 3, { F(3), F(3), F(3) }, .error = "two or more dimensions" },
    { FLOW_OP_batch_norm, 3, { F(-1, 3), F(3), F(3) }, { .normalization = { .epsilon = -1 } }, .error = "epsilon is -1" },
    { FLOW_OP_batch_norm_gradient, 5, { F(-1, 3), F(-1, 3), F(3), F(3), F(3) }, .outputs = { F(-1, 3), F(3), F(3) } },
    { FLOW_OP_batch_norm_gradient,
      5,
      { F(1, 3), F(-1, 3), F(3), F(3), F(3) },
      .error = "the gradient has shape {1, 3}, expected {None, 3}" },
    { FLOW_OP_normalize, 1, { F(-1, 3, 5) }, { .normalization = { .axis = -1 } }, .outputs = { F(-1, 3, 5), F(-1, 3, 1) } },
    { FLOW_OP_normalize, 1, { F(-1, 3, 5) }, { .normalization = { .axis = 1 } }, .outputs = { F(-1, 3, 5), F(-1, 1, 1) } },
    { FLOW_OP_normalize, 1, { F(-1, 3) }, { .normalization = { .axis = 0 } }, .error = "{None, 3}" },
    { FLOW_OP_normalize_gradient, 3, { F(-1, 5), F(-1, 5), F(-1, 1) }, { .normalization = { .axis = 1 } }, .outputs = { F(-1, 5) } },
    { FLOW_OP_layer_norm, 3, { F(-1, 3, 5), F(5), F(1, 1, 5) }, { .normalization = { .axis = -1 } }, .outputs = { F(-1, 3, 5) } },
    { FLOW_OP_layer_norm, 2, { F(-1, 3, 5), F(3, 5) }, { .normalization = { .axis = -2 } }, .outputs = { F(-1, 3, 5) } },
    { FLOW_OP_softmax, 1, { F(-1, 10) }, { .axis = { -1 } }, .outputs = { F(-1, 10) } },
    { FLOW_OP_softmax, 1, { SCALAR(FLOW_FLOAT32) }, { .axis = { -1 } }, .error = "axis -1" },
    { FLOW_OP_log_softmax, 1, { I32(3) }, { .axis = { 0 } }, .error = "expected a float" },
    { FLOW_OP_softmax_gradient, 2, { F(-1, 10), F(-1, 10) }, .outputs = { F(-1, 10) } },
    { FLOW_OP_softmax_gradient, 2, { F(-1, 10), F(1, 10) }, .error = "has shape {1, 10}, expected {None, 10}" },
    { FLOW_OP_sparse_cross_entropy, 2, { F(-1, 10), I64(-1) }, .outputs = { F(-1) } },
    { FLOW_OP_sparse_cross_entropy, 2, { F(10), SCALAR(FLOW_UINT8) }, .outputs = { SCALAR(FLOW_FLOAT32) } },
    { FLOW_OP_sparse_cross_entropy, 2, { F(-1, 10), F(-1) }, .error = "the labels are float32, expected integers" },
    { FLOW_OP_sparse_cross_entropy, 2, { F(-1, 10), I32(-1, 1) }, .error = "the labels has shape {None, 1}, expected {None}" },
    { FLOW_OP_sparse_cross_entropy, 2, { F(4, 0), I32(4) }, .error = "with one class or more" },
    { FLOW_OP_sparse_cross_entropy_gradient, 3, { F(-1), F(-1, 10), I32(-1) }, .outputs = { F(-1, 10) } },
    { FLOW_OP_sparse_cross_entropy_gradient,
      3,
      { SCALAR(FLOW_FLOAT32), F(-1, 10), I32(-1) },
      .error = "the gradient has shape {}, expected {None}" },
  };
  CHECK(cases);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(elementwise),
    cmocka_unit_test(made_from_attributes),
    cmocka_unit_test(reductions),
    cmocka_unit_test(reshapes),
    cmocka_unit_test(movement),
    cmocka_unit_test(products),
    cmocka_unit_test(convolutions),
    cmocka_unit_test(pooling),
    cmocka_unit_test(normalization_and_losses),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
