/* reduce.c: sum, prod, max, min, any and all over any axes of any strided array.
 *
 * The axes but the first are sorted into kept and reduced ones and merged where memory allows. The innermost loops see
 * rows x columns: columns run along a kept axis if that is the one packed in memory ({n, h, w, c} to {c}), else there
 * is one column and the rows run along a reduced axis ({n, c} to {n}).
 *
 * The first axis is apart, because the engine cuts it into chunks: where it is kept, each of its rows is reduced on its
 * own; sums over it are in sum.c; other ops see it whole when they reduce it. So results do not depend on chunks. */
#include "cpu/reduce/reduce.h"

#include "cpu/elementwise/elementwise.h"
#include "cpu/reduce/reduce_blocks.h"
#include "ops/rules.h"

/* What the loops need to know of an op, by the kind of elements; a function is NULL where the op has none. */
typedef struct reduction {
  flow_columns_function columns[FLOW_KIND_COUNT];
  flow_run_function run[FLOW_KIND_COUNT];
  flow_few_function few[FLOW_KIND_COUNT];
  double                identity;          /* of doubles and conditions */
  int64_t               integer_identity;
  int32_t word_identity;
  int                   needs_elements;    /* there is no result of nothing */
} reduction;

static const reduction reductions[FLOW_OP_COUNT] = {
  [FLOW_OP_sum] = { REDUCTION_sum },
#define FLOW_REDUCTION(name, ...) [FLOW_OP_##name] = { REDUCTION_##name },
#define FLOW_OP(...)
#include "ops/ops.def"
#undef FLOW_OP
};

/* What an op computes elements of a dtype in: the narrowest kind of which it has columns. */
static flow_kind computing_kind(int op, int dtype)
{
  const flow_columns_function *columns = reductions[op].columns;
  flow_kind kind = columns[FLOW_KIND_WORD] ? flow_word_kind_of(dtype) : flow_kind_of(dtype);
  if (columns[FLOW_KIND_BOOL]) return FLOW_KIND_BOOL;
  return columns[kind] ? kind : FLOW_KIND_DOUBLE;
}

/* Floats are combined in double in the end, other kinds in their own type. */
ALWAYS_INLINE flow_kind accumulator_kind(flow_kind kind) { return kind == FLOW_KIND_FLOAT ? FLOW_KIND_DOUBLE : kind; }

/* n accumulators that change nothing. kind: that of accumulators. */
static void set_identity(const reduction *op, flow_kind kind, void *accumulators, int64_t n)
{
  double *doubles = accumulators;
  int64_t *integers = accumulators;
  int32_t *words = accumulators;
  if (kind == FLOW_KIND_BOOL) memset(accumulators, (int)op->identity, (size_t)n);
  else if (kind == FLOW_KIND_WORD)
    for (int64_t i = 0; i < n; i++) words[i] = op->word_identity;
  else if (kind == FLOW_KIND_INTEGER) for (int64_t i = 0; i < n; i++) integers[i] = op->integer_identity;
  else for (int64_t i = 0; i < n; i++) doubles[i] = op->identity;
}

/* ---- rows x columns ------------------------------------------------------------------------------------------------- */

/* Fewer columns than WIDE are taken several rows at a time as one wide row, whose accumulators are combined in the end:
 * three columns fill no vector, and a single accumulator would wait for itself. */
enum { WIDE = 4 * VL, MOST_LANES = WIDE * VL, FEW = 8 };

/* Rows of one wide row: a power of two, so that whole vectors come out. */
static int64_t rows_for_wide(int64_t columns)
{
  int64_t rows = 1;
  while (rows * columns < WIDE || rows * columns % VL != 0) rows *= 2;
  return rows;
}

/* accumulators[j] = op of accumulators[j] and x[0][j], x[1][j], ...; see WIDE for few columns. The order of operations depends on rows
 * and columns alone, and so does the result. */
static void reduce_rows(const reduction *op, flow_kind kind, const void *x, int64_t rows, int64_t row_stride, int64_t columns,
                        void *accumulators)
{
  flow_columns_function function = op->columns[kind];
  if (columns == 1 && row_stride == 1 && op->run[kind]) {
    op->run[kind](x, rows, accumulators);
    return;
  }
  int64_t group = row_stride == columns && columns < WIDE && rows * columns >= FEW ? rows_for_wide(columns) : 1;
  if (group == 1 || rows < group) {
    function(x, rows, row_stride, columns, accumulators);
    return;
  }
  flow_kind wide_kind = accumulator_kind(kind);
  size_t size = flow_kind_size(wide_kind);
  _Alignas(64) char lanes[MOST_LANES * 8];
  set_identity(op, wide_kind, lanes, group * columns);
  int64_t whole = rows / group;
  function(x, whole, group * columns, group * columns, lanes);
  /* The upper half of the wide row is combined into the lower one until one row is left; then the rows that filled no wide row follow. */
  for (; group > 1; group /= 2)
    op->columns[wide_kind](lanes + (size_t)(group / 2 * columns) * size, 1, 0, group / 2 * columns, lanes);
  op->columns[wide_kind](lanes, 1, 0, columns, accumulators);
  int64_t done = whole * rows_for_wide(columns);
  function((const char *)x + (size_t)(done * columns) * flow_kind_size(kind), rows - done, columns, columns, accumulators);
}

/* ---- layout ---------------------------------------------------------------------------------------------------------- */

/* One axis, or several that are one run in both operands. Strides in elements; out_stride is 0 for a reduced one. */
typedef struct axis { int64_t size, stride, out_stride; } axis;

/* The input and the output as loops see them. Every output is an element of kept x column; it combines reduced x row elements. */
typedef struct layout {
  int       rank, reduced_rank;               /* of kept and of reduced axes that are left to loops */
  axis      kept[FLOW_MAX_RANK], reduced[FLOW_MAX_RANK];
  axis      column, row;                      /* the innermost axes: kept and reduced; size 1 if there is none */
  int       dtype, out_dtype, direct;         /* direct: rows are packed in the kind, no conversion needed */
  flow_kind kind;
  size_t    size, out_size;                   /* bytes of an element */
} layout;

static int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

/* Puts an axis after the others, or makes it one with the last if the two are one run in both operands. */
static void add_axis(axis *axes, int *count, axis added)
{
  if (added.size == 1) return;
  axis *last = *count > 0 ? &axes[*count - 1] : NULL;
  if (last && last->stride == added.stride * added.size && last->out_stride == added.out_stride * added.size)
    *last = (axis){ last->size * added.size, added.stride, added.out_stride };
  else
    axes[(*count)++] = added;
}

/* The layout of the axes from `first` on. The innermost kept axis becomes the column if its elements are nearer to each other than those of
 * the innermost reduced axis. */
static void layout_make(layout *l, const flow_call *call, int first)
{
  const flow_operand *in = &call->inputs[0], *out = &call->outputs[0];
  unsigned reduced = flow_reduced_axes(call->attributes, in->rank);
  *l = (layout){ .column = { 1, 1, 1 }, .row = { 1, 1, 0 }, .dtype = in->dtype, .out_dtype = out->dtype };
  for (int i = 0, out_axis = 0; i < in->rank; i++) {
    int is_reduced = (reduced >> i & 1) != 0;
    axis added = { in->shape[i], in->strides[i], is_reduced ? 0 : out->strides[out_axis] };
    out_axis += !is_reduced || call->attributes->reduce.keepdims;
    if (i < first) continue;
    if (is_reduced) add_axis(l->reduced, &l->reduced_rank, added);
    else add_axis(l->kept, &l->rank, added);
  }
  if (l->reduced_rank > 0) l->row = l->reduced[--l->reduced_rank];
  if (l->rank > 0 && (l->row.size == 1 || magnitude(l->kept[l->rank - 1].stride) < magnitude(l->row.stride)))
    l->column = l->kept[--l->rank];
  l->kind = computing_kind(call->op, in->dtype);
  l->size = (size_t)flow_dtype_size(in->dtype);
  l->out_size = (size_t)flow_dtype_size(out->dtype);
  l->direct = in->dtype == flow_kind_dtype(l->kind) && (l->column.stride == 1 || l->column.size == 1);
}

/* Moves x and out to the next position of the axes; 0 after the last one, when both are back at the start. As a counter does: the last axis
 * turns fastest. */
static int next_position(const axis *axes, int count, int64_t *position, size_t size, const char **x, size_t out_size, char **out)
{
  for (int i = count - 1; i >= 0; i--) {
    int within = ++position[i] < axes[i].size;
    int64_t step = within ? 1 : 1 - axes[i].size;
    *x += step * axes[i].stride * (int64_t)size;
    *out += step * axes[i].out_stride * (int64_t)out_size;
    if (within) return 1;
    position[i] = 0;
  }
  return 0;
}

/* Rows of `columns` elements at x, converted block by block unless they can be read in place. accumulators: one for each column, which the
 * rows are added to. */
static void reduce_block(const reduction *op, const layout *l, const char *x, int64_t columns, void *accumulators)
{
  if (l->direct) {
    reduce_rows(op, l->kind, x, l->row.size, l->row.stride, columns, accumulators);
    return;
  }
  flow_load_function load = FLOW_ISA_NAME(load)[l->dtype][l->kind];
  _Alignas(64) char buffer[FLOW_BLOCK_BYTES];
  /* As many rows as a buffer holds. columns is at most FLOW_BLOCK_LENGTH: reduce_all() saw to that. */
  int64_t most = FLOW_BLOCK_LENGTH / columns;
  for (int64_t row = 0; row < l->row.size; row += most) {
    int64_t rows = l->row.size - row < most ? l->row.size - row : most;
    const char *from = x + row * l->row.stride * (int64_t)l->size;
    if (columns == 1) {
      load(from, l->row.stride, buffer, rows);
    } else {
      for (int64_t r = 0; r < rows; r++)
        load(from + r * l->row.stride * (int64_t)l->size, l->column.stride,
             buffer + (size_t)(r * columns) * flow_kind_size(l->kind), columns);
    }
    reduce_rows(op, l->kind, buffer, rows, columns, columns, accumulators);
  }
}

/* All outputs of a layout. in_place: the outputs are packed accumulators, to which the results are added. */
static void reduce_all(const reduction *op, const layout *l, const char *x, char *out, int in_place)
{
  for (int i = 0; i < l->rank; i++)
    if (l->kept[i].size == 0) return;
  int empty = 0;
  for (int i = 0; i < l->reduced_rank; i++) empty |= l->reduced[i].size == 0;
  flow_store_function store = FLOW_ISA_NAME(store)[accumulator_kind(l->kind)][l->out_dtype];
  _Alignas(64) char block[FLOW_BLOCK_BYTES];
  int64_t position[FLOW_MAX_RANK] = { 0 };
  do {
    for (int64_t column = 0; column < l->column.size; column += FLOW_BLOCK_LENGTH) {
      int64_t columns = l->column.size - column < FLOW_BLOCK_LENGTH ? l->column.size - column : FLOW_BLOCK_LENGTH;
      char *to = out + column * l->column.out_stride * (int64_t)l->out_size, *accumulators = in_place ? to : block, *unmoved = out;
      if (!in_place) set_identity(op, accumulator_kind(l->kind), block, columns);
      const char *from = x + column * l->column.stride * (int64_t)l->size;
      int64_t reduced_position[FLOW_MAX_RANK] = { 0 };
      if (!empty) {
        do reduce_block(op, l, from, columns, accumulators);
        while (next_position(l->reduced, l->reduced_rank, reduced_position, l->size, &from, 0, &unmoved));
      }
      if (!in_place) store(block, to, l->column.out_stride, columns);
    }
  } while (next_position(l->kept, l->rank, position, l->size, &x, l->out_size, &out));
}

/* ---- the ops ----------------------------------------------------------------------------------------------------------- */

/* Whether the first axis is reduced: such calls are WHOLE. */
static int reduces_rows(const flow_call *call) { return flow_reduced_axes(call->attributes, call->inputs[0].rank) & 1u; }

/* There is no largest or smallest of nothing, unless nobody asks for one. */
static flow_status check_not_empty(const flow_call *call)
{
  const flow_operand *in = &call->inputs[0], *out = &call->outputs[0];
  if (!reductions[call->op].needs_elements) return FLOW_OK;
  for (int i = 0; i < out->rank; i++)
    if (out->shape[i] == 0) return FLOW_OK;
  for (int i = 0; i < in->rank; i++)
    if (in->shape[i] == 0)
      return flow_fail(FLOW_INVALID_ARGUMENT, "%s of an empty axis: shape %s has no element along axis %d (counted from 1)",
                       flow_op(call->op)->name, flow_shape_text(in->rank, in->shape), i + 1);
  return FLOW_OK;
}

/* The axis along which a reduction that sees its first axis whole is cut: the outermost kept one. */
static axis *first_kept(layout *l) { return l->rank > 0 ? &l->kept[0] : &l->column; }

/* Part `part` of `parts`, cut along the first kept axis: each output belongs to one part. */
static void reduce_part(const flow_call *call, int64_t part, int64_t parts)
{
  layout l;
  layout_make(&l, call, 0);
  axis *split = first_kept(&l);
  int64_t first = split->size * part / parts, last = split->size * (part + 1) / parts;
  split->size = last - first;
  reduce_all(&reductions[call->op], &l, (const char *)call->inputs[0].data + first * split->stride * (int64_t)l.size,
             (char *)call->outputs[0].data + first * split->out_stride * (int64_t)l.out_size, 0);
}

/* The results of `rows` runs of packed elements, {n, c} to {n}, many of which are stored together. A few elements do not pay for a run's
 * start, and conditions have no other function. */
static void reduce_runs(const reduction *op, const layout *l, const char *x, int64_t rows, int64_t row_stride, char *out,
                        int64_t out_stride)
{
  enum { FEW_ELEMENTS = 8 };
  const flow_kind totals = accumulator_kind(l->kind);
  const size_t size = flow_kind_size(l->kind);
  flow_load_function load = FLOW_ISA_NAME(load)[l->dtype][l->kind];
  flow_store_function store = FLOW_ISA_NAME(store)[totals][l->out_dtype];
  _Alignas(64) char accumulators[FLOW_BLOCK_BYTES], converted[FLOW_BLOCK_BYTES];
  int few = op->few[l->kind] && l->row.size > 0 && (l->row.size <= FEW_ELEMENTS || !op->run[l->kind]);
  int64_t most = l->direct || l->row.size == 0 ? FLOW_BLOCK_LENGTH : FLOW_BLOCK_LENGTH / l->row.size;
  for (int64_t row = 0; row < rows; row += most) {
    int64_t count = rows - row < most ? rows - row : most, stride = row_stride;
    const char *from = x + row * row_stride * (int64_t)l->size;
    if (!l->direct) {
      stride = l->row.size;
      if (row_stride == stride) load(from, 1, converted, count * stride);
      else
        for (int64_t i = 0; i < count; i++)
          load(from + i * row_stride * (int64_t)l->size, 1, converted + (size_t)(i * stride) * size, stride);
      from = converted;
    }
    if (few) {
      op->few[l->kind](from, count, stride, l->row.size, accumulators);
    } else {
      set_identity(op, totals, accumulators, count);
      for (int64_t i = 0; i < count && l->row.size > 0; i++)
        op->run[l->kind](from + i * stride * (int64_t)size, l->row.size, accumulators + (size_t)i * flow_kind_size(totals));
    }
    store(accumulators, out + row * out_stride * (int64_t)l->out_size, out_stride, count);
  }
}

/* Whether each result is that of one run of packed elements, all of which are along one axis; elements of another dtype are converted where
 * a block holds several runs. */
static int has_runs(const reduction *op, const layout *l)
{
  return (op->run[l->kind] || op->few[l->kind]) && l->rank <= 1 && l->reduced_rank == 0 && l->column.size == 1 &&
         (l->direct || l->row.size <= FLOW_BLOCK_LENGTH / 4) && (l->row.stride == 1 || l->row.size == 1);
}

/* See reduce.h. Rows of the first axis one by one, each with its own output, or many together, where each result is one run of packed
 * elements. */
flow_status FLOW_ISA_NAME(reduce_each_row)(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase; (void)begin; (void)end;
  const flow_operand *in = &call->inputs[0], *out = &call->outputs[0];
  if (!out->data) return FLOW_OK;
  FLOW_TRY(check_not_empty(call));
  if (reduces_rows(call)) {      /* the last variant of an op serves every call of it */
    reduce_part(call, 0, 1);
    return FLOW_OK;
  }
  layout l;
  layout_make(&l, call, 1);
  const char *x = in->data;
  char *to = out->data;
  int64_t rows = in->rank > 0 ? in->shape[0] : 1, row_stride = in->rank > 0 ? in->strides[0] : 0;
  int64_t out_stride = in->rank == 0 ? 0 : out->strides[0];
  const reduction *op = &reductions[call->op];
  int runs = in->rank > 0 && has_runs(op, &l);
  if (runs && l.rank == 0) {
    reduce_runs(op, &l, x, rows, row_stride, to, out_stride);
    return FLOW_OK;
  }
  for (int64_t row = 0; row < rows && runs; row++)
    reduce_runs(op, &l, x + row * row_stride * (int64_t)l.size, l.kept[0].size, l.kept[0].stride,
                to + row * out_stride * (int64_t)l.out_size, l.kept[0].out_stride);
  for (int64_t row = 0; row < rows && !runs; row++)
    reduce_all(&reductions[call->op], &l, x + row * row_stride * (int64_t)l.size, to + row * out_stride * (int64_t)l.out_size, 0);
  return FLOW_OK;
}

/* See reduce.h. The output is packed accumulators: doubles, or int64_t for integers. */
void FLOW_ISA_NAME(add_each_row)(const flow_call *call)
{
  layout l;
  const flow_operand *in = &call->inputs[0];
  layout_make(&l, call, 1);
  for (int64_t row = 0; row < in->shape[0]; row++)
    reduce_all(&reductions[FLOW_OP_sum], &l, (const char *)in->data + row * in->strides[0] * (int64_t)l.size, call->outputs[0].data, 1);
}

/* WHOLE: the first axis is reduced with the others. Parts have at least PART_BYTES of input. Both limits are constants: the number of parts
 * must not depend on the machine. */
enum { PART_BYTES = 256 * 1024, MOST_PARTS = 64 };

/* Bytes in the input's size decide, not the team's: a result is the same for every number of threads. */
static int64_t whole_parts(const flow_call *call, int phase)
{
  (void)phase;
  layout l;
  layout_make(&l, call, 0);
  const flow_operand *in = &call->inputs[0];
  int64_t parts = flow_shape_size(in->rank, in->shape) * (int64_t)l.size / PART_BYTES, most = first_kept(&l)->size;
  if (most > MOST_PARTS) most = MOST_PARTS;
  if (parts > most) parts = most;
  return parts < 1 ? 1 : parts;
}

/* Parts own their outputs, so that none of them waits for another. */
static flow_status run_whole(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  if (!call->outputs[0].data) return FLOW_OK;
  FLOW_TRY(check_not_empty(call));
  int64_t parts = whole_parts(call, phase);
  for (int64_t part = begin; part < end; part++) reduce_part(call, part, parts);
  return FLOW_OK;
}

/* ---- few outputs of many elements: {n} or {n, c} of a small c --------------------------------------------------------------
 *
 * The outputs are too few to be divided. Phase 0 cuts the outermost reduced axis: each part reduces its range into accumulators of its
 * own, one for each output. Phase 1 takes the parts' accumulators as rows and reduces these. */

enum { CUT_PHASES = 2 };

/* The axis that is cut: the outermost reduced one. */
static axis *first_reduced(layout *l)
{
  return l->reduced_rank > 0 ? &l->reduced[0] : &l->row;
}

/* Into how many parts the reduced axis is cut, by the input's size alone; 1: not at all. l: the layout of the whole call. */
static int64_t cuts_of(const flow_call *call, layout *l)
{
  const flow_operand *in = &call->inputs[0];
  layout_make(l, call, 0);
  if (!reduces_rows(call) || l->rank > 0 || l->column.size > FLOW_BLOCK_LENGTH) return 1;
  int64_t parts = flow_shape_size(in->rank, in->shape) * (int64_t)l->size / PART_BYTES, most = first_reduced(l)->size;
  if (most > MOST_PARTS) most = MOST_PARTS;
  if (parts > most) parts = most;
  return parts < 1 ? 1 : parts;
}

/* Calls too small to be cut are left to the variant "blocks". */
static int is_cut(const flow_call *call)
{
  layout l;
  return cuts_of(call, &l) > 1;
}

/* shared: [part][column] accumulators. */
static size_t cut_bytes(const flow_call *call)
{
  layout l;
  int64_t parts = cuts_of(call, &l);
  return (size_t)(parts * l.column.size) * flow_kind_size(accumulator_kind(l.kind));
}

/* Phase 1 is one part: it combines at most MOST_PARTS rows. */
static int64_t cut_parts(const flow_call *call, int phase)
{
  layout l;
  return phase == 0 ? cuts_of(call, &l) : 1;
}

/* Parts are combined in order, in the kind of accumulators, and rounded once. */
static flow_status run_cut(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  const flow_operand *out = &call->outputs[0];
  const reduction *op = &reductions[call->op];
  if (!out->data) return FLOW_OK;
  layout l;
  int64_t parts = cuts_of(call, &l), columns = l.column.size;
  flow_kind kind = accumulator_kind(l.kind);
  if (phase == 1) {
    _Alignas(64) char block[FLOW_BLOCK_BYTES];
    set_identity(op, kind, block, columns);
    op->columns[kind](call->shared, parts, columns, columns, block);
    FLOW_ISA_NAME(store)[kind][l.out_dtype](block, out->data, l.column.out_stride, columns);
    return FLOW_OK;
  }
  for (int64_t part = begin; part < end; part++) {
    layout own = l;
    axis *cut = first_reduced(&own);
    int64_t first = cut->size * part / parts, last = cut->size * (part + 1) / parts;
    char *accumulators = (char *)call->shared + (size_t)(part * columns) * flow_kind_size(kind);
    cut->size = last - first;
    set_identity(op, kind, accumulators, columns);
    reduce_all(op, &own, (const char *)call->inputs[0].data + first * cut->stride * (int64_t)l.size, accumulators, 1);
  }
  return FLOW_OK;
}

#define FLOW_REDUCTION(name, ...)                                                                                                  \
  const flow_kernel FLOW_KERNELS(name)[] = {                                                                                       \
    { .variant = "cut", .supports = is_cut, .shared_bytes = cut_bytes, .phases = CUT_PHASES, .parts = cut_parts, .run = run_cut }, \
    { .variant = "blocks", .supports = reduces_rows, .parts = whole_parts, .run = run_whole },                                     \
    { .variant = "blocks", .run = FLOW_ISA_NAME(reduce_each_row) },                                                                \
    { 0 },                                                                                                                         \
  };
#define FLOW_OP(...)
#include "ops/ops.def"
#undef FLOW_OP
