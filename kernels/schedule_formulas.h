/* schedule_formulas.h: the formulas of learning rate schedules (core/train/schedules.h), Keras' (keras/src/optimizers/schedules/
 * learning_rate_schedule.py), in the C that all devices' compilers share, so that every device computes the same rate.
 *
 * A formula gets the `count` numbers p, in the order of the class's record in core/train/schedules.c: booleans are 0 or 1, a parameter that
 * was not given is NaN, a list is its length and then its elements. `step` counts updates from 0. The op's shape rule
 * (core/ops/rules/optimizer.c) has checked the class and how many numbers there are, so that formulas index p without checks. */
#ifndef FLOW_SCHEDULE_FORMULAS_H
#define FLOW_SCHEDULE_FORMULAS_H

#include <math.h>
#include <stdint.h>

/* How these functions are declared, and the cosine that they use; a file that compiles them for another processor defines these before. */
#ifndef FLOW_SCHEDULE_FUNCTION
#define FLOW_SCHEDULE_FUNCTION static inline
#define FLOW_SCHEDULE_COSINE(x) cos(x)
#endif

/* X(class, formula, numbers), in the order of the classes' numbers (attributes.schedule.kind). numbers: how many the formula reads;
 * FLOW_SCHEDULE_LISTS: those of a list and of a second one with one more element, 2 n + 3. */
enum { FLOW_SCHEDULE_LISTS = -1 };
/* clang-format off */
#define FLOW_SCHEDULES(X)                                           \
  X(ExponentialDecay, exponential_decay, 4)                         \
  X(CosineDecay, cosine_decay, 5)                                   \
  X(PiecewiseConstantDecay, piecewise_constant_decay, FLOW_SCHEDULE_LISTS) \
  X(PolynomialDecay, polynomial_decay, 5)                           \
  X(InverseTimeDecay, inverse_time_decay, 4)                        \
  X(CosineDecayRestarts, cosine_decay_restarts, 5)
/* clang-format on */

FLOW_SCHEDULE_FUNCTION double exponential_decay(const double *p, int64_t count, double step)
{
  (void)count;
  double rate = p[0], steps = p[1], factor = p[2], staircase = p[3], exponent = step / steps;
  return rate * pow(factor, staircase != 0 ? floor(exponent) : exponent);
}

FLOW_SCHEDULE_FUNCTION double inverse_time_decay(const double *p, int64_t count, double step)
{
  (void)count;
  double rate = p[0], steps = p[1], factor = p[2], staircase = p[3], elapsed = step / steps;
  return rate / (1 + factor * (staircase != 0 ? floor(elapsed) : elapsed));
}

/* boundaries b_1 < b_2 < ..., values v_0, v_1, ...: v_i while b_i < step <= b_(i + 1). How many there are follows from `count`: p[0] is
 * data, which nobody has checked. */
FLOW_SCHEDULE_FUNCTION double piecewise_constant_decay(const double *p, int64_t count, double step)
{
  int64_t boundaries = (count - 3) / 2, i = 0;
  while (i < boundaries && step > p[1 + i]) i++;
  return p[1 + boundaries + 1 + i];
}

FLOW_SCHEDULE_FUNCTION double polynomial_decay(const double *p, int64_t count, double step)
{
  (void)count;
  double rate = p[0], steps = p[1], end = p[2], power = p[3], cycle = p[4];
  if (cycle != 0) steps *= step == 0 ? 1 : ceil(step / steps);
  else step = fmin(step, steps);
  return (rate - end) * pow(1 - step / steps, power) + end;
}

FLOW_SCHEDULE_FUNCTION double cosine_between(double rate, double fraction, double alpha, double height)
{
  return rate * ((1 - alpha) * 0.5 * height * (1 + FLOW_SCHEDULE_COSINE(3.14159265358979323846 * fraction)) + alpha);
}

FLOW_SCHEDULE_FUNCTION double cosine_decay(const double *p, int64_t count, double step)
{
  (void)count;
  double rate = p[0], steps = p[1], alpha = p[2], target = p[3], warmup = p[4];
  if (isnan(target)) return cosine_between(rate, fmin(step, steps) / steps, alpha, 1);
  step = fmin(step, steps + warmup);
  if (step < warmup) return (target - rate) * (step / warmup) + rate;
  return cosine_between(target, (step - warmup) / steps, alpha, 1);
}

FLOW_SCHEDULE_FUNCTION double cosine_decay_restarts(const double *p, int64_t count, double step)
{
  (void)count;
  double rate = p[0], first = p[1], longer = p[2], lower = p[3], alpha = p[4], fraction = step / first, restarts = floor(fraction);
  if (longer != 1) {
    restarts = floor(log(1 - fraction * (1 - longer)) / log(longer));
    fraction = (fraction - (1 - pow(longer, restarts)) / (1 - longer)) / pow(longer, restarts);
  } else {
    fraction -= restarts;
  }
  return cosine_between(rate, fraction, alpha, pow(lower, restarts));
}

#endif
