/* optimizer_layout.c: the table of optimizers and the questions about the order of their inputs. Slots have the names of the
 * variables of Keras' optimizers. */
#include "ops/optimizer_layout.h"

static int sgd_names(const flow_attributes *attributes, const char *names[FLOW_MAX_SLOT_KINDS])
{
  names[0] = "momentum";
  return attributes->optimizer.momentum != 0;
}

/* velocity_hat is the largest velocity so far, of amsgrad. */
static int adam_names(const flow_attributes *attributes, const char *names[FLOW_MAX_SLOT_KINDS])
{
  names[0] = "momentum";
  names[1] = "velocity";
  names[2] = "velocity_hat";
  return attributes->optimizer.amsgrad ? 3 : 2;
}

/* Options add slots: their order here is the one of the inputs, and of Keras' files. */
static int rmsprop_names(const flow_attributes *attributes, const char *names[FLOW_MAX_SLOT_KINDS])
{
  int count = 0;
  names[count++] = "velocity";
  if (attributes->optimizer.momentum != 0) names[count++] = "momentum";
  if (attributes->optimizer.centered) names[count++] = "average_gradient";
  return count;
}

static int adagrad_names(const flow_attributes *attributes, const char *names[FLOW_MAX_SLOT_KINDS])
{
  (void)attributes;
  names[0] = "accumulator";
  return 1;
}

static int adadelta_names(const flow_attributes *attributes, const char *names[FLOW_MAX_SLOT_KINDS])
{
  (void)attributes;
  names[0] = "accumulated_grad";
  names[1] = "accumulated_delta_var";
  return 2;
}

static int adamax_names(const flow_attributes *attributes, const char *names[FLOW_MAX_SLOT_KINDS])
{
  (void)attributes;
  names[0] = "momentum";
  names[1] = "norm";
  return 2;
}

/* { op, rate, iterations, slots in the order of their names, names, moments that are corrected }: numbers of inputs. New optimizers add
 * a line here and a kernel. */
static const flow_optimizer_layout layouts[] = {
  { FLOW_OP_sgd, 2, -1, { 3 }, sgd_names, 0 },
  { FLOW_OP_adam, 4, 5, { 2, 3, 6 }, adam_names, 2 },
  { FLOW_OP_rmsprop, 2, 3, { 4, 5, 6 }, rmsprop_names, 0 },
  { FLOW_OP_adagrad, 2, 3, { 4 }, adagrad_names, 0 },
  { FLOW_OP_adadelta, 2, 3, { 4, 5 }, adadelta_names, 0 },
  { FLOW_OP_adamax, 2, 3, { 4, 5 }, adamax_names, 1 },
};

const flow_optimizer_layout *flow_optimizer_layout_of(int op)
{
  for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++)
    if (layouts[i].op == op) return &layouts[i];
  return NULL;
}

int flow_optimizer_inputs(const flow_optimizer_layout *layout, const flow_attributes *attributes)
{
  const char *names[FLOW_MAX_SLOT_KINDS];
  return (layout->iterations < 0 ? 3 : 4) + layout->names(attributes, names);
}

int flow_optimizer_guard(const flow_optimizer_layout *layout, const flow_attributes *attributes, int input_count)
{
  int guard = flow_optimizer_inputs(layout, attributes);
  return flow_optimizer_first_copy(attributes, input_count) > guard ? guard : -1;
}

int flow_optimizer_first_copy(const flow_attributes *attributes, int input_count)
{
  return input_count - 2 * attributes->optimizer.products - 2 * attributes->optimizer.copies;
}

int flow_optimizer_is_copy(const flow_attributes *attributes, int input_count, int i)
{
  int first = flow_optimizer_first_copy(attributes, input_count);
  return i >= first && i < first + 2 * attributes->optimizer.copies && (i - first) % 2 == 1;
}

int flow_effect_writes(int op, const flow_attributes *attributes, int input_count, int i)
{
  const flow_optimizer_layout *layout = flow_optimizer_layout_of(op);
  const char *names[FLOW_MAX_SLOT_KINDS];
  if (!layout) return i == 0;
  int found = i == 1 || flow_optimizer_is_copy(attributes, input_count, i);
  for (int s = layout->names(attributes, names) - 1; s >= 0; s--) found |= i == layout->slots[s];
  return found;
}
