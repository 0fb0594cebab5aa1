/* convolution_gradient_argmax.h: what the files of the "argmax" variant share.
 *
 * Of a fused max pooling's window only one pixel, the maximum, passes a gradient on, and none if relu left nothing: of the
 * gradient of the convolution's own output at least 3/4 are zeros under 2x2 windows. This variant never makes them: it
 * takes window by window the gradient of a channel to the maximum's place.
 *   convolution_gradient_argmax.c          layout, and the walk over images and rows of windows
 *   convolution_gradient_argmax_weights.c  dw, db: for every channel a list of its maxima
 *   convolution_gradient_argmax_few.c      dw, db of few input channels: output channels in lanes, no lists
 *   convolution_gradient_argmax_input.c    dx: for every window a patch of dx in registers */
#ifndef FLOW_CPU_CONVOLUTION_CONVOLUTION_GRADIENT_ARGMAX_H
#define FLOW_CPU_CONVOLUTION_CONVOLUTION_GRADIENT_ARGMAX_H

#include "cpu/convolution/convolution.h"

enum { INDEX_BLOCK = 64 };              /* channels of a copied index row come in blocks of this many bytes */

/* How a call is walked and what its scratch holds, from shapes alone (layout_of in convolution_gradient_argmax.c). */
typedef struct flow_argmax_layout {
  flow_geometry s;
  int64_t step[2];                      /* input pixels between neighbouring windows */
  int64_t reach[2];                     /* input pixels under one window */
  int64_t group;                        /* rows of windows that are done at once */
  int64_t channels;                     /* of g as it is read, in whole vectors; copied if there are fewer */
  int64_t index_pixels, index_channels; /* of a copied index row: whole vectors of pixels, whole blocks of channels */
  /* for dw */
  int64_t x_row, x_rows;                /* floats of a copied x row; rows in scratch */
  int     few;                          /* dw by flow_argmax_few, not by lists */
  int64_t run;                          /* floats of a kernel row in the sums: whole vectors */
  int64_t list;                         /* floats between the lists of neighbouring channels */
  /* for dx */
  int64_t pixel, canvas_row;            /* floats of a pixel (whole vectors) and of a row of the canvas */
  size_t  g_floats, index_bytes, x_floats, sum_floats, list_floats, canvas_floats;
} flow_argmax_layout;

/* Rows of windows: g: {rows, result width, channels}, index: {rows, index_pixels, index_channels}, NO_ARGMAX beyond the
 * windows and channels that there are. */
typedef struct flow_argmax_rows { const float *g; const uint8_t *index; int64_t count; } flow_argmax_rows;

/* Keeps an address in its own register. Compilers like to add it up in every instruction that loads and multiplies;
 * x86 then splits each of those in two, and the decoder no longer runs ahead of the arithmetic. */
#define OWN_REGISTER(address) __asm__("" : "+r"(address))

/* Bits of the first `count` <= INDEX_BLOCK bytes that equal `value`; bits beyond are undefined. */
ALWAYS_INLINE uint64_t flow_equal_bytes(const uint8_t *bytes, int value, int64_t count)
{
#if defined(FLOW_ISA_AVX512) && defined(__AVX512F__)
  (void)count;
  return _mm512_cmpeq_epi8_mask(_mm512_loadu_si512(bytes), _mm512_set1_epi8((char)value));
#elif defined(FLOW_ISA_AVX2)
  __m256i wanted = _mm256_set1_epi8((char)value);
  uint64_t low = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_loadu_si256((const __m256i *)bytes), wanted));
  if (count <= 32) return low;
  uint64_t high = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_loadu_si256((const __m256i *)(bytes + 32)), wanted));
  return low | high << 32;
#else
  uint64_t bits = 0;
  for (int64_t i = 0; i < count; i++) bits |= (uint64_t)(bytes[i] == value) << i;
  return bits;
#endif
}

/* to[column][row] = from[row][column]; steps in floats. */
#define flow_transpose FLOW_ISA_NAME(argmax_transpose)
void flow_transpose(const float *from, int64_t from_step, int64_t rows, int64_t columns, float *to, int64_t to_step);

/* sums[channel][kernel row][run] += x under the maxima times their gradients, where sums is not NULL; db likewise.
 * x: the row under the first window. lists: scratch. */
#define flow_argmax_weights FLOW_ISA_NAME(argmax_weights)
void flow_argmax_weights(const flow_argmax_layout *l, const flow_argmax_rows *rows, const float *x, float *sums, float *db,
                          float *lists);

/* The same for few input channels, where flow_argmax_few_fit(); sums: [kernel row][kernel column][input][channels]. */
#define flow_argmax_few     FLOW_ISA_NAME(argmax_few)
#define flow_argmax_few_fit FLOW_ISA_NAME(argmax_few_fit)
int  flow_argmax_few_fit(const flow_geometry *geometry);
void flow_argmax_few(const flow_argmax_layout *l, const flow_argmax_rows *rows, const float *x, float *sums, float *db);

/* Adds a row of windows to the canvas: rows[i] is the canvas row of the i-th input row under it.
 * weights: [block of VL inputs][output][kernel position][VL]. */
#define flow_argmax_input FLOW_ISA_NAME(argmax_input)
void flow_argmax_input(const flow_argmax_layout *l, const flow_argmax_rows *windows, const float *weights, float *const *rows);

#endif
