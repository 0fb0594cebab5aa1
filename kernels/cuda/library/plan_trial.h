/* plan_trial.h: which of several plans of the same formula a device runs fastest.
 *
 * cuDNN and cuBLASLt order plans by a model of their speed, and the first one is what runs: so two machines of a kind take the same, and
 * the bits of a run follow from its inputs, seeds, rows and the kind of device. With FLOW_CUDA_TUNE=1 the first FLOW_PLAN_TRIALS plans are
 * run once, and the fastest is kept on disk (plan_store.h). Times vary, and plans may round differently, so the bits of such runs follow
 * from what was kept, too: nothing does that unless it is asked for, results that are to be exact are never tuned, and
 * flow.config.enable_op_determinism refuses it. Texts of tuned plans have their own keys, so that a later run without the variable is
 * as before. */
#ifndef FLOW_CUDA_LIBRARY_PLAN_TRIAL_H
#define FLOW_CUDA_LIBRARY_PLAN_TRIAL_H

#include "base/status.h"

enum { FLOW_PLAN_TRIALS = 5 };

/* Runs plan `plan` of those that `state` knows, and tells how long it took. */
typedef flow_status (*flow_plan_timer)(void *state, int plan, float *milliseconds);

/* How many plans are to be tried: 1 unless FLOW_CUDA_TUNE is 1, or for results that are to be exact. */
int flow_plan_trials(int exact);
/* Runs `count` plans, the likely best first, a few times in turn. Returns the first one that takes at most a twentieth longer than the
 * fastest, so that chance decides little; plans that cannot be run are out; 0 where none can, or there is one only, which is not run. */
int flow_plan_fastest(int count, flow_plan_timer time, void *state);

#endif
