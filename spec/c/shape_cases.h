/* shape_cases.h: cases of shape rules: an op, its attributes and inputs, and the outputs or the message that its rule gives. */
#ifndef SPEC_SHAPE_CASES_H
#define SPEC_SHAPE_CASES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "signatures.h"

typedef struct shape_case {
  int op, count;
  flow_signature inputs[7];
  flow_attributes attributes;
  const char *error; /* part of the message, or NULL: outputs are expected */
  flow_signature outputs[3];
} shape_case;

static inline void describe(char *text, int size, const shape_case *c)
{
  flow_text t = flow_text_into(text, size);
  flow_text_add(&t, "%s", flow_op_name(c->op));
  for (int i = 0; i < c->count; i++) {
    flow_text_add(&t, " ");
    flow_text_add_shape(&t, c->inputs[i].rank, c->inputs[i].dims);
  }
}

static inline void check_cases(const shape_case *cases, size_t count)
{
  for (size_t i = 0; i < count; i++) {
    const shape_case *c = &cases[i];
    char text[512];
    flow_signature outputs[3];
    memset(outputs, 0, sizeof outputs);
    describe(text, sizeof text, c);
    flow_status status = flow_op_infer(c->op, &c->attributes, c->inputs, c->count, outputs);
    if (c->error) {
      if (status == FLOW_OK) fail_msg("%s: case %zu is accepted, expected: %s", text, i, c->error);
      assert_int_equal(status, FLOW_INVALID_ARGUMENT);
      if (!strstr(flow_last_error(), c->error)) fail_msg("%s: case %zu says \"%s\", expected \"%s\"", text, i, flow_last_error(), c->error);
      size_t length = strlen(flow_op_name(c->op));
      if (strncmp(flow_last_error(), flow_op_name(c->op), length) != 0) fail_msg("%s: the message does not name the op", text);
      continue;
    }
    if (status != FLOW_OK) fail_msg("%s: case %zu fails: %s", text, i, flow_last_error());
    for (int k = 0; k < flow_op_outputs(c->op); k++) {
      const flow_signature *have = &outputs[k], *want = &c->outputs[k];
      if (have->dtype != want->dtype) fail_msg("%s: output %d of case %zu is %s", text, k, i, flow_dtype_name(have->dtype));
      if (!flow_shape_equal(have->rank, have->dims, want->rank, want->dims)) {
        fail_msg("%s: output %d of case %zu is %s, expected %s", text, k, i, flow_shape_text(have->rank, have->dims),
                 flow_shape_text(want->rank, want->dims));
      }
    }
  }
}

#define CHECK(cases) check_cases(cases, sizeof(cases) / sizeof((cases)[0]))

#endif
