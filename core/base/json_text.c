/* json_text.c: from text to tree and back. See json.h. Reading is a loop over values: each is placed into the innermost container that
 * is open, then what ends there is closed (advance). Writing walks the tree by its parents. Both need no stack however deep the nesting
 * is. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"
#include "base/float_state.h"
#include "base/json.h"
#include "base/memory.h"

/* ---- numbers ----------------------------------------------------------------------------------------------------------------- */

static int is_digit(char c) { return c >= '0' && c <= '9'; }

/* The shortest text that stands for the number, of `digits` digits or more. 17 digits always give the number back (IEEE 754), so that the
 * loop ends by then. DBL_DIG is enough to find shorter texts, too, since %g drops zeros, but it writes 2e+01 as 20: a REAL, which has to
 * look like one, begins with 1. */
static void print_number(double value, int digits, char text[40])
{
  for (; digits <= DBL_DECIMAL_DIG; digits++) {
    flow_decimal_write(text, 40, "%.*g", digits, value);
    if (flow_decimal_read(text, NULL, NULL) == value) return;
  }
}

/* A REAL has a point or an exponent, so that other languages read a number that is not an integer. */
static void number_text(const flow_json *json, char text[40])
{
  double value = json->number;
  if (isnan(value)) strcpy(text, "NaN");
  else if (isinf(value)) strcpy(text, value > 0 ? "Infinity" : "-Infinity");
  else if (json->kind == FLOW_JSON_NUMBER && fabs(value) < 0x1p53 && floor(value) == value) snprintf(text, 40, "%.0f", value);
  else {
    print_number(value, json->kind == FLOW_JSON_REAL ? 1 : DBL_DIG, text);
    if (json->kind == FLOW_JSON_REAL && !strpbrk(text, ".e")) strcat(text, ".0");
  }
}

/* ---- reading ----------------------------------------------------------------------------------------------------------------- */

/* A text while it is read. `into` is the innermost container that is open; a value without a container is the root. */
typedef struct reader {
  const char *begin, *at, *end;
  char       *key;                       /* of the next value in an object; in its own memory */
  flow_json  *root, *into;
  int         depth;
  flow_status status;                    /* of memory, and of depth */
} reader;

/* Passes the value on, and remembers why there is none: a wrong text and missing memory are told apart by r->status. */
static flow_json *keep(reader *r, flow_json *made)
{
  if (!made) r->status = FLOW_OUT_OF_MEMORY;
  return made;
}

/* The four kinds of white space of RFC 8259, section 2. */
static void skip_space(reader *r)
{
  while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r')) r->at++;
}

/* Whether the next byte is this one; 0 at the end of the text. */
static int next_is(const reader *r, char c) { return r->at < r->end && *r->at == c; }

/* Passes the word if the text goes on with it; what follows the word is not looked at here. */
static int skip_word(reader *r, const char *word)
{
  size_t length = strlen(word);
  if ((size_t)(r->end - r->at) < length || memcmp(r->at, word, length) != 0) return 0;
  r->at += length;
  return 1;
}

/* Four hexadecimal digits as a number; 0: there are fewer. */
static int hex4(const char *at, const char *end, unsigned *out)
{
  *out = 0;
  if (end - at < 4) return 0;
  for (int i = 0; i < 4; i++) {
    char c = at[i];
    int digit = is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
    if (digit < 0) return 0;
    *out = *out * 16 + (unsigned)digit;
  }
  return 1;
}

/* After \u: one character, of two escapes where they are a surrogate pair. No NUL, which would end the text. */
static int read_unicode(reader *r, char **to)
{
  unsigned code, low;
  if (!hex4(r->at, r->end, &code)) return 0;
  const char *after = r->at + 4;
  if (code >= 0xd800 && code < 0xdc00) {
    if (r->end - after < 6 || after[0] != '\\' || after[1] != 'u' || !hex4(after + 2, r->end, &low) || low < 0xdc00 || low > 0xdfff)
      return 0;
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    after += 6;
  } else if (code == 0 || (code >= 0xdc00 && code <= 0xdfff)) {
    return 0;
  }
  r->at = after;
  char *out = *to;
  if (code < 0x80) *out++ = (char)code;
  else if (code < 0x800) *out++ = (char)(0xc0 | code >> 6), *out++ = (char)(0x80 | (code & 0x3f));
  else {
    if (code < 0x10000) *out++ = (char)(0xe0 | code >> 12);
    else *out++ = (char)(0xf0 | code >> 18), *out++ = (char)(0x80 | (code >> 12 & 0x3f));
    *out++ = (char)(0x80 | (code >> 6 & 0x3f));
    *out++ = (char)(0x80 | (code & 0x3f));
  }
  *to = out;
  return 1;
}

/* After a backslash: what the escape stands for, at *to, which moves. 0: there is no such escape. */
static int read_escape(reader *r, char **to)
{
  static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
  if (r->at >= r->end) return 0;
  char letter = *r->at;
  if (letter == 'u') {
    r->at++;
    return read_unicode(r, to);
  }
  const char *found = letter ? strchr(letters, letter) : NULL;
  if (!found) return 0;
  *(*to)++ = meant[found - letters];
  r->at++;
  return 1;
}

/* A text without its quotes, in its own memory. NULL with r->status FLOW_OK: the text is malformed near r->at. Control
 * characters are taken as they are, beyond the RFC; a zero is not. */
static char *read_text(reader *r)
{
  const char *close = r->at + 1;
  void *block;
  while (close < r->end && *close != '"') close += *close == '\\' ? 2 : 1;
  if (close >= r->end) return r->at = r->end, NULL;
  r->status = flow_alloc((size_t)(close - r->at), &block);       /* no escape is shorter than what it stands for */
  if (r->status != FLOW_OK) return NULL;
  char *text = block, *to = text;
  for (r->at++; r->at < close;) {
    if (*r->at == '\0' || (*r->at == '\\' && (r->at++, !read_escape(r, &to)))) {
      flow_free(text);
      return NULL;
    }
    if (r->at < close && *r->at != '\\' && *r->at != '\0') *to++ = *r->at++;
  }
  *to = '\0';
  r->at = close + 1;
  return text;
}

/* By the grammar of RFC 8259, section 6, and Infinity; the number's text is kept after the node in its block, so that it is written as
 * it was read. */
static flow_json *read_number(reader *r)
{
  const char *begin = r->at;
  if (next_is(r, '-')) r->at++;
  if (skip_word(r, "Infinity")) return keep(r, flow_json_make(FLOW_JSON_REAL, *begin == '-' ? -INFINITY : INFINITY, NULL));
  if (next_is(r, '0')) r->at++;
  else if (r->at < r->end && is_digit(*r->at)) while (r->at < r->end && is_digit(*r->at)) r->at++;
  else return NULL;
  if (next_is(r, '.')) {
    if (++r->at >= r->end || !is_digit(*r->at)) return NULL;
    while (r->at < r->end && is_digit(*r->at)) r->at++;
  }
  if (next_is(r, 'e') || next_is(r, 'E')) {
    r->at++;
    if (next_is(r, '+') || next_is(r, '-')) r->at++;
    if (r->at >= r->end || !is_digit(*r->at)) return NULL;
    while (r->at < r->end && is_digit(*r->at)) r->at++;
  }
  void *block;
  size_t length = (size_t)(r->at - begin);
  r->status = flow_alloc_zero(sizeof(flow_json) + length + 1, &block);
  if (r->status != FLOW_OK) return NULL;
  flow_json *json = block;
  json->kind = FLOW_JSON_NUMBER;
  json->number = flow_decimal_read(begin, r->at, NULL);
  json->text = memcpy(json + 1, begin, length);
  return json;
}

/* A value without what is in it. NULL: r->status says whether memory was missing or the text is wrong at r->at. */
static flow_json *read_value(reader *r)
{
  skip_space(r);
  if (r->at >= r->end) return NULL;
  if (skip_word(r, "null")) return keep(r, flow_json_make(FLOW_JSON_NULL, 0, NULL));
  if (skip_word(r, "true")) return keep(r, flow_json_make(FLOW_JSON_BOOLEAN, 1, NULL));
  if (skip_word(r, "false")) return keep(r, flow_json_make(FLOW_JSON_BOOLEAN, 0, NULL));
  if (skip_word(r, "NaN")) return keep(r, flow_json_make(FLOW_JSON_REAL, NAN, NULL));
  if (skip_word(r, "{")) return keep(r, flow_json_make(FLOW_JSON_OBJECT, 0, NULL));
  if (skip_word(r, "[")) return keep(r, flow_json_make(FLOW_JSON_LIST, 0, NULL));
  if (*r->at != '"') return read_number(r);
  char *text = read_text(r);
  flow_json *json = text ? keep(r, flow_json_make(FLOW_JSON_TEXT, 0, text)) : NULL;
  flow_free(text);
  return json;
}

/* Up to the value of the next entry: its key and the colon. The key is kept in r->key until place() takes it over. */
static int read_key(reader *r)
{
  skip_space(r);
  if (!next_is(r, '"') || !(r->key = read_text(r))) return 0;
  skip_space(r);
  return skip_word(r, ":");
}

/* Adds a value to the innermost open container. 0: there was no value, no memory, or the nesting is too deep. The root belongs to
 * r->root at once, so that everything is released with it. */
static int place(reader *r, flow_json *value)
{
  if (!value) return 0;
  if (!r->root) r->root = value;
  else if (!keep(r, flow_json_put(r->into, r->key, value))) return 0;
  flow_free(r->key);
  r->key = NULL;
  if (value->kind != FLOW_JSON_OBJECT && value->kind != FLOW_JSON_LIST) return 1;
  if (++r->depth > FLOW_JSON_DEPTH) {
    r->status = flow_fail(FLOW_UNSUPPORTED, "JSON whose lists and objects are nested more than %d deep is not read: it is at byte %.0f",
                          FLOW_JSON_DEPTH, (double)(r->at - r->begin));
    return 0;
  }
  value->parent = r->into;
  r->into = value;
  return 1;
}

/* Closes what ends here and goes to the next value. 1: there is one; 0: the root is complete; -1: wrong. opened: the container has just
 * begun, so that no comma comes before its first entry. */
static int advance(reader *r, const flow_json *placed)
{
  int opened = placed == r->into;
  while (r->into) {
    char closer = r->into->kind == FLOW_JSON_OBJECT ? '}' : ']';
    skip_space(r);
    if (!next_is(r, closer)) {
      if (!opened && !skip_word(r, ",")) return -1;
      return r->into->kind == FLOW_JSON_OBJECT && !read_key(r) ? -1 : 1;
    }
    r->at++;
    r->depth--;
    r->into = r->into->parent;
    opened = 0;
  }
  return 0;
}

/* The text need not end with a zero. *out is NULL after a failure. *end: how many bytes were read. What follows the root is not looked at,
 * so that values can stand one after the other. Besides RFC 8259 NaN and Infinity are read, which Python writes. */
flow_status flow_json_read(const char *text, size_t bytes, size_t *end, flow_json **out)
{
  FLOW_DEFAULT_FLOATS;
  reader r = { .begin = text, .at = text, .end = text + bytes };
  int more = 1;
  *out = NULL;
  skip_word(&r, "\xef\xbb\xbf");          /* a byte order mark */
  while (more > 0) {
    flow_json *value = read_value(&r);
    more = place(&r, value) ? advance(&r, value) : -1;
  }
  flow_free(r.key);
  *end = (size_t)(r.at - text);
  if (more == 0) {
    *out = r.root;
    return FLOW_OK;
  }
  flow_json_release(r.root);
  if (r.status != FLOW_OK) return r.status;
  return flow_fail(FLOW_CORRUPT_DATA, "this is not JSON: it ends early or is wrong at byte %.0f of %.0f",
                   (double)(*end < bytes ? *end + 1 : bytes), (double)bytes);
}

/* For texts of callers, such as arguments of functions: `what` begins the message. *out is NULL after a failure, else for
 * flow_json_release. */
flow_status flow_json_read_object(const char *what, const char *text, flow_json **out)
{
  size_t end;
  flow_status status = flow_json_read(text ? text : "", text ? strlen(text) : 0, &end, out);
  if (status == FLOW_OUT_OF_MEMORY || flow_json_is(*out, FLOW_JSON_OBJECT)) return status;
  flow_json_release(*out);
  *out = NULL;
  return flow_fail(FLOW_INVALID_ARGUMENT, "%s is a JSON object, found \"%.40s\"", what, text ? text : "");
}

/* ---- writing ----------------------------------------------------------------------------------------------------------------- */

/* A text while it is written; for flow_free. failed: there was no memory, or a part of the tree is missing. */
typedef struct writer { char *text; int length, capacity, failed; } writer;

/* One more byte than the length is always there, for the zero at the end. */
static void add_bytes(writer *w, const char *bytes, size_t count)
{
  if (!w->failed && count <= (size_t)(INT32_MAX - w->length - 1))
    w->failed = flow_grow(&w->text, 1, w->length + (int)count + 1, &w->capacity) != FLOW_OK;
  else w->failed = 1;
  if (w->failed) return;
  memcpy(w->text + w->length, bytes, count);
  w->length += (int)count;
}

static void add(writer *w, const char *text) { add_bytes(w, text, strlen(text)); }

/* A text in quotes. Bytes from 0x80 on are written as they are: UTF-8 needs no escapes. */
static void add_quoted(writer *w, const char *text)
{
  static const char escaped[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
  add(w, "\"");
  for (const char *at = text; *at; at++) {
    const char *plain = at;
    while (*at && *at != '"' && *at != '\\' && (unsigned char)*at >= 0x20) at++;
    add_bytes(w, plain, (size_t)(at - plain));
    if (!*at) break;
    const char *found = strchr(escaped, *at);
    char escape[8];
    if (found) snprintf(escape, sizeof escape, "\\%c", letters[found - escaped]);
    else snprintf(escape, sizeof escape, "\\u%04x", (unsigned)(unsigned char)*at);
    add(w, escape);
  }
  add(w, "\"");
}

/* A value up to its first entry, without its key. What has no text of its own, as all that a program has made, gets the shortest one
 * (number_text). */
static void add_value(writer *w, const flow_json *json)
{
  char number[40];
  switch (json->kind) {
    case FLOW_JSON_OBJECT: add(w, json->child ? "{" : "{}"); break;
    case FLOW_JSON_LIST: add(w, json->child ? "[" : "[]"); break;
    case FLOW_JSON_TEXT: add_quoted(w, json->text); break;
    case FLOW_JSON_BOOLEAN: add(w, json->number != 0 ? "true" : "false"); break;
    case FLOW_JSON_NULL: add(w, "null"); break;
    default:
      if (!json->text) number_text(json, number);
      add(w, json->text ? json->text : number);
  }
  w->failed |= json->failed;
}

/* The root's own key is not written. In one line without spaces; for flow_free. NULL: memory is missing, or a part of the tree could not be
 * made. */
char *flow_json_write(const flow_json *json)
{
  FLOW_DEFAULT_FLOATS;
  writer w = { .text = NULL };
  for (const flow_json *at = json; at;) {
    if (at != json && at->key) add_quoted(&w, at->key), add(&w, ":");
    add_value(&w, at);
    if (at->child) {
      at = at->child;
      continue;
    }
    while (at != json && !at->next) {
      at = at->parent;
      add(&w, at->kind == FLOW_JSON_OBJECT ? "}" : "]");
    }
    if (at == json) break;
    add(&w, ",");
    at = at->next;
  }
  if (!json || w.failed) {
    flow_free(w.text);
    return NULL;
  }
  w.text[w.length] = '\0';
  return w.text;
}
