/* group_call.h: what ranks tell each other about a call, so that they find out when their calls differ; for transports that send it. */
#ifndef FLOW_TRANSPORT_GROUP_CALL_H
#define FLOW_TRANSPORT_GROUP_CALL_H

#include "base/status.h"

typedef enum flow_group_operation {
  FLOW_GROUP_ALL_REDUCE, FLOW_GROUP_BROADCAST, FLOW_GROUP_ALL_GATHER, FLOW_GROUP_BARRIER, FLOW_GROUP_COLLECT, FLOW_GROUP_OPERATIONS
} flow_group_operation;

/* What was received from others may be anything. */
typedef struct flow_group_call {
  /* a flow_group_operation; all_reduce: the dtype, broadcast: from where, collect: bytes of a unit in all arrays */
  int32_t what, detail;
  int64_t count;                         /* all_reduce: elements, collect: units, else bytes */
} flow_group_call;

/* "all_reduce" */
const char *flow_group_operation_name(int what);
int         flow_group_calls_agree(const flow_group_call *first, const flow_group_call *other);
/* "the ranks do not agree: rank 0 calls ..., rank 2 calls ..." */
void        flow_group_calls_differ(flow_text *text, int rank, const flow_group_call *first, int other_rank, const flow_group_call *other);

#endif
