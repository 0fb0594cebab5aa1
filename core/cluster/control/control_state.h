/* control_state.h: what control.c (the thread) and control_calls.c (what other threads ask of it) share. */
#ifndef FLOW_CLUSTER_CONTROL_CONTROL_STATE_H
#define FLOW_CLUSTER_CONTROL_CONTROL_STATE_H

#include <poll.h>

#include "base/thread.h"
#include "cluster/control/control.h"
#include "cluster/control/link.h"

enum { FLOW_READ_BYTES = 65536 };

/* A call that waits for its RESULT. */
typedef struct flow_control_call {
  struct flow_control_call *next;
  uint32_t    request;
  int         done, meets;      /* meets: it waits for other tasks */
  flow_status status;
  char        text[FLOW_MOST_TEXT + 1];
  uint8_t    *value;
  uint32_t    room, bytes;
} flow_control_call;

struct flow_control {
  /* Guards all that follows, but what never changes after the opening (thread, wake, listener, is_chief, sealing, log) and `newcomer`. */
  pthread_mutex_t lock;
  pthread_cond_t  changed;
  flow_thread     thread;
  int             started, stop, wake, listener, is_chief;
  flow_protocol  *protocol;
  flow_secret     secret;
  const flow_control_functions *sealing;         /* NULL: plain */
  void          (*log)(void *state, const char *text);
  void           *log_state;
  const flow_context *context;                   /* whose interrupt flag ends waiting; may be NULL */
  void          (*on_end)(void *state, const char *text);
  const char *(*on_tick)(void *state, const char *finished, int behind);
  void           *watch_state;
  const _Atomic uint32_t *begun;                 /* of the caller; NULL: nobody counts */
  /* Only the thread adds and releases them, so that what it polls without the lock stays open. */
  flow_link     **links;
  int             link_count, link_capacity, next_number;
  flow_callers    callers;
  int             caller_count;                  /* links that are callers */
  double          turned_out, next_notice;       /* callers that were closed to make room, since when the log told of them last */
  double          listen_after;                  /* there are no descriptors for callers: the listener rests until then */
  uint64_t        wakeups;                       /* of the thread */
  const flow_caller **list;                      /* room to list callers */
  int             list_capacity;
  struct pollfd  *polled;
  int             polled_capacity;
  char            dial[FLOW_ADDRESS_SIZE];       /* an address that the thread is to dial; "": none */
  unsigned        attempts;
  double          next_complaint;
  /* On the stacks of the threads that wait; each takes its own off the list before it returns. */
  flow_control_call      *calls;
  uint32_t        next_request;
  char            finished[FLOW_TASK_NAME_SIZE + FLOW_ADDRESS_SIZE];     /* a task of the generation that has said goodbye; "": none */
  /* ended: 0, or FLOW_ACTION_DONE or _FAILED: no generation will begin any more. */
  int             generation_lives, culprit, ended;
  flow_end        end;
  _Atomic int     newcomer;
  flow_generation generation;
  char            verdict[FLOW_MOST_TEXT + 1];   /* why the generation, or everything, ended */
  /* The thread's: what was read from the link that is being served. */
  uint8_t         bytes[FLOW_READ_BYTES];
};

/* Seconds of a clock that never goes back. */
double      flow_control_now(void);
/* Lets the thread look at what has changed. */
void        flow_control_wake(flow_control *control);
/* Tells the protocol, locked, how many common calls were begun. */
void        flow_control_take_calls(flow_control *control);
/* To be called, locked, after each call of the protocol: carries out its actions and lets everybody who waits look again. Returns
 * status. */
flow_status flow_control_settle(flow_control *control, flow_status status);

#endif
