/* core/transport: sums between ranks, and the thread that makes them while others compute (communication.h). Uses base and tensor.
 *
 * transport.h: how the ranks of a group add up their gradients. One contract for threads of a process ("local"), processes that a
 * launcher started (OpenMPI, "mpi"), plain processes that find each other through a key-value store ("tcp"), and ranks with a GPU each
 * (NCCL, "nccl", with a store, too). mpi and nccl are plugins. When all ranks are on one machine, flow_communicator_share (of mpi)
 * or flow_communicator_meet (in place of tcp) makes them one group that goes through memory ("shared"); when some of them share one,
 * flow_communicator_meet_hosts makes a group that goes through memory within each and over TCP between them ("hosts").
 *
 * Contract of every transport
 *   - All ranks make the same calls with the same counts in the same order. `local`, `shared` and `tcp` find out when they do not and
 *     name both sides (FLOW_INVALID_STATE, which breaks the communicator); the engines of the others need not.
 *   - A sum has the same bits on every rank. It depends on the number of ranks, the transport and the count, never on timing;
 *     `local`, `shared`, `tcp` and `hosts` add in the order of the ranks, ((r0 + r1) + r2) + ...
 *   - One thread at a time uses a communicator, usually the communication thread that opened it. Only abort may be called by any
 *     other thread at any time between the return of open and the call of close.
 *   - A call returns within its timeout (mpi: does not wait longer for any piece of a MiB or two; tcp: for the next byte), whichever
 *     rank is alive: FLOW_TIMED_OUT names the operation and, where the transport can tell, the ranks that did not come. FLOW_IO_ERROR:
 *     a peer is lost. FLOW_ABORTED: somebody called abort; the message has the reason that was given.
 *   - After any of these three the communicator is broken: every further call fails at once with the first failure's status and
 *     reason, and the data of the failed call are undefined. On other ranks the same call may have succeeded. What remains is
 *     close, and a new group under another name; with mpi the start of a new job, since MPI cannot take a collective back.
 *   - nccl: data are in the device's memory, and every call except barrier returns as soon as it is enqueued on the queue of the options.
 *     That queue may be recorded at the same time. After an abort nobody waits for the queue any longer. Recordings that hold calls of
 *     the communicator must be released before close: otherwise close does not return.
 *   - FLOW_INVALID_ARGUMENT and FLOW_OUT_OF_MEMORY leave the communicator unchanged; the other ranks wait meanwhile. */
#ifndef FLOW_TRANSPORT_TRANSPORT_H
#define FLOW_TRANSPORT_TRANSPORT_H

#include "base/status.h"
#include "transport/exchange.h"

enum { FLOW_REASON_SIZE = 512 };        /* of the sentence that says why a communicator is broken */

enum { FLOW_MOST_RANKS = 16384 };

/* Where ranks leave texts for each other, for transports that have to find their peers. Called by the thread that calls open. */
typedef struct flow_store {
  flow_status (*set)(void *state, const char *key, const void *bytes, size_t count);
  /* Waits until the key is there. *bytes is memory of flow_alloc, the caller's then. FLOW_TIMED_OUT after `seconds`. */
  flow_status (*get)(void *state, const char *key, double seconds, void **bytes, size_t *count);
  void *state;
} flow_store;

enum { FLOW_LINK_KEY = 64 };            /* bytes that the two ends of a connection, and nobody else, know: random, new for each group */

/* How what goes through a connection is sealed. */
typedef struct flow_link_seal {
  size_t      overhead;                 /* bytes that sealing adds */
  const void *state;                    /* for begin */
  /* dialed: nonzero at one of the two ends. *session: for the others, until close. */
  flow_status (*begin)(const void *state, const uint8_t key[FLOW_LINK_KEY], int dialed, void **session);
  /* count + overhead bytes at `to`. number: 0, 1, 2, ... */
  flow_status (*seal)(void *session, uint64_t number, const uint8_t *contents, size_t count, uint8_t *to);
  /* count - overhead bytes at `to`. FLOW_CORRUPT_DATA: the other end has not sealed this under that number. */
  flow_status (*open)(void *session, uint64_t number, const uint8_t *sealed, size_t count, uint8_t *to);
  void        (*close)(void *session);
} flow_link_seal;

typedef struct flow_local_group flow_local_group;

typedef struct flow_transport_options {
  double            timeout;      /* seconds that a call may take, open too; more than 0 */
  /* name of the group, for those who meet in a store; new for each new group. "" is a name. At most 48 bytes: longer names are cut, so
   * that two of them may be taken for one */
  const char *group;
  const char       *address;      /* tcp: the own host name or number under which the others reach this process */
  const flow_store *store;        /* tcp, nccl */
  struct flow_queue *queue;       /* nccl: of the rank's device (kernels/accelerator.h); lives until close */
  const flow_link_seal *seal;     /* tcp (optional), in all ranks or none: connections are sealed by it; lives until close */
  const char       *machine;      /* hosts (optional): ranks that say the same share one; NULL: it is found out */
  const int        *ended;        /* tcp, nccl (optional): open fails soon after another thread has set it, by __atomic_store_n */
  int               first_port, last_port;      /* tcp: listens on one of these while it opens; 0: as FLOW_DATA_PORTS, or any */
  flow_local_group *local;        /* local */
} flow_transport_options;

/* A rank's end of the group. Every transport's own struct begins with it. */
typedef struct flow_communicator {
  const struct flow_transport *transport;
  int    rank, size;
  double timeout;
} flow_communicator;

/* The table of a transport. Arguments were checked by the functions below. */
typedef struct flow_transport {
  const char *name;
  /* Sets the first members of *out, too. rank and size are -1 if the launcher is to say it. */
  flow_status (*open)(int rank, int size, const flow_transport_options *options, flow_communicator **out);
  flow_status (*all_reduce)(flow_communicator *self, flow_dtype dtype, void *data, int64_t count);
  flow_status (*broadcast)(flow_communicator *self, int from, void *data, int64_t bytes);
  flow_status (*all_gather)(flow_communicator *self, const void *mine, int64_t bytes, void *all);
  flow_status (*gather)(flow_communicator *self, const flow_gathering *arrays, int count);      /* (optional: else one after the other) */
  /* (optional) The next call is a gather whose first array this is: sends what can be sent without waiting. */
  flow_status (*start_gather)(flow_communicator *self, const flow_gathering *first);
  flow_status (*collect)(flow_communicator *self, void *const *arrays, int count, int64_t unit, const int64_t *first,
                         int64_t *received);                 /* (optional: `shared` alone has it, as the next) */
  flow_status (*share_region)(flow_communicator *self, int64_t bytes, flow_shared_region *out);
  flow_status (*barrier)(flow_communicator *self);
  void        (*abort)(flow_communicator *self, const char *reason);
  void        (*close)(flow_communicator *self);
  /* (optional) Since when a call of the engine has not come back, of flow_now_nanoseconds; 0: none is under way. Any thread, as abort. */
  int64_t     (*inside)(const flow_communicator *self);
} flow_transport;

extern const flow_transport flow_transport_local, flow_transport_tcp;

/* Opens this rank's end. transport: "local", "tcp", "mpi" or "nccl". rank and size: -1 for what the launcher says (mpi only).
 * FLOW_NOT_FOUND with what to install where the plugin is missing. `mpi` and `tcp` wait for the other ranks, `local` does not.
 * What the options point to must live until open returns, but the local group until close does. */
flow_status flow_communicator_open(const char *transport, int rank, int size, const flow_transport_options *options,
                                   flow_communicator **out);
/* Does not wait; NULL is fine. Peers that still wait in a call may take it for a lost peer: call barrier() before it where that matters. */
void        flow_communicator_close(flow_communicator *self);

/* All ranks call it after open. Where they are processes of one machine that can open each other's memory, *communicator becomes one
 * that hands the bytes through memory and owns the old one; elsewhere, and if FLOW_SHARED_MEMORY is 0 in one rank's environment, it stays
 * as it is, which is not a failure. Nothing is left in any file system. A failure is one of the calls that the ranks agree by. */
flow_status flow_communicator_share(flow_communicator **communicator);
/* The same for processes that have only a store to meet in (the options' group, store and timeout): *out hands the bytes through memory;
 * NULL: the ranks do not share any, and a transport has to be opened. FLOW_TIMED_OUT names the rank that did not come. */
flow_status flow_communicator_meet(int rank, int size, const flow_transport_options *options, flow_communicator **out);
/* The same where some of the ranks, which follow each other, share a machine: *out hands the bytes through memory within each machine and
 * over TCP between their first ranks. NULL: no two ranks share one, or all do, or the ranks of one do not follow each other or have no
 * memory together. wanted: if it is 0 in one rank, no rank gets such a group. */
flow_status flow_communicator_meet_hosts(int rank, int size, const flow_transport_options *options, int wanted, flow_communicator **out);
/* How many of the ranks are known to be on this machine, this one among them. */
int         flow_communicator_neighbours(const flow_communicator *self);
/* Does it hand the bytes of all ranks through memory that processes share? */
int         flow_communicator_is_shared(const flow_communicator *self);

/* data[i] = the sum over all ranks of their data[i], in place; float32 or float64. tcp: bfloat16 and float16, too, which are added as
 * float32 and rounded once. */
flow_status flow_communicator_all_reduce(flow_communicator *self, flow_dtype dtype, void *data, int64_t count);
/* data of rank `from` to all others. */
flow_status flow_communicator_broadcast(flow_communicator *self, int from, void *data, int64_t bytes);
/* all: size * bytes, in order of the ranks. `mine` is this rank's place in it, or outside. */
flow_status flow_communicator_all_gather(flow_communicator *self, const void *mine, int64_t bytes, void *all);
/* The same of `count` arrays, one or more; tcp: in one message to each rank. */
flow_status flow_communicator_gather(flow_communicator *self, const flow_gathering *arrays, int count);
/* Tells that the next call of this rank will be a gather whose first array is this one, which is complete: a transport that can begins to
 * send it, and does not wait. Ranks need not do this alike. `first` may go, the memory that it names stays until the gather has ended. */
flow_status flow_communicator_start_gather(flow_communicator *self, const flow_gathering *first);
/* These two as transport/exchange.h says; `shared` only, FLOW_UNSUPPORTED elsewhere. */
flow_status flow_communicator_collect(flow_communicator *self, void *const *arrays, int count, int64_t unit, const int64_t *first,
                                      int64_t *received);
flow_status flow_communicator_share_region(flow_communicator *self, int64_t bytes, flow_shared_region *out);
/* Returns when every rank has called it. */
flow_status flow_communicator_barrier(flow_communicator *self);
/* From any thread: the pending call and all later ones return FLOW_ABORTED with `reason` (at most 500 bytes are kept). `local`
 * and `shared` abort every rank of the group; to other processes the control plane has to say it. The first abort counts. */
void        flow_communicator_abort(flow_communicator *self, const char *reason);

/* Seconds since when a call of the transport's engine has not come back, during which neither a timeout nor an abort gets
 * through; 0: none is under way, or the transport does not tell. As abort, any thread. */
double      flow_communicator_inside(const flow_communicator *self);

/* The memory through which `size` threads meet: one for all, made before the first opens. Its maker releases it; the
 * communicators opened on it hold it, too. */
flow_status flow_local_group_new(int size, flow_local_group **out);
void        flow_local_group_release(flow_local_group *group);

#endif
