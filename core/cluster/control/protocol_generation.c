/* protocol_generation.c: which tasks a generation begins with, and when.
 *
 * Without min_workers: with all, as soon as all are ready. With min_workers the chief waits
 *   - for tasks that are connected, which come as soon as their program sees that the last generation is over;
 *   - for a task that is not there until shrink_after seconds after it was lost, or after the chief began, and not if the generation would
 *     be as large without it;
 * and, if at least min_workers are ready then, begins with them: with as many as there are shards, at most. The chief and the task with the
 * newest state are among them. The others stand by, ready, and so does who comes later. As soon as a generation could be larger with them
 * there is a newcomer: the chief's program pauses at the next place where it can, and the next one begins. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "cluster/control/protocol_state.h"

enum {
  NUMBER = 4,           /* bytes of a task's number in START */
  NUMBERS = 65536,      /* among which a new chief finds one for a generation that no task has seen */
};

/* Whether generations may begin without some tasks. */
static int is_elastic(const flow_protocol *protocol) { return protocol->options.min_workers > 0; }

static int standing_of(const flow_protocol *protocol, int task)
{
  return task == 0 ? protocol->standing : protocol->peers[task].standing;
}

static int is_ready(const flow_protocol *protocol, int task) { return standing_of(protocol, task) == FLOW_JOINED; }

/* How many tasks, the chief among them, have this standing. */
static int count(const flow_protocol *protocol, int standing)
{
  int found = 0;
  for (int i = 0; i < protocol->tasks; i++) found += standing_of(protocol, i) == standing;
  return found;
}

/* How many of the given number of tasks can take part. */
static int usable(const flow_protocol *protocol, int tasks)
{
  int shards = protocol->options.shards;
  return is_elastic(protocol) && shards > 0 && tasks > shards ? shards : tasks;
}

/* Until when the chief waits for a task that is not there. */
static double patience(const flow_protocol *protocol, int task) { return protocol->peers[task].gone + protocol->options.shrink_after; }

/* Whether a generation may begin now; the rules are in the first comment. */
static int may_start(const flow_protocol *protocol)
{
  int ready = count(protocol, FLOW_JOINED), awaited = 0;
  if (ready == protocol->tasks) return 1;
  if (!is_elastic(protocol) || ready < protocol->options.min_workers) return 0;
  for (int i = 1; i < protocol->tasks; i++) {
    if (is_ready(protocol, i)) continue;
    if (protocol->peers[i].standing != FLOW_ABSENT) return 0;
    awaited += protocol->now < patience(protocol, i);
  }
  return usable(protocol, ready + awaited) == usable(protocol, ready);
}

/* When the chief's patience with the next missing task ends, after which may_start can change its answer without an event. */
double flow_chief_start_wakeup(const flow_protocol *protocol)
{
  double next = INFINITY;
  if (!is_elastic(protocol) || protocol->standing != FLOW_JOINED) return next;
  for (int i = 1; i < protocol->tasks; i++) {
    int waits = protocol->peers[i].standing == FLOW_ABSENT && protocol->now < patience(protocol, i);
    if (waits) next = fmin(next, patience(protocol, i));
  }
  return next;
}

/* ---- START --------------------------------------------------------------------------------------------------------------------------- */

int flow_protocol_members(const flow_protocol *protocol, const int **members)
{
  *members = protocol->members;
  return protocol->member_count;
}

/* Which tasks take part, from START's list, which must be in ascending order and have this task in it, and the one that has the newest
 * state. An empty list stands for all. Numbers are compared with the cluster before they are used as an index; `members` may hold half
 * a list after a failure, whose count stays the old one. */
static flow_status read_members(flow_protocol *protocol, const flow_control_message *start)
{
  int members = start->bytes > 0 ? (int)(start->bytes / NUMBER) : protocol->tasks, last = -1, found = 0, has_source = 0;
  int whole = start->bytes % NUMBER == 0 && members <= protocol->tasks;
  for (int i = 0; i < members && whole; i++) {
    uint64_t task = start->bytes > 0 ? flow_little_endian(start->value + i * NUMBER, NUMBER) : (uint64_t)i;
    whole = task < (uint64_t)protocol->tasks && (int)task > last;
    last = whole ? (int)task : last;
    found |= last == protocol->self;
    has_source |= last == start->task;
    protocol->members[i] = last;
  }
  if (!whole || !found) return flow_fail(FLOW_CORRUPT_DATA, "starts a generation of tasks that there are not, or without this one");
  if (!has_source) return flow_fail(FLOW_CORRUPT_DATA, "starts a generation without the task whose state is the newest");
  protocol->member_count = members;
  return FLOW_OK;
}

/* On every task, the chief included: what belongs to the last generation is reset, and the program gets STARTED. FLOW_CORRUPT_DATA: the
 * list is not one of this cluster; a member then hangs up. */
flow_status flow_protocol_started(flow_protocol *protocol, const flow_control_message *start)
{
  FLOW_TRY(read_members(protocol, start));
  protocol->standing = FLOW_RUNNING;
  protocol->joining = protocol->stands_by = 0;
  protocol->slept = 0;
  protocol->chief_calls = 0;
  protocol->chief_finished = 0;
  protocol->obstacle[0] = '\0';
  protocol->generation = start->generation;
  const flow_action action = { .kind = FLOW_ACTION_STARTED, .task = start->task, .generation = start->generation, .step = start->step };
  return flow_protocol_act(protocol, &action);
}

/* To a task that is ready, but not in the generation that is under way. */
static flow_status send_standby(flow_protocol *protocol, int task)
{
  char text[FLOW_LIMIT_TEXT];
  int members = protocol->member_count;
  if (flow_protocol_newcomer(protocol) >= 0) {
    snprintf(text, sizeof text, "%d of %d workers train; they go on with this one after a step", members, protocol->tasks);
  } else {
    snprintf(text, sizeof text, "stands by: %d of %d workers train, since there are %d shards", members, protocol->tasks,
             protocol->options.shards);
  }
  const flow_control_message standby = { .kind = FLOW_MESSAGE_STANDBY, .generation = protocol->generation, .text = text };
  return flow_protocol_send(protocol, protocol->peers[task].connection, &standby);
}

/* ---- the chief's beginning ----------------------------------------------------------------------------------------------------------- */

/* Of those that are ready, that many run from now on: chief and source, then who has the newest state, then others. All tasks that have
 * the newest state go before others, since the state need not be sent to them. */
static void choose(flow_protocol *protocol, int members, int source, double step)
{
  int left = members - 1 - (source > 0);
  protocol->peers[0].standing = FLOW_RUNNING;
  protocol->peers[source].standing = FLOW_RUNNING;
  for (int round = 0; round < 2; round++) {
    for (int i = 1; i < protocol->tasks && left > 0; i++) {
      flow_peer *peer = &protocol->peers[i];
      if (peer->standing != FLOW_JOINED || (round == 0 && peer->step < step)) continue;
      peer->standing = FLOW_RUNNING;
      left--;
    }
  }
}

/* START to the tasks that run from now on, STANDBY to the others. */
static flow_status start(flow_protocol *protocol, int members, flow_control_message *message)
{
  void *block = NULL;
  if (members < protocol->tasks) FLOW_TRY(flow_alloc((size_t)members * NUMBER, &block));
  uint8_t *list = block;
  for (int i = 0; list && i < protocol->tasks; i++) {
    if (protocol->peers[i].standing != FLOW_RUNNING) continue;
    flow_put_little_endian(list + message->bytes, (uint64_t)i, NUMBER);
    message->bytes += NUMBER;
  }
  message->value = list;
  flow_status status = FLOW_OK;
  for (int i = 1; i < protocol->tasks && status == FLOW_OK; i++) {
    flow_peer *peer = &protocol->peers[i];
    if (peer->standing != FLOW_RUNNING) continue;
    peer->generation = message->generation;
    peer->calls = 0;
    status = flow_protocol_send(protocol, peer->connection, message);
  }
  if (status == FLOW_OK) status = flow_protocol_started(protocol, message);
  for (int i = 1; i < protocol->tasks && status == FLOW_OK; i++) {
    if (is_ready(protocol, i)) status = send_standby(protocol, i);
  }
  flow_free(block);
  return status;
}

/* The newest state is that of the highest step, of several tasks the first one's. */
flow_status flow_chief_try_start(flow_protocol *protocol)
{
  uint64_t generation = protocol->generation;
  int source = 0;
  double step = protocol->step;
  char text[FLOW_LIMIT_TEXT];
  if (protocol->standing != FLOW_JOINED) return FLOW_OK;
  if (protocol->misfit) return flow_chief_give_up(protocol, memcpy(text, protocol->misfit_text, sizeof text));
  for (int i = 1; i < protocol->tasks; i++) {
    const flow_peer *peer = &protocol->peers[i];
    if (peer->standing == FLOW_FINISHED) {
      snprintf(text, sizeof text, "%s has finished its work: there cannot be another generation", flow_protocol_task(protocol, i));
      return flow_chief_give_up(protocol, text);
    }
    if (peer->standing != FLOW_JOINED) continue;
    if (peer->generation > generation) generation = peer->generation;
    if (peer->step > step) {
      step = peer->step;
      source = i;
    }
  }
  if (!may_start(protocol)) return FLOW_OK;
  int members = usable(protocol, count(protocol, FLOW_JOINED));
  /* Those who are missing may know a generation of a chief before this one, which this one has never heard of: not by the same number. */
  if (protocol->generation == 0 && members < protocol->tasks) generation += protocol->options.incarnation % NUMBERS;
  choose(protocol, members, source, step);
  flow_control_message message = { .kind = FLOW_MESSAGE_START, .task = source, .generation = generation + 1, .step = step,
                                   .incarnation = protocol->options.incarnation };
  return start(protocol, members, &message);
}

/* ---- JOIN ---------------------------------------------------------------------------------------------------------------------------- */

/* A task other than this one that is ready or runs, -1: none is. */
static int find_other(const flow_protocol *protocol, int task)
{
  for (int i = 0; i < protocol->tasks; i++) {
    int standing = standing_of(protocol, i);
    if (i != task && (standing == FLOW_JOINED || standing == FLOW_RUNNING)) return i;
  }
  return -1;
}

/* Two tasks that cannot work together. Nobody goes on, but where the others do already. */
static flow_status refuse(flow_protocol *protocol, int task, int other)
{
  char text[FLOW_LIMIT_TEXT];
  snprintf(text, sizeof text, "%s and %s do not fit together: %s and %s", flow_protocol_task(protocol, other),
           flow_protocol_task(protocol, task), protocol->peers[other].signature, protocol->peers[task].signature);
  if (!flow_chief_is_running(protocol)) return flow_chief_give_up(protocol, text);
  const flow_control_message never = { .kind = FLOW_MESSAGE_REFUSE, .text = text };
  FLOW_TRY(flow_protocol_send(protocol, protocol->peers[task].connection, &never));
  return flow_chief_lose(protocol, task, "was turned away: it does not fit to the others");
}

/* A JOIN, of a member or of the chief's own program. Signatures are compared with any one task that is ready or runs, since those agree
 * with each other already. */
flow_status flow_chief_joined(flow_protocol *protocol, int task, const flow_control_message *message)
{
  flow_peer *peer = &protocol->peers[task];
  if (task > 0) {
    if (peer->standing != FLOW_WELCOMED) return flow_chief_lose(protocol, task, "joined twice");
    peer->standing = FLOW_JOINED;
    peer->step = message->step;
    peer->joined = protocol->now;
    if (message->generation > peer->generation) peer->generation = message->generation;
  }
  snprintf(peer->signature, sizeof peer->signature, "%s", message->name);
  int other = find_other(protocol, task);
  if (other >= 0 && strcmp(protocol->peers[other].signature, peer->signature) != 0) return refuse(protocol, task, other);
  return task > 0 && flow_chief_is_running(protocol) ? send_standby(protocol, task) : flow_chief_try_start(protocol);
}

/* ---- newcomers ----------------------------------------------------------------------------------------------------------------------- */

/* Once a task has finished its work no further generation can begin (flow_chief_try_start), so that nobody counts as a newcomer then. */
int flow_protocol_newcomer(const flow_protocol *protocol)
{
  int members = protocol->member_count, newest = -1;
  if (!is_elastic(protocol) || protocol->self != 0 || protocol->standing != FLOW_RUNNING) return -1;
  if (count(protocol, FLOW_FINISHED) > 0 || usable(protocol, members + count(protocol, FLOW_JOINED)) <= members) return -1;
  for (int i = 1; i < protocol->tasks; i++) {
    if (is_ready(protocol, i) && (newest < 0 || protocol->peers[i].joined > protocol->peers[newest].joined)) newest = i;
  }
  return newest;
}

/* To the tasks it is an abort whose reason is not a fault: FLOW_END_GROWN. All join again, the newcomer with them. */
flow_status flow_chief_pause(flow_protocol *protocol)
{
  char text[FLOW_LIMIT_TEXT];
  int newcomer = flow_protocol_newcomer(protocol);
  if (newcomer < 0) return FLOW_OK;
  snprintf(text, sizeof text, "%s has come", flow_protocol_task(protocol, newcomer));
  return flow_chief_abort(protocol, newcomer, text, FLOW_END_GROWN);
}
