/* logs.c: see logs.h. A look (flow_logs_read) walks through the folder, notes the event files with their lengths, and reads each from
 * where the last look ended. A record is taken once it is whole; what its summaries say is added to the curve of their tag and run,
 * which is found by a table of hashes. A file that has become shorter, or is gone, makes its run begin again. */
#include "board/logs.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "base/memory.h"
#include "io/record.h"

/* Bounds against folders that are made to take all memory or time: depth of folders, entries that one look sees, and what is kept. What
 * is beyond them is left out, and counted where it is a summary. */
enum { MOST_DEPTH = 16, MOST_ENTRIES = 200000, MOST_FILES = 20000, MOST_TAGS = 10000, MOST_SERIES = 50000, MOST_TAG_BYTES = 500 };
/* At the clock, so that reading ends soon after its time is over. */
enum { EVENTS_BETWEEN_LOOKS = 256 };
static const uint64_t MOST_EVENT_BYTES = (uint64_t)1 << 28;

/* ---- tables ------------------------------------------------------------------------------------------------------------------------- */

typedef int flow_logs_is_it(const flow_logs *logs, int position, const void *key);

/* Where the entry with this hash is or would be; is_it says which of those with one hash. Linear probing in a table whose size is a
 * power of two; it ends, since half of the slots are free. The pointer is valid until the table grows. */
static int *find_slot(const flow_logs *logs, const flow_logs_table *table, uint64_t hash, flow_logs_is_it *is_it, const void *key)
{
  uint64_t mask = (uint64_t)table->capacity - 1;
  for (uint64_t at = hash & mask;; at = (at + 1) & mask) {
    int *slot = &table->slots[at];
    if (*slot == 0 || is_it(logs, *slot - 1, key)) return slot;
  }
}

typedef uint64_t flow_logs_hash_of(const flow_logs *logs, int position);

/* Room for one more entry: at least half of the slots stay free. Without memory the table stays unchanged. */
static flow_status reserve_slot(const flow_logs *logs, flow_logs_table *table, flow_logs_hash_of *hash_of)
{
  if (2 * (table->count + 1) <= table->capacity) return FLOW_OK;
  int capacity = table->capacity > 0 ? 2 * table->capacity : 64, *before = table->slots;
  void *block;
  FLOW_TRY(flow_alloc_zero((size_t)capacity * sizeof(int), &block));
  int *slots = block;
  for (int i = 0; i < table->capacity; i++) {
    if (before[i] == 0) continue;
    uint64_t at = hash_of(logs, before[i] - 1) & (uint64_t)(capacity - 1);
    while (slots[at] != 0) at = (at + 1) & (uint64_t)(capacity - 1);
    slots[at] = before[i];
  }
  table->slots = slots;
  table->capacity = capacity;
  flow_free(before);
  return FLOW_OK;
}

/* The three tables: files by path, tags by name, curves by their run and tag. */
static uint64_t hash_of_path(const flow_logs *logs, int file) { return flow_hash_text(FLOW_HASH_BEGIN, logs->files[file].path); }
static uint64_t hash_of_tag(const flow_logs *logs, int tag) { return flow_hash_text(FLOW_HASH_BEGIN, logs->tags[tag].name); }
static uint64_t hash_of_pair(int run, int tag) { return flow_hash(flow_hash(FLOW_HASH_BEGIN, &run, sizeof run), &tag, sizeof tag); }
static uint64_t hash_of_series(const flow_logs *logs, int at) { return hash_of_pair(logs->series[at].run, logs->series[at].tag); }

static int is_path(const flow_logs *logs, int file, const void *key) { return strcmp(logs->files[file].path, key) == 0; }
static int is_tag(const flow_logs *logs, int tag, const void *key) { return strcmp(logs->tags[tag].name, key) == 0; }
/* key: {run, tag}. */
static int is_series(const flow_logs *logs, int at, const void *key)
{
  const int *pair = key;
  return logs->series[at].run == pair[0] && logs->series[at].tag == pair[1];
}

/* ---- tags and curves ---------------------------------------------------------------------------------------------------------------- */

/* *tag: -1 if there are too many. kind: of a tag that is new; UNKNOWN makes none. The slot is written last, so that a failure leaves no
 * entry that is half made. */
static flow_status find_tag(flow_logs *logs, const char *name, int kind, int *tag)
{
  *tag = -1;
  FLOW_TRY(reserve_slot(logs, &logs->by_tag, hash_of_tag));
  int *slot = find_slot(logs, &logs->by_tag, flow_hash_text(FLOW_HASH_BEGIN, name), is_tag, name);
  if (*slot > 0) *tag = *slot - 1;
  if (*slot > 0 || kind == FLOW_SUMMARY_UNKNOWN || logs->tag_count == MOST_TAGS) return FLOW_OK;
  FLOW_TRY(flow_grow(&logs->tags, sizeof *logs->tags, logs->tag_count + 1, &logs->tag_capacity));
  char *own = flow_duplicate_text(name);
  if (!own) return FLOW_OUT_OF_MEMORY;
  logs->tags[logs->tag_count] = (flow_logs_tag){ .name = own, .kind = kind };
  *tag = logs->tag_count++;
  *slot = *tag + 1;
  logs->by_tag.count++;
  return FLOW_OK;
}

/* The curve of a tag in a run, made when its first point comes. *out NULL: there are too many. */
static flow_status find_series(flow_logs *logs, int run, int tag, flow_logs_series **out)
{
  int pair[2] = { run, tag };
  *out = NULL;
  FLOW_TRY(reserve_slot(logs, &logs->by_series, hash_of_series));
  int *slot = find_slot(logs, &logs->by_series, hash_of_pair(run, tag), is_series, pair);
  if (*slot == 0) {
    if (logs->series_count == MOST_SERIES) return FLOW_OK;
    FLOW_TRY(flow_grow(&logs->series, sizeof *logs->series, logs->series_count + 1, &logs->series_capacity));
    logs->series[logs->series_count] = (flow_logs_series){ .run = run, .tag = tag, .width = 1 };
    *slot = ++logs->series_count;
    logs->by_series.count++;
  }
  *out = &logs->series[*slot - 1];
  return FLOW_OK;
}

/* Joins two neighbouring groups: the newest value stands for both, with the least and the greatest of all. */
static void join(flow_logs_point *into, const flow_logs_point *next)
{
  double low = fmin(into->low, next->low), high = fmax(into->high, next->high);      /* a NaN counts only where there is nothing else */
  *into = *next;
  into->low = low;
  into->high = high;
}

/* A curve that is full is halved: each two groups become one, and from then on a group takes twice as many values. So any number of
 * values fits, evenly spread over time; the bounds (low, high) keep what no group shows. */
static flow_status add_point(flow_logs_series *series, int most, const flow_logs_point *point)
{
  if (series->count > 0 && series->filled < series->width) {
    join(&series->points[series->count - 1], point);
    series->filled++;
    return FLOW_OK;
  }
  if (series->count == most) {
    for (int i = 0; i < most / 2; i++) {
      series->points[i] = series->points[2 * i];
      join(&series->points[i], &series->points[2 * i + 1]);
    }
    series->count = most / 2;
    series->width = series->width < INT_MAX / 2 ? 2 * series->width : series->width;
  }
  FLOW_TRY(flow_grow(&series->points, sizeof *series->points, series->count + 1, &series->capacity));
  series->points[series->count++] = *point;
  series->filled = 1;
  return FLOW_OK;
}

/* The kind of a tag is what its first record said; records of another kind under the same tag are left out. point: step, wall and
 * place, which all summaries of an event share. */
static flow_status take_summary(flow_logs *logs, int run, flow_logs_point point, const flow_summary *summary)
{
  char name[MOST_TAG_BYTES + 1];
  uint64_t length = flow_bytes_left(&summary->tag);
  int tag = -1;
  flow_logs_series *series = NULL;
  if (length <= MOST_TAG_BYTES && !memchr(summary->tag.next, '\0', length)) {
    memcpy(name, summary->tag.next, length);
    name[length] = '\0';
    FLOW_TRY(find_tag(logs, name, summary->kind, &tag));
    if (tag < 0 && summary->kind == FLOW_SUMMARY_UNKNOWN) return FLOW_OK;      /* of a plugin that is not shown */
  }
  if (tag >= 0) {
    flow_logs_tag *known = &logs->tags[tag];
    if (summary->kind != FLOW_SUMMARY_UNKNOWN && summary->kind != known->kind) return FLOW_OK;
    point.pictures = known->kind == FLOW_SUMMARY_PICTURES ? flow_summary_pictures(summary) : 0;
    if (known->kind == FLOW_SUMMARY_SCALARS && !flow_summary_number(summary, &point.value)) return FLOW_OK;
    FLOW_TRY(find_series(logs, run, tag, &series));
  }
  if (!series) logs->left_out++;
  if (!series) return FLOW_OK;
  point.low = point.high = point.value;
  logs->tags[tag].version++;
  return add_point(series, logs->tags[tag].kind == FLOW_SUMMARY_SCALARS ? FLOW_LOGS_POINTS : FLOW_LOGS_PLACES, &point);
}

/* ---- files -------------------------------------------------------------------------------------------------------------------------- */

/* A run is read again from the beginning, all its files: which points came from the file that changed is not known. The room of its
 * curves stays. */
static void forget_points(flow_logs *logs, int run)
{
  for (int i = 0; i < logs->series_count; i++) {
    flow_logs_series *series = &logs->series[i];
    if (series->run != run) continue;
    if (series->count > 0) logs->tags[series->tag].version++;
    series->count = series->filled = 0;
    series->width = 1;
  }
  for (int i = 0; i < logs->file_count; i++) {
    if (logs->files[i].run == run) logs->files[i].offset = logs->files[i].tried = 0;
  }
}

/* From the newest run back: entries of one folder come one after the other. A run that is gone keeps its number, and gets it again if
 * its folder comes back. */
static flow_status find_run(flow_logs *logs, const char *name, int *run)
{
  for (*run = logs->run_count - 1; *run >= 0; --*run) {
    if (strcmp(logs->runs[*run].name, name) == 0) return FLOW_OK;
  }
  FLOW_TRY(flow_grow(&logs->runs, sizeof *logs->runs, logs->run_count + 1, &logs->run_capacity));
  char *own = flow_duplicate_text(name);
  if (!own) return FLOW_OUT_OF_MEMORY;
  logs->runs[*run = logs->run_count++] = (flow_logs_run){ .name = own };
  return FLOW_OK;
}

/* One file of those that are there. bytes: what it has now. A file that became shorter is another one: its run is read again. */
static flow_status see_file(flow_logs *logs, const char *path, const char *run_name, uint64_t bytes)
{
  FLOW_TRY(reserve_slot(logs, &logs->by_path, hash_of_path));
  int *slot = find_slot(logs, &logs->by_path, flow_hash_text(FLOW_HASH_BEGIN, path), is_path, path);
  if (*slot == 0) {
    int run;
    if (logs->file_count == MOST_FILES) return FLOW_OK;
    FLOW_TRY(find_run(logs, run_name, &run));
    FLOW_TRY(flow_grow(&logs->files, sizeof *logs->files, logs->file_count + 1, &logs->file_capacity));
    char *own = flow_duplicate_text(path);
    if (!own) return FLOW_OUT_OF_MEMORY;
    logs->files[logs->file_count] = (flow_logs_file){ .path = own, .run = run };
    *slot = ++logs->file_count;
    logs->by_path.count++;
  }
  flow_logs_file *file = &logs->files[*slot - 1];
  if (bytes < file->offset) forget_points(logs, file->run);
  file->is_there = 1;
  file->bytes = bytes;
  logs->runs[file->run].files++;
  return FLOW_OK;
}

/* A block of the caller's; NULL: no memory. */
static char *join_path(const char *folder, const char *name)
{
  size_t size = strlen(folder) + strlen(name) + 2;
  void *block;
  if (flow_alloc(size, &block) != FLOW_OK) return NULL;
  snprintf(block, size, "%s/%s", folder, name);
  return block;
}

static flow_status scan(flow_logs *logs, const char *folder, const char *run_name, int depth);

/* A folder is looked through, a file of events is noted, anything else is passed over; links are not followed, so that no circle is
 * walked. */
static flow_status see_entry(flow_logs *logs, const char *folder, const char *run_name, const char *name, int depth)
{
  struct stat facts = { .st_mode = 0 };
  char *path = join_path(folder, name);
  if (!path) return FLOW_OUT_OF_MEMORY;
  flow_status status = FLOW_OK;
  lstat(path, &facts);                 /* of what is gone by now: neither */
  if (S_ISDIR(facts.st_mode) && depth < MOST_DEPTH) {
    char *inner = strcmp(run_name, ".") == 0 ? flow_duplicate_text(name) : join_path(run_name, name);
    status = inner ? scan(logs, path, inner, depth + 1) : FLOW_OUT_OF_MEMORY;
    flow_free(inner);
  } else if (S_ISREG(facts.st_mode) && strstr(name, "tfevents")) {
    status = see_file(logs, path, run_name, (uint64_t)facts.st_size);
  }
  flow_free(path);
  return status;
}

/* In the order of names, which for event files is that of time. A folder that cannot be read has nothing. */
static flow_status scan(flow_logs *logs, const char *folder, const char *run_name, int depth)
{
  flow_listing *entries;
  flow_status status = flow_listing_entries(folder, &entries);
  if (status != FLOW_OK) return status == FLOW_OUT_OF_MEMORY ? status : FLOW_OK;
  for (int i = 0; status == FLOW_OK && i < flow_listing_count(entries) && logs->seen < MOST_ENTRIES; i++, logs->seen++) {
    const char *name = flow_listing_name(entries, i);
    if (name[0] != '.') status = see_entry(logs, folder, run_name, name, depth);
  }
  flow_listing_release(entries);
  return status;
}

/* Reads on where the last look ended, until `until`. A record that is not whole is looked at again when the file has grown. *more: the
 * time was over before its end. A failure to read is kept as the file's `trouble` and the call succeeds; only a lack of memory is a failure
 * of the call. */
static flow_status read_file(flow_logs *logs, int at, double until, int *more)
{
  flow_record_reader reader;
  const unsigned char *record;
  uint64_t count;
  flow_event event;
  flow_summary summary;
  flow_logs_file *file = &logs->files[at];
  flow_status status = flow_record_open_at(file->path, file->offset, MOST_EVENT_BYTES, &reader);
  flow_free(file->trouble);
  file->trouble = NULL;
  for (int events = 1; status == FLOW_OK; events++) {
    flow_logs_point point = { .file = at, .offset = reader.offset };
    status = flow_record_next(&reader, &record, &count);
    if (status != FLOW_OK || !record) break;
    if (flow_event_read(record, count, &event)) {
      point.step = event.step;
      point.wall = event.wall;
      while (status == FLOW_OK && flow_event_next(&event, &summary)) status = take_summary(logs, file->run, point, &summary);
    }
    if (status == FLOW_OK) file->offset = reader.offset;
    *more = events % EVENTS_BETWEEN_LOOKS == 0 && flow_clock() > until;
    if (*more) break;
  }
  flow_record_close(&reader);
  file->tried = file->bytes;
  if (status == FLOW_OK || status == FLOW_OUT_OF_MEMORY) return status;
  return (file->trouble = flow_duplicate_text(flow_last_error())) ? FLOW_OK : FLOW_OUT_OF_MEMORY;
}

/* First all files are looked at, then they are read in the order in which they were found: a large one keeps those after it for later
 * looks. */
flow_status flow_logs_read(flow_logs *logs, double seconds, int *more)
{
  double until = flow_clock() + seconds;
  *more = 0;
  for (int i = 0; i < logs->run_count; i++) logs->runs[i].files = 0;
  for (int i = 0; i < logs->file_count; i++) logs->files[i].is_there = 0;
  logs->seen = 0;
  FLOW_TRY(scan(logs, logs->folder, ".", 0));
  for (int i = 0; i < logs->file_count; i++) {
    if (!logs->files[i].is_there && logs->files[i].offset > 0) forget_points(logs, logs->files[i].run);      /* it was taken away */
  }
  for (int i = 0; i < logs->file_count; i++) {
    flow_logs_file *file = &logs->files[i];
    if (!file->is_there || file->bytes <= file->offset || (file->trouble && file->bytes == file->tried)) continue;
    if (*more || flow_clock() > until) *more = 1;
    if (*more) break;
    FLOW_TRY(read_file(logs, i, until, more));
  }
  return FLOW_OK;
}

/* The place comes from a browser: the record there is read as strictly as any, and has to hold a summary of that tag. */
flow_status flow_logs_visit(const flow_logs *logs, int file, uint64_t offset, int tag, flow_logs_take *take, void *state)
{
  flow_record_reader reader;
  const unsigned char *record;
  uint64_t count;
  flow_event event;
  flow_summary summary;
  const char *name = logs->tags[tag].name;
  flow_status status = flow_record_open_at(logs->files[file].path, offset, MOST_EVENT_BYTES, &reader);
  if (status == FLOW_OK) status = flow_record_next(&reader, &record, &count);
  int found = 0;
  if (status == FLOW_OK && record && flow_event_read(record, count, &event)) {
    while (!found && flow_event_next(&event, &summary)) {
      found = flow_bytes_left(&summary.tag) == strlen(name) && memcmp(summary.tag.next, name, strlen(name)) == 0;
    }
  }
  if (found) status = take(state, &summary);
  else if (status == FLOW_OK) status = flow_fail(FLOW_NOT_FOUND, "%s: no summary of '%s' stands there", logs->files[file].path, name);
  flow_record_close(&reader);
  return status;
}

/* ---- opening and closing ------------------------------------------------------------------------------------------------------------ */

/* Nothing is read yet; a folder that is not there has no runs until it is. After a failure `out` may be closed. */
flow_status flow_logs_open(const char *folder, flow_logs *out)
{
  *out = (flow_logs){ .folder = flow_duplicate_text(folder) };
  return out->folder ? FLOW_OK : FLOW_OUT_OF_MEMORY;
}

/* Also of one that was opened by half. */
void flow_logs_close(flow_logs *logs)
{
  for (int i = 0; i < logs->run_count; i++) flow_free(logs->runs[i].name);
  for (int i = 0; i < logs->tag_count; i++) flow_free(logs->tags[i].name);
  for (int i = 0; i < logs->series_count; i++) flow_free(logs->series[i].points);
  for (int i = 0; i < logs->file_count; i++) {
    flow_free(logs->files[i].path);
    flow_free(logs->files[i].trouble);
  }
  flow_free(logs->folder);
  flow_free(logs->runs);
  flow_free(logs->tags);
  flow_free(logs->series);
  flow_free(logs->files);
  flow_free(logs->by_series.slots);
  flow_free(logs->by_tag.slots);
  flow_free(logs->by_path.slots);
  *logs = (flow_logs){ 0 };
}
