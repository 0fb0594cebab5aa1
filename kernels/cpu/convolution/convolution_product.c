/* convolution_product.c: the variant "product": 1 x 1 convolutions with stride 1 as a product of matrices, pixels x channels, with the
 * weights where they are. For weights that change from run to run, which "pointwise" would pack each time; packed weights that are kept are
 * faster. The product is unsplit, so that bits do not depend on how pixels are cut. */
#include "cpu/convolution/convolution.h"
#include "cpu/cost.h"
#include "cpu/matrix_product/gemm.h"

/* FEW_CHANNELS: fewer do not fill the tiles of a product. FEW_PIXELS: fewer share packed weights too seldom. */
enum { FEW_CHANNELS = 32, FEW_PIXELS = 128 };

static flow_geometry geometry_of(const flow_call *call)
{
  return flow_geometry_of(call, &call->inputs[0], &call->inputs[1]);
}

int FLOW_ISA_NAME(convolution_product_supports)(const flow_call *call)
{
  const flow_geometry g = geometry_of(call), *s = &g;
  return !call->kept && call->inputs[0].dtype == FLOW_FLOAT32 && !s->bytes && s->input_scale == 1 && s->groups == 1 && !s->pooled &&
         s->ceiling == __builtin_inf() && s->kernel[0] == 1 && s->kernel[1] == 1 && s->stride[0] == 1 && s->stride[1] == 1 &&
         !s->before[0] && !s->before[1] && !s->after[0] && !s->after[1] && s->channels_in >= FEW_CHANNELS &&
         s->channels_out >= FEW_CHANNELS && !(call->attributes->convolution.transposed & FLOW_TRANSPOSED_KERNEL);
}

static int64_t pixels_of(const flow_geometry *s)
{
  return s->images * s->out[0] * s->out[1];
}

static gemm product_of(const flow_call *call, const flow_geometry *s)
{
  return (gemm){
    .m = pixels_of(s),
    .n = s->channels_out,
    .k = s->channels_in,
    .lda = s->channels_in,
    .ldb = s->channels_out,
    .ldc = s->channels_out,
    .a = call->inputs[0].data,
    .b = call->inputs[1].data,
    .c = call->outputs[0].data,
    .bias = s->has_bias ? call->inputs[2].data : NULL,
    .relu = s->relu,
    .unsplit = 1
  };
}

/* Reads and writes are hidden but for the fewest pixels, for which weights come from outside of the first-level cache. */
double FLOW_ISA_NAME(convolution_product_cost)(const flow_call *call)
{
  flow_geometry s = geometry_of(call);
  double pixels = (double)pixels_of(&s);
  return flow_cost_arithmetic(pixels * (double)s.channels_in * (double)s.channels_out, pixels < FEW_PIXELS ? 0.85 : 0.94);
}

size_t FLOW_ISA_NAME(convolution_product_scratch_bytes)(const flow_call *call)
{
  (void)call;
  return gemm_scratch_bytes();
}

int64_t FLOW_ISA_NAME(convolution_product_pieces)(const flow_call *call)
{
  flow_geometry s = geometry_of(call);
  gemm g = product_of(call, &s);
  return gemm_parts(&g, 0);
}

/* A part of the product, which is the same product whoever does its parts. */
flow_status FLOW_ISA_NAME(convolution_product_run_piece)(const flow_call *call, int64_t piece)
{
  flow_geometry s = geometry_of(call);
  gemm g = product_of(call, &s);
  if (g.c) gemm_run(&g, 0, piece, NULL, call->scratch);
  return FLOW_OK;
}

flow_status FLOW_ISA_NAME(convolution_product_run)(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  flow_geometry s = geometry_of(call);
  gemm g = product_of(call, &s);
  for (int64_t part = 0, parts = g.c ? gemm_parts(&g, 0) : 0; part < parts; part++) gemm_run(&g, 0, part, NULL, call->scratch);
  return FLOW_OK;
}
