/* cuda_runner.h: runs the kernels of an accelerator for tests, without the engine, and compares them with the CPU's plain ones.
 *
 *   flow_operand x = operand(FLOW_FLOAT32, 2, 3, 4), y = operand(FLOW_FLOAT32, 2, 3, 4);       (kernel_runner.h)
 *   fill(&x, 1);
 *   flow_attributes attributes = { 0 };
 *   flow_call call = call_of(FLOW_OP_exp, &attributes, &x, 1, &y, 1);
 *   cuda_matches_cpu(&call, 0, 1e-6);
 *
 * Operands stay in the host's memory: they are copied to the device, and what the kernels wrote comes back. FLOW_PLUGINS says where the
 * accelerator is; without it the emulated device of this build is taken. */
#ifndef FLOW_SPEC_CUDA_RUNNER_H
#define FLOW_SPEC_CUDA_RUNNER_H

#include <math.h>
#include <unistd.h>
#include "accelerator.h"
#include "base/plugin.h"
#include "kernel_runner.h"

enum { CUDA_GUARD = 256, CUDA_RUNS = 3 };      /* bytes around each operand; runs that must give the same bits */

/* The accelerator's first device. */
static inline const flow_accelerator *cuda_device(void)
{
  static const flow_accelerator *device;
  if (device) return device;
  char path[4096] = "", why[FLOW_ACCELERATOR_TEXT] = "";
  if (!getenv("FLOW_PLUGINS")) {
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 64);
    assert_true(length > 0);
    path[length] = '\0';
    strcpy(strrchr(path, '/'), "/../lib/emulated");
    setenv("FLOW_PLUGINS", path, 1);
  }
  const flow_plugin *plugin;
  if (flow_plugin_open("cuda", &plugin) != FLOW_OK) fail_msg("%s", flow_last_error());
  const flow_accelerator_table *table = plugin->functions;
  if (table->count(why, sizeof why) < 1) fail_msg("no device: %s", why);
  if (table->open(0, &device) != FLOW_OK) fail_msg("%s", flow_last_error());
  return device;
}

#define cuda_ok(call) do { if ((call) != FLOW_OK) fail_msg("%s", flow_last_error()); } while (0)

/* An operand's bytes, from the first to after the last that its strides reach, with guards around them. */
typedef struct cuda_copy { flow_operand *host; char *first; size_t bytes; char *block; void *data, *allocated; } cuda_copy;

static size_t cuda_shift;      /* operands begin this many bytes after a multiple of 256 */
static int cuda_shifted = -1;  /* which operand; -1: all */

static inline cuda_copy cuda_upload(const flow_accelerator *device, flow_queue *queue, flow_operand *host, size_t shift)
{
  cuda_copy copy = { .host = host };
  int64_t low = 0, high = 0, size = flow_dtype_size(host->dtype);
  for (int i = 0; i < host->rank; i++) {
    int64_t reach = (host->shape[i] - 1) * host->strides[i];
    *(reach < 0 ? &low : &high) += reach;
  }
  if (!host->data) return copy;
  copy.bytes = operand_size(host) == 0 ? 0 : (size_t)((high - low + 1) * size);
  copy.first = (char *)host->data + (copy.bytes ? low * size : 0);
  cuda_ok(device->functions->allocate(queue, copy.bytes + 2 * CUDA_GUARD + shift, &copy.allocated));
  copy.block = (char *)copy.allocated + shift;
  unsigned char *guarded = malloc(copy.bytes + 2 * CUDA_GUARD);
  assert_non_null(guarded);
  memset(guarded, CANARY_BYTE, copy.bytes + 2 * CUDA_GUARD);
  memcpy(guarded + CUDA_GUARD, copy.first, copy.bytes);
  cuda_ok(device->functions->upload(queue, copy.block, guarded, copy.bytes + 2 * CUDA_GUARD));
  free(guarded);
  copy.data = copy.block + CUDA_GUARD - (copy.bytes ? low * size : 0);
  return copy;
}

/* Brings the bytes back into the host's operand, or, if nothing may have been written there, compares them. */
static inline void cuda_download(const flow_accelerator *device, flow_queue *queue, cuda_copy *copy, int written, const char *variant)
{
  if (!copy->block) return;
  unsigned char *guarded = malloc(copy->bytes + 2 * CUDA_GUARD);
  assert_non_null(guarded);
  cuda_ok(device->functions->download(queue, guarded, copy->block, copy->bytes + 2 * CUDA_GUARD));
  for (int i = 0; i < CUDA_GUARD; i++) {
    if (guarded[i] != CANARY_BYTE || guarded[CUDA_GUARD + copy->bytes + (size_t)i] != CANARY_BYTE)
      fail_msg("%s: writes beside an operand", variant);
  }
  if (!written && memcmp(copy->first, guarded + CUDA_GUARD, copy->bytes) != 0)
    fail_msg("%s: writes to an operand that it may only read", variant);
  memcpy(copy->first, guarded + CUDA_GUARD, copy->bytes);
  free(guarded);
  device->functions->release(queue, copy->allocated);
}

/* Which input before input i has its memory, or more; -1: none. Both are contiguous. */
static inline int cuda_whole_of(const flow_call *call, int i)
{
  const flow_operand *part = &call->inputs[i];
  for (int k = 0; k < i && i < call->input_count; k++) {
    const flow_operand *x = &call->inputs[k];
    const char *end = (const char *)x->data + operand_bytes(x);
    if (x->data && part->data && operand_bytes(part) <= operand_bytes(x) && part->data >= x->data && (const char *)part->data < end)
      return k;
  }
  return -1;
}

/* Memory of a call, of any contents, with a guard after it. */
static inline void *cuda_shared_new(const flow_accelerator *device, flow_queue *queue, size_t bytes)
{
  void *shared, *guarded = malloc(bytes + CUDA_GUARD);
  assert_non_null(guarded);
  memset(guarded, CANARY_BYTE, bytes + CUDA_GUARD);
  cuda_ok(device->functions->allocate(queue, bytes + CUDA_GUARD, &shared));
  cuda_ok(device->functions->upload(queue, shared, guarded, bytes + CUDA_GUARD));
  free(guarded);
  return shared;
}

static inline void cuda_shared_check(const flow_accelerator *device, flow_queue *queue, void *shared, size_t bytes, const char *variant)
{
  unsigned char guard[CUDA_GUARD];
  cuda_ok(device->functions->download(queue, guard, (char *)shared + bytes, CUDA_GUARD));
  for (int i = 0; i < CUDA_GUARD; i++)
    if (guard[i] != CANARY_BYTE) fail_msg("%s: writes beside the memory of the call", variant);
}

/* Runs the call through one kernel of the device; outputs, and inputs whose bit is set in `written`, get the results. Returns what the
 * kernel or the queue's synchronize returned. */
static inline flow_status cuda_run(const flow_kernel *kernel, flow_call *call, unsigned written)
{
  const flow_accelerator *device = cuda_device();
  const flow_accelerator_functions *functions = device->functions;
  int count = call->input_count + call->output_count;
  flow_queue *queue;
  cuda_ok(functions->queue_new(device, &queue));
  cuda_copy *copies = calloc((size_t)count + 1, sizeof *copies);
  flow_operand *operands = calloc((size_t)count + 1, sizeof *operands);
  assert_true(copies && operands);
  for (int i = 0; i < count; i++) {
    flow_operand *host = i < call->input_count ? &call->inputs[i] : &call->outputs[i - call->input_count];
    int whole = cuda_whole_of(call, i);
    operands[i] = *host;
    if (whole >= 0) {
      operands[i].data = (char *)operands[whole].data + ((char *)host->data - (char *)call->inputs[whole].data);
      continue;
    }
    copies[i] = cuda_upload(device, queue, host, cuda_shifted < 0 || cuda_shifted == i ? cuda_shift : 0);
    operands[i].data = copies[i].data;
  }
  flow_call there = *call;
  there.inputs = operands;
  there.outputs = operands + call->input_count;
  there.queue = queue;
  there.scratch = NULL;
  there.shared = NULL;
  void *scalars = NULL;
  if (call->scalars) {
    cuda_ok(functions->allocate(queue, sizeof *call->scalars, &scalars));
    cuda_ok(functions->upload(queue, scalars, call->scalars, sizeof *call->scalars));
    there.scalars = scalars;
  }
  size_t shared = kernel->shared_bytes ? kernel->shared_bytes(&there) : 0;
  if (shared > 0) there.shared = cuda_shared_new(device, queue, shared);
  flow_status status = kernel->run(&there, 0, 0, 1), waited = functions->synchronize(queue);
  if (status == FLOW_OK) status = waited;
  if (shared > 0) cuda_shared_check(device, queue, there.shared, shared, kernel->variant);
  for (int i = 0; i < count; i++)
    cuda_download(device, queue, &copies[i], i >= call->input_count || (i < 32 && written >> i & 1), kernel->variant);
  functions->release(queue, there.shared);
  functions->release(queue, scalars);
  free(copies);
  free(operands);
  functions->queue_release(queue);
  return status;
}

/* What a call writes, packed one after the other. */
typedef struct cuda_bytes { unsigned char *data; size_t count; } cuda_bytes;

static inline flow_operand *cuda_written(flow_call *call, unsigned written, int i)
{
  if (i < call->output_count) return call->outputs[i].data ? &call->outputs[i] : NULL;
  i -= call->output_count;
  return i < 32 && written >> i & 1 ? &call->inputs[i] : NULL;
}

static inline cuda_bytes cuda_save(flow_call *call, unsigned written)
{
  cuda_bytes saved = { malloc(1), 0 };
  for (int i = 0; i < call->output_count + call->input_count; i++) {
    flow_operand *x = cuda_written(call, written, i);
    if (!x) continue;
    saved.data = realloc(saved.data, saved.count + operand_bytes(x) + 1);
    assert_non_null(saved.data);
    memcpy(saved.data + saved.count, x->data, operand_bytes(x));
    saved.count += operand_bytes(x);
  }
  return saved;
}

static inline void cuda_restore(flow_call *call, unsigned written, const cuda_bytes *saved)
{
  size_t at = 0;
  for (int i = 0; i < call->output_count + call->input_count; i++) {
    flow_operand *x = cuda_written(call, written, i);
    if (!x) continue;
    memcpy(x->data, saved->data + at, operand_bytes(x));
    at += operand_bytes(x);
  }
}

static inline const flow_kernel *cuda_plain_kernel(int op)
{
  const flow_kernel *kernel = flow_cpu_device_for("plain")->kernels[op];
  while (kernel[1].run) kernel++;
  return kernel;
}

static inline flow_status cuda_run_on_cpu(flow_call *call) { return run_kernel(cuda_plain_kernel(call->op), call, ALL_AT_ONCE); }

/* On operands of float32 where those of the call have 16 bits, as the engine calls a CPU's kernel that takes none; results are rounded
 * once. Operands are contiguous. */
static inline flow_status cuda_run_in_float(flow_call *call)
{
  flow_operand *operands = calloc((size_t)(call->input_count + call->output_count) + 1, sizeof *operands);
  assert_non_null(operands);
  flow_call there = *call;
  there.inputs = operands;
  there.outputs = operands + call->input_count;
  for (int i = 0; i < call->input_count + call->output_count; i++) {
    const flow_operand *x = i < call->input_count ? &call->inputs[i] : &call->outputs[i - call->input_count];
    operands[i] = *x;
    if (!x->data || (x->dtype != FLOW_FLOAT16 && x->dtype != FLOW_BFLOAT16)) continue;
    operands[i].dtype = FLOW_FLOAT32;
    operands[i].data = guarded_alloc(operand_bytes(&operands[i]));
    for (int64_t k = 0; k < operand_size(x); k++) set(&operands[i], k, get(x, k));
  }
  flow_status status = cuda_run_on_cpu(&there);
  for (int i = 0; i < call->input_count + call->output_count; i++) {
    flow_operand *x = i < call->input_count ? &call->inputs[i] : &call->outputs[i - call->input_count];
    if (operands[i].dtype == x->dtype) continue;
    for (int64_t k = 0; k < operand_size(x); k++) set(x, k, get(&operands[i], k));
    operand_free(&operands[i]);
  }
  free(operands);
  return status;
}

/* Element by element: |found - expected| <= tolerance * (1 + |expected|). */
static inline void cuda_compare(flow_call *call, unsigned written, const cuda_bytes *expected, double tolerance, const char *variant)
{
  size_t at = 0;
  for (int i = 0; i < call->output_count + call->input_count; i++) {
    flow_operand *x = cuda_written(call, written, i);
    if (!x) continue;
    flow_operand right = *x;
    right.data = expected->data + at;
    char *aligned = malloc(operand_bytes(x) + 1);
    assert_non_null(aligned);
    memcpy(aligned, right.data, operand_bytes(x));
    right.data = aligned;
    for (int64_t k = 0; k < operand_size(x); k++) {
      double value = get(&right, k);
      assert_near(get(x, k), value, tolerance * (1 + fabs(value)), variant, k);
    }
    free(aligned);
    at += operand_bytes(x);
  }
}

#define for_each_cuda_kernel(kernel, op) for (const flow_kernel *kernel = cuda_device()->device.kernels[op]; kernel->run; kernel++)

/* Every variant of the device that supports the call gives what the CPU's plain variant gives, within the tolerance, and the same bits
 * each time. `written`: bits of the inputs that the op writes. Outputs and those are contiguous. Outputs begin as NaNs; the results
 * that stay in them are the CPU's. */
static inline void cuda_matches(flow_call *call, unsigned written, double tolerance, flow_status (*run_on_cpu)(flow_call *call))
{
  int variants = 0;
  cuda_bytes before = cuda_save(call, written);
  cuda_ok(run_on_cpu(call));
  cuda_bytes expected = cuda_save(call, written);
  for_each_cuda_kernel(kernel, call->op) {
    if (kernel->supports && !kernel->supports(call)) continue;
    variants++;
    cuda_bytes first = { NULL, 0 };
    for (int run = 0; run < CUDA_RUNS; run++) {
      cuda_restore(call, written, &before);
      for (int i = 0; i < call->output_count; i++)
        if (call->outputs[i].data) memset(call->outputs[i].data, CANARY_BYTE, operand_bytes(&call->outputs[i]));
      cuda_ok(cuda_run(kernel, call, written));
      if (run == 0) {
        cuda_compare(call, written, &expected, tolerance, kernel->variant);
        first = cuda_save(call, written);
        continue;
      }
      cuda_bytes again = cuda_save(call, written);
      if (memcmp(first.data, again.data, first.count) != 0) fail_msg("%s: two runs do not give the same bits", kernel->variant);
      free(again.data);
    }
    free(first.data);
  }
  if (variants == 0) fail_msg("gpu:0 has no kernel for %s", flow_op(call->op)->name);
  cuda_restore(call, written, &expected);
  free(before.data);
  free(expected.data);
}

static inline void cuda_matches_cpu(flow_call *call, unsigned written, double tolerance)
{
  cuda_matches(call, written, tolerance, cuda_run_on_cpu);
}

static inline void cuda_matches_cpu_in_float(flow_call *call, double tolerance) { cuda_matches(call, 0, tolerance, cuda_run_in_float); }

/* Every variant refuses the call's data with a message that contains `part`. */
static inline void cuda_refuses(flow_call *call, const char *part)
{
  int variants = 0;
  for_each_cuda_kernel(kernel, call->op) {
    if (kernel->supports && !kernel->supports(call)) continue;
    variants++;
    assert_int_not_equal(cuda_run(kernel, call, 0), FLOW_OK);
    if (!strstr(flow_last_error(), part)) fail_msg("%s: \"%s\" does not contain \"%s\"", kernel->variant, flow_last_error(), part);
  }
  assert_true(variants > 0);
}

#endif
