/* peak.c: the yardstick of costs: multiply-adds in registers, as many as this build's vectors allow. */
#include "cpu/vector.h"

/* Makes at least `count` multiply-adds and returns how many it made; flow_peak (core/run/measure.c) makes a rate of the time. */
double FLOW_ISA_NAME(peak)(double count)
{
  enum { SUMS = 16 };                       /* independent chains: two units, four cycles latency each */
  vf sums[SUMS], x = vf_set(0.999f), y = vf_set(0.001f);
  FLOW_UNROLL(16)
  for (int i = 0; i < SUMS; i++) sums[i] = vf_set((float)i);
  int64_t rounds = (int64_t)(count / (SUMS * VL)) + 1;
  for (int64_t round = 0; round < rounds; round++) {
    FLOW_UNROLL(16)
    for (int i = 0; i < SUMS; i++) {
      sums[i] = sums[i] * x + y;
#if defined(__x86_64__)
      __asm__ volatile("" : "+x"(sums[i]));   /* stays in a register, and rounds are not folded together */
#else
      __asm__ volatile("" : "+w"(sums[i]));
#endif
    }
  }
  return (double)rounds * SUMS * VL;
}
