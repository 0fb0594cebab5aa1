/* casts.c: the op casts. */
#include "cuda/ops/movement/casts.h"

#include <string.h>
#include "cuda/runtime/launch.h"
#include "tensor/tensor.h"

static flow_status launch(const flow_call *call, narrow_arrays_arguments *a, int64_t *pieces)
{
  FLOW_TRY(flow_cuda_launch(call, CUDA_narrow_arrays, *pieces, a, sizeof *a));
  a->arrays = 0;
  *pieces = 0;
  return FLOW_OK;
}

static flow_status run(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  narrow_arrays_arguments a;
  int64_t pieces = 0;
  memset(&a, 0, sizeof a);
  a.dtype = call->attributes->cast.dtype;
  for (int i = 0; i < call->output_count; i++) {
    const flow_operand *y = &call->outputs[i];
    int64_t count = flow_shape_size(y->rank, y->shape);
    if (!y->data || count == 0) continue;
    a.array[a.arrays++] = (cast_array){ .from = call->inputs[i].data, .to = y->data, .first = pieces, .count = count };
    pieces += (count + CAST_PIECE - 1) / CAST_PIECE;
    if (a.arrays == MOST_CASTS) FLOW_TRY(launch(call, &a, &pieces));
  }
  return launch(call, &a, &pieces);
}
const flow_kernel flow_cuda_casts_kernels[] = { { .variant = "together", .run = run }, { 0 } };
