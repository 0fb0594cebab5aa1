/* transport_ranks.c: one process of a group, started by transport_spec.lua and by scripts/bench.
 *   transport_ranks mpi MODE                        under mpirun
 *   transport_ranks gloo MODE RANK SIZE FOLDER      the folder is the key-value store
 * Modes: calls (all operations, compared with plain loops), alone (the last rank never comes), abort (a thread of every other rank
 * aborts, the last rank does not come), frozen (the last rank stops while it receives, and the others abort), lost (the last rank dies),
 * killed (it dies in the middle of sums), missing (a rank is not even started), again (opens one group after the other), leaks (opens and
 * closes many), storm (the first rank aborts in the middle of sums, which ends them everywhere), disagree (the last rank calls something
 * else), signals (the host's handlers and masks stay, no thread of the engine takes a signal), bench.
 * Ranks on one machine hand the bytes through memory, unless FLOW_SHARED_MEMORY is 0.
 * Writes "rank R of N: ..." lines; ends with status 0 if everything was as expected. */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/memory.h"
#include "transport/transport.h"

enum { LONG = 1100003, PATH_BYTES = 4096, BENCH_COUNT = 11000000 / 4, BENCH_CALLS = 30 };

typedef struct setting {
  const char *transport, *mode, *folder;
  int         rank, size;              /* -1 for the launcher's */
  flow_store  store;
} setting;

#define EXPECT(condition)                                                                                            \
  do {                                                                                                               \
    if (!(condition)) {                                                                                              \
      printf("rank %d: line %d: not %s: %s\n", link ? link->rank : -1, __LINE__, #condition, flow_last_error());     \
      return 1;                                                                                                      \
    }                                                                                                                \
  } while (0)

static void nap(double seconds)
{
  nanosleep(&(struct timespec){ .tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - floor(seconds)) * 1e9) }, NULL);
}

/* ---- a folder as key-value store --------------------------------------------------------------------------------------------- */

static void path_of(const setting *self, const char *key, const char *suffix, char path[PATH_BYTES])
{
  snprintf(path, PATH_BYTES, "%s/", self->folder);
  size_t at = strlen(path);
  for (; *key && at < PATH_BYTES - 8; key++) path[at++] = *key == '/' ? '_' : *key;
  snprintf(path + at, PATH_BYTES - at, "%s", suffix);
}

static flow_status set_key(void *state, const char *key, const void *bytes, size_t count)
{
  char path[PATH_BYTES], partial[PATH_BYTES];
  path_of(state, key, "", path);
  path_of(state, key, ".new", partial);
  FILE *file = fopen(partial, "wb");
  if (!file) return flow_fail(FLOW_IO_ERROR, "%s: %s", partial, strerror(errno));
  int written = fwrite(bytes, 1, count, file) == count;
  if (fclose(file) != 0 || !written || rename(partial, path) != 0) return flow_fail(FLOW_IO_ERROR, "%s: %s", path, strerror(errno));
  return FLOW_OK;
}

static flow_status get_key(void *state, const char *key, double seconds, void **bytes, size_t *count)
{
  char path[PATH_BYTES];
  path_of(state, key, "", path);
  FILE *file;
  for (double end = flow_clock() + seconds; !(file = fopen(path, "rb"));) {
    if (flow_clock() > end) return flow_fail(FLOW_TIMED_OUT, "nobody set %s within %g s", key, seconds);
    nap(0.001);
  }
  flow_status status = flow_alloc(1 << 20, bytes);
  if (status == FLOW_OK) *count = fread(*bytes, 1, 1 << 20, file);
  fclose(file);
  return status;
}

static flow_status open_link(const setting *self, const char *group, double timeout, flow_communicator **link)
{
  flow_transport_options options = { .timeout = timeout, .group = group, .address = "127.0.0.1", .store = &self->store };
  FLOW_TRY(flow_communicator_open(self->transport, self->rank, self->size, &options, link));
  return flow_communicator_share(link);            /* FLOW_SHARED_MEMORY=0 keeps the engine to itself */
}

/* ---- calls that go well ------------------------------------------------------------------------------------------------------ */

static double number(int rank, int64_t i)
{
  uint32_t bits = ((uint32_t)rank * 97u + (uint32_t)i + 1u) * 2654435761u;
  bits ^= bits >> 15;
  return ldexp((double)(int32_t)bits, (int)(bits % 20u) - 40);
}

/* The bits on every rank are those on rank 0. */
static int check_same_bits(flow_communicator *link, const void *data, int64_t bytes)
{
  void *first = malloc((size_t)bytes + 1);
  if (bytes > 0) memcpy(first, data, (size_t)bytes);
  EXPECT(flow_communicator_broadcast(link, 0, first, bytes) == FLOW_OK);
  EXPECT(bytes == 0 || memcmp(first, data, (size_t)bytes) == 0);
  free(first);
  return 0;
}

#define CHECK_SUM(type, dtype, tolerance)                                                                            \
  static int check_sum_##type(flow_communicator *link, int64_t count)                                                \
  {                                                                                                                  \
    type *data = malloc((size_t)count * sizeof(type) + 1);                                                           \
    for (int64_t i = 0; i < count; i++) data[i] = (type)number(link->rank, i);                                       \
    EXPECT(flow_communicator_all_reduce(link, dtype, data, count) == FLOW_OK);                                       \
    for (int64_t i = 0; i < count; i++) {                                                                            \
      double sum = 0, size = 0;                                                                                      \
      for (int rank = 0; rank < link->size; rank++) {                                                                \
        sum += (double)(type)number(rank, i);                                                                        \
        size += fabs(number(rank, i));                                                                               \
      }                                                                                                              \
      EXPECT(fabs((double)data[i] - sum) <= (tolerance) * size);                                                     \
    }                                                                                                                \
    int wrong = check_same_bits(link, data, count * (int64_t)sizeof(type));                                          \
    free(data);                                                                                                      \
    return wrong;                                                                                                    \
  }
CHECK_SUM(float, FLOW_FLOAT32, 4e-7)
CHECK_SUM(double, FLOW_FLOAT64, 1e-15)

static int check_broadcasts(flow_communicator *link, int64_t bytes)
{
  unsigned char *data = malloc((size_t)bytes + 1);
  for (int from = 0; from < link->size; from++) {
    for (int64_t i = 0; i < bytes; i++) data[i] = (unsigned char)(i * 7 + link->rank);
    EXPECT(flow_communicator_broadcast(link, from, data, bytes) == FLOW_OK);
    for (int64_t i = 0; i < bytes; i++) EXPECT(data[i] == (unsigned char)(i * 7 + from));
  }
  free(data);
  return 0;
}

static int check_gather(flow_communicator *link, int64_t bytes)
{
  unsigned char *mine = malloc((size_t)bytes + 1), *all = malloc((size_t)(bytes * link->size) + 1);
  for (int64_t i = 0; i < bytes; i++) mine[i] = (unsigned char)(i * 5 + link->rank);
  EXPECT(flow_communicator_all_gather(link, mine, bytes, all) == FLOW_OK);
  for (int64_t i = 0; i < bytes * link->size; i++) EXPECT(all[i] == (unsigned char)(i % bytes * 5 + i / bytes));
  free(mine);
  free(all);
  return 0;
}

/* Only where the ranks share memory. */
static int check_collect(flow_communicator *link, int64_t units)
{
  int32_t *data = malloc((size_t)(units * link->size) * sizeof *data + 1);
  int64_t *first = malloc(2 * (size_t)(link->size + 1) * sizeof *first), *received = first + link->size + 1;
  for (int rank = 0; rank <= link->size; rank++) first[rank] = rank * units;
  for (int64_t i = 0; i < units * link->size; i++) data[i] = link->rank * 1000 + (int32_t)(i % 1000);
  flow_status status = flow_communicator_collect(link, (void *[]){ data }, 1, sizeof *data, first, received);
  EXPECT(status == (flow_communicator_is_shared(link) ? FLOW_OK : FLOW_UNSUPPORTED));
  for (int64_t i = 0; i < units * link->size && status == FLOW_OK; i++) EXPECT(data[i] == (int32_t)(i / units * 1000 + i % 1000));
  free(first);
  free(data);
  return 0;
}

static int check_calls(flow_communicator *link)
{
  static const int64_t counts[] = { 0, 1, 2, 3, 17, 1000, 16385, LONG };
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    if (check_sum_float(link, counts[i]) || check_sum_double(link, counts[i])) return 1;
    if (check_broadcasts(link, counts[i]) || check_gather(link, counts[i]) || check_collect(link, counts[i])) return 1;
    EXPECT(flow_communicator_barrier(link) == FLOW_OK);
  }
  for (int call = 0; call < 12; call++) {              /* a rank that comes late is waited for, spinning and asleep */
    if (call % link->size == link->rank) nap(call < 6 ? 0.01 : 0.0001);
    if (check_sum_float(link, call % 3 * 1000)) return 1;
  }
  for (int call = 0; call < 200; call++) {             /* without anything in between that would keep the ranks together */
    if (check_sum_float(link, call % 9)) return 1;
  }
  return 0;
}

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

/* Descriptors, mappings and memory stay as they are after the first group, which starts the engine. */
static int run_leaks(const setting *self)
{
  enum { GROUPS = 60 };
  flow_communicator *link = NULL;
  int descriptors = 0, mappings = 0;
  double bytes = 0;
  for (int group = 0; group < GROUPS; group++) {
    char name[16];
    snprintf(name, sizeof name, "group%d", group);
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
  if (is_last(link)) nap(3);
  else wrong = run_failing_call(link);
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
    nap(4);                            /* longer than the others may take: its end would wake them, too */
  } else {
    EXPECT(pthread_create(&thread, NULL, abort_soon, link) == 0);
    wrong = run_failing_call(link);
    pthread_join(thread, NULL);
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
  static const struct { const char *name; int (*run)(const setting *); } modes[] = {
    { "calls", run_calls }, { "again", run_again }, { "alone", run_alone }, { "abort", run_abort }, { "lost", run_lost },
    { "frozen", run_frozen },
    { "killed", run_killed }, { "leaks", run_leaks }, { "disagree", run_disagree },
    { "storm", run_storm }, { "missing", run_missing }, { "signals", run_signals }, { "bench", run_bench },
  };
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (count < 3) return 2;
  if (strcmp(arguments[1], "local") == 0) return bench_local();
  setting self = { .transport = arguments[1], .mode = arguments[2], .rank = -1, .size = -1 };
  if (count > 5) {
    self.rank = atoi(arguments[3]);
    self.size = atoi(arguments[4]);
    self.folder = arguments[5];
    self.store = (flow_store){ set_key, get_key, &self };
  }
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    if (strcmp(modes[i].name, self.mode) == 0) return modes[i].run(&self);
  }
  return 2;
}
