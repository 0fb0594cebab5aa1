/* pooling.h: which cells a pooling window covers; for max and average pooling. Tensors are NHWC. In arrays of two, [0] is
 * height and [1] is width. */
#ifndef FLOW_CPU_POOLING_POOLING_H
#define FLOW_CPU_POOLING_POOLING_H

#include "cpu/piece_grid.h"
#include "cpu/vector.h"

/* The sizes of a call. before: padding at the top and on the left. Padding is narrower than the window (the shape rule), so that every
 * window has a cell inside the image. */
typedef struct flow_pooling {
  int64_t images, in[2], out[2], channels, size[2], stride[2], before[2];
} flow_pooling;

/* large: the side before pooling (x or dx), small: the side after it (y or g). */
ALWAYS_INLINE flow_pooling pooling_of(const flow_call *call, const flow_operand *large, const flow_operand *small)
{
  flow_pooling s = { .images = small->shape[0], .channels = small->shape[3] };
  for (int axis = 0; axis < 2; axis++) {
    s.in[axis] = large->shape[1 + axis];
    s.out[axis] = small->shape[1 + axis];
    s.size[axis] = call->attributes->pool.size[axis];
    s.stride[axis] = call->attributes->pool.stride[axis] > 0 ? call->attributes->pool.stride[axis] : s.size[axis];
    s.before[axis] = call->attributes->pool.padding[2 * axis];
  }
  return s;
}

/* Pieces of calls of few images: bands of rows of the small side. A cell of a window takes about as long as four multiply-adds. */
static inline flow_piece_grid pooling_pieces(const flow_pooling *s)
{
  double cells = (double)(s->out[0] * s->out[1] * s->channels) * (double)(s->size[0] * s->size[1]);
  return flow_cut_pieces(4 * cells, s->out[0] > 0 ? s->out[0] : 1, 1, 1, 1);
}

static inline int64_t pooling_count_pieces(const flow_call *call)
{
  flow_pooling s = pooling_of(call, &call->inputs[0], &call->outputs[0]);
  return s.images * pooling_pieces(&s).bands;
}

/* Does rows [of.first, of.last) of the results of an image. */
typedef void pooling_rows(const flow_call *call, const flow_pooling *s, flow_piece of);

/* A whole call, and one of its pieces. */
static inline flow_status pooling_run(const flow_call *call, pooling_rows *rows)
{
  flow_pooling s = pooling_of(call, &call->inputs[0], &call->outputs[0]);
  for (int64_t image = 0; image < s.images; image++) rows(call, &s, (flow_piece){ .image = image, .last = s.out[0] });
  return FLOW_OK;
}

static inline flow_status pooling_run_piece(const flow_call *call, pooling_rows *rows, int64_t piece)
{
  flow_pooling s = pooling_of(call, &call->inputs[0], &call->outputs[0]);
  flow_piece_grid pieces = pooling_pieces(&s);
  rows(call, &s, flow_piece_of(&pieces, piece, s.out[0], 1));
  return FLOW_OK;
}

/* The part of a window that is inside the image: positions first .. last - 1 of `size`. */
ALWAYS_INLINE void pooling_clip(const flow_pooling *s, int axis, int64_t at, int64_t *first, int64_t *last)
{
  int64_t start = at * s->stride[axis] - s->before[axis];
  *first = start < 0 ? -start : 0;
  *last = start + s->size[axis] > s->in[axis] ? s->in[axis] - start : s->size[axis];
}

/* Whether a cell may be in several windows. */
ALWAYS_INLINE int pooling_overlaps(const flow_pooling *s)
{
  return s->stride[0] < s->size[0] || s->stride[1] < s->size[1];
}

/* Whether every cell is in exactly one window. */
ALWAYS_INLINE int pooling_covers(const flow_pooling *s)
{
  for (int axis = 0; axis < 2; axis++)
    if (s->stride[axis] != s->size[axis] || s->before[axis] + s->in[axis] > s->out[axis] * s->size[axis]) return 0;
  return 1;
}

#endif
