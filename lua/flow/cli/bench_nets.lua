-- bench_nets.lua: the nets that speed is measured on and kernels are checked with. Each function returns a compiled model,
-- the shape of one image (or row), the number of classes and the batch size. Weights and data are random: only time counts. A net whose
-- input is int32 reads the WORDS of a text.

local flow = require "flow"
local layers = flow.layers

local nets = {}

local function compile(model, optimizer, from_logits)
  model:compile { optimizer = optimizer, loss = flow.losses.SparseCategoricalCrossentropy { from_logits = from_logits },
                  metrics = { "accuracy" } }
  return model
end

-- The image classifier of Keras' tutorial on flower photographs.
function nets.flowers()
  local list = { layers.Input { 180, 180, 3 }, layers.Rescaling(1 / 255) }
  for _, filters in ipairs { 16, 32, 64 } do
    list[#list + 1] = layers.Conv2D(filters, 3, { padding = "same", activation = "relu" })
    list[#list + 1] = layers.MaxPooling2D()
  end
  for _, layer in ipairs { layers.Flatten(), layers.Dense(128, { activation = "relu" }), layers.Dense(5, { activation = "softmax" }) } do
    list[#list + 1] = layer
  end
  return compile(flow.Sequential(list), flow.optimizers.Adam(), false), { 180, 180, 3 }, 5, 32
end

-- The classifier of TensorFlow's tutorials on distributed training.
function nets.mnist()
  local model = flow.Sequential {
    layers.Input { 28, 28 }, layers.Reshape { 28, 28, 1 }, layers.Conv2D(32, 3, { activation = "relu" }), layers.Flatten(),
    layers.Dense(128, { activation = "relu" }), layers.Dense(10),
  }
  return compile(model, flow.optimizers.SGD(0.001), true), { 28, 28 }, 10, 64
end

function nets.mlp()
  local model = flow.Sequential {
    layers.Input { 784 }, layers.Dense(512, { activation = "relu" }), layers.Dropout(0.2), layers.Dense(256, { activation = "relu" }),
    layers.Dense(10),
  }
  return compile(model, flow.optimizers.Adam(), true), { 784 }, 10, 128
end

local function conv_norm(x, filters, size, strides)
  x = layers.Conv2D(filters, size, { strides = strides, padding = "same", use_bias = false })(x)
  return layers.BatchNormalization()(x)
end

-- ResNet-20 for images of 32 x 32 (He et al. 2015, section 4.2), shortcuts by 1 x 1 convolutions where the size changes.
function nets.resnet20()
  local input = flow.Input { 32, 32, 3 }
  local x = layers.ReLU()(conv_norm(input, 16, 3, 1))
  for stage, filters in ipairs { 16, 32, 64 } do
    for block = 1, 3 do
      local strides = stage > 1 and block == 1 and 2 or 1
      local y = layers.ReLU()(conv_norm(x, filters, 3, strides))
      y = conv_norm(y, filters, 3, 1)
      if strides > 1 then x = conv_norm(x, filters, 1, strides) end
      x = layers.ReLU()(layers.Add()({ x, y }))
    end
  end
  local output = layers.Dense(10)(layers.GlobalAveragePooling2D()(x))
  return compile(flow.Model { inputs = input, outputs = output }, flow.optimizers.SGD(0.1, { momentum = 0.9 }), true),
    { 32, 32, 3 }, 10, 64
end

-- ResNet-50 (He et al. 2015, table 1, strides in the 3 x 3 convolutions), for images of a size that 32 divides.
function nets.resnet50(size)
  size = size or 224
  local input = flow.Input { size, size, 3 }
  local x = layers.ReLU()(conv_norm(input, 64, 7, 2))
  x = layers.MaxPooling2D(3, { strides = 2, padding = "same" })(x)
  for stage, blocks in ipairs { 3, 4, 6, 3 } do
    local filters = 32 * 2 ^ stage
    for block = 1, blocks do
      local strides = stage > 1 and block == 1 and 2 or 1
      local y = layers.ReLU()(conv_norm(x, filters, 1, 1))
      y = layers.ReLU()(conv_norm(y, filters, 3, strides))
      y = conv_norm(y, 4 * filters, 1, 1)
      if block == 1 then x = conv_norm(x, 4 * filters, 1, strides) end
      x = layers.ReLU()(layers.Add()({ x, y }))
    end
  end
  local output = layers.Dense(1000)(layers.GlobalAveragePooling2D()(x))
  return compile(flow.Model { inputs = input, outputs = output }, flow.optimizers.SGD(0.1, { momentum = 0.9 }), true),
    { size, size, 3 }, 1000, 256
end

-- MobileNet of width 1/4 for images of 96 x 96 (Howard et al. 2017, table 1).
function nets.mobilenet()
  local input = flow.Input { 96, 96, 3 }
  local x = layers.ReLU()(conv_norm(input, 8, 3, 2))
  for block, filters in ipairs { 16, 32, 32, 64, 64, 128, 128, 128, 128, 128, 128, 256, 256 } do
    local halves = block == 2 or block == 4 or block == 6 or block == 12
    x = layers.DepthwiseConv2D(3, { strides = halves and 2 or 1, padding = "same", use_bias = false })(x)
    x = layers.ReLU()(layers.BatchNormalization()(x))
    x = layers.ReLU()(conv_norm(x, filters, 1, 1))
  end
  local output = layers.Dense(10)(layers.GlobalAveragePooling2D()(x))
  return compile(flow.Model { inputs = input, outputs = output }, flow.optimizers.Adam(), true), { 96, 96, 3 }, 10, 32
end

-- A small net of large kernels and strides.
function nets.strided()
  local model = flow.Sequential {
    layers.Input { 64, 64, 3 }, layers.Conv2D(24, 5, { strides = 2, padding = "same", activation = "relu" }),
    layers.Conv2D(48, 5, { strides = 2, padding = "same", activation = "relu" }), layers.Flatten(), layers.Dense(10),
  }
  return compile(model, flow.optimizers.SGD(0.01), true), { 64, 64, 3 }, 10, 32
end

-- A small U-Net (Ronneberger et al. 2015): down by pooling, up by resizing, the two joined at every size.
function nets.unet()
  local function twice(x, filters)
    for _ = 1, 2 do x = layers.Conv2D(filters, 3, { padding = "same", activation = "relu" })(x) end
    return x
  end
  local input = flow.Input { 48, 48, 3 }
  local x, sizes, skipped = layers.Rescaling(1 / 255)(input), { 48, 24 }, {}
  for level, filters in ipairs { 16, 32 } do
    skipped[level] = twice(x, filters)
    x = layers.MaxPooling2D()(skipped[level])
  end
  x = twice(x, 64)
  for level = 2, 1, -1 do
    x = layers.Resizing(sizes[level], sizes[level], { interpolation = "nearest" })(x)
    x = twice(layers.Concatenate()({ skipped[level], x }), 8 * 2 ^ level)
  end
  local output = layers.Dense(4)(layers.GlobalAveragePooling2D()(layers.Conv2D(8, 1)(x)))
  return compile(flow.Model { inputs = input, outputs = output }, flow.optimizers.Adam(), true), { 48, 48, 3 }, 4, 8
end

-- Channel counts that no vector divides.
function nets.odd()
  local model = flow.Sequential {
    layers.Input { 37, 37, 3 }, layers.Conv2D(17, 3, { activation = "relu" }), layers.MaxPooling2D(),
    layers.Conv2D(33, 3, { activation = "relu" }), layers.MaxPooling2D(), layers.Flatten(), layers.Dense(7),
  }
  return compile(model, flow.optimizers.Adam(), true), { 37, 37, 3 }, 7, 19
end

---- texts ----------------------------------------------------------------------------------------------------------------------

local WORDS, WIDTH = 20000, 128

-- A classifier of texts of some length: the embedded words, a stack of layers, two classes.
local function text_classifier(length, batch, stack)
  local words = flow.Input({ length }, { dtype = "int32" })
  local output = layers.Dense(2)(stack(layers.Embedding(WORDS, WIDTH)(words)))
  return compile(flow.Model { inputs = words, outputs = output }, flow.optimizers.Adam(), true), { length }, 2, batch
end

function nets.embedding()
  return text_classifier(200, 64, function(x)
    return layers.Dense(64, { activation = "relu" })(layers.GlobalAveragePooling1D()(x))
  end)
end

function nets.lstm() return text_classifier(150, 32, function(x) return layers.LSTM(128)(x) end) end

function nets.gru() return text_classifier(150, 32, function(x) return layers.GRU(128)(x) end) end

-- Adds a learned vector for each position.
local Positions = layers.Layer:extend "Positions"

function Positions:init(length) self.length, self.table = length, layers.Embedding(length, WIDTH) end

function Positions:call(x) return x + self.table(flow.arange(self.length)) end

-- Two blocks as in Keras' example of text classification with a Transformer (Vaswani et al. 2017), with learned positions.
function nets.transformer()
  local length, heads = 128, 4
  return text_classifier(length, 32, function(x)
    x = Positions(length)(x)
    for _ = 1, 2 do
      local attended = layers.MultiHeadAttention(heads, WIDTH / heads)(x, x)
      x = layers.LayerNormalization { epsilon = 1e-6 }(x + layers.Dropout(0.1)(attended))
      local y = layers.Dense(WIDTH)(layers.Dense(4 * WIDTH, { activation = "relu" })(x))
      x = layers.LayerNormalization { epsilon = 1e-6 }(x + layers.Dropout(0.1)(y))
    end
    return layers.GlobalAveragePooling1D()(x)
  end)
end

return nets
