/* element_record.h: elements of a dataset as the records of a TFRecord file (io/record.h), which brings lengths and checksums.
 *
 * The file: a start, then elements, then an end. Every record begins with its kind, a byte. Numbers are little-endian.
 *   start     the text "flow-elements-1", uint64 identity of the pipeline; uint32 components, each dtype, rank, text (bytes) and its
 *             shape (int64); uint32 draws, each two seeds and a number (uint64) of a random stage below, in the order of the walk
 *   element   for each component its rank (a byte) and shape (int64); then, component by component, the values
 *   end       uint64 number of elements: a file without an end was cut off
 * Files are hostile: nothing is believed that the signature and the length of the record do not allow. */
#ifndef FLOW_DATA_ELEMENT_RECORD_H
#define FLOW_DATA_ELEMENT_RECORD_H

#include "data/iterator.h"
#include "io/record.h"

/* What stands before the elements of a file: which pipeline wrote it, the signature, what its random stages drew. */
typedef struct flow_element_start {
  uint64_t          identity;
  flow_element_spec spec;
  int               draw_count, draw_capacity;
  flow_draw        *draws;             /* freed by flow_element_start_free */
} flow_element_start;

void flow_element_start_free(flow_element_start *start);

/* A block that grows, for one record after the other. */
typedef struct flow_record_bytes { unsigned char *bytes; size_t count, capacity; } flow_record_bytes;

/* Each replaces the contents of *to by a record: the start of a file, an element, or the end, which has the number of elements.
 * FLOW_OUT_OF_MEMORY. */
flow_status flow_element_start_write(const flow_element_start *start, flow_record_bytes *to);
flow_status flow_element_write(const flow_element *element, flow_record_bytes *to);
flow_status flow_element_end_write(uint64_t elements, flow_record_bytes *to);

/* What a record is: reads one and leaves *out unchanged unless it is asked for. FLOW_CORRUPT_DATA names the file. */
flow_status flow_element_start_read(const char *path, const unsigned char *bytes, uint64_t count, flow_element_start *out);
/* The next record of a file after its start: an element (out NULL: only passed over), or the end, with *ended set. `read`: elements
 * so far, which the end must agree with. */
flow_status flow_element_read(flow_record_reader *reader, const flow_element_spec *spec, uint64_t read, flow_element *out, int *ended);
/* How many elements a file of this many bytes says at its end that it has; FLOW_UNKNOWN if it has no such end. */
int64_t     flow_element_count(const char *path, uint64_t file_bytes);

#endif
