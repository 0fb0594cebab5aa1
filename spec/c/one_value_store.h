/* one_value_store.h: a flow_store (transport/transport.h) of one value, whatever its key: who asks waits until somebody has set it. Between
 * the threads of a process. */
#ifndef FLOW_SPEC_ONE_VALUE_STORE_H
#define FLOW_SPEC_ONE_VALUE_STORE_H

#include <pthread.h>
#include <string.h>
#include <unistd.h>
#include "base/memory.h"
#include "transport/transport.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char stored[256];
static size_t stored_bytes;

static flow_status set_key(void *state, const char *key, const void *bytes, size_t count)
{
  (void)state, (void)key;
  pthread_mutex_lock(&lock);
  memcpy(stored, bytes, count);
  stored_bytes = count;
  pthread_mutex_unlock(&lock);
  return FLOW_OK;
}

static flow_status get_key(void *state, const char *key, double seconds, void **bytes, size_t *count)
{
  (void)state, (void)key, (void)seconds;
  for (*count = 0; *count == 0; usleep(1000)) {
    pthread_mutex_lock(&lock);
    *count = stored_bytes;
    pthread_mutex_unlock(&lock);
  }
  if (flow_alloc(*count, bytes) != FLOW_OK) return FLOW_OUT_OF_MEMORY;
  memcpy(*bytes, stored, *count);
  return FLOW_OK;
}

static const flow_store store = { set_key, get_key, NULL };

#endif
