/* protocol_chief.c: the task that all others dial: who is here, when a generation begins, and why it ends.
 *
 * A connection is a stranger until it has said HELLO; then it belongs to a task, or is turned away. A task's standing goes ABSENT,
 * WELCOMED, JOINED, RUNNING, FINISHED (protocol_state.h); it falls back to WELCOMED or ABSENT when a generation is aborted.
 *
 * The chief gives one reason for the end of a generation, to everybody. Several tasks often fail at once for the same cause: one is
 * lost, and the others report that a transfer to it failed. So a report is not judged for REPORT_GRACE seconds; if a task turns out to
 * be lost meanwhile, that is the cause. After that the report itself counts (decide).
 *
 * Every function returns the status of what it queued: only memory can be lacking, and then the driver ends this process's part. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "cluster/control/protocol_state.h"

static const char PREEMPTED[] = "was preempted (its process was asked to end, as by SIGTERM)";
static const double REPORT_GRACE = 0.5;      /* seconds from a report to the verdict: often the culprit's own connection closes meanwhile */
static const double RECENT_HEARTBEATS = 3;   /* a task that was heard within this many is alive: another process is not the same task */

int flow_chief_is_running(const flow_protocol *protocol)
{
  return protocol->standing == FLOW_RUNNING || protocol->standing == FLOW_FINISHED;
}

/* The tasks but the chief. */
static flow_peer *peer_of(flow_protocol *protocol, int task) { return &protocol->peers[task]; }

/* The task at the other end of a connection; -1: none. */
static int find_peer(const flow_protocol *protocol, int connection)
{
  for (int i = 1; i < protocol->tasks; i++) {
    if (protocol->peers[i].connection == connection) return i;
  }
  return -1;
}

int flow_protocol_is_task(const flow_protocol *protocol, int connection)
{
  if (connection < 0) return 0;
  return protocol->self == 0 ? find_peer(protocol, connection) > 0 : connection == protocol->connection;
}

/* The place of the connection in the list of strangers; -1: it is not in it. */
static int find_stranger(const flow_protocol *protocol, int connection)
{
  for (int i = 0; i < protocol->stranger_count; i++) {
    if (protocol->strangers[i].connection == connection) return i;
  }
  return -1;
}

static void drop_stranger(flow_protocol *protocol, int place)
{
  protocol->strangers[place] = protocol->strangers[--protocol->stranger_count];
}

/* To every task that is connected; a connection of -1 takes nothing. */
static flow_status send_all(flow_protocol *protocol, const flow_control_message *message)
{
  for (int i = 1; i < protocol->tasks; i++) FLOW_TRY(flow_protocol_send(protocol, protocol->peers[i].connection, message));
  return FLOW_OK;
}

/* The newest step that anybody is known to be at: heartbeats bring a task's own only now and then. */
static double newest_step(const flow_protocol *protocol)
{
  double step = protocol->step;
  for (int i = 1; i < protocol->tasks; i++) step = fmax(step, protocol->peers[i].step);
  return step;
}

/* The last words to everybody, and the end of this process's part. kind: DONE or FAILED. */
static flow_status end_all(flow_protocol *protocol, const flow_control_message *message, int kind, const char *text)
{
  FLOW_TRY(send_all(protocol, message));
  for (int i = 1; i < protocol->tasks; i++) FLOW_TRY(flow_protocol_close(protocol, protocol->peers[i].connection));
  for (int i = 0; i < protocol->stranger_count; i++) FLOW_TRY(flow_protocol_close(protocol, protocol->strangers[i].connection));
  return flow_protocol_end(protocol, kind, text);
}

/* text must not be one of the protocol's own arrays, which are written meanwhile: callers copy. */
flow_status flow_chief_give_up(flow_protocol *protocol, const char *text)
{
  return end_all(protocol, &(flow_control_message){ .kind = FLOW_MESSAGE_REFUSE, .text = text }, FLOW_ACTION_FAILED, text);
}

/* ---- a generation's end -------------------------------------------------------------------------------------------------------------- */

/* A chief that has said goodbye begins no further generation: then the abort is the end for everybody. */
flow_status flow_chief_abort(flow_protocol *protocol, int culprit, const char *text, flow_end end)
{
  char words[FLOW_LIMIT_TEXT + 64];
  const flow_control_message message = { .kind = FLOW_MESSAGE_ABORT, .task = culprit, .request = (uint32_t)end,
                                         .generation = protocol->generation, .text = text };
  protocol->suspect = -1;
  flow_store_clear(protocol);
  for (int i = 1; i < protocol->tasks; i++) {
    flow_peer *peer = peer_of(protocol, i);
    peer->waiting = 0;
    if (peer->standing != FLOW_RUNNING && peer->standing != FLOW_FINISHED) continue;
    if (peer->standing == FLOW_RUNNING) peer->standing = peer->connection >= 0 ? FLOW_WELCOMED : FLOW_ABSENT;
    FLOW_TRY(flow_protocol_send(protocol, peer->connection, &message));
  }
  if (protocol->standing == FLOW_RUNNING) return flow_protocol_aborted(protocol, culprit, text, end);
  snprintf(words, sizeof words, "%s has finished, there is no further generation: %s", flow_protocol_task(protocol, 0), text);
  return end_all(protocol, &(flow_control_message){ .kind = FLOW_MESSAGE_REFUSE, .text = words }, FLOW_ACTION_DONE, text);
}

/* A task is gone, in the way that `what` says. In a generation that is its end, with a sentence that tells what the task did, where, and
 * what it was; before one it is a line for the log. Then its connection is closed and its time of absence begins. */
static flow_status part_from(flow_protocol *protocol, int task, const char *what, flow_end end)
{
  flow_peer *peer = peer_of(protocol, task);
  int before = peer->standing, connection = peer->connection;
  char text[FLOW_LIMIT_TEXT];
  if (before == FLOW_RUNNING && flow_chief_is_running(protocol)) {
    flow_text to = flow_text_into(text, sizeof text);
    flow_text_add(&to, "%s %.400s", flow_protocol_task(protocol, task), what);
    if (newest_step(protocol) >= 0) flow_text_add(&to, " at step %.0f", newest_step(protocol));
    if (peer->doing[0]) flow_text_add(&to, ", in %s", peer->doing);
    if (peer->place[0]) flow_text_add(&to, "; it was %s", peer->place);
    FLOW_TRY(flow_chief_abort(protocol, task, text, end));
    if (protocol->standing == FLOW_ENDED) return FLOW_OK;      /* which closed all connections */
  } else if (before != FLOW_FINISHED) {
    FLOW_TRY(flow_protocol_notice(protocol, "%s %s", flow_protocol_task(protocol, task), what));
  }
  peer->connection = -1;
  if (before != FLOW_FINISHED) peer->standing = FLOW_ABSENT;
  peer->gone = protocol->now;
  return flow_protocol_close(protocol, connection);
}

flow_status flow_chief_lose(flow_protocol *protocol, int task, const char *what)
{
  return part_from(protocol, task, what, FLOW_END_LOST);
}

/* A task's report of its own fault is judged at once. Else the first report stays, unless a later one is better informed: that others did
 * not come in time says more than that something failed. */
flow_status flow_chief_reported(flow_protocol *protocol, int task, const char *text, flow_fault fault)
{
  char words[FLOW_LIMIT_TEXT];
  int own = fault == FLOW_FAULT_OWN, better = fault == FLOW_FAULT_LATE && protocol->suspicion == FLOW_FAULT_UNKNOWN;
  if (!flow_chief_is_running(protocol) || (protocol->suspect >= 0 && !own && !better)) return FLOW_OK;
  double step = task == 0 ? protocol->step : protocol->peers[task].step;
  protocol->suspect = task;
  protocol->suspicion = fault;
  protocol->decide_at = protocol->now + REPORT_GRACE;
  flow_text to = flow_text_into(protocol->report, sizeof protocol->report);
  flow_text_add(&to, "%s reports", flow_protocol_task(protocol, task));
  if (step >= 0) flow_text_add(&to, " at step %.0f", step);
  flow_text_add(&to, ": %.700s", text);
  if (own) return flow_chief_abort(protocol, task, memcpy(words, protocol->report, sizeof words), FLOW_END_LOST);
  return FLOW_OK;
}

/* Common calls that a task has begun, by its last heartbeat. */
static uint32_t calls_of(const flow_protocol *protocol, int task) { return task == 0 ? protocol->calls : protocol->peers[task].calls; }

/* The verdict on a report that nothing has explained meanwhile. If a task has waited for others in vain, it is not to blame, but those
 * that have begun fewer common calls: they did not come. The difference of counters is taken in 32 bits, so that it is right after they
 * wrap around. */
static flow_status decide(flow_protocol *protocol)
{
  char text[FLOW_LIMIT_TEXT];
  int culprit = -1, late = 0;
  flow_text to = flow_text_into(text, sizeof text);
  for (int i = 0; i < protocol->tasks && protocol->suspicion == FLOW_FAULT_LATE; i++) {
    if ((int32_t)(calls_of(protocol, i) - calls_of(protocol, protocol->suspect)) >= 0) continue;
    if (late++ == 0) culprit = i;
    if (late > 4) continue;
    flow_text_add(&to, "%s%s", late > 1 ? ", " : "", flow_protocol_task(protocol, i));
    if (i > 0 && protocol->peers[i].place[0]) flow_text_add(&to, " (%s)", protocol->peers[i].place);
  }
  if (late > 4) flow_text_add(&to, " and %d more", late - 4);
  flow_text_add(&to, "%s%.700s", late ? " did not come: " : "", protocol->report);
  return flow_chief_abort(protocol, late ? culprit : protocol->suspect, text, FLOW_END_LOST);
}

/* ---- HELLO --------------------------------------------------------------------------------------------------------------------------- */

/* Their number is bounded by the driver (callers.h), their time by check_silence. */
flow_status flow_chief_connected(flow_protocol *protocol, int connection)
{
  FLOW_TRY(flow_grow(&protocol->strangers, sizeof *protocol->strangers, protocol->stranger_count + 1, &protocol->stranger_capacity));
  protocol->strangers[protocol->stranger_count++] = (flow_stranger){ connection, protocol->now };
  return FLOW_OK;
}

/* Answers a stranger with RETRY or REFUSE, and closes. */
static flow_status turn_away(flow_protocol *protocol, int connection, int kind, const char *text)
{
  FLOW_TRY(flow_protocol_send(protocol, connection, &(flow_control_message){ .kind = kind, .text = text }));
  return flow_protocol_close(protocol, connection);
}

/* Whether that task can be the caller. It cannot while another process is it, alive; of one that is not, the chief takes leave.
 * obstacle: "" if it can, else why not. Losing the other one may end everything, which the caller looks at. */
static flow_status make_room(flow_protocol *protocol, const flow_control_message *hello, char *obstacle, int size)
{
  flow_peer *peer = peer_of(protocol, hello->task);
  double silence = protocol->now - peer->heard;
  const char *name = flow_protocol_task(protocol, hello->task);
  obstacle[0] = '\0';
  if (peer->standing == FLOW_FINISHED) {
    snprintf(obstacle, (size_t)size, "%s has finished, the others have not", name);
  } else if (peer->connection < 0) {
    return FLOW_OK;
  } else if (peer->incarnation == hello->incarnation) {
    return flow_chief_lose(protocol, hello->task, "lost its connection");
  } else if (silence >= RECENT_HEARTBEATS * protocol->options.heartbeat) {
    return flow_chief_lose(protocol, hello->task, "was started again");
  } else {
    snprintf(obstacle, (size_t)size, "%s is another process, which was heard %.1f s ago: is it started twice?", name, silence);
  }
  return FLOW_OK;
}

/* Which of the two answers an obstacle deserves. A process that was lost without a word is noticed within dead_after; who is turned away
 * for longer meets one that lives, and would go on for ever. */
static int answer_to(const flow_protocol *protocol, flow_peer *peer, uint64_t incarnation)
{
  if (peer->standing == FLOW_FINISHED) return FLOW_MESSAGE_RETRY;
  if (peer->rival != incarnation) peer->rival_since = protocol->now;
  peer->rival = incarnation;
  return protocol->now - peer->rival_since > protocol->options.dead_after ? FLOW_MESSAGE_REFUSE : FLOW_MESSAGE_RETRY;
}

/* A stranger's first message. A HELLO that fits takes the task's place; everything known of the task before is forgotten. A task that
 * does not fit and belongs to this job will never fit: before the first generation, if all tasks are needed, that ends the waiting for
 * it (misfit). */
static flow_status greet(flow_protocol *protocol, int stranger, const flow_control_message *hello)
{
  int connection = protocol->strangers[stranger].connection;
  char text[FLOW_LIMIT_TEXT];
  drop_stranger(protocol, stranger);
  if (hello->kind != FLOW_MESSAGE_HELLO) return flow_protocol_close(protocol, connection);
  flow_mismatch found = flow_hello_check(protocol, hello, text, sizeof text);
  if (found != FLOW_FITS) {
    FLOW_TRY(turn_away(protocol, connection, FLOW_MESSAGE_REFUSE, text));
    int of_this = found == FLOW_OTHER_PROGRAM && hello->task > 0 && hello->task < protocol->tasks;
    if (of_this && !protocol->options.min_workers && !flow_chief_is_running(protocol)) {
      protocol->misfit = hello->task;
      memcpy(protocol->misfit_text, text, sizeof text);
    }
    flow_protocol_turned_away(protocol, text);
    int last_words = protocol->misfit && protocol->standing == FLOW_JOINED;      /* which say the same */
    if (!last_words) FLOW_TRY(flow_protocol_notice(protocol, "turned away: %s", text));
    return flow_chief_try_start(protocol);
  }
  FLOW_TRY(make_room(protocol, hello, text, sizeof text));
  if (protocol->standing == FLOW_ENDED) return flow_protocol_close(protocol, connection);
  if (text[0]) return turn_away(protocol, connection, answer_to(protocol, peer_of(protocol, hello->task), hello->incarnation), text);
  *peer_of(protocol, hello->task) = (flow_peer){
    .standing = FLOW_WELCOMED, .connection = connection, .incarnation = hello->incarnation, .generation = hello->generation,
    .heard = protocol->now, .step = -1,
  };
  flow_hello_place(hello, peer_of(protocol, hello->task)->place);
  if (protocol->misfit == hello->task) protocol->misfit = 0;
  const flow_control_message welcome = { .kind = FLOW_MESSAGE_WELCOME, .generation = protocol->generation,
                                        .incarnation = protocol->options.incarnation };
  return flow_protocol_send(protocol, connection, &welcome);
}

/* ---- messages ------------------------------------------------------------------------------------------------------------------------ */

/* To those who still work, so that they do not wait for it. Where memory is out it is left unsaid: they would only wait longer. */
static void tell_finished(flow_protocol *protocol, int task)
{
  const flow_control_message finished = { .kind = FLOW_MESSAGE_FINISHED, .task = task, .generation = protocol->generation };
  flow_protocol_finished(protocol, task);
  for (int i = 1; i < protocol->tasks; i++) {
    if (protocol->peers[i].standing == FLOW_RUNNING) flow_protocol_send(protocol, protocol->peers[i].connection, &finished);
  }
}

/* Also a member that gives up before there is a generation. */
flow_status flow_chief_goodbye(flow_protocol *protocol, int task, int preempted)
{
  char text[FLOW_LIMIT_TEXT];
  int now_running = flow_chief_is_running(protocol);
  int *standing = task == 0 ? &protocol->standing : &protocol->peers[task].standing;
  if (!now_running || preempted || *standing != FLOW_RUNNING) {
    if (task > 0) return part_from(protocol, task, preempted ? PREEMPTED : "left", preempted ? FLOW_END_PREEMPTED : FLOW_END_LOST);
    snprintf(text, sizeof text, "%s %s at step %.0f", flow_protocol_task(protocol, 0), PREEMPTED, protocol->step);
    const flow_control_message over = { .kind = FLOW_MESSAGE_ABORT, .task = 0, .request = preempted ? FLOW_END_PREEMPTED : FLOW_END_LOST,
                                        .generation = protocol->generation, .text = text };
    return end_all(protocol, &over, FLOW_ACTION_DONE, "");
  }
  *standing = FLOW_FINISHED;
  tell_finished(protocol, task);
  for (int i = 1; i < protocol->tasks; i++) {
    if (protocol->peers[i].standing == FLOW_RUNNING) return FLOW_OK;
  }
  if (protocol->standing != FLOW_FINISHED) return FLOW_OK;
  return end_all(protocol, &(flow_control_message){ .kind = FLOW_MESSAGE_FAREWELL }, FLOW_ACTION_DONE, "");
}

flow_status flow_chief_answer(flow_protocol *protocol, int task, uint32_t request, flow_status status, const char *text,
                              const flow_store_entry *entry)
{
  const uint8_t *value = entry ? entry->value : NULL;
  uint32_t bytes = entry ? entry->bytes : 0;
  if (task == 0) return flow_protocol_answered(protocol, request, status, text, value, bytes);
  const flow_control_message result = { .kind = FLOW_MESSAGE_RESULT, .request = request, .task = (int32_t)status,
                                       .generation = protocol->generation,
                                .text = text, .value = value, .bytes = bytes };
  return flow_protocol_send(protocol, protocol->peers[task].connection, &result);
}

int flow_chief_is_behind(const flow_protocol *protocol)
{
  for (int i = 1; i < protocol->tasks && protocol->standing == FLOW_RUNNING; i++) {
    const flow_peer *peer = &protocol->peers[i];
    if (peer->standing == FLOW_FINISHED) return 1;
    if (peer->standing == FLOW_RUNNING && (int32_t)(peer->calls - protocol->calls) > 0) return 1;
  }
  return 0;
}

/* Also of tasks that only wait: `heard` is what it is for. Calls are counted from the beginning of a generation. */
static flow_status take_ping(const flow_protocol *protocol, flow_peer *peer, const flow_control_message *message)
{
  peer->step = message->step;
  if (message->generation == protocol->generation) peer->calls = message->request;
  snprintf(peer->doing, sizeof peer->doing, "%s", message->name);
  return FLOW_OK;
}

static flow_fault fault_of(int32_t number)
{
  return number == FLOW_FAULT_OWN || number == FLOW_FAULT_LATE ? (flow_fault)number : FLOW_FAULT_UNKNOWN;
}

/* Messages of a generation that is over are left aside: they were sent before ABORT arrived. */
flow_status flow_chief_received(flow_protocol *protocol, int connection, const flow_control_message *message)
{
  int task = find_peer(protocol, connection), stranger = task < 0 ? find_stranger(protocol, connection) : -1;
  if (stranger >= 0) return greet(protocol, stranger, message);
  if (task < 0) return FLOW_OK;
  flow_peer *peer = peer_of(protocol, task);
  int works = peer->standing == FLOW_RUNNING && message->generation == protocol->generation;
  peer->heard = protocol->now;
  switch (message->kind) {
  case FLOW_MESSAGE_PING: return take_ping(protocol, peer, message);
  case FLOW_MESSAGE_JOIN: return flow_chief_joined(protocol, task, message);
  case FLOW_MESSAGE_GOODBYE: return flow_chief_goodbye(protocol, task, message->task != 0);
  case FLOW_MESSAGE_REPORT: return works ? flow_chief_reported(protocol, task, message->text, fault_of(message->task)) : FLOW_OK;
  case FLOW_MESSAGE_SET:
  case FLOW_MESSAGE_GET:
  case FLOW_MESSAGE_ENTER: return works ? flow_store_request(protocol, task, message) : FLOW_OK;
  default: return flow_chief_lose(protocol, task, "sent what only the chief sends");
  }
}

/* The connection is forgotten first, so that nobody sends to it. */
flow_status flow_chief_closed(flow_protocol *protocol, int connection, const char *why)
{
  char what[FLOW_LIMIT_TEXT];
  int stranger = find_stranger(protocol, connection), task = connection < 0 ? -1 : find_peer(protocol, connection);
  if (stranger >= 0) drop_stranger(protocol, stranger);
  if (task < 0) return FLOW_OK;
  protocol->peers[task].connection = -1;
  snprintf(what, sizeof what, "lost its connection (%.300s)", why);
  return flow_chief_lose(protocol, task, what);
}

/* ---- time ---------------------------------------------------------------------------------------------------------------------------- */

/* "worker:1 a:1 (no connection), worker:2 b:1 (not ready)": who is missing, the first four. */
static void list_missing(flow_protocol *protocol, flow_text *text)
{
  int missing = 0;
  for (int i = 1; i < protocol->tasks; i++) {
    int standing = protocol->peers[i].standing;
    if (standing == FLOW_JOINED || ++missing > 4) continue;
    flow_text_add(text, "%s%s (%s)", missing > 1 ? ", " : "", flow_protocol_task(protocol, i),
                  standing == FLOW_ABSENT ? "no connection" : "connected, not ready");
  }
  if (missing > 4) flow_text_add(text, " and %d more", missing - 4);
  if (protocol->obstacle[0]) flow_text_add(text, "; turned away: %.600s", protocol->obstacle);
}

/* Tasks and strangers that were not heard for dead_after seconds. The loops look at ENDED again, as losing a task can be the end of
 * everything. */
static flow_status check_silence(flow_protocol *protocol)
{
  char what[64];
  for (int i = 1; i < protocol->tasks && protocol->standing != FLOW_ENDED; i++) {
    const flow_peer *peer = peer_of(protocol, i);
    if (peer->connection < 0 || protocol->now < peer->heard + protocol->options.dead_after) continue;      /* as flow_chief_wakeup rounds */
    snprintf(what, sizeof what, "silent for %.1f s", protocol->now - peer->heard);
    FLOW_TRY(flow_chief_lose(protocol, i, what));
  }
  for (int i = protocol->stranger_count - 1; i >= 0 && protocol->standing != FLOW_ENDED; i--) {
    if (protocol->now < protocol->strangers[i].since + protocol->options.dead_after) continue;
    FLOW_TRY(flow_protocol_close(protocol, protocol->strangers[i].connection));
    drop_stranger(protocol, i);
  }
  return FLOW_OK;
}

/* Who slept cannot judge others; after a long sleep the others have given this process up: the last that they had heard of it was up to
 * a heartbeat old. */
static flow_status wake_up(flow_protocol *protocol, double slept)
{
  char text[FLOW_LIMIT_TEXT];
  for (int i = 1; i < protocol->tasks; i++) protocol->peers[i].heard = protocol->now;
  for (int i = 0; i < protocol->stranger_count; i++) protocol->strangers[i].since = protocol->now;
  if (slept + protocol->options.heartbeat < protocol->options.dead_after || !flow_chief_is_running(protocol)) return FLOW_OK;
  snprintf(text, sizeof text, "%s stood still for %.1f s at step %.0f", flow_protocol_task(protocol, 0), slept, protocol->step);
  return flow_chief_abort(protocol, 0, text, FLOW_END_LOST);
}

/* In this order: silence, the verdict on a report, heartbeats, the end of waiting for a generation, its beginning, notices, barriers.
 * slept: seconds for which this process stood still, 0 if it did not. Each of them may end everything; what follows then would speak to
 * nobody. */
flow_status flow_chief_timer(flow_protocol *protocol, double slept)
{
  char text[FLOW_LIMIT_TEXT];
  flow_text list = flow_text_into(text, sizeof text);
  if (slept > 0) return wake_up(protocol, slept);
  FLOW_TRY(check_silence(protocol));
  if (protocol->standing == FLOW_ENDED) return FLOW_OK;
  if (protocol->suspect >= 0 && protocol->now >= protocol->decide_at) {
    FLOW_TRY(decide(protocol));
    if (protocol->standing == FLOW_ENDED) return FLOW_OK;
  }
  if (protocol->now >= protocol->next_ping) {
    const flow_control_message ping = { .kind = FLOW_MESSAGE_PING, .request = protocol->calls, .generation = protocol->generation,
                                       .step = protocol->step, .name = protocol->doing };
    FLOW_TRY(send_all(protocol, &ping));
  }
  if (protocol->joining && protocol->now >= protocol->deadline) {
    flow_text_add(&list, "gave up after %.0f s, missing: ", protocol->now - protocol->asked);
    list_missing(protocol, &list);
    if (protocol->options.min_workers > 0) flow_text_add(&list, "; at least %d tasks have to be there", protocol->options.min_workers);
    return flow_chief_give_up(protocol, text);
  }
  if (protocol->options.min_workers > 0) FLOW_TRY(flow_chief_try_start(protocol));
  if (protocol->joining && protocol->now >= protocol->next_notice) {
    list_missing(protocol, &list);
    FLOW_TRY(flow_protocol_notice(protocol, "waiting %.0f s for %s", protocol->now - protocol->asked, text));
  }
  return flow_store_timer(protocol);
}

double flow_chief_wakeup(const flow_protocol *protocol)
{
  double next = protocol->suspect >= 0 ? protocol->decide_at : INFINITY;
  for (int i = 1; i < protocol->tasks; i++) {
    if (protocol->peers[i].connection >= 0) next = fmin(next, protocol->peers[i].heard + protocol->options.dead_after);
  }
  for (int i = 0; i < protocol->stranger_count; i++) next = fmin(next, protocol->strangers[i].since + protocol->options.dead_after);
  return fmin(next, fmin(flow_chief_start_wakeup(protocol), flow_store_wakeup(protocol)));
}
