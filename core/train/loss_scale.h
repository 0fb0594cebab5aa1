/* loss_scale.h: a dynamic loss scale (keras/src/optimizers/loss_scale_optimizer.py). Gradients that pass through float16 are lost where
 * they are too small for it: so they are taken of the loss times a scale, and divided by it before the update. While they stay finite
 * the scale is doubled after every growth_steps updates in a row; where one is not, the scale is halved and the update writes nothing:
 * no parameter, no slot, no iteration.
 *
 * All of it is computed by ops on variables: a step on a device does not wait for a decision of the host. */
#ifndef FLOW_TRAIN_LOSS_SCALE_H
#define FLOW_TRAIN_LOSS_SCALE_H

#include "graph/variable.h"

/* Variables as Keras' LossScaleOptimizer has them. The first two are those of every optimizer; they never change, the inner one's do. */
enum { FLOW_SCALE_ITERATION, FLOW_SCALE_LEARNING_RATE, FLOW_SCALE_STEP_COUNTER, FLOW_SCALE_DYNAMIC, FLOW_SCALE_VARIABLES };

struct flow_loss_scale {
  char          *name;
  double         initial_scale, growth_steps;
  /* references; an update brings all to the device of the optimizer inside */
  flow_variable *variables[FLOW_SCALE_VARIABLES];
};

/* What an update does about it; references. */
typedef struct flow_scale_step {
  flow_tensor *guard;        /* of the update: float32, 1 if all gradients are finite, else 0 */
  flow_tensor *advance;      /* the same as int64: what iterations grow by */
  flow_tensor *counter, *scale;    /* what the variables become */
} flow_scale_step;

/* From flat gradients, `stride` bytes apart, that were summed over replicas, so that all replicas decide alike, and divided by the scale.
 * Keras looks before the division; what only the division by a scale below 1 makes infinite is skipped here, too. */
flow_status flow_scale_step_make(flow_context *context, const flow_loss_scale *scale, flow_tensor *const *first, int count, size_t stride,
                                 flow_scale_step *step);
flow_status flow_scale_step_finish(flow_context *context, const flow_loss_scale *scale, const flow_scale_step *step);
void        flow_scale_step_release(flow_scale_step *step);

/* Moves the variables to a place (NULL: the host). */
flow_status flow_loss_scale_move(const flow_loss_scale *scale, flow_place *place);

/* Both from Keras' serialization of the two together. */
flow_status   flow_loss_scale_read(const flow_json *object, flow_loss_scale **scale, flow_optimizer **inner);

#endif
