/* channel_sums.h: what is left of relus and biases around a library's convolution, by own kernels: gradients stopped by a relu, and sums
 * over pixels. Activations are contiguous {pixels, channels} of float32 or 16-bit floats. */
#ifndef FLOW_CUDA_LIBRARY_CHANNEL_SUMS_H
#define FLOW_CUDA_LIBRARY_CHANNEL_SUMS_H

#include "cuda/runtime/launch.h"

/* Sums in slices of pixels: enough slices to keep a large GPU busy; their number follows from shapes alone. */
typedef struct flow_channel_sums { int64_t pixels, channels, slices, slice_rows; } flow_channel_sums;

flow_channel_sums flow_cuda_channel_sums(int64_t pixels, int64_t channels);
/* Bytes that the sums of all slices take. */
size_t flow_cuda_channel_sums_bytes(const flow_channel_sums *sums);

/* to {channels} = g added up over the pixels that count: those with y > 0, or those whose index is that of a maximum, or, where both are
 * NULL, all. dz, unless it is NULL: g where y > 0, else 0. between: memory for the slices. One launch. */
flow_status flow_cuda_sum_channels(const flow_call *call, const flow_channel_sums *sums, int dtype, const void *g, const void *y,
                                   const uint8_t *index, void *dz, float *between, const flow_operand *to);
/* dz = g (+ addend, unless that is NULL) where y > 0, else 0. dz may be g. */
flow_status flow_cuda_stop_gradient(const flow_call *call, int dtype, int64_t pixels, int64_t channels, const void *g, const void *addend,
                                    const void *y, void *dz);

#endif
