/* families.h: every kernel there is. kernels.cu makes the device's entry points of the list, emulation/kernels.c a table of functions, launch.h
 * the numbers by which they are called. The emulated devices have some more, in place of libraries. */
#ifndef FLOW_CUDA_FAMILIES_H
#define FLOW_CUDA_FAMILIES_H

#include "cuda/ops/approval.h"
#include "cuda/ops/batch_norm.h"
#include "cuda/ops/batches.h"
#include "cuda/ops/bundle.h"
#include "cuda/ops/casts.h"
#include "cuda/ops/constant.h"
#include "cuda/ops/convolution.h"
#include "cuda/ops/elementwise.h"
#include "cuda/ops/filters.h"
#include "cuda/ops/gather.h"
#include "cuda/library/library_steps.h"
#include "cuda/ops/images.h"
#include "cuda/ops/matmul.h"
#include "cuda/ops/movement.h"
#include "cuda/ops/optimizers.h"
#include "cuda/ops/pooling.h"
#include "cuda/ops/random.h"
#include "cuda/ops/reduce.h"
#include "cuda/ops/softmax.h"
#include "cuda/ops/training.h"
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
