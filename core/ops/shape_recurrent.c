/* shape_recurrent.c: shape rules of the recurrent cells: n rows, t steps, u units; gates are side by side in the last axis. */
#include "ops/rules.h"

typedef struct sizes { int dtype; int64_t rows, steps, units; } sizes;

/* x {n, t, gates * u} and w {u, gates * u}. */
static flow_status read_sizes(int op, int gates, const flow_signature *x, const flow_signature *w, sizes *s)
{
  FLOW_TRY(flow_rule_float(op, "x", x));
  FLOW_TRY(flow_rule_rank(op, "x", x, 3, "{batch, steps, gates}"));
  FLOW_TRY(flow_rule_rank(op, "w", w, 2, "{units, gates}"));
  *s = (sizes){ x->dtype, x->dims[0], x->dims[1], w->dims[0] };
  if (s->steps < 0 || s->units < 0) {
    return flow_rule_fail(op, "x %s and w %s depend on the number of rows beyond the batch, expected fixed sizes there",
                          flow_shape_text(x->rank, x->dims), flow_shape_text(w->rank, w->dims));
  }
  if (s->units > INT64_MAX / 8) return flow_rule_fail(op, "w %s is too large", flow_shape_text(w->rank, w->dims));
  int64_t w_dims[2] = { s->units, gates * s->units }, x_dims[3] = { s->rows, s->steps, gates * s->units };
  FLOW_TRY(flow_rule_same_dtype(op, "w", x->dtype, w));
  FLOW_TRY(flow_rule_dims(op, "w", w, 2, w_dims));
  return flow_rule_dims(op, "x", x, 3, x_dims);
}

static flow_status check(int op, const sizes *s, const char *what, const flow_signature *x, int rank, int64_t a, int64_t b, int64_t c)
{
  FLOW_TRY(flow_rule_same_dtype(op, what, s->dtype, x));
  return flow_rule_dims(op, what, x, rank, (int64_t[]){ a, b, c });
}

static flow_status check_state(int op, const sizes *s, const char *what, const flow_signature *x)
{
  return check(op, s, what, x, 2, s->rows, s->units, 0);
}

/* The last input, where it is there. */
static flow_status check_mask(int op, const sizes *s, const flow_signature *inputs, int input_count, int at)
{
  if (input_count <= at) return FLOW_OK;
  const flow_signature *mask = &inputs[at];
  if (mask->dtype != FLOW_BOOL) return flow_rule_fail(op, "the mask is %s, expected bool", flow_dtype_name(mask->dtype));
  return flow_rule_dims(op, "the mask", mask, 2, (int64_t[]){ s->rows, s->steps });
}

static flow_signature sequence_of(const sizes *s, int64_t width)
{
  return (flow_signature){ .dtype = s->dtype, .rank = 3, .dims = { s->rows, s->steps, width } };
}

static flow_signature state_of(const sizes *s)
{
  return (flow_signature){ .dtype = s->dtype, .rank = 2, .dims = { s->rows, s->units } };
}

/* What the gradient reads of each step, `parts` states wide; nothing where no gradient is asked for: then it is never written. */
static flow_signature history_of(const sizes *s, const flow_attributes *attributes, int64_t parts)
{
  return attributes->recurrent.history ? sequence_of(s, parts * s->units) : (flow_signature){ .dtype = s->dtype, .rank = 1, .dims = { 0 } };
}

/* The sizes follow from w {u, gates * u} and a gradient {n, t, u}. */
static flow_status read_gradient(int op, int gates, const flow_signature *g, const flow_signature *w, sizes *s)
{
  FLOW_TRY(flow_rule_float(op, "the gradient", g));
  FLOW_TRY(flow_rule_rank(op, "the gradient", g, 3, "{batch, steps, units}"));
  flow_signature x = *g;
  if (x.dims[2] > INT64_MAX / 8) return flow_rule_fail(op, "the gradient %s is too large", flow_shape_text(g->rank, g->dims));
  x.dims[2] *= gates;
  return read_sizes(op, gates, &x, w, s);
}

/* That what a rule gives can be addressed. */
static flow_status given(int op, const flow_signature *outputs, int count)
{
  flow_extent extent;
  for (int i = 0; i < count; i++) FLOW_TRY(flow_rule_extent(op, outputs[i].rank, outputs[i].dims, &extent));
  return FLOW_OK;
}

flow_status flow_shape_simple_rnn(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                  flow_signature *outputs)
{
  (void)attributes;
  sizes s;
  FLOW_TRY(read_sizes(op, 1, &inputs[0], &inputs[1], &s));
  FLOW_TRY(check_state(op, &s, "h", &inputs[2]));
  FLOW_TRY(check_mask(op, &s, inputs, input_count, 3));
  outputs[0] = inputs[0];
  return given(op, outputs, 1);
}

flow_status flow_shape_simple_rnn_gradient(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                           flow_signature *outputs)
{
  (void)attributes;
  sizes s;
  FLOW_TRY(read_gradient(op, 1, &inputs[0], &inputs[1], &s));
  FLOW_TRY(check(op, &s, "the sequence", &inputs[2], 3, s.rows, s.steps, s.units));
  FLOW_TRY(check_mask(op, &s, inputs, input_count, 3));
  outputs[0] = inputs[0];
  outputs[1] = state_of(&s);
  return given(op, outputs, 2);
}

flow_status flow_shape_lstm(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                            flow_signature *outputs)
{
  sizes s;
  FLOW_TRY(read_sizes(op, 4, &inputs[0], &inputs[1], &s));
  FLOW_TRY(check_state(op, &s, "h", &inputs[2]));
  FLOW_TRY(check_state(op, &s, "c", &inputs[3]));
  FLOW_TRY(check_mask(op, &s, inputs, input_count, 4));
  outputs[0] = sequence_of(&s, s.units);
  outputs[1] = state_of(&s);
  outputs[2] = history_of(&s, attributes, 5);
  return given(op, outputs, 3);
}

flow_status flow_shape_lstm_gradient(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                     flow_signature *outputs)
{
  (void)attributes;
  sizes s;
  FLOW_TRY(read_gradient(op, 4, &inputs[0], &inputs[2], &s));
  FLOW_TRY(check_state(op, &s, "the gradient of c", &inputs[1]));
  FLOW_TRY(check_state(op, &s, "c", &inputs[3]));
  FLOW_TRY(check(op, &s, "the history", &inputs[4], 3, s.rows, s.steps, 5 * s.units));
  FLOW_TRY(check_mask(op, &s, inputs, input_count, 5));
  outputs[0] = sequence_of(&s, 4 * s.units);
  outputs[1] = outputs[2] = state_of(&s);
  return given(op, outputs, 3);
}

flow_status flow_shape_gru(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                           flow_signature *outputs)
{
  sizes s;
  FLOW_TRY(read_sizes(op, 3, &inputs[0], &inputs[1], &s));
  FLOW_TRY(check_state(op, &s, "h", &inputs[2]));
  FLOW_TRY(check(op, &s, "b", &inputs[3], 1, 3 * s.units, 0, 0));
  FLOW_TRY(check_mask(op, &s, inputs, input_count, 4));
  outputs[0] = sequence_of(&s, s.units);
  outputs[1] = history_of(&s, attributes, 4);
  return given(op, outputs, 2);
}

flow_status flow_shape_gru_gradient(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                    flow_signature *outputs)
{
  sizes s;
  FLOW_TRY(read_gradient(op, 3, &inputs[0], &inputs[1], &s));
  FLOW_TRY(check_state(op, &s, "h", &inputs[2]));
  FLOW_TRY(check(op, &s, "the sequence", &inputs[3], 3, s.rows, s.steps, s.units));
  FLOW_TRY(check(op, &s, "the history", &inputs[4], 3, s.rows, s.steps, 4 * s.units));
  FLOW_TRY(check_mask(op, &s, inputs, input_count, 5));
  outputs[0] = sequence_of(&s, 3 * s.units);
  outputs[1] = state_of(&s);
  outputs[2] = attributes->recurrent.reset_after ? outputs[0] : (flow_signature){ .dtype = s.dtype, .rank = 1, .dims = { 0 } };
  return given(op, outputs, 3);
}

flow_status flow_shape_loop(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                            flow_signature *outputs)
{
  (void)attributes; (void)inputs; (void)input_count; (void)outputs;
  return flow_rule_fail(op, "flow_loop_end makes it, in a trace; outside of one call the function round by round");
}
