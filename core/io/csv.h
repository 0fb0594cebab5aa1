/* csv.h: the table of csv.c, between reading its text (csv_scan.c) and turning its columns into tensors (csv.c). */
#ifndef FLOW_IO_CSV_H
#define FLOW_IO_CSV_H

#include <locale.h>
#include "tensor/tensor.h"

/* A table in memory. All texts are inside of `text`: quotes are removed and ends of fields become NUL while it is
 * scanned, after which nothing changes, so that threads read it without a lock. */
struct flow_csv {
  uint32_t magic;
  char *path, *text; /* the file's bytes and one NUL */
  uint64_t bytes;
  char **fields; /* [rows][columns], with the header as row 0 if there is one */
  int columns, rows, header;
  int64_t *lines; /* [rows]: the file's line, from 1, on which each begins */
  locale_t plain; /* the locale "C", for strtod */
};

/* Reads the file csv->path, inflated if it is gzipped, into text and bytes. What has been allocated is the table's, also on failure. */
flow_status flow_csv_read(flow_csv *csv);

/* Cuts the text that flow_csv_read left into fields: fills fields, columns, rows and lines in. FLOW_CORRUPT_DATA names the line. */
flow_status flow_csv_scan(flow_csv *csv, char delimiter);

#endif
