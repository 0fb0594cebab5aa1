/* bundle.h: many small launches as one. A recording enqueues each launch at a price of about a microsecond, whatever it does; a step of
 * training has dozens that compute a scalar or a short vector. Those that stand next to each other become the turns of this kernel: a
 * block takes its turns one after the other, each waits for the one before; what is independent is given to different blocks. Which
 * launches go together is bundling.h's matter. A turn is the body of its own kernel, so results are the same. */
#ifndef FLOW_CUDA_OPS_BUNDLE_H
#define FLOW_CUDA_OPS_BUNDLE_H

#include "cuda/ops/movement/constant.h"
#include "cuda/ops/elementwise/elementwise.h"
#include "cuda/ops/movement/movement.h"
#include "cuda/ops/reduce/reduce.h"
#include "cuda/ops/network/softmax.h"
#include "cuda/ops/step/training.h"

/* What may be a turn. */
#define SMALL_LAUNCHES(ELEMENT, BLOCK) \
  CONSTANT_KERNELS(ELEMENT, BLOCK) \
  ELEMENTWISE_KERNELS(ELEMENT, BLOCK) \
  MOVEMENT_KERNELS(ELEMENT, BLOCK) \
  REDUCE_KERNELS(ELEMENT, BLOCK) \
  SOFTMAX_KERNELS(ELEMENT, BLOCK) \
  TRAINING_KERNELS(ELEMENT, BLOCK)

typedef enum small_kernel {
#define ELEMENT(name) SMALL_##name,
#define BLOCK(name, phases) SMALL_##name,
  SMALL_LAUNCHES(ELEMENT, BLOCK)
#undef ELEMENT
#undef BLOCK
  SMALL_KERNEL_COUNT
} small_kernel;

enum { BUNDLE_TURNS = 64, BUNDLE_WORDS = 3838 };

/* kernel: a small_kernel. which: the elements of an element kernel, their number; of a block kernel, one block and phase. word: where its
 * arguments begin. */
typedef struct bundle_turn { int32_t kernel, phase, which, word; } bundle_turn;

/* The turns of block b are turn[first[b]] to turn[first[b + 1] - 1]. */
typedef struct bundle_arguments {
  int32_t     first[BUNDLE_TURNS + 2];
  bundle_turn turn[BUNDLE_TURNS];
  uint64_t    words[BUNDLE_WORDS];
} bundle_arguments;

BODY void bundle(int phase, int thread, int64_t block, void *shared, const bundle_arguments *p)
{
  int at = p->first[block] + phase;
  if (at >= p->first[block + 1]) return;
  const bundle_turn *turn = &p->turn[at];
  const void *arguments = p->words + turn->word;
  switch (turn->kernel) {
#define ELEMENT(name)                                                                                                           \
    case SMALL_##name:                                                                                                          \
      ROLLED for (int i = thread; i < turn->which; i += BLOCK_THREADS) name(i, (const name##_arguments *)arguments);            \
      return;
#define BLOCK(name, phases)                                                                                                     \
    case SMALL_##name: name(turn->phase, thread, turn->which, shared, (const name##_arguments *)arguments); return;
    SMALL_LAUNCHES(ELEMENT, BLOCK)
#undef ELEMENT
#undef BLOCK
    default: return;
  }
}

/* A block of the device goes on until its last turn; the emulated one looks at all. */
#if defined(__CUDACC__)
#define BUNDLE_PHASES (arguments.first[block + 1] - arguments.first[block])
#else
#define BUNDLE_PHASES BUNDLE_TURNS
#endif

#define BUNDLE_KERNELS(ELEMENT, BLOCK) BLOCK(bundle, BUNDLE_PHASES)

#endif
