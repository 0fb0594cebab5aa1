/* sample_uniform.c: numbers in [low, high) for each sample of a batch, with 24 random bits.
 *
 * Number e of sample s comes from word e % 4 of Philox block (low = e / 4, high = s); samples count through the global batch, as in
 * dropout.c. */
#include <math.h>
#include <string.h>
#include "cpu/random/random.h"

typedef struct range {
  double low, high;
  float limit;
} range; /* limit: the largest float below high */

/* What words give: low + (high - low) times a number of 24 bits, which rounding may bring to high. */
ALWAYS_INLINE void numbers_of(range r, const uint32_t *words, int64_t count, float *y)
{
  for (int64_t i = 0; i < count; i++) {
    float number = (float)(r.low + (r.high - r.low) * ((double)(int32_t)(words[i] >> 8) * 0x1p-24));
    y[i] = number > r.limit ? r.limit : number;
  }
}

/* PHILOX_WORDS numbers at a time where a sample has as many left, else four. */
static flow_status run(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  const flow_attributes *a = call->attributes;
  const range r = { a->random.low, a->random.high, nextafterf((float)a->random.high, (float)a->random.low) };
  const uint64_t key = random_step_key(a->random.seed, a->random.stream, a->random.own_seed, call->scalars);
  const int64_t rows = call->outputs[0].shape[0], count = call->outputs[0].shape[1];
  float *y = call->outputs[0].data;
  for (int64_t row = 0; row < rows && y; row++, y += count) {
    const uint64_t sample = (uint64_t)(call->scalars->first_sample + call->first_row + row);
    uint32_t words[PHILOX_WORDS];
    int64_t e = 0;
    for (; e + PHILOX_WORDS <= count; e += PHILOX_WORDS) {
      philox_words(key, (uint64_t)e / 4, sample, words);
      numbers_of(r, words, PHILOX_WORDS, y + e);
    }
    for (; e < count; e += 4) {
      flow_philox_block block = flow_philox(key, (uint64_t)e / 4, sample);
      numbers_of(r, block.word, count - e < 4 ? count - e : 4, y + e);
    }
  }
  return FLOW_OK;
}

const flow_kernel FLOW_KERNELS(sample_uniform)[] = { { .variant = "philox", .run = run }, { 0 } };
