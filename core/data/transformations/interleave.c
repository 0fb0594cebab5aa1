/* interleave.c: each element becomes a dataset; `cycle` of them are open and give `block` elements each in turn. An empty place takes the
 * next input when its turn comes, as in TensorFlow (core/kernels/data/interleave_dataset_op.cc). In the parallel form a thread
 * works ahead on every open dataset; the order is the same. */
#include "data/sources/generator.h"
#include "base/need.h"

/* MOST_OPEN: each open dataset may have files and threads. AHEAD: elements that a parallel place prefetches. */
enum { MOST_OPEN = 1024, AHEAD = 16 };

/* callback: by which number the caller is asked for the dataset of an element; parallel: each open dataset is read ahead
 * by a thread. */
typedef struct interleave { flow_dataset base; int callback, cycle, parallel; int64_t block; } interleave;

/* open[i]: the dataset in place i of the cycle, NULL where none is open. `ended`: the input has no further dataset. */
typedef struct interleave_cursor {
  flow_cursor   base;
  flow_cursor **open;                /* [cycle] */
  int           turn, open_count, ended;
  int64_t       given;               /* of the block whose turn it is */
} interleave_cursor;

/* Only the places are made here: datasets are opened when their turn comes. */
static flow_status open(flow_cursor *cursor)
{
  void *block;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_cursor *) * (size_t)((interleave *)cursor->dataset)->cycle, &block));
  ((interleave_cursor *)cursor)->open = block;
  return flow_cursor_open_all(cursor);
}

/* The next place's turn, with a whole block. */
static void advance(interleave_cursor *at)
{
  at->given = 0;
  at->turn = (at->turn + 1) % ((interleave *)at->base.dataset)->cycle;
}

/* So elements of all inner datasets fit the signature that was promised, whatever the function returns. */
static flow_status check_spec(const interleave *self, const flow_dataset *made)
{
  flow_element_spec joined = self->base.spec;
  if (flow_spec_join(&joined, &made->spec) && flow_spec_equal(&joined, &self->base.spec)) return FLOW_OK;
  return flow_fail(FLOW_INVALID_ARGUMENT, "interleave: the function's datasets differ: the first had %d components, the first of them "
                   "%s; this one has %d, %s", self->base.spec.count, flow_component_text(&self->base.spec.components[0]), made->spec.count,
                   flow_component_text(&made->spec.components[0]));
}

/* Opens the dataset of the next input element in the place whose turn it is. */
static flow_status open_next(interleave_cursor *at)
{
  const interleave *self = (const interleave *)at->base.dataset;
  flow_element element = { 0 };
  flow_dataset *made = NULL, *ahead;
  FLOW_TRY(flow_cursor_pull(at->base.inputs[0], &element));
  if (element.count == 0) {
    at->ended = 1;
    return FLOW_OK;
  }
  flow_status status = flow_ask(at->base.iterator, self->callback, 0, &element, NULL, &made);
  flow_element_clear(&element);
  FLOW_TRY(status);
  status = check_spec(self, made);
  if (status == FLOW_OK && self->parallel) {
    status = flow_dataset_prefetch(made, AHEAD, &ahead);
    if (status == FLOW_OK) {
      flow_dataset_release(made);
      made = ahead;
    }
  }
  if (status == FLOW_OK) status = flow_cursor_new(at->base.iterator, made, 1, &at->open[at->turn]);
  flow_dataset_release(made);
  if (status == FLOW_OK) at->open_count++;
  return status;
}

/* Brings the turn to a place that is open; *place NULL: there is none any more. */
static flow_status find_place(interleave_cursor *at, flow_cursor **place)
{
  *place = NULL;
  while (!at->ended || at->open_count > 0) {
    if (!at->open[at->turn] && !at->ended) FLOW_TRY(open_next(at));
    *place = at->open[at->turn];
    if (*place) return FLOW_OK;
    advance(at);
  }
  return FLOW_OK;
}

/* Its dataset has ended; a block that was begun ends with it. */
static void close_place(interleave_cursor *at)
{
  flow_cursor_close(at->open[at->turn]);
  at->open[at->turn] = NULL;
  at->open_count--;
  advance(at);
}

/* `block` elements of the place whose turn it is, then the next one's turn; a place whose dataset has ended gets another one, where
 * there is one. */
static flow_status next(flow_cursor *cursor, flow_element *out)
{
  interleave_cursor *at = (interleave_cursor *)cursor;
  for (;;) {
    flow_cursor *place;
    FLOW_TRY(find_place(at, &place));
    if (!place) return FLOW_OK;
    FLOW_TRY(flow_cursor_pull(place, out));
    if (out->count == 0) {
      close_place(at);
      continue;
    }
    if (++at->given == ((interleave *)cursor->dataset)->block) advance(at);
    return FLOW_OK;
  }
}

/* Whole stretches of a block are skipped in the dataset whose turn it is, as next() would have taken them. */
static flow_status skip(flow_cursor *cursor, int64_t count, int64_t *skipped)
{
  interleave_cursor *at = (interleave_cursor *)cursor;
  int64_t block = ((interleave *)cursor->dataset)->block;
  while (*skipped < count) {
    flow_cursor *place;
    FLOW_TRY(find_place(at, &place));
    if (!place) return FLOW_OK;
    int64_t wanted = block - at->given < count - *skipped ? block - at->given : count - *skipped, here;
    FLOW_TRY(flow_cursor_skip(place, wanted, &here));
    *skipped += here;
    at->given += here;
    if (here < wanted) close_place(at);
    else if (at->given == block) advance(at);
  }
  return FLOW_OK;
}

/* Also after a failed open. */
static void close(flow_cursor *cursor)
{
  interleave_cursor *at = (interleave_cursor *)cursor;
  for (int i = 0; at->open && i < ((interleave *)cursor->dataset)->cycle; i++) flow_cursor_close(at->open[i]);
  flow_free(at->open);
}

static const flow_dataset_class class = {
  .name = "interleave", .dataset_bytes = sizeof(interleave), .cursor_bytes = sizeof(interleave_cursor), .open = open, .next = next,
  .skip = skip, .close = close,
};

/* like: a dataset with the signature that all inner ones have; its elements are not used. If it reads files, the others do, too.
 * callback: the number of the question by which the caller is asked for each inner dataset (flow_iterator_answer). */
flow_status flow_dataset_interleave(flow_dataset *input, int callback, flow_dataset *like, double cycle, double block, int parallel,
                                    flow_dataset **out)
{
  FLOW_NEED(out);
  int64_t places, length;
  *out = NULL;
  FLOW_NEED(like);
  FLOW_TRY(flow_check_dataset("interleave", like));
  FLOW_TRY(flow_check_whole("interleave", "cycle_length", cycle, 1, &places));
  FLOW_TRY(flow_check_whole("interleave", "block_length", block, 1, &length));
  if (places > MOST_OPEN) return flow_fail(FLOW_INVALID_ARGUMENT, "interleave: a cycle_length above %d", MOST_OPEN);
  FLOW_TRY(flow_dataset_new(&class, &input, 1, out));
  interleave *self = (interleave *)*out;
  self->callback = callback;
  self->cycle = (int)places;
  self->block = length;
  self->parallel = parallel != 0;
  self->base.calls_back = 1;
  /* `like` is of the first element: if that has no end, there is none. */
  if (input->cardinality > 0) self->base.cardinality = like->cardinality == FLOW_INFINITE ? FLOW_INFINITE : FLOW_UNKNOWN;
  self->base.spec = like->spec;
  self->base.batch_rows = like->batch_rows;
  self->base.opens_files = flow_dataset_reads_files(like);
  flow_dataset_identify(*out, (uint64_t)places);
  flow_dataset_identify(*out, (uint64_t)length);
  return FLOW_OK;
}
