/* batch_slots.c: see batch_slots.h.
 *
 * Blocks of memory are made when the first row of a batch is asked for and dropped when the consumer has gone past the batch, so there
 * are as many as the producer is ahead. The batch that is delivered is the tensor of the block itself: it lives on through its own
 * reference.
 *
 * Rows are numbered over all batches. The producer counts elements that asked (next), the consumer batches (batch). If elements are
 * lost, next goes back, and rows below `given` are not given a second time. */
#include "data/batch_slots.h"

#include <pthread.h>
#include <string.h>

enum { LEAST_ROW_BYTES = 4096 };      /* less is copied sooner than a view of it is made */

/* Memory of one batch. */
typedef struct block { struct block *next; int64_t number; flow_tensor *tensors[FLOW_MAX_COMPONENTS]; } block;

/* Rows count over all batches: row r is row r % size of batch r / size. `lock` guards everything: the producer's threads ask and lose,
 * the consumer goes from batch to batch. */
struct flow_batch_slots {
  pthread_mutex_t   lock;
  flow_element_spec rows;
  int64_t           size;
  int               wanted[FLOW_MAX_COMPONENTS];
  int64_t           next;          /* row, over all batches, of the next element that asks */
  int64_t           given;         /* rows below were given */
  int64_t           batch;         /* the consumer's */
  block            *blocks;        /* from the consumer's on */
};

/* A component whose rows are large and of one known shape. Texts and varying shapes have no place before they are made. */
static int is_worth_it(const flow_component *component)
{
  int64_t elements = component->text ? 0 : flow_shape_size(component->rank, component->shape);      /* -1: unknown dimensions */
  return component->rank < FLOW_MAX_RANK && elements > 0 && elements >= LEAST_ROW_BYTES / flow_dtype_size(component->dtype);
}

/* *out NULL with FLOW_OK: no component is worth it, or none has a known size. */
flow_status flow_batch_slots_new(const flow_element_spec *rows, int64_t size, flow_batch_slots **out)
{
  int wanted[FLOW_MAX_COMPONENTS] = { 0 }, any = 0;
  void *memory;
  *out = NULL;
  for (int i = 0; i < rows->count; i++) any |= wanted[i] = is_worth_it(&rows->components[i]);
  if (!any) return FLOW_OK;
  FLOW_TRY(flow_alloc_zero(sizeof **out, &memory));
  *out = memory;
  (*out)->rows = *rows;
  (*out)->size = size;
  memcpy((*out)->wanted, wanted, sizeof wanted);
  pthread_mutex_init(&(*out)->lock, NULL);
  return FLOW_OK;
}

/* Views of rows hold their own references, so that a thread that still writes into one does so in valid memory. */
static void free_block(block *old)
{
  for (int i = 0; i < FLOW_MAX_COMPONENTS; i++) flow_tensor_release(old->tensors[i]);
  flow_free(old);
}

/* Tensors that were made of slots hold references to the memory, and may outlive this. */
void flow_batch_slots_free(flow_batch_slots *slots)
{
  if (!slots) return;
  for (block *at = slots->blocks, *next; at; at = next) {
    next = at->next;
    free_block(at);
  }
  pthread_mutex_destroy(&slots->lock);
  flow_free(slots);
}

/* With the lock held, as all functions below that take `slots` and do not lock. A handful of blocks exist at a time. */
static block *find_block(const flow_batch_slots *slots, int64_t number)
{
  block *at = slots->blocks;
  while (at && at->number != number) at = at->next;
  return at;
}

/* Memory for one batch: tensors of the components that are made in place, not filled yet. It goes to the front of the list. */
static flow_status make_block(flow_batch_slots *slots, int64_t number, block **out)
{
  void *memory;
  FLOW_TRY(flow_alloc_zero(sizeof **out, &memory));
  *out = memory;
  (*out)->number = number;
  for (int i = 0; i < slots->rows.count; i++) {
    const flow_component *component = &slots->rows.components[i];
    int64_t shape[FLOW_MAX_RANK] = { slots->size };
    if (!slots->wanted[i]) continue;
    memcpy(shape + 1, component->shape, sizeof *shape * (size_t)component->rank);
    flow_status status = flow_tensor_new_uninitialized(component->dtype, component->rank + 1, shape, &(*out)->tensors[i]);
    if (status != FLOW_OK) {
      free_block(*out);
      return status;
    }
  }
  (*out)->next = slots->blocks;
  slots->blocks = *out;
  return FLOW_OK;
}

/* Views of one row; on failure those that were made are in `out`, whose count says how many. */
static flow_status view_row(const flow_batch_slots *slots, const block *from, int64_t row, flow_element *out)
{
  for (int i = 0; i < slots->rows.count; i++) {
    flow_tensor *batch = from->tensors[i];
    out->tensors[i] = NULL;
    out->count = i + 1;
    if (!batch) continue;
    FLOW_TRY(flow_tensor_view(batch, batch->rank - 1, batch->shape + 1, batch->strides + 1, row * batch->strides[0], &out->tensors[i]));
  }
  return FLOW_OK;
}

/* A row that was given before (after flow_batch_slots_lose) is not given again, since the element that had it may still be written: the
 * next element then has no slot and is copied. */
void flow_batch_slots_ask(flow_batch_slots *slots, flow_element *out)
{
  if (!slots) return;
  pthread_mutex_lock(&slots->lock);
  int64_t row = slots->next++, number = row / slots->size;
  if (row >= slots->given && number >= slots->batch) {
    block *from = find_block(slots, number);
    flow_status status = from ? FLOW_OK : make_block(slots, number, &from);
    if (status == FLOW_OK) status = view_row(slots, from, row % slots->size, out);
    if (status == FLOW_OK) slots->given = row + 1;
    else flow_element_clear(out);
  }
  pthread_mutex_unlock(&slots->lock);
}

/* The numbers of the elements that follow move up by that many; rows that were given stay given (flow_batch_slots_ask). */
void flow_batch_slots_lose(flow_batch_slots *slots, int64_t count)
{
  if (!slots) return;
  pthread_mutex_lock(&slots->lock);
  slots->next -= count;
  pthread_mutex_unlock(&slots->lock);
}

/* Called for each batch by the consumer, before its rows are copied or found in their places. */
void flow_batch_slots_batch(flow_batch_slots *slots, flow_tensor **tensors)
{
  pthread_mutex_lock(&slots->lock);
  const block *from = find_block(slots, slots->batch);
  for (int i = 0; i < slots->rows.count; i++) tensors[i] = from && from->tensors[i] ? flow_tensor_retain(from->tensors[i]) : NULL;
  pthread_mutex_unlock(&slots->lock);
}

/* Frees this side's references to batches that are done; views and the batch itself hold their own. */
void flow_batch_slots_next_batch(flow_batch_slots *slots)
{
  if (!slots) return;
  pthread_mutex_lock(&slots->lock);
  slots->batch++;
  for (block **at = &slots->blocks; *at;) {
    block *old = *at;
    if (old->number >= slots->batch) {
      at = &old->next;
      continue;
    }
    *at = old->next;
    free_block(old);
  }
  pthread_mutex_unlock(&slots->lock);
}
