/* file_system.c: what tf.io.gfile does with files and folders: look, make, move, copy, remove. Paths are the system's; names
 * such as gs:// are resolved before (lua/flow/io.lua). */
#define _GNU_SOURCE                /* syscall */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/memory.h"
#include "io/file.h"

/* MOST_LEVELS: each level holds a descriptor; the usual limit of a process is 1,024. */
enum { COPY_BYTES = 1 << 20, MOST_LEVELS = 1000 };

/* `action` is the name of the function of tf.io.gfile that the user has called, for the message. */
static flow_status check_path(const char *action, const char *path)
{
  return path && *path ? FLOW_OK : flow_fail(FLOW_INVALID_ARGUMENT, "%s: the path is empty", action);
}

/* Follows links: a link to a folder is a folder, one that points nowhere is FLOW_PATH_NONE. */
int flow_path_kind(const char *path)
{
  struct stat facts;
  if (!path || stat(path, &facts) != 0) return FLOW_PATH_NONE;
  return S_ISREG(facts.st_mode) ? FLOW_PATH_FILE : S_ISDIR(facts.st_mode) ? FLOW_PATH_FOLDER : FLOW_PATH_OTHER;
}

/* ---- folders --------------------------------------------------------------------------------------------------------- */

/* As mkdir, except that a folder which exists is success, since a second process may make it at the same moment: 1, or 0 with errno. What
 * exists and is not a folder is ENOTDIR: "File exists" would not tell what is wrong. */
static int make_folder(const char *path)
{
  if (mkdir(path, 0777) == 0) return 1;
  int error = errno;
  if (error == EEXIST && flow_path_kind(path) == FLOW_PATH_FOLDER) return 1;
  errno = error == EEXIST ? ENOTDIR : error;
  return 0;
}

/* As mkdir -p: folders that exist are fine. The copy of the path is cut at each slash in turn. */
flow_status flow_make_folders(const char *path)
{
  FLOW_TRY(check_path("makedirs", path));
  char *part = flow_duplicate_text(path);
  if (!part) return FLOW_OUT_OF_MEMORY;
  flow_status status = FLOW_OK;
  for (char *slash = strchr(part + 1, '/'); slash && status == FLOW_OK; slash = strchr(slash + 1, '/')) {
    *slash = 0;
    /* A folder above that cannot be made may still be there, where one may not write: the last mkdir tells. */
    if (!make_folder(part) && errno != EACCES && errno != EROFS && errno != EPERM) status = flow_fail_by_errno("make the folder", part);
    *slash = '/';
  }
  if (status == FLOW_OK && !make_folder(part)) status = flow_fail_by_errno("make the folder", path);
  flow_free(part);
  return status;
}

/* Removes what `name` in the folder `parent` is, with all below it. Links are removed, never followed: each folder is
 * opened relative to the one above, and not if it is a link by then. `path` is for messages. It recurses by levels, each
 * of which holds one descriptor until it returns. A file that another process removes meanwhile is a failure
 * (FLOW_NOT_FOUND), since then two are at work on one tree. */
static flow_status remove_entry(int parent, const char *name, const char *path, int level)
{
  if (unlinkat(parent, name, 0) == 0) return FLOW_OK;
  if (errno != EISDIR && errno != EPERM) return flow_fail_by_errno("remove a file below", path);
  int descriptor = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0) return flow_fail_by_errno("remove the folder", path);
  if (level > MOST_LEVELS) {
    close(descriptor);
    return flow_fail(FLOW_UNSUPPORTED, "cannot remove %s: it has more than %d folders one inside the other", path, (int)MOST_LEVELS);
  }
  DIR *stream = fdopendir(descriptor);
  if (!stream) {
    flow_status status = flow_fail_by_errno("remove the folder", path);
    close(descriptor);
    return status;
  }
  flow_status status = FLOW_OK;
  for (struct dirent *entry; status == FLOW_OK && (entry = readdir(stream));) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    status = remove_entry(descriptor, entry->d_name, path, level + 1);
  }
  closedir(stream);
  if (status == FLOW_OK && unlinkat(parent, name, AT_REMOVEDIR) != 0) status = flow_fail_by_errno("remove the folder", path);
  return status;
}

/* Whether the path leads to the root of the file system, however it is written. */
static int is_root(const char *path)
{
  struct stat root, facts;
  return stat(path, &facts) == 0 && stat("/", &root) == 0 && facts.st_dev == root.st_dev && facts.st_ino == root.st_ino;
}

static int ends_in_dots(const char *path)
{
  const char *last = strrchr(path, '/');
  last = last ? last + 1 : path;
  return strcmp(last, ".") == 0 || strcmp(last, "..") == 0;
}

/* Refuses what is most likely a mistake: the root, "." and "..", a file, a link. Stops at the first entry that cannot be removed; what was
 * removed before stays removed. */
flow_status flow_remove_tree(const char *path)
{
  FLOW_TRY(check_path("rmtree", path));
  if (is_root(path)) return flow_fail(FLOW_INVALID_ARGUMENT, "rmtree: %s is the root of the file system", path);
  char *name = flow_duplicate_text(path);
  if (!name) return FLOW_OUT_OF_MEMORY;
  /* a/ would follow a link a */
  for (size_t length = strlen(name); length > 1 && name[length - 1] == '/'; length--) name[length - 1] = 0;
  struct stat facts;
  flow_status status = FLOW_OK;
  if (ends_in_dots(name)) {
    status = flow_fail(FLOW_INVALID_ARGUMENT, "rmtree: %s ends in . or ..; give the folder's own name", path);
  } else if (lstat(name, &facts) != 0) {
    status = flow_fail_by_errno("remove the folder", path);
  } else if (!S_ISDIR(facts.st_mode)) {
    const char *found = S_ISLNK(facts.st_mode) ? "a link" : "a file";
    status = flow_fail(FLOW_INVALID_ARGUMENT, "rmtree: %s is %s; use remove()", path, found);
  } else {
    status = remove_entry(AT_FDCWD, name, path, 1);
  }
  flow_free(name);
  return status;
}

/* ---- files ----------------------------------------------------------------------------------------------------------- */

/* A link is removed itself, not what it points to. A folder is refused, with the name of the function that removes it. */
flow_status flow_remove_file(const char *path)
{
  FLOW_TRY(check_path("remove", path));
  if (unlink(path) == 0) return FLOW_OK;
  struct stat facts;
  int error = errno;
  if (lstat(path, &facts) == 0 && S_ISDIR(facts.st_mode)) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "remove: %s is a folder; rmtree() removes a folder and its contents", path);
  }
  errno = error;
  return flow_fail_by_errno("remove", path);
}

static flow_status fail_because_there(const char *action, const char *to)
{
  return flow_fail(FLOW_INVALID_ARGUMENT, "%s: %s exists; give overwrite = true to replace it", action, to);
}

/* Linux' renameat2, for which musl has no function, with RENAME_NOREPLACE. */
static int rename_at_once(const char *from, const char *to)
{
#ifdef SYS_renameat2
  return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 1u << 0);
#else
  errno = ENOSYS;
  return -1;
#endif
}

/* EINVAL: the file system has no such rename. Then a link that points nowhere has the name, too, so lstat looks. */
int flow_rename_to_free(const char *from, const char *to)
{
  struct stat facts;
  if (rename_at_once(from, to) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return -1;
  if (lstat(to, &facts) != 0) return rename(from, to);
  errno = EEXIST;
  return -1;
}

/* Within one file system, as rename(2): moving to another one fails with its message. With `overwrite` a file that has
 * the name is replaced at once. */
flow_status flow_rename_path(const char *from, const char *to, int overwrite)
{
  FLOW_TRY(check_path("rename", from));
  FLOW_TRY(check_path("rename", to));
  if ((overwrite ? rename(from, to) : flow_rename_to_free(from, to)) == 0) return FLOW_OK;
  return !overwrite && errno == EEXIST ? fail_because_there("rename", to) : flow_fail_by_errno("rename", from);
}

/* Less than COPY_BYTES read is the end of the file. */
static flow_status copy_bytes(flow_source *source, flow_sink *sink)
{
  void *buffer;
  FLOW_TRY(flow_alloc(COPY_BYTES, &buffer));
  flow_status status = FLOW_OK;
  for (uint64_t got = COPY_BYTES; status == FLOW_OK && got == COPY_BYTES;) {
    status = flow_source_read_some(source, buffer, COPY_BYTES, &got);
    if (status == FLOW_OK) status = flow_sink_write(sink, buffer, got);
  }
  flow_free(buffer);
  return status;
}

/* The copy appears whole or not at all (sink.c). Without `overwrite` the look at the beginning saves the work, and the sink's rename
 * decides: another process may make the file while this one copies. */
flow_status flow_copy_file(const char *from, const char *to, int overwrite)
{
  FLOW_TRY(check_path("copy", from));
  FLOW_TRY(check_path("copy", to));
  if (!overwrite && flow_path_kind(to) != FLOW_PATH_NONE) return fail_because_there("copy", to);
  flow_source source;
  flow_sink sink;
  FLOW_TRY(flow_source_open(from, &source));
  flow_status status = flow_sink_open(to, &sink);
  if (status == FLOW_OK) {
    sink.only_new = !overwrite;
    status = copy_bytes(&source, &sink);
    if (status == FLOW_OK) status = flow_sink_commit(&sink);
    else flow_sink_discard(&sink);
  }
  flow_source_close(&source);
  return status;
}

/* A reader sees the old content or the new, never a part (flow_sink_commit). */
flow_status flow_write_file(const char *path, const void *bytes, double count)
{
  if (!(count >= 0) || count > 9e15 || (count > 0 && !bytes)) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s: there are no bytes to write", path ? path : "the file");
  }
  flow_sink sink;
  FLOW_TRY(flow_sink_open(path, &sink));
  flow_status status = flow_sink_write(&sink, bytes, (uint64_t)count);
  if (status == FLOW_OK) return flow_sink_commit(&sink);
  flow_sink_discard(&sink);
  return status;
}
