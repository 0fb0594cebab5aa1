/* flow_run.h: a part of flow.h: traces, plans, instances, profiles.
 *
 * A trace records ops instead of running them. Its end makes a plan: a flat list of kernels with a layout of memory, immutable and shared
 * between threads. An instance is a plan's memory for one caller; running it neither records nor allocates. What is traced and what runs at
 * once are the same ops with the same results.
 *
 *   flow_trace_begin(context);  flow_trace_input(context, FLOW_FLOAT32, 2, (int64_t[]){ -1, 4 }, &x);
 *   ... flow_apply(context, op, &x, 1, NULL, &y);  flow_trace_end(context, &y, 1, &plan);
 *   flow_instance_new(plan, 32, &instance);        flow_instance_run(context, instance, &batch, 1, &result); */
#ifndef FLOW_RUN_H
#define FLOW_RUN_H

/* ---- traces, plans, instances ------------------------------------------------------------------------------------ */

/* Opens a trace: ops with a symbolic input are appended to it and do not run. Traces may be nested. Ends with flow_trace_end or
 * flow_trace_abort. */
FLOW_API flow_status flow_trace_begin(flow_context *context);
/* How many traces are open in the current scopes. */
FLOW_API int         flow_trace_depth(const flow_context *context);
/* How many replicas the innermost open trace is for; 0 if none is open. */
FLOW_API int         flow_trace_replicas(const flow_context *context);
/* A symbolic input of the innermost trace. shape[0] = -1 stands for the rows of the batch; other sizes have to be known. Inputs
 * of a run come in this order. New reference. */
FLOW_API flow_status flow_trace_input(flow_context *context, int dtype, int rank, const int64_t *shape, flow_tensor **out);
/* A symbolic tensor that stands for a concrete one, whose data the plan keeps. New reference. */
FLOW_API flow_status flow_trace_constant(flow_context *context, flow_tensor *value, flow_tensor **out);
/* Closes the innermost trace and makes a plan of it that computes `outputs` and the effects. Fuses, and lays out memory. New
 * reference. If it fails the trace is gone, too. */
FLOW_API flow_status flow_trace_end(flow_context *context, flow_tensor *const *outputs, int count, flow_plan **out);
/* Drops the innermost trace. Without one nothing happens. */
FLOW_API void        flow_trace_abort(flow_context *context);
/* Opens, within the innermost trace, the trace of one round of a loop. out[]: the round's states, which it replaces by the next ones, then
 * one row of each tensor in rows[], whose first axis has `rounds` rows, 1 or more. New references. The round may use tensors of the traces
 * around it. flow_loop_end or flow_trace_abort ends it. */
FLOW_API flow_status flow_loop_begin(flow_context *context, flow_tensor *const *states, int state_count, flow_tensor *const *rows,
                                     int row_count, double rounds, flow_tensor **out);
/* Names an input of the loop whose round is traced as its gate: a bool without axes. input: from 0, the states first, then the rows. While
 * the gate is false a round must return its states unchanged and zeros for its other results, so that such rounds can be skipped; if the
 * gate is a state, all later rounds are such rounds. */
FLOW_API flow_status flow_loop_gate(flow_context *context, int input);
/* Ends the round. results[]: the next states, of the same dtypes and shapes, then its other results. out[], in the trace around it: the
 * last states, then the other results of all rounds, stacked along a new first axis in the order of the rows. reverse: the first round
 * takes the last row. New references. *written is not 0 if a round writes variables, adds up over replicas, or called flow_loop_write_out:
 * then no loop is made, and out[] is left empty. The trace of the round is gone after a failure, too. */
FLOW_API flow_status flow_loop_end(flow_context *context, flow_tensor *const *results, int count, double rounds, int reverse,
                                   flow_tensor **out, int *written);
/* Tells the open round that a tensor of it is kept for use after the loop, which a loop of a plan cannot give: the caller is to write the
 * rounds out instead. Does nothing outside of a round. */
FLOW_API void        flow_loop_write_out(flow_context *context);
/* Writes what the open trace has computed as an ONNX model, and leaves the trace open. Names of inputs in the order of their creation. */
FLOW_API flow_status flow_trace_save_onnx(flow_context *context, const char *path, const char *name, flow_tensor *const *outputs, int count,
                                          const char *const *input_names, int input_count, const char *const *output_names);
/* Whether flow_trace_save_onnx can write the op. */
FLOW_API int         flow_onnx_knows(int op);
/* One reference less. Instances hold their own reference. NULL is fine. */
FLOW_API void        flow_plan_release(flow_plan *plan);
/* A variable that the plan reads or updates, in the order of the trace. Borrowed; NULL: no more. */
FLOW_API flow_variable *flow_plan_variable(flow_plan *plan, int index);
/* One line for each entry: segment, op, variant, shape. Returns the length of the whole text, and writes at most size bytes of
 * it. */
FLOW_API int         flow_plan_describe(const flow_plan *plan, char *text, int size);

/* Memory and bindings for running the plan with at most `capacity` rows. A plan is shared; an instance is for one caller at a
 * time: make one for each concurrent one. Keeps the plan. New reference. */
FLOW_API flow_status flow_instance_new(flow_plan *plan, double capacity, flow_instance **out);
/* Frees it. NULL is fine. */
FLOW_API void        flow_instance_release(flow_instance *instance);
/* The most rows that a run may bring. Results do not depend on it. */
FLOW_API double      flow_instance_capacity(const flow_instance *instance);
/* As flow_plan_describe, with the kernels that were chosen for this capacity. */
FLOW_API int         flow_instance_describe(const flow_instance *instance, char *text, int size);
/* Keys of the random ops in the next runs: the seed, the number of the step, the number of the first sample. Programs count the samples of
 * a step from 0, so that a step draws the same numbers however its batch came. */
FLOW_API void        flow_instance_scalars(flow_instance *instance, double seed, double step, double first_sample);
/* Makes an instance, before its first run, that of several replicas: `local` of this process, which share variables and cores, in each of
 * the worker's processes (NULL: this one only; borrowed). A run cuts its rows in contiguous parts of one size, the last ones shorter or
 * empty, one for each replica in the order of workers and replicas. The capacity is that of one part. group: of a plan that runs on a GPU,
 * the devices of the local replicas, of which the plan's is the first; NULL: it runs on the CPU, or there is one. */
FLOW_API flow_status flow_instance_replicate(flow_instance *instance, int local, flow_device_group *group, flow_worker *worker);
/* Of several workers. shared 1: all of them give the same rows, and each computes its part; 0, the default: each gives its own rows,
 * or none. The order of samples is that of the workers. */
FLOW_API void        flow_instance_share_rows(flow_instance *instance, int shared);
/* stop 1: asks the other workers to stop: the next run computes nothing, and flow_instance_stop_agreed says so. So does an interrupt. */
FLOW_API void        flow_instance_request_stop(flow_instance *instance, int stop);
/* What the workers agreed on at the last run: its rows over all replicas, and whether a worker asked to stop. Without rows, or if a worker
 * asked, nothing ran, and there are no outputs. */
FLOW_API double      flow_instance_global_rows(const flow_instance *instance);
FLOW_API int         flow_instance_stop_agreed(const flow_instance *instance);
/* Whether the last run has written its variables. A failed run has done so if workers share an update, and one was lost after all sums
 * were complete: this worker then made the rest of the update by itself. */
FLOW_API int         flow_instance_committed(const flow_instance *instance);
/* A run with separate inputs (replicas x count) and outputs (replicas x the plan's, new references) for each local replica; for plans
 * without rows, and for replicas with their own rows. */
FLOW_API flow_status flow_instance_run_each(flow_context *context, flow_instance *instance, flow_tensor *const *inputs, int count,
                                            flow_tensor **outputs);
/* Runs the plan on `inputs` (dtypes and shapes of its signature, equal rows). outputs may be NULL; else each becomes a
 * new reference. A run that fails writes no variable. */
FLOW_API flow_status flow_instance_run(flow_context *context, flow_instance *instance, flow_tensor *const *inputs, int count,
                                       flow_tensor **outputs);
/* The same with rows <= capacity of borrowed, larger input tensors, from row `first` (from 0) on: nothing is copied, and
 * there is no allocation in steady state. order: int64 {n}, on the host or on the plan's device as the inputs: the rows are those that its
 * elements from `first` on name; NULL: the inputs' own order. */
FLOW_API flow_status flow_instance_run_rows(flow_context *context, flow_instance *instance, flow_tensor *const *inputs, int count,
                                            const flow_tensor *order, double first, double rows);

/* Runs `rows` rows of the inputs, from row `first` on, in batches of `size`, the last one with the rest, and writes what comes out for them
 * into the same rows of `outputs`: a tensor for each of the plan's outputs, contiguous and where the plan runs. A batch's first sample is
 * that of flow_instance_scalars plus its first row. After a failure some rows may have been written. For plans all of whose outputs have
 * rows, and of one process. */
FLOW_API flow_status flow_instance_predict_rows(flow_context *context, flow_instance *instance, flow_tensor *const *inputs, int count,
                                                double first, double rows, double size, flow_tensor *const *outputs);
/* Runs `rows` rows in batches of `size`, the last one with the rest: one after the other as flow_instance_run_rows would, with the scalars'
 * step increased by 1 each time. If inputs and order are on a GPU, several batches are launched at once. *done: batches that ran; fewer
 * also if a worker asked to stop. */
FLOW_API flow_status flow_instance_run_batches(flow_context *context, flow_instance *instance, flow_tensor *const *inputs, int count,
                                               const flow_tensor *order, double first, double rows, double size, double *done);

/* Where time goes: begin, run things in this context, end, then read the entries, in the order of their first run. seconds
 * are wall seconds: an entry's time over all threads divided by their number; with what flow_profile_waiting tells (threads
 * waiting for each other, the engine between kernels) they add up to the time that plans and eager ops took. */
typedef struct flow_profile_entry {
  const char *op, *variant;        /* borrowed, static */
  char        shape[96];           /* of the first two inputs */
  double      seconds, calls;
  double      bytes;               /* of the outputs of one call, the largest */
} flow_profile_entry;
/* Starts measuring what this context runs; forgets what was measured before. */
FLOW_API flow_status flow_profile_begin(flow_context *context);
/* Stops measuring. */
FLOW_API void        flow_profile_end(flow_context *context);
/* How many entries there are. */
FLOW_API int         flow_profile_count(const flow_context *context);
/* An entry, from 0. Borrowed until the next begin; NULL: no more. */
FLOW_API const flow_profile_entry *flow_profile_at(const flow_context *context, int index);
/* Seconds in which threads waited for each other, or the engine ran between kernels. */
FLOW_API double      flow_profile_waiting(const flow_context *context);
/* Memory of the plans that ran: bytes of the largest arena, and of all that such a plan's instance holds besides variables. */
FLOW_API double      flow_profile_arena(const flow_context *context);
FLOW_API double      flow_profile_memory(const flow_context *context);

/* When each kernel ran on each thread: from the first begin of an entry in a run of a plan to its last end there. */
typedef struct flow_profile_event {
  int32_t entry, thread;           /* number of the entry; 0 is the caller's thread */
  double  begin, end;              /* flow_clock() */
  double  busy;                    /* seconds in between that the thread spent in this kernel */
} flow_profile_event;
/* Keeps when each kernel ran, too: the first `most` events. To be called after begin. */
FLOW_API flow_status flow_profile_keep_events(flow_context *context, int most);
/* How many events were kept. */
FLOW_API int         flow_profile_event_count(const flow_context *context);
/* An event, from 0. Borrowed until the next begin; NULL: no more. */
FLOW_API const flow_profile_event *flow_profile_event_at(const flow_context *context, int index);

/* Times of an instance's kernels, one by one: entry 0 .. count - 1 of the plan, variant 0, 1, ... of its op's kernels, on
 * operands of its own, one thread. Leaves the instance as it was. */
typedef struct flow_measurement {
  const char *op, *variant;        /* borrowed, static; variant NULL: the op has no more variants (or nothing to run) */
  char        shape[128];          /* of the first three inputs */
  int         supported, chosen;   /* can run this call; runs it in this instance */
  double      multiply_adds;       /* by the textbook; 0: the op is about memory */
  double      bytes;               /* of all operands */
  double      cost;                /* the prediction, in multiply-adds at the peak (kernels/kernels.h); 0: none */
  double seconds;                  /* of one call, the shortest that was measured */
} flow_measurement;
/* How many entries the plan has. */
FLOW_API int         flow_instance_entry_count(const flow_instance *instance);
/* Measures one variant of one entry. FLOW_UNSUPPORTED on a GPU. */
FLOW_API flow_status flow_instance_measure(const flow_instance *instance, int entry, int variant, flow_measurement *out);
/* Multiply-adds a second of one core in registers, measured now. */
FLOW_API double      flow_peak(void);

#endif
