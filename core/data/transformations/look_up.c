/* look_up.c: element functions that make a further component of others: numbers of strings (core/text/lookup.h), and crossings of
 * several components. The others stay unchanged. A component's form says whether it is text (TEXT) and whether its strings or numbers
 * get a last axis of size 1 (COLUMN), as Keras' preprocessing layers have it. */
#include "data/function.h"
#include "base/need.h"
#include "text/lookup.h"

enum { TEXT = 1, COLUMN = 2 };

/* A function looks up one component in a table, or crosses several components into `bins`. */
typedef struct look_up {
  flow_function base;
  flow_lookup  *lookup;                               /* NULL: a crossing */
  int           components[FLOW_MAX_COMPONENTS], count;
  double        bins;
  int           forms[FLOW_MAX_COMPONENTS];           /* of each: flow_function_lookup */
} look_up;

/* Rank and shape of the strings, or numbers, that a component is. */
static int string_shape(const flow_component *component, int form, int64_t *shape)
{
  int rank = component->rank - (component->text != 0);
  for (int axis = 0; axis < rank; axis++) shape[axis] = component->shape[axis];
  if (form & COLUMN && rank < FLOW_MAX_RANK) shape[rank++] = 1;
  return rank;
}

/* The result is a further component: the others stay, since a plan may need them. */
static flow_status spec(const flow_function *function, const flow_element_spec *in, flow_element_spec *out)
{
  const look_up *self = (const look_up *)function;
  for (int i = 0; i < self->count; i++) {
    if (self->components[i] < 0 || self->components[i] >= in->count)
      return flow_fail(FLOW_INVALID_ARGUMENT, "map: there is no component %d of %d", self->components[i] + 1, in->count);
    if (!in->components[self->components[i]].text != !(self->forms[i] & TEXT))
      return flow_fail(FLOW_INVALID_ARGUMENT, "map: component %d is %s, but the lookup takes %s", self->components[i] + 1,
                       flow_component_text(&in->components[self->components[i]]), self->forms[i] & TEXT ? "strings" : "numbers");
  }
  if (in->count == FLOW_MAX_COMPONENTS) {
    return flow_fail(FLOW_UNSUPPORTED, "map: elements have %d components, which is the most: a lookup adds one more", FLOW_MAX_COMPONENTS);
  }
  *out = *in;
  flow_component *made = &out->components[out->count++];
  *made = (flow_component){ .dtype = self->lookup ? flow_lookup_dtype(self->lookup) : FLOW_INT64 };
  made->rank = string_shape(&in->components[self->components[0]], self->forms[0], made->shape);
  return self->lookup ? flow_lookup_shape(self->lookup, &made->rank, made->shape) : FLOW_OK;
}

/* The new component comes last. Failures name the element, counted from 1, since strings may be anything. */
static flow_status apply(const flow_function *function, void *worker, const flow_element_key *key, const flow_element *place,
                         flow_element *in, flow_element *out)
{
  const look_up *self = (const look_up *)function;
  flow_strings columns[FLOW_MAX_COMPONENTS];
  flow_tensor *made;
  (void)worker, (void)place;
  for (int i = 0; i < self->count; i++) columns[i] = flow_strings_of_component(in->tensors[self->components[i]], self->forms[i] & TEXT);
  for (int i = 0; i < self->count; i++) columns[i].is_column = (self->forms[i] & COLUMN) != 0;
  flow_status status = self->lookup ? flow_lookup_apply(self->lookup, columns, &made)
                                    : flow_hash_crossing(columns, self->count, self->bins, &made);
  if (status != FLOW_OK) return flow_fail_prefix(status, "element %.0f: ", (double)key->index + 1);
  flow_element_move(out, in);
  out->tensors[out->count++] = made;
  return FLOW_OK;
}

static void release(flow_function *function) { flow_lookup_release(((look_up *)function)->lookup); }

static const flow_function_class class = {
  .name = "look_up", .function_bytes = sizeof(look_up), .spec = spec, .apply = apply, .release = release,
};

/* components and forms: count of each, at most FLOW_MAX_COMPONENTS, which callers have checked. */
static flow_status make(const int *components, const int *forms, int count, uint64_t identity, look_up **out)
{
  flow_function *function;
  FLOW_TRY(flow_function_new(&class, &function));
  *out = (look_up *)function;
  (*out)->count = count;
  for (int i = 0; i < count; i++) {
    (*out)->components[i] = components[i];
    (*out)->forms[i] = forms[i];
    function->identity = flow_mix(function->identity, (uint64_t)components[i] << 2 | (uint64_t)forms[i]);
  }
  function->identity = flow_mix(function->identity, identity);
  return FLOW_OK;
}

/* The function keeps a reference to the lookup. Its identity is that of the vocabulary, so that a changed one makes another pipeline. */
flow_status flow_function_lookup(flow_lookup *lookup, int component, int form, flow_function **out)
{
  FLOW_NEED(out);
  look_up *self;
  *out = NULL;
  FLOW_NEED(lookup);
  if (!lookup) return flow_fail(FLOW_INVALID_ARGUMENT, "map: a lookup is needed");
  FLOW_TRY(make(&component, &form, 1, flow_lookup_identity(lookup), &self));
  self->lookup = flow_lookup_retain(lookup);
  *out = &self->base;
  return FLOW_OK;
}

/* A crossing has no table: its numbers are hashes. */
flow_status flow_function_crossing(const int *components, const int *forms, int count, double bins, flow_function **out)
{
  FLOW_NEED(out);
  if (count > 0) FLOW_NEED(components, forms);
  look_up *self;
  int64_t whole;
  *out = NULL;
  FLOW_TRY(flow_crossing_check(count, bins, &whole));
  FLOW_TRY(make(components, forms, count, (uint64_t)whole, &self));
  self->bins = bins;
  *out = &self->base;
  return FLOW_OK;
}
