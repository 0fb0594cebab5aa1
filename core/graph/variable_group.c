/* variable_group.c: see variable_group.h. */
#include "graph/variable_group.h"

#include <string.h>

#include "base/memory.h"
#include "tensor/mirrors.h"

flow_status flow_variable_group_new(flow_variable_group **out)
{
  void *block;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_variable_group), &block));
  *out = block;
  return FLOW_OK;
}

static void release_flats(flow_variable_group *group)
{
  flow_tensors_release(group->now, group->shared);
  flow_tensors_release(group->next, group->shared);
  group->shared = 0;
  group->holder = NULL;
  group->number = 0;
}

/* The part of `flat` that a variable's storage is of the storage `of`. */
static flow_status part_of(const flow_variable *variable, const flow_storage *of, flow_tensor *flat, flow_tensor **out)
{
  const flow_tensor *t = variable->tensor;
  int64_t offset = (t->data - (const char *)of->data) / (int64_t)flow_dtype_size(t->dtype);
  return flow_tensor_view(flat, t->rank, t->shape, t->strides, offset, out);
}

/* parts[i]: of the flat tensor whose number is that of the storage in `of`, [count], which variable i is in; NULL if it is in none. On
 * failure there are none. */
static flow_status find_parts(const flow_variable_group *group, flow_storage *const *of, flow_tensor *const *flats, int count,
                              flow_tensor **parts)
{
  flow_status status = FLOW_OK;
  for (int i = 0; i < group->count; i++) parts[i] = NULL;
  for (int i = 0; i < group->count && status == FLOW_OK; i++)
    for (int k = 0; k < count && status == FLOW_OK; k++)
      if (group->variables[i]->tensor->storage == of[k]) status = part_of(group->variables[i], of[k], flats[k], &parts[i]);
  if (status != FLOW_OK) flow_tensors_release(parts, group->count);
  return status;
}

/* Each variable that has a part is there from now on. */
static void move_to_parts(const flow_variable_group *group, flow_tensor **parts)
{
  for (int i = 0; i < group->count; i++) {
    flow_variable *variable = group->variables[i];
    if (!parts[i]) continue;
    flow_tensor_release(variable->tensor);
    variable->tensor = parts[i];
  }
}

static flow_status new_parts(const flow_variable_group *group, flow_tensor ***parts)
{
  void *block;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_tensor *) * (size_t)(group->count + 1), &block));
  *parts = block;
  return FLOW_OK;
}

static void storages_of(flow_variable *const *members, int count, flow_storage **storages)
{
  for (int k = 0; k < count; k++) storages[k] = members[k]->tensor->storage;
}

void flow_variable_group_drop(flow_variable_group *group, int count)
{
  for (int end = group->count - count; group->count > end;) {
    group->variables[--group->count]->group = NULL;
    flow_tensor_release(group->others[group->count]);
  }
}

/* There is room for it. */
static flow_status add(flow_variable_group *group, flow_variable *variable)
{
  flow_tensor *other = NULL;
  for (int k = 0; k < group->shared; k++)
    if (variable->tensor->storage == group->now[k]->storage) FLOW_TRY(part_of(variable, group->now[k]->storage, group->next[k], &other));
  variable->group = group;
  group->others[group->count] = other;
  group->variables[group->count++] = variable;
  return FLOW_OK;
}

flow_status flow_variable_group_add(flow_variable_group *group, flow_variable *const *variables, int count)
{
  int before = group->count;
  flow_status status = FLOW_OK;
  FLOW_TRY(flow_grow(&group->variables, sizeof(flow_variable *), before + count, &group->capacity));
  FLOW_TRY(flow_grow(&group->others, sizeof(flow_tensor *), before + count, &group->other_capacity));
  for (int i = 0; i < count && status == FLOW_OK; i++)
    if (!variables[i]->group) status = add(group, variables[i]);
  if (status != FLOW_OK) flow_variable_group_drop(group, group->count - before);
  return status;
}

flow_status flow_variable_group_share(flow_variable_group *group, flow_variable *const *members, flow_tensor *const *now,
                                      flow_tensor *const *next, int count)
{
  flow_storage *from[FLOW_MOST_SHARED_ARRAYS];
  flow_tensor **here, **there = NULL;
  storages_of(members, count, from);
  FLOW_TRY(new_parts(group, &here));
  flow_status status = find_parts(group, from, now, count, here);
  if (status == FLOW_OK) status = new_parts(group, &there);
  if (status == FLOW_OK) status = find_parts(group, from, next, count, there);
  if (status != FLOW_OK) {
    flow_tensors_release(here, group->count);
  } else {
    for (int k = 0; k < count; k++) memcpy(now[k]->data, from[k]->data, from[k]->bytes);
    flow_tensors_release(group->others, group->count);
    release_flats(group);
    move_to_parts(group, here);
    memcpy(group->others, there, sizeof *there * (size_t)group->count);
    for (int k = 0; k < count; k++) {
      group->now[k] = flow_tensor_retain(now[k]);
      group->next[k] = flow_tensor_retain(next[k]);
    }
    group->shared = count;
  }
  flow_free(there);
  flow_free(here);
  return status;
}

void flow_variable_group_change_over(flow_variable_group *group)
{
  for (int i = 0; i < group->count; i++) {
    flow_tensor *before = group->variables[i]->tensor;
    if (!group->others[i]) continue;
    group->variables[i]->tensor = group->others[i];
    group->others[i] = before;
  }
  for (int k = 0; k < group->shared; k++) {
    flow_tensor *before = group->now[k];
    group->now[k] = group->next[k];
    group->next[k] = before;
    flow_storage_written(group->now[k]->storage);
  }
}

flow_status flow_variable_group_part(flow_variable_group *group)
{
  flow_tensor *own[FLOW_MOST_SHARED_ARRAYS] = { NULL }, **parts = NULL;
  flow_storage *from[FLOW_MOST_SHARED_ARRAYS];
  flow_status status = FLOW_OK;
  if (!group || group->shared == 0) return FLOW_OK;
  for (int k = 0; k < group->shared && status == FLOW_OK; k++) {
    from[k] = group->now[k]->storage;
    status = flow_tensor_new_uninitialized(group->now[k]->dtype, 1, group->now[k]->shape, &own[k]);
    if (status == FLOW_OK) memcpy(own[k]->data, from[k]->data, from[k]->bytes);
  }
  if (status == FLOW_OK) status = new_parts(group, &parts);
  if (status == FLOW_OK) status = find_parts(group, from, own, group->shared, parts);
  flow_tensors_release(own, group->shared);
  if (status == FLOW_OK) {
    move_to_parts(group, parts);
    flow_tensors_release(group->others, group->count);
    release_flats(group);
  }
  flow_free(parts);
  return status;
}

/* Without memory the variables stay where they are, in no group: flow_variable_own refuses to write to them. */
void flow_variable_group_release(flow_variable_group *group)
{
  if (!group) return;
  (void)flow_variable_group_part(group);
  flow_tensors_release(group->others, group->count);
  release_flats(group);
  for (int i = 0; i < group->count; i++) group->variables[i]->group = NULL;
  flow_free(group->variables);
  flow_free(group->others);
  flow_free(group);
}
