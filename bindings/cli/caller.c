/* caller.c: the process that asks for a cluster: it passes signals on to the second one, which has the tasks (supervise.c), and waits for
 * it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "processes.h"
#include "supervise.h"

/* Descriptors for each task, and for the rest. A task has two pipes that are read, and perhaps one that is written; its own ends are closed
 * when it has been started. poll() refuses more entries than the limit, of which there are two for each task. */
enum { EACH = 3, BESIDE = 32 };

/* Two processes, so that killing one of them, even by SIGKILL, leaves the other to end the tasks. This one is the reaper of orphans
 * (subreaper): if the second one dies, its tasks become children of this one, which processes_wait_for ends. The second one notices the
 * end of this one by the pipe `lifeline`. Signals are blocked and waited for, not handled, so that none is lost between fork and wait. */
int supervise(const supervision *wanted)
{
  static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGCHLD };
  sigset_t watched, mask;
  int lifeline[2], code = 1;
  unsigned long needed = (unsigned long)wanted->count * EACH + BESIDE, most = processes_raise_descriptors();
  if (most < needed) {
    fprintf(stderr,
            "flowlua launch: %d tasks take %lu file descriptors here, and this process may have %lu (ulimit -Hn): start fewer, "
            "or let it have more\n",
            wanted->count, needed, most);
    return 1;
  }
  processes_fill_descriptors();
  sigemptyset(&watched);
  for (int i = 0; i < 4; i++) {
    struct sigaction action;
    if (sigaction(numbers[i], NULL, &action) == 0 && action.sa_handler == SIG_IGN && numbers[i] == SIGHUP) continue;   /* nohup */
    sigaddset(&watched, numbers[i]);
  }
  struct sigaction standard = { .sa_handler = SIG_DFL }, before;
  sigaction(SIGCHLD, &standard, &before);              /* one that is ignored would let children go unseen */
  sigprocmask(SIG_BLOCK, &watched, &mask);
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  fflush(NULL);
  pid_t child = pipe2(lifeline, O_CLOEXEC) == 0 ? fork() : -1;
  if (child == 0) {
    close(lifeline[1]);
    _exit(supervise_children(wanted, &watched, &mask, lifeline[0]));
  }
  if (child < 0) fprintf(stderr, "flowlua launch: %s\n", strerror(errno));
  for (int i = 0; i < wanted->count; i++) if (wanted->tasks[i].start.listens >= 0) close(wanted->tasks[i].start.listens);
  if (child > 0) {
    close(lifeline[0]);
    code = processes_wait_for(child, &watched);
    close(lifeline[1]);
  }
  prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
  sigaction(SIGCHLD, &before, NULL);
  sigprocmask(SIG_SETMASK, &mask, NULL);
  return code;
}
