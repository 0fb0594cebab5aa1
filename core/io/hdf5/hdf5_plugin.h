/* core/plugins/hdf5: HDF5 files of any layout through libhdf5, built into libflow_hdf5.so. For files that the user trusts: libhdf5 was
 * not made for hostile ones.
 *
 * hdf5_plugin.h: what it offers. One file is used by one thread at a time; different files may be used by several only if libhdf5 is
 * thread-safe, so the plugin lets one call run at a time. */
#ifndef FLOW_HDF5_PLUGIN_H
#define FLOW_HDF5_PLUGIN_H

#include "base/plugin.h"

/* Where what a file holds is told to; a failure ends the visit and is returned. */
typedef struct flow_hdf5_visitor {
  void        *target;
  flow_status (*group)(void *target, const char *path);
  flow_status (*note)(void *target, const char *path, const char *key, const char *text);
  flow_status (*tensor)(void *target, const char *path, int dtype, int rank, const int64_t *shape);
} flow_hdf5_visitor;

typedef struct flow_hdf5_functions {
  /* Opens the file at path, or, when there is an image, its bytes in memory, which must live until close. */
  flow_status (*open)(const char *path, const void *image, size_t bytes, void **file);
  flow_status (*visit)(void *file, const flow_hdf5_visitor *visitor);
  /* The content of a dataset as elements of the dtype that visit told: `bytes` in all. */
  flow_status (*read)(void *file, const char *path, int dtype, void *to, size_t bytes);
  void        (*close)(void *file);
} flow_hdf5_functions;

#endif
