/* sequence.c: see sequence.h. */
#include "tensor/sequence.h"

#include <inttypes.h>
#include <math.h>

#include "tensor/convert.h"

/* Whether x is a whole number that an int64_t holds. False for NaN and the infinities: one of the comparisons fails for them. */
static int is_whole(double x) { return x == floor(x) && fabs(x) < 0x1p63; }

/* Whole numbers are computed as integers where neither the product nor the sum can overflow, so that long ranges have no rounding
 * errors. */
flow_sequence flow_sequence_of_numbers(double start, double step, int64_t count)
{
  flow_sequence sequence = { .count = count, .start = start, .step = step };
  int64_t reach;
  if (!is_whole(start) || !is_whole(step)) return sequence;
  sequence.first = (int64_t)start;
  sequence.by = (int64_t)step;
  sequence.whole = !__builtin_mul_overflow(count, sequence.by, &reach) && !__builtin_add_overflow(reach, sequence.first, &reach);
  return sequence;
}

/* The distance is computed without sign: from INT64_MIN to INT64_MAX it does not fit int64. */
flow_status flow_sequence_of_integers(int64_t start, int64_t stop, int64_t step, flow_sequence *out)
{
  uint64_t distance = 0, size = step < 0 ? -(uint64_t)step : (uint64_t)step, count;
  if (step > 0 && stop > start) distance = (uint64_t)stop - (uint64_t)start;
  if (step < 0 && stop < start) distance = (uint64_t)start - (uint64_t)stop;
  count = distance == 0 ? 0 : (distance - 1) / size + 1;
  if (count > UINT64_C(1) << 53)
    return flow_fail(FLOW_INVALID_ARGUMENT, "a range from %" PRId64 " to %" PRId64 " by %" PRId64 " has %" PRIu64 " numbers, at most 2^53 "
                     "are possible", start, stop, step, count);
  *out = (flow_sequence){ .count = (int64_t)count, .whole = 1, .first = start, .by = step };
  return FLOW_OK;
}

/* An element fits into an int64, but i * by may not: it wraps, and so does the sum, to the right result. */
static int64_t whole_at(const flow_sequence *sequence, int64_t i)
{
  return (int64_t)((uint64_t)sequence->first + (uint64_t)i * (uint64_t)sequence->by);
}

static int fits_int32(int64_t x)
{
  return x >= INT32_MIN && x <= INT32_MAX;
}

/* By way of doubles, which saturate as a cast does, unless the integers themselves fit. */
void flow_sequence_write(const flow_sequence *sequence, int64_t first, int64_t count, int dtype, void *elements)
{
  enum { BLOCK = 256 };
  int64_t wholes[BLOCK];
  double numbers[BLOCK];
  char *to = elements;
  int as_integers = sequence->whole &&
                    (dtype == FLOW_INT64 ||
                     (dtype == FLOW_INT32 && fits_int32(whole_at(sequence, first)) && fits_int32(whole_at(sequence, first + count - 1))));
  for (int64_t done = 0, n; done < count; done += n, to += n * flow_dtype_size(dtype)) {
    n = count - done < BLOCK ? count - done : BLOCK;
    for (int64_t i = 0; i < n; i++) wholes[i] = whole_at(sequence, first + done + i);
    if (as_integers) {
      flow_convert_from_int64(dtype, wholes, to, 1, n);
      continue;
    }
    if (sequence->whole)
      for (int64_t i = 0; i < n; i++) numbers[i] = (double)wholes[i];
    else
      for (int64_t i = 0; i < n; i++) numbers[i] = sequence->start + (double)(first + done + i) * sequence->step;
    flow_convert_from_double(dtype, numbers, to, 1, n);
  }
}
