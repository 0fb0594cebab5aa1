-- elsewhere.lua: where to find what scripts for Keras and TensorFlow have under another name. Loaded when a script uses such a name.
--
-- A table by module ("flow", "flow.io"), class of objects ("model", "tensor"), "option" or function ("model:fit"), and then by the name
-- that is not here; values are ends of sentences, which follow ": ". errors.elsewhere looks names up, signature.module and object.lua when
-- a name is not found.

local ENVIRONMENT = "os.getenv reads variables; a cluster need not stand in TF_CONFIG: "
  .. "flow.distribute.ClusterResolver { cluster = {...}, task = { type = \"worker\", index = 0 } }"
local MESH = "models are not cut over devices: MirroredStrategy and MultiWorkerMirroredStrategy give each replica the whole model"
local BIGQUERY = "tables are exported to files first: flow.data.TFRecordDataset and flow.data.load_csv read these"
local EXAMPLE = "ds:map(flow.data.parse_example { image = \"bytes\", label = \"int64\", xs = { \"float32\", { 2, 3 }, default = 0 }, "
  .. "ids = { \"int64\", { -1 } } }) reads records, and a map after it takes the features"
local WRITER = "flow.data.TFRecordWriter(path):write_example { image = bytes, label = 7, xs = { 1.5, 2 } } writes records"
local TABLE = "flow.data.load_csv(path, { columns = ..., dtypes = ... }) reads columns by name, for from_tensor_slices { columns, y }"
local RESOLVER = "ClusterResolver() reads TF_CONFIG, CLUSTER_SPEC, and the variables of Kubernetes, Slurm and MPI"

local BY_BLOCKS = "compiled attention over many steps is computed by blocks on the CPU, with nothing to switch"
local PICKLED = "its file is a Python pickle: numpy.savez(\"x.npz\", ...) writes one that flow.load_npz(path) reads"
local ONE_PROGRESS = "fit, evaluate and predict take verbose: 1 is a bar, 2 a line for each epoch, 0 nothing"
local GALLERY = "flow.plot.images(images, file, { titles = ... }) draws pictures in a grid"
local FILES = "flow.image.save(path, picture, { quality = 95 }) writes a file"
local QUANTIZE = "model:quantize(data) makes a model predict in int8"

local ENDING = "the ending of the path says it: .keras or .h5, .weights.h5 for weights alone"
local EQUAL = "replicas have equal values, or their own with sync = \"SUM_ON_READ\" or \"MEAN_ON_READ\""
local SHAPES = "a trace takes any number of rows, and other dtypes and shapes are traced again; an if with error(...) in f refuses some"

local CALLS_LUA = "plans do not call Lua: return the tensor from the traced function and go on with it there; ds:map calls functions "
  .. "of texts in Lua, flow.data.Dataset.from_generator any; without flow.fn, and with "
  .. "compile { run_eagerly = true }, Lua runs at each step"

local FOREIGN = "layers of other frameworks do not run here: layers.Layer:extend(name) makes a layer"
local GROUPS = "each optimizer has apply_gradients(gradients, variables): call it for its variables in Model:train_step"
local applications = {}
for _, name in ipairs { "EfficientNetV2B0", "EfficientNetV2B1", "EfficientNetV2B2", "EfficientNetV2B3", "EfficientNetV2L",
    "EfficientNetV2M", "EfficientNetV2S", "InceptionResNetV2", "NASNetLarge", "NASNetMobile" } do
  applications[name] = "flow.load_model(path) opens models that Keras saved, if flow has their layers"
end

local strategies = {
  TPUStrategy = "there are CPUs and GPUs: MirroredStrategy() takes those of a machine, MultiWorkerMirroredStrategy() those of several",
  CentralStorageStrategy = "MirroredStrategy() keeps the variables of all replicas equal",
  Mesh = MESH, DTensor = MESH, ModelParallel = MESH, DeviceMesh = MESH, LayoutMap = MESH,
  CollectiveHints = "CommunicationOptions { bytes_per_pack = ... } says it",
  InputOptions = "data sets are cut by with_options { auto_shard_policy = ... }, and read ahead by prefetch(n)",
}

local PAIRS = "flow.text.Tokenizer.from_file(path) reads a tokenizer.json, "
  .. "flow.text.Tokenizer(vocabulary, merges) a vocab.json and a merges.txt"
local METRIC = "make self.distance = flow.metrics.Mean() in init() and call self.distance:update_state(values) in call(): "
  .. "fit reports it as distance"
local SUPER = "what a class extends is called by its name: layers.Layer.init(self), layers.Dense.call(self, x)"

local OF_MODELS = "it is a method of models: local model = flow.Sequential { ... }; model:%s"

local places = {
  flow = {
    preprocessing = "flow.image_dataset_from_directory reads pictures, and layers such as layers.RandomFlip change them",
    saved_model = "flow.load_model opens .keras files, model:export(folder) writes a folder for serving",
    ["function"] = "functions are traced by flow.fn(f)",
    fit = OF_MODELS:format "fit(x, y)", compile = OF_MODELS:format "compile { optimizer = \"adam\", loss = \"mse\" }",
    predict = OF_MODELS:format "predict(x)", evaluate = OF_MODELS:format "evaluate(x, y)",
    reduce_mean = "flow.mean(x, axis, keepdims)", reduce_sum = "flow.sum(x, axis, keepdims)", reduce_max = "flow.max(x, axis, keepdims)",
    reduce_min = "flow.min(x, axis, keepdims)", reduce_prod = "flow.prod(x, axis, keepdims)",
    activations = "flow.keras.activations has them, and flow itself as functions: flow.relu(x)",
    tokenizers = "flow.text.Tokenizer reads and trains byte-pair tokenizers", Tokenizer = "flow.text.Tokenizer",
    linalg = "its functions are in flow itself: flow.inv, flow.svd, flow.solve",
    lookup = "layers.StringLookup and layers.IntegerLookup are tables of words and numbers",
    feature_column = "flow.utils.FeatureSpace makes inputs of columns",
    Tensor = "tensors are made by flow.tensor, flow.zeros and flow.random",
    constant_initializer = "initializers are in flow.initializers",
    random_uniform_initializer = "flow.initializers.RandomUniform()", random_normal_initializer = "flow.initializers.RandomNormal()",
    fill = "flow.full(shape, value)",
    py_function = CALLS_LUA, numpy_function = CALLS_LUA,
    estimator = "model:fit trains; with callbacks.ModelDirectory(model_dir) it goes on from what is in a folder, and saves there",
    profiler = "flow.profile(f) prints where time goes",
    Module = "layers are made by flow.layers.Layer:extend(name), models by flow.Model:extend(name)",
    gfile = "files and folders are in flow.io",
    compat = "there is one version: what compat.v1 has is not here",
    lite = "model:export(path) writes an ONNX model, model:quantize(data) makes a model predict in int8",
    signal = "its functions are in flow itself: flow.stft, with center = false as tf.signal has it, flow.istft, flow.rfft, flow.hanning, "
      .. "flow.linear_to_mel_weight_matrix",
    tf = "what scripts call tf is flow itself",
    environ = ENVIRONMENT, os = ENVIRONMENT, setenv = ENVIRONMENT,
    KerasTensor = "flow.Input {...} makes symbolic tensors, flow.is_tensor(x) tells tensors",
    InputSpec = "flow.layers.InputSpec { ndim = 3 }",
    Function = "flow.Model { inputs = ..., outputs = ... } is a graph of layers",
    Operation = "ops are functions of tensors, such as flow.relu",
    StatelessScope = "flow.fn(f) traces f and the variables that it reads and writes",
    remat = "activations of the forward pass are kept; gradient_accumulation_steps of optimizers lets batches be smaller",
    name_scope = "layers and variables take name", quantizers = QUANTIZE, Quantizer = QUANTIZE,
    export = "model:export(folder) writes a folder for serving", wrappers = "model:fit and model:predict are the interface",
    distillation = "lua/examples/distillation.lua trains a student by its own train_step",
    visualization = GALLERY,
    distribution = "flow.distribute has strategies, and flow.keras.distribution Keras' names of them",
    mesh = MESH, dtensor = MESH, experimental = "what tf.experimental has is in flow itself, or not here",
  },
  ["flow.image"] = {
    encode_jpeg = FILES, encode_png = FILES, adjust_jpeg_quality = FILES, random_jpeg_quality = FILES,
    draw_bounding_boxes = "boxes are numbers: write them into the pixels, picture[{ {top, bottom}, left }] = colour",
    ssim_multiscale = "flow.image.ssim(a, b, max_val) compares at one scale",
    non_max_suppression_with_scores = "flow.image.non_max_suppression(boxes, scores, most), then flow.take(scores, positions)",
    sample_distorted_bounding_box = "flow.image.random_crop(picture, size), then flow.image.resize",
  },
  ["flow.keras.distribution"] = { ModelParallel = MESH, DeviceMesh = MESH, LayoutMap = MESH, TensorLayout = MESH,
    distribute_tensor = MESH, initialize = "MultiWorkerMirroredStrategy() finds the other workers by TF_CONFIG, MPI or Slurm" },
  ["flow.keras.preprocessing"] = { text = "layers.TextVectorization and layers.StringLookup make numbers of strings" },
  ["flow.config"] = {
    experimental = "devices are in flow.config: list_physical_devices, set_logical_devices",
    set_visible_devices = "CUDA_VISIBLE_DEVICES in the environment hides GPUs, and MirroredStrategy { devices = {...} } takes some",
  },
  ["flow.keras.config"] = {
    enable_interactive_logging = ONE_PROGRESS, disable_interactive_logging = ONE_PROGRESS, is_interactive_logging_enabled = ONE_PROGRESS,
    enable_traceback_filtering = "tracebacks end at the script's lines",
    disable_traceback_filtering = "tracebacks end at the script's lines",
    is_traceback_filtering_enabled = "tracebacks end at the script's lines",
    enable_unsafe_deserialization = "nothing in a file is ever run: give classes and functions as custom_objects = { Name = Class }",
    enable_flash_attention = BY_BLOCKS, disable_flash_attention = BY_BLOCKS, is_flash_attention_enabled = BY_BLOCKS,
    is_nnx_enabled = "there is one back end, which is not JAX",
    set_backend = "there is one", set_max_epochs = "model:fit takes epochs", set_max_steps_per_epoch = "model:fit takes steps_per_epoch",
    max_epochs = "model:fit takes epochs", max_steps_per_epoch = "model:fit takes steps_per_epoch",
  },
  ["flow.keras.backend"] = {
    result_type = "(flow.zeros({}, { dtype = a }) + flow.zeros({}, { dtype = b })).dtype is it",
    standardize_dtype = "dtypes are texts such as \"float32\"", is_keras_tensor = "flow.Input {...} makes symbolic tensors",
    ctc_batch_cost = "flow.ctc_loss(labels, flow.log(y_pred + 1e-7), label_lengths, lengths, classes - 1), whose blank is the last class",
    ctc_decode = "flow.ctc_decode(flow.log(y_pred), lengths, { mask_index = classes - 1 }), whose blank is the last class",
  },
  ["flow.utils"] = {
    Progbar = ONE_PROGRESS, enable_interactive_logging = ONE_PROGRESS, disable_interactive_logging = ONE_PROGRESS,
    is_interactive_logging_enabled = ONE_PROGRESS, model_to_dot = "flow.utils.plot_model(model, { to_file = \"model.svg\" }) draws it",
    get_source_inputs = "model.inputs are the inputs of a model", Config = "a table holds options: { units = 8 }",
  },
  ["flow.datasets"] = {
    cifar10 = PICKLED, cifar100 = PICKLED, imdb = PICKLED .. "; flow.text_dataset_from_directory reads the folder of texts",
    reuters = PICKLED, boston_housing = "flow.load_npz(path) reads boston_housing.npz: its arrays are x and y",
    california_housing = "flow.load_npz(path) reads california_housing.npz: its arrays are x and y",
  },
  ["flow.callbacks"] = {
    OrbaxCheckpoint = "callbacks.ModelCheckpoint(path) and BackupAndRestore(folder) save",
    CallbackList = "model:fit takes a list of callbacks",
  },
  ["flow.mixed_precision"] = { LossScaleOptimizer = "flow.optimizers.LossScaleOptimizer(inner) is it", AWQDTypePolicy = QUANTIZE,
    GPTQDTypePolicy = QUANTIZE, Int4DTypePolicy = QUANTIZE, QuantizedDTypePolicy = QUANTIZE, QuantizedFloat8DTypePolicy = QUANTIZE,
    DTypePolicyMap = "each layer takes dtype = \"float32\" or a policy", FloatDTypePolicy = "flow.mixed_precision.DTypePolicy(name) is it",
    get = "flow.mixed_precision.DTypePolicy(name) makes one", serialize = "a policy is its name", deserialize = "a policy is its name" },
  ["flow.applications"] = applications,
  ["flow.keras.saving"] = {
    KerasFileEditor = "flow.load_model(path), then layer:set_weights(list) and model:save(path); .keras files are ZIP archives" },
  ["flow.keras.tree"] = { MAP_TO_NONE = "a function that returns nothing leaves the entry out", lists_to_tuples = "there are lists alone",
    map_shape_structure = "flow.keras.tree.map_structure(f, structure) takes shapes, which are lists of numbers, apart" },
  ["flow.data"] = { BigQuery = BIGQUERY, BigQueryClient = BIGQUERY, FixedLenFeature = EXAMPLE, parse_single_example = EXAMPLE },
  ["flow.distribute"] = strategies,
  ["flow.distribute.experimental"] = strategies,
  ["flow.distribute.cluster_resolver"] = {
    SlurmClusterResolver = RESOLVER, KubernetesClusterResolver = RESOLVER, GCEClusterResolver = RESOLVER,
    TPUClusterResolver = "there are CPUs and GPUs, no TPUs; ClusterResolver() reads the cluster from the environment",
  },
  ["flow.io"] = { bigquery = BIGQUERY, parse_single_example = EXAMPLE, parse_example = EXAMPLE, FixedLenFeature = EXAMPLE,
    VarLenFeature = EXAMPLE, RaggedFeature = EXAMPLE, TFRecordWriter = WRITER, TFRecordOptions = WRITER },
  ["flow.data.experimental"] = { SqlDataset = TABLE },
  ["flow.train"] = { Example = WRITER, Features = WRITER, Feature = WRITER, BytesList = WRITER, Int64List = WRITER, FloatList = WRITER },
  ["flow.plot"] = {
    plot = "flow.plot.lines(curves, file) draws curves", scatter = "flow.plot.lines(curves, file, { x = ... }) draws curves",
    imshow = "flow.plot.images(images, file, { titles = ... }) draws pictures in a grid",
    hist = "flow.plot.histogram(values, file, { bins = 10 }) draws it", figure = "each function of flow.plot draws one picture",
    legend = "curves of flow.plot.lines have the names of their keys", ylim = "flow.plot.lines finds the range of the values",
    subplot = "flow.plot.images draws a grid, history:plot a panel for each metric",
    show = "functions of flow.plot draw in the terminal where no file is given",
    savefig = "functions of flow.plot take a .svg or .png file",
    title = "functions of flow.plot take { title = ... }", xlabel = "functions of flow.plot take { xlabel = ... }",
    ylabel = "functions of flow.plot take { ylabel = ... }",
  },
  ["flow.models"] = { Layer = "layers are made by flow.layers.Layer:extend(name)" },
  ["flow.losses"] = { Reduction = "it is a text: losses.MeanSquaredError { reduction = \"none\" }" },
  ["flow.layers"] = { TFSMLayer = "flow.load_model opens .keras and .h5 files", FlaxLayer = FOREIGN, JaxLayer = FOREIGN,
    TorchModuleWrapper = FOREIGN },
  ["flow.optimizers"] = { legacy = "flow.optimizers.Adam and the others are those of Keras 3",
    MultiOptimizer = GROUPS, OptimizerMap = GROUPS },
  ["flow.text"] = { BytePairTokenizer = PAIRS, AutoTokenizer = PAIRS, ByteLevelBPETokenizer = PAIRS },
  -- methods of objects
  tokenizer = {
    get_vocab_size = "tokenizer:vocabulary_size()", get_vocab = "tokenizer:get_vocabulary()", vocab_size = "tokenizer:vocabulary_size()",
    batch_decode = "tokenizer:decode(ids) takes a batch, too", decode_batch = "tokenizer:decode(ids) takes a batch, too",
    detokenize = "tokenizer:decode(ids)", enable_padding = "tokenizer:encode_batch(texts, { padding = ..., pad_id = ... })",
    enable_truncation = "tokenizer:encode(text, { max_length = ..., truncation_side = ... })", save_pretrained = "tokenizer:save(path)",
    convert_tokens_to_ids = "tokenizer:token_to_id(token)", convert_ids_to_tokens = "tokenizer:id_to_token(id)",
  },
  layer = {
    add_metric = METRIC, super = SUPER,
    submodules = "layer.variables are the variables of all parts",
    get_output_at = "a call of the layer gives a symbolic tensor: keep it",
    get_input_at = "the symbolic tensor that the layer was called on",
    inbound_nodes = "a call of the layer gives a symbolic tensor: keep it",
  },
  model = {
    add_metric = METRIC, super = SUPER,
    submodules = "model.layers are the layers, model.variables the variables of all",
    to_yaml = "model:to_json() describes a model", predict_function = "model:predict_on_batch(x) runs a step",
    train_function = "model:train_on_batch(x, y) runs a step", make_train_function = "model:train_on_batch(x, y) runs a step",
    compiled_loss = "self:compute_loss(x, y, y_pred) is the loss of compile",
    compiled_metrics = "self:compute_metrics(x, y, y_pred) brings the metrics up to date and returns them",
    fit_generator = "model:fit takes data sets, and flow.data.Dataset.from_generator makes one of a function",
    evaluate_generator = "model:evaluate takes data sets", predict_generator = "model:predict takes data sets",
    predict_classes = "the classes are model:predict(x):classes()", predict_proba = "model:predict(x) returns them",
  },
  -- options of calls
  option = { dim = "it is axis", lr = "it is learning_rate", nb_epoch = "it is epochs", p = "it is rate",
    out_features = "it is units", out_channels = "it is filters", minimum = "it is minval", maximum = "it is maxval",
    rank = "it is axis", reduction_indices = "it is axis", keep_dims = "it is keepdims", num_epochs = "it is epochs" },
  ["model:save"] = { save_format = ENDING, zipped = "a .keras file is always a ZIP archive" },
  ["model:save_weights"] = { save_format = ENDING, max_shard_size = "weights are one file, of any size" },
  ["flow.Variable"] = { synchronization = EQUAL, aggregation = EQUAL, validate_shape = "a variable keeps its shape",
    caching_device = "flow.device(name, f) says where f makes its variables" },
  ["flow.fn"] = { reduce_retracing = SHAPES, experimental_relax_shapes = SHAPES,
    experimental_autograph_options = "Lua's if and for run when f is traced: flow.cond, flow.switch and flow.while_loop run in the plan",
    autograph = "Lua's if and for run when f is traced: flow.cond, flow.switch and flow.while_loop run in the plan",
    jit_compile = "a traced function always runs as a plan", experimental_compile = "a traced function always runs as a plan" },
  ["model:fit"] = { nb_epoch = "it is epochs", workers = "data sets have threads: ds:map(f, { num_parallel_calls = 4 })",
    use_multiprocessing = "data sets have threads: ds:map(f, { num_parallel_calls = 4 })",
    max_queue_size = "data sets read ahead: ds:prefetch(4)" },
}

for _, file in ipairs { "elsewhere_tensorflow", "elsewhere_torch", "elsewhere_torch7", "elsewhere_jax" } do
  for module, names in pairs(require("flow.errors." .. file)) do
    places[module] = places[module] or {}
    for name, place in pairs(names) do places[module][name] = places[module][name] or place end
  end
end

return places
