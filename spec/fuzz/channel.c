/* channel.c: what a network may bring to a parameter server: messages of a text and bytes. The first byte says whether there is memory that
 * both processes share. Then come pieces: a byte (even: the contents of a frame, whose length and number are put before it; odd: bytes as
 * they are), two of length, and as many.
 * sources: core/cluster/servers/channel.c core/cluster/control/link.c core/cluster/control/frame.c core/cluster/control/secret.c
 * sources: core/transport/shared_memory.c
 */
#include "fuzz.h"
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include "cluster/control/frame.h"
#include "cluster/servers/channel.h"

enum { CHANNEL_MOST = 1 << 18, CHANNEL_REGION = 4096 };

/* Takes what is there; returns 0 once the channel is of no use any more. A message is read to its last byte. */
static int take_messages(flow_channel *channel, uint64_t *sum)
{
  while (flow_channel_advance(channel, NULL) == FLOW_OK) {
    if (!channel->complete) return 1;
    if (channel->text[channel->text_bytes] != 0 || channel->received != channel->bulk_bytes) abort();
    for (int64_t i = 0; i < channel->bulk_bytes; i++) *sum += (uint8_t)channel->bulk[i];
    flow_channel_next(channel);
  }
  return 0;
}

/* Returns 0 where the other end has closed, or the channel refuses what came. */
static int give(flow_channel *channel, int descriptor, const uint8_t *bytes, size_t count, uint64_t *sum)
{
  while (count > 0) {
    ssize_t sent = send(descriptor, bytes, count, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) return 0;
    if (sent > 0) {
      bytes += sent;
      count -= (size_t)sent;
    }
    if (!take_messages(channel, sum)) return 0;
  }
  return 1;
}

static void channel(const uint8_t *bytes, size_t count)
{
  static const uint8_t greeting[FLOW_GREETING_SIZE] = "flowctl1";
  int ends[2], shared = -1;
  uint64_t number = 0, sum = 0;
  flow_channel *channel;
  char where[160];
  if (count < 1) return;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) != 0) abort();
  if (flow_channel_new(ends[0], 0, NULL, 1e9, &channel) != FLOW_OK) abort();
  channel->most = CHANNEL_MOST;
  if (bytes[0] & 1) flow_channel_make_region(channel, CHANNEL_REGION, where, sizeof where, &shared);
  int open = give(channel, ends[1], greeting, sizeof greeting, &sum);
  for (size_t at = 1; open && at + 3 <= count;) {
    int is_frame = !(bytes[at] & 1);
    size_t size = bytes[at + 1] + 256u * bytes[at + 2];
    at += 3;
    if (size > count - at) size = count - at;
    uint8_t *piece = malloc(FLOW_FRAME_HEADER + size);
    if (is_frame) {
      if (flow_frame_write(NULL, number++, bytes + at, size, piece) != FLOW_OK) abort();
    } else memcpy(piece, bytes + at, size);
    open = give(channel, ends[1], piece, is_frame ? flow_frame_size(NULL, size) : size, &sum);
    free(piece);
    at += size;
  }
  close(ends[1]);
  if (open && take_messages(channel, &sum)) abort();      /* the end of the stream is an error */
  if (shared >= 0) close(shared);
  flow_channel_release(channel);
}

FUZZ_TARGET(channel)
