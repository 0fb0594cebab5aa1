/* convolution_winograd.h: what the two variants "winograd" agree on: which calls they take, by which tiles, at what cost. */
#ifndef FLOW_CPU_CONVOLUTION_CONVOLUTION_WINOGRAD_H
#define FLOW_CPU_CONVOLUTION_CONVOLUTION_WINOGRAD_H

#include "cpu/convolution/convolution.h"
#include "cpu/cost.h"
#include "cpu/convolution/winograd_tiles.h"

/* The form that a call of this geometry goes by. */
static inline winograd_form flow_winograd_form(const flow_call *call, const flow_geometry *s)
{
  return s->kernel[0] == 5 ? WINOGRAD_2_5 : call->exact ? WINOGRAD_2_3 : WINOGRAD_4_3;
}

/* Whether both directions of a convolution of these sizes can go by tiles: a dense kernel of 3 x 3 or, unless the call is exact, 5 x 5,
 * with stride 1. */
static inline int flow_winograd_geometry(const flow_call *call, const flow_geometry *s)
{
  for (int axis = 0; axis < 2; axis++)
    if (s->kernel[axis] != s->kernel[0] || s->stride[axis] != 1 || s->dilation[axis] != 1 || s->in[axis] < 1 || s->out[axis] < 1) return 0;
  if (s->kernel[0] != 3 && (s->kernel[0] != 5 || call->exact)) return 0;
  return !s->bytes && s->groups == 1 && s->channels_in >= 1 && s->channels_out >= 1;
}

/* `count` transforms of a tile and a vector of channels: per value 2.5 cycles of arithmetic, a load and a store. */
static inline double flow_winograd_transform_cost(winograd_form form, double count)
{
  double values = count * winograd_side(form) * winograd_side(form);
  return values * 2.5 * PEAK + flow_cost_cached(values * 2 * VL * sizeof(float));
}

/* Bytes that are read or written again and again: what outgrows a second-level cache moves at a quarter of its speed. */
static inline double flow_winograd_traffic_cost(double bytes, double times)
{
  return flow_cost_cached(bytes * times * (bytes > 1024 * 1024 ? 4 : 1));
}

/* A whole convolution of this many tiles. kept: without the weights' transform. */
static inline double flow_winograd_cost(winograd_form form, int64_t tiles, int64_t inputs, int64_t outputs, int kept)
{
  /* Tiles of one chunk are read with one pass over the weights: fewer tiles in a chunk mean more traffic. */
  double planes = winograd_side(form) * winograd_side(form), padded = (double)flow_padded_channels(outputs),
         weights = planes * (double)inputs * padded * sizeof(float);
  double chunks = (double)tiles / (double)flow_winograd_chunk(form, inputs, tiles);
  double parts = outputs % VL ? (double)(tiles * winograd_outputs(form) * winograd_outputs(form)) * 15 * PEAK
                              : 0; /* vectors that are not stored whole */
  double transform = flow_winograd_transform_cost(form, (double)inputs * padded / VL) + flow_winograd_traffic_cost(weights, 1);
  return flow_cost_arithmetic((double)tiles * planes * (double)(inputs + 2) * padded, 0.92) +
         flow_winograd_transform_cost(form, (double)tiles * ((double)flow_padded_channels(inputs) + padded) / VL) +
         flow_winograd_traffic_cost(weights, chunks) + (kept ? 0 : transform) + parts;
}

#endif
