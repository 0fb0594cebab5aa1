/* variable.c: variables and their versions within a trace. Reading and assigning are ops: autodiff/variable_ops.c. See variable.h. */
#include "graph/variable_group.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/need.h"
#include "tensor/caller_number.h"
#include "tensor/place.h"

enum { VARIABLE_MAGIC = 0x5641524c };

/* The magic word finds most pointers to something else and to variables that were released. */
flow_status flow_check_variable(const char *what, const flow_variable *variable)
{
  if (!variable || variable->magic != VARIABLE_MAGIC)
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s: not a variable, or one that was released", what);
  return FLOW_OK;
}

/* The initial value is copied, on its own device. */
flow_status flow_variable_new(flow_tensor *initial, const char *name, int trainable, int sync, flow_variable **out)
{
  FLOW_NEED(initial, name, out);
  flow_tensor *storage;
  FLOW_TRY(flow_check_concrete("initial value of a variable", initial));
  FLOW_TRY(flow_tensor_new_at(flow_tensor_place(initial), initial->dtype, initial->rank, initial->shape, &storage));
  flow_status status = flow_tensor_copy(storage, initial);
  if (status == FLOW_OK) status = flow_variable_over(storage, name, trainable, sync, out);
  flow_tensor_release(storage);
  return status;
}

/* Retains the storage: variables whose parameters an optimizer has put into one arena are views of it. */
flow_status flow_variable_over(flow_tensor *storage, const char *name, int trainable, int sync, flow_variable **out)
{
  void *block;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_variable), &block));
  flow_variable *variable = block;
  if (!(variable->name = flow_duplicate_text(name ? name : "variable"))) {
    flow_free(variable);
    return FLOW_OUT_OF_MEMORY;
  }
  variable->tensor = flow_tensor_retain(storage);
  variable->magic = VARIABLE_MAGIC;
  atomic_init(&variable->references, 1);
  variable->trainable = trainable;
  variable->sync = sync;
  *out = variable;
  return FLOW_OK;
}

flow_status flow_variable_named(flow_tensor *storage, int trainable, int sync, flow_variable **out, const char *format, ...)
{
  va_list arguments;
  void *name;
  va_start(arguments, format);
  int length = vsnprintf(NULL, 0, format, arguments);
  va_end(arguments);
  FLOW_TRY(flow_alloc((size_t)length + 1, &name));
  va_start(arguments, format);
  vsnprintf(name, (size_t)length + 1, format, arguments);
  va_end(arguments);
  flow_status status = flow_variable_over(storage, name, trainable, sync, out);
  flow_free(name);
  return status;
}

/* Counts are atomic, since several threads may hold references; all else of a variable is for one thread at a time. */
flow_variable *flow_variable_retain(flow_variable *variable)
{
  if (!variable) return NULL;
  atomic_fetch_add_explicit(&variable->references, 1, memory_order_relaxed);
  return variable;
}

/* The magic word is taken away, so that a pointer that is used after this is found in most cases. */
void flow_variable_release(flow_variable *variable)
{
  if (!variable || atomic_fetch_sub_explicit(&variable->references, 1, memory_order_acq_rel) != 1) return;
  variable->magic = 0;
  flow_tensor_release(variable->tensor);
  flow_free(variable->constraint);
  flow_free(variable->name);
  flow_free(variable);
}

const char *flow_variable_name(const flow_variable *variable)
{
  return variable ? variable->name : NULL;
}
int flow_variable_trainable(const flow_variable *variable)
{
  return variable ? variable->trainable : 0;
}
/* Holds for gradients that are taken from now on; plans keep what they were made with. */
void flow_variable_set_trainable(flow_variable *variable, int trainable)
{
  if (variable) variable->trainable = trainable != 0;
}
/* How often an eager call has changed it; what follows from the value can be kept as long as this stays. */
double flow_variable_version(const flow_variable *variable)
{
  return variable ? variable->version : 0;
}

static int is_shared(const flow_variable *variable)
{
  return variable->tensor->storage && variable->tensor->storage->owner;
}

flow_status flow_variable_own(flow_variable *variable)
{
  if (!is_shared(variable)) return FLOW_OK;
  FLOW_TRY(flow_variable_group_part(variable->group));
  if (!is_shared(variable)) return FLOW_OK;
  return flow_fail(FLOW_OUT_OF_MEMORY,
                   "variable \"%s\" is in memory of several workers, and there was none to take it out: make the model "
                   "again",
                   variable->name);
}

/* *out: a new reference to the storage itself, to be read or written before the variable's next update: an update may move the variable
 * to other memory. */
flow_status flow_variable_tensor(flow_variable *variable, flow_tensor **out)
{
  FLOW_NEED(variable, out);
  FLOW_TRY(flow_check_variable("flow_variable_tensor", variable));
  FLOW_TRY(flow_variable_own(variable));
  *out = flow_tensor_retain(variable->tensor);
  return FLOW_OK;
}

/* The same to be read only. */
flow_status flow_variable_peek(flow_variable *variable, flow_tensor **out)
{
  FLOW_NEED(variable, out);
  FLOW_TRY(flow_check_variable("flow_variable_peek", variable));
  *out = flow_tensor_retain(variable->tensor);
  return FLOW_OK;
}

/* Waits for the device where the variable is on one. NaN stands for a failure, as the caller gets a plain number. */
double flow_variable_number(const flow_variable *variable)
{
  if (!variable) return 0;
  double value = 0;
  flow_tensor *host;
  if (flow_tensor_on_host(variable->tensor, &host) != FLOW_OK) return NAN;      /* the device has failed: the next call says so */
  flow_convert_to_double(host->dtype, host->data, 1, &value, 1);
  flow_tensor_release(host);
  return flow_caller_number(value);
}

/* Not a reading: tapes do not see it, and it has no version. */
flow_status flow_variable_handle(flow_context *context, flow_variable *variable, flow_tensor **out)
{
  flow_graph *graph = flow_context_trace(context);
  if (!graph) {
    FLOW_TRY(flow_variable_own(variable));
    *out = flow_tensor_retain(variable->tensor);
    return FLOW_OK;
  }
  int value;
  FLOW_TRY(flow_graph_variable(graph, variable, 0, &value));
  return flow_graph_tensor(graph, value, out);
}

/* What reading yields from now on: a copy of `value` that is a separate source of gradients, as a reading is eagerly. */
flow_status flow_variable_set_version(flow_graph *graph, flow_variable *variable, int value)
{
  static const flow_attributes none;
  flow_signature signature = flow_tensor_signature(variable->tensor);
  int version;
  FLOW_TRY(flow_graph_append(graph, FLOW_OP_stop_gradient, &value, 1, &none, &signature, &version));
  graph->values[version].variable = flow_variable_retain(variable);
  return flow_graph_set_version(graph, variable, version);
}

/* Eagerly only the version counts; in a trace reads from now on see the storage as it is after this effect. */
flow_status flow_variable_updated(flow_context *context, flow_variable *variable)
{
  flow_graph *graph = flow_context_trace(context);
  if (!graph) {
    variable->version++;
    return FLOW_OK;
  }
  /* A copy made right after the update, since the next one may follow before it is read; dropped if it is not read. */
  int late;
  FLOW_TRY(flow_graph_variable(graph, variable, 1, &late));
  return flow_variable_set_version(graph, variable, late);
}

/* The contents go along. Plans see it at their next run, since they reach the storage through the variable. */
flow_status flow_variable_move(flow_variable *variable, flow_tensor *tensor)
{
  FLOW_TRY(flow_variable_own(variable));
  flow_tensor *old = variable->tensor;
  flow_status status = flow_tensor_copy(tensor, old);
  if (status != FLOW_OK) return status;
  variable->tensor = flow_tensor_retain(tensor);
  flow_tensor_release(old);
  return FLOW_OK;
}

/* A variable in an optimizer's arena shares its storage with others and cannot move alone. */
flow_status flow_variable_move_to(flow_variable *variable, flow_place *place)
{
  const flow_tensor *old = variable->tensor;
  flow_tensor *fresh;
  if (flow_place_device(flow_tensor_place(old)) == flow_place_device(place)) return FLOW_OK;
  if (old->storage->bytes != (size_t)flow_shape_size(old->rank, old->shape) * (size_t)flow_dtype_size(old->dtype))
    return flow_fail(FLOW_INVALID_STATE, "variable \"%s\" is on %s, together with the others that its optimizer trains, and is needed "
                     "on %s: make the model and compile it on the device where it is trained", variable->name,
                     flow_place_name(flow_tensor_place(old)), flow_place_name(place));
  FLOW_TRY(flow_tensor_new_at(place, old->dtype, old->rank, old->shape, &fresh));
  flow_status status = flow_variable_move(variable, fresh);
  flow_tensor_release(fresh);
  return status;
}
