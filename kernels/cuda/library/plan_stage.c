/* plan_stage.c: see plan_stage.h. */
#include "cuda/library/plan_stage.h"

#include <pthread.h>
#include <string.h>

/* BYTE: what operands are filled with; as a float of 16 or 32 bits it is near 0.01 or 1, and zeros would be faster than numbers are. */
enum { ALIGNMENT = 256, BYTE = 0x3c };

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

static int take_memory(flow_plan_stage *stage, const int64_t *bytes, void **operands)
{
  size_t total = 0, at[FLOW_PLAN_OPERANDS];
  for (int i = 0; i < FLOW_PLAN_OPERANDS; i++) {
    at[i] = total;
    total += ((size_t)bytes[i] + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  }
  if (cudaMalloc(&stage->memory, total) != cudaSuccess) {
    stage->memory = NULL;
    cudaGetLastError(); /* forgotten: nothing has failed */
    return 0;
  }
  for (int i = 0; i < FLOW_PLAN_OPERANDS; i++) operands[i] = (char *)stage->memory + at[i];
  return cudaMemsetAsync(stage->memory, BYTE, total, stage->stream) == cudaSuccess;
}

/* A thread that records must not take memory, wait or load kernels, as libraries do at their first run, unless it says that it means
 * another stream than the recorded one: that is the relaxed mode. */
int flow_plan_stage_open(flow_plan_stage *stage, const int64_t bytes[FLOW_PLAN_OPERANDS], void *operands[FLOW_PLAN_OPERANDS])
{
  memset(stage, 0, sizeof *stage);
  pthread_mutex_lock(&one_at_a_time);
  stage->mode = cudaStreamCaptureModeRelaxed;
  cudaThreadExchangeStreamCaptureMode(&stage->mode);
  if (cudaStreamCreateWithFlags(&stage->stream, cudaStreamNonBlocking) == cudaSuccess && cudaEventCreate(&stage->begin) == cudaSuccess &&
      cudaEventCreate(&stage->end) == cudaSuccess && take_memory(stage, bytes, operands))
    return 1;
  flow_plan_stage_close(stage);
  return 0;
}

int flow_plan_stage_begin(const flow_plan_stage *stage)
{
  return cudaEventRecord(stage->begin, stage->stream) == cudaSuccess;
}

int flow_plan_stage_end(const flow_plan_stage *stage)
{
  return cudaEventRecord(stage->end, stage->stream) == cudaSuccess;
}

flow_status flow_plan_stage_time(const flow_plan_stage *stage, float *milliseconds)
{
  cudaError_t error = cudaEventSynchronize(stage->end);
  if (error == cudaSuccess) error = cudaEventElapsedTime(milliseconds, stage->begin, stage->end);
  return error == cudaSuccess ? FLOW_OK : flow_fail(FLOW_UNSUPPORTED, "a plan on trial failed: %s", cudaGetErrorString(error));
}

void flow_plan_stage_close(flow_plan_stage *stage)
{
  if (stage->stream) cudaStreamSynchronize(stage->stream);
  if (stage->memory) cudaFree(stage->memory);
  if (stage->begin) cudaEventDestroy(stage->begin);
  if (stage->end) cudaEventDestroy(stage->end);
  if (stage->stream) cudaStreamDestroy(stage->stream);
  cudaThreadExchangeStreamCaptureMode(&stage->mode);
  pthread_mutex_unlock(&one_at_a_time);
}
