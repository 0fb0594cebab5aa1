/* pairwise_sum.c: see pairwise_sum.h. Piece by piece, so that the memory for what the others have does not grow with a sum. */
#include "transport/pairwise_sum.h"

#include <string.h>

#include "base/memory.h"
#include "tensor/pairwise.h"

enum { PIECE = 262144 };               /* bytes of each rank: long enough to be worth a message */

struct flow_pairwise_sum {
  int          ranks;
  /* what all ranks have of the piece under way, in their order without gaps */
  char        *pieces;                 /* ranks x PIECE */
  /* where each rank's part of it begins */
  void       **parts;                  /* [rank] */
};

/* Takes ranks * PIECE bytes at once, so that no later sum can fail for want of memory. */
flow_status flow_pairwise_sum_new(int ranks, flow_pairwise_sum **out)
{
  void *block;
  *out = NULL;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_pairwise_sum), &block));
  flow_pairwise_sum *self = block;
  self->ranks = ranks;
  flow_status status = flow_alloc((size_t)ranks * PIECE, &block);
  if (status == FLOW_OK) {
    self->pieces = block;
    status = flow_alloc(sizeof(void *) * (size_t)ranks, &block);
  }
  if (status == FLOW_OK) {
    self->parts = block;
    *out = self;
  } else {
    flow_pairwise_sum_release(self);
  }
  return status;
}

void flow_pairwise_sum_release(flow_pairwise_sum *self)
{
  if (!self) return;
  flow_free(self->pieces);
  flow_free(self->parts);
  flow_free(self);
}

/* Everybody gets all elements and adds them up by the same tree, so that the sum depends on the number of ranks alone, whatever carries
 * the bytes. */
flow_status flow_pairwise_sum_run(flow_pairwise_sum *self, flow_communicator *communicator, flow_dtype dtype, void *data, int64_t count)
{
  int64_t size = flow_dtype_size(dtype), most = PIECE / size;
  for (int64_t begin = 0; begin < count; begin += most) {
    int64_t n = count - begin < most ? count - begin : most;
    char *mine = (char *)data + begin * size;
    FLOW_TRY(flow_communicator_all_gather(communicator, mine, n * size, self->pieces));
    for (int rank = 0; rank < self->ranks; rank++) self->parts[rank] = self->pieces + rank * n * size;
    flow_add_terms(dtype, self->parts, self->ranks, mine, n);
  }
  return FLOW_OK;
}
