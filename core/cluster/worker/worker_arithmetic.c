/* worker_arithmetic.c: whether all workers of a generation compute with the same instructions. Sums over workers are the same bits
 * everywhere, and so are the optimizers' formulas. But a product or a norm that each worker computes for itself is rounded by its own
 * kernels: workers with AVX2 and with AVX-512 would drift apart if they made a gradient of factors, each on its own. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "cluster/worker/worker_state.h"
#include "run/replicas/replica_set.h"

enum { NAME_SIZE = 32 };      /* of what flow_replica_arithmetic() says, filled up with zeros */

static void tell(const flow_worker *worker, int other, const char *theirs, const char *mine)
{
  char text[FLOW_MOST_TEXT];
  snprintf(text, sizeof text, "%s computes with %s, and this worker with %s: gradients are summed as usual, but what each worker "
           "computes from them for itself, such as a norm, can differ in its last bits. FLOW_ISA=avx2, or plain, on all workers makes "
           "all bits equal", flow_worker_name(worker, other), theirs, mine);
  flow_worker_log(worker, FLOW_LOG_WARNING, text);
}

flow_status flow_worker_compare_arithmetic(flow_worker *worker)
{
  const int workers = worker->exchange.workers;
  char mine[NAME_SIZE] = "";
  void *block;
  FLOW_TRY(flow_alloc_zero((size_t)workers * NAME_SIZE, &block));
  char (*names)[NAME_SIZE] = block;
  snprintf(mine, sizeof mine, "%s", flow_replica_arithmetic());
  flow_status status = flow_communicator_all_gather(worker->communicator, mine, NAME_SIZE, names);
  worker->unlike = 0;
  for (int rank = 1; rank < workers && status == FLOW_OK && !worker->unlike; rank++) {
    if (memcmp(names[rank], names[0], NAME_SIZE) == 0) continue;
    worker->unlike = 1;
    names[rank][NAME_SIZE - 1] = 0;
    if (worker->exchange.worker == 0) tell(worker, rank, names[rank], mine);      /* once a cluster */
  }
  flow_free(block);
  return status;
}

int flow_worker_computes_alike(const flow_worker *worker) { return worker && !worker->unlike; }
