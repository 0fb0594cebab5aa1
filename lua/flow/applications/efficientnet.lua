-- efficientnet.lua: EfficientNetB0 to EfficientNetB7 (Tan and Le 2019, arXiv:1905.11946; keras/src/applications/efficientnet.py).

local layers = require "flow.layers"
local choices = require "flow.layers.choices"
local application = require "flow.applications.application"

-- { kernel, repeats, filters in, filters out, expansion, stride }
local STAGES = { { 3, 1, 32, 16, 1, 1 }, { 3, 2, 16, 24, 6, 2 }, { 5, 2, 24, 40, 6, 2 }, { 3, 3, 40, 80, 6, 2 }, { 5, 3, 80, 112, 6, 1 },
  { 5, 4, 112, 192, 6, 2 }, { 3, 1, 192, 320, 6, 1 } }
local DROP_CONNECT = 0.2

local function conv_initializer()
  return choices.initializers.VarianceScaling { scale = 2, mode = "fan_out", distribution = "truncated_normal" }
end

local function convolve(x, filters, name, options)
  options = options or {}
  return layers.Conv2D(filters, options.kernel or 1, { strides = options.strides or 1, padding = options.padding or "same",
    use_bias = options.activation ~= nil, activation = options.activation, kernel_initializer = conv_initializer(), name = name })(x)
end

local function activate(x, bn, activation)
  x = layers.BatchNormalization { name = bn }(x)
  return layers.Activation("swish", { name = activation })(x)
end

-- An inverted residual with squeeze and excitation. b: { kernel =, from =, to = channels, expansion =, stride = }; drop: the probability
-- with which a sample's block is left out in training, where there is a shortcut.
local function block(inputs, b, drop, name)
  local x, filters = inputs, b.from * b.expansion
  if b.expansion ~= 1 then x = activate(convolve(x, filters, name .. "expand_conv"), name .. "expand_bn", name .. "expand_activation") end
  if b.stride == 2 then x = layers.ZeroPadding2D { padding = application.margins(x, b.kernel), name = name .. "dwconv_pad" }(x) end
  x = layers.DepthwiseConv2D(b.kernel, { strides = b.stride, padding = b.stride == 2 and "valid" or "same", use_bias = false,
    depthwise_initializer = conv_initializer(), name = name .. "dwconv" })(x)
  x = activate(x, name .. "bn", name .. "activation")
  local se = layers.GlobalAveragePooling2D { name = name .. "se_squeeze" }(x)
  se = layers.Reshape({ 1, 1, filters }, { name = name .. "se_reshape" })(se)
  se = convolve(se, math.max(1, math.floor(b.from * 0.25)), name .. "se_reduce", { activation = "swish" })
  se = convolve(se, filters, name .. "se_expand", { activation = "sigmoid" })
  x = layers.Multiply { name = name .. "se_excite" } { x, se }
  x = convolve(x, b.to, name .. "project_conv")
  x = layers.BatchNormalization { name = name .. "project_bn" }(x)
  if b.stride == 1 and b.from == b.to then
    if drop > 0 then x = layers.Dropout(drop, { noise_shape = { -1, 1, 1, 1 }, name = name .. "drop" })(x) end
    x = layers.Add { name = name .. "add" } { x, inputs }
  end
  return x
end

-- The body for a model that is `width` times as wide and `depth` times as deep as B0.
local function body_of(width, depth)
  local function repeats_of(stage) return math.ceil(depth * stage[2]) end
  local function filters_of(filters) return application.divisible(filters * width) end
  local total = 0
  for _, stage in ipairs(STAGES) do total = total + repeats_of(stage) end
  return function(x, options)
    x = layers.Rescaling(1 / 255)(x)
    x = layers.Normalization { axis = -1 }(x)
    if options.weights == "imagenet" then      -- the published weights were trained with the mean's difference over the variance
      x = layers.Rescaling { scale = { 1 / math.sqrt(0.229), 1 / math.sqrt(0.224), 1 / math.sqrt(0.225) } }(x)
    end
    x = layers.ZeroPadding2D { padding = application.margins(x, 3), name = "stem_conv_pad" }(x)
    x = convolve(x, filters_of(32), "stem_conv", { kernel = 3, strides = 2, padding = "valid" })
    x = activate(x, "stem_bn", "stem_activation")
    local number = 0
    for i, stage in ipairs(STAGES) do
      for j = 1, repeats_of(stage) do
        x = block(x, { kernel = stage[1], from = filters_of(stage[j == 1 and 3 or 4]), to = filters_of(stage[4]), expansion = stage[5],
          stride = j == 1 and stage[6] or 1 }, DROP_CONNECT * number / total, ("block%d%s_"):format(i, string.char(96 + j)))
        number = number + 1
      end
    end
    return activate(convolve(x, filters_of(1280), "top_conv"), "top_bn", "top_activation")
  end
end

-- size: of the pictures with the classifier; dropout: before it.
local function record(kind, width, depth, size, dropout)
  local name = "efficientnet" .. kind
  return {
    name = name, default_size = size, least_size = 32, named_pooling = true, body = body_of(width, depth),
    top = function(x, options)
      x = layers.GlobalAveragePooling2D { name = "avg_pool" }(x)
      x = layers.Dropout(dropout, { name = "top_dropout" })(x)
      local uniform = choices.initializers.VarianceScaling { scale = 1 / 3, mode = "fan_out", distribution = "uniform" }
      return layers.Dense(options.classes, { activation = application.activation(options), kernel_initializer = uniform,
        name = "predictions" })(x)
    end,
    files = function(options)
      return ("https://storage.googleapis.com/keras-applications/%s%s.h5"):format(name, options.include_top and "" or "_notop")
    end,
  }
end

return {
  EfficientNetB0 = record("b0", 1, 1, 224, 0.2), EfficientNetB1 = record("b1", 1, 1.1, 240, 0.2),
  EfficientNetB2 = record("b2", 1.1, 1.2, 260, 0.3), EfficientNetB3 = record("b3", 1.2, 1.4, 300, 0.3),
  EfficientNetB4 = record("b4", 1.4, 1.8, 380, 0.4), EfficientNetB5 = record("b5", 1.6, 2.2, 456, 0.4),
  EfficientNetB6 = record("b6", 1.8, 2.6, 528, 0.5), EfficientNetB7 = record("b7", 2, 3.1, 600, 0.5),
}
