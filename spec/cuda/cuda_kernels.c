/* cuda_kernels.c: the kernels that take a training step's time, one by one, at the shapes of the reference models, beside what the device
 * copies and multiplies at best: for scripts/gpu-check. Prints a line for each, its name, a tab, and
 *   "12.3 us, 1234 GB/s, 41 % of a copy"      bytes of its operands, each once, what is updated twice; or
 *   "12.3 us, 700 TFLOP/s, 90 % of a product"
 * cuda_kernels full      shapes of full batches
 * cuda_kernels small     one image each: shows that it works, on emulated devices
 * FLOW_PLUGINS says where the accelerator is. A kernel that cannot be run is a line that says why; the status is 1 then. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "accelerator.h"
#include "base/memory.h"
#include "base/plugin.h"
#include "ops/op.h"
#include "tensor/tensor.h"

enum { MOST_IN = 8, MOST_OUT = 4, LAUNCHES = 10, ROUNDS = 5, PATTERN = 1 << 20 };
static int launches = LAUNCHES, rounds = ROUNDS;          /* launches: of a recording */

typedef struct shape { int dtype, rank; int64_t size[4]; } shape;
typedef struct timed_case {
  const char *name;
  int op;
  flow_attributes attributes;
  shape in[MOST_IN], out[MOST_OUT];
  double operations;                    /* floating-point ones, where those decide; 0: bytes do */
  unsigned updated;                     /* bits of the inputs that are written, too */
} timed_case;

static const flow_accelerator *device;
static const flow_accelerator_functions *gpu;
static flow_queue *queue;
static double best_copy, best_product;

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- operands --------------------------------------------------------------------------------------------------------------- */

static flow_operand operand_of(const shape *s)
{
  flow_operand x = { .dtype = s->dtype, .rank = s->rank };
  int64_t stride = 1;
  for (int i = s->rank - 1; i >= 0; i--) {
    x.shape[i] = s->size[i];
    x.strides[i] = stride;
    stride *= s->size[i];
  }
  return x;
}

static size_t bytes_of(const flow_operand *x) { return (size_t)(flow_shape_size(x->rank, x->shape) * flow_dtype_size(x->dtype)); }

/* Numbers in [0.5, 1) of every float's dtype, small ones of integers': products of zeros take less power. */
static void make_pattern(int dtype, unsigned char *pattern)
{
  uint64_t state = 1;
  for (size_t i = 0; i < PATTERN; i += 4) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    uint32_t random = (uint32_t)(state >> 33), bits = 0x3f000000u | (random & 0x7fffffu);
    uint32_t halves = (0x3f00u | (random & 0x7fu)) | (0x3f00u | (random >> 8 & 0x7fu)) << 16;
    if (dtype == FLOW_BFLOAT16) bits = halves;
    else if (dtype != FLOW_FLOAT32) bits = 0;
    memcpy(pattern + i, &bits, 4);
  }
}

static flow_status fill(void *to, size_t bytes, int dtype)
{
  static unsigned char pattern[PATTERN];
  make_pattern(dtype, pattern);
  size_t filled = bytes < PATTERN ? bytes : PATTERN;
  FLOW_TRY(gpu->upload(queue, to, pattern, filled));
  for (; filled < bytes; filled += filled < bytes - filled ? filled : bytes - filled)
    FLOW_TRY(gpu->copy(queue, (char *)to + filled, to, filled < bytes - filled ? filled : bytes - filled));
  return FLOW_OK;
}

static flow_status make_operand(const shape *s, flow_operand *x)
{
  *x = operand_of(s);
  FLOW_TRY(gpu->allocate(queue, bytes_of(x) + 1, &x->data));
  return fill(x->data, bytes_of(x), x->dtype);
}

/* ---- time ------------------------------------------------------------------------------------------------------------------- */

typedef flow_status enqueue_function(void *context);

static int compare(const void *a, const void *b) { return *(const double *)a < *(const double *)b ? -1 : 1; }

static flow_status time_recording(flow_recording *recording, double *seconds)
{
  double took[ROUNDS];
  for (int i = -1; i < rounds; i++) {
    double start = now();
    FLOW_TRY(gpu->replay(queue, recording));
    FLOW_TRY(gpu->synchronize(queue));
    if (i >= 0) took[i] = now() - start;
  }
  qsort(took, (size_t)rounds, sizeof *took, compare);
  *seconds = took[rounds / 2] / launches;
  return FLOW_OK;
}

/* Of one of several launches in a recording, after one that was not recorded: the median. */
static flow_status time_it(enqueue_function *enqueue, void *context, double *seconds)
{
  flow_recording *recording;
  FLOW_TRY(enqueue(context));
  FLOW_TRY(gpu->synchronize(queue));
  FLOW_TRY(gpu->record_begin(queue));
  flow_status status = FLOW_OK;
  for (int i = 0; i < launches && status == FLOW_OK; i++) status = enqueue(context);
  flow_status ended = gpu->record_end(queue, &recording);
  if (status == FLOW_OK) status = ended;
  if (status == FLOW_OK) status = time_recording(recording, seconds);
  gpu->recording_release(recording);
  return status;
}

static void tell(const char *name, double seconds, double bytes, double operations)
{
  double rate = operations > 0 ? operations / seconds / 1e12 : bytes / seconds / 1e9;
  double *best = operations > 0 ? &best_product : &best_copy;
  if (*best == 0) *best = rate;
  printf("%s\t%.1f us, %.4g %s, %.0f %% of a %s\n", name, seconds * 1e6, rate, operations > 0 ? "TFLOP/s" : "GB/s", 100 * rate / *best,
         operations > 0 ? "product" : "copy");
  fflush(stdout);
}

/* ---- copies and kernels ----------------------------------------------------------------------------------------------------- */

typedef struct copied { void *from, *to; size_t bytes; } copied;

static flow_status enqueue_copy(void *context)
{
  const copied *c = context;
  return gpu->copy(queue, c->to, c->from, c->bytes);
}

static flow_status time_copy(size_t bytes)
{
  copied c = { .bytes = bytes };
  double seconds = 0;
  FLOW_TRY(gpu->allocate(queue, bytes, &c.from));
  flow_status status = gpu->allocate(queue, bytes, &c.to);
  if (status == FLOW_OK) status = fill(c.from, bytes, FLOW_BFLOAT16);
  if (status == FLOW_OK) status = time_it(enqueue_copy, &c, &seconds);
  if (status == FLOW_OK) tell("copy", seconds, 2 * (double)bytes, 0);
  gpu->release(queue, c.to);
  gpu->release(queue, c.from);
  return status;
}

typedef struct run { flow_call call; const flow_kernel *kernel; flow_operand in[MOST_IN], out[MOST_OUT]; } run;

static flow_status enqueue_kernel(void *context)
{
  const run *self = context;
  return self->kernel->run(&self->call, 0, 0, 1);
}

static flow_status prepare(const timed_case *c, run *self, double *bytes)
{
  flow_call *call = &self->call;
  *call = (flow_call){ .op = c->op, .attributes = &c->attributes, .inputs = self->in, .outputs = self->out, .queue = queue };
  for (int i = 0; i < MOST_IN && c->in[i].rank > 0; i++, call->input_count++) FLOW_TRY(make_operand(&c->in[i], &self->in[i]));
  for (int i = 0; i < MOST_OUT && c->out[i].rank > 0; i++, call->output_count++) FLOW_TRY(make_operand(&c->out[i], &self->out[i]));
  for (int i = 0; i < call->input_count; i++) *bytes += (double)bytes_of(&self->in[i]) * (c->updated >> i & 1 ? 2 : 1);
  for (int i = 0; i < call->output_count; i++) *bytes += (double)bytes_of(&self->out[i]);
  self->kernel = device->device.kernels[c->op];
  while (self->kernel->run && self->kernel->supports && !self->kernel->supports(call)) self->kernel++;
  if (!self->kernel->run) return flow_fail(FLOW_UNSUPPORTED, "no kernel supports it");
  size_t shared = self->kernel->shared_bytes ? self->kernel->shared_bytes(call) : 0;
  return shared > 0 ? gpu->allocate(queue, shared, &call->shared) : FLOW_OK;
}

static flow_status time_case(const timed_case *c)
{
  run self = { .kernel = NULL };
  double bytes = 0, seconds = 0;
  flow_status status = prepare(c, &self, &bytes);
  if (status == FLOW_OK) status = time_it(enqueue_kernel, &self, &seconds);
  char name[96];
  snprintf(name, sizeof name, "%s (%s)", c->name, self.kernel && self.kernel->run ? self.kernel->variant : "-");
  if (status == FLOW_OK) tell(name, seconds, bytes, c->operations);
  for (int i = 0; i < MOST_IN; i++) gpu->release(queue, self.in[i].data);
  for (int i = 0; i < MOST_OUT; i++) gpu->release(queue, self.out[i].data);
  gpu->release(queue, self.call.shared);
  return status;
}

/* ---- the list --------------------------------------------------------------------------------------------------------------- */

#define B16(...) { FLOW_BFLOAT16, sizeof((int64_t[]){ __VA_ARGS__ }) / 8, { __VA_ARGS__ } }
#define F32(...) { FLOW_FLOAT32, sizeof((int64_t[]){ __VA_ARGS__ }) / 8, { __VA_ARGS__ } }
#define U8(...)  { FLOW_UINT8, sizeof((int64_t[]){ __VA_ARGS__ }) / 8, { __VA_ARGS__ } }
#define I64(...) { FLOW_INT64, sizeof((int64_t[]){ __VA_ARGS__ }) / 8, { __VA_ARGS__ } }
#define SAME(kernel_size) .padding = { (kernel_size) / 2, (kernel_size) / 2, (kernel_size) / 2, (kernel_size) / 2 }
#define CONVOLUTION(kernel_size, ...) \
  .convolution = { .groups = 1, .stride = { 1, 1 }, .dilation = { 1, 1 }, SAME(kernel_size), __VA_ARGS__ }

/* n: images of ResNet-50; f: of flowers; m: of MNIST; k: rows and columns of the product; less: what is left of the weights, a part of
 * this many. */
static int time_all(int64_t n, int64_t f, int64_t m, int64_t k, int64_t less)
{
  const int64_t weights = 3989285 / less, many = 25557032 / less;
  flow_attributes norm = { .normalization = { .epsilon = 1e-3, .axis = -1 } };
  flow_attributes fused_pool = { CONVOLUTION(3, .activation = FLOW_RELU, .has_bias = 1, .pool = { 2, 2 }, .pool_stride = { 2, 2 }) };
  flow_attributes plain = { CONVOLUTION(3, .activation = FLOW_LINEAR) };
  flow_attributes adam = { .optimizer = { .beta_1 = 0.9, .beta_2 = 0.999, .epsilon = 1e-7 } }, sgd = { .optimizer = { .momentum = 0.9 } };
  flow_attributes history = { .recurrent = { .history = 1, .reset_after = 1 } };
  const timed_case cases[] = {
    { "product", FLOW_OP_matmul, { .fill = { 0 } }, { B16(k, k), B16(k, k) }, { B16(k, k) }, 2.0 * (double)(k * k * k), 0 },
    { "batch_norm 112x112x64", FLOW_OP_batch_norm, norm, { B16(n, 112, 112, 64), F32(64), F32(64) },
      { B16(n, 112, 112, 64), F32(64), F32(64) }, 0, 0 },
    { "batch_norm_relu + 56x56x256", FLOW_OP_batch_norm_relu, norm, { B16(n, 56, 56, 256), F32(256), F32(256), B16(n, 56, 56, 256) },
      { B16(n, 56, 56, 256), F32(256), F32(256) }, 0, 0 },
    { "batch_norm_gradient 56x56x256", FLOW_OP_batch_norm_gradient, norm,
      { B16(n, 56, 56, 256), B16(n, 56, 56, 256), F32(256), F32(256), F32(256) }, { B16(n, 56, 56, 256), F32(256), F32(256) }, 0, 0 },
    { "batch_norm_gradient 7x7x2048", FLOW_OP_batch_norm_gradient, norm,
      { B16(n, 7, 7, 2048), B16(n, 7, 7, 2048), F32(2048), F32(2048), F32(2048) }, { B16(n, 7, 7, 2048), F32(2048), F32(2048) }, 0, 0 },
    { "convolution 3x3 28x28x128", FLOW_OP_convolution, plain, { B16(n, 28, 28, 128), B16(3, 3, 128, 128) },
      { B16(n, 28, 28, 128), U8(1) }, 2.0 * 9 * 128 * 128 * 28 * 28 * (double)n, 0 },
    { "convolution and pool 90x90x16", FLOW_OP_convolution, fused_pool, { B16(f, 90, 90, 16), B16(3, 3, 16, 32), B16(32) },
      { B16(f, 45, 45, 32), U8(f, 45, 45, 32) }, 0, 0 },
    { "its gradient", FLOW_OP_convolution_gradient, fused_pool,
      { B16(f, 45, 45, 32), B16(f, 90, 90, 16), B16(3, 3, 16, 32), B16(f, 45, 45, 32), U8(f, 45, 45, 32) },
      { B16(f, 90, 90, 16), B16(3, 3, 16, 32), B16(32) }, 0, 0 },
    { "dense 30976 to 128", FLOW_OP_matmul, { .fill = { 0 } }, { B16(f, 30976), B16(30976, 128) }, { B16(f, 128) }, 0, 0 },
    { "relu_gradient 26x26x32", FLOW_OP_relu_gradient, { .fill = { 0 } }, { B16(m, 26, 26, 32), B16(m, 26, 26, 32) },
      { B16(m, 26, 26, 32) }, 0, 0 },
    { "sum of a bias' gradient 26x26x32", FLOW_OP_sum, { .reduce = { .count = 3, .axes = { 0, 1, 2 } } }, { B16(m, 26, 26, 32) },
      { F32(32) }, 0, 0 },
    { "sum of pixels 7x7x2048", FLOW_OP_sum, { .reduce = { .count = 2, .axes = { 1, 2 } } }, { B16(n, 7, 7, 2048) }, { B16(n, 2048) },
      0, 0 },
    { "lstm of 128 units, 100 steps", FLOW_OP_lstm, history, { B16(m, 100, 512), B16(128, 512), B16(m, 128), B16(m, 128) },
      { B16(m, 100, 128), B16(m, 128), B16(m, 100, 640) }, 0, 0 },
    { "lstm_gradient of 128 units, 100 steps", FLOW_OP_lstm_gradient, history,
      { B16(m, 100, 128), B16(m, 128), B16(128, 512), B16(m, 128), B16(m, 100, 640) }, { B16(m, 100, 512), B16(m, 128), B16(m, 128) },
      0, 0 },
    { "lstm of 512 units, 20 steps", FLOW_OP_lstm, history, { B16(m, 20, 2048), B16(512, 2048), B16(m, 512), B16(m, 512) },
      { B16(m, 20, 512), B16(m, 512), B16(m, 20, 2560) }, 0, 0 },
    { "gru of 128 units, 100 steps", FLOW_OP_gru, history, { B16(m, 100, 384), B16(128, 384), B16(m, 128), B16(384) },
      { B16(m, 100, 128), B16(m, 100, 512) }, 0, 0 },
    { "casts of flowers' weights", FLOW_OP_casts, { .cast = { .dtype = FLOW_BFLOAT16 } }, { F32(weights) }, { B16(weights) }, 0, 0 },
    { "adam of flowers", FLOW_OP_adam, adam, { F32(weights), F32(weights), F32(weights), F32(weights), F32(1), I64(1) }, { { 0 } }, 0, 14 },
    { "sgd with momentum of ResNet-50", FLOW_OP_sgd, sgd, { F32(many), F32(many), F32(1), F32(many) }, { { 0 } }, 0, 10 },
    { "softmax of 1000 classes", FLOW_OP_softmax, { .axis = { .axis = -1 } }, { B16(n, 1000) }, { B16(n, 1000) }, 0, 0 },
  };
  int failed = 0;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    if (time_case(&cases[i]) == FLOW_OK) continue;
    printf("%s\tFAILED: %s\n", cases[i].name, flow_last_error());
    failed = 1;
  }
  return failed;
}

static int open_device(void)
{
  const flow_plugin *plugin;
  char why[FLOW_ACCELERATOR_TEXT] = "";
  if (flow_plugin_open("cuda", &plugin) != FLOW_OK) return printf("%s\n", flow_last_error()), 0;
  const flow_accelerator_table *table = plugin->functions;
  if (table->count(why, sizeof why) < 1) return printf("no device: %s\n", why), 0;
  if (table->open(0, &device) != FLOW_OK) return printf("%s\n", flow_last_error()), 0;
  gpu = device->functions;
  if (gpu->queue_new(device, &queue) != FLOW_OK) return printf("%s\n", flow_last_error()), 0;
  printf("%s\n", device->description);
  return 1;
}

int main(int count, char **arguments)
{
  int small = count > 1 && strcmp(arguments[1], "small") == 0;
  if (!open_device()) return 3;
  int failed = time_copy((size_t)1 << (small ? 20 : 30)) != FLOW_OK;
  if (failed) printf("copy\tFAILED: %s\n", flow_last_error());
  if (small) launches = rounds = 1;
  failed |= small ? time_all(1, 1, 1, 64, 100) : time_all(256, 32, 64, 8192, 1);
  gpu->queue_release(queue);
  printf("the kernels of a step at the shapes of %s\n", small ? "one image" : "full batches");
  return failed;
}
