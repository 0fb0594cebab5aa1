/* emulated_library.h: what stands in for cuDNN and cuBLASLt on the emulated device: the formulas of library.h, one element at a time. */
#ifndef FLOW_CUDA_EMULATED_LIBRARY_H
#define FLOW_CUDA_EMULATED_LIBRARY_H

#include "cuda/library_formulas.h"
#include "cuda/library_steps.h"

typedef struct emulated_convolution_arguments {
  flow_library_convolution c;
  const void *first, *second, *bias;
  void *result;
} emulated_convolution_arguments;

BODY int64_t emulated_x(const flow_library_convolution *c, int64_t image, int64_t row, int64_t column, int64_t channel)
{
  return ((image * c->in[0] + row) * c->in[1] + column) * c->channels_in + channel;
}
BODY int64_t emulated_y(const flow_library_convolution *c, int64_t image, int64_t row, int64_t column, int64_t channel)
{
  return ((image * c->out[0] + row) * c->out[1] + column) * c->channels_out + channel;
}
BODY int64_t emulated_w(const flow_library_convolution *c, int64_t out, int64_t ky, int64_t kx, int64_t in)
{
  return ((out * c->kernel[0] + ky) * c->kernel[1] + kx) * (c->channels_in / c->groups) + in;
}

/* The pixel of x along an axis that tap `k` of output `out` reads; -1: padding. */
BODY int64_t emulated_pixel(const flow_library_convolution *c, int axis, int64_t out, int64_t k)
{
  int64_t pixel = out * c->stride[axis] + k * c->dilation[axis] - c->before[axis];
  return pixel >= 0 && pixel < c->in[axis] ? pixel : -1;
}

BODY double emulated_forward(int64_t i, const emulated_convolution_arguments *a)
{
  const flow_library_convolution *c = &a->c;
  int64_t out, column, row, rest = split(i, c->channels_out, &out);
  rest = split(rest, c->out[1], &column);
  int64_t image = split(rest, c->out[0], &row), in = c->channels_in / c->groups, group = out / (c->channels_out / c->groups);
  double sum = 0;
  for (int64_t ky = 0; ky < c->kernel[0]; ky++) {
    for (int64_t kx = 0; kx < c->kernel[1]; kx++) {
      int64_t y = emulated_pixel(c, 0, row, ky), x = emulated_pixel(c, 1, column, kx);
      for (int64_t k = 0; y >= 0 && x >= 0 && k < in; k++)
        sum += (double)float_at(a->first, c->dtype, emulated_x(c, image, y, x, group * in + k)) *
               (double)float_at(a->second, c->dtype, emulated_w(c, out, ky, kx, k));
    }
  }
  if (c->bias) sum += (double)float_at(a->bias, c->dtype, out);
  return c->relu && sum < 0 ? 0 : sum;
}

BODY double emulated_data(int64_t i, const emulated_convolution_arguments *a)
{
  const flow_library_convolution *c = &a->c;
  int64_t channel, column, row, rest = split(i, c->channels_in, &channel);
  rest = split(rest, c->in[1], &column);
  int64_t image = split(rest, c->in[0], &row), in = c->channels_in / c->groups, out = c->channels_out / c->groups, group = channel / in;
  double sum = 0;
  for (int64_t ky = 0; ky < c->kernel[0]; ky++) {
    for (int64_t kx = 0; kx < c->kernel[1]; kx++) {
      int64_t y = row + c->before[0] - ky * c->dilation[0], x = column + c->before[1] - kx * c->dilation[1];
      if (y < 0 || x < 0 || y % c->stride[0] != 0 || x % c->stride[1] != 0) continue;
      y /= c->stride[0];
      x /= c->stride[1];
      for (int64_t k = group * out; y < c->out[0] && x < c->out[1] && k < (group + 1) * out; k++)
        sum += (double)float_at(a->first, c->dtype, emulated_y(c, image, y, x, k)) *
               (double)float_at(a->second, c->dtype, emulated_w(c, k, ky, kx, channel % in));
    }
  }
  return sum;
}

BODY double emulated_filter(int64_t i, const emulated_convolution_arguments *a)
{
  const flow_library_convolution *c = &a->c;
  int64_t in = c->channels_in / c->groups, k, kx, ky, rest = split(i, in, &k);
  rest = split(rest, c->kernel[1], &kx);
  int64_t out = split(rest, c->kernel[0], &ky), channel = out / (c->channels_out / c->groups) * in + k;
  double sum = 0;
  for (int64_t image = 0; image < c->images; image++) {
    for (int64_t row = 0; row < c->out[0]; row++) {
      for (int64_t column = 0; column < c->out[1]; column++) {
        int64_t y = emulated_pixel(c, 0, row, ky), x = emulated_pixel(c, 1, column, kx);
        if (y < 0 || x < 0) continue;
        sum += (double)float_at(a->first, c->dtype, emulated_x(c, image, y, x, channel)) *
               (double)float_at(a->second, c->dtype, emulated_y(c, image, row, column, out));
      }
    }
  }
  return sum;
}

BODY void emulated_convolution(int64_t i, const emulated_convolution_arguments *a)
{
  double sum = a->c.direction == FLOW_LIBRARY_FORWARD ? emulated_forward(i, a) : a->c.direction == FLOW_LIBRARY_DATA ? emulated_data(i, a)
                                                                                                                       : emulated_filter(i, a);
  put_float(a->result, a->c.dtype, i, (float)sum);
}

typedef struct emulated_product_arguments {
  flow_library_product p;
  const void *a, *b, *bias;
  void *c;
} emulated_product_arguments;

BODY void emulated_product(int64_t i, const emulated_product_arguments *a)
{
  const flow_library_product *p = &a->p;
  int64_t column, row, rest = split(i, p->n, &column), matrix = split(rest, p->m, &row);
  double sum = 0;
  for (int64_t k = 0; k < p->k; k++)
    sum += (double)float_at(a->a, p->dtype, matrix * p->stride_a + (p->transpose_a ? k * p->m + row : row * p->k + k)) *
           (double)float_at(a->b, p->dtype, matrix * p->stride_b + (p->transpose_b ? column * p->k + k : k * p->n + column));
  if (p->bias) sum += (double)float_at(a->bias, p->dtype, column);
  put_float(a->c, p->dtype, i, (float)(p->relu && sum < 0 ? 0 : sum));
}

#define EMULATED_LIBRARY_KERNELS(ELEMENT, BLOCK) ELEMENT(emulated_convolution) ELEMENT(emulated_product)

#endif
