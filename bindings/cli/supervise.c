/* supervise.c: starts the tasks of a cluster, passes on what they write and signals, and ends all when one fails. */
#define _GNU_SOURCE
#include "supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "restart.h"
#include "roles.h"
#include "streams.h"
#include "table.h"

/* COLOURS: of prefixes, all but black and white. MORE_THAN_ONCE_MS: Ctrl-C reaches this process by way of the caller's and, at times,
 * directly. LATE_OUTPUT_MS: how long more output is waited for when the last task has ended. */
enum { COLOURS = 6, MORE_THAN_ONCE_MS = 300, LATE_OUTPUT_MS = 2000 };
/* GRACE: kill_after seconds in which all end by themselves; TERMINATED: as long again after SIGTERM; KILLED: after SIGKILL. It never goes
 * back, and nothing is started again after RUNNING. */
enum phase { RUNNING, GRACE, TERMINATED, KILLED };

typedef struct job {
  supervised_task *tasks;
  int    count;
  double kill_after;
  output out;
  enum phase phase;
  double deadline;                     /* of the phase GRACE or TERMINATED */
  int    code;                         /* of the first failure */
  int    signal;                       /* that was passed on; 0: none */
  double signalled;                    /* when */
  int    signals, lifeline;            /* descriptors: signalfd; a pipe whose other end the caller's process has */
  int    told_of_loss;
  int    restarts, max_restarts;
  int    min_workers;                  /* tasks that decide which the job may go on with, the first among them; 0: all */
  int    one_done;                     /* a task that decides has ended with 0 */
  const sigset_t *mask;                /* of the tasks */
} job;

__attribute__((format(printf, 2, 3)))
static void say(job *self, const char *format, ...)
{
  char text[600] = "flowlua launch: ";
  size_t used = strlen(text);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text + used, sizeof text - used, format, arguments);
  va_end(arguments);
  output_say(&self->out, text);
}

/* ---- signals to tasks ---------------------------------------------------------------------------------------------------------------- */

/* To the task's group, or to the other machine; SIGKILL always goes to the local process, ssh too, whose end kills the remote side. */
static void signal_task(const supervised_task *task, int number)
{
  if (!task->process) return;
  if (task->remote.host && number != SIGKILL) remote_signal(&task->remote, number);
  else if (task->signals_children && number == SIGINT) processes_signal_children(task->process, number);
  else kill(-task->process, number);
}

static void signal_all(job *self, int number)
{
  for (int i = 0; i < self->count; i++) signal_task(&self->tasks[i], number);
}

static int running(const job *self, int only_deciding)
{
  int count = 0;
  for (int i = 0; i < self->count; i++) {
    const supervised_task *task = &self->tasks[i];
    count += (task->process || task->restart_at > 0) && (task->decides || !only_deciding);
  }
  return count;
}

/* "worker:0, worker:2": who still runs. */
static const char *running_names(const job *self, char *text, size_t size)
{
  size_t used = 0;
  text[0] = '\0';
  for (int i = 0; i < self->count && used + 1 < size; i++) {
    if (!self->tasks[i].process) continue;
    int length = snprintf(text + used, size - used, "%s%s", used ? ", " : "", self->tasks[i].writer.name);
    used += length > 0 ? (size_t)length : 0;
  }
  return text;
}

/* A task that was to be started again is not. */
static void forget_restart(job *self, supervised_task *task)
{
  if (task->restart_at <= 0) return;
  task->restart_at = 0;
  roles_give_up(&self->out, task);
}

static void forget_restarts(job *self)
{
  for (int i = 0; i < self->count; i++) forget_restart(self, &self->tasks[i]);
}

static void begin_grace(job *self)
{
  if (self->phase != RUNNING) return;
  self->phase = GRACE;
  forget_restarts(self);
  self->deadline = streams_now() + self->kill_after;
}

static void kill_all(job *self)
{
  self->phase = KILLED;
  forget_restarts(self);
  signal_all(self, SIGKILL);
}

/* The time of GRACE or TERMINATED is over: the next, harder step, for all that still run. */
static void pass_deadline(job *self)
{
  char names[200];
  int terminate = self->phase == GRACE;
  say(self, "%s did not end within %g s: %s", running_names(self, names, sizeof names), self->kill_after,
      terminate ? "SIGTERM" : "SIGKILL");
  if (!terminate) {
    kill_all(self);
    return;
  }
  signal_all(self, SIGTERM);
  self->phase = TERMINATED;
  self->deadline = streams_now() + self->kill_after;
}

/* The same signal may come twice at once, to the process and to its group. */
static void take_signal(job *self, int number)
{
  double now = streams_now();
  if (self->signal && now - self->signalled < MORE_THAN_ONCE_MS * 1e-3) return;
  if (self->signal) {
    say(self, "killed");
    if (!self->code) self->code = 128 + number;
    kill_all(self);
    return;
  }
  self->signal = number;
  self->signalled = now;
  forget_restarts(self);
  signal_all(self, number);
  /* What mpirun ends does not end when a host is gone. */
  for (int i = 0; i < self->count; i++) if (self->tasks[i].ranks && !self->tasks[i].signals_children) begin_grace(self);
}

/* ---- the end of tasks ---------------------------------------------------------------------------------------------------------------- */

static void tell_failure(job *self, const supervised_task *task, int status, int begins)
{
  char how[400], names[200];
  const char *name = restart_describe_end(task, status, how, sizeof how);
  if (begins && running(self, 0) > 0) {
    say(self, "%s %s; %s: %g s to end", name, how, running_names(self, names, sizeof names), self->kill_after);
  } else {
    say(self, "%s %s", name, how);
  }
}

/* Whether a task that failed is started again. One that somebody has asked to end (SIGTERM) has not failed. When one task is done, all are:
 * they end together, and one that is lost then would wait for the others in vain. */
static int may_restart(const job *self, int code)
{
  if (self->phase != RUNNING || self->signal || self->max_restarts == 0 || self->one_done) return 0;
  return code == 128 + SIGTERM || self->restarts < self->max_restarts;
}

/* Tasks that fail together do not come back at the same moment each time. */
static void plan_restart(job *self, supervised_task *task, int status)
{
  char how[400];
  double now = streams_now();
  int preempted = processes_exit_code(status) == 128 + SIGTERM, none = 0;
  self->restarts += !preempted;
  task->restart_at = now + restart_pause(now - task->started, preempted ? &none : &task->failures);
  const char *name = restart_describe_end(task, status, how, sizeof how), *what = task->ranks ? "the job" : "it";
  if (preempted) say(self, "%s was preempted; %s starts again", name, what);
  else say(self, "%s %s; %s starts again (%d of %d)", name, how, what, self->restarts, self->max_restarts);
}

/* A task is done: those that were to be started again are not. */
static void drop_restarts(job *self, const supervised_task *done)
{
  self->one_done = 1;
  for (int i = 0; i < self->count; i++) {
    supervised_task *task = &self->tasks[i];
    if (task->restart_at <= 0) continue;
    forget_restart(self, task);
    if (!self->code && self->min_workers == 0) self->code = 1;
    say(self, "%s is not started again: %s is done, nobody waits for it", task->writer.name, done->writer.name);
  }
}

/* The job goes on without a task that failed, unless it is the first, the chief, or too few are left; and after the chief's end. */
static int does_without(job *self, const supervised_task *task, int status)
{
  char how[400];
  int enough = self->min_workers > 0 && (self->one_done || running(self, 1) >= self->min_workers);
  if (!enough || self->phase > GRACE || self->code || self->signal || !task->decides || task == self->tasks) return 0;
  const char *name = restart_describe_end(task, status, how, sizeof how);
  say(self, "%s %s; the others go on without it", name, how);
  return 1;
}

/* The chief is done. Who was started again and does not know yet will not find it. */
static void end_late_tasks(job *self)
{
  for (int i = 0; i < self->count; i++) if (self->tasks[i].process && self->tasks[i].failures > 0) begin_grace(self);
}

/* What a task's end means for the job, in this order: its row, restarts of others that are pointless now, its own restart, whether the
 * job can do without it, and only then the failure of the whole job, which the exit code of the first such task tells. */
static void take_end(job *self, supervised_task *task, int status)
{
  int code = processes_exit_code(status), again = code != 0 && may_restart(self, code);
  int asked = self->phase >= TERMINATED || (self->signal && code == 128 + self->signal);
  task->process = 0;
  roles_end(&self->out, task, status, code == 0 ? OUTPUT_DONE : again ? OUTPUT_RESTARTING : asked ? OUTPUT_ENDED : OUTPUT_FAILED);
  if (task->remote.input >= 0) close(task->remote.input);
  task->remote.input = -1;
  if (code == 0 && task->decides) drop_restarts(self, task);
  if (code == 0 && task == self->tasks && self->min_workers > 0) end_late_tasks(self);
  if (again) {
    plan_restart(self, task, status);
    return;
  }
  if (code != 0 && does_without(self, task, status)) code = 0;
  if (code != 0 && self->phase < TERMINATED) {
    int obeyed = self->signal && code == 128 + self->signal, begins = self->phase == RUNNING;
    if (!self->code) self->code = code;
    if (!obeyed) begin_grace(self);
    if (!obeyed) tell_failure(self, task, status, begins);
  }
  if (running(self, 0) > 0 && running(self, 1) == 0) begin_grace(self);
}

/* A group is killed before its leader is reaped: until then no other process can have its number. */
static void reap(job *self)
{
  siginfo_t info;
  for (;;) {
    int status;
    info.si_pid = 0;
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
    supervised_task *task = NULL;
    for (int i = 0; i < self->count; i++) if (self->tasks[i].process == info.si_pid) task = &self->tasks[i];
    if (task) kill(-info.si_pid, SIGKILL);
    if (waitpid(info.si_pid, &status, 0) != info.si_pid || !task) continue;
    for (int to = 0; to < 2; to++) streams_drain(&self->out, task, to);      /* what it said goes before what is said of its end */
    take_end(self, task, status);
  }
}

/* ---- output -------------------------------------------------------------------------------------------------------------------------- */

static int open_pipes(const job *self)
{
  int count = 0;
  for (int i = 0; i < self->count; i++) count += (self->tasks[i].pipes[0] >= 0) + (self->tasks[i].pipes[1] >= 0);
  return count;
}

static void tell_losses(job *self)
{
  if (!self->out.lost || self->told_of_loss) return;
  self->told_of_loss = 1;
  say(self, "some output is lost: %s", strerror(self->out.lost));
}

/* The reader of our output has closed it: as for any program in a pipeline, the job ends. */
static void check_reader(job *self)
{
  if (self->out.queue[0].dead != EPIPE || self->signal) return;
  self->signal = SIGTERM;
  self->signalled = streams_now();
  if (!self->code) self->code = 128 + SIGPIPE;
  signal_all(self, SIGTERM);
}

/* ---- an mpirun that stays when a rank has failed, as Open MPI does at times when the others are in MPI_Init -------------------------- */

static void watch_ranks(job *self)
{
  for (int i = 0; i < self->count; i++) {
    supervised_task *task = &self->tasks[i];
    int failed = task->process && task->ranks && (task->streams[0].failed >= 0 || task->streams[1].failed >= 0);
    if (failed && task->overdue_at == 0) task->overdue_at = streams_now() + self->kill_after;
  }
}

static void kill_overdue(job *self)
{
  double now = streams_now();
  for (int i = 0; i < self->count; i++) {
    supervised_task *task = &self->tasks[i];
    if (!task->process || task->overdue_at <= 0 || task->overdue_at > now) continue;
    say(self, "%s did not end within %g s of a rank's failure: killed", task->writer.name, self->kill_after);
    task->overdue_at = 0;
    kill(-task->process, SIGKILL);
  }
}

/* ---- starting tasks ------------------------------------------------------------------------------------------------------------------ */

/* A task that cannot even be started (no memory, no process) ends the job: its partners would wait for it. */
static void start_task(job *self, supervised_task *task)
{
  task->start.mask = self->mask;
  task->started = streams_now();
  task->restart_at = 0;
  task->overdue_at = 0;
  task->remote.reached = 0;
  task->remote.count = 0;
  task->process = processes_start(&task->start, &task->pipes[0], &task->pipes[1], &task->remote.input);
  int reason = errno;
  /* Only the task has its socket: when it ends, connecting to it fails. */
  if (task->start.listens >= 0) close(task->start.listens);
  task->start.listens = -1;
  if (task->process > 0) {
    roles_begin(&self->out, task);
    return;
  }
  task->process = 0;
  say(self, "%s cannot be started: %s", task->writer.name, strerror(reason));
  if (!self->code) self->code = 1;
  kill_all(self);
}

/* Tasks whose pause is over. The lines of their last run are ended first; a process that still holds its pipe is not read any more. */
static void start_again(job *self)
{
  double now = streams_now();
  for (int i = 0; i < self->count; i++) {
    supervised_task *task = &self->tasks[i];
    if (task->restart_at <= 0 || task->restart_at > now) continue;
    streams_finish(&self->out, task);
    streams_prepare(task);
    if (task->ranks) processes_end_all();               /* those that mpirun has left */
    restart_prepare(task->start.environment);
    task->restarts++;
    start_task(self, task);
  }
}

/* ---- the loop ------------------------------------------------------------------------------------------------------------------------ */

static void take_signals(job *self)
{
  struct signalfd_siginfo info;
  while (read(self->signals, &info, sizeof info) == (ssize_t)sizeof info) {
    if (info.ssi_signo == SIGCHLD) reap(self);
    else take_signal(self, (int)info.ssi_signo);
  }
}

/* Waits for the next event, at most `timeout` milliseconds (-1: for ever), and takes what came. Returns how many there were. */
static int turn(job *self, struct pollfd *events, int timeout)
{
  int full = output_is_full(&self->out), count = 4;
  events[0] = (struct pollfd){ .fd = self->signals, .events = POLLIN };
  events[1] = (struct pollfd){ .fd = self->lifeline, .events = POLLIN };
  for (int which = 0; which < 2; which++) {
    short wanted = output_events(&self->out, which);
    events[2 + which] = (struct pollfd){ .fd = wanted ? self->out.queue[which].descriptor : -1, .events = wanted };
  }
  for (int i = 0; i < self->count; i++) {
    for (int to = 0; to < 2; to++) events[count++] = (struct pollfd){ .fd = full ? -1 : self->tasks[i].pipes[to], .events = POLLIN };
  }
  int redraw = table_wait(&self->out, streams_now()), first = redraw >= 0 && (timeout < 0 || redraw < timeout);
  int came = poll(events, (nfds_t)count, first ? redraw : timeout);
  if (came <= 0) {
    table_draw(&self->out, streams_now(), 0);
    return came == 0 && first ? 1 : came;                 /* the caller's time is not over */
  }
  if (events[1].revents) {                              /* the caller's process was killed */
    signal_all(self, SIGKILL);
    processes_end_all();
    _exit(128 + SIGKILL);
  }
  for (int which = 0; which < 2; which++) if (events[2 + which].revents) output_write(&self->out, which);
  for (int i = 0; i < self->count; i++) {
    for (int to = 0; to < 2; to++) {
      if (events[4 + i * 2 + to].revents && self->tasks[i].pipes[to] >= 0) streams_take(&self->out, &self->tasks[i], to);
    }
  }
  if (events[0].revents) take_signals(self);
  watch_ranks(self);
  check_reader(self);
  tell_losses(self);
  table_draw(&self->out, streams_now(), 0);
  return came;
}

static double sooner(double one, double other)
{
  return one == 0 || (other > 0 && other < one) ? other : one;
}

/* Milliseconds until the deadline of the phase, or, while tasks run, until one is overdue or is started again; -1: there is none. */
static int until_deadline(const job *self)
{
  double next = self->phase == GRACE || self->phase == TERMINATED ? self->deadline : 0;
  for (int i = 0; i < self->count; i++) {
    next = sooner(next, self->tasks[i].restart_at);
    if (self->phase == RUNNING && self->tasks[i].process) next = sooner(next, self->tasks[i].overdue_at);
  }
  if (next == 0) return -1;
  double left = (next - streams_now()) * 1e3;
  return left <= 0 ? 0 : left > 1e6 ? 1000000 : (int)left + 1;
}

/* Until nobody runs any more; then all descendants that are left are killed, what they wrote is read, and the queues are written out. A
 * signal at that time ends the writing: the reader may have stopped. */
static void run(job *self, struct pollfd *events)
{
  while (running(self, 0) > 0) {
    turn(self, events, until_deadline(self));
    if (until_deadline(self) != 0 || running(self, 0) == 0) continue;
    if (self->phase != RUNNING) pass_deadline(self);
    else kill_overdue(self);
    if (self->phase == RUNNING) start_again(self);
  }
  processes_end_all();
  /* What was written before the end; a stranger who has the pipe open does not hold us up. */
  while (open_pipes(self) > 0 && self->phase != KILLED && turn(self, events, LATE_OUTPUT_MS) > 0) continue;
  for (int i = 0; i < self->count; i++) {
    for (int to = 0; to < 2; to++) streams_drain(&self->out, &self->tasks[i], to);
  }
  roles_finish(&self->out, self->code);
  while (output_events(&self->out, 0) | output_events(&self->out, 1)) {
    int before = self->signal;
    turn(self, events, -1);
    if (self->phase == KILLED || self->signal != before) return;
  }
}

/* ---- the beginning ------------------------------------------------------------------------------------------------------------------- */

static int prepare_task(supervised_task *task, int *colour)
{
  static const int colours[COLOURS] = { 36, 33, 32, 35, 34, 31 };
  task->remote.input = -1;
  task->writer.colour = colours[(*colour)++ % COLOURS];
  if (task->ranks) {
    task->rank_lines = calloc((size_t)task->ranks * 2, sizeof *task->rank_lines);
    if (!task->rank_lines) return 0;
  }
  streams_prepare(task);
  for (int rank = 0; rank < task->ranks; rank++) task->rank_writers[rank].colour = colours[(*colour)++ % COLOURS];
  return 1;
}

/* The second process: the tasks are its children, and orphans of theirs come to it, too. It has its own process group, ignores
 * SIGPIPE (it looks at what write returns) and SIGTTOU (a background job may write). */
int supervise_children(const supervision *wanted, const sigset_t *watched, const sigset_t *mask, int lifeline)
{
  job self = { .tasks = wanted->tasks, .count = wanted->count, .kill_after = wanted->kill_after, .max_restarts = wanted->max_restarts,
               .min_workers = wanted->min_workers, .mask = mask, .lifeline = lifeline, .out.form = wanted->form };
  supervised_task *tasks = self.tasks;
  int count = self.count, colour = 0;
  setpgid(0, 0);                                        /* Ctrl-C comes once, from the caller's process */
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGTTOU, SIG_IGN);
  self.signals = signalfd(-1, watched, SFD_CLOEXEC | SFD_NONBLOCK);
  for (int which = 0; which < 2; which++) {
    self.out.queue[which].descriptor = which + 1;
    self.out.colours[which] = output_is_coloured(which + 1);
  }
  struct pollfd *events = calloc((size_t)count * 2 + 4, sizeof *events);
  int ready = events && self.signals >= 0 && roles_prepare(&self.out, tasks, count);
  for (int i = 0; i < count && ready; i++) ready = prepare_task(&tasks[i], &colour);
  if (!ready) {
    fprintf(stderr, "flowlua launch: %s\n", strerror(errno));
    free(events);
    return 1;
  }
  srand((unsigned)getpid());
  for (int i = 0; i < count && self.phase == RUNNING; i++) start_task(&self, &tasks[i]);
  run(&self, events);
  free(events);
  roles_release(&self.out);
  return self.code;
}
