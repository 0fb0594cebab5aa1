/* protocol_member.c: a task that dials the chief, again and again, and does what it says. A member decides nothing about others. When it
 * loses the chief in a generation it ends its own part and names the chief; then it dials again, with pauses that double, and joins
 * again if its program asks for that. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "cluster/control/protocol_state.h"

static const double FIRST_PAUSE = 0.05, LONGEST_PAUSE = 1.0;     /* seconds between two attempts to reach the chief; doubled each time */

static const double STANDING_BY_NOTICE_EVERY = 60;

/* Asks the chief for the next generation; `joining` stays until it begins. */
static flow_status send_join(flow_protocol *protocol)
{
  const flow_control_message join = { .kind = FLOW_MESSAGE_JOIN, .generation = protocol->generation, .step = protocol->step,
                                     .name = protocol->signature };
  protocol->standing = FLOW_JOINED;
  return flow_protocol_send(protocol, protocol->connection, &join);
}

/* HELLO says all that the chief checks: this task, the hash of the cluster and, for a sentence that names the difference, its tasks; the
 * job, the versions, and a random number that tells two processes of the same task apart. A connection that was not asked for is closed. */
flow_status flow_member_connected(flow_protocol *protocol, int connection)
{
  if (protocol->connection >= 0 || !protocol->dialing) return flow_protocol_close(protocol, connection);
  protocol->dialing = 0;
  protocol->connection = connection;
  protocol->standing = FLOW_GREETING;
  protocol->heard = protocol->now;
  void *block;
  FLOW_TRY(flow_alloc(FLOW_MOST_VALUE, &block));
  flow_text value = flow_text_into(block, FLOW_MOST_VALUE);
  flow_text_add(&value, "%s\n", protocol->place);
  flow_cluster_list(protocol->cluster, &value);
  const flow_control_message hello = {
    .kind = FLOW_MESSAGE_HELLO, .value = block, .bytes = (uint32_t)strlen(block), .request = FLOW_PROTOCOL_VERSION, .task = protocol->self,
    .generation = protocol->generation, .incarnation = protocol->options.incarnation, .name = protocol->hash,
    .extra = protocol->options.job, .text = protocol->options.version,
  };
  flow_status status = flow_protocol_send(protocol, connection, &hello);
  flow_free(block);
  return status;
}

/* The connection has ended, or never was there. why: begins a sentence of which the chief is the subject. A task that stood by begins
 * to count its waiting time here. aborted() leaves the standing of one that is connected, which this task is not any more. */
flow_status flow_member_closed(flow_protocol *protocol, const char *why)
{
  char text[FLOW_LIMIT_TEXT];
  int before = protocol->standing;
  if (protocol->connection < 0 && !protocol->dialing) return FLOW_OK;
  protocol->connection = -1;
  protocol->dialing = 0;
  protocol->standing = FLOW_ABSENT;
  protocol->pause = before >= FLOW_WELCOMED ? FIRST_PAUSE : fmin(fmax(2 * protocol->pause, FIRST_PAUSE), LONGEST_PAUSE);
  protocol->next_dial = protocol->now + protocol->pause;
  if (protocol->stands_by) {
    protocol->stands_by = 0;
    protocol->asked = protocol->now;
    protocol->deadline = protocol->now + (protocol->generation > 0 ? protocol->options.rejoin_within : protocol->options.start_within);
  }
  if (why != protocol->obstacle) snprintf(protocol->obstacle, sizeof protocol->obstacle, "%s", why);
  if (before == FLOW_FINISHED) return flow_protocol_end(protocol, FLOW_ACTION_DONE, "");
  if (before != FLOW_RUNNING) return FLOW_OK;
  flow_text to = flow_text_into(text, sizeof text);
  flow_text_add(&to, "%s %.400s", flow_protocol_task(protocol, 0), why);
  if (protocol->step >= 0) flow_text_add(&to, " at step %.0f of %s", protocol->step, flow_protocol_task(protocol, protocol->self));
  flow_status status = flow_protocol_aborted(protocol, 0, text, FLOW_END_LOST);
  protocol->standing = FLOW_ABSENT;
  return status;
}

/* The same, on this process's own decision. */
static flow_status hang_up(flow_protocol *protocol, const char *why)
{
  FLOW_TRY(flow_protocol_close(protocol, protocol->connection));
  return flow_member_closed(protocol, why);
}

/* A generation begins, which must be newer than any that this task has seen: a chief that was started again could repeat numbers. */
static flow_status start(flow_protocol *protocol, const flow_control_message *message)
{
  char text[128];
  if (protocol->standing == FLOW_JOINED && message->generation > protocol->generation) {
    flow_status status = flow_protocol_started(protocol, message);
    return status == FLOW_CORRUPT_DATA ? hang_up(protocol, flow_last_error()) : status;
  }
  snprintf(text, sizeof text, "starts generation %.0f where %.0f was", (double)message->generation, (double)protocol->generation);
  return hang_up(protocol, text);
}

/* Waits as long as the chief lives: it may take for ever until there is a generation with this task. */
static flow_status stand_by(flow_protocol *protocol, const flow_control_message *message)
{
  if (protocol->standing != FLOW_JOINED) return FLOW_OK;
  protocol->stands_by = 1;
  snprintf(protocol->obstacle, sizeof protocol->obstacle, "%s", message->text);
  return flow_protocol_notice(protocol, "%s", message->text);
}

/* ABORT. A task that has said goodbye has nothing to come back for: for it this is the end. */
static flow_status leave_generation(flow_protocol *protocol, const flow_control_message *message)
{
  if (protocol->standing == FLOW_FINISHED) {
    FLOW_TRY(flow_protocol_close(protocol, protocol->connection));
    return flow_protocol_end(protocol, FLOW_ACTION_DONE, message->text);
  }
  if (protocol->standing != FLOW_RUNNING || message->generation != protocol->generation) return FLOW_OK;
  return flow_protocol_aborted(protocol, message->task, message->text, (flow_end)message->request);
}

/* The chief has said the last word, so that this task does not dial again. */
static flow_status finish(flow_protocol *protocol, int kind, const char *text)
{
  FLOW_TRY(flow_protocol_close(protocol, protocol->connection));
  return flow_protocol_end(protocol, kind, text);
}

/* A number from the network is not an enum yet. */
static flow_status status_of(int32_t number) { return number >= 0 && number <= FLOW_INTERNAL ? (flow_status)number : FLOW_INTERNAL; }

/* Messages of an earlier generation may still be under way and are ignored; a message that is wrong in this standing ends the connection,
 * and the member dials again. */
flow_status flow_member_received(flow_protocol *protocol, const flow_control_message *message)
{
  protocol->heard = protocol->now;
  switch (message->kind) {
  case FLOW_MESSAGE_WELCOME:
    if (protocol->standing != FLOW_GREETING) return hang_up(protocol, "sends WELCOME twice");
    protocol->standing = FLOW_WELCOMED;
    protocol->pause = 0;
    return protocol->joining ? send_join(protocol) : FLOW_OK;
  case FLOW_MESSAGE_RETRY: return hang_up(protocol, message->text);
  case FLOW_MESSAGE_REFUSE: return finish(protocol, FLOW_ACTION_FAILED, message->text);
  case FLOW_MESSAGE_START: return start(protocol, message);
  case FLOW_MESSAGE_PING:
    if (message->generation == protocol->generation) protocol->chief_calls = message->request;
    return FLOW_OK;
  case FLOW_MESSAGE_ABORT: return leave_generation(protocol, message);
  case FLOW_MESSAGE_RESULT:
    if (message->generation != protocol->generation) return FLOW_OK;
    return flow_protocol_answered(protocol, message->request, status_of(message->task), message->text, message->value, message->bytes);
  case FLOW_MESSAGE_FINISHED:
    if (message->generation != protocol->generation) return FLOW_OK;
    protocol->chief_finished |= message->task == 0;
    flow_protocol_finished(protocol, message->task);
    return FLOW_OK;
  case FLOW_MESSAGE_FAREWELL:
    return protocol->standing == FLOW_FINISHED || protocol->stands_by ? finish(protocol, FLOW_ACTION_DONE, "") : FLOW_OK;
  case FLOW_MESSAGE_STANDBY: return stand_by(protocol, message);
  default: return hang_up(protocol, "sends what only members send");
  }
}

/* The difference is taken in 32 bits, so that it is right after counters wrap around. */
int flow_protocol_is_behind(const flow_protocol *protocol)
{
  if (protocol->self == 0) return flow_chief_is_behind(protocol);
  if (protocol->standing != FLOW_RUNNING) return 0;
  return protocol->chief_finished || (int32_t)(protocol->chief_calls - protocol->calls) > 0;
}

/* ---- time ---------------------------------------------------------------------------------------------------------------------------- */

static int reachable(const flow_protocol *protocol) { return protocol->standing >= FLOW_WELCOMED; }

/* The line that a waiting task logs every few seconds. */
static flow_status notice(flow_protocol *protocol)
{
  double waited = protocol->now - protocol->asked;
  if (protocol->stands_by) {
    protocol->next_notice = protocol->now + STANDING_BY_NOTICE_EVERY;
    return flow_protocol_notice(protocol, "has waited %.0f s: %s", waited, protocol->obstacle);
  }
  if (reachable(protocol)) {
    return flow_protocol_notice(protocol, "waiting %.0f s for the other tasks; %s says which", waited, flow_protocol_task(protocol, 0));
  }
  return flow_protocol_notice(protocol, "waiting %.0f s for %s: %s", waited, flow_protocol_task(protocol, 0),
                              protocol->obstacle[0] ? protocol->obstacle : "no answer yet");
}

/* Nothing came of waiting: the last sentence tells what was waited for, for how long, and what to look at. */
static flow_status give_up(flow_protocol *protocol)
{
  char text[FLOW_LIMIT_TEXT];
  double waited = protocol->now - protocol->asked;
  if (reachable(protocol)) {
    snprintf(text, sizeof text, "the cluster did not come together within %.0f s: %s waits for other tasks; see what it says", waited,
             flow_protocol_task(protocol, 0));
  } else {
    char slept[120];
    snprintf(slept, sizeof slept, "this process stood still for %.0f s: the others have gone on without it, and may have finished",
             protocol->slept);
    const char *lost = "nobody goes on without it: start it again at that address, or the job, from its backup";
    const char *advice = protocol->slept > 0 ? slept : protocol->generation > 0 ? lost : "is it running, and is that its address?";
    snprintf(text, sizeof text, "%s was not reached within %.0f s (%s); at last: %.500s", flow_protocol_task(protocol, 0), waited, advice,
             protocol->obstacle[0] ? protocol->obstacle : "no answer");
  }
  return finish(protocol, FLOW_ACTION_FAILED, text);
}

/* In this order: the end of all waiting, a silent chief, the next attempt to reach it, the heartbeat, the line in the log. After the first
 * two the standing may have changed, which the later ones look at. */
flow_status flow_member_timer(flow_protocol *protocol)
{
  double now = protocol->now;
  if (protocol->joining && now >= flow_protocol_deadline(protocol)) return give_up(protocol);
  if (protocol->connection >= 0 && now >= protocol->heard + protocol->options.dead_after) {
    char text[64];
    snprintf(text, sizeof text, "silent for %.1f s", now - protocol->heard);
    FLOW_TRY(hang_up(protocol, text));
    if (protocol->standing == FLOW_ENDED) return FLOW_OK;
  }
  if (protocol->connection < 0 && !protocol->dialing && now >= protocol->next_dial) {
    const char *address = strchr(flow_protocol_task(protocol, 0), ' ');
    FLOW_TRY(flow_protocol_act(protocol, &(flow_action){ .kind = FLOW_ACTION_DIAL, .connection = -1, .text = address ? address + 1 : "" }));
    protocol->dialing = 1;
  }
  if (now >= protocol->next_ping && reachable(protocol)) {
    const flow_control_message ping = { .kind = FLOW_MESSAGE_PING, .request = protocol->calls, .generation = protocol->generation,
                                       .step = protocol->step, .name = protocol->doing };
    FLOW_TRY(flow_protocol_send(protocol, protocol->connection, &ping));
  }
  if (now >= protocol->next_notice && protocol->joining) return notice(protocol);
  return FLOW_OK;
}

/* What the protocol's own times (heartbeat, notices, deadline) do not cover. While a connection is being made nothing is due: connected or
 * closed follows. */
double flow_member_wakeup(const flow_protocol *protocol)
{
  if (protocol->connection >= 0) return protocol->heard + protocol->options.dead_after;
  return protocol->dialing ? INFINITY : protocol->next_dial;
}
