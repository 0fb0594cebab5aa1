/* size_limit.h: writing files without the signal of their size. A write past RLIMIT_FSIZE sends SIGXFSZ to its thread, which ends a process
 * that does not ignore it, and with it the host of the library. Between hold and release the thread has it blocked, and the write fails
 * with EFBIG as it does with ENOSPC on a full disk. */
#ifndef FLOW_IO_SIZE_LIMIT_H
#define FLOW_IO_SIZE_LIMIT_H

#include <signal.h>

typedef struct flow_size_limit {
  sigset_t before;
} flow_size_limit;

/* Blocks the signal on the calling thread, and notes in *held what was blocked before. */
void flow_size_limit_hold(flow_size_limit *held);
/* By the same thread. failed: whether a write has failed, whose signal is taken away then. errno stays. */
void flow_size_limit_release(const flow_size_limit *held, int failed);

#endif
