/* convolution_geometry.h: sizes, paddings and channels of a convolution call and of its gradient, for the kernels of all devices.
 *
 * Activations are NHWC, weights HWIO: {kernel height, kernel width, channels in / groups, channels out}; the output
 * channels of a group are neighbours. Plans for some devices turn weights: {channels out, kernel height, kernel width, channels in /
 * groups}. In arrays of two, [0] is height and [1] is width. */
#ifndef FLOW_CONVOLUTION_GEOMETRY_H
#define FLOW_CONVOLUTION_GEOMETRY_H

#include "kernels.h"

/* The shape rule (core/ops/rules/convolution.c) has checked that windows fit: kernel, stride, dilation, pool and groups are at least 1;
 * images, in and the channels may be 0. */
typedef struct flow_geometry {
  int64_t images;
  int64_t in[2], out[2];                /* sizes before and after the convolution */
  int64_t result[2];                    /* size of y: after pooling, or out */
  int64_t kernel[2], stride[2], dilation[2];
  int64_t before[2], after[2];          /* zero padding: top and left, bottom and right */
  int64_t pool[2], pool_stride[2];      /* 1, 1 without pooling */
  int64_t channels_in, channels_out, groups;
  int64_t group_in, group_out;          /* channels of one group */
  int pooled, relu, has_bias;           /* what the call fuses: max pooling, relu before it, a bias as third input */
  int     bytes;                        /* x is uint8: it is converted where it is copied */
  double input_scale;                   /* x is multiplied by it, which kernels do to the weights; 1: none */
  double ceiling;                       /* of y; infinite: none. Not with a pool */
  int     depthwise;                    /* see flow_direct_geometry */
} flow_geometry;

/* Pixels that a kernel reaches beyond its first one. */
static inline int64_t flow_reach(const flow_geometry *geometry, int axis)
{
  return (geometry->kernel[axis] - 1) * geometry->dilation[axis];
}

/* What a call of convolution or of its gradient computes with: sizes, strides and paddings of both axes, with the attributes' zeros
 * replaced by what they stand for. x: the forward input; w in the layout that the attributes say. */
static inline flow_geometry flow_geometry_of(const flow_call *call, const flow_operand *x, const flow_operand *w)
{
  int transposed = (call->attributes->convolution.transposed & FLOW_TRANSPOSED_KERNEL) != 0;
  flow_geometry s = {
    .images = x->shape[0],
    .channels_in = x->shape[3],
    .channels_out = w->shape[transposed ? 0 : 3],
    .groups = call->attributes->convolution.groups > 0 ? call->attributes->convolution.groups : 1,
    .bytes = x->dtype == FLOW_UINT8,
    .pooled = call->attributes->convolution.pool[0] > 0,
    .relu = call->attributes->convolution.activation == FLOW_RELU,
    .has_bias = call->attributes->convolution.has_bias,
    .input_scale = 1,
    .ceiling = __builtin_inf(),
  };
  if (call->attributes->convolution.input_scale != 0) s.input_scale = call->attributes->convolution.input_scale;
  if (call->attributes->convolution.ceiling != 0) s.ceiling = call->attributes->convolution.ceiling;
  s.group_in = w->shape[transposed ? 3 : 2];
  s.group_out = s.channels_out / s.groups;
  for (int axis = 0; axis < 2; axis++) {
    int32_t stride = call->attributes->convolution.stride[axis], dilation = call->attributes->convolution.dilation[axis];
    s.in[axis] = x->shape[1 + axis];
    s.kernel[axis] = w->shape[transposed + axis];
    s.stride[axis] = stride > 0 ? stride : 1;
    s.dilation[axis] = dilation > 0 ? dilation : 1;
    s.before[axis] = call->attributes->convolution.padding[2 * axis];
    s.after[axis] = call->attributes->convolution.padding[2 * axis + 1];
    int64_t room = s.in[axis] + s.before[axis] + s.after[axis] - flow_reach(&s, axis) - 1;
    s.out[axis] = room < 0 ? 0 : room / s.stride[axis] + 1;
    s.pool[axis] = s.pool_stride[axis] = 1;
    s.result[axis] = s.out[axis];
    if (s.pooled) {
      int32_t pool_stride = call->attributes->convolution.pool_stride[axis];
      s.pool[axis] = call->attributes->convolution.pool[axis];
      s.pool_stride[axis] = pool_stride > 0 ? pool_stride : s.pool[axis];
      s.result[axis] = s.out[axis] < s.pool[axis] ? 0 : (s.out[axis] - s.pool[axis]) / s.pool_stride[axis] + 1;
    }
  }
  return s;
}

/* Multiply-adds of a forward convolution, all images. */
static inline double flow_multiply_adds(const flow_geometry *geometry)
{
  return (double)(geometry->images * geometry->out[0] * geometry->out[1]) * (double)(geometry->kernel[0] * geometry->kernel[1]) *
         (double)geometry->group_in * (double)geometry->channels_out;
}

#endif
