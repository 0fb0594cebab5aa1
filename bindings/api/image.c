/* image.c: the C API's pictures as tensors. */
#include <math.h>
#include "base/memory.h"
#include "base/need.h"
#include "image/image.h"
#include "image/resize.h"
#include "tensor/tensor.h"

/* ---- in -------------------------------------------------------------------------------------------------------------------------- */

/* Copies the pixels: a picture's memory comes from the decoder, a tensor's is aligned. */
static flow_status tensor_of(const flow_picture *picture, flow_tensor **out)
{
  int64_t shape[3] = { picture->height, picture->width, picture->channels };
  FLOW_TRY(flow_tensor_new_uninitialized(FLOW_UINT8, 3, shape, out));
  __builtin_memcpy((*out)->data, picture->pixels, (size_t)(shape[0] * shape[1] * shape[2]));
  return FLOW_OK;
}

flow_status flow_image_load(const char *path, int channels, flow_tensor **out)
{
  FLOW_NEED(out);
  *out = NULL;
  FLOW_NEED(path);
  flow_picture picture = { 0 };
  flow_status status = flow_picture_read(path, channels, &picture);
  if (status == FLOW_OK) status = tensor_of(&picture, out);
  flow_picture_free(&picture);
  return status;
}

flow_status flow_image_decode(const void *bytes, double count, int channels, flow_tensor **out)
{
  FLOW_NEED(out);
  *out = NULL;
  if (!bytes || !(count >= 0 && count < 0x1p40)) return flow_fail(FLOW_INVALID_ARGUMENT, "decoding a picture: the bytes are missing");
  flow_picture picture = { 0 };
  flow_status status = flow_picture_decode(bytes, (size_t)count, channels, &picture);
  if (status == FLOW_OK) status = tensor_of(&picture, out);
  flow_picture_free(&picture);
  return status;
}

/* ---- out ------------------------------------------------------------------------------------------------------------------------- */

/* What a file of pictures can hold; `what` begins the message. */
static flow_status check_picture(const char *what, const flow_tensor *image)
{
  FLOW_TRY(flow_check_on_host(what, image));
  int rank = image->rank;
  int64_t channels = rank == 3 ? image->shape[2] : 1;
  if ((rank != 2 && rank != 3) || (channels != 1 && channels != 3 && channels != 4)) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s: a picture has shape {height, width} or {height, width, 1, 3 or 4}, got %s", what,
                     flow_shape_text(rank, image->shape));
  }
  if (image->shape[0] < 1 || image->shape[1] < 1 || image->shape[0] > FLOW_MOST_PIXELS / image->shape[1]) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s: a picture has 1 to %lld pixels, got shape %s", what, (long long)FLOW_MOST_PIXELS,
                     flow_shape_text(rank, image->shape));
  }
  return FLOW_OK;
}

/* The elements of an image, 0 to 255, as bytes; others than uint8 are rounded and limited, NaN becomes 0. */
static flow_status bytes_of(const flow_tensor *image, flow_tensor **out)
{
  flow_tensor *values;
  FLOW_TRY(flow_tensor_new_uninitialized(image->dtype == FLOW_UINT8 ? FLOW_UINT8 : FLOW_FLOAT32, image->rank, image->shape, &values));
  flow_status status = flow_tensor_copy(values, image);
  if (status == FLOW_OK && values->dtype == FLOW_FLOAT32) {
    int64_t size = flow_shape_size(image->rank, image->shape);
    const float *from = (const float *)values->data;
    unsigned char *to = (unsigned char *)values->data;       /* byte i is before float i: in place */
    for (int64_t i = 0; i < size; i++) to[i] = from[i] >= 255 ? 255 : from[i] > 0 ? (unsigned char)lrintf(from[i]) : 0;
  }
  if (status == FLOW_OK) *out = values;
  else flow_tensor_release(values);
  return status;
}

flow_status flow_image_save(const char *path, const flow_tensor *image, int quality)
{
  FLOW_TRY(check_picture("saving a picture", image));
  flow_tensor *bytes;
  FLOW_TRY(bytes_of(image, &bytes));
  flow_picture picture = { .height = (int)image->shape[0], .width = (int)image->shape[1],
                           .channels = image->rank == 3 ? (int)image->shape[2] : 1, .pixels = (unsigned char *)bytes->data };
  flow_status status = flow_picture_write(path, &picture, quality);
  flow_tensor_release(bytes);
  return status;
}

/* ---- other sizes -------------------------------------------------------------------------------------------------------------------- */

/* Also that neither the numbers of pixels nor their products overflow what resize.h counts in. */
static flow_status check_resize(const flow_tensor *images, int height, int width, int fit)
{
  FLOW_TRY(flow_check_on_host("resizing a picture", images));
  if (images->rank != 3 && images->rank != 4) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "resizing needs {height, width, channels} or {batch, height, width, channels}, got shape %s",
                     flow_shape_text(images->rank, images->shape));
  }
  const int64_t *size = images->shape + images->rank - 3;
  if (height < 1 || width < 1 || size[0] < 1 || size[1] < 1 || size[2] < 1 || size[0] > INT32_MAX / size[1] ||
      size[0] * size[1] > INT32_MAX / size[2]) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "resizing shape %s to %d x %d is not possible", flow_shape_text(images->rank, images->shape),
                     height, width);
  }
  if (fit < FLOW_STRETCH || fit > FLOW_PAD) return flow_fail(FLOW_INVALID_ARGUMENT, "resizing: fit is 0, 1 or 2, got %d", fit);
  return FLOW_OK;
}

/* A contiguous uint8 or float32 tensor of the same values. */
static flow_status readable(flow_tensor *images, flow_tensor **out)
{
  if (images->dtype == FLOW_UINT8 || images->dtype == FLOW_FLOAT32) return flow_tensor_contiguous(images, out);
  FLOW_TRY(flow_tensor_new_uninitialized(FLOW_FLOAT32, images->rank, images->shape, out));
  flow_status status = flow_tensor_copy(*out, images);
  if (status != FLOW_OK) flow_tensor_release(*out);
  return status;
}

/* One resizer for all images: their sizes are the same, so that its tables are made once. */
static flow_status resize_all(const flow_tensor *images, int method, int fit, flow_tensor *into)
{
  const int64_t *from = images->shape + images->rank - 3, *to = into->shape + into->rank - 3;
  int64_t count = images->rank == 4 ? images->shape[0] : 1;
  int64_t from_bytes = from[0] * from[1] * from[2] * flow_dtype_size(images->dtype), to_size = to[0] * to[1] * to[2];
  flow_resizer resizer = { 0 };
  flow_status status = FLOW_OK;
  for (int64_t i = 0; status == FLOW_OK && i < count; i++) {
    status = flow_resize(&resizer, images->data + i * from_bytes, images->dtype, (int)from[0], (int)from[1], (int)from[2], method, fit,
                         (int)to[0], (int)to[1], (float *)into->data + i * to_size);
  }
  flow_resizer_free(&resizer);
  return status;
}

/* A batch is resized image by image, on the calling thread. */
flow_status flow_image_resize(flow_tensor *images, int height, int width, const char *interpolation, int fit, flow_tensor **out)
{
  FLOW_NEED(out);
  *out = NULL;
  FLOW_NEED(images, interpolation);
  FLOW_TRY(check_resize(images, height, width, fit));
  int method = flow_resize_method(interpolation);
  if (method < 0) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "interpolation is one of bilinear, nearest, bicubic, area, lanczos3, lanczos5, gaussian, "
                     "mitchellcubic, got \"%s\"", interpolation ? interpolation : "");
  }
  flow_tensor *source;
  FLOW_TRY(readable(images, &source));
  int64_t shape[4];
  for (int axis = 0; axis < images->rank; axis++) shape[axis] = images->shape[axis];
  shape[images->rank - 3] = height;
  shape[images->rank - 2] = width;
  flow_status status = flow_tensor_new_uninitialized(FLOW_FLOAT32, images->rank, shape, out);
  if (status == FLOW_OK) status = resize_all(source, method, fit, *out);
  flow_tensor_release(source);
  if (status == FLOW_OK) return FLOW_OK;
  flow_tensor_release(*out);
  *out = NULL;
  return status;
}
