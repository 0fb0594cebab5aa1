/* recurrent.h: simple_rnn, lstm and gru over all steps, and their gradients: two ways.
 *
 * By blocks, one launch: a row of the batch needs no other row, so a block takes a few rows through all steps on its own, and waits for no
 * other block. A step is two phases for each tile of units: each thread adds the products of four neighbouring columns over some of k, and
 * leaves its sums in the block's memory; then a thread takes one unit of one row, adds the sums in order, and applies the cell. There are
 * no races: rows belong to one block alone, phases end with a barrier, and what products read, the state or, of gradients, that of the
 * gates, is in the device's memory twice, for even steps and for odd ones, so that no phase writes what another thread reads in it.
 *
 * By products, two launches a step: a library's product of all rows with w, then an element kernel for the cells. For large w, which a
 * multiprocessor would have to read at every step as a whole. */
#ifndef FLOW_CUDA_OPS_RECURRENT_H
#define FLOW_CUDA_OPS_RECURRENT_H

#include "cuda/device/numbers.h"

/* gru: the reset gate comes after the candidate's product with h, or before it, which makes two products of a step, the second of r h. */
typedef enum recurrent_cell { CELL_SIMPLE, CELL_LSTM, CELL_GRU_AFTER, CELL_GRU_BEFORE } recurrent_cell;

/* What a block has in common: a thread's sums for four columns of its rows. */
enum { RECURRENT_SHARED = 16384 };
#if defined(__CUDACC__)
#define BLOCK_SHARED RECURRENT_SHARED         /* of this family, which is compiled by itself */
#endif

/* n rows, t steps, u units. Forward: x {n, t, gates u}, w {u, gates u}, h, c {n, u}, b {gates u}; sequence, last (of c), history are
 * written.
 * Back: x is the gradient {n, t, u}, w transposed, gc {n, u} the gradient of the last c; sequence and history are read; dx, dh, dc and dp,
 * the gradient of h . w, are written. Results may be NULL, and so may be what a cell does not have, and the mask {n, t}.
 *
 * work, of the numbers that are computed in. Forward: h of even and of odd steps, c or the update gate, r h, {n, u} each. Back: what of the
 * gradient of h goes by the gates, the gradient of c, {n, u} each; the gradients of the gates {n, gates u}, in even and in odd rounds.
 * By products: sums {n, gates u or u} of this step; narrow: the state, or the gradient of the gates, as 16-bit floats for the next product.
 * tile: units that are done at a time, a multiple of 4. together: columns can be read in fours. turns: phases of a block. */
typedef struct recurrent_arguments {
  const void    *x, *w, *h, *c, *gc, *b;
  const uint8_t *mask;
  void          *sequence, *last, *history, *dx, *dh, *dc, *dp, *work, *narrow;
  const float   *sums;
  int64_t        rows, steps, units, step;
  int            cell, gates, back, reverse, tile, tiles, together, turns;
} recurrent_arguments;

/* The step that is done as number s. */
BODY int64_t step_at(const recurrent_arguments *a, int64_t s) { return a->reverse ? a->steps - 1 - s : s; }

/* Products of a step, one after the other. */
BODY int products_of_step(const recurrent_arguments *a) { return a->cell == CELL_GRU_BEFORE ? 2 : 1; }

/* from {n, depth} . w: columns first to first + gates u, and w's rows from `above` on. */
typedef struct recurrent_product { int64_t from, from_line, depth, above, first, columns; int gates; } recurrent_product;

/* Offsets are those in work. s counts steps; of gradients rounds, of which one more than steps takes what is left to the first state. */
BODY recurrent_product product_of(const recurrent_arguments *a, int64_t s, int part)
{
  recurrent_product p;
  const int64_t u = a->units, size = a->rows * u, width = a->gates * u;
  const int has_two = a->cell == CELL_GRU_BEFORE;
  if (!a->back) {
    p.from = part ? 3 * size : (s & 1) * size;
    p.from_line = u;
    p.depth = u;
    p.above = 0;
    p.first = part ? 2 * u : 0;
    p.columns = width;
    p.gates = part ? 1 : has_two ? 2 : a->gates;
  } else {
    p.from = 2 * size + ((s + (part ? 0 : 1)) & 1) * a->rows * width + (part ? 2 * u : 0);
    p.from_line = width;
    p.depth = part ? u : s == 0 ? 0 : has_two ? 2 * u : width;
    p.above = part ? 2 * u : 0;
    p.first = 0;
    p.columns = u;
    p.gates = 1;
  }
  return p;
}

BODY float  tanh_float32(float x) { return tanhf(x); }
BODY float  tanh_half_floats(float x) { return tanhf(x); }
BODY double tanh_other(double x) { return tanh(x); }

#define BODIES "cuda/ops/recurrent/recurrent_bodies.h"
#include "cuda/device/for_float32.h"
#include "cuda/device/for_half_floats.h"
#include "cuda/device/for_other.h"
#undef BODIES

/* Each kernel knows its dtype when it is compiled. */
#define RECURRENT_BLOCK(name, way, dtype)                                                                                        \
  typedef recurrent_arguments recurrent_##name##_arguments;                                                                      \
  BODY void recurrent_##name(int phase, int thread, int64_t block, void *shared, const recurrent_arguments *a)                   \
  {                                                                                                                              \
    recurrent_turn_##way(dtype, phase, thread, block, shared, a);                                                                \
  }
#define RECURRENT_ELEMENT(name, way, dtype)                                                                                      \
  typedef recurrent_arguments recurrent_cells_##name##_arguments;                                                                \
  BODY void recurrent_cells_##name(int64_t i, const recurrent_arguments *a) { recurrent_cell_of_products_##way(dtype, i, a); }
RECURRENT_BLOCK(float32, float32, FLOW_FLOAT32)
RECURRENT_BLOCK(float16, half_floats, FLOW_FLOAT16)
RECURRENT_BLOCK(bfloat16, half_floats, FLOW_BFLOAT16)
RECURRENT_BLOCK(float64, other, FLOW_FLOAT64)
RECURRENT_ELEMENT(float32, float32, FLOW_FLOAT32)
RECURRENT_ELEMENT(float16, half_floats, FLOW_FLOAT16)
RECURRENT_ELEMENT(bfloat16, half_floats, FLOW_BFLOAT16)

/* The emulated device asks recurrent_phases. */
#if defined(__CUDACC__)
#define RECURRENT_PHASES arguments.turns
#else
#define RECURRENT_PHASES 0
static inline int recurrent_phases(const void *arguments) { return ((const recurrent_arguments *)arguments)->turns; }
#endif

#define RECURRENT_KERNELS(ELEMENT, BLOCK)                                                                                        \
  BLOCK(recurrent_float32, RECURRENT_PHASES) BLOCK(recurrent_float16, RECURRENT_PHASES)                                          \
  BLOCK(recurrent_bfloat16, RECURRENT_PHASES) BLOCK(recurrent_float64, RECURRENT_PHASES)                                         \
  ELEMENT(recurrent_cells_float32) ELEMENT(recurrent_cells_float16) ELEMENT(recurrent_cells_bfloat16)

#endif
