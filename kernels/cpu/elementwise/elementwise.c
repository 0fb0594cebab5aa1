/* elementwise.c: the table of block functions, the driver that runs programs of them, and the elementwise ops. A block function computes
 * one op over up to FLOW_BLOCK_LENGTH packed elements of one kind; a program is a list of such steps over a few registers, each a block. A
 * single op is a program of one step; chains that plans fuse (fuse_elementwise.c) are longer ones, whose values between steps never leave
 * the first-level cache. */
#include "cpu/elementwise/elementwise.h"

#include <math.h>
#include "cpu/elementwise/functions.h"
#include "cpu/elementwise/power.h"
#include "cpu/elementwise/remainder.h"
#include "cpu/movement/movement.h"
#include "cpu/outer_pieces.h"

/* ---- block functions ------------------------------------------------------------------------------------------------ */

#define T        float
#define KIND     FLOAT
#define FLOATING 1
#define F(name)  name##f
#define EXTREMES_IN_VECTORS /* below, with the processor's instruction */
#define MOD_IN_VECTORS
#if defined(__AVX2__)
#define POW_IN_VECTORS        /* elsewhere a vector has two doubles, which is not faster than libm */
#endif
#include "cpu/elementwise/elementwise_blocks.inc"
#undef POW_IN_VECTORS
#undef MOD_IN_VECTORS
#undef EXTREMES_IN_VECTORS
#undef T
#undef KIND
#undef F

#define T        double
#define KIND     DOUBLE
#define F(name)  name
#include "cpu/elementwise/elementwise_blocks.inc"
#undef T
#undef KIND
#undef F
#undef FLOATING

#define T        int64_t
#define U        uint64_t
#define KIND     INTEGER
#define FLOATING 0
#include "cpu/elementwise/elementwise_blocks.inc"
#undef T
#undef U
#undef KIND

#define T        int32_t
#define U        uint32_t
#define KIND     WORD
#include "cpu/elementwise/elementwise_blocks.inc"
#undef T
#undef U
#undef KIND
#undef FLOATING

/* An op with functions of whole vectors. They also compute the last, partial vector, with zeros in the lanes beyond the end, so that an
 * element has the same bits wherever it is in a block. */
#define VECTORS(name)                                                                                    \
  static void block_##name##_FLOAT(const void *a_, const void *b, const void *c, void *out_, int64_t n)  \
  {                                                                                                      \
    (void)b;                                                                                             \
    (void)c;                                                                                             \
    const float *a = a_;                                                                                 \
    float *out = out_;                                                                                   \
    int64_t i = 0;                                                                                       \
    for (; i + VL <= n; i += VL) vf_store(out + i, vf_##name(vf_load(a + i)));                           \
    if (i < n) vf_store_part(out + i, vf_##name(vf_load_part(a + i, (int)(n - i))), (int)(n - i));       \
  }                                                                                                      \
  static void block_##name##_DOUBLE(const void *a_, const void *b, const void *c, void *out_, int64_t n) \
  {                                                                                                      \
    (void)b;                                                                                             \
    (void)c;                                                                                             \
    const double *a = a_;                                                                                \
    double *out = out_;                                                                                  \
    int64_t i = 0;                                                                                       \
    for (; i + VL / 2 <= n; i += VL / 2) vd_store(out + i, vd_##name(vd_load(a + i)));                   \
    if (i < n) {                                                                                         \
      vd rest = { 0 };                                                                                   \
      memcpy(&rest, a + i, (size_t)(n - i) * sizeof *a);                                                 \
      rest = vd_##name(rest);                                                                            \
      memcpy(out + i, &rest, (size_t)(n - i) * sizeof *a);                                               \
    }                                                                                                    \
  }
VECTORS(exp)
VECTORS(expm1)
VECTORS(log)
VECTORS(log1p)
VECTORS(tanh)
VECTORS(sigmoid)
VECTORS(softplus)
VECTORS(softsign)
VECTORS(sin)
VECTORS(cos)
VECTORS(tan)
VECTORS(arctan)
VECTORS(erf)
VECTORS(gelu)
VECTORS(gelu_tanh)
VECTORS(silu)

/* Two operands. */
#define VECTORS_OF_2(name, vector_function)                                                                            \
  static void block_##name##_FLOAT(const void *a_, const void *b_, const void *c, void *out_, int64_t n)               \
  {                                                                                                                    \
    (void)c;                                                                                                           \
    const float *a = a_, *b = b_;                                                                                      \
    float *out = out_;                                                                                                 \
    int64_t i = 0;                                                                                                     \
    for (; i + VL <= n; i += VL) vf_store(out + i, vector_function(vf_load(a + i), vf_load(b + i)));                   \
    int rest = (int)(n - i);                                                                                           \
    if (rest > 0) vf_store_part(out + i, vector_function(vf_load_part(a + i, rest), vf_load_part(b + i, rest)), rest); \
  }
VECTORS_OF_2(maximum, vf_maximum)
VECTORS_OF_2(minimum, vf_minimum)
VECTORS_OF_2(mod, vf_mod)
#if defined(__AVX2__)
VECTORS_OF_2(few_exponents_pow, vf_pow)
/* vf_any_pow for whole vectors, in two loops over a strip: the processor has more of a short loop's rounds under way at once. */
static void block_any_exponent_pow_FLOAT(const void *a_, const void *b_, const void *c, void *out_, int64_t n)
{
  enum { STRIP = 16 };
  (void)c;
  const float *a = a_, *b = b_;
  float *out = out_;
  int64_t i = 0;
  while (i + VL <= n) {
    vd low[STRIP], high[STRIP];
    uint32_t others[STRIP];
    int count = 0;
    for (; count < STRIP && i + (count + 1) * VL <= n; count++)
      others[count] = vf_exponents_of_pow(vf_load(a + i + count * VL), vf_load(b + i + count * VL), &low[count], &high[count]);
    for (int v = 0; v < count; v++, i += VL) {
      vf result = vf_narrow(vd_exp2(low[v]), vd_exp2(high[v]));
      if (__builtin_expect(others[v] != 0, 0)) result = vf_libm_pow(vf_load(a + i), vf_load(b + i), result, others[v]);
      vf_store(out + i, result);
    }
  }
  int rest = (int)(n - i);
  if (rest > 0) vf_store_part(out + i, vf_any_pow(vf_load_part(a + i, rest), vf_load_part(b + i, rest)), rest);
}
/* An element has the same bits both ways. */
static void block_pow_FLOAT(const void *a, const void *b, const void *c, void *out, int64_t n)
{
  (is_any_exponent(b, n) ? block_any_exponent_pow_FLOAT : block_few_exponents_pow_FLOAT)(a, b, c, out, n);
}
#endif
/* A gradient of g and x. */
#define SLOPE(name)                                                                                       \
  VECTORS_OF_2(name, vf_##name)                                                                           \
  static void block_##name##_DOUBLE(const void *g_, const void *x_, const void *c, void *out_, int64_t n) \
  {                                                                                                       \
    (void)c;                                                                                              \
    const double *g = g_, *x = x_;                                                                        \
    double *out = out_;                                                                                   \
    for (int64_t i = 0; i < n; i++) out[i] = double_##name(g[i], x[i]);                                   \
  }
SLOPE(gelu_gradient)
SLOPE(gelu_tanh_gradient)
SLOPE(silu_gradient)

/* Conditions are bytes of 0 or 1, so that the bitwise operators are the logical ones, without branches. */
#define LOGICAL(name, expression)                                                                                  \
  static void block_##name##_BOOL(const void *a_, const void *b_, const void *c_, void *out_, int64_t n)           \
  {                                                                                                                \
    (void)c_;                                                                                                      \
    const uint8_t *a = a_, *b = b_; (void)b;                                                                       \
    uint8_t *out = out_;                                                                                           \
    FLOW_NO_OVERLAP                                                                                                \
    for (int64_t i = 0; i < n; i++) out[i] = (uint8_t)(expression);                                                \
  }
LOGICAL(logical_not, !a[i])
LOGICAL(logical_and, a[i] & b[i])
LOGICAL(logical_or, a[i] | b[i])

/* ---- the table of ops ------------------------------------------------------------------------------------------------ */

/* The functions of an op by kind; the kinds that it does not have are NULL. */
#define FLOATS(name)   { block_##name##_FLOAT, block_##name##_DOUBLE }
#define NUMBERS(name)  { block_##name##_FLOAT, block_##name##_DOUBLE, block_##name##_INTEGER, NULL, block_##name##_WORD }
#define BOOLS(name)    { [FLOW_KIND_BOOL] = block_##name##_BOOL }

/* Operands, condition operands, whether a condition results, functions. Lines come from ops.def: an op without a function of its kind does
 * not link. */
static const flow_block_record records[FLOW_OP_COUNT] = {
#define FLOW_NUMBERS(name, inputs, ...)   [FLOW_OP_##name] = { inputs, 0, 0, NUMBERS(name) },
#define FLOW_FLOATS(name, inputs, ...)    [FLOW_OP_##name] = { inputs, 0, 0, FLOATS(name) },
#define FLOW_CONDITION(name, inputs, ...) [FLOW_OP_##name] = { inputs, 0, 1, NUMBERS(name) },
#define FLOW_LOGICAL(name, inputs, ...)   [FLOW_OP_##name] = { inputs, inputs, 1, BOOLS(name) },
#define FLOW_OP(...)
#include "ops/ops.def"
#undef FLOW_OP
  [FLOW_OP_where] = { 3, 1, 0, NUMBERS(where) },
};

const flow_block_record *FLOW_ISA_NAME(block_record)(int op) { return &records[op]; }
flow_block_function FLOW_ISA_NAME(block)(int op, int kind)   { return records[op].function[kind]; }

/* ---- the driver -------------------------------------------------------------------------------------------------------- */

/* How run_program goes. Operands are looked at as a walk: few axes, the last two of which are cut into tiles. A tile has as many elements
 * as a register, or, where no operand needs its own register, whole rows. For each tile run_tile loads what is not direct, runs the
 * steps and stores what is not direct.
 *
 * The iteration space of a program: the outputs' shape without axes of size 1, neighbouring axes merged wherever every operand steps
 * through them evenly. The last two axes are cut into tiles of rows x columns. */
typedef struct walk {
  int     operands, rank;
  int64_t shape[FLOW_MAX_RANK];
  int64_t strides[FLOW_MAX_OPERANDS][FLOW_MAX_RANK];
} walk;

/* The axes of all operands side by side: axes of size 1 are left out, axes that follow each other in every operand become one, stride 0
 * repeats. At least two axes are left, since the tile has two. */
static void walk_make(walk *w, const flow_operand *const *operands, int count, const flow_operand *shape)
{
  w->operands = count;
  w->rank = 0;
  for (int axis = 0; axis < shape->rank; axis++) {
    if (shape->shape[axis] == 1) continue;
    int64_t stride[FLOW_MAX_OPERANDS];
    int merge = w->rank > 0;
    for (int i = 0; i < count; i++) {
      int own = axis - (shape->rank - operands[i]->rank);   /* shapes are aligned at their last axes */
      stride[i] = own < 0 || operands[i]->shape[own] == 1 ? 0 : operands[i]->strides[own];
      if (merge && w->strides[i][w->rank - 1] != stride[i] * shape->shape[axis]) merge = 0;
    }
    int into = merge ? w->rank - 1 : w->rank++;
    w->shape[into] = merge ? w->shape[into] * shape->shape[axis] : shape->shape[axis];
    for (int i = 0; i < count; i++) w->strides[i][into] = stride[i];
  }
  while (w->rank < 2) {   /* the tile needs two axes */
    for (int axis = w->rank++; axis > 0; axis--) {
      w->shape[axis] = w->shape[axis - 1];
      for (int i = 0; i < count; i++) w->strides[i][axis] = w->strides[i][axis - 1];
    }
    w->shape[0] = 1;
    for (int i = 0; i < count; i++) w->strides[i][0] = 0;
  }
}

/* An operand within the walk. */
typedef struct place {
  char       *data;        /* at the tile's first element */
  const void *loaded;      /* data of the tile whose elements the register's buffer holds, NULL: of none */
  int64_t loaded_count;    /* how many it holds: enough for a tile of as many or fewer at the same place */
  int64_t row_stride, column_stride; /* of the walk's last two axes, in elements; 0 repeats */
  size_t size;                       /* bytes of an element */
  int         dtype, reg;
  int         direct;      /* packed and of the register's kind: the tile itself is the register */
} place;

/* Elements of a tile as a packed block of the kind, in one call where the rows follow each other without a gap. rows and columns: of the
 * tile, at p->data. */
static void load_tile(place *p, flow_kind kind, void *to, int64_t rows, int64_t columns)
{
  flow_load_function load = FLOW_ISA_NAME(load)[p->dtype][kind];
  if (rows == 1 || p->row_stride == columns * p->column_stride) {
    load(p->data, p->column_stride, to, rows * columns);
    return;
  }
  for (int64_t row = 0; row < rows; row++)
    load(p->data + row * p->row_stride * (int64_t)p->size, p->column_stride,
         (char *)to + (size_t)(row * columns) * flow_kind_size(kind), columns);
}

/* The same way back: only outputs are stored, whose elements are all different ones. */
static void store_tile(const place *p, flow_kind kind, const void *from, int64_t rows, int64_t columns)
{
  flow_store_function store = FLOW_ISA_NAME(store)[kind][p->dtype];
  if (rows == 1 || p->row_stride == columns * p->column_stride) {
    store(from, p->data, p->column_stride, rows * columns);
    return;
  }
  for (int64_t row = 0; row < rows; row++)
    store((const char *)from + (size_t)(row * columns) * flow_kind_size(kind),
          p->data + row * p->row_stride * (int64_t)p->size, p->column_stride, columns);
}

/* Registers are as near to each other as their elements let them: at 4 KB, those of floats would share half of the first-level cache. All
 * registers of a program get the room of its widest kind. */
static size_t register_bytes(const flow_block_program *program)
{
  size_t largest = 0;
  for (int r = 0; r < program->register_count; r++)
    if (flow_kind_size(program->kinds[r]) > largest) largest = flow_kind_size(program->kinds[r]);
  return largest * FLOW_BLOCK_LENGTH;
}

/* The program over one tile of rows x columns. A register is the tile's own memory where that is packed and of the register's kind
 * (direct): then nothing is loaded or stored. Otherwise it is a buffer, of which `loaded` says what it holds: an operand that repeats
 * from tile to tile (a bias) is converted once. A step's function gets all three inputs, of which it reads those that its op has. */
static void run_tile(const flow_block_program *program, place *places, char *buffers, size_t stride, int64_t rows, int64_t columns)
{
  void *registers[FLOW_BLOCK_REGISTERS];
  for (int r = 0; r < program->register_count; r++) registers[r] = buffers + (size_t)r * stride;
  place *outputs = places + program->input_count;
  for (int i = 0; i < program->output_count; i++)
    if (outputs[i].direct) registers[outputs[i].reg] = outputs[i].data;
  for (int i = 0; i < program->input_count; i++) {
    place *p = &places[i];
    if (p->direct) {
      registers[i] = p->data;
    } else if (registers[i] != (void *)(buffers + (size_t)i * stride)) {
      load_tile(p, program->kinds[i], registers[i], rows, columns);   /* a cast: straight into the output */
    } else if (p->loaded != p->data || p->loaded_count < rows * columns) {
      load_tile(p, program->kinds[i], registers[i], rows, columns);
      p->loaded = p->data;
      p->loaded_count = rows * columns;
    }
  }
  for (int s = 0; s < program->step_count; s++) {
    const flow_block_step *step = &program->steps[s];
    step->function(registers[step->inputs[0]], registers[step->inputs[1]], registers[step->inputs[2]], registers[step->output],
                   rows * columns);
  }
  for (int i = 0; i < program->output_count; i++)
    if (!outputs[i].direct) store_tile(&outputs[i], program->kinds[outputs[i].reg], registers[outputs[i].reg], rows, columns);
}

/* Whether each operand is a register, but for inputs with one element for the whole row, of which a buffer holds copies. Then a row can be
 * as long as it is, in one call of run_long_row; rows that need buffers of their own are cut at FLOW_BLOCK_LENGTH. */
static int repeats_only(const flow_block_program *program, const place *places)
{
  for (int i = 0; i < program->input_count + program->output_count; i++)
    if (!places[i].direct && (i >= program->input_count || places[i].column_stride != 0)) return 0;
  return program->step_count > 0;
}

/* A row of such operands: copies are made once, and the steps are run a block after the other. Registers that are operands move on by a
 * block each time; those of copies and those between steps stay. */
static void run_long_row(const flow_block_program *program, place *places, char *buffers, size_t stride, int64_t columns)
{
  char *registers[FLOW_BLOCK_REGISTERS];
  size_t moves[FLOW_BLOCK_REGISTERS] = { 0 };
  for (int r = 0; r < program->register_count; r++) registers[r] = buffers + (size_t)r * stride;
  for (int i = 0; i < program->input_count + program->output_count; i++) {
    place *p = &places[i];
    if (p->direct) {
      registers[p->reg] = p->data;
      moves[p->reg] = p->size * FLOW_BLOCK_LENGTH;
    } else if (p->loaded != p->data) {
      load_tile(p, program->kinds[i], registers[i], 1, FLOW_BLOCK_LENGTH);
      p->loaded = p->data;
    }
  }
  for (int64_t column = 0; column < columns; column += FLOW_BLOCK_LENGTH) {
    int64_t n = columns - column < FLOW_BLOCK_LENGTH ? columns - column : FLOW_BLOCK_LENGTH;
    for (int s = 0; s < program->step_count; s++) {
      const flow_block_step *step = &program->steps[s];
      step->function(registers[step->inputs[0]], registers[step->inputs[1]], registers[step->inputs[2]], registers[step->output], n);
    }
    for (int r = 0; r < program->register_count; r++) registers[r] += moves[r];
  }
}

/* Moves all operands by `count` elements of an axis; by as many back, they are where they were. */
static void advance(const walk *w, place *places, int axis, int64_t count)
{
  for (int i = 0; i < w->operands; i++) places[i].data += count * w->strides[i][axis] * (int64_t)places[i].size;
}

/* See elementwise.h. First the walk, then which operands are direct, then the size of a tile; the loops at the end only move and call. */
void FLOW_ISA_NAME(run_program)(const flow_block_program *program, const flow_operand *inputs, const flow_operand *outputs, void *buffers)
{
  int count = program->input_count + program->output_count;
  const flow_operand *operands[FLOW_MAX_OPERANDS];
  for (int i = 0; i < program->input_count; i++) operands[i] = &inputs[i];
  for (int i = 0; i < program->output_count; i++) operands[program->input_count + i] = &outputs[i];
  for (int axis = 0; axis < outputs[0].rank; axis++)
    if (outputs[0].shape[axis] == 0) return;

  walk w;
  walk_make(&w, operands, count, &outputs[0]);
  const int row_axis = w.rank - 2, column_axis = w.rank - 1;
  const int64_t all_rows = w.shape[row_axis], all_columns = w.shape[column_axis];

  place places[FLOW_MAX_OPERANDS];
  int all_direct = program->register_count <= count; /* registers between the steps are buffers of one block: rows must be cut */
  for (int i = 0; i < count; i++) {
    int reg = i < program->input_count ? i : program->outputs[i - program->input_count];
    place *p = &places[i];
    *p = (place){ .data = operands[i]->data, .row_stride = w.strides[i][row_axis], .column_stride = w.strides[i][column_axis],
                  .size = (size_t)flow_dtype_size(operands[i]->dtype), .dtype = operands[i]->dtype, .reg = reg };
    p->direct = p->dtype == flow_kind_dtype(program->kinds[reg]) && (p->column_stride == 1 || all_columns == 1);
    all_direct &= p->direct;
  }

  /* Whole rows at once need no buffer as long as a row: all operands are registers; or a cast converts one operand into the other. */
  int unbuffered = all_direct || (program->step_count == 0 && count == 2 && (places[0].direct || places[1].direct));

  /* Short rows are taken together, so that a bias of 16 channels does not cost a call per 16 elements: then a register
   * holds the bias several times over, loaded once. */
  int64_t columns = all_columns, rows = 1;
  int repeats = 0;
  if (columns <= FLOW_BLOCK_LENGTH / 4) {
    rows = FLOW_BLOCK_LENGTH / columns < all_rows ? FLOW_BLOCK_LENGTH / columns : all_rows;
    for (int i = 0; i < count; i++)
      if (rows > 1 && places[i].row_stride != columns) places[i].direct = 0;
  } else if (columns > FLOW_BLOCK_LENGTH && !unbuffered && !(repeats = repeats_only(program, places))) {
    columns = FLOW_BLOCK_LENGTH;
  }

  /* All tiles of the last two axes, then one step along the axes before them, as in counting: a wheel that is full goes back to 0 and turns
   * the one before it. */
  const size_t stride = register_bytes(program);
  int64_t position[FLOW_MAX_RANK] = { 0 };
  for (;;) {
    for (int64_t row = 0; row < all_rows; row += rows) {
      int64_t tile_rows = all_rows - row < rows ? all_rows - row : rows;
      for (int64_t column = 0; column < all_columns; column += columns) {
        if (repeats) run_long_row(program, places, buffers, stride, all_columns);
        else run_tile(program, places, buffers, stride, tile_rows, all_columns - column < columns ? all_columns - column : columns);
        advance(&w, places, column_axis, columns);
      }
      advance(&w, places, column_axis, -((all_columns + columns - 1) / columns) * columns);
      advance(&w, places, row_axis, rows);
    }
    advance(&w, places, row_axis, -((all_rows + rows - 1) / rows) * rows);
    int axis = row_axis - 1;
    for (; axis >= 0; axis--) {
      advance(&w, places, axis, 1);
      if (++position[axis] < w.shape[axis]) break;
      advance(&w, places, axis, -position[axis]);
      position[axis] = 0;
    }
    if (axis < 0) return;
  }
}

/* ---- the ops ----------------------------------------------------------------------------------------------------------- */

/* The kind to compute in: that of the operands that are not conditions. Promotion has made their dtypes equal; where it
 * has not, floats win over integers and double over float. */
static flow_kind computing_kind(const flow_block_record *record, const flow_call *call)
{
  if (record->condition_operands == record->operands) return FLOW_KIND_BOOL;
  flow_kind kind = FLOW_KIND_WORD;
  for (int i = record->condition_operands; i < record->operands; i++) {
    flow_kind own = flow_word_kind_of(call->inputs[i].dtype);
    if (own == FLOW_KIND_INTEGER && kind == FLOW_KIND_WORD) kind = FLOW_KIND_INTEGER;
    if (own == FLOW_KIND_DOUBLE || kind == FLOW_KIND_DOUBLE) kind = FLOW_KIND_DOUBLE;
    else if (own == FLOW_KIND_FLOAT) kind = FLOW_KIND_FLOAT;
  }
  return kind;
}

/* An op as a program of one step, on the stack of the thread that has the chunk: 3 operands and a result, 16 KB of buffers. The engine has
 * checked shapes and dtypes; outputs without memory are not wanted. */
static flow_status run_elementwise(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase; (void)begin; (void)end;
  const flow_block_record *record = &records[call->op];
  if (!call->outputs[0].data) return FLOW_OK;
  flow_kind kind = computing_kind(record, call);
  if (!record->function[kind])
    return flow_fail(FLOW_INTERNAL, "%s: there is no kernel for %s; cast the input first", flow_op(call->op)->name,
                     flow_dtype_name(call->inputs[0].dtype));
  flow_block_program program = { .register_count = record->operands + 1, .input_count = record->operands, .output_count = 1,
                                 .step_count = 1 };
  for (int i = 0; i < record->operands; i++) {
    program.kinds[i] = (uint8_t)(i < record->condition_operands ? FLOW_KIND_BOOL : kind);
    program.steps[0].inputs[i] = (uint8_t)i;
  }
  program.kinds[record->operands] = (uint8_t)(record->gives_condition ? FLOW_KIND_BOOL : kind);
  program.outputs[0] = program.steps[0].output = (uint8_t)record->operands;
  program.steps[0].function = record->function[kind];
  _Alignas(64) char buffers[4 * FLOW_BLOCK_BYTES];
  FLOW_ISA_NAME(run_program)(&program, call->inputs, call->outputs, buffers);
  return FLOW_OK;
}

/* A piece, where there are fewer rows than threads. */
static flow_status run_piece(const flow_call *call, int64_t piece)
{
  return flow_run_outer_piece(run_elementwise, call, piece);
}

/* One variant for all shapes and dtypes: run_program takes any strides, and the table of functions any kind. */
#define KERNELS(op, ...)          \
  const flow_kernel FLOW_KERNELS( \
      op)[] = { { .variant = "blocks", .run = run_elementwise, .pieces = flow_outer_pieces, .run_piece = run_piece }, { 0 } };
#define FLOW_NUMBERS   KERNELS
#define FLOW_FLOATS    KERNELS
#define FLOW_CONDITION KERNELS
#define FLOW_LOGICAL   KERNELS
#define FLOW_OP(...)
#include "ops/ops.def"
#undef FLOW_OP
KERNELS(where)
