/* recurrent_plain.h: the recurrent cells row by row, in double: every float dtype, and the oracle of the blocks. */
#ifndef FLOW_CPU_RECURRENT_RECURRENT_PLAIN_H
#define FLOW_CPU_RECURRENT_RECURRENT_PLAIN_H

#include "cpu/vector.h"

/* Of all six ops. */
size_t      FLOW_ISA_NAME(plain_recurrent_scratch_bytes)(const flow_call *call);
flow_status FLOW_ISA_NAME(plain_recurrent)(const flow_call *call, int phase, int64_t begin, int64_t end);

#define PLAIN                                                                                                                     \
  { .variant = "plain", .scratch_bytes = FLOW_ISA_NAME(plain_recurrent_scratch_bytes), .run = FLOW_ISA_NAME(plain_recurrent) }

#endif
