/* changes.c: whether all workers still have the same variables. A step changes them alike everywhere; between steps a callback or the
 * script may change them on one worker only, and from then on the workers would train different models and add up their gradients. See
 * replica_set.h.
 *
 * What a process writes between steps is counted in the variable's version. Only what was written since the workers agreed last is looked
 * at, so that steps take nothing but a comparison for each variable. A worker that has written numbers that were there before, or that
 * has put others in and the former back, has changed nothing: where the workers have not written the same, the numbers decide. */
#include "run/replicas/replica_set.h"

#include "base/memory.h"
#include "base/philox.h"
#include "graph/variable.h"

static int is_watched(const flow_value *value)
{
  return value->kind == FLOW_VALUE_VARIABLE && !value->late && value->variable->sync != FLOW_SUM_ON_READ;
}

flow_status flow_watch_variables(flow_replica_set *set)
{
  const flow_graph *graph = set->lead->plan->graph;
  void *block;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_variable *) * ((size_t)graph->value_count + 1), &block));
  set->watched = block;
  for (int v = 0; v < graph->value_count; v++)
    if (is_watched(&graph->values[v])) set->watched[set->watched_count++] = graph->values[v].variable;
  return FLOW_OK;
}

void flow_release_watched(flow_replica_set *set)
{
  flow_free(set->watched);
  set->watched = NULL;
  set->watched_count = 0;
}

static int is_changed(const flow_variable *variable)
{
  return variable->version != variable->agreed_version;
}

flow_status flow_find_changes(const flow_replica_set *set, uint64_t *out)
{
  uint64_t hash;
  *out = 0;
  for (int i = 0; i < set->watched_count; i++) {
    if (!is_changed(set->watched[i])) continue;
    FLOW_TRY(flow_variables_hash(&set->watched[i], 1, -1, &hash));
    *out = flow_mix(flow_mix(*out, (uint64_t)i), hash);
  }
  return FLOW_OK;
}

static const char *name_of(const flow_exchange *exchange, int worker)
{
  return exchange->name ? exchange->name(exchange, worker) : worker == exchange->worker ? "this worker" : "another worker";
}

/* words: those of gather_states of workers a and b, for this variable. */
static flow_status fail_to_match(const flow_exchange *exchange, const flow_variable *variable, int a, uint64_t of_a, int b, uint64_t of_b)
{
  static const char advice[] = "callbacks and the script change variables on all workers alike, or before a fit, which begins with the "
                               "chief's numbers";
  int changer = of_a & 1 ? a : b, other = changer == a ? b : a;
  if ((of_a ^ of_b) & 1)
    return flow_fail(FLOW_INVALID_STATE, "%s has changed variable \"%s\" since the last step, and %s has not: %s",
                     name_of(exchange, changer), variable->name, name_of(exchange, other), advice);
  return flow_fail(FLOW_INVALID_STATE, "%s and %s have %s variable \"%s\": %s", name_of(exchange, a), name_of(exchange, b),
                   of_a & 1 ? "assigned different numbers to" : "different numbers in", variable->name, advice);
}

/* all: [worker][variable]: a hash, whose lowest bit says whether the worker has written the variable. */
static flow_status gather_states(const flow_replica_set *set, uint64_t *own, uint64_t *all)
{
  flow_exchange *exchange = set->exchange;
  size_t count = (size_t)set->watched_count;
  FLOW_TRY(flow_variables_hash(set->watched, set->watched_count, -1, own));
  for (size_t i = 0; i < count; i++) own[i] = (own[i] & ~UINT64_C(1)) | (uint64_t)is_changed(set->watched[i]);
  return exchange->all_gather(exchange, own, (int64_t)(sizeof *own * count), all);
}

static flow_status compare_states(const flow_replica_set *set)
{
  const flow_exchange *exchange = set->exchange;
  size_t count = (size_t)set->watched_count;
  void *block;
  FLOW_TRY(flow_alloc_zero(sizeof(uint64_t) * count * (size_t)(exchange->workers + 1), &block));
  uint64_t *own = block, *all = own + count;
  flow_status status = gather_states(set, own, all);
  for (size_t i = 0; i < count; i++)
    for (int w = 1; w < exchange->workers && status == FLOW_OK; w++) {
      uint64_t first = all[i], theirs = all[(size_t)w * count + i];
      if (first >> 1 != theirs >> 1) status = fail_to_match(exchange, set->watched[i], 0, first, w, theirs);
    }
  flow_free(block);
  return status;
}

flow_status flow_settle_changes(flow_replica_set *set, int differ)
{
  if (differ) FLOW_TRY(compare_states(set));
  for (int i = 0; i < set->watched_count; i++) set->watched[i]->agreed_version = set->watched[i]->version;
  return FLOW_OK;
}
