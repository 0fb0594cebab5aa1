/* protocol.c: what the chief and members have in common: making the machine, this process's requests, and which of the two an event
 * goes to.
 *
 * Every event and request goes through advance() first, which takes over the time: `now` never goes back, and a gap in it is a time in
 * which this process stood still. Events, join, report, pause and goodbye go through settle() last, which ends this process's part
 * where memory is out. */
#include "cluster/control/protocol_state.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/thread_texts.h"

static const double NOTICE_EVERY = 5.0;

/* ---- tasks --------------------------------------------------------------------------------------------------------------------------- */

/* Tasks in the protocol's order. The chief, then workers, then parameter servers: number 0 is whoever leads, since a cluster without a
 * chief is led by worker 0. */
static int number_of(const flow_cluster *cluster, int job, int index)
{
  int chiefs = cluster->count[FLOW_JOB_CHIEF], workers = cluster->count[FLOW_JOB_WORKER];
  return job == FLOW_JOB_CHIEF ? index : job == FLOW_JOB_WORKER ? chiefs + index : chiefs + workers + index;
}

/* The opposite of number_of; task is one of the protocol's. */
static void find_task(const flow_cluster *cluster, int task, int *job, int *index)
{
  *job = FLOW_JOB_CHIEF;
  for (*index = task; *index >= cluster->count[*job] && *job < FLOW_JOB_PS; (*job)++) *index -= cluster->count[*job];
}

/* "worker:1 a:2222", for messages. The text is in a slot of this thread, so that a sentence can name several tasks. */
const char *flow_protocol_task(const flow_protocol *protocol, int task)
{
  char *text = flow_text_slot(), name[FLOW_TASK_NAME_SIZE];
  int job, index;
  find_task(protocol->cluster, task, &job, &index);
  const char *address = flow_cluster_address(protocol->cluster, job, index);
  snprintf(text, FLOW_SLOT_SIZE, "%s%s%s", flow_task_name(job, index, name), address ? " " : "", address ? address : "");
  return text;
}

/* A member waits for task 0 alone. Four names at most; of more the number. */
void flow_protocol_list_others(const flow_protocol *protocol, flow_text *text)
{
  int last = protocol->self == 0 ? protocol->tasks - 1 : 0, shown = last < 4 ? last : 4;
  for (int i = protocol->self == 0 ? 1 : 0; i <= shown; i++) {
    flow_text_add(text, "%s%s", i > 1 ? ", " : "", flow_protocol_task(protocol, i));
  }
  if (last > shown) flow_text_add(text, " and %d more", last - shown);
}

/* ---- what happens to this process ---------------------------------------------------------------------------------------------------- */

/* Each open request is taken off the list only when its RESULT is queued, so that none is lost where memory is out. text: the sentence with
 * which they fail; copied into the action. */
static flow_status fail_requests(flow_protocol *protocol, const char *text)
{
  while (protocol->request_count > 0) {
    flow_action result = { .kind = FLOW_ACTION_RESULT, .request = protocol->requests[protocol->request_count - 1],
                           .generation = protocol->generation, .status = FLOW_INVALID_STATE, .text = text };
    FLOW_TRY(flow_protocol_act(protocol, &result));
    protocol->request_count--;
  }
  return FLOW_OK;
}

/* The standing is set first: whatever fails after it, no event has a meaning any more. kind: FLOW_ACTION_DONE or FLOW_ACTION_FAILED, the
 * last action that this process gets. A second end is ignored: the first one had the reason. */
flow_status flow_protocol_end(flow_protocol *protocol, int kind, const char *text)
{
  if (protocol->standing == FLOW_ENDED) return FLOW_OK;
  protocol->standing = FLOW_ENDED;
  protocol->joining = 0;
  flow_store_clear(protocol);
  FLOW_TRY(fail_requests(protocol, text));
  return flow_protocol_act(protocol, &(flow_action){ .kind = kind, .generation = protocol->generation, .text = text });
}

/* The RESULTs come before ABORTED: their callers learn the sentence, too. culprit: the task that is held responsible, -1: none. The process
 * keeps its connection and may join the next generation. */
flow_status flow_protocol_aborted(flow_protocol *protocol, int culprit, const char *text, flow_end end)
{
  protocol->standing = FLOW_WELCOMED;
  FLOW_TRY(fail_requests(protocol, text));
  const flow_action action = { .kind = FLOW_ACTION_ABORTED, .task = culprit, .request = (uint32_t)end,
                               .generation = protocol->generation, .text = text };
  return flow_protocol_act(protocol, &action);
}

/* Tells this process that another task has said goodbye in the generation that runs. Not being able to queue it loses nothing but a line of
 * the log. */
void flow_protocol_finished(flow_protocol *protocol, int task)
{
  if (protocol->standing != FLOW_RUNNING || task < 0 || task >= protocol->tasks) return;
  flow_protocol_act(protocol, &(flow_action){ .kind = FLOW_ACTION_FINISHED, .task = task, .generation = protocol->generation,
                                             .text = flow_protocol_task(protocol, task) });
}

/* An unknown one may be the answer to a request that was failed before by the end of its generation. value: `bytes` of the store's value,
 * copied. The list of open requests has no order: the last one takes the place of the one that was answered. */
flow_status flow_protocol_answered(flow_protocol *protocol, uint32_t request, flow_status status, const char *text, const uint8_t *value,
                                   uint32_t bytes)
{
  int place = 0;
  while (place < protocol->request_count && protocol->requests[place] != request) place++;
  if (place == protocol->request_count) return FLOW_OK;
  protocol->requests[place] = protocol->requests[--protocol->request_count];
  const flow_action action = { .kind = FLOW_ACTION_RESULT, .request = request, .generation = protocol->generation, .status = status,
                               .text = text, .bytes = value, .count = bytes };
  return flow_protocol_act(protocol, &action);
}

/* ---- making -------------------------------------------------------------------------------------------------------------------------- */

/* Times are bounded so that sums of them stay exact to far below a millisecond. */
static flow_status check_options(const flow_protocol_options *options)
{
  const flow_cluster *cluster = options->cluster;
  if (!cluster || cluster->job < 0 || cluster->job == FLOW_JOB_EVALUATOR) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "a control plane needs a cluster with this process as its chief, a worker or a ps; it is %s",
                     !cluster ? "missing" : cluster->job < 0 ? "nobody" : "an evaluator");
  }
  const double times[] = { options->heartbeat, options->dead_after, options->start_within, options->rejoin_within };
  for (int i = 0; i < 4; i++) {
    if (!(times[i] >= 0 && times[i] < 1e9)) return flow_fail(FLOW_INVALID_ARGUMENT, "a control plane's times are seconds from 0, got %g",
                                                             times[i]);
  }
  if (options->min_workers < 0 || options->shards < 0 || !(options->shrink_after >= 0 && options->shrink_after < 1e9)) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "a control plane with min_workers %d, %d shards, and %g s to wait", options->min_workers,
                     options->shards, options->shrink_after);
  }
  if (strnlen(options->job, FLOW_MOST_NAME + 1) > FLOW_MOST_NAME || strnlen(options->version, FLOW_MOST_NAME + 1) > FLOW_MOST_NAME) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "the job's id and the version have at most %d bytes", FLOW_MOST_NAME);
  }
  return FLOW_OK;
}

/* 0 stands for the default of an option. */
static double otherwise(double value, double initial) { return value > 0 ? value : initial; }

/* Options are copied, their zeros become the header's defaults. Only the chief has peers, and it is its own peer number 0, so that its
 * requests to the store go the way of all others. It counts as welcomed at once; a member begins absent and dials at the first timer. */
flow_status flow_protocol_new(const flow_protocol_options *options, double now, flow_protocol **out)
{
  *out = NULL;
  FLOW_TRY(check_options(options));
  const flow_cluster *cluster = options->cluster;
  size_t job = strlen(options->job) + 1, version = strlen(options->version) + 1;
  void *block, *peers = NULL;
  int tasks = number_of(cluster, FLOW_JOB_PS, cluster->count[FLOW_JOB_PS]);
  FLOW_TRY(flow_alloc_zero(sizeof(flow_protocol) + (size_t)tasks * sizeof(int) + job + version, &block));
  flow_protocol *protocol = block;
  protocol->members = (int *)(protocol + 1);
  char *texts = (char *)(protocol->members + tasks);
  protocol->cluster = cluster;
  protocol->tasks = tasks;
  protocol->self = number_of(cluster, cluster->job, cluster->index);
  protocol->options = *options;
  protocol->options.job = memcpy(texts, options->job, job);
  protocol->options.version = memcpy(texts + job, options->version, version);
  protocol->options.place = protocol->place;
  snprintf(protocol->place, sizeof protocol->place, "%s", options->place ? options->place : "");
  protocol->options.heartbeat = otherwise(options->heartbeat, 1);
  protocol->options.dead_after = otherwise(options->dead_after, 10);
  protocol->options.start_within = otherwise(options->start_within, 300);
  protocol->options.rejoin_within = otherwise(options->rejoin_within, 600);
  protocol->options.shrink_after = otherwise(options->shrink_after, 5);
  protocol->now = protocol->next_ping = protocol->next_dial = now;
  protocol->next_notice = now + NOTICE_EVERY;
  protocol->step = -1;
  protocol->connection = protocol->suspect = -1;
  flow_cluster_hash(cluster, protocol->hash, sizeof protocol->hash);
  if (protocol->self == 0) {
    flow_status status = flow_alloc_zero((size_t)tasks * sizeof(flow_peer), &peers);
    if (status != FLOW_OK) {
      flow_free(protocol);
      return status;
    }
    protocol->peers = peers;
    protocol->standing = FLOW_WELCOMED;
    for (int i = 0; i < tasks; i++) protocol->peers[i] = (flow_peer){ .connection = -1, .step = -1, .gone = now };
  }
  *out = protocol;
  return FLOW_OK;
}

/* Actions that nobody has taken are taken here, which frees what they hold. */
void flow_protocol_release(flow_protocol *protocol)
{
  if (!protocol) return;
  flow_action action;
  while (flow_protocol_next(protocol, &action)) continue;
  flow_store_clear(protocol);
  flow_free(protocol->peers);
  flow_free(protocol->strangers);
  flow_free(protocol);
}

/* ---- memory that is out -------------------------------------------------------------------------------------------------------------- */

/* Half of an answer may be on its way, and nobody can be told: this process is as good as lost, which the others understand. Other failures
 * are those of requests, which leave the machine unchanged. */
static flow_status settle(flow_protocol *protocol, flow_status status)
{
  if (status != FLOW_OUT_OF_MEMORY) return status;
  protocol->standing = FLOW_ENDED;
  protocol->joining = 0;
  flow_store_clear(protocol);
  return status;
}

/* ---- events -------------------------------------------------------------------------------------------------------------------------- */

/* Takes over the time; what came of a long sleep is seen before the event itself. A member that stood still counts the chief's silence
 * from now; whether it was given up meanwhile the chief knows. */
static flow_status advance(flow_protocol *protocol, double now)
{
  double slept = now - protocol->now;
  if (now > protocol->now) protocol->now = now;
  if (slept < protocol->options.dead_after / 2 || protocol->standing == FLOW_ENDED) return FLOW_OK;
  protocol->heard = now;
  int goes_without = protocol->options.min_workers > 0 && slept + protocol->options.heartbeat >= protocol->options.dead_after;
  if (goes_without) protocol->slept = slept;
  return protocol->self == 0 ? flow_chief_timer(protocol, slept) : FLOW_OK;
}

/* After the end nobody is let in any more. */
static flow_status take_connection(flow_protocol *protocol, double now, int connection)
{
  FLOW_TRY(advance(protocol, now));
  if (protocol->standing == FLOW_ENDED) return flow_protocol_close(protocol, connection);
  return protocol->self == 0 ? flow_chief_connected(protocol, connection) : flow_member_connected(protocol, connection);
}

/* A connection that the machine has closed itself is not told to it again (protocol.h), so that this one was lost. */
static flow_status take_closing(flow_protocol *protocol, double now, int connection, const char *why)
{
  FLOW_TRY(advance(protocol, now));
  if (protocol->standing == FLOW_ENDED) return FLOW_OK;
  if (protocol->self == 0) return flow_chief_closed(protocol, connection, why);
  if (connection != protocol->connection) return FLOW_OK;
  char text[FLOW_LIMIT_TEXT];
  snprintf(text, sizeof text, protocol->standing >= FLOW_WELCOMED ? "lost its connection (%.300s)" : "%.300s", why);
  return flow_member_closed(protocol, text);
}

/* A message that cannot be read ends its connection, as if the other side had closed it. It is never an error of this process. */
static flow_status take_message(flow_protocol *protocol, double now, int connection, const uint8_t *bytes, size_t count)
{
  FLOW_TRY(advance(protocol, now));
  if (protocol->standing == FLOW_ENDED || (protocol->self != 0 && connection != protocol->connection)) return FLOW_OK;
  flow_control_message message;
  if (flow_control_read(bytes, count, &message) != FLOW_OK) {
    FLOW_TRY(flow_protocol_close(protocol, connection));
    return take_closing(protocol, now, connection, flow_last_error());
  }
  return protocol->self == 0 ? flow_chief_received(protocol, connection, &message) : flow_member_received(protocol, &message);
}

/* Heartbeats and notices have fixed distances from the beginning on: a late timer does not shift those that follow. */
static flow_status take_time(flow_protocol *protocol, double now)
{
  FLOW_TRY(advance(protocol, now));
  if (protocol->standing == FLOW_ENDED) return FLOW_OK;
  FLOW_TRY(protocol->self == 0 ? flow_chief_timer(protocol, 0) : flow_member_timer(protocol));
  while (protocol->next_notice <= protocol->now) protocol->next_notice += NOTICE_EVERY;
  while (protocol->next_ping <= protocol->now) protocol->next_ping += protocol->options.heartbeat;
  return FLOW_OK;
}

/* A member that the chief has answered waits dead_after longer than the chief, whose sentence names who is missing and comes first. */
double flow_protocol_deadline(const flow_protocol *protocol)
{
  int answered = protocol->self != 0 && protocol->standing >= FLOW_WELCOMED;
  if (protocol->stands_by) return INFINITY;
  /* The others have gone on, and may have finished: then nobody is there any more. */
  if (protocol->self != 0 && !answered && protocol->slept > 0)
    return fmin(protocol->deadline, protocol->asked + 2 * protocol->options.dead_after);
  return answered ? protocol->deadline + protocol->options.dead_after : protocol->deadline;
}

/* The earliest moment at which time alone changes something; INFINITY after the end. */
double flow_protocol_wakeup(const flow_protocol *protocol)
{
  if (protocol->standing == FLOW_ENDED) return INFINITY;
  double next = fmin(protocol->next_ping, protocol->next_notice);
  if (protocol->joining) next = fmin(next, flow_protocol_deadline(protocol));
  return fmin(next, protocol->self == 0 ? flow_chief_wakeup(protocol) : flow_member_wakeup(protocol));
}

/* ---- requests ------------------------------------------------------------------------------------------------------------------------ */

/* For a request that this standing does not allow. what: the request, in front of the sentence. */
static flow_status fail_state(const flow_protocol *protocol, const char *what)
{
  static const char *const states[] = { "has no connection to the chief", "has no connection to the chief", "is in no generation",
                                        "waits for the others", "is in a generation", "has said goodbye", "has ended" };
  return flow_fail(FLOW_INVALID_STATE, "%s: this process %s", what, states[protocol->standing]);
}

/* `joining` stays 1 until STARTED or FAILED, also while the connection is lost: JOIN is sent again with each WELCOME. signature: what has
 * to be the same on all workers, which the chief compares; cut at its room. step: of this process' state, from which the chief finds the
 * newest one. The first generation waits start_within, later ones rejoin_within seconds. */
static flow_status join(flow_protocol *protocol, double now, double step, const char *signature)
{
  FLOW_TRY(advance(protocol, now));
  if (protocol->standing >= FLOW_JOINED || protocol->joining) return fail_state(protocol, "join");
  snprintf(protocol->signature, sizeof protocol->signature, "%s", signature);
  protocol->step = step;
  protocol->joining = 1;
  protocol->asked = protocol->now;
  protocol->deadline = protocol->now + (protocol->generation > 0 ? protocol->options.rejoin_within : protocol->options.start_within);
  protocol->next_notice = protocol->now + NOTICE_EVERY;
  const flow_control_message join = { .kind = FLOW_MESSAGE_JOIN, .generation = protocol->generation, .step = step,
                                     .name = protocol->signature };
  if (protocol->standing != FLOW_WELCOMED) return FLOW_OK;
  protocol->standing = FLOW_JOINED;
  return protocol->self == 0 ? flow_chief_joined(protocol, 0, &join) : flow_protocol_send(protocol, protocol->connection, &join);
}

/* Told with the next heartbeat; a longer text is cut. */
void flow_protocol_progress(flow_protocol *protocol, double step, const char *doing)
{
  protocol->step = step;
  snprintf(protocol->doing, sizeof protocol->doing, "%s", doing);
}

/* Wraps around after 2^32 calls: who compares counts takes differences in 32 bits. */
void flow_protocol_calls(flow_protocol *protocol, uint32_t calls) { protocol->calls = calls; }

/* One that a RESULT answers. What is refused here never reaches the chief. The chief's own requests are answered as those of members,
 * by actions. */
static flow_status ask(flow_protocol *protocol, double now, flow_control_message *message)
{
  FLOW_TRY(advance(protocol, now));
  const char *what = flow_control_name(message->kind);
  size_t length = strnlen(message->name, FLOW_MOST_NAME + 1);
  if (protocol->standing != FLOW_RUNNING) return fail_state(protocol, what);
  if (length == 0 || length > FLOW_MOST_NAME) return flow_fail(FLOW_INVALID_ARGUMENT, "%s: a name has 1 to %d bytes", what, FLOW_MOST_NAME);
  if (message->bytes > FLOW_MOST_VALUE) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s \"%s\": a value has at most %d bytes, got %.0f", what, message->name, FLOW_MOST_VALUE,
                     (double)message->bytes);
  }
  if (!(message->seconds >= 0 && message->seconds < 1e9)) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s \"%s\": within is a number of seconds, got %g", what, message->name, message->seconds);
  }
  if (protocol->request_count == FLOW_MOST_REQUESTS) {
    return flow_fail(FLOW_INVALID_STATE, "%s \"%s\": %d requests wait for their answer already", what, message->name, FLOW_MOST_REQUESTS);
  }
  for (int i = 0; i < protocol->request_count; i++) {
    if (protocol->requests[i] == message->request) return flow_fail(FLOW_INVALID_ARGUMENT, "%s: request %u is not answered yet", what,
                                                                    message->request);
  }
  message->generation = protocol->generation;
  protocol->requests[protocol->request_count++] = message->request;
  if (protocol->self == 0) return settle(protocol, flow_store_request(protocol, 0, message));
  flow_status status = flow_protocol_send(protocol, protocol->connection, message);
  if (status != FLOW_OK) protocol->request_count--;
  return status;
}

flow_status flow_protocol_set(flow_protocol *protocol, double now, uint32_t request, const char *key, const uint8_t *value, uint32_t bytes)
{
  return ask(protocol, now, &(flow_control_message){ .kind = FLOW_MESSAGE_SET, .request = request, .name = key, .value = value,
                                                    .bytes = bytes });
}

flow_status flow_protocol_get(flow_protocol *protocol, double now, uint32_t request, const char *key, double within)
{
  return ask(protocol, now, &(flow_control_message){ .kind = FLOW_MESSAGE_GET, .request = request, .name = key, .seconds = within });
}

flow_status flow_protocol_barrier(flow_protocol *protocol, double now, uint32_t request, const char *name, double within)
{
  return ask(protocol, now, &(flow_control_message){ .kind = FLOW_MESSAGE_ENTER, .request = request, .name = name, .seconds = within });
}

/* Of the chief the report is handled at once; of a member it travels after a heartbeat with the present step. Nothing changes here: the
 * verdict comes back as ABORTED. */
static flow_status report(flow_protocol *protocol, double now, const char *what, flow_fault fault)
{
  FLOW_TRY(advance(protocol, now));
  if (protocol->standing != FLOW_RUNNING) return fail_state(protocol, "report");
  if (protocol->self == 0) return flow_chief_reported(protocol, 0, what, fault);
  const flow_control_message ping = { .kind = FLOW_MESSAGE_PING, .request = protocol->calls, .generation = protocol->generation,
                                     .step = protocol->step, .name = protocol->doing };
  const flow_control_message report = { .kind = FLOW_MESSAGE_REPORT, .task = fault, .generation = protocol->generation, .text = what };
  FLOW_TRY(flow_protocol_send(protocol, protocol->connection, &ping));           /* so that the sentence has the present step */
  return flow_protocol_send(protocol, protocol->connection, &report);
}

/* In a generation the member stays connected until FAREWELL: the chief has to tell a task that finished from a lost one. */
static flow_status say_goodbye(flow_protocol *protocol, double now, int preempted)
{
  FLOW_TRY(advance(protocol, now));
  if (protocol->standing >= FLOW_FINISHED) return fail_state(protocol, "goodbye");
  int running = protocol->standing == FLOW_RUNNING;
  if (protocol->self == 0) return flow_chief_goodbye(protocol, 0, preempted);
  const flow_control_message goodbye = { .kind = FLOW_MESSAGE_GOODBYE, .task = preempted, .generation = protocol->generation };
  FLOW_TRY(flow_protocol_send(protocol, protocol->connection, &goodbye));
  if (running && !preempted) {
    protocol->standing = FLOW_FINISHED;
    return FLOW_OK;
  }
  FLOW_TRY(flow_protocol_close(protocol, protocol->connection));
  return flow_protocol_end(protocol, FLOW_ACTION_DONE, "");
}

/* Why the last attempt to connect failed, for the notice that a waiting process logs; cut at its room. */
void flow_protocol_turned_away(flow_protocol *protocol, const char *why)
{
  snprintf(protocol->obstacle, sizeof protocol->obstacle, "%s", why);
}

/* ---- what the header has ------------------------------------------------------------------------------------------------------------- */

/* The functions of protocol.h: each wraps the one above that does the work, so that no way out misses settle(). */
flow_status flow_protocol_connected(flow_protocol *protocol, double now, int connection)
{
  return settle(protocol, take_connection(protocol, now, connection));
}

flow_status flow_protocol_received(flow_protocol *protocol, double now, int connection, const uint8_t *bytes, size_t count)
{
  return settle(protocol, take_message(protocol, now, connection, bytes, count));
}

flow_status flow_protocol_closed(flow_protocol *protocol, double now, int connection, const char *why)
{
  return settle(protocol, take_closing(protocol, now, connection, why));
}

flow_status flow_protocol_timer(flow_protocol *protocol, double now)
{
  return settle(protocol, take_time(protocol, now));
}

flow_status flow_protocol_join(flow_protocol *protocol, double now, double step, const char *signature)
{
  return settle(protocol, join(protocol, now, step, signature));
}

flow_status flow_protocol_report(flow_protocol *protocol, double now, const char *what, flow_fault fault)
{
  return settle(protocol, report(protocol, now, what, fault));
}

flow_status flow_protocol_goodbye(flow_protocol *protocol, double now, int preempted)
{
  return settle(protocol, say_goodbye(protocol, now, preempted));
}

flow_status flow_protocol_pause(flow_protocol *protocol, double now)
{
  flow_status status = advance(protocol, now);
  return settle(protocol, status == FLOW_OK ? flow_chief_pause(protocol) : status);
}
