/* approval.h: how replicas on several devices make a step together or not at all, without waiting. Each counts the steps, and writes the
 * number of this one, or 0 where it has refused data; these votes are added up; and whoever does not find what all together must give
 * refuses what follows, too. A sum that was ended before it was complete may hold what is left of earlier ones, which is less.
 *
 * No family that is bundled: a launch of it comes between those before and after it. */
#ifndef FLOW_CUDA_OPS_APPROVAL_H
#define FLOW_CUDA_OPS_APPROVAL_H

#include "cuda/runtime/fault.h"

/* votes[0]: to be added up; votes[1]: the number of steps so far. */
typedef struct approve_arguments { const flow_device_fault *fault; double *votes; } approve_arguments;

BODY void approve(int64_t i, const approve_arguments *p)
{
  (void)i;
  p->votes[1] += 1;
  p->votes[0] = is_refused(p->fault) ? 0 : p->votes[1];
}

typedef struct require_approval_arguments { flow_device_fault *fault; const double *votes; double all; } require_approval_arguments;

BODY void require_approval(int64_t i, const require_approval_arguments *p)
{
  (void)i;
  if (!(p->votes[0] == p->all * p->votes[1])) raise_fault(p->fault, FAULT_ELSEWHERE, 0, 0, 0, 0, (const flow_scalars *)0);
}

#define APPROVAL_KERNELS(ELEMENT, BLOCK) ELEMENT(approve) ELEMENT(require_approval)

#endif
