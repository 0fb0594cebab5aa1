/* update_runs.c: which contiguous runs of its arenas an update is for, and the gradient of each as one flat tensor. */
#include "train/update.h"

/* Whether variable `next` of the arena is right after `next - 1` in memory and is treated alike. */
static int follows(const flow_arena *home, int next)
{
  const flow_tensor *before = home->variables[next - 1]->tensor, *after = home->variables[next]->tensor;
  size_t bytes = (size_t)flow_dtype_size(before->dtype) * (size_t)(home->offsets[next] - home->offsets[next - 1]);
  return before->storage == after->storage && before->data + bytes == after->data && home->decays[next - 1] == home->decays[next];
}

/* Adds the maximal runs of an arena that have gradients, which are packed, or, idle, those that have none. by_home[i]: the gradient for
 * variable i of the arena, or NULL. */
static flow_status add_runs(flow_update *all, const flow_arena *home, flow_tensor *const *by_home, int idle)
{
  for (int first = 0, end; first < home->count; first = end) {
    end = first + 1;
    if ((by_home[first] == NULL) != idle) continue;
    while (end < home->count && (by_home[end] == NULL) == idle && follows(home, end)) end++;
    flow_run_update *u = &all->list[all->count + all->idle_count];
    FLOW_TRY(flow_optimizer_run(all->optimizer, home, first, end - first, &u->run));
    if (!idle) FLOW_TRY(flow_optimizer_pack(all->context, by_home + first, end - first, &u->gradient));
    ++*(idle ? &all->idle_count : &all->count);
  }
  return FLOW_OK;
}

/* The gradients of this call for the variables of an arena. */
static flow_status find_gradients(const flow_update *all, int index_of_arena, flow_tensor **by_home)
{
  int index = 0;
  for (int i = 0; i < all->variable_count; i++) {
    if (!all->unscaled[i] || flow_optimizer_home(all->optimizer, all->variables[i], &index) != index_of_arena) continue;
    if (by_home[index])
      return flow_fail(FLOW_INVALID_ARGUMENT, "%s: variable \"%s\" stands twice in the list", all->optimizer->class->name,
                       all->variables[i]->name);
    by_home[index] = all->unscaled[i];
  }
  return FLOW_OK;
}

/* Arenas come in the order of their making, so that every replica lists the same runs. */
static flow_status add_from_arenas(flow_update *all, int idle)
{
  for (int a = 0; a < all->optimizer->arena_count; a++) {
    const flow_arena *home = all->optimizer->arenas[a];
    void *block;
    FLOW_TRY(flow_alloc_zero(sizeof(flow_tensor *) * (size_t)(home->count + 1), &block));
    flow_status status = find_gradients(all, a, block);
    if (status == FLOW_OK) status = add_runs(all, home, block, idle);
    flow_free(block);
    FLOW_TRY(status);
  }
  return FLOW_OK;
}

/* Runs without gradients matter to accumulators alone. */
flow_status flow_update_find_runs(flow_update *all)
{
  FLOW_TRY(add_from_arenas(all, 0));
  return all->optimizer->accumulator_kind < 0 ? FLOW_OK : add_from_arenas(all, 1);
}
