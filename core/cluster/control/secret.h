/* secret.h: what the tasks of a cluster know and others do not: FLOW_SECRET, or the file that FLOW_SECRET_FILE names. It never appears in a
 * message. */
#ifndef FLOW_CLUSTER_CONTROL_SECRET_H
#define FLOW_CLUSTER_CONTROL_SECRET_H

#include "cluster/cluster.h"

enum { FLOW_LEAST_SECRET = 16, FLOW_MOST_SECRET = 4096 };        /* bytes */

typedef struct flow_secret { uint8_t bytes[FLOW_MOST_SECRET]; size_t count; } flow_secret;     /* count 0: there is none */

/* FLOW_INVALID_ARGUMENT if both variables are set, the secret is too short or too long, or others may read the file. */
flow_status flow_secret_read(const flow_environment *environment, flow_secret *out);
/* A cluster of several tasks on a network needs a secret, unless FLOW_INSECURE is 1: any process that reaches the port could take part. */
flow_status flow_secret_check(const flow_environment *environment, const flow_cluster *cluster, const flow_secret *secret);
/* Overwrites it. */
void        flow_secret_clear(flow_secret *secret);

#endif
