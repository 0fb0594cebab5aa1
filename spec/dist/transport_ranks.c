/* transport_ranks.c: one process of a group, started by transport_spec.lua and by scripts/bench.
 *   transport_ranks mpi MODE                        under mpirun
 *   transport_ranks tcp MODE RANK SIZE FOLDER      the folder is the key-value store
 * Modes: calls (all operations, compared with plain loops), alone (the last rank never comes), abort (a thread of every other rank
 * aborts, the last rank does not come), frozen (the last rank stops while it receives, and the others abort), lost (the last rank dies),
 * killed (it dies in the middle of sums), missing (a rank is not even started), again (opens one group after the other), leaks (opens and
 * closes many), storm (the first rank aborts in the middle of sums, which ends them everywhere), disagree (the last rank calls something
 * else), signals (the host's handlers and masks stay, no thread of the engine takes a signal),
 * unpaced (prints the congestion control of the connections), bench.
 * Ranks on one machine hand the bytes through memory, unless FLOW_SHARED_MEMORY is 0.
 * Writes "rank R of N: ..." lines; ends with status 0 if everything was as expected. */
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/memory.h"
#include "transport_calls.h"

enum { BENCH_COUNT = 11000000 / 4, BENCH_CALLS = 30 };

static int run_calls(const setting *self)
{
  flow_communicator *link = NULL;
  EXPECT(open_link(self, "first", 30, &link) == FLOW_OK);
  int wrong = check_calls(link);
  printf("rank %d of %d: %s by %s\n", link->rank, link->size, wrong ? "wrong" : "right", link->transport->name);
  flow_communicator_close(link);
  return wrong;
}

static int run_again(const setting *self)
{
  flow_communicator *link = NULL;
  for (int group = 0; group < 3; group++) {
    EXPECT(open_link(self, group == 0 ? "first" : group == 1 ? "second" : "third", 30, &link) == FLOW_OK);
    if (check_sum_float(link, 1000)) return 1;
    EXPECT(flow_communicator_barrier(link) == FLOW_OK);
    if (group < 2) flow_communicator_close(link);
  }
  printf("rank %d of %d: right\n", link->rank, link->size);
  flow_communicator_close(link);
  return 0;
}

static int count_lines(const char *path)
{
  int lines = 0, byte;
  FILE *file = fopen(path, "r");
  while (file && (byte = getc(file)) != EOF) lines += byte == '\n';
  if (file) fclose(file);
  return lines;
}

static int count_descriptors(void)
{
  int count = 0;
  DIR *folder = opendir("/proc/self/fd");
  while (folder && readdir(folder)) count++;
  if (folder) closedir(folder);
  return count;
}

/* Descriptors, mappings and memory stay unchanged after the first group, which starts the engine. */
static int run_leaks(const setting *self)
{
  enum { GROUPS = 60 };
  flow_communicator *link = NULL;
  int descriptors = 0, mappings = 0;
  double bytes = 0;
  for (int group = 0; group < GROUPS; group++) {
    char name[16];
    snprintf(name, sizeof name, "group%d", group);
    if (self->rank == self->size - 1) nap(0.02);      /* strangers find the ports of the others open */
    EXPECT(open_link(self, name, 30, &link) == FLOW_OK);
    if (check_sum_float(link, 100)) return 1;
    EXPECT(flow_communicator_barrier(link) == FLOW_OK);
    flow_communicator_close(link);
    link = NULL;
    if (group == GROUPS / 10) {
      descriptors = count_descriptors();
      mappings = count_lines("/proc/self/maps");
      bytes = flow_live_bytes();
    }
  }
  printf("rank %d: %d descriptors and %d mappings became %d and %d\n", self->rank, descriptors, mappings, count_descriptors(),
         count_lines("/proc/self/maps"));
  EXPECT(count_descriptors() == descriptors);
  EXPECT(count_lines("/proc/self/maps") <= mappings + 4);             /* the heap's own */
  EXPECT(flow_live_bytes() == bytes);
  return 0;
}

/* Signals that a host waits for and that this process's other threads would take: those not in their mask. -1: /proc is not readable. */
static int count_taken_signals(void)
{
  static const int hosts[] = { SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGCHLD };
  int taken = 0;
  DIR *tasks = opendir("/proc/self/task");
  if (!tasks) return -1;
  for (struct dirent *entry; (entry = readdir(tasks));) {
    char path[PATH_BYTES], line[256];
    if (atoi(entry->d_name) == 0 || atoi(entry->d_name) == getpid()) continue;
    snprintf(path, sizeof path, "/proc/self/task/%d/status", atoi(entry->d_name));
    FILE *file = fopen(path, "r");
    if (!file) continue;
    while (fgets(line, sizeof line, file)) {
      if (strncmp(line, "SigBlk:", 7) != 0) continue;
      unsigned long long mask = strtoull(line + 7, NULL, 16);
      for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) taken += !(mask >> (hosts[i] - 1) & 1);
    }
    fclose(file);
  }
  closedir(tasks);
  return taken;
}

static int run_signals(const setting *self)
{
  enum { SIGNALS = 32 };
  flow_communicator *link = NULL;
  struct sigaction before[SIGNALS], after;
  sigset_t mask_before, mask_after;
  for (int i = 1; i < SIGNALS; i++) sigaction(i, NULL, &before[i]);
  sigprocmask(SIG_BLOCK, NULL, &mask_before);
  EXPECT(open_link(self, "first", 30, &link) == FLOW_OK);
  if (check_sum_float(link, 1000)) return 1;
  for (int i = 1; i < SIGNALS; i++) {
    sigaction(i, NULL, &after);
    if (after.sa_handler != before[i].sa_handler) printf("signal %d\n", i);
    EXPECT(after.sa_handler == before[i].sa_handler);
  }
  sigprocmask(SIG_BLOCK, NULL, &mask_after);
  for (int i = 1; i < SIGNALS; i++) EXPECT(sigismember(&mask_before, i) == sigismember(&mask_after, i));
  EXPECT(count_taken_signals() == 0);
  EXPECT(flow_communicator_barrier(link) == FLOW_OK);
  printf("rank %d of %d: right\n", link->rank, link->size);
  flow_communicator_close(link);
  return 0;
}

/* Within a machine the system must not space the packets of a connection, as BBR does: prints which congestion control those to the other
 * ranks have. */
static int run_unpaced(const setting *self)
{
  flow_communicator *link = NULL;
  EXPECT(open_link(self, "first", 30, &link) == FLOW_OK);
  for (int socket = 0; socket < 64; socket++) {
    char name[16] = "";
    struct sockaddr_storage peer;
    socklen_t name_bytes = sizeof name - 1, peer_bytes = sizeof peer;
    if (getpeername(socket, (struct sockaddr *)&peer, &peer_bytes) != 0 || peer.ss_family == AF_UNIX) continue;
    EXPECT(getsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, name, &name_bytes) == 0);
    printf("rank %d: a connection by %s\n", link->rank, name);
  }
  EXPECT(flow_communicator_barrier(link) == FLOW_OK);
  flow_communicator_close(link);
  return 0;
}

/* ---- calls that fail --------------------------------------------------------------------------------------------------------- */

static int is_last(const flow_communicator *link) { return link->rank == link->size - 1; }

/* A call that cannot succeed, and one after it; says how and when the first ended. */
static int run_failing_call(flow_communicator *link)
{
  static float data[LONG];
  double start = flow_clock();
  flow_status status = flow_communicator_all_reduce(link, FLOW_FLOAT32, data, LONG);
  printf("rank %d of %d: %s after %.1f s: %s\n", link->rank, link->size, flow_status_name(status), flow_clock() - start, flow_last_error());
  EXPECT(status != FLOW_OK);
  start = flow_clock();
  EXPECT(flow_communicator_barrier(link) == status);
  EXPECT(flow_clock() - start < 1);
  return 0;
}

static int run_alone(const setting *self)
{
  flow_communicator *link = NULL;
  EXPECT(open_link(self, "first", 1, &link) == FLOW_OK);
  EXPECT(flow_communicator_barrier(link) == FLOW_OK);
  int wrong = 0;
  if (is_last(link)) wait_for_others(self, 3);         /* its end would wake them, too */
  else wrong = run_failing_call(link);
  say_ended(self);
  flow_communicator_close(link);
  return wrong;
}

static void *abort_soon(void *link)
{
  nap(0.3);
  flow_communicator_abort(link, "worker:7 is silent");
  return NULL;
}

static int run_abort(const setting *self)
{
  flow_communicator *link = NULL;
  pthread_t thread;
  EXPECT(open_link(self, "first", 60, &link) == FLOW_OK);
  EXPECT(flow_communicator_barrier(link) == FLOW_OK);
  int wrong = 0;
  if (is_last(link)) {
    wait_for_others(self, 4);          /* its end would wake them, too */
  } else {
    EXPECT(pthread_create(&thread, NULL, abort_soon, link) == 0);
    wrong = run_failing_call(link);
    pthread_join(thread, NULL);
    say_ended(self);
  }
  flow_communicator_close(link);
  return wrong;
}

static void *stop_soon(void *unused)
{
  (void)unused;
  nap(0.1);
  kill(getpid(), SIGSTOP);
  return NULL;
}

/* The memory of a sum is given back as soon as its call has failed. */
static int run_storm(const setting *self)
{
  flow_communicator *link = NULL;
  pthread_t thread;
  EXPECT(open_link(self, "first", 60, &link) == FLOW_OK);
  if (link->rank == 0) EXPECT(pthread_create(&thread, NULL, abort_soon, link) == 0);
  flow_status status = FLOW_OK;
  while (status == FLOW_OK) {
    double *data = calloc(LONG, sizeof *data);
    status = flow_communicator_all_reduce(link, FLOW_FLOAT64, data, LONG);
    free(data);
  }
  printf("rank %d of %d: %s: %s\n", link->rank, link->size, flow_status_name(status), flow_last_error());
  EXPECT(status == (link->rank == 0 || flow_communicator_is_shared(link) ? FLOW_ABORTED : FLOW_IO_ERROR));
  if (link->rank == 0) pthread_join(thread, NULL);
  flow_communicator_close(link);
  return 0;
}

/* Most of a message is on its way when the last rank stops. Whoever sends it does not wait any longer than until it is aborted. */
static int run_frozen(const setting *self)
{
  enum { MESSAGE = 100 << 20 };        /* more than the kernel takes at once */
  flow_communicator *link = NULL;
  pthread_t thread;
  int *all = calloc((size_t)self->size, sizeof *all), mine = getpid();
  EXPECT(open_link(self, "first", 60, &link) == FLOW_OK);
  EXPECT(flow_communicator_all_gather(link, &mine, sizeof mine, all) == FLOW_OK);
  double start = flow_clock();
  if (is_last(link)) EXPECT(pthread_create(&thread, NULL, stop_soon, NULL) == 0);
  else EXPECT(pthread_create(&thread, NULL, abort_soon, link) == 0);
  flow_status status = FLOW_OK;
  while (status == FLOW_OK) {
    char *data = calloc(1, MESSAGE);
    status = flow_communicator_broadcast(link, 0, data, MESSAGE);
    free(data);
  }
  printf("rank %d of %d: %s after %.1f s: %s\n", link->rank, link->size, flow_status_name(status), flow_clock() - start, flow_last_error());
  pthread_join(thread, NULL);
  flow_communicator_close(link);
  if (self->rank == 0) kill(all[self->size - 1], SIGKILL);
  free(all);
  return 0;
}

static int run_lost(const setting *self)
{
  flow_communicator *link = NULL;
  EXPECT(open_link(self, "first", 60, &link) == FLOW_OK);
  EXPECT(flow_communicator_barrier(link) == FLOW_OK);
  if (is_last(link)) {
    nap(0.3);
    kill(getpid(), SIGKILL);
  }
  int wrong = run_failing_call(link);
  flow_communicator_close(link);
  return wrong;
}

static void *die_soon(void *seconds)
{
  nap(*(double *)seconds);
  kill(getpid(), SIGKILL);
  return NULL;
}

static int run_killed(const setting *self)
{
  static float data[LONG];
  flow_communicator *link = NULL;
  pthread_t thread;
  EXPECT(open_link(self, "first", 60, &link) == FLOW_OK);
  EXPECT(flow_communicator_barrier(link) == FLOW_OK);
  double seconds = 0.02 + getpid() % 64 * 0.0003, start = flow_clock();
  if (is_last(link)) EXPECT(pthread_create(&thread, NULL, die_soon, &seconds) == 0);
  flow_status status = FLOW_OK;
  while (status == FLOW_OK) status = flow_communicator_all_reduce(link, FLOW_FLOAT32, data, LONG);
  printf("rank %d of %d: %s after %.1f s: %s\n", link->rank, link->size, flow_status_name(status), flow_clock() - start, flow_last_error());
  EXPECT(flow_communicator_barrier(link) == status);
  flow_communicator_close(link);
  return 0;
}

static int run_disagree(const setting *self)
{
  flow_communicator *link = NULL;
  float data[8] = { 0 };
  EXPECT(open_link(self, "first", 60, &link) == FLOW_OK);
  flow_status status = flow_communicator_all_reduce(link, FLOW_FLOAT32, data, is_last(link) ? 8 : 7);
  printf("rank %d of %d: %s after 0 s: %s\n", link->rank, link->size, flow_status_name(status), flow_last_error());
  flow_communicator_close(link);
  return status == FLOW_OK;
}

/* In the second lot of a gather whose first has been sent. */
static int run_disagree_late(const setting *self)
{
  flow_communicator *link = NULL;
  char first[3] = { 0 }, second[24] = { 0 };
  EXPECT(open_link(self, "first", 60, &link) == FLOW_OK);
  flow_gathering arrays[2] = { { first + link->rank, first, 1 }, { second, second, is_last(link) ? 8 : 7 } };
  EXPECT(flow_communicator_start_gather(link, &arrays[0]) == FLOW_OK);
  flow_status status = flow_communicator_gather(link, arrays, 2);
  printf("rank %d of %d: %s after 0 s: %s\n", link->rank, link->size, flow_status_name(status), flow_last_error());
  flow_communicator_close(link);
  return status == FLOW_OK;
}

/* Some ranks start a gather, and do not make it: the calls of all of them go on. */
static int run_abandon(const setting *self)
{
  enum { MUCH = 5000000 }; /* more than the kernel takes at once */
  static const int64_t sizes[] = { 0, 1, 1000, MUCH };
  flow_communicator *link = NULL;
  EXPECT(open_link(self, "first", 60, &link) == FLOW_OK);
  for (int round = 0; round < 24; round++) {
    int64_t bytes = sizes[round % 4];
    char *all = calloc((size_t)(bytes * link->size) + 1, 1);
    if ((round / 4 + link->rank) % 3)
      EXPECT(flow_communicator_start_gather(link, &(flow_gathering){ all + link->rank * bytes, all, bytes }) == FLOW_OK);
    free(all); /* as memory of a run that has failed */
    if (round % 3 == 0) EXPECT(flow_communicator_barrier(link) == FLOW_OK);
    if (round % 3 == 1 && check_calls(link)) return 1;
    if (round % 3 == 2 && check_sum_float(link, 1000)) return 1;
  }
  printf("rank %d of %d: right by %s\n", link->rank, link->size, link->transport->name);
  flow_communicator_close(link);
  return 0;
}

/* Fails in open: the last rank is not even started. */
static int run_missing(const setting *self)
{
  flow_communicator *link = NULL;
  double start = flow_clock();
  flow_status status = open_link(self, "first", 1, &link);
  printf("rank %d of %d: %s after %.1f s: %s\n", self->rank, self->size, flow_status_name(status), flow_clock() - start, flow_last_error());
  return status == FLOW_OK;
}

/* ---- speed ------------------------------------------------------------------------------------------------------------------- */

static int compare_doubles(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static int time_calls(const setting *self, flow_communicator *link, int64_t count)
{
  double times[BENCH_CALLS];
  float *data = calloc((size_t)count, sizeof *data);
  for (int call = -3; call < BENCH_CALLS; call++) {
    EXPECT(flow_communicator_barrier(link) == FLOW_OK);
    double start = flow_clock();
    EXPECT(flow_communicator_all_reduce(link, FLOW_FLOAT32, data, count) == FLOW_OK);
    if (call >= 0) times[call] = flow_clock() - start;
  }
  free(data);
  qsort(times, BENCH_CALLS, sizeof *times, compare_doubles);
  if (link->rank == 0) {
    printf("%-6s %-6s %d ranks  %9.0f bytes  median %9.1f us  best %9.1f us\n", self ? self->transport : "local",
           flow_communicator_is_shared(link) ? "shared" : "", link->size, (double)count * 4, times[BENCH_CALLS / 2] * 1e6, times[0] * 1e6);
  }
  return 0;
}

static int run_bench(const setting *self)
{
  flow_communicator *link = NULL;
  EXPECT(open_link(self, "first", 60, &link) == FLOW_OK);
  int wrong = time_calls(self, link, BENCH_COUNT) || time_calls(self, link, 2);
  flow_communicator_close(link);
  return wrong;
}

static flow_local_group *bench_group;

static void *bench_thread(void *rank)
{
  flow_communicator *link = NULL;
  flow_transport_options options = { .timeout = 60, .local = bench_group };
  if (flow_communicator_open("local", rank != NULL, 2, &options, &link) != FLOW_OK) return (void *)1;
  int wrong = time_calls(NULL, link, BENCH_COUNT) || time_calls(NULL, link, 2);
  flow_communicator_close(link);
  return wrong ? (void *)1 : NULL;
}

static int bench_local(void)
{
  pthread_t thread;
  void *wrong;
  if (flow_local_group_new(2, &bench_group) != FLOW_OK || pthread_create(&thread, NULL, bench_thread, (void *)1) != 0) return 1;
  void *mine = bench_thread(NULL);
  pthread_join(thread, &wrong);
  flow_local_group_release(bench_group);
  return mine || wrong;
}

int main(int count, char **arguments)
{
  static const struct {
    const char *name;
    int (*run)(const setting *);
  } modes[] = {
    { "calls", run_calls },       { "again", run_again },
    { "alone", run_alone },       { "abort", run_abort },
    { "lost", run_lost },         { "frozen", run_frozen },
    { "killed", run_killed },     { "leaks", run_leaks },
    { "disagree", run_disagree }, { "disagree_late", run_disagree_late },
    { "abandon", run_abandon },   { "storm", run_storm },
    { "missing", run_missing },   { "signals", run_signals },
    { "unpaced", run_unpaced },   { "bench", run_bench },
  };
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (count < 3) return 2;
  if (strcmp(arguments[1], "local") == 0) return bench_local();
  setting self = { .transport = arguments[1], .mode = arguments[2], .rank = -1, .size = -1 };
  if (count > 5) {
    self.rank = atoi(arguments[3]);
    self.size = atoi(arguments[4]);
    self.folder = arguments[5];
    self.store = folder_store(&self);
  }
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    if (strcmp(modes[i].name, self.mode) == 0) return modes[i].run(&self);
  }
  return 2;
}
