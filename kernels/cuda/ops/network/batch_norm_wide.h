/* batch_norm_wide.h: the sums of batch_norm.h where rows are whole sequences of 16 bytes, and x and g have one dtype, which each kernel
 * knows when it is compiled: a thread has 8 loads of 16 bytes in flight, of WIDE_ROWS rows of x, or of WIDE_PAIRS rows of x and of g.
 * Which kernel it is follows from shapes and dtypes; operands that begin elsewhere are read element by element, and added in the same
 * order. */
#ifndef FLOW_CUDA_OPS_BATCH_NORM_WIDE_H
#define FLOW_CUDA_OPS_BATCH_NORM_WIDE_H

#include "cuda/device/wide.h"
#include "cuda/ops/network/batch_norm.h"

enum { WIDE_ROWS = 8, WIDE_PAIRS = 4 };

/* A block takes rows_per_part rows of `lanes` bundles, a power of two of at most 16; a bundle is the channels in 16 bytes. gradient:
 * given_mean is read. */
typedef struct batch_norm_wide_arguments {
  const void  *g, *x, *given_mean;
  int64_t      rows, rows_per_part, bundles, bundle_blocks;
  int          gradient, lanes, mean_dtype, aligned;
  batch_norm_arguments finish;       /* g, x and what is of the result are NULL */
} batch_norm_wide_arguments;
typedef batch_norm_wide_arguments batch_norm_wide_float32_arguments, batch_norm_wide_float16_arguments, batch_norm_wide_bfloat16_arguments;

typedef struct wide_sum { double first, second; } wide_sum;
enum { WIDE_SHARED = BLOCK_THREADS * MOST_WIDE * 16 };      /* a wide_sum of each thread's channels */
#if defined(__CUDACC__)
#define BLOCK_SHARED WIDE_SHARED         /* of this family, which is compiled by itself */
#endif

/* A thread's rows of a part: first, first + step ... below last. */
typedef struct wide_rows { int64_t first, step, last; } wide_rows;

BODY int64_t rows_of_thread(wide_rows r) { return r.first < r.last ? (r.last - r.first + r.step - 1) / r.step : 0; }

/* As NAME(sum_of_channel), in runs of WIDE_ROWS rows: s[k] is the mean and the sum of squared differences of channel k. */
BODY void wide_differences(int dtype, int width, int aligned, const batch_norm_wide_arguments *a, int64_t bundle, wide_rows r, wide_sum *s)
{
  float origin[MOST_WIDE];
  wide_bits x[WIDE_ROWS];
  x[0] = load_wide(a->x, dtype, aligned, r.first * a->bundles + bundle);
  UNROLL for (int k = 0; k < width; k++) {
    origin[k] = wide_at(&x[0], dtype, k);
    s[k].first = s[k].second = 0;
  }
  for (int64_t row = r.first; row < r.last; row += WIDE_ROWS * r.step) {
    int count = 0;
    UNROLL for (int j = 0; j < WIDE_ROWS; j++) {
      if (row + j * r.step >= r.last) continue;
      x[j] = load_wide(a->x, dtype, aligned, (row + j * r.step) * a->bundles + bundle);
      count = j + 1;
    }
    UNROLL for (int k = 0; k < width; k++) {
      float mean = 0, sum = 0, second = 0;
      UNROLL for (int j = 0; j < WIDE_ROWS; j++) mean += j < count ? wide_at(&x[j], dtype, k) : 0;
      mean /= (float)count;
      UNROLL for (int j = 0; j < WIDE_ROWS; j++) {
        float d = j < count ? wide_at(&x[j], dtype, k) - mean : 0;
        sum += d;
        second += d * d;
      }
      double shift = (double)mean - (double)origin[k], moved = (double)sum + shift * count;
      s[k].first += moved;
      s[k].second += (double)second + shift * ((double)sum + moved);
    }
  }
  double n = (double)rows_of_thread(r);
  UNROLL for (int k = 0; k < width; k++) {
    s[k].second -= s[k].first * (s[k].first / n);
    if (s[k].second < 0) s[k].second = 0;
    s[k].first = (double)origin[k] + s[k].first / n;
  }
}

/* As NAME(sum_of_products): s[k] is the sums of g and of g (x - mean) of channel k. */
BODY void wide_products(int dtype, int width, int aligned, const batch_norm_wide_arguments *a, int64_t bundle, wide_rows r, wide_sum *s)
{
  float mean[MOST_WIDE];
  UNROLL for (int k = 0; k < width; k++) {
    mean[k] = load_half(a->given_mean, a->mean_dtype, bundle * width + k);
    s[k].first = s[k].second = 0;
  }
  for (int64_t row = r.first; row < r.last; row += WIDE_PAIRS * r.step) {
    wide_bits x[WIDE_PAIRS], g[WIDE_PAIRS];
    int count = 0;
    UNROLL for (int j = 0; j < WIDE_PAIRS; j++) {
      if (row + j * r.step >= r.last) continue;
      x[j] = load_wide(a->x, dtype, aligned, (row + j * r.step) * a->bundles + bundle);
      g[j] = load_wide(a->g, dtype, aligned, (row + j * r.step) * a->bundles + bundle);
      count = j + 1;
    }
    UNROLL for (int k = 0; k < width; k++) {
      float sum = 0, second = 0;
      UNROLL for (int j = 0; j < WIDE_PAIRS; j++) {
        float w = j < count ? wide_at(&g[j], dtype, k) : 0;
        sum += w;
        second += j < count ? w * (wide_at(&x[j], dtype, k) - mean[k]) : 0;
      }
      s[k].first += (double)sum;
      s[k].second += (double)second;
    }
  }
}

/* Each thread's sums; then, channel by channel, those of all ranks, in order. */
BODY void wide_block(int dtype, int phase, int thread, int64_t block, void *shared, const batch_norm_wide_arguments *a)
{
  const int width = dtype == FLOW_FLOAT32 ? 4 : MOST_WIDE;
  int lane = thread & (a->lanes - 1), rank = thread / a->lanes, ranks = BLOCK_THREADS / a->lanes;
  int64_t of_bundles, part = split(block, a->bundle_blocks, &of_bundles), bundle = of_bundles * a->lanes + lane;
  wide_sum *sums = (wide_sum *)shared;           /* [width][ranks][lanes] */
  if (phase >= 2)
    finish_block_half_floats(phase - 2, thread, shared, &a->finish, of_bundles, part, of_bundles * a->lanes * width, a->lanes * width);
  if (phase >= 2 || bundle >= a->bundles) return;
  wide_rows r;
  r.first = part * a->rows_per_part + rank;
  r.step = ranks;
  r.last = smaller((part + 1) * a->rows_per_part, a->rows);
  if (phase == 0) {
    wide_sum s[MOST_WIDE];
    UNROLL for (int k = 0; k < width; k++) s[k].first = s[k].second = 0;
    if (r.first < r.last) {
      if (a->gradient && a->aligned) wide_products(dtype, width, 1, a, bundle, r, s);
      else if (a->gradient) wide_products(dtype, width, 0, a, bundle, r, s);
      else if (a->aligned) wide_differences(dtype, width, 1, a, bundle, r, s);
      else wide_differences(dtype, width, 0, a, bundle, r, s);
    }
    UNROLL for (int k = 0; k < width; k++) sums[k * BLOCK_THREADS + thread] = s[k];
    return;
  }
  for (int k = rank; k < width; k += ranks) {
    channel_sum all, one;
    all.count = all.first = all.second = 0;
    for (int i = 0; i < ranks; i++) {
      r.first = part * a->rows_per_part + i;
      one.count = (double)rows_of_thread(r);
      one.first = sums[k * BLOCK_THREADS + i * a->lanes + lane].first;
      one.second = sums[k * BLOCK_THREADS + i * a->lanes + lane].second;
      if (one.count > 0) all = combine_moments(all, one, a->gradient);
    }
    a->finish.sums[part * a->finish.channels + bundle * width + k] = all;
  }
  publish();
}

BODY void batch_norm_wide_float32(int phase, int thread, int64_t block, void *shared, const batch_norm_wide_arguments *a)
{
  wide_block(FLOW_FLOAT32, phase, thread, block, shared, a);
}

BODY void batch_norm_wide_float16(int phase, int thread, int64_t block, void *shared, const batch_norm_wide_arguments *a)
{
  wide_block(FLOW_FLOAT16, phase, thread, block, shared, a);
}

BODY void batch_norm_wide_bfloat16(int phase, int thread, int64_t block, void *shared, const batch_norm_wide_arguments *a)
{
  wide_block(FLOW_BFLOAT16, phase, thread, block, shared, a);
}

#define BATCH_NORM_WIDE_KERNELS(ELEMENT, BLOCK) \
  BLOCK(batch_norm_wide_float32, 2 + FINISH_PHASES) BLOCK(batch_norm_wide_float16, 2 + FINISH_PHASES) \
  BLOCK(batch_norm_wide_bfloat16, 2 + FINISH_PHASES)

#endif
