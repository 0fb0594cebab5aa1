/* npy.h: one NumPy array out of a source, or into a sink: a file, or a member of an npz archive. */
#ifndef FLOW_IO_NPY_H
#define FLOW_IO_NPY_H

#include "io/zip.h"
#include "tensor/tensor.h"

/* Reads versions 1 to 3 of the format, both element orders. Returns a new, contiguous tensor. */
flow_status flow_npy_read(flow_source *source, flow_tensor **out);

/* The array in a member of an archive, whose checksum is compared. */
flow_status flow_npz_read(flow_zip *zip, const flow_zip_member *member, flow_tensor **out);

/* An array on its way into a file: its header, and the elements, contiguous on the host. Between flow_npy_open and
 * flow_npy_close; nothing changes in it meanwhile. */
typedef struct flow_npy {
  char         header[512];            /* eight sizes of 19 digits and the rest need fewer */
  size_t       header_bytes;
  uint64_t     bytes;                  /* of header and elements */
  flow_tensor *packed;                 /* owned */
} flow_npy;

/* FLOW_UNSUPPORTED for a dtype that NumPy lacks; path is named in messages. close also after a failure. */
flow_status flow_npy_open(const flow_tensor *tensor, const char *path, flow_npy *npy);
flow_status flow_npy_write(const flow_npy *npy, flow_sink *sink);
void        flow_npy_close(flow_npy *npy);

#endif
