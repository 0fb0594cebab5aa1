/* test_cuda_batches.c: rows of tables as the inputs of steps, where they begin is said on the device. */
#include "cuda_runner.h"

enum { TABLES = 19, ROWS = 23, BATCH = 5 };      /* more tables than one launch takes */

static const flow_accelerator_functions *gpu;
static flow_queue *queue;
static flow_batch_table tables[TABLES];
static unsigned char *sent[TABLES];
static int64_t *order;
static flow_batch_step *step;
static const int64_t names[] = { 7, 0, 22, 3, 3, 11, 19, 1, 22, 4, 5, 6 };
enum { NAMES = sizeof names / sizeof *names };

static void *on_device(const void *bytes, size_t size)
{
  void *there;
  cuda_ok(gpu->allocate(queue, size + 1, &there));
  if (bytes) cuda_ok(gpu->upload(queue, there, bytes, size));
  return there;
}

/* Rows of 0, 1, 2, ... bytes, some at odd addresses. */
static int start(void **state)
{
  (void)state;
  gpu = cuda_device()->functions;
  cuda_ok(gpu->queue_new(cuda_device(), &queue));
  for (int t = 0; t < TABLES; t++) {
    size_t row = (size_t)(t < 17 ? t : 16 * t), size = row * ROWS;
    sent[t] = malloc(size + 1);
    assert_non_null(sent[t]);
    for (size_t i = 0; i < size; i++) sent[t][i] = (unsigned char)(i * 31 + (size_t)t);
    tables[t] = (flow_batch_table){ .from = on_device(sent[t], size), .to = on_device(NULL, row * BATCH), .rows = ROWS,
                                    .row_bytes = (int64_t)row };
  }
  order = on_device(names, sizeof names);
  step = on_device(NULL, sizeof *step);
  return 0;
}

static int end(void **state)
{
  (void)state;
  for (int t = 0; t < TABLES; t++) {
    gpu->release(queue, (void *)(uintptr_t)tables[t].from);
    gpu->release(queue, tables[t].to);
    free(sent[t]);
  }
  gpu->release(queue, order);
  gpu->release(queue, step);
  gpu->queue_release(queue);
  return 0;
}

static void send_first(int64_t first)
{
  const flow_batch_step all = { .scalars = { .step = 41, .first_sample = 1000 }, .first = first };
  cuda_ok(gpu->upload(queue, step, &all, sizeof all));
}

/* Every table's batch holds the rows from `first` on. */
static void check(int ordered, int64_t first)
{
  unsigned char found[16 * TABLES * BATCH];
  for (int t = 0; t < TABLES; t++) {
    size_t row = (size_t)tables[t].row_bytes;
    cuda_ok(gpu->download(queue, found, tables[t].to, row * BATCH));
    for (int64_t i = 0; i < BATCH; i++)
      assert_memory_equal(found + (size_t)i * row, sent[t] + (size_t)(ordered ? names[first + i] : first + i) * row, row);
  }
}

static void rows_are_taken_by_the_order_or_as_they_lie(void **state)
{
  (void)state;
  for (int64_t first = 0; first + BATCH <= NAMES; first += 3) {
    send_first(first);
    cuda_ok(gpu->take_batch(queue, tables, TABLES, order, NAMES, BATCH, step));
    check(1, first);
    cuda_ok(gpu->take_batch(queue, tables, TABLES, NULL, 0, BATCH, step));
    check(0, first);
  }
}

static void a_recording_takes_the_batch_that_is_said(void **state)
{
  (void)state;
  flow_recording *recording;
  cuda_ok(gpu->record_begin(queue));
  cuda_ok(gpu->take_batch(queue, tables, TABLES, order, NAMES, BATCH, step));
  cuda_ok(gpu->record_end(queue, &recording));
  for (int64_t first = 0; first + BATCH <= NAMES; first++) {
    send_first(first);
    cuda_ok(gpu->replay(queue, recording));
    check(1, first);
  }
  gpu->recording_release(recording);
}

/* After the order's last name there is nothing that names a row: names that no table has are refused. */
static void a_row_that_is_not_there_is_a_fault(void **state)
{
  (void)state;
  int64_t wrong[NAMES];
  memcpy(wrong, names, sizeof wrong);
  wrong[8] = ROWS;
  cuda_ok(gpu->upload(queue, order, wrong, sizeof wrong));
  send_first(6);
  cuda_ok(gpu->take_batch(queue, tables, TABLES, order, NAMES, BATCH, step));
  assert_int_equal(gpu->synchronize(queue), FLOW_INVALID_ARGUMENT);
  assert_non_null(strstr(flow_last_error(), "23 in row 3 is outside 0..22"));
  send_first(ROWS - 2);
  cuda_ok(gpu->take_batch(queue, tables, TABLES, NULL, 0, BATCH, step));
  assert_int_equal(gpu->synchronize(queue), FLOW_INVALID_ARGUMENT);
  cuda_ok(gpu->upload(queue, order, names, sizeof names));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(rows_are_taken_by_the_order_or_as_they_lie), cmocka_unit_test(a_recording_takes_the_batch_that_is_said),
    cmocka_unit_test(a_row_that_is_not_there_is_a_fault),
  };
  return cmocka_run_group_tests(tests, start, end);
}
