/* decimal.c: see decimal.h. */
#define _GNU_SOURCE /* newlocale, uselocale */
#include "base/decimal.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DIGITS = 800, MOST_EXPONENT = 100000 }; /* the rounding of a double depends on at most 768 digits */

static int is_digit(const char *at, const char *limit)
{
  return at != limit && *at >= '0' && *at <= '9';
}

/* The number is written without a point, with a power of ten that has its place, and left to strtod, which then asks no locale. Digits
 * beyond MOST_DIGITS are dropped, and the power corrected. No sum overflows where a text has less than 2^30 digits. */
double flow_decimal_read(const char *at, const char *limit, const char **end)
{
  char plain[MOST_DIGITS + 16];
  int digits = 0, power = 0, exponent = 0, negative = 0, found = 0, used = 0;
  const char *p = at;
  if (p != limit && *p == '-') plain[used++] = *p++;
  for (int fraction = 0; is_digit(p, limit) || (p != limit && *p == '.' && !fraction); p++) {
    if (*p == '.') {
      fraction = 1;
      continue;
    }
    found = 1;
    if (digits == 0 && *p == '0') power -= fraction;
    else if (digits < MOST_DIGITS) plain[used++] = *p, digits++, power -= fraction;
    else power += !fraction;
  }
  if (found && p != limit && (*p == 'e' || *p == 'E')) {
    const char *sign = p + 1, *first = sign + (sign != limit && (*sign == '-' || *sign == '+'));
    if (is_digit(first, limit)) {
      negative = *sign == '-';
      for (p = first; is_digit(p, limit); p++)
        if (exponent < MOST_EXPONENT) exponent = exponent * 10 + (*p - '0');
    }
  }
  if (end) *end = found ? p : at;
  if (!found) return 0;
  if (digits == 0) plain[used++] = '0';
  snprintf(plain + used, sizeof plain - (size_t)used, "e%d", power + (negative ? -exponent : exponent));
  return strtod(plain, NULL);
}

/* The locale is the calling thread's alone meanwhile. "C" is the C library's own constant: nothing is allocated, nothing can fail. */
int flow_print_list(char *text, size_t size, const char *format, va_list arguments)
{
  locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0), before = uselocale(plain);
  int length = vsnprintf(text, size, format, arguments);
  uselocale(before);
  freelocale(plain);
  return length;
}

static void print(char *text, size_t size, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  flow_print_list(text, size, format, arguments);
  va_end(arguments);
}

void flow_decimal_write(char *text, size_t size, const char *format, int digits, double value)
{
  print(text, size, format, digits, value);
}
