/* json_access.c: JSON for Lua: core/base/json.h with checks of its arguments. The root belongs to the caller, what hangs on it belongs to
 * the root. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"

enum { MOST_BYTES = 256 << 20 };

/* The whole text has to be one value; white space may follow. */
flow_status flow_json_parse(const char *text, double bytes, flow_json **out)
{
  if (!text || !out) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_json_parse: %s is NULL", text ? "out" : "text");
  if (!(bytes >= 0 && bytes <= MOST_BYTES))
    return flow_fail(FLOW_INVALID_ARGUMENT, "JSON of %.0f bytes is too large: at most %d are read", bytes, MOST_BYTES);
  size_t end, count = (size_t)(int64_t)bytes;      /* signed first: to unsigned numbers compilers convert in ways that may trap */
  FLOW_TRY(flow_json_read(text, count, &end, out));
  for (; end < count; end++) {
    if (text[end] && strchr(" \t\r\n", text[end])) continue;
    flow_json_release(*out);
    *out = NULL;
    return flow_fail(FLOW_CORRUPT_DATA, "this is not JSON: something follows the value, at byte %.0f", (double)end + 1);
  }
  return FLOW_OK;
}

int flow_json_kind(const flow_json *json)
{
  if (!json || json->kind == FLOW_JSON_PRINTED) return FLOW_JSON_NULL;
  return json->kind == FLOW_JSON_REAL ? FLOW_JSON_NUMBER : json->kind;
}

const flow_json *flow_json_child(const flow_json *json) { return json ? json->child : NULL; }
const flow_json *flow_json_next(const flow_json *json)  { return json ? json->next : NULL; }
const char *flow_json_key(const flow_json *json)        { return json ? json->key : NULL; }
const char *flow_json_text(const flow_json *json)       { return flow_json_is(json, FLOW_JSON_TEXT) ? json->text : NULL; }
double      flow_json_number(const flow_json *json)     { return json ? json->number : 0; }

/* ---- writing ------------------------------------------------------------------------------------------------------------- */

flow_status flow_json_new(int kind, flow_json **out)
{
  if (!out) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_json_new: out is NULL");
  if (kind != FLOW_JSON_OBJECT && kind != FLOW_JSON_LIST)
    return flow_fail(FLOW_INVALID_ARGUMENT, "flow_json_new: kind %d is neither an object nor a list", kind);
  *out = flow_json_make(kind, 0, NULL);
  return *out ? FLOW_OK : FLOW_OUT_OF_MEMORY;
}

flow_status flow_json_add(flow_json *parent, const char *key, int kind, double number, const char *text, flow_json **child)
{
  int into_object = flow_json_is(parent, FLOW_JSON_OBJECT);
  if (!into_object && !flow_json_is(parent, FLOW_JSON_LIST))
    return flow_fail(FLOW_INVALID_ARGUMENT, "flow_json_add: the parent is neither an object nor a list");
  if (into_object && !key) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_json_add: a member of an object needs a key");
  if (kind < FLOW_JSON_NULL || kind > FLOW_JSON_PRINTED)
    return flow_fail(FLOW_INVALID_ARGUMENT, "flow_json_add: there is no kind %d; the kinds are %d to %d", kind, FLOW_JSON_NULL,
                     FLOW_JSON_PRINTED);
  flow_json *value = flow_json_put(parent, into_object ? key : NULL, flow_json_make(kind, number, text));
  if (child) *child = value;
  return value ? FLOW_OK : FLOW_OUT_OF_MEMORY;
}

/* Returns the length of the whole text, as snprintf does; 0: there is no value; -1: no memory, or the tree is marked. */
int flow_json_print(const flow_json *json, char *text, int size)
{
  if (text && size > 0) text[0] = '\0';
  if (!json) return 0;
  char *printed = flow_json_write(json);
  if (!printed) return -1;
  size_t length = strlen(printed);
  if (text && size > 0) snprintf(text, (size_t)size, "%s", printed);
  flow_free(printed);
  return length > INT_MAX ? INT_MAX : (int)length;
}
