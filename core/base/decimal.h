/* decimal.h: numbers as decimal text with a point, whatever the locale of the process says: strtod and printf follow a host that called
 * setlocale, and read "0.5" as 0 or write "0,5". */
#ifndef FLOW_BASE_DECIMAL_H
#define FLOW_BASE_DECIMAL_H

#include <stdarg.h>
#include <stddef.h>

/* The longest number [-]digits[.digits][e[+-]digits] at the beginning of a text, rounded correctly. limit: the text's end, NULL for one
 * that a zero ends. *end: after the number; `at`, with 0 as the result, where there is none. end may be NULL. */
double flow_decimal_read(const char *at, const char *limit, const char **end);

/* What printf writes of the value for format, which has one "*" for the digits, such as "%.*g", with a point; cut to `size` bytes. */
void flow_decimal_write(char *text, size_t size, const char *format, int digits, double value);

/* vsnprintf with points in numbers. */
int flow_print_list(char *text, size_t size, const char *format, va_list arguments) __attribute__((format(printf, 3, 0)));

#endif
