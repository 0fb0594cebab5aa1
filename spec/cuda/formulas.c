/* formulas.c: writes what training the three reference models asks of cuDNN and cuBLASLt, a line for each formula, to the file that
 * FLOW_EMULATED_FORMULAS names: flowers at batch 32, MNIST at 64, ResNet-50 v1.5 at 256, each in float32 (with and without tensor cores)
 * and in both 16-bit floats, forward and backward. The calls are those of the ops; the library's variants say what they need for them.
 * Weights of 16-bit layers are of 16 bits or float32, and so are their gradients: those of products are written by the library in either,
 * those of filters always in 16 bits, since cuDNN 9.19 has no engine that writes float32 there. */
#include <stdio.h>
#include <string.h>
#include "cuda/emulation/emulation.h"
#include "cuda/runtime/launch.h"
#include "cuda/library/library_kernels.h"
#include "ops/op.h"
#include "tensor/tensor.h"

flow_status flow_cuda_launch(const flow_call *call, flow_cuda_kernel kernel, int64_t count, const void *arguments, size_t bytes)
{
  (void)call, (void)kernel, (void)count, (void)arguments, (void)bytes;
  return flow_fail(FLOW_INTERNAL, "nothing is run here");
}

flow_status flow_cuda_copy(const flow_call *call, void *to, const void *from, size_t bytes)
{
  (void)call, (void)to, (void)from, (void)bytes;
  return flow_fail(FLOW_INTERNAL, "nothing is run here");
}

flow_status emulated_may_plan(void)
{
  return FLOW_OK;
}

uint32_t *flow_cuda_counters(const flow_call *call)
{
  (void)call;
  return NULL;
}

flow_status flow_cuda_enter(const flow_call *call, int *before)
{
  (void)call;
  *before = 0;
  return FLOW_OK;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
  (void)mode;
  return cudaSuccess;
}

void flow_cuda_leave(const flow_call *call, int before) { (void)call, (void)before; }

/* before: what its gradient meets first: NORM or the images, RELU (without a bias), RELU_BIAS, or RELU_ADD, another gradient and then a
 * relu. */
enum { NORM, RELU, RELU_BIAS, RELU_ADD };
typedef struct convolution_layer { int images, size, in, kernel, out, stride, same, relu_bias, pool, first, before; } convolution_layer;

static const convolution_layer flowers[] = {
  { 32, 180, 3, 3, 16, 1, 1, 1, 2, 1, NORM }, { 32, 90, 16, 3, 32, 1, 1, 1, 2, 0, RELU_BIAS },
  { 32, 45, 32, 3, 64, 1, 1, 1, 2, 0, RELU_BIAS }, { 0 } };
static const convolution_layer mnist[] = { { 64, 28, 1, 3, 32, 1, 0, 1, 0, 1, NORM }, { 0 } };

typedef struct dense_layer { int rows, in, out, relu; } dense_layer;
static const dense_layer denses[] = {
  { 32, 30976, 128, 1 }, { 32, 128, 5, 0 }, { 64, 21632, 128, 1 }, { 64, 128, 10, 0 }, { 256, 2048, 1000, 0 } };

static flow_operand make(int dtype, int rank, int64_t a, int64_t b, int64_t c, int64_t d)
{
  flow_operand x = { .dtype = dtype, .rank = rank, .shape = { a, b, c, d } };
  flow_contiguous_strides(rank, x.shape, x.strides);
  return x;
}

static int failures;

static void ask(int (*supports)(const flow_call *call), const flow_call *call)
{
  if (supports(call)) return;
  fprintf(stderr, "%s is not supported\n", flow_op(call->op)->name);
  failures++;
}

/* Keras pads "same" more at the bottom and on the right. */
static void ask_convolution(const convolution_layer *l, int dtype, int exact)
{
  flow_attributes a = { .convolution = { .stride = { l->stride, l->stride }, .dilation = { 1, 1 }, .groups = 1, .has_bias = l->relu_bias,
                                         .activation = l->relu_bias ? FLOW_RELU : FLOW_LINEAR, .pool = { l->pool, l->pool },
                                         .input_size = { l->size, l->size } } };
  int out = l->same ? (l->size + l->stride - 1) / l->stride : (l->size - l->kernel) / l->stride + 1;
  int missing = (out - 1) * l->stride + l->kernel - l->size;
  for (int i = 0; i < 4 && l->same && missing > 0; i++) a.convolution.padding[i] = i % 2 ? missing - missing / 2 : missing / 2;
  int result = l->pool ? out / l->pool : out;
  int bytes = l->first && l->relu_bias && l->in == 3 && dtype == FLOW_FLOAT32;     /* images, scaled as they are read */
  flow_operand x = make(bytes ? FLOW_UINT8 : dtype, 4, l->images, l->size, l->size, l->in);
  flow_operand w = make(dtype, 4, l->kernel, l->kernel, l->in, l->out), b = make(dtype, 1, l->out, 0, 0, 0);
  flow_operand y = make(dtype, 4, l->images, result, result, l->out);
  flow_operand index = l->pool ? make(FLOW_UINT8, 4, l->images, result, result, l->out) : make(FLOW_UINT8, 1, 0, 0, 0, 0);
  flow_operand inputs[3] = { x, w, b }, outputs[2] = { y, index };
  flow_operand operands[6] = { y, x, w, y, index, x }, gradients[4] = { x, w, b, make(FLOW_FLOAT32, 1, l->in, 0, 0, 0) };
  a.convolution.input_scale = bytes ? 1.0 / 255 : 0;
  flow_call call = { .op = FLOW_OP_convolution, .attributes = &a, .inputs = inputs, .input_count = l->relu_bias ? 3 : 2, .outputs = outputs,
                     .output_count = 2, .exact = exact };
  ask(flow_library_convolution_supports, &call);
  flow_attributes backward = a;
  backward.convolution.input_scale = 0;
  gradients[0].dtype = dtype;
  gradients[0].unused = l->first;
  gradients[2].unused = !l->relu_bias;
  gradients[3].unused = l->before != RELU_BIAS;
  call = (flow_call){ .op = l->before == NORM ? FLOW_OP_convolution_gradient : FLOW_OP_convolution_gradient_relu, .attributes = &backward,
                      .inputs = operands, .input_count = l->before == RELU_ADD ? 6 : 5, .outputs = gradients,
                      .output_count = l->before == NORM ? 3 : 4, .exact = exact };
  ask(flow_library_convolution_gradient_supports, &call);
  gradients[1].dtype = gradients[2].dtype = FLOW_FLOAT32;
  ask(flow_library_convolution_gradient_supports, &call);
}

static void ask_product(int rows, int columns, int inner, int transpose_a, int transpose_b, int dtype, int result, int exact)
{
  flow_attributes a = { .matmul = { .transpose_a = transpose_a, .transpose_b = transpose_b } };
  flow_operand inputs[2] = { transpose_a ? make(dtype, 2, inner, rows, 0, 0) : make(dtype, 2, rows, inner, 0, 0),
                             transpose_b ? make(dtype, 2, columns, inner, 0, 0) : make(dtype, 2, inner, columns, 0, 0) };
  flow_operand c = make(result, 2, rows, columns, 0, 0);
  flow_call call = { .op = FLOW_OP_matmul, .attributes = &a, .inputs = inputs, .input_count = 2, .outputs = &c, .output_count = 1,
                     .exact = exact };
  ask(flow_library_product_supports, &call);
}

static void ask_dense(const dense_layer *l, int dtype, int exact)
{
  flow_attributes a = { .matmul = { .activation = l->relu ? FLOW_RELU : FLOW_LINEAR } };
  flow_operand inputs[3] = { make(dtype, 2, l->rows, l->in, 0, 0), make(dtype, 2, l->in, l->out, 0, 0), make(dtype, 1, l->out, 0, 0, 0) };
  flow_operand y = make(dtype, 2, l->rows, l->out, 0, 0);
  flow_call call = { .op = FLOW_OP_dense, .attributes = &a, .inputs = inputs, .input_count = 3, .outputs = &y, .output_count = 1,
                     .exact = exact };
  ask(flow_library_product_supports, &call);
  ask_product(l->rows, l->in, l->out, 0, 1, dtype, dtype, exact);
  ask_product(l->in, l->out, l->rows, 1, 0, dtype, dtype, exact);
  if (dtype != FLOW_FLOAT32) ask_product(l->in, l->out, l->rows, 1, 0, dtype, FLOW_FLOAT32, exact);
}

/* He et al. 2015, table 1, 50 layers; strides in the 3 x 3 convolutions. */
static void ask_resnet(int dtype, int exact)
{
  enum { BATCH = 256 };
  ask_convolution(&(convolution_layer){ BATCH, 224, 3, 7, 64, 2, 1, 0, 0, 1, NORM }, dtype, exact);
  int size = 56, in = 64;
  for (int stage = 0; stage < 4; stage++) {
    /* A plan with a relu takes a second to compile: one precision has all of them. */
    int narrow = 64 << stage, stride = stage > 0 ? 2 : 1, relu = stage == 0 || dtype == FLOW_BFLOAT16 ? RELU : NORM;
    for (int block = 0; block < 2; block++, stride = 1) {      /* the others are as the second; a pool is before the first of all */
      int first = relu == RELU && stage + block > 0 ? RELU_ADD : NORM;
      if (block == 0) ask_convolution(&(convolution_layer){ BATCH, size, in, 1, 4 * narrow, stride, 1, 0, 0, 0, NORM }, dtype, exact);
      ask_convolution(&(convolution_layer){ BATCH, size, in, 1, narrow, 1, 1, 0, 0, 0, first }, dtype, exact);
      ask_convolution(&(convolution_layer){ BATCH, size, narrow, 3, narrow, stride, 1, 0, 0, 0, relu }, dtype, exact);
      size = (size + stride - 1) / stride;
      in = 4 * narrow;
      ask_convolution(&(convolution_layer){ BATCH, size, narrow, 1, in, 1, 1, 0, 0, 0, relu }, dtype, exact);
    }
  }
}

int main(void)
{
  static const struct { int dtype, exact; } precisions[] = {
    { FLOW_FLOAT32, 0 }, { FLOW_FLOAT32, 1 }, { FLOW_BFLOAT16, 0 }, { FLOW_FLOAT16, 0 } };
  for (size_t i = 0; i < sizeof precisions / sizeof *precisions; i++) {
    int dtype = precisions[i].dtype, exact = precisions[i].exact;
    for (const convolution_layer *l = flowers; l->images; l++) ask_convolution(l, dtype, exact);
    for (const convolution_layer *l = mnist; l->images; l++) ask_convolution(l, dtype, exact);
    for (size_t k = 0; k < sizeof denses / sizeof *denses; k++) ask_dense(&denses[k], dtype, exact);
    ask_resnet(dtype, exact);
  }
  return failures > 0;
}
