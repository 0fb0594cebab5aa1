/* convert.h: how elements change their dtype. Two lanes: whatever starts as an integer or bool travels as int64_t (exact),
 * whatever starts as a float travels as double (exact). The last step rounds, saturates or wraps once. */
#ifndef FLOW_TENSOR_CONVERT_H
#define FLOW_TENSOR_CONVERT_H

#include "tensor/tensor.h"

/* As flow_convert_to_double and flow_convert_from_double. The source of the first is an integer dtype or bool; the
 * second wraps to narrower integers (as C, NumPy and TensorFlow do), makes bools of non-zeros and rounds to floats. */
void flow_convert_to_int64(int dtype, const void *from, int64_t step, int64_t *to, int64_t n);
void flow_convert_from_int64(int dtype, const int64_t *from, void *to, int64_t step, int64_t n);

/* n elements from one dtype and step to another of each. Memory must not overlap. */
void flow_convert(int from_dtype, const void *from, int64_t from_step, int to_dtype, void *to, int64_t to_step, int64_t n);

#endif
