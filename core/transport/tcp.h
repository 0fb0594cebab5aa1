/* tcp.h: a rank's end of a group over TCP, and the call under way. tcp.c says what a call is made of, tcp_exchange.c carries it out.
 *
 * One call is under way at a time. Its thread alone uses all fields; other threads may only abort, which sets `failure` and shuts the
 * sockets down (flow_tcp_let_go), so that the thread of the call wakes from poll() and finds the reason. The buffers that `share`, `first`,
 * `second`, `place` and `gathered` point to belong to the caller or to this struct, and stay until the call returns. */
#ifndef FLOW_TRANSPORT_TCP_H
#define FLOW_TRANSPORT_TCP_H

#include <poll.h>
#include "base/failure.h"
#include "transport/group_call.h"
#include "transport/transport.h"

typedef struct flow_tcp_head {
  /* What begins each message. `number` counts the calls of the group, so that a rank that is one call ahead is noticed even if it calls
   * the same. The head goes as it is in memory, so the ranks have to have one byte order. */
  flow_group_call call;
  uint64_t        number;          /* of the call */
} flow_tcp_head;

/* A connection, and the message each way of the call under way: head, first, second, and what is gathered. What a gather of several arrays
 * sends goes in two lots, so that the first array can travel before the others are made: the array, a second head, the others.
 *
 * A gather that was started may be abandoned, by a rank whose work has failed meanwhile: then the rest of the first lot is sent as zeros,
 * and a second head that says so. A message may come after any number of abandoned lots of the same number, which are skipped. */
typedef struct flow_tcp_peer {
  int           socket;            /* -1: this rank itself */
  int64_t window;                  /* within a machine: bytes that may be sent to it before as many have come from it; 0: no limit */
  flow_tcp_head heard, heard_rest; /* the second head */
  char         *piece;             /* what was received of `added`, from summed on */
  const char   *first, *second;    /* out: to be added up or passed on; ready as far as this rank's own share is */
  int64_t       first_bytes, second_bytes, sent;
  int64_t       added;             /* in: bytes that are added to the share */
  char         *place;             /* in: where ready elements go */
  int64_t       place_bytes, received;
  int64_t owed, skipped; /* bytes of an abandoned lot and its second head: to be sent, to be received, before the message */
} flow_tcp_peer;

enum { FLOW_TCP_FIRST_LOT = 1, FLOW_TCP_SECOND_LOT, FLOW_TCP_ABANDONED }; /* details of gathers in two lots, in their heads */

typedef struct flow_tcp {
  flow_communicator base;          /* first: it is what callers hold */
  flow_failure   failure;
  flow_tcp_head  said;             /* of the call under way */
  int            dtype;
  char          *share;            /* what this rank adds up, or passes on */
  int64_t        share_bytes, summed;
  int64_t        piece_bytes;      /* of elements that wait for those of other ranks */
  int            with_own;         /* its own elements are part of the sum */
  int            in_place;         /* they are sent from where the sum goes */
  int lots;                        /* 2: a gather of several arrays */
  int started;                     /* of which the first lot may be under way, and the second is not known yet */
  flow_gathering first_lot;        /* with 2 lots: the first array ... */
  flow_tcp_head said_rest;         /* ... and what comes after it */
  flow_tcp_head abandoned;         /* the second head of the last lot that was */
  const flow_gathering *gathered;  /* what follows in every message, both ways: of each array the sender's part */
  int            gathered_count;
  int64_t        gathered_bytes;   /* of one rank, in all of them */
  const void   **parts;            /* [size] */
  struct pollfd *polled;           /* [size] */
  int           *sockets;          /* [size] */
  char          *pieces;
  struct flow_sealed_links *sealed;    /* NULL: bytes travel as they are */
  flow_tcp_peer  peers[];
} flow_tcp;

/* Carries out the call that said, share and peers describe. Returns when all bytes were sent and received, or with the first failure;
 * after one the group is of no further use. */
flow_status flow_tcp_exchange(flow_tcp *self);
/* The gather that was started will not be made: what it owes goes out with the next call, which takes its number. */
void flow_tcp_abandon(flow_tcp *self);
/* Hands the system what it takes of the messages now, without waiting. Failures as of flow_tcp_exchange. */
flow_status flow_tcp_send_ahead(flow_tcp *self);
/* Ends the connections: a thread that waits at one of them, in this process or another, sees that. Any thread may call it. */
void        flow_tcp_let_go(const flow_tcp *self);

#endif
