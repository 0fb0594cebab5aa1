/* reduce_wide.h: the sums of reduce.h of whole bundles of 16 bytes, of a dtype that each kernel knows when it is compiled, with
 * WIDE_TURNS loads of 16 bytes in flight. Columns: outputs that are neighbours have neighbouring elements, {n, h, w, c} to {n, c} or {c}; a
 * thread takes the outputs of a bundle. Lines: the elements of an output are neighbours, {n, c} to {n}; a thread adds all elements of its
 * bundles. Which kernel it is follows from shapes, strides and dtypes; operands that begin elsewhere are read element by element, and added
 * in the same order. */
#ifndef FLOW_CUDA_OPS_REDUCE_WIDE_H
#define FLOW_CUDA_OPS_REDUCE_WIDE_H

#include "cuda/device/wide.h"
#include "cuda/ops/reduce/reduce.h"

enum { WIDE_TURNS = REDUCE_RUN, REDUCE_WIDE_SHARED = BLOCK_THREADS * MOST_WIDE * 8 };      /* a double for each of a thread's outputs */
#if defined(__CUDACC__)
#define BLOCK_SHARED REDUCE_WIDE_SHARED         /* of this family, which is compiled by itself */
#endif

/* of.groups: a block each, of BLOCK_THREADS / lanes bundles, or, of lines, outputs. Of lines of.length and of.slice count bundles. */
typedef struct reduce_wide_arguments { reduce_arguments of; int64_t aligned; } reduce_wide_arguments;
typedef reduce_wide_arguments reduce_wide_float32_arguments, reduce_wide_float16_arguments, reduce_wide_bfloat16_arguments;
typedef reduce_wide_arguments reduce_lines_float32_arguments, reduce_lines_float16_arguments, reduce_lines_bfloat16_arguments;

/* A thread's outputs: up to WIDE_TURNS elements are added in float, those sums in double. */
BODY void wide_run(int dtype, int width, int aligned, const reduce_arguments *p, int64_t output, int64_t first, int64_t end, double *total)
{
  const int64_t base = view_offset(&p->x, output), step = p->lanes;
  for (int64_t r = first; r < end; r += WIDE_TURNS * step) {
    wide_bits x[WIDE_TURNS];
    UNROLL for (int j = 0; j < WIDE_TURNS; j++) {
      UNROLL for (int k = 0; k < 4; k++) x[j].at[k] = 0;
      if (r + j * step < end) x[j] = load_wide(p->x.data, dtype, aligned, (base + view_offset(&p->along, r + j * step)) / width);
    }
    UNROLL for (int k = 0; k < width; k++) {
      float part = 0;
      UNROLL for (int j = 0; j < WIDE_TURNS; j++) part += wide_at(&x[j], dtype, k);
      total[k] += (double)part;
    }
  }
}

/* Sums of threads, [width][lanes][bundles]; then lanes are combined in two steps, in order. */
BODY void wide_reduction(int dtype, int phase, int thread, int64_t block, void *shared, const reduce_wide_arguments *a)
{
  const reduce_arguments *p = &a->of;
  const int width = dtype == FLOW_FLOAT32 ? 4 : MOST_WIDE, lanes = p->lanes, bundles = BLOCK_THREADS / lanes;
  const int64_t slice = block / p->groups, first = (block - slice * p->groups) * bundles * width;
  double *values = (double *)shared;
  if (phase == 0) {
    const int lane = thread / bundles, bundle = thread - lane * bundles;
    const int64_t output = first + bundle * width, begin = slice * p->slice;
    const int64_t end = begin + p->slice < p->length ? begin + p->slice : p->length;
    double total[MOST_WIDE];
    UNROLL for (int k = 0; k < width; k++) total[k] = 0;
    if (output < p->outputs) {
      if (a->aligned) wide_run(dtype, width, 1, p, output, begin + lane, end, total);
      else wide_run(dtype, width, 0, p, output, begin + lane, end, total);
    }
    UNROLL for (int k = 0; k < width; k++) values[(k * lanes + lane) * bundles + bundle] = total[k];
    return;
  }
  if (phase == 1) {
    for (int i = thread; i < REDUCE_FIRST * width * bundles && lanes > REDUCE_FIRST; i += BLOCK_THREADS) {
      const int rest = i / bundles, k = rest / REDUCE_FIRST, lane = rest - k * REDUCE_FIRST;
      double *value = values + k * lanes * bundles + (i - rest * bundles), sum = value[lane * bundles];
      for (int l = lane + REDUCE_FIRST; l < lanes; l += REDUCE_FIRST) sum += value[l * bundles];
      value[lane * bundles] = sum;
    }
    return;
  }
  for (int i = thread; i < width * bundles; i += BLOCK_THREADS) {
    const int bundle = i / width, k = i - bundle * width;
    const double *value = values + k * lanes * bundles + bundle;
    double sum = value[0];
    if (first + i >= p->outputs) continue;
    for (int l = 1; l < lanes && l < REDUCE_FIRST; l++) sum += value[l * bundles];
    if (p->partials) ((double *)p->partials)[slice * p->outputs + first + i] = sum;
    else store_double(p->y.dtype, p->y.data, view_offset(&p->y, first + i), sum);
  }
}

/* ---- lines ------------------------------------------------------------------------------------------------------------------------ */

/* A thread's bundles of a line: up to REDUCE_RUN elements are added in float, those sums in double. */
BODY double wide_line(int dtype, int width, int aligned, const reduce_arguments *p, int64_t output, int64_t first, int64_t end)
{
  const int64_t base = view_offset(&p->x, output), step = p->lanes;
  double total = 0;
  for (int64_t r = first; r < end; r += WIDE_TURNS * step) {
    wide_bits x[WIDE_TURNS];
    UNROLL for (int j = 0; j < WIDE_TURNS; j++) {
      UNROLL for (int k = 0; k < 4; k++) x[j].at[k] = 0;
      if (r + j * step < end) x[j] = load_wide(p->x.data, dtype, aligned, (base + view_offset(&p->along, (r + j * step) * width)) / width);
    }
    UNROLL for (int j = 0; j < WIDE_TURNS; j++) {
      UNROLL for (int k = 0; k < width; k += REDUCE_RUN) {
        float part = wide_at(&x[j], dtype, k);
        UNROLL for (int i = 1; i < REDUCE_RUN; i++) part += wide_at(&x[j], dtype, k + i);
        total += (double)part;
      }
    }
  }
  return total;
}

BODY void wide_lines(int dtype, int phase, int thread, int64_t block, void *shared, const reduce_wide_arguments *a)
{
  const reduce_arguments *p = &a->of;
  const int width = dtype == FLOW_FLOAT32 ? 4 : MOST_WIDE;
  const reduce_place at = reduce_place_of(thread, block, p);
  double *values = (double *)shared;
  if (phase == 0) {
    double total = 0;
    if (at.begin < at.end && a->aligned) total = wide_line(dtype, width, 1, p, at.output, at.begin + at.lane, at.end);
    else if (at.begin < at.end) total = wide_line(dtype, width, 0, p, at.output, at.begin + at.lane, at.end);
    values[at.lane * at.columns + at.column] = total;
    return;
  }
  const int step = phase == 1 ? REDUCE_FIRST : 1, lanes = phase == 1 || at.lanes < REDUCE_FIRST ? at.lanes : REDUCE_FIRST;
  if (at.lane >= step || at.output >= p->outputs) return;
  double value = values[at.lane * at.columns + at.column];
  REDUCE_LANES(double, COMBINE_SUM)
  if (phase == 1) values[at.lane * at.columns + at.column] = value;
  else if (p->partials) ((double *)p->partials)[block / p->groups * p->outputs + at.output] = value;
  else store_double(p->y.dtype, p->y.data, view_offset(&p->y, at.output), value);
}

#define REDUCE_WIDE(name, dtype)                                                                                                \
  BODY void reduce_wide_##name(int phase, int thread, int64_t block, void *shared, const reduce_wide_arguments *a)              \
  {                                                                                                                             \
    wide_reduction(dtype, phase, thread, block, shared, a);                                                                     \
  }                                                                                                                             \
  BODY void reduce_lines_##name(int phase, int thread, int64_t block, void *shared, const reduce_wide_arguments *a)             \
  {                                                                                                                             \
    wide_lines(dtype, phase, thread, block, shared, a);                                                                         \
  }
REDUCE_WIDE(float32, FLOW_FLOAT32)
REDUCE_WIDE(float16, FLOW_FLOAT16)
REDUCE_WIDE(bfloat16, FLOW_BFLOAT16)

#define REDUCE_WIDE_KERNELS(ELEMENT, BLOCK)                                                                                     \
  BLOCK(reduce_wide_float32, 3) BLOCK(reduce_wide_float16, 3) BLOCK(reduce_wide_bfloat16, 3)                                    \
  BLOCK(reduce_lines_float32, 3) BLOCK(reduce_lines_float16, 3) BLOCK(reduce_lines_bfloat16, 3)

#endif
