/* plugin.c: finds, opens and remembers plugins. A plugin that was found stays open to the end of the process, as tables of functions,
 * threads and open devices point into it. A search that fails is made again at the next call: somebody may have installed the library
 * meanwhile. */
#define _GNU_SOURCE                /* dladdr */
#include "base/plugin.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/memory.h"
#include "base/need.h"

enum { PATH_BYTES = 4096, FOLDERS = 3 };

/* Every plugin, whether this build has it or not. */
static const struct {
  const char *name, *purpose;
  const char *install;             /* what brings it, after "...: " */
} known[] = {
  { "cuda", "training on NVIDIA GPUs", "install CUDA 13 (nvcc), then build again with scripts/setup" },
  { "mpi", "all-reduce under mpirun and srun", "install libopenmpi-dev, then build again with scripts/setup" },
  { "control", "a cluster's secret", "install libsodium-dev, then build again with scripts/setup" },
  { "hdf5", "HDF5 files in other layouts than Keras writes", "install libhdf5-dev, then build again with scripts/setup" },
  { "image", "JPEG and GIF images", "install libjpeg62-turbo-dev and libgif-dev, then build again with scripts/setup" },
};
enum { KNOWN = sizeof known / sizeof *known };

/* Opening is idempotent (dlopen counts, tables are const), so that two threads may do it at once and no lock can be held
 * while a host forks. */
static const flow_plugin *_Atomic opened[KNOWN];

static const flow_plugin_services services = { flow_alloc, flow_free, flow_fail, flow_fail_field };

/* The number of a plugin in `known`; -1: there is none of that name. */
static int find_plugin(const char *name)
{
  for (int i = 0; i < KNOWN; i++) {
    if (strcmp(known[i].name, name) == 0) return i;
  }
  return -1;
}

/* The folders to look in; returns their number, 0 when the library's own place is unknown. The library's own place is that of the table
 * above, which is in it or in the program that has it linked in. */
static int list_folders(char folders[FOLDERS][PATH_BYTES])
{
  const char *named = getenv("FLOW_PLUGINS");
  if (named && *named) {
    flow_text text = flow_text_into(folders[0], PATH_BYTES);
    flow_text_add(&text, "%s", named);
    return text.length < PATH_BYTES ? 1 : 0;
  }
  Dl_info self;
  if (!dladdr((const void *)known, &self) || !self.dli_fname) return 0;
  const char *slash = strrchr(self.dli_fname, '/');
  int length = slash ? (int)(slash - self.dli_fname) : 1;
  const char *folder = slash ? self.dli_fname : ".";
  static const char *const beside[FOLDERS] = { "/flowlua", "", "/../lib" };
  for (int i = 0; i < FOLDERS; i++) {
    flow_text text = flow_text_into(folders[i], PATH_BYTES);
    flow_text_add(&text, "%.*s%s", length, folder, beside[i]);
    if (text.length >= PATH_BYTES) return i;
  }
  return FOLDERS;
}

/* Whether what was opened is the plugin that was asked for, and of this interface. The first member of the table is its number in every
 * version, so that it can be read before anything else is known. */
static flow_status check_table(int plugin, const char *path, const flow_plugin *table)
{
  if (!table) return flow_fail(FLOW_UNSUPPORTED, "%s is not a plugin of flowlua: it exports no flow_plugin_table", path);
  if (table->abi != FLOW_PLUGIN_ABI) {
    return flow_fail(FLOW_UNSUPPORTED, "%s has interface version %d, this library needs %d: install matching versions", path,
                     table->abi, FLOW_PLUGIN_ABI);
  }
  if (strcmp(table->name, known[plugin].name) != 0) {
    return flow_fail(FLOW_UNSUPPORTED, "%s is the plugin \"%s\" under another name", path, table->name);
  }
  return FLOW_OK;
}

/* Opens the file at path, which exists. RTLD_LOCAL: its symbols, and those of the libraries that it brings, replace none of the host's.
 * RTLD_NOW: what is missing shows here and not in the middle of a training. */
static flow_status open_file(int plugin, const char *path, const flow_plugin **out)
{
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *why = dlerror();
    return flow_fail(FLOW_NOT_FOUND, "for %s a plugin is needed that cannot be opened: %s; %s", known[plugin].purpose, why ? why : path,
                     known[plugin].install);
  }
  const flow_plugin *table = dlsym(library, "flow_plugin_table");
  flow_status status = check_table(plugin, path, table);
  if (status != FLOW_OK) {
    dlclose(library);
    return status;
  }
  table->start(&services);
  *out = table;
  return FLOW_OK;
}

/* Paths are long: this is on the heap, not on the stack of a host's small thread. */
typedef struct places { char folders[FOLDERS][PATH_BYTES], path[PATH_BYTES + 64]; } places;

/* The first folder that has the file decides: a plugin there that cannot be opened is a failure, not a reason to look further. */
static flow_status find_and_open(int plugin, places *in, const flow_plugin **out)
{
  int count = list_folders(in->folders);
  for (int i = 0; i < count; i++) {
    flow_text text = flow_text_into(in->path, sizeof in->path);
    flow_text_add(&text, "%s/libflow_%s.so", in->folders[i], known[plugin].name);
    if (text.length < (int)sizeof in->path && access(in->path, F_OK) == 0) return open_file(plugin, in->path, out);
  }
  const char *place = count > 1 ? in->folders[1] : count > 0 ? in->folders[0] : "the library's folder";
  return flow_fail(FLOW_NOT_FOUND, "for %s the plugin libflow_%s.so is needed, which is not in %s: %s", known[plugin].purpose,
                   known[plugin].name, place, known[plugin].install);
}

/* Acquire and release: a thread that finds the table here also sees what start() has done. */
flow_status flow_plugin_open(const char *name, const flow_plugin **out)
{
  *out = NULL;
  int plugin = find_plugin(name);
  if (plugin < 0) return flow_fail(FLOW_INVALID_ARGUMENT, "there is no plugin \"%s\"", name);
  *out = atomic_load_explicit(&opened[plugin], memory_order_acquire);
  if (*out) return FLOW_OK;

  void *block;
  FLOW_TRY(flow_alloc(sizeof(places), &block));
  flow_status status = find_and_open(plugin, block, out);
  flow_free(block);
  if (status == FLOW_OK) atomic_store_explicit(&opened[plugin], *out, memory_order_release);
  return status;
}

/* ---- C API ------------------------------------------------------------------------------------------------------------------- */

int flow_plugin_count(void)
{
  return KNOWN;
}

const char *flow_plugin_name(int index)
{
  return index >= 0 && index < KNOWN ? known[index].name : NULL;
}

const char *flow_plugin_purpose(int index)
{
  return index >= 0 && index < KNOWN ? known[index].purpose : NULL;
}

flow_status flow_plugin_libraries(int index, const char **out)
{
  FLOW_NEED(out);
  *out = NULL;
  if (index < 0 || index >= KNOWN) return flow_fail(FLOW_INVALID_ARGUMENT, "there are %d plugins, got number %d", KNOWN, index);
  const flow_plugin *table;
  FLOW_TRY(flow_plugin_open(known[index].name, &table));
  *out = table->found ? table->found() : table->libraries;
  return FLOW_OK;
}
