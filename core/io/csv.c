/* csv.c: tables of comma-separated values (RFC 4180) as users see them. The file is read whole and cut into fields when it is opened
 * (csv_scan.c); a column becomes a tensor when it is asked for. */
#define _GNU_SOURCE
#include "io/csv.h"

#include "base/float_state.h"
#include "base/memory.h"
#include "base/team.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CSV_MAGIC = 0x464c4356, DEAD = 0x44454144 };

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
  if (status == FLOW_OK) status = flow_csv_read(csv);
  if (status == FLOW_OK) status = flow_csv_scan(csv, *delimiter);
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

/* 0 for a table that was closed. */
int flow_csv_columns(const flow_csv *csv) { return alive(csv) ? csv->columns : 0; }
double flow_csv_rows(const flow_csv *csv) { return alive(csv) ? csv->rows - csv->header : 0; }

/* row: of the file's records, the header included. */
static char *field_at(const flow_csv *csv, int row, int column) { return csv->fields[(int64_t)row * csv->columns + column]; }

/* The header's field; NULL: there is no header or no such column. Borrowed from the table. */
const char *flow_csv_name(const flow_csv *csv, int column)
{
  return alive(csv) && csv->header && column >= 0 && column < csv->columns ? field_at(csv, 0, column) : NULL;
}

/* row: from 0, without the header. Borrowed; NULL outside of the table. */
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
  enum { MOST_DIGITS = 15 };
  const char *start = skip_spaces(text), *p = start;
  int negative = *p == '-';
  uint64_t whole = 0;
  p += *p == '-' || *p == '+';
  const char *first = p, *point = NULL;
  for (; is_digit(*p); p++) whole = whole * 10 + (uint64_t)(*p - '0'); /* of too many digits it wraps, and is not used */
  if (*p == '.')
    for (point = p++; is_digit(*p); p++) whole = whole * 10 + (uint64_t)(*p - '0');
  int64_t digits = p - first - (point != NULL), places = point ? p - point - 1 : 0;
  if (digits > 0 && digits <= MOST_DIGITS && !*skip_spaces(p)) {
    *value = (double)(int64_t)whole / powers[places];
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

/* Threads divide the rows. Of a part they take a block of rows at a time, all columns of it one after the other: the fields of a row stand
 * side by side, and so the text is read once from memory, not once for each column. */
enum { ROWS_AT_ONCE = 512, FEWEST_ROWS = 16, FIELDS_AT_ONCE = 64 * ROWS_AT_ONCE, PART_ROWS = 8 * ROWS_AT_ONCE };

/* What the fields of a column are, all together: what is true of one part is true of the column, or more is. */
typedef enum column_kind { KIND_EMPTY, KIND_WHOLE, KIND_FLOAT, KIND_TEXT } column_kind;

/* A column that is looked at or on its way into a tensor. */
typedef struct job {
  int column, dtype;
  char *to;                /* the tensor's elements */
  _Atomic int wrong;       /* the first row with a field that is not of the dtype; rows: none */
  _Atomic int kind, empty; /* a column_kind, of the fields that are not empty; some are */
} job;

typedef struct jobs {
  const flow_csv *csv;
  void (*run)(const flow_csv *csv, job *of, int begin, int end); /* rows [begin, end), at most ROWS_AT_ONCE */
  job *list;
  int count, block; /* rows of a block */
  flow_ticket     ticket;
} jobs;

/* Members take parts of the rows until none is left; results of a part do not depend on who takes it. */
static void jobs_member(flow_region *region, int member, int members, void *argument)
{
  FLOW_DEFAULT_FLOATS;
  jobs *all = argument;
  int64_t rows = all->csv->rows;
  (void)region, (void)member, (void)members;
  for (int64_t begin; (begin = all->csv->header + flow_ticket_take(&all->ticket) * PART_ROWS) < rows;) {
    int64_t end = begin + PART_ROWS < rows ? begin + PART_ROWS : rows;
    for (int64_t row = begin; row < end; row += all->block)
      for (int i = 0; i < all->count; i++)
        all->run(all->csv, &all->list[i], (int)row, (int)(row + all->block < end ? row + all->block : end));
  }
}

/* All rows of all columns of `list`, on the team where there are many. */
static void run_jobs(const flow_csv *csv, void (*run)(const flow_csv *csv, job *of, int begin, int end), job *list, int count)
{
  int block = count > 0 ? FIELDS_AT_ONCE / count : 1;
  jobs all = { .csv = csv, .run = run, .list = list, .count = count };
  all.block = block > ROWS_AT_ONCE ? ROWS_AT_ONCE : block < FEWEST_ROWS ? FEWEST_ROWS : block;
  flow_team_run(csv->rows > PART_ROWS ? 0 : 1, jobs_member, &all);
}

/* The largest kind wins, whichever thread comes last. */
static void raise_kind(job *of, int kind)
{
  int known = atomic_load(&of->kind);
  while (kind > known && !atomic_compare_exchange_weak(&of->kind, &known, kind)) continue;
}

/* Each block starts from what is known of the column, so that a column of texts is left after the first one. */
static void classify_rows(const flow_csv *csv, job *of, int begin, int end)
{
  int kind = atomic_load(&of->kind);
  for (int row = begin; row < end && kind != KIND_TEXT; row++) {
    const char *text = field_at(csv, row, of->column);
    int64_t whole;
    double number;
    if (is_empty(text)) atomic_store_explicit(&of->empty, 1, memory_order_relaxed);
    else if (kind <= KIND_WHOLE && parse_integer(text, &whole)) kind = KIND_WHOLE;
    else kind = parse_float(csv, text, &number) ? KIND_FLOAT : KIND_TEXT;
  }
  raise_kind(of, kind);
}

/* Empty fields among whole numbers need a float, for NaN. */
static int dtype_of(const flow_csv *csv, const job *of)
{
  if (csv->rows == csv->header) return FLOW_INT64;
  switch (atomic_load(&of->kind)) {
  case KIND_WHOLE: return atomic_load(&of->empty) ? FLOW_FLOAT32 : FLOW_INT64;
  case KIND_FLOAT: return FLOW_FLOAT32;
  default:         return -1;
  }
}

/* A job for each of `count` columns; *list is freed by the caller. */
static flow_status list_jobs(const flow_csv *csv, const char *caller, const int *columns, int count, job **list)
{
  void *block;
  *list = NULL;
  if (!alive(csv)) return flow_fail(FLOW_INVALID_ARGUMENT, "%s: this is not an open table", caller);
  if (count < 0 || (count > 0 && !columns)) return flow_fail(FLOW_INVALID_ARGUMENT, "%s: %d columns were given as a list", caller, count);
  for (int i = 0; i < count; i++)
    if (columns[i] < 0 || columns[i] >= csv->columns)
      return flow_fail(FLOW_INVALID_ARGUMENT, "%s: there is no column %d", caller, columns[i]);
  FLOW_TRY(flow_alloc_zero(sizeof(job) * (size_t)(count > 0 ? count : 1), &block));
  *list = block;
  for (int i = 0; i < count; i++) {
    (*list)[i].column = columns[i];
    atomic_init(&(*list)[i].wrong, csv->rows);
  }
  return FLOW_OK;
}

/* FLOW_INT64 if all fields of a column are whole numbers, FLOW_FLOAT32 if all are numbers or empty and there is a number, else -1,
 * also for a column whose fields are all empty. A table without rows counts as whole numbers. Any number of threads may
 * ask. */
flow_status flow_csv_dtypes(const flow_csv *csv, const int *columns, int count, int *dtypes)
{
  job *list;
  if (!dtypes) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_csv_dtypes: dtypes is NULL");
  FLOW_TRY(list_jobs(csv, "flow_csv_dtypes", columns, count, &list));
  run_jobs(csv, classify_rows, list, count);
  for (int i = 0; i < count; i++) dtypes[i] = dtype_of(csv, &list[i]);
  flow_free(list);
  return FLOW_OK;
}

/* The same of one column; -1 also for a column that is not there. */
int flow_csv_dtype(const flow_csv *csv, int column)
{
  job of = { .column = column };
  if (!alive(csv) || column < 0 || column >= csv->columns) return -1;
  run_jobs(csv, classify_rows, &of, 1);
  return dtype_of(csv, &of);
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

/* The lowest row stays, so that the message does not depend on which thread was first. */
static void found_wrong(job *of, int row)
{
  int first = atomic_load(&of->wrong);
  while (row < first && !atomic_compare_exchange_weak(&of->wrong, &first, row)) continue;
}

/* Fields become doubles (or int64) on the stack first, so that one conversion writes all of them in the column's dtype. A wrong field ends
 * this block; the lowest wrong row of all blocks is reported, whichever thread finds it. */
static void convert_rows(const flow_csv *csv, job *of, int begin, int end)
{
  union {
    double numbers[ROWS_AT_ONCE];
    int64_t whole[ROWS_AT_ONCE];
  } read;
  int count = end - begin, is_float = flow_dtype_is_float(of->dtype);
  char *to = of->to + (int64_t)(begin - csv->header) * flow_dtype_size(of->dtype);
  for (int i = 0; i < count; i++) {
    const char *text = field_at(csv, begin + i, of->column);
    if (is_float ? read_float(csv, text, &read.numbers[i]) : read_whole(of->dtype, text, &read.whole[i])) continue;
    found_wrong(of, begin + i);
    return;
  }
  if (of->dtype == FLOW_INT64) memcpy(to, read.whole, sizeof read.whole[0] * (size_t)count);
  for (int i = 0; i < count && !is_float && of->dtype != FLOW_INT64; i++) read.numbers[i] = (double)read.whole[i];
  if (of->dtype != FLOW_INT64) flow_convert_from_double(of->dtype, read.numbers, to, 1, count);
}

/* The message names the file's line, which may be another than the row: quoted fields may hold line ends; and the column by the header, or
 * by its number from 1. */
static flow_status check_job(const flow_csv *csv, const job *of)
{
  char column[80];
  int row = atomic_load(&of->wrong);
  if (row == csv->rows) return FLOW_OK;
  if (csv->header) snprintf(column, sizeof column, "\"%.60s\"", field_at(csv, 0, of->column));
  else snprintf(column, sizeof column, "%d", of->column + 1);
  return flow_fail(FLOW_CORRUPT_DATA, "%s, line %lld, column %s: \"%.40s\" is not %s", csv->path, (long long)csv->lines[row], column,
                   field_at(csv, row, of->column), flow_dtype_name(of->dtype));
}

/* All tensors or none: on failure out[] is all NULL, and the message is about the first column of the list that has a wrong field. */
flow_status flow_csv_tensors(const flow_csv *csv, const int *columns, const int *dtypes, int count, flow_tensor **out)
{
  FLOW_DEFAULT_FLOATS;
  job *list;
  if (!out || !dtypes) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_csv_tensors: %s is NULL", out ? "dtypes" : "out");
  for (int i = 0; i < count; i++) out[i] = NULL;
  FLOW_TRY(list_jobs(csv, "flow_csv_tensors", columns, count, &list));
  int64_t rows = csv->rows - csv->header;
  flow_status status = FLOW_OK;
  for (int i = 0; i < count && status == FLOW_OK; i++) {
    status = flow_tensor_new_uninitialized(dtypes[i], 1, &rows, &out[i]);
    if (status != FLOW_OK) break;
    list[i].dtype = dtypes[i];
    list[i].to = flow_tensor_elements(out[i]);
  }
  if (status == FLOW_OK) run_jobs(csv, convert_rows, list, count);
  for (int i = 0; i < count && status == FLOW_OK; i++) status = check_job(csv, &list[i]);
  flow_free(list);
  for (int i = 0; i < count && status != FLOW_OK; i++) {
    flow_tensor_release(out[i]);
    out[i] = NULL;
  }
  return status;
}

/* One column as a tensor {rows}; of several, flow_csv_tensors reads the text once. */
flow_status flow_csv_tensor(const flow_csv *csv, int column, int dtype, flow_tensor **out)
{
  return flow_csv_tensors(csv, &column, &dtype, 1, out);
}
