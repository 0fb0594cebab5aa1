/* families.h: every kernel there is. kernels.cu makes the device's entry points of the list, emulated.c a table of functions, launch.h
 * the numbers by which they are called. */
#ifndef FLOW_CUDA_FAMILIES_H
#define FLOW_CUDA_FAMILIES_H

#include "cuda/constant.h"

#define FLOW_CUDA_KERNELS(ELEMENT, BLOCK) \
  CONSTANT_KERNELS(ELEMENT, BLOCK)

#endif
