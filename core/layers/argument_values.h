/* argument_values.h: what a set of named values consists of: for arguments.c, which keeps them, and argument_checks.c, which makes complete
 * sets of them. */
#ifndef FLOW_LAYERS_ARGUMENT_VALUES_H
#define FLOW_LAYERS_ARGUMENT_VALUES_H

#include "layers/arguments.h"

typedef enum value_kind { VALUE_NULL, VALUE_NUMBER, VALUE_BOOLEAN, VALUE_TEXT, VALUE_NUMBERS } value_kind;

/* One named value. text and numbers are owned by the set that holds the value, or borrowed in values on the stack. */
typedef struct argument_value {
  char         *name;
  value_kind    kind;
  double        number;      /* number, boolean */
  const char   *text;
  const double *numbers;     /* of a nested list: those of the inner lists one after the other; NaN: null */
  int           count, rank;
  int           dims[FLOW_MAX_RANK];
} argument_value;

struct flow_arguments {
  argument_value *values;
  int             count, capacity;
};

/* The value under `name`, borrowed; NULL: none. `arguments` may be NULL, which has none. */
argument_value *flow_arguments_value(const flow_arguments *arguments, const char *name);

/* Stores a copy of `value` under `name`, in place of an older one. Nothing changes when memory is out. */
flow_status flow_arguments_store(flow_arguments *arguments, const char *name, const argument_value *value);

#endif
