/* version.c: the version of the library and of its interface. */
#include "flow.h"

int flow_abi_version(void)
{
  return FLOW_ABI_VERSION;
}

const char *flow_version(void)
{
  return FLOW_VERSION;
}
