/* plan_stage.h: where plans of libraries are tried (plan_trial.h): a separate stream, memory for the operands, and a clock of the
 * device. There is one stage at a time in a process, since trials side by side would disturb each other. */
#ifndef FLOW_CUDA_LIBRARY_PLAN_STAGE_H
#define FLOW_CUDA_LIBRARY_PLAN_STAGE_H

#include <cuda_runtime_api.h>
#include <stdint.h>
#include "base/status.h"

/* REPEATS: runs that are timed together, since one may take less than events can tell. */
enum { FLOW_PLAN_OPERANDS = 8, FLOW_PLAN_REPEATS = 4 };

typedef struct flow_plan_stage {
  cudaStream_t stream;
  cudaEvent_t begin, end;
  void *memory;
  enum cudaStreamCaptureMode mode; /* the thread's, before */
} flow_plan_stage;

/* Opens a stage on the thread's current device, with memory of `bytes[i]` for operand i at operands[i], a multiple of 256 bytes, filled
 * with small numbers. Returns 0, and leaves nothing open, where there is not enough memory, which is not a failure. The thread may be
 * recording another stream. */
int flow_plan_stage_open(flow_plan_stage *stage, const int64_t bytes[FLOW_PLAN_OPERANDS], void *operands[FLOW_PLAN_OPERANDS]);
/* Before and after FLOW_PLAN_REPEATS runs are enqueued on the stage's stream: 0 if that failed. */
int flow_plan_stage_begin(const flow_plan_stage *stage);
int flow_plan_stage_end(const flow_plan_stage *stage);
/* Waits for them, and tells how long they took. */
flow_status flow_plan_stage_time(const flow_plan_stage *stage, float *milliseconds);
void flow_plan_stage_close(flow_plan_stage *stage);

#endif
