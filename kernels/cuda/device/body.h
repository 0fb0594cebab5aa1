/* body.h: how a kernel for the GPU is written: as plain C, once. The same body is compiled by nvcc for the device and by the C compiler for
 * the emulated device, where tests run it on the CPU, its threads in random order.
 *
 * Two kinds of kernel, each with a struct of arguments (pointers into the device's memory, shapes, numbers; at most 32,000 bytes,
 * which CUDA takes from 12.1 on; no host pointers) named NAME_arguments:
 *   element   BODY void NAME(int64_t i, const NAME_arguments *a): one call for each i of [0, count), in any order, side by side.
 *   block     BODY void NAME(int phase, int thread, int64_t block, void *shared, const NAME_arguments *a): a block of BLOCK_THREADS
 *             threads with BLOCK_SHARED bytes in common. All threads of a block finish a phase before the next one begins; what a thread
 *             must keep from phase to phase is in `shared`, or, where phases are WHOLE, in registers: warps.h. Blocks know nothing of each
 *             other.
 * A family of kernels is a header, kernels/cuda/FAMILY.h, with arguments, bodies and the list
 *   #define FAMILY_KERNELS(ELEMENT, BLOCK) ELEMENT(name) ELEMENT(other) BLOCK(third, phases)
 * that families.h collects, and a C file, kernels/cuda/FAMILY.c, with the ops' flow_kernel records, which fill the arguments in and call
 * flow_cuda_launch (launch.h). Bodies stay within what C11 and C++17 have in common: no designated initializers, casts from void * written
 * out, no variable-length arrays. Sums are added in an order that depends on shapes alone: no float atomics. */
#ifndef FLOW_CUDA_DEVICE_BODY_H
#define FLOW_CUDA_DEVICE_BODY_H

#include <math.h>
#include <stdint.h>
#include "flow_types.h"

#if defined(__CUDACC__)
#define BODY static __device__ __forceinline__
#else
#define BODY static inline __attribute__((unused))      /* clang warns of those that only nvcc calls */
#endif

enum { BLOCK_THREADS = 256, BLOCK_SHARED = 8192 };

#endif
