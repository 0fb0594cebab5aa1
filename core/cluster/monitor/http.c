/* http.c: see http.h. One thread polls the listener, an eventfd that ends it, and at most FLOW_HTTP_MOST_CONNECTIONS connections. A
 * connection reads until an empty line, is answered, and closed; there is no state between requests. Everything has a limit that is
 * fixed when the server is opened, so that strangers cannot make it take memory, descriptors or, for longer than a moment, time of a
 * core. */
#define _GNU_SOURCE                /* accept4, ppoll */
#include "cluster/monitor/http.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/futex.h"
#include "base/memory.h"
#include "base/thread.h"
#include "cluster/control/link.h"
#include "cluster/monitor/http_host.h"

static const int64_t ANSWERED_WITHIN = 5000000000, WINDOW = 1000000000;      /* nanoseconds */

/* A connection: it reads until head_bytes is set, and sends from then on. */
typedef struct connection {
  int      descriptor;
  /* On the clock: the connection is dropped at this moment, whatever it is doing. */
  int64_t  until;
  /* request[0 .. read) has come, and a zero follows it, so that it can be searched as a text. */
  char     request[FLOW_HTTP_MOST_REQUEST + 1];
  size_t   read;
  char     head[256];
  size_t   head_bytes;             /* 0: the request is not there yet */
  char    *body;
  size_t   body_bytes, sent;       /* sent: of head and body */
} connection;

struct flow_http {
  /* `connections` and what follows is the thread's alone once it runs; the rest does not change. */
  flow_thread     thread;
  int listener, wake, port, forks; /* forks: flow_fork_generation() when it was opened */
  char           *address;         /* that it was given */
  flow_http_page *page;
  void           *state;
  connection     *connections;     /* [count], the oldest first */
  int             count;
  int64_t         window;          /* when the present second of accepting began */
  int             accepted;        /* in it */
};

/* ---- one connection ------------------------------------------------------------------------------------------------------------------ */

static void drop(flow_http *http, int place)
{
  connection *gone = &http->connections[place];
  close(gone->descriptor);
  flow_free(gone->body);
  memmove(gone, gone + 1, (size_t)(--http->count - place) * sizeof *gone);
}

/* Makes the head of an answer; body and body_bytes are set before. no-store: pages change all the time; nosniff: no browser takes texts
 * of a program for a script. The head fits: status and type are texts of this program, together less than a hundred bytes. A HEAD
 * request gets the length of the body that it does not get (RFC 1945, section 8.2). */
static void begin_answer(connection *c, const char *status, const char *type, int only_head)
{
  int length = snprintf(c->head, sizeof c->head, "HTTP/1.0 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nCache-Control: no-store\r\n"
                        "X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n", status, type, c->body_bytes);
  c->head_bytes = (size_t)length;
  if (only_head) c->body_bytes = 0;
}

static void refuse(connection *c, const char *status) { begin_answer(c, status, "text/plain", 0); }

static void refuse_host(connection *c)
{
  static const char why[] = "This server answers to addresses, to localhost and to the name of its machine: ask for it by one of them.\n";
  c->body = flow_duplicate_text(why);
  c->body_bytes = c->body ? sizeof why - 1 : 0;
  refuse(c, "403 Forbidden");
}

/* Of a whole request: its first line and Host say all that matters. The path ends at a question mark, and is cut after
 * 255 bytes: no page has such a long name. */
static void take_request(flow_http *http, connection *c)
{
  char method[8], path[256], version[16];
  const char *type = "";
  if (sscanf(c->request, "%7[A-Z] %255[^ ?\r\n]%*[^ \r\n] %15[^\r\n]", method, path, version) != 3 &&
      sscanf(c->request, "%7[A-Z] %255[^ ?\r\n] %15[^\r\n]", method, path, version) != 3) {
    refuse(c, "400 Bad Request");
  } else if (strncmp(version, "HTTP/1.", 7) != 0) {
    refuse(c, "505 HTTP Version Not Supported");
  } else if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
    refuse(c, "405 Method Not Allowed");
  } else if (!flow_http_is_own_host(c->request, http->address)) {
    refuse_host(c);
  } else {
    flow_status status = http->page(http->state, path, &type, &c->body, &c->body_bytes);
    if (status == FLOW_OK) begin_answer(c, "200 OK", type, method[0] == 'H');
    else refuse(c, status == FLOW_NOT_FOUND ? "404 Not Found" : "503 Service Unavailable");
  }
}

/* Returns 0 when the connection is to be closed. A zero byte within the request ends the search early; it is refused. */
static int take_bytes(flow_http *http, connection *c)
{
  ssize_t count = recv(c->descriptor, c->request + c->read, FLOW_HTTP_MOST_REQUEST - c->read, 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return 1;
  if (count <= 0) return 0;
  c->read += (size_t)count;
  c->request[c->read] = '\0';
  if (strstr(c->request, "\r\n\r\n") || strstr(c->request, "\n\n")) take_request(http, c);
  else if (strlen(c->request) < c->read) refuse(c, "400 Bad Request");
  else if (c->read == FLOW_HTTP_MOST_REQUEST) refuse(c, "431 Request Header Fields Too Large");
  return 1;
}

/* Sends what the socket takes; 0: all is sent, or the connection is broken. A page that the connection asked for is complete in memory,
 * so that a slow reader holds up nobody. */
static int send_some(connection *c)
{
  int in_head = c->sent < c->head_bytes;
  const char *from = in_head ? c->head + c->sent : c->body + (c->sent - c->head_bytes);
  size_t left = in_head ? c->head_bytes - c->sent : c->head_bytes + c->body_bytes - c->sent;
  ssize_t count = left > 0 ? send(c->descriptor, from, left, MSG_NOSIGNAL) : 0;
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  c->sent += (size_t)count;
  if (c->sent < c->head_bytes + c->body_bytes) return 1;
  shutdown(c->descriptor, SHUT_WR);
  return 0;
}

/* ---- the thread ---------------------------------------------------------------------------------------------------------------------- */

/* Accepts who waits, up to this second's limit; a full table drops its oldest connection. EAGAIN: the queue is empty. */
static void accept_some(flow_http *http, int64_t now)
{
  while (http->accepted < FLOW_HTTP_MOST_ACCEPTED) {
    int descriptor = accept4(http->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (descriptor < 0 && errno == EAGAIN) return;
    if (descriptor < 0) http->accepted = FLOW_HTTP_MOST_ACCEPTED;      /* no descriptors: it rests as after too many */
    if (descriptor < 0) return;
    http->accepted++;
    if (http->count == FLOW_HTTP_MOST_CONNECTIONS) drop(http, 0);
    memset(&http->connections[http->count], 0, sizeof *http->connections);
    http->connections[http->count].descriptor = descriptor;
    http->connections[http->count++].until = now + ANSWERED_WITHIN;
  }
}

static int milliseconds_until(int64_t until, int64_t now) { return until <= now ? 0 : (int)((until - now) / 1000000) + 1; }

/* Waits for something to do; -1: the server ends. events: of the connections. It sleeps until the earliest of the connections' ends, or
 * until the next second of accepting begins; without either, until something comes. */
static int wait_for_events(flow_http *http, struct pollfd *polled, int64_t now)
{
  int rests = http->accepted >= FLOW_HTTP_MOST_ACCEPTED, timeout = rests ? milliseconds_until(http->window + WINDOW, now) : -1;
  polled[0] = (struct pollfd){ .fd = http->wake, .events = POLLIN };
  polled[1] = (struct pollfd){ .fd = rests ? -1 : http->listener, .events = POLLIN };
  for (int i = 0; i < http->count; i++) {
    const connection *c = &http->connections[i];
    int left = milliseconds_until(c->until, now);
    polled[2 + i] = (struct pollfd){ .fd = c->descriptor, .events = c->head_bytes ? POLLOUT : POLLIN };
    if (timeout < 0 || left < timeout) timeout = left;
  }
  int found = poll(polled, 2 + (nfds_t)http->count, timeout);
  if (found < 0) {
    for (int i = 0; i < 2 + http->count; i++) polled[i].revents = 0;
  }
  return polled[0].revents ? -1 : 0;
}

/* The thread. Connections are looked at from the last to the first, as a dropped one moves those after it. New connections are accepted
 * last, so that `polled` has the places of all that were there before. */
static void *serve(void *argument)
{
  flow_http *http = argument;
  struct pollfd polled[2 + FLOW_HTTP_MOST_CONNECTIONS];
  for (;;) {
    int64_t now = flow_now_nanoseconds();
    if (now - http->window >= WINDOW) {
      http->window = now;
      http->accepted = 0;
    }
    if (wait_for_events(http, polled, now) < 0) return NULL;
    now = flow_now_nanoseconds();
    for (int i = http->count - 1; i >= 0; i--) {
      connection *c = &http->connections[i];
      int stays = now < c->until;
      if (stays && polled[2 + i].revents) stays = c->head_bytes ? send_some(c) : take_bytes(http, c);
      if (!stays) drop(http, i);
    }
    if (polled[1].revents) accept_some(http, now);
  }
}

/* ---- opening and closing ------------------------------------------------------------------------------------------------------------- */

/* The port that the system has chosen for a listener that asked for port 0; 0 if it cannot be told. */
static int port_of(int listener)
{
  struct sockaddr_storage bound;
  socklen_t size = sizeof bound;
  if (getsockname(listener, (struct sockaddr *)&bound, &size) != 0) return 0;
  if (bound.ss_family == AF_INET6) return ntohs(((const struct sockaddr_in6 *)&bound)->sin6_port);
  return ntohs(((const struct sockaddr_in *)&bound)->sin_port);
}

/* What is opened here is closed by flow_http_close, also after a failure half way. */
static flow_status start(flow_http *http, const char *address)
{
  void *block;
  FLOW_TRY(flow_alloc_zero(FLOW_HTTP_MOST_CONNECTIONS * sizeof *http->connections, &block));
  http->connections = block;
  http->address = flow_duplicate_text(address);
  if (!http->address) return FLOW_OUT_OF_MEMORY;
  FLOW_TRY(flow_link_listen(address, &http->listener));
  http->port = port_of(http->listener);
  http->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (http->wake < 0) return flow_fail(FLOW_IO_ERROR, "the pages of the status cannot be served: %s", strerror(errno));
  int error = flow_thread_start(&http->thread, "flow-status", serve, http);
  return error ? flow_fail(FLOW_IO_ERROR, "the pages of the status cannot be served: %s", strerror(error)) : FLOW_OK;
}

flow_status flow_http_open(const char *address, flow_http_page *page, void *state, flow_http **out)
{
  void *block;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_http), &block));
  flow_http *http = block;
  http->listener = http->wake = -1;
  http->forks = flow_fork_generation();
  http->page = page;
  http->state = state;
  flow_status status = start(http, address);
  if (status == FLOW_OK) *out = http;
  else flow_http_close(http);
  return status;
}

int flow_http_port(const flow_http *http) { return http->port; }

void flow_http_close(flow_http *http)
{
  if (!http) return;
  if (http->forks != flow_fork_generation()) return; /* the parent serves on, and would end by the wake */
  uint64_t one = 1;
  ssize_t written = http->wake >= 0 ? write(http->wake, &one, sizeof one) : 0;
  (void)written;
  flow_thread_join(&http->thread);
  while (http->count > 0) drop(http, http->count - 1);
  if (http->listener >= 0) close(http->listener);
  if (http->wake >= 0) close(http->wake);
  flow_free(http->connections);
  flow_free(http->address);
  flow_free(http);
}
