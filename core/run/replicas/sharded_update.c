/* sharded_update.c: updates that workers divide. The gradient of a large matrix, {rows, columns}, is a product of two factors whose rows
 * are the samples of the batch; such gradients reach an optimizer as the factors of all replicas, gathered (all_gather.c). Every worker
 * could make the whole update from them; instead each makes the rows of the matrix that are its shard, and they fetch each other's. So
 * no sum of gradients as large as the matrix is made, no worker repeats the others' arithmetic, and afterwards all have the same bits:
 * parameters and slots. It pays where workers share memory (exchange.h: collect). Most updates have parameters and slots in memory that all
 * see (shared_weights.c): then nothing is fetched.
 *
 * A worker that is lost meanwhile must not leave half an update: a worker that cannot fetch a shard makes it, from the factors that it has.
 * That costs time and no correctness, which is why this is a late failure (run_state.h): the run fails after its variables are written. */
#include <string.h>

#include "cpu_choice.h"
#include "ops/optimizer_layout.h"
#include "run/replicas/replica_set.h"

_Static_assert(FLOW_MOST_SHARDED_COLUMNS * sizeof(float) * (1 + FLOW_MAX_SLOT_KINDS) <= FLOW_MOST_COLLECTED,
               "a row that workers divide is more than an exchange hands over at once");

const char *flow_replica_arithmetic(void) { return flow_cpu_arithmetic(); }
void flow_replica_use_arithmetic(const char *isa)
{
  flow_cpu_use(isa);
}

int flow_is_sharded(const flow_replica_set *set, int e)
{
  const flow_instance *lead = set->lead;
  const flow_node *node = &lead->plan->graph->nodes[lead->entries[e].node];
  if (!lead->plan->segments[lead->entries[e].segment].tail) return 0;      /* an update of copies: advance_updates.h */
  if (lead->plan->graph->gathers != FLOW_GATHERS_WORKERS) return 0;
  return set->exchange && set->gathers && flow_optimizer_layout_of(node->op) && node->attributes.optimizer.products > 0;
}

/* The columns of its two factors, which are the last inputs of the node, in pairs. */
void flow_sharded_matrix(const flow_replica_set *set, int e, int i, int64_t *rows, int64_t *columns)
{
  const flow_graph *graph = set->lead->plan->graph;
  const flow_node *node = &graph->nodes[set->lead->entries[e].node];
  int first = node->input_count - 2 * (node->attributes.optimizer.products - i);
  *rows = graph->values[node->inputs[first]].signature.dims[1];
  *columns = graph->values[node->inputs[first + 1]].signature.dims[1];
}

/* The row at which a worker's shard of a matrix begins: whole tiles of the kernels, as even as they go. begin_of(rows, workers, workers)
 * is `rows`. */
static int64_t begin_of(int64_t rows, int worker, int workers)
{
  enum { TILES = 16 };
  int64_t tiles = (rows + TILES - 1) / TILES, row = tiles * worker / workers * TILES;
  return row < rows ? row : rows;
}

/* Elements outside of products (biases, small layers) are updated by every worker, so that they need not travel. */
flow_shard flow_shard_of(const flow_replica_set *set, int e, int worker)
{
  const flow_instance *lead = set->lead;
  flow_shard shard = { .rest = 1, .moved = e == set->weights.entry ? set->weights.moved : 0 };
  int products = lead->plan->graph->nodes[lead->entries[e].node].attributes.optimizer.products;
  for (int i = 0; i < products; i++) {
    int64_t rows, columns;
    flow_sharded_matrix(set, e, i, &rows, &columns);
    shard.rows[i][0] = begin_of(rows, worker, set->exchange->workers);
    shard.rows[i][1] = begin_of(rows, worker + 1, set->exchange->workers);
  }
  return shard;
}

/* The kernel, run as by its segment, by this member alone. */
static void run_alone(const flow_replica_set *set, int e, const flow_call *call, const flow_shard *shard)
{
  const flow_kernel *kernel = set->lead->entries[e].kernel;
  flow_call own = *call;
  own.shard = shard;
  for (int phase = 0; phase < (kernel->phases ? kernel->phases : 1); phase++)
    kernel->run(&own, phase, 0, kernel->parts ? kernel->parts(&own, phase) : 1);
}

/* Makes what is missing of product i: of every other worker's shard all but the rows that were received. */
static void make_missing(const flow_replica_set *set, int e, const flow_call *call, int i)
{
  for (int w = 0; w < set->exchange->workers; w++) {
    flow_shard shard = { .rest = 0 };
    int64_t first = set->unit_bounds[w] + set->received[w], last = set->unit_bounds[w + 1];
    if (w == set->exchange->worker || first == last) continue;
    shard.rows[i][0] = first;
    shard.rows[i][1] = last;
    run_alone(set, e, call, &shard);
  }
}

/* Waits until all have made their parts, in common memory. If they do not come, nobody knows what they have made, or will make, once they
 * go on: the whole update is made here, in memory of this process. */
static void meet(flow_replica_set *set, int e, const flow_call *call)
{
  void *none = NULL;
  for (int w = 0; w <= set->exchange->workers; w++) set->unit_bounds[w] = 0;
  flow_status status = set->exchange->collect(set->exchange, &none, 1, (int64_t)sizeof(float), set->unit_bounds, set->received);
  if (status == FLOW_OK) return;
  flow_failure_take(&set->run.late, status);
  flow_shard whole = { .rest = 1, .moved = call->shard->moved };
  for (int i = 0; i < call->attributes->optimizer.products; i++) {
    int64_t columns;
    flow_sharded_matrix(set, e, i, &whole.rows[i][1], &columns);
  }
  flow_leave_next_weights(set);
  run_alone(set, e, call, &whole);
}

/* Arrays of a product: the parameters and each slot of the optimizer, at the product's offset in the flat arenas. A unit is a row of the
 * matrix. */
void flow_collect_shards(flow_replica_set *set, int e, const flow_call *call)
{
  const flow_optimizer_layout *layout = flow_optimizer_layout_of(call->op);
  const char *names[FLOW_MAX_SLOT_KINDS];
  void *arrays[1 + FLOW_MAX_SLOT_KINDS];
  int slots = layout->names(call->attributes, names);
  if (call->shard->moved) {
    meet(set, e, call);
    return;
  }
  for (int i = 0; i < call->attributes->optimizer.products; i++) {
    int64_t rows, columns, offset = call->attributes->optimizer.first[i];
    flow_sharded_matrix(set, e, i, &rows, &columns);
    for (int w = 0; w <= set->exchange->workers; w++) set->unit_bounds[w] = begin_of(rows, w, set->exchange->workers);
    for (int k = 0; k <= slots; k++) arrays[k] = (float *)call->inputs[k == 0 ? 1 : layout->slots[k - 1]].data + offset;
    flow_status status = set->exchange->collect(set->exchange, arrays, 1 + slots, columns * (int64_t)sizeof(float), set->unit_bounds,
                                                set->received);
    if (status == FLOW_OK) continue;
    flow_failure_take(&set->run.late, status);
    make_missing(set, e, call, i);
  }
}
