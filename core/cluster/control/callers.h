/* callers.h: who may be let in by a task that listens, the chief or a parameter server. A caller is a connection that was accepted, before
 * it is known which task it is. Any host can open as many as it likes, so their number is bounded, and the oldest is closed when a new
 * one needs its place:
 *
 *   - Callers from the cluster's own addresses and all others have their own rooms, of the same size.
 *   - One address has at most half of a room, so that a host that floods the task only displaces its own callers.
 *   - Room for two callers of each task is left in either half, so that a whole cluster can come at once.
 *
 * An address is known if the cluster gives it as a number, or if a task has connected from it; no name is looked up. */
#ifndef FLOW_CLUSTER_CONTROL_CALLERS_H
#define FLOW_CLUSTER_CONTROL_CALLERS_H

#include "cluster/cluster.h"

enum { FLOW_HOST_SIZE = 16, FLOW_HOST_TEXT = 46, FLOW_CALLERS_LEAST = 64 };

/* An IPv6 address, or an IPv4 address as IPv6 maps it; zero: not known. */
typedef struct flow_host { uint8_t bytes[FLOW_HOST_SIZE]; } flow_host;

typedef struct flow_callers {
  flow_host *hosts;                                /* known ones, sorted */
  int        host_count, host_capacity, room;      /* room: callers in each of the two rooms */
} flow_callers;

typedef struct flow_caller { flow_host host; int known; double since; } flow_caller;      /* since: when it was accepted */

/* *out begins as zeros, and is cleared by the caller, after a failure, too. Hosts whose addresses are numbers in the cluster are known at
 * once. FLOW_OUT_OF_MEMORY. */
flow_status flow_callers_init(const flow_cluster *cluster, flow_callers *out);
void        flow_callers_clear(flow_callers *self);
/* The host that the other side of a socket is on. */
flow_host   flow_host_of_peer(int descriptor);
/* "10.0.0.7"; returns `text`. */
const char *flow_host_text(const flow_host *host, char text[FLOW_HOST_TEXT]);
/* Notes that a task connected from this host. Without memory the host stays unknown, which is not a failure. */
void        flow_callers_learn(flow_callers *self, const flow_host *host);
int         flow_callers_know(const flow_callers *self, const flow_host *host);
/* Which of the callers has to go so that a new one can come; -1: there is room. comes: NULL asks for the oldest of all. */
int         flow_callers_choose(const flow_callers *self, const flow_caller *const *callers, int count, const flow_caller *comes);
/* Accepts the next that calls. -1: nobody does, or, where *full is 1, there is no descriptor for it. */
int         flow_callers_accept(int listener, int *full);

#endif
