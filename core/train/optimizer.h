/* core/train: what turns a model into a training step: losses, metrics, optimizers.
 *
 * optimizer.h: an optimizer is one record: its parameters, its slots per variable, the op that updates. Everything else
 * is shared: variables are adopted into one flat arena, each kind of slot into another beside it, and an update is one
 * op over every contiguous run of variables that has gradients.
 *
 * To add an optimizer: an effect op in ops.def with its kernels, and a record in optimizer_records.c. */
#ifndef FLOW_TRAIN_OPTIMIZER_H
#define FLOW_TRAIN_OPTIMIZER_H

#include "graph/variable.h"
#include "layers/arguments.h"

enum { FLOW_MAX_SLOT_KINDS = 3 };

typedef struct flow_optimizer_class {
  const char          *name;           /* Keras' class name */
  const flow_argument *parameters;
  int                  op;             /* inputs: gradient, parameters, slots, learning rate [, iterations]; see order */
  /* Names of the slots for these arguments; returns how many. */
  int                (*slots)(const flow_arguments *arguments, const char *names[FLOW_MAX_SLOT_KINDS]);
  /* The op's attributes and its inputs in the op's own order. Returns the number of inputs. */
  int                (*operands)(const flow_arguments *arguments, flow_attributes *attributes, flow_tensor *gradient, flow_tensor *parameters,
                                 flow_tensor *const *slots, flow_tensor *learning_rate, flow_tensor *iterations, flow_tensor **inputs);
} flow_optimizer_class;

extern const flow_optimizer_class flow_optimizer_classes[];   /* ended by one whose name is NULL */

#endif
