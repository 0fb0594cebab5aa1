/* strings.h: flow_strings (flow.h) as tokens, and one string as the tokens that it is split into. */
#ifndef FLOW_TEXT_STRINGS_H
#define FLOW_TEXT_STRINGS_H

#include "tensor/tensor.h"
#include "text/token_table.h"

/* Strings that are open for reading; holds references. */
typedef struct flow_string_reader {
  flow_tensor   *values, *offsets;   /* without gaps; offsets NULL: each string has `width` bytes, or values are int64 numbers */
  const int64_t *at;                 /* of offsets */
  int            is_text, rank, exact;      /* exact: the bytes of the one string are all its own */
  int64_t        shape[FLOW_MAX_RANK];
  int64_t        count, width;
} flow_string_reader;

enum { FLOW_DIGITS = 24 };           /* bytes that a number needs at most */

/* FLOW_INVALID_ARGUMENT if they are not in one of the forms that flow.h names; `what` names the call. */
flow_status flow_strings_open(const char *what, const flow_strings *strings, flow_string_reader *out);
void        flow_strings_close(flow_string_reader *reader);
/* String `index`; digits: where those of a number are written. */
flow_token  flow_strings_get(const flow_string_reader *reader, int64_t index, char digits[FLOW_DIGITS]);
/* The component of an element of a dataset; rank 1: one string. */
flow_strings flow_strings_of_component(const flow_tensor *values, int is_text);

/* Tokens under construction: bytes, and where each token begins and ends in them. Begins as zeros. */
typedef struct flow_token_list {
  char    *bytes;
  int64_t  used, byte_room;
  int64_t *spans;                    /* [2 * count] */
  int64_t  count, room;              /* room: of spans, in numbers */
} flow_token_list;

/* Token number `index`, from 0 and below count; borrowed until the list changes. */
flow_token  flow_token_list_get(const flow_token_list *list, int64_t index);
/* Removes all tokens and keeps the memory, for the next string. */
void        flow_token_list_clear(flow_token_list *list);
void        flow_token_list_release(flow_token_list *list);
/* Adds the tokens of a string: standardize and split are the options of flow_lookup_options. */
flow_status flow_token_list_add(flow_token_list *list, flow_token string, int standardize, int split);
/* Puts in place of the tokens what tf.strings.ngrams makes of them: for each width all runs of that many tokens, with a blank between
 * two. */
flow_status flow_token_list_join(flow_token_list *list, const int32_t *widths, int count);

#endif
