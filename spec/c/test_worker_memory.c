/* test_worker_memory.c: where a worker has no memory left. It finds that out before it tells the others of the run, so that it can run once
 * more while they wait for it. The other worker is this one's echo. */
#include "graphs.h"
#include "run/replicas/replica_set.h"

enum { ROWS = 9, COLUMNS = 5 };

/* Two workers, of which the other says and adds what this one does. */
typedef struct echo {
  flow_exchange exchange;
  int announced;
} echo;

static flow_status gather_echo(flow_exchange *exchange, const void *mine, int64_t bytes, void *all)
{
  ((echo *)exchange)->announced++;
  for (int w = 0; w < exchange->workers; w++) memmove((char *)all + w * bytes, mine, (size_t)bytes);
  return FLOW_OK;
}

static flow_status begin_echo(flow_exchange *exchange, int dtype, void *data, int64_t count, int64_t *ticket)
{
  (void)exchange;
  assert_int_equal(dtype, FLOW_FLOAT32);
  for (int64_t i = 0; i < count; i++) ((float *)data)[i] *= 2;
  *ticket = 1;
  return FLOW_OK;
}

static flow_status finish_echo(flow_exchange *exchange, int64_t ticket)
{
  (void)exchange;
  (void)ticket;
  return FLOW_OK;
}

/* Runs with the inputs; each allocation of the first run fails once, and the run is repeated. */
static void run_without_memory(flow_instance *instance, echo *other, flow_tensor *const *inputs, int count, int outputs,
                               const flow_tensor *order)
{
  flow_tensor *made[2] = { NULL };
  int failures = 0;
  for (int failed = 1; failed; failures++) {
    int announced = other->announced;
    flow_fail_allocation(failures);
    if (order) failed = flow_instance_run_rows(context, instance, inputs, count, order, 0, ROWS) != FLOW_OK;
    else failed = flow_instance_run(context, instance, inputs, count, outputs ? made : NULL) != FLOW_OK;
    flow_fail_allocation(-1);
    if (failed) {
      assert_int_equal(other->announced, announced);
      for (int i = 0; i < outputs; i++) assert_null(made[i]);
    }
  }
  assert_true(failures > 1);
  for (int i = 0; i < outputs; i++) {
    assert_int_equal(made[i]->shape[0], inputs[0]->shape[0]);
    flow_tensor_release(made[i]);
  }
}

static echo echo_of(int worker)
{
  return (echo){ .exchange = { .workers = 2, .worker = worker, .begin = begin_echo, .finish = finish_echo, .all_gather = gather_echo } };
}

static flow_plan *make_plan(void)
{
  OK(flow_trace_begin(context));
  flow_tensor *x = input_of(FLOW_FLOAT32, 2, SHAPE(-1, COLUMNS));
  return PLAN(OP1(exp, x), OP1(neg, x));
}

static void outputs_come_before_the_announcement(void **state)
{
  (void)state;
  echo other = echo_of(1);
  flow_instance *instance = instance_of(make_plan(), ROWS);
  OK(flow_instance_set_replicas(instance, 2, NULL, &other.exchange));
  run_without_memory(instance, &other, (flow_tensor *[]){ noise(2, SHAPE(ROWS, COLUMNS), 1) }, 1, 2, NULL);
}

static void ordered_rows_come_before_the_announcement(void **state)
{
  (void)state;
  echo other = echo_of(0);
  flow_instance *instance = instance_of(make_plan(), ROWS);
  flow_tensor *order = keep(zeros(FLOW_INT64, 1, SHAPE(ROWS)), release_tensor);
  for (int i = 0; i < ROWS; i++) ((int64_t *)flow_tensor_data(order))[i] = ROWS - 1 - i;
  OK(flow_instance_set_replicas(instance, 2, NULL, &other.exchange));
  run_without_memory(instance, &other, (flow_tensor *[]){ noise(2, SHAPE(ROWS, COLUMNS), 1) }, 1, 0, order);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    GRAPH_TEST(outputs_come_before_the_announcement),
    GRAPH_TEST(ordered_rows_come_before_the_announcement),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
