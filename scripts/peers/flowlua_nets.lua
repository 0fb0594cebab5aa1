-- flowlua_nets.lua: the nets of compare.py: those of flow.cli.bench_nets, and some that only speed is measured on.
local flow = require "flow"
local layers = flow.layers
local nets = setmetatable({}, { __index = require "flow.cli.bench_nets" })

local function compiled(model, optimizer)
  model:compile { optimizer = optimizer, loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true }, metrics = { "accuracy" } }
  return model
end

-- Simonyan and Zisserman 2014, column A, without two of the Dense layers.
function nets.vgg11()
  local list = { layers.Input { 112, 112, 3 } }
  for _, stage in ipairs { { 64 }, { 128 }, { 256, 256 }, { 512, 512 }, { 512, 512 } } do
    for _, filters in ipairs(stage) do list[#list + 1] = layers.Conv2D(filters, 3, { padding = "same", activation = "relu" }) end
    list[#list + 1] = layers.MaxPooling2D()
  end
  list[#list + 1] = layers.Flatten()
  list[#list + 1] = layers.Dense(1000)
  return compiled(flow.Sequential(list), flow.optimizers.SGD(0.001)), { 112, 112, 3 }, 1000, 16
end

-- DenseNet-121 (Huang et al. 2016, table 1) for images of 96 x 96.
function nets.densenet()
  local function norm_conv(x, filters, size)
    x = layers.ReLU()(layers.BatchNormalization()(x))
    return layers.Conv2D(filters, size, { padding = "same", use_bias = false })(x)
  end
  local image = flow.Input { 96, 96, 3 }
  local x = layers.Conv2D(64, 7, { strides = 2, padding = "same", use_bias = false })(image)
  x = layers.MaxPooling2D(3, { strides = 2, padding = "same" })(layers.ReLU()(layers.BatchNormalization()(x)))
  local filters = 64
  for stage, blocks in ipairs { 6, 12, 24, 16 } do
    if stage > 1 then
      filters = filters / 2
      x = layers.AveragePooling2D(2)(norm_conv(x, filters, 1))
    end
    for _ = 1, blocks do x = layers.Concatenate()({ x, norm_conv(norm_conv(x, 128, 1), 32, 3) }) end
    filters = filters + 32 * blocks
  end
  x = layers.GlobalAveragePooling2D()(layers.ReLU()(layers.BatchNormalization()(x)))
  local model = flow.Model { inputs = image, outputs = layers.Dense(1000)(x) }
  return compiled(model, flow.optimizers.SGD(0.1, { momentum = 0.9 })), { 96, 96, 3 }, 1000, 16
end

-- Two stages of ConvNeXt-T (Liu et al. 2022) for images of 64 x 64.
function nets.convnext()
  local image = flow.Input { 64, 64, 3 }
  local x = layers.LayerNormalization { epsilon = 1e-6 }(layers.Conv2D(96, 4, { strides = 4 })(image))
  for stage, width in ipairs { 96, 192 } do
    if stage > 1 then x = layers.Conv2D(width, 2, { strides = 2 })(layers.LayerNormalization { epsilon = 1e-6 }(x)) end
    for _ = 1, 3 do
      local y = layers.LayerNormalization { epsilon = 1e-6 }(layers.DepthwiseConv2D(7, { padding = "same" })(x))
      x = layers.Add()({ x, layers.Dense(width)(layers.Dense(4 * width, { activation = "gelu" })(y)) })
    end
  end
  x = layers.LayerNormalization { epsilon = 1e-6 }(layers.GlobalAveragePooling2D()(x))
  return compiled(flow.Model { inputs = image, outputs = layers.Dense(10)(x) }, flow.optimizers.Adam()), { 64, 64, 3 }, 10, 32
end

-- Images are reproduced, so that there are no classes. The shape of the autoencoder of Keras' examples.
function nets.autoencoder()
  local image = flow.Input { 64, 64, 3 }
  local x = layers.Rescaling(1 / 255)(image)
  for _ = 1, 2 do x = layers.MaxPooling2D()(layers.Conv2D(32, 3, { padding = "same", activation = "relu" })(x)) end
  for _ = 1, 2 do x = layers.Conv2DTranspose(32, 3, { strides = 2, padding = "same", activation = "relu" })(x) end
  x = layers.Rescaling(255)(layers.Conv2D(3, 3, { padding = "same", activation = "sigmoid" })(x))
  local model = flow.Model { inputs = image, outputs = x }
  model:compile { optimizer = flow.optimizers.Adam(), loss = "mean_squared_error" }
  return model, { 64, 64, 3 }, nil, 32
end

return nets
