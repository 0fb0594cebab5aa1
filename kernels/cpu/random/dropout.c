/* dropout.c: y = 0 with probability rate, else x / (1 - rate).
 *
 * Element e of sample s is kept if word e % 4 of Philox block (low = e / 4, high = s), as a number in [0, 1) of 24 bits,
 * is >= rate. Samples count through the global batch, so the mask is the same for any split over replicas, chunks and
 * threads, and for every dtype. Variants: float32, plain (every dtype, in double). */
#include <math.h>
#include "cpu/random/random.h"
#include "cpu/vector.h"
#include "tensor/tensor.h"

/* key: of this op at this step (random_step_key). threshold: words of 24 bits from which on an element is kept. scale: 1 / (1 - rate),
 * so that the mean stays; 0 for a rate of 1. */
typedef struct mask { uint64_t key, threshold; double scale; } mask;

/* The attributes name the stream, the scalars the step: the same step draws the same mask again, which is how a gradient and a resumed
 * run see the mask of the forward pass. */
static mask mask_of(const flow_call *call)
{
  const flow_attributes *a = call->attributes;
  double rate = a->dropout.rate;
  return (mask){ .key = random_step_key(a->dropout.seed, a->dropout.stream, a->dropout.own_seed, call->scalars),
                 .threshold = (uint64_t)ceil(rate * 0x1p24),
                 .scale = rate < 1 ? 1 / (1 - rate) : 0 };
}

/* Whether the element of this word is kept: its upper 24 bits are the number. */
static int kept(const mask *m, uint32_t word) { return word >> 8 >= m->threshold; }

/* Rows, and elements of each; a scalar is one row. */
static void extent(const flow_operand *x, int64_t *rows, int64_t *elements)
{
  *rows = x->rank > 0 ? x->shape[0] : 1;
  *elements = x->rank > 1 ? flow_shape_size(x->rank - 1, x->shape + 1) : 1;
}

/* The plain variant takes the other dtypes. */
static int supports_float32(const flow_call *call) { return call->inputs[0].dtype == FLOW_FLOAT32; }

/* PHILOX_WORDS numbers at a time where a sample has as many elements left, else four; the same numbers as run_plain, since their place
 * in the sample is the key. */
static flow_status run_float32(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase; (void)begin; (void)end;
  mask m = mask_of(call);
  int64_t rows, elements;
  extent(&call->inputs[0], &rows, &elements);
  const float *x = call->inputs[0].data, scale = (float)m.scale;
  float *y = call->outputs[0].data;
  if (!y) return FLOW_OK;
  for (int64_t row = 0; row < rows; row++, x += elements, y += elements) {
    uint64_t sample = (uint64_t)(call->scalars->first_sample + call->first_row + row);
    int64_t e = 0;
    for (; e + PHILOX_WORDS <= elements; e += PHILOX_WORDS) {
      uint32_t words[PHILOX_WORDS];
      philox_words(m.key, (uint64_t)e / 4, sample, words);
      for (int i = 0; i < PHILOX_WORDS; i += VL) {
        vu bits;
        memcpy(&bits, words + i, sizeof bits);
        vf_store(y + e + i, vf_select((vi)(bits >> 8) >= (int32_t)m.threshold, vf_load(x + e + i) * vf_set(scale), vf_set(0.0f)));
      }
    }
    for (; e < elements; e += 4) {
      flow_philox_block bits = flow_philox(m.key, (uint64_t)e / 4, sample);
      int64_t together = elements - e < 4 ? elements - e : 4;
      for (int64_t i = 0; i < together; i++) y[e + i] = kept(&m, bits.word[i]) ? x[e + i] * scale : 0;
    }
  }
  return FLOW_OK;
}

/* Any dtype: element e of a sample takes word e % 4 of block e / 4, keyed by seed, stream, step and sample. */
static flow_status run_plain(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase; (void)begin; (void)end;
  mask m = mask_of(call);
  int64_t rows, elements;
  const flow_operand *x = &call->inputs[0], *y = &call->outputs[0];
  extent(x, &rows, &elements);
  if (!y->data) return FLOW_OK;
  for (int64_t row = 0; row < rows; row++) {
    uint64_t sample = (uint64_t)(call->scalars->first_sample + call->first_row + row);
    for (int64_t e = 0; e < elements; e += 4) {
      flow_philox_block bits = flow_philox(m.key, (uint64_t)e / 4, sample);
      int64_t together = elements - e < 4 ? elements - e : 4, at = row * elements + e;
      double value[4];
      flow_convert_to_double(x->dtype, (const char *)x->data + at * flow_dtype_size(x->dtype), 1, value, together);
      for (int64_t i = 0; i < together; i++) value[i] = kept(&m, bits.word[i]) ? value[i] * m.scale : 0;
      flow_convert_from_double(y->dtype, value, (char *)y->data + at * flow_dtype_size(y->dtype), 1, together);
    }
  }
  return FLOW_OK;
}

const flow_kernel FLOW_KERNELS(dropout)[] = {
  { .variant = "float32", .supports = supports_float32, .run = run_float32 },
  { .variant = "plain", .run = run_plain },
  { 0 }
};
