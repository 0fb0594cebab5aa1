/* server_link.c: a worker's connection to one parameter server. A worker asks and waits: at most one message is under way on a link, and
 * flow_server_links_await waits for the answers of several links together, so that servers work at the same time. A server that is lost
 * cannot come back with its variables, so every failure of a connection that was known is FLOW_ABORTED, with what to do. */
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/need.h"
#include "cluster/servers/opening.h"

enum { YIELDS = 1000 };                       /* of the core to others, before the wait for a server that copies becomes a sleep */
/* Seconds. END_AFTER: a process that is to end waits this long for an answer, which may be under way, or come when others have done
 * something. */
static const double RETRY_AFTER = 0.1, GREET_WITHIN = 10, END_AFTER = 1, LOOK_EVERY = 0.25;

struct flow_server_link {
  const flow_context *context;
  flow_opening  opening;
  flow_channel *channel; /* NULL: it is not reached, and no attempt is under way */
  double greets_until;   /* of an attempt */
  unsigned attempts;
  int           awaits;                       /* an answer has not come yet */
  int           known;                        /* one has come: who is there is the server of this cluster */
  int           lends;                        /* a descriptor that the server opens, or -1 */
  char address[FLOW_ADDRESS_SIZE];
  char          name[FLOW_TASK_NAME_SIZE + FLOW_ADDRESS_SIZE];      /* "ps:0 a:2222" */
};

/* The reason is this thread's last error. A server that never answered may be another cluster's or not started, which loses no
 * variables. */
static flow_status fail_lost(const flow_server_link *link)
{
  char why[600];
  snprintf(why, sizeof why, "%s", flow_last_error());
  if (!link->known) return flow_fail(FLOW_ABORTED, "%s did not answer: %s", link->name, why);
  return flow_fail(FLOW_ABORTED, "%s was lost: %s; its variables are gone with it: start the job again, it continues from the newest "
                   "backup", link->name, why);
}

/* Begins an attempt: link->channel greets until link->greets_until. A name with several addresses gets another one at each attempt. */
static flow_status begin(flow_server_link *link)
{
  int descriptor;
  FLOW_TRY(flow_link_dial(link->address, link->attempts++, &descriptor));
  flow_opening_watch(descriptor, FLOW_OPENING_DEAD_AFTER);
  link->greets_until = flow_opening_now() + GREET_WITHIN;
  FLOW_TRY(flow_channel_new(descriptor, 1, link->opening.sealing, link->greets_until, &link->channel));
  link->channel->most = INT64_MAX;
  return FLOW_OK;
}

/* Goes on with an attempt. FLOW_IO_ERROR: nobody is there yet. FLOW_TIMED_OUT: the attempt is still under way. */
static flow_status greet(flow_server_link *link, double until)
{
  while (!flow_channel_is_open(link->channel)) {
    struct pollfd polled = { .fd = link->channel->link->descriptor, .events = flow_channel_events(link->channel) };
    FLOW_TRY(flow_opening_wait(link->context, &polled, 1, fmin(until, link->greets_until), 0));
    if (!polled.revents && flow_opening_now() < link->greets_until) return flow_fail(FLOW_TIMED_OUT, "it has not answered yet");
    if (!polled.revents) return flow_fail(FLOW_IO_ERROR, "it does not answer");
    FLOW_TRY(flow_channel_advance(link->channel, &link->opening.secret));
  }
  return FLOW_OK;
}

/* Tries until the server is there, every RETRY_AFTER seconds. Only an unreachable server is tried again: a wrong secret stays wrong.
 * FLOW_TIMED_OUT: nobody was there within this time; another call goes on trying. */
flow_status flow_server_link_reach(flow_server_link *link, double within)
{
  FLOW_NEED(link);
  FLOW_TRY(flow_opening_check_own(&link->opening));
  double until = flow_opening_now() + within;
  while (1) {
    flow_status status = link->channel ? FLOW_OK : begin(link);
    if (status == FLOW_OK) status = greet(link, until);
    if (status == FLOW_OK) return FLOW_OK;
    if (status == FLOW_TIMED_OUT) return flow_fail_prefix(status, "%s: ", link->name);
    flow_channel_release(link->channel);
    link->channel = NULL;
    if (status == FLOW_INTERRUPTED || status == FLOW_OUT_OF_MEMORY) return status;
    if (status != FLOW_IO_ERROR) return flow_fail_prefix(status, "%s: ", link->name);
    if (flow_opening_now() > until) return flow_fail_prefix(FLOW_TIMED_OUT, "%s: ", link->name);
    FLOW_TRY(flow_opening_wait(link->context, NULL, 0, flow_opening_now() + RETRY_AFTER, 0));
  }
}

/* Connects nothing yet. index: of the parameter server. context: whose interrupts and preemption end waits; it outlives the link. *out: for
 * flow_server_link_close. */
flow_status flow_server_link_open(const flow_context *context, const flow_cluster *cluster, int index, flow_server_link **out)
{
  FLOW_NEED(context, cluster, out);
  void *block;
  char name[FLOW_TASK_NAME_SIZE];
  const char *address = cluster ? flow_cluster_address(cluster, FLOW_JOB_PS, index) : NULL;
  *out = NULL;
  if (!address) return flow_fail(FLOW_INVALID_ARGUMENT, "the cluster has no ps:%d with an address", index);
  FLOW_TRY(flow_alloc_zero(sizeof(flow_server_link), &block));
  flow_server_link *link = block;
  link->context = context;
  link->lends = -1;
  snprintf(link->address, sizeof link->address, "%s", address);
  snprintf(link->name, sizeof link->name, "%s %s", flow_task_name(FLOW_JOB_PS, index, name), address);
  flow_status status = flow_opening_read(cluster, &link->opening);
  if (status == FLOW_OK) *out = link;
  else flow_server_link_close(link);
  return status;
}

/* The server has opened the memory, or never will: the descriptor by which it could is closed. */
static void end_lending(flow_server_link *link)
{
  if (link->lends >= 0) close(link->lends);
  link->lends = -1;
}

void flow_server_link_close(flow_server_link *link)
{
  if (!link) return;
  end_lending(link);
  flow_channel_release(link->channel);
  flow_secret_clear(&link->opening.secret);
  flow_free(link);
}

/* For calls that need the connection. */
static flow_status check_reached(const flow_server_link *link)
{
  FLOW_TRY(flow_opening_check_own(&link->opening));
  return link->channel ? FLOW_OK : flow_fail(FLOW_INVALID_STATE, "%s was not reached yet", link->name);
}

/* The descriptor stays open until the next answer: by then the server has opened the memory, or refused. Makes memory that the server can
 * open, for values on their way, and writes into `where` how: the caller sends that text. bytes 0: from now on values go through the
 * connection. FLOW_UNSUPPORTED: this system does not share memory; the link goes on without. */
flow_status flow_server_link_share(flow_server_link *link, double bytes, char *where, int size)
{
  FLOW_NEED(link);
  FLOW_TRY(check_reached(link));
  if (bytes == 0) {
    flow_channel_leave_region(link->channel);
    return FLOW_OK;
  }
  if (!(bytes > 0 && bytes < 9e15)) return flow_fail(FLOW_INVALID_ARGUMENT, "%g bytes of memory cannot be shared", bytes);
  return flow_channel_make_region(link->channel, (int64_t)bytes, where, (size_t)size, &link->lends);
}

/* One message; flow_server_links_await has to follow before the next one. Pieces are copied or on their way when this returns (channel.h).
 * */
flow_status flow_server_link_send(flow_server_link *link, const char *text, int length, const void *const *pieces, const int64_t *bytes,
                                  int count)
{
  FLOW_NEED(link);
  if (length > 0) FLOW_NEED(text);
  if (count > 0) FLOW_NEED(pieces, bytes);
  const flow_pieces list = { pieces, bytes, count };
  FLOW_TRY(check_reached(link));
  if (link->awaits) return flow_fail(FLOW_INVALID_STATE, "%s has not answered the message before", link->name);
  flow_places into = link->channel->into;
  flow_channel_next(link->channel);
  flow_channel_expect(link->channel, &into);
  flow_status status = flow_channel_send(link->channel, text, (size_t)length, &list);
  link->awaits = status == FLOW_OK;
  return status == FLOW_IO_ERROR ? fail_lost(link) : status;
}

/* Where the next answer's bytes go, if there are exactly as many. at stays valid until that answer. */
flow_status flow_server_link_expect(flow_server_link *link, char *const *at, const int64_t *bytes, int count)
{
  FLOW_NEED(link);
  if (count > 0) FLOW_NEED(at, bytes);
  const flow_places places = { at, bytes, count };
  FLOW_TRY(check_reached(link));
  if (link->awaits) return flow_fail(FLOW_INVALID_STATE, "%s has not answered the message before", link->name);
  flow_channel_expect(link->channel, &places);
  return FLOW_OK;
}

/* The links whose answers are missing, to poll for. */
static int list_missing(flow_server_link *const *links, int count, flow_server_link **missing, struct pollfd *list)
{
  int found = 0;
  for (int i = 0; i < count; i++) {
    const flow_channel *channel = links[i]->channel;
    if (channel->complete) continue;
    list[found] = (struct pollfd){ .fd = channel->link->descriptor, .events = flow_channel_events(channel) };
    missing[found++] = links[i];
  }
  return found;
}

/* Lets one link take what there is. any: something came. */
static flow_status advance(flow_server_link *link, const struct pollfd *polled, int *any)
{
  const int64_t before = link->channel->received;
  if (!polled->revents && !flow_channel_is_streaming(link->channel)) return FLOW_OK;
  flow_status status = flow_channel_advance(link->channel, &link->opening.secret);
  if (status == FLOW_IO_ERROR || status == FLOW_CORRUPT_DATA) return fail_lost(link);
  *any |= polled->revents || link->channel->received > before;
  return status;
}

/* How long to wait for the sockets while values come through memory, which wakes nobody: not at all, and a little when they have stopped
 * for a while, since the server then has not got a core. */
static double look_again(int turns_without)
{
  if (turns_without == 0) return flow_opening_now();
  if (turns_without < YIELDS) sched_yield();
  return flow_opening_now() + (turns_without < YIELDS ? 0 : 1e-3);
}

/* What ends a wait in which nothing has come. missing: one of those, to name it. */
static flow_status check_wait(const flow_server_link *missing, double within, double until, double heard)
{
  const double now = flow_opening_now();
  if (missing->context && flow_preempted(missing->context) && now - heard > END_AFTER) {
    return flow_fail(FLOW_INTERRUPTED, "this process is to end and waits for %s no more", missing->name);
  }
  return now < until ? FLOW_OK : flow_fail(FLOW_TIMED_OUT, "%s has not answered for %g s", missing->name, within);
}

/* missing, list: room for `count` entries. While values are streamed through memory the sockets are polled without sleeping. */
static flow_status await_all(flow_server_link *const *links, int count, double within, flow_server_link **missing, struct pollfd *list)
{
  int left, turns_without = 0;
  double heard = flow_opening_now(), until = heard + within;
  while ((left = list_missing(links, count, missing, list)) > 0) {
    int any = 0, streams = 0;
    for (int i = 0; i < left; i++) streams |= flow_channel_is_streaming(missing[i]->channel);
    double next = streams ? look_again(turns_without) : flow_opening_now() + LOOK_EVERY;
    FLOW_TRY(flow_opening_wait(links[0]->context, list, left, fmin(until, next), 1));
    for (int i = 0; i < left; i++) FLOW_TRY(advance(missing[i], &list[i], &any));
    turns_without = any ? 0 : turns_without + 1;
    if (any) heard = flow_opening_now();
    else FLOW_TRY(check_wait(missing[0], within, until, heard));
  }
  return FLOW_OK;
}

/* All answers, or a failure after which some of the links have theirs and the others still wait. */
flow_status flow_server_links_await(flow_server_link *const *links, int count, double within)
{
  if (count > 0) FLOW_NEED(links);
  void *block;
  size_t bytes;
  for (int i = 0; i < count; i++) {
    FLOW_NEED(links[i]);
    FLOW_TRY(flow_opening_check_own(&links[i]->opening));
    if (!links[i]->awaits) return flow_fail(FLOW_INVALID_STATE, "%s was not asked anything", links[i]->name);
  }
  FLOW_TRY(flow_multiply((size_t)(count > 0 ? count : 0), sizeof(void *) + sizeof(struct pollfd), &bytes));
  FLOW_TRY(flow_alloc(bytes, &block));
  flow_status status = await_all(links, count, within, block, (struct pollfd *)((flow_server_link **)block + count));
  flow_free(block);
  for (int i = 0; i < count && status == FLOW_OK; i++) {
    links[i]->awaits = 0;
    links[i]->known = 1;
    flow_channel_expect(links[i]->channel, &(flow_places){ .count = 0 });
    end_lending(links[i]);
  }
  return status;
}

/* Borrowed until the next message on this link. *bytes is NULL where they went to places that were expected. */
const char *flow_server_link_answer(const flow_server_link *link, char **bytes, double *count)
{
  if (!link || !bytes || !count) return NULL;
  *bytes = link->channel->bulk;
  *count = (double)link->channel->bulk_bytes;
  return link->channel->text ? (const char *)link->channel->text : "";
}
