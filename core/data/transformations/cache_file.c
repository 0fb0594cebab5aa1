/* cache_file.c: keeps the elements of the first complete pass in a file, for later passes and processes. The file appears when it is
 * complete; a pass that stops early leaves nothing behind. One pass at a time fills it: FILE.lock names its process; another pass meanwhile
 * computes its elements and keeps nothing. As in tf.data a complete file is used whatever pipeline wrote it, if its elements have
 * this one's signature.
 *
 * Files are read, not mapped: one that is cut off while a host reads it must not kill the host.
 *
 * For exact positions the file tells what random stages of the pipeline drew while it was filled (element_record.h), as cache.c. */
#include "data/element_record.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/need.h"
#include "io/file_lock.h"

typedef struct cache_file { flow_dataset base; char *path; } cache_file;

/* A pass that fills. */
typedef struct writer {
  flow_file_lock    lock;
  flow_record_sink  sink;
  flow_record_bytes record;
  uint64_t          elements;
  long              process;           /* a forked child must not touch what its parent writes */
} writer;

/* One pass: it reads the complete file, or computes and perhaps fills one. `read` counts the elements that were read. */
typedef struct cache_cursor {
  flow_cursor        base;
  writer            *filling;
  flow_record_reader reader;           /* its path is NULL: this pass computes */
  flow_element_spec  spec;             /* of the file */
  uint64_t           read;
  int                ended;
} cache_cursor;

static const cache_file *parameters_of(const cache_cursor *at) { return (const cache_file *)at->base.dataset; }

/* ---- what was drawn ------------------------------------------------------------------------------------------------------ */

/* The number of `wanted` among the random stages of the pipeline, counted in *next; -1: it is not there. */
static int number_of(const flow_dataset *dataset, const flow_dataset *wanted, int *next)
{
  if (!dataset->any_random) return -1;
  if (dataset->random && dataset == wanted) return *next;
  *next += dataset->random;
  for (int i = 0; i < dataset->input_count; i++) {
    int found = number_of(dataset->inputs[i], wanted, next);
    if (found >= 0) return found;
  }
  return -1;
}

/* Of the stage that the record is about: the pair, and the number of the pass that filled the file. */
static flow_draw draw_of(const flow_draw_record *record)
{
  return (flow_draw){ .seed = { record->seed[0], record->seed[1] }, .number = record->first };
}

/* NULL: the stage is not below a cache in this pass. */
static const flow_draw_record *record_of(const flow_iterator *iterator, const flow_dataset *dataset)
{
  for (int i = 0; i < iterator->draw_count; i++) {
    if (iterator->draws[i].dataset == dataset && iterator->draws[i].frozen) return &iterator->draws[i];
  }
  return NULL;
}

/* What the stages from `below` on drew, in the order of the walk; a stage without its own number in this pass ends the list. */
static flow_status list_draws(const flow_iterator *iterator, const flow_dataset *below, flow_element_start *start, int *complete)
{
  if (!below->any_random || !*complete) return FLOW_OK;
  if (below->random) {
    const flow_draw_record *record = record_of(iterator, below);
    *complete = record != NULL;
    if (!record) return FLOW_OK;
    FLOW_TRY(flow_grow(&start->draws, sizeof *start->draws, start->draw_count + 1, &start->draw_capacity));
    start->draws[start->draw_count++] = draw_of(record);
  }
  for (int i = 0; i < below->input_count; i++) FLOW_TRY(list_draws(iterator, below->inputs[i], start, complete));
  return FLOW_OK;
}

/* Whether the file, if this pipeline wrote it, was filled with the draws of this pass. */
static int fits(const cache_cursor *at, const flow_element_start *found)
{
  const flow_dataset *input = at->base.dataset->inputs[0];
  if (found->identity != input->identity) return 1;
  for (int i = 0; i < at->base.iterator->draw_count; i++) {
    const flow_draw_record *record = &at->base.iterator->draws[i];
    int next = 0, number = record->frozen ? number_of(input, record->dataset, &next) : -1;
    if (number < 0 || number >= found->draw_count) continue;
    flow_draw mine = draw_of(record);
    const flow_draw *its = &found->draws[number];
    if (mine.seed[0] != its->seed[0] || mine.seed[1] != its->seed[1] || mine.number != its->number) return 0;
  }
  return 1;
}

/* ---- reading ------------------------------------------------------------------------------------------------------------- */

/* Opens the file and reads its first record. On failure nothing stays open. */
static flow_status read_start(const char *path, flow_record_reader *reader, flow_element_start *out)
{
  const unsigned char *bytes;
  uint64_t count;
  *out = (flow_element_start){ 0 };
  FLOW_TRY(flow_record_open(path, FLOW_PLAIN, reader));
  flow_status status = flow_record_next(reader, &bytes, &count);
  if (status == FLOW_OK) status = flow_element_start_read(path, bytes, count, out);
  if (status == FLOW_OK) return FLOW_OK;
  flow_element_start_free(out);
  flow_record_close(reader);
  return status;
}

/* Also called while no pass is open, so that it reads the file by itself. */
static int kept(flow_dataset *dataset, const flow_dataset *below, flow_draw *out)
{
  flow_record_reader reader;
  flow_element_start found;
  int next = 0, number = number_of(dataset->inputs[0], below, &next), is_kept = 0;
  const char *path = ((cache_file *)dataset)->path;
  if (access(path, F_OK) != 0 || read_start(path, &reader, &found) != FLOW_OK) return 0;      /* open() will say what is wrong */
  if (found.identity == dataset->inputs[0]->identity && number >= 0 && number < found.draw_count) {
    *out = found.draws[number];
    is_kept = 1;
  }
  flow_element_start_free(&found);
  flow_record_close(&reader);
  return is_kept;
}

/* The first component that differs is named. */
static flow_status check_signature(const char *path, const flow_element_spec *found, const flow_element_spec *wanted)
{
  if (flow_spec_equal(found, wanted)) return FLOW_OK;
  for (int i = 0; i < found->count && found->count == wanted->count; i++) {
    const char *its = flow_component_text(&found->components[i]), *ours = flow_component_text(&wanted->components[i]);
    if (strcmp(its, ours) == 0) continue;
    return flow_fail(FLOW_INVALID_ARGUMENT, "cache: %s was filled by another pipeline: its component %d is %s, here it is %s; remove the "
                     "file, or name another one", path, i + 1, its, ours);
  }
  return flow_fail(FLOW_INVALID_ARGUMENT, "cache: %s was filled by another pipeline: its elements have %d components, here they have %d; "
                   "remove the file, or name another one", path, found->count, wanted->count);
}

/* Uses the file if there is one, and it has the elements of this pass. *found: whether there is one. */
static flow_status open_file(cache_cursor *at, int *found)
{
  const char *path = parameters_of(at)->path;
  flow_element_start start;
  *found = access(path, F_OK) == 0;
  if (!*found) return FLOW_OK;
  FLOW_TRY(read_start(path, &at->reader, &start));
  flow_status status = check_signature(path, &start.spec, &at->base.dataset->inputs[0]->spec);
  at->spec = start.spec;
  if (status != FLOW_OK || !fits(at, &start)) flow_record_close(&at->reader);
  flow_element_start_free(&start);
  return status;
}

/* Damage ends the pass, as in sources/elements.c: it is told once. */
static flow_status read_next(cache_cursor *at, flow_element *out)
{
  if (at->ended) return FLOW_OK;
  flow_status status = flow_element_read(&at->reader, &at->spec, at->read, out, &at->ended);
  at->ended |= status == FLOW_CORRUPT_DATA;
  at->read += !at->ended;
  return status;
}

/* ---- filling -------------------------------------------------------------------------------------------------------------- */

/* Gives up: the unfinished file is removed and the lock is given back. In a forked child nothing is touched, or the child would remove
 * its parent's file. */
static void stop_filling(cache_cursor *at)
{
  writer *own = at->filling;
  at->filling = NULL;
  if (!own || own->process != (long)getpid()) return;      /* in a forked child all of it is the parent's: leave it alone */
  flow_record_discard(&own->sink);
  flow_file_lock_release(&own->lock);
  flow_free(own->record.bytes);
  flow_free(own);
}

/* The record under construction goes to the file. */
static flow_status append(writer *own)
{
  return flow_record_append(&own->sink, own->record.bytes, own->record.count);
}

/* A stage that drew nothing of its own in this pass ends the list of draws: a later pass then cannot compare it and uses
 * the file as it is. */
static flow_status write_start(cache_cursor *at)
{
  const flow_dataset *input = at->base.dataset->inputs[0];
  flow_element_start start = { .identity = input->identity, .spec = input->spec };
  int complete = 1;
  flow_status status = list_draws(at->base.iterator, input, &start, &complete);
  if (status == FLOW_OK) status = flow_element_start_write(&start, &at->filling->record);
  if (status == FLOW_OK) status = append(at->filling);
  flow_element_start_free(&start);
  return status;
}

/* Begins to fill, unless another pass does. If another pass (of this or another process) holds the lock, this one computes and says so
 * once; at->filling is then NULL. */
static flow_status start_filling(cache_cursor *at)
{
  static const char ending[] = ".lock";
  const char *path = parameters_of(at)->path;
  const size_t length = strlen(path);
  char holder[256], text[1200];
  void *block, *lock_path;
  int taken;
  FLOW_TRY(flow_alloc_zero(sizeof(writer), &block));
  at->filling = block;
  at->filling->process = (long)getpid();
  flow_status status = flow_alloc(length + sizeof ending, &lock_path);
  if (status == FLOW_OK) {
    memcpy(lock_path, path, length);
    memcpy((char *)lock_path + length, ending, sizeof ending);
    status = flow_file_lock_take(lock_path, &at->filling->lock, &taken, holder, sizeof holder);
    flow_free(lock_path);
  }
  if (status == FLOW_OK && taken) status = flow_record_create(path, FLOW_PLAIN, &at->filling->sink);
  if (status == FLOW_OK && taken) status = write_start(at);
  if (status == FLOW_OK && taken) return FLOW_OK;
  stop_filling(at);
  if (status != FLOW_OK) return status;
  flow_text message = flow_text_into(text, sizeof text);
  flow_text_add(&message, "cache: %s is being filled by %s; this pass computes its elements and keeps nothing", path, holder);
  flow_log(FLOW_LOG_WARNING, text);
  return FLOW_OK;
}

/* Appends an element to the file under way. It is counted even if it could not be written: the pass fails then, and the file is dropped. */
static flow_status keep(cache_cursor *at, const flow_element *element)
{
  writer *own = at->filling;
  flow_status status = flow_element_write(element, &own->record);
  if (status == FLOW_OK) status = append(own);
  own->elements++;
  return status;
}

/* The last record and the rename, after which other passes and processes find the file. Filling ends, also where this fails. */
static flow_status publish(cache_cursor *at)
{
  writer *own = at->filling;
  flow_status status = flow_element_end_write(own->elements, &own->record);
  if (status == FLOW_OK) status = append(own);
  if (status == FLOW_OK) status = flow_record_commit(&own->sink);
  stop_filling(at);
  return status;
}

/* A caller that counts elements does not ask for the end after the last one. */
static int is_last(const cache_cursor *at)
{
  int64_t known = at->base.dataset->inputs[0]->cardinality;
  return known >= 0 && at->filling->elements == (uint64_t)known;
}

/* ---- passes ---------------------------------------------------------------------------------------------------------------- */

/* Reads the file if it is complete; else the input is opened, and this pass fills the file unless another one does. A pass that only peeks
 * fills nothing. */
static flow_status open_pass(flow_cursor *cursor)
{
  cache_cursor *at = (cache_cursor *)cursor;
  int found;
  FLOW_TRY(open_file(at, &found));
  if (at->reader.path) return FLOW_OK;
  FLOW_TRY(flow_cursor_open_all(cursor));
  return found || cursor->iterator->peeks ? FLOW_OK : start_filling(at);
}

/* A pass that fills publishes as soon as it knows that it has had the last element. A failure of any element ends the filling. */
static flow_status next(flow_cursor *cursor, flow_element *out)
{
  cache_cursor *at = (cache_cursor *)cursor;
  if (at->reader.path) return read_next(at, out);
  flow_status status = flow_cursor_pull(cursor->inputs[0], out);
  if (status == FLOW_OK && at->filling && out->count > 0) status = keep(at, out);
  if (status == FLOW_OK && at->filling && (out->count == 0 || is_last(at))) status = publish(at);
  if (status != FLOW_OK && status != FLOW_INTERRUPTED) stop_filling(at); /* an interrupted pass goes on when it is asked again */
  return status;
}

/* As in cache.c, but elements in the file have to be read past: their lengths say where the next one begins. */
static flow_status skip(flow_cursor *cursor, int64_t count, int64_t *skipped)
{
  cache_cursor *at = (cache_cursor *)cursor;
  if (!at->reader.path) {
    /* A pass that goes on in the middle of another process's keeps all elements: later passes then have its order. */
    if (at->filling) return flow_cursor_skip_by_pulling(cursor, count, skipped);
    return flow_cursor_skip(cursor->inputs[0], count, skipped);
  }
  for (; *skipped < count; *skipped += !at->ended) {
    FLOW_TRY(read_next(at, NULL));
    if (at->ended) return FLOW_OK;
  }
  return FLOW_OK;
}

/* A file that is not complete disappears. */
static void close_pass(flow_cursor *cursor)
{
  stop_filling((cache_cursor *)cursor);
  flow_record_close(&((cache_cursor *)cursor)->reader);
}

/* Workers would fill the file with different elements under one name. */
static flow_status again(const flow_dataset *dataset, flow_dataset *input, flow_dataset **out)
{
  (void)input, (void)out;
  return flow_fail(FLOW_UNSUPPORTED, "cache: %s would hold the elements of one worker and be read by all: use auto_shard_policy DATA, or "
                   "shard() and a name for each worker", ((const cache_file *)dataset)->path);
}

static void release(flow_dataset *dataset) { flow_free(((cache_file *)dataset)->path); }

static const flow_dataset_class class = {
  .name = "cache_file", .dataset_bytes = sizeof(cache_file), .cursor_bytes = sizeof(cache_cursor), .open = open_pass, .next = next,
  .skip = skip, .close = close_pass, .release = release, .kept = kept, .again = again,
};

/* The path is copied. No file is opened before the first pass. */
flow_status flow_dataset_cache_file(flow_dataset *input, const char *path, flow_dataset **out)
{
  FLOW_NEED(out);
  *out = NULL;
  FLOW_NEED(path);
  if (!path || !*path) return flow_fail(FLOW_INVALID_ARGUMENT, "cache: the name of a file is missing");
  char *copy = flow_duplicate_text(path);
  if (!copy) return FLOW_OUT_OF_MEMORY;
  flow_status status = flow_dataset_new(&class, &input, 1, out);
  if (status == FLOW_OK) ((cache_file *)*out)->path = copy;
  else flow_free(copy);
  return status;
}
