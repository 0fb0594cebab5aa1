/* thread.c: see thread.h. All signals are blocked while a thread is started, so that it never runs with the host's mask; the four that
 * its own faults raise stay (flow_signals_block). */
#define _GNU_SOURCE            /* pthread_setname_np, pthread_sigmask in every mode */
#include "base/thread.h"

#include <stdatomic.h>
#include "base/float_state.h"

static _Atomic int generation;
static pthread_once_t register_once = PTHREAD_ONCE_INIT;

static void count_fork(void) { atomic_fetch_add(&generation, 1); }
static void register_fork_handler(void) { pthread_atfork(NULL, NULL, count_fork); }

int flow_fork_generation(void)
{
  pthread_once(&register_once, register_fork_handler);
  return atomic_load(&generation);
}

static void *thread_main(void *argument)
{
  const flow_thread *self = argument;
  flow_float_enter(); /* a thread inherits its starter's environment; this one never leaves the default */
  pthread_setname_np(pthread_self(), self->name);
  return self->run(self->argument);
}

/* What both public functions do. Returns an error number of pthread_*. *thread is filled in before the thread begins, which reads it. */
static int start(flow_thread *thread, const char *name, void *(*run)(void *), void *argument, int detached)
{
  pthread_attr_t attributes;
  sigset_t before;
  int error = pthread_attr_init(&attributes);
  if (error) return error;
  pthread_attr_setdetachstate(&attributes, detached ? PTHREAD_CREATE_DETACHED : PTHREAD_CREATE_JOINABLE);
  *thread = (flow_thread){ .name = name, .run = run, .argument = argument, .generation = flow_fork_generation() };
  flow_signals_block(&before);
  error = pthread_create(&thread->id, &attributes, thread_main, thread);
  flow_signals_restore(&before);
  pthread_attr_destroy(&attributes);
  thread->started = error == 0;
  return error;
}

int flow_thread_start(flow_thread *thread, const char *name, void *(*run)(void *), void *argument)
{
  return start(thread, name, run, argument, 0);
}

int flow_thread_start_detached(flow_thread *thread, const char *name, void *(*run)(void *), void *argument)
{
  return start(thread, name, run, argument, 1);
}

void flow_thread_join(flow_thread *thread)
{
  if (thread->started && thread->generation == flow_fork_generation()) pthread_join(thread->id, NULL);
  thread->started = 0;
}
