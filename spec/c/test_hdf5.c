/* test_hdf5.c: HDF5 files: what is written comes back from groups of every size, and files that are cut off, changed, or refer to
 * themselves end in a message. What libraries of others make of them is spec/golden/hdf5_spec.lua's. */
#define _GNU_SOURCE
#include "folder.h"

#include <sys/mman.h>
#include "io/tensor_file.h"

static flow_tensor_writer *new_writer(void)
{
  flow_tensor_writer *writer;
  assert_int_equal(flow_tensor_writer_new(&writer), FLOW_OK);
  return writer;
}

static void add(flow_tensor_writer *writer, const char *name, flow_tensor *tensor)
{
  assert_int_equal(flow_tensor_writer_add(writer, name, tensor), FLOW_OK);
  flow_tensor_release(tensor);
}

static void save(flow_tensor_writer *writer)
{
  assert_int_equal(flow_tensor_writer_save(writer, path, "hdf5"), FLOW_OK);
  flow_tensor_writer_release(writer);
}

static flow_tensor_file *open_file(void)
{
  flow_tensor_file *file;
  if (flow_tensor_file_open(path, NULL, &file) != FLOW_OK) fail_msg("%s", flow_last_error());
  return file;
}

/* A little of everything: the file that is broken below. */
static void save_little(void)
{
  flow_tensor_writer *writer = new_writer();
  add(writer, "layers/dense/vars/0", counting(FLOW_FLOAT32, 2, SHAPE(2, 3)));
  add(writer, "layers/dense/vars/1", counting(FLOW_BFLOAT16, 1, SHAPE(3)));
  add(writer, "vars/iteration", counting(FLOW_INT64, 0, NULL));
  flow_tensor_writer_group(writer, "layers/dropout/vars");
  flow_tensor_writer_note(writer, "layers/dense/vars", "name", "dense_1");
  flow_tensor_writer_note(writer, "", "name", "a model");
  save(writer);
}

typedef struct bytes { unsigned char *data; size_t count; } bytes;

static bytes load(void)
{
  bytes b = { malloc(1 << 20), 0 };
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  b.count = fread(b.data, 1, 1 << 20, file);
  fclose(file);
  return b;
}

static void store(const void *data, size_t count)
{
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(data, 1, count, file), count);
  fclose(file);
}

static void expect_failure(flow_status expected, const char *part)
{
  flow_tensor_file *file;
  assert_int_equal(flow_tensor_file_open(path, NULL, &file), expected);
  assert_null(file);
  if (!strstr(flow_last_error(), part)) fail_msg("\"%s\" does not say \"%s\"", flow_last_error(), part);
  assert_non_null(strstr(flow_last_error(), path));
}

/* ---- round trips ------------------------------------------------------------------------------------------------------------------- */

static void everything_comes_back(void **state)
{
  (void)state;
  save_little();
  flow_tensor_file *file = open_file();
  flow_tensor *tensor;
  assert_int_equal(file->entry_count, 3);
  assert_int_equal(file->group_count, 6);
  int bias = flow_tensor_file_find(file, "layers/dense/vars/1");
  assert_int_equal(flow_tensor_file_dtype(file, bias), FLOW_BFLOAT16);
  assert_int_equal(flow_tensor_file_read(file, bias, &tensor), FLOW_OK);
  EXPECT(tensor, 0, 1, 2);
  flow_tensor_release(tensor);
  assert_int_equal(flow_tensor_file_read(file, flow_tensor_file_find(file, "layers/dense/vars/0"), &tensor), FLOW_OK);
  EXPECT(tensor, 0, 1, 2, 3, 4, 5);
  flow_tensor_release(tensor);
  assert_string_equal(flow_tensor_file_note_text(file, "layers/dense/vars", "name"), "dense_1");
  assert_string_equal(flow_tensor_file_note_text(file, "", "name"), "a model");
  assert_string_equal(flow_tensor_file_note_text(file, "layers/dense/vars/1", "dtype"), "bfloat16");
  for (int i = 0; i < file->entry_count; i++) assert_int_equal(file->entries[i].offset % 64, 0);
  flow_tensor_file_release(file);
}

/* Numbers of links at which nodes and levels of the B-tree become full. */
static void groups_of_every_size_are_read(void **state)
{
  (void)state;
  static const int sizes[] = { 0, 1, 7, 8, 9, 255, 256, 257, 300, 8191, 8192, 8193 };
  char name[64];
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    flow_tensor_writer *writer = new_writer();
    for (int i = 0; i < sizes[s]; i++) {
      snprintf(name, sizeof name, "layers/layer_%d", i);
      assert_int_equal(flow_tensor_writer_group(writer, name), FLOW_OK);
    }
    save(writer);
    flow_tensor_file *file = open_file();
    assert_int_equal(file->group_count, sizes[s] > 0 ? sizes[s] + 1 : 0);
    for (int i = 2; i < file->group_count; i++) assert_true(strcmp(file->groups[i - 1], file->groups[i]) < 0);
    flow_tensor_file_release(file);
  }
}

static void texts_of_every_size_are_read(void **state)
{
  (void)state;
  flow_tensor_writer *writer = new_writer();
  char *text = malloc(200001), name[32];
  memset(text, 'x', 200000);
  for (int i = 0; i < 300; i++) {
    snprintf(name, sizeof name, "group %d", i);
    int length = i == 150 ? 200000 : i * 7;
    text[length] = '\0';
    assert_int_equal(flow_tensor_writer_note(writer, name, "name", text), FLOW_OK);
    text[length] = 'x';
  }
  save(writer);
  flow_tensor_file *file = open_file();
  for (int i = 0; i < 300; i++) {
    snprintf(name, sizeof name, "group %d", i);
    assert_int_equal(strlen(flow_tensor_file_note_text(file, name, "name")), i == 150 ? 200000 : i * 7);
  }
  flow_tensor_file_release(file);
  free(text);
}

static void paths_that_cannot_be_are_refused(void **state)
{
  (void)state;
  static const char *const names[] = { "/a", "a/", "a//b", ".", "a/./b" };
  char deep[200];
  for (int i = 0; i < 99; i++) memcpy(deep + 2 * i, "d/", 2);
  deep[197] = '\0';
  for (size_t i = 0; i <= sizeof names / sizeof *names; i++) {
    flow_tensor_writer *writer = new_writer();
    add(writer, i < sizeof names / sizeof *names ? names[i] : deep, counting(FLOW_FLOAT32, 0, NULL));
    assert_int_equal(flow_tensor_writer_save(writer, path, "hdf5"), FLOW_INVALID_ARGUMENT);
    assert_non_null(strstr(flow_last_error(), "cannot be a path"));
    flow_tensor_writer_release(writer);
  }
  for (int order = 0; order < 3; order++) {
    flow_tensor_writer *writer = new_writer();
    add(writer, "a", counting(FLOW_FLOAT32, 0, NULL));
    if (order == 0) add(writer, "a/b", counting(FLOW_FLOAT32, 0, NULL));
    if (order == 1) flow_tensor_writer_group(writer, "a");
    if (order == 2) flow_tensor_writer_note(writer, "a/b", "name", "x");
    assert_int_equal(flow_tensor_writer_save(writer, path, "hdf5"), FLOW_INVALID_ARGUMENT);
    assert_non_null(strstr(flow_last_error(), "as a tensor and as a group"));
    flow_tensor_writer_release(writer);
  }
}

static void contents_beyond_four_gigabytes_are_found(void **state)
{
  (void)state;
  const int64_t large = 5000000000;
  flow_tensor *tensor;
  uint64_t size;
  void *memory = mmap(NULL, (size_t)large, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) skip();
  assert_int_equal(flow_tensor_borrow(memory, FLOW_UINT8, 1, &large, &tensor), FLOW_OK);
  flow_tensor_writer *writer = new_writer();
  add(writer, "a", tensor);
  add(writer, "b", counting(FLOW_FLOAT32, 1, SHAPE(4)));
  assert_int_equal(flow_format_hdf5.size(writer, &size), FLOW_OK);
  assert_true(size > (uint64_t)large && size < (uint64_t)large + 8192);
  flow_tensor_writer_release(writer);
  munmap(memory, (size_t)large);

  writer = new_writer();                    /* the same content of a small file, moved after a hole */
  add(writer, "b", counting(FLOW_FLOAT32, 1, SHAPE(4)));
  save(writer);
  bytes b = load();
  uint64_t from = b.count - 16, to = (uint64_t)large, end = to + 16;
  for (size_t i = 0; i + 8 < b.count; i++) if (memcmp(b.data + i, &from, 8) == 0) memcpy(b.data + i, &to, 8);
  memcpy(b.data + 40, &end, 8);
  store(b.data, b.count);
  FILE *file = fopen(path, "r+b");
  assert_int_equal(fseeko(file, (off_t)large, SEEK_SET), 0);
  assert_int_equal(fwrite(b.data + from, 1, 16, file), 16);
  fclose(file);
  free(b.data);
  flow_tensor_file *opened = open_file();
  assert_int_equal(flow_tensor_file_read(opened, 0, &tensor), FLOW_OK);
  EXPECT(tensor, 0, 1, 2, 3);
  flow_tensor_release(tensor);
  flow_tensor_file_release(opened);
}

/* ---- files that are not sound -------------------------------------------------------------------------------------------------------- */

/* Opens what is there; if that works, reads all of it. */
static flow_status read_all(void)
{
  flow_tensor_file *file;
  flow_status status = flow_tensor_file_open(path, NULL, &file);
  assert_int_equal(status == FLOW_OK, file != NULL);
  for (int i = 0; status == FLOW_OK && i < file->entry_count; i++) {
    flow_tensor *tensor;
    assert_int_equal(flow_tensor_file_read(file, i, &tensor), FLOW_OK);
    flow_tensor_release(tensor);
  }
  flow_tensor_file_release(file);
  return status;
}

static void every_cut_is_noticed(void **state)
{
  (void)state;
  save_little();
  bytes good = load();
  for (size_t count = 0; count < good.count; count += count < 256 ? 1 : 13) {
    store(good.data, count);
    assert_int_equal(read_all(), FLOW_CORRUPT_DATA);
  }
  free(good.data);
}

static void every_changed_byte_is_survived(void **state)
{
  (void)state;
  static const unsigned char masks[] = { 0x01, 0x80, 0xff };
  save_little();
  bytes b = load();
  int refused = 0;
  for (size_t i = 0; i < b.count; i++) {
    int zero = b.data[i] == 0 && i % 5 > 0;             /* most of the file is padding: one in five of those */
    for (int k = 0; k < 3 && !zero; k++) {
      b.data[i] ^= masks[k];
      store(b.data, b.count);
      refused += read_all() != FLOW_OK;
      b.data[i] ^= masks[k];
    }
  }
  assert_true(refused > 500);
  free(b.data);
}

static size_t place_of(const bytes *b, const char *word, int which)
{
  for (size_t i = 0; i + 4 <= b->count; i++) {
    if (memcmp(b->data + i, word, strlen(word)) == 0 && which-- == 0) return i;
  }
  fail_msg("no %s", word);
  return 0;
}

static void put(bytes *b, size_t place, uint64_t value, int count)
{
  for (int i = 0; i < count; i++) b->data[place + (size_t)i] = (unsigned char)(value >> 8 * i);
  store(b->data, b->count);
}

static void files_that_refer_to_themselves_are_refused(void **state)
{
  (void)state;
  uint64_t root = 96;                       /* its header follows the superblock */
  bytes b;
  save_little();
  b = load();
  put(&b, place_of(&b, "SNOD", 0) + 16, root, 8);          /* "layers" is the root again */
  expect_failure(FLOW_CORRUPT_DATA, "nested more than 64 deep");
  free(b.data);
  save_little();
  b = load();
  size_t tree = place_of(&b, "TREE", 0);
  b.data[tree + 5] = 1;
  put(&b, tree + 32, tree, 8);                             /* a B-tree that is its own child */
  expect_failure(FLOW_CORRUPT_DATA, "B-tree is invalid");
  b.data[tree + 5] = 0;
  put(&b, tree + 32, tree, 8);
  expect_failure(FLOW_CORRUPT_DATA, "symbol node is invalid");
  free(b.data);
  save_little();
  b = load();
  put(&b, (size_t)root + 16, 0x10, 2);                     /* the header goes on where it began */
  put(&b, (size_t)root + 24, root + 16, 8);
  put(&b, (size_t)root + 32, 24, 8);
  expect_failure(FLOW_CORRUPT_DATA, "too many places");
  free(b.data);
}

/* 60 groups, each twice in the one above: 2^60 paths. */
static void files_that_unfold_without_end_are_refused(void **state)
{
  (void)state;
  flow_tensor_writer *writer = new_writer();
  char name[256] = "";
  for (int i = 0; i < 60; i++) {
    strcat(name, i > 0 ? "/a" : "a");
    assert_int_equal(flow_tensor_writer_group(writer, name), FLOW_OK);
    name[strlen(name) - 1] = 'b';
    assert_int_equal(flow_tensor_writer_group(writer, name), FLOW_OK);
    name[strlen(name) - 1] = 'a';
  }
  save(writer);
  bytes b = load();
  for (int i = 0; i < 60; i++) {
    size_t symbols = place_of(&b, "SNOD", i);
    memcpy(b.data + symbols + 48 + 8, b.data + symbols + 8 + 8, 32);
  }
  store(b.data, b.count);
  expect_failure(FLOW_CORRUPT_DATA, "more often than a file of its size can");
  free(b.data);
}

static void what_is_beyond_the_subset_is_named(void **state)
{
  (void)state;
  bytes b;
  save_little();
  b = load();
  put(&b, place_of(&b, "SNOD", 0) + 24, 2, 4);
  expect_failure(FLOW_UNSUPPORTED, "layers is or has a soft link");
  free(b.data);
  save_little();
  b = load();
  put(&b, 8, 9, 1);
  expect_failure(FLOW_UNSUPPORTED, "superblock");
  put(&b, 8, 0, 1);
  put(&b, 13, 4, 1);
  expect_failure(FLOW_UNSUPPORTED, "addresses of other than 8 bytes");
  put(&b, 13, 8, 1);
  put(&b, 24, 512, 8);
  expect_failure(FLOW_UNSUPPORTED, "base address");
  free(b.data);
}

/* ---- memory ------------------------------------------------------------------------------------------------------------------------- */

static void memory_that_is_out_leaves_the_old_file(void **state)
{
  (void)state;
  flow_tensor_writer *writer = new_writer();
  add(writer, "a/b", counting(FLOW_FLOAT32, 1, SHAPE(4)));
  flow_tensor_writer_note(writer, "a", "name", "text");
  store("old", 3);
  int failures = 0;
  for (flow_status status = FLOW_OUT_OF_MEMORY; status != FLOW_OK; failures++) {
    double before = flow_live_bytes();
    flow_fail_allocation(failures);
    status = flow_tensor_writer_save(writer, path, "hdf5");
    flow_fail_allocation(-1);
    assert_true(flow_live_bytes() == before);
    if (status == FLOW_OK) break;
    assert_int_equal(status, FLOW_OUT_OF_MEMORY);
    bytes b = load();
    assert_int_equal(b.count, 3);
    free(b.data);
  }
  assert_true(failures > 8);
  flow_tensor_writer_release(writer);
  failures = 0;
  for (flow_status status = FLOW_OUT_OF_MEMORY; status != FLOW_OK; failures++) {
    flow_tensor_file *file;
    double before = flow_live_bytes();
    flow_fail_allocation(failures);
    status = flow_tensor_file_open(path, NULL, &file);
    flow_fail_allocation(-1);
    flow_tensor_file_release(file);
    assert_true(status == FLOW_OK || status == FLOW_OUT_OF_MEMORY);
    assert_true(flow_live_bytes() == before);
  }
  assert_true(failures > 8);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    IN_FOLDER(everything_comes_back),
    IN_FOLDER(groups_of_every_size_are_read),
    IN_FOLDER(texts_of_every_size_are_read),
    IN_FOLDER(paths_that_cannot_be_are_refused),
    IN_FOLDER(contents_beyond_four_gigabytes_are_found),
    IN_FOLDER(every_cut_is_noticed),
    IN_FOLDER(every_changed_byte_is_survived),
    IN_FOLDER(files_that_refer_to_themselves_are_refused),
    IN_FOLDER(files_that_unfold_without_end_are_refused),
    IN_FOLDER(what_is_beyond_the_subset_is_named),
    IN_FOLDER(memory_that_is_out_leaves_the_old_file),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
