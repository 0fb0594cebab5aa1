/* types.c: datatype messages (section IV.A.2.d of the specification) and the dtypes they stand for, as h5py chooses them. */
#include "io/hdf5/hdf5.h"

#include <string.h>

/* Class and version, three bytes of bit fields, four of size; then what the class adds. */
static const struct { int dtype, bytes; unsigned char type[FLOW_HDF5_TYPE_BYTES]; } types[] = {
  { FLOW_FLOAT32, 20, { 0x11, 0x20, 31, 0, 4, 0, 0, 0, 0, 0, 32, 0, 23, 8, 0, 23, 127 } },
  { FLOW_FLOAT16, 20, { 0x11, 0x20, 15, 0, 2, 0, 0, 0, 0, 0, 16, 0, 10, 5, 0, 10, 15 } },
  { FLOW_FLOAT64, 20, { 0x11, 0x20, 63, 0, 8, 0, 0, 0, 0, 0, 64, 0, 52, 11, 0, 52, 0xff, 3 } },
  { FLOW_INT8, 12, { 0x10, 8, 0, 0, 1, 0, 0, 0, 0, 0, 8 } },
  { FLOW_UINT8, 12, { 0x10, 0, 0, 0, 1, 0, 0, 0, 0, 0, 8 } },
  { FLOW_INT32, 12, { 0x10, 8, 0, 0, 4, 0, 0, 0, 0, 0, 32 } },
  { FLOW_INT64, 12, { 0x10, 8, 0, 0, 8, 0, 0, 0, 0, 0, 64 } },
  /* An enumeration of two int8, FALSE = 0 and TRUE = 1. */
  { FLOW_BOOL, 38, { 0x18, 2, 0, 0, 1, 0, 0, 0, 0x10, 8, 0, 0, 1, 0, 0, 0, 0, 0, 8, 0,
                     'F', 'A', 'L', 'S', 'E', 0, 0, 0, 'T', 'R', 'U', 'E', 0, 0, 0, 0, 0, 1 } },
  { FLOW_HDF5_OPAQUE16, 8, { 0x15, 0, 0, 0, 2, 0, 0, 0 } },
  /* bfloat16 as a separate float type, which newer versions of the library know. */
  { FLOW_BFLOAT16, 20, { 0x11, 0x20, 15, 0, 2, 0, 0, 0, 0, 0, 16, 0, 7, 8, 0, 7, 127 } },
};
enum { TYPES = sizeof types / sizeof *types };

/* Writes the message that stands for a dtype; returns its length, a multiple of 8 as messages are aligned, 0 for a dtype that has none. */
int flow_hdf5_datatype(int dtype, unsigned char to[FLOW_HDF5_TYPE_BYTES])
{
  int wanted = dtype == FLOW_BFLOAT16 ? FLOW_HDF5_OPAQUE16 : dtype;
  for (int i = 0; i < TYPES; i++) {
    if (types[i].dtype != wanted) continue;
    memcpy(to, types[i].type, FLOW_HDF5_TYPE_BYTES);
    return (types[i].bytes + 7) / 8 * 8;
  }
  return 0;
}

/* Versions 1 to 3 of a datatype differ only in how names are padded. */
static int is_version(const unsigned char *type, int most) { return type[0] >> 4 >= 1 && type[0] >> 4 <= most; }

/* The dtype of a datatype message of a file, FLOW_HDF5_OTHER for all that the table lacks. `bytes` may be more than the message: padding
 * follows it. */
int flow_hdf5_dtype(const unsigned char *type, uint64_t bytes)
{
  if (bytes < 8) return FLOW_HDF5_OTHER;
  int class = type[0] & 15;
  for (int i = 0; i < TYPES; i++) {
    if (class != (types[i].type[0] & 15) || bytes < (uint64_t)types[i].bytes) continue;
    if (!is_version(type, types[i].dtype == FLOW_BOOL ? 2 : 3)) continue;
    /* An opaque type may carry a tag, whose length is in its first bit field. */
    if (types[i].dtype == FLOW_HDF5_OPAQUE16 ? type[4] == 2 && !type[5] && !type[6] && !type[7]
                                             : memcmp(type + 1, types[i].type + 1, (size_t)types[i].bytes - 1) == 0) {
      return types[i].dtype;
    }
  }
  return FLOW_HDF5_OTHER;
}

/* By the class in the lower half of the first byte, in the order of the specification (0: fixed point, 1: floating
 * point, ...). */
const char *flow_hdf5_type_name(const unsigned char *type, uint64_t bytes)
{
  static const char *const names[] = { "integers of another size", "floats of another kind", "times", "texts", "bit fields",
    "opaque values", "compound values", "references", "enumerations", "values of variable length", "arrays" };
  unsigned class = bytes >= 8 ? type[0] & 15u : 15;
  if (class <= 1 && (type[1] & 1)) return "big-endian numbers";
  return class < sizeof names / sizeof *names ? names[class] : "values of an unknown class";
}
