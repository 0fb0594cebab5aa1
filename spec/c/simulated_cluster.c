/* simulated_cluster.c: the processes of a simulated cluster: their program, the promises, the faults. */
#include "simulated_cluster.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* ---- the program of each process ----------------------------------------------------------------------------------------------------- */

static void sim_check_status(simulation *sim, int node, const char *what, flow_status status)
{
  if (status == FLOW_OUT_OF_MEMORY && sim->starves) sim->node[node].starved = 1;
  else if (status != FLOW_OK) SIM_BREAK(sim, "node %d: %s: %s", node, what, flow_last_error());
}

/* A request right after a freeze may be the call that notices that the generation is over. */
static void sim_check_request(simulation *sim, int number, const char *what, flow_status status)
{
  const sim_node *node = &sim->node[number];
  int thawed = node->frozen_until > 0 && sim->now <= node->frozen_until + 0.001;
  if (status != FLOW_INVALID_STATE || !thawed) sim_check_status(sim, number, what, status);
}

static void sim_enter(simulation *sim, int number)
{
  sim_node *node = &sim->node[number];
  char name[64];
  int step = (int)node->step;
  flow_protocol_progress(node->protocol, node->step, "all-reduce");
  if (step >= sim->steps) {
    node->awaiting = 0;
    sim_check_request(sim, number, "goodbye", flow_protocol_goodbye(node->protocol, sim->now, 0));
    return;
  }
  if (number == 0 && flow_protocol_newcomer(node->protocol) >= 0) {
    sim_check_request(sim, number, "pause", flow_protocol_pause(node->protocol, sim->now));
    return;
  }
  node->entered_generation = node->generation;
  node->entered_step = step;
  snprintf(name, sizeof name, "step %d", step);
  if (step % 5 == 0 && number == 0) {
    sim_check_request(sim, number, "set", flow_protocol_set(node->protocol, sim->now, ++node->request, name, (uint8_t *)name, 8));
  } else if (step % 5 == 0) {
    sim_check_request(sim, number, "get", flow_protocol_get(node->protocol, sim->now, ++node->request, name, 5000));
  }
  if (node->starved) return;
  node->awaiting = (int)++node->request;
  sim_check_request(sim, number, "barrier", flow_protocol_barrier(node->protocol, sim->now, node->request, name, 5000));
}

static void sim_work(simulation *sim, int number)
{
  sim_node *node = &sim->node[number];
  if (node->running && node->reports > 0 && node->step + 2 < sim->steps && sim_random(sim, 20) == 0) {
    node->reports--;
    flow_protocol_report(node->protocol, sim->now, "the loss is not a number", (flow_fault)sim_random(sim, 3));
  } else if (node->running) {
    sim_enter(sim, number);
  } else {
    sim_check_status(sim, number, "join", flow_protocol_join(node->protocol, sim->now, node->step, node->signature));
  }
}

static void sim_work_later(simulation *sim, int node)
{
  sim->node[node].work = sim_schedule(sim, sim->now + sim_real(sim, 0.05, 1.5), SIM_WORK, node, NULL, 0)->order;
}

/* ---- promises ------------------------------------------------------------------------------------------------------------------------ */

/* No two processes that live know one generation from two chiefs; numbers only grow. */
static void sim_started(simulation *sim, int number, const flow_action *action)
{
  sim_node *node = &sim->node[number];
  int chief = sim->node[0].process;
  for (int i = 0; number > 0 && i < sim->connection_count; i++) {
    if (sim_end_of(sim, &sim->connections[i], number) == 0 && sim->connections[i].open[0]) chief = sim->connections[i].process[1];
  }
  if (action->generation <= node->generation) {
    SIM_BREAK(sim, "node %d starts generation %d after %d", number, (int)action->generation, (int)node->generation);
  }
  for (int i = 0; i < sim->nodes; i++) {
    const sim_node *other = &sim->node[i];
    if (i != number && other->protocol && other->generation == action->generation && other->chief_process != chief) {
      SIM_BREAK(sim, "nodes %d and %d have generation %d from two chiefs", number, i, (int)action->generation);
    }
  }
  const int *members;
  int count = flow_protocol_members(node->protocol, &members), elastic = sim->min_workers > 0;
  if (count != sim->nodes && (!elastic || (sim->shards > 0 && count > sim->shards))) {
    SIM_BREAK(sim, "generation %d has %d of %d tasks, with %d shards", (int)action->generation, count, sim->nodes, sim->shards);
  }
  node->generation = action->generation;
  node->chief_process = chief;
  node->running = 1;
  if (action->step > node->step) node->step = action->step;          /* the state comes from action->task */
  if (action->step < node->step) SIM_BREAK(sim, "node %d has step %g, but %g is said to be the highest", number, node->step, action->step);
}

/* All who have a chief's verdict have the same; who has none blames the chief. */
static void sim_aborted(simulation *sim, int number, const flow_action *action)
{
  sim_node *node = &sim->node[number];
  node->aborts++;
  node->culprit = action->task;
  snprintf(node->verdict, sizeof node->verdict, "%s", action->text);
  if (!node->running) SIM_BREAK(sim, "node %d: an abort without a generation", number);
  node->running = 0;
  node->awaiting = 0;
  char chief[64];
  snprintf(chief, sizeof chief, "%s:0", flow_job_name(flow_cluster_chief_job(node->cluster)));
  if (action->generation != node->generation) SIM_BREAK(sim, "node %d: abort of another generation", number);
  if (strstr(action->text, " of ") && strncmp(action->text, chief, strlen(chief)) == 0 && action->task == 0 && number > 0) return;
  int same = sim->verdict_generation == action->generation && sim->verdict_process == node->chief_process;
  if (same && (sim->verdict_culprit != action->task || strcmp(sim->verdict, action->text) != 0)) {
    SIM_BREAK(sim, "generation %d: node %d blames %d (%s), others %d (%s)", (int)action->generation, number, action->task, action->text,
              sim->verdict_culprit, sim->verdict);
  }
  sim->verdict_generation = action->generation;
  sim->verdict_process = node->chief_process;
  sim->verdict_culprit = action->task;
  snprintf(sim->verdict, sizeof sim->verdict, "%s", action->text);
}

/* Nobody passes a barrier that somebody has not reached; a value is what was set. */
static void sim_answered(simulation *sim, int number, const flow_action *action)
{
  sim_node *node = &sim->node[number];
  if (action->status != FLOW_OK) {
    if (!strstr(action->text, ":0") && !strstr(action->text, ":1") && !strstr(action->text, ":2")) {
      SIM_BREAK(sim, "a failed request names nobody: %s", action->text);
    }
    return;
  }
  if (action->count > 0) {
    char name[64];
    snprintf(name, sizeof name, "step %d", (int)node->step);
    if (action->count != 8 || memcmp(action->bytes, name, 7) != 0) SIM_BREAK(sim, "node %d: a value is not what was set", number);
  }
  if ((int)action->request != node->awaiting) return;
  const int *members;
  int count = flow_protocol_members(node->protocol, &members);
  for (int i = 0; i < count; i++) {
    const sim_node *other = &sim->node[members[i]];
    int there = other->entered_generation > node->generation ||
                (other->entered_generation == node->generation && other->entered_step >= (int)node->step);
    if (!there) SIM_BREAK(sim, "node %d passes step %d where node %d never was", number, (int)node->step, members[i]);
  }
  node->step++;
  node->awaiting = 0;
  sim_work_later(sim, number);
}

/* ---- actions and events -------------------------------------------------------------------------------------------------------------- */

static void sim_stop(simulation *sim, int number)
{
  sim_node *node = &sim->node[number];
  sim_close_all(sim, number);
  flow_protocol_release(node->protocol);
  node->protocol = NULL;
  node->process++;                       /* its events are void from now on */
  node->running = 0;
  node->generation = 0;
}

static void sim_act(simulation *sim, int number, const flow_action *action)
{
  sim_node *node = &sim->node[number];
  switch (action->kind) {
  case FLOW_ACTION_SEND: sim_send(sim, number, action->connection, action->bytes, action->count); return;
  case FLOW_ACTION_CLOSE: {
    int end = sim_end_of(sim, &sim->connections[action->connection], number);
    if (end >= 0) sim_close(sim, action->connection, end);
    return;
  }
  case FLOW_ACTION_DIAL: sim_dial(sim, number); return;
  case FLOW_ACTION_RESULT: sim_answered(sim, number, action); return;
  case FLOW_ACTION_FINISHED: return;
  case FLOW_ACTION_STARTED:
    SIM_SAY(sim, "node %d: generation %d, step %g of %d", number, (int)action->generation, action->step, action->task);
    sim_started(sim, number, action);
    sim_work_later(sim, number);
    return;
  case FLOW_ACTION_ABORTED:
    SIM_SAY(sim, "node %d: generation %d over: %s", number, (int)action->generation, action->text);
    sim_aborted(sim, number, action);
    sim_work_later(sim, number);
    return;
  case FLOW_ACTION_NOTICE:
    sim->notices++;
    SIM_SAY(sim, "node %d: %s", number, action->text);
    return;
  default:
    SIM_SAY(sim, "node %d: %s %s", number, action->kind == FLOW_ACTION_DONE ? "done" : "failed:", action->text);
    snprintf(node->last_words, sizeof node->last_words, "%s", action->text);
    node->finished = action->kind == FLOW_ACTION_DONE;
    node->failed = !node->finished;
  }
}

static void sim_drain(simulation *sim, int number)
{
  sim_node *node = &sim->node[number];
  flow_action action;
  if (!node->protocol) return;
  double bytes = flow_live_bytes() - sim->base_bytes;
  if (bytes > sim->most_bytes) sim->most_bytes = bytes;
  while (flow_protocol_next(node->protocol, &action)) sim_act(sim, number, &action);
  if (node->finished || node->failed) {
    sim_stop(sim, number);
    return;
  }
  double wakeup = flow_protocol_wakeup(node->protocol);
  if (wakeup == node->wakeup) return;
  node->wakeup = wakeup;
  if (isfinite(wakeup)) sim_schedule(sim, fmax(wakeup, sim->now), SIM_TIMER, number, NULL, 0)->seconds = wakeup;
}

static void sim_boot(simulation *sim, int number)
{
  sim_node *node = &sim->node[number];
  if (node->protocol || node->finished || node->failed) return;
  const flow_protocol_options options = { .cluster = node->cluster, .job = node->job, .version = node->version,
                                          .incarnation = ((uint64_t)number * 1000 + (uint64_t)node->process + 1) * 40503,
                                          .min_workers = sim->min_workers, .shards = sim->shards, .shrink_after = sim->shrink_after };
  node->wakeup = -1;
  node->step = 0;
  node->frozen_until = 0;
  node->starved = 0;
  sim_check_status(sim, number, "new", flow_protocol_new(&options, sim->now, &node->protocol));
  if (!node->protocol) {
    sim_schedule(sim, sim->now + 3, SIM_BOOT, number, NULL, 0);
    return;
  }
  sim_work_later(sim, number);
  sim_drain(sim, number);
}

/* Bytes come in pieces. */
static void sim_arrive(simulation *sim, const sim_event *event, int end)
{
  sim_node *node = &sim->node[event->node];
  flow_frame_reader *reader = &sim->connections[event->connection].to[end].reader;
  for (size_t at = 0; at < event->count;) {
    size_t piece = 1 + sim_random(sim, 400), used, size;
    const uint8_t *contents;
    if (piece > event->count - at) piece = event->count - at;
    flow_status status = flow_frame_reader_feed(reader, event->bytes + at, piece, &used, &contents, &size);
    if (status != FLOW_OK) {
      sim_check_status(sim, event->node, "a frame", status);
      return;
    }
    at += used;
    if (!contents) continue;
    status = flow_protocol_received(node->protocol, sim->now, event->connection, contents, size);
    sim_check_status(sim, event->node, "received", status);
  }
}

static void sim_connection_event(simulation *sim, const sim_event *event)
{
  sim_connection *connection = &sim->connections[event->connection];
  sim_node *node = &sim->node[event->node];
  int end = sim_end_of(sim, connection, event->node);
  if (end < 0 || !connection->open[end]) return;
  if (event->kind == SIM_ARRIVE) sim_arrive(sim, event, end);
  if (event->kind == SIM_CONNECTED) {
    sim_check_status(sim, event->node, "connected", flow_protocol_connected(node->protocol, sim->now, event->connection));
  }
  if (event->kind == SIM_CLOSED) {
    connection->open[end] = 0;
    sim_check_status(sim, event->node, "closed", flow_protocol_closed(node->protocol, sim->now, event->connection, "reset"));
  }
}

/* The node's newest connection: broken for both, or silent from now on. */
static void sim_break_connection(simulation *sim, int node, int mute)
{
  for (int i = sim->connection_count - 1; i >= 0; i--) {
    sim_connection *connection = &sim->connections[i];
    if (sim_end_of(sim, connection, node) < 0 || !connection->open[0] || !connection->open[1] || connection->muted) continue;
    SIM_SAY(sim, "connection of node %d %s", node, mute ? "falls silent" : "breaks");
    if (!mute) {
      sim_deliver(sim, i, 0, SIM_CLOSED, NULL, 0);
      sim_deliver(sim, i, 1, SIM_CLOSED, NULL, 0);
    }
    connection->muted = 1;
    return;
  }
}

static void sim_fault(simulation *sim, const sim_event *event)
{
  sim_node *node = &sim->node[event->node];
  if (event->kind == SIM_BOOT) {
    sim_boot(sim, event->node);
    return;
  }
  if (!node->protocol) return;
  if (event->kind == SIM_CUT || event->kind == SIM_MUTE) {
    sim_break_connection(sim, event->node, event->kind == SIM_MUTE);
  } else if (event->kind == SIM_FREEZE) {
    SIM_SAY(sim, "node %d freezes for %.1f s", event->node, event->seconds);
    node->frozen_until = fmax(node->frozen_until, sim->now + event->seconds);
  } else {
    SIM_SAY(sim, "node %d crashes", event->node);
    sim_stop(sim, event->node);
    if (event->seconds >= 0) sim_schedule(sim, sim->now + event->seconds, SIM_BOOT, event->node, NULL, 0);
  }
}

static void sim_step(simulation *sim, const sim_event *event)
{
  sim_node *node = &sim->node[event->node];
  if (event->kind <= SIM_MUTE) {
    sim_fault(sim, event);
  } else if (node->protocol && event->process == node->process) {
    if (event->kind == SIM_TIMER && event->seconds == node->wakeup) {
      node->wakeup = -1;
      sim_check_status(sim, event->node, "timer", flow_protocol_timer(node->protocol, sim->now));
    } else if (event->kind == SIM_WORK && event->order == node->work) {
      sim_work(sim, event->node);
    } else if (event->kind == SIM_REFUSED) {
      sim_check_status(sim, event->node, "refused", flow_protocol_closed(node->protocol, sim->now, -1, "connection refused"));
    } else if (event->kind > SIM_WORK) {
      sim_connection_event(sim, event);
    }
    sim->last_event = sim->now;
  }
  if (node->starved && node->protocol) {
    sim_stop(sim, event->node);
    sim_schedule(sim, sim->now + 3, SIM_BOOT, event->node, NULL, 0);
  }
  sim_drain(sim, event->node);
}

/* ---- a run --------------------------------------------------------------------------------------------------------------------------- */

/* chief: whether there is a job "chief"; ps: of the nodes, this many are parameter servers. */
void sim_begin(simulation *sim, unsigned long long seed, int nodes, int chief, int ps)
{
  *sim = (simulation){ .random = seed * 2654435761u + 12345, .nodes = nodes, .steps = 30, .slowest = 0.005, .verdict_process = -1 };
  sim_random(sim, 2);
  sim->connections = calloc(SIM_MOST_CONNECTIONS, sizeof *sim->connections);
  sim->base_bytes = flow_live_bytes();
  for (int i = 0; i < nodes; i++) {
    char text[512];
    sim->node[i].job = "simulated";
    sim->node[i].version = "1";
    sim->node[i].signature = "model";
    int first_ps = nodes - ps, job = i >= first_ps ? FLOW_JOB_PS : chief && i == 0 ? FLOW_JOB_CHIEF : FLOW_JOB_WORKER;
    int index = job == FLOW_JOB_PS ? i - first_ps : job == FLOW_JOB_WORKER ? i - chief : 0;
    flow_text to = flow_text_into(text, sizeof text);
    flow_text_add(&to, "{\"cluster\":{");
    if (chief) flow_text_add(&to, "\"chief\":[\"10.0.0.1:2222\"],");
    flow_text_add(&to, "\"worker\":[");
    for (int w = chief; w < first_ps; w++) flow_text_add(&to, "%s\"10.0.0.%d:2222\"", w > chief ? "," : "", w + 1);
    flow_text_add(&to, "],\"ps\":[");
    for (int p = first_ps; p < nodes; p++) flow_text_add(&to, "%s\"10.0.0.%d:2222\"", p > first_ps ? "," : "", p + 1);
    flow_text_add(&to, "]},\"task\":{\"type\":\"%s\",\"index\":%d}}", flow_job_name(job), index);
    sim_check_status(sim, i, "cluster", flow_cluster_parse(text, to.length, "simulation", NULL, -1, &sim->node[i].cluster));
  }
}

/* Until nothing happens any more, a promise is broken, or `until`. */
void sim_run(simulation *sim, double until)
{
  while (sim->events && !sim->broken[0] && sim->events->at <= until) {
    sim_event *event = sim->events;
    sim->events = event->next;
    sim->now = event->at;
    double thaw = sim->node[event->node].frozen_until;
    int fault = event->kind <= SIM_MUTE;
    if (!fault && thaw > sim->now && event->process == sim->node[event->node].process) {
      sim_event **place = &sim->events;               /* later, in the order in which they came */
      event->at = thaw;
      while (*place && ((*place)->at < thaw || ((*place)->at == thaw && (*place)->order < event->order))) place = &(*place)->next;
      event->next = *place;
      *place = event;
      continue;
    }
    sim_step(sim, event);
    free(event);
  }
}

void sim_end(simulation *sim)
{
  for (int i = 0; i < sim->nodes; i++) {
    flow_protocol_release(sim->node[i].protocol);
    sim->node[i].protocol = NULL;
    flow_cluster_release(sim->node[i].cluster);
  }
  for (int i = 0; i < sim->connection_count; i++) {
    for (int end = 0; end < 2; end++) flow_frame_reader_clear(&sim->connections[i].to[end].reader);
  }
  while (sim->events) {
    sim_event *event = sim->events;
    sim->events = event->next;
    free(event);
  }
  free(sim->connections);
  sim->connections = NULL;
  if (flow_live_bytes() != sim->base_bytes) SIM_BREAK(sim, "%.0f bytes are left over", flow_live_bytes() - sim->base_bytes);
}

/* Boots everybody at once. */
void sim_boot_all(simulation *sim)
{
  for (int i = 0; i < sim->nodes; i++) sim_schedule(sim, 0.01 * i, SIM_BOOT, i, NULL, 0);
}

void sim_plan(simulation *sim, double at, int kind, int node, double seconds)
{
  sim_schedule(sim, at, kind, node, NULL, 0)->seconds = seconds;
}
