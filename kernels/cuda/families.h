/* families.h: every kernel there is. kernels.cu makes the device's entry points of the list, emulation/kernels.c a table of functions, launch.h
 * the numbers by which they are called. The emulated devices have some more, in place of libraries. */
#ifndef FLOW_CUDA_FAMILIES_H
#define FLOW_CUDA_FAMILIES_H

#include "cuda/approval.h"
#include "cuda/batch_norm.h"
#include "cuda/batches.h"
#include "cuda/bundle.h"
#include "cuda/casts.h"
#include "cuda/constant.h"
#include "cuda/convolution.h"
#include "cuda/elementwise.h"
#include "cuda/filters.h"
#include "cuda/gather.h"
#include "cuda/library_steps.h"
#include "cuda/images.h"
#include "cuda/matmul.h"
#include "cuda/movement.h"
#include "cuda/optimizers.h"
#include "cuda/pooling.h"
#include "cuda/random.h"
#include "cuda/reduce.h"
#include "cuda/softmax.h"
#include "cuda/training.h"
#if FLOW_EMULATED
#include "cuda/emulation/library.h"
#else
#define EMULATED_LIBRARY_KERNELS(ELEMENT, BLOCK)
#endif

#define FLOW_CUDA_KERNELS(ELEMENT, BLOCK) \
  APPROVAL_KERNELS(ELEMENT, BLOCK) \
  BATCH_NORM_KERNELS(ELEMENT, BLOCK) \
  BATCHES_KERNELS(ELEMENT, BLOCK) \
  BUNDLE_KERNELS(ELEMENT, BLOCK) \
  CASTS_KERNELS(ELEMENT, BLOCK) \
  CONSTANT_KERNELS(ELEMENT, BLOCK) \
  CONVOLUTION_KERNELS(ELEMENT, BLOCK) \
  ELEMENTWISE_KERNELS(ELEMENT, BLOCK) \
  EMULATED_LIBRARY_KERNELS(ELEMENT, BLOCK) \
  FILTERS_KERNELS(ELEMENT, BLOCK) \
  GATHER_KERNELS(ELEMENT, BLOCK) \
  LIBRARY_STEPS_KERNELS(ELEMENT, BLOCK) \
  IMAGE_KERNELS(ELEMENT, BLOCK) \
  MATMUL_KERNELS(ELEMENT, BLOCK) \
  MOVEMENT_KERNELS(ELEMENT, BLOCK) \
  OPTIMIZER_KERNELS(ELEMENT, BLOCK) \
  POOLING_KERNELS(ELEMENT, BLOCK) \
  RANDOM_KERNELS(ELEMENT, BLOCK) \
  REDUCE_KERNELS(ELEMENT, BLOCK) \
  SOFTMAX_KERNELS(ELEMENT, BLOCK) \
  TRAINING_KERNELS(ELEMENT, BLOCK)

#endif
