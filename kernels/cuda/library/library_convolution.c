/* library_convolution.c: the ops convolution and convolution_gradient as a library's convolutions with own kernels around them.
 *
 * Filters are transposed from {height, width, in, out} into the library's layout, and gradients of filters back, where the plan has not
 * done so for all of a step at once (flow_transposed): no engine for tensor cores reads or writes ours. Images are copied where they have
 * another dtype, are to be scaled, begin at no multiple of 16 bytes, or have channels that do not fill 16 bytes: the copy has channels of
 * zeros, so that every engine can be used. Pooling, masks and the gradient of the bias are own kernels. dw and db may be float32 beside
 * activations of 16 bits. The relu in front of a convolution stops dx in the plan that makes it, which also sums it; what of that no
 * engine does is left to own kernels after it.
 *
 * FLOW_CUDA_FUSION says how much a plan may do at once, for finding out which plan is wrong: 0: a convolution alone; 1: bias and relu after
 * it, and the relu before dx; 2, the default: also sums of dx.
 *
 *   forward   [widen x] -> [transpose w] -> convolve (+ bias, relu) [-> pool]
 *   gradient  [mask or spread g to dz] -> [transpose w] -> dx (stopped, sums);  [widen x] -> dw of dz [-> transpose back];
 *             sums of g -> db */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "cuda/library/channel_sums.h"
#include "cuda/device/empty.h"
#include "cuda/library/library.h"
#include "cuda/library/library_kernels.h"
#include "convolution_geometry.h"
#include "ops/op.h"
#include "tensor/tensor.h"

enum { BUNDLE_BYTES = 16, ALIGNMENT = 256, MOST_ROUNDS = 4, ENOUGH_TILES = 512 };

/* What an op's call needs of a library, and where its parts are in call->shared. */
typedef struct work {
  flow_library_convolution forward, data, filter;
  const flow_library_plan *forward_plan, *data_plan, *filter_plan;   /* NULL: not needed */
  pool_geometry pool;
  int           pooled, relu, has_bias;
  int           widens;                  /* x is copied, with forward.channels_in channels */
  int64_t       channels_in;             /* of our tensors */
  int           transposed;                  /* flow_transposed */
  double        scale;                   /* of x */
  int           masked;                  /* gradient: dz is not g */
  int           wants_dx, wants_dw, wants_db;
  int           stops, adds, wants_sums; /* dx, by the relu before; to dx, before that; the sums of it */
  flow_channel_sums db_sums, dx_sums;
  size_t        x, w, z, dw, db_between, dx_between, sums, aligned_bias, workspace, bytes;
} work;

static int most_fused = 2;

static void read_most_fused(void)
{
  const char *text = getenv("FLOW_CUDA_FUSION");
  if (text && text[0] >= '0' && text[0] <= '2' && !text[1]) most_fused = text[0] - '0';
}

static int fusion(void)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, read_most_fused);
  return most_fused;
}

static int64_t whole_bundles(int64_t channels, int dtype)
{
  int64_t width = BUNDLE_BYTES / flow_dtype_size(dtype);
  return (channels + width - 1) / width * width;
}

/* Elements of one access, see library_steps.h. */
static int width_of(int64_t channels, int dtype)
{
  int width = BUNDLE_BYTES / flow_dtype_size(dtype);
  return channels % width == 0 ? width : 1;
}

/* The same beside bytes, of which eight are read at once where that is possible. */
static int width_beside_bytes(int64_t channels, int dtype) { return channels % MOST_WIDTH == 0 ? MOST_WIDTH : width_of(channels, dtype); }

/* A part of a tensor may begin anywhere. */
static int is_aligned(const flow_operand *x) { return (uintptr_t)x->data % BUNDLE_BYTES == 0; }

/* Geometry, without plans. Returns whether a library may be asked. */
static int describe(const flow_call *call, const flow_operand *x, const flow_operand *w, work *out)
{
  flow_geometry s = flow_geometry_of(call, x, w);
  flow_library_convolution *c = &out->forward;
  int dtype = w->dtype;
  memset(out, 0, sizeof *out);
  if (dtype != FLOW_FLOAT32 && dtype != FLOW_FLOAT16 && dtype != FLOW_BFLOAT16) return 0;
  if (x->dtype != dtype && x->dtype != FLOW_UINT8 && x->dtype != FLOW_FLOAT32) return 0;
  if (s.images < 1 || s.channels_in < 1 || s.channels_out < 1) return 0;
  c->dtype = dtype;
  c->exact = call->exact != 0;
  c->groups = (int32_t)s.groups;
  c->images = s.images;
  c->channels_out = s.channels_out;
  out->channels_in = c->channels_in = s.channels_in;
  out->transposed = call->attributes->convolution.transposed;
  out->pooled = s.pooled;
  out->relu = s.relu;
  out->has_bias = s.has_bias;
  out->scale = s.input_scale;
  for (int axis = 0; axis < 2; axis++) {
    if (s.in[axis] < 1 || s.result[axis] < 1) return 0;
    c->in[axis] = s.in[axis];
    c->out[axis] = out->pool.in[axis] = s.out[axis];
    c->kernel[axis] = s.kernel[axis];
    c->stride[axis] = s.stride[axis];
    c->dilation[axis] = s.dilation[axis];
    c->before[axis] = s.before[axis];
    c->after[axis] = s.after[axis];
    out->pool.out[axis] = s.result[axis];
    out->pool.size[axis] = (int32_t)s.pool[axis];
    out->pool.stride[axis] = (int32_t)s.pool_stride[axis];
  }
  out->widens = x->dtype != dtype || s.input_scale != 1 || !is_aligned(x);
  int tensor_cores = dtype != FLOW_FLOAT32 || !c->exact;
  if (c->groups == 1 && tensor_cores && whole_bundles(c->channels_in, dtype) != c->channels_in) out->widens = 1;
  if (c->groups == 1 && tensor_cores && out->widens) c->channels_in = whole_bundles(c->channels_in, dtype);
  return 1;
}

/* Room for `count` elements of `size` bytes after the others. */
static size_t take(work *s, int64_t count, size_t size)
{
  size_t at = s->bytes;
  s->bytes += ((size_t)count * size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  return at;
}

static int64_t x_size(const flow_library_convolution *c) { return c->images * c->in[0] * c->in[1] * c->channels_in; }
static int64_t y_size(const flow_library_convolution *c) { return c->images * c->out[0] * c->out[1] * c->channels_out; }
static int64_t w_size(const flow_library_convolution *c)
{
  return c->kernel[0] * c->kernel[1] * (c->channels_in / c->groups) * c->channels_out;
}

/* Whether our filters have the library's layout. */
static int reads_ours(const work *s, const flow_library_convolution *c)
{
  return (s->transposed & FLOW_TRANSPOSED_KERNEL) && c->channels_in == s->channels_in;
}

static int writes_ours(const flow_call *call, const work *s)
{
  return (s->transposed & FLOW_TRANSPOSED_GRADIENT) && s->filter.channels_in == s->channels_in && call->outputs[1].dtype == s->filter.dtype;
}

static int64_t result_rows(const work *s) { return s->forward.images * s->pool.out[0] * s->pool.out[1]; }

/* All that a call needs, its plan included, and how many bytes of call->shared. Asked by the planner and at every run: shapes, dtypes
 * and the library's plans decide, so that both get the same answer. 0: own kernels do it. */
static int prepare_forward(const flow_call *call, work *s)
{
  if (!describe(call, &call->inputs[0], &call->inputs[1], s)) return 0;
  flow_library_convolution *c = &s->forward;
  size_t size = (size_t)flow_dtype_size(c->dtype);
  c->direction = FLOW_LIBRARY_FORWARD;
  c->bias = s->has_bias && fusion() > 0;
  c->relu = s->relu && !s->pooled && fusion() > 0;
  s->forward_plan = flow_library_plan_convolution(call, c);
  if (!s->forward_plan) return 0;
  if (s->widens) s->x = take(s, x_size(c), size);
  if (!reads_ours(s, c)) s->w = take(s, w_size(c), size);
  if (s->pooled) s->z = take(s, y_size(c), size);
  if (s->has_bias) s->aligned_bias = take(s, c->channels_out, size);
  s->workspace = take(s, (int64_t)s->forward_plan->workspace, 1);
  return 1;
}

/* The plan for dx: with as much of what follows it as an engine does. */
static const flow_library_plan *plan_data(const flow_call *call, work *s)
{
  const flow_library_plan *plan = NULL;
  int most = s->stops + s->wants_sums;
  for (int more = most < fusion() ? most : fusion(); !plan && more >= 0; more--) {
    s->data.relu = more > 0;
    s->data.add = more > 0 && s->adds;
    s->data.bias = more > 1;
    plan = flow_library_plan_convolution(call, &s->data);
  }
  return plan;
}

static int prepare_gradient(const flow_call *call, work *s)
{
  if (call->accumulate || !describe(call, &call->inputs[1], &call->inputs[2], s)) return 0;
  const flow_library_convolution *c = &s->forward;
  size_t size = (size_t)flow_dtype_size(c->dtype);
  s->wants_dx = !call->outputs[0].unused;
  s->wants_dw = !call->outputs[1].unused;
  s->wants_db = !call->outputs[2].unused;
  s->masked = (s->pooled || s->relu) && (s->wants_dx || s->wants_dw);
  s->data = s->filter = *c;
  s->data.direction = FLOW_LIBRARY_DATA;
  s->data.channels_in = s->channels_in;
  s->filter.direction = FLOW_LIBRARY_FILTER;
  if (s->wants_dx) {
    s->stops = call->op == FLOW_OP_convolution_gradient_relu;
    s->adds = s->stops && call->input_count > 5;
    s->wants_sums = s->stops && !call->outputs[3].unused;
    if (call->outputs[0].dtype != c->dtype || (s->stops && call->inputs[1].dtype != c->dtype)) return 0;
    if (s->adds && call->inputs[5].dtype != c->dtype) return 0;
    s->data_plan = plan_data(call, s);
    if (!s->data_plan) return 0;
    if (!reads_ours(s, &s->data)) s->w = take(s, w_size(&s->data), size);
  }
  s->dx_sums = flow_cuda_channel_sums(c->images * c->in[0] * c->in[1], s->channels_in);
  if (s->wants_sums) {
    if (!s->data.bias) s->dx_between = take(s, (int64_t)flow_cuda_channel_sums_bytes(&s->dx_sums), 1);
    else if (call->outputs[3].dtype != FLOW_FLOAT32) s->sums = take(s, s->channels_in, sizeof(float));
  }
  if (s->wants_dw) {
    s->filter_plan = flow_library_plan_convolution(call, &s->filter);
    if (!s->filter_plan) return 0;
    if (s->widens) s->x = take(s, x_size(&s->filter), size);
    if (!writes_ours(call, s)) s->dw = take(s, w_size(&s->filter), size);
  }
  if (s->masked) s->z = take(s, y_size(c), size);
  if (s->wants_db) {
    s->db_sums = flow_cuda_channel_sums(result_rows(s), c->channels_out);
    s->db_between = take(s, (int64_t)flow_cuda_channel_sums_bytes(&s->db_sums), 1);
  }
  size_t data_workspace = s->data_plan ? s->data_plan->workspace : 0, filter_workspace = s->filter_plan ? s->filter_plan->workspace : 0;
  s->workspace = take(s, (int64_t)(data_workspace > filter_workspace ? data_workspace : filter_workspace), 1);
  return 1;
}

/* ---- steps ------------------------------------------------------------------------------------------------------------------------ */

/* Of what ops made; other kernels are transposed to where they are aligned, and biases copied, since an optimizer's parameters have no
 * gaps. */
static flow_status check_alignment(const flow_operand *x)
{
  if (is_aligned(x)) return FLOW_OK;
  return flow_fail(FLOW_INTERNAL, "an operand of a convolution begins at %p, a multiple of 16 was expected", x->data);
}

/* A convolution's bias where a library may read it; NULL: there is none. */
static flow_status align_bias(const flow_call *call, const work *s, const void **out)
{
  *out = s->has_bias ? call->inputs[2].data : NULL;
  if (!s->has_bias || (uintptr_t)*out % BUNDLE_BYTES == 0) return FLOW_OK;
  size_t bytes = (size_t)s->forward.channels_out * (size_t)flow_dtype_size(call->inputs[2].dtype);
  FLOW_TRY(flow_cuda_copy(call, (char *)call->shared + s->aligned_bias, *out, bytes));
  *out = (char *)call->shared + s->aligned_bias;
  return FLOW_OK;
}

/* Whether a block's memory holds what a tile of the copy is made of: bytes from a multiple of 16 to the next one. */
static int tile_fits(const widen_image_arguments *a)
{
  int64_t pixels = parts_of(a->tile, a->bundles) + 1, left_out = larger(a->from_channels - a->to_channels, 0);
  int64_t elements = a->tile * a->width + pixels * left_out;
  return smaller(elements, pixels * a->from_channels) * a->from_size + 2 * BUNDLE_BYTES <= BLOCK_SHARED;
}

/* A copy of pixels with other channels, of another dtype. Tiles are large enough for 16 bytes a thread, and many enough for a large GPU. */
static widen_image_arguments widening(int64_t pixels, const void *from, int from_dtype, int64_t from_channels, void *to, int to_dtype,
                                      int64_t to_channels, double scale)
{
  int width = (uintptr_t)to % BUNDLE_BYTES == 0 ? width_of(to_channels, to_dtype) : 1;
  int from_width = BUNDLE_BYTES / flow_dtype_size(from_dtype);
  int whole = from_channels == to_channels && from_channels % from_width == 0 && from_width <= MOST_WIDTH && width >= from_width;
  widen_image_arguments a = { .to = to, .from = from, .pixels = pixels, .to_channels = to_channels, .from_channels = from_channels,
                              .bundles = to_channels / width, .tile = MOST_ROUNDS * BLOCK_THREADS, .to_dtype = to_dtype,
                              .from_dtype = from_dtype, .from_size = flow_dtype_size(from_dtype), .width = width,
                              .together = whole && (uintptr_t)from % BUNDLE_BYTES == 0, .scale = (float)scale };
  while (a.tile > BLOCK_THREADS && pixels * a.bundles < ENOUGH_TILES * a.tile) a.tile /= 2;
  while (!tile_fits(&a)) a.tile /= 2;
  return a;
}

static int64_t tiles_of(const widen_image_arguments *a) { return parts_of(a->pixels * a->bundles, a->tile); }

static widen_image_arguments widening_of_image(const work *s, const flow_library_convolution *c, const flow_operand *x, void *to)
{
  return widening(c->images * c->in[0] * c->in[1], x->data, x->dtype, s->channels_in, to, c->dtype, c->channels_in, s->scale);
}

static flow_status widen(const flow_call *call, const work *s, const flow_library_convolution *c, const flow_operand *x, void *to)
{
  widen_image_arguments a = widening_of_image(s, c, x, to);
  return flow_cuda_launch(call, CUDA_widen_image, tiles_of(&a), &a, sizeof a);
}

static transpose_filter_arguments turning(const work *s, const flow_library_convolution *c)
{
  return (transpose_filter_arguments){ .taps = c->kernel[0] * c->kernel[1], .in = s->channels_in / c->groups, .out = c->channels_out,
                                  .wide = c->channels_in / c->groups, .to_dtype = c->dtype, .from_dtype = c->dtype };
}

/* Turned filters with more or fewer channels, the new ones 0, and of another dtype: seen as images of taps. */
static flow_status resize(const flow_call *call, const flow_library_convolution *c, const void *from, int from_dtype, int64_t from_channels,
                          void *to, int to_dtype, int64_t to_channels)
{
  widen_image_arguments a = widening(c->channels_out * c->kernel[0] * c->kernel[1], from, from_dtype, from_channels / c->groups, to,
                                     to_dtype, to_channels / c->groups, 1);
  return flow_cuda_launch(call, CUDA_widen_image, tiles_of(&a), &a, sizeof a);
}

/* The filter as the library reads it. */
static flow_status bring_filter(const flow_call *call, const work *s, const flow_library_convolution *c, const flow_operand *w,
                                const void **out)
{
  void *to = (char *)call->shared + s->w;
  *out = w->data;
  if (reads_ours(s, c)) return check_alignment(w);
  *out = to;
  if (s->transposed & FLOW_TRANSPOSED_KERNEL) return resize(call, c, w->data, w->dtype, s->channels_in, to, c->dtype, c->channels_in);
  transpose_filter_arguments a = turning(s, c);
  a.to = to;
  a.from = w->data;
  return flow_cuda_launch(call, CUDA_transpose_filter, w_size(c), &a, sizeof a);
}

/* The image and the filter as the library reads them, by one launch where both are copied. */
static flow_status bring_both(const flow_call *call, const work *s, const void **x, const void **w)
{
  const flow_library_convolution *c = &s->forward;
  char *shared = call->shared;
  *x = s->widens ? shared + s->x : call->inputs[0].data;
  if (!s->widens || s->transposed & FLOW_TRANSPOSED_KERNEL) {
    if (s->widens) FLOW_TRY(widen(call, s, c, &call->inputs[0], shared + s->x));
    return bring_filter(call, s, c, &call->inputs[1], w);
  }
  bring_operands_arguments a = { .filter = turning(s, c), .filter_size = w_size(c), .filter_blocks = parts_of(w_size(c), BLOCK_THREADS) };
  a.image = widening_of_image(s, c, &call->inputs[0], shared + s->x);
  a.filter.from = call->inputs[1].data;
  *w = a.filter.to = shared + s->w;
  return flow_cuda_launch(call, CUDA_bring_operands, a.filter_blocks + tiles_of(&a.image), &a, sizeof a);
}

/* What the library made, in call->shared, as the gradient that the call is to give. */
static flow_status take_filter(const flow_call *call, const work *s)
{
  const flow_library_convolution *c = &s->filter;
  const flow_operand *dw = &call->outputs[1];
  const void *from = (const char *)call->shared + s->dw;
  if (writes_ours(call, s)) return FLOW_OK;
  if (s->transposed & FLOW_TRANSPOSED_GRADIENT) return resize(call, c, from, c->dtype, c->channels_in, dw->data, dw->dtype, s->channels_in);
  transpose_filter_arguments a = turning(s, c);
  a.to = dw->data;
  a.to_dtype = dw->dtype;
  a.from = from;
  a.width = width_of(a.wide, a.from_dtype);
  a.bundles = a.wide / a.width;
  return flow_cuda_launch(call, CUDA_transpose_filter_back, a.taps * a.bundles * a.out, &a, sizeof a);
}

static flow_status pool(const flow_call *call, const work *s, const void *z)
{
  const flow_library_convolution *c = &s->forward;
  int width = width_beside_bytes(c->channels_out, c->dtype);
  pool_argmax_arguments a = { .z = z, .y = call->outputs[0].data, .index = call->outputs[1].data, .pool = s->pool, .relu = s->relu,
                               .bundles = c->channels_out / width, .dtype = c->dtype, .width = width };
  return flow_cuda_launch(call, CUDA_pool_argmax, result_rows(s) * a.bundles, &a, sizeof a);
}

/* What a plan leaves out. */
static flow_status finish(const flow_call *call, const work *s, void *y, const void *bias)
{
  const flow_library_convolution *c = &s->forward;
  int width = width_of(c->channels_out, c->dtype), relu = s->relu && !s->pooled;
  if ((!bias || c->bias) && relu == c->relu) return FLOW_OK;
  end_image_arguments a = { .y = y, .bias = c->bias ? NULL : bias, .bundles = c->channels_out / width, .dtype = c->dtype, .width = width,
                            .relu = relu };
  return flow_cuda_launch(call, CUDA_end_image, y_size(c) / width, &a, sizeof a);
}

/* The gradient of what the convolution gave, before activation and pooling; wide: NULL, or where the copy of x goes meanwhile, if it
 * can. */
static flow_status mask(const flow_call *call, const work *s, void *dz, void *wide, int *widened)
{
  const flow_library_convolution *c = &s->forward;
  int width = width_beside_bytes(c->channels_out, c->dtype);
  *widened = s->pooled && wide != NULL;
  if (!s->pooled)
    return flow_cuda_stop_gradient(call, c->dtype, result_rows(s), c->channels_out, call->inputs[0].data, NULL,
                                   call->inputs[3].data, dz);
  spread_and_widen_arguments a = { .spread = { .g = call->inputs[0].data, .index = call->inputs[4].data, .dz = dz, .pool = s->pool,
                                               .bundles = c->channels_out / width, .dtype = c->dtype, .width = width },
                                   .spread_size = y_size(c) / width, .spread_blocks = parts_of(y_size(c) / width, BLOCK_THREADS) };
  if (!wide) return flow_cuda_launch(call, CUDA_spread_argmax, a.spread_size, &a.spread, sizeof a.spread);
  a.image = widening_of_image(s, &s->filter, &call->inputs[1], wide);
  return flow_cuda_launch(call, CUDA_spread_and_widen, a.spread_blocks + tiles_of(&a.image), &a, sizeof a);
}

/* dz: NULL, or where what the relu lets through goes, too. */
static flow_status sum_bias(const flow_call *call, const work *s, void *dz)
{
  return flow_cuda_sum_channels(call, &s->db_sums, s->forward.dtype, call->inputs[0].data,
                                s->relu && !s->pooled ? call->inputs[3].data : NULL, s->pooled ? call->inputs[4].data : NULL, dz,
                                (float *)((char *)call->shared + s->db_between), &call->outputs[2]);
}

/* What the plan for dx has left to do: the relu before, with what is added first, and the sums. */
static flow_status stop(const flow_call *call, const work *s)
{
  void *dx = call->outputs[0].data;
  char *shared = call->shared;
  const flow_operand *sums = &call->outputs[3];
  if (!s->data.relu)
    FLOW_TRY(flow_cuda_stop_gradient(call, s->data.dtype, s->dx_sums.pixels, s->channels_in, dx,
                                     s->adds ? call->inputs[5].data : NULL, call->inputs[1].data, dx));
  if (!s->wants_sums || !sums->data) return FLOW_OK;
  if (!s->data.bias)
    return flow_cuda_sum_channels(call, &s->dx_sums, s->data.dtype, dx, NULL, NULL, NULL, (float *)(shared + s->dx_between), sums);
  if (sums->dtype == FLOW_FLOAT32) return FLOW_OK;
  narrow_sums_arguments a = { .from = (float *)(shared + s->sums), .to = sums->data, .dtype = sums->dtype };
  return flow_cuda_launch(call, CUDA_narrow_sums, s->channels_in, &a, sizeof a);
}

/* dx of dz. */
static flow_status run_data(const flow_call *call, const work *s, const void *dz)
{
  char *shared = call->shared;
  flow_library_operands o = { .first = dz, .result = call->outputs[0].data, .workspace = shared + s->workspace };
  FLOW_TRY(bring_filter(call, s, &s->data, &call->inputs[2], &o.second));
  if (s->data.add) o.addend = call->inputs[5].data;
  if (s->data.relu) o.relu = call->inputs[1].data;
  if (s->data.bias) o.sums = call->outputs[3].dtype == FLOW_FLOAT32 ? call->outputs[3].data : (float *)(shared + s->sums);
  FLOW_TRY(flow_library_convolve(call, s->data_plan, &o));
  return s->stops ? stop(call, s) : FLOW_OK;
}

/* ---- the kernels ------------------------------------------------------------------------------------------------------------------ */

int flow_library_convolution_supports(const flow_call *call)
{
  work s;
  return prepare_forward(call, &s);
}

size_t flow_library_convolution_shared_bytes(const flow_call *call)
{
  work s;
  return prepare_forward(call, &s) ? s.bytes : 0;
}

flow_status flow_library_convolution_run(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  char *shared = call->shared;
  work s;
  if (flow_cuda_has_empty_input(call)) return flow_cuda_clear_outputs(call);
  if (!prepare_forward(call, &s)) return flow_fail(FLOW_INTERNAL, "a convolution that has no plan is run");
  if (!call->outputs[0].data && !(s.pooled && call->outputs[1].data)) return FLOW_OK;
  FLOW_TRY(check_alignment(&call->outputs[0]));
  const void *bias = NULL;
  FLOW_TRY(align_bias(call, &s, &bias));
  void *z = s.pooled ? shared + s.z : call->outputs[0].data;
  const void *x, *w;
  FLOW_TRY(bring_both(call, &s, &x, &w));
  FLOW_TRY(flow_library_convolve(call, s.forward_plan, &(flow_library_operands){
    .first = x, .second = w, .bias = s.forward.bias ? bias : NULL, .result = z,
    .workspace = shared + s.workspace }));
  FLOW_TRY(finish(call, &s, z, bias));
  return s.pooled ? pool(call, &s, z) : FLOW_OK;
}

int flow_library_convolution_gradient_supports(const flow_call *call)
{
  work s;
  return prepare_gradient(call, &s);
}

size_t flow_library_convolution_gradient_shared_bytes(const flow_call *call)
{
  work s;
  return prepare_gradient(call, &s) ? s.bytes : 0;
}

flow_status flow_library_convolution_gradient_run(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  const flow_operand *x = &call->inputs[1];
  void *dx = call->outputs[0].data, *dw = call->outputs[1].data, *db = call->outputs[2].data;
  char *shared = call->shared;
  work s;
  if (flow_cuda_has_empty_input(call)) return flow_cuda_clear_outputs(call);
  if (!prepare_gradient(call, &s)) return flow_fail(FLOW_INTERNAL, "a convolution's gradient that has no plan is run");
  FLOW_TRY(check_alignment(&call->inputs[0]));
  if (s.stops) FLOW_TRY(check_alignment(x));
  if (s.adds) FLOW_TRY(check_alignment(&call->inputs[5]));
  FLOW_TRY(check_alignment(&call->outputs[0]));
  const void *dz = s.masked ? shared + s.z : call->inputs[0].data;
  int widened = 0, sums_while_masking = s.masked && !s.pooled && s.wants_db && db;
  if (sums_while_masking) FLOW_TRY(sum_bias(call, &s, shared + s.z));
  else if (s.masked) FLOW_TRY(mask(call, &s, shared + s.z, s.wants_dw && dw && s.widens ? shared + s.x : NULL, &widened));
  if (s.wants_dx && dx) FLOW_TRY(run_data(call, &s, dz));
  if (s.wants_dw && dw) {
    if (s.widens && !widened) FLOW_TRY(widen(call, &s, &s.filter, x, shared + s.x));
    if (writes_ours(call, &s)) FLOW_TRY(check_alignment(&call->outputs[1]));
    FLOW_TRY(flow_library_convolve(call, s.filter_plan, &(flow_library_operands){
      .first = s.widens ? shared + s.x : x->data, .second = dz, .result = writes_ours(call, &s) ? dw : shared + s.dw,
      .workspace = shared + s.workspace }));
    FLOW_TRY(take_filter(call, &s));
  }
  return s.wants_db && db && !sums_while_masking ? sum_bias(call, &s, NULL) : FLOW_OK;
}
