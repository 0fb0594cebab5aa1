/* replicas.c: what replicas that train together know and do: how many rows each has, and, for one that is alone, the sum over all of
 * them. Several replicas are added up by the engine (core/run/executor.c), since that takes all of them at once. */
#include "cpu/vector.h"
#include <string.h>

/* Of a packed operand. */
static size_t bytes_of(const flow_operand *x)
{
  size_t count = 1;
  for (int i = 0; i < x->rank; i++) count *= (size_t)x->shape[i];
  return count * (size_t)flow_dtype_size(x->dtype);
}

/* The sum over one replica is its own value. */
static flow_status run_all_reduce(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase; (void)begin; (void)end;
  const flow_operand *x = &call->inputs[0], *y = &call->outputs[0];
  if (y->data && y->data != x->data) memmove(y->data, x->data, bytes_of(y));
  return FLOW_OK;
}

/* The others are added by the engine. */
static flow_status run_all_gather(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase; (void)begin; (void)end;
  const flow_operand *x = &call->inputs[0], *y = &call->outputs[0];
  size_t bytes = bytes_of(x), all = bytes_of(y);
  if (!y->data) return FLOW_OK;
  if (y->data != x->data) memmove(y->data, x->data, bytes);
  memset((char *)y->data + bytes, 0, all - bytes);
  return FLOW_OK;
}

/* The rows of all replicas in this step, as a float32 scalar. */
static flow_status run_global_rows(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase; (void)begin; (void)end;
  if (call->outputs[0].data) *(float *)call->outputs[0].data = (float)call->scalars->global_rows;
  return FLOW_OK;
}

/* Without any rows the replicas share evenly whatever there is: nothing. */
static flow_status run_row_share(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase; (void)begin; (void)end;
  const flow_scalars *s = call->scalars;
  double share = s->global_rows > 0 ? (double)s->rows / (double)s->global_rows : 1;
  if (call->outputs[0].data) *(float *)call->outputs[0].data = (float)share;
  return FLOW_OK;
}

const flow_kernel FLOW_KERNELS(all_reduce)[] = { { .variant = "sum", .run = run_all_reduce }, { 0 } };
const flow_kernel FLOW_KERNELS(all_gather)[] = { { .variant = "rows", .run = run_all_gather }, { 0 } };
const flow_kernel FLOW_KERNELS(global_rows)[] = { { .variant = "scalar", .run = run_global_rows }, { 0 } };
const flow_kernel FLOW_KERNELS(row_share)[] = { { .variant = "scalar", .run = run_row_share }, { 0 } };
