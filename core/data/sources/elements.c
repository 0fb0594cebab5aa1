/* elements.c: elements out of the file of a cache (element_record.h), whatever pipeline wrote it. */
#include "data/element_record.h"
#include "base/need.h"

typedef struct elements { flow_dataset base; char *path; } elements;
typedef struct elements_cursor { flow_cursor base; flow_record_reader reader; uint64_t read; int ended; } elements_cursor;

/* Leaves the reader after the first record, also where that is not what was expected; the caller closes it. */
static flow_status open_file(const char *path, flow_record_reader *reader, flow_element_spec *spec)
{
  const unsigned char *bytes;
  uint64_t count;
  flow_element_start start = { 0 };
  FLOW_TRY(flow_record_open(path, FLOW_PLAIN, reader));
  flow_status status = flow_record_next(reader, &bytes, &count);
  if (status == FLOW_OK) status = flow_element_start_read(path, bytes, count, &start);
  if (status == FLOW_OK && start.spec.count == 0) status = flow_fail(FLOW_CORRUPT_DATA, "%s: elements without components", path);
  if (status == FLOW_OK) *spec = start.spec;
  flow_element_start_free(&start);
  return status;
}

/* The file may have been replaced since the dataset was made: its signature is compared again. */
static flow_status open_pass(flow_cursor *cursor)
{
  const elements *self = (const elements *)cursor->dataset;
  flow_element_spec found;
  FLOW_TRY(open_file(self->path, &((elements_cursor *)cursor)->reader, &found));
  if (flow_spec_equal(&found, &self->base.spec)) return FLOW_OK;
  return flow_fail(FLOW_CORRUPT_DATA, "load: %s has other elements than when the data set was made", self->path);
}

/* What follows damage cannot be trusted, and the reader stays where it is: the pass ends there, so that a stage which leaves out errors
 * does not meet this one for ever. */
static flow_status read_next(elements_cursor *at, flow_element *out)
{
  if (at->ended) return FLOW_OK;
  flow_status status = flow_element_read(&at->reader, &at->base.dataset->spec, at->read, out, &at->ended);
  at->ended |= status == FLOW_CORRUPT_DATA;
  at->read += !at->ended;
  return status;
}

static flow_status next(flow_cursor *cursor, flow_element *out) { return read_next((elements_cursor *)cursor, out); }

/* Records have to be read past, since their lengths say where the next one begins; no tensor is made of them. */
static flow_status skip(flow_cursor *cursor, int64_t count, int64_t *skipped)
{
  elements_cursor *at = (elements_cursor *)cursor;
  for (; *skipped < count; *skipped += !at->ended) {
    FLOW_TRY(read_next(at, NULL));
    if (at->ended) return FLOW_OK;
  }
  return FLOW_OK;
}

static void close_pass(flow_cursor *cursor) { flow_record_close(&((elements_cursor *)cursor)->reader); }
static void release(flow_dataset *dataset) { flow_free(((elements *)dataset)->path); }

static const flow_dataset_class class = {
  .name = "load", .dataset_bytes = sizeof(elements), .cursor_bytes = sizeof(elements_cursor), .open = open_pass, .next = next, .skip = skip,
  .close = close_pass, .release = release,
};

/* The signature and the number of elements are the file's, which is opened here to read them and once for each pass. */
flow_status flow_dataset_load(const char *path, flow_dataset **out)
{
  FLOW_NEED(out);
  flow_record_reader reader = { 0 };
  flow_element_spec spec = { 0 };
  *out = NULL;
  FLOW_NEED(path);
  if (!path || !*path) return flow_fail(FLOW_INVALID_ARGUMENT, "load: the name of a file is missing");
  flow_status status = open_file(path, &reader, &spec);
  uint64_t file_bytes = reader.source.file_bytes;
  flow_record_close(&reader);
  FLOW_TRY(status);
  FLOW_TRY(flow_dataset_new(&class, NULL, 0, out));
  (*out)->spec = spec;
  (*out)->cardinality = flow_element_count(path, file_bytes);
  ((elements *)*out)->path = flow_duplicate_text(path);
  if (((elements *)*out)->path) return FLOW_OK;
  flow_dataset_release(*out);
  *out = NULL;
  return FLOW_OUT_OF_MEMORY;
}
