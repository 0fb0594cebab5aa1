/* modules.c: see modules.h. */
#define _GNU_SOURCE                      /* memfd_create */
#include "modules.h"

#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Nobody can change the memory any more: a task trusts the bytecode as it trusts the files of lua/flow. */
enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL };

/* The seals come last, when all is written. */
int modules_share(const char *bytes, size_t count)
{
  int descriptor = memfd_create("flow_modules", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  size_t written = 0;
  while (descriptor >= 0 && written < count) {
    ssize_t part = write(descriptor, bytes + written, count - written);
    if (part < 0 && errno == EINTR) continue;
    if (part <= 0) break;
    written += (size_t)part;
  }
  if (descriptor < 0 || (written == count && fcntl(descriptor, F_ADD_SEALS, SEALS) == 0)) return descriptor;
  close(descriptor);
  return -1;
}

/* The memory, mapped; NULL if it is not ours. The descriptor is closed: what the program starts does not need it. */
static const char *map(int descriptor, size_t *count)
{
  struct stat about;
  int seals = fcntl(descriptor, F_GET_SEALS);
  if (seals < 0 || (seals & SEALS) != SEALS || fstat(descriptor, &about) != 0 || about.st_size <= 0) return NULL;
  void *memory = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  close(descriptor);
  *count = (size_t)about.st_size;
  return memory == MAP_FAILED ? NULL : memory;
}

/* The bytecode of a module; NULL: there is none. */
static const char *find(const char *at, const char *end, const char *name, size_t length, size_t *bytes)
{
  while (at < end) {
    const char *line_end = memchr(at, '\n', (size_t)(end - at)), *space = line_end ? memchr(at, ' ', (size_t)(line_end - at)) : NULL;
    if (!space) return NULL;
    *bytes = strtoul(space + 1, NULL, 10);
    if (*bytes > (size_t)(end - line_end - 1)) return NULL;
    if ((size_t)(space - at) == length && memcmp(at, name, length) == 0) return line_end + 1;
    at = line_end + 1 + *bytes;
  }
  return NULL;
}

/* As one of package.loaders. Upvalues: where the memory begins and ends. */
static int load_module(lua_State *L)
{
  size_t length, bytes = 0;
  const char *name = luaL_checklstring(L, 1, &length);
  const char *begin = lua_touserdata(L, lua_upvalueindex(1)), *end = lua_touserdata(L, lua_upvalueindex(2));
  const char *code = find(begin, end, name, length, &bytes);
  if (!code || luaL_loadbuffer(L, code, bytes, name) != 0) lua_pushliteral(L, "");
  return 1;
}

/* The mapping stays until the process ends. The variable is removed, so that programs which a task starts do not look for a descriptor
 * that is closed. */
void modules_use(lua_State *L)
{
  const char *told = getenv("FLOW_MODULES");
  size_t count = 0;
  const char *memory = told && *told ? map(atoi(told), &count) : NULL;
  unsetenv("FLOW_MODULES");
  if (!memory) return;
  lua_getglobal(L, "package");
  lua_getfield(L, -1, "loaders");
  for (int place = (int)lua_objlen(L, -1); place >= 2; place--) {      /* after package.preload */
    lua_rawgeti(L, -1, place);
    lua_rawseti(L, -2, place + 1);
  }
  lua_pushlightuserdata(L, (char *)memory);
  lua_pushlightuserdata(L, (char *)memory + count);
  lua_pushcclosure(L, load_module, 2);
  lua_rawseti(L, -2, 2);
  lua_pop(L, 2);
}
