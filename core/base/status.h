/* core/base: used by every other folder: status, memory, log, thread team, random bits, hashes, numbers in bytes, names, JSON, plugins.
 * Uses libc, libm and zlib and nothing else of flowlua. Unless a header says otherwise its functions may be called by any thread, and
 * what a function returns through a pointer is the caller's to free.
 *
 * status.h: how failure travels. A function that can fail returns flow_status; the text of the failure is written once, where it is
 * found, into a buffer of the calling thread, and never overwritten while it travels up. So a caller that goes on after a failure loses
 * nothing; one that cleans up must not call what can fail before it returns, or keep the text (failure.h). */
#ifndef FLOW_BASE_STATUS_H
#define FLOW_BASE_STATUS_H

#include <stdarg.h>

#include "flow.h"

enum { FLOW_MESSAGE_SIZE = 1024 };

/* What a failure is about, besides its text, which no code may parse. */
typedef struct flow_error_fields {
  double      values[FLOW_ERROR_FIELD_COUNT];   /* NaN where it is not known */
  const void *owner;                            /* whose name is in front of the message; only compared */
} flow_error_fields;
#define FLOW_ERROR_UNKNOWN { { __builtin_nan(""), __builtin_nan(""), __builtin_nan(""), __builtin_nan("") }, 0 }

/* Writes the message (printf format, at most 1,023 bytes kept) of this thread, with no fields known, and returns `status`. */
flow_status flow_fail(flow_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same with fields; and the fields of this thread's last failure. */
flow_status flow_fail_with(flow_status status, flow_error_fields fields, const char *format, ...) __attribute__((format(printf, 3, 4)));
flow_error_fields flow_error_fields_now(void);
/* The same for a function that takes a format and `...` itself, as vprintf for printf. fields: NULL: none is known. */
flow_status flow_fail_list(flow_status status, const flow_error_fields *fields, const char *format, va_list arguments);

/* Adds a field to the failure that was just written: return flow_fail_field(flow_fail(...), FLOW_ERROR_ROW, row). Returns `status`. */
flow_status flow_fail_field(flow_status status, flow_error_field field, double value);

/* A count that the C API was given as a double: *out is a whole number from `least` on. `what` names the call, `name` the argument. */
flow_status flow_check_whole(const char *what, const char *name, double value, double least, int64_t *out);

/* Puts text in front of the current message, whose fields stay: a layer names itself around an op's error. Returns `status`. */
flow_status flow_fail_prefix(flow_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Returns from the calling function with the status of a failed call. */
#define FLOW_TRY(call)                                    \
  do {                                                    \
    flow_status flow_try_status_ = (call);                \
    if (flow_try_status_ != FLOW_OK) return flow_try_status_; \
  } while (0)

/* The same for functions with something to clean up: sets `status` (a local variable) and jumps. */
#define FLOW_TRY_GOTO(call, label)      \
  do {                                  \
    status = (call);                    \
    if (status != FLOW_OK) goto label;  \
  } while (0)

/* A text that is built up piece by piece into the caller's buffer: counts the whole length, never overruns.
 *   flow_text text = flow_text_into(buffer, size);  flow_text_add(&text, "%d", 1);  return text.length; */
typedef struct flow_text { char *buffer; int size; int length; } flow_text;
flow_text flow_text_into(char *buffer, int size);
void      flow_text_add(flow_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Appends a shape as {2, 3}; a negative dimension -1 is written None, -k as k*None. */
void      flow_text_add_shape(flow_text *text, int rank, const int64_t *shape);

/* A shape as text for messages, in one of this thread's slots (thread_texts.h): at most eight in one format call. */
const char *flow_shape_text(int rank, const int64_t *shape);

#endif
