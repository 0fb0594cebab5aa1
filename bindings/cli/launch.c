/* launch.c: the functions in C of lua/flow/cli/launch.lua: from Lua's tables to supervise.h. */
#define _GNU_SOURCE
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "modules.h"
#include "ports.h"
#include "supervise.h"

extern char **environ;

/* nil and a sentence: what Lua's functions return on failure. */
static int fail(lua_State *L, const char *what, const char *reason)
{
  lua_pushnil(L);
  lua_pushfstring(L, "%s: %s", what, reason);
  return 2;
}

/* What each function takes and returns is in launch.h. */
static int listen_on(lua_State *L)
{
  char message[500];
  processes_raise_descriptors();
  int port = (int)luaL_checkinteger(L, 1), descriptor = ports_listen(&port, message, sizeof message);
  if (descriptor < 0) {
    lua_pushnil(L);
    lua_pushstring(L, message);
    return 2;
  }
  lua_pushinteger(L, descriptor);
  lua_pushinteger(L, port);
  return 2;
}

static int random_text(lua_State *L)
{
  static const char digits[] = "0123456789abcdef";
  unsigned char bytes[64];
  char text[2 * sizeof bytes];
  int count = (int)luaL_checkinteger(L, 1);
  luaL_argcheck(L, count > 0 && count <= (int)sizeof bytes, 1, "1 to 64 bytes");
  if (getrandom(bytes, (size_t)count, 0) != count) return luaL_error(L, "the kernel gives no random numbers: %s", strerror(errno));
  for (int i = 0; i < count; i++) {
    text[2 * i] = digits[bytes[i] >> 4];
    text[2 * i + 1] = digits[bytes[i] & 15];
  }
  lua_pushlstring(L, text, (size_t)count * 2);
  return 1;
}

static int program(lua_State *L)
{
  char path[4096];
  ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  if (length <= 0 || length == (ssize_t)sizeof path) return fail(L, "/proc/self/exe", length < 0 ? strerror(errno) : "too long");
  lua_pushlstring(L, path, (size_t)length);
  return 1;
}

/* ---- tasks ------------------------------------------------------------------------------------------------------------------------------
 * Texts are Lua's, which stay while the tables on the stack do; arrays are userdata, kept on the stack as well. What is opened is closed by
 * close_logs. */

static int field_boolean(lua_State *L, int table, const char *name)
{
  lua_getfield(L, table, name);
  int value = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return value;
}

/* The text of a field, NULL if it is not there; it stays on the stack. */
static const char *keep_text(lua_State *L, int table, const char *name, size_t *bytes)
{
  luaL_checkstack(L, 4, "too many tasks");
  lua_getfield(L, table, name);
  return lua_tolstring(L, -1, bytes);
}

static int field_descriptor(lua_State *L, int table, const char *name)
{
  lua_getfield(L, table, name);
  int value = lua_isnil(L, -1) ? -1 : (int)luaL_checkinteger(L, -1);
  lua_pop(L, 1);
  return value;
}

/* Memory that stays until the function returns: the userdata stays on the stack. */
static void *keep(lua_State *L, size_t count, size_t size)
{
  luaL_checkstack(L, 8, "too many tasks");
  void *memory = lua_newuserdata(L, count * size);
  memset(memory, 0, count * size);
  return memory;
}

/* The texts of a list; leaves the list and the array on the stack. */
static char **take_list(lua_State *L, int table, const char *name)
{
  lua_getfield(L, table, name);
  luaL_checktype(L, -1, LUA_TTABLE);
  int list = lua_gettop(L), count = (int)lua_objlen(L, list);
  char **texts = keep(L, (size_t)count + 1, sizeof *texts);
  for (int i = 0; i < count; i++) {
    lua_rawgeti(L, list, i + 1);
    texts[i] = (char *)(uintptr_t)luaL_checkstring(L, -1);
    lua_pop(L, 1);
  }
  return texts;
}

static int begins_with_one(const char *entry, char *const *prefixes)
{
  for (; *prefixes; prefixes++) if (strncmp(entry, *prefixes, strlen(*prefixes)) == 0) return 1;
  return 0;
}

/* Whether the table `set` says something of the variable in "NAME=value". */
static int is_set(lua_State *L, int set, const char *entry)
{
  const char *equals = strchr(entry, '=');
  lua_pushlstring(L, entry, equals ? (size_t)(equals - entry) : strlen(entry));
  lua_rawget(L, set);
  int found = !lua_isnil(L, -1);
  lua_pop(L, 1);
  return found;
}

/* This process's environment with what the task sets; leaves everything on the stack. */
static char **take_environment(lua_State *L, int table, char *const *without)
{
  size_t most = 1, count = 0;
  lua_getfield(L, table, "environment");
  luaL_checktype(L, -1, LUA_TTABLE);
  int set = lua_gettop(L);
  for (char **entry = environ; *entry; entry++) most++;
  for (lua_pushnil(L); lua_next(L, set); lua_pop(L, 1)) most++;
  char **all = keep(L, most, sizeof *all);
  for (char **entry = environ; *entry; entry++) {
    if (!begins_with_one(*entry, without) && !is_set(L, set, *entry)) all[count++] = *entry;
  }
  lua_newtable(L);                                     /* holds the texts */
  int texts = lua_gettop(L);
  for (lua_pushnil(L); lua_next(L, set); lua_pop(L, 1)) {
    if (lua_type(L, -1) != LUA_TSTRING || lua_type(L, -2) != LUA_TSTRING) continue;
    lua_pushfstring(L, "%s=%s", lua_tostring(L, -2), lua_tostring(L, -1));
    all[count++] = (char *)(uintptr_t)lua_tostring(L, -1);
    lua_rawseti(L, texts, (int)count);
  }
  return all;
}

/* Name and log of a task or rank; leaves the name on the stack. Returns the path of a log that cannot be written, else NULL. */
static const char *take_writer(lua_State *L, int table, output_writer *writer)
{
  writer->log = -1;
  luaL_checkstack(L, 4, "too many tasks");
  lua_getfield(L, table, "name");
  writer->name = luaL_checkstring(L, -1);
  lua_getfield(L, table, "log");
  const char *path = lua_tostring(L, -1);
  if (!path) return NULL;
  writer->log = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  return writer->log < 0 ? path : NULL;
}

/* The ranks of a task that is mpirun. Returns as take_writer does; all logs are -1 first, so that close_logs finds what was opened. */
static const char *take_ranks(lua_State *L, int table, supervised_task *task)
{
  const char *lost = NULL;
  lua_getfield(L, table, "ranks");
  if (!lua_istable(L, -1)) return NULL;
  int list = lua_gettop(L);
  task->ranks = (int)lua_objlen(L, list);
  task->rank_writers = keep(L, (size_t)task->ranks, sizeof *task->rank_writers);
  for (int i = 0; i < task->ranks; i++) task->rank_writers[i].log = -1;
  for (int i = 0; i < task->ranks && !lost; i++) {
    luaL_checkstack(L, 4, "too many ranks");
    lua_rawgeti(L, list, i + 1);
    luaL_checktype(L, -1, LUA_TTABLE);
    lost = take_writer(L, lua_gettop(L), &task->rank_writers[i]);
  }
  return lost;
}

/* One entry of `tasks`. Returns as take_writer does. An error of Lua's (a field of another type) leaves logs open: the launcher ends
 * with it. */
static const char *take_task(lua_State *L, int table, char *const *without, supervised_task *task)
{
  task->start.arguments = take_list(L, table, "arguments");
  task->start.environment = take_environment(L, table, without);
  task->start.listens = field_descriptor(L, table, "listens");
  int modules = field_descriptor(L, table, "modules");
  task->start.inherits = modules > 0 ? modules : 0;
  task->start.input = keep_text(L, table, "input", &task->start.input_bytes);
  task->remote.host = keep_text(L, table, "host", NULL);
  task->decides = field_boolean(L, table, "decides");
  task->tag_spaces = field_boolean(L, table, "tag_spaces");
  task->signals_children = field_boolean(L, table, "signals_children");
  const char *lost = take_writer(L, table, &task->writer);
  return lost ? lost : take_ranks(L, table, task);
}

/* Moves what is above a table on the stack into it, where it stays as long: the stack has no room for what a thousand tasks keep. */
static void put_away(lua_State *L, int table)
{
  while (lua_gettop(L) > table) lua_rawseti(L, table, (int)lua_objlen(L, table) + 1);
}

static void close_logs(const supervised_task *tasks, int count)
{
  for (int i = 0; i < count; i++) {
    if (tasks[i].writer.log >= 0) close(tasks[i].writer.log);
    for (int rank = 0; rank < tasks[i].ranks; rank++) if (tasks[i].rank_writers[rank].log >= 0) close(tasks[i].rank_writers[rank].log);
  }
}

/* "auto": a table where stdout is a terminal on which a cursor moves. */
static enum output_form form_of(const char *name)
{
  const char *terminal = getenv("TERM");
  int moves = isatty(1) && terminal && strcmp(terminal, "dumb") != 0;
  if (strcmp(name, "json") == 0) return OUTPUT_JSON;
  return strcmp(name, "table") == 0 || (moves && strcmp(name, "auto") == 0) ? OUTPUT_TABLE : OUTPUT_LINES;
}

/* Reads everything into C before the first task starts: nothing of Lua runs while tasks do. */
static int run_supervised(lua_State *L)
{
  supervision wanted = { .count = 0 };
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 1);
  lua_getfield(L, 1, "kill_after");
  wanted.kill_after = luaL_checknumber(L, -1);
  lua_getfield(L, 1, "max_restarts");
  wanted.max_restarts = (int)luaL_optinteger(L, -1, 0);
  lua_getfield(L, 1, "min_workers");
  wanted.min_workers = (int)luaL_optinteger(L, -1, 0);
  lua_getfield(L, 1, "output");
  wanted.form = form_of(luaL_optstring(L, -1, "auto"));
  if (wanted.form == OUTPUT_TABLE && !isatty(1)) return fail(L, "--output table", "standard output is not a terminal");
  char **without = take_list(L, 1, "without");
  lua_getfield(L, 1, "tasks");
  luaL_checktype(L, -1, LUA_TTABLE);
  int list = lua_gettop(L), count = (int)lua_objlen(L, list);
  supervised_task *tasks = keep(L, (size_t)count, sizeof *tasks);
  const char *lost = NULL;
  for (int i = 0; i < count; i++) tasks[i].writer.log = -1;
  lua_newtable(L);
  int kept = lua_gettop(L);
  for (int i = 0; i < count && !lost; i++) {
    luaL_checkstack(L, 16, "too many tasks");
    lua_rawgeti(L, list, i + 1);
    luaL_checktype(L, -1, LUA_TTABLE);
    lost = take_task(L, lua_gettop(L), without, &tasks[i]);
    put_away(L, kept);
  }
  int reason = errno;
  wanted.tasks = tasks;
  wanted.count = count;
  if (!lost) lua_pushinteger(L, supervise(&wanted));
  close_logs(tasks, count);
  return lost ? fail(L, lost, strerror(reason)) : 1;
}

/* The names of the environment's variables that begin with one of the given texts, as a list. */
static int list_variables(lua_State *L)
{
  int count = lua_gettop(L), found = 0;
  lua_newtable(L);
  for (char **entry = environ; *entry; entry++) {
    const char *equals = strchr(*entry, '=');
    for (int i = 1; equals && i <= count; i++) {
      const char *prefix = luaL_checkstring(L, i);
      if (strncmp(*entry, prefix, strlen(prefix)) != 0) continue;
      lua_pushlstring(L, *entry, (size_t)(equals - *entry));
      lua_rawseti(L, -2, ++found);
      break;
    }
  }
  return 1;
}

static int share_modules(lua_State *L)
{
  size_t count;
  const char *bytes = luaL_checklstring(L, 1, &count);
  int descriptor = modules_share(bytes, count);
  if (descriptor < 0) return fail(L, "memory for the modules", strerror(errno));
  lua_pushinteger(L, descriptor);
  return 1;
}

static int current_folder(lua_State *L)
{
  char path[4096];
  if (!getcwd(path, sizeof path)) return fail(L, "the current folder", strerror(errno));
  lua_pushstring(L, path);
  return 1;
}

void launch_add_functions(lua_State *L)
{
  static const luaL_Reg functions[] = {
    { "listen", listen_on },      { "random", random_text },          { "program", program },          { "variables", list_variables },
    { "folder", current_folder }, { "share_modules", share_modules }, { "supervise", run_supervised }, { NULL, NULL },
  };
  for (const luaL_Reg *entry = functions; entry->name; entry++) {
    lua_pushcfunction(L, entry->func);
    lua_setfield(L, -2, entry->name);
  }
}
