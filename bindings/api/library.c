/* library.c: the C API's facts about the library itself. Errors and log: core/base/status.c and log.c. */
#include "base/team.h"
#include "kernels.h"

int flow_abi_version(void)
{
  return FLOW_ABI_VERSION;
}

const char *flow_version(void)
{
  return FLOW_VERSION;
}

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
