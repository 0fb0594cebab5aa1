/* message.c: messages to bytes and back, by one table, so that both directions agree. Reading is strict: a message has exactly the
 * fields of its kind, texts are ended by a zero and hold no other, reals are finite, and no byte is left over. */
#include "cluster/control/message.h"

#include <math.h>
#include <string.h>

#include "base/bytes.h"

#define MOST_GENERATION ((uint64_t)1 << 53) /* no cluster comes so far: a larger number would leave none for the next one */

/* Fields that a message may have. The order of the bits is that of the fields in a message. */
enum { REQUEST = 1, TASK = 2, GENERATION = 4, INCARNATION = 8, STEP = 16, SECONDS = 32, NAME = 64, EXTRA = 128, TEXT = 256, VALUE = 512 };

static const struct { const char *name; unsigned fields; } kinds[FLOW_MESSAGE_KINDS] = {
  [FLOW_MESSAGE_HELLO] = { "HELLO", REQUEST | TASK | GENERATION | INCARNATION | NAME | EXTRA | TEXT | VALUE },
  [FLOW_MESSAGE_WELCOME] = { "WELCOME", GENERATION | INCARNATION },
  [FLOW_MESSAGE_RETRY] = { "RETRY", TEXT },
  [FLOW_MESSAGE_REFUSE] = { "REFUSE", TEXT },
  [FLOW_MESSAGE_JOIN] = { "JOIN", GENERATION | STEP | NAME },
  [FLOW_MESSAGE_START] = { "START", TASK | GENERATION | INCARNATION | STEP | VALUE },
  [FLOW_MESSAGE_PING] = { "PING", REQUEST | GENERATION | STEP | NAME },
  [FLOW_MESSAGE_REPORT] = { "REPORT", TASK | GENERATION | TEXT },
  [FLOW_MESSAGE_ABORT] = { "ABORT", REQUEST | TASK | GENERATION | TEXT },
  [FLOW_MESSAGE_SET] = { "SET", REQUEST | GENERATION | NAME | VALUE },
  [FLOW_MESSAGE_GET] = { "GET", REQUEST | GENERATION | SECONDS | NAME },
  [FLOW_MESSAGE_ENTER] = { "ENTER", REQUEST | GENERATION | SECONDS | NAME },
  [FLOW_MESSAGE_RESULT] = { "RESULT", REQUEST | TASK | GENERATION | TEXT | VALUE },
  [FLOW_MESSAGE_GOODBYE] = { "GOODBYE", TASK | GENERATION },
  [FLOW_MESSAGE_FAREWELL] = { "FAREWELL", 0 },
  [FLOW_MESSAGE_FINISHED] = { "FINISHED", TASK | GENERATION },
  [FLOW_MESSAGE_STANDBY] = { "STANDBY", GENERATION | TEXT },
};

/* For messages and logs; "?" for an unknown kind. */
const char *flow_control_name(int kind)
{
  return kind > 0 && kind < FLOW_MESSAGE_KINDS ? kinds[kind].name : "?";
}

/* ---- writing ------------------------------------------------------------------------------------------------------------------------- */

/* Where bytes go; NULL: they are only counted. */
typedef struct sink { uint8_t *to; size_t count; } sink;

/* The lowest `bytes` bytes of a number, little-endian. */
static void put(sink *out, uint64_t number, int bytes)
{
  if (out->to) flow_put_little_endian(out->to + out->count, number, bytes);
  out->count += (size_t)bytes;
}

static void put_bytes(sink *out, const void *bytes, size_t count)
{
  if (out->to && count > 0) memcpy(out->to + out->count, bytes, count);
  out->count += count;
}

/* The bits of a double (IEEE 754), little-endian as all numbers. */
static void put_real(sink *out, double real)
{
  uint64_t bits;
  memcpy(&bits, &real, sizeof bits);
  put(out, bits, 8);
}

/* Two bytes of length, the text, cut at `most`, and a zero, which lets the reader hand out the text where it is. */
static void put_text(sink *out, const char *text, size_t most)
{
  size_t length = text ? strnlen(text, most) : 0;
  put(out, length, 2);
  put_bytes(out, text, length);
  put(out, 0, 1);
}

/* The kind, then the fields that this kind has, in one order for all kinds: the reader takes them by the same table. */
static void put_message(sink *out, const flow_control_message *message)
{
  unsigned fields = kinds[message->kind].fields;
  put(out, (uint64_t)message->kind, 1);
  if (fields & REQUEST) put(out, message->request, 4);
  if (fields & TASK) put(out, (uint32_t)message->task, 4);
  if (fields & GENERATION) put(out, message->generation, 8);
  if (fields & INCARNATION) put(out, message->incarnation, 8);
  if (fields & STEP) put_real(out, message->step);
  if (fields & SECONDS) put_real(out, message->seconds);
  if (fields & NAME) put_text(out, message->name, FLOW_MOST_NAME);
  if (fields & EXTRA) put_text(out, message->extra, FLOW_MOST_NAME);
  if (fields & TEXT) put_text(out, message->text, FLOW_MOST_TEXT);
  if (fields & VALUE) {
    put(out, message->bytes, 4);
    put_bytes(out, message->value, message->bytes);
  }
}

/* How many bytes flow_control_write will write. */
size_t flow_control_size(const flow_control_message *message)
{
  sink out = { NULL, 0 };
  put_message(&out, message);
  return out.count;
}

/* `to` has room for flow_control_size bytes; returns their number. Texts that are too long are cut, values are not: senders have checked
 * them. */
size_t flow_control_write(const flow_control_message *message, uint8_t *to)
{
  sink out = { to, 0 };
  put_message(&out, message);
  return out.count;
}

/* ---- reading ------------------------------------------------------------------------------------------------------------------------- */

/* What is left to read; `broken` as soon as something was missing. */
typedef struct source { flow_bytes bytes; int broken; } source;

/* The next `count` bytes where they are; NULL, and the message is broken, if there are fewer. */
static const uint8_t *take(source *in, size_t count)
{
  const uint8_t *bytes = in->broken ? NULL : flow_bytes_take(&in->bytes, count);
  if (!bytes) in->broken = 1;
  return bytes;
}

/* 0 once the message is broken: what is computed from it then is never used. */
static uint64_t take_number(source *in, int bytes)
{
  const uint8_t *at = take(in, (size_t)bytes);
  return at ? flow_little_endian(at, bytes) : 0;
}

/* No message holds infinity or NaN. */
static double take_real(source *in)
{
  uint64_t bits = take_number(in, 8);
  double real;
  memcpy(&real, &bits, sizeof real);
  if (!isfinite(real)) in->broken = 1;
  return real;
}

/* Points into the message. "" if the message is damaged, so that callers need no check before the one at the end. */
static const char *take_text(source *in, size_t most)
{
  size_t length = take_number(in, 2);
  if (length > most) in->broken = 1;
  const uint8_t *text = take(in, length + 1);
  if (!text) return "";
  if (text[length] != 0 || memchr(text, 0, length)) in->broken = 1;
  return (const char *)text;
}

/* out's texts and value point into `bytes`. *out is written only when the whole message is right. */
flow_status flow_control_read(const uint8_t *bytes, size_t count, flow_control_message *out)
{
  source in = { flow_bytes_of(bytes, count), 0 };
  flow_control_message read = { .kind = (int)take_number(&in, 1) };
  if (in.broken || read.kind < 1 || read.kind >= FLOW_MESSAGE_KINDS) {
    return flow_fail(FLOW_CORRUPT_DATA, "a message of the unknown kind %d", read.kind);
  }
  unsigned fields = kinds[read.kind].fields;
  if (fields & REQUEST) read.request = (uint32_t)take_number(&in, 4);
  if (fields & TASK) read.task = (int32_t)take_number(&in, 4);
  if (fields & GENERATION) read.generation = take_number(&in, 8);
  if (read.generation > MOST_GENERATION) in.broken = 1;
  if (fields & INCARNATION) read.incarnation = take_number(&in, 8);
  if (fields & STEP) read.step = take_real(&in);
  if (fields & SECONDS) read.seconds = take_real(&in);
  if (fields & NAME) read.name = take_text(&in, FLOW_MOST_NAME);
  if (fields & EXTRA) read.extra = take_text(&in, FLOW_MOST_NAME);
  if (fields & TEXT) read.text = take_text(&in, FLOW_MOST_TEXT);
  if (fields & VALUE) {
    read.bytes = (uint32_t)take_number(&in, 4);
    if (read.bytes > FLOW_MOST_VALUE) in.broken = 1;
    read.value = take(&in, read.bytes);
  }
  if (in.broken || flow_bytes_left(&in.bytes) > 0) {
    return flow_fail(FLOW_CORRUPT_DATA, "a message %s of %.0f bytes is damaged", kinds[read.kind].name, (double)count);
  }
  *out = read;
  return FLOW_OK;
}
