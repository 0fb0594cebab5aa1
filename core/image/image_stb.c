/* image_stb.c: PNG and BMP by stb_image and stb_image_write. Only these two readers are compiled; what surrounds the
 * pixels is checked here first, because stb_image trusts sizes, skips checksums and fills missing data with zeros.
 *
 * Memory goes through stb_alloc, with a budget that follows from the size of the picture, so that no file makes
 * stb_image take more; inflating goes through zlib, with an exact limit. Both limits are variables of the thread, set
 * before each picture. */
#include "image/image.h"

#include <string.h>
#include <zlib.h>
#include "base/bytes.h"
#include "base/memory.h"
#include "io/file.h"

/* ---- stb's memory: the house's allocator, with a budget for one picture --------------------------------------------------------- */

/* Of this thread's picture: bytes that stb may still take, and bytes that its compressed data may become. Each thread decodes one
 * picture at a time. */
static _Thread_local size_t budget_left, inflated_most;

/* malloc for stb_image. The budget of this thread bounds what one picture may take in all, whatever its header claims; it is set before
 * each call of the decoder. */
static void *stb_alloc(size_t bytes)
{
  void *block;
  if (bytes > budget_left) {
    flow_fail(FLOW_CORRUPT_DATA, "the picture needs far more memory than its size allows");
    return NULL;
  }
  budget_left -= bytes;
  return flow_alloc(bytes, &block) == FLOW_OK ? block : NULL;
}

/* What was freed does not go back to the budget: growing blocks cost more than they hold, which the budget counts in. */
static void *stb_realloc(void *old, size_t old_bytes, size_t bytes)
{
  void *block = stb_alloc(bytes);
  if (!block) return NULL;
  if (old) memcpy(block, old, old_bytes < bytes ? old_bytes : bytes);
  flow_free(old);
  return block;
}

static _Thread_local unsigned char *compressed_pixels;      /* stb leaks it when there is no memory for the file around it */

/* zlib's compressor instead of stb's: smaller files, sooner. The block is stb's, which frees it when the file has been
 * written. NULL: no memory. */
static unsigned char *stb_compress(unsigned char *data, int count, int *compressed, int level)
{
  z_stream stream = flow_zlib_stream();
  size_t most = compressBound((uLong)count);
  unsigned char *block = stb_alloc(most);
  if (!block || deflateInit(&stream, level) != Z_OK) {
    flow_free(block);
    return NULL;
  }
  stream.next_in = data;
  stream.avail_in = (uInt)count;
  stream.next_out = block;
  stream.avail_out = (uInt)most;
  deflate(&stream, Z_FINISH); /* cannot fail: there is room for the worst case */
  *compressed = (int)(most - stream.avail_out);
  deflateEnd(&stream);
  return compressed_pixels = block;
}

#pragma GCC diagnostic ignored "-Wunused-function"          /* looked at after the last line */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_PNG
#define STBI_ONLY_BMP
#define STBI_NO_STDIO
#define STBI_NO_LINEAR
#define STBI_NO_ZLIB                                        /* zlib inflates, see below */
#define STBI_NO_HDR
#define STBI_ASSERT(condition) ((void)0)
#define STBI_MALLOC(bytes) stb_alloc(bytes)
#define STBI_FREE(block) flow_free(block)
#define STBI_REALLOC_SIZED(block, old_bytes, bytes) stb_realloc(block, old_bytes, bytes)
#include <stb/stb_image.h>
#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#define STBI_WRITE_NO_STDIO
#define STBIW_ASSERT(condition) ((void)0)
#define STBIW_MALLOC(bytes) stb_alloc(bytes)
#define STBIW_FREE(block) flow_free(block)
#define STBIW_REALLOC_SIZED(block, old_bytes, bytes) stb_realloc(block, old_bytes, bytes)
#define STBIW_ZLIB_COMPRESS stb_compress
#include <stb/stb_image_write.h>
#pragma GCC diagnostic pop

/* What stb_image calls to inflate: at most the bytes that the picture takes, whatever the data goes on to say. A picture
 * whose data ends early inflates to fewer bytes, which stb_image then finds too few. */
static char *stbi_zlib_decode_malloc_guesssize_headerflag(const char *bytes, int count, int guess, int *out_count, int with_header)
{
  (void)guess;
  z_stream stream = flow_zlib_stream();
  stream.next_in = (Bytef *)(uintptr_t)bytes;
  stream.avail_in = (uInt)count;
  unsigned char *block = inflated_most <= INT32_MAX ? stb_alloc(inflated_most) : NULL;
  if (!block || inflateInit2(&stream, with_header ? MAX_WBITS : -MAX_WBITS) != Z_OK) {
    flow_free(block);
    return (char *)(uintptr_t)stbi__errpuc("outofmem", "Out of memory");
  }
  stream.next_out = block;
  stream.avail_out = (uInt)inflated_most;
  int result = inflate(&stream, Z_FINISH);
  *out_count = (int)(inflated_most - stream.avail_out);
  inflateEnd(&stream);
  if (result == Z_STREAM_END || stream.avail_out == 0) return (char *)block;
  flow_free(block);
  return (char *)(uintptr_t)stbi__errpuc("bad zlib data", "Corrupt PNG");
}

/* ---- reading ---------------------------------------------------------------------------------------------------------------------- */

/* Decodes bytes whose frame was checked. raw_bytes: what the pixels take in the file's own format. The last error is
 * cleared before, so that a failed stb_alloc can be told from stb's own reasons afterwards. */
static flow_status decode(const char *format, const unsigned char *bytes, size_t count, uint64_t raw_bytes, int wanted,
                          flow_picture *picture)
{
  int width, height, channels;
  /* Blocks of one picture, growing ones included: the compressed data, the same inflated, unfiltered, and with 4 channels. */
  budget_left = 4 * count + 12 * (size_t)raw_bytes + 65536;
  flow_fail(FLOW_CORRUPT_DATA, "%s", "");
  unsigned char *pixels = stbi_load_from_memory(bytes, (int)count, &width, &height, &channels, 0);
  if (!pixels) {
    const char *why = stbi_failure_reason();
    if (why && strcmp(why, "outofmem") == 0 && *flow_last_error()) return FLOW_OUT_OF_MEMORY;
    return flow_fail(FLOW_CORRUPT_DATA, "the %s data is damaged: %s", format, why ? why : "unknown reason");
  }
  flow_status status = flow_picture_reserve(picture, height, width, channels, wanted);
  if (status == FLOW_OK) memcpy(picture->pixels, pixels, (size_t)width * (size_t)height * (size_t)channels);
  flow_free(pixels);
  return status;
}

/* The types of chunks are four letters of ASCII: PNG's specification, "Chunk layout". */
static int is_chunk_type(const unsigned char *type)
{
  for (int i = 0; i < 4; i++)
    if ((type[i] | 0x20) < 'a' || (type[i] | 0x20) > 'z') return 0;
  return 1;
}

/* Walks the chunks up to IEND: each inside the file, those that matter (upper-case first letter) with a right checksum.
 * count is at least 8: the magic was compared. Afterwards bytes[8 .. 32] is a whole IHDR, and all chunks up to IEND are
 * in the file. */
static flow_status check_png_chunks(const unsigned char *bytes, size_t count)
{
  size_t at = 8;
  for (;;) {
    if (count - at < 12) return flow_fail(FLOW_CORRUPT_DATA, "the PNG data ends early");
    size_t length = flow_big_endian(bytes + at, 4);
    const unsigned char *type = bytes + at + 4;
    if (length > count - at - 12) return flow_fail(FLOW_CORRUPT_DATA, "the PNG data ends early");
    if (at == 8 && (memcmp(type, "IHDR", 4) != 0 || length != 13)) return flow_fail(FLOW_CORRUPT_DATA, "the PNG data has no header");
    if (!is_chunk_type(type)) return flow_fail(FLOW_CORRUPT_DATA, "the PNG data is damaged: no chunk begins at byte %zu", at);
    int matters = !(type[0] & 0x20);
    if (matters && flow_big_endian(type + 4 + length, 4) != (uint32_t)crc32(0, type, (uInt)(4 + length))) {
      return flow_fail(FLOW_CORRUPT_DATA, "the PNG data is damaged: wrong checksum of chunk %.4s", (const char *)type);
    }
    if (memcmp(type, "IEND", 4) == 0) return FLOW_OK;
    at += 12 + length;
  }
}

/* stb_image takes colours that the palette lacks from uninitialized memory: a palette with fewer colours than the pixels
 * can name is filled up with black. A new file in *out, or NULL where nothing is to do. Only after check_png_chunks: the
 * walk relies on IEND being there. */
static flow_status fill_palette(const unsigned char *bytes, size_t count, int depth, unsigned char **out, size_t *out_count)
{
  size_t at = 8, full = (size_t)3 << depth;
  *out = NULL;
  while (memcmp(bytes + at + 4, "PLTE", 4) != 0) {
    if (memcmp(bytes + at + 4, "IDAT", 4) == 0 || memcmp(bytes + at + 4, "IEND", 4) == 0) return FLOW_OK;
    at += 12 + flow_big_endian(bytes + at, 4);
  }
  size_t length = flow_big_endian(bytes + at, 4), body = at + 8;
  if (length >= full) return FLOW_OK;
  void *block;
  FLOW_TRY(flow_alloc(count + full - length, &block));
  unsigned char *copy = block;
  memcpy(copy, bytes, body + length);
  memset(copy + body + length, 0, full - length);
  memcpy(copy + body + full, bytes + body + length, count - body - length);
  copy[at + 2] = (unsigned char)(full >> 8);             /* the length, at most 768; stb_image does not look at the checksum */
  copy[at + 3] = (unsigned char)full;
  *out = copy;
  *out_count = count + full - length;
  return FLOW_OK;
}

/* In place: the last channel goes. */
static void drop_alpha(flow_picture *picture)
{
  size_t count = (size_t)picture->height * (size_t)picture->width, from = (size_t)picture->channels, kept = from - 1;
  for (size_t i = 0; i < count; i++) memmove(picture->pixels + i * kept, picture->pixels + i * from, kept);
  picture->channels--;
}

/* Without wanted channels a picture has those of its pixels, as in TensorFlow: a colour that tRNS calls transparent makes no alpha, other
 * than the alphas that it gives a palette.
 *
 * In order: chunks and checksums, the header, a bound on the pixels by the size of the file, the palette, then stb_image with a budget. */
flow_status flow_png_decode(const unsigned char *bytes, size_t count, int wanted, flow_picture *picture)
{
  static const int samples[8] = { 1, 0, 3, 1, 2, 0, 4, 0 };      /* by colour type */
  FLOW_TRY(check_png_chunks(bytes, count));
  int64_t width = flow_big_endian(bytes + 16, 4), height = flow_big_endian(bytes + 20, 4);
  int depth = bytes[24], colour = bytes[25];
  if (colour > 6 || samples[colour] == 0 || depth < 1 || depth > 16) {
    return flow_fail(FLOW_CORRUPT_DATA, "the PNG header is damaged: colour type %d, %d bits", colour, depth);
  }
  if (width < 1 || height < 1 || height > FLOW_MOST_PIXELS / width) return flow_picture_reserve(picture, height, width, 1, 1);
  uint64_t raw = (uint64_t)height * (((uint64_t)width * (uint64_t)(samples[colour] * depth) + 7) / 8 + 1);
  if (raw / 1032 > count) {                                      /* deflate makes at most 1,032 bytes of one */
    return flow_fail(FLOW_CORRUPT_DATA, "the picture claims to have %lld x %lld pixels, which %.0f bytes cannot hold",
                     (long long)height, (long long)width, (double)count);
  }
  /* Palettes and few bits grow; interlaced pictures are inflated in seven parts. */
  uint64_t grown = (uint64_t)height * (uint64_t)width * 4 * (depth == 16 ? 2 : 1);
  inflated_most = (size_t)raw + (bytes[28] ? 4 * (size_t)height + 16 : 0);      /* interlaced: twice the rows, each padded */
  unsigned char *filled = NULL;
  size_t filled_count = 0;
  if (colour == 3 && depth <= 8) FLOW_TRY(fill_palette(bytes, count, depth, &filled, &filled_count));
  flow_status status = decode("PNG", filled ? filled : bytes, filled ? filled_count : count, raw + 8 * (uint64_t)height + grown, wanted,
                              picture);
  flow_free(filled);
  if (status == FLOW_OK && wanted == 0 && colour != 3 && picture->channels > samples[colour]) drop_alpha(picture);
  return status;
}

/* The same of a BMP, whose palette is between the header and the pixels. stb_image counts the colours from where the pixels begin, in
 * old files (`old`: headers of 12 bytes) four too few. */
static flow_status fill_bmp_palette(const unsigned char *bytes, size_t count, uint64_t offset, uint64_t header, int bits, int old,
                                    unsigned char **out, size_t *out_count)
{
  size_t colour = old ? 3 : 4, start = 14 + (size_t)header, wanted = ((size_t)1 << bits) + (old ? 4 : 0);
  size_t found = offset > start ? ((size_t)offset - start) / colour : 0;
  *out = NULL;
  if (found == 0) return flow_fail(FLOW_CORRUPT_DATA, "the BMP data has no palette, which pictures of %d bits a pixel need", bits);
  if (found >= wanted) return FLOW_OK;
  void *block;
  *out_count = start + wanted * colour + count - (size_t)offset;
  FLOW_TRY(flow_alloc(*out_count, &block));
  unsigned char *copy = block;
  size_t kept = start + found * colour, pixels = start + wanted * colour;
  memcpy(copy, bytes, kept);
  memset(copy + kept, 0, pixels - kept);
  memcpy(copy + pixels, bytes + offset, count - (size_t)offset);
  flow_put_little_endian(copy + 10, pixels, 4);
  *out = copy;
  return FLOW_OK;
}

/* Headers of 12 bytes (OS/2) or 40 and more (Windows); bits a pixel as the header says, rows of multiples of 4 bytes.
 * The pixels must all be in the file, as stb_image fills up what is missing. */
flow_status flow_bmp_decode(const unsigned char *bytes, size_t count, int wanted, flow_picture *picture)
{
  if (count < 26) return flow_fail(FLOW_CORRUPT_DATA, "the BMP data ends early, in the header");
  uint64_t offset = flow_little_endian(bytes + 10, 4);
  uint32_t header = (uint32_t)flow_little_endian(bytes + 14, 4);
  int old = header == 12;                                        /* OS/2: sizes of 16 bits */
  if (!old && count < 54) return flow_fail(FLOW_CORRUPT_DATA, "the BMP data ends early, in the header");
  int64_t width = old ? (int64_t)flow_little_endian(bytes + 18, 2) : (int32_t)(uint32_t)flow_little_endian(bytes + 18, 4);
  int64_t height = old ? (int64_t)flow_little_endian(bytes + 20, 2) : (int32_t)(uint32_t)flow_little_endian(bytes + 22, 4);
  uint64_t bits = flow_little_endian(bytes + (old ? 24 : 28), 2);
  if (height < 0) height = -height;                              /* rows from the top */
  if (width < 1 || height < 1 || height > FLOW_MOST_PIXELS / width) return flow_picture_reserve(picture, height, width, 1, 1);
  if (bits != 1 && bits != 4 && bits != 8 && bits != 16 && bits != 24 && bits != 32) {
    return flow_fail(FLOW_UNSUPPORTED, "BMP pictures of %d bits a pixel cannot be read", (int)bits);
  }
  uint64_t raw = (uint64_t)height * (((uint64_t)width * bits + 31) / 32 * 4);
  if (offset > count || raw > count - offset) {
    return flow_fail(FLOW_CORRUPT_DATA, "the BMP data ends early: %lld x %lld pixels take %.0f bytes, found %.0f", (long long)height,
                     (long long)width, (double)raw, offset > count ? 0.0 : (double)(count - offset));
  }
  unsigned char *filled = NULL;
  size_t filled_count = 0;
  if (bits <= 8) FLOW_TRY(fill_bmp_palette(bytes, count, offset, header, (int)bits, old, &filled, &filled_count));
  flow_status status = decode("BMP", filled ? filled : bytes, filled ? filled_count : count, (uint64_t)height * (uint64_t)width * 4, wanted,
                              picture);
  flow_free(filled);
  return status;
}

/* ---- writing ------------------------------------------------------------------------------------------------------------------------ */

typedef struct encoder_target { flow_picture_sink write; void *target; flow_status status; } encoder_target;

/* A piece of the encoded file. After the first failure the rest is thrown away, since stb cannot be stopped. */
static void pass_on(void *argument, void *bytes, int count)
{
  encoder_target *to = argument;
  if (to->status == FLOW_OK && count > 0) to->status = to->write(to->target, bytes, (size_t)count);
}

static flow_status finish(const encoder_target *to, int worked)
{
  if (to->status != FLOW_OK) return to->status;
  return worked ? FLOW_OK : flow_fail(FLOW_OUT_OF_MEMORY, "no memory to encode the picture");
}

/* budget_left: what is written was checked when it was read or made. compressed_pixels: freed here where stb has lost
 * it. */
flow_status flow_png_encode(const flow_picture *picture, flow_picture_sink write, void *target)
{
  encoder_target to = { write, target, FLOW_OK };
  budget_left = SIZE_MAX;
  compressed_pixels = NULL;
  int row_bytes = picture->width * picture->channels;
  int worked = stbi_write_png_to_func(pass_on, &to, picture->width, picture->height, picture->channels, picture->pixels, row_bytes);
  if (!worked) flow_free(compressed_pixels);
  return finish(&to, worked);
}

flow_status flow_bmp_encode(const flow_picture *picture, flow_picture_sink write, void *target)
{
  encoder_target to = { write, target, FLOW_OK };
  budget_left = SIZE_MAX;
  int worked = stbi_write_bmp_to_func(pass_on, &to, picture->width, picture->height, picture->channels, picture->pixels);
  return finish(&to, worked);
}
