/* shuffle.c: tf.data's shuffle, number for number: a ring of `size` slots; each output is drawn from the filled part, the element at
 * its start moves into the hole, and one more element comes in (TensorFlow, core/kernels/data/shuffle_dataset_op.cc).
 *
 * Random numbers are Philox4x32-10 words in order, keyed by a pair of seeds. With reshuffling, pass number k takes its pair from
 * words 2k and 2k + 1 of a generator that is keyed by the dataset's pair; without, every pass takes the dataset's pair itself. */
#include "data/dataset.h"
#include "base/need.h"

#include <stdio.h>
#include <stdlib.h>

static const double seconds_of_silence = 2;      /* a buffer that fills for longer tells how far it is, and again after as long */

typedef struct shuffle { flow_dataset base; int64_t size; int reshuffle; } shuffle;

/* A sequence of 32-bit words; four come from each block, so the last block is kept. */
typedef struct random_words { uint64_t seed[2]; int64_t taken; flow_philox_block block; } random_words;

typedef struct shuffle_cursor {
  flow_cursor    base;
  random_words   words;
  flow_tensor  **slots;            /* [capacity][components]; slot i of the ring is i % size */
  int            capacity;
  int64_t        start, end;       /* filled: start .. end - 1 */
  int64_t        pulled;           /* from the input */
  int            ended;
  flow_element   element;
} shuffle_cursor;

/* Word number `taken` of the sequence; Philox's counter is its number / 4. */
static uint32_t next_word(random_words *words)
{
  int64_t place = words->taken % 4;
  if (place == 0) words->block = flow_philox(words->seed[0], (uint64_t)(words->taken / 4), words->seed[1]);
  words->taken++;
  return words->block.word[place];
}

/* Word number `index` of the sequence that this pair of seeds is the key of. */
static uint32_t word_at(const uint64_t *seed, int64_t index)
{
  return flow_philox(seed[0], (uint64_t)(index / 4), seed[1]).word[index % 4];
}

/* The pair of this pass: with reshuffling two words of the dataset's sequence, by the number of the pass; else the dataset's own. */
static flow_status open(flow_cursor *cursor)
{
  shuffle_cursor *at = (shuffle_cursor *)cursor;
  flow_draw draw;
  FLOW_TRY(flow_cursor_draw(cursor, &draw));
  at->words = (random_words){ .seed = { draw.seed[0], draw.seed[1] } };
  if (((shuffle *)cursor->dataset)->reshuffle) {
    at->words.seed[0] = word_at(draw.seed, 2 * draw.number);
    at->words.seed[1] = word_at(draw.seed, 2 * draw.number + 1);
  }
  return flow_cursor_open_all(cursor);
}

/* index counts over the whole pass; its slot is the remainder. */
static flow_tensor **slot_of(shuffle_cursor *at, int64_t index)
{
  return at->slots + index % ((shuffle *)at->base.dataset)->size * at->base.dataset->spec.count;
}

/* Room for the ring's first `slots` slots: it grows while it is filled for the first time, since the data may be shorter. */
static flow_status make_room(shuffle_cursor *at, int64_t slots)
{
  int64_t size = ((shuffle *)at->base.dataset)->size;
  int components = at->base.dataset->spec.count;
  if (slots > size) slots = size;
  if (slots <= at->capacity) return FLOW_OK;
  if (slots > INT32_MAX / components)
    return flow_fail(FLOW_UNSUPPORTED, "shuffle: a buffer of more than %d elements", INT32_MAX / components);
  int entries = at->capacity * components;
  FLOW_TRY(flow_grow(&at->slots, sizeof *at->slots, (int)slots * components, &entries));
  at->capacity = entries / components;
  return FLOW_OK;
}

/* The element's tensors move into the slot; `element` is empty afterwards. ended: there was none. */
static flow_status pull_into(shuffle_cursor *at, int64_t index)
{
  FLOW_TRY(flow_cursor_pull(at->base.inputs[0], &at->element));
  flow_tensor **slot = slot_of(at, index);
  for (int i = 0; i < at->element.count; i++) slot[i] = at->element.tensors[i];
  at->ended = at->element.count == 0;
  at->pulled += !at->ended;
  at->element.count = 0;
  return FLOW_OK;
}

/* As TensorFlow says it. *said is when something was said last. */
static void tell(const shuffle_cursor *at, double *said)
{
  double now = flow_clock();
  if (now - *said < seconds_of_silence) return;
  int64_t target = ((shuffle *)at->base.dataset)->size, known = at->base.dataset->cardinality;
  long long filled = at->end - at->start;
  char text[160];
  *said = now;
  if (known >= 0 && known < target) target = known;
  snprintf(text, sizeof text, "filling up shuffle buffer (this may take a while): %lld of %lld", filled, (long long)target);
  flow_log(FLOW_LOG_INFO, text);
}

/* Filling a large buffer may take minutes: the first time it says how far it is. */
static flow_status fill(shuffle_cursor *at)
{
  int64_t size = ((shuffle *)at->base.dataset)->size;
  int first = size - (at->end - at->start) > 1;      /* later there is one place to fill at a time */
  double said = first ? flow_clock() : 0;
  while (!at->ended && at->end - at->start < size) {
    FLOW_TRY(make_room(at, at->end + 1));
    FLOW_TRY(pull_into(at, at->end));
    at->end += !at->ended;
    if (first && !at->ended) tell(at, &said);
  }
  return FLOW_OK;
}

/* The drawn slot gets the ring's first element, and the ring begins one later: no other element moves. */
static flow_status next(flow_cursor *cursor, flow_element *out)
{
  shuffle_cursor *at = (shuffle_cursor *)cursor;
  int count = cursor->dataset->spec.count;
  FLOW_TRY(fill(at));
  if (at->start == at->end) return FLOW_OK;
  flow_tensor **drawn = slot_of(at, at->start + next_word(&at->words) % (at->end - at->start)), **first = slot_of(at, at->start);
  for (int i = 0; i < count; i++) {
    out->tensors[i] = drawn[i];
    drawn[i] = first[i];
  }
  out->count = count;
  at->start++;
  return FLOW_OK;
}

/* ---- skipping: draws on numbers instead of elements, then brings in only what is left in the ring ------------------------- */

typedef struct place { int64_t number, index; } place;      /* element `number` of the input belongs into ring slot `index` */

/* By the number of the element, which is the order in which they come from the input. */
static int compare_places(const void *a, const void *b)
{
  int64_t x = ((const place *)a)->number, y = ((const place *)b)->number;
  return (x > y) - (x < y);
}

/* The slot keeps its place in the ring and is filled again before it is read. */
static void release_slot(shuffle_cursor *at, int64_t index)
{
  flow_tensor **slot = slot_of(at, index);
  for (int i = 0; i < at->base.dataset->spec.count; i++) flow_tensor_release(slot[i]);
}

/* Draws `count` times from a ring whose new elements are only numbers; numbers[slot] is -1 where the slot has an element, and
 * the tensors are NULL where it has a number. Returns the number of elements that would have been pulled. */
static int64_t draw_numbers(shuffle_cursor *at, int64_t count, int64_t left, int64_t *numbers)
{
  int64_t size = ((shuffle *)at->base.dataset)->size, incoming = 0;
  int components = at->base.dataset->spec.count;
  for (; count > 0; count--) {
    for (; incoming < left && at->end - at->start < size; at->end++) {
      numbers[at->end % size] = incoming++;
      for (int i = 0; i < components; i++) slot_of(at, at->end)[i] = NULL;
    }
    int64_t drawn = at->start + next_word(&at->words) % (at->end - at->start);
    release_slot(at, drawn);
    for (int i = 0; i < components; i++) slot_of(at, drawn)[i] = slot_of(at, at->start)[i];
    numbers[drawn % size] = numbers[at->start % size];
    at->start++;
  }
  return incoming;
}

/* Pulls the elements that are in the ring after a skip, in the order in which the input has them, and skips those in between. */
static flow_status bring_in(shuffle_cursor *at, int64_t incoming, const int64_t *numbers, place *places)
{
  int64_t size = ((shuffle *)at->base.dataset)->size, count = 0, passed = 0, skipped;
  for (int64_t index = at->start; index < at->end; index++)
    if (numbers[index % size] >= 0) places[count++] = (place){ numbers[index % size], index };
  qsort(places, (size_t)count, sizeof *places, compare_places);
  for (int64_t i = 0; i < count; i++) {
    FLOW_TRY(flow_cursor_skip(at->base.inputs[0], places[i].number - passed, &skipped));
    FLOW_TRY(pull_into(at, places[i].index));
    if (at->ended) return flow_fail(FLOW_INTERNAL, "shuffle: its input is shorter than its cardinality");
    at->pulled += skipped;
    passed = places[i].number + 1;
  }
  FLOW_TRY(flow_cursor_skip(at->base.inputs[0], incoming - passed, &skipped));
  at->pulled += skipped;
  return FLOW_OK;
}

/* The ring is empty then, and the pass is at its end. */
static void forget(shuffle_cursor *at)
{
  for (int64_t index = at->start; index < at->end; index++) release_slot(at, index);
  at->start = at->end = 0;
  at->ended = 1;
}

/* Draws as a pass would, with numbers of elements in the ring's places instead of elements: only those that are left in the ring in the
 * end are made. */
static flow_status skip_by_numbers(shuffle_cursor *at, int64_t count, int64_t left)
{
  int64_t size = ((shuffle *)at->base.dataset)->size, ring = at->end > size || left > size - at->end ? size : at->end + left;
  size_t bytes;
  void *numbers, *places;
  FLOW_TRY(make_room(at, ring));
  FLOW_TRY(flow_multiply((size_t)ring, sizeof(place), &bytes));
  FLOW_TRY(flow_alloc(bytes, &places));
  flow_status status = flow_alloc(bytes, &numbers);
  if (status == FLOW_OK) {
    for (int64_t i = 0; i < ring; i++) ((int64_t *)numbers)[i] = -1;
    int64_t incoming = draw_numbers(at, count, left, numbers);
    status = bring_in(at, incoming, numbers, places);
    if (status != FLOW_OK) forget(at);          /* the ring has holes */
    flow_free(numbers);
  }
  flow_free(places);
  return status;
}

/* By numbers where it is known how many elements come: only those that stay in the ring are made. If all are skipped, none is. */
static flow_status skip(flow_cursor *cursor, int64_t count, int64_t *skipped)
{
  shuffle_cursor *at = (shuffle_cursor *)cursor;
  int64_t cardinality = cursor->dataset->inputs[0]->cardinality, rest;
  int64_t left = at->ended ? 0 : cardinality == FLOW_INFINITE ? INT64_MAX / 2 : cardinality - at->pulled;
  if (cardinality == FLOW_UNKNOWN) return flow_cursor_skip_by_pulling(cursor, count, skipped);
  if (count < at->end - at->start + left) {
    FLOW_TRY(skip_by_numbers(at, count, left));
    *skipped = count;
    return FLOW_OK;
  }
  *skipped = at->end - at->start + left;          /* all of it */
  forget(at);
  return flow_cursor_skip(cursor->inputs[0], left, &rest);
}

/* Also after a failed open. */
static void close(flow_cursor *cursor)
{
  shuffle_cursor *at = (shuffle_cursor *)cursor;
  if (at->slots) forget(at);
  flow_element_clear(&at->element);
  flow_free(at->slots);
}

static const flow_dataset_class class = {
  .name = "shuffle", .dataset_bytes = sizeof(shuffle), .cursor_bytes = sizeof(shuffle_cursor), .open = open, .next = next, .skip = skip,
  .close = close,
  .passes_on = 1,
  .reorders = 1,
};

flow_status flow_dataset_shuffle(flow_dataset *input, double size, double seed, double seed2, int reshuffle, flow_dataset **out)
{
  FLOW_NEED(out);
  int64_t whole;
  *out = NULL;
  FLOW_TRY(flow_check_whole("shuffle", "buffer_size", size, 1, &whole));
  FLOW_TRY(flow_dataset_new(&class, &input, 1, out));
  shuffle *self = (shuffle *)*out;
  self->size = whole;
  self->reshuffle = reshuffle != 0;
  flow_dataset_set_random(*out, seed, seed == 0 && seed2 == 0 ? INT32_MAX : seed2);      /* as TensorFlow: (0, 0) stands for "none" */
  flow_dataset_identify(*out, (uint64_t)whole);
  flow_dataset_identify(*out, (uint64_t)self->reshuffle);
  return FLOW_OK;
}
