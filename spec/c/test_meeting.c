/* test_meeting.c: ranks that have nothing but a store to meet in, here threads and a store between them: they get common memory, or learn
 * that there is none; who does not come is named. */
#define _GNU_SOURCE
#include "rank_threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/memory.h"

enum { MOST_ENTRIES = 64, RANKS = 5 };

typedef struct entry { char key[128]; char *value; size_t bytes; } entry;

static struct {
  pthread_mutex_t lock;
  pthread_cond_t  changed;
  entry entries[MOST_ENTRIES];
  int   count, gets;
  int   cut;                          /* bytes that the store takes away from each value */
} kept = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static flow_status set(void *state, const char *key, const void *bytes, size_t count)
{
  (void)state;
  pthread_mutex_lock(&kept.lock);
  entry *new = &kept.entries[kept.count++];
  snprintf(new->key, sizeof new->key, "%s", key);
  new->bytes = count - (size_t)kept.cut;
  new->value = malloc(new->bytes);
  memcpy(new->value, bytes, new->bytes);
  pthread_cond_broadcast(&kept.changed);
  pthread_mutex_unlock(&kept.lock);
  return FLOW_OK;
}

static flow_status get(void *state, const char *key, double seconds, void **bytes, size_t *count)
{
  struct timespec until;
  (void)state;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += (time_t)seconds;
  until.tv_nsec += (long)((seconds - (double)(time_t)seconds) * 1e9);
  if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
  pthread_mutex_lock(&kept.lock);
  kept.gets++;
  for (int waited = 0;; ) {
    int at = 0;
    while (at < kept.count && strcmp(kept.entries[at].key, key) != 0) at++;
    if (at < kept.count) {
      *count = kept.entries[at].bytes;
      flow_status status = flow_alloc(*count, bytes);
      if (status == FLOW_OK) memcpy(*bytes, kept.entries[at].value, *count);
      pthread_mutex_unlock(&kept.lock);
      return status;
    }
    if (waited) break;
    waited = pthread_cond_timedwait(&kept.changed, &kept.lock, &until) != 0;
  }
  pthread_mutex_unlock(&kept.lock);
  return flow_fail(FLOW_TIMED_OUT, "no %s", key);
}

static int forget(void **state)
{
  (void)state;
  for (int i = 0; i < kept.count; i++) free(kept.entries[i].value);
  kept.count = kept.gets = kept.cut = 0;
  return 0;
}

static const flow_store store = { set, get, NULL };
static double timeout = 60;

static int meet_and_sum(worker *self)
{
  float data[20000];
  const flow_transport_options options = { .timeout = timeout, .group = "g1", .store = &store };
  CHECK(keep(self, flow_communicator_meet(self->rank, self->size, &options, &self->link)));
  CHECK(self->link && flow_communicator_is_shared(self->link) && self->link->rank == self->rank && self->link->size == self->size);
  for (int i = 0; i < 20000; i++) data[i] = (float)(i % 7 + self->rank);
  CHECK(keep(self, flow_communicator_all_reduce(self->link, FLOW_FLOAT32, data, 20000)));
  for (int i = 0; i < 20000; i++) CHECK(data[i] == (float)(RANKS * (i % 7) + RANKS * (RANKS - 1) / 2));
  return 0;
}

static int meet_only(worker *self)
{
  const flow_transport_options options = { .timeout = timeout, .group = "g1", .store = &store };
  keep(self, flow_communicator_meet(self->rank, self->size, &options, &self->link));
  CHECK(!self->link);
  return 0;
}

static void run_ranks(worker *workers, int first, int (*body)(worker *))
{
  for (int rank = first; rank < RANKS; rank++) {
    workers[rank] = (worker){ .rank = rank, .size = RANKS };
    start(&workers[rank], body);
  }
  join_and_close(workers + first, RANKS - first);
}

static void ranks_get_common_memory(void **state)
{
  (void)state;
  worker workers[RANKS];
  run_ranks(workers, 0, meet_and_sum);
  /* Two rounds, in which rank 0 asks for each of the others and each of the others once. */
  assert_int_equal(kept.gets, 2 * 2 * (RANKS - 1));
}

static void ranks_learn_that_there_is_none(void **state)
{
  (void)state;
  worker workers[RANKS];
  setenv("FLOW_SHARED_MEMORY", "0", 1);
  run_ranks(workers, 0, meet_only);
  unsetenv("FLOW_SHARED_MEMORY");
  for (int rank = 0; rank < RANKS; rank++) assert_int_equal(workers[rank].status, FLOW_OK);
}

static void a_rank_does_not_come(void **state)
{
  (void)state;
  worker workers[RANKS];
  timeout = 0.05;
  run_ranks(workers, 1, meet_only);
  timeout = 60;
  for (int rank = 1; rank < RANKS; rank++) {
    assert_int_equal(workers[rank].status, FLOW_TIMED_OUT);
    assert_string_equal(workers[rank].message, "meeting in the store: rank 0 of 5 did not come within 0.05 s");
  }
}

static void a_rank_is_of_another_version(void **state)
{
  (void)state;
  worker workers[RANKS];
  kept.cut = 8;
  timeout = 0.5;
  run_ranks(workers, 0, meet_only);
  timeout = 60;
  assert_int_equal(workers[0].status, FLOW_IO_ERROR);
  assert_non_null(strstr(workers[0].message, "meeting in the store: rank 1 of 5 left "));
  assert_non_null(strstr(workers[0].message, "it is of another version"));
}

static void memory_is_out(void **state)
{
  (void)state;
  flow_communicator *link;
  const flow_transport_options options = { .timeout = 0.05, .group = "g1", .store = &store };
  for (int allocation = 0; allocation < 3; allocation++) {
    flow_fail_allocation(allocation);
    assert_int_equal(flow_communicator_meet(1, RANKS, &options, &link), FLOW_OUT_OF_MEMORY);
    flow_fail_allocation(-1);
    assert_null(link);
  }
}

/* So many that their memory would be too large: nobody asks. */
static void too_many_ranks(void **state)
{
  (void)state;
  flow_communicator *link;
  const flow_transport_options options = { .timeout = 0.05, .group = "g1", .store = &store };
  assert_int_equal(flow_communicator_meet(1, 4096, &options, &link), FLOW_OK);
  assert_null(link);
  assert_int_equal(kept.gets + kept.count, 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_teardown(ranks_get_common_memory, forget), cmocka_unit_test_teardown(ranks_learn_that_there_is_none, forget),
    cmocka_unit_test_teardown(a_rank_does_not_come, forget), cmocka_unit_test_teardown(a_rank_is_of_another_version, forget),
    cmocka_unit_test_teardown(memory_is_out, forget), cmocka_unit_test_teardown(too_many_ranks, forget),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
