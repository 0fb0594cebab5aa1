/* matmul.c: the ops matmul and dense. */
#include "cuda/runtime/launch.h"
#include "cuda/library/library_kernels.h"
#include "base/status.h"
#include "ops/matrix_product.h"

/* As many threads as keep a large GPU busy; below, k is cut, but not into slices shorter than a few blocks of sums. */
enum { WANTED_TILES = 65536, SHORTEST_SLICE = 2 * MATMUL_BLOCK };

/* Tiles of 4 x 4 results, one for each thread. Where there are fewer than WANTED_TILES, k is cut into slices of at least SHORTEST_SLICE,
 * which are added afterwards. */
static matmul_arguments describe_tiles(const flow_call *call)
{
  product p = describe(call);
  matmul_arguments a = {
    .a = p.a, .b = p.b, .bias = p.bias, .c = p.c, .matrices = p.matrices, .m = p.m, .n = p.n, .k = p.k, .relu = p.relu,
    .a_row = p.transpose_a ? 1 : p.lda, .a_k = p.transpose_a ? p.lda : 1, .b_k = p.transpose_b ? 1 : p.ldb,
    .b_column = p.transpose_b ? p.ldb : 1, .row_tiles = parts_of(p.m, 4), .column_tiles = parts_of(p.n, 4), .slices = 1, .slice = p.k,
    .batch_rank = p.batch_rank, .a_dtype = call->inputs[0].dtype, .b_dtype = call->inputs[1].dtype, .c_dtype = call->outputs[0].dtype,
    .bias_dtype = call->inputs[call->input_count - 1].dtype
  };
  int64_t matrices_a = 0, matrices_b = 0, tiles = a.matrices * a.row_tiles * a.column_tiles;
  for (int axis = 0; axis < p.batch_rank; axis++) {
    a.batch[axis] = p.batch[axis];
    a.a_step[axis] = p.a_step[axis];
    a.b_step[axis] = p.b_step[axis];
    matrices_a |= p.a_step[axis];
    matrices_b |= p.b_step[axis];
  }
  if (tiles > 0 && tiles < WANTED_TILES && a.k >= 2 * SHORTEST_SLICE) {
    int64_t most = a.k / SHORTEST_SLICE, wanted = parts_of(WANTED_TILES, tiles);
    a.slice = parts_of(a.k, wanted < most ? wanted : most);
    a.slices = parts_of(a.k, a.slice);
  }
  a.a_together = a.m % 4 == 0 && reads_in_fours(a.a, a.a_k | matrices_a);
  a.b_together = a.n % 4 == 0 && reads_in_fours(a.b, a.b_k | matrices_b);
  a.c_together = reads_in_fours(a.c, a.n);
  return a;
}

static int is_integer(const flow_call *call) { return call->inputs[0].dtype >= FLOW_INT8; }

static size_t shared_bytes(const flow_call *call)
{
  matmul_arguments a = describe_tiles(call);
  if (a.slices == 1) return 0;
  return (size_t)(a.slices * a.matrices * a.m * a.n) * (!is_integer(call) && flow_cuda_is_float32(call) ? sizeof(float) : sizeof(double));
}

static flow_status run(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  static const flow_cuda_kernel kernels[3][2] = { { CUDA_matmul_tiles_float32, CUDA_matmul_slices_float32 },
                                                  { CUDA_matmul_tiles_other, CUDA_matmul_slices_other },
                                                  { CUDA_matmul_tiles_integers, CUDA_matmul_slices_integers } };
  const flow_cuda_kernel *kernel = kernels[is_integer(call) ? 2 : flow_cuda_is_float32(call) ? 0 : 1];
  matmul_arguments a = describe_tiles(call);
  if (!a.c) return FLOW_OK;
  a.partial = a.slices > 1 ? call->shared : NULL;
  FLOW_TRY(flow_cuda_launch(call, kernel[0], a.slices * a.matrices * a.row_tiles * a.column_tiles, &a, sizeof a));
  return a.slices > 1 ? flow_cuda_launch(call, kernel[1], a.matrices * a.m * a.n, &a, sizeof a) : FLOW_OK;
}

/* Only plans of the CPU swap axes in memory (flow_swapped). */
static int supports(const flow_call *call) { return call->op != FLOW_OP_matmul || !call->attributes->matmul.swapped; }

#define TILES { .variant = "tiles", .supports = supports, .shared_bytes = shared_bytes, .run = run }
const flow_kernel flow_cuda_matmul_kernels[] = { FLOW_LIBRARY_PRODUCT, TILES, { 0 } };
const flow_kernel flow_cuda_dense_kernels[] = { FLOW_LIBRARY_PRODUCT, TILES, { 0 } };
