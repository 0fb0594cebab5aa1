-- mobilenet_v3.lua: MobileNetV3Small and MobileNetV3Large (Howard et al. 2019, arXiv:1905.02244; keras/src/applications/mobilenet_v3.py).

local layers = require "flow.layers"
local application = require "flow.applications.application"

local divisible = application.divisible

local function normalize(x, name) return layers.BatchNormalization { epsilon = 1e-3, momentum = 0.999, name = name }(x) end
local function relu(x) return layers.ReLU()(x) end
local function hard_swish(x) return layers.Activation("hard_swish")(x) end
local function hard_sigmoid(x) return layers.ReLU { max_value = 6 }(x + 3) * (1 / 6) end

-- Squeeze and excitation: scales each channel by what the means of all channels say.
local function squeeze(inputs, filters, prefix)
  local x = layers.GlobalAveragePooling2D { keepdims = true, name = prefix .. "squeeze_excite_avg_pool" }(inputs)
  x = layers.Conv2D(divisible(filters * 0.25), 1, { padding = "same", name = prefix .. "squeeze_excite_conv" })(x)
  x = layers.ReLU { name = prefix .. "squeeze_excite_relu" }(x)
  x = layers.Conv2D(filters, 1, { padding = "same", name = prefix .. "squeeze_excite_conv_1" })(x)
  return layers.Multiply { name = prefix .. "squeeze_excite_mul" } { inputs, hard_sigmoid(x) }
end

-- An inverted residual. b: { expansion =, filters =, kernel =, stride =, squeeze = true or false, activation = a function }; number: from
-- 0; block 0 does not expand.
local function block(x, b, number)
  local shortcut, channels, prefix = x, x.shape[4], "expanded_conv_"
  local width = divisible(channels * b.expansion)
  if number > 0 then
    prefix = ("expanded_conv_%d_"):format(number)
    x = layers.Conv2D(width, 1, { padding = "same", use_bias = false, name = prefix .. "expand" })(x)
    x = b.activation(normalize(x, prefix .. "expand_bn"))
  end
  if b.stride == 2 then
    x = layers.ZeroPadding2D { padding = application.margins(x, b.kernel), name = prefix .. "depthwise_pad" }(x)
  end
  x = layers.DepthwiseConv2D(b.kernel, { strides = b.stride, padding = b.stride == 1 and "same" or "valid", use_bias = false,
    name = prefix .. "depthwise" })(x)
  x = b.activation(normalize(x, prefix .. "depthwise_bn"))
  if b.squeeze then x = squeeze(x, width, prefix) end
  x = layers.Conv2D(b.filters, 1, { padding = "same", use_bias = false, name = prefix .. "project" })(x)
  x = normalize(x, prefix .. "project_bn")
  if b.stride == 1 and channels == b.filters then x = layers.Add { name = prefix .. "add" } { shortcut, x } end
  return x
end

-- { expansion, filters, wide kernel, stride, squeeze, hard_swish }: 1 for yes, 0 for no
local SMALL = {
  { 1, 16, 0, 2, 1, 0 }, { 72 / 16, 24, 0, 2, 0, 0 }, { 88 / 24, 24, 0, 1, 0, 0 }, { 4, 40, 1, 2, 1, 1 }, { 6, 40, 1, 1, 1, 1 },
  { 6, 40, 1, 1, 1, 1 }, { 3, 48, 1, 1, 1, 1 }, { 3, 48, 1, 1, 1, 1 }, { 6, 96, 1, 2, 1, 1 }, { 6, 96, 1, 1, 1, 1 }, { 6, 96, 1, 1, 1, 1 },
}
local LARGE = {
  { 1, 16, 0, 1, 0, 0 }, { 4, 24, 0, 2, 0, 0 }, { 3, 24, 0, 1, 0, 0 }, { 3, 40, 1, 2, 1, 0 }, { 3, 40, 1, 1, 1, 0 }, { 3, 40, 1, 1, 1, 0 },
  { 6, 80, 0, 2, 0, 1 }, { 2.5, 80, 0, 1, 0, 1 }, { 2.3, 80, 0, 1, 0, 1 }, { 2.3, 80, 0, 1, 0, 1 }, { 6, 112, 0, 1, 1, 1 },
  { 6, 112, 0, 1, 1, 1 }, { 6, 160, 1, 2, 1, 1 }, { 6, 160, 1, 1, 1, 1 }, { 6, 160, 1, 1, 1, 1 },
}

local function activation_of(options) return options.minimalistic and relu or hard_swish end

local function body_of(blocks)
  return function(x, options)
    local activation = activation_of(options)
    if options.include_preprocessing then x = layers.Rescaling(1 / 127.5, -1)(x) end
    x = layers.Conv2D(16, 3, { strides = 2, padding = "same", use_bias = false, name = "conv" })(x)
    x = activation(normalize(x, "conv_bn"))
    for i, b in ipairs(blocks) do
      local wide = b[3] == 1 and not options.minimalistic
      x = block(x, { expansion = b[1], filters = divisible(b[2] * options.alpha), kernel = wide and 5 or 3, stride = b[4],
        squeeze = b[5] == 1 and not options.minimalistic, activation = b[6] == 1 and activation or relu }, i - 1)
    end
    x = layers.Conv2D(divisible(x.shape[4] * 6), 1, { padding = "same", use_bias = false, name = "conv_1" })(x)
    return activation(normalize(x, "conv_1_bn"))
  end
end

local function top_of(last)
  return function(x, options)
    local width = options.alpha > 1 and divisible(last * options.alpha) or last
    x = layers.GlobalAveragePooling2D { keepdims = true }(x)
    x = activation_of(options)(layers.Conv2D(width, 1, { padding = "same", name = "conv_2" })(x))
    if options.dropout_rate > 0 then x = layers.Dropout(options.dropout_rate)(x) end
    x = layers.Conv2D(options.classes, 1, { padding = "same", name = "logits" })(x)
    return layers.Activation(application.activation(options), { name = "predictions" })(layers.Flatten()(x))
  end
end

local function record(kind, name, blocks, last)
  return {
    name = name, default_size = 224, least_size = 32, any_size = true, named_pooling = true, body = body_of(blocks), top = top_of(last),
    options = "input_shape?: list, alpha: number = 1, minimalistic: boolean = false, include_preprocessing: boolean = true, " ..
      "dropout_rate: number = 0.2",
    files = function(options)
      local alpha = ("%g"):format(options.alpha)
      return ("https://storage.googleapis.com/tensorflow/keras-applications/mobilenet_v3/weights_mobilenet_v3_%s%s_224_%s_float%s.h5")
        :format(kind, options.minimalistic and "_minimalistic" or "", alpha:find "%." and alpha or alpha .. ".0",
        options.include_top and "" or "_no_top_v2")
    end,
  }
end

return { MobileNetV3Small = record("small", "MobileNetV3Small", SMALL, 1024),
         MobileNetV3Large = record("large", "MobileNetV3Large", LARGE, 1280) }
