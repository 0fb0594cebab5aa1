/* session.c: see session.h.
 *
 * One lock guards counts and lists; it is held for a few instructions, and while a step is traced for the first time.
 * Nobody holds it while a plan runs: who runs is counted in `readers` or `writing`. Order of locks: a caller that is
 * inside (flow_sharing_enter) may take the lock, never the other way around. */
#include "models/session.h"

#include <string.h>

#include "base/condition.h"
#include "base/fork_lock.h"
#include "graph/context.h"

enum {
  MOST_STEPS = 8,                        /* kinds of operands; of more, the one that was used least recently is traced again */
  MOST_IDLE = 32, SIZES = 6,             /* predictions of 1 to 32 rows come in this many capacities: see capacity_for() */
  LOOK_NANOSECONDS = 50000000            /* how often who waits looks for an interrupt */
};

/* Fairness: a writer that waits stops new readers from entering, so that training is not starved; when a writer leaves, those readers
 * that waited for it (`owed`) enter before the next writer, so that predictions are not starved. torn: this process was forked while a
 * thread of the parent wrote. */
struct flow_sharing {
  flow_fork_lock   lock;                 /* of everything below */
  pthread_cond_t   changed;
  int              readers, waiting_readers, waiting_writers;
  int              owed;                 /* readers that waited when a writer left: they come before the next one */
  int              writing, torn;
  flow_model_step *steps;                /* the last used first */
  flow_runner     *idle;                 /* the last used first */
  int              taken, most_taken;
};

/* ---- the lock ---------------------------------------------------------------------------------------------------------------- */

/* In a forked child, a thread that ran the model or held the lock is one of the parent. What they held stays out of use;
 * lists are consistent, since entries go in and out by one store. After a fork the child has one thread, so that counts
 * of callers that are inside must be those of the parent's threads: all are cleared. */
static void lock(flow_sharing *sharing)
{
  if (!flow_fork_lock_take(&sharing->lock)) return;
  flow_condition_make(&sharing->changed);
  sharing->torn |= sharing->writing;
  sharing->readers = sharing->waiting_readers = sharing->waiting_writers = sharing->owed = sharing->writing = sharing->taken = 0;
}

static void unlock(flow_sharing *sharing) { flow_fork_lock_give(&sharing->lock); }

/* Released by flow_sharing_release, when no thread is inside any more. */
flow_status flow_sharing_new(flow_sharing **out)
{
  void *block;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_sharing), &block));
  *out = block;
  flow_fork_lock_make(&(*out)->lock);
  flow_condition_make(&(*out)->changed);
  return FLOW_OK;
}

static void release_step(flow_model_step *step)
{
  flow_plan_release(step->plan);
  flow_free(step);
}

/* When the last reference to the model goes. NULL is allowed. */
void flow_sharing_release(flow_sharing *sharing)
{
  if (!sharing) return;
  flow_runners_release(&sharing->idle);
  for (flow_model_step *step = sharing->steps, *next; step; step = next) {
    next = step->next;
    release_step(step);
  }
  flow_free(sharing);
}

/* ---- readers and a writer -------------------------------------------------------------------------------------------------------- */

/* A writer enters an empty model, after the readers that are owed their turn; a reader enters unless a writer runs or, when no turn is
 * owed, waits. */
static int may_enter(const flow_sharing *sharing, int writes)
{
  if (sharing->writing) return 0;
  if (writes) return sharing->readers == 0 && sharing->owed == 0;
  return sharing->owed > 0 || sharing->waiting_writers == 0;
}

/* With the lock held, which waiting gives back. A signal handler sets the context's flag but wakes no thread, so it is looked at every
 * LOOK_NANOSECONDS. */
static flow_status wait_to_enter(flow_sharing *sharing, const flow_context *context, int writes)
{
  while (!may_enter(sharing, writes)) {
    if (context && flow_interrupted(context)) return flow_fail(FLOW_INTERRUPTED, "interrupted while another thread trained the model");
    flow_condition_wait_for(&sharing->changed, &sharing->lock.mutex, LOOK_NANOSECONDS);
  }
  if (sharing->torn)
    return flow_fail(FLOW_INVALID_STATE, "this process was forked while another thread trained the model: its weights are those of a step "
                     "half done; load it again");
  return FLOW_OK;
}

/* The caller counts as waiting before the first look, so that a writer that leaves gives it the next turn. On failure nothing is entered,
 * and flow_sharing_leave must not be called. */
flow_status flow_sharing_enter(flow_sharing *sharing, const flow_context *context, int writes)
{
  lock(sharing);
  int *waiting = writes ? &sharing->waiting_writers : &sharing->waiting_readers;
  ++*waiting;
  flow_status status = wait_to_enter(sharing, context, writes);
  --*waiting;
  if (status == FLOW_OK && writes) sharing->writing = 1;
  if (status == FLOW_OK && !writes) sharing->readers++;
  if (!writes && sharing->owed > 0) sharing->owed--;
  if (status != FLOW_OK) pthread_cond_broadcast(&sharing->changed);      /* somebody may have waited for this one */
  unlock(sharing);
  return status;
}

/* Wakes all that wait: which of them may enter now depends on both counts, and those that may not go back to sleep. */
void flow_sharing_leave(flow_sharing *sharing, int writes)
{
  lock(sharing);
  if (writes) sharing->writing = 0, sharing->owed = sharing->waiting_readers;
  else sharing->readers--;
  if (sharing->waiting_readers > 0 || sharing->waiting_writers > 0) pthread_cond_broadcast(&sharing->changed);
  unlock(sharing);
}

/* ---- steps ----------------------------------------------------------------------------------------------------------------------- */

/* Rows do not count: a plan serves any number of them. */
static flow_signature signature_like(const flow_tensor *operand)
{
  flow_signature signature = flow_tensor_signature(operand);
  if (signature.rank > 0) signature.dims[0] = -1;
  return signature;
}

/* What a trace depends on: dtypes and sizes but for rows, whether results must be exact, and the device. */
static int is_for(const flow_model_step *step, const flow_context *context, flow_step_kind kind, flow_tensor *const *operands, int count)
{
  int same = step->kind == kind && step->exact == context->exact && step->device == context->scopes->on_device;
  same = same && step->operand_count == count;
  for (int i = 0; i < count && same; i++) {
    flow_signature wanted = signature_like(operands[i]);
    const flow_signature *has = &step->operands[i];
    same = has->dtype == wanted.dtype && flow_shape_equal(has->rank, has->dims, wanted.rank, wanted.dims);
  }
  return same;
}

/* Out of the list: runners of this plan. With the lock held, if the list is the shared one. */
static void drop_runners(flow_runner **list, const flow_plan *plan)
{
  while (*list) {
    flow_runner *runner = *list;
    if (runner->plan != plan) {
      list = &runner->next;
      continue;
    }
    *list = runner->next;
    flow_instance_release(runner->instance);
    flow_free(runner);
  }
}

/* With the lock held: two callers with the same operands trace once, and the second waits. The list keeps MOST_STEPS; a step that falls
 * out leaves its runners to those who have them, the idle ones are released. */
static flow_status trace_step(flow_context *context, flow_model *model, flow_sharing *sharing, flow_step_tracer *tracer,
                              flow_step_kind kind, flow_tensor *const *operands, int count)
{
  void *block;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_model_step) + sizeof(flow_signature) * (size_t)count, &block));
  flow_model_step *step = block;
  step->kind = kind;
  step->exact = context->exact;
  step->device = context->scopes->on_device;
  step->operand_count = count;
  for (int i = 0; i < count; i++) step->operands[i] = signature_like(operands[i]);
  flow_status status = tracer(context, model, kind, operands, count, &step->plan);
  if (status != FLOW_OK) {
    flow_free(step);
    return status;
  }
  step->writes = flow_graph_writes(step->plan->graph);
  step->next = sharing->steps;
  sharing->steps = step;
  flow_model_step **last = &sharing->steps;
  for (int i = 0; i < MOST_STEPS && *last; i++) last = &(*last)->next;
  if (*last) {
    drop_runners(&sharing->idle, (*last)->plan);
    release_step(*last);
    *last = NULL;
  }
  return FLOW_OK;
}

/* The step for these operands becomes the first of the list. With the lock held. The step is then sharing->steps. */
static flow_status find_step(flow_context *context, flow_model *model, flow_sharing *sharing, flow_step_tracer *tracer, flow_step_kind kind,
                             flow_tensor *const *operands, int count)
{
  for (flow_model_step **link = &sharing->steps, *step; (step = *link); link = &step->next) {
    if (!is_for(step, context, kind, operands, count)) continue;
    *link = step->next;
    step->next = sharing->steps;
    sharing->steps = step;
    return FLOW_OK;
  }
  return trace_step(context, model, sharing, tracer, kind, operands, count);
}

/* ---- runners --------------------------------------------------------------------------------------------------------------------- */

/* All of them: each round drops those of one plan. */
void flow_runners_release(flow_runner **list)
{
  while (*list) drop_runners(list, (*list)->plan);
}

static void put_first(flow_runner **list, flow_runner *runner)
{
  runner->next = *list;
  *list = runner;
}

/* Drops those after the first `most`. */
static void keep_first(flow_runner **list, int most)
{
  for (; *list && most > 0; most--) list = &(*list)->next;
  flow_runners_release(list);
}

/* The first runner of the plan whose capacity is within the bounds: the list has the last used first, whose memory is most likely in the
 * caches. */
static flow_runner *take_out(flow_runner **list, const flow_plan *plan, int64_t least, int64_t most)
{
  for (; *list; list = &(*list)->next) {
    flow_runner *runner = *list;
    if (runner->plan != plan || runner->capacity < least || runner->capacity > most) continue;
    *list = runner->next;
    return runner;
  }
  return NULL;
}

/* The plan is the caller's for the call; the instance takes its own reference. */
static flow_status make_runner(flow_plan *plan, int64_t capacity, int writes, flow_runner **out)
{
  void *block;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_runner), &block));
  flow_runner *runner = block;
  *runner = (flow_runner){ .plan = plan, .capacity = capacity, .writes = writes };
  flow_status status = flow_instance_new(plan, (double)capacity, &runner->instance);
  if (status == FLOW_OK) *out = runner;
  else flow_free(runner);
  return status;
}

/* A power of two, so that callers with any numbers of rows find each other's runners. At most BATCH of model_run.c, so
 * there are SIZES capacities: 1, 2, 4, 8, 16 and 32. */
static int64_t capacity_for(int64_t rows)
{
  int64_t capacity = 1;
  while (capacity < rows) capacity *= 2;
  return capacity;
}

/* For training, which is alone and whose memory is large, one runner serves all batches up to the largest. An own runner
 * first, then an idle one. If there is neither, *plan is set and the runner is made without the lock, since that takes memory and time.
 * With the lock held. Counts the caller among those who run. */
static void pick(flow_sharing *sharing, flow_runner **own, const flow_model_step *step, int64_t rows, flow_plan **plan,
                        int64_t *capacity, flow_runner **out)
{
  int trains = step->kind == FLOW_STEP_TRAIN;
  *capacity = trains ? rows : capacity_for(rows);
  *out = own ? take_out(own, step->plan, *capacity, *capacity) : NULL;
  if (!*out) *out = take_out(&sharing->idle, step->plan, *capacity, trains ? INT64_MAX : *capacity);
  if (!*out && trains) drop_runners(&sharing->idle, step->plan);
  if (!*out) *plan = flow_plan_retain(step->plan);
  if (++sharing->taken > sharing->most_taken) sharing->most_taken = sharing->taken;
}

/* The runner is the caller's alone until flow_runner_give. `taken` is counted before the runner is made, and taken back if that fails, so
 * that most_taken tells how many callers run at once. */
flow_status flow_runner_take(flow_context *context, flow_model *model, flow_sharing *sharing, flow_runner **own, flow_step_tracer *tracer,
                             flow_step_kind kind, flow_tensor *const *operands, int count, int64_t rows, flow_runner **out)
{
  flow_plan *plan = NULL;
  int64_t capacity;
  int writes = 0;
  *out = NULL;
  lock(sharing);
  flow_status status = find_step(context, model, sharing, tracer, kind, operands, count);
  if (status == FLOW_OK) {
    writes = sharing->steps->writes;
    pick(sharing, own, sharing->steps, rows, &plan, &capacity, out);
  }
  unlock(sharing);
  if (plan) {
    status = make_runner(plan, capacity, writes, out);
    flow_plan_release(plan);
    if (status != FLOW_OK) {
      lock(sharing);
      sharing->taken--;
      unlock(sharing);
    }
  }
  return status;
}

/* Idle runners are kept for as many callers as have run at the same time so far, and a few sizes more. */
void flow_runner_give(flow_sharing *sharing, flow_runner **own, flow_runner *runner)
{
  if (!runner) return;
  if (own) {
    put_first(own, runner);
    keep_first(own, SIZES);
  }
  lock(sharing);
  sharing->taken--;
  if (!own) {
    int most = sharing->most_taken + SIZES - 1;
    put_first(&sharing->idle, runner);
    keep_first(&sharing->idle, most < MOST_IDLE ? most : MOST_IDLE);
  }
  unlock(sharing);
}
