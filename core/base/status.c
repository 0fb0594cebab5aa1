/* status.c: the message of this thread's last failure, and texts that are built piece by piece. The message and its fields stay until the
 * thread's next failure; success does not clear them, so that a function may clean up after a failure by calls that succeed. Nothing here
 * takes memory: a failure for want of memory can be described, too. */
#include "base/need.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/decimal.h"
#include "base/thread_texts.h"

/* Never NULL: "" before the first failure. Valid until this thread fails again. */
const char *flow_last_error(void)
{
  return flow_thread_texts_to_read()->message;
}

/* NaN: the failure does not tell this number, or there is no such field. */
double flow_last_error_field(int field)
{
  return field >= 0 && field < FLOW_ERROR_FIELD_COUNT ? flow_thread_texts_to_read()->fields.values[field] : __builtin_nan("");
}

/* For a failure that another thread or a later call is to report (failure.h). */
flow_error_fields flow_error_fields_now(void)
{
  return flow_thread_texts_to_read()->fields;
}

const char *flow_status_name(int status)
{
  static const char *const names[] = {
    [FLOW_OK] = "ok", [FLOW_INVALID_ARGUMENT] = "invalid argument", [FLOW_INVALID_STATE] = "invalid state",
    [FLOW_OUT_OF_MEMORY] = "out of memory", [FLOW_NOT_FOUND] = "not found", [FLOW_UNSUPPORTED] = "unsupported",
    [FLOW_CORRUPT_DATA] = "corrupt data", [FLOW_IO_ERROR] = "input/output error", [FLOW_INTERRUPTED] = "interrupted",
    [FLOW_ABORTED] = "aborted", [FLOW_TIMED_OUT] = "timed out", [FLOW_INTERNAL] = "internal error",
  };
  if (status < 0 || status > FLOW_INTERNAL) return "unknown status";
  return names[status];
}

/* Messages may quote damaged files: no control character but the line end may reach somebody's terminal. */
static void keep_message(const char *text, size_t length)
{
  char *last_message = flow_thread_texts_to_write()->message;
  for (size_t i = 0; i < length; i++) {
    unsigned char symbol = (unsigned char)text[i];
    last_message[i] = (symbol < 32 && symbol != '\n') || symbol == 127 ? '?' : text[i];
  }
  last_message[length] = '\0';
}

/* Returns status, as all functions flow_fail* do, so that a caller can return what it gets. fields NULL: no number is known, and none of an
 * earlier failure stays. */
flow_status flow_fail_list(flow_status status, const flow_error_fields *fields, const char *format, va_list arguments)
{
  static const flow_error_fields unknown = FLOW_ERROR_UNKNOWN;
  char text[FLOW_MESSAGE_SIZE]; /* arguments may point into the last message: format beside it, then copy */
  flow_print_list(text, sizeof text, format, arguments);
  keep_message(text, strlen(text));
  flow_thread_texts_to_write()->fields = fields ? *fields : unknown;
  return status;
}

flow_status flow_fail(flow_status status, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  flow_fail_list(status, NULL, format, arguments);
  va_end(arguments);
  return status;
}

flow_status flow_fail_with(flow_status status, flow_error_fields fields, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  flow_fail_list(status, &fields, format, arguments);
  va_end(arguments);
  return status;
}

/* Adds a number to the failure that was just noted. */
flow_status flow_fail_field(flow_status status, flow_error_field field, double value)
{
  flow_thread_texts_to_write()->fields.values[field] = value;
  return status;
}

/* names: those of the arguments, as the macro FLOW_NEED writes them ("a, b, c"); index: which of them is NULL. */
flow_status flow_fail_null(const char *function, const char *names, int index)
{
  for (; index > 0; index--) names = strchr(names, ',') + 2;
  return flow_fail(FLOW_INVALID_ARGUMENT, "%s: %.*s is NULL", function, (int)strcspn(names, ","), names);
}

/* Puts text in front of the present message, whose fields stay. Of a message that gets too long the end is lost. */
flow_status flow_fail_prefix(flow_status status, const char *format, ...)
{
  char text[FLOW_MESSAGE_SIZE];
  va_list arguments;
  va_start(arguments, format);
  flow_print_list(text, sizeof text, format, arguments);
  va_end(arguments);
  const char *last_message = flow_last_error();
  size_t length = strlen(text), kept = strlen(last_message);
  if (kept > sizeof text - 1 - length) kept = sizeof text - 1 - length;
  memcpy(text + length, last_message, kept);
  text[length + kept] = '\0';
  keep_message(text, length + kept);
  return status;
}

/* A text in the caller's memory of `size` bytes, the zero at the end included; NULL: only the length is counted. */
flow_text flow_text_into(char *buffer, int size)
{
  if (!buffer) size = 0;
  if (size > 0) buffer[0] = '\0';
  return (flow_text){ buffer, size, 0 };
}

/* A text that is too long is cut, but counted as a whole, so that a caller can ask for the length first. */
void flow_text_add(flow_text *text, const char *format, ...)
{
  int room = text->size > text->length ? text->size - text->length : 0;
  va_list arguments;
  va_start(arguments, format);
  int length = flow_print_list(room > 0 ? text->buffer + text->length : NULL, (size_t)room, format, arguments);
  va_end(arguments);
  if (length > 0 && text->length <= INT32_MAX - length) text->length += length;
}

/* As Keras prints shapes, in braces: the rows of a batch are None, a multiple of them 2*None. */
void flow_text_add_shape(flow_text *text, int rank, const int64_t *shape)
{
  flow_text_add(text, "{");
  for (int axis = 0; axis < rank; axis++) {
    const char *comma = axis > 0 ? ", " : "";
    if (shape[axis] >= 0) flow_text_add(text, "%s%lld", comma, (long long)shape[axis]);
    else if (shape[axis] == -1) flow_text_add(text, "%sNone", comma);
    else flow_text_add(text, "%s%llu*None", comma, -(unsigned long long)shape[axis]);
  }
  flow_text_add(text, "}");
}

const char *flow_shape_text(int rank, const int64_t *shape)
{
  char *buffer = flow_text_slot();
  flow_text text = flow_text_into(buffer, FLOW_SLOT_SIZE);
  flow_text_add_shape(&text, rank, shape);
  return buffer;
}

/* For numbers that come as doubles from Lua: exact whole numbers from `least` to 2^53. NaN fails the first comparison. */
flow_status flow_check_whole(const char *what, const char *name, double value, double least, int64_t *out)
{
  if (!(value >= least) || value > 0x1p53 || value != floor(value))
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s: %s is a whole number from %.0f, got %g", what, name, least, value);
  *out = (int64_t)value;
  return FLOW_OK;
}
