/* protobuf.c: protobuf's wire format: fields out of bytes, and bytes out of fields.
 *
 * A message under construction is one growing block of own bytes and a list of lent ones, each with the place in the own
 * bytes where it belongs. The length of an inner message stands in front of it and is known at its end only:
 * flow_message_close makes room by moving what was written since, and the places of what was lent since. */
#include "io/protobuf.h"

#include <limits.h>
#include <string.h>
#include "base/memory.h"

enum { MOST_NESTED_GROUPS = 32, MOST_VARINT_BYTES = 10 };

/* ---- reading ----------------------------------------------------------------------------------------------------------------- */

/* 1, with *content inside of the wire's bytes, or 0: the length reaches beyond them. */
static int read_delimited(flow_bytes *wire, flow_bytes *content)
{
  uint64_t length;
  if (!flow_wire_varint(wire, &length)) return 0;
  const unsigned char *first = flow_bytes_take(wire, length);
  if (first) *content = flow_bytes_of(first, length);
  return first != NULL;
}

/* Field 0 and the two unused wire types are not protobuf. */
static int read_simple_field(flow_bytes *wire, flow_wire_field *field)
{
  uint64_t key;
  if (!flow_wire_varint(wire, &key)) return 0;
  *field = (flow_wire_field){ .number = key >> 3, .type = (int)(key & 7) };
  if (field->number == 0) return 0;
  switch (field->type) {
    case FLOW_WIRE_VARINT: return flow_wire_varint(wire, &field->value);
    case FLOW_WIRE_FIXED64: return flow_bytes_number(wire, 8, &field->value);
    case FLOW_WIRE_FIXED32: return flow_bytes_number(wire, 4, &field->value);
    case FLOW_WIRE_DELIMITED: return read_delimited(wire, &field->content);
    default: return field->type == FLOW_WIRE_GROUP || field->type == FLOW_WIRE_GROUP_END;
  }
}

/* Groups, which proto3 does not have, are passed over with all that is in them; their end must have their number. Depth is bounded by an
 * array, not by recursion. Returns 1 with the next field; 0 at a field that is damaged, of which the end of the wire is one: callers ask
 * before whether bytes are left. */
int flow_wire_next(flow_bytes *wire, flow_wire_field *field)
{
  if (!read_simple_field(wire, field) || field->type == FLOW_WIRE_GROUP_END) return 0;
  if (field->type != FLOW_WIRE_GROUP) return 1;
  uint64_t open[MOST_NESTED_GROUPS] = { field->number };
  int depth = 1;
  while (depth > 0) {
    flow_wire_field inner;
    if (!read_simple_field(wire, &inner)) return 0;
    if (inner.type == FLOW_WIRE_GROUP) {
      if (depth == MOST_NESTED_GROUPS) return 0;
      open[depth++] = inner.number;
    } else if (inner.type == FLOW_WIRE_GROUP_END) {
      if (inner.number != open[--depth]) return 0;
    }
  }
  return 1;
}

/* ---- writing ----------------------------------------------------------------------------------------------------------------- */

/* Seven bits a byte. */
uint64_t flow_varint_size(uint64_t value)
{
  uint64_t bytes = 1;
  for (; value >= 128; value >>= 7) bytes++;
  return bytes;
}

/* `to` has room for flow_varint_size bytes; returns the end of what was written. The lowest seven bits come first. */
unsigned char *flow_varint_write(unsigned char *to, uint64_t value)
{
  for (; value >= 128; value >>= 7) *to++ = (unsigned char)(value | 128);
  *to++ = (unsigned char)value;
  return to;
}

/* Room for `bytes` more at the end; NULL when the message has failed. */
static unsigned char *reserve(flow_message *message, uint64_t bytes)
{
  if (message->status != FLOW_OK) return NULL;
  if (bytes > (uint64_t)(INT_MAX - message->count)) {
    message->status = flow_fail(FLOW_UNSUPPORTED, "a protobuf message holds less than 2 GB");
  } else if (message->count + (int)bytes > message->capacity) {
    message->status = flow_grow(&message->bytes, 1, message->count + (int)bytes, &message->capacity);
  }
  return message->status == FLOW_OK ? message->bytes + message->count : NULL;
}

/* Reserves for the longest one: how long it is shows while it is written. */
static void append_varint(flow_message *message, uint64_t value)
{
  unsigned char *to = reserve(message, MOST_VARINT_BYTES);
  if (to) message->count += (int)(flow_varint_write(to, value) - to);
}

/* Which field follows, and how it is stored. */
static void append_key(flow_message *message, int number, flow_wire_type type)
{
  append_varint(message, (uint64_t)number << 3 | type);
}

/* The wire is little-endian on every machine. */
static void append_fixed(flow_message *message, uint64_t bits, int bytes)
{
  unsigned char *to = reserve(message, (uint64_t)bytes);
  if (!to) return;
  flow_put_little_endian(to, bits, bytes);
  message->count += bytes;
}

/* Fields in the order of calls. Functions that add do nothing after a failure, which message->status keeps. A negative integer takes ten
 * bytes, as int64 has it. */
void flow_message_integer(flow_message *message, int number, int64_t value)
{
  append_key(message, number, FLOW_WIRE_VARINT);
  append_varint(message, (uint64_t)value);
}

void flow_message_float(flow_message *message, int number, float value)
{
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  append_key(message, number, FLOW_WIRE_FIXED32);
  append_fixed(message, bits, 4);
}

void flow_message_double(flow_message *message, int number, double value)
{
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  append_key(message, number, FLOW_WIRE_FIXED64);
  append_fixed(message, bits, 8);
}

/* Copies the bytes; flow_message_lend does not. */
void flow_message_bytes(flow_message *message, int number, const void *bytes, uint64_t count)
{
  append_key(message, number, FLOW_WIRE_DELIMITED);
  append_varint(message, count);
  unsigned char *to = reserve(message, count);
  if (!to || count == 0) return;
  memcpy(to, bytes, (size_t)count);
  message->count += (int)count;
}

/* Text up to its NUL; UTF-8 is the caller's to see to. */
void flow_message_text(flow_message *message, int number, const char *text)
{
  flow_message_bytes(message, number, text, strlen(text));
}

/* The bytes stay the caller's until the message was written. They are noted with the number of own bytes before them, since those may still
 * move (flow_message_close). */
void flow_message_lend(flow_message *message, int number, const void *bytes, uint64_t count)
{
  append_key(message, number, FLOW_WIRE_DELIMITED);
  append_varint(message, count);
  if (message->status != FLOW_OK || count == 0) return;
  message->status = flow_grow(&message->lent, sizeof *message->lent, message->lent_count + 1, &message->lent_capacity);
  if (message->status != FLOW_OK) return;
  message->lent[message->lent_count++] = (flow_lent_bytes){ bytes, count, (uint64_t)message->count };
  message->lent_total += count;
}

/* A message inside of this one: its fields follow, then flow_message_close. FLOW_INTERNAL if they are nested more deeply
 * than FLOW_MESSAGE_DEPTH, which no format here needs. */
void flow_message_open(flow_message *message, int number)
{
  append_key(message, number, FLOW_WIRE_DELIMITED);
  if (message->status == FLOW_OK && message->depth == FLOW_MESSAGE_DEPTH) {
    message->status = flow_fail(FLOW_INTERNAL, "protobuf messages are nested more than %d deep", FLOW_MESSAGE_DEPTH);
  }
  if (message->status != FLOW_OK) return;
  int level = message->depth++;
  message->open[level].count = message->count;
  message->open[level].lent_count = message->lent_count;
  message->open[level].lent_total = message->lent_total;
}

/* The length is in front of the fields, which move after it. reserve() makes sure of MOST_VARINT_BYTES at the end, so
 * that the move by `moved` bytes stays inside of the block. */
void flow_message_close(flow_message *message)
{
  if (message->status == FLOW_OK && message->depth == 0) {
    message->status = flow_fail(FLOW_INTERNAL, "a protobuf message is closed that was not opened");
  }
  if (!reserve(message, MOST_VARINT_BYTES)) return;
  int level = --message->depth, first = message->open[level].count;
  uint64_t own = (uint64_t)(message->count - first), length = own + message->lent_total - message->open[level].lent_total;
  int moved = (int)flow_varint_size(length);
  memmove(message->bytes + first + moved, message->bytes + first, (size_t)own);
  flow_varint_write(message->bytes + first, length);
  message->count += moved;
  for (int i = message->open[level].lent_count; i < message->lent_count; i++) message->lent[i].before += (uint64_t)moved;
}

/* Own and lent bytes; right once all inner messages are closed. */
uint64_t flow_message_size(const flow_message *message)
{
  return (uint64_t)message->count + message->lent_total;
}

/* Before a message is given out. */
static flow_status check(const flow_message *message)
{
  if (message->status == FLOW_OK && message->depth > 0) {
    return flow_fail(FLOW_INTERNAL, "a protobuf message is written before all that was opened is closed");
  }
  return message->status;
}

/* Own bytes from `done` up to what is lent as number i, or to the end. */
static uint64_t own_until(const flow_message *message, int i, uint64_t done)
{
  return (i < message->lent_count ? message->lent[i].before : (uint64_t)message->count) - done;
}

/* `to` has room for flow_message_size bytes. Own and lent bytes by turns. */
flow_status flow_message_copy(const flow_message *message, void *to)
{
  FLOW_TRY(check(message));
  unsigned char *next = to;
  uint64_t done = 0;
  for (int i = 0; i <= message->lent_count; i++) {
    uint64_t own = own_until(message, i, done);
    if (own > 0) memcpy(next, message->bytes + done, (size_t)own);
    done += own;
    next += own;
    if (i == message->lent_count) break;
    memcpy(next, message->lent[i].bytes, (size_t)message->lent[i].count);
    next += message->lent[i].count;
  }
  return FLOW_OK;
}

/* As flow_message_copy, without a copy of what is lent. */
flow_status flow_message_write(const flow_message *message, flow_sink *sink)
{
  FLOW_TRY(check(message));
  uint64_t done = 0;
  for (int i = 0; i <= message->lent_count; i++) {
    uint64_t own = own_until(message, i, done);
    if (own > 0) FLOW_TRY(flow_sink_write(sink, message->bytes + done, own));
    done += own;
    if (i < message->lent_count) FLOW_TRY(flow_sink_write(sink, message->lent[i].bytes, message->lent[i].count));
  }
  return FLOW_OK;
}

/* The message is empty, and can be used again; lent bytes are the caller's. */
void flow_message_release(flow_message *message)
{
  flow_free(message->bytes);
  flow_free(message->lent);
  *message = (flow_message){ 0 };
}
