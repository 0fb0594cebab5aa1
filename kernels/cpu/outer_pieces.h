/* outer_pieces.h: pieces of calls whose results are computed element by element, or copied: the first axis of the first output that has
 * more than one element is cut into ranges, so that a single image is divided by its rows. A piece is the same call over operands that
 * begin later and are shorter; operands that do not have the axis, or one element of it, come whole. */
#ifndef FLOW_CPU_OUTER_PIECES_H
#define FLOW_CPU_OUTER_PIECES_H

#include "cpu/piece_grid.h"
#include "kernels.h"
#include "flow.h"
#include "ops/op.h"

/* The run() of a MAP kernel, which does a whole call. */
typedef flow_status flow_run_function(const flow_call *call, int phase, int64_t begin, int64_t end);

/* The axis that is cut: the first one that is not 1. -1: the output has at most one element. */
static inline int flow_outer_axis(const flow_operand *out)
{
  for (int axis = 0; axis < out->rank; axis++)
    if (out->shape[axis] != 1) return axis;
  return -1;
}

/* By the output's shape and the number of inputs alone. A call of more than FLOW_MAX_OPERANDS inputs, which concat may have, is one piece:
 * flow_run_outer_piece keeps the operands of a piece on the stack. */
static inline int64_t flow_outer_pieces(const flow_call *call)
{
  enum { WANTED = 16, LEAST_BYTES = 12 << 10 }; /* pieces; of one: about a microsecond */
  const flow_operand *out = &call->outputs[0];
  int axis = flow_outer_axis(out);
  if (axis < 0 || call->input_count > FLOW_MAX_OPERANDS) return 1;
  int64_t bytes = (int64_t)flow_dtype_size(out->dtype);
  for (int i = axis; i < out->rank; i++) bytes *= out->shape[i];
  int64_t pieces = bytes / LEAST_BYTES < WANTED ? flow_power_of_two(bytes / LEAST_BYTES) : WANTED;
  if (pieces > out->shape[axis]) pieces = out->shape[axis];
  return pieces > 1 ? pieces : 1;
}

/* `axis` of an output of this rank: the range [begin, end) of the operand, which is aligned with it at the last axis. */
static inline flow_operand flow_outer_range(const flow_operand *whole, int rank, int axis, int64_t begin, int64_t end)
{
  flow_operand part = *whole;
  int own = axis - (rank - whole->rank);
  if (own < 0 || whole->shape[own] == 1) return part;
  part.shape[own] = end - begin;
  if (part.data) part.data = (char *)part.data + begin * whole->strides[own] * (int64_t)flow_dtype_size(whole->dtype);
  return part;
}

/* Piece number `piece` of flow_outer_pieces(call): run() over the operands' ranges, with the member's own scratch block, which is as
 * large as for the whole call. Where the call is one piece it is run as it is, since there may be more operands than fit the arrays. */
static inline flow_status flow_run_outer_piece(flow_run_function *run, const flow_call *call, int64_t piece)
{
  const flow_operand *out = &call->outputs[0];
  int axis = flow_outer_axis(out);
  int64_t pieces = flow_outer_pieces(call);
  if (pieces == 1) return run(call, 0, 0, 1);
  int64_t begin = out->shape[axis] * piece / pieces, end = out->shape[axis] * (piece + 1) / pieces;
  flow_operand inputs[FLOW_MAX_OPERANDS], outputs[FLOW_MAX_OPERANDS];
  for (int i = 0; i < call->input_count; i++) inputs[i] = flow_outer_range(&call->inputs[i], out->rank, axis, begin, end);
  for (int i = 0; i < call->output_count; i++) outputs[i] = flow_outer_range(&call->outputs[i], out->rank, axis, begin, end);
  flow_call part = *call;
  part.inputs = inputs;
  part.outputs = outputs;
  return run(&part, 0, 0, 1);
}

#endif
