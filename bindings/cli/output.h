/* output.h: what several programs write, brought together on stdout and stderr in whole lines with a prefix each. */
#ifndef FLOWLUA_OUTPUT_H
#define FLOWLUA_OUTPUT_H

#include <stddef.h>

enum { OUTPUT_LONGEST_LINE = 1 << 20 };            /* bytes; what is longer is shown in several lines */

/* Bytes on their way to a descriptor. */
typedef struct output_queue {
  int    descriptor, dead, within_line;            /* dead: the error of the write that failed */
  char  *bytes;
  size_t first, count, capacity;                   /* those that wait are bytes[first .. first + count) */
} output_queue;

typedef struct output {
  output_queue queue[2];                           /* stdout, stderr */
  int colours[2];                                  /* whether prefixes are coloured there */
  int lost;                                        /* memory was out, or a log could not be written: an error number */
} output;

/* Who writes: shown as "[name] ". */
typedef struct output_writer { const char *name; int colour, log; } output_writer;      /* log: a descriptor, -1: none */

/* The line that a writer has begun on one of the two. */
typedef struct output_line {
  output_writer *writer;
  int    to;                                       /* 0: stdout, 1: stderr */
  char  *bytes;
  size_t count, capacity;
  int    returned;                                 /* the last byte was a carriage return */
  double shown;                                    /* when a line was shown last, in seconds */
} output_line;

/* Takes bytes as they came. Of a line that was drawn over by carriage returns, the last state is shown, and one in between every ten
 * seconds. A writer's log gets the same lines: its stdout and its stderr may come in pieces, which must not end up within each other. */
void output_add(output *self, output_line *line, const char *bytes, size_t count, double now);
/* At the end of a stream: a last line without an end gets one. */
void output_finish(output *self, output_line *line, double now);
/* A line of our own. */
void output_say(output *self, const char *text);
/* Whether programs have to wait with more until what there is has been written. */
int  output_is_full(const output *self);
/* The descriptor's events that this queue waits for: POLLOUT or 0. A line that was begun is ended before the other queue goes on, as both
 * may lead to the same terminal. */
short output_events(const output *self, int which);
/* After POLLOUT: writes without blocking. */
void output_write(output *self, int which);
void output_release(output *self);
/* Whether prefixes are to be coloured on that descriptor. */
int  output_is_coloured(int descriptor);

#endif
