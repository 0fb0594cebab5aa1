/* npy.h: one NumPy array out of a source: a file, or a member of an npz archive. */
#ifndef FLOW_IO_NPY_H
#define FLOW_IO_NPY_H

#include "io/file.h"
#include "tensor/tensor.h"

/* Reads versions 1 to 3 of the format, both element orders. Returns a new, contiguous tensor. */
flow_status flow_npy_read(flow_source *source, flow_tensor **out);

#endif
