/* cudnn_trial.c: see cudnn_trial.h. */
#include "cuda/library/cudnn_trial.h"

#include <pthread.h>
#include "cuda/library/plan_trial.h"
#include "tensor/tensor.h"

/* REPEATS: runs that are timed together, since one may take less than events can tell. BYTE: what operands are filled with; as a float of
 * 16 or 32 bits it is near 0.01 or 1, and zeros would be faster than numbers are. */
enum { REPEATS = 4, OPERANDS = 7, ALIGNMENT = 256, BYTE = 0x3c };

typedef struct trial {
  const flow_cudnn_device *device;
  const flow_cudnn_names *names;
  const flow_cudnn_plan *plans;
  flow_library_operands operands;
  cudaStream_t stream;
  cudaEvent_t begin, end;
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

/* Takes memory for all operands and the largest workspace, one after the other in *block. 0: there is not enough. */
static int take_memory(trial *t, const flow_library_convolution *c, int count, char **block)
{
  int64_t size = flow_dtype_size(c->dtype), workspace = 0, total = 0;
  int64_t x = c->images * c->in[0] * c->in[1] * c->channels_in, y = c->images * c->out[0] * c->out[1] * c->channels_out;
  int64_t w = c->channels_out * c->kernel[0] * c->kernel[1] * (c->channels_in / c->groups);
  for (int p = 0; p < count; p++)
    if (t->plans[p].workspace > workspace) workspace = t->plans[p].workspace;
  const int64_t bytes[OPERANDS + 1] = { x * size, w * size, y * size,           c->channels_out * size,
                                        x * size, x * size, c->channels_in * 4, workspace };
  char *at[OPERANDS + 1];
  for (int i = 0; i <= OPERANDS; i++) total += (bytes[i] + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  void *memory;
  if (cudaMalloc(&memory, (size_t)total) != cudaSuccess) {
    cudaGetLastError(); /* forgotten: nothing has failed */
    return 0;
  }
  *block = memory;
  total = 0;
  for (int i = 0; i <= OPERANDS; i++) {
    at[i] = *block + total;
    total += (bytes[i] + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  }
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
    .sums = (float *)at[6],
    .workspace = at[7]
  };
  return cudaMemsetAsync(*block, BYTE, (size_t)total, t->stream) == cudaSuccess;
}

static cudnnStatus_t enqueue(const trial *t, const flow_cudnn_plan *plan, cudnnBackendDescriptor_t packed)
{
  const flow_cudnn *cudnn = t->device->cudnn;
  pthread_mutex_lock(t->device->busy);
  cudnnStatus_t status = cudnn->cudnnSetStream(t->device->handle, t->stream);
  if (status == CUDNN_STATUS_SUCCESS && cudaEventRecord(t->begin, t->stream) != cudaSuccess) status = CUDNN_STATUS_EXECUTION_FAILED;
  for (int i = 0; i < REPEATS && status == CUDNN_STATUS_SUCCESS; i++)
    status = cudnn->cudnnBackendExecute(t->device->handle, plan->descriptor, packed);
  if (status == CUDNN_STATUS_SUCCESS && cudaEventRecord(t->end, t->stream) != cudaSuccess) status = CUDNN_STATUS_EXECUTION_FAILED;
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
  cudaError_t error = cudaEventSynchronize(t->end);
  if (error == cudaSuccess) error = cudaEventElapsedTime(milliseconds, t->begin, t->end);
  return error == cudaSuccess ? FLOW_OK : flow_fail(FLOW_UNSUPPORTED, "a plan on trial failed: %s", cudaGetErrorString(error));
}

int flow_cudnn_trial(const flow_cudnn_device *device, const flow_library_convolution *convolution, const flow_cudnn_names *names,
                     const flow_cudnn_plan *plans, int count)
{
  static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
  trial t = { .device = device, .names = names, .plans = plans };
  char *block = NULL;
  int chosen = 0;
  if (!device->handle || count <= 1) return 0;
  pthread_mutex_lock(&one_at_a_time);
  int ready = cudaStreamCreateWithFlags(&t.stream, cudaStreamNonBlocking) == cudaSuccess && cudaEventCreate(&t.begin) == cudaSuccess &&
              cudaEventCreate(&t.end) == cudaSuccess && take_memory(&t, convolution, count, &block);
  if (ready) chosen = flow_plan_fastest(count, run, &t);
  if (t.stream) cudaStreamSynchronize(t.stream);
  if (block) cudaFree(block);
  if (t.begin) cudaEventDestroy(t.begin);
  if (t.end) cudaEventDestroy(t.end);
  if (t.stream) cudaStreamDestroy(t.stream);
  pthread_mutex_unlock(&one_at_a_time);
  return chosen;
}
