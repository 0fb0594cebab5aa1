/* sink.c: atomic writing: beside the target, to the disk, renamed, the folder to the disk. Each temporary file is locked (flock) by its
 * writer, so that anyone can tell one of a killed process. A file that is replaced keeps its mode, and its owner where that is permitted;
 * a symbolic link stays one, and what it points at is replaced. */
#define _GNU_SOURCE                      /* fchown, readlink in every mode */
#include "io/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio_ext.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/memory.h"
#include "io/size_limit.h"

/* Bytes of one fwrite and one piece of the checksum: within a second-level cache. */
enum { WRITE_BLOCK = 1 << 20 };

/* ---- what killed writers leave ----------------------------------------------------------------------------------------------------- */

/* Whether a name ends as open_temporary makes them: .PROCESS-NUMBER.tmp */
static int is_temporary(const char *name)
{
  size_t length = strlen(name);
  if (length < 8 || strcmp(name + length - 4, ".tmp") != 0) return 0;
  const char *at = name + length - 4, *end = at;
  while (at > name && at[-1] >= '0' && at[-1] <= '9') at--;
  if (at == end || at == name || at[-1] != '-') return 0;
  end = --at;
  while (at > name && at[-1] >= '0' && at[-1] <= '9') at--;
  return at < end && at - 1 > name && at[-1] == '.';
}

/* A lock that can be had means that its writer is gone. O_NOFOLLOW and O_NONBLOCK, since the name may have become a link
 * or a pipe meanwhile. 1: it was removed. A writer that has made its file but not locked it yet notices the removal
 * (lock_temporary) and takes another name. */
static int remove_abandoned(int folder, const char *name)
{
  int descriptor = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), removed = 0;
  if (descriptor < 0) return 0;
  struct stat facts;
  if (fstat(descriptor, &facts) == 0 && S_ISREG(facts.st_mode) && flock(descriptor, LOCK_EX | LOCK_NB) == 0) {
    removed = unlinkat(folder, name, 0) == 0;
  }
  close(descriptor);
  return removed;
}

/* How much of a file's name is in the names of its temporary files: all of it, unless these would be longer than names may be. */
static size_t kept_length(const char *name)
{
  enum { SUFFIX = 40 }; /* room for the numbers */
  size_t length = strlen(name);
  return length > NAME_MAX - SUFFIX ? NAME_MAX - SUFFIX : length;
}

/* In all of a folder, or, with `target`, those of that one file: its name, a dot and the numbers. Returns how many were
 * removed; a folder that cannot be read has none. Failures are ignored: what stays now is found again by the next
 * writer. */
static int remove_all_abandoned(const char *folder, const char *target)
{
  DIR *stream = opendir(folder);
  int removed = 0;
  if (!stream) return 0;
  size_t length = target ? kept_length(target) : 0;
  for (struct dirent *entry; (entry = readdir(stream));) {
    if (target && (strncmp(entry->d_name, target, length) != 0 || entry->d_name[length] != '.')) continue;
    if (is_temporary(entry->d_name)) removed += remove_abandoned(dirfd(stream), entry->d_name);
  }
  closedir(stream);
  return removed;
}

/* Of all targets in the folder. What a name must look like is in is_temporary; a file of the user's that looks the same
 * is removed, too, unless it is locked. */
int flow_remove_abandoned(const char *folder)
{
  return folder && *folder ? remove_all_abandoned(folder, NULL) : 0;
}

/* Those of earlier attempts to write this very file. `path` is cut at its last slash for the call and put together
 * again. */
static void remove_earlier_attempts(char *path)
{
  char *slash = strrchr(path, '/');
  if (!slash) {
    remove_all_abandoned(".", path);
    return;
  }
  *slash = '\0';
  remove_all_abandoned(slash == path ? "/" : path, slash + 1);
  *slash = '/';
}

/* ---- what is replaced --------------------------------------------------------------------------------------------------------- */

/* As many links as Linux follows before it says ELOOP. */
enum { MOST_LINKS = 40 };

/* Puts what the link at sink->path points at into its place, whether it exists or not. `length` is the size of the
 * buffer that readlink fills; a target that fills it wholly may have been cut and is refused. A relative target is
 * relative to the folder of the link. */
static flow_status follow_link(flow_sink *sink, size_t length)
{
  const char *slash = strrchr(sink->path, '/');
  size_t folder = slash ? (size_t)(slash + 1 - sink->path) : 0;
  void *block;
  FLOW_TRY(flow_alloc(folder + length + 1, &block));
  char *next = block;
  ssize_t got = readlink(sink->path, next + folder, length);
  flow_status status = got < 0 ? flow_fail_by_errno("write", sink->path) : FLOW_OK;
  if (status == FLOW_OK && (size_t)got == length) {
    status = flow_fail(FLOW_IO_ERROR, "cannot write %s: the link changes meanwhile", sink->path);
  }
  if (status != FLOW_OK) {
    flow_free(next);
    return status;
  }
  size_t kept = next[folder] == '/' ? 0 : folder;
  memmove(next + kept, next + folder, (size_t)got);
  memcpy(next, sink->path, kept);
  next[kept + (size_t)got] = '\0';
  flow_free(sink->path);
  sink->path = next;
  return FLOW_OK;
}

/* Follows links; *facts: of the file that will be replaced, *replaces 0: there is none. */
static flow_status find_target(flow_sink *sink, struct stat *facts, int *replaces)
{
  *replaces = 0;
  for (int links = 0; lstat(sink->path, facts) == 0; links++) {
    if (S_ISREG(facts->st_mode)) {
      *replaces = 1;
      return FLOW_OK;
    }
    if (!S_ISLNK(facts->st_mode)) {
      if (!S_ISDIR(facts->st_mode)) return flow_fail(FLOW_INVALID_ARGUMENT, "cannot write %s: it is not a regular file", sink->path);
      errno = EISDIR;
      return flow_fail_by_errno("write", sink->path);
    }
    if (links == MOST_LINKS) {
      errno = ELOOP;
      return flow_fail_by_errno("write", sink->path);
    }
    FLOW_TRY(follow_link(sink, PATH_MAX));
  }
  return FLOW_OK;
}

/* A user who could not read the old file must not read the new one: if the group cannot be kept, it gets the rights of others. */
static void keep_mode(int descriptor, const struct stat *facts)
{
  mode_t mode = facts->st_mode & 07777;
  struct stat own;
  if (fstat(descriptor, &own) != 0) return;
  if (own.st_uid != facts->st_uid || own.st_gid != facts->st_gid) {
    int kept = fchown(descriptor, facts->st_uid, facts->st_gid) == 0;
    if (!kept) {
      mode &= ~(mode_t)S_ISUID;
      if (own.st_gid != facts->st_gid && fchown(descriptor, (uid_t)-1, facts->st_gid) != 0) {
        mode &= ~(mode_t)S_ISGID & ~((mode_t)070 & ~((mode & 07) << 3));
      }
    }
  }
  fchmod(descriptor, mode);        /* a file system without modes has none to keep */
}

/* ---- writing ----------------------------------------------------------------------------------------------------------------- */

/* 0 if somebody took it for a dead writer's in the moment between its making and this lock. Where a file system has no locks, there is
 * no such cleaning either. */
static int lock_temporary(int descriptor)
{
  struct stat facts;
  return flock(descriptor, LOCK_EX | LOCK_NB) != 0 || (fstat(descriptor, &facts) == 0 && facts.st_nlink > 0);
}

/* A name beside the target that no other process or thread uses. Mode 0600 while a file is replaced: keep_mode then
 * widens it to what the old file had, so that no other user can read it than could read that one. */
static flow_status open_temporary(flow_sink *sink, const struct stat *replaced)
{
  static _Atomic unsigned serial;
  const char *slash = strrchr(sink->path, '/'), *base = slash ? slash + 1 : sink->path;
  int kept = (int)(base - sink->path) + (int)kept_length(base);
  size_t size = strlen(sink->path) + 40;
  void *name;
  FLOW_TRY(flow_alloc(size, &name));
  sink->temporary = name;
  for (int attempt = 0; attempt < 100; attempt++) {
    snprintf(name, size, "%.*s.%ld-%u.tmp", kept, sink->path, (long)getpid(), atomic_fetch_add(&serial, 1u));
    int descriptor = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, replaced ? 0600 : 0666);
    if (descriptor < 0 && errno == EEXIST) continue;
    if (descriptor < 0) break;
    if (!lock_temporary(descriptor)) {
      close(descriptor);
      continue;
    }
    if (replaced) keep_mode(descriptor, replaced);
    sink->file = fdopen(descriptor, "wb");
    if (sink->file) return FLOW_OK;
    close(descriptor);
    unlink(name);
    break;
  }
  flow_status status = flow_fail_by_errno("write", sink->path);
  flow_free(sink->temporary);
  sink->temporary = NULL;                /* nothing to remove */
  return status;
}

/* The folder of the target, after links, gets the temporary file: a rename cannot cross file systems. */
flow_status flow_sink_open(const char *path, flow_sink *sink)
{
  *sink = (flow_sink){ 0 };
  if (!path || !*path) return flow_fail(FLOW_INVALID_ARGUMENT, "the path of a file is missing");
  sink->path = flow_duplicate_text(path);
  if (!sink->path) return FLOW_OUT_OF_MEMORY;
  struct stat facts;
  int replaces;
  flow_status status = find_target(sink, &facts, &replaces);
  if (status == FLOW_OK) {
    remove_earlier_attempts(sink->path);
    status = open_temporary(sink, replaces ? &facts : NULL);
  }
  if (status != FLOW_OK) flow_sink_discard(sink);
  return status;
}

/* In blocks, so that what the checksum has read is still in the cache when it is written. */
static flow_status write_blocks(flow_sink *sink, const void *from, uint64_t bytes)
{
  const char *next = from;
  for (uint64_t left = bytes; left > 0;) {
    uint64_t block = left < WRITE_BLOCK ? left : WRITE_BLOCK;
    if (sink->wants_crc) sink->crc = (uint32_t)crc32_z(sink->crc, (const Bytef *)next, block);
    if (fwrite(next, 1, block, sink->file) < block) return flow_fail_by_errno("write", sink->path);
    next += block;
    left -= block;
  }
  sink->written += bytes;
  return FLOW_OK;
}

/* Whether stdio keeps `bytes` more bytes in its buffer, without a call of the system. */
static int stays_in_buffer(FILE *file, uint64_t bytes)
{
  return bytes <= __fbufsize(file) - __fpending(file);
}

/* Small pieces, as those of records, are not worth the system calls that hold the signal: it comes with a write only. */
flow_status flow_sink_write(flow_sink *sink, const void *from, uint64_t bytes)
{
  if (stays_in_buffer(sink->file, bytes)) return write_blocks(sink, from, bytes);
  flow_size_limit held;
  flow_size_limit_hold(&held);
  flow_status status = write_blocks(sink, from, bytes);
  flow_size_limit_release(&held, status != FLOW_OK);
  return status;
}

static flow_status write_over(flow_sink *sink, uint64_t offset, const void *from, uint64_t bytes)
{
  if (fflush(sink->file) != 0) return flow_fail_by_errno("write", sink->path);
  const char *next = from;
  while (bytes > 0) {
    ssize_t count = pwrite(fileno(sink->file), next, bytes, (off_t)offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return flow_fail_by_errno("write", sink->path);
    next += count;
    offset += (uint64_t)count;
    bytes -= (uint64_t)count;
  }
  return FLOW_OK;
}

/* Past stdio: its buffer is written out before, and pwrite leaves the position of the file, where the next
 * flow_sink_write goes on. The checksum does not see patched bytes. */
flow_status flow_sink_patch(flow_sink *sink, uint64_t offset, const void *from, uint64_t bytes)
{
  if (offset > sink->written || bytes > sink->written - offset) {
    return flow_fail(FLOW_INTERNAL, "%s has no byte %.0f to write over", sink->path, (double)offset);
  }
  flow_size_limit held;
  flow_size_limit_hold(&held);
  flow_status status = write_over(sink, offset, from, bytes);
  flow_size_limit_release(&held, status != FLOW_OK);
  return status;
}

/* Brings the folder of a file, where the new name is, to the disk. File systems that cannot do that for folders are left
 * alone. `path` is changed for the call of open and restored. */
static flow_status sync_folder(char *path)
{
  char *slash = strrchr(path, '/'), *end = slash == path ? slash + 1 : slash, cut = end ? *end : '\0';
  if (end) *end = '\0';
  int descriptor = open(end ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (end) *end = cut;
  if (descriptor < 0) return FLOW_OK;      /* a folder that may be written to but not read: nothing more can be done */
  flow_status status = FLOW_OK;
  if (fsync(descriptor) != 0 && errno != EINVAL && errno != ENOTSUP && errno != EROFS) status = flow_fail_by_errno("write", path);
  close(descriptor);
  return status;
}

/* The finished file gets its name. */
static flow_status name_file(const flow_sink *sink)
{
  if ((sink->only_new ? flow_rename_to_free : rename)(sink->temporary, sink->path) == 0) return FLOW_OK;
  if (!sink->only_new || errno != EEXIST) return flow_fail_by_errno("write", sink->path);
  return flow_fail(FLOW_INVALID_ARGUMENT, "%s exists: another process has made it meanwhile; give overwrite = true to replace it",
                   sink->path);
}

/* What stdio still has, to the disk. */
static flow_status write_out(const flow_sink *sink)
{
  flow_size_limit held;
  flow_size_limit_hold(&held);
  flow_status status = FLOW_OK;
  if (fflush(sink->file) != 0 || fsync(fileno(sink->file)) != 0) status = flow_fail_by_errno("write", sink->path);
  flow_size_limit_release(&held, status != FLOW_OK);
  return status;
}

/* Closing writes out what stdio has kept of a write that failed. Returns whether that went well. */
static int close_file(flow_sink *sink)
{
  flow_size_limit held;
  flow_size_limit_hold(&held);
  int closed = fclose(sink->file) == 0;
  flow_size_limit_release(&held, !closed);
  sink->file = NULL;
  return closed;
}

/* Order: contents to the disk, then the name, then the folder. A machine that stops in between has the old file, or the new one whole. The
 * file is closed after it has its name, since the lock of the temporary file lasts until then: no process takes it for a dead writer's. */
flow_status flow_sink_commit(flow_sink *sink)
{
  flow_status status = write_out(sink);
  if (status == FLOW_OK) {
    status = name_file(sink);
    if (status == FLOW_OK) {
      flow_free(sink->temporary);        /* it has become the file: nothing to remove */
      sink->temporary = NULL;
      status = sync_folder(sink->path);
    }
  }
  if (!close_file(sink) && status == FLOW_OK) status = flow_fail_by_errno("write", sink->path);
  flow_sink_discard(sink);
  return status;
}

void flow_sink_discard(flow_sink *sink)
{
  if (sink->file) close_file(sink);
  if (sink->temporary) unlink(sink->temporary);
  flow_free(sink->temporary);
  flow_free(sink->path);
  *sink = (flow_sink){ 0 };
}
