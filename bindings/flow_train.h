/* flow_train.h: a part of flow.h: layers, losses, metrics, optimizers and schedules, which are records: their arguments, defaults and
 * checks can be asked for. Names, defaults and the order of arguments are Keras'.
 *
 * Layers and optimizers belong to one caller at a time, as contexts do; their variables may be read by others when nobody trains. */
#ifndef FLOW_TRAIN_H
#define FLOW_TRAIN_H

/* ---- arguments, layers, losses, optimizers ----------------------------------------------------------------------- */

/* An empty set of named values. New reference. */
FLOW_API flow_status flow_arguments_new(flow_arguments **out);
/* NULL is fine. */
FLOW_API void        flow_arguments_release(flow_arguments *arguments);
/* Sets one value, in place of one of that name. Name and value are copied; whether a record knows the name and takes the kind of value
 * is checked by the record. FLOW_OUT_OF_MEMORY leaves the set as it was. */
FLOW_API flow_status flow_arguments_set_number(flow_arguments *arguments, const char *name, double value);
/* 0 or 1: a boolean, which is not the number 1 in Keras' files. */
FLOW_API flow_status flow_arguments_set_boolean(flow_arguments *arguments, const char *name, int value);
/* Text, up to its zero; of arguments that are objects, such as an initializer, also the name of one. */
FLOW_API flow_status flow_arguments_set_text(flow_arguments *arguments, const char *name, const char *value);
/* A list of `count` numbers, 0 or more, such as a kernel_size or an input_shape. */
FLOW_API flow_status flow_arguments_set_numbers(flow_arguments *arguments, const char *name, const double *values, int count);
/* {{1, 2}, {3, 4}}: numbers one after the other, how deep the lists are nested, how long they are on each level. NaN: null. */
FLOW_API flow_status flow_arguments_set_nested(flow_arguments *arguments, const char *name, const double *values, int rank,
                                               const int *dims);
/* Null, as Python's None: the argument is there and says "none", which differs from its default. */
FLOW_API flow_status flow_arguments_set_null(flow_arguments *arguments, const char *name);

/* Records can be asked for what they take, so that Lua's constructors, the docs and the file formats are made from them. */

/* How many classes there are. Their indices run from 0. */
FLOW_API int         flow_layer_class_count(void);
/* Such as "Conv2D". Borrowed, static; NULL: no more. */
FLOW_API const char *flow_layer_class_name(int index);
/* The index of a class, or -1. Knows aliases, such as InputLayer. */
FLOW_API int         flow_layer_class_find(const char *name);
/* How many of its arguments may be given by position in Lua. */
FLOW_API int         flow_layer_class_positional(int index);
/* 1: called by itself it acts as in training, as layers that prepare data do. */
FLOW_API int         flow_layer_class_trains_alone(int index);
/* How many arguments it takes, in Keras' order. */
FLOW_API int         flow_layer_class_argument_count(int index);
/* The name of an argument. Borrowed, static. */
FLOW_API const char *flow_layer_class_argument(int index, int argument);
/* Its type: "integer", "number", "boolean", "text", "pair", "shape", "numbers", "activation", "initializer" or "regularizer". Borrowed,
 * static. */
FLOW_API const char *flow_layer_class_argument_type(int index, int argument);
/* Its default as text; NULL: the argument is required. Borrowed, static. */
FLOW_API const char *flow_layer_class_argument_default(int index, int argument);
/* One line: what the layer computes. Borrowed, static. */
FLOW_API const char *flow_layer_class_doc(int index);
/* Name of an input of a class whose calls take several: "query", or "mask[2]" for entry 2 of a list. Borrowed, static; NULL: no more, and
 * for the first one that inputs have no names. */
FLOW_API const char *flow_layer_class_input(int index, int input);
/* Name of an option of such calls. Borrowed, static; NULL: no more. */
FLOW_API const char *flow_layer_class_option(int index, int option);
/* The most outputs that a call has. */
FLOW_API int         flow_layer_class_outputs(int index);

/* A layer. name: a part of paths in files, so neither empty nor with a "/". Copies the arguments. FLOW_INVALID_ARGUMENT names an argument
 * that is unknown, missing or out of range. New reference. */
FLOW_API flow_status flow_layer_new(const char *class_name, const char *name, const flow_arguments *arguments, flow_layer **out);
/* NULL is fine. */
FLOW_API void        flow_layer_release(flow_layer *layer);
/* Borrowed, as long as the layer. */
FLOW_API const char *flow_layer_name(const flow_layer *layer);
/* Creates the variables for these input shapes (-1 = batch; rank -1: an input with a name that is not given). Initializers without a seed
 * draw theirs from the context. */
FLOW_API flow_status flow_layer_build(flow_context *context, flow_layer *layer, int input_count, const int *ranks,
                                      const int64_t *const *shapes);
/* Whether it was built: it has its variables. */
FLOW_API int         flow_layer_built(const flow_layer *layer);
/* The groups that Keras' files have for the objects of one list, such as the layers of a model, in its order: "conv2d" for the first of
 * class Conv2D, "conv2d_1" for the second. class_names: count names of any classes; the object of one that is NULL has no group and does
 * not count. */
FLOW_API flow_status flow_group_names_new(const char *const *class_names, int count, flow_group_names **out);
/* Borrowed, as long as the list. index: from 0; NULL: that object has no group, or there is none of this index. */
FLOW_API const char *flow_group_names_at(const flow_group_names *list, int index);
/* NULL is fine. */
FLOW_API void flow_group_names_release(flow_group_names *list);
/* Groups of variables in Keras' files, below the group of the layer: number 0 has the layer's own, in "vars", others those of its parts,
 * such as "query_dense/vars". Returns how many variables group number `group` has, the first of which is *first; -1: there is no such
 * group. *name: that of the part, "query", or the layer's. Borrowed. A layer that is NULL has group 0 without variables and name. */
FLOW_API int         flow_layer_group(const flow_layer *layer, int group, const char **path, const char **name, int *first);
/* The dtype policy: "float32", "mixed_bfloat16" or "mixed_float16". Borrowed. */
FLOW_API const char *flow_layer_policy(const flow_layer *layer);
/* Applies the layer: runs it, or appends it to the open trace. Builds it first if it was not. training: 1 where it behaves as in
 * training. Returns a new reference. */
FLOW_API flow_status flow_layer_call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training,
                                     flow_tensor **out);
/* The same of a class whose inputs have names, flow_layer_class_input: NULL stands for one that is not given. options: of the call, NULL:
 * none. Returns new references in outputs, which has room for flow_layer_class_outputs; those that the options did not ask for are NULL. */
FLOW_API flow_status flow_layer_call_named(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count,
                                           const flow_arguments *options, int training, flow_tensor **outputs);
/* The mask of what the layer makes of these inputs, whose masks are the entries of masks, NULL: none (of several tensors with names: those
 * of the first argument). *out: a new reference, or NULL: none. */
FLOW_API flow_status flow_layer_compute_mask(flow_context *context, flow_layer *layer, flow_tensor *const *inputs,
                                             flow_tensor *const *masks, int count, flow_tensor **out);
/* Whether the layers of a class hand masks on. */
FLOW_API int         flow_layer_class_masks(int index);
/* How many variables it has: trainable ones first, then the others, as Keras stores them. */
FLOW_API int         flow_layer_variable_count(const flow_layer *layer);
/* Borrowed. */
FLOW_API flow_variable *flow_layer_variable(const flow_layer *layer, int index);
/* How many states a stateful layer keeps from call to call; 0: none. They are not among its variables, and files do not hold them. */
FLOW_API int         flow_layer_state_count(const flow_layer *layer);
/* Borrowed; NULL before the first call, which says how large they are. */
FLOW_API flow_variable *flow_layer_state(const flow_layer *layer, int index);
/* Whether its variables may be trained. */
FLOW_API int         flow_layer_trainable(const flow_layer *layer);
/* Sets that, for what is compiled or traced from now on. */
FLOW_API void        flow_layer_set_trainable(flow_layer *layer, int trainable);
/* Sets arguments that calls read: numbers such as "rate", activations, regularizers and "seed"; of others FLOW_UNSUPPORTED. Nothing changes
 * if it fails. Traces made before stay as they are. */
FLOW_API flow_status flow_layer_set_arguments(flow_layer *layer, const flow_arguments *arguments);
/* Gives it another name. The names of its variables stay. */
FLOW_API flow_status flow_layer_set_name(flow_layer *layer, const char *name);
/* What training adds to the loss for the regularizer of variable `index`, from 0: a scalar, or *out = NULL where it has none or is not
 * trained. New reference. */
FLOW_API flow_status flow_layer_penalty(flow_context *context, const flow_layer *layer, int index, flow_tensor **out);
/* Whether calls of the layer add to the loss, as it has an activity_regularizer. */
FLOW_API int         flow_layer_regularizes_activity(const flow_layer *layer);
/* What the last call adds: what activity_regularizer makes of its outputs, divided by the rows of the batch. A scalar, whose reference is
 * the caller's and which is given once; NULL: nothing. */
FLOW_API flow_tensor *flow_layer_take_activity(flow_layer *layer);
/* How a layer computes x . kernel: in floats; in bytes, x of one range, which calibration has found; in bytes, x of a range for each row,
 * as Keras' layers of dtype "int8_from_float32" do; in floats, noting the range of x in eager calls. */
typedef enum flow_quantizing { FLOW_NOT_QUANTIZED = 0, FLOW_QUANTIZED, FLOW_QUANTIZED_BY_ROW, FLOW_CALIBRATING } flow_quantizing;

/* Whether layers of a class can be quantized (flow_layer_quantize). */
FLOW_API int         flow_layer_class_quantizes(int index);
/* How the layer computes x . kernel from now on, a flow_quantizing; low and high: the range of its input, of FLOW_QUANTIZED. The kernel
 * stays float32: bytes are made of it when a plan first runs. FLOW_UNSUPPORTED if the class cannot. Traces made before stay as they are. */
FLOW_API flow_status flow_layer_quantize(flow_layer *layer, int quantizing, double low, double high);
/* What is set; range[0], range[1] (NULL: not wanted): low and high, or, while it calibrates, the range seen so far: 0, 0 if nothing was. */
FLOW_API int         flow_layer_quantization(const flow_layer *layer, double *range);
/* A layer from the config that flow_layer_config or Keras wrote; new reference. */
FLOW_API flow_status flow_layer_from_config(const char *class_name, const char *config, flow_layer **out);
/* Keras' config as JSON. Returns the length of the whole text, and writes at most size bytes of it; -1: out of memory. */
FLOW_API int         flow_layer_config(const flow_layer *layer, char *text, int size);

/* Class names and options of what arguments of these kinds can name; NULL beyond the last. */
enum { FLOW_CHOICE_INITIALIZER = 0, FLOW_CHOICE_REGULARIZER, FLOW_CHOICE_CONSTRAINT };
/* The class name of choice `index`, from 0. Borrowed, static. */
FLOW_API const char *flow_choice_name(int kind, int index);
/* The name of one of its options, from 0. Borrowed, static; NULL for a number out of range. */
FLOW_API const char *flow_choice_parameter(int kind, int index, int parameter);
/* The index of a choice by its class name or snake-case name, or -1. */
FLOW_API int         flow_choice_find(int kind, const char *name);
/* Keras' config of a choice with these options (NULL: the defaults), JSON: {"module", "class_name", "config", "registered_name"}. Returns
 * the length of the whole text, and writes at most size bytes of it; -1: a wrong name or option, or no memory. */
FLOW_API int         flow_choice_config(int kind, const char *name, const flow_arguments *options, char *text, int size);

/* Fills a tensor by an initializer of Keras' name, with the shape of `into`. */
FLOW_API flow_status flow_initialize(flow_context *context, const char *initializer, const flow_arguments *arguments, double seed,
                                     flow_tensor *into);

/* What a regularizer of Keras' name adds to the loss for a tensor of weights: l1 x sum |w| + l2 x sum w^2, a scalar of their dtype; both
 * in eager mode and traces. Options (may be NULL): l1, l2. Returns a new reference. */
FLOW_API flow_status flow_regularize(flow_context *context, const char *regularizer, const flow_arguments *options, flow_tensor *weights,
                                     flow_tensor **out);

/* `weights` as a constraint of Keras' name lets them be: both in eager mode and traces. Options (may be NULL): those of its class, axes
 * from 0. Returns a new reference. */
FLOW_API flow_status flow_constrain(flow_context *context, const char *constraint, const flow_arguments *options, flow_tensor *weights,
                                    flow_tensor **out);
/* What optimizers project a variable onto after each of their updates of it: a constraint of Keras' name; NULL: nothing. Options: as
 * above. */
FLOW_API flow_status flow_variable_set_constraint(flow_variable *variable, const char *constraint, const flow_arguments *options);
/* That constraint as Keras' config, JSON; empty: there is none. Returns the whole length; -1: out of memory. */
FLOW_API int         flow_variable_constraint(const flow_variable *variable, char *text, int size);

/* Per-sample loss values (rank of y_pred less one) and per-sample hits of a metric; both in eager mode and traces.
 * Options: from_logits (boolean). */

/* The index of a loss by its class or snake-case name or Keras' short forms ("mse"), or -1. */
FLOW_API int         flow_loss_find(const char *name);
/* Its snake-case name. Borrowed, static; NULL: no more. */
FLOW_API const char *flow_loss_name(int loss);
/* The name of an option, from 0, in the order of Keras' class; NULL: no more. Borrowed, static. */
FLOW_API const char *flow_loss_argument(int loss, int argument);
/* The default of an option as text, "-1", "null"; NULL: no more. Borrowed, static. */
FLOW_API const char *flow_loss_argument_default(int loss, int argument);
/* The loss of each sample; options may be NULL. FLOW_INVALID_ARGUMENT says which shapes do not go together. New reference. */
FLOW_API flow_status flow_loss_values(flow_context *context, int loss, const flow_arguments *options, flow_tensor *y_true,
                                      flow_tensor *y_pred, flow_tensor **out);
/* As flow_loss_find. */
FLOW_API int         flow_metric_find(const char *name);
/* As flow_loss_name: borrowed, static. */
FLOW_API const char *flow_metric_name(int metric);
/* As flow_loss_argument: borrowed, static. Of a loss that is a metric: also reduction, which metrics do without. */
FLOW_API const char *flow_metric_argument(int metric, int argument);
/* As flow_loss_argument_default: borrowed, static. */
FLOW_API const char *flow_metric_argument_default(int metric, int argument);
/* What the metric makes of each sample: 0 or 1, where it counts hits. New reference. */
FLOW_API flow_status flow_metric_values(flow_context *context, int metric, const flow_arguments *options, flow_tensor *y_true,
                                        flow_tensor *y_pred, flow_tensor **out);
/* sum(values x weights) / number of values; weights may be NULL; an empty batch gives 0. */
FLOW_API flow_status flow_loss_reduce(flow_context *context, flow_tensor *values, flow_tensor *weights, flow_tensor **out);

/* The weights of values whose y_pred carries a mask: 0 where it leaves them out, else 1, or, mean, values / values that count, so that
 * flow_loss_reduce gives the mean of those. float32 in the shape of the mask; new reference. */
FLOW_API flow_status flow_loss_mask_weights(flow_context *context, flow_tensor *mask, int mean, flow_tensor **out);

/* The index of an optimizer: "SGD", "adam"; -1. The arguments of index -1 are those that every optimizer has. */
FLOW_API int         flow_optimizer_class_find(const char *name);
/* How many arguments the class takes, in Keras' order; 0: an unknown class. */
FLOW_API int         flow_optimizer_class_argument_count(int index);
/* Its class name, such as "SGD". Borrowed, static, as the three below; NULL: no more. */
FLOW_API const char *flow_optimizer_class_name(int index);
/* An argument's name, type (one of those of flow_layer_class_argument_type) and default as text. Borrowed, static; NULL: no more. */
FLOW_API const char *flow_optimizer_class_argument(int index, int argument);
FLOW_API const char *flow_optimizer_class_argument_type(int index, int argument);
FLOW_API const char *flow_optimizer_class_argument_default(int index, int argument);
/* An optimizer without slots: they are made for the variables of its first update, or by flow_optimizer_build. FLOW_INVALID_ARGUMENT
 * names a class or an argument that is unknown or out of range. name NULL: the one that Keras gives. New reference. */
FLOW_API flow_status flow_optimizer_new(const char *class_name, const char *name, const flow_arguments *arguments, flow_optimizer **out);
/* An optimizer whose updates the caller makes, between flow_update_begin and flow_update_end. class_name is copied: it is what messages and
 * the config call it. */
FLOW_API flow_status flow_optimizer_new_custom(const char *class_name, const char *name, const flow_arguments *arguments,
                                               flow_optimizer **out);
/* From what flow_optimizer_config wrote, or Keras: schedules included. */
FLOW_API flow_status flow_optimizer_from_config(const char *text, flow_optimizer **out);
/* NULL is fine. */
FLOW_API void        flow_optimizer_release(flow_optimizer *optimizer);
/* Borrowed, as long as the optimizer. */
FLOW_API const char *flow_optimizer_name(const flow_optimizer *optimizer);
/* The index of its class. */
FLOW_API int         flow_optimizer_class_index(const flow_optimizer *optimizer);
/* As Keras serializes it, with the learning rate of now: {"module": "keras.optimizers", "class_name": ..., "config": {...},
 * "registered_name": null}. Returns the whole length; -1: out of memory. */
FLOW_API int         flow_optimizer_config(const flow_optimizer *optimizer, char *text, int size);
/* Adopts the variables into one arena (their storage moves, the handles stay), makes the slots and appends or runs the
 * update. Gradients that are NULL are left out. */
FLOW_API flow_status flow_optimizer_apply(flow_context *context, flow_optimizer *optimizer, flow_tensor *const *gradients,
                                          flow_variable *const *variables, int count);
/* Makes the slots for these variables without an update, as before reading them from a file. */
FLOW_API flow_status flow_optimizer_build(flow_optimizer *optimizer, flow_variable *const *variables, int count);
/* The rates of all updates come from a schedule (retained), or, with NULL, from the caller. Only before the first update: the
 * learning rate is not a variable then. */
FLOW_API flow_status flow_optimizer_set_schedule(flow_optimizer *optimizer, flow_schedule *schedule);
/* Borrowed; NULL: there is none. */
FLOW_API flow_schedule *flow_optimizer_schedule(const flow_optimizer *optimizer);
/* flow_optimizer_apply with the rate of this update, a float32 scalar. */
FLOW_API flow_status flow_optimizer_apply_at(flow_context *context, flow_optimizer *optimizer, flow_tensor *rate,
                                             flow_tensor *const *gradients, flow_variable *const *variables, int count);
/* The same with gradients of flow_loss_scale_loss (scale NULL: of the loss itself): they are divided by the scale; unless all are finite,
 * nothing but the scale is written. */
FLOW_API flow_status flow_optimizer_apply_scaled(flow_context *context, flow_optimizer *optimizer, flow_loss_scale *scale,
                                                 flow_tensor *rate, flow_tensor *const *gradients,
                                                 flow_variable *const *variables, int count);

/* An update that the caller makes of an optimizer of flow_optimizer_new_custom, with the arguments of flow_optimizer_apply_scaled: begin
 * divides the gradients by the loss scale, sums them over replicas, accumulates and clips them; the caller computes and assigns; end counts
 * the update and moves the loss scale. What was begun and is not to end is released. */
typedef struct flow_update flow_update;
FLOW_API flow_status flow_update_begin(flow_context *context, flow_optimizer *optimizer, flow_loss_scale *scale, flow_tensor *rate,
                                       flow_tensor *const *gradients, flow_variable *const *variables, int count, flow_update **out);
/* The gradient for variables[index], in its shape: a new reference; NULL: there is none. */
FLOW_API flow_status  flow_update_gradient(const flow_update *update, int index, flow_tensor **out);
/* The rate, a float32 scalar. Borrowed. */
FLOW_API flow_tensor *flow_update_rate(const flow_update *update);
/* A float32 scalar: where it is 0 the caller leaves all variables as they were, since a loss scale skips the update, or gradients are only
 * accumulated; NULL: neither can be. Borrowed. */
FLOW_API flow_tensor *flow_update_guard(const flow_update *update);
/* The part of variables[index] that it loses first, over the rate; 0: none. */
FLOW_API double       flow_update_decay(const flow_update *update, int index);
/* Ends it with what follows the new weights: averages, constraints. Releases the update, whatever it returns. */
FLOW_API flow_status  flow_update_end(flow_update *update);
/* The same of an update whose weights another process makes: nothing follows them here. */
FLOW_API flow_status  flow_update_end_elsewhere(flow_update *update);
FLOW_API void         flow_update_release(flow_update *update);      /* NULL is fine */

/* Leaves out of weight decay: a variable, or all whose names contain `name` (the other one is NULL). Only before slots are made. */
FLOW_API flow_status flow_optimizer_exclude_from_weight_decay(flow_optimizer *optimizer, flow_variable *variable, const char *name);
/* A float32 scalar that may be assigned. Borrowed; NULL: there is a schedule. */
FLOW_API flow_variable *flow_optimizer_learning_rate(flow_optimizer *optimizer);
/* The number of updates, or, with gradient_accumulation_steps, of calls, an int64 scalar. Borrowed. */
FLOW_API flow_variable *flow_optimizer_iterations(flow_optimizer *optimizer);
/* How many calls make one update: gradient_accumulation_steps; 1: each does. */
FLOW_API double      flow_optimizer_accumulation_steps(const flow_optimizer *optimizer);
/* Slots of all variables, in Keras' order: m0 v0 m1 v1 ... */
FLOW_API int         flow_optimizer_slot_count(const flow_optimizer *optimizer);
/* A view into the arena of the slots. Borrowed. */
FLOW_API flow_variable *flow_optimizer_slot(const flow_optimizer *optimizer, int index);
/* The variables that have slots, those of the first build first. Borrowed; NULL: there is no such variable. */
FLOW_API int            flow_optimizer_variable_count(const flow_optimizer *optimizer);
FLOW_API flow_variable *flow_optimizer_variable(const flow_optimizer *optimizer, int index);
/* How many slots each of them has; one of these. Borrowed; NULL: there is none. The decay of its weights in an update; 0: none. */
FLOW_API int            flow_optimizer_slot_kinds(const flow_optimizer *optimizer);
FLOW_API flow_variable *flow_optimizer_slot_of(const flow_optimizer *optimizer, const flow_variable *variable, int kind);
FLOW_API double         flow_optimizer_decay_of(const flow_optimizer *optimizer, const flow_variable *variable);
/* The moving average of a variable that the optimizer trains with use_ema, among the slots. Borrowed; NULL: there is none. */
FLOW_API flow_variable *flow_optimizer_average(const flow_optimizer *optimizer, const flow_variable *variable);

/* Dynamic loss scales: doubled after growth_steps updates in a row, halved when an update is skipped (Keras' LossScaleOptimizer). */
enum { FLOW_INITIAL_LOSS_SCALE = 32768, FLOW_LOSS_SCALE_GROWTH_STEPS = 2000 };    /* Keras' defaults */
/* The scale is above 0, growth_steps a whole number from 1: FLOW_INVALID_ARGUMENT says what was given. name NULL: the one that Keras
 * gives. New reference. */
FLOW_API flow_status flow_loss_scale_new(const char *name, double initial_scale, double growth_steps, flow_loss_scale **out);
FLOW_API void        flow_loss_scale_release(flow_loss_scale *scale);      /* NULL is fine */
/* Borrowed, as long as the scale. */
FLOW_API const char *flow_loss_scale_name(const flow_loss_scale *scale);
/* iteration and learning_rate, which stay 0, step_counter (int64), dynamic_scale (float32); borrowed; NULL after them. */
FLOW_API flow_variable *flow_loss_scale_variable(const flow_loss_scale *scale, int index);
/* loss x scale. New reference. */
FLOW_API flow_status flow_loss_scale_loss(flow_context *context, flow_loss_scale *scale, flow_tensor *loss, flow_tensor **out);
/* The scale with its optimizer as Keras serializes them, and back: two new references. The first returns the whole length, or -1. */
FLOW_API int         flow_loss_scale_config(const flow_loss_scale *scale, const flow_optimizer *inner, char *text, int size);
FLOW_API flow_status flow_loss_scale_from_config(const char *text, flow_loss_scale **scale, flow_optimizer **inner);

/* How many schedules there are. Their indices run from 0. */
FLOW_API int         flow_schedule_class_count(void);
/* The index of a class, such as "CosineDecay"; -1. */
FLOW_API int         flow_schedule_class_find(const char *name);
/* Its name, and the names of its arguments in Keras' order. Borrowed, static; NULL: no more. */
FLOW_API const char *flow_schedule_class_name(int index);
FLOW_API int         flow_schedule_class_argument_count(int index);
FLOW_API const char *flow_schedule_class_argument(int index, int argument);
/* A schedule: immutable, shared between threads. New reference. */
FLOW_API flow_status flow_schedule_new(const char *class_name, const flow_arguments *arguments, flow_schedule **out);
/* One more reference, and one less (NULL is fine). From any thread. */
FLOW_API flow_schedule *flow_schedule_retain(flow_schedule *schedule);
FLOW_API void        flow_schedule_release(flow_schedule *schedule);
FLOW_API const char *flow_schedule_class(const flow_schedule *schedule);      /* "CosineDecay" */
/* The rate at a step, as training computes it: rounded to float32. */
FLOW_API double      flow_schedule_value(const flow_schedule *schedule, double step);
/* The same of a step that is an int64 scalar, concrete or symbolic; *out: a new reference to a float32 scalar. */
FLOW_API flow_status flow_schedule_rate(flow_context *context, const flow_schedule *schedule, flow_tensor *step, flow_tensor **out);
/* As Keras serializes it, JSON. Returns the whole length; -1: out of memory. */
FLOW_API int         flow_schedule_config(const flow_schedule *schedule, char *text, int size);

#endif
