/* read_ahead.h: a thread that reads the records of a file, checks them and makes texts of them, ahead of the consumer. They are
 * handed over in blocks, so that small records are not slower than without a thread. */
#ifndef FLOW_DATA_READ_AHEAD_H
#define FLOW_DATA_READ_AHEAD_H

#include "data/dataset.h"
#include "io/record.h"

typedef struct flow_read_ahead flow_read_ahead;

/* Goes on where the reader is: takes it, it belongs to flow_free; NULL: the thread opens the file at `path` (borrowed). After a
 * failure the reader is the caller's. */
flow_status flow_read_ahead_start(flow_iterator *iterator, const char *path, flow_coding coding, flow_record_reader *reader,
                                  flow_read_ahead **out);
/* The next record as a text; *out NULL at the end of the file, then and later. A failure of the thread comes at its place and ends
 * the file. */
flow_status flow_read_ahead_next(flow_read_ahead *ahead, flow_tensor **out);
void        flow_read_ahead_stop(flow_read_ahead *ahead);      /* and frees it; NULL is fine */

#endif
