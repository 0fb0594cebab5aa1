--- Random models for files: every layer with random values for its options, alone, shared, nested, compiled. One seed, one model.
local flow = require "flow"
local native = require "flow.ffi"
local in_lua = require "spec.support.random_lua_layers"
local random_operations = require "spec.support.random_operations"

local C = native.C
local layers = flow.layers
local random_files = {}

---- drawing ------------------------------------------------------------------------------------------------------------------------

--- Random choices of one seed.
local function drawing(seed)
  local state = (seed * 2654435761 + 12345) % 4294967296
  local draw = {}
  function draw.unit()
    state = (state * 1664525 + 1013904223) % 4294967296
    return math.floor(state / 256) / 16777216
  end
  for _ = 1, 4 do draw.unit() end
  function draw.integer(low, high) return low + math.floor(draw.unit() * (high - low + 1)) end
  function draw.chance(p) return draw.unit() < p end
  function draw.pick(list) return list[draw.integer(1, #list)] end
  function draw.number(low, high) return low + (high - low) * draw.unit() end
  return draw
end

---- values of options ----------------------------------------------------------------------------------------------------------------

local ACTIVATIONS = { "linear", "relu", "relu6", "leaky_relu", "elu", "selu", "gelu", "silu", "sigmoid", "hard_sigmoid", "softmax",
                      "softplus", "softsign", "tanh", "exponential" }
local POLICIES = { "mixed_float16", "mixed_bfloat16" }
local RESIZING = { "nearest", "bilinear", "bicubic", "lanczos3", "lanczos5" }

local function texts(...)
  local list = { ... }
  return function(draw) return draw.pick(list) end
end
local function integers(low, high) return function(draw) return draw.integer(low, high) end end
local function numbers(low, high) return function(draw) return draw.number(low, high) end end
local function pairs_of(low, high)
  return function(draw)
    if draw.chance(0.5) then return draw.integer(low, high) end
    return { draw.integer(low, high), draw.integer(low, high) }
  end
end
local function sides(most)
  return function(draw)
    if draw.chance(0.6) then return pairs_of(0, most)(draw) end
    local function two() return { draw.integer(0, most), draw.integer(0, most) } end
    return { two(), two() }
  end
end
local function factor(least, most)
  return function(draw)
    if draw.chance(0.5) then return draw.number(0, most) end
    return { draw.number(least, 0), draw.number(0, most) }
  end
end
--- A number, or one for each of the three channels of an image, in lists that are nested up to three deep.
local function by_channel(low, high)
  return function(draw, shape)
    if #shape < 3 or draw.chance(0.5) then return draw.number(low, high) end
    local list = { draw.number(low, high), draw.number(low, high), draw.number(low, high) }
    for _ = 1, draw.integer(0, 2) do list = { list } end
    return list
  end
end
local function permutation(draw, shape)
  local list = {}
  for i = 1, #shape do list[i] = i end
  for i = #list, 2, -1 do
    local k = draw.integer(1, i)
    list[i], list[k] = list[k], list[i]
  end
  return list
end
local function some_axes(draw, shape)
  if draw.chance(0.5) then return { draw.pick { -1, #shape + 1 } } end
  return #shape > 1 and { 3, 2 } or { 2 }
end

--- By "Class.option" or by option. A function draws a value for an input of shape (without the batch); false: always left out.
local VALUES = {
  units = integers(1, 5), filters = integers(1, 6), kernel_size = pairs_of(1, 3), strides = pairs_of(1, 2), dilation_rate = pairs_of(1, 2),
  groups = function(draw) return draw.pick { 1, 3 } end, depth_multiplier = integers(1, 2), pool_size = pairs_of(1, 3),
  size = pairs_of(1, 3), n = integers(1, 4), height = integers(2, 6), width = integers(2, 6), seed = integers(0, 2 ^ 31),
  input_dim = integers(7, 9), output_dim = integers(1, 4), padding = texts("valid", "same"), data_format = texts("channels_last"),
  ["ZeroPadding3D.padding"] = sides(2),
  ["ZeroPadding2D.padding"] = sides(3), cropping = sides(2), ["Conv1D.padding"] = texts("valid", "same", "causal"),
  ["UpSampling1D.size"] = integers(1, 3), ["ZeroPadding1D.padding"] = pairs_of(0, 3), ["Cropping1D.cropping"] = pairs_of(0, 2),
  logit_soft_cap = numbers(0.5, 5), mask_value = numbers(-1, 1), momentum = numbers(0.5, 1), epsilon = numbers(1e-6, 1e-2),
  renorm_momentum = numbers(0.5, 1),
  renorm_clipping = function(draw) return draw.pick { { rmax = 3, rmin = 0.5, dmax = 2 }, { dmax = draw.number(0, 1) } } end,
  rate = numbers(0, 0.9), stddev = numbers(0, 1), alpha = numbers(0.1, 2), negative_slope = numbers(0, 0.5), max_value = numbers(0.5, 6),
  threshold = numbers(0, 0.5), ["Rescaling.scale"] = by_channel(-2, 2), offset = by_channel(-1, 1), fill_value = numbers(0, 1),
  interpolation = function(draw) return draw.pick(RESIZING) end, fill_mode = texts("reflect", "wrap", "constant", "nearest"),
  ["RandomRotation.interpolation"] = texts("nearest", "bilinear"), ["RandomZoom.interpolation"] = texts("nearest", "bilinear"),
  ["Resizing.fill_mode"] = texts("constant"), mode = texts("horizontal", "vertical", "horizontal_and_vertical"),
  factor = factor(-0.5, 0.5), ["RandomContrast.factor"] = function(draw) return draw.number(0.1, 0.9) end,
  height_factor = factor(-0.5, 0.5), width_factor = factor(-0.5, 0.5), value_range = function(draw) return { 0, draw.pick { 1, 255 } } end,
  dims = permutation, target_shape = function(draw, shape)
    local size = 1
    for _, n in ipairs(shape) do size = size * n end
    return draw.pick { { -1 }, { size }, { 1, -1, 1 }, { shape[1], -1 } }
  end,
  noise_shape = function(draw, shape)
    local list = { draw.pick { -1, 1 } }
    for i, n in ipairs(shape) do list[i + 1] = draw.pick { -1, 1, n } end
    return list
  end,
  axis = function(draw, shape) return draw.pick { -1, #shape + 1, 2 } end,
  ["LayerNormalization.axis"] = some_axes, ["RMSNormalization.axis"] = some_axes,
  ["GroupNormalization.groups"] = function(draw) return draw.pick { 1, 2, 3, -1 } end,
  axes = function(draw, shape) return draw.pick { -1, 2, { #shape + 1, -1 } } end, ["Normalization.axis"] = function() return { -1 } end,
  shared_axes = function(draw, shape) return { draw.integer(1, #shape) } end,
  mean = function(draw) return draw.number(-1, 1) end, variance = function(draw) return draw.number(0.1, 2) end,
  num_heads = integers(1, 3), key_dim = integers(1, 5), value_dim = integers(1, 4), dropout = numbers(0, 0.9),
  l1 = numbers(0, 1), l2 = numbers(0, 1), init_values = numbers(-1, 1),
  projection_dim = function(_, shape) return shape[#shape] end, sliding_window = integers(1, 4),
  attention_axes = function() return { 2 } end, head_dim = integers(1, 4),
  ["EinsumDense.equation"] = function(_, shape) return ({ "ab,bc->ac", "abc,cd->abd", "...x,xy->...y" })[#shape] end,
  ["EinsumDense.output_shape"] = function(_, shape) return ({ 3, { -1, 4 }, { 2 } })[#shape] end,
  bias_axes = function(_, shape) return ({ "c", "d", "y" })[#shape] end,
  output_shape = function(draw) return draw.pick { { 3 }, { 2, 3 } } end, num_query_heads = function() return 4 end,
  num_key_value_heads = function(draw) return draw.pick { 1, 2, 4 } end, score_mode = texts("dot", "concat"),
  recurrent_dropout = numbers(0, 0.9), use_cudnn = texts("auto"),
  -- Keras' defaults only: others are refused, or warned of, by name; or Keras does not write them.
  stateful = false, ["SimpleRNN.seed"] = false, rms_scaling = false, output_padding = false, synchronized = false,
}

local function choice(kind, draw)
  local list, index = {}, 0
  while C.flow_choice_name(kind, index) ~= nil do
    if native.string(C.flow_choice_name(kind, index)) ~= "Identity" then list[#list + 1] = index end      -- Keras does not write its gain
    index = index + 1
  end
  local chosen = draw.pick(list)
  local name, options, parameter = native.string(C.flow_choice_name(kind, chosen)), {}, 0
  while C.flow_choice_parameter(kind, chosen, parameter) ~= nil do
    local option = native.string(C.flow_choice_parameter(kind, chosen, parameter))
    if draw.chance(0.5) then
      options[option] = option == "seed" and draw.integer(0, 1000) or option == "mode" and
        draw.pick(kind == C.FLOW_CHOICE_REGULARIZER and { "rows", "columns" } or { "fan_in", "fan_out", "fan_avg" }) or
        option == "distribution" and draw.pick { "truncated_normal", "untruncated_normal", "uniform" } or
        option:find "put_axes$" and draw.pick { { 1 }, { -1 } } or option == "axis" and draw.pick { 1, -1, { 1 }, { -1 } } or
        option == "minval" and draw.number(-1, -0.1) or draw.number(0.001, 1)
    end
    parameter = parameter + 1
  end
  if options.min_value and options.min_value > (options.max_value or 1) then      -- TensorFlow and Torch clip to such a range differently
    options.min_value, options.max_value = options.max_value or 1, options.min_value
  end
  local modules = { [C.FLOW_CHOICE_INITIALIZER] = "initializers", [C.FLOW_CHOICE_REGULARIZER] = "regularizers",
                    [C.FLOW_CHOICE_CONSTRAINT] = "constraints" }
  return flow[modules[kind]][name](options)
end

local BY_TYPE = {
  boolean = function(draw) return draw.chance(0.5) end,
  activation = function(draw) return draw.pick(ACTIVATIONS) end,
  initializer = function(draw) return choice(C.FLOW_CHOICE_INITIALIZER, draw) end,
  regularizer = function(draw) return choice(C.FLOW_CHOICE_REGULARIZER, draw) end,
  constraint = function(draw) return choice(C.FLOW_CHOICE_CONSTRAINT, draw) end,
}

-- Options by which training draws random numbers: 0 in models that train as Keras' do.
local CHANCES = { rate = true, dropout = true, recurrent_dropout = true, stddev = true }

--- Random options of a record; policies: also other dtypes than float32; calm: training draws no random numbers.
local function options_of(index, draw, shape, policies, calm)
  local class, options = native.string(C.flow_layer_class_name(index)), {}
  for i = 0, C.flow_layer_class_argument_count(index) - 1 do
    local name = native.string(C.flow_layer_class_argument(index, i))
    local kind = native.string(C.flow_layer_class_argument_type(index, i))
    local required = C.flow_layer_class_argument_default(index, i) == nil
    local value = VALUES[class .. "." .. name]
    if value == nil then value = VALUES[name] end
    if value == nil then value = BY_TYPE[kind] end
    if name == "dtype" then
      if policies and draw.chance(0.3) then options.dtype = draw.pick(POLICIES) end
    elseif name == "trainable" then
      if draw.chance(0.2) then options.trainable = false end
    elseif kind ~= "null" and value ~= false then
      if value == nil then error("random_files: no values are known for " .. class .. "." .. name .. " of type " .. kind) end
      if required or draw.chance(0.5) then options[name] = calm and CHANCES[name] and 0 or value(draw, shape) end
      if kind == "single" and type(options[name]) == "table" then options[name] = { options[name][1] } end
      if (kind == "triple" or kind == "volume sides") and type(options[name]) == "table" then options[name][3] = options[name][1] end
    end
  end
  if calm and class == "SimpleRNN" then options.activity_regularizer = nil end      -- Keras reads it, but does not write it
  if class == "Normalization" and (options.mean == nil) ~= (options.variance == nil) then options.mean, options.variance = nil, nil end
  return options
end

---- models ---------------------------------------------------------------------------------------------------------------------------

local IMAGE, SEQUENCE, VECTOR, VOLUME = { 6, 7, 3 }, { 5, 4 }, { 6 }, { 5, 6, 5, 3 }
local IMAGES_ONLY = { Resizing = true, CenterCrop = true }
local MERGING = { Add = 3, Subtract = 2, Multiply = 3, Average = 3, Maximum = 3, Minimum = 3, Concatenate = 3, Dot = 2,
                  HashedCrossing = 2 }

local RECURRENT = { SimpleRNN = 1, LSTM = 2, GRU = 1, ConvLSTM1D = 2, ConvLSTM2D = 2, ConvLSTM3D = 2 }      -- how many states each has
local CONVOLUTIONS_OF_STEPS = { ConvLSTM1D = { 4, 5, 3 }, ConvLSTM2D = { 3, 5, 4, 2 }, ConvLSTM3D = { 2, 4, 3, 4, 2 } }
local CELLS = { SimpleRNNCell = 1, LSTMCell = 2, GRUCell = 1 }

--- The classes that models are made of: the records by their numbers, and names of what is written in Lua.
local classes = {}
for index = 1, C.flow_layer_class_count() - 1 do classes[index] = index end      -- 0 is InputLayer
for _, name in ipairs(layers._names_in_lua()) do
  local entry = in_lua.entries[name] or error("random_files: no models are known for " .. name)
  if not entry.why_not then classes[#classes + 1] = name end
end
--- How many seeds one after the other have a model of each class.
random_files.classes = #classes

local function shape_for(class, draw)
  local entry = in_lua.entries[class]
  if entry then return type(entry.shape) == "function" and entry.shape(draw) or entry.shape end
  if CONVOLUTIONS_OF_STEPS[class] then return CONVOLUTIONS_OF_STEPS[class] end
  if class:find("Attention$") or RECURRENT[class] then return SEQUENCE end
  if class:find("3D") then return VOLUME end
  if class:find("2D") or class:find("^Random") or IMAGES_ONLY[class] then return IMAGE end
  if class:find("1D") then return SEQUENCE end
  if class == "RepeatVector" or CELLS[class] then return VECTOR end
  if class:find "Embedding$" then return { 4 } end
  return draw.pick { IMAGE, SEQUENCE, VECTOR }
end

local NAMES = { "layer_%d", "Layer.%d", "with space %d", "größe_%d", 'quoted"%d', "%d" }
local counter = 0
local function some_name(draw)
  counter = counter + 1
  return draw.chance(0.5) and draw.pick(NAMES):format(counter) or nil
end

--- A recurrent layer that is given a state, and all that it gives.
local function recurrent_model(class, layer, shape, options, draw)
  local x, states, state = flow.Input(shape), {}, { options.units }
  local given = draw.chance(0.7)
  if CONVOLUTIONS_OF_STEPS[class] then
    state = { unpack(shape, 2) }
    state[#state] = options.filters
    given = given and options.padding == "same" and options.strides == nil
  end
  for i = 1, RECURRENT[class] do states[i] = flow.Input(state) end
  local outputs = layer(x, given and { initial_state = states } or nil)
  return flow.Model { inputs = given and { x, states[2] or states[1], states[2] and states[1] } or x, outputs = outputs }
end

--- A cell is called with states, and gives its output and them.
local function cell_model(class, layer, shape, units)
  local x, states = flow.Input(shape), {}
  for i = 1, CELLS[class] do states[i] = flow.Input { units } end
  return flow.Model { inputs = { x, unpack(states) }, outputs = layer(x, states) }
end

--- One layer with its model: alone, called on two inputs, or inside a model that is called twice. make(name, dtype, options) gives
--- the layer; options: what is drawn for a record.
local function model_of(class, make, options, shape, draw)
  local entry = in_lua.entries[class]
  local dtype = entry and entry.dtype or class:find "Embedding$" and "int32" or "float32"
  if type(dtype) == "table" then dtype = draw.pick(dtype) end
  local function input() return flow.Input(shape, { dtype = dtype, name = draw.chance(0.3) and some_name(draw) or nil }) end
  local layer = make(some_name(draw), dtype, options)
  if MERGING[class] then
    local inputs = {}
    for i = 1, draw.integer(2, MERGING[class]) do inputs[i] = input() end
    return flow.Model { inputs = inputs, outputs = layer(inputs), name = some_name(draw) }
  end
  if class:find("Attention$") then
    local a, b, c = input(), input(), input()
    local call = { use_causal_mask = draw.chance(0.5) or nil, return_attention_scores = draw.chance(0.5) or nil }
    local in_lists = class == "Attention" or class == "AdditiveAttention"
    if not in_lists and draw.chance(0.3) then call.key = c end
    local outputs = in_lists and layer(draw.chance(0.5) and { a, b } or { a, b, c }, call) or layer(a, b, call)
    local model = { outputs = call.return_attention_scores and { outputs[2], outputs[1] } or outputs, name = some_name(draw) }
    model.inputs = { c, b, a }
    return flow.Model(model)
  end
  if RECURRENT[class] and (options.return_state or draw.chance(0.3)) then
    return recurrent_model(class, layer, shape, options, draw)
  end
  if CELLS[class] then return cell_model(class, layer, shape, options.units) end
  local kind = draw.integer(1, 4)
  if kind == 1 and not class:find "Embedding$" then return flow.Sequential({ layers.Input(shape), layer }, { name = some_name(draw) }) end
  if kind == 2 then
    local a, b = input(), input()
    return flow.Model { inputs = { a, b }, outputs = { layer(a), layer(b) }, name = some_name(draw) }
  end
  if kind == 3 and not class:find "Embedding$" then
    local inner = flow.Sequential({ layers.Input(shape), layer }, { name = some_name(draw), trainable = draw.chance(0.7) })
    local a, b = input(), input()
    return flow.Model { inputs = { b, a }, outputs = { inner(a), inner(b) * 2 + 1 } }
  end
  local a = input()
  return flow.Model { inputs = a, outputs = layer(a, { training = draw.chance(0.2) and false or nil }), name = some_name(draw) }
end

--- The shape with -1 for some of its sizes, of those that the class can do without.
local function open_sizes(class, shape, draw)
  local open = {}
  if CONVOLUTIONS_OF_STEPS[class] then return { -1, unpack(shape, 2) } end
  for axis, n in ipairs(shape) do open[axis] = draw.chance(axis == #shape and #shape > 1 and 0.1 or 0.7) and -1 or n end
  return open
end

--- Values that are not initial ones.
function random_files.scramble(model, seed)
  for i, v in ipairs(model.variables) do
    if v.dtype == "float32" then
      local value = flow.random.normal(v.shape, { seed = seed + i, mean = 0.1, stddev = 0.3 })
      v:assign(v.name:find("variance") and value:abs() + 0.5 or value)
    end
  end
end

--- known: the shape that options were drawn for; sizes that the model leaves open are multiples of it, the same for all inputs.
local function inputs_of(model, draw, known)
  local list, rows, sizes = {}, draw.integer(1, 4), {}
  for axis, n in ipairs(known) do sizes[axis + 1] = model.inputs[1].shape[axis + 1] < 0 and n * draw.integer(1, 3) end
  for i, input in ipairs(model.inputs) do
    local shape = { rows, unpack(input.shape, 2) }
    for axis = 2, #shape do shape[axis] = shape[axis] < 0 and sizes[axis] or shape[axis] end
    local seed = draw.integer(1, 1e6)
    if input.dtype:find "int" then list[i] = flow.random.randint(shape, 0, 7, { dtype = input.dtype, seed = seed })
    elseif input.dtype == "string" then list[i] = in_lua.strings(shape, draw)
    else list[i] = flow.random.uniform(shape, { minval = 0, maxval = 1, seed = seed }) end
  end
  return list
end

--- Which options do not fit together is the record's to say: what it refuses is drawn again. Returns the model, its inputs and a text.
--- options: { policies = true } for other dtypes than float32; { unknown = true } for sizes of the inputs that are not known: then inputs
--- is a function that gives other sizes at each call. The text is the class of the layer, and after it comes whether C reads it.
function random_files.model(seed, options)
  local draw, unknown, policies = drawing(seed), options and options.unknown, options and options.policies
  local index = classes[1 + seed % #classes]
  local is_record = type(index) == "number"
  local class = is_record and native.string(C.flow_layer_class_name(index)) or index
  local function record(name, shape) return layers[name](options_of(C.flow_layer_class_find(name), draw, shape, policies)) end
  local problem
  for _ = 1, 60 do
    local shape = shape_for(class, draw)
    local function make(name, dtype, given)
      local entry = in_lua.entries[class]
      if entry then
        given = entry.options(draw, shape, record, dtype)
        if policies and entry.policies and draw.chance(0.3) then given.dtype = draw.pick(POLICIES) end
      end
      given.name = name
      return layers[entry and entry.class or class](given)
    end
    local given = is_record and options_of(index, draw, shape, policies) or {}
    local ok, model = pcall(model_of, class, make, given, unknown and open_sizes(class, shape, draw) or shape, draw)
    if ok then
      random_files.scramble(model, seed)
      local in_c = is_record or in_lua.entries[class].in_c
      return model, unknown and function() return inputs_of(model, draw, shape) end or inputs_of(model, draw, shape), class, in_c or false
    end
    problem = model
  end
  error(("random_files: seed %d: no %s could be built: %s"):format(seed, class, tostring(problem)))
end

--- A model of operations on symbolic tensors, its inputs and the name of an op that is in it.
function random_files.operations(seed)
  return random_operations.model(seed, drawing(seed))
end

---- compiled ---------------------------------------------------------------------------------------------------------------------------

local OPTIMIZERS = { "SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax" }
local OPTIMIZER_VALUES = {
  learning_rate = numbers(0.001, 0.1), weight_decay = numbers(0, 0.1), clipnorm = numbers(0.1, 1), clipvalue = numbers(0.1, 1),
  global_clipnorm = numbers(0.1, 1), beta_1 = numbers(0.5, 0.95), beta_2 = numbers(0.9, 0.999), epsilon = numbers(1e-7, 1e-3),
  momentum = numbers(0, 0.9), rho = numbers(0.5, 0.95), initial_accumulator_value = numbers(0.01, 1),
  use_ema = false, ema_momentum = false, ema_overwrite_frequency = false, loss_scale_factor = false,
  gradient_accumulation_steps = function(draw) return draw.integer(2, 4) end,
}
local SCHEDULES = {
  function(draw, s) return s.ExponentialDecay(0.05, draw.integer(1, 5), draw.number(0.5, 1), { staircase = draw.chance(0.5) }) end,
  function(draw, s) return s.InverseTimeDecay(0.05, draw.integer(1, 5), draw.number(0.1, 1), { staircase = draw.chance(0.5) }) end,
  function(draw, s) return s.PiecewiseConstantDecay({ 2, draw.integer(3, 9) }, { 0.1, 0.05, draw.number(0, 0.01) }) end,
  function(draw, s)
    return s.PolynomialDecay(0.05, 4, { end_learning_rate = 0.001, power = draw.number(0.5, 2), cycle = draw.chance(0.5) })
  end,
  function(draw, s) return s.CosineDecay(0.01, 5, { alpha = draw.number(0, 0.5), warmup_target = 0.1, warmup_steps = 2 }) end,
  function(draw, s) return s.CosineDecayRestarts(0.05, 3, { t_mul = draw.number(1, 2), m_mul = 0.9, alpha = draw.number(0, 0.5) }) end,
}

function random_files.optimizer(draw)
  local class = draw.pick(OPTIMIZERS)
  local index, options, clipped = C.flow_optimizer_class_find(class), {}, false
  for i = 0, C.flow_optimizer_class_argument_count(index) - 1 do
    local name = native.string(C.flow_optimizer_class_argument(index, i))
    local kind = native.string(C.flow_optimizer_class_argument_type(index, i))
    local value = OPTIMIZER_VALUES[name]
    if value == nil then value = BY_TYPE[kind] end
    if value == nil then error("random_files: no values are known for " .. class .. "." .. name) end
    local clip = name:find("^clip") or name == "global_clipnorm"
    if value and draw.chance(0.5) and not (clip and clipped) then
      options[name] = value(draw)
      clipped = clipped or clip
    end
  end
  if draw.chance(0.4) then options.learning_rate = draw.pick(SCHEDULES)(draw, flow.optimizers.schedules) end
  if draw.chance(0.3) then options.name = "my_optimizer" end
  local optimizer = flow.optimizers[class](options)
  if draw.chance(0.15) then optimizer = flow.optimizers.LossScaleOptimizer(optimizer, { initial_scale = 2 ^ draw.integer(4, 10) }) end
  return optimizer
end

--- loss, metrics, targets, the activation of the last layer
local function objective(draw, rows)
  local losses, metrics = flow.losses, flow.metrics
  local labels = flow.random.randint({ rows }, 0, 3, { seed = draw.integer(1, 1e6) })
  local values = flow.random.uniform({ rows, 3 }, { minval = 0.1, maxval = 0.9, seed = draw.integer(1, 1e6) })
  local logits, smoothing = draw.chance(0.5), draw.number(0, 0.3)
  local head = logits and "linear" or "softmax"
  local reduction = draw.pick { "sum_over_batch_size", "mean", "sum" }
  local one_hot = flow.one_hot(labels, 3)
  return unpack(draw.pick {
    { losses.SparseCategoricalCrossentropy { from_logits = logits, reduction = reduction }, { "accuracy",
      metrics.SparseTopKCategoricalAccuracy { k = 2, name = "top" } }, labels, head },
    { losses.SparseCategoricalCrossentropy { from_logits = logits, ignore_class = 1 }, { metrics.SparseCategoricalAccuracy() }, labels,
      head },
    { losses.CategoricalCrossentropy { from_logits = logits, label_smoothing = smoothing }, { "categorical_accuracy",
      metrics.TopKCategoricalAccuracy { k = 1 }, metrics.AUC() }, one_hot, head },
    { losses.BinaryCrossentropy { from_logits = true, reduction = reduction }, { metrics.BinaryAccuracy { threshold = 0.25 } }, values,
      "linear" },
    { losses.Huber { delta = draw.number(0.1, 1) }, { metrics.MeanAbsoluteError(), "mse" }, values, "tanh" },
    { losses.CosineSimilarity { reduction = reduction }, { metrics.CosineSimilarity() }, values, "linear" },
    { losses.LogCosh(), { metrics.RootMeanSquaredError { name = "root" } }, values, "linear" },
    { losses.Poisson(), {}, values, "sigmoid" }, { losses.KLDivergence(), { "kl_divergence" }, values, "sigmoid" },
    { "mse", { "mae" }, values, "linear" }, { "sparse_categorical_crossentropy", { "accuracy" }, labels, "softmax" },
    { losses.Hinge(), { metrics.Hinge() }, values, "tanh" }, { losses.SquaredHinge(), nil, values, "tanh" },
    { losses.CategoricalHinge(), nil, one_hot, "softmax" },
    { losses.MeanSquaredLogarithmicError { reduction = reduction }, nil, values, "sigmoid" },
    { losses.MeanAbsolutePercentageError(), nil, values, "sigmoid" },
  })
end

--- A small compiled model that has trained for some steps, with its data: x, y, for a next step.
function random_files.trained(seed)
  local draw = drawing(seed + 7)
  local rows = draw.integer(1, 6)
  local loss, metrics, y, head = objective(draw, rows)
  local regularizer = draw.chance(0.3) and choice(C.FLOW_CHOICE_REGULARIZER, draw) or nil
  local model = flow.Sequential({ layers.Input { 5 }, layers.Dense(4, { activation = "tanh", kernel_regularizer = regularizer,
    kernel_initializer = choice(C.FLOW_CHOICE_INITIALIZER, draw) }), layers.BatchNormalization { trainable = draw.chance(0.7) },
    layers.Dense(3, { activation = head, trainable = draw.chance(0.8) }) }, { name = some_name(draw) })
  model:compile { optimizer = random_files.optimizer(draw), loss = loss, metrics = metrics, steps_per_execution = draw.pick { 1, 4 },
    loss_weights = draw.chance(0.2) and { 0.5 } or nil, weighted_metrics = y.dtype == "float32" and draw.chance(0.3) and { "mae" } or nil }
  local x = flow.random.uniform({ rows, 5 }, { seed = draw.integer(1, 1e6) })
  for _ = 1, draw.integer(0, 3) do model:train_on_batch(x, y) end
  return model, x, y
end

--- What spec/support/random_nets.lua makes its models with. layer(class, draw, shape, dtype, calm) gives a layer with random options, and
--- those of a record.
random_files.drawing, random_files.objective, random_files.shape_for = drawing, objective, shape_for
random_files.MERGING, random_files.RECURRENT, random_files.CELLS = MERGING, RECURRENT, CELLS
random_files.CONVOLUTIONS_OF_STEPS, random_files.class_names = CONVOLUTIONS_OF_STEPS, {}
for i, class in ipairs(classes) do
  random_files.class_names[i] = type(class) == "number" and native.string(C.flow_layer_class_name(class)) or class
end
function random_files.layer(class, draw, shape, dtype, calm)
  local entry = in_lua.entries[class]
  local function record(name, inner_shape)
    return layers[name](options_of(C.flow_layer_class_find(name), draw, inner_shape, false, true))
  end
  if entry then return layers[entry.class or class](entry.options(draw, shape, record, dtype)), {} end
  local options = options_of(C.flow_layer_class_find(class), draw, shape, false, calm)
  -- Keras fails with several axes.
  if class == "RMSNormalization" and type(options.axis) == "table" and #options.axis > 1 then options.axis = nil end
  -- What these contain trains in Keras in spite of trainable = false.
  if class == "MultiHeadAttention" or class == "GroupQueryAttention" or class:find "^ConvLSTM" then options.trainable = nil end
  return layers[class](options), options
end
function random_files.dtype_for(class, draw)
  local entry = in_lua.entries[class]
  local dtype = entry and entry.dtype or class:find "Embedding$" and "int32" or "float32"
  return type(dtype) == "table" and draw.pick(dtype) or dtype
end

return random_files
