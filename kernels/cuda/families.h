/* families.h: every kernel there is. kernels.cu makes the device's entry points of the list, emulation/kernels.c a table of functions,
 * launch.h the numbers by which they are called. The emulated devices have some more, in place of libraries.
 *
 * A family is one C file if nobody else needs its bodies: arguments, bodies and the list first, as body.h describes them, and then, in
 * #if __INCLUDE_LEVEL__ == 0, which is true in the C file that the compiler was given and false where this header or kernels.cu includes
 * it, the flow_kernel records of its ops, whose functions fill the arguments in and launch (launch.h). ops/movement/casts.c is a short one.
 * If other families use the bodies, they are a header, and the launches a C file of the same name. */
#ifndef FLOW_CUDA_FAMILIES_H
#define FLOW_CUDA_FAMILIES_H

#include "cuda/ops/movement/along.c"
#include "cuda/ops/step/approval.c"
#include "cuda/ops/network/attention_bfloat16.h"
#include "cuda/ops/network/attention_float16.h"
#include "cuda/ops/network/attention_float32.h"
#include "cuda/ops/network/batch_norm.h"
#include "cuda/ops/network/batch_norm_wide.h"
#include "cuda/ops/step/batches.c"
#include "cuda/ops/step/bundle.h"
#include "cuda/ops/movement/casts.c"
#include "cuda/ops/movement/constant.h"
#include "cuda/ops/convolution/convolution.h"
#include "cuda/ops/decompositions/decompositions.c"
#include "cuda/ops/elementwise/elementwise.h"
#include "cuda/ops/convolution/filters.h"
#include "cuda/ops/fourier/fourier.c"
#include "cuda/ops/movement/gather.c"
#include "cuda/library/library_steps.h"
#include "cuda/ops/image/images.h"
#include "cuda/ops/matrix_product/matmul.h"
#include "cuda/ops/movement/movement.h"
#include "cuda/ops/network/normalize.h"
#include "cuda/ops/optimizer/optimizers.h"
#include "cuda/ops/pooling/pooling.h"
#include "cuda/ops/random/random.h"
#include "cuda/ops/recurrent/recurrent.h"
#include "cuda/ops/reduce/reduce.h"
#include "cuda/ops/reduce/reduce_wide.h"
#include "cuda/ops/network/softmax.h"
#include "cuda/ops/step/training.h"
#if FLOW_EMULATED
#include "cuda/emulation/library.h"
#else
#define EMULATED_LIBRARY_KERNELS(ELEMENT, BLOCK)
#endif

#define FLOW_CUDA_KERNELS(ELEMENT, BLOCK)    \
  ALONG_KERNELS(ELEMENT, BLOCK)              \
  APPROVAL_KERNELS(ELEMENT, BLOCK)           \
  ATTENTION_BFLOAT16_KERNELS(ELEMENT, BLOCK) \
  ATTENTION_FLOAT16_KERNELS(ELEMENT, BLOCK)  \
  ATTENTION_FLOAT32_KERNELS(ELEMENT, BLOCK)  \
  BATCH_NORM_KERNELS(ELEMENT, BLOCK)         \
  BATCH_NORM_WIDE_KERNELS(ELEMENT, BLOCK)    \
  BATCHES_KERNELS(ELEMENT, BLOCK)            \
  BUNDLE_KERNELS(ELEMENT, BLOCK)             \
  CASTS_KERNELS(ELEMENT, BLOCK)              \
  CONSTANT_KERNELS(ELEMENT, BLOCK)           \
  CONVOLUTION_KERNELS(ELEMENT, BLOCK)        \
  DECOMPOSITION_KERNELS(ELEMENT, BLOCK)      \
  ELEMENTWISE_KERNELS(ELEMENT, BLOCK)        \
  EMULATED_LIBRARY_KERNELS(ELEMENT, BLOCK)   \
  FILTERS_KERNELS(ELEMENT, BLOCK)            \
  FOURIER_KERNELS(ELEMENT, BLOCK)            \
  GATHER_KERNELS(ELEMENT, BLOCK)             \
  LIBRARY_STEPS_KERNELS(ELEMENT, BLOCK)      \
  IMAGE_KERNELS(ELEMENT, BLOCK)              \
  MATMUL_KERNELS(ELEMENT, BLOCK)             \
  MOVEMENT_KERNELS(ELEMENT, BLOCK)           \
  NORMALIZE_KERNELS(ELEMENT, BLOCK)          \
  OPTIMIZER_KERNELS(ELEMENT, BLOCK)          \
  POOLING_KERNELS(ELEMENT, BLOCK)            \
  RANDOM_KERNELS(ELEMENT, BLOCK)             \
  RECURRENT_KERNELS(ELEMENT, BLOCK)          \
  REDUCE_KERNELS(ELEMENT, BLOCK)             \
  REDUCE_WIDE_KERNELS(ELEMENT, BLOCK)        \
  SOFTMAX_KERNELS(ELEMENT, BLOCK)            \
  TRAINING_KERNELS(ELEMENT, BLOCK)

#endif
