/* output.h: what several programs write, brought together on stdout and stderr in whole lines with a prefix each; on a terminal with a
 * table of the programs below them (table.h), or as JSON (events.h). */
#ifndef FLOWLUA_OUTPUT_H
#define FLOWLUA_OUTPUT_H

#include <stddef.h>

enum { OUTPUT_LONGEST_LINE = 1 << 20 };            /* bytes; what is longer is shown in several lines */
enum { OUTPUT_LAST = 512 };                        /* bytes of a writer's last line that are kept */

enum output_form  { OUTPUT_LINES, OUTPUT_TABLE, OUTPUT_JSON };
/* RESTARTING: it has ended and is started again. ENDED: somebody asked it to. */
enum output_state { OUTPUT_WAITING, OUTPUT_RUNNING, OUTPUT_RESTARTING, OUTPUT_DONE, OUTPUT_FAILED, OUTPUT_ENDED };

/* Bytes on their way to a descriptor. */
typedef struct output_queue {
  int    descriptor, dead, within_line;            /* dead: the error of the write that failed */
  char  *bytes;
  size_t first, count, capacity;                   /* those that wait are bytes[first .. first + count) */
} output_queue;

/* The source of a line: shown as "[name] ". */
typedef struct output_writer {
  const char *name;
  int    colour, log;                              /* log: a descriptor, -1: none */
  enum output_state state;
  int    process, restarts, status;                /* the number of its process; how often it was started again; status: of waitpid */
  char   last[OUTPUT_LAST];                        /* the beginning of its last line that is not empty */
  size_t last_count;
} output_writer;

typedef struct output {
  output_queue queue[2];                           /* stdout, stderr */
  int colours[2];                                  /* whether prefixes are coloured there */
  int lost;                                        /* memory was out, or a log could not be written: an error number */
  enum output_form form;
  int joined;                                      /* all goes to stdout: stderr is the same terminal */
  output_writer **writers;                         /* the rows of the table */
  int writer_count, rows;                          /* rows: how many the terminal shows */
  int stale;                                       /* the table has changed since */
  double drawn;                                    /* when, in seconds */
} output;

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
/* One of our own lines. */
void output_say(output *self, const char *text);
/* Bytes for stdout (0) or stderr (1), which wait in its queue. */
void output_append(output *self, int which, const char *bytes, size_t count);
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
