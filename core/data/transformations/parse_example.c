/* parse_example.c: the element function that takes a text which is a tf.train.Example apart into its features: one component a feature,
 * in the order in which they were asked for.
 *
 * The function is made empty (flow_function_parse_example) and gets its features one by one before map takes it. An element is read in
 * one pass (io/example.h), which only notes where the wanted features are; values are decoded after that, straight into tensors of their
 * shapes. tensorflow/core/example/example.proto; tf.io.parse_single_example with FixedLenFeature, whose defaults it has. */
#include "data/function.h"
#include "io/example.h"
#include "tensor/tensor.h"

#include <string.h>

/* A feature that is asked for. text: one bytes value; else dtype is float32 or int64 and the shape says how many values; a rank 1
 * shape {-1} takes any number. */
typedef struct wanted {
  char          *name;
  flow_component component;
  int            has_default;
  double         initial;         /* of all values, when the feature is not there */
} wanted;

/* The features in the order of the components. It changes until map takes the function. */
typedef struct parse_example {
  flow_function base;
  int           count;
  wanted        features[FLOW_MAX_COMPONENTS];
} parse_example;

/* Elements are serialized records, one text each; what comes out is what was asked for. */
static flow_status spec(const flow_function *function, const flow_element_spec *in, flow_element_spec *out)
{
  const parse_example *self = (const parse_example *)function;
  if (in->count != 1 || !in->components[0].text || in->components[0].rank != 1) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "parse_example takes elements of one text, a serialized tf.train.Example; found %d "
                     "component%s, the first is %s", in->count, in->count == 1 ? "" : "s",
                     in->count > 0 ? flow_component_text(&in->components[0]) : "missing");
  }
  out->count = self->count;
  for (int i = 0; i < self->count; i++) out->components[i] = self->features[i].component;
  return FLOW_OK;
}

/* Which of the three lists of a Feature holds such values. */
static flow_feature_kind kind_of(const flow_component *component)
{
  return component->text ? FLOW_FEATURE_BYTES : component->dtype == FLOW_FLOAT32 ? FLOW_FEATURE_FLOATS : FLOW_FEATURE_INTEGERS;
}

/* Values that stand for a feature which is not there: an empty text, all elements the default, or no elements where any number of them
 * is taken. */
static flow_status take_default(const wanted *feature, flow_tensor **out)
{
  const flow_component *component = &feature->component;
  if (!feature->has_default) return flow_fail(FLOW_CORRUPT_DATA, "feature '%s' is missing", feature->name);
  if (component->text) return flow_text_tensor("", 0, out);
  int64_t none = 0;
  int any = component->rank == 1 && component->shape[0] < 0;
  FLOW_TRY(flow_tensor_new(component->dtype, component->rank, any ? &none : component->shape, out));
  return flow_tensor_fill(*out, feature->initial);
}

/* A text is the one value of the feature, copied. */
static flow_status take_text(const wanted *feature, const flow_feature *found, uint64_t count, flow_tensor **out)
{
  flow_bytes value;
  if (count != 1) {
    return flow_fail(FLOW_CORRUPT_DATA, "feature '%s' has %.0f bytes values, expected one", feature->name, (double)count);
  }
  FLOW_TRY(flow_feature_bytes(found, &value));
  return flow_text_tensor((const char *)value.next, (size_t)(value.end - value.next), out);
}

/* A shape of one unknown size takes any count; others exactly as many values as they have elements. */
static flow_status take_numbers(const wanted *feature, const flow_feature *found, uint64_t count, flow_tensor **out)
{
  const flow_component *component = &feature->component;
  int64_t any = (int64_t)count;
  const int64_t *shape = component->rank == 1 && component->shape[0] < 0 ? &any : component->shape;
  int64_t size = flow_shape_size(component->rank, shape);
  if ((uint64_t)size != count) {
    return flow_fail(FLOW_CORRUPT_DATA, "feature '%s' has %.0f values, its shape %s takes %.0f", feature->name, (double)count,
                     flow_shape_text(component->rank, shape), (double)size);
  }
  FLOW_TRY(flow_tensor_new_uninitialized(component->dtype, component->rank, shape, out));
  void *data = flow_tensor_elements(*out);
  return component->dtype == FLOW_FLOAT32 ? flow_feature_floats(found, data) : flow_feature_integers(found, data);
}

/* A feature that is empty, or has no values, is the default; without a default an empty one is missing. */
static flow_status take(const wanted *feature, const flow_feature *found, flow_tensor **out)
{
  uint64_t count = 0;
  flow_feature_kind kind = kind_of(&feature->component);
  *out = NULL;
  if (found->kind == FLOW_FEATURE_EMPTY) return take_default(feature, out);
  if (found->kind != kind) {
    return flow_fail(FLOW_CORRUPT_DATA, "feature '%s' holds %s, expected %s", feature->name, flow_feature_kind_name(found->kind),
                     flow_feature_kind_name(kind));
  }
  FLOW_TRY(flow_feature_count(found, &count));
  if (count == 0 && feature->has_default) return take_default(feature, out);
  return kind == FLOW_FEATURE_BYTES ? take_text(feature, found, count, out) : take_numbers(feature, found, count, out);
}

/* Names in a record have a length and may hold zeros; those that were asked for end with one. */
static int same_name(const flow_bytes *name, const char *text)
{
  size_t length = strlen(text);
  return (size_t)(name->end - name->next) == length && memcmp(name->next, text, length) == 0;
}

/* One pass over the record: features that were not asked for are passed over; of a name that comes twice the last one counts, as in
 * protocol buffers' maps. */
static flow_status parse(const parse_example *self, const flow_tensor *text, flow_element *out)
{
  flow_feature found[FLOW_MAX_COMPONENTS] = { 0 }, feature;
  flow_example_reader reader = flow_example_reader_of(text->data, (uint64_t)text->shape[0]);
  for (int more = 1; more;) {
    FLOW_TRY(flow_example_next(&reader, &feature, &more));
    for (int i = 0; more && i < self->count; i++) {
      if (same_name(&feature.name, self->features[i].name)) found[i] = feature;
    }
  }
  for (int i = 0; i < self->count; i++) {
    flow_status status = take(&self->features[i], &found[i], &out->tensors[i]);
    out->count = i + (out->tensors[i] != NULL);
    FLOW_TRY(status);
  }
  return FLOW_OK;
}

/* No worker and no randomness. A failure names the element by its number in the pass, from 1. */
static flow_status apply(const flow_function *function, void *worker, const flow_element_key *key, const flow_element *place,
                         flow_element *in, flow_element *out)
{
  (void)worker, (void)place;
  flow_status status = parse((const parse_example *)function, in->tensors[0], out);
  if (status == FLOW_OK) return FLOW_OK;
  flow_element_clear(out);
  return flow_fail_prefix(status, "parse_example, element %.0f: ", (double)key->index + 1);
}

/* The names are its own copies. */
static void release(flow_function *function)
{
  parse_example *self = (parse_example *)function;
  for (int i = 0; i < self->count; i++) flow_free(self->features[i].name);
}

static const flow_function_class class = {
  .name = "parse_example", .function_bytes = sizeof(parse_example), .spec = spec, .apply = apply, .release = release,
};

/* A function without features; they are added one by one. */
flow_status flow_function_parse_example(flow_function **out)
{
  if (!out) return flow_fail(FLOW_INVALID_ARGUMENT, "parse_example: out is NULL");
  return flow_function_new(&class, out);
}

/* Shapes are whole, but for {-1}. */
static flow_status check_shape(const char *name, const flow_component *component)
{
  int any = component->rank == 1 && component->shape[0] == -1;
  if (component->text && component->rank == 1) return FLOW_OK;
  if (component->dtype != FLOW_FLOAT32 && component->dtype != FLOW_INT64) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "parse_example: feature '%s' is \"bytes\", \"float32\" or \"int64\", found %s", name,
                     flow_dtype_name(component->dtype) ? flow_dtype_name(component->dtype) : "no dtype");
  }
  return any ? FLOW_OK : flow_check_shape("parse_example", component->dtype, component->rank, component->shape);
}

/* Copies name and shape. dtype FLOW_UINT8 asks for a text, whose rank and shape are not read. initial NULL: a record without the feature
 * fails. Only before the function is given to map, by one thread. */
flow_status flow_function_parse_example_add(flow_function *function, const char *name, int dtype, int rank, const int64_t *shape,
                                            const double *initial)
{
  parse_example *self = (parse_example *)function;
  if (!function || function->class != &class || !name || rank < 0 || rank > FLOW_MAX_RANK || (rank > 0 && !shape)) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "parse_example: a function made by flow_function_parse_example, a name and a shape are needed");
  }
  if (self->count == FLOW_MAX_COMPONENTS) {
    return flow_fail(FLOW_UNSUPPORTED, "parse_example: at most %d features can be taken", FLOW_MAX_COMPONENTS);
  }
  wanted feature = { .component = { .dtype = dtype, .rank = rank }, .has_default = initial != NULL, .initial = initial ? *initial : 0 };
  for (int i = 0; i < rank; i++) feature.component.shape[i] = shape[i];
  if (dtype == FLOW_UINT8) feature.component = (flow_component){ .dtype = FLOW_UINT8, .rank = 1, .text = 1, .shape = { -1 } };
  FLOW_TRY(check_shape(name, &feature.component));
  feature.name = flow_duplicate_text(name);
  if (!feature.name) return FLOW_OUT_OF_MEMORY;
  self->features[self->count++] = feature;
  for (; *name; name++) function->identity = flow_mix(function->identity, (unsigned char)*name);
  function->identity = flow_mix(function->identity, (uint64_t)dtype << 32 | (uint64_t)rank);
  for (int i = 0; i < rank; i++) function->identity = flow_mix(function->identity, (uint64_t)shape[i]);
  return FLOW_OK;
}
