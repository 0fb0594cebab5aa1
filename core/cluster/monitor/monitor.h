/* monitor.h: what a training shows to those who ask over HTTP (flow_monitor_* of flow.h): what its program has said last, and what the
 * control plane knows at that moment. */
#ifndef FLOW_CLUSTER_MONITOR_MONITOR_H
#define FLOW_CLUSTER_MONITOR_MONITOR_H

#include "cluster/control/control.h"

/* Who is asked at each request, on the monitor's thread. waiting: seconds for which this process has waited for the others in the present
 * call, 0: it does not; leave: the monitor asks no more, since it closes or has another source; on the thread that did that. */
typedef struct flow_monitor_source {
  flow_control *control;
  double      (*waiting)(void *state);
  void        (*leave)(void *state);
  void         *state;
} flow_monitor_source;
/* NULL: no source. When this returns, the source before is not being asked any more, and was told so by its leave, unless it is the same
 * (its state is). */
void flow_monitor_set_source(flow_monitor *monitor, const flow_monitor_source *source);

extern const char flow_monitor_html[];      /* page.c */

#endif
