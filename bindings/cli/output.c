/* output.c: lines with prefixes, and the queues in which they wait for stdout and stderr. Nothing here blocks: a slow reader must
 * not keep the launcher from its signals and deadlines. */
#include "output.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "events.h"
#include "table.h"

/* FULL: bytes that wait for a reader before tasks have to wait, too. PREFIX: bytes of a prefix with its colours. SHOW_EVERY: seconds
 * between two states of a line that is drawn over and over, such as a progress bar's, when the output is not a terminal's table. */
enum { FULL = 1 << 20, PREFIX = 100, SHOW_EVERY = 10 };
static const char ERASE[] = "\033[K";               /* with which bars clear the rest of the line */

/* Room for `more` bytes. */
static int reserve(output *self, char **bytes, size_t *capacity, size_t count, size_t more)
{
  size_t wanted = *capacity ? *capacity : 4096;
  while (wanted < count + more) wanted *= 2;
  if (wanted == *capacity) return 1;
  char *grown = realloc(*bytes, wanted);
  if (!grown) {
    self->lost = ENOMEM;
    return 0;
  }
  *bytes = grown;
  *capacity = wanted;
  return 1;
}

/* The queue grows; what is not written yet is moved to the front before it does. A queue whose reader is gone swallows everything. */
void output_append(output *self, int which, const char *bytes, size_t count)
{
  output_queue *queue = &self->queue[which];
  if (queue->dead) return;
  if (queue->first > 0 && queue->first + queue->count + count > queue->capacity) {
    memmove(queue->bytes, queue->bytes + queue->first, queue->count);
    queue->first = 0;
  }
  if (!reserve(self, &queue->bytes, &queue->capacity, queue->first + queue->count, count)) return;
  memcpy(queue->bytes + queue->first + queue->count, bytes, count);
  queue->count += count;
}

/* Blocking, unlike the queues: a log is a file. A failure is remembered and told once; later lines are tried again. */
static void write_log(output *self, const output_writer *writer, const char *bytes, size_t count)
{
  while (writer->log >= 0 && count > 0) {
    ssize_t written = write(writer->log, bytes, count);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      self->lost = written < 0 ? errno : EIO;
      return;
    }
    bytes += written;
    count -= (size_t)written;
  }
}

/* The line without what clears the rest of an earlier one. */
static const char *visible(const output_line *line, size_t *count)
{
  const char *text = line->bytes;
  size_t erase = sizeof ERASE - 1;
  *count = line->count;
  while (*count >= erase && memcmp(text, ERASE, erase) == 0) {
    text += erase;
    *count -= erase;
  }
  return text;
}

/* Its beginning is its writer's last line, even before it has an end. */
static void note(output *self, const output_line *line)
{
  output_writer *writer = line->writer;
  size_t count;
  const char *text = visible(line, &count);
  if (count == 0) return;
  writer->last_count = count < OUTPUT_LAST ? count : OUTPUT_LAST;
  memcpy(writer->last, text, writer->last_count);
  self->stale = 1;
}

/* Prefix, text and line end, after the table was taken off the terminal. */
static void append_line(output *self, const output_line *line, const char *text, size_t count)
{
  char prefix[PREFIX];
  int which = self->joined ? 0 : line->to;
  int length = self->colours[which] ? snprintf(prefix, sizeof prefix, "\033[%dm[%s]\033[0m ", line->writer->colour, line->writer->name)
                                    : snprintf(prefix, sizeof prefix, "[%s] ", line->writer->name);
  if (which == 0) table_erase(self);
  output_append(self, which, prefix, length < PREFIX ? (size_t)length : PREFIX - 1);
  if (count) output_append(self, which, text, count);
  output_append(self, which, "\n", 1);
}

/* What is left to see of the line: with its prefix, and in its writer's log without. */
static void show(output *self, output_line *line, double now)
{
  size_t count;
  const char *text = visible(line, &count);
  note(self, line);
  if (self->form == OUTPUT_JSON) events_line(self, line->writer, line->to, text, count);
  else append_line(self, line, text, count);
  write_log(self, line->writer, text, count);
  write_log(self, line->writer, "\n", 1);
  line->shown = now;
}

/* The line up to `count` more bytes without an end. */
static void extend(output *self, output_line *line, const char *bytes, size_t count, double now)
{
  while (count > 0) {
    size_t room = OUTPUT_LONGEST_LINE - line->count, part = count < room ? count : room;
    if (!reserve(self, &line->bytes, &line->capacity, line->count, part)) return;
    memcpy(line->bytes + line->count, bytes, part);
    line->count += part;
    bytes += part;
    count -= part;
    if (line->count == OUTPUT_LONGEST_LINE && count > 0) {
      show(self, line, now);
      line->count = 0;
    }
  }
}

/* Bytes between two ends of lines extend the line. A carriage return says that the next byte draws the line again: what it held is
 * thrown away, or shown if the last time was long enough ago. */
void output_add(output *self, output_line *line, const char *bytes, size_t count, double now)
{
  while (count > 0) {
    size_t plain = 0;
    while (plain < count && bytes[plain] != '\n' && bytes[plain] != '\r') plain++;
    if (plain > 0 && line->returned) {                 /* the line is drawn again */
      if (now - line->shown >= SHOW_EVERY && line->count > 0) show(self, line, now);
      line->count = 0;
      line->returned = 0;
    }
    extend(self, line, bytes, plain, now);
    if (plain == count) {
      note(self, line);
      return;
    }
    line->returned = bytes[plain] == '\r';
    if (bytes[plain] == '\n') {
      show(self, line, now);
      line->count = 0;
    }
    bytes += plain + 1;
    count -= plain + 1;
  }
}

void output_finish(output *self, output_line *line, double now)
{
  if (line->count > 0) show(self, line, now);
  free(line->bytes);
  line->bytes = NULL;
  line->count = line->capacity = 0;
}

void output_say(output *self, const char *text)
{
  int which = self->joined ? 0 : 1;
  if (self->form == OUTPUT_JSON) {
    events_message(self, text);
    return;
  }
  if (which == 0) table_erase(self);
  output_append(self, which, text, strlen(text));
  output_append(self, which, "\n", 1);
}

int output_is_full(const output *self)
{
  return self->queue[0].count >= FULL || self->queue[1].count >= FULL;
}

short output_events(const output *self, int which)
{
  const output_queue *queue = &self->queue[which];
  return queue->count > 0 && !queue->dead && !self->queue[!which].within_line ? POLLOUT : 0;
}

/* At most PIPE_BUF bytes: descriptors of a terminal or a pipe are shared with other programs, so that they are not made non-blocking; a
 * blocking write of that much after POLLOUT does not wait. */
void output_write(output *self, int which)
{
  output_queue *queue = &self->queue[which];
  if (queue->count == 0 || queue->dead || self->queue[!which].within_line) return;
  /* That many bytes fit into a pipe that is ready. */
  size_t part = queue->count < PIPE_BUF ? queue->count : PIPE_BUF;
  ssize_t written = write(queue->descriptor, queue->bytes + queue->first, part);
  if (written < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (written <= 0) {
    queue->dead = written < 0 ? errno : EIO;
    queue->first = queue->count = 0;
    queue->within_line = 0;
    return;
  }
  queue->within_line = queue->bytes[queue->first + (size_t)written - 1] != '\n';
  queue->count -= (size_t)written;
  queue->first = queue->count > 0 ? queue->first + (size_t)written : 0;
}

int output_is_coloured(int descriptor)
{
  const char *refused = getenv("NO_COLOR"), *terminal = getenv("TERM");
  return isatty(descriptor) && !(refused && *refused) && !(terminal && strcmp(terminal, "dumb") == 0);
}

void output_release(output *self)
{
  for (int i = 0; i < 2; i++) free(self->queue[i].bytes);
}
