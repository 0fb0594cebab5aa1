/* resize_parts.h: what the files of resizing share: weights of an axis (resize_taps.c) and weighted sums of rows and of neighbours
 * in a row (resize_rows.c). */
#ifndef FLOW_IMAGE_RESIZE_PARTS_H
#define FLOW_IMAGE_RESIZE_PARTS_H

#include "image/resize.h"

/* Computes the taps, unless they are those of this method and these sizes already. */
flow_status flow_taps_prepare(flow_resize_taps *taps, int method, int from, int to);

/* The shuffles of horizontal taps, for pixels of this many channels. */
flow_status flow_shuffles_prepare(flow_shuffles *shuffles, const flow_resize_taps *taps, int channels);

enum { FLOW_ROW_PADDING = 32 };      /* numbers after the end of a row that may be read */

/* row[x] = the sum of weights[k] x line k for x < n; lines are `stride` elements apart. dtype: of the lines, see flow_resize. */
void flow_mix_lines(int dtype, const void *lines, int64_t stride, const float *weights, int count, int64_t n, float *row);
/* One row of the output: each pixel is the sum of weights x neighbours. */
void flow_mix_neighbours(const flow_resize_taps *taps, const flow_shuffles *shuffles, const float *row, int channels, float *to);

#endif
