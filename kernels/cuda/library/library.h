/* library.h: the products and convolutions that NVIDIA's libraries compute, said in our own way: kernels/cuda/library_*.c put an op
 * together of them and of own kernels, and know neither library. library.c calls who computes them with the device of the call's queue
 * chosen.
 *
 * A plan is made for shapes, dtypes and a device. It is kept to the end of the process, so that the next instance with the same shapes
 * finds it; a search that found none is kept, too. Any thread. */
#ifndef FLOW_CUDA_LIBRARY_LIBRARY_H
#define FLOW_CUDA_LIBRARY_LIBRARY_H

#include "cuda/runtime/launch.h"
#include "cuda/library/library_formulas.h"

typedef struct flow_library_plan { size_t workspace; } flow_library_plan;      /* bytes in the device's memory; the rest is the library's */

/* NULL where the library is missing or has no algorithm that gives the same bits each time. */
const flow_library_plan *flow_library_plan_convolution(const flow_call *call, const flow_library_convolution *convolution);
const flow_library_plan *flow_library_plan_product(const flow_call *call, const flow_library_product *product);

/* first, second and result in the order of the formulas: x, w, y; dy, w, dx; x, dy, dw. bias {channels out}, addend (like dx), relu (x of
 * DATA) and sums {channels in}, of float32: where the plan has them. All but sums begin at multiples of 16 bytes. */
typedef struct flow_library_operands {
  const void *first, *second, *bias, *addend, *relu;
  void       *result, *workspace;
  float      *sums;
} flow_library_operands;

/* Enqueue. bias is NULL where the plan has none. A workspace begins at a multiple of 256 bytes. */
flow_status flow_library_convolve(const flow_call *call, const flow_library_plan *plan, const flow_library_operands *operands);
flow_status flow_library_multiply(const flow_call *call, const flow_library_plan *plan, const void *a, const void *b, const void *bias,
                                  void *c, void *workspace);

#endif
