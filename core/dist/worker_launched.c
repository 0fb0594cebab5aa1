/* worker_launched.c: a cluster of which only a launcher knows where its processes are: MPI brings addresses and a secret to all. */
#include "dist/worker_state.h"

flow_status flow_worker_meet_by_launcher(flow_worker *worker)
{
  return flow_fail(FLOW_UNSUPPORTED, "the cluster has no addresses (%s)", worker->cluster->source);
}
