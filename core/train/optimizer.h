/* core/train: what turns a model into a training step: losses, metrics, optimizers.
 *
 * optimizer.h: an optimizer is one record: its parameters, its slots per variable, the op that updates. Everything else
 * is shared: variables are adopted into one flat arena, each kind of slot into another beside it, and an update is one
 * op over every contiguous run of variables that has gradients.
 *
 * To add an optimizer: an effect op in ops.def with its kernels, and a record in optimizer_records.c. */
#ifndef FLOW_TRAIN_OPTIMIZER_H
#define FLOW_TRAIN_OPTIMIZER_H

#include "graph/variable.h"
#include "layers/arguments.h"

enum { FLOW_MAX_SLOT_KINDS = 3 };

typedef struct flow_optimizer_class {
  const char          *name;           /* Keras' class name */
  const flow_argument *parameters;
  int                  op;             /* inputs: gradient, parameters, slots, learning rate [, iterations]; see order */
  /* Names of the slots for these arguments; returns how many. */
  int                (*slots)(const flow_arguments *arguments, const char *names[FLOW_MAX_SLOT_KINDS]);
  /* The op's attributes and its inputs in the op's own order. Returns the number of inputs. */
  int                (*operands)(const flow_arguments *arguments, flow_attributes *attributes, flow_tensor *gradient, flow_tensor *parameters,
                                 flow_tensor *const *slots, flow_tensor *learning_rate, flow_tensor *iterations, flow_tensor **inputs);
} flow_optimizer_class;

extern const flow_optimizer_class flow_optimizer_classes[];   /* ended by one whose name is NULL */

/* ---- state ---------------------------------------------------------------------------------------------------------------- */

/* Variables that were adopted together. Each kind of slot lies in a flat tensor, in the order of the variables; so do the
 * parameters that this optimizer was the first to adopt. */
typedef struct flow_arena {
  int             count, first_slot;             /* first_slot: in slot_variables of the optimizer */
  flow_variable **variables;                     /* references */
  int64_t        *offsets;                       /* elements in the slots; one more than count: the last is the total */
  flow_tensor    *slots[FLOW_MAX_SLOT_KINDS];    /* flat float32, zeros at first */
} flow_arena;

/* Handles onto one contiguous run of an arena, kept so that the same run is the same variable in every trace. */
typedef struct flow_run {
  const flow_arena *home;
  int            first, count;
  flow_variable *parameters, *slots[FLOW_MAX_SLOT_KINDS];
} flow_run;

struct flow_optimizer {
  const flow_optimizer_class *class;
  char           *name;
  flow_arguments *arguments;
  flow_variable  *learning_rate, *iterations;
  int             slot_kinds;
  const char     *slot_names[FLOW_MAX_SLOT_KINDS];
  flow_arena    **arenas;
  int             arena_count, arena_capacity;
  flow_run       *runs;
  int             run_count, run_capacity;
  flow_variable **slot_variables;                /* Keras' order: all slots of variable 0, then of variable 1 */
  int             slot_count, slot_capacity;
};

/* The optimizer as Keras serializes it: {"module": "keras.optimizers", "class_name", "config", "registered_name"}. The caller
 * deletes it; NULL when memory is out. */
struct cJSON;
struct cJSON *flow_optimizer_config_json(const flow_optimizer *optimizer);

#endif
