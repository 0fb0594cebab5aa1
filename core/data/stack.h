/* stack.h: elements one by one into the rows of a batch. Rows are copied when they come, so that a decoded image is still in the
 * cache and its memory free for the next one; texts are kept until the longest is known. */
#ifndef FLOW_DATA_STACK_H
#define FLOW_DATA_STACK_H

#include "data/batch_slots.h"

/* A batch that is put together row by row. Rows are copied into tensors as they come; texts, whose longest one decides the width, are kept
 * until the end. */
typedef struct flow_stack {
  int64_t           capacity, rows;      /* rows that the tensors have, and that are filled */
  int64_t           most;                /* rows of a whole batch */
  flow_batch_slots *slots;               /* whose memory its batches take, borrowed; NULL: none */
  int               count;
  flow_tensor      *tensors[FLOW_MAX_COMPONENTS];      /* NULL: a component whose rows are kept */
  flow_element     *kept;                /* [kept_capacity]: of the rows so far, if there are texts */
  int               kept_capacity;
} flow_stack;

/* The spec of batches of `rows` (-1: it varies) of such elements; FLOW_UNSUPPORTED if a rank would be too large. */
flow_status flow_stack_spec(const char *what, flow_element_spec *spec, int64_t rows);
/* Adds a row; takes the element (it becomes empty), also when it fails. */
flow_status flow_stack_add(flow_stack *stack, const flow_element_spec *rows, int64_t most, flow_element *element);
/* Gives the batch and empties the stack. */
flow_status flow_stack_finish(flow_stack *stack, flow_element *out);
void        flow_stack_clear(flow_stack *stack);      /* drops the rows */
void        flow_stack_release(flow_stack *stack);    /* and all memory */
/* Rows may be written where they stay (batch_slots.h) if they come from this input: batches of `size`, one after the other. Gives the
 * places to the cursor. */
flow_status flow_stack_offer_slots(flow_stack *stack, flow_cursor *input, int64_t size);

#endif
