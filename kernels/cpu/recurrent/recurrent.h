/* recurrent.h: what the kernels of the recurrent cells share: sizes, blocks of rows, and the product of a block's state with the kernel.
 *
 * A row of the batch needs no other row, so a part is a block of rows that goes through all steps on its own: no member waits for another
 * between steps. Phase 0 copies the kernel into panels of PANEL columns, as tiles of gemm_tile.h read them; phase 1 runs the blocks. The
 * state of a block is together in scratch: in the sequence its rows would be far apart, and fall into few sets of the cache.
 * Every product is summed in the order of k, so the bits of a row depend on nothing but the row. */
#ifndef FLOW_CPU_RECURRENT_RECURRENT_H
#define FLOW_CPU_RECURRENT_RECURRENT_H

#include "cpu/cost.h"
#include "cpu/math.h"
#include "cpu/matrix_product/gemm_bfloat16.h"
#include "cpu/matrix_product/gemm_tile.h"

/* gates: of a cell; w and mask: the numbers of these inputs; transposed: the op is a gradient, which multiplies with w transposed. */
typedef struct cell_operands { int gates, w, mask, transposed; } cell_operands;

/* The call's sizes and options, from shapes and attributes alone. A gradient has them from its own inputs. */
typedef struct recurrent {
  cell_operands  cell;
  int64_t        rows, steps, units;
  const uint8_t *mask;                        /* {rows, steps}; NULL: none */
  int            reverse, resets_before;      /* resets_before: gru without reset_after, whose candidate has its own product */
} recurrent;

/* { gates, number of the input w, number of the input mask, transposed } of each op. */
static inline cell_operands cell_of(int op)
{
  static const cell_operands lstm = { 4, 1, 4, 0 }, lstm_gradient = { 4, 2, 5, 1 }, gru = { 3, 1, 4, 0 }, gru_gradient = { 3, 1, 5, 1 };
  static const cell_operands simple = { 1, 1, 3, 0 }, simple_gradient = { 1, 1, 3, 1 };
  return op == FLOW_OP_lstm ? lstm : op == FLOW_OP_lstm_gradient ? lstm_gradient : op == FLOW_OP_gru ? gru :
         op == FLOW_OP_gru_gradient ? gru_gradient : op == FLOW_OP_simple_rnn ? simple : simple_gradient;
}

/* Input 0 is {rows, steps, ...}. */
static inline recurrent recurrent_of(const flow_call *call)
{
  cell_operands cell = cell_of(call->op);
  const flow_operand *first = &call->inputs[0];
  return (recurrent){ .cell = cell, .rows = first->shape[0], .steps = first->shape[1], .units = call->inputs[cell.w].shape[0],
                      .mask = call->input_count > cell.mask ? call->inputs[cell.mask].data : NULL,
                      .reverse = call->attributes->recurrent.reverse,
                      .resets_before = cell.gates == 3 && !call->attributes->recurrent.reset_after };
}

/* Whether the mask keeps the state of this row at step t. */
static inline int is_kept(const recurrent *r, int64_t row, int64_t t) { return r->mask && !r->mask[row * r->steps + t]; }

/* The step that is done as number s. */
static inline int64_t step_at(const recurrent *r, int64_t s) { return r->reverse ? r->steps - 1 - s : s; }

static inline int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

/* ---- products --------------------------------------------------------------------------------------------------------- */

/* A matrix {depth, columns} in panels. rounded: to pairs of bfloat16 numbers, of which a panel has half as many. */
typedef struct packed { int64_t depth, columns; int rounded; float *panels; } packed;

/* Panels of a matrix, and floats of one and of all. */
static inline int64_t panel_count(const packed *p) { return (p->columns + PANEL - 1) / PANEL; }
static inline int64_t panel_floats(const packed *p) { return (p->rounded ? bfloat16_pairs(p->depth) : p->depth) * PANEL; }
static inline int64_t packed_floats(const packed *p) { return panel_count(p) * panel_floats(p); }

/* Copies one panel of the matrix, which begins at b with ldb floats from row to row and may have to be transposed. */
static inline void pack_panel(const packed *p, const float *b, int64_t ldb, int transposed, int64_t panel)
{
  int64_t first = panel * PANEL, columns = p->columns - first < PANEL ? p->columns - first : PANEL;
  const float *from = b + (transposed ? first * ldb : first);
  float *to = p->panels + panel * panel_floats(p);
  if (p->rounded) (transposed ? bfloat16_pack_columns : bfloat16_pack_rows)(from, ldb, p->depth, columns, (bfloat16_pair *)to);
  else (transposed ? pack_columns : pack_rows)(from, ldb, p->depth, columns, to);
}

/* c[rows] = a[rows] . p, or, with add, c[rows] += a[rows] . p; rows of c have room for whole panels. stack: where a is rounded to, rows of
 * bfloat16_stack_step(depth). */
static inline void multiply(const packed *p, int add, int64_t rows, const float *a, int64_t lda, float *c, int64_t ldc, void *stack)
{
  const epilogue e = { .add = add };
  const int64_t step = bfloat16_stack_step(p->depth), pairs = bfloat16_pairs(p->depth);
  if (p->rounded) bfloat16_pack_stack(a, lda, p->depth, rows, stack);
  for (int64_t panel = 0; panel < panel_count(p); panel++) {
    float *from = p->panels + panel * panel_floats(p);
    for (int64_t row = 0; row < rows; row += TILE_ROWS) {
      int count = (int)(rows - row < TILE_ROWS ? rows - row : TILE_ROWS);
      float *to = c + row * ldc + panel * PANEL;
      if (p->rounded)
        bfloat16_tile(count, PANEL, pairs, (bfloat16_pair *)stack + row * step, step, 1, (bfloat16_pair *)from, to, ldc, &e);
      else
        tiles[count][0](p->depth, a + row * lda, lda, NULL, 0, from, to, ldc, &e);
    }
  }
}

/* ---- blocks ----------------------------------------------------------------------------------------------------------- */

/* Rows of the batch on their way through the steps. In scratch: their state, of gradients the gradient of it, and their gates. */
typedef struct block {
  recurrent r;
  packed    w, candidate;                   /* resets_before: w of the first two gates, and of the candidate */
  int64_t   first, rows;                    /* of the batch */
  int64_t   state, width;                   /* floats from row to row of h and c, and of p; the last panel reaches beyond the gates */
  float    *h, *c, *p;
  void     *stack;                          /* multiply() */
} block;

/* Which of the two names a call gets; multiply() does what differs. */
static inline int is_rounded(const flow_call *call) { return call->bfloat16 && bfloat16_available(); }
static inline int supports_blocks(const flow_call *call)   { return call->outputs[0].dtype == FLOW_FLOAT32 && !is_rounded(call); }
static inline int supports_bfloat16(const flow_call *call) { return call->outputs[0].dtype == FLOW_FLOAT32 && is_rounded(call); }

/* How w is packed: for products with the state of all gates, or, where the reset comes first, of two gates, with the candidate's columns
 * apart. */
static inline block block_of(const flow_call *call)
{
  block b = { .r = recurrent_of(call) };
  int64_t units = b.r.units, gates = b.r.cell.gates * units, of_w = b.r.resets_before ? 2 * units : gates;
  float *panels = call->shared;
  const int rounded = is_rounded(call);
  if (b.r.cell.transposed) {
    b.w = (packed){ of_w, units, rounded, panels };
    b.candidate = (packed){ gates - of_w, gates > of_w ? units : 0, rounded, panels };
  } else {
    b.w = (packed){ units, of_w, rounded, panels };
    b.candidate = (packed){ units, gates - of_w, rounded, panels };
  }
  if (panels) b.candidate.panels += packed_floats(&b.w);
  b.state = round_up(units, PANEL);
  b.width = gates + PANEL;
  return b;
}

/* Rows of a block: few, so that there is one for every member, but whole tiles, and more where w does not fit into a core's cache, since
 * every block reads it at every step. */
static inline int64_t block_rows(const block *b)
{
  enum { WANTED_BLOCKS = 16, LARGE = 1 << 17 };
  int64_t least = b->r.units * b->r.units * b->r.cell.gates > LARGE ? 4 * TILE_ROWS : TILE_ROWS;
  int64_t rows = round_up((b->r.rows + WANTED_BLOCKS - 1) / WANTED_BLOCKS, TILE_ROWS);
  return rows < least ? least : rows;
}

/* Tiles of few rows reach half of the peak; states, gates and x go through the caches. */
static inline double blocks_cost(const flow_call *call)
{
  recurrent r = recurrent_of(call);
  double values = (double)r.rows * (double)r.steps * (double)r.units * r.cell.gates;
  return flow_cost_arithmetic(values * (double)r.units, is_rounded(call) ? 0.8 : 0.5) + flow_cost_cached(values * 40);
}

/* After the panels: h of this step and of the next, and c, where members divide the units of a step (recurrent.c, rounds). */
static inline int64_t shared_state_floats(const block *b)
{
  return b->r.cell.transposed ? 0 : 3 * TILE_ROWS * b->state;
}
static inline float *shared_states(const flow_call *call, const block *b)
{
  return (float *)call->shared + packed_floats(&b->w) + packed_floats(&b->candidate);
}

/* Written in phase 0, except the states, which only rounds use; read by all members afterwards. */
static inline size_t blocks_shared_bytes(const flow_call *call)
{
  block b = block_of(call);
  return (size_t)(packed_floats(&b.w) + packed_floats(&b.candidate) + shared_state_floats(&b)) * sizeof(float);
}

/* Scratch: h and c, then the gates, of a block's rows, then the stack of rounded rows. */
static inline int64_t scratch_floats(const block *b) { return block_rows(b) * (2 * b->state + b->width); }

static inline size_t blocks_scratch_bytes(const flow_call *call)
{
  block b = block_of(call);
  int64_t stack = b.w.rounded ? block_rows(&b) * bfloat16_stack_step(b.w.depth) : 0;      /* w is deeper than the candidate */
  return (size_t)scratch_floats(&b) * sizeof(float) + (size_t)stack * sizeof(bfloat16_pair);
}

/* Phase 0 has a part for each panel, phase 1 one for each block of rows. */
static inline int64_t blocks_parts(const flow_call *call, int phase)
{
  block b = block_of(call);
  return phase == 0 ? panel_count(&b.w) + panel_count(&b.candidate) : (b.r.rows + block_rows(&b) - 1) / block_rows(&b);
}

/* Phase 0: one panel of w or of the candidate's columns. */
static inline void pack_part(const flow_call *call, const block *b, int64_t part)
{
  const float *w = call->inputs[b->r.cell.w].data;
  int64_t before = panel_count(&b->w), ldw = b->r.cell.gates * b->r.units;
  if (part < before) pack_panel(&b->w, w, ldw, b->r.cell.transposed, part);
  else pack_panel(&b->candidate, w + 2 * b->r.units, ldw, b->r.cell.transposed, part - before);
}

static inline void copy_floats(float *to, const float *from, int64_t count) { memcpy(to, from, (size_t)count * sizeof(float)); }

/* Block number `part` with h and c from operands {rows, units}, 0 where there is none. */
static inline void start_block(const flow_call *call, block *b, int64_t part, const flow_operand *h, const flow_operand *c)
{
  int64_t most = block_rows(b), units = b->r.units, parts = (b->r.rows + most - 1) / most;
  b->first = b->r.rows * part / parts;        /* blocks of nearly equal rows: tiles of few are slow */
  b->rows = b->r.rows * (part + 1) / parts - b->first;
  b->h = call->scratch;
  b->c = b->h + most * b->state;
  b->p = b->c + most * b->state;
  b->stack = b->h + scratch_floats(b);
  memset(b->h, 0, (size_t)scratch_floats(b) * sizeof(float));
  for (int64_t i = 0; i < b->rows; i++) {
    if (h) copy_floats(b->h + i * b->state, (const float *)h->data + (b->first + i) * units, units);
    if (c) copy_floats(b->c + i * b->state, (const float *)c->data + (b->first + i) * units, units);
  }
}

/* Where row i of the block and step t begin in an operand {n, t, width}; NULL where nothing reads it. */
static inline float *at(const block *b, const flow_operand *operand, int64_t i, int64_t t, int64_t width)
{
  return operand->data ? (float *)operand->data + ((b->first + i) * b->r.steps + t) * width : NULL;
}

/* The state of the block into an output {rows, units}, which may be unread. */
static inline void give_state(const block *b, const flow_operand *output, const float *state)
{
  for (int64_t i = 0; i < b->rows && output->data; i++)
    copy_floats((float *)output->data + (b->first + i) * b->r.units, state + i * b->state, b->r.units);
}

/* The entry of a variant by blocks in a table of kernels. */
#define BLOCKS(name, run_function, ...)                                                                         \
  {                                                                                                             \
    .variant = #name, .supports = supports_##name, .cost = blocks_cost, .shared_bytes = blocks_shared_bytes,    \
    .scratch_bytes = blocks_scratch_bytes, .phases = 2, .parts = blocks_parts, .run = run_function, __VA_ARGS__ \
  }

/* ---- lanes ------------------------------------------------------------------------------------------------------------ */

/* The first `lanes` floats, where more than VL count as VL. */
ALWAYS_INLINE vf load_lanes(const float *p, int64_t lanes)
{
  return vf_load_lanes(p, lanes, vf_set(0));
}

#endif
