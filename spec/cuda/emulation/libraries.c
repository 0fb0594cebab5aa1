/* libraries.c: which libraries the emulated plugin finds: its own stand-ins. Asked each time, so that a test can take NCCL away. */
#include "cuda/runtime/libraries.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cuda/runtime/nccl_functions.h"

#define FUNCTION(name) .name = name,
static const flow_nccl nccl = { FLOW_NCCL_FUNCTIONS(FUNCTION) };

const flow_nccl *flow_cuda_nccl(void) { return &nccl; }

int flow_cuda_library_text(flow_cuda_library library, char *text, size_t size)
{
  static const char *const texts[FLOW_CUDA_LIBRARY_COUNT] = {
    [FLOW_CUDA_CUDNN] = "plain loops for cuDNN", [FLOW_CUDA_CUBLASLT] = "plain loops for cuBLASLt",
    [FLOW_CUDA_NCCL] = "shared memory for NCCL",
  };
  const char *there = getenv("FLOW_EMULATED_NCCL");
  int found = library != FLOW_CUDA_NCCL || !there || strcmp(there, "0") != 0;
  snprintf(text, size, "%s", found ? texts[library] : "no NCCL (FLOW_EMULATED_NCCL is 0)");
  return found;
}
