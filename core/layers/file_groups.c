/* file_groups.c: the groups in which Keras' files keep the variables of layers (keras.src.saving.saving_lib). A model without Lua
 * (core/models) and lua/flow/saving walk over different things, the parts of a description and objects of Lua, but take these names from
 * here. */
#include <stdio.h>

#include "layers/layer.h"

int flow_layer_class_group(const char *class_name, char *text, int size)
{
  int index = class_name ? flow_layer_class_lookup(class_name) : -1;
  const char *group = index >= 0 ? flow_layer_class_record(index)->group : NULL;
  return group ? snprintf(text, (size_t)size, "%s", group) : flow_snake_case(class_name ? class_name : "", text, size);
}

int flow_layer_group(const flow_layer *layer, int group, const char **path, const char **name, int *first)
{
  if (layer && layer->magic != FLOW_LAYER_MAGIC) return -1;
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
  return group < 0 ? -1 : end - begin;
}
