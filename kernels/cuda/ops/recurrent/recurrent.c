/* recurrent.c: the ops simple_rnn, lstm, gru and their gradients: by blocks, or, where w is large, by products. */
#include "cuda/ops/recurrent/recurrent.h"

#include <string.h>
#include "base/status.h"
#include "cuda/device/move.h"
#include "cuda/library/library.h"
#include "cuda/runtime/device_table.h"
#include "cuda/runtime/launch.h"

/* Operands by their numbers from 1 on; 0: there is none. */
typedef struct recurrent_operands {
  int cell, gates, back;
  int w, h, c, gc, b, given, kept, mask;      /* inputs; given: the sequence, kept: the history */
  int sequence, last, history, dx, dh, dc, dp;
} recurrent_operands;

static recurrent_operands operands_of(const flow_call *call)
{
  static const recurrent_operands
    simple        = { .cell = CELL_SIMPLE, .gates = 1, .w = 2, .h = 3, .mask = 4, .sequence = 1 },
    simple_back   = { .cell = CELL_SIMPLE, .gates = 1, .back = 1, .w = 2, .given = 3, .mask = 4, .dx = 1, .dh = 2 },
    lstm          = { .cell = CELL_LSTM, .gates = 4, .w = 2, .h = 3, .c = 4, .mask = 5, .sequence = 1, .last = 2, .history = 3 },
    lstm_back     = { .cell = CELL_LSTM, .gates = 4, .back = 1, .gc = 2, .w = 3, .c = 4, .kept = 5, .mask = 6, .dx = 1, .dh = 2, .dc = 3 },
    gru           = { .cell = CELL_GRU_BEFORE, .gates = 3, .w = 2, .h = 3, .b = 4, .mask = 5, .sequence = 1, .history = 2 },
    gru_back      = { .cell = CELL_GRU_BEFORE, .gates = 3, .back = 1, .w = 2, .h = 3, .given = 4, .kept = 5, .mask = 6, .dx = 1, .dh = 2 };
  recurrent_operands o = call->op == FLOW_OP_lstm ? lstm : call->op == FLOW_OP_lstm_gradient ? lstm_back : call->op == FLOW_OP_gru ? gru :
                         call->op == FLOW_OP_gru_gradient ? gru_back : call->op == FLOW_OP_simple_rnn ? simple : simple_back;
  if (o.cell == CELL_GRU_BEFORE && call->attributes->recurrent.reset_after) {
    o.cell = CELL_GRU_AFTER;
    o.dp = o.back ? 3 : 0;
  }
  if (!o.back && !call->attributes->recurrent.history) o.history = 0;
  return o;
}

static const void *input(const flow_call *call, int number)
{
  return number > 0 && number <= call->input_count ? call->inputs[number - 1].data : NULL;
}

static void *output(const flow_call *call, int number) { return number > 0 ? call->outputs[number - 1].data : NULL; }

/* Columns of a product that a block's threads make in one turn, four each. A state that has more units is cut into tiles. */
enum { MOST_COLUMNS = 4 * BLOCK_THREADS, TILE_OF_MANY = 128 };

static int64_t round_up(int64_t n, int64_t unit) { return parts_of(n, unit) * unit; }

/* All but where work is, and, of gradients, w turned. */
static recurrent_arguments describe(const flow_call *call, const recurrent_operands *o)
{
  const flow_operand *x = &call->inputs[0];
  recurrent_arguments a = { .x = x->data, .w = input(call, o->w), .h = input(call, o->h), .c = input(call, o->c), .gc = input(call, o->gc),
                            .b = input(call, o->b), .mask = input(call, o->mask), .rows = x->shape[0], .steps = x->shape[1],
                            .units = call->inputs[o->w - 1].shape[0], .cell = o->cell, .gates = o->gates, .back = o->back,
                            .reverse = call->attributes->recurrent.reverse, .last = output(call, o->last), .dx = output(call, o->dx),
                            .dh = output(call, o->dh), .dc = output(call, o->dc), .dp = output(call, o->dp) };
  a.sequence = o->back ? (void *)(uintptr_t)input(call, o->given) : output(call, o->sequence);
  a.history = o->back ? (void *)(uintptr_t)input(call, o->kept) : output(call, o->history);
  int at_once = a.back ? 1 : a.cell == CELL_GRU_BEFORE ? 2 : a.gates;      /* gates of the widest product */
  a.tile = (int)(round_up(a.units, 4) * at_once <= MOST_COLUMNS ? round_up(a.units, 4) : TILE_OF_MANY);
  if (a.tile > 0) a.tiles = (int)parts_of(a.units, a.tile);
  return a;
}

static int is_empty(const recurrent_arguments *a) { return a->rows == 0 || a->units == 0; }

/* ---- memory ------------------------------------------------------------------------------------------------------------------- */

enum { ALIGNMENT = 256 };

static size_t number_bytes(const flow_call *call) { return call->inputs[0].dtype == FLOW_FLOAT64 ? sizeof(double) : sizeof(float); }

/* Numbers of `work`. */
static int64_t work_size(const recurrent_arguments *a) { return a->rows * a->units * (a->back ? 2 + 2 * a->gates : 4); }

static size_t work_bytes(const flow_call *call, const recurrent_arguments *a)
{
  return (size_t)round_up(work_size(a) * (int64_t)number_bytes(call), ALIGNMENT);
}

static size_t w_bytes(const flow_call *call, const recurrent_arguments *a)
{
  return (size_t)(a->units * a->units * a->gates) * flow_dtype_size(call->inputs[0].dtype);
}

/* ---- by blocks ---------------------------------------------------------------------------------------------------------------- */

static size_t blocks_shared_bytes(const flow_call *call)
{
  const recurrent_operands o = operands_of(call);
  const recurrent_arguments a = describe(call, &o);
  return is_empty(&a) ? 0 : work_bytes(call, &a) + (a.back ? w_bytes(call, &a) : 0);
}

/* w as the gradients' products read it, {gates u, u}: column by column it would be read in single elements. */
static flow_status turn_w(const flow_call *call, const recurrent_operands *o, void *to)
{
  const flow_operand *w = &call->inputs[o->w - 1];
  const int64_t shape[2] = { w->shape[1], w->shape[0] };
  return flow_cuda_move(call, flow_cuda_view_strided(w->data, w->dtype, 2, shape, (int64_t[]){ 1, w->shape[1] }),
                        flow_cuda_view_strided(to, w->dtype, 2, shape, (int64_t[]){ w->shape[0], 1 }), shape[0] * shape[1]);
}

/* One launch for the whole sequence: a block takes some rows of the batch through all steps, its threads waiting for each other between
 * turns. Rows do not depend on each other, so that blocks never wait for blocks. */
static flow_status run_blocks(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  const recurrent_operands o = operands_of(call);
  const int dtype = call->inputs[0].dtype;
  const flow_cuda_kernel kernel = dtype == FLOW_FLOAT32 ? CUDA_recurrent_float32 : dtype == FLOW_FLOAT16 ? CUDA_recurrent_float16 :
                                  dtype == FLOW_BFLOAT16 ? CUDA_recurrent_bfloat16 : CUDA_recurrent_float64;
  recurrent_arguments a = describe(call, &o);
  if (is_empty(&a)) return FLOW_OK;
  a.work = call->shared;
  if (a.back) {
    void *turned = (char *)call->shared + work_bytes(call, &a);
    FLOW_TRY(turn_w(call, &o, turned));
    a.w = turned;
  }
  a.together = reads_in_fours(a.w, a.units) && reads_in_fours(a.x, 4) && reads_in_fours(a.b, 4);
  int64_t products = a.steps * (a.cell == CELL_GRU_BEFORE ? 2 : 1) + a.back;
  if (products > (INT32_MAX - 1) / (2 * a.tiles))
    return flow_fail(FLOW_UNSUPPORTED, "%s: %lld steps are more than a launch can take: cut the sequence into shorter ones",
                     flow_cuda_op_name(call->op), (long long)a.steps);
  a.turns = (int)(1 + 2 * a.tiles * products);
  int rows = dtype == FLOW_FLOAT64 ? rows_of_block_other : rows_of_block_float32;
  return flow_cuda_launch(call, kernel, parts_of(a.rows, rows), &a, sizeof a);
}

/* ---- by products -------------------------------------------------------------------------------------------------------------- */

/* Estimated, not measured: beyond this size reading w from the second-level cache takes a block longer than two launches take. */
static const size_t most_w_bytes_of_block = (size_t)512 << 10;

/* What a step multiplies: forward the state {rows, u} by w {u, gates u}; backward the gates' gradients {rows, gates u} by the transpose
 * of w. Sums are float32 whatever the dtype. */
static flow_library_product formula_of(const flow_call *call, const recurrent_arguments *a, int aligned)
{
  flow_library_product p;
  const int dtype = call->inputs[0].dtype;
  memset(&p, 0, sizeof p);
  p.dtype = dtype;
  p.result_dtype = FLOW_FLOAT32;
  p.exact = call->exact != 0;
  p.transpose_b = a->back;
  p.m = a->rows;
  p.n = a->back ? a->units : a->gates * a->units;
  p.k = a->back ? a->gates * a->units : a->units;
  p.batch = 1;
  p.alignment = aligned ? FLOW_LIBRARY_ALIGNMENT : flow_dtype_size(dtype);
  return p;
}

static const flow_library_plan *plan_of(const flow_call *call, const recurrent_arguments *a, int aligned)
{
  const flow_library_product p = formula_of(call, a, aligned);
  return flow_library_plan_product(call, &p);
}

/* A gru with reset before its product needs two products a step, the second of which waits for the first one's gates: that is left to
 * blocks. */
static int products_support(const flow_call *call)
{
  const recurrent_operands o = operands_of(call);
  const recurrent_arguments a = describe(call, &o);
  const int dtype = call->inputs[0].dtype;
  if (dtype != FLOW_FLOAT32 && dtype != FLOW_FLOAT16 && dtype != FLOW_BFLOAT16) return 0;
  if (is_empty(&a) || a.steps == 0 || a.cell == CELL_GRU_BEFORE || w_bytes(call, &a) <= most_w_bytes_of_block) return 0;
  return plan_of(call, &a, 1) != NULL;
}

/* In the shared block: work, the sums of a step, the 16-bit floats of the next product, what the library needs. */
typedef struct products_layout { size_t sums, narrow, workspace, bytes; } products_layout;

static products_layout lay_out(const flow_call *call, const recurrent_arguments *a)
{
  const flow_library_plan *plan = plan_of(call, a, 1);
  const int64_t size = a->rows * a->units, width = size * a->gates;
  products_layout l = { .sums = work_bytes(call, a) };
  l.narrow = l.sums + (size_t)round_up((a->back ? size : width) * (int64_t)sizeof(float), ALIGNMENT);
  l.workspace = l.narrow;
  if (call->inputs[0].dtype != FLOW_FLOAT32) l.workspace += (size_t)round_up((a->back ? width : size) * 2, ALIGNMENT);
  l.bytes = l.workspace + (plan ? plan->workspace : 0);
  return l;
}

static size_t products_shared_bytes(const flow_call *call)
{
  const recurrent_operands o = operands_of(call);
  const recurrent_arguments a = describe(call, &o);
  return lay_out(call, &a).bytes;
}

static int is_aligned(const void *p) { return (uintptr_t)p % FLOW_LIBRARY_ALIGNMENT == 0; }

/* What the product of step or round s takes: the first state, the last round's gates. */
static const void *operand_of_product(const recurrent_arguments *a, int64_t s)
{
  if (!a->back && s == 0) return a->h;
  return a->narrow ? a->narrow : (const float *)a->work + product_of(a, s, 0).from;
}

/* Two launches a step: the library's product, then the cells. The gradient takes one more round than there are steps: the first one has
 * no product, since nothing comes back from after the last step; the last one only adds up the state's gradient. */
static flow_status run_products(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  const recurrent_operands o = operands_of(call);
  const int dtype = call->inputs[0].dtype;
  const flow_cuda_kernel kernel = dtype == FLOW_FLOAT32 ? CUDA_recurrent_cells_float32 : dtype == FLOW_FLOAT16 ?
                                  CUDA_recurrent_cells_float16 : CUDA_recurrent_cells_bfloat16;
  recurrent_arguments a = describe(call, &o);
  const products_layout l = lay_out(call, &a);
  char *memory = call->shared;
  void *sums = memory + l.sums;
  a.work = memory;
  if (dtype != FLOW_FLOAT32) a.narrow = memory + l.narrow;
  for (a.step = 0; a.step < a.steps + a.back; a.step++) {
    a.sums = a.back && a.step == 0 ? NULL : sums;
    if (a.sums) {
      const void *from = operand_of_product(&a, a.step);
      /* A plan for any address needs no workspace. */
      const flow_library_plan *plan = plan_of(call, &a, is_aligned(from) && is_aligned(a.w));
      if (!plan) return flow_fail(FLOW_INTERNAL, "%s: a product that has no plan is run", flow_cuda_op_name(call->op));
      FLOW_TRY(flow_library_multiply(call, plan, from, a.w, NULL, sums, memory + l.workspace));
    }
    FLOW_TRY(flow_cuda_launch(call, kernel, a.rows * a.units, &a, sizeof a));
  }
  return FLOW_OK;
}

#define KERNELS(op)                                                                                                              \
  const flow_kernel flow_cuda_##op##_kernels[] = {                                                                               \
    { .variant = "products", .supports = products_support, .shared_bytes = products_shared_bytes, .run = run_products },         \
    { .variant = "blocks", .shared_bytes = blocks_shared_bytes, .run = run_blocks }, { 0 } };
KERNELS(simple_rnn)
KERNELS(simple_rnn_gradient)
KERNELS(lstm)
KERNELS(lstm_gradient)
KERNELS(gru)
KERNELS(gru_gradient)
