/* arrival.h: how the last block of several goes on with what all have made, so that this needs no further launch: each writes its part and
 * publishes it; then one thread of each arrives at a counter, and the block that finds itself the last observes the parts of all. Whichever
 * block that is, it combines them in the same order (CUDA C++ Programming Guide, "Memory Fence Functions").
 *
 * Counters are 0 before a launch and after it (flow_cuda_counters, launch.h): the last to arrive leaves that. */
#ifndef FLOW_CUDA_DEVICE_ARRIVAL_H
#define FLOW_CUDA_DEVICE_ARRIVAL_H

#include "cuda/device/body.h"

/* What the thread has written is seen by threads that observe, once this block has arrived. A phase ends between this and the arrival. */
BODY void publish(void)
{
#if defined(__CUDACC__)
  __threadfence();
#endif
}

/* Before the thread reads what other blocks published. */
BODY void observe(void) { publish(); }

/* Whether the block is the last of `all`, at most 2^32 - 1. One fence is for what the block brings, the other for what the last one finds:
 * a barrier makes either good for the block's other threads (release and acquire patterns of the PTX ISA's memory model). */
BODY int arrive(uint32_t *counter, int64_t all)
{
#if defined(__CUDACC__)
  __threadfence();
  const int is_last = atomicInc(counter, (uint32_t)all - 1) == (uint32_t)all - 1;
  if (is_last) __threadfence();
  return is_last;
#else
  int is_last = *counter == (uint32_t)all - 1;
#ifdef WATCH_ARRIVAL /* for who watches emulated blocks */
  WATCH_ARRIVAL(counter, is_last);
#endif
  *counter = is_last ? 0 : *counter + 1;
  return is_last;
#endif
}

#endif
