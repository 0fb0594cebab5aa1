/* cuts.c: see cuts.h. Without sums through the host a plan is one section, and so one recording, except where the commit tail of several
 * replicas has to wait for all of them. */
#include "run/device/cuts.h"

#include "run/device/device_run.h"
#include "run/replicas/replica_set.h"

/* Whether an op of the segment may fail because of the data, as a lookup does at a wrong index. */
static int refuses_data(const flow_plan *plan, const flow_segment *segment)
{
  for (int k = segment->first; k < segment->first + segment->count; k++)
    if (flow_op(plan->graph->nodes[plan->order[k]].op)->flags & FLOW_OP_CHECKS) return 1;
  return 0;
}

/* `known` is the last segment whose sum some section before has waited for, which makes later needs of earlier sums superfluous. The
 * last, empty section waits for sums that nothing on the device reads, so that they are not under way when the run ends. */
int flow_cut_plan(const flow_instance *instance, int through_host, flow_section *sections)
{
  const flow_plan *plan = instance->plan;
  int count = 0, checks = 0, in_tail = 0, known = -1;
  for (int s = 0; s < plan->segment_count; s++) {
    const flow_segment *segment = &plan->segments[s];
    int begins_tail = segment->tail && !in_tail, needs = -1;
    in_tail = segment->tail;
    if (through_host) needs = begins_tail ? instance->last_sum : instance->stages[s].waits_for;
    if (needs <= known) needs = -1;
    else known = needs;
    int waits = begins_tail && checks && instance->set->count > 1 && !flow_device_run_exchange(instance);
    if (count == 0 || needs >= 0 || waits || sections[count - 1].sum >= 0)
      sections[count++] = (flow_section){ .begin = segment->first, .needs = needs, .sum = -1, .waits = waits };
    sections[count - 1].end = segment->first + segment->count;
    if (through_host && instance->stages[s].collective) sections[count - 1].sum = s;
    checks |= refuses_data(plan, segment);
  }
  if (through_host && instance->last_sum > known)
    sections[count++] = (flow_section){ .begin = plan->order_count, .end = plan->order_count, .needs = instance->last_sum, .sum = -1 };
  return count;
}
