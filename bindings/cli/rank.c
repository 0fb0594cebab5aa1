/* rank.c: the process between mpirun and a rank. Signals of mpirun go to the group, so the program has them by itself; here they only tell
 * that the end is nobody's failure. */
#define _GNU_SOURCE
#include "rank.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "processes.h"

/* In the group of this process: mpirun signals the group. Killed with this process. */
static pid_t start(char **arguments, const sigset_t *mask)
{
  pid_t parent = getpid(), child = fork();
  if (child != 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  sigprocmask(SIG_SETMASK, mask, NULL);
  if (getppid() == parent) execvp(arguments[0], arguments);
  fprintf(stderr, "%s cannot be run: %s\n", arguments[0], strerror(errno));
  _exit(127);
}

/* All signals are blocked and waited for one by one, so that the order "was told to end, then ended" is certain. */
int rank_run(char **arguments)
{
  static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGCHLD };
  sigset_t watched, mask;
  char how[64];
  int status, told = 0;
  sigemptyset(&watched);
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) sigaddset(&watched, numbers[i]);
  sigprocmask(SIG_BLOCK, &watched, &mask);
  pid_t child = start(arguments, &mask);
  if (child < 0) {
    fprintf(stderr, "%s cannot be run: %s\n", arguments[0], strerror(errno));
    return 1;
  }
  while (waitpid(child, &status, WNOHANG) == 0) {
    int number = sigwaitinfo(&watched, NULL);
    if (number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT) told = 1;
  }
  int code = processes_exit_code(status);
  processes_describe(status, how, sizeof how);
  if (code != 0 && !told) fprintf(stderr, "%s%s\n", RANK_ENDED, how);
  return code;
}
