/* cache.c: keeps the elements of the first complete pass in memory and gives them in every later one. A pass that stops early
 * keeps nothing; one that has had as many elements as there are is complete. No lock is held while a pass fills or reads: a
 * finished list is published by one exchange, so a fork at any moment is harmless.
 *
 * For exact positions the list remembers what random stages below drew while it was filled: a pass whose position says
 * otherwise does not read it (flow_dataset_class.kept). */
#include "data/iterator.h"
#include "base/need.h"

typedef struct kept_draw { const flow_dataset *dataset; flow_draw draw; } kept_draw;

/* Not changed after it was published. Released with the dataset, when no pass reads it any more. */
typedef struct kept_list {
  flow_tensor **tensors;                 /* [capacity]: the components of one element after those of another */
  int           components, capacity;    /* of an element; places in tensors */
  int           count;                   /* elements */
  kept_draw    *draws;
  int           draw_count, draw_capacity;
} kept_list;

typedef struct cache { flow_dataset base; kept_list *_Atomic complete; } cache;
/* Exactly one: filling, its own list; reading, the dataset's; or neither, where the pass computes and keeps nothing. */
typedef struct cache_cursor { flow_cursor base; kept_list *filling; const kept_list *reading; int at; } cache_cursor;

/* Of the cursor that fills it, or of the dataset once it is published. NULL is allowed. */
static void release_list(kept_list *list)
{
  if (!list) return;
  for (int i = 0; i < list->count * list->components; i++) flow_tensor_release(list->tensors[i]);
  flow_free(list->tensors);
  flow_free(list->draws);
  flow_free(list);
}

/* References, not copies: elements are never written to. */
static flow_status keep(kept_list *list, const flow_element *element)
{
  if (list->count == INT32_MAX / FLOW_MAX_COMPONENTS)
    return flow_fail(FLOW_UNSUPPORTED, "cache: more than %d elements", INT32_MAX / FLOW_MAX_COMPONENTS);
  list->components = element->count;
  int first = list->count * element->count;
  FLOW_TRY(flow_grow(&list->tensors, sizeof *list->tensors, first + element->count, &list->capacity));
  for (int i = 0; i < element->count; i++) list->tensors[first + i] = flow_tensor_retain(element->tensors[i]);
  list->count++;
  return FLOW_OK;
}

/* Every pass gives the same tensors: receivers of elements never write to them (dataset.h). */
static void give(const kept_list *list, int index, flow_element *out)
{
  for (int i = 0; i < list->components; i++) out->tensors[i] = flow_tensor_retain(list->tensors[index * list->components + i]);
  out->count = list->components;
}

/* ---- what was drawn ------------------------------------------------------------------------------------------------------ */

/* Which draw of the random stages below filled the complete list; 0: there is no list, or they drew nothing. */
static int kept(flow_dataset *dataset, const flow_dataset *below, flow_draw *out)
{
  const kept_list *list = atomic_load(&((cache *)dataset)->complete);
  for (int i = 0; list && i < list->draw_count; i++) {
    if (list->draws[i].dataset != below) continue;
    *out = list->draws[i].draw;
    return 1;
  }
  return 0;
}

/* Whether a random stage drew the same pair in a pass of the same number. */
static int same_draw(const flow_draw *a, const flow_draw *b)
{
  return a->seed[0] == b->seed[0] && a->seed[1] == b->seed[1] && a->number == b->number;
}

/* Whether the list was filled with the draws of this pass. */
static int fits(const flow_iterator *iterator, const kept_list *list)
{
  for (int i = 0; i < list->draw_count; i++) {
    for (int k = 0; k < iterator->draw_count; k++) {
      const flow_draw_record *record = &iterator->draws[k];
      flow_draw draw = { .seed = { record->seed[0], record->seed[1] }, .number = record->first };
      if (record->dataset == list->draws[i].dataset && record->frozen && !same_draw(&draw, &list->draws[i].draw)) return 0;
    }
  }
  return 1;
}

/* Of all random stages below that drew in this pass, the stage itself first. */
static flow_status remember_draws(const flow_iterator *iterator, const flow_dataset *below, kept_list *list)
{
  if (!below->any_random) return FLOW_OK;
  for (int k = 0; below->random && k < iterator->draw_count; k++) {
    const flow_draw_record *record = &iterator->draws[k];
    if (record->dataset != below || !record->frozen) continue;
    FLOW_TRY(flow_grow(&list->draws, sizeof *list->draws, list->draw_count + 1, &list->draw_capacity));
    list->draws[list->draw_count++] = (kept_draw){ below, { { record->seed[0], record->seed[1] }, record->first } };
  }
  for (int i = 0; i < below->input_count; i++) FLOW_TRY(remember_draws(iterator, below->inputs[i], list));
  return FLOW_OK;
}

/* ---- passes ---------------------------------------------------------------------------------------------------------------- */

/* A full cache whose draws fit is read; one whose draws do not fit is passed by, and this pass computes. Only a pass that is counted,
 * and whose stage has a place in the list, fills: a peek, or a dataset that a function made, does not. */
static flow_status open(flow_cursor *cursor)
{
  cache_cursor *at = (cache_cursor *)cursor;
  const kept_list *complete = atomic_load(&((cache *)cursor->dataset)->complete);
  if (complete && fits(cursor->iterator, complete)) {
    at->reading = complete;
    return FLOW_OK;
  }
  void *block;
  FLOW_TRY(flow_cursor_open_all(cursor));
  if (complete || cursor->iterator->peeks || cursor->position < 0) return FLOW_OK;      /* a separate pass: nothing to keep */
  FLOW_TRY(flow_alloc_zero(sizeof(kept_list), &block));
  at->filling = block;
  return remember_draws(cursor->iterator, cursor->dataset->inputs[0], at->filling);
}

/* The pass keeps nothing: an element failed, or another pass was complete before. */
static void drop(cache_cursor *at)
{
  release_list(at->filling);
  at->filling = NULL;
}

/* The list stays the dataset's: passes that read it hold the dataset. */
static void publish(cache_cursor *at)
{
  kept_list *none = NULL;
  if (at->filling && atomic_compare_exchange_strong(&((cache *)at->base.dataset)->complete, &none, at->filling)) at->filling = NULL;
  drop(at);
}

/* The next element, kept on its way. What could not be kept whole is not kept: the caller may go on after a failure, and a later pass would
 * have a list with a gap. */
static flow_status next(flow_cursor *cursor, flow_element *out)
{
  cache_cursor *at = (cache_cursor *)cursor;
  if (at->reading) {
    if (at->at < at->reading->count) give(at->reading, at->at++, out);
    return FLOW_OK;
  }
  flow_status status = flow_cursor_pull(cursor->inputs[0], out);
  int keeps = status == FLOW_OK && out->count > 0 && at->filling;
  if (keeps) status = keep(at->filling, out);
  if (status == FLOW_INTERRUPTED) return status; /* asked again, it goes on */
  if (status != FLOW_OK) drop(at);
  else if (out->count == 0) publish(at);
  else if (keeps && at->filling->count == cursor->dataset->inputs[0]->cardinality) publish(at); /* who counts asks for no end */
  return status;
}

/* While the list is read, elements are counted; while it is filled, they are made, since they are to be kept; else they are left to the
 * input. */
static flow_status skip(flow_cursor *cursor, int64_t count, int64_t *skipped)
{
  cache_cursor *at = (cache_cursor *)cursor;
  if (at->reading) {
    int64_t left = at->reading->count - at->at;
    *skipped = count < left ? count : left;
    at->at += (int)*skipped;
    return FLOW_OK;
  }
  /* A pass that goes on in the middle of another process's keeps all elements: later passes then have its order. */
  if (at->filling) return flow_cursor_skip_by_pulling(cursor, count, skipped);
  return flow_cursor_skip(cursor->inputs[0], count, skipped);
}

static void close(flow_cursor *cursor) { drop((cache_cursor *)cursor); }
/* A separate cache over the other input: its elements are those of one worker. */
static flow_status again(const flow_dataset *dataset, flow_dataset *input, flow_dataset **out)
{
  (void)dataset;
  return flow_dataset_cache(input, out);
}

static void release(flow_dataset *dataset) { release_list(atomic_load(&((cache *)dataset)->complete)); }

static const flow_dataset_class class = {
  .name = "cache", .dataset_bytes = sizeof(cache), .cursor_bytes = sizeof(cache_cursor), .open = open, .next = next, .skip = skip,
  .close = close, .release = release, .kept = kept, .again = again,
  .keeps_elements = 1,
};

/* The list belongs to the dataset, and lives as long: two datasets over one input fill two lists. */
flow_status flow_dataset_cache(flow_dataset *input, flow_dataset **out)
{
  FLOW_NEED(out);
  *out = NULL;
  return flow_dataset_new(&class, &input, 1, out);
}
