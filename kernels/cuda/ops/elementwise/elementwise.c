/* elementwise.c: the elementwise ops, casts and chains: which kernel serves a call, and its arguments. */
#include "cuda/ops/elementwise/elementwise.h"

#include "cuda/runtime/device_table.h"
#include "cuda/runtime/launch.h"
#include "cuda/device/move.h"
#include "ops/op.h"
#include "tensor/tensor.h"

/* code: the formula's number in elementwise_ops.h; operands: how many it has; packed: its own kernel for packed float32, 0 where it has
 * none; gives_condition: the result is bool. */
typedef struct elementwise_record { int known, code, operands, packed, gives_condition; } elementwise_record;

/* An op whose formula is missing in elementwise_ops.h stops here: its CUDA_packed_NAME or FORMULA_OF_INTEGERS_NAME is not declared. */
static const elementwise_record records[FLOW_OP_COUNT] = {
#define FLOW_NUMBERS(name, inputs, ...)   [FLOW_OP_##name] = { 1, ELEMENTWISE_##name, inputs, CUDA_packed_##name, 0 },
#define FLOW_FLOATS(name, inputs, ...)    [FLOW_OP_##name] = { 1, ELEMENTWISE_##name, inputs, CUDA_packed_##name, 0 },
#define FLOW_CONDITION(name, inputs, ...) [FLOW_OP_##name] = { 1, ELEMENTWISE_##name, inputs, CUDA_packed_##name, 1 },
#define FLOW_LOGICAL(name, inputs, ...)   [FLOW_OP_##name] = { 1, ELEMENTWISE_##name, inputs, 0, 1 },
#define FLOW_OP(...)
#include "ops/ops.def"
#undef FLOW_OP
  [FLOW_OP_where] = { 1, ELEMENTWISE_where, 3, 0, 0 },
};

enum {
#define FORMULA(E, op, operands, expression) FORMULA_OF_INTEGERS_##op = 1,
  INTEGER_OPS(FORMULA, )
  CONDITION_OPS(FORMULA, )
#undef FORMULA
};

static const unsigned char takes_integers[ELEMENTWISE_COUNT] = {
#define FLOW_NUMBERS(name, ...)   [ELEMENTWISE_##name] = FORMULA_OF_INTEGERS_##name,
#define FLOW_FLOATS(...)
#define FLOW_CONDITION(name, ...) [ELEMENTWISE_##name] = FORMULA_OF_INTEGERS_##name,
#define FLOW_LOGICAL(...)
#define FLOW_OP(...)
#include "ops/ops.def"
#undef FLOW_OP
};

/* Input i in the shape of the output: axes that it is repeated along have stride 0. */
static view input_view(const flow_call *call, int i)
{
  return flow_cuda_view(&call->inputs[i], call->outputs[0].rank, call->outputs[0].shape);
}

static view output_view(const flow_call *call) { return flow_cuda_view(&call->outputs[0], call->outputs[0].rank, call->outputs[0].shape); }

static number_kind kind_of(int dtype)
{
  return dtype == FLOW_FLOAT64 ? KIND_DOUBLE : flow_dtype_is_float(dtype) ? KIND_FLOAT : KIND_INTEGER;
}

/* ---- packed --------------------------------------------------------------------------------------------------------------- */

/* float32 in and out, each operand either contiguous or one element that is repeated: the common case, with a kernel for each op that
 * moves 16 bytes at a time. */
static int supports_packed(const flow_call *call)
{
  const elementwise_record *record = &records[call->op];
  view y = output_view(call);
  int fits = y.dtype == (record->gives_condition ? FLOW_BOOL : FLOW_FLOAT32) && flow_cuda_view_is(&y, 1);
  for (int i = 0; i < record->operands; i++) {
    view x = input_view(call, i);
    fits &= x.dtype == FLOW_FLOAT32 && (flow_cuda_view_is(&x, 1) || flow_cuda_view_is(&x, 0));
  }
  return fits;
}

static int aligned(const void *data, uintptr_t bytes) { return (uintptr_t)data % bytes == 0; }

/* Four elements for each thread, read at once where all addresses allow it (vectors). */
static flow_status run_packed(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  const elementwise_record *record = &records[call->op];
  const flow_operand *y = &call->outputs[0];
  if (!y->data) return FLOW_OK;
  packed_arguments a = { .y = y->data, .count = flow_cuda_size(y) };
  a.vectors = aligned(y->data, record->gives_condition ? 4 : 16);
  for (int i = 0; i < record->operands; i++) {
    view x = input_view(call, i);
    a.x[i] = x.data;
    a.repeat[i] = flow_cuda_view_is(&x, 0);
    a.vectors &= a.repeat[i] || aligned(x.data, 16);
  }
  return flow_cuda_launch(call, (flow_cuda_kernel)record->packed, (a.count + 3) / 4, &a, sizeof a);
}

static int is_small_float(int dtype) { return dtype == FLOW_FLOAT32 || dtype == FLOW_FLOAT16 || dtype == FLOW_BFLOAT16; }

/* Ops so cheap that one kernel for all of them, which looks the op up for each thread, costs no more than memory does. Casts count as
 * one. */
static int is_light(int code)
{
  static const unsigned char light[ELEMENTWISE_COUNT + 1] = {
#define LIGHT(op, expression) [ELEMENTWISE_##op] = 1,
    LIGHT_OPS(LIGHT)
#undef LIGHT
    [ELEMENTWISE_COUNT] = 1,
  };
  return light[code];
}

/* Of casts, too: ELEMENTWISE_COUNT in their place, with one operand. */
static elementwise_record record_of(int op)
{
  return op == FLOW_OP_cast ? (elementwise_record){ 1, ELEMENTWISE_COUNT, 1, 0, 0 } : records[op];
}

/* Float32 among them, too. A cast between equal dtypes is a copy (run_cast). */
static int supports_packed_floats(const flow_call *call)
{
  elementwise_record record = record_of(call->op);
  view y = output_view(call);
  int fits = is_light(record.code) && is_small_float(y.dtype) && flow_cuda_view_is(&y, 1);
  for (int i = 0; i < record.operands; i++) {
    view x = input_view(call, i);
    fits &= is_small_float(x.dtype) && (flow_cuda_view_is(&x, 1) || flow_cuda_view_is(&x, 0));
  }
  return fits && (call->op != FLOW_OP_cast || call->inputs[0].dtype != y.dtype);
}

/* The same for 16-bit and mixed floats, eight elements for each thread. */
static flow_status run_packed_floats(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  elementwise_record record = record_of(call->op);
  const flow_operand *y = &call->outputs[0];
  if (!y->data) return FLOW_OK;
  packed_floats_arguments a = { .y = y->data, .count = flow_cuda_size(y), .y_dtype = y->dtype, .op = record.code,
                                .operands = record.operands, .vectors = aligned(y->data, 16) };
  for (int i = 0; i < record.operands; i++) {
    view x = input_view(call, i);
    a.x[i] = x.data;
    a.x_dtype[i] = x.dtype;
    a.repeat[i] = flow_cuda_view_is(&x, 0);
    a.vectors &= a.repeat[i] || aligned(x.data, 16);
  }
  return flow_cuda_launch(call, CUDA_packed_floats, (a.count + 7) / 8, &a, sizeof a);
}

#define PACKED_FLOATS { .variant = "floats", .supports = supports_packed_floats, .run = run_packed_floats }

/* ---- any dtypes and strides ------------------------------------------------------------------------------------------------ */

/* The type to compute in: promotion has made the dtypes equal; where it has not, floats win over integers and double over float. */
static number_kind computing_kind(const flow_call *call, int operands)
{
  number_kind kind = KIND_INTEGER;
  for (int i = 0; i < operands; i++) {
    number_kind own = kind_of(call->inputs[i].dtype);
    if (own == KIND_DOUBLE || kind == KIND_DOUBLE) kind = KIND_DOUBLE;
    else if (own == KIND_FLOAT) kind = KIND_FLOAT;
  }
  return kind;
}

static strided_arguments strided_of(const flow_call *call, int op, int operands)
{
  strided_arguments a = { .y = output_view(call), .op = op, .operands = operands, .size = flow_dtype_size(call->outputs[0].dtype) };
  for (int i = 0; i < operands; i++) a.x[i] = input_view(call, i);
  return a;
}

/* Every shape, stride and dtype: an element per thread, whose place in each operand is computed from its number. */
static flow_status run_strided(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  static const flow_cuda_kernel numbers[] = { CUDA_numbers_float, CUDA_numbers_double, CUDA_numbers_integer };
  static const flow_cuda_kernel conditions[] = { CUDA_conditions_float, CUDA_conditions_double, CUDA_conditions_integer };
  const elementwise_record *record = &records[call->op];
  if (!call->outputs[0].data) return FLOW_OK;
  number_kind kind = computing_kind(call, record->operands);
  flow_cuda_kernel kernel = record->gives_condition ? conditions[kind] : numbers[kind];
  if (call->op == FLOW_OP_where) kernel = CUDA_where_strided;
  else if (record->code >= ELEMENTWISE_logical_not) kernel = CUDA_logical_strided;
  else if (kind == KIND_INTEGER && !takes_integers[record->code])
    return flow_fail(FLOW_INTERNAL, "%s: there is no kernel for %s; cast the input first", flow_cuda_op_name(call->op),
                     flow_dtype_name(call->inputs[0].dtype));
  strided_arguments a = strided_of(call, record->code, record->operands);
  return flow_cuda_launch(call, kernel, flow_cuda_size(&call->outputs[0]), &a, sizeof a);
}

#define PACKED(name, ...)                                                                   \
  const flow_kernel flow_cuda_##name##_kernels[] = {                                        \
    { .variant = "packed", .supports = supports_packed, .run = run_packed }, PACKED_FLOATS, \
    { .variant = "strided", .run = run_strided }, { 0 } };
#define STRIDED_ONLY(name, ...) const flow_kernel flow_cuda_##name##_kernels[] = { { .variant = "strided", .run = run_strided }, { 0 } };
#define FLOW_NUMBERS   PACKED
#define FLOW_FLOATS    PACKED
#define FLOW_CONDITION PACKED
#define FLOW_LOGICAL   STRIDED_ONLY
#define FLOW_OP(...)
#include "ops/ops.def"
#undef FLOW_OP
STRIDED_ONLY(where)
#undef PACKED
#undef STRIDED_ONLY

/* ---- casts ------------------------------------------------------------------------------------------------------------------ */

/* A cast passes through the kind of its input; equal dtypes are copied bit by bit: NaNs keep their payload. */
static flow_status run_cast(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  const flow_operand *x = &call->inputs[0], *y = &call->outputs[0];
  if (!y->data) return FLOW_OK;
  if (x->dtype == y->dtype) return flow_cuda_move(call, input_view(call, 0), output_view(call), flow_cuda_size(y));
  strided_arguments a = strided_of(call, 0, 1);
  a.kind = (int32_t)(y->dtype == FLOW_BOOL ? KIND_CONDITION : kind_of(x->dtype));
  return flow_cuda_launch(call, CUDA_convert_strided, flow_cuda_size(y), &a, sizeof a);
}
const flow_kernel flow_cuda_cast_kernels[] = { PACKED_FLOATS, { .variant = "convert", .run = run_cast }, { 0 } };

/* ---- chains ------------------------------------------------------------------------------------------------------------------- */

/* For each step the last step that reads its result: `count` for the last step, which is the output, -1 for a step that nothing needs,
 * which is then left out. From the end backwards, so that what is needed by a step that is not needed is not needed either. */
static void find_readers(const flow_call *call, int *last_reader)
{
  int steps = call->attributes->fused.count, inputs = call->input_count;
  for (int s = 0; s < steps; s++) last_reader[s] = -1;
  last_reader[steps - 1] = steps;
  for (int s = steps - 1; s >= 0; s--) {
    if (last_reader[s] < 0) continue;
    for (int k = 0; k < record_of(call->attributes->fused.steps[s].op).operands; k++) {
      int made = call->attributes->fused.steps[s].inputs[k] - inputs;
      if (made >= 0 && last_reader[made] < 0) last_reader[made] = s;
    }
  }
}

/* Writes the steps with registers chosen; 0 if they do not fit into FUSED_REGISTERS. Steps of two operands always do: m results that wait
 * for a reader are made by m steps, and m - 1 more bring them together, so that 12 steps have at most 6 of them. */
static int choose_registers(const flow_call *call, fused_step *out, int32_t *count)
{
  int last_reader[FUSED_STEPS], place[FUSED_STEPS], owner[FUSED_REGISTERS], previous = -1, inputs = call->input_count;
  find_readers(call, last_reader);
  for (int r = 0; r < FUSED_REGISTERS; r++) owner[r] = -1;
  for (int s = 0; s < call->attributes->fused.count; s++) {
    if (last_reader[s] < 0) continue;
    elementwise_record record = record_of(call->attributes->fused.steps[s].op);
    uint8_t from[2] = { FUSED_NOWHERE, FUSED_NOWHERE };
    for (int k = 0; k < record.operands; k++) {
      int at = call->attributes->fused.steps[s].inputs[k];
      from[k] = (uint8_t)(at < inputs ? at : at - inputs == previous ? FUSED_LAST : place[at - inputs]);
    }
    int next = s + 1, to = FUSED_NOWHERE;
    while (next < call->attributes->fused.count && last_reader[next] < 0) next++;
    for (int r = 0; r < FUSED_REGISTERS; r++)
      if (owner[r] >= 0 && last_reader[owner[r]] <= s) owner[r] = -1;
    if (last_reader[s] > next) {
      int r = 0;
      while (r < FUSED_REGISTERS && owner[r] >= 0) r++;
      if (r == FUSED_REGISTERS) return 0;
      owner[r] = s;
      to = FUSED_REGISTER + r;
    }
    place[s] = to;
    previous = s;
    out[(*count)++] = (fused_step){ (uint8_t)record.code, from[0], from[1], (uint8_t)to, call->attributes->fused.steps[s].dtype };
  }
  return 1;
}

static int supports_fused(const flow_call *call)
{
  fused_step steps[FUSED_STEPS];
  int32_t count = 0;
  for (int s = 0; s < call->attributes->fused.count; s++) {
    elementwise_record record = record_of(call->attributes->fused.steps[s].op);
    if (!record.known || record.gives_condition || record.operands > 2) return 0;
  }
  return call->input_count <= FUSED_INPUTS && call->attributes->fused.count <= FUSED_STEPS &&
         choose_registers(call, steps, &count);
}

static flow_status run_fused(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  if (!call->outputs[0].data) return FLOW_OK;
  fused_chain_arguments a = { .y = output_view(call), .count = flow_cuda_size(&call->outputs[0]) };
  for (int i = 0; i < call->input_count; i++) a.x[i] = input_view(call, i);
  choose_registers(call, a.step, &a.steps);
  return flow_cuda_launch(call, CUDA_fused_chain, (a.count + FUSED_ELEMENTS - 1) / FUSED_ELEMENTS, &a, sizeof a);
}

/* What fits, with its results in FLAT_REGISTERS, and operands laid out like the output or one element each. */
static int supports_fused_flat(const flow_call *call)
{
  view y = output_view(call);
  fused_step steps[FUSED_STEPS];
  int32_t count = 0;
  int fits = supports_fused(call) && is_small_float(y.dtype) && flow_cuda_view_is(&y, 1) && choose_registers(call, steps, &count);
  for (int s = 0; s < count; s++) fits &= steps[s].to == FUSED_NOWHERE || steps[s].to < FUSED_REGISTER + FLAT_REGISTERS;
  for (int i = 0; fits && i < call->input_count; i++) {
    view x = input_view(call, i);
    fits = is_small_float(x.dtype) && (flow_cuda_view_is(&x, 1) || flow_cuda_view_is(&x, 0));
  }
  return fits;
}

static flow_status run_fused_flat(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  const flow_operand *y = &call->outputs[0];
  if (!y->data) return FLOW_OK;
  fused_flat_arguments a = { .y = y->data, .count = flow_cuda_size(y), .y_dtype = y->dtype, .vectors = aligned(y->data, 16) };
  for (int i = 0; i < call->input_count; i++) {
    view x = input_view(call, i);
    a.x[i] = x.data;
    a.x_dtype[i] = (uint8_t)x.dtype;
    a.repeat[i] = (uint8_t)flow_cuda_view_is(&x, 0);
    a.vectors &= a.repeat[i] || aligned(x.data, 16);
  }
  choose_registers(call, a.step, &a.steps);
  return flow_cuda_launch(call, CUDA_fused_flat, (a.count + 7) / 8, &a, sizeof a);
}
const flow_kernel flow_cuda_fused_kernels[] = {
  { .variant = "flat", .supports = supports_fused_flat, .run = run_fused_flat },
  { .variant = "interpreter", .supports = supports_fused, .run = run_fused }, { 0 }
};
