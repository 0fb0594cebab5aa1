/* wave.c: sounds in WAVE files (Multimedia Programming Interface and Data Specifications 1.0, chapter 3, and Microsoft's
 * WAVEFORMATEXTENSIBLE): RIFF chunks, of which "fmt " says what the samples in "data" are. A "data" chunk that claims more than the file
 * holds is read to the end of the file, as recorders leave it that were switched off. */
#include "io/file.h"

#include <math.h>
#include <string.h>
#include "base/bytes.h"
#include "base/memory.h"
#include "tensor/tensor.h"

enum { INTEGERS = 1, FLOATS = 3, EXTENSIBLE = 0xfffe, MOST_CHANNELS = 1024, FORMAT_BYTES = 40, BLOCK_FRAMES = 4096 };

/* A file that is read. coding, channels, bits and rate (frames a second) are 0 until the format chunk was read;
 * data_bytes is set when the source stands at the first sample. */
typedef struct wave {
  flow_source source;
  int         coding, channels, bits, rate;
  uint64_t    data_bytes;
} wave;

static flow_status fail(const wave *self, const char *what)
{
  return flow_fail(FLOW_CORRUPT_DATA, "%s is not a WAVE file, or is damaged: %s", self->source.path, what);
}

/* The format chunk: coding, channels, rate, (bytes per second and per frame,) bits; WAVE_FORMAT_EXTENSIBLE has the coding at byte 24. */
static flow_status read_format(wave *self, uint64_t size)
{
  unsigned char bytes[FORMAT_BYTES] = { 0 };
  if (size < 16) return fail(self, "its format takes fewer than 16 bytes");
  FLOW_TRY(flow_source_read(&self->source, "the format", bytes, size < FORMAT_BYTES ? size : FORMAT_BYTES));
  self->coding = (int)flow_little_endian(bytes, 2);
  self->channels = (int)flow_little_endian(bytes + 2, 2);
  self->rate = (int)(flow_little_endian(bytes + 4, 4) & INT32_MAX);
  self->bits = (int)flow_little_endian(bytes + 14, 2);
  if (self->coding == EXTENSIBLE && size >= FORMAT_BYTES) self->coding = (int)flow_little_endian(bytes + 24, 2);
  int is_integer = self->coding == INTEGERS && self->bits >= 8 && self->bits <= 32 && self->bits % 8 == 0;
  int is_float = self->coding == FLOATS && (self->bits == 32 || self->bits == 64);
  if (!is_integer && !is_float) {
    return flow_fail(FLOW_UNSUPPORTED, "%s holds samples of coding %d with %d bits: integers (1) of 8, 16, 24 or 32 bits and floats (3) of "
                     "32 or 64 bits can be read", self->source.path, self->coding, self->bits);
  }
  if (self->channels < 1 || self->channels > MOST_CHANNELS) return fail(self, "its number of channels is not one of 1 to 1024");
  return FLOW_OK;
}

/* Reads up to where the samples begin. Chunks begin at even bytes: a byte of padding follows a chunk of odd size and
 * does not count as its own. Chunks other than "fmt " and "data" are passed over. At the end the source's range begins
 * with the samples. */
static flow_status find_data(wave *self)
{
  unsigned char head[12];
  uint64_t at = 12;
  if (self->source.file_bytes < sizeof head) return fail(self, "it has fewer than 12 bytes");
  FLOW_TRY(flow_source_read(&self->source, "the head", head, sizeof head));
  if (memcmp(head, "RIFF", 4) != 0 || memcmp(head + 8, "WAVE", 4) != 0) return fail(self, "it does not begin as one");
  for (;;) {
    if (at > self->source.file_bytes || self->source.file_bytes - at < 8) return fail(self, "it has no samples");
    FLOW_TRY(flow_source_range(&self->source, at, self->source.file_bytes - at, FLOW_PLAIN));
    FLOW_TRY(flow_source_read(&self->source, "the head of a chunk", head, 8));
    uint64_t size = flow_little_endian(head + 4, 4), left = self->source.file_bytes - at - 8;
    if (memcmp(head, "data", 4) == 0) {
      self->data_bytes = size < left ? size : left;
      return self->channels > 0 ? FLOW_OK : fail(self, "its samples come before their format");
    }
    if (size > left) return fail(self, "a chunk is longer than the file");
    if (memcmp(head, "fmt ", 4) == 0) FLOW_TRY(read_format(self, size));
    at += 8 + size + size % 2;
  }
}

/* One sample as tf.audio.decode_wav scales it: the least integer is -1. Floats that are not finite become 0. */
static float sample_of(const wave *self, const unsigned char *from)
{
  if (self->coding == FLOATS) {
    uint64_t bits = flow_little_endian(from, self->bits / 8);
    uint32_t narrow = (uint32_t)bits;
    float value;
    double wide;
    memcpy(&wide, &bits, sizeof wide);
    memcpy(&value, &narrow, sizeof value);
    if (self->bits == 64) value = (float)wide;
    return isfinite(value) ? value : 0;
  }
  if (self->bits == 8) return (float)(from[0] - 128) / 128;
  int32_t value = (int32_t)((uint32_t)flow_little_endian(from, self->bits / 8) << (32 - self->bits));
  return (float)((double)value / 2147483648.0);
}

/* Fills the first frames of the tensor, which is zeros. */
static flow_status read_samples(wave *self, int64_t frames, float *to)
{
  size_t width = (size_t)(self->bits / 8), frame = width * (size_t)self->channels;
  void *block;
  FLOW_TRY(flow_alloc(frame * BLOCK_FRAMES, &block));
  flow_status status = FLOW_OK;
  for (int64_t done = 0; done < frames && status == FLOW_OK;) {
    int64_t count = frames - done < BLOCK_FRAMES ? frames - done : BLOCK_FRAMES;
    status = flow_source_read(&self->source, "samples", block, (uint64_t)count * frame);
    for (int64_t i = 0; i < count * self->channels && status == FLOW_OK; i++)
      to[done * self->channels + i] = sample_of(self, (const unsigned char *)block + (size_t)i * width);
    done += count;
  }
  flow_free(block);
  return status;
}

/* *out is float32 {samples, channels}; a file with fewer frames than `samples` is followed by zeros. */
static flow_status load(wave *self, int64_t samples, flow_tensor **out)
{
  FLOW_TRY(find_data(self));
  int64_t there = (int64_t)(self->data_bytes / ((uint64_t)self->channels * (uint64_t)(self->bits / 8)));
  int64_t shape[2] = { samples < 0 ? there : samples, self->channels };
  FLOW_TRY(flow_tensor_new(FLOW_FLOAT32, 2, shape, out));
  flow_status status = read_samples(self, there < shape[0] ? there : shape[0], (float *)(*out)->data);
  if (status == FLOW_OK) return FLOW_OK;
  flow_tensor_release(*out);
  *out = NULL;
  return status;
}

/* samples: how many frames are wanted, -1: all. *rate, if it is asked for, is set with the samples only. */
flow_status flow_wave_load(const char *path, double samples, int *rate, flow_tensor **out)
{
  wave self = { 0 };
  int64_t wanted;
  if (!out) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_wave_load: out is NULL");
  *out = NULL;
  if (!path || !*path) return flow_fail(FLOW_INVALID_ARGUMENT, "the name of a WAVE file is missing");
  FLOW_TRY(flow_check_whole("load_wav", "the number of samples", samples, -1, &wanted));
  flow_status status = flow_source_open(path, &self.source);
  if (status == FLOW_OK) status = load(&self, wanted, out);
  if (status == FLOW_OK && rate) *rate = self.rate;
  flow_source_close(&self.source);
  return status;
}
