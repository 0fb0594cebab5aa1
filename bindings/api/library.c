/* library.c: the C API's facts about the library itself: its instruction set and threads. Version, errors and log: core/base. */
#include "base/team.h"
#include "kernels.h"

const char *flow_isa(void)
{
  return flow_cpu_device()->isa;
}

flow_status flow_set_threads(int count)
{
  return flow_team_set_size(count);
}

int flow_threads(void)
{
  return flow_team_size();
}
