/* test_transport.c: the transport between threads, and the one through memory that processes share, here with threads, too: sums in the
 * order of the ranks, broadcasts, gathers; ranks that do not come, do not agree, are aborted or leave nonsense in the memory. What goes
 * between processes is tested in spec/dist. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dirent.h>
#include <math.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include "transport/shared.h"
#include "transport/transport.h"

enum { MOST = 8, RANDOM_CALLS = 10000, LONG = 100003, TEXT = 1024 };

/* One thread that is a rank. `body` returns 0 if everything was as expected, else the number of a line. */
typedef struct worker {
  pthread_t          thread;
  int              (*body)(struct worker *);
  flow_communicator *link;
  int                rank, size;
  int                wrong;            /* what body returned */
  flow_status        status;           /* for bodies that are to fail */
  char               message[TEXT];
} worker;

#define CHECK(condition) do { if (!(condition)) return __LINE__; } while (0)

static void *worker_main(void *argument)
{
  worker *self = argument;
  self->wrong = self->body(self);
  return NULL;
}

static int share;                      /* the tests run once with the transport `local` and once more with `shared` */

static void *share_link(void *argument)
{
  worker *self = argument;
  self->status = flow_communicator_share(&self->link);
  return NULL;
}

static void share_all(worker *workers, int size)
{
  for (int rank = 0; rank < size; rank++) assert_int_equal(pthread_create(&workers[rank].thread, NULL, share_link, &workers[rank]), 0);
  for (int rank = 0; rank < size; rank++) pthread_join(workers[rank].thread, NULL);
  for (int rank = 0; rank < size; rank++) assert_int_equal(workers[rank].status, FLOW_OK);
}

static void open_all(worker *workers, int size, double timeout)
{
  flow_local_group *group;
  assert_int_equal(flow_local_group_new(size, &group), FLOW_OK);
  flow_transport_options options = { .timeout = timeout, .local = group };
  for (int rank = 0; rank < size; rank++) {
    workers[rank] = (worker){ .rank = rank, .size = size };
    assert_int_equal(flow_communicator_open("local", rank, size, &options, &workers[rank].link), FLOW_OK);
  }
  flow_local_group_release(group);                 /* the communicators hold it */
  if (!share) return;
  share_all(workers, size);
  for (int rank = 0; rank < size; rank++) assert_int_equal(flow_communicator_is_shared(workers[rank].link), size > 1);
}

static void start(worker *of, int (*body)(worker *))
{
  of->body = body;
  assert_int_equal(pthread_create(&of->thread, NULL, worker_main, of), 0);
}

static void join_and_close(worker *workers, int size)
{
  for (int rank = 0; rank < size; rank++) pthread_join(workers[rank].thread, NULL);
  for (int rank = 0; rank < size; rank++) flow_communicator_close(workers[rank].link);
  for (int rank = 0; rank < size; rank++) {
    if (workers[rank].wrong) fail_msg("rank %d of %d: line %d: %s", rank, size, workers[rank].wrong, workers[rank].message);
  }
}

static void run_all(int size, int (*body)(worker *))
{
  worker workers[MOST];
  open_all(workers, size, 60);
  for (int rank = 0; rank < size; rank++) start(&workers[rank], body);
  join_and_close(workers, size);
}

static int keep(worker *self, flow_status status)
{
  self->status = status;
  strncpy(self->message, flow_last_error(), TEXT - 1);
  return status == FLOW_OK;
}

static uint32_t mix(uint32_t x)
{
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

/* Of numbers of very different sizes the sum shows in which order they were added. */
static double number(int call, int rank, int64_t i)
{
  uint32_t bits = mix((uint32_t)call * 2654435761u + (uint32_t)rank * 97u + (uint32_t)i);
  return ldexp((double)(int32_t)bits, (int)(bits % 40u) - 50);
}

static int sum_floats(worker *self, int call, int64_t count)
{
  float *data = malloc((size_t)count * sizeof *data + 1);
  for (int64_t i = 0; i < count; i++) data[i] = (float)number(call, self->rank, i);
  CHECK(keep(self, flow_communicator_all_reduce(self->link, FLOW_FLOAT32, data, count)));
  for (int64_t i = 0; i < count; i++) {
    float sum = (float)number(call, 0, i);
    for (int rank = 1; rank < self->size; rank++) sum += (float)number(call, rank, i);
    CHECK(memcmp(&sum, &data[i], sizeof sum) == 0);
  }
  free(data);
  return 0;
}

static int sum_doubles(worker *self, int call, int64_t count)
{
  double *data = malloc((size_t)count * sizeof *data + 1);
  for (int64_t i = 0; i < count; i++) data[i] = number(call, self->rank, i);
  CHECK(keep(self, flow_communicator_all_reduce(self->link, FLOW_FLOAT64, data, count)));
  for (int64_t i = 0; i < count; i++) {
    double sum = number(call, 0, i);
    for (int rank = 1; rank < self->size; rank++) sum += number(call, rank, i);
    CHECK(memcmp(&sum, &data[i], sizeof sum) == 0);
  }
  free(data);
  return 0;
}

static int broadcast_bytes(worker *self, int call, int64_t bytes)
{
  int from = (int)(mix((uint32_t)call) % (uint32_t)self->size);
  unsigned char *data = malloc((size_t)bytes + 1);
  for (int64_t i = 0; i < bytes; i++) data[i] = (unsigned char)mix((uint32_t)(call + self->rank + i));
  CHECK(keep(self, flow_communicator_broadcast(self->link, from, data, bytes)));
  for (int64_t i = 0; i < bytes; i++) CHECK(data[i] == (unsigned char)mix((uint32_t)(call + from + i)));
  free(data);
  return 0;
}

static int gather_bytes(worker *self, int call, int64_t bytes)
{
  unsigned char *mine = malloc((size_t)bytes + 1), *all = malloc((size_t)(bytes * self->size) + 1);
  for (int64_t i = 0; i < bytes; i++) mine[i] = (unsigned char)mix((uint32_t)(call + self->rank + i));
  CHECK(keep(self, flow_communicator_all_gather(self->link, mine, bytes, all)));
  for (int rank = 0; rank < self->size; rank++) {
    for (int64_t i = 0; i < bytes; i++) CHECK(all[rank * bytes + i] == (unsigned char)mix((uint32_t)(call + rank + i)));
  }
  free(mine);
  free(all);
  return 0;
}

static const int64_t counts[] = { 0, 1, 2, 7, 15, 16, 17, 33, 127, 1000, 2048, 2049, 9999, LONG };

static int call_each_with_each_count(worker *self)
{
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    int wrong = sum_floats(self, (int)i, counts[i]);
    if (!wrong) wrong = sum_doubles(self, (int)i, counts[i]);
    if (!wrong) wrong = broadcast_bytes(self, (int)i, counts[i]);
    if (!wrong) wrong = gather_bytes(self, (int)i, counts[i]);
    if (wrong) return wrong;
    CHECK(keep(self, flow_communicator_barrier(self->link)));
  }
  return 0;
}

static void sums_have_the_order_of_the_ranks(void **state)
{
  (void)state;
  for (int size = 1; size <= MOST; size++) run_all(size, call_each_with_each_count);
}

/* Threads come to each call at other times: some calls in a row are hurried, before others a rank rests. */
static int call_at_random(worker *self)
{
  static int (*const kinds[])(worker *, int, int64_t) = { sum_floats, sum_doubles, broadcast_bytes, gather_bytes };
  for (int call = 0; call < RANDOM_CALLS; call++) {
    uint32_t random = mix((uint32_t)call + 12345u), mine = mix(random + (uint32_t)self->rank);
    if (mine % 16 == 0) sched_yield();
    if (mine % 1024 == 0) nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
    if (random % 5 == 4) {
      CHECK(keep(self, flow_communicator_barrier(self->link)));
      continue;
    }
    int wrong = kinds[random % 5](self, call, (int64_t)((random >> 8) % 100u));
    if (wrong) return wrong;
  }
  return 0;
}

static void ten_thousand_calls(void **state)
{
  (void)state;
  run_all(3, call_at_random);
}

/* Each barrier lets go only when all have come: a rank that was let through early would see an old number. */
static _Atomic int steps[MOST];

static int count_steps(worker *self)
{
  for (int step = 1; step <= 500; step++) {
    steps[self->rank] = step;
    CHECK(keep(self, flow_communicator_barrier(self->link)));
    for (int rank = 0; rank < self->size; rank++) CHECK(steps[rank] == step || steps[rank] == step + 1);
  }
  return 0;
}

static void barriers_wait_for_all(void **state)
{
  (void)state;
  run_all(4, count_steps);
}

/* ---- parts --------------------------------------------------------------------------------------------------------------------------- */

enum { MOST_UNITS = 3000 };

/* Where the parts of the ranks begin among `units`: of different sizes, some empty. */
static void cut(int call, int size, int64_t units, int64_t *first)
{
  first[0] = 0;
  for (int rank = 0; rank < size; rank++) first[rank + 1] = first[rank] + (units - first[rank]) * (mix((uint32_t)(call + rank)) % 4) / 3;
  first[size] = units;
}

static unsigned char content(int array, int rank, int64_t i) { return (unsigned char)mix((uint32_t)(array * 31 + rank * 7 + i)); }

static int collect_parts(worker *self, int call, int count, int64_t unit, int64_t units)
{
  unsigned char *arrays[FLOW_MOST_ARRAYS];
  int64_t first[MOST + 1], received[MOST];
  cut(call, self->size, units, first);
  for (int a = 0; a < count; a++) {
    arrays[a] = malloc((size_t)(unit * units) + 1);
    for (int64_t i = 0; i < unit * units; i++) arrays[a][i] = content(a, self->rank, i);
  }
  CHECK(keep(self, flow_communicator_collect(self->link, (void *const *)arrays, count, unit, first, received)));
  for (int rank = 0; rank < self->size; rank++) {
    CHECK(received[rank] == first[rank + 1] - first[rank]);
    for (int a = 0; a < count; a++)
      for (int64_t i = first[rank] * unit; i < first[rank + 1] * unit; i++) CHECK(arrays[a][i] == content(a, rank, i));
  }
  for (int a = 0; a < count; a++) free(arrays[a]);
  return 0;
}

static int collect_all(worker *self)
{
  static const struct { int count; int64_t unit, units; } cases[] = {
    { 1, 1, 0 }, { 1, 1, 1 }, { 2, 4, 100 }, { 1, 4, 40000 }, { 4, 4 * 33, MOST_UNITS }, { 3, FLOW_MOST_COLLECTED / 3, 9 },
    { 1, 1024, MOST_UNITS } };
  int64_t first[MOST + 1] = { 0 }, received[MOST];
  for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++)
    for (int call = 0; call < 3; call++) {
      int wrong = collect_parts(self, call * 10 + i, cases[i].count, cases[i].unit, cases[i].units);
      if (wrong) return wrong;
    }
  void *nothing[2] = { NULL, NULL };
  CHECK(flow_communicator_collect(self->link, nothing, 2, FLOW_MOST_COLLECTED / 2 + 1, first, received) == FLOW_INVALID_ARGUMENT);
  return 0;
}

/* From each other's memory, and, where systems do not allow it, through the slots. */
static void parts_are_collected(void **state)
{
  (void)state;
  for (int slots = 0; slots < 2; slots++)
    for (int size = 2; size <= MOST; size++) {
      worker workers[MOST];
      open_all(workers, size, 60);
      for (int rank = 0; rank < size; rank++) {
        flow_shared *shared = (flow_shared *)workers[rank].link;
        assert_true(shared->reads);
        if (slots) shared->reads = 0;
      }
      for (int rank = 0; rank < size; rank++) start(&workers[rank], collect_all);
      join_and_close(workers, size);
    }
}

/* Its process is not there any more; what was read before stays. */
static int collect_from_nobody(worker *self)
{
  enum { UNITS = 1 << 18 };
  unsigned char *data = calloc(UNITS, 1);
  int64_t first[] = { 0, UNITS / 2, UNITS }, received[2];
  ((flow_shared *)self->link)->peers[1 - self->rank].process = INT_MAX;
  memset(data + first[self->rank], 1, UNITS / 2);
  CHECK(flow_communicator_collect(self->link, (void *[]){ data }, 1, 1, first, received) == FLOW_IO_ERROR);
  CHECK(strstr(flow_last_error(), "has ended") && received[1 - self->rank] == 0);
  for (int i = 0; i < UNITS; i++) CHECK(data[i] == (i / (UNITS / 2) == self->rank));
  free(data);
  return 0;
}

static void a_part_cannot_be_read(void **state)
{
  (void)state;
  run_all(2, collect_from_nobody);
}

/* ---- common memory ------------------------------------------------------------------------------------------------------------------- */

static int see_the_same(worker *self)
{
  flow_common common, refused;
  for (int64_t number = 1; number <= 3; number++) {
    int64_t bytes = number * 5000;
    CHECK(keep(self, flow_communicator_share_memory(self->link, bytes, &common)));
    CHECK(common.bytes == bytes && common.number == number);
    for (int64_t i = self->rank; i < bytes; i += self->size) common.memory[i] = (char)content((int)number, self->rank, i);
    CHECK(keep(self, flow_communicator_barrier(self->link)));
    for (int64_t i = 0; i < bytes; i++) CHECK(common.memory[i] == (char)content((int)number, (int)(i % self->size), i));
    CHECK(munmap(common.memory, (size_t)bytes) == 0);
    CHECK(keep(self, flow_communicator_share_memory(self->link, INT64_MAX, &refused)) && refused.number == 0);
  }
  CHECK(flow_communicator_share_memory(self->link, 0, &refused) == FLOW_INVALID_ARGUMENT);
  return 0;
}

static void ranks_see_the_same_memory(void **state)
{
  (void)state;
  for (int size = 2; size <= MOST; size++) run_all(size, see_the_same);
}

/* ---- failures ---------------------------------------------------------------------------------------------------------------- */

static int reduce_and_fail(worker *self)
{
  float data[100] = { 0 };
  CHECK(!keep(self, flow_communicator_all_reduce(self->link, FLOW_FLOAT32, data, 100)));
  flow_status first = self->status;
  CHECK(flow_communicator_barrier(self->link) == first);
  CHECK(flow_communicator_broadcast(self->link, 0, data, 4) == first);
  return 0;
}

static void a_rank_never_comes(void **state)
{
  (void)state;
  worker workers[MOST];
  open_all(workers, 4, 0.5);
  start(&workers[0], reduce_and_fail);
  start(&workers[2], reduce_and_fail);
  pthread_join(workers[0].thread, NULL);
  pthread_join(workers[2].thread, NULL);
  for (int rank = 0; rank <= 2; rank += 2) {
    assert_int_equal(workers[rank].wrong, 0);
    assert_int_equal(workers[rank].status, FLOW_TIMED_OUT);
    assert_non_null(strstr(workers[rank].message, "all_reduce: "));
    assert_non_null(strstr(workers[rank].message, "ranks 1, 3 did not come within 0.5 s"));
  }
  /* Those that come too late learn the same. */
  assert_int_equal(flow_communicator_barrier(workers[3].link), FLOW_TIMED_OUT);
  assert_non_null(strstr(flow_last_error(), "barrier: ranks 1, 3 did not come"));
  for (int rank = 0; rank < 4; rank++) flow_communicator_close(workers[rank].link);
}

static void abort_wakes_those_who_wait(void **state)
{
  (void)state;
  for (int rest = 0; rest < 3; rest++) {             /* before they wait, while they spin, while they sleep */
    worker workers[MOST];
    open_all(workers, 4, 60);
    for (int rank = 0; rank < 3; rank++) start(&workers[rank], reduce_and_fail);
    nanosleep(&(struct timespec){ .tv_nsec = rest == 0 ? 0 : rest == 1 ? 20000 : 20000000 }, NULL);
    flow_communicator_abort(workers[1].link, "worker:3 10.0.0.7:2222 is silent");
    flow_communicator_abort(workers[0].link, "a later reason");
    start(&workers[3], reduce_and_fail);
    join_and_close(workers, 4);
    for (int rank = 0; rank < 4; rank++) {
      assert_int_equal(workers[rank].status, FLOW_ABORTED);
      assert_string_equal(workers[rank].message, "all_reduce: worker:3 10.0.0.7:2222 is silent");
    }
  }
}

/* A rank may free its data as soon as its call has failed: nobody reads or writes them any more. */
static int reduce_until_aborted(worker *self)
{
  for (;;) {
    float *data = malloc(LONG * sizeof *data);
    memset(data, 0, LONG * sizeof *data);
    int ok = keep(self, flow_communicator_all_reduce(self->link, FLOW_FLOAT32, data, LONG));
    memset(data, 1, LONG * sizeof *data);
    free(data);
    if (ok) continue;
    CHECK(self->status == FLOW_ABORTED);
    return 0;
  }
}

static void abort_in_the_middle_of_sums(void **state)
{
  (void)state;
  for (int round = 0; round < 40; round++) {
    worker workers[MOST];
    open_all(workers, 3, 60);
    for (int rank = 0; rank < 3; rank++) start(&workers[rank], reduce_until_aborted);
    nanosleep(&(struct timespec){ .tv_nsec = 1000000 + round * 37000 }, NULL);
    flow_communicator_abort(workers[0].link, "enough");
    join_and_close(workers, 3);
  }
}

static int call_something_else(worker *self)
{
  float data[8] = { 0 };
  if (self->rank == 1) CHECK(!keep(self, flow_communicator_broadcast(self->link, 1, data, 12)));
  else CHECK(!keep(self, flow_communicator_all_reduce(self->link, FLOW_FLOAT32, data, 8)));
  return 0;
}

static void ranks_that_do_not_agree(void **state)
{
  (void)state;
  worker workers[MOST];
  open_all(workers, 3, 60);
  for (int rank = 0; rank < 3; rank++) start(&workers[rank], call_something_else);
  join_and_close(workers, 3);
  for (int rank = 0; rank < 3; rank++) {
    assert_int_equal(workers[rank].status, FLOW_INVALID_STATE);
    assert_non_null(strstr(workers[rank].message, "rank 0 calls all_reduce of 8 float32, rank 1 calls broadcast of 12 bytes from rank 1"));
  }
}

/* ---- memory that processes share ------------------------------------------------------------------------------------------------ */

static int count_entries(const char *folder)
{
  int count = 0;
  DIR *entries = opendir(folder);
  assert_non_null(entries);
  while (readdir(entries)) count++;
  closedir(entries);
  return count;
}

static int count_mappings(void)
{
  char line[4096];
  int count = 0;
  FILE *file = fopen("/proc/self/maps", "r");
  assert_non_null(file);
  while (fgets(line, sizeof line, file)) count += strstr(line, "/memfd:flow_shared (deleted)") != NULL;
  fclose(file);
  return count;
}

static void nothing_is_left_behind(void **state)
{
  (void)state;
  int descriptors = count_entries("/proc/self/fd");
  double bytes = flow_live_bytes();
  for (int round = 0; round < 300; round++) {
    worker workers[2];
    open_all(workers, 2, 60);
    if (round == 0) assert_int_equal(count_mappings(), 2);
    for (int rank = 0; rank < 2; rank++) flow_communicator_close(workers[rank].link);
  }
  assert_int_equal(count_entries("/proc/self/fd"), descriptors);
  assert_int_equal(count_mappings(), 0);
  assert_true(flow_live_bytes() == bytes);
}

static void the_environment_turns_it_off(void **state)
{
  (void)state;
  worker workers[2];
  int descriptors = count_entries("/proc/self/fd");
  share = 0;
  open_all(workers, 2, 60);
  share = 1;
  setenv("FLOW_SHARED_MEMORY", "0", 1);
  share_all(workers, 2);
  unsetenv("FLOW_SHARED_MEMORY");
  assert_int_equal(count_entries("/proc/self/fd"), descriptors);
  for (int rank = 0; rank < 2; rank++) assert_string_equal(workers[rank].link->transport->name, "local");
  share_all(workers, 2);
  share_all(workers, 2);                          /* what is shared stays so */
  for (int rank = 0; rank < 2; rank++) assert_true(flow_communicator_is_shared(workers[rank].link));
  for (int rank = 0; rank < 2; rank++) flow_communicator_close(workers[rank].link);
}

/* A rank that closes its end is missed at once, not when the time is over; what it has shown before is still there. */
static int sum_then_fail(worker *self)
{
  float data[100] = { 1 };
  CHECK(keep(self, flow_communicator_all_reduce(self->link, FLOW_FLOAT32, data, 100)) && data[0] == 2);
  CHECK(!keep(self, flow_communicator_all_reduce(self->link, FLOW_FLOAT32, data, 100)));
  return 0;
}

static int sum_and_close(worker *self)
{
  float data[100] = { 1 };
  CHECK(keep(self, flow_communicator_all_reduce(self->link, FLOW_FLOAT32, data, 100)));
  flow_communicator_close(self->link);
  self->link = NULL;
  return 0;
}

static void a_rank_leaves(void **state)
{
  (void)state;
  worker workers[2];
  open_all(workers, 2, 60);
  start(&workers[0], sum_then_fail);
  start(&workers[1], sum_and_close);
  join_and_close(workers, 2);
  assert_int_equal(workers[0].status, FLOW_IO_ERROR);
  assert_non_null(strstr(workers[0].message, "all_reduce: rank 1 (process "));
  assert_non_null(strstr(workers[0].message, "has closed its end of the group"));
}

/* The other rank writes whatever it likes wherever it can: that ends in a failure or in wrong sums, and nowhere else. */
static _Atomic int ended;

static int write_nonsense(worker *self)
{
  flow_shared *shared = (flow_shared *)self->link;
  flow_shared_group *group = shared->group;
  uint32_t random = 1;
  while (!ended) {
    _Atomic uint32_t *words = (_Atomic uint32_t *)(void *)group;
    random = mix(random + 1);
    size_t word = random % (shared->bytes / sizeof *words);
    if (random % 3 == 0) word = (size_t)((unsigned char *)&group->members[1].slots[random % 4] - (unsigned char *)group) / 4 + random % 6;
    atomic_store(&words[word], random % 5 ? random % 7 : mix(random));
  }
  return 0;
}

static int sum_with_nonsense(worker *self)
{
  double data[3000] = { 0 };
  while (keep(self, flow_communicator_all_reduce(self->link, FLOW_FLOAT64, data, 3000))) continue;
  ended = 1;
  return 0;
}

static void nonsense_in_the_memory(void **state)
{
  (void)state;
  for (int round = 0; round < 20; round++) {
    worker workers[2];
    open_all(workers, 2, 0.2);
    ended = 0;
    start(&workers[1], write_nonsense);
    start(&workers[0], sum_with_nonsense);
    join_and_close(workers, 2);
    assert_int_not_equal(workers[0].status, FLOW_OK);
  }
}

static void memory_that_is_not_there(void **state)
{
  (void)state;
  worker workers[2];
  share = 0;
  open_all(workers, 2, 60);
  share = 1;
  for (int allocation = 0; allocation < 2; allocation++) {
    flow_communicator *link = workers[0].link;
    flow_fail_allocation(allocation);
    assert_int_equal(flow_communicator_share(&link), FLOW_OUT_OF_MEMORY);
    flow_fail_allocation(-1);
    assert_ptr_equal(link, workers[0].link);
  }
  share_all(workers, 2);
  for (int rank = 0; rank < 2; rank++) flow_communicator_close(workers[rank].link);
}

static void wrong_arguments(void **state)
{
  (void)state;
  flow_communicator *link, *second;
  flow_local_group *group;
  flow_transport_options options = { .timeout = 1 };
  assert_int_equal(flow_communicator_open("pigeon", 0, 1, &options, &link), FLOW_INVALID_ARGUMENT);
  assert_null(link);
  assert_int_equal(flow_communicator_open("local", 0, 1, &options, &link), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_local_group_new(0, &group), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_local_group_new(1, &group), FLOW_OK);
  options.local = group;
  assert_int_equal(flow_communicator_open("local", 1, 1, &options, &link), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_communicator_open("local", -1, -1, &options, &link), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_communicator_open("local", 0, 2, &options, &link), FLOW_INVALID_ARGUMENT);
  assert_non_null(strstr(flow_last_error(), "rank 0 of 2 joins a group that was made for 1"));
  options.timeout = (double)NAN;
  assert_int_equal(flow_communicator_open("local", 0, 1, &options, &link), FLOW_INVALID_ARGUMENT);
  options.timeout = 1;
  assert_int_equal(flow_communicator_open("local", 0, 1, &options, &link), FLOW_OK);
  assert_int_equal(flow_communicator_open("local", 0, 1, &options, &second), FLOW_INVALID_STATE);

  int32_t data[2] = { 5, 6 };
  assert_int_equal(flow_communicator_all_reduce(link, FLOW_INT32, data, 2), FLOW_INVALID_ARGUMENT);
  assert_non_null(strstr(flow_last_error(), "int32"));
  assert_int_equal(flow_communicator_all_reduce(link, FLOW_FLOAT32, data, -1), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_communicator_all_reduce(link, FLOW_FLOAT32, NULL, 1), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_communicator_all_reduce(link, FLOW_FLOAT64, data, INT64_MAX / 4), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_communicator_broadcast(link, 1, data, 8), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_communicator_broadcast(link, 0, data, 8), FLOW_OK);        /* none of this broke it */
  assert_int_equal(data[1], 6);
  flow_communicator_close(link);
  flow_communicator_close(NULL);
  flow_local_group_release(group);
}

#define TESTS_OF_BOTH                                                                                                           \
  cmocka_unit_test(sums_have_the_order_of_the_ranks), cmocka_unit_test(ten_thousand_calls), cmocka_unit_test(barriers_wait_for_all), \
  cmocka_unit_test(a_rank_never_comes), cmocka_unit_test(abort_wakes_those_who_wait), cmocka_unit_test(abort_in_the_middle_of_sums), \
  cmocka_unit_test(ranks_that_do_not_agree)

int main(void)
{
  const struct CMUnitTest local[] = { TESTS_OF_BOTH, cmocka_unit_test(wrong_arguments) };
  const struct CMUnitTest shared[] = {
    TESTS_OF_BOTH, cmocka_unit_test(parts_are_collected), cmocka_unit_test(a_part_cannot_be_read),
    cmocka_unit_test(ranks_see_the_same_memory),
    cmocka_unit_test(nothing_is_left_behind), cmocka_unit_test(the_environment_turns_it_off),
    cmocka_unit_test(a_rank_leaves), cmocka_unit_test(nonsense_in_the_memory), cmocka_unit_test(memory_that_is_not_there),
  };
  int failed = cmocka_run_group_tests(local, NULL, NULL);
  share = 1;
  return failed + cmocka_run_group_tests(shared, NULL, NULL);
}
