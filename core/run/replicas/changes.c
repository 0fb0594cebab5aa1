/* changes.c: whether all workers still have the same variables. A step changes them alike everywhere; between steps a callback or the
 * script may change them on one worker only, and from then on the workers would train different models and add up their gradients. See
 * replica_set.h.
 *
 * A step can do it, too: it assigns what follows from a worker's own rows with no sum over the workers in between. TensorFlow refuses that
 * where the variable has no aggregation. Here what it leaves is compared in the first runs, and a difference is a warning, since nothing
 * else may depend on the variable; which is each worker's own from then on.
 *
 * What a process writes between steps is counted in the variable's version. Only what was written since the workers agreed last is looked
 * at, so that steps take nothing but a comparison for each variable. A worker that has written numbers that were there before, or that
 * has put others in and the former back, has changed nothing: where the workers have not written the same, the numbers decide. */
#include "run/replicas/replica_set.h"

#include <stdio.h>

#include "base/memory.h"
#include "base/philox.h"
#include "graph/variable.h"

static int is_watched(const flow_value *value)
{
  return value->kind == FLOW_VALUE_VARIABLE && !value->late && value->variable->sync != FLOW_SUM_ON_READ;
}

/* own[value]: it may differ between workers. */
static void mark(const flow_graph *graph, const flow_node *node, char *own)
{
  int differs = 0;
  for (int i = 0; i < node->input_count; i++) {
    int value = node->inputs[i];
    if (value >= 0) differs |= own[value] || graph->values[value].kind == FLOW_VALUE_INPUT;
  }
  if (flow_op(node->op)->flags & FLOW_OP_COLLECTIVE) differs = 0;
  for (int i = 0; i < node->output_count; i++) own[node->outputs[i]] = (char)differs;
}

/* Finds the variables to which the plan assigns what may differ between workers. */
static flow_status find_own_assignments(const flow_plan *plan)
{
  enum { CHECKS = 8 };
  const flow_graph *graph = plan->graph;
  void *block;
  FLOW_TRY(flow_alloc_zero((size_t)graph->value_count + 1, &block));
  char *own = block;
  for (int k = 0; k < plan->order_count; k++) {
    const flow_node *node = &graph->nodes[plan->order[k]];
    mark(graph, node, own);
    if (node->op != FLOW_OP_assign) continue;
    const flow_value *target = &graph->values[node->inputs[0]];
    int differs = own[node->inputs[1]] || graph->values[node->inputs[1]].kind == FLOW_VALUE_INPUT;
    if (differs && is_watched(target) && target->variable->own_checks == 0) target->variable->own_checks = CHECKS;
  }
  flow_free(block);
  return FLOW_OK;
}

flow_status flow_watch_variables(flow_replica_set *set)
{
  const flow_graph *graph = set->lead->plan->graph;
  void *block;
  FLOW_TRY(find_own_assignments(set->lead->plan));
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
  return variable->own_checks > 0 || (variable->own_checks == 0 && variable->version != variable->agreed_version);
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

static void warn(const flow_variable *variable)
{
  char text[500];
  snprintf(text, sizeof text,
           "variable \"%.200s\": a step assigns to it what each replica computes from its own data, and the workers have different numbers "
           "in it now: reduce them first (flow.distribute.get_replica_context():all_reduce), or make it with sync = \"MEAN_ON_READ\" or "
           "\"SUM_ON_READ\"",
           variable->name);
  flow_log(FLOW_LOG_WARNING, text);
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
    for (int w = 1; w < exchange->workers && status == FLOW_OK && set->watched[i]->own_checks >= 0; w++) {
      uint64_t first = all[i], theirs = all[(size_t)w * count + i];
      if (first >> 1 == theirs >> 1) continue;
      if (set->watched[i]->own_checks == 0) status = fail_to_match(exchange, set->watched[i], 0, first, w, theirs);
      else warn(set->watched[i]);
      if (status == FLOW_OK) set->watched[i]->own_checks = -1;
    }
  flow_free(block);
  return status;
}

flow_status flow_settle_changes(flow_replica_set *set, int differ)
{
  if (differ) FLOW_TRY(compare_states(set));
  for (int i = 0; i < set->watched_count; i++) {
    set->watched[i]->agreed_version = set->watched[i]->version;
    if (set->watched[i]->own_checks > 0) set->watched[i]->own_checks--;
  }
  return FLOW_OK;
}
