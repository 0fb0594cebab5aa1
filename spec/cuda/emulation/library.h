/* library.h: what stands in for cuDNN and cuBLASLt on the emulated device: the formulas of library.h by plain loops, sums in doubles. As
 * on tensor cores, factors of float32 have 10 bits after the point (TF32) unless the formula is an exact one. No part of the real device:
 * its kernels are not compiled for GPUs. An element is a number of the result, or, where that saves walks through memory, up to
 * EMULATED_TILE neighbours. */
#ifndef FLOW_CUDA_EMULATION_LIBRARY_H
#define FLOW_CUDA_EMULATION_LIBRARY_H

#include "cuda/library/library_formulas.h"
#include "cuda/library/library_steps.h"

enum { EMULATED_TILE = 32 };

/* ---- lines of numbers ----------------------------------------------------------------------------------------------------------- */

BODY int emulated_is_tf32(int dtype, int exact) { return dtype == FLOW_FLOAT32 && !exact; }

/* A factor: rounded to TF32 as tensor cores take it, or not. */
BODY double emulated_factor(float x, int tf32)
{
  uint32_t bits = float_to_bits(x);
  if (!tf32 || (bits & 0x7f800000u) == 0x7f800000u) return (double)x;
  return (double)bits_to_float((bits + 0x1000u) & 0xffffe000u);
}

BODY double emulated_dot(const void *x, int64_t x_at, const void *y, int64_t y_at, int64_t count, int dtype, int tf32)
{
  double sums[4] = { 0, 0, 0, 0 };
  int64_t k = 0;
  if (dtype == FLOW_FLOAT32) {
    const float *p = (const float *)x + x_at, *q = (const float *)y + y_at;
    for (; k + 4 <= count; k += 4)
      for (int lane = 0; lane < 4; lane++) sums[lane] += emulated_factor(p[k + lane], tf32) * emulated_factor(q[k + lane], tf32);
  }
  for (; k < count; k++)
    sums[0] += emulated_factor(float_at(x, dtype, x_at + k), tf32) * emulated_factor(float_at(y, dtype, y_at + k), tf32);
  return sums[0] + sums[1] + (sums[2] + sums[3]);
}

/* sums += factor * y's line */
BODY void emulated_add_line(double *sums, float of, const void *y, int64_t at, int64_t count, int dtype, int tf32)
{
  double factor = emulated_factor(of, tf32);
  if (dtype == FLOW_FLOAT32) {
    const float *q = (const float *)y + at;
    for (int64_t k = 0; k < count; k++) sums[k] += factor * emulated_factor(q[k], tf32);
  } else {
    for (int64_t k = 0; k < count; k++) sums[k] += factor * (double)float_at(y, dtype, at + k);
  }
}

/* What a library leaves in its workspace: no numbers. */
BODY void emulated_overwrite(void *workspace, size_t bytes)
{
  for (size_t i = 0; i < bytes; i++) ((uint8_t *)workspace)[i] = 0xff;
}

/* ---- convolutions --------------------------------------------------------------------------------------------------------------- */

typedef struct emulated_convolution_arguments {
  flow_library_convolution c;
  const void *first, *second, *bias, *addend, *relu;
  void *result, *workspace;
  size_t workspace_bytes;
  float *sums;
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

/* The other way round: the output whose tap `k` reads pixel `in`; -1: none. */
BODY int64_t emulated_output(const flow_library_convolution *c, int axis, int64_t in, int64_t k)
{
  int64_t place = in + c->before[axis] - k * c->dilation[axis];
  return place >= 0 && place % c->stride[axis] == 0 && place / c->stride[axis] < c->out[axis] ? place / c->stride[axis] : -1;
}

/* Number i of y. */
BODY void emulated_forward(int64_t i, const emulated_convolution_arguments *a)
{
  const flow_library_convolution *c = &a->c;
  int64_t out, column, row, rest = split(i, c->channels_out, &out);
  rest = split(rest, c->out[1], &column);
  int64_t image = split(rest, c->out[0], &row), in = c->channels_in / c->groups, group = out / (c->channels_out / c->groups);
  double sum = 0;
  for (int64_t ky = 0; ky < c->kernel[0]; ky++) {
    int64_t y = emulated_pixel(c, 0, row, ky);
    for (int64_t kx = 0; kx < c->kernel[1] && y >= 0; kx++) {
      int64_t x = emulated_pixel(c, 1, column, kx);
      if (x >= 0)
        sum += emulated_dot(a->first, emulated_x(c, image, y, x, group * in), a->second, emulated_w(c, out, ky, kx, 0), in, c->dtype,
                            emulated_is_tf32(c->dtype, c->exact));
    }
  }
  if (c->bias) sum += (double)float_at(a->bias, c->dtype, out);
  put_float(a->result, c->dtype, i, (float)(c->relu && sum < 0 ? 0 : sum));
}

/* Tile i of dx: neighbouring channels of a group in a pixel. */
BODY void emulated_data(int64_t i, const emulated_convolution_arguments *a)
{
  const flow_library_convolution *c = &a->c;
  int64_t in = c->channels_in / c->groups, out = c->channels_out / c->groups;
  int64_t tile, group, column, row, rest = split(i, parts_of(in, EMULATED_TILE), &tile);
  rest = split(rest, c->groups, &group);
  rest = split(rest, c->in[1], &column);
  int64_t image = split(rest, c->in[0], &row), first = tile * EMULATED_TILE, count = smaller(in - first, EMULATED_TILE);
  double sums[EMULATED_TILE] = { 0 };
  for (int64_t ky = 0; ky < c->kernel[0]; ky++) {
    int64_t y = emulated_output(c, 0, row, ky);
    for (int64_t kx = 0; kx < c->kernel[1] && y >= 0; kx++) {
      int64_t x = emulated_output(c, 1, column, kx);
      for (int64_t k = group * out; k < (group + 1) * out && x >= 0; k++)
        emulated_add_line(sums, float_at(a->first, c->dtype, emulated_y(c, image, y, x, k)), a->second,
                          emulated_w(c, k, ky, kx, first), count, c->dtype, emulated_is_tf32(c->dtype, c->exact));
    }
  }
  for (int64_t k = 0; k < count; k++) {
    int64_t at = emulated_x(c, image, row, column, group * in + first + k);
    if (c->add) sums[k] += (double)float_at(a->addend, c->dtype, at);
    put_float(a->result, c->dtype, at, c->relu && !(float_at(a->relu, c->dtype, at) > 0) ? 0 : (float)sums[k]);
  }
}

/* Channel i of the sums of dx. */
typedef emulated_convolution_arguments emulated_sums_arguments;
BODY void emulated_sums(int64_t i, const emulated_convolution_arguments *a)
{
  double sum = 0;
  for (int64_t pixel = 0; pixel < a->c.images * a->c.in[0] * a->c.in[1]; pixel++)
    sum += (double)float_at(a->result, a->c.dtype, pixel * a->c.channels_in + i);
  a->sums[i] = (float)sum;
}

/* Tile i of dw: one tap of one channel of x, for neighbouring channels of y. */
BODY void emulated_filter(int64_t i, const emulated_convolution_arguments *a)
{
  const flow_library_convolution *c = &a->c;
  int64_t in = c->channels_in / c->groups, out = c->channels_out / c->groups;
  int64_t tile, k, kx, ky, rest = split(i, parts_of(out, EMULATED_TILE), &tile);
  rest = split(rest, in, &k);
  rest = split(rest, c->kernel[1], &kx);
  int64_t group = split(rest, c->kernel[0], &ky), first = group * out + tile * EMULATED_TILE;
  int64_t count = smaller(out - tile * EMULATED_TILE, EMULATED_TILE);
  double sums[EMULATED_TILE] = { 0 };
  for (int64_t image = 0; image < c->images; image++) {
    for (int64_t row = 0; row < c->out[0]; row++) {
      int64_t y = emulated_pixel(c, 0, row, ky);
      for (int64_t column = 0; column < c->out[1] && y >= 0; column++) {
        int64_t x = emulated_pixel(c, 1, column, kx);
        if (x >= 0)
          emulated_add_line(sums, float_at(a->first, c->dtype, emulated_x(c, image, y, x, group * in + k)), a->second,
                            emulated_y(c, image, row, column, first), count, c->dtype, emulated_is_tf32(c->dtype, c->exact));
      }
    }
  }
  for (int64_t n = 0; n < count; n++) put_float(a->result, c->dtype, emulated_w(c, first + n, ky, kx, k), (float)sums[n]);
}

/* How many elements a convolution has. */
static inline int64_t emulated_elements(const flow_library_convolution *c)
{
  int64_t in = c->channels_in / c->groups, out = c->channels_out / c->groups;
  if (c->direction == FLOW_LIBRARY_FORWARD) return c->images * c->out[0] * c->out[1] * c->channels_out;
  if (c->direction == FLOW_LIBRARY_DATA) return c->images * c->in[0] * c->in[1] * c->groups * parts_of(in, EMULATED_TILE);
  return c->groups * c->kernel[0] * c->kernel[1] * in * parts_of(out, EMULATED_TILE);
}

BODY void emulated_convolution(int64_t i, const emulated_convolution_arguments *a)
{
  if (i == 0) emulated_overwrite(a->workspace, a->workspace_bytes);
  if (a->c.direction == FLOW_LIBRARY_FORWARD) emulated_forward(i, a);
  else if (a->c.direction == FLOW_LIBRARY_DATA) emulated_data(i, a);
  else emulated_filter(i, a);
}

/* ---- products of matrices --------------------------------------------------------------------------------------------------------- */

typedef struct emulated_product_arguments {
  flow_library_product p;
  const void *a, *b, *bias;
  void *c, *workspace;
  size_t workspace_bytes;
} emulated_product_arguments;

/* Tile i of c: neighbours in a row; batch * m * parts_of(n, EMULATED_TILE) of them. */
BODY void emulated_product(int64_t i, const emulated_product_arguments *a)
{
  if (i == 0) emulated_overwrite(a->workspace, a->workspace_bytes);
  const flow_library_product *p = &a->p;
  int64_t tile, row, rest = split(i, parts_of(p->n, EMULATED_TILE), &tile), matrix = split(rest, p->m, &row);
  int64_t first = tile * EMULATED_TILE, count = smaller(p->n - first, EMULATED_TILE), from_b = matrix * p->stride_b;
  int tf32 = emulated_is_tf32(p->dtype, p->exact);
  double sums[EMULATED_TILE] = { 0 };
  for (int64_t k = 0; k < p->k; k++) {
    float left = float_at(a->a, p->dtype, matrix * p->stride_a + (p->transpose_a ? k * p->m + row : row * p->k + k));
    if (!p->transpose_b) {
      emulated_add_line(sums, left, a->b, from_b + k * p->n + first, count, p->dtype, tf32);
    } else {
      for (int64_t n = 0; n < count; n++)
        sums[n] += emulated_factor(left, tf32) * emulated_factor(float_at(a->b, p->dtype, from_b + (first + n) * p->k + k), tf32);
    }
  }
  for (int64_t n = 0; n < count; n++) {
    double sum = sums[n] + (p->bias ? (double)float_at(a->bias, p->dtype, first + n) : 0);
    put_float(a->c, p->result_dtype, (matrix * p->m + row) * p->n + first + n, (float)(p->relu && sum < 0 ? 0 : sum));
  }
}

#define EMULATED_LIBRARY_KERNELS(ELEMENT, BLOCK) ELEMENT(emulated_convolution) ELEMENT(emulated_sums) ELEMENT(emulated_product)

#endif
