/* worker_arithmetic.c: all workers of a generation are to compute with the same instructions. Sums over workers are the same bits
 * everywhere, and so are the optimizers' formulas. But a product or a norm that each worker computes for itself is rounded by its own
 * kernels: the weights of workers with AVX2 and with AVX-512 would drift apart, as the updates of Muon and Adafactor do.
 *
 * So all take the widest instruction set that all have, before they make anything together. A worker that has trained in an earlier
 * generation has laid out its plans, and stays unchanged: one that comes later does as the others if it can, else the first worker warns,
 * and gradients travel as sums. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "cluster/worker/worker_state.h"
#include "run/replicas/replica_set.h"

/* What a worker tells the others: what flow_replica_arithmetic() says, filled up with zeros, and whether it can still change. */
typedef struct arithmetic {
  char name[31];
  char is_new;
} arithmetic;

/* The widest instruction set that two workers have which do not compute alike, a build's name. Names begin with a build's: with AVX-512
 * units for bfloat16 are another matter than those without. */
static const char *common_of(const char *first, const char *second)
{
  static const char *const builds[] = { "plain", "avx2" };
  for (int i = 0; i < 2; i++)
    if (strcmp(first, builds[i]) == 0 || strcmp(second, builds[i]) == 0) return builds[i];
  return builds[1];
}

/* Of all workers; NULL: they compute alike. */
static const char *find_common(const arithmetic *all, int workers)
{
  const char *common = all[0].name;
  for (int rank = 1; rank < workers; rank++)
    if (strcmp(all[rank].name, common) != 0) common = common_of(all[rank].name, common);
  return common == all[0].name ? NULL : common;
}

/* The first worker that does not compute as rank 0 does, named with it. */
static void tell(const flow_worker *worker, const arithmetic *all, const char *common)
{
  char text[FLOW_MOST_TEXT];
  int other = 1;
  while (strcmp(all[other].name, all[0].name) == 0) other++;
  flow_text to = flow_text_into(text, sizeof text);
  flow_text_add(&to, "%s computes with %s, and this worker with %s: ", flow_worker_name(worker, other), all[other].name, all[0].name);
  if (common) {
    flow_text_add(&to, "all take %s, so that their variables stay equal", common);
  } else {
    flow_text_add(&to, "gradients are summed as usual, but what each worker computes from them for itself, such as a norm, can differ in "
                       "its last bits. FLOW_ISA=avx2, or plain, on all workers makes all bits equal");
  }
  flow_worker_log(worker, FLOW_LOG_WARNING, text);
}

/* All workers see the same, and come to the same conclusion. */
flow_status flow_worker_compare_arithmetic(flow_worker *worker)
{
  const int workers = worker->exchange.workers;
  arithmetic mine = { .is_new = !worker->has_trained };
  void *block;
  FLOW_TRY(flow_alloc_zero((size_t)workers * sizeof mine, &block));
  arithmetic *all = block;
  snprintf(mine.name, sizeof mine.name, "%s", flow_replica_arithmetic());
  flow_status status = flow_communicator_all_gather(worker->communicator, &mine, sizeof mine, all);
  for (int rank = 0; rank < workers; rank++) all[rank].name[sizeof mine.name - 1] = 0;
  const char *common = status == FLOW_OK ? find_common(all, workers) : NULL;
  int changes = common != NULL;
  for (int rank = 0; rank < workers; rank++) changes &= all[rank].is_new || strcmp(all[rank].name, common ? common : "") == 0;
  worker->unlike = common && !changes;
  if (changes) flow_replica_use_arithmetic(common);
  if (common && worker->exchange.worker == 0) tell(worker, all, changes ? common : NULL); /* once a cluster */
  if (status == FLOW_OK) worker->has_trained = 1;
  flow_free(block);
  return status;
}

int flow_worker_computes_alike(const flow_worker *worker) { return worker && !worker->unlike; }
