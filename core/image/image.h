/* core/image: pictures, as bytes of a file and as pixels, and their resizing. Uses base and io.
 *
 * image.h: pictures as bytes. The content tells the format, never the name. Files may be hostile: dimensions are
 * checked against the file's size and a limit before memory is taken. */
#ifndef FLOW_IMAGE_IMAGE_H
#define FLOW_IMAGE_IMAGE_H

#include "base/status.h"

#define FLOW_MOST_PIXELS ((int64_t)1 << 28)

/* Rows from the top, channels together: 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA. All zero is an empty picture. The memory
 * is kept for the next picture until flow_picture_free. */
typedef struct flow_picture {
  int            height, width, channels;
  unsigned char *pixels;
  size_t         capacity;
  unsigned char *file;              /* the bytes of the file that was read last */
  size_t         file_capacity;
} flow_picture;

/* Its memory, not the struct itself; NULL pointers are fine. */
void flow_picture_free(flow_picture *picture);

/* JPEG, GIF (first frame), PNG or BMP into `channels` channels: 1, 3 or 4 (JPEG: 1 or 3), 0: as the file has them. 16 bits
 * become the upper 8. Grey of colours is 0.299 r + 0.587 g + 0.114 b; alpha is dropped, or 255 where there is none: as
 * TensorFlow's decode_image does it. FLOW_CORRUPT_DATA, also for data that ends early; FLOW_UNSUPPORTED. */
flow_status flow_picture_decode(const void *bytes, size_t count, int channels, flow_picture *picture);

/* Reads and decodes a file; messages begin with its path. */
flow_status flow_picture_read(const char *path, int channels, flow_picture *picture);

/* Where a picture goes whose reader wants its rows as they are decoded. begin: the dimensions, once, before everything else. Then
 * either room, for each line from the top: where it goes (the lines before it are complete; the last one when the reading has
 * succeeded); or all: every line is here, until it returns. After a failure nothing is called any more. The functions get `target`,
 * which is the receiver's own. */
typedef struct flow_picture_rows {
  flow_status (*begin)(void *target, int height, int width, int channels);
  flow_status (*room)(void *target, unsigned char **line);
  void        (*all)(void *target, const unsigned char *pixels);
  void         *target;
} flow_picture_rows;

/* The same as flow_picture_decode and flow_picture_read, to `rows`; the picture is memory to work in, and holds nothing afterwards. */
flow_status flow_picture_decode_rows(const void *bytes, size_t count, int channels, flow_picture *picture, const flow_picture_rows *rows);
flow_status flow_picture_read_rows(const char *path, int channels, flow_picture *picture, const flow_picture_rows *rows);

/* Writes a picture of 1, 3 or 4 channels to a file whose ending says how: .png .bmp .jpg .jpeg. Quality: of JPEG, 1 to 100. */
flow_status flow_picture_write(const char *path, const flow_picture *picture, int quality);

/* ---- between the parts of this folder ---------------------------------------------------------------------------------------- */

/* Room for a picture, checked: dimensions from 1, at most FLOW_MOST_PIXELS, capacity for `wanted` channels if that is more. */
flow_status flow_picture_reserve(flow_picture *picture, int64_t height, int64_t width, int channels, int wanted);

/* image_stb.c. */
flow_status flow_png_decode(const unsigned char *bytes, size_t count, int wanted, flow_picture *picture);
flow_status flow_bmp_decode(const unsigned char *bytes, size_t count, int wanted, flow_picture *picture);
typedef flow_status (*flow_picture_sink)(void *target, const void *bytes, size_t count);
flow_status flow_png_encode(const flow_picture *picture, flow_picture_sink write, void *target);
flow_status flow_bmp_encode(const flow_picture *picture, flow_picture_sink write, void *target);

#endif
