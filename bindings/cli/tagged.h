/* tagged.h: the output of Open MPI's mpirun --tag-output, taken apart: "[1,2]<stderr>:text" is from rank 2; from version 5 on a space
 * follows the colon. A tag is at the beginning of each line and wherever mpirun goes on with another rank within a line. What no tag
 * is before is mpirun's own. */
#ifndef FLOWLUA_TAGGED_H
#define FLOWLUA_TAGGED_H

#include "output.h"

typedef struct tagged {
  int          ranks, spaces;          /* spaces: how many follow the colon */
  output_line *lines;                  /* [rank * 2 + to] */
  output_line *own;                    /* mpirun's, on this stream */
  output_line *current;
  char         begun[48];              /* of a tag that may be one */
  size_t       count;
  int          failed;                 /* the rank that failed first, or that a signal has killed: the others end after it; -1: none yet */
  char         how[48];                /* "was killed by SIGKILL"; "": only mpirun has named the rank */
} tagged;

/* Takes bytes of mpirun's stream, and writes the lines that they complete to `out`, each under its rank. now: in seconds. */
void tagged_add(output *out, tagged *self, const char *bytes, size_t count, double now);
/* The stream has ended: writes out lines without an end. */
void tagged_finish(output *out, tagged *self, double now);

#endif
