/* constant.h: fill: every element the same. */
#ifndef FLOW_CUDA_CONSTANT_H
#define FLOW_CUDA_CONSTANT_H

#include "cuda/body.h"

typedef struct fill_arguments { char *to; int64_t bytes; unsigned char value[8]; } fill_arguments;   /* bytes: of an element, 1 to 8 */

BODY void fill(int64_t i, const fill_arguments *a)
{
  for (int64_t b = 0; b < a->bytes; b++) a->to[i * a->bytes + b] = (char)a->value[b];
}

#define CONSTANT_KERNELS(ELEMENT, BLOCK) ELEMENT(fill)

#endif
