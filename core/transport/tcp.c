/* tcp.c: ranks that are connected by sockets (mesh.c) add up over TCP, without an extra thread or library.
 *
 * In a call every rank sends each other one message and receives one: a head that says what is called, elements that the receiver adds
 * up, and elements that are ready. All connections go on at once:
 *   - A small sum: everybody sends all of his elements and adds up himself. One way through the network.
 *   - A larger sum: everybody sends each rank the share that it adds up for all, and then the sum of his own, each piece as soon as it
 *     is there. Two ways through the network, whatever the number of ranks, and as few bytes as can be.
 *   - A broadcast: the root sends every rank a share, which sends it to the others.
 * Whichever rank adds a sum, it adds in the order of the ranks, so that sums have the bits of `local` and `shared`. */
#define _GNU_SOURCE                /* explicit_bzero */
#include "transport/tcp.h"

#include <stdio.h>
#include <string.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/memory.h"
#include "transport/group_sum.h"
#include "transport/mesh.h"
#include "transport/sealed_links.h"

enum {
  LINE = 64,
  MOST_PIECE = 262144, LEAST_PIECE = 16384, PIECES = 1 << 20,      /* bytes that wait for other ranks' to be added: of each rank, of all */
  DIRECT_BYTES = 4 << 20,          /* of a sum that everybody makes: more take longer to add than to send once more */
  MORE_BYTES = 65536,              /* that a rank may send beyond what shares take, so that a sum is one way */
};

/* Messages are heads alone, to begin with. What a connection keeps between calls is its socket, its window and its piece of memory; a
 * failure is kept in `self`. */
static void begin(flow_tcp *self, flow_group_operation what, int detail, int64_t count)
{
  if (self->started) flow_tcp_abandon(self);
  self->lots = 1;
  self->said = (flow_tcp_head){ { (int32_t)what, detail, count }, self->said.number + 1 };
  self->share = NULL;
  self->share_bytes = self->summed = 0;
  self->with_own = self->in_place = 0;
  self->gathered_count = 0;
  self->gathered_bytes = 0;
  self->dtype = FLOW_FLOAT32;
  for (int rank = 0; rank < self->base.size; rank++) {
    flow_tcp_peer *of = &self->peers[rank];
    *of = (flow_tcp_peer){ .socket = of->socket, .window = of->window, .piece = of->piece, .owed = of->owed };
  }
}

/* Ranks exchange their shares of data; others are ready when this one is. The peer's share comes to its place in `data`; this rank's
 * own goes to every peer. */
static void pass_shares(flow_tcp *self, char *data, int64_t bytes)
{
  int64_t first, last, own_first, own_last;
  flow_find_share(self->base.rank, self->base.size, bytes, &own_first, &own_last);
  for (int rank = 0; rank < self->base.size; rank++) {
    flow_tcp_peer *of = &self->peers[rank];
    flow_find_share(rank, self->base.size, bytes, &first, &last);
    of->second = data + own_first;
    of->second_bytes = own_last - own_first;
    of->place = data + first;
    of->place_bytes = last - first;
  }
}

/* Between two ranks as many bytes are sent as by shares. With more ranks a direct sum sends size - 1 times the bytes, by shares twice
 * (size - 1) / size of them: MORE_BYTES bounds the difference. */
static int is_direct(const flow_tcp *self, int64_t bytes)
{
  return bytes <= DIRECT_BYTES && bytes * (self->base.size - 2) <= MORE_BYTES;
}

/* Direct: all elements are this rank's share, and go to everybody. Else `first` is the receiver's share of them, and pass_shares has
 * said that sums come back. */
static flow_status all_reduce(flow_communicator *communicator, flow_dtype dtype, void *data, int64_t count)
{
  flow_tcp *self = (flow_tcp *)communicator;
  int64_t bytes = count * flow_dtype_size(dtype), first = 0, last = bytes;
  begin(self, FLOW_GROUP_ALL_REDUCE, (int)dtype, count);
  self->in_place = is_direct(self, bytes);
  if (!self->in_place) {
    pass_shares(self, data, bytes);
    flow_find_share(self->base.rank, self->base.size, bytes, &first, &last);
  }
  self->share = (char *)data + first;
  self->share_bytes = last - first;
  self->with_own = 1;
  self->dtype = (int)dtype;
  for (int rank = 0; rank < self->base.size; rank++) {
    flow_tcp_peer *of = &self->peers[rank];
    of->added = self->share_bytes;
    if (!self->in_place) flow_find_share(rank, self->base.size, bytes, &first, &last);
    of->first = (char *)data + first;
    of->first_bytes = last - first;
  }
  return flow_tcp_exchange(self);
}

/* The root sends rank r the r-th share; everybody passes his own share on to all but the root. So the root's connection carries the
 * bytes once, not once per rank. */
static flow_status broadcast(flow_communicator *communicator, int from, void *data, int64_t bytes)
{
  flow_tcp *self = (flow_tcp *)communicator;
  int64_t first, last;
  begin(self, FLOW_GROUP_BROADCAST, from, bytes);
  pass_shares(self, data, bytes);
  flow_tcp_peer *root = &self->peers[from];
  if (self->base.rank == from) {
    for (int rank = 0; rank < self->base.size; rank++) {
      flow_tcp_peer *of = &self->peers[rank];
      flow_find_share(rank, self->base.size, bytes, &first, &last);
      of->first = (char *)data + first;
      of->first_bytes = last - first;
      of->place_bytes = 0;                         /* it has all */
    }
  } else {
    flow_find_share(self->base.rank, self->base.size, bytes, &first, &last);
    self->share = (char *)data + first;
    self->share_bytes = root->added = last - first;
    root->second_bytes = 0;
  }
  return flow_tcp_exchange(self);
}

static void copy_own(const flow_tcp *self, const flow_gathering *array)
{
  char *own = (char *)array->all + self->base.rank * array->bytes;
  if (own != array->mine && array->bytes > 0) memcpy(own, array->mine, (size_t)array->bytes);
}

/* Nothing is added: what each rank has follows the head of every message. */
static flow_status all_gather(flow_communicator *communicator, const void *mine, int64_t bytes, void *all)
{
  flow_tcp *self = (flow_tcp *)communicator;
  flow_gathering array = { mine, all, bytes };
  begin(self, FLOW_GROUP_ALL_GATHER, 0, bytes);
  self->gathered = &array;
  self->gathered_count = 1;
  self->gathered_bytes = bytes;
  FLOW_TRY(flow_tcp_exchange(self));
  copy_own(self, &array);
  return FLOW_OK;
}

/* Begins a gather in two lots. */
static flow_status start_gather(flow_communicator *communicator, const flow_gathering *first)
{
  flow_tcp *self = (flow_tcp *)communicator;
  begin(self, FLOW_GROUP_ALL_GATHER, FLOW_TCP_FIRST_LOT, first->bytes);
  self->lots = 2;
  self->first_lot = *first;
  self->started = 1;
  return flow_tcp_send_ahead(self);
}

static flow_status gather(flow_communicator *communicator, const flow_gathering *arrays, int count)
{
  flow_tcp *self = (flow_tcp *)communicator;
  int64_t bytes = 0;
  for (int i = 1; i < count; i++) {
    if (__builtin_add_overflow(bytes, arrays[i].bytes, &bytes)) return flow_fail(FLOW_INVALID_ARGUMENT, "all_gather: too many bytes");
  }
  if (!self->started || self->first_lot.mine != arrays[0].mine || self->first_lot.bytes != arrays[0].bytes)
    FLOW_TRY(start_gather(communicator, &arrays[0]));
  self->started = 0;
  self->said_rest = (flow_tcp_head){ { FLOW_GROUP_ALL_GATHER, FLOW_TCP_SECOND_LOT, bytes }, self->said.number };
  self->gathered = arrays + 1;
  self->gathered_count = count - 1;
  self->gathered_bytes = bytes;
  FLOW_TRY(flow_tcp_exchange(self));
  for (int i = 0; i < count; i++) copy_own(self, &arrays[i]);
  return FLOW_OK;
}

/* A head to and from every rank, without elements. */
static flow_status barrier(flow_communicator *communicator)
{
  flow_tcp *self = (flow_tcp *)communicator;
  begin(self, FLOW_GROUP_BARRIER, 0, 0);
  return flow_tcp_exchange(self);
}

/* Any thread. The failure comes first, so that the thread that wakes from its sockets finds the reason. */
static void abort_calls(flow_communicator *communicator, const char *reason)
{
  flow_tcp *self = (flow_tcp *)communicator;
  flow_failure_set(&self->failure, FLOW_ABORTED, reason, NULL);
  flow_tcp_let_go(self);
}

/* ---- opening and closing ------------------------------------------------------------------------------------------------------- */

/* Lets the others go first: a rank that waits for this one sees its end at once. Where bytes are sealed, the thread that seals still passes
 * on what was written. */
static void close_rank(flow_communicator *communicator)
{
  flow_tcp *self = (flow_tcp *)communicator;
  flow_tcp_let_go(self);
  for (int rank = 0; rank < self->base.size; rank++) {
    if (self->sockets[rank] >= 0) close(self->sockets[rank]);
  }
  flow_sealed_links_stop(self->sealed);
  flow_free(self->pieces);
  flow_free(self);
}

/* One block for all arrays; PIECES bytes of pieces, however many ranks there are, within bounds. */
static flow_status take_memory(int rank, int size, const flow_transport_options *options, flow_tcp **out)
{
  size_t ranks = (size_t)size;                        /* at most FLOW_MOST_RANKS */
  size_t each = sizeof(flow_tcp_peer) + sizeof(void *) + sizeof(struct pollfd) + sizeof(int);
  void *block;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_tcp) + ranks * each, &block));
  flow_tcp *self = block;
  self->base = (flow_communicator){ &flow_transport_tcp, rank, size, options->timeout };
  self->parts = (const void **)(self->peers + size);
  self->polled = (struct pollfd *)(self->parts + size);
  self->sockets = (int *)(self->polled + size);
  self->piece_bytes = PIECES / size / LINE * LINE;
  if (self->piece_bytes > MOST_PIECE) self->piece_bytes = MOST_PIECE;
  if (self->piece_bytes < LEAST_PIECE) self->piece_bytes = LEAST_PIECE;
  for (int i = 0; i < size; i++) self->sockets[i] = -1;
  flow_failure_clear(&self->failure);
  *out = self;
  return size == 1 ? FLOW_OK : flow_alloc(ranks * (size_t)self->piece_bytes, (void **)&self->pieces);
}

/* Whether both ends of a connection are on this machine: they have the same address, or are within 127.0.0.0/8. */
static int is_near(int socket)
{
  union {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
  } own = { 0 }, other = { 0 };
  socklen_t own_bytes = sizeof own, other_bytes = sizeof other;
  if (getsockname(socket, &own.any, &own_bytes) != 0 || getpeername(socket, &other.any, &other_bytes) != 0) return 0;
  if (own.any.sa_family == AF_INET6) return memcmp(&own.v6.sin6_addr, &other.v6.sin6_addr, sizeof own.v6.sin6_addr) == 0;
  uint32_t from = ntohl(own.v4.sin_addr.s_addr), to = ntohl(other.v4.sin_addr.s_addr);
  return own.any.sa_family == AF_INET && (from == to || (from >> 24 == IN_LOOPBACKNET && to >> 24 == IN_LOOPBACKNET));
}

enum { SEND_BYTES = 16 << 20 }; /* that may wait to be sent, to all ranks together */

/* Bytes that the system gives a connection's send buffer by itself, as it needs more and more; 0: it does not say. */
static int64_t most_by_itself(void)
{
  long long most = 0;
  FILE *file = fopen("/proc/sys/net/ipv4/tcp_wmem", "re");
  if (!file) return 0;
  if (fscanf(file, "%*d %*d %lld", &most) != 1) most = 0;
  fclose(file);
  return most;
}

/* The size to request for the send buffer of each of `ranks` - 1 connections through a network; 0: the system's own is as large. Bytes
 * that the buffer has no room for are sent only when earlier ones are acknowledged: 5.5 MB through a buffer of 4 MB take a round trip
 * longer. A request is granted up to net.core.wmem_max (doubled), which may be more or less than a buffer that is not requested gets; so
 * this tries it with a socket. */
static int find_send_bytes(int ranks)
{
  int wanted = SEND_BYTES / (ranks - 1), given = 0;
  socklen_t bytes = sizeof given;
  int trial = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (trial < 0) return 0;
  int asked = setsockopt(trial, SOL_SOCKET, SO_SNDBUF, &wanted, sizeof wanted) == 0;
  if (!asked || getsockopt(trial, SOL_SOCKET, SO_SNDBUF, &given, &bytes) != 0) given = 0;
  close(trial);
  int64_t most = most_by_itself();
  return most > 0 && given > most ? wanted : 0;
}

static const char RENO[] = "reno";

/* Nagle's algorithm would keep the last bytes of a message until earlier ones are acknowledged. Within a machine the amount under way is
 * limited by `window` (sendable), through a network the send buffer has to hold what is under way.
 *
 * Within a machine there is no congestion to control, and the system's default may be BBR, which spaces packets by the bandwidth that it
 * has estimated so far: one of two ranks was held up so at times, for hundreds of sums, and 11 MB took 4.5 ms, not 3.2. Reno, which every
 * Linux has and every user may choose, does not space them. */
static void set_options(flow_tcp *self)
{
  int on = 1, send_bytes = find_send_bytes(self->base.size);
  for (int rank = 0; rank < self->base.size; rank++) {
    int connection = self->sockets[rank];
    if (connection < 0) continue;
    setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (is_near(connection)) {
      self->peers[rank].window = self->piece_bytes;
      setsockopt(connection, IPPROTO_TCP, TCP_CONGESTION, RENO, sizeof RENO - 1);
    } else if (send_bytes > 0) setsockopt(connection, SOL_SOCKET, SO_SNDBUF, &send_bytes, sizeof send_bytes);
  }
}

/* A rank has called those before it. */
static flow_status seal(flow_tcp *self, const flow_link_seal *by, const uint8_t (*keys)[FLOW_LINK_KEY])
{
  void *block;
  FLOW_TRY(flow_alloc_zero((size_t)self->base.size * sizeof(int), &block));
  int *dialed = block;
  for (int rank = 0; rank < self->base.rank; rank++) dialed[rank] = 1;
  flow_status status = flow_sealed_links_start(self->base.size, self->sockets, keys, dialed, by, &self->sealed);
  flow_free(block);
  return status;
}

/* The keys are wiped before their memory is given back, whether or not the links could be sealed. */
static flow_status connect_all(flow_tcp *self, const flow_transport_options *options)
{
  int rank = self->base.rank, size = self->base.size;
  void *block = NULL;
  size_t bytes = (size_t)size * FLOW_LINK_KEY;           /* at most FLOW_MOST_RANKS */
  if (options->seal) FLOW_TRY(flow_alloc_zero(bytes, &block));
  uint8_t (*keys)[FLOW_LINK_KEY] = block;
  flow_status status = flow_mesh_connect("tcp", rank, size, options, self->sockets, keys);
  if (status == FLOW_OK) set_options(self);
  if (status == FLOW_OK && keys) status = seal(self, options->seal, (const uint8_t (*)[FLOW_LINK_KEY])keys);
  if (keys) explicit_bzero(keys, bytes);
  flow_free(block);
  return status;
}

/* Waits for all ranks. The store is not used after this. */
static flow_status open_rank(int rank, int size, const flow_transport_options *options, flow_communicator **out)
{
  if (rank < 0 || !options->group || !options->address || !options->store) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "the transport tcp needs a rank, a size, a group's name, this process's address and a store");
  }
  flow_tcp *self = NULL;
  flow_status status = take_memory(rank, size, options, &self);
  if (status == FLOW_OK && size > 1) status = connect_all(self, options);
  if (status != FLOW_OK) {
    if (self) close_rank(&self->base);
    return status;
  }
  for (int other = 0; other < size; other++) {
    self->peers[other].socket = self->sockets[other];
    if (other == rank) continue;
    self->peers[other].piece = self->pieces + other * self->piece_bytes;
  }
  *out = &self->base;
  return FLOW_OK;
}

const flow_transport flow_transport_tcp = {
  .name = "tcp",
  .open = open_rank,
  .all_reduce = all_reduce,
  .broadcast = broadcast,
  .all_gather = all_gather,
  .gather = gather,
  .start_gather = start_gather,
  .barrier = barrier,
  .abort = abort_calls,
  .close = close_rank,
};
