/* layer_variables.c: how a layer's build makes its variables: first values by an initializer, the variable over them on the context's
 * device, and the regularizer and constraint whose arguments stand beside the initializer's.
 *
 * flow_layer_make calls a record's build once in a layer's life, on the caller's thread. build calls the functions below with index 0,
 * 1, ... in the order in which Keras stores the variables, trainable ones first. After a failure of any of them build returns, and
 * flow_layer_make releases what was made. */
#include "layers/layer.h"

#include <string.h>

#include "graph/context.h"
#include "graph/variable.h"
#include "layers/constraints.h"
#include "layers/initializers.h"
#include "layers/policy.h"

/* Which axes of a kernel are of the inputs of a unit and which of its outputs; a bit of `outputs` for each axis. */
typedef struct kernel_fans {
  int rank;
  unsigned outputs;
} kernel_fans;

/* Tells an initializer of the fans unless its own options do, as Keras 3.15 does. */
static flow_status set_fans(flow_arguments *options, const kernel_fans *fans)
{
  double axes[2][FLOW_MAX_RANK];
  int count[2] = { 0, 0 };
  if (!flow_argument_is_null(options, "input_axes") && !flow_argument_is_null(options, "output_axes")) return FLOW_OK;
  for (int i = 0; i < fans->rank; i++) {
    int of_output = (fans->outputs >> i) & 1;
    axes[of_output][count[of_output]++] = i;
  }
  FLOW_TRY(flow_arguments_set_numbers(options, "input_axes", axes[0], count[0]));
  return flow_arguments_set_numbers(options, "output_axes", axes[1], count[1]);
}

/* Fills `into` by an initializer argument of the layer, or by an initializer's own name. fans: NULL, or those of a kernel whose initializer
 * is an argument. */
static flow_status initialize(flow_context *context, const flow_layer *layer, const char *initializer, const kernel_fans *fans,
                              flow_tensor *into)
{
  const char *chosen = flow_argument_text(layer->arguments, initializer);
  flow_arguments *options = NULL;
  if (!chosen) chosen = initializer;
  else FLOW_TRY(flow_arguments_extract(layer->arguments, initializer, &options));
  int record = flow_initializer_find(chosen);
  if (fans && record >= 0 && flow_argument_find(flow_initializer_record(record)->parameters, "input_axes") >= 0) {
    flow_status status = set_fans(options, fans);
    if (status != FLOW_OK) {
      flow_arguments_release(options);
      return status;
    }
  }
  /* Only random ones take a number from the context, so that a bias does not shift the seeds of later kernels. */
  int random = record >= 0 && flow_initializer_is_random(record) && flow_argument_is_null(options, "seed");
  flow_status status = flow_initialize(context, chosen, options, random ? flow_context_next_seed(context) : 0, into);
  flow_arguments_release(options);
  return status;
}

/* The argument that is beside "kernel_initializer": "kernel" before `ending`, "_regularizer". NULL: there is none, or no initializer. */
static const char *beside(const flow_layer *layer, const char *initializer, const char *ending)
{
  const char *end = initializer ? strstr(initializer, "_initializer") : NULL;
  for (const flow_argument *parameter = layer->class->parameters; end && parameter->name; parameter++) {
    size_t length = (size_t)(end - initializer);
    if (strncmp(parameter->name, initializer, length) == 0 && strcmp(parameter->name + length, ending) == 0) return parameter->name;
  }
  return NULL;
}

/* With context->blank the values are left as they were allocated: they are read from a file next (core/models). */
static flow_status first_values(flow_context *context, const flow_layer *layer, const char *initializer, const kernel_fans *fans, int rank,
                                const int64_t *shape, flow_tensor **out)
{
  FLOW_TRY(flow_tensor_new(flow_policy_variable_dtype(layer), rank, shape, out));
  flow_status status = context->blank ? FLOW_OK : initialize(context, layer, initializer, fans, *out);
  if (status == FLOW_OK) return FLOW_OK;
  flow_tensor_release(*out);
  *out = NULL;
  return status;
}

/* *out: a new tensor of the dtype of the layer's variables, on the host, whatever the context's device is; NULL after a failure. */
flow_status flow_layer_initialize(flow_context *context, const flow_layer *layer, const char *initializer, int rank, const int64_t *shape,
                                  flow_tensor **out)
{
  return first_values(context, layer, initializer, NULL, rank, shape, out);
}

/* The variable is made on the context's device. Regularizer and constraint are those whose arguments are beside the initializer's:
 * kernel_initializer, kernel_regularizer, kernel_constraint; without an initializer (NULL) the variable has neither. */
flow_status flow_layer_adopt(flow_context *context, flow_layer *layer, int index, const char *suffix, const char *initializer,
                             flow_tensor *initial, int trainable)
{
  flow_tensor *placed = NULL;
  FLOW_TRY(flow_tensor_at(initial, flow_context_place(context), &placed));
  flow_status status = flow_variable_named(placed, trainable && layer->trainable, trainable ? FLOW_MIRRORED : FLOW_MEAN_ON_READ,
                                           &layer->variables[index], "%s/%s", layer->name, suffix);
  flow_tensor_release(placed);
  FLOW_TRY(status);
  layer->regularizers[index] = beside(layer, initializer, "_regularizer");
  layer->variable_count++;
  layer->trainable_count += trainable;
  const char *constraint = beside(layer, initializer, "_constraint");
  return constraint ? flow_constraint_attach(layer->arguments, constraint, layer->variables[index]) : FLOW_OK;
}

/* The first values are computed on the host and then copied to the context's device (flow_layer_adopt), so that they are the same
 * everywhere. */
flow_status flow_layer_add_variable(flow_context *context, flow_layer *layer, int index, const char *suffix, const char *initializer,
                                    int rank, const int64_t *shape, int trainable)
{
  flow_tensor *initial;
  FLOW_TRY(flow_layer_initialize(context, layer, initializer, rank, shape, &initial));
  flow_status status = flow_layer_adopt(context, layer, index, suffix, initializer, initial, trainable);
  flow_tensor_release(initial);
  return status;
}

/* rank and shape: the kernel's. With the fans from `outputs` an initializer of VarianceScaling's kind need not guess them from the last
 * two axes, which are not inputs and outputs in EinsumDense and attention. */
flow_status flow_layer_add_kernel(flow_context *context, flow_layer *layer, int index, const char *suffix, int rank, const int64_t *shape,
                                  unsigned outputs)
{
  flow_tensor *initial;
  FLOW_TRY(first_values(context, layer, "kernel_initializer", &(kernel_fans){ rank, outputs }, rank, shape, &initial));
  flow_status status = flow_layer_adopt(context, layer, index, suffix, "kernel_initializer", initial, 1);
  flow_tensor_release(initial);
  return status;
}

/* FLOW_OK without a variable where use_bias is false: the bias then stays NULL. */
flow_status flow_layer_add_bias(flow_context *context, flow_layer *layer, int index, int64_t size)
{
  if (!flow_argument_boolean(layer->arguments, "use_bias")) return FLOW_OK;
  return flow_layer_add_variable(context, layer, index, "bias", "bias_initializer", 1, &size, 1);
}
