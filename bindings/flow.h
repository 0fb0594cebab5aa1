/* flow.h: the C API of flowlua, and, stripped of its preprocessor lines, the FFI cdef of lua/flow/ffi.lua.
 *
 * Reading guide
 *   - Every function that can fail returns a flow_status; the sentence that explains it stands in
 *     flow_last_error() of the calling thread. Nothing here exits, aborts, prints or touches signals.
 *   - Handles are pointers to opaque structs. "Returns a new reference" means the caller releases it;
 *     "borrowed" means it lives as long as the object it came from; "takes ownership" is never used.
 *   - Shapes are arrays of int64_t, elements not bytes, outermost dimension first. In a trace a negative
 *     dimension -k stands for k x rows, where rows is the batch size that a run brings along (almost always -1).
 *   - A flow_context belongs to one caller at a time (one Lua state); everything else may be shared
 *     between threads as long as nobody writes to it at the same time.
 *
 * Worked example: y = x * 2 without Lua
 *   flow_context *context;  flow_tensor *x, *two, *y;  int64_t shape[1] = {3};
 *   flow_context_new(&context);
 *   flow_tensor_new(FLOW_FLOAT32, 1, shape, &x);             flow_tensor_fill(x, 1.0);
 *   flow_tensor_scalar(FLOW_FLOAT32, 2.0, &two);
 *   flow_tensor *inputs[2] = { x, two };
 *   flow_apply(context, flow_op_find("mul"), inputs, 2, NULL, &y);
 */
#ifndef FLOW_H
#define FLOW_H

#include "flow_types.h"

#if defined(__GNUC__)
#define FLOW_API __attribute__((visibility("default")))
#else
#define FLOW_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct flow_context   flow_context;    /* one caller's traces, tapes, seed: one per Lua state */
typedef struct flow_tensor    flow_tensor;     /* concrete (has data) or symbolic (stands for a value of a trace) */
typedef struct flow_variable  flow_variable;   /* a tensor that plans read and write, reached by an indirect handle */
typedef struct flow_tape      flow_tape;       /* remembers ops so that gradients can be taken */
typedef struct flow_plan      flow_plan;       /* a finished trace: immutable, shared */
typedef struct flow_instance  flow_instance;   /* a plan's memory and bindings: one per concurrent caller */
typedef struct flow_layer     flow_layer;
typedef struct flow_optimizer flow_optimizer;
typedef struct flow_loss_scale flow_loss_scale;  /* keeps gradients that pass through float16 within its range */
typedef struct flow_schedule  flow_schedule;   /* a learning rate as a function of the number of updates: immutable */
typedef struct flow_record_writer flow_record_writer;
typedef struct flow_tensor_writer flow_tensor_writer;   /* what is to become a file of named tensors */
typedef struct flow_save      flow_save;       /* a file of tensors that a thread writes */
typedef struct flow_tensor_file flow_tensor_file;       /* one that is open for reading */
typedef struct flow_archive  flow_archive;     /* a zip that is open for reading: .keras */
typedef struct flow_archive_writer flow_archive_writer;
typedef struct flow_csv       flow_csv;        /* a table that was read */
typedef struct flow_example   flow_example;    /* a tf.train.Example under construction */
typedef struct flow_event_writer flow_event_writer;   /* a file of TensorBoard's */
typedef struct flow_scopes   flow_scopes;     /* what a caller, or one of its coroutines, has open */
typedef struct flow_listing   flow_listing;    /* names of files or folders */
typedef struct flow_arguments flow_arguments;  /* named values on their way to a layer, optimizer or loss record */
typedef struct flow_dataset   flow_dataset;    /* a description of where elements come from: immutable, shared */
typedef struct flow_function  flow_function;   /* what is applied to each element of a dataset: a plan, an image loader, a parser */
typedef struct flow_session flow_session;      /* a thread's memory to predict with one */
typedef struct flow_model    flow_model;      /* a model that was read from a file, for programs without Lua */
typedef struct flow_json     flow_json;       /* a JSON value: a root that its owner releases, or a part of one */
typedef struct flow_iterator  flow_iterator;   /* one pass over a dataset, for one caller */
typedef struct flow_cluster   flow_cluster;    /* who takes part in a training, and who this process is: immutable */
typedef struct flow_worker    flow_worker;     /* this process as one of several that train together */
typedef struct flow_device_group flow_device_group;  /* the GPUs of a strategy in this process */

/* ---- the library ---------------------------------------------------------------------------------------------- */

FLOW_API int         flow_abi_version(void);                 /* FLOW_ABI_VERSION of the library that was loaded */
FLOW_API const char *flow_version(void);                     /* "0.1.0"; borrowed, static */
FLOW_API const char *flow_last_error(void);                  /* this thread's last failure, "" if none; borrowed until the next failing call */
/* What it is about, where that is known, else NaN. */
typedef enum flow_error_field {
  FLOW_ERROR_ROW,                      /* row of the batch, from 0 */
  FLOW_ERROR_LABEL,                    /* the label that a loss refused */
  FLOW_ERROR_STEP,                     /* step of a run of several, from 1 */
  FLOW_ERROR_TASK,                     /* worker, from 0 */
  FLOW_ERROR_FIELD_COUNT
} flow_error_field;
FLOW_API double      flow_last_error_field(int field);
FLOW_API const char *flow_status_name(int status);           /* "out of memory"; borrowed, static */

/* Sends one message to the sink. After flow_log_to_stdio(1): FLOW_LOG_PRINT as it stands to standard output, others as
 * a line to standard error. Before, nothing is written; the last messages are kept for flow_log_take(), so that a host
 * without a terminal can collect them. */
FLOW_API void        flow_log(int level, const char *text);
FLOW_API void        flow_log_to_stdio(int enabled);         /* the flowlua program switches it on; default off */
FLOW_API int         flow_log_stdio(void);
/* Takes the oldest kept message (of at most 64) out: returns its length and writes at most size bytes of it; -1: none. */
FLOW_API int         flow_log_take(int *level, char *text, int size);

FLOW_API double      flow_clock(void);                       /* seconds of a clock that never jumps, for durations */
FLOW_API int         flow_terminal_columns(void);            /* width of the terminal that PRINT messages reach; 0: none does */
FLOW_API const char *flow_isa(void);                         /* "avx512", "avx2" or "plain": what kernels run here; FLOW_ISA pins it */
FLOW_API flow_status flow_set_threads(int count);            /* compute threads of the process; 0 = FLOW_THREADS of the environment, else one per available core */
FLOW_API int         flow_threads(void);
FLOW_API int         flow_tape_depth(const flow_context *context);   /* tapes that record now */
FLOW_API double      flow_live_bytes(void);                  /* bytes held by tensors and plans, whole process */
FLOW_API double      flow_allocation_count(void);            /* allocations ever made: flat in a steady loop */
FLOW_API void        flow_fail_allocation(double after);     /* tests: the allocation that many from now fails once; < 0 never */

/* Parts that are opened on first use: what there is, what each is for, and the libraries that it brings along; fails with one
 * sentence that says what is missing and what to install. */
FLOW_API int         flow_plugin_count(void);
FLOW_API const char *flow_plugin_name(int index);            /* "image"; borrowed, static */
FLOW_API const char *flow_plugin_purpose(int index);         /* "JPEG and GIF images"; borrowed, static */
FLOW_API flow_status flow_plugin_libraries(int index, const char **out);   /* borrowed, static */

FLOW_API flow_status flow_context_new(flow_context **out);   /* returns a new reference */
FLOW_API void        flow_context_release(flow_context *context);
/* Traces that are open, tapes that record, flow_context_set_device and flow_context_set_autocast belong to the current scopes. A context
 * has scopes of its own. A caller whose coroutines take turns gives each its own and enters them before the coroutine goes on; NULL: the
 * context's. New ones have nothing open and are on the host. Releasing them ends their tapes and throws their traces away; to be done
 * before the context is released. */
FLOW_API flow_status flow_scopes_new(flow_context *context, flow_scopes **out);
FLOW_API void        flow_scopes_enter(flow_context *context, flow_scopes *scopes);
FLOW_API void        flow_scopes_release(flow_scopes *scopes);
FLOW_API void        flow_context_seed(flow_context *context, double seed);  /* global seed of unseeded random ops */
FLOW_API double      flow_context_next_seed(flow_context *context);          /* a fresh seed below 2^31, reproducible after flow_context_seed */
/* Seed and number of draws as text: returns the whole length, writes at most size bytes of it. restore goes on drawing from there. */
FLOW_API int         flow_context_save(const flow_context *context, char *text, int size);
FLOW_API flow_status flow_context_restore(flow_context *context, const char *state);
/* 1: what is computed or traced from now on uses only algorithms that round no worse than the direct one (no Winograd
 * F(4x4)); 0, the default: the fastest. */
FLOW_API void        flow_context_set_exact(flow_context *context, int exact);
FLOW_API int         flow_context_exact(const flow_context *context);
/* The dtype in which variables of float32 are read from now on, FLOW_FLOAT32 (the default), FLOW_FLOAT16 or FLOW_BFLOAT16: what a layer's call
 * sets for its duration, and puts back. Returns what it was. */
FLOW_API int         flow_context_set_autocast(flow_context *context, int dtype);
/* Traces that begin from now on are one of `count` replicas' part of a computation: gradients that reach an optimizer are added up over
 * all of them, and so is what variables of the kind FLOW_SUM_ON_READ gain; of FLOW_MEAN_ON_READ the mean is kept. 1, the default: alone. */
FLOW_API void        flow_context_set_replicas(flow_context *context, int count);
FLOW_API int         flow_context_replicas(const flow_context *context);
/* Whether gradients of large matrices may be made of the rows of all replicas at once: their instances are run by flow_instance_run or
 * _run_rows, which divide batches evenly, and all are of this process, or of workers for which flow_worker_shares_memory holds. */
typedef enum flow_gathers { FLOW_GATHERS_NOT = 0, FLOW_GATHERS_LOCAL, FLOW_GATHERS_WORKERS } flow_gathers;
FLOW_API void        flow_context_set_gathers(flow_context *context, int gathers);   /* a flow_gathers; default: not */
/* About how many bytes of gradients are added up at once, while more are computed; 0, the default: the library's choice. */
FLOW_API void        flow_context_set_bucket_bytes(flow_context *context, double bytes);
/* 1: the variables that layers make from now on are zeros and draw no random numbers: they are about to be read from a file. */
FLOW_API void        flow_context_set_blank(flow_context *context, int blank);
FLOW_API void        flow_interrupt(flow_context *context, int raised);      /* async-signal-safe; work of this context stops with FLOW_INTERRUPTED */
FLOW_API int         flow_interrupted(const flow_context *context);

/* ---- dtypes and tensors --------------------------------------------------------------------------------------- */

FLOW_API const char *flow_dtype_name(int dtype);             /* "float32"; NULL for no dtype; borrowed, static */
FLOW_API int         flow_dtype_find(const char *name);      /* -1 if there is none of that name */
FLOW_API int         flow_dtype_size(int dtype);             /* bytes per element */
FLOW_API int         flow_dtype_promote(int a, int b);       /* dtype of an op over both */
FLOW_API int         flow_dtype_of_number(int dtype, double value);    /* that of a number in an op with a tensor of `dtype`: see core/ops/promotion.c */
FLOW_API int         flow_dtype_of_integer(int dtype, int64_t value);

/* New tensors: contiguous, 64-byte aligned. Each returns a new reference. */
FLOW_API flow_status flow_tensor_new(int dtype, int rank, const int64_t *shape, flow_tensor **out);   /* zeros */
FLOW_API flow_status flow_tensor_scalar(int dtype, double value, flow_tensor **out);                   /* rank 0 */
FLOW_API flow_status flow_tensor_borrow(void *data, int dtype, int rank, const int64_t *shape, flow_tensor **out); /* caller keeps data alive */
FLOW_API flow_status flow_tensor_arange(int dtype, double start, double step, double count, flow_tensor **out);
FLOW_API flow_status flow_tensor_arange_integers(int dtype, int64_t start, int64_t stop, int64_t step, flow_tensor **out); /* exact for int64 */
FLOW_API flow_status flow_tensor_view(flow_tensor *source, int rank, const int64_t *shape, const int64_t *strides,
                                      int64_t offset, flow_tensor **out); /* shares memory; strides and offset in elements, checked */
FLOW_API flow_tensor *flow_tensor_retain(flow_tensor *tensor);
FLOW_API void        flow_tensor_release(flow_tensor *tensor);  /* NULL is fine */

FLOW_API int         flow_tensor_dtype(const flow_tensor *tensor);
FLOW_API int         flow_tensor_rank(const flow_tensor *tensor);
FLOW_API double      flow_tensor_dim(const flow_tensor *tensor, int axis);     /* axis from 0; negative in a trace: multiples of rows */
FLOW_API double      flow_tensor_stride(const flow_tensor *tensor, int axis);  /* elements */
FLOW_API double      flow_tensor_size(const flow_tensor *tensor);              /* number of elements; negative in a trace if unknown */
FLOW_API int         flow_tensor_is_symbolic(const flow_tensor *tensor);
FLOW_API int         flow_tensor_is_contiguous(const flow_tensor *tensor);
FLOW_API void       *flow_tensor_data(const flow_tensor *tensor);              /* borrowed; NULL if symbolic, or on a device */
FLOW_API int         flow_tensor_owners(const flow_tensor *tensor);              /* tensors that share its memory, itself included; 0 if symbolic */
FLOW_API flow_status flow_tensor_item(const flow_tensor *tensor, double *out); /* of exactly one element; int64 beyond 2^53 rounds */
FLOW_API flow_status flow_tensor_get(const flow_tensor *tensor, const int64_t *position, double *out);  /* positions from 0 */
FLOW_API flow_status flow_tensor_set(flow_tensor *tensor, const int64_t *position, double value);
FLOW_API flow_status flow_tensor_fill(flow_tensor *tensor, double value);
FLOW_API flow_status flow_tensor_copy(flow_tensor *to, const flow_tensor *from); /* casts and broadcasts from's shape to to's; strided both; overlap allowed */
FLOW_API flow_status flow_tensor_contiguous(flow_tensor *tensor, flow_tensor **out); /* a new reference, to itself when already contiguous */
FLOW_API flow_status flow_tensor_read(const flow_tensor *tensor, double *out, double count); /* all elements in order, as doubles */
FLOW_API flow_status flow_tensor_write(flow_tensor *tensor, const double *values, double count);
/* Text as NumPy prints it (threshold 1000, 3 edge items, precision 4) without a header. Writes at most size bytes
 * with the final NUL and returns the length that the whole text has. */
FLOW_API int         flow_tensor_format(const flow_tensor *tensor, char *text, int size);
/* Rows first..first+count-1 of the permutation `order` (int64, from 0; NULL = identity) out of source into the first
 * rows of `into`: the batch feeder of fit. Same dtype and trailing shape, both contiguous. */
FLOW_API flow_status flow_tensor_gather_rows(const flow_tensor *source, const flow_tensor *order, double first, double count, flow_tensor *into);
FLOW_API flow_status flow_tensor_shuffle(flow_tensor *order, double seed);   /* in place, int64 rank 1: Fisher-Yates by Philox */

FLOW_API flow_status flow_tensor_save_npy(const flow_tensor *tensor, const char *path);
FLOW_API flow_status flow_tensor_load_npy(const char *path, flow_tensor **out);
FLOW_API flow_status flow_tensor_load_npz(const char *path, const char *member, flow_tensor **out); /* member without ".npy" */
FLOW_API flow_status flow_tensor_load_idx(const char *path, flow_tensor **out);  /* IDX (MNIST), gzipped or not */

/* ---- ops ------------------------------------------------------------------------------------------------------- */

FLOW_API int         flow_op_count(void);
FLOW_API int         flow_op_find(const char *name);          /* -1 if there is none */
FLOW_API const char *flow_op_name(int op);
FLOW_API const char *flow_op_doc(int op);
FLOW_API int         flow_op_outputs(int op);
FLOW_API int         flow_op_elementwise(int op);            /* inputs of an elementwise op; 0: the op is not one */
/* Runs `op` at once, or appends it to the trace that a symbolic input belongs to, and to the recording tapes.
 * Fills outputs[0 .. flow_op_outputs(op)-1] with new references; on failure none is set. */
FLOW_API flow_status flow_apply(flow_context *context, int op, flow_tensor *const *inputs, int input_count,
                                const flow_attributes *attributes, flow_tensor **outputs);

/* Composites of ops, with Keras' semantics (see core/autodiff/composites.c). Each returns a new reference. */
FLOW_API flow_status flow_mean(flow_context *context, flow_tensor *x, const flow_attributes *reduce, flow_tensor **out);
FLOW_API flow_status flow_activate(flow_context *context, const char *activation, flow_tensor *x, flow_tensor **out);
FLOW_API int         flow_activation_known(const char *name);

/* ---- variables ------------------------------------------------------------------------------------------------- */

FLOW_API flow_status flow_variable_new(flow_tensor *initial, const char *name, int trainable, int sync, flow_variable **out); /* copies initial; new reference */
FLOW_API flow_variable *flow_variable_retain(flow_variable *variable);
FLOW_API void        flow_variable_release(flow_variable *variable);
FLOW_API const char *flow_variable_name(const flow_variable *variable);
FLOW_API int         flow_variable_trainable(const flow_variable *variable);
FLOW_API void        flow_variable_set_trainable(flow_variable *variable, int trainable);
FLOW_API double      flow_variable_version(const flow_variable *variable);   /* grows with every write outside a plan */
FLOW_API flow_status flow_variable_tensor(flow_variable *variable, flow_tensor **out); /* new reference to the storage itself: sees later writes until the variable moves */
FLOW_API flow_status flow_variable_read(flow_context *context, flow_variable *variable, flow_tensor **out);   /* in a trace: the current version, symbolic */
FLOW_API flow_status flow_variable_assign(flow_context *context, flow_variable *variable, flow_tensor *value); /* in a trace: an effect of the plan's commit tail */
FLOW_API flow_status flow_variable_assign_add(flow_context *context, flow_variable *variable, flow_tensor *value);
FLOW_API double      flow_variable_number(const flow_variable *variable);    /* of one element: metric and counter reads in the batch loop, never fails */

/* ---- tapes ------------------------------------------------------------------------------------------------------ */

FLOW_API flow_status flow_tape_begin(flow_context *context, flow_tape **out);   /* starts recording; new reference */
FLOW_API flow_status flow_tape_end(flow_context *context, flow_tape *tape);     /* stops recording */
FLOW_API void        flow_tape_release(flow_tape *tape);
FLOW_API flow_status flow_tape_watch(flow_tape *tape, flow_tensor *tensor);     /* trainable variables are watched by being read */
/* Gradients of the sum of target's elements. Source i is variables[i] if not NULL, else tensors[i]. out[i] is a new
 * reference, or NULL where target does not depend on source i. */
FLOW_API flow_status flow_tape_gradient(flow_context *context, flow_tape *tape, flow_tensor *target, flow_tensor *const *tensors,
                                        flow_variable *const *variables, int count, flow_tensor **out);
/* The same of several targets, each times its output gradient: a tensor of the target's shape and dtype, as a loss that continues the
 * computation elsewhere would hand it back. NULL, for one target or for all, stands for ones. */
FLOW_API flow_status flow_tape_gradients(flow_context *context, flow_tape *tape, flow_tensor *const *targets,
                                         flow_tensor *const *output_gradients, int target_count, flow_tensor *const *tensors,
                                         flow_variable *const *variables, int count, flow_tensor **out);

/* ---- traces, plans, instances ------------------------------------------------------------------------------------ */

FLOW_API flow_status flow_trace_begin(flow_context *context);
FLOW_API int         flow_trace_depth(const flow_context *context);
FLOW_API int         flow_trace_replicas(const flow_context *context);   /* that the innermost open trace is for; 0: none is open */
FLOW_API flow_status flow_trace_input(flow_context *context, int dtype, int rank, const int64_t *shape, flow_tensor **out); /* shape[0] = -1: rows of the batch */
FLOW_API flow_status flow_trace_constant(flow_context *context, flow_tensor *value, flow_tensor **out);   /* a symbolic stand-in for a concrete tensor */
FLOW_API flow_status flow_trace_end(flow_context *context, flow_tensor *const *outputs, int count, flow_plan **out); /* closes the innermost trace; new reference */
FLOW_API void        flow_trace_abort(flow_context *context);   /* drops the innermost trace; harmless without one */
/* Writes what the open trace has computed as an ONNX model, and leaves the trace open. Names of inputs in the order of their creation. */
FLOW_API flow_status flow_trace_save_onnx(flow_context *context, const char *path, const char *name, flow_tensor *const *outputs, int count,
                                          const char *const *input_names, int input_count, const char *const *output_names);
FLOW_API int         flow_onnx_knows(int op);                /* whether an op has an ONNX form */
FLOW_API void        flow_plan_release(flow_plan *plan);
FLOW_API flow_variable *flow_plan_variable(flow_plan *plan, int index);    /* those that it reads or updates, in the order of the trace; borrowed; NULL: no more */
FLOW_API int         flow_plan_describe(const flow_plan *plan, char *text, int size); /* one line an entry: segment, op, variant, shape; returns the whole length */

FLOW_API flow_status flow_instance_new(flow_plan *plan, double capacity, flow_instance **out); /* capacity: most rows a run may bring; keeps the plan */
FLOW_API void        flow_instance_release(flow_instance *instance);
FLOW_API double      flow_instance_capacity(const flow_instance *instance);
FLOW_API int         flow_instance_describe(const flow_instance *instance, char *text, int size);
FLOW_API void        flow_instance_scalars(flow_instance *instance, double seed, double step, double first_sample); /* keys of random ops in the next runs */
/* Makes an instance, before its first run, that of several replicas: `local` of this process, which share variables and cores, in each of
 * the worker's processes (NULL: this one only; borrowed). A run cuts its rows in contiguous parts of one size, the last ones shorter or
 * empty, one for each replica in the order of workers and replicas. The capacity is that of one part. group: of a plan that runs on a GPU, the
 * devices of the local replicas, of which the plan's is the first; NULL: it runs on the CPU, or there is one. */
FLOW_API flow_status flow_instance_replicate(flow_instance *instance, int local, flow_device_group *group, flow_worker *worker);
/* Of several workers. shared 1: all of them give the same rows, and each computes its part; 0, the default: each gives rows of its own,
 * or none. The order of samples is that of the workers. */
FLOW_API void        flow_instance_share_rows(flow_instance *instance, int shared);
/* What the workers tell each other at the next run: that this one wants no further one, nor that; an interrupt says so, too. */
FLOW_API void        flow_instance_wish_stop(flow_instance *instance, int stop);
/* What they agreed on at the last one: its rows over all replicas, and whether somebody wants to stop. Nothing ran, and there
 * are not outputs, if nobody had rows or somebody wants to stop. */
FLOW_API double      flow_instance_global_rows(const flow_instance *instance);
FLOW_API int         flow_instance_stop_wished(const flow_instance *instance);
/* A run with inputs (replicas x count) and outputs (replicas x the plan's) of each local replica apart; a plan without rows, or with
 * rows of its own in each. */
FLOW_API flow_status flow_instance_run_each(flow_context *context, flow_instance *instance, flow_tensor *const *inputs, int count, flow_tensor **outputs);
/* Runs the plan on `inputs` (dtypes and shapes of its signature, equal rows). outputs may be NULL; else each becomes a
 * new tensor. A run that fails writes no variable. */
FLOW_API flow_status flow_instance_run(flow_context *context, flow_instance *instance, flow_tensor *const *inputs, int count, flow_tensor **outputs);
/* The same with rows <= capacity of borrowed, larger input tensors, from row `first` (from 0) on: nothing is copied, and
 * there is no allocation in steady state. order: those rows that its elements name, from element `first` on: int64 {n}, where the
 * inputs are, on the host or all on the plan's device; NULL: in the order in which they lie. */
FLOW_API flow_status flow_instance_run_rows(flow_context *context, flow_instance *instance, flow_tensor *const *inputs, int count,
                                            const flow_tensor *order, double first, double rows);

/* Runs them in batches of `size` rows, the last one of what is left of `rows`: one after the other as flow_instance_run_rows would, the
 * scalars' step and first_sample counting on. On a GPU on which inputs and order lie several batches are launched at once. *done: batches that ran; fewer also if a worker wished to stop. */
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
FLOW_API flow_status flow_profile_begin(flow_context *context);
FLOW_API void        flow_profile_end(flow_context *context);
FLOW_API int         flow_profile_count(const flow_context *context);
FLOW_API const flow_profile_entry *flow_profile_at(const flow_context *context, int index);   /* borrowed until the next begin; NULL beyond the end */
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
FLOW_API flow_status flow_profile_keep_events(flow_context *context, int most);   /* after begin; later ones than `most` are dropped */
FLOW_API int         flow_profile_event_count(const flow_context *context);
FLOW_API const flow_profile_event *flow_profile_event_at(const flow_context *context, int index);

/* Times of an instance's kernels, one by one: entry 0 .. count - 1 of the plan, variant 0, 1, ... of its op's kernels, on
 * operands of its own, one thread. Leaves the instance as it was. */
typedef struct flow_measurement {
  const char *op, *variant;        /* variant NULL: the op has no more variants (or nothing to run) */
  char        shape[128];          /* of the first three inputs */
  int         supported, chosen;   /* can run this call; runs it in this instance */
  double      multiply_adds;       /* by the textbook; 0: the op is about memory */
  double      bytes;               /* of all operands */
  double      cost;                /* the prediction, in multiply-adds at the peak (kernels/kernels.h); 0: none */
  double      seconds;
} flow_measurement;
FLOW_API int         flow_instance_entry_count(const flow_instance *instance);
FLOW_API flow_status flow_instance_measure(const flow_instance *instance, int entry, int variant, flow_measurement *out);
FLOW_API double      flow_peak(void);                        /* multiply-adds a second of one core in registers, measured now */

/* ---- arguments, layers, losses, optimizers ----------------------------------------------------------------------- */

FLOW_API flow_status flow_arguments_new(flow_arguments **out);
FLOW_API void        flow_arguments_release(flow_arguments *arguments);
FLOW_API flow_status flow_arguments_set_number(flow_arguments *arguments, const char *name, double value);
FLOW_API flow_status flow_arguments_set_boolean(flow_arguments *arguments, const char *name, int value);
FLOW_API flow_status flow_arguments_set_text(flow_arguments *arguments, const char *name, const char *value);
FLOW_API flow_status flow_arguments_set_numbers(flow_arguments *arguments, const char *name, const double *values, int count);
/* {{1, 2}, {3, 4}}: numbers one after the other, how deep the lists are nested, how long they are on each level. NaN: null. */
FLOW_API flow_status flow_arguments_set_nested(flow_arguments *arguments, const char *name, const double *values, int rank,
                                               const int *dims);
FLOW_API flow_status flow_arguments_set_null(flow_arguments *arguments, const char *name);

/* Records can be asked for what they take, so that Lua's constructors, the docs and the file formats are made from them. */
FLOW_API int         flow_layer_class_count(void);
FLOW_API const char *flow_layer_class_name(int index);            /* "Conv2D" */
FLOW_API int         flow_layer_class_find(const char *name);     /* -1 if there is none; knows aliases (InputLayer) */
FLOW_API int         flow_layer_class_positional(int index);      /* how many of the arguments may be given by position */
FLOW_API int         flow_layer_class_trains_alone(int index);    /* 1: called by itself it acts as in training, as what prepares data does */
FLOW_API int         flow_layer_class_argument_count(int index);
FLOW_API const char *flow_layer_class_argument(int index, int argument);      /* name */
FLOW_API const char *flow_layer_class_argument_type(int index, int argument); /* "integer", "number", "boolean", "text", "pair", "shape", "numbers", "activation", "initializer", "regularizer" */
FLOW_API const char *flow_layer_class_argument_default(int index, int argument); /* as text; NULL: required */
FLOW_API const char *flow_layer_class_doc(int index);

FLOW_API flow_status flow_layer_new(const char *class_name, const char *name, const flow_arguments *arguments, flow_layer **out); /* copies arguments; new reference */
FLOW_API void        flow_layer_release(flow_layer *layer);
FLOW_API const char *flow_layer_name(const flow_layer *layer);
/* Creates the variables for these input shapes (-1 = batch). Seed: of the initializers that have none of their own. */
FLOW_API flow_status flow_layer_build(flow_context *context, flow_layer *layer, int input_count, const int *ranks, const int64_t *const *shapes);
FLOW_API int         flow_layer_built(const flow_layer *layer);
FLOW_API const char *flow_layer_policy(const flow_layer *layer);                     /* borrowed: "float32", "mixed_bfloat16", "mixed_float16" */
FLOW_API flow_status flow_layer_call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out);
FLOW_API int         flow_layer_variable_count(const flow_layer *layer);         /* trainable first, then not, as Keras stores them */
FLOW_API flow_variable *flow_layer_variable(const flow_layer *layer, int index); /* borrowed */
FLOW_API int         flow_layer_trainable(const flow_layer *layer);
FLOW_API void        flow_layer_set_trainable(flow_layer *layer, int trainable);
/* What training adds to the loss for the regularizers of its variables: a scalar, or *out = NULL where there is none. New reference. */
FLOW_API flow_status flow_layer_penalty(flow_context *context, const flow_layer *layer, flow_tensor **out);
/* A layer from the config that flow_layer_config or Keras wrote; new reference. */
FLOW_API flow_status flow_layer_from_config(const char *class_name, const char *config, flow_layer **out);
FLOW_API int         flow_layer_config(const flow_layer *layer, char *text, int size); /* Keras' config as JSON; returns the whole length */

/* Class names and options of what arguments of these kinds can name; NULL beyond the last. */
enum { FLOW_CHOICE_INITIALIZER = 0, FLOW_CHOICE_REGULARIZER };
FLOW_API const char *flow_choice_name(int kind, int index);
FLOW_API const char *flow_choice_parameter(int kind, int index, int parameter);

FLOW_API flow_status flow_initialize(flow_context *context, const char *initializer, const flow_arguments *arguments, double seed, flow_tensor *into);

/* Per-sample loss values (rank of y_pred less one) and per-sample hits of a metric; both in eager mode and traces.
 * Options: from_logits (boolean). */
FLOW_API int         flow_loss_find(const char *name);            /* class or snake-case name, Keras' short forms; -1 */
FLOW_API const char *flow_loss_name(int loss);                    /* snake-case name */
FLOW_API flow_status flow_loss_values(flow_context *context, int loss, const flow_arguments *options, flow_tensor *y_true, flow_tensor *y_pred, flow_tensor **out);
FLOW_API int         flow_metric_find(const char *name);
FLOW_API const char *flow_metric_name(int metric);
FLOW_API flow_status flow_metric_values(flow_context *context, int metric, const flow_arguments *options, flow_tensor *y_true, flow_tensor *y_pred, flow_tensor **out);
/* sum(values x weights) / number of values; weights may be NULL; an empty batch gives 0. */
FLOW_API flow_status flow_loss_reduce(flow_context *context, flow_tensor *values, flow_tensor *weights, flow_tensor **out);

FLOW_API int         flow_optimizer_class_find(const char *name);  /* "SGD", "adam"; -1 */
FLOW_API int         flow_optimizer_class_argument_count(int index);
FLOW_API const char *flow_optimizer_class_name(int index);
FLOW_API const char *flow_optimizer_class_argument(int index, int argument);
FLOW_API const char *flow_optimizer_class_argument_type(int index, int argument);
FLOW_API const char *flow_optimizer_class_argument_default(int index, int argument);
FLOW_API flow_status flow_optimizer_new(const char *class_name, const char *name, const flow_arguments *arguments, flow_optimizer **out); /* name NULL: Keras' */
/* From what flow_optimizer_config wrote, or Keras: schedules included. */
FLOW_API flow_status flow_optimizer_from_config(const char *text, flow_optimizer **out);
FLOW_API void        flow_optimizer_release(flow_optimizer *optimizer);
FLOW_API const char *flow_optimizer_name(const flow_optimizer *optimizer);
FLOW_API int         flow_optimizer_class_index(const flow_optimizer *optimizer);
/* As Keras serializes it, with the learning rate of now: {"module": "keras.optimizers", "class_name": ..., "config": {...},
 * "registered_name": null}. Returns the whole length. */
FLOW_API int         flow_optimizer_config(const flow_optimizer *optimizer, char *text, int size);
/* Adopts the variables into one arena (their storage moves, the handles stay), makes the slots and appends or runs the
 * update. Gradients that are NULL are left out. */
FLOW_API flow_status flow_optimizer_apply(flow_context *context, flow_optimizer *optimizer, flow_tensor *const *gradients,
                                          flow_variable *const *variables, int count);
FLOW_API flow_status flow_optimizer_build(flow_optimizer *optimizer, flow_variable *const *variables, int count);
/* The rates of all updates come from a schedule (retained), or, with NULL, from the caller. Only before the first update: the
 * learning rate is not a variable then. */
FLOW_API flow_status flow_optimizer_set_schedule(flow_optimizer *optimizer, flow_schedule *schedule);
FLOW_API flow_schedule *flow_optimizer_schedule(const flow_optimizer *optimizer); /* borrowed; NULL: none */
/* flow_optimizer_apply with the rate of this update, a float32 scalar. */
FLOW_API flow_status flow_optimizer_apply_at(flow_context *context, flow_optimizer *optimizer, flow_tensor *rate,
                                             flow_tensor *const *gradients, flow_variable *const *variables, int count);
/* The same with gradients of flow_loss_scale_loss (scale NULL: of the loss itself): they are divided by the scale; unless all are finite,
 * nothing but the scale is written. */
FLOW_API flow_status flow_optimizer_apply_scaled(flow_context *context, flow_optimizer *optimizer, flow_loss_scale *scale, flow_tensor *rate,
                                                 flow_tensor *const *gradients, flow_variable *const *variables, int count);
/* Leaves out of weight decay: a variable, or all whose names contain `name` (the other one is NULL). Only before slots are made. */
FLOW_API flow_status flow_optimizer_exclude_from_weight_decay(flow_optimizer *optimizer, flow_variable *variable, const char *name);
FLOW_API flow_variable *flow_optimizer_learning_rate(flow_optimizer *optimizer);  /* float32 scalar; borrowed; NULL: there is a schedule */
FLOW_API flow_variable *flow_optimizer_iterations(flow_optimizer *optimizer);     /* int64 scalar; borrowed */
FLOW_API int         flow_optimizer_slot_count(const flow_optimizer *optimizer);  /* slots per variable in Keras' order: m0 v0 m1 v1 ... */
FLOW_API flow_variable *flow_optimizer_slot(const flow_optimizer *optimizer, int index); /* borrowed view into the slot's arena */

/* Dynamic loss scales: doubled after growth_steps updates in a row, halved when an update is skipped (Keras' LossScaleOptimizer). */
enum { FLOW_INITIAL_LOSS_SCALE = 32768, FLOW_LOSS_SCALE_GROWTH_STEPS = 2000 };    /* Keras' defaults */
FLOW_API flow_status flow_loss_scale_new(const char *name, double initial_scale, double growth_steps, flow_loss_scale **out); /* name NULL: Keras' */
FLOW_API void        flow_loss_scale_release(flow_loss_scale *scale);      /* NULL is fine */
FLOW_API const char *flow_loss_scale_name(const flow_loss_scale *scale);
/* iteration and learning_rate, which stay 0, step_counter (int64), dynamic_scale (float32); borrowed; NULL after them. */
FLOW_API flow_variable *flow_loss_scale_variable(const flow_loss_scale *scale, int index);
FLOW_API flow_status flow_loss_scale_loss(flow_context *context, flow_loss_scale *scale, flow_tensor *loss, flow_tensor **out); /* loss x scale; new reference */
/* The scale with its optimizer as Keras serializes them, and back: two new references. The first returns the whole length. */
FLOW_API int         flow_loss_scale_config(const flow_loss_scale *scale, const flow_optimizer *inner, char *text, int size);
FLOW_API flow_status flow_loss_scale_from_config(const char *text, flow_loss_scale **scale, flow_optimizer **inner);

FLOW_API int         flow_schedule_class_count(void);
FLOW_API int         flow_schedule_class_find(const char *name);   /* "CosineDecay"; -1 */
FLOW_API const char *flow_schedule_class_name(int index);
FLOW_API int         flow_schedule_class_argument_count(int index);
FLOW_API const char *flow_schedule_class_argument(int index, int argument);
FLOW_API flow_status flow_schedule_new(const char *class_name, const flow_arguments *arguments, flow_schedule **out);
FLOW_API flow_schedule *flow_schedule_retain(flow_schedule *schedule);
FLOW_API void        flow_schedule_release(flow_schedule *schedule);
FLOW_API const char *flow_schedule_class(const flow_schedule *schedule);      /* "CosineDecay" */
FLOW_API double      flow_schedule_value(const flow_schedule *schedule, double step);   /* as training computes it: rounded to float32 */
FLOW_API int         flow_schedule_config(const flow_schedule *schedule, char *text, int size);  /* as Keras serializes it; returns the whole length */

/* ---- models ---------------------------------------------------------------------------------------------------------- */

/* Models of .keras files without Lua: Sequential and Functional, nested or not, of the library's own layers. What a file holds
 * that is not known is named.
 *
 * Threads share a model: each with a context of its own, they may predict, train, save, retain and release it at the same time. Its
 * weights exist once. A prediction takes memory for its intermediate values from a pool of the model; predictions go on side by side, a
 * step of training is alone, and waits for predictions that began before it, as later ones wait for it. The bits of a prediction
 * do not depend on what other threads do. Tensors that are given or returned belong to the caller; the message of a failure is the
 * calling thread's. */
FLOW_API flow_status flow_model_load(flow_context *context, const char *path, flow_model **out);   /* new reference */
FLOW_API flow_model *flow_model_retain(flow_model *model);                      /* new reference */
FLOW_API void        flow_model_release(flow_model *model);                     /* NULL is fine */
FLOW_API flow_status flow_model_save(const flow_model *model, const char *path);   /* a .keras file; the old one stays if it fails */
FLOW_API int         flow_model_input_count(const flow_model *model);
FLOW_API int         flow_model_output_count(const flow_model *model);
FLOW_API const char *flow_model_input_name(const flow_model *model, int index);  /* from 0; borrowed; NULL beyond the end */
FLOW_API int         flow_model_input_dtype(const flow_model *model, int index);
FLOW_API int         flow_model_input_rank(const flow_model *model, int index);
FLOW_API double      flow_model_input_dim(const flow_model *model, int index, int axis);   /* axis 0: -1, any number of rows */
/* Runs the model on any number of rows, 32 at a time; inputs are cast to its dtypes. outputs: flow_model_output_count new references. */
FLOW_API flow_status flow_model_predict(flow_context *context, flow_model *model, flow_tensor *const *inputs, int count, flow_tensor **outputs);
/* One step of training on this batch with the loss and the optimizer of the file. loss (may be NULL): before the step. */
FLOW_API flow_status flow_model_train(flow_context *context, flow_model *model, flow_tensor *const *inputs, int count, flow_tensor *targets,
                                      double *loss);

/* A session keeps memory of its own for predictions with a model, which it retains: a thread that answers requests takes none from the
 * pool and gives none back. For one thread at a time: FLOW_INVALID_STATE while another one predicts with it. */
FLOW_API flow_status flow_session_new(flow_model *model, flow_session **out);       /* new reference */
FLOW_API flow_status flow_session_predict(flow_context *context, flow_session *session, flow_tensor *const *inputs, int count,
                                          flow_tensor **outputs);               /* as flow_model_predict */
FLOW_API void        flow_session_release(flow_session *session);               /* NULL is fine */

/* ---- JSON ------------------------------------------------------------------------------------------------------------ */

enum { FLOW_JSON_NULL = 0, FLOW_JSON_BOOLEAN, FLOW_JSON_NUMBER, FLOW_JSON_TEXT, FLOW_JSON_LIST, FLOW_JSON_OBJECT,
       FLOW_JSON_REAL,             /* only to add: a number that is written with a decimal point */
       FLOW_JSON_PRINTED };        /* only to add: text that is JSON already */
FLOW_API flow_status flow_json_parse(const char *text, double bytes, flow_json **out);   /* one value and nothing after it; new reference */
FLOW_API void        flow_json_release(flow_json *root);                     /* NULL is fine */
FLOW_API int         flow_json_kind(const flow_json *json);
FLOW_API const flow_json *flow_json_child(const flow_json *json);            /* first entry of a list or an object; borrowed; NULL: empty */
FLOW_API const flow_json *flow_json_next(const flow_json *json);             /* the entry after this one; borrowed; NULL: the last */
FLOW_API const char *flow_json_key(const flow_json *json);                   /* of an entry of an object; borrowed */
FLOW_API const char *flow_json_text(const flow_json *json);                  /* borrowed */
FLOW_API double      flow_json_number(const flow_json *json);                /* of a number; 1 or 0 of a boolean */
FLOW_API flow_status flow_json_new(int kind, flow_json **out);               /* an empty object or list; new reference */
/* Appends a value; key: in objects. child (may be NULL): the value itself, borrowed, to add to. */
FLOW_API flow_status flow_json_add(flow_json *parent, const char *key, int kind, double number, const char *text, flow_json **child);
FLOW_API int         flow_json_print(const flow_json *json, char *text, int size);   /* returns the whole length */

/* ---- parts ---------------------------------------------------------------------------------------------------------------- */

#include "flow_files.h"
#include "flow_data.h"
#include "flow_distribute.h"
#include "flow_devices.h"

#ifdef __cplusplus
}
#endif
#endif
