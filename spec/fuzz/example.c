/* example.c: tf.train.Examples: every value of every feature, into blocks of exactly the size that was counted. */
#include "fuzz.h"
#include "io/example.h"

static flow_status read_values(const flow_feature *feature)
{
  uint64_t count;
  flow_bytes value;
  FLOW_TRY(flow_feature_count(feature, &count));
  if (feature->kind == FLOW_FEATURE_BYTES) return count > 0 ? flow_feature_bytes(feature, &value) : FLOW_OK;
  if (feature->kind == FLOW_FEATURE_EMPTY) return FLOW_OK;
  size_t size = feature->kind == FLOW_FEATURE_FLOATS ? sizeof(float) : sizeof(int64_t);
  void *to = malloc(count * size + 1);
  if (!to) abort();
  flow_status status = feature->kind == FLOW_FEATURE_FLOATS ? flow_feature_floats(feature, to) : flow_feature_integers(feature, to);
  free(to);
  return status;
}

static void example(const uint8_t *bytes, size_t count)
{
  flow_example_reader reader = flow_example_reader_of(bytes, count);
  flow_feature feature;
  int found = 1;
  while (found && flow_example_next(&reader, &feature, &found) == FLOW_OK) {
    if (found && read_values(&feature) != FLOW_OK) return;
  }
}

FUZZ_TARGET(example)
