-- Generated from bindings/flow.h by scripts/gen_cdef. Do not edit: change flow.h and run the script.
return { types = [[
enum { FLOW_ABI_VERSION = 1, FLOW_MAX_RANK = 8, FLOW_MAX_OPERANDS = 16, FLOW_MAX_COMPONENTS = 8 };
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
typedef enum flow_turned { FLOW_TURNED_KERNEL = 1, FLOW_TURNED_GRADIENT = 2 } flow_turned;
typedef enum flow_interpolation { FLOW_NEAREST = 0, FLOW_BILINEAR, FLOW_BICUBIC, FLOW_AREA, FLOW_LANCZOS3, FLOW_LANCZOS5 } flow_interpolation;
typedef enum flow_fill_mode { FLOW_FILL_REFLECT = 0, FLOW_FILL_WRAP, FLOW_FILL_CONSTANT, FLOW_FILL_NEAREST } flow_fill_mode;
typedef union flow_attributes {
 struct { int32_t dtype; } cast;
 struct { int32_t rank; int32_t unused; int64_t dims[8]; } shape;
 struct { int32_t count; int32_t keepdims; int32_t axes[8]; int32_t base; } reduce;
 struct { int32_t rank; int32_t axes[8]; } transpose;
 struct { int32_t axis; } axis;
 struct { int32_t rank; int32_t unused; int64_t begin[8], end[8], step[8], dims[8]; } slice;
 struct { int32_t transpose_a, transpose_b, activation; } matmul;
 struct {
 int32_t stride[2], dilation[2], padding[4];
 int32_t groups, activation;
 int32_t pool[2], pool_stride[2];
 int32_t has_bias;
 int32_t input_size[2];
 double input_scale;
 int32_t turned;
 } convolution;
 struct { int32_t dtype, back; } turn;
 struct { int32_t size[2], stride[2], padding[4]; int32_t input_size[2]; } pool;
 struct { int32_t size[2], input_size[2], interpolation, antialias; } resize;
 struct { int32_t interpolation, fill_mode; double fill_value; } sampling;
 struct { double rate; uint64_t seed, stream; } dropout;
 struct { int32_t rank, dtype; int64_t dims[8]; double low, high; uint64_t seed, stream; int32_t keyed_by_step; } random;
 struct { double epsilon; int32_t axis; } normalization;
 struct {
 double momentum, beta_1, beta_2, epsilon, rho;
 double weight_decay;
 int32_t nesterov, amsgrad, centered;
 int32_t products;
 int64_t first[4];
 } optimizer;
 struct { int32_t kind; } schedule;
 struct { double value; int32_t rank, dtype; int64_t dims[8]; } fill;
 struct { int32_t count; struct { int16_t op; uint8_t inputs[3], dtype; } steps[12]; } fused;
} flow_attributes;
typedef struct flow_context flow_context;
typedef struct flow_tensor flow_tensor;
typedef struct flow_variable flow_variable;
typedef struct flow_tape flow_tape;
typedef struct flow_plan flow_plan;
typedef struct flow_instance flow_instance;
typedef struct flow_layer flow_layer;
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
typedef struct flow_worker flow_worker;
typedef struct flow_device_group flow_device_group;
typedef enum flow_error_field {
 FLOW_ERROR_ROW,
 FLOW_ERROR_LABEL,
 FLOW_ERROR_STEP,
 FLOW_ERROR_TASK,
 FLOW_ERROR_FIELD_COUNT
} flow_error_field;
typedef enum flow_gathers { FLOW_GATHERS_NOT = 0, FLOW_GATHERS_LOCAL, FLOW_GATHERS_WORKERS } flow_gathers;
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
enum { FLOW_CHOICE_INITIALIZER = 0, FLOW_CHOICE_REGULARIZER };
enum { FLOW_INITIAL_LOSS_SCALE = 32768, FLOW_LOSS_SCALE_GROWTH_STEPS = 2000 };
enum { FLOW_JSON_NULL = 0, FLOW_JSON_BOOLEAN, FLOW_JSON_NUMBER, FLOW_JSON_TEXT, FLOW_JSON_LIST, FLOW_JSON_OBJECT,
 FLOW_JSON_REAL,
 FLOW_JSON_PRINTED };
enum { FLOW_PATH_NONE = 0, FLOW_PATH_FILE, FLOW_PATH_FOLDER, FLOW_PATH_OTHER };
typedef struct flow_element {
 int32_t count, callback;
 int64_t pass, numbers;
 flow_tensor *tensors[8];
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
typedef enum flow_job { FLOW_JOB_CHIEF = 0, FLOW_JOB_WORKER, FLOW_JOB_PS, FLOW_JOB_EVALUATOR, FLOW_JOB_COUNT } flow_job;
typedef struct flow_worker_options {
 const char *implementation;
 double timeout_seconds;
 double start_within;
 double heartbeat, dead_after;
 const char *job;
 int pairwise;
} flow_worker_options;
typedef struct flow_gpu_traffic { double uploads, uploaded_bytes, downloads, downloaded_bytes, waits, replays; } flow_gpu_traffic;
typedef struct flow_row_store flow_row_store;
]], functions = {
  flow_abi_version = "int flow_abi_version(void)",
  flow_version = "const char *flow_version(void)",
  flow_last_error = "const char *flow_last_error(void)",
  flow_last_error_field = "double flow_last_error_field(int)",
  flow_status_name = "const char *flow_status_name(int)",
  flow_log = "void flow_log(int,const char *)",
  flow_log_to_stdio = "void flow_log_to_stdio(int)",
  flow_log_stdio = "int flow_log_stdio(void)",
  flow_log_take = "int flow_log_take(int *,char *,int)",
  flow_clock = "double flow_clock(void)",
  flow_terminal_columns = "int flow_terminal_columns(void)",
  flow_isa = "const char *flow_isa(void)",
  flow_set_threads = "int flow_set_threads(int)",
  flow_threads = "int flow_threads(void)",
  flow_tape_depth = "int flow_tape_depth(const flow_context *)",
  flow_live_bytes = "double flow_live_bytes(void)",
  flow_allocation_count = "double flow_allocation_count(void)",
  flow_fail_allocation = "void flow_fail_allocation(double)",
  flow_plugin_count = "int flow_plugin_count(void)",
  flow_plugin_name = "const char *flow_plugin_name(int)",
  flow_plugin_purpose = "const char *flow_plugin_purpose(int)",
  flow_plugin_libraries = "int flow_plugin_libraries(int,const char **)",
  flow_context_new = "int flow_context_new(flow_context **)",
  flow_context_release = "void flow_context_release(flow_context *)",
  flow_scopes_new = "int flow_scopes_new(flow_context *,flow_scopes **)",
  flow_scopes_enter = "void flow_scopes_enter(flow_context *,flow_scopes *)",
  flow_scopes_release = "void flow_scopes_release(flow_scopes *)",
  flow_context_seed = "void flow_context_seed(flow_context *,double)",
  flow_context_next_seed = "double flow_context_next_seed(flow_context *)",
  flow_context_save = "int flow_context_save(const flow_context *,char *,int)",
  flow_context_restore = "int flow_context_restore(flow_context *,const char *)",
  flow_context_set_exact = "void flow_context_set_exact(flow_context *,int)",
  flow_context_exact = "int flow_context_exact(const flow_context *)",
  flow_context_set_autocast = "int flow_context_set_autocast(flow_context *,int)",
  flow_context_set_replicas = "void flow_context_set_replicas(flow_context *,int)",
  flow_context_replicas = "int flow_context_replicas(const flow_context *)",
  flow_context_set_gathers = "void flow_context_set_gathers(flow_context *,int)",
  flow_context_set_bucket_bytes = "void flow_context_set_bucket_bytes(flow_context *,double)",
  flow_context_set_blank = "void flow_context_set_blank(flow_context *,int)",
  flow_interrupt = "void flow_interrupt(flow_context *,int)",
  flow_interrupted = "int flow_interrupted(const flow_context *)",
  flow_dtype_name = "const char *flow_dtype_name(int)",
  flow_dtype_find = "int flow_dtype_find(const char *)",
  flow_dtype_size = "int flow_dtype_size(int)",
  flow_dtype_promote = "int flow_dtype_promote(int,int)",
  flow_dtype_of_number = "int flow_dtype_of_number(int,double)",
  flow_dtype_of_integer = "int flow_dtype_of_integer(int,int64_t)",
  flow_tensor_new = "int flow_tensor_new(int,int,const int64_t *,flow_tensor **)",
  flow_tensor_scalar = "int flow_tensor_scalar(int,double,flow_tensor **)",
  flow_tensor_borrow = "int flow_tensor_borrow(void *,int,int,const int64_t *,flow_tensor **)",
  flow_tensor_arange = "int flow_tensor_arange(int,double,double,double,flow_tensor **)",
  flow_tensor_arange_integers = "int flow_tensor_arange_integers(int,int64_t,int64_t,int64_t,flow_tensor **)",
  flow_tensor_view = "int flow_tensor_view(flow_tensor *,int,const int64_t *,const int64_t *,int64_t,flow_tensor **)",
  flow_tensor_retain = "flow_tensor *flow_tensor_retain(flow_tensor *)",
  flow_tensor_release = "void flow_tensor_release(flow_tensor *)",
  flow_tensor_dtype = "int flow_tensor_dtype(const flow_tensor *)",
  flow_tensor_rank = "int flow_tensor_rank(const flow_tensor *)",
  flow_tensor_dim = "double flow_tensor_dim(const flow_tensor *,int)",
  flow_tensor_stride = "double flow_tensor_stride(const flow_tensor *,int)",
  flow_tensor_size = "double flow_tensor_size(const flow_tensor *)",
  flow_tensor_is_symbolic = "int flow_tensor_is_symbolic(const flow_tensor *)",
  flow_tensor_is_contiguous = "int flow_tensor_is_contiguous(const flow_tensor *)",
  flow_tensor_data = "void *flow_tensor_data(const flow_tensor *)",
  flow_tensor_owners = "int flow_tensor_owners(const flow_tensor *)",
  flow_tensor_item = "int flow_tensor_item(const flow_tensor *,double *)",
  flow_tensor_get = "int flow_tensor_get(const flow_tensor *,const int64_t *,double *)",
  flow_tensor_set = "int flow_tensor_set(flow_tensor *,const int64_t *,double)",
  flow_tensor_fill = "int flow_tensor_fill(flow_tensor *,double)",
  flow_tensor_copy = "int flow_tensor_copy(flow_tensor *,const flow_tensor *)",
  flow_tensor_contiguous = "int flow_tensor_contiguous(flow_tensor *,flow_tensor **)",
  flow_tensor_read = "int flow_tensor_read(const flow_tensor *,double *,double)",
  flow_tensor_write = "int flow_tensor_write(flow_tensor *,const double *,double)",
  flow_tensor_format = "int flow_tensor_format(const flow_tensor *,char *,int)",
  flow_tensor_gather_rows = "int flow_tensor_gather_rows(const flow_tensor *,const flow_tensor *,double,double,flow_tensor *)",
  flow_tensor_shuffle = "int flow_tensor_shuffle(flow_tensor *,double)",
  flow_tensor_save_npy = "int flow_tensor_save_npy(const flow_tensor *,const char *)",
  flow_tensor_load_npy = "int flow_tensor_load_npy(const char *,flow_tensor **)",
  flow_tensor_load_npz = "int flow_tensor_load_npz(const char *,const char *,flow_tensor **)",
  flow_tensor_load_idx = "int flow_tensor_load_idx(const char *,flow_tensor **)",
  flow_op_count = "int flow_op_count(void)",
  flow_op_find = "int flow_op_find(const char *)",
  flow_op_name = "const char *flow_op_name(int)",
  flow_op_doc = "const char *flow_op_doc(int)",
  flow_op_outputs = "int flow_op_outputs(int)",
  flow_op_elementwise = "int flow_op_elementwise(int)",
  flow_apply = "int flow_apply(flow_context *,int,flow_tensor *const *,int,const flow_attributes *,flow_tensor **)",
  flow_mean = "int flow_mean(flow_context *,flow_tensor *,const flow_attributes *,flow_tensor **)",
  flow_activate = "int flow_activate(flow_context *,const char *,flow_tensor *,flow_tensor **)",
  flow_activation_known = "int flow_activation_known(const char *)",
  flow_variable_new = "int flow_variable_new(flow_tensor *,const char *,int,int,flow_variable **)",
  flow_variable_retain = "flow_variable *flow_variable_retain(flow_variable *)",
  flow_variable_release = "void flow_variable_release(flow_variable *)",
  flow_variable_name = "const char *flow_variable_name(const flow_variable *)",
  flow_variable_trainable = "int flow_variable_trainable(const flow_variable *)",
  flow_variable_set_trainable = "void flow_variable_set_trainable(flow_variable *,int)",
  flow_variable_version = "double flow_variable_version(const flow_variable *)",
  flow_variable_tensor = "int flow_variable_tensor(flow_variable *,flow_tensor **)",
  flow_variable_read = "int flow_variable_read(flow_context *,flow_variable *,flow_tensor **)",
  flow_variable_assign = "int flow_variable_assign(flow_context *,flow_variable *,flow_tensor *)",
  flow_variable_assign_add = "int flow_variable_assign_add(flow_context *,flow_variable *,flow_tensor *)",
  flow_variable_number = "double flow_variable_number(const flow_variable *)",
  flow_tape_begin = "int flow_tape_begin(flow_context *,flow_tape **)",
  flow_tape_end = "int flow_tape_end(flow_context *,flow_tape *)",
  flow_tape_release = "void flow_tape_release(flow_tape *)",
  flow_tape_watch = "int flow_tape_watch(flow_tape *,flow_tensor *)",
  flow_tape_gradient = "int flow_tape_gradient(flow_context *,flow_tape *,flow_tensor *,flow_tensor *const *,flow_variable *const *,int,flow_tensor **)",
  flow_tape_gradients = "int flow_tape_gradients(flow_context *,flow_tape *,flow_tensor *const *,flow_tensor *const *,int,flow_tensor *const *,flow_variable *const *,int,flow_tensor **)",
  flow_trace_begin = "int flow_trace_begin(flow_context *)",
  flow_trace_depth = "int flow_trace_depth(const flow_context *)",
  flow_trace_replicas = "int flow_trace_replicas(const flow_context *)",
  flow_trace_input = "int flow_trace_input(flow_context *,int,int,const int64_t *,flow_tensor **)",
  flow_trace_constant = "int flow_trace_constant(flow_context *,flow_tensor *,flow_tensor **)",
  flow_trace_end = "int flow_trace_end(flow_context *,flow_tensor *const *,int,flow_plan **)",
  flow_trace_abort = "void flow_trace_abort(flow_context *)",
  flow_trace_save_onnx = "int flow_trace_save_onnx(flow_context *,const char *,const char *,flow_tensor *const *,int,const char *const *,int,const char *const *)",
  flow_onnx_knows = "int flow_onnx_knows(int)",
  flow_plan_release = "void flow_plan_release(flow_plan *)",
  flow_plan_variable = "flow_variable *flow_plan_variable(flow_plan *,int)",
  flow_plan_describe = "int flow_plan_describe(const flow_plan *,char *,int)",
  flow_instance_new = "int flow_instance_new(flow_plan *,double,flow_instance **)",
  flow_instance_release = "void flow_instance_release(flow_instance *)",
  flow_instance_capacity = "double flow_instance_capacity(const flow_instance *)",
  flow_instance_describe = "int flow_instance_describe(const flow_instance *,char *,int)",
  flow_instance_scalars = "void flow_instance_scalars(flow_instance *,double,double,double)",
  flow_instance_replicate = "int flow_instance_replicate(flow_instance *,int,flow_device_group *,flow_worker *)",
  flow_instance_share_rows = "void flow_instance_share_rows(flow_instance *,int)",
  flow_instance_wish_stop = "void flow_instance_wish_stop(flow_instance *,int)",
  flow_instance_global_rows = "double flow_instance_global_rows(const flow_instance *)",
  flow_instance_stop_wished = "int flow_instance_stop_wished(const flow_instance *)",
  flow_instance_run_each = "int flow_instance_run_each(flow_context *,flow_instance *,flow_tensor *const *,int,flow_tensor **)",
  flow_instance_run = "int flow_instance_run(flow_context *,flow_instance *,flow_tensor *const *,int,flow_tensor **)",
  flow_instance_run_rows = "int flow_instance_run_rows(flow_context *,flow_instance *,flow_tensor *const *,int,const flow_tensor *,double,double)",
  flow_instance_run_batches = "int flow_instance_run_batches(flow_context *,flow_instance *,flow_tensor *const *,int,const flow_tensor *,double,double,double,double *)",
  flow_profile_begin = "int flow_profile_begin(flow_context *)",
  flow_profile_end = "void flow_profile_end(flow_context *)",
  flow_profile_count = "int flow_profile_count(const flow_context *)",
  flow_profile_at = "const flow_profile_entry *flow_profile_at(const flow_context *,int)",
  flow_profile_waiting = "double flow_profile_waiting(const flow_context *)",
  flow_profile_arena = "double flow_profile_arena(const flow_context *)",
  flow_profile_memory = "double flow_profile_memory(const flow_context *)",
  flow_profile_keep_events = "int flow_profile_keep_events(flow_context *,int)",
  flow_profile_event_count = "int flow_profile_event_count(const flow_context *)",
  flow_profile_event_at = "const flow_profile_event *flow_profile_event_at(const flow_context *,int)",
  flow_instance_entry_count = "int flow_instance_entry_count(const flow_instance *)",
  flow_instance_measure = "int flow_instance_measure(const flow_instance *,int,int,flow_measurement *)",
  flow_peak = "double flow_peak(void)",
  flow_arguments_new = "int flow_arguments_new(flow_arguments **)",
  flow_arguments_release = "void flow_arguments_release(flow_arguments *)",
  flow_arguments_set_number = "int flow_arguments_set_number(flow_arguments *,const char *,double)",
  flow_arguments_set_boolean = "int flow_arguments_set_boolean(flow_arguments *,const char *,int)",
  flow_arguments_set_text = "int flow_arguments_set_text(flow_arguments *,const char *,const char *)",
  flow_arguments_set_numbers = "int flow_arguments_set_numbers(flow_arguments *,const char *,const double *,int)",
  flow_arguments_set_nested = "int flow_arguments_set_nested(flow_arguments *,const char *,const double *,int,const int *)",
  flow_arguments_set_null = "int flow_arguments_set_null(flow_arguments *,const char *)",
  flow_layer_class_count = "int flow_layer_class_count(void)",
  flow_layer_class_name = "const char *flow_layer_class_name(int)",
  flow_layer_class_find = "int flow_layer_class_find(const char *)",
  flow_layer_class_positional = "int flow_layer_class_positional(int)",
  flow_layer_class_trains_alone = "int flow_layer_class_trains_alone(int)",
  flow_layer_class_argument_count = "int flow_layer_class_argument_count(int)",
  flow_layer_class_argument = "const char *flow_layer_class_argument(int,int)",
  flow_layer_class_argument_type = "const char *flow_layer_class_argument_type(int,int)",
  flow_layer_class_argument_default = "const char *flow_layer_class_argument_default(int,int)",
  flow_layer_class_doc = "const char *flow_layer_class_doc(int)",
  flow_layer_new = "int flow_layer_new(const char *,const char *,const flow_arguments *,flow_layer **)",
  flow_layer_release = "void flow_layer_release(flow_layer *)",
  flow_layer_name = "const char *flow_layer_name(const flow_layer *)",
  flow_layer_build = "int flow_layer_build(flow_context *,flow_layer *,int,const int *,const int64_t *const *)",
  flow_layer_built = "int flow_layer_built(const flow_layer *)",
  flow_layer_policy = "const char *flow_layer_policy(const flow_layer *)",
  flow_layer_call = "int flow_layer_call(flow_context *,flow_layer *,flow_tensor *const *,int,int,flow_tensor **)",
  flow_layer_variable_count = "int flow_layer_variable_count(const flow_layer *)",
  flow_layer_variable = "flow_variable *flow_layer_variable(const flow_layer *,int)",
  flow_layer_trainable = "int flow_layer_trainable(const flow_layer *)",
  flow_layer_set_trainable = "void flow_layer_set_trainable(flow_layer *,int)",
  flow_layer_penalty = "int flow_layer_penalty(flow_context *,const flow_layer *,flow_tensor **)",
  flow_layer_from_config = "int flow_layer_from_config(const char *,const char *,flow_layer **)",
  flow_layer_config = "int flow_layer_config(const flow_layer *,char *,int)",
  flow_choice_name = "const char *flow_choice_name(int,int)",
  flow_choice_parameter = "const char *flow_choice_parameter(int,int,int)",
  flow_initialize = "int flow_initialize(flow_context *,const char *,const flow_arguments *,double,flow_tensor *)",
  flow_loss_find = "int flow_loss_find(const char *)",
  flow_loss_name = "const char *flow_loss_name(int)",
  flow_loss_values = "int flow_loss_values(flow_context *,int,const flow_arguments *,flow_tensor *,flow_tensor *,flow_tensor **)",
  flow_metric_find = "int flow_metric_find(const char *)",
  flow_metric_name = "const char *flow_metric_name(int)",
  flow_metric_values = "int flow_metric_values(flow_context *,int,const flow_arguments *,flow_tensor *,flow_tensor *,flow_tensor **)",
  flow_loss_reduce = "int flow_loss_reduce(flow_context *,flow_tensor *,flow_tensor *,flow_tensor **)",
  flow_optimizer_class_find = "int flow_optimizer_class_find(const char *)",
  flow_optimizer_class_argument_count = "int flow_optimizer_class_argument_count(int)",
  flow_optimizer_class_name = "const char *flow_optimizer_class_name(int)",
  flow_optimizer_class_argument = "const char *flow_optimizer_class_argument(int,int)",
  flow_optimizer_class_argument_type = "const char *flow_optimizer_class_argument_type(int,int)",
  flow_optimizer_class_argument_default = "const char *flow_optimizer_class_argument_default(int,int)",
  flow_optimizer_new = "int flow_optimizer_new(const char *,const char *,const flow_arguments *,flow_optimizer **)",
  flow_optimizer_from_config = "int flow_optimizer_from_config(const char *,flow_optimizer **)",
  flow_optimizer_release = "void flow_optimizer_release(flow_optimizer *)",
  flow_optimizer_name = "const char *flow_optimizer_name(const flow_optimizer *)",
  flow_optimizer_class_index = "int flow_optimizer_class_index(const flow_optimizer *)",
  flow_optimizer_config = "int flow_optimizer_config(const flow_optimizer *,char *,int)",
  flow_optimizer_apply = "int flow_optimizer_apply(flow_context *,flow_optimizer *,flow_tensor *const *,flow_variable *const *,int)",
  flow_optimizer_build = "int flow_optimizer_build(flow_optimizer *,flow_variable *const *,int)",
  flow_optimizer_set_schedule = "int flow_optimizer_set_schedule(flow_optimizer *,flow_schedule *)",
  flow_optimizer_schedule = "flow_schedule *flow_optimizer_schedule(const flow_optimizer *)",
  flow_optimizer_apply_at = "int flow_optimizer_apply_at(flow_context *,flow_optimizer *,flow_tensor *,flow_tensor *const *,flow_variable *const *,int)",
  flow_optimizer_apply_scaled = "int flow_optimizer_apply_scaled(flow_context *,flow_optimizer *,flow_loss_scale *,flow_tensor *,flow_tensor *const *,flow_variable *const *,int)",
  flow_optimizer_exclude_from_weight_decay = "int flow_optimizer_exclude_from_weight_decay(flow_optimizer *,flow_variable *,const char *)",
  flow_optimizer_learning_rate = "flow_variable *flow_optimizer_learning_rate(flow_optimizer *)",
  flow_optimizer_iterations = "flow_variable *flow_optimizer_iterations(flow_optimizer *)",
  flow_optimizer_slot_count = "int flow_optimizer_slot_count(const flow_optimizer *)",
  flow_optimizer_slot = "flow_variable *flow_optimizer_slot(const flow_optimizer *,int)",
  flow_loss_scale_new = "int flow_loss_scale_new(const char *,double,double,flow_loss_scale **)",
  flow_loss_scale_release = "void flow_loss_scale_release(flow_loss_scale *)",
  flow_loss_scale_name = "const char *flow_loss_scale_name(const flow_loss_scale *)",
  flow_loss_scale_variable = "flow_variable *flow_loss_scale_variable(const flow_loss_scale *,int)",
  flow_loss_scale_loss = "int flow_loss_scale_loss(flow_context *,flow_loss_scale *,flow_tensor *,flow_tensor **)",
  flow_loss_scale_config = "int flow_loss_scale_config(const flow_loss_scale *,const flow_optimizer *,char *,int)",
  flow_loss_scale_from_config = "int flow_loss_scale_from_config(const char *,flow_loss_scale **,flow_optimizer **)",
  flow_schedule_class_count = "int flow_schedule_class_count(void)",
  flow_schedule_class_find = "int flow_schedule_class_find(const char *)",
  flow_schedule_class_name = "const char *flow_schedule_class_name(int)",
  flow_schedule_class_argument_count = "int flow_schedule_class_argument_count(int)",
  flow_schedule_class_argument = "const char *flow_schedule_class_argument(int,int)",
  flow_schedule_new = "int flow_schedule_new(const char *,const flow_arguments *,flow_schedule **)",
  flow_schedule_retain = "flow_schedule *flow_schedule_retain(flow_schedule *)",
  flow_schedule_release = "void flow_schedule_release(flow_schedule *)",
  flow_schedule_class = "const char *flow_schedule_class(const flow_schedule *)",
  flow_schedule_value = "double flow_schedule_value(const flow_schedule *,double)",
  flow_schedule_config = "int flow_schedule_config(const flow_schedule *,char *,int)",
  flow_model_load = "int flow_model_load(flow_context *,const char *,flow_model **)",
  flow_model_retain = "flow_model *flow_model_retain(flow_model *)",
  flow_model_release = "void flow_model_release(flow_model *)",
  flow_model_save = "int flow_model_save(const flow_model *,const char *)",
  flow_model_input_count = "int flow_model_input_count(const flow_model *)",
  flow_model_output_count = "int flow_model_output_count(const flow_model *)",
  flow_model_input_name = "const char *flow_model_input_name(const flow_model *,int)",
  flow_model_input_dtype = "int flow_model_input_dtype(const flow_model *,int)",
  flow_model_input_rank = "int flow_model_input_rank(const flow_model *,int)",
  flow_model_input_dim = "double flow_model_input_dim(const flow_model *,int,int)",
  flow_model_predict = "int flow_model_predict(flow_context *,flow_model *,flow_tensor *const *,int,flow_tensor **)",
  flow_model_train = "int flow_model_train(flow_context *,flow_model *,flow_tensor *const *,int,flow_tensor *,double *)",
  flow_session_new = "int flow_session_new(flow_model *,flow_session **)",
  flow_session_predict = "int flow_session_predict(flow_context *,flow_session *,flow_tensor *const *,int,flow_tensor **)",
  flow_session_release = "void flow_session_release(flow_session *)",
  flow_json_parse = "int flow_json_parse(const char *,double,flow_json **)",
  flow_json_release = "void flow_json_release(flow_json *)",
  flow_json_kind = "int flow_json_kind(const flow_json *)",
  flow_json_child = "const flow_json *flow_json_child(const flow_json *)",
  flow_json_next = "const flow_json *flow_json_next(const flow_json *)",
  flow_json_key = "const char *flow_json_key(const flow_json *)",
  flow_json_text = "const char *flow_json_text(const flow_json *)",
  flow_json_number = "double flow_json_number(const flow_json *)",
  flow_json_new = "int flow_json_new(int,flow_json **)",
  flow_json_add = "int flow_json_add(flow_json *,const char *,int,double,const char *,flow_json **)",
  flow_json_print = "int flow_json_print(const flow_json *,char *,int)",
  flow_record_writer_new = "int flow_record_writer_new(const char *,const char *,flow_record_writer **)",
  flow_record_writer_write = "int flow_record_writer_write(flow_record_writer *,const void *,double)",
  flow_record_writer_write_example = "int flow_record_writer_write_example(flow_record_writer *,const flow_example *)",
  flow_record_writer_close = "int flow_record_writer_close(flow_record_writer *)",
  flow_record_writer_release = "void flow_record_writer_release(flow_record_writer *)",
  flow_example_new = "int flow_example_new(flow_example **)",
  flow_example_add_bytes = "int flow_example_add_bytes(flow_example *,const char *,const void *,double)",
  flow_example_add_floats = "int flow_example_add_floats(flow_example *,const char *,const float *,double)",
  flow_example_add_integers = "int flow_example_add_integers(flow_example *,const char *,const int64_t *,double)",
  flow_example_serialize = "double flow_example_serialize(const flow_example *,void *,double)",
  flow_example_release = "void flow_example_release(flow_example *)",
  flow_tensor_writer_new = "int flow_tensor_writer_new(flow_tensor_writer **)",
  flow_tensor_writer_release = "void flow_tensor_writer_release(flow_tensor_writer *)",
  flow_tensor_writer_checksums = "int flow_tensor_writer_checksums(flow_tensor_writer *,int)",
  flow_tensor_writer_group = "int flow_tensor_writer_group(flow_tensor_writer *,const char *)",
  flow_tensor_writer_add = "int flow_tensor_writer_add(flow_tensor_writer *,const char *,flow_tensor *)",
  flow_tensor_writer_note = "int flow_tensor_writer_note(flow_tensor_writer *,const char *,const char *,const char *)",
  flow_tensor_writer_snapshot = "int flow_tensor_writer_snapshot(flow_tensor_writer *)",
  flow_tensor_writer_save = "int flow_tensor_writer_save(const flow_tensor_writer *,const char *,const char *)",
  flow_save_begin = "int flow_save_begin(flow_tensor_writer *,const char *,const char *,const char *,const char *,flow_save **)",
  flow_save_wait = "int flow_save_wait(flow_save *)",
  flow_save_done = "int flow_save_done(const flow_save *)",
  flow_save_release = "void flow_save_release(flow_save *)",
  flow_remove_abandoned = "int flow_remove_abandoned(const char *)",
  flow_tensor_file_open = "int flow_tensor_file_open(const char *,const char *,flow_tensor_file **)",
  flow_tensor_file_open_trusted = "int flow_tensor_file_open_trusted(const char *,const char *,flow_tensor_file **)",
  flow_tensor_file_release = "void flow_tensor_file_release(flow_tensor_file *)",
  flow_tensor_file_count = "int flow_tensor_file_count(const flow_tensor_file *)",
  flow_tensor_file_name = "const char *flow_tensor_file_name(const flow_tensor_file *,int)",
  flow_tensor_file_find = "int flow_tensor_file_find(const flow_tensor_file *,const char *)",
  flow_tensor_file_dtype = "int flow_tensor_file_dtype(const flow_tensor_file *,int)",
  flow_tensor_file_rank = "int flow_tensor_file_rank(const flow_tensor_file *,int)",
  flow_tensor_file_dim = "double flow_tensor_file_dim(const flow_tensor_file *,int,int)",
  flow_tensor_file_has_checksum = "int flow_tensor_file_has_checksum(const flow_tensor_file *,int)",
  flow_tensor_file_note_text = "const char *flow_tensor_file_note_text(const flow_tensor_file *,const char *,const char *)",
  flow_tensor_file_note_count = "int flow_tensor_file_note_count(const flow_tensor_file *)",
  flow_tensor_file_note_path = "const char *flow_tensor_file_note_path(const flow_tensor_file *,int)",
  flow_tensor_file_note_key = "const char *flow_tensor_file_note_key(const flow_tensor_file *,int)",
  flow_tensor_file_group_count = "int flow_tensor_file_group_count(const flow_tensor_file *)",
  flow_tensor_file_group_name = "const char *flow_tensor_file_group_name(const flow_tensor_file *,int)",
  flow_tensor_file_read = "int flow_tensor_file_read(flow_tensor_file *,int,flow_tensor **)",
  flow_tensor_file_read_into = "int flow_tensor_file_read_into(flow_tensor_file *,int,flow_tensor *)",
  flow_tensor_file_verify = "int flow_tensor_file_verify(flow_tensor_file *)",
  flow_event_writer_new = "int flow_event_writer_new(const char *,const char *,flow_event_writer **)",
  flow_event_writer_path = "const char *flow_event_writer_path(const flow_event_writer *)",
  flow_event_writer_scalar = "int flow_event_writer_scalar(flow_event_writer *,const char *,double,double)",
  flow_event_writer_text = "int flow_event_writer_text(flow_event_writer *,const char *,double,const char *,double)",
  flow_event_writer_histogram = "int flow_event_writer_histogram(flow_event_writer *,const char *,double,flow_tensor *,int)",
  flow_event_writer_images = "int flow_event_writer_images(flow_event_writer *,const char *,double,flow_tensor *,int)",
  flow_event_writer_keras_model = "int flow_event_writer_keras_model(flow_event_writer *,const char *,double,const char *,double)",
  flow_event_writer_flush = "int flow_event_writer_flush(flow_event_writer *)",
  flow_event_writer_close = "int flow_event_writer_close(flow_event_writer *)",
  flow_event_writer_release = "void flow_event_writer_release(flow_event_writer *)",
  flow_archive_open = "int flow_archive_open(const char *,flow_archive **)",
  flow_archive_release = "void flow_archive_release(flow_archive *)",
  flow_archive_count = "int flow_archive_count(const flow_archive *)",
  flow_archive_name = "const char *flow_archive_name(const flow_archive *,int)",
  flow_archive_text = "int flow_archive_text(flow_archive *,const char *,const char **,double *)",
  flow_archive_writer_new = "int flow_archive_writer_new(const char *,flow_archive_writer **)",
  flow_archive_writer_add_text = "int flow_archive_writer_add_text(flow_archive_writer *,const char *,const char *,double)",
  flow_archive_writer_add_tensors = "int flow_archive_writer_add_tensors(flow_archive_writer *,const char *,const flow_tensor_writer *,const char *)",
  flow_archive_writer_commit = "int flow_archive_writer_commit(flow_archive_writer *)",
  flow_archive_writer_release = "void flow_archive_writer_release(flow_archive_writer *)",
  flow_image_load = "int flow_image_load(const char *,int,flow_tensor **)",
  flow_image_decode = "int flow_image_decode(const void *,double,int,flow_tensor **)",
  flow_image_save = "int flow_image_save(const char *,const flow_tensor *,int)",
  flow_image_resize = "int flow_image_resize(flow_tensor *,int,int,const char *,int,flow_tensor **)",
  flow_listing_folders = "int flow_listing_folders(const char *,flow_listing **)",
  flow_listing_pictures = "int flow_listing_pictures(const char *,int,flow_listing **)",
  flow_listing_release = "void flow_listing_release(flow_listing *)",
  flow_listing_count = "int flow_listing_count(const flow_listing *)",
  flow_listing_name = "const char *flow_listing_name(const flow_listing *,int)",
  flow_shuffle_order = "int flow_shuffle_order(double,int,int32_t *)",
  flow_path_kind = "int flow_path_kind(const char *)",
  flow_make_folders = "int flow_make_folders(const char *)",
  flow_listing_entries = "int flow_listing_entries(const char *,flow_listing **)",
  flow_remove_file = "int flow_remove_file(const char *)",
  flow_remove_tree = "int flow_remove_tree(const char *)",
  flow_rename_path = "int flow_rename_path(const char *,const char *,int)",
  flow_copy_file = "int flow_copy_file(const char *,const char *,int)",
  flow_write_file = "int flow_write_file(const char *,const void *,double)",
  flow_csv_open = "int flow_csv_open(const char *,const char *,int,flow_csv **)",
  flow_csv_release = "void flow_csv_release(flow_csv *)",
  flow_csv_columns = "int flow_csv_columns(const flow_csv *)",
  flow_csv_rows = "double flow_csv_rows(const flow_csv *)",
  flow_csv_name = "const char *flow_csv_name(const flow_csv *,int)",
  flow_csv_text = "const char *flow_csv_text(const flow_csv *,int,double)",
  flow_csv_dtype = "int flow_csv_dtype(const flow_csv *,int)",
  flow_csv_tensor = "int flow_csv_tensor(const flow_csv *,int,int,flow_tensor **)",
  flow_element_clear = "void flow_element_clear(flow_element *)",
  flow_dataset_retain = "flow_dataset *flow_dataset_retain(flow_dataset *)",
  flow_dataset_release = "void flow_dataset_release(flow_dataset *)",
  flow_dataset_component_count = "int flow_dataset_component_count(const flow_dataset *)",
  flow_dataset_component = "const flow_component *flow_dataset_component(const flow_dataset *,int)",
  flow_dataset_cardinality = "double flow_dataset_cardinality(const flow_dataset *)",
  flow_glob = "int flow_glob(const char *,flow_tensor **,flow_tensor **)",
  flow_dataset_from_slices = "int flow_dataset_from_slices(flow_tensor *const *,flow_tensor *const *,int,flow_dataset **)",
  flow_dataset_range = "int flow_dataset_range(double,double,double,int,flow_dataset **)",
  flow_dataset_range_integers = "int flow_dataset_range_integers(int64_t,int64_t,int64_t,int,flow_dataset **)",
  flow_dataset_records = "int flow_dataset_records(const char *const *,int,const char *,double,flow_dataset **)",
  flow_dataset_take = "int flow_dataset_take(flow_dataset *,double,flow_dataset **)",
  flow_dataset_skip = "int flow_dataset_skip(flow_dataset *,double,flow_dataset **)",
  flow_dataset_batch = "int flow_dataset_batch(flow_dataset *,double,int,flow_dataset **)",
  flow_dataset_shuffle = "int flow_dataset_shuffle(flow_dataset *,double,double,double,int,flow_dataset **)",
  flow_dataset_repeat = "int flow_dataset_repeat(flow_dataset *,double,flow_dataset **)",
  flow_dataset_zip = "int flow_dataset_zip(flow_dataset *const *,int,flow_dataset **)",
  flow_dataset_concatenate = "int flow_dataset_concatenate(flow_dataset *,flow_dataset *,flow_dataset **)",
  flow_dataset_shard = "int flow_dataset_shard(flow_dataset *,double,double,flow_dataset **)",
  flow_dataset_prefetch = "int flow_dataset_prefetch(flow_dataset *,double,flow_dataset **)",
  flow_dataset_with_options = "int flow_dataset_with_options(flow_dataset *,int,int,flow_dataset **)",
  flow_dataset_auto_shard = "int flow_dataset_auto_shard(flow_dataset *,double,double,flow_dataset **)",
  flow_dataset_auto_shard_policy = "int flow_dataset_auto_shard_policy(const flow_dataset *)",
  flow_dataset_batch_rows = "double flow_dataset_batch_rows(const flow_dataset *)",
  flow_dataset_deterministic = "int flow_dataset_deterministic(const flow_dataset *)",
  flow_dataset_unbatch = "int flow_dataset_unbatch(flow_dataset *,flow_dataset **)",
  flow_dataset_rebatch = "int flow_dataset_rebatch(flow_dataset *,const double *,int,int,flow_dataset **)",
  flow_dataset_interleave = "int flow_dataset_interleave(flow_dataset *,int,flow_dataset *,double,double,int,flow_dataset **)",
  flow_dataset_cache = "int flow_dataset_cache(flow_dataset *,flow_dataset **)",
  flow_dataset_cache_file = "int flow_dataset_cache_file(flow_dataset *,const char *,flow_dataset **)",
  flow_dataset_padded_batch = "int flow_dataset_padded_batch(flow_dataset *,double,const flow_component *,const double *,int,int,flow_dataset **)",
  flow_dataset_from_generator = "int flow_dataset_from_generator(int,const flow_component *,int,flow_dataset **)",
  flow_dataset_map = "int flow_dataset_map(flow_dataset *,flow_function *,double,int,double,flow_dataset **)",
  flow_function_retain = "flow_function *flow_function_retain(flow_function *)",
  flow_function_release = "void flow_function_release(flow_function *)",
  flow_function_random = "int flow_function_random(const flow_function *)",
  flow_function_parse_example = "int flow_function_parse_example(flow_function **)",
  flow_function_parse_example_add = "int flow_function_parse_example_add(flow_function *,const char *,int,int,const int64_t *,const double *)",
  flow_function_from_plan = "int flow_function_from_plan(flow_plan *,const int *,int,const int *,int,flow_function **)",
  flow_function_filter = "int flow_function_filter(flow_plan *,const int *,int,flow_function **)",
  flow_function_load_image = "int flow_function_load_image(int,int,int,const char *,int,int,int,flow_function **)",
  flow_iterator_new = "int flow_iterator_new(flow_context *,flow_dataset *,flow_iterator **)",
  flow_iterator_peek = "int flow_iterator_peek(flow_context *,flow_dataset *,flow_iterator **)",
  flow_iterator_close = "void flow_iterator_close(flow_iterator *)",
  flow_iterator_next = "int flow_iterator_next(flow_iterator *,flow_element *)",
  flow_iterator_answer = "int flow_iterator_answer(flow_iterator *,const flow_element *,flow_dataset *,const char *)",
  flow_iterator_skip = "int flow_iterator_skip(flow_iterator *,double)",
  flow_iterator_save = "int flow_iterator_save(const flow_iterator *,char *,int)",
  flow_iterator_restore = "int flow_iterator_restore(flow_iterator *,const char *)",
  flow_iterator_stage = "int flow_iterator_stage(const flow_iterator *,int,flow_stage_report *)",
  flow_cluster_from_environment = "int flow_cluster_from_environment(int,const char *,int,flow_cluster **)",
  flow_cluster_parse = "int flow_cluster_parse(const char *,double,const char *,const char *,int,flow_cluster **)",
  flow_cluster_release = "void flow_cluster_release(flow_cluster *)",
  flow_cluster_source = "const char *flow_cluster_source(const flow_cluster *)",
  flow_job_name = "const char *flow_job_name(int)",
  flow_cluster_job = "int flow_cluster_job(const flow_cluster *)",
  flow_cluster_index = "int flow_cluster_index(const flow_cluster *)",
  flow_cluster_count = "int flow_cluster_count(const flow_cluster *,int)",
  flow_cluster_address = "const char *flow_cluster_address(const flow_cluster *,int,int)",
  flow_cluster_chief_job = "int flow_cluster_chief_job(const flow_cluster *)",
  flow_cluster_is_chief = "int flow_cluster_is_chief(const flow_cluster *)",
  flow_cluster_workers = "int flow_cluster_workers(const flow_cluster *)",
  flow_cluster_id = "int flow_cluster_id(const flow_cluster *)",
  flow_cluster_text = "int flow_cluster_text(const flow_cluster *,char *,int)",
  flow_cluster_hash = "int flow_cluster_hash(const flow_cluster *,char *,int)",
  flow_worker_open = "int flow_worker_open(flow_context *,const flow_cluster *,const flow_worker_options *,flow_worker **)",
  flow_worker_close = "void flow_worker_close(flow_worker *)",
  flow_worker_fail = "int flow_worker_fail(flow_worker *,const char *)",
  flow_worker_goodbye = "int flow_worker_goodbye(flow_worker *)",
  flow_worker_count = "int flow_worker_count(const flow_worker *)",
  flow_worker_rank = "int flow_worker_rank(const flow_worker *)",
  flow_worker_engine = "const char *flow_worker_engine(const flow_worker *)",
  flow_worker_shares_memory = "int flow_worker_shares_memory(const flow_worker *)",
  flow_worker_progress = "void flow_worker_progress(flow_worker *,double,const char *)",
  flow_worker_check = "int flow_worker_check(flow_worker *)",
  flow_worker_broadcast = "int flow_worker_broadcast(flow_worker *,void *,double)",
  flow_worker_all_gather = "int flow_worker_all_gather(flow_worker *,const void *,double,void *)",
  flow_worker_barrier = "int flow_worker_barrier(flow_worker *,const char *)",
  flow_worker_agree = "int flow_worker_agree(flow_worker *,const char *,const char *)",
  flow_worker_calls = "double flow_worker_calls(const flow_worker *)",
  flow_worker_publish = "int flow_worker_publish(flow_worker *,const char *,const char *)",
  flow_worker_lookup = "int flow_worker_lookup(flow_worker *,const char *,double,char *,int)",
  flow_gpu_count = "int flow_gpu_count(void)",
  flow_gpu_missing = "const char *flow_gpu_missing(void)",
  flow_gpu_describe = "int flow_gpu_describe(int,const char **,double *)",
  flow_gpu_free_memory = "double flow_gpu_free_memory(int)",
  flow_gpu_read_traffic = "int flow_gpu_read_traffic(int,flow_gpu_traffic *)",
  flow_context_set_device = "int flow_context_set_device(flow_context *,int)",
  flow_context_device = "int flow_context_device(const flow_context *)",
  flow_tensor_new_on = "int flow_tensor_new_on(flow_context *,int,int,int,const int64_t *,flow_tensor **)",
  flow_tensor_device = "int flow_tensor_device(const flow_tensor *)",
  flow_tensor_to_device = "int flow_tensor_to_device(flow_context *,flow_tensor *,int,flow_tensor **)",
  flow_row_store_new = "int flow_row_store_new(flow_context *,int,double,flow_row_store **)",
  flow_row_store_release = "void flow_row_store_release(flow_row_store *)",
  flow_iterator_keep_rows = "int flow_iterator_keep_rows(flow_iterator *,flow_row_store *)",
  flow_row_store_table = "flow_tensor *flow_row_store_table(const flow_row_store *,int)",
  flow_variable_to_device = "int flow_variable_to_device(flow_context *,flow_variable *,int)",
  flow_optimizer_to_device = "int flow_optimizer_to_device(flow_context *,flow_optimizer *,int)",
  flow_loss_scale_to_device = "int flow_loss_scale_to_device(flow_context *,flow_loss_scale *,int)",
  flow_device_synchronize = "int flow_device_synchronize(flow_context *,int)",
  flow_device_group_new = "int flow_device_group_new(flow_context *,const int *,int,flow_device_group **)",
  flow_device_group_connect = "int flow_device_group_connect(flow_device_group *,flow_worker *,char *,int)",
  flow_device_group_release = "void flow_device_group_release(flow_device_group *)",
} }
