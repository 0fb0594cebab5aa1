/* divide.c: which worker computes which rows of a run. First the workers announce to each other what they have and want, and compare it;
 * then each process divides its rows over its replicas. See replica_set.h.
 *
 * The announcement is where differences between workers become errors with a sentence: other plans, other steps, other rows. Without it
 * they would add up numbers of different meaning, or wait for each other for ever. It is also how an interrupt ends several workers at
 * the same step: the one that has it says so with its next run, and then all see stop_agreed and run nothing. Variables that a script has
 * changed on one of them alone are found there, too (changes.c). */
#include "run/replicas/replica_set.h"

#include <stdio.h>
#include "base/philox.h"
#include "run/replicas/plan_key.h"
#include "tensor/pairwise.h"

/* Fails with a sentence that names both workers, what differs, and the rows and steps of both. */
static flow_status fail_to_agree(const flow_replica_set *set, int other, const char *what)
{
  const flow_exchange *exchange = set->exchange;
  const flow_run_announcement *own = &set->announcements[exchange->worker], *theirs = &set->announcements[other];
  char number[24];
  snprintf(number, sizeof number, "worker %d", other);
  return flow_fail(FLOW_INVALID_STATE, "%s and this one, %s, do not do the same: %s (rows %lld and %lld, step %lld and %lld); all workers "
                   "run the same script with the same model and options", exchange->name ? exchange->name(exchange, other) : number,
                   exchange->name ? exchange->name(exchange, exchange->worker) : "another", what,
                   (long long)theirs->rows, (long long)own->rows, (long long)theirs->step, (long long)own->step);
}

/* Why a worker that announces `theirs` cannot run with one that announces `own`; NULL: it can. */
static const char *difference(const flow_run_announcement *own, const flow_run_announcement *theirs)
{
  if (theirs->plan != own->plan) return "they run different plans";
  if (theirs->step != own->step) return "they are at different steps";
  if (theirs->shares_rows != own->shares_rows) return "one shares its rows, the other has its own";
  if (theirs->numbers != own->numbers) return "numbers that their updates read differ, such as learning rates";
  if (own->shares_rows && theirs->rows != own->rows) return "their batches have different sizes";
  return NULL;
}

/* Tells the other workers what this one has, and whether it wants to stop (`stop`, or a request or an interrupt); *before: rows of those
 * in front of it, 0 if they share their rows. Sets what all agree on: stop_agreed, region_agreed, rerecord, division, and the rows of
 * all.
 *
 * An instance has room for the announcements of as many workers as there were when it was made; a cluster that has grown since makes new
 * instances. */
static flow_status agree(flow_replica_set *set, int64_t rows, int stop, int64_t *before)
{
  flow_exchange *exchange = set->exchange;
  flow_run_announcement own = {
    .rows = rows,
    .plan = set->plan_key,
    .step = set->run.given.step,
    .region = (int32_t)set->region.number,
    .shares_rows = set->shares_rows,
    .stop_requested = set->stop_requested || flow_interrupted(set->run.context) || stop,
    .division = set->division,
    .rerecord = set->rerecord != 0,
    .weights = flow_announced_weights(set),
    .numbers = flow_plan_numbers(set->lead->plan, set->numbers, set->number_count)
  };
  if (exchange->workers > set->workers) {
    return flow_fail(FLOW_INVALID_STATE, "an instance that was made for %d workers cannot run with %d: make another one", set->workers,
                     exchange->workers);
  }
  FLOW_TRY(flow_find_changes(set, &own.changes));
  if (exchange->progress) exchange->progress(exchange, own.step);
  FLOW_TRY(exchange->all_gather(exchange, &own, sizeof own, set->announcements));
  int64_t total = 0;
  int some_changed = 0, differ = 0;
  set->stop_agreed = 0;
  set->division = 0;
  set->region_agreed = own.region;
  set->weights.agreed = own.weights;
  *before = 0;
  for (int w = 0; w < exchange->workers; w++) {
    const flow_run_announcement *theirs = &set->announcements[w];
    const char *why = difference(&own, theirs);
    if (!why && (theirs->rows < 0 || __builtin_add_overflow(total, theirs->rows, &total))) why = "rows cannot be counted";
    if (why) return fail_to_agree(set, w, why);
    if (theirs->region != own.region) set->region_agreed = 0;
    if (theirs->weights < 0) set->weights.agreed = -1;
    else if (theirs->weights != own.weights && set->weights.agreed > 0) set->weights.agreed = 0;
    set->rerecord |= theirs->rerecord;
    set->division = flow_mix(set->division, theirs->division);
    if (w < exchange->worker) *before += theirs->rows;
    set->stop_agreed |= theirs->stop_requested != 0;
    some_changed |= theirs->changes != 0;
    differ |= theirs->changes != own.changes;
  }
  if (some_changed && !set->stop_agreed) FLOW_TRY(flow_settle_changes(set, differ));
  set->run.global_rows = own.shares_rows ? rows : total;
  if (own.shares_rows) *before = 0;
  set->announced = 1;
  return FLOW_OK;
}

/* A stop does not count as a failure of this worker: all have agreed on it. */
void flow_replica_set_end_run(flow_replica_set *set, flow_status status)
{
  int told = set->announced && status != FLOW_OK && status != FLOW_INTERRUPTED && set->exchange->failed;
  set->announced = 0;
  if (status != FLOW_OK) flow_doubt_weights(set);
  if (told) set->exchange->failed(set->exchange);
}

/* How many parts the rows of this process are cut into, those of other workers among them if they have the same rows; *first: the number
 * of this process' first part. Shards, which may be more at some workers than at others, are spread as flow_pairwise_begin does, so that
 * sums keep their tree. */
static int64_t find_parts(const flow_replica_set *set, int64_t *first)
{
  const flow_exchange *exchange = set->exchange;
  *first = 0;
  if (!exchange || !set->shares_rows) return set->count;
  int shards = exchange->shards;
  *first = shards > 0 ? flow_pairwise_begin(shards, exchange->workers, exchange->worker) : (int64_t)exchange->worker * set->count;
  return shards > 0 ? shards : (int64_t)exchange->workers * set->count;
}

int64_t flow_replica_set_part_rows(const flow_replica_set *set, int64_t rows)
{
  int64_t first, parts = find_parts(set, &first);
  return (rows + parts - 1) / parts;
}

int64_t flow_replica_set_local_rows(const flow_replica_set *set, int64_t rows)
{
  int64_t first, part = flow_replica_set_part_rows(set, rows);
  find_parts(set, &first);
  int64_t begin = first * part, end = (first + set->count) * part;
  return (end < rows ? end : rows) - (begin < rows ? begin : rows);
}

/* The most rows that a replica of any worker has. All have said how many rows they have, or share those of `part`. */
static int64_t most_rows(const flow_replica_set *set, int64_t part)
{
  for (int w = 0; set->exchange && !set->shares_rows && w < set->exchange->workers; w++) {
    int64_t rows = (set->announcements[w].rows + set->count - 1) / set->count;
    if (rows > part) part = rows;
  }
  return part;
}

/* Room for the rows of each replica that are put together: of another worker's replica there may be more than the capacity here. The
 * instance is then laid out again, with all replicas. */
static flow_status make_room(flow_replica_set *set, int64_t rows)
{
  flow_exchange *exchange = set->exchange;
  int local = set->count;
  if (!set->gathers || rows <= set->lead->capacity) return FLOW_OK;
  flow_instance_release_replicas(set->lead);
  FLOW_TRY(flow_instance_resize(set->lead, rows));
  return flow_instance_set_replicas(set->lead, local, NULL, exchange);
}

/* The replica's part of the run: rows [first, first + rows) of this process, which `before` rows of other workers precede. first_sample
 * counts over all workers, so that a sample draws the same random numbers wherever it is computed. */
static flow_status take_part(flow_instance *replica, int64_t first, int64_t rows, int64_t before)
{
  flow_run_part *part = &replica->part;
  part->rows = rows;
  part->first = first;
  part->scalars = replica->run->given;
  part->scalars.first_sample += before + first;
  part->scalars.rows = rows;
  part->scalars.global_rows = replica->run->global_rows;
  return flow_instance_set_rows(replica, rows);
}

/* Parts have one size; the last ones are shorter or empty. set->division tells the recordings of devices (recordings.c) how rows were
 * divided: replicas that add up among themselves all replay, or none does. */
flow_status flow_replica_set_divide(flow_replica_set *set, int64_t rows)
{
  int64_t part = flow_replica_set_part_rows(set, rows), before = 0, first;
  find_parts(set, &first);
  set->run.global_rows = rows;
  set->division = (uint64_t)rows;
  if (set->exchange) FLOW_TRY(agree(set, rows, flow_preempted(set->run.context), &before));
  int64_t gathered = most_rows(set, part);
  FLOW_TRY(make_room(set, gathered));
  for (int r = 0; r < set->count; r++) {
    int64_t begin = (first + r) * part < rows ? (first + r) * part : rows;
    set->replicas[r]->part.gathered_rows = gathered;
    FLOW_TRY(take_part(set->replicas[r], begin, rows - begin < part ? rows - begin : part, before));
  }
  return FLOW_OK;
}

flow_status flow_replica_set_divide_each(flow_replica_set *set, const int64_t *rows)
{
  int64_t total = 0, before = 0;
  set->division = 0;
  for (int r = 0; r < set->count; r++) {
    total += rows[r];
    set->division = flow_mix(set->division, (uint64_t)rows[r]);
  }
  set->run.global_rows = total;
  if (set->exchange) FLOW_TRY(agree(set, total, 0, &before));
  for (int r = 0; r < set->count; r++) {
    FLOW_TRY(take_part(set->replicas[r], 0, rows[r], before));
    before += rows[r];
  }
  return FLOW_OK;
}

void flow_instance_share_rows(flow_instance *instance, int shared)
{
  if (instance) instance->set->shares_rows = shared != 0;
}
void flow_instance_request_stop(flow_instance *instance, int stop)
{
  if (instance) instance->set->stop_requested = stop != 0;
}
int flow_instance_committed(const flow_instance *instance)
{
  return instance ? instance->run->committed : 0;
}
int flow_instance_stop_agreed(const flow_instance *instance)
{
  return instance ? instance->set->stop_agreed : 0;
}
double flow_instance_global_rows(const flow_instance *instance)
{
  return instance ? (double)instance->run->global_rows : 0;
}
