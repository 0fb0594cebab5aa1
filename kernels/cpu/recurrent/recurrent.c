/* recurrent.c: simple_rnn, lstm and gru over all steps: x {n, t, gates * u} holds what the input adds to the gates.
 *   simple_rnn  h = tanh(x + h . w)
 *   lstm        i, f, g, o = sigmoid, sigmoid, tanh, sigmoid of x + h . w;  c = f c + i g;  h = o tanh(c)    (Hochreiter, Schmidhuber 1997)
 *   gru         z, r = sigmoid of x + h . w + b;  k = tanh(x + r (h . w + b)), or tanh(x + (r h) . w);  h = z h + (1 - z) k
 *               (Cho et al. 2014)
 * A step whose mask is 0 leaves h and c as they are. Variants: blocks (float32, recurrent.h), bfloat16 (the same with rounded products),
 * plain (recurrent_plain.c). */
#include "cpu/recurrent/recurrent.h"
#include "cpu/recurrent/recurrent_plain.h"

/* ---- cells: one step -------------------------------------------------------------------------------------------------------- */

/* A kept row (its mask is 0) keeps h; its product is computed all the same, since a tile has several rows. */
static void simple_rnn_step(const flow_call *call, const block *b, int64_t t)
{
  multiply(&b->w, 0, b->rows, b->h, b->state, b->p, b->width, b->stack);
  for (int64_t i = 0; i < b->rows; i++) {
    if (is_kept(&b->r, b->first + i, t)) continue;
    float *h = b->h + i * b->state;
    const float *p = b->p + i * b->width, *x = at(b, &call->inputs[0], i, t, b->r.units);
    for (int64_t j = 0; j < b->r.units; j += VL) {
      int64_t lanes = b->r.units - j;
      store_lanes(h + j, vf_tanh(vf_load(p + j) + load_lanes(x + j, lanes)), lanes);
    }
  }
}

/* With a history, outputs[2] {n, t, 5 u} gets i, f, g, o and the new c of each step: what the gradient needs, so that it computes no
 * sigmoid again. For a kept row the c is the old one. */
static void lstm_step(const flow_call *call, const block *b, int64_t t)
{
  int64_t units = b->r.units;
  multiply(&b->w, 0, b->rows, b->h, b->state, b->p, b->width, b->stack);
  for (int64_t row = 0; row < b->rows; row++) {
    int kept = is_kept(&b->r, b->first + row, t);
    float *h = b->h + row * b->state, *c = b->c + row * b->state;
    float *history = call->attributes->recurrent.history ? at(b, &call->outputs[2], row, t, 5 * units) : NULL;
    const float *p = b->p + row * b->width, *x = at(b, &call->inputs[0], row, t, 4 * units);
    for (int64_t j = 0; j < units; j += VL) {
      int64_t lanes = units - j;
      vf i = vf_sigmoid(vf_load(p + j) + load_lanes(x + j, lanes));
      vf f = vf_sigmoid(vf_load(p + units + j) + load_lanes(x + units + j, lanes));
      vf g = vf_tanh(vf_load(p + 2 * units + j) + load_lanes(x + 2 * units + j, lanes));
      vf o = vf_sigmoid(vf_load(p + 3 * units + j) + load_lanes(x + 3 * units + j, lanes));
      vf next = f * vf_load(c + j) + i * g;
      if (history) {
        store_lanes(history + j, i, lanes);
        store_lanes(history + units + j, f, lanes);
        store_lanes(history + 2 * units + j, g, lanes);
        store_lanes(history + 3 * units + j, o, lanes);
        store_lanes(history + 4 * units + j, kept ? vf_load(c + j) : next, lanes);
      }
      if (kept) continue;
      store_lanes(c + j, next, lanes);
      store_lanes(h + j, o * vf_tanh(next), lanes);
    }
  }
}

/* The candidate's gate from r (h . w + b). */
static void gru_after(const flow_call *call, const block *b, int64_t t, int64_t row)
{
  const int64_t units = b->r.units;
  float *h = b->h + row * b->state;
  float *history = call->attributes->recurrent.history ? at(b, &call->outputs[1], row, t, 4 * units) : NULL;
  const float *p = b->p + row * b->width, *x = at(b, &call->inputs[0], row, t, 3 * units), *bias = call->inputs[3].data;
  const int kept = is_kept(&b->r, b->first + row, t);
  for (int64_t j = 0; j < units; j += VL) {
    int64_t lanes = units - j;
    vf z = vf_sigmoid(load_lanes(x + j, lanes) + (vf_load(p + j) + load_lanes(bias + j, lanes)));
    vf r = vf_sigmoid(load_lanes(x + units + j, lanes) + (vf_load(p + units + j) + load_lanes(bias + units + j, lanes)));
    vf inner = vf_load(p + 2 * units + j) + load_lanes(bias + 2 * units + j, lanes);
    vf k = vf_tanh(load_lanes(x + 2 * units + j, lanes) + r * inner);
    if (history) {
      store_lanes(history + j, z, lanes);
      store_lanes(history + units + j, r, lanes);
      store_lanes(history + 2 * units + j, k, lanes);
      store_lanes(history + 3 * units + j, inner, lanes);
    }
    if (!kept) store_lanes(h + j, z * vf_load(h + j) + (vf_set(1.0f) - z) * k, lanes);
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
  for (int64_t j = 0; j < units; j += VL) store_lanes(p + j, vf_sigmoid(vf_load(p + j)), units - j);
  for (int64_t j = 0; j < units; j += VL) {
    vf r = vf_sigmoid(vf_load(p + units + j));
    store_lanes(p + units + j, r, units - j);
    store_lanes(c + j, r * vf_load(h + j), units - j);
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
    if (history) store_lanes(history + 2 * units + j, k, lanes);
    if (!kept) store_lanes(h + j, z * vf_load(h + j) + (vf_set(1.0f) - z) * k, lanes);
  }
}

/* reset_after: one product h . w for all three gates, with x and b added later. Otherwise p begins with x; the product for z and r comes
 * first, then, of r h, which is kept in b->c, that of the candidate. */
static void gru_step(const flow_call *call, const block *b, int64_t t)
{
  const int after = call->attributes->recurrent.reset_after;
  if (!after) take_x(call, b, t);
  multiply(&b->w, !after, b->rows, b->h, b->state, b->p, b->width, b->stack);
  if (!after) {
    for (int64_t row = 0; row < b->rows; row++) gru_reset(b, row);
    multiply(&b->candidate, 1, b->rows, b->c, b->state, b->p + 2 * b->r.units, b->width, b->stack);
  }
  for (int64_t row = 0; row < b->rows; row++) {
    if (after) gru_after(call, b, t, row);
    else gru_before(call, b, t, row);
  }
}

/* ---- all steps ---------------------------------------------------------------------------------------------------------------- */

typedef void step_function(const flow_call *call, const block *b, int64_t t);

/* Phase 0 packs w; phase 1 takes blocks of rows through all steps. After each step h is written to the sequence. */
static flow_status run(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  const int is_lstm = call->op == FLOW_OP_lstm;
  step_function *step = is_lstm ? lstm_step : call->op == FLOW_OP_gru ? gru_step : simple_rnn_step;
  block b = block_of(call);
  for (int64_t part = begin; part < end; part++) {
    if (phase == 0) {
      pack_part(call, &b, part);
      continue;
    }
    start_block(call, &b, part, &call->inputs[2], is_lstm ? &call->inputs[3] : NULL);
    for (int64_t s = 0; s < b.r.steps; s++) {
      int64_t t = step_at(&b.r, s);
      step(call, &b, t);
      for (int64_t i = 0; i < b.rows && call->outputs[0].data; i++)
        copy_floats(at(&b, &call->outputs[0], i, t, b.r.units), b.h + i * b.state, b.r.units);
    }
    if (is_lstm) give_state(&b, &call->outputs[1], b.c);
  }
  return FLOW_OK;
}

const flow_kernel FLOW_KERNELS(simple_rnn)[] = { BLOCKS(blocks, run), BLOCKS(bfloat16, run), PLAIN, { 0 } };
const flow_kernel FLOW_KERNELS(lstm)[] = { BLOCKS(blocks, run), BLOCKS(bfloat16, run), PLAIN, { 0 } };
const flow_kernel FLOW_KERNELS(gru)[] = { BLOCKS(blocks, run), BLOCKS(bfloat16, run), PLAIN, { 0 } };
