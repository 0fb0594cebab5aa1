/* recurrent.c: simple_rnn, lstm and gru over all steps: x {n, t, gates * u} holds what the input adds to the gates.
 *   simple_rnn  h = tanh(x + h . w)
 *   lstm        i, f, g, o = sigmoid, sigmoid, tanh, sigmoid of x + h . w;  c = f c + i g;  h = o tanh(c)    (Hochreiter, Schmidhuber 1997)
 *   gru         z, r = sigmoid of x + h . w + b;  k = tanh(x + r (h . w + b)), or tanh(x + (r h) . w);  h = z h + (1 - z) k
 *               (Cho et al. 2014)
 * A step whose mask is 0 leaves h and c unchanged. Variants: blocks (float32, recurrent.h), bfloat16 (the same with rounded products),
 * plain (recurrent_plain.c). */
#include "cpu/elementwise/fetch.h"
#include "cpu/recurrent/recurrent.h"
#include "cpu/recurrent/recurrent_plain.h"

/* ---- cells: one step -------------------------------------------------------------------------------------------------------- */

/* Some units of a row in one step: [begin, end), from which a vector begins to which one ends. The products of gate k are at gates[k],
 * which counts units from 0 too; h goes from `old` to `h`, which may be the same memory. */
typedef struct span {
  int64_t begin, end;
  const float *gates[4];
  const float *old;
  float *h, *c;
} span;

/* A kept row (its mask is 0) keeps h; its product is computed all the same, since a tile has several rows. */
static void keep_units(const span *u)
{
  if (u->old != u->h) copy_floats(u->h + u->begin, u->old + u->begin, u->end - u->begin);
}

/* h = tanh(x + h . w) for the units of the span. */
static void simple_rnn_units(const flow_call *call, const block *b, int64_t t, int64_t row, const span *u)
{
  const float *x = at(b, &call->inputs[0], row, t, b->r.units);
  if (is_kept(&b->r, b->first + row, t)) {
    keep_units(u);
    return;
  }
  for (int64_t j = u->begin; j < u->end; j += VL) {
    int64_t lanes = u->end - j;
    vf_store_lanes(u->h + j, vf_tanh(vf_load(u->gates[0] + j) + load_lanes(x + j, lanes)), lanes);
  }
}

/* With a history, outputs[2] {n, t, 5 u} gets i, f, g, o and the new c of each step: what the gradient needs, so that it computes no
 * sigmoid again. For a kept row the c is the old one. */
static void lstm_units(const flow_call *call, const block *b, int64_t t, int64_t row, const span *u)
{
  const int64_t units = b->r.units;
  const int kept = is_kept(&b->r, b->first + row, t);
  const float *x = at(b, &call->inputs[0], row, t, 4 * units);
  float *history = call->attributes->recurrent.history ? at(b, &call->outputs[2], row, t, 5 * units) : NULL, *c = u->c;
  for (int64_t j = u->begin; j < u->end; j += VL) {
    int64_t lanes = u->end - j;
    vf i = vf_sigmoid(vf_load(u->gates[0] + j) + load_lanes(x + j, lanes));
    vf f = vf_sigmoid(vf_load(u->gates[1] + j) + load_lanes(x + units + j, lanes));
    vf g = vf_tanh(vf_load(u->gates[2] + j) + load_lanes(x + 2 * units + j, lanes));
    vf o = vf_sigmoid(vf_load(u->gates[3] + j) + load_lanes(x + 3 * units + j, lanes));
    vf next = f * vf_load(c + j) + i * g;
    if (history) {
      vf_store_lanes(history + j, i, lanes);
      vf_store_lanes(history + units + j, f, lanes);
      vf_store_lanes(history + 2 * units + j, g, lanes);
      vf_store_lanes(history + 3 * units + j, o, lanes);
      vf_store_lanes(history + 4 * units + j, kept ? vf_load(c + j) : next, lanes);
    }
    if (kept) continue;
    vf_store_lanes(c + j, next, lanes);
    vf_store_lanes(u->h + j, o * vf_tanh(next), lanes);
  }
  if (kept) keep_units(u);
}

/* The candidate's gate from r (h . w + b). */
static void gru_units(const flow_call *call, const block *b, int64_t t, int64_t row, const span *u)
{
  const int64_t units = b->r.units;
  float *history = call->attributes->recurrent.history ? at(b, &call->outputs[1], row, t, 4 * units) : NULL;
  const float *x = at(b, &call->inputs[0], row, t, 3 * units), *bias = call->inputs[3].data;
  const int kept = is_kept(&b->r, b->first + row, t);
  for (int64_t j = u->begin; j < u->end; j += VL) {
    int64_t lanes = u->end - j;
    vf z = vf_sigmoid(load_lanes(x + j, lanes) + (vf_load(u->gates[0] + j) + load_lanes(bias + j, lanes)));
    vf r = vf_sigmoid(load_lanes(x + units + j, lanes) + (vf_load(u->gates[1] + j) + load_lanes(bias + units + j, lanes)));
    vf inner = vf_load(u->gates[2] + j) + load_lanes(bias + 2 * units + j, lanes);
    vf k = vf_tanh(load_lanes(x + 2 * units + j, lanes) + r * inner);
    if (history) {
      vf_store_lanes(history + j, z, lanes);
      vf_store_lanes(history + units + j, r, lanes);
      vf_store_lanes(history + 2 * units + j, k, lanes);
      vf_store_lanes(history + 3 * units + j, inner, lanes);
    }
    if (!kept) vf_store_lanes(u->h + j, z * vf_load(u->old + j) + (vf_set(1.0f) - z) * k, lanes);
  }
  if (kept) keep_units(u);
}

typedef void cell(const flow_call *call, const block *b, int64_t t, int64_t row, const span *u);

/* What makes all units from one product of h. NULL: gru without reset_after, whose candidate waits for the reset of all units. */
static cell *cell_function(const flow_call *call)
{
  if (call->op == FLOW_OP_lstm) return lstm_units;
  if (call->op == FLOW_OP_simple_rnn) return simple_rnn_units;
  return call->attributes->recurrent.reset_after ? gru_units : NULL;
}

/* One step of a block, whose products of all gates are made at once. */
static void step_at_once(const flow_call *call, const block *b, int64_t t, cell *units)
{
  /* Rows of x lie a sequence apart, which the processor's prefetchers do not see coming: each is asked for one row ahead. */
  const int64_t gates = b->r.cell.gates * b->r.units;
  region ahead = { at(b, &call->inputs[0], 0, t, gates), b->r.steps * gates, b->rows, gates, 1 };
  fetch_some(&ahead);
  /* All rows of the block at once: each panel of w is read once in a step for the whole block. */
  multiply(&b->w, 0, b->rows, b->h, b->state, b->p, b->width, b->stack);
  for (int64_t row = 0; row < b->rows; row++) {
    float *h = b->h + row * b->state;
    span u = { .end = b->r.units, .old = h, .h = h, .c = b->c + row * b->state };
    for (int k = 0; k < b->r.cell.gates; k++) u.gates[k] = b->p + row * b->width + k * b->r.units;
    fetch_some(&ahead);
    units(call, b, t, row, &u);
  }
}

/* p = x. */
static void take_x(const flow_call *call, const block *b, int64_t t)
{
  int64_t gates = b->r.cell.gates * b->r.units;
  for (int64_t i = 0; i < b->rows; i++) copy_floats(b->p + i * b->width, at(b, &call->inputs[0], i, t, gates), gates);
}

/* p becomes z and r, c becomes r h. */
static void gru_reset(const block *b, int64_t row)
{
  const int64_t units = b->r.units;
  float *p = b->p + row * b->width, *c = b->c + row * b->state;
  const float *h = b->h + row * b->state;
  for (int64_t j = 0; j < units; j += VL) vf_store_lanes(p + j, vf_sigmoid(vf_load(p + j)), units - j);
  for (int64_t j = 0; j < units; j += VL) {
    vf r = vf_sigmoid(vf_load(p + units + j));
    vf_store_lanes(p + units + j, r, units - j);
    vf_store_lanes(c + j, r * vf_load(h + j), units - j);
  }
}

/* The candidate's gate from (r h) . w, which is in p. */
static void gru_before(const flow_call *call, const block *b, int64_t t, int64_t row)
{
  const int64_t units = b->r.units;
  float *h = b->h + row * b->state;
  float *history = call->attributes->recurrent.history ? at(b, &call->outputs[1], row, t, 4 * units) : NULL;
  const float *p = b->p + row * b->width, *c = b->c + row * b->state;
  const int kept = is_kept(&b->r, b->first + row, t);
  if (history) copy_floats(history, p, 2 * units), copy_floats(history + 3 * units, c, units);
  for (int64_t j = 0; j < units; j += VL) {
    int64_t lanes = units - j;
    vf z = vf_load(p + j), k = vf_tanh(vf_load(p + 2 * units + j));
    if (history) vf_store_lanes(history + 2 * units + j, k, lanes);
    if (!kept) vf_store_lanes(h + j, z * vf_load(h + j) + (vf_set(1.0f) - z) * k, lanes);
  }
}

/* One step of a gru whose reset comes before the candidate's product. p begins with x; the product for z and r comes first, then, of r h,
 * which is kept in b->c, that of the candidate. */
static void step_in_two(const flow_call *call, const block *b, int64_t t)
{
  take_x(call, b, t);
  multiply(&b->w, 1, b->rows, b->h, b->state, b->p, b->width, b->stack);
  for (int64_t row = 0; row < b->rows; row++) gru_reset(b, row);
  multiply(&b->candidate, 1, b->rows, b->c, b->state, b->p + 2 * b->r.units, b->width, b->stack);
  for (int64_t row = 0; row < b->rows; row++) gru_before(call, b, t, row);
}

/* ---- all steps ---------------------------------------------------------------------------------------------------------------- */

/* Phase 0 packs w; phase 1 takes blocks of rows through all steps. After each step h is written to the sequence. */
static flow_status run(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  const int is_lstm = call->op == FLOW_OP_lstm;
  cell *units = cell_function(call);
  block b = block_of(call);
  for (int64_t part = begin; part < end; part++) {
    if (phase == 0) {
      pack_part(call, &b, part);
      continue;
    }
    start_block(call, &b, part, &call->inputs[2], is_lstm ? &call->inputs[3] : NULL);
    for (int64_t s = 0; s < b.r.steps; s++) {
      int64_t t = step_at(&b.r, s);
      if (units) step_at_once(call, &b, t, units);
      else step_in_two(call, &b, t);
      for (int64_t i = 0; i < b.rows && call->outputs[0].data; i++)
        copy_floats(at(&b, &call->outputs[0], i, t, b.r.units), b.h + i * b.state, b.r.units);
    }
    if (is_lstm) give_state(&b, &call->outputs[1], b.c);
  }
  return FLOW_OK;
}

/* ---- the same in rounds, by units --------------------------------------------------------------------------------------------- */

/* Where there is one block of rows, one member would do all steps, and read all of w in each: more than its first-level cache holds. In
 * rounds members divide the units of each step instead, a panel of units a part, and find their panels of w in their own caches. Round 0
 * brings the first states, round s + 1 makes step s. h is there twice, since all parts of a step read the old one while they make the new
 * one. A step of fewer multiply-adds is done before members have met. */
enum { LEAST_IN_A_ROUND = 48 << 10 };

/* Rounds of a call. 0: there are several blocks of rows, or units are not two whole panels or more, or a step is too short. */
static int64_t count_rounds(const flow_call *call)
{
  recurrent r = recurrent_of(call);
  int64_t work = r.rows * r.units * r.units * r.cell.gates;
  if (r.rows == 0 || r.steps == 0 || r.rows > TILE_ROWS || r.units % PANEL || r.units == PANEL || work < LEAST_IN_A_ROUND) return 0;
  return cell_function(call) && !is_rounded(call) ? r.steps + 1 : 0;
}

/* A panel of units a part. */
static int64_t count_round_parts(const flow_call *call)
{
  return recurrent_of(call).units / PANEL;
}

/* Round 0 of a part: its units of the first states, from inputs {n, u}. */
static void start_units(const flow_call *call, const block *b, int64_t first)
{
  const flow_operand *h = &call->inputs[2], *c = call->op == FLOW_OP_lstm ? &call->inputs[3] : NULL;
  for (int64_t i = 0; i < b->rows; i++) {
    copy_floats(b->h + i * b->state + first, (const float *)h->data + i * b->r.units + first, PANEL);
    if (c) copy_floats(b->c + i * b->state + first, (const float *)c->data + i * b->r.units + first, PANEL);
  }
}

/* One panel of units in one step. The pointers of a span count units from 0, so that they may point before the panel's own floats; only
 * units from `first` on are read and written. */
static flow_status run_round(const flow_call *call, int64_t round, int64_t part)
{
  block b = block_of(call);
  const int64_t first = part * PANEL, units = b.r.units, s = round - 1, t = step_at(&b.r, s), each = TILE_ROWS * b.state;
  float *states = shared_states(call, &b);
  b.rows = b.r.rows;
  b.c = states + 2 * each;
  b.h = round == 0 ? states : states + (s & 1) * each;
  if (round == 0) {
    start_units(call, &b, first);
    return FLOW_OK;
  }
  float *next = states + (round & 1) * each, *p = call->scratch;
  /* The columns of gate k that belong to this part's units are one panel of w, since units is a multiple of PANEL: count_rounds() saw to
   * that. */
  const epilogue e = { .add = 0 };
  for (int k = 0; k < b.r.cell.gates; k++)
    tiles[b.rows][0](units, b.h, b.state, NULL, 0, b.w.panels + (k * units + first) / PANEL * panel_floats(&b.w), p + k * TILE_ROWS * PANEL,
                     PANEL, &e);
  for (int64_t i = 0; i < b.rows; i++) {
    span u = { .begin = first, .end = first + PANEL, .old = b.h + i * b.state, .h = next + i * b.state, .c = b.c + i * b.state };
    for (int k = 0; k < b.r.cell.gates; k++) u.gates[k] = p + (k * TILE_ROWS + i) * PANEL - first;
    cell_function(call)(call, &b, t, i, &u);
    if (call->outputs[0].data) copy_floats(at(&b, &call->outputs[0], i, t, units) + first, u.h + first, PANEL);
    if (call->op == FLOW_OP_lstm && round == b.r.steps && call->outputs[1].data)
      copy_floats((float *)call->outputs[1].data + i * units + first, u.c + first, PANEL);
  }
  return FLOW_OK;
}

/* Phase 0 reads w alone. */
#define CELL(name) \
  BLOCKS(name, run, .first_phase_reads = 1 << 1, .rounds = count_rounds, .round_parts = count_round_parts, .run_round = run_round)

const flow_kernel FLOW_KERNELS(simple_rnn)[] = { CELL(blocks), CELL(bfloat16), PLAIN, { 0 } };
const flow_kernel FLOW_KERNELS(lstm)[] = { CELL(blocks), CELL(bfloat16), PLAIN, { 0 } };
const flow_kernel FLOW_KERNELS(gru)[] = { CELL(blocks), CELL(bfloat16), PLAIN, { 0 } };
