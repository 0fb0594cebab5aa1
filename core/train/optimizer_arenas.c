/* optimizer_arenas.c: where an optimizer's variables and slots live: flat arenas, and runs, which are contiguous parts of them. An
 * arena is made for the variables that the first update, or a later one, brings for the first time; which they are, and their order,
 * never changes after that, so that a trace may hold handles into it. Flat tensors make an update of a thousand variables as few passes
 * over memory as that of one. */
#include <string.h>

#include "tensor/place.h"
#include "base/need.h"
#include "train/optimizer.h"

typedef flow_arena arena;
typedef flow_run run;

/* Variables keep their memory as long as others hold them: the arena gives back its own references. NULL is allowed. */
void flow_arena_release(arena *a)
{
  if (!a) return;
  flow_variable_group_release(a->group);
  for (int i = 0; i < a->count; i++) flow_variable_release(a->variables[i]);
  flow_free(a);
}

void flow_run_release(run *r)
{
  flow_variable_release(r->parameters);
  for (int s = 0; s < FLOW_MOST_SLOT_KINDS; s++) flow_variable_release(r->slots[s]);
}

/* ---- adoption ------------------------------------------------------------------------------------------------------------ */

/* The arena that a variable is in, and its place there; -1: in none. */
int flow_optimizer_home(const flow_optimizer *optimizer, const flow_variable *variable, int *index)
{
  for (int a = 0; a < optimizer->arena_count; a++)
    for (int i = 0; i < optimizer->arenas[a]->count; i++)
      if (optimizer->arenas[a]->variables[i] == variable) {
        *index = i;
        return a;
      }
  return -1;
}

int flow_optimizer_variable_count(const flow_optimizer *optimizer)
{
  if (!optimizer) return 0;
  int count = 0;
  for (int a = 0; a < optimizer->arena_count; a++) count += optimizer->arenas[a]->count;
  return count;
}

/* Elements of a flat tensor's storage from `offset` on, as a tensor of the given shape. */
static flow_status part_of(flow_tensor *flat, int64_t offset, int rank, const int64_t *shape, flow_tensor **out)
{
  int64_t strides[FLOW_MAX_RANK];
  flow_contiguous_strides(rank, shape, strides);
  return flow_tensor_view(flat, rank, shape, strides, offset, out);
}

/* A variable whose storage is such a part, named owner/of_what, or owner/what where `of` is empty, with "_" for "/" in `of`, as in Keras.
 * FLOW_MIRRORED: each replica keeps its copy, and updates are the same on all. */
static flow_status variable_over(flow_tensor *flat, int64_t offset, int rank, const int64_t *shape, const char *owner, const char *of,
                                 const char *what, flow_variable **out)
{
  flow_tensor *part;
  FLOW_TRY(part_of(flat, offset, rank, shape, &part));
  flow_status status = flow_variable_named(part, 0, FLOW_MIRRORED, out, "%s/%s%s%s", owner, of, *of ? "_" : "", what);
  flow_tensor_release(part);
  if (status != FLOW_OK) return status;
  char *name = (*out)->name + strlen(owner) + 1;
  for (size_t i = 0; of[i]; i++) {
    if (name[i] == '/') name[i] = '_';
  }
  return status;
}

/* Whether weight decay is for this variable, too. As in Keras a part of a name is looked for in the variable's own, "kernel" of
 * "dense/kernel". */
static int decays(const flow_optimizer *optimizer, const flow_variable *variable)
{
  const char *slash = strrchr(variable->name, '/'), *own = slash ? slash + 1 : variable->name;
  for (int i = 0; i < optimizer->exclusion_count; i++) {
    const flow_exclusion *e = &optimizer->exclusions[i];
    if (e->variable == variable || (e->name && strstr(own, e->name))) return 0;
  }
  return 1;
}

/* Of the dtype of `like`, and where that is. *out NULL after a failure. */
static flow_status new_flat(const flow_tensor *like, int64_t size, double value, flow_tensor **out)
{
  FLOW_TRY(flow_tensor_new_at(flow_tensor_place(like), like->dtype, 1, &size, out));
  flow_status status = flow_tensor_fill(*out, value);
  if (status == FLOW_OK) return FLOW_OK;
  flow_tensor_release(*out);
  *out = NULL;
  return status;
}

/* Only the first kind can begin with something else than 0 (initial_slot). */
static flow_status new_slot(const flow_optimizer *optimizer, int kind, const flow_tensor *like, int64_t size, flow_tensor **out)
{
  const char *initial = kind == 0 && optimizer->own_kinds > 0 ? optimizer->class->initial_slot : NULL;
  return new_flat(like, size, initial ? flow_argument_number(optimizer->arguments, initial) : 0, out);
}

/* Of the variables that have that dtype. The record and its arrays are one block. */
static flow_status new_arena(const flow_optimizer *optimizer, flow_variable *const *variables, int count, int dtype, arena **out)
{
  void *block;
  FLOW_TRY(flow_alloc_zero(sizeof(arena) + (sizeof(flow_variable *) + sizeof(int64_t) + sizeof(int) + 1) * (size_t)(count + 1), &block));
  arena *a = block;
  a->variables = (flow_variable **)(a + 1);
  a->offsets = (int64_t *)(a->variables + count + 1);
  a->places = (int *)(a->offsets + count + 1);
  a->decays = (char *)(a->places + count + 1);
  a->together = count;
  a->first_slot = optimizer->slot_count;
  for (int i = 0, k = 0; i < count; i++) {
    if (variables[i]->tensor->dtype != dtype) continue;
    k = a->count++;
    a->variables[k] = flow_variable_retain(variables[i]);
    a->places[k] = i;
    a->decays[k] = (char)decays(optimizer, variables[i]);
    a->offsets[k + 1] = a->offsets[k] + flow_shape_size(variables[i]->tensor->rank, variables[i]->tensor->shape);
  }
  flow_status status = flow_variable_group_new(&a->group);
  if (status == FLOW_OK) *out = a;
  else flow_arena_release(a);
  return status;
}

/* Keras' order of variables, in which files have them: see `interleaved` (optimizer.h). */
int flow_optimizer_slot_index(const flow_optimizer *optimizer, const arena *a, int variable, int kind)
{
  int own = optimizer->own_kinds, together = optimizer->class->interleaved < own ? optimizer->class->interleaved : own;
  int place = a->places[variable];
  if (kind >= own) return a->first_slot + a->together * (kind - own) + place; /* Keras makes averages first, then accumulators */
  int first = a->first_slot + a->together * (optimizer->slot_kinds - own);
  return first + (kind < together ? place * together + kind : a->together * kind + place);
}

/* Puts the handles of an arena's slots of one kind in their places, which are NULL and past slot_count. Slots are made on the place of the
 * first variable; check_place has seen that all are there. */
static flow_status add_slot_variables(flow_optimizer *optimizer, const arena *a, int kind)
{
  flow_tensor *flat;
  FLOW_TRY(new_slot(optimizer, kind, a->variables[0]->tensor, a->offsets[a->count], &flat));
  flow_status status = FLOW_OK;
  for (int i = 0; i < a->count && status == FLOW_OK; i++) {
    const flow_variable *variable = a->variables[i];
    flow_variable **slot = &optimizer->slot_variables[flow_optimizer_slot_index(optimizer, a, i, kind)];
    status = variable_over(flat, a->offsets[i], variable->tensor->rank, variable->tensor->shape, optimizer->name, variable->name,
                           optimizer->slot_names[kind], slot);
    if (status == FLOW_OK) status = flow_variable_group_add(a->group, slot, 1);
  }
  flow_tensor_release(flat);
  return status;
}

/* Homes in one flat tensor for the variables that no optimizer has adopted yet: parts[i], NULL for the others. */
static flow_status make_homes(const arena *a, flow_tensor **parts)
{
  int64_t total = 0, offset = 0;
  flow_tensor *flat;                 /* not filled: pages come as variables move in, while others go */
  for (int i = 0; i < a->count; i++)
    if (!a->variables[i]->adopted) total += a->offsets[i + 1] - a->offsets[i];
  FLOW_TRY(flow_tensor_new_at(flow_tensor_place(a->variables[0]->tensor), a->variables[0]->tensor->dtype, 1, &total, &flat));
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

/* What optimizers train: an arena for each. */
static const int dtypes[] = { FLOW_FLOAT32, FLOW_FLOAT64 };
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

/* An arena that is being made, and where its variables will be. */
typedef struct newcomers {
  arena *arena;
  flow_tensor **parts;
} newcomers;

/* All that may fail for lack of memory. NULL where no variable has that dtype. */
static flow_status prepare(flow_optimizer *optimizer, flow_variable *const *variables, int count, int dtype, newcomers *n)
{
  void *block;
  int found = 0;
  for (int i = 0; i < count; i++) found += variables[i]->tensor->dtype == dtype;
  if (!found) return FLOW_OK;
  FLOW_TRY(new_arena(optimizer, variables, count, dtype, &n->arena));
  FLOW_TRY(flow_alloc_zero(sizeof(flow_tensor *) * (size_t)found, &block));
  n->parts = block;
  FLOW_TRY(make_homes(n->arena, n->parts));
  for (int s = 0; s < optimizer->slot_kinds; s++) FLOW_TRY(add_slot_variables(optimizer, n->arena, s));
  return flow_variable_group_add(n->arena->group, n->arena->variables, n->arena->count);
}

/* One variable after the other, each old storage being freed at once. */
static flow_status move_in(newcomers *n)
{
  for (int i = 0; n->arena && i < n->arena->count; i++) {
    if (!n->parts[i]) continue;
    flow_status status = flow_variable_move(n->arena->variables[i], n->parts[i]);
    n->arena->variables[i]->adopted = status == FLOW_OK;
    flow_memory_trim(); /* where it was is as large as the weights, and nothing else has these sizes */
    FLOW_TRY(status);
  }
  return FLOW_OK;
}

/* done: else variables that have moved are adopted by nobody, and the arena is released. */
static void settle(newcomers *n, int done)
{
  for (int i = 0; n->parts && i < n->arena->count; i++) {
    if (n->parts[i] && !done) n->arena->variables[i]->adopted = 0;
    flow_tensor_release(n->parts[i]);
  }
  flow_free(n->parts);
  if (!done) flow_arena_release(n->arena);
}

/* Makes arenas for variables that have none here. Nothing moves before everything is there. Variables that another optimizer has adopted
 * stay where they are: only their slots are here. If a device fails in the middle, those that moved stay where they are now, adopted by
 * nobody, and the optimizer is as before. */
static flow_status adopt(flow_optimizer *optimizer, flow_variable *const *variables, int count)
{
  newcomers all[DTYPES] = { { NULL, NULL } };
  int first = optimizer->slot_count, end = first + count * optimizer->slot_kinds;
  FLOW_TRY(flow_grow(&optimizer->arenas, sizeof(arena *), optimizer->arena_count + DTYPES, &optimizer->arena_capacity));
  FLOW_TRY(flow_grow(&optimizer->slot_variables, sizeof(flow_variable *), end, &optimizer->slot_capacity));
  for (int k = first; k < end; k++) optimizer->slot_variables[k] = NULL;
  flow_status status = FLOW_OK;
  for (int d = 0; d < DTYPES && status == FLOW_OK; d++) status = prepare(optimizer, variables, count, dtypes[d], &all[d]);
  for (int d = 0; d < DTYPES && status == FLOW_OK; d++) status = move_in(&all[d]);
  for (int d = 0; d < DTYPES; d++) {
    if (status == FLOW_OK && all[d].arena) optimizer->arenas[optimizer->arena_count++] = all[d].arena;
    settle(&all[d], status == FLOW_OK);
  }
  for (int k = first; k < end && status != FLOW_OK; k++) flow_variable_release(optimizer->slot_variables[k]);
  if (status == FLOW_OK) optimizer->slot_count = end;
  return status;
}

/* Slots and formulas have the dtype of the variables. */
static flow_status check_trains(const flow_optimizer *optimizer, const flow_variable *variable)
{
  FLOW_TRY(flow_check_variable(optimizer->class->name, variable));
  for (int d = 0; d < DTYPES; d++)
    if (variable->tensor->dtype == dtypes[d]) return FLOW_OK;
  return flow_fail(FLOW_UNSUPPORTED, "%s: variable \"%s\" is %s; optimizers train float32 and float64 variables", optimizer->class->name,
                   variable->name, flow_dtype_name(variable->tensor->dtype));
}

/* The state that is kept once for all variables, to where the next update runs. */
flow_status flow_optimizer_move_scalars(flow_optimizer *optimizer, flow_place *place)
{
  for (int i = 0; i < optimizer->scalar_count; i++) FLOW_TRY(flow_variable_move_to(optimizer->scalars[i], place));
  if (optimizer->learning_rate) FLOW_TRY(flow_variable_move_to(optimizer->learning_rate, place));
  return flow_variable_move_to(optimizer->iterations, place);
}

/* What an optimizer trains together is on one device, and so is what its updates read beside. */
static flow_status check_place(flow_optimizer *optimizer, flow_variable *const *variables, int count)
{
  flow_place *place = flow_tensor_place(variables[0]->tensor);
  for (int i = 1; i < count; i++) {
    const flow_place *found = flow_tensor_place(variables[i]->tensor);
    if (flow_place_device(found) != flow_place_device(place))
      return flow_fail(FLOW_INVALID_ARGUMENT, "%s: variable \"%s\" is on %s, \"%s\" on %s: an optimizer trains variables of one device",
                       optimizer->class->name, variables[0]->name, flow_place_name(place), variables[i]->name, flow_place_name(found));
  }
  return flow_optimizer_move_scalars(optimizer, place);
}

/* Adopts those variables that have no home yet; called by the first update, and before that by a reader of slots from a file. One thread at
 * a time, not while a step runs. */
flow_status flow_optimizer_build(flow_optimizer *optimizer, flow_variable *const *variables, int count)
{
  FLOW_NEED(optimizer);
  if (count > 0) FLOW_NEED(variables);
  void *block;
  int missing = 0, index;
  FLOW_TRY(flow_alloc(sizeof(flow_variable *) * (size_t)(count + 1), &block));
  flow_variable **fresh = block;
  flow_status status = FLOW_OK;
  for (int i = 0; i < count && status == FLOW_OK; i++) {
    status = check_trains(optimizer, variables[i]);
    if (status != FLOW_OK || flow_optimizer_home(optimizer, variables[i], &index) >= 0) continue;
    int k = 0;
    while (k < missing && fresh[k] != variables[i]) k++;
    if (k == missing) fresh[missing++] = variables[i];
  }
  if (status == FLOW_OK && missing) status = check_place(optimizer, fresh, missing);
  if (status == FLOW_OK && missing) status = adopt(optimizer, fresh, missing);
  flow_free(block);
  return status;
}

/* ---- runs ------------------------------------------------------------------------------------------------------------------- */

/* A handle is over the first variable's tensor, whose storage all variables of a run share, one after the other. */
flow_status flow_optimizer_run(flow_optimizer *optimizer, const arena *home, int first, int count, int *out)
{
  for (int i = 0; i < optimizer->run_count; i++) {
    const run *r = &optimizer->runs[i];
    *out = i;
    if (r->home == home && r->first == first && r->count == count) return FLOW_OK;
  }
  FLOW_TRY(flow_grow(&optimizer->runs, sizeof(run), optimizer->run_count + 1, &optimizer->run_capacity));
  run r = { .home = home, .first = first, .count = count };
  int64_t size[1] = { home->offsets[first + count] - home->offsets[first] };
  flow_variable_group *group = home->variables[first]->group;
  flow_status status = variable_over(home->variables[first]->tensor, 0, 1, size, optimizer->name, "", "parameters", &r.parameters);
  for (int s = 0; s < optimizer->slot_kinds && status == FLOW_OK; s++) {
    const flow_variable *slot = optimizer->slot_variables[flow_optimizer_slot_index(optimizer, home, first, s)];
    status = variable_over(slot->tensor, 0, 1, size, optimizer->name, "", optimizer->slot_names[s], &r.slots[s]);
  }
  if (status == FLOW_OK) status = flow_variable_group_add(home->group, r.slots, optimizer->slot_kinds);
  if (status == FLOW_OK && group && (status = flow_variable_group_add(group, &r.parameters, 1)) != FLOW_OK)
    flow_variable_group_drop(home->group, optimizer->slot_kinds);
  if (status != FLOW_OK) {
    flow_run_release(&r);
    return status;
  }
  *out = optimizer->run_count;
  optimizer->runs[optimizer->run_count++] = r;
  return FLOW_OK;
}

