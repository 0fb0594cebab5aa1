/* variable_group.h: variables that lie in the same storages: what an optimizer trains, the slots beside it, and handles onto runs of
 * both. Workers of one machine may have these storages in memory that all of them see (run/replicas/shared_weights.c). There are two of
 * each then: the variables are in one while an update writes the other, and change over once it is written.
 *
 * A group belongs to its maker, who releases it before the variables. One thread at a time, as for the variables. */
#ifndef FLOW_GRAPH_VARIABLE_GROUP_H
#define FLOW_GRAPH_VARIABLE_GROUP_H

#include "graph/variable.h"

enum { FLOW_MOST_SHARED_ARRAYS = 4 };

typedef struct flow_variable_group {
  flow_variable **variables; /* [count]: borrowed */
  flow_tensor **others;      /* [count]: the same part of the other storage; NULL: the variable's is not shared */
  int count, capacity, other_capacity;
  /* [shared]: flat tensors over the storages that are shared: where the variables are, and where they will be */
  flow_tensor *now[FLOW_MOST_SHARED_ARRAYS], *next[FLOW_MOST_SHARED_ARRAYS];
  int shared;
  const void *holder; /* whose the memory is, only compared; the number by which it knows it */
  int64_t number;
} flow_variable_group;

flow_status flow_variable_group_new(flow_variable_group **out);
/* NULL is fine. The variables have memory of their own again, if there is enough. */
void flow_variable_group_release(flow_variable_group *group);
/* All of them or, on failure, none; but those that are in a group stay there. */
flow_status flow_variable_group_add(flow_variable_group *group, flow_variable *const *variables, int count);
/* The last `count` variables leave it; they are where they were. */
void flow_variable_group_drop(flow_variable_group *group, int count);
/* Moves what is in the storages of members[0 .. count), each of which is in another one and is all of it, into now[0 .. count), flat
 * tensors of these sizes, which are retained, as are those of `next`. On failure nothing has changed. */
flow_status flow_variable_group_share(flow_variable_group *group, flow_variable *const *members, flow_tensor *const *now,
                                      flow_tensor *const *next, int count);
/* `next` has been written: the variables are there from now on. */
void flow_variable_group_change_over(flow_variable_group *group);
/* Memory of their own for variables that are shared. On failure nothing has changed. */
flow_status flow_variable_group_part(flow_variable_group *group);

#endif
