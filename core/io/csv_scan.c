/* csv_scan.c: the text of a table of comma-separated values (RFC 4180) as fields: quoted fields, doubled quotes, line ends inside of
 * quotes, CR LF, LF or, in all of a text, CR, a last line without an end; blank lines are passed over. Each field becomes a
 * text that ends with NUL where it is.
 *
 * Where the text has no quote, every line end ends a record: the text is cut at line ends into parts, whose lines are counted and then cut
 * into fields by several threads. A text with quotes is scanned by one, from the start. */
#include "io/csv.h"

#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "base/team.h"
#include "io/file.h"

enum { FIRST_BLOCK = 1 << 16, PART_BYTES = 1 << 18 };

/* ---- reading --------------------------------------------------------------------------------------------------------------- */

/* A text without LF may have lines that end with CR alone, as old programs write them. */
static void end_lines_with_lf(char *text, size_t bytes)
{
  for (char *at = text; (at = memchr(at, '\r', bytes - (size_t)(at - text)));) *at = '\n';
}

/* The whole file, inflated if it is gzipped. Memory grows with what really comes. The two bytes that gzip files begin
 * with decide, not the file's name. On failure csv->text is freed with the table. */
flow_status flow_csv_read(flow_csv *csv)
{
  flow_source source;
  unsigned char magic[2];
  uint64_t got;
  flow_status status;
  FLOW_TRY_GOTO(flow_source_open(csv->path, &source), end);
  FLOW_TRY_GOTO(flow_source_read_some(&source, magic, sizeof magic, &got), end);
  int gzipped = got == 2 && magic[0] == 0x1f && magic[1] == 0x8b;
  FLOW_TRY_GOTO(flow_source_range(&source, 0, source.file_bytes, gzipped ? FLOW_GZIP : FLOW_PLAIN), end);
  uint64_t capacity = gzipped ? FIRST_BLOCK : source.file_bytes;
  for (;;) {
    void *grown;
    FLOW_TRY_GOTO(flow_alloc((size_t)capacity + 1, &grown), end);
    if (csv->bytes > 0) memcpy(grown, csv->text, (size_t)csv->bytes);
    flow_free(csv->text);
    csv->text = grown;
    FLOW_TRY_GOTO(flow_source_read_some(&source, csv->text + csv->bytes, capacity - csv->bytes, &got), end);
    csv->bytes += got;
    if (csv->bytes < capacity || !gzipped) break;
    capacity *= 2;
  }
  status = flow_source_expect_end(&source);
  csv->text[csv->bytes] = 0;
  if (!memchr(csv->text, '\n', (size_t)csv->bytes)) end_lines_with_lf(csv->text, (size_t)csv->bytes);
end:
  flow_source_close(&source);
  return status;
}

/* ---- what both ways share ---------------------------------------------------------------------------------------------------- */

/* stops[c]: the character c may end a field, or must not be in one. end: of the whole text, where a NUL is. */
typedef struct scanner {
  char *next, *end;
  char delimiter;
  unsigned char stops[256];
} scanner;

/* A scanner at the beginning of the text; UTF-8's mark is passed over. */
static scanner scanner_of(const flow_csv *csv, char delimiter)
{
  scanner s = { .next = csv->text, .end = csv->text + csv->bytes, .delimiter = delimiter };
  for (const char *stop = "\"\r\n"; *stop; stop++) s.stops[(unsigned char)*stop] = 1;
  s.stops[0] = s.stops[(unsigned char)delimiter] = 1;
  if (csv->bytes >= 3 && memcmp(csv->text, "\xef\xbb\xbf", 3) == 0) s.next += 3; /* byte order mark */
  return s;
}

/* A CR ends a line only before LF here: lone ones were turned into LF, or are part of a field. Reading one byte beyond the text is safe: a
 * NUL is there. */
static int at_line_end(const scanner *s)
{
  return s->next == s->end || *s->next == '\n' || (*s->next == '\r' && s->next[1] == '\n');
}

/* Moves past the delimiter or the line end after a field, if the text has one. Returns whether the record ends here. */
static int pass_field_end(scanner *s)
{
  int last = at_line_end(s);
  s->next += s->next < s->end && *s->next == '\r' && last ? 2 : s->next < s->end;
  return last;
}

/* Lines count from 1, blank ones included, as editors show them. */
static flow_status fail_line(const flow_csv *csv, int64_t line, const char *what)
{
  return flow_fail(FLOW_CORRUPT_DATA, "%s, line %lld: %s", csv->path, (long long)line, what);
}

static flow_status fail_columns(const flow_csv *csv, int64_t line, int64_t columns)
{
  return flow_fail(FLOW_CORRUPT_DATA, "%s, line %lld: %lld field%s, the first line has %d", csv->path, (long long)line, (long long)columns,
                   columns == 1 ? "" : "s", csv->columns);
}

static flow_status fail_size(const flow_csv *csv)
{
  return flow_fail(FLOW_UNSUPPORTED, "%s has more than %d fields", csv->path, INT32_MAX);
}

/* ---- a text without quotes ---------------------------------------------------------------------------------------------------- */

/* A run of whole lines. Counting fills in what is known of them before fields are cut; cutting notes the first record of another size. */
typedef struct part {
  char *begin, *end;
  int64_t lines, rows;           /* rows: lines that are not blank */
  int64_t first_line, first_row; /* how many the parts before it have */
  int64_t wrong_line, wrong_columns;
} part;

/* What the threads share: `run` is the same for all parts, tickets hand out the parts. start: a scanner that each part copies. */
typedef struct plain_table {
  flow_csv *csv;
  scanner start;
  part *parts;
  int count;
  void (*run)(struct plain_table *table, part *of);
  flow_ticket ticket;
} plain_table;

/* Members take parts until none is left; which member gets which does not matter, since each part writes to its own places. */
static void plain_member(flow_region *region, int member, int members, void *argument)
{
  plain_table *table = argument;
  (void)region, (void)member, (void)members;
  for (int64_t i; (i = flow_ticket_take(&table->ticket)) < table->count;) table->run(table, &table->parts[i]);
}

/* Returns when all parts are done. One part is not worth waking a thread. */
static void run_parts(plain_table *table, void (*run)(plain_table *table, part *of))
{
  table->run = run;
  flow_ticket_reset(&table->ticket);
  flow_team_run(table->count > 1 ? 0 : 1, plain_member, table);
}

/* The first pass: how many lines and records the part has. Only then it is known where its records go in the table. */
static void count_lines(plain_table *table, part *of)
{
  (void)table;
  for (char *line = of->begin; line < of->end; of->lines++) {
    char *stop = memchr(line, '\n', (size_t)(of->end - line));
    int64_t length = (stop ? stop : of->end) - line;
    of->rows += length > 0 && !(length == 1 && *line == '\r' && stop);
    line += length + 1;
  }
}

/* Where the first `room` fields of the record begin, and NULs at the ends of all; gives the number of all. Fields beyond `room` are counted
 * and lost: the record is wrong then, and its number is what the message tells. */
static int64_t cut_record(scanner *s, char **fields, int64_t room)
{
  for (int64_t count = 0;;) {
    char *field = s->next;
    if (count < room) fields[count] = field;
    count++;
    for (;; s->next++) {
      while (!s->stops[(unsigned char)*s->next]) s->next++; /* the text ends with NUL */
      if (*s->next == s->delimiter || at_line_end(s)) break;
    }
    char *closing = s->next;
    int last = pass_field_end(s);
    *closing = 0;
    if (last) return count;
  }
}

/* The second pass. Ends at the first record with another number of fields; without a table (csv->fields NULL) it only looks for that
 * record. */
static void cut_lines(plain_table *table, part *of)
{
  const flow_csv *csv = table->csv;
  scanner s = table->start;
  int64_t line = of->first_line, row = of->first_row;
  s.next = of->begin;
  while (s.next < of->end) {
    line++;
    if (at_line_end(&s)) {
      pass_field_end(&s);
      continue;
    }
    int64_t columns = cut_record(&s, csv->fields ? csv->fields + row * csv->columns : NULL, csv->fields ? csv->columns : 0);
    if (columns != csv->columns) {
      of->wrong_line = line;
      of->wrong_columns = columns;
      return;
    }
    if (csv->lines) csv->lines[row] = line;
    row++;
  }
}

/* Parts of about PART_BYTES, each of which ends where a line does. */
static void cut_text(plain_table *table)
{
  char *begin = table->start.next, *end = table->start.end;
  for (table->count = 0; begin < end; table->count++) {
    char *stop = end - begin > PART_BYTES ? memchr(begin + PART_BYTES, '\n', (size_t)(end - begin) - PART_BYTES) : NULL;
    table->parts[table->count] = (part){ .begin = begin, .end = stop ? stop + 1 : end };
    begin = table->parts[table->count].end;
  }
}

/* The fields of the first record, which is not cut yet. */
static int64_t count_columns(const scanner *start)
{
  scanner s = *start;
  int64_t columns = 1;
  while (at_line_end(&s) && s.next < s.end) pass_field_end(&s);
  for (; !at_line_end(&s); s.next++) columns += *s.next == s.delimiter;
  return columns;
}

/* Of several wrong records the message names the first one of the file, whatever thread found it: parts are in its order. */
static flow_status scan_plain(plain_table *table)
{
  flow_csv *csv = table->csv;
  int64_t lines = 0, rows = 0;
  run_parts(table, count_lines);
  for (int i = 0; i < table->count; i++) {
    table->parts[i].first_line = lines;
    table->parts[i].first_row = rows;
    lines += table->parts[i].lines;
    rows += table->parts[i].rows;
  }
  int64_t columns = count_columns(&table->start), all;
  if (columns > INT32_MAX || rows > INT32_MAX) return fail_size(csv);
  csv->columns = (int)columns;
  csv->rows = (int)rows;
  if (rows == 0) return FLOW_OK;
  /* Each field takes a byte, its end: where there are fewer bytes than fields, a record is too short, and is only to be found. */
  if (!__builtin_mul_overflow(rows, columns, &all) && all <= (int64_t)csv->bytes + 1) {
    void *fields, *lines_of;
    if (all > INT32_MAX) return fail_size(csv);
    FLOW_TRY(flow_alloc((size_t)all * sizeof *csv->fields, &fields));
    csv->fields = fields;
    FLOW_TRY(flow_alloc((size_t)rows * sizeof *csv->lines, &lines_of));
    csv->lines = lines_of;
  }
  run_parts(table, cut_lines);
  for (int i = 0; i < table->count; i++)
    if (table->parts[i].wrong_line > 0) return fail_columns(csv, table->parts[i].wrong_line, table->parts[i].wrong_columns);
  if (csv->fields) return FLOW_OK;
  return flow_fail(FLOW_INTERNAL, "%s: %lld rows of %d fields in %llu bytes", csv->path, (long long)rows, csv->columns,
                   (unsigned long long)csv->bytes);
}

/* ---- a text with quotes ---------------------------------------------------------------------------------------------------------- */

/* The fields so far: those of csv->rows whole records and of the one that is being scanned. line: the file's, from 1. */
typedef struct quoted_table {
  flow_csv *csv;
  scanner s;
  int64_t line;
  int count, capacity, line_capacity;
} quoted_table;

/* The field begins here; scan_record puts the NUL at its end. */
static flow_status add_field(quoted_table *table, char *field)
{
  if (table->count == INT32_MAX) return fail_size(table->csv);
  FLOW_TRY(flow_grow(&table->csv->fields, sizeof *table->csv->fields, table->count + 1, &table->capacity));
  table->csv->fields[table->count++] = field;
  return FLOW_OK;
}

/* A field in quotes: moves its text together, where a doubled quote stands for one. *closing: the place after the text
 * that was moved, for the NUL, which is never after the closing quote. */
static flow_status scan_quoted(quoted_table *table, char **closing)
{
  scanner *s = &table->s;
  int64_t first_line = table->line;
  char *to = ++s->next;
  FLOW_TRY(add_field(table, to));
  for (;; s->next++) {
    if (s->next == s->end) return fail_line(table->csv, first_line, "a quoted field begins here and does not end");
    if (*s->next == '"' && s->next[1] == '"') s->next++;
    else if (*s->next == '"') break;
    table->line += *s->next == '\n';
    *to++ = *s->next;
  }
  s->next++;
  *closing = to;
  if (!at_line_end(s) && *s->next != s->delimiter) return fail_line(table->csv, table->line, "there is text after a closing quote");
  return FLOW_OK;
}

/* A field without quotes, which may hold any other text. *closing: where its end is, to be overwritten by NUL. */
static flow_status scan_bare(quoted_table *table, char **closing)
{
  scanner *s = &table->s;
  FLOW_TRY(add_field(table, s->next));
  for (;; s->next++) {
    while (!s->stops[(unsigned char)*s->next]) s->next++; /* the text ends with NUL */
    if (*s->next == '"') return fail_line(table->csv, table->line, "a quote stands inside of a field that does not begin with one");
    if (*s->next == s->delimiter || at_line_end(s)) break;
  }
  *closing = s->next;
  return FLOW_OK;
}

/* One record. Ends of fields are overwritten with NUL once it is known what stood there. A field that begins at the end
 * of the text, after a last delimiter, is empty; its NUL is the one after the text. The number of fields in the first
 * record is the number of columns for all others. */
static flow_status scan_record(quoted_table *table)
{
  flow_csv *csv = table->csv;
  scanner *s = &table->s;
  int64_t line = table->line;
  int before = table->count, last = 0;
  while (!last) {
    char *closing = s->next;
    if (s->next < s->end && *s->next == '"') FLOW_TRY(scan_quoted(table, &closing));
    else FLOW_TRY(scan_bare(table, &closing));
    last = pass_field_end(s);
    *closing = 0;
  }
  table->line++;
  int columns = table->count - before;
  if (csv->rows == 0) csv->columns = columns;
  if (columns != csv->columns) return fail_columns(csv, line, columns);
  FLOW_TRY(flow_grow(&csv->lines, sizeof *csv->lines, csv->rows + 1, &table->line_capacity));
  csv->lines[csv->rows++] = line;
  return FLOW_OK;
}

/* By one thread, as whether a line end is inside of quotes follows from all of the text before it. */
static flow_status scan_with_quotes(quoted_table *table)
{
  while (table->s.next < table->s.end) {
    if (at_line_end(&table->s)) {
      pass_field_end(&table->s);
      table->line++;
    } else {
      FLOW_TRY(scan_record(table));
    }
  }
  return FLOW_OK;
}

/* Fills in rows, columns, fields (row-major, pointers into csv->text) and lines (of each record). After a failure the table is released by
 * its owner, as after flow_csv_read. */
flow_status flow_csv_scan(flow_csv *csv, char delimiter)
{
  if (memchr(csv->text, 0, (size_t)csv->bytes))
    return flow_fail(FLOW_CORRUPT_DATA, "%s is not a text file: it holds a NUL byte", csv->path);
  scanner start = scanner_of(csv, delimiter);
  if (memchr(csv->text, '"', (size_t)csv->bytes)) {
    quoted_table table = { .csv = csv, .s = start, .line = 1 };
    FLOW_TRY(scan_with_quotes(&table));
  } else {
    void *parts;
    FLOW_TRY(flow_alloc(sizeof(part) * (size_t)(csv->bytes / PART_BYTES + 1), &parts));
    plain_table table = { .csv = csv, .start = start, .parts = parts };
    cut_text(&table);
    flow_status status = scan_plain(&table);
    flow_free(parts);
    FLOW_TRY(status);
  }
  if (csv->rows == 0) return flow_fail(FLOW_CORRUPT_DATA, "%s holds no table: it is empty", csv->path);
  return FLOW_OK;
}
