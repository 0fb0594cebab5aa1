/* library_plans.h: what library.h promises, of those who keep it, with the device of the call's queue as the thread's current one. Two
 * implementations: cudnn_plan.c and cublas_plan.c (the libraries), emulation/library.c (plain loops, so that everything around them can
 * be tested without a GPU). */
#ifndef FLOW_CUDA_LIBRARY_LIBRARY_PLANS_H
#define FLOW_CUDA_LIBRARY_LIBRARY_PLANS_H

#include "cuda/library/library.h"

const flow_library_plan *flow_convolution_plan(const flow_call *call, const flow_library_convolution *convolution);
const flow_library_plan *flow_product_plan(const flow_call *call, const flow_library_product *product);
flow_status flow_convolution_run(const flow_call *call, const flow_library_plan *plan, const flow_library_operands *operands);
flow_status flow_product_run(const flow_call *call, const flow_library_plan *plan, const void *a, const void *b, const void *bias, void *c,
                             void *workspace);

#endif
