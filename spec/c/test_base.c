/* test_base.c: status and messages, memory, log, and the thread team: regions, barriers, busy team, fork. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/memory.h"
#include "base/team.h"

/* A child that computes after fork is a supported use; ThreadSanitizer gives up on it unless told not to. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
  return "die_after_fork=0";
}

/* ---- status ------------------------------------------------------------------------------------------------------------------ */

static void messages_are_kept_and_prefixed(void **state)
{
  (void)state;
  assert_int_equal(flow_fail(FLOW_NOT_FOUND, "no %s in %d", "file", 7), FLOW_NOT_FOUND);
  assert_string_equal(flow_last_error(), "no file in 7");
  assert_int_equal(flow_fail_prefix(FLOW_NOT_FOUND, "layer %s: ", "dense"), FLOW_NOT_FOUND);
  assert_string_equal(flow_last_error(), "layer dense: no file in 7");
  flow_fail(FLOW_INTERNAL, "again: %s", flow_last_error());
  assert_string_equal(flow_last_error(), "again: layer dense: no file in 7");
}

static void long_and_hostile_messages_are_tamed(void **state)
{
  (void)state;
  char text[3000];
  memset(text, 'x', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  flow_fail(FLOW_INTERNAL, "%s", text);
  assert_int_equal(strlen(flow_last_error()), 1023);
  flow_fail_prefix(FLOW_INTERNAL, "front: ");
  assert_int_equal(strlen(flow_last_error()), 1023);
  assert_memory_equal(flow_last_error(), "front: xxx", 10);
  flow_fail(FLOW_CORRUPT_DATA, "\033[2J\nnext");
  assert_string_equal(flow_last_error(), "?[2J\nnext");
}

static void *fail_elsewhere(void *unused)
{
  flow_fail(FLOW_IO_ERROR, "elsewhere");
  return unused;
}

static void messages_belong_to_their_thread(void **state)
{
  (void)state;
  pthread_t thread;
  flow_fail(FLOW_INTERNAL, "here");
  assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, NULL), 0);
  pthread_join(thread, NULL);
  assert_string_equal(flow_last_error(), "here");
}

static void every_status_has_a_name(void **state)
{
  (void)state;
  for (int status = 0; status <= FLOW_INTERNAL; status++) assert_string_not_equal(flow_status_name(status), "unknown status");
  assert_string_equal(flow_status_name(FLOW_OUT_OF_MEMORY), "out of memory");
  assert_string_equal(flow_status_name(-1), "unknown status");
  assert_string_equal(flow_status_name(FLOW_INTERNAL + 1), "unknown status");
}

static void shapes_are_written_as_users_write_them(void **state)
{
  (void)state;
  int64_t shape[] = { -1, 28, -6 };
  assert_string_equal(flow_shape_text(0, shape), "{}");
  assert_string_equal(flow_shape_text(2, shape), "{None, 28}");
  assert_string_equal(flow_shape_text(3, shape), "{None, 28, 6*None}");
}

static void texts_count_beyond_their_buffer(void **state)
{
  (void)state;
  char buffer[8] = "zzzzzzz";
  flow_text text = flow_text_into(buffer, 6);
  flow_text_add(&text, "%s", "abcd");
  flow_text_add(&text, "%s", "efgh");
  assert_int_equal(text.length, 8);
  assert_string_equal(buffer, "abcde");
  assert_int_equal(buffer[6], 'z');
  text = flow_text_into(NULL, 0);
  flow_text_add(&text, "%d", 12345);
  assert_int_equal(text.length, 5);
}

/* ---- memory -------------------------------------------------------------------------------------------------------------------- */

static void blocks_are_aligned_and_counted(void **state)
{
  (void)state;
  static const size_t sizes[] = { 0, 1, 63, 64, 1000, 1 << 20, 5 << 20 };
  double before = flow_live_bytes(), count = flow_allocation_count();
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    void *block;
    assert_int_equal(flow_alloc(sizes[i], &block), FLOW_OK);
    assert_int_equal((uintptr_t)block % 64, 0);
    memset(block, 0xff, sizes[i]);
    assert_true(flow_live_bytes() == before + (double)sizes[i]);
    flow_free(block);
    assert_true(flow_live_bytes() == before);
  }
  assert_true(flow_allocation_count() == count + sizeof sizes / sizeof *sizes);
  flow_free(NULL);
}

static void zeroed_blocks_are_zero(void **state)
{
  (void)state;
  for (int round = 0; round < 3; round++) {       /* later rounds get memory that was used */
    unsigned char *block;
    assert_int_equal(flow_alloc_zero(5000, (void **)&block), FLOW_OK);
    for (int i = 0; i < 5000; i++) assert_int_equal(block[i], 0);
    memset(block, 1, 5000);
    flow_free(block);
  }
}

static void allocation_fails_when_told_to(void **state)
{
  (void)state;
  void *first, *second;
  double before = flow_live_bytes();
  flow_fail_allocation(1);
  assert_int_equal(flow_alloc(10, &first), FLOW_OK);
  assert_int_equal(flow_alloc(10, &second), FLOW_OUT_OF_MEMORY);
  assert_null(second);
  assert_non_null(strstr(flow_last_error(), "10 bytes"));
  assert_int_equal(flow_alloc(10, &second), FLOW_OK);       /* once only */
  flow_free(first);
  flow_free(second);
  flow_fail_allocation(0);
  flow_fail_allocation(-1);
  assert_int_equal(flow_alloc(10, &first), FLOW_OK);
  flow_free(first);
  assert_true(flow_live_bytes() == before);
}

static void impossible_sizes_are_refused(void **state)
{
  (void)state;
  void *block;
  size_t product;
  assert_int_equal(flow_alloc(SIZE_MAX, &block), FLOW_OUT_OF_MEMORY);
  assert_int_equal(flow_alloc(SIZE_MAX - 64, &block), FLOW_OUT_OF_MEMORY);
  assert_int_equal(flow_multiply((size_t)1 << 40, (size_t)1 << 40, &product), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_multiply(1000, 1000, &product), FLOW_OK);
  assert_int_equal(product, 1000000);
}

static void arrays_grow_and_keep_their_contents(void **state)
{
  (void)state;
  int64_t *numbers = NULL;
  int capacity = 0;
  for (int i = 0; i < 1000; i++) {
    assert_int_equal(flow_grow(&numbers, sizeof *numbers, i + 1, &capacity), FLOW_OK);
    assert_true(capacity > i);
    numbers[i] = i;
  }
  for (int i = 0; i < 1000; i++) assert_int_equal(numbers[i], i);
  flow_fail_allocation(0);
  int before = capacity;
  assert_int_equal(flow_grow(&numbers, sizeof *numbers, capacity + 1, &capacity), FLOW_OUT_OF_MEMORY);
  assert_int_equal(capacity, before);
  assert_int_equal(numbers[999], 999);
  flow_free(numbers);
}

static void texts_are_duplicated(void **state)
{
  (void)state;
  char *copy = flow_duplicate_text("kernel");
  assert_string_equal(copy, "kernel");
  flow_free(copy);
  flow_fail_allocation(0);
  assert_null(flow_duplicate_text("kernel"));
}

/* ---- log ----------------------------------------------------------------------------------------------------------------------- */

static void messages_are_kept_while_nothing_is_written(void **state)
{
  (void)state;
  char text[32];
  int level = -1;
  assert_false(flow_log_stdio());
  assert_int_equal(flow_log_take(&level, text, sizeof text), -1);
  flow_log(FLOW_LOG_WARNING, "first");
  flow_log(FLOW_LOG_INFO, "second");
  assert_int_equal(flow_log_take(&level, text, 3), 5);
  assert_int_equal(level, FLOW_LOG_WARNING);
  assert_string_equal(text, "fi");
  assert_int_equal(flow_log_take(NULL, text, sizeof text), 6);
  assert_string_equal(text, "second");
  for (int i = 0; i < 100; i++) {
    char line[16];
    snprintf(line, sizeof line, "line %d", i);
    flow_log(FLOW_LOG_INFO, line);
  }
  flow_log_take(NULL, text, sizeof text);
  assert_string_equal(text, "line 36");                     /* of 100 the last 64 */
  int count = 1;
  while (flow_log_take(NULL, text, sizeof text) >= 0) count++;
  assert_int_equal(count, 64);
}

static void messages_go_to_standard_streams_when_enabled(void **state)
{
  (void)state;
  int channels[2];
  assert_int_equal(pipe(channels), 0);
  fflush(stderr);
  int saved = dup(STDERR_FILENO);
  dup2(channels[1], STDERR_FILENO);
  flow_log_to_stdio(1);
  int enabled = flow_log_stdio();
  flow_log(FLOW_LOG_WARNING, "careful");
  flow_log_to_stdio(0);
  dup2(saved, STDERR_FILENO);
  close(saved);
  close(channels[1]);
  char text[32] = "";
  assert_int_equal(read(channels[0], text, sizeof text - 1), 8);
  close(channels[0]);
  assert_true(enabled);
  assert_string_equal(text, "careful\n");
  assert_int_equal(flow_log_take(NULL, text, sizeof text), -1);
}

/* ---- the team -------------------------------------------------------------------------------------------------------------------- */

enum { MOST = 64, ROUNDS = 50 };

typedef struct visit { _Atomic int seen[MOST]; _Atomic int members; _Atomic int outside; } visit;

static void note_visit(flow_region *region, int member, int members, void *argument)
{
  visit *self = argument;
  (void)region;
  if (member < 0 || member >= members || member >= MOST) atomic_fetch_add(&self->outside, 1);
  else atomic_fetch_add(&self->seen[member], 1);
  atomic_store(&self->members, members);
}

static void check_visit(int wanted, int expected)
{
  visit v = { 0 };
  flow_team_run(wanted, note_visit, &v);
  assert_int_equal(v.members, expected);
  assert_int_equal(v.outside, 0);
  for (int member = 0; member < MOST; member++) assert_int_equal(v.seen[member], member < expected);
}

static void every_member_runs_once(void **state)
{
  (void)state;
  assert_int_equal(flow_team_set_size(4), FLOW_OK);
  assert_int_equal(flow_team_size(), 4);
  for (int round = 0; round < ROUNDS; round++) {
    check_visit(0, 4);
    check_visit(1, 1);
    check_visit(3, 3);
    check_visit(9, 4);
  }
}

static void sizes_grow_shrink_and_are_checked(void **state)
{
  (void)state;
  static const int sizes[] = { 2, 40, 3, 1, 5 };
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    assert_int_equal(flow_team_set_size(sizes[i]), FLOW_OK);
    check_visit(0, sizes[i]);
  }
  assert_int_equal(flow_team_set_size(-1), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_team_set_size(100000), FLOW_INVALID_ARGUMENT);
  assert_non_null(strstr(flow_last_error(), "100000"));
  assert_int_equal(flow_team_set_size(256), FLOW_OK);
  assert_int_equal(flow_team_set_size(0), FLOW_OK);
  assert_in_range(flow_team_size(), 1, 512);
}

/* Each phase every member adds what it read before the phase; a barrier that lets one through early breaks the sum. */
typedef struct ring { int64_t value[MOST]; int64_t next[MOST]; _Atomic int wrong; } ring;

static void pass_around(flow_region *region, int member, int members, void *argument)
{
  ring *self = argument;
  self->value[member] = member;
  flow_region_barrier(region);
  for (int round = 0; round < 200; round++) {
    self->next[member] = self->value[(member + 1) % members];
    flow_region_barrier(region);
    self->value[member] = self->next[member];
    flow_region_barrier(region);
    if (self->value[member] != (member + round + 1) % members) atomic_fetch_add(&self->wrong, 1);
  }
}

static void barriers_hold_everybody(void **state)
{
  (void)state;
  for (int size = 1; size <= 5; size += 2) {
    ring r = { 0 };
    flow_team_set_size(size);
    flow_team_run(0, pass_around, &r);
    assert_int_equal(r.wrong, 0);
    assert_int_equal(r.value[0], 200 % size);
  }
}

typedef struct work { flow_ticket ticket; _Atomic int64_t sum; } work;

static void draw_tickets(flow_region *region, int member, int members, void *argument)
{
  (void)region, (void)member, (void)members;
  work *self = argument;
  for (int64_t part; (part = flow_ticket_take(&self->ticket)) < 1000;) atomic_fetch_add(&self->sum, part);
}

static void tickets_hand_out_every_part_once(void **state)
{
  (void)state;
  flow_team_set_size(3);
  work w = { 0 };
  flow_team_run(0, draw_tickets, &w);
  assert_int_equal(w.sum, 499500);
}

static void run_inner(flow_region *region, int member, int members, void *argument)
{
  (void)region, (void)member;
  visit inner = { 0 };
  flow_team_run(0, note_visit, &inner);
  if (inner.members != 1 || inner.seen[0] != 1) atomic_fetch_add((_Atomic int *)argument, 100);
  atomic_fetch_add((_Atomic int *)argument, members > 1);
}

static void nested_regions_run_alone(void **state)
{
  (void)state;
  _Atomic int runs = 0;
  flow_team_set_size(3);
  flow_team_run(0, run_inner, &runs);
  assert_int_equal(runs, 3);
}

/* Several callers at once: whoever finds the team busy does all the work itself. */
static void *call_often(void *argument)
{
  for (int round = 0; round < ROUNDS; round++) {
    work w = { 0 };
    flow_team_run(0, draw_tickets, &w);
    if (w.sum != 499500) atomic_fetch_add((_Atomic int *)argument, 1);
  }
  return NULL;
}

static void callers_at_once_all_get_their_result(void **state)
{
  (void)state;
  pthread_t callers[4];
  _Atomic int wrong = 0;
  flow_team_set_size(3);
  for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&callers[i], NULL, call_often, &wrong), 0);
  for (int i = 0; i < 4; i++) pthread_join(callers[i], NULL);
  assert_int_equal(wrong, 0);
}

typedef struct meeting { _Atomic int inside, leave; int inner_members; } meeting;

static void stay_until_told(flow_region *region, int member, int members, void *argument)
{
  (void)region, (void)member, (void)members;
  meeting *self = argument;
  atomic_fetch_add(&self->inside, 1);
  while (!atomic_load(&self->leave)) usleep(100);
}

static void *own_the_team(void *argument)
{
  flow_team_run(0, stay_until_told, argument);
  return NULL;
}

static void a_busy_team_leaves_the_caller_alone(void **state)
{
  (void)state;
  meeting m = { 0 };
  pthread_t owner;
  flow_team_set_size(2);
  assert_int_equal(pthread_create(&owner, NULL, own_the_team, &m), 0);
  while (atomic_load(&m.inside) < 2) usleep(100);
  check_visit(0, 1);
  atomic_store(&m.leave, 1);
  pthread_join(owner, NULL);
  check_visit(0, 2);
}

static int child_computes(void)
{
  work w = { 0 };
  visit v = { 0 };
  flow_team_run(0, draw_tickets, &w);
  flow_team_run(0, note_visit, &v);
  flow_log(FLOW_LOG_INFO, "child");
  return w.sum == 499500 && v.members == 3 && v.seen[2] == 1 && v.outside == 0;
}

static void wait_for_child(pid_t child)
{
  int status = 0;
  assert_true(child > 0);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_forked_child_computes_with_threads_of_its_own(void **state)
{
  (void)state;
  flow_team_set_size(3);
  check_visit(0, 3);
  for (int round = 0; round < 3; round++) {
    pid_t child = fork();
    if (child == 0) {
      alarm(20);
      _exit(child_computes() ? 0 : 1);
    }
    wait_for_child(child);
    check_visit(0, 3);
  }
}

static void a_child_forked_while_the_team_is_busy_computes(void **state)
{
  (void)state;
  meeting m = { 0 };
  pthread_t owner;
  flow_team_set_size(3);
  assert_int_equal(pthread_create(&owner, NULL, own_the_team, &m), 0);
  while (atomic_load(&m.inside) < 3) usleep(100);
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(child_computes() ? 0 : 1);
  }
  atomic_store(&m.leave, 1);
  pthread_join(owner, NULL);
  wait_for_child(child);
}

static void read_mask(flow_region *region, int member, int members, void *argument)
{
  (void)region, (void)members;
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, NULL, &blocked);
  ((int *)argument)[member] = sigismember(&blocked, SIGINT) + 2 * sigismember(&blocked, SIGTERM) + 4 * sigismember(&blocked, SIGSEGV);
}

static void workers_block_the_hosts_signals(void **state)
{
  (void)state;
  int masks[3] = { -1, -1, -1 };
  flow_team_set_size(3);
  flow_team_run(0, read_mask, masks);
  assert_int_equal(masks[0], 0);
  assert_int_equal(masks[1], 3);
  assert_int_equal(masks[2], 3);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(messages_are_kept_and_prefixed),
    cmocka_unit_test(long_and_hostile_messages_are_tamed),
    cmocka_unit_test(messages_belong_to_their_thread),
    cmocka_unit_test(every_status_has_a_name),
    cmocka_unit_test(shapes_are_written_as_users_write_them),
    cmocka_unit_test(texts_count_beyond_their_buffer),
    cmocka_unit_test(blocks_are_aligned_and_counted),
    cmocka_unit_test(zeroed_blocks_are_zero),
    cmocka_unit_test(allocation_fails_when_told_to),
    cmocka_unit_test(impossible_sizes_are_refused),
    cmocka_unit_test(arrays_grow_and_keep_their_contents),
    cmocka_unit_test(texts_are_duplicated),
    cmocka_unit_test(messages_are_kept_while_nothing_is_written),
    cmocka_unit_test(messages_go_to_standard_streams_when_enabled),
    cmocka_unit_test(every_member_runs_once),
    cmocka_unit_test(sizes_grow_shrink_and_are_checked),
    cmocka_unit_test(barriers_hold_everybody),
    cmocka_unit_test(tickets_hand_out_every_part_once),
    cmocka_unit_test(nested_regions_run_alone),
    cmocka_unit_test(callers_at_once_all_get_their_result),
    cmocka_unit_test(a_busy_team_leaves_the_caller_alone),
    cmocka_unit_test(a_forked_child_computes_with_threads_of_its_own),
    cmocka_unit_test(a_child_forked_while_the_team_is_busy_computes),
    cmocka_unit_test(workers_block_the_hosts_signals),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
