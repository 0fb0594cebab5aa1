/* variable_ops.c: reading variables and assigning to them, eagerly and in traces. See graph/variable.h.
 *
 * Eagerly a read is a view of the storage, and an assignment writes it at once. In a trace a variable has versions: the first read makes
 * a VARIABLE value; an assignment appends an effect and makes the assigned value the version that later reads get, so that nothing in
 * the graph reads what an effect has written unless it has to. */
#include <string.h>

#include "autodiff/eager.h"
#include "base/need.h"
#include "autodiff/apply.h"
#include "graph/loop.h"
#include "graph/variable.h"

/* Another handle of the same memory. New reference. */
static flow_status view_of(flow_tensor *t, flow_tensor **out)
{
  return flow_tensor_view(t, t->rank, t->shape, t->strides, 0, out);
}

/* A copy of the tensor, made by the team, of which tapes are not told. New reference. */
static flow_status copy_of(flow_context *context, flow_tensor *t, flow_tensor **out)
{
  static const flow_attributes none;
  flow_signature signature = flow_tensor_signature(t);
  flow_tensor *copy = NULL;
  flow_status status = flow_run_eager(context, FLOW_OP_copy, &t, 1, &none, &signature, &copy);
  if (status == FLOW_OK) *out = copy;
  else flow_tensor_release(copy);
  return status;
}

/* The variable in its own dtype, whatever the policy is. New reference. */
static flow_status read_as_it_is(flow_context *context, flow_variable *variable, flow_tensor **out)
{
  FLOW_TRY(flow_check_variable("reading a variable", variable));
  flow_tensor *lent = flow_lent_value(context, variable);
  if (lent) {
    *out = flow_tensor_retain(lent);
    return FLOW_OK;
  }
  flow_graph *graph = flow_context_trace(context);
  if (!graph) {
    /* Its own handle, since tapes know tensors by identity; and its own memory for a tape, which wants the old value even
     * when the variable has been written by the time a gradient is taken. */
    if (context->scopes->tape_count) FLOW_TRY(copy_of(context, variable->tensor, out));
    else FLOW_TRY(view_of(variable->tensor, out));
    flow_status status = variable->trainable ? flow_tapes_watch_variable(context, variable, *out) : FLOW_OK;
    if (status != FLOW_OK) {
      flow_tensor_release(*out);
      *out = NULL;
    }
    return status;
  }
  int value = flow_graph_version(graph, variable);
  if (value < 0) {
    FLOW_TRY(flow_graph_variable(graph, variable, 0, &value));
    FLOW_TRY(flow_graph_set_version(graph, variable, value));
  }
  return flow_graph_tensor(graph, value, out);
}

/* In the body of a loop a variable is one of the values that it closes over, and for a tape there as good as the variable. */
static flow_status read_outside(flow_context *context, flow_graph *body, flow_variable *variable, flow_tensor **out)
{
  flow_tensor *read;
  int value;
  flow_loop_leave(context);
  flow_status status = flow_variable_read(context, variable, &read);
  flow_loop_return(context, body);
  FLOW_TRY(status);
  status = flow_graph_operand(body, read, &value);
  flow_tensor_release(read);
  FLOW_TRY(status);
  if (!body->values[value].variable) body->values[value].variable = flow_variable_retain(variable);
  return flow_graph_tensor(body, value, out);
}

/* A policy's 16 bits are a cast of what is read (context.h: autocast), through which gradients flow back to the float32 variable. */
flow_status flow_variable_read(flow_context *context, flow_variable *variable, flow_tensor **out)
{
  FLOW_NEED(context, variable, out);
  flow_tensor *cast;
  flow_graph *graph = flow_context_trace(context);
  if (graph && graph->outer && flow_graph_version(graph, variable) < 0 && !flow_lent_value(context, variable))
    return read_outside(context, graph, variable, out);
  FLOW_TRY(read_as_it_is(context, variable, out));
  int dtype = context->scopes->autocast;
  if (dtype == FLOW_FLOAT32 || variable->tensor->dtype != FLOW_FLOAT32) return FLOW_OK;
  flow_status status = flow_apply1(context, FLOW_OP_cast, *out, NULL, NULL, &(flow_attributes){ .cast = { dtype } }, &cast);
  if (status == FLOW_OK) flow_graph_loosen(cast);
  flow_tensor_release(*out);
  *out = status == FLOW_OK ? cast : NULL;
  return status;
}

/* The sentence of an op about shapes that do not fit, replaced by one that names the variable. Other failures stay unchanged. */
static flow_status fail_to_fit(flow_status status, const flow_variable *variable, const flow_tensor *value)
{
  if (status != FLOW_INVALID_ARGUMENT) return status;
  return flow_fail(status, "assign to variable \"%s\": value has shape %s, the variable %s", variable->name,
                   flow_shape_text(value->rank, value->shape), flow_shape_text(variable->tensor->rank, variable->tensor->shape));
}

/* The value as the variable keeps it: its dtype and shape. In a trace also a copy where it is another variable's storage, which an
 * earlier effect of the commit tail may overwrite. *out: a new reference. */
static flow_status as_stored(flow_context *context, flow_variable *variable, flow_tensor *value, flow_tensor **out)
{
  const flow_tensor *storage = variable->tensor;
  flow_tensor *current = flow_tensor_retain(value), *next;
  flow_status status = FLOW_OK;
  if (current->dtype != storage->dtype) {
    status = flow_apply1(context, FLOW_OP_cast, current, NULL, NULL, &(flow_attributes){ .cast = { storage->dtype } }, &next);
    flow_tensor_release(current);
    if (status != FLOW_OK) return status;
    current = next;
  }
  if (!flow_shape_equal(current->rank, current->shape, storage->rank, storage->shape)) {
    flow_attributes shape = { .shape = { .rank = storage->rank } };
    memcpy(shape.shape.dims, storage->shape, sizeof(int64_t) * (size_t)storage->rank);
    status = flow_apply1(context, FLOW_OP_broadcast_to, current, NULL, NULL, &shape, &next);
    flow_tensor_release(current);
    if (status != FLOW_OK) return fail_to_fit(status, variable, value);
    current = next;
  }
  flow_graph *graph = flow_context_trace(context);
  if (graph && current->graph == graph && graph->values[flow_graph_root(graph, current->value)].kind == FLOW_VALUE_VARIABLE) {
    status = flow_apply1(context, FLOW_OP_copy, current, NULL, NULL, NULL, &next);
    flow_tensor_release(current);
    if (status != FLOW_OK) return status;
    current = next;
  }
  *out = current;
  return FLOW_OK;
}

/* An assignment in a trace: an effect on the variable's storage, and a new version. The effect runs in the plan's commit tail, when the
 * step is known to be good. */
static flow_status append_assign(flow_context *context, flow_variable *variable, flow_tensor *value)
{
  flow_graph *graph = flow_context_trace(context);
  flow_tensor *stored, *target = NULL;
  FLOW_TRY(as_stored(context, variable, value, &stored));
  flow_status status = flow_variable_handle(context, variable, &target);
  if (status == FLOW_OK)
    status = flow_apply(context, FLOW_OP_assign, (flow_tensor *[]){ target, stored }, 2, NULL, NULL);
  int index = -1;
  if (status == FLOW_OK) status = flow_graph_operand(graph, stored, &index);
  if (status == FLOW_OK) status = flow_variable_set_version(graph, variable, index);
  flow_tensor_release(target);
  flow_tensor_release(stored);
  return status;
}

flow_status flow_variable_lend(flow_context *context, flow_variable *variable, flow_tensor *value)
{
  FLOW_NEED(context, variable);
  FLOW_TRY(flow_check_variable("lending to a variable", variable));
  if (!value) {
    flow_lent_remove(context, variable);
    return FLOW_OK;
  }
  FLOW_TRY(flow_check_tensor("flow_variable_lend: value", value));
  flow_tensor *stored;
  FLOW_TRY(as_stored(context, variable, value, &stored));
  flow_status status = flow_lent_add(context, variable, stored);
  flow_tensor_release(stored);
  return status;
}

/* What the replicas assign to a variable whose kind is to keep their mean is that mean. */
static flow_status assign(flow_context *context, flow_variable *variable, flow_tensor *value)
{
  if (!flow_context_trace(context)) {
    FLOW_TRY(flow_check_concrete("assigned value", value));
    FLOW_TRY(flow_variable_own(variable));
    flow_status status = flow_tensor_copy(variable->tensor, value);
    if (status != FLOW_OK) return fail_to_fit(status, variable, value);
    variable->version++;
    return FLOW_OK;
  }
  if (variable->sync != FLOW_MEAN_ON_READ) return append_assign(context, variable, value);
  flow_tensor *mean;
  FLOW_TRY(flow_mean_over_replicas(context, value, &mean));
  flow_status status = append_assign(context, variable, mean);
  flow_tensor_release(mean);
  return status;
}

/* A lent value is replaced as well. */
flow_status flow_variable_assign(flow_context *context, flow_variable *variable, flow_tensor *value)
{
  FLOW_NEED(context, variable, value);
  FLOW_TRY(flow_check_variable("assign", variable));
  FLOW_TRY(flow_check_tensor("flow_variable_assign: value", value));
  if (!flow_lent_value(context, variable)) return assign(context, variable, value);
  flow_tensor *stored;
  FLOW_TRY(as_stored(context, variable, value, &stored));
  flow_status status = assign(context, variable, stored);
  if (status == FLOW_OK) flow_lent_replace(context, variable, stored);
  flow_tensor_release(stored);
  return status;
}

/* current + value in the dtype of a sum of both; floats are added to integers in float64, which holds counts that float32 does not. A
 * failure names the variable. */
static flow_status sum_with(flow_context *context, const flow_variable *variable, flow_tensor *current, flow_tensor *value,
                            flow_tensor **out)
{
  static const flow_attributes wide = { .cast = { FLOW_FLOAT64 } };
  flow_tensor *cast = NULL;
  flow_status status = FLOW_OK;
  if (!flow_dtype_is_float(current->dtype) && flow_dtype_is_float(value->dtype))
    status = flow_apply1(context, FLOW_OP_cast, value, NULL, NULL, &wide, &cast);
  if (status == FLOW_OK) status = flow_apply1(context, FLOW_OP_add, current, cast ? cast : value, NULL, NULL, out);
  flow_tensor_release(cast);
  return status == FLOW_OK ? status : fail_to_fit(status, variable, value);
}

/* In place; a value of another dtype is added first and the sum is converted, as in a trace: 5 + -1.7 is 3 in an int64. */
static flow_status add_now(flow_context *context, flow_variable *variable, flow_tensor *value)
{
  FLOW_TRY(flow_check_concrete("assigned value", value));
  if (value->dtype != variable->tensor->dtype) {
    flow_tensor *sum;
    FLOW_TRY(sum_with(context, variable, variable->tensor, value, &sum));
    flow_status status = flow_variable_assign(context, variable, sum);
    flow_tensor_release(sum);
    return status;
  }
  FLOW_TRY(flow_variable_own(variable));
  flow_status added = flow_apply(context, FLOW_OP_assign_add, (flow_tensor *[]){ variable->tensor, value }, 2, NULL, NULL);
  if (added != FLOW_OK) return fail_to_fit(added, variable, value);
  variable->version++;
  return FLOW_OK;
}

/* What each replica adds to a variable whose kind is a sum counts. */
flow_status flow_variable_assign_add(flow_context *context, flow_variable *variable, flow_tensor *value)
{
  FLOW_NEED(context, variable, value);
  FLOW_TRY(flow_check_variable("assign_add", variable));
  FLOW_TRY(flow_check_tensor("flow_variable_assign_add: value", value));
  if (!flow_context_trace(context) && !flow_lent_value(context, variable)) return add_now(context, variable, value);
  flow_tensor *current, *sum = NULL, *total = NULL;
  FLOW_TRY(read_as_it_is(context, variable, &current));
  flow_status status = FLOW_OK;
  if (variable->sync == FLOW_SUM_ON_READ) status = flow_sum_over_replicas(context, value, &total);
  else total = flow_tensor_retain(value);
  if (status == FLOW_OK) status = sum_with(context, variable, current, total, &sum);
  if (status == FLOW_OK) status = flow_variable_assign(context, variable, sum);
  flow_tensor_release(total);
  flow_tensor_release(sum);
  flow_tensor_release(current);
  return status;
}
