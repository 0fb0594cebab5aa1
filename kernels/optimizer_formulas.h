/* optimizer_formulas.h: the optimizers that have an op. What each of them does to a parameter is written once, in optimizer_formulas.inc,
 * which kernels include for each kind of number that they compute with; the numbers that the formulas read are here. Plain C for the
 * kernels of all devices. */
#ifndef FLOW_OPTIMIZER_FORMULAS_H
#define FLOW_OPTIMIZER_FORMULAS_H

#include <math.h>

#ifndef BODY                     /* for the GPU: cuda/device/body.h */
#define BODY static inline
#endif

/* X(E, op): a formula of this name, and a kernel of each device. */
#define FLOW_UPDATES(X, E) X(E, sgd) X(E, adam) X(E, rmsprop) X(E, adagrad) X(E, adadelta) X(E, adamax)

enum { FLOW_UPDATE_SLOTS = 3 };

/* Which form of its formula an update takes. slots: how many arrays of state there are, FLOW_UPDATE_SLOTS at most; which of them a formula
 * has follows from their number (optimizer_formulas.inc). */
typedef struct flow_update_form { int slots, nesterov, centered; } flow_update_form;

/* What formulas read of the attributes and inputs of a call. rate: the learning rate, corrected for the bias of moments where the optimizer
 * does that; decay: weight_decay times the learning rate before that. */
typedef struct flow_update_scalars { double rate, decay, momentum, beta_1, beta_2, rho, epsilon; } flow_update_scalars;

/* Keras takes the powers of the betas rounded to float32, which moves 1 - 0.999 by 1.3e-5 of its value; so does this, for a
 * training run to be comparable with Keras' step by step. */
BODY double bias_correction_of(double beta, double t) { return 1 - pow((double)(float)beta, t); }

/* The learning rate of update t, counted from 1, with the corrections of the first moment, or of both. */
BODY double corrected_rate(int moments, double rate, double beta_1, double beta_2, double t)
{
  if (moments > 0) rate /= bias_correction_of(beta_1, t);
  return moments > 1 ? rate * sqrt(bias_correction_of(beta_2, t)) : rate;
}

#endif
