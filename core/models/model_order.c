/* model_order.c: the order of a model's calls where layers are called several times: what a layer keeps of its calls, such as moving
 * averages, depends on it. As in Keras (keras.src.ops.function.map_graph) and lua/flow/model/call_order.lua, calls run by depth, the number
 * of calls between them and the outputs; those of one depth in the order in which their depths become known from the last output on. */
#include <stdlib.h>
#include <string.h>

#include "models/model.h"

/* Where a call belongs: deeper ones first, among equals those whose depth was known first. -1: not known. */
typedef struct place { int call, depth, known; } place;

/* A call, and the layer or wrapper that it is one of, NULL: an operation. */
typedef struct owned { const void *part; int call; } owned;

/* What the walk needs: by value the call that gives it (-1: an input); by call its place, the next operand to visit, and the first call of
 * its layer or wrapper, of which depth_of keeps the depth; then the stack, and the calls in the order in which all before them were met. */
typedef struct walk { int *producer, *next, *first, *depth_of, *stack, *met; place *places; int met_count, known_count; } walk;

/* By part, then by call: an order for finding entries. */
static int compare_owned(const void *a, const void *b)
{
  const owned *p = a, *q = b;
  if (p->part != q->part) return (uintptr_t)p->part < (uintptr_t)q->part ? -1 : 1;
  return (p->call > q->call) - (p->call < q->call);
}

/* Finds the first call of the layer or wrapper of each call. Returns whether one has several. list: work space of a call each. */
static int find_first_calls(const flow_model_program *program, owned *list, int *first)
{
  int shared = 0;
  for (int i = 0; i < program->call_count; i++) {
    const flow_model_call *call = &program->calls[i];
    list[i] = (owned){ .part = call->layer ? (const void *)call->layer : call->wrapper, .call = i };
  }
  qsort(list, (size_t)program->call_count, sizeof *list, compare_owned);
  for (int i = 0; i < program->call_count; i++) {
    int again = i > 0 && list[i].part && list[i].part == list[i - 1].part;
    first[list[i].call] = again ? first[list[i - 1].call] : list[i].call;
    shared |= again;
  }
  return shared;
}

/* Adds the calls that `value` needs, and then its own, to those that were met; without recursion, since models may be
 * deep. A call is on the stack at most once, since its `next` leaves 0 as soon as it is on top; so the stack has room
 * for all calls. */
static void visit(const flow_model_program *program, walk *w, int value)
{
  int depth = 0;
  if (w->producer[value] >= 0 && w->next[w->producer[value]] == 0) w->stack[depth++] = w->producer[value];
  while (depth > 0) {
    int call = w->stack[depth - 1];
    const flow_model_call *own = &program->calls[call];
    if (w->next[call] == own->operand_count) {
      w->met[w->met_count++] = call;
      w->next[call]++;                 /* met */
      depth--;
      continue;
    }
    int before = w->producer[own->operands[w->next[call]++]];
    if (before >= 0 && w->next[before] == 0) w->stack[depth++] = before;
  }
}

/* A depth only grows. `known` keeps the moment of the first one, which decides between equals, as Keras' does. */
static void set_depth(walk *w, int call, int depth)
{
  place *own = &w->places[call];
  if (own->known < 0) own->known = w->known_count++;
  if (depth > own->depth) own->depth = depth;
}

/* Deepest first; among calls of one depth in the order in which Keras knows the layers, then of calls. */
static int compare_places(const void *a, const void *b)
{
  const place *p = a, *q = b;
  if (p->depth != q->depth) return p->depth > q->depth ? -1 : 1;
  if (p->known != q->known) return p->known < q->known ? -1 : 1;
  return (p->call > q->call) - (p->call < q->call);
}

/* The depth of a call is at least that of the calls of its layer that come after it, as Keras counts. A call that no output needs goes
 * last. */
static void place_calls(const flow_model_program *program, walk *w)
{
  for (int i = 0; i < program->call_count; i++) w->places[i] = (place){ .call = i, .depth = -1, .known = -1 };
  for (int i = w->met_count - 1; i >= 0; i--) {
    int call = w->met[i], first = w->first[call];
    const flow_model_call *own = &program->calls[call];
    int depth = w->places[call].depth > 0 ? w->places[call].depth : 0;
    if (w->depth_of[first] > depth) depth = w->depth_of[first];
    set_depth(w, call, depth);
    w->depth_of[first] = depth;
    for (int k = 0; k < own->operand_count; k++)
      if (w->producer[own->operands[k]] >= 0) set_depth(w, w->producer[own->operands[k]], depth + 1);
  }
  qsort(w->places, (size_t)program->call_count, sizeof *w->places, compare_places);
}

/* Nothing changes where no layer is called twice: then the order of the list is as good as any, and results do not depend on it. One block
 * holds all work space. The calls are moved, not changed: values keep their numbers. */
flow_status flow_model_order_calls(flow_model_program *program, const int *outputs, int output_count)
{
  size_t calls = (size_t)program->call_count, values = (size_t)program->value_count;
  void *block, *copy = NULL;
  FLOW_TRY(flow_alloc_zero(calls * (sizeof(owned) + sizeof(place) + 5 * sizeof(int)) + values * sizeof(int), &block));
  owned *list = block;
  walk w = { .places = (place *)(list + calls) };
  w.producer = (int *)(w.places + calls);
  w.next = w.producer + values;
  w.first = w.next + calls;
  w.depth_of = w.first + calls;
  w.stack = w.depth_of + calls;
  w.met = w.stack + calls;
  if (!find_first_calls(program, list, w.first)) {
    flow_free(block);
    return FLOW_OK;
  }
  for (size_t i = 0; i < values; i++) w.producer[i] = -1;
  for (int i = 0; i < program->call_count; i++)
    for (int k = 0; k < program->calls[i].result_count; k++) w.producer[program->calls[i].result + k] = i;
  for (int i = 0; i < output_count; i++) visit(program, &w, outputs[i]);
  place_calls(program, &w);
  flow_status status = flow_alloc(calls * sizeof *program->calls, &copy);
  if (status == FLOW_OK) {
    const flow_model_call *before = memcpy(copy, program->calls, calls * sizeof *program->calls);
    for (size_t i = 0; i < calls; i++) program->calls[i] = before[w.places[i].call];
  }
  flow_free(copy);
  flow_free(block);
  return status;
}
