/* tensor_index.c: see tensor_index.h. Open addressing with linear probing, at most half full, so that a search meets a free place soon.
 * The hash multiplies the address by 2^64 divided by the golden ratio (Knuth, The Art of Computer Programming 3, section 6.4); blocks
 * begin at multiples of 64, whose zeros are shifted out. Nothing is ever taken out. */
#include "graph/tensor_index.h"

#include "base/memory.h"

/* Where the tensor is, or the free place where it belongs. The table has both a place and a free one. */
static flow_indexed_tensor *place_of(const flow_tensor_index *index, const flow_tensor *tensor)
{
  size_t mask = (size_t)index->capacity - 1, at = ((uintptr_t)tensor >> 6) * 0x9E3779B97F4A7C15u >> 20 & mask;
  while (index->entries[at].tensor && index->entries[at].tensor != tensor) at = (at + 1) & mask;
  return &index->entries[at];
}

int flow_tensor_index_find(const flow_tensor_index *index, const flow_tensor *tensor)
{
  if (!index->capacity) return -1;
  const flow_indexed_tensor *entry = place_of(index, tensor);
  return entry->tensor ? entry->value : -1;
}

/* Room for one more, so that the next put cannot fail. At most half of the places are taken. */
flow_status flow_tensor_index_reserve(flow_tensor_index *index)
{
  if (2 * (index->count + 1) <= index->capacity) return FLOW_OK;
  flow_tensor_index larger = { .count = index->count, .capacity = index->capacity ? 2 * index->capacity : 64 };
  void *block;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_indexed_tensor) * (size_t)larger.capacity, &block));
  larger.entries = block;
  for (int i = 0; i < index->capacity; i++)
    if (index->entries[i].tensor) *place_of(&larger, index->entries[i].tensor) = index->entries[i];
  flow_free(index->entries);
  *index = larger;
  return FLOW_OK;
}

flow_status flow_tensor_index_put(flow_tensor_index *index, const flow_tensor *tensor, int value)
{
  FLOW_TRY(flow_tensor_index_reserve(index));
  flow_indexed_tensor *entry = place_of(index, tensor);
  index->count += !entry->tensor;
  *entry = (flow_indexed_tensor){ .tensor = tensor, .value = value };
  return FLOW_OK;
}

void flow_tensor_index_free(flow_tensor_index *index)
{
  flow_free(index->entries);
  *index = (flow_tensor_index){ 0 };
}
