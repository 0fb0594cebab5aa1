/* control_view.c: what this process knows of the cluster's tasks at a moment, for those who only look. */
#include "cluster/control/control_state.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cluster/control/protocol_state.h"

static const char *const names[] = { [FLOW_ABSENT] = "not there", [FLOW_GREETING] = "connecting", [FLOW_WELCOMED] = "connected",
                                     [FLOW_JOINED] = "waiting", [FLOW_RUNNING] = "running", [FLOW_FINISHED] = "finished",
                                     [FLOW_ENDED] = "ended" };

/* flow_protocol_task gives "worker:1 10.0.0.7:2222", or the name alone for a task without an address. */
static void name_task(const flow_protocol *protocol, int task, flow_task_view *out)
{
  const char *text = flow_protocol_task(protocol, task), *space = strchr(text, ' ');
  snprintf(out->name, sizeof out->name, "%.*s", space ? (int)(space - text) : (int)strlen(text), text);
  snprintf(out->address, sizeof out->address, "%s", space ? space + 1 : "");
}

/* What this process tells of itself; step is -1 before the first one. */
static void view_self(const flow_protocol *protocol, flow_task_view *out)
{
  out->known = 1;
  out->state = names[protocol->standing];
  out->step = fmax(protocol->step, 0);
  out->calls = protocol->calls;
  snprintf(out->doing, sizeof out->doing, "%s", protocol->doing);
}

/* The chief hears of all; the others know of the chief alone whether they hear it. */
static void view_other(const flow_protocol *protocol, int task, double now, flow_task_view *out)
{
  if (protocol->self != 0) {
    out->state = task != 0 ? "known to the chief" : protocol->connection < 0 ? names[FLOW_ABSENT] : names[protocol->standing];
    return;
  }
  const flow_peer *peer = &protocol->peers[task];
  out->known = peer->connection >= 0;
  out->state = peer->standing == FLOW_JOINED && flow_chief_is_running(protocol) ? "standing by" : names[peer->standing];
  out->step = fmax(peer->step, 0);
  out->calls = peer->calls;
  out->silent = fmax(now - peer->heard, 0);
  snprintf(out->doing, sizeof out->doing, "%s", peer->doing);
}

/* Any thread. tasks may be NULL if room is 0. */
int flow_control_tasks(flow_control *control, flow_task_view *tasks, int room, int *self, uint64_t *generation)
{
  pthread_mutex_lock(&control->lock);
  flow_control_take_calls(control);
  const flow_protocol *protocol = control->protocol;
  int count = protocol->tasks;
  double now = flow_control_now();
  *self = protocol->self;
  *generation = protocol->generation;
  for (int i = 0; i < count && i < room; i++) {
    tasks[i] = (flow_task_view){ .known = 0 };
    name_task(protocol, i, &tasks[i]);
    if (i == protocol->self) view_self(protocol, &tasks[i]);
    else view_other(protocol, i, now, &tasks[i]);
  }
  pthread_mutex_unlock(&control->lock);
  return count;
}
