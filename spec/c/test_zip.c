/* test_zip.c: zip archives: what is written comes back, members are where they were asked to, and archives that contradict themselves
 * are refused with the reason. */
#define _GNU_SOURCE
#include "folder.h"

#include <zlib.h>
#include "io/zip.h"

static void add(flow_zip_writer *writer, const char *name, const void *bytes, uint64_t count, unsigned align)
{
  assert_int_equal(flow_zip_start(writer, name, count, align), FLOW_OK);
  assert_int_equal(flow_sink_write(&writer->sink, bytes, count), FLOW_OK);
  assert_int_equal(flow_zip_finish(writer), FLOW_OK);
}

/* The file, which the caller frees. */
static unsigned char *read_back(size_t *size)
{
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  unsigned char *bytes = malloc(65536);
  *size = fread(bytes, 1, 65536, file);
  fclose(file);
  return bytes;
}

/* An archive of two members, as read_back. */
static unsigned char *make(size_t *size)
{
  flow_zip_writer writer;
  assert_int_equal(flow_zip_create(path, &writer), FLOW_OK);
  add(&writer, "a.txt", "first", 5, 0);
  add(&writer, "folder/b", "the second", 10, 64);
  assert_int_equal(flow_zip_commit(&writer), FLOW_OK);
  return read_back(size);
}

static void put(const void *bytes, size_t count)
{
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, count, file), count);
  fclose(file);
}

static void expect_refused(flow_status expected, const char *part)
{
  flow_zip zip;
  assert_int_equal(flow_zip_open(path, &zip), expected);
  if (!strstr(flow_last_error(), part)) fail_msg("\"%s\" does not say \"%s\"", flow_last_error(), part);
  assert_non_null(strstr(flow_last_error(), path));
  flow_zip_close(&zip);
}

/* Every occurrence of a word by another of its length. */
static void replace(unsigned char *bytes, size_t size, const char *word, const char *with)
{
  size_t length = strlen(word);
  for (size_t i = 0; i + length <= size; i++) {
    if (memcmp(bytes + i, word, length) == 0) memcpy(bytes + i, with, length);
  }
}

static void members_come_back(void **state)
{
  (void)state;
  size_t size;
  flow_zip zip;
  char text[16];
  free(make(&size));
  assert_int_equal(flow_zip_open(path, &zip), FLOW_OK);
  assert_int_equal(zip.count, 2);
  assert_string_equal(zip.members[0].name, "a.txt");
  assert_null(flow_zip_find(&zip, "a"));
  const flow_zip_member *b = flow_zip_find(&zip, "folder/b");
  assert_non_null(b);
  assert_int_equal(b->data % 64, 0);
  assert_int_equal(b->size, 10);
  assert_int_equal(flow_zip_begin(&zip, b), FLOW_OK);
  assert_int_equal(flow_source_read(&zip.source, "b", text, 10), FLOW_OK);
  assert_memory_equal(text, "the second", 10);
  assert_int_equal(flow_zip_end(&zip, b), FLOW_OK);
  assert_int_equal(flow_zip_verify(&zip, flow_zip_find(&zip, "a.txt")), FLOW_OK);
  flow_zip_close(&zip);
}

static void content_starts_where_it_was_asked_to(void **state)
{
  (void)state;
  static const unsigned aligns[] = { 0, 1, 2, 4, 8, 64, 512, 4096 };
  flow_zip_writer writer;
  flow_zip zip;
  char name[40];
  assert_int_equal(flow_zip_create(path, &writer), FLOW_OK);
  for (int i = 0; i < 64; i++) {                     /* names of every length, so that every padding occurs */
    snprintf(name, sizeof name, "%02d%.*s", i, i % 20, "abcdefghijklmnopqrstuvwxyz");
    add(&writer, name, name, strlen(name), aligns[i % 8]);
  }
  assert_int_equal(flow_zip_commit(&writer), FLOW_OK);
  assert_int_equal(flow_zip_open(path, &zip), FLOW_OK);
  assert_int_equal(zip.count, 64);
  for (int i = 0; i < 64; i++) {
    if (aligns[i % 8] > 0) assert_int_equal(zip.members[i].data % aligns[i % 8], 0);
    assert_int_equal(flow_zip_verify(&zip, &zip.members[i]), FLOW_OK);
  }
  flow_zip_close(&zip);
}

static void an_empty_archive_has_no_members(void **state)
{
  (void)state;
  flow_zip_writer writer;
  flow_zip zip;
  assert_int_equal(flow_zip_create(path, &writer), FLOW_OK);
  assert_int_equal(flow_zip_commit(&writer), FLOW_OK);
  assert_int_equal(flow_zip_open(path, &zip), FLOW_OK);
  assert_int_equal(zip.count, 0);
  assert_null(flow_zip_find(&zip, "a"));
  flow_zip_close(&zip);
}

static void names_that_lead_elsewhere_are_refused(void **state)
{
  (void)state;
  static const char *const names[] = { "", "/a", "..", "../a", "a/../b", "a//b", "a\\b", "./a", "a/." };
  flow_zip_writer writer;
  assert_int_equal(flow_zip_create(path, &writer), FLOW_OK);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    assert_int_equal(flow_zip_start(&writer, names[i], 1, 0), FLOW_INVALID_ARGUMENT);
  }
  add(&writer, "a..b/...c", "x", 1, 0);
  assert_int_equal(flow_zip_start(&writer, "a..b/...c", 1, 0), FLOW_INVALID_ARGUMENT);
  flow_zip_discard(&writer);

  size_t size;
  unsigned char *bytes = make(&size);
  replace(bytes, size, "a.txt", "../xt");
  put(bytes, size);
  free(bytes);
  expect_refused(FLOW_CORRUPT_DATA, "\"..\"");
}

static void fewer_or_more_bytes_than_announced_are_refused(void **state)
{
  (void)state;
  flow_zip_writer writer;
  assert_int_equal(flow_zip_create(path, &writer), FLOW_OK);
  assert_int_equal(flow_zip_start(&writer, "a", 5, 0), FLOW_OK);
  assert_int_equal(flow_sink_write(&writer.sink, "four", 4), FLOW_OK);
  assert_int_equal(flow_zip_finish(&writer), FLOW_INTERNAL);
  flow_zip_discard(&writer);
  assert_int_not_equal(access(path, F_OK), 0);
}

/* Puts a little-endian number after the signature, the which-th of its kind. */
static void change(unsigned char *bytes, size_t size, const char *signature, int which, size_t offset, uint64_t value, int count)
{
  for (size_t i = 0; i + 4 <= size; i++) {
    if (memcmp(bytes + i, signature, 4) == 0 && which-- == 0) {
      for (int k = 0; k < count; k++) bytes[i + offset + (size_t)k] = (unsigned char)(value >> 8 * k);
      return;
    }
  }
  fail_msg("no signature");
}

static void archives_that_contradict_themselves_are_explained(void **state)
{
  (void)state;
  static const struct { const char *signature; int which; size_t offset; uint64_t value; int count; const char *part; } cases[] = {
    { "PK\3\4", 0, 18, 4, 4, "contradicts" },            /* compressed size in the header */
    { "PK\3\4", 0, 22, 6, 4, "contradicts" },
    { "PK\3\4", 0, 14, 6, 4, "contradicts" },            /* checksum in the header */
    { "PK\3\4", 0, 8, 8, 2, "contradicts" },             /* method */
    { "PK\3\4", 0, 28, 60000, 2, "damaged" },            /* extra field beyond the file */
    { "PK\1\2", 0, 24, 4, 4, "two sizes" },
    { "PK\1\2", 0, 42, 1, 4, "contradicts" },            /* where its header is */
    { "PK\1\2", 0, 42, 0x7fffffff, 4, "damaged" },
    { "PK\1\2", 1, 28, 60000, 2, "cut off" },            /* length of a name */
    { "PK\1\2", 1, 0, 0, 4, "directory is damaged" },
    { "PK\5\6", 0, 10, 3, 2, "fewer entries" },
    { "PK\5\6", 0, 10, 1, 2, "more entries" },
    { "PK\5\6", 0, 10, 50000, 2, "fewer entries" },
    { "PK\5\6", 0, 12, 1, 4, "not where" },
    { "PK\5\6", 0, 16, 1, 4, "not where" },
    { "PK\5\6", 0, 4, 1, 2, "several parts" },
    { "PK\5\6", 0, 20, 1, 2, "no directory" },
  };
  size_t size;
  unsigned char *good = make(&size), *bad = malloc(size);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    memcpy(bad, good, size);
    change(bad, size, cases[i].signature, cases[i].which, cases[i].offset, cases[i].value, cases[i].count);
    put(bad, size);
    expect_refused(FLOW_CORRUPT_DATA, cases[i].part);
  }
  for (size_t count = 0; count < size; count++) {
    flow_zip zip;
    put(good, count);
    assert_int_equal(flow_zip_open(path, &zip), FLOW_CORRUPT_DATA);
  }
  free(bad);
  free(good);
}

static void overlaps_and_repeated_names_are_refused(void **state)
{
  (void)state;
  size_t size;
  flow_zip_writer writer;
  assert_int_equal(flow_zip_create(path, &writer), FLOW_OK);
  add(&writer, "one", "12345", 5, 0);
  add(&writer, "two", "12345", 5, 0);
  assert_int_equal(flow_zip_commit(&writer), FLOW_OK);
  unsigned char *bytes = read_back(&size);
  replace(bytes, size, "two", "one");
  put(bytes, size);
  expect_refused(FLOW_CORRUPT_DATA, "two members with the name one");
  change(bytes, size, "PK\1\2", 1, 42, 0, 4);            /* both in one place */
  put(bytes, size);
  expect_refused(FLOW_CORRUPT_DATA, "overlaps");
  free(bytes);
}

static void a_wrong_byte_is_found(void **state)
{
  (void)state;
  size_t size;
  flow_zip zip;
  unsigned char *bytes = make(&size);
  replace(bytes, size, "first", "fIrst");
  put(bytes, size);
  free(bytes);
  assert_int_equal(flow_zip_open(path, &zip), FLOW_OK);
  assert_int_equal(flow_zip_verify(&zip, &zip.members[0]), FLOW_CORRUPT_DATA);
  assert_non_null(strstr(flow_last_error(), "checksum of a.txt is wrong"));
  assert_int_equal(flow_zip_verify(&zip, &zip.members[1]), FLOW_OK);
  flow_zip_close(&zip);
}

/* The numbers of an archive beyond 4 GB; its content is a hole, so that the file is small. */
static void sizes_beyond_four_gigabytes_are_kept(void **state)
{
  (void)state;
  const uint64_t large = 5000000000u;
  flow_zip_writer writer;
  flow_zip zip;
  assert_int_equal(flow_zip_create(path, &writer), FLOW_OK);
  assert_int_equal(flow_zip_start(&writer, "large", large, 64), FLOW_OK);
  assert_int_equal(fseeko(writer.sink.file, (off_t)large, SEEK_CUR), 0);
  writer.sink.written += large;
  assert_int_equal(flow_zip_finish(&writer), FLOW_OK);
  add(&writer, "behind", "12345", 5, 0);
  assert_int_equal(flow_zip_commit(&writer), FLOW_OK);
  assert_int_equal(flow_zip_open(path, &zip), FLOW_OK);
  const flow_zip_member *member = flow_zip_find(&zip, "large"), *behind = flow_zip_find(&zip, "behind");
  assert_true(member->size == large && member->compressed == large && member->data % 64 == 0);
  assert_true(behind->header == member->data + large);
  assert_int_equal(flow_zip_verify(&zip, behind), FLOW_OK);
  flow_zip_close(&zip);
}

static void many_members_are_found_by_name(void **state)
{
  (void)state;
  flow_zip_writer writer;
  flow_zip zip;
  char name[16];
  assert_int_equal(flow_zip_create(path, &writer), FLOW_OK);
  for (int i = 0; i < 300; i++) {
    snprintf(name, sizeof name, "%d", i);
    add(&writer, name, "", 0, 0);
  }
  assert_int_equal(flow_zip_commit(&writer), FLOW_OK);
  assert_int_equal(flow_zip_open(path, &zip), FLOW_OK);
  assert_int_equal(zip.count, 300);
  for (int i = 0; i < 300; i++) {
    snprintf(name, sizeof name, "%d", i);
    assert_ptr_equal(flow_zip_find(&zip, name), &zip.members[i]);
  }
  flow_zip_close(&zip);
}

/* ---- the C API ------------------------------------------------------------------------------------------------------------------ */

static flow_archive_writer *new_archive(void)
{
  flow_archive_writer *writer;
  flow_tensor_writer *tensors;
  flow_tensor *tensor = counting(FLOW_FLOAT32, 1, SHAPE(4));
  assert_int_equal(flow_archive_writer_new(path, &writer), FLOW_OK);
  assert_int_equal(flow_archive_writer_add_text(writer, "config.json", "{\"a\": 1}", 8), FLOW_OK);
  assert_int_equal(flow_tensor_writer_new(&tensors), FLOW_OK);
  assert_int_equal(flow_tensor_writer_add(tensors, "vars/0", tensor), FLOW_OK);
  assert_int_equal(flow_archive_writer_add_tensors(writer, "w", tensors, "no such"), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_archive_writer_add_tensors(writer, "model.weights.h5", tensors, "hdf5"), FLOW_OK);
  assert_int_equal(flow_archive_writer_add_tensors(writer, "model.safetensors", tensors, "safetensors"), FLOW_OK);
  flow_tensor_writer_release(tensors);
  flow_tensor_release(tensor);
  return writer;
}

static void archives_hold_texts_and_tensors(void **state)
{
  (void)state;
  static const char *const weights[] = { "model.weights.h5", "model.safetensors" };
  flow_archive *archive;
  flow_archive_writer *writer = new_archive();
  const char *text, *again;
  double count;
  assert_int_equal(flow_archive_writer_commit(writer), FLOW_OK);
  assert_int_equal(flow_archive_writer_add_text(writer, "late", "", 0), FLOW_INVALID_STATE);
  flow_archive_writer_release(writer);
  assert_int_equal(flow_archive_open(path, &archive), FLOW_OK);
  assert_int_equal(flow_archive_count(archive), 3);
  assert_string_equal(flow_archive_name(archive, 0), "config.json");
  assert_null(flow_archive_name(archive, 3));
  assert_int_equal(flow_archive_text(archive, "config.json", &text, &count), FLOW_OK);
  assert_int_equal(flow_archive_text(archive, "config.json", &again, &count), FLOW_OK);
  assert_ptr_equal(text, again);
  assert_string_equal(text, "{\"a\": 1}");
  assert_int_equal(flow_archive_text(archive, "no.json", &text, &count), FLOW_NOT_FOUND);
  assert_null(text);
  flow_archive_release(archive);
  for (int i = 0; i < 2; i++) {
    flow_tensor_file *file;
    flow_tensor *tensor;
    assert_int_equal(flow_tensor_file_open(path, weights[i], &file), FLOW_OK);
    assert_int_equal(flow_tensor_file_read(file, flow_tensor_file_find(file, "vars/0"), &tensor), FLOW_OK);
    EXPECT(tensor, 0, 1, 2, 3);
    flow_tensor_release(tensor);
    flow_tensor_file_release(file);
  }
}

static void a_wrong_byte_among_tensors_is_named(void **state)
{
  (void)state;
  flow_archive_writer *writer = new_archive();
  flow_tensor_file *file;
  assert_int_equal(flow_archive_writer_commit(writer), FLOW_OK);
  flow_archive_writer_release(writer);
  size_t size;
  unsigned char *bytes = read_back(&size);
  replace(bytes, size, "vars", "Vars");
  put(bytes, size);
  free(bytes);
  assert_int_equal(flow_tensor_file_open(path, "model.weights.h5", &file), FLOW_CORRUPT_DATA);
  assert_non_null(strstr(flow_last_error(), "checksum of model.weights.h5 is wrong"));
  assert_int_equal(flow_tensor_file_open(path, "other.h5", &file), FLOW_NOT_FOUND);
}

static void an_archive_that_is_given_up_leaves_the_old_one(void **state)
{
  (void)state;
  size_t size;
  put("old", 3);
  flow_archive_writer *writer = new_archive();
  flow_archive_writer_release(writer);
  writer = new_archive();
  assert_int_equal(flow_archive_writer_add_text(writer, "../config.json", "", 0), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_archive_writer_commit(writer), FLOW_INVALID_STATE);
  flow_archive_writer_release(writer);
  free(read_back(&size));
  assert_int_equal(size, 3);
}

static void memory_that_is_out_leaves_nothing(void **state)
{
  (void)state;
  size_t size;
  flow_zip zip;
  free(make(&size));
  int failures = 0;
  for (flow_status status = FLOW_OUT_OF_MEMORY; status != FLOW_OK; failures++) {
    double before = flow_live_bytes();
    flow_fail_allocation(failures);
    status = flow_zip_open(path, &zip);
    flow_fail_allocation(-1);
    if (status == FLOW_OK) flow_zip_close(&zip);
    else assert_int_equal(status, FLOW_OUT_OF_MEMORY);
    assert_true(flow_live_bytes() == before);
  }
  assert_true(failures > 4);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    IN_FOLDER(members_come_back),
    IN_FOLDER(content_starts_where_it_was_asked_to),
    IN_FOLDER(an_empty_archive_has_no_members),
    IN_FOLDER(names_that_lead_elsewhere_are_refused),
    IN_FOLDER(fewer_or_more_bytes_than_announced_are_refused),
    IN_FOLDER(archives_that_contradict_themselves_are_explained),
    IN_FOLDER(overlaps_and_repeated_names_are_refused),
    IN_FOLDER(a_wrong_byte_is_found),
    IN_FOLDER(sizes_beyond_four_gigabytes_are_kept),
    IN_FOLDER(many_members_are_found_by_name),
    IN_FOLDER(archives_hold_texts_and_tensors),
    IN_FOLDER(a_wrong_byte_among_tensors_is_named),
    IN_FOLDER(an_archive_that_is_given_up_leaves_the_old_one),
    IN_FOLDER(memory_that_is_out_leaves_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
