/* supervise.h: runs the tasks of a cluster to their end.
 *
 * The caller's process forwards SIGINT, SIGTERM and SIGHUP to a second one, which has the tasks as children and takes what they write. If
 * either of the two is killed, the other one ends the tasks with all that they started: nothing stays behind. */
#ifndef FLOWLUA_SUPERVISE_H
#define FLOWLUA_SUPERVISE_H

#include "output.h"
#include "processes.h"
#include "remote.h"
#include "tagged.h"

typedef struct supervised_task {
  output_writer  writer;               /* its name: "worker:0" */
  process_start  start;                /* the mask is filled in */
  int            decides;              /* when no task is left that decides, the job is done and the others are ended */
  int            ranks;                /* 0, or the ranks of a task that is mpirun --tag-output */
  output_writer *rank_writers;
  int            tag_spaces;           /* that mpirun puts after the colon of a tag */
  int            signals_children;     /* signals go to its children: mpirun would not pass them on */
  remote_side    remote;               /* with a host: it is ssh, by which the task runs there */
  /* While it runs: */
  pid_t          process;              /* 0: it has ended */
  double         started, restart_at;  /* seconds; restart_at: when it is started again, 0: it is not */
  double         overdue_at;           /* mpirun said that a rank failed: by then it has to be gone; 0: it did not */
  int            failures;             /* lives in a row that were short and failed */
  int            restarts;             /* how often it was started again */
  int            pipes[2];             /* -1: at its end */
  output_line    lines[2], *rank_lines;
  tagged         streams[2];
} supervised_task;

/* What is to be done: see supervise. form: how it is shown; OUTPUT_TABLE on a terminal only. */
typedef struct supervision {
  supervised_task *tasks;
  int    count, max_restarts, min_workers;
  double kill_after;
  enum output_form form;
} supervision;

/* Starts all tasks and waits for their end; closes the descriptors that the tasks got. A task that decides and fails is started again,
 * without its descriptor, at once or, when it fails again and again, after longer and longer pauses, as long as there were fewer than
 * max_restarts of these; one that SIGTERM has ended is not counted, and of mpirun the whole job starts again. The first that fails after
 * that is told on stderr; the others get kill_after seconds to end, then SIGTERM, then, after as long again, SIGKILL. A signal to this
 * process goes to all, the second one kills them. Returns the exit code of the task that failed first, 128 and the number if a signal ended
 * it; 0: all succeeded. min_workers above 0: a task that decides, other than the first, may fail in the end, if that many are left; when
 * the first one is done, and others were started again, all get kill_after seconds to end. */
int supervise(const supervision *wanted);

/* What the second process does. watched: the signals, which are blocked; mask: that of the tasks; lifeline: a pipe that the caller's
 * process has the other end of. */
int supervise_children(const supervision *wanted, const sigset_t *watched, const sigset_t *mask, int lifeline);

#endif
