/* test_record.c: CRC-32C, TFRecord files and tf.train.Examples: round trips, the bytes that TensorFlow writes
 * (spec/golden/records.py), and files that are cut off or lie. */
#include "folder.h"

#include "io/crc32c.h"
#include "io/example.h"
#include "io/record.h"

static const char *const names[] = { "", "GZIP", "ZLIB" };
static const flow_coding codings[] = { FLOW_PLAIN, FLOW_GZIP, FLOW_ZLIB };

static void write_file(const void *data, size_t count)
{
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(data, 1, count, file), count);
  fclose(file);
}

static size_t read_file(const char *name, unsigned char *data, size_t most)
{
  FILE *file = fopen(name, "rb");
  if (!file) fail_msg("%s cannot be read", name);
  size_t count = fread(data, 1, most, file);
  fclose(file);
  return count;
}

static void expect_message(flow_status status, flow_status expected, const char *part)
{
  if (status != expected || !strstr(flow_last_error(), part)) fail_msg("%d \"%s\" does not say \"%s\"", status, flow_last_error(), part);
}

/* ---- checksums ------------------------------------------------------------------------------------------------------------------- */

static void checksums_are_crc_32c(void **state)
{
  (void)state;
  unsigned char data[300];
  assert_int_equal(flow_crc32c(0, "123456789", 9), 0xe3069283u);
  assert_int_equal(flow_crc32c_by_table(0, "123456789", 9), 0xe3069283u);
  for (size_t i = 0; i < sizeof data; i++) data[i] = (unsigned char)(i * i * 7 + i);
  for (size_t first = 0; first < 9; first++) {
    for (size_t count = 0; count + first <= sizeof data; count++) {
      uint32_t whole = flow_crc32c(0, data + first, count);
      assert_int_equal(whole, flow_crc32c_by_table(0, data + first, count));
      assert_int_equal(whole, flow_crc32c(flow_crc32c_by_table(0, data + first, count / 3), data + first + count / 3, count - count / 3));
    }
  }
}

/* ---- files ------------------------------------------------------------------------------------------------------------------------- */

static void hello_has_tensorflows_bytes(void **state)
{
  (void)state;
  flow_record_writer *writer;
  unsigned char found[64];
  assert_int_equal(flow_record_writer_new(path, NULL, &writer), FLOW_OK);
  assert_int_equal(flow_record_writer_write(writer, "hello", 5), FLOW_OK);
  assert_int_equal(access(path, F_OK), -1);                              /* until it is whole */
  assert_int_equal(flow_record_writer_close(writer), FLOW_OK);
  assert_int_equal(read_file(path, found, sizeof found), 21);
  assert_memory_equal(found, "\x05\0\0\0\0\0\0\0\xea\xb2\x04\x3ehello\xbb\x1f\x1c\x19", 21);
  expect_message(flow_record_writer_write(writer, "x", 1), FLOW_INVALID_STATE, "is closed");
  expect_message(flow_record_writer_close(writer), FLOW_INVALID_STATE, "is closed");
  flow_record_writer_release(writer);
  assert_int_equal(flow_record_writer_new(path, "", &writer), FLOW_OK);
  assert_int_equal(flow_record_writer_write(writer, "gone", 4), FLOW_OK);
  flow_record_writer_release(writer);
  assert_int_equal(read_file(path, found, sizeof found), 21);            /* unclosed: the old file remains */
  expect_message(flow_record_writer_new(path, "gzip", &writer), FLOW_INVALID_ARGUMENT, "found \"gzip\"");
  assert_null(writer);
}

/* Record i of a file that several windows long records make. */
static size_t make_record(int i, unsigned char *to)
{
  static const size_t sizes[] = { 0, 5, 300000, 17, 262144, 1, 900001, 262128, 3 };
  size_t size = sizes[i % 9];
  for (size_t k = 0; k < size; k++) to[k] = (unsigned char)(k * 31 + (k >> 8) * 7 + (size_t)i);
  return size;
}

static void records_come_back(void **state)
{
  (void)state;
  enum { COUNT = 27, MOST = 1 << 20 };
  unsigned char *expected = malloc(MOST);
  const unsigned char *bytes;
  uint64_t count;
  assert_non_null(expected);
  for (int c = 0; c < 3; c++) {
    flow_record_writer *writer;
    assert_int_equal(flow_record_writer_new(path, names[c], &writer), FLOW_OK);
    for (int i = 0; i < COUNT; i++) assert_int_equal(flow_record_writer_write(writer, expected, (double)make_record(i, expected)), FLOW_OK);
    assert_int_equal(flow_record_writer_close(writer), FLOW_OK);
    flow_record_writer_release(writer);
    flow_record_reader reader;
    assert_int_equal(flow_record_open(path, codings[c], &reader), FLOW_OK);
    for (int i = 0; i < COUNT; i++) {
      size_t size = make_record(i, expected);
      int skipped = i % 5 == 3;
      if (skipped) {
        assert_int_equal(flow_record_skip(&reader, &skipped), FLOW_OK);
        assert_int_equal(skipped, 1);
        continue;
      }
      assert_int_equal(flow_record_next(&reader, &bytes, &count), FLOW_OK);
      assert_non_null(bytes);
      assert_int_equal(count, size);
      assert_memory_equal(bytes, expected, size);
    }
    for (int again = 0; again < 2; again++) {
      assert_int_equal(flow_record_next(&reader, &bytes, &count), FLOW_OK);
      assert_null(bytes);
    }
    assert_true(flow_live_bytes() - live_before < 4 << 20);              /* the window, not the file (4 MB and more) */
    flow_record_close(&reader);
    flow_record_close(&reader);
  }
  free(expected);
}

static volatile unsigned char seen;      /* every byte is read */

/* Reads to the end or the first failure; the number of records. */
static int read_all(const char *name, flow_coding coding, flow_status *status)
{
  flow_record_reader reader;
  const unsigned char *bytes;
  uint64_t count;
  int records = 0;
  *status = flow_record_open(name, coding, &reader);
  while (*status == FLOW_OK) {
    *status = flow_record_next(&reader, &bytes, &count);
    if (*status != FLOW_OK || !bytes) break;
    for (uint64_t i = 0; i < count; i++) seen = bytes[i];
    records++;
  }
  flow_record_close(&reader);
  return records;
}

static void tensorflows_files_are_read(void **state)
{
  (void)state;
  static const char *const files[] = { "plain", "gzip", "zlib" };
  static const char *const starts[] = { "", "hello", "", "end" };
  static const size_t sizes[] = { 0, 5, 76800, 3 };
  char name[64];
  for (int c = 0; c < 3; c++) {
    flow_record_reader reader;
    const unsigned char *bytes;
    uint64_t count;
    snprintf(name, sizeof name, "spec/golden/records/%s.tfrecord", files[c]);
    assert_int_equal(flow_record_open(name, codings[c], &reader), FLOW_OK);
    for (int i = 0; i < 4; i++) {
      assert_int_equal(flow_record_next(&reader, &bytes, &count), FLOW_OK);
      assert_non_null(bytes);
      assert_int_equal(count, sizes[i]);
      assert_memory_equal(bytes, starts[i], strlen(starts[i]));
    }
    assert_int_equal(flow_record_next(&reader, &bytes, &count), FLOW_OK);
    assert_null(bytes);
    flow_record_close(&reader);
  }
  flow_status status;
  assert_int_equal(read_all("spec/golden/records/gzip.tfrecord", FLOW_PLAIN, &status), 0);
  expect_message(status, FLOW_CORRUPT_DATA, "gzip.tfrecord: the record at byte 0 is damaged: its length has a wrong checksum; is this");
}

/* Whatever a file holds, reading ends with a message or the end, never a crash, a leak or memory beyond reason. */
static void damaged_files_are_explained(void **state)
{
  (void)state;
  unsigned char good[256], bad[256];
  flow_status status;
  for (int c = 0; c < 3; c++) {
    flow_record_writer *writer;
    assert_int_equal(flow_record_writer_new(path, names[c], &writer), FLOW_OK);
    assert_int_equal(flow_record_writer_write(writer, "first", 5), FLOW_OK);
    assert_int_equal(flow_record_writer_write(writer, "", 0), FLOW_OK);
    assert_int_equal(flow_record_writer_write(writer, "the third one", 13), FLOW_OK);
    assert_int_equal(flow_record_writer_close(writer), FLOW_OK);
    flow_record_writer_release(writer);
    size_t count = read_file(path, good, sizeof good);
    for (size_t cut = 0; cut < count; cut++) {
      write_file(good, cut);
      int records = read_all(path, codings[c], &status);
      int between = c == 0 && (cut == 0 || cut == 21 || cut == 37);
      assert_int_equal(status, between ? FLOW_OK : FLOW_CORRUPT_DATA);
      assert_true(records <= 3);
    }
    for (size_t place = 0; place < count * 8; place++) {
      memcpy(bad, good, count);
      bad[place / 8] ^= (unsigned char)(1 << place % 8);
      write_file(bad, count);
      read_all(path, codings[c], &status);
      if (c == 0) assert_int_equal(status, FLOW_CORRUPT_DATA);           /* a checksum sees every single bit */
    }
    write_file(good, count);
    for (int allowed = 0;; allowed++) {
      flow_fail_allocation(allowed);
      int records = read_all(path, codings[c], &status);
      flow_fail_allocation(-1);
      assert_true(flow_live_bytes() == live_before);
      if (status == FLOW_OK) {
        assert_int_equal(records, 3);
        assert_true(allowed > 1);
        break;
      }
      assert_int_equal(status, FLOW_OUT_OF_MEMORY);
    }
  }
  write_file(good, 0);
}

static void messages_name_file_and_byte(void **state)
{
  (void)state;
  unsigned char file[64];
  flow_status status;
  flow_record_writer *writer;
  assert_int_equal(flow_record_writer_new(path, "", &writer), FLOW_OK);
  assert_int_equal(flow_record_writer_write(writer, "first", 5), FLOW_OK);
  assert_int_equal(flow_record_writer_write(writer, "second", 6), FLOW_OK);
  assert_int_equal(flow_record_writer_close(writer), FLOW_OK);
  flow_record_writer_release(writer);
  size_t count = read_file(path, file, sizeof file);
  file[21 + 12] ^= 1;
  write_file(file, count);
  assert_int_equal(read_all(path, FLOW_PLAIN, &status), 1);
  expect_message(status, FLOW_CORRUPT_DATA, "/file: the record at byte 21 is damaged: its bytes have a wrong checksum");
  write_file(file, count - 1);
  read_all(path, FLOW_PLAIN, &status);
  expect_message(status, FLOW_CORRUPT_DATA, "the record at byte 21 is damaged: its length is more than the file holds");
  write_file(file, 25);
  read_all(path, FLOW_PLAIN, &status);
  expect_message(status, FLOW_CORRUPT_DATA, "the record at byte 21 is damaged: the file ends inside its length");
  assert_int_equal(read_all("/nowhere/at/all", FLOW_PLAIN, &status), 0);
  expect_message(status, FLOW_NOT_FOUND, "/nowhere/at/all");
}

/* A length with a sound checksum that no file could have: refused before memory is taken. */
static void absurd_lengths_take_no_memory(void **state)
{
  (void)state;
  static const uint64_t lengths[] = { 1ull << 20, 1ull << 40, UINT64_MAX, UINT64_MAX - 11, 1ull << 63 };
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    for (int c = 0; c < 3; c++) {
      unsigned char file[64] = { 0 };
      for (int byte = 0; byte < 8; byte++) file[byte] = (unsigned char)(lengths[i] >> 8 * byte);
      uint32_t crc = flow_crc32c_masked(file, 8);
      for (int byte = 0; byte < 4; byte++) file[8 + byte] = (unsigned char)(crc >> 8 * byte);
      unsigned char packed[256];
      z_stream z = { .next_in = file, .avail_in = sizeof file, .next_out = packed, .avail_out = sizeof packed };
      if (c == 0) {
        write_file(file, sizeof file);
      } else {
        assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, flow_coding_window(codings[c]), 8, Z_DEFAULT_STRATEGY), Z_OK);
        assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
        deflateEnd(&z);
        write_file(packed, z.total_out);
      }
      flow_status status;
      flow_record_reader reader;
      const unsigned char *bytes;
      uint64_t count;
      assert_int_equal(flow_record_open(path, codings[c], &reader), FLOW_OK);
      status = flow_record_next(&reader, &bytes, &count);
      assert_int_equal(status, FLOW_CORRUPT_DATA);
      assert_true(flow_live_bytes() - live_before < 1 << 20);
      flow_record_close(&reader);
    }
  }
}

/* ---- Examples ------------------------------------------------------------------------------------------------------------------------ */

static flow_feature find(const unsigned char *bytes, uint64_t count, const char *name, flow_feature_kind kind, uint64_t values)
{
  flow_feature feature;
  int found;
  uint64_t n;
  assert_int_equal(flow_example_find(bytes, count, name, &feature, &found), FLOW_OK);
  assert_int_equal(found, 1);
  assert_int_equal(feature.kind, kind);
  assert_int_equal(flow_feature_count(&feature, &n), FLOW_OK);
  assert_int_equal(n, values);
  return feature;
}

static void examples_have_tensorflows_bytes(void **state)
{
  (void)state;
  unsigned char expected[1024], found[1024], small[8];
  flow_record_writer *writer;
  flow_example *examples[4];
  char xs[201];
  assert_int_equal(flow_record_writer_new(path, "", &writer), FLOW_OK);
  for (int i = 0; i < 4; i++) assert_int_equal(flow_example_new(&examples[i]), FLOW_OK);
  assert_int_equal(flow_example_add_integers(examples[0], "label", (int64_t[]){ 7 }, 1), FLOW_OK);
  flow_example *e = examples[1];
  assert_int_equal(flow_example_add_bytes(e, "z", "", 0), FLOW_OK);
  assert_int_equal(flow_example_add_floats(e, "xs", (float[]){ 1.5f }, 1), FLOW_OK);
  expect_message(flow_example_add_floats(e, "xs", NULL, 3), FLOW_INVALID_ARGUMENT, "3 values or bytes were announced, but their pointer");
  assert_int_equal(flow_example_add_bytes(e, "image", "\x00\xff\x89PNG", 6), FLOW_OK);
  assert_int_equal(flow_example_add_integers(e, "label", (int64_t[]){ -1, INT64_MAX, INT64_MIN, 300 }, 4), FLOW_OK);
  assert_int_equal(flow_example_add_floats(e, "xs", (float[]){ -2.25f, 0 }, 2), FLOW_OK);
  assert_int_equal(flow_example_add_bytes(e, "z", "two", 3), FLOW_OK);
  memset(xs, 'x', sizeof xs);
  assert_int_equal(flow_example_add_integers(examples[3], "empty", NULL, 0), FLOW_OK);
  assert_int_equal(flow_example_add_bytes(examples[3], "Name", xs, 200), FLOW_OK);
  expect_message(flow_example_add_floats(examples[3], "Name", NULL, 0), FLOW_INVALID_ARGUMENT,
                 "'Name' holds bytes, it cannot take float32");
  assert_true(flow_example_serialize(examples[0], NULL, 0) == 18);
  assert_true(flow_example_serialize(examples[0], small, 8) == 18);
  assert_true(flow_example_serialize(examples[0], found, 18) == 18);
  assert_memory_equal(found, "\x0a\x10\x0a\x0e\x0a\x05label\x12\x05\x1a\x03\x0a\x01\x07", 18);
  for (int i = 0; i < 4; i++) {
    assert_int_equal(flow_record_writer_write_example(writer, examples[i]), FLOW_OK);
    flow_example_release(examples[i]);
  }
  assert_int_equal(flow_record_writer_close(writer), FLOW_OK);
  flow_record_writer_release(writer);
  size_t count = read_file("spec/golden/records/examples.tfrecord", expected, sizeof expected);
  assert_int_equal(read_file(path, found, sizeof found), count);
  assert_memory_equal(found, expected, count);
}

static void every_spelling_of_an_example_is_read(void **state)
{
  (void)state;
  flow_record_reader reader;
  const unsigned char *bytes;
  uint64_t count;
  int64_t n[2];
  float x[2];
  flow_bytes s;
  assert_int_equal(flow_record_open("spec/golden/records/unpacked.tfrecord", FLOW_PLAIN, &reader), FLOW_OK);
  assert_int_equal(flow_record_next(&reader, &bytes, &count), FLOW_OK);
  flow_feature feature = find(bytes, count, "n", FLOW_FEATURE_INTEGERS, 2);
  assert_int_equal(flow_feature_integers(&feature, n), FLOW_OK);
  assert_true(n[0] == 5 && n[1] == 300);
  feature = find(bytes, count, "x", FLOW_FEATURE_FLOATS, 2);
  assert_int_equal(flow_feature_floats(&feature, x), FLOW_OK);
  assert_true(x[0] == 1 && x[1] == 2);
  feature = find(bytes, count, "s", FLOW_FEATURE_BYTES, 2);
  assert_int_equal(flow_feature_bytes(&feature, &s), FLOW_OK);
  assert_true(s.end - s.next == 1 && *s.next == 'a');
  flow_record_close(&reader);
}

/* Reads every value of every feature into blocks of exactly their size: a sanitizer sees a step too far. */
static flow_status read_example(const unsigned char *bytes, uint64_t count)
{
  flow_example_reader reader = flow_example_reader_of(bytes, count);
  for (;;) {
    flow_feature feature;
    int found;
    uint64_t n;
    FLOW_TRY(flow_example_next(&reader, &feature, &found));
    if (!found) return FLOW_OK;
    FLOW_TRY(flow_feature_count(&feature, &n));
    assert_true(n <= count);
    flow_bytes value;
    void *to = malloc(n * 8 + 1);
    flow_status status = feature.kind == FLOW_FEATURE_FLOATS ? flow_feature_floats(&feature, to)
                       : feature.kind == FLOW_FEATURE_INTEGERS ? flow_feature_integers(&feature, to)
                       : feature.kind == FLOW_FEATURE_BYTES && n > 0 ? flow_feature_bytes(&feature, &value) : FLOW_OK;
    free(to);
    if (status != FLOW_OK) return status;
  }
}

static void damaged_examples_are_survived(void **state)
{
  (void)state;
  static const char *const files[] = { "examples", "unpacked" };
  static const unsigned char masks[] = { 0x01, 0x02, 0x04, 0x08, 0x10, 0x80, 0xff };
  for (int f = 0; f < 2; f++) {
    flow_record_reader reader;
    const unsigned char *bytes;
    uint64_t count;
    char name[64];
    snprintf(name, sizeof name, "spec/golden/records/%s.tfrecord", files[f]);
    assert_int_equal(flow_record_open(name, FLOW_PLAIN, &reader), FLOW_OK);
    for (int failures = 0;;) {
      assert_int_equal(flow_record_next(&reader, &bytes, &count), FLOW_OK);
      if (!bytes) break;
      assert_int_equal(read_example(bytes, count), FLOW_OK);
      unsigned char *copy = malloc(count + 1);
      for (uint64_t cut = 0; cut < count; cut++) {
        unsigned char *part = malloc(cut + 1);
        memcpy(part, bytes, cut);
        failures += read_example(part, cut) != FLOW_OK;
        free(part);
      }
      for (uint64_t place = 0; place < count * sizeof masks; place++) {
        memcpy(copy, bytes, count);
        copy[place / sizeof masks] ^= masks[place % sizeof masks];
        failures += read_example(copy, count) != FLOW_OK;
      }
      assert_true(count == 2 || failures > 10);
      free(copy);
    }
    flow_record_close(&reader);
  }
}

static void lies_of_examples_are_found(void **state)
{
  (void)state;
  static const struct { const char *bytes; size_t count; } lies[] = {
    { "\x0a\x7f", 2 },                                        /* longer than the message */
    { "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11 },   /* 2^64 - 1 bytes */
    { "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11 },   /* a varint without an end */
    { "\x00\x01", 2 },                                        /* field number 0 */
    { "\x0e", 1 },                                            /* wire type 6 */
    { "\x0b\x13\x0c\x0c", 4 },                                /* groups that close in the wrong order */
    { "\x0c", 1 },
    { "\x0a\x0c\x0a\x0a\x12\x08\x12\x06\x0a\x03\0\0\0", 13 }, /* three bytes of floats, in lists that do not fit */
    { "\x0a\x0b\x0a\x09\x12\x07\x12\x05\x0a\x03\0\0\0", 13 }, /* three bytes of floats */
    { "\x0a\x0a\x0a\x08\x12\x06\x1a\x04\x0a\x02\x80\x80", 12 }, /* integers without an end */
  };
  for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
    assert_int_equal(read_example((const unsigned char *)lies[i].bytes, lies[i].count), FLOW_CORRUPT_DATA);
    assert_non_null(strstr(flow_last_error(), "not a tf.train.Example"));
  }
  assert_int_equal(read_example((const unsigned char *)"\x0b\x13\x14\x0c", 4), FLOW_OK);     /* an unknown group */
}

static void writers_survive_failing_allocations(void **state)
{
  (void)state;
  for (int c = 0; c < 3; c++) {
    for (int allowed = 0;; allowed++) {
      flow_record_writer *writer = NULL;
      flow_example *example = NULL;
      flow_fail_allocation(allowed);
      flow_status status = flow_record_writer_new(path, names[c], &writer);
      if (status == FLOW_OK) status = flow_example_new(&example);
      if (status == FLOW_OK) status = flow_example_add_bytes(example, "a", "b", 1);
      if (status == FLOW_OK) status = flow_example_add_floats(example, "c", (float[]){ 1 }, 1);
      if (status == FLOW_OK) status = flow_record_writer_write_example(writer, example);
      if (status == FLOW_OK) status = flow_record_writer_close(writer);
      flow_fail_allocation(-1);
      flow_record_writer_release(writer);
      flow_example_release(example);
      assert_true(flow_live_bytes() == live_before);
      if (status == FLOW_OK) break;
      assert_int_equal(status, FLOW_OUT_OF_MEMORY);
    }
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    TEST(checksums_are_crc_32c), TEST(hello_has_tensorflows_bytes), TEST(records_come_back), TEST(tensorflows_files_are_read),
    TEST(damaged_files_are_explained), TEST(messages_name_file_and_byte), TEST(absurd_lengths_take_no_memory),
    TEST(examples_have_tensorflows_bytes), TEST(every_spelling_of_an_example_is_read), TEST(damaged_examples_are_survived),
    TEST(lies_of_examples_are_found), TEST(writers_survive_failing_allocations),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
