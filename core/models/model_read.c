/* model_read.c: config.json, as keras.src.saving.serialization_lib writes it, becomes parts (model_parts.c), and the parts calls, here. The
 * file is hostile: every member is checked for its kind, nesting and the number of calls are bounded.
 *
 * A call of a layer, a wrapper or an operation becomes one flow_model_call; a call of a model becomes the calls of what is in it, so that
 * the program of the whole model is flat (flow_part_expand). Values are numbered as calls are made: a call's operands have lower numbers
 * than its results, which is why the calls can run in the order in which they are in the program. */
#include <stdio.h>
#include <string.h>

#include "layers/config.h"
#include "models/file_tensors.h"
#include "models/wrappers.h"

enum { MOST_CALLS = 100000, MOST_WAITS = 10 * MOST_CALLS };

static const flow_json *member(const flow_json *object, const char *name) { return flow_json_member(object, name); }

/* ---- inputs ---------------------------------------------------------------------------------------------------------------- */

/* Adds an input of the model: value number input_count. Dimension 0 is always -1 here, whatever the file says: a plan runs any number of
 * rows. */
static flow_status add_input(flow_model *model, const flow_model_part *part)
{
  const flow_json *config = member(part->entry, "config"), *shape = member(config, "batch_shape"), *dtype = member(config, "dtype"), *dim;
  const char *name = flow_json_is(dtype, FLOW_JSON_TEXT) ? dtype->text : flow_json_member_text(member(dtype, "config"), "name");
  flow_model_input input = { .name = part->name, .dtype = flow_dtype_find(name ? name : "float32") };
  if (!flow_json_is(shape, FLOW_JSON_LIST) || flow_json_count(shape) < 1 || flow_json_count(shape) > FLOW_MAX_RANK)
    return flow_fail(FLOW_CORRUPT_DATA, "the input \"%s\" has no batch_shape of 1 to %d dimensions", part->name, FLOW_MAX_RANK);
  if (input.dtype < 0) return flow_fail(FLOW_UNSUPPORTED, "the input \"%s\" is of dtype \"%s\", which is not known", part->name, name);
  FLOW_JSON_EACH(dim, shape) {
    double size = flow_json_is_number(dim) ? dim->number : flow_json_is(dim, FLOW_JSON_NULL) ? -1 : 0;
    if (input.rank > 0 && size != -1 && !(size >= 1 && size <= 0x1p31))
      return flow_fail(FLOW_CORRUPT_DATA, "dimension %d of the input \"%s\" is neither a size nor null", input.rank, part->name);
    input.shape[input.rank] = input.rank == 0 ? -1 : (int64_t)size;
    input.rank++;
  }
  FLOW_TRY(flow_grow(&model->inputs, sizeof input, model->input_count + 1, &model->input_capacity));
  model->inputs[model->input_count++] = input;
  model->program.value_count++;
  return FLOW_OK;
}

/* ---- calls ------------------------------------------------------------------------------------------------------------------- */

/* Models that call models count as calls, too: without that, a few of them, each with two calls of the next, would take forever. */
static flow_status count_call(flow_model_program *program, int calls)
{
  program->total += calls;
  if (program->total <= MOST_CALLS) return FLOW_OK;
  return flow_fail(FLOW_CORRUPT_DATA, "it has more than %d calls of layers", MOST_CALLS);
}

/* Appends a call of a layer, a wrapper, an operation or, where the part has none of these, of the mask setter. given:
 * how many values the call gives; *result: the first of them. The operands are copied. */
static flow_status add_call(flow_model_program *program, const flow_model_part *part, const flow_json *entry, const int *operands,
                            int count, int given, int *result)
{
  void *block;
  FLOW_TRY(count_call(program, 1 + (part->kind == FLOW_PART_WRAPPER ? part->program.total : 0)));
  if (count > FLOW_MODEL_MOST_TENSORS)
    return flow_fail(FLOW_UNSUPPORTED, "the layer \"%s\" is called with %d inputs, at most %d are possible", part->name, count,
                     FLOW_MODEL_MOST_TENSORS);
  FLOW_TRY(flow_grow(&program->calls, sizeof *program->calls, program->call_count + 1, &program->call_capacity));
  FLOW_TRY(flow_alloc(sizeof(int) * (size_t)count, &block));
  memcpy(block, operands, sizeof(int) * (size_t)count);
  *result = program->value_count;
  program->value_count += given;
  const flow_model_part *wrapper = part->kind == FLOW_PART_WRAPPER ? part : NULL;
  flow_model_call call = { .layer = part->layer, .wrapper = wrapper, .operation = part->operation, .entry = entry };
  call.config = member(part->entry, "config");
  call.operands = block, call.operand_count = count;
  call.result = *result, call.result_count = given;
  for (int i = 0; i < count && i < FLOW_LAYER_MOST_INPUTS; i++) call.inputs[i] = i;
  program->calls[program->call_count++] = call;
  return FLOW_OK;
}

/* What the parts of one call of a functional model have given so far: values[part][call][output]. calls: how many were made so far, of
 * `of`, as many as the part has in the list, and `next` the one after them; values has room for all, and each entry for `outputs` values.
 * A list is not asked for its length or for an entry by its number while it is walked: both take as long as the list is. */
typedef struct results {
  int **values;
  int calls, of, outputs;
  const flow_json *next;
} results;

/* How many results a call of the part has: for a Sequential model one; flow_part_expand checks that its parts have one
 * each. 0 for a model that names no outputs. */
int flow_part_outputs(const flow_model_part *part)
{
  if (part->kind == FLOW_PART_OPERATION) return flow_operation_outputs(part->operation, member(part->entry, "config"));
  if (part->kind == FLOW_PART_LAYER || part->kind == FLOW_PART_WRAPPER) return flow_wrapper_outputs(part);
  if (part->kind == FLOW_PART_SEQUENTIAL && part->part_count > 0) return flow_part_outputs(&part->parts[part->part_count - 1]);
  return part->kind == FLOW_PART_FUNCTIONAL ? flow_file_end_count(member(member(part->entry, "config"), "output_layers")) : 1;
}

/* A number of a call or of an output: whole, from 0; a file may hold any number here, NaN too. */
static int is_ordinal(const flow_json *value)
{
  return flow_json_is_number(value) && value->number >= 0 && value->number <= INT32_MAX && value->number == (int)value->number;
}

/* The value of {name, call, output}; -1: not there yet. Among the inputs and outputs of a model (ends), and only there, Keras counts a
 * call that every functional model begins with. The output is compared with those that there are before it becomes an index. */
static flow_status find_value(const flow_model_part *part, const results *found, const flow_json *history, int ends, int *value)
{
  const flow_json *name = flow_json_item(history, 0), *call = flow_json_item(history, 1), *output = flow_json_item(history, 2);
  if (!flow_json_is(name, FLOW_JSON_TEXT) || !is_ordinal(call) || !is_ordinal(output))
    return flow_fail(FLOW_CORRUPT_DATA, "a call in \"%s\" refers to a tensor in a way that is not known; save with Keras 3", part->name);
  int i = flow_part_find(part, name->text), index = (int)output->number, number = (int)call->number;
  if (i < 0) return flow_fail(FLOW_CORRUPT_DATA, "a call in \"%s\" refers to \"%s\", which does not exist", part->name, name->text);
  if (ends && part->parts[i].kind == FLOW_PART_FUNCTIONAL && number >= 1) number--;
  if (found[i].calls > 0 && index >= found[i].outputs)
    return flow_fail(FLOW_CORRUPT_DATA, "the layer \"%s\" has no output %d of call %d", part->parts[i].name, index, number);
  *value = number < found[i].calls ? found[i].values[number][index] : -1;
  return FLOW_OK;
}

/* Appends the results of one call to those of the part. */
static flow_status add_results(results *found, const int *values, int count)
{
  if (!found->values) {
    void *block;
    FLOW_TRY(flow_alloc_zero(sizeof(int *) * (size_t)found->of, &block));
    found->values = block;
    found->outputs = count;
  }
  void *block;
  FLOW_TRY(flow_alloc(sizeof(int) * (size_t)count, &block));
  memcpy(block, values, sizeof(int) * (size_t)count);
  found->values[found->calls++] = block;
  if (found->next) found->next = found->next->next;
  return FLOW_OK;
}

/* A call of such a part is expanded into calls. */
static int is_model(const flow_model_part *part) { return part->kind == FLOW_PART_SEQUENTIAL || part->kind == FLOW_PART_FUNCTIONAL; }

/* What a call gives beside its tensors: only `training` is known, and the mask of a model's inputs; null says nothing. */
static flow_status check_call(const flow_model_part *part, const flow_json *args, const flow_json *kwargs)
{
  if (part->kind == FLOW_PART_OPERATION) return flow_operation_check(part->operation, part->name, args, kwargs);
  for (const flow_json *item = flow_json_is(kwargs, FLOW_JSON_OBJECT) ? kwargs->child : NULL; item; item = item->next) {
    if (is_model(part) && strcmp(item->key, "mask") == 0) continue;
    if (!flow_json_is(item, FLOW_JSON_NULL) && strcmp(item->key, "training") != 0)
      return flow_fail(FLOW_UNSUPPORTED, "the call of \"%s\" has the argument %s, which is not supported", part->name, item->key);
  }
  for (int i = 1; i < flow_json_count(args); i++) {
    if (!flow_json_is(flow_json_item(args, i), FLOW_JSON_NULL))
      return flow_fail(FLOW_UNSUPPORTED, "the call of \"%s\" has %d arguments, only 1 supported", part->name, flow_json_count(args));
  }
  return FLOW_OK;
}

/* The operands of a call of a layer whose inputs have names. */
typedef struct named_operands { int operands[FLOW_LAYER_MOST_INPUTS], inputs[FLOW_LAYER_MOST_INPUTS], count, waits; } named_operands;

/* value: a tensor, or a list of them, for the argument `name`. waits: one of them is not made yet. */
static flow_status add_named(const flow_model_part *whole, const results *all, const flow_model_part *part, const char *name,
                             const flow_json *value, named_operands *named)
{
  int is_list = flow_json_is(value, FLOW_JSON_LIST), entry = 0;
  for (const flow_json *item = is_list ? value->child : value; item; item = is_list ? item->next : NULL) {
    int input = flow_find_input_name(flow_part_input_names(part), name, is_list ? ++entry : 0), taken = 0;
    const flow_json *history = member(member(item, "config"), "keras_history");
    if (flow_json_is(item, FLOW_JSON_NULL)) continue;
    for (int i = 0; i < named->count; i++) taken |= named->inputs[i] == input;
    if (input < 0 || taken || !history)
      return flow_fail(FLOW_UNSUPPORTED, "the call of \"%s\" has the argument %s, which is not supported in that place", part->name, name);
    FLOW_TRY(find_value(whole, all, history, 0, &named->operands[named->count]));
    named->waits |= named->operands[named->count] < 0;
    named->inputs[named->count++] = input;
  }
  return FLOW_OK;
}

/* A call whose tensors have names: by position through the record's input_names, by name through kwargs; other keyword arguments are
 * options of the call, if the layer's record has them. Like make_call it leaves *made 0 and nothing else where a tensor is not there yet.
 * Ownership of `options` goes to the call when it is made. */
static flow_status make_named_call(flow_model_program *program, const flow_model_part *whole, const results *all,
                                   const flow_model_part *part, const flow_json *entry, int *outputs, int *made)
{
  const char *const *names = flow_part_input_names(part);
  const flow_argument *known = part->layer ? part->layer->class->options : NULL;
  const flow_json *args = member(entry, "args"), *kwargs = member(entry, "kwargs"), *item;
  named_operands named = { .count = 0 };
  flow_arguments *options;
  char name[64];
  int position = 0;
  flow_status status = FLOW_OK;
  FLOW_JSON_EACH(item, args) {
    if (!flow_json_is(item, FLOW_JSON_NULL) && !flow_input_name_at(names, position, name))
      return flow_fail(FLOW_UNSUPPORTED, "the call of \"%s\" has %d arguments by position, which is not supported", part->name,
                       flow_json_count(args));
    if (!flow_json_is(item, FLOW_JSON_NULL)) FLOW_TRY(add_named(whole, all, part, name, item, &named));
    position++;
  }
  FLOW_TRY(flow_arguments_new(&options));
  for (item = flow_json_is(kwargs, FLOW_JSON_OBJECT) ? kwargs->child : NULL; item && status == FLOW_OK; item = item->next) {
    if (strcmp(item->key, "training") == 0 || flow_json_is(item, FLOW_JSON_NULL)) continue;
    if (known && flow_argument_find(known, item->key) >= 0) status = flow_config_set(options, item->key, item);
    else status = add_named(whole, all, part, item->key, item, &named);
  }
  if (status == FLOW_OK && !named.waits) {
    status = flow_part_expand(program, part, named.operands, named.count, 0, outputs);
    if (status == FLOW_OK) {
      flow_model_call *call = &program->calls[program->call_count - 1];
      memcpy(call->inputs, named.inputs, sizeof named.inputs);
      call->options = options;
      *made = 1;
      return FLOW_OK;
    }
  }
  flow_arguments_release(options);
  return status;
}

/* The tensors among the operands of an operation; *made: they are there. The other operands are read when it runs. */
static flow_status make_operation(flow_model_program *program, const flow_model_part *whole, const results *all,
                                  const flow_model_part *part, const flow_json *entry, int *outputs, int *made)
{
  const flow_json *args = member(entry, "args"), *operand;
  int operands[FLOW_MODEL_MOST_TENSORS], count = 0, made_count = flow_part_outputs(part), first;
  FLOW_JSON_EACH(operand, part->operation->operands == 0 ? flow_json_item(args, 0) : args) {
    const flow_json *history = member(member(operand, "config"), "keras_history");
    if (!history) continue;
    if (count == FLOW_MODEL_MOST_TENSORS)
      return flow_fail(FLOW_UNSUPPORTED, "\"%s\" is called with more than %d tensors", part->name, FLOW_MODEL_MOST_TENSORS);
    FLOW_TRY(find_value(whole, all, history, 0, &operands[count]));
    if (operands[count++] < 0) return FLOW_OK;
  }
  if (count == 0) return flow_fail(FLOW_CORRUPT_DATA, "the operation \"%s\" has no tensor among its operands", part->name);
  *made = 1;
  FLOW_TRY(add_call(program, part, entry, operands, count, made_count, &first));
  for (int i = 0; i < made_count; i++) outputs[i] = first + i;
  return FLOW_OK;
}

/* Puts the masks that a model is called with, one or a list, on its inputs, the values `operands`; *waits: one is not there yet. */
static flow_status add_masks(flow_model_program *program, const flow_model_part *whole, const results *all, const flow_model_part *part,
                             const flow_json *mask, int *operands, int count, int *waits)
{
  const flow_model_part setter = { .name = part->name };
  for (int i = 0, value; i < count; i++) {
    int alone = member(mask, "class_name") != NULL;
    const flow_json *own = i < flow_file_tensor_count(mask, alone) ? flow_file_tensor_at(mask, alone, i) : NULL;
    if (!own || flow_json_is(own, FLOW_JSON_NULL)) continue;
    FLOW_TRY(find_value(whole, all, member(member(own, "config"), "keras_history"), 0, &value));
    if ((*waits = value < 0)) return FLOW_OK;
    FLOW_TRY(add_call(program, &setter, NULL, (const int[]){ operands[i], value }, 2, 1, &operands[i]));
  }
  return FLOW_OK;
}

/* Makes call number found->calls of a part if its tensors are there; *made tells. A call that waits for a tensor leaves
 * nothing in the program and is tried again in the next walk; a call that has masks may leave setters there, whose
 * values nothing reads. */
static flow_status make_call(flow_model_program *program, const flow_model_part *whole, const results *all, int index, int depth, int *made)
{
  const flow_model_part *part = &whole->parts[index];
  results *found = (results *)&all[index];
  const flow_json *call = found->next;
  const flow_json *args = member(call, "args"), *first = flow_json_item(args, 0);
  int operands[FLOW_MODEL_MOST_TENSORS], count = 0, outputs[FLOW_MODEL_MOST_TENSORS], outputs_of_part = flow_part_outputs(part);
  *made = 0;
  if (!first) return flow_fail(FLOW_CORRUPT_DATA, "a call of \"%s\" has no inputs", part->name);
  if (outputs_of_part > FLOW_MODEL_MOST_TENSORS)
    return flow_fail(FLOW_UNSUPPORTED, "\"%s\" gives %d tensors, at most %d are possible", part->name, outputs_of_part,
                     FLOW_MODEL_MOST_TENSORS);
  int named = flow_part_input_names(part) != NULL;
  if (!named) FLOW_TRY(check_call(part, args, member(call, "kwargs")));
  if (part->kind == FLOW_PART_OPERATION) {
    FLOW_TRY(make_operation(program, whole, all, part, call, outputs, made));
    return *made ? add_results(found, outputs, outputs_of_part) : FLOW_OK;
  }
  if (named) FLOW_TRY(make_named_call(program, whole, all, part, call, outputs, made));
  if (named && !*made) return FLOW_OK;
  int alone = member(first, "class_name") != NULL, given = named ? 0 : flow_file_tensor_count(first, alone);
  for (int i = 0; i < given; i++) {
    const flow_json *tensor = flow_file_tensor_at(first, alone, i);
    const char *class = flow_json_member_text(tensor, "class_name");
    if (!class || strcmp(class, "__keras_tensor__") != 0 || count == FLOW_MODEL_MOST_TENSORS)
      return flow_fail(FLOW_CORRUPT_DATA, "input %d of a call of \"%s\" is not a tensor, or there are too many", count + 1, part->name);
    FLOW_TRY(find_value(whole, all, member(member(tensor, "config"), "keras_history"), 0, &operands[count]));
    if (operands[count++] < 0) return FLOW_OK;
  }
  const flow_json *mask = is_model(part) ? member(member(call, "kwargs"), "mask") : NULL;
  int waits = 0;
  if (mask) FLOW_TRY(add_masks(program, whole, all, part, mask, operands, count, &waits));
  if (waits) return FLOW_OK;
  if (!named) FLOW_TRY(flow_part_expand(program, part, operands, count, depth + 1, outputs));
  FLOW_TRY(add_results(found, outputs, outputs_of_part));
  *made = 1;
  return FLOW_OK;
}

/* The calls that each part has in the list, none made yet. */
static void list_calls(const flow_model_part *part, results *found)
{
  for (int i = 0; i < part->part_count; i++) {
    const flow_json *calls = member(part->parts[i].entry, "inbound_nodes");
    found[i].of = part->parts[i].kind == FLOW_PART_INPUT ? 0 : flow_json_count(calls);
    found[i].next = flow_json_item(calls, 0);
  }
}

/* Calls of a functional model in an order in which their tensors are there: the list is walked, forwards and backwards by turns, until a
 * walk makes no call. found[]: results of each part for this one call of the model; the model's own inputs count as call 0 of their
 * InputLayers. Each walk over the list makes a call at least, so there are at most as many walks as calls; Keras writes
 * the list in running order, for which one walk does. A list that needs many walks was made to take long: MOST_WAITS calls that are not
 * made yet are met in all. */
static flow_status expand_functional(flow_model_program *program, const flow_model_part *part, const int *inputs, int count, int depth,
                                     results *found, int *outputs)
{
  const flow_json *config = member(part->entry, "config");
  const flow_json *starts = member(config, "input_layers"), *ends = member(config, "output_layers");
  int progress = 1, left = 1, waits = 0;
  list_calls(part, found);
  if (flow_file_end_count(starts) != count)
    return flow_fail(FLOW_CORRUPT_DATA, "the model \"%s\" is called with %d inputs, it has %d", part->name, count,
                     flow_file_end_count(starts));
  for (int i = 0; i < count; i++) {
    const flow_json *name = flow_json_item(flow_file_end_at(starts, i), 0);
    int k = 0;
    /* An InputLayer, and nothing else, has no calls in the list of its own, so that its one result has room. */
    while (k < part->part_count &&
           !(flow_json_is(name, FLOW_JSON_TEXT) && part->parts[k].kind == FLOW_PART_INPUT && strcmp(part->parts[k].name, name->text) == 0))
      k++;
    if (k == part->part_count || found[k].calls > 0)
      return flow_fail(FLOW_CORRUPT_DATA, "input %d of the model \"%s\" is not among its input layers", i + 1, part->name);
    found[k].of = 1;
    found[k].next = NULL;
    FLOW_TRY(add_results(&found[k], &inputs[i], 1));
  }
  for (int back = 0; left && progress; back = !back) { /* the list need not be in running order */
    left = progress = 0;
    for (int k = 0; k < part->part_count; k++) {
      int i = back ? part->part_count - 1 - k : k, made = 1;
      if (part->parts[i].kind == FLOW_PART_INPUT) continue;
      while (found[i].calls < found[i].of && made) {
        FLOW_TRY(make_call(program, part, found, i, depth, &made));
        progress |= made;
      }
      left |= found[i].calls < found[i].of;
      if (!made && ++waits > MOST_WAITS)
        return flow_fail(FLOW_CORRUPT_DATA, "the layers of the model \"%s\" are in no order in which they could run", part->name);
    }
  }
  if (left) return flow_fail(FLOW_CORRUPT_DATA, "the calls in the model \"%s\" form a circle", part->name);
  for (int i = 0; i < flow_file_end_count(ends); i++) {
    FLOW_TRY(find_value(part, found, flow_file_end_at(ends, i), 1, &outputs[i]));
    if (outputs[i] < 0) return flow_fail(FLOW_CORRUPT_DATA, "output %d of the model \"%s\" is never made", i + 1, part->name);
  }
  return FLOW_OK;
}

/* The parts of a Sequential one after the other; all outputs of one go to the next, as in Keras. outputs: its input at first. values: room
 * for FLOW_MODEL_MOST_TENSORS, not on the stack, since models are nested. */
static flow_status expand_sequential(flow_model_program *program, const flow_model_part *part, int depth, int *values, int *outputs)
{
  int count = 1;
  for (int i = 0; i < part->part_count; i++) {
    const flow_model_part *next = &part->parts[i];
    if (next->kind == FLOW_PART_INPUT) continue;
    int next_count = flow_part_outputs(next);
    if (next_count < 1 || next_count > FLOW_MODEL_MOST_TENSORS)
      return flow_fail(FLOW_UNSUPPORTED, "the part \"%s\" has %d outputs, 1 to %d are possible", next->name, next_count,
                       FLOW_MODEL_MOST_TENSORS);
    memcpy(values, outputs, sizeof(int) * (size_t)count);
    FLOW_TRY(flow_part_expand(program, next, values, count, depth + 1, outputs));
    count = next_count;
  }
  return FLOW_OK;
}

/* Appends the calls that one call of a part consists of; outputs: flow_part_outputs(part) values. It recurses into
 * models in models. `found` exists for the time of this call: values of two calls of one model are not mixed. */
flow_status flow_part_expand(flow_model_program *program, const flow_model_part *part, const int *inputs, int count, int depth,
                             int *outputs)
{
  if (depth > FLOW_MODEL_MOST_DEPTH) return flow_fail(FLOW_CORRUPT_DATA, "models are nested more than %d deep", FLOW_MODEL_MOST_DEPTH);
  if (part->kind == FLOW_PART_LAYER || part->kind == FLOW_PART_WRAPPER) {
    FLOW_TRY(add_call(program, part, NULL, inputs, count, flow_part_outputs(part), outputs));
    for (int i = 1; i < flow_part_outputs(part); i++) outputs[i] = outputs[0] + i;
    return FLOW_OK;
  }
  if (part->kind == FLOW_PART_OPERATION)
    return flow_fail(FLOW_CORRUPT_DATA, "the operation \"%s\" stands where only layers can be", part->name);
  if (part->kind == FLOW_PART_INPUT) return flow_fail(FLOW_CORRUPT_DATA, "the input \"%s\" is called as a layer", part->name);
  FLOW_TRY(count_call(program, 1));
  void *block;
  if (part->kind == FLOW_PART_SEQUENTIAL) {
    if (count != 1) return flow_fail(FLOW_CORRUPT_DATA, "the model \"%s\" is called with %d inputs", part->name, count);
    outputs[0] = inputs[0];
    FLOW_TRY(flow_alloc_zero(sizeof(int) * FLOW_MODEL_MOST_TENSORS, &block));
    flow_status status = expand_sequential(program, part, depth, block, outputs);
    flow_free(block);
    return status;
  }
  FLOW_TRY(flow_alloc_zero(sizeof(results) * (size_t)part->part_count, &block));
  results *found = block;
  flow_status status = expand_functional(program, part, inputs, count, depth, found, outputs);
  for (int i = 0; i < part->part_count; i++) {
    for (int k = 0; k < found[i].calls; k++) flow_free(found[i].values[k]);
    flow_free(found[i].values);
  }
  flow_free(block);
  return status;
}

static flow_status check_ends(int inputs, int outputs)
{
  if (inputs >= 1 && inputs <= FLOW_MODEL_MOST_TENSORS && outputs >= 1 && outputs <= FLOW_MODEL_MOST_TENSORS) return FLOW_OK;
  return flow_fail(FLOW_UNSUPPORTED, "the model has %d inputs and %d outputs, 1 to %d are possible", inputs, outputs,
                   FLOW_MODEL_MOST_TENSORS);
}

/* In the order of input_layers, which is the order in which callers pass them. To find one of them by its number takes as long as the list
 * is, so that a list that is too long is refused before. */
static flow_status read_inputs(flow_model *model)
{
  const flow_model_part *root = &model->root;
  if (root->kind == FLOW_PART_SEQUENTIAL) {
    if (root->parts[0].kind != FLOW_PART_INPUT)
      return flow_fail(FLOW_UNSUPPORTED, "the model \"%s\" was saved before its input shape was known", root->name);
    return add_input(model, &root->parts[0]);
  }
  const flow_json *starts = member(member(root->entry, "config"), "input_layers");
  int count = flow_file_end_count(starts);
  FLOW_TRY(check_ends(count, flow_part_outputs(root)));
  for (int i = 0; i < count; i++) {
    const flow_json *name = flow_json_item(flow_file_end_at(starts, i), 0);
    int k = 0;
    while (k < root->part_count && !(flow_json_is(name, FLOW_JSON_TEXT) && root->parts[k].kind == FLOW_PART_INPUT &&
                                     strcmp(root->parts[k].name, name->text) == 0)) k++;
    if (k == root->part_count) return flow_fail(FLOW_CORRUPT_DATA, "input %d of the model is not among its layers", i + 1);
    FLOW_TRY(add_input(model, &root->parts[k]));
  }
  return FLOW_OK;
}

/* Three passes: parts (what there is), calls (expand: what runs), order (model_order.c). A failure leaves the model for
 * flow_model_release. */
flow_status flow_model_read_parts(flow_model *model)
{
  int inputs[FLOW_MODEL_MOST_TENSORS], outputs[FLOW_MODEL_MOST_TENSORS];
  FLOW_TRY(flow_model_read_part(model->description, 0, &model->root));
  if (model->root.kind != FLOW_PART_SEQUENTIAL && model->root.kind != FLOW_PART_FUNCTIONAL)
    return flow_fail(FLOW_UNSUPPORTED, "it holds a %s, not a Sequential or Functional model", model->root.class_name);
  FLOW_TRY(read_inputs(model));
  int count = flow_part_outputs(&model->root);
  FLOW_TRY(check_ends(model->input_count, count));
  for (int i = 0; i < model->input_count; i++) inputs[i] = i;
  FLOW_TRY(flow_part_expand(&model->program, &model->root, inputs, model->input_count, 0, outputs));
  FLOW_TRY(flow_model_order_calls(&model->program, outputs, count));
  FLOW_TRY(flow_grow(&model->outputs, sizeof(int), count, &model->output_capacity));
  memcpy(model->outputs, outputs, sizeof(int) * (size_t)count);
  model->output_count = count;
  return FLOW_OK;
}
