/* link.c: one connection of the control plane. See link.h. Sockets do not block; what cannot be sent waits in `unsent`, which is
 * bounded: a peer that does not read for long enough is lost. The phases:
 *
 *   CONNECTING   connect() is under way (dialed links only)
 *   GREETING     the own greeting is sent or waits; the peer's is read
 *   OPEN         frames in both directions
 *   CLOSING      nothing more is read; what waits is sent, then the peer closes
 *   BROKEN       nothing can be sent; what has come is read to its end */
#include "cluster/control/link.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"

static const char MAGIC[] = "flowctl1";

/* ---- a link -------------------------------------------------------------------------------------------------------------------------- */

/* Room for this many bytes after what waits. */
static flow_status reserve(flow_link *link, size_t bytes)
{
  size_t waiting = link->filled - link->first;
  if (waiting + bytes > FLOW_MOST_UNSENT)
    return flow_fail(FLOW_IO_ERROR, "it does not read what is sent to it: %.0f bytes wait", (double)waiting);
  if (link->filled + bytes <= link->capacity) return FLOW_OK;
  size_t capacity = 2 * (waiting + bytes);
  void *block;
  FLOW_TRY(flow_alloc(capacity, &block));
  if (waiting > 0) memcpy(block, link->unsent + link->first, waiting);
  flow_free(link->unsent);
  link->unsent = block;
  link->capacity = capacity;
  link->filled = waiting;
  link->first = 0;
  return FLOW_OK;
}

/* The own greeting waits in `unsent` before anything else: the magic and, with a secret, a random nonce; without one the nonce is zeros.
 * Takes the descriptor over also when it fails. */
flow_status flow_link_new(int descriptor, int dialed, const flow_control_functions *control, double until, flow_link **out)
{
  void *block = NULL;
  flow_status status = flow_alloc_zero(sizeof(flow_link), &block);
  flow_link *link = block;
  if (status == FLOW_OK) {
    *link = (flow_link){ .descriptor = descriptor, .number = -1, .dialed = dialed, .control = control, .until = until };
    link->phase = dialed ? FLOW_LINK_CONNECTING : FLOW_LINK_GREETING;
    memcpy(link->own, MAGIC, 8);
    if (control) status = control->nonce(link->own + 8);
    if (status == FLOW_OK) status = reserve(link, FLOW_GREETING_SIZE);
  }
  if (status == FLOW_OK) {
    memcpy(link->unsent, link->own, FLOW_GREETING_SIZE);
    link->filled = FLOW_GREETING_SIZE;
    *out = link;
    return FLOW_OK;
  }
  close(descriptor);
  flow_free(link);
  return status;
}

/* Closes without waiting: what was not sent is lost. finish_link (control_actions.c) is the way that delivers it. */
void flow_link_release(flow_link *link)
{
  if (!link) return;
  close(link->descriptor);
  if (link->control) link->control->close(link->session);
  flow_frame_reader_clear(&link->reader);
  flow_free(link->unsent);
  flow_free(link);
}

/* Sends as much as the socket takes now. FLOW_OK does not mean that all was sent: the rest waits for POLLOUT. */
flow_status flow_link_flush(flow_link *link)
{
  while (link->first < link->filled) {
    ssize_t sent = send(link->descriptor, link->unsent + link->first, link->filled - link->first, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return FLOW_OK;
    if (sent < 0) return flow_fail(FLOW_IO_ERROR, "%s", strerror(errno));
    link->first += (size_t)sent;
  }
  link->first = link->filled = 0;
  return FLOW_OK;
}

/* The frame is complete in the buffer, under the next number, before anything of it is sent, so that a peer that reads slowly never gets
 * frames out of order. */
flow_status flow_link_send(flow_link *link, const uint8_t *contents, size_t count)
{
  const flow_seal *seal = link->session ? link->control->outgoing(link->session) : NULL;
  size_t bytes = flow_frame_size(seal, count);
  FLOW_TRY(reserve(link, bytes));
  FLOW_TRY(flow_frame_write(seal, link->next++, contents, count, link->unsent + link->filled));
  link->filled += bytes;
  return flow_link_flush(link);
}

/* A chief says why it turns somebody away, but cannot where it does not understand who that is. */
static flow_status fail_closed(const flow_link *link)
{
  int nothing_said = link->dialed && link->session && link->reader.number == 0;
  return flow_fail(FLOW_IO_ERROR, nothing_said ? "it closed the connection without a word: is FLOW_SECRET the same in all tasks?"
                                               : "the connection was closed");
}

/* *count 0 with FLOW_OK: nothing has come. The end of the connection is FLOW_IO_ERROR. */
flow_status flow_link_read(flow_link *link, uint8_t *bytes, size_t room, size_t *count)
{
  *count = 0;
  while (1) {
    ssize_t got = recv(link->descriptor, bytes, room, 0);
    if (got > 0) *count = (size_t)got;
    if (got > 0) return FLOW_OK;
    if (got == 0) return fail_closed(link);
    if (errno == EAGAIN || errno == EWOULDBLOCK) return FLOW_OK;
    if (errno != EINTR) return flow_fail(FLOW_IO_ERROR, "%s", strerror(errno));
  }
}

/* In the same time whatever the bytes are. */
static int is_zero(const uint8_t *bytes, size_t count)
{
  uint8_t any = 0;
  for (size_t i = 0; i < count; i++) any |= bytes[i];
  return any == 0;
}

/* The peer's greeting is complete: checks it, and with a secret derives the keys. Whether the secrets are the same shows with the first
 * frame, which does not open if they differ. */
static flow_status begin_frames(flow_link *link, const flow_secret *secret)
{
  if (memcmp(link->peer, MAGIC, 8) != 0)
    return flow_fail(FLOW_CORRUPT_DATA, "the process at that address does not speak flowlua's protocol: is it another program?");
  int sealed = !is_zero(link->peer + 8, FLOW_CONTROL_NONCE);
  if (sealed != (link->control != NULL)) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "it has %s secret, this process has %s: set the same FLOW_SECRET in all tasks",
                     sealed ? "a" : "no", sealed ? "none" : "one");
  }
  const flow_seal *incoming = NULL;
  if (link->control) {
    const uint8_t *own = link->own + 8, *peer = link->peer + 8;
    FLOW_TRY(link->control->open(secret->bytes, secret->count, link->dialed, link->dialed ? own : peer, link->dialed ? peer : own,
                                 &link->session));
    incoming = link->control->incoming(link->session);
  }
  flow_frame_reader_init(&link->reader, incoming, FLOW_FRAME_MOST);
  link->phase = FLOW_LINK_OPEN;
  return FLOW_OK;
}

/* Reads no byte after the greeting: those belong to the first frame. */
flow_status flow_link_greet(flow_link *link, const flow_secret *secret, int *complete)
{
  size_t count;
  *complete = 0;
  FLOW_TRY(flow_link_read(link, link->peer + link->peer_filled, FLOW_GREETING_SIZE - link->peer_filled, &count));
  link->peer_filled += count;
  if (link->peer_filled < FLOW_GREETING_SIZE) return FLOW_OK;
  FLOW_TRY(begin_frames(link, secret));
  *complete = 1;
  return FLOW_OK;
}
