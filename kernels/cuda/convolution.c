/* convolution.c: the ops convolution and convolution_gradient. */
#include "cuda/launch.h"
#include "cuda/library_kernels.h"

const flow_kernel flow_cuda_convolution_kernels[] = { FLOW_LIBRARY_CONVOLUTION, { 0 } };
const flow_kernel flow_cuda_convolution_gradient_kernels[] = { FLOW_LIBRARY_CONVOLUTION_GRADIENT, { 0 } };
