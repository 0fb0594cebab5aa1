/* main.c: the flowlua program. It opens a LuaJIT state with flowlua in it, turns Ctrl-C into an interrupt of the work that
 * runs and SIGTERM into the request to end it soon, and leaves everything else to lua/flow/cli/main.lua. */
#define _GNU_SOURCE
#include "flow.h"
#include "../flow_lua.h"
#include "launch.h"
#include "modules.h"
#include "rank.h"
#include "remote.h"
#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <luajit.h>
#include <lualib.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What the signal handlers need. A handler may only set flags and the hook: lua_sethook is the one function of Lua's that may be called
 * from a signal handler. */
static lua_State *interrupt_state;        /* written before the handler is installed */
static flow_context *interrupt_context;

static int is_preempted(void) { return interrupt_context && flow_preempted(interrupt_context); }

/* Runs at the next line of Lua after Ctrl-C or SIGTERM and raises, unless native.defer_interrupts says that the flag is being watched. */
static void interrupt_hook(lua_State *L, lua_Debug *activation)
{
  (void)activation;
  lua_sethook(L, NULL, 0, 0);
  lua_getfield(L, LUA_REGISTRYINDEX, "flowlua.defer_interrupts");
  int deferred = lua_toboolean(L, -1);
  lua_pop(L, 1);
  if (deferred) return;
  if (interrupt_context) flow_interrupt(interrupt_context, 0);
  luaL_where(L, 1);
  lua_pushstring(L, is_preempted() ? "ended by SIGTERM" : "interrupted");
  lua_concat(L, 2);
  lua_pushvalue(L, -1);
  lua_setfield(L, LUA_REGISTRYINDEX, "flowlua.interruption");      /* as native.raise_interrupted does */
  lua_error(L);
}

/* The first Ctrl-C interrupts, the second one kills: work that cannot be interrupted must not lock the terminal. */
static void on_interrupt(int number)
{
  signal(number, SIG_DFL);
  if (interrupt_context) flow_interrupt(interrupt_context, 1);
  lua_sethook(interrupt_state, interrupt_hook, LUA_MASKCALL | LUA_MASKRET | LUA_MASKCOUNT, 1);
}

/* The first SIGTERM lets a step of training end and be saved, the second one kills. */
static void on_termination(int number)
{
  signal(number, SIG_DFL);
  if (interrupt_context) flow_preempt(interrupt_context);
  lua_sethook(interrupt_state, interrupt_hook, LUA_MASKCALL | LUA_MASKRET | LUA_MASKCOUNT, 1);
}

/* What stands for LuaJIT's own "not enough memory". */
#define NO_MEMORY                                                                                                           \
  "not enough memory for the tables and strings of this script: keep numbers in tensors and data sets, or raise the limit " \
  "of memory (ulimit -v)"

/* take_termination(taken): whether SIGTERM does this, or kills at once, unless it is ignored, or came already. */
static int take_termination(lua_State *L)
{
  struct sigaction action;
  if (is_preempted() || sigaction(SIGTERM, NULL, &action) != 0 || action.sa_handler == SIG_IGN) return 0;
  memset(&action, 0, sizeof action);
  action.sa_handler = lua_toboolean(L, 1) ? on_termination : SIG_DFL;
  sigaction(SIGTERM, &action, NULL);
  return 0;
}

/* arm(): the next Ctrl-C interrupts. */
static int arm(lua_State *L)
{
  if (!is_preempted()) lua_sethook(L, NULL, 0, 0);
  if (interrupt_context) flow_interrupt(interrupt_context, 0);
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_interrupt;         /* without SA_RESTART: a blocked read ends, the prompt comes back */
  sigaction(SIGINT, &action, NULL);
  return 0;
}

/* watch(address): the flow_context that Ctrl-C interrupts, as a number. */
static int watch(lua_State *L)
{
  interrupt_context = (flow_context *)(uintptr_t)luaL_checknumber(L, 1);
  return 0;
}

/* isatty(descriptor): whether it is a terminal. */
static int is_terminal(lua_State *L)
{
  lua_pushboolean(L, isatty((int)luaL_checkinteger(L, 1)));
  return 1;
}

/* Calls flow.cli.main(host, { program, arguments... }) and returns its exit code. host: the functions of this file and of launch.h, and
 * the message no_memory. */
static int run_protected(lua_State *L)
{
  int argc = (int)lua_tointeger(L, 1);
  char **argv = lua_touserdata(L, 2);
  luaL_openlibs(L);
  /* What a start loads runs once and stays: there is nothing to compile and little to collect. */
  luaJIT_setmode(L, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);
  lua_gc(L, LUA_GCSTOP, 0);
  modules_use(L);
  if (flow_lua_open(L) != 0) return lua_error(L);
  lua_getglobal(L, "require");
  lua_pushliteral(L, "flow.cli.main");
  lua_call(L, 1, 1);
  lua_gc(L, LUA_GCRESTART, 0);
  luaJIT_setmode(L, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_ON);
  static const luaL_Reg host[] = {
    { "arm", arm }, { "take_termination", take_termination }, { "watch", watch }, { "isatty", is_terminal }, { NULL, NULL },
  };
  lua_newtable(L);
  for (const luaL_Reg *entry = host; entry->name; entry++) {
    lua_pushcfunction(L, entry->func);
    lua_setfield(L, -2, entry->name);
  }
  lua_pushliteral(L, NO_MEMORY);
  lua_setfield(L, -2, "no_memory");
  launch_add_functions(L);
  lua_createtable(L, argc, 0);
  for (int i = 0; i < argc; i++) {
    lua_pushstring(L, argv[i]);
    lua_rawseti(L, -2, i);
  }
  lua_call(L, 2, 1);
  return 1;
}

/* Opens /dev/null as what of standard input, output and error the caller has closed: else the next file that is opened, such as a
 * checkpoint, would get that number, and what is printed would be written into it. */
static void open_standard_descriptors(void)
{
  int opened;
  do opened = open("/dev/null", O_RDWR);
  while (opened >= 0 && opened <= STDERR_FILENO);
  if (opened >= 0) close(opened);
}

static int exit_code; /* of main(), for what runs at exit */

/* At exit, also by os.exit: where what was printed did not all reach standard output, on a full disk for example, this is said, and the
 * code is that of a failure. Streams remember no reason: it is that of the last write only. */
static void check_output(void)
{
  errno = 0;
  int failed = fflush(stdout) != 0;
  int reason = errno;
  if (!failed && !ferror(stdout)) return;
  fprintf(stderr, "flowlua: not all that was printed could be written to standard output%s%s\n", reason ? ": " : "",
          reason ? strerror(reason) : "; is its disk full?");
  _exit(exit_code ? exit_code : 1);
}

/* Two forms never open Lua: --rank and --remote, which the launcher starts between itself and a task. */
int main(int argc, char **argv)
{
  open_standard_descriptors();
  signal(SIGXFSZ, SIG_IGN); /* a file that may not become larger is an error of what writes it, as a full disk is */
  signal(SIGCHLD, SIG_DFL); /* a caller's that ignores it would leave no status of what is started, and no end to wait for */
  if (argc > 2 && strcmp(argv[1], "--rank") == 0) return rank_run(argv + 2);
  if (argc == 2 && strcmp(argv[1], "--remote") == 0) return remote_run();
  lua_State *L = luaL_newstate();
  if (!L) {
    fprintf(stderr, "flowlua: out of memory\n");
    return 1;
  }
  interrupt_state = L;
  flow_log_to_stdio(1);
  atexit(check_output);
  lua_pushcfunction(L, run_protected);
  lua_pushinteger(L, argc);
  lua_pushlightuserdata(L, argv);
  int code = 1;
  int status = lua_pcall(L, 2, 1, 0);
  if (status == 0) {
    code = (int)lua_tointeger(L, -1);
  } else if (status == LUA_ERRMEM) {
    fprintf(stderr, "flowlua: " NO_MEMORY "\n");
  } else {
    const char *message = lua_tostring(L, -1);
    fprintf(stderr, "flowlua: %s\n", message ? message : "an error that is not text");
  }
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  interrupt_context = NULL;
  lua_close(L);
  exit_code = code;
  return code;
}
