/* resize.h: pictures of another size, as tf.image.resize makes them with antialias off: half-pixel centres, float32 result
 * that is neither rounded nor scaled. */
#ifndef FLOW_DATA_RESIZE_H
#define FLOW_DATA_RESIZE_H

#include "base/status.h"

/* How a picture of another aspect ratio is fitted: FLOW_CROP cuts the middle out first (Keras' crop_to_aspect_ratio),
 * FLOW_PAD shrinks it to fit and leaves zeros around (pad_to_aspect_ratio). */
typedef enum flow_fit { FLOW_STRETCH = 0, FLOW_CROP, FLOW_PAD } flow_fit;

/* The number of a method: bilinear, nearest, bicubic, area, lanczos3, lanczos5, gaussian, mitchellcubic; -1: none. */
int flow_resize_method(const char *name);

/* Each output position of an axis is a weighted sum of `count` neighbours in the input, from first[i] on. */
typedef struct flow_taps {
  int    count;
  int   *first;
  float *weights;                    /* outputs x count */
  int    first_capacity, weight_capacity;
  int    method, from, to;           /* what the taps were computed for */
} flow_taps;

/* Memory of one thread's resizing, kept between pictures. All zero is empty. */
typedef struct flow_resizer {
  flow_taps vertical, horizontal;
  float    *row;
  int       row_capacity;
} flow_resizer;

void flow_resizer_free(flow_resizer *resizer);

/* pixels: height x width x channels bytes, or floats if dtype is FLOW_FLOAT32. `to` has room for to_height x to_width x
 * channels floats. Every size is at least 1. */
flow_status flow_resize(flow_resizer *resizer, const void *pixels, int dtype, int height, int width, int channels, int method,
                        int fit, int to_height, int to_width, float *to);

#endif
