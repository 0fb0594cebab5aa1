/* csv.c: tables of comma-separated values (RFC 4180): quoted fields, doubled quotes, line ends inside of quotes, CR LF or LF, a last
 * line without an end. The file is read whole, as it is or gzipped; each field becomes a text that ends with NUL where it is,
 * and a column becomes a tensor when it is asked for. Blank lines are passed over. */
#define _GNU_SOURCE
#include "base/float_state.h"
#include "base/memory.h"
#include "base/team.h"
#include "io/file.h"
#include "tensor/tensor.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CSV_MAGIC = 0x464c4356, DEAD = 0x44454144, FIRST_BLOCK = 1 << 16 };

/* A table in memory. All texts are inside of `text`: quotes are removed and ends of fields become NUL while it is
 * scanned, after which nothing changes, so that threads read it without a lock. count = rows * columns once scanning is
 * done. */
struct flow_csv {
  uint32_t  magic;
  char     *path, *text;          /* the file's bytes and one NUL */
  uint64_t  bytes;
  char    **fields;               /* [rows][columns], with the header as row 0 if there is one */
  int       count, capacity, columns, rows, header;
  int64_t  *lines;                /* [rows]: where each begins */
  int       line_capacity;
  locale_t  plain;                /* the locale "C", for strtod */
};

/* ---- reading --------------------------------------------------------------------------------------------------------------- */

/* The whole file, inflated if it is gzipped. Memory grows with what really comes. The two bytes that gzip files begin
 * with decide, not the file's name. On failure csv->text is freed with the table. */
static flow_status read_all(flow_csv *csv)
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
end:
  flow_source_close(&source);
  return status;
}

/* stops[c]: the character c may end a field, or must not be in one. */
typedef struct scanner { flow_csv *csv; char *next, *end; int64_t line; char delimiter; unsigned char stops[256]; } scanner;

static flow_status fail_line(const flow_csv *csv, int64_t line, const char *what)
{
  return flow_fail(FLOW_CORRUPT_DATA, "%s, line %lld: %s", csv->path, (long long)line, what);
}

/* The field begins here; scan_record puts the NUL at its end. */
static inline flow_status add_field(flow_csv *csv, char *field)
{
  if (csv->count == INT32_MAX) return flow_fail(FLOW_UNSUPPORTED, "%s has more than %d fields", csv->path, INT32_MAX);
  if (csv->count == csv->capacity) FLOW_TRY(flow_grow(&csv->fields, sizeof *csv->fields, csv->count + 1, &csv->capacity));
  csv->fields[csv->count++] = field;
  return FLOW_OK;
}

static int at_line_end(const scanner *s) { return s->next == s->end || *s->next == '\n' || (*s->next == '\r' && s->next[1] == '\n'); }

/* A field in quotes: moves its text together, where a doubled quote stands for one. *closing: the place after the text
 * that was moved, for the NUL, which is never after the closing quote. */
static flow_status scan_quoted(scanner *s, char **closing)
{
  int64_t first_line = s->line;
  char *to = ++s->next;
  FLOW_TRY(add_field(s->csv, to));
  for (;; s->next++) {
    if (s->next == s->end) return fail_line(s->csv, first_line, "a quoted field begins here and does not end");
    if (*s->next == '"' && s->next[1] == '"') s->next++;
    else if (*s->next == '"') break;
    s->line += *s->next == '\n';
    *to++ = *s->next;
  }
  s->next++;
  *closing = to;
  if (!at_line_end(s) && *s->next != s->delimiter) return fail_line(s->csv, s->line, "there is text after a closing quote");
  return FLOW_OK;
}

/* A field without quotes, which may hold any other text. *closing: where its end is, to be overwritten by NUL. */
static flow_status scan_bare(scanner *s, char **closing)
{
  FLOW_TRY(add_field(s->csv, s->next));
  for (;; s->next++) {
    while (!s->stops[(unsigned char)*s->next]) s->next++;       /* the text ends with NUL */
    if (*s->next == '"') return fail_line(s->csv, s->line, "a quote stands inside of a field that does not begin with one");
    if (*s->next == s->delimiter || at_line_end(s)) break;
  }
  *closing = s->next;
  return FLOW_OK;
}

/* One record. Ends of fields are overwritten with NUL once it is known what stood there. A field that begins at the end
 * of the text, after a last delimiter, is empty; its NUL is the one after the text. The number of fields in the first
 * record is the number of columns for all others. */
static flow_status scan_record(scanner *s)
{
  flow_csv *csv = s->csv;
  int64_t line = s->line;
  int before = csv->count, last = 0;
  while (!last) {
    char *closing = s->next;
    if (s->next < s->end && *s->next == '"') FLOW_TRY(scan_quoted(s, &closing));
    else FLOW_TRY(scan_bare(s, &closing));
    last = at_line_end(s);
    s->next += s->next < s->end && *s->next == '\r' && last ? 2 : s->next < s->end;
    *closing = 0;
  }
  s->line++;
  int columns = csv->count - before;
  if (csv->rows == 0) csv->columns = columns;
  if (columns != csv->columns) {
    return flow_fail(FLOW_CORRUPT_DATA, "%s, line %lld: %d field%s, the first line has %d", csv->path, (long long)line, columns,
                     columns == 1 ? "" : "s", csv->columns);
  }
  FLOW_TRY(flow_grow(&csv->lines, sizeof *csv->lines, csv->rows + 1, &csv->line_capacity));
  csv->lines[csv->rows++] = line;
  return FLOW_OK;
}

/* The whole text, record by record; empty lines are passed over. Lines are counted for messages, from 1. */
static flow_status scan(flow_csv *csv, char delimiter)
{
  scanner s = { .csv = csv, .next = csv->text, .end = csv->text + csv->bytes, .line = 1, .delimiter = delimiter };
  for (const char *stop = "\"\r\n"; *stop; stop++) s.stops[(unsigned char)*stop] = 1;
  s.stops[0] = s.stops[(unsigned char)delimiter] = 1;
  if (memchr(csv->text, 0, (size_t)csv->bytes))
    return flow_fail(FLOW_CORRUPT_DATA, "%s is not a text file: it holds a NUL byte", csv->path);
  if (csv->bytes >= 3 && memcmp(csv->text, "\xef\xbb\xbf", 3) == 0) s.next += 3;      /* byte order mark */
  while (s.next < s.end) {
    if (at_line_end(&s)) {
      s.next += *s.next == '\r' ? 2 : 1;
      s.line++;
    } else {
      FLOW_TRY(scan_record(&s));
    }
  }
  if (csv->rows == 0) return flow_fail(FLOW_CORRUPT_DATA, "%s holds no table: it is empty", csv->path);
  return FLOW_OK;
}

/* One thread opens; afterwards the table does not change, and any number of threads may read it. */
flow_status flow_csv_open(const char *path, const char *delimiter, int header, flow_csv **out)
{
  void *block;
  if (!out) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_csv_open: out is NULL");
  *out = NULL;
  if (!path || !*path) return flow_fail(FLOW_INVALID_ARGUMENT, "the path of a file is missing");
  if (!delimiter || strlen(delimiter) != 1 || strchr("\"\r\n", *delimiter)) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "the delimiter of a table is one character other than a quote or line end");
  }
  FLOW_TRY(flow_alloc_zero(sizeof(flow_csv), &block));
  flow_csv *csv = block;
  csv->magic = CSV_MAGIC;
  csv->header = header != 0;
  csv->path = flow_duplicate_text(path);
  csv->plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  flow_status status = csv->path ? FLOW_OK : FLOW_OUT_OF_MEMORY;
  if (status == FLOW_OK && !csv->plain) status = flow_fail(FLOW_OUT_OF_MEMORY, "out of memory for a locale");
  if (status == FLOW_OK) status = read_all(csv);
  if (status == FLOW_OK) status = scan(csv, *delimiter);
  if (status == FLOW_OK) *out = csv;
  else flow_csv_release(csv);
  return status;
}

/* Texts that flow_csv_text and flow_csv_name gave point into the table. */
void flow_csv_release(flow_csv *csv)
{
  if (!csv || csv->magic != CSV_MAGIC) return;
  csv->magic = DEAD;
  if (csv->plain) freelocale(csv->plain);
  flow_free(csv->lines);
  flow_free(csv->fields);
  flow_free(csv->text);
  flow_free(csv->path);
  flow_free(csv);
}

static int alive(const flow_csv *csv) { return csv && csv->magic == CSV_MAGIC; }

int flow_csv_columns(const flow_csv *csv) { return alive(csv) ? csv->columns : 0; }
double flow_csv_rows(const flow_csv *csv) { return alive(csv) ? csv->rows - csv->header : 0; }

static char *field_at(const flow_csv *csv, int row, int column) { return csv->fields[(int64_t)row * csv->columns + column]; }

const char *flow_csv_name(const flow_csv *csv, int column)
{
  return alive(csv) && csv->header && column >= 0 && column < csv->columns ? field_at(csv, 0, column) : NULL;
}

const char *flow_csv_text(const flow_csv *csv, int column, double row)
{
  if (!alive(csv) || column < 0 || column >= csv->columns || !(row >= 0 && row < csv->rows - csv->header)) return NULL;
  return field_at(csv, csv->header + (int)row, column);
}

/* ---- numbers ------------------------------------------------------------------------------------------------------------------ */

/* Spaces and tabs around a number do not belong to it. */
static inline const char *skip_spaces(const char *text)
{
  while (*text == ' ' || *text == '\t') text++;
  return text;
}
static int is_digit(char c) { return c >= '0' && c <= '9'; }

/* Whether the text, except for spaces around it, is a whole number that int64 holds. Digits are subtracted where the
 * number is negative, so that the least int64 does not overflow. */
static int parse_integer(const char *text, int64_t *value)
{
  text = skip_spaces(text);
  int negative = *text == '-';
  text += *text == '-' || *text == '+';
  if (!is_digit(*text)) return 0;
  for (*value = 0; is_digit(*text); text++) {
    int digit = *text - '0';
    if (__builtin_mul_overflow(*value, (int64_t)10, value) || __builtin_add_overflow(*value, negative ? -digit : digit, value)) return 0;
  }
  return !*skip_spaces(text);
}

/* Digits and a power of ten that doubles hold exactly give the correctly rounded value by one operation (Clinger 1990); the rest
 * is left to strtod. No hexadecimal numbers. */
static int parse_float(const flow_csv *csv, const char *text, double *value)
{
  static const double powers[] = { 1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15 };
  const char *start = skip_spaces(text), *p = start;
  int negative = *p == '-', digits = 0, places = 0;
  int64_t whole = 0;
  p += *p == '-' || *p == '+';
  for (; is_digit(*p) && digits < 15; p++, digits++) whole = whole * 10 + (*p - '0');
  if (*p == '.')
    for (p++; is_digit(*p) && digits < 15; p++, digits++, places++) whole = whole * 10 + (*p - '0');
  if (digits > 0 && !*skip_spaces(p)) {
    *value = (double)whole / powers[places];
    if (negative) *value = -*value;
    return 1;
  }
  char *end;
  if (!*start || strpbrk(start, "xX(")) return 0;
  *value = strtod_l(start, &end, csv->plain);
  return end != start && !*skip_spaces(end);
}

/* Empty, or nothing but spaces: a missing value. */
static int is_empty(const char *text) { return !*skip_spaces(text); }

enum { ROWS_AT_ONCE = 512, PART_ROWS = 8 * ROWS_AT_ONCE };      /* threads divide the rows of a column */

/* What the fields of a column are, all together: what is true of one part is true of the column, or more is. */
typedef enum column_kind { KIND_EMPTY, KIND_WHOLE, KIND_FLOAT, KIND_TEXT } column_kind;

typedef struct classification {
  const flow_csv *csv;
  int             column;
  flow_ticket     ticket;
  _Atomic int     kind, empty;     /* a column_kind, of those that are not empty; some are */
} classification;

/* The largest kind wins, whichever thread comes last. */
static void raise_kind(classification *c, int kind)
{
  int known = atomic_load(&c->kind);
  while (kind > known && !atomic_compare_exchange_weak(&c->kind, &known, kind)) continue;
}

/* Each part starts from what is known of the column, so that a column of texts is left after the first one. */
static void classify_member(flow_region *region, int member, int members, void *argument)
{
  FLOW_DEFAULT_FLOATS;
  classification *c = argument;
  (void)region, (void)member, (void)members;
  for (int64_t begin; (begin = c->csv->header + flow_ticket_take(&c->ticket) * PART_ROWS) < c->csv->rows;) {
    int kind = atomic_load(&c->kind), end = (int)(begin + PART_ROWS < c->csv->rows ? begin + PART_ROWS : c->csv->rows);
    for (int row = (int)begin; row < end && kind != KIND_TEXT; row++) {
      const char *text = field_at(c->csv, row, c->column);
      int64_t whole;
      double number;
      if (is_empty(text)) atomic_store_explicit(&c->empty, 1, memory_order_relaxed);
      else if (kind <= KIND_WHOLE && parse_integer(text, &whole)) kind = KIND_WHOLE;
      else kind = parse_float(c->csv, text, &number) ? KIND_FLOAT : KIND_TEXT;
    }
    raise_kind(c, kind);
  }
}

/* FLOW_INT64 if all fields are whole numbers, FLOW_FLOAT32 if all are numbers or empty and there is a number, else -1,
 * also for a column whose fields are all empty. A table without rows counts as whole numbers. Any number of threads may
 * ask. */
int flow_csv_dtype(const flow_csv *csv, int column)
{
  if (!alive(csv) || column < 0 || column >= csv->columns) return -1;
  classification c = { .csv = csv, .column = column };
  flow_team_run(csv->rows > PART_ROWS ? 0 : 1, classify_member, &c);
  if (csv->rows == csv->header) return FLOW_INT64;
  switch (atomic_load(&c.kind)) {
  case KIND_WHOLE: return atomic_load(&c.empty) ? FLOW_FLOAT32 : FLOW_INT64;
  case KIND_FLOAT: return FLOW_FLOAT32;
  default:         return -1;
  }
}

/* Of the dtypes of whole numbers; int64 holds all of them. */
static int integer_fits(int dtype, int64_t value)
{
  switch (dtype) {
  case FLOW_INT8:  return value >= INT8_MIN && value <= INT8_MAX;
  case FLOW_UINT8: return value >= 0 && value <= UINT8_MAX;
  case FLOW_INT32: return value >= INT32_MIN && value <= INT32_MAX;
  case FLOW_BOOL:  return value == 0 || value == 1;
  default:         return 1;
  }
}

/* The number that a field holds, as a column of floats takes it: an empty one is NaN. 0: it holds none. */
static int read_float(const flow_csv *csv, const char *text, double *number)
{
  *number = NAN;
  return is_empty(text) || parse_float(csv, text, number);
}

/* The same for a column of whole numbers or bool, which may also say true or false. 0 for an empty field, and for a
 * number that the dtype does not hold. */
static int read_whole(int dtype, const char *text, int64_t *whole)
{
  if (dtype == FLOW_BOOL && (strcasecmp(text, "true") == 0 || strcasecmp(text, "false") == 0)) *whole = (*text | 32) == 't';
  else if (!parse_integer(text, whole) || !integer_fits(dtype, *whole)) return 0;
  return 1;
}

/* A column on its way into a tensor, whose rows threads divide. */
typedef struct conversion {
  const flow_csv *csv;
  int             column, dtype;
  char           *to;
  flow_ticket     ticket;
  _Atomic int     wrong;           /* the first row with a field that is not of the dtype; rows: none */
} conversion;

/* The lowest row stays, so that the message does not depend on which thread was first. */
static void found_wrong(conversion *c, int row)
{
  int first = atomic_load(&c->wrong);
  while (row < first && !atomic_compare_exchange_weak(&c->wrong, &first, row)) continue;
}

/* Rows [begin, end), at most ROWS_AT_ONCE. Fields become doubles (or int64) on the stack first, so that one conversion writes all of
 * them in the column's dtype. A wrong field ends this part; the lowest wrong row of all parts is reported, whichever thread finds it. */
static void convert_rows(conversion *c, int begin, int end)
{
  union { double numbers[ROWS_AT_ONCE]; int64_t whole[ROWS_AT_ONCE]; } of;
  int count = end - begin;
  char *to = c->to + (int64_t)(begin - c->csv->header) * flow_dtype_size(c->dtype);
  for (int i = 0; i < count; i++) {
    const char *text = field_at(c->csv, begin + i, c->column);
    if (flow_dtype_is_float(c->dtype) ? read_float(c->csv, text, &of.numbers[i]) : read_whole(c->dtype, text, &of.whole[i])) continue;
    found_wrong(c, begin + i);
    return;
  }
  if (c->dtype == FLOW_INT64) memcpy(to, of.whole, sizeof of.whole[0] * (size_t)count);
  for (int i = 0; i < count && !flow_dtype_is_float(c->dtype) && c->dtype != FLOW_INT64; i++) of.numbers[i] = (double)of.whole[i];
  if (c->dtype != FLOW_INT64) flow_convert_from_double(c->dtype, of.numbers, to, 1, count);
}

/* Threads take parts of PART_ROWS rows until there are none; each writes its own rows of the tensor, so that nothing is shared but the
 * ticket and the first wrong row. */
static void convert_member(flow_region *region, int member, int members, void *argument)
{
  FLOW_DEFAULT_FLOATS;
  conversion *c = argument;
  (void)region, (void)member, (void)members;
  for (int64_t begin; (begin = c->csv->header + flow_ticket_take(&c->ticket) * PART_ROWS) < c->csv->rows;)
    for (int64_t row = begin; row < begin + PART_ROWS && row < c->csv->rows; row += ROWS_AT_ONCE)
      convert_rows(c, (int)row, (int)(row + ROWS_AT_ONCE < c->csv->rows ? row + ROWS_AT_ONCE : c->csv->rows));
}

/* The message names the file's line, which may be another than the row: quoted fields may hold line ends. */
flow_status flow_csv_tensor(const flow_csv *csv, int column, int dtype, flow_tensor **out)
{
  FLOW_DEFAULT_FLOATS;
  *out = NULL;
  if (!alive(csv) || column < 0 || column >= csv->columns) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "flow_csv_tensor: there is no column %d", column);
  }
  int64_t rows = csv->rows - csv->header;
  flow_tensor *tensor;
  FLOW_TRY(flow_tensor_new(dtype, 1, &rows, &tensor));
  conversion c = { .csv = csv, .column = column, .dtype = dtype, .to = flow_tensor_elements(tensor), .wrong = csv->rows };
  flow_team_run(rows > PART_ROWS ? 0 : 1, convert_member, &c);
  int row = atomic_load(&c.wrong);
  if (row < csv->rows) {
    flow_tensor_release(tensor);
    return flow_fail(FLOW_CORRUPT_DATA, "%s, line %lld, column %s%.60s%s: \"%.40s\" is not %s", csv->path, (long long)csv->lines[row],
                     csv->header ? "\"" : "", csv->header ? field_at(csv, 0, column) : flow_shape_text(1, &(int64_t){ column + 1 }),
                     csv->header ? "\"" : "", field_at(csv, row, column), flow_dtype_name(dtype));
  }
  *out = tensor;
  return FLOW_OK;
}
