/* records.c: the records of TFRecord files, as texts: file by file, or in turn from several open ones, each read ahead by a thread of its
 * own. A damaged file is left at its first fault: what follows it cannot be trusted. The next element then comes from the next file. */
#include "data/iterator.h"
#include "base/need.h"
#include "data/read_ahead.h"

#include <string.h>

/* The parameters. Paths are copies. */
typedef struct records {
  flow_dataset base;
  char       **paths;
  int          count, capacity;
  int          reads, cycle;      /* num_parallel_reads; files that are open at the same time. reads > 1: by threads */
  flow_coding  coding;
} records;

/* One open file: read by a thread, or where it is asked for. Neither: closed. */
typedef struct place { flow_record_reader *reader; flow_read_ahead *ahead; } place;

/* open_count: places that are not closed. Files are opened in their order, so staged[i] is file number `file` + i. */
typedef struct records_cursor {
  flow_cursor       base;
  place            *open;         /* [cycle] */
  int               open_count;
  int               turn, file;   /* whose turn it is; the next file to open */
  flow_read_ahead **staged;       /* [cycle + 1]: of the files from `file` on, which are not open yet but read already */
  int               staged_count;
} records_cursor;

static const records *parameters_of(const records_cursor *at) { return (const records *)at->base.dataset; }

/* No file is opened here: the first `next` does. */
static flow_status open_pass(flow_cursor *cursor)
{
  records_cursor *at = (records_cursor *)cursor;
  size_t cycle = (size_t)parameters_of(at)->cycle;
  void *memory;
  FLOW_TRY(flow_alloc_zero(cycle * sizeof *at->open, &memory));
  at->open = memory;
  FLOW_TRY(flow_alloc_zero((cycle + 1) * sizeof *at->staged, &memory));
  at->staged = memory;
  return FLOW_OK;
}

static int is_open(const place *p) { return p->ahead || p->reader; }

/* The thread first, since it reads from the reader. */
static void close_place(place *p)
{
  flow_read_ahead_stop(p->ahead);
  if (p->reader) flow_record_close(p->reader);
  flow_free(p->reader);
  *p = (place){ NULL, NULL };
}

/* Joins all threads. Also of a pass whose open failed: what is not there is NULL or 0. */
static void close_pass(flow_cursor *cursor)
{
  records_cursor *at = (records_cursor *)cursor;
  for (int i = 0; at->open && i < parameters_of(at)->cycle; i++) close_place(&at->open[i]);
  for (int i = 0; i < at->staged_count; i++) flow_read_ahead_stop(at->staged[i]);
  if (cursor->counters) atomic_store(&cursor->counters->threads, 0);
  flow_free(at->open);
  flow_free(at->staged);
}

/* *out is set after success only. */
static flow_status open_reader(const char *path, flow_coding coding, flow_record_reader **out)
{
  void *memory;
  FLOW_TRY(flow_alloc_zero(sizeof **out, &memory));
  flow_status status = flow_record_open(path, coding, memory);
  if (status == FLOW_OK) *out = memory;
  else flow_free(memory);
  return status;
}

/* Opens the next file in this place: one that is being read already, if there is one. `file` goes on also when this fails, so that the
 * next call tries another file. */
static flow_status open_next(records_cursor *at, place *p)
{
  const records *self = parameters_of(at);
  const char *path = self->paths[at->file++];
  if (at->staged_count > 0) {
    p->ahead = at->staged[0];
    memmove(at->staged, at->staged + 1, sizeof *at->staged * (size_t)--at->staged_count);
  } else {
    FLOW_TRY(open_reader(path, self->coding, &p->reader));
  }
  at->open_count++;
  return FLOW_OK;
}

/* Ends the turn of a place: after a record, at the end of its file, or after a failure. */
static void pass_on(records_cursor *at, int close_it)
{
  place *p = &at->open[at->turn];
  at->open_count -= close_it && is_open(p);
  if (close_it) close_place(p);
  at->turn = (at->turn + 1) % parameters_of(at)->cycle;
}

/* The place whose turn it is, opened if need be; NULL at the end of the last file. The order is that of tf.data's interleave
 * with block length 1: a place whose file has ended gets the next file when its turn comes again. */
static flow_status place_in_turn(records_cursor *at, place **out)
{
  const records *self = parameters_of(at);
  *out = NULL;
  for (int looked = 0; looked < self->cycle; looked++, at->turn = (at->turn + 1) % self->cycle) {
    place *p = &at->open[at->turn];
    flow_status status = is_open(p) || at->file == self->count ? FLOW_OK : open_next(at, p);
    if (status != FLOW_OK) pass_on(at, 1);
    FLOW_TRY(status);
    if (!is_open(p)) continue;
    *out = p;
    return FLOW_OK;
  }
  return FLOW_OK;
}

/* Lets threads read the place and the files that come next: one more than are open at the same time, so that a file is there when
 * another one ends. Where the system allows no more threads, records are read where they are asked for. */
static void read_ahead(records_cursor *at, place *p)
{
  const records *self = parameters_of(at);
  flow_iterator *iterator = at->base.iterator;
  if (self->reads == 1) return;
  if (!p->ahead) {
    if (flow_read_ahead_start(iterator, NULL, self->coding, p->reader, &p->ahead) != FLOW_OK) return;
    p->reader = NULL;
  }
  while (at->open_count + at->staged_count <= self->cycle && at->file + at->staged_count < self->count) {
    const char *path = self->paths[at->file + at->staged_count];
    if (flow_read_ahead_start(iterator, path, self->coding, NULL, &at->staged[at->staged_count]) != FLOW_OK) break;
    at->staged_count++;
  }
  if (at->base.counters) atomic_store(&at->base.counters->threads, at->open_count + at->staged_count);
}

/* *out NULL: the file has ended. */
static flow_status next_record(place *p, flow_tensor **out)
{
  const unsigned char *bytes;
  uint64_t count;
  *out = NULL;
  if (p->ahead) return flow_read_ahead_next(p->ahead, out);
  FLOW_TRY(flow_record_next(p->reader, &bytes, &count));
  return bytes ? flow_text_tensor((const char *)bytes, (size_t)count, out) : FLOW_OK;
}

/* One record from the place whose turn it is; then the turn passes on. A failure closes its file. */
static flow_status next(flow_cursor *cursor, flow_element *out)
{
  records_cursor *at = (records_cursor *)cursor;
  place *p;
  for (flow_tensor *record = NULL; !record;) {
    FLOW_TRY(place_in_turn(at, &p));
    if (!p) return FLOW_OK;
    read_ahead(at, p);
    flow_status status = next_record(p, &record);
    if (status == FLOW_INTERRUPTED) return status;      /* asked again, it goes on */
    pass_on(at, !record);
    FLOW_TRY(status);
    out->tensors[0] = record;
  }
  out->count = 1;
  return FLOW_OK;
}

/* Without looking at contents, unless a thread did already. */
static flow_status skip_record(place *p, int *found)
{
  flow_tensor *record;
  if (!p->ahead) return flow_record_skip(p->reader, found);
  FLOW_TRY(flow_read_ahead_next(p->ahead, &record));
  *found = record != NULL;
  flow_tensor_release(record);
  return FLOW_OK;
}

/* By the same turns as next, so that the element after it is the one that next would have come to. */
static flow_status skip(flow_cursor *cursor, int64_t count, int64_t *skipped)
{
  records_cursor *at = (records_cursor *)cursor;
  place *p;
  for (*skipped = 0; *skipped < count;) {
    int found = 0;
    FLOW_TRY(place_in_turn(at, &p));
    if (!p) return FLOW_OK;
    flow_status status = skip_record(p, &found);
    if (status == FLOW_INTERRUPTED) return status; /* the file stays open: asked again, it goes on */
    pass_on(at, !found);
    FLOW_TRY(status);
    *skipped += found;
  }
  return FLOW_OK;
}

/* Also of a dataset that was made by half: count says how many paths there are. */
static void release(flow_dataset *dataset)
{
  records *self = (records *)dataset;
  for (int i = 0; i < self->count; i++) flow_free(self->paths[i]);
  flow_free(self->paths);
}

static flow_status shard_files(const flow_dataset *dataset, int64_t count, int64_t index, flow_dataset **out);

static const flow_dataset_class class = {
  .name = "TFRecordDataset", .dataset_bytes = sizeof(records), .cursor_bytes = sizeof(records_cursor), .open = open_pass, .next = next,
  .skip = skip, .close = close_pass, .release = release, .shard_files = shard_files,
};

/* FLOW_PARALLEL_READS: as many as TensorFlow starts with when it is to find out (AUTOTUNE). */
enum { MOST_PARALLEL_READS = 1024, FLOW_PARALLEL_READS = 4 };

/* Paths are part of the identity. A number above 255 marks the end of each, so that it cannot be taken for a byte of the path. */
static flow_status add_path(records *self, const char *path)
{
  if (!path) return flow_fail(FLOW_INVALID_ARGUMENT, "TFRecordDataset: the path of a file is NULL");
  FLOW_TRY(flow_grow(&self->paths, sizeof *self->paths, self->count + 1, &self->capacity));
  char *copy = flow_duplicate_text(path);
  if (!copy) return FLOW_OUT_OF_MEMORY;
  self->paths[self->count++] = copy;
  for (; *path; path++) flow_dataset_identify(&self->base, (unsigned char)*path);
  flow_dataset_identify(&self->base, 256);
  return FLOW_OK;
}

/* paths are copied, and no file is opened before a pass: one that is missing fails then. num_parallel_reads: 0 and 1 read one file after
 * the other, -1 chooses. The number of open files is part of the identity, since the order of records follows from it. */
flow_status flow_dataset_records(const char *const *paths, int count, const char *compression_type, double num_parallel_reads,
                                 flow_dataset **out)
{
  FLOW_NEED(out);
  flow_coding coding;
  int64_t reads;
  *out = NULL;
  if (count < 1 || !paths) return flow_fail(FLOW_INVALID_ARGUMENT, "TFRecordDataset: a list of files is needed, found none");
  FLOW_TRY(flow_record_compression(compression_type, &coding));
  FLOW_TRY(flow_check_whole("TFRecordDataset", "num_parallel_reads", num_parallel_reads, -1, &reads));
  if (reads < 0) reads = FLOW_PARALLEL_READS;
  if (reads == 0) reads = 1;
  if (reads > MOST_PARALLEL_READS) reads = MOST_PARALLEL_READS;
  int cycle = reads > count ? count : (int)reads;
  flow_dataset *dataset;
  FLOW_TRY(flow_dataset_new(&class, NULL, 0, &dataset));
  records *self = (records *)dataset;
  self->coding = coding;
  self->reads = (int)reads;
  self->cycle = cycle;
  dataset->cardinality = FLOW_UNKNOWN;
  dataset->spec.count = 1;
  dataset->spec.components[0] = (flow_component){ .dtype = FLOW_UINT8, .rank = 1, .text = 1, .shape = { -1 } };
  flow_dataset_identify(dataset, (uint64_t)cycle);
  flow_status status = FLOW_OK;
  for (int i = 0; i < count && status == FLOW_OK; i++) status = add_path(self, paths[i]);
  if (status == FLOW_OK) *out = dataset;
  else flow_dataset_release(dataset);
  return status;
}

/* Worker `index` gets files index, index + count, ... in their order, as tf.data's FILE policy does. */
static flow_status shard_files(const flow_dataset *dataset, int64_t count, int64_t index, flow_dataset **out)
{
  static const char *const names[] = { [FLOW_PLAIN] = "", [FLOW_GZIP] = "GZIP", [FLOW_ZLIB] = "ZLIB" };
  const records *self = (const records *)dataset;
  void *block;
  if (self->count < count)
    return flow_fail(FLOW_NOT_FOUND, "TFRecordDataset has %d file%s, not enough for %lld workers", self->count, self->count == 1 ? "" : "s",
                     (long long)count);
  FLOW_TRY(flow_alloc(sizeof(char *) * (size_t)self->count, &block));
  const char **paths = block;
  int taken = 0;
  for (int64_t i = index; i < self->count; i += count) paths[taken++] = self->paths[i];
  flow_status status = flow_dataset_records(paths, taken, names[self->coding], self->reads, out);
  if (status == FLOW_OK) (*out)->options = dataset->options;
  flow_free(paths);
  return status;
}
