/* shard.c: every n-th element, from number `index` on. n = -1 is TensorFlow's SHARD_HINT: everything, until a distributed run puts its
 * own numbers in. Elements of other shards are passed over by skip(), which most stages do without making them. */
#include "data/dataset.h"
#include "base/need.h"

typedef struct shard { flow_dataset base; int64_t count, index; } shard;
typedef struct shard_cursor { flow_cursor base; int64_t gap; } shard_cursor;      /* elements before the next one of ours */

/* The gap is the number of elements of other shards before the next own one. */
static flow_status open(flow_cursor *cursor)
{
  ((shard_cursor *)cursor)->gap = ((shard *)cursor->dataset)->index;
  return flow_cursor_open_all(cursor);
}

/* An element that failed was this shard's turn, too: the next one is `count` further on. An interrupted call has not taken its turn. */
static flow_status next(flow_cursor *cursor, flow_element *out)
{
  shard_cursor *at = (shard_cursor *)cursor;
  int64_t skipped = 0;
  flow_status status = flow_cursor_skip(cursor->inputs[0], at->gap, &skipped);
  at->gap -= skipped;
  if (status != FLOW_OK || at->gap > 0) return status;
  status = flow_cursor_pull(cursor->inputs[0], out);
  if (status != FLOW_OK ? status != FLOW_INTERRUPTED : out->count > 0) at->gap = ((shard *)cursor->dataset)->count - 1;
  return status;
}

/* In elements of the input: the gap before the first, then `n` for each further one. The products may be too large for 64 bits, where all
 * is meant. */
static flow_status skip(flow_cursor *cursor, int64_t count, int64_t *skipped)
{
  shard_cursor *at = (shard_cursor *)cursor;
  int64_t n = ((shard *)cursor->dataset)->count, wanted, passed;
  if (count == 0) return FLOW_OK;
  if (__builtin_mul_overflow(count - 1, n, &wanted) || __builtin_add_overflow(wanted, at->gap + 1, &wanted)) wanted = INT64_MAX;
  FLOW_TRY(flow_cursor_skip(cursor->inputs[0], wanted, &passed));
  *skipped = passed > at->gap ? (passed - at->gap - 1) / n + 1 : 0;
  at->gap = passed > at->gap ? n - 1 - (passed - at->gap - 1) % n : at->gap - passed;
  return FLOW_OK;
}

static const flow_dataset_class class = {
  .name = "shard", .dataset_bytes = sizeof(shard), .cursor_bytes = sizeof(shard_cursor), .open = open, .next = next, .skip = skip,
  .passes_on = 1,
};

/* count = -1: a hint, whose numbers a distributed run puts in (auto_shard.c). */
flow_status flow_dataset_shard(flow_dataset *input, double count, double index, flow_dataset **out)
{
  FLOW_NEED(out);
  int64_t n = 1, i = 0;
  *out = NULL;
  int hint = count == -1;
  if (!hint) {
    FLOW_TRY(flow_check_whole("shard", "num_shards", count, 1, &n));
    FLOW_TRY(flow_check_whole("shard", "index", index, 0, &i));
    if (i >= n)
      return flow_fail(FLOW_INVALID_ARGUMENT, "shard: index %lld of %lld shards: shards count from 0", (long long)i, (long long)n);
  }
  FLOW_TRY(flow_dataset_new(&class, &input, 1, out));
  shard *self = (shard *)*out;
  self->count = n;
  self->index = i;
  self->base.is_hint = hint;
  self->base.shard_hint |= hint;
  int64_t *cardinality = &self->base.cardinality;
  if (*cardinality >= 0) *cardinality = *cardinality / n + (i < *cardinality % n);
  flow_dataset_identify(*out, (uint64_t)n);
  flow_dataset_identify(*out, (uint64_t)i);
  return FLOW_OK;
}
