/* control_actions.c: what the protocol asks for, carried out: bytes sent, links closed, calls answered, a generation begun or ended. All
 * under the control plane's lock, by whichever thread has just called the protocol; nothing here blocks, and no action calls the
 * protocol again. */
#include "cluster/control/control_state.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static const double CLOSING_WITHIN = 2;       /* seconds */

/* The open link with this number of the protocol's, or NULL: it may have broken while the action waited. */
static flow_link *find_link(const flow_control *control, int number)
{
  for (int i = 0; i < control->link_count; i++) {
    if (control->links[i]->number == number && control->links[i]->phase == FLOW_LINK_OPEN) return control->links[i];
  }
  return NULL;
}

/* Begins to close a link: what was sent is delivered first, within CLOSING_WITHIN seconds, then the sending side is shut. The thread
 * releases it when the peer has closed, too. */
static void finish_link(flow_link *link)
{
  link->phase = FLOW_LINK_CLOSING;
  link->until = flow_control_now() + CLOSING_WITHIN;
  if (flow_link_flush(link) != FLOW_OK) link->phase = FLOW_LINK_BROKEN;
  else if (link->filled == 0) shutdown(link->descriptor, SHUT_WR);
}

/* Hands a RESULT to the call that waits for it, which may have gone (it was interrupted). bytes tells the whole length, even if there is
 * less room. */
static void answer(flow_control *control, const flow_action *action)
{
  flow_control_call *waiting = control->calls;
  while (waiting && waiting->request != action->request) waiting = waiting->next;
  if (!waiting) return;
  waiting->done = 1;
  waiting->status = action->status;
  waiting->bytes = (uint32_t)action->count;
  snprintf(waiting->text, sizeof waiting->text, "%s", action->text);
  uint32_t kept = waiting->bytes < waiting->room ? waiting->bytes : waiting->room;
  if (kept > 0) memcpy(waiting->value, action->bytes, kept);
}

/* The generation is over, or (DONE, FAILED) all of them are. `verdict` is what every later call fails with. */
static void end_generation(flow_control *control, const flow_action *action)
{
  control->generation_lives = 0;
  control->culprit = action->kind == FLOW_ACTION_ABORTED ? action->task : -1;
  control->end = action->kind == FLOW_ACTION_ABORTED ? (flow_end)action->request : FLOW_END_LOST;
  snprintf(control->verdict, sizeof control->verdict, "%s", action->text);
  if (action->kind != FLOW_ACTION_ABORTED) control->ended = action->kind;
  if (action->kind != FLOW_ACTION_DONE && control->on_end) control->on_end(control->watch_state, control->verdict);
}

/* What the protocol decided, one by one, in its order (protocol.h): it never touches a connection itself. A connection that cannot take
 * its message is marked, and ended by the loop. */
static void carry_out(flow_control *control, const flow_action *action)
{
  flow_link *link = NULL;
  if (action->kind == FLOW_ACTION_SEND || action->kind == FLOW_ACTION_CLOSE) link = find_link(control, action->connection);
  switch (action->kind) {
  case FLOW_ACTION_SEND:
    if (link && flow_link_send(link, action->bytes, action->count) != FLOW_OK) link->phase = FLOW_LINK_BROKEN;
    return;
  case FLOW_ACTION_CLOSE:
    if (link) finish_link(link);
    return;
  case FLOW_ACTION_DIAL: snprintf(control->dial, sizeof control->dial, "%s", action->text); return;
  case FLOW_ACTION_STARTED:
    control->generation_lives = 1;
    control->finished[0] = '\0';
    control->generation = (flow_generation){ .number = action->generation, .source = action->task, .step = action->step };
    return;
  case FLOW_ACTION_FINISHED: snprintf(control->finished, sizeof control->finished, "%s", action->text); return;
  case FLOW_ACTION_RESULT: answer(control, action); return;
  case FLOW_ACTION_NOTICE:
    if (control->log) control->log(control->log_state, action->text);
    return;
  default: end_generation(control, action);
  }
}

/* Without memory this process cannot say anything more: its links are broken, which the others see as a lost task. */
flow_status flow_control_settle(flow_control *control, flow_status status)
{
  flow_action action;
  while (flow_protocol_next(control->protocol, &action)) carry_out(control, &action);
  if (status == FLOW_OUT_OF_MEMORY && !control->ended) {
    for (int i = 0; i < control->link_count; i++) control->links[i]->phase = FLOW_LINK_BROKEN;
    end_generation(control, &(flow_action){ .kind = FLOW_ACTION_FAILED, .text = "the control plane had no memory to go on" });
  }
  atomic_store(&control->newcomer, flow_protocol_newcomer(control->protocol) >= 0);
  pthread_cond_broadcast(&control->changed);
  return status;
}

void flow_control_take_calls(flow_control *control)
{
  if (control->begun) flow_protocol_calls(control->protocol, atomic_load_explicit(control->begun, memory_order_relaxed));
}
