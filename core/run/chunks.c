/* chunks.c: into how many slots and how large chunks the rows of a segment may be cut, and where values that are as long as a chunk are
 * in a member's block. See instance.h.
 *
 * A slot is what one member takes at a time, and has its own partial sums. A chunk is a part of a slot through which all ops of the
 * segment go before the next chunk begins, so that what one op writes is still in the second-level cache when the next op reads it. Where
 * an op reads more weights for every chunk than that cache holds, chunks are larger: rows that leave the cache cost less then than weights
 * that are read again and again.
 * Where a segment has sums, both numbers decide in which order numbers are added, and so the bits of the result: then they follow from
 * shapes and the instruction set only, never from the machine's cache or its number of threads. */
#include <unistd.h>

#include "base/team.h"
#include "plan/memory_plan.h"
#include "run/instance.h"

/* Memory that the partial sums of one segment may take. The result of a large Dense layer has tens of megabytes, and each slot has a
 * copy: then there are fewer slots. A few are kept up to the larger limit, so that some threads have work even in such layers. */
static const size_t usual_partial_bytes = (size_t)64 << 20, most_partial_bytes = (size_t)256 << 20;

/* Of a chunk that is larger than the cache. */
static const size_t most_chunk_bytes = (size_t)32 << 20;

/* Bytes that a chunk may fill: 60 % of the second-level cache. The rest holds weights and what the next op writes. Sums depend on how
 * rows are grouped into chunks, so where there are any the nominal cache of the instruction set counts, not this machine's. */
static size_t chunk_budget(int sums)
{
#ifdef _SC_LEVEL2_CACHE_SIZE
  long level2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
#else
  long level2 = 0;       /* musl does not say */
#endif
  size_t nominal = flow_cpu_device()->cache_bytes, bytes = sums || level2 <= 0 ? nominal : (size_t)level2;
  return bytes / 5 * 3;
}

/* Lays out the values that live within segment s in a member's block, for chunks of `rows` rows, and sets the offsets of their bindings
 * and the segment's local_bytes. Time is counted in entries of the segment: a value lives from the entry that makes it to the last one
 * that reads it. blocks, block_of: work space of the caller, see flow_size_stage. */
static flow_status place_locals(flow_instance *instance, int s, int64_t rows, flow_block *blocks, int *block_of)
{
  const flow_plan *plan = instance->plan;
  flow_stage *stage = &instance->stages[s];
  int count = 0;
  for (int k = 0; k < plan->segments[s].count; k++) {
    flow_entry *entry = &instance->entries[plan->segments[s].first + k];
    for (int i = entry->input_count + entry->output_count - 1; i >= 0; i--) {   /* outputs first: they define */
      flow_binding *b = &entry->bindings[i];
      if (b->mode != FLOW_BIND_LOCAL) continue;
      if (i >= entry->input_count && b->root == b->value) {
        block_of[b->root] = count;
        blocks[count++] = (flow_block){ .bytes = b->row_bytes * (size_t)rows, .begin = k, .end = k };
      } else {
        blocks[block_of[b->root]].end = k;
      }
    }
  }
  FLOW_TRY(flow_pack_blocks(blocks, count, FLOW_CPU_ALIGNMENT, &stage->local_bytes));
  for (int k = 0; k < plan->segments[s].count; k++) {
    flow_entry *entry = &instance->entries[plan->segments[s].first + k];
    for (int i = 0; i < entry->input_count + entry->output_count; i++)
      if (entry->bindings[i].mode == FLOW_BIND_LOCAL) entry->bindings[i].offset = blocks[block_of[entry->bindings[i].root]].offset;
  }
  return FLOW_OK;
}

/* What one entry of a segment reads and writes of a row in the arena and the inputs. */
static size_t outer_row_bytes(const flow_entry *entry)
{
  size_t bytes = 0;
  for (int i = 0; i < entry->input_count + entry->output_count; i++)
    if (entry->bindings[i].mode == FLOW_BIND_ROWS) bytes += entry->bindings[i].row_bytes;
  return bytes;
}

/* Bytes that one entry of a segment reads again, or reads and writes, for every chunk: weights and sums, the most of all entries. From
 * shapes only. Of a table an op reads the rows that its indices name. */
static size_t repeated_bytes(const flow_instance *instance, int s)
{
  const flow_plan *plan = instance->plan;
  size_t most = 0;
  for (int k = 0; k < plan->segments[s].count; k++) {
    const flow_entry *entry = &instance->entries[plan->segments[s].first + k];
    const int has_table = (flow_op(plan->graph->nodes[entry->node].op)->flags & FLOW_OP_CHECKS) != 0;
    size_t bytes = 0;
    for (int i = 0; i < entry->input_count + entry->output_count; i++) {
      const flow_binding *b = &entry->bindings[i];
      if (b->mode == FLOW_BIND_PARTIAL) bytes += 2 * b->bytes;
      if (b->mode == FLOW_BIND_WHOLE && !has_table) bytes += flow_value_bytes(&plan->graph->values[b->value].signature, 0);
    }
    if (bytes > most) most = bytes;
  }
  return most;
}

/* How many rows of a segment a cache holds: what lives inside it at one time (as place_locals laid one row out), and the most
 * that one entry touches outside; as many as take the bytes that every chunk reads again, if these are more. */
static int64_t rows_that_fit(const flow_instance *instance, int s, int sums)
{
  const flow_plan *plan = instance->plan;
  size_t outside = 0;
  for (int k = 0; k < plan->segments[s].count; k++) {
    size_t bytes = outer_row_bytes(&instance->entries[plan->segments[s].first + k]);
    if (bytes > outside) outside = bytes;
  }
  size_t row = instance->stages[s].local_bytes + outside, budget = chunk_budget(sums), repeated = repeated_bytes(instance, s);
  if (repeated > most_chunk_bytes) repeated = most_chunk_bytes;
  if (repeated > budget) budget = repeated;
  return row < 1 ? (int64_t)budget : row < budget ? (int64_t)(budget / row) : 1;
}

/* Bytes of one slot's partial sums; 0: the segment has none. */
static size_t partial_bytes(const flow_instance *instance, int s)
{
  const flow_plan *plan = instance->plan;
  size_t bytes = 0;
  for (int k = 0; k < plan->segments[s].count; k++) {
    const flow_entry *entry = &instance->entries[plan->segments[s].first + k];
    for (int i = 0; i < entry->output_count; i++) {
      const flow_binding *b = &entry->bindings[entry->input_count + i];
      if (b->mode == FLOW_BIND_PARTIAL) bytes += b->bytes;
    }
  }
  return bytes;
}

/* Laid out twice: for one row, to learn how many rows fit, then for the chunk that follows from that. Where there are no sums, two slots
 * for each thread leave something to take for a thread that is early. */
flow_status flow_size_stage(flow_instance *instance, int s, flow_block *blocks, int *block_of)
{
  enum { CHUNKS_PER_THREAD = 2 };
  flow_stage *stage = &instance->stages[s];
  size_t partial = partial_bytes(instance, s);
  FLOW_TRY(place_locals(instance, s, 1, blocks, block_of));
  stage->sums = partial > 0;
  stage->most_chunk = rows_that_fit(instance, s, stage->sums);
  stage->most_slots = stage->sums ? flow_slots_for_sums(partial, usual_partial_bytes, most_partial_bytes)
                                  : CHUNKS_PER_THREAD * flow_team_size();
  flow_divide_rows(stage, instance->capacity);
  FLOW_TRY(place_locals(instance, s, stage->chunk, blocks, block_of));
  if (stage->local_bytes > instance->local_bytes) instance->local_bytes = stage->local_bytes;
  return FLOW_OK;
}
