/* cublas_plan.h: the descriptors of a product for cuBLASLt, which can be made without a device. */
#ifndef FLOW_CUDA_LIBRARY_CUBLAS_PLAN_H
#define FLOW_CUDA_LIBRARY_CUBLAS_PLAN_H

#include "cuda/library/library_functions.h"
#include "cuda/library/library.h"

typedef struct flow_cublas_product {
  cublasLtMatmulDesc_t       product;
  cublasLtMatrixLayout_t     a, b, c;           /* cuBLASLt's, column-major: a is our b */
  cublasLtMatmulPreference_t preference;
} flow_cublas_product;

flow_status flow_cublas_describe(const flow_cublaslt *blas, const flow_library_product *product, flow_cublas_product *out);
/* Bytes that an algorithm may ask for: none where operands may begin anywhere, so that there always is enough. */
size_t      flow_cublas_workspace(const flow_library_product *product);
void        flow_cublas_release(const flow_cublaslt *blas, flow_cublas_product *product);

#endif
