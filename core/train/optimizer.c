/* optimizer.c: what all optimizers share: arenas, slots, the update. See optimizer.h. */
#include "train/optimizer.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Variables that were adopted together. Their parameters and each kind of slot lie in flat arenas, in the same order. */
typedef struct arena {
  int             count;
  flow_variable **variables;                     /* references */
  int64_t        *offsets;                       /* elements; one more than count: the last is the total */
  flow_tensor    *parameters;                    /* flat float32 */
  flow_tensor    *slots[FLOW_MAX_SLOT_KINDS];    /* flat float32, zeros at first */
  char           *owned;                         /* variable i lives in `parameters` (not in another optimizer's arena) */
} arena;

/* Handles onto one contiguous run of an arena, kept so that the same run is the same variable in every trace. */
typedef struct run {
  const arena   *home;
  int            first, count;
  flow_variable *parameters, *slots[FLOW_MAX_SLOT_KINDS];
} run;

struct flow_optimizer {
  const flow_optimizer_class *class;
  char           *name;
  flow_arguments *arguments;
  flow_variable  *learning_rate, *iterations;
  int             slot_kinds;
  const char     *slot_names[FLOW_MAX_SLOT_KINDS];
  arena         **arenas;
  int             arena_count, arena_capacity;
  run            *runs;
  int             run_count, run_capacity;
  flow_variable **slot_variables;                /* Keras' order: all slots of variable 0, then of variable 1 */
  int             slot_count, slot_capacity;
};

/* ---- records ------------------------------------------------------------------------------------------------------------ */

int flow_optimizer_class_find(const char *name)
{
  for (int i = 0; name && flow_optimizer_classes[i].name; i++)
    if (!strcasecmp(flow_optimizer_classes[i].name, name)) return i;
  return -1;
}

static const flow_argument *parameter(int index, int argument) { return &flow_optimizer_classes[index].parameters[argument]; }

const char *flow_optimizer_class_name(int index)                           { return flow_optimizer_classes[index].name; }
int         flow_optimizer_class_argument_count(int index)                 { return flow_argument_count(flow_optimizer_classes[index].parameters); }
const char *flow_optimizer_class_argument(int index, int argument)         { return parameter(index, argument)->name; }
const char *flow_optimizer_class_argument_type(int index, int argument)    { return flow_argument_type_name(parameter(index, argument)->type); }
const char *flow_optimizer_class_argument_default(int index, int argument) { return parameter(index, argument)->initial; }

/* ---- life ---------------------------------------------------------------------------------------------------------------- */

static flow_status new_scalar(int dtype, double value, const char *optimizer, const char *suffix, int sync, flow_variable **out)
{
  char name[160];
  flow_tensor *tensor;
  snprintf(name, sizeof name, "%s/%s", optimizer, suffix);
  FLOW_TRY(flow_tensor_scalar(dtype, value, &tensor));
  flow_status status = flow_variable_new(tensor, name, 0, sync, out);
  flow_tensor_release(tensor);
  return status;
}

static flow_status check_arguments(const flow_optimizer *optimizer)
{
  static const char *const unsupported[] = { "weight_decay", "clipnorm", "clipvalue", "global_clipnorm", "ema_overwrite_frequency",
                                             "loss_scale_factor", "gradient_accumulation_steps" };
  const char *class = optimizer->class->name;
  for (size_t i = 0; i < sizeof unsupported / sizeof unsupported[0]; i++)
    if (!flow_argument_is_null(optimizer->arguments, unsupported[i]))
      return flow_fail(FLOW_UNSUPPORTED, "%s: option \"%s\" is not supported yet; leave it out", class, unsupported[i]);
  if (flow_argument_boolean(optimizer->arguments, "use_ema"))
    return flow_fail(FLOW_UNSUPPORTED, "%s: option \"use_ema\" is not supported yet; leave it out", class);
  double rate = flow_argument_number(optimizer->arguments, "learning_rate");
  if (!(rate >= 0) || !isfinite(rate))
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s: learning_rate is %g, expected a number of at least 0", class, rate);
  return FLOW_OK;
}

flow_status flow_optimizer_new(const char *class_name, const char *name, const flow_arguments *arguments, flow_optimizer **out)
{
  int index = flow_optimizer_class_find(class_name);
  void *block;
  if (index < 0)
    return flow_fail(FLOW_INVALID_ARGUMENT, "there is no optimizer \"%s\"; there are SGD and Adam", class_name ? class_name : "nil");
  FLOW_TRY(flow_alloc_zero(sizeof(flow_optimizer), &block));
  flow_optimizer *optimizer = block;
  flow_status status;
  optimizer->class = &flow_optimizer_classes[index];
  optimizer->name = flow_duplicate_text(name ? name : optimizer->class->op == FLOW_OP_sgd ? "SGD" : "adam");
  status = optimizer->name ? FLOW_OK : FLOW_OUT_OF_MEMORY;
  if (status == FLOW_OK) status = flow_arguments_complete(optimizer->class->name, optimizer->class->parameters, arguments, &optimizer->arguments);
  if (status == FLOW_OK) status = check_arguments(optimizer);
  if (status == FLOW_OK)
    status = new_scalar(FLOW_FLOAT32, flow_argument_number(optimizer->arguments, "learning_rate"), optimizer->name, "learning_rate",
                        FLOW_MIRRORED, &optimizer->learning_rate);
  if (status == FLOW_OK) status = new_scalar(FLOW_INT64, 0, optimizer->name, "iteration", FLOW_MIRRORED, &optimizer->iterations);
  if (status != FLOW_OK) {
    flow_optimizer_release(optimizer);
    return status;
  }
  optimizer->slot_kinds = optimizer->class->slots(optimizer->arguments, optimizer->slot_names);
  *out = optimizer;
  return FLOW_OK;
}

static void release_arena(arena *a)
{
  if (!a) return;
  for (int i = 0; i < a->count; i++) flow_variable_release(a->variables[i]);
  flow_tensor_release(a->parameters);
  for (int s = 0; s < FLOW_MAX_SLOT_KINDS; s++) flow_tensor_release(a->slots[s]);
  flow_free(a);
}

void flow_optimizer_release(flow_optimizer *optimizer)
{
  if (!optimizer) return;
  for (int i = 0; i < optimizer->run_count; i++) {
    flow_variable_release(optimizer->runs[i].parameters);
    for (int s = 0; s < FLOW_MAX_SLOT_KINDS; s++) flow_variable_release(optimizer->runs[i].slots[s]);
  }
  for (int i = 0; i < optimizer->slot_count; i++) flow_variable_release(optimizer->slot_variables[i]);
  for (int i = 0; i < optimizer->arena_count; i++) release_arena(optimizer->arenas[i]);
  flow_variable_release(optimizer->learning_rate);
  flow_variable_release(optimizer->iterations);
  flow_arguments_release(optimizer->arguments);
  flow_free(optimizer->slot_variables);
  flow_free(optimizer->arenas);
  flow_free(optimizer->runs);
  flow_free(optimizer->name);
  flow_free(optimizer);
}

const char    *flow_optimizer_name(const flow_optimizer *optimizer)              { return optimizer->name; }
flow_variable *flow_optimizer_learning_rate(flow_optimizer *optimizer)           { return optimizer->learning_rate; }
flow_variable *flow_optimizer_iterations(flow_optimizer *optimizer)              { return optimizer->iterations; }
int            flow_optimizer_slot_count(const flow_optimizer *optimizer)        { return optimizer->slot_count; }
flow_variable *flow_optimizer_slot(const flow_optimizer *optimizer, int index)
{
  return index >= 0 && index < optimizer->slot_count ? optimizer->slot_variables[index] : NULL;
}

/* ---- adoption ------------------------------------------------------------------------------------------------------------ */

static int find_home(const flow_optimizer *optimizer, const flow_variable *variable, int *index)
{
  for (int a = 0; a < optimizer->arena_count; a++)
    for (int i = 0; i < optimizer->arenas[a]->count; i++)
      if (optimizer->arenas[a]->variables[i] == variable) {
        *index = i;
        return a;
      }
  return -1;
}

/* `count` elements of a flat tensor from `offset` on, as a tensor of the given shape. */
static flow_status part_of(flow_tensor *flat, int64_t offset, int rank, const int64_t *shape, flow_tensor **out)
{
  int64_t strides[FLOW_MAX_RANK];
  flow_contiguous_strides(rank, shape, strides);
  return flow_tensor_view(flat, rank, shape, strides, offset, out);
}

/* A variable whose storage is a part of `flat`. */
static flow_status variable_over(flow_tensor *flat, int64_t offset, int rank, const int64_t *shape, const char *owner, const char *what,
                                 flow_variable **out)
{
  char name[200];
  flow_tensor *part;
  snprintf(name, sizeof name, "%s/%s", owner, what);
  FLOW_TRY(part_of(flat, offset, rank, shape, &part));
  flow_status status = flow_variable_new(part, name, 0, FLOW_MIRRORED, out);
  if (status == FLOW_OK) status = flow_variable_move(*out, part);
  flow_tensor_release(part);
  return status;
}

static flow_status new_arena(const flow_optimizer *optimizer, flow_variable *const *variables, int count, arena **out)
{
  void *block;
  FLOW_TRY(flow_alloc_zero(sizeof(arena) + (sizeof(flow_variable *) + sizeof(int64_t) + 1) * (size_t)(count + 1), &block));
  arena *a = block;
  a->variables = (flow_variable **)(a + 1);
  a->offsets = (int64_t *)(a->variables + count + 1);
  a->owned = (char *)(a->offsets + count + 1);
  flow_status status = FLOW_OK;
  for (int i = 0; i < count && status == FLOW_OK; i++) {
    if (variables[i]->tensor->dtype != FLOW_FLOAT32)
      status = flow_fail(FLOW_UNSUPPORTED, "%s: variable \"%s\" is %s; optimizers train float32 variables", optimizer->class->name,
                         variables[i]->name, flow_dtype_name(variables[i]->tensor->dtype));
    a->variables[a->count++] = flow_variable_retain(variables[i]);
    a->offsets[i + 1] = a->offsets[i] + flow_shape_size(variables[i]->tensor->rank, variables[i]->tensor->shape);
  }
  int64_t total[1] = { a->offsets[count] };
  if (status == FLOW_OK) status = flow_tensor_new(FLOW_FLOAT32, 1, total, &a->parameters);
  for (int s = 0; s < optimizer->slot_kinds && status == FLOW_OK; s++) status = flow_tensor_new(FLOW_FLOAT32, 1, total, &a->slots[s]);
  if (status != FLOW_OK) {
    release_arena(a);
    return status;
  }
  *out = a;
  return FLOW_OK;
}

/* Moves the variables in; from here on nothing but memory for handles can run out. */
static flow_status move_in(flow_optimizer *optimizer, arena *a)
{
  FLOW_TRY(flow_grow(&optimizer->slot_variables, sizeof(flow_variable *), optimizer->slot_count + a->count * optimizer->slot_kinds,
                     &optimizer->slot_capacity));
  for (int i = 0; i < a->count; i++) {
    flow_variable *variable = a->variables[i];
    const flow_tensor *t = variable->tensor;
    for (int s = 0; s < optimizer->slot_kinds; s++) {
      char what[160];
      snprintf(what, sizeof what, "%s_%s", variable->name, optimizer->slot_names[s]);
      FLOW_TRY(variable_over(a->slots[s], a->offsets[i], t->rank, t->shape, optimizer->name, what,
                             &optimizer->slot_variables[optimizer->slot_count]));
      optimizer->slot_count++;
    }
    if (variable->adopted) continue;
    flow_tensor *part;
    FLOW_TRY(part_of(a->parameters, a->offsets[i], t->rank, t->shape, &part));
    flow_status status = flow_variable_move(variable, part);
    flow_tensor_release(part);
    FLOW_TRY(status);
    variable->adopted = 1;
    a->owned[i] = 1;
  }
  return FLOW_OK;
}

flow_status flow_optimizer_build(flow_optimizer *optimizer, flow_variable *const *variables, int count)
{
  void *block;
  int missing = 0, index;
  FLOW_TRY(flow_alloc(sizeof(flow_variable *) * (size_t)(count + 1), &block));
  flow_variable **new_ones = block;
  flow_status status = FLOW_OK;
  for (int i = 0; i < count && status == FLOW_OK; i++) {
    status = flow_check_variable("optimizer", variables[i]);
    if (status == FLOW_OK && find_home(optimizer, variables[i], &index) < 0) new_ones[missing++] = variables[i];
  }
  arena *a = NULL;
  if (status == FLOW_OK && missing) {
    status = flow_grow(&optimizer->arenas, sizeof(arena *), optimizer->arena_count + 1, &optimizer->arena_capacity);
    if (status == FLOW_OK) status = new_arena(optimizer, new_ones, missing, &a);
    if (status == FLOW_OK) {
      optimizer->arenas[optimizer->arena_count++] = a;
      status = move_in(optimizer, a);
    }
  }
  flow_free(block);
  return status;
}

/* ---- updates --------------------------------------------------------------------------------------------------------------- */

/* The handles of variables [first, first + count) of an arena, made at first use. */
static flow_status find_run(flow_optimizer *optimizer, const arena *home, int first, int count, run **out)
{
  for (int i = 0; i < optimizer->run_count; i++) {
    run *r = &optimizer->runs[i];
    if (r->home == home && r->first == first && r->count == count) {
      *out = r;
      return FLOW_OK;
    }
  }
  FLOW_TRY(flow_grow(&optimizer->runs, sizeof(run), optimizer->run_count + 1, &optimizer->run_capacity));
  run *r = &optimizer->runs[optimizer->run_count];
  memset(r, 0, sizeof *r);
  r->home = home;
  r->first = first;
  r->count = count;
  int64_t offset = home->offsets[first], size[1] = { home->offsets[first + count] - offset };
  flow_status status = FLOW_OK;
  if (home->owned[first]) status = variable_over(home->parameters, offset, 1, size, optimizer->name, "parameters", &r->parameters);
  else r->parameters = flow_variable_retain(home->variables[first]);
  for (int s = 0; s < optimizer->slot_kinds && status == FLOW_OK; s++)
    status = variable_over(home->slots[s], offset, 1, size, optimizer->name, optimizer->slot_names[s], &r->slots[s]);
  optimizer->run_count++;   /* also when incomplete: released with the optimizer */
  *out = r;
  if (status != FLOW_OK) r->home = NULL;
  return status;
}

/* One update over a run: pack the gradients, apply the record's op, mark what changed. */
static flow_status update_run(flow_context *context, flow_optimizer *optimizer, const arena *home, int first, int count,
                              flow_tensor *const *gradients)
{
  run *r;
  flow_tensor *packed = NULL, *parameters = NULL, *slots[FLOW_MAX_SLOT_KINDS] = { NULL }, *rate = NULL, *iterations = NULL;
  flow_tensor *inputs[FLOW_MAX_OPERANDS];
  flow_attributes attributes;
  FLOW_TRY(find_run(optimizer, home, first, count, &r));
  memset(&attributes, 0, sizeof attributes);
  flow_status status = flow_apply(context, FLOW_OP_pack, gradients, count, NULL, &packed);
  if (status == FLOW_OK) status = flow_variable_handle(context, r->parameters, &parameters);
  if (status == FLOW_OK && parameters->rank != 1) {   /* a variable in somebody else's arena: flat for the kernel */
    flow_tensor *flat;
    status = flow_apply1(context, FLOW_OP_reshape, parameters, NULL, NULL,
                         &(flow_attributes){ .shape = { .rank = 1, .dims = { home->offsets[first + count] - home->offsets[first] } } }, &flat);
    if (status == FLOW_OK) {
      flow_tensor_release(parameters);
      parameters = flat;
    }
  }
  for (int s = 0; s < optimizer->slot_kinds && status == FLOW_OK; s++) status = flow_variable_handle(context, r->slots[s], &slots[s]);
  if (status == FLOW_OK) status = flow_variable_handle(context, optimizer->learning_rate, &rate);
  if (status == FLOW_OK) status = flow_variable_handle(context, optimizer->iterations, &iterations);
  if (status == FLOW_OK) {
    int n = optimizer->class->operands(optimizer->arguments, &attributes, packed, parameters, slots, rate, iterations, inputs);
    status = flow_apply(context, optimizer->class->op, inputs, n, &attributes, NULL);
  }
  for (int i = first; i < first + count && status == FLOW_OK; i++) status = flow_variable_updated(context, home->variables[i]);
  flow_tensor_release(packed);
  flow_tensor_release(parameters);
  for (int s = 0; s < FLOW_MAX_SLOT_KINDS; s++) flow_tensor_release(slots[s]);
  flow_tensor_release(rate);
  flow_tensor_release(iterations);
  return status;
}

static flow_status check_gradient(const flow_optimizer *optimizer, const flow_tensor *gradient, const flow_variable *variable)
{
  FLOW_TRY(flow_check_tensor("gradient", gradient));
  const flow_tensor *t = variable->tensor;
  if (!flow_shape_equal(gradient->rank, gradient->shape, t->rank, t->shape) || gradient->dtype != FLOW_FLOAT32)
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s: the gradient for \"%s\" is %s %s, expected float32 %s", optimizer->class->name, variable->name,
                     flow_dtype_name(gradient->dtype), flow_shape_text(gradient->rank, gradient->shape), flow_shape_text(t->rank, t->shape));
  return FLOW_OK;
}

/* by_home[i]: the gradient for variable i of the arena, or NULL. Updates every maximal run that has gradients. */
static flow_status update_arena(flow_context *context, flow_optimizer *optimizer, const arena *home, flow_tensor *const *by_home)
{
  for (int first = 0, end; first < home->count; first = end) {
    end = first + 1;
    if (!by_home[first]) continue;
    while (end < home->count && by_home[end] && home->owned[first] && home->owned[end]) end++;
    FLOW_TRY(update_run(context, optimizer, home, first, end - first, by_home + first));
  }
  return FLOW_OK;
}

static flow_status apply_arenas(flow_context *context, flow_optimizer *optimizer, flow_tensor *const *gradients,
                                flow_variable *const *variables, int count)
{
  for (int a = 0; a < optimizer->arena_count; a++) {
    const arena *home = optimizer->arenas[a];
    void *block;
    int any = 0, index = 0;
    FLOW_TRY(flow_alloc_zero(sizeof(flow_tensor *) * (size_t)(home->count + 1), &block));
    flow_tensor **by_home = block;
    flow_status status = FLOW_OK;
    for (int i = 0; i < count && status == FLOW_OK; i++)
      if (gradients[i] && find_home(optimizer, variables[i], &index) == a) {
        if (by_home[index])
          status = flow_fail(FLOW_INVALID_ARGUMENT, "%s: variable \"%s\" stands twice in the list", optimizer->class->name, variables[i]->name);
        by_home[index] = gradients[i];
        any = 1;
      }
    if (any && status == FLOW_OK) status = update_arena(context, optimizer, home, by_home);
    flow_free(block);
    FLOW_TRY(status);
  }
  return FLOW_OK;
}

flow_status flow_optimizer_apply(flow_context *context, flow_optimizer *optimizer, flow_tensor *const *gradients,
                                 flow_variable *const *variables, int count)
{
  int present = 0;
  for (int i = 0; i < count; i++) {
    FLOW_TRY(flow_check_variable(optimizer->class->name, variables[i]));
    if (!gradients[i]) continue;
    FLOW_TRY(check_gradient(optimizer, gradients[i], variables[i]));
    present++;
  }
  if (!present)
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s: no gradients for any of the %d variables; was the loss computed inside tape:record?",
                     optimizer->class->name, count);
  FLOW_TRY(flow_optimizer_build(optimizer, variables, count));
  FLOW_TRY(apply_arenas(context, optimizer, gradients, variables, count));
  flow_tensor *one;
  FLOW_TRY(flow_tensor_scalar(FLOW_INT64, 1, &one));
  flow_status status = flow_variable_assign_add(context, optimizer->iterations, one);
  flow_tensor_release(one);
  return status;
}
