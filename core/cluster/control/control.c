/* control.c: the thread of a process's control plane and its links. Everything is under one lock, which is not held while the thread
 * sleeps or looks up a name.
 *
 * The thread drives the protocol (protocol.h), which is a state machine without sockets and clock: it polls, hands over what came, with
 * the time, and carries out the actions that follow (control_actions.c). Calls of other threads (control_calls.c) change the protocol
 * under the same lock, and wake the thread through an eventfd, so that it polls with a new timeout. Only this thread adds and releases
 * links, so that what it polls without the lock stays open; a call that makes the protocol send something writes to a link's buffer and,
 * as far as that does not block, to its socket.
 *
 * Who calls is not trusted before the protocol knows it as a task: until then a link has GREETING_WITHIN seconds, its memory is bounded
 * (frame.h), and its number as well (callers.h). */
#include "cluster/control/control_state.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/condition.h"
#include "base/entropy.h"
#include "base/memory.h"
#include "base/plugin.h"

/* Connections that are accepted before links are served again: a flood of callers does not keep heartbeats waiting. */
enum { ACCEPTED_AT_ONCE = 64 };
static const double GREETING_WITHIN = 10, LISTEN_AGAIN = 0.5;       /* seconds */
static const double COMPLAINT_EVERY = 5, FLOOD_NOTICE_EVERY = 60, TICK_AFTER_END = 0.5;

/* Seconds of the monotonic clock: a clock that is set must not look like a task that slept. */
double flow_control_now(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The counter of the eventfd may be full, which wakes as well. */
void flow_control_wake(flow_control *control)
{
  uint64_t one = 1;
  ssize_t written = write(control->wake, &one, sizeof one);
  (void)written;                                   /* full is awake */
}

/* ---- the thread: links --------------------------------------------------------------------------------------------------------------- */

/* Takes over the descriptor, which is closed on failure. caller: who was accepted; NULL: this process has dialed. */
static flow_status add_link(flow_control *control, int descriptor, const flow_caller *caller)
{
  flow_link *link;
  FLOW_TRY(flow_link_new(descriptor, !caller, control->sealing, flow_control_now() + GREETING_WITHIN, &link));
  flow_status status = flow_grow(&control->links, sizeof *control->links, control->link_count + 1, &control->link_capacity);
  if (status != FLOW_OK) {
    flow_link_release(link);
    return status;
  }
  link->is_caller = caller != NULL;
  if (caller) link->caller = *caller;
  control->caller_count += link->is_caller;
  control->links[control->link_count++] = link;
  return FLOW_OK;
}

/* Releases the link at `place`, and tells the protocol, unless it asked for that itself, or never knew the link. A dialed link that ends
 * before its greeting is the failure of DIAL, number -1. The last link takes its place. */
static void drop_link(flow_control *control, int place, const char *why)
{
  char text[256];
  flow_link *link = control->links[place];
  int number = link->number, told = link->phase == FLOW_LINK_CLOSING, dialed = link->dialed;
  snprintf(text, sizeof text, "%s", why);                /* it may be the failure's text, which the protocol may write over */
  control->links[place] = control->links[--control->link_count];
  control->caller_count -= link->is_caller;
  flow_link_release(link);
  if (told || (number < 0 && !dialed)) return;
  flow_control_settle(control, flow_protocol_closed(control->protocol, flow_control_now(), number, text));
}

/* ---- the thread: callers (callers.h) ------------------------------------------------------------------------------------------------- */

/* The place of the caller that has to go before another one comes, -1: none has to. comes: NULL asks for the oldest of all. */
static int find_superfluous(flow_control *control, const flow_caller *comes)
{
  int count = 0;
  if (comes && control->caller_count < control->callers.room / 2) return -1;
  if (flow_grow(&control->list, sizeof *control->list, control->caller_count + 1, &control->list_capacity) != FLOW_OK) return -1;
  for (int i = 0; i < control->link_count; i++) {
    const flow_link *link = control->links[i];
    if (link->is_caller) control->list[count++] = &link->caller;
  }
  int chosen = flow_callers_choose(&control->callers, control->list, count, comes);
  for (int i = 0; i < control->link_count && chosen >= 0; i++) {
    if (&control->links[i]->caller == control->list[chosen]) return i;
  }
  return -1;
}

/* Closes a caller to make room for another one. One line a minute tells of it: a flood of calls must not flood the log, too. */
static void turn_out(flow_control *control, int place)
{
  char text[400], host[FLOW_HOST_TEXT];
  double now = flow_control_now();
  flow_host_text(&control->links[place]->caller.host, host);
  drop_link(control, place, "it did not say who it is, and others came");
  control->turned_out++;
  if (!control->log || now < control->next_notice) return;
  control->next_notice = now + FLOOD_NOTICE_EVERY;
  snprintf(text, sizeof text, "too many connections do not say who they are: the oldest were closed to make room (%.0f, the last from %s)",
           control->turned_out, host);
  control->turned_out = 0;
  control->log(control->log_state, text);
}

/* No connection can be accepted for lack of a descriptor. A caller that goes leaves one. If there is none, the listener is not polled for a
 * while: connections wait there, and this thread does not ask again and again. */
static int make_descriptor(flow_control *control)
{
  int place = control->caller_count > 0 ? find_superfluous(control, NULL) : -1;
  if (place >= 0) {
    turn_out(control, place);
    return 1;
  }
  if (control->log && flow_control_now() >= control->next_complaint) {
    control->next_complaint = flow_control_now() + COMPLAINT_EVERY;
    control->log(control->log_state, "no connection can be accepted: this process has no file descriptor left (ulimit -n)");
  }
  return 0;
}

/* The next that calls, -1: nobody, or there is no descriptor. */
static int accept_next(flow_control *control)
{
  int full, descriptor = flow_callers_accept(control->listener, &full);
  if (full && make_descriptor(control)) descriptor = flow_callers_accept(control->listener, &full);
  if (full) control->listen_after = flow_control_now() + LISTEN_AGAIN;
  return descriptor;
}

/* Accepts who calls, as far as descriptors and memory go. Only the chief is dialed; the listeners of other tasks are there so that
 * nobody else can be that task, and close what comes. */
static void accept_links(flow_control *control)
{
  int descriptor = 0;
  for (int i = 0; i < ACCEPTED_AT_ONCE && (descriptor = accept_next(control)) >= 0; i++) {
    flow_caller caller = { .host = flow_host_of_peer(descriptor), .since = flow_control_now() };
    if (!control->is_chief) {
      close(descriptor);
      continue;
    }
    caller.known = flow_callers_know(&control->callers, &caller.host);
    int place = find_superfluous(control, &caller);
    if (place >= 0) turn_out(control, place);
    if (add_link(control, descriptor, &caller) != FLOW_OK) return;
  }
}

/* After what a caller has said: it is a task now, or still nobody. */
static void look_who_called(flow_control *control, flow_link *link)
{
  if (!link->is_caller || !flow_protocol_is_task(control->protocol, link->number)) return;
  link->is_caller = 0;
  control->caller_count--;
  flow_callers_learn(&control->callers, &link->caller.host);
}

/* ---- the thread: what comes ---------------------------------------------------------------------------------------------------------- */

/* Frames as far as they came; a failure is the end of the link. What takes nothing more may have said why, before: it is heard, too. */
static flow_status read_frames(flow_control *control, flow_link *link)
{
  size_t count;
  FLOW_TRY(flow_link_read(link, control->bytes, sizeof control->bytes, &count));
  for (size_t at = 0; at < count && (link->phase == FLOW_LINK_OPEN || link->phase == FLOW_LINK_BROKEN);) {
    const uint8_t *contents;
    size_t used, size;
    FLOW_TRY(flow_frame_reader_feed(&link->reader, control->bytes + at, count - at, &used, &contents, &size));
    at += used;
    if (!contents) continue;
    flow_control_settle(control, flow_protocol_received(control->protocol, flow_control_now(), link->number, contents, size));
    look_who_called(control, link);
  }
  return FLOW_OK;
}

/* Reads what there is on a link that takes nothing more, and fails. */
static flow_status hear_out(flow_control *control, flow_link *link)
{
  FLOW_TRY(read_frames(control, link));
  return flow_fail(FLOW_IO_ERROR, "the connection is broken");
}

/* After a link's last words were sent, what still comes is not read but waited for: closing earlier could take the words away. */
static flow_status read_out(flow_control *control, flow_link *link)
{
  size_t count;
  FLOW_TRY(flow_link_flush(link));
  if (link->filled == 0) shutdown(link->descriptor, SHUT_WR);
  return flow_link_read(link, control->bytes, sizeof control->bytes, &count);
}

/* The end of a connect that did not block, well or not. */
static flow_status connect_link(flow_link *link)
{
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(link->descriptor, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error) return flow_fail(FLOW_IO_ERROR, "%s", strerror(error));
  link->phase = FLOW_LINK_GREETING;
  return FLOW_OK;
}

/* What a link has to do in its phase, after poll() has told of `events`. A failure is the end of the link. A link that cannot send any
 * more (BROKEN) is read to its end first: the peer may have said why. */
static flow_status serve_link(flow_control *control, flow_link *link, int events)
{
  int complete = 0;
  if (link->phase == FLOW_LINK_CONNECTING) FLOW_TRY(connect_link(link));
  if (link->phase == FLOW_LINK_CLOSING) return read_out(control, link);
  if (link->phase == FLOW_LINK_OPEN && flow_link_flush(link) != FLOW_OK) link->phase = FLOW_LINK_BROKEN;
  if (link->phase == FLOW_LINK_BROKEN) return hear_out(control, link);
  FLOW_TRY(flow_link_flush(link));
  if (!(events & (POLLIN | POLLHUP | POLLERR))) return FLOW_OK;
  if (link->phase == FLOW_LINK_OPEN) return read_frames(control, link);
  FLOW_TRY(flow_link_greet(link, &control->secret, &complete));
  if (!complete) return FLOW_OK;
  link->number = control->next_number++;
  flow_control_settle(control, flow_protocol_connected(control->protocol, flow_control_now(), link->number));
  return FLOW_OK;
}

/* ---- the thread ---------------------------------------------------------------------------------------------------------------------- */

/* Looks up the address and begins to connect. Without the lock, as a name server may take seconds; control->dial is taken before, so
 * that a second request is not lost. */
static void dial(flow_control *control)
{
  char address[FLOW_ADDRESS_SIZE];
  int descriptor = -1;
  memcpy(address, control->dial, sizeof address);
  control->dial[0] = '\0';
  unsigned attempt = control->attempts++;
  pthread_mutex_unlock(&control->lock);
  flow_status status = flow_link_dial(address, attempt, &descriptor);
  pthread_mutex_lock(&control->lock);
  if (status == FLOW_OK) status = add_link(control, descriptor, NULL);
  if (status != FLOW_OK) flow_control_settle(control, flow_protocol_closed(control->protocol, flow_control_now(), -1, flow_last_error()));
}

/* What is waited for; returns the number of entries. Places of links are those of control->links, after two. After the end nobody is
 * accepted any more; the links that are there say their last words. */
static int list_polled(flow_control *control)
{
  if (flow_grow(&control->polled, sizeof *control->polled, control->link_count + 2, &control->polled_capacity) != FLOW_OK) return 0;
  control->polled[0] = (struct pollfd){ .fd = control->wake, .events = POLLIN };
  int listens = !control->ended && flow_control_now() >= control->listen_after;
  control->polled[1] = (struct pollfd){ .fd = listens ? control->listener : -1, .events = POLLIN };
  for (int i = 0; i < control->link_count; i++) {
    const flow_link *link = control->links[i];
    short events = link->phase == FLOW_LINK_CONNECTING ? POLLOUT : link->filled > link->first ? POLLIN | POLLOUT : POLLIN;
    control->polled[i + 2] = (struct pollfd){ .fd = link->descriptor, .events = events };
  }
  return control->link_count + 2;
}

/* How long poll() may sleep: until the protocol's next deadline or that of a link. -1: for ever. */
static int milliseconds(const flow_control *control)
{
  double next = flow_protocol_wakeup(control->protocol), now = flow_control_now();
  if (control->listen_after > now) next = fmin(next, control->listen_after);
  for (int i = 0; i < control->link_count; i++) {
    if (control->links[i]->phase == FLOW_LINK_BROKEN) next = now;
    else if (control->links[i]->phase != FLOW_LINK_OPEN) next = fmin(next, control->links[i]->until);
  }
  if (control->on_tick && control->verdict[0]) next = fmin(next, now + TICK_AFTER_END);
  if (isinf(next)) return -1;
  return next <= now ? 0 : (int)fmin(ceil((next - now) * 1000), 60000);
}

/* Serves the link; 0: it has ended. Of bytes that are not flowlua's, or have another secret, a line every few seconds says
 * enough. */
static int serve_or_complain(flow_control *control, flow_link *link, int events)
{
  char text[400], reason[300];
  flow_status status = serve_link(control, link, events);
  if (status == FLOW_OK) return 1;
  if (status == FLOW_IO_ERROR || link->dialed) return 0;
  snprintf(reason, sizeof reason, "%s", flow_last_error());
  flow_protocol_turned_away(control->protocol, reason);
  if (!control->log || flow_control_now() < control->next_complaint) return 0;
  control->next_complaint = flow_control_now() + COMPLAINT_EVERY;
  snprintf(text, sizeof text, "a connection was turned away: %s", reason);
  control->log(control->log_state, text);
  return 0;
}

/* From the last to the first, since a link that goes is replaced by the last one. Links that were added since the poll are at the end,
 * beyond `count`, and are served after the next one. */
static void serve_links(flow_control *control, int count)
{
  for (int i = count - 3; i >= 0; i--) {
    flow_link *link = control->links[i];
    int events = control->polled[i + 2].revents;
    if ((events || link->phase == FLOW_LINK_BROKEN) && !serve_or_complain(control, link, events)) drop_link(control, i, flow_last_error());
    else if (link->phase != FLOW_LINK_OPEN && flow_control_now() >= link->until) drop_link(control, i, "no answer");
  }
}

/* Whether some link still has to deliver what the protocol said last: the thread does not end before. */
static int has_last_words(const flow_control *control)
{
  for (int i = 0; i < control->link_count; i++) {
    if (control->links[i]->phase == FLOW_LINK_CLOSING) return 1;
  }
  return 0;
}

/* The thread. If there is no memory to list what is polled, it sleeps for 100 ms and tries again. */
static void *run(void *argument)
{
  flow_control *control = argument;
  uint64_t counter;
  pthread_mutex_lock(&control->lock);
  while (!control->stop || has_last_words(control)) {
    if (control->dial[0] && !control->stop) dial(control);
    int count = list_polled(control), timeout = milliseconds(control);
    pthread_mutex_unlock(&control->lock);
    poll(control->polled, (nfds_t)count, count > 0 ? timeout : 100);
    pthread_mutex_lock(&control->lock);
    control->wakeups++;
    /* The counter is set back first, then work is looked for: what comes in between wakes the next poll. */
    if (count > 0 && control->polled[0].revents && read(control->wake, &counter, sizeof counter) < 0) continue;
    serve_links(control, count);
    if (count > 0 && control->polled[1].revents) accept_links(control);
    flow_control_take_calls(control);
    flow_control_settle(control, flow_protocol_timer(control->protocol, flow_control_now()));
    /* The watcher runs on this thread, under the lock: it may only look at memory (worker.c). */
    int behind = flow_protocol_is_behind(control->protocol);
    const char *fault = control->on_tick ? control->on_tick(control->watch_state, control->finished, behind) : NULL;
    if (fault) flow_control_settle(control, flow_protocol_report(control->protocol, flow_control_now(), fault, FLOW_FAULT_OWN));
  }
  pthread_mutex_unlock(&control->lock);
  return NULL;
}

/* The last step of opening: from here on everything is under the lock. */
static flow_status start_thread(flow_control *control)
{
  int error = flow_thread_start(&control->thread, "flow-control", run, control);
  if (error) return flow_fail(FLOW_IO_ERROR, "the control plane's thread cannot start: %s", strerror(error));
  control->started = 1;
  return FLOW_OK;
}

/* ---- opening and closing ------------------------------------------------------------------------------------------------------------- */

/* Whether a task of the cluster is on another host than this address, as far as its text tells. */
static int has_other_host(const flow_cluster *cluster, const char *address)
{
  size_t length = (size_t)(strrchr(address, ':') - address) + 1;
  for (int job = 0; job < FLOW_JOB_COUNT; job++) {
    for (int i = 0; i < flow_cluster_count(cluster, job); i++) {
      const char *other = flow_cluster_address(cluster, job, i);
      if (other && strncmp(other, address, length) != 0) return 1;
    }
  }
  return 0;
}

/* What others dial in vain, so that this process would not learn why they do not come: a machine's own name that is 127.0.1.1 in Debian's
 * /etc/hosts, and those addresses of a name at which nobody listens. */
static void tell_where(const flow_control *control, const flow_cluster *cluster, const char *address)
{
  char text[600] = "", host[FLOW_HOST_TEXT];
  if (!control->log || flow_address_reach(address) != FLOW_REACH_ANY || !has_other_host(cluster, address)) return;
  int local = flow_link_is_loopback(control->listener, host), count = flow_link_count_addresses(address);
  if (local) {
    snprintf(text, sizeof text,
             "%s is %s here, which other machines do not reach: let /etc/hosts of this machine have its address in the network for that "
             "name, or put the address into TF_CONFIG",
             address, host);
  } else if (count > 1) {
    snprintf(text, sizeof text,
             "%s has %d addresses, and this process listens at %s: where others do not reach that one, put another "
             "into TF_CONFIG",
             address, count, host);
  }
  if (text[0]) control->log(control->log_state, text);
}

/* Listens on this task's own address of the cluster, or takes the socket that a launcher has bound to it, and says so. Members listen,
 * too: the port is what makes this process the only one that is this task. */
static flow_status start_listening(flow_control *control, const flow_cluster *cluster, const flow_environment *environment)
{
  char text[1000];
  const char *address = flow_cluster_address(cluster, cluster->job, cluster->index);
  if (!address) return flow_fail(FLOW_UNSUPPORTED, "the cluster has no addresses (%s): a control plane needs TF_CONFIG", cluster->source);
  control->is_chief = flow_cluster_is_chief(cluster);
  if (control->is_chief) FLOW_TRY(flow_callers_init(cluster, &control->callers));
  FLOW_TRY(flow_link_inherit(environment->get(environment->state, "FLOW_LISTEN_DESCRIPTOR"), address, &control->listener));
  if (control->listener < 0) FLOW_TRY(flow_link_listen(address, &control->listener));
  flow_text to = flow_text_into(text, sizeof text);
  flow_text_add(&to, "listening on %s%s; waits for ", address, control->sealing ? ", sealed" : "");
  flow_protocol_list_others(control->protocol, &to);
  if (control->log) control->log(control->log_state, text);
  tell_where(control, cluster, address);
  return FLOW_OK;
}

const flow_control_functions *flow_control_sealing(const flow_control *control) { return control->sealing; }

/* What flow_control_open does after the lock is there; a failure leaves the rest to flow_control_close. The incarnation is random, so
 * that two processes with the same task can be told apart. */
static flow_status prepare(flow_control *control, const flow_cluster *cluster, const flow_environment *environment,
                           const flow_protocol_options *options)
{
  char place[128], host[64] = "";
  flow_protocol_options filled = *options;
  const flow_plugin *plugin;
  FLOW_TRY(flow_secret_read(environment, &control->secret));
  FLOW_TRY(flow_secret_check(environment, cluster, &control->secret));
  if (control->secret.count > 0) {
    FLOW_TRY(flow_plugin_open("control", &plugin));
    control->sealing = plugin->functions;
  }
  gethostname(host, sizeof host - 1);
  snprintf(place, sizeof place, "process %d on %s", (int)getpid(), host);
  filled.place = place;
  filled.cluster = cluster;
  FLOW_TRY(flow_entropy_take(&filled.incarnation, sizeof filled.incarnation));
  FLOW_TRY(flow_protocol_new(&filled, flow_control_now(), &control->protocol));
  control->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (control->wake < 0) return flow_fail(FLOW_IO_ERROR, "the control plane cannot start: %s", strerror(errno));
  FLOW_TRY(start_listening(control, cluster, environment));
  return start_thread(control);
}

/* log is called by the thread and by calling threads, always under the lock, so it must not call the control plane. On failure everything
 * is closed again and *out is NULL. */
flow_status flow_control_open(const flow_cluster *cluster, const flow_environment *environment, const flow_protocol_options *options,
                              void (*log)(void *state, const char *text), void *state, flow_control **out)
{
  void *block;
  *out = NULL;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_control), &block));
  flow_control *control = block;
  pthread_mutex_init(&control->lock, NULL);
  flow_condition_make(&control->changed); /* by the clock of flow_control_now */
  control->wake = control->listener = control->culprit = -1;
  control->log = log;
  control->log_state = state;
  flow_status status = prepare(control, cluster, environment, options);
  if (status == FLOW_OK) *out = control;
  else flow_control_close(control);
  return status;
}

/* Also for a control plane whose opening failed half-way. The thread is joined first, which waits for the last words of closing links
 * (CLOSING_WITHIN); after that nothing else touches the links, and the lock is no longer needed. No call of another thread may be under
 * way. */
void flow_control_close(flow_control *control)
{
  if (!control) return;
  if (control->started) {
    pthread_mutex_lock(&control->lock);
    control->stop = 1;
    flow_control_wake(control);
    pthread_mutex_unlock(&control->lock);
    flow_thread_join(&control->thread);
  }
  for (int i = 0; i < control->link_count; i++) flow_link_release(control->links[i]);
  if (control->listener >= 0) close(control->listener);
  if (control->wake >= 0) close(control->wake);
  flow_free(control->links);
  flow_free(control->polled);
  flow_free(control->list);
  flow_callers_clear(&control->callers);
  flow_protocol_release(control->protocol);
  flow_secret_clear(&control->secret);
  pthread_cond_destroy(&control->changed);
  pthread_mutex_destroy(&control->lock);
  flow_free(control);
}
