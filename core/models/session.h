/* session.h: how callers in several threads share a model. Its weights exist once. Each caller has a runner: an instance of a traced
 * step, with its own memory, taken from a pool and given back after the call. Predictions go on side by side; a step of training has
 * the model for itself, and waits for those before it as they wait for it. */
#ifndef FLOW_MODELS_SESSION_H
#define FLOW_MODELS_SESSION_H

#include "plan/plan.h"

typedef enum flow_step_kind { FLOW_STEP_PREDICT, FLOW_STEP_TRAIN } flow_step_kind;

/* A step traced for operands like these. */
typedef struct flow_model_step {
  flow_step_kind  kind;
  int             exact, device, operand_count;
  flow_plan      *plan;                           /* a reference */
  int             writes;                         /* running it changes variables */
  struct flow_model_step *next;
  flow_signature  operands[];                     /* dims[0]: -1 */
} flow_model_step;

/* Belongs to the caller that has taken it, else to the list that it is in. writes: that of its step. */
typedef struct flow_runner {
  flow_instance      *instance;
  const flow_plan    *plan;                       /* the instance's; tells runners of different steps apart */
  int64_t             capacity;
  int                 writes;
  struct flow_runner *next;
} flow_runner;

/* Makes a step: the model traces itself. Called by one thread at a time. */
typedef flow_status flow_step_tracer(flow_context *context, flow_model *model, flow_step_kind kind, flow_tensor *const *operands, int count,
                                     flow_plan **plan);

/* What all callers of one model share: its lock, the steps that were traced, and runners that are idle. */
typedef struct flow_sharing flow_sharing;
flow_status flow_sharing_new(flow_sharing **out);
void flow_sharing_release(flow_sharing *sharing); /* NULL is allowed; no call may be in progress */

/* Waits until the weights may be read, by any number of callers, or written, by one. Fails if the context (NULL: nobody's) is interrupted
 * while it waits, or if this process was forked while another thread wrote: then the weights are those of a step half done. */
flow_status flow_sharing_enter(flow_sharing *sharing, const flow_context *context, int writes);
void        flow_sharing_leave(flow_sharing *sharing, int writes);

/* Both between enter and leave. A runner with memory for `rows` rows of operands like these: of `own`, of the model's idle ones, or
 * made. */
flow_status flow_runner_take(flow_context *context, flow_model *model, flow_sharing *sharing, flow_runner **own, flow_step_tracer *tracer,
                             flow_step_kind kind, flow_tensor *const *operands, int count, int64_t rows, flow_runner **out);
/* Back into `own` (a session's list) or, if that is NULL, to the model's idle ones, of which the oldest beyond a bound are released. */
void        flow_runner_give(flow_sharing *sharing, flow_runner **own, flow_runner *runner);
void        flow_runners_release(flow_runner **list);

#endif
