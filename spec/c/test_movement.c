/* Ops that move elements, against position-by-position references: every element size, layout and build. */
#include "kernel_arrays.h"

/* One dtype of each element size, and bool. */
static const int dtypes[] = { FLOW_INT8, FLOW_BFLOAT16, FLOW_FLOAT32, FLOW_INT64, FLOW_BOOL };
enum { DTYPE_COUNT = sizeof dtypes / sizeof dtypes[0] };

/* Numbers that name their place: element i is i modulo a prime below 128 (bool: modulo 2), so a wrong source shows. */
static void number_elements(array *a, int64_t from)
{
  int64_t n = size_of(a->operand.rank, a->operand.shape), modulus = a->operand.dtype == FLOW_BOOL ? 2 : 113;
  for (int64_t i = 0; i < n; i++) write_double(a->operand.dtype, element(&a->operand, i), (double)((i + from) % modulus));
}

static int same_bits(int dtype, const void *a, const void *b) { return memcmp(a, b, (size_t)flow_dtype_size(dtype)) == 0; }

static void start_afresh(array *out)
{
  assert_guards(out);
  memset(out->block + GUARD, GUARD_BYTE, out->bytes);
}

typedef struct expectation { const array *in; array *out; } expectation;

/* ---- copy, broadcast_to, stop_gradient, reshape -------------------------------------------------------------------------- */

static void check_copy(const flow_call *call, void *argument)
{
  expectation *e = argument;
  const flow_operand *out = &e->out->operand;
  (void)call;
  for (int64_t i = 0; i < size_of(out->rank, out->shape); i++)
    assert_true(same_bits(out->dtype, element(out, i), broadcast_element(&e->in->operand, out->rank, out->shape, i)));
  start_afresh(e->out);
}

static void copies_keep_every_bit_and_broadcast(void **state)
{
  (void)state;
  static const struct { int rank[2]; int64_t shape[2][5]; } kinds[] = {
    { { 0, 0 }, { { 0 }, { 0 } } },           { { 1, 1 }, { { 100 }, { 100 } } },       { { 2, 2 }, { { 37, 41 }, { 37, 41 } } },
    { { 2, 2 }, { { 0, 3 }, { 0, 3 } } },     { { 0, 2 }, { { 0 }, { 5, 70 } } },       { { 1, 3 }, { { 3 }, { 4, 6, 3 } } },
    { { 3, 3 }, { { 5, 1, 9 }, { 5, 7, 9 } } }, { { 2, 3 }, { { 7, 1 }, { 5, 7, 40 } } },
    { { 5, 5 }, { { 2, 3, 4, 2, 3 }, { 2, 3, 4, 2, 3 } } },
    { { 1, 2 }, { { 1 }, { 0, 4 } } },
  };
  static const int ops[] = { FLOW_OP_copy, FLOW_OP_stop_gradient, FLOW_OP_broadcast_to };
  for (size_t o = 0; o < 3; o++)
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
      for (int d = 0; d < DTYPE_COUNT; d++)
        for (int layout = 0; layout < LAYOUT_COUNT; layout++) {
          array in = array_new(dtypes[d], (layout_kind)layout, kinds[k].rank[0], kinds[k].shape[0]);
          array out = array_new(dtypes[d], CONTIGUOUS, kinds[k].rank[1], kinds[k].shape[1]);
          number_elements(&in, 1);
          flow_attributes attributes = { 0 };
          flow_call call = call_of(ops[o], &attributes, &in.operand, 1, &out.operand);
          run_everywhere(&call, check_copy, &(expectation){ .in = &in, .out = &out });
          array_free(&in);
          array_free(&out);
        }
}

static void check_reshaped(const flow_call *call, void *argument)
{
  expectation *e = argument;
  (void)call;
  assert_memory_equal(e->out->operand.data, e->in->operand.data, e->in->bytes);
  start_afresh(e->out);
}

static void a_reshape_that_cannot_alias_copies(void **state)
{
  (void)state;
  int64_t from[2] = { 6, 35 }, to[3] = { 7, 5, 6 };
  array in = array_new(FLOW_FLOAT32, CONTIGUOUS, 2, from), out = array_new(FLOW_FLOAT32, CONTIGUOUS, 3, to);
  number_elements(&in, 1);
  flow_attributes attributes = { 0 };
  flow_call call = call_of(FLOW_OP_reshape, &attributes, &in.operand, 1, &out.operand);
  run_everywhere(&call, check_reshaped, &(expectation){ .in = &in, .out = &out });
  array_free(&in);
  array_free(&out);
}

/* ---- transpose ---------------------------------------------------------------------------------------------------------------- */

static void check_transposed(const flow_call *call, void *argument)
{
  expectation *e = argument;
  const flow_operand *in = &e->in->operand, *out = &e->out->operand;
  for (int64_t i = 0; i < size_of(out->rank, out->shape); i++) {
    int64_t rest = i, offset = 0;
    for (int axis = out->rank - 1; axis >= 0; axis--) {
      offset += rest % out->shape[axis] * in->strides[call->attributes->transpose.axes[axis]];
      rest /= out->shape[axis];
    }
    assert_true(same_bits(out->dtype, element(out, i), (char *)in->data + offset * flow_dtype_size(in->dtype)));
  }
  start_afresh(e->out);
}

static void every_permutation_of_axes(void **state)
{
  (void)state;
  static const struct { int rank; int64_t shape[4]; } kinds[] = {
    { 0, { 0 } }, { 1, { 9 } }, { 2, { 67, 45 } }, { 2, { 3, 100 } }, { 3, { 5, 18, 35 } }, { 3, { 4, 0, 3 } },
    { 4, { 2, 9, 17, 3 } }, { 4, { 3, 4, 1, 20 } },
  };
  for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
    int rank = kinds[k].rank, permutations = 1;
    for (int i = 2; i <= rank; i++) permutations *= i;
    for (int p = 0; p < permutations; p++) {
      flow_attributes attributes = { .transpose = { .rank = rank } };
      int64_t shape[4];
      int left[4] = { 0, 1, 2, 3 }, code = p;
      for (int i = 0; i < rank; i++) {   /* the digits of p in the factorial system choose among the axes left over */
        int choice = code % (rank - i);
        code /= rank - i;
        attributes.transpose.axes[i] = left[choice];
        shape[i] = kinds[k].shape[left[choice]];
        memmove(left + choice, left + choice + 1, (size_t)(3 - choice) * sizeof left[0]);
      }
      for (int d = 0; d < DTYPE_COUNT; d++)
        for (int layout = 0; layout < LAYOUT_COUNT; layout++) {
          array in = array_new(dtypes[d], (layout_kind)layout, rank, kinds[k].shape), out = array_new(dtypes[d], CONTIGUOUS, rank, shape);
          number_elements(&in, 1);
          flow_call call = call_of(FLOW_OP_transpose, &attributes, &in.operand, 1, &out.operand);
          run_everywhere(&call, check_transposed, &(expectation){ .in = &in, .out = &out });
          array_free(&in);
          array_free(&out);
        }
    }
  }
}

static void a_large_transpose_has_parts_that_make_up_the_whole(void **state)
{
  (void)state;
  int64_t shape[2] = { 700, 501 }, transposed[2] = { 501, 700 };
  flow_attributes attributes = { .transpose = { .rank = 2, .axes = { 1, 0 } } };
  array in = array_new(FLOW_FLOAT32, CONTIGUOUS, 2, shape), out = array_new(FLOW_FLOAT32, CONTIGUOUS, 2, transposed);
  number_elements(&in, 1);
  flow_call call = call_of(FLOW_OP_transpose, &attributes, &in.operand, 1, &out.operand);
  assert_true(flow_cpu_device()->kernels[FLOW_OP_transpose]->parts(&call, 0) > 1);
  run_everywhere(&call, check_transposed, &(expectation){ .in = &in, .out = &out });
  array_free(&in);
  array_free(&out);
}

/* ---- slice, slice_gradient ----------------------------------------------------------------------------------------------------- */

typedef struct cut { int rank; int64_t shape[3], begin[3], step[3], taken[3]; } cut;
static const cut cuts[] = {
  { 1, { 50 }, { 3 }, { 1 }, { 20 } },
  { 1, { 50 }, { 1 }, { 7 }, { 7 } },
  { 2, { 9, 40 }, { 2, 0 }, { 3, 1 }, { 3, 40 } },
  { 2, { 9, 40 }, { 0, 5 }, { 1, 2 }, { 9, 17 } },
  { 3, { 4, 5, 6 }, { 1, 1, 1 }, { 2, 3, 1 }, { 2, 2, 4 } },
  { 3, { 4, 5, 6 }, { 0, 0, 0 }, { 1, 1, 1 }, { 4, 5, 6 } },
  { 2, { 6, 3 }, { 6, 0 }, { 1, 1 }, { 0, 3 } },
  { 0, { 0 }, { 0 }, { 0 }, { 0 } },
};

static void *sliced_element(const flow_attributes *attributes, const flow_operand *from, const flow_operand *taken, int64_t i)
{
  int64_t offset = 0;
  for (int axis = taken->rank - 1; axis >= 0; axis--) {
    offset += (attributes->slice.begin[axis] + i % taken->shape[axis] * attributes->slice.step[axis]) * from->strides[axis];
    i /= taken->shape[axis];
  }
  return (char *)from->data + offset * flow_dtype_size(from->dtype);
}

static void check_slice(const flow_call *call, void *argument)
{
  expectation *e = argument;
  const flow_operand *out = &e->out->operand;
  for (int64_t i = 0; i < size_of(out->rank, out->shape); i++)
    assert_true(same_bits(out->dtype, element(out, i), sliced_element(call->attributes, &e->in->operand, out, i)));
  start_afresh(e->out);
}

/* Every element of g is where the slice took it; whatever else is there is zero. */
static void check_slice_gradient(const flow_call *call, void *argument)
{
  expectation *e = argument;
  const flow_operand *g = &e->in->operand, *out = &e->out->operand;
  int64_t taken = size_of(g->rank, g->shape), all = size_of(out->rank, out->shape), zeros = 0;
  for (int64_t i = 0; i < taken; i++) {
    void *found = sliced_element(call->attributes, out, g, i);
    assert_true(same_bits(g->dtype, found, element(g, i)));
    memset(found, 0, (size_t)flow_dtype_size(g->dtype));
  }
  for (int64_t i = 0; i < all; i++) zeros += read_double(out->dtype, element(out, i)) == 0;
  assert_int_equal(zeros, all);
  start_afresh(e->out);
}

static void slices_and_their_gradients(void **state)
{
  (void)state;
  for (size_t k = 0; k < sizeof cuts / sizeof cuts[0]; k++)
    for (int d = 0; d < DTYPE_COUNT; d++)
      for (int layout = 0; layout < LAYOUT_COUNT; layout++) {
        const cut *c = &cuts[k];
        flow_attributes attributes = { .slice = { .rank = c->rank } };
        for (int i = 0; i < c->rank; i++) {
          attributes.slice.begin[i] = c->begin[i];
          attributes.slice.step[i] = c->step[i];
          attributes.slice.end[i] = i % 2 ? INT64_MAX : c->begin[i] + (c->taken[i] - 1) * c->step[i] + 1;
          attributes.slice.dims[i] = c->shape[i];
        }
        array whole = array_new(dtypes[d], (layout_kind)layout, c->rank, c->shape);
        array taken = array_new(dtypes[d], CONTIGUOUS, c->rank, c->taken);
        number_elements(&whole, 1);
        flow_call call = call_of(FLOW_OP_slice, &attributes, &whole.operand, 1, &taken.operand);
        run_everywhere(&call, check_slice, &(expectation){ .in = &whole, .out = &taken });
        array_free(&whole);
        whole = array_new(dtypes[d], CONTIGUOUS, c->rank, c->shape);
        number_elements(&taken, 1);
        flow_call back = call_of(FLOW_OP_slice_gradient, &attributes, &taken.operand, 1, &whole.operand);
        run_everywhere(&back, check_slice_gradient, &(expectation){ .in = &taken, .out = &whole });
        array_free(&whole);
        array_free(&taken);
      }
}

/* ---- concat, pack ------------------------------------------------------------------------------------------------------------------ */

static void check_joined(const flow_call *call, void *argument)
{
  expectation *e = argument;
  const flow_operand *out = &e->out->operand;
  int axis = call->attributes->axis.axis < 0 ? call->attributes->axis.axis + out->rank : call->attributes->axis.axis;
  int64_t inner = 1;
  for (int i = axis + 1; i < out->rank; i++) inner *= out->shape[i];
  for (int64_t i = 0; i < size_of(out->rank, out->shape); i++) {
    int64_t column = i % inner, along = i / inner % out->shape[axis], outer = i / inner / out->shape[axis];
    int k = 0;
    while (along >= e->in[k].operand.shape[axis]) along -= e->in[k++].operand.shape[axis];
    const flow_operand *in = &e->in[k].operand;
    assert_true(same_bits(out->dtype, element(out, i), element(in, (outer * in->shape[axis] + along) * inner + column)));
  }
  start_afresh(e->out);
}

static void concat_joins_along_any_axis(void **state)
{
  (void)state;
  static const int64_t lengths[] = { 3, 0, 1, 40 };
  for (int rank = 1; rank <= 3; rank++)
    for (int axis = -rank; axis < rank; axis++)
      for (int d = 0; d < DTYPE_COUNT; d++) {
        int at = axis < 0 ? axis + rank : axis;
        array inputs[4];
        flow_operand operands[4];
        int64_t shape[3] = { 4, 5, 6 };
        for (int i = 0; i < 4; i++) {
          shape[at] = lengths[i];
          inputs[i] = array_new(dtypes[d], CONTIGUOUS, rank, shape);
          number_elements(&inputs[i], 31 * i);
          operands[i] = inputs[i].operand;
        }
        shape[at] = 44;
        array out = array_new(dtypes[d], CONTIGUOUS, rank, shape);
        flow_attributes attributes = { .axis = { axis } };
        flow_call call = call_of(FLOW_OP_concat, &attributes, operands, 4, &out.operand);
        run_everywhere(&call, check_joined, &(expectation){ .in = inputs, .out = &out });
        for (int i = 0; i < 4; i++) array_free(&inputs[i]);
        array_free(&out);
      }
}

/* A single row is cut into pieces along its next axis, as the engine cuts it where there are fewer rows than threads. */
static void concat_of_many_inputs_in_pieces(void **state)
{
  (void)state;
  enum { MOST = 40 };
  static const int counts[] = { 2, FLOW_MAX_OPERANDS, FLOW_MAX_OPERANDS + 1, MOST };
  for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++) {
    array inputs[MOST], whole = array_new(FLOW_FLOAT32, CONTIGUOUS, 3, (int64_t[]){ 1, 64, 64 * counts[k] });
    array pieced = array_new(FLOW_FLOAT32, CONTIGUOUS, 3, whole.operand.shape);
    flow_operand operands[MOST];
    flow_attributes attributes = { .axis = { .axis = 2 } };
    for (int i = 0; i < counts[k]; i++) {
      inputs[i] = array_new(FLOW_FLOAT32, CONTIGUOUS, 3, (int64_t[]){ 1, 64, 64 });
      number_elements(&inputs[i], 31 * i);
      operands[i] = inputs[i].operand;
    }
    for (int isa = 0; isa < ISA_COUNT; isa++) {
      const flow_device *device = flow_cpu_device_for(isa_names[isa]);
      for (const flow_kernel *kernel = device ? device->kernels[FLOW_OP_concat] : NULL; kernel && kernel->run; kernel++) {
        flow_call call = call_of(FLOW_OP_concat, &attributes, operands, counts[k], &whole.operand);
        if (!kernel->pieces || (kernel->supports && !kernel->supports(&call))) continue;
        assert_int_equal(kernel->run(&call, 0, 0, 1), FLOW_OK);
        call.outputs = &pieced.operand;
        for (int64_t piece = 0, pieces = kernel->pieces(&call); piece < pieces; piece++)
          assert_int_equal(kernel->run_piece(&call, piece), FLOW_OK);
        assert_memory_equal(whole.operand.data, pieced.operand.data, whole.bytes);
        start_afresh(&whole);
        start_afresh(&pieced);
      }
    }
    for (int i = 0; i < counts[k]; i++) array_free(&inputs[i]);
    array_free(&whole);
    array_free(&pieced);
  }
}

static void check_packed(const flow_call *call, void *argument)
{
  expectation *e = argument;
  const char *place = e->out->operand.data;
  for (int i = 0; i < call->input_count; i++) {
    assert_memory_equal(place, e->in[i].operand.data, e->in[i].bytes);
    place += e->in[i].bytes;
  }
  start_afresh(e->out);
}

static void pack_lays_inputs_one_behind_the_other(void **state)
{
  (void)state;
  static const struct { int rank; int64_t shape[2]; } kinds[] = {
    { 2, { 3, 5 } }, { 0, { 0 } }, { 1, { 400000 } }, { 2, { 0, 7 } }, { 1, { 17 } }, { 2, { 500, 300 } },
  };
  array inputs[6];
  flow_operand operands[6];
  int64_t total[1] = { 0 };
  for (int i = 0; i < 6; i++) {
    inputs[i] = array_new(FLOW_FLOAT32, CONTIGUOUS, kinds[i].rank, kinds[i].shape);
    number_elements(&inputs[i], i);
    operands[i] = inputs[i].operand;
    total[0] += size_of(kinds[i].rank, kinds[i].shape);
  }
  array out = array_new(FLOW_FLOAT32, CONTIGUOUS, 1, total);
  flow_attributes attributes = { 0 };
  flow_call call = call_of(FLOW_OP_pack, &attributes, operands, 6, &out.operand);
  assert_true(flow_cpu_device()->kernels[FLOW_OP_pack]->parts(&call, 0) > 1);
  run_everywhere(&call, check_packed, &(expectation){ .in = inputs, .out = &out });
  for (int i = 0; i < 6; i++) array_free(&inputs[i]);
  array_free(&out);
}

static void check_untouched(const flow_call *call, void *argument)
{
  assert_memory_equal(call->outputs[0].data, argument, 24);
}

static void pack_leaves_what_lies_in_place(void **state)
{
  (void)state;
  float arena[6] = { 1, 2, 3, 4, 5, 6 }, expected[6] = { 1, 2, 3, 4, 5, 6 };
  flow_operand inputs[2] = { { .data = arena, .dtype = FLOW_FLOAT32, .rank = 1, .shape = { 2 }, .strides = { 1 } },
                             { .data = arena + 2, .dtype = FLOW_FLOAT32, .rank = 2, .shape = { 2, 2 }, .strides = { 2, 1 } } };
  flow_operand out = { .data = arena, .dtype = FLOW_FLOAT32, .rank = 1, .shape = { 6 }, .strides = { 1 } };
  flow_attributes attributes = { 0 };
  flow_call call = call_of(FLOW_OP_pack, &attributes, inputs, 2, &out);
  run_everywhere(&call, check_untouched, expected);
}

/* ---- fill, element_count ------------------------------------------------------------------------------------------------------------ */

static void check_filled(const flow_call *call, void *argument)
{
  array *out = argument;
  double value = call->attributes->fill.value;
  int dtype = out->operand.dtype;
  if (dtype == FLOW_BOOL) value = value != 0;
  else if (dtype == FLOW_UINT8) value = value < 0 ? 0 : value;
  value = flow_dtype_is_float(dtype) ? rounded(dtype, value) : trunc(value);
  for (int64_t i = 0; i < out->operand.shape[0]; i++) assert_true(read_double(dtype, element(&out->operand, i)) == value);
  start_afresh(out);
}

static void fill_writes_one_value_of_any_dtype(void **state)
{
  (void)state;
  static const double values[] = { 0, 1.5, -3.25, 100 };
  static const int64_t sizes[] = { 0, 1, 77, 300000 };
  for (int dtype = 0; dtype < FLOW_DTYPE_COUNT; dtype++)
    for (size_t v = 0; v < 4; v++)
      for (size_t s = 0; s < 4; s++) {
        int64_t shape[1] = { sizes[s] };
        array out = array_new(dtype, CONTIGUOUS, 1, shape);
        flow_attributes attributes = { .fill = { .value = values[v], .rank = 1, .dtype = dtype, .dims = { sizes[s] } } };
        flow_call call = { .op = FLOW_OP_fill, .attributes = &attributes, .output_count = 1, .outputs = &out.operand };
        run_everywhere(&call, check_filled, &out);
        array_free(&out);
      }
}

static void check_count(const flow_call *call, void *argument)
{
  assert_true(*(float *)call->outputs[0].data == *(float *)argument);
}

static void element_count_reads_shapes_only(void **state)
{
  (void)state;
  static const struct { int count; int axes[2]; float expected; } kinds[] = {
    { 0, { 0 }, 30 }, { 1, { 0 }, 2 }, { 2, { -1, 0 }, 10 }, { 1, { 1 }, 3 },
  };
  float result;
  for (size_t k = 0; k < 4; k++) {
    flow_operand in = { .dtype = FLOW_FLOAT16, .rank = 3, .shape = { 2, 3, 5 } }, out = { .data = &result, .dtype = FLOW_FLOAT32 };
    flow_attributes attributes = { .reduce = { .count = kinds[k].count, .axes = { kinds[k].axes[0], kinds[k].axes[1] } } };
    flow_call call = call_of(FLOW_OP_element_count, &attributes, &in, 1, &out);
    float expected = kinds[k].expected;
    run_everywhere(&call, check_count, &expected);
  }
}

static void finish_without_output(const flow_call *call, void *argument)
{
  (void)call;
  (void)argument;
}

/* An output that nothing reads has no memory (kernels.h); indices are checked all the same, the largest number included. */
static void results_that_nothing_reads_are_skipped(void **state)
{
  (void)state;
  static const int ops[] = { FLOW_OP_gather, FLOW_OP_take_along, FLOW_OP_take_along_gradient, FLOW_OP_gather_gradient };
  float table[3] = { 1, 2, 3 };
  int64_t positions[3] = { 2, 0, 1 };
  for (size_t k = 0; k < sizeof ops / sizeof ops[0]; k++) {
    flow_operand in[2] = { { .data = table, .dtype = FLOW_FLOAT32, .rank = 1, .shape = { 3 }, .strides = { 1 } },
                           { .data = positions, .dtype = FLOW_INT64, .rank = 1, .shape = { 3 }, .strides = { 1 } } };
    flow_operand out = { .dtype = FLOW_FLOAT32, .rank = 1, .shape = { 3 }, .strides = { 1 } };
    flow_attributes attributes = { 0 };
    flow_call call = call_of(ops[k], &attributes, in, 2, &out);
    run_everywhere(&call, finish_without_output, NULL);
    for (int wrong = 0; wrong < 2; wrong++) {
      positions[1] = wrong ? INT64_MAX : 3;
      for (int isa = 0; isa < ISA_COUNT; isa++) {
        const flow_device *device = flow_cpu_device_for(isa_names[isa]);
        if (device) assert_int_equal(run_kernel(&device->kernels[ops[k]][0], &call), FLOW_INVALID_ARGUMENT);
      }
    }
    positions[1] = 0;
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(copies_keep_every_bit_and_broadcast), cmocka_unit_test(a_reshape_that_cannot_alias_copies),
    cmocka_unit_test(every_permutation_of_axes),           cmocka_unit_test(a_large_transpose_has_parts_that_make_up_the_whole),
    cmocka_unit_test(slices_and_their_gradients),          cmocka_unit_test(concat_joins_along_any_axis),
    cmocka_unit_test(concat_of_many_inputs_in_pieces),     cmocka_unit_test(pack_lays_inputs_one_behind_the_other),
    cmocka_unit_test(pack_leaves_what_lies_in_place),      cmocka_unit_test(fill_writes_one_value_of_any_dtype),
    cmocka_unit_test(element_count_reads_shapes_only),     cmocka_unit_test(results_that_nothing_reads_are_skipped),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
