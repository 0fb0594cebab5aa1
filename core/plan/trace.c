/* trace.c: the end of a trace, which makes a plan of it. Its beginning: graph/context.c. */
#include "graph/context.h"
#include "base/need.h"
#include "plan/plan.h"

flow_status flow_trace_end(flow_context *context, flow_tensor *const *outputs, int count, flow_plan **out)
{
  FLOW_NEED(context, out);
  if (count > 0) FLOW_NEED(outputs);
  flow_graph *graph;
  FLOW_TRY(flow_innermost_trace(context, "flow_trace_end", &graph));
  flow_status status = flow_plan_make(graph, outputs, count, out);
  flow_trace_abort(context);
  return status;
}
