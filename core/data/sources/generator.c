/* generator.c: see generator.h; and the dataset of a generator. */
#include "data/sources/generator.h"

#include "base/need.h"
#include "base/team.h"

/* A question that a thread of the pass has, on that thread's stack, until it is answered or withdrawn. argument is borrowed from the
 * asking thread. */
typedef struct question {
  int              callback, answered;
  int64_t          pass;
  const flow_element *argument;
  flow_element     element;            /* the answer */
  flow_dataset    *dataset;
  flow_failure     failure;
  struct question *next;
} question;

enum { IDLE, WANTED, DONE };

/* state: IDLE, nothing is wanted; WANTED, the pump's thread makes an element; DONE, the element (or failure) waits for the caller.
 * `gate` guards all fields. ready wakes the caller, room the pump's thread and those that ask. */
typedef struct flow_pump {
  flow_gate    gate;
  flow_thread  thread;
  flow_iterator *iterator;
  flow_status (*produce)(flow_iterator *, flow_element *);
  int          state;
  flow_element element;
  flow_failure failure;
  question    *first, *asked;          /* waiting; the one that the caller was told */
  int64_t      passes;
} flow_pump;

/* ---- asking -------------------------------------------------------------------------------------------------------------- */

/* With the gate's lock held. At the end, so that questions are told in the order in which they came. */
static void append(flow_pump *pump, question *q)
{
  question **end = &pump->first;
  while (*end) end = &(*end)->next;
  *end = q;
}

/* Whether it waits in the list, or was told to the caller, whose answer then finds nothing. */
static void withdraw(flow_pump *pump, question *q)
{
  if (pump->asked == q) pump->asked = NULL;
  for (question **at = &pump->first; *at; at = &(*at)->next) {
    if (*at != q) continue;
    *at = q->next;
    return;
  }
}

/* Waits for the answer. If the pass is cancelled meanwhile the question is withdrawn, since it is on this stack; an answer that came at
 * the same moment is taken. */
flow_status flow_ask(flow_iterator *iterator, int callback, int64_t pass, const flow_element *argument, flow_element *element,
                     flow_dataset **dataset)
{
  flow_pump *pump = iterator->pump;
  if (!pump) return flow_fail(FLOW_INTERNAL, "a generator is used without a caller that runs it");
  question q = { .callback = callback, .pass = pass, .argument = argument };
  flow_status status = FLOW_OK;
  flow_gate_lock(&pump->gate);
  append(pump, &q);
  pthread_cond_broadcast(&pump->gate.ready);
  while (!q.answered && status == FLOW_OK) status = flow_gate_wait(&pump->gate, &pump->gate.room);
  if (!q.answered) withdraw(pump, &q);
  else status = FLOW_OK;
  flow_gate_unlock(&pump->gate);
  if (status == FLOW_OK) status = flow_failure_raise(&q.failure);
  if (status == FLOW_OK) {
    if (element) flow_element_move(element, &q.element);
    if (dataset) {
      *dataset = q.dataset;
      q.dataset = NULL;
      if (!*dataset) status = flow_fail(FLOW_INVALID_ARGUMENT, "the function gave no dataset");
    }
  }
  flow_element_clear(&q.element);
  flow_dataset_release(q.dataset);
  return status;
}

/* From 0. Each cursor that asks Lua takes one when it opens, so that Lua tells passes over one function apart. */
int64_t flow_next_pass(flow_iterator *iterator)
{
  flow_pump *pump = iterator->pump;
  if (!pump) return 0;
  flow_gate_lock(&pump->gate);
  int64_t pass = pump->passes++;
  flow_gate_unlock(&pump->gate);
  return pass;
}

/* Called by the thread that calls Lua, after flow_iterator_next gave it a question. FLOW_INVALID_STATE: the question was withdrawn, or
 * none was asked. */
flow_status flow_iterator_answer(flow_iterator *iterator, const flow_element *element, flow_dataset *dataset, const char *error)
{
  flow_pump *pump = iterator ? iterator->pump : NULL;
  if (!pump || flow_iterator_forked(iterator)) return flow_fail(FLOW_INVALID_STATE, "flow_iterator_answer: nothing was asked");
  if (element && (element->count < 0 || element->count > FLOW_MAX_COMPONENTS)) /* a negative count is a question's */
    return flow_fail(FLOW_INVALID_ARGUMENT, "flow_iterator_answer: the element has %d components, at most %d are possible", element->count,
                     FLOW_MAX_COMPONENTS);
  flow_gate_lock(&pump->gate);
  question *q = pump->asked;
  if (q) {
    if (error) flow_failure_take(&q->failure, flow_fail(FLOW_INVALID_ARGUMENT, "%s", error));
    if (element) flow_element_share(&q->element, element);
    q->dataset = flow_dataset_retain(dataset);
    q->answered = 1;
    pump->asked = NULL;
    pthread_cond_broadcast(&pump->gate.room);
  }
  flow_gate_unlock(&pump->gate);
  return q ? FLOW_OK : flow_fail(FLOW_INVALID_STATE, "flow_iterator_answer: nothing was asked");
}

/* ---- the pump ---------------------------------------------------------------------------------------------------------------- */

/* Runs the pass on its own thread: it may wait for answers, while the caller's thread gives them. It computes alone. */
static void *pump_main(void *argument)
{
  flow_pump *pump = argument;
  flow_team_leave();
  flow_gate_lock(&pump->gate);
  for (;;) {
    flow_status status = FLOW_OK;
    while (pump->state != WANTED && status == FLOW_OK) status = flow_gate_wait(&pump->gate, &pump->gate.room);
    if (status != FLOW_OK) break;
    flow_gate_unlock(&pump->gate);
    status = pump->produce(pump->iterator, &pump->element);
    flow_failure_clear(&pump->failure);
    flow_failure_take(&pump->failure, status);
    flow_gate_lock(&pump->gate);
    pump->state = DONE;
    pthread_cond_broadcast(&pump->gate.ready);
  }
  flow_gate_unlock(&pump->gate);
  return NULL;
}

/* The thread starts with the first element (flow_pump_next). */
static flow_status pump_new(flow_iterator *iterator, flow_status (*produce)(flow_iterator *, flow_element *))
{
  void *block;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_pump), &block));
  flow_pump *pump = block;
  pump->iterator = iterator;
  pump->produce = produce;
  flow_gate_open(&pump->gate, iterator);
  iterator->pump = pump;
  return FLOW_OK;
}

/* A question in the form of an element: count is -1 - (components of the argument). */
static void tell(const question *q, flow_element *out)
{
  *out = (flow_element){ 0 };
  if (q->argument) flow_element_share(out, q->argument);
  out->count = -1 - out->count;
  out->callback = q->callback;
  out->pass = q->pass;
}

/* Gives an element, or a question, whichever comes first. After a question the caller must answer before it asks for the next element;
 * the state stays WANTED meanwhile. */
flow_status flow_pump_next(flow_iterator *iterator, flow_status (*produce)(flow_iterator *, flow_element *), flow_element *out)
{
  if (!iterator->pump) FLOW_TRY(pump_new(iterator, produce));
  flow_pump *pump = iterator->pump;
  if (pump->asked) return flow_fail(FLOW_INVALID_STATE, "the iterator waits for an answer");
  if (!pump->thread.started) FLOW_TRY(flow_pass_thread_start(iterator, &pump->thread, pump_main, pump));
  flow_status status = FLOW_OK;
  flow_gate_lock(&pump->gate);
  if (pump->state == IDLE) {
    pump->state = WANTED;
    pthread_cond_broadcast(&pump->gate.room);
  }
  while (status == FLOW_OK && pump->state != DONE && !pump->first) status = flow_gate_wait(&pump->gate, &pump->gate.ready);
  if (status == FLOW_OK && pump->state == DONE) {
    pump->state = IDLE;
    flow_element_move(out, &pump->element);
    status = flow_failure_raise(&pump->failure);
  } else if (status == FLOW_OK) {
    pump->asked = pump->first;
    pump->first = pump->asked->next;
    pump->asked->next = NULL;
    tell(pump->asked, out);
  }
  flow_gate_unlock(&pump->gate);
  return status;
}

/* The pass was cancelled before, so that the pump's thread is on its way out. */
void flow_pump_stop(flow_iterator *iterator)
{
  if (iterator->pump) flow_thread_join(&iterator->pump->thread);
}

/* After the pass: no thread waits for an answer any more. */
void flow_pump_release(flow_iterator *iterator)
{
  flow_pump *pump = iterator->pump;
  if (!pump) return;
  iterator->pump = NULL;
  flow_gate_close(&pump->gate);
  flow_element_clear(&pump->element);
  flow_free(pump);
}

/* ---- the dataset ---------------------------------------------------------------------------------------------------------------- */

typedef struct generator { flow_dataset base; int callback; } generator;
typedef struct generator_cursor { flow_cursor base; int64_t pass; int ended; } generator_cursor;

/* Each pass starts the generator from its beginning: Lua tells passes apart by their number. */
static flow_status open(flow_cursor *cursor)
{
  ((generator_cursor *)cursor)->pass = flow_next_pass(cursor->iterator);
  return FLOW_OK;
}

/* After its end a generator is not asked again. */
static flow_status next(flow_cursor *cursor, flow_element *out)
{
  generator_cursor *at = (generator_cursor *)cursor;
  if (at->ended) return FLOW_OK;
  FLOW_TRY(flow_ask(cursor->iterator, ((generator *)cursor->dataset)->callback, at->pass, NULL, out, NULL));
  if (out->count == 0) at->ended = 1;
  else return flow_element_check("from_generator", &cursor->dataset->spec, out);
  return FLOW_OK;
}

static const flow_dataset_class class = {
  .name = "from_generator", .dataset_bytes = sizeof(generator), .cursor_bytes = sizeof(generator_cursor), .open = open, .next = next,
};

/* callback: the number by which Lua knows its function. How many elements come is not known, and positions are found by asking for all
 * elements before them. */
flow_status flow_dataset_from_generator(int callback, const flow_component *components, int count, flow_dataset **out)
{
  FLOW_NEED(out);
  if (count > 0) FLOW_NEED(components);
  flow_element_spec spec;
  *out = NULL;
  FLOW_TRY(flow_spec_of("from_generator", components, count, &spec));
  FLOW_TRY(flow_dataset_new(&class, NULL, 0, out));
  generator *self = (generator *)*out;
  self->callback = callback;
  self->base.calls_back = 1;
  self->base.cardinality = FLOW_UNKNOWN;
  self->base.spec = spec;
  return FLOW_OK;
}
