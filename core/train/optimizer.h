/* core/train: what turns a model into a training step: losses, metrics, optimizers, schedules, loss scales. Uses what layers use, and
 * layers, whose arguments it shares.
 *
 * optimizer.h: an optimizer is one record: its parameters, its slots and the formula of its update. Everything else is shared: variables
 * are adopted into one flat arena, each kind of slot into another beside it, and the formula runs over every contiguous run of variables
 * that has gradients. Where a kernel is faster than plans make the formula, the record names an op instead of slots and a formula.
 *
 * To add an optimizer: one file in core/train/optimizers. One whose update its caller writes has no record: flow_optimizer_new_custom. */
#ifndef FLOW_TRAIN_OPTIMIZER_H
#define FLOW_TRAIN_OPTIMIZER_H

#include "autodiff/expression.h"
#include "graph/variable_group.h"
#include "layers/arguments.h"
#include "ops/optimizer_layout.h"
#include "train/schedules.h"

/* The slots of a class, averages of the weights, and accumulated gradients. */
enum { FLOW_MAX_SCALARS = 2, FLOW_MOST_SLOT_KINDS = FLOW_MAX_SLOT_KINDS + 2 };

/* What the formula of an update works with: flat tensors of the variables' dtype, and scalars. It puts the new weights and slots in the
 * places of the old ones. Written with the calls of autodiff/expression.h: it runs at once or in a trace. */
typedef struct flow_formula {
  flow_expression       expression;
  const flow_arguments *arguments;
  flow_tensor          *gradient, *rate, *step;               /* step: the number of this update, from 1 */
  flow_tensor          *weight, *slots[FLOW_MAX_SLOT_KINDS];  /* weight decay is done */
  flow_tensor          *scalars[FLOW_MAX_SCALARS];
} flow_formula;

/* A number that an optimizer keeps once for all its variables, float32. */
typedef struct flow_scalar_state { const char *name; double initial; } flow_scalar_state;

/* One kind of optimizer: a file in core/train/optimizers. Either `formula` or `op` says how it updates. */
typedef struct flow_optimizer_class {
  const char          *name, *default_name;   /* Keras' */
  const flow_argument *parameters;
  const char   *const *slots;                 /* Keras' names, ended by NULL; for a formula */
  void               (*formula)(flow_formula *f);
  const flow_scalar_state *scalars;           /* ended by a name NULL; NULL: there are none. After the slots in Keras' order of variables */
  /* puts new scalars in the places of the old ones, once an update, before the formula; it has no gradient, weight and slots */
  void               (*advance)(flow_formula *f);
  int                  op;                    /* where there is no formula: the op that updates (ops/optimizer_layout.h) */
  /* Slots in Keras' order of variables: this many kinds alternate from variable to variable, each further kind comes after
   * them for all variables. */
  int                  interleaved;
  const char          *initial_slot;     /* the parameter that the first kind of slot begins with; the others, and all if it is NULL: 0 */
  flow_status (*check)(const flow_arguments *arguments); /* bounds that this class alone has; NULL: none */
} flow_optimizer_class;

/* ---- state ---------------------------------------------------------------------------------------------------------------- */

/* Variables of one dtype that were adopted together. Each kind of slot is in a flat tensor, in the order of the variables; so are the
 * parameters that this optimizer was the first to adopt. Those of another dtype that came with them are in another arena. */
typedef struct flow_arena {
  int count, first_slot;                         /* first_slot: in slot_variables of the optimizer, of all that came together */
  int together, *places;                         /* how many came together, and the place of each variable among them */
  flow_variable **variables;                     /* references */
  int64_t        *offsets;                       /* elements in the slots; one more than count: the last is the total */
  char           *decays;                        /* weight decay is for this variable, too */
  flow_variable_group *group;                    /* those of the variables that moved here, their slots, and handles onto both */
} flow_arena;

/* Handles onto one contiguous run of an arena, kept so that the same run is the same variable in every trace. */
typedef struct flow_run {
  const flow_arena *home;
  int            first, count;
  flow_variable *parameters, *slots[FLOW_MOST_SLOT_KINDS];
} flow_run;

/* What weight decay is not for: a variable, or all whose names contain this one. */
typedef struct flow_exclusion {
  flow_variable *variable;      /* a reference */
  char          *name;
} flow_exclusion;

/* An optimizer with its state. Variables join when an update first sees them; their parameters and slots then lie together in arenas, so
 * that an update is a few passes over flat memory. */
struct flow_optimizer {
  const flow_optimizer_class *class;
  char           *name;
  flow_arguments *arguments;
  const flow_optimizer_layout *layout;           /* NULL: updates are formulas */
  flow_attributes attributes;                    /* of its ops */
  int64_t         accumulation_steps;            /* 0: every call updates */
  /* iterations counts calls; no learning_rate: rates come from the schedule, or from the caller if it is NULL */
  flow_variable  *learning_rate, *iterations;
  flow_schedule  *schedule;
  flow_exclusion *exclusions;
  int             exclusion_count, exclusion_capacity;
  int             own_kinds, slot_kinds;         /* those of the class come first */
  int             average_kind, accumulator_kind;   /* use_ema, gradient_accumulation_steps; -1: without */
  const char     *slot_names[FLOW_MOST_SLOT_KINDS];
  flow_arena    **arenas;
  int             arena_count, arena_capacity;
  flow_run       *runs;
  int             run_count, run_capacity;
  flow_variable **slot_variables;                /* Keras' order, see interleaved */
  int             slot_count, slot_capacity;
  flow_variable  *scalars[FLOW_MAX_SCALARS];
  int             scalar_count;
  flow_optimizer_class custom;                   /* the class of an optimizer that has no record */
};

/* optimizer.c: a variable "<optimizer>/<suffix>" of one element. New reference. */
flow_status flow_optimizer_scalar(int dtype, double value, const char *optimizer, const char *suffix, flow_variable **out);

/* optimizer_arenas.c: the arena of a variable (-1: none) and its place there; the run of variables [first, first + count) of an
 * arena, made at first use, *out is its index; where a slot's handle is in slot_variables. */
int         flow_optimizer_home(const flow_optimizer *optimizer, const flow_variable *variable, int *index);
flow_status flow_optimizer_run(flow_optimizer *optimizer, const flow_arena *home, int first, int count, int *out);
/* Moves what an optimizer keeps once for all variables: iterations, learning rate, scalars. */
flow_status flow_optimizer_move_scalars(flow_optimizer *optimizer, flow_place *place);
int         flow_optimizer_slot_index(const flow_optimizer *optimizer, const flow_arena *home, int variable, int kind);
void        flow_arena_release(flow_arena *a);
void        flow_run_release(flow_run *r);

/* gradient_clipping.c: what Keras does with gradients before an update. `unscale` divides the gradients of variables (NULL where there is
 * none) by divisor (NULL: by nothing) into `unscaled`, new references. `clip_each` clips the flat gradient of a run by the norms of its
 * variables, `clip_together` those of all runs, `stride` bytes apart: they put others in their places. */
flow_status flow_optimizer_unscale(flow_context *context, flow_tensor *divisor, flow_tensor *const *gradients, int count,
                                   flow_tensor **unscaled);
flow_status flow_optimizer_clip_each(flow_context *context, const flow_optimizer *optimizer, const flow_run *r, flow_tensor **gradient);
flow_status flow_optimizer_clip_together(flow_context *context, const flow_optimizer *optimizer, flow_tensor **first, int count,
                                         size_t stride);
/* gradient_buckets.c: the gradients of neighbours in the arena as one flat tensor, summed over replicas. New reference. */
flow_status flow_optimizer_pack(flow_context *context, flow_tensor *const *gradients, int count, flow_tensor **out);

/* optimizer_config.c: the optimizer as Keras serializes it: {"module": "keras.optimizers", "class_name", "config", "registered_name"}. The
 * caller deletes it; NULL when memory is out. */
flow_json *flow_optimizer_config_json(const flow_optimizer *optimizer);
flow_status   flow_optimizer_read(const flow_json *object, flow_optimizer **out);     /* and back; new reference */

#endif
