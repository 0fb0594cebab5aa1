/* token_counts.c: how often tokens come, in all and in how many documents: what a vocabulary is made of (adapt of Keras' StringLookup,
 * IntegerLookup and TextVectorization). Tokens are numbered in the order in which they come (token_table.h); the counts are arrays over
 * these numbers, and flow_token_counts_sorted puts them in order once, at the end. Counts have no locks: one caller at a time. */
#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "base/need.h"
#include "text/lookup.h"

/* A document counts a token once: `last` tells whether it has come in this one before. The rooms are those of flow_token_grow. */
struct flow_token_counts {
  flow_token_table tokens;
  int64_t         *times, *documents, *last;      /* [tokens]; last: number of the newest document that has it, from 1 */
  int64_t          times_room, documents_room, last_room, document_count;
};

/* Empty. One caller at a time uses it. */
flow_status flow_token_counts_new(flow_token_counts **out)
{
  FLOW_NEED(out);
  void *block;
  *out = NULL;
  FLOW_TRY(flow_alloc_zero(sizeof **out, &block));
  *out = block;
  return FLOW_OK;
}

void flow_token_counts_release(flow_token_counts *counts)
{
  if (!counts) return;
  flow_token_table_release(&counts->tokens);
  flow_free(counts->times);
  flow_free(counts->documents);
  flow_free(counts->last);
  flow_free(counts);
}

double flow_token_counts_documents(const flow_token_counts *counts)
{
  return counts ? (double)counts->document_count : 0;
}

/* Room first: a failure leaves the counts unchanged. */
static flow_status count_token(flow_token_counts *self, flow_token token)
{
  int64_t before = self->tokens.count, number;
  FLOW_TRY(flow_token_grow(&self->times, sizeof *self->times, before, before + 1, &self->times_room));
  FLOW_TRY(flow_token_grow(&self->documents, sizeof *self->documents, before, before + 1, &self->documents_room));
  FLOW_TRY(flow_token_grow(&self->last, sizeof *self->last, before, before + 1, &self->last_room));
  FLOW_TRY(flow_token_table_add(&self->tokens, token, &number));
  if (number == before) self->times[number] = self->documents[number] = self->last[number] = 0;
  self->times[number]++;
  if (self->last[number] < self->document_count) self->documents[number]++;
  self->last[number] = self->document_count;
  return FLOW_OK;
}

/* A failure in the middle leaves what came before it counted, of the document at which it failed, too. */
static flow_status add(flow_token_counts *self, const flow_lookup *lookup, const flow_string_reader *strings, flow_token_list *list)
{
  int64_t rows, row_strings;
  FLOW_TRY(flow_lookup_rows(lookup, strings, &rows, &row_strings));
  for (int64_t row = 0; row < rows; row++) {
    FLOW_TRY(flow_lookup_tokens(lookup, strings, row, row_strings, list));
    self->document_count++;
    for (int64_t i = 0; i < list->count; i++) FLOW_TRY(count_token(self, flow_token_list_get(list, i)));
  }
  return FLOW_OK;
}

/* lookup: whose options say how strings are standardized and split; its vocabulary is not read. */
flow_status flow_token_counts_add(flow_token_counts *counts, const flow_lookup *lookup, const flow_strings *strings)
{
  FLOW_NEED(counts, lookup, strings);
  flow_string_reader reader;
  flow_token_list list = { 0 };
  FLOW_TRY(flow_strings_open("adapt", strings, &reader));
  flow_status status = add(counts, lookup, &reader, &list);
  flow_token_list_release(&list);
  flow_strings_close(&reader);
  return status;
}

/* ---- in order ----------------------------------------------------------------------------------------------------------- */

typedef struct counted_token { flow_token token; int64_t times, documents, number; } counted_token;

/* Most frequent first. Among equals the orders below go from the last to the first, as in Keras: np.lexsort((tokens, counts))[::-1] in
 * IndexLookup.finalize_state. */
static int by_times(const counted_token *a, const counted_token *b) { return a->times < b->times ? 1 : a->times > b->times ? -1 : 0; }

/* For qsort; tokens are all different, so that the order is the same whatever the algorithm. Bytes count as unsigned, the longer of two of
 * which one begins with the other comes first. */
static int by_bytes(const void *left, const void *right)
{
  const counted_token *a = left, *b = right;
  int order = by_times(a, b);
  if (order) return order;
  int64_t size = a->token.size < b->token.size ? a->token.size : b->token.size;
  order = memcmp(b->token.bytes, a->token.bytes, (size_t)size);
  return order ? order : a->token.size < b->token.size ? 1 : -1;
}

/* By count, then by the number of the token, the later one first: a total order, so that equal counts have one, too. */
static int by_numbers(const void *left, const void *right)
{
  const counted_token *a = left, *b = right;
  int order = by_times(a, b);
  return order ? order : a->number < b->number ? 1 : -1;
}

/* The whole number that decimal digits say: those that flow_strings_get wrote, which fit. They are copied, since a token has no zero at its
 * end. */
static int64_t parse(flow_token token)
{
  char digits[FLOW_DIGITS] = { 0 };
  memcpy(digits, token.bytes, (size_t)(token.size < FLOW_DIGITS - 1 ? token.size : FLOW_DIGITS - 1));
  return strtoll(digits, NULL, 10);
}

/* The four results: bytes, offsets, times, documents. The bytes of all tokens are `used` of the table, whatever their order, and
 * offsets[0] is 0 since the tensor begins as zeros. On failure some may be made, which the caller releases. */
static flow_status write_sorted(const flow_token_counts *self, const counted_token *list, flow_tensor **out)
{
  int64_t count = self->tokens.count, ends = count + 1;
  FLOW_TRY(flow_tensor_new_uninitialized(FLOW_UINT8, 1, &self->tokens.used, &out[0]));
  FLOW_TRY(flow_tensor_new(FLOW_INT64, 1, &ends, &out[1]));
  FLOW_TRY(flow_tensor_new_uninitialized(FLOW_INT64, 1, &count, &out[2]));
  FLOW_TRY(flow_tensor_new_uninitialized(FLOW_INT64, 1, &count, &out[3]));
  int64_t *offsets = (int64_t *)out[1]->data;
  for (int64_t i = 0; i < count; i++) {
    if (list[i].token.size > 0) memcpy(out[0]->data + offsets[i], list[i].token.bytes, (size_t)list[i].token.size);
    offsets[i + 1] = offsets[i] + list[i].token.size;
    ((int64_t *)out[2]->data)[i] = list[i].times;
    ((int64_t *)out[3]->data)[i] = list[i].documents;
  }
  return FLOW_OK;
}

/* numeric: the tokens are numbers, which Keras sorts by their values. The list has one more entry than there are tokens, so that no memory
 * of size 0 is asked for. */
flow_status flow_token_counts_sorted(const flow_token_counts *counts, int numeric, flow_tensor **values, flow_tensor **offsets,
                                     flow_tensor **times, flow_tensor **documents)
{
  FLOW_NEED(counts, values, offsets, times, documents);
  flow_tensor *made[4] = { NULL };
  size_t bytes;
  void *block;
  *values = *offsets = *times = *documents = NULL;
  FLOW_TRY(flow_multiply((size_t)counts->tokens.count + 1, sizeof(counted_token), &bytes));
  FLOW_TRY(flow_alloc(bytes, &block));
  counted_token *list = block;
  for (int64_t i = 0; i < counts->tokens.count; i++) {
    flow_token token = flow_token_table_get(&counts->tokens, i);
    list[i] = (counted_token){ token, counts->times[i], counts->documents[i], numeric ? parse(token) : 0 };
  }
  qsort(list, (size_t)counts->tokens.count, sizeof *list, numeric ? by_numbers : by_bytes);
  flow_status status = write_sorted(counts, list, made);
  flow_free(list);
  if (status != FLOW_OK) {
    flow_tensors_release(made, 4);
    return status;
  }
  *values = made[0];
  *offsets = made[1];
  *times = made[2];
  *documents = made[3];
  return FLOW_OK;
}
