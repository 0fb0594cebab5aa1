/* bundling.c: see bundling.h. */
#include "cuda/runtime/bundling.h"

#include <limits.h>
#include <string.h>
#include "base/memory.h"
#include "cuda/runtime/device_table.h"
#include "cuda/device/view_make.h"

/* Small: what one block does in 8 rounds of its threads, or in 4 turns of a block kernel. Such a launch takes about as long as starting
 * it, so that it may as well run next to others on one multiprocessor. MOST_ACCESSES: spans of memory that all launches of a bundle
 * touch; more than a bundle of BUNDLE_ITEMS usually has, else it is closed earlier. */
enum { MOST_ELEMENTS = 8 * BLOCK_THREADS, MOST_BLOCKS = 4, MOST_ACCESSES = 2048, WARP = 32 };

/* READS and MARKS of the same bytes do no harm among themselves: of several faults any is kept. */
typedef enum access_kind { READS, WRITES, MARKS } access_kind;
/* step: bytes of it that element i of the launch touches, at i * step; 0: any elements touch any of it. */
typedef struct access { const char *from, *to; access_kind kind; int step; } access;

/* What element i of a launch touches of an operand: anything, its element i, or the i-th of as many equal parts as there are elements. */
typedef enum own_part { ANY_PART, OWN_ELEMENT, OWN_LINE } own_part;

/* group: the first launch that this one depends on by way of others, or itself. last: the turn that ends it. elements: how many there are
 * where each is a thread's own from beginning to end, or that a team of threads in one warp leaves to its first; else 0. place: the thread
 * of the first of those. wait: how many waits of warps are in its last turn before the launch is done. */
typedef struct bundled {
  flow_cuda_kernel kernel;
  int              op, group, word, items, first_access, last, place, wait;
  unsigned         phases;                   /* of a block kernel, those that do something */
  int              together, is_team;        /* all of them in one turn; by more than a thread for each line */
  own_part         reads, writes;
  int64_t          count, elements;
  size_t           bytes;
} bundled;

typedef struct placed_item { bundle_item item; int turn; } placed_item;

struct flow_cuda_bundle {
  int      count, items, words, access_count;
  bundled  launches[BUNDLE_ITEMS];
  access   accesses[MOST_ACCESSES];
  placed_item placed[BUNDLE_ITEMS];            /* those of a block, when it is laid out */
  uint8_t  parts[BUNDLE_ITEMS], small[BUNDLE_ITEMS];      /* [turn]: parts that are taken; small element kernels */
  bundle_arguments arguments;
};

/* Kernels that may be turns, as the bundle numbers them, from 1 on; phases: 0 for element kernels. */
static const struct { int16_t number, phases; } small_kernels[CUDA_KERNEL_COUNT] = {
#define ELEMENT(name) [CUDA_##name] = { SMALL_##name + 1, 0 },
#define BLOCK(name, phases) [CUDA_##name] = { SMALL_##name + 1, phases },
  SMALL_LAUNCHES(ELEMENT, BLOCK)
#undef ELEMENT
#undef BLOCK
};

/* How a block kernel's threads share its lines. threads: that work on the same one: with one thread nobody waits for others, and the
 * results of few are combined in one phase, the last. in_warp: those of a line are neighbours in a warp, if the block's first thread is a
 * warp's first. lines: 0 where that is not known. reads: what a line is made of. */
typedef struct line_sharing { int threads, in_warp; int64_t lines; own_part reads; } line_sharing;

static line_sharing sharing_of_reduce(const void *arguments)
{
  const reduce_arguments *a = arguments;
  int of_own = flow_cuda_view_is(&a->along, 1) && flow_cuda_view_is(&a->x, a->length);
  int in_warp = a->lanes == 1 || (!a->outputs_first && a->lanes <= WARP);
  return (line_sharing){ a->lanes, in_warp, a->outputs, of_own ? OWN_LINE : ANY_PART };
}

static line_sharing sharing_of_softmax(const void *arguments)
{
  const softmax_arguments *a = arguments;
  return (line_sharing){ a->team, a->team <= WARP, a->lines, OWN_LINE };
}

static line_sharing sharing_of_cross_entropy(const void *arguments)
{
  const cross_entropy_arguments *a = arguments;
  return (line_sharing){ a->team, a->team <= WARP, a->lines, OWN_LINE };
}

static line_sharing sharing_of_block(const void *arguments)
{
  (void)arguments;
  return (line_sharing){ BLOCK_THREADS, 0, 0, ANY_PART };
}

static line_sharing sharing_of(flow_cuda_kernel kernel, const void *arguments)
{
  switch (kernel) {
#define ELEMENT(name)
#define BLOCK(name, phases)                                                                          \
    case CUDA_##name: return _Generic((const name##_arguments *)NULL,                                \
                                      const reduce_arguments *: sharing_of_reduce,                   \
                                      const softmax_arguments *: sharing_of_softmax,                 \
                                      const cross_entropy_arguments *: sharing_of_cross_entropy,     \
                                      default: sharing_of_block)(arguments);
    SMALL_LAUNCHES(ELEMENT, BLOCK)
#undef ELEMENT
#undef BLOCK
    default: return sharing_of_block(arguments);
  }
}
_Static_assert((int)REDUCE_FIRST == (int)TEAM_FEW, "phase 1 combines more than this");

/* How far a call's shared memory reaches is not said here, so that others could not be kept out of it. */
int flow_cuda_is_small(const flow_call *call, flow_cuda_kernel kernel, int64_t count)
{
  return small_kernels[kernel].number && !call->shared && count <= (small_kernels[kernel].phases ? MOST_BLOCKS : MOST_ELEMENTS);
}

/* ---- what a launch touches --------------------------------------------------------------------------------------------------- */

/* Element kernels whose element i writes element i of a result; and those that make it of the elements i of operands laid out like it. */
static const struct { unsigned char writes, reads; } own_elements[CUDA_KERNEL_COUNT] = {
  [CUDA_numbers_float] = { OWN_ELEMENT, OWN_ELEMENT },      [CUDA_numbers_double] = { OWN_ELEMENT, OWN_ELEMENT },
  [CUDA_numbers_integer] = { OWN_ELEMENT, OWN_ELEMENT },    [CUDA_conditions_float] = { OWN_ELEMENT, OWN_ELEMENT },
  [CUDA_conditions_double] = { OWN_ELEMENT, OWN_ELEMENT },  [CUDA_conditions_integer] = { OWN_ELEMENT, OWN_ELEMENT },
  [CUDA_logical_strided] = { OWN_ELEMENT, OWN_ELEMENT },    [CUDA_convert_strided] = { OWN_ELEMENT, OWN_ELEMENT },
  [CUDA_move_strided] = { OWN_ELEMENT, ANY_PART },          [CUDA_fill] = { OWN_ELEMENT, ANY_PART },
};

/* Says of a launch what its elements touch. A block whose lines have a thread each has as many elements; several blocks have none, as two
 * threads of the bundle's block would have to be one. The one line of a team is one element: all read for it, the first writes it. */
static void find_elements(bundled *launch, const line_sharing *sharing)
{
  if (!small_kernels[launch->kernel].phases) {
    launch->elements = launch->count;
    launch->reads = own_elements[launch->kernel].reads;
    launch->writes = own_elements[launch->kernel].writes;
  } else if (sharing->threads == 1 && launch->count == 1) {
    launch->elements = sharing->lines;
    launch->reads = sharing->reads;
    launch->writes = OWN_LINE;
  } else if (sharing->in_warp && sharing->lines == 1 && launch->count == 1) {
    launch->is_team = 1;
    launch->elements = 1;
    launch->writes = OWN_LINE;
  }
}

/* Notes bytes of the last launch. The caller made sure that there is room. */
static void touch(flow_cuda_bundle *self, const void *from, size_t bytes, access_kind kind, int step)
{
  if (bytes > 0) self->accesses[self->access_count++] = (access){ from, (const char *)from + bytes, kind, step };
}

/* Bytes that each element touches of a contiguous operand of `bytes` bytes; 0: not its own alone. */
static int step_of(const bundled *launch, const flow_operand *x, size_t bytes, access_kind kind)
{
  own_part own = kind == WRITES ? launch->writes : launch->reads;
  size_t elements = (size_t)launch->elements, size = (size_t)flow_dtype_size(x->dtype);
  if (elements == 0 || own == ANY_PART || !flow_cuda_contiguous(x)) return 0;
  if (own == OWN_ELEMENT) return bytes == elements * size ? (int)size : 0;
  return bytes % elements == 0 && bytes / elements <= INT_MAX ? (int)(bytes / elements) : 0;
}

/* The span goes from the first to the last byte, so that a strided operand counts as all between: too much, never too little. */
static void touch_operand(flow_cuda_bundle *self, const flow_operand *x, access_kind kind)
{
  size_t bytes;
  const char *from = flow_cuda_span(x, &bytes);
  touch(self, from, bytes, kind, step_of(&self->launches[self->count - 1], x, bytes, kind));
}

/* All that a launch reads and writes according to its call: operands, and the fault of the queue for ops that look at it or may raise
 * it. */
static void touch_call(flow_cuda_bundle *self, const flow_call *call)
{
  int is_effect = flow_cuda_op_is_effect(call->op), checks = flow_cuda_op_checks(call->op);
  for (int i = 0; i < call->input_count; i++) touch_operand(self, &call->inputs[i], flow_cuda_writes_input(call, i) ? WRITES : READS);
  for (int i = 0; i < call->output_count; i++) touch_operand(self, &call->outputs[i], WRITES);
  if (is_effect || checks) touch(self, flow_cuda_verdict(call), sizeof(flow_device_fault), checks ? MARKS : READS, 0);
}

static int end_of_accesses(const flow_cuda_bundle *self, int launch)
{
  return launch + 1 < self->count ? self->launches[launch + 1].first_access : self->access_count;
}

typedef enum dependence { INDEPENDENT, BY_ELEMENTS, DEPENDENT } dependence;

/* BY_ELEMENTS: thread by thread, if both take the same elements: then a thread's own order is enough. It is not for what several threads
 * read. */
static dependence depend(const flow_cuda_bundle *self, int earlier, int later)
{
  const bundled *first = &self->launches[earlier], *second = &self->launches[later];
  int elements = first->elements > 0 && first->elements == second->elements && !second->is_team;
  dependence found = INDEPENDENT;
  for (int i = first->first_access; i < end_of_accesses(self, earlier); i++)
    for (int k = second->first_access; k < end_of_accesses(self, later); k++) {
      const access *a = &self->accesses[i], *b = &self->accesses[k];
      if ((a->kind == b->kind && a->kind != WRITES) || a->from >= b->to || b->from >= a->to) continue;
      int same = a->from == b->from && a->step == b->step && a->step > 0;
      if (!elements || (first->elements > 1 && !same) || (first->is_team && a->kind != WRITES)) return DEPENDENT;
      found = BY_ELEMENTS;
    }
  return found;
}

/* Puts the last launch together with the groups that it depends on, each named by the number of its first launch; they become one group.
 * Groups do not depend on each other, so that each can have its own block without waiting. */
static void join_groups(flow_cuda_bundle *self)
{
  int last = self->count - 1;
  for (int i = 0; i < last; i++) {
    int group = self->launches[i].group, own = self->launches[last].group;
    if (group == own || depend(self, i, last) == INDEPENDENT) continue;
    int kept = group < own ? group : own, gone = group < own ? own : group;
    for (int k = 0; k <= last; k++)
      if (self->launches[k].group == gone) self->launches[k].group = kept;
  }
}

/* ---- adding ------------------------------------------------------------------------------------------------------------------------ */

static int words_of(size_t bytes) { return (int)((bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t)); }

static int bits_of(unsigned bits) { return bits ? 1 + bits_of(bits & (bits - 1)) : 0; }

/* A block kernel's phases are counted as items, one per block and turn, or one per block where all run in one turn: threads of the same
 * line that are in one warp wait for each other between the phases of an item (bundle_do), not for the block between turns. Phase 1 (the
 * second) of a kernel whose threads work in groups of at most REDUCE_FIRST has nothing to combine and is left out. */
flow_status flow_cuda_bundle_add(flow_cuda_bundle **bundle, const flow_call *call, flow_cuda_kernel kernel, int64_t count,
                                 const void *arguments, size_t bytes, int *taken)
{
  *taken = 0;
  if (!*bundle) {
    void *made;
    FLOW_TRY(flow_alloc_zero(sizeof **bundle, &made));
    *bundle = made;
  }
  flow_cuda_bundle *self = *bundle;
  int phases = small_kernels[kernel].phases;
  line_sharing sharing = sharing_of(kernel, arguments);
  bundled launch = { .kernel = kernel, .op = call->op, .group = self->count, .word = self->words, .first_access = self->access_count,
                     .phases = phases ? (1u << phases) - 1 : 0, .together = phases == 1 || sharing.in_warp, .count = count,
                     .bytes = bytes };
  if (sharing.threads <= REDUCE_FIRST) launch.phases &= ~2u;
  find_elements(&launch, &sharing);
  launch.items = phases ? (int)count * (launch.together ? 1 : bits_of(launch.phases)) : 1;
  if (self->items + launch.items > BUNDLE_ITEMS || self->words + words_of(bytes) > BUNDLE_WORDS ||
      self->access_count + call->input_count + call->output_count + 1 > MOST_ACCESSES) return FLOW_OK;
  self->launches[self->count++] = launch;
  memcpy(self->arguments.words + self->words, arguments, bytes);
  self->items += launch.items;
  self->words += words_of(bytes);
  touch_call(self, call);
  join_groups(self);
  *taken = 1;
  return FLOW_OK;
}

/* ---- turns ------------------------------------------------------------------------------------------------------------------------- */

/* How often the threads of a warp wait for each other between the launch's phases, where one item has all of them. */
static int waits_of(const bundled *launch) { return launch->phases && launch->together ? bits_of(launch->phases) - 1 : 0; }

/* The first turn in which a launch of the group may begin. *place: the first thread that its elements need, as those that it goes on from
 * have it; -1: any. *wait: the waits of its warps in that turn until it begins. */
static int earliest_turn(const flow_cuda_bundle *self, int launch, int *place, int *wait)
{
  int turn = 0;
  *place = -1;
  *wait = 0;
  for (int i = 0; i < launch; i++) {
    const bundled *before = &self->launches[i];
    if (before->group != self->launches[launch].group) continue;
    dependence found = depend(self, i, launch);
    if (found == INDEPENDENT) continue;
    int joins = found == BY_ELEMENTS && (before->last > turn || *place < 0 || *place == before->place);
    if (before->wait + waits_of(&self->launches[launch]) > MOST_WAITS) joins = 0;
    int from = before->last + !joins;
    if (from < turn) continue;
    if (from > turn) *wait = 0;
    if (from > turn || joins) *place = joins ? before->place : -1;
    if (joins && before->wait > *wait) *wait = before->wait;
    turn = from;
  }
  return turn;
}

static void place_item(flow_cuda_bundle *self, int *placed, const bundled *launch, int turn, unsigned phases, int place, int which)
{
  self->placed[(*placed)++] = (placed_item){
    { .kernel = (int16_t)(small_kernels[launch->kernel].number - 1), .phases = (int16_t)phases, .place = (int16_t)place,
      .word = (int16_t)launch->word, .which = which }, turn };
}

/* Small ones that are side by side have different warps, in turns. */
static void place_elements(flow_cuda_bundle *self, int *placed, bundled *launch, int turn, int place)
{
  if (place < 0) place = self->small[turn]++ * WARP % BLOCK_THREADS;
  launch->last = turn;
  launch->place = place;
  place_item(self, placed, launch, turn, (unsigned)launch->wait << BUNDLE_WAITS, place, (int)launch->count);
}

/* A block needs its part of the shared memory from its first turn to its last. Looks for the first turn from which on one part is free
 * for all the turns, and takes it; a block that finds all parts taken begins a turn later. */
static void place_block(flow_cuda_bundle *self, int *placed, bundled *launch, int turn, int which)
{
  int turns = launch->together ? 1 : bits_of(launch->phases), part = 0;
  for (int k = 0; k < turns; k++) {
    if (!(self->parts[turn + k] >> part & 1)) continue;
    k = -1;
    if (++part < BUNDLE_PARTS) continue;
    part = 0;
    turn++;
  }
  for (int k = 0; k < turns; k++) self->parts[turn + k] |= (uint8_t)(1u << part);
  part += BUNDLE_PARTS * launch->place;
  unsigned left = launch->phases;
  for (int k = 0; k < turns; k++) {
    unsigned phases = launch->together ? left : left & ~(left - 1);
    place_item(self, placed, launch, turn + k, phases | (unsigned)launch->wait << BUNDLE_WAITS, part, which);
    left &= ~phases;
  }
  if (turn + turns - 1 > launch->last) launch->last = turn + turns - 1;
}

/* Gives a group's launches their turns, in the order in which they came, so that those that a launch depends on have theirs already. The
 * result is in `placed`. Returns how many items there are. */
static int place_group(flow_cuda_bundle *self, int group)
{
  int placed = 0;
  memset(self->parts, 0, sizeof self->parts);
  memset(self->small, 0, sizeof self->small);
  for (int i = group; i < self->count; i++) {
    bundled *launch = &self->launches[i];
    if (launch->group != group) continue;
    int place, turn = earliest_turn(self, i, &place, &launch->wait);
    launch->last = turn;
    launch->place = place < 0 ? 0 : place;
    if (!small_kernels[launch->kernel].phases) place_elements(self, &placed, launch, turn, place);
    for (int k = 0; small_kernels[launch->kernel].phases && k < launch->count; k++) place_block(self, &placed, launch, turn, k);
    launch->wait += waits_of(launch);
  }
  return placed;
}

/* Writes the lists that the kernel reads: for each block the turns from first[block] on, for each turn the items from turn[turn] on.
 * Threads of a block wait for each other between turns. Returns the number of blocks. */
static int lay_out(flow_cuda_bundle *self)
{
  bundle_arguments *to = &self->arguments;
  int blocks = 0, turns = 0, items = 0;
  to->launches = (int16_t)self->count;
  for (int group = 0; group < self->count; group++) {
    if (self->launches[group].group != group) continue;
    int placed = place_group(self, group), done = 0;
    to->first[blocks++] = (int16_t)turns;
    for (int turn = 0; done < placed; turn++) {
      to->turn[turns++] = (int16_t)items;
      for (int k = 0; k < placed; k++) {
        if (self->placed[k].turn != turn) continue;
        to->item[items++] = self->placed[k].item;
        done++;
      }
    }
  }
  to->first[blocks] = to->first[blocks + 1] = (int16_t)turns;
  to->turn[turns] = (int16_t)items;
  return blocks;
}

int flow_cuda_bundle_close(flow_cuda_bundle *self, flow_cuda_closed *launch)
{
  if (!self || self->count == 0) return 0;
  const bundled *only = &self->launches[0];
  if (self->count == 1) *launch = (flow_cuda_closed){ only->kernel, only->op, only->count, self->arguments.words, only->bytes };
  else *launch = (flow_cuda_closed){ CUDA_bundle, only->op, lay_out(self), &self->arguments, sizeof self->arguments };
  self->count = self->items = self->words = self->access_count = 0;
  return 1;
}
