/* library_product.c: the ops matmul and dense as a library's products of matrices. Matrices that would have to be repeated along some of
 * several leading axes, but not along others, are left to the own kernels. */
#include <string.h>
#include "cuda/library.h"
#include "cuda/library_kernels.h"
#include "ops/op.h"

/* Elements between the matrices of an operand along the leading axes of the result, if it is the same everywhere: 0, or a matrix. */
static int batch_stride(const flow_operand *x, const flow_operand *c, int batch_rank, int64_t matrices, int64_t *stride)
{
  int own = x->rank > 2 ? x->rank - 2 : 0, same = 1;
  int64_t count = 1;
  for (int axis = 0; axis < own; axis++) {
    count *= x->shape[axis];
    same &= x->shape[axis] == c->shape[axis + batch_rank - own];
  }
  *stride = count == 1 ? 0 : x->shape[x->rank - 1] * x->shape[x->rank - 2];
  return count == 1 || (same && count == matrices);
}

static int describe_matmul(const flow_call *call, flow_library_product *p)
{
  const flow_operand *a = &call->inputs[0], *b = &call->inputs[1], *c = &call->outputs[0];
  p->transpose_a = a->rank >= 2 && call->attributes->matmul.transpose_a;
  p->transpose_b = b->rank >= 2 && call->attributes->matmul.transpose_b;
  int64_t a_rows = a->rank >= 2 ? a->shape[a->rank - 2] : 1, a_columns = a->shape[a->rank - 1];
  int64_t b_rows = b->rank >= 2 ? b->shape[b->rank - 2] : b->shape[0], b_columns = b->rank >= 2 ? b->shape[b->rank - 1] : 1;
  p->m = p->transpose_a ? a_columns : a_rows;
  p->k = p->transpose_a ? a_rows : a_columns;
  p->n = p->transpose_b ? b_rows : b_columns;
  int rank = a->rank > b->rank ? a->rank : b->rank, batch_rank = rank > 2 ? rank - 2 : 0;
  p->batch = 1;
  for (int axis = 0; axis < batch_rank; axis++) p->batch *= c->shape[axis];
  if (!batch_stride(a, c, batch_rank, p->batch, &p->stride_a) || !batch_stride(b, c, batch_rank, p->batch, &p->stride_b)) return 0;
  if (p->batch > 1 && p->stride_b == 0 && p->stride_a != 0 && !p->transpose_a) {      /* one tall matrix */
    p->m *= p->batch;
    p->batch = 1;
    p->stride_a = 0;
  }
  return 1;
}

static int describe(const flow_call *call, flow_library_product *p)
{
  const flow_operand *x = &call->inputs[0], *w = &call->inputs[1], *y = &call->outputs[0];
  memset(p, 0, sizeof *p);
  p->dtype = y->dtype;
  p->exact = call->exact != 0;
  if (p->dtype != FLOW_FLOAT32 && p->dtype != FLOW_FLOAT16 && p->dtype != FLOW_BFLOAT16) return 0;
  if (call->op == FLOW_OP_matmul) {
    if (!describe_matmul(call, p)) return 0;
  } else {
    p->batch = p->m = 1;
    for (int axis = 0; axis < x->rank - 1; axis++) p->m *= x->shape[axis];
    p->k = w->shape[0];
    p->n = w->shape[1];
    p->bias = 1;
    p->relu = call->attributes->matmul.activation == FLOW_RELU;
  }
  return p->m > 0 && p->n > 0 && p->k > 0 && p->batch > 0;
}

static const flow_library_plan *plan_of(const flow_call *call)
{
  flow_library_product p;
  return describe(call, &p) ? flow_library_plan_product(call, &p) : NULL;
}

int flow_library_product_supports(const flow_call *call) { return plan_of(call) != NULL; }

size_t flow_library_product_shared_bytes(const flow_call *call)
{
  const flow_library_plan *plan = plan_of(call);
  return plan ? plan->workspace : 0;
}

flow_status flow_library_product_run(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  const flow_library_plan *plan = plan_of(call);
  if (!plan) return flow_fail(FLOW_INTERNAL, "a product that has no plan is run");
  if (!call->outputs[0].data) return FLOW_OK;
  return flow_library_multiply(call, plan, call->inputs[0].data, call->inputs[1].data,
                               call->op == FLOW_OP_dense ? call->inputs[2].data : NULL, call->outputs[0].data, call->shared);
}
