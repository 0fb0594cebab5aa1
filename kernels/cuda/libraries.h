/* libraries.h: NVIDIA's libraries, opened when they are first used: what a machine does not have costs a message, not the program. Their
 * headers check the types of the functions, so that this file needs the CUDA toolkit: the emulated device does without it.
 *
 * Each is looked for under one name, which holds its major version, in this order: the folder that the environment variable
 * FLOW_CUDA_LIBS names (and then nowhere else), where the loader looks anyway, /usr/local/cuda/lib64, and the packages of the
 * Python environment in VIRTUAL_ENV or CONDA_PREFIX. */
#ifndef FLOW_CUDA_LIBRARIES_H
#define FLOW_CUDA_LIBRARIES_H

#include <cublasLt.h>
#include <cudnn_graph.h>
#include <nccl.h>
#include "cuda/launch.h"

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
  X(cublasLtMatmulAlgoCapGetAttribute) X(cublasLtMatmul)

#define FLOW_NCCL_FUNCTIONS(X)                                                                                                      \
  X(ncclGetVersion) X(ncclGetErrorString) X(ncclGetLastError) X(ncclGetUniqueId) X(ncclCommInitRankConfig) X(ncclCommGetAsyncError) \
  X(ncclCommAbort) X(ncclCommDestroy) X(ncclCommFinalize) X(ncclAllReduce) X(ncclAllGather) X(ncclBroadcast) X(ncclReduceScatter)   \
  X(ncclGroupStart) X(ncclGroupEnd)

#define FLOW_LIBRARY_MEMBER(name) __typeof__(&name) name;
typedef struct flow_cudnn { FLOW_CUDNN_FUNCTIONS(FLOW_LIBRARY_MEMBER) } flow_cudnn;
typedef struct flow_cublaslt { FLOW_CUBLASLT_FUNCTIONS(FLOW_LIBRARY_MEMBER) } flow_cublaslt;
typedef struct flow_nccl { FLOW_NCCL_FUNCTIONS(FLOW_LIBRARY_MEMBER) } flow_nccl;
#undef FLOW_LIBRARY_MEMBER

/* The library's functions, the same to the end of the process, or NULL: flow_cuda_library_text says why. A failed search is made once.
 * Any thread. */
const flow_cudnn    *flow_cuda_cudnn(void);
const flow_cublaslt *flow_cuda_cublaslt(void);
const flow_nccl     *flow_cuda_nccl(void);

typedef enum flow_cuda_library { FLOW_CUDA_CUDNN, FLOW_CUDA_CUBLASLT, FLOW_CUDA_NCCL, FLOW_CUDA_LIBRARY_COUNT } flow_cuda_library;

/* "cuDNN 9.19.0", or what is missing: "no cuDNN (libcudnn.so.9: ...)". Opens the library. Returns whether it is there. */
int flow_cuda_library_text(flow_cuda_library library, char *text, size_t size);

/* What the runtime tells the libraries: where a call is enqueued. Without a queue: the first device. */
int          flow_cuda_device_index(const flow_call *call);
cudaStream_t flow_cuda_stream(const flow_call *call);

#endif
