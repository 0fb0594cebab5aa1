-- Generated from bindings/flow.h by scripts/gen_cdef. Do not edit: change flow.h and run the script.
return [[
enum { FLOW_ABI_VERSION = 1, FLOW_MAX_RANK = 8, FLOW_MAX_OPERANDS = 16, FLOW_MAX_COMPONENTS = 64 };
typedef enum flow_status {
 FLOW_OK = 0,
 FLOW_INVALID_ARGUMENT,
 FLOW_INVALID_STATE,
 FLOW_OUT_OF_MEMORY,
 FLOW_NOT_FOUND,
 FLOW_UNSUPPORTED,
 FLOW_CORRUPT_DATA,
 FLOW_IO_ERROR,
 FLOW_INTERRUPTED,
 FLOW_ABORTED,
 FLOW_TIMED_OUT,
 FLOW_INTERNAL
} flow_status;
typedef enum flow_dtype {
 FLOW_FLOAT32 = 0, FLOW_FLOAT16, FLOW_BFLOAT16, FLOW_FLOAT64,
 FLOW_INT8, FLOW_UINT8, FLOW_INT32, FLOW_INT64, FLOW_BOOL,
 FLOW_DTYPE_COUNT
} flow_dtype;
typedef enum flow_log_level { FLOW_LOG_PRINT = 0, FLOW_LOG_INFO, FLOW_LOG_WARNING } flow_log_level;
typedef enum flow_sync { FLOW_MIRRORED = 0, FLOW_MEAN_ON_READ, FLOW_SUM_ON_READ } flow_sync;
typedef enum flow_activation { FLOW_LINEAR = 0, FLOW_RELU } flow_activation;
typedef enum flow_transposed { FLOW_TRANSPOSED_KERNEL = 1, FLOW_TRANSPOSED_GRADIENT = 2 } flow_transposed;
typedef enum flow_interpolation {
 FLOW_NEAREST = 0, FLOW_BILINEAR, FLOW_BICUBIC, FLOW_AREA, FLOW_LANCZOS3, FLOW_LANCZOS5
} flow_interpolation;
typedef enum flow_fill_mode { FLOW_FILL_REFLECT = 0, FLOW_FILL_WRAP, FLOW_FILL_CONSTANT, FLOW_FILL_NEAREST } flow_fill_mode;
typedef union flow_attributes {
 struct { int32_t dtype; } cast;
 struct { int32_t rank; int32_t unused; int64_t dims[8]; } shape;
 struct { int32_t count; int32_t keepdims; int32_t axes[8]; int32_t base; } reduce;
 struct { int32_t rank; int32_t axes[8]; } transpose;
 struct { int32_t axis; } axis;
 struct { int32_t axis, reverse, exclusive, base; int64_t size; } along;
 struct {
 int64_t size, count;
 int32_t inverse, unused;
 } fourier;
 struct {
 int32_t lower, transposed, full, unused;
 } matrix;
 struct { int32_t rank; int32_t unused; int64_t begin[8], end[8], step[8], dims[8]; } slice;
 struct { int32_t transpose_a, transpose_b, activation, swapped; } matmul;
 struct {
 int32_t stride[2], dilation[2], padding[4];
 int32_t groups, activation;
 int32_t pool[2], pool_stride[2];
 int32_t has_bias;
 int32_t input_size[2];
 double input_scale;
 int32_t transposed;
 double input_low, input_high;
 double low, high;
 int32_t pointwise_activation, pointwise_has_bias;
 double ceiling, pointwise_ceiling;
 } convolution;
 struct { double low, high; } quantization;
 struct { int32_t dtype, back; } transpose_filters;
 struct { int32_t size[2], stride[2], padding[4]; int32_t input_size[2]; } pool;
 struct { int32_t size[2], input_size[2], interpolation, antialias; } resize;
 struct { int32_t interpolation, fill_mode; double fill_value; } sampling;
 struct {
 double rate;
 uint64_t seed, stream;
 int32_t own_seed;
 } dropout;
 struct {
 int32_t rank, dtype;
 int64_t dims[8];
 double low, high;
 uint64_t seed, stream;
 int32_t keyed_by_step, own_seed;
 } random;
 struct {
 double epsilon;
 int32_t axis, uncentered;
 } normalization;
 struct { int32_t reverse, history, reset_after; } recurrent;
 struct { int32_t number, unused; uint64_t stream; } loop;
 struct {
 double momentum, beta_1, beta_2, epsilon, rho;
 double weight_decay;
 int32_t nesterov, amsgrad, centered;
 int32_t products;
 int64_t first[4];
 int32_t copies, unused;
 } optimizer;
 struct { int32_t kind; } schedule;
 struct { double value; int32_t rank, dtype; int64_t dims[8]; } fill;
 struct {
 int32_t count;
 struct {
 int16_t op;
 uint8_t inputs[3], dtype;
 } steps[32];
 } fused;
} flow_attributes;
typedef struct flow_context flow_context;
typedef struct flow_tensor flow_tensor;
typedef struct flow_variable flow_variable;
typedef struct flow_tape flow_tape;
typedef struct flow_plan flow_plan;
typedef struct flow_instance flow_instance;
typedef struct flow_layer flow_layer;
typedef struct flow_group_names flow_group_names;
typedef struct flow_optimizer flow_optimizer;
typedef struct flow_loss_scale flow_loss_scale;
typedef struct flow_schedule flow_schedule;
typedef struct flow_record_writer flow_record_writer;
typedef struct flow_tensor_writer flow_tensor_writer;
typedef struct flow_save flow_save;
typedef struct flow_tensor_file flow_tensor_file;
typedef struct flow_archive flow_archive;
typedef struct flow_archive_writer flow_archive_writer;
typedef struct flow_csv flow_csv;
typedef struct flow_example flow_example;
typedef struct flow_event_writer flow_event_writer;
typedef struct flow_scopes flow_scopes;
typedef struct flow_listing flow_listing;
typedef struct flow_arguments flow_arguments;
typedef struct flow_dataset flow_dataset;
typedef struct flow_function flow_function;
typedef struct flow_session flow_session;
typedef struct flow_model flow_model;
typedef struct flow_json flow_json;
typedef struct flow_iterator flow_iterator;
typedef struct flow_cluster flow_cluster;
typedef struct flow_server flow_server;
typedef struct flow_server_link flow_server_link;
typedef struct flow_worker flow_worker;
typedef struct flow_device_group flow_device_group;
typedef enum flow_error_field {
 FLOW_ERROR_ROW,
 FLOW_ERROR_LABEL,
 FLOW_ERROR_STEP,
 FLOW_ERROR_TASK,
 FLOW_ERROR_FIELD_COUNT
} flow_error_field;
typedef enum flow_gathers {
 FLOW_GATHERS_NOT = 0,
 FLOW_GATHERS_LOCAL,
 FLOW_GATHERS_WORKERS,
 FLOW_GATHERS_MESSAGES
} flow_gathers;
typedef struct flow_profile_entry {
 const char *op, *variant;
 char shape[96];
 double seconds, calls;
 double bytes;
} flow_profile_entry;
typedef struct flow_profile_event {
 int32_t entry, thread;
 double begin, end;
 double busy;
} flow_profile_event;
typedef struct flow_measurement {
 const char *op, *variant;
 char shape[128];
 int supported, chosen;
 double multiply_adds;
 double bytes;
 double cost;
 double seconds;
} flow_measurement;
typedef enum flow_quantizing { FLOW_NOT_QUANTIZED = 0, FLOW_QUANTIZED, FLOW_QUANTIZED_BY_ROW, FLOW_CALIBRATING } flow_quantizing;
enum { FLOW_CHOICE_INITIALIZER = 0, FLOW_CHOICE_REGULARIZER, FLOW_CHOICE_CONSTRAINT };
typedef struct flow_update flow_update;
enum { FLOW_INITIAL_LOSS_SCALE = 32768, FLOW_LOSS_SCALE_GROWTH_STEPS = 2000 };
enum { FLOW_JSON_NULL = 0, FLOW_JSON_BOOLEAN, FLOW_JSON_NUMBER, FLOW_JSON_TEXT, FLOW_JSON_LIST, FLOW_JSON_OBJECT,
 FLOW_JSON_REAL,
 FLOW_JSON_PRINTED };
typedef struct flow_board flow_board;
enum { FLOW_PATH_NONE = 0, FLOW_PATH_FILE, FLOW_PATH_FOLDER, FLOW_PATH_OTHER };
typedef struct flow_element {
 int32_t count, callback;
 int64_t pass, numbers;
 flow_tensor *tensors[FLOW_MAX_COMPONENTS];
} flow_element;
typedef struct flow_component {
 int32_t dtype, rank, text, unused;
 int64_t shape[8];
} flow_component;
enum { FLOW_SHARD_KEEP = -2, FLOW_SHARD_OFF = -1, FLOW_SHARD_AUTO = 0, FLOW_SHARD_FILE, FLOW_SHARD_DATA, FLOW_SHARD_HINT };
typedef struct flow_stage_report {
 const char *name;
 int32_t depth, threads;
 double elements, seconds;
 double queued, capacity;
 double waited;
} flow_stage_report;
typedef struct flow_strings {
 const flow_tensor *values, *offsets;
 int32_t is_text, rank;
 int64_t shape[8];
 int32_t is_column, unused;
} flow_strings;
enum { FLOW_STANDARDIZE_LOWER = 1, FLOW_STANDARDIZE_STRIP_PUNCTUATION = 2 };
enum { FLOW_SPLIT_NONE = 0, FLOW_SPLIT_WHITESPACE, FLOW_SPLIT_CHARACTER };
enum { FLOW_ENCODE_INT = 0, FLOW_ENCODE_ONE_HOT, FLOW_ENCODE_MULTI_HOT, FLOW_ENCODE_COUNT, FLOW_ENCODE_TF_IDF };
enum { FLOW_HASH_FARM = 0, FLOW_HASH_SIP, FLOW_HASH_REMAINDER };
typedef struct flow_lookup_options {
 int32_t standardize, split;
 int32_t ngram_count, ngrams[8];
 int32_t encode, dtype;
 int32_t hash;
 int32_t has_mask;
 uint64_t key[2];
 double length;
 double buckets;
 double depth;
} flow_lookup_options;
typedef struct flow_lookup flow_lookup;
typedef struct flow_token_counts flow_token_counts;
typedef enum flow_job { FLOW_JOB_CHIEF = 0, FLOW_JOB_WORKER, FLOW_JOB_PS, FLOW_JOB_EVALUATOR, FLOW_JOB_COUNT } flow_job;
typedef struct flow_worker_options {
 const char *implementation;
 double timeout_seconds;
 double start_within;
 double heartbeat, dead_after;
 const char *job;
 double rejoin_within;
 const char *gradient_dtype;
 int min_workers, shards;
 double shrink_after;
 int pairwise;
} flow_worker_options;
typedef struct flow_server_event { int peer, left; const char *text; char *bytes; double count; } flow_server_event;
typedef struct flow_monitor flow_monitor;
typedef struct flow_gpu_traffic { double uploads, uploaded_bytes, downloads, downloaded_bytes, waits, replays; } flow_gpu_traffic;
typedef struct flow_row_store flow_row_store;
]]
