/* plan_function.c: a traced plan as an element function: each worker has its own instance, which grows when a batch is larger. A
 * component of the result is an output of the plan or one of the input's components as it came; or, for a filter, the plan's one output
 * says whether the element stays.
 *
 * Lua traces the function once, when ds:map is called; from then on no Lua runs. Random ops of the plan are keyed by the pass and the
 * element's index, so that results depend neither on threads nor on what ran before; a plan without such ops draws nothing. */
#include "data/function.h"

#include "base/need.h"
#include "graph/context.h"
#include "graph/loop.h"
#include "run/instance.h"

/* Shared by all workers, and not changed by them. `inputs` counts components of the element from 0, in the order of the
 * plan's inputs. */
typedef struct plan_function {
  flow_function base;
  flow_plan    *plan;
  int           inputs[FLOW_MAX_COMPONENTS], input_count;      /* components that are the plan's inputs */
  int           outputs[FLOW_MAX_COMPONENTS], output_count;    /* from 0: of the plan; -1 - i: component i of the input */
} plan_function;

/* Of one thread: its own context, in which nothing else runs, and an instance of the plan. */
typedef struct plan_worker { flow_context *context; flow_instance *instance; } plan_worker;

/* ---- signatures ---------------------------------------------------------------------------------------------------------- */

/* The components that are named have to have the dtypes and ranks that the plan was traced for; their sizes are compared at each run. */
static flow_status check_inputs(const plan_function *self, const flow_element_spec *in)
{
  const flow_graph *graph = self->plan->graph;
  if (graph->input_count != self->input_count)
    return flow_fail(FLOW_INVALID_ARGUMENT, "map: the plan takes %d inputs, %d are named", graph->input_count, self->input_count);
  for (int i = 0; i < self->input_count; i++) {
    const flow_signature *s = &graph->values[graph->inputs[i]].signature;
    if (self->inputs[i] < 0 || self->inputs[i] >= in->count)
      return flow_fail(FLOW_INVALID_ARGUMENT, "map: there is no component %d of %d", self->inputs[i] + 1, in->count);
    const flow_component *c = &in->components[self->inputs[i]];
    if (c->dtype != s->dtype || c->rank != s->rank)
      return flow_fail(FLOW_INVALID_ARGUMENT, "map: component %d is %s, the plan was traced for %s %s", self->inputs[i] + 1,
                       flow_component_text(c), flow_dtype_name(s->dtype), flow_shape_text(s->rank, s->dims));
  }
  return FLOW_OK;
}

/* What an output of the plan looks like as a component. A size that depends on rows is -1. */
static flow_component output_component(const plan_function *self, int output)
{
  const flow_signature *s = &self->plan->graph->values[self->plan->outputs[output]].signature;
  flow_component c = { .dtype = s->dtype, .rank = s->rank };
  for (int axis = 0; axis < s->rank; axis++) c.shape[axis] = s->dims[axis] < 0 ? -1 : s->dims[axis];
  return c;
}

/* The signature of the result, from that of the plan's outputs and of the input. */
static flow_status map_spec(const flow_function *function, const flow_element_spec *in, flow_element_spec *out)
{
  const plan_function *self = (const plan_function *)function;
  FLOW_TRY(check_inputs(self, in));
  out->count = self->output_count;
  for (int i = 0; i < self->output_count; i++) {
    int from = self->outputs[i];
    if (from >= self->plan->output_count || -1 - from >= in->count)
      return flow_fail(FLOW_INVALID_ARGUMENT, "map: component %d of the result is neither an output of the function nor an input "
                       "component", i + 1);
    out->components[i] = from < 0 ? in->components[-1 - from] : output_component(self, from);
  }
  return FLOW_OK;
}

/* The element comes through as it is, so its signature does. */
static flow_status filter_spec(const flow_function *function, const flow_element_spec *in, flow_element_spec *out)
{
  const plan_function *self = (const plan_function *)function;
  FLOW_TRY(check_inputs(self, in));
  *out = *in;
  if (self->plan->output_count == 1 && output_component(self, 0).dtype == FLOW_BOOL && output_component(self, 0).rank == 0) return FLOW_OK;
  flow_component found = self->plan->output_count > 0 ? output_component(self, 0) : (flow_component){ 0 };
  return flow_fail(FLOW_INVALID_ARGUMENT, "the function of filter or take_while gives %d values, the first is %s; one scalar of dtype bool "
                   "is needed", self->plan->output_count, flow_component_text(&found));
}

/* ---- running ---------------------------------------------------------------------------------------------------------------- */

/* Room for one row; it grows with the first larger element. */
static flow_status open(const flow_function *function, void *worker)
{
  plan_worker *w = worker;
  FLOW_TRY(flow_context_new(&w->context));
  return flow_instance_new(((const plan_function *)function)->plan, 1, &w->instance);
}

/* Also after an open that failed: both releases take NULL. */
static void close(const flow_function *function, void *worker)
{
  plan_worker *w = worker;
  (void)function;
  flow_instance_release(w->instance);
  flow_context_release(w->context);
}

#define STEPS_OF_A_PASS ((int64_t)1 << 40) /* more elements than a pass has */

/* Rows that the element brings; 1 if the plan has no rows. dims[0] is -k where the input has k times the rows of the
 * trace. Whether all inputs agree is checked when the instance runs. */
static int64_t rows_of(const plan_function *self, const flow_element *in)
{
  const flow_graph *graph = self->plan->graph;
  for (int i = 0; i < self->input_count; i++) {
    const flow_signature *s = &graph->values[graph->inputs[i]].signature;
    const flow_tensor *t = in->tensors[self->inputs[i]];
    if (s->rank > 0 && s->dims[0] < 0 && t->rank > 0) return t->shape[0] / -s->dims[0];
  }
  return 1;
}

/* The instance keeps the rows of the largest element so far. The key's pass and index are the run's seed and step, so that dropout or
 * random ops of the plan draw for an element the same numbers on every thread. The step counts the passes, too, for ops with a seed of
 * their own, to which the run's seed does not matter. */
static flow_status run(const plan_function *self, plan_worker *w, const flow_element_key *key, const flow_element *in,
                       flow_tensor **outputs)
{
  flow_tensor *inputs[FLOW_MAX_COMPONENTS];
  int64_t rows = rows_of(self, in);
  if (rows > w->instance->capacity) {
    flow_instance *larger;
    FLOW_TRY(flow_instance_new(self->plan, (double)rows, &larger));
    flow_instance_release(w->instance);
    w->instance = larger;
  }
  for (int i = 0; i < self->input_count; i++) inputs[i] = in->tensors[self->inputs[i]];
  w->instance->run->given = (flow_scalars){ .seed = key->pass, .step = key->number * STEPS_OF_A_PASS + key->index };
  return flow_instance_run(w->context, w->instance, inputs, self->input_count, outputs);
}

/* Outputs that the result does not name are released; components of the input that it names are the input's references. */
static flow_status map_apply(const flow_function *function, void *worker, const flow_element_key *key, const flow_element *place,
                             flow_element *in, flow_element *out)
{
  (void)place;
  const plan_function *self = (const plan_function *)function;
  flow_tensor *made[FLOW_MAX_COMPONENTS] = { NULL };
  if (self->plan->output_count > 0) FLOW_TRY(run(self, worker, key, in, made));
  out->count = self->output_count;
  for (int i = 0; i < self->output_count; i++) {
    int from = self->outputs[i];
    out->tensors[i] = flow_tensor_retain(from < 0 ? in->tensors[-1 - from] : made[from]);
  }
  for (int i = 0; i < self->plan->output_count; i++) flow_tensor_release(made[i]);
  return FLOW_OK;
}

/* The element moves to `out` if it stays; else `out` is left empty, which drops it. */
static flow_status filter_apply(const flow_function *function, void *worker, const flow_element_key *key, const flow_element *place,
                                flow_element *in, flow_element *out)
{
  (void)place;
  flow_tensor *verdict = NULL;
  FLOW_TRY(run((const plan_function *)function, worker, key, in, &verdict));
  if (*(const unsigned char *)verdict->data) flow_element_move(out, in);
  flow_tensor_release(verdict);
  return FLOW_OK;
}

static void release(flow_function *function) { flow_plan_release(((plan_function *)function)->plan); }

static const flow_function_class map_class = {
  .name = "map", .function_bytes = sizeof(plan_function), .worker_bytes = sizeof(plan_worker), .random = 1, .spec = map_spec, .open = open,
  .apply = map_apply, .close = close, .release = release,
};
static const flow_function_class filter_class = {
  .name = "filter", .function_bytes = sizeof(plan_function), .worker_bytes = sizeof(plan_worker), .drops = 1, .random = 1,
  .spec = filter_spec, .open = open, .apply = filter_apply, .close = close, .release = release,
};

/* Whether an op draws numbers: its record says so. global_rows and row_share carry the mark because they depend on the run, and draw
 * nothing; a loop does if its body does. */
static int draws(const flow_graph *graph, const flow_node *node)
{
  if (node->op == FLOW_OP_loop) {
    const flow_graph *body = flow_loop_of(graph, node)->body;
    for (int i = 0; i < body->node_count; i++)
      if (draws(body, &body->nodes[i])) return 1;
    return 0;
  }
  return flow_op(node->op)->flags & FLOW_OP_RANDOM && node->op != FLOW_OP_global_rows && node->op != FLOW_OP_row_share;
}

/* `random` is what the plan's nodes say: a map without random ops draws nothing and leaves the position shorter. */
static flow_status make(const flow_function_class *class, flow_plan *plan, const int *inputs, int input_count, flow_function **out)
{
  *out = NULL;
  if (!plan || input_count < 0 || input_count > FLOW_MAX_COMPONENTS || plan->output_count > FLOW_MAX_COMPONENTS)
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s: a plan with at most %d inputs and outputs is needed", class->name, FLOW_MAX_COMPONENTS);
  FLOW_TRY(flow_function_new(class, out));
  plan_function *self = (plan_function *)*out;
  self->plan = flow_plan_retain(plan);
  self->input_count = input_count;
  for (int i = 0; i < input_count; i++) self->inputs[i] = inputs[i];
  self->base.random = 0;
  for (int k = 0; k < plan->order_count; k++) self->base.random |= draws(plan->graph, &plan->graph->nodes[plan->order[k]]);
  self->base.identity = flow_mix(self->base.identity, (uint64_t)plan->order_count);
  return FLOW_OK;
}

/* inputs: components of the element that are the plan's inputs, in its order; outputs: of the result, from 0: outputs of the plan, -1 -
 * i: component i of the element as it came. They are checked against signatures in map_spec. Retains the plan. */
flow_status flow_function_from_plan(flow_plan *plan, const int *inputs, int input_count, const int *outputs, int output_count,
                                    flow_function **out)
{
  FLOW_NEED(plan, out);
  if (input_count > 0) FLOW_NEED(inputs);
  if (output_count > 0) FLOW_NEED(outputs);
  if (output_count < 1 || output_count > FLOW_MAX_COMPONENTS)
    return flow_fail(FLOW_INVALID_ARGUMENT, "map: a result has 1 to %d components, got %d", FLOW_MAX_COMPONENTS, output_count);
  FLOW_TRY(make(&map_class, plan, inputs, input_count, out));
  plan_function *self = (plan_function *)*out;
  self->output_count = output_count;
  for (int i = 0; i < output_count; i++) self->outputs[i] = outputs[i];
  return FLOW_OK;
}

/* The plan's one output is checked when the function meets a signature (filter_spec). */
flow_status flow_function_filter(flow_plan *plan, const int *inputs, int input_count, flow_function **out)
{
  FLOW_NEED(plan, out);
  if (input_count > 0) FLOW_NEED(inputs);
  return make(&filter_class, plan, inputs, input_count, out);
}
