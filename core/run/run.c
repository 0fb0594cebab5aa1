/* run.c: the calls that run an instance: inputs are checked and bound, rows divided among replicas, outputs made.
 *
 * A run goes through these steps, in this order, all by the caller's thread: the inputs are checked; the run is taken, so that a second
 * caller gets an error and not a data race; variables are brought to where the plan runs; rows are divided, which is where workers first
 * talk to each other; inputs are bound or copied; memory for outputs is taken; the plan is executed; outputs that were not made in that
 * memory are copied; the run is left. What can fail for reasons of one worker alone (arguments, memory) comes before the workers meet or,
 * on devices, tells the others that this one gives up (flow_device_run_give_up).
 *
 * Calls differ in what rows they take: flow_instance_run takes all rows of its inputs and gives outputs; flow_instance_run_rows and
 * flow_instance_run_batches take some rows of larger tensors, by an order if there is one; flow_instance_predict_rows does so, too, and
 * puts outputs into larger tensors; flow_instance_run_each takes inputs for each replica. */
#include <string.h>

#include "base/float_state.h"
#include "base/need.h"
#include "graph/variable.h"
#include "run/binding.h"
#include "run/device/device_run.h"
#include "run/executor.h"
#include "run/input_rows.h"

enum { MOST_WORKERS = 16384 };      /* rows beyond what this many workers take cannot be meant */

/* Checks input `index` (from 0; messages count from 1) against the signature and finds the rows that it brings; *rows < 0: not known
 * yet. first >= 0: the run takes *rows rows from there on, more are fine; first < 0: all of them. */
static flow_status check_input(const flow_graph *graph, int index, const flow_tensor *tensor, int64_t first, int64_t *rows)
{
  const flow_signature *s = &graph->values[graph->inputs[index]].signature;
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

/* The number of inputs, then each of them; *rows: how many rows they have, which all must agree on. */
static flow_status check_inputs(const flow_graph *graph, flow_tensor *const *inputs, int count, int64_t first, int64_t *rows)
{
  if (count != graph->input_count)
    return flow_fail(FLOW_INVALID_ARGUMENT, "the plan takes %d inputs, found %d", graph->input_count, count);
  for (int i = 0; i < count; i++) FLOW_TRY(check_input(graph, i, inputs[i], first, rows));
  return FLOW_OK;
}

/* Memory was laid out for `capacity` rows: a run never makes an instance larger by itself. */
static flow_status check_capacity(const flow_instance *instance, int64_t rows)
{
  FLOW_TRY(flow_check_laid_out(instance));
  if (rows <= instance->capacity) return FLOW_OK;
  return flow_fail(FLOW_INVALID_ARGUMENT, "%lld rows are more than the instance's capacity of %lld", (long long)rows,
                   (long long)instance->capacity);
}

/* Makes the run the caller's; on success the caller ends it with leave_run. The instance is not locked: two threads that use one
 * instance are a fault of the host, which gets FLOW_INVALID_STATE. */
static flow_status take_run(flow_context *context, flow_run_state *run)
{
  int idle = 0;
  if (!atomic_compare_exchange_strong(&run->running, &idle, 1))
    return flow_fail(FLOW_INVALID_STATE, "this instance runs in another thread; make one instance per concurrent caller");
  run->context = context;
  run->committed = 0;
  return FLOW_OK;
}

static void leave_run(flow_replica_set *set, flow_status status)
{
  flow_replica_set_end_run(set, status);
  atomic_store(&set->run.running, 0);
}

/* Where a replica's operands are: inputs from their row `first` on, which are brought to a device, whose variables are bound already. */
static flow_status bind_replica(flow_instance *replica, flow_tensor *const *inputs, const flow_tensor *order, int64_t first)
{
  if (replica->device) return flow_device_run_bring(replica, inputs, order, first);
  flow_bind_inputs(replica, inputs, first);
  return flow_bind_variables(replica, NULL);
}

/* Brings inputs to where the replicas read them. first: from this row, or element of the order, on. An order on a device is applied
 * there, for each replica's own rows. */
static flow_status bring_inputs(flow_replica_set *set, flow_tensor *const *inputs, const flow_tensor *order, int64_t first)
{
  for (int r = 0; r < set->count; r++) FLOW_TRY(bind_replica(set->replicas[r], inputs, order, first + set->replicas[r]->part.first));
  return FLOW_OK;
}

/* Before the rows are divided: the variables are brought to where the plan runs, and to the replicas' devices. */
static flow_status bring_variables(flow_replica_set *set)
{
  const flow_graph *graph = set->lead->plan->graph;
  for (int v = 0; v < graph->value_count; v++)
    if (graph->values[v].kind == FLOW_VALUE_VARIABLE) FLOW_TRY(flow_variable_move_to(graph->values[v].variable, graph->place));
  return set->lead->device ? flow_device_run_bind_variables(set) : FLOW_OK;
}

/* After it: those that workers may have in common memory. */
static flow_status place_variables(flow_replica_set *set)
{
  FLOW_TRY(flow_place_weights(set));
  return flow_own_written(set);
}

static const flow_signature *output_signature(const flow_instance *instance, int index)
{
  return &instance->plan->graph->values[instance->plan->outputs[index]].signature;
}

static void drop_outputs(flow_tensor **outputs, int count)
{
  for (int i = 0; i < count; i++) {
    flow_tensor_release(outputs[i]);
    outputs[i] = NULL;
  }
}

flow_status flow_instance_new_outputs(const flow_instance *instance, int64_t rows, flow_tensor **outputs)
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
  drop_outputs(outputs, made);
  return status;
}

/* Checks the inputs, takes the run and divides its rows. On success the caller executes it and leaves it; after a failure it is left
 * already. first < 0: all of their rows. steps: how many steps take their batches of `rows` rows themselves; 0: it is a run that does
 * not. outputs: NULL, or [output_count] of NULL, which get tensors for the rows of this process, released after a failure.
 *
 * What can fail here, as memory for outputs and for rows in an order, comes before the rows are divided: then the other workers have not
 * heard of the run, and this one can run once more. An order on the host is applied into memory of the run, in which the rows stand from
 * 0 on.
 *
 * An order names rows wherever they are, so the inputs only have to have rows at all; flow_check_order looks at its length and gathering
 * at each index. */
static flow_status begin_run(flow_context *context, flow_replica_set *set, flow_tensor *const *inputs, int count, const flow_tensor *order,
                             int64_t first, int64_t rows, int steps, flow_tensor **outputs)
{
  flow_instance *lead = set->lead;
  int64_t any = 0;      /* an order names rows wherever they are: how many the inputs have is checked when they are gathered */
  int64_t last = steps > 1 ? first + (steps - 1) * rows : first;
  FLOW_TRY(check_inputs(lead->plan->graph, inputs, count, order ? 0 : last, order ? &any : &rows));
  if (order) FLOW_TRY(flow_check_order(order, last, rows));
  if (rows < 0) rows = set->count;                           /* a plan without rows is run by each replica as if it had one */
  int64_t part = flow_replica_set_part_rows(set, rows), local = flow_replica_set_local_rows(set, rows);
  FLOW_TRY(check_capacity(lead, part));
  FLOW_TRY(take_run(context, &set->run));
  flow_status status = bring_variables(set);
  if (status == FLOW_OK) status = flow_execute_prepare(set, local < part ? local : part);
  if (status == FLOW_OK && outputs) status = flow_instance_new_outputs(lead, local, outputs);
  if (status == FLOW_OK && !steps && order && !flow_tensor_place(order)) {
    status = flow_gather_on_host(&set->run, lead->plan->graph, inputs, order, first, rows, &inputs);
    order = NULL;
    first = 0;
  }
  if (status == FLOW_OK) status = flow_replica_set_divide(set, rows);
  if (status == FLOW_OK) status = place_variables(set);
  if (status == FLOW_OK && steps) status = flow_device_run_open_tables(lead, inputs, order, first, steps);
  if (status == FLOW_OK && !steps) status = bring_inputs(set, inputs, order, first > 0 ? first : 0);
  if (status == FLOW_OK) status = flow_place_gathered(set);
  if (status != FLOW_OK) {
    if (outputs) drop_outputs(outputs, lead->plan->output_count);
    flow_device_run_give_up(set);
    leave_run(set, status);
    return status;
  }
  return FLOW_OK;
}

/* The workers agreed that there is nothing to do. */
static int is_over(const flow_replica_set *set) { return set->exchange && (set->run.global_rows == 0 || set->stop_agreed); }

static int has_rows(const flow_signature *signature) { return signature->rank > 0 && signature->dims[0] < 0; }

/* Where the rows of an output belong that a replica makes from its row `first` on. */
static size_t offset_in(const flow_signature *signature, int64_t first)
{
  return has_rows(signature) ? (size_t)first * flow_value_bytes(signature, 1) : 0;
}

/* Lets this replica make its rows of an output where they belong, if the plan's layout allows it and they begin as values of the arena do.
 * Before the run; without it, and for the rest, memory of values is used again by the next run, so that outputs are copies. */
static void place_output(const flow_instance *replica, int index, const flow_tensor *output, int64_t first)
{
  size_t offset = offset_in(output_signature(replica, index), first);
  if (replica->device || !replica->output_moves[index] || offset % FLOW_CPU_ALIGNMENT) return;
  replica->part.bases[replica->plan->roots[replica->plan->outputs[index]]] = output->data + offset;
}

/* After it. Values of the arena, to which that of each output belongs, are there again. */
static void replace_outputs(const flow_instance *replica)
{
  for (int i = 0; i < replica->plan->output_count && !replica->device; i++) {
    int root = replica->plan->roots[replica->plan->outputs[i]];
    if (replica->output_moves[i]) replica->part.bases[root] = replica->arena + replica->offsets[root];
  }
}

/* Copies the rows of output `index` that this replica has made to `output`, from its row `first` on, if it has not made them there. */
static flow_status copy_output(const flow_instance *replica, int index, flow_tensor *output, int64_t first)
{
  const flow_signature *signature = output_signature(replica, index);
  size_t bytes = flow_value_bytes(signature, replica->part.rows), offset = offset_in(signature, first);
  if (replica->device) return flow_device_run_output(replica, replica->plan->outputs[index], bytes, output, offset);
  const flow_plan *plan = replica->plan;
  int root = plan->roots[plan->outputs[index]], made = plan->lifetimes[root].defined;
  /* The commit tail is the lead's alone. */
  const flow_instance *maker = made >= 0 && plan->segments[made].tail ? replica->set->lead : replica;
  if (bytes && output->data + offset != maker->part.bases[root]) memcpy(output->data + offset, maker->part.bases[root], bytes);
  return FLOW_OK;
}

static flow_status execute(flow_replica_set *set) { return is_over(set) ? FLOW_OK : flow_execute(set); }

/* Output i, of all local replicas if it has rows, else of the lead. first: the run's first row in the tensor. */
static void place_outputs(const flow_replica_set *set, int i, const flow_tensor *output, int64_t first)
{
  for (int r = 0; r < set->count; r++) {
    if (r == 0 || has_rows(output_signature(set->lead, i))) place_output(set->replicas[r], i, output, first);
    first += set->replicas[r]->part.rows;
  }
}

static flow_status copy_outputs(const flow_replica_set *set, int i, flow_tensor *output, int64_t first)
{
  for (int r = 0; r < set->count; r++) {
    if (r == 0 || has_rows(output_signature(set->lead, i))) FLOW_TRY(copy_output(set->replicas[r], i, output, first));
    first += set->replicas[r]->part.rows;
  }
  return FLOW_OK;
}

/* Executes what begin_run has begun and fills the rows of the outputs that begin with `first`. */
static flow_status execute_into(const flow_instance *lead, flow_tensor *const *outputs, int64_t first)
{
  int count = lead->plan->output_count;
  for (int i = 0; i < count; i++) place_outputs(lead->set, i, outputs[i], first);
  flow_status status = flow_execute(lead->set);
  for (int i = 0; i < count && status == FLOW_OK; i++) status = copy_outputs(lead->set, i, outputs[i], first);
  for (int r = 0; r < lead->set->count; r++) replace_outputs(lead->set->replicas[r]);
  return status;
}

/* Runs and fills the outputs, whose memory begin_run has taken. None are left if it fails, or if the workers agreed that there is nothing
 * to do. */
static flow_status run_with_outputs(const flow_instance *lead, flow_tensor **outputs)
{
  int over = is_over(lead->set);
  flow_status status = over ? FLOW_OK : execute_into(lead, outputs, 0);
  if (over || status != FLOW_OK) drop_outputs(outputs, lead->plan->output_count);
  return status;
}

/* contiguous: [count], NULL at first; gets new references, which the caller releases even after a failure. For the CPU they are on the
 * host. */
static flow_status make_contiguous(const flow_instance *instance, flow_tensor *const *inputs, int count, flow_tensor **contiguous)
{
  for (int i = 0; i < count; i++) {
    FLOW_TRY(flow_check_concrete("input of a plan", inputs[i]));
    if (instance->device) FLOW_TRY(flow_tensor_contiguous(inputs[i], &contiguous[i]));
    else FLOW_TRY(flow_tensor_on_host_contiguous(inputs[i], &contiguous[i]));
  }
  return FLOW_OK;
}

/* outputs NULL: nothing is copied; then the run is for its effects. Inputs may have any strides and be anywhere. */
flow_status flow_instance_run(flow_context *context, flow_instance *instance, flow_tensor *const *inputs, int count, flow_tensor **outputs)
{
  FLOW_DEFAULT_FLOATS;
  FLOW_NEED(context, instance);
  if (count > 0) FLOW_NEED(inputs);
  flow_tensor *few[FLOW_MAX_OPERANDS] = { NULL }, **contiguous = few;
  size_t bytes = 0;
  for (int i = 0; outputs && i < instance->plan->output_count; i++) outputs[i] = NULL;
  if (count > FLOW_MAX_OPERANDS) {
    void *block;
    FLOW_TRY(flow_multiply((size_t)count, sizeof *contiguous, &bytes));
    FLOW_TRY(flow_alloc_zero(bytes, &block));
    contiguous = block;
  }
  flow_status status = make_contiguous(instance, inputs, count, contiguous);
  if (status == FLOW_OK) status = begin_run(context, instance->set, contiguous, count, NULL, -1, -1, 0, outputs);
  if (status == FLOW_OK) {
    status = outputs ? run_with_outputs(instance, outputs) : execute(instance->set);
    leave_run(instance->set, status);
  }
  for (int i = 0; i < count; i++) flow_tensor_release(contiguous[i]);
  if (contiguous != few) flow_free(contiguous);
  return status;
}

/* ---- rows of larger tensors ------------------------------------------------------------------------------------------------------ */

/* What the calls for rows of larger tensors need beyond check_inputs: tensors are used where they are, so they are contiguous, and on
 * the host for the CPU. The limits keep conversions of doubles to int64_t defined; MOST_WORKERS because a call may name the rows of all
 * workers. */
static flow_status check_rows(const flow_instance *instance, flow_tensor *const *inputs, int count, double first, double rows)
{
  FLOW_TRY(flow_check_laid_out(instance));
  for (int i = 0; i < count; i++) {
    FLOW_TRY(instance->device ? flow_check_concrete("input of a plan", inputs[i]) : flow_check_on_host("input of a plan", inputs[i]));
    if (!flow_tensor_is_contiguous(inputs[i])) return flow_fail(FLOW_INVALID_ARGUMENT, "input %d is not contiguous", i + 1);
  }
  if (!(rows >= 0)) return flow_fail(FLOW_INVALID_ARGUMENT, "the number of rows is %g, expected 0 or more", rows);
  if (rows > (double)instance->capacity * (double)FLOW_MOST_REPLICAS * MOST_WORKERS)
    return flow_fail(FLOW_INVALID_ARGUMENT, "%.17g rows are more than the instance's capacity of %lld", rows,
                     (long long)instance->capacity);
  if (!(first >= 0 && first < 0x1p53)) return flow_fail(FLOW_INVALID_ARGUMENT, "the first row is %g, expected one from 0", first);
  return FLOW_OK;
}

static flow_status check_batches(double rows, double size)
{
  if (rows >= 0 && rows < 0x1p53 && size >= 1) return FLOW_OK;
  return flow_fail(FLOW_INVALID_ARGUMENT, "%g rows in batches of %g: expected 0 rows or more, in batches of 1 or more", rows, size);
}

flow_status flow_instance_run_rows(flow_context *context, flow_instance *instance, flow_tensor *const *inputs, int count,
                                   const flow_tensor *order, double first, double rows)
{
  FLOW_DEFAULT_FLOATS;
  FLOW_NEED(context, instance);
  if (count > 0) FLOW_NEED(inputs);
  FLOW_TRY(check_rows(instance, inputs, count, first, rows));
  FLOW_TRY(begin_run(context, instance->set, inputs, count, order, (int64_t)first, (int64_t)rows, 0, NULL));
  flow_status status = execute(instance->set);
  leave_run(instance->set, status);
  return status;
}

/* `steps` batches of `rows` rows each, from `first` on, by an instance on a device. */
static flow_status run_steps(flow_context *context, flow_instance *instance, flow_tensor *const *inputs, int count,
                             const flow_tensor *order, int64_t first, int64_t rows, int steps)
{
  FLOW_TRY(begin_run(context, instance->set, inputs, count, order, first, rows, steps, NULL));
  flow_status status = execute(instance->set);
  if (status == FLOW_OK) status = flow_device_run_close_tables(instance, inputs, order);
  leave_run(instance->set, status);
  return status;
}

/* The loop of an epoch: rows first .. first + rows - 1 in batches of `size`, the last one perhaps smaller. *done is how many batches
 * have written their variables, also after a failure. The step counts on from the one that the caller has set, by one a batch. Several
 * batches go as one run where the device takes them itself. Ends early, with FLOW_OK, if the workers agreed to stop. */
flow_status flow_instance_run_batches(flow_context *context, flow_instance *instance, flow_tensor *const *inputs, int count,
                                      const flow_tensor *order, double first, double rows, double size, double *done)
{
  FLOW_DEFAULT_FLOATS;
  FLOW_NEED(context, instance, done);
  if (count > 0) FLOW_NEED(inputs);
  const flow_scalars before = instance->run->given;
  *done = 0;
  FLOW_TRY(check_rows(instance, inputs, count, first, size));
  FLOW_TRY(check_batches(rows, size));
  int takes = flow_device_run_takes_batches(context, instance, inputs, count, order);
  for (int64_t at = 0, left = (int64_t)rows; left > 0;) {
    int64_t some = left < (int64_t)size ? left : (int64_t)size;
    if (!instance->set->exchange && flow_preempted(context)) return flow_fail(FLOW_INTERRUPTED, "the process is to end");
    int steps = takes ? flow_device_run_steps(instance, some, left / some) : 1;
    instance->run->given = before;
    instance->run->given.step += (int64_t)*done;
    flow_status status = takes ? run_steps(context, instance, inputs, count, order, (int64_t)first + at, some, steps)
                               : flow_instance_run_rows(context, instance, inputs, count, order, first + (double)at, (double)some);
    if (status != FLOW_OK) *done += instance->run->committed;
    if (status != FLOW_OK || instance->set->stop_agreed) return status;
    *done += steps;
    at += steps * some;
    left -= steps * some;
  }
  return FLOW_OK;
}

/* Outputs into which runs put rows up to `end`: where the plan runs, contiguous, of the sizes that its outputs have but for the rows. */
static flow_status check_larger_outputs(const flow_instance *instance, flow_tensor *const *outputs, int64_t end)
{
  for (int i = 0; i < instance->plan->output_count; i++) {
    const flow_signature *s = output_signature(instance, i);
    const flow_tensor *output = outputs[i];
    FLOW_TRY(flow_check_concrete("output of a plan", output));
    int fits = has_rows(s) && output->dtype == s->dtype && output->rank == s->rank && output->shape[0] / -s->dims[0] >= end;
    for (int d = 1; d < s->rank && fits; d++) fits = output->shape[d] == s->dims[d];
    if (!fits)
      return flow_fail(FLOW_INVALID_ARGUMENT, "output %d is %s %s and cannot take %lld rows of %s %s", i + 1,
                       flow_dtype_name(output->dtype), flow_shape_text(output->rank, output->shape), (long long)end,
                       flow_dtype_name(s->dtype), flow_shape_text(s->rank, s->dims));
    if (flow_tensor_place(output) != instance->plan->graph->place || !flow_tensor_is_contiguous(output))
      return flow_fail(FLOW_INVALID_ARGUMENT, "output %d has gaps, or is not where the plan runs", i + 1);
  }
  return FLOW_OK;
}

flow_status flow_instance_predict_rows(flow_context *context, flow_instance *instance, flow_tensor *const *inputs, int count, double first,
                                       double rows, double size, flow_tensor *const *outputs)
{
  FLOW_DEFAULT_FLOATS;
  FLOW_NEED(context, instance, outputs);
  if (count > 0) FLOW_NEED(inputs);
  const flow_scalars before = instance->run->given;
  FLOW_TRY(check_batches(rows, size));
  FLOW_TRY(check_rows(instance, inputs, count, first, size));
  if (instance->set->exchange)
    return flow_fail(FLOW_UNSUPPORTED, "no worker has all outputs, since each runs other rows: predict outside of the strategy's scope");
  int64_t begin = (int64_t)first, end = begin + (int64_t)rows;
  FLOW_TRY(check_larger_outputs(instance, outputs, end));
  flow_status status = FLOW_OK;
  for (int64_t at = begin, some; at < end && status == FLOW_OK; at += some) {
    some = end - at < (int64_t)size ? end - at : (int64_t)size;
    instance->run->given.first_sample = before.first_sample + at;
    FLOW_TRY_GOTO(begin_run(context, instance->set, inputs, count, NULL, at, some, 0, NULL), done);
    status = execute_into(instance, outputs, at);
    leave_run(instance->set, status);
  }
done:
  instance->run->given = before;
  return status;
}

/* ---- inputs of each replica ------------------------------------------------------------------------------------------------------ */

/* rows[r]: of replica r; a plan without rows counts as one row for each. */
static flow_status check_each(const flow_replica_set *set, flow_tensor *const *inputs, int count, int64_t *rows)
{
  for (int r = 0; r < set->count; r++) {
    rows[r] = -1;
    FLOW_TRY(check_inputs(set->lead->plan->graph, inputs + (size_t)r * (size_t)count, count, -1, &rows[r]));
    if (rows[r] < 0) rows[r] = 1;
    FLOW_TRY(check_capacity(set->lead, rows[r]));
  }
  return FLOW_OK;
}

/* As begin_run and run_with_outputs, with inputs and outputs [replica][count]. All outputs are made before the run, and released if it
 * fails. */
static flow_status run_each(flow_context *context, flow_replica_set *set, flow_tensor *const *inputs, int count, flow_tensor **outputs)
{
  int64_t rows[FLOW_MOST_REPLICAS];
  int replicas = set->count, each = set->lead->plan->output_count;
  FLOW_TRY(check_each(set, inputs, count, rows));
  FLOW_TRY(take_run(context, &set->run));
  flow_status status = bring_variables(set);
  if (status == FLOW_OK) status = flow_execute_prepare(set, rows[0]);
  for (int r = 0; r < replicas && status == FLOW_OK; r++)
    status = flow_instance_new_outputs(set->lead, rows[r], outputs + (size_t)r * (size_t)each);
  if (status == FLOW_OK) status = flow_replica_set_divide_each(set, rows);
  if (status == FLOW_OK) status = place_variables(set);
  for (int r = 0; r < replicas && status == FLOW_OK; r++)
    status = bind_replica(set->replicas[r], inputs + (size_t)r * (size_t)count, NULL, 0);
  if (status == FLOW_OK && set->exchange && set->stop_agreed) status = flow_fail(FLOW_INTERRUPTED, "a worker was interrupted");
  for (int k = 0; k < replicas * each && status == FLOW_OK; k++) place_output(set->replicas[k / each], k % each, outputs[k], 0);
  if (status == FLOW_OK) status = flow_execute(set);
  for (int k = 0; k < replicas * each && status == FLOW_OK; k++) status = copy_output(set->replicas[k / each], k % each, outputs[k], 0);
  for (int r = 0; r < replicas; r++) replace_outputs(set->replicas[r]);
  if (status != FLOW_OK) drop_outputs(outputs, replicas * each);
  leave_run(set, status);
  return status;
}

flow_status flow_instance_run_each(flow_context *context, flow_instance *instance, flow_tensor *const *inputs, int count,
                                   flow_tensor **outputs)
{
  FLOW_DEFAULT_FLOATS;
  FLOW_NEED(context, instance, outputs);
  if (count > 0) FLOW_NEED(inputs);
  if (count != instance->plan->graph->input_count)
    return flow_fail(FLOW_INVALID_ARGUMENT, "the plan takes %d inputs, found %d", instance->plan->graph->input_count, count);
  flow_replica_set *set = instance->set;
  void *block;
  int all = set->count * count;
  memset(outputs, 0, sizeof *outputs * (size_t)(set->count * instance->plan->output_count));
  FLOW_TRY(flow_alloc_zero(sizeof(flow_tensor *) * (size_t)(all + 1), &block));
  flow_tensor **contiguous = block;
  flow_status status = FLOW_OK;
  for (int r = 0; r < set->count && status == FLOW_OK; r++)
    status = make_contiguous(instance, inputs + (size_t)r * (size_t)count, count, contiguous + (size_t)r * (size_t)count);
  if (status == FLOW_OK) status = run_each(context, set, contiguous, count, outputs);
  for (int i = 0; i < all; i++) flow_tensor_release(contiguous[i]);
  flow_free(block);
  return status;
}
