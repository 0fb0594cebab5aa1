/* flow_lua.c: opens flowlua in a LuaJIT state. See flow_lua.h. */
#define _GNU_SOURCE
#include "flow_lua.h"
#include "flow.h"
#include <dlfcn.h>
#include <lauxlib.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Absolute path of the library that is loaded, in path[PATH_MAX]; 0 if the loader does not tell. */
static int library_path(char *path)
{
  Dl_info info;
  void *symbol = dlsym(RTLD_DEFAULT, "flow_version");   /* not &flow_version: that may be a stub of the program */
  return symbol && dladdr(symbol, &info) && info.dli_fname && realpath(info.dli_fname, path);
}

/* Whether folder/flow/init.lua exists; then folder is made absolute in found[PATH_MAX]. */
static int has_modules(const char *folder, char *found)
{
  char file[PATH_MAX + 32];
  if (strlen(folder) >= PATH_MAX) return 0;
  snprintf(file, sizeof file, "%s/flow/init.lua", folder);
  return access(file, R_OK) == 0 && realpath(folder, found);
}

/* The folder that holds flow/: beside the library in a source tree (build/lib), in prefix/lib or prefix/lib/<triplet>. */
static int find_modules(const char *library, char *found)
{
  static const char *const beside[] = { "../../lua", "../share/lua/5.1", "../../share/lua/5.1" };
  const char *named = getenv("FLOWLUA_PATH");
  if (named && *named) return has_modules(named, found);
  const char *slash = strrchr(library, '/');
  if (!slash) return 0;
  for (size_t i = 0; i < sizeof beside / sizeof *beside; i++) {
    char folder[PATH_MAX + 32];
    snprintf(folder, sizeof folder, "%.*s/%s", (int)(slash - library), library, beside[i]);
    if (has_modules(folder, found)) return 1;
  }
  return 0;
}

/* Runs protected: argument 1 is the library's path or nil, argument 2 the folder or nil. Returns the module. */
static int open_protected(lua_State *L)
{
  int found = flow_abi_version();      /* a linker that leaves out libraries of which nothing is called keeps this one */
  if (found != FLOW_ABI_VERSION) {
    return luaL_error(L, "flow_lua_open: the program was compiled for version %d of the library's interface, found %d: compile it again",
                      FLOW_ABI_VERSION, found);
  }
  if (lua_isstring(L, 1)) {
    lua_pushvalue(L, 1);
    lua_setfield(L, LUA_REGISTRYINDEX, "flowlua.library");   /* ffi.lua loads this one and no other copy */
  }
  if (lua_isstring(L, 2)) {
    const char *folder = lua_tostring(L, 2);
    lua_getglobal(L, "package");
    lua_getfield(L, -1, "path");
    lua_pushfstring(L, "%s/?.lua;%s/?/init.lua;%s", folder, folder, lua_tostring(L, -1));
    lua_setfield(L, -3, "path");
  }
  lua_getglobal(L, "require");
  lua_pushliteral(L, "flow");
  lua_call(L, 1, 1);
  return 1;
}

/* The work is done in a protected call, so that no error of Lua's (no memory, no module) leaves this function as a longjmp through the
 * host. */
int flow_lua_open(lua_State *L)
{
  char library[PATH_MAX], folder[PATH_MAX];
  int known = library_path(library);
  lua_pushcfunction(L, open_protected);
  if (known) lua_pushstring(L, library); else lua_pushnil(L);
  if (find_modules(known ? library : "", folder)) lua_pushstring(L, folder); else lua_pushnil(L);
  return lua_pcall(L, 2, 1, 0);
}
