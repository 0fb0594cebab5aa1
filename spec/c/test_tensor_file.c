/* test_tensor_file.c: files of named tensors, in safetensors: what is written comes back, and files that are cut off, changed or lie are
 * refused with a message. */
#include "folder.h"

#include "io/tensor_file.h"

static unsigned char content[8192];
static size_t content_count;

static void read_back(void)
{
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  content_count = fread(content, 1, sizeof content, file);
  fclose(file);
  assert_true(content_count < sizeof content);
}

static void write_bytes(const void *bytes, size_t count)
{
  unlink(path);                         /* a new file: ext4 brings one that is cut to nothing to the disk when it is closed */
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, count, file), count);
  fclose(file);
}

/* A file of this header and this many bytes of content. */
static void write_file(const char *header, size_t contents)
{
  unsigned char bytes[2048] = { 0 };
  size_t length = strlen(header);
  for (int i = 0; i < 8; i++) bytes[i] = (unsigned char)(length >> 8 * i);
  assert_true(8 + length + contents <= sizeof bytes);
  memcpy(bytes + 8, header, length);
  write_bytes(bytes, 8 + length + contents);
}

static flow_tensor_writer *new_writer(int checksums)
{
  flow_tensor_writer *writer;
  assert_int_equal(flow_tensor_writer_new(&writer), FLOW_OK);
  assert_int_equal(flow_tensor_writer_checksums(writer, checksums), FLOW_OK);
  return writer;
}

static void add(flow_tensor_writer *writer, const char *name, flow_tensor *tensor)
{
  assert_int_equal(flow_tensor_writer_add(writer, name, tensor), FLOW_OK);
  flow_tensor_release(tensor);
}

static void save(flow_tensor_writer *writer)
{
  assert_int_equal(flow_tensor_writer_save(writer, path, "safetensors"), FLOW_OK);
  flow_tensor_writer_release(writer);
}

/* One of each dtype and some shapes, with notes. */
static void save_sample(int checksums)
{
  flow_tensor_writer *writer = new_writer(checksums);
  for (int dtype = 0; dtype < FLOW_DTYPE_COUNT; dtype++) add(writer, flow_dtype_name(dtype), counting(dtype, 2, SHAPE(2, 3)));
  add(writer, "scalar", counting(FLOW_FLOAT32, 0, NULL));
  add(writer, "nothing", counting(FLOW_INT32, 2, SHAPE(0, 5)));
  assert_int_equal(flow_tensor_writer_note(writer, "", "format", "a \"text\"\n\xc3\xa4"), FLOW_OK);
  assert_int_equal(flow_tensor_writer_note(writer, "a/b", "name", "dense"), FLOW_OK);
  save(writer);
}

static void everything_comes_back(void **state)
{
  (void)state;
  for (int checksums = 0; checksums < 2; checksums++) {
    flow_tensor_file *file;
    save_sample(checksums);
    assert_int_equal(flow_tensor_file_open(path, NULL, &file), FLOW_OK);
    assert_int_equal(flow_tensor_file_count(file), FLOW_DTYPE_COUNT + 2);
    for (int dtype = 0; dtype < FLOW_DTYPE_COUNT; dtype++) {
      int index = flow_tensor_file_find(file, flow_dtype_name(dtype));
      flow_tensor *expected = counting(dtype, 2, SHAPE(2, 3)), *tensor;
      assert_true(index >= 0);
      assert_string_equal(flow_tensor_file_name(file, index), flow_dtype_name(dtype));
      assert_int_equal(flow_tensor_file_has_checksum(file, index), checksums);
      assert_int_equal(flow_tensor_file_dtype(file, index), dtype);
      assert_int_equal(flow_tensor_file_rank(file, index), 2);
      assert_true(flow_tensor_file_dim(file, index, 1) == 3);
      assert_int_equal(flow_tensor_file_read(file, index, &tensor), FLOW_OK);
      assert_int_equal(tensor->dtype, dtype);
      assert_memory_equal(tensor->data, expected->data, expected->storage->bytes);
      flow_tensor_release(tensor);
      flow_tensor_release(expected);
    }
    assert_int_equal(flow_tensor_file_rank(file, flow_tensor_file_find(file, "scalar")), 0);
    assert_int_equal(flow_tensor_file_find(file, "nothin"), -1);
    assert_int_equal(flow_tensor_file_find(file, "zzz"), -1);
    assert_string_equal(flow_tensor_file_note_text(file, "", "format"), "a \"text\"\n\xc3\xa4");
    assert_string_equal(flow_tensor_file_note_text(file, "a/b", "name"), "dense");
    assert_null(flow_tensor_file_note_text(file, "a", "name"));
    assert_int_equal(flow_tensor_file_verify(file), FLOW_OK);
    flow_tensor_file_release(file);
  }
}

static void the_file_is_what_the_reference_implementation_writes(void **state)
{
  (void)state;
  /* safetensors.numpy.save({"b": np.arange(3, dtype="float32"), "a": np.array([[True, False]]), "c": np.array(7, dtype="int64")}) */
  static const char header[] = "{\"c\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]},\"b\":{\"dtype\":\"F32\",\"shape\":[3],"
                               "\"data_offsets\":[8,20]},\"a\":{\"dtype\":\"BOOL\",\"shape\":[1,2],\"data_offsets\":[20,22]}}";
  flow_tensor_writer *writer = new_writer(0);
  add(writer, "b", counting(FLOW_FLOAT32, 1, SHAPE(3)));
  add(writer, "a", from_numbers(FLOW_BOOL, 2, SHAPE(1, 2), (double[]){ 1, 0 }));
  add(writer, "c", from_numbers(FLOW_INT64, 0, NULL, (double[]){ 7 }));
  save(writer);
  read_back();
  size_t padded = (sizeof header - 1 + 7) / 8 * 8;
  assert_int_equal(content_count, 8 + padded + 22);
  assert_int_equal(content[0], padded);
  assert_memory_equal(content + 8, header, sizeof header - 1);
  assert_memory_equal(content + 8 + padded, "\x07\0\0\0\0\0\0\0\0\0\0\0\0\0\x80\x3f\0\0\0\x40\x01\0", 22);
}

static void strides_and_snapshots(void **state)
{
  (void)state;
  flow_tensor_file *file;
  flow_tensor *source = counting(FLOW_FLOAT32, 2, SHAPE(2, 3)), *turned = view_of(source, 2, SHAPE(3, 2), SHAPE(1, 3), 0), *tensor;
  for (int snapshot = 0; snapshot < 2; snapshot++) {
    flow_tensor_writer *writer = new_writer(1);
    assert_int_equal(flow_tensor_writer_add(writer, "x", turned), FLOW_OK);
    if (snapshot) assert_int_equal(flow_tensor_writer_snapshot(writer), FLOW_OK);
    assert_int_equal(flow_tensor_set(source, SHAPE(0, 0), 9 + snapshot), FLOW_OK);
    save(writer);
    assert_int_equal(flow_tensor_file_open(path, NULL, &file), FLOW_OK);
    assert_int_equal(flow_tensor_file_read(file, 0, &tensor), FLOW_OK);
    EXPECT(tensor, 9, 3, 1, 4, 2, 5);                 /* the snapshot was taken before 10 came */
    assert_int_equal(flow_tensor_fill(source, 0), FLOW_OK);
    assert_int_equal(flow_tensor_file_read_into(file, 0, turned), FLOW_OK);
    EXPECT(source, 9, 1, 2, 3, 4, 5);
    assert_int_equal(flow_tensor_file_read_into(file, 0, source), FLOW_INVALID_ARGUMENT);
    assert_non_null(strstr(flow_last_error(), "{3, 2}"));
    flow_tensor_release(tensor);
    flow_tensor_file_release(file);
  }
  flow_tensor_release(source);
  flow_tensor_release(turned);
}

static void what_cannot_be_saved(void **state)
{
  (void)state;
  flow_tensor_writer *writer = new_writer(0);
  add(writer, "x", zeros(FLOW_FLOAT32, 0, NULL));
  assert_int_equal(flow_tensor_writer_save(writer, path, "csv"), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_tensor_writer_save(writer, "/nowhere/file", "safetensors"), FLOW_NOT_FOUND);
  assert_int_equal(flow_tensor_writer_note(writer, "", "a#b", ""), FLOW_OK);
  assert_int_equal(flow_tensor_writer_save(writer, path, "safetensors"), FLOW_INVALID_ARGUMENT);
  flow_tensor_writer_release(writer);
  writer = new_writer(0);
  add(writer, "x", zeros(FLOW_FLOAT32, 0, NULL));
  add(writer, "x", zeros(FLOW_FLOAT32, 0, NULL));
  assert_int_equal(flow_tensor_writer_save(writer, path, "safetensors"), FLOW_INVALID_ARGUMENT);
  assert_non_null(strstr(flow_last_error(), "'x'"));
  flow_tensor_writer_release(writer);
  /* None is UTF-8. */
  static const char *const texts[] = { "\xff", "a\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe0\x80\x80" };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    writer = new_writer(0);
    assert_int_equal(flow_tensor_writer_note(writer, "", "key", texts[i]), FLOW_OK);
    assert_int_equal(flow_tensor_writer_save(writer, path, "safetensors"), FLOW_INVALID_ARGUMENT);
    flow_tensor_writer_release(writer);
  }
  writer = new_writer(0);
  add(writer, "\xf0\x9f\x8c\xb8 \xed\x9f\xbf", zeros(FLOW_FLOAT32, 0, NULL));
  save(writer);
  unlink(path);
  writer = new_writer(0);
  add(writer, "__metadata__", zeros(FLOW_FLOAT32, 0, NULL));
  assert_int_equal(flow_tensor_writer_save(writer, path, "safetensors"), FLOW_INVALID_ARGUMENT);
  flow_tensor_writer_release(writer);
  assert_int_not_equal(access(path, F_OK), 0);
  /* A tensor whose bytes cannot be had while its checksum is made: the reason is told, not that memory is out. */
  writer = new_writer(1);
  flow_tensor *tensor = zeros(FLOW_FLOAT32, 0, NULL);
  assert_int_equal(flow_tensor_writer_add(writer, "x", tensor), FLOW_OK);
  flow_storage *storage = tensor->storage;
  tensor->storage = NULL;
  assert_int_equal(flow_tensor_writer_save(writer, path, "safetensors"), FLOW_INVALID_STATE);
  assert_non_null(strstr(flow_last_error(), "has no value"));
  tensor->storage = storage;
  flow_tensor_writer_release(writer);
  flow_tensor_release(tensor);
  assert_int_not_equal(access(path, F_OK), 0);
}

/* Opens and reads everything; FLOW_OK only if all of it went well. */
static flow_status load(void)
{
  flow_tensor_file *file = (flow_tensor_file *)(uintptr_t)1;
  flow_status status = flow_tensor_file_open(path, NULL, &file);
  if (status != FLOW_OK) {
    assert_null(file);
    return status;
  }
  status = flow_tensor_file_verify(file);
  for (int i = 0; i < flow_tensor_file_count(file) && status == FLOW_OK; i++) {
    flow_tensor *tensor;
    status = flow_tensor_file_read(file, i, &tensor);
    flow_tensor_release(tensor);
  }
  flow_tensor_file_release(file);
  return status;
}

static void headers_that_lie(void **state)
{
  (void)state;
  static const struct {
    const char *header;
    size_t contents;
    flow_status status;
    const char *part;
  } cases[] = {
    { "{}", 0, FLOW_OK, "" },
    { "{}  ", 0, FLOW_OK, "" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, FLOW_OK, "" },
    { "{}", 1, FLOW_CORRUPT_DATA, "its header says 10" },
    { "{} x", 0, FLOW_CORRUPT_DATA, "continues" },
    { "{\"a\"", 0, FLOW_CORRUPT_DATA, "JSON" },
    { "{\"a\":3}", 0, FLOW_CORRUPT_DATA, "object" },
    { "{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, FLOW_CORRUPT_DATA, "dtype" },
    { "{\"a\":{\"dtype\":\"F8_E4M3\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, FLOW_UNSUPPORTED, "F8_E4M3" },
    { "{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, FLOW_CORRUPT_DATA, "shape" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4, FLOW_CORRUPT_DATA, "whole number" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[0.5],\"data_offsets\":[0,4]}}", 4, FLOW_CORRUPT_DATA, "whole number" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}", 4, FLOW_UNSUPPORTED, "axes" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296,4],\"data_offsets\":[0,4]}}", 4, FLOW_CORRUPT_DATA, "a" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4, FLOW_CORRUPT_DATA, "{2}" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4, FLOW_CORRUPT_DATA, "data_offsets" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", 4, FLOW_CORRUPT_DATA, "data_offsets" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":{\"b\":0,\"e\":4}}}", 4, FLOW_CORRUPT_DATA, "data_offsets" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 4, FLOW_CORRUPT_DATA, "cut off" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8, FLOW_CORRUPT_DATA, "begin" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
      FLOW_CORRUPT_DATA, "begin" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8,
      FLOW_CORRUPT_DATA, "two tensors" },
    { "{\"__metadata__\":{\"a\":1}}", 0, FLOW_CORRUPT_DATA, "text" },
    { "{\"__metadata__\":[]}", 0, FLOW_CORRUPT_DATA, "object" },
    { "{\"__metadata__\":{\"a#crc32c\":\"xyz\"},\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, FLOW_CORRUPT_DATA,
      "checksum" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    write_file(cases[i].header, cases[i].contents);
    flow_status status = load();
    if (status != cases[i].status) fail_msg("%s: status %d, %s", cases[i].header, status, flow_last_error());
    if (status != FLOW_OK && !strstr(flow_last_error(), cases[i].part)) fail_msg("\"%s\" for %s", flow_last_error(), cases[i].header);
    if (status != FLOW_OK) assert_non_null(strstr(flow_last_error(), path));
  }
  write_bytes("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10);
  assert_int_equal(load(), FLOW_CORRUPT_DATA);
  write_bytes("\x20\0\0\0\0\0\0\0{}", 10);
  assert_int_equal(load(), FLOW_CORRUPT_DATA);
}

/* With checksums, no cut and no changed bit goes unnoticed. */
static void every_damage_is_seen(void **state)
{
  (void)state;
  save_sample(1);
  read_back();
  size_t count = content_count;
  for (size_t cut = 0; cut < count; cut++) {
    write_bytes(content, cut);
    assert_int_not_equal(load(), FLOW_OK);
  }
  for (size_t place = 0; place < count; place++) {
    for (int bit = 0; bit < 8; bit += 1 + (int)(place % 3)) {
      flow_tensor_file *file;
      content[place] ^= 1u << bit;
      write_bytes(content, count);
      /* The mark of the header's checksum is not covered by it: without the mark, a checkpoint is not accepted (see below). */
      if (load() == FLOW_OK) {
        assert_int_equal(flow_tensor_file_open(path, NULL, &file), FLOW_OK);
        assert_null(flow_tensor_file_note_text(file, "", "crc32c"));
        flow_tensor_file_release(file);
      }
      content[place] ^= 1u << bit;
    }
  }
}

static void allocation_failures_are_survived(void **state)
{
  (void)state;
  int failures = 0;
  save_sample(1);
  for (flow_status status = FLOW_OUT_OF_MEMORY; status != FLOW_OK; failures++) {
    double before = flow_live_bytes();
    flow_fail_allocation(failures);
    status = load();
    flow_fail_allocation(-1);
    if (status != FLOW_OK) assert_int_equal(status, FLOW_OUT_OF_MEMORY);
    assert_true(flow_live_bytes() == before);
  }
  assert_true(failures > 10);
  flow_tensor_writer *writer = new_writer(1);
  add(writer, "x", zeros(FLOW_FLOAT32, 1, SHAPE(3)));
  failures = 0;
  for (flow_status status = FLOW_OUT_OF_MEMORY; status != FLOW_OK; failures++) {
    double before = flow_live_bytes();
    flow_fail_allocation(failures);
    status = flow_tensor_writer_save(writer, path, "safetensors");
    flow_fail_allocation(-1);
    if (status != FLOW_OK) assert_int_equal(status, FLOW_OUT_OF_MEMORY);
    assert_true(flow_live_bytes() == before);
  }
  assert_true(failures > 5);
  flow_tensor_writer_release(writer);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    IN_FOLDER(everything_comes_back),
    IN_FOLDER(the_file_is_what_the_reference_implementation_writes),
    IN_FOLDER(strides_and_snapshots),
    IN_FOLDER(what_cannot_be_saved),
    IN_FOLDER(headers_that_lie),
    IN_FOLDER(every_damage_is_seen),
    IN_FOLDER(allocation_failures_are_survived),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
