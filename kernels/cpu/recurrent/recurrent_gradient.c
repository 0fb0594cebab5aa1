/* recurrent_gradient.c: simple_rnn_gradient, lstm_gradient and gru_gradient: from the last step back to the first, with the formulas of
 * recurrent.c differentiated. Of a block h and c are the gradients of the state, p those of the gates before their activations, which are
 * dx {n, t, gates * u}; the gradient of w is made of dx by one product, elsewhere. Variants as there. The forward ops have kept what the
 * formulas need, a history for each step: activations, not sums, since sigmoid and tanh have derivatives that follow from their values: y
 * (1 - y) and 1 - y^2. A block is some rows of the batch, which one thread takes through all steps: rows do not meet before the gradient of
 * w. */
#include "cpu/recurrent/recurrent.h"
#include "cpu/recurrent/recurrent_plain.h"

/* The state before the step that is done as number s: of row i, at `offset` of a sequence {n, t, width}, or, before all, of {n, u}. */
static const float *before(const block *b, const flow_operand *sequence, const flow_operand *initial, int64_t i, int64_t s, int64_t width,
                           int64_t offset)
{
  if (s == 0) return (const float *)initial->data + (b->first + i) * b->r.units;
  return at(b, sequence, i, step_at(&b->r, s - 1), width) + offset;
}

/* h += g of step t: what the sequence's own gradient adds to what flows back from the later step. */
static void add_gradient(const flow_call *call, const block *b, int64_t t)
{
  for (int64_t i = 0; i < b->rows; i++) {
    float *dh = b->h + i * b->state;
    const float *g = at(b, &call->inputs[0], i, t, b->r.units);
    for (int64_t j = 0; j < b->r.units; j += VL)
      vf_store_lanes(dh + j, vf_load(dh + j) + load_lanes(g + j, b->r.units - j), b->r.units - j);
  }
}

/* The gates' gradients p of this step into `output` {n, t, gates * u}, if it is read. */
static void give(const block *b, const flow_operand *output, int64_t t)
{
  int64_t width = b->r.cell.gates * b->r.units;
  for (int64_t i = 0; i < b->rows && output->data; i++) copy_floats(at(b, output, i, t, width), b->p + i * b->width, width);
}

/* ---- cells: one step back; h becomes what flows to the state before it ----------------------------------------- */

/* h = tanh(...): its derivative is 1 - h^2. Steps that the mask keeps pass dh on unchanged. dh, which has been used up, is cleared; the
 * product with the transposed weights then adds what flows to the state before. */
static void simple_rnn_back(const flow_call *call, const block *b, int64_t s)
{
  int64_t t = step_at(&b->r, s), units = b->r.units;
  for (int64_t i = 0; i < b->rows; i++) {
    float *dh = b->h + i * b->state, *d = b->p + i * b->width;
    const float *h = at(b, &call->inputs[2], i, t, units);
    if (is_kept(&b->r, b->first + i, t)) {
      memset(d, 0, (size_t)units * sizeof(float));
      continue;
    }
    for (int64_t j = 0; j < units; j += VL) {
      vf y = load_lanes(h + j, units - j);
      vf_store_lanes(d + j, vf_load(dh + j) * (vf_set(1.0f) - y * y), units - j);
    }
    memset(dh, 0, (size_t)units * sizeof(float));
  }
  give(b, &call->outputs[0], t);
  multiply(&b->w, 1, b->rows, b->p, b->width, b->h, b->state, b->stack);
}

/* With the history's i, f, g, o and c: `above` is the gradient of h, `through` that of c. dh is cleared before the product adds what
 * flows to the h before; a kept row has no gates' gradients, and its dh and dc flow on unchanged. */
static void lstm_back(const flow_call *call, const block *b, int64_t s)
{
  int64_t t = step_at(&b->r, s), units = b->r.units;
  const vf one = vf_set(1.0f);
  for (int64_t row = 0; row < b->rows; row++) {
    float *dh = b->h + row * b->state, *dc = b->c + row * b->state, *d = b->p + row * b->width;
    const float *history = at(b, &call->inputs[4], row, t, 5 * units);
    const float *c_before = before(b, &call->inputs[4], &call->inputs[3], row, s, 5 * units, 4 * units);
    if (is_kept(&b->r, b->first + row, t)) {
      memset(d, 0, (size_t)(4 * units) * sizeof(float));
      continue;
    }
    for (int64_t j = 0; j < units; j += VL) {
      int64_t lanes = units - j;
      vf i = load_lanes(history + j, lanes), f = load_lanes(history + units + j, lanes), g = load_lanes(history + 2 * units + j, lanes);
      vf o = load_lanes(history + 3 * units + j, lanes), c = vf_tanh(load_lanes(history + 4 * units + j, lanes));
      vf above = vf_load(dh + j), through = vf_load(dc + j) + above * o * (one - c * c);
      vf_store_lanes(d + j, through * g * i * (one - i), lanes);
      vf_store_lanes(d + units + j, through * load_lanes(c_before + j, lanes) * f * (one - f), lanes);
      vf_store_lanes(d + 2 * units + j, through * i * (one - g * g), lanes);
      vf_store_lanes(d + 3 * units + j, above * c * o * (one - o), lanes);
      vf_store_lanes(dc + j, through * f, lanes);
    }
    memset(dh, 0, (size_t)units * sizeof(float));
  }
  give(b, &call->outputs[0], t);
  multiply(&b->w, 1, b->rows, b->p, b->width, b->h, b->state, b->stack);
}

/* reset_after: x's gradient of the candidate is dk, that of its inner product dk r; so dx and the gates' gradients, which make the
 * gradients of w and b, are two outputs. */
static void gru_after_back(const flow_call *call, const block *b, int64_t s)
{
  int64_t t = step_at(&b->r, s), units = b->r.units;
  const vf one = vf_set(1.0f);
  for (int64_t row = 0; row < b->rows; row++) {
    float *dh = b->h + row * b->state, *d = b->p + row * b->width, *dx = at(b, &call->outputs[0], row, t, 3 * units);
    const float *history = at(b, &call->inputs[4], row, t, 4 * units);
    const float *h = before(b, &call->inputs[3], &call->inputs[2], row, s, units, 0);
    if (is_kept(&b->r, b->first + row, t)) {
      memset(d, 0, (size_t)(3 * units) * sizeof(float));
      if (dx) memset(dx, 0, (size_t)(3 * units) * sizeof(float));
      continue;
    }
    for (int64_t j = 0; j < units; j += VL) {
      int64_t lanes = units - j;
      vf z = load_lanes(history + j, lanes), r = load_lanes(history + units + j, lanes), k = load_lanes(history + 2 * units + j, lanes);
      vf g = vf_load(dh + j), dk = g * (one - z) * (one - k * k);
      vf dz = g * (load_lanes(h + j, lanes) - k) * z * (one - z), dr = dk * load_lanes(history + 3 * units + j, lanes) * r * (one - r);
      vf_store_lanes(d + j, dz, lanes);
      vf_store_lanes(d + units + j, dr, lanes);
      vf_store_lanes(d + 2 * units + j, dk * r, lanes);
      if (dx) {
        vf_store_lanes(dx + j, dz, lanes);
        vf_store_lanes(dx + units + j, dr, lanes);
        vf_store_lanes(dx + 2 * units + j, dk, lanes);
      }
      vf_store_lanes(dh + j, g * z, lanes);
    }
  }
  give(b, &call->outputs[2], t);
  multiply(&b->w, 1, b->rows, b->p, b->width, b->h, b->state, b->stack);
}

/* The candidate first; c = the gradient of r h, from which that of the reset gate follows. Two products, since the reset gate is applied to
 * h before its product with the candidate's weights: the gradient of r h has to be there before that of r. */
static void gru_before_back(const flow_call *call, const block *b, int64_t s)
{
  int64_t t = step_at(&b->r, s), units = b->r.units;
  const vf one = vf_set(1.0f);
  memset(b->c, 0, (size_t)(b->rows * b->state) * sizeof(float));
  for (int64_t row = 0; row < b->rows; row++) {
    const float *history = at(b, &call->inputs[4], row, t, 4 * units), *dh = b->h + row * b->state;
    float *d = b->p + row * b->width;
    const int kept = is_kept(&b->r, b->first + row, t);
    for (int64_t j = 0; j < units; j += VL) {
      vf z = load_lanes(history + j, units - j), k = load_lanes(history + 2 * units + j, units - j);
      vf_store_lanes(d + 2 * units + j, kept ? vf_set(0.0f) : vf_load(dh + j) * (one - z) * (one - k * k), units - j);
    }
  }
  multiply(&b->candidate, 1, b->rows, b->p + 2 * units, b->width, b->c, b->state, b->stack);
  for (int64_t row = 0; row < b->rows; row++) {
    const float *history = at(b, &call->inputs[4], row, t, 4 * units);
    const float *h = before(b, &call->inputs[3], &call->inputs[2], row, s, units, 0), *dc = b->c + row * b->state;
    float *d = b->p + row * b->width, *dh = b->h + row * b->state;
    if (is_kept(&b->r, b->first + row, t)) {
      memset(d, 0, (size_t)(2 * units) * sizeof(float));
      continue;
    }
    for (int64_t j = 0; j < units; j += VL) {
      int64_t lanes = units - j;
      vf z = load_lanes(history + j, lanes), r = load_lanes(history + units + j, lanes), k = load_lanes(history + 2 * units + j, lanes);
      vf g = vf_load(dh + j), state = load_lanes(h + j, lanes), through = vf_load(dc + j);
      vf_store_lanes(d + j, g * (state - k) * z * (one - z), lanes);
      vf_store_lanes(d + units + j, through * state * r * (one - r), lanes);
      vf_store_lanes(dh + j, g * z + through * r, lanes);
    }
  }
  give(b, &call->outputs[0], t);
  multiply(&b->w, 1, b->rows, b->p, b->width, b->h, b->state, b->stack);
}

/* ---- all steps ---------------------------------------------------------------------------------------------------------------- */

typedef void step_function(const flow_call *call, const block *b, int64_t s);

/* The functions have the same contract: h (and c) come in with the gradient of the state after step s, and leave with that of the state
 * before it. */
static step_function *step_of(const flow_call *call)
{
  if (call->op == FLOW_OP_lstm_gradient) return lstm_back;
  if (call->op == FLOW_OP_simple_rnn_gradient) return simple_rnn_back;
  return call->attributes->recurrent.reset_after ? gru_after_back : gru_before_back;
}

/* From the last step to the first. At the end h (and c) hold the gradients of the initial state. Phase 0 packs the transposed weights, once
 * for all blocks; phase 1 does the blocks. */
static flow_status run(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  const int is_lstm = call->op == FLOW_OP_lstm_gradient;
  step_function *step = step_of(call);
  block b = block_of(call);
  for (int64_t part = begin; part < end; part++) {
    if (phase == 0) {
      pack_part(call, &b, part);
      continue;
    }
    /* After the last step nothing flows back through h but the sequence's own gradient, which add_gradient() adds; the last c is an
     * output. */
    start_block(call, &b, part, NULL, is_lstm ? &call->inputs[1] : NULL);
    for (int64_t s = b.r.steps - 1; s >= 0; s--) {
      add_gradient(call, &b, step_at(&b.r, s));
      step(call, &b, s);
    }
    give_state(&b, &call->outputs[1], b.h);
    if (is_lstm) give_state(&b, &call->outputs[2], b.c);
  }
  return FLOW_OK;
}

const flow_kernel FLOW_KERNELS(simple_rnn_gradient)[] = { BLOCKS(blocks, run), BLOCKS(bfloat16, run), PLAIN, { 0 } };
const flow_kernel FLOW_KERNELS(lstm_gradient)[] = { BLOCKS(blocks, run), BLOCKS(bfloat16, run), PLAIN, { 0 } };
const flow_kernel FLOW_KERNELS(gru_gradient)[] = { BLOCKS(blocks, run), BLOCKS(bfloat16, run), PLAIN, { 0 } };
