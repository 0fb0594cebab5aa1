/* file_bytes.h: files made byte by byte, and what loading must survive. */
#ifndef FLOW_SPEC_FILE_BYTES_H
#define FLOW_SPEC_FILE_BYTES_H

#include "folder.h"

typedef flow_status (*load_function)(const char *path, flow_tensor **out);

typedef struct bytes { unsigned char data[4096]; size_t count; } bytes;

static inline void append(bytes *b, const void *data, size_t count)
{
  assert_true(b->count + count <= sizeof b->data);
  memcpy(b->data + b->count, data, count);
  b->count += count;
}

static inline void write_file(const void *data, size_t count)
{
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(data, 1, count, file), count);
  fclose(file);
}

static inline void expect_failure(load_function load, flow_status expected, const char *part)
{
  flow_tensor *tensor = (flow_tensor *)(uintptr_t)1;
  assert_int_equal(load(path, &tensor), expected);
  assert_null(tensor);
  if (!strstr(flow_last_error(), part)) fail_msg("\"%s\" does not say \"%s\"", flow_last_error(), part);
  assert_non_null(strstr(flow_last_error(), path));
}

/* Whatever a file holds, loading gives a tensor or a message, never a crash, a leak or memory beyond reason: every prefix
 * of a good file, and every byte of it replaced. A whole file fails at every allocation and then loads. */
static inline void survive_everything(load_function load, const bytes *good, size_t first_sound_prefix)
{
  flow_tensor *tensor;
  bytes bad;
  for (size_t count = 0; count < good->count; count++) {
    write_file(good->data, count);
    flow_status status = load(path, &tensor);
    if (count < first_sound_prefix) assert_int_not_equal(status, FLOW_OK);
    flow_tensor_release(tensor);
  }
  static const unsigned char masks[] = { 0x01, 0x80, 0xff };
  for (size_t place = 0; place < good->count * 3; place++) {
    bad = *good;
    bad.data[place / 3] ^= masks[place % 3];
    write_file(bad.data, bad.count);
    flow_status status = load(path, &tensor);
    assert_int_equal(status == FLOW_OK, tensor != NULL);
    flow_tensor_release(tensor);
  }
  write_file(good->data, good->count);
  int failures = 0;
  for (flow_status status = FLOW_OUT_OF_MEMORY; status != FLOW_OK; failures++) {
    double before = flow_live_bytes();
    flow_fail_allocation(failures);
    status = load(path, &tensor);
    flow_fail_allocation(-1);
    if (status != FLOW_OK) {
      assert_int_equal(status, FLOW_OUT_OF_MEMORY);
      assert_null(tensor);
      assert_true(flow_live_bytes() == before);
    }
    flow_tensor_release(tensor);
  }
  assert_true(failures > 3);
}

#endif
