/* kernels.c: the kernels by the names that they have in kernels.cu; launches of them; and the random order in which blocks and threads
 * run. Their bodies are in bodies.c. */
#include "cuda/emulation/emulation.h"

#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "compiled_families.h"
#include "cuda/runtime/launch.h"

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

/* As kernels.cu has it, where a family has its own number. */
#define SHARED_OF(type) \
  _Generic((const type *)NULL, const attention_arguments *: ATTENTION_SHARED, const batch_norm_wide_arguments *: WIDE_SHARED,         \
           const bundle_arguments *: BUNDLE_SHARED, const recurrent_arguments *: RECURRENT_SHARED,                                   \
           const reduce_wide_arguments *: REDUCE_WIDE_SHARED, default: BLOCK_SHARED)
/* Where their number is said by the arguments. */
typedef int phases_function(const void *arguments);
#define PHASES_OF(type) _Generic((const type *)NULL, const recurrent_arguments *: recurrent_phases, \
                                 const bundle_arguments *: bundle_phases, default: (phases_function *)NULL)

static const struct kernel {
  const char       *name;
  int               phases;
  phases_function  *count_phases;
  size_t            bytes, shared;         /* of its arguments; what a block has in common */
} kernels[CUDA_KERNEL_COUNT] = {
#define ELEMENT(name) [CUDA_##name] = { #name "_kernel", 0, NULL, sizeof(name##_arguments), 0 },
#define BLOCK(name, phases) \
  [CUDA_##name] = { #name "_kernel", phases, PHASES_OF(name##_arguments), sizeof(name##_arguments), SHARED_OF(name##_arguments) },
  FLOW_CUDA_KERNELS(ELEMENT, BLOCK)
#undef ELEMENT
#undef BLOCK
};

size_t emulated_argument_bytes(int kernel)
{
  return kernels[kernel].bytes;
}

/* ---- images ------------------------------------------------------------------------------------------------------------------ */

#define X(image, list)                                       \
  extern const unsigned long long flow_cuda_##image##_fatbin[]; \
  const unsigned long long flow_cuda_##image##_fatbin[1] = { 0 };
FLOW_CUDA_IMAGES(X)
#undef X

static const char is_of_library[CUDA_KERNEL_COUNT] = {
#define ELEMENT(name) [CUDA_##name] = 1,
#define BLOCK(name, phases) [CUDA_##name] = 1,
  EMULATED_LIBRARY_KERNELS(ELEMENT, BLOCK)
#undef ELEMENT
#undef BLOCK
};

/* Handles: the image; the kernel's record. */
cudaError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *code, enum cudaJitOption *options, void **values, unsigned count,
                                enum cudaLibraryOption *library_options, void **library_values, unsigned library_count)
{
  (void)options, (void)values, (void)library_options, (void)library_values;
  EMULATED_BEGIN();
  int known = code == flow_cuda_families_fatbin || code == flow_cuda_libraries_fatbin;
  *library = (cudaLibrary_t)(uintptr_t)code;
  return emulated_leave(count || library_count ? cudaErrorNotSupported : known ? cudaSuccess : cudaErrorInvalidKernelImage);
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t *out, cudaLibrary_t library, const char *name)
{
  int of_library = (const void *)library == flow_cuda_libraries_fatbin;
  EMULATED_BEGIN();
  for (int i = 0; i < CUDA_KERNEL_COUNT; i++) {
    if (is_of_library[i] != of_library || strcmp(kernels[i].name, name) != 0) continue;
    *out = (cudaKernel_t)(uintptr_t)&kernels[i];
    return emulated_leave(cudaSuccess);
  }
  return emulated_leave(cudaErrorSymbolNotFound);
}

/* ---- launches ---------------------------------------------------------------------------------------------------------------- */

static char is_loaded[EMULATED_DEVICES][CUDA_KERNEL_COUNT];

/* Loading takes memory, and waits for the device perhaps: what a capture forbids. */
static cudaError_t load(const struct kernel *kernel)
{
  if (kernel < kernels || kernel >= kernels + CUDA_KERNEL_COUNT) return cudaErrorInvalidResourceHandle;
  char *loaded = &is_loaded[emulated_device()][kernel - kernels];
  if (*loaded) return cudaSuccess;
  EMULATED_TRY(emulated_check_unsafe());
  *loaded = 1;
  emulated_list_load((int)(kernel - kernels));
  return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *kernel)
{
  EMULATED_BEGIN();
  cudaError_t error = load(kernel);
  size_t shared = error == cudaSuccess ? ((const struct kernel *)kernel)->shared : 0;
  const char *version = getenv("FLOW_EMULATED_PTX"); /* as if the kernels were compiled for that */
  *attributes = (struct cudaFuncAttributes){
    .sharedSizeBytes = shared, .maxThreadsPerBlock = BLOCK_THREADS, .ptxVersion = version ? atoi(version) : 90, .binaryVersion = 90
  };
  return emulated_leave(error);
}

/* A launch that need not wait for the kernel before it, because it does so itself. Stricter than CUDA: only in a capture, and only where a
 * kernel of ours is all that it would wait for. Then it waits as others do, which is what kernels.cu comes to. */
static cudaError_t check_early(const cudaLaunchConfig_t *how)
{
  const cudaStream_t stream = how->stream;
  if (how->numAttrs == 0) return cudaSuccess;
  if (how->numAttrs != 1 || how->attrs[0].id != cudaLaunchAttributeProgrammaticStreamSerialization) return cudaErrorNotSupported;
  if (!how->attrs[0].val.programmaticStreamSerializationAllowed) return cudaErrorNotSupported;
  int alone = stream->capture && stream->tail.count == 1;
  const emulated_work *before = alone ? &stream->capture->nodes->list[stream->tail.list[0]].work : NULL;
  if (before && before->kind == WORK_KERNEL && !is_of_library[before->kernel]) return cudaSuccess;
  return emulated_refuse("hazard: a kernel may start early, but it does not wait for what is before it");
}

/* Each kernel has two parameters: its arguments, and how many elements or blocks there are. */
static cudaError_t launch(const cudaLaunchConfig_t *how, const struct kernel *kernel, void **parameters)
{
  enum { MOST_THREADS = 1024 };
  const dim3 grid = how->gridDim, block = how->blockDim;
  const size_t shared = how->dynamicSmemBytes;
  const cudaStream_t stream = how->stream;
  EMULATED_TRY(emulated_check_current(stream));
  EMULATED_TRY(load(kernel));
  EMULATED_TRY(check_early(how));
  if (grid.x < 1 || grid.x > INT32_MAX || block.x < 1 || block.x > MOST_THREADS || shared > 0) return cudaErrorInvalidConfiguration;
  if (grid.y != 1 || grid.z != 1 || block.y != 1 || block.z != 1) return cudaErrorNotSupported;
  if (block.x > BLOCK_THREADS) return cudaErrorInvalidConfiguration;      /* than kernels.cu promises */
  emulated_work work = { .kind = WORK_KERNEL, .kernel = (int)(kernel - kernels), .grid = grid.x, .block = block.x };
  memcpy(&work.count, parameters[1], sizeof work.count);
  if (flow_alloc(kernel->bytes, &work.payload) != FLOW_OK) return cudaErrorMemoryAllocation;
  memcpy(work.payload, parameters[0], kernel->bytes);
  if (stream->capture) emulated_list_node(work.kernel, work.payload, how->numAttrs > 0);
  work.bounds = emulated_bounds_take(stream, work.kernel, work.payload);
  return emulated_enqueue(stream, &work);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *how, const void *kernel, void **parameters)
{
  EMULATED_BEGIN();
  return emulated_leave(launch(how, kernel, parameters));
}

/* ---- carrying out ------------------------------------------------------------------------------------------------------------ */

/* What a block's threads do in one round of their loop is next to each other, so that neighbours in memory are still found in the caches;
 * these come in random order, and so do the threads of each. */
static void run_elements(element_function *element, const emulated_work *work)
{
  int64_t indexes[BLOCK_THREADS];
  order rounds = random_order((uint64_t)(work->count + BLOCK_THREADS - 1) / BLOCK_THREADS);
  for (uint64_t r = 0; r < rounds.n; r++) {
    int64_t first = (int64_t)at(&rounds, r) * BLOCK_THREADS, n = work->count - first < work->block ? work->count - first : work->block;
    order inside = random_order((uint64_t)n);
    for (int64_t i = 0; i < n; i++) indexes[i] = first + (int64_t)at(&inside, (uint64_t)i);
    element(indexes, (int)n, work->payload);
  }
}

/* A body that is whole takes threads in the order that a random number says. */
static void run_block(const struct kernel *kernel, block_function *body, const emulated_work *work, int64_t block, void *shared)
{
  int phases = kernel->count_phases ? kernel->count_phases(work->payload) : kernel->phases;
  const int rounds = work->kernel == CUDA_bundle ? MOST_WAITS + 1 : 1; /* between two barriers */
  emulated_races_block(block, shared, kernel->shared);
  if (kernel->phases == WHOLE && !kernel->count_phases) {
    body(0, (int)emulated_random(BLOCK_THREADS), block, shared, work->payload);
    emulated_together(); /* nobody has returned alone */
    return;
  }
  for (int phase = 0; phase < phases; phase++) {
    order threads = random_order(work->block);
    emulated_here.barrier = phase / rounds;
    emulated_here.round = phase % rounds;
    for (uint64_t t = 0; t < threads.n; t++) {
      emulated_here.thread = (int)at(&threads, t);
      body(phase, emulated_here.thread, block, shared, work->payload);
    }
  }
}

enum { MOST_SHARED = (int)WIDE_SHARED > (int)BUNDLE_SHARED ? WIDE_SHARED : BUNDLE_SHARED };

/* A block of the grid takes every grid-th of them, and finds in its shared memory what the one before left there. */
static void run_blocks(const struct kernel *kernel, block_function *body, const emulated_work *work)
{
  _Alignas(64) unsigned char room[EMULATED_SLACK + MOST_SHARED + EMULATED_SLACK], *shared = room + EMULATED_SLACK;
  int64_t grid = work->grid;
  order blocks = random_order((uint64_t)(grid < work->count ? grid : work->count));
  for (uint64_t b = 0; b < blocks.n; b++) {
    memset(shared, 0xff, kernel->shared);
    for (int64_t block = (int64_t)at(&blocks, b); block < work->count; block += grid) run_block(kernel, body, work, block, shared);
  }
}

int emulated_is_idle(void)
{
  const char *text = getenv("FLOW_EMULATED_IDLE");
  return text && strcmp(text, "1") == 0;
}

/* What widths.c counts: all of a bundle, of others what the first block has to do, and the one in the middle. */
static void sample(const struct kernel *kernel, const emulated_body *body, const emulated_work *work)
{
  _Alignas(64) unsigned char room[EMULATED_SLACK + MOST_SHARED + EMULATED_SLACK], *shared = room + EMULATED_SLACK;
  const int bundled = work->kernel == CUDA_bundle;
  if (!emulated_widths_wanted() || !work->bounds || is_of_library[work->kernel]) return;
  emulated_widths_begin();
  emulated_bounds_enter(work->bounds);
  for (int64_t i = 0; !body->element && i < (bundled ? work->count : 2); i++)
    run_block(kernel, body->block, work, bundled ? i : i * (work->count / 2), shared);
  for (int64_t i = 0; body->element && i < 2 * BLOCK_THREADS && i < work->count; i++) {
    int64_t half = work->count / 2, element = i < BLOCK_THREADS || half < BLOCK_THREADS ? i : half - i + BLOCK_THREADS;
    body->element(&element, 1, work->payload);
  }
  emulated_widths_end(work->kernel, emulated_bounds_op(work->bounds));
}

void emulated_kernel(const emulated_work *work)
{
  const struct kernel *kernel = &kernels[work->kernel];
  const int races = work->bounds && !emulated_widths_wanted() && !is_of_library[work->kernel];
  const emulated_body *bodies = races ? emulated_raced_bodies : work->bounds ? emulated_watched_bodies : emulated_bodies;
  const emulated_body *body = &bodies[work->kernel];
  if (work->count > 0 && emulated_is_idle()) sample(kernel, body, work);
  if (work->count <= 0 || emulated_is_idle()) return;
  emulated_bounds_enter(work->bounds);
  if (races) emulated_races_begin(emulated_bounds_op(work->bounds));
  if (body->element) run_elements(body->element, work);
  else run_blocks(kernel, body->block, work);
}
