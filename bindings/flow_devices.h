/* flow_devices.h: a part of flow.h, which includes it: GPUs. They are numbered from 0; -1 is the host. */
#ifndef FLOW_DEVICES_H
#define FLOW_DEVICES_H

/* ---- devices -------------------------------------------------------------------------------------------------------------- */

/* GPUs that this process can use: the first call looks for them, before that nothing of CUDA is touched. */
FLOW_API int         flow_gpu_count(void);
FLOW_API const char *flow_gpu_missing(void);                 /* why there is none, one sentence; "" where there are some; borrowed, static */
FLOW_API flow_status flow_gpu_describe(int device, const char **description, double *memory_bytes); /* "NVIDIA H200, sm_90, ..."; borrowed, static */

/* Where what this context makes and traces from now on lies and runs. Ops run where their inputs are. */
FLOW_API flow_status flow_context_set_device(flow_context *context, int device);
FLOW_API int         flow_context_device(const flow_context *context);

FLOW_API int         flow_tensor_device(const flow_tensor *tensor);
/* The values on that device: a new reference, to the tensor itself where it is there. Tapes that record see a copy. */
FLOW_API flow_status flow_tensor_to_device(flow_context *context, flow_tensor *tensor, int device, flow_tensor **out);
/* Moves a variable's storage. One that an optimizer has adopted moves with all that share its memory: by flow_optimizer_to_device. */
FLOW_API flow_status flow_variable_to_device(flow_context *context, flow_variable *variable, int device);
/* Moves all that an optimizer trains, and its own variables. */
FLOW_API flow_status flow_optimizer_to_device(flow_context *context, flow_optimizer *optimizer, int device);
/* Waits for what this context has enqueued on a device, and fails with what went wrong there. */
FLOW_API flow_status flow_device_synchronize(flow_context *context, int device);

#endif
