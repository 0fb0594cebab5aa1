/* fetch.h: asking for memory ahead of its use. */
#ifndef FLOW_CPU_ELEMENTWISE_FETCH_H
#define FLOW_CPU_ELEMENTWISE_FETCH_H

#include <stdint.h>

/* Memory that will be read soon: `rows` rows that are left of `floats` floats each, `ld` floats apart; at_once: rows that one call asks
 * for. A prefetch does not count as an access: a region may reach beyond an array. */
typedef struct region { const float *at; int64_t ld, rows, floats, at_once; } region;

/* Asks for the next at_once rows of a region. Spread over the tiles: all at once would fill the queue of misses, and the
 * processor would wait. */
static inline void fetch_some(region *r)
{
  enum { LINE = 16 };                                /* floats of a cache line */
  int64_t n = r->at_once < r->rows ? r->at_once : r->rows;
  for (; n > 0; n--, r->rows--, r->at += r->ld)
    for (int64_t i = 0; i < r->floats; i += LINE) __builtin_prefetch(r->at + i, 0, 2);
}

/* The same for memory that will be written: other cores give up its lines. */
static inline void fetch_some_to_write(region *r)
{
  enum { LINE = 16 };
  int64_t n = r->at_once < r->rows ? r->at_once : r->rows;
  for (; n > 0; n--, r->rows--, r->at += r->ld)
    for (int64_t i = 0; i < r->floats; i += LINE) __builtin_prefetch(r->at + i, 1, 2);
}

#endif
