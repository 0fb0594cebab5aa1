/* recurrent_steps.h: what all recurrent layers do with steps, whatever one of them computes: go over them, in a trace by a loop of the
 * plan, leave out those that a mask leaves out, keep states from call to call, and give what return_sequences and return_state ask for.
 * Tensors are borrowed from the expression; those of steps are {n, steps, ...}, states {n, ...}. */
#ifndef FLOW_LAYERS_RECURRENT_STEPS_H
#define FLOW_LAYERS_RECURRENT_STEPS_H

#include "layers/express.h"
#include "layers/layer.h"

enum { FLOW_STEPS_MOST_STATES = 2 };

/* One call on its way. */
typedef struct flow_steps {
  flow_layer  *layer;
  flow_tensor *x;                   /* what the steps read */
  flow_tensor *mask;                /* bool {n, steps}, or NULL */
  int64_t      steps;
  int          states;              /* how many there are; the first one is the output of a step */
  int          reverse, training;
  int          has_state;           /* the first ones are not zeros */
  int          loops;               /* several steps are a loop of the plan that is traced */
  flow_layer_draws draws;           /* of dropout */
  /* One step, of which x is the row: states[] become the next ones. self: what the steps of a call have in common. */
  void       (*step)(flow_expression *e, const struct flow_steps *steps, const void *self, flow_tensor *x, flow_tensor **states);
  const void  *self;
} flow_steps;

/* The call of a layer on x, `given` being the input after it: a mask follows the states. The last three members are left to the layer. */
flow_steps   flow_steps_of_call(flow_expression *e, flow_layer *layer, const flow_named_call *call, int states);
/* Fails unless x has one step or more; expected: the shape that the message names. */
flow_status  flow_steps_check(const flow_layer *layer, const flow_tensor *x, const char *expected);

/* The states to begin with, in the dtype of `like`: those that the caller gave, those that the layer kept, or zeros. rank, dims: of
 * each. */
void         flow_steps_begin(flow_expression *e, flow_steps *s, flow_tensor *const *given, const flow_tensor *like, int rank,
                              const int64_t *dims, flow_tensor **states);
/* Goes over all steps: states[] become the last ones. Returns the first states of all steps. */
flow_tensor *flow_steps_run(flow_expression *e, const flow_steps *s, flow_tensor **states);
/* Ends a call: keeps the states of a stateful layer; outputs[0] is the sequence or its last step, then come the states, if they are asked
 * for. New references. */
flow_status  flow_steps_end(flow_expression *e, const flow_steps *s, flow_tensor *sequence, flow_tensor **states, flow_tensor **outputs);

/* x[begin:end] along one axis; -1: the last. Step t of `axis`, without that axis. {n, steps, ...} as {steps, n, ...}, or back. */
flow_tensor *flow_steps_slice(flow_expression *e, flow_tensor *x, int axis, int64_t begin, int64_t end);
flow_tensor *flow_steps_at(flow_expression *e, flow_tensor *x, int axis, int64_t t);
flow_tensor *flow_steps_swapped(flow_expression *e, flow_tensor *x);

/* A rate between 0 and 1; 0: nothing is dropped, which 1 stands for, too, as in Keras. */
double       flow_steps_rate(const flow_layer *layer, const char *name);
/* What dropout multiplies x with, one mask for all steps; `index` tells the call's masks apart. */
flow_tensor *flow_steps_dropout(flow_expression *e, flow_layer_draws draws, flow_tensor *x, double rate, int index);

#endif
