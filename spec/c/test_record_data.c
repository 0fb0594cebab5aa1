/* test_record_data.c: TFRecordDataset, parse_example and tables of comma-separated values. */
#include "tensors.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/function.h"
#include "temporary.h"

static char folder[TEMPORARY_PATH], paths[3][TEMPORARY_PATH + 32];

static int make_folder(void **state)
{
  (void)state;
  if (!mkdtemp(temporary(folder, "XXXXXX"))) return 1;
  for (int i = 0; i < 3; i++) snprintf(paths[i], sizeof paths[i], "%s/file%d", folder, i);
  return 0;
}

static int remove_folder(void **state)
{
  (void)state;
  for (int i = 0; i < 3; i++) unlink(paths[i]);
  return rmdir(folder);
}

static void expect_message(flow_status status, flow_status expected, const char *part)
{
  if (status == expected && strstr(flow_last_error(), part)) return;
  fail_msg("%d \"%s\" does not say \"%s\"", status, flow_last_error(), part);
}

/* ---- TFRecordDataset -------------------------------------------------------------------------------------------------------- */

/* Each letter is a record. */
static void write_records(const char *path, const char *letters, const char *compression)
{
  flow_record_writer *writer;
  assert_int_equal(flow_record_writer_new(path, compression, &writer), FLOW_OK);
  for (; *letters; letters++) assert_int_equal(flow_record_writer_write(writer, letters, 1), FLOW_OK);
  assert_int_equal(flow_record_writer_close(writer), FLOW_OK);
  flow_record_writer_release(writer);
}

/* All elements from `first` on as a text; failures count as '!'. */
static void read_all(double parallel, const char *compression, double first, const char *expected)
{
  const char *list[] = { paths[0], paths[1], paths[2] };
  char found[64] = "";
  size_t length = 0;
  flow_context *context;
  flow_dataset *dataset;
  flow_iterator *iterator;
  flow_element element = { 0 };
  assert_int_equal(flow_context_new(&context), FLOW_OK);
  assert_int_equal(flow_dataset_records(list, 3, compression, parallel, &dataset), FLOW_OK);
  assert_int_equal(flow_iterator_new(context, dataset, &iterator), FLOW_OK);
  if (first > 0) assert_int_equal(flow_iterator_skip(iterator, first), FLOW_OK);
  while (length < sizeof found - 1) {
    flow_status status = flow_iterator_next(iterator, &element);
    if (status == FLOW_OK && element.count == 0) break;
    found[length++] = status == FLOW_OK ? *(char *)flow_tensor_data(element.tensors[0]) : '!';
  }
  found[length] = 0;
  assert_string_equal(found, expected);
  flow_element_clear(&element);
  flow_iterator_close(iterator);
  flow_dataset_release(dataset);
  flow_context_release(context);
}

static void files_are_read_in_turn(void **state)
{
  (void)state;
  static const char *const compressions[] = { "", "GZIP", "ZLIB" };
  for (int c = 0; c < 3; c++) {
    write_records(paths[0], "abc", compressions[c]);
    write_records(paths[1], "A", compressions[c]);
    write_records(paths[2], "1234", compressions[c]);
    read_all(0, compressions[c], 0, "abcA1234");
    read_all(1, compressions[c], 0, "abcA1234");
    read_all(2, compressions[c], 0, "aAbc1234");
    read_all(3, compressions[c], 0, "aA1b2c34");
    read_all(-1, compressions[c], 0, "aA1b2c34");
    read_all(1, compressions[c], 3, "A1234");
    read_all(3, compressions[c], 5, "c34");
    read_all(3, compressions[c], 99, "");
  }
}

static void a_damaged_file_ends_where_it_is_damaged(void **state)
{
  (void)state;
  write_records(paths[0], "abc", "");
  write_records(paths[1], "A", "");
  write_records(paths[2], "12", "");
  FILE *file = fopen(paths[0], "r+b");
  fseek(file, 17 + 12, SEEK_SET);
  fputc('x', file);
  fclose(file);
  read_all(1, "", 0, "a!A12");
  unlink(paths[1]);
  read_all(1, "", 0, "a!!12");
  flow_dataset *dataset;
  expect_message(flow_dataset_records(NULL, 0, "", 1, &dataset), FLOW_INVALID_ARGUMENT, "a list of files is needed");
  const char *list[] = { paths[0] };
  expect_message(flow_dataset_records(list, 1, "BZIP", 1, &dataset), FLOW_INVALID_ARGUMENT, "compression_type");
  expect_message(flow_dataset_records(list, 1, "", -2, &dataset), FLOW_INVALID_ARGUMENT, "num_parallel_reads");
}

/* ---- parse_example ---------------------------------------------------------------------------------------------------------- */

static flow_tensor *example_text(void)
{
  flow_example *example;
  assert_int_equal(flow_example_new(&example), FLOW_OK);
  assert_int_equal(flow_example_add_bytes(example, "image", "abc", 3), FLOW_OK);
  assert_int_equal(flow_example_add_integers(example, "label", (int64_t[]){ INT64_MIN }, 1), FLOW_OK);
  assert_int_equal(flow_example_add_floats(example, "xs", (float[]){ 1, 2, 3, 4, 5, 6 }, 6), FLOW_OK);
  char bytes[256];
  double count = flow_example_serialize(example, bytes, sizeof bytes);
  assert_true(count > 0 && count < 256);
  flow_example_release(example);
  flow_tensor *text;
  assert_int_equal(flow_text_tensor(bytes, (size_t)count, &text), FLOW_OK);
  return text;
}

static flow_status apply(flow_function *function, flow_element *out)
{
  flow_element in = { .count = 1, .tensors = { example_text() } };
  flow_element_key key = { .index = 7 };
  flow_element place = { 0 };
  *out = (flow_element){ 0 };
  flow_status status = function->class->apply(function, NULL, &key, &place, &in, out);
  flow_element_clear(&in);
  return status;
}

static void examples_are_taken_apart(void **state)
{
  (void)state;
  flow_function *function;
  flow_element out;
  assert_int_equal(flow_function_parse_example(&function), FLOW_OK);
  assert_int_equal(flow_function_parse_example_add(function, "xs", FLOW_FLOAT32, 2, SHAPE(2, 3), NULL), FLOW_OK);
  assert_int_equal(flow_function_parse_example_add(function, "image", FLOW_UINT8, 0, NULL, NULL), FLOW_OK);
  assert_int_equal(flow_function_parse_example_add(function, "label", FLOW_INT64, 0, NULL, NULL), FLOW_OK);
  assert_int_equal(flow_function_parse_example_add(function, "none", FLOW_INT64, 1, SHAPE(2), &(double){ -3 }), FLOW_OK);
  assert_int_equal(flow_function_parse_example_add(function, "xs", FLOW_FLOAT32, 1, SHAPE(-1), NULL), FLOW_OK);
  flow_element_spec spec, text = { .count = 1, .components = { { .dtype = FLOW_UINT8, .rank = 1, .text = 1, .shape = { -1 } } } };
  assert_int_equal(function->class->spec(function, &text, &spec), FLOW_OK);
  assert_int_equal(spec.count, 5);
  assert_true(spec.components[1].text && spec.components[0].shape[1] == 3);
  assert_int_equal(apply(function, &out), FLOW_OK);
  assert_int_equal(out.count, 5);
  assert_int_equal(flow_element_check("it", &spec, &out), FLOW_OK);
  EXPECT(out.tensors[0], 1, 2, 3, 4, 5, 6);
  assert_memory_equal(flow_tensor_data(out.tensors[1]), "abc", 3);
  assert_true(*(int64_t *)flow_tensor_data(out.tensors[2]) == INT64_MIN);
  EXPECT(out.tensors[3], -3, -3);
  assert_int_equal((int)flow_tensor_dim(out.tensors[4], 0), 6);
  flow_element_clear(&out);
  text.components[0].text = 0;
  expect_message(function->class->spec(function, &text, &spec), FLOW_INVALID_ARGUMENT, "a serialized tf.train.Example");
  flow_function_release(function);
}

static void what_does_not_fit_is_named(void **state)
{
  (void)state;
  static const struct { const char *name; int dtype, rank; int64_t shape; const char *part; } cases[] = {
    { "xs", FLOW_FLOAT32, 1, 5, "parse_example, element 8: feature 'xs' has 6 values, its shape {5} takes 5" },
    { "xs", FLOW_FLOAT32, 0, 0, "feature 'xs' has 6 values" },
    { "xs", FLOW_INT64, 1, -1, "feature 'xs' holds float32, expected int64" },
    { "label", FLOW_UINT8, 0, 0, "feature 'label' holds int64, expected bytes" },
    { "nothing", FLOW_INT64, 0, 0, "feature 'nothing' is missing" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    flow_function *function;
    flow_element out;
    assert_int_equal(flow_function_parse_example(&function), FLOW_OK);
    assert_int_equal(flow_function_parse_example_add(function, "image", FLOW_UINT8, 0, NULL, NULL), FLOW_OK);
    flow_status status = flow_function_parse_example_add(function, cases[i].name, cases[i].dtype, cases[i].rank, &cases[i].shape, NULL);
    assert_int_equal(status, FLOW_OK);
    expect_message(apply(function, &out), FLOW_CORRUPT_DATA, cases[i].part);
    assert_int_equal(out.count, 0);
    expect_message(flow_function_parse_example_add(function, "x", FLOW_INT32, 0, NULL, NULL), FLOW_INVALID_ARGUMENT, "found int32");
    flow_function_release(function);
  }
}

/* ---- tables ----------------------------------------------------------------------------------------------------------------- */

static flow_status open_table(const char *text, int header, flow_csv **csv)
{
  FILE *file = fopen(paths[0], "wb");
  assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
  fclose(file);
  return flow_csv_open(paths[0], ",", header, csv);
}

static void tables_are_read(void **state)
{
  (void)state;
  flow_csv *csv;
  flow_tensor *tensor;
  static const char text[] = "\xef\xbb\xbfname,age,\"wei\"\"ght\",ok\r\n\"Ann, \"\"A\"\"\n2\",31, 1.5 ,true\r\n\r\nBob,-4,,0";
  assert_int_equal(open_table(text, 1, &csv), FLOW_OK);
  assert_int_equal(flow_csv_columns(csv), 4);
  assert_true(flow_csv_rows(csv) == 2);
  assert_string_equal(flow_csv_name(csv, 0), "name");
  assert_string_equal(flow_csv_name(csv, 2), "wei\"ght");
  assert_string_equal(flow_csv_text(csv, 0, 0), "Ann, \"A\"\n2");
  assert_string_equal(flow_csv_text(csv, 0, 1), "Bob");
  assert_null(flow_csv_text(csv, 0, 2));
  assert_int_equal(flow_csv_dtype(csv, 0), -1);
  assert_int_equal(flow_csv_dtype(csv, 1), FLOW_INT64);
  assert_int_equal(flow_csv_dtype(csv, 2), FLOW_FLOAT32);
  assert_int_equal(flow_csv_tensor(csv, 1, FLOW_INT8, &tensor), FLOW_OK);
  EXPECT(tensor, 31, -4);
  flow_tensor_release(tensor);
  assert_int_equal(flow_csv_tensor(csv, 2, FLOW_FLOAT64, &tensor), FLOW_OK);
  assert_true(((double *)flow_tensor_data(tensor))[0] == 1.5 && isnan(((double *)flow_tensor_data(tensor))[1]));
  flow_tensor_release(tensor);
  assert_int_equal(flow_csv_tensor(csv, 3, FLOW_BOOL, &tensor), FLOW_OK);
  EXPECT(tensor, 1, 0);
  flow_tensor_release(tensor);
  expect_message(flow_csv_tensor(csv, 1, FLOW_UINT8, &tensor), FLOW_CORRUPT_DATA, "line 5, column \"age\": \"-4\" is not uint8");
  expect_message(flow_csv_tensor(csv, 0, FLOW_FLOAT32, &tensor), FLOW_CORRUPT_DATA, "line 2, column \"name\"");
  assert_null(tensor);
  flow_csv_release(csv);
}

static void numbers_are_read_exactly(void **state)
{
  (void)state;
  static const char *const texts[] = { "0.1", "-123456789012345e-8", "1e308", "3.14159265358979323846", "5e-324", "+.5", "7.", "inf",
                                       "-nan", "9007199254740993", "0.000001", "123456.789012345" };
  flow_csv *csv;
  flow_tensor *tensor;
  char table[512] = "";
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) strcat(strcat(table, texts[i]), "\n");
  assert_int_equal(open_table(table, 0, &csv), FLOW_OK);
  assert_int_equal(flow_csv_tensor(csv, 0, FLOW_FLOAT64, &tensor), FLOW_OK);
  const double *found = flow_tensor_data(tensor);
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    double expected = strtod(texts[i], NULL);
    if (!(found[i] == expected || (isnan(found[i]) && isnan(expected)))) fail_msg("%s became %.17g", texts[i], found[i]);
  }
  flow_tensor_release(tensor);
  flow_csv_release(csv);
  assert_int_equal(open_table("9223372036854775807\n-9223372036854775808\n", 0, &csv), FLOW_OK);
  assert_int_equal(flow_csv_tensor(csv, 0, FLOW_INT64, &tensor), FLOW_OK);
  assert_true(((int64_t *)flow_tensor_data(tensor))[0] == INT64_MAX && ((int64_t *)flow_tensor_data(tensor))[1] == INT64_MIN);
  flow_tensor_release(tensor);
  flow_csv_release(csv);
  for (const char *const *bad = (const char *const[]){ "0x10", "1e", ".", "-", "1 2", "1,5", NULL }; *bad; bad++) {
    char quoted[32];
    snprintf(quoted, sizeof quoted, "\"%s\"\n", *bad);
    assert_int_equal(open_table(quoted, 0, &csv), FLOW_OK);
    assert_int_equal(flow_csv_dtype(csv, 0), -1);
    flow_csv_release(csv);
  }
}

static void bad_tables_are_explained(void **state)
{
  (void)state;
  static const struct { const char *text, *part; } cases[] = {
    { "", "holds no table" },
    { "\n\n", "holds no table" },
    { "a,b\n1,2\n3\n", "line 3: 1 field, the first line has 2" },
    { "a\n\"x\ny\"\n1,2\n", "line 4: 2 fields, the first line has 1" },
    { "a\n\"x\n\n", "line 2: a quoted field begins here and does not end" },
    { "a\n\"x\"y\n", "line 2: there is text after a closing quote" },
    { "a\nx\"y\n", "line 2: a quote stands inside" },
  };
  flow_csv *csv;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    expect_message(open_table(cases[i].text, 1, &csv), FLOW_CORRUPT_DATA, cases[i].part);
  expect_message(flow_csv_open(paths[0], ",,", 1, &csv), FLOW_INVALID_ARGUMENT, "one character");
  expect_message(flow_csv_open("/nowhere/at/all", ",", 1, &csv), FLOW_NOT_FOUND, "/nowhere/at/all");
  static const char good[] = "a,b\n\"1\"\"\",2\r\nx,y\n";
  for (int allowed = 0;; allowed++) {
    flow_fail_allocation(allowed);
    flow_status status = open_table(good, 1, &csv);
    flow_fail_allocation(-1);
    if (status == FLOW_OK) break;
    assert_int_equal(status, FLOW_OUT_OF_MEMORY);
    assert_true(flow_live_bytes() == live_before);
  }
  flow_csv_release(csv);
  for (size_t place = 0; place < sizeof good - 1; place++) {
    char bad[sizeof good];
    for (const char *symbol = "\",\n\r1"; *symbol; symbol++) {
      memcpy(bad, good, sizeof good);
      bad[place] = *symbol;
      if (open_table(bad, 1, &csv) == FLOW_OK) flow_csv_release(csv);
    }
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    TEST(files_are_read_in_turn), TEST(a_damaged_file_ends_where_it_is_damaged), TEST(examples_are_taken_apart),
    TEST(what_does_not_fit_is_named), TEST(tables_are_read), TEST(numbers_are_read_exactly), TEST(bad_tables_are_explained),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
