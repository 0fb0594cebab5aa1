/* operations.c: the operations of keras.ops that files may hold, what they share, and those that compute element by
 * element. Formulas are those of lua/flow/tensor/ops.lua, op by op, so that both give the same bits.
 *
 * An operation is found by its class when the file is read (flow_operation_find), its call is checked for what it may be
 * given (flow_operation_check), and it runs whenever the model is traced (flow_operation_run): operands are put together
 * from tensors and from the numbers in the file, and the record's rule makes ops of them. A rule need not check for
 * failures: after the first one every function here returns NULL, and ops with NULL operands do nothing. */
#include "models/operations.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flow_model.h"
#include "ops/rules.h"
#include "tensor/tensor.h"

/* ---- what rules share ------------------------------------------------------------------------------------------------------ */

/* Of an operation that is one op or an activation: its name. */
static const char *own_name(const flow_operation *operation)
{
  return operation->activation ? operation->activation : flow_op(operation->op)->name;
}

/* Only the first failure of a call counts: later ones follow from it. */
flow_tensor *flow_operation_fail(flow_operation_call *call, flow_status status, const char *format, ...)
{
  va_list arguments;
  if (call->e.status != FLOW_OK) return NULL;
  va_start(arguments, format);
  flow_fail_list(status, NULL, format, arguments);
  va_end(arguments);
  const char *name = call->operation->class_name ? call->operation->class_name : own_name(call->operation);
  call->e.status = flow_fail_prefix(status, "%s: ", name);
  return NULL;
}

const flow_json *flow_operation_option(const flow_operation_call *call, const char *name)
{
  const flow_json *value = flow_json_member(call->config, name);
  return flow_json_is(value, FLOW_JSON_NULL) ? NULL : value;
}

/* initial: what an option that is missing or null stands for. */
double flow_operation_number(flow_operation_call *call, const char *name, double initial)
{
  const flow_json *value = flow_operation_option(call, name);
  if (!value) return initial;
  if (flow_json_is_number(value)) return value->number;
  flow_operation_fail(call, FLOW_UNSUPPORTED, "%s is not a number", name);
  return initial;
}

int flow_operation_boolean(const flow_operation_call *call, const char *name, int initial)
{
  const flow_json *value = flow_operation_option(call, name);
  return flow_json_is(value, FLOW_JSON_BOOLEAN) ? flow_json_is_true(value) : initial;
}

/* The error is left in the call's expression; 0 is then a value that no caller uses, as all rules stop at the first failure. */
int flow_operation_axis(flow_operation_call *call, const flow_json *value, int limit)
{
  double axis = flow_json_is_number(value) ? value->number : NAN;
  if (axis >= -limit && axis < limit && floor(axis) == axis) return (int)axis + (axis < 0 ? limit : 0);
  flow_operation_fail(call, FLOW_INVALID_ARGUMENT, "an axis is not a whole number from %d to %d", -limit, limit - 1);
  return 0;
}

int flow_operation_axis_option(flow_operation_call *call, int limit, int initial)
{
  const flow_json *value = flow_operation_option(call, "axis");
  return value ? flow_operation_axis(call, value, limit) : initial < 0 ? initial + limit : initial;
}

/* A tensor of rank 0, which the call's expression keeps. */
static flow_tensor *scalar_of(flow_operation_call *call, int dtype, double value)
{
  flow_tensor *scalar = NULL;
  if (call->e.status != FLOW_OK) return NULL;
  flow_status status = flow_tensor_new(dtype, 0, NULL, &scalar);
  if (status == FLOW_OK) status = flow_tensor_fill(scalar, value);
  return flow_express_keep(&call->e, status, scalar);
}

flow_tensor *flow_operation_scalar(flow_operation_call *call, const flow_tensor *like, double value)
{
  return scalar_of(call, flow_dtype_of_number(like->dtype, value), value);
}

/* Values of one constant in a file, 64 MB as floats: a file must not ask for more memory by a few nested lists. */
enum { CONSTANT_MOST = 1 << 24 };

/* How many values nested lists hold and how long they are on each level, as far as their first entries tell; -1: too
 * many. dims[0 .. *rank - 1]. An empty list ends the walk, since it has no first entry. */
static int64_t dims_of(const flow_json *value, int *rank, int64_t *dims)
{
  int64_t count = 1;
  for (*rank = 0; flow_json_is(value, FLOW_JSON_LIST) && *rank < FLOW_MAX_RANK; value = value->child) {
    dims[(*rank)++] = flow_json_count(value);
    if ((count *= flow_json_count(value)) > CONSTANT_MOST) return -1;
  }
  return flow_json_is(value, FLOW_JSON_LIST) ? -1 : count;
}

/* Writes the values one after the other from *at on; 0: a list has another length, an entry is not a number. */
static int write_values(const flow_json *value, int depth, int rank, const int64_t *dims, flow_tensor *into, int64_t *at)
{
  const flow_json *entry;
  if (depth < rank) {
    if (!flow_json_is(value, FLOW_JSON_LIST) || flow_json_count(value) != dims[depth]) return 0;
    FLOW_JSON_EACH(entry, value) if (!write_values(entry, depth + 1, rank, dims, into, at)) return 0;
    return 1;
  }
  if (!flow_json_is_number(value) && !flow_json_is(value, FLOW_JSON_BOOLEAN)) return 0;
  /* Whole numbers beyond 2^53 keep their digits. */
  if (into->dtype == FLOW_INT64 && value->text && !strpbrk(value->text, ".eE"))
    ((int64_t *)flow_tensor_elements(into))[(*at)++] = strtoll(value->text, NULL, 10);
  else ((double *)flow_tensor_elements(into))[(*at)++] = value->number;
  return 1;
}

/* Values go through float64, or int64 where that is the dtype, into a tensor of `dtype`. */
flow_tensor *flow_operation_constant(flow_operation_call *call, const flow_json *value, int dtype)
{
  const flow_json *class = flow_json_member(value, "class_name"), *config = flow_json_member(value, "config");
  int64_t dims[FLOW_MAX_RANK], count, at = 0;
  int rank;
  flow_tensor *values = NULL;
  if (call->e.status != FLOW_OK) return NULL;
  if (flow_json_is(class, FLOW_JSON_TEXT) && (strcmp(class->text, "__tensor__") == 0 || strcmp(class->text, "__numpy__") == 0)) {
    const flow_json *name = flow_json_member(config, "dtype");
    if (dtype < 0 && flow_json_is(name, FLOW_JSON_TEXT)) {
      dtype = flow_dtype_find(name->text);
      if (dtype < 0) {
        return flow_operation_fail(call, FLOW_UNSUPPORTED, "a constant has the dtype \"%s\", which is not known", name->text);
      }
    }
    value = flow_json_member(config, "value");
  }
  if (dtype < 0) dtype = FLOW_FLOAT32;
  count = dims_of(value, &rank, dims);
  if (count < 0 || !(rank > 0 || flow_json_is_number(value) || flow_json_is(value, FLOW_JSON_BOOLEAN)))
    return flow_operation_fail(call, FLOW_UNSUPPORTED, "an operand is neither a tensor nor a number nor a list of numbers");
  flow_status status = flow_tensor_new(dtype == FLOW_INT64 ? FLOW_INT64 : FLOW_FLOAT64, rank, dims, &values);
  if (status == FLOW_OK && !write_values(value, 0, rank, dims, values, &at)) {
    flow_tensor_release(values);
    return flow_operation_fail(call, FLOW_UNSUPPORTED, "a list of numbers has entries of several lengths or kinds");
  }
  values = flow_express_keep(&call->e, status, values);
  if (!values || values->dtype == dtype) return values;
  flow_tensor *written = NULL;
  status = flow_tensor_new(dtype, rank, dims, &written);
  if (status == FLOW_OK) status = flow_tensor_write(written, flow_tensor_elements(values), (double)count);
  return flow_express_keep(&call->e, status, written);
}

/* ---- rules ------------------------------------------------------------------------------------------------------------------- */

#define E (&call->e)
#define X (call->operands[0])
#define NUMBER(value) flow_operation_scalar(call, x, value)

/* Up to three operands; those that the call lacks are NULL, which flow_express takes for absent. */
static flow_tensor *by_op(flow_operation_call *call)
{
  return flow_express(E, call->operation->op, X, call->count > 1 ? call->operands[1] : NULL, call->count > 2 ? call->operands[2] : NULL,
                      NULL);
}

static flow_tensor *by_activation(flow_operation_call *call) { return flow_express_activation(E, call->operation->activation, X); }

/* axis and keepdims as the attributes of a reduction. */
static flow_attributes reduction(flow_operation_call *call, int keepdims)
{
  flow_attributes attributes = { .reduce = { .keepdims = keepdims } };
  const flow_json *axis = flow_operation_option(call, "axis"), *entry;
  if (flow_json_is(axis, FLOW_JSON_LIST)) {
    if (flow_json_count(axis) > X->rank || flow_json_count(axis) == 0)
      flow_operation_fail(call, FLOW_INVALID_ARGUMENT, "%d axes are named for a tensor of rank %d", flow_json_count(axis), X->rank);
    else FLOW_JSON_EACH(entry, axis) attributes.reduce.axes[attributes.reduce.count++] = flow_operation_axis(call, entry, X->rank);
  } else if (axis) {
    attributes.reduce.count = 1;
    attributes.reduce.axes[0] = flow_operation_axis(call, axis, X->rank);
  }
  return attributes;
}

/* keepdims is false where the config does not say. */
static flow_tensor *reduce(flow_operation_call *call)
{
  flow_attributes attributes = reduction(call, flow_operation_boolean(call, "keepdims", 0));
  return flow_express(E, call->operation->op, X, NULL, NULL, &attributes);
}

static flow_tensor *mean_of(flow_operation_call *call, flow_tensor *x, int keepdims)
{
  flow_attributes attributes = reduction(call, keepdims);
  return flow_express_mean_over(E, x, &attributes);
}

static flow_tensor *mean(flow_operation_call *call) { return mean_of(call, X, flow_operation_boolean(call, "keepdims", 0)); }

/* mean((x - mean(x))^2), the mean of x kept as an axis of size 1 so that it broadcasts. */
static flow_tensor *variance(flow_operation_call *call)
{
  flow_tensor *centered = e_sub(E, X, mean_of(call, X, 1));
  return mean_of(call, e_square(E, centered), flow_operation_boolean(call, "keepdims", 0));
}

static flow_tensor *deviation(flow_operation_call *call) { return flow_express(E, FLOW_OP_sqrt, variance(call), NULL, NULL, NULL); }

/* The last axis where the config names none, as in Keras' softmax. */
static flow_tensor *along_axis(flow_operation_call *call)
{
  flow_attributes attributes = { .axis = { .axis = flow_operation_axis_option(call, X->rank, -1) } };
  return flow_express(E, call->operation->op, X, NULL, NULL, &attributes);
}

/* Only a NaN differs from itself (IEEE 754). */
static flow_tensor *is_nan(flow_operation_call *call) { return flow_express(E, FLOW_OP_ne, X, X, NULL, NULL); }

/* round(x 10^d) / 10^d, as NumPy computes it; halves go to the even neighbour. */
static flow_tensor *round_decimals(flow_operation_call *call)
{
  double decimals = flow_operation_number(call, "decimals", 0);
  flow_tensor *x = X;
  if (decimals == 0) return flow_express(E, FLOW_OP_round, x, NULL, NULL, NULL);
  double scale = pow(10, decimals);
  flow_tensor *scaled = e_mul(E, x, NUMBER(scale));
  flow_tensor *rounded = flow_express(E, FLOW_OP_round, scaled, NULL, NULL, NULL);
  return rounded ? e_div(E, rounded, flow_operation_scalar(call, rounded, scale)) : NULL;
}

/* max before min, as NumPy: where the bounds cross, x_max wins. */
static flow_tensor *clip(flow_operation_call *call)
{
  flow_tensor *x = X;
  x = e_maximum(E, x, NUMBER(flow_operation_number(call, "x_min", -INFINITY)));
  return x ? e_minimum(E, x, NUMBER(flow_operation_number(call, "x_max", INFINITY))) : NULL;
}

static flow_tensor *leaky_relu(flow_operation_call *call)
{
  flow_tensor *x = X;
  const double slope = flow_operation_number(call, "negative_slope", 0.2);
  return x ? flow_express_leaky_relu(E, x, flow_operation_scalar(call, x, slope), slope) : NULL;
}

/* x for x >= 0, alpha (e^x - 1) below (Clevert et al., arXiv:1511.07289), as both readers write it: max(x, 0) plus alpha (e^min(x, 0) - 1),
 * so that -0 becomes 0. */
static flow_tensor *elu(flow_operation_call *call)
{
  flow_tensor *x = X, *below = e_expm1(E, e_minimum(E, x, NUMBER(0)));
  if (!below) return NULL;
  return e_add(E, e_relu(E, x), e_mul(E, below, flow_operation_scalar(call, below, flow_operation_number(call, "alpha", 1))));
}

static flow_tensor *gelu(flow_operation_call *call)
{
  return flow_operation_boolean(call, "approximate", 1) ? e_gelu_tanh(E, X) : e_gelu(E, X);
}

static flow_tensor *cast(flow_operation_call *call)
{
  const flow_json *name = flow_operation_option(call, "dtype");
  int dtype = flow_json_is(name, FLOW_JSON_TEXT) ? flow_dtype_find(name->text) : -1;
  return dtype < 0 ? flow_operation_fail(call, FLOW_UNSUPPORTED, "its dtype is not known") : flow_express_cast(E, X, dtype);
}

/* ---- records ------------------------------------------------------------------------------------------------------------------ */

#define RULE(class, operands, rule, options) { #class, operands, rule, 0, NULL, options, NULL, 0, NULL }
#define ALIAS(class, operands, rule, name, options) { #class, operands, rule, FLOW_OP_##name, NULL, options, NULL, 0, NULL }

static const flow_operation records[] = {
  ALIAS(Divide, 2, by_op, div, ""), ALIAS(Amax, 1, reduce, max, "axis|keepdims"), ALIAS(Amin, 1, reduce, min, "axis|keepdims"),
  ALIAS(Argmax, 1, reduce, argmax, "axis|keepdims"),
  RULE(Mean, 1, mean, "axis|keepdims"),
  RULE(Var, 1, variance, "axis|keepdims"), RULE(Std, 1, deviation, "axis|keepdims"),
  { "Softmax", 1, along_axis, FLOW_OP_softmax, NULL, "axis", NULL, 0, NULL },
  { "LogSoftmax", 1, along_axis, FLOW_OP_log_softmax, NULL, "axis", NULL, 0, NULL },
  RULE(Isnan, 1, is_nan, ""), RULE(Round, 1, round_decimals, "decimals"), RULE(Clip, 1, clip, "x_min|x_max"),
  RULE(LeakyRelu, 1, leaky_relu, "negative_slope"), RULE(Elu, 1, elu, "alpha"), RULE(Gelu, 1, gelu, "approximate"),
  RULE(Cast, 1, cast, "dtype"),
  RULE(Concatenate, 0, flow_operation_concatenate, "axis"), RULE(Stack, 0, flow_operation_stack, "axis"),
  RULE(Reshape, 1, flow_operation_reshape, "newshape"), RULE(Ravel, 1, flow_operation_ravel, ""),
  RULE(Transpose, 1, flow_operation_transpose, "axes"), RULE(Swapaxes, 1, flow_operation_swapaxes, "axis1|axis2"),
  RULE(ExpandDims, 1, flow_operation_expand_dims, "axis"), RULE(Squeeze, 1, flow_operation_squeeze, "axis"),
  RULE(Flip, 1, flow_operation_flip, "axis"), RULE(Split, 1, flow_operation_split, "indices_or_sections|axis"),
  RULE(Unstack, 1, flow_operation_unstack, "axis|num"), RULE(Tile, 1, flow_operation_tile, "repeats"),
  RULE(Repeat, 1, flow_operation_repeat, "repeats|axis"),
  { "Pad", 1, flow_operation_pad, 0, NULL, "pad_width|mode", "constant_values", 0, NULL },
  RULE(OneHot, 1, flow_operation_one_hot, "num_classes|axis|dtype"), RULE(ZerosLike, 1, flow_operation_zeros_like, "dtype"),
  RULE(OnesLike, 1, flow_operation_ones_like, "dtype"), { "Take", 1, flow_operation_take, 0, NULL, "axis", NULL, 1, NULL },
  { "GetItem", 1, flow_operation_item, 0, NULL, "", NULL, 1, NULL },
};

/* Operations that are one op, or an activation, and nothing else. Keras' class is called as the op is, divide_no_nan DivideNoNan, or as
 * `classes` says. Lua has these from here (flow_operation_row). */
#define PLAIN(name, operands) { NULL, operands, by_op, FLOW_OP_##name, NULL, "", NULL, 0, NULL }
#define ACTIVATION(name) { NULL, 1, by_activation, 0, name, "", NULL, 0, NULL }
static const flow_operation plain[] = {
#define FLOW_NUMBERS(name, inputs, flags, gradient, doc)       PLAIN(name, inputs),
#define FLOW_FLOATS(name, inputs, flags, gradient, doc)        PLAIN(name, inputs),
#define FLOW_CONDITION(name, inputs, doc)                      PLAIN(name, inputs),
#define FLOW_LOGICAL(name, inputs, doc)                        PLAIN(name, inputs),
#define FLOW_GRADIENT(...)
#define FLOW_FLOAT_PART(...)
#define FLOW_REDUCTION(name, flags, shape, gradient, doc)      { NULL, 1, reduce, FLOW_OP_##name, NULL, "axis|keepdims", NULL, 0, NULL },
#define FLOW_OP(...)
#include "ops/ops.def"
#undef FLOW_OP
  { NULL, 1, reduce, FLOW_OP_sum, NULL, "axis|keepdims", NULL, 0, NULL },
  PLAIN(matmul, 2), PLAIN(where, 3), PLAIN(stop_gradient, 1),
  ACTIVATION("relu6"), ACTIVATION("silu"), ACTIVATION("selu"), ACTIVATION("hard_sigmoid"), ACTIVATION("hard_silu"),
};
enum { PLAIN_COUNT = sizeof plain / sizeof *plain };

/* Classes that are called otherwise, and operations that are not in keras.src.ops.numpy; NULL: as ever. */
static const struct { const char *name, *class_name, *module; } classes[] = {
  { "sub", "Subtract", NULL }, { "mul", "Multiply", NULL }, { "div", "TrueDivide", NULL }, { "pow", "Power", NULL },
  { "eq", "Equal", NULL }, { "ne", "NotEqual", NULL }, { "lt", "Less", NULL }, { "le", "LessEqual", NULL }, { "gt", "Greater", NULL },
  { "ge", "GreaterEqual", NULL }, { "neg", "Negative", NULL }, { "abs", "Absolute", NULL }, { "is_finite", "Isfinite", NULL },
  { "rsqrt", NULL, "math" }, { "erf", NULL, "math" }, { "erfc", NULL, "math" }, { "logsumexp", NULL, "math" },
  { "stop_gradient", NULL, "core" },
  { "relu", NULL, "nn" }, { "sigmoid", NULL, "nn" }, { "softplus", NULL, "nn" }, { "softsign", NULL, "nn" },
};

enum { CLASS_BYTES = 64 };

/* The class of an operation and its module. text: memory for what it may return. */
static const char *class_of(const flow_operation *operation, char text[CLASS_BYTES], const char **module)
{
  const char *name = own_name(operation);
  int at = 0, begins = 1;
  *module = operation->activation ? "nn" : "numpy";
  for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
    if (strcmp(classes[i].name, name) != 0) continue;
    if (classes[i].module) *module = classes[i].module;
    if (classes[i].class_name) return classes[i].class_name;
  }
  for (; *name && at < CLASS_BYTES - 1; name++) {
    if (*name != '_') text[at++] = begins && *name >= 'a' && *name <= 'z' ? (char)(*name - 'a' + 'A') : *name;
    begins = *name == '_';
  }
  text[at] = 0;
  return text;
}

/* A row for Lua: name, class, module, operands, kind. Returns its length as snprintf does, 0 after the last row. */
int flow_operation_row(int index, char *text, int size)
{
  char class_text[CLASS_BYTES];
  const char *module;
  if (index < 0 || index >= PLAIN_COUNT) return 0;
  const char *class_name = class_of(&plain[index], class_text, &module);
  return snprintf(text, text && size > 0 ? (size_t)size : 0, "%s %s %s %d %s", own_name(&plain[index]), class_name, module,
                  plain[index].operands, plain[index].run == reduce ? "reduction" : "plain");
}

/* By the module, since classes of layers and of operations may have one name. Those of flowlua.ops, which Keras lacks, need Lua
 * (lua/flow/saving/own_operations.lua). */
int flow_operation_is(const char *module)
{
  static const char ops[] = "keras.src.ops.";
  return module && (strncmp(module, ops, sizeof ops - 1) == 0 || strcmp(module, "flowlua.ops") == 0);
}

/* The classes that formulas and arrays have come last: those tables are searched by name as well. */
const flow_operation *flow_operation_find(const char *class_name)
{
  for (size_t i = 0; i < sizeof records / sizeof *records; i++)
    if (strcmp(records[i].class_name, class_name) == 0) return &records[i];
  for (int i = 0; i < PLAIN_COUNT; i++) {
    char text[CLASS_BYTES];
    const char *module;
    if (strcmp(class_of(&plain[i], text, &module), class_name) == 0) return &plain[i];
  }
  const flow_operation *found = flow_operation_find_formula(class_name);
  return found ? found : flow_operation_find_array(class_name);
}

/* A split into more parts than FLOW_OPERATION_MOST gives one more than that, which its caller refuses. An unstack's number follows from the
 * shape, which is not known here. */
int flow_operation_outputs(const flow_operation *operation, const flow_json *config)
{
  if (operation->run == flow_operation_split) {
    const flow_json *parts = flow_json_member(config, "indices_or_sections");
    double count = flow_json_is(parts, FLOW_JSON_LIST) ? flow_json_count(parts) + 1 : flow_json_is_number(parts) ? parts->number : 1;
    return count >= 1 && count <= FLOW_OPERATION_MOST ? (int)count : FLOW_OPERATION_MOST + 1;
  }
  return operation->run == flow_operation_unstack ? FLOW_OPERATION_MOST : 1;
}

/* ---- calls -------------------------------------------------------------------------------------------------------------------- */

/* Whether a name is one of those that `names` lists, with | between them. */
static int is_among(const char *name, const char *names)
{
  if (!names) return 0;
  size_t length = strlen(name);
  for (const char *p = names; *p; p += strcspn(p, "|"), p += *p == '|')
    if (strcspn(p, "|") == length && strncmp(p, name, length) == 0) return 1;
  return 0;
}

/* "dtype" is the policy of an operation where it is not one of its options. null, false and objects are options that
 * were left out, or policies; everything else must be known, so that no meaning is lost. */
static void check_options(flow_operation_call *call)
{
  const flow_json *item;
  FLOW_JSON_EACH(item, call->config) {
    int silent = flow_json_is(item, FLOW_JSON_NULL) || flow_json_is_false(item) || flow_json_is(item, FLOW_JSON_OBJECT);
    if (silent || strcmp(item->key, "name") == 0 || is_among(item->key, call->operation->options)) continue;
    flow_operation_fail(call, FLOW_UNSUPPORTED, "the option %s is not supported", item->key);
  }
}

/* null stands for an argument that was not given, wherever it is. */
flow_status flow_operation_check(const flow_operation *operation, const char *name, const flow_json *args, const flow_json *kwargs)
{
  const flow_json *item;
  FLOW_JSON_EACH(item, kwargs) {
    if (!flow_json_is(item, FLOW_JSON_NULL) && !is_among(item->key, operation->keywords))
      return flow_fail(FLOW_UNSUPPORTED, "the call of \"%s\" has the argument %s, which is not supported", name, item->key);
  }
  int most = (operation->operands == 0 ? 1 : operation->operands) + operation->positions;
  for (int i = most; i < flow_json_count(args); i++)
    if (!flow_json_is(flow_json_item(args, i), FLOW_JSON_NULL))
      return flow_fail(FLOW_UNSUPPORTED, "the call of \"%s\" has %d arguments, only %d supported", name, flow_json_count(args), most);
  return FLOW_OK;
}

static int is_tensor(const flow_json *operand)
{
  const flow_json *class = flow_json_member(operand, "class_name");
  return flow_json_is(class, FLOW_JSON_TEXT) && strcmp(class->text, "__keras_tensor__") == 0;
}

/* Tensors first, since numbers take the dtype of the tensor that they meet: the other operand, the other branch of a where. */
static void fill_operands(flow_operation_call *call, flow_tensor *const *tensors, int count)
{
  const flow_json *first = flow_json_item(call->args, 0), *list = call->operation->operands == 0 ? first : call->args;
  int wanted = call->operation->operands == 0 ? flow_json_count(first) : call->operation->operands, next = 0;
  if (wanted < 1 || wanted > FLOW_OPERATION_MOST || flow_json_count(list) < wanted) {
    flow_operation_fail(call, FLOW_UNSUPPORTED, "it is called with %d operands, at most %d are possible", flow_json_count(list),
                        FLOW_OPERATION_MOST);
    return;
  }
  call->count = wanted;
  for (int i = 0; i < wanted; i++)
    if (is_tensor(flow_json_item(list, i)) && next < count) call->operands[i] = tensors[next++];
  for (int i = 0; i < wanted; i++) {
    const flow_json *operand = flow_json_item(list, i);
    if (call->operands[i] || flow_json_is_number(operand) || flow_json_is(operand, FLOW_JSON_BOOLEAN)) continue;
    call->operands[i] = flow_operation_constant(call, operand, -1);
  }
  for (int i = 0; i < wanted && call->e.status == FLOW_OK; i++) {
    const flow_json *operand = flow_json_item(list, i);
    int wanted_by = call->operation->operands, other = wanted_by == 2 ? 1 - i : wanted_by == 3 && i > 0 ? 3 - i : -1;
    if (call->operands[i]) continue;
    int like = other >= 0 && call->operands[other] ? call->operands[other]->dtype : FLOW_FLOAT32;
    if (flow_json_is(operand, FLOW_JSON_BOOLEAN)) call->operands[i] = scalar_of(call, FLOW_BOOL, flow_json_is_true(operand));
    else call->operands[i] = scalar_of(call, flow_dtype_of_number(like, operand->number), operand->number);
  }
  if (next == 0) flow_operation_fail(call, FLOW_CORRUPT_DATA, "it has no tensor among its operands");
}

/* The expression holds all intermediate tensors until the call ends; the first failure makes all later steps do nothing. */
flow_status flow_operation_run(flow_context *context, const flow_operation *operation, const flow_json *config, const flow_json *entry,
                               flow_tensor *const *tensors, int count, flow_tensor **outputs)
{
  flow_operation_call call = { .operation = operation, .config = config, .args = flow_json_member(entry, "args"),
                               .kwargs = flow_json_member(entry, "kwargs"), .e = flow_expression_of(context) };
  check_options(&call);
  if (call.e.status == FLOW_OK) fill_operands(&call, tensors, count);
  flow_tensor *result = call.e.status == FLOW_OK ? operation->run(&call) : NULL;
  if (flow_operation_outputs(operation, config) == 1) /* a rule for several outputs, such as Split, may have one as well */
    return flow_expression_take(&call.e, call.output_count > 0 ? call.outputs[0] : result, outputs);
  for (int i = 0; i < call.output_count && call.e.status == FLOW_OK; i++) outputs[i] = flow_tensor_retain(call.outputs[i]);
  flow_tensor *none = NULL;
  flow_status status = flow_expression_take(&call.e, NULL, &none);
  flow_tensor_release(none);
  return status;
}
