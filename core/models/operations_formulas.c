/* operations_formulas.c: operations of keras.ops that are formulas of ops: one record each, with the formula as text. They are those of
 * lua/flow/tensor/composed/elementwise.lua and activations.lua, op by op, so that both give the same bits.
 *
 * A formula is "name = expression; ... expression": numbers, pi, inf, + - * /, and ops by their names, of which `where`, `isnan`, `clip`,
 * `signbit` and `as(value, like)`, a cast, are known, too. x is the operand as floats; of two operands x and y are these, a and b the same
 * as floats of one dtype. "alpha:1" is an option of the config with its default. A number beside a tensor has the tensor's dtype. */
#include "models/operations.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"
#include "flow.h"

#define E (&call->e)

/* A tensor, or, where that is NULL, a number. */
typedef struct term { flow_tensor *tensor; double number; } term;

enum { MOST_NAMES = 12, MOST_ARGUMENTS = 3, NAME_BYTES = 32 };

/* A formula while it is read: it is computed on the way, so that there is no tree. names: x, y, a and b, then its own definitions. */
typedef struct reader {
  flow_operation_call *call;
  const char          *at;
  struct { char name[NAME_BYTES]; term value; } names[MOST_NAMES];
  int                  name_count;
} reader;

static term expression(reader *r);

static void skip(reader *r) { while (*r->at == ' ') r->at++; }

/* Passes the character if it comes next, spaces aside. */
static int accept(reader *r, char c)
{
  skip(r);
  if (*r->at != c) return 0;
  r->at++;
  return 1;
}

/* ---- values ------------------------------------------------------------------------------------------------------------ */

/* A number becomes a scalar in the dtype of `like`, or, beside another number, in that of the formula's first operand. NULL after a
 * failure. */
static flow_tensor *tensor_of(reader *r, term value, term like)
{
  const flow_tensor *other = like.tensor ? like.tensor : r->names[0].value.tensor;
  if (value.tensor || r->call->e.status != FLOW_OK || !other) return value.tensor;
  return flow_operation_scalar(r->call, other, value.number);
}

/* Numbers are computed at once, anything with a tensor becomes an op. kind: one of + - * /. */
static term binary(reader *r, char kind, term a, term b)
{
  static const struct { char kind; int op; } ops[] = {
    { '+', FLOW_OP_add }, { '-', FLOW_OP_sub }, { '*', FLOW_OP_mul }, { '/', FLOW_OP_div }
  };
  term result = { .tensor = NULL };
  if (!a.tensor && !b.tensor) {
    result.number = kind == '+' ? a.number + b.number : kind == '-' ? a.number - b.number
                  : kind == '*' ? a.number * b.number : a.number / b.number;
    return result;
  }
  for (int i = 0; i < 4; i++)
    if (ops[i].kind == kind)
      result.tensor = flow_express(&r->call->e, ops[i].op, tensor_of(r, a, b), tensor_of(r, b, a), NULL, NULL);
  return result;
}

/* NULL stays NULL. */
static flow_tensor *as_floats(flow_operation_call *call, flow_tensor *x)
{
  return !x || flow_dtype_is_float(x->dtype) ? x : flow_express_cast(E, x, FLOW_FLOAT32);
}

/* Whether the sign is set, of -0 too. */
static flow_tensor *sign_bit(reader *r, flow_tensor *x)
{
  flow_operation_call *call = r->call;
  if (!x) return NULL;
  flow_tensor *zero = flow_operation_scalar(call, x, 0);
  return e_lt(E, e_where(E, e_eq(E, x, zero), e_reciprocal(E, x), x), zero);
}

/* A number takes the dtype of the tensor that stands beside it. flow_op_find of the name: formulas are constants of this file, so an
 * unknown name is a fault of the file, which its specs find. */
static term apply(reader *r, const char *name, const term *given, int count)
{
  flow_operation_call *call = r->call;
  flow_tensor *x = tensor_of(r, given[0], given[count > 1]);
  if (call->e.status != FLOW_OK) return (term){ .tensor = NULL };
  if (strcmp(name, "isnan") == 0) return (term){ .tensor = e_ne(E, x, x) };
  if (strcmp(name, "signbit") == 0) return (term){ .tensor = sign_bit(r, x) };
  if (strcmp(name, "as") == 0) return (term){ .tensor = flow_express_cast(E, x, given[1].tensor->dtype) };
  if (strcmp(name, "clip") == 0) {
    x = e_maximum(E, x, tensor_of(r, given[1], given[0]));
    return (term){ .tensor = x ? e_minimum(E, x, tensor_of(r, given[2], given[0])) : NULL };
  }
  if (strcmp(name, "where") == 0)
    return (term){ .tensor = e_where(E, x, tensor_of(r, given[1], given[2]), tensor_of(r, given[2], given[1])) };
  flow_tensor *second = count > 1 ? tensor_of(r, given[1], given[0]) : NULL;
  return (term){ .tensor = flow_express(E, flow_op_find(name), x, second, NULL, NULL) };
}

/* ---- reading ------------------------------------------------------------------------------------------------------------- */

/* A name is pi, inf, a definition of the formula, or an option of the config, with its default after a colon. */
static term named(reader *r, const char *name)
{
  if (strcmp(name, "pi") == 0) return (term){ .number = 3.14159265358979323846 };
  if (strcmp(name, "inf") == 0) return (term){ .number = INFINITY };
  for (int i = r->name_count - 1; i >= 0; i--)
    if (strcmp(r->names[i].name, name) == 0) return r->names[i].value;
  double initial = 0;
  if (accept(r, ':')) initial = flow_decimal_read(r->at, NULL, &r->at);
  return (term){ .number = flow_operation_number(r->call, name, initial) };
}

/* The parenthesis is open already. A call of an op on tensors, or the logarithm of a number. */
static term called(reader *r, const char *name)
{
  term given[MOST_ARGUMENTS] = { { NULL, 0 } };
  int count = 0;
  do given[count++] = expression(r); while (accept(r, ','));
  accept(r, ')');
  /* The only function of numbers. */
  if (count == 1 && !given[0].tensor && r->call->e.status == FLOW_OK) return (term){ .number = log(given[0].number) };
  return apply(r, name, given, count);
}

/* Recursive descent; formulas are this file's own, so depth and names need no checks beyond the sizes of the arrays. */
static term factor(reader *r)
{
  char name[NAME_BYTES];
  int length = 0;
  if (accept(r, '-')) {
    term value = factor(r);
    if (value.tensor) value.tensor = e_neg(&r->call->e, value.tensor);
    value.number = -value.number;
    return value;
  }
  if (accept(r, '(')) {
    term value = expression(r);
    accept(r, ')');
    return value;
  }
  if (isdigit((unsigned char)*r->at)) return (term){ .number = flow_decimal_read(r->at, NULL, &r->at) };
  while (isalnum((unsigned char)*r->at) || *r->at == '_') {
    if (length < NAME_BYTES - 1) name[length++] = *r->at;
    r->at++;
  }
  name[length] = 0;
  return accept(r, '(') ? called(r, name) : named(r, name);
}

/* Left to right, as in C: the order decides how results are rounded. * and / bind more than + and -. */
static term product(reader *r)
{
  term value = factor(r);
  for (skip(r); *r->at == '*' || *r->at == '/'; skip(r)) {
    char kind = *r->at++;
    value = binary(r, kind, value, factor(r));
  }
  return value;
}

/* sum = product { ('+' | '-') product }, from the left. */
static term expression(reader *r)
{
  term value = product(r);
  for (skip(r); *r->at == '+' || *r->at == '-'; skip(r)) {
    char kind = *r->at++;
    value = binary(r, kind, value, product(r));
  }
  return value;
}

/* There is room: the longest formula defines fewer than MOST_NAMES names, and none is as long as NAME_BYTES. */
static void name_value(reader *r, const char *name, size_t length, flow_tensor *tensor)
{
  memset(r->names[r->name_count].name, 0, NAME_BYTES);
  memcpy(r->names[r->name_count].name, name, length);
  r->names[r->name_count++].value = (term){ .tensor = tensor };
}

/* Names are looked for from the last to the first, so a later definition hides an earlier one. a and b get the dtype in which the op of two
 * operands would compute; their difference tells it, and is not used for anything else. */
static flow_tensor *formula(flow_operation_call *call)
{
  reader r = { .call = call, .at = call->operation->formula };
  flow_tensor *x = call->operands[0], *y = call->operands[1];
  if (call->operation->operands == 2) {
    const flow_tensor *difference = e_sub(E, x, y);
    int dtype = difference && flow_dtype_is_float(difference->dtype) ? difference->dtype : FLOW_FLOAT32;
    if (!difference) return NULL;
    name_value(&r, "a", 1, flow_express_cast(E, x, dtype));
    name_value(&r, "b", 1, flow_express_cast(E, y, dtype));
    name_value(&r, "y", 1, y);
  }
  name_value(&r, "x", 1, call->operation->operands == 2 ? x : as_floats(call, x));
  for (const char *equals; call->e.status == FLOW_OK && strchr(r.at, ';') && (equals = strchr(r.at, '=')); accept(&r, ';')) {
    skip(&r);
    const char *name = r.at;
    size_t length = strcspn(name, " =");
    r.at = equals + 1;
    flow_tensor *value = expression(&r).tensor;
    name_value(&r, name, length, value);
  }
  return call->e.status == FLOW_OK ? expression(&r).tensor : NULL;
}

/* By the table of activations, which Lua uses, too. */
static flow_tensor *activation(flow_operation_call *call)
{
  return flow_express_activation(E, call->operation->activation, as_floats(call, call->operands[0]));
}

/* ---- records -------------------------------------------------------------------------------------------------------------- */

#define ONE(class, known, text) { .class_name = #class, .operands = 1, .run = formula, .options = known, .formula = text }
#define ACTIVATION(class, name)                                                               \
  {                                                                                           \
    .class_name = #class, .operands = 1, .run = activation, .options = "", .activation = name \
  }
#define TWO(class, text)        { .class_name = #class, .operands = 2, .run = formula, .options = "", .formula = text }

/* Formulas avoid what loses digits: differences of nearly equal numbers (arcsin, arccosh), and overflow of squares (hypot, arcsinh). I0:
 * Abramowitz and Stegun, 9.8.1 and 9.8.2. */
static const flow_operation records[] = {
  ONE(Exp2, "", "exp(x * log(2))"),
  ONE(Log2, "", "log(x) * (1 / log(2))"),
  ONE(Log10, "", "log(x) * (1 / log(10))"),
  ONE(Cbrt, "", "sign(x) * pow(abs(x), 1 / 3)"),
  ONE(Arcsin, "", "arctan(x / (1 + sqrt(1 - x) * sqrt(1 + x))) * 2"),
  ONE(Arccos, "",
      "size = where(lt(x, 0), -x, x); angle = arctan(sqrt(1 - size) / sqrt(1 + size)) * 2;"
      "where(lt(x, 0), pi - angle, angle)"),
  ONE(Sinh, "", "(expm1(x) - expm1(-x)) * 0.5"),
  ONE(Cosh, "",
      "half = minimum(maximum(x, -1), 1) * 0.5; near = 1 + square(expm1(half) - expm1(-half)) * 0.5;"
      "where(lt(abs(x), 1), near, (exp(x) + exp(-x)) * 0.5)"),
  ONE(Arcsinh, "",
      "size = abs(x); bounded = minimum(size, 1e8);"
      "near = log1p(bounded + square(bounded) / (1 + sqrt(1 + square(bounded))));"
      "where(eq(x, 0), x, sign(x) * where(gt(size, 1e8), log(maximum(size, 1)) + log(2), near))"),
  ONE(Arccosh, "",
      "bounded = where(gt(x, 1e8), 1e8, x); near = log1p(bounded - 1 + sqrt(bounded - 1) * sqrt(bounded + 1));"
      "where(gt(x, 1e8), log(maximum(x, 1)) + log(2), near)"),
  ONE(Arctanh, "", "log1p(x * 2 / (1 - x)) * 0.5"),
  ONE(Deg2rad, "", "x * (pi / 180)"),
  ONE(Rad2deg, "", "x * (180 / pi)"),
  ONE(Sinc, "", "angle = where(eq(x, 0), 1, x) * pi; where(eq(x, 0), 1, sin(angle) / angle)"),
  ONE(I0, "",
      "size = abs(x); t = square(minimum(size, 3.75) / 3.75);"
      "near = (((((0.0045813 * t + 0.0360768) * t + 0.2659732) * t + 1.2067492) * t + 3.0899424) * t + 3.5156229) * t + 1;"
      "large = maximum(size, 3.75); u = 3.75 / large;"
      "far = (((((((0.00392377 * u + -0.01647633) * u + 0.02635537) * u + -0.02057706) * u + 0.00916281) * u + -0.00157565) * u"
      " + 0.00225319) * u + 0.01328592) * u + 0.39894228;"
      "where(lt(size, 3.75), near, far * exp(large) * rsqrt(large))"),
  ONE(Isinf, "", "eq(abs(x), inf)"),
  ONE(Isposinf, "", "eq(x, inf)"),
  ONE(Isneginf, "", "eq(x, -inf)"),
  ONE(Trunc, "", "sign(x) * floor(abs(x))"),
  TWO(Logaddexp, "larger = maximum(a, b); distance = where(eq(a, b), 0, abs(a - b)); larger + log1p(exp(-distance))"),
  TWO(Logaddexp2, "p = a * log(2); q = b * log(2); larger = maximum(p, q); distance = where(eq(p, q), 0, abs(p - q));"
                  "(larger + log1p(exp(-distance))) * (1 / log(2))"),
  TWO(Hypot, "p = abs(a); q = abs(b); larger = maximum(p, q); safe = where(eq(larger, 0), 1, larger);"
             "where(eq(larger, inf), larger, safe * sqrt(1 + square(minimum(p, q) / safe)) * as(gt(larger, 0), a))"),
  TWO(Arctan2, "both = eq(minimum(abs(a), abs(b)), inf); p = where(both, sign(a), a); q = where(both, sign(b), b);"
               "steep = gt(abs(p), abs(q)); below = where(steep, p, q);"
               "angle = arctan(where(steep, q, p) / where(eq(below, 0), 1, below)); half = where(signbit(p), -pi, pi);"
               "where(steep, half * 0.5 - angle, angle + where(signbit(q), half, 0))"),
  TWO(Fmod, "rest = mod(abs(x), abs(y)); where(lt(x, 0), -rest, rest)"),
  TWO(Fmax, "where(isnan(x), y, where(isnan(y), x, maximum(x, y)))"),
  TWO(Fmin, "where(isnan(x), y, where(isnan(y), x, minimum(x, y)))"),
  TWO(Heaviside, "where(eq(a, 0), b, where(isnan(a), a, as(gt(a, 0), a)))"),
  ACTIVATION(LogSigmoid, "log_sigmoid"),
  ACTIVATION(TanhShrink, "tanh_shrink"),
  ACTIVATION(HardTanh, "hard_tanh"),
  ACTIVATION(SparseSigmoid, "sparse_sigmoid"),
  ACTIVATION(SparsePlus, "sparse_plus"),
  ONE(Celu, "alpha", "maximum(x, 0) + expm1(minimum(x, 0) / alpha:1) * alpha:1"),
  ONE(HardShrink, "threshold", "where(gt(abs(x), threshold:0.5), x, 0)"),
  ONE(SoftShrink, "threshold",
      "where(gt(x, threshold:0.5), x - threshold:0.5,"
      "where(lt(x, -threshold:0.5), x + threshold:0.5, 0))"),
  ONE(Threshold, "threshold|default_value", "where(gt(x, threshold:0), x, default_value:0)"),
};

/* NULL: no formula has this class name. */
const flow_operation *flow_operation_find_formula(const char *class_name)
{
  for (size_t i = 0; i < sizeof records / sizeof *records; i++)
    if (strcmp(records[i].class_name, class_name) == 0) return &records[i];
  return NULL;
}
