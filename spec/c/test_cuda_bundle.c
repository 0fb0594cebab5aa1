/* test_cuda_bundle.c: small launches of a recording that are next to each other are one; what depends on each other stays in order. The
 * emulated device runs blocks and threads at random, so each recording is replayed often. */
#include "cuda_runner.h"

enum { COUNT = 24, LARGE = 100000, REPLAYS = 20, FILLS = 123, PACKS = 11 };      /* FILLS, PACKS: that one launch has room for */

static const flow_accelerator *device;
static const flow_accelerator_functions *gpu;
static flow_queue *queue, *other;
static const flow_attributes none;

static int set_up(void **state)
{
  (void)state;
  device = cuda_device();
  gpu = device->functions;
  cuda_ok(gpu->queue_new(device, &queue));
  cuda_ok(gpu->queue_new(device, &other));
  return 0;
}

static int tear_down(void **state)
{
  (void)state;
  gpu->queue_release(other);
  gpu->queue_release(queue);
  return 0;
}

/* ---- vectors on the device ------------------------------------------------------------------------------------------------------- */

static flow_operand vector(int64_t count, int dtype)
{
  flow_operand x = { .dtype = dtype, .rank = 1, .shape = { count }, .strides = { 1 } };
  cuda_ok(gpu->allocate(queue, (size_t)(count * flow_dtype_size(dtype)), &x.data));
  cuda_ok(gpu->clear(queue, x.data, (size_t)(count * flow_dtype_size(dtype))));
  return x;
}

static flow_operand part(flow_operand x, int64_t first, int64_t count, int64_t stride)
{
  x.data = (float *)x.data + first;
  x.shape[0] = count;
  x.strides[0] = stride;
  return x;
}

static void put(const flow_operand *x, int64_t at, float value)
{
  cuda_ok(gpu->upload(queue, (float *)x->data + at, &value, sizeof value));
}

static float item(const flow_operand *x, int64_t at)
{
  float value;
  cuda_ok(gpu->download(queue, &value, (const float *)x->data + at, sizeof value));
  return value;
}

static void enqueue(int op, const flow_attributes *attributes, flow_operand *inputs, int input_count, flow_operand *y)
{
  flow_call call = { .op = op, .attributes = attributes, .inputs = inputs, .input_count = input_count, .outputs = y,
                     .output_count = y != NULL, .queue = queue };
  const flow_kernel *kernel = device->device.kernels[op];
  while (kernel->supports && !kernel->supports(&call)) kernel++;
  cuda_ok(kernel->run(&call, 0, 0, 1));
}

static void fill_with(flow_operand y, double value)
{
  flow_attributes attributes = { .fill = { .value = value, .rank = 1, .dims = { y.shape[0] } } };
  enqueue(FLOW_OP_fill, &attributes, NULL, 0, &y);
}

static void add(flow_operand a, flow_operand b, flow_operand y) { enqueue(FLOW_OP_add, &none, (flow_operand[]){ a, b }, 2, &y); }

static void assign_add(flow_operand to, flow_operand from) { enqueue(FLOW_OP_assign_add, &none, (flow_operand[]){ to, from }, 2, NULL); }

/* Sum of all elements. */
static void sum(flow_operand x, flow_operand y)
{
  y.rank = 0;
  enqueue(FLOW_OP_sum, &none, &x, 1, &y);
}

/* ---- recordings -------------------------------------------------------------------------------------------------------------------- */

static void begin(void) { cuda_ok(gpu->record_begin(queue)); }

static flow_recording *end(int nodes)
{
  flow_recording *recording;
  cuda_ok(gpu->record_end(queue, &recording));
  assert_int_equal(gpu->recording_nodes(recording), nodes);
  return recording;
}

static void replay(flow_recording *recording) { cuda_ok(gpu->replay(queue, recording)); }

static void release(const flow_operand *x, int count)
{
  for (int i = 0; i < count; i++) gpu->release(queue, x[i].data);
}

/* ---- tests ------------------------------------------------------------------------------------------------------------------------- */

static void small_launches_are_one(void **state)
{
  (void)state;
  flow_operand x[COUNT];
  for (int i = 0; i < COUNT; i++) x[i] = vector(3, FLOW_FLOAT32);
  begin();
  for (int i = 0; i < COUNT; i++) fill_with(x[i], i + 1);
  flow_recording *recording = end(1);
  assert_float_equal(item(&x[5], 2), 0, 0);
  replay(recording);
  for (int i = 0; i < COUNT; i++)
    for (int k = 0; k < 3; k++) assert_float_equal(item(&x[i], k), i + 1, 0);
  gpu->recording_release(recording);
  release(x, COUNT);
}

static void one_alone_stays_what_it_was(void **state)
{
  (void)state;
  flow_operand x = vector(3, FLOW_FLOAT32);
  begin();
  fill_with(x, 7);
  flow_recording *recording = end(1);
  replay(recording);
  assert_float_equal(item(&x, 2), 7, 0);
  gpu->recording_release(recording);
  release(&x, 1);
}

/* x[i + 1] = x[i] + x[i], in one launch: each reads what the one before wrote. */
static void reads_come_after_writes(void **state)
{
  (void)state;
  flow_operand x[COUNT];
  for (int i = 0; i < COUNT; i++) x[i] = vector(1, FLOW_FLOAT32);
  begin();
  for (int i = 0; i + 1 < COUNT; i++) add(x[i], x[i], x[i + 1]);
  flow_recording *recording = end(1);
  for (int r = 1; r <= REPLAYS; r++) {
    put(&x[0], 0, (float)r);
    replay(recording);
    assert_float_equal(item(&x[COUNT - 1], 0), ldexp(r, COUNT - 1), 0);
  }
  gpu->recording_release(recording);
  release(x, COUNT);
}

/* Each vector is read by the launch before the one that writes it. */
static void writes_come_after_reads(void **state)
{
  (void)state;
  flow_operand x[COUNT];
  for (int i = 0; i < COUNT; i++) x[i] = vector(2, FLOW_FLOAT32);
  begin();
  for (int i = 0; i + 1 < COUNT; i++) add(x[i + 1], x[i + 1], x[i]);
  flow_recording *recording = end(1);
  for (int r = 0; r < REPLAYS; r++) {
    for (int i = 0; i < COUNT; i++) put(&x[i], 1, (float)(r + i));
    replay(recording);
    for (int i = 0; i + 1 < COUNT; i++) assert_float_equal(item(&x[i], 1), 2 * (r + i + 1), 0);
  }
  gpu->recording_release(recording);
  release(x, COUNT);
}

static void later_writes_win(void **state)
{
  (void)state;
  flow_operand x = vector(COUNT + 1, FLOW_FLOAT32);
  begin();
  for (int i = 0; i < COUNT; i++) fill_with(part(x, i, 2, 1), i + 1);      /* each overlaps the next */
  flow_recording *recording = end(1);
  for (int r = 0; r < REPLAYS; r++) {
    cuda_ok(gpu->clear(queue, x.data, (COUNT + 1) * sizeof(float)));
    replay(recording);
    for (int i = 0; i <= COUNT; i++) assert_float_equal(item(&x, i), i < COUNT ? i + 1 : COUNT, 0);
  }
  gpu->recording_release(recording);
  release(&x, 1);
}

/* What is backwards, or has gaps, reaches as far as its strides. */
static void strides_count(void **state)
{
  (void)state;
  flow_operand x = vector(40, FLOW_FLOAT32), y = vector(20, FLOW_FLOAT32);
  begin();
  fill_with(x, 1);
  add(part(x, 39, 20, -2), part(x, 0, 20, 2), y);
  fill_with(part(x, 20, 20, 1), 2);
  assign_add(part(x, 0, 1, 1), part(y, 3, 1, 1));
  flow_recording *recording = end(1);
  for (int r = 0; r < REPLAYS; r++) {
    replay(recording);
    for (int i = 0; i < 20; i++) assert_float_equal(item(&y, i), 2, 0);
    for (int i = 0; i < 40; i++) assert_float_equal(item(&x, i), i == 0 ? 3 : i < 20 ? 1 : 2, 0);
  }
  gpu->recording_release(recording);
  release((flow_operand[]){ x, y }, 2);
}

/* Launches that nothing connects until the last one, which reads what each of them made. */
static void one_that_depends_on_many(void **state)
{
  (void)state;
  flow_operand x = vector(COUNT, FLOW_FLOAT32), y = vector(1, FLOW_FLOAT32);
  begin();
  for (int i = 0; i < COUNT; i++) fill_with(part(x, i, 1, 1), i);
  sum(x, y);
  assign_add(part(x, 0, 1, 1), y);
  flow_recording *recording = end(1);
  for (int r = 0; r < REPLAYS; r++) {
    put(&y, 0, 0);
    replay(recording);
    assert_float_equal(item(&y, 0), COUNT * (COUNT - 1) / 2, 0);
    assert_float_equal(item(&x, 0), COUNT * (COUNT - 1) / 2, 0);
  }
  gpu->recording_release(recording);
  release((flow_operand[]){ x, y }, 2);
}

/* Labels that are not classes make effects in the same launch write nothing, and those of later replays, until the fault is raised. */
static void effects_wait_for_the_verdict(void **state)
{
  (void)state;
  flow_operand logits = vector(12, FLOW_FLOAT32), labels = vector(3, FLOW_INT32), losses = vector(3, FLOW_FLOAT32);
  flow_operand variable = vector(1, FLOW_FLOAT32), one = vector(1, FLOW_FLOAT32);
  logits.rank = 2;
  logits.shape[0] = 3;
  logits.shape[1] = logits.strides[0] = 4;
  logits.strides[1] = 1;
  put(&one, 0, 1);
  begin();
  enqueue(FLOW_OP_sparse_cross_entropy, &none, (flow_operand[]){ logits, labels }, 2, &losses);
  assign_add(variable, one);
  flow_recording *recording = end(1);
  for (int r = 0; r < REPLAYS; r++) {
    int32_t wrong[3] = { 1, 2, r % 2 ? 4 : 3 };
    cuda_ok(gpu->upload(queue, labels.data, wrong, sizeof wrong));
    put(&variable, 0, 5);
    replay(recording);
    flow_status status = gpu->synchronize(queue);
    assert_int_equal(status, r % 2 ? FLOW_INVALID_ARGUMENT : FLOW_OK);
    assert_float_equal(item(&variable, 0), (r % 2 ? 5 : 6), 0);
  }
  gpu->recording_release(recording);
  release((flow_operand[]){ logits, labels, losses, variable, one }, 5);
}

static flow_operand matrix(int64_t rows, int64_t columns)
{
  flow_operand x = vector(rows * columns, FLOW_FLOAT32);
  x.rank = 2;
  x.shape[0] = rows;
  x.shape[1] = x.strides[0] = columns;
  x.strides[1] = 1;
  return x;
}

/* A thread that has a line of a softmax, a cross entropy or an argmax goes on with it without waiting, from whichever thread on; what
 * reads lines of others waits for them. */
static void threads_go_on_with_their_lines(void **state)
{
  (void)state;
  enum { ROWS = 40, CLASSES = 3 };
  const flow_attributes last = { .axis = { 1 } }, of_line = { .reduce = { .count = 1, .axes = { 1 } } },
                        first = { .reduce = { .count = 1, .axes = { 0 } } };
  flow_operand z = matrix(ROWS, CLASSES), p = matrix(ROWS, CLASSES), d = matrix(ROWS, CLASSES), labels = vector(ROWS, FLOW_INT32);
  flow_operand one = vector(1, FLOW_FLOAT32), two = vector(1, FLOW_FLOAT32), g = vector(ROWS, FLOW_FLOAT32);
  flow_operand all = vector(CLASSES, FLOW_FLOAT32);
  flow_operand largest = vector(ROWS, FLOW_INT64), lines = vector(ROWS, FLOW_FLOAT32), more = vector(ROWS, FLOW_FLOAT32);
  begin();
  fill_with(one, 1);
  fill_with(two, 3);
  add(one, two, one);
  enqueue(FLOW_OP_broadcast_to, &none, &one, 1, &all);                  /* which moves what follows it to other threads */
  enqueue(FLOW_OP_broadcast_to, &none, &one, 1, &g);
  enqueue(FLOW_OP_softmax, &last, &z, 1, &p);
  enqueue(FLOW_OP_sparse_cross_entropy_gradient, &none, (flow_operand[]){ g, p, labels }, 3, &d);
  enqueue(FLOW_OP_argmax, &of_line, &p, 1, &largest);
  enqueue(FLOW_OP_sum, &of_line, &d, 1, &lines);
  add(lines, g, more);
  enqueue(FLOW_OP_max, &first, &d, 1, &all);                            /* of all lines */
  flow_recording *recording = end(1);
  for (int r = 0; r < REPLAYS; r++) {
    int32_t label[ROWS];
    for (int i = 0; i < ROWS * CLASSES; i++) put(&z, i, (float)((i * 7 + r) % 11));
    for (int i = 0; i < ROWS; i++) label[i] = (i + r) % CLASSES;
    cuda_ok(gpu->upload(queue, labels.data, label, sizeof label));
    replay(recording);
    float most[CLASSES] = { -INFINITY, -INFINITY, -INFINITY };
    for (int i = 0; i < ROWS; i++) {
      int64_t found;
      double e[CLASSES], total = 0, again = 0;
      int best = 0;
      for (int k = 0; k < CLASSES; k++) total += e[k] = exp(item(&z, i * CLASSES + k));
      for (int k = 1; k < CLASSES; k++)
        if (e[k] > e[best]) best = k;
      for (int k = 0; k < CLASSES; k++) again += e[k] = exp(e[k] / total);
      for (int k = 0; k < CLASSES; k++) {
        float slope = item(&d, i * CLASSES + k);
        assert_float_equal(slope, 4 * (e[k] / again - (k == label[i])), 1e-5);
        if (slope > most[k]) most[k] = slope;
      }
      cuda_ok(gpu->download(queue, &found, (int64_t *)largest.data + i, sizeof found));
      assert_int_equal(found, best);
      assert_float_equal(item(&more, i), 4, 1e-5);
    }
    for (int k = 0; k < CLASSES; k++) assert_float_equal(item(&all, k), most[k], 0);
  }
  gpu->recording_release(recording);
  release((flow_operand[]){ z, p, d, labels, one, two, g, all, largest, lines, more }, 11);
}

/* Threads that share a line wait for each other within their warp, so that a sum, and what its first thread makes of it, take one turn.
 * Sums of 64 have 16 threads, of 128 a whole warp; the outputs of the second one lie side by side. */
static void teams_wait_within_their_warps(void **state)
{
  (void)state;
  enum { ROWS = 64, COLUMNS = 10, LONG = 128, CLASSES = 200 };
  const flow_attributes first = { .reduce = { .count = 1, .axes = { 0 } } }, last = { .axis = { 1 } };
  flow_operand x = vector(LONG, FLOW_FLOAT32), m = matrix(ROWS, COLUMNS), z = matrix(2, CLASSES), p = matrix(2, CLASSES);
  flow_operand of_x = vector(1, FLOW_FLOAT32), of_part = vector(1, FLOW_FLOAT32), both = vector(1, FLOW_FLOAT32);
  flow_operand of_columns = vector(COLUMNS, FLOW_FLOAT32), of_p = vector(1, FLOW_FLOAT32), again = vector(1, FLOW_FLOAT32);
  begin();
  fill_with(part(x, LONG - 1, 1, 1), 5);                                /* one element, of which another thread makes its share */
  sum(x, of_x);
  sum(part(x, 0, ROWS, 1), of_part);
  add(of_x, of_part, both);
  add(both, both, both);
  enqueue(FLOW_OP_sum, &first, &m, 1, &of_columns);
  enqueue(FLOW_OP_softmax, &last, &z, 1, &p);
  flow_operand row = part(p, CLASSES, CLASSES, 1);
  row.rank = 1;
  sum(row, of_p);                                                       /* of what another team has written */
  sum(of_p, again);
  assign_add(of_p, again);                                              /* once it was read */
  flow_recording *recording = end(1);
  for (int r = 0; r < REPLAYS; r++) {
    double all = 0, some = 0, of_column = 0;
    float of_vector[LONG], of_matrix[ROWS * COLUMNS], logits[2 * CLASSES];
    for (int i = 0; i < LONG; i++) all += of_vector[i] = i == LONG - 1 ? 5 : (float)((i * 5 + r) % 13);
    of_vector[LONG - 1] = (float)r;
    for (int i = 0; i < ROWS; i++) some += of_vector[i];
    for (int i = 0; i < ROWS * COLUMNS; i++) of_matrix[i] = (float)((i * 3 + r) % 17);
    for (int i = 0; i < ROWS; i++) of_column += of_matrix[i * COLUMNS + 7];
    for (int i = 0; i < 2 * CLASSES; i++) logits[i] = (float)((i + r) % 5);
    cuda_ok(gpu->upload(queue, x.data, of_vector, sizeof of_vector));
    cuda_ok(gpu->upload(queue, m.data, of_matrix, sizeof of_matrix));
    cuda_ok(gpu->upload(queue, z.data, logits, sizeof logits));
    replay(recording);
    assert_float_equal(item(&both, 0), 2 * (all + some), 0);
    assert_float_equal(item(&of_columns, 7), of_column, 0);
    assert_float_equal(item(&again, 0), 1, 1e-5);
    assert_float_equal(item(&of_p, 0), 2, 1e-5);
  }
  gpu->recording_release(recording);
  release((flow_operand[]){ x, m, z, p, of_x, of_part, both, of_columns, of_p, again }, 10);
}

/* However long the chain is that a thread makes of its lines. */
static void chains_of_lines(void **state)
{
  (void)state;
  enum { ROWS = 40, CLASSES = 3, LENGTH = 6 };
  const flow_attributes last = { .axis = { 1 } }, of_line = { .reduce = { .count = 1, .axes = { 1 } } };
  flow_operand x[LENGTH + 1], y = vector(ROWS, FLOW_FLOAT32);
  for (int i = 0; i <= LENGTH; i++) x[i] = matrix(ROWS, CLASSES);
  begin();
  for (int i = 0; i < LENGTH; i++) enqueue(FLOW_OP_softmax, &last, &x[i], 1, &x[i + 1]);
  enqueue(FLOW_OP_max, &of_line, &x[LENGTH], 1, &y);
  flow_recording *recording = end(1);
  for (int r = 0; r < REPLAYS; r++) {
    const double z[CLASSES] = { r % 5, 1, 2 };
    double e[CLASSES];
    for (int k = 0; k < CLASSES; k++) put(&x[0], 7 * CLASSES + k, (float)(e[k] = z[k]));
    for (int i = 0; i < LENGTH; i++) {
      double total = 0;
      for (int k = 0; k < CLASSES; k++) total += e[k] = exp(e[k]);
      for (int k = 0; k < CLASSES; k++) e[k] /= total;
    }
    replay(recording);
    assert_float_equal(item(&y, 7), fmax(e[0], fmax(e[1], e[2])), 1e-6);
    assert_float_equal(item(&y, 8), 1.0 / CLASSES, 1e-6);
  }
  gpu->recording_release(recording);
  release(x, LENGTH + 1);
  release(&y, 1);
}

/* What is large, or no kernel, comes between what is before and after it. */
static void others_come_between(void **state)
{
  (void)state;
  flow_operand x = vector(LARGE, FLOW_FLOAT32), y = vector(2, FLOW_FLOAT32), z = vector(2, FLOW_FLOAT32);
  begin();
  fill_with(y, 1);
  fill_with(z, 2);
  fill_with(x, 3);                                                      /* too large */
  assign_add(y, part(x, 0, 2, 1));
  assign_add(z, part(x, LARGE - 2, 2, 1));
  cuda_ok(gpu->copy(queue, x.data, y.data, 2 * sizeof(float)));
  add(part(x, 0, 2, 1), y, y);
  add(part(x, 1, 2, 1), z, z);
  cuda_ok(gpu->clear(queue, x.data, 2 * sizeof(float)));
  flow_recording *recording = end(6);
  for (int r = 0; r < REPLAYS; r++) {
    replay(recording);
    assert_float_equal(item(&y, 0), 8, 0);
    assert_float_equal(item(&z, 0), 9, 0);
    assert_float_equal(item(&z, 1), 8, 0);
    assert_float_equal(item(&x, 0), 0, 0);
  }
  gpu->recording_release(recording);
  release((flow_operand[]){ x, y, z }, 3);
}

/* More than the arguments of one. */
static void what_is_too_much_for_one_is_several(void **state)
{
  (void)state;
  enum { MANY = 3 * FILLS + 1 };
  flow_operand x = vector(1, FLOW_FLOAT32), one = vector(1, FLOW_FLOAT32), many[4];
  put(&one, 0, 1);
  begin();
  for (int i = 0; i < MANY; i++) fill_with(x, i);
  flow_recording *recording = end(4);
  replay(recording);
  assert_float_equal(item(&x, 0), MANY - 1, 0);
  gpu->recording_release(recording);
  for (int i = 0; i < 4; i++) many[i] = vector(40, FLOW_FLOAT32);
  begin();
  for (int i = 0; i < 4 * PACKS; i++)
    enqueue(FLOW_OP_pack, &none, (flow_operand[]){ part(many[(i + 1) % 4], 0, 20, 1), part(many[(i + 2) % 4], 5, 20, 1) }, 2, &many[i % 4]);
  recording = end(4);
  replay(recording);
  cuda_ok(gpu->synchronize(queue));
  gpu->recording_release(recording);
  release((flow_operand[]){ x, one }, 2);
  release(many, 4);
}

/* A queue that follows gets what was left to the bundle before, and what follows it comes after. */
static void queues_that_are_recorded_together(void **state)
{
  (void)state;
  flow_operand x = vector(1, FLOW_FLOAT32), y = vector(1, FLOW_FLOAT32), z = vector(1, FLOW_FLOAT32);
  cuda_ok(gpu->follow(other, queue));
  begin();
  fill_with(x, 1);
  fill_with(y, 2);
  cuda_ok(gpu->follow(other, queue));
  flow_queue *own = queue;
  queue = other;
  add(x, y, z);
  assign_add(z, x);
  queue = own;
  cuda_ok(gpu->follow(queue, other));
  assign_add(z, y);
  add(z, z, x);
  flow_recording *recording = end(3);
  for (int r = 0; r < REPLAYS; r++) {
    replay(recording);
    assert_float_equal(item(&x, 0), 12, 0);
  }
  gpu->recording_release(recording);
  begin();
  cuda_ok(gpu->follow(other, queue));
  queue = other;
  fill_with(x, 1);
  queue = own;
  assert_int_equal(gpu->record_end(queue, &recording), FLOW_INVALID_STATE);      /* nobody followed the other one */
  begin();
  fill_with(x, 2);
  recording = end(1);
  gpu->recording_release(recording);
  release((flow_operand[]){ x, y, z }, 3);
}

int main(void)
{
#define test(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
  const struct CMUnitTest tests[] = {
    test(small_launches_are_one), test(one_alone_stays_what_it_was), test(reads_come_after_writes), test(writes_come_after_reads),
    test(later_writes_win), test(strides_count), test(one_that_depends_on_many), test(effects_wait_for_the_verdict),
    test(threads_go_on_with_their_lines), test(teams_wait_within_their_warps), test(chains_of_lines),
    test(others_come_between), test(what_is_too_much_for_one_is_several), test(queues_that_are_recorded_together),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
