/* sealed_links.h: connections between ranks whose bytes are sealed on their way, so that nobody between the machines reads or changes them.
 *
 * A thread is between the ends that the ranks use, which are local, and the network: it cuts what a rank sends into frames, seals each
 * under its number, and opens those that come. So the code that reads and writes the ends knows nothing of it. What sealing is, the options
 * say (transport.h: flow_link_seal). */
#ifndef FLOW_TRANSPORT_SEALED_LINKS_H
#define FLOW_TRANSPORT_SEALED_LINKS_H

#include "transport/transport.h"

typedef struct flow_sealed_links flow_sealed_links;

/* sockets[size]: connected, -1: there is none. Each is taken over, and its place gets the local end, non-blocking, the caller's. keys[i]:
 * what both ends of connection i know, and nobody else; dialed[i]: nonzero at one of the two. After a failure the sockets are closed and
 * -1. */
flow_status flow_sealed_links_start(int size, int *sockets, const uint8_t (*keys)[FLOW_LINK_KEY], const int *dialed,
                                    const flow_link_seal *seal, flow_sealed_links **out);
/* After the ends were closed. Sends what is on its way, for a second at most. NULL is fine. */
void        flow_sealed_links_stop(flow_sealed_links *self);

#endif
