/* bundling.h: which launches of a recording go together, in one launch of the kernel bundle: small ones that are next to each other in a
 * queue. The runtime offers each launch that it records; before anything else is enqueued on the queue, or follows it, the bundle is
 * closed.
 *
 * Launches depend on each other if one writes bytes that the other touches, by the operands of their calls; effects also read whether
 * there is a fault, which CHECKS ops write. Those are in one block of the bundle, each in the first turn after those that it depends on;
 * what depends on none of them gets another block. An element that is made of what the same thread has just written needs no further
 * turn: scalars that follow each other have one, as have short lines, each of which a thread does from softmax to argmax. */
#ifndef FLOW_CUDA_RUNTIME_BUNDLING_H
#define FLOW_CUDA_RUNTIME_BUNDLING_H

#include "cuda/runtime/launch.h"

typedef struct flow_cuda_bundle flow_cuda_bundle;

/* A launch that is ready to be enqueued. arguments: borrowed. */
typedef struct flow_cuda_closed { flow_cuda_kernel kernel; int op; int64_t count; const void *arguments; size_t bytes; } flow_cuda_closed;

/* Whether the launch is small enough to be bundled, now or ever. */
int flow_cuda_is_small(const flow_call *call, flow_cuda_kernel kernel, int64_t count);
/* Takes a small launch over, if there is still room for it: *taken. `*bundle` is made when it is NULL; flow_free frees it. */
flow_status flow_cuda_bundle_add(flow_cuda_bundle **bundle, const flow_call *call, flow_cuda_kernel kernel, int64_t count,
                                 const void *arguments, size_t bytes, int *taken);
/* The launch of all that was added since, which is forgotten; a single one stays what it was. 0: there was none. The arguments stay until
 * something is added. NULL is an empty bundle. */
int flow_cuda_bundle_close(flow_cuda_bundle *bundle, flow_cuda_closed *launch);

#endif
