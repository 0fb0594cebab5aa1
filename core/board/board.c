/* board.c: flow_board_* of flow.h: the pages over a folder of event files.
 *
 *   /                          the page, which the program gave
 *   /runs                      the runs, tags and versions; reads what is new
 *   /scalars/TAG               curves of all runs: steps, seconds, values, and least and greatest value where a point is several
 *   /histograms/TAG  /pictures/TAG  /graphs/TAG  /texts/TAG
 *   /picture/TAG/FILE/OFFSET/INDEX      the file of one picture, as /pictures names it
 *
 * All is read and answered on the server's thread, which alone uses the logs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/memory.h"
#include "board/logs.h"
#include "cluster/monitor/http.h"
#include "flow.h"

enum { MOST_TEXT = 1 << 16, MOST_GRAPH = 1 << 21, MOST_SHOWN_PICTURES = 16 };      /* bytes of a text that are shown */
static const double READ_SECONDS = 0.5;      /* in an answer; what takes longer is read for the next ones */

/* Written by the program's thread before the server's thread begins; `logs` is that thread's from then on. */
struct flow_board {
  flow_http *http;
  char      *page;
  flow_logs  logs;
};

static const char *const kinds[] = { "", "scalars", "histograms", "pictures", "texts", "graphs" };

/* ---- answers as JSON ---------------------------------------------------------------------------------------------------------------- */

/* JSON of browsers has no other numbers; Number() of JavaScript reads these texts. */
static void put_number(flow_json *into, double value)
{
  if (isfinite(value)) flow_json_put_number(into, NULL, value);
  else flow_json_put_text(into, NULL, isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
}

static flow_json *put_list(flow_json *into, const char *key) { return flow_json_put_kind(into, key, FLOW_JSON_LIST); }

/* Runs that have files now, by number; and what is wrong with files, as texts. */
static void add_runs(flow_json *top, const flow_logs *logs)
{
  flow_json *list = put_list(top, "runs");
  for (int i = 0; i < logs->run_count; i++) {
    if (logs->runs[i].files == 0) continue;
    flow_json *run = flow_json_put_kind(list, NULL, FLOW_JSON_OBJECT);
    flow_json_put_number(run, "id", i);
    flow_json_put_text(run, "name", logs->runs[i].name);
  }
  list = put_list(top, "troubles");
  for (int i = 0; i < logs->file_count; i++) {
    if (logs->files[i].trouble && logs->files[i].is_there) flow_json_put_text(list, NULL, logs->files[i].trouble);
  }
}

/* Curves of a run whose files are gone stay in memory, but are not told. */
static int is_shown(const flow_logs *logs, const flow_logs_series *series)
{
  return series->count > 0 && logs->runs[series->run].files > 0;
}

/* Each tag once, with the runs that have it. version: the page asks for a tag again only when that has grown. */
static flow_status add_tags(flow_json *top, const flow_logs *logs)
{
  void *block;
  FLOW_TRY(flow_alloc_zero(((size_t)logs->tag_count + 1) * sizeof(flow_json *), &block));
  flow_json **runs = block, *list = put_list(top, "tags");
  for (int i = 0; i < logs->series_count; i++) {
    const flow_logs_series *series = &logs->series[i];
    const flow_logs_tag *tag = &logs->tags[series->tag];
    if (!is_shown(logs, series)) continue;
    if (!runs[series->tag]) {
      flow_json *entry = flow_json_put_kind(list, NULL, FLOW_JSON_OBJECT);
      flow_json_put_number(entry, "id", series->tag);
      flow_json_put_text(entry, "name", tag->name);
      flow_json_put_text(entry, "kind", kinds[tag->kind]);
      flow_json_put_number(entry, "version", tag->version);
      runs[series->tag] = put_list(entry, "runs");
    }
    flow_json_put_number(runs[series->tag], NULL, series->run);
  }
  flow_free(runs);
  return FLOW_OK;
}

/* The page asks for this again and again: here new bytes of the files are read. more: there are some left for the next time. */
static flow_status say_runs(flow_logs *logs, flow_json *top)
{
  int more;
  FLOW_TRY(flow_logs_read(logs, READ_SECONDS, &more));
  flow_json_put_text(top, "folder", logs->folder);
  flow_json_put(top, "more", flow_json_make(FLOW_JSON_BOOLEAN, more, NULL));
  flow_json_put_number(top, "left_out", logs->left_out);
  add_runs(top, logs);
  return add_tags(top, logs);
}

/* ---- one tag ------------------------------------------------------------------------------------------------------------------------ */

/* low and high only where a point stands for several values: they would all be equal else. */
static void add_values(flow_json *entry, const flow_logs_series *series)
{
  flow_json *values = put_list(entry, "values"), *low = NULL, *high = NULL;
  if (series->width > 1) {
    low = put_list(entry, "low");
    high = put_list(entry, "high");
  }
  for (int i = 0; i < series->count; i++) {
    put_number(values, series->points[i].value);
    if (low) put_number(low, series->points[i].low);
    if (high) put_number(high, series->points[i].high);
  }
}

/* A histogram as one flat list of left edge, right edge, count; empty if the summary is not a histogram. */
static flow_status add_rows(void *state, const flow_summary *summary)
{
  void *block;
  FLOW_TRY(flow_alloc(FLOW_SUMMARY_ROOM * sizeof(double), &block));
  double *rows = block;
  int count = flow_summary_histogram(summary, rows);
  flow_json *list = put_list(state, NULL);
  for (int i = 0; i < 3 * count; i++) put_number(list, rows[i]);
  flow_free(block);
  return FLOW_OK;
}

/* Longer texts are cut, which may cut a symbol of UTF-8. */
static flow_status add_text(void *state, const flow_summary *summary)
{
  void *block;
  flow_bytes content = flow_summary_text(summary);
  size_t most = summary->kind == FLOW_SUMMARY_GRAPHS ? MOST_GRAPH : MOST_TEXT;
  size_t length = flow_bytes_left(&content) < most ? (size_t)flow_bytes_left(&content) : most;
  FLOW_TRY(flow_alloc(length + 1, &block));
  char *text = block;
  if (length > 0) memcpy(text, content.next, length);
  text[length] = '\0';
  flow_json_put_text(state, NULL, text);
  flow_free(block);
  return FLOW_OK;
}

/* What is in the files: a place whose record is gone by now has an empty entry, as have all graphs but the last. */
static flow_status add_visited(flow_json *list, const flow_logs *logs, const flow_logs_series *series, int kind)
{
  for (int i = 0; i < series->count; i++) {
    const flow_logs_point *point = &series->points[i];
    flow_logs_take *take = kind == FLOW_SUMMARY_HISTOGRAMS ? add_rows : add_text;
    int counts = kind != FLOW_SUMMARY_GRAPHS || i == series->count - 1;
    flow_status status = !counts ? FLOW_NOT_FOUND : flow_logs_visit(logs, point->file, point->offset, series->tag, take, list);
    if (status == FLOW_OUT_OF_MEMORY) return status;
    if (status != FLOW_OK) flow_json_put_kind(list, NULL, FLOW_JSON_NULL);
  }
  return FLOW_OK;
}

/* Only where each picture is: the browser asks for those that it shows. */
static void add_pictures(flow_json *list, const flow_logs_series *series)
{
  char path[100];
  for (int i = 0; i < series->count; i++) {
    const flow_logs_point *point = &series->points[i];
    flow_json *paths = put_list(list, NULL);
    for (int k = 0; k < point->pictures && k < MOST_SHOWN_PICTURES; k++) {
      snprintf(path, sizeof path, "picture/%d/%d/%.0f/%d", series->tag, point->file, (double)point->offset, k);
      flow_json_put_text(paths, NULL, path);
    }
  }
}

/* Lists of one length: steps, walls, and one that is named as the kind (values, for scalars). */
static flow_status add_series(flow_json *list, const flow_logs *logs, const flow_logs_series *series, int kind)
{
  flow_json *entry = flow_json_put_kind(list, NULL, FLOW_JSON_OBJECT);
  flow_json_put_number(entry, "run", series->run);
  flow_json *steps = put_list(entry, "steps"), *walls = put_list(entry, "walls");
  for (int i = 0; i < series->count; i++) {
    put_number(steps, (double)series->points[i].step);
    put_number(walls, floor(series->points[i].wall * 1000 + 0.5) / 1000);      /* milliseconds */
  }
  if (kind == FLOW_SUMMARY_SCALARS) add_values(entry, series);
  else if (kind == FLOW_SUMMARY_PICTURES) add_pictures(put_list(entry, kinds[kind]), series);
  else return add_visited(put_list(entry, kinds[kind]), logs, series, kind);
  return FLOW_OK;
}

/* One curve for each run. Numbers stay as the page's Number() reads them. */
static flow_status say_tag(const flow_logs *logs, int tag, flow_json *top)
{
  flow_json_put_text(top, "tag", logs->tags[tag].name);
  flow_json_put_number(top, "version", logs->tags[tag].version);
  flow_json *list = put_list(top, "series");
  for (int i = 0; i < logs->series_count; i++) {
    const flow_logs_series *series = &logs->series[i];
    if (series->tag == tag && is_shown(logs, series)) FLOW_TRY(add_series(list, logs, series, logs->tags[tag].kind));
  }
  return FLOW_OK;
}

/* ---- one picture -------------------------------------------------------------------------------------------------------------------- */

typedef struct wanted { int index; const char **type; char **body; size_t *bytes; } wanted;

/* By the first bytes of the file. NULL: nothing that a browser shall take for a picture. */
static const char *picture_type(flow_bytes file)
{
  static const struct { const char *first; size_t length; const char *type; } known[] = {
    { "\x89PNG", 4, "image/png" }, { "\xff\xd8\xff", 3, "image/jpeg" }, { "GIF8", 4, "image/gif" },
  };
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    if (flow_bytes_left(&file) > known[i].length && memcmp(file.next, known[i].first, known[i].length) == 0) return known[i].type;
  }
  return NULL;
}

/* Given while the record's bytes are there: the answer gets a copy. */
static flow_status take_picture(void *state, const flow_summary *summary)
{
  wanted *want = state;
  void *block;
  flow_bytes file = flow_summary_picture(summary, want->index);
  const char *type = picture_type(file);
  if (!type) return flow_fail(FLOW_NOT_FOUND, "there is no picture %d", want->index);
  FLOW_TRY(flow_alloc((size_t)flow_bytes_left(&file), &block));
  memcpy(block, file.next, (size_t)flow_bytes_left(&file));
  *want->type = type;
  *want->body = block;
  *want->bytes = (size_t)flow_bytes_left(&file);
  return FLOW_OK;
}

/* ---- pages -------------------------------------------------------------------------------------------------------------------------- */

/* `count` numbers after slashes that are the whole rest of a path. A number that is too large becomes the largest one, at which nothing is
 * found. */
static int read_places(const char *path, uint64_t *places, int count)
{
  for (int i = 0; i < count; i++) {
    char *end;
    if (path[0] != '/' || path[1] < '0' || path[1] > '9') return 0;
    places[i] = strtoull(path + 1, &end, 10);
    path = end;
  }
  return *path == '\0';
}

/* The path decides what is written into `top`; FLOW_NOT_FOUND: there is no such page, or the tag has another kind. */
static flow_status make_json(flow_logs *logs, const char *path, flow_json *top)
{
  uint64_t tag;
  if (strcmp(path, "/runs") == 0) return say_runs(logs, top);
  for (int kind = FLOW_SUMMARY_SCALARS; kind <= FLOW_SUMMARY_GRAPHS; kind++) {
    size_t length = strlen(kinds[kind]);
    if (strncmp(path + 1, kinds[kind], length) != 0 || !read_places(path + 1 + length, &tag, 1)) continue;
    if (tag < (uint64_t)logs->tag_count && logs->tags[tag].kind == kind) return say_tag(logs, (int)tag, top);
  }
  return FLOW_NOT_FOUND;
}

/* What flow_http asks for each request, on its thread: FLOW_NOT_FOUND and FLOW_OUT_OF_MEMORY become answers of HTTP. *body is the
 * server's to free. */
static flow_status page_of(void *state, const char *path, const char **type, char **body, size_t *bytes)
{
  flow_board *board = state;
  uint64_t places[4];
  if (strcmp(path, "/") == 0) {
    *type = "text/html; charset=utf-8";
    *bytes = strlen(board->page);
    return (*body = flow_duplicate_text(board->page)) ? FLOW_OK : FLOW_OUT_OF_MEMORY;
  }
  if (strncmp(path, "/picture/", 9) == 0) {
    if (!read_places(path + 8, places, 4) || places[0] >= (uint64_t)board->logs.tag_count) return FLOW_NOT_FOUND;
    if (places[1] >= (uint64_t)board->logs.file_count || places[3] >= MOST_SHOWN_PICTURES) return FLOW_NOT_FOUND;
    wanted want = { (int)places[3], type, body, bytes };
    flow_status status = flow_logs_visit(&board->logs, (int)places[1], places[2], (int)places[0], take_picture, &want);
    return status == FLOW_OK || status == FLOW_OUT_OF_MEMORY ? status : FLOW_NOT_FOUND;
  }
  flow_json *top = flow_json_make(FLOW_JSON_OBJECT, 0, NULL);
  flow_status status = top ? make_json(&board->logs, path, top) : FLOW_OUT_OF_MEMORY;
  if (status == FLOW_OK && !(*body = flow_json_write(top))) status = FLOW_OUT_OF_MEMORY;
  if (status == FLOW_OK) *bytes = strlen(*body);
  flow_json_release(top);
  *type = "application/json";
  return status;
}

/* ---- for the program ---------------------------------------------------------------------------------------------------------------- */

/* The thread begins last, when all that it reads is there. */
static flow_status start(flow_board *board, const char *folder, const char *address, const char *page)
{
  FLOW_TRY(flow_logs_open(folder, &board->logs));
  board->page = flow_duplicate_text(page);
  return board->page ? flow_http_open(address, page_of, board, &board->http) : FLOW_OUT_OF_MEMORY;
}

flow_status flow_board_open(const char *folder, const char *address, const char *page, flow_board **out)
{
  void *block;
  if (!folder || !address || !page || !out) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_board_open: an argument is NULL");
  *out = NULL;
  int kind = flow_path_kind(folder);
  if (kind != FLOW_PATH_FOLDER && kind != FLOW_PATH_NONE) return flow_fail(FLOW_INVALID_ARGUMENT, "%s is not a folder", folder);
  FLOW_TRY(flow_alloc_zero(sizeof(flow_board), &block));
  flow_board *board = block;
  flow_status status = start(board, folder, address, page);
  if (status == FLOW_OK) *out = board;
  else flow_board_close(board);
  return status;
}

/* The one that was bound, also where the address asked for any. */
int flow_board_port(const flow_board *board) { return board ? flow_http_port(board->http) : 0; }

/* A signal ends the wait early, so that a program that was interrupted looks at its flag. */
void flow_board_wait(double seconds)
{
  if (!(seconds > 0 && seconds < 1e6)) return;
  double whole = floor(seconds);
  struct timespec time = { .tv_sec = (time_t)whole, .tv_nsec = (long)((seconds - whole) * 1e9) };
  nanosleep(&time, NULL);
}

/* Ends the thread first, which alone uses the rest. Takes what was opened by half. */
void flow_board_close(flow_board *board)
{
  if (!board) return;
  flow_http_close(board->http);
  flow_logs_close(&board->logs);
  flow_free(board->page);
  flow_free(board);
}
