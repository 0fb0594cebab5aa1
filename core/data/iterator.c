/* iterator.c: passes: the first cursor is opened when the first element is asked for; positions are saved and restored.
 *
 * A position is text (flow_iterator_save): the identity of the pipeline, how many elements were delivered, and what each random stage
 * drew. Restoring compares the identity, takes over the draws and leaves out as many elements when the next one is asked for. So a saved
 * position costs nothing while the pass runs, and restoring costs what skipping costs (dataset.h). Elements that failed are listed, since a
 * stage such as take does not count them: a restored pass asks for them again, one by one, and they fail again.
 *
 * Draws are numbers, not states: a random stage opened for the n-th time draws from (seed pair, n). Each pass reserves a number of every
 * random dataset when it is made (reserve_draws); a stage that is opened several times in the pass, once an epoch, counts on from there
 * (flow_cursor_draw). */
#include "data/sources/generator.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/failure.h"
#include "base/float_state.h"

/* ---- draws ------------------------------------------------------------------------------------------------------------- */

/* NULL: the dataset was made on the way, or draws nothing. Pipelines have few random stages. */
static flow_draw_record *find_record(const flow_iterator *iterator, const flow_dataset *dataset)
{
  for (int i = 0; i < iterator->draw_count; i++) {
    if (iterator->draws[i].dataset == dataset) return &iterator->draws[i];
  }
  return NULL;
}

/* Also with other iterators of the same dataset at work. */
static void raise_to(_Atomic int64_t *number, int64_t least)
{
  int64_t found = atomic_load(number);
  while (found < least && !atomic_compare_exchange_weak(number, &found, least)) { }
}

/* A stage below a full cache gets the draws that the cache was filled with, so that the position of the pass names the elements that it
 * will see. A peek reads the number of the next pass and takes none. */
static flow_status add_record(flow_iterator *iterator, flow_dataset *dataset, flow_dataset *cache)
{
  flow_draw kept;
  FLOW_TRY(flow_grow(&iterator->draws, sizeof *iterator->draws, iterator->draw_count + 1, &iterator->draw_capacity));
  flow_draw_record *record = &iterator->draws[iterator->draw_count++];
  *record = (flow_draw_record){ .dataset = dataset, .seed = { dataset->seed[0], dataset->seed[1] }, .frozen = cache != NULL };
  if (cache && cache->class->kept(cache, dataset, &kept)) {
    memcpy(record->seed, kept.seed, sizeof kept.seed);
    record->first = kept.number;
  } else {
    record->first = iterator->peeks ? atomic_load(&dataset->draws) : atomic_fetch_add(&dataset->draws, 1);
  }
  return FLOW_OK;
}

/* Reserves a number for every random dataset below, so that two passes that are open at once differ. cache: the one
 * nearest to the end of the pipeline that the dataset is below, or NULL. An input that stands twice in a row (zip of a
 * dataset with itself) is walked once: its record serves both cursors. */
static flow_status reserve_draws(flow_iterator *iterator, flow_dataset *dataset, flow_dataset *cache)
{
  if (!dataset->any_random) return FLOW_OK;
  if (dataset->random && !find_record(iterator, dataset)) FLOW_TRY(add_record(iterator, dataset, cache));
  if (!cache && dataset->class->kept) cache = dataset;
  for (int i = 0; i < dataset->input_count; i++) {
    if (i > 0 && dataset->inputs[i] == dataset->inputs[i - 1]) continue;
    FLOW_TRY(reserve_draws(iterator, dataset->inputs[i], cache));
  }
  return FLOW_OK;
}

/* Threads of the pass may open cursors at the same time (interleave, repeat), so the lock is taken. The counter of the dataset is raised
 * as well, so that another iterator which opens later draws other numbers. */
flow_status flow_cursor_draw(flow_cursor *cursor, flow_draw *out)
{
  flow_iterator *iterator = cursor->iterator;
  flow_dataset *dataset = cursor->dataset;
  pthread_mutex_lock(&iterator->lock);
  flow_draw_record *record = find_record(iterator, dataset);
  if (record) {
    *out = (flow_draw){ .seed = { record->seed[0], record->seed[1] }, .number = record->first };
    if (!record->frozen) out->number += record->used++;
    if (!iterator->peeks) raise_to(&dataset->draws, out->number + 1);
  } else {                       /* a dataset that was made on the way */
    *out = (flow_draw){ .seed = { dataset->seed[0], dataset->seed[1] }, .number = atomic_fetch_add(&dataset->draws, 1) };
  }
  pthread_mutex_unlock(&iterator->lock);
  return FLOW_OK;
}

/* ---- life ---------------------------------------------------------------------------------------------------------------- */

/* The list of stages in the order in which flow_cursor_open numbers them. Stages after the first FLOW_MAX_STAGES have no
 * counters. */
static void name_stages(flow_iterator *iterator, const flow_dataset *dataset, int position, int depth)
{
  if (position >= iterator->stage_count) return;
  iterator->stages[position].name = dataset->class->name;
  iterator->stages[position].depth = depth;
  position++;
  for (int i = 0; i < dataset->input_count; i++) {
    name_stages(iterator, dataset->inputs[i], position, depth + 1);
    position += dataset->inputs[i]->stage_count;
  }
}

/* Nothing is opened or started here: cursors and threads come with the first element. Draws are reserved, so that
 * positions can be saved before. context may be NULL: then an interrupt does not end a wait. */
static flow_status iterator_new(flow_context *context, flow_dataset *dataset, int peeks, flow_iterator **out)
{
  void *block;
  FLOW_TRY(flow_check_dataset("an iterator", dataset));
  if (!out) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_iterator_new: out is NULL");
  *out = NULL;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_iterator), &block));
  flow_iterator *iterator = block;
  iterator->context = context;
  iterator->dataset = flow_dataset_retain(dataset);
  iterator->peeks = peeks;
  pthread_mutex_init(&iterator->lock, NULL);
  flow_status status = flow_alloc_zero(sizeof *iterator->stages * (size_t)dataset->stage_count, &block);
  if (status == FLOW_OK) {
    iterator->stages = block;
    iterator->stage_count = dataset->stage_count;
    name_stages(iterator, dataset, 0, 0);
    status = reserve_draws(iterator, dataset, NULL);
  }
  if (status != FLOW_OK) {
    flow_iterator_close(iterator);
    return status;
  }
  *out = iterator;
  return FLOW_OK;
}

/* *out is NULL after a failure. */
flow_status flow_iterator_new(flow_context *context, flow_dataset *dataset, flow_iterator **out)
{
  return iterator_new(context, dataset, 0, out);
}

/* A pass that looks at the first elements, for their signature or a message, and leaves no trace: the next pass draws the same numbers,
 * and caches are not filled. */
flow_status flow_iterator_peek(flow_context *context, flow_dataset *dataset, flow_iterator **out)
{
  return iterator_new(context, dataset, 1, out);
}

/* In a forked child. The parent's threads may have been at work on cursors and gates: what they were about to change cannot be freed, and
 * the locks that they held are held for ever. So that memory stays unchanged. */
static void abandon_cursors(flow_iterator *iterator)
{
  iterator->pump = NULL;
  iterator->gates = NULL;
  iterator->lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;      /* not init(): after fork the old contents mean nothing */
}

/* Order: waiting threads are woken and fail, the pump's thread is joined, then cursors close, each of which joins its own threads, and
 * the pump goes last, because threads of cursors may still take back their questions. */
static void close_cursors(flow_iterator *iterator)
{
  if (!iterator->top && !iterator->pump) return;
  if (flow_iterator_forked(iterator)) {
    abandon_cursors(iterator);
  } else {
    flow_iterator_cancel(iterator);
    flow_pump_stop(iterator);
    flow_cursor_close(iterator->top);
    flow_pump_release(iterator);
  }
  iterator->top = NULL;
  atomic_store(&iterator->cancelled, 0);
  atomic_store(&iterator->generation, 0);
  flow_memory_trim();                    /* batches of the next pass may be of another size */
}

/* Joins all threads of the pass. In a forked child memory of the cursors stays allocated (abandon_cursors). */
void flow_iterator_close(flow_iterator *iterator)
{
  if (!iterator) return;
  close_cursors(iterator);
  flow_row_store_release(iterator->store);
  flow_dataset_release(iterator->dataset);
  pthread_mutex_destroy(&iterator->lock);
  flow_free(iterator->draws);
  flow_free(iterator->failed);
  flow_free(iterator->stages);
  flow_free(iterator);
}

/* ---- elements ---------------------------------------------------------------------------------------------------------------- */

/* Adds the elements to the list of those that failed. Without memory the list stays unchanged. */
static flow_status note_failed(flow_iterator *iterator, int64_t first, int64_t count)
{
  flow_failed_elements *last = iterator->failed_count ? &iterator->failed[iterator->failed_count - 1] : NULL;
  if (last && first <= last->first + last->count) {
    last->count = first + count - last->first;
    return FLOW_OK;
  }
  FLOW_TRY(flow_grow(&iterator->failed, sizeof *iterator->failed, iterator->failed_count + 1, &iterator->failed_capacity));
  iterator->failed[iterator->failed_count++] = (flow_failed_elements){ first, count };
  return FLOW_OK;
}

/* Whether element `at` failed before. *good: how many of the next ones did not, as far as that is known. */
static int has_failed(const flow_iterator *iterator, int64_t at, int64_t *good)
{
  *good = INT64_MAX;
  for (int i = 0; i < iterator->failed_count; i++) {
    const flow_failed_elements *f = &iterator->failed[i];
    if (at >= f->first && at < f->first + f->count) return 1;
    if (at >= f->first) continue;
    *good = f->first - at;
    break;
  }
  return 0;
}

/* Leaves out some of the to_skip elements: those before the next element that failed earlier, or that element, which is computed again.
 * *ended: the data ended before that. */
static flow_status pass_over(flow_iterator *iterator, int *ended)
{
  int64_t good, count = 1, skipped;
  flow_status status;
  if (has_failed(iterator, iterator->delivered - iterator->to_skip, &good)) {
    flow_element element = { 0 };
    status = flow_cursor_pull(iterator->top, &element);
    skipped = status != FLOW_INTERRUPTED && (status != FLOW_OK || element.count > 0);
    if (status != FLOW_INTERRUPTED) status = FLOW_OK;
    flow_element_clear(&element);
  } else {
    count = iterator->to_skip < good ? iterator->to_skip : good;
    status = flow_cursor_skip(iterator->top, count, &skipped);
  }
  iterator->to_skip -= skipped;
  *ended = skipped < count;
  return status;
}

/* The next element, by the thread that runs the first cursor. After a restore, or a skip, `to_skip` elements are left out first. If the
 * data ends before, `delivered` is corrected to what there was. An element that failed counts as delivered: a restored pass goes on
 * after it. After an interrupt the element is still to come. */
static flow_status produce(flow_iterator *iterator, flow_element *out)
{
  if (!iterator->top) FLOW_TRY(flow_cursor_new(iterator, iterator->dataset, 0, &iterator->top));
  while (iterator->to_skip > 0) {
    int ended;
    FLOW_TRY(pass_over(iterator, &ended));
    if (ended) {
      iterator->delivered -= iterator->to_skip;
      iterator->to_skip = 0;
      return FLOW_OK;                    /* the end */
    }
  }
  flow_status status = flow_cursor_pull(iterator->top, out);
  if (status != FLOW_OK && status != FLOW_INTERRUPTED) {
    flow_failure kept = { 0 };
    flow_failure_take(&kept, status);
    if (note_failed(iterator, iterator->delivered, 1) != FLOW_OK) flow_failure_raise(&kept);
  }
  iterator->delivered += status != FLOW_OK ? status != FLOW_INTERRUPTED : out->count > 0;
  return status;
}

/* Where a function of Lua is needed (calls_back) the pass runs on its own thread, and this one, which may call Lua, answers its
 * questions: see generator.h. */
flow_status flow_iterator_next(flow_iterator *iterator, flow_element *out)
{
  FLOW_DEFAULT_FLOATS;
  if (!iterator || !out) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_iterator_next: %s is NULL", iterator ? "out" : "iterator");
  flow_element_clear(out);
  if (flow_iterator_forked(iterator))
    return flow_fail(FLOW_INVALID_STATE, "this iterator was opened before the process forked, its threads are the parent's: open a new "
                     "one");
  const flow_iterator *before = flow_iterator_served(iterator);
  flow_status status = iterator->dataset->calls_back ? flow_pump_next(iterator, produce, out) : produce(iterator, out);
  flow_iterator_served(before);
  return status;
}

/* Only counts: the elements are passed over when the next one is asked for, by the stages that can do so without making them. */
flow_status flow_iterator_skip(flow_iterator *iterator, double count)
{
  int64_t whole;
  if (!iterator) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_iterator_skip: iterator is NULL");
  FLOW_TRY(flow_check_whole("skip", "count", count, 0, &whole));
  iterator->to_skip += whole;
  iterator->delivered += whole;
  return FLOW_OK;
}

/* ---- positions ---------------------------------------------------------------------------------------------------------------- */

/* A text: version, the pipeline's identity, elements delivered, the seed and number of each draw, and the first and the number of each run
 * of elements that failed. Returns its length as snprintf does. */
int flow_iterator_save(const flow_iterator *iterator, char *text, int size)
{
  flow_text out = flow_text_into(text, size);
  if (!iterator) return 0;
  flow_text_add(&out, "flow-position-1 %016" PRIx64 " %" PRId64 " %d", iterator->dataset->identity, iterator->delivered,
                iterator->draw_count);
  for (int i = 0; i < iterator->draw_count; i++) {
    const flow_draw_record *record = &iterator->draws[i];
    flow_text_add(&out, " %" PRIx64 ",%" PRIx64 ",%" PRId64, record->seed[0], record->seed[1], record->first);
  }
  for (int i = 0; i < iterator->failed_count; i++)
    flow_text_add(&out, " failed %" PRId64 "+%" PRId64, iterator->failed[i].first, iterator->failed[i].count);
  return out.length;
}

/* What is done with the draws of a position. */
typedef enum reading { CHECK, GO_ON, ALIGN } reading;

/* Reads the draws after the header: to go on with that pass, or for the passes after it. Returns the rest of the text; NULL if it is not
 * what save writes. Purposes: CHECK reads and changes nothing. GO_ON is for a restored pass: it draws the same numbers, and
 * datasets count at least as far. ALIGN is for a later pass of another process: datasets get the seeds and counters of
 * the saved one. With CHECK first and one of the others after it, a text that is damaged changes nothing. */
static const char *read_draws(flow_iterator *iterator, const char *text, reading purpose)
{
  for (int i = 0; i < iterator->draw_count; i++) {
    flow_draw_record *record = &iterator->draws[i];
    uint64_t seed[2];
    int64_t first;
    int length = 0;
    if (sscanf(text, " %" SCNx64 ",%" SCNx64 ",%" SCNd64 "%n", &seed[0], &seed[1], &first, &length) != 3 || first < 0) return NULL;
    text += length;
    if (purpose == CHECK) continue;
    record->seed[0] = seed[0];
    record->seed[1] = seed[1];
    record->first = first;
    record->used = 0;
    if (purpose == GO_ON) raise_to(&record->dataset->draws, first + 1);
    if (purpose != ALIGN) continue;
    memcpy(record->dataset->seed, seed, sizeof seed);
    atomic_store(&record->dataset->draws, first);
  }
  return text;
}

/* Reads what is after the draws, in order; into: NULL, or the iterator that gets it. FLOW_CORRUPT_DATA if it is not what save writes. */
static flow_status read_failed(const char *text, flow_iterator *into)
{
  int64_t first, count, end = 0;
  for (int length = 0; sscanf(text, " failed %" SCNd64 "+%" SCNd64 "%n", &first, &count, &length) == 2; text += length) {
    if (first < end || count < 1 || count > INT64_MAX - first) break;
    end = first + count;
    if (into) FLOW_TRY(note_failed(into, first, count));
  }
  return text[strspn(text, " \n")] == '\0' ? FLOW_OK : flow_fail(FLOW_CORRUPT_DATA, "the position of a dataset is damaged");
}

/* What the header of a saved position says. */
typedef struct position {
  uint64_t    identity;
  int64_t     delivered;
  const char *draws;         /* the rest of the text */
} position;

/* Reads a text of save and checks that it has the draws of such a pipeline. */
static flow_status read_position(flow_iterator *iterator, const char *text, position *out)
{
  int count, length = 0;
  if (!iterator || !text) return flow_fail(FLOW_INVALID_ARGUMENT, "restoring a position: an iterator and a text are needed");
  if (sscanf(text, "flow-position-1 %" SCNx64 " %" SCNd64 " %d%n", &out->identity, &out->delivered, &count, &length) != 3 ||
      out->delivered < 0)
    return flow_fail(FLOW_CORRUPT_DATA, "the text is not a saved position of a dataset");
  out->draws = text + length;
  if (count != iterator->draw_count)
    return flow_fail(FLOW_INVALID_ARGUMENT, "the position was saved from another pipeline: stages and their arguments must be the same");
  const char *rest = read_draws(iterator, out->draws, CHECK);
  return rest ? read_failed(rest, NULL) : flow_fail(FLOW_CORRUPT_DATA, "the position of a dataset is damaged");
}

/* For a pass that begins later in another process: datasets get the seeds and numbers of the saved pass, this iterator's
 * position stays. The identity may differ, as after auto_shard. */
flow_status flow_iterator_align(flow_iterator *iterator, const char *text)
{
  position found;
  FLOW_TRY(read_position(iterator, text, &found));
  read_draws(iterator, found.draws, ALIGN);
  return FLOW_OK;
}

/* The next element is the one after those that were delivered when the position was saved. Cursors are closed and opened again when that is
 * asked for. */
flow_status flow_iterator_restore(flow_iterator *iterator, const char *text)
{
  position found;
  FLOW_TRY(read_position(iterator, text, &found));
  if (found.identity != iterator->dataset->identity)
    return flow_fail(FLOW_INVALID_ARGUMENT, "the position was saved from another pipeline: stages and their arguments must be the same");
  close_cursors(iterator);
  const char *rest = read_draws(iterator, found.draws, GO_ON);
  iterator->failed_count = 0;
  FLOW_TRY(read_failed(rest, iterator));
  iterator->peeks = 0;      /* it goes on with a pass that was counted when it drew */
  iterator->delivered = iterator->to_skip = found.delivered;
  return FLOW_OK;
}

/* ---- what it did ---------------------------------------------------------------------------------------------------------------- */

/* Counters are read while threads change them: each number is right by itself, not together with the others. */
int flow_iterator_stage(const flow_iterator *iterator, int index, flow_stage_report *out)
{
  if (!iterator || !out || index < 0 || index >= iterator->stage_count) return 0;
  flow_stage_counters *c = &iterator->stages[index];
  *out = (flow_stage_report){
    .name = c->name, .depth = c->depth, .threads = (int32_t)atomic_load(&c->threads), .elements = (double)atomic_load(&c->elements),
    .seconds = (double)atomic_load(&c->nanoseconds) * 1e-9, .waited = (double)atomic_load(&c->waited_nanoseconds) * 1e-9,
    .queued = (double)atomic_load(&c->queued), .capacity = (double)atomic_load(&c->capacity) };
  return 1;
}
