/* row_store.h: rows of a data set that come again in every pass, kept on a device, and batches made of them there: what goes to the device
 * for a batch is the rows that are new, and the numbers of all of them.
 *
 * A row is known by the address of its elements: stages that keep their elements (slices.c, cache.c) give them at the same one in every
 * pass, and the store holds a reference to each, so that no other row gets that address. One thread at a time uses a store. */
#ifndef FLOW_DATA_ROW_STORE_H
#define FLOW_DATA_ROW_STORE_H

#include "data/dataset.h"

flow_row_store *flow_row_store_retain(flow_row_store *store);
/* Rows that the dataset gives again and again, if its elements are such and there is a number; else -1. */
int64_t     flow_rows_that_come_again(const flow_dataset *dataset);
/* Room for `rows` such elements. 0: they do not fit, or are not rows for a device (texts, unknown shapes). Once. */
int         flow_row_store_start(flow_row_store *store, const flow_element_spec *spec, int64_t rows);
/* The batch of these elements, [rows]: their numbers, or, if components have different ones, their tensors on the device. *made 0: not all
 * of them have a place; they must go another way. */
flow_status flow_row_store_batch(flow_row_store *store, const flow_element *elements, int64_t rows, flow_element *out, int *made);

#endif
