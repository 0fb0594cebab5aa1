/* bounds.c: which bytes a launch may touch: the operands of the op's call, the memory that it shares, its scalars, and what the runtime
 * itself has (faults, counters). With FLOW_EMULATED_BOUNDS=1 each access of a kernel to a device's memory is compared with them: what
 * lies beside them belongs to another tensor of the same arena, mostly, so that nothing else would notice.
 *
 * A call is noted before it is launched, since CUDA sees a kernel's arguments alone; a bundle takes as many of them as it has launches. */
#include "cuda/emulation/emulation.h"

#include <stdlib.h>
#include <string.h>
#include "base/hash.h"
#include "base/memory.h"
#include "cuda/runtime/device_table.h"
#include "cuda/runtime/launch.h"
#include "cuda/runtime/runtime.h"
#include "cuda/device/view_make.h"

typedef struct span { const char *from, *to; } span;
struct emulated_bounds { int op, count; span list[]; };

/* What was noted and not launched yet, in order. */
typedef struct noted { int kernel; uint64_t arguments; emulated_bounds *bounds; } noted;
static struct { noted *list; int count, capacity; } waiting[EMULATED_LANES];

static int is_wanted(void)
{
  const char *text = getenv("FLOW_EMULATED_BOUNDS");
  return (text && strcmp(text, "1") == 0) || emulated_widths_wanted();
}

int emulated_bounds_op(const emulated_bounds *bounds) { return bounds->op; }

static void add(emulated_bounds *bounds, const char *from, size_t bytes)
{
  if (from && bytes > 0) bounds->list[bounds->count++] = (span){ from, from + bytes };
}

static void add_operand(emulated_bounds *bounds, const flow_operand *x)
{
  size_t bytes;
  const char *from = flow_cuda_span(x, &bytes);
  add(bounds, from, bytes);
}

/* Of the variant that wants most of those that support the call: tests run each of them. */
static size_t most_shared_bytes(const flow_call *call)
{
  size_t most = 0;
  if (!call->shared) return 0;
  for (const flow_kernel *kernel = flow_cuda_kernels[call->op]; kernel->run; kernel++) {
    if (!kernel->shared_bytes || (kernel->supports && !kernel->supports(call))) continue;
    size_t bytes = kernel->shared_bytes(call);
    if (bytes > most) most = bytes;
  }
  return most;
}

emulated_bounds *emulated_bounds_of(const flow_call *call)
{
  void *made;
  if (!is_wanted()) return NULL;
  size_t most = (size_t)(call->input_count + call->output_count + 2);
  if (flow_alloc_zero(sizeof(emulated_bounds) + most * sizeof(span), &made) != FLOW_OK) return NULL;
  emulated_bounds *bounds = made;
  bounds->op = call->op;
  for (int i = 0; i < call->input_count; i++) add_operand(bounds, &call->inputs[i]);
  for (int i = 0; i < call->output_count; i++) add_operand(bounds, &call->outputs[i]);
  add(bounds, call->shared, most_shared_bytes(call));
  add(bounds, (const char *)call->scalars, sizeof *call->scalars);
  return bounds;
}

void emulated_bounds_note(const flow_call *call, int kernel, const void *arguments, size_t bytes, emulated_bounds *bounds)
{
  int lane = call->queue->stream->lane;
  if (!is_wanted() ||
      flow_grow(&waiting[lane].list, sizeof(noted), waiting[lane].count + 1, &waiting[lane].capacity) != FLOW_OK) {
    flow_free(bounds);
    return;
  }
  waiting[lane].list[waiting[lane].count++] = (noted){ kernel, flow_hash(FLOW_HASH_BEGIN, arguments, bytes), bounds };
}

void emulated_bounds_forget(cudaStream_t stream)
{
  int lane = stream->lane;
  for (int i = 0; i < waiting[lane].count; i++) flow_free(waiting[lane].list[i].bounds);
  waiting[lane].count = 0;
}

/* The first that waits, as its bounds. */
static emulated_bounds *take_first(int lane)
{
  emulated_bounds *first = waiting[lane].list[0].bounds;
  waiting[lane].count--;
  memmove(waiting[lane].list, waiting[lane].list + 1, sizeof(noted) * (size_t)waiting[lane].count);
  return first;
}

/* Both together; NULL, which allows everything, if one of them is. */
static emulated_bounds *join(emulated_bounds *a, emulated_bounds *b)
{
  void *made = NULL;
  if (a && b && flow_alloc_zero(sizeof *a + (size_t)(a->count + b->count) * sizeof(span), &made) == FLOW_OK) {
    emulated_bounds *both = made;
    *both = (emulated_bounds){ a->op, a->count + b->count };
    memcpy(both->list, a->list, sizeof(span) * (size_t)a->count);
    memcpy(both->list + a->count, b->list, sizeof(span) * (size_t)b->count);
  }
  flow_free(a);
  flow_free(b);
  return made;
}

/* What was noted and is not this launch came from a recording that was given up. */
emulated_bounds *emulated_bounds_take(cudaStream_t stream, int kernel, const void *arguments)
{
  int lane = stream->lane;
  if (waiting[lane].count == 0) return NULL;
  uint64_t hash = flow_hash(FLOW_HASH_BEGIN, arguments, emulated_argument_bytes(kernel));
  if (kernel == CUDA_bundle) {
    int launches = ((const bundle_arguments *)arguments)->launches;
    if (launches < 1 || waiting[lane].count < launches) return NULL;
    emulated_bounds *all = take_first(lane);
    for (int i = 1; i < launches; i++) all = join(all, take_first(lane));
    return all;
  }
  while (waiting[lane].count > 0) {
    int found = waiting[lane].list[0].kernel == kernel && waiting[lane].list[0].arguments == hash;
    emulated_bounds *first = take_first(lane);
    if (found) return first;
    flow_free(first);
  }
  return NULL;
}

/* ---- watching --------------------------------------------------------------------------------------------------------------------- */

static const emulated_bounds *watched;
static span last, memory;                    /* that was touched; what all devices have lies within */
static int broken;

void emulated_bounds_enter(const emulated_bounds *bounds)
{
  watched = bounds;
  last = (span){ 0 };
  if (bounds) emulated_memory_reach(&memory.from, &memory.to);
}

int emulated_bounds_leave(void)
{
  int was_broken = broken;
  watched = NULL;
  broken = 0;
  return was_broken;
}

/* How far the access is from the nearest bytes that it may touch. */
static int64_t distance(const char *from, const char *to)
{
  int64_t least = INT64_MAX;
  for (int i = 0; i < watched->count; i++) {
    int64_t behind = to - watched->list[i].to, before = watched->list[i].from - from, far = behind > before ? behind : before;
    if (far < least) least = far;
  }
  return least;
}

/* What is not all right is told once. */
void emulated_bounds_break(void)
{
  broken = 1;
  watched = NULL;
}

/* Whether it is a tensor's, or memory that the call shares, rather than the runtime's own. */
static int look_up(const char *from, const char *to, int write)
{
  int device;
  for (int i = 0; i < watched->count; i++) {
    if (from < watched->list[i].from || to > watched->list[i].to) continue;
    last = watched->list[i];
    return 1;
  }
  const emulated_block *block = emulated_memory_find(from, &device);
  if (!block && !emulated_memory_is(from)) return 0; /* between devices */
  if (block && !block->pool && to <= block->start + block->bytes) return 0;
  emulated_refuse("out of bounds: %s %s %d bytes, of which the last is %lld bytes beside what it was given",
                  flow_cuda_op_name(watched->op), write ? "writes" : "reads", (int)(to - from), (long long)distance(from, to));
  emulated_bounds_break();
  return 0;
}

/* Whether the access is to a tensor's bytes, and somebody wants to know. */
static inline int look_at(const char *from, size_t bytes, int write)
{
  if (from < memory.from || from >= memory.to) return 0;
  emulated_widths_note(from, bytes, write);
  return watched && ((from >= last.from && from + bytes <= last.to) || look_up(from, from + bytes, write));
}

/* The same, and whether other threads touch the same bytes. What is next to a block's memory belongs to nobody. */
static inline void compare(const void *at, size_t bytes, int write)
{
  const char *from = at, *shared = emulated_here.shared;
  int right = 1;
  if (watched && shared && from >= shared - EMULATED_SLACK && from < shared + emulated_here.shared_bytes + EMULATED_SLACK)
    right = emulated_race_visit_shared(from, bytes, write);
  else if (look_at(from, bytes, write)) right = emulated_race_visit(from, bytes, write);
  if (!right) emulated_bounds_break();
}

/* Functions that the compiler calls for accesses, as gcc and clang name them: the same for each number of bytes. */
#define CALLED(name, bytes, see, write) \
  void name(const void *at);            \
  void name(const void *at)             \
  {                                     \
    see(at, bytes, write);              \
  }
#define CALLED_FOR_MANY(name, see, write)  \
  void name(const void *at, size_t bytes); \
  void name(const void *at, size_t bytes)  \
  {                                        \
    see(at, bytes, write);                 \
  }
#define EACH_WIDTH(X) X(1) X(2) X(4) X(8) X(16)

/* By watched_bodies.c. AddressSanitizer has functions of these names. */
#if !defined(__SANITIZE_ADDRESS__)
#define X(bytes) CALLED(__asan_load##bytes##_noabort, bytes, look_at, 0) CALLED(__asan_store##bytes##_noabort, bytes, look_at, 1)
EACH_WIDTH(X)
#undef X
CALLED_FOR_MANY(__asan_loadN_noabort, look_at, 0)
CALLED_FOR_MANY(__asan_storeN_noabort, look_at, 1)
void __asan_handle_no_return(void);
void __asan_handle_no_return(void) { }
#endif

/* By raced_bodies.c. ThreadSanitizer has functions of these names. */
#if !defined(__SANITIZE_THREAD__)
#define X(bytes)                                          \
  CALLED(__tsan_read##bytes, bytes, compare, 0)           \
  CALLED(__tsan_unaligned_read##bytes, bytes, compare, 0) \
  CALLED(__tsan_write##bytes, bytes, compare, 1) CALLED(__tsan_unaligned_write##bytes, bytes, compare, 1)
EACH_WIDTH(X)
#undef X
CALLED_FOR_MANY(__tsan_read_range, compare, 0)
CALLED_FOR_MANY(__tsan_write_range, compare, 1)
void *__tsan_memcpy(void *to, const void *from, size_t bytes);
void *__tsan_memmove(void *to, const void *from, size_t bytes);
void *__tsan_memset(void *to, int byte, size_t bytes);
void __tsan_init(void);
void __tsan_func_entry(void *caller);
void __tsan_func_exit(void);
void *__tsan_memmove(void *to, const void *from, size_t bytes)
{
  compare(from, bytes, 0);
  compare(to, bytes, 1);
  return memmove(to, from, bytes);
}
void *__tsan_memcpy(void *to, const void *from, size_t bytes)
{
  return __tsan_memmove(to, from, bytes);
}
void *__tsan_memset(void *to, int byte, size_t bytes)
{
  compare(to, bytes, 1);
  return memset(to, byte, bytes);
}
void __tsan_init(void)
{
}
void __tsan_func_entry(void *caller)
{
  (void)caller;
}
void __tsan_func_exit(void)
{
}
#endif
