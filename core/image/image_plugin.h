/* core/plugins/image: JPEG by libjpeg-turbo and GIF by giflib, built into libflow_image.so.
 *
 * image_plugin.h: what it offers. Pixels are bytes, rows from the top, channels together. No function here takes memory
 * that grows with an image before its dimensions were checked, and then only through `reserve`. */
#ifndef FLOW_IMAGE_PLUGIN_H
#define FLOW_IMAGE_PLUGIN_H

#include "base/plugin.h"

/* Called once, when the dimensions are known: checks them and gives room for height x width x channels bytes, which the
 * caller of decode owns, whatever happens afterwards (pixels may be NULL: rows are asked for one by one). `covered` is the number of
 * pixels for which the file must hold data of at least `pixels_a_byte` pixels a byte (0: no such bound). */
typedef flow_status (*flow_image_reserve)(void *target, int64_t height, int64_t width, int channels, int64_t covered,
                                          int64_t pixels_a_byte, unsigned char **pixels);

/* Room for line 0, 1, ... of the picture, until the next call: asking for a line says that those before it are complete. */
typedef flow_status (*flow_image_row)(void *target, int64_t line, unsigned char **row);

/* Called with pieces of the encoded image, in order. */
typedef flow_status (*flow_image_write)(void *target, const void *bytes, size_t count);

typedef struct flow_image_functions {
  /* Decodes into the number of channels that is asked for: 1 or 3, 0 means what the file has. */
  flow_status (*decode_jpeg)(const unsigned char *bytes, size_t count, int channels, flow_image_reserve reserve, flow_image_row row,
                             void *target);
  /* The first frame, always as 3 channels, on a black canvas. */
  flow_status (*decode_gif)(const unsigned char *bytes, size_t count, flow_image_reserve reserve, void *target);
  /* 1 or 3 channels, quality 1 to 100. */
  flow_status (*encode_jpeg)(const unsigned char *pixels, int height, int width, int channels, int quality, flow_image_write write,
                             void *target);
} flow_image_functions;

/* Of the parts of the plugin: the core's functions, and its own. */
const flow_plugin_services *flow_image_services(void);
flow_status flow_jpeg_decode(const unsigned char *bytes, size_t count, int channels, flow_image_reserve reserve, flow_image_row row,
                             void *target);
flow_status flow_jpeg_encode(const unsigned char *pixels, int height, int width, int channels, int quality, flow_image_write write,
                             void *target);
flow_status flow_gif_decode(const unsigned char *bytes, size_t count, flow_image_reserve reserve, void *target);

#endif
