/* sealed_links.c: see sealed_links.h. A frame is four bytes, which say how many follow, little-endian, and these, sealed. Its number, from
 * 0 in each direction, is part of the seal: frames cannot be lost, repeated or exchanged. */
#include "transport/sealed_links.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/futex.h"
#include "base/memory.h"
#include "base/thread.h"

enum { CHUNK = 65536, HEADER = 4, LAST_MILLISECONDS = 1000 };

/* One connection, of the thread alone once it runs. The four buffers are one block, which begins at `out`.
 *
 * In each direction one frame is under way: out[out_at .. out_count) still has to be sent to the network, plain[plain_at ..
 * plain_count) to the rank; nothing more is read from one side before the other has taken that. in[0 .. in_count) is what has come of
 * the next frame. */
typedef struct sealed_link {
  int      near, far;                    /* the rank's side, the network's; -1: it is over */
  void    *session;
  uint64_t sent, heard;                  /* frames */
  uint8_t *out, *in, *plain, *buffer;    /* sealed frames, opened contents, what was read to be sealed */
  size_t   out_count, out_at, in_count, plain_count, plain_at;
  int      near_over, far_over;          /* nothing comes from there any more */
} sealed_link;

struct flow_sealed_links {
  const flow_link_seal *seal;
  flow_thread    thread;
  int wake; /* an eventfd that stop() makes readable; -1: it was not made */
  int            size;
  size_t         frame;                  /* bytes of the longest */
  struct pollfd *polled;                 /* [1 + 2 size] */
  sealed_link    links[];
};

/* ---- one connection ----------------------------------------------------------------------------------------------------------------- */

/* Closing the rank's side is how a rank learns that its connection is over; -1 takes the link out of the thread's list. */
static void end(sealed_link *link)
{
  if (link->near >= 0) close(link->near);
  if (link->far >= 0) close(link->far);
  link->near = link->far = -1;
}

/* 1: bytes were moved, 0: not now, -1: the other side is gone. */
static int moved(ssize_t count)
{
  if (count > 0) return 1;
  return count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) ? 0 : -1;
}

/* Sealed bytes to the other process, as many as its socket takes without waiting. */
static int send_out(sealed_link *link)
{
  ssize_t count = send(link->far, link->out + link->out_at, link->out_count - link->out_at, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (count > 0) link->out_at += (size_t)count;
  return moved(count);
}

/* A frame of what the rank has written, up to CHUNK bytes. The next one is read when this is sent. 1: there is one, 0: nothing now or
 * never again, -1: the link has failed. The end of what the rank writes is passed on to the network. */
static int read_near(const flow_sealed_links *self, sealed_link *link)
{
  ssize_t count = recv(link->near, link->buffer, CHUNK, MSG_DONTWAIT);
  if (count == 0) {
    link->near_over = 1;
    shutdown(link->far, SHUT_WR);
    return 0;
  }
  if (count < 0) return moved(count);
  size_t sealed = (size_t)count + self->seal->overhead;
  flow_put_little_endian(link->out, sealed, HEADER);
  if (self->seal->seal(link->session, link->sent++, link->buffer, (size_t)count, link->out + HEADER) != FLOW_OK) return -1;
  link->out_count = HEADER + sealed;
  link->out_at = 0;
  return 1;
}

/* Opened bytes to this process' end of the link, as many as it takes without waiting. */
static int send_near(sealed_link *link)
{
  ssize_t count = send(link->near, link->plain + link->plain_at, link->plain_count - link->plain_at, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (count > 0) link->plain_at += (size_t)count;
  return moved(count);
}

/* What a stranger has put between two frames ends the connection. Results as read_near. First the header is read alone, then as many
 * bytes as it announces and no more, so that nothing of the next frame has to be kept. A length that no frame can have, and an end in
 * the middle of a frame, are failures. */
static int read_far(const flow_sealed_links *self, sealed_link *link)
{
  size_t wanted = HEADER;
  if (link->in_count >= HEADER) wanted += (size_t)flow_little_endian(link->in, HEADER);
  if (wanted > HEADER && (wanted <= HEADER + self->seal->overhead || wanted > self->frame)) return -1;
  ssize_t count = recv(link->far, link->in + link->in_count, wanted - link->in_count, MSG_DONTWAIT);
  if (count == 0) {
    link->far_over = 1;
    shutdown(link->near, SHUT_WR);
    return link->in_count > 0 ? -1 : 0;
  }
  if (count < 0) return moved(count);
  link->in_count += (size_t)count;
  if (link->in_count == HEADER && flow_little_endian(link->in, HEADER) <= self->seal->overhead) return -1;
  if (wanted == HEADER || link->in_count < wanted) return 1;
  size_t sealed = wanted - HEADER;
  if (self->seal->open(link->session, link->heard++, link->in + HEADER, sealed, link->plain) != FLOW_OK) return -1;
  link->plain_count = sealed - self->seal->overhead;
  link->plain_at = link->in_count = 0;
  return 1;
}

static int sends_out(const sealed_link *link) { return link->out_at < link->out_count; }
static int sends_near(const sealed_link *link) { return link->plain_at < link->plain_count; }

/* Moves what can be moved. Both ways by turns, so that neither waits for the other. A link whose two ends are over, or that failed, is
 * closed; the rank sees its socket end. */
static void pump(const flow_sealed_links *self, sealed_link *link)
{
  int going = 1;
  while (going > 0) {
    int out = sends_out(link) ? send_out(link) : link->near_over ? 0 : read_near(self, link);
    int in = sends_near(link) ? send_near(link) : link->far_over ? 0 : read_far(self, link);
    int over = link->near_over && link->far_over && !sends_out(link) && !sends_near(link);
    if (out < 0 || in < 0 || over) {
      end(link);
      return;
    }
    going = out + in;
  }
}

/* ---- the thread --------------------------------------------------------------------------------------------------------------------- */

/* Wait for no peer that has nothing to send: a connection that has ended would be reported again and again. Returns how many links are
 * left; sending_only: those that still have something to send to the network. A side whose frame is still under way is not read from. */
static int list_polled(const flow_sealed_links *self, int sending_only)
{
  int open = 0;
  self->polled[0] = (struct pollfd){ .fd = sending_only ? -1 : self->wake, .events = POLLIN };
  for (int i = 0; i < self->size; i++) {
    const sealed_link *link = &self->links[i];
    short near = (short)((sends_out(link) || link->near_over ? 0 : POLLIN) | (sends_near(link) ? POLLOUT : 0));
    short far = (short)((sends_near(link) || link->far_over ? 0 : POLLIN) | (sends_out(link) ? POLLOUT : 0));
    self->polled[1 + 2 * i] = (struct pollfd){ .fd = near ? link->near : -1, .events = near };
    self->polled[2 + 2 * i] = (struct pollfd){ .fd = far ? link->far : -1, .events = far };
    open += link->near >= 0 && (!sending_only || sends_out(link) || !link->near_over);
  }
  return open;
}

/* When the end has come, what ranks have written is still sent, for LAST_MILLISECONDS at most. poll() waits without end until then:
 * what the ranks write and what comes in wakes it, and so does `wake`. */
static void *run(void *argument)
{
  flow_sealed_links *self = argument;
  int64_t end_at = 0;
  while (list_polled(self, end_at != 0) || end_at == 0) {
    int64_t left = end_at == 0 ? -1 : (end_at - flow_now_nanoseconds()) / 1000000;
    if (end_at != 0 && left <= 0) break;
    if (poll(self->polled, 1 + 2 * (nfds_t)self->size, (int)left) < 0 && errno != EINTR) break;
    if (self->polled[0].revents) end_at = flow_now_nanoseconds() + LAST_MILLISECONDS * (int64_t)1000000;
    for (int i = 0; i < self->size; i++) {
      if (self->links[i].near >= 0 && (self->polled[1 + 2 * i].revents || self->polled[2 + 2 * i].revents)) pump(self, &self->links[i]);
    }
  }
  return NULL;
}

/* ---- starting and stopping ---------------------------------------------------------------------------------------------------------- */

/* After the thread has ended, or before it was started: sockets, sessions and buffers of all links. The sockets that ranks hold are
 * theirs. */
static void release(flow_sealed_links *self)
{
  for (int i = 0; i < self->size; i++) {
    sealed_link *link = &self->links[i];
    end(link);
    if (link->session) self->seal->close(link->session);
    flow_free(link->out);
  }
  if (self->wake >= 0) close(self->wake);
  flow_free(self->polled);
  flow_free(self);
}

static flow_status fail_errno(void)
{
  return flow_fail(FLOW_IO_ERROR, "connections cannot be encrypted: %s", strerror(errno));
}

/* The network's socket becomes the link's; the rank gets one end of a pair in its place. After a failure *socket is -1, and release()
 * closes what the link has. */
static flow_status open_link(flow_sealed_links *self, int i, int *socket, const uint8_t *key, int dialed)
{
  sealed_link *link = &self->links[i];
  int ends[2];
  void *block;
  link->far = *socket;
  *socket = -1;
  FLOW_TRY(flow_alloc(2 * self->frame + 2 * CHUNK, &block));
  link->out = block;
  link->in = link->out + self->frame;
  link->plain = link->in + self->frame;
  link->buffer = link->plain + CHUNK;
  FLOW_TRY(self->seal->begin(self->seal->state, key, dialed, &link->session));
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) return fail_errno();
  link->near = ends[0];
  *socket = ends[1];
  return FLOW_OK;
}

/* After a failed start: the sockets that no link has taken over, and the ranks' ends of those that were. */
static void close_all(int size, int *sockets)
{
  for (int i = 0; i < size; i++) {
    if (sockets[i] >= 0) close(sockets[i]);
    sockets[i] = -1;
  }
}

/* Takes the sockets over and puts the rank's ends of new pairs in their places. On failure all are closed and -1. */
flow_status flow_sealed_links_start(int size, int *sockets, const uint8_t (*keys)[FLOW_LINK_KEY], const int *dialed,
                                    const flow_link_seal *seal, flow_sealed_links **out)
{
  void *block;
  *out = NULL;
  flow_status status = flow_alloc_zero(sizeof(flow_sealed_links) + sizeof(sealed_link) * (size_t)size, &block);
  if (status != FLOW_OK) {
    close_all(size, sockets);
    return status;
  }
  flow_sealed_links *self = block;
  self->seal = seal;
  self->size = size;
  self->frame = HEADER + CHUNK + seal->overhead;
  for (int i = 0; i < size; i++) self->links[i].near = self->links[i].far = -1;
  self->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  status = self->wake >= 0 ? flow_alloc((size_t)(1 + 2 * size) * sizeof *self->polled, (void **)&self->polled) : fail_errno();
  for (int i = 0; i < size && status == FLOW_OK; i++) {
    if (sockets[i] >= 0) status = open_link(self, i, &sockets[i], keys[i], dialed[i]);
  }
  int error = status == FLOW_OK ? flow_thread_start(&self->thread, "flow-seal", run, self) : 0;
  if (error) status = flow_fail(FLOW_IO_ERROR, "the thread that encrypts cannot start: %s", strerror(error));
  if (status == FLOW_OK) {
    *out = self;
    return FLOW_OK;
  }
  close_all(size, sockets);
  release(self);
  return status;
}

void flow_sealed_links_stop(flow_sealed_links *self)
{
  const uint64_t one = 1;
  if (!self) return;
  ssize_t said = write(self->wake, &one, sizeof one);
  (void)said;                                     /* it is the first, for which there is room */
  flow_thread_join(&self->thread);
  release(self);
}
