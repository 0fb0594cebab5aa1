-- mobilenet_v2.lua: MobileNetV2 (Sandler et al. 2018, arXiv:1801.04381; keras/src/applications/mobilenet_v2.py).

local layers = require "flow.layers"
local application = require "flow.applications.application"

local SIZES = { [96] = true, [128] = true, [160] = true, [192] = true, [224] = true }

local function normalize(x, name) return layers.BatchNormalization { epsilon = 1e-3, momentum = 0.999, name = name }(x) end
local function relu(x, name) return layers.ReLU { max_value = 6, name = name }(x) end

-- An inverted residual: expansion by 1 x 1, a depthwise convolution of 3 x 3, a projection by 1 x 1 without an activation, and the input
-- added where it has the same shape. number: from 0; block 0 does not expand.
local function block(inputs, expansion, stride, alpha, filters, number)
  local channels, prefix, x = inputs.shape[4], "expanded_conv_", inputs
  local width = application.divisible(math.floor(filters * alpha))
  if number > 0 then
    prefix = ("block_%d_"):format(number)
    x = layers.Conv2D(expansion * channels, 1, { padding = "same", use_bias = false, name = prefix .. "expand" })(x)
    x = relu(normalize(x, prefix .. "expand_BN"), prefix .. "expand_relu")
  end
  if stride == 2 then x = layers.ZeroPadding2D { padding = application.margins(x, 3), name = prefix .. "pad" }(x) end
  x = layers.DepthwiseConv2D(3, { strides = stride, use_bias = false, padding = stride == 1 and "same" or "valid",
    name = prefix .. "depthwise" })(x)
  x = relu(normalize(x, prefix .. "depthwise_BN"), prefix .. "depthwise_relu")
  x = layers.Conv2D(width, 1, { padding = "same", use_bias = false, name = prefix .. "project" })(x)
  x = normalize(x, prefix .. "project_BN")
  if channels == width and stride == 1 then x = layers.Add { name = prefix .. "add" } { inputs, x } end
  return x
end

-- { filters, blocks, the first one's stride }; the first block of all does not expand.
local STAGES = { { 16, 1, 1 }, { 24, 2, 2 }, { 32, 3, 2 }, { 64, 4, 2 }, { 96, 3, 1 }, { 160, 3, 2 }, { 320, 1, 1 } }

local function body(x, options)
  local alpha, number = options.alpha, 0
  x = layers.Conv2D(application.divisible(32 * alpha), 3, { strides = 2, padding = "same", use_bias = false, name = "Conv1" })(x)
  x = relu(normalize(x, "bn_Conv1"), "Conv1_relu")
  for _, stage in ipairs(STAGES) do
    for i = 1, stage[2] do
      x = block(x, number == 0 and 1 or 6, i == 1 and stage[3] or 1, alpha, stage[1], number)
      number = number + 1
    end
  end
  x = layers.Conv2D(alpha > 1 and application.divisible(1280 * alpha) or 1280, 1, { use_bias = false, name = "Conv_1" })(x)
  return relu(normalize(x, "Conv_1_bn"), "out_relu")
end

-- The size that published weights are for: that of square pictures of such a size, else 224.
local function rows_of(shape) return shape and shape[1] == shape[2] and SIZES[shape[1]] and shape[1] or 224 end

return { MobileNetV2 = {
  name = function(options, shape) return ("mobilenetv2_%.2f_%s"):format(options.alpha, shape[1] == -1 and "None" or shape[1]) end,
  default_size = rows_of, least_size = 32, body = body, options = "input_shape?: list, alpha: number = 1",
  files = function(options, shape)
    local alpha = ("%g"):format(options.alpha)
    return ("https://storage.googleapis.com/tensorflow/keras-applications/mobilenet_v2/" ..
      "mobilenet_v2_weights_tf_dim_ordering_tf_kernels_%s_%d%s.h5"):format(alpha:find "%." and alpha or alpha .. ".0", rows_of(shape),
      options.include_top and "" or "_no_top")
  end,
} }
