/* flow_devices.h: a part of flow.h, which includes it: GPUs. They are numbered from 0; -1 is the host. */
#ifndef FLOW_DEVICES_H
#define FLOW_DEVICES_H

/* ---- devices -------------------------------------------------------------------------------------------------------------- */

/* How many GPUs this process can use. The first call looks for them; before that no library of CUDA is opened. */
FLOW_API int         flow_gpu_count(void);
/* Why there is none, in one sentence; "" if there are some. Borrowed, static. */
FLOW_API const char *flow_gpu_missing(void);
/* Its name and properties, "NVIDIA H200, sm_90, ...", and the size of its memory. Borrowed, static. */
FLOW_API flow_status flow_gpu_describe(int device, const char **description, double *memory_bytes);
/* Bytes that tensors could take there now, about; 0: there is no such device. */
FLOW_API double      flow_gpu_free_memory(int device);
/* How often a GPU was asked for what since it was first used. waits: for all work of a context so far; each download waits as well.
 * replays: launches of recorded steps. */
typedef struct flow_gpu_traffic { double uploads, uploaded_bytes, downloads, downloaded_bytes, waits, replays; } flow_gpu_traffic;
FLOW_API flow_status flow_gpu_read_traffic(int device, flow_gpu_traffic *out);

/* The device for what this context makes and traces from now on. Ops run where their inputs are. */
FLOW_API flow_status flow_context_set_device(flow_context *context, int device);
/* What was set in the current scopes; -1, the host, at first. */
FLOW_API int         flow_context_device(const flow_context *context);

/* A tensor of zeros, as flow_tensor_new makes it, on a device. */
FLOW_API flow_status flow_tensor_new_on(flow_context *context, int device, int dtype, int rank, const int64_t *shape, flow_tensor **out);
/* Where its elements are; -1: on the host, or nowhere, as the tensor is symbolic. */
FLOW_API int         flow_tensor_device(const flow_tensor *tensor);
/* The values on that device: a new reference, to the tensor itself where it is there. Tapes that record see a copy. */
FLOW_API flow_status flow_tensor_to_device(flow_context *context, flow_tensor *tensor, int device, flow_tensor **out);
/* Keeps rows of data sets on a device, at most this many bytes of them: a row comes there when it is met first, and batches are made
 * there. */
typedef struct flow_row_store flow_row_store;
FLOW_API flow_status flow_row_store_new(flow_context *context, int device, double most_bytes, flow_row_store **out);
FLOW_API void        flow_row_store_release(flow_row_store *store);                  /* NULL is fine; iterators that use it keep it */
/* Before the first element: batches of rows that come again in every pass, of slices or of a cache, shuffled or not, are elements of their
 * numbers in the store from now on, or, where components have different ones, tensors of its device; all others stay as they are. One
 * iterator at a time. Returns whether it is of use. */
FLOW_API int         flow_iterator_keep_rows(flow_iterator *iterator, flow_row_store *store);
/* The rows of component i, in the order of their numbers: {capacity, ...}; borrowed. NULL: there is none. */
FLOW_API flow_tensor *flow_row_store_table(const flow_row_store *store, int i);

/* Moves a variable's storage. One that an optimizer has adopted moves with all that share its memory: by flow_optimizer_to_device. */
FLOW_API flow_status flow_variable_to_device(flow_context *context, flow_variable *variable, int device);
/* Moves all that an optimizer trains, and its own variables. */
FLOW_API flow_status flow_optimizer_to_device(flow_context *context, flow_optimizer *optimizer, int device);
FLOW_API flow_status flow_loss_scale_to_device(flow_context *context, flow_loss_scale *scale, int device);
/* Waits for what this context has enqueued on a device, and fails with what went wrong there. */
FLOW_API flow_status flow_device_synchronize(flow_context *context, int device);

/* ---- groups of devices ------------------------------------------------------------------------------------------------------
 * The GPUs on which a process trains one model, a replica on each. Variables are on the first one; the others have copies, which are
 * brought there when they are needed and are kept the same by training on all. Sums over replicas go through the host, or, where they are
 * connected, from device to device, as part of what a step is recorded to. */

/* devices: their numbers, each once. It belongs to the context. New reference; instances keep one. */
FLOW_API flow_status flow_device_group_new(flow_context *context, const int *devices, int count, flow_device_group **out);
/* Before the first instance that uses the group: connects its devices by NCCL, with those of the other workers (NULL: there are none), who
 * all call it. What is in the way, if anything is, lands in `why`, cut at size - 1 bytes, the same on all workers, and is not a failure:
 * sums go through the host then. The worker may be closed before the group is released. */
FLOW_API flow_status flow_device_group_connect(flow_device_group *group, flow_worker *worker, char *why, int size);
FLOW_API void        flow_device_group_release(flow_device_group *group);                     /* NULL is fine */

#endif
