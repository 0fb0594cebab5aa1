/* restart.c: see restart.h. */
#include "restart.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static const double FIRST_PAUSE = 0.1, LONGEST_PAUSE = 60, LONG_LIFE = 5;      /* seconds */

double restart_pause(double lived, int *failures)
{
  double pause = FIRST_PAUSE;
  *failures = lived < LONG_LIFE ? *failures + 1 : 1;
  for (int i = 1; i < *failures && pause < LONGEST_PAUSE; i++) pause *= 2;
  if (pause > LONGEST_PAUSE) pause = LONGEST_PAUSE;
  return pause * (0.75 + 0.5 * (double)rand() / RAND_MAX);
}

void restart_prepare(char **environment)
{
  static const char name[] = "FLOW_LISTEN_DESCRIPTOR=";
  char **to = environment;
  for (char **from = environment; *from; from++) {
    if (strncmp(*from, name, sizeof name - 1) != 0) *to++ = *from;
  }
  *to = NULL;
}

const char *restart_describe_end(const supervised_task *task, int status, char *how, size_t size)
{
  remote_describe(&task->remote, status, how, size);
  for (int to = 1; to >= 0 && task->ranks; to--) {                          /* stderr tells which was first */
    if (task->streams[to].failed < 0) continue;
    if (task->streams[to].how[0]) snprintf(how, size, "%s", task->streams[to].how);
    else if (WIFEXITED(status) && WEXITSTATUS(status) > 128) processes_describe(WEXITSTATUS(status) - 128, how, size);      /* as a shell */
    return task->rank_writers[task->streams[to].failed].name;
  }
  return task->writer.name;
}
