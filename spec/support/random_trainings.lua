--- Random small trainings: a model that is a chain of layers, an optimizer with random options, a loss, data in batches of which the last
--- may be smaller. One seed, one training; make() gives the model anew, with the same weights, in each of the forms that a program can
--- give it.
local flow = require "flow"
local arguments = require "spec.backend.random_ops.arguments"

local layers = flow.layers
local trainings = {}

---- layers ---------------------------------------------------------------------------------------------------------------------------

local ACTIVATIONS = { "linear", "relu", "tanh", "sigmoid", "softplus", "gelu", "elu", "swish" }

--- Options that most layers with a kernel take.
local function common(s, options)
  options.activation = s.pick(ACTIVATIONS)
  if s.maybe(0.15) then options.kernel_regularizer = flow.regularizers.L2(0.01) end
  if s.maybe(0.1) then options.kernel_constraint = flow.constraints.MaxNorm(1.5) end
  if s.maybe(0.1) then options.bias_regularizer = "l1" end
  if s.maybe(0.15) then options.use_bias = false end
  return options
end

--- What may follow an input of rank 1, 2 or 3 (without the batch): functions of the source and the shape that give the layer's class, its
--- arguments, and the shape that it makes.
local makers = { {}, {}, {} }

local function dense(s, shape)
  local units = s.draw(1, 9)
  local result = { unpack(shape) }
  result[#result] = units
  local options = common(s, {})
  return function() return layers.Dense(units, options) end, result
end
local function normalization(s, shape)
  local class = s.pick { "BatchNormalization", "LayerNormalization", "BatchNormalization" }
  local momentum = s.pick { 0.5, 0.9, 0.99 }
  return function() return layers[class](class == "BatchNormalization" and { momentum = momentum } or {}) end, shape
end
local function activation(s, shape)
  local name = s.pick(ACTIVATIONS)
  return function() return layers.Activation(name) end, shape
end
local function dropout(s, shape)
  local rate, seed = s.pick { 0.1, 0.5 }, s.maybe(0.5) and s.draw(0, 99) or nil
  return function() return layers.Dropout(rate, { seed = seed }) end, shape, "draws"
end
local function noise(s, shape)
  local stddev = s.pick { 0.1, 0.5 }
  return function() return layers.GaussianNoise(stddev) end, shape, "draws"
end
local function frozen(s, shape)
  local units = s.draw(1, 5)
  local result = { unpack(shape) }
  result[#result] = units
  return function() return layers.Dense(units, { trainable = false }) end, result
end
for rank = 1, 3 do makers[rank] = { dense, dense, normalization, activation, dropout, noise, frozen } end

table.insert(makers[2], function(s, shape)
  local class, units = s.pick { "LSTM", "GRU", "SimpleRNN" }, s.draw(1, 6)
  local whole = s.maybe(0.6)
  local back = s.maybe(0.3)
  return function() return layers[class](units, { return_sequences = whole, go_backwards = back }) end,
    whole and { shape[1], units } or { units }
end)
table.insert(makers[2], function(s, shape)
  local filters, window = s.draw(1, 7), s.draw(1, 3)
  local options = common(s, { padding = "same" })
  return function() return layers.Conv1D(filters, window, options) end, { shape[1], filters }
end)
table.insert(makers[2], function(_, shape) return function() return layers.GlobalAveragePooling1D() end, { shape[2] } end)
for _ = 1, 2 do
  table.insert(makers[3], function(s, shape)
    local filters, window, stride = s.draw(1, 8), s.draw(1, 3), s.draw(1, 2)
    local options = common(s, { padding = "same", strides = stride })
    return function() return layers.Conv2D(filters, window, options) end,
      { math.ceil(shape[1] / stride), math.ceil(shape[2] / stride), filters }
  end)
end
table.insert(makers[3], function(s, shape)
  local multiplier = s.draw(1, 2)
  return function() return layers.DepthwiseConv2D(3, { padding = "same", depth_multiplier = multiplier }) end,
    { shape[1], shape[2], shape[3] * multiplier }
end)
table.insert(makers[3], function(s, shape)
  local class = s.pick { "MaxPooling2D", "AveragePooling2D" }
  return function() return layers[class](2, { padding = "same" }) end, { math.ceil(shape[1] / 2), math.ceil(shape[2] / 2), shape[3] }
end)
table.insert(makers[3], function(_, shape) return function() return layers.GlobalAveragePooling2D() end, { shape[3] } end)

--- The functions that make the layers of a chain from `shape` to `outputs` numbers, and whether one of them draws random numbers.
local function chain(s, shape, outputs)
  local list, draws = {}, false
  for _ = 1, s.draw(0, 4) do
    local make, result, what = s.pick(makers[#shape])(s, shape)
    list[#list + 1] = make
    shape, draws = result, draws or what == "draws"
  end
  if #shape > 1 then list[#list + 1] = function() return layers.Flatten() end end
  list[#list + 1] = function() return layers.Dense(outputs) end
  return list, draws
end

---- optimizers, losses, data -------------------------------------------------------------------------------------------------------

local OPTIMIZERS = {
  SGD = function(s) return { momentum = s.pick { 0, 0, 0.9 }, nesterov = s.maybe(0.3) } end,
  Adam = function(s) return { amsgrad = s.maybe(0.3), beta_1 = s.pick { 0.9, 0.5 } } end,
  AdamW = function(s) return { weight_decay = s.pick { 0.004, 0.1 } } end,
  RMSprop = function(s) return { momentum = s.pick { 0, 0.9 }, centered = s.maybe(0.4) } end,
  Adagrad = function() return {} end, Adadelta = function() return {} end, Adamax = function() return {} end,
  Nadam = function() return {} end, Lion = function() return {} end,
  Ftrl = function(s) return { l1_regularization_strength = s.pick { 0, 0.01 } } end,
}
local NAMES = {}
for name in pairs(OPTIMIZERS) do NAMES[#NAMES + 1] = name end
table.sort(NAMES)

local function optimizer(s)
  local name = s.pick(NAMES)
  local options, rate = OPTIMIZERS[name](s), s.pick { 0.1, 0.01, 0.003 }
  local clip = s.pick { "clipnorm", "global_clipnorm", "clipvalue", "none", "none", "none" }
  if clip ~= "none" then options[clip] = s.pick { 0.1, 1 } end
  if s.maybe(0.15) then options.use_ema, options.ema_momentum = true, 0.9 end
  if s.maybe(0.15) and not options.weight_decay then options.weight_decay = 0.01 end
  if s.maybe(0.15) then options.gradient_accumulation_steps = s.draw(2, 3) end
  local decays = s.maybe(0.2)
  return function()
    options.learning_rate = decays and flow.optimizers.schedules.ExponentialDecay(rate, 3, 0.5) or rate
    return flow.optimizers[name](options)
  end, name, options.use_ema
end

--- Losses of outputs that are any numbers: the function, how many outputs, and the targets.
local function loss(s, rows, seed)
  local outputs = s.draw(1, 5)
  local function numbers(shape) return flow.random.normal(shape, { seed = seed }) end
  local function labels(most, dtype) return flow.random.uniform({ rows }, { minval = 0, maxval = most, dtype = dtype, seed = seed }) end
  local kind = s.draw(1, 7)
  if kind == 1 then
    outputs = s.draw(2, 5)
    return function() return flow.losses.SparseCategoricalCrossentropy { from_logits = true } end, outputs, labels(outputs, "int32")
  elseif kind == 2 then
    local targets = numbers({ rows, outputs }):gt(0):to "float32"
    return function() return flow.losses.BinaryCrossentropy { from_logits = true } end, outputs, targets
  elseif kind == 3 then return function() return flow.losses.Huber() end, outputs, numbers { rows, outputs }
  elseif kind == 4 then return function() return flow.losses.MeanAbsoluteError() end, outputs, numbers { rows, outputs }
  elseif kind == 5 then
    outputs = s.draw(2, 5)
    return function() return flow.losses.CategoricalCrossentropy { from_logits = true, label_smoothing = 0.1 } end, outputs,
      flow.one_hot(labels(outputs, "int32"), outputs)
  elseif kind == 6 then return function() return flow.losses.LogCosh() end, outputs, numbers { rows, outputs }
  end
  return function() return flow.losses.MeanSquaredError() end, outputs, numbers { rows, outputs }
end

local function input_shape(s)
  local rank = s.draw(1, 3)
  if rank == 1 then return { s.draw(1, 9) } end
  if rank == 2 then return { s.draw(1, 5), s.draw(1, 6) } end
  return { s.draw(2, 6), s.draw(2, 6), s.draw(1, 3) }
end

---- a training ---------------------------------------------------------------------------------------------------------------------

local kinds = {}

function kinds.sequential(list, shape)
  local all = { layers.Input(shape) }
  for _, make in ipairs(list) do all[#all + 1] = make() end
  return flow.Sequential(all)
end

function kinds.functional(list, shape)
  local input = layers.Input(shape)
  local y = input
  for _, make in ipairs(list) do y = make()(y) end
  return flow.Model { inputs = input, outputs = y }
end

local Chain = flow.Model:extend("Chain")
function Chain:call(x, options)
  for i = 1, self.count do x = self["layer" .. i](x, { training = options and options.training }) end
  return x
end

function kinds.subclassed(list, shape)
  local model = Chain()
  model.count = #list
  for i, make in ipairs(list) do model["layer" .. i] = make() end
  model(flow.zeros { 1, unpack(shape) })
  return model
end

--- Training number `seed`: { x, y, weights (or nil), batch, epochs, title, loss(), make(kind) }: kind is "sequential", "functional" or
--- "subclassed"; draws: layers draw random numbers; averages: the weights become their moving average at the end of fit; exact: it is one
--- for set_precision("exact").
function trainings.of(seed)
  local s = arguments.source(seed)
  local rows, shape, t = s.draw(3, 20), input_shape(s), {}
  local make_loss, outputs, y = loss(s, rows, seed + 1)
  t.loss, t.y = make_loss, y
  t.x = flow.random.normal({ rows, unpack(shape) }, { seed = seed })
  t.weights = s.maybe(0.3) and flow.random.uniform({ rows }, { seed = seed + 2 }) or nil
  t.batch, t.epochs = s.draw(2, 8), s.draw(1, 3)
  local list, name, make_optimizer
  list, t.draws = chain(s, shape, outputs)
  make_optimizer, name, t.averages = optimizer(s)
  t.exact = s.maybe(0.5)
  local first
  function t.make(kind)
    flow.set_random_seed(seed)
    local model = kinds[kind](list, shape)
    if first then model:set_weights(first) end
    if not first then
      first = {}
      for i, w in ipairs(model:get_weights()) do first[i] = w:copy() end
    end
    model:compile { optimizer = make_optimizer(), loss = t.loss() }
    return model
  end
  local classes = {}
  for i, layer in ipairs(t.make("sequential").layers) do classes[i] = layer.class_name or layer.name end
  t.title = ("seed %d, %s, %s, %d rows in batches of %d%s"):format(seed, table.concat(classes, " "), name, rows, t.batch,
    t.exact and ", exact" or "")
  return t
end

return trainings
