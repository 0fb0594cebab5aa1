/* operations.h: operations of keras.ops on symbolic tensors, x * 2 + 1 or ops.concatenate([a, b]), as Keras writes them: an entry in the
 * list of layers, whose config holds what the constructor of the operation takes; the call holds its tensors and numbers.
 * lua/flow/saving/operations.lua reads and writes the same ones.
 *
 * operations.c: the records and what is elementwise; operations_movement.c: what moves elements; operations_formulas.c: formulas of ops;
 * operations_arrays.c: what works along axes. */
#ifndef FLOW_MODELS_OPERATIONS_H
#define FLOW_MODELS_OPERATIONS_H

#include "base/json.h"
#include "layers/express.h"

enum { FLOW_OPERATION_MOST = 64 };      /* tensors that a call takes or gives */

typedef struct flow_operation flow_operation;

/* One call while it runs. Results of the functions below are borrowed from the expression; after the first failure all
 * return NULL. It lives on the stack of flow_operation_run. The JSON is borrowed from the model's description. */
typedef struct flow_operation_call {
  const flow_operation *operation;
  const flow_json      *config, *args, *kwargs;
  flow_expression       e;
  flow_tensor          *operands[FLOW_OPERATION_MOST];  /* tensors, numbers and constants, in their order */
  int                   count;
  flow_tensor          *outputs[FLOW_OPERATION_MOST];   /* of an operation with several; of the others the first is set by its result */
  int                   output_count;
} flow_operation_call;

typedef flow_tensor *(*flow_operation_rule)(flow_operation_call *call);

/* A class of keras.ops or keras.operations that a file may name, as one line of a table. */
struct flow_operation {
  const char         *class_name;      /* NULL: an operation that is one op or an activation, called after it */
  int                 operands;        /* tensors and numbers at the beginning of args; 0: one list of them */
  flow_operation_rule run;
  int                 op;              /* what simple rules take: an op, or */
  const char         *activation;      /* an activation */
  const char         *options;         /* "axis|keepdims": what its config may hold beside a name; others must be null or false */
  const char         *keywords;        /* what its call may be given by name; NULL: nothing */
  int                 positions;       /* how many arguments of its call stand for positions, after the operands */
  const char         *formula;         /* operations_formulas.c */
};

/* Whether a module of Keras is that of operations; the record of a class, NULL: not known. */
int                   flow_operation_is(const char *module);
const flow_operation *flow_operation_find(const char *class_name);

/* How many results a call has: by its config, at most FLOW_OPERATION_MOST where only the shape tells. */
int flow_operation_outputs(const flow_operation *operation, const flow_json *config);

/* Whether a call gives nothing that the operation does not take; messages name the layer `name`. */
flow_status flow_operation_check(const flow_operation *operation, const char *name, const flow_json *args, const flow_json *kwargs);

/* Runs a call on its tensors, in the order in which args names them. outputs: flow_operation_outputs of them, new references; those that
 * the shape does not give are NULL. */
flow_status flow_operation_run(flow_context *context, const flow_operation *operation, const flow_json *config, const flow_json *call,
                               flow_tensor *const *tensors, int count, flow_tensor **outputs);

/* ---- for rules ---- */

/* Fails the call: "Sum: ...". Returns NULL. */
flow_tensor *flow_operation_fail(flow_operation_call *call, flow_status status, const char *format, ...)
  __attribute__((format(printf, 3, 4)));

/* An option of the config; NULL: null, or not there. */
const flow_json *flow_operation_option(const flow_operation_call *call, const char *name);
double           flow_operation_number(flow_operation_call *call, const char *name, double initial);
int              flow_operation_boolean(const flow_operation_call *call, const char *name, int initial);
/* The axis of `limit` that a value of the config names, -1 from the end. */
int              flow_operation_axis(flow_operation_call *call, const flow_json *value, int limit);
/* The axis "axis", or `initial`. */
int              flow_operation_axis_option(flow_operation_call *call, int limit, int initial);

/* A number beside `like`, weakly typed: in the dtype of `like` if that can hold it. */
flow_tensor *flow_operation_scalar(flow_operation_call *call, const flow_tensor *like, double value);
/* Numbers, nested lists or {"class_name": "__tensor__"} as a tensor of `dtype`; -1: of the dtype that it names, float32 by default. */
flow_tensor *flow_operation_constant(flow_operation_call *call, const flow_json *value, int dtype);

/* operations_formulas.c and operations_arrays.c: the record of a class, or NULL. */
const flow_operation *flow_operation_find_formula(const char *class_name);
const flow_operation *flow_operation_find_array(const char *class_name);

/* operations_movement.c. flow_operation_part: elements first .. end - 1 of an axis. flow_operation_turned: x with the
 * order of the axes whose bits are set turned round; not that of a batch, since a slice that goes back begins at a number that only a run
 * knows. */
flow_tensor *flow_operation_turned(flow_operation_call *call, flow_tensor *x, unsigned turned);
flow_tensor *flow_operation_part(flow_operation_call *call, flow_tensor *x, int axis, int64_t first, int64_t end);
flow_tensor *flow_operation_concatenate(flow_operation_call *call);
flow_tensor *flow_operation_stack(flow_operation_call *call);
flow_tensor *flow_operation_reshape(flow_operation_call *call);
flow_tensor *flow_operation_ravel(flow_operation_call *call);
flow_tensor *flow_operation_transpose(flow_operation_call *call);
flow_tensor *flow_operation_swapaxes(flow_operation_call *call);
flow_tensor *flow_operation_expand_dims(flow_operation_call *call);
flow_tensor *flow_operation_squeeze(flow_operation_call *call);
flow_tensor *flow_operation_flip(flow_operation_call *call);
flow_tensor *flow_operation_split(flow_operation_call *call);
flow_tensor *flow_operation_unstack(flow_operation_call *call);
flow_tensor *flow_operation_tile(flow_operation_call *call);
flow_tensor *flow_operation_repeat(flow_operation_call *call);
flow_tensor *flow_operation_pad(flow_operation_call *call);
flow_tensor *flow_operation_one_hot(flow_operation_call *call);
flow_tensor *flow_operation_zeros_like(flow_operation_call *call);
flow_tensor *flow_operation_ones_like(flow_operation_call *call);
flow_tensor *flow_operation_take(flow_operation_call *call);
flow_tensor *flow_operation_item(flow_operation_call *call);

#endif
