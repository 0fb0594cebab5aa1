/* processes.c: starts programs and ends whole trees of them. */
#define _GNU_SOURCE
#include "processes.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void processes_fill_descriptors(void)
{
  for (int i = 0; i < 3; i++) if (fcntl(i, F_GETFD) < 0) (void)!open("/dev/null", O_RDWR);
}

/* The limit before it was raised: programs get that one. */
static struct rlimit descriptors_before;

unsigned long processes_raise_descriptors(void)
{
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  struct rlimit raised = { limit.rlim_max, limit.rlim_max };
  if (limit.rlim_cur >= limit.rlim_max || setrlimit(RLIMIT_NOFILE, &raised) != 0) return limit.rlim_cur;
  descriptors_before = limit;
  return raised.rlim_cur;
}

/* What a program gets as stdin, stdout and stderr, and the other ends of those that are pipes; -1: there is none. */
typedef struct streams { int given[3], kept[3]; } streams;

static void close_all(const int *descriptors)
{
  for (int i = 0; i < 3; i++) if (descriptors[i] >= 0) close(descriptors[i]);
}

/* Its writing end holds the beginning already. */
static int open_input(const process_start *start, streams *to)
{
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return 0;
  to->given[0] = ends[0];
  to->kept[0] = ends[1];
  if (fcntl(ends[1], F_SETFL, O_NONBLOCK) != 0) return 0;
  if (start->input_bytes > 4096 && fcntl(ends[1], F_SETPIPE_SZ, (int)start->input_bytes) < 0) return 0;
  if (write(ends[1], start->input, start->input_bytes) == (ssize_t)start->input_bytes) return 1;
  errno = E2BIG;
  return 0;
}

/* Makes the pipes. Returns 0 with errno; what was made is in `to`, for close_all. */
static int open_streams(const process_start *start, int with_output, streams *to)
{
  *to = (streams){ { -1, -1, -1 }, { -1, -1, -1 } };
  if (start->input && !open_input(start, to)) return 0;
  for (int i = 1; i < 3 && with_output; i++) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return 0;
    to->kept[i] = ends[0];
    to->given[i] = ends[1];
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
  }
  return 1;
}

/* In the child, between fork and exec: async-signal-safe calls only. */
static void fail_to_become(const char *program, const char *why)
{
  if (write(2, program, strlen(program)) < 0 || write(2, " cannot be run: ", 16) < 0 || write(2, why, strlen(why)) < 0 ||
      write(2, "\n", 1) < 0)
    _exit(127);
  _exit(127);
}

/* As above. The outputs come first, so that messages of later failures are seen. */
static void become(const process_start *start, pid_t parent, const streams *has)
{
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127); /* the parent ended before the line above */
  for (int i = 1; i < 3; i++) if (has->given[i] >= 0 && dup2(has->given[i], i) < 0) _exit(127);
  int input = has->given[0] >= 0 ? has->given[0] : open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (input < 0 || dup2(input, 0) < 0) fail_to_become(start->arguments[0], strerror(errno));
  if (start->listens >= 0) fcntl(start->listens, F_SETFD, 0);
  if (start->inherits > 0) fcntl(start->inherits, F_SETFD, 0);
  signal(SIGPIPE, SIG_DFL);
  signal(SIGTTOU, SIG_DFL);
  signal(SIGXFSZ, SIG_DFL);
  sigprocmask(SIG_SETMASK, start->mask, NULL);
  if (descriptors_before.rlim_max > 0) setrlimit(RLIMIT_NOFILE, &descriptors_before);
  execvpe(start->arguments[0], start->arguments, start->environment);
  fail_to_become(start->arguments[0], strerror(errno));
}

/* All descriptors are closed on exec except those that the program gets, so that tasks do not hold each other's pipes and sockets open. */
pid_t processes_start(const process_start *start, int *output, int *errors, int *input)
{
  streams both;
  pid_t parent = getpid(), child = open_streams(start, output != NULL, &both) ? fork() : -1;
  if (child == 0) become(start, parent, &both);
  int reason = errno;
  close_all(both.given);
  if (child < 0) {
    close_all(both.kept);
    errno = reason;
    return -1;
  }
  setpgid(child, child);                              /* whichever of the two comes first */
  if (input) *input = both.kept[0];
  if (output) *output = both.kept[1];
  if (errors) *errors = both.kept[2];
  return child;
}

/* The parent of a process, 0 if it is gone. The name in /proc/PID/stat may hold anything, the last bracket ends it. */
static pid_t parent_of(const char *pid)
{
  char path[300], text[600];
  snprintf(path, sizeof path, "/proc/%s/stat", pid);
  int descriptor = open(path, O_RDONLY | O_CLOEXEC), parent = 0;
  ssize_t length = descriptor < 0 ? 0 : read(descriptor, text, sizeof text - 1);
  if (descriptor >= 0) close(descriptor);
  text[length > 0 ? length : 0] = '\0';
  const char *bracket = strrchr(text, ')');
  return bracket && sscanf(bracket + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

/* By /proc, since nobody tells which processes an mpirun has started. with_groups: a child that leads its own group gets the signal with
 * all of it. */
static void signal_children(pid_t parent, int number, int with_groups)
{
  DIR *folder = opendir("/proc");
  for (struct dirent *entry; folder && (entry = readdir(folder));) {
    if (!isdigit((unsigned char)entry->d_name[0]) || parent_of(entry->d_name) != parent) continue;
    pid_t child = (pid_t)strtol(entry->d_name, NULL, 10);
    if (with_groups && getpgid(child) == child) kill(-child, number);
    else kill(child, number);
  }
  if (folder) closedir(folder);
}

void processes_signal_children(pid_t parent, int number)
{
  signal_children(parent, number, 1);
}

/* A child keeps its number until it is reaped, so that no other process is hit. */
void processes_end_all(void)
{
  const struct timespec pause = { .tv_nsec = 2000000 };
  for (int tries = 0; tries < 2500; tries++) {
    pid_t found;
    do found = waitpid(-1, NULL, WNOHANG); while (found > 0);
    if (found < 0 && errno == ECHILD) return;
    signal_children(getpid(), SIGKILL, 0);
    nanosleep(&pause, NULL);
  }
}

/* NULL: one without a name in POSIX. Only newer versions of glibc have a function for it, and musl has none. */
static const char *signal_name(int number)
{
#define NAMED(signal) \
  {                   \
    signal, #signal   \
  }
  static const struct {
    int number;
    const char *name;
  } signals[] = {
    NAMED(SIGHUP),  NAMED(SIGINT),  NAMED(SIGQUIT), NAMED(SIGILL),    NAMED(SIGTRAP), NAMED(SIGABRT), NAMED(SIGBUS),
    NAMED(SIGFPE),  NAMED(SIGKILL), NAMED(SIGUSR1), NAMED(SIGSEGV),   NAMED(SIGUSR2), NAMED(SIGPIPE), NAMED(SIGALRM),
    NAMED(SIGTERM), NAMED(SIGXCPU), NAMED(SIGXFSZ), NAMED(SIGVTALRM), NAMED(SIGPROF), NAMED(SIGSYS),
  };
#undef NAMED
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
    if (signals[i].number == number) return signals[i].name;
  return NULL;
}

void processes_describe(int status, char *text, size_t size)
{
  if (WIFSIGNALED(status)) {
    const char *name = signal_name(WTERMSIG(status));
    if (name) snprintf(text, size, "was killed by %s", name);
    else snprintf(text, size, "was killed by signal %d", WTERMSIG(status));
  } else {
    snprintf(text, size, "exited with %d", WEXITSTATUS(status));
  }
}

int processes_exit_code(int status)
{
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* The child is reaped after its last signal was passed on: none goes to a stranger with its number. SIGCHLD is among the watched ones,
 * which ends the wait. */
int processes_wait_for(pid_t child, const sigset_t *watched)
{
  int status = 0;
  for (;;) {
    int number = sigwaitinfo(watched, NULL);
    if (number > 0 && number != SIGCHLD) kill(child, number);
    pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child || (ended < 0 && errno == ECHILD)) break;
  }
  if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
  processes_end_all();
  return processes_exit_code(status);
}
