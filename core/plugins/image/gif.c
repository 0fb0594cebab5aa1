/* gif.c: the first frame of a GIF by giflib, as TensorFlow's decode_image gives it: colours of the palette, black where a pixel is
 * transparent or the frame does not cover the canvas. Later frames are not looked at. */
#include <string.h>
#include <gif_lib.h>
#include "image/image_plugin.h"

/* What giflib has not read yet. */
typedef struct gif_bytes { const unsigned char *next; size_t left; } gif_bytes;

/* giflib's source: fewer bytes than wanted at the end, which it takes for an error. */
static int read_bytes(GifFileType *gif, GifByteType *to, int wanted)
{
  gif_bytes *bytes = gif->UserData;
  size_t count = wanted > 0 ? (size_t)wanted : 0;
  if (count > bytes->left) count = bytes->left;
  memcpy(to, bytes->next, count);
  bytes->next += count;
  bytes->left -= count;
  return (int)count;
}

/* gif NULL: `error` is what the opening said. giflib has no text for some of its errors. */
static flow_status fail_gif(const GifFileType *gif, int error)
{
  if (gif) error = gif->Error;
  const char *why = GifErrorString(error);
  return flow_image_services()->fail(error == D_GIF_ERR_NOT_ENOUGH_MEM ? FLOW_OUT_OF_MEMORY : FLOW_CORRUPT_DATA, "giflib: %s",
                                     why ? why : "the data ends early");
}

/* Skips what is in front of the first frame; leaves its place and palette in gif->Image, and the index of transparent pixels, -1 without
 * one, in *transparent. */
static flow_status find_frame(GifFileType *gif, int *transparent)
{
  *transparent = NO_TRANSPARENT_COLOR;
  for (;;) {
    GifRecordType type;
    if (DGifGetRecordType(gif, &type) == GIF_ERROR) return fail_gif(gif, 0);
    if (type == IMAGE_DESC_RECORD_TYPE) return DGifGetImageDesc(gif) == GIF_ERROR ? fail_gif(gif, 0) : FLOW_OK;
    if (type == TERMINATE_RECORD_TYPE) return flow_image_services()->fail(FLOW_CORRUPT_DATA, "the GIF file has no image in it");
    if (type != EXTENSION_RECORD_TYPE) continue;
    int code;
    GifByteType *block;
    if (DGifGetExtension(gif, &code, &block) == GIF_ERROR) return fail_gif(gif, 0);
    GraphicsControlBlock control; /* giflib's blocks begin with their length */
    if (code == GRAPHICS_EXT_FUNC_CODE && block && DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK) {
      *transparent = control.TransparentColor;
    }
    while (block) {
      if (DGifGetExtensionNext(gif, &block) == GIF_ERROR) return fail_gif(gif, 0);
    }
  }
}

/* Row `line` of the data, in the order in which they are stored, is this row of the frame. */
static int row_of_line(const GifImageDesc *frame, int line)
{
  static const int first[4] = { 0, 4, 2, 1 }, step[4] = { 8, 8, 4, 2 };
  if (!frame->Interlace) return line;
  for (int pass = 0; pass < 4; pass++) {
    int rows = (frame->Height - first[pass] + step[pass] - 1) / step[pass];
    if (line < rows) return first[pass] + line * step[pass];
    line -= rows;
  }
  return 0;
}

/* An index that the palette does not have is left black: it is data of a
 * damaged file, of which the rest may be right. */
static void paint_row(const ColorMapObject *colours, const GifByteType *indices, int count, int transparent, unsigned char *to)
{
  for (int x = 0; x < count; x++, to += 3) {
    if (indices[x] >= colours->ColorCount || indices[x] == transparent) continue; /* stays black */
    const GifColorType *colour = &colours->Colors[indices[x]];
    to[0] = colour->Red;
    to[1] = colour->Green;
    to[2] = colour->Blue;
  }
}

/* The frame may begin outside of the canvas or reach beyond it; what is outside is read and not painted. pixels: SHeight x SWidth x 3,
 * black. line: room for a line of the frame. */
static flow_status paint_frame(GifFileType *gif, int transparent, unsigned char *pixels, GifByteType *line)
{
  const GifImageDesc *frame = &gif->Image;
  const ColorMapObject *colours = frame->ColorMap ? frame->ColorMap : gif->SColorMap;
  if (!colours) return flow_image_services()->fail(FLOW_CORRUPT_DATA, "the GIF image has no palette");
  int visible = frame->Left >= gif->SWidth ? 0 : gif->SWidth - frame->Left;
  if (visible > frame->Width) visible = frame->Width;
  for (int i = 0; i < frame->Height; i++) {
    if (DGifGetLine(gif, line, frame->Width) == GIF_ERROR) return fail_gif(gif, 0);
    int row = frame->Top + row_of_line(frame, i);
    if (row >= gif->SHeight) continue;
    paint_row(colours, line, visible, transparent, pixels + ((size_t)row * (size_t)gif->SWidth + (size_t)frame->Left) * 3);
  }
  return FLOW_OK;
}

/* The canvas is asked for when the frame's size is known: what the frame covers bounds the bytes that the file must have. */
static flow_status decode(GifFileType *gif, flow_image_reserve reserve, void *target)
{
  const flow_plugin_services *core = flow_image_services();
  int transparent;
  flow_status status = find_frame(gif, &transparent);
  if (status != FLOW_OK) return status;
  /* One code of at least 3 bits gives at most 4,096 pixels (GIF89a, appendix F). */
  int64_t covered = (int64_t)gif->Image.Width * gif->Image.Height;
  unsigned char *pixels;
  status = reserve(target, gif->SHeight, gif->SWidth, 3, covered, 4096 * 8 / 3, &pixels);
  if (status != FLOW_OK) return status;
  memset(pixels, 0, (size_t)gif->SHeight * (size_t)gif->SWidth * 3);
  void *line;
  status = core->alloc((size_t)gif->Image.Width + 1, &line);
  if (status != FLOW_OK) return status;
  status = paint_frame(gif, transparent, pixels, line);
  core->free(line);
  return status;
}

/* See image_plugin.h. `bytes` are borrowed until it returns; giflib's own memory goes with DGifCloseFile, whatever has failed. */
flow_status flow_gif_decode(const unsigned char *bytes, size_t count, flow_image_reserve reserve, void *target)
{
  gif_bytes source = { bytes, count };
  int error = 0;
  GifFileType *gif = DGifOpen(&source, read_bytes, &error);
  if (!gif) return fail_gif(NULL, error);
  flow_status status = decode(gif, reserve, target);
  DGifCloseFile(gif, &error);
  return status;
}
