/* optimizer_products.c: optimizers whose gradients are, for some ranges of parameters, products x^T g that were not computed
 * yet: x {k, m} what went into a layer, g {k, n} what came back, k rows of the batch.
 *
 *   phase 0   copies every g into panels, as the tiles of gemm_tile.h read it (a part: one panel)
 *   phase 1   a part is a few blocks of a product: a block's gradient is computed into a buffer that stays in the first-level
 *             cache, then a linear pass updates its parameters; or a range of parameters whose gradients are in memory
 *
 * Passes over parameters and slots are bound by memory, tiles by arithmetic. So a block's pass is done in small pieces between
 * the tiles of the next block: while tiles multiply, the processor's prefetchers, which see linear streams, run ahead. */
#include "cpu/optimizer/optimizer_products.h"

#include <string.h>

#include "cpu/elementwise/fetch.h"
#include "cpu/matrix_product/gemm_bfloat16.h"
#include "cpu/matrix_product/gemm_tile.h"

enum {
  BLOCK         = 4096,              /* elements of a block */
  BLOCK_COLUMNS = 512,
  MOST_TILES    = 8,                 /* tiles one below the other */
  BLOCK_ROWS    = MOST_TILES * TILE_ROWS,
  LONG          = 2 * DEPTH,         /* k from which on blocks are made for their products: as high as can be, though the pass over */
  LONG_COLUMNS  = 8 * PANEL,         /* them leaves the first-level cache. A block of few rows would read all of g for each of them. */
  LONG_BLOCK    = BLOCK_ROWS * LONG_COLUMNS,
  BUFFER        = BLOCK > LONG_BLOCK ? BLOCK : LONG_BLOCK,
  PART_BLOCKS   = 8,                 /* blocks of a part at most, ... */
  WANTED_PARTS  = 32,                /* ... fewer where this many parts would not come about */
  REST          = 16384              /* elements of a part without a product */
};

/* One product of the op, and how it is cut. Sizes are elements. */
typedef struct product {
  const float *x, *g;
  int64_t      k, m, n, first;       /* m: rows that are done here, */
  int64_t      ld;                   /* of this many, which are the columns of x */
  int64_t      rows, columns;        /* of a block */
  int64_t      column_blocks, blocks, together, panels;
  int64_t      packed;               /* floats before its panels in `shared` */
  int          rounded;              /* x and g are rounded to bfloat16: panels have pairs of numbers */
  int64_t      depth;                /* k, in numbers or pairs, of as many bytes */
} product;

/* Arithmetic of blocks; sizes are at least 1. */
static int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t blocks_of(int64_t n, int64_t size) { return (n + size - 1) / size; }

/* With a shard (a replica that updates only its rows: flow_shard), x, m and first are those of its rows, and `ld` keeps the width of x.
 * Blocks are cut evenly and rounded up to whole panels and tiles. */
static product describe_product(const flow_call *call, int i)
{
  const flow_operand *factors = optimizer_factors(call, i);
  product p = { .x = factors[0].data, .g = factors[1].data, .k = factors[0].shape[0], .m = factors[0].shape[1],
                .n = factors[1].shape[1], .first = call->attributes->optimizer.first[i], .ld = factors[0].shape[1] };
  if (call->shard) {
    int64_t row = call->shard->rows[i][0];
    p.m = call->shard->rows[i][1] - row;
    p.x += row;
    p.first += row * p.n;
  }
  p.rounded = (call->bfloat16 >> i & 1) && bfloat16_available();
  p.depth = p.rounded ? bfloat16_pairs(p.k) : p.k;
  if (p.m == 0 || p.n == 0) return p;
  int64_t most = p.k >= LONG ? LONG_COLUMNS : BLOCK_COLUMNS;
  p.columns = blocks_of(blocks_of(p.n, blocks_of(p.n, most)), PANEL) * PANEL;
  p.rows = p.k >= LONG ? BLOCK_ROWS : min64(BLOCK / p.columns / TILE_ROWS, MOST_TILES) * TILE_ROWS;
  p.column_blocks = blocks_of(p.n, p.columns);
  p.blocks = blocks_of(p.m, p.rows) * p.column_blocks;
  p.together = min64(blocks_of(p.blocks, WANTED_PARTS), PART_BLOCKS);
  p.panels = blocks_of(p.n, PANEL);
  return p;
}

static int product_count(const flow_call *call) { return call->attributes->optimizer.products; }

/* The update's passes, and the products at 85 % of the peak: tiles share the cores' ports with the updates. */
double products_cost(const flow_call *call)
{
  double cost = update_cost(call);
  for (int i = 0; i < product_count(call); i++) {
    product p = describe_product(call, i);
    cost += flow_cost_arithmetic((double)p.m * (double)(p.panels * PANEL) * (double)p.k, p.rounded ? 1.4 : 0.85);
    cost += flow_cost_cached((double)p.k * (double)(p.m + p.n) * (double)sizeof(float));
  }
  return cost;
}

/* Whether the ranges without a product are updated here. */
static int does_rest(const flow_call *call) { return !call->shard || call->shard->rest; }

/* All products' g in panels; a panel has PANEL columns, the last one filled up with zeros. */
size_t products_shared_bytes(const flow_call *call)
{
  size_t floats = 0;
  for (int i = 0; i < product_count(call); i++) {
    product p = describe_product(call, i);
    floats += (size_t)(p.panels * p.depth * PANEL);
  }
  return floats * sizeof(float);
}

/* Two buffers for gradients, and the packed rows of x for one block and DEPTH steps of k. */
size_t products_scratch_bytes(const flow_call *call)
{
  (void)call;
  return (size_t)(2 * BUFFER + BLOCK_ROWS * DEPTH) * sizeof(float);
}

/* Phase 0: panels of all products. Phase 1: groups of blocks of all products, then the ranges without one. */
int64_t products_parts(const flow_call *call, int phase)
{
  int64_t parts = 0, first, last, skipped;
  for (int i = 0; i < product_count(call); i++) {
    product p = describe_product(call, i);
    parts += phase == 0 ? p.panels : p.blocks ? blocks_of(p.blocks, p.together) : 0;
  }
  for (int i = 0; phase == 1 && does_rest(call) && i <= product_count(call); i++) {
    range_before(call, i, &first, &last, &skipped);
    parts += blocks_of(last - first, REST);
  }
  return parts;
}

/* ---- blocks ------------------------------------------------------------------------------------------------------------- */

/* A block of a product's matrix {m, n}. */
typedef struct block { int64_t row, rows, column, columns; } block;

/* Blocks of columns count fastest: neighbours read the same rows of x. */
static block block_at(const product *p, int64_t index)
{
  block b = { .row = index / p->column_blocks * p->rows, .column = index % p->column_blocks * p->columns };
  b.rows = min64(p->rows, p->m - b.row);
  b.columns = min64(p->columns, p->n - b.column);
  return b;
}

/* SGD without momentum and decay needs no separate pass: tiles write to the parameters. They write whole vectors. */
static int updates_in_tiles(const product *p, const update *u)
{
  return u->op == FLOW_OP_sgd && u->form.slots == 0 && u->scalars.decay == 0 && p->n % PANEL == 0;
}

/* What happens beside the tiles of a block: memory that the next block needs is asked for, and the block before, whose
 * gradient is in `buffer`, is updated some rows at a time. */
typedef struct errand {
  region parameters, x; /* of the next block: rows 0 where nothing is asked for */
  region moved;         /* where its parameters go, if that is somewhere else */
  const update *update;
  const float *buffer;   /* the gradients of the block before, from the next row to be updated on */
  int64_t at, step;      /* the parameter of that row's first element, and parameters from row to row */
  int64_t buffer_step;   /* floats of the buffer from row to row */
  int64_t rows, columns; /* rows that are left, 0: none; columns of each */
  int64_t at_once;       /* rows that one errand updates */
} errand;

/* Takes the next rows of a block's gradients from the buffer: one range where parameters and buffer lie the same way, else row by row. */
static void update_rows(errand *e, int64_t rows)
{
  rows = min64(rows, e->rows);
  if (e->step == e->buffer_step && e->columns == e->step) {
    update_range(e->update, e->at, rows * e->step, e->buffer);
  } else {
    for (int64_t i = 0; i < rows; i++) update_range(e->update, e->at + i * e->step, e->columns, e->buffer + i * e->buffer_step);
  }
  e->rows -= rows;
  e->at += rows * e->step;
  e->buffer += rows * e->buffer_step;
}

/* What is done before one tile. */
static void run_errand(errand *e)
{
  fetch_some(&e->parameters);
  fetch_some_to_write(&e->moved);
  fetch_some(&e->x);
  if (e->rows > 0) update_rows(e, e->at_once);
}

/* c = the block of x^T g, or, with a scale, c = scale x^T g and what is `from` floats further: tiles over all of k, DEPTH at a time;
 * before each tile one errand is run. */
static void multiply_block(const product *p, const block *b, errand *beside, const void *panels, float scale, float *c, int64_t from,
                           int64_t ldc, void *packed)
{
  int start[MOST_TILES + 1], count = (int)blocks_of(b->rows, TILE_ROWS);
  for (int t = 0; t <= count; t++) start[t] = (int)b->rows * t / count;
  for (int64_t k = 0; k < p->depth; k += DEPTH) {
    int64_t depth = min64(DEPTH, p->depth - k);
    epilogue e = { .add = k > 0 || scale != 0, .from = k > 0 ? 0 : from, .scale = scale };
    if (p->rounded) bfloat16_pack_stacks(p->x + 2 * k * p->ld + b->row, p->ld, min64(2 * depth, p->k - 2 * k), start, count, packed);
    else pack_a(p->x + k * p->ld + b->row, p->ld, depth, start, count, packed);
    for (int64_t j = 0; j < b->columns; j += PANEL) {
      const float *panel = (const float *)panels + ((b->column + j) / PANEL * p->depth + k) * PANEL;
      for (int t = 0; t < count; t++) {
        const float *stack = (const float *)packed + t * TILE_ROWS * depth;
        float *to = c + start[t] * ldc + j;
        int rows = start[t + 1] - start[t];
        run_errand(beside);
        if (p->rounded) bfloat16_tile(rows, PANEL, depth, (const void *)stack, 1, TILE_ROWS, (const void *)panel, to, ldc, &e);
        else tiles[rows][1](depth, stack, 0, NULL, 0, (float *)panel, to, ldc, &e);
      }
    }
  }
}

/* Where a block's parameters go. */
static float *parameters_of(const product *p, const update *u, const block *b)
{
  return u->w + p->first + b->row * p->n + b->column;
}

/* Without samples there are no tiles. */
static void bring_parameters(const product *p, const update *u, const block *b)
{
  float *w = parameters_of(p, u, b);
  for (int64_t i = 0; i < b->rows && u->before; i++, w += p->n) memcpy(w, w + u->before, sizeof(float) * (size_t)b->columns);
}

/* Errands beside block b, of which `next` is asked for, if there is one. Updates are added by leave_update. */
static errand plan_errand(const product *p, const update *u, const block *b, const block *next)
{
  errand e = { .update = u };
  int64_t calls = blocks_of(b->rows, TILE_ROWS) * blocks_of(b->columns, PANEL) * blocks_of(p->depth, DEPTH);
  if (!next || calls == 0) return e;
  if (updates_in_tiles(p, u)) {
    e.moved = (region){
      .at = parameters_of(p, u, next), .ld = p->n, .rows = next->rows, .floats = next->columns, .at_once = blocks_of(next->rows, calls)
    };
    e.parameters = e.moved;
    e.parameters.at += u->before;
    if (!u->before) e.moved.rows = 0;
  }
  if (next->row != b->row)
    e.x = (region){ .at = p->x + next->row, .ld = p->ld, .rows = p->k, .floats = next->rows, .at_once = blocks_of(p->k, calls) };
  return e;
}

/* Leaves the update of block b, whose gradient is in the buffer, to the `calls` errands beside the next one. */
static void leave_update(const product *p, const block *b, const float *buffer, errand *e)
{
  e->buffer = buffer;
  e->at = p->first + b->row * p->n + b->column;
  e->step = p->n;
  e->buffer_step = p->columns;
  e->rows = b->rows;
  e->columns = b->columns;
  e->at_once = blocks_of(b->rows, blocks_of(b->rows, TILE_ROWS) * blocks_of(b->columns, PANEL));
}

/* Two buffers take turns: while block i is multiplied into one, the errands update block i - 1 from the other. The last block of a part
 * has no next one and is updated at once. */
static void run_blocks(const flow_call *call, const product *p, const update *u, int64_t part)
{
  float *buffers[2] = { call->scratch, (float *)call->scratch + BUFFER }, *packed = buffers[1] + BUFFER;
  const float *panels = (const float *)call->shared + p->packed;
  int64_t first = part * p->together, last = min64(first + p->together, p->blocks);
  errand e = { .rows = 0 };
  for (int64_t i = first; i < last; i++) {
    block b = block_at(p, i), before = block_at(p, i > first ? i - 1 : i), next = block_at(p, i + 1 < last ? i + 1 : i);
    float *buffer = buffers[i % 2];
    e = plan_errand(p, u, &b, i + 1 < last ? &next : NULL);
    if (updates_in_tiles(p, u)) {
      if (p->k == 0) bring_parameters(p, u, &b);
      multiply_block(p, &b, &e, panels, -(float)u->scalars.rate, parameters_of(p, u, &b), u->before, p->n, packed);
      continue;
    }
    if (i > first) leave_update(p, &before, buffers[(i - 1) % 2], &e);
    if (p->k == 0) memset(buffer, 0, BLOCK * sizeof(float));
    multiply_block(p, &b, &e, panels, 0, buffer, 0, p->columns, packed);
    update_rows(&e, e.rows);
    if (i + 1 < last) continue;
    leave_update(p, &b, buffer, &e);
    update_rows(&e, e.rows);
  }
}

/* ---- parts -------------------------------------------------------------------------------------------------------------- */

/* Part number `part` counts the panels of all products through. */
static void run_pack(const flow_call *call, int64_t part)
{
  float *panels = call->shared;
  for (int i = 0; i < product_count(call); i++) {
    product p = describe_product(call, i);
    if (part < p.panels) {
      const float *g = p.g + part * PANEL;
      int64_t columns = min64(PANEL, p.n - part * PANEL);
      float *panel = panels + part * p.depth * PANEL;
      if (p.rounded) bfloat16_pack_rows(g, p.n, p.k, columns, (void *)panel);
      else pack_rows(g, p.n, p.k, columns, panel);
      return;
    }
    part -= p.panels;
    panels += p.panels * p.depth * PANEL;
  }
}

/* Finds which product, or which range between products, part number `part` belongs to; products_parts counts in the same order. */
static void run_update(const flow_call *call, const update *u, int64_t part)
{
  int64_t packed = 0, first, last, skipped;
  for (int i = 0; i < product_count(call); i++) {
    product p = describe_product(call, i);
    int64_t parts = p.blocks ? blocks_of(p.blocks, p.together) : 0;
    p.packed = packed;
    if (part < parts) {
      run_blocks(call, &p, u, part);
      return;
    }
    part -= parts;
    packed += p.panels * p.depth * PANEL;
  }
  for (int i = 0; i <= product_count(call); i++) {
    range_before(call, i, &first, &last, &skipped);
    int64_t parts = blocks_of(last - first, REST);
    if (part < parts) {
      int64_t begin = first + part * REST;
      update_range(u, begin, min64(REST, last - begin), (const float *)call->inputs[OPTIMIZER_G].data + begin - skipped);
      return;
    }
    part -= parts;
  }
}

/* A guard of 0 leaves everything unchanged, in both phases. */
flow_status products_run(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  if (!is_let_through(call)) return FLOW_OK;
  update u = describe_update(call);
  for (int64_t part = begin; part < end; part++) {
    if (phase == 0) run_pack(call, part);
    else run_update(call, &u, part);
  }
  return FLOW_OK;
}
