/* link.h: TCP connections that carry sealed frames, none of whose calls blocks. A link begins with a greeting of either side: 8 bytes
 * "flowctl1" and 32 bytes that are random where there is a secret, else zero. */
#ifndef FLOW_CLUSTER_CONTROL_LINK_H
#define FLOW_CLUSTER_CONTROL_LINK_H

#include "cluster/control/callers.h"
#include "cluster/control/frame.h"
#include "cluster/control/secret.h"
#include "cluster/control/control_plugin.h"

enum { FLOW_GREETING_SIZE = 8 + FLOW_CONTROL_NONCE, FLOW_MOST_UNSENT = 16 << 20 };     /* bytes that wait for a slow peer */

typedef enum flow_link_phase {
  FLOW_LINK_CONNECTING = 0,
  FLOW_LINK_GREETING,
  FLOW_LINK_OPEN,
  FLOW_LINK_CLOSING,
  FLOW_LINK_BROKEN
} flow_link_phase;

typedef struct flow_link {
  /* All fields are under the control plane's lock; those of a channel's link are its user's. */
  int      descriptor, number, phase, dialed;      /* number: the protocol's; -1 before the greeting has come */
  double   until;                                  /* phases but OPEN end then */
  int      is_caller;                              /* it was accepted; which task it is, is not known yet */
  flow_caller caller;
  /* Both greetings: the keys are made of them. peer[0 .. peer_filled) has come. */
  uint8_t  own[FLOW_GREETING_SIZE], peer[FLOW_GREETING_SIZE];
  size_t   peer_filled;
  const flow_control_functions *control;           /* NULL: plain */
  flow_control_session *session;
  flow_frame_reader reader;
  uint64_t next;                                   /* the number of the next frame out */
  uint8_t *unsent;
  size_t   first, filled, capacity;                /* unsent[first .. filled) */
} flow_link;

/* Takes over the descriptor, which does not block. control, secret: NULL for plain links. */
flow_status flow_link_new(int descriptor, int dialed, const flow_control_functions *control, double until, flow_link **out);
void        flow_link_release(flow_link *link);            /* closes at once */
/* Queues one frame and sends what goes. FLOW_IO_ERROR: too much waits already, or the connection is broken. */
flow_status flow_link_send(flow_link *link, const uint8_t *contents, size_t count);
/* Sends what waits. FLOW_IO_ERROR: the link is broken. */
flow_status flow_link_flush(flow_link *link);
/* The greeting as far as it came; *complete: the link is OPEN now. */
flow_status flow_link_greet(flow_link *link, const flow_secret *secret, int *complete);
/* Bytes that are there, at most `room`; 0 in *count: none now. FLOW_IO_ERROR at the end of the stream. */
flow_status flow_link_read(flow_link *link, uint8_t *bytes, size_t room, size_t *count);

/* ---- the cluster's addresses as sockets (link_address.c) ----------------------------------------------------------------------------- */

/* Listens on an address of this machine. FLOW_IO_ERROR where that cannot be, with the process that has the port already. */
flow_status flow_link_listen(const char *address, int *descriptor);
/* Waits until the name of this process's own address is known, at most `within` seconds; log is told every few of them. */
flow_status flow_link_await_name(const flow_context *context, const char *address, double within,
                                 void (*log)(void *state, const char *text), void *state);
/* Whether only processes of this machine reach what listens there; text: its address. */
int flow_link_is_loopback(int listener, char text[FLOW_HOST_TEXT]);
/* How many the name of an address stands for; 0: it is not known. */
int flow_link_count_addresses(const char *address);
/* number: the descriptor of a socket that a launcher has bound to this address, as text; NULL: there is none. *descriptor: a copy of it, -1
 * if that is not a listening socket with the address's port: then a process inherited the variable, but not the socket. From now on
 * children of this process do not get it. */
flow_status flow_link_inherit(const char *number, const char *address, int *descriptor);
/* Begins to connect; of a name's several addresses with the attempt-th. */
flow_status flow_link_dial(const char *address, unsigned attempt, int *descriptor);

#endif
