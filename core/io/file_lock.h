/* file_lock.h: who may write a file: one process, one place in it, at a time. A file beside the target says who holds it
 * and since when; the lock itself is the kernel's (flock), so that it ends with its process: what a dead one left behind
 * is taken over.
 *
 * flock belongs to the open file, not to the process. So a second attempt from the same process, which opens the file
 * again, is refused like one from another process. On file systems without locks taking one fails; it never seems to
 * succeed. */
#ifndef FLOW_IO_FILE_LOCK_H
#define FLOW_IO_FILE_LOCK_H

#include "base/status.h"

/* All zero is not held. A forked child does not hold what its parent holds. `path` is a copy, NULL: not held. `process` took it, which
 * tells a forked child apart. `descriptor` is open while the lock is held. */
typedef struct flow_file_lock { char *path; int descriptor; long process; } flow_file_lock;

/* Tries to take the lock `path`, which must not be the file itself. *taken is 0 if somebody else holds it: `holder` then
 * says who, as "process 12 on host since 2025-01-31 12:00:00 UTC". FLOW_IO_ERROR: the folder cannot be written, or has
 * no locks. holder[size] is set only if the lock is somebody else's. On failure nothing is held and no descriptor is
 * open. */
flow_status flow_file_lock_take(const char *path, flow_file_lock *lock, int *taken, char *holder, int size);
void        flow_file_lock_release(flow_file_lock *lock);      /* removes the file; does nothing for one that is not held */

#endif
