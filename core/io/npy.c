/* npy.c: NumPy's file of one array: "\x93NUMPY", version, length, a Python literal with dtype, order and shape, the
 * elements (numpy.lib.format; NumPy enhancement proposal 1). */
#include "io/npy.h"

#include <string.h>
#include "base/bytes.h"
#include "base/memory.h"
#include "base/need.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "npy files are read and written as they are in memory: little-endian"
#endif

enum { PREFIX_BYTES = 8, MOST_HEADER_BYTES = 65536, ALIGNMENT = 64 };

static const char *const descriptions[FLOW_DTYPE_COUNT] = {
  [FLOW_FLOAT32] = "<f4", [FLOW_FLOAT16] = "<f2", [FLOW_FLOAT64] = "<f8", [FLOW_INT8] = "|i1", [FLOW_UINT8] = "|u1",
  [FLOW_INT32] = "<i4", [FLOW_INT64] = "<i8", [FLOW_BOOL] = "|b1",
};

/* What the literal says. has_*: the key was there, so that a second one of the name is refused. */
typedef struct npy_header {
  int     dtype, fortran_order, rank;
  int     big_endian;
  int64_t shape[FLOW_MAX_RANK];
  int     has_dtype, has_order, has_shape;
} npy_header;

/* ---- the header's literal ------------------------------------------------------------------------------------------------- */

typedef struct reader { const char *path, *next; } reader;      /* over text that ends with NUL */

static flow_status fail_header(const reader *self, const char *expected)
{
  return flow_fail(FLOW_CORRUPT_DATA, "%s is not a NumPy array file: its header has \"%.20s\" where %s should stand", self->path,
                   self->next, expected);
}

/* Passes over blanks and the symbol, 1; or over blanks only, 0. At the end of the text, where a NUL is, nothing is
 * passed over. */
static int skip(reader *self, char symbol)
{
  self->next += strspn(self->next, " \n\t");
  if (*self->next != symbol) return 0;
  self->next++;
  return 1;
}

/* Whether the header goes on with this word, after spaces; if it does, it is read. */
static int skip_word(reader *self, const char *word)
{
  self->next += strspn(self->next, " \n\t");
  size_t length = strlen(word);
  if (strncmp(self->next, word, length) != 0) return 0;
  self->next += length;
  return 1;
}

/* A Python text in either kind of quotes, without escapes, of less than `size` bytes. */
static flow_status read_text(reader *self, char *text, size_t size)
{
  self->next += strspn(self->next, " \n\t");
  char quote = *self->next;
  if (quote != '\'' && quote != '"') return fail_header(self, "a text");
  const char *end = strchr(self->next + 1, quote);
  size_t length = end ? (size_t)(end - self->next - 1) : size;
  if (length >= size) return fail_header(self, "a short text");
  memcpy(text, self->next + 1, length);
  text[length] = '\0';
  self->next = end + 1;
  return FLOW_OK;
}

/* A whole number that fits 64 bits. */
static flow_status read_size(reader *self, int64_t *size)
{
  self->next += strspn(self->next, " \n\t");
  if (*self->next < '0' || *self->next > '9') return fail_header(self, "a size");
  for (*size = 0; *self->next >= '0' && *self->next <= '9'; self->next++) {
    if (__builtin_mul_overflow(*size, 10, size) || __builtin_add_overflow(*size, *self->next - '0', size)) {
      return fail_header(self, "a smaller size");
    }
  }
  if (*self->next == 'L') self->next++;       /* Python 2 wrote 3L */
  return FLOW_OK;
}

/* A tuple: (), (3,) or (3, 4). */
static flow_status read_shape(reader *self, npy_header *header)
{
  if (!skip(self, '(')) return fail_header(self, "a shape");
  header->rank = 0;
  while (!skip(self, ')')) {
    if (header->rank == FLOW_MAX_RANK) {
      return flow_fail(FLOW_UNSUPPORTED, "%s holds an array of more than %d axes", self->path, FLOW_MAX_RANK);
    }
    FLOW_TRY(read_size(self, &header->shape[header->rank++]));
    if (!skip(self, ',') && *self->next != ')') return fail_header(self, "a comma");
  }
  return FLOW_OK;
}

/* The first letter is the order of the bytes: little-endian or native, big-endian, or none for types of one byte. Python objects, texts and
 * records are refused. */
static flow_status read_dtype(reader *self, npy_header *header)
{
  char text[32];
  if (skip(self, '[')) {
    return flow_fail(FLOW_UNSUPPORTED, "%s holds records of named fields; save each field as an array: numpy.save(path, array['field'])",
                     self->path);
  }
  FLOW_TRY(read_text(self, text, sizeof text));
  for (int dtype = 0; dtype < FLOW_DTYPE_COUNT; dtype++) {
    if (!descriptions[dtype] || strcmp(descriptions[dtype] + 1, text + (*text != '\0')) != 0) continue;
    if (!strchr(flow_dtype_size(dtype) == 1 ? "<>=|" : "<>=", *text)) continue;
    header->dtype = dtype;
    header->big_endian = *text == '>';
    return FLOW_OK;
  }
  return flow_fail(FLOW_UNSUPPORTED, "%s holds elements of NumPy's type '%s'; convert the array before saving it: "
                   "array.astype('float32'), float16, float64, int8, uint8, int32, int64 or bool", self->path, text);
}

/* A Python dictionary with exactly the keys descr, fortran_order and shape, in any order, with or without a comma at its end. */
static flow_status read_literal(reader *self, npy_header *header)
{
  if (!skip(self, '{')) return fail_header(self, "{");
  while (!skip(self, '}')) {
    char key[32];
    FLOW_TRY(read_text(self, key, sizeof key));
    if (!skip(self, ':')) return fail_header(self, ":");
    if (strcmp(key, "descr") == 0 && !header->has_dtype++) {
      FLOW_TRY(read_dtype(self, header));
    } else if (strcmp(key, "shape") == 0 && !header->has_shape++) {
      FLOW_TRY(read_shape(self, header));
    } else if (strcmp(key, "fortran_order") == 0 && !header->has_order++) {
      header->fortran_order = skip_word(self, "True");
      if (!header->fortran_order && !skip_word(self, "False")) return fail_header(self, "True or False");
    } else {
      return flow_fail(FLOW_CORRUPT_DATA, "%s is not a NumPy array file: its header has a second or unknown entry '%s'", self->path, key);
    }
    if (!skip(self, ',') && *self->next != '}') return fail_header(self, "a comma");
  }
  if (!header->has_dtype || !header->has_shape || !header->has_order) return fail_header(self, "descr, fortran_order and shape");
  return FLOW_OK;
}

/* Magic, version, length of the header (two bytes in version 1, four later) and the header, which is a literal of Python
 * (NumPy's format.py). The block ends with a NUL, which is what the reader of the literal stops at. A header is at most
 * MOST_HEADER_BYTES, so that a damaged length takes no memory. */
static flow_status read_header(flow_source *source, npy_header *header)
{
  unsigned char prefix[PREFIX_BYTES], length[4] = { 0 };
  FLOW_TRY(flow_source_read(source, "the start of a NumPy array", prefix, sizeof prefix));
  if (memcmp(prefix, "\x93NUMPY", 6) != 0) return flow_fail(FLOW_CORRUPT_DATA, "%s is not a NumPy array file", source->path);
  if (prefix[6] < 1 || prefix[6] > 3) {
    return flow_fail(FLOW_UNSUPPORTED, "%s is version %d of the npy format; 1 to 3 are known", source->path, prefix[6]);
  }
  FLOW_TRY(flow_source_read(source, "the length of the header", length, prefix[6] == 1 ? 2 : 4));
  size_t bytes = (size_t)length[0] | (size_t)length[1] << 8 | (size_t)length[2] << 16 | (size_t)length[3] << 24;
  if (bytes > MOST_HEADER_BYTES) {
    return flow_fail(FLOW_CORRUPT_DATA, "%s: a header of %.0f bytes is not that of a NumPy array", source->path, (double)bytes);
  }
  void *text;
  FLOW_TRY(flow_alloc_zero(bytes + 1, &text));
  flow_status status = flow_source_read(source, "the header", text, bytes);
  reader self = { source->path, text };
  if (status == FLOW_OK) status = read_literal(&self, header);
  flow_free(text);
  return status;
}

/* ---- elements ----------------------------------------------------------------------------------------------------------------- */

/* The array must not be larger than what is left of the source, before memory for it is taken. The product of the shape
 * was checked for overflow by flow_check_shape. */
static flow_status check_size(const flow_source *source, const npy_header *header)
{
  if (flow_check_shape(source->path, header->dtype, header->rank, header->shape) != FLOW_OK) return FLOW_CORRUPT_DATA;
  uint64_t bytes = (uint64_t)flow_shape_size(header->rank, header->shape) * (uint64_t)flow_dtype_size(header->dtype);
  if (bytes > flow_source_most(source)) {
    return flow_fail(FLOW_CORRUPT_DATA, "%s is cut off: shape %s takes %.0f bytes, at most %.0f were found", source->path,
                     flow_shape_text(header->rank, header->shape), (double)bytes, (double)flow_source_most(source));
  }
  return FLOW_OK;
}

/* An array in Fortran's order is the transpose of what its elements are in C's order. *tensor is released in any case
 * and becomes the new one, NULL after a failure. */
static flow_status transpose(flow_tensor **tensor)
{
  flow_tensor *stored = *tensor, *view = NULL;
  int rank = stored->rank;
  int64_t shape[FLOW_MAX_RANK], strides[FLOW_MAX_RANK];
  for (int axis = 0; axis < rank; axis++) {
    shape[axis] = stored->shape[rank - 1 - axis];
    strides[axis] = stored->strides[rank - 1 - axis];
  }
  *tensor = NULL;
  flow_status status = flow_tensor_view(stored, rank, shape, strides, 0, &view);
  if (status == FLOW_OK) status = flow_tensor_contiguous(view, tensor);
  flow_tensor_release(view);
  flow_tensor_release(stored);
  return status;
}

/* Turns the bytes of each number round. */
static void swap_bytes(flow_tensor *tensor)
{
  size_t size = (size_t)flow_dtype_size(tensor->dtype);
  for (unsigned char *at = (unsigned char *)tensor->data, *end = at + tensor->storage->bytes; at < end; at += size)
    for (size_t low = 0, high = size - 1; low < high; low++, high--) {
      unsigned char byte = at[low];
      at[low] = at[high];
      at[high] = byte;
    }
}

/* Shape in Fortran's order is turned round, read as if in C's order, and transposed. Whatever is in the source after the
 * array is not touched, so that npz and .keras members go on from there. A bool's byte other than 0 becomes 1, since
 * kernels count on 0 and 1. */
flow_status flow_npy_read(flow_source *source, flow_tensor **out)
{
  *out = NULL;
  npy_header header = { 0 };
  FLOW_TRY(read_header(source, &header));
  FLOW_TRY(check_size(source, &header));
  for (int low = 0, high = header.rank - 1; header.fortran_order && low < high; low++, high--) {
    int64_t size = header.shape[low];
    header.shape[low] = header.shape[high];
    header.shape[high] = size;
  }
  flow_tensor *tensor;
  FLOW_TRY(flow_tensor_new_uninitialized(header.dtype, header.rank, header.shape, &tensor));
  flow_status status = flow_source_read(source, "the array", tensor->data, tensor->storage->bytes);
  if (status != FLOW_OK) {
    flow_tensor_release(tensor);
    return status;
  }
  if (header.big_endian) swap_bytes(tensor);
  for (size_t i = 0; header.dtype == FLOW_BOOL && i < tensor->storage->bytes; i++) tensor->data[i] = tensor->data[i] != 0;
  if (header.fortran_order && header.rank > 1) FLOW_TRY(transpose(&tensor));
  *out = tensor;
  return FLOW_OK;
}

/* What follows the array is left alone: NumPy appends several arrays to one file. */
flow_status flow_tensor_load_npy(const char *path, flow_tensor **out)
{
  FLOW_NEED(out);
  *out = NULL;
  FLOW_NEED(path);
  flow_source source;
  flow_status status = flow_source_open(path, &source);
  if (status == FLOW_OK) status = flow_npy_read(&source, out);
  flow_source_close(&source);
  return status;
}

/* ---- writing --------------------------------------------------------------------------------------------------------------------- */

/* Version 1: 10 bytes, then the literal, blanks and a line end up to a multiple of 64. Returns the whole length. */
static size_t write_header(const flow_tensor *tensor, char *header, int size)
{
  flow_text text = flow_text_into(header + PREFIX_BYTES + 2, size - PREFIX_BYTES - 2);
  flow_text_add(&text, "{'descr': '%s', 'fortran_order': False, 'shape': (", descriptions[tensor->dtype]);
  for (int axis = 0; axis < tensor->rank; axis++) {
    flow_text_add(&text, axis > 0 ? " %lld," : "%lld,", (long long)tensor->shape[axis]);
  }
  if (tensor->rank > 1) text.length--;               /* (3,) but (3, 4) */
  flow_text_add(&text, "), }");
  int blanks = ALIGNMENT - 1 - (PREFIX_BYTES + 2 + text.length) % ALIGNMENT;
  flow_text_add(&text, "%*s\n", blanks, "");
  memcpy(header, "\x93NUMPY\x01\x00", PREFIX_BYTES);
  flow_put_little_endian(header + PREFIX_BYTES, (uint64_t)text.length, 2);
  return (size_t)PREFIX_BYTES + 2 + (size_t)text.length;
}

/* Makes the header and the contiguous copy, so that npy->bytes is known before anything is written. flow_npy_close releases the copy, also
 * after a failure. */
flow_status flow_npy_open(const flow_tensor *tensor, const char *path, flow_npy *npy)
{
  *npy = (flow_npy){ 0 };
  FLOW_TRY(flow_check_concrete("the tensor to save", tensor));
  if (!descriptions[tensor->dtype]) {
    return flow_fail(FLOW_UNSUPPORTED, "NumPy has no %s: cast the tensor to float32 before saving it as %s",
                     flow_dtype_name(tensor->dtype), path);
  }
  npy->header_bytes = write_header(tensor, npy->header, sizeof npy->header);
  FLOW_TRY(flow_tensor_on_host_contiguous(tensor, &npy->packed));
  npy->bytes = npy->header_bytes + (uint64_t)flow_shape_size(tensor->rank, tensor->shape) * (uint64_t)flow_dtype_size(tensor->dtype);
  return FLOW_OK;
}

flow_status flow_npy_write(const flow_npy *npy, flow_sink *sink)
{
  FLOW_TRY(flow_sink_write(sink, npy->header, npy->header_bytes));
  return flow_sink_write(sink, npy->packed->data, npy->bytes - npy->header_bytes);
}

void flow_npy_close(flow_npy *npy)
{
  flow_tensor_release(npy->packed);
  npy->packed = NULL;
}

/* The file appears whole or not at all. Discarding a sink that was committed, or never opened, does nothing. */
flow_status flow_tensor_save_npy(const flow_tensor *tensor, const char *path)
{
  flow_npy npy;
  flow_sink sink = { 0 };
  flow_status status;
  FLOW_TRY_GOTO(flow_npy_open(tensor, path, &npy), done);
  FLOW_TRY_GOTO(flow_sink_open(path, &sink), done);
  FLOW_TRY_GOTO(flow_npy_write(&npy, &sink), done);
  status = flow_sink_commit(&sink);
done:
  flow_sink_discard(&sink);
  flow_npy_close(&npy);
  return status;
}
