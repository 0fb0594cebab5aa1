/* json.h: JSON texts (RFC 8259) as trees, and back. It is part of the library so that a host's symbols and settings of another JSON
 * library have no effect. Nothing here recurses: nesting takes memory instead of stack, and its depth is bounded.
 *
 * Beyond the standard it reads and writes NaN, Infinity and -Infinity, as Python does. Numbers that were read are written with the same
 * text. The host's locale is ignored. If memory runs out while a tree is built, the tree is marked: it is never written with a part
 * missing. A tree is for one thread at a time. */
#ifndef FLOW_BASE_JSON_H
#define FLOW_BASE_JSON_H

#include <stddef.h>
#include "base/status.h"

enum { FLOW_JSON_DEPTH = 1000 };

struct flow_json {
  int         kind;                      /* FLOW_JSON_NULL ... of flow.h */
  char        owns_key, failed;          /* failed: a part of it could not be added */
  double      number;                    /* NUMBER, REAL; BOOLEAN: 0 or 1 */
  const char *text;                      /* TEXT, PRINTED; of a NUMBER that was read: its text; else NULL */
  const char *key;                       /* in an object; else NULL */
  flow_json  *parent, *next, *child, *last;      /* child, last: first and last entry of a list or an object */
};

/* ---- reading ----------------------------------------------------------------------------------------------------------------- */

/* The value that the text begins with. *end: how many bytes it takes, or, with FLOW_CORRUPT_DATA, the one that is wrong. New reference. */
flow_status flow_json_read(const char *text, size_t bytes, size_t *end, flow_json **out);
/* The same for a text that is one object; FLOW_INVALID_ARGUMENT if it is not: "%s is a JSON object, found ...". */
flow_status flow_json_read_object(const char *what, const char *text, flow_json **out);

/* Whether a value is there and of this kind; whole numbers and others are two kinds. */
static inline int flow_json_is(const flow_json *json, int kind) { return json && json->kind == kind; }
static inline int flow_json_is_number(const flow_json *json)
{
  return flow_json_is(json, FLOW_JSON_NUMBER) || flow_json_is(json, FLOW_JSON_REAL);
}
static inline int flow_json_is_true(const flow_json *json) { return flow_json_is(json, FLOW_JSON_BOOLEAN) && json->number != 0; }
static inline int flow_json_is_false(const flow_json *json) { return flow_json_is(json, FLOW_JSON_BOOLEAN) && json->number == 0; }

/* NULL (a list, no such entry, json is NULL itself) is an answer to all of these. */
flow_json *flow_json_member(const flow_json *object, const char *key);
/* The text of such a member, borrowed; NULL: it is not there, or not a text. */
const char *flow_json_member_text(const flow_json *object, const char *key);
flow_json *flow_json_item(const flow_json *list, int index);      /* from 0 */
int        flow_json_count(const flow_json *list);

#define FLOW_JSON_EACH(item, list) for ((item) = (list) ? (list)->child : NULL; (item); (item) = (item)->next)

/* ---- making ------------------------------------------------------------------------------------------------------------------ */

/* kind as flow_json_add of flow.h takes it. NULL: no memory. */
flow_json *flow_json_make(int kind, double number, const char *text);
flow_json *flow_json_make_numbers(const double *numbers, int count);
flow_json *flow_json_copy(const flow_json *json);

/* Adds a value without a parent to an object, or to the end of a list (key NULL). Takes ownership and returns the value. Returns NULL if
 * the value is NULL or there is no memory; then it is released and the tree marked. */
flow_json *flow_json_put(flow_json *into, const char *key, flow_json *value);
void       flow_json_remove(flow_json *object, const char *key);

static inline flow_json *flow_json_put_text(flow_json *into, const char *key, const char *text)
{
  return flow_json_put(into, key, flow_json_make(FLOW_JSON_TEXT, 0, text));
}
static inline flow_json *flow_json_put_number(flow_json *into, const char *key, double number)
{
  return flow_json_put(into, key, flow_json_make(FLOW_JSON_NUMBER, number, NULL));
}
static inline flow_json *flow_json_put_kind(flow_json *into, const char *key, int kind)      /* null, false, {} or [] */
{
  return flow_json_put(into, key, flow_json_make(kind, 0, NULL));
}

/* Without spaces; for flow_free. NULL: no memory, or the tree is marked. */
char *flow_json_write(const flow_json *json);

#endif
