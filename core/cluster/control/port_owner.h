/* port_owner.h: which process listens on a port of this machine, for messages. */
#ifndef FLOW_CLUSTER_CONTROL_PORT_OWNER_H
#define FLOW_CLUSTER_CONTROL_PORT_OWNER_H

/* Writes "process 4711, flowlua train.lua" as far as /proc tells; 0: it does not (another user's, another container's). */
int flow_port_owner(int port, char *text, int size);

#endif
