/* strings.c: reading flow_strings, and splitting a string into tokens. A reader looks at host memory only and is checked as a whole when
 * it is opened, so that flow_strings_get reads without checks; several threads may read one reader. A token list has one user, who clears
 * it and uses it again from row to row. Bytes are UTF-8 by convention: case and punctuation are those of ASCII, as tf.strings.lower has it
 * with an empty encoding. See strings.h. */
#include "text/strings.h"

#include <stdio.h>
#include <string.h>
#include "base/memory.h"

/* ---- strings ----------------------------------------------------------------------------------------------------------- */

/* Offsets come from callers: each string has to begin where the one before ends or later, and end within the bytes. Checked once, so
 * that flow_strings_get need not. */
static flow_status check_offsets(const char *what, const flow_string_reader *reader)
{
  const flow_tensor *offsets = reader->offsets;
  if (offsets->dtype != FLOW_INT64 || offsets->rank != 1 || reader->values->rank != 1 || offsets->shape[0] != reader->count + 1) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s: strings are uint8 {bytes} with int64 offsets {strings + 1}", what);
  }
  int64_t before = 0;
  for (int64_t i = 0; i <= reader->count; i++) {
    if (reader->at[i] < before || reader->at[i] > reader->values->shape[0]) {
      return flow_fail(FLOW_INVALID_ARGUMENT, "%s: offset %lld of string %lld is outside of %lld to %lld", what, (long long)reader->at[i],
                       (long long)i + 1, (long long)before, (long long)reader->values->shape[0]);
    }
    before = reader->at[i];
  }
  return FLOW_OK;
}

/* Whole numbers of any dtype as int64; floats are cut off, as casts do. Values on a GPU are fetched. */
static flow_status open_numbers(const char *what, const flow_tensor *values, flow_string_reader *out)
{
  flow_tensor *host;
  if (values->dtype == FLOW_BOOL) return flow_fail(FLOW_INVALID_ARGUMENT, "%s takes strings or numbers, found bool", what);
  FLOW_TRY(flow_tensor_on_host_contiguous(values, &host));
  if (host->dtype == FLOW_INT64) {
    out->values = host;
    return FLOW_OK;
  }
  flow_status status = flow_tensor_new_uninitialized(FLOW_INT64, host->rank, host->shape, &out->values);
  if (status == FLOW_OK) status = flow_tensor_copy(out->values, host);
  flow_tensor_release(host);
  return status;
}

/* The two forms of flow.h: offsets, or one width for all. */
static flow_status open_texts(const char *what, const flow_strings *strings, flow_string_reader *out)
{
  if (strings->values->dtype != FLOW_UINT8 || strings->values->rank < 1) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s: strings are bytes, uint8 with an axis for them, found %s %s", what,
                     flow_dtype_name(strings->values->dtype), flow_shape_text(strings->values->rank, strings->values->shape));
  }
  FLOW_TRY(flow_tensor_on_host_contiguous(strings->values, &out->values));
  if (strings->offsets) {
    FLOW_TRY(flow_tensor_on_host_contiguous(strings->offsets, &out->offsets));
    out->at = (const int64_t *)out->offsets->data;
    return FLOW_OK;
  }
  out->width = out->values->shape[out->values->rank - 1];
  out->exact = out->values->rank == 1;
  return FLOW_OK;
}

/* `out` holds references until flow_strings_close; after a failure it holds none. Host copies are made where values are strided or on a
 * GPU. */
flow_status flow_strings_open(const char *what, const flow_strings *strings, flow_string_reader *out)
{
  *out = (flow_string_reader){ .is_text = strings->is_text };
  FLOW_TRY(flow_check_concrete(what, strings->values));
  if (strings->offsets) FLOW_TRY(flow_check_concrete(what, strings->offsets));
  flow_status status = strings->is_text ? open_texts(what, strings, out) : open_numbers(what, strings->values, out);
  if (status == FLOW_OK) {
    const int64_t *shape = out->offsets ? strings->shape : out->values->shape;
    out->rank = out->offsets ? strings->rank : out->values->rank - (out->is_text != 0);
    if (out->rank < 0 || out->rank >= FLOW_MAX_RANK) status = flow_fail(FLOW_INVALID_ARGUMENT, "%s: strings of rank %d", what, out->rank);
    else {
      memcpy(out->shape, shape, sizeof *shape * (size_t)out->rank);
      if (strings->is_column) out->shape[out->rank++] = 1;
      out->count = flow_shape_size(out->rank, out->shape);
      if (out->count < 0)
        status = flow_fail(FLOW_INVALID_ARGUMENT, "%s: strings of shape %s", what, flow_shape_text(out->rank, out->shape));
    }
  }
  if (status == FLOW_OK && out->offsets) status = check_offsets(what, out);
  if (status != FLOW_OK) flow_strings_close(out);
  return status;
}

void flow_strings_close(flow_string_reader *reader)
{
  flow_tensor_release(reader->values);
  flow_tensor_release(reader->offsets);
  reader->values = reader->offsets = NULL;
}

/* index: 0 to count - 1, not checked. The token points into the reader's tensor, or, of a number, into `digits`. Strings of one width are
 * filled up with zeros, which are taken off unless the string is the only one and so needed none. */
flow_token flow_strings_get(const flow_string_reader *reader, int64_t index, char digits[FLOW_DIGITS])
{
  if (!reader->is_text) {
    long long number = ((const int64_t *)reader->values->data)[index];
    return (flow_token){ digits, snprintf(digits, FLOW_DIGITS, "%lld", number) };
  }
  if (reader->at) return (flow_token){ reader->values->data + reader->at[index], reader->at[index + 1] - reader->at[index] };
  flow_token token = { reader->values->data + index * reader->width, reader->width };
  while (!reader->exact && token.size > 0 && token.bytes[token.size - 1] == 0) token.size--;
  return token;
}

flow_strings flow_strings_of_component(const flow_tensor *values, int is_text)
{
  return (flow_strings){ .values = values, .is_text = is_text };
}

/* ---- tokens ------------------------------------------------------------------------------------------------------------ */

/* The token points into the list until something is added. */
flow_token flow_token_list_get(const flow_token_list *list, int64_t index)
{
  int64_t begin = list->spans[2 * index];
  return (flow_token){ list->bytes + begin, list->spans[2 * index + 1] - begin };
}

/* Keeps the memory for the next row. */
void flow_token_list_clear(flow_token_list *list) { list->count = list->used = 0; }

void flow_token_list_release(flow_token_list *list)
{
  flow_free(list->bytes);
  flow_free(list->spans);
  *list = (flow_token_list){ 0 };
}

/* A token is a span of the list's bytes: [begin, end). */
static flow_status add_span(flow_token_list *list, int64_t begin, int64_t end)
{
  FLOW_TRY(flow_token_grow(&list->spans, sizeof *list->spans, 2 * list->count, 2 * list->count + 2, &list->room));
  list->spans[2 * list->count] = begin;
  list->spans[2 * list->count++ + 1] = end;
  return FLOW_OK;
}

/* Appends bytes, which must not be the list's own: it may move. */
static flow_status put(flow_token_list *list, const char *bytes, int64_t size)
{
  FLOW_TRY(flow_token_grow(&list->bytes, 1, list->used, list->used + size, &list->byte_room));
  if (size > 0) memcpy(list->bytes + list->used, bytes, (size_t)size);
  list->used += size;
  return FLOW_OK;
}

/* The 32 of ASCII, which Keras' strip_punctuation takes away. */
static int is_punctuation(unsigned char c)
{
  return (c > 32 && c < 48) || (c > 57 && c < 65) || (c > 90 && c < 97) || (c > 122 && c < 127);
}

static int is_blank(unsigned char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* Appends the bytes of a string as `standardize` says, a set of FLOW_STANDARDIZE_: copied first, and then written over in place, which can
 * only make them fewer. */
static flow_status put_standardized(flow_token_list *list, flow_token string, int standardize)
{
  int64_t begin = list->used;
  FLOW_TRY(put(list, string.bytes, string.size));
  if (!standardize) return FLOW_OK;
  int64_t kept = begin;
  for (int64_t i = begin; i < list->used; i++) {
    unsigned char c = (unsigned char)list->bytes[i];
    if ((standardize & FLOW_STANDARDIZE_STRIP_PUNCTUATION) && is_punctuation(c)) continue;
    if ((standardize & FLOW_STANDARDIZE_LOWER) && c >= 'A' && c <= 'Z') c += 'a' - 'A';
    list->bytes[kept++] = (char)c;
  }
  list->used = kept;
  return FLOW_OK;
}

/* Tokens are what is between blanks, never empty. Spans point to the bytes that are there. */
static flow_status split_at_blanks(flow_token_list *list, int64_t begin, int64_t end)
{
  for (int64_t i = begin; i < end;) {
    while (i < end && is_blank((unsigned char)list->bytes[i])) i++;
    int64_t first = i;
    while (i < end && !is_blank((unsigned char)list->bytes[i])) i++;
    if (i > first) FLOW_TRY(add_span(list, first, i));
  }
  return FLOW_OK;
}

/* Bytes of the UTF-8 character at s, of which `left` are there; *valid 0: they are not UTF-8 and stand for one U+FFFD (Unicode 15, 3.9,
 * table 3-7 and the practice of maximal subparts). */
static int64_t character_size(const unsigned char *s, int64_t left, int *valid)
{
  unsigned char c = s[0], low = 0x80, high = 0xbf;
  *valid = 1;
  if (c < 0x80) return 1;
  int more = c >= 0xc2 && c <= 0xdf ? 1 : c >= 0xe0 && c <= 0xef ? 2 : c >= 0xf0 && c <= 0xf4 ? 3 : 0;
  if (c == 0xe0) low = 0xa0;
  if (c == 0xed) high = 0x9f;
  if (c == 0xf0) low = 0x90;
  if (c == 0xf4) high = 0x8f;
  int64_t size = 1;
  for (; size <= more && size < left; size++) {
    if (s[size] < low || s[size] > high) break;
    low = 0x80;
    high = 0xbf;
  }
  *valid = more > 0 && size == more + 1;
  return size;
}

/* Each sequence of bytes that is not UTF-8 becomes a U+FFFD, which is appended to the list's bytes. Appending may move them, so that they
 * are looked up again for each character; `end` is a position and stays valid. */
static flow_status split_into_characters(flow_token_list *list, int64_t begin, int64_t end)
{
  for (int64_t i = begin, size; i < end; i += size) {
    int valid;
    size = character_size((const unsigned char *)list->bytes + i, end - i, &valid);
    if (valid) {
      FLOW_TRY(add_span(list, i, i + size));
      continue;
    }
    int64_t mark = list->used;
    FLOW_TRY(put(list, "\xef\xbf\xbd", 3));
    FLOW_TRY(add_span(list, mark, mark + 3));
  }
  return FLOW_OK;
}

/* After a failure the list holds a part of the string's tokens; callers end then. Without a split the string is one token, even if it is
 * empty. */
flow_status flow_token_list_add(flow_token_list *list, flow_token string, int standardize, int split)
{
  int64_t begin = list->used;
  FLOW_TRY(put_standardized(list, string, standardize));
  if (split == FLOW_SPLIT_WHITESPACE) return split_at_blanks(list, begin, list->used);
  if (split == FLOW_SPLIT_CHARACTER) return split_into_characters(list, begin, list->used);
  return add_span(list, begin, list->used);
}

/* Joined tokens are appended after the single ones, from their bytes, and then take their places. Room is made before each copy, since
 * both ends are in the same array. */
flow_status flow_token_list_join(flow_token_list *list, const int32_t *widths, int count)
{
  int64_t tokens = list->count;
  for (int i = 0; i < count; i++) {
    for (int64_t first = 0; first + widths[i] <= tokens; first++) {
      int64_t begin = list->used;
      for (int64_t k = first; k < first + widths[i]; k++) {
        if (k > first) FLOW_TRY(put(list, " ", 1));
        int64_t from = list->spans[2 * k], size = list->spans[2 * k + 1] - from;
        FLOW_TRY(flow_token_grow(&list->bytes, 1, list->used, list->used + size, &list->byte_room));
        if (size > 0) memcpy(list->bytes + list->used, list->bytes + from, (size_t)size);
        list->used += size;
      }
      FLOW_TRY(add_span(list, begin, list->used));
    }
  }
  list->count -= tokens;
  if (list->count > 0) memmove(list->spans, list->spans + 2 * tokens, sizeof *list->spans * 2 * (size_t)list->count);
  return FLOW_OK;
}
