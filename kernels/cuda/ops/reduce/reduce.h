/* reduce.h: kernels of reductions over any axes of any strided array, and of argmax and argmin.
 *
 * A block works on some outputs with `lanes` threads each: threads that are neighbours take neighbouring outputs where those are packed in
 * memory ({n, h, w, c} to {c}), else neighbouring elements of one output ({n, c} to {n}), so that memory is read in lines. A thread takes
 * every lanes-th element of its output; then the lanes are combined in a fixed order. A long reduction with few outputs is cut into slices
 * whose results, 8 bytes each, a second launch reduces. Lanes and slices follow from shapes, so results do, too.
 *
 * Floats are combined in float for up to REDUCE_RUN elements and then in double: about as fast as float sums, since memory is what they
 * wait for. Four equal numbers add up exactly, and the error of a sum stays below 2e-7 of the sum of magnitudes however long it is. */
#ifndef FLOW_CUDA_OPS_REDUCE_H
#define FLOW_CUDA_OPS_REDUCE_H

#include "cuda/device/eight.h"
#include "cuda/device/view.h"

typedef struct reduce_arguments {
  view    x;                              /* element 0 of an output's elements, by output */
  view    along;                          /* from there to the others, by position along the reduced axes */
  view    y;
  void   *partials;                       /* {slices, outputs}, 8 bytes each; NULL: results go to y */
  int64_t outputs, groups, length, slice; /* groups: of outputs, a block each; slice: elements of a slice */
  int64_t base;                           /* argmax: added to positions */
  int32_t lanes, outputs_first, smallest;
  int32_t grouped;                        /* argmax: an output's elements are groups of eight at multiples of 16 bytes; lanes take groups */
} reduce_arguments;

/* The first lanes take what the others have in two steps. */
enum { REDUCE_FIRST = 16, REDUCE_RUN = 4 };

/* What a thread works on: elements [begin, end) of an output, every lanes-th from begin + lane on. Nothing where there is no such
 * output. */
typedef struct reduce_place { int64_t output, begin, end; int lane, lanes, columns, column; } reduce_place;

BODY reduce_place reduce_place_of(int thread, int64_t block, const reduce_arguments *p)
{
  reduce_place at;
  int64_t slice = block / p->groups;
  at.lanes = p->lanes;
  at.columns = BLOCK_THREADS / p->lanes;
  at.lane = p->outputs_first ? thread / at.columns : thread % p->lanes;
  at.column = p->outputs_first ? thread % at.columns : thread / p->lanes;
  at.output = (block - slice * p->groups) * at.columns + at.column;
  at.begin = slice * p->slice;
  at.end = at.begin + p->slice < p->length ? at.begin + p->slice : p->length;
  if (at.output >= p->outputs) at.end = at.begin;
  return at;
}

/* Combines lanes `lane`, lane + step, ... up to `lanes` of the block's values. */
#define REDUCE_LANES(A, combine)                                                                     \
  for (int l = at.lane + step; l < lanes; l += step) {                                               \
    A other = values[l * at.columns + at.column];                                                    \
    value = (A)(combine(value, other));                                                              \
  }

/* T: what load gives and up to REDUCE_RUN elements are combined in; A: what those are combined in. `together` elements are on their way at
 * a time. */
#define REDUCE_BODY(name, together, T, A, load, store, combine, identity)                            \
  typedef reduce_arguments name##_arguments;                                                         \
  BODY A name##_run(const reduce_arguments *p, const reduce_place *at)                               \
  {                                                                                                  \
    A total = (A)(identity);                                                                         \
    int64_t base = at->end > at->begin ? view_offset(&p->x, at->output) : 0;                         \
    for (int64_t r = at->begin + at->lane; r < at->end;) {                                           \
      T part = (T)(identity);                                                                        \
      for (int k = 0; k < REDUCE_RUN && r < at->end; k += together) {                                 \
        T element[together];                                                                         \
        UNROLL for (int j = 0; j < together; j++, r += at->lanes)                                    \
          element[j] = r < at->end ? load(p->x.dtype, p->x.data, base + view_offset(&p->along, r)) : (T)(identity); \
        UNROLL for (int j = 0; j < together; j++) part = (T)(combine(part, element[j]));             \
      }                                                                                              \
      A wide = (A)part;                                                                              \
      total = (A)(combine(total, wide));                                                             \
    }                                                                                                \
    return total;                                                                                    \
  }                                                                                                  \
  BODY void name(int phase, int thread, int64_t block, void *shared, const reduce_arguments *p)      \
  {                                                                                                  \
    reduce_place at = reduce_place_of(thread, block, p);                                             \
    A *values = (A *)shared;                                                                         \
    if (phase == 0) {                                                                                \
      values[at.lane * at.columns + at.column] = name##_run(p, &at);                                 \
      return;                                                                                        \
    }                                                                                                \
    int step = phase == 1 ? REDUCE_FIRST : 1, lanes = phase == 1 || at.lanes < REDUCE_FIRST ? at.lanes : REDUCE_FIRST; \
    if (at.lane >= step || at.output >= p->outputs) return;                                          \
    A value = values[at.lane * at.columns + at.column];                                              \
    REDUCE_LANES(A, combine)                                                                         \
    if (phase == 1) values[at.lane * at.columns + at.column] = value;                                \
    else if (p->partials) ((A *)p->partials)[block / p->groups * p->outputs + at.output] = value;    \
    else store(p->y.dtype, p->y.data, view_offset(&p->y, at.output), value);                         \
  }

#define COMBINE_SUM(a, b)  ((a) + (b))
#define COMBINE_PROD(a, b) ((a) * (b))
#define COMBINE_MAX(a, b)  ((b) > (a) || (b) != (b) ? (b) : (a))      /* a NaN wins */
#define COMBINE_MIN(a, b)  ((b) < (a) || (b) != (b) ? (b) : (a))
#define WRAPPING_SUM(a, b)  ((uint64_t)(a) + (uint64_t)(b))           /* integers wrap, which unsigned ones may do */
#define WRAPPING_PROD(a, b) ((uint64_t)(a) * (uint64_t)(b))
#define COMBINE_LOGSUMEXP(a, b) log_of_sum(a, b)
#define COMBINE_ANY(a, b)  ((a) | (b))
#define COMBINE_ALL(a, b)  ((a) & (b))

/* log(e^a + e^b) without overflow; equal ones apart, as infinities have no difference. NaN passes through. */
BODY double log_of_sum(double a, double b)
{
  if (a == b) return a + 0.69314718055994530942;
  return (a > b ? a : b) + log1p(exp(-fabs(a - b)));
}

BODY float load_float32(int dtype, const void *from, int64_t i)
{
  (void)dtype;
  return ((const float *)from)[i];
}

BODY double load_float64(int dtype, const void *from, int64_t i)
{
  (void)dtype;
  return ((const double *)from)[i];
}

BODY void store_truth(int dtype, void *to, int64_t i, int64_t value) { store_condition(dtype, to, i, value != 0); }

#define REDUCE_FLOATS(op, T, COMBINE, identity)                                                      \
  REDUCE_BODY(op##_float32, 4, T, double, load_float32, store_double, COMBINE, identity)             \
  REDUCE_BODY(op##_float, 1, T, double, load_float, store_double, COMBINE, identity)                 \
  REDUCE_BODY(op##_double, 2, double, double, load_float64, store_double, COMBINE, identity)
#define REDUCE_NUMBERS(op, T, COMBINE, WRAPPING, identity, integer_identity)                         \
  REDUCE_FLOATS(op, T, COMBINE, identity)                                                            \
  REDUCE_BODY(op##_integer, 1, int64_t, int64_t, load_integer, store_integer, WRAPPING, integer_identity)
REDUCE_NUMBERS(reduce_sum, float, COMBINE_SUM, WRAPPING_SUM, 0, 0)
REDUCE_NUMBERS(reduce_prod, double, COMBINE_PROD, WRAPPING_PROD, 1, 1)      /* rounded to float, factors near 1 would all err to one side */
REDUCE_NUMBERS(reduce_max, float, COMBINE_MAX, COMBINE_MAX, -INFINITY, INT64_MIN)
REDUCE_NUMBERS(reduce_min, float, COMBINE_MIN, COMBINE_MIN, INFINITY, INT64_MAX)
REDUCE_FLOATS(reduce_logsumexp, double, COMBINE_LOGSUMEXP, -INFINITY)
REDUCE_BODY(reduce_any, 1, int, int64_t, load_condition, store_truth, COMBINE_ANY, 0)
REDUCE_BODY(reduce_all, 1, int, int64_t, load_condition, store_truth, COMBINE_ALL, 1)

/* What reduce.c knows of each op: see `reduction` there. */
#define FLOAT_KERNELS(name) .float32 = CUDA_##name##_float32, .floats = CUDA_##name##_float, .doubles = CUDA_##name##_double
#define NUMBER_KERNELS(name) FLOAT_KERNELS(name), .integers = CUDA_##name##_integer
#define ONE_KERNEL(name) .float32 = CUDA_##name, .floats = CUDA_##name, .doubles = CUDA_##name, .integers = CUDA_##name
#define REDUCTION_sum  NUMBER_KERNELS(reduce_sum)
#define REDUCTION_prod NUMBER_KERNELS(reduce_prod)
#define REDUCTION_max  NUMBER_KERNELS(reduce_max), .extreme = 1
#define REDUCTION_min  NUMBER_KERNELS(reduce_min), .extreme = 1
#define REDUCTION_logsumexp FLOAT_KERNELS(reduce_logsumexp)
#define REDUCTION_any  ONE_KERNEL(reduce_any), .condition = 1
#define REDUCTION_all  ONE_KERNEL(reduce_all), .condition = 1

/* ---- argmax and argmin -------------------------------------------------------------------------------------------------------- */

/* A number beats a smaller one (larger one), a NaN every number; among equals the first, so that any order gives the same. position -1:
 * there is none. load_group: v is elements i to i + 7, where groups are read. */
#define POSITION_BODY(name, T, load, load_group)                                                     \
  typedef reduce_arguments name##_arguments;                                                         \
  typedef struct name##_best { T value; int64_t position; } name##_best;                             \
  BODY int name##_beats(const reduce_arguments *p, T a, T b)                                         \
  {                                                                                                  \
    return (p->smallest ? a < b : a > b) || (a != a && b == b);                                      \
  }                                                                                                  \
  BODY void name##_offer(const reduce_arguments *p, name##_best *best, T value, int64_t position)    \
  {                                                                                                  \
    if (position < 0) return;                                                                        \
    if (best->position >= 0 && !name##_beats(p, value, best->value) &&                               \
        (name##_beats(p, best->value, value) || best->position < position)) return;                  \
    best->value = value;                                                                             \
    best->position = position;                                                                       \
  }                                                                                                  \
  BODY void name(int phase, int thread, int64_t block, void *shared, const reduce_arguments *p)      \
  {                                                                                                  \
    reduce_place at = reduce_place_of(thread, block, p);                                             \
    name##_best *values = (name##_best *)shared, best = { 0, -1 };                                   \
    if (phase == 0) {                                                                                \
      int64_t base = at.end > at.begin ? view_offset(&p->x, at.output) : 0;                          \
      for (int64_t r = 8 * at.lane; p->grouped && r < at.end; r += 8 * at.lanes) {                   \
        T v[8] = { 0 };                                                                              \
        load_group(p->x.dtype, p->x.data, base + r, v);                                              \
        UNROLL for (int j = 0; j < 8; j++) name##_offer(p, &best, v[j], r + j);                      \
      }                                                                                              \
      for (int64_t r = at.begin + at.lane; !p->grouped && r < at.end; r += REDUCE_RUN * at.lanes) {  \
        T element[REDUCE_RUN];                                                                       \
        UNROLL for (int j = 0; j < REDUCE_RUN; j++) {                                                \
          int64_t place = r + j * at.lanes;                                                          \
          element[j] = place < at.end ? load(p->x.dtype, p->x.data, base + view_offset(&p->along, place)) : 0; \
        }                                                                                            \
        UNROLL for (int j = 0; j < REDUCE_RUN; j++)                                                  \
          if (r + j * at.lanes < at.end) name##_offer(p, &best, element[j], r + j * at.lanes);       \
      }                                                                                              \
      values[at.lane * at.columns + at.column] = best;                                               \
      return;                                                                                        \
    }                                                                                                \
    int step = phase == 1 ? REDUCE_FIRST : 1, lanes = phase == 1 || at.lanes < REDUCE_FIRST ? at.lanes : REDUCE_FIRST; \
    if (at.lane >= step || at.output >= p->outputs) return;                                          \
    best = values[at.lane * at.columns + at.column];                                                 \
    for (int l = at.lane + step; l < lanes; l += step) {                                             \
      name##_best other = values[l * at.columns + at.column];                                        \
      name##_offer(p, &best, other.value, other.position);                                           \
    }                                                                                                \
    if (phase == 1) values[at.lane * at.columns + at.column] = best;                                 \
    else store_integer(p->y.dtype, p->y.data, view_offset(&p->y, at.output), best.position + p->base); \
  }
#define NO_GROUP(dtype, from, i, v) ((void)0)
BODY void load_position_group(int dtype, const void *from, int64_t i, float v[8]) { load_eight(from, dtype, 0, i, i + 8, 1, v); }

POSITION_BODY(position_float, float, load_float, load_position_group)
POSITION_BODY(position_double, double, load_double, NO_GROUP)
POSITION_BODY(position_integer, int64_t, load_integer, NO_GROUP)
#undef NO_GROUP

#define REDUCE_FLOAT_KERNELS(BLOCK, op) BLOCK(op##_float32, 3) BLOCK(op##_float, 3) BLOCK(op##_double, 3)
#define REDUCE_KERNELS_OF(BLOCK, op) REDUCE_FLOAT_KERNELS(BLOCK, op) BLOCK(op##_integer, 3)
#define REDUCE_KERNELS(ELEMENT, BLOCK)                                                               \
  REDUCE_KERNELS_OF(BLOCK, reduce_sum) REDUCE_KERNELS_OF(BLOCK, reduce_prod)                         \
  REDUCE_KERNELS_OF(BLOCK, reduce_max) REDUCE_KERNELS_OF(BLOCK, reduce_min)                          \
  REDUCE_FLOAT_KERNELS(BLOCK, reduce_logsumexp) BLOCK(reduce_any, 3) BLOCK(reduce_all, 3)            \
  BLOCK(position_float, 3) BLOCK(position_double, 3) BLOCK(position_integer, 3)

#endif
