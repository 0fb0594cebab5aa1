/* idx.c: the format of the MNIST files: two zero bytes, the element type, the number of axes, sizes, elements, all big-endian
 * (http://yann.lecun.com/exdb/mnist); as it is or gzipped. Sizes of a file are compared with the bytes that it can hold before memory is
 * taken. */
#include "base/bytes.h"
#include "base/need.h"
#include "io/file.h"
#include "tensor/tensor.h"

static const struct { int dtype, file_bytes; } types[16] = {
  [0x08] = { FLOW_UINT8, 1 },  [0x09] = { FLOW_INT8, 1 },    [0x0B] = { FLOW_INT32, 2 },
  [0x0C] = { FLOW_INT32, 4 },  [0x0D] = { FLOW_FLOAT32, 4 }, [0x0E] = { FLOW_FLOAT64, 8 },
};

/* The first two bytes tell a gzipped file, whatever its name. */
static flow_status open_idx(const char *path, flow_source *source)
{
  unsigned char magic[2];
  uint64_t got;
  FLOW_TRY(flow_source_open(path, source));
  FLOW_TRY(flow_source_read_some(source, magic, sizeof magic, &got));
  int gzipped = got == 2 && magic[0] == 0x1f && magic[1] == 0x8b;
  return flow_source_range(source, 0, source->file_bytes, gzipped ? FLOW_GZIP : FLOW_PLAIN);
}

/* Two zeros, the type, the number of axes, and a big-endian size for each (yann.lecun.com/exdb/mnist). */
static flow_status read_header(flow_source *source, int *type, int *rank, int64_t *shape)
{
  unsigned char magic[4], size[4];
  FLOW_TRY(flow_source_read(source, "the start of an IDX file", magic, sizeof magic));
  *type = magic[2];
  *rank = magic[3];
  if (magic[0] != 0 || magic[1] != 0 || *type >= 16 || types[*type].file_bytes == 0) {
    return flow_fail(FLOW_CORRUPT_DATA, "%s is not an IDX file: it starts with bytes %02x %02x %02x %02x", source->path, magic[0],
                     magic[1], magic[2], magic[3]);
  }
  if (*rank > FLOW_MAX_RANK) {
    return flow_fail(FLOW_UNSUPPORTED, "%s has %d axes; at most %d are possible", source->path, *rank, FLOW_MAX_RANK);
  }
  for (int axis = 0; axis < *rank; axis++) {
    FLOW_TRY(flow_source_read(source, "a size in the header", size, sizeof size));
    shape[axis] = (int64_t)flow_big_endian(size, sizeof size);
  }
  return FLOW_OK;
}

/* `from` big-endian elements of 1, 2, 4 or 8 bytes to the machine's; two-byte integers widen. from may be to itself, or
 * are so that element i is read before it is overwritten. */
static void decode(const unsigned char *from, int file_bytes, void *to, int64_t n)
{
  for (int64_t i = 0; i < n; i++) {
    uint64_t bits = flow_big_endian(from + i * file_bytes, file_bytes);
    switch (file_bytes) {
      case 2: ((int32_t *)to)[i] = (int16_t)bits; break;
      case 4: ((uint32_t *)to)[i] = (uint32_t)bits; break;
      case 8: ((uint64_t *)to)[i] = bits; break;
    }
  }
}

/* Two-byte integers widen to four: they are read into the end of the tensor and widened from its front, so that no value
 * is overwritten before it was read. */
static flow_status read_elements(flow_source *source, int type, flow_tensor *tensor)
{
  int64_t n = flow_shape_size(tensor->rank, tensor->shape);
  int file_bytes = types[type].file_bytes;
  uint64_t bytes = (uint64_t)n * (uint64_t)file_bytes;
  unsigned char *raw = (unsigned char *)tensor->data + (tensor->storage->bytes - bytes);   /* at the end, to widen forward */
  FLOW_TRY(flow_source_read(source, "the data that the header announces", raw, bytes));
  FLOW_TRY(flow_source_expect_end(source));
  if (file_bytes > 1) decode(raw, file_bytes, tensor->data, n);
  return FLOW_OK;
}

/* The shape is compared with the bytes that the file can hold at most before memory is taken. */
static flow_status read_idx(flow_source *source, flow_tensor **out)
{
  int type, rank;
  int64_t shape[FLOW_MAX_RANK];
  FLOW_TRY(read_header(source, &type, &rank, shape));
  if (flow_check_shape(source->path, types[type].dtype, rank, shape) != FLOW_OK) return FLOW_CORRUPT_DATA;
  uint64_t bytes = (uint64_t)flow_shape_size(rank, shape) * (uint64_t)types[type].file_bytes;
  if (bytes > flow_source_most(source)) {
    return flow_fail(FLOW_CORRUPT_DATA, "%s is cut off: shape %s takes %.0f bytes, at most %.0f were found", source->path,
                     flow_shape_text(rank, shape), (double)bytes, (double)flow_source_most(source));
  }
  FLOW_TRY(flow_tensor_new_uninitialized(types[type].dtype, rank, shape, out));
  flow_status status = read_elements(source, type, *out);
  if (status != FLOW_OK) {
    flow_tensor_release(*out);
    *out = NULL;
  }
  return status;
}

flow_status flow_tensor_load_idx(const char *path, flow_tensor **out)
{
  FLOW_NEED(out);
  *out = NULL;
  FLOW_NEED(path);
  flow_source source;
  flow_status status = open_idx(path, &source);
  if (status == FLOW_OK) status = read_idx(&source, out);
  flow_source_close(&source);
  return status;
}
