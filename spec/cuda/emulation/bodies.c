/* bodies.c: the bodies of all kernels, compiled for the CPU. Compiled again by watched_bodies.c and raced_bodies.c, where each access to
 * memory is a call of bounds.c first. */
#include "cuda/emulation/emulation.h"

#include "compiled_families.h"
#include "cuda/runtime/launch.h"

#ifndef WATCH_ELEMENT
#define WATCH_ELEMENT(index) ((void)0)
#endif
#define ELEMENT(name)                                                                   \
  static void name##_elements(const int64_t *indexes, int count, const void *arguments) \
  {                                                                                     \
    for (int i = 0; i < count; i++) {                                                   \
      WATCH_ELEMENT(indexes[i]);                                                        \
      name(indexes[i], (const name##_arguments *)arguments);                            \
    }                                                                                   \
  }
#define BLOCK(name, phases)                                                                        \
  static void name##_block(int phase, int thread, int64_t block, void *shared, const void *arguments) \
  {                                                                                                \
    name(phase, thread, block, shared, (const name##_arguments *)arguments);                       \
  }
FLOW_CUDA_KERNELS(ELEMENT, BLOCK)
#undef ELEMENT
#undef BLOCK

#ifndef EMULATED_BODIES
#define EMULATED_BODIES emulated_bodies
#endif
const emulated_body EMULATED_BODIES[] = {
#define ELEMENT(name)       [CUDA_##name] = { .element = name##_elements },
#define BLOCK(name, phases) [CUDA_##name] = { .block = name##_block },
  FLOW_CUDA_KERNELS(ELEMENT, BLOCK)
#undef ELEMENT
#undef BLOCK
};
