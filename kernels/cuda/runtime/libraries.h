/* libraries.h: which of NVIDIA's libraries there are. They are opened when they are first used: what a machine does not have costs a
 * message, not the program. Their functions: library_functions.h, nccl_functions.h.
 *
 * Each is looked for under one name, which holds its major version, in this order: the folder that the environment variable
 * FLOW_CUDA_LIBS names (and then nowhere else), where the loader looks anyway, /usr/local/cuda/lib64, and the packages of the
 * Python environment in VIRTUAL_ENV or CONDA_PREFIX. */
#ifndef FLOW_CUDA_RUNTIME_LIBRARIES_H
#define FLOW_CUDA_RUNTIME_LIBRARIES_H

#include <stddef.h>

typedef enum flow_cuda_library { FLOW_CUDA_CUDNN, FLOW_CUDA_CUBLASLT, FLOW_CUDA_NCCL, FLOW_CUDA_LIBRARY_COUNT } flow_cuda_library;

/* "cuDNN 9.19.0", or what is missing: "no cuDNN (libcudnn.so.9: ...)". Opens the library; a failed search is made once. Returns whether it
 * is there. Any thread. */
int flow_cuda_library_text(flow_cuda_library library, char *text, size_t size);

#endif
