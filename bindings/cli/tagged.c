/* tagged.c: takes the output of mpirun --tag-output apart. */
#include "tagged.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "rank.h"

/* Reads "[1,RANK]<stdout>:" from the beginning: its length; 0: this is not such a prefix; -1: it may become one. */
static int read_tag(const char *text, size_t count, int spaces, int *rank, int *to)
{
  static const char *const names[] = { "]<stdout>: ", "]<stderr>: " };
  size_t at = 0;
  if (at < count && text[at++] != '[') return 0;
  for (int number = 0; number < 2; number++) {
    size_t first = at;
    int value = 0;
    while (at < count && isdigit((unsigned char)text[at]) && at - first < 9) value = value * 10 + text[at++] - '0';
    if (at == count) return -1;
    if (at == first) return 0;
    if (number == 0 && text[at++] != ',') return 0;
    *rank = value;
  }
  for (*to = 0; *to < 2; ++*to) {
    size_t length = strlen(names[*to]) - (spaces ? 0 : 1), part = count - at < length ? count - at : length;
    if (memcmp(text + at, names[*to], part) == 0) return part == length ? (int)(at + length) : -1;
  }
  return 0;
}

/* The process around a rank says that it failed. The lines of the killed rank may come after lines of ranks that noticed its end. */
static void note_end(tagged *self)
{
  static const char KILLED[] = "was killed";
  const output_line *line = self->current;
  const size_t before = sizeof RANK_ENDED - 1, same = sizeof KILLED - 1;
  if (line->count < before || memcmp(line->bytes, RANK_ENDED, before) != 0) return;
  const char *how = line->bytes + before;
  size_t count = line->count - before;
  int killed = count >= same && memcmp(how, KILLED, same) == 0;
  if (self->failed >= 0 && (!killed || memcmp(self->how, KILLED, same) == 0)) return;
  if (count >= sizeof self->how) count = sizeof self->how - 1;
  memcpy(self->how, how, count);
  self->how[count] = '\0';
  self->failed = (int)(line - self->lines) / 2;
}

/* mpirun may say at the end which rank it was: "process rank 1 with PID 77"; "Process name: [[25,1],1]", from version 5 on
 * "Process name: [prterun-host-7@1,1]". */
static void note_failure(tagged *self)
{
  char text[200];
  int rank;
  size_t count = self->own->count < sizeof text - 1 ? self->own->count : sizeof text - 1;
  if (count == 0) return;
  memcpy(text, self->own->bytes, count);
  text[count] = '\0';
  const char *noticed = strstr(text, "process rank "), *named = strstr(text, "Process name: ");
  const char *comma = named ? strrchr(named, ',') : NULL;
  if (self->failed >= 0) return;
  if (noticed && sscanf(noticed, "process rank %d", &rank) == 1) self->failed = rank;
  else if (comma && sscanf(comma, ",%d]", &rank) == 1) self->failed = rank;
  if (self->failed >= self->ranks) self->failed = -1;
}

/* Bytes of the current line's writer, up to each end of line; after it the line is mpirun's own until the next tag. Looks at each
 * complete line for news of a failure. */
static void pass(output *out, tagged *self, const char *bytes, size_t count, double now)
{
  while (count > 0) {
    const char *end = memchr(bytes, '\n', count);
    size_t part = end ? (size_t)(end - bytes) + 1 : count;
    if (end) {
      output_add(out, self->current, bytes, part - 1, now);
      if (self->current == self->own) note_failure(self);
      else note_end(self);
      output_add(out, self->current, end, 1, now);
    } else {
      output_add(out, self->current, bytes, part, now);
    }
    if (end) self->current = self->own;
    bytes += part;
    count -= part;
  }
}

/* A tag may be cut anywhere by a read. What may be the beginning of one is kept in `begun` byte by byte; between two brackets bytes are
 * passed on in pieces. What turns out not to be a tag is text after all. */
void tagged_add(output *out, tagged *self, const char *bytes, size_t count, double now)
{
  while (count > 0) {
    if (self->count == 0) {
      const char *bracket = memchr(bytes, '[', count);
      size_t plain = bracket ? (size_t)(bracket - bytes) : count;
      pass(out, self, bytes, plain, now);
      bytes += plain;
      count -= plain;
      if (count == 0) return;
    }
    int rank = 0, to = 0;
    self->begun[self->count++] = *bytes;
    int length = read_tag(self->begun, self->count, self->spaces, &rank, &to);
    if (length == 0 || (length > 0 && rank >= self->ranks)) {
      int again = self->count > 1 && *bytes == '[';                          /* what breaks one tag off may begin the next */
      size_t kept = self->count - (size_t)again;
      self->count = 0;
      pass(out, self, self->begun, kept, now);
      if (again) continue;
    } else if (length > 0) {
      self->current = &self->lines[rank * 2 + to];
      self->count = 0;
    }
    bytes++;
    count--;
  }
}

void tagged_finish(output *out, tagged *self, double now)
{
  pass(out, self, self->begun, self->count, now);
  self->count = 0;
  if (self->own->count > 0) note_failure(self);
}
