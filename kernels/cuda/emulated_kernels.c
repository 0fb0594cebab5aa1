/* emulated_kernels.c: the kernels' bodies, compiled for the CPU, and the random order in which it runs them. */
#include "cuda/emulated.h"

#include <string.h>

static uint64_t random_state = 88172645463325252u;

void emulated_seed(uint64_t seed)
{
  random_state = seed * 0x9e3779b97f4a7c15u | 1;
}

uint64_t emulated_random(uint64_t bound)
{
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return bound > 0 ? (random_state >> 11) % bound : 0;
}

/* A random permutation of 0 to n - 1: i -> (i * step + start) mod n. */
typedef struct order { uint64_t n, step, start; } order;

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
  while (b > 0) {
    uint64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

static order random_order(uint64_t n)
{
  order self = { n, 1 + emulated_random(n), emulated_random(n) };
  while (common_divisor(self.step, n) != 1) self.step++;
  return self;
}

static uint64_t at(const order *self, uint64_t i)
{
  return (uint64_t)(((unsigned __int128)i * self->step + self->start) % self->n);
}

typedef void element_function(const int64_t *indexes, int count, const void *arguments);
typedef void block_function(int phase, int thread, int64_t block, void *shared, const void *arguments);

#define ELEMENT(name)                                                                              \
  static void name##_elements(const int64_t *indexes, int count, const void *arguments)            \
  {                                                                                                \
    for (int i = 0; i < count; i++) name(indexes[i], (const name##_arguments *)arguments);         \
  }
#define BLOCK(name, phases)                                                                        \
  static void name##_block(int phase, int thread, int64_t block, void *shared, const void *arguments) \
  {                                                                                                \
    name(phase, thread, block, shared, (const name##_arguments *)arguments);                       \
  }
FLOW_CUDA_KERNELS(ELEMENT, BLOCK)
#undef ELEMENT
#undef BLOCK

static const struct { element_function *element; block_function *block; int phases; size_t bytes; } kernels[CUDA_KERNEL_COUNT] = {
#define ELEMENT(name) [CUDA_##name] = { name##_elements, NULL, 0, sizeof(name##_arguments) },
#define BLOCK(name, phases) [CUDA_##name] = { NULL, name##_block, phases, sizeof(name##_arguments) },
  FLOW_CUDA_KERNELS(ELEMENT, BLOCK)
#undef ELEMENT
#undef BLOCK
};

size_t emulated_argument_bytes(int kernel)
{
  return kernels[kernel].bytes;
}

/* Chunks in random order and elements in random order in each: so that neighbours in memory are still found in the caches. */
static void run_elements(int kernel, int64_t count, const void *arguments)
{
  enum { CHUNK = 256 };
  int64_t indexes[CHUNK];
  order chunks = random_order((uint64_t)(count + CHUNK - 1) / CHUNK);
  for (uint64_t c = 0; c < chunks.n; c++) {
    int64_t first = (int64_t)at(&chunks, c) * CHUNK, n = count - first < CHUNK ? count - first : CHUNK;
    order inside = random_order((uint64_t)n);
    for (int64_t i = 0; i < n; i++) indexes[i] = first + (int64_t)at(&inside, (uint64_t)i);
    kernels[kernel].element(indexes, (int)n, arguments);
  }
}

static void run_blocks(int kernel, int64_t count, const void *arguments)
{
  _Alignas(64) unsigned char shared[BLOCK_SHARED];
  order blocks = random_order((uint64_t)count);
  for (uint64_t b = 0; b < blocks.n; b++) {
    memset(shared, 0xff, sizeof shared);
    int64_t block = (int64_t)at(&blocks, b);
    for (int phase = 0; phase < kernels[kernel].phases; phase++) {
      order threads = random_order(BLOCK_THREADS);
      for (uint64_t t = 0; t < BLOCK_THREADS; t++) kernels[kernel].block(phase, (int)at(&threads, t), block, shared, arguments);
    }
  }
}

void emulated_kernel(int kernel, int64_t count, const void *arguments)
{
  if (count <= 0) return;
  if (kernels[kernel].element) run_elements(kernel, count, arguments);
  else run_blocks(kernel, count, arguments);
}
