/* sequence.h: start, start + step, start + 2 step ...: exact in 64 bits for whole numbers, in doubles for others. */
#ifndef FLOW_TENSOR_SEQUENCE_H
#define FLOW_TENSOR_SEQUENCE_H

#include "tensor/tensor.h"

typedef struct flow_sequence {
  int64_t count;
  int     whole;              /* first and by say what the elements are */
  int64_t first, by;
  double  start, step;
} flow_sequence;

/* count is a whole number from 0. */
flow_sequence flow_sequence_of_numbers(double start, double step, int64_t count);
/* The numbers before stop; step is not 0. FLOW_INVALID_ARGUMENT if there are more than 2^53. */
flow_status   flow_sequence_of_integers(int64_t start, int64_t stop, int64_t step, flow_sequence *out);
/* Writes elements first, from 0, to first + count - 1 as packed ones of that dtype. */
void flow_sequence_write(const flow_sequence *sequence, int64_t first, int64_t count, int dtype, void *elements);

#endif
