/* image.c: any bytes as a picture: an error or a picture that can be resized, never a fault.
 *
 * sources: core/base/plugin.c core/base/memory.c core/base/status.c core/io/file.c
 * sources: core/data/image.c core/data/image_stb.c core/data/resize.c
 * sources: core/data/resize_rows.c core/data/resize_taps.c
 * plugins: image */
#include <stdint.h>
#include <stdlib.h>
#include "base/memory.h"
#include "data/image.h"
#include "data/resize.h"

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
    }
  }
  flow_resizer_free(&resizer);
  flow_picture_free(&picture);
  if (flow_live_bytes() != before) abort();
  return 0;
}
