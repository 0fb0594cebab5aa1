/* flow.h: the C API of flowlua, and, stripped of its preprocessor lines, the FFI cdef of lua/flow/ffi.lua.
 *
 * Reading guide
 *   - Every function that can fail returns a flow_status; the sentence that explains it is in
 *     flow_last_error() of the calling thread. Nothing here exits, aborts, prints or touches signals.
 *   - Handles are pointers to opaque structs. What `out` receives, and what a comment calls a new reference, is released by the
 *     caller; "borrowed" means that it lives as long as the object it came from. No function takes over what it is given.
 *     Each _release, and each _close that returns nothing, takes NULL.
 *   - A function that writes a text to (char *text, int size) returns the length of the whole text, or -1 if it could not be made,
 *     and writes at most size bytes of it, the final zero included.
 *   - Shapes: int64_t, elements not bytes, outermost dimension first; in a trace -k stands for k x rows of the batch that a run brings.
 *   - Pointers are not NULL unless a comment says so, or the size of an array or text is 0: else FLOW_INVALID_ARGUMENT, or 0, NULL or -1.
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
typedef struct flow_layer flow_layer;          /* variables and what computes with them, made from a record of its class */
typedef struct flow_group_names flow_group_names; /* what the layers of a model are called in Keras' files */
typedef struct flow_optimizer flow_optimizer;     /* what updates variables by their gradients, with its own variables, the slots */
typedef struct flow_loss_scale flow_loss_scale;  /* keeps gradients that pass through float16 within its range */
typedef struct flow_schedule  flow_schedule;   /* a learning rate as a function of the number of updates: immutable */
typedef struct flow_record_writer flow_record_writer;   /* what is to become a TFRecord file */
typedef struct flow_tensor_writer flow_tensor_writer;   /* what is to become a file of named tensors */
typedef struct flow_save      flow_save;       /* a file of tensors that a thread writes */
typedef struct flow_tensor_file flow_tensor_file; /* such a file that is open for reading */
typedef struct flow_archive  flow_archive;     /* a zip that is open for reading: .keras */
typedef struct flow_archive_writer flow_archive_writer; /* what is to become one */
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
typedef struct flow_cluster   flow_cluster;    /* the tasks of a training, and which of them this process is: immutable */
typedef struct flow_server    flow_server;     /* a parameter server's end of its channels */
typedef struct flow_server_link flow_server_link; /* a worker's end of one */
typedef struct flow_worker    flow_worker;     /* this process as one of several that train together */
typedef struct flow_device_group flow_device_group;  /* the GPUs of a strategy in this process */

/* ---- the library ---------------------------------------------------------------------------------------------- */

/* The FLOW_ABI_VERSION of the library that was loaded. A program that was compiled with another one must not go on. */
FLOW_API int         flow_abi_version(void);
/* The version as text, such as "0.1.0". Borrowed, static. */
FLOW_API const char *flow_version(void);
/* The sentence of this thread's last failure: what was asked, what was found, what to do. "" if there was none. Borrowed until
 * the next call of this thread that fails; a call that succeeds leaves it as it is. */
FLOW_API const char *flow_last_error(void);
/* The numbers that a failure may be about. */
typedef enum flow_error_field {
  FLOW_ERROR_ROW,                      /* row of the batch, from 0 */
  FLOW_ERROR_LABEL,                    /* the label that a loss refused */
  FLOW_ERROR_STEP,                     /* step of a run of several, from 1 */
  FLOW_ERROR_TASK,                     /* worker, from 0 */
  FLOW_ERROR_FIELD_COUNT
} flow_error_field;
/* One number about the last failure of this thread, a flow_error_field; NaN where it is not known. Programs decide by these and
 * by the status, never by the sentence. */
FLOW_API double      flow_last_error_field(int field);
/* The name of a status for logs, such as "out of memory". Borrowed, static; "unknown status" for other numbers. */
FLOW_API const char *flow_status_name(int status);

/* Sends one message to the sink. After flow_log_to_stdio(1): FLOW_LOG_PRINT as it is to standard output, others as
 * a line to standard error. Before, nothing is written; the last messages are kept for flow_log_take(), so that a host
 * without a terminal can collect them. */
FLOW_API void        flow_log(int level, const char *text);
/* 1: messages go to standard output and standard error from now on. Off by default; the program flowlua switches it on. Holds
 * for the process. */
FLOW_API void        flow_log_to_stdio(int enabled);
/* Whether they go there now. */
FLOW_API int         flow_log_stdio(void);
/* Takes the oldest kept message (of at most 64) out: returns its length and writes at most size bytes of it; -1: none. */
FLOW_API int         flow_log_take(int *level, char *text, int size);

/* Seconds of a clock that never jumps, for durations. The zero has no meaning. */
FLOW_API double      flow_clock(void);
/* Width in characters of the terminal that FLOW_LOG_PRINT messages reach; 0 if they do not reach one. */
FLOW_API int         flow_terminal_columns(void);
/* The instruction set of the kernels that run here: "avx512", "avx2" or "plain". FLOW_ISA in the environment selects a smaller
 * one. Borrowed, static. */
FLOW_API const char *flow_isa(void);
/* Sets the number of compute threads of the whole process, the calling thread included. 0: FLOW_THREADS of the environment, else
 * one for each core that affinity and control group allow. Takes effect at the next run; results do not depend on it.
 * FLOW_INVALID_ARGUMENT for a number out of range. */
FLOW_API flow_status flow_set_threads(int count);
/* The number that is in effect. */
FLOW_API int         flow_threads(void);
/* How many tapes record in this context now. */
FLOW_API int         flow_tape_depth(const flow_context *context);
/* Bytes that tensors and plans of the process hold now. */
FLOW_API double      flow_live_bytes(void);
/* Allocations that the process ever made through the library. In a steady loop the number does not grow. */
FLOW_API double      flow_allocation_count(void);
/* For tests: the allocation with this number from now (0: the next) fails once, with FLOW_OUT_OF_MEMORY; a negative number
 * switches that off. */
FLOW_API void        flow_fail_allocation(double after);

/* Plugins are the parts of the library that need other libraries, and are opened when they are first used. */

/* How many plugins the library knows, installed or not. Their indices begin at 0. */
FLOW_API int         flow_plugin_count(void);
/* Its name, such as "image". Borrowed, static. */
FLOW_API const char *flow_plugin_name(int index);
/* What it is for, such as "JPEG and GIF images". Borrowed, static. */
FLOW_API const char *flow_plugin_purpose(int index);
/* Opens it and names the libraries that it brings along, as text. FLOW_NOT_FOUND and FLOW_UNSUPPORTED come with
 * a sentence that says what is missing and what to install. Borrowed, static. */
FLOW_API flow_status flow_plugin_libraries(int index, const char **out);

/* A context holds what a caller has open: traces, tapes, seeds, the current device, precision and replicas. One caller (a Lua
 * state, a thread) uses it at a time; it is cheap, so each thread makes its own. Returns a new reference. */
FLOW_API flow_status flow_context_new(flow_context **out);
/* Ends what is open and frees the context. Tensors and variables that were made with it stay valid. NULL is fine. */
FLOW_API void        flow_context_release(flow_context *context);
/* Traces that are open, tapes that record, flow_context_set_device and flow_context_set_autocast belong to the current scopes. A context
 * has its own scopes. A caller whose coroutines take turns gives each its own and enters them before the coroutine goes on; NULL: the
 * context's. New ones have nothing open and are on the host. Releasing them ends their tapes and throws their traces away; it comes
 * before the release of the context. */
FLOW_API flow_status flow_scopes_new(flow_context *context, flow_scopes **out);
FLOW_API void        flow_scopes_enter(flow_context *context, flow_scopes *scopes);
FLOW_API void        flow_scopes_release(flow_scopes *scopes);
/* Sets the seed, a whole number below 2^53, from which random ops and initializers without a seed draw theirs. */
FLOW_API void        flow_context_seed(flow_context *context, double seed);
/* Draws a fresh seed, a whole number below 2^31. The sequence follows from flow_context_seed. */
FLOW_API double      flow_context_next_seed(flow_context *context);
/* Seed and number of draws as text: returns the whole length, writes at most size bytes of it. restore goes on drawing from there. */
FLOW_API int         flow_context_save(const flow_context *context, char *text, int size);
FLOW_API flow_status flow_context_restore(flow_context *context, const char *state);
/* 1: what is computed or traced from now on uses only algorithms that round no worse than the direct one (no Winograd
 * F(4x4)); 0, the default: the fastest. */
FLOW_API void        flow_context_set_exact(flow_context *context, int exact);
/* What was set. */
FLOW_API int         flow_context_exact(const flow_context *context);
/* The dtype in which variables of float32 are read from now on, FLOW_FLOAT32 (the default), FLOW_FLOAT16 or FLOW_BFLOAT16: what a layer's
 * call sets for its duration, and puts back. Returns what it was. */
FLOW_API int         flow_context_set_autocast(flow_context *context, int dtype);
/* Traces that begin from now on are one of `count` replicas' part of a computation: gradients that reach an optimizer are added up over
 * all of them, and so is what variables of the kind FLOW_SUM_ON_READ gain; of FLOW_MEAN_ON_READ the mean is kept. 1, the default: alone. */
FLOW_API void        flow_context_set_replicas(flow_context *context, int count);
/* What was set. */
FLOW_API int         flow_context_replicas(const flow_context *context);
/* Whether gradients of large matrices may be computed from the rows of all replicas, in place of sums over replicas of what each has
 * computed from its own. The instances have to be run by flow_instance_run or flow_instance_run_rows, which divide batches evenly. */
typedef enum flow_gathers {
  FLOW_GATHERS_NOT = 0,
  FLOW_GATHERS_LOCAL,   /* all replicas are in this process */
  FLOW_GATHERS_WORKERS, /* they are in workers of which flow_worker_shares_memory holds */
  FLOW_GATHERS_MESSAGES /* workers send each other rows, where that takes less time than a sum: flow_context_set_network */
} flow_gathers;
FLOW_API void        flow_context_set_gathers(flow_context *context, int gathers);   /* a flow_gathers; default: not */
/* For FLOW_GATHERS_MESSAGES: among how many workers the replicas are divided, how many rows of a batch each replica is expected to get (0:
 * rows travel wherever they can), and how many bytes an element of a gradient has on its way. All workers give the same numbers, since they
 * have to make the same plan. */
FLOW_API void        flow_context_set_network(flow_context *context, int workers, double rows, int gradient_bytes);
/* About how many bytes of gradients are added up at once, while more are computed; 0, the default: the library's choice. */
FLOW_API void        flow_context_set_bucket_bytes(flow_context *context, double bytes);
/* 1: the variables that layers make from now on are zeros and draw no random numbers: they are about to be read from a file. */
FLOW_API void        flow_context_set_blank(flow_context *context, int blank);
/* 1: work of this context stops with FLOW_INTERRUPTED at the next point where it can, within a batch; 0 takes that back. May be
 * called from a signal handler and from another thread. */
FLOW_API void        flow_interrupt(flow_context *context, int raised);
/* Whether an interrupt is raised. */
FLOW_API int         flow_interrupted(const flow_context *context);
/* This process is to end soon, since its machine is wanted for something else (SIGTERM): batches that run are finished,
 * flow_instance_run_batches stops between two of them with FLOW_INTERRUPTED, no call waits for workers that have not come, and fit in Lua
 * saves what it has. It cannot be taken back. May be called from a signal handler and from another thread. */
FLOW_API void        flow_preempt(flow_context *context);
/* Whether it was. */
FLOW_API int         flow_preempted(const flow_context *context);

/* ---- dtypes and tensors --------------------------------------------------------------------------------------- */

/* The name of a dtype, such as "float32"; NULL if there is no such dtype. Borrowed, static. */
FLOW_API const char *flow_dtype_name(int dtype);
/* The dtype of a name, or -1. */
FLOW_API int         flow_dtype_find(const char *name);
/* Bytes of one element; 0: there is no such dtype. */
FLOW_API int         flow_dtype_size(int dtype);
/* The dtype in which an op over operands of dtypes a and b computes, as in Keras. There is no int16: int8 with uint8 gives
 * int32. */
FLOW_API int         flow_dtype_promote(int a, int b);
/* The dtype that a number takes in an op with a tensor of `dtype`: that dtype if it can hold the value, else the next one that
 * can (core/ops/promotion.c). */
FLOW_API int         flow_dtype_of_number(int dtype, double value);
/* The same for a 64-bit integer, which a double could not hold exactly. */
FLOW_API int         flow_dtype_of_integer(int dtype, int64_t value);

/* New tensors: contiguous, 64-byte aligned. Each returns a new reference. */

/* A tensor of zeros. shape: rank sizes (rank 0 to FLOW_MAX_RANK), each from 0; it is copied. FLOW_INVALID_ARGUMENT for another
 * dtype, rank or size, FLOW_OUT_OF_MEMORY if there is no room. */
FLOW_API flow_status flow_tensor_new(int dtype, int rank, const int64_t *shape, flow_tensor **out);
/* A tensor of rank 0 with one value, cast to the dtype. */
FLOW_API flow_status flow_tensor_scalar(int dtype, double value, flow_tensor **out);
/* A tensor over the memory of the caller, contiguous, not copied. The memory has to stay until the last reference and view is
 * released, and must begin at a multiple of the size of an element. */
FLOW_API flow_status flow_tensor_borrow(void *data, int dtype, int rank, const int64_t *shape, flow_tensor **out);
/* start, start + step, ...: `count` elements of rank 1. count is a whole number from 0. */
FLOW_API flow_status flow_tensor_arange(int dtype, double start, double step, double count, flow_tensor **out);
/* The integers from start to before stop in steps of step, exact for int64. FLOW_INVALID_ARGUMENT for step 0. */
FLOW_API flow_status flow_tensor_arange_integers(int dtype, int64_t start, int64_t stop, int64_t step, flow_tensor **out);
/* A tensor over the memory of `source`, which it keeps alive. strides and offset count elements, not bytes; strides may be 0 or
 * negative. FLOW_INVALID_ARGUMENT if an element would be outside the source. */
FLOW_API flow_status flow_tensor_view(flow_tensor *source, int rank, const int64_t *shape, const int64_t *strides,
                                      int64_t offset, flow_tensor **out);
/* The view at one position of the first axis, from 0, without that axis. FLOW_INVALID_ARGUMENT: there is none. */
FLOW_API flow_status flow_tensor_view_at(flow_tensor *source, int64_t position, flow_tensor **out);
/* One more reference; returns the same tensor. From any thread. */
FLOW_API flow_tensor *flow_tensor_retain(flow_tensor *tensor);
/* One reference less; the last one frees it. NULL is fine. From any thread. */
FLOW_API void        flow_tensor_release(flow_tensor *tensor);
/* The mask that the tensor carries, as a layer sets one on its output: bool, of the tensor's first axes, such as {batch, steps}; false
 * where a step does not count. Ops give tensors without one. Borrowed; NULL: none. */
FLOW_API flow_tensor *flow_tensor_mask(const flow_tensor *tensor);
/* Lets it carry another one, of which it keeps a reference; NULL: none. A tensor that several threads share has to have its mask before.
 * FLOW_INVALID_ARGUMENT for a mask that has a mask. */
FLOW_API flow_status flow_tensor_set_mask(flow_tensor *tensor, flow_tensor *mask);

/* Its flow_dtype. */
FLOW_API int         flow_tensor_dtype(const flow_tensor *tensor);
/* Its number of dimensions, 0 for a single number. */
FLOW_API int         flow_tensor_rank(const flow_tensor *tensor);
/* The size of axis `axis`, which counts from 0. In a trace -k stands for k times the rows of the batch. */
FLOW_API double      flow_tensor_dim(const flow_tensor *tensor, int axis);
/* Elements from one position of the axis to the next. */
FLOW_API double      flow_tensor_stride(const flow_tensor *tensor, int axis);
/* The number of elements. Negative in a trace if it depends on the batch. */
FLOW_API double      flow_tensor_size(const flow_tensor *tensor);
/* 1: it stands for a value of a trace and has no data. */
FLOW_API int         flow_tensor_is_symbolic(const flow_tensor *tensor);
/* 1: its elements are one after the other in row-major order. */
FLOW_API int         flow_tensor_is_contiguous(const flow_tensor *tensor);
/* The address of its first element, in host memory. Borrowed; valid as long as the tensor. NULL if it is symbolic or on a device.
 * Writing there changes every tensor that shares the memory. */
FLOW_API void       *flow_tensor_data(const flow_tensor *tensor);
/* How many tensors share its memory, itself included; 0 if it is symbolic. */
FLOW_API int         flow_tensor_owners(const flow_tensor *tensor);
/* The value of a tensor with exactly one element. An int64 beyond 2^53 is rounded, any NaN is NAN. FLOW_INVALID_STATE if it is symbolic. */
FLOW_API flow_status flow_tensor_item(const flow_tensor *tensor, double *out);
/* The element at `position`, rank numbers that count from 0. */
FLOW_API flow_status flow_tensor_get(const flow_tensor *tensor, const int64_t *position, double *out);
/* Writes it, cast to the dtype. Every tensor that shares the memory sees the value. */
FLOW_API flow_status flow_tensor_set(flow_tensor *tensor, const int64_t *position, double value);
/* Writes one value into all elements. */
FLOW_API flow_status flow_tensor_fill(flow_tensor *tensor, double value);
/* Copies from into to: the shape of `from` is broadcast to that of `to`, values are cast. Both may be strided, and they may
 * overlap. */
FLOW_API flow_status flow_tensor_copy(flow_tensor *to, const flow_tensor *from);
/* The tensor itself if it is contiguous, else a copy. Returns a new reference in both cases. */
FLOW_API flow_status flow_tensor_contiguous(flow_tensor *tensor, flow_tensor **out);
/* Writes all elements in row-major order as doubles to out. count: the room in out, which has to be the number of elements. */
FLOW_API flow_status flow_tensor_read(const flow_tensor *tensor, double *out, double count);
/* The reverse: count values, cast to the dtype. */
FLOW_API flow_status flow_tensor_write(flow_tensor *tensor, const double *values, double count);
/* Text as NumPy prints it (threshold 1000, 3 edge items, precision 4) without a header. Writes at most size bytes
 * with the final NUL and returns the length that the whole text has. */
FLOW_API int         flow_tensor_format(const flow_tensor *tensor, char *text, int size);
/* Rows first..first+count-1 of the permutation `order` (int64, from 0; NULL = identity) out of source into the first
 * rows of `into`: the batch feeder of fit. Same dtype and trailing shape, both contiguous. */
FLOW_API flow_status flow_tensor_gather_rows(const flow_tensor *source, const flow_tensor *order, double first, double count,
                                             flow_tensor *into);
/* Permutes an int64 tensor of rank 1 in place, by Fisher and Yates with numbers of Philox. The same seed gives the same order on
 * every machine. */
FLOW_API flow_status flow_tensor_shuffle(flow_tensor *order, double seed);

/* Writes a .npy file; if that fails an older file of this name is still there. */
FLOW_API flow_status flow_tensor_save_npy(const flow_tensor *tensor, const char *path);
/* Reads a .npy file of version 1 to 3. Returns a new reference. FLOW_CORRUPT_DATA if the content contradicts the format. */
FLOW_API flow_status flow_tensor_load_npy(const char *path, flow_tensor **out);
/* Reads one array of a .npz archive; `member` is its name without ".npy". FLOW_NOT_FOUND names those that are there. */
FLOW_API flow_status flow_tensor_load_npz(const char *path, const char *member, flow_tensor **out);
/* Reads an IDX file (MNIST), gzipped or not. */
FLOW_API flow_status flow_tensor_load_idx(const char *path, flow_tensor **out);

/* ---- names ----------------------------------------------------------------------------------------------------- */

/* The index of the name that `asked` was probably meant to be, of equally near ones the first; -1: none is near. most: how many letters
 * may be wrong, missing, too many or swapped with their neighbour; negative: a third of them. Case does not count. */
FLOW_API int         flow_nearest_name(const char *asked, const char *const *names, int count, int most);
/* Keras' snake case of a class name: "Conv2D" gives "conv2d", "MaxPooling2D" "max_pooling2d", "ReLU" "re_lu". Returns the length of the
 * whole text, and writes at most size bytes of it with their zero. */
FLOW_API int         flow_snake_case(const char *class_name, char *text, int size);

/* ---- ops ------------------------------------------------------------------------------------------------------- */

/* How many ops there are. Their numbers run from 0. */
FLOW_API int         flow_op_count(void);
/* The number of an op, or -1. Numbers may differ between versions; names do not. */
FLOW_API int         flow_op_find(const char *name);
/* Its name. Borrowed, static. */
FLOW_API const char *flow_op_name(int op);
/* One line: what it computes and which attributes it reads. Borrowed, static. */
FLOW_API const char *flow_op_doc(int op);
/* How many outputs it has. */
FLOW_API int         flow_op_outputs(int op);
/* The number of inputs of an elementwise op that users call; 0: it is another op. */
FLOW_API int flow_op_elementwise(int op);
/* 1: it reduces one input along reduce.axes, or along all where there are none; else 0. */
FLOW_API int flow_op_reduction(int op);
/* Runs `op` at once, or appends it to the trace that a symbolic input belongs to, and to the recording tapes.
 * Fills outputs[0 .. flow_op_outputs(op)-1] with new references; on failure none is set. */
FLOW_API flow_status flow_apply(flow_context *context, int op, flow_tensor *const *inputs, int input_count,
                                const flow_attributes *attributes, flow_tensor **outputs);

/* Runs elementwise ops one after the other, chain->fused.steps. A step names its operands by number: 0 to input_count - 1 are inputs[],
 * input_count + s is the result of step s. The result of the last step is what flow_apply would give, step by step; it takes one pass over
 * memory where all operands are float32, or float64 on the CPU, and no trace or tape records it. */
FLOW_API flow_status flow_apply_chain(flow_context *context, flow_tensor *const *inputs, int input_count, const flow_attributes *chain,
                                      flow_tensor **out);

/* Composites of ops, with Keras' semantics (see core/autodiff/composites.c). Each returns a new reference. */

/* The mean along reduce->reduce.axes, float32 summed in float64. */
FLOW_API flow_status flow_mean(flow_context *context, flow_tensor *x, const flow_attributes *reduce, flow_tensor **out);
/* An activation by its Keras name. FLOW_INVALID_ARGUMENT names the known ones. */
FLOW_API flow_status flow_activate(flow_context *context, const char *activation, flow_tensor *x, flow_tensor **out);
/* Whether there is an activation of this name. */
FLOW_API int         flow_activation_known(const char *name);

/* ---- variables ------------------------------------------------------------------------------------------------- */

/* A variable with a copy of `initial`. name is copied. trainable: whether tapes watch it and optimizers of models train it.
 * sync: a flow_sync, how its copies on several replicas relate. Returns a new reference. */
FLOW_API flow_status flow_variable_new(flow_tensor *initial, const char *name, int trainable, int sync, flow_variable **out);
/* One more reference. From any thread. */
FLOW_API flow_variable *flow_variable_retain(flow_variable *variable);
/* One reference less. Plans, layers and optimizers that use the variable hold their own references. NULL is fine. */
FLOW_API void        flow_variable_release(flow_variable *variable);
/* Borrowed, as long as the variable. */
FLOW_API const char *flow_variable_name(const flow_variable *variable);
/* Whether it is trainable. */
FLOW_API int         flow_variable_trainable(const flow_variable *variable);
/* Changes that for tapes that begin and models that are compiled after it. */
FLOW_API void        flow_variable_set_trainable(flow_variable *variable, int trainable);
/* A number that grows with every write outside a plan. */
FLOW_API double      flow_variable_version(const flow_variable *variable);
/* 64 bits of the bytes of each variable, by which copies of it can be compared: bytes that differ within eight of them have another hash,
 * others except for one time in 2^64 (XXH64). device: of the copy that a replica on that GPU works with; -1: of the variable itself. 0 for
 * SUM_ON_READ, whose copies differ. Waits for devices. */
FLOW_API flow_status flow_variables_hash(flow_variable *const *variables, int count, int device, uint64_t *hashes);
/* A new reference to its storage, to be read or written: the tensor sees later writes, until an optimizer moves the variable to its arena
 * or to a device, or, where several workers train it, until its next update. */
FLOW_API flow_status flow_variable_tensor(flow_variable *variable, flow_tensor **out);
/* The same to be read only, before the variable's next update; cheaper where workers share the memory that they train. */
FLOW_API flow_status flow_variable_peek(flow_variable *variable, flow_tensor **out);
/* Its value. In a trace: a symbolic tensor of the version that is current at this point.
 * Else a view of the storage, or a copy while a tape records. New reference. */
FLOW_API flow_status flow_variable_read(flow_context *context, flow_variable *variable, flow_tensor **out);
/* Sets the value: broadcast to its shape, cast to its dtype. In a trace it is an effect: done at the end of a run, together with all
 * others, or not at all if the run fails. */
FLOW_API flow_status flow_variable_assign(flow_context *context, flow_variable *variable, flow_tensor *value);
/* Adds to it, under the same rules. */
FLOW_API flow_status flow_variable_assign_add(flow_context *context, flow_variable *variable, flow_tensor *value);
/* Reading the variable yields this value, cast to its dtype and broadcast to its shape, until the same call with NULL: the tensor
 * itself, so that tapes give gradients with respect to what it was made of. In a trace this holds for that trace alone. Assignments
 * meanwhile change the lent value and the variable, which the caller sets to the value before, and afterwards to what it was. */
FLOW_API flow_status flow_variable_lend(flow_context *context, flow_variable *variable, flow_tensor *value);
/* The value of a variable with one element, for reading metrics and counters in a loop. Never fails; waits for a device. */
FLOW_API double      flow_variable_number(const flow_variable *variable);

/* ---- tapes ------------------------------------------------------------------------------------------------------ */

/* Starts recording what this context computes. Tapes may be nested. Returns a new reference. FLOW_INVALID_STATE if too many
 * record. */
FLOW_API flow_status flow_tape_begin(flow_context *context, flow_tape **out);
/* Stops recording. Gradients may be asked for before and after. FLOW_INVALID_STATE if this tape does not record. */
FLOW_API flow_status flow_tape_end(flow_context *context, flow_tape *tape);
/* Frees it and what it remembers. NULL is fine. */
FLOW_API void        flow_tape_release(flow_tape *tape);
/* Gradients with respect to this tensor can be asked for. Trainable variables are watched by being read. */
FLOW_API flow_status flow_tape_watch(flow_tape *tape, flow_tensor *tensor);
/* The trainable variables that were read while the tape recorded, in the order of their readings: one that was read twice is there twice.
 * Writes at most `room` of them into `variables`, borrowed; returns how many there are. */
FLOW_API int flow_tape_variables(const flow_tape *tape, flow_variable **variables, int room);
/* Gradients of the sum of target's elements. Source i is variables[i] if not NULL, else tensors[i]. out[i] is a new
 * reference, or NULL where target does not depend on source i. */
FLOW_API flow_status flow_tape_gradient(flow_context *context, flow_tape *tape, flow_tensor *target, flow_tensor *const *tensors,
                                        flow_variable *const *variables, int count, flow_tensor **out);
/* The same of several targets, each times its output gradient: a tensor of the target's shape and dtype, as a loss that continues the
 * computation elsewhere would hand it back. NULL, for one target or for all, stands for ones. */
FLOW_API flow_status flow_tape_gradients(flow_context *context, flow_tape *tape, flow_tensor *const *targets,
                                         flow_tensor *const *output_gradients, int target_count, flow_tensor *const *tensors,
                                         flow_variable *const *variables, int count, flow_tensor **out);

/* ---- parts ---------------------------------------------------------------------------------------------------------------- */

#include "flow_run.h"
#include "flow_train.h"
#include "flow_model.h"
#include "flow_files.h"
#include "flow_data.h"
#include "flow_text.h"
#include "flow_distribute.h"
#include "flow_devices.h"

#ifdef __cplusplus
}
#endif
#endif
