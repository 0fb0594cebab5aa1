/* batch_slots.c: see batch_slots.h. */
#include "data/batch_slots.h"

#include <pthread.h>
#include <string.h>

enum { LEAST_ROW_BYTES = 4096 };      /* less is copied sooner than a view of it is made */

/* Memory of one batch. */
typedef struct block { struct block *next; int64_t number; flow_tensor *tensors[FLOW_MAX_COMPONENTS]; } block;

struct flow_places {
  pthread_mutex_t   lock;
  flow_element_spec rows;
  int64_t           size;
  int               wanted[FLOW_MAX_COMPONENTS];
  int64_t           next;          /* row, over all batches, of the next element that asks */
  int64_t           given;         /* rows below were given */
  int64_t           batch;         /* the consumer's */
  block            *blocks;        /* from the consumer's on */
};

static int is_worth_it(const flow_component *component)
{
  int64_t elements = component->text ? 0 : flow_shape_size(component->rank, component->shape);      /* -1: unknown dimensions */
  return component->rank < FLOW_MAX_RANK && elements > 0 && elements >= LEAST_ROW_BYTES / flow_dtype_size(component->dtype);
}

flow_status flow_places_new(const flow_element_spec *rows, int64_t size, flow_places **out)
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

static void free_block(block *old)
{
  for (int i = 0; i < FLOW_MAX_COMPONENTS; i++) flow_tensor_release(old->tensors[i]);
  flow_free(old);
}

void flow_places_free(flow_places *places)
{
  if (!places) return;
  for (block *at = places->blocks, *next; at; at = next) {
    next = at->next;
    free_block(at);
  }
  pthread_mutex_destroy(&places->lock);
  flow_free(places);
}

static block *find_block(const flow_places *places, int64_t number)
{
  block *at = places->blocks;
  while (at && at->number != number) at = at->next;
  return at;
}

static flow_status make_block(flow_places *places, int64_t number, block **out)
{
  void *memory;
  FLOW_TRY(flow_alloc_zero(sizeof **out, &memory));
  *out = memory;
  (*out)->number = number;
  for (int i = 0; i < places->rows.count; i++) {
    const flow_component *component = &places->rows.components[i];
    int64_t shape[FLOW_MAX_RANK] = { places->size };
    if (!places->wanted[i]) continue;
    memcpy(shape + 1, component->shape, sizeof *shape * (size_t)component->rank);
    flow_status status = flow_tensor_new_uninitialized(component->dtype, component->rank + 1, shape, &(*out)->tensors[i]);
    if (status != FLOW_OK) {
      free_block(*out);
      return status;
    }
  }
  (*out)->next = places->blocks;
  places->blocks = *out;
  return FLOW_OK;
}

static flow_status view_row(const flow_places *places, const block *from, int64_t row, flow_element *out)
{
  for (int i = 0; i < places->rows.count; i++) {
    flow_tensor *batch = from->tensors[i];
    out->tensors[i] = NULL;
    out->count = i + 1;
    if (!batch) continue;
    FLOW_TRY(flow_tensor_view(batch, batch->rank - 1, batch->shape + 1, batch->strides + 1, row * batch->strides[0], &out->tensors[i]));
  }
  return FLOW_OK;
}

void flow_places_ask(flow_places *places, flow_element *out)
{
  if (!places) return;
  pthread_mutex_lock(&places->lock);
  int64_t row = places->next++, number = row / places->size;
  if (row >= places->given && number >= places->batch) {
    block *from = find_block(places, number);
    flow_status status = from ? FLOW_OK : make_block(places, number, &from);
    if (status == FLOW_OK) status = view_row(places, from, row % places->size, out);
    if (status == FLOW_OK) places->given = row + 1;
    else flow_element_clear(out);
  }
  pthread_mutex_unlock(&places->lock);
}

void flow_places_lose(flow_places *places, int64_t count)
{
  if (!places) return;
  pthread_mutex_lock(&places->lock);
  places->next -= count;
  pthread_mutex_unlock(&places->lock);
}

void flow_places_batch(flow_places *places, flow_tensor **tensors)
{
  pthread_mutex_lock(&places->lock);
  const block *from = find_block(places, places->batch);
  for (int i = 0; i < places->rows.count; i++) tensors[i] = from && from->tensors[i] ? flow_tensor_retain(from->tensors[i]) : NULL;
  pthread_mutex_unlock(&places->lock);
}

void flow_places_next_batch(flow_places *places)
{
  if (!places) return;
  pthread_mutex_lock(&places->lock);
  places->batch++;
  for (block **at = &places->blocks; *at;) {
    block *old = *at;
    if (old->number >= places->batch) {
      at = &old->next;
      continue;
    }
    *at = old->next;
    free_block(old);
  }
  pthread_mutex_unlock(&places->lock);
}
