/* index_words.h: what the indices of a gather are, attributes.axis.axis, for the message where one is outside of the table. */
#ifndef FLOW_OPS_INDEX_WORDS_H
#define FLOW_OPS_INDEX_WORDS_H

enum {
  FLOW_INDICES,        /* of a table's rows */
  FLOW_PLACES_IN_CACHE /* of a table of places, where a call's steps begin in a cache (core/layers/attention_cache.c) */
};

#endif
