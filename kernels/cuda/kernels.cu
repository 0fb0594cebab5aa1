/* kernels.cu: the device's entry points, NAME_kernel for each body of one family: the only C++ there is of the back end. Compiled once for
 * each family (FAMILY_HEADER, FAMILY_KERNELS), to a file of machine code for several GPUs that the plugin carries as data. */
#include FAMILY_HEADER

/* Blocks on one multiprocessor, at least: one, unless the family says otherwise. Without the number the assembler prefers more blocks and
 * spills registers. */
#ifndef BLOCKS_TOGETHER
#define BLOCKS_TOGETHER(name) 1
#endif

/* A kernel may be started while the one before it on its stream still runs, where the host says so (enqueue in runtime_cuda.c). It reads
 * nothing but its arguments until that one is complete and its writes are visible: griddepcontrol.wait of the PTX ISA. That one has waited
 * itself, so all before it is complete, too. Then the next kernel may be started as soon as every block of this one got here, so that one
 * waits at most. Both instructions do nothing in a kernel that was started in the usual way, and exist from compute capability 9.0 on: the
 * host asks the images for which one they were compiled. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define WAIT_FOR_TURN() (cudaGridDependencySynchronize(), cudaTriggerProgrammaticLaunchCompletion())
#else
#define WAIT_FOR_TURN() ((void)0)
#endif

#define ELEMENT(name)                                                                                                       \
  extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_TOGETHER(name))                                              \
  name##_kernel(const __grid_constant__ name##_arguments arguments, const int64_t count)                                    \
  {                                                                                                                         \
    static_assert(sizeof arguments <= 32000, #name ": a kernel's arguments have at most 32,000 bytes");                     \
    const int64_t step = (int64_t)gridDim.x * BLOCK_THREADS;                                                                \
    WAIT_FOR_TURN();                                                                                                        \
    for (int64_t i = (int64_t)blockIdx.x * BLOCK_THREADS + threadIdx.x; i < count; i += step) name(i, &arguments);          \
  }

#define BLOCK(name, phases)                                                                                                 \
  extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_TOGETHER(name))                                              \
  name##_kernel(const __grid_constant__ name##_arguments arguments, const int64_t count)                                    \
  {                                                                                                                         \
    static_assert(sizeof arguments <= 32000, #name ": a kernel's arguments have at most 32,000 bytes");                     \
    __shared__ __align__(16) unsigned char in_common[BLOCK_SHARED];                                                         \
    WAIT_FOR_TURN();                                                                                                        \
    for (int64_t block = blockIdx.x; block < count; block += gridDim.x) {                                                   \
      _Pragma("unroll") for (int phase = 0; phase < (phases); phase++) {                                                    \
        name(phase, (int)threadIdx.x, block, in_common, &arguments);                                                        \
        __syncthreads();                                                                                                    \
      }                                                                                                                     \
    }                                                                                                                       \
  }

FAMILY_KERNELS(ELEMENT, BLOCK)
