/* fma_peak: how many float32 operations a second this machine can do at most: independent fused multiply-adds in registers,
 * on every core at once. The yardstick of scripts/bench.  usage: fma_peak [threads]   prints GFLOP/s
 * Each thread counts the time that it was given, so that other programs do not lower the peak. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 1 << 24, ACCUMULATORS = 16, MAX_THREADS = 1024 };

static double thread_seconds(void)
{
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* 16 chains hide the latency of two units with four cycles each. The empty assembly keeps every accumulator in a register and
 * the compiler from folding rounds together. */
#if defined(__x86_64__)
#define KEEP(v) __asm__ volatile("" : "+x"(v))
#else
#define KEEP(v) __asm__ volatile("" : "+w"(v))
#endif
#define DEFINE_SPIN(name, bytes, attribute)                                          \
  __attribute__((attribute)) static double name(void)                                \
  {                                                                                  \
    typedef float vector __attribute__((vector_size(bytes)));                        \
    vector a[ACCUMULATORS], zero = { 0 }, x = zero + 0.999f, y = zero + 0.001f;      \
    _Pragma("GCC unroll 16") for (int i = 0; i < ACCUMULATORS; i++) a[i] = zero;     \
    for (int round = 0; round < ROUNDS; round++) {                                   \
      _Pragma("GCC unroll 16") for (int i = 0; i < ACCUMULATORS; i++) {              \
        a[i] = a[i] * x + y;                                                         \
        KEEP(a[i]);                                                                  \
      }                                                                              \
    }                                                                                \
    return 2.0 * ROUNDS * ACCUMULATORS * (double)(bytes / sizeof(float));            \
  }

#if defined(__x86_64__)
DEFINE_SPIN(spin_avx512, 64, target("avx512f"))
DEFINE_SPIN(spin_avx2, 32, target("avx2,fma"))
#endif
DEFINE_SPIN(spin_plain, 16, noinline)

static double (*spin)(void) = spin_plain;

/* *rate becomes this thread's operations a second. */
static void *worker(void *rate)
{
  double start = thread_seconds(), operations = spin();
  *(double *)rate = operations / (thread_seconds() - start);
  return NULL;
}

int main(int argc, char **argv)
{
  int threads = argc > 1 ? atoi(argv[1]) : 0;
  if (threads <= 0) threads = (int)sysconf(_SC_NPROCESSORS_ONLN);
  if (threads > MAX_THREADS) threads = MAX_THREADS;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) spin = spin_avx512;
  else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) spin = spin_avx2;
#endif
  static pthread_t ids[MAX_THREADS];
  static double rates[MAX_THREADS];
  double best = 0;
  for (int attempt = 0; attempt < 5; attempt++) {
    double sum = 0;
    for (int i = 0; i < threads; i++) {
      if (pthread_create(&ids[i], NULL, worker, &rates[i]) != 0) return 1;
    }
    for (int i = 0; i < threads; i++) {
      pthread_join(ids[i], NULL);
      sum += rates[i];
    }
    if (sum > best) best = sum;
  }
  printf("%.1f\n", best * 1e-9);
  return 0;
}
