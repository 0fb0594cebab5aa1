/* model_file.c: a model's variables where Keras keeps them in its file (keras.src.saving.saving_lib; see
 * lua/flow/saving/weights.lua), opening and saving.
 *
 * A walk over the parts makes the path of a group in the file for each object that has variables (core/layers/file_groups.c names them);
 * reading and writing are visitors of that walk, so both use the same paths. Variables of the optimizer come after those of the layers, in
 * groups of their own. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "graph/variable.h"
#include "base/float_state.h"
#include "models/quantized_files.h"
#include "models/wrappers.h"
#include "train/loss_scale.h"
#include "train/optimizer.h"

enum { MOST_PATH = 4096 };

static const char OPTIMIZER[] = "optimizer/vars", INNER_OPTIMIZER[] = "optimizer/inner_optimizer/vars";
static const char BESIDE_INNER[] = "optimizer/inner_optimizer/beside/vars";

/* ---- the walk ------------------------------------------------------------------------------------------------------------ */

/* Called for each object with its own variables; name: the note beside them. */
typedef flow_status (*visitor)(void *state, const flow_model_part *part, const char *path, const char *name,
                               flow_variable *const *variables, int count);

/* A walk: the path of the part that it is at, which grows and shrinks with the depth, so that no level needs a buffer of
 * its own. */
typedef struct walker { visitor visit; void *state; char path[MOST_PATH]; } walker;

/* Writes after the first `length` bytes of the path. Returns its new length, 0 if it does not fit. What was written is
 * cut off in the last case, and must not be used. */
static int __attribute__((format(printf, 3, 4))) extend(walker *w, int length, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  int more = vsnprintf(w->path + length, sizeof w->path - (size_t)length, format, arguments);
  va_end(arguments);
  return length + more < (int)sizeof w->path ? length + more : 0;
}

/* The groups of a part's own variables, below the path's first `length` bytes. */
static flow_status visit_groups(walker *w, const flow_model_part *part, int length)
{
  const char *group, *name;
  int first, count;
  for (int i = 0; (count = flow_layer_group(part->layer, i, &group, &name, &first)) >= 0; i++) {
    if (!extend(w, length, "%s%s", length ? "/" : "", group))
      return flow_fail(FLOW_CORRUPT_DATA, "the path of \"%s\" has more than %d bytes", part->name, MOST_PATH);
    FLOW_TRY(
        w->visit(w->state, part, w->path, part->layer ? name : part->name, part->layer ? part->layer->variables + first : NULL, count));
  }
  return FLOW_OK;
}

/* Operations have no variables and no group; an input of a Sequential model is not among its layers. */
static int has_group(const flow_model_part *parent, const flow_model_part *part)
{
  return part->kind != FLOW_PART_OPERATION && !(part->kind == FLOW_PART_INPUT && parent->kind == FLOW_PART_SEQUENTIAL);
}

/* The class by which Keras names the group; a file's "Model" is a Functional. */
static const char *class_of(const flow_model_part *part)
{
  return part->layer ? part->layer->class->name : part->kind == FLOW_PART_FUNCTIONAL ? "Functional" : part->class_name;
}

/* Names of the groups of a part's children: of those that have none NULL. */
static flow_status name_groups(const flow_model_part *part, flow_group_names **out)
{
  void *block;
  FLOW_TRY(flow_alloc(sizeof(char *) * (size_t)part->part_count, &block));
  const char **classes = block;
  for (int i = 0; i < part->part_count; i++) classes[i] = has_group(part, &part->parts[i]) ? class_of(&part->parts[i]) : NULL;
  flow_status status = flow_group_names_new(classes, part->part_count, out);
  flow_free(block);
  return status;
}

static flow_status walk_children(walker *w, const flow_model_part *part, const flow_group_names *groups, int length);

/* part: at the path's first `length` bytes. Models nest 64 deep: what a level needs is small. */
static flow_status walk_part(walker *w, const flow_model_part *part, int length)
{
  flow_group_names *groups;
  FLOW_TRY(visit_groups(w, part, length));
  if (part->part_count == 0) return FLOW_OK;
  FLOW_TRY(name_groups(part, &groups));
  flow_status status = walk_children(w, part, groups, length);
  flow_group_names_release(groups);
  return status;
}

/* Children of a part: those of a wrapper are named by their field, others are entries of a list. */
static flow_status walk_children(walker *w, const flow_model_part *part, const flow_group_names *groups, int length)
{
  const char *slash = length ? "/" : "", *list = part->wrapper ? part->wrapper->list : "layers";
  for (int i = 0; i < part->part_count; i++) {
    const flow_model_part *child = &part->parts[i];
    const char *group = flow_group_names_at(groups, i);
    if (!group) continue;
    int inner = child->field ? extend(w, length, "%s%s", slash, child->field) : extend(w, length, "%s%s/%s", slash, list, group);
    if (!inner) return flow_fail(FLOW_CORRUPT_DATA, "the path of \"%s\" has more than %d bytes", child->name, MOST_PATH);
    FLOW_TRY(walk_part(w, child, inner));
  }
  return FLOW_OK;
}

static flow_status walk(const flow_model_part *root, visitor visit, void *state)
{
  walker w = { .visit = visit, .state = state };
  return walk_part(&w, root, 0);
}

/* Adds the trainable variables of a part, then of its children, as the walk meets them, to list[count...]; returns the new count. */
static int add_trainable(const flow_model_part *part, flow_variable **list, int count)
{
  for (int i = 0; part->layer && i < part->layer->variable_count; i++) {
    flow_variable *variable = part->layer->variables[i];
    if (!flow_variable_trainable(variable)) continue;
    if (list) list[count] = variable;
    count++;
  }
  for (int i = 0; i < part->part_count; i++) count = add_trainable(&part->parts[i], list, count);
  return count;
}

/* Called once to count and once to fill. It needs no paths, so that it cannot fail. */
int flow_model_trainable(const flow_model *model, flow_variable **list)
{
  return add_trainable(&model->root, list, 0);
}

/* The optimizer's variables in Keras' order: iterations, learning rate unless there is a schedule, slots. */
static flow_variable *optimizer_variable(flow_optimizer *optimizer, int index)
{
  flow_variable *rate = flow_optimizer_learning_rate(optimizer);
  if (index == 0) return flow_optimizer_iterations(optimizer);
  if (rate && index == 1) return rate;
  return flow_optimizer_slot(optimizer, index - (rate ? 2 : 1));
}

static int variable_count(flow_optimizer *optimizer)
{
  int count = 0;
  while (optimizer_variable(optimizer, count)) count++;
  return count;
}

/* ---- reading ----------------------------------------------------------------------------------------------------------------- */

/* A file of another dtype is converted (a float32 file into a bfloat16 model, say). The variable is written in place:
 * no other caller has the model yet. */
static flow_status read_variable(flow_tensor_file *file, int index, flow_variable *variable)
{
  flow_tensor *storage;
  FLOW_TRY(flow_variable_tensor(variable, &storage));
  flow_status status;
  if (flow_tensor_file_dtype(file, index) == flow_tensor_dtype(storage)) {
    status = flow_tensor_file_read_into(file, index, storage);
  } else {
    flow_tensor *content = NULL;
    status = flow_tensor_file_read(file, index, &content);
    if (status == FLOW_OK) status = flow_tensor_copy(storage, content);
    flow_tensor_release(content);
  }
  flow_tensor_release(storage);
  return status;
}

/* Before contents are read, so that the message can name the variable of the model. */
static flow_status check_shape(const flow_tensor_file *file, int index, const flow_variable *variable)
{
  const flow_tensor_entry *entry = &file->entries[index];
  const flow_tensor *storage = variable->tensor;
  if (entry->rank == storage->rank && memcmp(entry->shape, storage->shape, sizeof(int64_t) * (size_t)entry->rank) == 0) return FLOW_OK;
  return flow_fail(FLOW_CORRUPT_DATA, "%s: \"%s\" has shape %s, the file has %s", file->path, flow_variable_name(variable),
                   flow_shape_text(storage->rank, storage->shape), flow_shape_text(entry->rank, entry->shape));
}

/* The number of the file's tensor "path/index"; -1: there is none. The name has room, as paths are shorter than
 * MOST_PATH. */
static int find_variable(const flow_tensor_file *file, const char *path, int index)
{
  char name[MOST_PATH + 16];
  snprintf(name, sizeof name, "%s/%d", path, index);
  return flow_tensor_file_find(file, name);
}

/* A visitor: each group must have exactly the variables of the object, so that a file of a smaller or larger model is refused. */
static flow_status read_variables(void *state, const flow_model_part *part, const char *path, const char *name,
                                  flow_variable *const *variables, int count)
{
  flow_tensor_file *file = state;
  int first = count > 0 ? find_variable(file, path, 0) : -1, more = 0;
  int in_bytes = part->layer && first >= 0 && find_variable(file, path, count) >= 0 && flow_quantized_kernel(file, first);
  for (int i = 0; i < count; i++) {
    int scale = -1, index = find_variable(file, path, in_bytes ? flow_quantized_place(part->layer, count, i, &scale) : i);
    if (index < 0)
      return flow_fail(FLOW_CORRUPT_DATA, "%s: \"%s\" expected %d variables, the file has %d (%s)", file->path, name, count, i, path);
    FLOW_TRY(check_shape(file, index, variables[i]));
    if (scale >= 0 && (scale = find_variable(file, path, scale)) < 0)
      return flow_fail(FLOW_CORRUPT_DATA, "%s: \"%s\" has bytes without their scales (%s)", file->path, name, path);
    more += scale >= 0;
    if (scale >= 0) FLOW_TRY(flow_quantized_read(file, index, scale, part->layer, variables[i], (flow_json *)part->entry));
    else FLOW_TRY(read_variable(file, index, variables[i]));
  }
  if (find_variable(file, path, count + more) >= 0)
    return flow_fail(FLOW_CORRUPT_DATA, "%s: \"%s\" expected %d variables, the file has more (%s)", file->path, name, count, path);
  return FLOW_OK;
}

/* How many variables the file has in a group. */
static int stored_count(const flow_tensor_file *file, const char *path)
{
  int count = 0;
  while (find_variable(file, path, count) >= 0) count++;
  return count;
}

/* The loss scale's variables are before those of its optimizer. Keras makes two of them at the first step only. */
static flow_status read_loss_scale(flow_model *model, flow_tensor_file *file)
{
  int own = stored_count(file, OPTIMIZER) - stored_count(file, INNER_OPTIMIZER);
  for (int i = 0; own == FLOW_SCALE_VARIABLES && i < own; i++) {
    flow_variable *variable = flow_loss_scale_variable(model->loss_scale, i);
    FLOW_TRY(check_shape(file, find_variable(file, OPTIMIZER, i), variable));
    FLOW_TRY(read_variable(file, find_variable(file, OPTIMIZER, i), variable));
  }
  return FLOW_OK;
}

/* Slots that are missing were never used: they stay zero. flow_optimizer_build makes the slots, zero, for exactly the
 * trainable variables, in the order of the walk. */
static flow_status read_optimizer(flow_model *model, flow_tensor_file *file)
{
  void *block;
  int count = flow_model_trainable(model, NULL);
  FLOW_TRY(flow_alloc(sizeof(flow_variable *) * (size_t)(count + 1), &block));
  flow_model_trainable(model, block);
  const char *path = find_variable(file, INNER_OPTIMIZER, 0) >= 0 ? INNER_OPTIMIZER : OPTIMIZER;
  flow_status status = flow_optimizer_build(model->optimizer, block, count);
  flow_free(block);
  if (status == FLOW_OK && model->loss_scale && path == INNER_OPTIMIZER) status = read_loss_scale(model, file);
  for (int i = 0; status == FLOW_OK; i++) {
    int index = find_variable(file, path, i);
    flow_variable *variable = optimizer_variable(model->optimizer, i);
    if (index < 0 || !variable) break;
    status = check_shape(file, index, variable);
    if (status == FLOW_OK) status = read_variable(file, index, variable);
  }
  int first = variable_count(model->optimizer) - model->optimizer->scalar_count;
  for (int i = 0; status == FLOW_OK && i < model->optimizer->scalar_count; i++) {
    int index = find_variable(file, BESIDE_INNER, i);
    flow_variable *variable = optimizer_variable(model->optimizer, first + i);
    if (index < 0) break;
    status = check_shape(file, index, variable);
    if (status == FLOW_OK) status = read_variable(file, index, variable);
  }
  if (status == FLOW_OK) model->steps_done = flow_variable_number(flow_optimizer_iterations(model->optimizer));
  return status;
}

/* config.json, as a tree that the model keeps, and metadata.json, as the text that it is. */
static flow_status read_texts(flow_model *model, const char *path)
{
  flow_archive *archive;
  const char *text;
  double bytes;
  size_t end;
  FLOW_TRY(flow_archive_open(path, &archive));
  flow_status status = flow_archive_text(archive, "config.json", &text, &bytes);
  if (status == FLOW_OK) {
    status = flow_json_read(text, (size_t)bytes, &end, &model->description);
    if (status != FLOW_OK) flow_fail_prefix(status, "%s: config.json: ", path);
    else if (status == FLOW_OK && !flow_json_is(model->description, FLOW_JSON_OBJECT))
      status = flow_fail(FLOW_CORRUPT_DATA, "%s: config.json is not a JSON object", path);
    if (status == FLOW_OK && (status = flow_quantized_description(model->description)) != FLOW_OK) flow_fail_prefix(status, "%s: ", path);
  }
  if (status == FLOW_OK) status = flow_archive_text(archive, "metadata.json", &text, &bytes);
  if (status == FLOW_OK && !(model->metadata = flow_duplicate_text(text))) status = FLOW_OUT_OF_MEMORY;
  flow_archive_release(archive);
  return status;
}

/* Order: description, parts, loss and optimizer, variables (model_build.c), then their contents. Failures begin with the path. */
static flow_status load(flow_context *context, const char *path, int trains, flow_model *model)
{
  flow_tensor_file *file;
  FLOW_TRY(read_texts(model, path));
  flow_status status = flow_model_read_parts(model);
  if (status == FLOW_OK && trains) status = flow_model_read_compiled(model);
  if (status == FLOW_OK) status = flow_model_build(context, model);
  if (status != FLOW_OK) return flow_fail_prefix(status, "%s: ", path);
  FLOW_TRY(flow_tensor_file_open(path, "model.weights.h5", &file));
  status = walk(&model->root, read_variables, file);
  if (status == FLOW_OK && model->optimizer) status = read_optimizer(model, file);
  flow_tensor_file_release(file);
  return status;
}

/* The model is the caller's alone until it is given away; locks are not needed before. After a failure *out is as it
 * was. */
flow_status flow_model_open(flow_context *context, const char *path, int trains, flow_model **out)
{
  FLOW_DEFAULT_FLOATS;
  void *block;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_model), &block));
  flow_model *model = block;
  model->magic = FLOW_MODEL_MAGIC;
  atomic_init(&model->references, 1);
  model->seed = flow_context_next_seed(context);
  model->path = flow_duplicate_text(path);
  flow_status status = model->path ? flow_sharing_new(&model->sharing) : FLOW_OUT_OF_MEMORY;
  if (status == FLOW_OK) status = load(context, path, trains, model);
  if (status == FLOW_OK) *out = model;
  else flow_model_release(model);
  return status;
}

flow_status flow_model_load(flow_context *context, const char *path, flow_model **out)
{
  if (!context || !path || !out)
    return flow_fail(FLOW_INVALID_ARGUMENT, "flow_model_load: %s is NULL", !context ? "context" : path ? "out" : "path");
  return flow_model_open(context, path, 1, out);
}

/* ---- writing ------------------------------------------------------------------------------------------------------------------ */

/* Variables are read at the time of writing: the caller has entered as a reader, so no step changes them meanwhile. */
static flow_status add_storage(flow_tensor_writer *writer, const char *path, int index, flow_variable *variable)
{
  char name[MOST_PATH + 16];
  flow_tensor *storage;
  snprintf(name, sizeof name, "%s/%d", path, index);
  FLOW_TRY(flow_variable_peek(variable, &storage));
  flow_status status = flow_tensor_writer_add(writer, name, storage);
  flow_tensor_release(storage);
  return status;
}

/* A visitor: the group, Keras' note of the object's name, and the variables, which are counted from 0. */
static flow_status add_variables(void *state, const flow_model_part *part, const char *path, const char *name,
                                 flow_variable *const *variables, int count)
{
  (void)part;
  FLOW_TRY(flow_tensor_writer_group(state, path));
  FLOW_TRY(flow_tensor_writer_note(state, path, "name", name));
  for (int i = 0; i < count; i++) FLOW_TRY(add_storage(state, path, i, variables[i]));
  return FLOW_OK;
}

/* The optimizer's group, with the variables of the loss scale before its own, if there is one. Files of a loss scale lack the optimizer's
 * scalars in Keras, which does not track them there: they are apart. */
static flow_status add_group(const flow_model *model, const flow_loss_scale *scale, const char *path, flow_tensor_writer *writer)
{
  int own = 0, count = variable_count(model->optimizer) - (model->loss_scale ? model->optimizer->scalar_count : 0);
  flow_variable *variable;
  FLOW_TRY(flow_tensor_writer_group(writer, path));
  FLOW_TRY(flow_tensor_writer_note(writer, path, "name", scale ? flow_loss_scale_name(scale) : flow_optimizer_name(model->optimizer)));
  for (; scale && (variable = flow_loss_scale_variable(scale, own)); own++) FLOW_TRY(add_storage(writer, path, own, variable));
  for (int i = 0; i < count; i++) FLOW_TRY(add_storage(writer, path, own + i, optimizer_variable(model->optimizer, i)));
  return FLOW_OK;
}

/* The optimizer inside a loss scale has its own group, too, as Keras writes it. */
static flow_status add_optimizer(const flow_model *model, flow_tensor_writer *writer)
{
  FLOW_TRY(add_group(model, model->loss_scale, OPTIMIZER, writer));
  if (!model->loss_scale) return FLOW_OK;
  FLOW_TRY(add_group(model, NULL, INNER_OPTIMIZER, writer));
  int scalars = model->optimizer->scalar_count, first = variable_count(model->optimizer) - scalars;
  if (scalars == 0) return FLOW_OK;
  FLOW_TRY(flow_tensor_writer_group(writer, BESIDE_INNER));
  FLOW_TRY(flow_tensor_writer_note(writer, BESIDE_INNER, "name", flow_optimizer_name(model->optimizer)));
  for (int i = 0; i < scalars; i++) FLOW_TRY(add_storage(writer, BESIDE_INNER, i, optimizer_variable(model->optimizer, first + i)));
  return FLOW_OK;
}

/* The archive appears whole or not at all. config.json is the description that was read, so a saved model has the same
 * layers. The writer holds references to the variables' tensors; their contents are read when the archive is written,
 * still as a reader. */
static flow_status save(const flow_model *model, const char *path)
{
  flow_tensor_writer *writer;
  flow_archive_writer *archive = NULL;
  FLOW_TRY(flow_tensor_writer_new(&writer));
  char *config = flow_json_write(model->description);
  flow_status status = config ? walk(&model->root, add_variables, writer) : flow_fail(FLOW_OUT_OF_MEMORY, "no memory for config.json");
  if (status == FLOW_OK && model->optimizer) status = add_optimizer(model, writer);
  if (status == FLOW_OK) status = flow_archive_writer_new(path, &archive);
  if (status == FLOW_OK) status = flow_archive_writer_add_text(archive, "metadata.json", model->metadata, (double)strlen(model->metadata));
  if (status == FLOW_OK) status = flow_archive_writer_add_text(archive, "config.json", config, (double)strlen(config));
  if (status == FLOW_OK) status = flow_archive_writer_add_tensors(archive, "model.weights.h5", writer, "hdf5");
  if (status == FLOW_OK) status = flow_archive_writer_commit(archive);
  flow_archive_writer_release(archive);
  flow_tensor_writer_release(writer);
  flow_free(config);
  return status;
}

/* As a reader of the weights: others may predict meanwhile; a step of training waits. */
flow_status flow_model_save(const flow_model *model, const char *path)
{
  FLOW_DEFAULT_FLOATS;
  FLOW_TRY(flow_check_model("flow_model_save", model));
  if (!path) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_model_save: path is NULL");
  FLOW_TRY(flow_sharing_enter(model->sharing, NULL, 0));
  flow_status status = save(model, path);
  flow_sharing_leave(model->sharing, 0);
  return status;
}

/* ---- life ------------------------------------------------------------------------------------------------------------------------ */

/* Also of a model whose file was only half read: pointers that were not set are NULL. */
static void release_program(flow_model_program *program)
{
  for (int i = 0; i < program->call_count; i++) {
    flow_free(program->calls[i].operands);
    flow_arguments_release(program->calls[i].options);
  }
  flow_free(program->calls);
}

/* With all that is inside of it. The part's own memory belongs to the list that it is in. */
static void release_part(flow_model_part *part)
{
  for (int i = 0; i < part->part_count; i++) release_part(&part->parts[i]);
  release_program(&part->program);
  flow_free(part->outputs);
  if (part->layer) flow_layer_destroy(part->layer);
  flow_free(part->by_name);
  flow_free(part->parts);
}

flow_model *flow_model_retain(flow_model *model)
{
  if (model) atomic_fetch_add_explicit(&model->references, 1, memory_order_relaxed);
  return model;
}

/* Any thread may give back the last reference; the model is not running then. */
void flow_model_release(flow_model *model)
{
  if (!model || model->magic != FLOW_MODEL_MAGIC) return;
  if (atomic_fetch_sub_explicit(&model->references, 1, memory_order_acq_rel) > 1) return;
  if (model->is_shared) flow_model_unshare(model);
  model->magic = 0;
  flow_sharing_release(model->sharing);
  release_program(&model->program);
  flow_optimizer_release(model->optimizer);
  flow_loss_scale_release(model->loss_scale);
  flow_arguments_release(model->loss_options);
  release_part(&model->root);
  flow_free(model->inputs);
  flow_free(model->outputs);
  flow_free(model->metadata);
  flow_free(model->not_compiled);
  flow_free(model->path);
  flow_json_release(model->description);
  flow_free(model);
}
