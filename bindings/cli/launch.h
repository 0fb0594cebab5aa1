/* launch.h: what `flowlua launch` needs of C. */
#ifndef FLOWLUA_LAUNCH_H
#define FLOWLUA_LAUNCH_H

#include <lua.h>

/* Adds to the table on top of the stack:
 *   listen(port)          a listening socket on 127.0.0.1: descriptor, port; nil and a sentence. Port 0: the kernel's choice.
 *   random(bytes)         this many random bytes in hexadecimal
 *   program()             the path of this program
 *   variables(prefixes...) names of this process's variables that begin with one of these, as a list
 *   share_modules(text)   modules.h: a descriptor; nil and a sentence
 *   folder()              the current folder; nil and a sentence
 *   supervise { kill_after =, max_restarts =, min_workers =, output =, without =, tasks = { { name =, arguments = {}, environment = {},
 *               listens =, modules =, log =, decides =, ranks = { { name =, log = } }, tag_spaces =, signals_children =, input =, host = }
 *               } }
 *                         supervise.h: the exit code; nil and a sentence if it did not begin. `environment` is set on top of this
 *                         process's, false removes a variable, and all whose names begin with one of the texts in `without` are left out.
 *                         `log` is the path of a file for what the task writes. `output` is "table", "lines", "json" or "auto", a table on
 *                         a terminal, else lines. With `host` the program is ssh, and `input` the order of remote.h. */
void launch_add_functions(lua_State *L);

#endif
