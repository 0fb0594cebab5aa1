/* test_hosts.c: ranks of several machines, here threads that say so: sums in the order of the ranks whoever shares a machine with whom, the
 * other calls, when there is no such group, and how a failure reaches all. */
#define _GNU_SOURCE
#include "rank_threads.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "transport/hosts.h"

/* ---- a store in this process --------------------------------------------------------------------------------------------------------- */

enum { MOST_KEYS = 512, KEY = 128 };

typedef struct entry { char key[KEY]; void *bytes; size_t count; } entry;

typedef struct keeper {
  pthread_mutex_t lock;
  pthread_cond_t  changed;
  entry           entries[MOST_KEYS];
  int             count;
} keeper;

static keeper kept = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, { { "", NULL, 0 } }, 0 };

static flow_status store_set(void *state, const char *key, const void *bytes, size_t count)
{
  (void)state;
  void *copy = malloc(count + 1);
  memcpy(copy, bytes, count);
  pthread_mutex_lock(&kept.lock);
  entry *new = &kept.entries[kept.count++];
  snprintf(new->key, KEY, "%s", key);
  new->bytes = copy;
  new->count = count;
  pthread_cond_broadcast(&kept.changed);
  pthread_mutex_unlock(&kept.lock);
  return FLOW_OK;
}

static const entry *find(const char *key)
{
  for (int i = 0; i < kept.count; i++) if (strcmp(kept.entries[i].key, key) == 0) return &kept.entries[i];
  return NULL;
}

static flow_status store_get(void *state, const char *key, double seconds, void **bytes, size_t *count)
{
  struct timespec end;
  (void)state;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += (time_t)seconds + 1;
  pthread_mutex_lock(&kept.lock);
  int late = 0;
  while (!find(key) && !late) late = pthread_cond_timedwait(&kept.changed, &kept.lock, &end) != 0;
  const entry *found = find(key);
  flow_status status = found ? flow_alloc(found->count + 1, bytes) : flow_fail(FLOW_TIMED_OUT, "nobody left %s", key);
  if (status == FLOW_OK) {
    memcpy(*bytes, found->bytes, found->count);
    *count = found->count;
  }
  pthread_mutex_unlock(&kept.lock);
  return status;
}

static void empty_store(void)
{
  for (int i = 0; i < kept.count; i++) free(kept.entries[i].bytes);
  kept.count = 0;
}

/* ---- opening ------------------------------------------------------------------------------------------------------------------------- */

static const char *layout;             /* the machine of each rank, a letter; an upper case one does not want it */

static int open_rank(worker *self)
{
  const flow_store store = { store_set, store_get, NULL };
  const char machine[] = { (char)(layout[self->rank] | 32), 0 };
  const flow_transport_options options = { .timeout = 60, .group = "g1", .address = "127.0.0.1", .store = &store, .machine = machine };
  int wanted = layout[self->rank] == machine[0];
  CHECK(keep(self, flow_communicator_meet_hosts(self->rank, self->size, &options, wanted, &self->link)));
  return 0;
}

static void run_layout(const char *machines, int (*body)(worker *))
{
  worker workers[MOST];
  layout = machines;
  int size = (int)strlen(machines);
  for (int rank = 0; rank < size; rank++) {
    workers[rank] = (worker){ .rank = rank, .size = size };
    start(&workers[rank], body);
  }
  join_and_close(workers, size);
  empty_store();
}

/* ---- calls --------------------------------------------------------------------------------------------------------------------------- */

/* Of numbers of very different sizes the sum shows in which order they were added. */
static double number(int rank, int64_t i)
{
  uint32_t bits = mix((uint32_t)rank * 2654435761u + (uint32_t)i);
  return ldexp((double)(int32_t)bits, (int)(bits % 40u) - 50);
}

static int sum_in_order(worker *self, int64_t count)
{
  float *floats = malloc((size_t)count * sizeof *floats + 1);
  double *doubles = malloc((size_t)count * sizeof *doubles + 1);
  for (int64_t i = 0; i < count; i++) floats[i] = (float)(doubles[i] = number(self->rank, i));
  CHECK(keep(self, flow_communicator_all_reduce(self->link, FLOW_FLOAT32, floats, count)));
  CHECK(keep(self, flow_communicator_all_reduce(self->link, FLOW_FLOAT64, doubles, count)));
  for (int64_t i = 0; i < count; i++) {
    float sum = (float)number(0, i);
    double longer = number(0, i);
    for (int rank = 1; rank < self->size; rank++) sum += (float)number(rank, i), longer += number(rank, i);
    CHECK(memcmp(&sum, &floats[i], sizeof sum) == 0);
    CHECK(memcmp(&longer, &doubles[i], sizeof longer) == 0);
  }
  free(floats);
  free(doubles);
  return 0;
}

static int hand_round(worker *self, int64_t bytes)
{
  unsigned char *all = malloc((size_t)(bytes * self->size) + 1), *mine = all + bytes * self->rank;
  for (int from = 0; from < self->size; from++) {
    for (int64_t i = 0; i < bytes; i++) all[i] = (unsigned char)mix((uint32_t)(self->rank + i));
    CHECK(keep(self, flow_communicator_broadcast(self->link, from, all, bytes)));
    for (int64_t i = 0; i < bytes; i++) CHECK(all[i] == (unsigned char)mix((uint32_t)(from + i)));
  }
  for (int64_t i = 0; i < bytes; i++) mine[i] = (unsigned char)mix((uint32_t)(self->rank * 3 + i));
  CHECK(keep(self, flow_communicator_all_gather(self->link, mine, bytes, all)));
  for (int64_t i = 0; i < bytes * self->size; i++) CHECK(all[i] == (unsigned char)mix((uint32_t)(i / bytes * 3 + i % bytes)));
  free(all);
  return 0;
}

static int call_all(worker *self)
{
  static const int64_t counts[] = { 0, 1, 7, 1000, 4096, 4097, 65536, 65537, 200003, 600001 };
  int wrong = open_rank(self), first = self->rank == 0 || layout[self->rank] != layout[self->rank - 1];
  if (wrong) return wrong;
  CHECK(self->link && self->link->transport == &flow_transport_hosts);
  CHECK((((flow_hosts *)self->link)->far != NULL) == first);
  CHECK(!flow_communicator_is_shared(self->link));
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    if ((wrong = sum_in_order(self, counts[i])) || (wrong = hand_round(self, counts[i]))) return wrong;
    CHECK(keep(self, flow_communicator_barrier(self->link)));
  }
  CHECK(keep(self, flow_communicator_barrier(self->link)));
  return 0;
}

static void calls_are_those_of_the_ranks(void **state)
{
  static const char *const layouts[] = { "aab", "abb", "aabb", "aaab", "abbc", "aabbccd" };
  (void)state;
  for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) run_layout(layouts[i], call_all);
}

/* Machines of unequal sizes: what one sends is as long as the largest one's. The rest must not be what its memory held before. */
enum { ODD = 3001, ODD_TOTAL = 4 * ODD + 1, OLD_BLOCKS = 8, OLD = 0x5a, NEW = 1 };

static int gather_odd(worker *self)
{
  unsigned char mine[ODD], all[3 * ODD];
  int wrong = open_rank(self);
  if (wrong) return wrong;
  memset(mine, NEW, sizeof mine);
  CHECK(keep(self, flow_communicator_all_gather(self->link, mine, ODD, all)));
  for (int i = 0; i < 3 * ODD; i++) CHECK(all[i] == NEW);
  return 0;
}

static void take_blocks(unsigned char **blocks)
{
  for (int i = 0; i < OLD_BLOCKS; i++) assert_int_equal(flow_alloc(ODD_TOTAL, (void **)&blocks[i]), FLOW_OK);
}

static void no_old_memory_is_sent(void **state)
{
  unsigned char *blocks[OLD_BLOCKS];
  (void)state;
  take_blocks(blocks);
  for (int i = 0; i < OLD_BLOCKS; i++) memset(blocks[i], OLD, ODD_TOTAL);
  for (int i = 0; i < OLD_BLOCKS; i++) flow_free(blocks[i]);
  run_layout("aab", gather_odd);
  take_blocks(blocks);
  for (int i = 0; i < OLD_BLOCKS; i++) {
    int was_gathered = blocks[i][0] == NEW && blocks[i][3 * ODD - 1] == NEW;
    for (int k = 3 * ODD; k < 4 * ODD && was_gathered; k++) assert_int_not_equal(blocks[i][k], OLD);
    flow_free(blocks[i]);
  }
}

static int find_no_group(worker *self)
{
  int wrong = open_rank(self);
  CHECK(wrong || !self->link);
  return wrong;
}

static void other_ranks_have_no_such_group(void **state)
{
  static const char *const layouts[] = { "a", "ab", "aa", "abc", "aaa", "aba", "aaB" };
  (void)state;
  for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) run_layout(layouts[i], find_no_group);
}

/* ---- failures ------------------------------------------------------------------------------------------------------------------------ */

static int reduce_until_it_fails(worker *self)
{
  int wrong = open_rank(self);
  if (wrong) return wrong;
  for (int call = 0;; call++) {
    float *data = calloc(200000, sizeof *data);
    if (self->rank == 3 && call == 5) flow_communicator_abort(self->link, "worker:7 is silent");
    int ok = keep(self, flow_communicator_all_reduce(self->link, FLOW_FLOAT32, data, 200000));
    free(data);
    if (ok) continue;
    CHECK(self->status == FLOW_ABORTED || (self->rank < 2 && self->status == FLOW_IO_ERROR));
    CHECK(flow_communicator_barrier(self->link) == self->status);
    return 0;
  }
}

/* Also those of the other machine, which nobody tells. */
static void an_abort_reaches_all(void **state)
{
  (void)state;
  for (int round = 0; round < 10; round++) run_layout("aabb", reduce_until_it_fails);
}

static int call_something_else(worker *self)
{
  float data[8] = { 0 };
  int wrong = open_rank(self);
  if (wrong) return wrong;
  if (self->rank == 2) CHECK(!keep(self, flow_communicator_broadcast(self->link, 2, data, 12)));
  else CHECK(!keep(self, flow_communicator_all_reduce(self->link, FLOW_FLOAT32, data, 8)));
  return 0;
}

static void ranks_that_do_not_agree(void **state)
{
  (void)state;
  run_layout("aab", call_something_else);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(calls_are_those_of_the_ranks), cmocka_unit_test(other_ranks_have_no_such_group),
    cmocka_unit_test(no_old_memory_is_sent), cmocka_unit_test(an_abort_reaches_all), cmocka_unit_test(ranks_that_do_not_agree),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
