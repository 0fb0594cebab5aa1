/* group_call.c: see group_call.h. */
#include "transport/group_call.h"

#include "flow.h"

/* `what` may come from another process's memory or message, so that any number must give a name. */
const char *flow_group_operation_name(int what)
{
  static const char *const names[] = { "all_reduce", "broadcast", "all_gather", "barrier", "collect" };
  return what >= 0 && what < FLOW_GROUP_OPERATIONS ? names[what] : "something unknown";
}

/* What has to be equal on all ranks before anything is read or written by its sizes. */
int flow_group_calls_agree(const flow_group_call *first, const flow_group_call *other)
{
  return other->what == first->what && other->detail == first->detail && other->count == first->count;
}

/* Numbers from another rank are printed as they are: they may be damaged, and a dtype may not exist. */
static void describe(flow_text *text, int rank, const flow_group_call *of)
{
  flow_text_add(text, "rank %d calls %s", rank, flow_group_operation_name(of->what));
  switch (of->what) {
  case FLOW_GROUP_ALL_REDUCE: {
    const char *dtype = flow_dtype_name(of->detail);
    flow_text_add(text, " of %lld %s", (long long)of->count, dtype ? dtype : "?");
    break;
  }
  case FLOW_GROUP_BROADCAST: flow_text_add(text, " of %lld bytes from rank %d", (long long)of->count, of->detail); break;
  case FLOW_GROUP_ALL_GATHER: flow_text_add(text, " of %lld bytes", (long long)of->count); break;
  case FLOW_GROUP_COLLECT: flow_text_add(text, " of %lld times %d bytes", (long long)of->count, of->detail); break;
  default: break;
  }
}

/* Appends a sentence that names both ranks and what each of them calls. */
void flow_group_calls_differ(flow_text *text, int rank, const flow_group_call *first, int other_rank, const flow_group_call *other)
{
  flow_text_add(text, "the ranks do not agree: ");
  describe(text, rank, first);
  flow_text_add(text, ", ");
  describe(text, other_rank, other);
}
