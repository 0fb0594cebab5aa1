/* modules.h: the modules of lua/flow as bytecode in memory, which a launcher makes once for all the tasks that it starts on this machine:
 * reading the sources is half of what a task's first step takes. The memory is a file without a name, whose descriptor is in
 * FLOW_MODULES: entries of "NAME BYTES\n" and as many bytes of what string.dump returned. */
#ifndef FLOWLUA_MODULES_H
#define FLOWLUA_MODULES_H

#include <lua.h>
#include <stddef.h>

/* A descriptor of such memory, closed by exec, or -1 with errno. */
int  modules_share(const char *bytes, size_t count);
/* Lets require find what FLOW_MODULES names before it looks for files, and takes the variable away. What is not there, or is not as it
 * should be, is looked for in files. */
void modules_use(lua_State *L);

#endif
