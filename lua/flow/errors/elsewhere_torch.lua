-- elsewhere_torch.lua: where to find what scripts for PyTorch and older TensorFlow have under another name; elsewhere.lua takes it in.

local DEVICES = "tensors move by x:to(\"gpu:0\"); models are where their strategy puts them: GPUs of the machine by MirroredStrategy()"
local GRADIENTS = "gradients are taken by a tape: tape:record(f), tape:gradient(loss, variables); see flow.help \"GradientTape\""
local OPTIMIZERS = "optimizers are in flow.optimizers"
local LOADERS = "data sets are flow.data.Dataset.from_tensor_slices { x, y }:shuffle(1000):batch(32)"

local CLIPPING = "flow.clip_by_global_norm(gradients, 1.0) gives the clipped ones; optimizers take global_clipnorm, clipnorm and clipvalue"
local HALF = "flow.mixed_precision.set_global_policy(\"mixed_bfloat16\") before layers are made; \"mixed_float16\" scales the loss, too"
local HOOKS = "flow.Model { inputs = model.inputs, outputs = model:get_layer(name).output } gives what a layer makes; "
  .. "a layer of your own keeps it in a field"
local STATE = "layer:get_weights() and layer:set_weights(list); flow.save_safetensors(path, { [v.path] = v:value() }) writes them by name"

local layers = {
  Linear = "layers.Dense(units)", BatchNorm1d = "layers.BatchNormalization()", BatchNorm2d = "layers.BatchNormalization()",
  LayerNorm = "layers.LayerNormalization()", Conv1d = "layers.Conv1D(filters, kernel_size); pictures have their channels last",
  Conv2d = "layers.Conv2D(filters, kernel_size); pictures have their channels last", MaxPool2d = "layers.MaxPooling2D(pool_size)",
  AvgPool2d = "layers.AveragePooling2D(pool_size)", AdaptiveAvgPool2d = "layers.GlobalAveragePooling2D()",
  ConvTranspose2d = "layers.Conv2DTranspose(filters, kernel_size)", Dropout2d = "layers.SpatialDropout2D(rate)",
  MultiheadAttention = "layers.MultiHeadAttention { num_heads = 8, key_dim = 64 }", Sigmoid = "layers.Activation(\"sigmoid\")",
  Tanh = "layers.Activation(\"tanh\")", GELU = "layers.Activation(\"gelu\")", SiLU = "layers.Activation(\"silu\")",
  Module = "layers are made by flow.layers.Layer:extend(name), models by flow.Model:extend(name)",
  Sequential = "flow.Sequential { layers }", ModuleList = "a list of layers, as a field of a layer of your own",
  CrossEntropyLoss = "flow.losses.SparseCategoricalCrossentropy { from_logits = true }", MSELoss = "flow.losses.MeanSquaredError()",
  L1Loss = "flow.losses.MeanAbsoluteError()", BCELoss = "flow.losses.BinaryCrossentropy()", SmoothL1Loss = "flow.losses.Huber()",
  BCEWithLogitsLoss = "flow.losses.BinaryCrossentropy { from_logits = true }", functional = "operations are in flow itself: flow.relu(x)",
  ["utils"] = CLIPPING, Parameter = "self:add_weight { name = ..., shape = {...} } in build(), or flow.Variable(value)",
  ["init"] = "first values are in flow.initializers",
  DataParallel = "flow.distribute.MirroredStrategy() trains on several devices",
}

-- Those that flow.layers has by the same name.
local modules = {
  ReLU = "layers.ReLU()", Softmax = "layers.Softmax()", Flatten = "layers.Flatten()", Dropout = "layers.Dropout(rate)",
  Embedding = "layers.Embedding(input_dim, output_dim)", LSTM = "layers.LSTM(units)", GRU = "layers.GRU(units)",
  Identity = "layers.Identity()",
}
for name, place in pairs(layers) do modules[name] = place end

-- tf.nn's functions that have another name here.
for name, place in pairs {
  sigmoid_cross_entropy_with_logits = "flow.binary_crossentropy(labels, logits, { from_logits = true })",
  softmax_cross_entropy_with_logits = "flow.categorical_crossentropy(labels, logits, { from_logits = true })",
  sparse_softmax_cross_entropy_with_logits = "flow.sparse_categorical_crossentropy(labels, logits, { from_logits = true })",
  l2_loss = "flow.sum(x ^ 2) / 2", bias_add = "x + bias",
  embedding_lookup = "flow.take(table, ids + 1, 1): positions count from 1", conv2d = "flow.conv(x, kernel, strides, padding)",
  conv2d_transpose = "flow.conv_transpose(x, kernel, strides, padding)", avg_pool2d = "flow.average_pool(x, size, strides, padding)",
  max_pool2d = "flow.max_pool(x, size, strides, padding)", weighted_moments = "flow.average(x, axis, weights)",
  space_to_batch = "flow.reshape and flow.transpose do it", ctc_greedy_decoder = "flow.ctc_decode(inputs, lengths)",
  ctc_beam_search_decoder = "flow.ctc_decode(inputs, lengths, { strategy = \"beam_search\" })",
} do modules[name] = place end

return {
  flow = {
    cuda = DEVICES, no_grad = "no gradient is taken outside of a tape: there is nothing to switch off", autograd = GRADIENTS,
    optim = OPTIMIZERS, from_numpy = "flow.load_npy(path) reads NumPy's files, flow.frombuffer(memory, shape) uses memory in place",
    manual_seed = "flow.set_random_seed(seed)", cat = "flow.concat(values, axis)", DataLoader = LOADERS, load = "flow.load_model(path)",
    save = "model:save(path); tensors: flow.save_npy(path, x), flow.save_safetensors(path, { name = x })",
    randn = "flow.random.normal(shape)", rand = "flow.random.uniform(shape)", randint = "flow.random.randint(shape, minval, maxval)",
    randperm = "flow.random.permutation(n)", mm = "flow.matmul(a, b)", bmm = "flow.matmul(a, b)", clamp = "flow.clip(x, low, high)",
    unsqueeze = "flow.expand_dims(x, axis)", jit = "functions are traced by flow.fn(f)",
    compile = "functions are traced by flow.fn(f), models by model:compile { loss = ... }",
    amp = HALF, autocast = HALF, GradScaler = HALF,
    Session = "values are there at once: no session",
    placeholder = "values are there at once; a model's input is flow.Input(shape)", get_variable = "flow.Variable(value)",
    global_variables_initializer = "variables have their values from the beginning", float32 = "dtypes are texts: \"float32\"",
    float16 = "dtypes are texts: \"float16\"", int32 = "dtypes are texts: \"int32\"", int64 = "dtypes are texts: \"int64\"",
    bigquery = "tables are exported to files first: flow.data.TFRecordDataset and flow.data.load_csv read these",
    asarray = "flow.tensor(value)", constant = "flow.tensor(value)",
    gather = "flow.take(x, positions, axis), which count from 1, or flow.take_along_axis(x, positions, axis)",
    clip_by_value = "flow.clip(x, low, high)", range = "flow.arange(start, stop, step)", Dense = "layers are in flow.layers",
    Adam = OPTIMIZERS, SGD = OPTIMIZERS, Dataset = "flow.data.Dataset",
  },
  ["flow.nn"] = modules, ["flow.layers"] = layers,
  ["flow.utils"] = { data = LOADERS, DataLoader = LOADERS, clip_grad_norm_ = CLIPPING,
    tensorboard = "callbacks.TensorBoard(folder), or flow.summary.create_file_writer(folder)" },
  ["flow.random"] = { randn = "flow.random.normal(shape)", rand = "flow.random.uniform(shape)" },
  ["flow.data"] = { DataLoader = LOADERS, TensorDataset = "flow.data.Dataset.from_tensor_slices { x, y }" },
  ["flow.optimizers"] = { lr_scheduler = "schedules are in flow.optimizers.schedules, callbacks.LearningRateScheduler sets rates" },
  tensor = {
    cuda = DEVICES, cpu = "x:to(\"cpu\")",
    numpy = "a tensor has its values: leave it out; x:totable() gives nested lists, flow.save_npy(path, x) a file for NumPy",
    tolist = "x:totable()", backward = GRADIENTS, grad = GRADIENTS, requires_grad = GRADIENTS, detach = "x:stop_gradient()",
    requires_grad_ = GRADIENTS, expand = "x:broadcast_to(shape)", unsqueeze = "x:expand_dims(axis)",
    float = "x:to(\"float32\")", half = "x:to(\"float16\")",
    long = "x:to(\"int64\")", int = "x:to(\"int32\")", clamp = "x:clip(low, high)",
    masked_fill = "flow.where(mask, value, x)", gather = "flow.take_along_axis(x, positions, axis), which count from 1",
    scatter_ = "flow.scatter_update(x, positions, values)",
    topk = "flow.top_k(x, k)", index_select = "flow.take(x, positions, axis), which count from 1",
    mm = "x:matmul(y)", dim = "x.rank is the number of axes",
    numel = "x.size is the number of elements", t = "x:transpose()", len = "#x is the length of the first axis",
  },
  variable = { grad = GRADIENTS, numpy = "v:value():totable()" },
  model = {
    parameters = "model.trainable_variables", named_parameters = "model.variables, each with a name", state_dict = "model:get_weights()",
    load_state_dict = "model:set_weights(list), or model:load_weights(path)", train = "model:fit trains; model(x, { training = true })",
    eval = "model:predict(x), or model(x, { training = false })", cuda = DEVICES, to = DEVICES, zero_grad = GRADIENTS,
    forward = "model(x) computes; a class of your own defines call(x)", modules = "model.layers", children = "model.layers",
    num_parameters = "model:count_params()", register_forward_hook = HOOKS, apply = "a loop over model.layers",
  },
  layer = {
    forward = "layer(x) computes; a class of your own defines call(x)", parameters = "layer.trainable_variables",
    named_parameters = "layer.variables, each with name and path", state_dict = STATE, load_state_dict = STATE,
    train = "layer(x, { training = true }); layer.trainable = false freezes", eval = "layer(x, { training = false })",
    requires_grad_ = "layer.trainable = false freezes", cuda = DEVICES, to = DEVICES, zero_grad = GRADIENTS,
    register_forward_hook = HOOKS, register_backward_hook = HOOKS, register_full_backward_hook = HOOKS,
    register_buffer = "self:add_weight { ..., trainable = false }", register_parameter = "self:add_weight { name = ..., shape = {...} }",
    children = "the layers inside are in its fields", modules = "the layers inside are in its fields",
    apply = "layers take kernel_initializer and the like; a loop over layer.variables assigns others",
  },
  optimizer = {
    step = "optimizer:apply_gradients(gradients, variables)", zero_grad = "gradients are not kept: tape:gradient gives new ones",
    lr = "optimizer.learning_rate", param_groups = "optimizer.learning_rate is one for all variables",
    minimize = "tape:record(f), tape:gradient(loss, variables), optimizer:apply_gradients(gradients, variables)",
  },
  dataset = { ["repeat"] = "ds:repeat_()", make_one_shot_iterator = "ds:iter()" },
}
