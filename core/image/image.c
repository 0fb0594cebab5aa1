/* image.c: which decoder a picture needs, channels, and whole files in and out.
 *
 * A picture's first bytes choose the format. JPEG and GIF go to the plugin "image", which calls back for room once it
 * knows the dimensions; PNG and BMP to image_stb.c. Everything is checked before memory is taken: the dimensions against
 * FLOW_MOST_PIXELS, and against what the file can hold. Functions here keep no state; a flow_picture is used by one
 * thread at a time. */
#include "image/image.h"

#include <string.h>
#include <strings.h>
#include "base/float_state.h"
#include "base/memory.h"
#include "io/file.h"
#include "image/image_plugin.h"

enum { MOST_FILE_BYTES = 1 << 30 };

/* The picture is as one that was never used. */
void flow_picture_free(flow_picture *picture)
{
  flow_free(picture->pixels);
  flow_free(picture->file);
  *picture = (flow_picture){ 0 };
}

/* What was in the block is not kept. */
static flow_status grow(unsigned char **block, size_t *capacity, size_t bytes)
{
  if (bytes <= *capacity) return FLOW_OK;
  void *larger;
  FLOW_TRY(flow_alloc(bytes, &larger));
  flow_free(*block);
  *block = larger;
  *capacity = bytes;
  return FLOW_OK;
}

/* What a file claims is checked before memory is taken for it: a file of some bytes could claim terabytes. */
static flow_status check_dimensions(int64_t height, int64_t width)
{
  if (height < 1 || width < 1 || height > FLOW_MOST_PIXELS / width) {
    return flow_fail(FLOW_CORRUPT_DATA, "the picture claims to have %lld x %lld pixels; 1 to %lld are possible", (long long)height,
                     (long long)width, (long long)FLOW_MOST_PIXELS);
  }
  return FLOW_OK;
}

/* After a failure the picture may still hold the one before. The bytes are at most 4 * FLOW_MOST_PIXELS, 1 GB. */
flow_status flow_picture_reserve(flow_picture *picture, int64_t height, int64_t width, int channels, int wanted)
{
  FLOW_TRY(check_dimensions(height, width));
  size_t bytes = (size_t)height * (size_t)width * (size_t)(channels > wanted ? channels : wanted);
  FLOW_TRY(grow(&picture->pixels, &picture->capacity, bytes));
  picture->height = (int)height;
  picture->width = (int)width;
  picture->channels = channels;
  return FLOW_OK;
}

/* ---- channels ---------------------------------------------------------------------------------------------------------------- */

/* A pixel of any of the four kinds as red, green, blue and alpha; alpha is 255 where there is none. */
static void read_pixel(const unsigned char *from, int channels, unsigned char *rgba)
{
  int colour = channels >= 3;
  rgba[0] = from[0];
  rgba[1] = from[colour ? 1 : 0];
  rgba[2] = from[colour ? 2 : 0];
  rgba[3] = channels == 2 || channels == 4 ? from[channels - 1] : 255;
}

/* channels: 1, 3 or 4. Grey pixels stay unchanged; colours become grey by weights. */
static void write_pixel(const unsigned char *rgba, unsigned char *to, int from_channels, int channels)
{
  if (channels >= 3) {
    memcpy(to, rgba, (size_t)channels);
  } else {
    /* libpng's fixed-point weights for 0.299, 0.587 and the rest (png_set_rgb_to_gray_fixed) */
    to[0] = from_channels < 3 ? rgba[0] : (unsigned char)((9797u * rgba[0] + 19234u * rgba[1] + 3737u * rgba[2]) >> 15);
  }
}

/* In place: forward where pixels shrink, backward where they grow. The block has room for the wanted channels
 * (flow_picture_reserve), and no pixel is overwritten before it was read. */
static void convert_channels(flow_picture *picture, int channels)
{
  int from = picture->channels;
  size_t count = (size_t)picture->height * (size_t)picture->width;
  for (size_t i = 0; i < count; i++) {
    size_t pixel = channels <= from ? i : count - 1 - i;
    unsigned char rgba[4];
    read_pixel(picture->pixels + pixel * (size_t)from, from, rgba);
    write_pixel(rgba, picture->pixels + pixel * (size_t)channels, from, channels);
  }
  picture->channels = channels;
}

/* ---- decoding ------------------------------------------------------------------------------------------------------------------- */

/* rows: NULL if the whole picture is wanted. */
typedef struct plugin_target { flow_picture *picture; int wanted; int64_t file_bytes; const flow_picture_rows *rows; } plugin_target;

/* Why here: decoders tell the dimensions before they take memory, and a file of a few bytes must not ask for gigabytes.
 * covered and pixels_a_byte: see flow_image_reserve. */
static flow_status check_size(const plugin_target *target, int64_t height, int64_t width, int64_t covered, int64_t pixels_a_byte)
{
  if (pixels_a_byte > 0 && covered / pixels_a_byte > target->file_bytes) {
    return flow_fail(FLOW_CORRUPT_DATA, "the picture claims to have %lld x %lld pixels, which %lld bytes cannot hold",
                     (long long)height, (long long)width, (long long)target->file_bytes);
  }
  return check_dimensions(height, width);
}

/* Called by the plugin (image_plugin.h) once the dimensions are known. */
static flow_status reserve(void *argument, int64_t height, int64_t width, int channels, int64_t covered, int64_t pixels_a_byte,
                           unsigned char **pixels)
{
  plugin_target *target = argument;
  FLOW_TRY(check_size(target, height, width, covered, pixels_a_byte));
  if (target->rows) return target->rows->begin(target->rows->target, (int)height, (int)width, channels);
  FLOW_TRY(flow_picture_reserve(target->picture, height, width, channels, target->wanted));
  if (pixels) *pixels = target->picture->pixels;
  return FLOW_OK;
}

/* Where the decoder writes line `line`: in the picture, or where the receiver of rows wants it. */
static flow_status give_row(void *argument, int64_t line, unsigned char **row)
{
  plugin_target *target = argument;
  const flow_picture *picture = target->picture;
  if (target->rows) return target->rows->room(target->rows->target, row);
  *row = picture->pixels + (size_t)line * (size_t)picture->width * (size_t)picture->channels;
  return FLOW_OK;
}

/* The plugin is opened at the first picture that needs it; the message of a failure says what to install. */
static flow_status image_functions(const flow_image_functions **out)
{
  const flow_plugin *plugin;
  FLOW_TRY(flow_plugin_open("image", &plugin));
  *out = plugin->functions;
  return FLOW_OK;
}

/* By the plugin, row by row: the picture is reserved when its header is known, and each row is given on as soon as it is decoded. */
static flow_status decode_jpeg_rows(const unsigned char *bytes, size_t count, int wanted, flow_picture *picture,
                                    const flow_picture_rows *rows)
{
  const flow_image_functions *functions;
  plugin_target target = { picture, wanted, (int64_t)count, rows };
  FLOW_TRY(image_functions(&functions));
  return functions->decode_jpeg(bytes, count, wanted, reserve, give_row, &target);
}

static flow_status decode_jpeg(const unsigned char *bytes, size_t count, int wanted, flow_picture *picture)
{
  return decode_jpeg_rows(bytes, count, wanted, picture, NULL);
}

static flow_status decode_gif(const unsigned char *bytes, size_t count, int wanted, flow_picture *picture)
{
  const flow_image_functions *functions;
  plugin_target target = { picture, wanted, (int64_t)count, NULL };
  FLOW_TRY(image_functions(&functions));
  return functions->decode_gif(bytes, count, reserve, &target);
}

/* decode_rows: NULL if the decoder makes the whole picture at once. With it, the channels are the wanted ones. Told by the first bytes,
 * in this order. */
typedef struct format {
  const char *magic;
  size_t length;
  flow_status (*decode)(const unsigned char *bytes, size_t count, int wanted, flow_picture *picture);
  flow_status (*decode_rows)(const unsigned char *bytes, size_t count, int wanted, flow_picture *picture, const flow_picture_rows *rows);
} format;

static const format formats[] = {
  { "\xff\xd8\xff", 3, decode_jpeg, decode_jpeg_rows },
  { "\x89PNG\r\n\x1a\n", 8, flow_png_decode, NULL },
  { "GIF8", 4, decode_gif, NULL },
  { "BM", 2, flow_bmp_decode, NULL },
};

/* Shows the first four bytes, by which a user sees what the file is. */
static flow_status fail_unknown(const unsigned char *bytes, size_t count)
{
  if (count == 0) return flow_fail(FLOW_CORRUPT_DATA, "the picture is empty");
  char text[64];
  flow_text start = flow_text_into(text, sizeof text);
  for (size_t i = 0; i < count && i < 4; i++) flow_text_add(&start, " %02x", bytes[i]);
  return flow_fail(FLOW_CORRUPT_DATA, "unknown image format: JPEG, PNG, GIF or BMP is expected, the data begins with%s", text);
}

/* channels 0 is what the file has. FLOW_CORRUPT_DATA for bytes that begin like no picture. */
static flow_status find_format(const unsigned char *bytes, size_t count, int channels, const format **out)
{
  if (channels < 0 || channels > 4 || channels == 2) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "a picture is decoded to 1, 3 or 4 channels, not %d", channels);
  }
  if (count > MOST_FILE_BYTES) {
    return flow_fail(FLOW_UNSUPPORTED, "a picture of %.0f bytes: at most %d are possible", (double)count, MOST_FILE_BYTES);
  }
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
    *out = &formats[i];
    if (count >= formats[i].length && memcmp(bytes, formats[i].magic, formats[i].length) == 0) return FLOW_OK;
  }
  return fail_unknown(bytes, count);
}

/* Channels that the decoder has not made are made here (a JPEG has 1 or 3). */
flow_status flow_picture_decode(const void *bytes, size_t count, int channels, flow_picture *picture)
{
  const format *found;
  FLOW_TRY(find_format(bytes, count, channels, &found));
  FLOW_TRY(found->decode(bytes, count, channels, picture));
  if (channels > 0 && channels != picture->channels) convert_channels(picture, channels);
  return FLOW_OK;
}

/* JPEG comes line by line, so that a resizer works while lines are in the cache; the others come whole. */
flow_status flow_picture_decode_rows(const void *bytes, size_t count, int channels, flow_picture *picture, const flow_picture_rows *rows)
{
  FLOW_DEFAULT_FLOATS;
  const format *found;
  FLOW_TRY(find_format(bytes, count, channels, &found));
  if (found->decode_rows) return found->decode_rows(bytes, count, channels, picture, rows);
  FLOW_TRY(flow_picture_decode(bytes, count, channels, picture));
  FLOW_TRY(rows->begin(rows->target, picture->height, picture->width, picture->channels));
  rows->all(rows->target, picture->pixels);
  return FLOW_OK;
}

/* The whole file into picture->file, whose memory is used again for the next one. */
static flow_status read_file(const char *path, flow_picture *picture, size_t *count)
{
  flow_source source;
  flow_status status = flow_source_open(path, &source);
  if (status == FLOW_OK && source.file_bytes > MOST_FILE_BYTES) {
    status = flow_fail(FLOW_UNSUPPORTED, "%s has %.0f bytes: pictures have at most %d", path, (double)source.file_bytes, MOST_FILE_BYTES);
  }
  if (status == FLOW_OK) status = grow(&picture->file, &picture->file_capacity, (size_t)source.file_bytes);
  if (status == FLOW_OK) status = flow_source_read(&source, "a picture", picture->file, source.file_bytes);
  *count = (size_t)source.file_bytes;
  flow_source_close(&source);
  return status;
}

/* Any format that flow_picture_decode knows; the ending of the name does not count. Messages begin with the path. */
flow_status flow_picture_read(const char *path, int channels, flow_picture *picture)
{
  size_t count;
  FLOW_TRY(read_file(path, picture, &count));
  flow_status status = flow_picture_decode(picture->file, count, channels, picture);
  return status == FLOW_OK ? FLOW_OK : flow_fail_prefix(status, "%s: ", path);
}

/* As flow_picture_decode_rows, of a file. */
flow_status flow_picture_read_rows(const char *path, int channels, flow_picture *picture, const flow_picture_rows *rows)
{
  FLOW_DEFAULT_FLOATS;
  size_t count;
  FLOW_TRY(read_file(path, picture, &count));
  flow_status status = flow_picture_decode_rows(picture->file, count, channels, picture, rows);
  return status == FLOW_OK ? FLOW_OK : flow_fail_prefix(status, "%s: ", path);
}

/* ---- encoding ------------------------------------------------------------------------------------------------------------------- */

/* Without regard to case; a name that is nothing but the ending does not count. */
static int ends_with(const char *path, const char *ending)
{
  size_t length = strlen(path), tail = strlen(ending);
  return length > tail && strcasecmp(path + length - tail, ending) == 0;
}

/* The receiver that encoders call, with a flow_sink as its target. */
static flow_status write_piece(void *target, const void *bytes, size_t count)
{
  return flow_sink_write(target, bytes, count);
}

/* Through the plugin, in pieces. */
static flow_status encode_jpeg(const flow_picture *picture, int quality, flow_sink *sink)
{
  const flow_image_functions *functions;
  if (picture->channels == 4) return flow_fail(FLOW_UNSUPPORTED, "JPEG has no alpha: 1 or 3 channels can be saved, not 4");
  if (quality < 1 || quality > 100) return flow_fail(FLOW_INVALID_ARGUMENT, "the quality is 1 to 100, got %d", quality);
  FLOW_TRY(image_functions(&functions));
  return functions->encode_jpeg(picture->pixels, picture->height, picture->width, picture->channels, quality, write_piece, sink);
}

/* The ending of the path chooses the format; quality is JPEG's alone. */
static flow_status encode(const char *path, const flow_picture *picture, int quality, flow_sink *sink)
{
  if (ends_with(path, ".png")) return flow_png_encode(picture, write_piece, sink);
  if (ends_with(path, ".bmp")) return flow_bmp_encode(picture, write_piece, sink);
  if (ends_with(path, ".jpg") || ends_with(path, ".jpeg")) return encode_jpeg(picture, quality, sink);
  return flow_fail(FLOW_INVALID_ARGUMENT, "the name must end in .jpg, .jpeg, .png or .bmp");
}

/* The file appears whole or not at all. */
flow_status flow_picture_write(const char *path, const flow_picture *picture, int quality)
{
  FLOW_DEFAULT_FLOATS;
  flow_sink sink;
  FLOW_TRY(flow_sink_open(path, &sink));
  flow_status status = encode(path, picture, quality, &sink);
  if (status == FLOW_OK) return flow_sink_commit(&sink);
  flow_sink_discard(&sink);
  return flow_fail_prefix(status, "cannot save %s: ", path);
}
