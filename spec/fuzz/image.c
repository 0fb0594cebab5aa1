/* image.c: any bytes as a picture: an error or a picture that can be resized, never a fault; the same line by line.
 *
 * sources: core/base/plugin.c core/base/memory.c core/base/status.c core/io/file.c
 * sources: core/image/image.c core/image/image_stb.c core/image/resize.c
 * sources: core/image/resize_rows.c core/image/resize_taps.c
 * plugins: image */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "image/image.h"
#include "image/resize.h"

typedef struct picture_lines { flow_resizer resizer; int method, fit; float resized[7 * 5 * 4]; } picture_lines;

static flow_status begin_lines(void *target, int height, int width, int channels)
{
  picture_lines *to = target;
  return flow_resize_begin(&to->resizer, FLOW_UINT8, height, width, channels, to->method, to->fit, 7, 5, FLOW_FLOAT32, to->resized);
}

static flow_status give_line(void *target, unsigned char **line) { return flow_resize_room(&((picture_lines *)target)->resizer, line); }

static void take_lines(void *target, const unsigned char *pixels)
{
  picture_lines *to = target;
  flow_resize_lines(&to->resizer, pixels, 0, to->resizer.height);
}

/* What decodes as a whole decodes line by line, to the same bits. */
static void compare_lines(const uint8_t *data, size_t size, int wanted, int method, int fit, const float *expected, size_t count)
{
  picture_lines to = { .method = method, .fit = fit };
  flow_picture picture = { 0 };
  flow_picture_rows rows = { begin_lines, give_line, take_lines, &to };
  if (flow_picture_decode_rows(data, size, wanted, &picture, &rows) != FLOW_OK) abort();
  flow_resize_end(&to.resizer);
  if (memcmp(to.resized, expected, count * sizeof *expected) != 0) abort();
  flow_resizer_free(&to.resizer);
  flow_picture_free(&picture);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static const int channels[] = { 3, 0, 1, 4 };
  static float resized[7 * 5 * 4];
  double before = flow_live_bytes();
  flow_picture picture = { 0 };
  flow_resizer resizer = { 0 };
  int wanted = channels[size % 4];
  if (flow_picture_decode(data, size, wanted, &picture) == FLOW_OK) {
    int64_t pixels = (int64_t)picture.height * picture.width;
    if (wanted > 0 && picture.channels != wanted) abort();
    unsigned sum = 0;                                        /* a sanitizer sees whether all pixels are there */
    for (int64_t i = 0; i < pixels * picture.channels; i++) sum += picture.pixels[i];
    if (sum > 255u * (uint64_t)(pixels * picture.channels)) abort();
    int fit = (int)(sum % 3), method = (int)(sum / 3 % 8);
    if (pixels < 1 << 16) {
      flow_resize(&resizer, picture.pixels, FLOW_UINT8, picture.height, picture.width, picture.channels, method, fit, 7, 5, resized);
      compare_lines(data, size, wanted, method, fit, resized, (size_t)(7 * 5 * picture.channels));
    }
  }
  flow_resizer_free(&resizer);
  flow_picture_free(&picture);
  if (flow_live_bytes() != before) abort();
  return 0;
}
