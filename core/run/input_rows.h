/* input_rows.h: the inputs of a run, gathered from rows of larger tensors: on the host into memory that the run keeps, on a device to where
 * its runs read them. */
#ifndef FLOW_RUN_INPUT_ROWS_H
#define FLOW_RUN_INPUT_ROWS_H

#include "run/run_state.h"
#include "tensor/place.h"

/* FLOW_INVALID_ARGUMENT unless `order` can name `rows` rows from its element `first` on. */
flow_status flow_check_order(const flow_tensor *order, int64_t first, int64_t rows);
/* Tensors with the rows that `order` (on the host) names from its element `first` on, [graph->input_count]: the run's, until it is called
 * again. Inputs without rows stay. By the caller's thread, which has taken the run. */
flow_status flow_gather_on_host(flow_run_state *run, const flow_graph *graph, flow_tensor *const *inputs, const flow_tensor *order,
                                int64_t first, int64_t rows, flow_tensor *const **out);
void        flow_release_input_rows(flow_run_state *run, const flow_graph *graph);
/* Enqueues at `place`: rows order[0 .. rows - 1] of `table` to `into`. table: contiguous; all of it in the memory of the place's device.
 * An index that no row has is a fault, raised when the place is waited for. */
flow_status flow_place_gather(flow_place *place, const flow_tensor *table, const int64_t *order, int64_t rows, void *into);

#endif
