/* nccl_functions.h: NCCL as nccl.c calls it: through a table, since the library is opened when it is first used. */
#ifndef FLOW_CUDA_RUNTIME_NCCL_FUNCTIONS_H
#define FLOW_CUDA_RUNTIME_NCCL_FUNCTIONS_H

#include <nccl.h>

#define FLOW_NCCL_FUNCTIONS(X)                                                                                                      \
  X(ncclGetVersion) X(ncclGetErrorString) X(ncclGetLastError) X(ncclGetUniqueId) X(ncclCommInitRankConfig) X(ncclCommGetAsyncError) \
  X(ncclCommAbort) X(ncclAllReduce) X(ncclAllGather) X(ncclBroadcast)

#define FLOW_NCCL_MEMBER(name) __typeof__(&name) name;
typedef struct flow_nccl { FLOW_NCCL_FUNCTIONS(FLOW_NCCL_MEMBER) } flow_nccl;
#undef FLOW_NCCL_MEMBER

/* The same to the end of the process, or NULL: flow_cuda_library_text says why. Any thread. */
const flow_nccl *flow_cuda_nccl(void);

#endif
