/* test_shared_transport.c: the transport through memory that processes share, here between threads: parts that are collected, common
 * memory, what is left behind, a rank that leaves or writes nonsense. */
#define _GNU_SOURCE
#include "rank_threads.h"

#include <dirent.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "transport/shared.h"

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

/* ---- shared regions ------------------------------------------------------------ */

static int see_the_same(worker *self)
{
  flow_shared_region region, refused;
  for (int64_t number = 1; number <= 3; number++) {
    int64_t bytes = number * 5000;
    CHECK(keep(self, flow_communicator_share_region(self->link, bytes, &region)));
    CHECK(region.bytes == bytes && region.number == number);
    for (int64_t i = self->rank; i < bytes; i += self->size) region.memory[i] = (char)content((int)number, self->rank, i);
    CHECK(keep(self, flow_communicator_barrier(self->link)));
    for (int64_t i = 0; i < bytes; i++) CHECK(region.memory[i] == (char)content((int)number, (int)(i % self->size), i));
    CHECK(munmap(region.memory, (size_t)bytes) == 0);
    CHECK(keep(self, flow_communicator_share_region(self->link, INT64_MAX, &refused)) && refused.number == 0);
  }
  CHECK(flow_communicator_share_region(self->link, 0, &refused) == FLOW_INVALID_ARGUMENT);
  return 0;
}

static void ranks_see_the_same_memory(void **state)
{
  (void)state;
  for (int size = 2; size <= MOST; size++) run_all(size, see_the_same);
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
    open_all(workers, 2, 60);       /* as long as a busy machine takes, */
    workers[0].link->timeout = 0.2; /* but nonsense is not waited for */
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

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(parts_are_collected), cmocka_unit_test(a_part_cannot_be_read), cmocka_unit_test(ranks_see_the_same_memory),
    cmocka_unit_test(nothing_is_left_behind), cmocka_unit_test(the_environment_turns_it_off), cmocka_unit_test(a_rank_leaves),
    cmocka_unit_test(nonsense_in_the_memory), cmocka_unit_test(memory_that_is_not_there),
  };
  share = 1;
  return cmocka_run_group_tests(tests, NULL, NULL);
}
