/* images.h: resize, sample_image and their gradients, NHWC. Runs and weights of a resized image's axes are made on the device, by threads
 * of their own. Gradients of resize are gathered: the outputs that an input pixel goes into are neighbours, too. A sampled image's
 * are added one output pixel after the other, by one thread for each image and channel, since any of them may go to any place. */
#ifndef FLOW_CUDA_OPS_IMAGES_H
#define FLOW_CUDA_OPS_IMAGES_H

#include "cuda/device/numbers.h"
#include "image_sampling.h"
#include "resize_weights.h"

/* from, to: x, y or g, dx. readers: [2][rows.in] and [2][columns.in], the first output that reads an input pixel and the first after the
 * last one. */
typedef struct resize_arguments {
  const void     *from;
  void           *to;
  resize_axis     rows, columns;
  int32_t        *row_readers, *column_readers;
  int64_t         channels, fours;
  flow_attributes attributes;
  int             from_dtype, to_dtype, together, unused;
} resize_arguments;
typedef resize_arguments resize_weigh_arguments, resize_readers_arguments, resize_image_float32_arguments, resize_image_other_arguments;
typedef resize_arguments resize_image_gradient_float32_arguments, resize_image_gradient_other_arguments;

/* x: of the gradient g. */
typedef struct sampling_arguments {
  const void     *x, *t;
  void           *y;
  int64_t         height, width, channels, fours;
  flow_attributes attributes;
  int             x_dtype, t_dtype, y_dtype, together;
} sampling_arguments;
typedef sampling_arguments sample_pixels_float32_arguments, sample_pixels_other_arguments;
typedef sampling_arguments sample_pixels_gradient_float32_arguments, sample_pixels_gradient_other_arguments;

/* An element is an output row or column. */
BODY void resize_weigh(int64_t i, const resize_arguments *a)
{
  int is_row = i < a->rows.out;
  resize_axis axis = is_row ? a->rows : a->columns;
  weigh_output(&axis, &a->attributes, (int)(is_row ? i : i - a->rows.out));
}

/* How many output pixels have a run that ends (reach 1) or begins (reach 0) at or before input pixel `at`: both grow from one to the
 * next. */
BODY int resize_outputs_before(const resize_axis *axis, int at, int reach)
{
  int low = 0, high = axis->out;
  while (low < high) {
    int middle = low + (high - low) / 2;
    int place = axis->first[middle] + (reach ? axis->count[middle] : 0);
    if (place <= at) low = middle + 1;
    else high = middle;
  }
  return low;
}

/* An element is an input row or column. */
BODY void resize_readers(int64_t i, const resize_arguments *a)
{
  int is_row = i < a->rows.in, at = (int)(is_row ? i : i - a->rows.in);
  const resize_axis *axis = is_row ? &a->rows : &a->columns;
  int32_t *readers = is_row ? a->row_readers : a->column_readers;
  readers[at] = resize_outputs_before(axis, at, 1);
  readers[axis->in + at] = resize_outputs_before(axis, at, 0);
}

#define BODIES "cuda/ops/image/image_bodies.h"
#include "cuda/device/for_float32.h"
#include "cuda/device/for_other.h"
#undef BODIES

#define IMAGE_KERNELS(ELEMENT, BLOCK)                                                                                              \
  ELEMENT(resize_weigh) ELEMENT(resize_readers) ELEMENT(resize_image_float32) ELEMENT(resize_image_other)                          \
  ELEMENT(resize_image_gradient_float32) ELEMENT(resize_image_gradient_other) ELEMENT(sample_pixels_float32)                       \
  ELEMENT(sample_pixels_other) ELEMENT(sample_pixels_gradient_float32) ELEMENT(sample_pixels_gradient_other)

#endif
