/* thread.h: starts all threads of the library. Each thread has the default floating-point environment instead of that of the thread that
 * started it, blocks all signals except the four that its own faults raise, has a name for debuggers, and counts as ended in a
 * forked child. Needs libc alone: plugins compile it in. */
#ifndef FLOW_BASE_THREAD_H
#define FLOW_BASE_THREAD_H

#include <pthread.h>
#include <signal.h>

/* Must not move until it is joined, or, if it is detached, until the thread ends. Zeros: not started. */
typedef struct flow_thread {
  pthread_t   id;
  /* started: it has to be joined; generation: flow_fork_generation() at the start, by which a forked child sees that the thread is not
   * its own */
  int         started, generation;
  const char *name;
  void     *(*run)(void *argument);
  void       *argument;
} flow_thread;

/* name: up to 15 characters, static. Returns 0 or an error number: then nothing was started. */
int  flow_thread_start(flow_thread *thread, const char *name, void *(*run)(void *), void *argument);
/* The same for a thread that will not be joined. */
int  flow_thread_start_detached(flow_thread *thread, const char *name, void *(*run)(void *), void *argument);
/* Waits until the thread ends. Does nothing for one that was not started, or was started before this process was forked. */
void flow_thread_join(flow_thread *thread);

/* Forks between the first call and now, on this side: what differs was begun by a parent of this process. */
int  flow_fork_generation(void);

/* Signals are for the host's threads: blocks all on the calling one but SIGILL, SIGFPE, SIGSEGV and SIGBUS, which a fault of a thread
 * itself raises. For calls of other libraries that start threads; they inherit the mask. */
static inline void flow_signals_block(sigset_t *before)
{
  sigset_t blocked;
  sigfillset(&blocked);
  sigdelset(&blocked, SIGILL);
  sigdelset(&blocked, SIGFPE);
  sigdelset(&blocked, SIGSEGV);
  sigdelset(&blocked, SIGBUS);
  pthread_sigmask(SIG_SETMASK, &blocked, before);
}

static inline void flow_signals_restore(const sigset_t *before) { pthread_sigmask(SIG_SETMASK, before, NULL); }

#endif
