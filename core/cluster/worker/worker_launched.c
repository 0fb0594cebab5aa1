/* worker_launched.c: a cluster of which only a launcher knows where its processes are. MPI, which finds them, brings everybody's address
 * and a secret of this run to all; from then on it is a cluster like any other. Each process binds its port first and says then which
 * one it is, so that no other process can take it meanwhile.
 *
 * The calls of MPI here are collective: what a process does by itself between two of them may fail, and all agree on it before the next.
 * Else the others would wait in it for a process that does not come. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/entropy.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/plugin.h"
#include "cluster/worker/worker_state.h"

/* ---- this machine -------------------------------------------------------------------------------------------------------------------- */

/* A number that is the same in processes that reach each other at 127.0.0.1: of the running system and its network namespace. */
static uint64_t machine_number(void)
{
  char text[256] = "";
  uint64_t hash = FLOW_HASH_BEGIN;
  int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  ssize_t count = file >= 0 ? read(file, text, sizeof text) : -1;
  if (file >= 0) close(file);
  if (count <= 0 && gethostname(text, sizeof text - 1) == 0) count = (ssize_t)strlen(text);
  hash = flow_hash(hash, text, count > 0 ? (size_t)count : 0);
  count = readlink("/proc/self/ns/net", text, sizeof text);
  return flow_hash(hash, text, count > 0 ? (size_t)count : 0);
}

/* Whether others could reach that IPv4 address. */
static int is_routable(const struct sockaddr *address)
{
  if (address->sa_family != AF_INET) return 0;
  uint32_t number = ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr);
  return number >> 24 != 127 && number >> 16 != 0xa9fe && number != 0;           /* not loopback, 169.254.0.0/16, 0.0.0.0 */
}

static void write_address(const struct sockaddr *address, char host[INET_ADDRSTRLEN])
{
  inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)address)->sin_addr, host, INET_ADDRSTRLEN);
}

/* The first routable address of a name; none: host stays empty. */
static void look_up(const char *name, char host[INET_ADDRSTRLEN])
{
  struct addrinfo wanted = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM }, *list = NULL;
  if (!name[0] || getaddrinfo(name, NULL, &wanted, &list) != 0) return;
  for (const struct addrinfo *at = list; at && !host[0]; at = at->ai_next) {
    if (is_routable(at->ai_addr)) write_address(at->ai_addr, host);
  }
  freeaddrinfo(list);
}

/* The address of an interface that is up; name "": of the first one. None: host stays empty. */
static void look_at_interfaces(const char *name, char host[INET_ADDRSTRLEN])
{
  struct ifaddrs *interfaces = NULL;
  if (getifaddrs(&interfaces) != 0) return;
  for (const struct ifaddrs *at = interfaces; at && !host[0]; at = at->ifa_next) {
    if (!at->ifa_addr || !(at->ifa_flags & IFF_UP) || !is_routable(at->ifa_addr)) continue;
    if (!name[0] || strcmp(at->ifa_name, name) == 0) write_address(at->ifa_addr, host);
  }
  freeifaddrs(interfaces);
}

/* The interface that has the default route: bridges of containers and the like have none. */
static void find_default_interface(char name[IF_NAMESIZE])
{
  char line[256];
  unsigned destination;
  FILE *routes = fopen("/proc/net/route", "re");
  name[0] = '\0';
  while (routes && !name[0] && fgets(line, sizeof line, routes)) {
    if (sscanf(line, "%15s %x", name, &destination) != 2 || destination != 0) name[0] = '\0';
  }
  if (routes) fclose(routes);
}

/* The IPv4 address that other machines reach this one at: what FLOW_HOST says, an address, a name or an interface; else that of the host's
 * name, of the interface with the default route, or of the first one that is up. */
static flow_status find_host(char host[INET_ADDRSTRLEN])
{
  char name[256] = "", interface[IF_NAMESIZE];
  const char *given = getenv("FLOW_HOST");
  host[0] = '\0';
  if (given && *given) {
    look_at_interfaces(given, host);
    if (!host[0]) look_up(given, host);
    if (host[0]) return FLOW_OK;
    return flow_fail(FLOW_INVALID_ARGUMENT, "FLOW_HOST is \"%.100s\", which is neither an interface of this machine that has an IPv4 "
                     "address nor a name or address that others could reach", given);
  }
  if (gethostname(name, sizeof name - 1) == 0) look_up(name, host);
  find_default_interface(interface);
  if (!host[0] && interface[0]) look_at_interfaces(interface, host);
  if (!host[0]) look_at_interfaces("", host);
  if (host[0]) return FLOW_OK;
  return flow_fail(FLOW_IO_ERROR, "the workers are on several machines, and %s has no IPv4 address that others could reach", name);
}

/* A listening socket on any free port of that host. After a failure the socket may be open; flow_worker_close closes it. */
static flow_status bind_listener(const char *host, int *listener, int *port)
{
  struct sockaddr_in address = { .sin_family = AF_INET };
  socklen_t size = sizeof address;
  inet_pton(AF_INET, host, &address.sin_addr);
  *listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (*listener < 0 || bind(*listener, (struct sockaddr *)&address, size) != 0 || listen(*listener, INT_MAX) != 0 ||
      getsockname(*listener, (struct sockaddr *)&address, &size) != 0) {
    return flow_fail(FLOW_IO_ERROR, "this process cannot listen on %s: %s", host, strerror(errno));
  }
  *port = ntohs(address.sin_port);
  return FLOW_OK;
}

/* ---- all together -------------------------------------------------------------------------------------------------------------------- */

static flow_status open_mpi(flow_worker *worker, double start_within)
{
  const flow_transport_options options = { .timeout = start_within };
  FLOW_TRY(flow_communicator_open("mpi", worker->exchange.worker, worker->exchange.workers, &options, &worker->communicator));
  worker->communicator->timeout = worker->timeout;
  return FLOW_OK;
}

/* Learns whether each process has done what it had to do by itself, of which `status` is the outcome here; all call it at the same place.
 * A process that has failed has told why in its own error, which it returns. The number is on the stack: telling takes no memory. */
static flow_status agree(flow_worker *worker, flow_status status)
{
  double failed = status != FLOW_OK;
  if (status != FLOW_OK) flow_log(FLOW_LOG_WARNING, flow_last_error());
  flow_status told = flow_communicator_all_reduce(worker->communicator, FLOW_FLOAT64, &failed, 1);
  if (status != FLOW_OK || told != FLOW_OK) return status != FLOW_OK ? status : told;
  if (failed == 0) return FLOW_OK;
  return flow_fail(FLOW_IO_ERROR, "%.0f of the %d processes could not begin; their own messages say why", failed, worker->exchange.workers);
}

/* 127.0.0.1 if all workers are on one machine and nobody has chosen, else an address of this one. */
static flow_status choose_host(flow_worker *worker, uint64_t *machines, char host[INET_ADDRSTRLEN])
{
  uint64_t mine = machine_number();
  int same = 1;
  FLOW_TRY(flow_communicator_all_gather(worker->communicator, &mine, sizeof mine, machines));
  for (int rank = 0; rank < worker->exchange.workers; rank++) same &= machines[rank] == mine;
  const char *given = getenv("FLOW_HOST");
  if (!same || (given && *given)) return find_host(host);
  snprintf(host, INET_ADDRSTRLEN, "127.0.0.1");
  return FLOW_OK;
}

/* Replaces the cluster by one with everybody's address. */
static flow_status take_addresses(flow_worker *worker, const char *addresses)
{
  flow_cluster *cluster;
  FLOW_TRY(flow_cluster_new(worker->cluster->source, &cluster));
  flow_status status = FLOW_OK;
  for (int rank = 0; rank < worker->exchange.workers && status == FLOW_OK; rank++) {
    status = flow_cluster_add(cluster, FLOW_JOB_WORKER, addresses + rank * FLOW_ADDRESS_SIZE);
  }
  cluster->job = worker->cluster->job;
  cluster->index = worker->cluster->index;
  if (status == FLOW_OK) status = flow_cluster_check(cluster);
  flow_cluster_release(status == FLOW_OK ? worker->cluster : cluster);
  if (status == FLOW_OK) worker->cluster = cluster;
  return status;
}

/* block: memory for an address of each worker, used for the numbers of the machines first. */
static flow_status exchange_addresses(flow_worker *worker, void *block)
{
  char host[INET_ADDRSTRLEN], mine[FLOW_ADDRESS_SIZE] = "";
  int port = 0;
  flow_status status = choose_host(worker, block, host);
  if (status == FLOW_OK) status = bind_listener(host, &worker->listener, &port);
  if (status == FLOW_OK) snprintf(mine, sizeof mine, "%s:%d", host, port);
  snprintf(worker->descriptor, sizeof worker->descriptor, "%d", worker->listener);
  FLOW_TRY(agree(worker, status));
  FLOW_TRY(flow_communicator_all_gather(worker->communicator, mine, sizeof mine, block));
  return agree(worker, take_addresses(worker, block));
}

/* 32 random bytes as hexadecimal digits; an empty text if there is no plugin that could seal with them. */
static flow_status make_secret(char *secret)
{
  const flow_plugin *plugin;
  uint8_t bytes[(FLOW_HEX_SECRET - 1) / 2];
  if (flow_plugin_open("control", &plugin) != FLOW_OK) return FLOW_OK;
  FLOW_TRY(flow_entropy_take(bytes, sizeof bytes));
  for (size_t i = 0; i < sizeof bytes; i++) snprintf(secret + 2 * i, 3, "%02x", bytes[i]);
  explicit_bzero(bytes, sizeof bytes);
  return FLOW_OK;
}

/* All get the one that rank 0 makes. */
static flow_status share_secret(flow_worker *worker)
{
  FLOW_TRY(agree(worker, worker->exchange.worker == 0 ? make_secret(worker->secret) : FLOW_OK));
  return flow_communicator_broadcast(worker->communicator, 0, worker->secret, sizeof worker->secret);
}

/* The order: MPI, addresses, then the secret, which protects the control plane that is opened next. */
flow_status flow_worker_meet_by_launcher(flow_worker *worker, double start_within)
{
  void *block = NULL;
  FLOW_TRY(open_mpi(worker, start_within));
  flow_status status = agree(worker, flow_alloc_zero((size_t)worker->exchange.workers * FLOW_ADDRESS_SIZE, &block));
  if (status == FLOW_OK) status = exchange_addresses(worker, block);
  flow_free(block);
  return status == FLOW_OK ? share_secret(worker) : status;
}
