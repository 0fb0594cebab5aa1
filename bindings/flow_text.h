/* flow_text.h: a part of flow.h, which includes it: strings and what becomes of them. Types and conventions are explained there. */
#ifndef FLOW_TEXT_H
#define FLOW_TEXT_H

/* ---- strings ----------------------------------------------------------------------------------------------------- */

/* Strings are bytes on the host. A tensor of strings of shape {a, b} stands for itself in one of two forms:
 *   values uint8 {bytes}, offsets int64 {a * b + 1}: string k is bytes offsets[k] to offsets[k + 1];
 *   values uint8 {a, b, longest}, offsets NULL: each string is followed by zeros, as in the batches of a dataset; {} is uint8 {bytes}.
 * Where is_text is 0, values are whole numbers, each of which stands for its decimal digits; offsets are NULL then. */
typedef struct flow_strings {
  const flow_tensor *values, *offsets;
  int32_t            is_text, rank;
  int64_t            shape[8];       /* of the strings; read where there are offsets */
  int32_t            is_column, unused;      /* is_column: they stand for strings with a further last axis of size 1 */
} flow_strings;

/* How strings become numbers (Keras' TextVectorization, StringLookup, IntegerLookup and Hashing). */
enum { FLOW_STANDARDIZE_LOWER = 1, FLOW_STANDARDIZE_STRIP_PUNCTUATION = 2 };      /* a sum of these; letters are those of ASCII */
enum { FLOW_SPLIT_NONE = 0, FLOW_SPLIT_WHITESPACE, FLOW_SPLIT_CHARACTER };        /* characters are those of UTF-8 */
enum { FLOW_ENCODE_INT = 0, FLOW_ENCODE_ONE_HOT, FLOW_ENCODE_MULTI_HOT, FLOW_ENCODE_COUNT, FLOW_ENCODE_TF_IDF };
/* REMAINDER: of a whole number, by the number of buckets; of other texts as FARM. ONE_HOT, above, is for strings that are neither split
 * nor joined. */
enum { FLOW_HASH_FARM = 0, FLOW_HASH_SIP, FLOW_HASH_REMAINDER };      /* of a token that is in no vocabulary: its bucket */
typedef struct flow_lookup_options {
  int32_t  standardize, split;
  int32_t  ngram_count, ngrams[8];   /* widths; none: single tokens only */
  int32_t  encode, dtype;            /* of the result */
  int32_t  hash;
  int32_t  has_mask;                 /* the token `mask` becomes 0 where the result is whole numbers, else it is left out */
  uint64_t key[2];                   /* of FLOW_HASH_SIP */
  double   length;                   /* FLOW_ENCODE_INT of split strings: numbers in each row; -1: as many as the longest row has */
  double   buckets;                  /* of tokens that are in no vocabulary; 0: they are an error */
  double   depth;                    /* numbers in a row of an encoding */
} flow_lookup_options;

typedef struct flow_lookup flow_lookup;            /* a vocabulary and those options: immutable, shared */
typedef struct flow_token_counts flow_token_counts;      /* how often each token came */

/* vocabulary: its tokens, or NULL; token k becomes k + the number of buckets (+ 1, where a mask has the number 0). weights (float32
 * {depth}, NULL: none): what a row's counts are multiplied by for FLOW_ENCODE_TF_IDF. Returns a new reference; what it was given may be
 * released. */
FLOW_API flow_status flow_lookup_new(const flow_lookup_options *options, const flow_strings *mask, const flow_strings *vocabulary,
                                     const flow_tensor *weights, flow_lookup **out);
/* One more reference, and one less (NULL is fine). From any thread. */
FLOW_API flow_lookup *flow_lookup_retain(flow_lookup *lookup);
FLOW_API void        flow_lookup_release(flow_lookup *lookup);
/* The numbers of strings, as Keras' layers shape them. New reference. */
FLOW_API flow_status flow_lookup_apply(const flow_lookup *lookup, const flow_strings *strings, flow_tensor **out);
/* The same of component `component` (from 0) of a dataset's elements: the result becomes a further component, the last one. form: a sum of
 * 1, where it is strings, and 2, where it stands for one with a further last axis of size 1. */
FLOW_API flow_status flow_function_lookup(flow_lookup *lookup, int component, int form, flow_function **out);

/* Counts of tokens, with none at first. */
FLOW_API flow_status flow_token_counts_new(flow_token_counts **out);
/* NULL is fine. */
FLOW_API void        flow_token_counts_release(flow_token_counts *counts);
/* Adds tokens of strings, as the lookup makes them. Each row is a document: of one string if it is split, else along the last axis. */
FLOW_API flow_status flow_token_counts_add(flow_token_counts *counts, const flow_lookup *lookup, const flow_strings *strings);
/* How many documents were added. */
FLOW_API double      flow_token_counts_documents(const flow_token_counts *counts);
/* The tokens from the most frequent to the least, equal ones from the last to the first in the order of bytes, or of numbers: in the first
 * form of flow_strings, and for each (int64 {tokens}) how often it came and in how many documents. New references. */
FLOW_API flow_status flow_token_counts_sorted(const flow_token_counts *counts, int numeric, flow_tensor **values, flow_tensor **offsets,
                                              flow_tensor **times, flow_tensor **documents);

/* Keras' HashedCrossing: the combination of several strings or whole numbers (int64) as a number from 0 to bins - 1, int64. */
FLOW_API flow_status flow_hash_crossing(const flow_strings *columns, int count, double bins, flow_tensor **out);
/* The same for a dataset: of these components (from 0) of each element, with their forms as flow_function_lookup takes them; the result
 * becomes a further component. New reference. */
FLOW_API flow_status flow_function_crossing(const int *components, const int *forms, int count, double bins, flow_function **out);

#endif
