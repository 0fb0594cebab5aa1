/* protocol.h: the control plane as a pure state machine: events go in, actions come out. It knows no sockets, no clock and no threads;
 * its caller does (control.c; a test drives a whole cluster of them in made-up time).
 *
 * The tasks of a cluster but the evaluator are numbered: chief, workers, parameter servers. Number 0 is the coordinator, "the chief": the
 * others dial it, it alone decides, it is the last to leave. A generation is a time in which all tasks work together:
 *
 *   HELLO ──► WELCOME ──► JOIN (from all) ──► START(g) ──► work: store, barriers, heartbeats ──► GOODBYE (from all) ──► FAREWELL
 *                          ▲                                   │ a task is lost, or reports
 *                          └── the caller joins again ◄── ABORT(g, culprit)
 *
 *   - A generation's number is higher than any that a task which takes part has seen.
 *   - A task is lost when its connection closes without GOODBYE, when nothing is heard of it for dead_after seconds, or when another
 *     process says that it is this task now. The chief names it; every task of the generation gets the same sentence. Who loses the
 *     chief itself names the chief.
 *   - Who slept (was stopped, swapped out) for long accuses nobody: silence of others is counted from the beginning, and a chief that slept
 *     for so long that the others may have given it up names itself.
 *   - A chief that comes again waits for all tasks, like the first.
 *   - With min_workers a generation may begin without tasks that are not there (protocol_generation.c). Who joins while one is under way
 *     stands by: the next one begins with it, when the program of the chief comes to a place where it can pause.
 *
 * After each call actions are to be fetched until there are none. Where memory is out, an event or join, report, goodbye ends this
 * process's part without further words: the driver closes all connections, and the others see a task that is lost. Not thread-safe. */
#ifndef FLOW_CLUSTER_CONTROL_PROTOCOL_H
#define FLOW_CLUSTER_CONTROL_PROTOCOL_H

#include "cluster/cluster.h"
#include "cluster/control/message.h"

enum {
  FLOW_MOST_STORE = 4 << 20,        /* bytes of all keys and values */
  FLOW_MOST_REQUESTS = 32,          /* of one task that wait for an answer */
  FLOW_MOST_SIGNATURE = 64,         /* bytes of a model's signature: a digest */
};

enum { FLOW_DOING_SIZE = 96 };      /* bytes of what a task says that it does */

typedef struct flow_protocol flow_protocol;

typedef struct flow_protocol_options {
  const flow_cluster *cluster;      /* borrowed as long as the protocol lives; with this process's task, which is not an evaluator */
  const char *job, *version;        /* copied; both have to be the same everywhere */
  const char *place;                /* copied, cut: "process 4711 on a": what this task is on its machine; NULL: "" */
  uint64_t incarnation;             /* a random number: tells two processes that are the same task apart */
  double heartbeat, dead_after;     /* seconds; 0: 1 and 10 */
  double start_within, rejoin_within;   /* how long to wait for the first generation and for further ones; 0: 300 and 600 */
  int    min_workers;               /* a generation may begin with this many tasks, the chief among them; 0: only with all */
  int    shards;                    /* with min_workers: at most this many tasks take part; 0: any number */
  double shrink_after;              /* with min_workers: seconds for which others wait for a task that is not there; 0: 5 */
} flow_protocol_options;

/* FLOW_INVALID_ARGUMENT if the cluster says nothing of this process. now: seconds of a clock that never goes back. */
flow_status flow_protocol_new(const flow_protocol_options *options, double now, flow_protocol **out);
void        flow_protocol_release(flow_protocol *protocol);

/* Whom this process waits for at first: the chief, or, as chief, all others; the first four. */
void        flow_protocol_list_others(const flow_protocol *protocol, flow_text *text);

/* ---- events of connections. `connection` is the driver's number for it, from 0, never used again ------------------------------------- */

/* Accepted (chief), or what DIAL asked for (members). */
flow_status flow_protocol_connected(flow_protocol *protocol, double now, int connection);
/* Whether a task that takes part is at the other end. The driver bounds how many others it lets in (callers.h). */
int         flow_protocol_is_task(const flow_protocol *protocol, int connection);
/* One message. A message that nobody would send closes the connection. */
flow_status flow_protocol_received(flow_protocol *protocol, double now, int connection, const uint8_t *bytes, size_t count);
/* Closed by the other side or the network, for the reason `why`; connection -1: DIAL failed. */
flow_status flow_protocol_closed(flow_protocol *protocol, double now, int connection, const char *why);
/* Somebody who may be a task that is missing could not be let in: its connection never was the protocol's, since it has another secret,
 * say. Who says that somebody is missing says this, too. */
void        flow_protocol_turned_away(flow_protocol *protocol, const char *why);
/* Time has passed; to be called at flow_protocol_wakeup() or any time. */
flow_status flow_protocol_timer(flow_protocol *protocol, double now);
double      flow_protocol_wakeup(const flow_protocol *protocol);

/* ---- requests of this process. FLOW_INVALID_STATE: not now --------------------------------------------------------------------------- */

/* The numbers of the tasks that take part in the newest generation, in ascending order; returns how many. They stay until the next
 * STARTED. */
int         flow_protocol_members(const flow_protocol *protocol, const int **members);
/* Ready for the next generation. step: of the state that this process has (-1: none); signature: of what all tasks have to have in common,
 * as its model ("": nothing, longer ones are cut). STARTED, or FAILED, follows. */
flow_status flow_protocol_join(flow_protocol *protocol, double now, double step, const char *signature);
/* What heartbeats and messages say of this process from now on. */
void        flow_protocol_progress(flow_protocol *protocol, double step, const char *doing);
/* The store of this generation: each is answered by a RESULT with the number `request`, in the generation's lifetime. A value of no bytes
 * takes the key away. */
flow_status flow_protocol_set(flow_protocol *protocol, double now, uint32_t request, const char *key, const uint8_t *value, uint32_t bytes);
flow_status flow_protocol_get(flow_protocol *protocol, double now, uint32_t request, const char *key, double within);
/* A RESULT follows when all tasks have entered, or `within` seconds after the first one did: then it names who is missing. */
flow_status flow_protocol_barrier(flow_protocol *protocol, double now, uint32_t request, const char *name, double within);
/* How many calls that all tasks make together this process has begun: tells who is late. */
void        flow_protocol_calls(flow_protocol *protocol, uint32_t calls);
/* Whether another task had begun a common call that this process has not begun, or had said goodbye, when it was heard last: of a member,
 * the chief; of the chief, any task that takes part. */
int flow_protocol_is_behind(const flow_protocol *protocol);
/* This process cannot go on: ABORTED follows, with whom the chief holds responsible. Unless it is this process's own fault the chief waits
 * a moment whether another one turns out to be lost. */
flow_status flow_protocol_report(flow_protocol *protocol, double now, const char *what, flow_fault fault);
/* Of the chief: whether the next generation would have more tasks than this one, and which task has come; -1: it would not. */
int         flow_protocol_newcomer(const flow_protocol *protocol);
/* Of the chief: ends the generation, so that the next one begins with who has come. No-op if nobody has. */
flow_status flow_protocol_pause(flow_protocol *protocol, double now);
/* No more work here. DONE follows when all tasks have said so; at once if preempted (this process is to end, though its work is not done),
 * which ends the generation. */
flow_status flow_protocol_goodbye(flow_protocol *protocol, double now, int preempted);

/* ---- actions ------------------------------------------------------------------------------------------------------------------------- */

typedef enum flow_action_kind {
  FLOW_ACTION_SEND = 1,  /* bytes over the connection */
  FLOW_ACTION_CLOSE,     /* the connection, after what was sent; no event follows */
  FLOW_ACTION_DIAL,      /* the chief's address, in text; connected or closed follows */
  FLOW_ACTION_STARTED,   /* a generation; task: who has the newest state, step: its step */
  FLOW_ACTION_ABORTED,   /* the generation is over; task: the culprit, text: the sentence, request: a flow_end */
  FLOW_ACTION_RESULT,    /* of a request; status, bytes: a value, text: why it failed */
  FLOW_ACTION_NOTICE,    /* a line for the log */
  FLOW_ACTION_FINISHED,  /* another task has said goodbye: it comes to nothing any more; text: its name */
  FLOW_ACTION_DONE,      /* the last: everybody is done. After join, before STARTED: without this process, which stood by */
  FLOW_ACTION_FAILED,    /* the last: there is no hope; text: the sentence */
} flow_action_kind;

typedef struct flow_action {
  int            kind, connection, task;
  /* which it belongs to: a driver may leave aside what an earlier one has asked for */
  uint64_t       generation;
  double         step;
  uint32_t       request;
  flow_status    status;
  const uint8_t *bytes;
  size_t         count;
  const char    *text;           /* never NULL */
} flow_action;

/* The oldest action; 0: there is none. It is valid until the next call with this protocol. */
int flow_protocol_next(flow_protocol *protocol, flow_action *out);

#endif
