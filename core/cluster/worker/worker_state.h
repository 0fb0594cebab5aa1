/* worker_state.h: what the files worker*.c share. */
#ifndef FLOW_CLUSTER_WORKER_WORKER_STATE_H
#define FLOW_CLUSTER_WORKER_WORKER_STATE_H

#include <pthread.h>
#include <stddef.h>

#include "base/thread.h"
#include "transport/communication.h"
#include "cluster/control/control.h"
#include "cluster/monitor/monitor.h"
#include "transport/transport.h"
#include "cluster/worker/worker.h"

enum { FLOW_HEX_SECRET = 65 };                  /* 32 random bytes as text */

typedef enum flow_worker_call { FLOW_CALL_STEP = 1, FLOW_CALL_BROADCAST, FLOW_CALL_GATHER, FLOW_CALL_AGREE } flow_worker_call;

/* What all workers have announced has failed on this one: worker_failed.c. */
typedef enum flow_worker_failed {
  FLOW_FAILED_NOT = 0,
  FLOW_FAILED_ALONE, /* for all that is known; the program has not called the others since */
  FLOW_FAILED_ASKS,  /* it asks the others whether the call failed there, too */
} flow_worker_failed;

/* What a worker shows the others before a call; up to `inside` it is the same on all. */
typedef struct flow_announcement {
  uint32_t magic, kind;
  int64_t  bytes;
  char     what[16];
  uint8_t  inside[64];
} flow_announcement;

struct flow_worker {
  flow_exchange      exchange;                  /* first: it is what the graph holds */
  flow_context      *context;
  flow_cluster      *cluster;                   /* a copy; with addresses that MPI has brought, where the launcher knew none */
  double             timeout;                   /* seconds */
  double             progress;                  /* the step that was told last; generations count otherwise (flow_worker_rejoin) */
  flow_control      *control;                   /* NULL: a single worker */
  /* Each generation opens a new one, on the program's thread; MPI's comes from worker_launched.c where the launcher alone knows the
   * tasks. */
  flow_communicator *communicator;
  flow_communication *communication;            /* its thread */
  int                unlike;                    /* the workers do not compute with the same instructions: worker_arithmetic.c */
  int has_trained;                              /* it has been in a generation with others */
  pthread_mutex_t    lock;                      /* of `aborts` and `devices` */
  /* Written by the control plane's thread, read by transports while they open; set back when a generation begins (forget_generation). */
  int                ended;                     /* a verdict has come: no transport opens any more; by __atomic_store_n */
  flow_communicator *aborts;                    /* what a verdict of the control plane aborts; NULL: nothing */
  /* and these: groups of GPUs that add up among themselves, until they or this worker are closed */
  struct flow_device_exchange **devices;
  int                device_count, device_capacity;
  flow_generation    generation;                /* of the control plane: the one that this worker has joined last */
  int                elastic;                   /* generations need not have all workers */
  int                held;                      /* flow_worker_hold: by how many calls */
  int                encrypts;                  /* FLOW_ENCRYPT, and how */
  flow_link_seal     seal;
  const char        *transport;                 /* what carries the sums: "tcp", "mpi" */
  int                pairwise, shards;          /* of the options */
  int                gradient_dtype;            /* of the options, where the transport adds it up */
  int                apart;                     /* flow_worker_set_apart */
  flow_monitor      *monitor;                   /* which shows it; NULL: none */
  int                step_told;                 /* the program has said which step comes next */
  int                groups;                    /* of GPUs that were connected: all workers count the same */
  char               engine[32];
  flow_announcement *announcements;             /* of the present call, in order of the ranks */
  int                orderly;                   /* goodbye was said */
  int64_t            calls;                     /* that all workers have begun together */
  _Atomic int        hears;                     /* a call of this worker has failed with the verdict, or with what led to it */
  _Atomic int64_t    unheard_since;             /* nanoseconds: when a verdict came with which no call has failed yet; 0: there is none */
  char               verdict[FLOW_MOST_TEXT + 1];   /* that one; the control plane's lock guards it */
  _Atomic int failed;                               /* a flow_worker_failed: what all had begun has failed here */
  char failure[FLOW_MOST_TEXT + 1];                 /* why; the control plane's thread reads it while it is FLOW_FAILED_ALONE */
  _Atomic uint32_t   begun;                     /* what the workers do together in the transport: who has begun less is late */
  _Atomic int64_t    waiting_since;             /* nanoseconds: this worker waits for the others in the transport; 0: it does not */
  int64_t            noticed, next_notice;      /* the wait that the log tells of, and when next; the control plane's thread's */
  double             patience;                  /* seconds that a call of the engine may take before it comes back to look around */
  /* With `stuck`: of the control plane's thread. */
  int                late_looks;                /* at one that takes longer; with the lock */
  char               stuck[200];
  int                looks;                     /* at this wait since a task has finished; the same thread's */
  /* Of a cluster without addresses: what stands for the environment's variables of the same meaning. */
  char               secret[FLOW_HEX_SECRET], descriptor[12];
  int                listener;                  /* bound before the others learn the address; -1: none */
  int forks;                                    /* flow_fork_generation() when it was opened */
};

/* Whether this process was forked from the one that takes part. It has copies of its sockets and shares its memory, but has none of its
 * threads: what it said would come between what the parent says, and it could wait for nothing. */
static inline int flow_worker_is_parents(const flow_worker *worker)
{
  return worker->forks != flow_fork_generation();
}
/* Fails in such a process. To be called before anything that the other workers learn of, or that takes a lock. */
flow_status flow_worker_check_own(const flow_worker *worker);

/* Passes on FLOW_OK, and failures that are this process's own. For anything else waits a moment for the control plane's verdict, and fails
 * with that. */
flow_status flow_worker_explain(flow_worker *worker, flow_status status);
/* Opens MPI and fills in the cluster's addresses, the secret and the listener (worker_launched.c). The communicator stays open. */
flow_status flow_worker_meet_by_launcher(flow_worker *worker, double start_within);
/* The program has the verdict now, or its own failure that led to it: the log need not say it. */
void        flow_worker_hear(flow_worker *worker);
/* Joins the next generation and connects to the others; step: of this worker's state. flow_worker_disconnect comes before the next time:
 * nothing is under way, and GPUs that added up among workers do so no more. */
flow_status flow_worker_connect(flow_worker *worker, double step);
void        flow_worker_disconnect(flow_worker *worker);
/* worker_failed.c: notes that what all have announced has failed here, for the reason that is this thread's last error. */
void flow_worker_note_failure(flow_worker *worker);
/* To be called before a call that all workers make: after a failure that all have alike they go on, after one that is this worker's alone
 * it fails, on all. */
flow_status flow_worker_settle_failure(flow_worker *worker);
/* For the control plane's thread: why this worker cannot go on, since others (behind: flow_control_is_behind) wait for what has failed
 * here; NULL: they do not. */
const char *flow_worker_failed_alone(flow_worker *worker, int behind);
/* To be called before what may wait; flow_worker_explain() comes after it. */
void        flow_worker_note_waiting(flow_worker *worker);
/* worker_encrypt.c: fills in `encrypts` and `seal`, once the control plane is there. */
flow_status flow_worker_prepare_seal(flow_worker *worker);
/* Fills in worker->exchange (worker_exchange.c). */
void        flow_worker_set_exchange(flow_worker *worker);
/* The store of the generation, for transports that look for their peers; as long as the worker. */
flow_store  flow_worker_transport_store(flow_worker *worker);
/* connect_devices.c: waits for what GPUs that add up with other workers' still do; lets go of them, who can add up no more. */
void        flow_worker_finish_devices(flow_worker *worker);
void        flow_worker_leave_devices(flow_worker *worker);
/* worker_arithmetic.c: lets all workers compute with the same instructions, if they can, once worker->communicator is open, or fills in
 * `unlike`; the first worker warns. */
flow_status flow_worker_compare_arithmetic(flow_worker *worker);
/* "worker:1: ..." to flow_log. */
void        flow_worker_log(const flow_worker *worker, int level, const char *text);
/* To be called several times a heartbeat: a line for the log while this worker waits for long. 1: it waits for a task that has finished,
 * and whose bytes, if it sent any, are not only on their way. */
int         flow_worker_waits_in_vain(flow_worker *worker, const char *finished);
/* What comes now, to be the same on all workers; fails on all if it is not. what: a name for messages (worker_announce.c). */
flow_status flow_worker_announce(flow_worker *worker, flow_worker_call kind, const char *what, int64_t bytes);
/* The same, and gathers. all: workers x bytes. */
flow_status flow_worker_gather(flow_worker *worker, flow_worker_call kind, const char *what, const void *mine, int64_t bytes, void *all);
/* Calls of the transport, which does not check that all make the same. */
flow_status flow_worker_move_broadcast(flow_worker *worker, int from, void *data, int64_t bytes);
flow_status flow_worker_move_all_gather(flow_worker *worker, const void *mine, int64_t bytes, void *all);

#endif
