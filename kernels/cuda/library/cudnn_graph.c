/* cudnn_graph.c: cuDNN's descriptors: created, given their attributes, finalized. */
#include "cuda/library/cudnn_graph.h"

#include <stdbool.h>
#include <string.h>
#include "base/memory.h"

/* How many configurations of one mode are asked for: cuDNN names them from the best on. */
enum { MOST_CONFIGURATIONS = 32 };
/* A plan that needs more is left out: the memory is better used for a larger batch. */
static const int64_t most_workspace = (int64_t)1 << 30;

/* The configurations that did not work leave their reasons in cuDNN's log, not in a message. */
static flow_status fail(const flow_cudnn *cudnn, cudnnStatus_t status, const char *what)
{
  char why[400] = "";
  cudnn->cudnnGetLastErrorString(why, sizeof why);
  return flow_fail(status == CUDNN_STATUS_ALLOC_FAILED ? FLOW_OUT_OF_MEMORY : FLOW_UNSUPPORTED, "cuDNN: %s: %s (%d) %s", what,
                   cudnn->cudnnGetErrorString(status), (int)status, why);
}

static flow_status check(const flow_cudnn *cudnn, cudnnStatus_t status, const char *what)
{
  return status == CUDNN_STATUS_SUCCESS ? FLOW_OK : fail(cudnn, status, what);
}

/* ---- descriptors under construction ------------------------------------------------------------------------------------------ */

/* A new descriptor, which the graph owns; NULL once something failed. This and the next functions do nothing after the first failure, so
 * that a graph is written down without a test after every line; the place that needs the result looks at g->status. */
static cudnnBackendDescriptor_t make(flow_cudnn_graph *g, cudnnBackendDescriptorType_t type)
{
  cudnnBackendDescriptor_t descriptor = NULL;
  if (g->status != FLOW_OK) return NULL;
  if (g->made_count == FLOW_CUDNN_DESCRIPTORS) {
    g->status = flow_fail(FLOW_INVALID_ARGUMENT, "a cuDNN graph has more than %d descriptors", FLOW_CUDNN_DESCRIPTORS);
    return NULL;
  }
  g->status = check(g->cudnn, g->cudnn->cudnnBackendCreateDescriptor(type, &descriptor), "a descriptor is refused");
  if (g->status == FLOW_OK) g->made[g->made_count++] = descriptor;
  return descriptor;
}

static void set(flow_cudnn_graph *g, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                int64_t count, const void *values)
{
  if (g->status != FLOW_OK) return;
  cudnnStatus_t status = g->cudnn->cudnnBackendSetAttribute(d, name, type, count, values);
  if (status != CUDNN_STATUS_SUCCESS) g->status = fail(g->cudnn, status, "an attribute is refused");
}

static void set_tensor(flow_cudnn_graph *g, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, int tensor)
{
  set(g, d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &g->tensors[tensor]);
}

static void finalize(flow_cudnn_graph *g, cudnnBackendDescriptor_t d, const char *what)
{
  if (g->status == FLOW_OK) g->status = check(g->cudnn, g->cudnn->cudnnBackendFinalize(d), what);
}

/* Operations are finalized in the order in which they are added; they know each other by their tensors. */
static void add_operation(flow_cudnn_graph *g, cudnnBackendDescriptor_t operation)
{
  finalize(g, operation, "an operation is refused");
  if (g->status == FLOW_OK && g->operation_count == FLOW_CUDNN_OPERATIONS)
    g->status = flow_fail(FLOW_INVALID_ARGUMENT, "a cuDNN graph has more than %d operations", FLOW_CUDNN_OPERATIONS);
  if (g->status == FLOW_OK) g->operations[g->operation_count++] = operation;
}

void flow_cudnn_graph_begin(flow_cudnn_graph *graph, const flow_cudnn *cudnn)
{
  memset(graph, 0, sizeof *graph);
  graph->cudnn = cudnn;
}

void flow_cudnn_graph_end(flow_cudnn_graph *graph)
{
  while (graph->made_count > 0) graph->cudnn->cudnnBackendDestroyDescriptor(graph->made[--graph->made_count]);
}

/* A packed tensor with neighbouring channels (NHWC in memory). Returns its number, from 1 on, also after a failure: the caller goes on.
 * align: the multiple of bytes at which its data begin; engines that want more are not named. */
static int add_tensor(flow_cudnn_graph *g, cudnnDataType_t dtype, const int64_t sizes[4], int64_t align, int inner)
{
  const int64_t strides[4] = { sizes[1] * sizes[2] * sizes[3], 1, sizes[1] * sizes[3], sizes[1] };
  bool is_virtual = inner != 0;
  int64_t id = g->tensor_count + 1;
  if (g->tensor_count == FLOW_CUDNN_TENSORS) {
    if (g->status == FLOW_OK) g->status = flow_fail(FLOW_INVALID_ARGUMENT, "a cuDNN graph has more than %d tensors", FLOW_CUDNN_TENSORS);
    return 0;
  }
  cudnnBackendDescriptor_t d = make(g, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  set(g, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
  set(g, d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &dtype);
  set(g, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &align);
  set(g, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, sizes);
  set(g, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides);
  set(g, d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
  finalize(g, d, "a tensor is refused");
  g->tensors[++g->tensor_count] = d;
  return g->tensor_count;
}

int flow_cudnn_tensor(flow_cudnn_graph *g, cudnnDataType_t dtype, const int64_t sizes[4], int inner)
{
  return add_tensor(g, dtype, sizes, 16, inner);
}

int flow_cudnn_sums(flow_cudnn_graph *g, int64_t channels)
{
  return add_tensor(g, CUDNN_DATA_FLOAT, (int64_t[]){ 1, channels, 1, 1 }, sizeof(float), 0);
}

/* y = x * w without a factor (alpha 1) and without what was there before (beta 0). CROSS_CORRELATION: filters are not turned, as in
 * every framework. */
void flow_cudnn_convolution(flow_cudnn_graph *g, const flow_library_convolution *c, int x, int w, int y)
{
  static const struct {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t x, w, y, convolution, alpha, beta;
  } names[] = {
    [FLOW_LIBRARY_FORWARD] = {
      CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA },
    [FLOW_LIBRARY_DATA] = {
      CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA },
    [FLOW_LIBRARY_FILTER] = {
      CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA },
  };
  const cudnnDataType_t sums = CUDNN_DATA_FLOAT;
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  const int64_t axes = 2;
  const float one = 1, zero = 0;
  cudnnBackendDescriptor_t d = make(g, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  set(g, d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &axes);
  set(g, d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &sums);
  set(g, d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
  set(g, d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, c->before);
  set(g, d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, c->after);
  set(g, d, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, c->dilation);
  set(g, d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, c->stride);
  finalize(g, d, "a convolution is refused");
  cudnnBackendDescriptor_t operation = make(g, names[c->direction].type);
  set_tensor(g, operation, names[c->direction].x, x);
  set_tensor(g, operation, names[c->direction].w, w);
  set_tensor(g, operation, names[c->direction].y, y);
  set(g, operation, names[c->direction].convolution, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &d);
  set(g, operation, names[c->direction].alpha, CUDNN_TYPE_FLOAT, 1, &one);
  set(g, operation, names[c->direction].beta, CUDNN_TYPE_FLOAT, 1, &zero);
  add_operation(g, operation);
}

void flow_cudnn_pointwise(flow_cudnn_graph *g, cudnnPointwiseMode_t mode, int x, int b, int y)
{
  const cudnnDataType_t computed = CUDNN_DATA_FLOAT;
  int backward = mode == CUDNN_POINTWISE_RELU_BWD;
  cudnnBackendDescriptor_t d = make(g, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  set(g, d, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
  set(g, d, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &computed);
  if (mode == CUDNN_POINTWISE_RELU_FWD && g->status == FLOW_OK) {
    /* A NaN stays one. A wish: a cuDNN that no longer knows it does as it does. */
    const cudnnNanPropagation_t propagate = CUDNN_PROPAGATE_NAN;
    g->cudnn->cudnnBackendSetAttribute(d, CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION, 1, &propagate);
  }
  finalize(g, d, "an elementwise operation is refused");
  cudnnBackendDescriptor_t operation = make(g, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  set(g, operation, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &d);
  if (backward) {
    set_tensor(g, operation, CUDNN_ATTR_OPERATION_POINTWISE_DYDESC, x);
    set_tensor(g, operation, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, b);
    set_tensor(g, operation, CUDNN_ATTR_OPERATION_POINTWISE_DXDESC, y);
  } else {
    set_tensor(g, operation, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (b) set_tensor(g, operation, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
    set_tensor(g, operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  }
  add_operation(g, operation);
}

void flow_cudnn_add_up(flow_cudnn_graph *g, int x, int y)
{
  const cudnnDataType_t computed = CUDNN_DATA_FLOAT;
  const cudnnReduceTensorOp_t add = CUDNN_REDUCE_TENSOR_ADD;
  const bool always_the_same = true;         /* otherwise engines add by atomics */
  cudnnBackendDescriptor_t d = make(g, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  set(g, d, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &add);
  set(g, d, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &computed);
  set(g, d, CUDNN_ATTR_REDUCTION_IS_DETERMINISTIC, CUDNN_TYPE_BOOLEAN, 1, &always_the_same);
  finalize(g, d, "a sum is refused");
  cudnnBackendDescriptor_t operation = make(g, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  set(g, operation, CUDNN_ATTR_OPERATION_REDUCTION_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &d);
  set_tensor(g, operation, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
  set_tensor(g, operation, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
  add_operation(g, operation);
}

/* ---- devices ------------------------------------------------------------------------------------------------------------------- */

/* An attribute of characters, ended by a zero. */
static flow_status get_text(const flow_cudnn *cudnn, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, char **out)
{
  int64_t size = 0, found = 0;
  void *text = NULL;
  FLOW_TRY(check(cudnn, cudnn->cudnnBackendGetAttribute(d, name, CUDNN_TYPE_CHAR, 0, &size, NULL), "a text has no length"));
  FLOW_TRY(flow_alloc((size_t)size + 1, &text));
  flow_status status = check(cudnn, cudnn->cudnnBackendGetAttribute(d, name, CUDNN_TYPE_CHAR, size, &found, text), "a text is refused");
  if (status != FLOW_OK) {
    flow_free(text);
    return status;
  }
  ((char *)text)[found < size ? found : size] = '\0';
  *out = text;
  return FLOW_OK;
}

/* The descriptor is what plans are made for instead of a handle. A description that another cuDNN wrote may be refused. */
flow_status flow_cudnn_device_open(const flow_cudnn *cudnn, int index, const char *json, flow_cudnn_device *out)
{
  cudnnBackendDescriptor_t d = NULL;
  int32_t device = index;
  FLOW_TRY(check(cudnn, cudnn->cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &d), "device properties are refused"));
  cudnnStatus_t status =
    json ? cudnn->cudnnBackendSetAttribute(d, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, (int64_t)strlen(json), json)
         : cudnn->cudnnBackendSetAttribute(d, CUDNN_ATTR_DEVICEPROP_DEVICE_ID, CUDNN_TYPE_INT32, 1, &device);
  if (status == CUDNN_STATUS_SUCCESS) status = cudnn->cudnnBackendFinalize(d);
  if (status != CUDNN_STATUS_SUCCESS) {
    flow_status failed = fail(cudnn, status, json ? "the description of a device is refused" : "the device cannot be described");
    cudnn->cudnnBackendDestroyDescriptor(d);
    return failed;
  }
  *out = (flow_cudnn_device){ .cudnn = cudnn, .properties = d };
  return FLOW_OK;
}

flow_status flow_cudnn_device_json(const flow_cudnn_device *device, char **out)
{
  return get_text(device->cudnn, device->properties, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, out);
}

void flow_cudnn_device_close(flow_cudnn_device *device)
{
  if (device->properties) device->cudnn->cudnnBackendDestroyDescriptor(device->properties);
  device->properties = NULL;
}

/* ---- plans --------------------------------------------------------------------------------------------------------------------- */

/* The bits of a configuration's numerical notes; all bits where cuDNN does not say. */
static unsigned notes_of(const flow_cudnn *cudnn, cudnnBackendDescriptor_t configuration)
{
  cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
  cudnnBackendDescriptor_t engine = NULL;
  int64_t count = 0;
  unsigned bits = 0;
  if (cudnn->cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine) != CUDNN_STATUS_SUCCESS) return ~0u;
  cudnnStatus_t status = cudnn->cudnnBackendGetAttribute(configuration, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                                         &count, &engine);
  if (status == CUDNN_STATUS_SUCCESS) {
    status = cudnn->cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                             CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, notes);
  }
  for (int64_t i = 0; status == CUDNN_STATUS_SUCCESS && i < count; i++) bits |= 1u << (unsigned)notes[i];
  cudnn->cudnnBackendDestroyDescriptor(engine);
  return status == CUDNN_STATUS_SUCCESS ? bits : ~0u;
}

void flow_cudnn_plan_release(const flow_cudnn *cudnn, flow_cudnn_plan *plan)
{
  if (plan->descriptor) cudnn->cudnnBackendDestroyDescriptor(plan->descriptor);
  plan->descriptor = NULL;
}

/* A plan of a configuration, or of a text where `json` is one. Failures are cuDNN's status, without a message: the search goes on with
 * the next. A plan that needs too much workspace counts as not supported. *out is changed on success alone. */
static cudnnStatus_t make_plan(const flow_cudnn_device *device, cudnnBackendDescriptor_t configuration, const char *json,
                               cudnnHandle_t handle, flow_cudnn_plan *out)
{
  const flow_cudnn *cudnn = device->cudnn;
  flow_cudnn_plan plan = { 0 };
  cudnnStatus_t status = cudnn->cudnnBackendCreateDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &plan.descriptor);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  status = handle ? cudnn->cudnnBackendSetAttribute(plan.descriptor, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle)
                  : cudnn->cudnnBackendSetAttribute(plan.descriptor, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                                    &device->properties);
  if (status == CUDNN_STATUS_SUCCESS && json) {
    status = cudnn->cudnnBackendSetAttribute(plan.descriptor, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                                             (int64_t)strlen(json), json);
  } else if (status == CUDNN_STATUS_SUCCESS) {
    status = cudnn->cudnnBackendSetAttribute(plan.descriptor, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                             &configuration);
  }
  if (status == CUDNN_STATUS_SUCCESS) status = cudnn->cudnnBackendFinalize(plan.descriptor);
  if (status == CUDNN_STATUS_SUCCESS) {
    status = cudnn->cudnnBackendGetAttribute(plan.descriptor, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, NULL,
                                             &plan.workspace);
  }
  if (status == CUDNN_STATUS_SUCCESS && plan.workspace > most_workspace) status = CUDNN_STATUS_NOT_SUPPORTED;
  if (status != CUDNN_STATUS_SUCCESS) {
    flow_cudnn_plan_release(cudnn, &plan);
    return status;
  }
  *out = plan;
  return CUDNN_STATUS_SUCCESS;
}

/* What a search has found. */
typedef struct search {
  unsigned refused;
  int most, count, tried;
  flow_cudnn_plan *plans;
} search;

/* Tries the configurations of one mode of the heuristics in cuDNN's order, which is by expected speed. Those with a refused note are
 * passed over untried: finalizing a plan compiles kernels, which takes up to seconds. CUDNN_STATUS_NOT_SUPPORTED: none of them did. */
static cudnnStatus_t try_mode(const flow_cudnn_graph *g, cudnnBackendDescriptor_t operations, const flow_cudnn_device *device,
                              cudnnBackendHeurMode_t mode, search *s)
{
  const flow_cudnn *cudnn = g->cudnn;
  cudnnBackendDescriptor_t heuristics = NULL, configurations[MOST_CONFIGURATIONS] = { NULL };
  int64_t count = 0;
  cudnnStatus_t status = cudnn->cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, &heuristics);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  status = cudnn->cudnnBackendSetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                           &operations);
  if (status == CUDNN_STATUS_SUCCESS)
    status = cudnn->cudnnBackendSetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  if (status == CUDNN_STATUS_SUCCESS) {
    status = cudnn->cudnnBackendSetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                             &device->properties);
  }
  if (status == CUDNN_STATUS_SUCCESS) status = cudnn->cudnnBackendFinalize(heuristics);
  int made = 0;
  while (status == CUDNN_STATUS_SUCCESS && made < MOST_CONFIGURATIONS) {
    status = cudnn->cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &configurations[made]);
    if (status == CUDNN_STATUS_SUCCESS) made++;
  }
  if (status == CUDNN_STATUS_SUCCESS) {
    status = cudnn->cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, MOST_CONFIGURATIONS,
                                             &count, configurations);
  }
  if (status == CUDNN_STATUS_SUCCESS) {
    for (int64_t i = 0; i < count && s->count < s->most; i++) {
      if (notes_of(cudnn, configurations[i]) & s->refused) continue;
      s->tried++;
      if (make_plan(device, configurations[i], NULL, NULL, &s->plans[s->count]) == CUDNN_STATUS_SUCCESS)
        s->plans[s->count++].tried = s->tried;
    }
    if (s->count == 0) status = CUDNN_STATUS_NOT_SUPPORTED;
  }
  while (made > 0) cudnn->cudnnBackendDestroyDescriptor(configurations[--made]);
  cudnn->cudnnBackendDestroyDescriptor(heuristics);
  return status;
}

/* Mode A names engines for this problem by a model of their speed; the mode FALLBACK names general ones, slower, where no other can be
 * made or all are refused. */
flow_status flow_cudnn_plans_find(flow_cudnn_graph *g, const flow_cudnn_device *device, unsigned refused, int most, flow_cudnn_plan *out,
                                  int *count)
{
  search s = { .refused = refused, .most = most, .plans = out };
  cudnnBackendDescriptor_t operations = make(g, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  set(g, operations, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, g->operation_count, g->operations);
  finalize(g, operations, "a graph is refused");
  if (g->status != FLOW_OK) return g->status;
  cudnnStatus_t status = try_mode(g, operations, device, CUDNN_HEUR_MODE_A, &s);
  if (status != CUDNN_STATUS_SUCCESS) status = try_mode(g, operations, device, CUDNN_HEUR_MODE_FALLBACK, &s);
  *count = s.count;
  return check(g->cudnn, status, "no engine can compute a graph");
}

flow_status flow_cudnn_plan_json(const flow_cudnn *cudnn, const flow_cudnn_plan *plan, char **out)
{
  return get_text(cudnn, plan->descriptor, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, out);
}

/* With a handle first, as cudnn-frontend does (loadFromJson demands one), and as cuDNN has done longest. Its headers call that deprecated:
 * where it is refused, and for described devices, the device's properties take its place (NVIDIA's "deviceless ahead-of-time compilation",
 * from cuDNN 9.8 on). */
flow_status flow_cudnn_plan_read(const flow_cudnn_device *device, const char *json, flow_cudnn_plan *out)
{
  cudnnStatus_t status = CUDNN_STATUS_NOT_SUPPORTED;
  *out = (flow_cudnn_plan){ 0 };
  if (device->handle) {
    pthread_mutex_lock(device->busy);
    status = make_plan(device, NULL, json, device->handle, out);
    pthread_mutex_unlock(device->busy);
  }
  if (status != CUDNN_STATUS_SUCCESS) status = make_plan(device, NULL, json, NULL, out);
  return check(device->cudnn, status, "the text of a plan is refused");
}
