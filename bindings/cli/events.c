/* events.c: see events.h. */
#define _GNU_SOURCE
#include "events.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "characters.h"
#include "processes.h"
#include "table.h"

/* Short pieces only: what is longer than the buffer is cut. Texts of tasks go through put_text. */
__attribute__((format(printf, 2, 3)))
static void put(output *self, const char *format, ...)
{
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  output_append(self, 0, text, length < (int)sizeof text ? (size_t)length : sizeof text - 1);
}

static int is_plain(char byte)
{
  return (unsigned char)byte >= ' ' && (unsigned char)byte < 0x80 && byte != '"' && byte != '\\';
}

/* A text of JSON in quotes. UTF-8 stays as it is; what is not UTF-8 becomes U+FFFD byte by byte, since a task may print anything. */
static void put_text(output *self, const char *text, size_t count)
{
  put(self, "\"");
  while (count > 0) {
    size_t plain = 0;
    while (plain < count && is_plain(text[plain])) plain++;
    if (plain > 0) output_append(self, 0, text, plain);
    text += plain;
    count -= plain;
    if (count == 0) break;
    long code;
    size_t bytes = characters_read(text, count, &code);
    if (code < 0) put(self, "\\ufffd");
    else if (code == '"' || code == '\\') put(self, "\\%c", (int)code);
    else if (code < ' ') put(self, "\\u%04lx", (unsigned long)code);
    else output_append(self, 0, text, bytes);
    text += bytes;
    count -= bytes;
  }
  put(self, "\"");
}

/* The fields that all events have, without the closing bracket; writer NULL: the launcher itself. */
static void begin(output *self, const char *event, const output_writer *writer)
{
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  put(self, "{\"time\":%lld.%03ld,\"event\":\"%s\",\"role\":", (long long)time.tv_sec, time.tv_nsec / 1000000, event);
  if (!writer) {
    put(self, "null,\"index\":null,\"pid\":null");
    return;
  }
  const char *colon = strchr(writer->name, ':');      /* mpirun has none */
  put_text(self, writer->name, colon ? (size_t)(colon - writer->name) : strlen(writer->name));
  put(self, ",\"index\":%s,\"pid\":%d,\"state\":\"%s\",\"restarts\":%d", colon ? colon + 1 : "null", writer->process,
      table_state(writer->state), writer->restarts);
}

static void end(output *self, const char *line, size_t count)
{
  put(self, ",\"line\":");
  if (line) put_text(self, line, count);
  else put(self, "null");
  put(self, "}\n");
}

void events_line(output *self, const output_writer *writer, int to, const char *text, size_t count)
{
  begin(self, "line", writer);
  put(self, ",\"stream\":\"%s\"", to == 0 ? "stdout" : "stderr");
  end(self, text ? text : "", count);
}

void events_message(output *self, const char *text)
{
  begin(self, "message", NULL);
  put(self, ",\"state\":\"running\",\"restarts\":%d", table_restarts(self));
  end(self, text, strlen(text));
}

void events_life(output *self, const char *event, const output_writer *writer)
{
  char how[64];
  begin(self, event, writer);
  if (writer->state != OUTPUT_RUNNING && WIFSIGNALED(writer->status)) {
    processes_describe(writer->status, how, sizeof how);
    put(self, ",\"signal\":\"%s\"", strrchr(how, ' ') + 1);
  } else if (writer->state != OUTPUT_RUNNING) {
    put(self, ",\"status\":%d", WEXITSTATUS(writer->status));
  }
  end(self, writer->last_count > 0 ? writer->last : NULL, writer->last_count);
}

void events_finished(output *self, int code)
{
  begin(self, "finished", NULL);
  put(self, ",\"state\":\"%s\",\"restarts\":%d,\"status\":%d", table_state(code == 0 ? OUTPUT_DONE : OUTPUT_FAILED), table_restarts(self),
      code);
  end(self, NULL, 0);
}
