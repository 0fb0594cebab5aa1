/* plan_cache.c: a table of lists. A plan is made without the lock, which may take seconds, so that several threads can make several; who
 * wants one that is being made waits for it. */
#include "cuda/library/plan_cache.h"

#include <string.h>
#include "base/hash.h"
#include "base/memory.h"

typedef enum entry_state { BEING_MADE, EXISTS, REFUSED } entry_state;

struct flow_plan_entry {
  struct flow_plan_entry *next;
  size_t                  key_bytes;
  entry_state             state;
  _Alignas(16) char       bytes[];          /* the plan, then the key */
};

/* Where the key's entry is hung up, or would be. */
static struct flow_plan_entry **find(flow_plan_cache *cache, const void *key, size_t key_bytes, size_t plan_bytes)
{
  struct flow_plan_entry **slot = &cache->slots[flow_hash(FLOW_HASH_BEGIN, key, key_bytes) % FLOW_PLAN_CACHE_SLOTS];
  while (*slot && !((*slot)->key_bytes == key_bytes && memcmp((*slot)->bytes + plan_bytes, key, key_bytes) == 0)) slot = &(*slot)->next;
  return slot;
}

/* With the lock, which is given up meanwhile. */
static const void *make_new(flow_plan_cache *cache, const void *key, size_t key_bytes, size_t plan_bytes, flow_plan_maker make)
{
  void *block;
  if (flow_alloc_zero(sizeof(struct flow_plan_entry) + plan_bytes + key_bytes, &block) != FLOW_OK) return NULL;
  struct flow_plan_entry *entry = block;
  entry->key_bytes = key_bytes;
  memcpy(entry->bytes + plan_bytes, key, key_bytes);
  *find(cache, key, key_bytes, plan_bytes) = entry;
  pthread_mutex_unlock(&cache->lock);
  flow_status status = make(key, entry->bytes);
  pthread_mutex_lock(&cache->lock);
  entry->state = status == FLOW_OK ? EXISTS : REFUSED;
  pthread_cond_broadcast(&cache->made);
  if (status == FLOW_OK) return entry->bytes;
  if (status == FLOW_UNSUPPORTED) return NULL;
  *find(cache, key, key_bytes, plan_bytes) = entry->next;      /* memory, say: another time it may work */
  flow_free(entry);
  return NULL;
}

const void *flow_plan_cache_find(flow_plan_cache *cache, const void *key, size_t key_bytes, size_t plan_bytes, flow_plan_maker make)
{
  pthread_mutex_lock(&cache->lock);
  const struct flow_plan_entry *entry = *find(cache, key, key_bytes, plan_bytes);
  while (entry && entry->state == BEING_MADE) {
    pthread_cond_wait(&cache->made, &cache->lock);
    entry = *find(cache, key, key_bytes, plan_bytes);
  }
  const void *found = !entry ? make_new(cache, key, key_bytes, plan_bytes, make) : entry->state == EXISTS ? entry->bytes : NULL;
  pthread_mutex_unlock(&cache->lock);
  return found;
}
