/* optimizer_products.c: optimizers whose gradients are, for some ranges of parameters, products x^T g that nobody computed
 * yet: x {k, m} what went into a layer, g {k, n} what came back, k rows of the batch.
 *
 *   phase 0   copies every g into panels, as the tiles of gemm_tile.h read it (a part: one panel)
 *   phase 1   a part is a few blocks of a product: a block's gradient is computed into a buffer that stays in the first-level
 *             cache, then one linear pass updates its parameters; or a range of parameters whose gradients are in memory
 *
 * The passes over parameters and slots are bound by memory: while tiles multiply, what they will read is asked for. */
#include "cpu/optimizer_products.h"
#include "cpu/fetch.h"
#include "cpu/gemm_tile.h"

enum {
  BLOCK         = 4096,              /* elements of a block */
  BLOCK_COLUMNS = 512,
  MOST_TILES    = 8,                 /* tiles one below the other */
  BLOCK_ROWS    = MOST_TILES * TILE_ROWS,
  PART_BLOCKS   = 8,                 /* blocks of a part at most, ... */
  WANTED_PARTS  = 32,                /* ... fewer where this many parts would not come about */
  REST          = 16384              /* elements of a part without a product */
};

typedef struct product {
  const float *x, *g;
  int64_t      k, m, n, first;
  int64_t      rows, columns;        /* of a block */
  int64_t      column_blocks, blocks, together, panels;
  int64_t      packed;               /* floats before its panels in `shared` */
} product;

static int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t blocks_of(int64_t n, int64_t size) { return (n + size - 1) / size; }

static product describe_product(const flow_call *call, int i)
{
  const flow_operand *factors = optimizer_factors(call, i);
  product p = { .x = factors[0].data, .g = factors[1].data, .k = factors[0].shape[0], .m = factors[0].shape[1],
                .n = factors[1].shape[1], .first = call->attributes->optimizer.first[i] };
  if (p.m == 0 || p.n == 0) return p;
  p.columns = blocks_of(blocks_of(p.n, blocks_of(p.n, BLOCK_COLUMNS)), PANEL) * PANEL;
  p.rows = min64(BLOCK / p.columns / TILE_ROWS, MOST_TILES) * TILE_ROWS;
  p.column_blocks = blocks_of(p.n, p.columns);
  p.blocks = blocks_of(p.m, p.rows) * p.column_blocks;
  p.together = min64(blocks_of(p.blocks, WANTED_PARTS), PART_BLOCKS);
  p.panels = blocks_of(p.n, PANEL);
  return p;
}

static int product_count(const flow_call *call) { return call->attributes->optimizer.products; }

size_t products_shared_bytes(const flow_call *call)
{
  size_t floats = 0;
  for (int i = 0; i < product_count(call); i++) {
    product p = describe_product(call, i);
    floats += (size_t)(p.panels * p.k * PANEL);
  }
  return floats * sizeof(float);
}

size_t products_scratch_bytes(const flow_call *call)
{
  (void)call;
  return (size_t)(BLOCK + BLOCK_ROWS * DEPTH) * sizeof(float);
}

int64_t products_parts(const flow_call *call, int phase)
{
  int64_t parts = 0, first, last, skipped;
  for (int i = 0; i < product_count(call); i++) {
    product p = describe_product(call, i);
    parts += phase == 0 ? p.panels : p.blocks ? blocks_of(p.blocks, p.together) : 0;
  }
  for (int i = 0; phase == 1 && i <= product_count(call); i++) {
    range_before(call, i, &first, &last, &skipped);
    parts += blocks_of(last - first, REST);
  }
  return parts;
}

/* ---- blocks ------------------------------------------------------------------------------------------------------------- */

typedef struct block { int64_t row, rows, column, columns; } block;

static block block_at(const product *p, int64_t index)
{
  block b = { .row = index / p->column_blocks * p->rows, .column = index % p->column_blocks * p->columns };
  b.rows = min64(p->rows, p->m - b.row);
  b.columns = min64(p->columns, p->n - b.column);
  return b;
}

/* The parameters and slots of a block, and the columns of x for the block after it: after `calls` calls all is asked for. */
typedef struct wishes { region of_block[4], next_x; int count; } wishes;

static wishes wishes_of(const product *p, const update *u, const block *b, const block *next, int64_t calls)
{
  wishes w = { .count = 0 };
  int64_t at = p->first + b->row * p->n + b->column;
  for (int s = -1; s < 3; s++) {
    const float *from = s < 0 ? u->w : u->slots[s];
    if (!from) continue;
    w.of_block[w.count++] = (region){ .at = from + at, .ld = p->n, .rows = b->rows, .floats = b->columns,
                                      .at_once = blocks_of(b->rows, calls) };
  }
  if (next)
    w.next_x = (region){ .at = p->x + next->row, .ld = p->m, .rows = p->k, .floats = next->rows, .at_once = blocks_of(p->k, calls) };
  return w;
}

/* buffer[rows][p->columns] = the block of x^T g. */
static void multiply_block(const product *p, const update *u, const block *b, const block *next, const float *panels, float *buffer,
                           float *packed)
{
  if (p->k == 0) {
    memset(buffer, 0, (size_t)(b->rows * p->columns) * sizeof(float));
    return;
  }
  int start[MOST_TILES + 1], count = (int)blocks_of(b->rows, TILE_ROWS);
  for (int t = 0; t <= count; t++) start[t] = (int)b->rows * t / count;
  int64_t steps = blocks_of(p->k, DEPTH), first_panel = b->column / PANEL, last_panel = blocks_of(b->column + b->columns, PANEL);
  wishes w = wishes_of(p, u, b, next, steps * count * (last_panel - first_panel));
  for (int64_t k = 0; k < p->k; k += DEPTH) {
    int64_t depth = min64(DEPTH, p->k - k);
    epilogue e = { .add = k > 0 };
    pack_a(p->x + k * p->m + b->row, p->m, depth, start, count, packed);
    for (int64_t j = first_panel; j < last_panel; j++)
      for (int t = 0; t < count; t++) {
        for (int i = 0; i < w.count; i++) fetch_some(&w.of_block[i]);
        fetch_some(&w.next_x);
        tiles[start[t + 1] - start[t]][1](depth, packed + t * TILE_ROWS * depth, 0, NULL, 0,
                                          (float *)panels + (j * p->k + k) * PANEL,
                                          buffer + start[t] * p->columns + (j - first_panel) * PANEL, p->columns, &e);
      }
  }
}

static void update_block(const product *p, const update *u, const block *b, const float *buffer)
{
  int64_t at = p->first + b->row * p->n + b->column;
  if (b->columns == p->n && p->n == p->columns) {
    update_range(u, at, b->rows * p->n, buffer);
    return;
  }
  for (int64_t i = 0; i < b->rows; i++) update_range(u, at + i * p->n, b->columns, buffer + i * p->columns);
}

static void run_blocks(const flow_call *call, const product *p, const update *u, int64_t part)
{
  float *buffer = call->scratch, *packed = buffer + BLOCK;
  const float *panels = (const float *)call->shared + p->packed;
  int64_t last = min64((part + 1) * p->together, p->blocks);
  for (int64_t i = part * p->together; i < last; i++) {
    block b = block_at(p, i), next = i + 1 < last ? block_at(p, i + 1) : b;
    multiply_block(p, u, &b, next.row != b.row ? &next : NULL, panels, buffer, packed);
    update_block(p, u, &b, buffer);
  }
}

/* ---- parts -------------------------------------------------------------------------------------------------------------- */

static void run_pack(const flow_call *call, int64_t part)
{
  float *panels = call->shared;
  for (int i = 0; i < product_count(call); i++) {
    product p = describe_product(call, i);
    if (part < p.panels) {
      pack_rows(p.g + part * PANEL, p.n, p.k, min64(PANEL, p.n - part * PANEL), panels + part * p.k * PANEL);
      return;
    }
    part -= p.panels;
    panels += p.panels * p.k * PANEL;
  }
}

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
    packed += p.panels * p.k * PANEL;
  }
  for (int i = 0; i <= product_count(call); i++) {
    range_before(call, i, &first, &last, &skipped);
    int64_t parts = blocks_of(last - first, REST);
    if (part < parts) {
      int64_t begin = first + part * REST;
      update_range(u, begin, min64(REST, last - begin), (const float *)call->inputs[SGD_G].data + begin - skipped);
      return;
    }
    part -= parts;
  }
}

flow_status products_run(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  update u = describe_update(call);
  for (int64_t part = begin; part < end; part++) {
    if (phase == 0) run_pack(call, part);
    else run_update(call, &u, part);
  }
  return FLOW_OK;
}
