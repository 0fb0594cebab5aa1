/* channel_sums.c: see channel_sums.h. */
#include "cuda/library/channel_sums.h"

#include "tensor/tensor.h"

enum { MOST_SLICES = 256, LEAST_ROWS = 64, BUNDLE_BYTES = 16 };

flow_channel_sums flow_cuda_channel_sums(int64_t pixels, int64_t channels)
{
  flow_channel_sums s = { .pixels = pixels, .channels = channels, .slice_rows = parts_of(pixels, MOST_SLICES) };
  if (s.slice_rows < LEAST_ROWS) s.slice_rows = LEAST_ROWS;
  s.slices = parts_of(pixels, s.slice_rows);
  return s;
}

size_t flow_cuda_channel_sums_bytes(const flow_channel_sums *s) { return (size_t)(s->slices * s->channels) * sizeof(float); }

flow_status flow_cuda_sum_channels(const flow_call *call, const flow_channel_sums *s, int dtype, const void *g, const void *y,
                                   const uint8_t *index, void *dz, float *between, const flow_operand *to)
{
  int width = BUNDLE_BYTES / flow_dtype_size(dtype);
  uintptr_t places = (uintptr_t)g | (uintptr_t)y | (uintptr_t)dz | (index ? (uintptr_t)index * 2 : 0);
  if (s->channels % width != 0 || places % BUNDLE_BYTES != 0) width = 1;
  sum_channels_arguments a = { .g = g, .y = y, .index = index, .dz = dz, .sums = between, .to = to->data,
                               .counters = flow_cuda_counters(call), .rows = s->pixels, .channels = s->channels,
                               .bundles = s->channels / width, .slices = s->slices,
                               .slice_rows = s->slice_rows, .dtype = dtype, .to_dtype = to->dtype, .width = width, .lanes = 1 };
  while (a.lanes < SUM_LANES && a.lanes < a.bundles) a.lanes *= 2;
  a.paired = index && dtype == FLOW_FLOAT32 && width > 1 && a.bundles % 2 == 0;
  int64_t pieces = parts_of(a.bundles, a.lanes);
  for (; a.first_piece < pieces; a.first_piece += a.pieces) {
    a.pieces = smaller(pieces - a.first_piece, FLOW_CUDA_COUNTERS);
    FLOW_TRY(flow_cuda_launch(call, CUDA_sum_channels, s->slices * a.pieces, &a, sizeof a));
  }
  return FLOW_OK;
}

flow_status flow_cuda_stop_gradient(const flow_call *call, int dtype, int64_t pixels, int64_t channels, const void *g, const void *addend,
                                    const void *y, void *dz)
{
  int width = BUNDLE_BYTES / flow_dtype_size(dtype);
  uintptr_t places = (uintptr_t)g | (uintptr_t)addend | (uintptr_t)y | (uintptr_t)dz;
  if (channels % width != 0 || places % BUNDLE_BYTES != 0) width = 1;
  mask_gradient_arguments a = { .g = g, .addend = addend, .y = y, .dz = dz, .dtype = dtype, .width = width };
  return flow_cuda_launch(call, CUDA_mask_gradient, pixels * channels / width, &a, sizeof a);
}
