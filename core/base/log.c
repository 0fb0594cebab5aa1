/* log.c: where all messages of the library go. Nothing is written until flow_log_to_stdio(1), which the flowlua program calls; until
 * then the last KEPT_MESSAGES are kept for flow_log_take(): a library does not write to its host's terminal. Any thread may log. */
#include "base/status.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { KEPT_MESSAGES = 64, KEPT_BYTES = 1024 };

static _Atomic int to_stdio;
static struct {
  pthread_mutex_t lock;
  int  first, count;                             /* oldest message; number of messages */
  int  level[KEPT_MESSAGES];
  char text[KEPT_MESSAGES][KEPT_BYTES];          /* longer messages are cut */
} kept = { .lock = PTHREAD_MUTEX_INITIALIZER };
static pthread_once_t register_once = PTHREAD_ONCE_INIT;

/* A thread of the parent may hold the lock at the moment of fork: the fork waits for it, so that the child can log. */
static void lock_kept(void)
{
  pthread_mutex_lock(&kept.lock);
}

static void unlock_kept(void)
{
  pthread_mutex_unlock(&kept.lock);
}

static void register_fork_handlers(void)
{
  pthread_atfork(lock_kept, unlock_kept, unlock_kept);
}

void flow_log_to_stdio(int enabled)
{
  atomic_store(&to_stdio, enabled != 0);
}

int flow_log_stdio(void)
{
  return atomic_load(&to_stdio);
}

/* A ring: a new message takes the place of the oldest. */
static void keep(int level, const char *text)
{
  pthread_once(&register_once, register_fork_handlers);
  lock_kept();
  if (kept.count == KEPT_MESSAGES) {
    kept.first = (kept.first + 1) % KEPT_MESSAGES;
    kept.count--;
  }
  int place = (kept.first + kept.count++) % KEPT_MESSAGES;
  kept.level[place] = level;
  snprintf(kept.text[place], KEPT_BYTES, "%s", text);
  unlock_kept();
}

/* The streams lock themselves, so that lines of several threads do not mix. */
void flow_log(int level, const char *text)
{
  if (!text) return;
  if (!atomic_load(&to_stdio)) {
    keep(level, text);
  } else if (level == FLOW_LOG_PRINT) {
    fputs(text, stdout);        /* unchanged: a progress bar has its own line ends */
    fflush(stdout);
  } else {
    fprintf(stderr, "%s\n", text);
  }
}

/* Oldest first. Returns its length, -1: none is kept. A text that does not fit is cut, and gone. */
int flow_log_take(int *level, char *text, int size)
{
  int length = -1;
  lock_kept();
  if (kept.count > 0) {
    const char *oldest = kept.text[kept.first];
    length = (int)strlen(oldest);
    if (level) *level = kept.level[kept.first];
    if (text && size > 0) snprintf(text, (size_t)size, "%s", oldest);
    kept.first = (kept.first + 1) % KEPT_MESSAGES;
    kept.count--;
  }
  unlock_kept();
  return length;
}
