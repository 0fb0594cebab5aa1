/* initializers.c: Keras' initializers. Formulas: Glorot and Bengio 2010 (glorot), He et al. 2015 (he), LeCun et al. 1998 (lecun); all
 * three are Keras' VarianceScaling with a scale, a mode and a distribution (keras/src/initializers/random_initializers.py).
 *
 * A record's rule turns options and a shape into a distribution with its two numbers; flow_initialize then fills the tensor. Random
 * numbers are Philox': element i comes from block i / 4 under a key made of the seed, so the values do not depend on threads, devices or
 * how a tensor is divided. The numbers differ from Keras' for the same seed, the distributions do not. */
#include "layers/initializers.h"

#include <math.h>
#include <string.h>

#include "base/float_state.h"
#include "base/philox.h"
#include "tensor/tensor.h"
#include "tensor/axis.h"
#include "tensor/mirrors.h"

#define SEED { "seed", FLOW_INTEGER, "null", NULL }
#define FAN_AXES                              \
  { "input_axes", FLOW_SHAPE, "null", NULL }, \
  {                                           \
    "output_axes", FLOW_SHAPE, "null", NULL   \
  }

static const flow_argument no_options[] = { FLOW_ARGUMENTS_END };
static const flow_argument fan_options[] = { SEED, FAN_AXES, FLOW_ARGUMENTS_END };
static const flow_argument constant_options[] = { { "value", FLOW_NUMBERS, "0", NULL }, FLOW_ARGUMENTS_END };
static const flow_argument normal_options[] = {
  { "mean", FLOW_NUMBER, "0", NULL }, { "stddev", FLOW_NUMBER, "0.05", NULL }, SEED, FLOW_ARGUMENTS_END
};
static const flow_argument uniform_options[] = {
  { "minval", FLOW_NUMBER, "-0.05", NULL }, { "maxval", FLOW_NUMBER, "0.05", NULL }, SEED, FLOW_ARGUMENTS_END
};
static const flow_argument scaling_options[] = {
  { "scale", FLOW_NUMBER, "1", NULL },
  { "mode", FLOW_TEXT, "fan_in", "fan_in|fan_out|fan_avg" },
  { "distribution", FLOW_TEXT, "truncated_normal", "truncated_normal|untruncated_normal|uniform" },
  SEED,
  FAN_AXES,
  FLOW_ARGUMENTS_END
};

static const flow_argument gain_options[] = { { "gain", FLOW_NUMBER, "1", NULL }, FLOW_ARGUMENTS_END };
static const flow_argument orthogonal_options[] = { { "gain", FLOW_NUMBER, "1", NULL }, SEED, FLOW_ARGUMENTS_END };

/* ---- rules ------------------------------------------------------------------------------------------------------------- */

typedef enum fan_mode { FAN_IN, FAN_OUT, FAN_AVERAGE } fan_mode;

/* Values that enter and leave one unit: a kernel's last two dimensions times the size of its window. A vector counts as both, a scalar
 * as 1. Never below 1, so that a division by it is safe also for shapes with a 0. keras: compute_fans. */
static double fan(fan_mode mode, int rank, const int64_t *shape)
{
  double window = 1, in = 1, out = 1;
  if (rank == 1) in = out = (double)shape[0];
  for (int i = 0; i + 2 < rank; i++) window *= (double)shape[i];
  if (rank >= 2) {
    in = window * (double)shape[rank - 2];
    out = window * (double)shape[rank - 1];
  }
  double value = mode == FAN_IN ? in : mode == FAN_OUT ? out : (in + out) / 2;
  return value > 1 ? value : 1;
}

/* A uniform distribution from -a to a has the variance a^2 / 3. */
static flow_initializer_draw variance_scaling(double scale, fan_mode mode, flow_distribution distribution, int rank, const int64_t *shape)
{
  double variance = scale / fan(mode, rank, shape);
  if (distribution == FLOW_UNIFORM) return (flow_initializer_draw){ FLOW_UNIFORM, -sqrt(3 * variance), sqrt(3 * variance) };
  /* A normal cut off at two standard deviations has 0.8796... of its deviation left. */
  double cut = distribution == FLOW_TRUNCATED_NORMAL ? 0.87962566103423978 : 1;
  return (flow_initializer_draw){ distribution, 0, sqrt(variance) / cut };
}

/* Rules of records: they only read their options, which are complete, and cannot fail. */

static flow_initializer_draw zeros(const flow_arguments *options, int rank, const int64_t *shape)
{
  (void)options; (void)rank; (void)shape;
  return (flow_initializer_draw){ FLOW_CONSTANT, 0, 0 };
}

static flow_initializer_draw ones(const flow_arguments *options, int rank, const int64_t *shape)
{
  (void)options; (void)rank; (void)shape;
  return (flow_initializer_draw){ FLOW_CONSTANT, 1, 0 };
}

/* One number, or a list that must broadcast to the shape: fill_listed finds out. */
static flow_initializer_draw constant(const flow_arguments *options, int rank, const int64_t *shape)
{
  (void)rank; (void)shape;
  if (flow_argument_is_list(options, "value")) return (flow_initializer_draw){ FLOW_LISTED, 0, 0 };
  return (flow_initializer_draw){ FLOW_CONSTANT, flow_argument_number(options, "value"), 0 };
}

/* mean and stddev as they are given; the truncated one redraws beyond two deviations of the given stddev, as Keras. */
static flow_initializer_draw random_normal(const flow_arguments *options, int rank, const int64_t *shape)
{
  (void)rank; (void)shape;
  return (flow_initializer_draw){ FLOW_NORMAL, flow_argument_number(options, "mean"), flow_argument_number(options, "stddev") };
}

static flow_initializer_draw truncated_normal(const flow_arguments *options, int rank, const int64_t *shape)
{
  (void)rank; (void)shape;
  return (flow_initializer_draw){ FLOW_TRUNCATED_NORMAL, flow_argument_number(options, "mean"), flow_argument_number(options, "stddev") };
}

static flow_initializer_draw random_uniform(const flow_arguments *options, int rank, const int64_t *shape)
{
  (void)rank; (void)shape;
  return (flow_initializer_draw){ FLOW_UNIFORM, flow_argument_number(options, "minval"), flow_argument_number(options, "maxval") };
}

/* The options were checked against the record: a mode or distribution that is not named here is the last one. */
static flow_initializer_draw scaling(const flow_arguments *options, int rank, const int64_t *shape)
{
  const char *mode = flow_argument_text(options, "mode"), *distribution = flow_argument_text(options, "distribution");
  return variance_scaling(flow_argument_number(options, "scale"),
                          strcmp(mode, "fan_in") == 0 ? FAN_IN : strcmp(mode, "fan_out") == 0 ? FAN_OUT : FAN_AVERAGE,
                          strcmp(distribution, "uniform") == 0 ? FLOW_UNIFORM :
                          strcmp(distribution, "untruncated_normal") == 0 ? FLOW_NORMAL : FLOW_TRUNCATED_NORMAL, rank, shape);
}

/* The next six are VarianceScaling with fixed options: the scale is the numerator of the variance, the fan its denominator. */
static flow_initializer_draw glorot_uniform(const flow_arguments *options, int rank, const int64_t *shape)
{
  (void)options;
  return variance_scaling(1, FAN_AVERAGE, FLOW_UNIFORM, rank, shape);
}

static flow_initializer_draw glorot_normal(const flow_arguments *options, int rank, const int64_t *shape)
{
  (void)options;
  return variance_scaling(1, FAN_AVERAGE, FLOW_TRUNCATED_NORMAL, rank, shape);
}

static flow_initializer_draw he_uniform(const flow_arguments *options, int rank, const int64_t *shape)
{
  (void)options;
  return variance_scaling(2, FAN_IN, FLOW_UNIFORM, rank, shape);
}

static flow_initializer_draw he_normal(const flow_arguments *options, int rank, const int64_t *shape)
{
  (void)options;
  return variance_scaling(2, FAN_IN, FLOW_TRUNCATED_NORMAL, rank, shape);
}

static flow_initializer_draw lecun_uniform(const flow_arguments *options, int rank, const int64_t *shape)
{
  (void)options;
  return variance_scaling(1, FAN_IN, FLOW_UNIFORM, rank, shape);
}

static flow_initializer_draw lecun_normal(const flow_arguments *options, int rank, const int64_t *shape)
{
  (void)options;
  return variance_scaling(1, FAN_IN, FLOW_TRUNCATED_NORMAL, rank, shape);
}

/* Only matrices: fill_identity finds out. */
static flow_initializer_draw identity(const flow_arguments *options, int rank, const int64_t *shape)
{
  (void)rank; (void)shape;
  return (flow_initializer_draw){ FLOW_IDENTITY, flow_argument_number(options, "gain"), 0 };
}

/* By a decomposition of a normal matrix: orthogonal.c. */
static flow_initializer_draw orthogonal(const flow_arguments *options, int rank, const int64_t *shape)
{
  (void)rank; (void)shape;
  return (flow_initializer_draw){ FLOW_ORTHOGONAL, flow_argument_number(options, "gain"), 0 };
}

static const flow_initializer records[] = {
  { "zeros", "Zeros", no_options, zeros },
  { "ones", "Ones", no_options, ones },
  { "constant", "Constant", constant_options, constant },
  { "random_normal", "RandomNormal", normal_options, random_normal },
  { "random_uniform", "RandomUniform", uniform_options, random_uniform },
  { "truncated_normal", "TruncatedNormal", normal_options, truncated_normal },
  { "variance_scaling", "VarianceScaling", scaling_options, scaling },
  { "glorot_uniform", "GlorotUniform", fan_options, glorot_uniform },
  { "glorot_normal", "GlorotNormal", fan_options, glorot_normal },
  { "he_uniform", "HeUniform", fan_options, he_uniform },
  { "he_normal", "HeNormal", fan_options, he_normal },
  { "lecun_uniform", "LecunUniform", fan_options, lecun_uniform },
  { "lecun_normal", "LecunNormal", fan_options, lecun_normal },
  { "identity", "Identity", gain_options, identity },
  { "orthogonal", "Orthogonal", orthogonal_options, orthogonal },
};

/* Records are numbered in the order of the table above; files have names, not numbers. */
int flow_initializer_count(void) { return (int)(sizeof records / sizeof *records); }

/* index: 0 to flow_initializer_count() - 1, not checked. */
const flow_initializer *flow_initializer_record(int index) { return &records[index]; }

/* By the name or the class name, upper and lower case as they are; name is not NULL. */
int flow_initializer_find(const char *name)
{
  flow_argument_choice choice;
  for (int i = 0; flow_argument_choice_at(FLOW_INITIALIZER, i, &choice); i++)
    if (flow_argument_choice_is(&choice, name)) return i;
  return -1;
}

/* index: of a record, from 0. */
int flow_initializer_is_random(int index)
{
  return flow_argument_find(records[index].parameters, "seed") >= 0;
}

/* ---- drawing ------------------------------------------------------------------------------------------------------------ */

/* Box and Muller: two independent normals of two words. The first uniform is in (0, 1], so that its logarithm exists. */
static void normal_pair(uint32_t a, uint32_t b, double *normals)
{
  double radius = sqrt(-2 * log(1 - (double)flow_uniform_float(a))), angle = 6.283185307179586 * (double)flow_uniform_float(b);
  normals[0] = radius * cos(angle);
  normals[1] = radius * sin(angle);
}

/* Four normals of block `block`. Attempts of a truncated normal are the second counter, so that they never read another element's bits. */
static void normal_block(uint64_t key, uint64_t block, uint64_t attempt, double normals[4])
{
  flow_philox_block bits = flow_philox(key, block, attempt);
  normal_pair(bits.word[0], bits.word[1], normals);
  normal_pair(bits.word[2], bits.word[3], normals + 2);
}

/* For orthogonal.c: standard normals by the same numbers as those of random_normal. */
void flow_initializer_normals(uint64_t key, uint64_t block, double values[4]) { normal_block(key, block, 0, values); }

/* Elements 4 * block to 4 * block + 3. A truncated normal is drawn again from the next attempt's block until it is within
 * two deviations (each attempt succeeds with probability 0.954). */
static void draw_block(const flow_initializer_draw *draw, uint64_t key, uint64_t block, double values[4])
{
  if (draw->distribution == FLOW_UNIFORM) {
    flow_philox_block bits = flow_philox(key, block, 0);
    for (int i = 0; i < 4; i++) values[i] = draw->low + (draw->high - draw->low) * (double)flow_uniform_float(bits.word[i]);
    return;
  }
  normal_block(key, block, 0, values);
  if (draw->distribution == FLOW_TRUNCATED_NORMAL) {
    double again[4];
    uint64_t attempt = 0;
    while (fabs(values[0]) > 2 || fabs(values[1]) > 2 || fabs(values[2]) > 2 || fabs(values[3]) > 2) {
      normal_block(key, block, ++attempt, again);
      for (int i = 0; i < 4; i++)
        if (fabs(values[i]) > 2) values[i] = again[i];
    }
  }
  for (int i = 0; i < 4; i++) values[i] = draw->low + draw->high * values[i];
}

/* Element i depends on the key and on i alone: a tensor that is cut among devices is the same as a whole one. */
static void fill(const flow_initializer_draw *draw, uint64_t key, flow_tensor *into, int64_t size)
{
  enum { CHUNK = 256 };
  size_t element = (size_t)flow_dtype_size(into->dtype);
  double values[CHUNK];
  flow_storage_written(into->storage);
  for (int64_t i = 0; i < size; i += CHUNK) {
    int64_t count = size - i < CHUNK ? size - i : CHUNK;
    for (int64_t j = 0; j < count; j += 4) draw_block(draw, key, (uint64_t)((i + j) / 4), values + j);
    flow_convert_from_double(into->dtype, values, into->data + (size_t)i * element, 1, count);
  }
}

/* gain on the diagonal of a matrix of any ratio, 0 elsewhere. */
static flow_status fill_identity(const flow_initializer *record, double gain, flow_tensor *into)
{
  if (into->rank != 2)
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s: makes matrices of 2 dimensions, found %s", record->class_name,
                     flow_shape_text(into->rank, into->shape));
  FLOW_TRY(flow_tensor_fill(into, 0));
  size_t element = (size_t)flow_dtype_size(into->dtype);
  for (int64_t i = 0; i < into->shape[0] && i < into->shape[1]; i++)
    flow_convert_from_double(into->dtype, &gain, into->data + (size_t)(i * into->shape[1] + i) * element, 1, 1);
  return FLOW_OK;
}

/* The numbers of a nested list, broadcast to the shape: aligned at the last axis, with a stride of 0 where the list has one entry.
 * Row-major positions of the tensor are taken apart from the last axis on. into: all elements are written; the option was checked to be a
 * nested list of equal lengths. */
static flow_status fill_listed(const flow_initializer *record, const flow_arguments *options, flow_tensor *into)
{
  const double *values;
  int64_t dims[FLOW_MAX_RANK], strides[FLOW_MAX_RANK] = { 0 }, size = flow_shape_size(into->rank, into->shape), step = 1;
  size_t element = (size_t)flow_dtype_size(into->dtype);
  int depth = flow_argument_dims(options, "value", dims), fits = depth <= into->rank;
  flow_argument_list(options, "value", &values);
  for (int i = depth - 1, axis = into->rank - 1; i >= 0 && fits; i--, axis--) {
    fits = dims[i] == into->shape[axis] || dims[i] == 1;
    strides[axis] = dims[i] == 1 ? 0 : step;
    step *= dims[i];
  }
  if (!fits)
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s: value has the shape %s, which cannot be broadcast to %s", record->class_name,
                     flow_shape_text(depth, dims), flow_shape_text(into->rank, into->shape));
  flow_storage_written(into->storage);
  for (int64_t i = 0; i < size; i++) {
    int64_t rest = i, from = 0;
    for (int axis = into->rank - 1; axis >= 0; axis--) {
      from += rest % into->shape[axis] * strides[axis];
      rest /= into->shape[axis];
    }
    flow_convert_from_double(into->dtype, &values[from], into->data + (size_t)i * element, 1, 1);
  }
  return FLOW_OK;
}

/* For memory of a device: the numbers are drawn on the host, so that they are the same everywhere. */
static flow_status initialize_from_host(flow_context *context, const char *initializer, const flow_arguments *arguments, double seed,
                                        flow_tensor *into)
{
  flow_tensor *host;
  FLOW_TRY(flow_tensor_new_uninitialized(into->dtype, into->rank, into->shape, &host));
  flow_status status = flow_initialize(context, initializer, arguments, seed, host);
  if (status == FLOW_OK) status = flow_tensor_copy(into, host);
  flow_tensor_release(host);
  return status;
}

/* The product of the sizes of the axes that an option lists, negative ones from the end. */
static flow_status fan_of(const flow_initializer *record, const flow_arguments *options, const char *name, const flow_tensor *into,
                          int64_t *out)
{
  const double *axes;
  int count = flow_argument_list(options, name, &axes);
  *out = 1;
  for (int i = 0; i < count; i++) {
    int axis = flow_axis_of(axes[i], into->rank);
    if (axis < 0 || axis >= into->rank)
      return flow_fail(FLOW_INVALID_ARGUMENT, "%s: %s names axis %d (counted from 1), the variable has the shape %s", record->class_name,
                       name, flow_axis_number(flow_axis_given(axes[i])), flow_shape_text(into->rank, into->shape));
    *out *= into->shape[axis];
  }
  return FLOW_OK;
}

/* Chooses the distribution; a scale that would make the variance 0 or negative, and so all values 0 or NaN, is refused as in Keras. Rules
 * look at the shape for the number of inputs and outputs of a unit alone, so where the axes of both are given, the shape is that of a
 * matrix with these numbers. */
static flow_status choose(const flow_initializer *record, const flow_arguments *options, const flow_tensor *into,
                          flow_initializer_draw *out)
{
  int64_t fans[2];
  if (record->rule == scaling && flow_argument_number(options, "scale") <= 0)
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s: scale must be greater than 0, found %.15g", record->class_name,
                     flow_argument_number(options, "scale"));
  int given = flow_argument_find(record->parameters, "input_axes") >= 0 && !flow_argument_is_null(options, "input_axes") &&
              !flow_argument_is_null(options, "output_axes");
  if (given) {
    FLOW_TRY(fan_of(record, options, "input_axes", into, &fans[0]));
    FLOW_TRY(fan_of(record, options, "output_axes", into, &fans[1]));
  }
  *out = given ? record->rule(options, 2, fans) : record->rule(options, into->rank, into->shape);
  return FLOW_OK;
}

/* seed: a whole number below 2^53, which the option seed replaces. into: contiguous, of a float dtype; on a device the values come from
 * the host. */
flow_status flow_initialize(flow_context *context, const char *initializer, const flow_arguments *arguments, double seed, flow_tensor *into)
{
  FLOW_DEFAULT_FLOATS;
  flow_arguments *options;
  (void)context;      /* the numbers depend on the seed alone */
  FLOW_TRY(flow_check_concrete("flow_initialize: into", into));
  if (flow_tensor_place(into)) return initialize_from_host(context, initializer, arguments, seed, into);
  int index = initializer ? flow_initializer_find(initializer) : -1;
  if (index < 0) return flow_argument_choice_unknown("flow_initialize", "initializer", FLOW_INITIALIZER, initializer ? initializer : "");
  const flow_initializer *record = &records[index];
  if (!flow_dtype_is_float(into->dtype) || !flow_tensor_is_contiguous(into))
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s: fills contiguous tensors of a float dtype, found %s", record->class_name,
                     flow_dtype_name(into->dtype));
  if (!(fabs(seed) < 0x1p53))
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s: seed must be an integer below 2^53, found %g", record->class_name, seed);
  FLOW_TRY(flow_arguments_complete(record->class_name, record->parameters, arguments, &options));
  if (!flow_argument_is_null(options, "seed")) seed = flow_argument_number(options, "seed");
  flow_initializer_draw draw;
  flow_status status = choose(record, options, into, &draw);
  if (status == FLOW_OK && draw.distribution == FLOW_LISTED) status = fill_listed(record, options, into);
  flow_arguments_release(options);
  if (status != FLOW_OK || draw.distribution == FLOW_LISTED) return status;
  if (draw.distribution == FLOW_CONSTANT) return flow_tensor_fill(into, draw.low);
  if (draw.distribution == FLOW_IDENTITY) return fill_identity(record, draw.low, into);
  uint64_t key = flow_mix((uint64_t)(int64_t)seed, 0);
  if (draw.distribution == FLOW_ORTHOGONAL) return flow_initialize_orthogonal(draw.low, key, into);
  fill(&draw, key, into, flow_shape_size(into->rank, into->shape));
  return FLOW_OK;
}
