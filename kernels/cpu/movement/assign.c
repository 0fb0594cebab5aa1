/* assign.c: the ops assign and assign_add: input 0 (a variable's storage) = or += input 1, cast and broadcast to it.
 *
 * One variant for everything. Equal dtypes are copied bit by bit; float32 is added as it is, and so are integers to int64, which wrap;
 * whatever is left goes through double, where floats saturate to integers. */
#include "cpu/vector.h"
#include "tensor/convert.h"

/* PART: elements of a part, 64 KB of floats, so that a part outweighs its ticket. CHUNK: doubles that are converted at a time, 2 KB each
 * of x and y, which stay in the first-level cache. */
enum { PART = 16384, CHUNK = 256 };

/* How the elements of the target are walked: lines of `inner`, each with fixed steps. */
typedef struct walk { int64_t size, inner, to_step, from_step; } walk;

/* Axes of length 1 are never walked, so their strides do not count. */
static int is_contiguous(const flow_operand *x)
{
  int64_t strides[FLOW_MAX_RANK];
  flow_contiguous_strides(x->rank, x->shape, strides);
  for (int i = 0; i < x->rank; i++)
    if (x->shape[i] != 1 && x->strides[i] != strides[i]) return 0;
  return 1;
}

/* One line for the whole target where both operands allow it; otherwise lines of the target's last axis. `from` has the target's shape
 * after broadcasting (the shape rule has checked that). */
static walk walk_of(const flow_operand *to, const flow_operand *from)
{
  walk w = { .size = flow_shape_size(to->rank, to->shape) };
  int64_t count = flow_shape_size(from->rank, from->shape);
  if (to->rank == 0 || (is_contiguous(to) && (count == 1 || (count == w.size && is_contiguous(from))))) {
    w.inner = w.size;
    w.to_step = 1;
    w.from_step = count == 1 ? 0 : 1;
  } else {
    w.inner = to->shape[to->rank - 1];
    w.to_step = to->strides[to->rank - 1];
    w.from_step = from->rank == 0 || from->shape[from->rank - 1] == 1 ? 0 : from->strides[from->rank - 1];
  }
  return w;
}

/* Byte offsets of element `index` of the target in both operands. */
static void offsets(const flow_operand *to, const flow_operand *from, const walk *w, int64_t index, int64_t *at_to, int64_t *at_from)
{
  int64_t t = index % w->inner * w->to_step, f = index % w->inner * w->from_step;
  if (w->inner != w->size) {
    int64_t rest = index / w->inner;
    for (int axis = to->rank - 2; axis >= 0; axis--) {
      int64_t position = rest % to->shape[axis];
      int of_from = axis - (to->rank - from->rank);
      rest /= to->shape[axis];
      t += position * to->strides[axis];
      if (of_from >= 0 && from->shape[of_from] != 1) f += position * from->strides[of_from];
    }
  }
  *at_to = t * flow_dtype_size(to->dtype);
  *at_from = f * flow_dtype_size(from->dtype);
}

/* Steps of 1 are apart: only then the compiler makes vectors of the loop. */
#define EACH(type, operator)                                                                      \
  {                                                                                               \
    type *target = to;                                                                            \
    const type *source = from;                                                                    \
    if (to_step == 1 && from_step == 1) {                                                         \
      FLOW_NO_OVERLAP                                                                             \
      for (int64_t i = 0; i < n; i++) target[i] operator source[i];                               \
    } else {                                                                                      \
      for (int64_t i = 0; i < n; i++) target[i * to_step] operator source[i * from_step];         \
    }                                                                                             \
    return;                                                                                       \
  }

/* n elements, steps in elements; equal dtypes. */
static void copy_elements(int bytes, void *to, int64_t to_step, const void *from, int64_t from_step, int64_t n)
{
  switch (bytes) {
  case 1: EACH(uint8_t, =)
  case 2: EACH(uint16_t, =)
  case 4: EACH(uint32_t, =)
  case 8: EACH(uint64_t, =)
  }
}
static void add_floats(void *to, int64_t to_step, const void *from, int64_t from_step, int64_t n) EACH(float, +=)
static void add_integers(void *to, int64_t to_step, const void *from, int64_t from_step, int64_t n) EACH(uint64_t, +=)

static int64_t parts(const flow_call *call, int phase)
{
  (void)phase;
  return (flow_shape_size(call->inputs[0].rank, call->inputs[0].shape) + PART - 1) / PART;
}

/* Parts are ranges of elements of the target, whatever lines they cut: a line's rest is done from the middle. No two parts write to the
 * same element. */
static flow_status run(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase;
  const flow_operand *to = &call->inputs[0], *from = &call->inputs[1];
  walk w = walk_of(to, from);
  int add = call->op == FLOW_OP_assign_add, same = to->dtype == from->dtype;
  int64_t last = end * PART < w.size ? end * PART : w.size;
  for (int64_t i = begin * PART, n; i < last; i += n) {
    int64_t at_to, at_from;
    offsets(to, from, &w, i, &at_to, &at_from);
    void *target = (char *)to->data + at_to;
    const void *source = (const char *)from->data + at_from;
    n = w.inner - i % w.inner < last - i ? w.inner - i % w.inner : last - i;
    if (!add && same) {
      copy_elements(flow_dtype_size(to->dtype), target, w.to_step, source, w.from_step, n);
    } else if (same && to->dtype == FLOW_FLOAT32) {
      add_floats(target, w.to_step, source, w.from_step, n);
    } else if (same && to->dtype == FLOW_INT64) {
      add_integers(target, w.to_step, source, w.from_step, n);
    } else if (add && to->dtype == FLOW_INT64 && !flow_dtype_is_float(from->dtype)) {
      int64_t x[CHUNK];
      if (n > CHUNK) n = CHUNK;
      flow_convert_to_int64(from->dtype, source, w.from_step, x, n);
      add_integers(target, w.to_step, x, 1, n);
    } else {
      double x[CHUNK], y[CHUNK];
      if (n > CHUNK) n = CHUNK;
      flow_convert_to_double(from->dtype, source, w.from_step, x, n);
      if (add) {
        flow_convert_to_double(to->dtype, target, w.to_step, y, n);
        for (int64_t j = 0; j < n; j++) x[j] += y[j];
      }
      flow_convert_from_double(to->dtype, x, target, w.to_step, n);
    }
  }
  return FLOW_OK;
}

#define VARIANTS { { .variant = "convert", .parts = parts, .run = run }, { 0 } }
const flow_kernel FLOW_KERNELS(assign)[] = VARIANTS;
const flow_kernel FLOW_KERNELS(assign_add)[] = VARIANTS;
