/* layer_options.h: what tests of layers share: a context, options as text. */
#ifndef FLOW_SPEC_LAYER_OPTIONS_H
#define FLOW_SPEC_LAYER_OPTIONS_H

#include "floats.h"

#include <stdlib.h>

#include "layers/layer.h"

static flow_context *context;

static inline int make_context(void **state)
{
  (void)state;
  if (flow_context_new(&context) != FLOW_OK) return -1;
  flow_context_seed(context, 7);
  return 0;
}

static inline int release_context(void **state)
{
  (void)state;
  flow_context_release(context);
  return 0;
}

/* Options as text: "units=3 activation=relu size=2,3 use_bias=false". */
static inline flow_arguments *options_of(const char *text)
{
  flow_arguments *arguments;
  char copy[256], *rest = NULL;
  assert_int_equal(flow_arguments_new(&arguments), FLOW_OK);
  snprintf(copy, sizeof copy, "%s", text);
  for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
    char *value = strchr(word, '='), *end;
    *value++ = '\0';
    double numbers[FLOW_MAX_RANK] = { strtod(value, &end) };
    int count = 1;
    while (*end == ',' && count < FLOW_MAX_RANK) numbers[count++] = strtod(end + 1, &end);
    if (strcmp(value, "true") == 0 || strcmp(value, "false") == 0) flow_arguments_set_boolean(arguments, word, value[0] == 't');
    else if (*end != '\0') flow_arguments_set_text(arguments, word, value);
    else if (count > 1) flow_arguments_set_numbers(arguments, word, numbers, count);
    else flow_arguments_set_number(arguments, word, numbers[0]);
  }
  return arguments;
}

#endif
