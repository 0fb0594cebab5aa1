/* test_decimal.c: core/base/decimal: numbers as text are those of strtod and printf without a locale, whatever the locale says. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/decimal.h"
#include "base/philox.h"
#include "comma_locale.h"

enum { CASES = 20000 };

/* A double of any size, from its bits; finite. */
static double drawn(uint64_t k)
{
  const flow_philox_block block = flow_philox(7, k, 0);
  uint64_t bits = (uint64_t)block.word[0] << 32 | block.word[1];
  double value;
  memcpy(&value, &bits, sizeof value);
  return isfinite(value) ? value : (double)block.word[2];
}

/* The texts of the drawn numbers are written without a locale and read with one. */
static void numbers_are_read_as_without_a_locale(void **state)
{
  static char texts[CASES][32];
  static const char *const formats[] = { "%.*g", "%.*e", "%.*f" };
  (void)state;
  for (int i = 0; i < CASES; i++) {
    double value = i % 3 == 2 ? fmod(drawn((uint64_t)i), 1e6) : drawn((uint64_t)i);
    snprintf(texts[i], sizeof texts[i], formats[i % 3], i % 18, value);
  }
  static double wanted[CASES];
  for (int i = 0; i < CASES; i++) wanted[i] = strtod(texts[i], NULL);
  if (!use_comma_locale()) skip(); /* not glibc: there is no comma */
  for (int i = 0; i < CASES; i++) {
    const char *end;
    double value = flow_decimal_read(texts[i], NULL, &end);
    if (value != wanted[i] || *end) fail_msg("%s: %.17g, expected %.17g; left: %s", texts[i], value, wanted[i], end);
  }
  setlocale(LC_NUMERIC, "C");
}

static void numbers_are_written_as_without_a_locale(void **state)
{
  static char texts[CASES][64];
  static const char *const formats[] = { "%.*g", "%.*e", "%#.*g" };
  (void)state;
  for (int i = 0; i < CASES; i++) snprintf(texts[i], sizeof texts[i], formats[i % 3], i % 18, drawn((uint64_t)i));
  if (!use_comma_locale()) skip(); /* not glibc: there is no comma */
  for (int i = 0; i < CASES; i++) {
    char text[64];
    flow_decimal_write(text, sizeof text, formats[i % 3], i % 18, drawn((uint64_t)i));
    assert_string_equal(texts[i], text);
  }
  setlocale(LC_NUMERIC, "C");
}

/* What is read, and how many characters of it; NULL limits nothing. */
static void a_number_ends_where_its_form_does(void **state)
{
  static const struct {
    const char *text;
    double value;
    int length, limit;
  } cases[] = {
    { "1.5,2", 1.5, 3, 0 }, { "-0.25)", -0.25, 5, 0 },   { "12e3x", 12e3, 4, 0 }, { "12e+", 12, 2, 0 },   { "12e", 12, 2, 0 },
    { "3.", 3, 2, 0 },      { ".5", 0.5, 2, 0 },         { "-", 0, 0, 0 },        { "", 0, 0, 0 },        { ".", 0, 0, 0 },
    { "x", 0, 0, 0 },       { "1.2.3", 1.2, 3, 0 },      { "1234", 12, 2, 2 },    { "1.5e7", 1.5, 3, 4 }, { "1e5", 1, 1, 1 },
    { "-7", 0, 0, 1 },      { "1e400", INFINITY, 5, 0 }, { "1e-400", 0, 6, 0 },
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const char *end, *text = cases[i].text;
    double value = flow_decimal_read(text, cases[i].limit ? text + cases[i].limit : NULL, &end);
    if (value != cases[i].value || end - text != cases[i].length) fail_msg("%s: %g, %d characters", text, value, (int)(end - text));
  }
  char text[8];
  flow_decimal_write(text, sizeof text, "%.*f", 1, -INFINITY);
  assert_string_equal("-inf", text);
  flow_decimal_write(text, sizeof text, "%.*f", 0, 20);
  assert_string_equal("20", text);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(numbers_are_read_as_without_a_locale),
    cmocka_unit_test(numbers_are_written_as_without_a_locale),
    cmocka_unit_test(a_number_ends_where_its_form_does),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
