/* streams.c: what a task writes, on its way from its pipes to lines with its name in front. */
#include "streams.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

enum { CHUNK = 65536 };

double streams_now(void)
{
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

void streams_prepare(supervised_task *task)
{
  double now = streams_now();
  for (int to = 0; to < 2; to++) {
    task->pipes[to] = -1;
    task->lines[to] = (output_line){ .writer = &task->writer, .to = to, .shown = now };
    task->streams[to] = (tagged){ .ranks = task->ranks, .spaces = task->tag_spaces, .lines = task->rank_lines, .own = &task->lines[to],
                                  .current = &task->lines[to], .failed = -1 };
    for (int rank = 0; rank < task->ranks; rank++) {
      task->rank_lines[rank * 2 + to] = (output_line){ .writer = &task->rank_writers[rank], .to = to, .shown = now };
    }
  }
}

void streams_finish(output *out, supervised_task *task)
{
  double now = streams_now();
  for (int to = 0; to < 2; to++) {
    if (task->ranks) tagged_finish(out, &task->streams[to], now);
    for (int rank = 0; rank < task->ranks; rank++) output_finish(out, &task->rank_lines[rank * 2 + to], now);
    output_finish(out, &task->lines[to], now);
    if (task->pipes[to] >= 0) close(task->pipes[to]);          /* a stranger may have it open still */
  }
}

/* One read of at most CHUNK bytes; a pipe holds as much. The bytes go where the task's kind wants them: by ranks, through ssh, or
 * straight to lines. At the end a last line without an end is shown, and the pipe is closed. */
ssize_t streams_take(output *out, supervised_task *task, int to)
{
  static char chunk[CHUNK];
  ssize_t count = read(task->pipes[to], chunk, sizeof chunk);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return -1;
  double now = streams_now();
  if (count > 0) {
    if (task->ranks) tagged_add(out, &task->streams[to], chunk, (size_t)count, now);
    else if (task->remote.host && to == 1) remote_take(&task->remote, out, &task->lines[to], chunk, (size_t)count, now);
    else output_add(out, &task->lines[to], chunk, (size_t)count, now);
    return count;
  }
  if (task->ranks) tagged_finish(out, &task->streams[to], now);
  output_finish(out, &task->lines[to], now);
  close(task->pipes[to]);
  task->pipes[to] = -1;
  return 0;
}

void streams_drain(output *out, supervised_task *task, int to)
{
  for (int i = 0; i < 64 && task->pipes[to] >= 0 && streams_take(out, task, to) > 0; i++) continue;
}
