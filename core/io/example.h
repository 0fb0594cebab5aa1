/* example.h: tf.train.Example, the message that TFRecord files usually hold: named lists of bytes, of float32 or of int64
 * (TensorFlow: core/example/example.proto, feature.proto; the wire format is protobuf's).
 *
 * Reading walks over the message where it is and copies nothing: packed and unpacked numbers, any order of the map, fields
 * that it does not know, and repeated fields as protobuf merges them. Writing gives the bytes that protobuf's deterministic
 * serialization gives: names in the order of their bytes, numbers packed. */
#ifndef FLOW_IO_EXAMPLE_H
#define FLOW_IO_EXAMPLE_H

#include "io/protobuf.h"

typedef enum flow_feature_kind { FLOW_FEATURE_EMPTY = 0, FLOW_FEATURE_BYTES, FLOW_FEATURE_FLOATS, FLOW_FEATURE_INTEGERS } flow_feature_kind;

/* One entry of the map. Pointers go into the message. EMPTY: a feature without a list, as TensorFlow writes a missing one. */
typedef struct flow_feature {
  flow_bytes         name;
  flow_feature_kind kind;
  flow_bytes         content;       /* of the Feature message, from the field that decided its kind on */
} flow_feature;

/* A walk over the entries. `example`: what is left of the Example message; `features`: of the Features message in it,
 * inside of which the walk is. */
typedef struct flow_example_reader { flow_bytes example, features; } flow_example_reader;

/* A walk over a serialized tf.train.Example; the bytes are borrowed for as long as it lasts. */
flow_example_reader flow_example_reader_of(const void *bytes, uint64_t count);
/* The next entry, or *found = 0. A name may come twice: then the last entry counts. FLOW_CORRUPT_DATA when the bytes are not an
 * Example; names nothing but what is wrong, the caller puts file and record in front. */
flow_status flow_example_next(flow_example_reader *reader, flow_feature *feature, int *found);
/* The feature of that name; *found = 0 if there is none. */
flow_status flow_example_find(const void *bytes, uint64_t count, const char *name, flow_feature *feature, int *found);

/* Number of values. */
flow_status flow_feature_count(const flow_feature *feature, uint64_t *count);
/* All values of a feature of that kind, as many as flow_feature_count says. */
flow_status flow_feature_floats(const flow_feature *feature, float *to);
flow_status flow_feature_integers(const flow_feature *feature, int64_t *to);
/* The first value of a bytes feature with at least one. */
flow_status flow_feature_bytes(const flow_feature *feature, flow_bytes *value);

/* "bytes", "float32", "int64"; "nothing" for EMPTY. */
const char *flow_feature_kind_name(flow_feature_kind kind);

/* ---- writing ---- */

/* One feature to be written; values are borrowed. */
typedef struct flow_feature_values {
  const char       *name;
  flow_feature_kind kind;
  uint64_t          count;
  const void       *values;        /* float[count], int64_t[count], or flow_bytes[count] */
} flow_feature_values;

/* Bytes of the message. The order of `features` is the caller's; flow_example_encode sorts by name first. */
uint64_t flow_example_bytes(const flow_feature_values *features, int count);
/* Writes flow_example_bytes() bytes. Sorts `features`. */
void     flow_example_encode(flow_feature_values *features, int count, unsigned char *to);

#endif
