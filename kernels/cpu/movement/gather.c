/* gather.c: the ops gather, rows of a table by their index, gather_sum, which adds such rows up, and gather_gradient, which adds rows of g
 * to the rows of a table of zeros. One variant of each: all are about memory.
 *
 * gather_gradient: a part is a range of table rows, and adds the rows of g that belong there in the order of the indices; so
 * sums do not depend on who does which part. Every part reads all indices, of which there are few beside g. Sums of many floats are kept
 * as doubles until the end: a float that has grown drops the digits of what is added to it. */
#include "cpu/cost.h"
#include "cpu/index.h"
#include "cpu/movement/movement.h"
#include "ops/index_words.h"
#include "tensor/tensor.h"

/* A part of a gradient is at least PART_BYTES of the table. Each reads all indices, which is much of the work where rows are single
 * elements, and little beside long rows: there are at most 2 parts for each element of a row, and MOST_PARTS. */
enum { MOST_PARTS = 16, PART_BYTES = 65536 };

/* Elements of an operand, and of a row of a table. */
static int64_t size_of(const flow_operand *x) { return flow_shape_size(x->rank, x->shape); }
static int64_t row_size(const flow_operand *table) { return flow_shape_size(table->rank - 1, table->shape + 1); }

/* Indices in a row of the batch; all of a scalar. */
static int64_t indices_a_row(const flow_operand *indices)
{
  return indices->rank > 0 ? flow_shape_size(indices->rank - 1, indices->shape + 1) : 1;
}

/* What is taken is read and written once. */
static double gather_cost(const flow_call *call)
{
  return flow_cost_stream(2.0 * (double)size_of(&call->outputs[0]) * (double)flow_dtype_size(call->outputs[0].dtype));
}

/* The rows that indices name, of `bytes` each, to `to` unless that is NULL. */
ALWAYS_INLINE flow_status gather_rows(const flow_call *call, char *to, const size_t bytes)
{
  const flow_operand *table = &call->inputs[0], *indices = &call->inputs[1];
  int64_t count = size_of(indices);
  const char *what = call->attributes->axis.axis == FLOW_PLACES_IN_CACHE ? FULL_CACHE : "index";
  for (int64_t i = 0; i < count; i++) {
    int64_t index = index_at(indices, i);
    if (index < 0 || index >= table->shape[0]) return fail_index(call, what, indices, i, indices_a_row(indices), table->shape[0]);
    if (to) copy_bytes(to + (size_t)i * bytes, (const char *)table->data + (size_t)index * bytes, bytes);
  }
  return FLOW_OK;
}

/* Rows are copied bit by bit, whatever their dtype; of short ones the length is a constant, so that no function is called for each. A
 * failure leaves the rows before the wrong index written: the op is then refused as a whole. Without an output, which nothing reads then,
 * the indices are checked all the same. */
static flow_status gather_run(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase;
  (void)begin;
  (void)end;
  const flow_operand *table = &call->inputs[0];
  size_t bytes = (size_t)row_size(table) * (size_t)flow_dtype_size(table->dtype);
  char *to = call->outputs[0].data;
  switch (bytes) {
  case 1: return gather_rows(call, to, 1);
  case 4: return gather_rows(call, to, 4);
  case 8: return gather_rows(call, to, 8);
  case 12: return gather_rows(call, to, 12);
  case 16: return gather_rows(call, to, 16);
  case 32: return gather_rows(call, to, 32);
  default: return gather_rows(call, to, bytes);
  }
}

/* ---- sums of rows ------------------------------------------------------------------------------------------------------------- */

/* Rows are added in float four at a time and these as doubles, as sum does it (reduce_blocks.h), for the same bits. MOST_FLOATS: floats
 * of a row that are summed at a time, 4 KB of doubles on the stack. AHEAD: how many rows ahead memory is asked for. LINE: bytes of a
 * cache line. */
enum { TOGETHER = 4, MOST_FLOATS = 512, AHEAD = 16, LINE = 64 };

static double gather_sum_cost(const flow_call *call)
{
  double floats = (double)size_of(&call->inputs[1]) * (double)row_size(&call->inputs[0]);
  return flow_cost_stream((double)sizeof(float) * (floats + (double)size_of(&call->outputs[0])));
}

/* Rows are anywhere in the table, where no processor sees them coming. `at`: an index, which may be invalid. */
ALWAYS_INLINE void ask_for_row(const flow_operand *table, int64_t at, int64_t n)
{
  if (at < 0 || at >= table->shape[0]) return;
  const char *row = (const char *)table->data + (size_t)(at * n) * sizeof(float);
  for (int64_t i = 0; i < n * (int64_t)sizeof(float); i += LINE) __builtin_prefetch(row + i);
}

/* sums[j] += the sum of `count` <= TOGETHER rows' element j. */
ALWAYS_INLINE void add_rows(const float *const *rows, const int count, int64_t n, double *sums)
{
  int64_t j = 0;
  for (; j + VL <= n; j += VL) {
    vf a = vf_load(rows[0] + j);
    FLOW_UNROLL(4)
    for (int r = 1; r < count; r++) a += vf_load(rows[r] + j);
    vd_store(sums + j, vd_load(sums + j) + vd_low(a));
    vd_store(sums + j + VL / 2, vd_load(sums + j + VL / 2) + vd_high(a));
  }
  for (; j < n; j++) {
    float a = rows[0][j];
    for (int r = 1; r < count; r++) a += rows[r][j];
    sums[j] += (double)a;
  }
}

/* Floats [first, first + n) of the sum of the rows that indices [begin, end) name; all of these are in the table. */
static void sum_of_rows(const flow_call *call, int64_t begin, int64_t end, int64_t first, int64_t n, float *to)
{
  const flow_operand *table = &call->inputs[0], *indices = &call->inputs[1];
  int64_t size = row_size(table), count = size_of(indices);
  const float *rows[TOGETHER];
  double sums[MOST_FLOATS] = { 0 };
  for (int64_t i = begin; i < end; i += TOGETHER) {
    int64_t some = end - i < TOGETHER ? end - i : TOGETHER;
    for (int64_t r = 0; r < some; r++) {
      rows[r] = (const float *)table->data + index_at(indices, i + r) * size + first;
      if (first == 0 && i + r + AHEAD < count) ask_for_row(table, index_at(indices, i + r + AHEAD), size);
    }
    if (some == TOGETHER) add_rows(rows, TOGETHER, n, sums);
    else add_rows(rows, (int)some, n, sums);
  }
  for (int64_t j = 0; j < n; j++) to[j] = (float)sums[j];
}

/* All indices are checked first, so that the loops that read rows need not, and nothing is written where one is wrong. */
static flow_status gather_sum_run(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase; (void)begin; (void)end;
  const flow_operand *table = &call->inputs[0], *indices = &call->inputs[1];
  int64_t size = row_size(table), count = size_of(indices), k = indices->shape[indices->rank - 1];
  float *to = call->outputs[0].data;
  for (int64_t i = 0; i < count; i++) {
    int64_t index = index_at(indices, i);
    if (index < 0 || index >= table->shape[0]) return fail_index(call, "index", indices, i, indices_a_row(indices), table->shape[0]);
  }
  int64_t sums = flow_shape_size(indices->rank - 1, indices->shape);
  for (int64_t sum = 0; to && sum < sums; sum++, to += size)
    for (int64_t j = 0; j < size; j += MOST_FLOATS)
      sum_of_rows(call, sum * k, (sum + 1) * k, j, size - j < MOST_FLOATS ? size - j : MOST_FLOATS, to + j);
  return FLOW_OK;
}

/* ---- gradients ------------------------------------------------------------------------------------------------------------------ */

/* From this many indices for each row of a table of floats on, sums are doubles. */
enum { MANY = 4 };

/* By the table's shape alone. There may be more parts than rows: some have none then. */
static int64_t gradient_parts(const flow_call *call, int phase)
{
  (void)phase;
  const flow_operand *table = &call->outputs[0];
  int64_t parts = size_of(table) * flow_dtype_size(table->dtype) / PART_BYTES, most = 2 * row_size(table);
  if (most > MOST_PARTS) most = MOST_PARTS;
  if (parts > most) parts = most;
  return parts < 1 ? 1 : parts;
}

static double gradient_cost(const flow_call *call)
{
  double bytes = (double)(2 * size_of(&call->inputs[0]) + size_of(&call->outputs[0])) * (double)flow_dtype_size(call->outputs[0].dtype);
  return flow_cost_stream(bytes);
}

/* Rows of the largest table that is summed in doubles. */
static int64_t most_wide_rows(const flow_call *call)
{
  return call->outputs[0].dtype == FLOW_FLOAT32 ? size_of(&call->inputs[1]) / MANY : 0;
}

/* Doubles for the table, or for as many rows of it as may be summed so when there are fewer: no more than half of g. */
static size_t gradient_shared(const flow_call *call)
{
  const flow_operand *table = &call->outputs[0];
  int64_t rows = most_wide_rows(call) < table->shape[0] ? most_wide_rows(call) : table->shape[0];
  return (size_t)(rows * row_size(table)) * sizeof(double);
}

/* to[i] += from[i]. */
ALWAYS_INLINE void add_floats(float *to, const float *from, int64_t n)
{
  int64_t i = 0;
  for (; i + VL <= n; i += VL) vf_store(to + i, vf_load(to + i) + vf_load(from + i));
  for (; i < n; i++) to[i] += from[i];
}

ALWAYS_INLINE void add_doubles(double *to, const double *from, int64_t n)
{
  for (int64_t i = 0; i < n; i++) to[i] += from[i];
}

/* Table rows [first, last) that are to be summed, and what sums are made of: the doubles or floats of g, or doubles of its floats. */
typedef enum adds { ADDS_FLOATS, ADDS_DOUBLES, ADDS_WIDENED } adds;
typedef struct range {
  int64_t first, last;
  adds how;
  void *sums;
} range;

/* The rows of g that belong to these rows, n elements each, in the order of the indices. sums: of the table's row 0 on. NULL: indices are
 * checked. */
ALWAYS_INLINE flow_status add_rows_of(const flow_call *call, const range *of, const int64_t n)
{
  const flow_operand *g = &call->inputs[0], *indices = &call->inputs[1];
  int64_t rows = call->outputs[0].shape[0], count = size_of(indices);
  for (int64_t i = 0; i < count; i++) {
    int64_t index = index_at(indices, i);
    if (index < 0 || index >= rows) return fail_index(call, "index", indices, i, indices_a_row(indices), rows);
    if (index < of->first || index >= of->last || !of->sums) continue;
    if (of->how == ADDS_FLOATS) add_floats((float *)of->sums + index * n, (const float *)g->data + i * n, n);
    else if (of->how == ADDS_DOUBLES) add_doubles((double *)of->sums + index * n, (const double *)g->data + i * n, n);
    else add_rows(&(const float *){ (const float *)g->data + i * n }, 1, n, (double *)of->sums + index * n);
  }
  return FLOW_OK;
}

/* Sums of segments have rows of one element, which are a constant of the loop. */
static flow_status add_range(const flow_call *call, const range *of)
{
  int64_t n = row_size(&call->outputs[0]);
  return n == 1 ? add_rows_of(call, of, 1) : add_rows_of(call, of, n);
}

/* One pass over all indices for each part: parts begin .. end - 1 are done as one range of table rows. An index out of range fails in
 * every part that sees it; the first failure is reported. */
static flow_status gradient_run(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  const flow_operand *table = &call->outputs[0];
  int64_t parts = gradient_parts(call, phase), rows = table->shape[0], n = row_size(table);
  range of = { .first = rows * begin / parts, .last = rows * end / parts, .sums = table->data };
  int64_t at = of.first * n, size = (of.last - of.first) * n;
  if (table->dtype == FLOW_FLOAT64) of.how = ADDS_DOUBLES;
  else if (table->data && rows <= most_wide_rows(call)) of = (range){ of.first, of.last, ADDS_WIDENED, call->shared };
  size_t bytes = of.how == ADDS_FLOATS ? sizeof(float) : sizeof(double);
  if (of.sums) memset((char *)of.sums + (size_t)at * bytes, 0, (size_t)size * bytes);
  FLOW_TRY(add_range(call, &of));
  for (int64_t i = at; of.how == ADDS_WIDENED && i < at + size; i++) ((float *)table->data)[i] = (float)((const double *)call->shared)[i];
  return FLOW_OK;
}

const flow_kernel FLOW_KERNELS(gather)[] = { { .variant = "rows", .cost = gather_cost, .run = gather_run }, { 0 } };
const flow_kernel FLOW_KERNELS(gather_sum)[] = { { .variant = "rows", .cost = gather_sum_cost, .run = gather_sum_run }, { 0 } };
const flow_kernel FLOW_KERNELS(gather_gradient)[] = {
  { .variant = "rows", .cost = gradient_cost, .shared_bytes = gradient_shared, .parts = gradient_parts, .run = gradient_run }, { 0 }
};
