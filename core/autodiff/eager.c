/* eager.c: an op on concrete tensors, at once: outputs are allocated, the kernel chosen, the team asked to help where there is enough to
 * do. The call returns when the op is done; its bits are the same for any number of threads (flow_cut_call cuts by shapes alone). */
#include "graph/context.h"
#include "autodiff/apply.h"
#include "base/float_state.h"
#include "graph/profile.h"
#include "autodiff/eager.h"
#include "tensor/place.h"
#include "tensor/mirrors.h"
#include <string.h>

/* One call as all members of the team see it; lives on the stack of the caller. tickets and done are counted by all members; the rest
 * is written before the team runs, and only read by it. */
typedef struct eager_run {
  const flow_kernel *kernel;
  const flow_call   *call;
  const flow_cut    *cut;
  char              *scratch;
  size_t             scratch_bytes;     /* per member */
  flow_ticket        tickets[FLOW_MAX_PHASES];
  _Atomic int        done[FLOW_MAX_PHASES];       /* parts that were run */
  flow_failure       verdict;
} eager_run;

/* The member has run `taken` parts of a phase; waits for the phase if there is another one. Parts are waited for, not members: a member
 * whose thread wakes up late, or has lost its core, has no part to do. The last phase is not waited for here: the team's end is. */
static void finish_phase(eager_run *run, flow_region *region, int phase, int taken)
{
  int parts = (int)run->cut->parts[phase];
  _Atomic int *done = &run->done[phase];
  if (taken && atomic_fetch_add(done, taken) + taken == parts) flow_region_tell(region, done);
  for (int seen; phase + 1 < run->cut->phases && (seen = atomic_load(done)) < parts;) flow_region_wait(region, done, seen);
}

/* What each member of the team does: the parts of each phase that it draws, in its own scratch block. Threads that are slow draw
 * fewer. After a failure parts are still drawn, so that all are counted, but not run. */
static void eager_member(flow_region *region, int member, int members, void *argument)
{
  eager_run *run = argument;
  flow_call call = *run->call;
  call.scratch = run->scratch + (size_t)member * run->scratch_bytes;
  (void)members;
  for (int phase = 0; phase < run->cut->phases; phase++) {
    int taken = 0;
    for (int64_t part; (part = flow_ticket_take(&run->tickets[phase])) < run->cut->parts[phase]; taken++) {
      if (flow_failure_is_set(&run->verdict)) continue;
      flow_status status = flow_do_part(run->kernel, &call, run->cut, phase, part);
      if (status != FLOW_OK) flow_failure_take(&run->verdict, status);
    }
    finish_phase(run, region, phase, taken);
  }
}

/* The operand points into the tensor, which the caller keeps as long as the call runs. */
void flow_fill_operand(flow_operand *operand, const flow_tensor *tensor)
{
  operand->data = tensor->data;
  operand->unused = 0;
  operand->dtype = tensor->dtype;
  operand->rank = tensor->rank;
  memcpy(operand->shape, tensor->shape, sizeof operand->shape);
  memcpy(operand->strides, tensor->strides, sizeof operand->strides);
}

/* Runs a call whose operands are there. Threads are asked for only if some phase has several parts. An interrupt is looked at before
 * the kernel starts, never within it. Scratch memory is a block for each member, a whole number of cache lines. All memory is taken
 * before the kernel begins: an effect does not stop half way for want of it. */
static flow_status run_call(flow_context *context, flow_call *call)
{
  const flow_kernel *kernel = flow_select_kernel(flow_cpu_device(), call);
  if (!kernel) return flow_fail(FLOW_INTERNAL, "%s: the CPU has no kernel for it", flow_op(call->op)->name);
  if (flow_interrupted(context) && !(flow_op(call->op)->flags & FLOW_OP_EFFECT))   /* effects are done whole or not at all */
    return flow_fail(FLOW_INTERRUPTED, "%s: interrupted", flow_op(call->op)->name);
  flow_cut cut;
  flow_cut_call(flow_op(call->op), kernel, call, &cut);
  int64_t most = 1;
  for (int p = 0; p < cut.phases; p++) most = cut.parts[p] > most ? cut.parts[p] : most;
  int members = most > 1 ? flow_team_size() : 1;
  if (members > most) members = (int)most;

  size_t shared = flow_shared_bytes(flow_op(call->op), kernel, call);
  size_t scratch = kernel->scratch_bytes ? (kernel->scratch_bytes(call) + 63) & ~(size_t)63 : 0;
  void *shared_block = NULL, *scratch_block = NULL;
  flow_status status = FLOW_OK;
  if (shared) FLOW_TRY_GOTO(flow_alloc(shared, &shared_block), done);
  if (scratch) FLOW_TRY_GOTO(flow_alloc(scratch * (size_t)members, &scratch_block), done);
  call->shared = shared_block;
  if (kernel->prepare) FLOW_TRY_GOTO(kernel->prepare(call), done);
  eager_run run;                         /* not zeroed: the failure's text is long */
  run.kernel = kernel;
  run.call = call;
  run.cut = &cut;
  run.scratch = scratch_block;
  run.scratch_bytes = scratch;
  for (int p = 0; p < FLOW_MAX_PHASES; p++) {
    flow_ticket_reset(&run.tickets[p]);
    atomic_store_explicit(&run.done[p], 0, memory_order_relaxed);
  }
  flow_failure_clear(&run.verdict);
  int profiled = context->profile && context->profile->active;
  double started = profiled ? flow_clock() : 0;
  flow_team_run(members, eager_member, &run);
  if (profiled) flow_profile_add_call(context->profile, kernel, call, flow_clock() - started);
  status = flow_failure_raise(&run.verdict);
done:
  flow_free(shared_block);
  flow_free(scratch_block);
  return status;
}

/* An ALIAS op: the input's memory under another shape. A view of the input, or of a copy where it has gaps. */
static flow_status run_alias(flow_context *context, flow_tensor *input, const flow_signature *result, flow_tensor **output)
{
  flow_tensor *contiguous;
  int64_t strides[FLOW_MAX_RANK];
  if (flow_tensor_place(input)) FLOW_TRY(flow_pack_at(context, input, &contiguous));
  else FLOW_TRY(flow_tensor_contiguous(input, &contiguous));
  flow_contiguous_strides(result->rank, result->dims, strides);
  flow_status status = flow_tensor_view(contiguous, result->rank, result->dims, strides, 0, output);
  flow_tensor_release(contiguous);
  return status;
}

/* outputs: new references, some of them also after a failure, which the caller releases. Kernels that take no strides get copies
 * without gaps; an effect gets the tensor itself, since it writes there. */
flow_status flow_run_eager(flow_context *context, int op, flow_tensor *const *inputs, int input_count,
                           const flow_attributes *attributes, const flow_signature *results, flow_tensor **outputs)
{
  FLOW_DEFAULT_FLOATS;
  const flow_op_record *record = flow_op(op);
  static const flow_scalars scalars;   /* eager random ops carry their key in the attributes */
  flow_place *place;
  if (record->flags & FLOW_OP_ALIAS) return run_alias(context, inputs[0], &results[0], &outputs[0]);
  FLOW_TRY(flow_place_of_call(context, op, inputs, input_count, &place));
  if (place) return flow_run_at(context, place, op, inputs, input_count, attributes, results, outputs);

  void *block = NULL;
  flow_operand few_operands[FLOW_MAX_OPERANDS], *operands = few_operands, result_operands[FLOW_MAX_OPERANDS];
  flow_tensor *few[FLOW_MAX_OPERANDS] = { NULL }, **ready = few;
  if (input_count > FLOW_MAX_OPERANDS) {   /* few need no memory, so that effects cannot run out of it */
    FLOW_TRY(flow_alloc_zero((sizeof(flow_operand) + sizeof(flow_tensor *)) * (size_t)input_count, &block));
    operands = block;
    ready = (flow_tensor **)(operands + input_count);
  }
  flow_status status = FLOW_OK;
  for (int i = 0; i < input_count && status == FLOW_OK; i++) {
    if (record->flags & (FLOW_OP_STRIDED | FLOW_OP_EFFECT)) ready[i] = flow_tensor_retain(inputs[i]);
    else status = flow_tensor_contiguous(inputs[i], &ready[i]);
    if (status == FLOW_OK) flow_fill_operand(&operands[i], ready[i]);
  }
  for (int i = 0; i < record->outputs && status == FLOW_OK; i++) {
    status = flow_tensor_new_uninitialized(results[i].dtype, results[i].rank, results[i].dims, &outputs[i]);
    if (status == FLOW_OK) flow_fill_operand(&result_operands[i], outputs[i]);
  }
  if (status == FLOW_OK) {
    flow_call call = { .op = op, .attributes = attributes, .input_count = input_count, .output_count = record->outputs,
                       .inputs = operands, .outputs = result_operands, .exact = context->exact, .scalars = &scalars };
    status = run_call(context, &call);
  }
  for (int i = 0; i < input_count; i++) {
    if (record->flags & FLOW_OP_EFFECT) flow_storage_written(inputs[i]->storage);
    flow_tensor_release(ready[i]);
  }
  flow_free(block);
  return status;
}
