/* jpeg.c: JPEG by libjpeg-turbo, as TensorFlow's decode_image calls it (tensorflow/core/lib/jpeg/jpeg_mem.cc): the fast
 * integer DCT, fancy upsampling, warnings about odd data ignored, data that ends early refused.
 *
 * libjpeg reports errors by a function that must not return. Ours jumps back into the frame that called libjpeg; no frame
 * in between owns anything: libjpeg keeps its memory in pools, which jpeg_destroy releases, and pixels belong to our
 * caller. */
#include <setjmp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <jpeglib.h>
#include <jerror.h>
#include "image/image_plugin.h"

enum { MOST_SCANS = 500 };          /* progressive files have about ten; each costs a pass over all coefficients */

typedef struct jpeg_state {
  struct jpeg_error_mgr    errors;  /* first: libjpeg hands back its address */
  struct jpeg_progress_mgr progress;
  struct jpeg_source_mgr   source;
  jmp_buf                  jump;
  char                     message[JMSG_LENGTH_MAX];
  unsigned char           *row;     /* one row of four channels; CMYK only */
} jpeg_state;

/* What libjpeg's jerror.c is, which cannot be part of a shared object: Debian's archive has it compiled for programs. */
#define JCOPYRIGHT_SHORT ""
#define JVERSION ""
#define JMESSAGE(code, string) string,
static const char *const messages[] = {
#include <jerror.h>
  NULL
};

/* to: JMSG_LENGTH_MAX bytes. A code outside of the table has message 0, "bogus message code". The formats are libjpeg's own: %s or up
 * to four %d. */
static void format_message(j_common_ptr common, char *to)
{
  const struct jpeg_error_mgr *errors = common->err;
  int code = errors->msg_code > 0 && errors->msg_code <= errors->last_jpeg_message ? errors->msg_code : 0;
  const char *format = messages[code], *argument = strchr(format, '%');
  if (argument && argument[1] == 's') snprintf(to, JMSG_LENGTH_MAX, format, errors->msg_parm.s);
  else snprintf(to, JMSG_LENGTH_MAX, format, errors->msg_parm.i[0], errors->msg_parm.i[1], errors->msg_parm.i[2], errors->msg_parm.i[3]);
}

/* libjpeg calls it when it begins a picture. */
static void forget_errors(j_common_ptr common)
{
  common->err->num_warnings = 0;
  common->err->msg_code = 0;
}

/* What libjpeg calls when it cannot go on. The message is kept in the state, since its own memory is about to go. */
static void jump_back(j_common_ptr common)
{
  jpeg_state *state = (jpeg_state *)common->err;
  common->err->format_message(common, state->message);
  longjmp(state->jump, 1);
}

/* Warnings and traces: a guest library prints nothing. */
static void stay_silent(j_common_ptr common, int level)
{
  (void)common;
  (void)level;
}

static void print_nothing(j_common_ptr common)
{
  (void)common;
}

/* The last entry of the table is NULL, and codes count from 0, so that the last code is two less than its length. */
static void start_errors(jpeg_state *state)
{
  memset(state, 0, sizeof *state);
  state->errors = (struct jpeg_error_mgr){ .error_exit = jump_back, .emit_message = stay_silent, .output_message = print_nothing,
    .format_message = format_message, .reset_error_mgr = forget_errors, .jpeg_message_table = messages,
    .last_jpeg_message = (int)(sizeof messages / sizeof *messages) - 2 };
}

/* ---- reading: all bytes are there from the start ---------------------------------------------------------------------------- */

static void do_nothing(j_decompress_ptr decoder)
{
  (void)decoder;
}

/* No more input: libjpeg gives up where it is ("suspends"), which read_rows takes for the error it is. */
static boolean have_no_more(j_decompress_ptr decoder)
{
  (void)decoder;
  return FALSE;
}

/* A segment may announce more bytes than there are: then none are left, and libjpeg asks for more (have_no_more). */
static void skip_bytes(j_decompress_ptr decoder, long count)
{
  struct jpeg_source_mgr *source = decoder->src;
  if (count <= 0) return;
  size_t skipped = (size_t)count < source->bytes_in_buffer ? (size_t)count : source->bytes_in_buffer;
  source->next_input_byte += skipped;
  source->bytes_in_buffer -= skipped;
}

/* Called by libjpeg as it goes. A file of a few kilobytes may have thousands of scans, each of which takes as long as the whole picture. */
static void watch_scans(j_common_ptr common)
{
  if (common->is_decompressor && ((j_decompress_ptr)common)->input_scan_number > MOST_SCANS) {
    ERREXITS(common, JERR_BAD_PROGRESSION, "");
  }
}

/* `bytes` are borrowed until the decoder is destroyed. */
static void start_decoder(j_decompress_ptr decoder, jpeg_state *state, const unsigned char *bytes, size_t count)
{
  jpeg_create_decompress(decoder);
  state->source = (struct jpeg_source_mgr){
    .next_input_byte = bytes, .bytes_in_buffer = count, .init_source = do_nothing, .fill_input_buffer = have_no_more,
    .skip_input_data = skip_bytes, .resync_to_restart = jpeg_resync_to_restart, .term_source = do_nothing,
  };
  decoder->src = &state->source;
  state->progress.progress_monitor = watch_scans;
  decoder->progress = &state->progress;
}

/* Chooses the colours to decode to. CMYK (inverted, as Adobe writes it) is turned into RGB row by row. channels: 1 or 3, or 0 for those
 * of the file. JDCT_IFAST is what TensorFlow uses: another DCT would give other pixels than Keras sees. */
static flow_status choose_colours(j_decompress_ptr decoder, int channels)
{
  int is_cmyk = decoder->jpeg_color_space == JCS_CMYK || decoder->jpeg_color_space == JCS_YCCK;
  if (channels == 0) channels = decoder->num_components < 3 ? decoder->num_components : 3;
  if (channels == 1) decoder->out_color_space = JCS_GRAYSCALE;
  else if (channels == 3) decoder->out_color_space = is_cmyk ? JCS_CMYK : JCS_RGB;
  else return flow_image_services()->fail(FLOW_UNSUPPORTED, "a JPEG image has 1 or 3 channels, not %d", channels);
  decoder->do_fancy_upsampling = TRUE;
  decoder->dct_method = JDCT_IFAST;
  return FLOW_OK;
}

/* As TensorFlow does it: each colour times black. */
static void cmyk_to_rgb(const unsigned char *from, unsigned char *to, unsigned width, int inverted)
{
  for (unsigned x = 0; x < width; x++, from += 4, to += 3) {
    int black = inverted ? from[3] : 255 - from[3];
    for (int c = 0; c < 3; c++) to[c] = (unsigned char)(black * (inverted ? from[c] : 255 - from[c]) / 255);
  }
}

/* row: asks the caller where line `line` belongs. With pixels of CMYK the line is read into state->row first, whose memory is the
 * decoder's. */
static flow_status read_rows(j_decompress_ptr decoder, jpeg_state *state, flow_image_row row, void *target)
{
  while (decoder->output_scanline < decoder->output_height) {
    unsigned line = decoder->output_scanline;
    unsigned char *to;
    flow_status status = row(target, line, &to);
    if (status != FLOW_OK) return status;
    unsigned char *into = state->row ? state->row : to;
    if (jpeg_read_scanlines(decoder, &into, 1) != 1) {
      return flow_image_services()->fail(FLOW_CORRUPT_DATA, "the JPEG data ends early, in line %u of %u", line, decoder->output_height);
    }
    if (state->row) cmyk_to_rgb(state->row, to, decoder->output_width, decoder->saw_Adobe_marker);
  }
  return FLOW_OK;
}

/* Everything between the creation of the decoder and its end; libjpeg's errors jump out of it. The caller is asked for memory when the
 * size is known and before any pixel is decoded; it compares the pixels with the file's bytes, so that a small file cannot take much
 * memory. 0 pixels a byte: not bounded, since arithmetic codes may take less than a bit. */
static flow_status decode(j_decompress_ptr decoder, jpeg_state *state, int channels, flow_image_reserve reserve, flow_image_row row,
                          void *target)
{
  const flow_plugin_services *core = flow_image_services();
  if (jpeg_read_header(decoder, TRUE) != JPEG_HEADER_OK) {
    return core->fail(FLOW_CORRUPT_DATA, "the JPEG data ends early, in the header");
  }
  flow_status status = choose_colours(decoder, channels);
  if (status != FLOW_OK) return status;
  jpeg_calc_output_dimensions(decoder);
  int is_cmyk = decoder->out_color_space == JCS_CMYK;
  int out_channels = is_cmyk ? 3 : decoder->out_color_components;
  /* Huffman codes take at least a bit for each block of 8 x 8 samples, one of which stands for at most 4 x 4 pixels. */
  int64_t pixels_a_byte = decoder->arith_code ? 0 : 8 * 64 * 16;
  status = reserve(target, decoder->output_height, decoder->output_width, out_channels,
                   (int64_t)decoder->output_height * decoder->output_width, pixels_a_byte, NULL);
  if (status != FLOW_OK) return status;
  if (is_cmyk) state->row = decoder->mem->alloc_large((j_common_ptr)decoder, JPOOL_IMAGE, (size_t)decoder->output_width * 4);
  if (!jpeg_start_decompress(decoder)) return core->fail(FLOW_CORRUPT_DATA, "the JPEG data ends early, before the first line");
  return read_rows(decoder, state, row, target);
}

/* See image_plugin.h. After an error of libjpeg the decoder is destroyed as after success; `status` is set on both ways after setjmp,
 * so that no value from before the jump is read. */
flow_status flow_jpeg_decode(const unsigned char *bytes, size_t count, int channels, flow_image_reserve reserve, flow_image_row row,
                             void *target)
{
  struct jpeg_decompress_struct decoder;
  jpeg_state state;
  flow_status status;
  memset(&decoder, 0, sizeof decoder);
  start_errors(&state);
  decoder.err = &state.errors;
  if (setjmp(state.jump) == 0) {
    start_decoder(&decoder, &state, bytes, count);
    status = decode(&decoder, &state, channels, reserve, row, target);
  } else {
    int memory = state.errors.msg_code == JERR_OUT_OF_MEMORY;
    status = flow_image_services()->fail(memory ? FLOW_OUT_OF_MEMORY : FLOW_CORRUPT_DATA, "libjpeg: %s", state.message);
  }
  jpeg_destroy_decompress(&decoder);
  return status;
}

/* ---- writing ------------------------------------------------------------------------------------------------------------------- */

enum { PIECE_BYTES = 4096 };

/* An encoder's output in pieces: libjpeg cannot return a failure from here, so that it is kept and reported at the end. */
typedef struct jpeg_target {
  struct jpeg_destination_mgr destination;     /* first */
  flow_image_write            write;
  void                       *target;
  flow_status                 status;          /* of the first write that failed; the rest is dropped */
  unsigned char               piece[PIECE_BYTES];
} jpeg_target;

/* libjpeg fills one piece after the other; each is handed on whole. */
static void start_piece(j_compress_ptr encoder)
{
  jpeg_target *to = (jpeg_target *)encoder->dest;
  to->destination.next_output_byte = to->piece;
  to->destination.free_in_buffer = PIECE_BYTES;
}

static void write_piece(jpeg_target *to, size_t count)
{
  if (to->status == FLOW_OK && count > 0) to->status = to->write(to->target, to->piece, count);
}

/* Called with a full piece: libjpeg's count of what is free need not be right here (libjpeg.txt, "empty_output_buffer"). */
static boolean empty_piece(j_compress_ptr encoder)
{
  write_piece((jpeg_target *)encoder->dest, PIECE_BYTES);
  start_piece(encoder);
  return TRUE;
}

static void end_pieces(j_compress_ptr encoder)
{
  jpeg_target *to = (jpeg_target *)encoder->dest;
  write_piece(to, PIECE_BYTES - to->destination.free_in_buffer);
}

/* pixels: height x width x channels, without gaps. The defaults of libjpeg: baseline, chroma at half the resolution, Huffman codes of
 * the standard. */
static void encode(j_compress_ptr encoder, const unsigned char *pixels, int height, int width, int channels, int quality)
{
  encoder->image_width = (JDIMENSION)width;
  encoder->image_height = (JDIMENSION)height;
  encoder->input_components = channels;
  encoder->in_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(encoder);
  jpeg_set_quality(encoder, quality, TRUE);
  jpeg_start_compress(encoder, TRUE);
  while (encoder->next_scanline < encoder->image_height) {
    JSAMPROW row = (JSAMPROW)(uintptr_t)(pixels + (size_t)encoder->next_scanline * (size_t)width * (size_t)channels);
    jpeg_write_scanlines(encoder, &row, 1);
  }
  jpeg_finish_compress(encoder);
}

/* A write that fails ends nothing: the encoder runs on and its bytes are dropped, since libjpeg could be left only by a jump. */
flow_status flow_jpeg_encode(const unsigned char *pixels, int height, int width, int channels, int quality, flow_image_write write,
                             void *target)
{
  struct jpeg_compress_struct encoder;
  jpeg_state state;
  jpeg_target to = { .destination = { .init_destination = start_piece, .empty_output_buffer = empty_piece,
                                      .term_destination = end_pieces },
                     .write = write, .target = target };
  memset(&encoder, 0, sizeof encoder);
  start_errors(&state);
  encoder.err = &state.errors;
  volatile flow_status status = FLOW_OK;          /* beyond a longjmp */
  if (setjmp(state.jump) == 0) {
    jpeg_create_compress(&encoder);
    encoder.dest = &to.destination;
    encode(&encoder, pixels, height, width, channels, quality);
  } else {
    int memory = state.errors.msg_code == JERR_OUT_OF_MEMORY;
    status = flow_image_services()->fail(memory ? FLOW_OUT_OF_MEMORY : FLOW_INVALID_ARGUMENT, "libjpeg: %s", state.message);
  }
  jpeg_destroy_compress(&encoder);
  return status != FLOW_OK ? status : to.status;
}
