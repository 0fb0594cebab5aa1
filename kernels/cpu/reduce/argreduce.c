/* argreduce.c: argmax and argmin, the position of the first largest or smallest element along one axis, or in the
 * flattened array. A NaN counts as larger and as smaller than every number; the first NaN wins.
 *
 * A tile of outputs that are neighbours along the last kept axis is searched together: for each position, its elements
 * are compared with the best so far. Positions count from attributes.reduce.base. */
#include <math.h>
#include "cpu/elementwise/elementwise.h"
#include "ops/rules.h"

typedef void (*update_function)(const void *x, void *best, int64_t *positions, int64_t position, int64_t n);
typedef void (*search_function)(const void *x, void *best, int64_t *best_position, int64_t position, int64_t n);

/* update_: one element for each of n outputs. search_: n elements in a row for one output. better: whether a, the element, beats b, the
 * best so far. Only a strictly better one wins, so that the first of equal ones stays. */
#define SEARCH(name, T, better)                                                                                 \
  static void update_##name(const void *x_, void *best_, int64_t *positions, int64_t position, int64_t n)       \
  {                                                                                                             \
    const T *x = x_;                                                                                            \
    T *best = best_;                                                                                            \
    for (int64_t i = 0; i < n; i++) {                                                                           \
      T a = x[i], b = best[i];                                                                                  \
      int wins = better;                                                                                        \
      best[i] = wins ? a : b;                                                                                   \
      positions[i] = wins ? position : positions[i];                                                            \
    }                                                                                                           \
  }                                                                                                             \
  static void search_##name(const void *x_, void *best_, int64_t *best_position, int64_t position, int64_t n)   \
  {                                                                                                             \
    const T *x = x_;                                                                                            \
    T b = *(T *)best_;                                                                                          \
    for (int64_t i = 0; i < n; i++) {                                                                           \
      T a = x[i];                                                                                               \
      if (better) {                                                                                             \
        b = a;                                                                                                  \
        *best_position = position + i;                                                                          \
      }                                                                                                         \
    }                                                                                                           \
    *(T *)best_ = b;                                                                                            \
  }
/* A number beats a smaller one; a NaN beats every number; nothing beats a NaN. */
SEARCH(max_FLOAT, float, a > b || (a != a && b == b))
SEARCH(min_FLOAT, float, a < b || (a != a && b == b))
SEARCH(max_DOUBLE, double, a > b || (a != a && b == b))
SEARCH(min_DOUBLE, double, a < b || (a != a && b == b))
SEARCH(max_INTEGER, int64_t, a > b)
SEARCH(min_INTEGER, int64_t, a < b)

/* Floats by vectors, some at a time that stay in the first-level cache: the best one of all lanes, then, if it is better than what was
 * found before, where it is. The smallest float is the one whose negative is the largest. Where there is a NaN, or infinities of both
 * signs, floats are looked at one by one. */
enum { SEARCHED_AT_ONCE = 2048, LANES = 4 * VL };

ALWAYS_INLINE vf search_vector(vf v, const int smallest)
{
  return smallest ? -v : v;
}

ALWAYS_INLINE void search_floats(search_function one_by_one, const int smallest, const float *x, float *best, int64_t *best_position,
                                 int64_t position, int64_t n)
{
  for (int64_t count; n > 0; x += count, position += count, n -= count) {
    count = n < SEARCHED_AT_ONCE ? n : SEARCHED_AT_ONCE;
    vf rest = vf_set(*best), before = search_vector(rest, smallest), most[4] = { before, before, before, before };
    vi numbers = before == before; /* NOLINT(misc-redundant-expression): no NaN */
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) {
      vf a[4];
      for (int v = 0; v < 4; v++) a[v] = search_vector(vf_load(x + i + v * VL), smallest);
      for (int v = 0; v < 4; v++) most[v] = vf_max(a[v], most[v]);
      vf sum = (a[0] + a[1]) + (a[2] + a[3]);
      numbers &= sum == sum; /* NOLINT(misc-redundant-expression): no NaN */
    }
    for (; i < count; i += VL) {
      vf a = search_vector(vf_load_lanes(x + i, count - i, rest), smallest);
      most[0] = vf_max(a, most[0]);
      numbers &= a == a; /* NOLINT(misc-redundant-expression): no NaN */
    }
    if (vi_differs(numbers, -1)) {
      one_by_one(x, best, best_position, position, count);
      continue;
    }
    const float found = vf_largest(vf_max(vf_max(most[0], most[1]), vf_max(most[2], most[3])));
    if (!(found > before[0])) continue;
    const vf wanted = vf_set(smallest ? -found : found);
    uint32_t lanes;
    for (i = 0; !(lanes = vi_differs(vf_load_lanes(x + i, count - i, rest) == wanted, 0));) i += VL;
    i += __builtin_ctz(lanes);
    *best = x[i];
    *best_position = position + i;
  }
}

#define SEARCH_FLOATS(name, smallest)                                                                                \
  static void search_##name##_floats(const void *x, void *best, int64_t *best_position, int64_t position, int64_t n) \
  {                                                                                                                  \
    search_floats(search_##name##_FLOAT, smallest, x, best, best_position, position, n);                             \
  }
SEARCH_FLOATS(max, 0)
SEARCH_FLOATS(min, 1)

/* [0]: the largest, [1]: the smallest; by the kinds that flow_kind_of() gives, which counts bools as integers. */
static const update_function updates[2][FLOW_KIND_COUNT] = {
  { update_max_FLOAT, update_max_DOUBLE, update_max_INTEGER, NULL }, { update_min_FLOAT, update_min_DOUBLE, update_min_INTEGER, NULL }
};
static const search_function searches[2][FLOW_KIND_COUNT] = {
  { search_max_floats, search_max_DOUBLE, search_max_INTEGER, NULL }, { search_min_floats, search_min_DOUBLE, search_min_INTEGER, NULL }
};

/* Strides in elements; out_stride is 0 for a searched one. */
typedef struct axis { int64_t size, stride, out_stride; } axis;

/* Kept and searched axes in order; searched ones are all axes or a single one. */
typedef struct layout {
  int       kept_count, searched_count;
  axis      kept[FLOW_MAX_RANK], searched[FLOW_MAX_RANK];
  int       dtype;
  flow_kind kind;
  int64_t   size;      /* bytes of an element */
} layout;

/* Axes in the order of the input's shape: positions in a flattened array are row-major in it, whatever its strides. */
static void layout_make(layout *l, const flow_operand *in, const flow_operand *out, unsigned searched, int keepdims)
{
  *l = (layout){ .dtype = in->dtype, .kind = flow_kind_of(in->dtype), .size = flow_dtype_size(in->dtype) };
  for (int i = 0, out_axis = 0; i < in->rank; i++) {
    int is_searched = (searched >> i & 1) != 0;
    if (is_searched) l->searched[l->searched_count++] = (axis){ in->shape[i], in->strides[i], 0 };
    else l->kept[l->kept_count++] = (axis){ in->shape[i], in->strides[i], out->strides[out_axis] };
    out_axis += !is_searched || keepdims;
  }
  if (l->searched_count == 0) l->searched[l->searched_count++] = (axis){ 1, 1, 0 };   /* rank 0 */
}

static int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

/* Element number `position`, in row-major order, of some axes: its offset in the input, and in the output. */
static int64_t offset_of(const axis *axes, int count, int64_t position, int64_t *out_offset)
{
  int64_t offset = 0;
  for (int i = count - 1; i >= 0; i--) {
    int64_t index = position % axes[i].size;
    offset += index * axes[i].stride;
    *out_offset += index * axes[i].out_stride;
    position /= axes[i].size;
  }
  return offset;
}

/* How many positions some axes have: 1 without any. */
static int64_t count_of(const axis *axes, int count)
{
  int64_t n = 1;
  for (int i = 0; i < count; i++) n *= axes[i].size;
  return n;
}

/* One output: the searched axes but the last are walked, the last is searched in blocks. Returns the position from 0, row-major among the
 * searched axes. */
static int64_t search_one(const layout *l, int smallest, const char *x)
{
  const axis *last = &l->searched[l->searched_count - 1];
  int64_t outer = count_of(l->searched, l->searched_count - 1), best_position = 0, unused = 0;
  int packed = l->dtype == flow_kind_dtype(l->kind) && last->stride == 1;
  flow_load_function load = FLOW_ISA_NAME(load)[l->dtype][l->kind];
  _Alignas(64) char buffer[FLOW_BLOCK_BYTES], best[8];
  /* The first element is the best so far, at position 0. It is compared with itself below, and does not win. */
  load(x, 0, best, 1);
  for (int64_t i = 0; i < outer; i++) {
    const char *run = x + offset_of(l->searched, l->searched_count - 1, i, &unused) * l->size;
    int64_t most = packed ? last->size : FLOW_BLOCK_LENGTH;
    for (int64_t j = 0; j < last->size; j += most) {
      int64_t n = last->size - j < most ? last->size - j : most;
      const char *block = run + j * last->stride * l->size;
      if (!packed) load(block, last->stride, buffer, n);
      searches[smallest][l->kind](packed ? block : buffer, best, &best_position, i * last->size + j, n);
    }
  }
  return best_position;
}

/* n outputs side by side along the axis `column`. positions[i]: of output i, from 0. */
static void search_many(const layout *l, int smallest, const char *x, const axis *column, int64_t n, int64_t *positions)
{
  flow_load_function load = FLOW_ISA_NAME(load)[l->dtype][l->kind];
  _Alignas(64) char buffer[FLOW_BLOCK_BYTES], best[FLOW_BLOCK_BYTES];
  int64_t searched = count_of(l->searched, l->searched_count), unused = 0;
  load(x, column->stride, best, n);
  for (int64_t i = 0; i < n; i++) positions[i] = 0;
  for (int64_t p = 1; p < searched; p++) {
    load(x + offset_of(l->searched, l->searched_count, p, &unused) * l->size, column->stride, buffer, n);
    updates[smallest][l->kind](buffer, best, positions, p, n);
  }
}

/* Rows of a few packed floats each, {n, 10} to {n}: n outputs, whose rows are `row` elements apart. A start of search_one takes longer than
 * such a row, and so does a branch that nobody can foresee. */
enum { FEW_FLOATS = 24 };

#define FEW_IN_ROWS(name, better)                                                                                     \
  static void few_##name(const float *x, int64_t row, int64_t columns, int64_t n, int64_t *positions)                 \
  {                                                                                                                   \
    for (int64_t i = 0; i < n; i++, x += row) {                                                                       \
      float b = x[0];                                                                                                 \
      int64_t best = 0;                                                                                               \
      for (int64_t j = 1; j < columns; j++) {                                                                         \
        float a = x[j];                                                                                               \
        int wins = (better) | ((a != a) & (b == b));                                                                  \
        b = wins ? a : b;                                                                                             \
        best = wins ? j : best;                                                                                       \
      }                                                                                                               \
      positions[i] = best;                                                                                            \
    }                                                                                                                 \
  }
FEW_IN_ROWS(largest, a > b)
FEW_IN_ROWS(smallest, a < b)

static int has_few_in_rows(const layout *l)
{
  return l->dtype == FLOW_FLOAT32 && l->kept_count > 0 && l->searched_count == 1 && l->searched[0].stride == 1 &&
         l->searched[0].size <= FEW_FLOATS;
}

/* Two ways, by which elements are nearer to each other in memory: those of neighbouring outputs (search_many, {n, c} over n) or those of
 * one output (search_one, {n, c} over c; of few elements many outputs at a time). */
static flow_status run_argreduce(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase; (void)begin; (void)end;
  const flow_operand *in = &call->inputs[0], *out = &call->outputs[0];
  if (!out->data) return FLOW_OK;
  layout l;
  layout_make(&l, in, out, flow_reduced_axes(call->attributes, in->rank), call->attributes->reduce.keepdims);
  int64_t outputs = count_of(l.kept, l.kept_count);
  if (outputs == 0) return FLOW_OK;
  if (count_of(l.searched, l.searched_count) == 0)
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s of an empty axis: shape %s", flow_op(call->op)->name, flow_shape_text(in->rank, in->shape));

  int smallest = call->op == FLOW_OP_argmin;
  const axis *last = l.kept_count > 0 ? &l.kept[l.kept_count - 1] : NULL;
  int64_t last_searched = l.searched[l.searched_count - 1].stride;
  /* Outputs are stored run by run, each within one line of the last kept axis. */
  int many = last && last->size > 1 && magnitude(last->stride) < magnitude(last_searched), few = !many && has_few_in_rows(&l);
  int64_t positions[FLOW_BLOCK_LENGTH];
  for (int64_t i = 0; i < outputs;) {
    int64_t out_offset = 0, n = 1;
    const char *x = (const char *)in->data + offset_of(l.kept, l.kept_count, i, &out_offset) * l.size;
    if (many || few) {
      int64_t left = last->size - i % last->size;
      n = left < FLOW_BLOCK_LENGTH ? left : FLOW_BLOCK_LENGTH;
    }
    if (many) {
      search_many(&l, smallest, x, last, n, positions);
    } else if (few) {
      (smallest ? few_smallest : few_largest)((const float *)(const void *)x, last->stride, l.searched[0].size, n, positions);
    } else {
      positions[0] = search_one(&l, smallest, x);
    }
    for (int64_t j = 0; j < n; j++) positions[j] += call->attributes->reduce.base;
    FLOW_ISA_NAME(store)[FLOW_KIND_INTEGER][out->dtype](positions, (char *)out->data + out_offset * flow_dtype_size(out->dtype),
                                                       many || few ? last->out_stride : 1, n);
    i += n;
  }
  return FLOW_OK;
}

const flow_kernel FLOW_KERNELS(argmax)[] = { { .variant = "blocks", .run = run_argreduce }, { 0 } };
const flow_kernel FLOW_KERNELS(argmin)[] = { { .variant = "blocks", .run = run_argreduce }, { 0 } };
