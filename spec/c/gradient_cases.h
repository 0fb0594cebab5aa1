/* gradient_cases.h: calls of every op that has a gradient rule, for test_gradients.c. */
#ifndef FLOW_SPEC_GRADIENT_CASES_H
#define FLOW_SPEC_GRADIENT_CASES_H

#include "signatures.h"

#define D(...) SHAPED(FLOW_FLOAT64, __VA_ARGS__)

enum { MOST_INPUTS = 5 };

typedef enum second { SMOOTH, UNSUPPORTED } second;

typedef struct gradient_case {
  int             op, count;
  flow_signature  inputs[MOST_INPUTS];
  flow_attributes attributes;
  double          low, high;      /* of float values; 0, 0: -1 to 1 */
  second          second;
  int             rows;           /* mask: inputs whose axis 0 is the batch; 0: not traced */
  int             row_dims;       /* attributes.shape or slice.dims have the batch first, too */
} gradient_case;

#define REDUCE(...) { .reduce = { .count = sizeof((int[]){ __VA_ARGS__ }) / sizeof(int), .axes = { __VA_ARGS__ } } }
#define KEEP(...) { .reduce = { .count = sizeof((int[]){ __VA_ARGS__ }) / sizeof(int), .keepdims = 1, .axes = { __VA_ARGS__ } } }
#define CONVOLVE(...) { .convolution = { .stride = { 1, 1 }, .dilation = { 1, 1 }, __VA_ARGS__ } }

static const gradient_case cases[] = {
  { FLOW_OP_neg, 1, { D(3, 2) }, .rows = 1 },
  { FLOW_OP_abs, 1, { D(3, 2) }, .rows = 1 },
  { FLOW_OP_square, 1, { D(3, 2) }, .rows = 1 },
  { FLOW_OP_relu, 1, { D(3, 4) }, .rows = 1 },
  { FLOW_OP_exp, 1, { D(3, 2) }, .rows = 1 },
  { FLOW_OP_expm1, 1, { D(3, 2) }, .rows = 1 },
  { FLOW_OP_log, 1, { D(3, 2) }, .low = 0.5, .high = 2, .rows = 1 },
  { FLOW_OP_log1p, 1, { D(3, 2) }, .low = -0.5, .high = 2, .rows = 1 },
  { FLOW_OP_sqrt, 1, { D(3, 2) }, .low = 0.5, .high = 2, .rows = 1 },
  { FLOW_OP_rsqrt, 1, { D(3, 2) }, .low = 0.5, .high = 2, .rows = 1 },
  { FLOW_OP_reciprocal, 1, { D(3, 2) }, .low = -2, .high = -0.5, .rows = 1 },
  { FLOW_OP_sin, 1, { D(3, 2) }, .rows = 1 },
  { FLOW_OP_cos, 1, { D(3, 2) }, .rows = 1 },
  { FLOW_OP_tan, 1, { D(3, 2) }, .low = -1, .high = 1, .rows = 1 },
  { FLOW_OP_arctan, 1, { D(3, 2) }, .low = -3, .high = 3, .rows = 1 },
  { FLOW_OP_tanh, 1, { D(3, 2) }, .rows = 1 },
  { FLOW_OP_sigmoid, 1, { D(3, 2) }, .low = -3, .high = 3, .rows = 1 },
  { FLOW_OP_erf, 1, { D(3, 2) }, .rows = 1 },
  { FLOW_OP_erfc, 1, { D(3, 2) }, .rows = 1 },
  { FLOW_OP_softplus, 1, { D(3, 2) }, .low = -3, .high = 3, .rows = 1 },
  { FLOW_OP_cast, 1, { D(3, 2) }, { .cast = { FLOW_FLOAT64 } }, .rows = 1 },
  { FLOW_OP_copy, 1, { D(3, 2) }, .rows = 1 },
  { FLOW_OP_dropout, 1, { D(3, 4) }, { .dropout = { .rate = 0.5, .seed = 7, .stream = 1 } }, .rows = 0 },

  { FLOW_OP_add, 2, { D(3, 2), D(3, 2) }, .rows = 3 },
  { FLOW_OP_add, 2, { D(2), D(3, 2) }, .rows = 2 },
  { FLOW_OP_sub, 2, { D(3, 2), D(3, 1) }, .rows = 3 },
  { FLOW_OP_sub, 2, { SCALAR(FLOW_FLOAT64), D(3, 2) }, .rows = 2 },
  { FLOW_OP_mul, 2, { D(3, 1, 2), D(4, 1) }, .rows = 1 },
  { FLOW_OP_mul, 2, { D(1, 2), D(3, 2) }, .rows = 2 },
  { FLOW_OP_div, 2, { D(3, 2), D(2) }, .low = 0.5, .high = 2, .rows = 1 },
  { FLOW_OP_divide_no_nan, 2, { D(2), D(3, 2) }, .low = 0.5, .high = 2, .rows = 2 },
  { FLOW_OP_pow, 2, { D(3, 2), D(2) }, .low = 0.5, .high = 2, .rows = 1 },
  { FLOW_OP_mod, 2, { D(3, 2), D(2) }, .low = 0.5, .high = 2, .rows = 1 },
  { FLOW_OP_maximum, 2, { D(3, 2), D(2) }, .rows = 1 },
  { FLOW_OP_minimum, 2, { D(3, 2), D(3, 1) }, .rows = 3 },
  { FLOW_OP_relu_gradient, 2, { D(3, 2), D(3, 2) }, .rows = 3 },
  { FLOW_OP_where, 3, { B(3, 2), D(3, 2), D(2) }, .rows = 3 },
  { FLOW_OP_where, 3, { B(3, 1), D(2), SCALAR(FLOW_FLOAT64) }, .rows = 1 },
  { FLOW_OP_broadcast_to, 1, { D(2) }, TO(3, 2), .rows = 0 },
  { FLOW_OP_broadcast_to, 1, { D(3, 1) }, TO(3, 4), .rows = 1, .row_dims = 1 },

  { FLOW_OP_sum, 1, { D(3, 2) }, .rows = 1 },
  { FLOW_OP_sum, 1, { D(3, 2, 4) }, REDUCE(0, 2), .rows = 1 },
  { FLOW_OP_sum, 1, { D(3, 2, 4) }, KEEP(-2), .rows = 1 },
  { FLOW_OP_prod, 1, { D(3, 2, 2) }, REDUCE(1), .rows = 1 },
  { FLOW_OP_logsumexp, 1, { D(3, 2, 4) }, REDUCE(0, 2), .rows = 1 },
  { FLOW_OP_max, 1, { D(3, 4) }, REDUCE(1), .rows = 1 },
  { FLOW_OP_max, 1, { D(3, 4) }, .rows = 1 },
  { FLOW_OP_min, 1, { D(3, 4) }, KEEP(0), .rows = 1 },

  { FLOW_OP_reshape, 1, { D(3, 4) }, TO(2, 6), .rows = 0 },
  { FLOW_OP_reshape, 1, { D(3, 4, 2) }, TO(3, 8), .rows = 1, .row_dims = 1 },
  { FLOW_OP_transpose, 1, { D(3, 4, 2) }, { .transpose = { 3, { 2, 0, 1 } } }, .rows = 1 },
  { FLOW_OP_transpose, 1, { D(3, 4, 2) }, { .transpose = { 3, { 0, 2, 1 } } }, .rows = 1 },
  { FLOW_OP_concat, 3, { D(3, 2), D(3, 1), D(3, 2) }, { .axis = { -1 } }, .rows = 7 },
  { FLOW_OP_concat, 2, { D(3, 2), D(1, 2) }, { .axis = { 0 } }, .rows = 0 },
  { FLOW_OP_slice, 1, { D(7, 3) }, { .slice = { .rank = 2, .begin = { 1, 0 }, .end = { 6, END }, .step = { 2, 1 } } }, .rows = 0 },
  { FLOW_OP_slice, 1, { D(3, 7) }, { .slice = { .rank = 2, .begin = { 0, 1 }, .end = { END, 6 }, .step = { 1, 2 } } }, .rows = 1 },
  { FLOW_OP_slice_gradient,
    1,
    { D(3, 3) },
    { .slice = { .rank = 2, .begin = { 0, 1 }, .end = { END, 6 }, .step = { 1, 2 }, .dims = { 3, 7 } } },
    .rows = 0 },
  { FLOW_OP_pack, 3, { D(3, 2), SCALAR(FLOW_FLOAT64), D(2) }, .rows = 0 },

  { FLOW_OP_all_reduce, 1, { D(3, 2) }, .rows = 1 },
  { FLOW_OP_matmul, 2, { D(3, 2), D(2, 4) }, .rows = 1 },
  { FLOW_OP_matmul, 2, { D(3, 2), D(3, 4) }, { .matmul = { .transpose_a = 1 } }, .rows = 3 },
  { FLOW_OP_matmul, 2, { D(3, 2), D(4, 2) }, { .matmul = { .transpose_b = 1 } }, .rows = 1 },
  { FLOW_OP_matmul, 2, { D(2, 3), D(4, 2) }, { .matmul = { .transpose_a = 1, .transpose_b = 1 } }, .rows = 0 },
  { FLOW_OP_matmul, 2, { D(3), D(3) }, .rows = 0 },
  { FLOW_OP_matmul, 2, { D(3), D(3, 2) }, .rows = 0 },
  { FLOW_OP_matmul, 2, { D(2, 3), D(3) }, .rows = 1 },
  { FLOW_OP_matmul, 2, { D(3), D(2, 3, 4) }, .rows = 2 },
  { FLOW_OP_matmul, 2, { D(2, 4, 3), D(3) }, .rows = 1 },
  { FLOW_OP_matmul, 2, { D(2, 4, 3), D(3, 2) }, .rows = 1 },
  { FLOW_OP_matmul, 2, { D(2, 4, 3), D(2, 3) }, { .matmul = { .transpose_b = 1 } }, .rows = 1 },
  { FLOW_OP_matmul, 2, { D(2, 4, 3), D(2, 3, 2) }, .rows = 3 },
  { FLOW_OP_matmul, 2, { D(2, 1, 4, 3), D(3, 3, 2) }, .rows = 1 },
  { FLOW_OP_matmul, 2, { D(2, 3), D(2, 3, 4) }, .rows = 2 },
  { FLOW_OP_matmul, 2, { D(2, 3, 4), D(3, 2) }, { .matmul = { .transpose_a = 1 } }, .rows = 1 },
  { FLOW_OP_dense, 3, { D(3, 2), D(2, 4), D(4) }, .rows = 1 },
  { FLOW_OP_dense, 3, { D(3, 5, 2), D(2, 4), D(4) }, { .matmul = { .activation = FLOW_RELU } }, .rows = 1 },
  { FLOW_OP_dense, 3, { D(2), D(2, 4), D(4) }, .rows = 0 },

  { FLOW_OP_convolution,
    3,
    { D(2, 5, 4, 2), D(3, 2, 2, 3), D(3) },
    CONVOLVE(.groups = 1, .has_bias = 1, .padding = { 1, 0, 0, 1 }),
    .rows = 1 },
  { FLOW_OP_convolution,
    2,
    { D(2, 5, 6, 4), D(2, 2, 2, 4) },
    { .convolution = { .stride = { 2, 1 }, .dilation = { 1, 2 }, .groups = 2, .activation = FLOW_RELU } },
    .rows = 1 },
  { FLOW_OP_convolution,
    3,
    { D(2, 6, 6, 1), D(3, 3, 1, 2), D(2) },
    CONVOLVE(.groups = 1, .has_bias = 1, .activation = FLOW_RELU, .pool = { 2, 2 }, .pool_stride = { 2, 2 }),
    .second = UNSUPPORTED,
    .rows = 1 },
  { FLOW_OP_max_pool, 1, { D(2, 5, 4, 2) }, { .pool = { { 3, 2 }, { 2, 2 }, { 1, 0, 0, 1 } } }, .second = UNSUPPORTED, .rows = 1 },
  { FLOW_OP_resize, 1, { D(2, 5, 4, 2) }, { .resize = { .size = { 3, 7 }, .interpolation = FLOW_BILINEAR } }, .rows = 1 },
  { FLOW_OP_resize, 1, { D(2, 5, 4, 2) }, { .resize = { .size = { 8, 3 }, .interpolation = FLOW_NEAREST } }, .rows = 1 },
  { FLOW_OP_resize_gradient,
    1,
    { D(2, 3, 7, 2) },
    { .resize = { .size = { 3, 7 }, .input_size = { 5, 4 }, .interpolation = FLOW_BICUBIC } },
    .rows = 1 },
  { FLOW_OP_average_pool, 1, { D(2, 5, 4, 2) }, { .pool = { { 3, 2 }, { 2, 2 }, { 1, 0, 0, 1 } } }, .rows = 1 },
  { FLOW_OP_average_pool_gradient,
    1,
    { D(2, 2, 2, 2) },
    { .pool = { { 3, 2 }, { 2, 2 }, { 1, 0, 0, 1 }, .input_size = { 5, 4 } } },
    .rows = 1 },

  { FLOW_OP_batch_norm, 3, { D(4, 3, 2), D(2), D(2) }, { .normalization = { .epsilon = 1e-3 } }, .second = UNSUPPORTED, .rows = 1 },
  { FLOW_OP_normalize, 1, { D(3, 4) }, { .normalization = { .epsilon = 1e-3, .axis = -1 } }, .rows = 1 },
  { FLOW_OP_normalize, 1, { D(3, 2, 4) }, { .normalization = { .epsilon = 0.1, .axis = 1 } }, .rows = 1 },
  { FLOW_OP_normalize, 1, { D(3, 4) }, { .normalization = { .epsilon = 1e-3, .axis = -1, .uncentered = 1 } }, .rows = 1 },
  { FLOW_OP_normalize, 1, { D(3, 4) }, { .normalization = { .epsilon = 1e-3, .axis = 0 } }, .rows = 0 },
  { FLOW_OP_normalize_gradient, 3, { D(3, 4), D(3, 4), D(3, 1) }, { .normalization = { .axis = -1 } }, .rows = 7 },
  { FLOW_OP_normalize_gradient, 3, { D(3, 4), D(3, 4), D(3, 1) }, { .normalization = { .axis = -1, .uncentered = 1 } }, .rows = 7 },
  { FLOW_OP_softmax, 1, { D(3, 4) }, { .axis = { -1 } }, .rows = 1 },
  { FLOW_OP_softmax, 1, { D(3, 4) }, { .axis = { 0 } }, .rows = 0 },
  { FLOW_OP_log_softmax, 1, { D(3, 4) }, { .axis = { 1 } }, .rows = 1 },
  { FLOW_OP_softmax_gradient, 2, { D(3, 4), D(3, 4) }, { .axis = { -1 } }, .rows = 3 },
  { FLOW_OP_sparse_cross_entropy, 2, { D(3, 4), I32(3) }, .rows = 3 },
  { FLOW_OP_sparse_cross_entropy_gradient, 3, { D(3), D(3, 4), I64(3) }, .rows = 7 },
  { FLOW_OP_simple_rnn, 3, { D(3, 4, 2), D(2, 2), D(3, 2) }, .second = UNSUPPORTED, .rows = 5 },
  { FLOW_OP_simple_rnn,
    4,
    { D(3, 4, 2), D(2, 2), D(3, 2), B(3, 4) },
    { .recurrent = { .reverse = 1 } },
    .second = UNSUPPORTED,
    .rows = 13 },
  { FLOW_OP_lstm, 4, { D(3, 4, 8), D(2, 8), D(3, 2), D(3, 2) }, { .recurrent = { .history = 1 } }, .second = UNSUPPORTED, .rows = 13 },
  { FLOW_OP_lstm,
    5,
    { D(3, 4, 8), D(2, 8), D(3, 2), D(3, 2), B(3, 4) },
    { .recurrent = { .reverse = 1 } },
    .second = UNSUPPORTED,
    .rows = 29 },
  { FLOW_OP_gru, 4, { D(3, 4, 6), D(2, 6), D(3, 2), D(6) }, { .recurrent = { .reset_after = 1 } }, .second = UNSUPPORTED, .rows = 5 },
  { FLOW_OP_gru,
    5,
    { D(3, 4, 6), D(2, 6), D(3, 2), D(6), B(3, 4) },
    { .recurrent = { .reset_after = 1, .history = 1, .reverse = 1 } },
    .second = UNSUPPORTED,
    .rows = 21 },
  { FLOW_OP_gru, 5, { D(3, 4, 6), D(2, 6), D(3, 2), D(6), B(3, 4) }, { .recurrent = { .history = 1 } }, .second = UNSUPPORTED, .rows = 21 },
  { FLOW_OP_gru, 4, { D(3, 1, 6), D(2, 6), D(3, 2), D(6) }, { .recurrent = { .reverse = 1 } }, .second = UNSUPPORTED, .rows = 5 },

  { FLOW_OP_cumsum, 1, { D(3, 4) }, { .along = { .axis = -1 } }, .rows = 1 },
  { FLOW_OP_cumsum, 1, { D(3, 4, 2) }, { .along = { .axis = 1, .reverse = 1, .exclusive = 1 } }, .rows = 1 },
  { FLOW_OP_cumsum, 1, { D(3, 4) }, { .along = { .axis = 0, .exclusive = 1 } }, .rows = 0 },
  { FLOW_OP_take_along, 2, { D(3, 4), I32(3, 3) }, { .along = { .axis = -1 } }, .rows = 3 },
  { FLOW_OP_take_along, 2, { D(4, 3), I64(2, 3) }, { .along = { .axis = 0 } }, .rows = 0 },
  { FLOW_OP_take_along_gradient, 2, { D(3, 2), I32(3, 2) }, { .along = { .axis = 1, .size = 4 } }, .rows = 3 },
  { FLOW_OP_gather, 2, { D(5, 2), I32(3) }, .rows = 2 },
  { FLOW_OP_gather, 2, { D(4, 2, 2), I64(3, 2) }, .rows = 2 },
  { FLOW_OP_gather_gradient, 2, { D(3, 2), I32(3) }, { .shape = { .rank = 2, .dims = { 5, 2 } } }, .rows = 3 },
};

enum { CASE_COUNT = sizeof cases / sizeof cases[0] };

#endif
