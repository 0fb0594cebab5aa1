/* format.c: a tensor as text, as NumPy's array2string writes it with precision 4 (numpy/_core/arrayprint.py, NumPy 2.4):
 * common width, fixed or scientific for the whole array, lines of 75 characters, the middle of large arrays left out.
 *
 * NumPy prints the shortest digits that read back as the same number of the same dtype (Dragon4), cut after four
 * fractional digits. Here: the fewest fractional digits, up to four, whose correctly rounded text reads back the same. */
#include "tensor/convert.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/decimal.h"
#include "base/float_state.h"

enum { PRECISION = 4, THRESHOLD = 1000, EDGE_ITEMS = 3, LINE_WIDTH = 75, WORD_SIZE = 64 };

/* Three passes over the elements that will be shown: their range, the widest word, then the page. */
typedef struct printer {
  const flow_tensor *tensor;
  int       summarize;
  flow_text text;
  int       column;          /* characters on this line, with the pending blanks */
  int       pending;         /* blanks not written yet: dropped at a line's end */
  /* how one element looks; found by a first pass over what will be printed */
  int       is_float, scientific;
  int       width;           /* integers and bools: of the whole word */
  int       left, right;     /* floats: characters before and after the point, sign and exponent included */
  int       digits, exponent_digits;   /* scientific: fractional digits, digits of the exponent */
  int       finite, others, negative_infinity;
  double    smallest, largest;         /* of the finite numbers that are not 0, without sign */
} printer;

/* ---- numbers ---------------------------------------------------------------------------------------------------------- */

/* The number as an element of that dtype has it. */
static double round_to_dtype(int dtype, double value)
{
  uint64_t element;
  flow_convert_from_double(dtype, &value, &element, 1, 1);
  flow_convert_to_double(dtype, &element, 1, &value, 1);
  return value;
}

/* Whether the text is that number again in the array's dtype. */
static int reads_back(const char *word, int dtype, double value)
{
  return round_to_dtype(dtype, flow_decimal_read(word, NULL, NULL)) == value;
}

/* Adds one to the last digit of the number; 0 if that would need one more digit in front. */
static int increase_last_digit(char *word)
{
  char *digit = word + strcspn(word, "e") - 1;
  for (; digit >= word && *digit != '-'; digit--) {
    if (*digit == '.') continue;
    if (*digit != '9') {
      ++*digit;
      return 1;
    }
    *digit = '0';
  }
  return 0;
}

/* Writes value with this many fractional digits; 1 if the text reads back as value. The numbers below a power of two are
 * twice as dense as above it, so that there the text next above may read back where the nearest text, below, does not. */
static int print_digits(char *word, const char *format, int digits, int dtype, double value)
{
  char above[WORD_SIZE];
  int exponent;
  flow_decimal_write(word, WORD_SIZE, format, digits, value);
  if (reads_back(word, dtype, value)) return 1;
  if (fabs(frexp(value, &exponent)) != 0.5) return 0;
  strcpy(above, word);
  if (!increase_last_digit(above) || !reads_back(above, dtype, value)) return 0;
  strcpy(word, above);
  return 1;
}

/* Writes value with the fewest fractional digits that identify it, at most PRECISION, without trailing zeros.
 * Returns their number. */
static int print_shortest(char *word, const char *format, int dtype, double value)
{
  for (int digits = 0; digits < PRECISION; digits++) {
    if (print_digits(word, format, digits, dtype, value)) return digits;
  }
  print_digits(word, format, PRECISION, dtype, value);
  char *point = strchr(word, '.'), *end = point + 1 + PRECISION, *last = end;
  while (last[-1] == '0') last--;
  memmove(last, end, strlen(end) + 1);
  return (int)(last - point) - 1;
}

/* offset: in elements from the tensor's first one. */
static double element_double(const flow_tensor *tensor, int64_t offset)
{
  double value;
  flow_convert_to_double(tensor->dtype, tensor->data + offset * flow_dtype_size(tensor->dtype), 1, &value, 1);
  return value;
}

/* int64 holds the integers of all dtypes; a double would round those above 2^53. */
static int64_t element_integer(const flow_tensor *tensor, int64_t offset)
{
  int64_t value;
  flow_convert_to_int64(tensor->dtype, tensor->data + offset * flow_dtype_size(tensor->dtype), 1, &value, 1);
  return value;
}

/* ---- first passes: range, then widths ---------------------------------------------------------------------------------- */

/* First pass: which numbers there are, which decides between fixed and scientific. */
static void look_at_range(printer *self, int64_t offset)
{
  double value = element_double(self->tensor, offset);
  if (!isfinite(value)) {
    self->others++;
    if (value < 0) self->negative_infinity = 1;
    return;
  }
  self->finite++;
  value = fabs(value);
  if (value == 0) return;
  if (self->largest == 0 || value < self->smallest) self->smallest = value;
  if (value > self->largest) self->largest = value;
}

static int larger(int a, int b)
{
  return a > b ? a : b;
}

/* Second pass: the widest word. */
static void look_at_width(printer *self, int64_t offset)
{
  char word[WORD_SIZE];
  int dtype = self->tensor->dtype;
  if (!self->is_float) {
    int length = dtype == FLOW_BOOL ? 5 : snprintf(word, sizeof word, "%lld", (long long)element_integer(self->tensor, offset));
    self->width = larger(self->width, length);
    return;
  }
  double value = element_double(self->tensor, offset);
  if (!isfinite(value)) return;
  int digits = print_shortest(word, self->scientific ? "%#.*e" : "%#.*f", dtype, value);
  const char *exponent = strchr(word, 'e');
  self->left = larger(self->left, (int)(strchr(word, '.') - word));
  self->digits = larger(self->digits, digits);
  if (exponent) self->exponent_digits = larger(self->exponent_digits, (int)strlen(exponent) - 2);
}

/* Whether only the first and last EDGE_ITEMS entries of an axis are shown. */
static int is_cut(const printer *self, int axis)
{
  return self->summarize && self->tensor->shape[axis] > 2 * EDGE_ITEMS;
}

/* Calls `look` for each element that will be printed, from axis `axis` on. */
static void visit(printer *self, int axis, int64_t offset, void (*look)(printer *, int64_t))
{
  if (axis == self->tensor->rank) {
    look(self, offset);
    return;
  }
  for (int64_t i = 0; i < self->tensor->shape[axis]; i++) {
    if (is_cut(self, axis) && i == EDGE_ITEMS) i = self->tensor->shape[axis] - EDGE_ITEMS;
    visit(self, axis + 1, offset + i * self->tensor->strides[axis], look);
  }
}

/* NumPy: from 10^min(8, decimal digits that the dtype holds) on, below 0.0001, or when numbers differ by more than 1,000.
 * The comparisons are made in the array's dtype. bfloat16, which NumPy lacks, is treated as float16. */
static int wants_scientific(const printer *self)
{
  int dtype = self->tensor->dtype;
  double most = dtype == FLOW_FLOAT64 ? 1e8 : dtype == FLOW_FLOAT32 ? 1e6 : 1e3;
  return self->largest > 0 && (self->largest >= most || self->smallest < round_to_dtype(dtype, 0.0001) ||
                               round_to_dtype(dtype, self->largest / self->smallest) > 1000);
}

/* The right side first: the left one has to leave room for "-inf". */
static void choose_format(printer *self)
{
  self->is_float = flow_dtype_is_float(self->tensor->dtype);
  if (self->is_float) {
    visit(self, 0, 0, look_at_range);
    self->scientific = wants_scientific(self);
  }
  visit(self, 0, 0, look_at_width);
  if (self->is_float) {
    self->right = self->digits + (self->scientific ? 2 + self->exponent_digits : 0);
    if (self->others) self->left = larger(self->left, 3 + self->negative_infinity - (self->right + 1));   /* "-inf" */
  }
}

/* ---- words --------------------------------------------------------------------------------------------------------------- */

/* Writes `exponent` ("+05") with as many digits as the widest has. */
static void widen_exponent(char *exponent, int digits)
{
  int missing = digits - ((int)strlen(exponent) - 1);
  if (missing <= 0) return;
  memmove(exponent + 1 + missing, exponent + 1, strlen(exponent));
  memset(exponent + 1, '0', (size_t)missing);
}

/* The element as it is in the array, with its blanks; returns the number of blanks in front. */
static int print_element(const printer *self, int64_t offset, char *word, int *after)
{
  *after = 0;
  if (self->tensor->dtype == FLOW_BOOL) {
    int yes = element_integer(self->tensor, offset) != 0;
    strcpy(word, yes ? "True" : "False");
    return yes && self->tensor->rank > 0 ? 1 : 0;
  }
  if (!self->is_float) return self->width - snprintf(word, WORD_SIZE, "%lld", (long long)element_integer(self->tensor, offset));
  double value = element_double(self->tensor, offset);
  if (!isfinite(value)) {
    strcpy(word, isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
    return self->left + self->right + 1 - (int)strlen(word);
  }
  if (self->scientific) {
    print_digits(word, "%#.*e", self->digits, self->tensor->dtype, value);
    widen_exponent(strchr(word, 'e') + 1, self->exponent_digits);
  } else {
    *after = self->right - print_shortest(word, "%#.*f", self->tensor->dtype, value);
  }
  return self->left - (int)(strchr(word, '.') - word);
}

/* ---- the page --------------------------------------------------------------------------------------------------------------- */

/* Blanks are written with the next word: a line never ends with one. */
static void put_blanks(printer *self, int count)
{
  self->pending += count;
  self->column += count;
}

/* A word, which has no line end in it. */
static void put(printer *self, const char *word)
{
  if (self->pending > 0) flow_text_add(&self->text, "%*s", self->pending, "");
  self->pending = 0;
  flow_text_add(&self->text, "%s", word);
  self->column += (int)strlen(word);
}

static void new_line(printer *self, int indent)
{
  flow_text_add(&self->text, "\n");
  self->pending = self->column = 0;
  put_blanks(self, indent);
}

/* One word of the last axis: on the next line when this one would grow beyond `width`, unless that gains nothing. */
static void put_word(printer *self, int before, const char *word, int after, int indent, int width)
{
  if (self->column + before + (int)strlen(word) + after > width && self->column > indent) new_line(self, indent);
  put_blanks(self, before);
  put(self, word);
  put_blanks(self, after);
}

/* The elements of one axis in brackets, from `offset` (in elements) on. */
static void put_axis(printer *self, int axis, int64_t offset)
{
  const flow_tensor *tensor = self->tensor;
  char word[WORD_SIZE];
  int after, last_axis = axis == tensor->rank - 1, indent = axis + 1, width = LINE_WIDTH - axis - 1;
  if (axis == tensor->rank) {
    int before = print_element(self, offset, word, &after);
    put_word(self, before, word, after, 0, LINE_WIDTH);
    return;
  }
  put(self, "[");
  for (int64_t i = 0; i < tensor->shape[axis]; i++) {
    if (i > 0 && last_axis) put_blanks(self, 1);
    for (int line = axis; i > 0 && line < tensor->rank - 1; line++) new_line(self, indent);
    if (is_cut(self, axis) && i == EDGE_ITEMS) {
      if (last_axis) put_word(self, 0, "...", 0, indent, width);
      else put(self, "...");
      i = tensor->shape[axis] - EDGE_ITEMS - 1;
    } else if (last_axis) {
      int before = print_element(self, offset + i * tensor->strides[axis], word, &after);
      put_word(self, before, word, after, indent, width);
    } else {
      put_axis(self, axis + 1, offset + i * tensor->strides[axis]);
    }
  }
  put(self, "]");
}

/* All elements, or, above THRESHOLD of them, the edges of each axis. */
static void put_elements(printer *self)
{
  int64_t elements = flow_shape_size(self->tensor->rank, self->tensor->shape);
  if (elements == 0) {
    flow_text_add(&self->text, "[]");
    return;
  }
  self->summarize = elements > THRESHOLD;
  choose_format(self);
  put_axis(self, 0, 0);
  if (self->pending > 0) flow_text_add(&self->text, "%*s", self->pending, "");
}

/* Returns the length of the whole text, which may be more than `size`, as snprintf does. A tensor that has no value is named ("closed",
 * "symbolic"), which is not a failure. */
int flow_tensor_format(const flow_tensor *tensor, char *text, int size)
{
  FLOW_DEFAULT_FLOATS;
  printer self = { .text = flow_text_into(text, size) };
  flow_tensor *host;
  if (flow_tensor_on_host(tensor, &host) != FLOW_OK) {
    int alive = tensor && tensor->magic == FLOW_TENSOR_MAGIC;
    flow_text_add(&self.text, "%s", !alive ? "closed" : tensor->storage ? flow_last_error() : "symbolic");
    return self.text.length;
  }
  self.tensor = host;
  put_elements(&self);
  flow_tensor_release(host);
  return self.text.length;
}
