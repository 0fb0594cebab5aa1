/* events.h: what happens to the tasks of a launch, and what they write, as JSON: an object a line on stdout. Each has
 *   time      seconds since 1970
 *   event     "started", "restarted", "exited", "line", "message" (of the launcher), "finished" (all have ended)
 *   role, index, pid   "worker", 0 and the number of its process; null where the launcher itself is meant
 *   state     "running", "restarting", "done", "failed", "ended" (it was asked to); of "finished" "done" or "failed"
 *   restarts  how often it was started again; of "finished" of all
 *   line      the text of "line" and "message", else its last line or null; bytes that are not UTF-8 are U+FFFD
 * and "exited" either status or signal, "line" stream ("stdout", "stderr"), "finished" status. */
#ifndef FLOWLUA_EVENTS_H
#define FLOWLUA_EVENTS_H

#include "output.h"

/* A line that a task wrote, without its end. to: 0: stdout, 1: stderr. */
void events_line(output *self, const output_writer *writer, int to, const char *text, size_t count);
/* A line of the launcher itself. */
void events_message(output *self, const char *text);
/* "started", "restarted" or "exited". */
void events_life(output *self, const char *event, const output_writer *writer);
void events_finished(output *self, int code);

#endif
