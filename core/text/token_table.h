/* token_table.h: tokens by their bytes, each with its number in the order in which they came. */
#ifndef FLOW_TEXT_TOKEN_TABLE_H
#define FLOW_TEXT_TOKEN_TABLE_H

#include "base/status.h"

typedef struct flow_token { const char *bytes; int64_t size; } flow_token;

/* Numbers of tokens in the order in which they were added, found by hashing. */
typedef struct flow_token_table {
  char    *bytes;                              /* of all tokens, one after the other */
  int64_t  used, byte_room;
  int64_t *ends;                               /* [count]: of each in `bytes` */
  int64_t  count, room;
  int64_t *found;                              /* [size]: number of a token + 1, 0: none; open addressing */
  uint64_t size;                               /* a power of two, or 0 */
} flow_token_table;                            /* begins as zeros */

/* Number of the token; -1: it is not there. */
int64_t     flow_token_table_find(const flow_token_table *table, flow_token token);
/* The same; a token that is not there gets the next number. */
flow_status flow_token_table_add(flow_token_table *table, flow_token token, int64_t *number);
/* Token `number`, which points into the table until another one is added. */
flow_token  flow_token_table_get(const flow_token_table *table, int64_t number);
void        flow_token_table_release(flow_token_table *table);      /* frees what it holds */

/* Room for `wanted` elements of this size, of which `count` are kept; *room counts elements. */
flow_status flow_token_grow(void *array_pointer, size_t size, int64_t count, int64_t wanted, int64_t *room);

#endif
