/* kernels.cu: the device's entry points, NAME_kernel for each body of one family: the only C++ there is of the back end. Compiled once for
 * each family (FAMILY_HEADER, FAMILY_KERNELS), to a file of machine code for several GPUs that the plugin carries as data. */
#include FAMILY_HEADER

/* On one multiprocessor, at least. Without the number the assembler prefers more blocks and spills registers. */
enum { BLOCKS_TOGETHER = 1 };

#define ELEMENT(name)                                                                                                       \
  extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_TOGETHER)                                              \
  name##_kernel(const __grid_constant__ name##_arguments arguments, const int64_t count)                                    \
  {                                                                                                                         \
    static_assert(sizeof arguments <= 32000, #name ": a kernel's arguments have at most 32,000 bytes");                     \
    const int64_t step = (int64_t)gridDim.x * BLOCK_THREADS;                                                                \
    for (int64_t i = (int64_t)blockIdx.x * BLOCK_THREADS + threadIdx.x; i < count; i += step) name(i, &arguments);          \
  }

#define BLOCK(name, phases)                                                                                                 \
  extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, BLOCKS_TOGETHER)                                              \
  name##_kernel(const __grid_constant__ name##_arguments arguments, const int64_t count)                                    \
  {                                                                                                                         \
    static_assert(sizeof arguments <= 32000, #name ": a kernel's arguments have at most 32,000 bytes");                     \
    __shared__ __align__(16) unsigned char in_common[BLOCK_SHARED];                                                         \
    for (int64_t block = blockIdx.x; block < count; block += gridDim.x) {                                                   \
      _Pragma("unroll") for (int phase = 0; phase < (phases); phase++) {                                                    \
        name(phase, (int)threadIdx.x, block, in_common, &arguments);                                                        \
        __syncthreads();                                                                                                    \
      }                                                                                                                     \
    }                                                                                                                       \
  }

FAMILY_KERNELS(ELEMENT, BLOCK)
