/* worker_ranks.c: a cluster of processes for spec/dist/worker_spec.lua.
 *   worker_ranks PROGRAM WORKERS [VICTIM]         starts them: TF_CONFIG on free ports of this machine, which they get bound
 *   worker_ranks again WORKERS TIMES              opens and closes so often in the same processes, and says what grew
 *   mpirun -n WORKERS worker_ranks PROGRAM WORKERS [VICTIM]
 * Each line that a worker prints begins with "rank N". At the end there is a line "rank N ended with CODE" for each, -9 for a signal. */
#define _GNU_SOURCE                /* setenv, kill */
#include <arpa/inet.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "cluster/worker/worker_state.h"

enum { MOST_WORKERS = 8, PATIENCE = 60, LONG_PATIENCE = 1000 };      /* seconds after which a cluster that does not end is killed */

static int workers, victim = -1, rank;
static flow_context *context;
static flow_worker *worker;

static double seconds(void) { return flow_clock(); }

static int say(const char *what, double since)
{
  printf("rank %d: %s after %.3f s: %s\n", rank, what, since > 0 ? seconds() - since : 0.0, flow_last_error());
  fflush(stdout);
  return 1;
}

#define ASK(call)                                                                     \
  do {                                                                                \
    flow_status status_ = (call);                                                     \
    if (status_ != FLOW_OK) return say(flow_status_name(status_), moment);            \
  } while (0)

#define EXPECT(condition)                                                             \
  do {                                                                                \
    if (!(condition)) {                                                               \
      printf("rank %d: line %d: not %s\n", rank, __LINE__, #condition);               \
      return 2;                                                                       \
    }                                                                                 \
  } while (0)

static double moment;                          /* when the victim died, on every worker's clock: they share the machine's */

/* ---- programs of a worker: 0 ends well ----------------------------------------------------------------------------------------------- */

static int add_up(void)
{
  flow_exchange *exchange = flow_worker_exchange(worker);
  static float data[300000];
  int64_t ticket;
  EXPECT(exchange->workers == workers && exchange->worker == rank);
  for (int i = 0; i < 300000; i++) data[i] = (float)(rank + i % 7);
  ASK(exchange->begin(exchange, FLOW_FLOAT32, data, 300000, &ticket));
  ASK(exchange->finish(exchange, ticket));
  for (int i = 0; i < 300000; i++) EXPECT(data[i] == (float)(workers * (workers - 1) / 2 + workers * (i % 7)));
  return 0;
}

/* What the chief leaves, the others find, before and after; what nobody leaves is not a failure of the cluster. */
static int pass_notes(void)
{
  char text[20], cut[4];
  double calls = flow_worker_calls(worker);
  if (workers == 1) {
    ASK(flow_worker_publish(worker, "note", "for nobody"));
    EXPECT(flow_worker_lookup(worker, "note", 0, text, sizeof text) == FLOW_NOT_FOUND);
    return 0;
  }
  if (rank == 0) ASK(flow_worker_publish(worker, "note", "for all"));
  ASK(flow_worker_lookup(worker, "note", 30, text, sizeof text));
  EXPECT(strcmp(text, "for all") == 0);
  ASK(flow_worker_lookup(worker, "note", 0, cut, sizeof cut));
  EXPECT(strcmp(cut, "for") == 0);
  EXPECT(flow_worker_calls(worker) == calls);
  ASK(flow_worker_agree(worker, "place", "here"));
  EXPECT(flow_worker_calls(worker) == calls + 1);
  if (rank == 0) ASK(flow_worker_publish(worker, "note", ""));
  ASK(flow_worker_barrier(worker, "taken away"));
  EXPECT(flow_worker_lookup(worker, "note", 0.01, text, sizeof text) == FLOW_NOT_FOUND);
  ASK(flow_worker_check(worker));
  return 0;
}

static int run_calls(void)
{
  int all[MOST_WORKERS], mine = rank * 10, code = add_up();
  char text[20000];
  if (victim < 5) printf("rank %d: engine %s\n", rank, flow_worker_engine(worker));
  EXPECT(flow_worker_rank(worker) == rank && flow_worker_count(worker) == workers);
  if (code) return code;
  memset(text, rank == 0 ? 'a' : 'b', sizeof text);
  ASK(flow_worker_broadcast(worker, text, sizeof text));
  for (size_t i = 0; i < sizeof text; i++) EXPECT(text[i] == 'a');
  ASK(flow_worker_all_gather(worker, &mine, sizeof mine, all));
  for (int i = 0; i < workers; i++) EXPECT(all[i] == 10 * i);
  for (int i = 0; i < 3; i++) ASK(flow_worker_barrier(worker, "again"));
  code = pass_notes();
  if (code) return code;
  text[sizeof text - 1] = '\0';
  ASK(flow_worker_agree(worker, "text", text));
  ASK(flow_worker_check(worker));
  ASK(flow_worker_goodbye(worker));
  return 0;
}

static int run_differ(void)
{
  ASK(flow_worker_agree(worker, "model", rank == victim ? "Dense 10\nA layer with the name Dense, 12 relu units that are initialized by "
                                                 "glorot_uniform, no bias\n"
                                               : "Dense 10\nA layer with the name Dense, 10 relu units that are initialized by "
                                                 "glorot_uniform, no bias\n"));
  return 0;
}

/* After a failed comparison everything still works. */
static int run_differ_and_go_on(void)
{
  EXPECT(flow_worker_agree(worker, "model", rank == victim ? "x" : "y") == FLOW_INVALID_ARGUMENT);
  return run_calls();
}

static int run_other_program(void)
{
  int mine = 1, all[MOST_WORKERS];
  if (rank == victim) ASK(flow_worker_broadcast(worker, &mine, sizeof mine));
  else ASK(flow_worker_all_gather(worker, &mine, sizeof mine, all));
  return 0;
}

/* The victim trains, the others compare something. */
static int run_other_step(void)
{
  flow_exchange *exchange = flow_worker_exchange(worker);
  int64_t mine[4] = { 32, rank, 0, 1 }, all[4 * MOST_WORKERS];
  ASK(exchange->all_gather(exchange, mine, sizeof mine, all));
  for (int i = 0; i < workers; i++) EXPECT(all[4 * i] == 32 && all[4 * i + 1] == i && all[4 * i + 3] == 1);
  if (rank == victim) ASK(exchange->all_gather(exchange, mine, sizeof mine, all));
  else ASK(flow_worker_agree(worker, "optimizer", "SGD"));
  return 0;
}

/* All are at step 812; the victim then says when, and ends. */
static int disappear(int how)
{
  double times[MOST_WORKERS], mine;
  flow_worker_progress(worker, 812, "training");
  usleep(300000);                              /* a heartbeat brings the step to the chief */
  ASK(flow_worker_barrier(worker, "ready"));
  mine = seconds();
  ASK(flow_worker_all_gather(worker, &mine, sizeof mine, times));
  moment = times[victim];
  if (rank == victim) raise(how);
  return 0;
}

/* Sums without end, as in training. */
static int wait_in_sums(void)
{
  while (1) {
    int code = add_up();
    if (code) return code;
  }
}

static int wait_in_barrier(void)
{
  ASK(flow_worker_barrier(worker, "never"));
  return 0;
}

/* Computes for long and adds up nothing. */
static int wait_in_computation(void)
{
  while (1) {
    ASK(flow_worker_check(worker));
    usleep(1000);
  }
}

static int run_killed_in_sums(void) { return disappear(SIGKILL) || wait_in_sums(); }
static int run_killed_in_barrier(void) { return disappear(SIGKILL) || wait_in_barrier(); }
static int run_killed_in_computation(void) { return disappear(SIGKILL) || wait_in_computation(); }
static int run_stopped_in_sums(void) { return disappear(SIGSTOP) || wait_in_sums(); }
static int run_stopped_in_computation(void) { return disappear(SIGSTOP) || wait_in_computation(); }

/* The victim finds out that it cannot go on, and says why. */
static int run_gives_up(void)
{
  flow_worker_progress(worker, 7, "");
  ASK(flow_worker_barrier(worker, "ready"));
  moment = seconds();
  if (rank != victim) return wait_in_sums();
  ASK(flow_worker_fail(worker, "train.lua:3: no such file"));
  return 0;
}

/* A run that all announce, and that fails on this worker. */
static int fail_in_run(const char *why)
{
  flow_exchange *exchange = flow_worker_exchange(worker);
  int64_t mine = rank, all[MOST_WORKERS];
  ASK(exchange->all_gather(exchange, &mine, sizeof mine, all));
  moment = seconds();
  flow_fail(FLOW_INVALID_ARGUMENT, "%s", why);
  if (*why) exchange->failed(exchange);
  return 0;
}

/* It fails on the victim, whose program catches that. */
static int run_failed(void)
{
  flow_worker_progress(worker, 7, "");
  return fail_in_run(rank == victim ? "label 77 of row 1 is outside 0..2" : "") || (rank != victim && wait_in_sums());
}

/* It fails on all, of which the victim is late; they go on. */
static int run_failed_alike(void)
{
  for (int i = 0; i < 3; i++)
    if (fail_in_run("the loss is not a number") || (rank == victim && i < 2 && usleep(1500000))) return 1;
  return run_calls();
}

/* The victim cannot go on, and the others find out that they cannot either when its verdict is there. */
static int run_fails_too(void)
{
  ASK(flow_worker_barrier(worker, "ready"));
  if (rank != victim) EXPECT(flow_control_await_end(worker->control, PATIENCE));
  ASK(flow_worker_fail(worker, rank == victim ? "wrong data" : "wrong data here, too"));
  return 0;
}

/* The others ask for nothing until the log has said why the victim cannot go on. */
static int run_computes_on(void)
{
  ASK(flow_worker_barrier(worker, "ready"));
  moment = seconds();
  if (rank == victim) {
    ASK(flow_worker_fail(worker, "wrong data"));
    return 0;
  }
  EXPECT(flow_control_await_end(worker->control, PATIENCE));
  while (worker->unheard_since && seconds() - moment < PATIENCE) usleep(10000);
  return wait_in_sums();
}

/* The victim has nothing more to do, the others wait for it. */
static int run_finished_early(void)
{
  ASK(flow_worker_barrier(worker, "ready"));
  moment = seconds();
  if (rank == victim) flow_worker_goodbye(worker);
  return rank == victim ? 0 : wait_in_sums();
}

static int run_finished_before_barrier(void)
{
  ASK(flow_worker_barrier(worker, "ready"));
  if (rank == victim) return flow_worker_goodbye(worker) != FLOW_OK;
  sleep(1);
  ASK(flow_worker_barrier(worker, "never"));
  return 0;
}

/* One computes while the others add up already, for longer than silence may last; that is not a failure. */
static int run_slow(void)
{
  if (rank == victim) sleep(2);
  return run_calls();
}

/* One computes for longer than the others wait. */
static int run_late(void)
{
  int code = add_up();
  ASK(flow_worker_barrier(worker, "ready"));
  flow_worker_progress(worker, 33, "");
  moment = seconds();
  if (rank == victim) sleep(3);
  return code ? code : add_up();
}

/* Ends, and its process with it, without goodbye. */
static int run_leaves(void)
{
  ASK(flow_worker_barrier(worker, "ready"));
  moment = seconds();
  return rank == victim ? 0 : wait_in_sums();
}

/* The victim says goodbye, then dies while the others still work. */
static int run_finished_dies(void)
{
  ASK(flow_worker_barrier(worker, "ready"));
  moment = seconds();
  if (rank != victim) return wait_in_computation();
  flow_interrupt(context, 1);                  /* does not wait for the others' goodbye */
  flow_worker_goodbye(worker);
  raise(SIGKILL);
  return 0;
}

/* clang-format off */
/* A victim that catches its failure calls the others, has nothing more to do, or computes for longer than the others wait. */
static int run_failed_calls(void) { return run_failed() || add_up(); }
static int run_failed_ends(void) { return run_failed() || (flow_worker_goodbye(worker) && say("aborted", moment)); }
static int run_failed_computes(void) { return run_failed() || wait_in_computation(); }

static const struct program { const char *name; int (*run)(void); } programs[] = {
  { "calls", run_calls }, { "differ", run_differ }, { "differ_and_go_on", run_differ_and_go_on }, { "other_program", run_other_program },
  { "other_step", run_other_step }, { "failed_alike", run_failed_alike }, { "failed_calls", run_failed_calls },
  { "killed_in_sums", run_killed_in_sums }, { "killed_in_barrier", run_killed_in_barrier },
  { "killed_in_computation", run_killed_in_computation }, { "stopped_in_sums", run_stopped_in_sums },
  { "stopped_in_computation", run_stopped_in_computation }, { "slow", run_slow }, { "late", run_late }, { "leaves", run_leaves },
  { "failed_ends", run_failed_ends }, { "failed_computes", run_failed_computes },
  { "gives_up", run_gives_up }, { "fails_too", run_fails_too }, { "computes_on", run_computes_on },
  { "finished_dies", run_finished_dies }, { "finished_early", run_finished_early },
  { "finished_before_barrier", run_finished_before_barrier },
  /* what goes wrong before there are workers: the victim does not come, has another secret, or belongs to another job */
  { "missing", run_calls }, { "wrong_secret", run_calls }, { "no_secret", run_calls }, { "other_job", run_calls },
  { "other_engine", run_calls },
};
/* clang-format on */

/* ---- a worker ------------------------------------------------------------------------------------------------------------------------ */

/* Entries of a folder, as /proc/self/fd has one for each descriptor. */
static int count_entries(const char *path)
{
  int count = 0;
  DIR *folder = opendir(path);
  while (readdir(folder)) count++;
  closedir(folder);
  return count;
}

static long resident_pages(void)
{
  long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (file && fscanf(file, "%*d %ld", &pages) != 1) pages = 0;
  if (file) fclose(file);
  return pages;
}

static int open_worker(const char *name)
{
  flow_cluster *cluster;
  flow_worker_options options = { .timeout_seconds = 20, .start_within = 20, .heartbeat = 0.1, .dead_after = 1, .job = "spec" };
  if (strcmp(name, "missing") == 0 || strstr(name, "secret")) options.start_within = 1.5;
  if (strcmp(name, "other_job") == 0) options.start_within = 1;
  if (strcmp(name, "no_memory") == 0) options.start_within = 5;
  if (strcmp(name, "late") == 0) options.timeout_seconds = 1;
  if (rank == victim && strcmp(name, "other_job") == 0) options.job = "another";
  if (rank == victim && strcmp(name, "other_engine") == 0) options.implementation = "MPI";
  if (getenv("WORKER_ENGINE")) options.implementation = getenv("WORKER_ENGINE");
  if (rank == victim && strcmp(name, "wrong_secret") == 0) setenv("FLOW_SECRET", "another secret, as long", 1);
  if (rank == victim && strcmp(name, "no_secret") == 0) unsetenv("FLOW_SECRET");
  if (strstr(name, "killed") || strstr(name, "finished")) options.dead_after = 30;       /* sockets tell, not silence */
  ASK(flow_cluster_from_environment(1, NULL, -1, &cluster));
  ASK(flow_context_new(&context));
  double start = seconds();
  if (rank == victim && strcmp(name, "no_memory") == 0) flow_fail_allocation(atoi(getenv("WORKER_ALLOCATIONS")));
  flow_status status = flow_worker_open(context, cluster, &options, &worker);
  flow_fail_allocation(-1);
  flow_cluster_release(cluster);
  return status == FLOW_OK ? 0 : say(flow_status_name(status), start);
}

static int run_once(const char *name)
{
  int code = open_worker(name);
  for (size_t i = 0; i < sizeof programs / sizeof *programs && code == 0; i++) {
    if (strcmp(programs[i].name, name) == 0) code = programs[i].run();
  }
  flow_worker_close(worker);
  flow_context_release(context);
  return code;
}

/* What plugins and libraries keep is there after the first times; from then on nothing may grow. */
static int run_again(int times)
{
  enum { FIRST = 5 };
  int descriptors = 0, threads = 0, code = 0;
  double bytes = 0;
  long pages = 0;
  for (int i = 0; i < times && code == 0; i++) {
    code = run_once("calls");
    if (i + 1 != FIRST) continue;
    descriptors = count_entries("/proc/self/fd");
    threads = count_entries("/proc/self/task");
    bytes = flow_live_bytes();
    pages = resident_pages();
  }
  printf("rank %d: after %d times %+d descriptors, %+d threads, %+.0f bytes, %+ld pages\n", rank, times,
         count_entries("/proc/self/fd") - descriptors, count_entries("/proc/self/task") - threads, flow_live_bytes() - bytes,
         resident_pages() - pages);
  return code;
}

static int run_worker(const char *name)
{
  flow_log_to_stdio(getenv("WORKER_LOG") != NULL);
  int code = strcmp(name, "again") == 0 ? run_again(victim) : run_once(name);
  fflush(stdout);
  return code;
}

/* ---- all of them --------------------------------------------------------------------------------------------------------------------- */

/* A listening socket on a free port. */
static int bind_socket(int *port)
{
  struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
  socklen_t size = sizeof address;
  int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (bind(descriptor, (struct sockaddr *)&address, size) || listen(descriptor, 16)) abort();
  if (getsockname(descriptor, (struct sockaddr *)&address, &size)) abort();
  *port = ntohs(address.sin_port);
  return descriptor;
}

static pid_t start(const char *name, const int *descriptors, const int *ports)
{
  char text[1000], number[12];
  pid_t child = fork();
  if (child != 0) return child;
  flow_text config = flow_text_into(text, sizeof text);
  flow_text_add(&config, "{\"cluster\":{\"worker\":[");
  for (int i = 0; i < workers; i++) flow_text_add(&config, "%s\"127.0.0.1:%d\"", i ? "," : "", ports[i]);
  flow_text_add(&config, "]},\"task\":{\"type\":\"worker\",\"index\":%d}}", rank);
  for (int i = 0; i < workers; i++) {
    if (i != rank) close(descriptors[i]);
  }
  snprintf(number, sizeof number, "%d", descriptors[rank]);
  setenv("TF_CONFIG", text, 1);
  setenv("FLOW_LISTEN_DESCRIPTOR", number, 1);
  _exit(run_worker(name));
}

/* The victim of a SIGSTOP is killed when the others have ended. */
static void wait_for_all(pid_t *children, int left, double patience)
{
  double start_time = seconds();
  int stopped = 0;
  while (left > 0) {
    int status;
    pid_t ended = waitpid(-1, &status, WNOHANG | WUNTRACED);
    if (ended == 0) usleep(5000);
    if (seconds() - start_time > patience) printf("it does not end\n");
    for (int i = 0; i < workers; i++) {
      if (seconds() - start_time > patience && children[i] > 0) kill(children[i], SIGKILL);
      if (ended <= 0 || children[i] != ended) continue;
      if (WIFSTOPPED(status)) {
        stopped = i + 1;
        continue;
      }
      printf("rank %d ended with %d\n", i, WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
      children[i] = 0;
      left--;
    }
    if (left == 1 && stopped && children[stopped - 1] > 0) kill(children[stopped - 1], SIGKILL);
    fflush(stdout);
  }
}

int main(int argc, char **argv)
{
  if (argc < 3) return 2;
  const char *name = argv[1];
  workers = atoi(argv[2]);
  if (argc > 3) victim = atoi(argv[3]);
  if (getenv("OMPI_COMM_WORLD_RANK")) {
    rank = atoi(getenv("OMPI_COMM_WORLD_RANK"));
    return run_worker(name);
  }
  int descriptors[MOST_WORKERS], ports[MOST_WORKERS];
  pid_t children[MOST_WORKERS] = { 0 };
  for (int i = 0; i < workers; i++) descriptors[i] = bind_socket(&ports[i]);
  for (rank = 0; rank < workers; rank++) {
    if (strcmp(name, "missing") != 0 || rank != victim) children[rank] = start(name, descriptors, ports);
  }
  int started = 0;
  for (int i = 0; i < workers; i++) {
    close(descriptors[i]);
    started += children[i] > 0;
  }
  wait_for_all(children, started, strcmp(name, "again") == 0 ? LONG_PATIENCE : PATIENCE);
  return 0;
}
