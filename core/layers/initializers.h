/* initializers.h: how a variable gets its first values. One record an initializer: names, options, rule. Random ones draw
 * Philox numbers: element i depends on (seed, i) only. */
#ifndef FLOW_LAYERS_INITIALIZERS_H
#define FLOW_LAYERS_INITIALIZERS_H

#include "layers/arguments.h"
#include "tensor/tensor.h"

typedef enum flow_distribution {
  FLOW_CONSTANT, FLOW_LISTED, FLOW_UNIFORM, FLOW_NORMAL, FLOW_TRUNCATED_NORMAL, FLOW_IDENTITY, FLOW_ORTHOGONAL
} flow_distribution;

/* What is drawn: low..high of FLOW_UNIFORM, mean and standard deviation of the normals, low of FLOW_CONSTANT, the option "value" of
 * FLOW_LISTED; what FLOW_IDENTITY and FLOW_ORTHOGONAL are multiplied by. */
typedef struct flow_initializer_draw { flow_distribution distribution; double low, high; } flow_initializer_draw;

typedef struct flow_initializer {
  const char          *name, *class_name;     /* "glorot_uniform", "GlorotUniform" */
  const flow_argument *parameters;
  /* Chooses the distribution for a variable of this shape. */
  flow_initializer_draw          (*rule)(const flow_arguments *options, int rank, const int64_t *shape);
} flow_initializer;

int                     flow_initializer_count(void);
int                     flow_initializer_find(const char *name);    /* snake-case or class name; -1 */
const flow_initializer *flow_initializer_record(int index);
/* Whether it has a seed: "zeros" has none. */
int                     flow_initializer_is_random(int index);

/* Fills a contiguous tensor of floats {..., columns}, its rows one after the other, with a matrix whose rows or columns, whichever are
 * fewer, are orthonormal, times gain: the orthogonal factor of a matrix of normal numbers, with the signs that make the other factor's
 * diagonal positive (Saxe, McClelland and Ganguli 2014; the signs are Keras'). orthogonal.c */
flow_status flow_initialize_orthogonal(double gain, uint64_t key, flow_tensor *into);
/* Normal numbers of a key, from element 4 * block on. */
void        flow_initializer_normals(uint64_t key, uint64_t block, double values[4]);

#endif
