/* test_io.c: npy and npz files: round trips, the bytes that NumPy writes, and files that are cut off or lie. */
#include "file_bytes.h"

#include <sys/stat.h>
#include <zlib.h>

static void append_number(bytes *b, uint64_t value, int count)       /* little-endian */
{
  for (int i = 0; i < count; i++) append(b, &(unsigned char){ (unsigned char)(value >> 8 * i) }, 1);
}

static size_t read_file(unsigned char *data, size_t most)
{
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  size_t count = fread(data, 1, most, file);
  fclose(file);
  return count;
}

/* ---- npy ------------------------------------------------------------------------------------------------------------------------- */

static void make_npy(bytes *b, int version, const char *literal, const void *data, size_t count)
{
  b->count = 0;
  append(b, "\x93NUMPY", 6);
  append_number(b, (uint64_t)version, 2);
  append_number(b, strlen(literal), version == 1 ? 2 : 4);
  append(b, literal, strlen(literal));
  append(b, data, count);
}

static void arrays_come_back(void **state)
{
  (void)state;
  static const struct { int rank; int64_t shape[4]; } shapes[] = {
    { 0, { 0 } }, { 1, { 5 } }, { 2, { 2, 3 } }, { 4, { 2, 1, 3, 2 } }, { 2, { 0, 3 } },
  };
  for (int dtype = 0; dtype < FLOW_DTYPE_COUNT; dtype++) {
    if (dtype == FLOW_BFLOAT16) continue;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
      flow_tensor *saved = counting(dtype, shapes[i].rank, shapes[i].shape), *loaded;
      assert_int_equal(flow_tensor_save_npy(saved, path), FLOW_OK);
      assert_int_equal(flow_tensor_load_npy(path, &loaded), FLOW_OK);
      assert_int_equal(loaded->dtype, dtype);
      assert_true(flow_shape_equal(saved->rank, saved->shape, loaded->rank, loaded->shape));
      assert_memory_equal(saved->data, loaded->data, saved->storage->bytes);
      flow_tensor_release(saved);
      flow_tensor_release(loaded);
    }
  }
}

static void files_have_the_bytes_that_numpy_writes(void **state)
{
  (void)state;
  unsigned char found[256];
  char expected[129];
  flow_tensor *tensor = from_numbers(FLOW_FLOAT32, 2, SHAPE(2, 1), (double[]){ 1, -2 });
  assert_int_equal(flow_tensor_save_npy(tensor, path), FLOW_OK);
  assert_int_equal(read_file(found, sizeof found), 136);
  assert_memory_equal(found, "\x93NUMPY\x01\x00\x76\x00", 10);
  snprintf(expected, sizeof expected, "%-117s\n", "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }");
  assert_memory_equal(found + 10, expected, 118);
  assert_memory_equal(found + 128, "\x00\x00\x80\x3f\x00\x00\x00\xc0", 8);
  flow_tensor_release(tensor);
  tensor = counting(FLOW_UINT8, 1, SHAPE(3));
  assert_int_equal(flow_tensor_save_npy(tensor, path), FLOW_OK);
  assert_int_equal(read_file(found, sizeof found), 131);
  assert_non_null(strstr((char *)found + 10, "{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }"));
  flow_tensor_release(tensor);
}

static void views_are_saved_in_their_order(void **state)
{
  (void)state;
  flow_tensor *source = counting(FLOW_INT64, 2, SHAPE(2, 3)), *view = view_of(source, 2, SHAPE(3, 2), SHAPE(1, 3), 0), *loaded;
  assert_int_equal(flow_tensor_save_npy(view, path), FLOW_OK);
  assert_int_equal(flow_tensor_load_npy(path, &loaded), FLOW_OK);
  EXPECT(loaded, 0, 3, 1, 4, 2, 5);
  flow_tensor_release(loaded);
  flow_tensor_release(view);
  flow_tensor_release(source);
}

static void versions_and_spellings_of_headers_are_read(void **state)
{
  (void)state;
  static const char *const literals[] = {
    "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }", "{\"shape\":(2,3),\"fortran_order\":False,\"descr\":\"<i4\"}\n",
    "  { 'shape' : ( 2L , 3L , ) , 'descr' : '=i4' , 'fortran_order' : False } \n",
  };
  static const int32_t data[6] = { 1, 2, 3, 4, 5, 6 };
  bytes b;
  flow_tensor *tensor;
  for (int version = 1; version <= 3; version++) {
    for (int i = 0; i < 3; i++) {
      make_npy(&b, version, literals[i], data, sizeof data);
      write_file(b.data, b.count);
      assert_int_equal(flow_tensor_load_npy(path, &tensor), FLOW_OK);
      EXPECT(tensor, 1, 2, 3, 4, 5, 6);
      flow_tensor_release(tensor);
    }
  }
}

static void fortran_order_is_turned_around(void **state)
{
  (void)state;
  static const unsigned char data[6] = { 1, 2, 3, 4, 5, 6 };
  bytes b;
  flow_tensor *tensor;
  make_npy(&b, 1, "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }", data, sizeof data);
  write_file(b.data, b.count);
  assert_int_equal(flow_tensor_load_npy(path, &tensor), FLOW_OK);
  assert_true(tensor->shape[0] == 2 && tensor->shape[1] == 3 && flow_tensor_is_contiguous(tensor));
  EXPECT(tensor, 1, 3, 5, 2, 4, 6);
  flow_tensor_release(tensor);
  survive_everything(flow_tensor_load_npy, &b, b.count);
}

static void odd_bools_become_zero_and_one(void **state)
{
  (void)state;
  bytes b;
  flow_tensor *tensor;
  make_npy(&b, 1, "{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }", "\x00\x02\xff", 3);
  write_file(b.data, b.count);
  assert_int_equal(flow_tensor_load_npy(path, &tensor), FLOW_OK);
  assert_memory_equal(tensor->data, "\x00\x01\x01", 3);
  flow_tensor_release(tensor);
}

static void big_endian_numbers_are_turned_round(void **state)
{
  (void)state;
  bytes b;
  flow_tensor *tensor;
  make_npy(&b, 1, "{'descr': '>i4', 'fortran_order': True, 'shape': (1, 2), }", "\x00\x01\x02\x03\xff\xff\xff\xfe", 8);
  write_file(b.data, b.count);
  assert_int_equal(flow_tensor_load_npy(path, &tensor), FLOW_OK);
  assert_int_equal(tensor->dtype, FLOW_INT32);
  assert_int_equal(((const int32_t *)(const void *)tensor->data)[0], 0x00010203);
  assert_int_equal(((const int32_t *)(const void *)tensor->data)[1], -2);
  flow_tensor_release(tensor);
}

static void bad_npy_files_are_explained(void **state)
{
  (void)state;
  static const struct { const char *literal; flow_status status; const char *part;
  } cases[] = {
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", FLOW_CORRUPT_DATA, "shape {3} takes 12 bytes, at most 8" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (4000000000, 4000000000), }", FLOW_CORRUPT_DATA, "too many elements" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,), }", FLOW_CORRUPT_DATA, "cut off" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", FLOW_CORRUPT_DATA, "a smaller size" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", FLOW_CORRUPT_DATA, "a size" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }", FLOW_UNSUPPORTED, "more than 8 axes" },
    { "{'descr': '>c8', 'fortran_order': False, 'shape': (1,), }", FLOW_UNSUPPORTED, "'>c8'" },
    { "{'descr': '<U3', 'fortran_order': False, 'shape': (1,), }", FLOW_UNSUPPORTED, "'<U3'" },
    { "{'descr': '|f4', 'fortran_order': False, 'shape': (1,), }", FLOW_UNSUPPORTED, "'|f4'" },
    { "{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (1,), }", FLOW_UNSUPPORTED, "records of named fields" },
    { "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,), }", FLOW_CORRUPT_DATA, "True or False" },
    { "{'descr': '<f4', 'shape': (1,), }", FLOW_CORRUPT_DATA, "fortran_order" },
    { "{'descr': '<f4', 'descr': '<f4', 'shape': (1,), }", FLOW_CORRUPT_DATA, "'descr'" },
    { "{'descr': '<f4'", FLOW_CORRUPT_DATA, "a comma" },
    { "{'descr", FLOW_CORRUPT_DATA, "a short text" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (1 1), }", FLOW_CORRUPT_DATA, "a comma" },
    { "", FLOW_CORRUPT_DATA, "{" },
  };
  bytes b;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    make_npy(&b, 1, cases[i].literal, "12345678", 8);
    write_file(b.data, b.count);
    expect_failure(flow_tensor_load_npy, cases[i].status, cases[i].part);
  }
  write_file("\x93NUMPY\x04\x00..", 10);
  expect_failure(flow_tensor_load_npy, FLOW_UNSUPPORTED, "version 4");
  write_file("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12);
  expect_failure(flow_tensor_load_npy, FLOW_CORRUPT_DATA, "4294967295 bytes");
  write_file("PK\x03\x04....", 8);
  expect_failure(flow_tensor_load_npy, FLOW_CORRUPT_DATA, "is not a NumPy array file");
}

static void missing_files_and_folders_are_explained(void **state)
{
  (void)state;
  flow_tensor *tensor;
  expect_failure(flow_tensor_load_npy, FLOW_NOT_FOUND, "No such file");
  expect_failure(flow_tensor_load_idx, FLOW_NOT_FOUND, "No such file");
  assert_int_equal(flow_tensor_load_npy(folder, &tensor), FLOW_IO_ERROR);
  assert_int_equal(flow_tensor_load_npy("/dev/zero", &tensor), FLOW_IO_ERROR);
  assert_int_equal(flow_tensor_load_npy("", &tensor), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_tensor_load_npy(NULL, &tensor), FLOW_INVALID_ARGUMENT);
  assert_int_equal(mkfifo(path, 0600), 0);
  expect_failure(flow_tensor_load_npy, FLOW_IO_ERROR, "not a regular file");       /* and does not wait for a writer */
}

static void a_failed_save_leaves_the_old_file(void **state)
{
  (void)state;
  unsigned char found[16];
  flow_tensor *source = counting(FLOW_FLOAT32, 2, SHAPE(2, 3)), *view = view_of(source, 2, SHAPE(3, 2), SHAPE(1, 3), 0);
  flow_tensor *brain = zeros(FLOW_BFLOAT16, 1, SHAPE(1));
  write_file("old", 3);
  int failures = 0;
  for (flow_status status = FLOW_OUT_OF_MEMORY; status != FLOW_OK; failures++) {
    flow_fail_allocation(failures);
    status = flow_tensor_save_npy(view, path);
    flow_fail_allocation(-1);
    if (status != FLOW_OK) assert_int_equal(read_file(found, sizeof found), 3);
  }
  assert_true(failures > 4);
  write_file("old", 3);
  assert_int_equal(flow_tensor_save_npy(brain, path), FLOW_UNSUPPORTED);
  assert_non_null(strstr(flow_last_error(), "cast the tensor to float32"));
  assert_int_equal(read_file(found, sizeof found), 3);
  assert_int_equal(flow_tensor_save_npy(source, "/nowhere/to/be/found"), FLOW_NOT_FOUND);
  assert_int_equal(flow_tensor_save_npy(source, folder), FLOW_IO_ERROR);           /* a folder cannot be replaced */
  unlink(path);
  assert_int_equal(rmdir(folder), 0);                                              /* nothing else is in it */
  assert_int_equal(mkdir(folder, 0700), 0);
  flow_tensor_release(brain);
  flow_tensor_release(view);
  flow_tensor_release(source);
}

/* ---- npz --------------------------------------------------------------------------------------------------------------------------- */

enum { STORED = 0, DEFLATED = 8 };

typedef struct member {
  const char *name;
  const bytes *content;
  int method, zip64, wrong_crc, encrypted, longer;
} member;

static void append_member(bytes *zip, bytes *directory, const member *m)
{
  bytes packed = { .count = 0 };
  size_t offset = zip->count, size = m->content->count, name = strlen(m->name);
  uint32_t crc = (uint32_t)crc32(0, m->content->data, (uInt)size) ^ (m->wrong_crc ? 1 : 0);
  if (m->method == DEFLATED) {
    z_stream z = { .next_in = (Bytef *)(uintptr_t)m->content->data, .avail_in = (uInt)size, .next_out = packed.data,
                   .avail_out = sizeof packed.data };
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    packed.count = z.total_out;
    deflateEnd(&z);
    if (m->longer) append(&packed, "more", 4);
  } else {
    packed = *m->content;
  }
  for (int central = 0; central < 2; central++) {
    bytes *to = central ? directory : zip;
    append(to, central ? "PK\x01\x02" : "PK\x03\x04", 4);
    if (central) append_number(to, 45, 2);
    append_number(to, 45, 2);
    append_number(to, (uint64_t)m->encrypted, 2);
    append_number(to, (uint64_t)m->method, 2);
    append_number(to, 0, 4);
    append_number(to, crc, 4);
    append_number(to, m->zip64 ? UINT32_MAX : packed.count, 4);
    append_number(to, m->zip64 ? UINT32_MAX : size, 4);
    append_number(to, name, 2);
    append_number(to, m->zip64 ? 20 : 0, 2);
    if (central) append(to, "\0\0\0\0\0\0\0\0\0", 10);
    if (central) append_number(to, offset, 4);
    append(to, m->name, name);
    if (m->zip64) {
      append_number(to, 1, 2);
      append_number(to, 16, 2);
      append_number(to, size, 8);
      append_number(to, packed.count, 8);
    }
  }
  append(zip, packed.data, packed.count);
}

static void make_zip(bytes *zip, const member *members, int count, const char *comment)
{
  bytes directory = { .count = 0 };
  zip->count = 0;
  for (int i = 0; i < count; i++) append_member(zip, &directory, &members[i]);
  size_t offset = zip->count;
  append(zip, directory.data, directory.count);
  append(zip, "PK\x05\x06\0\0\0\0", 8);
  append_number(zip, (uint64_t)count, 2);
  append_number(zip, (uint64_t)count, 2);
  append_number(zip, directory.count, 4);
  append_number(zip, offset, 4);
  append_number(zip, strlen(comment), 2);
  append(zip, comment, strlen(comment));
}

static flow_status load_weights(const char *file, flow_tensor **out)
{
  return flow_tensor_load_npz(file, "weights", out);
}

static void make_weights(bytes *npy)
{
  float data[6] = { 1, 2, 3, 4, 5, 6 };
  make_npy(npy, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", data, sizeof data);
}

static void members_are_found_and_read(void **state)
{
  (void)state;
  bytes npy, zip;
  flow_tensor *tensor;
  make_weights(&npy);
  for (int kind = 0; kind < 4; kind++) {
    int method = kind & 1 ? DEFLATED : STORED, zip64 = kind >> 1;
    member members[] = { { .name = "bias.npy", .content = &npy, .method = method },
                         { .name = "weights.npy", .content = &npy, .method = method, .zip64 = zip64 } };
    make_zip(&zip, members, 2, kind == 2 ? "a comment" : "");
    write_file(zip.data, zip.count);
    assert_int_equal(flow_tensor_load_npz(path, "weights", &tensor), FLOW_OK);
    EXPECT(tensor, 1, 2, 3, 4, 5, 6);
    flow_tensor_release(tensor);
    assert_int_equal(flow_tensor_load_npz(path, "bias.npy", &tensor), FLOW_OK);
    flow_tensor_release(tensor);
    assert_int_equal(flow_tensor_load_npz(path, "weight", &tensor), FLOW_NOT_FOUND);
    assert_non_null(strstr(flow_last_error(), "has no array 'weight'; it has: bias, weights"));
    assert_int_equal(flow_tensor_load_npz(path, NULL, &tensor), FLOW_INVALID_ARGUMENT);
    survive_everything(load_weights, &zip, kind == 2 ? 0 : zip.count);
  }
}

static void bad_archives_are_explained(void **state)
{
  (void)state;
  bytes npy, zip;
  make_weights(&npy);
  static const struct {
    member m;
    flow_status status;
    const char *part;
  } cases[] = {
    { { .name = "weights.npy", .method = STORED, .wrong_crc = 1 }, FLOW_CORRUPT_DATA, "checksum" },
    { { .name = "weights.npy", .method = DEFLATED, .wrong_crc = 1 }, FLOW_CORRUPT_DATA, "checksum" },
    { { .name = "weights.npy", .method = STORED, .encrypted = 1 }, FLOW_UNSUPPORTED, "encrypted" },
    { { .name = "weights.npy", .method = 12 }, FLOW_UNSUPPORTED, "method 12" },
    { { .name = "weights.npy", .method = DEFLATED, .longer = 1 }, FLOW_CORRUPT_DATA, "has 4 bytes after the end of its compressed data" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    member m = cases[i].m;
    m.content = &npy;
    make_zip(&zip, &m, 1, "");
    write_file(zip.data, zip.count);
    expect_failure(load_weights, cases[i].status, cases[i].part);
  }
  append(&npy, "more", 4);
  make_zip(&zip, &(member){ .name = "weights.npy", .content = &npy }, 1, "");
  write_file(zip.data, zip.count);
  expect_failure(load_weights, FLOW_CORRUPT_DATA, "more bytes than its header says");
  write_file("not a zip file, but long enough", 31);
  expect_failure(load_weights, FLOW_CORRUPT_DATA, "no directory");
  write_file("", 0);
  expect_failure(load_weights, FLOW_CORRUPT_DATA, "too short");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    IN_FOLDER(arrays_come_back),
    IN_FOLDER(files_have_the_bytes_that_numpy_writes),
    IN_FOLDER(views_are_saved_in_their_order),
    IN_FOLDER(versions_and_spellings_of_headers_are_read),
    IN_FOLDER(fortran_order_is_turned_around),
    IN_FOLDER(odd_bools_become_zero_and_one),
    IN_FOLDER(big_endian_numbers_are_turned_round),
    IN_FOLDER(bad_npy_files_are_explained),
    IN_FOLDER(missing_files_and_folders_are_explained),
    IN_FOLDER(a_failed_save_leaves_the_old_file),
    IN_FOLDER(members_are_found_and_read),
    IN_FOLDER(bad_archives_are_explained),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
