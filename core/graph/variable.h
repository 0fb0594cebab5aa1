/* variable.h: a tensor that outlives a step. Plans reach it through this handle at every run, so its storage may move
 * into an optimizer's arena at any time between runs. */
#ifndef FLOW_GRAPH_VARIABLE_H
#define FLOW_GRAPH_VARIABLE_H

#include "graph/context.h"

typedef struct flow_constraint flow_constraint;
typedef struct flow_variable_group flow_variable_group; /* variable_group.h */

struct flow_variable {
  uint32_t     magic;
  _Atomic int  references;
  char        *name;
  int          trainable;
  int          sync;            /* flow_sync */
  double       version;         /* writes outside plans */
  int own_checks;               /* runs whose own numbers are still to be compared; -1: workers have their own (run/replicas/changes.c) */
  double agreed_version;        /* of which all workers have the same numbers (run/replicas/changes.c) */
  int          adopted;         /* its storage is in the arena of the first optimizer that got it; other optimizers leave it there */
  flow_tensor *tensor;          /* contiguous storage; a reference */
  flow_variable_group *group;   /* with which it moves, borrowed; NULL: it moves alone */
  flow_constraint *constraint;       /* what it is projected onto after updates (layers/constraints.h), one owned block; NULL: nothing */
};

/* A variable whose memory is `storage` itself (contiguous), not a copy of it. New reference. */
flow_status flow_variable_over(flow_tensor *storage, const char *name, int trainable, int sync, flow_variable **out);
/* The same with a formatted name, of any length. */
flow_status flow_variable_named(flow_tensor *storage, int trainable, int sync, flow_variable **out, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* Comes before a write that this process makes alone: if other workers see the storage, the variable gets its own memory. */
flow_status flow_variable_own(flow_variable *variable);
/* What an effect writes through: in a trace the VARIABLE value of the storage, else the storage itself. New reference. */
flow_status flow_variable_handle(flow_context *context, flow_variable *variable, flow_tensor **out);
/* Values that variables have for a while (flow_variable_lend): reading one in the innermost trace, or eagerly outside of traces, yields
 * that tensor itself, by which tapes know it. lent.c */
flow_tensor *flow_lent_value(const flow_context *context, const flow_variable *variable);               /* borrowed; NULL: none */
void flow_lent_replace(const flow_context *context, const flow_variable *variable, flow_tensor *value); /* if it has one */
flow_status flow_lent_add(const flow_context *context, flow_variable *variable, flow_tensor *value);
void flow_lent_remove(const flow_context *context, const flow_variable *variable); /* the newest */
void flow_lent_clear(flow_scopes *scopes);
/* In a trace: what reading yields from now on is a copy of `value`. */
flow_status flow_variable_set_version(flow_graph *graph, flow_variable *variable, int value);
/* After an effect updated the storage in place: later reads see the new content. */
flow_status flow_variable_updated(flow_context *context, flow_variable *variable);
/* Moves the storage into `tensor` (same dtype and shape, contiguous), which is retained. Between memories of the host it cannot fail. */
flow_status flow_variable_move(flow_variable *variable, flow_tensor *tensor);
/* Moves the storage to a place (NULL: the host) unless it is on that device. FLOW_INVALID_STATE if others share its memory. */
flow_status flow_variable_move_to(flow_variable *variable, flow_place *place);
flow_status flow_check_variable(const char *what, const flow_variable *variable);

#endif
