/* gradient_buckets.c: gradients on their way to the optimizer's flat arena, and over all replicas where there are several. Then they go
 * in buckets, from the last variables to the first: in this order backward makes them, so that the first buckets are under way while it
 * goes on. A bucket ends with the gradient that fills it. (tensorflow/python/distribute/cross_device_utils.py: group_by_size) */
#include "graph/context.h"
#include "autodiff/apply.h"
#include "train/optimizer.h"

enum { BUCKET_BYTES = 4 << 20 }; /* the default: large enough for the network's speed, small enough for several buckets */

/* Gradients in the order of variables, and the sums that were made of them. */
typedef struct buckets {
  flow_context       *context;
  flow_tensor *const *gradients;
  flow_tensor       **sums;            /* of buckets; the first bucket, which is the last in memory, first */
  int                 count;
} buckets;

static double bytes_of(const flow_tensor *gradient)
{
  return (double)flow_shape_size(gradient->rank, gradient->shape) * flow_dtype_size(gradient->dtype);
}

/* One bucket of gradients [first, end). The sum is a separate node, so that it can begin as soon as its gradients are there. */
static flow_status add_bucket(buckets *b, int first, int end)
{
  flow_tensor *packed;
  FLOW_TRY(flow_apply(b->context, FLOW_OP_pack, b->gradients + first, end - first, NULL, &packed));
  flow_status status = flow_sum_over_replicas(b->context, packed, &b->sums[b->count]);
  flow_tensor_release(packed);
  if (status == FLOW_OK) b->count++;
  return status;
}

/* The sums in the order of memory, joined. */
static flow_status join(buckets *b, flow_tensor **out)
{
  for (int i = 0, k = b->count - 1; i < k; i++, k--) {
    flow_tensor *other = b->sums[i];
    b->sums[i] = b->sums[k];
    b->sums[k] = other;
  }
  if (b->count > 1) return flow_apply(b->context, FLOW_OP_pack, b->sums, b->count, NULL, out);
  *out = flow_tensor_retain(b->sums[0]);
  return FLOW_OK;
}

/* Without replicas one pack of all. Otherwise buckets are cut from the end, summed one by one (the sums may run while backward goes on),
 * and joined in the order of memory. The cut depends on sizes and bucket_bytes only, so every replica cuts alike. */
flow_status flow_optimizer_pack(flow_context *context, flow_tensor *const *gradients, int count, flow_tensor **out)
{
  const flow_graph *graph = flow_context_trace(context);
  if (!graph || graph->replicas == 1)
    return flow_apply(context, FLOW_OP_pack, gradients, count, NULL, out);
  void *block;
  double limit = context->bucket_bytes > 0 ? context->bucket_bytes : BUCKET_BYTES;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_tensor *) * (size_t)count, &block));
  buckets b = { context, gradients, block, 0 };
  flow_status status = FLOW_OK;
  for (int end = count, first; end > 0 && status == FLOW_OK; end = first) {
    double bytes = 0;
    for (first = end; first > 0 && bytes < limit; first--) bytes += bytes_of(gradients[first - 1]);
    status = add_bucket(&b, first, end);
  }
  if (status == FLOW_OK) status = join(&b, out);
  for (int i = 0; i < count; i++) flow_tensor_release(b.sums[i]);
  flow_free(block);
  return status;
}
