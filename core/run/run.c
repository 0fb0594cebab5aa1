/* run.c: the calls that run an instance: inputs are checked and bound, rows divided among replicas, outputs made. */
#include <string.h>

#include "run/device/device_run.h"
#include "base/float_state.h"
#include "graph/context.h"
#include "run/input_rows.h"
#include "graph/variable.h"

enum { MOST_WORKERS = 16384 };      /* rows beyond what this many workers take cannot be meant */

/* Checks one input against the signature and finds the rows that it brings; rows < 0: not known yet. first >= 0: the run
 * takes *rows rows from there on, more are fine; first < 0: all of them. */
static flow_status check_input(const flow_instance *instance, int index, const flow_tensor *tensor, int64_t first, int64_t *rows)
{
  const flow_signature *s = &instance->plan->graph->values[instance->plan->graph->inputs[index]].signature;
  FLOW_TRY(flow_check_concrete("input of a plan", tensor));
  int fits = tensor->dtype == s->dtype && tensor->rank == s->rank;
  for (int d = 0; d < s->rank && fits; d++) {
    if (s->dims[d] >= 0) {
      fits = tensor->shape[d] == s->dims[d];
      continue;
    }
    int64_t found = tensor->shape[d] / -s->dims[d];
    if (*rows < 0) *rows = found;
    fits = first >= 0 ? found >= *rows && found - *rows >= first : tensor->shape[d] == -s->dims[d] * *rows;
  }
  if (!fits)
    return flow_fail(FLOW_INVALID_ARGUMENT, "input %d is %s %s, the plan was traced for %s %s", index + 1, flow_dtype_name(tensor->dtype),
                     flow_shape_text(tensor->rank, tensor->shape), flow_dtype_name(s->dtype), flow_shape_text(s->rank, s->dims));
  return FLOW_OK;
}

static flow_status check_inputs(const flow_instance *lead, flow_tensor *const *inputs, int count, int64_t first, int64_t *rows)
{
  const flow_graph *graph = lead->plan->graph;
  if (count != graph->input_count)
    return flow_fail(FLOW_INVALID_ARGUMENT, "the plan takes %d inputs, found %d", graph->input_count, count);
  for (int i = 0; i < count; i++) FLOW_TRY(check_input(lead, i, inputs[i], first, rows));
  return FLOW_OK;
}

static flow_status check_capacity(const flow_instance *lead, int64_t part)
{
  if (part <= lead->capacity) return FLOW_OK;
  if (lead->capacity == 0) return flow_fail(FLOW_OUT_OF_MEMORY, "there was no memory to make this instance larger");
  return flow_fail(FLOW_INVALID_ARGUMENT, "%lld rows are more than the instance's capacity of %lld", (long long)part,
                   (long long)lead->capacity);
}

/* On success the caller sets running to 0 again. */
static flow_status take_instance(flow_context *context, flow_instance *lead)
{
  int idle = 0;
  if (!atomic_compare_exchange_strong(&lead->running, &idle, 1))
    return flow_fail(FLOW_INVALID_STATE, "this instance runs in another thread; make one instance per concurrent caller");
  lead->context = context;
  return FLOW_OK;
}

/* Where a replica's operands lie: inputs from their row `first` on, which are brought to a device. */
static flow_status bind_replica(flow_instance *replica, flow_tensor *const *inputs, const flow_tensor *order, int64_t first)
{
  const flow_graph *graph = replica->plan->graph;
  for (int i = 0; i < graph->input_count; i++) {
    const flow_signature *signature = &graph->values[graph->inputs[i]].signature;
    int by_rows = signature->rank > 0 && signature->dims[0] < 0 && first > 0;
    size_t offset = by_rows ? (size_t)first * flow_value_bytes(signature, 1) : 0;
    if (!replica->accelerated) replica->bases[graph->inputs[i]] = inputs[i]->data + offset;
  }
  for (int v = 0; v < graph->value_count && !replica->accelerated; v++)
    if (graph->values[v].kind == FLOW_VALUE_VARIABLE)
      FLOW_TRY(flow_base_of(replica, graph->values[v].variable->tensor, &replica->bases[v]));
  return replica->accelerated ? flow_accelerated_bring(replica, inputs, order, first) : FLOW_OK;
}

/* Brings inputs to where the replicas read them. first: from this row, or element of the order, on. */
static flow_status bring_inputs(flow_instance *lead, flow_tensor *const *inputs, int count, const flow_tensor *order, int64_t first,
                                int64_t rows)
{
  if (order && !flow_tensor_place(order)) {
    FLOW_TRY(flow_gather_on_host(lead, inputs, count, order, first, rows, &inputs));
    order = NULL;
    first = 0;
  }
  for (int r = 0; r < lead->replica_count; r++)
    FLOW_TRY(bind_replica(lead->replicas[r], inputs, order, first + lead->replicas[r]->part_first));
  return FLOW_OK;
}

/* Checks the inputs, divides the rows of the run and takes the instance. first < 0: all of their rows. steps: that take their batches of
 * `rows` themselves; 0: it is one that does not. */
static flow_status begin_run(flow_context *context, flow_instance *lead, flow_tensor *const *inputs, int count, const flow_tensor *order,
                             int64_t first, int64_t rows, int steps)
{
  int64_t any = 0;      /* an order names rows wherever they are: how many the inputs have is checked when they are gathered */
  int64_t last = steps > 1 ? first + (steps - 1) * rows : first;
  FLOW_TRY(check_inputs(lead, inputs, count, order ? 0 : last, order ? &any : &rows));
  if (order) FLOW_TRY(flow_check_order(order, last, rows));
  if (rows < 0) rows = lead->replica_count;                  /* a plan without rows is run by each replica as if it had one */
  FLOW_TRY(check_capacity(lead, flow_instance_part_rows(lead, rows)));
  FLOW_TRY(take_instance(context, lead));
  flow_status status = flow_instance_take_variables(lead);
  if (status == FLOW_OK) status = flow_accelerated_bind_variables(lead);
  if (status == FLOW_OK) status = flow_instance_divide(lead, rows);
  if (status == FLOW_OK && steps) status = flow_accelerated_open_tables(lead, inputs, order, first, steps);
  if (status == FLOW_OK && !steps) status = bring_inputs(lead, inputs, count, order, first > 0 ? first : 0, rows);
  if (status == FLOW_OK) status = flow_place_gathered(lead);
  if (status != FLOW_OK) {
    flow_accelerated_give_up(lead);
    atomic_store(&lead->running, 0);
    return status;
  }
  return FLOW_OK;
}

static const flow_signature *output_signature(const flow_instance *instance, int index)
{
  return &instance->plan->graph->values[instance->plan->outputs[index]].signature;
}

/* The workers agreed that there is nothing to do. */
static int is_over(const flow_instance *lead) { return lead->exchange && (lead->global_rows == 0 || lead->stop_wished); }

static int has_rows(const flow_signature *signature) { return signature->rank > 0 && signature->dims[0] < 0; }

/* Makes the outputs for this many rows. */
static flow_status new_outputs(const flow_instance *instance, int64_t rows, flow_tensor **outputs)
{
  int made = 0;
  flow_status status = FLOW_OK;
  for (; made < instance->plan->output_count; made++) {
    const flow_signature *signature = output_signature(instance, made);
    int64_t shape[FLOW_MAX_RANK];
    flow_resolve_shape(signature, rows, shape);
    FLOW_TRY_GOTO(flow_tensor_new_at(instance->plan->graph->place, signature->dtype, signature->rank, shape, &outputs[made]), failed);
  }
  return FLOW_OK;
failed:
  while (made-- > 0) {
    flow_tensor_release(outputs[made]);
    outputs[made] = NULL;
  }
  return status;
}

static flow_status copy_output(const flow_instance *replica, int index, flow_tensor *output, int64_t first)
{
  const flow_signature *signature = output_signature(replica, index);
  size_t bytes = flow_value_bytes(signature, replica->rows);
  size_t offset = has_rows(signature) ? (size_t)first * flow_value_bytes(signature, 1) : 0;
  if (replica->accelerated) return flow_accelerated_output(replica, replica->plan->outputs[index], bytes, output, offset);
  const flow_plan *plan = replica->plan;
  int root = plan->roots[plan->outputs[index]], made = plan->lifetimes[root].defined;
  /* The commit tail is the lead's alone. */
  const flow_instance *maker = made >= 0 && plan->segments[made].tail ? replica->lead : replica;
  if (bytes) memcpy(output->data + offset, maker->bases[root], bytes);
  return FLOW_OK;
}

static flow_status execute(flow_instance *lead) { return is_over(lead) ? FLOW_OK : flow_execute(lead); }

/* Runs and gives the outputs. Their memory is taken before, so that nothing can fail once the effects are done. What has rows holds
 * those of all local replicas, anything else is the first replica's. */
static flow_status run_with_outputs(flow_instance *lead, flow_tensor **outputs)
{
  int64_t rows = 0;
  for (int i = 0; i < lead->plan->output_count; i++) outputs[i] = NULL;
  if (is_over(lead)) return FLOW_OK;
  for (int r = 0; r < lead->replica_count; r++) rows += lead->replicas[r]->rows;
  FLOW_TRY(new_outputs(lead, rows, outputs));
  flow_status status = flow_execute(lead);
  for (int i = 0; i < lead->plan->output_count && status == FLOW_OK; i++) {
    int64_t first = 0;
    for (int r = 0; r < lead->replica_count && status == FLOW_OK; r++) {
      if (r == 0 || has_rows(output_signature(lead, i))) status = copy_output(lead->replicas[r], i, outputs[i], first);
      first += lead->replicas[r]->rows;
    }
  }
  for (int i = 0; i < lead->plan->output_count && status != FLOW_OK; i++) {
    flow_tensor_release(outputs[i]);
    outputs[i] = NULL;
  }
  return status;
}

static flow_status make_contiguous(const flow_instance *instance, flow_tensor *const *inputs, int count, flow_tensor **contiguous)
{
  if (count > FLOW_MAX_OPERANDS) return flow_fail(FLOW_UNSUPPORTED, "a plan takes at most %d inputs, found %d", FLOW_MAX_OPERANDS, count);
  for (int i = 0; i < count; i++) {
    FLOW_TRY(flow_check_concrete("input of a plan", inputs[i]));
    if (instance->accelerated) FLOW_TRY(flow_tensor_contiguous(inputs[i], &contiguous[i]));
    else FLOW_TRY(flow_tensor_on_host_contiguous(inputs[i], &contiguous[i]));
  }
  return FLOW_OK;
}

flow_status flow_instance_run(flow_context *context, flow_instance *instance, flow_tensor *const *inputs, int count, flow_tensor **outputs)
{
  FLOW_DEFAULT_FLOATS;
  flow_tensor *contiguous[FLOW_MAX_OPERANDS] = { NULL };
  flow_status status = make_contiguous(instance, inputs, count, contiguous);
  if (status == FLOW_OK) status = begin_run(context, instance, contiguous, count, NULL, -1, -1, 0);
  if (status == FLOW_OK) {
    status = outputs ? run_with_outputs(instance, outputs) : execute(instance);
    atomic_store(&instance->running, 0);
  }
  for (int i = 0; i < count && i < FLOW_MAX_OPERANDS; i++) flow_tensor_release(contiguous[i]);
  return status;
}

/* ---- rows of larger tensors ------------------------------------------------------------------------------------------------------ */

static flow_status check_rows(const flow_instance *instance, flow_tensor *const *inputs, int count, double first, double rows)
{
  for (int i = 0; i < count; i++) {
    FLOW_TRY(instance->accelerated ? flow_check_concrete("input of a plan", inputs[i]) : flow_check_on_host("input of a plan", inputs[i]));
    if (!flow_tensor_is_contiguous(inputs[i])) return flow_fail(FLOW_INVALID_ARGUMENT, "input %d is not contiguous", i + 1);
  }
  if (!(rows >= 0)) return flow_fail(FLOW_INVALID_ARGUMENT, "the number of rows is %g", rows);
  if (rows > (double)instance->capacity * (double)FLOW_MOST_REPLICAS * MOST_WORKERS)
    return flow_fail(FLOW_INVALID_ARGUMENT, "%.0f rows are more than the instance's capacity of %lld", rows, (long long)instance->capacity);
  if (!(first >= 0 && first < 0x1p53)) return flow_fail(FLOW_INVALID_ARGUMENT, "the first row is %g", first);
  return FLOW_OK;
}

flow_status flow_instance_run_rows(flow_context *context, flow_instance *instance, flow_tensor *const *inputs, int count,
                                   const flow_tensor *order, double first, double rows)
{
  FLOW_DEFAULT_FLOATS;
  FLOW_TRY(check_rows(instance, inputs, count, first, rows));
  FLOW_TRY(begin_run(context, instance, inputs, count, order, (int64_t)first, (int64_t)rows, 0));
  flow_status status = execute(instance);
  atomic_store(&instance->running, 0);
  return status;
}

/* `steps` batches of `rows` rows each, from `first` on, by an instance on a device. */
static flow_status run_steps(flow_context *context, flow_instance *instance, flow_tensor *const *inputs, int count,
                             const flow_tensor *order, int64_t first, int64_t rows, int steps)
{
  FLOW_TRY(begin_run(context, instance, inputs, count, order, first, rows, steps));
  flow_status status = execute(instance);
  if (status == FLOW_OK) status = flow_accelerated_close_tables(instance, inputs, order);
  atomic_store(&instance->running, 0);
  return status;
}

flow_status flow_instance_run_batches(flow_context *context, flow_instance *instance, flow_tensor *const *inputs, int count,
                                      const flow_tensor *order, double first, double rows, double size, double *done)
{
  FLOW_DEFAULT_FLOATS;
  const flow_scalars before = instance->base;
  *done = 0;
  FLOW_TRY(check_rows(instance, inputs, count, first, size));
  if (!(rows >= 0 && rows < 0x1p53 && size >= 1)) return flow_fail(FLOW_INVALID_ARGUMENT, "%g rows in batches of %g", rows, size);
  int takes = flow_accelerated_takes_batches(context, instance, inputs, count, order);
  for (int64_t at = 0, left = (int64_t)rows; left > 0;) {
    int64_t some = left < (int64_t)size ? left : (int64_t)size;
    int steps = takes ? flow_accelerated_steps(instance, some, left / some) : 1;
    instance->base = before;
    instance->base.step += (int64_t)*done;
    instance->base.first_sample += at;
    flow_status status = takes ? run_steps(context, instance, inputs, count, order, (int64_t)first + at, some, steps)
                               : flow_instance_run_rows(context, instance, inputs, count, order, first + (double)at, (double)some);
    if (status != FLOW_OK || instance->stop_wished) return status;
    *done += steps;
    at += steps * some;
    left -= steps * some;
  }
  return FLOW_OK;
}

/* ---- inputs of each replica ------------------------------------------------------------------------------------------------------ */

static flow_status run_each(flow_context *context, flow_instance *lead, flow_tensor *const *inputs, int count, flow_tensor **outputs)
{
  int64_t rows[FLOW_MOST_REPLICAS];
  int replicas = lead->replica_count, each = lead->plan->output_count;
  for (int r = 0; r < replicas; r++) {
    rows[r] = -1;
    FLOW_TRY(check_inputs(lead, inputs + (size_t)r * (size_t)count, count, -1, &rows[r]));
    if (rows[r] < 0) rows[r] = 1;
    FLOW_TRY(check_capacity(lead, rows[r]));
  }
  FLOW_TRY(take_instance(context, lead));
  flow_status status = flow_instance_take_variables(lead);
  if (status == FLOW_OK) status = flow_accelerated_bind_variables(lead);
  if (status == FLOW_OK) status = flow_instance_divide_each(lead, rows);
  for (int r = 0; r < replicas && status == FLOW_OK; r++) {
    status = bind_replica(lead->replicas[r], inputs + (size_t)r * (size_t)count, NULL, 0);
    if (status == FLOW_OK) status = new_outputs(lead, rows[r], outputs + (size_t)r * (size_t)each);
  }
  if (status == FLOW_OK && lead->exchange && lead->stop_wished) status = flow_fail(FLOW_INTERRUPTED, "a worker was interrupted");
  if (status == FLOW_OK) status = flow_execute(lead);
  for (int k = 0; k < replicas * each && status == FLOW_OK; k++) status = copy_output(lead->replicas[k / each], k % each, outputs[k], 0);
  for (int k = 0; k < replicas * each && status != FLOW_OK; k++) flow_tensor_release(outputs[k]), outputs[k] = NULL;
  atomic_store(&lead->running, 0);
  return status;
}

flow_status flow_instance_run_each(flow_context *context, flow_instance *instance, flow_tensor *const *inputs, int count,
                                   flow_tensor **outputs)
{
  FLOW_DEFAULT_FLOATS;
  void *block;
  int all = instance->replica_count * count;
  memset(outputs, 0, sizeof *outputs * (size_t)(instance->replica_count * instance->plan->output_count));
  FLOW_TRY(flow_alloc_zero(sizeof(flow_tensor *) * (size_t)(all + 1), &block));
  flow_tensor **contiguous = block;
  flow_status status = FLOW_OK;
  for (int r = 0; r < instance->replica_count && status == FLOW_OK; r++)
    status = make_contiguous(instance, inputs + (size_t)r * (size_t)count, count, contiguous + (size_t)r * (size_t)count);
  if (status == FLOW_OK) status = run_each(context, instance, contiguous, count, outputs);
  for (int i = 0; i < all; i++) flow_tensor_release(contiguous[i]);
  flow_free(block);
  return status;
}
