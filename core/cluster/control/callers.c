/* callers.c: connections that were accepted before it is known which task they come from. */
#define _GNU_SOURCE                /* accept4 */
#include "cluster/control/callers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/memory.h"

/* As ::ffff:a.b.c.d (RFC 4291, section 2.5.5.2), so that a host has one form over both protocols. */
static flow_host map_ipv4(const struct in_addr *address)
{
  flow_host host = { { 0 } };
  host.bytes[10] = host.bytes[11] = 0xff;
  memcpy(host.bytes + 12, address, 4);
  return host;
}

/* All zeros where the peer has gone already: such callers count as one host. */
flow_host flow_host_of_peer(int descriptor)
{
  struct sockaddr_storage peer;
  socklen_t size = sizeof peer;
  flow_host host = { { 0 } };
  if (getpeername(descriptor, (struct sockaddr *)&peer, &size) != 0) return host;
  if (peer.ss_family == AF_INET) return map_ipv4(&((const struct sockaddr_in *)(const void *)&peer)->sin_addr);
  if (peer.ss_family == AF_INET6) memcpy(host.bytes, &((const struct sockaddr_in6 *)(const void *)&peer)->sin6_addr, sizeof host.bytes);
  return host;
}

const char *flow_host_text(const flow_host *host, char text[FLOW_HOST_TEXT])
{
  static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
  int is_ipv4 = memcmp(host->bytes, mapped, sizeof mapped) == 0;
  if (!inet_ntop(is_ipv4 ? AF_INET : AF_INET6, host->bytes + (is_ipv4 ? 12 : 0), text, FLOW_HOST_TEXT)) text[0] = '\0';
  return text;
}

/* ---- known hosts --------------------------------------------------------------------------------------------------------------------- */

static int compare(const flow_host *a, const flow_host *b) { return memcmp(a->bytes, b->bytes, sizeof a->bytes); }

/* The place of a host among the sorted ones, or where it belongs. */
static int find_place(const flow_callers *self, const flow_host *host)
{
  int low = 0, high = self->host_count;
  while (low < high) {
    int middle = low + (high - low) / 2;
    if (compare(&self->hosts[middle], host) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

int flow_callers_know(const flow_callers *self, const flow_host *host)
{
  int place = find_place(self, host);
  return place < self->host_count && compare(&self->hosts[place], host) == 0;
}

/* Keeps the list sorted and bounded: a caller that has the secret could otherwise make it grow. */
static flow_status add_host(flow_callers *self, const flow_host *host)
{
  if (flow_callers_know(self, host) || self->host_count >= FLOW_MOST_TASKS) return FLOW_OK;
  FLOW_TRY(flow_grow(&self->hosts, sizeof *self->hosts, self->host_count + 1, &self->host_capacity));
  int place = find_place(self, host);
  memmove(self->hosts + place + 1, self->hosts + place, (size_t)(self->host_count - place) * sizeof *self->hosts);
  self->hosts[place] = *host;
  self->host_count++;
  return FLOW_OK;
}

/* Without memory the host stays a stranger, which only costs it its place in the room of the known ones. */
void flow_callers_learn(flow_callers *self, const flow_host *host) { (void)add_host(self, host); }

/* Of a canonical address; 0: it is a name. */
static int read_host(const char *address, flow_host *host)
{
  char text[FLOW_ADDRESS_SIZE];
  struct in_addr number;
  int bracket = address[0] == '[', length = (int)(strrchr(address, ':') - address);
  snprintf(text, sizeof text, "%.*s", length - 2 * bracket, address + bracket);
  if (bracket) return inet_pton(AF_INET6, text, host->bytes) == 1;
  if (inet_pton(AF_INET, text, &number) != 1) return 0;
  *host = map_ipv4(&number);
  return 1;
}

/* Hosts whose addresses the cluster gives as numbers are known from the start; those given by name become known when a task has said who it
 * is. The room grows with the cluster, since all tasks may call at once after a restart. */
flow_status flow_callers_init(const flow_cluster *cluster, flow_callers *out)
{
  int tasks = 0;
  *out = (flow_callers){ .host_count = 0 };
  for (int job = 0; job < FLOW_JOB_COUNT; job++) {
    for (int i = 0; i < cluster->count[job]; i++) {
      flow_host host;
      const char *address = flow_cluster_address(cluster, job, i);
      tasks++;
      if (address && read_host(address, &host)) FLOW_TRY(add_host(out, &host));
    }
  }
  out->room = FLOW_CALLERS_LEAST + 4 * tasks;
  return FLOW_OK;
}

void flow_callers_clear(flow_callers *self)
{
  flow_free(self->hosts);
  *self = (flow_callers){ .host_count = 0 };
}

/* ---- room ---------------------------------------------------------------------------------------------------------------------------- */

/* Two rules, in this order: an address with half of a room gives its own oldest caller; a full room gives the oldest of all in it. */
int flow_callers_choose(const flow_callers *self, const flow_caller *const *callers, int count, const flow_caller *comes)
{
  int same = 0, all = 0, oldest = -1, oldest_same = -1;
  for (int i = 0; i < count; i++) {
    if (comes && compare(&callers[i]->host, &comes->host) == 0) {
      same++;
      if (oldest_same < 0 || callers[i]->since < callers[oldest_same]->since) oldest_same = i;
    }
    if (comes && callers[i]->known != comes->known) continue;
    all++;
    if (oldest < 0 || callers[i]->since < callers[oldest]->since) oldest = i;
  }
  if (same >= self->room / 2) return oldest_same;
  return !comes || all >= self->room ? oldest : -1;
}

/* A connection that was reset before it was accepted is skipped, up to MOST_GONE in a row. */
int flow_callers_accept(int listener, int *full)
{
  enum { MOST_GONE = 64 };                                /* that called and are gone again */
  *full = 0;
  for (int i = 0; i < MOST_GONE; i++) {
    int descriptor = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (descriptor >= 0 || errno == EAGAIN || errno == EWOULDBLOCK) return descriptor;
    *full = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
    if (*full) return -1;
  }
  return -1;
}
