/* library_functions.h: cuDNN and cuBLASLt as cudnn_*.c and cublas_plan.c call them: through tables, since the libraries are opened when
 * they are first used. Their headers check the types of the functions. */
#ifndef FLOW_CUDA_LIBRARY_LIBRARY_FUNCTIONS_H
#define FLOW_CUDA_LIBRARY_LIBRARY_FUNCTIONS_H

#include <cublasLt.h>
#include <cudnn_graph.h>
#include "cuda/runtime/launch.h"

#define FLOW_CUDNN_FUNCTIONS(X)                                                                                                     \
  X(cudnnGetVersion) X(cudnnCreate) X(cudnnDestroy) X(cudnnSetStream) X(cudnnGetErrorString) X(cudnnGetLastErrorString)             \
  X(cudnnBackendCreateDescriptor) X(cudnnBackendDestroyDescriptor) X(cudnnBackendSetAttribute) X(cudnnBackendGetAttribute)          \
  X(cudnnBackendFinalize) X(cudnnBackendExecute)

#define FLOW_CUBLASLT_FUNCTIONS(X)                                                                                                  \
  X(cublasLtGetVersion) X(cublasLtGetStatusString) X(cublasLtCreate) X(cublasLtDestroy)                                             \
  X(cublasLtMatmulDescCreate) X(cublasLtMatmulDescDestroy) X(cublasLtMatmulDescSetAttribute) X(cublasLtMatmulDescGetAttribute)      \
  X(cublasLtMatrixLayoutCreate) X(cublasLtMatrixLayoutDestroy) X(cublasLtMatrixLayoutSetAttribute)                                  \
  X(cublasLtMatrixLayoutGetAttribute) X(cublasLtMatmulPreferenceCreate) X(cublasLtMatmulPreferenceDestroy)                          \
  X(cublasLtMatmulPreferenceSetAttribute) X(cublasLtMatmulAlgoGetHeuristic) X(cublasLtMatmulAlgoConfigGetAttribute)                 \
  X(cublasLtMatmulAlgoCapGetAttribute) X(cublasLtMatmulAlgoCheck) X(cublasLtMatmul)

#define FLOW_LIBRARY_MEMBER(name) __typeof__(&name) name;
typedef struct flow_cudnn { FLOW_CUDNN_FUNCTIONS(FLOW_LIBRARY_MEMBER) } flow_cudnn;
typedef struct flow_cublaslt { FLOW_CUBLASLT_FUNCTIONS(FLOW_LIBRARY_MEMBER) } flow_cublaslt;
#undef FLOW_LIBRARY_MEMBER

/* The library's functions, the same to the end of the process, or NULL: flow_cuda_library_text says why. Any thread. */
const flow_cudnn    *flow_cuda_cudnn(void);
const flow_cublaslt *flow_cuda_cublaslt(void);

/* What the runtime tells the libraries: where a call is enqueued. Without a queue: the first device. */
int          flow_cuda_device_index(const flow_call *call);
cudaStream_t flow_cuda_stream(const flow_call *call);

#endif
