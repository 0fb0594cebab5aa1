/* derived.h: what a prediction computes from variables and constants alone, such as folded, transformed and packed weights, is made once
 * and kept until one of them is written to. On the CPU plans that train keep nothing, and others nothing of variables that they assign.
 *
 * A value is fixed if it is a variable, a constant, or the result of an op that sees nothing else. Segments whose results are fixed are run
 * once, and so is what a kernel's prepare() makes of inputs without rows that are fixed. On a device what the plan calls lasting is fixed:
 * its own updates renew that together with the variables (plan/passes/join_casts.c), so that only other writes are looked for. */
#ifndef FLOW_RUN_DERIVED_H
#define FLOW_RUN_DERIVED_H

#include "base/status.h"

typedef struct flow_instance flow_instance;

/* Of an instance; written between runs. */
typedef struct flow_derived {
  char     *fixed;             /* [value]; NULL: nothing is kept */
  int       writes;            /* the plan has effects */
  uint64_t *contents;          /* [value]: of the storages of variables and constants, when what follows from them was made */
  int       made, current;     /* a run has made it all; this run can use it */
} flow_derived;

/* Finds what can be kept: marks entries, stages and values, before kernels are chosen and memory is laid out. */
flow_status flow_derived_find(flow_instance *instance);
void        flow_derived_release(flow_instance *instance);
/* Whether a value that an op makes is kept from run to run. */
int         flow_derived_is_fixed(const flow_instance *instance, int value);
/* Nothing that was made is of use any more. */
void        flow_derived_forget(flow_instance *instance);
/* Before a run: whether what was made is still what would be made. */
void        flow_derived_look(flow_instance *instance);
/* On a device, between the two: the variables have content numbers of this run. After the run, which succeeded or not: what it has made is
 * there. */
void flow_derived_note_writes(flow_instance *instance);
void flow_derived_end_run(flow_instance *instance, int succeeded);
/* On the CPU, after a run, whether it succeeded or not: marks derived values as made, and variables that it wrote as changed. */
void        flow_derived_note_run(flow_instance *instance, int succeeded);

#endif
