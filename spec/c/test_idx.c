/* test_idx.c: IDX files, gzipped and not: every element type, long files, and files that are cut off or lie. */
#include "file_bytes.h"

#include <zlib.h>

static void make_idx(bytes *b, int type, int rank, const int64_t *shape, const void *data, size_t count)
{
  b->count = 0;
  append(b, (unsigned char[]){ 0, 0, (unsigned char)type, (unsigned char)rank }, 4);
  for (int axis = 0; axis < rank; axis++) {
    for (int byte = 3; byte >= 0; byte--) append(b, &(unsigned char){ (unsigned char)(shape[axis] >> 8 * byte) }, 1);
  }
  append(b, data, count);
}

static void gzip(bytes *b)
{
  bytes packed = { .count = 0 };
  z_stream z = { .next_in = b->data, .avail_in = (uInt)b->count, .next_out = packed.data, .avail_out = sizeof packed.data };
  assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
  packed.count = z.total_out;
  deflateEnd(&z);
  *b = packed;
}

static void every_element_type_is_read(void **state)
{
  (void)state;
  static const struct { int type, dtype, size; const char *data; double numbers[3]; } cases[] = {
    { 0x08, FLOW_UINT8, 1, "\x00\x7f\xff", { 0, 127, 255 } },
    { 0x09, FLOW_INT8, 1, "\x00\x7f\xff", { 0, 127, -1 } },
    { 0x0B, FLOW_INT32, 2, "\x00\x01\x7f\xff\xff\xfe", { 1, 32767, -2 } },
    { 0x0C, FLOW_INT32, 4, "\x00\x00\x01\x00\x7f\xff\xff\xff\xff\xff\xff\xff", { 256, INT32_MAX, -1 } },
    { 0x0D, FLOW_FLOAT32, 4, "\x3f\x80\x00\x00\xc0\x20\x00\x00\x00\x00\x00\x00", { 1, -2.5, 0 } },
    { 0x0E, FLOW_FLOAT64, 8, "\x3f\xf0\0\0\0\0\0\0\xc0\x04\0\0\0\0\0\0"
      "\x7f\xef\xff\xff\xff\xff\xff\xff", { 1, -2.5, 0x1.fffffffffffffp1023 } },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    for (int gzipped = 0; gzipped < 2; gzipped++) {
      bytes b;
      flow_tensor *tensor;
      make_idx(&b, cases[i].type, 2, SHAPE(3, 1), cases[i].data, 3 * (size_t)cases[i].size);
      if (gzipped) gzip(&b);
      write_file(b.data, b.count);
      assert_int_equal(flow_tensor_load_idx(path, &tensor), FLOW_OK);
      assert_int_equal(tensor->dtype, cases[i].dtype);
      assert_true(flow_shape_equal(2, tensor->shape, 2, SHAPE(3, 1)));
      expect_numbers(tensor, 3, cases[i].numbers);
      flow_tensor_release(tensor);
      survive_everything(flow_tensor_load_idx, &b, b.count);
    }
  }
}

static void long_files_cross_the_buffer(void **state)
{
  (void)state;
  enum { COUNT = 300000 };
  unsigned char *data = malloc(COUNT + 8);
  flow_tensor *tensor;
  memcpy(data, "\0\0\x08\x01\x00\x04\x93\xe0", 8);
  uint32_t noise = 1;
  for (int i = 0; i < COUNT; i++) data[8 + i] = (unsigned char)((noise = noise * 1664525u + 1013904223u) >> 24);
  gzFile file = gzopen(path, "wb");
  assert_int_equal(gzwrite(file, data, COUNT + 8), COUNT + 8);
  gzclose(file);
  assert_int_equal(flow_tensor_load_idx(path, &tensor), FLOW_OK);
  assert_memory_equal(tensor->data, data + 8, COUNT);
  flow_tensor_release(tensor);
  free(data);
}

static void bad_idx_files_are_explained(void **state)
{
  (void)state;
  bytes b;
  make_idx(&b, 8, 2, SHAPE(60000, 784), "12345", 5);
  write_file(b.data, b.count);
  expect_failure(flow_tensor_load_idx, FLOW_CORRUPT_DATA, "takes 47040000 bytes, at most 5 were found");
  make_idx(&b, 8, 1, SHAPE(1000), "12345", 5);
  gzip(&b);
  write_file(b.data, b.count);
  expect_failure(flow_tensor_load_idx, FLOW_CORRUPT_DATA, "takes 1000 bytes, 5 were found");
  make_idx(&b, 8, 4, SHAPE(INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX), "12345", 5);
  write_file(b.data, b.count);
  expect_failure(flow_tensor_load_idx, FLOW_CORRUPT_DATA, "too many elements");
  make_idx(&b, 8, 2, SHAPE(INT32_MAX, INT32_MAX), "12345", 5);
  gzip(&b);
  write_file(b.data, b.count);
  expect_failure(flow_tensor_load_idx, FLOW_CORRUPT_DATA, "cut off");
  make_idx(&b, 8, 1, SHAPE(4), "12345", 5);
  write_file(b.data, b.count);
  expect_failure(flow_tensor_load_idx, FLOW_CORRUPT_DATA, "more bytes than its header says");
  make_idx(&b, 8, 9, SHAPE(1, 1, 1, 1, 1, 1, 1, 1, 1), "1", 1);
  write_file(b.data, b.count);
  expect_failure(flow_tensor_load_idx, FLOW_UNSUPPORTED, "9 axes");
  make_idx(&b, 0x0A, 1, SHAPE(1), "1", 1);
  write_file(b.data, b.count);
  expect_failure(flow_tensor_load_idx, FLOW_CORRUPT_DATA, "starts with bytes 00 00 0a 01");
  make_idx(&b, 8, 1, SHAPE(5), "12345", 5);
  gzip(&b);
  b.data[b.count - 8] ^= 1;                                      /* gzip's checksum */
  write_file(b.data, b.count);
  expect_failure(flow_tensor_load_idx, FLOW_CORRUPT_DATA, "damaged");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    IN_FOLDER(every_element_type_is_read),
    IN_FOLDER(long_files_cross_the_buffer),
    IN_FOLDER(bad_idx_files_are_explained),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
