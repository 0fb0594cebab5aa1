/* eager_device.c: an op on tensors of a device, at once: it is enqueued as a whole; the call does not wait. So what a kernel finds wrong
 * in the data (an index that no row has) fails a later call, the first that waits for the device. Inputs may be on the host, which are
 * copied to the device, or belong to another context's place on the same device; then the two queues follow each other, before and after
 * the call. */
#include <string.h>

#include "graph/context.h"
#include "autodiff/apply.h"
#include "graph/profile.h"
#include "autodiff/eager.h"
#include "tensor/mirrors.h"

/* Inputs on the host go to the device of the others. An op without inputs runs where the context says. */
flow_status flow_place_of_call(flow_context *context, int op, flow_tensor *const *inputs, int input_count, flow_place **out)
{
  int device = -1;
  *out = NULL;
  for (int i = 0; i < input_count; i++) {
    int found = flow_place_device(flow_tensor_place(inputs[i]));
    if (found >= 0 && device >= 0 && found != device)
      return flow_fail(FLOW_INVALID_ARGUMENT, "%s: one input is on gpu:%d, another on gpu:%d: bring them to one device with :to()",
                       flow_op(op)->name, device, found);
    if (found >= 0) device = found;
  }
  if (device >= 0) return flow_context_place_of(context, device, out);
  if (input_count == 0) *out = flow_context_place(context);
  return FLOW_OK;
}

/* One call; lives on the stack of the caller. */
typedef struct device_run {
  flow_context *context;
  flow_place   *place;
  int           op, input_count;
  flow_tensor *const *inputs;
  flow_tensor **ready;            /* the inputs as the kernel gets them; references */
} device_run;

/* Kernels of devices take contiguous operands, unless the op's record says STRIDED. *out: a new reference, to the tensor itself if it is
 * contiguous. */
flow_status flow_pack_at(flow_context *context, flow_tensor *tensor, flow_tensor **out)
{
  static const flow_attributes none;
  flow_signature signature = flow_tensor_signature(tensor);
  flow_tensor *packed = NULL;
  *out = NULL;
  if (flow_tensor_is_contiguous(tensor)) {
    *out = flow_tensor_retain(tensor);
    return FLOW_OK;
  }
  flow_status status = flow_run_eager(context, FLOW_OP_copy, &tensor, 1, &none, &signature, &packed);
  if (status == FLOW_OK) *out = packed;
  else flow_tensor_release(packed);
  return status;
}

/* run->ready[i]: input i as the kernel takes it: on the run's device, after what other places still do with it, without gaps unless the
 * op takes strides. */
static flow_status make_ready(const device_run *run, int i)
{
  flow_tensor *input = run->inputs[i];
  int flags = flow_op(run->op)->flags;
  if (!flow_tensor_place(input)) return flow_tensor_at(input, run->place, &run->ready[i]);
  if (flow_tensor_place(input) != run->place) FLOW_TRY(flow_place_follow(run->place, flow_tensor_place(input)));
  if (!(flags & (FLOW_OP_STRIDED | FLOW_OP_EFFECT))) return flow_pack_at(run->context, input, &run->ready[i]);
  run->ready[i] = flow_tensor_retain(input);
  return FLOW_OK;
}

/* Enqueues the call. Its shared block is given back at once: what is allocated later on this queue comes after the call. */
static flow_status enqueue(const device_run *run, const flow_kernel *kernel, flow_call *call)
{
  const flow_accelerator_functions *functions = flow_place_accelerator(run->place)->functions;
  size_t shared = kernel->shared_bytes ? kernel->shared_bytes(call) : 0;
  call->queue = flow_place_lock(run->place);
  flow_status status = shared ? functions->allocate(call->queue, shared, &call->shared) : FLOW_OK;
  if (status == FLOW_OK) status = kernel->run(call, 0, 0, 1);
  if (shared) functions->release(call->queue, call->shared);
  flow_place_unlock(run->place);
  return status;
}

/* A profile waits before and after the call, so that the time is that of the call alone. */
static flow_status run_call(const device_run *run, flow_call *call)
{
  flow_context *context = run->context;
  call->queue = flow_place_lock(run->place);      /* what a kernel supports may depend on the device */
  const flow_kernel *kernel = flow_select_kernel(&flow_place_accelerator(run->place)->device, call);
  flow_place_unlock(run->place);
  if (!kernel) return flow_fail(FLOW_UNSUPPORTED, "%s has no kernel for %s", flow_place_name(run->place), flow_op(call->op)->name);
  if (flow_interrupted(context) && !(flow_op(call->op)->flags & FLOW_OP_EFFECT))
    return flow_fail(FLOW_INTERRUPTED, "%s: interrupted", flow_op(call->op)->name);
  int profiled = context->profile && context->profile->active;
  if (!profiled) return enqueue(run, kernel, call);
  FLOW_TRY(flow_place_synchronize(run->place));
  double started = flow_clock();
  FLOW_TRY(enqueue(run, kernel, call));
  FLOW_TRY(flow_place_synchronize(run->place));
  flow_profile_add_call(context->profile, kernel, call, flow_clock() - started);
  return FLOW_OK;
}

/* After the call: other places wait for it before they go on with their inputs, and effects on copies reach the originals. */
static flow_status finish(const device_run *run)
{
  for (int i = 0; i < run->input_count; i++) {
    flow_place *home = flow_tensor_place(run->inputs[i]);
    if (flow_op(run->op)->flags & FLOW_OP_EFFECT) flow_storage_written(run->inputs[i]->storage);
    if (home && home != run->place) FLOW_TRY(flow_place_follow(home, run->place));
    if (!home && flow_op(run->op)->flags & FLOW_OP_EFFECT) FLOW_TRY(flow_tensor_copy(run->inputs[i], run->ready[i]));
  }
  return FLOW_OK;
}

/* Inputs are released at once: memory of the device that is given back is used again only by what comes later on its queue. */
flow_status flow_run_at(flow_context *context, flow_place *place, int op, flow_tensor *const *inputs, int input_count,
                        const flow_attributes *attributes, const flow_signature *results, flow_tensor **outputs)
{
  const flow_op_record *record = flow_op(op);
  void *block;
  flow_operand result_operands[FLOW_MAX_OPERANDS];
  FLOW_TRY(flow_alloc_zero((sizeof(flow_operand) + sizeof(flow_tensor *)) * (size_t)(input_count + 1), &block));
  flow_operand *operands = block;
  device_run run = { .context = context, .place = place, .op = op, .input_count = input_count, .inputs = inputs,
                     .ready = (flow_tensor **)(operands + input_count + 1) };
  flow_status status = FLOW_OK;
  for (int i = 0; i < input_count && status == FLOW_OK; i++) {
    status = make_ready(&run, i);
    if (status == FLOW_OK) flow_fill_operand(&operands[i], run.ready[i]);
  }
  for (int i = 0; i < record->outputs && status == FLOW_OK; i++) {
    status = flow_tensor_new_at(place, results[i].dtype, results[i].rank, results[i].dims, &outputs[i]);
    if (status == FLOW_OK) flow_fill_operand(&result_operands[i], outputs[i]);
  }
  if (status == FLOW_OK) {
    flow_call call = { .op = op, .attributes = attributes, .input_count = input_count, .output_count = record->outputs,
                       .inputs = operands, .outputs = result_operands, .exact = context->exact, .scalars = flow_place_scalars(place) };
    status = run_call(&run, &call);
  }
  if (status == FLOW_OK) status = finish(&run);
  for (int i = 0; i < input_count; i++) flow_tensor_release(run.ready[i]);
  flow_free(block);
  return status;
}
