/* flow_lua.h: flowlua for programs that embed LuaJIT. Compile or link flow_lua.c (libflow_lua.a) into the host, which
 * brings its own LuaJIT; libflow itself needs none. */
#ifndef FLOW_LUA_H
#define FLOW_LUA_H

#include <lua.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Makes require "flow" work in this state and does it: the module is left on the stack and 0 returned, or an error message
 * and the status of lua_pcall. lua/flow is looked for in $FLOWLUA_PATH, beside the library (source tree or installation),
 * and in package.path. Needs the standard libraries package, debug, string, table, math, io, os, ffi; sets no globals,
 * no signal handlers and prints nothing. */
int flow_lua_open(lua_State *L);

#ifdef __cplusplus
}
#endif
#endif
