-- keras_files.lua: writes models with their inputs and predictions into a folder, for keras_files.py to open with Keras. Every layer
-- of the library is in one of them: a layer that is not is an error.
local flow = require "flow"
local native = require "flow.ffi"
local layers = flow.layers
local folder = assert(arg[1], "usage: flowlua keras_files.lua FOLDER")
flow.set_random_seed(11)

local seen = {}
local function mark(model)
  for _, layer in ipairs(model.layers) do
    seen[layer.class_name] = true
    if rawget(layer, "_children") and #layer._children > 0 then mark(layer) end
  end
end

-- Values that are not initial ones.
local function scramble(model)
  for i, v in ipairs(model.variables) do
    if v.dtype == "float32" then
      local value = flow.random.normal(v.shape, { seed = i, mean = 0.1, stddev = 0.3 })
      v:assign(v.name:find("variance") and value:abs() + 0.5 or value)
    end
  end
end

local function save(name, model, inputs)
  mark(model)
  model:save(folder .. "/" .. name .. ".keras")
  model:save_weights(folder .. "/" .. name .. ".weights.h5")
  local outputs = model:predict(#inputs == 1 and inputs[1] or inputs, { verbose = 0 })
  if flow.is_tensor(outputs) then outputs = { outputs } end
  for i, x in ipairs(inputs) do flow.save_npy(("%s/%s_x%d.npy"):format(folder, name, i), x) end
  for i, y in ipairs(outputs) do flow.save_npy(("%s/%s_y%d.npy"):format(folder, name, i), y) end
end

local function random(shape) return flow.random.uniform(shape, { minval = -1, maxval = 1, seed = 5 }) end

---- each layer by itself ----------------------------------------------------------------------------------------------------------

local IMAGE, VECTOR = { 8, 9, 3 }, { 6 }
local cases = {
  Dense = { VECTOR, layers.Dense(4, { activation = "gelu", kernel_initializer = flow.initializers.RandomNormal { stddev = 0.3 },
                                      kernel_regularizer = flow.regularizers.L1L2(0.1, 0.2), bias_regularizer = "l2" }) },
  Rescaling = { IMAGE, layers.Rescaling(0.5, { offset = -1 }) }, Resizing = { IMAGE, layers.Resizing(5, 7) },
  CenterCrop = { IMAGE, layers.CenterCrop(4, 5) }, RandomFlip = { IMAGE, layers.RandomFlip("vertical") },
  RandomRotation = { IMAGE, layers.RandomRotation(0.2, { fill_mode = "nearest" }) },
  RandomZoom = { IMAGE, layers.RandomZoom({ -0.2, 0.3 }) },
  RandomContrast = { IMAGE, layers.RandomContrast(0.3) }, Reshape = { IMAGE, layers.Reshape { 4, -1 } },
  Flatten = { IMAGE, layers.Flatten() },
  Conv2D = { IMAGE, layers.Conv2D(6, { 3, 2 }, { strides = 2, padding = "same", groups = 3, activation = "relu" }) },
  DepthwiseConv2D = { IMAGE, layers.DepthwiseConv2D(3, { depth_multiplier = 2, use_bias = false }) },
  MaxPooling2D = { IMAGE, layers.MaxPooling2D(3, { strides = 2, padding = "same" }) },
  AveragePooling2D = { IMAGE, layers.AveragePooling2D({ 2, 3 }) },
  GlobalAveragePooling2D = { IMAGE, layers.GlobalAveragePooling2D { keepdims = true } },
  GlobalMaxPooling2D = { IMAGE, layers.GlobalMaxPooling2D() }, Activation = { VECTOR, layers.Activation("silu") },
  ReLU = { VECTOR, layers.ReLU { max_value = 0.5, negative_slope = 0.1, threshold = 0.01 } }, Softmax = { IMAGE, layers.Softmax(2) },
  Dropout = { VECTOR, layers.Dropout(0.4, { seed = 3 }) },
  BatchNormalization = { IMAGE, layers.BatchNormalization { axis = 3, momentum = 0.9 } },
  Permute = { IMAGE, layers.Permute { 3, 1, 2 } }, RepeatVector = { VECTOR, layers.RepeatVector(3) },
  UpSampling2D = { IMAGE, layers.UpSampling2D({ 2, 3 }, { interpolation = "bilinear" }) },
  ZeroPadding2D = { IMAGE, layers.ZeroPadding2D(2) }, Cropping2D = { IMAGE, layers.Cropping2D(1) },
  SeparableConv2D = { IMAGE, layers.SeparableConv2D(5, 3, { depth_multiplier = 2, padding = "same" }) },
  Conv2DTranspose = { IMAGE, layers.Conv2DTranspose(4, 3, { strides = 2, padding = "same" }) },
  LeakyReLU = { VECTOR, layers.LeakyReLU(0.2) }, PReLU = { IMAGE, layers.PReLU() }, ELU = { VECTOR, layers.ELU(0.7) },
  SpatialDropout2D = { IMAGE, layers.SpatialDropout2D(0.3) }, GaussianNoise = { VECTOR, layers.GaussianNoise(0.1) },
  GaussianDropout = { VECTOR, layers.GaussianDropout(0.2) },
  AlphaDropout = { VECTOR, layers.AlphaDropout(0.3, { noise_shape = { 1, 6 } }) },
  LayerNormalization = { IMAGE, layers.LayerNormalization { epsilon = 1e-4 } },
}
for name, case in pairs(cases) do
  local shape, layer = unpack(case)
  local model = flow.Sequential { layers.Input(shape), layer }
  scramble(model)
  save("layer_" .. name, model, { random { 2, unpack(shape) } })
end

---- models ---------------------------------------------------------------------------------------------------------------------------

local adapted = layers.Normalization()
adapted:adapt(flow.random.normal({ 40, 4 }, { seed = 1, mean = 3, stddev = 2 }))
save("adapted", flow.Sequential { layers.Input { 4 }, adapted, layers.Dense(2) }, { random { 3, 4 } })
save("normalized", flow.Sequential { layers.Input { 4 }, layers.Normalization { mean = 1, variance = 4 } }, { random { 3, 4 } })

local ids = flow.tensor({ { 0, 3 }, { 6, 2 } }, { dtype = "int32" })
local words = flow.Input({ 2 }, { dtype = "int32" })
save("embedding", flow.Model { inputs = words, outputs = layers.Dense(3)(layers.Flatten()(layers.Embedding(7, 4)(words))) }, { ids })

local p, q = flow.Input { 5 }, flow.Input { 5 }
local merged = {}
for i, class in ipairs { "Subtract", "Multiply", "Average", "Maximum", "Minimum" } do merged[i] = layers[class]() { p, q } end
save("merging", flow.Model { inputs = { p, q }, outputs = merged }, { random { 3, 5 }, flow.random.normal({ 3, 5 }, { seed = 9 }) })

local left, right = flow.Input({ 6 }, { name = "left" }), flow.Input({ 6 }, { name = "right" })
local tower = flow.Sequential({ layers.Input { 6 }, layers.Dense(5, { activation = "tanh" }), layers.BatchNormalization() },
  { name = "tower" })
local inner_input = flow.Input { 5 }
local inner = flow.Model { inputs = inner_input, outputs = layers.Add() { inner_input, layers.Dense(5)(inner_input) }, name = "inner" }
local a, b = inner(tower(left)), tower(right)
local joined = layers.Concatenate() { a, b, a }
local nested = flow.Model { inputs = { left, right }, outputs = { layers.Dense(3)(flow.exp(-(joined * 2 + 1)) / 3), layers.Dense(1)(b) } }
scramble(nested)
save("nested", nested, { random { 3, 6 }, random { 3, 6 } })

local nets = require "flow.cli.bench_nets"
for _, name in ipairs { "flowers", "mnist", "resnet20", "mobilenet", "unet" } do
  local model, shape = nets[name]()
  save("net_" .. name, model, { random { 2, unpack(shape) } })
end

---- training goes on -------------------------------------------------------------------------------------------------------------------

-- Five steps here, saved, five more here: Keras makes the second five as well.
local function trained(name, optimizer)
  local model = flow.Sequential { layers.Input { 6 }, layers.Dense(8, { activation = "relu" }), layers.BatchNormalization(),
                                  layers.Dense(3) }
  local loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true }
  model:compile { optimizer = optimizer, loss = loss, metrics = { "accuracy" } }
  local x = flow.random.uniform({ 10, 16, 6 }, { seed = 2 })
  local y = flow.random.randint({ 10, 16 }, 0, 3, { seed = 3 })
  local losses = {}
  for step = 1, 10 do
    losses[step] = model:train_on_batch(x[step], y[step]).loss
    if step == 5 then model:save(folder .. "/" .. name .. ".keras") end
  end
  flow.save_npy(folder .. "/" .. name .. "_steps_x.npy", x[{ { 6, 10 } }])
  flow.save_npy(folder .. "/" .. name .. "_steps_y.npy", y[{ { 6, 10 } }])
  flow.save_npy(folder .. "/" .. name .. "_steps_loss.npy", flow.tensor { unpack(losses, 6) })
end
trained("trained_adam", flow.optimizers.Adam(0.01))
trained("trained_amsgrad", flow.optimizers.Adam { learning_rate = 0.01, amsgrad = true })
trained("trained_rmsprop", flow.optimizers.RMSprop(0.01, { momentum = 0.5, centered = true }))
trained("trained_adamw", flow.optimizers.AdamW(0.01))
trained("trained_decay", flow.optimizers.Adam(flow.optimizers.schedules.ExponentialDecay(0.01, 4, 0.5)))
trained("trained_clipped", flow.optimizers.SGD(0.1, { global_clipnorm = 0.1 }))
local half_full = { initial_scale = 2 ^ 110, dynamic_growth_steps = 2 }
trained("trained_scaled", flow.optimizers.LossScaleOptimizer(flow.optimizers.Adam(0.01), half_full))
trained("trained_ftrl", flow.optimizers.Ftrl(0.05, { l2_regularization_strength = 0.01 }))
trained("trained_lamb", flow.optimizers.Lamb(0.01))
trained("trained_adafactor", flow.optimizers.Adafactor(0.02, { use_ema = true }))
trained("trained_muon", flow.optimizers.Muon(0.02, { adam_weight_decay = false, gradient_accumulation_steps = 2 }))
trained("trained_momentum", flow.optimizers.SGD(0.05, { momentum = 0.9, nesterov = true }))

---- are they all there? ---------------------------------------------------------------------------------------------------------------

for index = 0, native.C.flow_layer_class_count() - 1 do
  local name = native.string(native.C.flow_layer_class_name(index))
  if not seen[name] and name ~= "InputLayer" then error("keras_files.lua: no model has the layer " .. name) end
end
