/* host_copies.c: see host_copies.h. The threads are started by the first large copy, sleep between copies, and end with the process. They
 * serve one caller at a time: another one copies alone meanwhile. */
#define _GNU_SOURCE                        /* sched_getaffinity */
#include "cuda/runtime/host_copies.h"

#include <sched.h>
#include <stdint.h>
#include <string.h>
#include "base/thread.h"

/* LEAST: bytes of a part, so that waking a thread, some microseconds, costs little beside it. */
enum { MOST_HELPERS = 3, LEAST = 1 << 18, LINE = 64 };

static pthread_mutex_t busy = PTHREAD_MUTEX_INITIALIZER;      /* whose copy it is */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;      /* of what follows */
static pthread_cond_t work = PTHREAD_COND_INITIALIZER, over = PTHREAD_COND_INITIALIZER;
static struct part { char *to; const char *from; size_t bytes; } parts[MOST_HELPERS];      /* bytes 0: nothing to do */
static int waited_for;                     /* parts that are not copied yet */
static flow_thread threads[MOST_HELPERS];
static int helpers, generation = -1;       /* of this process; generation: that started them */

static void *help(void *argument)
{
  struct part *own = argument;
  pthread_mutex_lock(&lock);
  for (;;) {
    while (own->bytes == 0) pthread_cond_wait(&work, &lock);
    struct part part = *own;
    pthread_mutex_unlock(&lock);
    memcpy(part.to, part.from, part.bytes);
    pthread_mutex_lock(&lock);
    own->bytes = 0;
    if (--waited_for == 0) pthread_cond_signal(&over);
  }
  return NULL;
}

static int count_cores(void)
{
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

/* With `busy`. A forked child has none of its parent's threads. */
static void start_helpers(void)
{
  int wanted = count_cores() - 1;
  generation = flow_fork_generation();
  helpers = 0;
  memset(parts, 0, sizeof parts);
  pthread_mutex_init(&lock, NULL);
  pthread_cond_init(&work, NULL);            /* its parent's threads wait for the old one */
  pthread_cond_init(&over, NULL);
  for (; helpers < wanted && helpers < MOST_HELPERS; helpers++)
    if (flow_thread_start_detached(&threads[helpers], "flow copies", help, &parts[helpers]) != 0) return;
}

static void copy_together(char *to, const char *from, size_t bytes)
{
  int count = helpers + 1;
  if ((size_t)count > bytes / LEAST) count = (int)(bytes / LEAST);
  size_t each = (bytes / (size_t)count + LINE - 1) / LINE * LINE, at = 0;
  pthread_mutex_lock(&lock);
  for (int i = 0; i + 1 < count; i++, at += each) parts[i] = (struct part){ to + at, from + at, each };
  waited_for = count - 1;
  pthread_cond_broadcast(&work);
  pthread_mutex_unlock(&lock);
  memcpy(to + at, from + at, bytes - at);
  pthread_mutex_lock(&lock);
  while (waited_for > 0) pthread_cond_wait(&over, &lock);
  pthread_mutex_unlock(&lock);
}

void flow_cuda_copy_host(void *to, const void *from, size_t bytes)
{
  if (bytes < 2 * LEAST || pthread_mutex_trylock(&busy) != 0) {
    memcpy(to, from, bytes);
    return;
  }
  if (generation != flow_fork_generation()) start_helpers();
  if (helpers > 0) copy_together(to, from, bytes);
  else memcpy(to, from, bytes);
  pthread_mutex_unlock(&busy);
}
