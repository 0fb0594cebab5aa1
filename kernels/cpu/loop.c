/* loop.c: the op of a loop, whose rounds the engine runs itself (core/run/loop_run.c). */
#include "cpu/vector.h"
#include "base/status.h"

/* Every op has a list of kernels. This one is reached only if a plan calls the op like any other, which is a fault of the engine. */
static flow_status run_loop(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)call; (void)phase; (void)begin; (void)end;
  return flow_fail(FLOW_INTERNAL, "loop: its rounds are run by the plan that holds it");
}

const flow_kernel FLOW_KERNELS(loop)[] = { { .variant = "rounds", .run = run_loop }, { 0 } };
