/* convolution_plain.c: convolution_plain.h for float and double. */
#include "cpu/convolution/convolution.h"

#define REAL float
#define PLAIN(name) name##_float
#include "cpu/convolution/convolution_plain.h"
#undef REAL
#undef PLAIN

#define REAL double
#define PLAIN(name) name##_double
#include "cpu/convolution/convolution_plain.h"
#undef REAL
#undef PLAIN

/* The weights decide: x may be bytes beside weights of float32. */
flow_status flow_convolution_plain(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  flow_geometry s = flow_geometry_of(call, &call->inputs[0], &call->inputs[1]);
  if (call->inputs[1].dtype == FLOW_FLOAT64) run_double(call, &s);
  else run_float(call, &s);
  return FLOW_OK;
}

flow_status flow_convolution_gradient_plain(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  flow_geometry s = flow_geometry_of(call, &call->inputs[1], &call->inputs[2]);
  if (call->inputs[0].dtype == FLOW_FLOAT64) run_gradient_double(call, &s);
  else run_gradient_float(call, &s);
  return FLOW_OK;
}
