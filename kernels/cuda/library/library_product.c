/* library_product.c: the ops matmul and dense as a library's products of matrices. Matrices that would have to be repeated along some of
 * several leading axes, but not along others, are left to the own kernels. */
#include <string.h>
#include "cuda/device/empty.h"
#include "cuda/library/library.h"
#include "cuda/library/library_kernels.h"
#include "ops/matrix_product.h"

/* Elements between the matrices of an operand, if it is the same everywhere: 0, or a matrix. */
static int batch_stride(const product *p, const int64_t *step, int64_t matrix, int64_t *stride)
{
  int repeated = 1, neighbours = 1;
  int64_t next = matrix;
  for (int axis = p->batch_rank - 1; axis >= 0; axis--) {
    if (p->batch[axis] == 1) continue;
    repeated &= step[axis] == 0;
    neighbours &= step[axis] == next;
    next *= p->batch[axis];
  }
  *stride = repeated ? 0 : matrix;
  return repeated || neighbours;
}

/* The product in the library's terms. 0: a library cannot take it, because of its dtypes, because it is empty, or because of how its
 * batch is laid out; own kernels do. Such answers depend on shapes and dtypes only, not on addresses, so that the planner and the run
 * agree. */
static int read_formula(const flow_call *call, flow_library_product *out)
{
  product p = describe(call);
  int dtype = call->inputs[0].dtype, result = call->outputs[0].dtype;
  memset(out, 0, sizeof *out);
  if (call->op == FLOW_OP_matmul && call->attributes->matmul.swapped) return 0;      /* only plans of the CPU have it */
  if (dtype != FLOW_FLOAT32 && dtype != FLOW_FLOAT16 && dtype != FLOW_BFLOAT16) return 0;
  if (call->inputs[1].dtype != dtype || (result != dtype && result != FLOW_FLOAT32)) return 0;
  if (call->op == FLOW_OP_dense && (call->inputs[2].dtype != dtype || result != dtype)) return 0;      /* a wider result has a wider bias */
  if (p.m < 1 || p.n < 1 || p.k < 1 || p.matrices < 1) return 0;
  out->dtype = dtype;
  out->result_dtype = result;
  out->bias = call->op == FLOW_OP_dense;
  out->relu = p.relu;
  out->exact = call->exact != 0;
  out->transpose_a = p.transpose_a;
  out->transpose_b = p.transpose_b;
  out->m = p.m;
  out->n = p.n;
  out->k = p.k;
  out->batch = p.matrices;
  out->alignment = FLOW_LIBRARY_ALIGNMENT;
  return batch_stride(&p, p.a_step, p.m * p.k, &out->stride_a) && batch_stride(&p, p.b_step, p.k * p.n, &out->stride_b);
}

static const flow_library_plan *plan_of(const flow_call *call)
{
  flow_library_product p;
  return read_formula(call, &p) ? flow_library_plan_product(call, &p) : NULL;
}

int flow_library_product_supports(const flow_call *call) { return plan_of(call) != NULL; }

size_t flow_library_product_shared_bytes(const flow_call *call)
{
  const flow_library_plan *plan = plan_of(call);
  return plan ? plan->workspace : 0;
}

static int is_aligned(const flow_operand *x) { return (uintptr_t)x->data % FLOW_LIBRARY_ALIGNMENT == 0; }

/* The plan for operands that begin where these do. One for any address, of elements of the inputs, which are not larger than the result's,
 * needs no workspace, so that there always is enough. */
static const flow_library_plan *plan_here(const flow_call *call)
{
  flow_library_product p;
  int aligned = is_aligned(&call->outputs[0]);
  if (!read_formula(call, &p)) return NULL;
  for (int i = 0; i < call->input_count; i++) aligned &= is_aligned(&call->inputs[i]);
  if (!aligned) p.alignment = flow_dtype_size(p.dtype);
  return flow_library_plan_product(call, &p);
}

flow_status flow_library_product_run(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  if (flow_cuda_has_empty_input(call)) return flow_cuda_clear_outputs(call);
  const flow_library_plan *plan = plan_here(call);
  if (!plan) return flow_fail(FLOW_INTERNAL, "a product that has no plan is run");
  if (!call->outputs[0].data) return FLOW_OK;
  return flow_library_multiply(call, plan, call->inputs[0].data, call->inputs[1].data,
                               call->op == FLOW_OP_dense ? call->inputs[2].data : NULL, call->outputs[0].data, call->shared);
}
