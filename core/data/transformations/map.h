/* map.h: what the two forms of the map stage share. */
#ifndef FLOW_DATA_TRANSFORMATIONS_MAP_H
#define FLOW_DATA_TRANSFORMATIONS_MAP_H

#include "data/function.h"
#include "data/batch_slots.h"

/* The parameters of both forms. A reference to the function. */
typedef struct flow_map {
  flow_dataset   base;
  flow_function *function;
  int            calls;              /* threads; 0: where it is called; -1: AUTOTUNE */
  int            deterministic;      /* 0: as they are ready, 1: in order, -1: as the pipeline's options say */
} flow_map;

extern const flow_dataset_class flow_parallel_map_class;      /* parallel_map.c */

/* A worker of the function: memory that close() and flow_free release. */
flow_status flow_map_worker_open(const flow_function *function, void **out);
void        flow_map_worker_close(const flow_function *function, void *worker);
/* The key of a pass for the function's random numbers; 0 for functions without. */
flow_status flow_map_pass_key(flow_cursor *cursor, flow_element_key *out);

#endif
