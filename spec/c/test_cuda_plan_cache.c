/* test_cuda_plan_cache.c: kernels/cuda/library/plan_cache.h: plans are made once, and several of them at the same time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <pthread.h>
#include <time.h>
#include "base/status.h"
#include "cuda/library/plan_cache.h"

enum { THREADS = 8, KEYS = 4 };

static flow_plan_cache cache = FLOW_PLAN_CACHE;
static _Atomic int made[KEYS], now, most;

/* Takes a while. Key 3 has no plan; key 2 has none the first time, for want of memory. */
static flow_status make(const void *key, void *plan)
{
  int64_t number = *(const int64_t *)key;
  int together = atomic_fetch_add(&now, 1) + 1, seen = atomic_load(&most);
  while (together > seen && !atomic_compare_exchange_weak(&most, &seen, together)) continue;
  int times = atomic_fetch_add(&made[number], 1);
  nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
  atomic_fetch_sub(&now, 1);
  if (number == 3) return flow_fail(FLOW_UNSUPPORTED, "no engine");
  if (number == 2 && times == 0) return flow_fail(FLOW_OUT_OF_MEMORY, "full");
  *(int64_t *)plan = 100 + number;
  return FLOW_OK;
}

static const int64_t *find(int64_t number) { return flow_plan_cache_find(&cache, &number, sizeof number, sizeof number, make); }

/* Each thread begins with another key. */
static void *ask(void *argument)
{
  int first = (int)(intptr_t)argument;
  for (int i = 0; i < KEYS; i++) {
    int number = (first + i) % KEYS;
    const int64_t *plan = find(number);
    if (number == 3 ? plan != NULL : number != 2 && (!plan || *plan != 100 + number)) return (void *)"wrong";
  }
  return NULL;
}

static void plans_are_made_side_by_side(void **state)
{
  pthread_t threads[THREADS];
  void *wrong;
  (void)state;
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, ask, (void *)(intptr_t)i), 0);
  for (int i = 0; i < THREADS; i++) {
    assert_int_equal(pthread_join(threads[i], &wrong), 0);
    assert_null(wrong);
  }
  assert_true(atomic_load(&most) > 1);
  assert_int_equal(made[0], 1);
  assert_int_equal(made[1], 1);
  assert_int_equal(made[2], 2);
  assert_int_equal(made[3], 1);
}

static void what_was_made_stays(void **state)
{
  const int64_t *first = find(0);
  (void)state;
  assert_int_equal(*find(2), 102);
  assert_ptr_equal(find(0), first);
  assert_null(find(3));
  assert_int_equal(made[0] + made[1] + made[2] + made[3], 5);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(plans_are_made_side_by_side), cmocka_unit_test(what_was_made_stays) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
