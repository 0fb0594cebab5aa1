/* token_table.c: a hash table with open addressing and linear probing over tokens that lie one after the other in one array. Places hold
 * numbers of tokens, not pointers, so that the arrays may move when they grow. Tokens are never removed: a search ends at the first empty
 * place. Without locks: a table that grows has one caller; find and get only read. See token_table.h. */
#include "text/token_table.h"

#include <string.h>
#include "base/memory.h"
#include "text/fingerprint.h"

/* After a failure the array is unchanged. Doubles, so that adding n tokens moves fewer than 2 n. flow_grow of base/memory.h counts in int,
 * which token numbers and bytes exceed. */
flow_status flow_token_grow(void *array_pointer, size_t size, int64_t count, int64_t wanted, int64_t *room)
{
  void **array = array_pointer, *larger;
  size_t bytes;
  if (wanted <= *room) return FLOW_OK;
  int64_t next = *room < 32 ? 64 : *room > INT64_MAX / 2 ? INT64_MAX : *room * 2;
  if (next < wanted) next = wanted;
  FLOW_TRY(flow_multiply((size_t)next, size, &bytes));
  FLOW_TRY(flow_alloc(bytes, &larger));
  if (count > 0) memcpy(larger, *array, (size_t)count * size);
  flow_free(*array);
  *array = larger;
  *room = next;
  return FLOW_OK;
}

/* number: 0 to count - 1, not checked. */
flow_token flow_token_table_get(const flow_token_table *table, int64_t number)
{
  int64_t begin = number > 0 ? table->ends[number - 1] : 0;
  return (flow_token){ table->bytes + begin, table->ends[number] - begin };
}

/* Bytes may be NULL where the size is 0. */
static int is_equal(flow_token a, flow_token b)
{
  return a.size == b.size && (a.size == 0 || memcmp(a.bytes, b.bytes, (size_t)a.size) == 0);
}

/* The place of a token, or the empty one where it belongs. */
static uint64_t place_of(const flow_token_table *table, flow_token token)
{
  uint64_t place = flow_fingerprint(token.bytes, (size_t)token.size) & (table->size - 1);
  while (table->found[place] && !is_equal(flow_token_table_get(table, table->found[place] - 1), token)) {
    place = (place + 1) & (table->size - 1);
  }
  return place;
}

int64_t flow_token_table_find(const flow_token_table *table, flow_token token)
{
  return table->size > 0 ? table->found[place_of(table, token)] - 1 : -1;
}

/* Twice as many places, filled from the tokens; the tokens themselves stay. At most half of the places are ever taken, so that a search
 * ends after few steps. */
static flow_status make_places(flow_token_table *table)
{
  flow_token_table larger = *table;
  size_t bytes;
  void *block;
  larger.size = table->size ? table->size * 2 : 64;
  FLOW_TRY(flow_multiply((size_t)larger.size, sizeof *larger.found, &bytes));
  FLOW_TRY(flow_alloc_zero(bytes, &block));
  larger.found = block;
  for (int64_t number = 0; number < table->count; number++) {
    larger.found[place_of(&larger, flow_token_table_get(table, number))] = number + 1;
  }
  flow_free(table->found);
  *table = larger;
  return FLOW_OK;
}

/* All room is made before anything changes: a failure leaves the table unchanged, but for room. */
flow_status flow_token_table_add(flow_token_table *table, flow_token token, int64_t *number)
{
  *number = flow_token_table_find(table, token);
  if (*number >= 0) return FLOW_OK;
  if ((uint64_t)table->count >= table->size / 2) FLOW_TRY(make_places(table));
  FLOW_TRY(flow_token_grow(&table->bytes, 1, table->used, table->used + token.size, &table->byte_room));
  FLOW_TRY(flow_token_grow(&table->ends, sizeof *table->ends, table->count, table->count + 1, &table->room));
  uint64_t place = place_of(table, token);
  if (token.size > 0) memcpy(table->bytes + table->used, token.bytes, (size_t)token.size);
  table->used += token.size;
  table->ends[table->count] = table->used;
  *number = table->count++;
  table->found[place] = table->count;
  return FLOW_OK;
}

/* The table may be used again: it is as new. */
void flow_token_table_release(flow_token_table *table)
{
  flow_free(table->bytes);
  flow_free(table->ends);
  flow_free(table->found);
  *table = (flow_token_table){ 0 };
}
