/* records.c: the records of TFRecord files, as texts: file by file, or in turn from several open ones. A damaged file is left at
 * its first fault: what follows it cannot be trusted. The next element then comes from the next file. */
#include "data/dataset.h"
#include "io/record.h"

#include <string.h>

typedef struct records {
  flow_dataset base;
  char       **paths;
  int          count, capacity, cycle;      /* cycle: files that are open at the same time */
  flow_coding  coding;
} records;

typedef struct records_cursor {
  flow_cursor         base;
  flow_record_reader *open;        /* [cycle]; one without a path is closed */
  int                 slot, file;  /* whose turn it is; the next file to open */
} records_cursor;

static const records *parameters_of(const records_cursor *at) { return (const records *)at->base.dataset; }

static flow_status open_pass(flow_cursor *cursor)
{
  records_cursor *at = (records_cursor *)cursor;
  return flow_alloc_zero((size_t)parameters_of(at)->cycle * sizeof *at->open, (void **)&at->open);
}

static void close_pass(flow_cursor *cursor)
{
  records_cursor *at = (records_cursor *)cursor;
  for (int i = 0; at->open && i < parameters_of(at)->cycle; i++) flow_record_close(&at->open[i]);
  flow_free(at->open);
  at->open = NULL;
}

/* The reader whose turn it is, opened if need be; NULL at the end of the last file. The order is that of tf.data's interleave
 * with block length 1: a slot whose file has ended gets the next file when its turn comes again. */
static flow_status reader_in_turn(records_cursor *at, flow_record_reader **out)
{
  const records *self = parameters_of(at);
  *out = NULL;
  for (int looked = 0; looked < self->cycle; looked++, at->slot = (at->slot + 1) % self->cycle) {
    flow_record_reader *reader = &at->open[at->slot];
    if (!reader->path && at->file < self->count) FLOW_TRY(flow_record_open(self->paths[at->file++], self->coding, reader));
    if (!reader->path) continue;
    *out = reader;
    return FLOW_OK;
  }
  return FLOW_OK;
}

/* Ends the turn of a reader: after a record, at the end of its file, or after a failure. */
static void pass_on(records_cursor *at, flow_record_reader *reader, int close_it)
{
  if (close_it) flow_record_close(reader);
  at->slot = (at->slot + 1) % parameters_of(at)->cycle;
}

static flow_status next(flow_cursor *cursor, flow_element *out)
{
  records_cursor *at = (records_cursor *)cursor;
  flow_record_reader *reader;
  const unsigned char *bytes = NULL;
  uint64_t count;
  while (!bytes) {
    FLOW_TRY(reader_in_turn(at, &reader));
    if (!reader) return FLOW_OK;
    flow_status status = flow_record_next(reader, &bytes, &count);
    if (status == FLOW_OK && bytes) status = flow_text_tensor((const char *)bytes, (size_t)count, &out->tensors[0]);
    pass_on(at, reader, status != FLOW_OK || !bytes);
    FLOW_TRY(status);
  }
  out->count = 1;
  return FLOW_OK;
}

static flow_status skip(flow_cursor *cursor, int64_t count, int64_t *skipped)
{
  records_cursor *at = (records_cursor *)cursor;
  flow_record_reader *reader;
  for (*skipped = 0; *skipped < count;) {
    int found = 0;
    FLOW_TRY(reader_in_turn(at, &reader));
    if (!reader) return FLOW_OK;
    flow_status status = flow_record_skip(reader, &found);
    pass_on(at, reader, status != FLOW_OK || !found);
    FLOW_TRY(status);
    *skipped += found;
  }
  return FLOW_OK;
}

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

flow_status flow_dataset_records(const char *const *paths, int count, const char *compression_type, double num_parallel_reads,
                                 flow_dataset **out)
{
  flow_coding coding;
  int64_t cycle;
  *out = NULL;
  if (count < 1 || !paths) return flow_fail(FLOW_INVALID_ARGUMENT, "TFRecordDataset: a list of files is needed, found none");
  FLOW_TRY(flow_record_compression(compression_type, &coding));
  FLOW_TRY(flow_check_whole("TFRecordDataset", "num_parallel_reads", num_parallel_reads, -1, &cycle));
  if (cycle < 0) cycle = FLOW_PARALLEL_READS;
  if (cycle == 0) cycle = 1;
  if (cycle > count) cycle = count;
  if (cycle > MOST_PARALLEL_READS) cycle = MOST_PARALLEL_READS;
  flow_dataset *dataset;
  FLOW_TRY(flow_dataset_new(&class, NULL, 0, &dataset));
  records *self = (records *)dataset;
  self->coding = coding;
  self->cycle = (int)cycle;
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

static flow_status shard_files(const flow_dataset *dataset, int64_t count, int64_t index, flow_dataset **out)
{
  static const char *const names[] = { [FLOW_PLAIN] = "", [FLOW_GZIP] = "GZIP", [FLOW_ZLIB] = "ZLIB" };
  const records *self = (const records *)dataset;
  void *block;
  if (self->count < count)
    return flow_fail(FLOW_INVALID_ARGUMENT, "TFRecordDataset has %d files, not enough for %lld workers: use auto_shard_policy DATA or OFF, "
                     "or more files", self->count, (long long)count);
  FLOW_TRY(flow_alloc(sizeof(char *) * (size_t)self->count, &block));
  const char **paths = block;
  int taken = 0;
  for (int64_t i = index; i < self->count; i += count) paths[taken++] = self->paths[i];
  flow_status status = flow_dataset_records(paths, taken, names[self->coding], self->cycle, out);
  if (status == FLOW_OK) (*out)->options = dataset->options;
  flow_free(paths);
  return status;
}
