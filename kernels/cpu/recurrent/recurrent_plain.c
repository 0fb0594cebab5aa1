/* recurrent_plain.c: see recurrent_plain.h; the formulas are those of recurrent.c and recurrent_gradient.c. */
#include "cpu/operand.h"
#include "cpu/recurrent/recurrent_plain.h"

#include <math.h>

#include "cpu/recurrent/recurrent.h"

/* Some outputs are not wanted. */
static void put(const flow_operand *x, int64_t i, double value)
{
  if (x->data) operand_put(x, i, value);
}

/* One row on its way: h and c (of gradients: their gradients), the gates p, and what else a step needs. */
typedef struct state { const flow_call *call; recurrent r; int64_t row, t, s; double *h, *c, *p; } state;

/* A row of h, one of c, and up to four of gates. */
size_t FLOW_ISA_NAME(plain_recurrent_scratch_bytes)(const flow_call *call)
{
  recurrent r = recurrent_of(call);
  return (size_t)r.units * 6 * sizeof(double);
}

/* The same formula as that of the op sigmoid in double. */
static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

/* Element j of this row and step of an operand {n, t, width}. */
static int64_t index_of(const state *s, int64_t width, int64_t j) { return (s->row * s->r.steps + s->t) * width + j; }

/* Element j of the state before this step: of a sequence {n, t, width}, at `offset`, or, before all, of {n, u}. */
static double before(const state *s, const flow_operand *sequence, const flow_operand *initial, int64_t width, int64_t offset, int64_t j)
{
  if (s->s == 0) return operand_get(initial, s->row * s->r.units + j);
  return operand_get(sequence, (s->row * s->r.steps + step_at(&s->r, s->s - 1)) * width + offset + j);
}

/* to[j] += sum over k of from[k] w[k][first + j], or, back, of from[j] w[k][first + j] to to[k]. */
static void multiply_row(const state *s, int back, const double *from, int64_t first, int64_t columns, double *to)
{
  const flow_operand *w = &s->call->inputs[s->r.cell.w];
  int64_t units = s->r.units, ldw = s->r.cell.gates * units;
  for (int64_t k = 0; k < units; k++) {
    for (int64_t j = 0; j < columns; j++) {
      double weight = operand_get(w, k * ldw + first + j);
      if (back) to[k] += from[j] * weight;
      else to[j] += from[k] * weight;
    }
  }
}

/* ---- forward ------------------------------------------------------------------------------------------------------------------ */

/* h = tanh(x + h . w). kept: the mask keeps the state. */
static void simple_rnn_step(const state *s, int kept)
{
  int64_t u = s->r.units;
  for (int64_t j = 0; j < u; j++) s->p[j] = operand_get(&s->call->inputs[0], index_of(s, u, j));
  multiply_row(s, 0, s->h, 0, u, s->p);
  for (int64_t j = 0; j < u && !kept; j++) s->h[j] = tanh(s->p[j]);
}

/* Gates i, f, g, o in Keras' order: c = f c + i g, h = o tanh(c) (Hochreiter and Schmidhuber 1997, with the forget gate). kept: the mask
 * keeps the state. */
static void lstm_step(const state *s, int kept)
{
  int64_t u = s->r.units;
  const flow_operand *history = &s->call->outputs[2];
  for (int64_t j = 0; j < 4 * u; j++) s->p[j] = operand_get(&s->call->inputs[0], index_of(s, 4 * u, j));
  multiply_row(s, 0, s->h, 0, 4 * u, s->p);
  for (int64_t j = 0; j < u; j++) {
    double i = sigmoid(s->p[j]), f = sigmoid(s->p[u + j]), g = tanh(s->p[2 * u + j]), o = sigmoid(s->p[3 * u + j]);
    double c = f * s->c[j] + i * g;
    if (!kept) {
      s->c[j] = c;
      s->h[j] = o * tanh(c);
    }
    const double values[5] = { i, f, g, o, s->c[j] };
    for (int k = 0; k < 5 && s->call->attributes->recurrent.history; k++) put(history, index_of(s, 5 * u, k * u + j), values[k]);
  }
}

/* Gates z, r and the candidate k: h = z h + (1 - z) k, with r before (Cho et al. 2014) or after the candidate's product with h (Keras'
 * default). */
static void gru_step(const state *s, int kept)
{
  int64_t u = s->r.units;
  int after = !s->r.resets_before;
  for (int64_t j = 0; j < 3 * u; j++) s->p[j] = after ? operand_get(&s->call->inputs[3], j) : 0;
  multiply_row(s, 0, s->h, 0, after ? 3 * u : 2 * u, s->p);
  for (int64_t j = 0; j < 2 * u; j++) s->p[j] = sigmoid(s->p[j] + operand_get(&s->call->inputs[0], index_of(s, 3 * u, j)));
  for (int64_t j = 0; j < u; j++) s->c[j] = after ? s->p[2 * u + j] : s->p[u + j] * s->h[j];
  if (!after) multiply_row(s, 0, s->c, 2 * u, u, s->p + 2 * u);
  for (int64_t j = 0; j < u; j++) {
    double z = s->p[j], r = s->p[u + j], inner = s->p[2 * u + j];
    double k = tanh(operand_get(&s->call->inputs[0], index_of(s, 3 * u, 2 * u + j)) + (after ? r * inner : inner));
    const double values[4] = { z, r, k, s->c[j] };
    for (int v = 0; v < 4 && s->call->attributes->recurrent.history; v++)
      put(&s->call->outputs[1], index_of(s, 4 * u, v * u + j), values[v]);
    if (!kept) s->h[j] = z * s->h[j] + (1 - z) * k;
  }
}

/* ---- back: h and c are gradients ------------------------------------------------------------------------------------------------ */

/* The derivative of tanh from its value: 1 - h^2. A kept step passes dh on and has no gradient of its own. */
static void simple_rnn_back(const state *s, int kept)
{
  int64_t u = s->r.units;
  for (int64_t j = 0; j < u; j++) {
    double y = operand_get(&s->call->inputs[2], index_of(s, u, j));
    s->p[j] = kept ? 0 : s->h[j] * (1 - y * y);
    if (!kept) s->h[j] = 0;
    put(&s->call->outputs[0], index_of(s, u, j), s->p[j]);
  }
  multiply_row(s, 1, s->p, 0, u, s->h);
}

/* The derivative of lstm_step, from the history: gradients of the gates' inputs, of c, and of h by the product with w. */
static void lstm_back(const state *s, int kept)
{
  int64_t u = s->r.units;
  const flow_operand *history = &s->call->inputs[4];
  for (int64_t j = 0; j < u; j++) {
    double v[5];
    for (int k = 0; k < 5; k++) v[k] = operand_get(history, index_of(s, 5 * u, k * u + j));
    double i = v[0], f = v[1], g = v[2], o = v[3], c = tanh(v[4]), above = s->h[j], through = s->c[j] + above * o * (1 - c * c);
    double c_before = before(s, history, &s->call->inputs[3], 5 * u, 4 * u, j);
    s->p[j] = kept ? 0 : through * g * i * (1 - i);
    s->p[u + j] = kept ? 0 : through * c_before * f * (1 - f);
    s->p[2 * u + j] = kept ? 0 : through * i * (1 - g * g);
    s->p[3 * u + j] = kept ? 0 : above * c * o * (1 - o);
    if (kept) continue;
    s->c[j] = through * f;
    s->h[j] = 0;
  }
  for (int64_t j = 0; j < 4 * u; j++) put(&s->call->outputs[0], index_of(s, 4 * u, j), s->p[j]);
  multiply_row(s, 1, s->p, 0, 4 * u, s->h);
}

/* One step of the gradient, backwards: gates and candidate from the history, dh in s->h, which becomes that of the step before. kept:
 * the mask keeps the state, and only dh goes through. */
static void gru_back(const state *s, int kept)
{
  int64_t u = s->r.units;
  int after = !s->r.resets_before;
  const flow_operand *history = &s->call->inputs[4];
  for (int64_t j = 0; j < u; j++) {
    double z = operand_get(history, index_of(s, 4 * u, j)), r = operand_get(history, index_of(s, 4 * u, u + j));
    double k = operand_get(history, index_of(s, 4 * u, 2 * u + j));
    double h = before(s, &s->call->inputs[3], &s->call->inputs[2], u, 0, j), dk = s->h[j] * (1 - z) * (1 - k * k);
    s->p[j] = kept ? 0 : s->h[j] * (h - k) * z * (1 - z);
    s->p[u + j] = kept ? 0 : dk * operand_get(history, index_of(s, 4 * u, 3 * u + j)) * r * (1 - r);      /* reset_after */
    s->p[2 * u + j] = kept ? 0 : dk;
    s->c[j] = 0;
  }
  if (!after) multiply_row(s, 1, s->p + 2 * u, 2 * u, u, s->c);
  for (int64_t j = 0; j < u; j++) {
    double z = operand_get(history, index_of(s, 4 * u, j)), r = operand_get(history, index_of(s, 4 * u, u + j));
    if (!after && !kept) s->p[u + j] = s->c[j] * before(s, &s->call->inputs[3], &s->call->inputs[2], u, 0, j) * r * (1 - r);
    for (int64_t gate = 0; gate < 3; gate++) put(&s->call->outputs[0], index_of(s, 3 * u, gate * u + j), s->p[gate * u + j]);
    if (after) s->p[2 * u + j] *= r;
    for (int64_t gate = 0; gate < 3 && after; gate++) put(&s->call->outputs[2], index_of(s, 3 * u, gate * u + j), s->p[gate * u + j]);
    if (!kept) s->h[j] = s->h[j] * z + (after ? 0 : s->c[j] * r);
  }
  multiply_row(s, 1, s->p, 0, after ? 3 * u : 2 * u, s->h);
}

/* ---- all steps ---------------------------------------------------------------------------------------------------------------- */

typedef void step_function(const state *s, int kept);

/* One step of the op, forward or back. */
static step_function *step_of(int op)
{
  return op == FLOW_OP_lstm ? lstm_step : op == FLOW_OP_lstm_gradient ? lstm_back : op == FLOW_OP_gru ? gru_step :
         op == FLOW_OP_gru_gradient ? gru_back : op == FLOW_OP_simple_rnn ? simple_rnn_step : simple_rnn_back;
}

/* All steps of one row, forward or back. h and c begin with the initial state, or, back, with zeros and the gradient of the last c. */
static void run_row(state *s)
{
  const flow_call *call = s->call;
  const int back = s->r.cell.transposed, has_c = s->r.cell.gates == 4;
  const int64_t u = s->r.units;
  for (int64_t j = 0; j < u; j++) {
    s->h[j] = back ? 0 : operand_get(&call->inputs[2], s->row * u + j);
    s->c[j] = has_c ? operand_get(&call->inputs[back ? 1 : 3], s->row * u + j) : 0;
  }
  for (int64_t i = 0; i < s->r.steps; i++) {
    s->s = back ? s->r.steps - 1 - i : i;
    s->t = step_at(&s->r, s->s);
    for (int64_t j = 0; j < u && back; j++) s->h[j] += operand_get(&call->inputs[0], index_of(s, u, j));
    step_of(call->op)(s, is_kept(&s->r, s->row, s->t));
    for (int64_t j = 0; j < u && !back; j++) put(&call->outputs[0], index_of(s, u, j), s->h[j]);
  }
  for (int64_t j = 0; j < u; j++) {
    if (back) put(&call->outputs[1], s->row * u + j, s->h[j]);
    if (has_c) put(&call->outputs[back ? 2 : 1], s->row * u + j, s->c[j]);
  }
}

flow_status FLOW_ISA_NAME(plain_recurrent)(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase; (void)begin; (void)end;
  state s = { .call = call, .r = recurrent_of(call), .h = call->scratch };
  s.c = s.h + s.r.units;
  s.p = s.c + s.r.units;
  for (s.row = 0; s.row < s.r.rows; s.row++) run_row(&s);
  return FLOW_OK;
}
