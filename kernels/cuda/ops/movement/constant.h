/* constant.h: fill: every element the same, of an array of any strides. */
#ifndef FLOW_CUDA_OPS_CONSTANT_H
#define FLOW_CUDA_OPS_CONSTANT_H

#include "cuda/device/view.h"

typedef struct fill_arguments { view y; uint64_t value; int64_t bytes; } fill_arguments;   /* value: an element of 1, 2, 4 or 8 bytes */

BODY void fill(int64_t i, const fill_arguments *a)
{
  int64_t at = view_offset(&a->y, i);
  switch (a->bytes) {
    case 1:  ((uint8_t *)a->y.data)[at] = (uint8_t)a->value; return;
    case 2:  ((uint16_t *)a->y.data)[at] = (uint16_t)a->value; return;
    case 4:  ((uint32_t *)a->y.data)[at] = (uint32_t)a->value; return;
    default: ((uint64_t *)a->y.data)[at] = a->value; return;
  }
}

#define CONSTANT_KERNELS(ELEMENT, BLOCK) ELEMENT(fill)

#endif
