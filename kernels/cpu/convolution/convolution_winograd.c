/* convolution_winograd.c: the variant "winograd" of convolution: kernels of 3 x 3 with stride 1, by tiles of 4 x 4 outputs,
 * which take a quarter of the direct variant's multiplications, or, for an exact call, of 2 x 2; and kernels of 5 x 5 by tiles of 2 x 2,
 * which take 36 of 100.
 *
 * A NaN or infinity in the input makes NaN of every output of the tiles that see it, not only of those whose kernels do. */
#include "cpu/convolution/convolution_winograd.h"
#include "cpu/cost.h"
#include "cpu/variant.h"
#include "cpu/convolution/winograd_tiles.h"

FLOW_PIECES(convolution_winograd);

/* The tiles of one image: what the pool leaves out is not computed. */
static flow_tile_range range_of(const flow_geometry *s, winograd_form form)
{
  return (flow_tile_range){ .rows = flow_tiles_along(s->result[0] * s->pool[0], form),
                            .images = s->images,
                            .columns = flow_tiles_along(s->result[1] * s->pool[1], form) };
}

/* shared: the biases, filled up with zeros, then U. */
static float *weights_of(const flow_call *call, const flow_geometry *s)
{
  return (float *)call->shared + flow_plane(flow_padded_channels(s->channels_out));
}

/* Biases take a plane, so that U begins at a cache line. */
size_t FLOW_ISA_NAME(convolution_winograd_shared_bytes)(const flow_call *call)
{
  flow_geometry s = flow_geometry_of(call, &call->inputs[0], &call->inputs[1]);
  size_t weights = flow_winograd_weights_floats(flow_winograd_form(call, &s), s.channels_in, s.channels_out);
  return ((size_t)flow_plane(flow_padded_channels(s.channels_out)) + weights) * sizeof(float);
}

/* V, M and a patch for a chunk of tiles. Pieces of a call take the chunk of the whole call, so that the block is large enough for them. */
size_t FLOW_ISA_NAME(convolution_winograd_scratch_bytes)(const flow_call *call)
{
  flow_geometry s = flow_geometry_of(call, &call->inputs[0], &call->inputs[1]);
  winograd_form form = flow_winograd_form(call, &s);
  flow_tile_range range = range_of(&s, form);
  return flow_winograd_scratch_floats(form, s.channels_in, flow_tile_count(&range)) * sizeof(float);
}

/* U = G w G^T is made once for all chunks and members, times the input's scale. */
flow_status FLOW_ISA_NAME(convolution_winograd_prepare)(const flow_call *call)
{
  flow_geometry s = flow_geometry_of(call, &call->inputs[0], &call->inputs[1]);
  memset(call->shared, 0, (size_t)flow_padded_channels(s.channels_out) * sizeof(float));
  if (s.has_bias) memcpy(call->shared, call->inputs[2].data, (size_t)s.channels_out * sizeof(float));
  flow_winograd_weights(flow_winograd_form(call, &s), call->inputs[1].data, s.channels_in, s.channels_out, 0, (float)s.input_scale,
                        weights_of(call, &s));
  return FLOW_OK;
}

/* Tiles [first, last) of the call and the blocks [begin, end) of output channels. */
static void convolve(const flow_call *call, const flow_geometry *s, int64_t first, int64_t last, int64_t begin, int64_t end)
{
  int64_t image = s->in[0] * s->in[1] * s->channels_in;
  const float *x = call->inputs[0].data;
  flow_tile_source source = {
    .data = x, .end = x + s->images * image, .image_step = image, .size = { s->in[0], s->in[1] }, .channels = s->channels_in,
    .origin = { -s->before[0], -s->before[1] },
  };
  flow_tile_result result = {
    .y = call->outputs[0].data,
    .index = s->pooled ? call->outputs[1].data : NULL,
    .bias = call->shared,
    .pooled = s->pooled,
    .relu = s->relu,
    .epilogue = flow_epilogue_of(s),
    .size = { s->result[0], s->result[1] },
    .channels = s->channels_out,
  };
  result.epilogue.added = flow_added(call);
  flow_tile_range range = range_of(s, flow_winograd_form(call, s));
  if (!result.y && !result.index) return;
  flow_winograd_convolve(flow_winograd_form(call, s), &source, &range, first, last, begin, end, weights_of(call, s), &result,
                         call->scratch);
}

/* Blocks of output channels, and tiles of all images. */
static int64_t blocks_of(const flow_geometry *s) { return (s->channels_out + BLOCK - 1) / BLOCK; }

static int64_t tiles_of(const flow_call *call, const flow_geometry *s)
{
  flow_tile_range range = range_of(s, flow_winograd_form(call, s));
  return flow_tile_count(&range);
}

/* All tiles of all images as one range: a chunk may hold the end of one image and the beginning of the next. */
flow_status FLOW_ISA_NAME(convolution_winograd_run)(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  flow_geometry s = flow_geometry_of(call, &call->inputs[0], &call->inputs[1]);
  convolve(call, &s, 0, tiles_of(call, &s), 0, blocks_of(&s));
  return FLOW_OK;
}

/* Blocks of channels that stay together, and how many such groups there are. */
static int64_t blocks_of_group(const flow_geometry *s)
{
  enum { MANY_BLOCKS = 8 };
  return blocks_of(s) < MANY_BLOCKS ? 1 : 2;
}
static int64_t groups_of(const flow_geometry *s)
{
  return (blocks_of(s) + blocks_of_group(s) - 1) / blocks_of_group(s);
}

/* Bands are of tiles. Every piece transforms its tiles of the input and reads its part of the weights once: if a second-level cache does
 * not hold the weights, bands are as long as the chunks of the whole call. */
static flow_piece_grid pieces_of(const flow_call *call, const flow_geometry *s)
{
  enum { LEAST_TILES = 12, MANY_WEIGHTS = 1 << 20 };
  const winograd_form form = flow_winograd_form(call, s);
  int64_t tiles = tiles_of(call, s), chunk = flow_winograd_chunk(form, s->channels_in, tiles > 0 ? tiles : 1);
  int64_t weights = (int64_t)flow_winograd_weights_floats(form, s->channels_in, s->channels_out) * (int64_t)sizeof(float);
  int64_t units = (tiles + LEAST_TILES - 1) / LEAST_TILES, least = tiles > 0 ? (tiles + chunk - 1) / chunk : 1;
  double multiply_adds = (double)(tiles * winograd_side(form) * winograd_side(form)) * (double)(s->channels_in * s->channels_out);
  if (units < least) units = least;
  return flow_cut_pieces(2 * multiply_adds, units, least, groups_of(s), weights <= MANY_WEIGHTS);
}

int64_t FLOW_ISA_NAME(convolution_winograd_pieces)(const flow_call *call)
{
  flow_geometry s = flow_geometry_of(call, &call->inputs[0], &call->inputs[1]);
  flow_piece_grid pieces = pieces_of(call, &s);
  return pieces.bands * pieces.groups;
}

/* A range of tiles, which may begin and end anywhere in an image, and some blocks of channels. */
flow_status FLOW_ISA_NAME(convolution_winograd_run_piece)(const flow_call *call, int64_t piece)
{
  flow_geometry s = flow_geometry_of(call, &call->inputs[0], &call->inputs[1]);
  flow_piece_grid pieces = pieces_of(call, &s);
  flow_piece of = flow_piece_of(&pieces, piece, tiles_of(call, &s), groups_of(&s));
  int64_t begin = of.begin * blocks_of_group(&s), end = of.end * blocks_of_group(&s);
  if (of.first < of.last) convolve(call, &s, of.first, of.last, begin, end < blocks_of(&s) ? end : blocks_of(&s));
  return FLOW_OK;
}

/* Pools other than 2 x 2 windows side by side would not fall into whole tiles. */
int FLOW_ISA_NAME(convolution_winograd_supports)(const flow_call *call)
{
  flow_geometry s = flow_geometry_of(call, &call->inputs[0], &call->inputs[1]);
  for (int axis = 0; axis < 2 && s.pooled; axis++)
    if (s.pool[axis] != 2 || s.pool_stride[axis] != 2) return 0;
  return call->inputs[0].dtype == FLOW_FLOAT32 && flow_winograd_geometry(call, &s);
}

double FLOW_ISA_NAME(convolution_winograd_cost)(const flow_call *call)
{
  flow_geometry s = flow_geometry_of(call, &call->inputs[0], &call->inputs[1]);
  flow_tile_range range = range_of(&s, flow_winograd_form(call, &s));
  return flow_winograd_cost(flow_winograd_form(call, &s), flow_tile_count(&range), s.channels_in, s.channels_out, call->kept);
}
