/* short_words.h: the words that ops.def uses in its columns of inputs, outputs, kinds and flags, as parts of a flow_op_record. For files
 * that include ops.def with those columns. */
#ifndef FLOW_OPS_SHORT_WORDS_H
#define FLOW_OPS_SHORT_WORDS_H

#include "ops/op.h"

#define TAKES(count)            count, count
#define BETWEEN(least, most)    least, most
#define GIVES(count)            count
#define MAP(inputs, outputs)    FLOW_MAP, inputs, outputs
#define REDUCE(inputs, outputs) FLOW_REDUCE, inputs, outputs
#define WHOLE                   FLOW_WHOLE, 0, 0

enum {
  BY_SHAPE   = FLOW_ROWS_BY_SHAPE,
  ALL        = 0xffff,
  STRIDED    = FLOW_OP_STRIDED,
  PROMOTE    = FLOW_OP_PROMOTE,
  FLOAT_ONLY = FLOW_OP_FLOAT_ONLY,
  VIA_FLOAT  = FLOW_OP_VIA_FLOAT,
  EFFECT     = FLOW_OP_EFFECT,
  RANDOM     = FLOW_OP_RANDOM,
  ALIAS      = FLOW_OP_ALIAS,
  TO_FLOAT   = FLOW_OP_TO_FLOAT,
  CHECKS     = FLOW_OP_CHECKS,
  COLLECTIVE = FLOW_OP_COLLECTIVE,
  WIDE       = FLOW_OP_WIDE,
  CONDITION  = FLOW_OP_CONDITION,
  ELEMENTWISE = FLOW_OP_ELEMENTWISE,
  CHAINS     = FLOW_OP_CHAINS,
  COUNTS_BOOLS = FLOW_OP_COUNTS_BOOLS,
  NO_BOOLS   = FLOW_OP_NO_BOOLS,
  WIDENS_INT8 = FLOW_OP_WIDENS_INT8
};

#endif
