/* mesh.c: one loop over the port, the ranks that are called and those that call. All sockets are non-blocking, so that a peer that
 * stands still holds up no other; the only waits are poll(), for LOOK_MILLISECONDS at most, and those of the store. Everything runs on
 * the thread that opens the transport. */
#define _GNU_SOURCE                /* accept4, explicit_bzero */
#include "transport/mesh.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/entropy.h"
#include "base/futex.h"
#include "base/memory.h"

enum {
  MOST_GUESTS = 64,        /* that have not said who they are */
  LOOK_MILLISECONDS = 100, /* how often the flag `ended` is looked at */
  AGAIN_AFTER = 50000000,  /* nanoseconds, as a rank may be slow, and who has its port now may hang up at once */
  TOKEN = 16,
  ADDRESS = INET6_ADDRSTRLEN + 16,
};

static const char greeting_begins[8] = { 'f', 'l', 'o', 'w', 'd', 'a', 't', 'a' };

/* What a rank leaves in the store. */
typedef struct card {
  struct sockaddr_storage address;
  uint32_t      length;
  unsigned char token[TOKEN];
  unsigned char secret[FLOW_LINK_KEY / 2];      /* never shown on a connection */
  int32_t       seals;
} card;

/* Both ways. The token is that of the receiver. */
typedef struct greeting {
  char          first[8];
  int32_t       from;
  unsigned char token[TOKEN];
} greeting;

/* A connection on which a greeting comes in, piece by piece. */
typedef struct guest {
  int      socket;                 /* -1: none */
  int      greeted;                /* of one that is called: it was shown the token */
  greeting heard;
  size_t   bytes;
  int64_t again; /* on the clock: when a rank without a connection is called */
} guest;

typedef struct mesh {
  const char *name;
  int         rank, size;
  const flow_transport_options *options;
  int64_t     end;                 /* on the clock */
  int         port;
  int         rests;               /* no descriptor is free for callers: accept is tried again later */
  int        *connected;           /* [size], -1: not yet */
  card       *cards;               /* [size] */
  guest      *calls;               /* [rank]: to the ranks before this one */
  struct pollfd *polled;           /* [1 + rank + MOST_GUESTS] */
  int         guest_count;
  guest       guests[MOST_GUESTS]; /* the oldest first */
} mesh;

/* ---- messages ------------------------------------------------------------------------------------------------------------------ */

/* "10.0.0.1:5000" or "[::1]:5000", in `text`, which is returned; for messages. */
static const char *address_text(const struct sockaddr_storage *address, char text[ADDRESS])
{
  char host[INET6_ADDRSTRLEN] = "?";
  const struct sockaddr_in *four = (const struct sockaddr_in *)address;
  const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;
  if (address->ss_family == AF_INET6) {
    inet_ntop(AF_INET6, &six->sin6_addr, host, sizeof host);
    snprintf(text, ADDRESS, "[%s]:%d", host, ntohs(six->sin6_port));
  } else {
    inet_ntop(AF_INET, &four->sin_addr, host, sizeof host);
    snprintf(text, ADDRESS, "%s:%d", host, ntohs(four->sin_port));
  }
  return text;
}

/* reason: an errno of this rank's own calls. */
static flow_status fail_errno(const mesh *self, int reason)
{
  return flow_fail(FLOW_IO_ERROR, "opening the transport %s: %s", self->name, strerror(reason));
}

/* A port that is not there any more belongs to a rank that has ended. */
static flow_status fail_call(const mesh *self, int peer, int reason)
{
  char address[ADDRESS];
  return flow_fail(FLOW_IO_ERROR, "opening the transport %s: rank %d of %d at %s: %s", self->name, peer, self->size,
                   address_text(&self->cards[peer].address, address), strerror(reason));
}

/* ---- the port ------------------------------------------------------------------------------------------------------------------ */

/* Listens on one port of those that are allowed. Failure is errno and -1. */
static int listen_on(const struct addrinfo *own, int port)
{
  struct sockaddr_storage address = { 0 };
  int on = 1;
  memcpy(&address, own->ai_addr, own->ai_addrlen);
  if (own->ai_family == AF_INET6) ((struct sockaddr_in6 *)&address)->sin6_port = htons((uint16_t)port);
  else ((struct sockaddr_in *)&address)->sin_port = htons((uint16_t)port);
  int made = socket(own->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (made < 0) return -1;
  setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(made, (struct sockaddr *)&address, own->ai_addrlen) == 0 && listen(made, INT_MAX) == 0) return made;
  int reason = errno;
  close(made);
  errno = reason;
  return -1;
}

/* Tries the own address in each of its forms, and of each the allowed ports in order; ports that are in use are passed over, any other
 * problem ends with that form. */
static flow_status open_port(mesh *self)
{
  const flow_transport_options *options = self->options;
  struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE }, *found = NULL;
  int reason = getaddrinfo(options->address, NULL, &hints, &found);
  if (reason != 0) {
    return flow_fail(FLOW_IO_ERROR, "opening the transport %s: this process's address %s is not known: %s", self->name, options->address,
                     gai_strerror(reason));
  }
  for (const struct addrinfo *own = found; own && self->port < 0; own = own->ai_next) {
    for (int port = options->first_port; port <= options->last_port && self->port < 0; port++) {
      self->port = listen_on(own, port);
      reason = errno;
      if (self->port < 0 && reason != EADDRINUSE) break;
    }
  }
  freeaddrinfo(found);
  if (self->port >= 0) return FLOW_OK;
  if (options->first_port == 0) {
    return flow_fail(FLOW_IO_ERROR, "opening the transport %s: no port can be opened at %s: %s", self->name, options->address,
                     strerror(reason));
  }
  return flow_fail(FLOW_IO_ERROR, "opening the transport %s: none of the ports %d to %d (FLOW_DATA_PORTS) can be opened at %s: %s",
                   self->name, options->first_port, options->last_port, options->address, strerror(reason));
}

/* ---- the store ----------------------------------------------------------------------------------------------------------------- */

/* Of the whole opening: what one rank uses up is missing for the next. */
static double seconds_left(const mesh *self)
{
  int64_t left = self->end - flow_now_nanoseconds();
  return left > 0 ? 1e-9 * (double)left : 0;
}

/* A card of another length is one of another version of flowlua. The length in it goes to connect() as a size, so that it must not be
 * larger than the address. */
static flow_status read_card(mesh *self, int peer)
{
  const flow_store *store = self->options->store;
  char key[256];
  void *bytes = NULL;
  size_t count = 0;
  snprintf(key, sizeof key, "%s/%s/%d", self->name, self->options->group, peer);
  flow_status status = store->get(store->state, key, seconds_left(self), &bytes, &count);
  if (status == FLOW_TIMED_OUT) {
    return flow_fail(FLOW_TIMED_OUT, "opening the transport %s: rank %d of %d did not come within %g s", self->name, peer, self->size,
                     self->options->timeout);
  }
  if (status != FLOW_OK) return status;            /* the store has said why */
  int right = count == sizeof(card);
  if (right) memcpy(&self->cards[peer], bytes, sizeof(card));
  right = right && self->cards[peer].length <= sizeof(struct sockaddr_storage);
  flow_free(bytes);
  return right ? FLOW_OK : flow_fail(FLOW_INVALID_STATE, "opening the transport %s: rank %d of %d is of another version", self->name, peer,
                                     self->size);
}

/* Keys have the name of the group, so that a group never reads what an earlier one left. */
static flow_status exchange_cards(mesh *self)
{
  const flow_store *store = self->options->store;
  char key[256];
  card *mine = &self->cards[self->rank];
  socklen_t length = sizeof mine->address;
  if (getsockname(self->port, (struct sockaddr *)&mine->address, &length) != 0) return fail_errno(self, errno);
  FLOW_TRY(flow_entropy_take(mine->token, sizeof mine->token));
  FLOW_TRY(flow_entropy_take(mine->secret, sizeof mine->secret));
  mine->length = length;
  mine->seals = self->options->seal != NULL;
  snprintf(key, sizeof key, "%s/%s/%d", self->name, self->options->group, self->rank);
  FLOW_TRY(store->set(store->state, key, mine, sizeof *mine));
  for (int peer = 0; peer < self->size; peer++) {
    if (peer != self->rank) FLOW_TRY(read_card(self, peer));
  }
  for (int peer = 0; peer < self->size; peer++) {
    if ((self->cards[peer].seals != 0) == (mine->seals != 0)) continue;
    return flow_fail(FLOW_INVALID_STATE, "opening the transport %s: rank %d encrypts what it sends, rank %d does not: set FLOW_ENCRYPT "
                     "for all workers, or for none", self->name, mine->seals ? self->rank : peer, mine->seals ? peer : self->rank);
  }
  return FLOW_OK;
}

/* Of two ranks: the secret of the first, then that of the second. Both ends make the same key of it, each of its own card and the
 * other's; every pair of ranks has another one. */
static void find_keys(const mesh *self, uint8_t (*keys)[FLOW_LINK_KEY])
{
  enum { HALF = FLOW_LINK_KEY / 2 };
  for (int peer = 0; peer < self->size; peer++) {
    int first = peer < self->rank ? peer : self->rank, second = peer < self->rank ? self->rank : peer;
    memcpy(keys[peer], self->cards[first].secret, HALF);
    memcpy(keys[peer] + HALF, self->cards[second].secret, HALF);
  }
}

/* ---- greetings ----------------------------------------------------------------------------------------------------------------- */

/* Shows that this rank has read the receiver's card: nobody else has its token. */
static int greet(const mesh *self, int socket, int peer)
{
  greeting said = { .from = self->rank };
  memcpy(said.first, greeting_begins, sizeof said.first);
  memcpy(said.token, self->cards[peer].token, sizeof said.token);
  return send(socket, &said, sizeof said, MSG_NOSIGNAL) == sizeof said;      /* there is room for the first bytes */
}

/* All bytes of the token are compared, whatever the first ones are: the time that it takes tells nothing. */
static int is_right(const mesh *self, const greeting *heard, int from)
{
  const unsigned char *token = self->cards[self->rank].token;
  unsigned differ = 0;
  for (int i = 0; i < TOKEN; i++) differ |= (unsigned)(heard->token[i] ^ token[i]);
  return memcmp(heard->first, greeting_begins, sizeof greeting_begins) == 0 && heard->from == from && differ == 0;
}

/* Takes no byte of what follows the greeting. 0: the connection is over. */
static int hear(guest *from)
{
  while (from->bytes < sizeof from->heard) {
    ssize_t count = recv(from->socket, (char *)&from->heard + from->bytes, sizeof from->heard - from->bytes, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    if (count == 0) return 0;
    from->bytes += (size_t)count;
  }
  return 1;
}

/* A connection that the guest has handed on (keep_connection) is not its any longer. */
static void hang_up(guest *of)
{
  if (of->socket >= 0) close(of->socket);
  of->socket = -1;
}

/* The connection to a peer is made; one from an earlier try that was repeated makes room. */
static void keep_connection(mesh *self, guest *from, int peer)
{
  if (self->connected[peer] >= 0) close(self->connected[peer]);
  self->connected[peer] = from->socket;
  from->socket = -1;
}

/* ---- those before this rank ---------------------------------------------------------------------------------------------------- */

/* Begins a connection to a rank before this one; the loop goes on with it. One that fails on the way is begun again (call_later) until the
 * time is over. */
static flow_status call(mesh *self, int peer)
{
  const card *whom = &self->cards[peer];
  guest *made = &self->calls[peer];
  hang_up(made);
  made->bytes = 0;
  made->greeted = 0;
  made->socket = socket(whom->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (made->socket < 0) return fail_errno(self, errno);
  int done = connect(made->socket, (const struct sockaddr *)&whom->address, (socklen_t)whom->length);
  return done == 0 || errno == EINPROGRESS ? FLOW_OK : fail_call(self, peer, errno);
}

/* Always FLOW_OK: a connection that broke is a failure only when the time is over. */
static flow_status call_later(guest *of)
{
  hang_up(of);
  of->again = flow_now_nanoseconds() + AGAIN_AFTER;
  return FLOW_OK;
}

/* Begins those that were hung up, each AGAIN_AFTER nanoseconds after it broke. */
static flow_status call_again(mesh *self)
{
  int64_t now = flow_now_nanoseconds();
  for (int peer = 0; peer < self->rank; peer++) {
    if (self->connected[peer] < 0 && self->calls[peer].socket < 0 && now >= self->calls[peer].again) FLOW_TRY(call(self, peer));
  }
  return FLOW_OK;
}

/* Refused or unreachable ends the opening: the rank has said where it listens, so that it must be gone or a firewall is in between.
 * Other errors are tried again. */
static flow_status go_on_calling(mesh *self, int peer, short events)
{
  guest *made = &self->calls[peer];
  int reason = 0;
  socklen_t length = sizeof reason;
  getsockopt(made->socket, SOL_SOCKET, SO_ERROR, &reason, &length);
  if (reason == ECONNREFUSED || reason == EHOSTUNREACH || reason == ENETUNREACH) return fail_call(self, peer, reason);
  if (reason != 0) return call_later(made);
  if ((events & POLLOUT) && !made->greeted) made->greeted = greet(self, made->socket, peer);
  if (!(events & (POLLIN | POLLHUP | POLLERR))) return FLOW_OK;
  if (!hear(made)) return call_later(made);
  if (made->bytes < sizeof made->heard) return FLOW_OK;
  if (!is_right(self, &made->heard, peer)) return call_later(made);
  keep_connection(self, made, peer);
  return FLOW_OK;
}

/* ---- those after this rank, and strangers -------------------------------------------------------------------------------------- */

/* The order of the others stays: the oldest are in front. */
static void drop_guest(mesh *self, int index)
{
  hang_up(&self->guests[index]);
  self->guest_count--;
  memmove(&self->guests[index], &self->guests[index + 1], sizeof(guest) * (size_t)(self->guest_count - index));
}

/* 1: the guest is still listened to. A greeting that is right is answered, and its connection kept; anything else ends it. 0: the guest is
 * gone from the list. */
static int listen_to(mesh *self, int index)
{
  guest *from = &self->guests[index];
  int alive = hear(from);
  if (alive && from->bytes < sizeof from->heard) return 1;
  int peer = alive ? from->heard.from : -1;
  if (peer > self->rank && peer < self->size && is_right(self, &from->heard, peer) && greet(self, from->socket, peer))
    keep_connection(self, from, peer);
  drop_guest(self, index);
  return 0;
}

/* Anyone may connect. Guests that say nothing are dropped when there are too many, the oldest first, so that they cannot keep ranks out. */
static void accept_guests(mesh *self)
{
  for (int count = 0; count < MOST_GUESTS; count++) {
    int taken = accept4(self->port, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (taken < 0 && self->guest_count > 0 && (errno == EMFILE || errno == ENFILE)) {      /* the oldest leaves its own */
      drop_guest(self, 0);
      taken = accept4(self->port, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    }
    self->rests = taken < 0 && errno != EAGAIN && errno != EWOULDBLOCK;
    if (taken < 0) return;
    if (self->guest_count == MOST_GUESTS) drop_guest(self, 0);
    self->guests[self->guest_count++] = (guest){ .socket = taken };
    listen_to(self, self->guest_count - 1);        /* what it says is here already, most often */
  }
}

/* ---- the loop ------------------------------------------------------------------------------------------------------------------ */

/* The first rank that is not connected; -1: all are. */
static int find_missing(const mesh *self)
{
  for (int peer = 0; peer < self->size; peer++) {
    if (peer != self->rank && self->connected[peer] < 0) return peer;
  }
  return -1;
}

/* Names one rank that is missing, and which of the two sides had to connect. */
static flow_status check_time(const mesh *self)
{
  char address[ADDRESS];
  int peer = find_missing(self);
  if (self->options->ended && __atomic_load_n(self->options->ended, __ATOMIC_ACQUIRE)) {
    return flow_fail(FLOW_ABORTED, "opening the transport %s: the group has ended before all ranks were connected", self->name);
  }
  if (flow_now_nanoseconds() < self->end) return FLOW_OK;
  const int calls = peer > self->rank; /* a rank is called by those after it */
  return flow_fail(FLOW_TIMED_OUT,
                   "opening the transport %s: rank %d of %d %s %s within %g s: is that port of that address open between "
                   "the machines? FLOW_DATA_PORTS=FROM-TO chooses the ports",
                   self->name, peer, self->size, calls ? "did not connect to" : "was not reached at",
                   address_text(&self->cards[calls ? self->rank : peer].address, address), self->options->timeout);
}

/* One look at everything, for at most LOOK_MILLISECONDS: ranks that are called, guests, the port. */
static flow_status wait(mesh *self)
{
  struct pollfd *next = self->polled;
  *next++ = (struct pollfd){ .fd = self->rests ? -1 : self->port, .events = POLLIN };
  self->rests = 0;
  for (int peer = 0; peer < self->rank; peer++) {      /* those that are connected have no socket here */
    const guest *made = &self->calls[peer];
    *next++ = (struct pollfd){ .fd = made->socket, .events = (short)(POLLIN | (made->greeted ? 0 : POLLOUT)) };
  }
  int guests = self->guest_count;
  for (int i = 0; i < guests; i++) *next++ = (struct pollfd){ .fd = self->guests[i].socket, .events = POLLIN };
  if (poll(self->polled, (nfds_t)(next - self->polled), LOOK_MILLISECONDS) <= 0) return FLOW_OK;
  for (int peer = 0; peer < self->rank; peer++) {
    short events = self->polled[1 + peer].revents;
    if (events) FLOW_TRY(go_on_calling(self, peer, events));
  }
  for (int i = guests - 1; i >= 0; i--)      /* from the last one, since dropping a guest moves the guests after it */
    if (self->polled[1 + self->rank + i].revents) listen_to(self, i);
  if (self->polled[0].revents) accept_guests(self);
  return FLOW_OK;
}

/* The order matters: the address in a card is that of the open port, and a rank calls others only after their cards were read, so that a
 * refused connection means that the other rank has gone and not that it is still starting. */
static flow_status run(mesh *self)
{
  FLOW_TRY(open_port(self));
  FLOW_TRY(exchange_cards(self));
  while (find_missing(self) >= 0) {
    FLOW_TRY(check_time(self));
    FLOW_TRY(call_again(self));
    FLOW_TRY(wait(self));
  }
  return FLOW_OK;
}

/* One block: the struct, a card for each rank, a guest for each rank that is called, and what poll needs for all of them with the port. */
static flow_status take_memory(mesh **out, int rank, int size)
{
  size_t cards = sizeof(card) * (size_t)size, calls = sizeof(guest) * (size_t)rank;
  size_t polled = sizeof(struct pollfd) * (size_t)(1 + rank + MOST_GUESTS);      /* size is at most FLOW_MOST_RANKS */
  void *block;
  FLOW_TRY(flow_alloc_zero(sizeof(mesh) + cards + calls + polled, &block));
  mesh *self = block;
  self->cards = (card *)(self + 1);
  self->calls = (guest *)(self->cards + size);
  self->polled = (struct pollfd *)(self->calls + rank);
  for (int peer = 0; peer < rank; peer++) self->calls[peer].socket = -1;
  *out = self;
  return FLOW_OK;
}

/* On success all sockets are the caller's; on failure none is open. The secrets in the cards are wiped out in both cases. */
flow_status flow_mesh_connect(const char *name, int rank, int size, const flow_transport_options *options, int *sockets,
                              uint8_t (*keys)[FLOW_LINK_KEY])
{
  mesh *self;
  for (int peer = 0; peer < size; peer++) sockets[peer] = -1;
  FLOW_TRY(take_memory(&self, rank, size));
  self->name = name;
  self->rank = rank;
  self->size = size;
  self->options = options;
  self->end = flow_now_nanoseconds() + (int64_t)(1e9 * options->timeout);
  self->port = -1;
  self->connected = sockets;
  flow_status status = run(self);
  if (status == FLOW_OK && keys) find_keys(self, keys);
  explicit_bzero(self->cards, sizeof(card) * (size_t)size);
  while (self->guest_count > 0) drop_guest(self, self->guest_count - 1);
  for (int peer = 0; peer < rank; peer++) hang_up(&self->calls[peer]);
  if (self->port >= 0) close(self->port);
  flow_free(self);
  for (int peer = 0; peer < size && status != FLOW_OK; peer++) {
    if (sockets[peer] >= 0) close(sockets[peer]);
    sockets[peer] = -1;
  }
  return status;
}
