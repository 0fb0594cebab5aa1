/* model_parts.c: the parts of a model as config.json nests them: layers, inputs, operations, wrappers, models in models. Each is read once,
 * here; what calls them, and how often, is read afterwards (model_read.c). The file is hostile: every member is checked for its kind, and
 * nesting and numbers are bounded.
 *
 * Reading recurses: flow_model_read_part reads an entry, and read_parts or read_wrapper those inside of it, at most FLOW_MODEL_MOST_DEPTH
 * deep. A failure leaves the parts that were read in the tree, which flow_model_release releases. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layers/config.h"
#include "models/wrappers.h"

enum { MOST_PARTS = 100000 };

static const flow_json *member(const flow_json *object, const char *name)
{
  return flow_json_member(object, name);
}

typedef struct named_part {
  const char *name;
  int index;
} named_part;

/* Parts of one name in the order of the list. */
static int compare_names(const void *a, const void *b)
{
  const named_part *left = a, *right = b;
  int order = strcmp(left->name, right->name);
  return order ? order : left->index - right->index;
}

/* by_name: the numbers of the parts, sorted by name, so that a name is found in few steps however many parts there are. */
static flow_status order_names(flow_model_part *part)
{
  void *block, *names;
  FLOW_TRY(flow_alloc(sizeof(int) * (size_t)part->part_count, &block));
  part->by_name = block;
  FLOW_TRY(flow_alloc(sizeof(named_part) * (size_t)part->part_count, &names));
  named_part *list = names;
  for (int i = 0; i < part->part_count; i++) list[i] = (named_part){ part->parts[i].name, i };
  qsort(list, (size_t)part->part_count, sizeof *list, compare_names);
  for (int i = 0; i < part->part_count; i++) part->by_name[i] = list[i].index;
  flow_free(names);
  return FLOW_OK;
}

int flow_part_find(const flow_model_part *part, const char *name)
{
  int low = 0, high = part->part_count;
  while (low < high) {
    int middle = low + (high - low) / 2;
    if (strcmp(part->parts[part->by_name[middle]].name, name) < 0) low = middle + 1;
    else high = middle;
  }
  return low < part->part_count && strcmp(part->parts[part->by_name[low]].name, name) == 0 ? part->by_name[low] : -1;
}

/* Parts of a model, in the order of config.json. depth counts nested models and wrappers; part_count grows as entries are read, so that a
 * failure half-way leaves what release_part can release. */
static flow_status read_parts(const flow_json *config, int depth, flow_model_part *part)
{
  const flow_json *list = member(config, "layers"), *entry;
  void *block;
  int count = flow_json_count(list);
  if (!flow_json_is(list, FLOW_JSON_LIST) || count == 0 || count > MOST_PARTS)
    return flow_fail(FLOW_CORRUPT_DATA, "the model \"%s\" has no list of layers", part->name);
  if (depth > FLOW_MODEL_MOST_DEPTH) return flow_fail(FLOW_CORRUPT_DATA, "models are nested more than %d deep", FLOW_MODEL_MOST_DEPTH);
  FLOW_TRY(flow_alloc_zero(sizeof(flow_model_part) * (size_t)count, &block));
  part->parts = block;
  FLOW_JSON_EACH(entry, list) FLOW_TRY(flow_model_read_part(entry, depth + 1, &part->parts[part->part_count++]));
  return order_names(part);
}

/* The layer or model inside of a TimeDistributed as a program with one input, value 0, so that a step or a batch of steps can be run like a
 * small model. */
static flow_status read_program(int depth, flow_model_part *part)
{
  int capacity = 0, count = part->output_count = flow_part_outputs(&part->parts[0]);
  if (count < 1 || count > FLOW_MODEL_MOST_TENSORS) return flow_wrapper_fail(part, "the layer that it wraps has %d outputs", count);
  FLOW_TRY(flow_grow(&part->outputs, sizeof(int), count, &capacity));
  part->program.value_count = 1;
  return flow_part_expand(&part->program, &part->parts[0], (const int[]){ 0 }, 1, depth + 1, part->outputs);
}

/* The parts of a wrapper: in fields of its config, or in a list. "layer=forward_layer" in the record says: the config
 * has the part as "layer", the file of weights its variables as "forward_layer". */
static flow_status read_wrapper(const flow_json *config, int depth, flow_model_part *part)
{
  const flow_wrapper *wrapper = part->wrapper;
  const flow_json *list = wrapper->list ? member(config, wrapper->list) : NULL, *entry;
  int count = 0;
  void *block;
  while (wrapper->fields[count]) count++;
  if (wrapper->list) count = flow_json_is(list, FLOW_JSON_LIST) ? flow_json_count(list) : 0;
  if (wrapper->list && (count < 1 || count > MOST_PARTS))
    return flow_fail(FLOW_CORRUPT_DATA, "%s \"%s\" has no list of %s", part->class_name, part->name, wrapper->list);
  if (depth > FLOW_MODEL_MOST_DEPTH) return flow_fail(FLOW_CORRUPT_DATA, "layers are nested more than %d deep", FLOW_MODEL_MOST_DEPTH);
  if (count == 0) return FLOW_OK;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_model_part) * (size_t)count, &block));
  part->parts = block;
  FLOW_JSON_EACH(entry, list) FLOW_TRY(flow_model_read_part(entry, depth + 1, &part->parts[part->part_count++]));
  for (int i = 0; !list && i < count; i++) {
    char name[64];
    const char *split = strchr(wrapper->fields[i], '=');
    snprintf(name, sizeof name, "%.*s", (int)(split - wrapper->fields[i]), wrapper->fields[i]);
    if (!flow_json_is(member(config, name), FLOW_JSON_OBJECT))
      return flow_fail(FLOW_CORRUPT_DATA, "%s \"%s\" has no %s", part->class_name, part->name, name);
    FLOW_TRY(flow_model_read_part(member(config, name), depth + 1, &part->parts[part->part_count++]));
    part->parts[i].field = split + 1;
  }
  if (wrapper->check) FLOW_TRY(wrapper->check(part));
  return wrapper->runs_program ? read_program(depth, part) : FLOW_OK;
}

/* One entry of the list of layers, an operation included. Only the kind of the entry and of its members is checked here; what a layer does
 * with its config is checked by the layer's own reader. part holds borrowed texts of the description, which lives as long as the model. */
flow_status flow_model_read_part(const flow_json *entry, int depth, flow_model_part *part)
{
  const flow_json *config = member(entry, "config");
  part->entry = entry;
  part->class_name = flow_json_member_text(entry, "class_name");
  part->name = flow_json_member_text(entry, "name") ? flow_json_member_text(entry, "name") : flow_json_member_text(config, "name");
  if (!part->class_name || !flow_json_is(config, FLOW_JSON_OBJECT) || !part->name)
    return flow_fail(FLOW_CORRUPT_DATA, "an entry has no class_name, no config or no name");
  if (strcmp(part->class_name, "InputLayer") == 0) {
    part->kind = FLOW_PART_INPUT;
    return FLOW_OK;
  }
  int sequential = strcmp(part->class_name, "Sequential") == 0;
  if (sequential || strcmp(part->class_name, "Functional") == 0 || strcmp(part->class_name, "Model") == 0) {
    part->kind = sequential ? FLOW_PART_SEQUENTIAL : FLOW_PART_FUNCTIONAL;
    return read_parts(config, depth, part);
  }
  if (flow_operation_is(flow_json_member_text(entry, "module"))) {
    part->kind = FLOW_PART_OPERATION;
    part->operation = flow_operation_find(part->class_name);
    if (part->operation) return FLOW_OK;
    return flow_fail(FLOW_UNSUPPORTED, "\"%s\" is the operation %s of %s, which is not supported in files", part->name, part->class_name,
                     flow_json_member_text(entry, "module"));
  }
  part->wrapper = flow_wrapper_find(part->class_name);
  if (part->wrapper) {
    part->kind = FLOW_PART_WRAPPER;
    return read_wrapper(config, depth, part);
  }
  if (flow_layer_class_lookup(part->class_name) < 0)
    return flow_fail(FLOW_UNSUPPORTED,
                     "the layer \"%s\" is of class %s, which the library does not have (layers written in Lua are "
                     "opened from Lua)",
                     part->name, part->class_name);
  part->kind = FLOW_PART_LAYER;
  FLOW_TRY(flow_layer_read_entry(part->class_name, entry, &part->layer));
  return flow_model_check_layer(part->layer);
}
