/* separable.c: separable_convolution, a depthwise convolution and the pointwise one that alone reads its result. It goes by bands of rows:
 * what the first makes of a band stays in the member's scratch block, in the inner caches, until the second has read it. So a result that
 * is as large as the input is never written to memory, nor taken from the cache of another core.
 *
 * The rows of each convolution are those that its own variant (depthwise.c, convolution_pointwise.c) computes, bit by bit. */
#include "cpu/cost.h"
#include "cpu/depthwise/depthwise.h"

enum {
  BAND_BYTES = 16 * 1024, /* of the result between: half a first-level cache */
  LEAST_PIXELS = 48,      /* of a band: so many are worth loading the weights */
  LINE_BYTES = 64
};

/* Both convolutions of a call, and where their operands are. */
typedef struct separable {
  flow_geometry first, second;
  const float *biases[2];
} separable;

static separable separable_of(const flow_call *call)
{
  const __typeof__(call->attributes->convolution) *a = &call->attributes->convolution;
  separable s = { .first = flow_geometry_of(call, &call->inputs[0], &call->inputs[1]) };
  s.second = (flow_geometry){
    .images = s.first.images,
    .in = { s.first.out[0], s.first.out[1] },
    .out = { s.first.out[0], s.first.out[1] },
    .kernel = { 1, 1 },
    .channels_in = s.first.channels_in,
    .channels_out = call->inputs[2].shape[3],
    .groups = 1,
    .relu = a->pointwise_activation == FLOW_RELU,
    .has_bias = a->pointwise_has_bias,
    .input_scale = 1,
    .ceiling = a->pointwise_ceiling != 0 ? a->pointwise_ceiling : __builtin_inf()
  };
  s.second.group_in = s.second.channels_in;
  s.second.group_out = s.second.channels_out;
  s.biases[0] = a->has_bias ? call->inputs[3].data : NULL;
  s.biases[1] = a->pointwise_has_bias ? call->inputs[a->has_bias ? 4 : 3].data : NULL;
  return s;
}

/* shared: what the first convolution reads, then, from a cache line's begin on, the weights and biases of the second. */
static size_t first_floats(const separable *s)
{
  enum { LINE = LINE_BYTES / sizeof(float) };
  return (flow_depthwise_floats(&s->first) + LINE - 1) / LINE * LINE;
}

/* Rows of a band, nearly the same for all bands of an image. */
static int64_t band_rows(const flow_geometry *s)
{
  int64_t row_bytes = s->out[1] * s->channels_in * (int64_t)sizeof(float), least = (LEAST_PIXELS + s->out[1] - 1) / s->out[1];
  int64_t rows = BAND_BYTES / row_bytes;
  if (rows < least) rows = least;
  if (rows >= s->out[0]) return s->out[0];
  int64_t bands = (s->out[0] + rows - 1) / rows;
  return (s->out[0] + bands - 1) / bands;
}

/* Images that have a pixel, in groups of one channel. */
static int supports(const flow_call *call)
{
  separable s = separable_of(call);
  return s.first.channels_in > 0 && s.second.channels_out > 0 && s.first.in[0] > 0 && s.first.in[1] > 0 && s.first.out[0] > 0 &&
         s.first.out[1] > 0;
}

static size_t shared_bytes(const flow_call *call)
{
  separable s = separable_of(call);
  return (first_floats(&s) + flow_packed_floats(&s.second, 0) + (size_t)flow_padded_channels(s.second.channels_out)) * sizeof(float);
}

/* The result between of one band. */
static size_t scratch_bytes(const flow_call *call)
{
  separable s = separable_of(call);
  return (size_t)(band_rows(&s.first) * s.first.out[1] * s.first.channels_in) * sizeof(float);
}

static flow_status prepare(const flow_call *call)
{
  separable s = separable_of(call);
  const flow_tap_range all[2] = { { 0, 1, 1 }, { 0, 1, 1 } };
  float *packed = call->shared, *weights = packed + first_floats(&s);
  flow_depthwise_pack(&s.first, call->inputs[1].data, s.biases[0], packed);
  float *biases = flow_pack_weights(&s.second, call->inputs[2].data, 0, all, weights);
  memset(biases, 0, (size_t)flow_padded_channels(s.second.channels_out) * sizeof(float));
  if (s.biases[1]) memcpy(biases, s.biases[1], (size_t)s.second.channels_out * sizeof(float));
  return FLOW_OK;
}

/* Rows first .. last - 1 of one image of y, and its channels [begin, end); begin is a multiple of BLOCK. */
static void convolve(const flow_call *call, const separable *s, int64_t image, int64_t first, int64_t last, int64_t begin, int64_t end)
{
  const flow_geometry *a = &s->first, *b = &s->second;
  const float *packed = call->shared, *weights = packed + first_floats(s), *biases = weights + flow_packed_floats(b, 0);
  const float *x = (const float *)call->inputs[0].data + image * a->in[0] * a->in[1] * a->channels_in;
  float *between = call->scratch, *y = (float *)call->outputs[0].data + image * b->out[0] * b->out[1] * b->channels_out;
  const flow_epilogue epilogue = flow_epilogue_of(b);
  int64_t band = band_rows(a);
  for (; first < last; first += band) {
    int64_t rows = last - first < band ? last - first : band, pixels = rows * a->out[1];
    float *to = y + first * b->out[1] * b->channels_out;
    flow_depthwise_band(a, packed, x, first, first + rows, 0, flow_depthwise_blocks(a), between);
    flow_multiply_pixels(pixels, between, a->channels_in, a->channels_in, weights, biases, 1, epilogue, begin, end, to, b->channels_out);
  }
}

static flow_status run_bands(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  separable s = separable_of(call);
  for (int64_t image = 0; image < s.first.images && call->outputs[0].data; image++)
    convolve(call, &s, image, 0, s.first.out[0], 0, s.second.channels_out);
  return FLOW_OK;
}

/* ---- pieces ------------------------------------------------------------------------------------------------------------------- */

static double products_of(const flow_geometry *s)
{
  return (double)(s->out[0] * s->out[1]) * (double)(s->channels_in * flow_padded_channels(s->channels_out));
}

/* Multiply-adds of one image, where a vector of the depthwise ones takes about three times as long as in products. */
static double work_of(const separable *s)
{
  double taps = (double)(s->first.kernel[0] * s->first.kernel[1]);
  return 3 * (double)(s->first.out[0] * s->first.out[1]) * taps * (double)s->first.channels_in + products_of(&s->second);
}

static int64_t blocks_of(const separable *s)
{
  return (s->second.channels_out + BLOCK - 1) / BLOCK;
}

/* Of one image: bands of rows, or, where there are few rows, groups of blocks of the output's channels, each of which computes all of the
 * result between. */
static flow_piece_grid pieces_of(const separable *s)
{
  enum { FEW_ROWS = 4 };
  int64_t rows = s->first.out[0];
  return rows < FEW_ROWS ? flow_cut_pieces(work_of(s), 1, 1, blocks_of(s), 0) : flow_cut_pieces(work_of(s), rows, 1, 1, 1);
}

static int64_t count_pieces(const flow_call *call)
{
  separable s = separable_of(call);
  flow_piece_grid pieces = pieces_of(&s);
  return s.first.images * pieces.bands * pieces.groups;
}

static flow_status run_piece(const flow_call *call, int64_t piece)
{
  separable s = separable_of(call);
  flow_piece_grid pieces = pieces_of(&s);
  flow_piece of = flow_piece_of(&pieces, piece, s.first.out[0], blocks_of(&s));
  int64_t end = of.end * BLOCK < s.second.channels_out ? of.end * BLOCK : s.second.channels_out;
  if (call->outputs[0].data) convolve(call, &s, of.image, of.first, of.last, of.begin * BLOCK, end);
  return FLOW_OK;
}

/* ---- cost, and any call ----------------------------------------------------------------------------------------------------- */

static double cost(const flow_call *call)
{
  separable s = separable_of(call);
  return (double)s.first.images * flow_cost_arithmetic(work_of(&s), 0.9);
}

/* Both convolutions as calls of their own, by the plain variant, which also takes images without pixels or channels. */
static size_t plain_scratch_bytes(const flow_call *call)
{
  separable s = separable_of(call);
  return (size_t)(s.first.images * s.first.out[0] * s.first.out[1] * s.first.channels_in) * sizeof(float);
}

static flow_status run_plain(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  separable s = separable_of(call);
  if (!call->outputs[0].data) return FLOW_OK;
  flow_operand inputs[3] = { call->inputs[0], call->inputs[1] }, outputs[2] = { call->inputs[0], { .unused = 1 } };
  flow_attributes attributes = *call->attributes;
  flow_call part = *call;
  part.attributes = &attributes;
  part.inputs = inputs;
  part.outputs = outputs;
  if (s.biases[0]) inputs[2] = call->inputs[3];
  for (int i = 0; i < 2; i++) outputs[0].shape[1 + i] = s.first.out[i];
  outputs[0].data = call->scratch;
  FLOW_TRY(flow_convolution_plain(&part, phase, begin, end));
  attributes = (flow_attributes){ 0 };
  attributes.convolution.activation = call->attributes->convolution.pointwise_activation;
  attributes.convolution.has_bias = s.biases[1] != NULL;
  attributes.convolution.ceiling = call->attributes->convolution.pointwise_ceiling;
  inputs[0] = outputs[0];
  inputs[1] = call->inputs[2];
  if (s.biases[1]) inputs[2] = call->inputs[s.biases[0] ? 4 : 3];
  outputs[0] = call->outputs[0];
  return flow_convolution_plain(&part, phase, begin, end);
}

const flow_kernel FLOW_KERNELS(separable_convolution)[] = {
  { .variant = "bands",
    .supports = supports,
    .cost = cost,
    .shared_bytes = shared_bytes,
    .scratch_bytes = scratch_bytes,
    .prepare = prepare,
    .run = run_bands,
    .pieces = count_pieces,
    .run_piece = run_piece },
  { .variant = "plain", .scratch_bytes = plain_scratch_bytes, .run = run_plain },
  { 0 }
};
