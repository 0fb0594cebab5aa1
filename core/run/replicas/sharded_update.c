/* sharded_update.c: updates that workers divide. Where gradients of large matrices reach an optimizer as the rows of all replicas, every
 * worker could make the whole update; instead each makes the rows of the matrix that are its share, and they fetch each other's. So no sum
 * of
 * gradients as large as the matrix is made, nobody does the others' arithmetic, and afterwards all have the same bits: parameters and
 * slots. It pays where workers share memory (exchange.h: collect).
 *
 * A worker that is lost meanwhile must not leave half an update: whoever cannot fetch a share makes it, from the rows that it has. */
#include <string.h>

#include "run/instance.h"
#include "ops/optimizer_layout.h"

_Static_assert(FLOW_MOST_SHARDED_COLUMNS * sizeof(float) * (1 + FLOW_MAX_SLOT_KINDS) <= FLOW_MOST_COLLECTED,
               "a row that workers divide is more than an exchange hands over at once");

int flow_is_shared(const flow_instance *lead, int e)
{
  const flow_node *node = &lead->plan->graph->nodes[lead->entries[e].node];
  if (!lead->plan->segments[lead->entries[e].segment].tail) return 0;      /* an update of copies: advance_updates.h */
  return lead->exchange && lead->gathers && flow_optimizer_layout_of(node->op) && node->attributes.optimizer.products > 0;
}

/* The factors' columns: rows and columns of product i. */
static void find_matrix(const flow_instance *lead, int e, int i, int64_t *rows, int64_t *columns)
{
  const flow_graph *graph = lead->plan->graph;
  const flow_node *node = &graph->nodes[lead->entries[e].node];
  int first = node->input_count - 2 * (node->attributes.optimizer.products - i);
  *rows = graph->values[node->inputs[first]].signature.dims[1];
  *columns = graph->values[node->inputs[first + 1]].signature.dims[1];
}

/* Where a worker's share of `rows` begins: whole tiles of the kernels, as even as they go. */
static int64_t begin_of(int64_t rows, int worker, int workers)
{
  enum { TILES = 16 };
  int64_t tiles = (rows + TILES - 1) / TILES, row = tiles * worker / workers * TILES;
  return row < rows ? row : rows;
}

flow_share flow_share_of(const flow_instance *lead, int e, int worker)
{
  flow_share share = { .rest = 1 };
  int products = lead->plan->graph->nodes[lead->entries[e].node].attributes.optimizer.products;
  for (int i = 0; i < products; i++) {
    int64_t rows, columns;
    find_matrix(lead, e, i, &rows, &columns);
    share.rows[i][0] = begin_of(rows, worker, lead->exchange->workers);
    share.rows[i][1] = begin_of(rows, worker + 1, lead->exchange->workers);
  }
  return share;
}

/* Makes what is missing of product i: of every other worker's share all but the rows that were received. */
static void make_missing(const flow_instance *lead, int e, const flow_call *call, int i)
{
  const flow_kernel *kernel = lead->entries[e].kernel;
  flow_call missing = *call;
  for (int w = 0; w < lead->exchange->workers; w++) {
    flow_share share = { .rest = 0 };
    int64_t first = lead->share_units[w] + lead->received[w], last = lead->share_units[w + 1];
    if (w == lead->exchange->worker || first == last) continue;
    share.rows[i][0] = first;
    share.rows[i][1] = last;
    missing.share = &share;
    for (int phase = 0; phase < (kernel->phases ? kernel->phases : 1); phase++)
      kernel->run(&missing, phase, 0, kernel->parts ? kernel->parts(&missing, phase) : 1);
  }
}

void flow_collect_shares(flow_instance *lead, int e, const flow_call *call)
{
  const flow_optimizer_layout *layout = flow_optimizer_layout_of(call->op);
  const char *names[FLOW_MAX_SLOT_KINDS];
  void *arrays[1 + FLOW_MAX_SLOT_KINDS];
  int slots = layout->names(call->attributes, names);
  for (int i = 0; i < call->attributes->optimizer.products; i++) {
    int64_t rows, columns, offset = call->attributes->optimizer.first[i];
    find_matrix(lead, e, i, &rows, &columns);
    for (int w = 0; w <= lead->exchange->workers; w++) lead->share_units[w] = begin_of(rows, w, lead->exchange->workers);
    for (int k = 0; k <= slots; k++) arrays[k] = (float *)call->inputs[k == 0 ? 1 : layout->slots[k - 1]].data + offset;
    flow_status status = lead->exchange->collect(lead->exchange, arrays, 1 + slots, columns * (int64_t)sizeof(float), lead->share_units,
                                                 lead->received);
    if (status == FLOW_OK) continue;
    flow_failure_take(&lead->late, status);
    make_missing(lead, e, call, i);
  }
}
