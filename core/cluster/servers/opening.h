/* opening.h: what both ends of a channel need before there is one: the secret, and what seals with it. */
#ifndef FLOW_CLUSTER_SERVERS_OPENING_H
#define FLOW_CLUSTER_SERVERS_OPENING_H

#include "base/thread.h"
#include "cluster/servers/channel.h"

typedef struct flow_opening {
  flow_secret secret;
  const flow_control_functions *sealing;      /* NULL: plain, among processes of one machine, or where FLOW_INSECURE says so */
  int forks;                                  /* flow_fork_generation() when it was opened */
} flow_opening;

/* Of the environment. FLOW_INVALID_ARGUMENT: this cluster needs a secret; FLOW_NOT_FOUND: the plugin is missing. The secret is cleared
 * by flow_secret_clear, also after a failure. */
flow_status flow_opening_read(const flow_cluster *cluster, flow_opening *out);
/* Fails in a process that was forked from the one that opened this end: both would read and write one connection. */
flow_status flow_opening_check_own(const flow_opening *opening);
/* A variable of the environment; NULL: there is none. */
const char *flow_opening_variable(const char *name);
/* A connection whose other end vanishes without a word, with its machine, is broken after this many seconds. */
void        flow_opening_watch(int descriptor, double seconds);
/* Waits until one of the descriptors has something to do, at most until then (flow_opening_now), in pieces after which the context's
 * interrupt flag is looked at: FLOW_INTERRUPTED. The request to end (flow_preempt) is one, too, unless the caller is patient. */
struct pollfd;
flow_status flow_opening_wait(const flow_context *context, struct pollfd *list, int count, double until, int patient);
double      flow_opening_now(void);           /* seconds of a clock that never goes back */

enum { FLOW_OPENING_DEAD_AFTER = 10 };        /* seconds */

#endif
