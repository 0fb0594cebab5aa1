/* file_groups.c: the groups in which Keras' files keep the variables of layers (keras.src.saving.saving_lib: _save_state and
 * _save_container_state). Two walks write and read such files: core/models goes through the parts of a description, lua/flow/saving through
 * objects of Lua, which may have fields with layers. Both take the names of groups from here and only join them to paths: those of the
 * objects in a list ("dense", "dense_1", ...), and those of one layer's variables ("vars", "query_dense/vars", ...). */
#include <stdio.h>
#include <string.h>

#include "layers/layer.h"

/* One block of flow_alloc: this struct, names[count], then the names' bytes. */
struct flow_group_names {
  int count;
  char *names[]; /* of each object, within the block; NULL: it has no group */
};

enum { NUMBER_BYTES = 12 }; /* "_" and the digits of an int, with their zero */

/* The group of a class without a number: the one of its record, else the class's name in snake case, as Keras makes it. Returns the length
 * of the whole text, writes at most size bytes of it with their zero. */
static int class_group(const char *class_name, char *text, int size)
{
  int index = flow_layer_class_lookup(class_name);
  const char *group = index >= 0 ? flow_layer_class_record(index)->group : NULL;
  return group ? snprintf(text, (size_t)size, "%s", group) : flow_snake_case(class_name, text, size);
}

/* How many objects before number `index` have the same group. Their names have no numbers yet. */
static int earlier_ones(const flow_group_names *list, int index)
{
  int number = 0;
  for (int i = 0; i < index; i++) number += list->names[i] && strcmp(list->names[i], list->names[index]) == 0;
  return number;
}

flow_status flow_group_names_new(const char *const *class_names, int count, flow_group_names **out)
{
  if (!out || count < 0 || (count > 0 && !class_names))
    return flow_fail(FLOW_INVALID_ARGUMENT, "flow_group_names_new: %s", !out ? "out is NULL" : "there are no class names");
  size_t head = sizeof(flow_group_names) + sizeof(char *) * (size_t)count, bytes = head;
  for (int i = 0; i < count; i++)
    if (class_names[i]) bytes += (size_t)class_group(class_names[i], NULL, 0) + NUMBER_BYTES;
  void *block;
  FLOW_TRY(flow_alloc(bytes, &block));
  flow_group_names *list = block;
  char *next = (char *)block + head;
  list->count = count;
  for (int i = 0; i < count; i++) {
    list->names[i] = class_names[i] ? next : NULL;
    if (!class_names[i]) continue;
    int length = class_group(class_names[i], NULL, 0);
    class_group(class_names[i], next, length + 1);
    next += length + NUMBER_BYTES;
  }
  for (int i = count - 1; i > 0; i--) { /* from the end, so that the names before it are still those of classes */
    int number = list->names[i] ? earlier_ones(list, i) : 0;
    if (number) snprintf(list->names[i] + strlen(list->names[i]), NUMBER_BYTES, "_%d", number);
  }
  *out = list;
  return FLOW_OK;
}

const char *flow_group_names_at(const flow_group_names *list, int index)
{
  return list && index >= 0 && index < list->count ? list->names[index] : NULL;
}

void flow_group_names_release(flow_group_names *list)
{
  flow_free(list);
}

int flow_layer_group(const flow_layer *layer, int group, const char **path, const char **name, int *first)
{
  if (!path || !name || !first || group < 0 || (layer && layer->magic != FLOW_LAYER_MAGIC)) return -1;
  int total = layer ? layer->variable_count : 0, begin = 0, end = 0;
  const flow_layer_part *part = NULL;
  for (int number = 0; number <= group; number++) {      /* a group is a run of variables of one part; the first one may be empty */
    if (number > 0 && end == total) return -1;
    part = number > 0 ? layer->parts[end] : NULL;
    for (begin = end; end < total && layer->parts[end] == part;) end++;
  }
  *path = part ? part->group : "vars";
  *name = part ? part->name : layer ? layer->name : NULL;
  *first = begin;
  return end - begin;
}
