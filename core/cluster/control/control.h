/* control.h: the control plane of this process: one thread that drives the protocol (protocol.h) over TCP. Every task listens on its own
 * address of the cluster as long as the control plane is open, so that nobody else is that task; the others dial the chief. With a secret
 * (secret.h) everything is sealed by the plugin "control".
 *
 * Calls block until the answer is there, and may come from any thread; they all end, with a failure that says why, when the generation is
 * aborted or the control plane ends, and with FLOW_INTERRUPTED soon after the flag of the watched context was raised. */
#ifndef FLOW_CLUSTER_CONTROL_CONTROL_H
#define FLOW_CLUSTER_CONTROL_CONTROL_H

#include "cluster/control/protocol.h"
#include "cluster/control/secret.h"

typedef struct flow_control flow_control;

/* A generation as this process joined it: its number, who has the state of the highest step, and the tasks that take part, in ascending
 * order; `members` is valid until the next one is joined. */
typedef struct flow_generation { uint64_t number; int source; double step; const int *members; int count; } flow_generation;

/* cluster: borrowed, lives longer. options: as for the protocol; cluster and incarnation are filled in. log: receives one line, on any
 * thread, and calls nothing of the control plane; NULL: nobody. FLOW_INVALID_ARGUMENT without a secret on a network; FLOW_IO_ERROR if the
 * address cannot be listened on. A launcher that has bound the address already says so in FLOW_LISTEN_DESCRIPTOR (link.h). */
flow_status flow_control_open(const flow_cluster *cluster, const flow_environment *environment, const flow_protocol_options *options,
                              void (*log)(void *state, const char *text), void *state, flow_control **out);
/* Ends the thread and all connections; the others see a lost task, unless goodbye came before. NULL is fine. */
void        flow_control_close(flow_control *control);

/* Where the caller counts the calls that all tasks make together; NULL: nowhere. To be called before join; outlives the control plane. */
void        flow_control_count(flow_control *control, const _Atomic uint32_t *calls);
/* What the control plane tells the process. To be called before join; all that is passed outlives the control plane. The functions are
 * called on any thread, and must not call the control plane.
 *
 * context: its interrupt flag ends waiting; NULL: nothing does. ended: called with a sentence once for each generation that is aborted,
 * and when there is no hope of another one. tick: called several times per heartbeat, also after the end; finished: a task that has said
 * goodbye, or ""; behind: flow_control_is_behind. It returns why this process cannot go on, which is reported as its own fault, or NULL. */
void flow_control_watch(flow_control *control, const flow_context *context, void (*ended)(void *state, const char *text),
                        const char *(*tick)(void *state, const char *finished, int behind), void *state);

/* What seals messages (control_plugin.h), for rooms that seal more; NULL: there is no secret, and nothing is sealed. */
const struct flow_control_functions *flow_control_sealing(const flow_control *control);
/* Waits for the next generation, which may be over when this returns: flow_control_check tells. FLOW_NOT_FOUND: there is none, since the
 * others, who went on without this task, have finished. */
flow_status flow_control_join(flow_control *control, double step, const char *signature, flow_generation *out);
void        flow_control_progress(flow_control *control, double step, const char *doing);
/* FLOW_OK while the generation lives; else FLOW_INVALID_STATE with the sentence that says why it ended, and the task that caused it (-1:
 * none). */
flow_status flow_control_check(flow_control *control, int *culprit);
/* Why the last generation ended. */
flow_end    flow_control_end(flow_control *control);
/* On the chief: whether a task has called with which the next generation would be larger. Takes no lock. */
int         flow_control_has_newcomer(const flow_control *control);
/* Whether the last heartbeat told that another task has begun a common call that this process has not begun, or has said goodbye. A member
 * knows this of the chief, the chief of each task. */
int flow_control_is_behind(flow_control *control);
/* Ends the generation, so that the next one begins with it. */
flow_status flow_control_pause(flow_control *control);
/* Whether no further generation will begin. */
int         flow_control_has_ended(flow_control *control);
/* Waits at most this many seconds for the end of the generation; 1: it is over. */
int         flow_control_await_end(flow_control *control, double within);
flow_status flow_control_set(flow_control *control, const char *key, const uint8_t *value, uint32_t bytes);
/* At most `room` bytes of the value at `value`; *bytes is its whole length. */
flow_status flow_control_get(flow_control *control, const char *key, double within, uint8_t *value, uint32_t room, uint32_t *bytes);
flow_status flow_control_barrier(flow_control *control, const char *name, double within);
/* As flow_protocol_report. */
flow_status flow_control_report(flow_control *control, const char *what, flow_fault fault);
/* A task as this process knows it now. known: whether calls, step and silent are known; of other tasks only the chief knows them, from
 * the last heartbeat. */
typedef struct flow_task_view {
  char        name[FLOW_TASK_NAME_SIZE], address[FLOW_ADDRESS_SIZE], doing[FLOW_DOING_SIZE];
  const char *state;               /* "running", "not there", ...; static */
  int         known;
  uint32_t calls;                  /* how many of the calls that all tasks make together it has begun */
  double      step, silent;        /* silent: seconds since it was heard */
} flow_task_view;
/* The first `room` tasks, in the protocol's order; returns how many there are. self: this process's place; generation: the newest. */
int         flow_control_tasks(flow_control *control, flow_task_view *tasks, int room, int *self, uint64_t *generation);
/* Says goodbye and waits until all tasks have said it; returns at once if preempted. */
flow_status flow_control_goodbye(flow_control *control, int preempted);

#endif
