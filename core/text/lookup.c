/* lookup.c: see flow.h and lookup.h. A row of tokens becomes numbers, and those what the option `encode` says: the numbers themselves,
 * padded with zeros, or a row of `depth` in which they are marked or counted. keras/src/layers/preprocessing/index_lookup.py.
 *
 * A call reads its strings through one reader, whatever tensor they are in; each row is standardized, split and joined to n-grams
 * (token_list), each token numbered; then the result is written at once, when the longest row is known. */
#include "text/lookup.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>
#include "base/hash.h"
#include "base/memory.h"
#include "base/need.h"
#include "text/fingerprint.h"

static const int64_t LEFT_OUT = INT64_MAX;      /* the number of a token that stands for nothing */

/* What the options became after checking: whole numbers. The vocabulary's numbers begin at 0 here; buckets and mask come before them in
 * results (number_of). identity tells lookups apart when datasets are compared. */
struct flow_lookup {
  _Atomic int         references;
  flow_lookup_options options;
  int64_t             buckets, depth, length;
  char               *mask;
  int64_t             mask_size;
  flow_token_table    vocabulary;
  float              *weights;      /* [depth], or NULL */
  uint64_t            identity;
};

/* ---- life --------------------------------------------------------------------------------------------------------------- */

/* A copy of the one token that is masked. On failure the caller releases the lookup, with what it has until then. The
 * same holds for the two functions below. */
static flow_status fill_mask(flow_lookup *self, const flow_strings *mask)
{
  char digits[FLOW_DIGITS];
  flow_string_reader reader;
  void *block;
  if (!self->options.has_mask) return FLOW_OK;
  if (!mask) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_lookup_new: has_mask is set, and mask is NULL: pass the token");
  FLOW_TRY(flow_strings_open("the mask token", mask, &reader));
  flow_status status = reader.count == 1 ? FLOW_OK : flow_fail(FLOW_INVALID_ARGUMENT, "one mask token is needed, found %lld",
                                                               (long long)reader.count);
  if (status == FLOW_OK) {
    flow_token token = flow_strings_get(&reader, 0, digits);
    status = flow_alloc((size_t)token.size + 1, &block);
    if (status == FLOW_OK) {
      self->mask = memcpy(block, token.bytes ? token.bytes : "", (size_t)token.size);
      self->mask_size = token.size;
      self->identity = flow_hash(self->identity, self->mask, (size_t)self->mask_size);
    }
  }
  flow_strings_close(&reader);
  return status;
}

/* Tokens get the numbers 0, 1, ... in their order; one that comes twice would have two. */
static flow_status fill_vocabulary(flow_lookup *self, const flow_strings *vocabulary)
{
  flow_string_reader reader;
  char digits[FLOW_DIGITS];
  if (!vocabulary) return FLOW_OK;
  FLOW_TRY(flow_strings_open("the vocabulary", vocabulary, &reader));
  flow_status status = FLOW_OK;
  for (int64_t i = 0; i < reader.count && status == FLOW_OK; i++) {
    flow_token token = flow_strings_get(&reader, i, digits);
    int64_t number;
    status = flow_token_table_add(&self->vocabulary, token, &number);
    self->identity = flow_hash(self->identity, token.bytes, (size_t)token.size);
    if (status == FLOW_OK && number < i) {
      status = flow_fail(FLOW_INVALID_ARGUMENT, "the vocabulary has \"%.*s\" twice, as entries %lld and %lld: each token stands there once",
                         (int)(token.size < 100 ? token.size : 100), token.bytes, (long long)number + 1, (long long)i + 1);
    }
  }
  flow_strings_close(&reader);
  return status;
}

/* A copy: the caller's tensor may change. */
static flow_status fill_weights(flow_lookup *self, const flow_tensor *weights)
{
  flow_tensor *host;
  void *block;
  if (self->options.encode != FLOW_ENCODE_TF_IDF) return FLOW_OK;
  if (!weights) return flow_fail(FLOW_INVALID_ARGUMENT, "tf_idf needs a weight for each number");
  FLOW_TRY(flow_tensor_on_host_contiguous(weights, &host));
  flow_status status = host->dtype == FLOW_FLOAT32 && host->rank == 1 && host->shape[0] == self->depth
                     ? flow_alloc(sizeof(float) * (size_t)self->depth + 1, &block)
                     : flow_fail(FLOW_INVALID_ARGUMENT, "the weights of tf_idf are float32 {%lld}, found %s %s", (long long)self->depth,
                                 flow_dtype_name(host->dtype), flow_shape_text(host->rank, host->shape));
  if (status == FLOW_OK) {
    self->weights = memcpy(block, host->data, sizeof(float) * (size_t)self->depth);
    self->identity = flow_hash(self->identity, self->weights, sizeof(float) * (size_t)self->depth);
  }
  flow_tensor_release(host);
  return status;
}

/* Bounds that the arrays of the options have, and dtype; Lua checks names before. */
static flow_status check_options(const flow_lookup_options *options)
{
  int fits = options->ngram_count >= 0 && options->ngram_count <= 8 && options->split >= 0 && options->split <= FLOW_SPLIT_CHARACTER;
  for (int i = 0; fits && i < options->ngram_count; i++) fits = options->ngrams[i] >= 1;
  fits = fits && options->encode >= 0 && options->encode <= FLOW_ENCODE_TF_IDF && flow_dtype_name(options->dtype) != NULL;
  if (!fits) return flow_fail(FLOW_INVALID_ARGUMENT, "a lookup: an option has a value that flow.h does not name");
  if (options->encode == FLOW_ENCODE_ONE_HOT && (options->split != FLOW_SPLIT_NONE || options->ngram_count > 0))
    return flow_fail(FLOW_INVALID_ARGUMENT, "a lookup: one_hot has a row for each string, so that strings cannot be split or joined "
                                            "for it");
  return FLOW_OK;
}

/* mask: one string, needed if options->has_mask is set; vocabulary: may be NULL for none; weights: float32 {depth}, for
 * tf_idf only. All are copied. *out is a new reference, NULL on failure. From then on a lookup is not changed, so that
 * several threads may use it at once. */
flow_status flow_lookup_new(const flow_lookup_options *options, const flow_strings *mask, const flow_strings *vocabulary,
                            const flow_tensor *weights, flow_lookup **out)
{
  FLOW_NEED(out);
  void *block;
  int64_t buckets, depth, length;
  *out = NULL;
  FLOW_NEED(options);
  FLOW_TRY(check_options(options));
  FLOW_TRY(flow_check_whole("a lookup", "buckets", options->buckets, 0, &buckets));
  FLOW_TRY(flow_check_whole("a lookup", "depth", options->depth, 0, &depth));
  FLOW_TRY(flow_check_whole("a lookup", "length", options->length, -1, &length));
  FLOW_TRY(flow_alloc_zero(sizeof **out, &block));
  flow_lookup *self = block;
  atomic_init(&self->references, 1);
  self->options = *options;
  self->buckets = buckets;
  self->depth = depth;
  self->length = length;
  self->identity = flow_hash(FLOW_HASH_BEGIN, options, sizeof *options);
  flow_status status = fill_mask(self, mask);
  if (status == FLOW_OK) status = fill_vocabulary(self, vocabulary);
  if (status == FLOW_OK) status = fill_weights(self, weights);
  if (status == FLOW_OK) *out = self;
  else flow_lookup_release(self);
  return status;
}

/* References are atomic: datasets of several threads hold one lookup. NULL is fine. */
flow_lookup *flow_lookup_retain(flow_lookup *lookup)
{
  if (lookup) atomic_fetch_add_explicit(&lookup->references, 1, memory_order_relaxed);
  return lookup;
}

void flow_lookup_release(flow_lookup *lookup)
{
  if (!lookup || atomic_fetch_sub_explicit(&lookup->references, 1, memory_order_acq_rel) > 1) return;
  flow_free(lookup->mask);
  flow_free(lookup->weights);
  flow_token_table_release(&lookup->vocabulary);
  flow_free(lookup);
}

/* Constants of a lookup. */
int flow_lookup_dtype(const flow_lookup *lookup) { return lookup->options.dtype; }
uint64_t flow_lookup_identity(const flow_lookup *lookup) { return lookup->identity; }

/* ---- shapes ------------------------------------------------------------------------------------------------------------- */

/* Whether a row's number of tokens is not its number of strings. */
static int is_joined(const flow_lookup *self) { return self->options.split != FLOW_SPLIT_NONE || self->options.ngram_count > 0; }

/* Keras' rules, by encoding: int keeps the shape, or ends in `length` where strings are split or joined; one_hot adds an axis of
 * `depth`, in place of a last axis of size 1; the others put `depth` in place of the last axis, whose strings are one row. Splitting
 * takes a last axis of size 1 away first. */
flow_status flow_lookup_shape(const flow_lookup *self, int *rank, int64_t *shape)
{
  int splits = self->options.split != FLOW_SPLIT_NONE, encode = self->options.encode;
  if (splits && *rank > 1) {
    if (shape[*rank - 1] != 1) {
      return flow_fail(FLOW_INVALID_ARGUMENT, "strings to be split have the shape %s: one axis is needed, or a last one of size 1",
                       flow_shape_text(*rank, shape));
    }
    --*rank;
  }
  if (encode == FLOW_ENCODE_ONE_HOT) {
    if (*rank > 1 && shape[*rank - 1] == 1) --*rank;
    if (*rank == 0) shape[(*rank)++] = 1;
  } else if (encode != FLOW_ENCODE_INT) {
    if (!splits && *rank > 0) --*rank;
  } else if (!is_joined(self)) {
    if (*rank > 0 && self->length >= 0) shape[*rank - 1] = self->length;
    return FLOW_OK;
  } else if (!splits && *rank > 0) {
    --*rank;
  }
  if (*rank == FLOW_MAX_RANK) return flow_fail(FLOW_UNSUPPORTED, "strings of rank %d have too many axes to be looked up", *rank);
  shape[(*rank)++] = encode == FLOW_ENCODE_INT ? self->length : self->depth;
  return FLOW_OK;
}

/* An axis of size 0 still has rows, each of no tokens. */
flow_status flow_lookup_rows(const flow_lookup *self, const flow_string_reader *strings, int64_t *rows, int64_t *row_strings)
{
  if (self->options.split != FLOW_SPLIT_NONE && !strings->is_text)
    return flow_fail(FLOW_INVALID_ARGUMENT, "strings are needed to be split, found numbers");
  *row_strings = self->options.split != FLOW_SPLIT_NONE || strings->rank == 0 ? 1 : strings->shape[strings->rank - 1];
  *rows = *row_strings > 0 ? strings->count / *row_strings : flow_shape_size(strings->rank - 1, strings->shape);
  return FLOW_OK;
}

/* Tokens of row `row` in *list, which is emptied first and keeps its memory for the next row. */
flow_status flow_lookup_tokens(const flow_lookup *self, const flow_string_reader *strings, int64_t row, int64_t row_strings,
                               flow_token_list *list)
{
  char digits[FLOW_DIGITS];
  flow_token_list_clear(list);
  for (int64_t i = row * row_strings; i < (row + 1) * row_strings; i++) {
    FLOW_TRY(flow_token_list_add(list, flow_strings_get(strings, i, digits), self->options.standardize, self->options.split));
  }
  return self->options.ngram_count > 0 ? flow_token_list_join(list, self->options.ngrams, self->options.ngram_count) : FLOW_OK;
}

/* ---- numbers ------------------------------------------------------------------------------------------------------------ */

/* Whether a token is a whole number in decimal digits, as flow_strings_get writes one. A text may be anything. */
static int is_whole_number(flow_token token)
{
  int64_t first = token.size > 0 && token.bytes[0] == '-';
  for (int64_t i = first; i < token.size; i++)
    if (token.bytes[i] < '0' || token.bytes[i] > '9') return 0;
  return token.size > first;
}

/* The remainder of such a number, as Python's %: never negative. divisor is at most 2^53 (flow_check_whole), so that
 * remainder * 10 + 9 stays below 2^57. A number of any length has a remainder, also one that is larger than int64. */
static int64_t remainder_of(flow_token token, int64_t divisor)
{
  int64_t remainder = 0;
  int negative = token.size > 0 && token.bytes[0] == '-';
  for (int64_t i = negative; i < token.size; i++) remainder = (remainder * 10 + (token.bytes[i] - '0')) % divisor;
  return negative && remainder > 0 ? divisor - remainder : remainder;
}

/* The bucket of a token that is not in the vocabulary, from 0. With a single one nothing is hashed. There is at least one: number_of has
 * seen it. */
static int64_t bucket_of(const flow_lookup *self, flow_token token)
{
  if (self->buckets == 1) return 0;
  if (self->options.hash == FLOW_HASH_REMAINDER && is_whole_number(token)) return remainder_of(token, self->buckets);
  uint64_t hash = self->options.hash == FLOW_HASH_SIP ? flow_sip_hash(self->options.key, token.bytes, (size_t)token.size)
                                                      : flow_fingerprint(token.bytes, (size_t)token.size);
  return (int64_t)(hash % (uint64_t)self->buckets);
}

/* In int encodings: 0 for the mask, if there is one, then the buckets, then the vocabulary. In the others the mask has no number and is
 * left out. */
static flow_status number_of(const flow_lookup *self, flow_token token, int64_t *out)
{
  int64_t first = self->options.has_mask && self->options.encode == FLOW_ENCODE_INT;
  if (self->options.has_mask && token.size == self->mask_size && memcmp(token.bytes, self->mask, (size_t)token.size) == 0) {
    *out = first ? 0 : LEFT_OUT;
    return FLOW_OK;
  }
  int64_t number = flow_token_table_find(&self->vocabulary, token);
  if (number < 0 && self->buckets == 0) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "\"%.*s\" is not in the vocabulary, and num_oov_indices = 0 has no number for such tokens",
                     (int)(token.size < 100 ? token.size : 100), token.bytes);
  }
  *out = first + (number < 0 ? bucket_of(self, token) : self->buckets + number);
  return FLOW_OK;
}

/* Numbers of all rows under construction. */
typedef struct row_numbers { int64_t *numbers, count, room, *ends, row_room, longest; } row_numbers;

/* ends[row]: where the numbers of row `row` end. The rows' lengths differ. */
static flow_status number_rows(const flow_lookup *self, const flow_string_reader *strings, int64_t rows, int64_t row_strings,
                               row_numbers *out)
{
  flow_token_list list = { 0 };
  flow_status status = flow_token_grow(&out->ends, sizeof *out->ends, 0, rows + 1, &out->row_room);
  for (int64_t row = 0; row < rows && status == FLOW_OK; row++) {
    int64_t begin = out->count;
    status = flow_lookup_tokens(self, strings, row, row_strings, &list);
    if (status == FLOW_OK) status = flow_token_grow(&out->numbers, sizeof *out->numbers, begin, begin + list.count, &out->room);
    for (int64_t i = 0; i < list.count && status == FLOW_OK; i++)
      status = number_of(self, flow_token_list_get(&list, i), &out->numbers[out->count++]);
    out->ends[row] = out->count;
    if (list.count > out->longest) out->longest = list.count;
  }
  flow_token_list_release(&list);
  return status;
}

/* ---- results ------------------------------------------------------------------------------------------------------------ */

/* Cuts a row off at `length`, or fills it up with zeros. A negative length does not occur: it was replaced by the
 * longest row's. */
static void write_numbers(const row_numbers *found, int64_t rows, int64_t length, int64_t *to)
{
  for (int64_t row = 0, at = 0; row < rows; row++, to += length) {
    int64_t count = found->ends[row] - at, kept = count < length ? count : length;
    if (kept > 0) memcpy(to, found->numbers + at, sizeof *to * (size_t)kept);
    if (length > kept) memset(to + kept, 0, sizeof *to * (size_t)(length - kept));
    at = found->ends[row];
  }
}

/* Marks or counts in float32: counts stay exact up to 2^24. A one-hot row belongs to a token, the others to a row of
 * tokens. `to` has `depth` numbers for each row, or for each token, which are 0 at first. A one-hot row of a token that
 * is left out stays 0. */
static flow_status write_encoding(const flow_lookup *self, const row_numbers *found, int64_t rows, float *to)
{
  int encode = self->options.encode;
  for (int64_t row = 0, at = 0; row < rows; row++) {
    float *into = to + row * self->depth;
    for (; at < found->ends[row]; at++) {
      int64_t number = found->numbers[at];
      if (encode == FLOW_ENCODE_ONE_HOT) into = to + at * self->depth;
      if (number == LEFT_OUT) continue;
      if (number >= self->depth) {
        return flow_fail(FLOW_INVALID_ARGUMENT, "a token has the number %lld, an encoding has %lld", (long long)number,
                         (long long)self->depth);
      }
      into[number] = encode == FLOW_ENCODE_ONE_HOT || encode == FLOW_ENCODE_MULTI_HOT ? 1 : into[number] + 1;
    }
    for (int64_t i = 0; encode == FLOW_ENCODE_TF_IDF && i < self->depth; i++) into[i] *= self->weights[i];
  }
  return FLOW_OK;
}

/* Computed in int64 or float32 and cast at the end to the dtype that was asked for. */
static flow_status write_result(const flow_lookup *self, const flow_string_reader *strings, const row_numbers *found, int64_t rows,
                                flow_tensor **out)
{
  int rank = strings->rank, whole = self->options.encode == FLOW_ENCODE_INT;
  int64_t shape[FLOW_MAX_RANK];
  flow_tensor *made;
  memcpy(shape, strings->shape, sizeof shape);
  FLOW_TRY(flow_lookup_shape(self, &rank, shape));
  if (rank > 0 && shape[rank - 1] < 0) shape[rank - 1] = found->longest;
  FLOW_TRY(flow_tensor_new(whole ? FLOW_INT64 : FLOW_FLOAT32, rank, shape, &made));
  flow_status status = FLOW_OK;
  if (whole) write_numbers(found, rows, rank > 0 ? shape[rank - 1] : 1, (int64_t *)made->data);
  else status = write_encoding(self, found, rows, (float *)made->data);
  if (status == FLOW_OK && made->dtype != self->options.dtype) {
    flow_tensor *cast;
    status = flow_tensor_new_uninitialized(self->options.dtype, rank, shape, &cast);
    if (status == FLOW_OK) {
      status = flow_tensor_copy(cast, made);
      flow_tensor_release(made);
      made = cast;
    }
  }
  if (status == FLOW_OK) *out = made;
  else flow_tensor_release(made);
  return status;
}

/* The shape is checked before the tokens are made, since splitting long texts takes time. On failure *out is NULL. */
flow_status flow_lookup_apply(const flow_lookup *lookup, const flow_strings *strings, flow_tensor **out)
{
  FLOW_NEED(out);
  flow_string_reader reader;
  row_numbers found = { 0 };
  int64_t rows, row_strings;
  *out = NULL;
  FLOW_NEED(lookup, strings);
  FLOW_TRY(flow_strings_open("a lookup", strings, &reader));
  int rank = reader.rank;
  int64_t shape[FLOW_MAX_RANK];
  memcpy(shape, reader.shape, sizeof shape);
  flow_status status = flow_lookup_shape(lookup, &rank, shape);
  if (status == FLOW_OK) status = flow_lookup_rows(lookup, &reader, &rows, &row_strings);
  if (status == FLOW_OK) status = number_rows(lookup, &reader, rows, row_strings, &found);
  if (status == FLOW_OK) status = write_result(lookup, &reader, &found, rows, out);
  flow_free(found.numbers);
  flow_free(found.ends);
  flow_strings_close(&reader);
  return status;
}
