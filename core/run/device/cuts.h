/* cuts.h: where the entries of an instance on a device are cut: a section, what is between two cuts, is enqueued, and recorded, at one
 * go. */
#ifndef FLOW_RUN_DEVICE_CUTS_H
#define FLOW_RUN_DEVICE_CUTS_H

#include "run/instance.h"

typedef struct flow_section {
  int begin, end;      /* entries */
  int needs;           /* the segment whose sum, and all before, has to be there first; -1: none */
  int sum;             /* the segment whose sum goes to the host after this section; -1: none */
  /* it begins the commit tail of several replicas here, and is enqueued only after the body has ended well on all of them: what one refuses
   * keeps its own effects from writing, not those of the others */
  int waits;
} flow_section;

/* The most sections that there can be. */
static inline int flow_most_sections(const flow_plan *plan) { return plan->segment_count + 1; }
/* Cuts the entries and returns the number of sections. through_host: sums are made on the host, so that there is a cut at every sum and
 * at its first reader. */
int flow_cut_plan(const flow_instance *instance, int through_host, flow_section *sections);

#endif
