/* failure.c: see failure.h. */
#include "base/failure.h"

void flow_failure_take(flow_failure *failure, flow_status status)
{
  if (status == FLOW_OK) return;
  flow_error_fields fields = flow_error_fields_now();
  flow_failure_set(failure, status, flow_last_error(), &fields);
}

flow_status flow_failure_raise(const flow_failure *failure)
{
  if (!flow_failure_is_set(failure)) return FLOW_OK;
  return flow_fail_with(failure->status, failure->fields, "%s", failure->message);
}
