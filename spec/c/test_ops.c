/* test_ops.c: op records are complete, batch kinds follow the attributes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "autodiff/gradients.h"
#include "signatures.h"

/* ---- records ---------------------------------------------------------------------------------------------------- */

static void every_record_is_complete(void **state)
{
  (void)state;
  assert_int_equal(flow_op_count(), FLOW_OP_COUNT);
  for (int op = 0; op < FLOW_OP_COUNT; op++) {
    const flow_op_record *record = flow_op(op);
    assert_non_null(record->name);
    if (record->doc == NULL || record->doc[0] == 0) fail_msg("%s has no doc line", record->name);
    if (record->min_inputs < 0 || record->max_inputs < record->min_inputs) {
      fail_msg("%s: inputs %d to %d", record->name, record->min_inputs, record->max_inputs);
    }
    if (record->outputs < 0 || record->outputs > FLOW_MAX_OPERANDS) fail_msg("%s: %d outputs", record->name, record->outputs);
    int effect = (record->flags & FLOW_OP_EFFECT) != 0;
    if (effect != (record->outputs == 0)) fail_msg("%s: effects, and only they, have no outputs", record->name);
    if (effect && flow_gradient_of(op)) fail_msg("%s: an effect has no gradient", record->name);
    if (record->kind == FLOW_MAP && record->row_inputs == 0) fail_msg("%s is MAP without row inputs", record->name);
    if (record->kind == FLOW_WHOLE && record->row_inputs != 0) fail_msg("%s is WHOLE with row inputs", record->name);
    assert_int_equal(flow_op_find(record->name), op);   /* names are unique */
    assert_string_equal(flow_op_name(op), record->name);
    assert_string_equal(flow_op_doc(op), record->doc);
    assert_int_equal(flow_op_outputs(op), record->outputs);
  }
  assert_int_equal(flow_op_find("no_such_op"), -1);
  assert_int_equal(flow_op_find(NULL), -1);
  assert_null(flow_op_name(-1));
  assert_null(flow_op_doc(FLOW_OP_COUNT));
  assert_int_equal(flow_op_outputs(FLOW_OP_COUNT), -1);
}

/* An op without a gradient rule stops gradients silently, so each has to be meant. */
static void ops_without_gradient_are_meant(void **state)
{
  (void)state;
  static const int flat[] = {
    FLOW_OP_sign,
    FLOW_OP_floor,
    FLOW_OP_ceil,
    FLOW_OP_round,
    FLOW_OP_floor_divide, /* piecewise constant */
    FLOW_OP_logical_not,
    FLOW_OP_is_finite,
    FLOW_OP_eq,
    FLOW_OP_ne,
    FLOW_OP_lt,
    FLOW_OP_le,
    FLOW_OP_gt,
    FLOW_OP_ge,
    FLOW_OP_logical_and,
    FLOW_OP_logical_or,
    FLOW_OP_any,
    FLOW_OP_all,
    FLOW_OP_argmax,
    FLOW_OP_argmin,
    FLOW_OP_argsort, /* no float results */
    FLOW_OP_element_count,
    FLOW_OP_fill,
    FLOW_OP_sample_uniform,
    FLOW_OP_random_uniform,
    FLOW_OP_random_normal, /* no values read */
    FLOW_OP_random_truncated_normal,
    FLOW_OP_stop_gradient,
    FLOW_OP_fused,
    FLOW_OP_casts,
    FLOW_OP_transpose_filters,
    FLOW_OP_convolution_gradient_relu,
    FLOW_OP_separable_convolution,
    FLOW_OP_convolution_add,
    FLOW_OP_batch_norm_relu,
    FLOW_OP_gather_sum,
    FLOW_OP_gather_dense,
    FLOW_OP_attention,
    FLOW_OP_attention_gradient,
    FLOW_OP_layer_norm, /* made after gradients were taken */
    FLOW_OP_all_gather,
    FLOW_OP_global_rows,
    FLOW_OP_row_share, /* of counts */
    FLOW_OP_schedule,  /* of a count */
    FLOW_OP_assign,
    FLOW_OP_assign_add,
    FLOW_OP_sgd,
    FLOW_OP_adam,
    FLOW_OP_rmsprop,
    FLOW_OP_adagrad,
    FLOW_OP_adadelta,
    FLOW_OP_adamax, /* effects */
  };
  for (int op = 0; op < FLOW_OP_COUNT; op++) {
    int listed = 0;
    for (size_t i = 0; i < sizeof flat / sizeof flat[0]; i++) listed |= flat[i] == op;
    if (listed && flow_gradient_of(op)) fail_msg("%s has a gradient and is listed as having none", flow_op_name(op));
    if (!listed && !flow_gradient_of(op)) fail_msg("%s has no gradient and is not listed", flow_op_name(op));
  }
}

/* ---- batch kinds ------------------------------------------------------------------------------------------------ */

typedef struct kind_case { int op; flow_signature input; flow_attributes attributes; flow_batch_kind kind; } kind_case;

static void kinds_follow_the_attributes(void **state)
{
  (void)state;
  static const kind_case cases[] = {
    { FLOW_OP_sum, F(-1, 3), { .reduce = { .count = 1, .axes = { 1 } } }, FLOW_MAP },
    { FLOW_OP_sum, F(-1, 3), { .reduce = { .count = 1, .axes = { -1 } } }, FLOW_MAP },
    { FLOW_OP_sum, F(-1, 3), { .reduce = { .count = 1, .axes = { -2 } } }, FLOW_REDUCE },
    { FLOW_OP_sum, F(-1, 3), { .reduce = { .count = 0 } }, FLOW_REDUCE },
    { FLOW_OP_sum, SCALAR(FLOW_FLOAT32), { .reduce = { .count = 0 } }, FLOW_MAP },
    { FLOW_OP_max, F(-1, 3), { .reduce = { .count = 1, .axes = { 0 } } }, FLOW_WHOLE },
    { FLOW_OP_argmax, F(-1, 3), { .reduce = { .count = 1, .axes = { 1 } } }, FLOW_MAP },
    { FLOW_OP_softmax, F(-1, 3), { .axis = { -1 } }, FLOW_MAP },
    { FLOW_OP_softmax, F(-1), { .axis = { -1 } }, FLOW_WHOLE },
    { FLOW_OP_softmax, F(-1, 3), { .axis = { 0 } }, FLOW_WHOLE },
    { FLOW_OP_concat, F(-1, 3), { .axis = { -2 } }, FLOW_WHOLE },
    { FLOW_OP_concat, F(-1, 3), { .axis = { 1 } }, FLOW_MAP },
    { FLOW_OP_transpose, F(-1, 3, 4), { .transpose = { 3, { 0, 2, 1 } } }, FLOW_MAP },
    { FLOW_OP_transpose, F(-1, 3), { .transpose = { 2, { 1, 0 } } }, FLOW_WHOLE },
    { FLOW_OP_reshape, F(-1, 4, 8), TO(ANY, 8), FLOW_MAP },
    { FLOW_OP_reshape, F(-4, 8), TO(-1, 32), FLOW_MAP },
    { FLOW_OP_reshape, F(-1), TO(1, -1), FLOW_WHOLE },
    { FLOW_OP_reshape, F(-1, 4), TO(ANY, -1), FLOW_WHOLE },
    { FLOW_OP_reshape, F(3, 4), TO(12), FLOW_MAP },
    { FLOW_OP_slice, F(-1, 5), { .slice = { .rank = 2, .begin = { 0, 1 }, .end = { END, 3 }, .step = { 1, 1 } } }, FLOW_MAP },
    { FLOW_OP_slice, F(5, 5), { .slice = { .rank = 2, .end = { 5, 3 }, .step = { 1, 1 } } }, FLOW_MAP },
    { FLOW_OP_slice, F(5, 5), { .slice = { .rank = 2, .end = { 3, 5 }, .step = { 1, 1 } } }, FLOW_WHOLE },
    { FLOW_OP_slice, F(5), { .slice = { .rank = 1, .end = { 5 }, .step = { 2 } } }, FLOW_WHOLE },
    { FLOW_OP_slice_gradient, F(3), { .slice = { .rank = 1, .end = { 3 }, .step = { 1 }, .dims = { 5 } } }, FLOW_WHOLE },
    { FLOW_OP_slice_gradient, F(5, 2), { .slice = { .rank = 2, .end = { 5, 2 }, .step = { 1, 1 }, .dims = { 5, 4 } } }, FLOW_MAP },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const kind_case *c = &cases[i];
    flow_batch_kind kind = flow_op_batch_kind(c->op, &c->attributes, &c->input, 1);
    if (kind != c->kind) fail_msg("%s: case %zu is kind %d, expected %d", flow_op_name(c->op), i, (int)kind, (int)c->kind);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_record_is_complete), cmocka_unit_test(ops_without_gradient_are_meant),
    cmocka_unit_test(kinds_follow_the_attributes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
