/* library_kernels.h: the variants that stand on NVIDIA's libraries. An op's family puts them in its own front kernels:
 *   const flow_kernel flow_cuda_convolution_kernels[] = { FLOW_LIBRARY_CONVOLUTION, { .variant = "plain", .run = run }, { 0 } };
 * They support no call where the library is missing, cannot compute it, or not with the same bits each time. */
#ifndef FLOW_CUDA_LIBRARY_LIBRARY_KERNELS_H
#define FLOW_CUDA_LIBRARY_LIBRARY_KERNELS_H

#include "kernels.h"

#define FLOW_LIBRARY_KERNEL(name, op) \
  { .variant = name, .supports = flow_library_##op##_supports, .shared_bytes = flow_library_##op##_shared_bytes, \
    .run = flow_library_##op##_run }
#define FLOW_LIBRARY_DECLARE(op) \
  int flow_library_##op##_supports(const flow_call *call); \
  size_t flow_library_##op##_shared_bytes(const flow_call *call); \
  flow_status flow_library_##op##_run(const flow_call *call, int phase, int64_t begin, int64_t end);

FLOW_LIBRARY_DECLARE(convolution)
FLOW_LIBRARY_DECLARE(convolution_gradient)
FLOW_LIBRARY_DECLARE(product)

#define FLOW_LIBRARY_CONVOLUTION          FLOW_LIBRARY_KERNEL("cudnn", convolution)
#define FLOW_LIBRARY_CONVOLUTION_GRADIENT FLOW_LIBRARY_KERNEL("cudnn", convolution_gradient)
#define FLOW_LIBRARY_PRODUCT              FLOW_LIBRARY_KERNEL("cublaslt", product)      /* of matmul and dense */

#endif
