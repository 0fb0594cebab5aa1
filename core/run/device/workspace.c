/* workspace.c: memory of ops' own for runs of fewer rows than the instance holds. The arena has what each op wants for the most
 * rows; a library's plan for fewer may be another one and want more. Those ops share one block then, which grows when it has to: ops of
 * a run follow each other. */
#include "run/device/device_run_state.h"

/* Bytes that entry e wants for the current run's rows, if that is more than the arena has for it; else 0. Its call is bound. */
static size_t missing(const flow_instance *instance, int e)
{
  const flow_entry *entry = &instance->entries[e];
  if (entry->alias || !entry->kernel->shared_bytes) return 0;
  size_t bytes = entry->kernel->shared_bytes(&instance->members[0].calls[e]);
  return bytes > entry->shared_bytes ? bytes : 0;
}

/* Replaces the block by one of `bytes`. Recordings know where the old one was, so they are dropped. The old block is kept by the queue
 * until work that uses it is done (accelerator.h: release). */
static flow_status grow(flow_device_run *a, flow_queue *queue, size_t bytes)
{
  void *block;
  FLOW_TRY(flow_device_run_functions(a)->allocate(queue, bytes, &block));
  for (int k = 0; k < FLOW_KEPT_RECORDINGS; k++) flow_recorded_drop_sections(a, &a->kept[k]);
  flow_device_run_functions(a)->release(queue, a->workspace);
  flow_memory_count((double)bytes - (double)a->workspace_bytes);
  a->workspace = block;
  a->workspace_bytes = bytes;
  return FLOW_OK;
}

flow_status flow_device_run_make_workspace(flow_instance *instance, flow_queue *queue)
{
  flow_device_run *a = instance->device;
  flow_call *calls = instance->members[0].calls;
  size_t most = 0;
  if (instance->part.rows != instance->capacity) flow_choose_ahead(instance, instance->part.rows, queue);
  for (int e = 0; e < instance->plan->order_count; e++) {
    calls[e].queue = queue;
    size_t bytes = missing(instance, e);
    if (bytes > most) most = bytes;
  }
  if (most > a->workspace_bytes) FLOW_TRY(grow(a, queue, most));
  for (int e = 0; e < instance->plan->order_count; e++) {
    const flow_entry *entry = &instance->entries[e];
    calls[e].shared = missing(instance, e) ? a->workspace : entry->shared_bytes ? instance->arena + entry->shared_offset : NULL;
  }
  return FLOW_OK;
}
