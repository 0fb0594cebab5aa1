/* matmul.c: the ops matmul and dense. */
#include "cuda/launch.h"
#include "cuda/library_kernels.h"

const flow_kernel flow_cuda_matmul_kernels[] = { FLOW_LIBRARY_PRODUCT, { 0 } };
const flow_kernel flow_cuda_dense_kernels[] = { FLOW_LIBRARY_PRODUCT, { 0 } };
