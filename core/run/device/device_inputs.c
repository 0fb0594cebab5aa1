/* device_inputs.c: what a run on a device brings and gives. Inputs are always read at the same addresses (a->inputs), since recordings
 * hold addresses; so each run copies there what its caller gives. From the host that takes two copies: the upload into `staged` may
 * begin while the last run still reads a->inputs, and the copy on the device follows that run.
 *
 * Steps that take their batches themselves ("tables") are the exception: the whole data set is on the device, and a kernel at the
 * beginning of each step copies the step's rows, by an order that is there, too. Then nothing crosses the bus but the scalars of the
 * steps. */
#include "run/device/device_run_state.h"

#include "graph/profile.h"
#include "run/binding.h"
#include "run/input_rows.h"
#include "run/replicas/replica_set.h"

/* From the host: uploaded on the queue of copies, perhaps while the last run still computes, and then copied to where runs read it. */
static flow_status bring_from_host(flow_device_run *a, int input, const char *host, size_t bytes)
{
  const flow_accelerator_functions *f = flow_device_run_functions(a);
  size_t at = a->offsets[input];
  flow_queue *queue = flow_place_lock(a->place);
  flow_status status = f->upload(a->copies, a->staged + at, host, bytes);
  if (status == FLOW_OK) status = f->follow(queue, a->copies);
  if (status == FLOW_OK) status = f->copy(queue, a->inputs + at, a->staged + at, bytes);
  if (status == FLOW_OK) status = f->follow(a->copies, queue);
  flow_place_unlock(a->place);
  return status;
}

/* Orders the two places both ways: the copy waits for what makes the tensor, and what changes the tensor next waits for the copy. */
static flow_status bring_from_device(flow_device_run *a, int input, flow_place *home, const char *data, size_t bytes)
{
  FLOW_TRY(flow_place_follow(a->place, home));
  FLOW_TRY(flow_place_copy(a->place, a->inputs + a->offsets[input], data, bytes));
  return flow_place_follow(home, a->place);
}

/* Rows order[first .. first + rows) of a table on the plan's device. Table, order and run may belong to three places of that device: the
 * copies wait for what was enqueued on each, and what is enqueued there later waits for the copies. */
static flow_status bring_gathered(flow_device_run *a, int input, const flow_tensor *table, const flow_tensor *order, int64_t first,
                                  int64_t rows)
{
  flow_place *home = flow_tensor_place(table), *named = flow_tensor_place(order);
  if (!home || flow_place_device(home) != flow_place_device(a->place) || flow_place_device(named) != flow_place_device(a->place))
    return flow_fail(FLOW_INVALID_ARGUMENT, "input %d is on %s, its order of rows on %s: both must be on %s, where the plan runs",
                     input + 1, flow_place_name(home), flow_place_name(named), flow_place_name(a->place));
  FLOW_TRY(flow_place_follow(a->place, home));
  FLOW_TRY(flow_place_follow(a->place, named));
  FLOW_TRY(flow_place_gather(a->place, table, (const int64_t *)order->data + first, rows, a->inputs + a->offsets[input]));
  FLOW_TRY(flow_place_follow(home, a->place));
  return flow_place_follow(named, a->place);
}

/* `bytes` bytes of a tensor from byte `offset` on. From another device it comes by way of the host, as a whole. */
static flow_status bring_tensor(flow_device_run *a, int input, flow_tensor *tensor, size_t offset, size_t bytes)
{
  flow_place *home = flow_tensor_place(tensor);
  flow_tensor *near = NULL;
  flow_status status = FLOW_OK;
  if (!home) return bring_from_host(a, input, tensor->data + offset, bytes);
  if (flow_place_device(home) == flow_place_device(a->place)) return bring_from_device(a, input, home, tensor->data + offset, bytes);
  FLOW_TRY(flow_tensor_at(tensor, a->place, &near));
  status = bring_from_device(a, input, a->place, near->data + offset, bytes);
  flow_tensor_release(near);
  return status;
}

flow_status flow_device_run_bring(flow_instance *instance, flow_tensor *const *inputs, const flow_tensor *order, int64_t first)
{
  flow_device_run *a = instance->device;
  const flow_graph *graph = instance->plan->graph;
  int64_t rows = instance->part.rows;
  a->steps = 0;
  for (int i = 0; i < graph->input_count; i++) {
    const flow_signature *signature = &graph->values[graph->inputs[i]].signature;
    int named = order && signature->rank > 0 && signature->dims[0] < 0;
    size_t offset, bytes = flow_input_extent(graph, i, first, rows, &offset);
    if (bytes == 0) continue;
    if (named) FLOW_TRY(bring_gathered(a, i, inputs[i], order, first, rows));
    else FLOW_TRY(bring_tensor(a, i, inputs[i], offset, bytes));
  }
  return FLOW_OK;
}

/* From one device to another by way of the host. */
static flow_status copy_across(flow_place *from, const char *data, flow_tensor *to, size_t offset, size_t bytes)
{
  void *between;
  FLOW_TRY(flow_alloc(bytes, &between));
  flow_status status = flow_place_download(from, between, data, bytes);
  if (status == FLOW_OK) status = flow_place_upload(flow_tensor_place(to), to->data + offset, between, bytes);
  flow_free(between);
  return status;
}

/* Enqueued and not waited for: that is left to the reader of the output. */
flow_status flow_device_run_output(const flow_instance *instance, int value, size_t bytes, flow_tensor *output, size_t offset)
{
  flow_place *place = instance->device->place;
  const char *data = instance->part.bases[instance->plan->roots[value]];
  if (flow_tensor_place(output) != place) return copy_across(place, data, output, offset, bytes);
  return flow_place_copy(place, output->data + offset, data, bytes);
}

/* ---- steps that take their batches themselves -------------------------------------------------------------------------------- */

/* Whether the input, a table of rows on the device of `a`, can be taken from there. */
static int is_table(const flow_device_run *a, const flow_signature *signature, const flow_tensor *input)
{
  const flow_place *home = flow_tensor_place(input);
  return signature->rank > 0 && signature->dims[0] == -1 && home && flow_place_device(home) == flow_place_device(a->place);
}

/* Not for several replicas, whose rows are divided by the host; nor with a section that has to be waited for; nor if effects may have to
 * be undone after each step; nor for a profile, which watches each op. */
int flow_device_run_takes_batches(const flow_context *context, const flow_instance *lead, flow_tensor *const *inputs, int count,
                                   const flow_tensor *order)
{
  const flow_device_run *a = lead->device;
  const flow_graph *graph = lead->plan->graph;
  const flow_profile *profile = context->profile;
  if (!a || lead->set->count > 1 || lead->set->exchange) return 0;
  if (a->section_count != 1 || lead->undo_count || (profile && profile->active)) return 0;
  if (count != graph->input_count || count == 0) return 0;
  for (int i = 0; i < count; i++)
    if (!is_table(a, &graph->values[graph->inputs[i]].signature, inputs[i])) return 0;
  return !order || (flow_tensor_place(order) && flow_place_device(flow_tensor_place(order)) == flow_place_device(a->place));
}

/* What is there for longer than one run is compared: recordings hold it. */
static void set_table(flow_tables *tables, int i, const flow_batch_table *found)
{
  tables->changed |= tables->input[i].from != found->from || tables->input[i].rows != found->rows;
  tables->input[i] = *found;
}

/* Before the run (back 0) the instance's place waits for what is under way with the tensor; after it the tensor's place waits for the
 * run. NULL: nothing. */
static flow_status follow(const flow_device_run *a, const flow_tensor *tensor, int back)
{
  flow_place *home = tensor ? flow_tensor_place(tensor) : a->place;
  return back ? flow_place_follow(home, a->place) : flow_place_follow(a->place, home);
}

flow_status flow_device_run_open_tables(flow_instance *instance, flow_tensor *const *inputs, const flow_tensor *order, int64_t first,
                                         int steps)
{
  flow_device_run *a = instance->device;
  const flow_graph *graph = instance->plan->graph;
  flow_tables *tables = &a->tables;
  const int64_t *named = order ? (const int64_t *)order->data : NULL;
  for (int i = 0; i < graph->input_count; i++) {
    const flow_signature *signature = &graph->values[graph->inputs[i]].signature;
    set_table(tables, i, &(flow_batch_table){ .from = inputs[i]->data, .to = a->inputs + a->offsets[i], .rows = inputs[i]->shape[0],
                                              .row_bytes = (int64_t)flow_value_bytes(signature, 1) });
    FLOW_TRY(follow(a, inputs[i], 0));
  }
  tables->changed |= tables->order != named;
  tables->order = named;
  tables->first = first;
  tables->order_count = order ? order->shape[0] : 0;
  a->steps = steps;
  return follow(a, order, 0);
}

flow_status flow_device_run_close_tables(flow_instance *instance, flow_tensor *const *inputs, const flow_tensor *order)
{
  const flow_device_run *a = instance->device;
  for (int i = 0; i < instance->plan->graph->input_count; i++) FLOW_TRY(follow(a, inputs[i], 1));
  return follow(a, order, 1);
}
