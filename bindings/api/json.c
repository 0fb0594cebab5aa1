/* json.c: JSON for Lua: cJSON's values, behind handles that are checked here. */
#include <cjson/cJSON.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "layers/config.h"

/* A flow_json is a cJSON: the root belongs to the caller, what hangs on it belongs to the root. */
static cJSON *value_of(const flow_json *json) { return (cJSON *)json; }

enum { MOST_BYTES = 256 << 20 };

flow_status flow_json_parse(const char *text, double bytes, flow_json **out)
{
  if (!text || !out) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_json_parse: %s is NULL", text ? "out" : "text");
  if (!(bytes >= 0 && bytes <= MOST_BYTES))
    return flow_fail(FLOW_INVALID_ARGUMENT, "JSON of %.0f bytes is too large: at most %d are read", bytes, MOST_BYTES);
  const char *end = NULL;
  cJSON *root = cJSON_ParseWithLengthOpts(text, (size_t)bytes, &end, 0);
  if (!root)
    return flow_fail(FLOW_CORRUPT_DATA, "this is not JSON: it breaks off or goes wrong at byte %.0f of %.0f",
                     end ? (double)(end - text) : 0.0, bytes);
  for (; end < text + (size_t)bytes; end++) {
    if (strchr(" \t\r\n", *end) && *end) continue;
    cJSON_Delete(root);
    return flow_fail(FLOW_CORRUPT_DATA, "this is not JSON: something follows the value, at byte %.0f", (double)(end - text));
  }
  *out = (flow_json *)root;
  return FLOW_OK;
}

void flow_json_release(flow_json *root) { cJSON_Delete(value_of(root)); }

int flow_json_kind(const flow_json *json)
{
  const cJSON *value = value_of(json);
  if (cJSON_IsObject(value)) return FLOW_JSON_OBJECT;
  if (cJSON_IsArray(value)) return FLOW_JSON_LIST;
  if (cJSON_IsString(value)) return FLOW_JSON_TEXT;
  if (cJSON_IsNumber(value)) return FLOW_JSON_NUMBER;
  if (cJSON_IsBool(value)) return FLOW_JSON_BOOLEAN;
  return FLOW_JSON_NULL;
}

const flow_json *flow_json_child(const flow_json *json) { return json ? (const flow_json *)value_of(json)->child : NULL; }
const flow_json *flow_json_next(const flow_json *json) { return json ? (const flow_json *)value_of(json)->next : NULL; }
const char *flow_json_key(const flow_json *json) { return json ? value_of(json)->string : NULL; }
const char *flow_json_text(const flow_json *json) { return json ? value_of(json)->valuestring : NULL; }
double flow_json_number(const flow_json *json)
{
  const cJSON *value = value_of(json);
  return !value ? 0 : cJSON_IsBool(value) ? cJSON_IsTrue(value) : value->valuedouble;
}

/* ---- writing ------------------------------------------------------------------------------------------------------------- */

static cJSON *new_value(int kind, double number, const char *text)
{
  switch (kind) {
    case FLOW_JSON_OBJECT: return cJSON_CreateObject();
    case FLOW_JSON_LIST: return cJSON_CreateArray();
    case FLOW_JSON_TEXT: return cJSON_CreateString(text ? text : "");
    case FLOW_JSON_NUMBER:
      if (fabs(number) < 0x1p53 && floor(number) == number) return cJSON_CreateNumber(number);
      return flow_config_number(number);
    case FLOW_JSON_REAL: return flow_config_number(number);
    case FLOW_JSON_BOOLEAN: return cJSON_CreateBool(number != 0);
    case FLOW_JSON_PRINTED: return cJSON_CreateRaw(text ? text : "null");
  }
  return cJSON_CreateNull();
}

flow_status flow_json_new(int kind, flow_json **out)
{
  if (!out) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_json_new: out is NULL");
  if (kind != FLOW_JSON_OBJECT && kind != FLOW_JSON_LIST)
    return flow_fail(FLOW_INVALID_ARGUMENT, "flow_json_new: kind %d is neither an object nor a list", kind);
  cJSON *root = new_value(kind, 0, NULL);
  if (!root) return flow_fail(FLOW_OUT_OF_MEMORY, "there is no memory for a JSON value");
  *out = (flow_json *)root;
  return FLOW_OK;
}

flow_status flow_json_add(flow_json *parent, const char *key, int kind, double number, const char *text, flow_json **child)
{
  cJSON *into = value_of(parent);
  if (!into || !(cJSON_IsObject(into) || cJSON_IsArray(into)))
    return flow_fail(FLOW_INVALID_ARGUMENT, "flow_json_add: the parent is neither an object nor a list");
  if (cJSON_IsObject(into) && !key) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_json_add: a member of an object needs a key");
  cJSON *value = new_value(kind, number, text);
  if (!value || !(cJSON_IsObject(into) ? cJSON_AddItemToObject(into, key, value) : cJSON_AddItemToArray(into, value))) {
    cJSON_Delete(value);
    return flow_fail(FLOW_OUT_OF_MEMORY, "there is no memory for a JSON value");
  }
  if (child) *child = (flow_json *)value;
  return FLOW_OK;
}

int flow_json_print(const flow_json *json, char *text, int size)
{
  if (text && size > 0) text[0] = '\0';
  char *printed = json ? cJSON_PrintUnformatted(value_of(json)) : NULL;
  size_t length = printed ? strlen(printed) : 0;
  if (printed && text && size > 0) snprintf(text, (size_t)size, "%s", printed);
  cJSON_free(printed);
  return length > INT_MAX ? INT_MAX : (int)length;
}
