/* einsum_dense.c: EinsumDense: activation(einsum(equation, x, kernel) + bias). The equation names the axes of the input, of the kernel and
 * of the output by letters; "..." stands for further axes of the input, at its beginning or its end. output_shape has the sizes of the
 * output's named axes but the first, which is the batch (with "..." at the beginning: of all), -1 where it is that of the input; bias_axes
 * names the output's axes that the bias has. */
#include <ctype.h>
#include <string.h>

#include "layers/express.h"
#include "layers/layer.h"
#include "layers/quantization.h"

static const flow_argument parameters[] = {
  { "equation", FLOW_TEXT, NULL, NULL },
  { "output_shape", FLOW_SIZES, NULL, NULL },
  { "activation", FLOW_ACTIVATION, "linear", NULL },
  { "bias_axes", FLOW_TEXT, "null", NULL },
  { "kernel_initializer", FLOW_INITIALIZER, "glorot_uniform", NULL },
  { "bias_initializer", FLOW_INITIALIZER, "zeros", NULL },
  { "kernel_regularizer", FLOW_REGULARIZER, "null", NULL },
  { "bias_regularizer", FLOW_REGULARIZER, "null", NULL },
  { "kernel_constraint", FLOW_CONSTRAINT, "null", NULL },
  { "bias_constraint", FLOW_CONSTRAINT, "null", NULL },
  { "lora_rank", FLOW_ABSENT, "null", NULL },
  { "lora_alpha", FLOW_ABSENT, "null", NULL },
  { "gptq_unpacked_column_size", FLOW_ABSENT, "null", NULL },
  { "quantization_config", FLOW_ABSENT, "null", NULL },
  FLOW_LAYER_COMMON
};

enum { KERNEL, BIAS };

/* Labels of axes: letters, and the digits 0, 1, ... for those that "..." stands for. */
typedef struct labels { int count; char names[FLOW_MAX_RANK + 1]; } labels;
/* elided: how many axes the dots stand for; before an input is known, whether there are dots. on_left: they come first. */
typedef struct equation { labels input, kernel, output; int elided, on_left; } equation;

/* Where a label is in a list, from 0; -1: it is not there. */
static int find(const labels *list, char name)
{
  const char *at = memchr(list->names, name, (size_t)list->count);
  return at ? (int)(at - list->names) : -1;
}

/* One term up to `end`; *dots: 1 where it begins with "...", 2 where it ends with it, else 0. Returns 0 where the text is not a term: no
 * letter, another character, a letter twice, or more letters than a tensor has axes. */
static int read_term(const char *text, const char *end, labels *list, int *dots)
{
  *dots = 0;
  *list = (labels){ 0 };
  while (text < end && *text == ' ') text++;
  while (end > text && end[-1] == ' ') end--;
  if (end - text >= 3 && strncmp(text, "...", 3) == 0) *dots = 1, text += 3;
  else if (end - text >= 3 && strncmp(end - 3, "...", 3) == 0) *dots = 2, end -= 3;
  for (; text < end; text++) {
    if (!isalpha((unsigned char)*text) || list->count == FLOW_MAX_RANK || find(list, *text) >= 0) return 0;
    list->names[list->count++] = *text;
  }
  return list->count > 0;
}

/* Each letter must be in two terms at least: one that is in one only would be summed, or repeated, which Keras' layer does not do. */
static flow_status parse(const flow_layer *layer, equation *q)
{
  const char *text = flow_argument_text(layer->arguments, "equation"), *comma = strchr(text, ','), *arrow = strstr(text, "->");
  int input = 0, kernel = 0, output = 0;
  *q = (equation){ .elided = 0 };
  int ok = comma && arrow && comma < arrow && read_term(text, comma, &q->input, &input) &&
           read_term(comma + 1, arrow, &q->kernel, &kernel) && read_term(arrow + 2, text + strlen(text), &q->output, &output);
  if (!ok || kernel || input != output)
    return flow_layer_fail(layer, "the equation \"%s\" must have the form \"ab,bc->ac\", \"...b,bc->...c\" or \"ab...,bc->ac...\", with "
                           "different letters in each term", text);
  q->elided = input != 0;
  q->on_left = input == 1;
  for (int i = 0; i < q->kernel.count; i++) {
    if (find(&q->input, q->kernel.names[i]) < 0 && find(&q->output, q->kernel.names[i]) < 0)
      return flow_layer_fail(layer, "the letter \"%c\" of the kernel is neither in the input nor in the output of \"%s\"",
                             q->kernel.names[i], text);
  }
  for (int i = 0; i < q->output.count; i++) {
    if (find(&q->input, q->output.names[i]) < 0 && find(&q->kernel, q->output.names[i]) < 0)
      return flow_layer_fail(layer, "the letter \"%c\" of the output is neither in the input nor in the kernel of \"%s\"",
                             q->output.names[i], text);
  }
  for (int i = 0; i < q->input.count; i++) {
    if (find(&q->output, q->input.names[i]) < 0 && find(&q->kernel, q->input.names[i]) < 0)
      return flow_layer_fail(layer, "the letter \"%c\" of the input is neither in the kernel nor in the output of \"%s\"",
                             q->input.names[i], text);
  }
  return FLOW_OK;
}

/* What can be told before there is an input: output_shape against the equation, and the letters of bias_axes. */
static flow_status check(flow_layer *layer)
{
  equation q;
  const double *sizes;
  FLOW_TRY(parse(layer, &q));
  int count = flow_argument_list(layer->arguments, "output_shape", &sizes), wanted = q.output.count - !q.on_left;
  if (count != wanted)
    return flow_layer_fail(layer, "output_shape has %d sizes, the output of \"%s\" has %d axes%s", count,
                           flow_argument_text(layer->arguments, "equation"), wanted, q.on_left ? "" : " besides the first, the batch");
  if (flow_argument_is_null(layer->arguments, "bias_axes")) return FLOW_OK;
  const char *axes = flow_argument_text(layer->arguments, "bias_axes");
  for (const char *name = axes; *name; name++) {
    if (find(&q.output, *name) < 0)
      return flow_layer_fail(layer, "the letter \"%c\" of bias_axes \"%s\" is not in the output of \"%s\"", *name, axes,
                             flow_argument_text(layer->arguments, "equation"));
  }
  return *axes ? FLOW_OK : flow_layer_fail(layer, "bias_axes names no axis");
}

/* Puts `count` labels "0", "1", ... where the dots were. parse_for has seen that the labels fit: FLOW_MAX_RANK is below 10. */
static void elide(labels *list, int on_left, int count)
{
  int at = on_left ? 0 : list->count;
  memmove(list->names + at + count, list->names + at, (size_t)(list->count - at));
  for (int i = 0; i < count; i++) list->names[at + i] = (char)('0' + i);
  list->count += count;
}

/* The equation for an input of this rank, with labels for all of its axes. */
static flow_status parse_for(const flow_layer *layer, const flow_signature *input, equation *q)
{
  FLOW_TRY(parse(layer, q));
  int elided = input->rank - q->input.count;
  if (elided < 0 || (!q->elided && elided > 0) || (q->on_left && elided == 0) || elided + q->output.count > FLOW_MAX_RANK)
    return flow_layer_fail(layer, "input has %d dimensions %s, the equation \"%s\" names %d%s", input->rank,
                           flow_shape_text(input->rank, input->dims), flow_argument_text(layer->arguments, "equation"), q->input.count,
                           q->on_left ? " besides the batch" : "");
  elide(&q->input, q->on_left, elided);
  elide(&q->output, q->on_left, elided);
  q->elided = elided;
  return FLOW_OK;
}

/* The size of the axis of the output with this label, -1: it is not known. */
static int64_t output_size(const flow_layer *layer, const equation *q, const flow_signature *input, char name)
{
  const double *sizes;
  int of_input = find(&q->input, name), at = find(&q->output, name) - (q->on_left ? q->elided : 1);
  int count = flow_argument_list(layer->arguments, "output_shape", &sizes);
  if (at >= 0 && at < count && sizes[at] > 0) return (int64_t)sizes[at];
  return of_input >= 0 ? input->dims[of_input] : -1;
}

/* The kernel's sizes: those of the input, or of output_shape where the letter is new. The bias has the axes from the first of bias_axes
 * on, 1 where it is not named. */
static flow_status build(flow_context *context, flow_layer *layer, int count, const flow_signature *inputs)
{
  (void)count;
  equation q;
  int64_t shape[FLOW_MAX_RANK];
  FLOW_TRY(parse_for(layer, inputs, &q));
  for (int i = 0; i < q.input.count; i++) {
    char name = q.input.names[i];
    int64_t found = inputs->dims[i], wanted = find(&q.output, name) >= 0 ? output_size(layer, &q, inputs, name) : found;
    if (found >= 0 && wanted >= 0 && found != wanted)
      return flow_layer_fail(layer, "output_shape has %lld for \"%c\", the input %s has %lld", (long long)wanted, name,
                             flow_shape_text(inputs->rank, inputs->dims), (long long)found);
  }
  for (int i = 0; i < q.kernel.count; i++) {
    char name = q.kernel.names[i];
    int of_input = find(&q.input, name);
    shape[i] = of_input >= 0 ? inputs->dims[of_input] : output_size(layer, &q, inputs, name);
    if (shape[i] < 1)
      return flow_layer_fail(layer, "the size of the kernel's axis \"%c\" must be known, the input is %s", name,
                             flow_shape_text(inputs->rank, inputs->dims));
  }
  unsigned outputs = 0;
  for (int i = 0; i < q.kernel.count; i++) outputs |= find(&q.output, q.kernel.names[i]) >= 0 ? 1u << i : 0;
  FLOW_TRY(flow_layer_add_kernel(context, layer, KERNEL, "kernel", q.kernel.count, shape, outputs));
  if (flow_argument_is_null(layer->arguments, "bias_axes")) return FLOW_OK;
  const char *axes = flow_argument_text(layer->arguments, "bias_axes");
  int first = q.output.count, rank = 0;
  for (const char *name = axes; *name; name++) first = find(&q.output, *name) < first ? find(&q.output, *name) : first;
  for (int i = first; i < q.output.count; i++) {
    char name = q.output.names[i];
    shape[rank] = strchr(axes, name) ? output_size(layer, &q, inputs, name) : 1;
    if (shape[rank++] < 1) return flow_layer_fail(layer, "the size of the bias's axis \"%c\" must be known", name);
  }
  return flow_layer_add_variable(context, layer, BIAS, "bias", "bias_initializer", rank, shape, 1);
}

/* The axes of `from` in the order of `to`, which has the same labels. */
static flow_tensor *arrange(flow_expression *e, flow_tensor *x, const labels *from, const labels *to)
{
  flow_attributes attributes = { .transpose = { .rank = to->count } };
  int moves = 0;
  for (int i = 0; i < to->count; i++) {
    attributes.transpose.axes[i] = find(from, to->names[i]);
    moves |= attributes.transpose.axes[i] != i;
  }
  return moves ? flow_express(e, FLOW_OP_transpose, x, NULL, NULL, &attributes) : x;
}

/* The caller has room: each list has at most the labels of one term. */
static void add(labels *list, char name) { list->names[list->count++] = name; }

/* x arranged as {kept..., both..., 1, summed as one} times the kernel as {both..., summed as one, new as one}. both: axes that the
 * input, the kernel and the output have; without such axes the 1 is left out. The result {kept..., both..., new...} is brought into the
 * output's order. kept: axes that only the input and the output have, the batch and those of the dots among them; new: those that only
 * the kernel and the output have. A layer that is quantized multiplies bytes where no axes are in all three. */
static flow_tensor *multiply(flow_expression *e, const flow_layer *layer, const equation *q, flow_tensor *x, flow_tensor *kernel,
                             int training)
{
  labels of_x = { 0 }, of_kernel = { 0 }, of_y, summed = { 0 }, fresh = { 0 }, both = { 0 };
  int64_t dims[FLOW_MAX_RANK], weights[FLOW_MAX_RANK], sums = 1, news = 1;
  for (int i = 0; i < q->input.count; i++) {
    char name = q->input.names[i];
    if (find(&q->kernel, name) < 0) add(&of_x, name);
    else if (find(&q->output, name) >= 0) add(&both, name);
    else add(&summed, name);
  }
  for (int i = 0; i < q->output.count; i++) {
    if (find(&q->input, q->output.names[i]) < 0) add(&fresh, q->output.names[i]);
  }
  for (int i = 0; i < both.count; i++) add(&of_x, both.names[i]), add(&of_kernel, both.names[i]);
  of_y = of_x;
  int rank = of_x.count;
  for (int i = 0; i < summed.count; i++) add(&of_x, summed.names[i]), add(&of_kernel, summed.names[i]);
  for (int i = 0; i < fresh.count; i++) add(&of_y, fresh.names[i]), add(&of_kernel, fresh.names[i]);
  x = arrange(e, x, &q->input, &of_x);
  kernel = arrange(e, kernel, &q->kernel, &of_kernel);
  if (!x || !kernel) return NULL;
  /* Before the shapes are written: x needs an axis for the sums and, with `both`, one for the 1. The kernel, which has the axes of `both`
   * and two more, fits if x does, since x has those of `both`, too. */
  if (rank + (both.count > 0) + 1 > FLOW_MAX_RANK) {
    e->status = flow_fail(FLOW_UNSUPPORTED, "the equation has too many axes");
    return NULL;
  }
  for (int i = 0; i < rank; i++) dims[i] = x->shape[i];
  for (int i = rank; i < x->rank; i++) sums *= x->shape[i];
  for (int i = 0; i < kernel->rank; i++) {
    if (i < both.count) weights[i] = kernel->shape[i];
    else if (i >= both.count + summed.count) news *= kernel->shape[i];
  }
  if (both.count) dims[rank++] = 1;
  dims[rank] = sums;
  weights[both.count] = sums;
  weights[both.count + 1] = news;
  flow_tensor *rows = flow_express_reshape(e, x, rank + 1, dims), *columns = flow_express_reshape(e, kernel, both.count + 2, weights);
  flow_tensor *y = both.count == 0 && flow_quantization_applies(layer, rows, columns)
                       ? flow_quantization_multiply(e, layer, rows, columns, training)
                       : flow_express(e, FLOW_OP_matmul, rows, columns, NULL, NULL);
  if (!y) return NULL;
  rank = of_y.count - fresh.count;
  for (int i = 0; i < fresh.count; i++) dims[rank + i] = kernel->shape[both.count + summed.count + i];
  return arrange(e, flow_express_reshape(e, y, of_y.count, dims), &of_y, &q->output);
}

/* The letters' sizes are compared with the kernel's: the product itself would name axes of reshaped operands. */
static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count;
  flow_signature input = flow_signature_of(inputs[0]);
  equation q;
  FLOW_TRY(parse_for(layer, &input, &q));
  flow_expression e = flow_expression_of(context);
  flow_tensor *kernel = flow_express_variable(&e, layer->variables[KERNEL]);
  for (int i = 0; kernel && i < q.input.count; i++) {
    int at = find(&q.kernel, q.input.names[i]);
    if (at < 0 || kernel->shape[at] == input.dims[i]) continue;
    e.status = flow_layer_fail(layer, "input %s has %lld for \"%c\", the layer was built for %lld", flow_shape_text(input.rank, input.dims),
                               (long long)input.dims[i], q.input.names[i], (long long)kernel->shape[at]);
    kernel = NULL;
  }
  flow_tensor *y = kernel ? multiply(&e, layer, &q, inputs[0], kernel, training) : NULL;
  return flow_layer_take(&e, layer, BIAS, y, out);
}

/* Those of the output that the kernel has, in the output's order. */
static int scale_axes(const flow_layer *layer, const flow_variable *kernel, int axes[FLOW_MAX_RANK])
{
  (void)kernel;
  equation q;
  int count = 0;
  if (parse(layer, &q) != FLOW_OK) return 0;
  for (int i = 0; i < q.output.count; i++)
    if (find(&q.kernel, q.output.names[i]) >= 0) axes[count++] = find(&q.kernel, q.output.names[i]);
  return count;
}

const flow_layer_class flow_layer_einsum_dense = {
  .name = "EinsumDense",
  .positional = 14,
  .parameters = parameters,
  .build = build,
  .call = call,
  .check = check,
  .quantizes = 1u << FLOW_QUANTIZED_BY_ROW,
  .scale_axes = scale_axes,
  .doc = "activation(products of the input and a kernel, summed as an equation says, + bias)."
};
