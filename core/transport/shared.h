/* shared.h: the memory through which processes of one machine add up, and a rank's view of it. shared.c is the transport, shared_open.c
 * how the ranks find the memory.
 *
 * What is in the memory was written by others, who may have died in the middle of it: nothing of it is ever used as a size, an index
 * or an address. */
#ifndef FLOW_TRANSPORT_SHARED_H
#define FLOW_TRANSPORT_SHARED_H

#include <stdatomic.h>
#include "base/failure.h"
#include "transport/transport.h"
#include "transport/exchange.h"
#include "transport/group_call.h"

enum {
  FLOW_SHARED_AHEAD = 2,                 /* steps that a rank shows before it looks at the first of them */
  FLOW_SHARED_SLOTS = 8,                 /* a power of two, so that the number of the step may wrap; shared.c gives the reason */
  FLOW_SHARED_BYTES = 65536,             /* of a step; all slots of two ranks stay in a core's cache */
  FLOW_SHARED_SMALL = 40,                /* what goes into the first line of a slot */
};

/* What a rank shows the others in one step. */
typedef struct flow_shared_slot {
  /* The first line of a slot, 64 bytes: all of a small step travels between the cores' caches as one line. */
  _Atomic int      sequence;             /* the number of the step, from 1, once all below is written; who waits sleeps on it */
  _Atomic int      sleepers;
  flow_group_call  call;
  unsigned char    small[FLOW_SHARED_SMALL];
  unsigned char    data[FLOW_SHARED_BYTES];
} __attribute__((aligned(64))) flow_shared_slot;

typedef struct flow_shared_member {
  _Atomic int      left;                 /* the rank has closed its end */
  flow_shared_slot slots[FLOW_SHARED_SLOTS];       /* in turns */
} __attribute__((aligned(64))) flow_shared_member;

typedef struct flow_shared_group {
  /* Written once, by the maker, before the others know of the memory. */
  uint64_t           secret[2];          /* random: says that a file is the one that was meant */
  _Atomic int        broken;             /* 0, 1: somebody is writing why, 2: it is written */
  _Atomic int        status;
  char               reason[FLOW_REASON_SIZE];
  flow_shared_member members[];
} flow_shared_group;

typedef struct flow_shared_peer {
  int64_t process;
  int     watch;                         /* a descriptor that can be read when the process has ended, or -1 */
} flow_shared_peer;

typedef struct flow_shared {
  flow_communicator  base;               /* first: it is what callers hold */
  flow_communicator *inner;              /* over which the ranks found each other; closed and aborted with this */
  flow_shared_group *group;
  size_t             bytes;              /* of the mapping */
  /* Of the thread that makes the calls; all ranks have the same value between two calls. */
  unsigned           step;               /* steps done, modulo 2^32 */
  flow_failure       failure;            /* our own copy of the reason */
  uint64_t           probe;              /* random: peers that read it can read all that they are told the address of */
  int                reads;              /* all ranks can read each other's memory */
  /* The number of the last one; all ranks count the same ones. */
  int64_t            shares;             /* pieces of memory that the ranks have agreed on */
  uint64_t          *addresses;          /* [rank][FLOW_MOST_ARRAYS]: collect's arrays, as the ranks said */
  const void       **parts;              /* [rank]: what is added up */
  flow_shared_peer   peers[];
} flow_shared;

enum { FLOW_MACHINE = 128 };             /* bytes of what tells machines apart */

/* Where others find memory that a process has made. */
typedef struct flow_shared_file { int64_t process, descriptor; uint64_t secret[2]; } flow_shared_file;

/* A call under way. */
typedef struct flow_shared_work {
  flow_group_call  call;
  int64_t          bytes, steps, end;    /* end: on the clock */
  int64_t          looked;               /* steps that were looked at */
  unsigned char   *data;                 /* all_gather: all */
  const void      *mine;                 /* all_gather */
  void (*show)(flow_shared *self, const struct flow_shared_work *work, int64_t step);
  void (*look)(flow_shared *self, const struct flow_shared_work *work, int64_t step);
  void *const     *arrays;               /* collect: this many, their units in bytes, where the ranks' parts begin, ... */
  int              array_count;
  int64_t          unit, per_step;       /* ... and how many units of a part go into a step */
  const int64_t   *first;
} flow_shared_work;

/* Carries a call out: its steps, in which all ranks take part. */
flow_status flow_shared_run(flow_shared *self, flow_shared_work *work);
/* Any thread: the group is broken, for all ranks. The first reason counts. */
void        flow_shared_break(flow_shared *self, flow_status status, const char *reason);
/* shared_collect.c: see transport/exchange.h. */
flow_status flow_shared_collect(flow_communicator *self, void *const *arrays, int count, int64_t unit, const int64_t *first,
                                int64_t *received);
/* shared_memory.c. So much memory that others can map, with the file's secret at its start, or NULL. The descriptor stays open until the
 * caller closes it. */
void       *flow_shared_memory_make(size_t bytes, flow_shared_file *file);
/* The same memory in another process, or NULL. */
void       *flow_shared_memory_open(size_t bytes, const flow_shared_file *file);
/* See transport/exchange.h. */
flow_status flow_shared_share_region(flow_communicator *self, int64_t bytes, flow_shared_region *out);
/* Whether this process can read what is at `address` of a peer's memory: 8 bytes, which have to be `expected`. */
int         flow_shared_can_read(int64_t process, uint64_t address, uint64_t expected);

/* shared_open.c: the machine that this process is on, so that those who say the same may share memory; "": it cannot, or may not. */
void        flow_shared_describe_machine(char machine[FLOW_MACHINE]);
/* shared_meet.c: ranks that have nothing but the store of the options: *out can gather, and nothing else. */
flow_status flow_meeting_open(int rank, int size, const flow_transport_options *options, flow_communicator **out);

/* The slot of a rank for a step; steps use the slots in turn. */
static inline flow_shared_slot *flow_shared_slot_of(const flow_shared *self, int rank, unsigned step)
{
  return &self->group->members[rank].slots[step % FLOW_SHARED_SLOTS];
}

extern const flow_transport flow_transport_shared;        /* has no open: flow_communicator_share makes it of another */

#endif
