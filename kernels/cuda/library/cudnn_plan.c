/* cudnn_plan.c: the convolutions of library.h by cuDNN. */
#include "cuda/library/cudnn_plan.h"

#include <stdio.h>
#include <string.h>
#include "base/memory.h"
#include "cuda/library/library_plans.h"
#include "cuda/library/plan_cache.h"
#include "cuda/library/cudnn_trial.h"
#include "cuda/library/plan_store.h"
#include "cuda/library/plan_trial.h"

enum { MOST_DEVICES = 64 };

/* One handle for each device, under a lock: it is taken for the time that an enqueueing takes. */
static struct device_state {
  pthread_mutex_t   lock;
  int               opened;
  flow_cudnn_device device;
  cudnnHandle_t     handle;
} devices[MOST_DEVICES] = { [0 ... MOST_DEVICES - 1] = { .lock = PTHREAD_MUTEX_INITIALIZER } };

static flow_plan_cache plans = FLOW_PLAN_CACHE;

typedef struct plan_key { int64_t device; flow_library_convolution convolution; } plan_key;

typedef struct convolution_plan {
  flow_library_plan        general;         /* first */
  flow_cudnn_plan          plan;
  flow_cudnn_names         names;
} convolution_plan;

/* ---- graphs ------------------------------------------------------------------------------------------------------------------- */

/* Never what adds by atomics, in another order each time. What is to be exact may not round operands to fewer bits (float32 by tensor
 * cores means TF32), nor use transforms (FFT, Winograd), whose rounding differs from that of sums of products. */
unsigned flow_cudnn_refused(const flow_library_convolution *c)
{
  unsigned refused = 1u << CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
  if (c->exact && c->dtype == FLOW_FLOAT32)
    refused |= 1u << CUDNN_NUMERICAL_NOTE_TENSOR_CORE | 1u << CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS;
  if (c->exact) {
    refused |= 1u << CUDNN_NUMERICAL_NOTE_FFT | 1u << CUDNN_NUMERICAL_NOTE_WINOGRAD | 1u << CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4 |
               1u << CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6 | 1u << CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13 |
               1u << CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION;
  }
  return refused;
}

static cudnnDataType_t dtype_of(const flow_library_convolution *c)
{
  return c->dtype == FLOW_BFLOAT16 ? CUDNN_DATA_BFLOAT16 : c->dtype == FLOW_FLOAT16 ? CUDNN_DATA_HALF : CUDNN_DATA_FLOAT;
}

/* y of x and w. */
/* y = relu(x * w + bias) with what of it the formula has. Between the operations the numbers are float32 and never leave the engine. */
static int build_forward(flow_cudnn_graph *g, const flow_library_convolution *c, int x, int w, const int64_t y_sizes[4],
                         flow_cudnn_names *names)
{
  cudnnDataType_t dtype = dtype_of(c);
  int y = flow_cudnn_tensor(g, dtype, y_sizes, 0);
  int last = c->bias || c->relu ? flow_cudnn_tensor(g, CUDNN_DATA_FLOAT, y_sizes, 1) : y;
  flow_cudnn_convolution(g, c, x, w, last);
  if (c->bias) {
    int sum = c->relu ? flow_cudnn_tensor(g, CUDNN_DATA_FLOAT, y_sizes, 1) : y;
    names->bias = flow_cudnn_tensor(g, dtype, (int64_t[]){ 1, c->channels_out, 1, 1 }, 0);
    flow_cudnn_pointwise(g, CUDNN_POINTWISE_ADD, last, names->bias, sum);
    last = sum;
  }
  if (c->relu) flow_cudnn_pointwise(g, CUDNN_POINTWISE_RELU_FWD, last, 0, y);
  return y;
}

/* dx of dy and w. Inside of the plan there is float32. */
static int build_data(flow_cudnn_graph *g, const flow_library_convolution *c, int w, int dy, const int64_t x_sizes[4],
                      flow_cudnn_names *names)
{
  int dx = flow_cudnn_tensor(g, dtype_of(c), x_sizes, 0), all = c->relu ? flow_cudnn_tensor(g, CUDNN_DATA_FLOAT, x_sizes, 1) : dx;
  flow_cudnn_convolution(g, c, all, w, dy);
  if (!c->relu) return dx;
  if (c->add) {
    int sum = flow_cudnn_tensor(g, CUDNN_DATA_FLOAT, x_sizes, 1);
    names->addend = flow_cudnn_tensor(g, dtype_of(c), x_sizes, 0);
    flow_cudnn_pointwise(g, CUDNN_POINTWISE_ADD, all, names->addend, sum);
    all = sum;
  }
  names->relu = flow_cudnn_tensor(g, dtype_of(c), x_sizes, 0);
  flow_cudnn_pointwise(g, CUDNN_POINTWISE_RELU_BWD, all, names->relu, dx);
  if (!c->bias) return dx;
  names->sums = flow_cudnn_sums(g, c->channels_in);
  flow_cudnn_add_up(g, dx, names->sums);
  return dx;
}

/* The graph of a formula; `names` tells which number stands for which operand when it is run. Failures stay in the graph. */
void flow_cudnn_build(flow_cudnn_graph *g, const flow_library_convolution *c, flow_cudnn_names *names)
{
  const int64_t x_sizes[4] = { c->images, c->channels_in, c->in[0], c->in[1] };
  const int64_t w_sizes[4] = { c->channels_out, c->channels_in / c->groups, c->kernel[0], c->kernel[1] };
  const int64_t y_sizes[4] = { c->images, c->channels_out, c->out[0], c->out[1] };
  cudnnDataType_t dtype = dtype_of(c);
  *names = (flow_cudnn_names){ 0 };
  int w = flow_cudnn_tensor(g, dtype, w_sizes, 0);
  if (c->direction == FLOW_LIBRARY_FORWARD) {
    names->first = flow_cudnn_tensor(g, dtype, x_sizes, 0);
    names->second = w;
    names->result = build_forward(g, c, names->first, w, y_sizes, names);
  } else if (c->direction == FLOW_LIBRARY_DATA) {
    names->first = flow_cudnn_tensor(g, dtype, y_sizes, 0);
    names->second = w;
    names->result = build_data(g, c, w, names->first, x_sizes, names);
  } else {
    names->first = flow_cudnn_tensor(g, dtype, x_sizes, 0);
    names->second = flow_cudnn_tensor(g, dtype, y_sizes, 0);
    names->result = w;
    flow_cudnn_convolution(g, c, names->first, w, names->second);
  }
}

/* ---- plans -------------------------------------------------------------------------------------------------------------------- */

/* The device's description and handle, made on first use; the caller holds its lock. */
static flow_status open_device(struct device_state *state, int index)
{
  const flow_cudnn *cudnn = flow_cuda_cudnn();
  if (!cudnn) return flow_fail(FLOW_UNSUPPORTED, "cuDNN is not installed");
  if (state->opened) return FLOW_OK;
  FLOW_TRY(flow_cudnn_device_open(cudnn, index, NULL, &state->device));
  cudnnStatus_t status = cudnn->cudnnCreate(&state->handle);
  if (status != CUDNN_STATUS_SUCCESS) {
    flow_cudnn_device_close(&state->device);
    return flow_fail(FLOW_UNSUPPORTED, "cuDNN: no handle for gpu:%d: %s", index, cudnn->cudnnGetErrorString(status));
  }
  state->device.handle = state->handle;
  state->device.busy = &state->lock;
  state->opened = 1;
  return FLOW_OK;
}

/* "deviceName":"NVIDIA H200" of a device's description, if it is there. */
static void add_field(char *key, size_t size, const char *description, const char *name)
{
  const char *at = strstr(description, name);
  size_t length = strlen(key);
  if (at) snprintf(key + length, size - length, " %.*s", (int)strcspn(at, ",}"), at);
}

/* What decides which plan it is: cuDNN's version, the kind of device, the algorithms that are refused, the formula, and whether several are
 * tried. */
static flow_status store_key(const flow_cudnn_device *device, const flow_library_convolution *convolution, char *key, size_t size)
{
  static const char *const fields[] = { "\"deviceName\":", "\"deviceVer\":", "\"multiProcessorCount\":", "\"driverVer\":" };
  char *description;
  FLOW_TRY(flow_cudnn_device_json(device, &description));
  snprintf(key, size, "cuDNN %zu", device->cudnn->cudnnGetVersion());
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) add_field(key, size, description, fields[i]);
  flow_free(description);
  size_t length = strlen(key);
  length += (size_t)snprintf(key + length, size - length, " refused=%x%s ", flow_cudnn_refused(convolution),
                             flow_plan_trials(convolution->exact) > 1 ? " tuned" : "");
  if (length < size) flow_library_convolution_text(convolution, key + length, size - length);
  return FLOW_OK;
}

/* A new plan, which is kept for later runs. What runs is its text read back, from the first time on: so NVIDIA documents plans that are
 * made for a described device (cuDNN's "deviceless ahead-of-time compilation"); handles in graphs and plans are deprecated. */
static flow_status find_plan(flow_cudnn_graph *graph, const flow_cudnn_device *device, const flow_library_convolution *convolution,
                             const flow_cudnn_names *names, const char *key, flow_cudnn_plan *out)
{
  flow_cudnn_plan again, all[FLOW_PLAN_TRIALS];
  char *text = NULL;
  int count = 0;
  FLOW_TRY(flow_cudnn_plans_find(graph, device, flow_cudnn_refused(convolution), flow_plan_trials(convolution->exact), all, &count));
  int chosen = flow_cudnn_trial(device, convolution, names, all, count);
  for (int p = 0; p < count; p++)
    if (p != chosen) flow_cudnn_plan_release(device->cudnn, &all[p]);
  *out = all[chosen];
  if (flow_cudnn_plan_json(device->cudnn, out, &text) != FLOW_OK) return FLOW_OK;
  flow_plan_store_write(key, text);
  if (flow_cudnn_plan_read(device, text, &again) == FLOW_OK) {
    again.tried = out->tried;
    flow_cudnn_plan_release(device->cudnn, out);
    *out = again;
  }
  flow_free(text);
  return FLOW_OK;
}

flow_status flow_cudnn_plan_of(const flow_cudnn_device *device, const flow_library_convolution *convolution, flow_cudnn_names *names,
                               flow_cudnn_plan *out)
{
  char key[FLOW_LIBRARY_TEXT + 512] = "", *text = NULL;
  flow_cudnn_graph graph;
  flow_cudnn_graph_begin(&graph, device->cudnn);
  flow_cudnn_build(&graph, convolution, names);
  flow_status status = store_key(device, convolution, key, sizeof key);
  if (status == FLOW_OK) text = flow_plan_store_read(key);
  if (status == FLOW_OK && (!text || flow_cudnn_plan_read(device, text, out) != FLOW_OK))
    status = find_plan(&graph, device, convolution, names, key, out);
  flow_cudnn_graph_end(&graph);
  flow_free(text);
  return status;
}

/* For plan_cache.h, under its lock. The device's own lock is held for opening only: a plan may take seconds. */
static flow_status make_plan(const void *key, void *plan)
{
  const plan_key *wanted = key;
  convolution_plan *made = plan;
  struct device_state *state = &devices[wanted->device];
  pthread_mutex_lock(&state->lock);
  flow_status status = open_device(state, (int)wanted->device);
  pthread_mutex_unlock(&state->lock);
  if (status != FLOW_OK) return status;
  FLOW_TRY(flow_cudnn_plan_of(&state->device, &wanted->convolution, &made->names, &made->plan));
  made->general.workspace = (size_t)made->plan.workspace;
  return FLOW_OK;
}

const flow_library_plan *flow_convolution_plan(const flow_call *call, const flow_library_convolution *convolution)
{
  plan_key key;
  memset(&key, 0, sizeof key);
  key.device = flow_cuda_device_index(call);
  memcpy(&key.convolution, convolution, sizeof *convolution);
  if (key.device < 0 || key.device >= MOST_DEVICES) return NULL;
  return flow_plan_cache_find(&plans, &key, sizeof key, sizeof(convolution_plan), make_plan);
}

/* ---- running ------------------------------------------------------------------------------------------------------------------ */

/* A pack is made for each run: it is small and belongs to one thread. A handle has one stream at a time, hence the lock around choosing it
 * and enqueueing. The pack may go at once: cuDNN has read it when
 * the call returns. */
flow_status flow_convolution_run(const flow_call *call, const flow_library_plan *plan, const flow_library_operands *operands)
{
  const convolution_plan *made = (const convolution_plan *)plan;
  struct device_state *state = &devices[flow_cuda_device_index(call)];
  const flow_cudnn *cudnn = state->device.cudnn;
  cudnnBackendDescriptor_t packed = NULL;
  cudnnStatus_t status = flow_cudnn_pack(cudnn, &made->names, operands, &packed);
  if (status == CUDNN_STATUS_SUCCESS) {
    pthread_mutex_lock(&state->lock);
    status = cudnn->cudnnSetStream(state->handle, flow_cuda_stream(call));
    if (status == CUDNN_STATUS_SUCCESS) status = cudnn->cudnnBackendExecute(state->handle, made->plan.descriptor, packed);
    pthread_mutex_unlock(&state->lock);
  }
  if (packed) cudnn->cudnnBackendDestroyDescriptor(packed);
  if (status == CUDNN_STATUS_SUCCESS) return FLOW_OK;
  char why[300] = "";
  cudnn->cudnnGetLastErrorString(why, sizeof why);
  return flow_fail(FLOW_UNSUPPORTED, "cuDNN cannot run a convolution: %s %s", cudnn->cudnnGetErrorString(status), why);
}
