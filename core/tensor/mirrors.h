/* mirrors.h: copies of a storage at other places, for replicas on several devices. Whoever writes to a storage says so; a copy that is older
 * than the last write is made again on demand, and so is what was computed from it (core/run/derived.h). */
#ifndef FLOW_TENSOR_MIRRORS_H
#define FLOW_TENSOR_MIRRORS_H

#include "tensor/place.h"

/* What was written to the storage is not in its mirrors, nor in what follows from it. */
void flow_storage_written(flow_storage *storage);
/* The same was written to the storage and to its mirrors at these places. */
void flow_mirrors_were_written(flow_storage *storage, flow_place *const *places, int count);
/* The storage's bytes at a place: its own, or those of a mirror, which lives as long as the storage; by way of the host, where they have to be
 * brought there. */
flow_status flow_mirror_at(flow_storage *storage, flow_place *place, char **out);
/* The mirror on a device, where it is as new as the storage; else *place and *data stay as they are: a replica there takes the storage's bytes
 * before it uses any. Borrowed. */
void flow_mirror_find(const flow_storage *storage, int device, flow_place **place, const char **data);
void flow_mirrors_release(flow_storage *storage);

#endif
