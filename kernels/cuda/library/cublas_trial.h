/* cublas_trial.h: cuBLASLt's algorithms of a product, timed on the device that they are for; see plan_trial.h. */
#ifndef FLOW_CUDA_LIBRARY_CUBLAS_TRIAL_H
#define FLOW_CUDA_LIBRARY_CUBLAS_TRIAL_H

#include "cuda/library/cublas_plan.h"

/* The number of the fastest of `count` algorithms. Operands are memory of its own for the time, as large as the formula says; 0 where
 * there is not enough. The handle's device is the thread's current one; nobody else uses the descriptor meanwhile. */
int flow_cublas_trial(const flow_cublaslt *blas, cublasLtHandle_t handle, const flow_library_product *product,
                      const flow_cublas_product *described, const cublasLtMatmulHeuristicResult_t *algorithms, int count);

/* The algorithm that was kept for a product, once cuBLASLt has said that it can still run it; 0: there is none. */
int flow_cublas_algorithm_read(const flow_cublaslt *blas, cublasLtHandle_t handle, const flow_library_product *product,
                               const flow_cublas_product *described, int device, cublasLtMatmulHeuristicResult_t *out);
void flow_cublas_algorithm_write(const flow_cublaslt *blas, const flow_library_product *product, int device,
                                 const cublasLtMatmulAlgo_t *algorithm);

#endif
