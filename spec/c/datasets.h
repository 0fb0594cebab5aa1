/* datasets.h: what the tests of the input pipeline share: passes as lists of numbers, and the check that a pass can be saved
 * and restored after every element. */
#ifndef FLOW_SPEC_DATASETS_H
#define FLOW_SPEC_DATASETS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tensors.h"
#include "data/dataset.h"

#define OK(call)                                                                                        \
  do {                                                                                                  \
    flow_status ok_status_ = (call);                                                                    \
    if (ok_status_ != FLOW_OK) fail_msg("%s: %s", flow_status_name(ok_status_), flow_last_error());     \
  } while (0)
#define FAILS(call, expected, words)                                                                    \
  do {                                                                                                  \
    assert_int_equal(call, expected);                                                                   \
    if (!strstr(flow_last_error(), words)) fail_msg("\"%s\" does not say \"%s\"", flow_last_error(), words); \
  } while (0)

enum { MOST_NUMBERS = 20000 };

/* A pass as one list: for each element its components, for each component -1000 - rows if it has rows, then its numbers. */
typedef struct pass { int elements, count; double numbers[MOST_NUMBERS]; } pass;

static inline void pass_add(pass *into, const flow_element *element)
{
  into->elements++;
  for (int i = 0; i < element->count; i++) {
    const flow_tensor *t = element->tensors[i];
    int64_t size = flow_shape_size(t->rank, t->shape);
    assert_true(into->count + size + 1 < MOST_NUMBERS);
    if (t->rank > 0) into->numbers[into->count++] = -1000 - (double)t->shape[0];
    assert_int_equal(flow_tensor_read(t, into->numbers + into->count, (double)size), FLOW_OK);
    into->count += (int)size;
  }
}

/* Adds up to `most` elements to the pass; returns whether the data ended. */
static inline int pass_run(flow_iterator *iterator, int most, pass *into)
{
  flow_element element = { 0 };
  for (int i = 0; i < most; i++) {
    OK(flow_iterator_next(iterator, &element));
    if (element.count == 0) return 1;
    pass_add(into, &element);
  }
  flow_element_clear(&element);
  return 0;
}

static inline pass *pass_of(flow_dataset *dataset, int most)
{
  pass *result = calloc(1, sizeof *result);
  flow_iterator *iterator;
  OK(flow_iterator_new(NULL, dataset, &iterator));
  pass_run(iterator, most, result);
  flow_iterator_close(iterator);
  return result;
}

static inline void expect_pass(const pass *found, int count, const double *expected)
{
  int same = found->count == count;
  for (int i = 0; same && i < count; i++) same = found->numbers[i] == expected[i];
  if (same) return;
  char text[4096];
  flow_text out = flow_text_into(text, sizeof text);
  for (int i = 0; i < found->count; i++) flow_text_add(&out, " %g", found->numbers[i]);
  fail_msg("found%s", text);
}

/* The first numbers of a pass over the dataset, which is released. */
#define EXPECT_PASS(dataset, ...)                                                                                    \
  do {                                                                                                               \
    flow_dataset *expect_dataset_ = (dataset);                                                                       \
    pass *expect_found_ = pass_of(expect_dataset_, 1000);                                                            \
    expect_pass(expect_found_, (int)(sizeof((double[]){ __VA_ARGS__ }) / sizeof(double)), (double[]){ __VA_ARGS__ }); \
    free(expect_found_);                                                                                             \
    flow_dataset_release(expect_dataset_);                                                                           \
  } while (0)

/* Each input reference is given up, so that calls nest: batch(range(10), 3). */
static inline flow_dataset *made(flow_status status, flow_dataset *input, flow_dataset *out)
{
  flow_dataset_release(input);
  OK(status);
  return out;
}

static inline flow_dataset *range(int count)
{
  flow_dataset *out;
  OK(flow_dataset_range(0, count, 1, FLOW_INT64, &out));
  return out;
}
#define STAGE(name, call)            \
  static inline flow_dataset *name   \
  {                                  \
    flow_dataset *out = NULL;        \
    flow_status status = call;       \
    return made(status, input, out); \
  }
STAGE(batch(flow_dataset *input, int size, int drop), flow_dataset_batch(input, size, drop, &out))
STAGE(take(flow_dataset *input, int count), flow_dataset_take(input, count, &out))
STAGE(shuffle(flow_dataset *input, int size, int seed), flow_dataset_shuffle(input, size, 87654321, seed, 1, &out))
STAGE(repeat(flow_dataset *input, int count), flow_dataset_repeat(input, count, &out))
STAGE(shard(flow_dataset *input, int count, int index), flow_dataset_shard(input, count, index, &out))
STAGE(prefetch(flow_dataset *input, int size), flow_dataset_prefetch(input, size, &out))
STAGE(leave_out(flow_dataset *input, int count), flow_dataset_skip(input, count, &out))

static inline flow_dataset *zip(flow_dataset *a, flow_dataset *b)
{
  flow_dataset *inputs[2] = { a, b }, *out = NULL;
  flow_status status = flow_dataset_zip(inputs, 2, &out);
  flow_dataset_release(a);
  return made(status, b, out);
}
static inline flow_dataset *concatenate(flow_dataset *a, flow_dataset *b)
{
  flow_dataset *out = NULL;
  flow_status status = flow_dataset_concatenate(a, b, &out);
  flow_dataset_release(a);
  return made(status, b, out);
}

/* Saves after each of the first `most` elements and goes on from there with another iterator, then runs over `more`
 * elements; releases the dataset. */
static inline void check_positions(flow_dataset *dataset, int most, int more)
{
  flow_iterator *whole;
  OK(flow_iterator_new(NULL, dataset, &whole));
  pass *expected = calloc(1, sizeof *expected), *found = calloc(1, sizeof *found);
  char start[512], position[512];
  assert_true(flow_iterator_save(whole, start, sizeof start) < (int)sizeof start);
  pass_run(whole, most + more, expected);
  flow_iterator_close(whole);
  for (int at = 0; at <= most && at <= expected->elements + 1; at++) {
    flow_iterator *first, *second;
    memset(found, 0, sizeof *found);
    OK(flow_iterator_new(NULL, dataset, &first));
    OK(flow_iterator_restore(first, start));
    pass_run(first, at, found);
    assert_true(flow_iterator_save(first, position, sizeof position) < (int)sizeof position);
    flow_iterator_close(first);
    OK(flow_iterator_new(NULL, dataset, &second));
    OK(flow_iterator_restore(second, position));
    pass_run(second, most + more - at, found);
    flow_iterator_close(second);
    int same = found->count == expected->count && !memcmp(found->numbers, expected->numbers, sizeof(double) * (size_t)found->count);
    if (!same) fail_msg("restored after element %d: %d numbers, expected %d", at, found->count, expected->count);
  }
  free(expected);
  free(found);
  flow_dataset_release(dataset);
}

#endif
