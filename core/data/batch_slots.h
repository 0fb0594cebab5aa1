/* batch_slots.h: where a batch would have its rows: memory of the batches to come, given to the stage in front of it, so that a function
 * writes its result where it stays. A slot is an offer: an element without one, or that does not use it, is copied as ever.
 *
 * The producer asks for one slot for each element, in the order in which they are delivered, from one thread at a time. The consumer
 * takes the elements in that order. An element that asked and does not reach its row is told (flow_batch_slots_lose): the rows after it
 * then are further up than their slot is and are copied down, until slots given from then on are right again. A slot is given
 * once: no thread writes into a row that another element may still be written to. */
#ifndef FLOW_DATA_BATCH_SLOTS_H
#define FLOW_DATA_BATCH_SLOTS_H

#include "data/dataset.h"

typedef struct flow_batch_slots flow_batch_slots;

/* For batches of `size` such elements. *out is NULL if no component is worth it: large, and of a known shape. */
flow_status flow_batch_slots_new(const flow_element_spec *rows, int64_t size, flow_batch_slots **out);
void        flow_batch_slots_free(flow_batch_slots *slots);      /* after the producer's threads have ended; NULL is fine */

/* Views for the next element in `out`, which is empty: component i, or NULL where there is none. out->count 0: no slot. Never
 * fails: without memory there is no slot. NULL gives none. */
void        flow_batch_slots_ask(flow_batch_slots *slots, flow_element *out);
/* This many elements that asked go to no row. NULL is fine. */
void        flow_batch_slots_lose(flow_batch_slots *slots, int64_t count);

/* The memory of the batch that the consumer is at, in tensors [components of an element], NULL where there is none; new references. */
void        flow_batch_slots_batch(flow_batch_slots *slots, flow_tensor **tensors);
/* It is full: on to the next one. */
void        flow_batch_slots_next_batch(flow_batch_slots *slots);

#endif
