/* shared_models.c: models that a process has once for each version of a file, however many callers ask for it: Lua states in the threads
 * of a server, above all. The list holds no references: with the last one a model leaves it. */
#include <string.h>
#include <sys/stat.h>

#include "base/fork_lock.h"
#include "models/model.h"

enum { TRIES = 3 };                          /* for a file that is replaced while it is read */

/* All that is here for the whole process. A model comes in and goes out by one store, so that a forked child finds the list as it is. */
static struct { flow_fork_lock lock; flow_model *first; } shared = { .lock = FLOW_FORK_LOCK_NEW };

/* What tells one content of a path from another: a file that is replaced by renaming has another inode, one that is written over another
 * size or time. */
static flow_status find_version(const char *path, flow_file_version *version)
{
  struct stat facts;
  memset(version, 0, sizeof *version);
  if (stat(path, &facts) != 0) return flow_fail(FLOW_NOT_FOUND, "flow_model_share: the file \"%s\" does not exist", path);
  *version = (flow_file_version){ .device = (uint64_t)facts.st_dev, .number = (uint64_t)facts.st_ino, .bytes = (int64_t)facts.st_size,
                                  .seconds = (int64_t)facts.st_mtim.tv_sec, .nanoseconds = (int64_t)facts.st_mtim.tv_nsec };
  return FLOW_OK;
}

static int same(const flow_file_version *a, const flow_file_version *b)
{
  return a->device == b->device && a->number == b->number && a->bytes == b->bytes && a->seconds == b->seconds &&
         a->nanoseconds == b->nanoseconds;
}

/* One more reference, unless the last one is being given back. */
static int retain_living(flow_model *model)
{
  int count = atomic_load(&model->references);
  while (count > 0 && !atomic_compare_exchange_weak(&model->references, &count, count + 1)) continue;
  return count > 0;
}

/* With the lock held. New reference; NULL: no living model has this version. */
static flow_model *find(const flow_file_version *version)
{
  for (flow_model *model = shared.first; model; model = model->next_shared)
    if (same(&model->version, version) && retain_living(model)) return model;
  return NULL;
}

/* A file is known by device, inode, size and time. It is looked at before and after it is read: if it was replaced
 * meanwhile, what was read may be either version, and it is read again. With the lock held, which model_open does not
 * take: it makes a model that is not shared. *out NULL after a failure. */
static flow_status find_or_load(flow_context *context, const char *path, flow_model **out)
{
  flow_file_version before, after;
  for (int tries = 0; tries < TRIES; tries++) {
    FLOW_TRY(find_version(path, &before));
    if ((*out = find(&before))) return FLOW_OK;
    FLOW_TRY(flow_model_open(context, path, 0, out));
    flow_status status = find_version(path, &after);
    if (status == FLOW_OK && same(&before, &after)) {
      (*out)->version = before;
      (*out)->is_shared = 1;
      (*out)->next_shared = shared.first;
      shared.first = *out;
      return FLOW_OK;
    }
    flow_model_release(*out);
    *out = NULL;
  }
  return flow_fail(FLOW_INVALID_STATE, "flow_model_share: %s was replaced each time while it was read", path);
}

/* *out: a new reference, or untouched after a failure. */
flow_status flow_model_share(flow_context *context, const char *path, flow_model **out)
{
  if (!context || !path || !out)
    return flow_fail(FLOW_INVALID_ARGUMENT, "flow_model_share: %s is NULL", !context ? "context" : path ? "out" : "path");
  flow_model *found = NULL;
  flow_fork_lock_take(&shared.lock); /* while a file is read: callers that want the same one wait for it */
  flow_status status = find_or_load(context, path, &found);
  flow_fork_lock_give(&shared.lock);
  if (status == FLOW_OK) *out = found;
  return status;
}

/* Called by the last release, when retain_living no longer gives this model to anybody. */
void flow_model_unshare(flow_model *model)
{
  flow_fork_lock_take(&shared.lock);
  for (flow_model **link = &shared.first; *link; link = &(*link)->next_shared) {
    if (*link != model) continue;
    *link = model->next_shared;
    break;
  }
  flow_fork_lock_give(&shared.lock);
}
