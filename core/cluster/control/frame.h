/* frame.h: messages on a stream of bytes. A frame is
 *   4 bytes   how many bytes follow, little-endian
 *   8 bytes   its number: 0, 1, 2, ... in each direction of a connection
 *   ...       the contents, sealed
 * Numbers are checked, and sealing binds the contents to the number, so that frames can neither be lost, repeated nor exchanged. What
 * sealing is, is the caller's: two functions, of which the plugin "control" has those of libsodium. Without them contents are plain. */
#ifndef FLOW_CLUSTER_CONTROL_FRAME_H
#define FLOW_CLUSTER_CONTROL_FRAME_H

#include "cluster/control/message.h"

enum { FLOW_FRAME_HEADER = 12, FLOW_FRAME_MOST_OVERHEAD = 64, FLOW_FRAME_MOST = FLOW_MOST_MESSAGE + FLOW_FRAME_MOST_OVERHEAD };

typedef struct flow_seal {
  size_t overhead;                         /* bytes that sealing adds, at most FLOW_FRAME_MOST_OVERHEAD */
  /* contents + overhead bytes at `to`. */
  flow_status (*seal)(void *state, uint64_t number, const uint8_t *contents, size_t count, uint8_t *to);
  /* count - overhead bytes at `to`, which may be `sealed`; FLOW_CORRUPT_DATA if this is not what seal() made of them under that number. */
  flow_status (*open)(void *state, uint64_t number, const uint8_t *sealed, size_t count, uint8_t *to);
  void *state;
} flow_seal;

/* The bytes of a frame with contents of that many. seal: NULL is plain. */
size_t flow_frame_size(const flow_seal *seal, size_t contents);
/* Makes the frame at `to`. */
flow_status flow_frame_write(const flow_seal *seal, uint64_t number, const uint8_t *contents, size_t count, uint8_t *to);

/* One direction of a connection. Memory: what one frame of at most `most` bytes takes. */
typedef struct flow_frame_reader {
  const flow_seal *seal;
  size_t           most;                   /* of a frame after its length; small until the peer is known */
  uint64_t         number;                 /* of the next frame */
  /* buffer[0 .. filled) has come of the frame under way, header included */
  uint8_t         *buffer;
  size_t           filled, capacity;
} flow_frame_reader;

/* seal: borrowed; NULL: frames are not sealed. clear releases the buffer; the reader may then read another connection with this seal. */
void flow_frame_reader_init(flow_frame_reader *reader, const flow_seal *seal, size_t most);
void flow_frame_reader_clear(flow_frame_reader *reader);
/* Takes bytes from the stream until a frame is complete. *used: how many of them were taken; *contents: the opened contents, *size bytes,
 * valid until the next call, or NULL when all bytes were taken and more are needed. FLOW_CORRUPT_DATA: the connection is to be closed. */
flow_status flow_frame_reader_feed(flow_frame_reader *reader, const uint8_t *bytes, size_t count, size_t *used, const uint8_t **contents,
                                   size_t *size);

#endif
