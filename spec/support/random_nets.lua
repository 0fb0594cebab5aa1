--- Random models of several layers, with data to train them on: one class of layers in the middle, other layers before and after it,
--- some of them shared or inside models, several inputs and outputs, sizes that are not known, masks. One seed, one model.
local flow = require "flow"
local random_files = require "spec.support.random_files"
local in_lua = require "spec.support.random_lua_layers"

local layers = flow.layers
local random_nets = {}

local MOST_ELEMENTS, LARGEST = 2000, 300
-- Layers whose training changes pictures at random, whatever their options: models with them do not train. (Keras 3.15 takes no notice of
-- training = false in a call inside a model that trains.) Nor do those with Equalization, which Keras loses when it copies a graph.
local function is_random(class)
  return class:find "^Random" or class == "Solarization" or class == "Equalization" or class == "MixUp" or class == "CutMix" or
    class == "AugMix" or class == "RandAugment" or class == "Pipeline"
end

--- The shape without the batch; sizes that are not known as they will be.
local function known_shape(net, x)
  local shape = {}
  for axis = 2, #x.shape do shape[axis - 1] = x.shape[axis] < 0 and net.size or x.shape[axis] end
  return shape
end

local function is_usable(net, x)
  local elements = 1
  for _, n in ipairs(known_shape(net, x)) do elements = elements * n end
  return elements > 0 and elements <= MOST_ELEMENTS
end

local function is_float(x) return x.dtype == "float32" end

--- Whether two tensors have the same shape.
local function alike(a, b)
  if #a.shape ~= #b.shape or a.dtype ~= b.dtype then return false end
  for i, n in ipairs(a.shape) do if b.shape[i] ~= n then return false end end
  return true
end

--- Another tensor of the net like x; else one that a layer makes of x.
local function neighbour(net, x)
  local draw, found = net.draw, {}
  for _, other in ipairs(net.tensors) do
    if other ~= x and alike(other, x) then found[#found + 1] = other end
  end
  if #found > 0 and draw.chance(0.7) then return draw.pick(found) end
  return is_float(x) and layers.Activation(draw.pick { "tanh", "sigmoid", "softplus" })(x) or x
end

local function listed(outputs) return flow.is_tensor(outputs) and { outputs } or outputs.shape and { outputs } or outputs end

local add_some

--- A model with the layer in it, and some layers after it: a graph of one or two inputs, or a stack; itself, or inside another model.
--- Called once or twice. Gives the results of the calls.
local function call_inside(net, layer, x)
  local draw, shape = net.draw, { unpack(x.shape, 2) }
  local trainable = draw.chance(0.8)
  local function input() return flow.Input(shape, { dtype = x.dtype }) end
  local function one_or_list(list) return #list == 1 and list[1] or list end
  local inner, arguments
  if draw.chance(0.2) then
    local stack = { layers.Input(shape, { dtype = x.dtype }), layer }
    if is_float(x) and draw.chance(0.5) then stack[3] = layers.Activation "tanh" end
    inner, arguments = flow.Sequential(stack, { trainable = trainable }), function(y) return y end
  else
    local inside = { input() }
    local made = listed(layer(inside[1]))
    if draw.chance(0.25) then
      inside[2] = input()
      made[#made + 1] = is_float(x) and draw.chance(0.5) and layers.Add()(inside) or listed(layer(inside[2]))[1]
    end
    if is_float(made[1]) and draw.chance(0.4) then
      local others = { root = net.root, draw = draw, tensors = { made[1] }, classes = net.classes, size = net.size }
      others.depth = (net.depth or 0) + 1
      made[1] = others.depth < 3 and add_some(others, made[1]) or made[1]
    elseif is_float(made[1]) and draw.chance(0.5) then
      made[1] = layers.Activation "tanh"(made[1])
    end
    inner = flow.Model { inputs = one_or_list(inside), outputs = one_or_list(made), trainable = trainable }
    arguments = function(y) return inside[2] and { y, neighbour(net, y) } or y end
  end
  if draw.chance(0.2) then
    local around = { input() }
    local given = arguments(around[1])
    if not given.shape then
      around[2] = input()
      given = { unpack(around) }
    end
    inner = flow.Model { inputs = one_or_list(around), outputs = one_or_list(listed(inner(given))) }
  end
  local results = listed(inner(arguments(x)))
  if draw.chance(0.5) then
    for _, y in ipairs(listed(inner(arguments(neighbour(net, x))))) do results[#results + 1] = y end
  end
  return results
end

--- The layer on x, in one of the ways that it can be called. Gives a list of tensors.
local function call(net, class, layer, options, x)
  local draw = net.draw
  local call_options = {}
  if random_files.MERGING[class] then
    local list = { x }
    for i = 2, draw.integer(2, random_files.MERGING[class]) do list[i] = neighbour(net, x) end
    return { layer(list) }
  end
  if class:find "Attention$" then
    local value, key = draw.chance(0.5) and x or neighbour(net, x), nil
    call_options.use_causal_mask = draw.chance(0.4) or nil
    if class == "Attention" or class == "AdditiveAttention" then return listed(layer({ x, value }, call_options)) end
    if draw.chance(0.3) then key = neighbour(net, x) end
    call_options.key = key
    call_options.return_attention_scores = draw.chance(0.2) or nil
    return listed(layer(x, value, call_options))
  end
  if random_files.CELLS[class] then
    local states = {}
    for i = 1, random_files.CELLS[class] do states[i] = layers.Dense(options.units, { activation = "tanh" })(x) end
    local output, new = layer(x, states, call_options)
    if new == nil then return listed(output) end
    return { output, unpack(listed(new)) }
  end
  if random_files.RECURRENT[class] and draw.chance(0.3) and not random_files.CONVOLUTIONS_OF_STEPS[class] and #x.shape == 3 then
    local states, first = {}, layers.GlobalAveragePooling1D()(x)
    for i = 1, random_files.RECURRENT[class] do states[i] = layers.Dense(options.units, { activation = "tanh" })(first) end
    call_options.initial_state = #states == 1 and states[1] or states
    return listed(layer(x, call_options))
  end
  local kind = draw.integer(1, 6)
  if kind == 1 and class ~= "Equalization" then return call_inside(net, layer, x) end      -- Keras cannot copy that layer
  if kind == 2 then      -- shared
    local results = listed(layer(x, call_options))
    for _, y in ipairs(listed(layer(neighbour(net, x), call_options))) do results[#results + 1] = y end
    return results
  end
  return listed(layer(x, call_options))
end

--- One more layer on x. Gives whether that worked, and the last tensor.
local function add(net, class, x)
  local draw = net.draw
  local ok, found = pcall(function()
    local layer, options = random_files.layer(class, draw, known_shape(net, x), x.dtype, true)
    local results = call(net, class, layer, options, x)
    -- Not all options go with it.
    if draw.chance(0.3) and layer.enable_lora and pcall(layer.enable_lora, layer, draw.integer(1, 3)) then net.root.lora = true end
    return results
  end)
  if not ok then return false, found end
  for _, y in ipairs(found) do
    if not is_usable(net, y) then return false, "too large" end
  end
  for _, y in ipairs(found) do net.tensors[#net.tensors + 1] = y end
  net.classes[#net.classes + 1] = class
  return true, found[1]
end

-- Operations between layers: of floats, and of another tensor of the same shape.
local OPERATIONS = {
  function(x) return x * 2 + 0.5 end, function(x) return 1 - flow.abs(x) end, function(x) return flow.square(flow.tanh(x)) end,
  function(x) return flow.softmax(x, -1) end, function(x) return flow.clip(x, -0.7, 0.9) end, function(x) return flow.flip(x, -1) end,
  function(x) return x - flow.mean(x, -1, true) end, function(x) return x / (1 + flow.max(flow.abs(x), -1, true)) end,
  function(x) return flow.concat({ x, flow.sigmoid(x) }, -1) end, function(x) return flow.gelu(x) end,
  function(x, y) return x * y end, function(x, y) return flow.maximum(x, y) end, function(x, y) return flow.concat({ x, y }, -1) end,
  function(x, y) return flow.where(flow.gt(x, 0), x, y) end, function(x, y) return x - 0.5 * y end,
}

--- A layer of any class that takes x, or an operation.
function add_some(net, x)
  local draw = net.draw
  if is_float(x) and draw.chance(0.1) then
    local y = draw.pick(OPERATIONS)(x, neighbour(net, x))
    if is_usable(net, y) then
      net.tensors[#net.tensors + 1], net.classes[#net.classes + 1] = y, "operation"
      return y
    end
  end
  for _ = 1, 40 do
    local class = draw.pick(random_files.class_names)
    local shape = random_files.shape_for(class, draw)
    if not is_random(class) and #shape == #x.shape - 1 and random_files.dtype_for(class, draw) == x.dtype then
      local ok, y = add(net, class, x)
      if ok then return y end
    end
  end
  return x
end

--- Numbers of whole classes become vectors.
local function as_float(net, x)
  if is_float(x) then return x end
  if #x.shape > 3 or x.dtype == "string" then return nil end
  local y = layers.Embedding(64, net.draw.integer(2, 4), { mask_zero = net.draw.chance(0.5) })(x)
  net.tensors[#net.tensors + 1] = y
  return y
end

--- An output of the model, its loss, metrics and targets. targets(prediction) when they are known after the prediction.
local function head(net, x, rows)
  local draw = net.draw
  local loss, metrics, y, activation = random_files.objective(draw, rows)
  if type(loss) == "table" and loss:get_config().delta then loss = flow.losses.Huber() end      -- Keras' files lose its delta
  if draw.chance(0.25) and #x.shape <= 4 then
    return { output = x, loss = draw.pick { "mse", "mae", flow.losses.Huber(), flow.losses.LogCosh() }, metrics = { "mse" },
             seed = draw.integer(1, 1e6) }
  end
  local rank = #x.shape - 2
  if rank > 0 then
    local unknown = false
    for axis = 2, #x.shape do unknown = unknown or x.shape[axis] < 0 end
    if unknown or draw.chance(0.7) then
      x = layers[("Global%sPooling%dD"):format(draw.pick { "Average", "Max" }, rank)]()(x)
    else
      x = layers.Flatten()(x)
    end
  end
  local dense = layers.Dense(3, { activation = activation })
  local output = dense(x)
  if draw.chance(0.08) then
    dense:enable_lora(draw.integer(1, 3))
    net.lora = true
  end
  return { output = output, loss = loss, metrics = metrics, targets = y }
end

--- Words, of which 0 is masked, as vectors: how sequences of different lengths come to layers.
local function masked_steps(net, shape)
  local draw = net.draw
  net.size = shape[1]
  net.inputs = {}
  for i = 1, draw.pick { 1, 1, 2 } do net.inputs[i] = flow.Input({ draw.chance(0.5) and -1 or shape[1] }, { dtype = "int32" }) end
  local embedding = layers.Embedding(8, shape[2], { mask_zero = true })
  for i, input in ipairs(net.inputs) do net.tensors[i] = embedding(input) end
  return net.tensors[1]
end

local function make_inputs(net, class)
  local draw = net.draw
  local shape, dtype = random_files.shape_for(class, draw), random_files.dtype_for(class, draw)
  local given = { unpack(shape) }
  if dtype == "float32" and #shape == 2 and draw.chance(0.3) then return masked_steps(net, shape) end
  if dtype == "float32" and #shape > 1 and draw.chance(0.3) then
    net.size = draw.integer(4, 7)
    for axis = 1, #shape - 1 do
      if draw.chance(0.6) then given[axis] = -1 end
    end
  end
  local options = { dtype = dtype }
  net.inputs = {}
  for i = 1, draw.pick { 1, 1, 2, 2, 3 } do
    net.inputs[i] = flow.Input(given, options)
    net.tensors[i] = net.inputs[i]
  end
  -- Whole numbers and strings have few layers: a second way into the model is one of floats.
  if dtype ~= "float32" and draw.chance(0.3) then
    net.inputs[#net.inputs + 1] = flow.Input { 5 }
    net.tensors[#net.tensors + 1] = net.inputs[#net.inputs]
  end
  return net.inputs[1]
end

local function values_for(net, input, rows)
  local draw, shape = net.draw, { rows, unpack(known_shape(net, input)) }
  local seed = draw.integer(1, 1e6)
  if input.dtype:find "int" then return flow.random.randint(shape, 0, 7, { dtype = input.dtype, seed = seed }) end
  if input.dtype == "string" then return in_lua.strings(shape, draw) end
  local x = flow.random.uniform(shape, { minval = -1, maxval = 1, seed = seed })
  if #shape == 3 and draw.chance(0.3) then      -- some steps are zeros, for Masking
    x = x * flow.cast(flow.random.uniform({ rows, shape[2], 1 }, { seed = seed + 1 }):gt(0.3), "float32")
  end
  return x
end

--- Weights near those that the layers began with, and statistics and biases that are not initial ones.
local function stir(model, seed)
  for i, v in ipairs(model.variables) do
    if v.dtype == "float32" and not v.path:find "^mean$" then
      local noise = flow.random.normal(v.shape, { seed = seed + i, mean = 0, stddev = 0.1 })
      v:assign(v.name:find "variance" and (v:value() + noise):abs() + 0.2 or v:value() + noise)
    end
  end
end

local SETTINGS = {
  SGD = { momentum = { 0, 0.9 }, nesterov = "boolean" }, Adam = { amsgrad = "boolean" }, AdamW = {}, Nadam = {}, Adamax = {},
  RMSprop = { momentum = { 0, 0.5 }, centered = "boolean" }, Adagrad = {}, Adadelta = {}, Ftrl = {}, Lamb = {}, Adafactor = {},
  Lion = {}, Muon = {},
}
local OPTIMIZERS = { "SGD", "SGD", "SGD", "Adam", "Adam", "AdamW", "Nadam", "Adamax", "RMSprop", "Adagrad", "Adadelta", "Ftrl", "Lamb",
                     "Adafactor", "Lion", "Muon" }
local HAS_EPSILON = { Adam = true, AdamW = true, Nadam = true, Adamax = true, RMSprop = true, Adagrad = true, Adadelta = true, Lamb = true }

-- Optimizers that divide by the size of a gradient make a step of noise where the gradient is 0 but for rounding: their epsilon is large.
local function optimizer_for(draw)
  local class = draw.pick(OPTIMIZERS)
  local options = { learning_rate = draw.number(0.001, 0.02) }
  if class == "Lion" or class == "Muon" then options.learning_rate = draw.number(1e-4, 1e-3) end
  if HAS_EPSILON[class] then options.epsilon = draw.number(1e-3, 1e-2) end
  for _, name in ipairs { "momentum", "nesterov", "amsgrad", "centered" } do
    local values = SETTINGS[class][name]
    if values and draw.chance(0.5) then
      options[name] = values == "boolean" and draw.chance(0.5) or values ~= "boolean" and draw.number(values[1], values[2]) or false
    end
  end
  local clip = draw.pick { false, false, false, "clipnorm", "clipvalue", "global_clipnorm" }
  if clip then options[clip] = draw.number(0.05, 1) end
  if draw.chance(0.2) then options.weight_decay = draw.number(0, 0.1) end
  if draw.chance(0.1) then options.use_ema, options.ema_momentum = true, draw.number(0.5, 0.99) end
  if draw.chance(0.1) then options.gradient_accumulation_steps = 2 end
  if draw.chance(0.2) then
    options.learning_rate = flow.optimizers.schedules.ExponentialDecay(0.01, draw.integer(1, 5), draw.number(0.5, 1))
  end
  return flow.optimizers[class](options), class
end

local function all_small(list)
  for _, t in ipairs(list) do
    if t.dtype == "float32" then
      local largest = flow.abs(t):max():item()
      if not (largest < LARGEST) then return false end
    end
  end
  return true
end

--- The model, with those of the inputs that the outputs need.
local function connected(inputs, outputs)
  local kept = { unpack(inputs) }
  local function model_of(list)
    return flow.Model { inputs = #list == 1 and list[1] or list, outputs = #outputs == 1 and outputs[1] or outputs }
  end
  for i = #kept, 1, -1 do
    local without = { unpack(kept) }
    table.remove(without, i)
    if #without > 0 and pcall(model_of, without) then kept = without end
  end
  return model_of(kept)
end

local function try(seed, attempt, class)
  local draw = random_files.drawing(seed * 64 + attempt)
  flow.set_random_seed(seed)
  local net = { draw = draw, tensors = {}, classes = {}, size = 5 }
  net.root = net
  local rows = draw.integer(2, 4)
  local x = make_inputs(net, class)
  if is_float(x) then
    for _ = 1, draw.integer(0, 2) do
      local y = add_some(net, x)
      -- Keras' layers that change pictures at random need three channels; LayerNormalization cuts what it makes of whole numbers to such.
      if #y.shape == #x.shape and y.dtype == x.dtype and (not is_random(class) or y.shape[#y.shape] == x.shape[#x.shape]) then x = y end
    end
  end
  local ok, y = add(net, class, x)
  if not ok then error(y, 0) end
  x = as_float(net, y)
  if not x then error("no floats come of it", 0) end
  for _ = 1, draw.integer(0, 4) do x = add_some(net, x) end
  if not is_float(x) then x = as_float(net, x) end
  local heads = { head(net, x, rows) }
  for _ = 2, draw.pick { 1, 1, 2, 3 } do
    local other = draw.pick(net.tensors)
    if is_float(other) and #other.shape > 1 then heads[#heads + 1] = head(net, other, rows) end
  end
  local outputs, losses, metrics, weights = {}, {}, {}, {}
  for i, h in ipairs(heads) do
    outputs[i], losses[i], metrics[i], weights[i] = h.output, h.loss, h.metrics or {}, draw.number(0.1, 2)
  end
  local model = connected(net.inputs, outputs)
  stir(model, seed)
  local quantized = draw.chance(0.07) and not net.lora and pcall(model.quantize, model, "int8")
  local inputs = {}
  for i, input in ipairs(model.inputs) do inputs[i] = values_for(net, input, rows) end
  local predictions = listed(model:predict(#inputs == 1 and inputs[1] or inputs, { verbose = 0 }))
  if not all_small(predictions) then error("values grow out of bounds", 0) end
  local targets = {}
  for i, h in ipairs(heads) do
    targets[i] = h.targets or flow.random.uniform(predictions[i].shape, { minval = -1, maxval = 1, seed = h.seed })
  end
  local optimizer, name = optimizer_for(draw)
  local one = #heads == 1
  model:compile { optimizer = optimizer, loss = one and losses[1] or losses, metrics = one and metrics[1] or metrics,
                  loss_weights = draw.chance(0.5) and (one and { weights[1] } or weights) or nil }
  return { model = model, inputs = inputs, targets = targets, class = class, optimizer = name, classes = net.classes,
           trains = not is_random(class) and not quantized, lora = net.lora, quantized = quantized }
end

--- A compiled model with inputs and targets: { model =, inputs =, targets =, class =, optimizer =, classes =, trains =, lora =,
--- quantized = }.
function random_nets.make(seed)
  local class = random_files.class_names[1 + seed % #random_files.class_names]
  local problem
  for attempt = 1, 60 do
    local ok, made = pcall(try, seed, attempt, class)
    if ok and not made.trains then return made end
    if ok then      -- regularizers and constraints may refuse weights when the model trains
      local one = #made.inputs == 1 and made.inputs[1] or made.inputs
      ok, problem = pcall(made.model.train_on_batch, made.model, one, #made.targets == 1 and made.targets[1] or made.targets)
      if ok and problem.loss < LARGEST and problem.loss > -LARGEST then return try(seed, attempt, class) end
      problem = ok and "losses grow out of bounds" or problem
    else
      problem = made
    end
  end
  error(("random_nets: seed %d: no model with %s could be built: %s"):format(seed, class, tostring(problem)), 0)
end

return random_nets
