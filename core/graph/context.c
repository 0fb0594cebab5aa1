/* context.c: contexts, and the stack of traces that flow.h offers. A context is for one thread at a time; flow_interrupt and
 * flow_preempt may be called by any thread, and by signal handlers: they store one number. */
#include "graph/context.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/need.h"
#include "base/philox.h"
#include "graph/tape.h"
#include "graph/variable.h"
#include "tensor/place.h"

/* Everything is zero at first: one replica, the CPU, float32, no trace. *out: for flow_context_release. */
flow_status flow_context_new(flow_context **out)
{
  void *block;
  if (!out) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_context_new: out is NULL");
  FLOW_TRY(flow_alloc_zero(sizeof(flow_context), &block));
  *out = block;
  (*out)->scopes = &(*out)->own;
  (*out)->own.context = *out;
  atomic_init(&(*out)->interrupted, 0);
  return FLOW_OK;
}

/* Ends all tapes and traces of these scopes, innermost first; symbolic tensors of them are closed from then on. Tapes first, since
 * those of a trace hold references to it. */
static void close_scopes(flow_scopes *scopes)
{
  while (scopes->tape_count) flow_tape_release(scopes->tapes[--scopes->tape_count]);
  while (scopes->trace_count) {
    flow_graph *graph = scopes->traces[--scopes->trace_count];
    graph->closed = 1;
    flow_graph_release(graph);
  }
  flow_lent_clear(scopes);
}

/* Scopes that the caller made are released before (flow_scopes_release); plans and tensors may live on. */
void flow_context_release(flow_context *context)
{
  if (!context) return;
  close_scopes(&context->own);
  flow_profile_release(context->profile);
  for (int i = 0; i < FLOW_MOST_DEVICES; i++) flow_place_release(context->places[i]);
  flow_free(context);
}

/* Scopes for one more coroutine; flow_scopes_enter makes them the present ones. */
flow_status flow_scopes_new(flow_context *context, flow_scopes **out)
{
  void *block;
  if (!context || !out) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_scopes_new: %s is NULL", context ? "out" : "context");
  *out = NULL;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_scopes), &block));
  *out = block;
  (*out)->context = context;
  (*out)->autocast = FLOW_FLOAT32;
  return FLOW_OK;
}

/* Coroutines of Lua take turns in one context, each with its own open traces and tapes: the caller enters those of the running one before
 * any other call. NULL: the context's own. The caller that made scopes releases them before the context. */
void flow_scopes_enter(flow_context *context, flow_scopes *scopes)
{
  if (!context) return;
  context->scopes = scopes ? scopes : &context->own;
}

/* If they are the present ones, the context's own take their place. */
void flow_scopes_release(flow_scopes *scopes)
{
  if (!scopes) return;
  if (scopes->context->scopes == scopes) scopes->context->scopes = &scopes->context->own;
  close_scopes(scopes);
  flow_free(scopes);
}

/* 0x666c6f77 is "flow": keeps seeds of contexts apart from other uses of the same numbers. seed: a whole number that a double holds
 * exactly, which callers check. */
void flow_context_seed(flow_context *context, double seed)
{
  if (!context) return;
  context->seed = flow_mix((uint64_t)(int64_t)seed, 0x666c6f77);
  context->draws = 0;
}

/* blank: layers leave their variables at zero, as where a file fills them next. */
void flow_context_set_blank(flow_context *context, int blank)
{
  if (context) context->blank = blank != 0;
}
/* For traces that begin from now on, and for eager ops: a row's bits do not depend on the other rows of the batch. */
void flow_context_set_exact(flow_context *context, int exact)
{
  if (context) context->exact = exact != 0;
}
int flow_context_exact(const flow_context *context)
{
  return context ? context->exact : 0;
}

/* How many replicas the next traces are for; fewer than 2 count as one. */
void flow_context_set_replicas(flow_context *context, int count)
{
  if (context) context->replicas = count;
}
/* The dtype in which float32 variables are read in these scopes, FLOW_FLOAT32: as they are; returns the one before, which the caller sets
 * back. */
int flow_context_set_autocast(flow_context *context, int dtype)
{
  if (!context) return 0;
  int before = context->scopes->autocast;
  context->scopes->autocast = dtype;
  return before;
}
void flow_context_set_gathers(flow_context *context, int gathers)
{
  if (context) context->gathers = gathers;
}
/* What the next traces know of the cluster: its workers, the rows of a worker's batch and the bytes of an element of a gradient on its way.
 * Plans choose with it what they exchange. */
void flow_context_set_network(flow_context *context, int workers, double rows, int gradient_bytes)
{
  if (!context) return;
  context->network = (flow_network){ .workers = workers, .rows = rows, .gradient_bytes = gradient_bytes };
}

/* How many bytes of gradients are added up at once; 0: the library chooses. */
void flow_context_set_bucket_bytes(flow_context *context, double bytes)
{
  if (context) context->bucket_bytes = bytes;
}
int flow_context_replicas(const flow_context *context)
{
  return context && context->replicas > 1 ? context->replicas : 1;
}

/* 31 bits: Lua has doubles, and files keep seeds as 32-bit integers. */
double flow_context_next_seed(flow_context *context)
{
  if (!context) return 0;
  return (double)(flow_mix(context->seed, context->draws++) >> 33);
}

/* All that random ops and initializers need to go on as if nothing had happened. Returns the length of the text. */
int flow_context_save(const flow_context *context, char *text, int size)
{
  flow_text out = flow_text_into(text, size);
  if (!context) return 0;
  flow_text_add(&out, "flow-random-1 %016" PRIx64 " %" PRIu64, context->seed, context->draws);
  return out.length;
}

/* A failure leaves the state unchanged. */
flow_status flow_context_restore(flow_context *context, const char *state)
{
  uint64_t seed, draws;
  int length = 0;
  if (!state || sscanf(state, "flow-random-1 %" SCNx64 " %" SCNu64 "%n", &seed, &draws, &length) != 2 || state[length] != '\0')
    return flow_fail(FLOW_CORRUPT_DATA, "the text is not a saved random state");
  context->seed = seed;
  context->draws = draws;
  return FLOW_OK;
}

/* Relaxed loads and stores in these four: the number is all that is said, and no other memory is read because of it. A lock-free atomic is
 * also what C11 permits in a signal handler. */
void flow_interrupt(flow_context *context, int raised)
{
  if (!context) return;
  atomic_store_explicit(&context->interrupted, raised, memory_order_relaxed);
}

int flow_interrupted(const flow_context *context)
{
  if (!context) return 0;
  return atomic_load_explicit(&((flow_context *)(uintptr_t)context)->interrupted, memory_order_relaxed);
}

void flow_preempt(flow_context *context)
{
  if (!context) return;
  atomic_store_explicit(&context->preempted, 1, memory_order_relaxed);
}

int flow_preempted(const flow_context *context)
{
  if (!context) return 0;
  return atomic_load_explicit(&((flow_context *)(uintptr_t)context)->preempted, memory_order_relaxed);
}

int flow_trace_depth(const flow_context *context)
{
  return context ? context->scopes->trace_count : 0;
}
/* Of the innermost trace; 0: none is open. */
int flow_trace_replicas(const flow_context *context)
{
  if (!context) return 0;
  const flow_graph *graph = flow_context_trace(context);
  return graph ? graph->replicas : 0;
}

int flow_tape_depth(const flow_context *context)
{
  return context ? context->scopes->tape_count : 0;
}

/* What the context says now about precision, replicas, the network and the device holds for the whole trace. */
flow_status flow_trace_begin(flow_context *context)
{
  FLOW_NEED(context);
  flow_scopes *scopes = context->scopes;
  if (scopes->trace_count == FLOW_MAX_TRACES)
    return flow_fail(FLOW_INVALID_STATE, "%d traces are open within each other: does the traced function call itself?", FLOW_MAX_TRACES);
  flow_graph *graph;
  FLOW_TRY(flow_graph_new(&graph));
  graph->exact = context->exact;
  graph->replicas = context->replicas > 1 ? context->replicas : 1;
  graph->gathers = context->gathers;
  graph->network = context->network;
  graph->place = flow_place_retain(flow_context_place(context));
  scopes->traces[scopes->trace_count++] = graph;
  return FLOW_OK;
}

/* For calls that make sense only while a trace is open. who: the function that was called, for the message. *out: borrowed; NULL after the
 * failure. */
flow_status flow_innermost_trace(flow_context *context, const char *who, flow_graph **out)
{
  *out = flow_context_trace(context);
  if (!*out) return flow_fail(FLOW_INVALID_STATE, "%s: no trace is open", who);
  return FLOW_OK;
}

/* Shapes of a trace are known except for the batch dimension, -1: kernels take any number of rows up to a capacity, and no other size
 * varies from run to run. *out: a symbolic tensor, a new reference. */
flow_status flow_trace_input(flow_context *context, int dtype, int rank, const int64_t *shape, flow_tensor **out)
{
  FLOW_NEED(context, out);
  if (rank > 0) FLOW_NEED(shape);
  flow_graph *graph;
  int value;
  FLOW_TRY(flow_innermost_trace(context, "flow_trace_input", &graph));
  if (rank < 0 || rank > FLOW_MAX_RANK || !flow_dtype_name(dtype))
    return flow_fail(FLOW_INVALID_ARGUMENT, "input of a trace: rank %d or dtype %d does not exist", rank, dtype);
  flow_signature signature = { .dtype = dtype, .rank = rank };
  for (int i = 0; i < rank; i++) {
    if (shape[i] < 0 && i > 0)
      return flow_fail(FLOW_UNSUPPORTED, "input of a trace: dimension %d is unknown; only the batch dimension may be", i + 1);
    signature.dims[i] = shape[i];
  }
  FLOW_TRY(flow_graph_input(graph, &signature, &value));
  return flow_graph_tensor(graph, value, out);
}

/* The tensor is kept and not copied, unless it has gaps. */
flow_status flow_trace_constant(flow_context *context, flow_tensor *tensor, flow_tensor **out)
{
  FLOW_NEED(context, tensor, out);
  flow_graph *graph;
  int value;
  FLOW_TRY(flow_innermost_trace(context, "flow_trace_constant", &graph));
  FLOW_TRY(flow_check_concrete("constant of a trace", tensor));
  FLOW_TRY(flow_graph_constant(graph, tensor, &value));
  flow_signature signature = graph->values[value].signature;
  return flow_tensor_new_symbolic(graph, value, signature.dtype, signature.rank, signature.dims, out);
}

/* Symbolic tensors of the trace may live on; they are closed, and every op on them fails with a sentence that says so. */
void flow_trace_abort(flow_context *context)
{
  if (!context) return;
  flow_scopes *scopes = context->scopes;
  if (!scopes->trace_count) return;
  flow_graph *graph = scopes->traces[--scopes->trace_count];
  graph->closed = 1;
  for (int i = scopes->tape_count - 1; i >= 0; i--)   /* tapes over this trace end with it */
    if (scopes->tapes[i]->graph == graph) flow_tape_end(context, scopes->tapes[i]);
  flow_graph_release(graph);
}

/* The input of the op that made `tensor`, for losses that want the logits that went into a softmax. Declared in context.h. NULL is also
 * what comes of missing memory: the caller then does without. *attributes: those of that op. The result is a new reference to its first
 * operand; NULL: another op made the tensor, or nothing recorded it. */
flow_tensor *flow_producer_input(flow_context *context, flow_tensor *tensor, int op, flow_attributes *attributes)
{
  flow_graph *graph = tensor->graph;
  int value = tensor->value;
  if (!graph && !(graph = flow_tapes_find(context, tensor, &value))) return NULL;
  const flow_value *v = &graph->values[value];
  if (v->kind != FLOW_VALUE_RESULT || graph->nodes[v->node].op != op) return NULL;
  flow_tensor *input;
  *attributes = graph->nodes[v->node].attributes;
  return flow_graph_tensor(graph, graph->nodes[v->node].inputs[0], &input) == FLOW_OK ? input : NULL;
}
