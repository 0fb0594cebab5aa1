/* model_run.c: the calls of a model, eagerly or traced, and its two steps: prediction and training. A step is traced for
 * the dtypes and sizes that it is given; its plan runs any number of rows up to its capacity.
 *
 * A call of flow_model_predict: inputs are checked and made contiguous, the caller enters as a reader (session.h), takes
 * a runner whose plan fits, runs it batch by batch, gives it back and leaves. Training is the same as a writer, in one
 * batch. No Lua is involved, and no memory of the model is written but variables. */
#include <string.h>

#include "graph/context.h"
#include "base/float_state.h"
#include "layers/express.h"
#include "layers/regularizers.h"
#include "models/wrappers.h"
#include "run/instance.h"

/* Rows of one run of a prediction: as Keras' predict has it, and the largest capacity that runners of predictions are made for. */
enum { BATCH = 32 };

/* ---- calls ------------------------------------------------------------------------------------------------------------------- */

/* As in Keras an input of another dtype is cast, not refused. A new reference in any case. */
static flow_status cast_input(flow_context *context, const flow_model_input *input, flow_tensor *given, flow_tensor **out)
{
  if (given->dtype == input->dtype) {
    *out = flow_tensor_retain(given);
    return FLOW_OK;
  }
  flow_attributes attributes = { .cast = { .dtype = input->dtype } };
  return flow_apply(context, FLOW_OP_cast, &given, 1, &attributes, out);
}

/* Whether sessions can run the layer: states of a stateful one would be shared by all callers. */
flow_status flow_model_check_layer(const flow_layer *layer)
{
  if (flow_layer_state_count(layer) == 0) return FLOW_OK;
  return flow_fail(FLOW_UNSUPPORTED, "%s \"%s\" has stateful = true, and the sessions of a model have no states of their own: save it with "
                   "stateful = false, return_state = true and initial_state, or open it from Lua", layer->class->name, layer->name);
}

/* Inputs with names are ordered by them; one that is not given has rank -1. call->inputs[i] is below `names`:
 * flow_find_input_name gave it, or the call has one operand. */
flow_status flow_model_make_layer(flow_context *context, const flow_model_call *call, const flow_signature *operands)
{
  flow_signature named[FLOW_LAYER_MOST_INPUTS];
  int names = flow_layer_named_inputs(call->layer->class);
  if (!names) return flow_layer_make(context, call->layer, call->operand_count, operands);
  for (int i = 0; i < names; i++) named[i] = (flow_signature){ .rank = -1 };
  for (int i = 0; i < call->operand_count; i++) named[call->inputs[i]] = operands[i];
  return flow_layer_make(context, call->layer, names, named);
}

/* x with that mask: another tensor, since others may be called on x. */
static flow_status with_mask(flow_context *context, flow_tensor *x, flow_tensor *mask, flow_tensor **out)
{
  flow_attributes attributes = { .shape = { .rank = x->rank } };
  memcpy(attributes.shape.dims, x->shape, sizeof(int64_t) * (size_t)x->rank);
  FLOW_TRY(flow_apply(context, FLOW_OP_reshape, &x, 1, &attributes, out));
  flow_status status = flow_tensor_set_mask(*out, mask);
  if (status != FLOW_OK) flow_tensors_release(out, 1);
  return status;
}

/* After a failure `more` is released and *total is unchanged. */
flow_status flow_model_add_to(flow_context *context, flow_tensor **total, flow_tensor *more)
{
  flow_tensor *sum;
  if (!more || !*total) {
    if (more) *total = more;
    return FLOW_OK;
  }
  flow_status status = flow_apply(context, FLOW_OP_add, (flow_tensor *[]){ *total, more }, 2, NULL, &sum);
  flow_tensor_release(more);
  FLOW_TRY(status);
  flow_tensor_release(*total);
  *total = sum;
  return FLOW_OK;
}

/* The operands in the places that their names have. TimeDistributed and image layers have the input at 0, as all
 * wrappers do. */
static flow_status call_wrapper(flow_context *context, const flow_model_call *call, flow_tensor *const *operands, int training,
                                flow_tensor **results, flow_tensor **activity)
{
  flow_tensor *named[FLOW_LAYER_MOST_INPUTS] = { NULL };
  for (int i = 0; i < call->operand_count; i++) named[call->inputs[i]] = operands[i];
  if (!named[0]) return flow_wrapper_fail(call->wrapper, "it is called without an input");
  return flow_wrapper_run(&(flow_wrapper_call){
      .context = context, .part = call->wrapper, .named = named, .outputs = results, .training = training, .activity = activity });
}

/* results in values[call->result ...], new references. The mask of a tensor goes along with it (flow_tensor_set_mask); a
 * call without layer and operation is the one that sets it. Results that were made before a failure stay in `values`,
 * which the caller releases as a whole. */
flow_status flow_model_call_one(flow_context *context, const flow_model_call *call, flow_tensor **values, int training,
                                flow_tensor **activity)
{
  flow_tensor *operands[FLOW_MODEL_MOST_TENSORS];
  for (int i = 0; i < call->operand_count; i++) {
    operands[i] = values[call->operands[i]];
    if (!operands[i]) return flow_fail(FLOW_INVALID_ARGUMENT, "a part of a tensor that was taken apart is missing");
  }
  if (call->wrapper) return call_wrapper(context, call, operands, training, &values[call->result], activity);
  if (!call->layer && !call->operation) return with_mask(context, operands[0], operands[1], &values[call->result]);
  if (!call->layer)
    return flow_operation_run(context, call->operation, call->config, call->entry, operands, call->operand_count, &values[call->result]);
  flow_tensor *named[FLOW_LAYER_MOST_INPUTS] = { NULL }, **inputs = operands;
  int count = call->operand_count, names = flow_layer_named_inputs(call->layer->class);
  for (int i = 0; i < count && names; i++) named[call->inputs[i]] = operands[i];
  if (names) inputs = named, count = names;
  flow_tensor *outputs[FLOW_LAYER_MOST_OUTPUTS] = { NULL };      /* as many as the record can have: this layer may have fewer values */
  flow_status status = flow_layer_run(context, call->layer, inputs, count, call->options, training, outputs);
  memcpy(&values[call->result], outputs, sizeof *outputs * (size_t)call->result_count);
  flow_tensors_release(outputs + call->result_count, FLOW_LAYER_MOST_OUTPUTS - call->result_count);
  flow_tensor *added = flow_layer_take_activity(call->layer);
  if (status == FLOW_OK && activity) return flow_model_add_to(context, activity, added);
  flow_tensor_release(added);
  return status;
}

/* Every value is held until the end. In a trace, which is where steps and builds call this, a value is a few bytes. activity: collects what
 * activity_regularizer adds; NULL: it is dropped. */
flow_status flow_model_call_all(flow_context *context, flow_model *model, flow_tensor *const *inputs, int training, flow_tensor **outputs,
                                flow_tensor **activity)
{
  void *block;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_tensor *) * (size_t)model->program.value_count, &block));
  flow_tensor **values = block;
  flow_status status = FLOW_OK;
  for (int i = 0; i < model->input_count && status == FLOW_OK; i++) status = cast_input(context, &model->inputs[i], inputs[i], &values[i]);
  for (int i = 0; i < model->program.call_count && status == FLOW_OK; i++)
    status = flow_model_call_one(context, &model->program.calls[i], values, training, activity);
  for (int i = 0; i < model->output_count && status == FLOW_OK; i++) {
    if (values[model->outputs[i]]) outputs[i] = flow_tensor_retain(values[model->outputs[i]]);
    else status = flow_fail(FLOW_INVALID_ARGUMENT, "output %d of the model is a part that its tensor does not have", i + 1);
  }
  for (int i = 0; i < model->program.value_count; i++) flow_tensor_release(values[i]);
  flow_free(block);
  return status;
}

/* ---- steps --------------------------------------------------------------------------------------------------------------------- */

/* Adds what the regularizers of all layers ask for. *loss: the sum so far, replaced by the new one; NULL: none yet. */
static flow_status add_penalties(flow_context *context, const flow_model_part *part, flow_tensor **loss)
{
  for (int i = 0; part->layer && i < part->layer->variable_count; i++) {
    flow_tensor *penalty = NULL;
    FLOW_TRY(flow_layer_regularize(context, part->layer, i, &penalty));
    FLOW_TRY(flow_model_add_to(context, loss, penalty));
  }
  for (int i = 0; i < part->part_count; i++) FLOW_TRY(add_penalties(context, &part->parts[i], loss));
  return FLOW_OK;
}

/* Loss, gradients and the optimizer's update, as effects of the open trace. Everything that Keras' train_step does: forward on a tape,
 * loss by rows, masked and averaged, plus what layers and regularizers add, scaled if there is a loss scale; then gradients and the
 * update. Only the loss is an output of the step; the update is an effect. */
static flow_status trace_training(flow_context *context, flow_model *model, flow_tensor *const *inputs, flow_tensor **loss)
{
  flow_tensor *outputs[FLOW_MODEL_MOST_TENSORS] = { NULL }, *values = NULL, *weights = NULL, *target = NULL, *activity = NULL;
  flow_tape *tape;
  int count = flow_model_trainable(model, NULL);
  void *block;
  if (count == 0) return flow_fail(FLOW_INVALID_STATE, "there is nothing to train: no layer has trainable variables");
  FLOW_TRY(flow_alloc_zero(2 * sizeof(void *) * (size_t)count, &block));
  flow_variable **variables = block;
  flow_tensor **gradients = (flow_tensor **)block + count;
  flow_model_trainable(model, variables);
  flow_status status = flow_tape_begin(context, &tape);
  if (status == FLOW_OK) {
    status = flow_model_call_all(context, model, inputs, 1, outputs, &activity);
    flow_tensor *targets = inputs[model->input_count];
    if (status == FLOW_OK) status = flow_loss_run(context, model->loss, model->loss_options, targets, outputs[0], &values);
    if (status == FLOW_OK && outputs[0]->mask) status = flow_loss_mask(context, outputs[0]->mask, 1, &weights);
    if (status == FLOW_OK) status = flow_loss_mean(context, values, weights, loss);
    if (status == FLOW_OK) status = flow_model_add_to(context, loss, activity);
    else flow_tensor_release(activity);
    if (status == FLOW_OK) status = add_penalties(context, &model->root, loss);
    if (status == FLOW_OK && model->loss_scale) status = flow_loss_scale_loss(context, model->loss_scale, *loss, &target);
    else if (status == FLOW_OK) target = flow_tensor_retain(*loss);
    flow_status ended = flow_tape_end(context, tape);
    if (status == FLOW_OK) status = ended;
    if (status == FLOW_OK) status = flow_tape_gradient(context, tape, target, NULL, variables, count, gradients);
    if (status == FLOW_OK)
      status = flow_optimizer_apply_scaled(context, model->optimizer, model->loss_scale, NULL, gradients, variables, count);
    flow_tape_release(tape);
  }
  flow_tensor_release(values);
  flow_tensor_release(weights);
  flow_tensor_release(target);
  flow_tensors_release(outputs, model->output_count);
  flow_tensors_release(gradients, count);
  flow_free(block);
  return status;
}

/* A flow_step_tracer. Rows are -1, so that the plan serves any number; other sizes are those of the operands. The runs
 * of the plan follow the flow_instance of a runner; nothing of this trace stays but the plan. */
static flow_status trace_step(flow_context *context, flow_model *model, flow_step_kind kind, flow_tensor *const *given, int count,
                              flow_plan **plan)
{
  flow_tensor *inputs[FLOW_MODEL_MOST_TENSORS] = { NULL }, *outputs[FLOW_MODEL_MOST_TENSORS] = { NULL };
  FLOW_TRY(flow_trace_begin(context));
  flow_status status = FLOW_OK;
  for (int i = 0; i < count && status == FLOW_OK; i++) {
    int64_t shape[FLOW_MAX_RANK] = { -1 };
    for (int axis = 1; axis < given[i]->rank; axis++) shape[axis] = given[i]->shape[axis];
    status = flow_trace_input(context, given[i]->dtype, given[i]->rank, shape, &inputs[i]);
  }
  int output_count = kind == FLOW_STEP_TRAIN ? 1 : model->output_count;
  if (status == FLOW_OK && kind == FLOW_STEP_TRAIN) status = trace_training(context, model, inputs, &outputs[0]);
  else if (status == FLOW_OK) status = flow_model_call_all(context, model, inputs, 0, outputs, NULL);
  if (status == FLOW_OK) status = flow_trace_end(context, outputs, output_count, plan);
  else flow_trace_abort(context);
  flow_tensors_release(inputs, count);
  flow_tensors_release(outputs, output_count);
  return status;
}

/* ---- checks -------------------------------------------------------------------------------------------------------------------- */

/* function: the caller, which begins the message. */
flow_status flow_check_model(const char *function, const flow_model *model)
{
  if (model && model->magic == FLOW_MODEL_MAGIC) return FLOW_OK;
  return flow_fail(FLOW_INVALID_ARGUMENT, "%s: the model is NULL or was released", function);
}

/* Checks ranks and sizes except for rows, of which all inputs have *rows. In Sequential models the layers check sizes,
 * as in Keras. Rank and rows are checked for every input, so that inputs[0]->shape[0] exists when others are compared
 * with it. */
static flow_status check_inputs(const char *function, const flow_model *model, flow_tensor *const *inputs, int count, int64_t *rows)
{
  if (count != model->input_count)
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s: the model has %d inputs, found %d", function, model->input_count, count);
  int any_size = model->root.kind == FLOW_PART_SEQUENTIAL;
  for (int i = 0; i < count; i++) {
    const flow_model_input *input = &model->inputs[i];
    if (flow_check_tensor("it", inputs[i]) != FLOW_OK) {
      return flow_fail_prefix(FLOW_INVALID_ARGUMENT, "%s: input \"%s\": ", function, input->name);
    }
    int fits = inputs[i]->rank == input->rank && inputs[i]->shape[0] >= 1 && inputs[i]->shape[0] == inputs[0]->shape[0];
    for (int axis = 1; axis < input->rank && fits; axis++)
      fits = any_size || input->shape[axis] < 0 || inputs[i]->shape[axis] == input->shape[axis];
    if (!fits || flow_tensor_is_symbolic(inputs[i]))
      return flow_fail(FLOW_INVALID_ARGUMENT, "%s: input \"%s\" has shape %s, expected %s and as many rows in every input", function,
                       input->name, flow_shape_text(inputs[i]->rank, inputs[i]->shape), flow_shape_text(input->rank, input->shape));
  }
  *rows = inputs[0]->shape[0];
  return FLOW_OK;
}

/* ---- running ------------------------------------------------------------------------------------------------------------------- */

/* The number of the first prediction as a step: below those of training, as in lua/flow/train/steps.lua. */
static const double UNTRAINED = -0x1p52;

/* All rows of the call `number`, by an instance that no other call uses; rows count from 0 on, so that random layers draw the same numbers
 * however a call is cut into batches, and other ones in each call. After a failure the caller releases the outputs that there are. */
static flow_status predict_rows(flow_context *context, flow_model *model, flow_instance *instance, flow_tensor *const *inputs,
                                int64_t number, int64_t rows, flow_tensor **outputs)
{
  flow_instance_scalars(instance, model->seed, UNTRAINED + (double)number, 0);
  if (rows <= BATCH) return flow_instance_run(context, instance, inputs, model->input_count, outputs);
  FLOW_TRY(flow_instance_new_outputs(instance, rows, outputs));
  return flow_instance_predict_rows(context, instance, inputs, model->input_count, 0, (double)rows, BATCH, outputs);
}

/* With a runner of the session's (own) or the model's, between enter and leave. *writes: whether the caller entered as a writer; set where
 * the prediction changes variables and must come again as one: a layer was called with training = true. */
static flow_status predict(flow_context *context, flow_model *model, flow_runner **own, flow_tensor *const *inputs, int64_t rows,
                           int *writes, flow_tensor **outputs)
{
  flow_runner *runner;
  FLOW_TRY(flow_runner_take(context, model, model->sharing, own, trace_step, FLOW_STEP_PREDICT, inputs, model->input_count,
                            rows < BATCH ? rows : BATCH, &runner));
  int again = runner->writes && !*writes;
  int64_t number = again ? 0 : atomic_fetch_add(&model->predictions, 1);
  flow_status status = again ? FLOW_OK : predict_rows(context, model, runner->instance, inputs, number, rows, outputs);
  flow_runner_give(model->sharing, own, runner);
  *writes = again;
  return status;
}

/* On the host, where these models run. Before the lock is taken: copying takes time, and needs no weights. */
static flow_status make_contiguous(flow_tensor *const *tensors, int count, flow_tensor **contiguous)
{
  for (int i = 0; i < count; i++) FLOW_TRY(flow_tensor_on_host_contiguous(tensors[i], &contiguous[i]));
  return FLOW_OK;
}

/* Enters as a reader. If the step turns out to change variables (a layer with training = true), it leaves and enters again as a writer:
 * two readers must not write. */
static flow_status predict_shared(const char *function, flow_context *context, flow_model *model, flow_runner **own,
                                  flow_tensor *const *inputs, int count, flow_tensor **outputs)
{
  FLOW_DEFAULT_FLOATS;
  flow_tensor *contiguous[FLOW_MODEL_MOST_TENSORS] = { NULL };
  int64_t rows;
  FLOW_TRY(check_inputs(function, model, inputs, count, &rows));
  for (int i = 0; i < model->output_count; i++) outputs[i] = NULL;
  flow_status status = make_contiguous(inputs, count, contiguous);
  for (int entered = 0, writes = 0; status == FLOW_OK && (!entered || writes); entered = 1) {
    int as_writer = writes;
    status = flow_sharing_enter(model->sharing, context, as_writer);
    if (status != FLOW_OK) break;
    status = predict(context, model, own, contiguous, rows, &writes, outputs);
    flow_sharing_leave(model->sharing, as_writer);
  }
  flow_tensors_release(contiguous, count);
  if (status != FLOW_OK) flow_tensors_release(outputs, model->output_count);
  return status;
}

/* outputs[] gets as many new references as the model has outputs; after a failure all of them are NULL. */
flow_status flow_model_predict(flow_context *context, flow_model *model, flow_tensor *const *inputs, int count, flow_tensor **outputs)
{
  FLOW_TRY(flow_check_model("flow_model_predict", model));
  if (!context || !inputs || !outputs) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_model_predict: context, inputs or outputs is NULL");
  return predict_shared("flow_model_predict", context, model, NULL, inputs, count, outputs);
}

/* A writer from before the runner is taken until the result is there. The loss is a number of the batch before the update. */
flow_status flow_model_train(flow_context *context, flow_model *model, flow_tensor *const *inputs, int count, flow_tensor *targets,
                             double *loss)
{
  FLOW_DEFAULT_FLOATS;
  int64_t rows;
  flow_tensor *operands[FLOW_MODEL_MOST_TENSORS] = { NULL }, *result = NULL;
  flow_runner *runner = NULL;
  FLOW_TRY(flow_check_model("flow_model_train", model));
  if (!context || !inputs || !targets) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_model_train: context, inputs or targets is NULL");
  if (model->is_shared)
    return flow_fail(FLOW_INVALID_STATE, "flow_model_train: %s is shared, and others predict with its weights: train a model of your own, "
                     "which flow_model_load gives", model->path);
  if (model->not_compiled)
    return flow_fail(FLOW_INVALID_STATE, "flow_model_train: %s is not compiled: %s", model->path, model->not_compiled);
  if (!model->optimizer || !model->loss)
    return flow_fail(FLOW_INVALID_STATE, "flow_model_train: %s was saved without a loss and an optimizer, or has several outputs",
                     model->path);
  FLOW_TRY(check_inputs("flow_model_train", model, inputs, count, &rows));
  FLOW_TRY(flow_check_tensor("flow_model_train: targets", targets));
  if (count == FLOW_MODEL_MOST_TENSORS || targets->rank < 1 || targets->shape[0] != rows)
    return flow_fail(FLOW_INVALID_ARGUMENT, "flow_model_train: targets have shape %s for %.0f rows of inputs",
                     flow_shape_text(targets->rank, targets->shape), (double)rows);
  flow_status status = make_contiguous(inputs, count, operands);
  if (status == FLOW_OK) status = flow_tensor_contiguous(targets, &operands[count]);
  if (status == FLOW_OK) status = flow_sharing_enter(model->sharing, context, 1);
  if (status == FLOW_OK) {
    status = flow_runner_take(context, model, model->sharing, NULL, trace_step, FLOW_STEP_TRAIN, operands, count + 1, rows, &runner);
    if (status == FLOW_OK) {
      flow_instance_scalars(runner->instance, model->seed, model->steps_done, 0);
      status = flow_instance_run(context, runner->instance, operands, count + 1, &result);
    }
    if (status == FLOW_OK) model->steps_done++;
    flow_runner_give(model->sharing, NULL, runner);
    flow_sharing_leave(model->sharing, 1);
  }
  if (status == FLOW_OK && loss) status = flow_tensor_item(result, loss);
  flow_tensor_release(result);
  flow_tensors_release(operands, count + 1);
  return status;
}

/* ---- sessions ------------------------------------------------------------------------------------------------------------------ */

enum { SESSION_MAGIC = 0x464c5353 };

/* A caller's own runners: no other caller takes them away between two calls. `busy` finds two threads in one session, which is a fault
 * of the caller. */
struct flow_session {
  uint32_t     magic;
  flow_model  *model;                    /* a reference */
  flow_runner *runners;                  /* its own, for some numbers of rows */
  _Atomic int  busy;
};

/* The session keeps the model alive. */
flow_status flow_session_new(flow_model *model, flow_session **out)
{
  void *block;
  if (!out) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_session_new: out is NULL");
  FLOW_TRY(flow_check_model("flow_session_new", model));
  FLOW_TRY(flow_alloc_zero(sizeof(flow_session), &block));
  *out = block;
  (*out)->magic = SESSION_MAGIC;
  (*out)->model = flow_model_retain(model);
  return FLOW_OK;
}

/* As flow_model_predict, with runners that stay with the session. One thread at a time. */
flow_status flow_session_predict(flow_context *context, flow_session *session, flow_tensor *const *inputs, int count,
                                 flow_tensor **outputs)
{
  int idle = 0;
  if (!context || !session || session->magic != SESSION_MAGIC || !inputs || !outputs)
    return flow_fail(FLOW_INVALID_ARGUMENT, "flow_session_predict: an argument is NULL, or the session was released");
  if (!atomic_compare_exchange_strong(&session->busy, &idle, 1))
    return flow_fail(FLOW_INVALID_STATE, "this session predicts in another thread; make one for each thread, or use flow_model_predict");
  flow_status status = predict_shared("flow_session_predict", context, session->model, &session->runners, inputs, count, outputs);
  atomic_store(&session->busy, 0);
  return status;
}

/* Not while another thread predicts with it. */
void flow_session_release(flow_session *session)
{
  if (!session || session->magic != SESSION_MAGIC) return;
  session->magic = 0;
  flow_runners_release(&session->runners);
  flow_model_release(session->model);
  flow_free(session);
}
