/* test_cuda_library.c: convolutions, products and their gradients as cuDNN and cuBLASLt compute them, on the emulated device, where plain
 * loops stand in for the libraries themselves: layouts, copies, masks, pooling, sums of biases and the memory between the steps. Operands
 * are small whole numbers, so that results are equal and ties are frequent. */
#include "cuda_runner.h"

typedef struct convolution_case {
  int n, h, w, in, out, kernel[2], stride[2], dilation[2], padding[4], groups, relu, bias, pool[2], pool_stride[2];
} convolution_case;

static const convolution_case cases[] = {
  { 2, 7, 6, 8, 16, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1, 1, 1 }, 1, 1, 1, { 0 }, { 0 } },
  { 2, 7, 6, 3, 5, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1, 1, 1 }, 1, 1, 1, { 2, 2 }, { 0 } },       /* widened; one channel a thread */
  { 2, 8, 8, 3, 16, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1, 1, 1 }, 1, 1, 1, { 2, 2 }, { 2, 2 } },
  { 1, 9, 8, 4, 8, { 3, 2 }, { 2, 1 }, { 1, 2 }, { 0, 1, 2, 0 }, 1, 0, 0, { 0 }, { 0 } },          /* padding of one side */
  { 2, 9, 9, 8, 8, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 0, 0, 0, 0 }, 1, 1, 1, { 3, 3 }, { 2, 2 } },    /* windows overlap */
  { 2, 9, 9, 8, 8, { 2, 2 }, { 1, 1 }, { 1, 1 }, { 0, 0, 0, 0 }, 1, 0, 0, { 2, 3 }, { 3, 2 } },    /* and have gaps */
  { 2, 5, 5, 8, 8, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1, 1, 1 }, 8, 1, 1, { 0 }, { 0 } },          /* depthwise */
  { 2, 5, 5, 6, 12, { 3, 3 }, { 2, 2 }, { 1, 1 }, { 0, 1, 0, 1 }, 3, 1, 0, { 2, 2 }, { 0 } },
  { 3, 4, 5, 8, 40, { 1, 1 }, { 1, 1 }, { 1, 1 }, { 0, 0, 0, 0 }, 1, 1, 1, { 0 }, { 0 } },
  { 3, 4, 5, 20, 7, { 1, 1 }, { 1, 1 }, { 1, 1 }, { 0, 0, 0, 0 }, 1, 0, 0, { 0 }, { 0 } },
  { 70, 6, 6, 1, 33, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 0, 0, 0, 0 }, 1, 0, 1, { 0 }, { 0 } },        /* several slices of db */
  { 2, 13, 17, 3, 8, { 1, 1 }, { 1, 1 }, { 1, 1 }, { 0, 0, 0, 0 }, 1, 0, 0, { 0 }, { 0 } },        /* tiles of an image: library_steps.h */
  { 2, 9, 16, 201, 4, { 1, 1 }, { 1, 1 }, { 1, 1 }, { 0, 0, 0, 0 }, 1, 0, 0, { 0 }, { 0 } },
  { 2, 31, 9, 1, 16, { 2, 2 }, { 1, 1 }, { 1, 1 }, { 0, 0, 0, 0 }, 1, 1, 1, { 2, 2 }, { 0 } },
};
enum { CASE_COUNT = sizeof cases / sizeof cases[0] };

typedef struct operands { flow_attributes attributes; flow_operand x, w, b, y, index, g, dx, dw, db; } operands;

static int windows(int size, int before, int after, int kernel, int dilation, int stride)
{
  return (size + before + after - (kernel - 1) * dilation - 1) / stride + 1;
}

static void fill_whole(flow_operand *x, int most)
{
  int least = x->dtype == FLOW_UINT8 ? 0 : -most / 2;
  for (int64_t i = 0; i < operand_size(x); i++) set(x, i, least + floor((most + 1) * fabs(next_number())));
}

static operands make(const convolution_case *c, int x_dtype, int dtype)
{
  operands o = { .attributes = { .convolution = { .groups = c->groups, .activation = c->relu ? FLOW_RELU : FLOW_LINEAR, .has_bias = c->bias,
                                                  .input_size = { c->h, c->w } } } };
  int size[2] = { c->h, c->w };
  for (int i = 0; i < 2; i++) {
    o.attributes.convolution.stride[i] = c->stride[i];
    o.attributes.convolution.dilation[i] = c->dilation[i];
    o.attributes.convolution.pool[i] = c->pool[i];
    o.attributes.convolution.pool_stride[i] = c->pool_stride[i];
    size[i] = windows(size[i], c->padding[2 * i], c->padding[2 * i + 1], c->kernel[i], c->dilation[i], c->stride[i]);
    if (c->pool[0]) size[i] = windows(size[i], 0, 0, c->pool[i], 1, c->pool_stride[i] ? c->pool_stride[i] : c->pool[i]);
  }
  for (int i = 0; i < 4; i++) o.attributes.convolution.padding[i] = c->padding[i];
  if (x_dtype == FLOW_UINT8) o.attributes.convolution.input_scale = 0.5;
  o.x = operand(x_dtype, 4, c->n, c->h, c->w, c->in);
  o.w = operand(dtype, 4, c->kernel[0], c->kernel[1], c->in / c->groups, c->out);
  o.b = operand(dtype, 1, c->out);
  o.y = operand(dtype, 4, c->n, size[0], size[1], c->out);
  o.index = c->pool[0] ? operand(FLOW_UINT8, 4, c->n, size[0], size[1], c->out) : operand(FLOW_UINT8, 1, 0);
  o.g = operand(dtype, 4, c->n, size[0], size[1], c->out);
  o.dx = operand(dtype, 4, c->n, c->h, c->w, c->in);
  o.dw = operand(dtype, 4, c->kernel[0], c->kernel[1], c->in / c->groups, c->out);
  o.db = operand(dtype, 1, c->out);
  fill_whole(&o.x, 4);
  fill_whole(&o.w, 2);
  fill_whole(&o.b, 4);
  fill_whole(&o.g, 4);
  return o;
}

static void release(operands *o)
{
  flow_operand *all[] = { &o->x, &o->w, &o->b, &o->y, &o->index, &o->g, &o->dx, &o->dw, &o->db };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) operand_free(all[i]);
}

static const flow_kernel *library_kernel(int op, const char *variant)
{
  for_each_cuda_kernel(kernel, op)
    if (strcmp(kernel->variant, variant) == 0) return kernel;
  fail_msg("%s has no variant %s", flow_op(op)->name, variant);
  return NULL;
}

/* The calls of a case. */
static flow_call forward_of(operands *o, flow_operand inputs[3], flow_operand outputs[2])
{
  inputs[0] = o->x, inputs[1] = o->w, inputs[2] = o->b;
  outputs[0] = o->y, outputs[1] = o->index;
  return call_of(FLOW_OP_convolution, &o->attributes, inputs, o->attributes.convolution.has_bias ? 3 : 2, outputs, 2);
}

static flow_call gradient_of(operands *o, flow_operand inputs[5], flow_operand outputs[3])
{
  inputs[0] = o->g, inputs[1] = o->x, inputs[2] = o->w, inputs[3] = o->y, inputs[4] = o->index;
  outputs[0] = o->dx, outputs[1] = o->dw, outputs[2] = o->db;
  return call_of(FLOW_OP_convolution_gradient, &o->attributes, inputs, 5, outputs, 3);
}

static void convolutions_are_the_cpu_s(void **state)
{
  (void)state;
  for (int i = 0; i < CASE_COUNT; i++) {
    for (int bytes = 0; bytes < 2; bytes++) {
      operands o = make(&cases[i], bytes ? FLOW_UINT8 : FLOW_FLOAT32, FLOW_FLOAT32);
      flow_operand inputs[5], outputs[3];
      flow_call call = forward_of(&o, inputs, outputs);
      assert_true(library_kernel(FLOW_OP_convolution, "cudnn")->supports(&call));
      cuda_matches_cpu(&call, 0, 0);
      o.attributes.convolution.input_scale = 0;
      call = gradient_of(&o, inputs, outputs);
      assert_true(library_kernel(FLOW_OP_convolution_gradient, "cudnn")->supports(&call));
      cuda_matches_cpu(&call, 0, 0);
      release(&o);
    }
  }
}

/* Images are copied from wherever they begin. */
static void images_begin_anywhere(void **state)
{
  (void)state;
  for (int i = 0; i < 4 * CASE_COUNT; i++) {
    int bytes = i % 2;
    operands o = make(&cases[i / 4], bytes ? FLOW_UINT8 : FLOW_FLOAT32, FLOW_FLOAT32);
    flow_operand inputs[5], outputs[3];
    flow_call call = forward_of(&o, inputs, outputs);
    cuda_shift = (size_t)(i % 4 > 1 ? 3 : 1) * (bytes ? 1 : sizeof(float));
    cuda_shifted = 0;
    cuda_matches_cpu(&call, 0, 0);
    o.attributes.convolution.input_scale = 0;
    call = gradient_of(&o, inputs, outputs);
    cuda_shifted = 1;
    cuda_matches_cpu(&call, 0, 0);
    cuda_shift = 0;
    cuda_shifted = -1;
    release(&o);
  }
}

/* The same, stopped by the relu before, and with something added before that: whatever of it the library has an engine for. */
static void gradients_stop_at_the_relu_before(void **state)
{
  (void)state;
  for (int i = 0; i < 8 * CASE_COUNT; i++) {
    operands o = make(&cases[i / 8], FLOW_FLOAT32, FLOW_FLOAT32), like = make(&cases[i / 8], FLOW_FLOAT32, FLOW_FLOAT32);
    flow_operand inputs[6], outputs[4], sums = operand(FLOW_FLOAT32, 1, cases[i / 8].in);
    flow_call call = forward_of(&o, inputs, outputs);
    cuda_ok(run_kernel(cuda_plain_kernel(call.op), &call, ALL_AT_ONCE));
    call = gradient_of(&o, inputs, outputs);
    call.op = FLOW_OP_convolution_gradient_relu;
    call.output_count = 4;
    call.exact = i % 2;
    inputs[5] = like.x;
    call.input_count = i % 8 > 3 ? 6 : 5;
    outputs[3] = sums;
    if (i % 4 > 1) {
      outputs[3].data = NULL;
      outputs[3].unused = 1;
    }
    assert_true(library_kernel(call.op, "cudnn")->supports(&call));
    cuda_matches_cpu(&call, 0, 0);
    operand_free(&sums);
    release(&o);
    release(&like);
  }
}

/* What nobody reads is not computed: neither its steps nor their memory. */
static void unused_results_are_left_alone(void **state)
{
  (void)state;
  for (int i = 0; i < 3; i++) {
    operands o = make(&cases[2], FLOW_FLOAT32, FLOW_FLOAT32);
    flow_operand inputs[5], outputs[3];
    flow_call call = forward_of(&o, inputs, outputs);
    const flow_kernel *gradient = library_kernel(FLOW_OP_convolution_gradient, "cudnn");
    outputs[1].data = NULL;
    outputs[1].unused = 1;
    cuda_matches_cpu(&call, 0, 0);
    call = forward_of(&o, inputs, outputs);
    cuda_ok(run_kernel(cuda_plain_kernel(call.op), &call, ALL_AT_ONCE));
    call = gradient_of(&o, inputs, outputs);
    size_t all = gradient->shared_bytes(&call);
    outputs[i].data = NULL;
    outputs[i].unused = 1;
    assert_true(gradient->shared_bytes(&call) < all);
    cuda_matches_cpu(&call, 0, 0);
    release(&o);
  }
}

static void nan_stays(void **state)
{
  (void)state;
  for (int i = 0; i < 3; i++) {
    operands o = make(&cases[i], FLOW_FLOAT32, FLOW_FLOAT32);
    flow_operand inputs[5], outputs[3];
    set(&o.x, operand_size(&o.x) / 3, NAN);
    flow_call call = forward_of(&o, inputs, outputs);
    cuda_matches_cpu(&call, 0, 0);
    release(&o);
  }
}

/* The CPU computes 16-bit floats in float32: the same operands in float32 are the oracle. */
static void copy_as(const flow_operand *from, flow_operand *to)
{
  for (int64_t i = 0; i < operand_size(from); i++) set(to, i, get(from, i));
}

static void compare_as(const flow_operand *found, const flow_operand *expected, double tolerance)
{
  for (int64_t i = 0; i < operand_size(found); i++)
    assert_near(get(found, i), get(expected, i), tolerance * (1 + fabs(get(expected, i))), "16 bits", i);
}

/* Sums of 16 bits, and of float32 beside 16 bits. */
static void stopped_in_sixteen_bits(operands *o, operands *h)
{
  flow_operand inputs[5], outputs[4], expected = operand(FLOW_FLOAT32, 1, (int)o->x.shape[3]);
  flow_call call = gradient_of(o, inputs, outputs);
  call.op = FLOW_OP_convolution_gradient_relu;
  call.output_count = 4;
  outputs[3] = expected;
  cuda_ok(run_kernel(cuda_plain_kernel(call.op), &call, ALL_AT_ONCE));
  for (int wide = 0; wide < 2; wide++) {
    flow_operand sums = operand(wide ? FLOW_FLOAT32 : h->x.dtype, 1, (int)o->x.shape[3]);
    call = gradient_of(h, inputs, outputs);
    call.op = FLOW_OP_convolution_gradient_relu;
    call.output_count = 4;
    outputs[3] = sums;
    cuda_ok(cuda_run(library_kernel(call.op, "cudnn"), &call, 0));
    compare_as(&h->dx, &o->dx, 0x1p-8);
    compare_as(&sums, &expected, 0x1p-7);
    operand_free(&sums);
  }
  operand_free(&expected);
}

static void sixteen_bits(void **state)
{
  (void)state;
  static const int dtypes[] = { FLOW_FLOAT16, FLOW_BFLOAT16 };
  for (int i = 0; i < 2 * CASE_COUNT; i++) {
    const convolution_case *c = &cases[i / 2];
    operands o = make(c, FLOW_FLOAT32, FLOW_FLOAT32), h = make(c, dtypes[i % 2], dtypes[i % 2]);
    flow_operand inputs[5], outputs[3];
    copy_as(&o.x, &h.x), copy_as(&o.w, &h.w), copy_as(&o.b, &h.b), copy_as(&o.g, &h.g);
    flow_call call = forward_of(&o, inputs, outputs);
    cuda_ok(run_kernel(cuda_plain_kernel(call.op), &call, ALL_AT_ONCE));
    call = forward_of(&h, inputs, outputs);
    cuda_ok(cuda_run(library_kernel(call.op, "cudnn"), &call, 0));
    compare_as(&h.y, &o.y, 0);
    compare_as(&h.index, &o.index, 0);
    call = gradient_of(&o, inputs, outputs);
    cuda_ok(run_kernel(cuda_plain_kernel(call.op), &call, ALL_AT_ONCE));
    call = gradient_of(&h, inputs, outputs);
    cuda_ok(cuda_run(library_kernel(call.op, "cudnn"), &call, 0));
    compare_as(&h.dx, &o.dx, 0x1p-8);
    compare_as(&h.dw, &o.dw, 0x1p-8);
    compare_as(&h.db, &o.db, 0x1p-8);
    stopped_in_sixteen_bits(&o, &h);
    release(&o);
    release(&h);
  }
}

static void what_a_library_cannot_do_is_left_to_others(void **state)
{
  (void)state;
  static const convolution_case none = { 0, 5, 5, 4, 4, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 0 }, 1, 0, 0, { 0 }, { 0 } };
  operands rows = make(&none, FLOW_FLOAT32, FLOW_FLOAT32), wide = make(&cases[0], FLOW_FLOAT64, FLOW_FLOAT64);
  flow_operand inputs[5], outputs[3];
  flow_call call = forward_of(&rows, inputs, outputs);
  assert_false(library_kernel(FLOW_OP_convolution, "cudnn")->supports(&call));
  call = gradient_of(&rows, inputs, outputs);
  assert_false(library_kernel(FLOW_OP_convolution_gradient, "cudnn")->supports(&call));
  call = forward_of(&wide, inputs, outputs);
  assert_false(library_kernel(FLOW_OP_convolution, "cudnn")->supports(&call));
  call = gradient_of(&rows, inputs, outputs);
  release(&rows);
  release(&wide);
}

/* ---- products ------------------------------------------------------------------------------------------------------------------ */

typedef struct product_case { int a_rank, a[4], b_rank, b[4], transpose_a, transpose_b, c_rank, c[4]; } product_case;

static const product_case products[] = {
  { 2, { 5, 7 }, 2, { 7, 3 }, 0, 0, 2, { 5, 3 } },
  { 2, { 7, 5 }, 2, { 7, 3 }, 1, 0, 2, { 5, 3 } },
  { 2, { 5, 7 }, 2, { 3, 7 }, 0, 1, 2, { 5, 3 } },
  { 2, { 7, 5 }, 2, { 3, 7 }, 1, 1, 2, { 5, 3 } },
  { 1, { 7 }, 2, { 7, 3 }, 0, 0, 1, { 3 } },
  { 2, { 5, 7 }, 1, { 7 }, 0, 0, 1, { 5 } },
  { 1, { 7 }, 1, { 7 }, 0, 0, 0, { 0 } },
  { 3, { 4, 5, 7 }, 3, { 4, 7, 3 }, 0, 0, 3, { 4, 5, 3 } },
  { 4, { 2, 3, 5, 7 }, 2, { 7, 3 }, 0, 0, 4, { 2, 3, 5, 3 } },
  { 3, { 4, 7, 5 }, 2, { 7, 3 }, 1, 0, 3, { 4, 5, 3 } },
  { 2, { 5, 7 }, 3, { 4, 7, 3 }, 0, 0, 3, { 4, 5, 3 } },
  { 4, { 1, 1, 5, 7 }, 3, { 4, 3, 7 }, 0, 1, 4, { 1, 4, 5, 3 } },
};

static flow_operand operand_of(int rank, const int *sizes)
{
  return operand(FLOW_FLOAT32, rank, sizes[0], sizes[1], sizes[2], sizes[3]);
}

static void products_are_the_cpu_s(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
    const product_case *p = &products[i];
    flow_attributes attributes = { .matmul = { .transpose_a = p->transpose_a, .transpose_b = p->transpose_b } };
    flow_operand inputs[2] = { operand_of(p->a_rank, p->a), operand_of(p->b_rank, p->b) }, c = operand_of(p->c_rank, p->c);
    fill_whole(&inputs[0], 4), fill_whole(&inputs[1], 4);
    flow_call call = call_of(FLOW_OP_matmul, &attributes, inputs, 2, &c, 1);
    assert_true(library_kernel(FLOW_OP_matmul, "cublaslt")->supports(&call));
    cuda_matches_cpu(&call, 0, 0);
    operand_free(&inputs[0]), operand_free(&inputs[1]), operand_free(&c);
  }
}

/* One operand is repeated along one leading axis, the other along another. */
static void products_across_are_left_to_others(void **state)
{
  (void)state;
  flow_attributes attributes = { 0 };
  flow_operand inputs[2] = { operand(FLOW_FLOAT32, 4, 2, 1, 5, 7), operand(FLOW_FLOAT32, 4, 1, 3, 7, 3) };
  flow_operand c = operand(FLOW_FLOAT32, 4, 2, 3, 5, 3), none[2] = { operand(FLOW_FLOAT32, 2, 5, 0), operand(FLOW_FLOAT32, 2, 0, 3) };
  flow_operand zeros = operand(FLOW_FLOAT32, 2, 5, 3);
  flow_call call = call_of(FLOW_OP_matmul, &attributes, inputs, 2, &c, 1);
  assert_false(library_kernel(FLOW_OP_matmul, "cublaslt")->supports(&call));
  call = call_of(FLOW_OP_matmul, &attributes, none, 2, &zeros, 1);
  assert_false(library_kernel(FLOW_OP_matmul, "cublaslt")->supports(&call));
  for (int i = 0; i < 2; i++) operand_free(&inputs[i]), operand_free(&none[i]);
  operand_free(&c), operand_free(&zeros);
}

static void dense_is_the_cpu_s(void **state)
{
  (void)state;
  for (int relu = 0; relu < 2; relu++) {
    flow_attributes attributes = { .matmul = { .activation = relu ? FLOW_RELU : FLOW_LINEAR } };
    flow_operand inputs[3] = { operand(FLOW_FLOAT32, 3, 2, 4, 7), operand(FLOW_FLOAT32, 2, 7, 5), operand(FLOW_FLOAT32, 1, 5) };
    flow_operand y = operand(FLOW_FLOAT32, 3, 2, 4, 5);
    for (int i = 0; i < 3; i++) fill_whole(&inputs[i], 4);
    flow_call call = call_of(FLOW_OP_dense, &attributes, inputs, 3, &y, 1);
    assert_true(library_kernel(FLOW_OP_dense, "cublaslt")->supports(&call));
    cuda_matches_cpu(&call, 0, 0);
    for (int i = 0; i < 3; i++) operand_free(&inputs[i]);
    operand_free(&y);
  }
}

/* A library takes memory, and loads kernels, when it makes its first plan of a shape and runs it: also where that is while a queue
 * records. The memory of a call is taken before, since how much it is says the plan. */
static void plans_are_made_while_a_queue_records(void **state)
{
  (void)state;
  const flow_accelerator *device = cuda_device();
  const flow_accelerator_functions *gpu = device->functions;
  enum { ENOUGH = 1 << 25 };
  flow_attributes attributes = { 0 };
  flow_operand inputs[2] = { operand(FLOW_FLOAT32, 2, 11, 23), operand(FLOW_FLOAT32, 2, 23, 13) }, y = operand(FLOW_FLOAT32, 2, 11, 13);
  flow_operand expected = operand(FLOW_FLOAT32, 2, 11, 13);
  fill_whole(&inputs[0], 4), fill_whole(&inputs[1], 4);
  flow_call call = call_of(FLOW_OP_matmul, &attributes, inputs, 2, &expected, 1);
  cuda_ok(run_kernel(cuda_plain_kernel(call.op), &call, ALL_AT_ONCE));
  flow_queue *queue;
  flow_recording *recording;
  cuda_ok(gpu->queue_new(device, &queue));
  cuda_copy copies[3] = { cuda_upload(device, queue, &inputs[0], 0), cuda_upload(device, queue, &inputs[1], 0),
                          cuda_upload(device, queue, &y, 0) };
  flow_operand there[3] = { inputs[0], inputs[1], y };
  for (int i = 0; i < 3; i++) there[i].data = copies[i].data;
  call.inputs = there, call.outputs = &there[2];
  call.queue = queue;
  cuda_ok(gpu->allocate(queue, ENOUGH, &call.shared));
  cuda_ok(gpu->record_begin(queue));
  const flow_kernel *product = library_kernel(call.op, "cublaslt");
  assert_true(product->supports(&call));
  assert_true(product->shared_bytes(&call) <= ENOUGH);
  cuda_ok(product->run(&call, 0, 0, 1));
  cuda_ok(gpu->record_end(queue, &recording));
  cuda_ok(gpu->replay(queue, recording));
  for (int i = 0; i < 3; i++) cuda_download(device, queue, &copies[i], i == 2, product->variant);
  compare_as(&y, &expected, 0);
  gpu->recording_release(recording);
  gpu->release(queue, call.shared);
  gpu->queue_release(queue);
  operand_free(&inputs[0]), operand_free(&inputs[1]), operand_free(&y), operand_free(&expected);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(convolutions_are_the_cpu_s), cmocka_unit_test(images_begin_anywhere),
    cmocka_unit_test(gradients_stop_at_the_relu_before),
    cmocka_unit_test(unused_results_are_left_alone),
    cmocka_unit_test(nan_stays),
    cmocka_unit_test(sixteen_bits),
    cmocka_unit_test(what_a_library_cannot_do_is_left_to_others),
    cmocka_unit_test(products_are_the_cpu_s),
    cmocka_unit_test(products_across_are_left_to_others),
    cmocka_unit_test(dense_is_the_cpu_s),
    cmocka_unit_test(plans_are_made_while_a_queue_records),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
