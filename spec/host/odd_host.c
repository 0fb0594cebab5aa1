/* odd_host.c: a host that does to its process what hosts do, and then lets Lua states work.
 *   odd_host OUT SCRIPT PROGRAM FOLDER CONDITION...
 * SCRIPT is called with PROGRAM, FOLDER, which the state has for itself, and a set of the conditions. What it returns, or its error, is
 * written to OUT: once, if all states agree. Nothing is written to standard output. Conditions of the process are the table below; those
 * that it does not have are the script's. */
#include <errno.h>
#include <flow_lua.h>
#include <lauxlib.h>
#include <locale.h>
#include <lualib.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __SSE__
#include <xmmintrin.h>
#endif

enum { STATES = 3, STACK = 512 << 10, FILES = 64, PERIOD = 1000 /* us */ };

static char **arguments;
static FILE *output;

static int has(const char *condition)
{
  for (char **a = arguments + 5; *a; a++)
    if (strcmp(*a, condition) == 0) return 1;
  return 0;
}

/* ---- conditions of the process ------------------------------------------------------------------------------------------------- */

static void do_nothing(int number)
{
  (void)number;
}

static void reap_all(int number)
{
  int before = errno;
  (void)number;
  while (waitpid(-1, NULL, WNOHANG) > 0) continue;
  errno = before;
}

static void ignore_pipes(void)
{
  signal(SIGPIPE, SIG_IGN);
}
static void reap_children(void)
{
  signal(SIGCHLD, reap_all);
}
static void ignore_children(void)
{
  signal(SIGCHLD, SIG_IGN);
}

/* Calls of the system are interrupted, and not begun again. */
static void interrupt_calls(void)
{
  struct sigaction action = { .sa_handler = do_nothing };
  struct itimerval timer = { { 0, PERIOD }, { 0, PERIOD } };
  sigaction(SIGALRM, &action, NULL);
  setitimer(ITIMER_REAL, &timer, NULL);
}

static void block_signals(void)
{
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, NULL);
}

static void flush_to_zero(void)
{
#ifdef __SSE__
  _mm_setcsr(_mm_getcsr() | 0x8040); /* and take subnormal numbers for zeros */
#endif
}

static void write_commas(void)
{
  if (!setlocale(LC_NUMERIC, "comma")) fputs("this C library reads no locale of glibc\n", output);
}

static void limit_files(void)
{
  struct rlimit limit = { FILES, FILES };
  setrlimit(RLIMIT_NOFILE, &limit);
}

static void leave_folder(void)
{
  if (chdir("/")) fputs("cannot leave the folder\n", output);
}

/* A process whose folder does not exist any more. */
static void lose_folder(void)
{
  char path[4200];
  snprintf(path, sizeof path, "%s/lost", arguments[4]);
  if (mkdir(path, 0700) || chdir(path) || rmdir(path)) fputs("cannot lose the folder\n", output);
}

static const struct condition {
  const char *name;
  void (*begin)(void);
} conditions[] = {
  { "pipes ignored", ignore_pipes },  { "children reaped", reap_children }, { "children ignored", ignore_children },
  { "interrupted", interrupt_calls }, { "signals blocked", block_signals }, { "flush to zero", flush_to_zero },
  { "decimal commas", write_commas }, { "few files", limit_files },         { "another folder", leave_folder },
  { "no folder", lose_folder },
};

/* ---- states -------------------------------------------------------------------------------------------------------------------- */

static lua_State *open_state(void)
{
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  if (flow_lua_open(L)) fprintf(output, "%s\n", lua_tostring(L, -1));
  lua_settop(L, 0);
  return L;
}

/* What the program returns in a new state; the caller frees it. */
static char *run(const char *program, const char *folder)
{
  lua_State *L = open_state();
  int status = luaL_loadfile(L, arguments[2]);
  if (!status) {
    lua_pushstring(L, program);
    lua_pushstring(L, folder);
    lua_newtable(L);
    for (char **a = arguments + 5; *a; a++) {
      lua_pushboolean(L, 1);
      lua_setfield(L, -2, *a);
    }
    status = lua_pcall(L, 3, 1, 0);
  }
  const char *text = lua_tostring(L, -1);
  char *result = strdup(text ? text : "nothing");
  lua_close(L);
  return result;
}

static void *run_state(void *number)
{
  char folder[4200];
  snprintf(folder, sizeof folder, "%s/%d", arguments[4], *(int *)number);
  mkdir(folder, 0700);
  return run(arguments[3], folder);
}

static void run_all(void)
{
  int count = has("several states") ? STATES : 1, numbers[STATES] = { 0, 1, 2 };
  char *texts[STATES];
  if (has("another state before")) free(run("warm", arguments[4]));
  if (count == 1 && !has("a thread")) {
    texts[0] = run_state(&numbers[0]);
  } else {
    pthread_t threads[STATES];
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK);
    for (int i = 0; i < count; i++)
      if (pthread_create(&threads[i], &attributes, run_state, &numbers[i])) exit(3);
    for (int i = 0; i < count; i++) pthread_join(threads[i], (void **)&texts[i]);
  }
  for (int i = 0; i < count; i++) {
    if (i == 0 || strcmp(texts[i], texts[0]) != 0) fprintf(output, "%s\n", texts[i]);
    if (i > 0) free(texts[i]);
  }
  free(texts[0]);
}

int main(int count, char **all)
{
  arguments = all;
  if (count < 5 || !(output = fopen(all[1], "w"))) return 2;
  for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++)
    if (has(conditions[i].name)) conditions[i].begin();
  if (!has("a fork")) {
    run_all();
  } else {
    int status = 0;
    free(run("warm", all[4]));
    pid_t child = fork();
    if (child == 0) {
      run_all();
      _exit(fclose(output) != 0);
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue; /* a host that reaps or ignores it finds none */
    if (status) fprintf(output, "the child ended with %x\n", (unsigned)status);
  }
  return fclose(output) != 0;
}
