/* attention.c: the ops attention and attention_gradient. */
#include "cuda/ops/network/attention.h"
#include "cuda/device/empty.h"
#include "cuda/runtime/launch.h"
#include "ops/matrix_product.h"

/* The inputs of attention. Those of attention_gradient are g and these, and perhaps both of its outputs. */
enum { QUERY, KEY, VALUE, MASK, LEFT_OUT };
enum { VALUE_GRADIENT, QUERY_GRADIENT, KEY_GRADIENT };

typedef enum launch_kind { FORWARD, ROWS, BACKWARD } launch_kind;
enum { DTYPES = 3, SIZES = 3, WIDE_ACCESS = 16 };

static int is_gradient(const flow_call *call)
{
  return call->op == FLOW_OP_attention_gradient;
}
static int has_kept(const flow_call *call)
{
  return is_gradient(call) && call->attributes->matmul.swapped & FLOW_ATTENTION_KEPT;
}
static const flow_operand *inputs_of(const flow_call *call)
{
  return call->inputs + is_gradient(call);
}

static attention_matrices matrices_of(const flow_call *call, const flow_operand *x, int swapped)
{
  const int in_memory = (call->attributes->matmul.swapped & swapped) != 0, rank = x->rank;
  attention_matrices m = {
    .data = x->data, .rows = matrix_rows(x, in_memory), .row_step = matrix_row_step(x, in_memory), .columns = (int)x->shape[rank - 1]
  };
  const int64_t heads = rank < 3 ? 1 : x->shape[rank - (in_memory ? 2 : 3)], matrix = m.rows * m.columns;
  m.head_step = in_memory ? m.columns : matrix;
  m.outer_step = heads * matrix;
  m.together = (uintptr_t)x->data % WIDE_ACCESS == 0 && m.columns * flow_dtype_size(x->dtype) % WIDE_ACCESS == 0;
  return m;
}

/* A mask broadcasts to the scores {..., rows, keys}, whose leading axes are those of q. */
static void describe_mask(const flow_call *call, attention_arguments *a)
{
  const flow_operand *q = &inputs_of(call)[QUERY], *x = &inputs_of(call)[MASK];
  const int swapped = (call->attributes->matmul.swapped & FLOW_ATTENTION_Q) != 0;
  int64_t steps[FLOW_MAX_RANK] = { 0 }, next = 1;
  if (call->input_count - is_gradient(call) - 2 * has_kept(call) <= MASK) return;
  for (int axis = q->rank - 1, of_x = x->rank - 1; of_x >= 0; axis--, of_x--) {
    steps[axis] = x->shape[of_x] == 1 ? 0 : next;
    next *= x->shape[of_x];
  }
  a->mask = x->data;
  a->left_out = inputs_of(call)[LEFT_OUT].data;
  a->mask_rank = q->rank - 2;
  a->mask_row = steps[q->rank - 2];
  a->mask_key = steps[q->rank - 1];
  for (int axis = 0; axis < a->mask_rank; axis++) {
    a->mask_shape[axis] = q->shape[swapped && axis == a->mask_rank - 1 ? q->rank - 2 : axis];
    a->mask_step[axis] = steps[axis];
  }
}

static int64_t count_matrices(const flow_operand *x, int64_t rows)
{
  return flow_shape_size(x->rank, x->shape) / (rows * x->shape[x->rank - 1]);
}

static int dtype_number(const flow_call *call)
{
  const int dtype = inputs_of(call)[QUERY].dtype;
  return dtype == FLOW_FLOAT32 ? 0 : dtype == FLOW_FLOAT16 ? 1 : 2;
}

/* The kernel for this many columns, which serves all smaller numbers. */
static flow_cuda_kernel kernel_of(const flow_call *call, int64_t columns, int backward)
{
  static const flow_cuda_kernel kernels[2][DTYPES][SIZES] = {
    { { CUDA_attention_float32_64, CUDA_attention_float32_128, CUDA_attention_float32_256 },
      { CUDA_attention_float16_64, CUDA_attention_float16_128, CUDA_attention_float16_256 },
      { CUDA_attention_bfloat16_64, CUDA_attention_bfloat16_128, CUDA_attention_bfloat16_256 } },
    { { CUDA_attention_gradient_float32_64, CUDA_attention_gradient_float32_128, CUDA_attention_gradient_float32_256 },
      { CUDA_attention_gradient_float16_64, CUDA_attention_gradient_float16_128, CUDA_attention_gradient_float16_256 },
      { CUDA_attention_gradient_bfloat16_64, CUDA_attention_gradient_bfloat16_128, CUDA_attention_gradient_bfloat16_256 } }
  };
  return kernels[backward][dtype_number(call)][columns <= 64 ? 0 : columns <= 128 ? 1 : 2];
}

static int64_t most_columns(const flow_call *call)
{
  const flow_operand *q = &inputs_of(call)[QUERY], *v = &inputs_of(call)[VALUE];
  return larger(q->shape[q->rank - 1], v->shape[v->rank - 1]);
}

static flow_status launch(const flow_call *call, attention_arguments *a, launch_kind kind)
{
  static const flow_cuda_kernel of_rows[DTYPES] = { CUDA_attention_rows_float32, CUDA_attention_rows_float16,
                                                    CUDA_attention_rows_bfloat16 };
  const int64_t matrices = count_matrices(&inputs_of(call)[QUERY], matrices_of(call, &inputs_of(call)[QUERY], FLOW_ATTENTION_Q).rows);
  a->row_blocks = parts_of(a->own[0].rows, BLOCK_ROWS);
  flow_cuda_kernel kernel = kind == ROWS ? of_rows[dtype_number(call)] : kernel_of(call, most_columns(call), kind == BACKWARD);
  return flow_cuda_launch(call, kernel, matrices * a->row_blocks, a, sizeof *a);
}

/* What launches have in common. */
static attention_arguments describe_attention(const flow_call *call)
{
  attention_arguments a = { .exact = call->exact != 0, .rows = is_gradient(call) ? call->shared : NULL, .heads = 1 };
  const flow_operand *q = &inputs_of(call)[QUERY];
  if (q->rank > 2) a.heads = q->shape[q->rank - (call->attributes->matmul.swapped & FLOW_ATTENTION_Q ? 2 : 3)];
  describe_mask(call, &a);
  return a;
}

static flow_status run(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  if (flow_cuda_has_empty_input(call)) return flow_cuda_clear_outputs(call);
  if (!call->outputs[0].data && !call->outputs[1].data) return FLOW_OK;
  attention_arguments a = describe_attention(call);
  a.own[0] = matrices_of(call, &call->inputs[QUERY], FLOW_ATTENTION_Q);
  a.tile[0] = matrices_of(call, &call->inputs[KEY], FLOW_ATTENTION_K);
  a.tile[1] = matrices_of(call, &call->inputs[VALUE], FLOW_ATTENTION_V);
  a.out = matrices_of(call, &call->outputs[0], FLOW_ATTENTION_Y);
  a.kept = call->outputs[1].data;
  return launch(call, &a, FORWARD);
}

static flow_status run_gradient(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  static const int swapped[] = { FLOW_ATTENTION_DV, FLOW_ATTENTION_DQ, FLOW_ATTENTION_DK };
  const flow_operand *inputs = inputs_of(call);
  if (flow_cuda_has_empty_input(call)) return flow_cuda_clear_outputs(call);
  const attention_matrices g = matrices_of(call, &call->inputs[0], FLOW_ATTENTION_Y),
                           q = matrices_of(call, &inputs[QUERY], FLOW_ATTENTION_Q);
  const attention_matrices k = matrices_of(call, &inputs[KEY], FLOW_ATTENTION_K), v = matrices_of(call, &inputs[VALUE], FLOW_ATTENTION_V);
  attention_arguments a = describe_attention(call);
  a.own[0] = q, a.own[1] = g, a.tile[0] = k, a.tile[1] = v;
  if (has_kept(call)) {
    const flow_operand *kept = &call->inputs[call->input_count - 2];
    a.out = matrices_of(call, kept, FLOW_ATTENTION_KEPT_Y);
    a.kept = kept[1].data;
  }
  FLOW_TRY(launch(call, &a, has_kept(call) ? ROWS : FORWARD));
  for (int i = QUERY_GRADIENT; i >= VALUE_GRADIENT; i = i == QUERY_GRADIENT ? KEY_GRADIENT : i == KEY_GRADIENT ? VALUE_GRADIENT : -1) {
    if (!call->outputs[i].data) continue;
    a.by_key = i != QUERY_GRADIENT;
    a.of_weights = i == VALUE_GRADIENT;
    if (a.by_key) a.own[0] = k, a.own[1] = v, a.tile[0] = q, a.tile[1] = g;
    a.out = matrices_of(call, &call->outputs[i], swapped[i]);
    FLOW_TRY(launch(call, &a, BACKWARD));
  }
  return FLOW_OK;
}

static size_t shared_bytes(const flow_call *call)
{
  const flow_operand *q = &inputs_of(call)[QUERY];
  const int64_t columns = q->shape[q->rank - 1];
  return columns == 0 ? 0 : sizeof(attention_row) * (size_t)(flow_shape_size(q->rank, q->shape) / columns);
}

/* core/plan/passes/fuse_attention.c makes no others. */
static int supports(const flow_call *call)
{
  return most_columns(call) <= ATTENTION_MOST_COLUMNS;
}

const flow_kernel flow_cuda_attention_kernels[] = { { .variant = "tiles", .supports = supports, .run = run }, { 0 } };
const flow_kernel flow_cuda_attention_gradient_kernels[] = {
  { .variant = "tiles", .supports = supports, .shared_bytes = shared_bytes, .run = run_gradient }, { 0 }
};
