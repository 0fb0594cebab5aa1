/* optimizer.c: what all optimizers share: arenas, slots, the update. See optimizer.h. */
#include "train/optimizer.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

typedef flow_arena arena;
typedef flow_run run;

/* An update that only needs to be done. */
typedef struct update {
  int          run;
  flow_tensor *gradient;      /* flat; a reference */
} update;

/* ---- records ------------------------------------------------------------------------------------------------------------ */

int flow_optimizer_class_find(const char *name)
{
  for (int i = 0; name && flow_optimizer_classes[i].name; i++)
    if (!strcasecmp(flow_optimizer_classes[i].name, name)) return i;
  return -1;
}

static const flow_argument *parameter(int index, int argument) { return &flow_optimizer_classes[index].parameters[argument]; }

const char *flow_optimizer_class_name(int index)                        { return flow_optimizer_classes[index].name; }
const char *flow_optimizer_class_argument(int index, int argument)      { return parameter(index, argument)->name; }
const char *flow_optimizer_class_argument_default(int index, int argument) { return parameter(index, argument)->initial; }

int flow_optimizer_class_argument_count(int index)
{
  return flow_argument_count(flow_optimizer_classes[index].parameters);
}

const char *flow_optimizer_class_argument_type(int index, int argument)
{
  return flow_argument_type_name(parameter(index, argument)->type);
}

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
  if (status == FLOW_OK)
    status = flow_arguments_complete(optimizer->class->name, optimizer->class->parameters, arguments, &optimizer->arguments);
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
  for (int s = 0; s < FLOW_MAX_SLOT_KINDS; s++) flow_tensor_release(a->slots[s]);
  flow_free(a);
}

static void release_run(run *r)
{
  flow_variable_release(r->parameters);
  for (int s = 0; s < FLOW_MAX_SLOT_KINDS; s++) flow_variable_release(r->slots[s]);
}

void flow_optimizer_release(flow_optimizer *optimizer)
{
  if (!optimizer) return;
  for (int i = 0; i < optimizer->run_count; i++) release_run(&optimizer->runs[i]);
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

/* Elements of a flat tensor's storage from `offset` on, as a tensor of the given shape. */
static flow_status part_of(flow_tensor *flat, int64_t offset, int rank, const int64_t *shape, flow_tensor **out)
{
  int64_t strides[FLOW_MAX_RANK];
  flow_contiguous_strides(rank, shape, strides);
  return flow_tensor_view(flat, rank, shape, strides, offset, out);
}

/* A variable whose storage is such a part. */
static flow_status variable_over(flow_tensor *flat, int64_t offset, int rank, const int64_t *shape, const char *owner, const char *what,
                                 flow_variable **out)
{
  char name[200];
  flow_tensor *part;
  snprintf(name, sizeof name, "%s/%s", owner, what);
  FLOW_TRY(part_of(flat, offset, rank, shape, &part));
  flow_status status = flow_variable_over(part, name, 0, FLOW_MIRRORED, out);
  flow_tensor_release(part);
  return status;
}

static flow_status new_arena(const flow_optimizer *optimizer, flow_variable *const *variables, int count, arena **out)
{
  void *block;
  FLOW_TRY(flow_alloc_zero(sizeof(arena) + (sizeof(flow_variable *) + sizeof(int64_t)) * (size_t)(count + 1), &block));
  arena *a = block;
  a->variables = (flow_variable **)(a + 1);
  a->offsets = (int64_t *)(a->variables + count + 1);
  for (int i = 0; i < count; i++) {
    a->variables[a->count++] = flow_variable_retain(variables[i]);
    a->offsets[i + 1] = a->offsets[i] + flow_shape_size(variables[i]->tensor->rank, variables[i]->tensor->shape);
  }
  flow_status status = FLOW_OK;
  for (int s = 0; s < optimizer->slot_kinds && status == FLOW_OK; s++)
    status = flow_tensor_new(FLOW_FLOAT32, 1, &a->offsets[count], &a->slots[s]);
  if (status != FLOW_OK) {
    release_arena(a);
    return status;
  }
  *out = a;
  return FLOW_OK;
}

/* Appends the handles of an arena's slots. On failure slot_count stays as it was. */
static flow_status add_slot_variables(flow_optimizer *optimizer, arena *a)
{
  int made = optimizer->slot_count;
  flow_status status = flow_grow(&optimizer->slot_variables, sizeof(flow_variable *), made + a->count * optimizer->slot_kinds,
                                 &optimizer->slot_capacity);
  for (int i = 0; i < a->count && status == FLOW_OK; i++) {
    const flow_variable *variable = a->variables[i];
    for (int s = 0; s < optimizer->slot_kinds && status == FLOW_OK; s++) {
      char what[160];
      snprintf(what, sizeof what, "%s_%s", variable->name, optimizer->slot_names[s]);
      status = variable_over(a->slots[s], a->offsets[i], variable->tensor->rank, variable->tensor->shape, optimizer->name, what,
                             &optimizer->slot_variables[made]);
      if (status == FLOW_OK) made++;
    }
  }
  if (status != FLOW_OK) {
    while (made > optimizer->slot_count) flow_variable_release(optimizer->slot_variables[--made]);
    return status;
  }
  a->first_slot = optimizer->slot_count;
  optimizer->slot_count = made;
  return FLOW_OK;
}

/* Homes in one flat tensor for the variables that no optimizer has adopted yet: parts[i], NULL for the others. */
static flow_status make_homes(const arena *a, flow_tensor **parts)
{
  int64_t total = 0, offset = 0;
  flow_tensor *flat;
  for (int i = 0; i < a->count; i++)
    if (!a->variables[i]->adopted) total += a->offsets[i + 1] - a->offsets[i];
  FLOW_TRY(flow_tensor_new(FLOW_FLOAT32, 1, &total, &flat));
  flow_status status = FLOW_OK;
  for (int i = 0; i < a->count && status == FLOW_OK; i++) {
    const flow_tensor *t = a->variables[i]->tensor;
    if (a->variables[i]->adopted) continue;
    status = part_of(flat, offset, t->rank, t->shape, &parts[i]);
    offset += a->offsets[i + 1] - a->offsets[i];
  }
  flow_tensor_release(flat);
  return status;
}

/* Makes an arena for variables that have none here. Nothing moves before everything is there. */
static flow_status adopt(flow_optimizer *optimizer, flow_variable *const *variables, int count)
{
  arena *a;
  void *block;
  FLOW_TRY(flow_grow(&optimizer->arenas, sizeof(arena *), optimizer->arena_count + 1, &optimizer->arena_capacity));
  FLOW_TRY(new_arena(optimizer, variables, count, &a));
  flow_status status = flow_alloc_zero(sizeof(flow_tensor *) * (size_t)count, &block);
  if (status != FLOW_OK) {
    release_arena(a);
    return status;
  }
  flow_tensor **parts = block;
  status = make_homes(a, parts);
  if (status == FLOW_OK) status = add_slot_variables(optimizer, a);
  for (int i = 0; i < count; i++) {
    if (status == FLOW_OK && parts[i]) {
      flow_variable_move(a->variables[i], parts[i]);
      a->variables[i]->adopted = 1;
    }
    flow_tensor_release(parts[i]);
  }
  flow_free(block);
  if (status == FLOW_OK) optimizer->arenas[optimizer->arena_count++] = a;
  else release_arena(a);
  return status;
}

static flow_status check_trains(const flow_optimizer *optimizer, const flow_variable *variable)
{
  FLOW_TRY(flow_check_variable(optimizer->class->name, variable));
  if (variable->tensor->dtype == FLOW_FLOAT32) return FLOW_OK;
  return flow_fail(FLOW_UNSUPPORTED, "%s: variable \"%s\" is %s; optimizers train float32 variables", optimizer->class->name,
                   variable->name, flow_dtype_name(variable->tensor->dtype));
}

flow_status flow_optimizer_build(flow_optimizer *optimizer, flow_variable *const *variables, int count)
{
  void *block;
  int missing = 0, index;
  FLOW_TRY(flow_alloc(sizeof(flow_variable *) * (size_t)(count + 1), &block));
  flow_variable **fresh = block;
  flow_status status = FLOW_OK;
  for (int i = 0; i < count && status == FLOW_OK; i++) {
    status = check_trains(optimizer, variables[i]);
    if (status != FLOW_OK || find_home(optimizer, variables[i], &index) >= 0) continue;
    int k = 0;
    while (k < missing && fresh[k] != variables[i]) k++;
    if (k == missing) fresh[missing++] = variables[i];
  }
  if (status == FLOW_OK && missing) status = adopt(optimizer, fresh, missing);
  flow_free(block);
  return status;
}

/* ---- updates --------------------------------------------------------------------------------------------------------------- */

/* The run of variables [first, first + count) of an arena, made at first use; *out is its index. */
static flow_status find_run(flow_optimizer *optimizer, const arena *home, int first, int count, int *out)
{
  for (int i = 0; i < optimizer->run_count; i++) {
    const run *r = &optimizer->runs[i];
    *out = i;
    if (r->home == home && r->first == first && r->count == count) return FLOW_OK;
  }
  FLOW_TRY(flow_grow(&optimizer->runs, sizeof(run), optimizer->run_count + 1, &optimizer->run_capacity));
  run r = { .home = home, .first = first, .count = count };
  int64_t offset = home->offsets[first], size[1] = { home->offsets[first + count] - offset };
  flow_status status = variable_over(home->variables[first]->tensor, 0, 1, size, optimizer->name, "parameters", &r.parameters);
  for (int s = 0; s < optimizer->slot_kinds && status == FLOW_OK; s++)
    status = variable_over(home->slots[s], offset, 1, size, optimizer->name, optimizer->slot_names[s], &r.slots[s]);
  if (status != FLOW_OK) {
    release_run(&r);
    return status;
  }
  *out = optimizer->run_count;
  optimizer->runs[optimizer->run_count++] = r;
  return FLOW_OK;
}

/* Does an update: the record's op, and new versions of what it writes. Eagerly this takes no memory, so it cannot fail. */
static flow_status do_update(flow_context *context, flow_optimizer *optimizer, const update *u)
{
  const run *r = &optimizer->runs[u->run];
  flow_tensor *parameters = NULL, *slots[FLOW_MAX_SLOT_KINDS] = { NULL }, *rate = NULL, *iterations = NULL;
  flow_tensor *inputs[FLOW_MAX_OPERANDS];
  flow_attributes attributes;
  memset(&attributes, 0, sizeof attributes);
  flow_status status = flow_variable_handle(context, r->parameters, &parameters);
  for (int s = 0; s < optimizer->slot_kinds && status == FLOW_OK; s++) status = flow_variable_handle(context, r->slots[s], &slots[s]);
  if (status == FLOW_OK) status = flow_variable_handle(context, optimizer->learning_rate, &rate);
  if (status == FLOW_OK) status = flow_variable_handle(context, optimizer->iterations, &iterations);
  if (status == FLOW_OK) {
    int n = optimizer->class->operands(optimizer->arguments, &attributes, u->gradient, parameters, slots, rate, iterations, inputs);
    status = flow_apply(context, optimizer->class->op, inputs, n, &attributes, NULL);
  }
  for (int i = r->first; i < r->first + r->count && status == FLOW_OK; i++) {
    status = flow_variable_updated(context, r->home->variables[i]);
    for (int s = 0; s < optimizer->slot_kinds && status == FLOW_OK; s++)
      status = flow_variable_updated(context, optimizer->slot_variables[r->home->first_slot + i * optimizer->slot_kinds + s]);
  }
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
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s: the gradient for \"%s\" is %s %s, expected float32 %s", optimizer->class->name,
                     variable->name, flow_dtype_name(gradient->dtype), flow_shape_text(gradient->rank, gradient->shape),
                     flow_shape_text(t->rank, t->shape));
  return FLOW_OK;
}

/* Whether variable `next` of the arena lies right behind `next - 1` in memory. */
static int follows(const arena *home, int next)
{
  const flow_tensor *before = home->variables[next - 1]->tensor, *after = home->variables[next]->tensor;
  size_t bytes = sizeof(float) * (size_t)(home->offsets[next] - home->offsets[next - 1]);
  return before->storage == after->storage && before->data + bytes == after->data;
}

/* Packs the gradients of every maximal run that has some. by_home[i]: the gradient for variable i of the arena, or NULL. */
static flow_status prepare_arena(flow_context *context, flow_optimizer *optimizer, const arena *home, flow_tensor *const *by_home,
                                 update *updates, int *count)
{
  for (int first = 0, end; first < home->count; first = end) {
    end = first + 1;
    if (!by_home[first]) continue;
    while (end < home->count && by_home[end] && follows(home, end)) end++;
    update *u = &updates[*count];
    FLOW_TRY(find_run(optimizer, home, first, end - first, &u->run));
    FLOW_TRY(flow_apply(context, FLOW_OP_pack, by_home + first, end - first, NULL, &u->gradient));
    ++*count;
  }
  return FLOW_OK;
}

static flow_status prepare(flow_context *context, flow_optimizer *optimizer, flow_tensor *const *gradients,
                           flow_variable *const *variables, int count, update *updates, int *update_count)
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
          status = flow_fail(FLOW_INVALID_ARGUMENT, "%s: variable \"%s\" stands twice in the list", optimizer->class->name,
                             variables[i]->name);
        by_home[index] = gradients[i];
        any = 1;
      }
    if (any && status == FLOW_OK) status = prepare_arena(context, optimizer, home, by_home, updates, update_count);
    flow_free(block);
    FLOW_TRY(status);
  }
  return FLOW_OK;
}

/* Everything that can fail comes first: an eager call updates all variables or none. */
static flow_status apply(flow_context *context, flow_optimizer *optimizer, flow_tensor *const *gradients,
                         flow_variable *const *variables, int count)
{
  flow_tensor *one;
  void *block;
  int update_count = 0;
  FLOW_TRY(flow_alloc_zero(sizeof(update) * (size_t)(count + 1), &block));
  update *updates = block;
  flow_status status = flow_tensor_scalar(FLOW_INT64, 1, &one);
  if (status != FLOW_OK) {
    flow_free(block);
    return status;
  }
  status = prepare(context, optimizer, gradients, variables, count, updates, &update_count);
  for (int i = 0; i < update_count && status == FLOW_OK; i++) status = do_update(context, optimizer, &updates[i]);
  if (status == FLOW_OK) status = flow_variable_assign_add(context, optimizer->iterations, one);
  for (int i = 0; i < update_count; i++) flow_tensor_release(updates[i].gradient);
  flow_tensor_release(one);
  flow_free(block);
  return status;
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
  return apply(context, optimizer, gradients, variables, count);
}
