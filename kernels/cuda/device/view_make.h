/* view_make.h: the host's side of view.h. */
#ifndef FLOW_CUDA_DEVICE_VIEW_MAKE_H
#define FLOW_CUDA_DEVICE_VIEW_MAKE_H

#include "cuda/device/view.h"
#include "kernels.h"

/* x as it broadcasts to a shape. */
view flow_cuda_view(const flow_operand *x, int rank, const int64_t *shape);
/* An array of a shape with its own strides (elements), at `data`. */
view flow_cuda_view_strided(void *data, int dtype, int rank, const int64_t *shape, const int64_t *strides);

/* `count` positions in groups of `size`, which is at least 1. */
view_groups flow_cuda_groups(int64_t size, int64_t count);

/* Whether the view is one axis of this stride. */
int     flow_cuda_view_is(const view *v, int64_t stride);
int64_t flow_cuda_size(const flow_operand *x);
/* The first byte that an operand's strides reach, and how many there are to the last one; none of nothing. */
const char *flow_cuda_span(const flow_operand *x, size_t *bytes);
/* Bytes of the largest element, up to 16, as a sequence of which both arrays, made of rows of this many bytes, can be moved. */
int32_t flow_cuda_unit_of(const void *a, const void *b, int64_t row_bytes);
/* Whether an operand's elements are one after the other in row-major order. */
int     flow_cuda_contiguous(const flow_operand *x);

#endif
