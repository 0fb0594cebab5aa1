/* casts.c: many arrays of float32 as 16-bit floats, in one launch. */
#ifndef FLOW_CUDA_OPS_CASTS
#define FLOW_CUDA_OPS_CASTS

#include "cuda/device/convert.h"

enum { MOST_CASTS = 256, CAST_PIECE = 8 };

/* Array k is the pieces [first, the next array's first) of all: CAST_PIECE elements each, the last one perhaps fewer. */
typedef struct cast_array {
  const float *from;
  uint16_t *to;
  int64_t first, count;
} cast_array;
typedef struct narrow_arrays_arguments {
  cast_array array[MOST_CASTS];
  int32_t arrays, dtype;
} narrow_arrays_arguments;

typedef struct __attribute__((aligned(16))) cast_bits {
  uint16_t v[CAST_PIECE];
} cast_bits;

BODY uint16_t narrowed(int dtype, float value)
{
  return dtype == FLOW_BFLOAT16 ? float_to_bfloat16(value) : float_to_half(value);
}

/* Piece i. Parameters begin anywhere: pieces at multiples of 16 bytes are read and written as a whole. */
BODY void narrow_arrays(int64_t i, const narrow_arrays_arguments *a)
{
  int low = 0, high = a->arrays;
  while (high - low > 1) {
    int middle = (low + high) / 2;
    if (a->array[middle].first <= i) low = middle;
    else high = middle;
  }
  int64_t at = (i - a->array[low].first) * CAST_PIECE, end = a->array[low].count - at;
  const float *from = a->array[low].from + at;
  uint16_t *to = a->array[low].to + at;
  if (end >= CAST_PIECE && ((uintptr_t)from | (uintptr_t)to) % sizeof(cast_bits) == 0) {
    four_floats left = *(const four_floats *)from, right = *(const four_floats *)(from + 4);
    cast_bits bits;
    UNROLL for (int k = 0; k < 4; k++) bits.v[k] = narrowed(a->dtype, left.v[k]);
    UNROLL for (int k = 0; k < 4; k++) bits.v[k + 4] = narrowed(a->dtype, right.v[k]);
    *(cast_bits *)to = bits;
  } else {
    UNROLL for (int k = 0; k < CAST_PIECE; k++) if (k < end) to[k] = narrowed(a->dtype, from[k]);
  }
}

#define CASTS_KERNELS(ELEMENT, BLOCK) ELEMENT(narrow_arrays)

#endif

#if __INCLUDE_LEVEL__ == 0 /* the launches: families.h */
#include <string.h>
#include "cuda/runtime/launch.h"
#include "tensor/tensor.h"

/* Launches what was collected, and begins anew. */
static flow_status launch(const flow_call *call, narrow_arrays_arguments *a, int64_t *pieces)
{
  FLOW_TRY(flow_cuda_launch(call, CUDA_narrow_arrays, *pieces, a, sizeof *a));
  a->arrays = 0;
  *pieces = 0;
  return FLOW_OK;
}

/* All pairs of input and output, MOST_CASTS in a launch. */
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

#endif
