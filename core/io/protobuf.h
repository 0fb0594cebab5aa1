/* protobuf.h: protobuf's wire format (protobuf: Encoding): reading fields where they are, and messages under construction.
 * What the fields mean is the caller's matter: a format (tf.train.Example, TensorBoard's events, ONNX) names its numbers itself.
 *
 * Reading
 *   flow_bytes wire = flow_bytes_of(bytes, count);
 *   while (flow_bytes_left(&wire) > 0) {
 *     flow_wire_field field;
 *     if (!flow_wire_next(&wire, &field)) return flow_fail(FLOW_CORRUPT_DATA, ...);      cut off or malformed
 *     if (field.number == 1 && field.type == FLOW_WIRE_DELIMITED) ... field.content      a text, bytes, packed numbers or a message
 *   }
 *
 * Writing: the calls append; the first failure (memory) stays in the message, so that only the end has to be asked.
 *   flow_message message = { 0 };
 *   flow_message_double(&message, 1, 0.5);
 *   flow_message_open(&message, 5);                           field 5 is a message ...
 *   flow_message_text(&message, 1, "loss");
 *   flow_message_lend(&message, 9, weights, bytes);           large contents are not copied; they must live until the message is released
 *   flow_message_close(&message);                             ... that ends here
 *   flow_status status = flow_message_write(&message, &sink); or flow_message_copy() into a block of flow_message_size() bytes
 *   flow_message_release(&message); */
#ifndef FLOW_IO_PROTOBUF_H
#define FLOW_IO_PROTOBUF_H

#include "base/bytes.h"
#include "io/file.h"

typedef enum flow_wire_type {
  FLOW_WIRE_VARINT = 0, FLOW_WIRE_FIXED64 = 1, FLOW_WIRE_DELIMITED = 2, FLOW_WIRE_GROUP = 3, FLOW_WIRE_GROUP_END = 4, FLOW_WIRE_FIXED32 = 5
} flow_wire_type;

/* ---- reading ---- */

/* A field that was read. It owns nothing: `content` points into the bytes that were read. */
typedef struct flow_wire_field {
  uint64_t   number;
  int        type;         /* flow_wire_type; GROUP: one was passed over, with all that is in it */
  uint64_t   value;        /* VARINT, FIXED32, FIXED64: the bits */
  flow_bytes content;      /* DELIMITED */
} flow_wire_field;

/* 0 when the bytes end too early or the number is longer than 10 bytes. */
static inline int flow_wire_varint(flow_bytes *wire, uint64_t *value)
{
  *value = 0;
  for (int shift = 0; shift < 70 && flow_bytes_left(wire) > 0; shift += 7) {
    unsigned char byte = *wire->next++;
    if (shift < 63 || byte < 2) *value |= (uint64_t)(byte & 127) << shift;
    else *value |= (uint64_t)(byte & 1) << 63;                 /* bits beyond 64 are dropped, as protobuf does */
    if (!(byte & 128)) return 1;
  }
  return 0;
}

/* The next field. 0 when the bytes end too early or are not protobuf. */
int flow_wire_next(flow_bytes *wire, flow_wire_field *field);

/* ---- writing ---- */

/* Bytes that a number takes, and the number written to `to`; returns what is after it. */
uint64_t       flow_varint_size(uint64_t value);
unsigned char *flow_varint_write(unsigned char *to, uint64_t value);

enum { FLOW_MESSAGE_DEPTH = 16 };

/* Bytes of the caller that belong into the message, between own bytes of it. */
typedef struct flow_lent_bytes { const void *bytes; uint64_t count, before; } flow_lent_bytes;   /* before: own bytes in front of it */

/* A message under construction; all zero: an empty one. `bytes` are its own, `lent` are borrowed until the release.
 * open[0 .. depth - 1] says for each message that is not closed what there was when it was opened. Once status is not
 * FLOW_OK, nothing more is appended. */
typedef struct flow_message {
  unsigned char   *bytes;
  int              count, capacity;
  flow_lent_bytes *lent;                       /* in the order of the message */
  int              lent_count, lent_capacity;
  uint64_t         lent_total;
  flow_status      status;                     /* of the first call that failed */
  int              depth;
  struct { int count, lent_count; uint64_t lent_total; } open[FLOW_MESSAGE_DEPTH];
} flow_message;

void flow_message_integer(flow_message *message, int number, int64_t value);      /* int32, int64, uint64, bool, enum: one wire form */
void flow_message_float(flow_message *message, int number, float value);
void flow_message_double(flow_message *message, int number, double value);
void flow_message_bytes(flow_message *message, int number, const void *bytes, uint64_t count);      /* copied; count 0 too is written */
void flow_message_text(flow_message *message, int number, const char *text);
void flow_message_lend(flow_message *message, int number, const void *bytes, uint64_t count);       /* like bytes, borrowed until release */
void flow_message_open(flow_message *message, int number);       /* the fields that follow are those of a message in field `number` */
void flow_message_close(flow_message *message);

/* Size of the whole message; what is written holds as long as status is FLOW_OK and all is closed. */
uint64_t    flow_message_size(const flow_message *message);
/* Each returns the message's failure, if there was one. */
flow_status flow_message_copy(const flow_message *message, void *to);        /* flow_message_size() bytes */
flow_status flow_message_write(const flow_message *message, flow_sink *sink);
void        flow_message_release(flow_message *message);                     /* leaves an empty message */

#endif
