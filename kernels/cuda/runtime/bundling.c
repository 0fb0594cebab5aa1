/* bundling.c: see bundling.h. */
#include "cuda/runtime/bundling.h"

#include <string.h>
#include "base/memory.h"
#include "cuda/runtime/device_table.h"
#include "cuda/device/view_make.h"

enum { MOST_ELEMENTS = 4 * BLOCK_THREADS, MOST_BLOCKS = 4, MOST_ACCESSES = 512 };

typedef struct access { const char *from, *to; int write; } access;

/* group: the first launch that this one depends on by way of others, or itself. */
typedef struct bundled { flow_cuda_kernel kernel; int op, group, word, turns, first_access; int64_t count; size_t bytes; } bundled;

struct flow_cuda_bundle {
  int     count, turns, words, access_count;
  bundled launches[BUNDLE_TURNS];
  access  accesses[MOST_ACCESSES];
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

/* How far a call's shared memory reaches is not said here, so that others could not be kept out of it. */
int flow_cuda_is_small(const flow_call *call, flow_cuda_kernel kernel, int64_t count)
{
  return small_kernels[kernel].number && !call->shared && count <= (small_kernels[kernel].phases ? MOST_BLOCKS : MOST_ELEMENTS);
}

/* ---- what a launch touches --------------------------------------------------------------------------------------------------- */

static void touch(flow_cuda_bundle *self, const void *from, size_t bytes, int write)
{
  if (bytes > 0) self->accesses[self->access_count++] = (access){ from, (const char *)from + bytes, write };
}

static void touch_operand(flow_cuda_bundle *self, const flow_operand *x, int write)
{
  size_t bytes;
  const char *from = flow_cuda_span(x, &bytes);
  touch(self, from, bytes, write);
}

static void touch_call(flow_cuda_bundle *self, const flow_call *call)
{
  unsigned written = flow_cuda_written_inputs(call);
  int is_effect = flow_cuda_op_is_effect(call->op), checks = flow_cuda_op_checks(call->op);
  for (int i = 0; i < call->input_count; i++) touch_operand(self, &call->inputs[i], i < 32 && written >> i & 1);
  for (int i = 0; i < call->output_count; i++) touch_operand(self, &call->outputs[i], 1);
  if (is_effect || checks) touch(self, flow_cuda_verdict(call), sizeof(flow_device_fault), checks);
}

static int end_of_accesses(const flow_cuda_bundle *self, int launch)
{
  return launch + 1 < self->count ? self->launches[launch + 1].first_access : self->access_count;
}

static int depend(const flow_cuda_bundle *self, int earlier, int later)
{
  for (int i = self->launches[earlier].first_access; i < end_of_accesses(self, earlier); i++)
    for (int k = self->launches[later].first_access; k < end_of_accesses(self, later); k++) {
      const access *a = &self->accesses[i], *b = &self->accesses[k];
      if ((a->write || b->write) && a->from < b->to && b->from < a->to) return 1;
    }
  return 0;
}

/* Puts the last launch together with the groups that it depends on. */
static void join_groups(flow_cuda_bundle *self)
{
  int last = self->count - 1;
  for (int i = 0; i < last; i++) {
    int group = self->launches[i].group, own = self->launches[last].group;
    if (group == own || !depend(self, i, last)) continue;
    int kept = group < own ? group : own, gone = group < own ? own : group;
    for (int k = 0; k <= last; k++)
      if (self->launches[k].group == gone) self->launches[k].group = kept;
  }
}

/* ---- adding and closing ------------------------------------------------------------------------------------------------------- */

static int words_of(size_t bytes) { return (int)((bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t)); }

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
  int turns = small_kernels[kernel].phases ? small_kernels[kernel].phases * (int)count : 1;
  if (self->turns + turns > BUNDLE_TURNS || self->words + words_of(bytes) > BUNDLE_WORDS ||
      self->access_count + call->input_count + call->output_count + 1 > MOST_ACCESSES) return FLOW_OK;
  self->launches[self->count] = (bundled){ .kernel = kernel, .op = call->op, .group = self->count, .word = self->words, .turns = turns,
                                           .first_access = self->access_count, .count = count, .bytes = bytes };
  memcpy(self->arguments.words + self->words, arguments, bytes);
  self->count++;
  self->turns += turns;
  self->words += words_of(bytes);
  touch_call(self, call);
  join_groups(self);
  *taken = 1;
  return FLOW_OK;
}

/* An element kernel has one turn, a block kernel one for each phase of each block. Returns the end of the turns. */
static int add_turns(bundle_arguments *to, int turn, const bundled *launch)
{
  int phases = small_kernels[launch->kernel].phases;
  for (int k = 0; k < launch->turns; k++)
    to->turn[turn++] = (bundle_turn){ .kernel = small_kernels[launch->kernel].number - 1, .phase = phases ? k % phases : 0,
                                      .which = phases ? k / phases : (int)launch->count, .word = launch->word };
  return turn;
}

/* Gives each group a block and its launches, in order, the block's turns. Returns the number of blocks. */
static int lay_out(flow_cuda_bundle *self)
{
  bundle_arguments *to = &self->arguments;
  int blocks = 0, turn = 0;
  for (int group = 0; group < self->count; group++) {
    if (self->launches[group].group != group) continue;
    to->first[blocks++] = turn;
    for (int i = group; i < self->count; i++)
      if (self->launches[i].group == group) turn = add_turns(to, turn, &self->launches[i]);
  }
  to->first[blocks] = turn;
  return blocks;
}

int flow_cuda_bundle_close(flow_cuda_bundle *self, flow_cuda_closed *launch)
{
  if (!self || self->count == 0) return 0;
  const bundled *only = &self->launches[0];
  if (self->count == 1) *launch = (flow_cuda_closed){ only->kernel, only->op, only->count, self->arguments.words, only->bytes };
  else *launch = (flow_cuda_closed){ CUDA_bundle, only->op, lay_out(self), &self->arguments, sizeof self->arguments };
  self->count = self->turns = self->words = self->access_count = 0;
  return 1;
}
