/* monitor.c: the pages: / for people, /status as JSON, /metrics as Prometheus reads it (text format 0.0.4). Pages are made when they are
 * asked for, on the server's thread, under the monitor's lock; a program that says something new waits for that lock at most as long as
 * a page takes. */
#include "cluster/monitor/monitor.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "cluster/monitor/http.h"

enum { TASK_ROOM = 1024, HEAD_ROOM = 1024, MOST_NAMED = 8 };      /* bytes for a task and for the rest; tasks that are named as missing */
static const double SHOWN_AFTER = 2;          /* seconds of waiting: before that it is a step like any other */

struct flow_monitor {
  /* Guards all that follows but `http`, which does not change. */
  pthread_mutex_t     lock;
  flow_http          *http;
  char               *json, *metrics;         /* what the program has said; NULL: nothing */
  flow_monitor_source source;                 /* control NULL: there is none */
};

/* ---- what the control plane knows ---------------------------------------------------------------------------------------------------- */

typedef struct view { flow_task_view *tasks; int count, self; uint64_t generation; double waiting; } view;

/* What the control plane knows now; out->tasks: a block that the caller frees. The number of tasks does not change. With the monitor's
 * lock. The clock and the counts are those of this moment; the two calls see the same tasks. */
static flow_status look(const flow_monitor *monitor, view *out)
{
  void *block;
  *out = (view){ .count = 0 };
  if (!monitor->source.control) return FLOW_OK;
  int count = flow_control_tasks(monitor->source.control, NULL, 0, &out->self, &out->generation);
  FLOW_TRY(flow_alloc_zero((size_t)count * sizeof *out->tasks, &block));
  out->tasks = block;
  out->count = count;
  flow_control_tasks(monitor->source.control, out->tasks, count, &out->self, &out->generation);
  out->waiting = monitor->source.waiting(monitor->source.state);
  return FLOW_OK;
}

/* Names are of the program's; quotes, backslashes and controls do not stay. */
static const char *plain(const char *text, char *to, int size)
{
  int i = 0;
  for (; text[i] && i < size - 1; i++) to[i] = (unsigned char)text[i] < ' ' || text[i] == '"' || text[i] == '\\' ? ' ' : text[i];
  to[i] = '\0';
  return to;
}

/* Whether this process waits for that one: it has begun fewer of the calls that all make together. */
static int is_late(const view *seen, int task)
{
  const flow_task_view *other = &seen->tasks[task];
  return seen->waiting > SHOWN_AFTER && task != seen->self && other->known && other->calls < seen->tasks[seen->self].calls;
}

/* One task as an object. What only a connected task tells (step, calls, what it does) is left out of the others. Names need no escapes;
 * addresses and what a task does come from elsewhere and are made plain first. */
static void add_task_json(flow_text *to, const flow_task_view *task)
{
  char doing[FLOW_DOING_SIZE], address[FLOW_ADDRESS_SIZE];
  flow_text_add(to, "{\"name\":\"%s\",\"address\":\"%s\",\"state\":\"%s\"", task->name, plain(task->address, address, sizeof address),
                task->state);
  if (task->known) {
    flow_text_add(to, ",\"step\":%.0f,\"calls\":%u,\"doing\":\"%s\",\"silent_seconds\":%.1f", task->step, task->calls,
                  plain(task->doing, doing, sizeof doing), task->silent);
  }
  flow_text_add(to, "}");
}

/* The view as one JSON object. waits_for names at most MOST_NAMED of the tasks that the others wait for. */
static void add_json(flow_text *to, const view *seen)
{
  int named = 0;
  flow_text_add(to, "{\"task\":\"%s\",\"restarts\":%.0f,\"waiting_seconds\":%.1f,\"waits_for\":[", seen->tasks[seen->self].name,
                seen->generation > 0 ? (double)seen->generation - 1 : 0, seen->waiting);
  for (int i = 0; i < seen->count; i++) {
    if (is_late(seen, i) && ++named <= MOST_NAMED) flow_text_add(to, "%s\"%s\"", named > 1 ? "," : "", seen->tasks[i].name);
  }
  flow_text_add(to, "],\"tasks\":[");
  for (int i = 0; i < seen->count; i++) {
    flow_text_add(to, i > 0 ? "," : "");
    add_task_json(to, &seen->tasks[i]);
  }
  flow_text_add(to, "]}");
}

/* The text format of Prometheus: a line of type for each metric, then a value for each task. Of tasks that are not known only whether
 * they are up. */
static void add_metrics(flow_text *to, const view *seen)
{
  static const char *const names[] = { "flow_task_up", "flow_task_step", "flow_task_calls_total", "flow_task_silent_seconds",
                                       "flow_task_waited_for" };
  flow_text_add(to, "# TYPE flow_restarts_total counter\nflow_restarts_total %.0f\n",
                seen->generation > 0 ? (double)seen->generation - 1 : 0);
  flow_text_add(to, "# TYPE flow_waiting_seconds gauge\nflow_waiting_seconds %.1f\n", seen->waiting);
  for (int kind = 0; kind < 5; kind++) {
    flow_text_add(to, "# TYPE %s %s\n", names[kind], kind == 2 ? "counter" : "gauge");
    for (int i = 0; i < seen->count; i++) {
      const flow_task_view *task = &seen->tasks[i];
      const double values[] = { strcmp(task->state, "running") == 0, task->step, task->calls, task->silent, is_late(seen, i) };
      if (task->known || kind == 0) flow_text_add(to, "%s{task=\"%s\"} %.17g\n", names[kind], task->name, values[kind]);
    }
  }
}

/* ---- pages --------------------------------------------------------------------------------------------------------------------------- */

/* *body: a new block with the program's text and that of the cluster. TASK_ROOM bounds what one task takes in either form. A text is
 * cut at its end rather than written beyond it (flow_text). */
static flow_status make_page(const flow_monitor *monitor, const view *seen, int metrics, char **body, size_t *bytes)
{
  void *block;
  const char *said = metrics ? monitor->metrics : monitor->json;
  size_t size = strlen(said ? said : "") + HEAD_ROOM + (size_t)seen->count * TASK_ROOM * (metrics ? 2 : 1);
  FLOW_TRY(flow_alloc(size, &block));
  flow_text to = flow_text_into(block, (int)size);
  if (metrics) {
    flow_text_add(&to, "%s", said ? said : "");
    if (seen->count > 0) add_metrics(&to, seen);
  } else {
    flow_text_add(&to, "{\"training\":%s", said ? said : "{}");
    if (seen->count > 0) flow_text_add(&to, ",\"cluster\":");
    if (seen->count > 0) add_json(&to, seen);
    flow_text_add(&to, "}\n");
  }
  *body = block;
  *bytes = strlen(block);
  return FLOW_OK;
}

/* On the server's thread. The lock keeps worker and texts where they are while a page is made of them. A path that is not one of the
 * three has no page; what the server answers then is its own. */
static flow_status page_of(void *state, const char *path, const char **type, char **body, size_t *bytes)
{
  flow_monitor *monitor = state;
  int metrics = strcmp(path, "/metrics") == 0;
  if (strcmp(path, "/") == 0) {
    *type = "text/html; charset=utf-8";
    *bytes = strlen(flow_monitor_html);
    return (*body = flow_duplicate_text(flow_monitor_html)) ? FLOW_OK : FLOW_OUT_OF_MEMORY;
  }
  if (!metrics && strcmp(path, "/status") != 0) return FLOW_NOT_FOUND;
  *type = metrics ? "text/plain; version=0.0.4; charset=utf-8" : "application/json";
  view seen;
  pthread_mutex_lock(&monitor->lock);
  flow_status status = look(monitor, &seen);
  if (status == FLOW_OK) status = make_page(monitor, &seen, metrics, body, bytes);
  pthread_mutex_unlock(&monitor->lock);
  flow_free(seen.tasks);
  return status;
}

/* ---- for the program ----------------------------------------------------------------------------------------------------------------- */

flow_status flow_monitor_open(const char *address, flow_monitor **out)
{
  void *block;
  if (!address || !out) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_monitor_open: %s is NULL", address ? "out" : "address");
  *out = NULL;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_monitor), &block));
  flow_monitor *monitor = block;
  pthread_mutex_init(&monitor->lock, NULL);
  flow_status status = flow_http_open(address, page_of, monitor, &monitor->http);
  if (status == FLOW_OK) *out = monitor;
  else flow_monitor_close(monitor);
  return status;
}

int flow_monitor_port(const flow_monitor *monitor) { return monitor ? flow_http_port(monitor->http) : 0; }

/* Both texts change at once; the old ones are freed after the lock is given back. After a failure the old ones stay. */
flow_status flow_monitor_say(flow_monitor *monitor, const char *json, const char *metrics)
{
  if (!monitor || !json || !metrics) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_monitor_say: an argument is NULL");
  char *first = flow_duplicate_text(json), *second = flow_duplicate_text(metrics);
  if (!first || !second) {
    flow_free(first);
    flow_free(second);
    return FLOW_OUT_OF_MEMORY;
  }
  pthread_mutex_lock(&monitor->lock);
  char *old[] = { monitor->json, monitor->metrics };
  monitor->json = first;
  monitor->metrics = second;
  pthread_mutex_unlock(&monitor->lock);
  flow_free(old[0]);
  flow_free(old[1]);
  return FLOW_OK;
}

void flow_monitor_set_source(flow_monitor *monitor, const flow_monitor_source *source)
{
  pthread_mutex_lock(&monitor->lock);
  const flow_monitor_source old = monitor->source, now = source ? *source : (flow_monitor_source){ .control = NULL };
  monitor->source = now;
  pthread_mutex_unlock(&monitor->lock);
  if (old.control && old.state != now.state) old.leave(old.state);
}

void flow_monitor_close(flow_monitor *monitor)
{
  if (!monitor) return;
  flow_http_close(monitor->http);
  if (monitor->source.control) monitor->source.leave(monitor->source.state);
  flow_free(monitor->json);
  flow_free(monitor->metrics);
  pthread_mutex_destroy(&monitor->lock);
  flow_free(monitor);
}
