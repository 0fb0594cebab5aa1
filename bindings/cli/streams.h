/* streams.h: what a task writes: its pipes, and the lines that come out of them. */
#ifndef FLOWLUA_STREAMS_H
#define FLOWLUA_STREAMS_H

#include <sys/types.h>

#include "supervise.h"

/* Seconds of a clock that never goes back. */
double  streams_now(void);
/* Before a task starts, for the first time or again. */
void    streams_prepare(supervised_task *task);
/* What has come of a task's output is shown, and nothing more is taken. */
void    streams_finish(output *out, supervised_task *task);
/* Reads once. Returns how much came; 0 at the end, -1 if there is nothing yet. */
ssize_t streams_take(output *out, supervised_task *task, int to);
/* All that is there, which is at most what a pipe holds. */
void    streams_drain(output *out, supervised_task *task, int to);

#endif
