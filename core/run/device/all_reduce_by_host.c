/* all_reduce_by_host.c: see all_reduce_by_host.h. A sum takes two steps. After the section that makes the operand it becomes `pending`:
 * its copy to the host may not be waited for yet, or the device would have nothing to do. When the next section has been enqueued, or
 * the sum is needed, `deliver` waits for the copy, adds over the replicas and begins the sum over the workers. So one sum is always one
 * section late, and the device computes during the copy.
 *
 * Meetings of the group's threads stand before and after the addition over replicas: before, so that all operands are on the host;
 * after, so that they do not change while member 0 hands them to the exchange. Every thread comes to every meeting, failed or not. */
#include "run/device/all_reduce_by_host.h"

#include "run/device/device_group.h"
#include "run/replicas/replica_set.h"

/* The sums of one replica on the host; used by the replica's thread, and read by the others between two meetings. */
struct flow_device_sums {
  char   *memory;
  int     pending;                 /* the segment whose sum is not on the host yet; -1: none */
  size_t *offsets;                 /* [segment] */
  char   *back;                    /* [segment]: 1 from when it is enqueued to be back at the device */
};

/* The result of a COLLECTIVE segment, which is where its operand is (place_in_sum in arena.c). */
static const flow_binding *sum_of(const flow_instance *replica, int segment)
{
  return &replica->entries[replica->plan->segments[segment].first].bindings[1];
}

static size_t bytes_of(const flow_instance *replica, int segment)
{
  return flow_value_bytes(&replica->plan->graph->values[sum_of(replica, segment)->value].signature, 1);
}

static char *on_device(const flow_instance *replica, int segment) { return replica->part.bases[sum_of(replica, segment)->root]; }

static const flow_accelerator_functions *functions_of(const flow_instance *replica)
{
  return flow_place_accelerator(replica->place)->functions;
}

flow_status flow_device_sums_new(const flow_instance *replica, flow_device_sums **out)
{
  enum { LINE = 64 };
  void *block;
  size_t count = (size_t)replica->plan->segment_count, total = 0;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_device_sums) + count * (sizeof(size_t) + 1), &block));
  flow_device_sums *sums = block;
  sums->offsets = (size_t *)(sums + 1);
  sums->back = (char *)(sums->offsets + count);
  for (int s = 0; s < replica->plan->segment_count; s++) {
    if (!replica->stages[s].collective) continue;
    sums->offsets[s] = total;
    total += (bytes_of(replica, s) + LINE - 1) / LINE * LINE;
  }
  flow_status status = flow_alloc(total + 1, &block);
  if (status != FLOW_OK) {
    flow_free(sums);
    return status;
  }
  sums->memory = block;
  *out = sums;
  return FLOW_OK;
}

void flow_device_sums_release(flow_device_sums *sums)
{
  if (!sums) return;
  flow_free(sums->memory);
  flow_free(sums);
}

char *flow_device_sum(const flow_device_sums *sums, int segment) { return sums->memory + sums->offsets[segment]; }

void flow_device_sums_start(flow_device_sums *sums) { sums->pending = -1; }

static void fail_if(const flow_instance *replica, flow_status status)
{
  if (status != FLOW_OK) flow_failure_take(&replica->run->verdict, status);
}

/* Copies the sum to the host and waits. Most go by the queue of copies, beside what the device computes. The last sum goes by the
 * place's own queue: that waits for the whole body, and so fails if an op has refused data. Then nothing is sent, and no worker makes
 * the step. */
static flow_status fetch(const flow_device_sums *sums, const flow_instance *replica, int segment, flow_queue *queue,
                         flow_queue *copies)
{
  flow_queue *by = segment == replica->last_sum ? queue : copies;
  return functions_of(replica)->download(by, flow_device_sum(sums, segment), on_device(replica, segment), bytes_of(replica, segment));
}

/* Adds up the pending sum over the replicas here, and lets it begin over the workers. */
static void deliver(flow_device_sums *sums, flow_instance *replica, int member, flow_queue *queue, flow_queue *copies)
{
  flow_replica_set *set = replica->set;
  int segment = sums->pending;
  sums->pending = -1;
  if (segment < 0) return;
  if (!flow_failure_is_set(&set->run.verdict)) fail_if(replica, fetch(sums, replica, segment, queue, copies));
  flow_device_group_meet(set->group);
  if (set->count > 1 && !flow_failure_is_set(&set->run.verdict)) flow_add_replicas(set, segment, member, set->count);
  flow_device_group_meet(set->group);
  if (member == 0 && set->exchange) flow_send_sum(set, segment);
}

void flow_device_sums_begin(flow_device_sums *sums, flow_instance *replica, int member, int segment, flow_queue *queue,
                            flow_queue *copies)
{
  deliver(sums, replica, member, queue, copies);      /* the one before: the device has this section to do meanwhile */
  sums->back[segment] = 0;
  sums->pending = segment;
  if (!flow_failure_is_set(&replica->run->verdict) && segment != replica->last_sum)
    fail_if(replica, functions_of(replica)->follow(copies, queue));
}

/* Sums that have come back are uploaded once in a run; those that travel together with others that were not sent yet come with a later
 * call. What is uploaded is the lead's memory, the same for all replicas of the process. */
void flow_device_sums_finish(flow_device_sums *sums, flow_instance *replica, int member, int segment, flow_queue *queue,
                             flow_queue *copies)
{
  flow_replica_set *set = replica->set;
  deliver(sums, replica, member, queue, copies);
  if (member == 0 && set->exchange) flow_receive_sums(set, segment, segment + 1);
  flow_device_group_meet(set->group);
  for (int s = 0; s <= segment && !flow_failure_is_set(&set->run.verdict); s++) {
    if (!flow_sum_is_made(set, s) || sums->back[s]) continue;
    const char *made = flow_device_sum(set->lead->sums, s);
    fail_if(replica, functions_of(replica)->upload(queue, on_device(replica, s), made, bytes_of(replica, s)));
    sums->back[s] = 1;
  }
}
