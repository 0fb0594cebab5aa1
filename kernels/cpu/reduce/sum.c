/* sum.c: the op sum where it reduces the first axis, whose rows the engine cuts into slots and chunks.
 *
 * A slot's rows are added to a wide partial sum (core/ops/wide_sum.h), floats in double, in an order that does not depend on
 * chunks. Small rows whose reduced axes come before the kept ones ({n}, {n, c}, {n, h, w, c} to {c}) are one long list of
 * positions of `outputs` elements each, of which position p goes to lane p modulo the lanes; for the next chunk the partial sum
 * holds how many there were. Other rows are added up one by one, as where the first axis is kept, each to lane 0.
 *
 * Without a plan the same slots are made here, so that the result has the same bits. */
#include "cpu/reduce/reduce.h"

#include "cpu/elementwise/elementwise.h"
#include "cpu/movement/movement.h"
#include "ops/rules.h"
#include "ops/wide_sum.h"

enum { MOST_SMALL = FLOW_BLOCK_LENGTH };      /* elements of a small row */

/* What the shape and the axes of a call say. A row's reduced elements are elements / outputs positions of `outputs` elements each. */
typedef struct sum {
  const flow_operand *in;
  flow_kind kind;                             /* of x; partial sums are doubles, or int64_t of integers */
  int64_t outputs, lanes;                     /* elements of the result; copies of it in a partial sum (wide_sum.h) */
  int64_t             elements;               /* of a row */
  int                 listed, packed;         /* small rows, as above; rows are packed in memory in their kind's dtype */
} sum;

/* What the shape and the axes say about a sum. `listed` needs small rows whose reduced axes all come before the kept ones. */
static sum sum_of(const flow_call *call)
{
  const flow_operand *in = &call->inputs[0];
  sum s = { .in = in, .kind = flow_kind_of(in->dtype), .outputs = 1, .elements = 1 };
  unsigned reduced = flow_reduced_axes(call->attributes, in->rank);
  int kept = 0;
  s.listed = 1;
  s.packed = in->dtype == flow_kind_dtype(s.kind);
  for (int i = 1; i < in->rank; i++) {
    s.elements *= in->shape[i];
    if (!(reduced >> i & 1)) s.outputs *= in->shape[i];
    if (in->shape[i] == 1) continue;
    if (!(reduced >> i & 1)) kept = 1;
    else if (kept) s.listed = 0;
  }
  s.lanes = flow_wide_lanes(s.outputs);
  if (s.elements > MOST_SMALL) s.listed = 0;
  for (int64_t i = in->rank - 1, stride = 1; i > 0; stride *= in->shape[i--])
    if (in->shape[i] != 1 && in->strides[i] != stride) s.packed = 0;
  return s;
}

/* ---- columns: accumulators[j] += x[0][j] + x[1][j] + ..., one row after the other ------------------------------------------- */

enum { HALF = VL / 2, MOST_STRIP = REGISTERS / 4 };      /* vectors of a strip that has two accumulators for each */

/* count x HALF columns, whose accumulators stay in registers. */
ALWAYS_INLINE void add_strip(const int count, const float *x, int64_t rows, int64_t row_stride, double *to)
{
  vd a[8];
  FLOW_UNROLL(8)
  for (int v = 0; v < count; v++) a[v] = vd_load(to + v * HALF);
  for (int64_t r = 0; r < rows; r++) {
    FLOW_UNROLL(8)
    for (int v = 0; v < count; v++) a[v] += vd_widen(x + r * row_stride + v * HALF);
  }
  FLOW_UNROLL(8)
  for (int v = 0; v < count; v++) vd_store(to + v * HALF, a[v]);
}

/* Columns in strips of at most 8 half vectors, whose accumulators stay in registers. Rows are taken `together` at a time, so that each
 * strip finds the lines that the strip before it has brought into the cache. A column's terms are added in the order of rows in any strip,
 * so that its bits do not depend on how many columns there are. */
static void add_floats(const void *x_, int64_t rows, int64_t row_stride, int64_t columns, void *accumulators)
{
  enum { IN_CACHE = 4096, FEWEST_ROWS = 16 };      /* floats that all strips are read from in turn; rows that a strip's start pays for */
  int64_t together = IN_CACHE / columns > FEWEST_ROWS ? IN_CACHE / columns : FEWEST_ROWS;
  const float *x = x_;
  double *to = accumulators;
  for (; rows > 0; rows -= together, x += together * row_stride) {
    int64_t n = rows < together ? rows : together, j = 0;
    for (; j + 8 * HALF <= columns; j += 8 * HALF) add_strip(8, x + j, n, row_stride, to + j);
    if (j + 4 * HALF <= columns) add_strip(4, x + j, n, row_stride, to + j), j += 4 * HALF;
    if (j + 2 * HALF <= columns) add_strip(2, x + j, n, row_stride, to + j), j += 2 * HALF;
    if (j + HALF <= columns) add_strip(1, x + j, n, row_stride, to + j), j += HALF;
    for (; j < columns; j++)
      for (int64_t r = 0; r < n; r++) to[j] += (double)x[r * row_stride + j];
  }
}

/* count x HALF columns of one slot, which begins with its first row instead of zeros: slots are short where rows are few. */
ALWAYS_INLINE void add_slot(const int count, const float *x, int64_t rows, int64_t row_stride, vd *total)
{
  vd a[MOST_STRIP];
  FLOW_UNROLL(8)
  for (int v = 0; v < count; v++) a[v] = vd_widen(x + v * HALF);
  FLOW_UNROLL(4)
  for (int64_t r = 1; r < rows; r++) {
    x += row_stride;
    FLOW_UNROLL(8)
    for (int v = 0; v < count; v++) a[v] += vd_widen(x + v * HALF);
  }
  FLOW_UNROLL(8)
  for (int v = 0; v < count; v++) total[v] += a[v];
}

/* count x HALF columns of slots of `in_slot` rows: each slot on its own, and to[j] the sum of those. */
ALWAYS_INLINE void sum_strip_of_slots(const int count, const float *x, int64_t rows, const int64_t in_slot, int64_t row_stride, double *to)
{
  vd total[MOST_STRIP] = { { 0 } };
  for (; rows >= in_slot; rows -= in_slot, x += in_slot * row_stride) add_slot(count, x, in_slot, row_stride, total);
  if (rows > 0) add_slot(count, x, rows, row_stride, total);
  FLOW_UNROLL(8)
  for (int v = 0; v < count; v++) vd_store(to + v * HALF, total[v]);
}

/* Strips of that many vectors while they fit: code without inner loops for slots of a few rows. */
#define STRIPS(count)                                                                                                  \
  for (; j + (count) * HALF <= columns; j += (count) * HALF) {                                                         \
    switch (in_slot) {                                                                                                 \
      case 1: sum_strip_of_slots(count, x + j, rows, 1, row_stride, to + j); break;                                    \
      case 2: sum_strip_of_slots(count, x + j, rows, 2, row_stride, to + j); break;                                    \
      case 3: sum_strip_of_slots(count, x + j, rows, 3, row_stride, to + j); break;                                    \
      case 4: sum_strip_of_slots(count, x + j, rows, 4, row_stride, to + j); break;                                    \
      default: sum_strip_of_slots(count, x + j, rows, in_slot, row_stride, to + j);                                    \
    }                                                                                                                  \
  }

/* Strips of the widest first. sums: those of all slots, each of which was added up on its own, in their order. */
static void sum_slots_of_floats(const void *x_, int64_t rows, int64_t in_slot, int64_t row_stride, int64_t columns, void *sums)
{
  const float *x = x_;
  double *to = sums;
  int64_t j = 0;
  STRIPS(MOST_STRIP)
  STRIPS(2)
  STRIPS(1)
  for (; j < columns; j++) {
    double total = 0;
    for (int64_t first = 0; first < rows; first += in_slot) {
      double a = 0;
      for (int64_t r = first; r < rows && r < first + in_slot; r++) a += (double)x[r * row_stride + j];
      total += a;
    }
    to[j] = total;
  }
}

/* Integers as a vector; they wrap. */
typedef uint64_t vu64 __attribute__((vector_size(sizeof(vd))));
typedef uint64_t vu64_unaligned __attribute__((vector_size(sizeof(vd)), aligned(8), may_alias));

enum { MOST_LANES = 64 }; /* columns of packed positions: lanes times outputs, at most */

/* Few columns, as lanes are, in strips of 4 half vectors and of one, whose accumulators stay in registers. Many, and what is left over: one
 * loop for each row, which the compiler turns into vectors. */
#define ADD_COLUMNS(name, type, vector)                                                                   \
  static void name(const void *x_, int64_t rows, int64_t row_stride, int64_t columns, void *accumulators) \
  {                                                                                                       \
    const type *x = x_;                                                                                   \
    type *to = accumulators;                                                                              \
    int64_t first = 0;                                                                                    \
    for (; columns <= MOST_LANES && first + 4 * HALF <= columns; first += 4 * HALF) {                     \
      vector##_unaligned *totals = (vector##_unaligned *)(to + first);                                    \
      vector a0 = totals[0], a1 = totals[1], a2 = totals[2], a3 = totals[3];                              \
      for (int64_t r = 0; r < rows; r++) {                                                                \
        const vector##_unaligned *row = (const vector##_unaligned *)(x + r * row_stride + first);         \
        a0 += row[0];                                                                                     \
        a1 += row[1];                                                                                     \
        a2 += row[2];                                                                                     \
        a3 += row[3];                                                                                     \
      }                                                                                                   \
      totals[0] = a0;                                                                                     \
      totals[1] = a1;                                                                                     \
      totals[2] = a2;                                                                                     \
      totals[3] = a3;                                                                                     \
    }                                                                                                     \
    for (; columns <= MOST_LANES && first + HALF <= columns; first += HALF) {                             \
      vector a = *(vector##_unaligned *)(to + first);                                                     \
      for (int64_t r = 0; r < rows; r++) a += *(const vector##_unaligned *)(x + r * row_stride + first);  \
      *(vector##_unaligned *)(to + first) = a;                                                            \
    }                                                                                                     \
    for (int64_t r = 0; r < rows && first < columns; r++, x += row_stride) {                              \
      FLOW_NO_OVERLAP                                                                                     \
      for (int64_t j = first; j < columns; j++) to[j] += x[j];                                            \
    }                                                                                                     \
  }
ADD_COLUMNS(add_doubles, double, vd)
ADD_COLUMNS(add_integers, uint64_t, vu64)

typedef void (*columns_function)(const void *x, int64_t rows, int64_t row_stride, int64_t columns, void *accumulators);
/* Each slot into accumulators of its own, then these to the sums: the order of the engine's slots. */
#define SUM_SLOTS(name, add, type)                                                                                     \
  static void name(const void *x, int64_t rows, int64_t in_slot, int64_t row_stride, int64_t columns, void *sums)      \
  {                                                                                                                    \
    type a[FLOW_BLOCK_LENGTH];                                                                                         \
    memset(sums, 0, sizeof(type) * (size_t)columns);                                                                   \
    for (int64_t first = 0; first < rows; first += in_slot) {                                                          \
      memset(a, 0, sizeof(type) * (size_t)columns);                                                                    \
      add((const type *)x + first * row_stride, rows - first < in_slot ? rows - first : in_slot, row_stride, columns, a); \
      add(a, 1, 0, columns, sums);                                                                                     \
    }                                                                                                                  \
  }
SUM_SLOTS(sum_slots_of_doubles, add_doubles, double)
SUM_SLOTS(sum_slots_of_integers, add_integers, uint64_t)

/* At most FLOW_BLOCK_LENGTH columns. */
typedef void (*slots_function)(const void *x, int64_t rows, int64_t in_slot, int64_t row_stride, int64_t columns, void *sums);
static const slots_function sum_slots[FLOW_KIND_COUNT] = { sum_slots_of_floats, sum_slots_of_doubles, sum_slots_of_integers, NULL };

/* By the kinds that flow_kind_of() gives, which counts bools as integers. */
static const columns_function add_columns[FLOW_KIND_COUNT] = { add_floats, add_doubles, add_integers, NULL };

/* ---- rows into a partial sum -------------------------------------------------------------------------------------------------- */

/* How many positions a partial sum has so far: the int64_t after its lanes that wide_sum.h leaves to the kernel. */
static int64_t *position_of(const sum *s, char *partial) { return (int64_t *)(void *)(partial + (size_t)(s->lanes * s->outputs) * 8); }

/* `count` positions that are packed: to the next lanes, then all lanes at a time. */
static void add_positions(const sum *s, const char *x, int64_t count, char *partial)
{
  columns_function add = add_columns[s->kind];
  size_t bytes = (size_t)s->outputs * flow_kind_size(s->kind);
  int64_t *position = position_of(s, partial), lane = *position % s->lanes;
  *position += count;
  int64_t before = lane == 0 ? 0 : count < s->lanes - lane ? count : s->lanes - lane, whole = (count - before) / s->lanes;
  int64_t rest = count - before - whole * s->lanes;
  if (before > 0) add(x, 1, 0, before * s->outputs, partial + lane * s->outputs * 8);
  x += (size_t)before * bytes;
  if (whole > 0) add(x, whole, s->lanes * s->outputs, s->lanes * s->outputs, partial);
  x += (size_t)(whole * s->lanes) * bytes;
  if (rest > 0) add(x, 1, 0, rest * s->outputs, partial);
}

/* Small rows, packed first if they are not. */
static void add_listed(const sum *s, const flow_operand *rows, char *partial)
{
  int64_t positions = s->elements / s->outputs, most = FLOW_BLOCK_LENGTH / s->elements;
  if (s->packed && (rows->strides[0] == s->elements || rows->shape[0] == 1)) {
    add_positions(s, rows->data, rows->shape[0] * positions, partial);
    return;
  }
  _Alignas(64) char packed[FLOW_BLOCK_BYTES], block[FLOW_BLOCK_BYTES];
  flow_load_function load = FLOW_ISA_NAME(load)[rows->dtype][s->kind];
  size_t size = (size_t)flow_dtype_size(rows->dtype);
  flow_operand from = *rows, to = *rows;
  to.data = packed;
  flow_contiguous_strides(to.rank, to.shape, to.strides);
  /* Rows in order but of another dtype are only converted; others are first copied in order. */
  int in_order = memcmp(to.strides, rows->strides, sizeof(int64_t) * (size_t)rows->rank) == 0;
  for (int64_t row = 0; row < rows->shape[0]; row += most) {
    int64_t count = rows->shape[0] - row < most ? rows->shape[0] - row : most;
    from.data = (char *)rows->data + row * rows->strides[0] * (int64_t)size;
    from.shape[0] = to.shape[0] = count;
    if (!in_order) FLOW_ISA_NAME(copy_operand)(&from, &to);
    load(in_order ? from.data : packed, 1, block, count * s->elements);
    add_positions(s, block, count * positions, partial);
  }
}

/* The rows of `rows` into a partial sum, by the way that `s` has chosen. The general case is a call of reduce.c for each row, with an
 * output that is the accumulators. */
static void add_rows(const sum *s, const flow_call *call, const flow_operand *rows, char *partial)
{
  if (rows->shape[0] == 0 || s->elements == 0 || s->outputs == 0) return;
  if (s->listed) {
    add_listed(s, rows, partial);
  } else if (s->packed && s->elements == s->outputs) {
    add_columns[s->kind](rows->data, rows->shape[0], rows->strides[0], s->outputs, partial);
  } else {
    flow_operand in = *rows, out = { .data = partial, .dtype = s->kind == FLOW_KIND_INTEGER ? FLOW_INT64 : FLOW_FLOAT64 };
    flow_attributes attributes = *call->attributes;
    flow_call own = *call;
    own.attributes = &attributes;
    own.inputs = &in;
    own.outputs = &out;
    attributes.reduce.keepdims = 0;
    for (int i = 1; i < in.rank; i++)
      if (!(flow_reduced_axes(&attributes, in.rank) >> i & 1)) out.shape[out.rank++] = in.shape[i];
    flow_contiguous_strides(out.rank, out.shape, out.strides);
    FLOW_ISA_NAME(add_each_row)(&own);
  }
}

/* ---- in a plan: chunks of a slot ---------------------------------------------------------------------------------------------- */

/* Whether the first axis is reduced, and whether it is so in a plan that goes by rows, where the engine adds the slots up. */
static int reduces_rows(const flow_call *call) { return (flow_reduced_axes(call->attributes, call->inputs[0].rank) & 1u) != 0; }

static int is_partial(const flow_call *call) { return call->partial && reduces_rows(call); }

/* A chunk of a slot's rows, which is added to what the chunk before it has left (accumulate): the engine gives one slot's chunks to one
 * thread, in order. */
static flow_status run_chunk(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase; (void)begin; (void)end;
  sum s = sum_of(call);
  char *partial = call->outputs[0].data;
  if (!partial) return FLOW_OK;
  if (!call->accumulate) memset(partial, 0, flow_wide_bytes(s.outputs));
  add_rows(&s, call, &call->inputs[0], partial);
  return FLOW_OK;
}

/* ---- all rows at once ------------------------------------------------------------------------------------------------------------ */

/* Parts of fewer bytes of input are not worth a thread. */
enum { PART_BYTES = 128 << 10, PHASES = 2 };

/* How the rows are cut, as the engine cuts them in a plan: `count` slots of `rows` rows, the last one perhaps fewer. */
typedef struct slots { int64_t count, rows; } slots;

/* rows is at least 1, also where the tensor has none: loops go on by it. */
static slots slots_of(const flow_operand *in)
{
  slots cut = { .rows = in->shape[0] > 0 ? (in->shape[0] + FLOW_SUM_SLOTS - 1) / FLOW_SUM_SLOTS : 1 };
  cut.count = (in->shape[0] + cut.rows - 1) / cut.rows;
  return cut;
}

/* Many columns: blocks of them, each with all slots, need no memory. */
static int by_columns(const sum *s) { return s->packed && !s->listed && s->elements == s->outputs; }

/* A partial sum for each slot. */
static size_t shared_bytes(const flow_call *call)
{
  sum s = sum_of(call);
  int64_t most = s.in->shape[0] < FLOW_SUM_SLOTS ? s.in->shape[0] : FLOW_SUM_SLOTS;      /* fewer rows may have more slots */
  return by_columns(&s) ? 0 : (size_t)most * flow_wide_bytes(s.outputs);
}

/* Phase 0: slots, or blocks of columns; phase 1 (slots only): ranges of outputs that add up the slots. Parts follow from the shape alone;
 * they own different slots, columns or outputs. */
static int64_t parts_of(const flow_call *call, int phase)
{
  sum s = sum_of(call);
  int64_t bytes = flow_shape_size(s.in->rank, s.in->shape) * flow_dtype_size(s.in->dtype), parts = bytes / PART_BYTES;
  int64_t most = by_columns(&s) ? (s.outputs + FLOW_BLOCK_LENGTH - 1) / FLOW_BLOCK_LENGTH : slots_of(s.in).count;
  if (phase == 1) return by_columns(&s) ? 0 : 1 + s.outputs * 8 / PART_BYTES;
  if (parts > most) parts = most;
  return parts < 1 ? 1 : parts;
}

/* Partial sums of slots first .. end - 1, each from zero, so that a slot's sum does not depend on who makes it. */
static void run_slots(const sum *s, const flow_call *call, int64_t first, int64_t end)
{
  slots cut = slots_of(s->in);
  for (int64_t slot = first; slot < end; slot++) {
    char *partial = (char *)call->shared + (size_t)slot * flow_wide_bytes(s->outputs);
    flow_operand rows = *s->in;
    rows.data = (char *)rows.data + slot * cut.rows * rows.strides[0] * flow_dtype_size(rows.dtype);
    if (rows.shape[0] - slot * cut.rows < cut.rows) rows.shape[0] -= slot * cut.rows;
    else rows.shape[0] = cut.rows;
    memset(partial, 0, flow_wide_bytes(s->outputs));
    add_rows(s, call, &rows, partial);
  }
}

/* Where no partial sums are kept: all slots of FLOW_BLOCK_LENGTH outputs at a time, added in their order. */
static void run_columns(const sum *s, const flow_call *call, int64_t first, int64_t end)
{
  const flow_operand *out = &call->outputs[0];
  flow_store_function store = FLOW_ISA_NAME(store)[s->kind == FLOW_KIND_INTEGER ? FLOW_KIND_INTEGER : FLOW_KIND_DOUBLE][out->dtype];
  _Alignas(64) char sums[FLOW_BLOCK_BYTES];
  for (int64_t column = first * FLOW_BLOCK_LENGTH; column < s->outputs && column < end * FLOW_BLOCK_LENGTH; column += FLOW_BLOCK_LENGTH) {
    int64_t n = s->outputs - column < FLOW_BLOCK_LENGTH ? s->outputs - column : FLOW_BLOCK_LENGTH;
    sum_slots[s->kind]((const char *)s->in->data + (size_t)column * flow_kind_size(s->kind), s->in->shape[0], slots_of(s->in).rows,
                       s->in->strides[0], n, sums);
    store(sums, (char *)out->data + column * flow_dtype_size(out->dtype), 1, n);
  }
}

/* Phase 0 makes sums by columns, or partial sums by slots; phase 1 adds the slots up. */
static flow_status run_all(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  const flow_operand *out = &call->outputs[0];
  if (!out->data) return FLOW_OK;
  sum s = sum_of(call);
  int64_t parts = parts_of(call, phase);
  if (phase == 1) {
    flow_wide_finish(call->shared, flow_wide_bytes(s.outputs), slots_of(s.in).count, s.outputs, s.outputs * begin / parts,
                     s.outputs * end / parts, out->dtype, out->data);
  } else if (by_columns(&s)) {
    int64_t blocks = (s.outputs + FLOW_BLOCK_LENGTH - 1) / FLOW_BLOCK_LENGTH;
    run_columns(&s, call, blocks * begin / parts, blocks * end / parts);
  } else {
    int64_t count = slots_of(s.in).count;
    run_slots(&s, call, count * begin / parts, count * end / parts);
  }
  return FLOW_OK;
}

const flow_kernel FLOW_KERNELS(sum)[] = {
  { .variant = "chunks", .supports = is_partial, .run = run_chunk },
  { .variant = "slots", .supports = reduces_rows, .shared_bytes = shared_bytes, .phases = PHASES, .parts = parts_of, .run = run_all },
  { .variant = "blocks", .run = FLOW_ISA_NAME(reduce_each_row) },
  { 0 },
};
