-- Generated from bindings/flow.h by scripts/gen_cdef. Do not edit: change flow.h and run the script.
return [[
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
typedef enum flow_interpolation { FLOW_NEAREST = 0, FLOW_BILINEAR, FLOW_BICUBIC, FLOW_AREA, FLOW_LANCZOS3, FLOW_LANCZOS5 } flow_interpolation;
typedef enum flow_fill_mode { FLOW_FILL_REFLECT = 0, FLOW_FILL_WRAP, FLOW_FILL_CONSTANT, FLOW_FILL_NEAREST } flow_fill_mode;
typedef struct flow_context flow_context;
typedef struct flow_tensor flow_tensor;
typedef struct flow_variable flow_variable;
typedef struct flow_tape flow_tape;
typedef struct flow_plan flow_plan;
typedef struct flow_instance flow_instance;
typedef struct flow_layer flow_layer;
typedef struct flow_optimizer flow_optimizer;
typedef struct flow_record_writer flow_record_writer;
typedef struct flow_csv flow_csv;
typedef struct flow_example flow_example;
typedef struct flow_listing flow_listing;
typedef struct flow_arguments flow_arguments;
typedef struct flow_dataset flow_dataset;
typedef struct flow_function flow_function;
typedef struct flow_json flow_json;
typedef struct flow_iterator flow_iterator;
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
 } convolution;
 struct { int32_t size[2], stride[2], padding[4]; int32_t input_size[2]; } pool;
 struct { int32_t size[2], input_size[2], interpolation, antialias; } resize;
 struct { int32_t interpolation, fill_mode; double fill_value; } sampling;
 struct { double rate; uint64_t seed, stream; } dropout;
 struct { int32_t rank, dtype; int64_t dims[8]; double low, high; uint64_t seed, stream; int32_t keyed_by_step; } random;
 struct { double epsilon; int32_t axis; } normalization;
 struct {
 double momentum, beta_1, beta_2, epsilon;
 int32_t nesterov, amsgrad;
 int32_t products, unused;
 int64_t first[4];
 } optimizer;
 struct { double value; int32_t rank, dtype; int64_t dims[8]; } fill;
 struct { int32_t count; struct { int16_t op; uint8_t inputs[3], unused; } steps[12]; } fused;
} flow_attributes;
int flow_abi_version(void);
const char *flow_version(void);
const char *flow_last_error(void);
const char *flow_status_name(int status);
void flow_log(int level, const char *text);
void flow_log_to_stdio(int enabled);
int flow_log_stdio(void);
int flow_log_take(int *level, char *text, int size);
double flow_clock(void);
int flow_terminal_columns(void);
const char *flow_isa(void);
int flow_set_threads(int count);
int flow_threads(void);
int flow_tape_depth(const flow_context *context);
double flow_live_bytes(void);
double flow_allocation_count(void);
void flow_fail_allocation(double after);
int flow_plugin_count(void);
const char *flow_plugin_name(int index);
const char *flow_plugin_purpose(int index);
int flow_plugin_libraries(int index, const char **out);
int flow_context_new(flow_context **out);
void flow_context_release(flow_context *context);
void flow_context_seed(flow_context *context, double seed);
double flow_context_next_seed(flow_context *context);
void flow_context_set_exact(flow_context *context, int exact);
int flow_context_exact(const flow_context *context);
void flow_interrupt(flow_context *context, int raised);
int flow_interrupted(const flow_context *context);
const char *flow_dtype_name(int dtype);
int flow_dtype_find(const char *name);
int flow_dtype_size(int dtype);
int flow_dtype_promote(int a, int b);
int flow_tensor_new(int dtype, int rank, const int64_t *shape, flow_tensor **out);
int flow_tensor_scalar(int dtype, double value, flow_tensor **out);
int flow_tensor_borrow(void *data, int dtype, int rank, const int64_t *shape, flow_tensor **out);
int flow_tensor_arange(int dtype, double start, double step, double count, flow_tensor **out);
int flow_tensor_view(flow_tensor *source, int rank, const int64_t *shape, const int64_t *strides,
 int64_t offset, flow_tensor **out);
flow_tensor *flow_tensor_retain(flow_tensor *tensor);
void flow_tensor_release(flow_tensor *tensor);
int flow_tensor_dtype(const flow_tensor *tensor);
int flow_tensor_rank(const flow_tensor *tensor);
double flow_tensor_dim(const flow_tensor *tensor, int axis);
double flow_tensor_stride(const flow_tensor *tensor, int axis);
double flow_tensor_size(const flow_tensor *tensor);
int flow_tensor_is_symbolic(const flow_tensor *tensor);
int flow_tensor_is_contiguous(const flow_tensor *tensor);
void *flow_tensor_data(const flow_tensor *tensor);
int flow_tensor_owners(const flow_tensor *tensor);
int flow_tensor_item(const flow_tensor *tensor, double *out);
int flow_tensor_get(const flow_tensor *tensor, const int64_t *position, double *out);
int flow_tensor_set(flow_tensor *tensor, const int64_t *position, double value);
int flow_tensor_fill(flow_tensor *tensor, double value);
int flow_tensor_copy(flow_tensor *to, const flow_tensor *from);
int flow_tensor_contiguous(flow_tensor *tensor, flow_tensor **out);
int flow_tensor_read(const flow_tensor *tensor, double *out, double count);
int flow_tensor_write(flow_tensor *tensor, const double *values, double count);
int flow_tensor_format(const flow_tensor *tensor, char *text, int size);
int flow_tensor_gather_rows(const flow_tensor *source, const flow_tensor *order, double first, double count, flow_tensor *into);
int flow_tensor_shuffle(flow_tensor *order, double seed);
int flow_tensor_save_npy(const flow_tensor *tensor, const char *path);
int flow_tensor_load_npy(const char *path, flow_tensor **out);
int flow_tensor_load_npz(const char *path, const char *member, flow_tensor **out);
int flow_tensor_load_idx(const char *path, flow_tensor **out);
int flow_record_writer_new(const char *path, const char *compression_type, flow_record_writer **out);
int flow_record_writer_write(flow_record_writer *writer, const void *bytes, double count);
int flow_record_writer_write_example(flow_record_writer *writer, const flow_example *example);
int flow_record_writer_close(flow_record_writer *writer);
void flow_record_writer_release(flow_record_writer *writer);
int flow_example_new(flow_example **out);
int flow_example_add_bytes(flow_example *example, const char *name, const void *bytes, double count);
int flow_example_add_floats(flow_example *example, const char *name, const float *values, double count);
int flow_example_add_integers(flow_example *example, const char *name, const int64_t *values, double count);
double flow_example_serialize(const flow_example *example, void *to, double size);
void flow_example_release(flow_example *example);
int flow_image_load(const char *path, int channels, flow_tensor **out);
int flow_image_decode(const void *bytes, double count, int channels, flow_tensor **out);
int flow_image_save(const char *path, const flow_tensor *image, int quality);
int flow_image_resize(flow_tensor *images, int height, int width, const char *interpolation, int fit, flow_tensor **out);
int flow_listing_folders(const char *directory, flow_listing **out);
int flow_listing_pictures(const char *directory, int follow_links, flow_listing **out);
void flow_listing_release(flow_listing *listing);
int flow_listing_count(const flow_listing *listing);
const char *flow_listing_name(const flow_listing *listing, int index);
int flow_shuffle_order(double seed, int count, int32_t *order);
int flow_csv_open(const char *path, const char *delimiter, int header, flow_csv **out);
void flow_csv_release(flow_csv *csv);
int flow_csv_columns(const flow_csv *csv);
double flow_csv_rows(const flow_csv *csv);
const char *flow_csv_name(const flow_csv *csv, int column);
const char *flow_csv_text(const flow_csv *csv, int column, double row);
int flow_csv_dtype(const flow_csv *csv, int column);
int flow_csv_tensor(const flow_csv *csv, int column, int dtype, flow_tensor **out);
int flow_op_count(void);
int flow_op_find(const char *name);
const char *flow_op_name(int op);
const char *flow_op_doc(int op);
int flow_op_outputs(int op);
int flow_apply(flow_context *context, int op, flow_tensor *const *inputs, int input_count,
 const flow_attributes *attributes, flow_tensor **outputs);
int flow_mean(flow_context *context, flow_tensor *x, const flow_attributes *reduce, flow_tensor **out);
int flow_activate(flow_context *context, const char *activation, flow_tensor *x, flow_tensor **out);
int flow_activation_known(const char *name);
int flow_variable_new(flow_tensor *initial, const char *name, int trainable, int sync, flow_variable **out);
flow_variable *flow_variable_retain(flow_variable *variable);
void flow_variable_release(flow_variable *variable);
const char *flow_variable_name(const flow_variable *variable);
int flow_variable_trainable(const flow_variable *variable);
void flow_variable_set_trainable(flow_variable *variable, int trainable);
double flow_variable_version(const flow_variable *variable);
int flow_variable_tensor(flow_variable *variable, flow_tensor **out);
int flow_variable_read(flow_context *context, flow_variable *variable, flow_tensor **out);
int flow_variable_assign(flow_context *context, flow_variable *variable, flow_tensor *value);
int flow_variable_assign_add(flow_context *context, flow_variable *variable, flow_tensor *value);
double flow_variable_number(const flow_variable *variable);
int flow_tape_begin(flow_context *context, flow_tape **out);
int flow_tape_end(flow_context *context, flow_tape *tape);
void flow_tape_release(flow_tape *tape);
int flow_tape_watch(flow_tape *tape, flow_tensor *tensor);
int flow_tape_gradient(flow_context *context, flow_tape *tape, flow_tensor *target, flow_tensor *const *tensors,
 flow_variable *const *variables, int count, flow_tensor **out);
int flow_trace_begin(flow_context *context);
int flow_trace_depth(const flow_context *context);
int flow_trace_input(flow_context *context, int dtype, int rank, const int64_t *shape, flow_tensor **out);
int flow_trace_constant(flow_context *context, flow_tensor *value, flow_tensor **out);
int flow_trace_end(flow_context *context, flow_tensor *const *outputs, int count, flow_plan **out);
void flow_trace_abort(flow_context *context);
void flow_plan_release(flow_plan *plan);
int flow_plan_describe(const flow_plan *plan, char *text, int size);
int flow_instance_new(flow_plan *plan, double capacity, flow_instance **out);
void flow_instance_release(flow_instance *instance);
double flow_instance_capacity(const flow_instance *instance);
int flow_instance_describe(const flow_instance *instance, char *text, int size);
void flow_instance_scalars(flow_instance *instance, double seed, double step, double first_sample);
int flow_instance_run(flow_context *context, flow_instance *instance, flow_tensor *const *inputs, int count, flow_tensor **outputs);
int flow_instance_run_rows(flow_context *context, flow_instance *instance, flow_tensor *const *inputs, int count, double first, double rows);
typedef struct flow_profile_entry {
 const char *op, *variant;
 char shape[96];
 double seconds, calls;
} flow_profile_entry;
int flow_profile_begin(flow_context *context);
void flow_profile_end(flow_context *context);
int flow_profile_count(const flow_context *context);
const flow_profile_entry *flow_profile_at(const flow_context *context, int index);
double flow_profile_waiting(const flow_context *context);
typedef struct flow_measurement {
 const char *op, *variant;
 char shape[128];
 int supported, chosen;
 double multiply_adds;
 double bytes;
 double cost;
 double seconds;
} flow_measurement;
int flow_instance_entry_count(const flow_instance *instance);
int flow_instance_measure(const flow_instance *instance, int entry, int variant, flow_measurement *out);
double flow_peak(void);
int flow_arguments_new(flow_arguments **out);
void flow_arguments_release(flow_arguments *arguments);
int flow_arguments_set_number(flow_arguments *arguments, const char *name, double value);
int flow_arguments_set_boolean(flow_arguments *arguments, const char *name, int value);
int flow_arguments_set_text(flow_arguments *arguments, const char *name, const char *value);
int flow_arguments_set_numbers(flow_arguments *arguments, const char *name, const double *values, int count);
int flow_arguments_set_null(flow_arguments *arguments, const char *name);
int flow_layer_class_count(void);
const char *flow_layer_class_name(int index);
int flow_layer_class_find(const char *name);
int flow_layer_class_positional(int index);
int flow_layer_class_argument_count(int index);
const char *flow_layer_class_argument(int index, int argument);
const char *flow_layer_class_argument_type(int index, int argument);
const char *flow_layer_class_argument_default(int index, int argument);
const char *flow_layer_class_doc(int index);
int flow_layer_new(const char *class_name, const char *name, const flow_arguments *arguments, flow_layer **out);
void flow_layer_release(flow_layer *layer);
const char *flow_layer_name(const flow_layer *layer);
int flow_layer_build(flow_context *context, flow_layer *layer, int input_count, const int *ranks, const int64_t *const *shapes);
int flow_layer_built(const flow_layer *layer);
int flow_layer_call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out);
int flow_layer_variable_count(const flow_layer *layer);
flow_variable *flow_layer_variable(const flow_layer *layer, int index);
int flow_layer_trainable(const flow_layer *layer);
void flow_layer_set_trainable(flow_layer *layer, int trainable);
int flow_layer_config(const flow_layer *layer, char *text, int size);
int flow_initialize(flow_context *context, const char *initializer, const flow_arguments *arguments, double seed, flow_tensor *into);
int flow_loss_find(const char *name);
const char *flow_loss_name(int loss);
int flow_loss_values(flow_context *context, int loss, const flow_arguments *options, flow_tensor *y_true, flow_tensor *y_pred, flow_tensor **out);
int flow_metric_find(const char *name);
const char *flow_metric_name(int metric);
int flow_metric_values(flow_context *context, int metric, const flow_arguments *options, flow_tensor *y_true, flow_tensor *y_pred, flow_tensor **out);
int flow_loss_reduce(flow_context *context, flow_tensor *values, flow_tensor *weights, flow_tensor **out);
int flow_optimizer_class_find(const char *name);
int flow_optimizer_class_argument_count(int index);
const char *flow_optimizer_class_name(int index);
const char *flow_optimizer_class_argument(int index, int argument);
const char *flow_optimizer_class_argument_type(int index, int argument);
const char *flow_optimizer_class_argument_default(int index, int argument);
int flow_optimizer_new(const char *class_name, const char *name, const flow_arguments *arguments, flow_optimizer **out);
void flow_optimizer_release(flow_optimizer *optimizer);
const char *flow_optimizer_name(const flow_optimizer *optimizer);
int flow_optimizer_config(const flow_optimizer *optimizer, char *text, int size);
int flow_optimizer_apply(flow_context *context, flow_optimizer *optimizer, flow_tensor *const *gradients,
 flow_variable *const *variables, int count);
int flow_optimizer_build(flow_optimizer *optimizer, flow_variable *const *variables, int count);
flow_variable *flow_optimizer_learning_rate(flow_optimizer *optimizer);
flow_variable *flow_optimizer_iterations(flow_optimizer *optimizer);
int flow_optimizer_slot_count(const flow_optimizer *optimizer);
flow_variable *flow_optimizer_slot(const flow_optimizer *optimizer, int index);
enum { FLOW_JSON_NULL = 0, FLOW_JSON_BOOLEAN, FLOW_JSON_NUMBER, FLOW_JSON_TEXT, FLOW_JSON_LIST, FLOW_JSON_OBJECT,
 FLOW_JSON_REAL,
 FLOW_JSON_PRINTED };
int flow_json_parse(const char *text, double bytes, flow_json **out);
void flow_json_release(flow_json *root);
int flow_json_kind(const flow_json *json);
const flow_json *flow_json_child(const flow_json *json);
const flow_json *flow_json_next(const flow_json *json);
const char *flow_json_key(const flow_json *json);
const char *flow_json_text(const flow_json *json);
double flow_json_number(const flow_json *json);
int flow_json_new(int kind, flow_json **out);
int flow_json_add(flow_json *parent, const char *key, int kind, double number, const char *text, flow_json **child);
int flow_json_print(const flow_json *json, char *text, int size);
typedef struct flow_element {
 int32_t count, callback;
 int64_t pass;
 flow_tensor *tensors[8];
} flow_element;
void flow_element_clear(flow_element *element);
typedef struct flow_component {
 int32_t dtype, rank, text, unused;
 int64_t shape[8];
} flow_component;
flow_dataset *flow_dataset_retain(flow_dataset *dataset);
void flow_dataset_release(flow_dataset *dataset);
int flow_dataset_component_count(const flow_dataset *dataset);
const flow_component *flow_dataset_component(const flow_dataset *dataset, int index);
double flow_dataset_cardinality(const flow_dataset *dataset);
int flow_glob(const char *pattern, flow_tensor **bytes, flow_tensor **offsets);
int flow_dataset_from_slices(flow_tensor *const *components, flow_tensor *const *offsets, int count, flow_dataset **out);
int flow_dataset_range(double start, double stop, double step, int dtype, flow_dataset **out);
int flow_dataset_records(const char *const *paths, int count, const char *compression_type, double num_parallel_reads,
 flow_dataset **out);
int flow_dataset_take(flow_dataset *input, double count, flow_dataset **out);
int flow_dataset_skip(flow_dataset *input, double count, flow_dataset **out);
int flow_dataset_batch(flow_dataset *input, double size, int drop_remainder, flow_dataset **out);
int flow_dataset_shuffle(flow_dataset *input, double size, double seed, double seed2, int reshuffle, flow_dataset **out);
int flow_dataset_repeat(flow_dataset *input, double count, flow_dataset **out);
int flow_dataset_zip(flow_dataset *const *inputs, int count, flow_dataset **out);
int flow_dataset_concatenate(flow_dataset *first, flow_dataset *second, flow_dataset **out);
int flow_dataset_shard(flow_dataset *input, double count, double index, flow_dataset **out);
int flow_dataset_prefetch(flow_dataset *input, double size, flow_dataset **out);
enum { FLOW_SHARD_KEEP = -2, FLOW_SHARD_OFF = -1, FLOW_SHARD_AUTO = 0, FLOW_SHARD_FILE, FLOW_SHARD_DATA, FLOW_SHARD_HINT };
int flow_dataset_with_options(flow_dataset *input, int auto_shard_policy, int deterministic, flow_dataset **out);
int flow_dataset_auto_shard_policy(const flow_dataset *dataset);
int flow_dataset_deterministic(const flow_dataset *dataset);
int flow_dataset_unbatch(flow_dataset *input, flow_dataset **out);
int flow_dataset_rebatch(flow_dataset *input, const double *sizes, int count, int drop_remainder, flow_dataset **out);
int flow_dataset_interleave(flow_dataset *input, int callback, flow_dataset *like, double cycle, double block, int parallel,
 flow_dataset **out);
int flow_dataset_cache(flow_dataset *input, flow_dataset **out);
int flow_dataset_padded_batch(flow_dataset *input, double size, const flow_component *shapes, const double *values, int count,
 int drop_remainder, flow_dataset **out);
int flow_dataset_from_generator(int callback, const flow_component *components, int count, flow_dataset **out);
int flow_dataset_map(flow_dataset *input, flow_function *function, double calls, int deterministic, double seed, flow_dataset **out);
flow_function *flow_function_retain(flow_function *function);
void flow_function_release(flow_function *function);
int flow_function_random(const flow_function *function);
int flow_function_parse_example(flow_function **out);
int flow_function_parse_example_add(flow_function *function, const char *name, int dtype, int rank, const int64_t *shape,
 const double *initial);
int flow_function_from_plan(flow_plan *plan, const int *inputs, int input_count, const int *outputs, int output_count,
 flow_function **out);
int flow_function_filter(flow_plan *plan, const int *inputs, int input_count, flow_function **out);
int flow_function_load_image(int height, int width, int channels, const char *interpolation, int fit, int classes,
 int skip_broken, flow_function **out);
int flow_iterator_new(flow_context *context, flow_dataset *dataset, flow_iterator **out);
int flow_iterator_peek(flow_context *context, flow_dataset *dataset, flow_iterator **out);
void flow_iterator_close(flow_iterator *iterator);
int flow_iterator_next(flow_iterator *iterator, flow_element *out);
int flow_iterator_answer(flow_iterator *iterator, const flow_element *element, flow_dataset *dataset, const char *error);
int flow_iterator_skip(flow_iterator *iterator, double count);
int flow_iterator_save(const flow_iterator *iterator, char *text, int size);
int flow_iterator_restore(flow_iterator *iterator, const char *position);
typedef struct flow_stage_report {
 const char *name;
 int32_t depth, threads;
 double elements, seconds;
 double queued, capacity;
 double waited;
} flow_stage_report;
int flow_iterator_stage(const flow_iterator *iterator, int index, flow_stage_report *out);
]]
