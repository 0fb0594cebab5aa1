/* launch.c: which variant of an op runs a call, and how the call is cut for the threads of a team.
 *
 * flow_select_kernel asks each variant of the device whether it supports the call and what it would cost, and takes the cheapest.
 * flow_cut_call then says how many parts the call has. The caller hands the parts to the members of its team, each of which does them by
 * flow_do_part on its own copy of the call. Nothing here has state: all functions may be called by several threads at once. */
#include "ops/launch.h"

#include <math.h>
#include <string.h>
#include "ops/wide_sum.h"

int64_t flow_nominal_rows(int64_t rows, int exact)
{
  int64_t nominal = 1;
  if (exact) return FLOW_EXACT_ROWS;
  while (nominal < rows && nominal < FLOW_MOST_NOMINAL_ROWS) nominal *= 2;
  return nominal;
}

enum { MOST_COMPARED = 8 };     /* operands of an op whose variants differ in what they cost for few rows */

/* The call as costs are to see it: with the nominal rows of its batch. `nominal` and `operands`, 2 * MOST_COMPARED of them, are room for
 * it. The call itself where the op's record does not say which operands have rows, or where there are more operands than room. Data stay
 * those of the call: cost() sees shapes only. */
static const flow_call *at_nominal_rows(const flow_call *call, flow_call *nominal, flow_operand *operands)
{
  const flow_op_record *record = flow_op(call->op);
  if (record->kind == FLOW_WHOLE || record->row_inputs == FLOW_ROWS_BY_SHAPE || call->input_count > MOST_COMPARED ||
      call->output_count > MOST_COMPARED) return call;
  *nominal = *call;
  nominal->inputs = operands;
  nominal->outputs = operands + MOST_COMPARED;
  memcpy(nominal->inputs, call->inputs, sizeof(flow_operand) * (size_t)call->input_count);
  memcpy(nominal->outputs, call->outputs, sizeof(flow_operand) * (size_t)call->output_count);
  for (int i = 0; i < call->input_count; i++)
    if (record->row_inputs >> i & 1) nominal->inputs[i].shape[0] = flow_nominal_rows(call->inputs[i].shape[0], call->exact);
  for (int i = 0; i < call->output_count; i++)
    if (record->kind == FLOW_MAP || (record->row_outputs >> i & 1))
      nominal->outputs[i].shape[0] = flow_nominal_rows(call->outputs[i].shape[0], call->exact);
  return nominal;
}

/* supports() sees the call as it is, cost() with nominal rows: a variant must be able to run what it is chosen for, but the choice, and
 * with it the bits of a row, should change with the rows as seldom as possible. The first of equally good ones wins. */
const flow_kernel *flow_select_kernel(const flow_device *device, const flow_call *call)
{
  const flow_kernel *first = device->kernels[call->op], *best = NULL;
  flow_operand operands[2 * MOST_COMPARED];
  flow_call nominal;
  const flow_call *compared = first && first->cost ? at_nominal_rows(call, &nominal, operands) : call;
  double least = 0;
  for (const flow_kernel *kernel = first; kernel && kernel->run; kernel++) {
    if (kernel->supports && !kernel->supports(call)) continue;
    double cost = kernel->cost ? kernel->cost(compared) : INFINITY;
    if (best && !(cost < least)) continue;
    best = kernel;
    least = cost;
  }
  return best;
}

static int64_t operand_bytes(const flow_operand *operand)
{
  int64_t size = flow_shape_size(operand->rank, operand->shape);
  return size < 0 ? 0 : size * flow_dtype_size(operand->dtype);
}

/* Which inputs of a concrete MAP call carry its rows, as a mask: input i is bit i. There are FLOW_MAX_OPERANDS inputs at most. */
static int resolve_rows(const flow_op_record *record, const flow_call *call)
{
  const flow_operand *out = &call->outputs[0];
  int mask = 0;
  if (record->row_inputs != FLOW_ROWS_BY_SHAPE) return record->row_inputs;
  for (int i = 0; i < call->input_count; i++)
    if (call->inputs[i].rank == out->rank && call->inputs[i].shape[0] == out->shape[0]) mask |= 1 << i;
  return mask;
}

/* ---- sums over rows ------------------------------------------------------------------------------------------------------------ */

/* Of a call that no plan cuts. */
static const size_t usual_partial_bytes = (size_t)16 << 20, most_partial_bytes = (size_t)64 << 20;
enum { LINE = 64, SUM_PART = 16384 }; /* elements that one part adds up */

enum { FEW_SLOTS = 4 };

int flow_slots_for_sums(size_t bytes, size_t usual, size_t most)
{
  int slots = FLOW_SUM_SLOTS;
  while (slots > 1 && bytes > (slots > FEW_SLOTS ? usual : most) / (size_t)slots) slots /= 2;
  return slots;
}

/* Whether output i is a sum over the rows, which somebody reads. */
static int is_sum(const flow_op_record *record, const flow_call *call, int i)
{
  return !(record->row_outputs >> i & 1) && !call->outputs[i].unused;
}

static size_t padded(size_t bytes)
{
  return (bytes + LINE - 1) / LINE * LINE;
}

/* Bytes of one slot's partial sums. */
static size_t slot_bytes_of(const flow_op_record *record, const flow_call *call)
{
  size_t bytes = 0;
  for (int i = 0; i < call->output_count; i++)
    if (is_sum(record, call, i)) bytes += padded((size_t)operand_bytes(&call->outputs[i]));
  return bytes;
}

/* Whether the call's slots can be done apart: its sums are floats, and its rows are those of the operands that the record names. */
static int can_be_slots(const flow_op_record *record, const flow_kernel *kernel, const flow_call *call)
{
  if (record->kind != FLOW_REDUCE || record->row_inputs == FLOW_ROWS_BY_SHAPE || record->flags & FLOW_OP_WIDE || kernel->parts) return 0;
  if (call->input_count > FLOW_MAX_OPERANDS) return 0;
  for (int i = 0; i < call->output_count; i++)
    if (is_sum(record, call, i) && call->outputs[i].dtype != FLOW_FLOAT32 && call->outputs[i].dtype != FLOW_FLOAT64) return 0;
  return 1;
}

size_t flow_shared_bytes(const flow_op_record *record, const flow_kernel *kernel, const flow_call *call)
{
  size_t own = kernel->shared_bytes ? kernel->shared_bytes(call) : 0, slot;
  if (!can_be_slots(record, kernel, call)) return own;
  slot = slot_bytes_of(record, call);
  return padded(own) + slot * (size_t)flow_slots_for_sums(slot, usual_partial_bytes, most_partial_bytes);
}

/* A slot's sums are written, read again and added: more than FEW_SLOTS where its rows have several times their bytes. */
static int slots_of(const flow_call *call, size_t slot_bytes, const flow_cut *cut)
{
  enum { TIMES = 4 };
  int slots = flow_slots_for_sums(slot_bytes, usual_partial_bytes, most_partial_bytes);
  int64_t bytes = 0;
  for (int i = 0; i < call->input_count; i++)
    if (cut->row_inputs >> i & 1) bytes += operand_bytes(&call->inputs[i]);
  while (slots > FEW_SLOTS && (size_t)bytes / (size_t)slots < TIMES * slot_bytes) slots /= 2;
  return slots;
}

/* The first phase's parts are the slots, the second's ranges of each sum. */
static void cut_into_slots(const flow_op_record *record, const flow_kernel *kernel, const flow_call *call, flow_cut *cut)
{
  int64_t rows = -1;
  for (int i = 0; i < call->input_count; i++) {
    const flow_operand *x = &call->inputs[i];
    if (!(record->row_inputs >> i & 1) || x->rank == 0 || x->shape[0] == 0) continue; /* one that the call does not have */
    if (rows >= 0 && x->shape[0] != rows) return;
    rows = x->shape[0];
    cut->row_inputs |= 1 << i;
  }
  if (rows < 2) return;
  cut->slot_bytes = slot_bytes_of(record, call);
  cut->partials = padded(kernel->shared_bytes ? kernel->shared_bytes(call) : 0);
  cut->by_rows = cut->sums = 1;
  cut->rows = rows;
  const int slots = slots_of(call, cut->slot_bytes, cut);
  cut->chunk = (rows + slots - 1) / slots;
  cut->parts[0] = (rows + cut->chunk - 1) / cut->chunk;
  cut->phases = 2;
  for (int i = 0; i < call->output_count; i++)
    if (is_sum(record, call, i))
      cut->parts[1] += (flow_shape_size(call->outputs[i].rank, call->outputs[i].shape) + SUM_PART - 1) / SUM_PART;
}

/* sum[i] = that of the slots' partial sums, `stride` bytes apart, in their order, for i in [begin, end). */
#define ADD_SLOTS(type)                                                                                                     \
  static void add_##type##_slots(type *sum, const char *partials, size_t stride, int64_t slots, int64_t begin, int64_t end) \
  {                                                                                                                         \
    memcpy(sum + begin, partials + (size_t)begin * sizeof(type), (size_t)(end - begin) * sizeof(type));                     \
    for (int64_t slot = 1; slot < slots; slot++) {                                                                          \
      const type *one = (const type *)(const void *)(partials + (size_t)slot * stride);                                     \
      for (int64_t i = begin; i < end; i++) sum[i] += one[i];                                                               \
    }                                                                                                                       \
  }
ADD_SLOTS(float)
ADD_SLOTS(double)

/* Part `part` of the second phase: output after output. */
static void add_slots(const flow_call *call, const flow_cut *cut, int64_t part)
{
  const flow_op_record *record = flow_op(call->op);
  const char *partials = (const char *)call->shared + cut->partials;
  for (int i = 0; i < call->output_count; i++) {
    const flow_operand *sum = &call->outputs[i];
    if (!is_sum(record, call, i)) continue;
    const int64_t size = flow_shape_size(sum->rank, sum->shape), parts = (size + SUM_PART - 1) / SUM_PART;
    if (part >= parts) {
      part -= parts;
      partials += padded((size_t)operand_bytes(sum));
      continue;
    }
    const int64_t begin = part * SUM_PART, end = size - begin < SUM_PART ? size : begin + SUM_PART;
    if (sum->dtype == FLOW_FLOAT64) add_double_slots(sum->data, partials, cut->slot_bytes, cut->parts[0], begin, end);
    else add_float_slots(sum->data, partials, cut->slot_bytes, cut->parts[0], begin, end);
    return;
  }
}

/* A slot's sums go to its partial ones. */
static void move_to_slot(const flow_call *call, const flow_cut *cut, int64_t slot, flow_operand *outputs)
{
  const flow_op_record *record = flow_op(call->op);
  char *partials = (char *)call->shared + cut->partials + (size_t)slot * cut->slot_bytes;
  for (int i = 0; i < call->output_count; i++) {
    if (!is_sum(record, call, i)) continue;
    outputs[i].data = partials;
    partials += padded((size_t)operand_bytes(&call->outputs[i]));
  }
}

/* ---- cuts ---------------------------------------------------------------------------------------------------------------------- */

/* A kernel with parts() cuts itself. Otherwise calls are cut along axis 0, and only where the work is worth it. The cut of a MAP call
 * depends on the number of threads, which its kernel's rows must not notice (kernels.h). A kind rule gets the first input alone, with
 * its concrete shape: one that needs two (matmul's) answers WHOLE. */
void flow_cut_call(const flow_op_record *record, const flow_kernel *kernel, const flow_call *call, flow_cut *cut)
{
  memset(cut, 0, sizeof *cut);
  cut->phases = 1;
  cut->parts[0] = 1;
  if (kernel->parts) {
    cut->phases = kernel->phases ? kernel->phases : 1;
    for (int p = 0; p < cut->phases; p++) cut->parts[p] = kernel->parts(call, p);
    return;
  }
  enum { SMALL = 64 << 10,     /* bytes: below, waking a thread costs more than it brings */
         PARTS = 8 };          /* for each thread: enough that nobody waits long for the last one */
  flow_signature in = { 0 };
  if (call->input_count) {
    in = (flow_signature){ .dtype = call->inputs[0].dtype, .rank = call->inputs[0].rank };
    memcpy(in.dims, call->inputs[0].shape, sizeof in.dims);
  }
  flow_batch_kind kind = flow_op_batch_kind(call->op, call->attributes, &in, call->input_count > 0);
  if (can_be_slots(record, kernel, call)) {
    int64_t all = 0;
    for (int i = 0; i < call->input_count; i++) all += operand_bytes(&call->inputs[i]);
    if (all >= 2 * SMALL) cut_into_slots(record, kernel, call, cut);
    return;
  }
  if (kind != FLOW_MAP || !call->output_count || call->outputs[0].rank == 0 || call->input_count > FLOW_MAX_OPERANDS) return;
  int64_t rows = call->outputs[0].shape[0], bytes = operand_bytes(&call->outputs[0]);
  for (int i = 0; i < call->input_count; i++) bytes += operand_bytes(&call->inputs[i]);
  if (rows == 1 && kernel->pieces) {
    cut->by_pieces = 1;
    cut->parts[0] = kernel->pieces(call);
  }
  if (rows < 2 || bytes < 2 * SMALL) return;
  cut->row_inputs = resolve_rows(record, call);
  for (int i = 0; i < call->input_count; i++)
    if ((cut->row_inputs >> i & 1) && (call->inputs[i].rank == 0 || call->inputs[i].shape[0] != rows)) return;   /* an axis moved: whole */
  cut->by_rows = 1;
  cut->rows = rows;
  int64_t part = bytes / (PARTS * flow_team_size());
  cut->chunk = 1 + (part > SMALL ? part : SMALL) / (bytes / rows + 1); /* rows, at least 1 */
  cut->parts[0] = (rows + cut->chunk - 1) / cut->chunk;
}

/* Moves an operand to `count` rows from row `first` on. An operand without data (nothing reads it) is only shortened. */
static void move_rows(flow_operand *operand, int64_t first, int64_t count)
{
  if (operand->data) operand->data = (char *)operand->data + first * operand->strides[0] * flow_dtype_size(operand->dtype);
  operand->shape[0] = count;
}

/* Outputs of a MAP op all have the rows; the check leaves those alone that this call does not make, as an index of shape {0}. */
static int has_rows(const flow_call *call, const flow_cut *cut, int i)
{
  if (cut->sums) return flow_op(call->op)->row_outputs >> i & 1;
  return call->outputs[i].rank && call->outputs[i].shape[0] == cut->rows;
}

/* Runs one chunk of rows of a call on shortened copies of the operands. */
static flow_status run_rows(const flow_kernel *kernel, const flow_call *call, const flow_cut *cut, int64_t part)
{
  flow_operand inputs[FLOW_MAX_OPERANDS], outputs[FLOW_MAX_OPERANDS];
  flow_call chunk = *call;
  int64_t first = part * cut->chunk, count = cut->rows - first < cut->chunk ? cut->rows - first : cut->chunk;
  memcpy(inputs, call->inputs, sizeof(flow_operand) * (size_t)call->input_count);
  memcpy(outputs, call->outputs, sizeof(flow_operand) * (size_t)call->output_count);
  for (int i = 0; i < call->input_count; i++)
    if (cut->row_inputs >> i & 1) move_rows(&inputs[i], first, count);
  if (cut->sums) move_to_slot(call, cut, part, outputs);
  for (int i = 0; i < call->output_count; i++)
    if (has_rows(call, cut, i)) move_rows(&outputs[i], first, count);
  chunk.inputs = inputs;
  chunk.outputs = outputs;
  chunk.first_row = call->first_row + first;
  return kernel->run(&chunk, 0, 0, 1);
}

flow_status flow_do_part(const flow_kernel *kernel, const flow_call *call, const flow_cut *cut, int phase, int64_t part)
{
  if (cut->sums && phase == 1) return add_slots(call, cut, part), FLOW_OK;
  if (cut->by_rows) return run_rows(kernel, call, cut, part);
  return cut->by_pieces ? flow_run_piece(kernel, call, part) : kernel->run(call, phase, part, part + 1);
}
