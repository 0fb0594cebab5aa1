/* fault.h: what kernels found wrong in their data. A queue has room for one fault in the device's memory: the first one stays until the
 * host waits for the queue and raises it. Until then effects write nothing, whichever thread enqueued them: a step that was refused, and
 * the steps after it, change no variable, although the host did not wait. */
#ifndef FLOW_CUDA_RUNTIME_FAULT_H
#define FLOW_CUDA_RUNTIME_FAULT_H

#include "cuda/device/body.h"
#include "kernels.h"

typedef enum flow_fault_kind { FAULT_NONE = 0, FAULT_LABEL, FAULT_INDEX, FAULT_ELSEWHERE } flow_fault_kind;

/* ELSEWHERE: another device did not approve of the step (ops/step/approval.c). Else the value in row `row` of the batch is not in
 * [0, bound); op: a flow_op, for the message; row counts from 0; step: as the run's scalars count. */
typedef struct flow_device_fault { int32_t kind, op; int64_t value, bound, row, step; } flow_device_fault;

/* kind is taken first, so that one thread writes the rest. */
BODY void raise_fault(flow_device_fault *fault, int kind, int op, int64_t value, int64_t bound, int64_t row, const flow_scalars *scalars)
{
#if defined(__CUDACC__)
  if (atomicCAS(&fault->kind, FAULT_NONE, kind) != FAULT_NONE) return;
#else
  if (fault->kind != FAULT_NONE) return;
  fault->kind = kind;
#endif
  fault->op = op;
  fault->value = value;
  fault->bound = bound;
  fault->row = row;
  fault->step = scalars ? scalars->step : 0;
}

/* Whether effects are to write nothing. */
BODY int is_refused(const flow_device_fault *fault) { return fault->kind != FAULT_NONE; }

#endif
