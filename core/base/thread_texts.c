/* thread_texts.c: see thread_texts.h. */
#include "base/thread_texts.h"

#include <pthread.h>
#include <stdlib.h>

static const flow_thread_texts empty = { .fields = FLOW_ERROR_UNKNOWN };
static flow_thread_texts shared = { .fields = FLOW_ERROR_UNKNOWN }; /* of threads for which there was no memory */
static _Thread_local flow_thread_texts *current;                    /* NULL: nothing was written yet */

static pthread_once_t make_key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static int has_key;

static void end_of_thread(void *texts)
{
  current = NULL; /* what fails in a later destructor of this thread makes new ones, and comes here again */
  free(texts);
}

static void make_key(void)
{
  has_key = pthread_key_create(&key, end_of_thread) == 0;
}

/* NULL: no memory for it, or no way to free it at the end of the thread. By the allocator itself: flow_alloc describes its failure here. */
static flow_thread_texts *new_texts(void)
{
  pthread_once(&make_key_once, make_key);
  flow_thread_texts *texts = has_key ? malloc(sizeof *texts) : NULL;
  if (!texts) return NULL;
  if (pthread_setspecific(key, texts) != 0) {
    free(texts);
    return NULL;
  }
  *texts = current ? *current : empty;
  return texts;
}

flow_thread_texts *flow_thread_texts_to_write(void)
{
  if (!current || current == &shared) {
    flow_thread_texts *own = new_texts();
    current = own ? own : &shared;
  }
  return current;
}

const flow_thread_texts *flow_thread_texts_to_read(void)
{
  return current ? current : &empty;
}

char *flow_text_slot(void)
{
  flow_thread_texts *texts = flow_thread_texts_to_write();
  return texts->slots[texts->next_slot++ % FLOW_SLOTS];
}
