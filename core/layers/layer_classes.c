/* layer_classes.c: the table of the records of layers, made from layers.def, a new layer of one of them, and what can be changed of a
 * layer that is there.
 *
 * The table is constant, so that any thread may look into it. A layer is one block of memory with its name, its complete arguments and
 * room for its variables, which come with flow_layer_make (layer.c). Arguments are checked in two steps, both when the layer is made and
 * when some are set later: flow_arguments_complete checks names and types, check_arguments bounds and what the record's check() says. */
#include "layers/argument_values.h"
#include "layers/layer.h"

#include <string.h>

#include "base/hash.h"
#include "base/names.h"
#include "base/philox.h"

#define FLOW_LAYER(name) extern const flow_layer_class flow_layer_##name;
#include "layers/layers.def"
#undef FLOW_LAYER

static const flow_layer_class *const classes[] = {
#define FLOW_LAYER(name) &flow_layer_##name,
#include "layers/layers.def"
#undef FLOW_LAYER
};

int flow_layer_class_total(void) { return (int)(sizeof classes / sizeof *classes); }

const flow_layer_class *flow_layer_class_record(int index) { return classes[index]; }

/* Linear: the table has some ninety entries, and a name is looked up when a layer is made or a file is read. */
int flow_layer_class_lookup(const char *name)
{
  for (int i = 0; i < flow_layer_class_total(); i++)
    if (strcmp(name, classes[i]->name) == 0 || (classes[i]->alias && strcmp(name, classes[i]->alias) == 0)) return i;
  return -1;
}

/* The argument is a number, or a list of numbers, from 1 to INT32_MAX. */
static flow_status check_positive(const flow_layer *layer, const char *name)
{
  const double *values;
  double none = 0;
  int count = flow_argument_list(layer->arguments, name, &values);
  if (count == 0) values = &none, count = 1;
  for (int i = 0; i < count; i++)
    if (values[i] > INT32_MAX) return flow_layer_fail(layer, "%s must be at most %d, found %.15g", name, INT32_MAX, values[i]);
    else if (!(values[i] >= 1)) return flow_layer_fail(layer, "%s must be greater than 0, found %.15g", name, values[i]);
  return FLOW_OK;
}

/* What flow_arguments_complete leaves to the layer: bounds of numbers, then what its record checks. */
static flow_status check_arguments(flow_layer *layer)
{
  for (const flow_argument *p = layer->class->parameters; p->name; p++)
    if (p->choices && strcmp(p->choices, ">0") == 0 && !flow_argument_is_null(layer->arguments, p->name))
      FLOW_TRY(check_positive(layer, p->name));
  return layer->class->check ? layer->class->check(layer) : FLOW_OK;
}

/* On failure *out is not set and nothing is left. `name` is copied; arguments are completed into a set of the layer's own. */
flow_status flow_layer_create(const char *class_name, const char *name, const flow_arguments *given, flow_layer **out)
{
  int index = flow_layer_class_lookup(class_name);
  if (index < 0) {
    char hint[FLOW_SUGGESTION_SIZE];
    flow_suggestion suggestion = flow_suggestion_for(class_name);
    for (int i = 0; i < flow_layer_class_total(); i++) flow_suggestion_offer(&suggestion, classes[i]->name);
    return flow_fail(FLOW_INVALID_ARGUMENT, "there is no layer class \"%s\"%s", class_name, flow_suggestion_text(&suggestion, hint));
  }
  const flow_layer_class *class = classes[index];
  flow_arguments *arguments;
  flow_layer *layer;
  flow_status status;
  FLOW_TRY(flow_arguments_complete(class->name, class->parameters, given, &arguments));
  status = flow_alloc_zero(sizeof *layer, (void **)&layer);
  if (status != FLOW_OK) {
    flow_arguments_release(arguments);
    return status;
  }
  layer->magic = FLOW_LAYER_MAGIC;
  layer->class = class;
  layer->arguments = arguments;
  layer->trainable = flow_argument_boolean(arguments, "trainable");
  layer->name = flow_duplicate_text(name);
  status = layer->name ? FLOW_OK : FLOW_OUT_OF_MEMORY;
  if (status == FLOW_OK) status = check_arguments(layer);
  if (status != FLOW_OK) {
    flow_layer_destroy(layer);
    return status;
  }
  *out = layer;
  return FLOW_OK;
}

/* ---- changes ----------------------------------------------------------------------------------------------------------------- */

/* Whether calls read the argument, so that the next one goes by a new value. Others say what weights and outputs look like. */
static int is_read_by_calls(const flow_layer_class *class, const flow_argument *parameter)
{
  for (const char *const *name = class->read_by_build; name && *name; name++)
    if (strcmp(*name, parameter->name) == 0) return 0;
  return parameter->type == FLOW_NUMBER || parameter->type == FLOW_NUMBERS || parameter->type == FLOW_NAMED ||
         parameter->type == FLOW_ACTIVATION || parameter->type == FLOW_REGULARIZER || strcmp(parameter->name, "seed") == 0;
}

/* The message lists what can be set instead. */
static flow_status refuse_change(const flow_layer *layer, const flow_argument *parameter)
{
  char names[512];
  flow_text list = flow_text_into(names, sizeof names);
  flow_text_add(&list, "name, trainable");
  for (const flow_argument *p = layer->class->parameters; p->name; p++)
    if (is_read_by_calls(layer->class, p)) flow_text_add(&list, ", %s", p->name);
  return flow_fail(FLOW_UNSUPPORTED,
                   "%s \"%s\": %s is fixed when the layer is made: make another layer with it. What can be set afterwards: %s",
                   layer->class->name, layer->name, parameter->name, names);
}

/* The parameter that "kernel_regularizer" or "kernel_regularizer.l2" is for; NULL: none. */
static const flow_argument *parameter_of(const flow_layer_class *class, const char *name)
{
  size_t length = strcspn(name, ".");
  for (const flow_argument *p = class->parameters; p->name; p++)
    if (strncmp(p->name, name, length) == 0 && p->name[length] == '\0') return p;
  return NULL;
}

/* Whether `given` has a value for the parameter that the argument `name` belongs to, or one of its numbers: its old options go with the old
 * value. */
static int is_given_again(const flow_arguments *given, const flow_layer_class *class, const char *name)
{
  const flow_argument *parameter = parameter_of(class, name);
  if (!parameter || flow_arguments_value(given, parameter->name)) return parameter != NULL;
  for (int i = 0; parameter->type == FLOW_NAMED && i < given->count; i++)
    if (parameter_of(class, given->values[i].name) == parameter) return 1;
  return 0;
}

/* Arguments that say what weights look like are refused. The rest is completed and checked as at construction, and the layer has the old
 * ones until all of that has passed. */
flow_status flow_layer_change(flow_layer *layer, const flow_arguments *given)
{
  const flow_layer_class *class = layer->class;
  flow_arguments *merged, *complete = NULL, *before = layer->arguments;
  for (int i = 0; i < given->count; i++) {
    const flow_argument *parameter = parameter_of(class, given->values[i].name);
    if (parameter && !is_read_by_calls(class, parameter)) return refuse_change(layer, parameter);
  }
  FLOW_TRY(flow_arguments_new(&merged));
  flow_status status = FLOW_OK;
  for (int i = 0; i < before->count && status == FLOW_OK; i++)
    if (!is_given_again(given, class, before->values[i].name))
      status = flow_arguments_store(merged, before->values[i].name, &before->values[i]);
  for (int i = 0; i < given->count && status == FLOW_OK; i++)
    status = flow_arguments_store(merged, given->values[i].name, &given->values[i]);
  if (status == FLOW_OK) status = flow_arguments_complete(class->name, class->parameters, merged, &complete);
  flow_arguments_release(merged);
  if (status != FLOW_OK) return status;
  layer->arguments = complete;
  status = check_arguments(layer);
  if (status != FLOW_OK) layer->arguments = before;
  flow_arguments_release(status == FLOW_OK ? before : complete);
  return status;
}

/* Variables keep the names that they were made with. */
flow_status flow_layer_rename(flow_layer *layer, const char *name)
{
  char *copy = flow_duplicate_text(name);
  if (!copy) return FLOW_OUT_OF_MEMORY;
  flow_free(layer->name);
  layer->name = copy;
  return FLOW_OK;
}
