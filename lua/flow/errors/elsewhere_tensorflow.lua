-- elsewhere_tensorflow.lua: where to find what TensorFlow has in tf itself and in its modules; elsewhere.lua takes it in.

local RAGGED = "rows of different lengths are padded: ds:padded_batch(n), flow.utils.pad_sequences(lists), masks by"
  .. " flow.sequence_mask(lengths)"
local OF_EPOCHS = "the history of fit, history.history, has a list of values for each name, one for each epoch: history.history.loss[1]"
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
local EIGEN = "no dtype is complex, as its results are; of symmetric matrices flow.eigh(x) gives values and vectors"
local COMPLEX = "no dtype is complex: two tensors stand for complex numbers: real, imaginary = flow.fft { x, y }"
local DTYPE = "dtypes are texts such as \"float32\" and \"string\""
local CONTROL = "Lua's if and for run when flow.fn(f) traces f: flow.cond, flow.switch and flow.while_loop run in the plan"
local TRACES = "a call traces the function for arguments of its kind; f:describe() is the text of the plan that ran last"
local SAMPLES = "flow.random.categorical(logits, num_samples) draws classes"

local GRAPHS = "functions run at once, and flow.fn(f) traces them: no graph is built first, and none can be changed"
local PROTOCOL = "TF_CONFIG, and the options of strategies, say who takes part: flow.distribute.ClusterResolver()"
local SEQUENCES = "flow.data.parse_example { x = { \"float32\", { -1 } } } reads features of any length, "
  .. "and ds:padded_batch(n) fills them up"
local CANDIDATES = "losses are computed over all classes: flow.sparse_categorical_crossentropy(labels, logits, { from_logits = true })"
local SEGMENTS = "flow.segment_sum(x, ids, num_segments) takes ids in any order, and so do segment_max, segment_min and segment_prod"
local SEGMENT_MEAN = "flow.divide_no_nan(flow.segment_sum(x, ids, n), flow.segment_sum(flow.ones_like(x), ids, n)), where ids count from 0"
local VIEWS = "flow.keras.ops.image.extract_patches(x, { size = n }) cuts pictures"
local SPECIAL = "flow has erf, erfc, erfinv and i0 of the special functions"
local CODERS = "tensors of strings hold bytes, which Lua's functions of strings change; ds:map calls them for each element"
local BYTES = "bytes:sub(1, 3) == \"\\255\\216\\255\" tells JPEG, and #flow.image.decode_jpeg(bytes) its height"
local CROPPED = "flow.image.crop_to_bounding_box(flow.image.decode_jpeg(bytes), top, left, height, width)"
local REPLICAS = "strategy:run(f, { x }) calls f on each replica; flow.distribute.get_replica_context() is the one that runs"
local STATE = "checkpoint:save(path) and checkpoint:restore(path) keep iterators, too"
local CELLS = "layers.LSTMCell and the like take dropout and recurrent_dropout; write another cell as layers.Layer:extend(name)"
local SIZES = "an operation takes any sizes: flow.conv(x, kernel, strides, padding, data_format, dilation_rate), of 1 to 3 axes"
local THREADS = "ds:map(f, { num_parallel_calls = n }) says how many threads a stage has, flow.config.set_threads(n) how many all have"
local NEAR = "x / (bias + alpha * squares) ^ beta, where flow.conv of x * x with a kernel of ones adds squares of near channels"
local ROOT = "of symmetric matrices: values, vectors = flow.eigh(x), "
  .. "then flow.matmul(vectors * flow.sqrt(values), flow.transpose(vectors))"
local OPTIONS = "ds:with_options { auto_shard_policy = \"DATA\", deterministic = false } are the options that there are"

return {
  flow = {
    AggregationMethod = "gradients are added as they come: flow.add_n(list)", CriticalSection = "one Lua state runs one function at a time",
    DeviceSpec = "devices are texts such as \"gpu:0\"", Graph = GRAPHS, OptionalSpec = GRAPHS, TensorArraySpec = LOOPS,
    IndexedSlicesSpec = SPARSE, SparseTensorSpec = SPARSE, TypeSpec = "flow.TensorSpec(shape, dtype)",
    approx_top_k = "flow.top_k(x, k)", batch_to_space = "flow.reshape and flow.transpose do it",
    space_to_batch_nd = "flow.reshape and flow.transpose do it", required_space_to_batch_paddings = "flow.reshape and flow.transpose do it",
    check_pinned = GRAPHS, guarantee_const = GRAPHS, import_graph_def = GRAPHS, get_static_value = "x:item(), x:totable()",
    get_current_name_scope = "layers and variables take name", is_symbolic_tensor = "flow.is_tensor(x) tells tensors",
    make_ndarray = SAVE, make_tensor_proto = SAVE, load_op_library = "a program in C finds flow.h",
    register_tensor_conversion_function = "flow.tensor(value) takes numbers, booleans, texts, lists and C memory",
    type_spec_from_value = "flow.TensorSpec(x.shape, x.dtype)",
    variable_creator_scope = "a function that makes the variables is called in its place",
    conv2d_backprop_filter_v2 = "tape:gradient(target, kernel)", conv2d_backprop_input_v2 = "tape:gradient(target, x)",
    dynamic_stitch = SCATTER, edit_distance = "a loop over the lists does it: strings have no tensors of sparse positions here",
    eig = EIGEN, eigvals = EIGEN,
    matrix_square_root = ROOT,
    extract_volume_patches = "flow.keras.ops.image.extract_patches_3d(x, { size = n })",
    fftnd = "flow.fft and flow.fft2 transform one axis and two",
    ifftnd = "flow.ifft2 transforms two axes back", rfftnd = "flow.rfft transforms one axis", irfftnd = "flow.irfft transforms one axis",
    fingerprint = HASH, histogram_fixed_width_bins = "flow.digitize(x, edges)",
    nondifferentiable_batch_function = "model:predict(x, { batch_size = n })",
    ragged_fill_empty_rows = RAGGED, ragged_fill_empty_rows_grad = RAGGED, random_index_shuffle = "flow.random.permutation(n)",
    reverse_sequence = "flow.take_along_axis(x, positions, axis), or layers.Bidirectional, which knows masks",
    accumulate_n = "flow.add_n(list)", approx_max_k = "flow.top_k(x, k)", approx_min_k = "flow.top_k(-x, k)", bessel_i0 = "flow.i0(x)",
    bessel_i0e = "flow.i0(x) * flow.exp(-flow.abs(x))", bessel_i1 = SPECIAL, bessel_i1e = SPECIAL, betainc = SPECIAL, igamma = SPECIAL,
    igammac = SPECIAL, polygamma = SPECIAL, zeta = SPECIAL, lgamma = SPECIAL, digamma = SPECIAL, lbeta = SPECIAL,
    erfcinv = "flow.erfinv(1 - x)", ndtri = "flow.erfinv(x * 2 - 1) * math.sqrt(2)", floordiv = "flow.floor_divide(a, b)",
    floormod = "flow.mod(a, b)", rint = "flow.round(x)", invert_permutation = "flow.argsort(x), where positions count from 1",
    is_non_decreasing = "flow.all(flow.diff(x):ge(0))", is_strictly_increasing = "flow.all(flow.diff(x):gt(0))",
    cumulative_logsumexp = "m = flow.max(x), then flow.log(flow.cumsum(flow.exp(x - m), axis)) + m",
    polyval = "a loop: y = y * x + coefficient, from the first coefficient on", squared_difference = "flow.square(a - b)",
    reciprocal_no_nan = "flow.divide_no_nan(1, x)", reduce_euclidean_norm = "flow.sqrt(flow.sum(x * x, axis, keepdims))",
    sobol_sample = "there is nothing of the kind; flow.random.uniform(shape) draws numbers", unsorted_segment_max = SEGMENTS,
    unsorted_segment_min = SEGMENTS,
    unsorted_segment_prod = SEGMENTS, unsorted_segment_sum = SEGMENTS,
    unsorted_segment_mean = SEGMENT_MEAN,
    unsorted_segment_sqrt_n = "flow.segment_sum(x, ids) / flow.sqrt(flow.segment_sum(flow.ones_like(x), ids))",
    xdivy = "x / flow.where(x:eq(0), 1, y)", xlogy = "x * flow.log(flow.where(x:eq(0), 1, y))",
    xlog1py = "x * flow.log1p(flow.where(x:eq(0), 0, y))", zero_fraction = "flow.mean(x:eq(0))",
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
    strided_slice = "x[{ {from, to, step}, ... }]", parallel_stack = "flow.stack(list)", identity_n = "a list is handed on unchanged",
    broadcast_static_shape = "the shape of a + b", broadcast_dynamic_shape = "the shape of a + b", shape_n = "x.shape of each",
    executing_eagerly = EAGER, inside_function = EAGER,
    init_scope = EAGER, gradients = "tape:record(f), then tape:gradient(y, variables)",
    hessians = "two tapes: tape:jacobian(gradient, x) of a gradient that another one took",
    recompute_grad = MEMORY, grad_pass_through = OWN_GRADIENT, RegisterGradient = OWN_GRADIENT, no_gradient = "flow.stop_gradient(x)",
    RaggedTensor = RAGGED, ragged = RAGGED, SparseTensor = SPARSE, sparse = SPARSE, IndexedSlices = SPARSE,
    Assert = CHECK, debugging = CHECK, assert_equal = CHECK, assert_greater = CHECK, assert_less = CHECK, assert_rank = CHECK,
    control_dependencies = "ops of a traced function run in the order of its text", group = "ops run when they are called",
    no_op = "ops run when they are called", tuple = "a list of tensors",
    zeros_initializer = "flow.initializers.Zeros()", ones_initializer = "flow.initializers.Ones()",
    TensorShape = "shapes are lists: x.shape", DType = DTYPE, as_dtype = DTYPE, dtypes = DTYPE, float64 = DTYPE, bfloat16 = DTYPE,
    uint8 = DTYPE, int8 = DTYPE, int16 = DTYPE, uint16 = DTYPE, uint32 = DTYPE, uint64 = DTYPE, bool = DTYPE, string = DTYPE,
    polar = "no dtype is complex: the real part is abs * flow.cos(angle), the imaginary one abs * flow.sin(angle)",
    view_as_complex = "no dtype is complex: real, imaginary = unpack(flow.unstack(x, nil, -1))",
    view_as_real = "no dtype is complex: flow.stack({ real, imaginary }, -1)", complex64 = COMPLEX, complex128 = COMPLEX, complex = COMPLEX,
    nest = "flow.keras.tree has map_structure, flatten and pack_sequence_as", autograph = CONTROL, __version__ = "flow.version",
    types = "arguments of a traced function are tensors, numbers, texts and tables of these", RaggedTensorSpec = RAGGED,
    is_nan = "flow.isnan(x)", is_inf = "flow.isinf(x)", multiply_no_nan = "flow.where(y:eq(0), 0, x * y)",
    segment_mean = SEGMENT_MEAN,
    dynamic_partition = "flow.boolean_mask(x, partitions:eq(i)) for each i",
    unique_with_counts = "flow.unique(x, { return_counts = true })",
    histogram_fixed_width = "flow.histogram(x, { bins = n, range = { low, high } })", timestamp = "os.time() and os.clock()",
    space_to_batch = "flow.keras.ops.image.extract_patches(x, { size = n }) cuts pictures",
    as_string = "flow.strings.as_string(x)", load_library = "a program in C finds flow.h",
    UnconnectedGradients = "tape:gradient(y, x, nil, \"zero\")", VariableAggregation = EQUAL,
    VariableSynchronization = EQUAL,
    name = "layers and variables take name", get_logger = "flow.log says what is reported",
  },
  ["flow.nn"] = {
    RNNCellDeviceWrapper = CELLS, RNNCellDropoutWrapper = CELLS, RNNCellResidualWrapper = CELLS, all_candidate_sampler = CANDIDATES,
    compute_accidental_hits = CANDIDATES, fixed_unigram_candidate_sampler = CANDIDATES, learned_unigram_candidate_sampler = CANDIDATES,
    nce_loss = CANDIDATES, sampled_softmax_loss = CANDIDATES, conv1d = SIZES, conv3d = SIZES, convolution = SIZES, atrous_conv2d = SIZES,
    conv1d_transpose = "flow.conv_transpose(x, kernel, strides, padding)",
    conv3d_transpose = "flow.conv_transpose(x, kernel, strides, padding)",
    atrous_conv2d_transpose = "flow.conv_transpose(x, kernel, strides, padding)",
    depthwise_conv2d = "flow.depthwise_conv(x, kernel, strides, padding)",
    depthwise_conv2d_backprop_filter = "tape:gradient(target, kernel)", depthwise_conv2d_backprop_input = "tape:gradient(target, x)",
    separable_conv2d = "flow.separable_conv(x, depthwise_kernel, pointwise_kernel, strides, padding)",
    avg_pool = "flow.average_pool(x, size, strides, padding)", avg_pool1d = "flow.average_pool(x, size, strides, padding)",
    avg_pool3d = "flow.average_pool(x, size, strides, padding)", max_pool1d = "flow.max_pool(x, size, strides, padding)",
    max_pool3d = "flow.max_pool(x, size, strides, padding)", pool = "flow.max_pool and flow.average_pool take 1 to 3 axes",
    max_pool_with_argmax = "flow.max_pool(x, size), and tape:gradient says where the largest values are",
    fractional_avg_pool = "flow.adaptive_average_pool(x, output_size)", fractional_max_pool = "flow.adaptive_max_pool(x, output_size)",
    batch_norm_with_global_normalization = "flow.batch_normalization(x, mean, variance, axis, offset, scale, epsilon)",
    collapse_repeated = "flow.ctc_decode(inputs, lengths) merges them",
    ctc_unique_labels = "flow.ctc_loss(target, output, target_length, output_length)",
    crelu = "flow.relu(flow.concat({ x, -x }, -1))", dilation2d = "flow.max_pool(x, size, 1, \"same\"), with a kernel of zeros",
    erosion2d = "-flow.max_pool(-x, size, 1, \"same\")",
    dropout = "flow.random.dropout(x, rate), or layers.Dropout(rate)", embedding_lookup_sparse = SPARSE,
    safe_embedding_lookup_sparse = SPARSE,
    isotonic_regression = "there is nothing of the kind",
    lrn = NEAR,
    local_response_normalization = NEAR,
    log_poisson_loss = "flow.exp(x) - targets * x", normalize_moments = "flow.moments(x, axes)",
    sufficient_statistics = "flow.moments(x, axes)",
    weighted_cross_entropy_with_logits = "flow.softplus(-x) * (1 + (weight - 1) * y) + (1 - y) * x", with_space_to_batch = SIZES,
  },
  ["flow.audio"] = { encode_wav = "flow.io.write(path, bytes) writes a file: a .wav has a header of 44 bytes, then 16-bit samples" },
  ["flow.image"] = {
    decode_and_crop_jpeg = CROPPED, extract_jpeg_shape = BYTES, is_jpeg = BYTES, extract_glimpse = VIEWS,
    generate_bounding_box_proposals = "flow.image.non_max_suppression(boxes, scores, most)",
    non_max_suppression_overlaps = "flow.image.non_max_suppression(boxes, scores, most) computes overlaps of boxes",
    non_max_suppression_padded = "flow.image.non_max_suppression(boxes, scores, most), then flow.pad",
    stateless_random_jpeg_quality = "flow.image.save(path, picture, { quality = 95 }) writes a file",
    stateless_sample_distorted_bounding_box = "flow.image.stateless_random_crop(picture, size, seed), then flow.image.resize",
  },
  ["flow.distribute"] = {
    CrossDeviceOps = "flow.distribute.HierarchicalCopyAllReduce, NcclAllReduce and ReductionToOneDevice are those that there are",
    DistributedDataset = "strategy:experimental_distribute_dataset(ds) makes one",
    DistributedIterator = "for x, y in distributed:iter() do ... end",
    DistributedValues = "strategy:run(f, { x }) gives them, strategy:experimental_local_results(values) takes them apart",
    InputContext = "strategy:distribute_datasets_from_function(f) calls f with one",
    InputReplicationMode = "strategy:distribute_datasets_from_function(f) calls f in each worker", ReplicaContext = REPLICAS,
    RunOptions = REPLICAS, Strategy = "flow.distribute.get_strategy() is the one that runs",
    StrategyExtended = "what strategy.extended has is a method of the strategy",
    experimental_set_strategy = "strategy:scope(f) runs f under a strategy",
  },
  options = {
    threading = THREADS,
    autotune = "flow.AUTOTUNE as num_parallel_calls and as the buffer of prefetch is the tuning that there is",
    experimental_optimization = "stages are joined where that changes nothing", experimental_slack = "ds:prefetch(n) reads ahead",
    experimental_deterministic = "it is deterministic", experimental_external_state_policy = STATE,
    experimental_symbolic_checkpoint = STATE,
    experimental_threading = "ds:map(f, { num_parallel_calls = n }), flow.config.set_threads(n)",
    experimental_warm_start = "ds:prefetch(n) reads ahead",
    dataset_name = "ds:cache(path) and ds:save(path) name files", merge = "options are set one by one",
  },
  variable = {
    read_value = "flow.add(variable, 0)", get_shape = "variable.shape", eval = "variable:totable()", scatter_add = ASSIGNED,
    scatter_sub = ASSIGNED, scatter_nd_update = ASSIGNED, scatter_nd_add = ASSIGNED, scatter_nd_sub = ASSIGNED,
    scatter_max = ASSIGNED, scatter_min = ASSIGNED, scatter_mul = ASSIGNED, scatter_div = ASSIGNED,
  },
  tensor = {
    eval = "tensor:totable()", get_shape = "tensor.shape",
    to_tensor = "there are no ragged tensors: rows are filled up to the longest already",
  },
  ["traced function"] = {
    get_concrete_function = TRACES, pretty_printed_concrete_signatures = TRACES, graph = TRACES, function_type = TRACES,
    experimental_get_tracing_count = TRACES, experimental_get_compiler_ir = TRACES, structured_outputs = TRACES,
    python_function = "keep f itself: flow.fn(f) traces it", get_initialized_function = TRACES,
  },
  callback = { loss = OF_EPOCHS, accuracy = OF_EPOCHS, val_loss = OF_EPOCHS, val_accuracy = OF_EPOCHS },
  dataset = {
    ["[]"] = "its elements come one after the other, for x, y in ds:iter() do; ds:skip(2):take(1) has the third alone",
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
  ["flow.io"] = {
    FixedLenSequenceFeature = SEQUENCES, SparseFeature = SPARSE, parse_sequence_example = SEQUENCES,
    parse_single_sequence_example = SEQUENCES,
    decode_and_crop_jpeg = CROPPED, extract_jpeg_shape = BYTES, is_jpeg = BYTES, decode_base64 = CODERS, encode_base64 = CODERS,
    decode_compressed = "flow.data.TFRecordDataset(path, { compression_type = \"GZIP\" }), and TextLineDataset likewise",
    decode_json_example = "ds:map(flow.data.parse_example { ... }) reads records",
    decode_proto = "ds:map(flow.data.parse_example { ... }) reads records",
    encode_proto = "flow.data.TFRecordWriter(path):write_example { ... } writes records", deserialize_many_sparse = SPARSE,
    serialize_many_sparse = SPARSE, serialize_sparse = SPARSE, match_filenames_once = "flow.io.glob(pattern)", write_graph = GRAPHS,
    decode_jpeg = DECODE, decode_png = DECODE, decode_image = DECODE, decode_gif = DECODE, decode_bmp = DECODE,
    decode_csv = "flow.data.load_csv(path) reads tables", decode_raw = "flow.frombuffer(bytes, shape, { dtype = \"uint8\" })",
    write_file = "flow.io.write(path, text)", matching_files = "flow.io.glob(pattern)", serialize_tensor = SAVE, parse_tensor = SAVE,
    encode_jpeg = "flow.image.save(path, picture, { quality = 95 }) writes a file",
    encode_png = "flow.image.save(path, picture) writes a file",
  },
  ["flow.strings"] = {
    unicode_decode_with_offsets = CHARACTERS, unicode_script = CHARACTERS, unicode_transcode = "texts are UTF-8",
    unsorted_segment_join = "flow.strings.join(list, separator) of the strings of a segment",
    format = "(\"%s\"):format(x)", to_hash_bucket = HASH, to_hash_bucket_fast = HASH, to_hash_bucket_strong = HASH,
    ngrams = "layers.TextVectorization { ngrams = 2 } makes them", unicode_decode = CHARACTERS, unicode_encode = CHARACTERS,
    unicode_split_with_offsets = CHARACTERS,
  },
  ["flow.random"] = {
    Algorithm = "there is one, whatever alg says", create_rng_state = "flow.random.Generator.from_seed(seed).state",
    all_candidate_sampler = CANDIDATES, fixed_unigram_candidate_sampler = CANDIDATES, learned_unigram_candidate_sampler = CANDIDATES,
    stateless_binomial = "flow.random.binomial(shape, counts, probabilities, { seed = n })",
    stateless_gamma = "flow.random.gamma(shape, alpha, { seed = n })",
    stateless_poisson = "flow.random.gamma(shape, alpha) and flow.random.binomial(shape, counts, probabilities) are there",
    stateless_parameterized_truncated_normal = "flow.random.stateless_truncated_normal(shape, seed, mean, stddev)",
    stateless_categorical = SAMPLES,
    poisson = "flow.random.gamma(shape, alpha) and flow.random.binomial(shape, counts, probabilities) are there",
    get_global_generator = "flow.random.Generator.from_seed(seed)", set_global_generator = "flow.set_random_seed(seed)",
    split = "flow.random.Generator.from_seed(seed):make_seeds(count)", fold_in = "a seed of two numbers: { seed, number }",
  },
  ["flow.utils"] = {
    ImageDataGenerator = "flow.image_dataset_from_directory reads pictures, and layers such as layers.RandomFlip change them",
  },
  ["flow.data"] = {
    DatasetSpec = "ds.element_spec says what elements are", Iterator = "ds:iter() makes one",
    IteratorSpec = "ds.element_spec says what elements are",
    NumpyIterator = "ds:iter() makes one",
    ThreadingOptions = THREADS,
    make_csv_dataset = "flow.data.experimental.make_csv_dataset(path, { batch_size = 32, label_name = \"y\" })",
    FixedLengthRecordDataset = "flow.frombuffer(bytes, shape, { dtype = \"uint8\" }) of flow.io.read_file(path) has the bytes as rows",
  },
  ["flow.summary"] = { SummaryWriter = WRITERS, create_noop_writer = "an if around writer:scalar(...) does it",
    record_if = "an if around writer:scalar(...) does it", should_record_summaries = "an if around writer:scalar(...) does it",
    trace_export = "flow.profile(f) prints where time goes", trace_off = "flow.profile(f) prints where time goes",
    scalar = WRITERS, image = WRITERS, histogram = WRITERS, text = WRITERS, audio = WRITERS, write = WRITERS,
    flush = WRITERS, graph = "model:summary() and flow.utils.plot_model(model) show a model",
    trace_on = "flow.profile(f) prints where time goes" },
  ["flow.config"] = { optimizer = "the passes over plans always run; flow.config.set_precision(\"exact\") leaves no rounding to them",
    run_functions_eagerly = EAGER, functions_run_eagerly = EAGER,
    get_visible_devices = "flow.config.list_physical_devices()", set_logical_device_configuration = "flow.config.set_logical_devices(list)",
    LogicalDeviceConfiguration = "flow.config.set_logical_devices(list)" },
  ["flow.train"] = {
    CheckpointView = "flow.train.load_checkpoint(path) reads a checkpoint",
    TrackableView = "flow.train.list_variables(path) lists what a checkpoint has",
    ClusterDef = PROTOCOL, JobDef = PROTOCOL, ServerDef = PROTOCOL, FeatureList = SEQUENCES, FeatureLists = SEQUENCES,
    SequenceExample = SEQUENCES,
    get_checkpoint_state = "flow.train.CheckpointManager(checkpoint, folder).checkpoints, .latest_checkpoint",
    ExponentialMovingAverage = "optimizers take use_ema = true, ema_momentum",
    CheckpointOptions = "flow.train.CheckpointManager takes options",
    Coordinator = "data sets have threads: ds:map(f, { num_parallel_calls = 4 })",
  },
  ["flow.data.experimental"] = {
    AutotuneAlgorithm = OPTIONS, AutotuneOptions = OPTIONS, DistributeOptions = OPTIONS, ExternalStatePolicy = OPTIONS,
    OptimizationOptions = OPTIONS, ServiceOptions = OPTIONS, ThreadingOptions = OPTIONS,
    DatasetInitializer = "flow.layers.StringLookup():adapt(ds)",
    index_table_from_dataset = "flow.layers.StringLookup():adapt(ds)",
    table_from_dataset = "a table of Lua, filled in a loop over ds:iter()",
    Optional = "iterator:get_next_as_optional()", get_next_as_optional = "iterator:get_next_as_optional()",
    Reducer = "ds:reduce(state, f), ds:group_by_window(key, reduce, size)", group_by_reducer = "ds:group_by_window(key, reduce, size)",
    at = "for x in ds:skip(n):take(1):iter() do ... end", dense_to_sparse_batch = SPARSE, distributed_save = "ds:save(path)",
    enable_debug_mode = "for x in ds:iter() do print(x) end", from_list = "flow.data.Dataset.from_tensor_slices(list)",
    from_variant = GRAPHS,
    to_variant = GRAPHS, get_model_proto = GRAPHS, get_structure = "ds.element_spec",
    make_batched_features_dataset = "flow.data.TFRecordDataset(files):shuffle(n):batch(m):map(flow.data.parse_example { ... })",
    make_saveable_from_iterator = STATE, pad_to_cardinality = "ds:padded_batch(n), or ds:concatenate(other)",
    sample_from_datasets = "flow.data.Dataset.sample_from_datasets(list, weights)", save = "ds:save(path)",
    choose_from_datasets = "flow.data.Dataset.choose_from_datasets(list, choices)", load = "flow.data.Dataset.load(path)",
    map_and_batch = "ds:map(f):batch(n)", prefetch_to_device = "ds:prefetch(n)", copy_to_device = "ds:prefetch(n)",
    parallel_interleave = "ds:interleave(f, { cycle_length = n, num_parallel_calls = m })",
    RandomDataset = "flow.data.Dataset.random(seed)",
    dense_to_ragged_batch = RAGGED, TFRecordWriter = "flow.data.TFRecordWriter(path)",
    parse_example_dataset = "ds:map(flow.data.parse_example { x = { \"float32\", { 2 } } })",
  },
}
