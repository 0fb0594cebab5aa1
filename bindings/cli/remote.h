/* remote.h: a task on another machine, which `ssh HOST exec flowlua --remote` starts there.
 *
 * The launcher writes an order to its stdin: "flowlua VERSION BYTES\n" and as many bytes of texts, each with a letter in front and a zero
 * after it: F the folder, E a variable NAME=VALUE, U a variable that is removed, S how many tasks share the machine's cores, A an argument
 * of the program, the program first. After that each byte is the number of a signal for the program. The end of stdin, for whatever reason
 * it comes, kills the program and all that it has started. Secrets are in the order only, never on a command line. */
#ifndef FLOWLUA_REMOTE_H
#define FLOWLUA_REMOTE_H

#include <stddef.h>

#include "output.h"

/* The first line on the other side's stderr: what is before it was said by ssh or a shell. */
#define REMOTE_HERE "flowlua: here\n"

enum { REMOTE_MOST_BYTES = 1 << 20 };      /* of an order: the most that a pipe holds */

/* The launcher's side. */
typedef struct remote_side {
  const char *host;                        /* NULL: the task is on this machine */
  int    input;                            /* where signals are written; -1: nowhere */
  int    reached;                          /* the other side has said that it is there */
  char   said[512];                        /* before that */
  size_t count;
} remote_side;

/* What came from the task's stderr: once it is reached it is passed on, with what ssh has said before. */
void remote_take(remote_side *self, output *out, output_line *line, const char *bytes, size_t count, double now);
void remote_signal(const remote_side *self, int number);
/* How it ended, by the status of ssh: "exited with 3", "was not started on b: ssh: connect to host b port 22: Connection refused". */
void remote_describe(const remote_side *self, int status, char *text, size_t size);

/* The other side: carries out the order on stdin and returns the program's exit code, 128 and the number if a signal ended it. */
int  remote_run(void);

#endif
