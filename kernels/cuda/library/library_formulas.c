/* library_formulas.c: formulas as text: lists of them are kept as files, and planned again for other devices. */
#include "cuda/library/library_formulas.h"

#include <stdio.h>
#include <string.h>
#include "tensor/tensor.h"

static const char *const directions[] = {
  [FLOW_LIBRARY_FORWARD] = "forward", [FLOW_LIBRARY_DATA] = "data", [FLOW_LIBRARY_FILTER] = "filter" };
enum { DIRECTIONS = sizeof directions / sizeof *directions };

typedef long long number;

void flow_library_convolution_text(const flow_library_convolution *c, char *text, size_t size)
{
  snprintf(text, size, "convolution %s %s bias=%d relu=%d exact=%d groups=%d images=%lld channels=%lld>%lld in=%lldx%lld out=%lldx%lld "
           "kernel=%lldx%lld stride=%lldx%lld dilation=%lldx%lld before=%lldx%lld after=%lldx%lld", directions[c->direction],
           flow_dtype_name(c->dtype), c->bias, c->relu, c->exact, c->groups, (number)c->images, (number)c->channels_in,
           (number)c->channels_out, (number)c->in[0], (number)c->in[1], (number)c->out[0], (number)c->out[1], (number)c->kernel[0],
           (number)c->kernel[1], (number)c->stride[0], (number)c->stride[1], (number)c->dilation[0], (number)c->dilation[1],
           (number)c->before[0], (number)c->before[1], (number)c->after[0], (number)c->after[1]);
  size_t length = strlen(text);
  if (c->add) snprintf(text + length, size - length, " add=1");
}

int flow_library_convolution_parse(const char *text, flow_library_convolution *out)
{
  char direction[16] = "", dtype[16] = "";
  flow_library_convolution c;
  number images, channels[2], at[7][2];
  memset(&c, 0, sizeof c);
  int found = sscanf(text, "convolution %15s %15s bias=%d relu=%d exact=%d groups=%d images=%lld channels=%lld>%lld "
                     "in=%lldx%lld out=%lldx%lld kernel=%lldx%lld stride=%lldx%lld dilation=%lldx%lld before=%lldx%lld "
                     "after=%lldx%lld add=%d", direction, dtype, &c.bias, &c.relu, &c.exact, &c.groups, &images, &channels[0], &channels[1],
                     &at[0][0], &at[0][1], &at[1][0], &at[1][1],
                     &at[2][0], &at[2][1], &at[3][0], &at[3][1], &at[4][0], &at[4][1], &at[5][0], &at[5][1], &at[6][0], &at[6][1],
                     &c.add);
  int64_t *const pairs[7] = { c.in, c.out, c.kernel, c.stride, c.dilation, c.before, c.after };
  if (found != 23 && found != 24) return 0;
  while (c.direction < DIRECTIONS && strcmp(directions[c.direction], direction) != 0) c.direction++;
  c.dtype = flow_dtype_find(dtype);
  c.images = images;
  c.channels_in = channels[0];
  c.channels_out = channels[1];
  for (int i = 0; i < 7; i++)
    for (int axis = 0; axis < 2; axis++) pairs[i][axis] = at[i][axis];
  if (c.direction == DIRECTIONS || c.dtype < 0) return 0;
  *out = c;
  return 1;
}

void flow_library_product_text(const flow_library_product *p, char *text, size_t size)
{
  int wider = p->result_dtype != p->dtype;
  snprintf(text, size, "product %s%s%s bias=%d relu=%d exact=%d transpose=%d,%d m=%lld n=%lld k=%lld batch=%lld "
           "strides=%lld,%lld",
           flow_dtype_name(p->dtype), wider ? ">" : "", wider ? flow_dtype_name(p->result_dtype) : "", p->bias, p->relu, p->exact,
           p->transpose_a, p->transpose_b, (number)p->m, (number)p->n, (number)p->k, (number)p->batch,
           (number)p->stride_a, (number)p->stride_b);
}

int flow_library_product_parse(const char *text, flow_library_product *out)
{
  char dtypes[32] = "", *result;
  flow_library_product p;
  number m, n, k, batch, stride_a, stride_b;
  memset(&p, 0, sizeof p);
  int found = sscanf(text, "product %31s bias=%d relu=%d exact=%d transpose=%d,%d m=%lld n=%lld k=%lld batch=%lld "
                     "strides=%lld,%lld", dtypes, &p.bias, &p.relu, &p.exact, &p.transpose_a, &p.transpose_b, &m, &n, &k, &batch,
                     &stride_a, &stride_b);
  result = strchr(dtypes, '>');
  if (result) *result++ = 0;
  p.dtype = flow_dtype_find(dtypes);
  p.result_dtype = result ? flow_dtype_find(result) : p.dtype;
  if (found != 12 || p.dtype < 0 || p.result_dtype < 0) return 0;
  p.m = m;
  p.n = n;
  p.k = k;
  p.batch = batch;
  p.stride_a = stride_a;
  p.stride_b = stride_b;
  p.alignment = FLOW_LIBRARY_ALIGNMENT;
  *out = p;
  return 1;
}
