/* reduce.h: what reduce.c has for sum.c. */
#ifndef FLOW_CPU_REDUCE_REDUCE_H
#define FLOW_CPU_REDUCE_REDUCE_H

#include "cpu/vector.h"

/* run() of reductions that keep the first axis: row after row. */
flow_status FLOW_ISA_NAME(reduce_each_row)(const flow_call *call, int phase, int64_t begin, int64_t end);
/* For a sum that reduces the first axis: adds up each row on its own, and that to the output, which is packed and of float64, or of int64
 * where integers are summed. */
void        FLOW_ISA_NAME(add_each_row)(const flow_call *call);

#endif
