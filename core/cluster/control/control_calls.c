/* control_calls.c: what the threads of a process ask of its control plane. Each call takes the lock, changes the protocol, lets the
 * thread know, and, if it waits, sleeps on `changed` until the thread has had an answer. A waiting call ends for one of these reasons:
 * the answer, the end of the generation or of everything, an interrupt of the watched context; a call that needs other tasks to come
 * ends for a preemption, too, since those may never come while this process lives. */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cluster/control/control_state.h"

/* FLOW_INVALID_STATE with the sentence that ended the generation, which is what a user has to read. */
static flow_status fail_ended(const flow_control *control)
{
  const char *why = control->verdict[0] ? control->verdict : "all tasks have said goodbye";
  return flow_fail(FLOW_INVALID_STATE, "%s", why);
}

static void enter(flow_control *control) { pthread_mutex_lock(&control->lock); }

/* The end of a call that has changed something: wakes the thread, unlocks. */
static flow_status leave(flow_control *control, flow_status status)
{
  flow_control_wake(control);
  pthread_mutex_unlock(&control->lock);
  return status;
}

/* Sleeps, locked, until something has changed, at most until then (of flow_control_now's clock). A signal handler can raise the
 * interrupt flag, but wake nobody: it is looked at again and again. May return for no reason: callers look at their condition in a
 * loop. */
static void wait_for_change(flow_control *control, double until)
{
  static const double LOOK_EVERY = 0.05;
  if (control->context) until = fmin(until, flow_control_now() + LOOK_EVERY);
  if (isinf(until)) {
    pthread_cond_wait(&control->changed, &control->lock);
    return;
  }
  const struct timespec end = { .tv_sec = (time_t)until, .tv_nsec = (long)((until - floor(until)) * 1e9) };
  pthread_cond_timedwait(&control->changed, &control->lock, &end);
}

static int interrupted(const flow_control *control)
{
  return control->context && flow_interrupted(control->context);
}

/* A task that has not connected yet may not come before this process has to end. */
static int is_wanted_no_more(const flow_control *control)
{
  return interrupted(control) || (control->context && flow_preempted(control->context));
}

static flow_status fail_interrupted(const char *what)
{
  return flow_fail(FLOW_INTERRUPTED, "interrupted while it waited for %s", what);
}

void flow_control_count(flow_control *control, const _Atomic uint32_t *calls)
{
  enter(control);
  control->begun = calls;
  pthread_mutex_unlock(&control->lock);
}

/* Under the lock, since the thread that will call these functions runs already. */
void flow_control_watch(flow_control *control, const flow_context *context, void (*ended)(void *state, const char *text),
                        const char *(*tick)(void *state, const char *finished, int behind), void *state)
{
  enter(control);
  control->context = context;
  control->on_end = ended;
  control->on_tick = tick;
  control->watch_state = state;
  pthread_mutex_unlock(&control->lock);
}

/* out->members points into the protocol, and is valid until the next generation that this process joins. */
flow_status flow_control_join(flow_control *control, double step, const char *signature, flow_generation *out)
{
  enter(control);
  if (control->ended) return leave(control, fail_ended(control));
  uint64_t before = control->generation.number;
  flow_status status = flow_control_settle(control, flow_protocol_join(control->protocol, flow_control_now(), step, signature));
  flow_control_wake(control);
  while (status == FLOW_OK && control->generation.number == before && !control->ended) {
    if (is_wanted_no_more(control)) status = fail_interrupted("the other tasks");
    else wait_for_change(control, INFINITY);
  }
  if (status == FLOW_OK && control->ended == FLOW_ACTION_DONE) {
    status = flow_fail(FLOW_NOT_FOUND, "the other workers have finished without this one, which stood by");
  } else if (status == FLOW_OK && control->ended) status = fail_ended(control);
  *out = control->generation;
  out->count = flow_protocol_members(control->protocol, &out->members);
  return leave(control, status);
}

void flow_control_progress(flow_control *control, double step, const char *doing)
{
  enter(control);
  flow_protocol_progress(control->protocol, step, doing);
  pthread_mutex_unlock(&control->lock);
}

/* Does not wait and does not ask the chief: says what the thread has heard so far. */
flow_status flow_control_check(flow_control *control, int *culprit)
{
  enter(control);
  *culprit = control->generation_lives ? -1 : control->culprit;
  flow_status status = control->generation_lives ? FLOW_OK : fail_ended(control);
  if (status != FLOW_OK && *culprit >= 0) flow_fail_field(status, FLOW_ERROR_TASK, *culprit);
  pthread_mutex_unlock(&control->lock);
  return status;
}

flow_end flow_control_end(flow_control *control)
{
  enter(control);
  flow_end end = control->end;
  pthread_mutex_unlock(&control->lock);
  return end;
}

/* By the last heartbeat; it does not wait. */
int flow_control_is_behind(flow_control *control)
{
  enter(control);
  flow_control_take_calls(control);
  int behind = flow_protocol_is_behind(control->protocol);
  pthread_mutex_unlock(&control->lock);
  return behind;
}

int flow_control_has_newcomer(const flow_control *control) { return atomic_load(&control->newcomer); }

flow_status flow_control_pause(flow_control *control)
{
  enter(control);
  return leave(control, flow_control_settle(control, flow_protocol_pause(control->protocol, flow_control_now())));
}

int flow_control_has_ended(flow_control *control)
{
  enter(control);
  int ended = control->ended != 0;
  pthread_mutex_unlock(&control->lock);
  return ended;
}

/* 1: the generation is over. Called after a failure of a sum, so that the chief's sentence, which names who is to blame, can replace that
 * of the transport. */
int flow_control_await_end(flow_control *control, double within)
{
  double until = flow_control_now() + within;
  enter(control);
  while (control->generation_lives && flow_control_now() < until) wait_for_change(control, until);
  int over = !control->generation_lives;
  pthread_mutex_unlock(&control->lock);
  return over;
}

/* Waits, locked, for the answer of a request that was made with this status; the call lives on the caller's stack. Where the request came
 * after the end of the generation, the failure says why that ended. */
static flow_status wait_for(flow_control *control, flow_control_call *waiting, flow_status status)
{
  flow_control_wake(control);
  if (status == FLOW_INVALID_STATE && !control->generation_lives && control->verdict[0]) status = fail_ended(control);
  while (status == FLOW_OK && !waiting->done && !control->ended) {
    if (interrupted(control) || (waiting->meets && is_wanted_no_more(control))) status = fail_interrupted("an answer of the chief");
    else wait_for_change(control, INFINITY);
  }
  flow_control_call **at = &control->calls;
  while (*at != waiting) at = &(*at)->next;
  *at = waiting->next;
  if (status == FLOW_OK && !waiting->done) status = fail_ended(control);
  else if (status == FLOW_OK && waiting->status != FLOW_OK) status = flow_fail(waiting->status, "%s", waiting->text);
  return leave(control, status);
}

/* Takes the lock and lists the call, under a new number, so that its answer finds it. wait_for takes it off the list. */
static void begin_call(flow_control *control, flow_control_call *waiting)
{
  enter(control);
  waiting->request = ++control->next_request;
  waiting->next = control->calls;
  control->calls = waiting;
}

/* Waits until the chief has it: a get that begins after this finds the value. */
flow_status flow_control_set(flow_control *control, const char *key, const uint8_t *value, uint32_t bytes)
{
  flow_control_call waiting = { .value = NULL };
  begin_call(control, &waiting);
  return wait_for(control, &waiting, flow_control_settle(control, flow_protocol_set(control->protocol, flow_control_now(),
                                                                                    waiting.request, key, value,
                                                                       bytes)));
}

/* The value is copied by the thread into the caller's memory while the caller sleeps (answer in control_actions.c). *bytes may be larger
 * than `room`. */
flow_status flow_control_get(flow_control *control, const char *key, double within, uint8_t *value, uint32_t room, uint32_t *bytes)
{
  flow_control_call waiting = { .value = value, .room = room };
  begin_call(control, &waiting);
  flow_status status = flow_control_settle(control, flow_protocol_get(control->protocol, flow_control_now(), waiting.request, key, within));
  status = wait_for(control, &waiting, status);
  *bytes = waiting.bytes;
  return status;
}

/* FLOW_INVALID_STATE also when the time is over; the sentence names who did not come. */
flow_status flow_control_barrier(flow_control *control, const char *name, double within)
{
  flow_control_call waiting = { .meets = 1 };
  begin_call(control, &waiting);
  return wait_for(control, &waiting, flow_control_settle(control, flow_protocol_barrier(control->protocol, flow_control_now(),
                                                                                        waiting.request, name, within)));
}

/* Does not wait for the verdict: flow_control_await_end does. */
flow_status flow_control_report(flow_control *control, const char *what, flow_fault fault)
{
  enter(control);
  flow_control_take_calls(control);
  return leave(control, flow_control_settle(control, flow_protocol_report(control->protocol, flow_control_now(), what, fault)));
}

/* DONE ends the wait well. FAILED is a failure; a member that has said goodbye sees the abort of the generation as DONE. Interrupted,
 * this process has said goodbye all the same. */
flow_status flow_control_goodbye(flow_control *control, int preempted)
{
  enter(control);
  flow_status status = flow_control_settle(control, flow_protocol_goodbye(control->protocol, flow_control_now(), preempted));
  flow_control_wake(control);
  while (status == FLOW_OK && !control->ended) {
    if (is_wanted_no_more(control)) status = fail_interrupted("the other tasks, which have not finished");
    else wait_for_change(control, INFINITY);
  }
  if (status == FLOW_OK && control->ended == FLOW_ACTION_FAILED) status = fail_ended(control);
  return leave(control, status);
}
