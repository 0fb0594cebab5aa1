/* frame.c: length, number, sealed contents. See frame.h. The reader is the first code that bytes of a stranger reach: it checks the
 * length before it takes memory, takes memory only for bytes that have come, and hands on nothing that has not been opened. */
#include "cluster/control/frame.h"

#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"

enum { LENGTH_BYTES = 4, NUMBER_BYTES = 8, FIRST_CAPACITY = 512 };

static size_t overhead(const flow_seal *seal) { return seal ? seal->overhead : 0; }

size_t flow_frame_size(const flow_seal *seal, size_t contents)
{
  return FLOW_FRAME_HEADER + contents + overhead(seal);
}

/* Writes flow_frame_size(seal, count) bytes. */
flow_status flow_frame_write(const flow_seal *seal, uint64_t number, const uint8_t *contents, size_t count, uint8_t *to)
{
  if (count > FLOW_MOST_MESSAGE) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "a frame of %.0f bytes: at most %d are sent", (double)count, FLOW_MOST_MESSAGE);
  }
  flow_put_little_endian(to, NUMBER_BYTES + count + overhead(seal), LENGTH_BYTES);
  flow_put_little_endian(to + LENGTH_BYTES, number, NUMBER_BYTES);
  if (seal) return seal->seal(seal->state, number, contents, count, to + FLOW_FRAME_HEADER);
  memcpy(to + FLOW_FRAME_HEADER, contents, count);
  return FLOW_OK;
}

void flow_frame_reader_init(flow_frame_reader *reader, const flow_seal *seal, size_t most)
{
  *reader = (flow_frame_reader){ .seal = seal, .most = most };
}

/* Releases the buffer; the reader can be used for another connection under the same seal. */
void flow_frame_reader_clear(flow_frame_reader *reader)
{
  flow_free(reader->buffer);
  *reader = (flow_frame_reader){ .seal = reader->seal, .most = reader->most };
}

/* Takes bytes until `wanted` are in the buffer, which grows as they come: a length alone takes no memory. */
static flow_status fill(flow_frame_reader *reader, size_t wanted, const uint8_t **bytes, size_t *count, int *complete)
{
  size_t missing = wanted - reader->filled, taken = *count < missing ? *count : missing, needed = reader->filled + taken;
  if (needed > reader->capacity) {
    size_t capacity = needed > FIRST_CAPACITY / 2 ? 2 * needed : FIRST_CAPACITY;
    void *grown;
    FLOW_TRY(flow_alloc(capacity, &grown));
    if (reader->filled > 0) memcpy(grown, reader->buffer, reader->filled);
    flow_free(reader->buffer);
    reader->buffer = grown;
    reader->capacity = capacity;
  }
  if (taken > 0) memcpy(reader->buffer + reader->filled, *bytes, taken);
  reader->filled = needed;
  *bytes += taken;
  *count -= taken;
  *complete = reader->filled == wanted;
  return FLOW_OK;
}

/* The number is not secret, but it is bound to the contents by the seal: a frame that is repeated or left out does not open under the
 * number that is next. reader->most bounds the memory that a stranger's length can ask for. */
static flow_status check_header(const flow_frame_reader *reader, uint64_t length, uint64_t number)
{
  if (length < NUMBER_BYTES + overhead(reader->seal) || length > NUMBER_BYTES + reader->most) {
    return flow_fail(FLOW_CORRUPT_DATA, "a frame says that it has %.0f bytes, at most %.0f are possible: the peer is not flowlua",
                     (double)length, (double)reader->most);
  }
  if (number == reader->number) return FLOW_OK;
  return flow_fail(FLOW_CORRUPT_DATA, "frame %.0f comes where %.0f is next: frames were lost or repeated", (double)number,
                   (double)reader->number);
}

/* Called again with what is left of `bytes` until it takes all of them. The first `fill` waits for a header, the second for the whole
 * frame; both go on where an earlier call stopped. */
flow_status flow_frame_reader_feed(flow_frame_reader *reader, const uint8_t *bytes, size_t count, size_t *used, const uint8_t **contents,
                                   size_t *size)
{
  size_t left = count;
  int complete;
  *contents = NULL;
  *used = *size = 0;
  if (reader->filled < FLOW_FRAME_HEADER) {
    FLOW_TRY(fill(reader, FLOW_FRAME_HEADER, &bytes, &left, &complete));
    *used = count - left;
    if (!complete) return FLOW_OK;
  }
  uint64_t length = flow_little_endian(reader->buffer, LENGTH_BYTES);
  FLOW_TRY(check_header(reader, length, flow_little_endian(reader->buffer + LENGTH_BYTES, NUMBER_BYTES)));
  FLOW_TRY(fill(reader, LENGTH_BYTES + (size_t)length, &bytes, &left, &complete));
  *used = count - left;
  if (!complete) return FLOW_OK;
  uint8_t *sealed = reader->buffer + FLOW_FRAME_HEADER;
  size_t sealed_bytes = (size_t)length - NUMBER_BYTES;
  if (reader->seal) FLOW_TRY(reader->seal->open(reader->seal->state, reader->number, sealed, sealed_bytes, sealed));
  reader->number++;
  reader->filled = 0;                       /* the contents stay where they are until the next call */
  *contents = sealed;
  *size = sealed_bytes - overhead(reader->seal);
  return FLOW_OK;
}
