/* shared_states.c: a server whose threads have a Lua state each, all of which open the same model.
 *   shared_states MODEL THREADS SCRIPT
 * SCRIPT, with the path of MODEL as its argument, returns a function that predicts and returns a text of the bits. All threads call theirs;
 * those with odd numbers close their states; the others call theirs again. Prints "bits TEXT" for every call, and "held 70000 KB": what the
 * process held when all states were open, without what it held before. */
#include <flow_lua.h>
#include <lauxlib.h>
#include <lualib.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_THREADS = 64 };

static char **arguments;
static pthread_barrier_t all_open, half_closed;
static pthread_mutex_t output = PTHREAD_MUTEX_INITIALIZER;

static double held(void)
{
  char line[256];
  double value = 0;
  FILE *file = fopen("/proc/self/status", "r");
  while (file && fgets(line, sizeof line, file))
    if (strncmp(line, "VmRSS:", 6) == 0) value = atof(line + 6);
  if (file) fclose(file);
  return value;
}

static void fail(lua_State *L)
{
  fprintf(stderr, "%s\n", lua_tostring(L, -1));
  exit(1);
}

/* The function is on the stack. */
static void predict(lua_State *L)
{
  lua_pushvalue(L, 1);
  if (lua_pcall(L, 0, 1, 0)) fail(L);
  pthread_mutex_lock(&output);
  printf("bits %s\n", lua_tostring(L, -1));
  pthread_mutex_unlock(&output);
  lua_pop(L, 1);
}

static void *serve(void *number)
{
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  if (flow_lua_open(L)) fail(L);
  lua_settop(L, 0);
  if (luaL_loadfile(L, arguments[3])) fail(L);
  lua_pushstring(L, arguments[1]);
  if (lua_pcall(L, 1, 1, 0)) fail(L);
  predict(L);
  pthread_barrier_wait(&all_open);
  int leaves = *(int *)number % 2;
  if (leaves) lua_close(L);
  pthread_barrier_wait(&half_closed);
  if (leaves) return NULL;
  predict(L);
  lua_close(L);
  return NULL;
}

int main(int count, char **given)
{
  pthread_t threads[MOST_THREADS];
  int numbers[MOST_THREADS], thread_count = count == 4 ? atoi(given[2]) : 0;
  if (thread_count < 1 || thread_count > MOST_THREADS) return 2;
  arguments = given;
  pthread_barrier_init(&all_open, NULL, (unsigned)thread_count + 1);
  pthread_barrier_init(&half_closed, NULL, (unsigned)thread_count + 1);
  double before = held();
  for (int i = 0; i < thread_count; i++) {
    numbers[i] = i;
    if (pthread_create(&threads[i], NULL, serve, &numbers[i]) != 0) return 3;
  }
  pthread_barrier_wait(&all_open);
  printf("held %.0f KB\n", held() - before);
  pthread_barrier_wait(&half_closed);
  for (int i = 0; i < thread_count; i++) pthread_join(threads[i], NULL);
  printf("left %.0f KB\n", held() - before);
  return 0;
}
