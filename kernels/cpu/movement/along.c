/* along.c: ops along one axis of {outer, n, inner}: argsort, cumsum, take_along and the gradient of that. One variant of each, plain C: a
 * line of n elements, `inner` apart, is read into registers of one kind, worked on and written.
 *
 * argsort: keys whose order as unsigned numbers is that of the elements, of 32 or 64 bits, by a radix sort, which is stable. Where only
 * the first of a line are asked for, those of 32 bits are selected. cumsum: floats are added in double, so that
 * each sum is rounded once. */
#include <math.h>
#include "axis_lines.h"
#include "cpu/cost.h"
#include "cpu/index.h"
#include "cpu/vector.h"
#include "tensor/tensor.h"

/* The operand along the axis in the attributes. */
static flow_axis_lines lines_along(const flow_call *call, const flow_operand *x)
{
  return flow_lines_along(x, call->attributes->along.axis);
}

/* The first element of a line of x, whose axis has n elements. */
static const char *line_of(const flow_operand *x, const flow_axis_lines *l, int64_t n, int64_t outer, int64_t inner)
{
  return (const char *)x->data + (outer * n * l->inner + inner) * flow_dtype_size(x->dtype);
}

/* ---- argsort ----------------------------------------------------------------------------------------------------------------
 *
 * `along` has base (what is added to each position: Lua counts from 1), reverse (the largest first) and size (how many positions of a
 * line are wanted; 0: all). Equal elements keep their order, in reverse too, since a key that is turned round orders the same positions;
 * NaN counts as larger than infinity. */

/* What is sorted by keys of 64 bits. Keys of 32 are the upper half of a word, above their element's position. */
typedef struct sorted { uint64_t key; int64_t position; } sorted;

/* Up to SHORT_LINE elements insertion is faster than counting digits. From LONG_LINE on, digits of 11 bits read less memory than those of
 * 8; below, clearing and adding up 2048 counts each would take longer than the passes that are saved. */
enum { SHORT_LINE = 40, LONG_LINE = 8192 };

/* Floats of 16 and 32 bits and integers of up to 32 have keys of 32 bits; a position must fit in the other half of the word. */
static int has_short_keys(int dtype, int64_t n)
{
  return dtype != FLOW_INT64 && dtype != FLOW_FLOAT64 && n <= UINT32_MAX;
}

/* Two lines of words or of `sorted`, between which the sort goes to and fro, and after them its counts. */
static size_t argsort_scratch(const flow_call *call)
{
  int64_t n = lines_along(call, &call->inputs[0]).n;
  int has_short = has_short_keys(call->inputs[0].dtype, n);
  size_t digits = n <= SHORT_LINE ? 0 : n < LONG_LINE ? 4 << 8 : 3 << 11; /* of 32 bits: how many, times their values */
  if (has_short) return 2 * (size_t)n * sizeof(uint64_t) + digits * sizeof(uint32_t);
  return 2 * (size_t)n * sizeof(sorted) + 2 * digits * sizeof(int64_t);
}

/* 8 operations for each comparison of an n log n sort, on one thread: the op has no parts. */
static double argsort_cost(const flow_call *call)
{
  flow_axis_lines l = lines_along(call, &call->inputs[0]);
  return (double)(l.outer * l.n * l.inner) * 8 * (1 + log2((double)(l.n > 0 ? l.n : 1)));
}

/* Numbers whose order is that of the floats: of negative ones all bits are turned round, of others the sign. Both zeros are one key, and
 * all NaN are above infinity. */
static uint64_t key_of_double(double x)
{
  uint64_t bits;
  if (x == 0) x = 0;
  memcpy(&bits, &x, sizeof bits);
  if (x != x) return UINT64_MAX;
  return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}

/* An unsigned number that orders as the element does: int64 with its sign bit turned round, all else by way of double, which holds the
 * other dtypes exactly. */
ALWAYS_INLINE uint64_t key_of(int dtype, const char *at)
{
  int64_t integer;
  double value;
  if (dtype == FLOW_INT64) {
    memcpy(&integer, at, sizeof integer);
    return (uint64_t)integer ^ UINT64_C(1) << 63;
  }
  if (dtype == FLOW_FLOAT64) memcpy(&value, at, sizeof value);
  else flow_convert_to_double(dtype, at, 1, &value, 1);
  return key_of_double(value);
}

/* Defines name(a, b, counts, n): n elements of a, in order of their keys, in a or in b, which is as large; digit by digit, the lowest
 * first, of which one that all keys share is left out. counts: room for the counts of type COUNT, as argsort_scratch has it. */
#define RADIX_SORT(name, ELEMENT, KEY, KEY_BITS, COUNT)                                                    \
  ALWAYS_INLINE const ELEMENT *name##_by(ELEMENT *a, ELEMENT *b, COUNT *counts, int64_t n, const int bits) \
  {                                                                                                        \
    enum { MOST = (KEY_BITS + 7) / 8 };                                                                    \
    const int digits = (KEY_BITS + bits - 1) / bits, values = 1 << bits;                                   \
    const uint64_t mask = (uint64_t)values - 1;                                                            \
    memset(counts, 0, sizeof *counts *(size_t)(digits * values));                                          \
    for (int64_t i = 0; i < n; i++) {                                                                      \
      uint64_t key = KEY(a[i]);                                                                            \
      FLOW_UNROLL(8)                                                                                       \
      for (int d = 0; d < MOST; d++)                                                                       \
        if (d < digits) counts[d * values + (int)(key >> d * bits & mask)]++;                              \
    }                                                                                                      \
    for (int d = 0; d < digits; d++) {                                                                     \
      COUNT *next = counts + d * values, total = 0;                                                        \
      int shift = d * bits;                                                                                \
      if (next[KEY(a[0]) >> shift & mask] == (COUNT)n) continue;                                           \
      for (int v = 0; v < values; v++) {                                                                   \
        COUNT count = next[v];                                                                             \
        next[v] = total;                                                                                   \
        total += count;                                                                                    \
      }                                                                                                    \
      for (int64_t i = 0; i < n; i++) b[next[KEY(a[i]) >> shift & mask]++] = a[i];                         \
      ELEMENT *swap = a;                                                                                   \
      a = b;                                                                                               \
      b = swap;                                                                                            \
    }                                                                                                      \
    return a;                                                                                              \
  }                                                                                                        \
  static const ELEMENT *name(ELEMENT *a, ELEMENT *b, void *counts, int64_t n)                              \
  {                                                                                                        \
    if (n >= LONG_LINE) return name##_by(a, b, counts, n, 11);                                             \
    if (n > SHORT_LINE) return name##_by(a, b, counts, n, 8);                                              \
    for (int64_t i = 1; i < n; i++) {                                                                      \
      ELEMENT element = a[i];                                                                              \
      int64_t to = i;                                                                                      \
      for (; to > 0 && KEY(a[to - 1]) > KEY(element); to--) a[to] = a[to - 1];                             \
      a[to] = element;                                                                                     \
    }                                                                                                      \
    return a;                                                                                              \
  }
#define KEY_OF_WORD(word) ((word) >> 32)
#define KEY_OF_SORTED(element) ((element).key)
RADIX_SORT(sort_words, uint64_t, KEY_OF_WORD, 32, uint32_t)
RADIX_SORT(sort_long_keys, sorted, KEY_OF_SORTED, 64, int64_t)

/* ---- keys of 32 bits ------------------------------------------------------------------------------------------------------- */

/* The same order in 32 bits. */
static uint32_t key_of_float(float x)
{
  uint32_t bits;
  if (x == 0) x = 0;
  memcpy(&bits, &x, sizeof bits);
  if (x != x) return UINT32_MAX;
  return bits >> 31 ? ~bits : bits | UINT32_C(1) << 31;
}

/* 32 bits whose order is that of the elements, for dtypes that float32 or int32 hold exactly. */
ALWAYS_INLINE uint32_t short_key_of(int dtype, const char *at)
{
  float number;
  int32_t integer;
  double value;
  if (dtype == FLOW_FLOAT32) {
    memcpy(&number, at, sizeof number);
    return key_of_float(number);
  }
  if (dtype == FLOW_INT32) {
    memcpy(&integer, at, sizeof integer);
    return (uint32_t)integer ^ UINT32_C(1) << 31;
  }
  if (dtype == FLOW_BOOL || dtype == FLOW_UINT8) return *(const uint8_t *)at;
  flow_convert_to_double(dtype, at, 1, &value, 1);
  return key_of_float((float)value);
}

/* ---- the first of a line ----------------------------------------------------------------------------------------------------- */

/* How many positions of a line are asked for. */
static int64_t count_asked(const flow_call *call, int64_t n)
{
  return call->attributes->along.size > 0 ? call->attributes->along.size : n;
}

/* One line of x in memory. */
typedef struct line { const char *data; int64_t n, step, size; int dtype, reverse; } line;      /* step and size of an element: bytes */

/* The word of element i, whose order among all words of the line is the element's. */
ALWAYS_INLINE uint64_t word_of(const line *l, const int dtype, int64_t i)
{
  uint32_t key = short_key_of(dtype, l->data + i * l->step);
  return (uint64_t)(l->reverse ? ~key : key) << 32 | (uint64_t)i;
}
static uint64_t word_at(const line *l, int64_t i)
{
  return word_of(l, l->dtype, i);
}

/* The words of a whole line; the usual dtypes are constants of their loops. */
static void words_of_line(const line *l, uint64_t *words)
{
  switch (l->dtype) {
  case FLOW_FLOAT32:
    for (int64_t i = 0; i < l->n; i++) words[i] = word_of(l, FLOW_FLOAT32, i);
    break;
  case FLOW_INT32:
    for (int64_t i = 0; i < l->n; i++) words[i] = word_of(l, FLOW_INT32, i);
    break;
  case FLOW_BOOL:
  case FLOW_UINT8:
    for (int64_t i = 0; i < l->n; i++) words[i] = word_of(l, FLOW_UINT8, i);
    break;
  default:
    for (int64_t i = 0; i < l->n; i++) words[i] = word_at(l, i);
    break;
  }
}

/* The same with keys of 64 bits. */
ALWAYS_INLINE void long_keys_of(const line *l, const int dtype, sorted *elements)
{
  for (int64_t i = 0; i < l->n; i++) {
    uint64_t key = key_of(dtype, l->data + i * l->step);
    elements[i] = (sorted){ l->reverse ? ~key : key, i };
  }
}
static void long_keys_of_line(const line *l, sorted *elements)
{
  if (l->dtype == FLOW_FLOAT64) long_keys_of(l, FLOW_FLOAT64, elements);
  else if (l->dtype == FLOW_INT64) long_keys_of(l, FLOW_INT64, elements);
  else long_keys_of(l, l->dtype, elements);
}

/* The first words of a line so far, and those that may be among them: as many as are kept, or MOST_WAITING, wait before all are put in
 * order, so that a line in any order takes a time that is its length's. `words` has room as argsort_scratch says.
 * count: how many are kept; room: how many words wait at most before they are put in order; have: how many wait. A word that was offered
 * and does not wait has `count` words before it. */
typedef struct selection {
  uint64_t *words, last;
  void *counts;
  int64_t count, room, have;
} selection;

enum { MOST_WAITING = 8 };

/* Puts the words in order and keeps the first `count`. */
static void take_in_order(selection *s)
{
  const uint64_t *order = sort_words(s->words, s->words + s->room, s->counts, s->have);
  if (s->have > s->count) s->have = s->count;
  if (order != s->words) memcpy(s->words, order, sizeof *order * (size_t)s->have);
  s->last = s->words[s->have - 1];
}

/* `last` is the last word that is kept so far: what is not before it can be dropped at once. Most elements end here. */
ALWAYS_INLINE void offer(selection *s, uint64_t word)
{
  if (word >= s->last) return;
  s->words[s->have++] = word;
  if (s->have == s->room) take_in_order(s);
}

/* Floats from i on by vectors: words are made of those that may be before the last one kept. One that is equal to it comes later; one that
 * cannot be compared is left to its word. Returns where less than a vector is left. */
static int64_t offer_floats(selection *s, const line *l, int64_t i)
{
  const float *x = (const float *)(const void *)l->data;
  uint64_t last = s->last;
  vf limit = vf_set(x[last & UINT32_MAX]);
  for (; i + VL <= l->n; i += VL) {
    vf v = vf_load(x + i);
    for (uint32_t bits = vi_differs(l->reverse ? v <= limit : v >= limit, -1); bits; bits &= bits - 1) {
      int64_t at = i + __builtin_ctz(bits);
      uint32_t key = key_of_float(x[at]);
      offer(s, (uint64_t)(l->reverse ? ~key : key) << 32 | (uint64_t)at);
    }
    if (s->last != last) {
      last = s->last;
      limit = vf_set(x[last & UINT32_MAX]);
    }
  }
  return i;
}

/* The first `count` words of a line, in order. */
static const uint64_t *select_words(const line *l, uint64_t *words, int64_t count)
{
  selection s = { words, UINT64_MAX, words + 2 * l->n, count, count + (count > MOST_WAITING ? count : MOST_WAITING), 0 };
  int64_t i = 0;
  if (s.room > l->n) s.room = l->n;
  for (; i < s.room; i++) offer(&s, word_at(l, i));
  if (i < l->n && l->dtype == FLOW_FLOAT32 && l->step == l->size) i = offer_floats(&s, l, i);
  for (; i < l->n; i++) offer(&s, word_at(l, i));
  take_in_order(&s);
  return words;
}

/* One part: a line's sort is a chain. The scratch is used for one line at a time. */
static flow_status argsort_run(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase; (void)begin; (void)end;
  const flow_operand *x = &call->inputs[0];
  flow_axis_lines l = lines_along(call, x);
  int64_t *y = call->outputs[0].data, size = flow_dtype_size(x->dtype), base = call->attributes->along.base;
  int64_t count = count_asked(call, l.n);
  int reverse = call->attributes->along.reverse;
  for (int64_t outer = 0; outer < l.outer; outer++) {
    for (int64_t inner = 0; inner < l.inner; inner++) {
      line from = { line_of(x, &l, l.n, outer, inner), l.n, l.inner * size, size, x->dtype, reverse };
      int64_t *to = y + outer * count * l.inner + inner;
      if (has_short_keys(x->dtype, l.n)) {
        uint64_t *words = call->scratch;
        const uint64_t *order;
        if (count < l.n) {
          order = select_words(&from, words, count);
        } else {
          words_of_line(&from, words);
          order = sort_words(words, words + l.n, words + 2 * l.n, l.n);
        }
        for (int64_t i = 0; i < count; i++) to[i * l.inner] = (int64_t)(order[i] & UINT32_MAX) + base;
      } else {
        sorted *buffer = call->scratch;
        long_keys_of_line(&from, buffer);
        const sorted *order = sort_long_keys(buffer, buffer + l.n, buffer + 2 * l.n, l.n);
        for (int64_t i = 0; i < count; i++) to[i * l.inner] = order[i].position + base;
      }
    }
  }
  return FLOW_OK;
}
const flow_kernel FLOW_KERNELS(argsort)[] = {
  { .variant = "sort", .cost = argsort_cost, .scratch_bytes = argsort_scratch, .run = argsort_run }, { 0 }
};

/* ---- cumsum --------------------------------------------------------------------------------------------------------------- */

/* Each element is read and written once; lines are bound by memory, not by the additions. */
static double cumsum_cost(const flow_call *call)
{
  const flow_operand *x = &call->inputs[0];
  return flow_cost_stream(2.0 * (double)flow_shape_size(x->rank, x->shape) * (double)flow_dtype_size(x->dtype));
}

/* Elements of a line in the order of the sum, T to T through SUM, four at a time: each is added to the sum of those before the four, so
 * that one addition in four has to wait for another. Integers wrap, as unsigned ones may. */
#define CUMSUM(T, SUM)                                                                            \
  static void cumsum_##T(const flow_call *call)                                                   \
  {                                                                                               \
    flow_axis_lines l = lines_along(call, &call->inputs[0]);                                      \
    int reverse = call->attributes->along.reverse, exclusive = call->attributes->along.exclusive; \
    int64_t step = reverse ? -l.inner : l.inner;                                                  \
    for (int64_t outer = 0; outer < l.outer; outer++) {                                           \
      for (int64_t inner = 0; inner < l.inner; inner++) {                                         \
        int64_t at = (outer * l.n + (reverse ? l.n - 1 : 0)) * l.inner + inner, i = 0;            \
        const T *x = (const T *)call->inputs[0].data + at;                                        \
        T *y = (T *)call->outputs[0].data + at;                                                   \
        SUM sum = 0;                                                                              \
        for (; i + 4 <= l.n; i += 4, x += 4 * step, y += 4 * step) {                              \
          SUM a = (SUM)x[0], b = a + (SUM)x[step], c = b + (SUM)x[2 * step];                      \
          SUM d = b + ((SUM)x[2 * step] + (SUM)x[3 * step]);                                      \
          y[0] = (T)(exclusive ? sum : sum + a);                                                  \
          y[step] = (T)(sum + (exclusive ? a : b));                                               \
          y[2 * step] = (T)(sum + (exclusive ? b : c));                                           \
          y[3 * step] = (T)(sum + (exclusive ? c : d));                                           \
          sum += d;                                                                               \
        }                                                                                         \
        for (; i < l.n; i++, x += step, y += step) {                                              \
          SUM next = sum + (SUM)*x;                                                               \
          *y = (T)(exclusive ? sum : next);                                                       \
          sum = next;                                                                             \
        }                                                                                         \
      }                                                                                           \
    }                                                                                             \
  }
CUMSUM(float, double)
CUMSUM(double, double)
CUMSUM(int8_t, uint64_t)
CUMSUM(uint8_t, uint64_t)
CUMSUM(int32_t, uint64_t)
CUMSUM(int64_t, uint64_t)

/* The running sum of each line, in the operand's own type; integers wrap. Narrow float types never come here: the engine converts them. */
static flow_status cumsum_run(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase; (void)begin; (void)end;
  int dtype = call->inputs[0].dtype;
  if (dtype == FLOW_FLOAT32) cumsum_float(call);
  else if (dtype == FLOW_FLOAT64) cumsum_double(call);
  else if (dtype == FLOW_INT8) cumsum_int8_t(call);
  else if (dtype == FLOW_UINT8) cumsum_uint8_t(call);
  else if (dtype == FLOW_INT32) cumsum_int32_t(call);
  else cumsum_int64_t(call);
  return FLOW_OK;
}
const flow_kernel FLOW_KERNELS(cumsum)[] = { { .variant = "plain", .cost = cumsum_cost, .run = cumsum_run }, { 0 } };

/* ---- take_along ------------------------------------------------------------------------------------------------------------- */

/* Bytes that are read and written once; the indices are left out. */
static double take_along_cost(const flow_call *call)
{
  const flow_operand *x = &call->inputs[0], *y = &call->outputs[0];
  double elements = (double)flow_shape_size(x->rank, x->shape) + (double)flow_shape_size(y->rank, y->shape);
  return flow_cost_stream(elements * (double)flow_dtype_size(x->dtype));
}

/* Does `action` for each index, in their order. whole: the operand whose axis they count in. To `action` k is the number of the index,
 * and `at` the element of `whole` that it names. Indices that are neither int64 nor int32, and those out of range, go through read_index,
 * so that the usual one costs few comparisons. */
#define EACH_INDEX(whole, action)                                                                           \
  const flow_operand *indices = &call->inputs[1];                                                           \
  flow_axis_lines l = lines_along(call, indices);                                                           \
  int64_t size = lines_along(call, whole).n, count = l.outer * l.n * l.inner, k = 0;                        \
  int64_t row = indices->shape[0] > 0 && count > 0 ? count / indices->shape[0] : 1;                         \
  const int64_t *longs = indices->dtype == FLOW_INT64 ? indices->data : NULL;                               \
  const int32_t *words = indices->dtype == FLOW_INT32 ? indices->data : NULL;                               \
  for (int64_t outer = 0; outer < l.outer; outer++)                                                         \
    for (int64_t i = 0; i < l.n; i++)                                                                       \
      for (int64_t inner = 0; inner < l.inner; inner++, k++) {                                              \
        int64_t index = longs ? longs[k] : words ? words[k] : -1;                                           \
        if (index < 0 || index >= size) FLOW_TRY(read_index(call, "index", indices, k, row, size, &index)); \
        int64_t at = (outer * size + index) * l.inner + inner;                                              \
        action;                                                                                             \
      }

/* Elements are copied bit by bit. A failure leaves those before the wrong index written; the op is refused as a whole. */
static flow_status take_along_run(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase; (void)begin; (void)end;
  size_t bytes = (size_t)flow_dtype_size(call->inputs[0].dtype);
  const char *from = call->inputs[0].data;
  char *to = call->outputs[0].data;
  if (!to) { /* nothing reads it, but a wrong index is an error */
    EACH_INDEX(&call->inputs[0], (void)at)
  } else if (bytes == 4) {
    EACH_INDEX(&call->inputs[0], memcpy(to + (size_t)k * 4, from + (size_t)at * 4, 4))
  } else {
    EACH_INDEX(&call->inputs[0], memcpy(to + (size_t)k * bytes, from + (size_t)at * bytes, bytes))
  }
  return FLOW_OK;
}
const flow_kernel FLOW_KERNELS(take_along)[] = { { .variant = "plain", .cost = take_along_cost, .run = take_along_run }, { 0 } };

/* An index that occurs twice gets the sum of both gradients, added in their order: one thread. */
static flow_status take_along_gradient_run(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase; (void)begin; (void)end;
  const flow_operand *g = &call->inputs[0], *y = &call->outputs[0];
  if (!y->data) {
    EACH_INDEX(y, (void)at)
    return FLOW_OK;
  }
  memset(y->data, 0, (size_t)flow_shape_size(y->rank, y->shape) * (size_t)flow_dtype_size(y->dtype));
  if (y->dtype == FLOW_FLOAT64) {
    EACH_INDEX(y, ((double *)y->data)[at] += ((const double *)g->data)[k])
  } else {
    EACH_INDEX(y, ((float *)y->data)[at] += ((const float *)g->data)[k])
  }
  return FLOW_OK;
}
const flow_kernel FLOW_KERNELS(take_along_gradient)[] = {
  { .variant = "plain", .cost = take_along_cost, .run = take_along_gradient_run }, { 0 }
};
