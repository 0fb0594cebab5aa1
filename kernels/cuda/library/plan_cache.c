/* plan_cache.c: a table of lists. One lock also while a plan is made: that is rare, and the libraries' compilers use all they need. */
#include "cuda/library/plan_cache.h"

#include <string.h>
#include "base/hash.h"
#include "base/memory.h"

struct flow_plan_entry {
  struct flow_plan_entry *next;
  size_t                  key_bytes;
  int                     exists;
  _Alignas(16) char       bytes[];          /* the plan, then the key */
};

/* With the lock. What a library refuses is remembered as well; failures that may pass (no memory) are not. */
static const void *find_locked(flow_plan_cache *cache, const void *key, size_t key_bytes, size_t plan_bytes, flow_plan_maker make)
{
  struct flow_plan_entry **slot = &cache->slots[flow_hash(FLOW_HASH_BEGIN, key, key_bytes) % FLOW_PLAN_CACHE_SLOTS];
  for (struct flow_plan_entry *entry = *slot; entry; entry = entry->next) {
    if (entry->key_bytes == key_bytes && memcmp(entry->bytes + plan_bytes, key, key_bytes) == 0)
      return entry->exists ? entry->bytes : NULL;
  }
  void *block;
  if (flow_alloc_zero(sizeof(struct flow_plan_entry) + plan_bytes + key_bytes, &block) != FLOW_OK) return NULL;
  struct flow_plan_entry *entry = block;
  flow_status status = make(key, entry->bytes);
  if (status != FLOW_OK && status != FLOW_UNSUPPORTED) {     /* memory, say: another time it may work */
    flow_free(entry);
    return NULL;
  }
  entry->exists = status == FLOW_OK;
  entry->key_bytes = key_bytes;
  memcpy(entry->bytes + plan_bytes, key, key_bytes);
  entry->next = *slot;
  *slot = entry;
  return entry->exists ? entry->bytes : NULL;
}

const void *flow_plan_cache_find(flow_plan_cache *cache, const void *key, size_t key_bytes, size_t plan_bytes, flow_plan_maker make)
{
  pthread_mutex_lock(&cache->lock);
  const void *found = find_locked(cache, key, key_bytes, plan_bytes, make);
  pthread_mutex_unlock(&cache->lock);
  return found;
}
