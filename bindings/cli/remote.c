/* remote.c: both sides of a task on another machine. */
#define _GNU_SOURCE
#include "remote.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "flow.h"
#include "processes.h"

extern char **environ;

/* ---- the launcher's side ------------------------------------------------------------------------------------------------------------- */

/* Before the mark every byte may be ssh's or a shell's word about why it does not work: the last 512 bytes are kept for remote_describe.
 * After it they are the task's. */
void remote_take(remote_side *self, output *out, output_line *line, const char *bytes, size_t count, double now)
{
  const size_t mark = sizeof REMOTE_HERE - 1;
  while (!self->reached && count > 0) {
    if (self->count == sizeof self->said - 1) {           /* what is said last counts */
      memmove(self->said, self->said + self->count / 2, self->count - self->count / 2);
      self->count -= self->count / 2;
    }
    self->said[self->count++] = *bytes++;
    self->said[self->count] = '\0';
    count--;
    self->reached = self->count >= mark && memcmp(self->said + self->count - mark, REMOTE_HERE, mark) == 0;
    if (self->reached) output_add(out, line, self->said, self->count - mark, now);
  }
  if (count > 0) output_add(out, line, bytes, count, now);
}

void remote_signal(const remote_side *self, int number)
{
  const char byte = (char)number;
  if (self->input >= 0 && write(self->input, &byte, 1) < 0) return; /* a process that has ended needs no signal */
}

/* The last line that is not empty, in place. */
static const char *last_line(char *text)
{
  size_t length = strlen(text);
  while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == '\r')) text[--length] = '\0';
  const char *line = strrchr(text, '\n');
  return line ? line + 1 : text;
}

/* ssh exits with 255 for its own failures, with the program's code otherwise; flowlua --remote turns a signal into 128 and its number,
 * as shells do, which is turned back here. */
void remote_describe(const remote_side *self, int status, char *text, size_t size)
{
  enum { FAILED_CONNECTION = 255, BY_SIGNAL = 128 };
  char said[sizeof self->said], how[64];
  int code = processes_exit_code(status);
  if (self->host && !self->reached) {
    memcpy(said, self->said, self->count);
    said[self->count] = '\0';
    processes_describe(status, how, sizeof how);
    const char *line = last_line(said);
    if (*line) snprintf(text, size, "was not started on %s: %s", self->host, line);
    else snprintf(text, size, "was not started on %s: ssh %s and said nothing", self->host, how);
  } else if (self->host && code == FAILED_CONNECTION) {
    snprintf(text, size, "exited with %d: its connection to %s may be lost", code, self->host);
  } else {
    int by_signal = self->host && WIFEXITED(status) && code > BY_SIGNAL;
    processes_describe(by_signal ? code - BY_SIGNAL : status, text, size);
  }
}

/* ---- the other side ------------------------------------------------------------------------------------------------------------------ */

/* All of it, or 0. */
static int read_bytes(char *to, size_t count)
{
  while (count > 0) {
    ssize_t part = read(0, to, count);
    if (part < 0 && errno == EINTR) continue;
    if (part <= 0) return 0;
    to += part;
    count -= (size_t)part;
  }
  return 1;
}

/* The texts of an order, with a zero after them, for free(), or NULL after a sentence. Byte by byte to the end of the first line: nothing
 * beyond the order may be read, since signals follow it on the same stream. */
static char *read_order(size_t *bytes)
{
  char line[128], version[64] = "";
  size_t length = 0;
  *bytes = 0;
  do {
    if (!read_bytes(line + length, 1)) break;
  } while (line[length++] != '\n' && length < sizeof line - 1);
  line[length] = '\0';
  int fields = sscanf(line, "flowlua %63s %zu", version, bytes);
  if (fields != 2 || strcmp(version, flow_version()) != 0) {
    fprintf(stderr, fields < 1 ? "%s%sflowlua --remote is what flowlua launch --hosts starts\n"
                               : "this host has flowlua %s, the launcher %s: all hosts need the same version\n",
            fields < 1 ? "" : flow_version(), fields < 1 ? "" : version);
    return NULL;
  }
  char *order = *bytes <= REMOTE_MOST_BYTES ? malloc(*bytes + 1) : NULL;
  if (order && read_bytes(order, *bytes)) {
    order[*bytes] = '\0';
    return order;
  }
  if (order) fputs("the launcher went away before it had said what to do\n", stderr);
  else fprintf(stderr, "there is no memory for %zu bytes of an order\n", *bytes);
  free(order);
  return NULL;
}

/* Tasks on the same machine share its cores evenly, unless the user has set FLOW_THREADS. */
static void share_cores(const char *tasks)
{
  char text[16];
  int count = atoi(tasks), threads = count > 0 ? flow_threads() / count : 0;
  snprintf(text, sizeof text, "%d", threads > 1 ? threads : 1);
  if (!getenv("FLOW_THREADS")) setenv("FLOW_THREADS", text, 1);
}

/* Carries out the texts; arguments: as many as there are bytes would do. 0 after a sentence. */
static int take_order(char *order, size_t bytes, char **arguments)
{
  for (char *text = order; text < order + bytes; text += strlen(text) + 1) {
    char *value = text + 1, *equals = strchr(value, '=');
    if (*text == 'A') *arguments++ = value;
    else if (*text == 'U') unsetenv(value);
    else if (*text == 'S') share_cores(value);
    else if (*text == 'E' && equals) {
      *equals = '\0';
      setenv(value, equals + 1, 1);
      *equals = '=';
    } else if (*text == 'F' && chdir(value) != 0) {
      fprintf(stderr, "the folder %s of the launcher is not on this host: %s\n", value, strerror(errno));
      return 0;
    }
  }
  *arguments = NULL;
  return 1;
}

/* Signals of the launcher go to the program's group. Returns 0 at the end of stdin. */
static int pass_signals(pid_t child)
{
  char numbers[64];
  ssize_t count = read(0, numbers, sizeof numbers);
  if (count < 0) return errno == EINTR || errno == EAGAIN;
  for (ssize_t i = 0; i < count; i++) if (numbers[i] > 0 && numbers[i] < NSIG) kill(-child, numbers[i]);
  return count > 0;
}

/* Until the program or the launcher ends. */
static int watch(pid_t child, int signals)
{
  int status = 0, lives = 1;
  struct signalfd_siginfo info;
  while (lives) {
    struct pollfd events[2] = { { .fd = 0, .events = POLLIN }, { .fd = signals, .events = POLLIN } };
    if (poll(events, 2, -1) < 0 && errno != EINTR) break;
    if (events[0].revents && !pass_signals(child)) break;
    while (read(signals, &info, sizeof info) == (ssize_t)sizeof info) {
      siginfo_t ended = { .si_pid = 0 };
      if (info.ssi_signo != SIGCHLD) kill(-child, (int)info.ssi_signo);
      else if (waitid(P_PID, (id_t)child, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid == child) lives = 0;
    }
  }
  kill(-child, SIGKILL);                     /* its number is still its own */
  waitpid(child, &status, 0);
  processes_end_all();
  return processes_exit_code(status);
}

/* Prepares this process as supervise_children does for local tasks: it leads a process group, adopts orphans and reads signals from a
 * descriptor. */
static int run_order(char **arguments)
{
  static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGCHLD };
  sigset_t watched, mask;
  sigemptyset(&watched);
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) sigaddset(&watched, numbers[i]);
  sigprocmask(SIG_BLOCK, &watched, &mask);
  signal(SIGPIPE, SIG_IGN);
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  int signals = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
  const process_start start = { .arguments = arguments, .environment = environ, .listens = -1, .mask = &mask };
  pid_t child = signals >= 0 ? processes_start(&start, NULL, NULL, NULL) : -1;
  if (child > 0) return watch(child, signals);
  fprintf(stderr, "%s cannot be started: %s\n", arguments[0], strerror(errno));
  return 1;
}

int remote_run(void)
{
  size_t bytes;
  char *order = read_order(&bytes);
  if (!order) return 1;
  char **arguments = calloc(bytes + 1, sizeof *arguments);
  int code = 1;
  if (arguments && take_order(order, bytes, arguments) && arguments[0]) {
    fputs(REMOTE_HERE, stderr);
    fflush(stderr);
    code = run_order(arguments);
  }
  free(arguments);
  free(order);
  return code;
}
