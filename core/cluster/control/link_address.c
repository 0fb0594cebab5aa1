/* link_address.c: from an address of the cluster to a socket that listens there, or dials it. */
#define _GNU_SOURCE                /* SOCK_NONBLOCK */
#include "cluster/control/link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/futex.h"
#include "cluster/control/port_owner.h"

/* *out: the addresses that a canonical address stands for, for freeaddrinfo. */
static flow_status resolve(const char *address, int flags, struct addrinfo **out)
{
  char host[FLOW_ADDRESS_SIZE];
  const char *colon = strrchr(address, ':');
  if (!colon) return flow_fail(FLOW_INVALID_ARGUMENT, "the address \"%s\" has no port: write host:port", address);
  int bracket = address[0] == '[';
  snprintf(host, sizeof host, "%.*s", (int)(colon - address) - 2 * bracket, address + bracket);
  struct addrinfo wanted = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV };
  int error = getaddrinfo(host, colon + 1, &wanted, out);
  if (error == 0) return FLOW_OK;
  return flow_fail(FLOW_IO_ERROR, "the name of %s is not known: %s", address, gai_strerror(error));
}

/* Orchestrators publish the name of a task when it runs, or a little later, and name servers come up with the machine. Looks twice a
 * second, and says so every TELL_EVERY nanoseconds. */
flow_status flow_link_await_name(const flow_context *context, const char *address, double within,
                                 void (*log)(void *state, const char *text), void *state)
{
  static const int64_t TELL_EVERY = 5000000000;
  enum { LOOK_EVERY = 500 }; /* milliseconds */
  char text[400];
  int64_t since = flow_now_nanoseconds(), next = since;
  struct addrinfo *list;
  while (resolve(address, AI_PASSIVE, &list) != FLOW_OK) {
    int64_t now = flow_now_nanoseconds();
    if (context && (flow_interrupted(context) || flow_preempted(context))) {
      return flow_fail(FLOW_INTERRUPTED, "interrupted while it waited for the name of %s", address);
    }
    if (1e-9 * (double)(now - since) >= within) {
      return flow_fail_prefix(FLOW_IO_ERROR, "this process has waited %g s for its own name: ", within);
    }
    if (now >= next) {
      snprintf(text, sizeof text, "waits for its own name: %.300s", flow_last_error());
      log(state, text);
      next = now + TELL_EVERY;
    }
    poll(NULL, 0, LOOK_EVERY);
  }
  freeaddrinfo(list);
  return FLOW_OK;
}

/* A socket that does not block and that children do not inherit; messages are small and wait for answers, so that Nagle's algorithm
 * would only delay them. -1: errno says why. */
static int new_socket(const struct addrinfo *info)
{
  int descriptor = socket(info->ai_family, info->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, info->ai_protocol), on = 1;
  if (descriptor >= 0) setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return descriptor;
}

/* The commonest mistake is a process that was not ended, so the message names who has the port. */
static flow_status fail_listen(const char *address, int error)
{
  char owner[300];
  const char *what = error == EADDRNOTAVAIL ? "that is not an address of this machine: is this the right task?" : strerror(error);
  if (error != EADDRINUSE) return flow_fail(FLOW_IO_ERROR, "this process cannot listen on %s: %s", address, what);
  int known = flow_port_owner(atoi(strrchr(address, ':') + 1), owner, sizeof owner);
  return flow_fail(FLOW_IO_ERROR, "this process cannot listen on %s: another process has that port%s%s; end it, or take another port "
                   "in all tasks", address, known ? ": " : "", known ? owner : "");
}

/* Tries the addresses of the name in the system's order until one can be bound. SO_REUSEADDR: a port whose last connections are in
 * TIME_WAIT can be taken again at once by a task that is restarted. */
flow_status flow_link_listen(const char *address, int *descriptor)
{
  struct addrinfo *list;
  FLOW_TRY(resolve(address, AI_PASSIVE, &list));
  int on = 1, error = 0;
  *descriptor = -1;
  /* As many may wait as the machine lets: musl's SOMAXCONN is 128, which a flood fills. */
  for (const struct addrinfo *info = list; info && *descriptor < 0; info = info->ai_next) {
    int made = new_socket(info);
    if (made >= 0) setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (made >= 0 && bind(made, info->ai_addr, info->ai_addrlen) == 0 && listen(made, INT_MAX) == 0) *descriptor = made;
    else error = errno;
    if (*descriptor < 0 && made >= 0) close(made);
  }
  freeaddrinfo(list);
  if (*descriptor >= 0) return FLOW_OK;
  return fail_listen(address, error);
}

int flow_link_is_loopback(int listener, char text[FLOW_HOST_TEXT])
{
  struct sockaddr_storage bound = { 0 };
  socklen_t length = sizeof bound;
  const struct in_addr *four = &((const struct sockaddr_in *)&bound)->sin_addr;
  const struct in6_addr *six = &((const struct sockaddr_in6 *)&bound)->sin6_addr;
  getsockname(listener, (struct sockaddr *)&bound, &length);
  if (bound.ss_family == AF_INET6) return inet_ntop(AF_INET6, six, text, FLOW_HOST_TEXT) && IN6_IS_ADDR_LOOPBACK(six);
  return inet_ntop(AF_INET, four, text, FLOW_HOST_TEXT) && ntohl(four->s_addr) >> 24 == 127;
}

int flow_link_count_addresses(const char *address)
{
  struct addrinfo *list;
  int count = 0;
  if (resolve(address, AI_PASSIVE, &list) != FLOW_OK) return 0;
  for (const struct addrinfo *info = list; info; info = info->ai_next) count++;
  freeaddrinfo(list);
  return count;
}

/* Whether this is a socket that listens on that port. */
static int listens_on(int descriptor, int port)
{
  struct sockaddr_storage bound;
  int listening = 0, found = -1;
  socklen_t size = sizeof listening, length = sizeof bound;
  if (getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) != 0 || !listening) return 0;
  if (getsockname(descriptor, (struct sockaddr *)&bound, &length) != 0) return 0;
  if (bound.ss_family == AF_INET) found = ntohs(((const struct sockaddr_in *)&bound)->sin_port);
  if (bound.ss_family == AF_INET6) found = ntohs(((const struct sockaddr_in6 *)&bound)->sin6_port);
  return found == port;
}

/* *descriptor -1 with FLOW_OK: no launcher has bound a socket to this port. The descriptor is duplicated, so that closing the link's
 * listener leaves the launcher's number alone, and both are closed on exec: children of the program must not keep the port. */
flow_status flow_link_inherit(const char *number, const char *address, int *descriptor)
{
  *descriptor = -1;
  if (!number || !*number) return FLOW_OK;
  int given = flow_parse_number(number, INT_MAX);
  if (given < 0) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "FLOW_LISTEN_DESCRIPTOR is \"%.40s\", it should be the number of a descriptor", number);
  }
  if (!listens_on(given, atoi(strrchr(address, ':') + 1))) return FLOW_OK;
  *descriptor = fcntl(given, F_DUPFD_CLOEXEC, 0);
  if (*descriptor < 0 || fcntl(given, F_SETFD, FD_CLOEXEC) < 0 || fcntl(given, F_SETFL, fcntl(given, F_GETFL) | O_NONBLOCK) < 0) {
    return flow_fail(FLOW_IO_ERROR, "FLOW_LISTEN_DESCRIPTOR %d cannot be used: %s", given, strerror(errno));
  }
  return FLOW_OK;
}

/* Attempts take the addresses of a name in turn, one each, since waiting for one that does not answer would take the time of the others.
 * The connection is still being made when this returns. */
flow_status flow_link_dial(const char *address, unsigned attempt, int *descriptor)
{
  struct addrinfo *list;
  FLOW_TRY(resolve(address, 0, &list));
  unsigned count = 0;
  for (const struct addrinfo *info = list; info; info = info->ai_next) count++;
  const struct addrinfo *info = list;
  for (unsigned i = attempt % count; i > 0; i--) info = info->ai_next;
  *descriptor = new_socket(info);
  int error = 0;
  if (*descriptor < 0 || (connect(*descriptor, info->ai_addr, info->ai_addrlen) != 0 && errno != EINPROGRESS)) error = errno;
  freeaddrinfo(list);
  if (error == 0) return FLOW_OK;
  if (*descriptor >= 0) close(*descriptor);
  return flow_fail(FLOW_IO_ERROR, "%s", strerror(error));
}
