/* mesh.h: how the ranks of a group find each other and connect, each pair once.
 *
 * Every rank listens on one port and leaves its address in the store, with a random token. A rank connects to those before it and shows
 * the token of the rank that it calls, and is shown its own: both have read the store, which only tasks with the cluster's secret can.
 * Other connections are dropped, silent ones when there are too many. When all are connected the port is closed. */
#ifndef FLOW_TRANSPORT_MESH_H
#define FLOW_TRANSPORT_MESH_H

#include "transport/transport.h"

/* sockets[size]: connected to every other rank, non-blocking, the caller's; [rank] is -1. keys[size] (NULL: nobody wants them): what both
 * ends of each connection know, which has not gone through it. After a failure, whose sentence begins with "opening the transport NAME: ",
 * all sockets are -1. It fails where some ranks have a seal and others have none. */
flow_status flow_mesh_connect(const char *name, int rank, int size, const flow_transport_options *options, int *sockets,
                              uint8_t (*keys)[FLOW_LINK_KEY]);

#endif
