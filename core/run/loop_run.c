/* loop_run.c: see loop_run.h. Shapes: a loop has `states` states, which a round reads and replaces; `rows` inputs of which round k
 * reads row k; other inputs, the same in each round; and results beyond the states, which are stacked, a row for each round.
 * graph/loop.h has the order in which a node's operands stand.
 *
 * A round begins when member 0 has set where the body's inputs and results are (place_round), and all members have met. Nothing is
 * copied between rounds: a state is made in one of two blocks that take turns (`kept`), or, where something reads the states of all
 * rounds, in its row of that history. Only what cannot be made in place is copied after the round, by member 0, before the barrier that
 * begins the next.
 *
 * A gate, if the loop has one, leaves rounds out: states stay, stacked results are zeros. If the gate is a state, a round that is left
 * out is the last one, since nothing changes it any more. */
#include "run/loop_run.h"

#include <string.h>
#include "graph/loop.h"
#include "run/binding.h"
#include "run/segment.h"

/* A random op of the body, whose key follows from the round. */
typedef struct keyed_entry { int entry; flow_attributes attributes; } keyed_entry;

typedef struct flow_loop_run {
  flow_loop     *loop;                 /* a reference */
  flow_instance *body;
  char **kept; /* [state][2]: where it is kept between rounds, if nothing reads the states of all rounds */
  keyed_entry   *keyed;
  int            keyed_count;
  char          *memory;
  _Atomic int64_t end; /* of a failed run: the round that is not done any more; written by member 0 before all meet there */
} flow_loop_run;

/* Of a result of the body; the first `states` results are the states after the round. */
static const flow_signature *result_signature(const flow_loop_run *run, int result)
{
  return &run->loop->body->values[run->loop->values[result]].signature;
}

/* ---- making ---------------------------------------------------------------------------------------------------------------------- */

/* Makes the body's instance and the memory for states. `keyed` lists the random ops of the body: their attributes are copies, so that
 * each round can have its own key. What was made before a failure is released with the instance. */
static flow_status fill(flow_loop_run *run, const flow_instance *instance)
{
  const flow_loop *loop = run->loop;
  const flow_plan *plan = loop->plan;
  void *block;
  size_t bytes = 0;
  FLOW_TRY(flow_instance_new_at(loop->plan, (double)instance->capacity, NULL, NULL, &run->body));
  run->body->run = instance->run;      /* a failure of a round is one of the run */
  FLOW_TRY(flow_alloc_zero(sizeof(char *) * 2 * (size_t)loop->states + 1, &block));
  run->kept = block;
  for (int i = 0; i < loop->states; i++) {
    size_t one = flow_value_bytes(result_signature(run, i), instance->capacity);
    if (one == FLOW_NOT_PLACED || __builtin_add_overflow(bytes, 2 * ((one + 63) & ~(size_t)63), &bytes))
      return flow_fail(FLOW_INVALID_ARGUMENT, "loop: its states take more memory than can be addressed");
  }
  FLOW_TRY(flow_alloc(bytes, &block));
  run->memory = block;
  char *next = run->memory;
  for (int i = 0; i < 2 * loop->states; i++) {
    run->kept[i] = next;
    next += (flow_value_bytes(result_signature(run, i / 2), instance->capacity) + 63) & ~(size_t)63;
  }
  for (int e = 0; e < plan->order_count; e++)
    run->keyed_count += (flow_op(plan->graph->nodes[run->body->entries[e].node].op)->flags & FLOW_OP_RANDOM) != 0;
  FLOW_TRY(flow_alloc(sizeof(keyed_entry) * (size_t)(run->keyed_count + 1), &block));
  run->keyed = block;
  run->keyed_count = 0;
  for (int e = 0; e < plan->order_count; e++) {
    if (!(flow_op(plan->graph->nodes[run->body->entries[e].node].op)->flags & FLOW_OP_RANDOM)) continue;
    keyed_entry *keyed = &run->keyed[run->keyed_count++];
    keyed->entry = e;
    run->body->entries[e].attributes = &keyed->attributes;
  }
  return FLOW_OK;
}

/* The entry has the loop from the beginning, so that a failure leaves nothing that flow_loop_runs_release does not find. */
flow_status flow_loop_run_new(flow_instance *instance, int e)
{
  const flow_graph *graph = instance->plan->graph;
  void *block;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_loop_run), &block));
  flow_loop_run *run = instance->entries[e].loop = block;
  run->loop = flow_loop_retain(flow_loop_of(graph, &graph->nodes[instance->entries[e].node]));
  flow_status status = fill(run, instance);
  instance->entries[e].body = run->body;
  return status;
}

static flow_loop_run *loop_of(const flow_instance *instance, int e) { return instance->entries ? instance->entries[e].loop : NULL; }

void flow_loop_runs_release(flow_instance *instance)
{
  for (int e = 0; e < instance->plan->order_count; e++) {
    flow_loop_run *run = loop_of(instance, e);
    if (!run) continue;
    flow_instance_release(run->body);
    flow_loop_release(run->loop);
    flow_free(run->kept);
    flow_free(run->keyed);
    flow_free(run->memory);
    flow_free(run);
  }
}

/* ---- rounds ------------------------------------------------------------------------------------------------------------------------ */

/* One round of a loop: which, and the member's that places it. */
typedef struct round {
  flow_instance    *instance;          /* that has the loop */
  const flow_entry *entry;
  flow_loop_run    *run;
  int64_t           number, row, rows; /* row: that it takes; rows: of the batch */
  int64_t           turns;             /* rounds before it that were not left out */
} round;

/* Where the node's operand is; NULL: nothing reads this output. */
static char *operand(const round *r, int index)
{
  const flow_binding *b = &r->entry->bindings[index];
  return b->mode == FLOW_BIND_NONE ? NULL : r->instance->part.bases[b->root];
}

/* Bytes of a result of one round, for the rows of this run. */
static size_t bytes_of(const round *r, int result) { return flow_value_bytes(result_signature(r->run, result), r->rows); }

/* The stack of a state before each round; NULL: nothing reads it. It is an output of the node, after its results. */
static char *history_of(const round *r, int state)
{
  return operand(r, r->entry->input_count + r->run->loop->results + state);
}

/* Where a round finds a state: in its row of the history, if there is one; else, before the first round that is done, in the node's
 * operand, and after it in that of the two kept blocks that the last round has written. */
static char *state_before(const round *r, int state)
{
  char *history = history_of(r, state);
  if (history) return history + (size_t)r->row * bytes_of(r, state);
  return r->turns == 0 ? operand(r, state) : r->run->kept[2 * state + (r->turns - 1) % 2];
}

/* Where a round puts a result; NULL: it is not wanted. The last round's states are results of the node. Those of other rounds go to the
 * next row of the history, or to the kept block that this round does not read. Further results go to this round's row of their stack. */
static char *place_of(const round *r, int result)
{
  const flow_loop *loop = r->run->loop;
  char *whole = operand(r, r->entry->input_count + result);
  if (result >= loop->states) return whole ? whole + (size_t)r->row * bytes_of(r, result) : NULL;
  if (r->number == loop->rounds - 1) return whole ? whole : r->run->kept[2 * result + r->turns % 2];
  char *history = history_of(r, result);
  if (history) return history + (size_t)flow_loop_row(loop, r->number + 1) * bytes_of(r, result);
  return r->run->kept[2 * result + r->turns % 2];
}

/* By one member: sets where the body's inputs and results are in this round, the keys of its random ops, and its rows and scalars, which
 * are those of the run. A result that nothing wants is made in the body's arena. */
static void place_round(const round *r, const flow_attributes *attributes)
{
  const flow_loop *loop = r->run->loop;
  flow_instance *body = r->run->body;
  const flow_graph *graph = body->plan->graph;
  for (int i = 0; i < graph->input_count; i++) {
    char **base = &body->part.bases[graph->inputs[i]];
    if (i < loop->states) *base = state_before(r, i);
    else if (i < loop->states + loop->rows)
      *base = operand(r, i) + (size_t)r->row * flow_value_bytes(&graph->values[graph->inputs[i]].signature, r->rows);
    else *base = operand(r, i);
  }
  for (int i = 0; i < loop->results; i++) {
    int root = body->plan->roots[body->plan->outputs[i]];
    if (!body->output_moves[i]) continue;
    char *place = place_of(r, i);
    body->part.bases[root] = place ? place : body->arena + body->offsets[root];
  }
  for (int k = 0; k < r->run->keyed_count; k++) {
    const flow_node *node = &graph->nodes[body->entries[r->run->keyed[k].entry].node];
    r->run->keyed[k].attributes = node->attributes;
    flow_loop_key(node->op, &r->run->keyed[k].attributes, attributes->loop.stream, r->row);
  }
  body->part.rows = r->instance->part.rows;
  body->part.gathered_rows = r->instance->part.gathered_rows;
  body->part.scalars = r->instance->part.scalars;
  flow_segments_start(body);
}

/* By one member, after the round: results that were not made in place. memmove, since a result may be a state that was only moved on. */
static void copy_results(const round *r)
{
  const flow_instance *body = r->run->body;
  for (int i = 0; i < r->run->loop->results; i++) {
    int root = body->plan->roots[body->plan->outputs[i]];
    char *place = place_of(r, i), *made = body->part.bases[root];
    if (place && place != made && bytes_of(r, i)) memmove(place, made, bytes_of(r, i));
  }
}

/* ---- rounds that are left out ------------------------------------------------------------------------------------------------------- */

/* Whether the gate, a state or a row input, is closed: one byte, 0 for closed (dtype bool). */
static int is_left_out(const round *r, int gate, int is_state)
{
  const char *value = is_state ? state_before(r, gate) : operand(r, gate) + r->row;
  return *value == 0;
}

/* By one member: rows of what rounds from this one on give, `count` of them, are zeros. */
static void clear_rows(const round *r, char *whole, size_t bytes, int64_t count)
{
  int64_t first = r->run->loop->reverse ? r->row - count + 1 : r->row;
  if (whole && bytes) memset(whole + (size_t)first * bytes, 0, (size_t)count * bytes);
}

static void copy_state(char *to, const char *from, size_t bytes)
{
  if (to && to != from && bytes) memcpy(to, from, bytes);
}

/* By one member: this round is not done. The states move on; what the round would have stacked is zeros. */
static void skip_round(const round *r)
{
  const flow_loop *loop = r->run->loop;
  int last = r->number == loop->rounds - 1;
  for (int i = 0; i < loop->states; i++) {
    char *before = state_before(r, i), *history = history_of(r, i);
    if (last) copy_state(operand(r, r->entry->input_count + i), before, bytes_of(r, i));
    else if (history) copy_state(history + (size_t)flow_loop_row(loop, r->number + 1) * bytes_of(r, i), before, bytes_of(r, i));
  }
  for (int i = loop->states; i < loop->results; i++) clear_rows(r, operand(r, r->entry->input_count + i), bytes_of(r, i), 1);
}

/* By one member: neither this round nor one after it is done. The states are results now, and what the remaining rounds would have
 * stacked, in the results and in the histories, is zeros. */
static void skip_rest(const round *r)
{
  const flow_loop *loop = r->run->loop;
  round next = *r;
  next.row = flow_loop_row(loop, r->number + 1);
  for (int i = 0; i < loop->states; i++) {
    copy_state(operand(r, r->entry->input_count + i), state_before(r, i), bytes_of(r, i));
    clear_rows(&next, history_of(r, i), bytes_of(r, i), loop->rounds - 1 - r->number);
  }
  for (int i = loop->states; i < loop->results; i++)
    clear_rows(r, operand(r, r->entry->input_count + i), bytes_of(r, i), loop->rounds - r->number);
}

/* ---- all rounds ------------------------------------------------------------------------------------------------------------------ */

/* By one member, before the first round. */
static void begin_history(const round *r)
{
  for (int i = 0; i < r->run->loop->states; i++)
    if (history_of(r, i)) copy_state(state_before(r, i), operand(r, i), bytes_of(r, i));
}

/* A gate that is a row is known before the run, so that all members skip the same rounds without meeting. A gate that is a state is made
 * by the round before, so that it is looked at after the meeting. The wait at the end of a round is the last barrier of the body's last
 * segment; copying results and placing the next round are member 0's, and the next meeting ends them.
 *
 * A failed run ends at the round that member 0 says before all meet: members see the verdict at different times, and all must come to the
 * same barriers. Without that a loop whose gate the failure has left open would go on for as many rounds as it may have. */
void flow_loop_run_all(flow_instance *instance, flow_region *region, flow_member *own, int e, int member, int members)
{
  const flow_entry *entry = &instance->entries[e];
  flow_loop_run *run = entry->loop;
  flow_instance *body = run->body;
  flow_member *inner = &body->members[own - instance->members];
  round r = { .instance = instance, .entry = entry, .run = run, .rows = instance->part.rows };
  const int gate = run->loop->gate, gate_is_state = gate < run->loop->states;
  double started = flow_member_start_watch(instance->run);
  r.row = flow_loop_row(run->loop, 0);
  if (member == 0) {
    atomic_store_explicit(&run->end, run->loop->rounds, memory_order_relaxed);
    flow_derived_look(body);
    begin_history(&r);
  }
  for (; r.number < run->loop->rounds; r.number++) {
    r.row = flow_loop_row(run->loop, r.number);
    if (gate >= 0 && !gate_is_state && is_left_out(&r, gate, 0)) {
      if (member == 0) skip_round(&r);
      continue;
    }
    if (member == 0) {
      if (flow_failure_is_set(&instance->run->verdict)) atomic_store_explicit(&run->end, r.number, memory_order_relaxed);
      place_round(&r, own->calls[e].attributes);
    }
    flow_members_meet(region, members);
    if (atomic_load_explicit(&run->end, memory_order_relaxed) <= r.number) break;
    if (gate >= 0 && gate_is_state && is_left_out(&r, gate, 1)) {
      if (member == 0) skip_rest(&r);
      break;
    }
    flow_bind_run(body, inner);
    for (int s = 0; s < body->plan->segment_count; s++) flow_segment_run(body, region, inner, s, member, members);
    if (member == 0) copy_results(&r);
    r.turns++;
  }
  if (member == 0 && r.turns) flow_derived_note_run(body, !flow_failure_is_set(&instance->run->verdict));
  flow_members_meet(region, members);
  flow_member_stop_watch(instance->run, own, e, started);
}
