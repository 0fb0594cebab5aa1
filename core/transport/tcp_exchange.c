/* tcp_exchange.c: a call over all connections at once, both ways, in pieces of the size of a cache.
 *
 * One loop, on the caller's thread, sends what the kernel takes, receives what is there and adds up what is complete; it sleeps in
 * poll() only when none of the three was possible. How far each connection has come is two numbers, `sent` and `received`, which count
 * the bytes of its message from the head on; where a byte belongs follows from them (add_stretch). The share is added up to `summed`, a
 * piece at a time: a peer's elements are received into its piece of memory only up to the end of the piece that is added next, so that
 * memory stays bounded however far the peer is ahead. */
#include "transport/tcp.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include "base/futex.h"
#include "transport/group_sum.h"

enum {
  MOST_SEND = 524288, /* bytes handed to the kernel before others are looked at */
  STRETCHES = 16,     /* of a message that are handed to it at once */
  HEAD = sizeof(flow_tcp_head),
  SCRAP = 8192,
  LOOK_MILLISECONDS = 1000,
};

/* ---- failures ------------------------------------------------------------------------------------------------------------------ */

/* Only after `failure` was set. */
static flow_status fail_broken(const flow_tcp *self)
{
  return flow_fail(self->failure.status, "%s: %s", flow_group_operation_name(self->said.call.what), self->failure.message);
}

/* The descriptors stay open: another thread may be in poll() on them. */
void flow_tcp_let_go(const flow_tcp *self)
{
  for (int rank = 0; rank < self->base.size; rank++) {
    if (self->sockets[rank] >= 0) shutdown(self->sockets[rank], SHUT_RDWR);
  }
}

/* The first reason stays. The connections end, so that the other ranks learn it too. */
static flow_status break_by(flow_tcp *self, flow_status status, const char *reason)
{
  flow_failure_set(&self->failure, status, reason, NULL);
  flow_tcp_let_go(self);
  return fail_broken(self);
}

/* Whether the peer has closed its end: looks at the next byte and leaves it there. */
static int has_ended(const flow_tcp_peer *of)
{
  char next;
  ssize_t count = recv(of->socket, &next, 1, MSG_PEEK | MSG_DONTWAIT);
  return count == 0 || (count < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

/* "rank 2" or "ranks 1, 2": those that are chosen. Returns how many. */
static int list_ranks(const flow_tcp *self, int (*is_chosen)(const flow_tcp *self, const flow_tcp_peer *of), flow_text *text)
{
  int count = 0;
  for (int rank = 0; rank < self->base.size; rank++) count += rank != self->base.rank && is_chosen(self, &self->peers[rank]);
  flow_text_add(text, count > 1 ? "ranks" : "rank");
  for (int rank = 0, listed = 0; rank < self->base.size; rank++) {
    if (rank == self->base.rank || !is_chosen(self, &self->peers[rank]) || text->length > FLOW_REASON_SIZE / 2) continue;
    flow_text_add(text, "%s %d", listed++ ? "," : "", rank);
  }
  return count;
}

static int is_lost(const flow_tcp *self, const flow_tcp_peer *of)
{
  (void)self;
  return has_ended(of);
}

/* What one rank sends of what is gathered, the second head included, as far as it is known. */
static int64_t gathered_bytes(const flow_tcp *self)
{
  int64_t first = self->lots == 2 ? self->first_lot.bytes : 0, head = self->lots == 2 && !self->started ? HEAD : 0;
  return first + head + self->gathered_bytes;
}

/* Of the call under way: bytes of the message to this peer, and of the one from it, heads included. */
static int64_t message_bytes(const flow_tcp *self, const flow_tcp_peer *of)
{
  return HEAD + of->first_bytes + of->second_bytes + gathered_bytes(self);
}

static int64_t expected_bytes(const flow_tcp *self, const flow_tcp_peer *of)
{
  return HEAD + of->added + of->place_bytes + gathered_bytes(self);
}

static int is_unfinished(const flow_tcp *self, const flow_tcp_peer *of)
{
  return of->owed > 0 || of->received < expected_bytes(self, of) || of->sent < message_bytes(self, of);
}

/* The end of the elements that are added up next. */
static int64_t next_end(const flow_tcp *self)
{
  return self->share_bytes - self->summed < self->piece_bytes ? self->share_bytes : self->summed + self->piece_bytes;
}

/* The elements up to `end` are not here, or were not sent from where their sum is to go. */
static int holds_up_sum(const flow_tcp *self, const flow_tcp_peer *of, int64_t end)
{
  return (of->added > 0 && of->received < HEAD + end) || (self->in_place && of->sent < HEAD + end);
}

/* The ranks that the rest wait for: one that waits with this rank sends more when the others have. */
static int is_late(const flow_tcp *self, const flow_tcp_peer *of)
{
  return self->summed < self->share_bytes ? holds_up_sum(self, of, next_end(self)) : is_unfinished(self, of);
}

/* Whether the peer calls something else, or is at another call. */
static int differ(const flow_tcp_head *said, const flow_tcp_head *heard)
{
  return heard->number != said->number || !flow_group_calls_agree(&heard->call, &said->call);
}

static int disagrees(const flow_tcp *self, const flow_tcp_peer *of)
{
  return differ(&self->said, &of->heard);
}

/* The lower rank is named first, so that both sides report the same sentence. */
static flow_status fail_disagreement(flow_tcp *self, int rank)
{
  char reason[FLOW_REASON_SIZE];
  flow_text text = flow_text_into(reason, sizeof reason);
  int in_rest = !disagrees(self, &self->peers[rank]);
  const flow_group_call *own = in_rest ? &self->said_rest.call : &self->said.call;
  const flow_group_call *other = in_rest ? &self->peers[rank].heard_rest.call : &self->peers[rank].heard.call;
  if (rank < self->base.rank) flow_group_calls_differ(&text, rank, other, self->base.rank, own);
  else flow_group_calls_differ(&text, self->base.rank, own, rank, other);
  return break_by(self, FLOW_INVALID_STATE, reason);
}

/* A rank may have given up because another rank calls something else, which has said so before: that rank. -1: none. Only heads that
 * have arrived whole count; the group is broken anyway, so that half a head may be lost. */
static int find_disagreement(flow_tcp *self)
{
  for (int rank = 0; rank < self->base.size; rank++) {
    flow_tcp_peer *of = &self->peers[rank];
    int64_t left = HEAD - of->received;
    if (rank == self->base.rank || left <= 0) continue;
    if (recv(of->socket, (char *)&of->heard + of->received, (size_t)left, MSG_DONTWAIT) != left) continue;
    of->received += left;
    if (disagrees(self, of)) return rank;
  }
  return -1;
}

/* A closed connection may be the end of a rank or the answer to a disagreement: what the others have said is read before, since that is
 * the reason to tell. */
static flow_status fail_lost(flow_tcp *self, int rank, int reason)
{
  char text[FLOW_REASON_SIZE], ranks[FLOW_REASON_SIZE];
  int other = flow_failure_is_set(&self->failure) ? -1 : find_disagreement(self);
  if (other >= 0) return fail_disagreement(self, other);
  flow_text list = flow_text_into(ranks, sizeof ranks);
  if (list_ranks(self, is_lost, &list) == 0) snprintf(ranks, sizeof ranks, "rank %d", rank);
  snprintf(text, sizeof text, "the connection to %.200s is lost (%s)", ranks, reason ? strerror(reason) : "it was closed");
  return break_by(self, FLOW_IO_ERROR, text);
}

/* Names all ranks that were silent for the whole timeout, and breaks the group: a call that was given up leaves half of a message in the
 * streams. */
static flow_status fail_late(flow_tcp *self)
{
  char text[FLOW_REASON_SIZE], ranks[FLOW_REASON_SIZE];
  flow_text list = flow_text_into(ranks, sizeof ranks);
  list_ranks(self, is_late, &list);
  snprintf(text, sizeof text, "%.300s did not come within %g s (rank %d of %d waited)", ranks, self->base.timeout, self->base.rank,
           self->base.size);
  return break_by(self, FLOW_TIMED_OUT, text);
}

/* ---- one connection ------------------------------------------------------------------------------------------------------------ */

/* A stretch of a message that begins at byte `begin` of it: what of it comes after byte `at`, up to *room. */
static void add_stretch(struct msghdr *to, char *data, int64_t begin, int64_t bytes, int64_t at, int64_t *room)
{
  int64_t skip = at > begin ? at - begin : 0, count = bytes - skip;
  if (count > *room) count = *room;
  if (count <= 0 || to->msg_iovlen == STRETCHES) return;
  to->msg_iov[to->msg_iovlen++] = (struct iovec){ .iov_base = data + skip, .iov_len = (size_t)count };
  *room -= count;
}

/* What is in the way of a call on a socket: 0, it would have to wait; else fails. */
static flow_status check_errno(flow_tcp *self, int rank)
{
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return FLOW_OK;
  return fail_lost(self, rank, errno);
}

/* ---- lots that were abandoned --------------------------------------------------------------------------------------------------- */

void flow_tcp_abandon(flow_tcp *self)
{
  for (int rank = 0; rank < self->base.size; rank++) {
    flow_tcp_peer *of = &self->peers[rank];
    if (of->sent > 0) of->owed = HEAD + self->first_lot.bytes - of->sent + HEAD;
  }
  self->started = 0;
  self->abandoned = (flow_tcp_head){ { FLOW_GROUP_ALL_GATHER, FLOW_TCP_ABANDONED, 0 }, self->said.number-- };
}

/* Zeros, then the second head. */
static flow_status send_owed(flow_tcp *self, int rank, int *progress)
{
  static const char zeros[SCRAP];
  flow_tcp_peer *to = &self->peers[rank];
  int in_head = to->owed <= HEAD;
  int64_t most = in_head ? to->owed : to->owed - HEAD < SCRAP ? to->owed - HEAD : SCRAP;
  const char *from = in_head ? (const char *)&self->abandoned + HEAD - to->owed : zeros;
  ssize_t count = send(to->socket, from, (size_t)most, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (count < 0) return check_errno(self, rank);
  to->owed -= count;
  *progress = 1;
  return FLOW_OK;
}

/* What has come is the head of a gather in two lots with the number of another call here. It may have been abandoned: its second head
 * tells. */
static int may_be_abandoned(const flow_tcp *self, const flow_tcp_peer *from)
{
  const flow_tcp_head *head = &from->heard;
  return head->number == self->said.number && head->call.what == FLOW_GROUP_ALL_GATHER && head->call.detail == FLOW_TCP_FIRST_LOT &&
         head->call.count >= 0 && head->call.count <= INT64_MAX - HEAD;
}

static flow_status skip_some(flow_tcp *self, int rank, int *progress)
{
  char scrap[SCRAP];
  flow_tcp_peer *from = &self->peers[rank];
  int in_head = from->skipped <= HEAD;
  int64_t most = in_head ? from->skipped : from->skipped - HEAD < SCRAP ? from->skipped - HEAD : SCRAP;
  ssize_t count = recv(from->socket, in_head ? (char *)&from->heard_rest + HEAD - from->skipped : scrap, (size_t)most, MSG_DONTWAIT);
  if (count < 0) return check_errno(self, rank);
  if (count == 0) return fail_disagreement(self, rank);
  from->skipped -= count;
  *progress = 1;
  if (from->skipped > 0 || from->heard_rest.call.detail == FLOW_TCP_ABANDONED) return FLOW_OK;
  return fail_disagreement(self, rank);
}

/* ---- messages ------------------------------------------------------------------------------------------------------------------- */

/* What is gathered, as byte `begin` of a message and what follows: of each array the part of `rank`. outgoing: from this rank itself. */
static void add_gathered(flow_tcp *self, struct msghdr *to, int rank, int outgoing, int64_t begin, int64_t at, int64_t *room)
{
  if (self->lots == 2) {
    const flow_gathering *array = &self->first_lot;
    char *data = outgoing ? (char *)(uintptr_t)array->mine : (char *)array->all + rank * array->bytes;
    flow_tcp_head *head = outgoing ? &self->said_rest : &self->peers[rank].heard_rest;
    add_stretch(to, data, begin, array->bytes, at, room);
    add_stretch(to, (char *)head, begin + array->bytes, (int64_t)sizeof *head, at, room);
    begin += array->bytes + (int64_t)sizeof *head;
  }
  for (int i = 0; i < self->gathered_count && *room > 0; i++) {
    const flow_gathering *array = &self->gathered[i];
    char *data = outgoing ? (char *)(uintptr_t)array->mine : (char *)array->all + rank * array->bytes;
    add_stretch(to, data, begin, array->bytes, at, room);
    begin += array->bytes;
  }
}

/* How much of `second` is ready. That is this rank's share: its sums can go as soon as they are made. */
static int64_t ready_bytes(const flow_tcp *self, const flow_tcp_peer *of)
{
  return self->share_bytes > 0 && of->second_bytes > self->summed ? self->summed : of->second_bytes;
}

/* Bytes that can be sent to this peer now: sums of this rank's share go as far as they are made.
 *
 * Within a machine what is under way is limited, since it would leave the caches before it is received: a sum of 11 MB then takes 1.7 times
 * as long (scripts/bench --allreduce). A message is at most a window ahead of the one from the peer, until that is whole. Nobody waits
 * for ever: of two ranks that wait for each other's bytes one has sent no more than the other, and may. A limit by the socket
 * (SO_SNDBUF) would let single bytes through to a rank that stands still, and so put off the time limit. */
static int64_t sendable(const flow_tcp *self, const flow_tcp_peer *of)
{
  int64_t end = HEAD + of->first_bytes + ready_bytes(self, of) + gathered_bytes(self);
  if (of->window > 0 && of->received < expected_bytes(self, of) && end > of->received + of->window) end = of->received + of->window;
  return end - of->sent;
}

/* As much of `added` as a piece holds, and what follows when that is all. */
static int64_t receivable(const flow_tcp *self, const flow_tcp_peer *of)
{
  int64_t left = of->added - self->summed;
  if (of->added == 0 || left <= self->piece_bytes) return expected_bytes(self, of) - of->received;
  return HEAD + self->summed + self->piece_bytes - of->received;
}

/* Hands the kernel what it takes without waiting, from up to STRETCHES places in one call, without copying them together. */
static flow_status send_some(flow_tcp *self, int rank, int *progress)
{
  flow_tcp_peer *to = &self->peers[rank];
  if (to->owed > 0) return send_owed(self, rank, progress);
  struct iovec stretches[STRETCHES];
  struct msghdr message = { .msg_iov = stretches };
  int64_t room = sendable(self, to), size = HEAD;
  if (room > MOST_SEND) room = MOST_SEND;
  if (room <= 0) return FLOW_OK;
  add_stretch(&message, (char *)&self->said, 0, size, to->sent, &room);
  add_stretch(&message, (char *)(uintptr_t)to->first, size, to->first_bytes, to->sent, &room);
  add_stretch(&message, (char *)(uintptr_t)to->second, size + to->first_bytes, to->second_bytes, to->sent, &room);
  add_gathered(self, &message, rank, 1, size + to->first_bytes + to->second_bytes, to->sent, &room);
  ssize_t count = sendmsg(to->socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (count < 0) return check_errno(self, rank);
  to->sent += count;
  *progress = 1;
  return FLOW_OK;
}

/* Whether a head that began at byte `begin` of the message has just come in whole. */
static int has_just_come(const flow_tcp_peer *from, int64_t begin, int64_t before)
{
  int64_t end = begin + HEAD;
  return before < end && from->received >= end;
}

/* Puts bytes straight where they belong. A head comes alone: what follows it has another meaning if the ranks do not agree, and must not
 * be received as what is expected if it has to be skipped. */
static flow_status receive_some(flow_tcp *self, int rank, int *progress)
{
  flow_tcp_peer *from = &self->peers[rank];
  struct iovec stretches[STRETCHES];
  struct msghdr message = { .msg_iov = stretches };
  if (from->skipped > 0) return skip_some(self, rank, progress);
  int64_t size = HEAD, before = from->received, room = before < size ? size - before : receivable(self, from);
  int64_t piece = from->added - self->summed < self->piece_bytes ? from->added - self->summed : self->piece_bytes;
  if (room <= 0) return FLOW_OK;
  add_stretch(&message, (char *)&from->heard, 0, size, before, &room);
  if (piece > 0) add_stretch(&message, from->piece, size + self->summed, piece, before, &room);
  add_stretch(&message, from->place, size + from->added, from->place_bytes, before, &room);
  add_gathered(self, &message, rank, 0, size + from->added + from->place_bytes, before, &room);
  ssize_t count = recvmsg(from->socket, &message, MSG_DONTWAIT);
  if (count < 0) return check_errno(self, rank);
  if (count == 0) return fail_lost(self, rank, 0);
  from->received += count;
  *progress = 1;
  if (has_just_come(from, 0, before) && disagrees(self, from)) {
    if (!may_be_abandoned(self, from)) return fail_disagreement(self, rank);
    from->skipped = from->heard.call.count + HEAD;
    from->received = 0;
    return FLOW_OK;
  }
  if (self->lots == 2 && has_just_come(from, size + self->first_lot.bytes, before) && differ(&self->said_rest, &from->heard_rest))
    return fail_disagreement(self, rank);
  return FLOW_OK;
}

/* ---- a call -------------------------------------------------------------------------------------------------------------------- */

/* How far the sum can be made now. */
static int64_t summable(const flow_tcp *self)
{
  int64_t end = next_end(self);
  for (int rank = 0; rank < self->base.size; rank++)
    if (rank != self->base.rank && holds_up_sum(self, &self->peers[rank], end)) return self->summed;
  return end;
}

/* Adds up piece by piece, as far as all ranks' elements are here. Ranks in their order, this one's own among them. */
static void add_up(flow_tcp *self, int *progress)
{
  for (int64_t end; (end = summable(self)) > self->summed; *progress = 1) {
    int count = 0;
    char *to = self->share + self->summed;
    for (int rank = 0; rank < self->base.size; rank++) {
      if (rank == self->base.rank ? self->with_own : self->peers[rank].added > 0)
        self->parts[count++] = rank == self->base.rank ? to : self->peers[rank].piece;
    }
    flow_sum_ranks(self->dtype, to, self->parts, count, end - self->summed);
    self->summed = end;
  }
}

/* Whether nothing is left to send, to receive or to add up. */
static int is_complete(const flow_tcp *self)
{
  for (int rank = 0; rank < self->base.size; rank++)
    if (rank != self->base.rank && is_unfinished(self, &self->peers[rank])) return 0;
  return self->summed == self->share_bytes;
}

/* Sleeps until a connection can go on. *since: when this rank began to wait for a byte, 0: it has not. poll() ends after a second at
 * the latest: an abort that came before it began is seen then, if not before. */
static flow_status wait_for_bytes(flow_tcp *self, int64_t *since)
{
  int64_t now = flow_now_nanoseconds();
  if (*since == 0) *since = now;
  double left = 1000 * self->base.timeout - 1e-6 * (double)(now - *since);
  if (left <= 0) return fail_late(self);
  for (int rank = 0; rank < self->base.size; rank++) {
    const flow_tcp_peer *of = &self->peers[rank];
    int in = of->skipped > 0 || receivable(self, of) > 0, out = of->owed > 0 || sendable(self, of) > 0;
    int events = rank == self->base.rank ? 0 : (in ? POLLIN : 0) | (out ? POLLOUT : 0);
    self->polled[rank] = (struct pollfd){ .fd = events ? of->socket : -1, .events = (short)events };
  }
  poll(self->polled, (nfds_t)self->base.size, left < LOOK_MILLISECONDS ? (int)left + 1 : LOOK_MILLISECONDS);
  return flow_failure_is_set(&self->failure) ? fail_broken(self) : FLOW_OK;
}

/* Not all to the same rank first. */
static flow_status send_to_all(flow_tcp *self, int *progress)
{
  for (int i = 1; i < self->base.size; i++) FLOW_TRY(send_some(self, (self->base.rank + i) % self->base.size, progress));
  return FLOW_OK;
}

flow_status flow_tcp_send_ahead(flow_tcp *self)
{
  int progress = 1;
  if (flow_failure_is_set(&self->failure)) return fail_broken(self);
  while (progress) {
    progress = 0;
    FLOW_TRY(send_to_all(self, &progress));
  }
  return FLOW_OK;
}

/* Never waits for one peer alone: as long as any connection moves, all go on. The time limit counts from the last byte. */
flow_status flow_tcp_exchange(flow_tcp *self)
{
  int64_t since = 0;
  if (flow_failure_is_set(&self->failure)) return fail_broken(self);
  while (!is_complete(self)) {
    int progress = 0;
    /* To all before anything is received, which may be that somebody calls something else. */
    FLOW_TRY(send_to_all(self, &progress));
    for (int i = 1; i < self->base.size; i++) FLOW_TRY(receive_some(self, (self->base.rank + i) % self->base.size, &progress));
    add_up(self, &progress);
    if (progress) since = 0;
    else FLOW_TRY(wait_for_bytes(self, &since));
  }
  return FLOW_OK;
}
