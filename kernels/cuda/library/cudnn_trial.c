/* cudnn_trial.c: see cudnn_trial.h. */
#include "cuda/library/cudnn_trial.h"

#include <pthread.h>
#include "cuda/library/plan_stage.h"
#include "cuda/library/plan_trial.h"
#include "tensor/tensor.h"

typedef struct trial {
  const flow_cudnn_device *device;
  const flow_cudnn_names *names;
  const flow_cudnn_plan *plans;
  flow_library_operands operands;
  flow_plan_stage stage;
} trial;

cudnnStatus_t flow_cudnn_pack(const flow_cudnn *cudnn, const flow_cudnn_names *names, const flow_library_operands *operands,
                              cudnnBackendDescriptor_t *out)
{
  const struct {
    int name;
    const void *data;
  } all[] = {
    { names->first, operands->first }, { names->second, operands->second }, { names->result, operands->result },
    { names->bias, operands->bias },   { names->addend, operands->addend }, { names->relu, operands->relu },
    { names->sums, operands->sums },
  };
  int64_t ids[sizeof all / sizeof *all], count = 0;
  const void *data[sizeof all / sizeof *all], *workspace = operands->workspace;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    if (!all[i].name) continue;
    ids[count] = all[i].name;
    data[count++] = all[i].data;
  }
  cudnnBackendDescriptor_t d = NULL;
  cudnnStatus_t status = cudnn->cudnnBackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &d);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  *out = d;
  status = cudnn->cudnnBackendSetAttribute(d, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, ids);
  if (status == CUDNN_STATUS_SUCCESS)
    status = cudnn->cudnnBackendSetAttribute(d, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, data);
  if (status == CUDNN_STATUS_SUCCESS)
    status = cudnn->cudnnBackendSetAttribute(d, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
  if (status == CUDNN_STATUS_SUCCESS) status = cudnn->cudnnBackendFinalize(d);
  return status;
}

/* A stage with memory for all operands and the largest workspace. */
static int open_stage(trial *t, const flow_library_convolution *c, int count)
{
  int64_t size = flow_dtype_size(c->dtype), workspace = 0;
  int64_t x = c->images * c->in[0] * c->in[1] * c->channels_in, y = c->images * c->out[0] * c->out[1] * c->channels_out;
  int64_t w = c->channels_out * c->kernel[0] * c->kernel[1] * (c->channels_in / c->groups);
  for (int p = 0; p < count; p++)
    if (t->plans[p].workspace > workspace) workspace = t->plans[p].workspace;
  const int64_t bytes[FLOW_PLAN_OPERANDS] = { x * size, w * size, y * size,           c->channels_out * size,
                                              x * size, x * size, c->channels_in * 4, workspace };
  void *at[FLOW_PLAN_OPERANDS];
  if (!flow_plan_stage_open(&t->stage, bytes, at)) return 0;
  int forward = c->direction == FLOW_LIBRARY_FORWARD, data = c->direction == FLOW_LIBRARY_DATA;
  t->operands = (flow_library_operands){
    .first = data ? at[2] : at[0],
    .second = forward || data ? at[1] : at[2],
    .result = forward ? at[2]
              : data  ? at[0]
                      : at[1],
    .bias = at[3],
    .addend = at[4],
    .relu = at[5],
    .sums = at[6],
    .workspace = at[7]
  };
  return 1;
}

static cudnnStatus_t enqueue(const trial *t, const flow_cudnn_plan *plan, cudnnBackendDescriptor_t packed)
{
  const flow_cudnn *cudnn = t->device->cudnn;
  pthread_mutex_lock(t->device->busy);
  cudnnStatus_t status = cudnn->cudnnSetStream(t->device->handle, t->stage.stream);
  if (status == CUDNN_STATUS_SUCCESS && !flow_plan_stage_begin(&t->stage)) status = CUDNN_STATUS_EXECUTION_FAILED;
  for (int i = 0; i < FLOW_PLAN_REPEATS && status == CUDNN_STATUS_SUCCESS; i++)
    status = cudnn->cudnnBackendExecute(t->device->handle, plan->descriptor, packed);
  if (status == CUDNN_STATUS_SUCCESS && !flow_plan_stage_end(&t->stage)) status = CUDNN_STATUS_EXECUTION_FAILED;
  pthread_mutex_unlock(t->device->busy);
  return status;
}

/* For plan_trial.h. */
static flow_status run(void *state, int plan, float *milliseconds)
{
  trial *t = state;
  const flow_cudnn *cudnn = t->device->cudnn;
  cudnnBackendDescriptor_t packed = NULL;
  cudnnStatus_t status = flow_cudnn_pack(cudnn, t->names, &t->operands, &packed);
  if (status == CUDNN_STATUS_SUCCESS) status = enqueue(t, &t->plans[plan], packed);
  if (packed) cudnn->cudnnBackendDestroyDescriptor(packed);
  if (status != CUDNN_STATUS_SUCCESS) return flow_fail(FLOW_UNSUPPORTED, "cuDNN cannot run a plan on trial");
  return flow_plan_stage_time(&t->stage, milliseconds);
}

int flow_cudnn_trial(const flow_cudnn_device *device, const flow_library_convolution *convolution, const flow_cudnn_names *names,
                     const flow_cudnn_plan *plans, int count)
{
  trial t = { .device = device, .names = names, .plans = plans };
  if (!device->handle || count <= 1 || !open_stage(&t, convolution, count)) return 0;
  int chosen = flow_plan_fastest(count, run, &t);
  flow_plan_stage_close(&t.stage);
  return chosen;
}
