/* elementwise.h: kernels of the elementwise ops.
 *   packed_OP           float32 operands laid out like the output, or one number: four elements at a time
 *   packed_floats       some ops and casts, float32 and 16-bit operands mixed: eight elements at a time
 *   numbers_*, conditions_*, logical_strided, where_strided   every op in one kernel for each type computed in; any dtypes and strides
 *   convert_strided     a cast, any dtypes and strides
 *   fused_chain         a chain of ops whose results are float32 or 16-bit floats
 *   fused_flat          the same where operands are laid out like the output, or one number: eight elements at a time */
#ifndef FLOW_CUDA_OPS_ELEMENTWISE_H
#define FLOW_CUDA_OPS_ELEMENTWISE_H

#include "cuda/ops/elementwise/elementwise_ops.h"
#include "cuda/device/eight.h"
#include "cuda/device/view.h"

/* ---- packed ------------------------------------------------------------------------------------------------------------- */

/* y[i] = op(x[0][i], x[1][i]) for `count` elements; repeat: x[k][0] instead. vectors: all but those are at multiples of 16 bytes. */
typedef struct packed_arguments {
  const float *x[2];
  void        *y;
  int64_t      count;
  int32_t      repeat[2], vectors, unused;
} packed_arguments;

/* Elements first to first + 3 of operand k; what is beyond `count` is 0, and is not stored. */
BODY four_floats packed_load(const packed_arguments *p, int k, int64_t first)
{
  four_floats v;
  const float *x = p->x[k];
  if (p->repeat[k]) {
    UNROLL for (int j = 0; j < 4; j++) v.v[j] = x[0];
  } else if (p->vectors && first + 4 <= p->count) {
    v = *(const four_floats *)(x + first);
  } else {
    UNROLL for (int j = 0; j < 4; j++) v.v[j] = first + j < p->count ? x[first + j] : 0;
  }
  return v;
}

#define PACKED_BODY(name, operands, result, R, expression)                                         \
  typedef packed_arguments name##_arguments;                                                       \
  BODY R name##_element(float a, float b)                                                          \
  {                                                                                                \
    (void)a, (void)b;                                                                              \
    return (R)(expression);                                                                        \
  }                                                                                                \
  BODY void name(int64_t i, const packed_arguments *p)                                             \
  {                                                                                                \
    int64_t first = 4 * i;                                                                         \
    four_floats x0 = packed_load(p, 0, first), x1 = x0;                                            \
    if (operands > 1) x1 = packed_load(p, 1, first);                                               \
    result y;                                                                                      \
    UNROLL for (int j = 0; j < 4; j++) y.v[j] = name##_element(x0.v[j], x1.v[j]);                  \
    R *to = (R *)p->y + first;                                                                     \
    if (p->vectors && first + 4 <= p->count) {                                                     \
      *(result *)to = y;                                                                           \
    } else {                                                                                       \
      UNROLL for (int j = 0; j < 4; j++)                                                           \
        if (first + j < p->count) to[j] = y.v[j];                                                  \
    }                                                                                              \
  }
#define PACKED_NUMBER(E, op, operands, expression)    PACKED_BODY(packed_##op, operands, four_floats, float, expression)
#define PACKED_CONDITION(E, op, operands, expression) PACKED_BODY(packed_##op, operands, four_bytes, uint8_t, expression)
FLOATING_OPS(PACKED_NUMBER, , OF_FLOAT)
CONDITION_OPS(PACKED_CONDITION, )
#undef PACKED_NUMBER
#undef PACKED_CONDITION
#undef PACKED_BODY

/* The same for float32 and 16-bit floats, mixed, eight elements at a time; op: one of LIGHT_OPS, whose code may be there eight times, or
 * ELEMENTWISE_COUNT: a cast. vectors: all operands but repeated ones are at multiples of 16 bytes. */
#define LIGHT_OPS(X)                                                                               \
  X(neg, -a[j]) X(abs, fabsf(a[j])) X(square, a[j] * a[j]) X(relu, a[j] < 0 ? 0 : a[j])             \
  X(add, a[j] + b[j]) X(sub, a[j] - b[j]) X(mul, a[j] * b[j]) X(relu_gradient, b[j] > 0 ? a[j] : 0)  \
  X(maximum, a[j] > b[j] || a[j] != a[j] ? a[j] : b[j]) X(minimum, a[j] < b[j] || a[j] != a[j] ? a[j] : b[j])

typedef struct packed_floats_arguments {
  const void *x[2];
  void       *y;
  int64_t     count;
  int32_t     x_dtype[2], repeat[2], y_dtype, op, operands, vectors;
} packed_floats_arguments;

/* Light ops have few registers and little code; of one operand, b is the same. */
BODY void packed_floats(int64_t i, const packed_floats_arguments *p)
{
  int64_t first = 8 * i;
  int together = p->vectors && first + 8 <= p->count;
  float a[8], b[8];
  int last = p->operands - 1;
  load_eight(p->x[0], p->x_dtype[0], p->repeat[0], first, p->count, together, a);
  load_eight(p->x[last], p->x_dtype[last], p->repeat[last], first, p->count, together, b);
#define CASE(op, expression) case ELEMENTWISE_##op: UNROLL for (int j = 0; j < 8; j++) a[j] = expression; break;
  switch (p->op) {
    LIGHT_OPS(CASE)
    default: break;
  }
#undef CASE
  store_eight(p->y, p->y_dtype, first, p->count, together, a);
}

/* ---- any dtypes and strides ------------------------------------------------------------------------------------------------ */

/* kind: of conversions, the type that they pass through. size: of where, bytes of an element. */
typedef struct strided_arguments { view x[3], y; int32_t op, operands, kind, size; } strided_arguments;
typedef strided_arguments numbers_float_arguments, numbers_double_arguments, numbers_integer_arguments, conditions_float_arguments,
  conditions_double_arguments, conditions_integer_arguments, logical_strided_arguments, where_strided_arguments, convert_strided_arguments;

#define STRIDED_BODY(name, T, load, store, function)                                               \
  BODY void name(int64_t i, const strided_arguments *p)                                            \
  {                                                                                                \
    T a = load(p->x[0].dtype, p->x[0].data, view_offset(&p->x[0], i)), b = a;                      \
    if (p->operands > 1) b = load(p->x[1].dtype, p->x[1].data, view_offset(&p->x[1], i));          \
    store(p->y.dtype, p->y.data, view_offset(&p->y, i), function(p->op, a, b));                    \
  }
STRIDED_BODY(numbers_float, float, load_float, store_float, compute_float)
STRIDED_BODY(numbers_double, double, load_double, store_double, compute_double)
STRIDED_BODY(numbers_integer, int64_t, load_integer, store_integer, compute_integer)
STRIDED_BODY(conditions_float, float, load_float, store_condition, fulfils_float)
STRIDED_BODY(conditions_double, double, load_double, store_condition, fulfils_double)
STRIDED_BODY(conditions_integer, int64_t, load_integer, store_condition, fulfils_int64_t)
#undef STRIDED_BODY

BODY void logical_strided(int64_t i, const strided_arguments *p)
{
  int a = load_condition(p->x[0].dtype, p->x[0].data, view_offset(&p->x[0], i)), b = 0;
  if (p->op != ELEMENTWISE_logical_not) b = load_condition(p->x[1].dtype, p->x[1].data, view_offset(&p->x[1], i));
  store_condition(p->y.dtype, p->y.data, view_offset(&p->y, i),
                  p->op == ELEMENTWISE_logical_not ? !a : p->op == ELEMENTWISE_logical_and ? a & b : a | b);
}

/* Element i of one array to element j of another, both of `size` bytes: 1, 2, 4, 8 or 16. */
BODY void move_element(int size, const void *from, int64_t i, void *to, int64_t j)
{
  switch (size) {
    case 1: ((uint8_t *)to)[j] = ((const uint8_t *)from)[i]; return;
    case 2: ((uint16_t *)to)[j] = ((const uint16_t *)from)[i]; return;
    case 4: ((uint32_t *)to)[j] = ((const uint32_t *)from)[i]; return;
    case 8: ((uint64_t *)to)[j] = ((const uint64_t *)from)[i]; return;
    default: ((four_floats *)to)[j] = ((const four_floats *)from)[i]; return;
  }
}

/* Only the element that is chosen is read; its bits are moved, whatever they mean. */
BODY void where_strided(int64_t i, const strided_arguments *p)
{
  int chosen = load_condition(p->x[0].dtype, p->x[0].data, view_offset(&p->x[0], i)) ? 1 : 2;
  int64_t from = chosen == 1 ? view_offset(&p->x[1], i) : view_offset(&p->x[2], i);
  move_element(p->size, chosen == 1 ? p->x[1].data : p->x[2].data, from, p->y.data, view_offset(&p->y, i));
}

/* ---- casts ------------------------------------------------------------------------------------------------------------------ */

/* kind: number_kind, what the value passes through on its way. */
BODY void convert_element(int kind, int from_dtype, const void *from, int64_t i, int to_dtype, void *to, int64_t j)
{
  switch (kind) {
    case KIND_FLOAT:   store_float(to_dtype, to, j, load_float(from_dtype, from, i)); return;
    case KIND_DOUBLE:  store_double(to_dtype, to, j, load_double(from_dtype, from, i)); return;
    case KIND_INTEGER: store_integer(to_dtype, to, j, load_integer(from_dtype, from, i)); return;
    default:           store_condition(to_dtype, to, j, load_condition(from_dtype, from, i)); return;
  }
}

BODY void convert_strided(int64_t i, const strided_arguments *p)
{
  convert_element(p->kind, p->x[0].dtype, p->x[0].data, view_offset(&p->x[0], i), p->y.dtype, p->y.data, view_offset(&p->y, i));
}

/* ---- chains ------------------------------------------------------------------------------------------------------------------- */

enum { FUSED_INPUTS = 12, FUSED_STEPS = 12, FUSED_REGISTERS = BLOCK_SHARED / 4 / BLOCK_THREADS, FUSED_ELEMENTS = 4 * BLOCK_THREADS };
/* Where a step finds an operand and leaves its result. Numbers from FUSED_REGISTER on are registers, those below are inputs. */
enum { FUSED_REGISTER = 16, FUSED_LAST = 254, FUSED_NOWHERE = 255 };

/* op: elementwise_op, or ELEMENTWISE_COUNT: a cast. The result, rounded to dtype, is also FUSED_LAST of the next step. */
typedef struct fused_step { uint8_t op, a, b, to, dtype; } fused_step;
typedef struct fused_chain_arguments {
  view x[FUSED_INPUTS], y;
  int64_t count;
  int32_t steps, unused;
  fused_step step[FUSED_STEPS];
} fused_chain_arguments;

/* As if the value had been stored as dtype and loaded again. */
BODY float round_float(int dtype, float value)
{
  if (dtype == FLOW_BFLOAT16) return bfloat16_to_float(float_to_bfloat16(value));
  return dtype == FLOW_FLOAT16 ? half_to_float(float_to_half(value)) : value;
}

/* An operand of a step for element i. registers: the thread's, which are BLOCK_THREADS apart in the block's memory. */
BODY float fused_operand(const fused_chain_arguments *p, int from, int64_t i, const float *registers, float last)
{
  if (from == FUSED_LAST) return last;
  if (from < FUSED_REGISTER) return load_float(p->x[from].dtype, p->x[from].data, view_offset(&p->x[from], i));
  return registers[(from - FUSED_REGISTER) * BLOCK_THREADS];
}

/* A block does FUSED_ELEMENTS elements. Registers are memory of the block: they are chosen at run time, which a thread's own cannot be. */
BODY void fused_chain(int phase, int thread, int64_t block, void *shared, const fused_chain_arguments *p)
{
  float *registers = (float *)shared + thread;
  (void)phase;
  for (int64_t i = block * FUSED_ELEMENTS + thread; i < (block + 1) * FUSED_ELEMENTS && i < p->count; i += BLOCK_THREADS) {
    float last = 0;
    for (int s = 0; s < p->steps; s++) {
      const fused_step *step = &p->step[s];
      float a = fused_operand(p, step->a, i, registers, last);
      float b = step->b == FUSED_NOWHERE ? a : fused_operand(p, step->b, i, registers, last);
      last = round_float(step->dtype, step->op == ELEMENTWISE_COUNT ? a : compute_float(step->op, a, b));
      if (step->to != FUSED_NOWHERE) registers[(step->to - FUSED_REGISTER) * BLOCK_THREADS] = last;
    }
    store_float(p->y.dtype, p->y.data, view_offset(&p->y, i), last);
  }
}

/* The same for operands laid out like the output, or one number, of float32 or 16-bit floats: eight elements of a thread at a time.
 * Places are registers of the GPU, which have no index: each is compared. vectors: all but repeated ones are at multiples of 16 bytes. */
enum { FLAT_REGISTERS = 3 };
typedef struct fused_flat_arguments {
  const void *x[FUSED_INPUTS];
  void       *y;
  int64_t     count;
  int32_t     steps, y_dtype, vectors;
  uint8_t     x_dtype[FUSED_INPUTS], repeat[FUSED_INPUTS];
  fused_step  step[FUSED_STEPS];
} fused_flat_arguments;

/* What has no place in LIGHT_OPS: the first of eight, which then go round, so that its code is there once. */
BODY void compute_eight(int op, float a[8], float b[8])
{
  ROLLED for (int k = 0; k < 8; k++) {
    float made = compute_float(op, a[0], b[0]), used = b[0];
    UNROLL for (int j = 0; j < 7; j++) a[j] = a[j + 1];
    UNROLL for (int j = 0; j < 7; j++) b[j] = b[j + 1];
    a[7] = made;
    b[7] = used;
  }
}

/* An operand of a step for elements first to first + 7. */
BODY void fused_flat_load(const fused_flat_arguments *p, int from, int64_t first, int together, float (*kept)[8], const float last[8],
                          float v[8])
{
  if (from == FUSED_LAST) {
    UNROLL for (int j = 0; j < 8; j++) v[j] = last[j];
  } else if (from < FUSED_REGISTER) {
    load_eight(p->x[from], p->x_dtype[from], p->repeat[from], first, p->count, together, v);
  } else {
    UNROLL for (int r = 0; r < FLAT_REGISTERS; r++) {
      UNROLL for (int j = 0; j < 8; j++) v[j] = from == FUSED_REGISTER + r ? kept[r][j] : v[j];
    }
  }
}

/* i: eight elements. Light ops are there eight times each, others once (compute_eight). */
BODY void fused_flat(int64_t i, const fused_flat_arguments *p)
{
  int64_t first = 8 * i;
  int together = p->vectors && first + 8 <= p->count;
  float kept[FLAT_REGISTERS][8], last[8], a[8], b[8];
  UNROLL for (int j = 0; j < 8; j++) {
    last[j] = a[j] = 0;
    UNROLL for (int r = 0; r < FLAT_REGISTERS; r++) kept[r][j] = 0;
  }
  ROLLED for (int s = 0; s < p->steps; s++) {
    const fused_step *step = &p->step[s];
    fused_flat_load(p, step->a, first, together, kept, last, a);
    UNROLL for (int j = 0; j < 8; j++) b[j] = a[j];
    if (step->b != FUSED_NOWHERE) fused_flat_load(p, step->b, first, together, kept, last, b);
#define CASE(op, expression) case ELEMENTWISE_##op: UNROLL for (int j = 0; j < 8; j++) a[j] = expression; break;
    switch (step->op) {
      LIGHT_OPS(CASE)
      case ELEMENTWISE_COUNT: break;
      default: compute_eight(step->op, a, b); break;
    }
#undef CASE
    UNROLL for (int j = 0; j < 8; j++) last[j] = round_float(step->dtype, a[j]);
    if (step->to == FUSED_NOWHERE) continue;
    UNROLL for (int r = 0; r < FLAT_REGISTERS; r++) {
      UNROLL for (int j = 0; j < 8; j++) kept[r][j] = step->to == FUSED_REGISTER + r ? last[j] : kept[r][j];
    }
  }
  store_eight(p->y, p->y_dtype, first, p->count, together, last);
}

#define PACKED_KERNEL(ELEMENT, op, operands, expression) ELEMENT(packed_##op)
#define ELEMENTWISE_KERNELS(ELEMENT, BLOCK)                                                                      \
  FLOATING_OPS(PACKED_KERNEL, ELEMENT, OF_FLOAT) CONDITION_OPS(PACKED_KERNEL, ELEMENT)                           \
  ELEMENT(numbers_float) ELEMENT(numbers_double) ELEMENT(numbers_integer)                                        \
  ELEMENT(conditions_float) ELEMENT(conditions_double) ELEMENT(conditions_integer)                               \
  ELEMENT(packed_floats) ELEMENT(logical_strided) ELEMENT(where_strided) ELEMENT(convert_strided) ELEMENT(fused_flat) \
  BLOCK(fused_chain, 1)

#endif
