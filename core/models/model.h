/* core/models: models without Lua: a .keras file becomes a list of layer calls that predicts, trains and is saved again.
 * Lua has its own walk over layers (lua/flow/model/init.lua), which can hold layers written in Lua; here only the
 * library's own layers are known. Uses everything below but data.
 *
 * model.h: reading order: model_parts.c and model_read.c (config.json to calls), model_order.c (which comes first),
 * model_build.c (layers get their variables), model_file.c (variables and files), model_run.c (steps), session.h
 * (callers in several threads), shared_models.c (one model for all callers that open the same file).
 *
 * A model is made by one thread and does not change afterwards, but for its variables, steps_done, predictions and what
 * session.h keeps. Any number of threads may then use it; variables are read and written between flow_sharing_enter and
 * flow_sharing_leave alone. */
#ifndef FLOW_MODELS_MODEL_H
#define FLOW_MODELS_MODEL_H

#include "base/json.h"

#include "io/tensor_file.h"
#include "layers/layer.h"
#include "models/operations.h"
#include "models/session.h"
#include "train/losses.h"

enum {
  FLOW_MODEL_MAGIC = 0x464c4d44,
  FLOW_MODEL_MOST_TENSORS = 256, /* inputs, outputs, and what one call takes and gives */
  FLOW_MODEL_MOST_DEPTH = 64     /* models and wrappers inside of each other */
};

/* What a model is made of, as config.json nests it: a layer, an input, arithmetic on symbolic tensors or a model. */
typedef enum flow_part_kind {
  FLOW_PART_LAYER, FLOW_PART_INPUT, FLOW_PART_OPERATION, FLOW_PART_SEQUENTIAL, FLOW_PART_FUNCTIONAL, FLOW_PART_WRAPPER
} flow_part_kind;

typedef struct flow_model_call flow_model_call;

/* Calls one after the other. Values count from 0: the inputs first, then what each call gives. total: calls of
 * layers and of models, and those inside of them. */
typedef struct flow_model_program { flow_model_call *calls; int call_count, call_capacity, value_count, total; } flow_model_program;

/* A part and all that is inside of it. Texts and JSON are borrowed from the model's description, which lives as long as
 * the model. Which fields are set follows from `kind`; all others are 0 or NULL. */
typedef struct flow_model_part {
  flow_part_kind    kind;
  const char       *class_name, *name;   /* borrowed from the description */
  const flow_json  *entry;               /* borrowed */
  flow_layer       *layer;               /* LAYER: owned */
  const flow_operation *operation;       /* OPERATION */
  const struct flow_wrapper *wrapper;    /* WRAPPER: wrappers.h */
  const char       *field;               /* of a part of a wrapper: where its variables are, "forward_layer"; NULL: in the list of layers */
  struct flow_model_part *parts;         /* models and wrappers: owned */
  int               part_count;
  int *by_name;                          /* models: the numbers of the parts in the order of their names: owned */
  flow_model_program program;            /* of the layer or model of a TimeDistributed: one call of it */
  int              *outputs, output_count;     /* which of its values are the results: owned */
} flow_model_part;

/* One call of a layer or an operation on values. Exactly one of layer, wrapper and operation is set, or none. All
 * operands are below `result`, the first of its result_count values. */
struct flow_model_call {
  flow_layer *layer;                     /* borrowed from its part; NULL: an operation */
  const flow_model_part *wrapper;        /* borrowed; in place of a layer */
  const flow_operation *operation;       /* NULL, too: the first operand with the second one as its mask */
  const flow_json *config, *entry;       /* of an operation: its config and its call, borrowed from the description */
  int        *operands;                  /* owned */
  int         inputs[FLOW_LAYER_MOST_INPUTS];   /* of a layer whose inputs have names: which of them each operand is */
  flow_arguments *options;               /* owned; of such a layer; NULL: none */
  int         operand_count, result;     /* the first result; others of an operation are after it */
  int result_count;
};

/* shape[0]: -1; other sizes are -1 where any will do. */
typedef struct flow_model_input { const char *name; int dtype, rank; int64_t shape[FLOW_MAX_RANK]; } flow_model_input;

/* Which file of a file system, and which content of it. */
typedef struct flow_file_version { uint64_t device, number; int64_t bytes, seconds, nanoseconds; } flow_file_version;

/* `sharing` is the lock of the variables and of steps_done; `references` and `predictions` are atomic; is_shared,
 * version and next_shared belong to the lock of shared_models.c; all else does not change once the model was opened. */
struct flow_model {
  uint32_t          magic;
  _Atomic int       references;
  char             *path;                /* for messages */
  flow_json        *description;         /* config.json */
  char             *metadata;            /* metadata.json as it was */
  flow_model_part   root;
  flow_model_input *inputs;
  int               input_count, input_capacity;
  flow_model_program program;
  int              *outputs;             /* values */
  int               output_count, output_capacity;
  flow_optimizer   *optimizer;           /* NULL: not compiled */
  flow_loss_scale  *loss_scale;          /* around it; NULL: none */
  const flow_loss  *loss;                /* NULL: not compiled */
  flow_arguments   *loss_options;
  char             *not_compiled;        /* why it cannot train although it was compiled; NULL: it can, or it was not compiled */
  double            steps_done, seed;
  _Atomic int64_t predictions;           /* calls that predicted, of all callers */
  flow_sharing     *sharing;             /* who runs it now: session.h */
  int               is_shared;           /* it is in the list of shared_models.c: nobody may train it */
  flow_file_version version;             /* if it is: of its file */
  flow_model       *next_shared;
};

/* model_run.c */
flow_status flow_check_model(const char *function, const flow_model *model);

/* model_parts.c: an entry of config.json, and all that is inside of it, into a part that is all zero. depth: 0 at the
 * root. On failure the part holds what was read so far, and is to be released with its model. */
flow_status flow_model_read_part(const flow_json *entry, int depth, flow_model_part *part);

/* model_read.c: how many results a call of the part has; and the calls that one call of it consists of, which go to the
 * end of the program: inputs are values, outputs gets flow_part_outputs() values, at most FLOW_MODEL_MOST_TENSORS. An
 * operation cannot be expanded. */
int flow_part_outputs(const flow_model_part *part);
/* The number of a model's first part of that name; -1: there is none. */
int flow_part_find(const flow_model_part *part, const char *name);
flow_status flow_part_expand(flow_model_program *program, const flow_model_part *part, const int *inputs, int count, int depth,
                             int *outputs);

/* model_read.c: description to parts, inputs, calls and outputs; compile_config to optimizer and loss. Messages name what is not known. A
 * model whose loss or optimizer is not known is not compiled, as in Keras: it predicts, and training says why it cannot. */
flow_status flow_model_read_parts(flow_model *model);
/* Where layers are called several times: brings the calls into the order in which Keras runs them (model_order.c). outputs: values. */
flow_status flow_model_order_calls(flow_model_program *program, const int *outputs, int output_count);
flow_status flow_model_read_compiled(flow_model *model);

/* model_run.c: runs the calls on values (concrete or symbolic) in an open trace or eagerly; builds layers on the way. outputs: new
 * references, as many as the model has. activity: the sum of what layers add to the loss for their outputs, a new reference, or NULL if
 * they add nothing. activity may be NULL. */
flow_status flow_model_call_all(flow_context *context, flow_model *model, flow_tensor *const *inputs, int training, flow_tensor **outputs,
                                flow_tensor **activity);
/* One of them: values has the results of those before it, and gets its own; *activity grows. */
flow_status flow_model_call_one(flow_context *context, const flow_model_call *call, flow_tensor **values, int training,
                                flow_tensor **activity);
/* Adds `more`, which it takes over and which may be NULL, to *total, which may be. */
flow_status flow_model_add_to(flow_context *context, flow_tensor **total, flow_tensor *more);
/* FLOW_UNSUPPORTED: a model without Lua cannot have it. */
flow_status flow_model_check_layer(const flow_layer *layer);
/* Makes the layer of a call for operands of these signatures, unless it is made. */
flow_status flow_model_make_layer(flow_context *context, const flow_model_call *call, const flow_signature *operands);
/* model_build.c: makes every variable, by traces that are thrown away. */
flow_status flow_model_build(flow_context *context, flow_model *model);

/* shared_models.c: out of the list, when the last reference was given back. */
void        flow_model_unshare(flow_model *model);

/* model_file.c: reads a file. trains: with its optimizer and loss. New reference. */
flow_status flow_model_open(flow_context *context, const char *path, int trains, flow_model **out);
/* The trainable variables, in Keras' order, into `list` (NULL: they are only counted); returns how many. */
int         flow_model_trainable(const flow_model *model, flow_variable **list);

#endif
