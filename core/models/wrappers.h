/* wrappers.h: layers of files that hold other layers, or that only do something in training: Bidirectional, TimeDistributed, RNN with its
 * cells, layers that change pictures at random. lua/flow/layers has them as classes of Lua; here a call of one is calls of what it holds,
 * with the same ops in the same order, so that both give the same bits.
 *
 * wrappers.c: the records, Bidirectional and TimeDistributed; wrapped_cells.c: RNN. */
#ifndef FLOW_MODELS_WRAPPERS_H
#define FLOW_MODELS_WRAPPERS_H

#include "models/model.h"

/* One call. named: in the order of the record's input_names, NULL: not given; outputs: new references. */
typedef struct flow_wrapper_call {
  flow_context          *context;
  const flow_model_part *part;
  flow_tensor *const    *named;
  int                    training;
  flow_tensor          **outputs, **activity;       /* activity: as of flow_model_call_all */
} flow_wrapper_call;

/* A class of layers that hold other layers, as one line of a table in wrappers.c. */
typedef struct flow_wrapper {
  const char        *class_name;
  const char *const *input_names;                   /* NULL: one input without a name */
  const char        *fields[4];                     /* "layer=forward_layer": where the config has a part, and the file its variables */
  int                runs_program;                  /* what it holds is one call of its program */
  const char        *list;                          /* the config has a list of parts here; NULL: none */
  /* (optional) Checks the parts and the config when they are read. */
  flow_status      (*check)(const flow_model_part *part);
  int              (*outputs)(const flow_model_part *part);       /* NULL: one */
  flow_status      (*run)(const flow_wrapper_call *call);         /* NULL: it is never called by itself */
} flow_wrapper;

/* NULL: not a class of wrappers. */
const flow_wrapper *flow_wrapper_find(const char *class_name);
/* How many outputs a call of a layer or a wrapper has. */
int                 flow_wrapper_outputs(const flow_model_part *part);
/* Runs a wrapper for named inputs: fills in the mask that its input carries. */
flow_status         flow_wrapper_run(const flow_wrapper_call *call);

/* ---- for rules ---- */

/* Fails with `Bidirectional "name": <message>`. */
flow_status      flow_wrapper_fail(const flow_model_part *part, const char *format, ...) __attribute__((format(printf, 2, 3)));
int              flow_wrapper_flag(const flow_model_part *part, const char *name);
/* The dtype that the part's policy computes in. */
int              flow_wrapper_dtype(const flow_model_part *part);
/* The names of a part's inputs, ended by NULL; NULL: they have none. Which of them is `name`, or entry `entry` of it, from 1; -1: none. */
const char *const *flow_part_input_names(const flow_model_part *part);
int              flow_find_input_name(const char *const *names, const char *name, int entry);
/* The name of argument `position` of a call, from 0, in name[]: inputs that are entries of one list are one argument. NULL: no more. */
const char      *flow_input_name_at(const char *const *names, int position, char name[64]);
/* How many states a recurrent layer or a cell has; 0 for other parts. And whether it is a cell. */
int              flow_part_states(const flow_model_part *part);
int              flow_part_is_cell(const flow_model_part *part);
/* A layer or a wrapper for named inputs, or for one without a name. */
flow_status      flow_part_run(const flow_wrapper_call *call);
/* The steps of axis 0 in the other order. */
flow_tensor     *flow_wrapper_reversed(flow_expression *e, flow_tensor *x);
/* Tensors as entries of a new axis. */
flow_tensor     *flow_wrapper_stacked(flow_expression *e, flow_tensor *const *list, int64_t count, int axis);

/* wrapped_cells.c */
extern const char *const flow_sequence_inputs[];
flow_status flow_rnn_check(const flow_model_part *part);
flow_status flow_stacked_cells_check(const flow_model_part *part);
int         flow_rnn_outputs(const flow_model_part *part);
flow_status flow_rnn_run(const flow_wrapper_call *call);

#endif
