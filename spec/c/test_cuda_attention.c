/* test_cuda_attention.c: attention and its gradients on the device, against the CPU's plain kernels in float32. */
#include "cuda_runner.h"
#include "ops/matrix_product.h"

enum { BATCH = 2, HEADS = 3, MOST_INPUTS = 8 };

typedef enum mask_kind { NO_MASK, CAUSAL, LENGTHS, BLIND_ROWS, HOLES, BAND, ENDS, MASK_KINDS } mask_kind;

/* Whether a mask lets the row see the key. */
static int sees(mask_kind kind, int64_t batch, int64_t row, int64_t key, int64_t keys)
{
  switch (kind) {
  case CAUSAL: return key <= row;
  case LENGTHS: return key < 3 + batch * 40;
  case BLIND_ROWS: return row % 3 != 1 && key % 2 == 0;
  case HOLES: return (row * 7 + key * 5 + batch) % 11 < 3;
  case BAND: return key >= row - 3 && key <= row + 2;
  case ENDS: return key == 0 || key == keys - 1;
  default: return 1;
  }
}

/* {batch, heads, rows, columns}, or {batch, rows, heads, columns} in memory. */
static flow_operand matrices(int dtype, int swapped, int rows, int columns)
{
  return swapped ? operand(dtype, 4, BATCH, rows, HEADS, columns) : operand(dtype, 4, BATCH, HEADS, rows, columns);
}

/* A causal mask has no axes of the batch, and lengths none of the rows. */
static flow_operand mask_of(mask_kind kind, int rows, int keys)
{
  const int batch = kind == CAUSAL ? 1 : BATCH, of_rows = kind == LENGTHS ? 1 : rows;
  flow_operand mask = operand(FLOW_BOOL, 4, batch, 1, of_rows, keys);
  for (int64_t i = 0; i < operand_size(&mask); i++) set(&mask, i, sees(kind, i / keys / of_rows, i / keys % of_rows, i % keys, keys));
  return mask;
}

typedef struct setting {
  int dtype, rows, keys, columns, of_value, exact, swapped;
  mask_kind mask;
  double left_out;
} setting;

/* In exact products of float32 only the order of sums differs; others round their operands: to TF32, or weights and gradients of scores to
 * 16 bits. */
static double tolerance_of(const setting *s)
{
  return s->dtype == FLOW_BFLOAT16 ? 2e-2 : s->dtype == FLOW_FLOAT16 || !s->exact ? 3e-3 : 1e-5;
}

static void compare(const setting *s)
{
  flow_operand g = matrices(s->dtype, s->swapped & FLOW_ATTENTION_Y, s->rows, s->of_value), outputs[3];
  flow_operand inputs[MOST_INPUTS] = { g, matrices(s->dtype, s->swapped & FLOW_ATTENTION_Q, s->rows, s->columns),
                                       matrices(s->dtype, s->swapped & FLOW_ATTENTION_K, s->keys, s->columns),
                                       matrices(s->dtype, s->swapped & FLOW_ATTENTION_V, s->keys, s->of_value) };
  int count = 4;
  for (int i = 0; i < count; i++) fill(&inputs[i], i == 1 ? 4 / sqrt(s->columns) : 1);
  if (s->mask != NO_MASK) {
    inputs[count++] = mask_of(s->mask, s->rows, s->keys);
    inputs[count] = operand(FLOW_FLOAT32, 0);
    set(&inputs[count++], 0, s->left_out);
  }
  outputs[0] = matrices(s->dtype, s->swapped & FLOW_ATTENTION_DV, s->keys, s->of_value);
  outputs[1] = matrices(s->dtype, s->swapped & FLOW_ATTENTION_DQ, s->rows, s->columns);
  outputs[2] = matrices(s->dtype, s->swapped & FLOW_ATTENTION_DK, s->keys, s->columns);
  flow_operand results[2] = { matrices(s->dtype, s->swapped & FLOW_ATTENTION_Y, s->rows, s->of_value),
                              operand(FLOW_FLOAT32, 4, BATCH, HEADS, s->rows, 2) };
  const flow_attributes attributes = { .matmul = { .swapped = s->swapped } };
  flow_attributes with_results = attributes;
  with_results.matmul.swapped |= FLOW_ATTENTION_KEPT | (s->swapped & FLOW_ATTENTION_Y ? FLOW_ATTENTION_KEPT_Y : 0);
  flow_call forward = call_of(FLOW_OP_attention, &attributes, inputs + 1, count - 1, results, 2);
  flow_call backward = call_of(FLOW_OP_attention_gradient, &attributes, inputs, count, outputs, 3);
  forward.exact = backward.exact = s->exact;
  cuda_matches_cpu_in_float(&forward, tolerance_of(s));
  cuda_matches_cpu_in_float(&backward, 4 * tolerance_of(s));
  cuda_ok(cuda_run_in_float(&forward));
  inputs[count] = results[0], inputs[count + 1] = results[1];
  backward.attributes = &with_results;
  backward.input_count += 2;
  cuda_matches_cpu_in_float(&backward, 4 * tolerance_of(s));
  for (int i = 0; i < count; i++) operand_free(&inputs[i]);
  for (int i = 0; i < 3; i++) operand_free(&outputs[i]);
  for (int i = 0; i < 2; i++) operand_free(&results[i]);
}

static const int dtypes[] = { FLOW_FLOAT32, FLOW_FLOAT16, FLOW_BFLOAT16 };
enum { DTYPE_COUNT = sizeof dtypes / sizeof dtypes[0] };

/* Each access takes longer: some cases of many will do. */
static int is_watched(void)
{
  const char *text = getenv("FLOW_EMULATED_BOUNDS");
  return text && strcmp(text, "1") == 0;
}

/* Fewer rows and keys than a tile has, more, and whole tiles; columns of each kernel, and odd ones. */
static void every_size_and_mask(void **state)
{
  (void)state;
  static const struct {
    int rows, keys, columns, of_value;
  } sizes[] = { { 1, 1, 16, 16 },      { 5, 70, 64, 64 }, { 150, 33, 24, 40 }, { 64, 64, 128, 96 },
                { 37, 129, 130, 256 }, { 131, 67, 1, 3 }, { 20, 65, 33, 200 } };
  for (size_t d = 0; d < DTYPE_COUNT; d++) {
    for (size_t i = is_watched() ? d : 0; i < sizeof sizes / sizeof sizes[0]; i += is_watched() ? 5 : 1) {
      setting s = { dtypes[d], sizes[i].rows, sizes[i].keys, sizes[i].columns, sizes[i].of_value, .left_out = -1e9 };
      s.exact = dtypes[d] == FLOW_FLOAT32 && i != 3;
      s.swapped = (int)(i * 37 + d * 11) & 127;
      for (int mask = 0; mask < MASK_KINDS; mask++) {
        s.mask = (mask_kind)mask;
        if (mask == (int)(i + d) % MASK_KINDS || mask == (int)(i + 3 + d) % MASK_KINDS) compare(&s);
      }
    }
  }
}

/* What masked scores are replaced with may weigh something: tiles without anything to see count then, too. */
static void a_mask_may_put_any_score_in_place(void **state)
{
  (void)state;
  static const double left_out[] = { -2, 0, -90, -INFINITY };
  for (size_t i = 0; i < sizeof left_out / sizeof left_out[0]; i++) {
    const setting s = { FLOW_FLOAT32, 20, 300, 16, 16, .exact = 1, .mask = ENDS, .left_out = left_out[i] };
    compare(&s);
  }
}

static void all_that_a_row_sees_may_be_in_one_tile(void **state)
{
  (void)state;
  for (size_t d = 0; d < DTYPE_COUNT; d++) {
    const setting s = { dtypes[d], 260, 270, 32, 32, .exact = 1, .mask = d == 0 ? CAUSAL : BAND, .left_out = -1e9 };
    compare(&s);
  }
}

/* Nothing to add up is 0; what nobody reads is not written. */
static void what_is_empty_or_not_read(void **state)
{
  (void)state;
  const flow_attributes attributes = { .matmul = { 0 } };
  flow_operand inputs[4] = { operand(FLOW_FLOAT32, 3, 2, 5, 8), operand(FLOW_FLOAT32, 3, 2, 5, 16), operand(FLOW_FLOAT32, 3, 2, 7, 16),
                             operand(FLOW_FLOAT32, 3, 2, 7, 8) };
  for (int i = 0; i < 4; i++) fill(&inputs[i], 1);
  for (int read = 0; read < 3; read++) {
    flow_operand outputs[3] = { { .dtype = FLOW_FLOAT32, .rank = 3, .shape = { 2, 7, 8 } },
                                { .dtype = FLOW_FLOAT32, .rank = 3, .shape = { 2, 5, 16 } },
                                { .dtype = FLOW_FLOAT32, .rank = 3, .shape = { 2, 7, 16 } } };
    outputs[read] = read == 0 ? operand(FLOW_FLOAT32, 3, 2, 7, 8) : operand(FLOW_FLOAT32, 3, 2, read == 1 ? 5 : 7, 16);
    flow_call call = call_of(FLOW_OP_attention_gradient, &attributes, inputs, 4, outputs, 3);
    call.exact = 1;
    cuda_matches_cpu_in_float(&call, 1e-5);
    operand_free(&outputs[read]);
  }
  for (int i = 0; i < 4; i++) operand_free(&inputs[i]);
}

/* The bits of a row do not depend on the tiles that a mask lets the kernel leave out, nor on other rows. */
static void a_row_has_the_same_bits_beside_others(void **state)
{
  (void)state;
  enum { ROWS = 140, KEYS = 200, COLUMNS = 32 };
  const flow_attributes attributes = { .matmul = { 0 } };
  flow_operand inputs[5] = { operand(FLOW_BFLOAT16, 3, 1, ROWS, COLUMNS), operand(FLOW_BFLOAT16, 3, 1, KEYS, COLUMNS),
                             operand(FLOW_BFLOAT16, 3, 1, KEYS, COLUMNS), operand(FLOW_BOOL, 2, ROWS, KEYS), operand(FLOW_FLOAT32, 0) };
  flow_operand results[2] = { operand(FLOW_BFLOAT16, 3, 1, ROWS, COLUMNS), { .dtype = FLOW_FLOAT32, .rank = 3, .shape = { 1, ROWS, 2 } } };
  for (int i = 0; i < 3; i++) fill(&inputs[i], 1);
  set(&inputs[4], 0, -1e9);
  unsigned char *expected = NULL;
  for (int blind = 0; blind < 2; blind++) { /* a row that sees nothing makes its block take all tiles */
    for (int64_t i = 0; i < ROWS * KEYS; i++) set(&inputs[3], i, sees(BAND, 0, i / KEYS, i % KEYS, KEYS) && !(blind && i / KEYS == 77));
    flow_call call = call_of(FLOW_OP_attention, &attributes, inputs, 5, results, 2);
    cuda_ok(cuda_run(cuda_device()->device.kernels[call.op], &call, 0));
    cuda_bytes found = cuda_save(&call, 0);
    if (blind) {
      memset(expected + 77 * COLUMNS * 2, 0, COLUMNS * 2), memset(found.data + 77 * COLUMNS * 2, 0, COLUMNS * 2);
      assert_memory_equal(expected, found.data, found.count);
      free(found.data);
    } else {
      expected = found.data;
    }
  }
  free(expected);
  for (int i = 0; i < 5; i++) operand_free(&inputs[i]);
  operand_free(&results[0]);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(every_size_and_mask), cmocka_unit_test(a_mask_may_put_any_score_in_place),
                                      cmocka_unit_test(all_that_a_row_sees_may_be_in_one_tile), cmocka_unit_test(what_is_empty_or_not_read),
                                      cmocka_unit_test(a_row_has_the_same_bits_beside_others) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
