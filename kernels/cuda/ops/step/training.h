/* training.h: kernels of what a step of training does besides layers and optimizers: the learning rate's schedule, assignments, and what
 * a replica knows about the others. */
#ifndef FLOW_CUDA_OPS_TRAINING_H
#define FLOW_CUDA_OPS_TRAINING_H

#include "cuda/device/convert.h"
#include "cuda/ops/elementwise/elementwise.h"
#include "cuda/runtime/fault.h"
#include "cuda/device/trigonometry.h"
#include "cuda/device/view.h"
#include "kernels.h"

#define FLOW_SCHEDULE_FUNCTION BODY
#define FLOW_SCHEDULE_COSINE(x) cosine(x)
#include "schedule_formulas.h"

typedef struct schedule_rate_arguments {
  const int64_t *step;
  const double *parameters;
  float *y;
  int32_t kind, count; /* count: of the parameters */
} schedule_rate_arguments;

typedef enum schedule_class {
#define CLASS(name, formula, numbers) SCHEDULE_##formula,
  FLOW_SCHEDULES(CLASS)
#undef CLASS
} schedule_class;

BODY void schedule_rate(int64_t i, const schedule_rate_arguments *p)
{
  double rate = 0, step = (double)*p->step;
  (void)i;
  switch (p->kind) {
#define CLASS(name, formula, numbers) \
  case SCHEDULE_##formula: rate = formula(p->parameters, p->count, step); break;
    FLOW_SCHEDULES(CLASS)
#undef CLASS
    default: break;
  }
  *p->y = (float)rate;
}

/* to = or += from: equal dtypes, and integers to int64, as they are, others through double, where floats saturate to integers. `size`:
 * bytes of an element that is copied, 0: it is not. */
typedef struct assign_strided_arguments { view to, from; const flow_device_fault *fault; int32_t add, size; } assign_strided_arguments;

BODY void assign_strided(int64_t i, const assign_strided_arguments *p)
{
  int64_t at = view_offset(&p->to, i), from = view_offset(&p->from, i);
  int dtype = p->to.dtype, same = dtype == p->from.dtype;
  if (is_refused(p->fault)) return;
  if (p->size > 0) {
    move_element(p->size, p->from.data, from, p->to.data, at);
  } else if (p->add && same && dtype == FLOW_FLOAT32) {
    ((float *)p->to.data)[at] += ((const float *)p->from.data)[from];
  } else if (p->add && dtype == FLOW_INT64 && p->from.dtype >= FLOW_INT8) {
    ((uint64_t *)p->to.data)[at] += (uint64_t)load_integer(p->from.dtype, p->from.data, from);
  } else {
    double value = load_double(p->from.dtype, p->from.data, from);
    if (p->add) value += load_double(dtype, p->to.data, at);
    store_rounded(dtype, p->to.data, at, value);
  }
}

/* Elements that are next to each other, as they are, in units of `size` bytes. */
typedef struct assign_units_arguments { void *to; const void *from; const flow_device_fault *fault; int64_t size; } assign_units_arguments;

BODY void assign_units(int64_t i, const assign_units_arguments *p)
{
  if (!is_refused(p->fault)) move_element((int)p->size, p->from, i, p->to, i);
}

/* Rows of the batch over all replicas, or this one's share; without any rows replicas share evenly whatever there is: nothing. */
typedef struct count_rows_arguments { const flow_scalars *scalars; float *y; int32_t share, unused; } count_rows_arguments;

BODY void count_rows(int64_t i, const count_rows_arguments *p)
{
  const flow_scalars *s = p->scalars;
  (void)i;
  if (!p->share) *p->y = (float)s->global_rows;
  else *p->y = s->global_rows > 0 ? (float)((double)s->rows / (double)s->global_rows) : 1;
}

#define TRAINING_KERNELS(ELEMENT, BLOCK) ELEMENT(schedule_rate) ELEMENT(assign_strided) ELEMENT(assign_units) ELEMENT(count_rows)

#endif
