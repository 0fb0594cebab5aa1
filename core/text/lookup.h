/* lookup.h: flow_lookup (flow.h): strings to numbers, for stages of datasets and for counting tokens. */
#ifndef FLOW_TEXT_LOOKUP_H
#define FLOW_TEXT_LOOKUP_H

#include "text/strings.h"

/* What the result of a lookup looks like, before its values are known: -1 where it depends on them. shape: of the strings, with room for
 * FLOW_MAX_RANK; becomes that of the result. FLOW_INVALID_ARGUMENT if such strings cannot be looked up. */
flow_status flow_lookup_shape(const flow_lookup *lookup, int *rank, int64_t *shape);
int         flow_lookup_dtype(const flow_lookup *lookup);
uint64_t    flow_lookup_identity(const flow_lookup *lookup);      /* of vocabulary and options */

/* Rows of tokens: where strings are split one for each of them, else those along the last axis; and how many strings a row is made of. */
flow_status flow_lookup_rows(const flow_lookup *lookup, const flow_string_reader *strings, int64_t *rows, int64_t *row_strings);
/* The tokens of row `row`. */
flow_status flow_lookup_tokens(const flow_lookup *lookup, const flow_string_reader *strings, int64_t row, int64_t row_strings,
                               flow_token_list *list);

/* What flow_hash_crossing makes; see flow.h. */
flow_status flow_crossing_check(int count, double bins, int64_t *whole);

#endif
