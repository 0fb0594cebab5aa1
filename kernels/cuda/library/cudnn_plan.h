/* cudnn_plan.h: the plan of a convolution, for programs that plan without a device (spec/cuda/plans.c), too. */
#ifndef FLOW_CUDA_LIBRARY_CUDNN_PLAN_H
#define FLOW_CUDA_LIBRARY_CUDNN_PLAN_H

#include "cuda/library/cudnn_graph.h"

/* Names of the tensors in the graph of a convolution, as flow_library_operands has them; 0: it has none. */
typedef struct flow_cudnn_names { int first, second, bias, addend, relu, result, sums; } flow_cudnn_names;

void     flow_cudnn_build(flow_cudnn_graph *graph, const flow_library_convolution *convolution, flow_cudnn_names *names);
/* The numerical notes of algorithms that a convolution may not use. */
unsigned flow_cudnn_refused(const flow_library_convolution *convolution);
/* The plan of a convolution: as it was kept (plan_store.h), or searched for, and kept then. out->tried is 0 if it was kept. */
flow_status flow_cudnn_plan_of(const flow_cudnn_device *device, const flow_library_convolution *convolution, flow_cudnn_names *names,
                               flow_cudnn_plan *out);

#endif
