/* test_replicas.c: one plan on several replicas: the same variables as one replica leaves, however the rows divide; what a failing replica
 * leaves; workers that add up through the communication thread. Workers are threads here, each with its own plan and variables. */
#define _GNU_SOURCE
#include "graphs.h"
#include "run/replicas/replica_set.h"
#include "autodiff/apply.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
#include "transport/communication.h"

enum { STEPS = 3, IN = 300, OUT = 120, MOST_REPLICAS = 5 };      /* the matrix is large enough to reach the optimizer as its factors */

typedef struct model { flow_variable *w, *b, *loss, *exact, *mean; flow_optimizer *optimizer; flow_plan *plan; } model;

static flow_variable *zeros_of(int sync, int64_t size)
{
  flow_variable *v;
  OK(flow_variable_new(keep(zeros(FLOW_FLOAT32, size > 0, &size), release_tensor), "v", 0, sync, &v));
  return keep(v, release_variable);
}

static flow_variable *exact_sum(void)
{
  flow_variable *v;
  OK(flow_variable_new(keep(zeros(FLOW_FLOAT64, 0, NULL), release_tensor), "v", 0, FLOW_SUM_ON_READ, &v));
  return keep(v, release_variable);
}

static flow_tensor *row_count(int op)
{
  flow_tensor *out;
  OK(flow_apply(context, op, NULL, 0, NULL, &out));
  return keep(out, release_tensor);
}

/* One step of least squares, as one of this many replicas: a mean over all rows is made of parts by dividing by all of them. */
static model make_model(int replicas, int gathers)
{
  flow_tape *tape;
  flow_arguments *arguments;
  flow_tensor *gradients[2];
  model m = { .loss = zeros_of(FLOW_SUM_ON_READ, 0), .exact = exact_sum(), .mean = zeros_of(FLOW_MEAN_ON_READ, IN) };
  m.w = variable_of(noise(2, SHAPE(IN, OUT), 1), "w");
  m.b = variable_of(noise(1, SHAPE(OUT), 2), "b");
  OK(flow_arguments_new(&arguments));
  OK(flow_arguments_set_number(arguments, "learning_rate", 1e-3));
  OK(flow_optimizer_new("Adam", NULL, arguments, &m.optimizer));
  flow_arguments_release(arguments);
  keep(m.optimizer, release_optimizer);
  flow_context_set_replicas(context, replicas);
  flow_context_set_gathers(context, gathers);
  OK(flow_trace_begin(context));
  flow_context_set_replicas(context, 1);
  flow_context_set_gathers(context, 0);
  flow_tensor *x = input_of(FLOW_FLOAT32, 2, SHAPE(-1, IN)), *labels = input_of(FLOW_INT32, 1, SHAPE(-1));
  OK(flow_tape_begin(context, &tape));
  keep(tape, release_tape);
  flow_tensor *y = OP2(add, OP2(matmul, x, reading(m.w)), reading(m.b));
  flow_tensor *loss = OP2(divide_no_nan, sum_of(OP2(sparse_cross_entropy, y, labels)), row_count(FLOW_OP_global_rows));
  OK(flow_tape_end(context, tape));
  flow_variable *variables[2] = { m.w, m.b };
  OK(flow_tape_gradient(context, tape, loss, (flow_tensor *[2]){ NULL }, variables, 2, gradients));
  OK(flow_optimizer_apply(context, m.optimizer, gradients, variables, 2));
  for (int i = 0; i < 2; i++) keep(gradients[i], release_tensor);
  OK(flow_variable_assign_add(context, m.exact, sum_of(x)));      /* a sum that is made before all rows are there, and read first */
  OK(flow_variable_assign_add(context, m.loss, loss));
  flow_attributes by_rows = { .reduce = { .count = 1 } };
  flow_tensor *mean;
  OK(flow_mean(context, x, &by_rows, &mean));
  OK(flow_variable_assign(context, m.mean, keep(mean, release_tensor)));
  m.plan = plan_of(NULL, 0);
  return m;
}

static flow_tensor *classes_of(int rows, int step)
{
  flow_tensor *labels = keep(zeros(FLOW_INT32, 1, SHAPE(rows)), release_tensor);
  for (int i = 0; i < rows; i++) ((int32_t *)flow_tensor_data(labels))[i] = (i * 7 + step) % OUT;
  return labels;
}

/* Batches that grow and shrink. */
static int rows_of_step(int rows, int step) { return step == 0 ? (rows + 1) / 2 : step == 1 ? rows : rows - 1; }

/* Trains on `rows` rows at most. */
static void train(const model *m, flow_instance *instance, int rows)
{
  (void)m;
  for (int step = 0; step < STEPS; step++) {
    int now = rows_of_step(rows, step);
    flow_tensor *inputs[2] = { noise(2, SHAPE(now, IN), 30 + (unsigned)step), classes_of(now, step) };
    flow_instance_scalars(instance, 1, step, 0);
    OK(flow_instance_run(context, instance, inputs, 2, NULL));
    assert_int_equal(flow_instance_global_rows(instance), now);
  }
}

static void expect_same_model(const model *a, const model *b)
{
  expect_close(a->w->tensor, b->w->tensor, 2e-5);      /* Adam's steps are about 1e-3 however small a gradient is */
  expect_close(a->b->tensor, b->b->tensor, 2e-5);
  expect_close(a->loss->tensor, b->loss->tensor, 1e-3);
  assert_true(fabs(*(const double *)flow_tensor_data(a->exact->tensor) - *(const double *)flow_tensor_data(b->exact->tensor)) < 1e-3);
  expect_close(a->mean->tensor, b->mean->tensor, 1e-6);
}

static void replicas_train_as_one(void **state)
{
  (void)state;
  static const int all_rows[] = { 12, 7, 3 };
  for (size_t k = 0; k < sizeof all_rows / sizeof all_rows[0]; k++) {
    model one = make_model(1, 0);
    train(&one, instance_of(one.plan, all_rows[k]), all_rows[k]);
    for (int replicas = 2; replicas <= MOST_REPLICAS; replicas += replicas == 2 ? 1 : 2)
      for (int gathers = 0; gathers < 2; gathers++) {
        model several = make_model(replicas, gathers);
        assert_int_equal(count_op(several.plan, FLOW_OP_all_gather), gathers ? 2 : 0);
        flow_instance *instance = instance_of(several.plan, (all_rows[k] + replicas - 1) / replicas);
        OK(flow_instance_set_replicas(instance, replicas, NULL, NULL));
        train(&several, instance, all_rows[k]);
        expect_same_model(&one, &several);
      }
  }
}

/* The last replica's rows are wrong: nothing is written by any. */
static void a_step_is_for_all_or_none(void **state)
{
  (void)state;
  model m = make_model(3, 1), before = make_model(3, 1);
  flow_instance *instance = instance_of(m.plan, 2);
  OK(flow_instance_set_replicas(instance, 3, NULL, NULL));
  flow_tensor *inputs[2] = { noise(2, SHAPE(6, IN), 30), classes_of(6, 0) };
  ((int32_t *)flow_tensor_data(inputs[1]))[5] = OUT;
  FAILS(flow_instance_run(context, instance, inputs, 2, NULL), FLOW_INVALID_ARGUMENT, "label");
  expect_same_bits(m.w->tensor, before.w->tensor);
  expect_same_bits(m.loss->tensor, before.loss->tensor);
  ((int32_t *)flow_tensor_data(inputs[1]))[5] = 0;
  OK(flow_instance_run(context, instance, inputs, 2, NULL));
}

/* Outputs with rows come from all replicas, and each replica has its own where inputs are given to each. */
static void outputs_are_put_together(void **state)
{
  (void)state;
  flow_tensor *outputs[6];
  flow_context_set_replicas(context, 3);
  OK(flow_trace_begin(context));
  flow_context_set_replicas(context, 1);
  flow_tensor *x = input_of(FLOW_FLOAT32, 2, SHAPE(-1, 2)), *total;
  OK(flow_sum_over_replicas(context, sum_of(x), &total));
  keep(total, release_tensor);
  flow_instance *instance = instance_of(PLAN(OP1(neg, x), total), 3);
  OK(flow_instance_set_replicas(instance, 3, NULL, NULL));
  flow_tensor *batch = noise(2, SHAPE(7, 2), 3), *negative = OP1(neg, batch);
  run(instance, &batch, 1, outputs);
  expect_same_bits(outputs[0], negative);
  expect_close(outputs[1], sum_of(batch), 1e-6);
  assert_int_equal(instance->set->replicas[2]->part.first, 6);
  assert_int_equal(instance->set->replicas[2]->part.rows, 1);

  flow_tensor *each[3] = { noise(2, SHAPE(1, 2), 4), noise(2, SHAPE(0, 2), 5), noise(2, SHAPE(3, 2), 6) };
  OK(flow_instance_run_each(context, instance, each, 1, outputs));
  for (int i = 0; i < 6; i++) keep(outputs[i], release_tensor);
  flow_tensor *sum = OP2(add, sum_of(each[0]), sum_of(each[2]));
  for (int r = 0; r < 3; r++) {
    expect_same_bits(outputs[2 * r], OP1(neg, each[r]));
    expect_close(outputs[2 * r + 1], sum, 1e-6);
  }
}

/* A member whose replica has nothing to do takes parts of the other's: slots of rows, and parts of what runs as a whole. Whether it comes
 * before the other is done is up to the machine, so a run takes several slices of a core, and there are many. */
static void members_without_rows_help(void **state)
{
  (void)state;
  enum { ROWS = 3000, COLUMNS = 128, RUNS = 1000 };
  flow_tensor *outputs[4], *each[2] = { noise(2, SHAPE(0, 400), 1), noise(2, SHAPE(ROWS, 400), 2) };
  flow_tensor *weights = noise(2, SHAPE(400, COLUMNS), 3), *expected = OP1(exp, OP2(matmul, each[1], weights)), *total;
  OK(flow_team_set_size(2));
  flow_context_set_replicas(context, 2);
  OK(flow_trace_begin(context));
  flow_context_set_replicas(context, 1);
  flow_tensor *x = input_of(FLOW_FLOAT32, 2, SHAPE(-1, 400)), *y = OP1(exp, OP2(matmul, x, weights));
  OK(flow_sum_over_replicas(context, sum_of(y), &total));
  flow_instance *instance = instance_of(PLAN(y, keep(total, release_tensor)), ROWS);
  OK(flow_instance_set_replicas(instance, 2, NULL, NULL));
  int helped = 0;
  for (int k = 0; k < RUNS && !helped; k++) {
    OK(flow_instance_run_each(context, instance, each, 1, outputs));
    expect_same_bits(outputs[2], expected);
    for (int i = 0; i < 4; i++) flow_tensor_release(outputs[i]);
    const flow_instance *late = instance->set->replicas[1];
    helped = late->member_count == 2 && late->members[0].rows == ROWS;
  }
  assert_true(helped);
  OK(flow_team_set_size(0));
}

static int place_of(const flow_plan *plan, int op)
{
  for (int k = 0; k < plan->order_count; k++)
    if (plan->graph->nodes[plan->order[k]].op == op) return k;
  return -1;
}

/* Replicas meet where a sum is read first: after everything that can be done without. */
static void sums_are_read_last(void **state)
{
  (void)state;
  flow_tensor *total;
  flow_context_set_replicas(context, 2);
  OK(flow_trace_begin(context));
  flow_context_set_replicas(context, 1);
  flow_tensor *x = input_of(FLOW_FLOAT32, 2, SHAPE(-1, 4));
  OK(flow_sum_over_replicas(context, sum_of(x), &total));
  flow_tensor *read_first = OP1(sqrt, keep(total, release_tensor)), *independent = OP1(exp, sum_of(OP1(neg, x)));
  flow_plan *plan = PLAN(read_first, independent);
  assert_true(place_of(plan, FLOW_OP_all_reduce) < place_of(plan, FLOW_OP_exp));
  assert_true(place_of(plan, FLOW_OP_exp) < place_of(plan, FLOW_OP_sqrt));
}

static void what_cannot_be_summed(void **state)
{
  (void)state;
  flow_tensor *sum;
  flow_plan *plan;
  flow_context_set_replicas(context, 2);
  OK(flow_trace_begin(context));
  flow_context_set_replicas(context, 1);
  OK(flow_sum_over_replicas(context, input_of(FLOW_FLOAT32, 2, SHAPE(-1, 2)), &sum));
  keep(sum, release_tensor);
  FAILS(flow_trace_end(context, &sum, 1, &plan), FLOW_INVALID_ARGUMENT, "replicas have different rows");
  FAILS(flow_instance_set_replicas(instance_of(make_model(1, 0).plan, 1), 0, NULL, NULL), FLOW_INVALID_ARGUMENT, "1 to 256 replicas");
}

static void memory_may_be_out(void **state)
{
  (void)state;
  model m = make_model(2, 1);
  for (int after = 0, failed = 1; failed; after++) {
    flow_instance *instance = instance_of(m.plan, 2);
    double bytes = flow_live_bytes();
    flow_fail_allocation(after);
    failed = flow_instance_set_replicas(instance, 2, NULL, NULL) != FLOW_OK;
    flow_fail_allocation(-1);
    if (failed) assert_true(flow_live_bytes() == bytes);
    train(&m, instance, 2);
  }
}

/* ---- workers --------------------------------------------------------------------------------------------------------- */

typedef struct worker {
  pthread_t      thread;
  flow_instance *instance;
  flow_context  *context;
  flow_tensor   *inputs[STEPS][2];
  flow_status    status;
  int            steps;                 /* that ran */
  char           text[256];
} worker;

static void *work(void *argument)
{
  worker *self = argument;
  for (int step = 0; step < self->steps && self->status == FLOW_OK; step++) {
    flow_instance_scalars(self->instance, 1, step, 0);
    self->status = flow_instance_run(self->context, self->instance, self->inputs[step], 2, NULL);
  }
  snprintf(self->text, sizeof self->text, "%s", flow_last_error());
  return NULL;
}

/* How workers put rows together: they fetch them, they see the same memory, the last of them could not get it, or they send them. */
typedef enum sharing { FETCHES, SHARES, CANNOT_SHARE, SENDS } sharing;

/* What a worker's sums go through: the communication thread, and a separate collect for workers that are threads. Its last one, if it
 * is to fail, brings only some of the units. */
typedef struct collector {
  flow_exchange  exchange;
  flow_exchange *inner;
  sharing        shares;
  int            collects, fails_at;       /* -1: never */
  int            asked;                    /* for common memory */
  int gathers, sums, messages, started;    /* by which the workers wait for each other */
} collector;

static flow_status begin_inner(flow_exchange *exchange, int dtype, void *data, int64_t count, int64_t *ticket)
{
  flow_exchange *inner = ((collector *)exchange)->inner;
  ((collector *)exchange)->sums++;
  return inner->begin(inner, dtype, data, count, ticket);
}

static flow_status finish_inner(flow_exchange *exchange, int64_t ticket)
{
  flow_exchange *inner = ((collector *)exchange)->inner;
  return inner->finish(inner, ticket);
}

static flow_status all_gather_inner(flow_exchange *exchange, const void *mine, int64_t bytes, void *all)
{
  flow_exchange *inner = ((collector *)exchange)->inner;
  ((collector *)exchange)->gathers++;
  return inner->all_gather(inner, mine, bytes, all);
}

static flow_status gather_inner(flow_exchange *exchange, const flow_gathering *arrays, int count)
{
  flow_exchange *inner = ((collector *)exchange)->inner;
  ((collector *)exchange)->messages++;
  return inner->gather(inner, arrays, count);
}

static flow_status start_gather_inner(flow_exchange *exchange, const flow_gathering *first)
{
  flow_exchange *inner = ((collector *)exchange)->inner;
  ((collector *)exchange)->started++;
  return inner->start_gather(inner, first);
}

static flow_status collect_from_threads(flow_exchange *exchange, void *const *arrays, int count, int64_t unit, const int64_t *first,
                                        int64_t *received)
{
  collector *self = (collector *)exchange;
  void *mine[FLOW_MOST_ARRAYS] = { NULL }, *all[3][FLOW_MOST_ARRAYS];
  int fails = self->collects++ == self->fails_at;
  memcpy(mine, arrays, sizeof *arrays * (size_t)count);
  FLOW_TRY(self->inner->all_gather(self->inner, mine, sizeof mine, all));
  for (int w = 0; w < exchange->workers; w++) {
    int64_t units = first[w + 1] - first[w];
    received[w] = fails ? (w + 1) * units / (exchange->workers + 1) : units;
    for (int i = 0; i < count && w != exchange->worker; i++)
      memcpy((char *)arrays[i] + first[w] * unit, (char *)all[w][i] + first[w] * unit, (size_t)(received[w] * unit));
  }
  FLOW_TRY(self->inner->all_gather(self->inner, mine, sizeof mine, all));
  return fails ? flow_fail(FLOW_ABORTED, "worker 7 is gone") : FLOW_OK;
}

/* As between processes: everybody maps the first one's memory for himself. */
static flow_status share_with_threads(flow_exchange *exchange, int64_t bytes, flow_shared_region *out)
{
  collector *self = (collector *)exchange;
  int mine = exchange->worker == 0 ? memfd_create("common", 0) : -1, all[3];
  if (mine >= 0) assert_int_equal(ftruncate(mine, bytes), 0);
  FLOW_TRY(self->inner->all_gather(self->inner, &mine, sizeof mine, all));
  self->asked++;
  *out = (flow_shared_region){ .number = 0 };
  if (self->shares == SHARES) {
    *out = (flow_shared_region){ mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, all[0], 0), bytes, self->asked };
    assert_true(out->memory != MAP_FAILED);
  }
  FLOW_TRY(self->inner->all_gather(self->inner, &mine, sizeof mine, all));
  if (mine >= 0) close(mine);
  return FLOW_OK;
}

static collector collector_of(flow_exchange *inner, sharing shares, int fails_at)
{
  return (collector){
    .exchange = { .workers = inner->workers,
                  .worker = inner->worker,
                  .begin = begin_inner,
                  .finish = finish_inner,
                  .all_gather = all_gather_inner,
                  .gather = gather_inner,
                  .start_gather = start_gather_inner,
                  .collect = collect_from_threads,
                  .share_region = shares == FETCHES ? NULL : share_with_threads },
    .inner = inner,
    .shares = shares,
    .fails_at = fails_at
  };
}

/* Of each step: the two factors' rows, for which those who see the same memory wait with the small sums, and the updates' shares. */
static int collects_of(sharing shares) { return shares == SENDS ? 0 : shares == SHARES ? STEPS : 3 * STEPS; }

/* This many workers with this many replicas each. own: the first has two rows, the second the others, a third none; else all share them.
 * gathers: updates are divided over the workers. fails: the last collect does. */
static void train_workers(int workers, int replicas, int rows, int own, int gathers, sharing shares, int fails)
{
  flow_local_group *group;
  worker crew[3];
  collector collectors[3];
  model models[3], one = make_model(1, 0);
  flow_communicator *links[3];
  flow_communication *threads[3];
  OK(flow_local_group_new(workers, &group));
  flow_transport_options options = { .timeout = 20, .local = group };
  train(&one, instance_of(one.plan, rows), rows);
  for (int w = 0; w < workers; w++) {
    OK(flow_communicator_open("local", w, workers, &options, &links[w]));
    OK(flow_communication_start(links[w], 0, &threads[w]));
    collectors[w] = collector_of(flow_communication_exchange(threads[w]), shares, fails ? collects_of(shares) - 1 : -1);
    if (shares == SENDS) flow_context_set_network(context, workers, 56.0 / replicas, 4); /* as many rows as are sent early */
    models[w] = make_model(workers * replicas, gathers);
    flow_context_set_network(context, 0, 0, 0);
    assert_int_equal(count_op(models[w].plan, FLOW_OP_all_gather), gathers ? 2 : 0);
    /* With its own rows a worker knows nothing of how many the others have. */
    crew[w] = (worker){ .instance = instance_of(models[w].plan, own ? (w == 1 ? rows : 2) : rows), .steps = STEPS };
    OK(flow_context_new(&crew[w].context));
    OK(flow_instance_set_replicas(crew[w].instance, replicas, NULL, &collectors[w].exchange));
    flow_instance_share_rows(crew[w].instance, !own);
    for (int step = 0; step < STEPS; step++) {
      int now = rows_of_step(rows, step), first = own && w == 1 ? 2 : 0, count = !own ? now : w == 0 ? 2 : w == 1 ? now - 2 : 0;
      flow_tensor *x = noise(2, SHAPE(now, IN), 30 + (unsigned)step), *labels = classes_of(now, step), *part[2];
      OK(flow_tensor_view(x, 2, SHAPE(count, IN), SHAPE(IN, 1), (int64_t)first * IN, &part[0]));
      OK(flow_tensor_view(labels, 1, SHAPE(count), SHAPE(1), first, &part[1]));
      for (int i = 0; i < 2; i++) crew[w].inputs[step][i] = keep(part[i], release_tensor);
    }
  }
  flow_local_group_release(group);
  for (int w = 0; w < workers; w++) assert_int_equal(pthread_create(&crew[w].thread, NULL, work, &crew[w]), 0);
  for (int w = 0; w < workers; w++) pthread_join(crew[w].thread, NULL);
  for (int w = 0; w < workers; w++) {
    if (crew[w].status != (fails ? FLOW_ABORTED : FLOW_OK)) fail_msg("worker %d: %s", w, crew[w].text);
    /* What a step waits for: what the workers announce, and the sums, of which all small ones travel together. */
    assert_int_equal(collectors[w].gathers, STEPS);
    assert_true(collectors[w].sums <= 2 * STEPS);
    /* Rows that are sent take the small sums along, so that a step waits for what is announced and for one more. */
    assert_int_equal(collectors[w].messages, shares == SENDS ? STEPS : 0);
    assert_int_equal(collectors[w].started, shares == SENDS ? STEPS : 0);
    if (shares == SENDS) assert_int_equal(collectors[w].sums, 0);
    if (gathers) assert_int_equal(collectors[w].collects, collects_of(shares));
    /* Anew for more rows; where it was refused only when an instance was made again for rows that others have. */
    if (gathers) assert_int_equal(collectors[w].asked, shares == SHARES ? 3 : shares == CANNOT_SHARE ? 2 + own : 0);
    expect_same_model(&one, &models[w]);
    expect_same_bits(models[0].w->tensor, models[w].w->tensor);
    flow_communication_stop(threads[w]);
    flow_communicator_close(links[w]);
    flow_context_release(crew[w].context);
  }
}

static void workers_train_as_one(void **state)
{
  (void)state;
  static const struct { int gathers; sharing shares; } ways[] = {
    { FLOW_GATHERS_NOT, FETCHES }, { FLOW_GATHERS_WORKERS, FETCHES }, { FLOW_GATHERS_WORKERS, SHARES },
    { FLOW_GATHERS_WORKERS, CANNOT_SHARE }, { FLOW_GATHERS_MESSAGES, SENDS } };
  for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
    train_workers(2, 1, 9, 0, ways[k].gathers, ways[k].shares, 0);
    train_workers(3, 2, 10, 0, ways[k].gathers, ways[k].shares, 0);
    train_workers(2, 2, 9, 1, ways[k].gathers, ways[k].shares, 0);
    train_workers(3, 1, 8, 1, ways[k].gathers, ways[k].shares, 0);       /* the third never has rows */
  }
}

/* Rows are sent where that takes less time than a sum, by what everybody knows: how many workers, rows and bytes there are. */
static void rows_are_sent_where_it_pays(void **state)
{
  (void)state;
  static const struct { int workers, gradient_bytes, gathers; double rows; } cases[] = {
    { 2, 4, 2, 32 }, { 2, 4, 0, 256 }, { 2, 4, 2, 80 }, { 2, 2, 0, 80 }, { 2, 4, 2, 64 }, { 4, 4, 0, 64 }, { 4, 4, 2, 0 } };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    flow_context_set_network(context, cases[k].workers, cases[k].rows, cases[k].gradient_bytes);
    model m = make_model(cases[k].workers, FLOW_GATHERS_MESSAGES);
    if (count_op(m.plan, FLOW_OP_all_gather) != cases[k].gathers) fail_msg("case %zu", k);
  }
  /* The largest rows, where they are many, go before the rest is computed: here those of the input. */
  flow_context_set_network(context, 2, 64, 4);
  model early = make_model(2, FLOW_GATHERS_MESSAGES);
  assert_int_equal(early.plan->order[0], early.plan->early_gather);
  flow_context_set_network(context, 2, 32, 4);
  model late = make_model(2, FLOW_GATHERS_MESSAGES);
  assert_int_equal(late.plan->early_gather, -1);
  flow_context_set_network(context, 4, 64, 4);
  model shared = make_model(4, FLOW_GATHERS_WORKERS);
  assert_int_equal(count_op(shared.plan, FLOW_OP_all_gather), 2);
  flow_context_set_network(context, 0, 0, 0);
}

/* A step that came as far as the updates is whole, whoever of the others is gone by then. */
static void a_lost_share_is_made(void **state)
{
  (void)state;
  for (sharing shares = FETCHES; shares <= SHARES; shares++) {
    train_workers(2, 1, 9, 0, FLOW_GATHERS_WORKERS, shares, 1);
    train_workers(3, 1, 8, 1, FLOW_GATHERS_WORKERS, shares, 1);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    GRAPH_TEST(replicas_train_as_one),     GRAPH_TEST(a_step_is_for_all_or_none), GRAPH_TEST(outputs_are_put_together),
    GRAPH_TEST(members_without_rows_help), GRAPH_TEST(sums_are_read_last),        GRAPH_TEST(what_cannot_be_summed),
    GRAPH_TEST(memory_may_be_out),         GRAPH_TEST(workers_train_as_one),      GRAPH_TEST(rows_are_sent_where_it_pays),
    GRAPH_TEST(a_lost_share_is_made),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
