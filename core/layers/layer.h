/* core/layers: one file a layer. A layer is one record: its arguments with defaults, how it creates variables, how it
 * calls ops. Uses base, tensor, ops, graph and autodiff. Constructors in Lua, summary(), Keras' config and the docs are made from the
 * record.
 *
 * A new layer is a file core/layers/<name>.c with `const flow_layer_class flow_layer_<name>` and its line in layers.def; CONTRIBUTING.md
 * says which tests and examples come with it. */
#ifndef FLOW_LAYERS_LAYER_H
#define FLOW_LAYERS_LAYER_H

#include "layers/arguments.h"
#include "layers/express.h"
#include "ops/op.h"

enum {
  FLOW_LAYER_MAX_VARIABLES = 10,
  FLOW_LAYER_MOST_INPUTS = 8,      /* with names */
  FLOW_LAYER_MOST_OUTPUTS = 3,
  FLOW_LAYER_MAGIC = 0x464c4c59,
  FLOW_LAYER_DEAD = 0x444c4c59
};

typedef struct flow_layer_class flow_layer_class;
typedef struct flow_recurrent_cell flow_recurrent_cell;

/* The last parameters of every layer. The name is a separate argument of flow_layer_new. FLOW_LAYER_REST: of a layer that has
 * activity_regularizer among its own, or is a cell, which has none. */
#define FLOW_LAYER_COMMON                                     \
  { "activity_regularizer", FLOW_REGULARIZER, "null", NULL }, \
  FLOW_LAYER_REST
#define FLOW_LAYER_REST                        \
  { "trainable", FLOW_BOOLEAN, "true", NULL }, \
      { "dtype", FLOW_TEXT, "float32", "float32|!float16|!bfloat16|float64|mixed_float16|mixed_bfloat16" }, FLOW_ARGUMENTS_END

/* "data_format": channels are last. */
#define FLOW_LAYER_DATA_FORMAT { "data_format", FLOW_TEXT, "channels_last", "channels_last|!channels_first" }

/* The parameters from "activation" on of a layer that computes activation(x . weights + bias), and those of every layer. `kernel`: what the
 * arguments that concern its weights begin with, "kernel". */
#define FLOW_LAYER_KERNEL_AND_BIAS(kernel)                             \
  { "activation", FLOW_ACTIVATION, "linear", NULL },                   \
  { "use_bias", FLOW_BOOLEAN, "true", NULL },                          \
  { kernel "_initializer", FLOW_INITIALIZER, "glorot_uniform", NULL }, \
  { "bias_initializer", FLOW_INITIALIZER, "zeros", NULL },             \
  { kernel "_regularizer", FLOW_REGULARIZER, "null", NULL },           \
  { "bias_regularizer", FLOW_REGULARIZER, "null", NULL },              \
  { "activity_regularizer", FLOW_REGULARIZER, "null", NULL },          \
  { kernel "_constraint", FLOW_CONSTRAINT, "null", NULL },             \
  { "bias_constraint", FLOW_CONSTRAINT, "null", NULL },                \
  FLOW_LAYER_REST

/* A layer that is inside of this one in Keras, such as the projection of queries: where files keep its variables, "query_dense/vars", and
 * its name, "query". */
typedef struct flow_layer_part { const char *group, *name; } flow_layer_part;

/* A layer has one owner, its caller; the tensors and variables that it hands out outlive it. It has no locks: one thread at a time builds,
 * calls or changes it. variables[] are filled from 0 on without gaps by build(), trainable ones first, and are NULL before it and after it
 * failed. */
struct flow_layer {
  uint32_t                magic;         /* FLOW_LAYER_MAGIC while alive */
  const flow_layer_class *class;
  char                   *name;
  flow_arguments         *arguments;     /* every argument of the record, defaults filled in */
  int                     trainable, built;
  int                     variable_count, trainable_count;   /* trainable first; those are frozen while `trainable` is 0 */
  flow_variable          *variables[FLOW_LAYER_MAX_VARIABLES];
  const char             *regularizers[FLOW_LAYER_MAX_VARIABLES];   /* names of their arguments; NULL: the record has none */
  flow_tensor            *activity;                             /* what the last call adds to the loss; NULL: nothing */
  flow_variable          *states[FLOW_LAYER_MOST_OUTPUTS - 1];  /* what a stateful layer keeps between calls; NULL before the first */
  const flow_layer_part  *parts[FLOW_LAYER_MAX_VARIABLES];          /* of each variable; NULL: none */
  int                     build_rank;                   /* shape of the first input at build time */
  int64_t build_shape[FLOW_MAX_RANK];
  uint64_t                eager_draws;                  /* calls that drew random numbers outside of all traces */
  int ended_masks;                                      /* whether it has warned that masks end here */
  int                     quantizing;                   /* flow_quantizing: quantization.h */
  double                  low, high;                    /* the range of its input then */
};

/* One call of a layer whose inputs have names. */
typedef struct flow_named_call {
  flow_tensor *const   *inputs;          /* in the order of the record's input_names; NULL: not given */
  const flow_arguments *options;         /* all of the record's options */
  int                   training;
} flow_named_call;

struct flow_layer_class {
  const char          *name;             /* Keras' class name */
  const char          *alias;            /* or NULL */
  int                  positional;       /* how many arguments may be given by position */
  const flow_argument *parameters;       /* ended by one whose name is NULL */
  int min_inputs;                        /* 0: one */
  int max_inputs;                        /* 0: one, or the number of input_names */
  /* (optional, default: no variables) Checks the input shapes (-1: batch) and creates variables. */
  flow_status (*build)(flow_context *context, flow_layer *layer, int count, const flow_signature *inputs);
  /* Runs the layer's ops; *out is a new reference. */
  flow_status (*call)(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out);
  /* Of a layer that is called on several tensors which have names, in place of `call`: those names, ended by NULL, of which the first
   * min_inputs must be given. "query" is a separate argument, "mask[2]" entry 2 of a list. build() finds rank -1 for what is missing. */
  const char *const   *input_names;
  const flow_argument *options;          /* what such a call takes besides, except for training */
  int                  most_outputs;     /* 0: one */
  /* (optional, default: most_outputs) How many outputs a call of this layer gives at most. */
  int (*outputs)(const flow_layer *layer);
  /* Gives the outputs as new references; those that the options did not ask for are NULL, as they are before. */
  flow_status (*call_named)(flow_context *context, flow_layer *layer, const flow_named_call *call, flow_tensor **outputs);
  /* (optional, default: nothing) Checks the arguments against each other, at construction and when one of them is set later. */
  flow_status (*check)(flow_layer *layer);
  const char          *doc;
  const char          *group;            /* of Keras' files; NULL: the name in snake case */
  int                  trains_alone;     /* called by itself it acts as in training: it prepares data */
  int full_precision;                    /* computes in the dtype of its variables: statistics of many values */
  unsigned             quantizes;        /* 1 << a flow_quantizing that it can do: quantization.h */
  /* (optional, default: the last axes, as many as the number of scales needs) Of files of quantized weights (models/quantized_files.h): the
   * axes along which a kernel has a scale for each place, in the order in which files have the scales. Returns how many axes there are. */
  int (*scale_axes)(const flow_layer *layer, const flow_variable *kernel, int axes[FLOW_MAX_RANK]);
  int scales_follow; /* in those files each variable is followed by its scales; else the first one's are the last */
  /* Masks: masks.h says how a layer gets those of its inputs. supports_masking: the output has the mask of the first input, or what
   * compute_mask gives; else masks end here, with a warning. clears_masks: as in Keras, the inputs have no masks any more after the
   * call. */
  int                  supports_masking, clears_masks;
  /* (optional) masks[i]: of inputs[i], NULL: none. *out: a new reference, or NULL as it is before: none. */
  flow_status (*compute_mask)(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, flow_tensor *const *masks, int count,
                              flow_tensor **out);
  const char *const   *read_by_build;       /* (optional) numbers among the arguments that calls do not read; ended by NULL */
  int                  regularizes_parts;   /* activity_regularizer is for tensors that its call names, not for the outputs */
  const flow_recurrent_cell *cell;          /* of recurrent layers and their cells: recurrent.h */
  /* (optional, default: name, trainable, dtype and every parameter) Fills Keras' config. */
  void (*config)(const flow_layer *layer, flow_json *config);
};

/* The records, in the order of layers.def. */
int                     flow_layer_class_total(void);
const flow_layer_class *flow_layer_class_record(int index);
int                     flow_layer_class_lookup(const char *name);   /* class name or alias; -1 */

/* What flow_layer_new, _release, _build and _call do, after the checks of their handles. */
flow_status flow_layer_create(const char *class_name, const char *name, const flow_arguments *given, flow_layer **out);
void        flow_layer_destroy(flow_layer *layer);
/* What flow_layer_set_arguments and flow_layer_set_name do after their checks. Nothing changes if they fail. */
flow_status flow_layer_change(flow_layer *layer, const flow_arguments *given);
flow_status flow_layer_rename(flow_layer *layer, const char *name);
flow_status flow_layer_make(flow_context *context, flow_layer *layer, int count, const flow_signature *inputs);
/* options: of the call, NULL: none. outputs: room for flow_layer_outputs of them; what was not asked for is NULL. */
flow_status flow_layer_run(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, const flow_arguments *options,
                           int training, flow_tensor **outputs);
int         flow_layer_outputs(const flow_layer_class *class);
int         flow_layer_outputs_of(const flow_layer *layer);
/* How many inputs with names a record has; 0: its inputs have none. */
int         flow_layer_named_inputs(const flow_layer_class *class);
/* Which input the argument `name` of a call is, or, if that is a list, its entry number `entry`, from 1 (0: the argument itself). -1: no
 * such input exists. */
int         flow_layer_find_input(const flow_layer_class *class, const char *name, int entry);

/* Creates variable `index` of the layer: name "<layer>/<suffix>", initialized by the initializer argument `initializer`
 * (or zeros/ones by name when it is not an argument), of the policy's dtype. Replicas hold one value of what is trainable and average
 * the rest (moving statistics) when it is read. Trainable ones come first. */
flow_status flow_layer_add_variable(flow_context *context, flow_layer *layer, int index, const char *suffix, const char *initializer,
                                    int rank, const int64_t *shape, int trainable);

/* A trainable one by argument kernel_initializer, which counts inputs and outputs of a unit by axes: bit i of `outputs` says that axis i is
 * one of the outputs, other axes are of the inputs. */
flow_status flow_layer_add_kernel(flow_context *context, flow_layer *layer, int index, const char *suffix, int rank, const int64_t *shape,
                                  unsigned outputs);

/* The two halves of flow_layer_add_variable: the first values, and the variable over them, which has neither regularizer nor constraint
 * where `initializer` is NULL. */
flow_status flow_layer_initialize(flow_context *context, const flow_layer *layer, const char *initializer, int rank, const int64_t *shape,
                                  flow_tensor **out);
flow_status flow_layer_adopt(flow_context *context, flow_layer *layer, int index, const char *suffix, const char *initializer,
                             flow_tensor *initial, int trainable);

/* Creates variable `index` of the layer as a bias of `size` values, by argument bias_initializer; none where use_bias is false. */
flow_status flow_layer_add_bias(flow_context *context, flow_layer *layer, int index, int64_t size);
/* activation(y + variable `bias`), or activation(y) if the layer has no such variable, with the activation that its argument names;
 * borrowed from e. */
flow_tensor *flow_layer_end(flow_expression *e, const flow_layer *layer, int bias, flow_tensor *y);
/* The same as the end of a call: *out is a new reference. */
flow_status flow_layer_take(flow_expression *e, const flow_layer *layer, int bias, flow_tensor *y, flow_tensor **out);

/* Fails with `Conv2D "conv2d_1": <message>`. */
flow_status flow_layer_fail(const flow_layer *layer, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The usual check: rank of the input, "input has 1 dimension {128}, expected 4 {batch, height, width, channels}" + hint. */
flow_status flow_layer_check_rank(const flow_layer *layer, const flow_signature *input, int rank, const char *expected, const char *hint);
/* The size of the last axis: known at build time, and the one that the layer was built for afterwards. */
flow_status flow_layer_check_channels(const flow_layer *layer, const flow_signature *input, const char *what);
/* Fails if the layer is built, for an input of another rank or of another size of this axis (from 0). */
flow_status flow_layer_check_built(const flow_layer *layer, const flow_signature *input, int axis);
/* Puts the list `axis` in order, as Keras does when it builds the layer: negative ones are first. */
flow_status flow_layer_sort_axes(flow_layer *layer);
/* Says that the layer was built for another shape. */
flow_status flow_layer_fail_built(const flow_layer *layer, const flow_signature *input);
/* Axis argument `name` as an index from 0 into a shape of this rank. */
flow_status flow_layer_axis(const flow_layer *layer, const char *name, int rank, int *axis);
/* top, bottom, left, right of argument "padding" ("valid", "causal", or "same": the extra cell at the bottom and the right), for images; of
 * layers over the steps of a sequence the input is the image of one row (sequences.h). */
flow_status flow_layer_padding(const flow_layer *layer, const flow_signature *input, const int32_t window[2], const int32_t stride[2],
                               const int32_t dilation[2], int32_t padding[4]);

/* The key of what a call draws, for the attributes of its random ops; draws of one call add small numbers to `stream`. In a trace, where
 * each run draws new numbers, the seed is the layer's own, and the stream is the call's number among those that draw there: equal programs
 * draw equal numbers, whatever the layers are called and whatever was made before, and two calls of one layer draw different ones. The
 * calls of a layer with a seed are counted for that layer, and the run's seed does not count (own_seed): the first calls of two layers with
 * one seed draw the same numbers, whatever seed the program sets, as in Keras.
 * Only a cell, which is called for each step of a sequence, has one stream for all its calls. An eager call has no run, so its seed is
 * drawn: from the layer's seed and how often it drew, or, without a seed, from the context's random state. */
typedef struct flow_layer_draws {
  uint64_t seed, stream;
  int own_seed;
} flow_layer_draws;

/* Of the op dropout that draws so. */
static inline flow_attributes flow_draws_dropout(flow_layer_draws draws, double rate)
{
  return (flow_attributes){ .dropout = { .rate = rate, .seed = draws.seed, .stream = draws.stream, .own_seed = draws.own_seed } };
}

flow_status flow_layer_draw(flow_context *context, flow_layer *layer, flow_layer_draws *draws);
/* The same within an expression, whose status says whether that failed. */
flow_layer_draws flow_express_draw(flow_expression *e, flow_layer *layer);

#endif
