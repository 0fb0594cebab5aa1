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
                                   const uint8_t *index, float *between, const flow_operand *to)
{
  sum_channels_arguments a = { .g = g, .y = y, .index = index, .sums = between, .rows = s->pixels, .channels = s->channels,
                               .slice_rows = s->slice_rows, .dtype = dtype, .pieces = parts_of(s->channels, SUM_CHANNELS) };
  total_channels_arguments total = { .sums = between, .to = to->data, .channels = s->channels, .slices = s->slices, .dtype = to->dtype };
  FLOW_TRY(flow_cuda_launch(call, CUDA_sum_channels, s->slices * a.pieces, &a, sizeof a));
  return flow_cuda_launch(call, CUDA_total_channels, s->channels, &total, sizeof total);
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
