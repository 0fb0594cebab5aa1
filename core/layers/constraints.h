/* constraints.h: what weights are projected onto after each update. One record a constraint, as for initializers. */
#ifndef FLOW_LAYERS_CONSTRAINTS_H
#define FLOW_LAYERS_CONSTRAINTS_H

#include "base/json.h"
#include "graph/variable.h"
#include "layers/express.h"

typedef struct flow_constraint_record flow_constraint_record;

/* A constraint with its options: one block of memory, owned by its variable. */
struct flow_constraint {
  const flow_constraint_record *record;
  double min_value, max_value, rate;      /* those that the record has */
  int    axes_are_list, axis_count;
  int    axes[FLOW_MAX_RANK];             /* of norms, from 0 */
};

struct flow_constraint_record {
  const char          *name, *class_name;     /* "non_neg", "NonNeg" */
  const flow_argument *parameters;
  /* The weights that come closest; borrowed from e. */
  flow_tensor *(*project)(flow_expression *e, const flow_constraint *constraint, flow_tensor *weights);
};

/* The table of records: index from 0 to count - 1. */
int                           flow_constraint_count(void);
const flow_constraint_record *flow_constraint_record_at(int index);

/* Gives a variable the constraint of a layer's complete argument `name`, or none where that is null. Fails if an axis is outside. */
flow_status flow_constraint_attach(const flow_arguments *arguments, const char *name, flow_variable *variable);
/* `weights` as the variable's constraint lets them be, which it has; *out is a new reference. */
flow_status flow_constraint_project(flow_context *context, const flow_constraint *constraint, flow_tensor *weights, flow_tensor **out);

#endif
