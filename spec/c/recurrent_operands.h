/* recurrent_operands.h: what simple_rnn, lstm, gru and their gradients take and give, for tests of their kernels. Include a runner, which
 * has operand(), first. */
#ifndef FLOW_SPEC_RECURRENT_OPERANDS_H
#define FLOW_SPEC_RECURRENT_OPERANDS_H

typedef struct setting {
  int op, gates, rows, steps, units, dtype, masked, reset_after, unread;
} setting;

/* Inputs by what they are: s of {n, t, u}, x of {n, t, gates u}, w, h of {n, u}, b of {gates u}, 5 and 4: histories of that many parts. */
static inline const char *inputs_of(int op)
{
  return op == FLOW_OP_simple_rnn            ? "xwh"
         : op == FLOW_OP_simple_rnn_gradient ? "sws"
         : op == FLOW_OP_lstm                ? "xwhh"
         : op == FLOW_OP_lstm_gradient       ? "shwh5"
         : op == FLOW_OP_gru                 ? "xwhb"
                                             : "swhs4";
}

static inline const char *outputs_of(const setting *s)
{
  return s->op == FLOW_OP_simple_rnn            ? "s"
         : s->op == FLOW_OP_simple_rnn_gradient ? "xh"
         : s->op == FLOW_OP_lstm                ? "sh5"
         : s->op == FLOW_OP_lstm_gradient       ? "xhh"
         : s->op == FLOW_OP_gru                 ? "s4"
         : s->reset_after                       ? "xhx"
                                                : "xh0";
}

static inline flow_operand operand_for(const setting *s, char kind)
{
  const int n = s->rows, t = s->steps, u = s->units;
  switch (kind) {
  case 's': return operand(s->dtype, 3, n, t, u);
  case 'x': return operand(s->dtype, 3, n, t, s->gates * u);
  case 'w': return operand(s->dtype, 2, u, s->gates * u);
  case 'h': return operand(s->dtype, 2, n, u);
  case 'b': return operand(s->dtype, 1, s->gates * u);
  case '0': return operand(s->dtype, 1, 0);
  default: return operand(s->dtype, 3, n, t, (kind - '0') * u);
  }
}

/* Each op, with the two kinds of gru. */
static const struct {
  int op, gates, reset_after;
} recurrent_ops[] = {
  { FLOW_OP_simple_rnn, 1, 0 }, { FLOW_OP_simple_rnn_gradient, 1, 0 }, { FLOW_OP_lstm, 4, 0 }, { FLOW_OP_lstm_gradient, 4, 0 },
  { FLOW_OP_gru, 3, 0 },        { FLOW_OP_gru_gradient, 3, 0 },        { FLOW_OP_gru, 3, 1 },  { FLOW_OP_gru_gradient, 3, 1 }
};
enum { RECURRENT_OPS = sizeof recurrent_ops / sizeof recurrent_ops[0] };

#endif
