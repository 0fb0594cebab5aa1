/* core/tensorboard: what training writes for TensorBoard. Uses base, tensor, io, image.
 *
 * events.h: TensorBoard's event files: a stream of TFRecords, each a tensorflow.Event, written as TensorFlow 2 writes summaries
 * (tensorflow/core/util/event.proto, framework/summary.proto; tensorboard/plugins/.../metadata.py). The functions are in flow.h.
 *
 * Events are kept until there are ten of them, until the first is two minutes old, or until a flush, as TensorFlow does. What is
 * written is appended in whole records; a write that fails is undone, so that a reader never finds half a record.
 *
 * State of the process: the number of writers ever made, which is part of a file's name. */
#ifndef FLOW_TENSORBOARD_EVENTS_H
#define FLOW_TENSORBOARD_EVENTS_H

#include "base/status.h"

enum { FLOW_EVENTS_KEPT = 10, FLOW_EVENTS_SECONDS = 120 };

/* One row (left edge, right edge, count) per bucket, as TensorBoard's histograms have them: buckets of one width from the least value to
 * the greatest; of a single value, the last bucket has them all. Values that are not finite are left out. rows: 3 * buckets. */
void flow_histogram(const double *values, int64_t count, int buckets, double *rows);

#endif
