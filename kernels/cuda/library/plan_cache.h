/* plan_cache.h: plans by what they were made for. A key is a struct of which every byte is set (padding, too: make it by memset). */
#ifndef FLOW_CUDA_LIBRARY_PLAN_CACHE_H
#define FLOW_CUDA_LIBRARY_PLAN_CACHE_H

#include <pthread.h>
#include "base/status.h"

enum { FLOW_PLAN_CACHE_SLOTS = 256 };

typedef struct flow_plan_cache {
  pthread_mutex_t lock;
  pthread_cond_t  made;
  struct flow_plan_entry *slots[FLOW_PLAN_CACHE_SLOTS];
} flow_plan_cache;

#define FLOW_PLAN_CACHE { .lock = PTHREAD_MUTEX_INITIALIZER, .made = PTHREAD_COND_INITIALIZER }

/* Makes a plan in *plan, which has the cache's plan size and is zero. What it refuses as FLOW_UNSUPPORTED is not asked again. */
typedef flow_status (*flow_plan_maker)(const void *key, void *plan);

/* The plan of a key, made on first use and kept where it is from then on; NULL where there is none. Two threads never make the same, but
 * may make two at the same time. */
const void *flow_plan_cache_find(flow_plan_cache *cache, const void *key, size_t key_bytes, size_t plan_bytes, flow_plan_maker make);

#endif
