/* tensor_index.h: which value stands for a tensor: a hash table by address (open addressing, linear probing). It holds no references: the
 * values hold them, and nothing is ever taken out. */
#ifndef FLOW_GRAPH_TENSOR_INDEX_H
#define FLOW_GRAPH_TENSOR_INDEX_H

#include "tensor/tensor.h"

typedef struct flow_indexed_tensor { const flow_tensor *tensor; int value; } flow_indexed_tensor;

/* All zero: empty. */
typedef struct flow_tensor_index {
  flow_indexed_tensor *entries;
  int                count, capacity;      /* capacity: a power of two, or 0 */
} flow_tensor_index;

/* The value of a tensor, or -1. */
int         flow_tensor_index_find(const flow_tensor_index *index, const flow_tensor *tensor);
/* Makes room for one more entry, so that the next flow_tensor_index_put cannot fail. */
flow_status flow_tensor_index_reserve(flow_tensor_index *index);
/* The value of `tensor` is `value` from now on. */
flow_status flow_tensor_index_put(flow_tensor_index *index, const flow_tensor *tensor, int value);
void        flow_tensor_index_free(flow_tensor_index *index);

#endif
