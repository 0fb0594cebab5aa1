/* core/board: a page in browsers over a folder of event files. Uses base, io, tensorboard, data, cluster/monitor.
 *
 * logs.h: what the event files under a folder hold. A run is a folder with such files. Only bytes that were added since the last read are
 * read; scalars are kept in at most FLOW_LOGS_POINTS groups of a curve, with the last, least and greatest value of each, and of everything
 * else only where it is in its file. Files are hostile: a damaged one is read up to the damage, and named; there are bounds for runs, tags
 * and curves. One thread uses it. */
#ifndef FLOW_BOARD_LOGS_H
#define FLOW_BOARD_LOGS_H

#include "base/status.h"
#include "tensorboard/event_reader.h"

/* even: groups of a curve; kept histograms, pictures or texts of a tag in a run */
enum { FLOW_LOGS_POINTS = 512, FLOW_LOGS_PLACES = 48 };

/* A group of values that followed each other; its step, wall, place and value are those of the last. */
typedef struct flow_logs_point {
  double   wall, value, low, high;
  int64_t  step;
  uint64_t offset;             /* of the record in the file */
  int      file, pictures;
} flow_logs_point;

/* A curve: the points of one tag in one run. Every group but the last has `width` values, the last has `filled` of them. */
typedef struct flow_logs_series {
  int              run, tag;
  flow_logs_point *points;
  int              count, capacity;
  int              width, filled;      /* values of each group; of the last one */
} flow_logs_series;

/* Runs, tags, series and files are numbered from 0 in the order in which they were first seen, and never lose their number, since pages
 * ask by it. */
typedef struct flow_logs_tag {
  char *name;
  int   kind;                  /* flow_summary_kind */
  int   version;               /* grows when a point comes */
} flow_logs_tag;

typedef struct flow_logs_run {
  char *name;                  /* relative to the folder; "." for itself */
  int   files;                 /* that are there; 0: the run is gone */
} flow_logs_run;

typedef struct flow_logs_file {
  char    *path;
  int      run, is_there;
  uint64_t offset, bytes;      /* read up to here; of the file at the last look */
  uint64_t tried;              /* bytes of the file when trouble was met */
  char    *trouble;            /* why it cannot be read on; NULL: nothing */
} flow_logs_file;

typedef struct flow_logs_table { int *slots, capacity, count; } flow_logs_table;      /* by hash: positions from 1, 0 is free */

typedef struct flow_logs {
  char             *folder;
  flow_logs_run    *runs;
  flow_logs_tag    *tags;
  flow_logs_series *series;
  flow_logs_file   *files;
  /* How many of each there are, and for how many there is room. */
  int               run_count, run_capacity, tag_count, tag_capacity, series_count, series_capacity, file_count, file_capacity;
  flow_logs_table   by_series, by_tag, by_path;
  int               seen;              /* entries of folders in the last look */
  double            left_out;          /* summaries beyond the bounds */
} flow_logs;

/* Reads nothing yet; the folder need not exist. FLOW_OUT_OF_MEMORY. */
flow_status flow_logs_open(const char *folder, flow_logs *out);
void        flow_logs_close(flow_logs *logs);      /* also after a failed open */
/* Looks for files and reads what is new, for about `seconds`; *more: some is left. FLOW_OUT_OF_MEMORY; what is wrong with files is kept
 * with them. */
flow_status flow_logs_read(flow_logs *logs, double seconds, int *more);

/* The summary of a tag in the record at `offset` of a file, given to `take` while its bytes are there. FLOW_NOT_FOUND: it is not there. */
typedef flow_status flow_logs_take(void *state, const flow_summary *summary);
flow_status flow_logs_visit(const flow_logs *logs, int file, uint64_t offset, int tag, flow_logs_take *take, void *state);

#endif
