/* cudnn_trial.h: cuDNN's plans of a convolution, timed on the device that they are for; see plan_trial.h. */
#ifndef FLOW_CUDA_LIBRARY_CUDNN_TRIAL_H
#define FLOW_CUDA_LIBRARY_CUDNN_TRIAL_H

#include "cuda/library/cudnn_plan.h"

/* The number of the fastest of `count` plans. Operands are memory of its own for the time, as large as the formula says; 0 where there is
 * not enough. The device has a handle, and is the thread's current one. */
int flow_cudnn_trial(const flow_cudnn_device *device, const flow_library_convolution *convolution, const flow_cudnn_names *names,
                     const flow_cudnn_plan *plans, int count);

/* The operands' addresses by the names of their tensors, as cuDNN runs plans with them; *out is to be destroyed, after a failure, too. */
cudnnStatus_t flow_cudnn_pack(const flow_cudnn *cudnn, const flow_cudnn_names *names, const flow_library_operands *operands,
                              cudnnBackendDescriptor_t *out);

#endif
