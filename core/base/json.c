/* json.c: trees of JSON values: making, finding, copying and releasing. See json.h; json_text.c reads and writes. */
#include "base/json.h"

#include <string.h>
#include "base/memory.h"

/* Text and key come after the value, in its block. NULL: no memory, of which flow_last_error tells. */
static flow_json *new_value(int kind, double number, const char *text, const char *key)
{
  void *block;
  size_t text_bytes = text ? strlen(text) + 1 : 0, key_bytes = key ? strlen(key) + 1 : 0;
  if (flow_alloc_zero(sizeof(flow_json) + text_bytes + key_bytes, &block) != FLOW_OK) return NULL;
  flow_json *json = block;
  char *texts = (char *)(json + 1);
  json->kind = kind;
  json->number = number;
  if (text) json->text = memcpy(texts, text, text_bytes);
  if (key) json->key = memcpy(texts + text_bytes, key, key_bytes);
  return json;
}

flow_json *flow_json_make(int kind, double number, const char *text)
{
  if (kind == FLOW_JSON_TEXT && !text) text = "";
  if (kind == FLOW_JSON_PRINTED && !text) text = "null";
  if (kind == FLOW_JSON_BOOLEAN) number = number != 0;
  return new_value(kind, number, kind == FLOW_JSON_TEXT || kind == FLOW_JSON_PRINTED ? text : NULL, NULL);
}

flow_json *flow_json_make_numbers(const double *numbers, int count)
{
  flow_json *list = flow_json_make(FLOW_JSON_LIST, 0, NULL);
  for (int i = 0; i < count && list; i++) flow_json_put_number(list, NULL, numbers[i]);
  return list;
}

/* ---- trees ------------------------------------------------------------------------------------------------------------------- */

/* A key that was given after the value was made is a separate block (flow_json_put). */
static void free_value(flow_json *json)
{
  if (json->owns_key) flow_free((char *)(uintptr_t)json->key);
  flow_free(json);
}

/* From the leaves up, without recursion: a value's first entry is taken off its list before it is gone into, so that a value whose
 * entries are gone is freed when it is come back to. root NULL is fine. */
void flow_json_release(flow_json *root)
{
  for (flow_json *at = root; at;) {
    if (at->child) {
      flow_json *child = at->child;
      at->child = child->next;
      child->parent = at;
      at = child;
      continue;
    }
    flow_json *parent = at == root ? NULL : at->parent;
    free_value(at);
    at = parent;
  }
}

/* The value becomes the last entry; it has no parent before. */
static void append(flow_json *into, flow_json *value)
{
  value->parent = into;
  value->next = NULL;
  if (into->last) into->last->next = value;
  else into->child = value;
  into->last = value;
}

/* into NULL, because making it has failed, only releases the value: a tree can be built without looking at each step, and
 * flow_json_write tells in the end. */
flow_json *flow_json_put(flow_json *into, const char *key, flow_json *value)
{
  if (into && value && key) {
    char *own = flow_duplicate_text(key);
    if (!own) {
      flow_json_release(value);
      value = NULL;
    } else {
      value->key = own;
      value->owns_key = 1;
    }
  }
  if (into && value) append(into, value);
  else if (into) into->failed = 1;
  else flow_json_release(value);
  return into ? value : NULL;
}

/* The first member of that name, with all that is in it. None: nothing happens. */
void flow_json_remove(flow_json *object, const char *key)
{
  flow_json *before = NULL;
  for (flow_json *at = object ? object->child : NULL; at; before = at, at = at->next) {
    if (!at->key || strcmp(at->key, key) != 0) continue;
    if (before) before->next = at->next;
    else object->child = at->next;
    if (object->last == at) object->last = before;
    flow_json_release(at);
    return;
  }
}

/* A value without its entries, or NULL: no memory. */
static flow_json *copy_value(const flow_json *from)
{
  flow_json *to = new_value(from->kind, from->number, from->text, from->key);
  if (to) to->failed = from->failed;
  return to;
}

/* Walks both trees in step; `to` is the copy of `from`. NULL: no memory; then nothing is left of the copy. */
flow_json *flow_json_copy(const flow_json *json)
{
  flow_json *root = json ? copy_value(json) : NULL, *to = root;
  const flow_json *from = json;
  while (to) {
    if (from->child) {
      from = from->child;
    } else {
      while (from != json && !from->next) from = from->parent, to = to->parent;
      if (from == json) return root;
      from = from->next;
      to = to->parent;
    }
    flow_json *made = copy_value(from);
    if (made) append(to, made);
    else flow_json_release(root), root = NULL;
    to = made;
  }
  return root;
}

/* ---- finding ------------------------------------------------------------------------------------------------------------------- */

/* From the first to the last: of a name that occurs twice the first member is found. Objects here have tens of members. */
flow_json *flow_json_member(const flow_json *object, const char *key)
{
  flow_json *at = flow_json_is(object, FLOW_JSON_OBJECT) ? object->child : NULL;
  while (at && strcmp(at->key, key) != 0) at = at->next;
  return at;
}

const char *flow_json_member_text(const flow_json *object, const char *key)
{
  return flow_json_text(flow_json_member(object, key));
}

flow_json *flow_json_item(const flow_json *list, int index)
{
  flow_json *at = list && index >= 0 ? list->child : NULL;
  while (at && index-- > 0) at = at->next;
  return at;
}

int flow_json_count(const flow_json *list)
{
  int count = 0;
  const flow_json *at;
  FLOW_JSON_EACH(at, list) count++;
  return count;
}
