-- elsewhere_tensorflow.lua: where to find what TensorFlow has in tf itself and in its modules; elsewhere.lua takes it in.

local RAGGED = "rows of different lengths are padded: ds:padded_batch(n), flow.utils.pad_sequences(lists), masks by"
  .. " flow.sequence_mask(lengths)"
local SPARSE = "tensors are dense, and so are gradients of embeddings"
local CHECK = "write error(\"...\") in an if: tensors of a trace have no values yet, but shapes"
local SCATTER = "flow.scatter_update(x, positions, updates, \"add\"), where positions count from 1; \"max\","
  .. " \"min\", \"mul\" or none likewise"
local LOOPS = "flow.scan(f, state, xs), flow.map(f, xs) and flow.while_loop(cond, body, state) run in C"
local OWN_GRADIENT = "flow.custom_gradient(f) gives a function its own gradient"
local MEMORY = "activations of the forward pass are kept; gradient_accumulation_steps of optimizers lets batches be smaller"
local EAGER = "functions run eagerly unless flow.fn traces them; model:compile { run_eagerly = true } does not trace"
local DECODE = "flow.image.decode_image(bytes, channels) reads JPEG, PNG, GIF and BMP; flow.image.load(path) a file"
local SAVE = "flow.save_npz(path, { name = tensor }) writes tensors, flow.load_npz(path) reads them"
local WRITERS = "flow.summary.create_file_writer(folder) makes a writer with these as methods: writer:scalar(name, value, step)"
local HASH = "layers.Hashing(num_bins)(strings) makes numbers of strings"
local CHARACTERS = "flow.strings.unicode_split(x) gives characters, flow.strings.bytes_split(x) bytes"
local ASSIGNED = "variable:assign(flow.scatter_update(variable, positions, updates)), where positions count from 1"
local EQUAL = "variables are equal on all replicas, or each has its own: flow.Variable(0, { sync = \"SUM_ON_READ\" }), \"MEAN_ON_READ\""
local COMPLEX = "two tensors stand for complex numbers: real, imaginary = flow.fft { x, y }"
local DTYPE = "dtypes are texts such as \"float32\" and \"string\""
local CONTROL = "Lua's if and for run when flow.fn(f) traces f: flow.cond, flow.switch and flow.while_loop run in the plan"
local TRACES = "a call traces the function for arguments of its kind; f:describe() is the text of the plan that ran last"
local SAMPLES = "flow.random.categorical(logits, num_samples) draws classes"

return {
  flow = {
    acos = "flow.arccos(x)", asin = "flow.arcsin(x)", atan = "flow.arctan(x)", atan2 = "flow.arctan2(y, x)", acosh = "flow.arccosh(x)",
    asinh = "flow.arcsinh(x)", atanh = "flow.arctanh(x)", reduce_all = "flow.all(x, axis, keepdims)",
    reduce_any = "flow.any(x, axis, keepdims)", reduce_logsumexp = "flow.logsumexp(x, axis, keepdims)",
    reduce_variance = "flow.var(x, axis, keepdims)", reduce_std = "flow.std(x, axis, keepdims)", rank = "flow.ndim(x), or #x.shape",
    reverse = "flow.flip(x, axis)", scalar_mul = "it is a product: x * 2", truediv = "flow.true_divide(a, b)",
    realdiv = "flow.true_divide(a, b)", truncatediv = "flow.trunc(a / b)", truncatemod = "flow.fmod(a, b)",
    map_fn = "flow.map(f, xs); flow.vectorized_map(f, xs)", foldl = LOOPS, foldr = LOOPS, TensorArray = LOOPS,
    case = "flow.switch(index, functions)", switch_case = "flow.switch(index, functions)", bitcast = "flow.view(x, dtype)",
    scatter_nd = "flow.scatter(positions, values, shape), where positions count from 1", tensor_scatter_nd_add = SCATTER,
    tensor_scatter_nd_sub = SCATTER, tensor_scatter_nd_update = SCATTER, tensor_scatter_nd_max = SCATTER, tensor_scatter_nd_min = SCATTER,
    strided_slice = "x[{ {from, to, step}, ... }]", parallel_stack = "flow.stack(list)", identity_n = "a list is handed on as it is",
    broadcast_static_shape = "the shape of a + b", broadcast_dynamic_shape = "the shape of a + b", shape_n = "x.shape of each",
    executing_eagerly = EAGER, inside_function = EAGER,
    init_scope = EAGER, gradients = "tape:record(f), then tape:gradient(y, variables)",
    hessians = "two tapes: tape:jacobian(gradient, x) of a gradient that another one took",
    recompute_grad = MEMORY, grad_pass_through = OWN_GRADIENT, RegisterGradient = OWN_GRADIENT, no_gradient = "flow.stop_gradient(x)",
    RaggedTensor = RAGGED, ragged = RAGGED, SparseTensor = SPARSE, sparse = SPARSE, IndexedSlices = SPARSE,
    Assert = CHECK, debugging = CHECK, assert_equal = CHECK, assert_greater = CHECK, assert_less = CHECK, assert_rank = CHECK,
    control_dependencies = "ops of a traced function run in the order of its text", group = "ops run when they are called",
    no_op = "ops run when they are called", print = "print(x); in a trace a tensor has no value yet", tuple = "a list of tensors",
    zeros_initializer = "flow.initializers.Zeros()", ones_initializer = "flow.initializers.Ones()",
    TensorShape = "shapes are lists: x.shape", DType = DTYPE, as_dtype = DTYPE, dtypes = DTYPE, float64 = DTYPE, bfloat16 = DTYPE,
    uint8 = DTYPE, int8 = DTYPE, int16 = DTYPE, uint16 = DTYPE, uint32 = DTYPE, uint64 = DTYPE, bool = DTYPE, string = DTYPE,
    complex64 = COMPLEX, complex128 = COMPLEX, complex = COMPLEX,
    nest = "flow.keras.tree has map_structure, flatten and pack_sequence_as", autograph = CONTROL, __version__ = "flow.version",
    types = "arguments of a traced function are tensors, numbers, texts and tables of these", RaggedTensorSpec = RAGGED,
    is_nan = "flow.isnan(x)", is_inf = "flow.isinf(x)", multiply_no_nan = "flow.where(y:eq(0), 0, x * y)",
    segment_mean = "flow.segment_sum(x, ids) / flow.segment_sum(flow.ones_like(x), ids)",
    dynamic_partition = "flow.boolean_mask(x, partitions:eq(i)) for each i",
    unique_with_counts = "flow.unique(x, { return_counts = true })",
    histogram_fixed_width = "flow.histogram(x, { bins = n, range = { low, high } })", timestamp = "os.time() and os.clock()",
    space_to_batch = "flow.keras.ops.image.extract_patches(x, { size = n }) cuts pictures",
    numpy_function = "flow.data.Dataset.from_generator calls Lua",
    as_string = "flow.strings.as_string(x)", load_library = "a program in C finds flow.h",
    UnconnectedGradients = "tape:gradient(y, x, nil, \"zero\")", VariableAggregation = EQUAL,
    VariableSynchronization = EQUAL,
    name = "layers and variables take name", get_logger = "flow.log says what is reported",
  },
  variable = {
    read_value = "flow.add(variable, 0)", get_shape = "variable.shape", eval = "variable:totable()", scatter_add = ASSIGNED,
    scatter_sub = ASSIGNED, scatter_nd_update = ASSIGNED, scatter_nd_add = ASSIGNED, scatter_nd_sub = ASSIGNED,
    scatter_max = ASSIGNED, scatter_min = ASSIGNED, scatter_mul = ASSIGNED, scatter_div = ASSIGNED,
  },
  tensor = { eval = "tensor:totable()", get_shape = "tensor.shape" },
  ["traced function"] = {
    get_concrete_function = TRACES, pretty_printed_concrete_signatures = TRACES, graph = TRACES, function_type = TRACES,
    experimental_get_tracing_count = TRACES, experimental_get_compiler_ir = TRACES, structured_outputs = TRACES,
    python_function = "keep f itself: flow.fn(f) traces it", get_initialized_function = TRACES,
  },
  dataset = {
    numpy = "for x, y in ds:iter() do ... end", collect = "for x, y in ds:iter() do ... end", tolist = "for x, y in ds:iter() do ... end",
    as_list = "for x, y in ds:iter() do ... end",
    next = "local iterator = ds:iter(), then iterator()",
    output_shapes = "ds.element_spec", output_types = "ds.element_spec", shape = "ds.element_spec", dtype = "ds.element_spec",
  },
  optimizer = {
    get_scaled_loss = "optimizer:scale_loss(loss)",
    get_unscaled_gradients = "apply_gradients divides by the scale: give it the gradients of optimizer:scale_loss(loss)",
    get_slot = "optimizer.variables are the slots of all variables", weights = "optimizer.variables",
  },
  tape = {
    watched_variables = "the variables of a model are model.trainable_variables",
  },
  ["flow.io"] = {
    decode_jpeg = DECODE, decode_png = DECODE, decode_image = DECODE, decode_gif = DECODE, decode_bmp = DECODE,
    decode_csv = "flow.data.load_csv(path) reads tables", decode_raw = "flow.frombuffer(bytes, shape, { dtype = \"uint8\" })",
    write_file = "flow.io.write(path, text)", matching_files = "flow.io.glob(pattern)", serialize_tensor = SAVE, parse_tensor = SAVE,
    encode_jpeg = "flow.image.save(path, picture, { quality = 95 }) writes a file",
    encode_png = "flow.image.save(path, picture) writes a file",
  },
  ["flow.strings"] = {
    format = "(\"%s\"):format(x)", to_hash_bucket = HASH, to_hash_bucket_fast = HASH, to_hash_bucket_strong = HASH,
    ngrams = "layers.TextVectorization { ngrams = 2 } makes them", unicode_decode = CHARACTERS, unicode_encode = CHARACTERS,
    unicode_split_with_offsets = CHARACTERS,
  },
  ["flow.random"] = {
    stateless_categorical = SAMPLES, log_uniform_candidate_sampler = SAMPLES, uniform_candidate_sampler = SAMPLES,
    poisson = "flow.random.gamma(shape, alpha) and flow.random.binomial(shape, counts, probabilities) are there",
    get_global_generator = "flow.random.Generator.from_seed(seed)", set_global_generator = "flow.set_random_seed(seed)",
    split = "flow.random.Generator.from_seed(seed):make_seeds(count)", fold_in = "a seed of two numbers: { seed, number }",
  },
  ["flow.utils"] = {
    ImageDataGenerator = "flow.image_dataset_from_directory reads pictures, and layers such as layers.RandomFlip change them",
  },
  ["flow.data"] = {
    make_csv_dataset = "flow.data.experimental.make_csv_dataset(path, { batch_size = 32, label_name = \"y\" })",
    FixedLengthRecordDataset = "flow.frombuffer(bytes, shape, { dtype = \"uint8\" }) of flow.io.read_file(path) has the bytes as rows",
  },
  ["flow.summary"] = { trace_export = "flow.profile(f) prints where time goes", trace_off = "flow.profile(f) prints where time goes",
    scalar = WRITERS, image = WRITERS, histogram = WRITERS, text = WRITERS, audio = WRITERS, write = WRITERS,
    flush = WRITERS, graph = "model:summary() and flow.utils.plot_model(model) show a model",
    trace_on = "flow.profile(f) prints where time goes" },
  ["flow.config"] = { optimizer = "the passes over plans always run; flow.config.set_precision(\"exact\") leaves no rounding to them",
    run_functions_eagerly = EAGER, functions_run_eagerly = EAGER,
    get_visible_devices = "flow.config.list_physical_devices()", set_logical_device_configuration = "flow.config.set_logical_devices(list)",
    LogicalDeviceConfiguration = "flow.config.set_logical_devices(list)" },
  ["flow.train"] = {
    ExponentialMovingAverage = "optimizers take use_ema = true, ema_momentum",
    CheckpointOptions = "flow.train.CheckpointManager takes options",
    Coordinator = "data sets have threads: ds:map(f, { num_parallel_calls = 4 })",
  },
  ["flow.data.experimental"] = {
    sample_from_datasets = "flow.data.Dataset.sample_from_datasets(list, weights)", save = "ds:save(path)",
    choose_from_datasets = "flow.data.Dataset.choose_from_datasets(list, choices)", load = "flow.data.Dataset.load(path)",
    map_and_batch = "ds:map(f):batch(n)", prefetch_to_device = "ds:prefetch(n)", copy_to_device = "ds:prefetch(n)",
    parallel_interleave = "ds:interleave(f, { cycle_length = n, num_parallel_calls = m })",
    RandomDataset = "flow.data.Dataset.random(seed)",
    dense_to_ragged_batch = RAGGED, TFRecordWriter = "flow.data.TFRecordWriter(path)",
    parse_example_dataset = "ds:map(flow.data.parse_example { x = { \"float32\", { 2 } } })",
  },
}
