/* plan_trial.c: see plan_trial.h. */
#include "cuda/library/plan_trial.h"

#include <stdlib.h>
#include <string.h>

/* A first round loads kernels and wakes the device; of the others the fastest time of each plan counts, as what disturbs only adds. */
enum { ROUNDS = 4 };
static const float within = 1.05f;

int flow_plan_trials(int exact)
{
  const char *text = getenv("FLOW_CUDA_TUNE");
  return text && strcmp(text, "1") == 0 && !exact ? FLOW_PLAN_TRIALS : 1;
}

int flow_plan_fastest(int count, flow_plan_timer time, void *state)
{
  float best[FLOW_PLAN_TRIALS], fastest = -1;
  if (count <= 1) return 0;
  if (count > FLOW_PLAN_TRIALS) count = FLOW_PLAN_TRIALS;
  for (int p = 0; p < count; p++) best[p] = 0; /* 0: no time yet; -1: it cannot be run */
  for (int round = 0; round < ROUNDS; round++)
    for (int p = 0; p < count; p++) {
      float taken = 0;
      if (best[p] < 0) continue;
      if (time(state, p, &taken) != FLOW_OK) best[p] = -1;
      else if (round > 0 && (best[p] == 0 || taken < best[p])) best[p] = taken;
    }
  for (int p = 0; p < count; p++)
    if (best[p] >= 0 && (fastest < 0 || best[p] < fastest)) fastest = best[p];
  for (int p = 0; p < count; p++)
    if (best[p] >= 0 && best[p] <= fastest * within) return p;
  return 0;
}
