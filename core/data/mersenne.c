/* mersenne.c: the order into which NumPy's RandomState(seed).shuffle brings n elements: Keras lists its files in it.
 * MT19937 by M. Matsumoto and T. Nishimura (ACM TOMACS 8, 1998); a bounded number is drawn by masking and rejecting. */
#include "base/status.h"
#include "base/need.h"

enum { WORDS = 624, SHIFT = 397 };

typedef struct mersenne { uint32_t word[WORDS]; int next; } mersenne;

/* init_genrand of the authors' mt19937ar.c, which is what NumPy's RandomState(seed) calls for one number. */
static void seed_words(mersenne *m, uint32_t seed)
{
  m->word[0] = seed;
  for (uint32_t i = 1; i < WORDS; i++) m->word[i] = 1812433253u * (m->word[i - 1] ^ (m->word[i - 1] >> 30)) + i;
  m->next = WORDS;
}

/* The next WORDS words, all at once. */
static void make_words(mersenne *m)
{
  for (int i = 0; i < WORDS; i++) {
    uint32_t y = (m->word[i] & 0x80000000u) | (m->word[(i + 1) % WORDS] & 0x7fffffffu);
    m->word[i] = m->word[(i + SHIFT) % WORDS] ^ (y >> 1) ^ (y & 1 ? 0x9908b0dfu : 0);
  }
  m->next = 0;
}

/* The tempering of the article, section 2.1. */
static uint32_t draw(mersenne *m)
{
  if (m->next == WORDS) make_words(m);
  uint32_t y = m->word[m->next++];
  y ^= y >> 11;
  y ^= (y << 7) & 0x9d2c5680u;
  y ^= (y << 15) & 0xefc60000u;
  return y ^ (y >> 18);
}

/* A number from 0 to `most`, each as likely: the smallest mask of ones that covers it, and another draw where the result
 * is above it. */
static uint32_t draw_up_to(mersenne *m, uint32_t most)
{
  uint32_t mask = most, value;
  for (int shift = 1; shift < 32; shift *= 2) mask |= mask >> shift;
  do value = draw(m) & mask; while (value > most);
  return value;
}

/* Fisher and Yates' shuffle from the end, as RandomState.shuffle does it: order[i] is the place that element i of the shuffled list had
 * before. */
flow_status flow_shuffle_order(double seed, int count, int32_t *order)
{
  if (count > 0) FLOW_NEED(order);
  if (!(seed >= 0 && seed <= 4294967295.0) || seed != (double)(uint32_t)seed) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "a seed is a whole number from 0 to 4294967295, got %.17g", seed);
  }
  mersenne m;
  seed_words(&m, (uint32_t)seed);
  for (int i = 0; i < count; i++) order[i] = i;
  for (int i = count - 1; i > 0; i--) {
    uint32_t j = draw_up_to(&m, (uint32_t)i);
    int32_t kept = order[i];
    order[i] = order[j];
    order[j] = kept;
  }
  return FLOW_OK;
}
