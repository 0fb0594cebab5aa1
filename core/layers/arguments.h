/* arguments.h: named values on their way from a caller to a record, and the parameter lists that records declare.
 * One mechanism for layers, optimizers, losses and metrics: unknown names, wrong types and missing values are found here,
 * with a message that lists what the record takes. */
#ifndef FLOW_LAYERS_ARGUMENTS_H
#define FLOW_LAYERS_ARGUMENTS_H

#include "base/memory.h"

typedef enum flow_argument_type {
  FLOW_INTEGER,
  FLOW_NUMBER,
  FLOW_BOOLEAN,
  FLOW_TEXT,
  FLOW_PAIR,         /* one integer or a list of two: {height, width} */
  FLOW_SINGLE,       /* one integer or a list of one; kept as a list: {steps} */
  FLOW_TRIPLE,       /* one integer or a list of three: {depth, height, width} */
  FLOW_SHAPE,        /* list of integers */
  FLOW_SIZES,        /* list of positive integers; -1 or null stands for the input's size, kept as -1 and written as null */
  FLOW_AXES,         /* one axis or a list of them, from 0, kept as it was given */
  FLOW_NUMBERS,      /* one number or a list of numbers, which may be nested, kept as it was given */
  FLOW_NAMED,        /* numbers under some of the names in `choices`; they follow as "renorm_clipping.rmax" */
  FLOW_SIDES,        /* one integer, {height, width} or {{top, bottom}, {left, right}}, none negative; kept as the last of these */
  FLOW_VOLUME_SIDES, /* the same of {depth, height, width} */
  FLOW_ACTIVATION,   /* text, checked against the known activations */
  FLOW_INITIALIZER,  /* text, checked against the known initializers; its own options follow as "kernel_initializer.stddev" */
  FLOW_REGULARIZER,  /* the same for regularizers: "kernel_regularizer.l2" */
  FLOW_CONSTRAINT,   /* the same for constraints: "kernel_constraint.axis" */
  FLOW_ABSENT        /* Keras has it, flowlua does not: only null is accepted */
} flow_argument_type;

/* One parameter of a record. `initial` is the default as text ("0.001", "true", "valid", "2,2"); "null" = none;
 * NULL = the caller must give it. `choices`: for text, the allowed values separated by "|", or NULL; one that begins with
 * "!" is known to Keras and refused as unsupported. For the integers of a layer: ">0", or NULL; flow_layer_create checks it. */
typedef struct flow_argument {
  const char        *name;
  flow_argument_type type;
  const char        *initial;
  const char        *choices;
} flow_argument;

/* What ends a list of parameters. */
#define FLOW_ARGUMENTS_END { NULL, FLOW_INTEGER, NULL, NULL }

/* Makes a complete set: every parameter of the record, from `given` (may be NULL) or the default; a null that is given
 * stands for the default, and so does false where null is the default. Unknown names, wrong types, values outside the
 * choices are errors that begin with `who`, a class name. Choices are stored as the record spells them, initializers by
 * their snake-case name, pairs as two numbers. New object in *out. */
flow_status flow_arguments_complete(const char *who, const flow_argument *parameters, const flow_arguments *given, flow_arguments **out);

/* Readers of a completed set. They cannot fail: completeness was checked. */
int         flow_argument_is_null(const flow_arguments *arguments, const char *name);
int64_t     flow_argument_integer(const flow_arguments *arguments, const char *name);
double      flow_argument_number(const flow_arguments *arguments, const char *name);
int         flow_argument_boolean(const flow_arguments *arguments, const char *name);
const char *flow_argument_text(const flow_arguments *arguments, const char *name);
/* count; a single number is a list of one */
int         flow_argument_list(const flow_arguments *arguments, const char *name, const double **values);
int         flow_argument_is_list(const flow_arguments *arguments, const char *name);
/* of a nested list; returns the depth, 0: a number */
int         flow_argument_dims(const flow_arguments *arguments, const char *name, int64_t dims[FLOW_MAX_RANK]);
void        flow_argument_pair(const flow_arguments *arguments, const char *name, int32_t pair[2]);      /* {1, n} of a FLOW_SINGLE */
void        flow_argument_triple(const flow_arguments *arguments, const char *name, int32_t triple[3]);

/* The entries "<prefix>.<name>" as a new set of "<name>": an initializer's own options. */
flow_status flow_arguments_extract(const flow_arguments *arguments, const char *prefix, flow_arguments **out);

/* What an argument of type FLOW_INITIALIZER, FLOW_REGULARIZER or FLOW_CONSTRAINT can name: a record with its own options. */
typedef struct flow_argument_choice { const char *name, *class_name, *module; const flow_argument *parameters; } flow_argument_choice;
int flow_argument_is_choice(flow_argument_type type);                                                    /* of one of these types */
int flow_argument_choice_at(flow_argument_type type, int index, flow_argument_choice *choice);           /* 0: beyond the last */
int flow_argument_choice_is(const flow_argument_choice *choice, const char *name);                       /* by one of Keras' names for it */
int flow_argument_choice_find(flow_argument_type type, const char *name, flow_argument_choice *choice);  /* by one of them; 0: none */
/* Always fails: who has got `asked` as its `name`, which is none of this type; names the likely spelling, and all that there are. */
flow_status flow_argument_choice_unknown(const char *who, const char *name, flow_argument_type type, const char *asked);

const char *flow_argument_type_name(flow_argument_type type);
/* Index of parameter `name`, or -1; number of parameters. */
int flow_argument_find(const flow_argument *parameters, const char *name);
int flow_argument_count(const flow_argument *parameters);

#endif
