/* server.c: the end of a parameter server: it listens on its address of the cluster, and gives its caller one message after the other.
 * No thread of its own: everything happens within flow_server_next, which polls all connections until one has a whole message, and in
 * flow_server_reply, which sends what the socket takes and leaves the rest to the next poll.
 *
 * A peer is a stranger until it has sent a message, which takes the secret. Strangers are bounded in number and time as those of the
 * chief (control/callers.h). The caller learns of a peer by its first message, and, exactly once, that it is lost. */
#include <math.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/need.h"
#include "cluster/control/callers.h"
#include "cluster/servers/opening.h"

enum { ACCEPTED_AT_ONCE = 64 };    /* before peers are served again */
static const double GREET_WITHIN = 10, FLUSH_WITHIN = 2, COMPLAIN_EVERY = 5, LISTEN_AGAIN = 0.5, NAMED_WITHIN = 300; /* seconds */

/* A connection. Pointers to peers are valid until one is added or dropped. */
typedef struct peer {
  int           number, said;           /* said: the caller knows it, by a message */
  int           lost, told;             /* told: the caller knows that it is lost */
  flow_caller   caller;
  flow_channel *channel;
  char          why[200];
} peer;

struct flow_server {
  const flow_context *context;
  flow_opening opening;
  /* Numbers of peers are never used again, so that an answer to a peer that has gone reaches nobody else. */
  int       listener, next_number, current;       /* current: whose message the caller has; -1: nobody's */
  peer     *peers;
  int       count, capacity, turn;                /* turn: where to look first */
  flow_callers callers;
  int64_t   most;
  double    next_complaint, listen_after;         /* listen_after: without a descriptor for those that call, nobody asks again and again */
  struct pollfd *polled;
  const flow_caller **list;                       /* scratch of find_superfluous */
  int       polled_capacity, list_capacity;
};

/* ---- life ---------------------------------------------------------------------------------------------------------------------------- */

static void log_line(void *state, const char *text)
{
  (void)state;
  flow_log(FLOW_LOG_INFO, text);
}

/* What flow_server_open does once the server is there; a failure leaves the rest to flow_server_close. */
static flow_status start(flow_server *server, const flow_cluster *cluster)
{
  const char *address = flow_cluster_address(cluster, cluster->job, cluster->index);
  if (cluster->job != FLOW_JOB_PS || !address) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "this process is not a parameter server with an address of the cluster");
  }
  FLOW_TRY(flow_callers_init(cluster, &server->callers));
  FLOW_TRY(flow_opening_read(cluster, &server->opening));
  FLOW_TRY(flow_link_inherit(flow_opening_variable("FLOW_LISTEN_DESCRIPTOR"), address, &server->listener));
  if (server->listener >= 0) return FLOW_OK;
  FLOW_TRY(flow_link_await_name(server->context, address, NAMED_WITHIN, log_line, server));
  return flow_link_listen(address, &server->listener);
}

/* Listens when it returns, or fails: there is nothing to wait for. context: whose interrupts end waits; it outlives the server. *out: for
 * flow_server_close. */
flow_status flow_server_open(const flow_context *context, const flow_cluster *cluster, flow_server **out)
{
  FLOW_NEED(out);
  void *block;
  *out = NULL;
  FLOW_NEED(context, cluster);
  if (!cluster) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_server_open: cluster is NULL");
  FLOW_TRY(flow_alloc_zero(sizeof(flow_server), &block));
  flow_server *server = block;
  *server = (flow_server){ .context = context, .listener = -1, .current = -1, .most = 1 << 20 };
  flow_status status = start(server, cluster);
  if (status == FLOW_OK) *out = server;
  else flow_server_close(server);
  return status;
}

/* Answers that are on their way have FLUSH_WITHIN seconds to leave, all together; in a forked child they are the parent's. NULL is fine. */
void flow_server_close(flow_server *server)
{
  if (!server) return;
  int own = server->opening.forks == flow_fork_generation();
  double until = flow_opening_now() + FLUSH_WITHIN;             /* last answers are on their way */
  for (int i = 0; i < server->count; i++) {
    flow_channel *channel = server->peers[i].channel;
    while (own && channel && !server->peers[i].lost && flow_channel_is_open(channel) && !flow_channel_is_sent(channel) &&
           flow_opening_now() < until) {
      struct pollfd polled = { .fd = channel->link->descriptor, .events = POLLOUT };
      if (flow_opening_wait(NULL, &polled, 1, until, 1) != FLOW_OK) break;
      if (flow_channel_advance(channel, &server->opening.secret) != FLOW_OK) break;
    }
    flow_channel_release(channel);
  }
  if (server->listener >= 0) close(server->listener);
  flow_free(server->peers);
  flow_free(server->polled);
  flow_free(server->list);
  flow_callers_clear(&server->callers);
  flow_secret_clear(&server->opening.secret);
  flow_free(server);
}

/* ---- peers --------------------------------------------------------------------------------------------------------------------------- */

/* NULL: it is gone. */
static peer *find(flow_server *server, int number)
{
  for (int i = 0; i < server->count; i++) {
    if (server->peers[i].number == number) return &server->peers[i];
  }
  return NULL;
}

/* Of no use any more; why: the failure's text. */
static void lose(peer *p)
{
  snprintf(p->why, sizeof p->why, "%.199s", flow_last_error());
  p->lost = 1;
}

/* The last peer takes its place: a loop that drops goes from the end. */
static void drop(flow_server *server, int place)
{
  flow_channel_release(server->peers[place].channel);
  server->peers[place] = server->peers[--server->count];
}

/* A connection that has greeted counts as a stranger until its first message, which takes the secret. */
static int is_stranger(const peer *p) { return !p->said && !p->lost && !p->channel->complete; }

/* From the last one, since drop() moves the last peer. */
static void drop_late_strangers(flow_server *server)
{
  const double now = flow_opening_now();
  for (int i = server->count - 1; i >= 0; i--) {
    if (is_stranger(&server->peers[i]) && server->peers[i].channel->link->until < now) drop(server, i);
  }
}

/* The stranger that has to go before another one comes, -1: none has to. comes: NULL asks for the oldest of all. The pointers in `list`
 * are into `peers`, and valid until one of them is added or dropped. */
static int find_superfluous(flow_server *server, const flow_caller *comes)
{
  int count = 0;
  if (flow_grow(&server->list, sizeof *server->list, server->count + 1, &server->list_capacity) != FLOW_OK) return -1;
  for (int i = 0; i < server->count; i++) {
    if (is_stranger(&server->peers[i])) server->list[count++] = &server->peers[i].caller;
  }
  int chosen = flow_callers_choose(&server->callers, server->list, count, comes);
  for (int i = 0; i < server->count && chosen >= 0; i++) {
    if (&server->peers[i].caller == server->list[chosen]) return i;
  }
  return -1;
}

/* Takes over the descriptor. Closes it after a failure. */
static flow_status add(flow_server *server, int descriptor, const flow_caller *caller)
{
  flow_channel *channel;
  flow_opening_watch(descriptor, FLOW_OPENING_DEAD_AFTER);
  flow_status status = flow_channel_new(descriptor, 0, server->opening.sealing, flow_opening_now() + GREET_WITHIN, &channel);
  if (status != FLOW_OK) return status;
  channel->most = server->most;
  status = flow_grow(&server->peers, sizeof(peer), server->count + 1, &server->capacity);
  if (status != FLOW_OK) {
    flow_channel_release(channel);
    return status;
  }
  server->peers[server->count++] = (peer){ .number = server->next_number++, .caller = *caller, .channel = channel };
  return FLOW_OK;
}

/* Of what strangers do, a line every few seconds says enough. */
static void complain(flow_server *server, const char *what)
{
  double now = flow_opening_now();
  if (now < server->next_complaint) return;
  server->next_complaint = now + COMPLAIN_EVERY;
  flow_log(FLOW_LOG_WARNING, what);
}

/* The reason is this thread's last error. */
static void complain_of(flow_server *server, const peer *p)
{
  char line[400], host[FLOW_HOST_TEXT];
  snprintf(line, sizeof line, "a connection from %s was refused: %.250s", flow_host_text(&p->caller.host, host), flow_last_error());
  complain(server, line);
}

/* The next connection, -1: there is none, or no descriptor for it. In that case the oldest stranger goes and leaves its own. */
static int accept_next(flow_server *server)
{
  int full, descriptor = flow_callers_accept(server->listener, &full), place = full ? find_superfluous(server, NULL) : -1;
  if (place >= 0) {
    drop(server, place);
    descriptor = flow_callers_accept(server->listener, &full);
  }
  if (!full) return descriptor;
  server->listen_after = flow_opening_now() + LISTEN_AGAIN;
  complain(server, "no connection can be accepted: this process has no file descriptor left (ulimit -n)");
  return -1;
}

/* As many as ACCEPTED_AT_ONCE: others have to be served in between. A stranger may have to make room for each. */
static flow_status accept_some(flow_server *server)
{
  int descriptor;
  for (int i = 0; i < ACCEPTED_AT_ONCE && (descriptor = accept_next(server)) >= 0; i++) {
    flow_caller caller = { .host = flow_host_of_peer(descriptor), .since = flow_opening_now() };
    caller.known = flow_callers_know(&server->callers, &caller.host);
    int place = find_superfluous(server, &caller);
    if (place >= 0) drop(server, place);
    FLOW_TRY(add(server, descriptor, &caller));
  }
  return FLOW_OK;
}

/* ---- messages ------------------------------------------------------------------------------------------------------------------------ */

/* The next peer that has a message, or, if the caller knows it, is lost: in turns. Strangers that are lost are dropped on the way. */
static peer *find_event(flow_server *server)
{
  for (int i = server->count - 1; i >= 0; i--) {
    if (server->peers[i].lost && !server->peers[i].said) drop(server, i);
  }
  for (int k = 0; k < server->count; k++) {
    peer *p = &server->peers[(server->turn + k) % server->count];
    if (!p->lost && !p->channel->complete) continue;
    server->turn = (server->turn + k + 1) % server->count;
    return p;
  }
  return NULL;
}

/* Waits until something can be done, at most until then, and does it for every peer. Only memory and interrupts are failures of the
 * call; what fails with a peer makes it a lost one. */
static flow_status poll_all(flow_server *server, double until)
{
  FLOW_TRY(flow_grow(&server->polled, sizeof(struct pollfd), server->count + 1, &server->polled_capacity));
  int count = server->count, listens = flow_opening_now() >= server->listen_after;
  server->polled[0] = (struct pollfd){ .fd = listens ? server->listener : -1, .events = POLLIN };
  for (int i = 0; i < count; i++) {
    const flow_channel *channel = server->peers[i].channel;
    server->polled[i + 1] = (struct pollfd){ .fd = channel->link->descriptor, .events = flow_channel_events(channel) };
  }
  double next = listens ? until : fmin(until, server->listen_after);
  FLOW_TRY(flow_opening_wait(server->context, server->polled, count + 1, next, 0));
  for (int i = 0; i < count; i++) {
    peer *p = &server->peers[i];
    if (!server->polled[i + 1].revents) continue;
    flow_status status = flow_channel_advance(p->channel, &server->opening.secret);
    if (status == FLOW_OUT_OF_MEMORY) return status;
    if (status == FLOW_OK) continue;
    if (status != FLOW_IO_ERROR) complain_of(server, p);
    lose(p);
  }
  if (server->polled[0].revents) FLOW_TRY(accept_some(server));
  drop_late_strangers(server);
  return FLOW_OK;
}

/* *out is valid until the next flow_server_next: text and bytes are the channel's. */
static void give(flow_server *server, peer *p, flow_server_event *out)
{
  *out = (flow_server_event){ .peer = p->number, .left = p->lost, .text = p->lost ? p->why : (const char *)p->channel->text,
                              .bytes = p->lost ? NULL : p->channel->bulk, .count = p->lost ? 0 : (double)p->channel->bulk_bytes };
  if (!p->said) flow_callers_learn(&server->callers, &p->caller.host);
  p->said = 1;
  p->told = p->lost;
  server->current = p->number;
}

/* First the message before is done with; what came together with it was read already, so that its channel is advanced without a poll. */
flow_status flow_server_next(flow_server *server, double within, flow_server_event *out)
{
  FLOW_NEED(server, out);
  FLOW_TRY(flow_opening_check_own(&server->opening));
  double until = flow_opening_now() + within;
  peer *before = server->current >= 0 ? find(server, server->current) : NULL;
  server->current = -1;
  if (before && before->told) {
    drop(server, (int)(before - server->peers));
  } else if (before && !before->lost) {
    flow_channel_next(before->channel);
    /* poll tells nothing of what was read already */
    if (flow_channel_advance(before->channel, &server->opening.secret) != FLOW_OK) lose(before);
  }
  while (1) {
    peer *p = find_event(server);
    if (p) {
      give(server, p, out);
      return FLOW_OK;
    }
    if (flow_opening_now() > until) return flow_fail(FLOW_TIMED_OUT, "no message came within %g s", within);
    FLOW_TRY(poll_all(server, until));
  }
}

/* Copies what does not fit into the socket; the next poll sends the rest. It succeeds, and sends nothing, if the peer is gone. */
flow_status flow_server_reply(flow_server *server, int number, const char *text, int length, const void *const *pieces,
                              const int64_t *bytes, int count)
{
  FLOW_NEED(server);
  FLOW_TRY(flow_opening_check_own(&server->opening));
  if (length > 0) FLOW_NEED(text);
  if (count > 0) FLOW_NEED(pieces, bytes);
  const flow_pieces list = { pieces, bytes, count };
  peer *p = find(server, number);
  if (!p || p->lost) return FLOW_OK;                      /* flow_server_next tells of it */
  flow_status status = flow_channel_send(p->channel, text, (size_t)length, &list);
  if (status != FLOW_IO_ERROR) return status;
  lose(p);
  return FLOW_OK;
}

/* Opens memory that a peer offers (flow_server_link_share): from then on its values go through it. where: the text that came from the peer,
 * which is checked. */
flow_status flow_server_share(flow_server *server, int number, double bytes, const char *where)
{
  FLOW_NEED(server, where);
  peer *p = find(server, number);
  if (!p || p->lost) return FLOW_OK;
  if (!(bytes >= 0 && bytes < 0x1p53)) return flow_fail(FLOW_INVALID_ARGUMENT, "a peer offers a region of %g bytes", bytes);
  FLOW_TRY(flow_channel_open_region(p->channel, (int64_t)bytes, where));
  p->channel->streams = 1;               /* who asks for values has nothing else to do; who serves many does not wait for one */
  return FLOW_OK;
}

/* Also applies to peers that are connected already. A negative value, NaN, and 2^53 or more mean no limit. */
void flow_server_limit(flow_server *server, double bytes)
{
  if (!server) return;
  server->most = bytes >= 0 && bytes < 0x1p53 ? (int64_t)bytes : (int64_t)1 << 53;
  for (int i = 0; i < server->count; i++) server->peers[i].channel->most = server->most;
}
