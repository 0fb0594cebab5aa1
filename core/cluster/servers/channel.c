/* channel.c: messages of a text and bytes, over a link that does not block. See channel.h.
 *
 * A message is: a frame with BYTES_SIZE bytes of length, one byte that says where the bytes are (flow_channel_bytes), and the text;
 * then, for IN_CONNECTION, the bytes themselves, outside of any frame, so that they are neither copied nor sealed. For the other two
 * they are in the memory that both processes share. STREAMED ones are copied in while the receiver copies them out: a counter after the
 * region says how many are there, stored with release and loaded with acquire order. Both processes may write the region at any time, so
 * nothing that is read from it decides about memory: the counter is limited, and lengths come from the frame. */
#include "cluster/servers/channel.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "transport/shared.h"

/* What a frame begins with: how many bytes come after it, and where they are (flow_channel_bytes). The text comes next. */
enum { BYTES_SIZE = 8, HEAD = BYTES_SIZE + 1, PIECE = 1 << 20, STREAM_PIECE = 1 << 18 };

/* The bytes of a message come through the connection, are in the memory of both, or get there piece after piece. */
enum flow_channel_bytes { IN_CONNECTION, IN_REGION, STREAMED };

/* Memory of both has room for this after the bytes: how many of a streamed message are there. */
enum { REGION_TAIL = 64 };

/* The counter of a streamed message, in the tail of the region. */
static int64_t *progress_of(const flow_channel *channel)
{
  return (int64_t *)(void *)(channel->region + (channel->region_bytes + 7) / 8 * 8);
}

/* descriptor: a connected or connecting socket, which the channel owns from now on, also after a failure. dialed: this end has called.
 * until: when the greeting has to be over, in seconds of the monotonic clock. *out: for flow_channel_release. */
flow_status flow_channel_new(int descriptor, int dialed, const flow_control_functions *control, double until, flow_channel **out)
{
  void *block = NULL, *words = NULL, *read = NULL, *frame = NULL;
  flow_link *link;
  FLOW_TRY(flow_link_new(descriptor, dialed, control, until, &link));
  flow_status status = flow_alloc_zero(sizeof(flow_channel), &block);
  if (status == FLOW_OK) status = flow_alloc(FLOW_CHANNEL_TEXT + 1, &words);
  if (status == FLOW_OK) status = flow_alloc(FLOW_CHANNEL_READ, &read);
  if (status == FLOW_OK) status = flow_alloc(HEAD + FLOW_CHANNEL_TEXT, &frame);
  if (status != FLOW_OK) {
    flow_free(read);
    flow_free(words);
    flow_free(block);
    flow_link_release(link);
    return status;
  }
  *out = block;
  **out = (flow_channel){ .link = link, .words = words, .frame = frame, .read = read };
  return FLOW_OK;
}

/* What is not sent yet is lost (flow_channel_is_sent). */
void flow_channel_release(flow_channel *channel)
{
  if (!channel) return;
  flow_link_release(channel->link);
  flow_channel_leave_region(channel);
  flow_free(channel->room);
  flow_free(channel->words);
  flow_free(channel->frame);
  flow_free(channel->read);
  flow_free(channel->sending);
  flow_free(channel);
}

/* The peer's mapping stays until it leaves, too. */
void flow_channel_leave_region(flow_channel *channel)
{
  if (channel->region) munmap(channel->region, (size_t)channel->region_bytes + REGION_TAIL);
  channel->region = NULL;
  channel->region_bytes = 0;
}

/* The greeting is over: both ends have the same secret, or need none. */
int flow_channel_is_open(const flow_channel *channel) { return channel->link->phase == FLOW_LINK_OPEN; }

/* Whether the next message can be sent, and nothing is lost by a close. */
int flow_channel_is_sent(const flow_channel *channel)
{
  return channel->link->first == channel->link->filled && channel->sent == channel->sending_bytes;
}

/* Nothing is read while a message waits to be taken: the sender waits for its answer, and what it may send meanwhile stays in the
 * socket. */
short flow_channel_events(const flow_channel *channel)
{
  if (channel->link->phase == FLOW_LINK_CONNECTING) return POLLOUT;
  return (short)((channel->complete ? 0 : POLLIN) | (flow_channel_is_sent(channel) ? 0 : POLLOUT));
}

/* ---- sending ------------------------------------------------------------------------------------------------------------------------- */

/* Sends as much as the socket takes: first the frame, then the bytes. */
static flow_status send_more(flow_channel *channel)
{
  FLOW_TRY(flow_link_flush(channel->link));
  while (channel->link->first == channel->link->filled && channel->sent < channel->sending_bytes) {
    int64_t left = channel->sending_bytes - channel->sent;
    ssize_t sent = send(channel->link->descriptor, channel->sending + channel->sent, (size_t)(left < PIECE ? left : PIECE), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return FLOW_OK;
    if (sent < 0) return flow_fail(FLOW_IO_ERROR, "%s", strerror(errno));
    channel->sent += sent;
  }
  return FLOW_OK;
}

/* Room for `bytes` bytes; what was in it is lost. */
static flow_status reserve(char **room, int64_t *room_bytes, int64_t bytes)
{
  void *block;
  if (bytes <= *room_bytes) return FLOW_OK;
  FLOW_TRY(flow_alloc((size_t)bytes, &block));
  flow_free(*room);
  *room = block;
  *room_bytes = bytes;
  return FLOW_OK;
}

/* *out: bytes of all pieces. Sizes come from Lua. */
static flow_status sum_pieces(const flow_pieces *pieces, int64_t *out)
{
  int64_t bytes = 0;
  for (int i = 0; i < pieces->count; i++) {
    if (pieces->bytes[i] < 0 || __builtin_add_overflow(bytes, pieces->bytes[i], &bytes)) {
      return flow_fail(FLOW_INVALID_ARGUMENT, "a message to a parameter server: piece %d has %" PRId64 " bytes", i + 1,
                       pieces->bytes[i]);
    }
  }
  *out = bytes;
  return FLOW_OK;
}

/* `to` has room for all of them (sum_pieces). */
static void copy_pieces(char *to, const flow_pieces *pieces)
{
  for (int i = 0; i < pieces->count; i++) {
    if (pieces->bytes[i] > 0) memcpy(to, pieces->at[i], (size_t)pieces->bytes[i]);
    to += pieces->bytes[i];
  }
}

/* Copies the pieces into the region and says after every STREAM_PIECE bytes how far it is. 256 KiB stay in the second-level cache
 * between the two copies. */
static void stream_pieces(flow_channel *channel, const flow_pieces *pieces)
{
  int64_t there = 0, told = 0;
  for (int i = 0; i < pieces->count; i++) {
    for (int64_t from = 0; from < pieces->bytes[i];) {
      int64_t left = pieces->bytes[i] - from, part = left < STREAM_PIECE ? left : STREAM_PIECE;
      memcpy(channel->region + there, (const char *)pieces->at[i] + from, (size_t)part);
      from += part;
      there += part;
      if (there - told < STREAM_PIECE) continue;
      __atomic_store_n(progress_of(channel), told = there, __ATOMIC_RELEASE);
    }
  }
  __atomic_store_n(progress_of(channel), there, __ATOMIC_RELEASE);
}

/* A streamed message is announced first, by its frame, and copied after that; others are copied first. The pieces are copied before the
 * call returns: the caller may change them. What the socket does not take now is sent by flow_channel_advance. FLOW_INVALID_STATE: the
 * message before is still on its way. */
flow_status flow_channel_send(flow_channel *channel, const char *text, size_t text_bytes, const flow_pieces *pieces)
{
  int64_t bytes = 0;
  if (text_bytes > FLOW_CHANNEL_TEXT) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "a message to a parameter server has a text of %zu bytes, at most %d are sent", text_bytes,
                     FLOW_CHANNEL_TEXT);
  }
  if (!flow_channel_is_sent(channel)) return flow_fail(FLOW_INVALID_STATE, "the previous message is not sent yet");
  FLOW_TRY(sum_pieces(pieces, &bytes));
  int shared = bytes > 0 && channel->region && bytes <= channel->region_bytes, source = !shared ? IN_CONNECTION
    : channel->streams && bytes > STREAM_PIECE ? STREAMED : IN_REGION;
  if (source == IN_CONNECTION) FLOW_TRY(reserve(&channel->sending, &channel->sending_room, bytes));
  if (source == STREAMED) __atomic_store_n(progress_of(channel), 0, __ATOMIC_RELEASE);
  else copy_pieces(shared ? channel->region : channel->sending, pieces);
  flow_put_little_endian(channel->frame, (uint64_t)bytes, BYTES_SIZE);
  channel->frame[BYTES_SIZE] = (uint8_t)source;
  if (text_bytes > 0) memcpy(channel->frame + HEAD, text, text_bytes);
  channel->sending_bytes = shared ? 0 : bytes;
  channel->sent = 0;
  FLOW_TRY(flow_link_send(channel->link, channel->frame, HEAD + text_bytes));
  flow_status status = send_more(channel);
  if (source == STREAMED && status == FLOW_OK) stream_pieces(channel, pieces);
  return status;
}

/* ---- receiving ----------------------------------------------------------------------------------------------------------------------- */

/* The text has come, and all the bytes that it announced. */
static int is_whole(const flow_channel *channel) { return channel->text && channel->received == channel->bulk_bytes; }

/* The bytes of the present message are in the region. */
static int is_shared(const flow_channel *channel) { return channel->text && channel->source != IN_CONNECTION; }

/* Where the next message's bytes should go, if there are exactly as many; else they go to memory of the channel. The list is copied, the
 * places are the caller's and stay valid until the message is whole. */
void flow_channel_expect(flow_channel *channel, const flow_places *places) { channel->into = *places; }

/* Whether bytes may come without the socket saying so: the caller looks again without sleeping. */
int flow_channel_is_streaming(const flow_channel *channel) { return is_shared(channel) && !channel->complete; }

/* Whether the message's bytes go where they were expected. The sizes of places are the caller's own, which do not overflow. */
static int fits_places(const flow_channel *channel, uint64_t bytes)
{
  uint64_t expected = 0;
  for (int i = 0; i < channel->into.count; i++) expected += (uint64_t)channel->into.bytes[i];
  return channel->into.count > 0 && bytes > 0 && expected == bytes;
}

/* A frame has come: what it says of the bytes after it is checked before there is memory for them. */
static flow_status begin_message(flow_channel *channel, const uint8_t *contents, size_t size)
{
  if (size < HEAD || size > HEAD + FLOW_CHANNEL_TEXT) return flow_fail(FLOW_CORRUPT_DATA, "a message of %zu bytes", size);
  const uint64_t bytes = flow_little_endian(contents, BYTES_SIZE);
  const int source = contents[BYTES_SIZE], shared = source != IN_CONNECTION, fits = fits_places(channel, bytes);
  if (source > STREAMED) return flow_fail(FLOW_CORRUPT_DATA, "a message whose bytes are in the place %d", source);
  if (shared ? bytes > (uint64_t)channel->region_bytes : bytes > (uint64_t)channel->most) {
    return flow_fail(FLOW_CORRUPT_DATA, "a message of %.0f bytes, at most %.0f are taken", (double)bytes,
                     (double)(shared ? channel->region_bytes : channel->most));
  }
  if (!shared && !fits) FLOW_TRY(reserve(&channel->room, &channel->room_bytes, (int64_t)bytes));
  channel->text_bytes = size - HEAD;
  memcpy(channel->words, contents + HEAD, channel->text_bytes);
  channel->words[channel->text_bytes] = '\0';
  channel->text = (const uint8_t *)channel->words;
  channel->bulk = fits ? NULL : shared ? channel->region : channel->room;
  channel->bulk_bytes = (int64_t)bytes;
  channel->source = bytes > 0 ? source : IN_CONNECTION;
  channel->received = channel->place_filled = channel->place = 0;
  return FLOW_OK;
}

/* Where the next byte of the message belongs, and how many can follow it there: 0 after the last. NULL or an address that is not used comes
 * with room 0. */
static char *next_place(flow_channel *channel, int64_t *room)
{
  if (channel->bulk || channel->received == channel->bulk_bytes) {
    *room = channel->bulk_bytes - channel->received;
    return channel->bulk + channel->received;
  }
  while (channel->place_filled == channel->into.bytes[channel->place]) {
    channel->place++;
    channel->place_filled = 0;
  }
  *room = channel->into.bytes[channel->place] - channel->place_filled;
  return channel->into.at[channel->place] + channel->place_filled;
}

/* place_filled counts only where bytes go to places, and is not looked at elsewhere. */
static void count_received(flow_channel *channel, int64_t bytes)
{
  channel->received += bytes;
  channel->place_filled += bytes;
}

/* What is in the memory of both by now. The other process may write any number there. So the number is only an upper bound here: a
 * larger one takes all that the frame has announced, a smaller or negative one nothing. */
static void take_shared(flow_channel *channel)
{
  int64_t there = channel->source == STREAMED ? __atomic_load_n(progress_of(channel), __ATOMIC_ACQUIRE) : channel->bulk_bytes, room;
  if (there > channel->bulk_bytes) there = channel->bulk_bytes;
  while (channel->received < there) {
    char *to = next_place(channel, &room);
    if (room > there - channel->received) room = there - channel->received;
    if (!channel->bulk) memcpy(to, channel->region + channel->received, (size_t)room);
    count_received(channel, room);
  }
}

/* Takes what was read: a frame, or bytes. Of what was read: the rest of a message's bytes if one has begun, else a frame. */
static flow_status take_read(flow_channel *channel)
{
  const uint8_t *contents;
  size_t used, size;
  if (channel->text) {
    int64_t there = (int64_t)(channel->filled - channel->first), room;
    char *to = next_place(channel, &room);
    size_t taken = (size_t)(there < room ? there : room);
    if (taken > 0) memcpy(to, channel->read + channel->first, taken);
    channel->first += taken;
    count_received(channel, (int64_t)taken);
    return FLOW_OK;
  }
  const uint8_t *bytes = channel->read + channel->first;
  FLOW_TRY(flow_frame_reader_feed(&channel->link->reader, bytes, channel->filled - channel->first, &used, &contents, &size));
  channel->first += used;
  return contents ? begin_message(channel, contents, size) : FLOW_OK;
}

/* What the socket has: straight to where it belongs, if that is much. *count 0: the socket has nothing now. `read` is empty whenever
 * this is called (receive_more). */
static flow_status read_more(flow_channel *channel, size_t *count)
{
  int64_t room = 0;
  char *to = channel->text && !is_shared(channel) ? next_place(channel, &room) : NULL;
  if (room > FLOW_CHANNEL_READ) {
    FLOW_TRY(flow_link_read(channel->link, (uint8_t *)to, (size_t)room, count));
    count_received(channel, (int64_t)*count);
    return FLOW_OK;
  }
  FLOW_TRY(flow_link_read(channel->link, channel->read, FLOW_CHANNEL_READ, count));
  channel->first = 0;
  channel->filled = *count;
  return FLOW_OK;
}

/* While bytes are streamed the socket is read, too, since the other end may be gone; one that closes has streamed all it would. */
static flow_status receive_more(flow_channel *channel)
{
  size_t count = 1;
  while (count > 0) {
    while (channel->first < channel->filled && !is_shared(channel) && !is_whole(channel)) FLOW_TRY(take_read(channel));
    if (is_shared(channel)) take_shared(channel);
    channel->complete = is_whole(channel);
    if (channel->complete) return FLOW_OK;
    if (channel->first < channel->filled) return flow_fail(FLOW_CORRUPT_DATA, "bytes came before the previous message was whole");
    flow_status status = read_more(channel, &count);
    if (status == FLOW_OK) continue;
    if (is_shared(channel)) take_shared(channel);
    channel->complete = is_whole(channel);
    return channel->complete ? FLOW_OK : status;
  }
  return FLOW_OK;
}

/* `room` stays, for the next message of that size. Called when the message before was handled. */
void flow_channel_next(flow_channel *channel)
{
  channel->text = NULL;
  channel->complete = 0;
  channel->bulk_bytes = channel->received = 0;
  channel->into.count = 0;
}

/* The end of a connect that did not block. */
static flow_status finish_dialing(flow_link *link)
{
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(link->descriptor, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error) return flow_fail(FLOW_IO_ERROR, "%s", strerror(error));
  link->phase = FLOW_LINK_GREETING;
  return FLOW_OK;
}

/* One turn after poll: connects, greets, sends, receives, each as far as it goes without waiting. FLOW_IO_ERROR: the other end is gone;
 * FLOW_CORRUPT_DATA: it sends what no end of this protocol sends. */
flow_status flow_channel_advance(flow_channel *channel, const flow_secret *secret)
{
  int complete;
  if (channel->link->phase == FLOW_LINK_CONNECTING) FLOW_TRY(finish_dialing(channel->link));
  FLOW_TRY(send_more(channel));
  if (channel->link->phase == FLOW_LINK_GREETING) FLOW_TRY(flow_link_greet(channel->link, secret, &complete));
  return flow_channel_is_open(channel) ? receive_more(channel) : FLOW_OK;
}

/* ---- memory of both processes -------------------------------------------------------------------------------------------------------- */

/* A channel has one region at most. `where` is a line of four numbers: the process, its descriptor, and the secret at the memory's
 * start. */
flow_status flow_channel_make_region(flow_channel *channel, int64_t bytes, char *where, size_t size, int *descriptor)
{
  flow_shared_file file;
  char *memory = channel->region ? NULL : flow_shared_memory_make((size_t)bytes + REGION_TAIL, &file);
  if (!memory) return flow_fail(FLOW_UNSUPPORTED, "this process cannot share %.0f bytes of memory", (double)bytes);
  channel->region = memory;
  channel->region_bytes = bytes;
  *descriptor = (int)file.descriptor;
  snprintf(where, size, "%" PRId64 " %" PRId64 " %" PRIx64 " %" PRIx64, file.process, file.descriptor, file.secret[0], file.secret[1]);
  return FLOW_OK;
}

/* `where` and `bytes` come from the peer: the memory has to be as large as it says (flow_shared_memory_open) and within `most`. */
flow_status flow_channel_open_region(flow_channel *channel, int64_t bytes, const char *where)
{
  flow_shared_file file;
  const int found = sscanf(where, "%" SCNd64 " %" SCNd64 " %" SCNx64 " %" SCNx64, &file.process, &file.descriptor, &file.secret[0],
                           &file.secret[1]);
  if (channel->region || bytes <= 0 || bytes > channel->most || found != 4) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "no memory of another process can be opened by \"%.80s\"", where);
  }
  channel->region = flow_shared_memory_open((size_t)bytes + REGION_TAIL, &file);
  if (!channel->region) return flow_fail(FLOW_UNSUPPORTED, "the memory of process %" PRId64 " cannot be shared", file.process);
  channel->region_bytes = bytes;
  return FLOW_OK;
}
