/* A cluster's secret: where it comes from, where it is asked for, and what the plugin's seals keep out. */
#define _GNU_SOURCE             /* memmem */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "cluster/control/secret.h"
#include "cluster/control/control_plugin.h"
#include "temporary.h"

/* The state is a list of names and values. */
static const char *get_listed(const void *state, const char *name)
{
  for (const char *const *at = state; *at; at += 2) {
    if (strcmp(at[0], name) == 0) return at[1];
  }
  return NULL;
}

static void expect_words(const char *part)
{
  if (!strstr(flow_last_error(), part)) fail_msg("\"%s\" lacks \"%s\"", flow_last_error(), part);
}

static const char SECRET[] = "0123456789abcdef";

static void test_environment(void **state)
{
  (void)state;
  static flow_secret secret;
  const char *none[] = { NULL }, *good[] = { "FLOW_SECRET", SECRET, NULL }, *weak[] = { "FLOW_SECRET", "0123456789abcde", NULL };
  const char *both[] = { "FLOW_SECRET", SECRET, "FLOW_SECRET_FILE", "/x", NULL }, *lost[] = { "FLOW_SECRET_FILE", "/no/such/file", NULL };
  assert_int_equal(flow_secret_read(&(flow_environment){ get_listed, none }, &secret), FLOW_OK);
  assert_int_equal(secret.count, 0);
  assert_int_equal(flow_secret_read(&(flow_environment){ get_listed, good }, &secret), FLOW_OK);
  assert_int_equal(secret.count, 16);
  assert_memory_equal(secret.bytes, SECRET, 16);
  assert_int_equal(flow_secret_read(&(flow_environment){ get_listed, weak }, &secret), FLOW_INVALID_ARGUMENT);
  expect_words("15 bytes, from 16 to 4096 are expected");
  assert_null(strstr(flow_last_error(), "0123456789"));       /* never told */
  assert_int_equal(flow_secret_read(&(flow_environment){ get_listed, both }, &secret), FLOW_INVALID_ARGUMENT);
  expect_words("both set");
  assert_int_equal(flow_secret_read(&(flow_environment){ get_listed, lost }, &secret), FLOW_NOT_FOUND);
  expect_words("/no/such/file");
  flow_secret_clear(&secret);
  for (size_t i = 0; i < sizeof secret.bytes; i++) assert_int_equal(secret.bytes[i], 0);
}

static flow_status read_file(size_t count, int line_end, mode_t mode, flow_secret *secret)
{
  char path[TEMPORARY_PATH];
  int descriptor = mkstemp(temporary(path, "secret_XXXXXX"));
  for (size_t i = 0; i < count; i++) assert_int_equal(write(descriptor, "s", 1), 1);
  if (line_end) assert_int_equal(write(descriptor, "\n", 1), 1);
  fchmod(descriptor, mode);
  close(descriptor);
  const char *variables[] = { "FLOW_SECRET_FILE", path, NULL };
  flow_status status = flow_secret_read(&(flow_environment){ get_listed, variables }, secret);
  unlink(path);
  return status;
}

static void test_file(void **state)
{
  (void)state;
  static flow_secret secret;
  assert_int_equal(read_file(32, 1, 0600, &secret), FLOW_OK);
  assert_int_equal(secret.count, 32);
  assert_int_equal(read_file(FLOW_MOST_SECRET, 1, 0400, &secret), FLOW_OK);
  assert_int_equal(secret.count, FLOW_MOST_SECRET);
  assert_int_equal(read_file(FLOW_MOST_SECRET + 1, 0, 0600, &secret), FLOW_INVALID_ARGUMENT);
  assert_int_equal(read_file(FLOW_MOST_SECRET + 9, 0, 0600, &secret), FLOW_INVALID_ARGUMENT);
  assert_int_equal(read_file(0, 1, 0600, &secret), FLOW_INVALID_ARGUMENT);
  assert_int_equal(read_file(32, 0, 0640, &secret), FLOW_INVALID_ARGUMENT);
  expect_words("(mode 640): chmod 600 it");
  const char *folder[] = { "FLOW_SECRET_FILE", "/", NULL };
  assert_int_equal(flow_secret_read(&(flow_environment){ get_listed, folder }, &secret), FLOW_INVALID_ARGUMENT);
  expect_words("/ is not a file");
}

static flow_status check(const char *cluster_text, const char *insecure, size_t count)
{
  static flow_secret secret;
  flow_cluster *cluster;
  const char *variables[] = { insecure ? "FLOW_INSECURE" : NULL, insecure, NULL };
  secret.count = count;
  assert_int_equal(flow_cluster_parse(cluster_text, (double)strlen(cluster_text), "test", "worker", 0, &cluster), FLOW_OK);
  flow_status status = flow_secret_check(&(flow_environment){ get_listed, variables }, cluster, &secret);
  flow_cluster_release(cluster);
  return status;
}

static void test_where_it_is_needed(void **state)
{
  (void)state;
  static const char network[] = "{\"cluster\":{\"worker\":[\"10.0.0.7:1\",\"b:1\"]}}";
  static const char one[] = "{\"cluster\":{\"worker\":[\"10.0.0.7:1\"]}}";
  static const char loopback[] = "{\"cluster\":{\"worker\":[\"localhost:1\",\"127.0.0.1:2\",\"[::1]:3\"]}}";
  assert_int_equal(check(network, NULL, 0), FLOW_INVALID_ARGUMENT);
  expect_words("worker:0 10.0.0.7:1 is on a network and there is no secret");
  assert_int_equal(check(network, "0", 0), FLOW_INVALID_ARGUMENT);
  assert_int_equal(check(network, "1", 0), FLOW_OK);
  assert_int_equal(check(network, NULL, 16), FLOW_OK);
  assert_int_equal(check(one, NULL, 0), FLOW_OK);
  assert_int_equal(check(loopback, NULL, 0), FLOW_OK);
}

/* ---- seals --------------------------------------------------------------------------------------------------------------------------- */

static const flow_control_functions *plugin_functions(void)
{
  const flow_plugin *plugin;
  if (flow_plugin_open("control", &plugin) == FLOW_OK) return plugin->functions;
  print_message("pending: %s\n", flow_last_error());
  return NULL;
}

static flow_control_session *session(const flow_control_functions *control, const char *secret, int dialed, const uint8_t *dialer,
                                     const uint8_t *accepter)
{
  flow_control_session *made;
  assert_int_equal(control->open((const uint8_t *)secret, strlen(secret), dialed, dialer, accepter, &made), FLOW_OK);
  return made;
}

/* Whether a frame with that number that `from` sealed opens at `to`. */
static int opens(const uint8_t *frame, size_t count, const flow_seal *incoming, uint64_t number)
{
  flow_frame_reader reader;
  const uint8_t *contents;
  size_t used, size;
  flow_frame_reader_init(&reader, incoming, FLOW_FRAME_MOST);
  reader.number = number;
  flow_status status = flow_frame_reader_feed(&reader, frame, count, &used, &contents, &size);
  int same = status == FLOW_OK && contents && size == 6 && memcmp(contents, "hello!", 6) == 0;
  flow_frame_reader_clear(&reader);
  return same;
}

static void test_seals(void **state)
{
  (void)state;
  const flow_control_functions *control = plugin_functions();
  if (!control) skip();
  uint8_t dialer[FLOW_CONTROL_NONCE], accepter[FLOW_CONTROL_NONCE], frame[128], plain[128];
  double before = flow_live_bytes();
  assert_int_equal(control->nonce(dialer), FLOW_OK);
  assert_int_equal(control->nonce(accepter), FLOW_OK);
  assert_memory_not_equal(dialer, accepter, sizeof dialer);
  flow_control_session *here = session(control, SECRET, 1, dialer, accepter), *there = session(control, SECRET, 0, dialer, accepter);
  flow_control_session *stranger = session(control, "another secret, as long", 0, dialer, accepter);
  flow_control_session *later = session(control, SECRET, 0, accepter, dialer);
  const flow_seal *out = control->outgoing(here);
  size_t count = flow_frame_size(out, 6);
  flow_frame_write(NULL, 0, (const uint8_t *)"hello!", 6, plain);
  for (uint64_t number = 0; number < 3; number++) {
    assert_int_equal(flow_frame_write(out, number, (const uint8_t *)"hello!", 6, frame), FLOW_OK);
    assert_true(opens(frame, count, control->incoming(there), number));
    assert_false(opens(frame, count, control->incoming(stranger), number));
    expect_words("is FLOW_SECRET the same in all tasks?");
    assert_false(opens(frame, count, control->incoming(later), number));       /* another connection */
    assert_false(opens(frame, count, control->incoming(here), number));        /* sent back */
    frame[4] ^= 1;
    assert_false(opens(frame, count, control->incoming(there), number ^ 1));   /* under another number */
    frame[4] ^= 1;
    for (size_t at = 0; at < count; at++) {
      frame[at] ^= 0x80;
      assert_false(opens(frame, count, control->incoming(there), number));
      frame[at] ^= 0x80;
    }
  }
  assert_null(memmem(frame, count, "hello!", 6));
  assert_false(opens(plain, flow_frame_size(NULL, 6), control->incoming(there), 0));
  assert_int_equal(flow_frame_write(out, 1, (const uint8_t *)"hello!", 6, frame), FLOW_INTERNAL);      /* a nonce is used once */
  control->close(here);
  control->close(there);
  control->close(stranger);
  control->close(later);
  control->close(NULL);
  assert_true(flow_live_bytes() == before);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_environment), cmocka_unit_test(test_file), cmocka_unit_test(test_where_it_is_needed),
    cmocka_unit_test(test_seals),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
