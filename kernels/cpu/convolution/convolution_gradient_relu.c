/* convolution_gradient_relu.c: the op of that name. Only plans on devices have it: what the CPU does is their oracle. */
#include "cpu/convolution/convolution.h"
#include "ops/op.h"

/* dx, with what is added to it, is stopped where x is not positive, and added up over its pixels. Members that have no dx have no sums. */
static void stop(const flow_call *call)
{
  const flow_operand *x = &call->inputs[1], *dx = &call->outputs[0], *sums = &call->outputs[3];
  int64_t channels = x->shape[3], pixels = x->shape[0] * x->shape[1] * x->shape[2];
  const float *relu = x->data, *addend = call->input_count > 5 ? call->inputs[5].data : NULL;
  float *g = dx->data, *to = sums->data;
  for (int64_t c = 0; c < channels; c++) {
    double sum = to && call->accumulate ? (double)to[c] : 0;
    for (int64_t at = c; at < pixels * channels; at += channels) {
      if (addend) g[at] += addend[at];
      if (!(relu[at] > 0)) g[at] = 0;
      sum += (double)g[at];
    }
    if (to) to[c] = (float)sum;
  }
}

/* convolution_gradient by its plain variant, then the relu and its sums. */
static flow_status run(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  flow_call gradient = *call;
  gradient.op = FLOW_OP_convolution_gradient;
  gradient.output_count = 3;
  FLOW_TRY(flow_convolution_gradient_plain(&gradient, phase, begin, end));
  if (call->outputs[0].data) stop(call);
  return FLOW_OK;
}
/* The first three outputs are those of convolution_gradient; the fourth are the sums. */
const flow_kernel FLOW_KERNELS(convolution_gradient_relu)[] = { { .variant = "plain", .run = run }, { 0 } };
