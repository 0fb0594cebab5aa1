/* reduce.c: the ops sum, prod, max, min, any, all, argmax and argmin: how a call is spread over threads, blocks and slices. */
#include "cuda/ops/reduce/reduce_wide.h"

#include "cuda/runtime/device_table.h"
#include "cuda/runtime/launch.h"
#include "cuda/device/view_make.h"
#include "ops/op.h"
#include "tensor/tensor.h"

/* Blocks that keep a device busy; elements a lane takes before one more slice pays; slices that the second launch reduces at one go. */
enum { BLOCKS_WANTED = 512, LEAST_OF_A_LANE = 32, MOST_SLICES = 512, MOST_OUTPUTS_SIDE_BY_SIDE = 32 };
/* Of FEW_ELEMENTS threads wait for each other longer than for memory: a thread takes short lines as a whole, or REDUCE_RUN elements. Up to
 * FEW_IN_WARPS the lanes of an output are in one warp, which waits for itself alone in a bundle (bundling.h): that saves a turn, and what
 * neighbours do not read side by side is in the cache for the other warps. */
enum { FEW_ELEMENTS = 4096, SHORT_LINE = 16, FEW_IN_WARPS = 16384, WARP = 32 };

/* A bit for each axis that goes away; no axes named are all of them. */
static unsigned reduced_axes(const flow_attributes *attributes, int rank)
{
  unsigned mask = 0;
  for (int i = 0; i < attributes->reduce.count; i++) {
    int axis = attributes->reduce.axes[i];
    mask |= 1u << (axis < 0 ? axis + rank : axis);
  }
  return attributes->reduce.count ? mask : (1u << rank) - 1;
}

static int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

/* The least power of two that is not below n, `most` where that is less. */
static int32_t power_of_two_from(int64_t n, int32_t most)
{
  int32_t power = 1;
  while (power < n && power < most) power *= 2;
  return power;
}

static int64_t divided_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* Lanes and outputs of a block for what the views say; slices are not cut yet. */
static void spread_lanes(reduce_arguments *a)
{
  int64_t kept = magnitude(a->x.stride[a->x.rank - 1]), along = magnitude(a->along.stride[a->along.rank - 1]);
  int few = a->length <= FEW_ELEMENTS && a->outputs <= FEW_ELEMENTS && a->length * a->outputs <= FEW_ELEMENTS;
  int64_t parts = !few ? a->length : a->length <= SHORT_LINE ? 1 : divided_up(a->length, REDUCE_RUN);
  int32_t columns = power_of_two_from(a->outputs, MOST_OUTPUTS_SIDE_BY_SIDE), lanes = power_of_two_from(parts, BLOCK_THREADS);
  const int packed = a->length <= 1 || (a->outputs > 1 && kept < along);
  a->lanes = packed && lanes > BLOCK_THREADS / columns ? BLOCK_THREADS / columns : lanes;
  a->outputs_first = packed && (a->lanes == 1 || a->lanes > WARP || a->length * a->outputs > FEW_IN_WARPS);
  a->groups = divided_up(a->outputs, BLOCK_THREADS / a->lanes);
  a->slice = a->length;
}

/* Cuts the reduced axis where the outputs alone do not fill the device: each slice makes partial results, a second launch reduces those.
 * No slice is shorter than `least` turns of a lane. Returns the number of slices; 1: no cut. Shapes alone decide, so that sums have one
 * order. */
static int64_t cut_slices(reduce_arguments *a, int64_t least)
{
  if (a->outputs == 0) return 1;
  int64_t slices = a->length / (least * a->lanes), wanted = divided_up(BLOCKS_WANTED, a->groups);
  if (slices > wanted) slices = wanted;
  if (slices > MOST_SLICES) slices = MOST_SLICES;
  if (slices < 2) return 1;
  a->slice = divided_up(a->length, slices);
  return divided_up(a->length, a->slice);
}

/* The operand as two views: over the axes that stay (one output each) and over those that are reduced (the elements of an output).
 * Neighbouring axes are joined by the view where their strides allow it. */
static reduce_arguments arguments_of(const flow_call *call)
{
  const flow_operand *x = &call->inputs[0], *y = &call->outputs[0];
  unsigned reduced = reduced_axes(call->attributes, x->rank);
  int64_t kept_shape[FLOW_MAX_RANK], kept_strides[FLOW_MAX_RANK], shape[FLOW_MAX_RANK], strides[FLOW_MAX_RANK];
  int kept = 0, along = 0;
  for (int i = 0; i < x->rank; i++) {
    if (reduced >> i & 1) {
      shape[along] = x->shape[i];
      strides[along++] = x->strides[i];
    } else {
      kept_shape[kept] = x->shape[i];
      kept_strides[kept++] = x->strides[i];
    }
  }
  reduce_arguments a = { .x = flow_cuda_view_strided(x->data, x->dtype, kept, kept_shape, kept_strides),
                         .along = flow_cuda_view_strided(NULL, x->dtype, along, shape, strides),
                         .y = flow_cuda_view(y, y->rank, y->shape), .outputs = flow_shape_size(kept, kept_shape),
                         .length = flow_shape_size(along, shape), .base = call->attributes->reduce.base,
                         .smallest = call->op == FLOW_OP_argmin };
  spread_lanes(&a);
  return a;
}

/* There is no largest or smallest of nothing, unless nobody asks for one. */
static flow_status check_not_empty(const flow_call *call, const reduce_arguments *a)
{
  if (a->outputs == 0 || a->length > 0) return FLOW_OK;
  return flow_fail(FLOW_INVALID_ARGUMENT, "%s of an empty axis", flow_cuda_op_name(call->op));
}

/* ---- reductions ----------------------------------------------------------------------------------------------------------------- */

/* Kernels by what an op computes in, and of the slices' results.
 * extreme: the op has no value for an empty axis; condition: its results are 0 or 1. */
typedef struct reduction { flow_cuda_kernel float32, floats, doubles, integers; int extreme, condition; } reduction;

static const reduction reductions[FLOW_OP_COUNT] = {
  [FLOW_OP_sum] = { REDUCTION_sum },
#define FLOW_REDUCTION(name, ...) [FLOW_OP_##name] = { REDUCTION_##name },
#define FLOW_OP(...)
#include "ops/ops.def"
#undef FLOW_OP
};

/* Sums of fewer elements are short, and may go together with other short launches. */
enum { MANY_ELEMENTS = 65536 };

/* Of the first axes; one of one element has no second. */
static int has_whole_bundles(const view *v, int axes, int width)
{
  for (int axis = 0; axis < axes; axis++)
    if (v->size[axis] > 1 && v->stride[axis] % width != 0) return 0;
  return 1;
}

/* The kernel of reduce_wide.h for a sum, with lanes, groups and length as it takes them; or -1. A turn of lines is a bundle. */
static int spread_wide(const flow_call *call, reduce_arguments *a, int64_t *least)
{
  static const struct { int columns, lines; } kernels[FLOW_DTYPE_COUNT] = {
    [FLOW_FLOAT32] = { CUDA_reduce_wide_float32, CUDA_reduce_lines_float32 },
    [FLOW_FLOAT16] = { CUDA_reduce_wide_float16, CUDA_reduce_lines_float16 },
    [FLOW_BFLOAT16] = { CUDA_reduce_wide_bfloat16, CUDA_reduce_lines_bfloat16 }
  };
  const int dtype = a->x.dtype, width = WIDE_BYTES / (int)flow_dtype_size(dtype);
  const view *packed = a->outputs_first ? &a->x : &a->along, *other = a->outputs_first ? &a->along : &a->x;
  const int last = packed->rank - 1;
  *least = LEAST_OF_A_LANE;
  if (call->op != FLOW_OP_sum || !flow_dtype_is_float(dtype) || dtype == FLOW_FLOAT64 || a->length * a->outputs < MANY_ELEMENTS) return -1;
  if (packed->stride[last] != 1 || packed->size[last] % width != 0) return -1;
  if (!has_whole_bundles(packed, last, width) || !has_whole_bundles(other, other->rank, width)) return -1;
  if (a->outputs_first) {
    int64_t bundles = a->outputs / width;
    int32_t columns = power_of_two_from(bundles, MOST_OUTPUTS_SIDE_BY_SIDE);
    a->lanes = power_of_two_from(a->length, BLOCK_THREADS / columns);
    a->groups = divided_up(bundles, BLOCK_THREADS / a->lanes);
    return kernels[dtype].columns;
  }
  *least = LEAST_OF_A_LANE / REDUCE_RUN;
  a->slice = a->length /= width;
  a->lanes = power_of_two_from(a->length, BLOCK_THREADS);
  a->groups = divided_up(a->outputs, BLOCK_THREADS / a->lanes);
  return kernels[dtype].lines;
}

/* Partial results are 8 bytes each, doubles or int64, so that slices lose nothing. */
static size_t shared_bytes(const flow_call *call)
{
  reduce_arguments a = arguments_of(call);
  int64_t least;
  spread_wide(call, &a, &least);
  int64_t slices = cut_slices(&a, least);
  return slices > 1 ? (size_t)(slices * a.outputs) * 8 : 0;
}

/* One launch, or two where the reduced axis is cut into slices: the second reduces the partial results in double or int64, whatever the
 * dtype. */
static flow_status run_reduce(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  int dtype = call->inputs[0].dtype, floating = flow_dtype_is_float(dtype);
  reduction kernels = reductions[call->op];
  if (!call->outputs[0].data) return FLOW_OK;
  reduce_arguments a = arguments_of(call);
  if (kernels.extreme) FLOW_TRY(check_not_empty(call, &a));
  flow_cuda_kernel kernel = dtype == FLOW_FLOAT32 ? kernels.float32 : dtype == FLOW_FLOAT64 ? kernels.doubles
                          : floating ? kernels.floats : kernels.integers;
  int64_t least;
  const int wide = spread_wide(call, &a, &least);
  int64_t slices = cut_slices(&a, least);
  if (slices > 1) a.partials = call->shared;
  if (wide >= 0) {
    reduce_wide_arguments of_wide = { .of = a, .aligned = (uintptr_t)a.x.data % WIDE_BYTES == 0 };
    FLOW_TRY(flow_cuda_launch(call, (flow_cuda_kernel)wide, a.groups * slices, &of_wide, sizeof of_wide));
  } else {
    FLOW_TRY(flow_cuda_launch(call, kernel, a.groups * slices, &a, sizeof a));
  }
  if (slices == 1) return FLOW_OK;
  int partial_dtype = floating && !kernels.condition ? FLOW_FLOAT64 : FLOW_INT64;
  reduce_arguments last = { .x = flow_cuda_view_strided(call->shared, partial_dtype, 1, &a.outputs, &(int64_t){ 1 }),
                            .along = flow_cuda_view_strided(NULL, partial_dtype, 1, &slices, &a.outputs),
                            .y = a.y, .outputs = a.outputs, .length = slices };
  spread_lanes(&last);
  return flow_cuda_launch(call, floating ? kernels.doubles : kernels.integers, last.groups, &last, sizeof last);
}

#define KERNELS(op) \
  const flow_kernel flow_cuda_##op##_kernels[] = { { .variant = "blocks", .shared_bytes = shared_bytes, .run = run_reduce }, { 0 } };
KERNELS(sum)
#define FLOW_REDUCTION(name, ...) KERNELS(name)
#define FLOW_OP(...)
#include "ops/ops.def"
#undef FLOW_OP
#undef KERNELS

/* ---- positions --------------------------------------------------------------------------------------------------------------------- */

/* Whether lines can be read in groups of eight. If so, divides the lanes among groups in place of single elements. */
static int spread_groups(reduce_arguments *a)
{
  enum { GROUP = 8 };
  const int last = a->along.rank - 1;
  if (!flow_dtype_is_float(a->x.dtype) || a->x.dtype == FLOW_FLOAT64 || a->outputs_first || a->lanes == 1 || last != 0) return 0;
  if (a->along.stride[0] != 1 || a->length % GROUP != 0 || (uintptr_t)a->x.data % WIDE_BYTES != 0) return 0;
  if (!has_whole_bundles(&a->x, a->x.rank, GROUP)) return 0;
  a->lanes = power_of_two_from(a->length / GROUP, BLOCK_THREADS);
  a->groups = divided_up(a->outputs, BLOCK_THREADS / a->lanes);
  return 1;
}

/* Never cut into slices: a slice had to give its value beside the position. */
static flow_status run_position(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  int dtype = call->inputs[0].dtype;
  if (!call->outputs[0].data) return FLOW_OK;
  reduce_arguments a = arguments_of(call);
  FLOW_TRY(check_not_empty(call, &a));
  a.grouped = spread_groups(&a);
  flow_cuda_kernel kernel = dtype == FLOW_FLOAT64 ? CUDA_position_double : flow_dtype_is_float(dtype) ? CUDA_position_float
                          : CUDA_position_integer;
  return flow_cuda_launch(call, kernel, a.groups, &a, sizeof a);
}
const flow_kernel flow_cuda_argmax_kernels[] = { { .variant = "blocks", .run = run_position }, { 0 } };
const flow_kernel flow_cuda_argmin_kernels[] = { { .variant = "blocks", .run = run_position }, { 0 } };
