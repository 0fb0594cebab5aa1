/* size_limit.c: see size_limit.h. No handler is installed, and no disposition changed: these belong to the host. */
#define _GNU_SOURCE /* pthread_sigmask, sigtimedwait in every mode */
#include "io/size_limit.h"

#include <errno.h>
#include <time.h>

static sigset_t only(void)
{
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGXFSZ);
  return set;
}

void flow_size_limit_hold(flow_size_limit *held)
{
  sigset_t set = only();
  sigemptyset(&held->before);
  pthread_sigmask(SIG_BLOCK, &set, &held->before);
}

/* The kernel sends the signal to the thread that writes, so it is the thread's own that waits. Of a host that has blocked it itself nothing
 * is taken. */
void flow_size_limit_release(const flow_size_limit *held, int failed)
{
  static const struct timespec at_once;
  sigset_t set = only();
  int reason = errno;
  if (failed && !sigismember(&held->before, SIGXFSZ)) sigtimedwait(&set, NULL, &at_once);
  pthread_sigmask(SIG_SETMASK, &held->before, NULL);
  errno = reason;
}
