/* core/layers: one file a layer. A layer is one record: its arguments with defaults, how it creates variables, how it
 * calls ops. Constructors in Lua, summary(), Keras' config and the docs are made from the record.
 *
 * To add a layer: write core/layers/<name>.c with one `const flow_layer_class flow_layer_<name>` and add its line to
 * layers.def. Nothing else. */
#ifndef FLOW_LAYERS_LAYER_H
#define FLOW_LAYERS_LAYER_H

#include "layers/arguments.h"
#include "ops/op.h"

enum { FLOW_LAYER_MAX_VARIABLES = 8 };

typedef struct flow_layer_class flow_layer_class;

struct flow_layer {
  const flow_layer_class *class;
  char                   *name;
  flow_arguments         *arguments;     /* every argument of the record, defaults filled in */
  int                     trainable, built;
  int                     variable_count;               /* trainable first */
  flow_variable          *variables[FLOW_LAYER_MAX_VARIABLES];
  int                     build_rank;                   /* shape of the first input at build time */
  int64_t                 build_shape[FLOW_MAX_RANK];
  uint64_t                stream;                       /* random stream: from the layer's name */
};

struct flow_layer_class {
  const char          *name;             /* Keras' class name */
  const char          *alias;            /* or NULL */
  int                  positional;       /* how many arguments may be given by position */
  const flow_argument *parameters;       /* ended by one whose name is NULL */
  int                  min_inputs, max_inputs;
  /* (optional, default: no variables) Checks the input shapes (-1: batch) and creates variables. */
  flow_status (*build)(flow_context *context, flow_layer *layer, int count, const flow_signature *inputs);
  /* Runs the layer's ops; *out is a new reference. */
  flow_status (*call)(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out);
  /* (optional, default: nothing) Checks the arguments against each other, once, at construction. */
  flow_status (*check)(flow_layer *layer);
  const char          *doc;
};

/* Creates variable `index` of the layer: name "<layer>/<suffix>", initialized by the initializer argument `initializer`
 * (or zeros/ones by name when it is not an argument), float32. */
flow_status flow_layer_add_variable(flow_context *context, flow_layer *layer, int index, const char *suffix, const char *initializer,
                                    int rank, const int64_t *shape, int trainable);

/* Fails with `Conv2D "conv2d_1": <message>`. */
flow_status flow_layer_fail(const flow_layer *layer, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The usual check: rank of the input, "input has 1 dimension {128}, expected 4 {batch, height, width, channels}" + hint. */
flow_status flow_layer_check_rank(const flow_layer *layer, const flow_signature *input, int rank, const char *expected, const char *hint);

#endif
