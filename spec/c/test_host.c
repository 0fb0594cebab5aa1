/* test_host.c: flowlua in a program that is not its own: a host with LuaJIT states, threads, signals and children, which
 * links the library and flow_lua like any other. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <lauxlib.h>
#include <lualib.h>

#include "child.h"
#include "flow.h"
#include "flow_lua.h"

/* Threads that exist before the library did anything (a sanitizer may have one). */
enum { MOST_THREADS = 64 };
static int first_threads[MOST_THREADS], first_count;

static int list_threads(int *ids)
{
  int count = 0;
  DIR *folder = opendir("/proc/self/task");
  assert_non_null(folder);
  for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
    if (entry->d_name[0] != '.' && count < MOST_THREADS) ids[count++] = atoi(entry->d_name);
  closedir(folder);
  return count;
}

static int count_threads(void)
{
  int ids[MOST_THREADS];
  return list_threads(ids);
}

static void wait_milliseconds(long milliseconds)
{
  struct timespec pause = { milliseconds / 1000, milliseconds % 1000 * 1000000 };
  nanosleep(&pause, NULL);
}

/* ---- states --------------------------------------------------------------------------------------------------------- */

static lua_State *open_state(void)
{
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  if (flow_lua_open(L) != 0) fprintf(stderr, "%s\n", lua_tostring(L, -1));
  return L;
}

/* Runs a chunk with the module as its argument; the number it returns. */
static double run_chunk(lua_State *L, const char *chunk)
{
  if (luaL_loadstring(L, chunk) != 0) fail_msg("%s", lua_tostring(L, -1));
  lua_getglobal(L, "require");
  lua_pushliteral(L, "flow");
  lua_call(L, 1, 1);
  if (lua_pcall(L, 1, 1, 0) != 0) fail_msg("%s", lua_tostring(L, -1));
  double result = lua_tonumber(L, -1);
  lua_pop(L, 1);
  return result;
}

static const char compute[] =
  "local flow = ...\n"
  "local a = flow.ones { 300, 300 }\n"
  "return (a:matmul(a) + 1):sum():item()";
static const double computed = 300.0 * 300.0 * 301.0;

static const char train[] =
  "local flow = ...\n"
  "local layers = flow.layers\n"
  "local model = flow.Sequential {\n"
  "  layers.Input { 8 }, layers.Dense(16, { activation = 'relu' }), layers.Dense(3, { activation = 'softmax' }) }\n"
  "model:compile { optimizer = 'adam', loss = 'sparse_categorical_crossentropy', metrics = { 'accuracy' } }\n"
  "local x, y = flow.random.normal({ 64, 8 }, { seed = 1 }), flow.zeros({ 64 }, { dtype = 'int32' })\n"
  "model:summary()\n"
  "local history = model:fit(x, y, { epochs = 2, batch_size = 16 })\n"
  "return history.history.loss[2]";

/* The first test: nothing may have computed before. */
static void test_no_thread_before_the_first_computation(void **state)
{
  (void)state;
  assert_int_equal(flow_set_threads(3), FLOW_OK);
  lua_State *L = open_state();
  assert_int_equal(run_chunk(L, "local flow = ... return flow.ones { 1000, 10 }.shape[1]"), 1000);
  assert_int_equal(count_threads(), first_count);
  assert_true(run_chunk(L, compute) == computed);
  assert_int_equal(count_threads(), first_count + 2);
  lua_close(L);
}

static unsigned long long blocked_by(int thread)
{
  char path[64], line[256];
  unsigned long long blocked = 0;
  snprintf(path, sizeof path, "/proc/self/task/%d/status", thread);
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  while (fgets(line, sizeof line, file)) sscanf(line, "SigBlk: %llx", &blocked);
  fclose(file);
  return blocked;
}

static void test_workers_block_signals(void **state)
{
  (void)state;
  int ids[MOST_THREADS], count = list_threads(ids), workers = 0;
  const unsigned long long open_ones = 1ull << (SIGILL - 1) | 1ull << (SIGFPE - 1) | 1ull << (SIGSEGV - 1) | 1ull << (SIGBUS - 1);
  for (int i = 0; i < count; i++) {
    int old = 0;
    for (int k = 0; k < first_count; k++) old |= ids[i] == first_threads[k];
    if (old) continue;
    unsigned long long blocked = blocked_by(ids[i]);
    for (int tries = 0; (blocked & open_ones) && tries < 1000; tries++) {      /* a thread that has not run yet blocks all */
      nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
      blocked = blocked_by(ids[i]);
    }
    assert_true((blocked & open_ones) == 0);
    for (int signal = 1; signal < 32; signal++)
      if (signal != SIGKILL && signal != SIGSTOP && !(open_ones >> (signal - 1) & 1)) assert_true(blocked >> (signal - 1) & 1);
    workers++;
  }
  assert_int_equal(workers, 2);
}

static double seconds_of_cpu(void)
{
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) + 1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void test_idle_costs_nothing(void **state)
{
  (void)state;
  lua_State *L = open_state();
  assert_true(run_chunk(L, compute) == computed);
  double before = seconds_of_cpu();
  wait_milliseconds(500);
  assert_true(seconds_of_cpu() - before < 0.025);
  lua_close(L);
}

static void test_a_forked_child_computes(void **state)
{
  (void)state;
#ifdef __SANITIZE_THREAD__
  skip();                                     /* ThreadSanitizer ends children that start threads */
#endif
  lua_State *L = open_state();
  assert_true(run_chunk(L, compute) == computed);
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    alarm(CHILD_SECONDS);
    _exit(run_chunk(L, compute) == computed && run_chunk(L, train) > 0 ? 0 : 1);
  }
  assert_true(child > 0);
  int result;
  assert_int_equal(waitpid(child, &result, 0), child);
  assert_true(WIFEXITED(result) && WEXITSTATUS(result) == 0);
  assert_true(run_chunk(L, compute) == computed);
  lua_close(L);
}

static void test_many_states(void **state)
{
  (void)state;
  double after_warmup = 0;
  for (int i = 0; i < 50; i++) {
    lua_State *L = open_state();
    assert_true(run_chunk(L, compute) == computed);
    if (i % 10 == 0) assert_true(run_chunk(L, train) > 0);
    lua_close(L);
    if (i == 1) after_warmup = flow_live_bytes();
  }
  assert_true(flow_live_bytes() == after_warmup);
  assert_int_equal(count_threads(), first_count + 2);
}

static void *use_a_state(void *argument)
{
  int *right = argument;
  lua_State *L = open_state();
  for (int i = 0; i < 10; i++) *right += run_chunk(L, compute) == computed;
  *right += run_chunk(L, train) > 0;
  lua_close(L);
  return NULL;
}

static void test_states_in_two_threads(void **state)
{
  (void)state;
  pthread_t threads[2];
  int right[2] = { 0, 0 };
  for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&threads[i], NULL, use_a_state, &right[i]), 0);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  assert_int_equal(right[0], 11);
  assert_int_equal(right[1], 11);
}

/* ---- what belongs to the host -------------------------------------------------------------------------------------------- */

static void test_nothing_is_printed(void **state)
{
  (void)state;
  int file = memfd_create("output", 0), saved[2] = { dup(1), dup(2) };
  fflush(NULL);
  dup2(file, 1);
  dup2(file, 2);
  lua_State *L = open_state();
  run_chunk(L, "printed = 0 print = function() printed = printed + 1 end return 1");
  double loss = run_chunk(L, train);
  double printed = run_chunk(L, "return printed");      /* the summary, which the chunk asks for */
  double failed = run_chunk(L, "local flow = ... return pcall(flow.ones, 'x') and 0 or 1");
  double warned = run_chunk(L, "local flow = ... local f = flow.fn(function(x, k) return x * k end)\n"
                               "for k = 1, 9 do f(flow.ones { 2 }, k) end return 1");
  lua_close(L);
  fflush(NULL);
  long written = lseek(file, 0, SEEK_END);
  dup2(saved[0], 1);
  dup2(saved[1], 2);
  close(saved[0]);
  close(saved[1]);
  close(file);
  assert_true(loss > 0);
  assert_true(failed == 1 && warned == 1);
  assert_true(printed == 1);
  assert_int_equal(written, 0);
  int level, messages = 0;
  char text[200];
  while (flow_log_take(&level, text, sizeof text) >= 0) messages++;
  assert_true(messages > 0);                  /* a host that wants them finds them here */
}

static void test_signals_and_globals_stay(void **state)
{
  (void)state;
  struct sigaction before[32], after;
  memset(before, 0, sizeof before);
  for (int signal = 1; signal < 32; signal++) sigaction(signal, NULL, &before[signal]);
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  assert_int_equal(luaL_dostring(L, "before = {} for k in pairs(_G) do before[k] = true end"), 0);
  assert_int_equal(flow_lua_open(L), 0);
  assert_true(lua_istable(L, -1));
  lua_pop(L, 1);
  assert_true(run_chunk(L, train) > 0);
  if (luaL_dostring(L, "for k in pairs(_G) do assert(before[k], 'new global ' .. tostring(k)) end") != 0)
    fail_msg("%s", lua_tostring(L, -1));
  for (int signal = 1; signal < 32; signal++) {
    if (sigaction(signal, NULL, &after) != 0) continue;
    assert_true(after.sa_handler == before[signal].sa_handler);
  }
  lua_close(L);
}

/* A state without what flow needs gets an error, not a crash. */
static void test_open_fails_cleanly(void **state)
{
  (void)state;
  lua_State *L = luaL_newstate();
  assert_int_not_equal(flow_lua_open(L), 0);
  assert_true(lua_isstring(L, -1));
  lua_close(L);
  L = luaL_newstate();
  luaL_openlibs(L);
  assert_int_equal(luaL_dostring(L, "package.preload.flow = function() error('not today') end"), 0);
  assert_int_not_equal(flow_lua_open(L), 0);
  assert_non_null(strstr(lua_tostring(L, -1), "not today"));
  lua_close(L);
}

/* An interrupt from a signal handler stops the work of its context; the library polls it. */
static flow_context *interruptible;
static void on_alarm(int signal)
{
  (void)signal;
  flow_interrupt(interruptible, 1);
}

static void test_interrupt_from_a_signal_handler(void **state)
{
  (void)state;
  flow_tensor *x, *y;
  int64_t shape[2] = { 100, 100 };
  struct sigaction old, mine = { .sa_handler = on_alarm };
  assert_int_equal(flow_context_new(&interruptible), FLOW_OK);
  assert_int_equal(flow_tensor_new(FLOW_FLOAT32, 2, shape, &x), FLOW_OK);
  sigaction(SIGALRM, &mine, &old);
  alarm(1);
  flow_status status = FLOW_OK;
  double started = flow_clock();
  while (status == FLOW_OK && flow_clock() - started < 20) {
    status = flow_apply(interruptible, flow_op_find("matmul"), (flow_tensor *[]){ x, x }, 2, NULL, &y);
    if (status == FLOW_OK) flow_tensor_release(y);
  }
  sigaction(SIGALRM, &old, NULL);
  assert_int_equal(status, FLOW_INTERRUPTED);
  flow_interrupt(interruptible, 0);
  assert_int_equal(flow_apply(interruptible, flow_op_find("neg"), &x, 1, NULL, &y), FLOW_OK);
  flow_tensor_release(y);
  flow_tensor_release(x);
  flow_context_release(interruptible);
}

static void *do_nothing(void *nothing) { return nothing; }

int main(void)
{
  pthread_t thread;
  /* A sanitizer's own thread starts together with the first one of the program. */
  if (pthread_create(&thread, NULL, do_nothing, NULL) == 0) pthread_join(thread, NULL);
  first_count = list_threads(first_threads);
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_no_thread_before_the_first_computation), cmocka_unit_test(test_workers_block_signals),
    cmocka_unit_test(test_idle_costs_nothing), cmocka_unit_test(test_a_forked_child_computes), cmocka_unit_test(test_many_states),
    cmocka_unit_test(test_states_in_two_threads), cmocka_unit_test(test_nothing_is_printed),
    cmocka_unit_test(test_signals_and_globals_stay), cmocka_unit_test(test_open_fails_cleanly),
    cmocka_unit_test(test_interrupt_from_a_signal_handler),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
