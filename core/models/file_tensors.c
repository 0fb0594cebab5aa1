/* file_tensors.c: see file_tensors.h. Lists of lists recurse; how deep JSON nests is bounded where it is read. */
#include "models/file_tensors.h"

#include <string.h>

enum { MOST_NAMED = 256 };

int flow_file_tensor_count(const flow_json *tensors, int alone) { return alone ? 1 : flow_json_count(tensors); }

/* An object's entries are in the order of their keys, as Keras flattens a dict; a list's as they are. Quadratic in the entries, of which
 * there are few: NULL where there are more than MOST_NAMED. */
const flow_json *flow_file_tensor_at(const flow_json *tensors, int alone, int index)
{
  const flow_json *item, *other;
  if (alone) return tensors;
  if (!flow_json_is(tensors, FLOW_JSON_OBJECT)) return flow_json_item(tensors, index);
  if (flow_json_count(tensors) > MOST_NAMED) return NULL;
  FLOW_JSON_EACH(item, tensors) {
    int before = 0;
    FLOW_JSON_EACH(other, tensors) before += strcmp(other->key, item->key) < 0;
    if (before == index) return item;
  }
  return NULL;
}

/* A tensor at the end of a model is [name, call, output]; a list that begins with anything else nests. */
static int is_end(const flow_json *ends)
{
  return flow_json_is(ends, FLOW_JSON_LIST) && flow_json_is(flow_json_item(ends, 0), FLOW_JSON_TEXT);
}

/* Ends may be a tensor, a list of them, or lists of lists: their tensors in order. */
int flow_file_end_count(const flow_json *ends)
{
  const flow_json *item;
  int count = 0;
  if (is_end(ends) || !flow_json_is(ends, FLOW_JSON_LIST)) return flow_file_tensor_count(ends, is_end(ends));
  FLOW_JSON_EACH(item, ends) count += flow_file_end_count(item);
  return count;
}

/* Number `index` of all tensors that nested lists and objects hold, from left to right; NULL: there are fewer. */
const flow_json *flow_file_end_at(const flow_json *ends, int index)
{
  const flow_json *item;
  if (is_end(ends) || !flow_json_is(ends, FLOW_JSON_LIST)) return flow_file_tensor_at(ends, is_end(ends), index);
  FLOW_JSON_EACH(item, ends) {
    int count = flow_file_end_count(item);
    if (index < count) return flow_file_end_at(item, index);
    index -= count;
  }
  return NULL;
}
