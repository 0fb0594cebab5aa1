/* test_read_ahead.c: records that threads read ahead: long files in all codings, faults at their place, ends in the middle. */
#include "datasets.h"
#include "temporary.h"

#include <unistd.h>

enum { FILES = 4 };
static char folder[TEMPORARY_PATH], paths[FILES][TEMPORARY_PATH + 32];
static const int lengths[FILES] = { 500, 3, 1200, 64 };

static int make_folder(void **state)
{
  (void)state;
  if (!mkdtemp(temporary(folder, "XXXXXX"))) return 1;
  for (int i = 0; i < FILES; i++) snprintf(paths[i], sizeof paths[i], "%s/file%d", folder, i);
  return 0;
}

static int remove_folder(void **state)
{
  (void)state;
  for (int i = 0; i < FILES; i++) unlink(paths[i]);
  return rmdir(folder);
}

/* Record k of file i is an int32 i * 10000 + k and, after it, up to 40 KB more. */
static void write_files(const char *compression)
{
  static char record[40004];
  for (int i = 0; i < FILES; i++) {
    flow_record_writer *writer;
    OK(flow_record_writer_new(paths[i], compression, &writer));
    for (int k = 0; k < lengths[i]; k++) {
      int32_t number = i * 10000 + k;
      memcpy(record, &number, sizeof number);
      OK(flow_record_writer_write(writer, record, sizeof number + (size_t)(k % 50 == 7 ? 40000 : k % 11)));
    }
    OK(flow_record_writer_close(writer));
    flow_record_writer_release(writer);
  }
}

static flow_dataset *records(int reads, const char *compression)
{
  const char *list[FILES];
  flow_dataset *dataset;
  for (int i = 0; i < FILES; i++) list[i] = paths[i];
  OK(flow_dataset_records(list, FILES, compression, reads, &dataset));
  return dataset;
}

static int number_of(const flow_element *element)
{
  int32_t number;
  memcpy(&number, element->tensors[0]->data, sizeof number);
  return number;
}

/* Which record comes next when `reads` files are read in turn: the rule, without threads. */
typedef struct turns { int reads, turn, file, open[FILES], at[FILES]; } turns;
static turns start(int reads)
{
  turns t = { .reads = reads > FILES ? FILES : reads };
  for (int i = 0; i < FILES; i++) t.open[i] = -1;
  return t;
}
static int expected_number(turns *t)
{
  for (int looked = 0; looked <= 2 * t->reads;) {
    int *file = &t->open[t->turn];
    t->turn = (t->turn + 1) % t->reads;
    if (*file < 0 && t->file < FILES) *file = t->file++;
    if (*file >= 0 && t->at[*file] < lengths[*file]) return *file * 10000 + t->at[*file]++;
    looked++;
    *file = -1;
  }
  return -1;
}

static void all_records_come_in_their_order(void **state)
{
  (void)state;
  static const char *const compressions[] = { "", "GZIP", "ZLIB" };
  for (int c = 0; c < 3; c++) {
    write_files(compressions[c]);
    for (int reads = 1; reads < 6; reads++) {
      flow_dataset *dataset = records(reads, compressions[c]);
      for (int skipped = 0; skipped < 1000; skipped += 333) {
        turns turn = start(reads);
        flow_iterator *iterator;
        flow_element element = { 0 };
        int count = 0;
        OK(flow_iterator_new(NULL, dataset, &iterator));
        for (int i = 0; i < skipped; i++) expected_number(&turn);
        if (skipped) OK(flow_iterator_skip(iterator, skipped));
        for (;; count++) {
          OK(flow_iterator_next(iterator, &element));
          if (element.count == 0) break;
          assert_int_equal(number_of(&element), expected_number(&turn));
          if (count == 400) {      /* what threads have read already */
            OK(flow_iterator_skip(iterator, 70));
            for (int i = 0; i < 70; i++, count++) expected_number(&turn);
          }
        }
        assert_int_equal(count + skipped, 500 + 3 + 1200 + 64);
        assert_int_equal(expected_number(&turn), -1);
        flow_iterator_close(iterator);
      }
      flow_dataset_release(dataset);
    }
  }
}

static void threads_are_as_many_as_asked(void **state)
{
  (void)state;
  write_files("");
  for (int reads = 1; reads < 4; reads++) {
    flow_dataset *dataset = records(reads, "");
    flow_iterator *iterator;
    flow_element element = { 0 };
    flow_stage_report report;
    OK(flow_iterator_new(NULL, dataset, &iterator));
    OK(flow_iterator_next(iterator, &element));
    assert_int_equal(flow_iterator_stage(iterator, 0, &report), 1);
    assert_int_equal(report.threads, reads == 1 ? 0 : reads + 1);      /* and the next file */
    flow_element_clear(&element);
    flow_iterator_close(iterator);
    flow_dataset_release(dataset);
  }
}

static void faults_come_at_their_place(void **state)
{
  (void)state;
  for (int reads = 1; reads < 5; reads++) {
    write_files("");
    FILE *file = fopen(paths[0], "r+b");
    fseek(file, 16 + 4 + 12, SEEK_SET);      /* in the length of the second record */
    fputc('x', file);
    fclose(file);
    unlink(paths[1]);
    flow_dataset *dataset = records(reads, "");
    flow_iterator *iterator;
    flow_element element = { 0 };
    int count = 0, faults = 0, of_first = 0;
    OK(flow_iterator_new(NULL, dataset, &iterator));
    for (;;) {
      flow_status status = flow_iterator_next(iterator, &element);
      if (status != FLOW_OK) {
        faults++;
        assert_int_equal(status, strstr(flow_last_error(), "file0") ? FLOW_CORRUPT_DATA : FLOW_NOT_FOUND);
        assert_non_null(strstr(flow_last_error(), status == FLOW_NOT_FOUND ? "file1" : "the record at byte"));
        continue;
      }
      if (element.count == 0) break;
      count++;
      of_first += number_of(&element) < 10000;
    }
    assert_int_equal(faults, 2);
    assert_int_equal(of_first, 1);
    assert_int_equal(count, 1 + 1200 + 64);
    flow_iterator_close(iterator);
    flow_dataset_release(dataset);
  }
}

static void a_pass_may_end_anywhere(void **state)
{
  (void)state;
  write_files("GZIP");
  double before = flow_live_bytes();
  for (int taken = 0; taken < 300; taken = taken * 2 + 1) {
    flow_dataset *dataset = prefetch(records(3, "GZIP"), 2);
    flow_iterator *iterator;
    flow_element element = { 0 };
    OK(flow_iterator_new(NULL, dataset, &iterator));
    for (int i = 0; i < taken; i++) OK(flow_iterator_next(iterator, &element));
    flow_element_clear(&element);
    flow_iterator_close(iterator);
    flow_dataset_release(dataset);
  }
  assert_true(flow_live_bytes() == before);
}

static void failing_allocations_leave_nothing(void **state)
{
  (void)state;
  write_files("");
  double before = flow_live_bytes();
  for (int after = 0; after < 120; after++) {
    flow_dataset *dataset = records(2, "");
    flow_iterator *iterator;
    flow_element element = { 0 };
    OK(flow_iterator_new(NULL, dataset, &iterator));
    flow_fail_allocation(after);
    for (int i = 0; i < 80; i++) {
      flow_status status = flow_iterator_next(iterator, &element);
      assert_true(status == FLOW_OK || status == FLOW_OUT_OF_MEMORY);
      if (status != FLOW_OK) break;
    }
    flow_fail_allocation(-1);
    flow_element_clear(&element);
    flow_iterator_close(iterator);
    flow_dataset_release(dataset);
    assert_true(flow_live_bytes() == before);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(all_records_come_in_their_order), cmocka_unit_test(threads_are_as_many_as_asked),
    cmocka_unit_test(faults_come_at_their_place), cmocka_unit_test(a_pass_may_end_anywhere),
    cmocka_unit_test(failing_allocations_leave_nothing),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
