/* test_json.c: core/base/json: what is read is written again as it stood; numbers to the last bit, in any locale; what is not JSON names
 * its byte; nesting costs no stack; memory may run out anywhere. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/philox.h"
#include "comma_locale.h"

static flow_json *read_text(const char *text)
{
  flow_json *json;
  size_t end;
  if (flow_json_read(text, strlen(text), &end, &json) != FLOW_OK) fail_msg("%s: %s", text, flow_last_error());
  assert_int_equal(strlen(text), end);
  return json;
}

static void assert_writes(const char *wanted, const flow_json *json)
{
  char *text = flow_json_write(json);
  assert_non_null(text);
  assert_string_equal(wanted, text);
  flow_free(text);
}

static void what_is_read_is_written(void **state)
{
  static const char *const texts[] = { "null", "true", "false", "0", "-0", "1.0", "1e5", "123456789012345678901", "0.1", "[]", "{}",
    "[[],{}]",
    "\"\"", "\"a\\\"b\\\\c\\n\\t\\u001f\"", "{\"a\":1,\"a\":2,\"\":[1,2,{\"b\":null}]}", "[NaN,Infinity,-Infinity]", "\"\xc3\xa4\"" };
  (void)state;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    flow_json *json = read_text(texts[i]), *copy = flow_json_copy(json);
    assert_writes(texts[i], json);
    assert_writes(texts[i], copy);
    flow_json_release(json);
    flow_json_release(copy);
  }
}

static void escapes_become_characters(void **state)
{
  static const struct { const char *json, *text; } cases[] = {
    { "\"\\u0041\\/\\b\\f\\r\"", "A/\b\f\r" }, { "\"\\u00e4\\u20AC\"", "\xc3\xa4\xe2\x82\xac" }, { "\"\\ud83d\\ude00\"",
    "\xf0\x9f\x98\x80" } };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    flow_json *json = read_text(cases[i].json);
    assert_string_equal(cases[i].text, json->text);
    flow_json_release(json);
  }
}

static void what_is_wrong_names_its_byte(void **state)
{
  static const struct { const char *text; size_t at; } cases[] = {
    { "", 0 }, { "{'a':1}", 1 }, { "[1,]", 3 }, { "[1 2]", 3 }, { "{\"a\" 1}", 5 }, { "{\"a\":1", 6 }, { "{1:2}", 1 }, { "nul", 0 },
    { "\"abc", 4 },
    { "[01]", 2 }, { "[1.]", 3 }, { "[+1]", 1 }, { "[1e]", 3 }, { "\"\\u0000\"", 3 }, { "\"\\ud800\"", 3 }, { "\"\\x\"", 2 }, { "]",
    0 }, { "-", 1 } };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    flow_json *json;
    size_t end = 99;
    assert_int_equal(FLOW_CORRUPT_DATA, flow_json_read(cases[i].text, strlen(cases[i].text), &end, &json));
    if (end != cases[i].at) fail_msg("%s: byte %zu, expected %zu", cases[i].text, end, cases[i].at);
    assert_null(json);
  }
}

/* Random bits as numbers: 17 digits always stand for them, so that this library's text must read as the same number there and here. */
static void numbers_keep_all_bits(void **state)
{
  const char *given = getenv("FLOW_CASES");
  int count = given ? atoi(given) : 2000;
  (void)state;
  for (int i = 0; i < count; i++) {
    uint64_t bits = flow_mix((uint64_t)i, 99);
    double number, again;
    char text[64];
    memcpy(&number, &bits, sizeof number);
    if (i % 3 == 0) number = (double)(int64_t)(bits >> 20) / (double)(1 + (i % 1000));
    if (!isfinite(number)) continue;
    snprintf(text, sizeof text, i % 2 ? "%.16e" : "%.17g", number);
    flow_json *json = read_text(text), *made = flow_json_make(FLOW_JSON_REAL, number, NULL);
    assert_memory_equal(&number, &json->number, sizeof number);
    char *written = flow_json_write(made);
    again = strtod(written, NULL);
    if (memcmp(&again, &number, sizeof number) != 0) fail_msg("case %d: %.17g is written as %s", i, number, written);
    flow_free(written);
    flow_json_release(json);
    flow_json_release(made);
  }
  static const struct { const char *text; double number; } odd[] = { { "0.1e1", 1 }, { "1e400", HUGE_VAL }, { "1e-400", 0 },
    { "0.000000000000000000000000000000000000000000001e45", 1 }, { "1000000000000000000000000000000e-30", 1 }, { "4.9e-324", 4.9e-324 } };
  for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
    flow_json *json = read_text(odd[i].text);
    assert_true(json->number == odd[i].number);
    flow_json_release(json);
  }
}

static void the_locale_has_no_say(void **state)
{
  (void)state;
  if (!use_comma_locale()) skip(); /* not glibc: there is no comma */
  flow_json *json = read_text("[1.5,2.5e-3]"), *made = flow_json_make(FLOW_JSON_REAL, 0.125, NULL);
  assert_true(json->child->number == 1.5 && json->last->number == 2.5e-3);
  assert_writes("0.125", made);
  flow_json_release(json);
  flow_json_release(made);
  setlocale(LC_NUMERIC, "C");
}

static void what_is_made_is_written(void **state)
{
  (void)state;
  flow_json *object = flow_json_make(FLOW_JSON_OBJECT, 0, NULL);
  flow_json_put_text(object, "text", "a\"b");
  flow_json_put_number(object, "whole", 3);
  flow_json_put_number(object, "large", 1e15);
  flow_json_put(object, "real", flow_json_make(FLOW_JSON_REAL, 1, NULL));
  flow_json_put(object, "small", flow_json_make(FLOW_JSON_REAL, 1e-7, NULL));
  flow_json_put(object, "list", flow_json_make_numbers((const double[]){ 1, 2.5 }, 2));
  flow_json_put(object, "raw", flow_json_make(FLOW_JSON_PRINTED, 0, "[ 1 ]"));
  flow_json_put_kind(object, "none", FLOW_JSON_NULL);
  flow_json_put(object, "yes", flow_json_make(FLOW_JSON_BOOLEAN, 7, NULL));
  assert_writes("{\"text\":\"a\\\"b\",\"whole\":3,\"large\":1000000000000000,\"real\":1.0,\"small\":1e-07,\"list\":[1,2.5],\"raw\":[ 1 ],"
                "\"none\":null,\"yes\":true}", object);
  flow_json_remove(object, "yes");
  flow_json_remove(object, "text");
  flow_json_remove(object, "missing");
  flow_json_put_number(object, "last", -1);
  assert_int_equal(8, flow_json_count(object));
  assert_writes("[1,2.5]", flow_json_member(object, "list"));
  assert_true(flow_json_item(flow_json_member(object, "list"), 1)->number == 2.5);
  assert_null(flow_json_item(object, 8));
  flow_json_release(object);
}

/* 1,000 levels, and twenty thousand siblings, on 32 KB of stack. */
static void *use_deep(void *argument)
{
  char *text = argument;
  flow_json *json = read_text(text), *copy = flow_json_copy(json);
  assert_writes(text, copy);
  flow_json_release(json);
  flow_json_release(copy);
  return NULL;
}

static void nesting_costs_no_stack(void **state)
{
  static char deep[FLOW_JSON_DEPTH * 2 + 4], wide[40004];
  pthread_attr_t small;
  pthread_t thread;
  flow_json *json;
  size_t end;
  (void)state;
  memset(deep, '[', FLOW_JSON_DEPTH);
  memset(deep + FLOW_JSON_DEPTH, ']', FLOW_JSON_DEPTH);
  wide[0] = '[';
  for (int i = 0; i < 20000; i++) memcpy(wide + 1 + 2 * i, i ? ",1" : " 1", 2);
  memmove(wide + 1, wide + 2, 39999);
  wide[40000] = ']';
  assert_int_equal(0, pthread_attr_init(&small));
  assert_int_equal(0, pthread_attr_setstacksize(&small, getenv("FLOW_SANITIZED") ? 1 << 20 : 32 << 10));
  for (char *const *text = (char *const[]){ deep, wide, NULL }; *text; text++) {
    assert_int_equal(0, pthread_create(&thread, &small, use_deep, *text));
    pthread_join(thread, NULL);
  }
  pthread_attr_destroy(&small);
  memset(deep, '[', FLOW_JSON_DEPTH + 1);
  assert_int_equal(FLOW_UNSUPPORTED, flow_json_read(deep, FLOW_JSON_DEPTH + 1, &end, &json));
}

static void memory_may_run_out(void **state)
{
  static const char text[] = "{\"a\":[1,\"two\",{\"b\":null}],\"c\":\"\\u00e4\"}";
  flow_status status = FLOW_OUT_OF_MEMORY;
  (void)state;
  for (int n = 0; status != FLOW_OK; n++) {
    double before = flow_live_bytes();
    flow_json *json, *object;
    size_t end;
    char *written = NULL;
    flow_fail_allocation(n);
    status = flow_json_read(text, sizeof text - 1, &end, &json);
    if (status == FLOW_OK) {
      object = flow_json_make(FLOW_JSON_OBJECT, 0, NULL);
      flow_json_put_text(object, "x", "y");
      flow_json_put(object, "z", flow_json_copy(json));
      written = flow_json_write(object);
      flow_json_release(object);
      if (!written) status = FLOW_OUT_OF_MEMORY;
    }
    flow_fail_allocation(-1);
    if (written) assert_string_equal("{\"x\":\"y\",\"z\":{\"a\":[1,\"two\",{\"b\":null}],\"c\":\"\xc3\xa4\"}}", written);
    assert_int_equal(written ? FLOW_OK : FLOW_OUT_OF_MEMORY, status);
    flow_free(written);
    flow_json_release(json);
    assert_true(flow_live_bytes() == before);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_is_read_is_written), cmocka_unit_test(escapes_become_characters),
    cmocka_unit_test(what_is_wrong_names_its_byte),
    cmocka_unit_test(numbers_keep_all_bits),   cmocka_unit_test(the_locale_has_no_say),     cmocka_unit_test(what_is_made_is_written),
    cmocka_unit_test(nesting_costs_no_stack),  cmocka_unit_test(memory_may_run_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
