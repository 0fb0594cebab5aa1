/* protocol_state.h: what the files protocol*.c share. */
#ifndef FLOW_CLUSTER_CONTROL_PROTOCOL_STATE_H
#define FLOW_CLUSTER_CONTROL_PROTOCOL_STATE_H

#include "cluster/control/protocol.h"

enum {
  FLOW_PLACE_SIZE = 96,
  FLOW_SIGNATURE_SIZE = FLOW_MOST_SIGNATURE + 1,
  FLOW_LIMIT_NAME = FLOW_MOST_NAME + 1,
  FLOW_LIMIT_TEXT = FLOW_MOST_TEXT + 1
};

/* How far a task is. Of the chief itself: from WELCOMED on; of a member as it sees itself: all. */
typedef enum flow_standing {
  FLOW_ABSENT = 0,     /* no connection (a member dials) */
  FLOW_GREETING,       /* HELLO is on its way */
  FLOW_WELCOMED,       /* is here, not ready for a generation */
  FLOW_JOINED,         /* ready */
  FLOW_RUNNING,        /* in the generation */
  FLOW_FINISHED,       /* has said GOODBYE */
  FLOW_ENDED,          /* DONE or FAILED: no event has a meaning any more */
} flow_standing;

typedef struct flow_action_node flow_action_node;

/* Another task, as the chief knows it; number 0 is the chief itself. */
typedef struct flow_peer {
  /* Only tasks with a connection are sent anything. WELCOMED to RUNNING have one; FINISHED may have lost it. */
  int      standing, connection;       /* -1: none */
  uint64_t incarnation, generation;    /* the last generation that it knows */
  uint64_t rival;                      /* another process that says that it is this task, 0: none has; since when */
  double   rival_since;
  double   heard, step, gone, joined;  /* gone: since when it is not there; joined: when it was ready last */
  uint32_t calls;                      /* that it has begun */
  int      waiting;                    /* requests that are not answered */
  char     doing[FLOW_DOING_SIZE], signature[FLOW_SIGNATURE_SIZE], place[FLOW_PLACE_SIZE];
} flow_peer;

/* A connection that has not said HELLO. */
typedef struct flow_stranger { int connection; double since; } flow_stranger;

typedef struct flow_store_entry { struct flow_store_entry *next; char *key; uint8_t *value; uint32_t bytes; } flow_store_entry;
/* A GET or ENTER that is not answered. */
typedef struct flow_waiter {
  struct flow_waiter *next;
  int      task, barrier;
  uint32_t request;
  double   since, until;
  char     name[FLOW_LIMIT_NAME];
} flow_waiter;

typedef struct flow_protocol_store {
  flow_store_entry *entries;
  flow_waiter      *waiters;           /* in the order of their coming */
  size_t            bytes;
} flow_protocol_store;

struct flow_protocol {
  const flow_cluster *cluster;
  flow_protocol_options options;       /* with the defaults filled in; job and version point after this struct */
  int      tasks, self;                /* number of tasks; this one's */
  /* Valid after the first START; the chief's and the members' lists are the same. */
  int     *members, member_count;      /* the tasks that take part in the newest generation; room for all */
  char     hash[24];
  double   now;                        /* the newest event's time */

  /* this process */
  int      standing;
  int      joining;                    /* the caller has asked for a generation that has not begun */
  uint64_t generation;                 /* the newest that this process knows */
  uint32_t calls;
  double   step, asked, deadline;      /* asked, deadline: of the generation that is waited for */
  /* a member, with min_workers: it stood still for so long that the others have gone on; 0: it did not */
  double   slept;
  /* a member: a generation is under way without this process, which waits as long as the chief lives */
  int      stands_by;
  uint32_t chief_calls; /* a member: that the chief had begun when it was heard last */
  int chief_finished;   /* a member: the chief has said GOODBYE */
  char     doing[FLOW_DOING_SIZE], signature[FLOW_SIGNATURE_SIZE], place[FLOW_PLACE_SIZE];
  /* The numbers of this process's requests, in no order. */
  uint32_t requests[FLOW_MOST_REQUESTS];
  int      request_count;              /* not answered yet */

  double   next_ping, next_notice;

  /* members: the connection to the chief. At most one is under way: `dialing` from DIAL until connected or closed follows, `connection`
   * from then on */
  int      connection, dialing, greeted;       /* greeted: a WELCOME came over this connection */
  double   heard, next_dial, pause;
  char     obstacle[FLOW_LIMIT_TEXT];   /* member: why the chief was not reached, or why it stands by; chief: who was turned away. For
                                         * notices and last words */

  /* the chief */
  flow_peer     *peers;                /* one per task */
  /* Connections that have not said HELLO, in no order. */
  flow_stranger *strangers;
  int            stranger_count, stranger_capacity;
  flow_protocol_store     store;
  int            suspect;              /* who reported, -1: nobody; decided upon after a while, in which the true culprit may show */
  int            suspicion;            /* the report's flow_fault */
  double         decide_at;
  int            misfit;               /* a task that another flowlua is, and will be again: ends waiting for it; 0: none */
  char           misfit_text[FLOW_LIMIT_TEXT];
  char           report[FLOW_LIMIT_TEXT];

  /* The queue (protocol_actions.c); current: the one that was fetched last. */
  flow_action_node *first, *last, *current;
};

/* ---- protocol.c: for all ------------------------------------------------------------------------------------------------------------- */

/* "worker:2 10.0.0.7:2222" in one of four buffers of the thread. */
const char *flow_protocol_task(const flow_protocol *protocol, int task);
/* DONE or FAILED. */
flow_status flow_protocol_end(flow_protocol *protocol, int kind, const char *text);
/* Ends this process's part of the generation: ABORTED, and a failed RESULT for each open request. */
flow_status flow_protocol_aborted(flow_protocol *protocol, int culprit, const char *text, flow_end end);
/* Until when this process waits for a generation. Who has reached the chief leaves the verdict to it, which knows who is missing. */
double flow_protocol_deadline(const flow_protocol *protocol);
/* FINISHED. Where memory is out it is left unsaid: this process would only wait longer. */
void        flow_protocol_finished(flow_protocol *protocol, int task);
/* The RESULT of one of this process's requests; unknown ones are left aside. */
flow_status flow_protocol_answered(flow_protocol *protocol, uint32_t request, flow_status status, const char *text, const uint8_t *value,
                                   uint32_t bytes);

/* ---- protocol_actions.c: FLOW_OUT_OF_MEMORY is the only failure, and queues nothing -------------------------------------------------- */

/* Queues the message, which is copied; nothing for a connection of -1. */
flow_status flow_protocol_send(flow_protocol *protocol, int connection, const flow_control_message *message);
/* action->text and bytes are copied. */
flow_status flow_protocol_act(flow_protocol *protocol, const flow_action *action);
/* Closes after what was sent before; nothing for -1. */
flow_status flow_protocol_close(flow_protocol *protocol, int connection);
/* A line for the log. */
flow_status flow_protocol_notice(flow_protocol *protocol, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- protocol_chief.c ---------------------------------------------------------------------------------------------------------------- */

/* The chief's part of the functions of protocol.h: a stranger has connected; a message has come; a connection has ended; time has passed;
 * when the timer has to be called next, INFINITY: not for the chief's sake. slept: seconds for which this process stood still, else 0. */
flow_status flow_chief_connected(flow_protocol *protocol, int connection);
flow_status flow_chief_received(flow_protocol *protocol, int connection, const flow_control_message *message);
flow_status flow_chief_closed(flow_protocol *protocol, int connection, const char *why);
flow_status flow_chief_timer(flow_protocol *protocol, double slept);
double      flow_chief_wakeup(const flow_protocol *protocol);
/* Whether another task has begun a common call that the chief has not, or has said goodbye. */
int flow_chief_is_behind(const flow_protocol *protocol);
/* Whether a generation runs, even if its chief has said goodbye. */
int         flow_chief_is_running(const flow_protocol *protocol);
/* REFUSE, to everybody, and the end of this process's part. */
flow_status flow_chief_give_up(flow_protocol *protocol, const char *text);
/* Ends the generation for all who take part in it, with this sentence: they may join the next one. */
flow_status flow_chief_abort(flow_protocol *protocol, int culprit, const char *text, flow_end end);
/* A task is gone. what: "closed its connection", "silent for 10.0 s". Its connection is closed if there still is one. */
flow_status flow_chief_lose(flow_protocol *protocol, int task, const char *what);
/* What a member's REPORT and GOODBYE do, and the chief's own. */
flow_status flow_chief_reported(flow_protocol *protocol, int task, const char *text, flow_fault fault);
flow_status flow_chief_goodbye(flow_protocol *protocol, int task, int preempted);
/* RESULT to a task, itself included. */
flow_status flow_chief_answer(flow_protocol *protocol, int task, uint32_t request, flow_status status, const char *text,
                              const flow_store_entry *entry);

/* ---- protocol_generation.c ----------------------------------------------------------------------------------------------------------- */

/* START, of the chief and of members. FLOW_CORRUPT_DATA: it names unknown tasks, or does not name this one. */
flow_status flow_protocol_started(flow_protocol *protocol, const flow_control_message *start);
/* What a member's JOIN does, and the chief's own. */
flow_status flow_chief_joined(flow_protocol *protocol, int task, const flow_control_message *message);
/* Begins a generation if all tasks that it needs are ready. */
flow_status flow_chief_try_start(flow_protocol *protocol);
/* What flow_protocol_pause does. */
flow_status flow_chief_pause(flow_protocol *protocol);
/* When the chief stops waiting for tasks that are not there. */
double      flow_chief_start_wakeup(const flow_protocol *protocol);

/* ---- protocol_handshake.c ------------------------------------------------------------------------------------------------ */

typedef enum flow_mismatch {
  FLOW_FITS = 0,
  FLOW_OTHER_PROGRAM,  /* of the same job and cluster */
  FLOW_OTHER_CLUSTER,  /* it may be a stranger */
} flow_mismatch;

/* text: what does not fit, as a sentence with both sides. */
flow_mismatch flow_hello_check(const flow_protocol *protocol, const flow_control_message *hello, char *text, int size);
/* What the task says that it is on its machine, cut. */
void          flow_hello_place(const flow_control_message *hello, char place[FLOW_PLACE_SIZE]);

/* ---- protocol_store.c: the chief's store and barriers -------------------------------------------------------------------------------- */

/* SET, ENTER or GET of a task of this generation; a wait that expires; when the next one does; frees all at the end of a generation. */
flow_status flow_store_request(flow_protocol *protocol, int task, const flow_control_message *message);
flow_status flow_store_timer(flow_protocol *protocol);
double      flow_store_wakeup(const flow_protocol *protocol);
void        flow_store_clear(flow_protocol *protocol);

/* ---- protocol_member.c --------------------------------------------------------------------------------------------------------------- */

/* A member's part, as the chief's above; its one connection is to the chief. */
flow_status flow_member_connected(flow_protocol *protocol, int connection);
flow_status flow_member_received(flow_protocol *protocol, const flow_control_message *message);
flow_status flow_member_closed(flow_protocol *protocol, const char *why);
flow_status flow_member_timer(flow_protocol *protocol);
double      flow_member_wakeup(const flow_protocol *protocol);

#endif
