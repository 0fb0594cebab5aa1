/* random.h: keys of the random kernels. Bits come from base/philox.h; whoever writes these ops for another device uses the
 * same keys and counters, and gets the same numbers. */
#ifndef FLOW_CPU_RANDOM_RANDOM_H
#define FLOW_CPU_RANDOM_RANDOM_H

#include "base/philox.h"
#include "kernels.h"

/* Key of a random op outside a step: initializers, eager calls, map functions. */
static inline uint64_t random_key(uint64_t seed, uint64_t stream) { return flow_mix(seed, stream); }

/* Key of a random op in one step of a run. */
static inline uint64_t random_step_key(uint64_t seed, uint64_t stream, const flow_scalars *scalars)
{
  return flow_mix(flow_mix(random_key(seed, stream), scalars->seed), (uint64_t)scalars->step);
}

#endif
