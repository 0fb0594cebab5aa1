/* bundle.h: many small launches as one. A recording enqueues each launch at a price of about a microsecond, whatever it does; a step of
 * training has dozens that compute a scalar or a short vector. Those that are next to each other become items of this kernel. A block
 * does its items turn by turn; those of one turn are side by side: each small one has its own threads. Whatever is independent of a block's
 * items is given to another block. Which launches go together, and in which turn, is bundling.h's matter. An item is the body of its own
 * kernel, so results are the same. */
#ifndef FLOW_CUDA_OPS_BUNDLE_H
#define FLOW_CUDA_OPS_BUNDLE_H

#include <stddef.h>
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

/* Block kernels of the same turn have parts of the block's memory of their own. */
enum { BUNDLE_ITEMS = 192, BUNDLE_WORDS = 3584, BUNDLE_PARTS = 6, BUNDLE_PART = 8192, BUNDLE_SHARED = BUNDLE_PARTS * BUNDLE_PART };
#if defined(__CUDACC__)
#define BLOCK_SHARED BUNDLE_SHARED         /* of this family, which is compiled by itself */
#endif

/* kernel: a small_kernel. which: the elements of an element kernel, their number; of a block kernel, one block. phases: those of a block
 * kernel that are done in this turn, a bit for each; from bit BUNDLE_WAITS on, for the emulated device, how often the item's warps have
 * waited in this turn when it begins. place: the thread of the first element; of a block kernel, its part and BUNDLE_PARTS
 * times the thread that is its first. word: where its arguments begin. */
typedef struct bundle_item { int16_t kernel, phases, place, word; int32_t which; } bundle_item;

/* The turns of block b are first[b] to first[b + 1] - 1: none, after the last one; the items of turn t are turn[t] to turn[t + 1] - 1.
 * launches: how many these were. */
typedef struct bundle_arguments {
  int16_t     launches, unused[3];
  int16_t     first[BUNDLE_ITEMS + 2], turn[BUNDLE_ITEMS + 2];
  bundle_item item[BUNDLE_ITEMS];
  uint64_t    words[BUNDLE_WORDS];
} bundle_arguments;

/* Several phases in one turn are of threads that share what they make with others of their own warp alone. The emulated device ends all
 * threads' work up to a wait before any goes on, in MOST_WAITS + 1 rounds; `round`: the present one. A thread of the device goes through
 * all: bundle_do is called by whole warps. */
enum { BUNDLE_WAITS = 4, MOST_WAITS = 2 };
#if defined(__CUDACC__)
#define BUNDLE_HAS(item, phase, round) ((item)->phases >> (phase) & 1)
#define BUNDLE_BEGINS(item, round)     1
#define BUNDLE_WAIT()                  __syncwarp()
#else
/* The phase's number among the item's phases, with those before the item. */
static inline int bundle_round(const bundle_item *item, int phase)
{
  int before = item->phases >> BUNDLE_WAITS;
  for (int k = 0; k < phase; k++) before += item->phases >> k & 1;
  return before;
}
#define BUNDLE_HAS(item, phase, round) ((item)->phases >> (phase) & 1 && bundle_round(item, phase) == (round))
#define BUNDLE_BEGINS(item, round)     ((item)->phases >> BUNDLE_WAITS == (round))
#define BUNDLE_WAIT()                  ((void)0)
#endif

/* A thread's share of an item. Elements and a block kernel's threads go to threads from `place` on, round the block. */
BODY void bundle_do(const bundle_item *item, int round, int thread, void *part, const void *arguments)
{
  int mine = (thread - item->place / BUNDLE_PARTS) & (BLOCK_THREADS - 1);
  (void)round;
  switch (item->kernel) {
#define ELEMENT(name)                                                                                                           \
    case SMALL_##name:                                                                                                          \
      if (BUNDLE_BEGINS(item, round))                                                                                           \
        ROLLED for (int i = (thread - item->place) & (BLOCK_THREADS - 1); i < item->which; i += BLOCK_THREADS)                  \
          name(i, (const name##_arguments *)arguments);                                                                         \
      return;
#define BLOCK(name, all)                                                                                                        \
    case SMALL_##name:                                                                                                          \
      ROLLED for (int phase = 0; phase < (all); phase++) {                                                                      \
        if (!BUNDLE_HAS(item, phase, round)) continue;                                                                          \
        name(phase, mine, item->which, part, (const name##_arguments *)arguments);                                              \
        BUNDLE_WAIT();                                                                                                          \
      }                                                                                                                         \
      return;
    SMALL_LAUNCHES(ELEMENT, BLOCK)
#undef ELEMENT
#undef BLOCK
    default: return;
  }
}

/* A phase is a turn, or, of the emulated device, a round of one. */
BODY void bundle(int phase, int thread, int64_t block, void *shared, const bundle_arguments *p)
{
#if defined(__CUDACC__)
  const int round = 0, turn = p->first[block] + phase;
#else
  const int round = phase % (MOST_WAITS + 1), turn = p->first[block] + phase / (MOST_WAITS + 1);
#endif
  if (turn >= p->first[block + 1]) return;
  ROLLED for (int k = p->turn[turn]; k < p->turn[turn + 1]; k++) {
    const bundle_item *item = &p->item[k];
    bundle_do(item, round, thread, (char *)shared + (size_t)item->place % BUNDLE_PARTS * BUNDLE_PART, p->words + item->word);
  }
}

/* A block of the device goes on until its last turn; the emulated one asks bundle_phases. */
#if defined(__CUDACC__)
#define BUNDLE_PHASES (arguments.first[block + 1] - arguments.first[block])
#else
#define BUNDLE_PHASES BUNDLE_ITEMS
static inline int bundle_phases(const void *arguments)
{
  const bundle_arguments *a = (const bundle_arguments *)arguments;
  int most = 0;
  for (int block = 0; a->first[block + 1] > a->first[block]; block++)
    if (a->first[block + 1] - a->first[block] > most) most = a->first[block + 1] - a->first[block];
  return most * (MOST_WAITS + 1);
}
#endif

#define BUNDLE_KERNELS(ELEMENT, BLOCK) BLOCK(bundle, BUNDLE_PHASES)

#endif
