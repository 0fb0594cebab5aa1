/* resize.h: pictures of another size, as tf.image.resize makes them with antialias off: half-pixel centres, float32 result
 * that is neither rounded nor scaled. */
#ifndef FLOW_IMAGE_RESIZE_H
#define FLOW_IMAGE_RESIZE_H

#include "base/status.h"

/* How a picture of another aspect ratio is fitted: FLOW_CROP cuts the middle out first (Keras' crop_to_aspect_ratio),
 * FLOW_PAD shrinks it to fit and leaves zeros around (pad_to_aspect_ratio). */
typedef enum flow_fit { FLOW_STRETCH = 0, FLOW_CROP, FLOW_PAD } flow_fit;

/* The number of a method: bilinear, nearest, bicubic, area, lanczos3, lanczos5, gaussian, mitchellcubic; -1: none. */
int flow_resize_method(const char *name);
/* What pictures of bytes become by this method as in TensorFlow: nearest takes pixels as they are, FLOW_UINT8; others FLOW_FLOAT32. */
int flow_resize_dtype(int method);

/* Each output position of an axis is a weighted sum of `count` neighbours in the input, from first[i] on. */
typedef struct flow_resize_taps {
  int    count;
  int   *first;
  float *weights;                    /* outputs x count */
  int    first_capacity, weight_capacity;
  int    method, from, to;           /* what the taps were computed for */
} flow_resize_taps;

/* The horizontal sum of a row for vectors of 16 numbers: each takes its inputs from the 32 numbers from base[vector] on. */
enum { FLOW_SHUFFLE_LANES = 16 };
typedef struct flow_shuffle_step { int32_t index[FLOW_SHUFFLE_LANES]; float weights[FLOW_SHUFFLE_LANES]; } flow_shuffle_step;
typedef struct flow_shuffles {
  int                vectors;        /* 0: inputs are further apart, or the machine has no such shuffle */
  int               *base;
  flow_shuffle_step *steps;          /* vectors x taps */
  int                base_capacity, step_capacity;
  int                method, from, to, channels;      /* what they were computed for */
} flow_shuffles;

/* A part of the input that goes to a part of the output. */
typedef struct flow_fitting { int top, left, height, width, to_top, to_left, to_height, to_width; } flow_fitting;

/* Memory of one thread's resizing, kept between pictures, and the picture that is under way. All zero is empty. */
typedef struct flow_resizer {
  flow_resize_taps      vertical, horizontal;
  flow_shuffles  shuffles;
  float         *row, *bytes_row;    /* a row of the input's width; of the output's, before it becomes bytes */
  unsigned char *window;             /* lines `first` to first + held - 1 of a picture that comes line by line */
  int            row_capacity, bytes_row_capacity, window_capacity;
  flow_fitting   fitting;
  int            dtype, to_dtype, channels, height, window_lines, first, held;
  int            next;               /* row of the output */
  int64_t        stride, window_stride, to_stride;      /* elements */
  void          *to;
} flow_resizer;

/* Releases all memory; the resizer is empty then, and can be used again. */
void flow_resizer_free(flow_resizer *resizer);

/* pixels: height x width x channels bytes, or floats if dtype is FLOW_FLOAT32. `to` has room for to_height x to_width x
 * channels floats. Every size is at least 1. */
flow_status flow_resize(flow_resizer *resizer, const void *pixels, int dtype, int height, int width, int channels, int method,
                        int fit, int to_height, int to_width, float *to);

/* The same for a picture that comes in parts, from the top; it is done after the last line. Either with flow_resize_lines, which
 * makes the rows that lines first to first + count - 1 are enough for (all lines that rows not made yet need must be among them or
 * come later); or with flow_resize_room, which gives room for the next line (all before it must be complete; bytes only), and
 * flow_resize_end when the last one is complete. to_dtype: FLOW_FLOAT32, or FLOW_UINT8 where flow_resize_dtype says so. */
flow_status flow_resize_begin(flow_resizer *resizer, int dtype, int height, int width, int channels, int method, int fit, int to_height,
                              int to_width, int to_dtype, void *to);
void        flow_resize_lines(flow_resizer *resizer, const void *lines, int first, int count);
flow_status flow_resize_room(flow_resizer *resizer, unsigned char **line);
void        flow_resize_end(flow_resizer *resizer);

#endif
