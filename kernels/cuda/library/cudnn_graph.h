/* cudnn_graph.h: graphs of cuDNN 9's backend interface, built in few lines, and the plans that come of them.
 *
 * A graph remembers its first failure and ignores what is asked of it after that; the plan reports it. Tensors are named by the numbers
 * that flow_cudnn_tensor returns, which are also the unique ids of their data. Dimensions are always N, C, H, W (filters K, C, R, S): a
 * layout is in the strides. Sums are float32. */
#ifndef FLOW_CUDA_LIBRARY_CUDNN_GRAPH_H
#define FLOW_CUDA_LIBRARY_CUDNN_GRAPH_H

#include <pthread.h>
#include "cuda/library/library_functions.h"
#include "cuda/library/library.h"

enum { FLOW_CUDNN_DESCRIPTORS = 24, FLOW_CUDNN_TENSORS = 8, FLOW_CUDNN_OPERATIONS = 4 };

typedef struct flow_cudnn_graph {
  const flow_cudnn        *cudnn;
  cudnnBackendDescriptor_t made[FLOW_CUDNN_DESCRIPTORS];
  cudnnBackendDescriptor_t tensors[FLOW_CUDNN_TENSORS + 1];           /* [0] is unused */
  cudnnBackendDescriptor_t operations[FLOW_CUDNN_OPERATIONS];
  int                      made_count, tensor_count, operation_count;
  flow_status              status;
} flow_cudnn_graph;

void flow_cudnn_graph_begin(flow_cudnn_graph *graph, const flow_cudnn *cudnn);
void flow_cudnn_graph_end(flow_cudnn_graph *graph);

/* Dimensions n, c, h, w of a tensor whose channels are neighbours. An inner one never leaves the kernel. */
int  flow_cudnn_tensor(flow_cudnn_graph *graph, cudnnDataType_t dtype, const int64_t sizes[4], int inner);
/* One float32 for each channel, at any multiple of 4 bytes. */
int  flow_cudnn_sums(flow_cudnn_graph *graph, int64_t channels);
/* DATA: x is the result; FILTER: w is. */
void flow_cudnn_convolution(flow_cudnn_graph *graph, const flow_library_convolution *convolution, int x, int w, int y);
/* y = mode(x, b); b is 0 for a mode of one operand. RELU_BWD: x is the gradient, b the result of the relu. */
void flow_cudnn_pointwise(flow_cudnn_graph *graph, cudnnPointwiseMode_t mode, int x, int b, int y);
/* y = x added up along the axes that y does not have, in an order that is always the same. */
void flow_cudnn_add_up(flow_cudnn_graph *graph, int x, int y);

/* The device that plans are made for. handle: its own, which one thread at a time may use, with `busy`; NULL: it is described. */
typedef struct flow_cudnn_device {
  const flow_cudnn        *cudnn;
  cudnnBackendDescriptor_t properties;
  cudnnHandle_t            handle;
  pthread_mutex_t         *busy;
} flow_cudnn_device;

/* The CUDA device of that index, or one that is described: the JSON that flow_cudnn_device_json gave on a machine that has it. */
flow_status flow_cudnn_device_open(const flow_cudnn *cudnn, int index, const char *json, flow_cudnn_device *out);
flow_status flow_cudnn_device_json(const flow_cudnn_device *device, char **out);      /* flow_free */
void        flow_cudnn_device_close(flow_cudnn_device *device);

typedef struct flow_cudnn_plan {
  cudnnBackendDescriptor_t descriptor;
  int64_t                  workspace;       /* bytes */
  int tried;                                /* configurations that were tried up to it; 0: it was read */
} flow_cudnn_plan;

/* The first configurations, at most `most`, that cuDNN's heuristics name, that have none of the numerical notes of the bit mask `refused`
 * and can be made: *count plans, at least one. FLOW_UNSUPPORTED where there is none. */
flow_status flow_cudnn_plans_find(flow_cudnn_graph *graph, const flow_cudnn_device *device, unsigned refused, int most,
                                  flow_cudnn_plan *out, int *count);
/* A plan as text, and back on a device of the same kind with the same cuDNN: a hundred times as fast as finding it. */
flow_status flow_cudnn_plan_json(const flow_cudnn *cudnn, const flow_cudnn_plan *plan, char **out);       /* flow_free */
flow_status flow_cudnn_plan_read(const flow_cudnn_device *device, const char *json, flow_cudnn_plan *out);
void        flow_cudnn_plan_release(const flow_cudnn *cudnn, flow_cudnn_plan *plan);

#endif
