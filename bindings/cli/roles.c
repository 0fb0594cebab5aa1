/* roles.c: see roles.h. */
#include "roles.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "events.h"
#include "streams.h"
#include "table.h"

static int rows_of(const supervised_task *task)
{
  return task->ranks ? task->ranks : 1;
}

static output_writer *row_of(supervised_task *task, int row)
{
  return task->ranks ? &task->rank_writers[row] : &task->writer;
}

/* Then both streams go through one queue, or the table would be drawn over what stderr writes. */
static int is_same_terminal(void)
{
  struct stat first, second;
  return isatty(1) && isatty(2) && fstat(1, &first) == 0 && fstat(2, &second) == 0 && first.st_rdev == second.st_rdev;
}

int roles_prepare(output *out, supervised_task *tasks, int count)
{
  int rows = 0;
  for (int i = 0; i < count; i++) rows += rows_of(&tasks[i]);
  out->writers = calloc((size_t)rows + 1, sizeof *out->writers); /* of 0 elements it might be NULL */
  if (!out->writers) return 0;
  for (int i = 0; i < count; i++) {
    for (int row = 0; row < rows_of(&tasks[i]); row++) out->writers[out->writer_count++] = row_of(&tasks[i], row);
  }
  out->joined = out->form == OUTPUT_TABLE && is_same_terminal();
  return 1;
}

void roles_release(output *out)
{
  free(out->writers);
  output_release(out);
}

static void show(output *out, const char *event, const output_writer *writer)
{
  if (out->form == OUTPUT_JSON) events_life(out, event, writer);
  out->stale = 1;
}

void roles_begin(output *out, supervised_task *task)
{
  task->writer.state = OUTPUT_RUNNING;                 /* of mpirun, too, which has no row */
  task->writer.process = (int)task->process;
  for (int row = 0; row < rows_of(task); row++) {
    output_writer *writer = row_of(task, row);
    writer->state = OUTPUT_RUNNING;
    writer->process = (int)task->process;
    writer->restarts = task->restarts;
    writer->last_count = 0;
    show(out, task->restarts > 0 ? "restarted" : "started", writer);
  }
}

/* Of mpirun's ranks one has failed, if any is known to have; the others were ended with it. */
void roles_end(output *out, supervised_task *task, int status, enum output_state state)
{
  int failed = task->ranks && task->streams[1].failed >= 0 ? task->streams[1].failed : task->ranks ? task->streams[0].failed : -1;
  task->writer.state = state;
  for (int row = 0; row < rows_of(task); row++) {
    output_writer *writer = row_of(task, row);
    int ended = state == OUTPUT_FAILED && failed >= 0 && row != failed;      /* mpirun ends the others */
    writer->status = status;
    writer->state = ended ? OUTPUT_ENDED : state;
    show(out, "exited", writer);
  }
}

void roles_give_up(output *out, supervised_task *task)
{
  for (int row = 0; row < rows_of(task); row++) row_of(task, row)->state = OUTPUT_FAILED;
  out->stale = 1;
}

void roles_finish(output *out, int code)
{
  if (out->form == OUTPUT_JSON) events_finished(out, code);
  table_draw(out, streams_now(), 1);
}
