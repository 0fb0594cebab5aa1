/* owners.c: whether a tensor's memory is still in use. A binding that lends its own memory (flow_tensor_borrow) asks this before it reuses
 * the memory: views, tapes and plans hold tensors that are not visible elsewhere. */
#include "tensor/tensor.h"

int flow_tensor_owners(const flow_tensor *tensor)
{
  if (!tensor || tensor->magic != FLOW_TENSOR_MAGIC || !tensor->storage) return 0;
  return atomic_load_explicit(&tensor->storage->references, memory_order_acquire);
}
