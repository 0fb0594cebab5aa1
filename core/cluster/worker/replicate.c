/* replicate.c: instances of plans over the replicas of several workers: where core/run and a worker meet. */
#include "cluster/worker/worker.h"
#include "base/need.h"
#include "run/replicas/replica_set.h"

flow_status flow_instance_replicate(flow_instance *instance, int local, flow_device_group *group, flow_worker *worker)
{
  FLOW_NEED(instance);
  return flow_instance_set_replicas(instance, local, group, worker ? flow_worker_exchange(worker) : NULL);
}
