/* filters.c: the op transpose_filters. */
#include "cuda/ops/convolution/filters.h"

#include <string.h>
#include "cuda/device/transposing.h"
#include "tensor/tensor.h"

static int64_t tiles_of(int64_t rows, int64_t columns) { return parts_of(rows, TILE_SIDE) * parts_of(columns, TILE_SIDE); }

static flow_status launch(const flow_call *call, transpose_matrices_arguments *a, int64_t *tiles)
{
  FLOW_TRY(flow_cuda_launch(call, CUDA_transpose_matrices, *tiles, a, sizeof *a));
  a->matrices = 0;
  *tiles = 0;
  return FLOW_OK;
}

static int64_t add(transpose_matrices_arguments *a, int64_t tiles, const void *from, void *to, int64_t rows, int64_t columns)
{
  a->matrix[a->matrices++] = (transposed_matrix){ .from = from, .to = to, .first_tile = tiles, .rows = rows, .columns = columns };
  return tiles + tiles_of(rows, columns);
}

flow_status flow_cuda_transpose(const flow_call *call, const void *from, int from_dtype, void *to, int to_dtype, int64_t rows,
                                int64_t columns)
{
  transpose_matrices_arguments a;
  memset(&a, 0, sizeof a);
  a.from_dtype = from_dtype;
  a.to_dtype = to_dtype;
  int64_t tiles = add(&a, 0, from, to, rows, columns);
  return launch(call, &a, &tiles);
}

static int supports(const flow_call *call) { return flow_cuda_way_of(call) != FLOW_CUDA_OTHER; }

/* As many filters as one launch takes, of one dtype; then the next launch. */
static flow_status run(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  transpose_matrices_arguments a;
  int64_t tiles = 0;
  memset(&a, 0, sizeof a);
  a.to_dtype = call->attributes->transpose_filters.dtype;
  for (int i = 0; i < call->output_count; i++) {
    const flow_operand *x = &call->inputs[i];
    int64_t size = flow_shape_size(x->rank, x->shape);
    if (!call->outputs[i].data || size == 0) continue;
    if (a.matrices == MOST_MATRICES || x->dtype != a.from_dtype) FLOW_TRY(launch(call, &a, &tiles));
    a.from_dtype = x->dtype;
    int64_t rows = call->attributes->transpose_filters.back ? x->shape[0] : size / x->shape[3];
    tiles = add(&a, tiles, x->data, call->outputs[i].data, rows, size / rows);
  }
  return launch(call, &a, &tiles);
}
const flow_kernel flow_cuda_transpose_filters_kernels[] = { { .variant = "tiles", .supports = supports, .run = run }, { 0 } };
