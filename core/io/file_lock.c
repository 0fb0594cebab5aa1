/* file_lock.c: see file_lock.h. */
#include "io/file_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "base/memory.h"
#include "io/size_limit.h"

/* How often the file may disappear between open and flock before the attempt is given up: each time some other holder
 * has released. */
enum { MOST_TRIES = 100 };

static flow_status fail_to_lock(const char *path)
{
  return flow_fail(FLOW_IO_ERROR, "cannot take the lock %s: %s", path, strerror(errno));
}

/* Whether the open file still has its name: the holder before may have removed it between our open and our lock. */
static int is_current(const char *path, int descriptor)
{
  struct stat named, opened;
  return stat(path, &named) == 0 && fstat(descriptor, &opened) == 0 && named.st_ino == opened.st_ino && named.st_dev == opened.st_dev;
}

/* holder[size]: the first line that the holder wrote, which may be empty when it has just taken the lock. For messages only. */
static void read_holder(int descriptor, char *holder, int size)
{
  ssize_t length = pread(descriptor, holder, (size_t)size - 1, 0);
  holder[length > 0 ? length : 0] = '\0';
  holder[strcspn(holder, "\n")] = '\0';
  if (!*holder) snprintf(holder, (size_t)size, "another process");
}

/* Writes all of the line, in as many parts as the file takes. 0: that failed, as errno says. */
static int write_line(int descriptor, const char *line, int length)
{
  for (int done = 0; done < length;) {
    ssize_t count = pwrite(descriptor, line + done, (size_t)(length - done), (off_t)done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return 0;
    done += (int)count;
  }
  return 1;
}

/* For people who look at the file; the lock itself is flock's. 0: it could not be written, as on a full disk. */
static int write_holder(int descriptor)
{
  char host[128] = "", line[256], since[32];
  time_t now = time(NULL);
  struct tm parts;
  gethostname(host, sizeof host - 1);
  strftime(since, sizeof since, "%Y-%m-%d %H:%M:%S", gmtime_r(&now, &parts));
  int length = snprintf(line, sizeof line, "process %ld on %s since %s UTC\n", (long)getpid(), host, since);
  flow_size_limit held;
  flow_size_limit_hold(&held);
  int written = ftruncate(descriptor, 0) == 0 && write_line(descriptor, line, length);
  flow_size_limit_release(&held, !written);
  return written;
}

/* The lock is taken: keeps it, or, where that fails, gives it back and removes the file. */
static flow_status remember(const char *path, int descriptor, flow_file_lock *lock)
{
  char *copy = flow_duplicate_text(path);
  if (copy && write_holder(descriptor)) {
    *lock = (flow_file_lock){ copy, descriptor, (long)getpid() };
    return FLOW_OK;
  }
  flow_status status = copy ? fail_to_lock(path) : FLOW_OUT_OF_MEMORY;
  unlink(path);
  close(descriptor);
  flow_free(copy);
  return status;
}

/* Open, lock, look: the file may be removed by its holder between the first two, and a lock on a file without a name protects nothing.
 * Then it is tried again. */
flow_status flow_file_lock_take(const char *path, flow_file_lock *lock, int *taken, char *holder, int size)
{
  *lock = (flow_file_lock){ 0 };
  *taken = 0;
  for (int i = 0; i < MOST_TRIES; i++) {
    int descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (descriptor < 0) return fail_to_lock(path);
    if (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
      flow_status status = errno == EWOULDBLOCK ? FLOW_OK : fail_to_lock(path);
      read_holder(descriptor, holder, size);
      close(descriptor);
      return status;
    }
    if (is_current(path, descriptor)) {
      *taken = 1;
      return remember(path, descriptor, lock);
    }
    close(descriptor);
  }
  return flow_fail(FLOW_IO_ERROR, "cannot take the lock %s: others take and release it all the time", path);
}

/* A forked child closes its descriptor only: the lock belongs to the open file that it shares with its parent, and the file's name is the
 * parent's to remove. */
void flow_file_lock_release(flow_file_lock *lock)
{
  if (lock->path && lock->process == (long)getpid()) unlink(lock->path); /* still held: no other process has it locked */
  if (lock->path) close(lock->descriptor);
  flow_free(lock->path);
  *lock = (flow_file_lock){ 0 };
}
