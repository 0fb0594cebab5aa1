/* mirrors.h: copies of a storage at other places, for replicas on several devices. All writes to a storage are reported here; a copy that
 * is older than the last write is made again on demand, and so is what was computed from it (core/run/derived.h). */
#ifndef FLOW_TENSOR_MIRRORS_H
#define FLOW_TENSOR_MIRRORS_H

#include "tensor/place.h"

/* Reports a write: the mirrors, and what was computed from the storage, are out of date. */
void flow_storage_written(flow_storage *storage);
/* The same for a write of the same values to the storage and to its mirrors at these places, which stay up to date. */
void flow_mirrors_were_written(flow_storage *storage, flow_place *const *places, int count);
/* The storage's bytes at a place: its own, or those of a mirror, which lives as long as the storage. A missing mirror is copied by way of
 * the host. */
flow_status flow_mirror_at(flow_storage *storage, flow_place *place, char **out);
/* The mirror on a device, if it is up to date, borrowed; else *place and *data are not changed: a replica there copies the storage's bytes
 * before it uses them. */
void flow_mirror_find(const flow_storage *storage, int device, flow_place **place, const char **data);
void flow_mirrors_release(flow_storage *storage);

#endif
