/* hosts.h: ranks of several machines of which some have several ranks: between machines only one rank of each sends and receives. hosts.c
 * is the transport, hosts_open.c how the ranks find out who is where. */
#ifndef FLOW_TRANSPORT_HOSTS_H
#define FLOW_TRANSPORT_HOSTS_H

#include "base/failure.h"
#include "transport/transport.h"

enum { FLOW_HOSTS_SMALL = 16384 }; /* of a sum: up to as many bytes every rank adds up itself */

typedef struct flow_hosts {
  flow_communicator  base;               /* first: it is what callers hold */
  flow_communicator *near;               /* the ranks of this machine, through memory; NULL: there is one */
  flow_communicator *far;                /* the first ranks of all machines, over TCP; NULL: this is not one */
  /* of a first rank, over TCP: this one and that of the machine before, or after; NULL: there is none */
  flow_communicator *before, *after;
  int                hosts, host;        /* machines, and which one this is, from 0 */
  int                most;               /* ranks that a machine has at most */
  int               *firsts;             /* [hosts + 1]: the first rank of each */
  const void       **parts;              /* [size] */
  char              *small;              /* [size][FLOW_HOSTS_SMALL] */
  /* room for FLOW_HOSTS_PIECE bytes; NULL where nothing comes from before */
  char              *piece;              /* what has come from the machine before */
  flow_failure       failure;
} flow_hosts;

enum { FLOW_HOSTS_PIECE = 262144 };      /* bytes of a sum that go from machine to machine at once */

extern const flow_transport flow_transport_hosts;      /* has no open: flow_communicator_meet_hosts makes it */

#endif
