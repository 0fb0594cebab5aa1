-- mobilenet.lua: MobileNet (Howard et al. 2017, arXiv:1704.04861; keras/src/applications/mobilenet.py).

local layers = require "flow.layers"
local application = require "flow.applications.application"

local SIZES = { [128] = true, [160] = true, [192] = true, [224] = true }

local function activate(x, name)
  x = layers.BatchNormalization { name = name .. "_bn" }(x)
  return layers.ReLU { max_value = 6, name = name .. "_relu" }(x)
end

-- A depthwise convolution of 3 x 3 and one of 1 x 1, each with normalization and ReLU6. number: of the block, from 1, for the layers'
-- names.
local function separable(x, filters, stride, number, options)
  if stride == 2 then x = layers.ZeroPadding2D { padding = { { 0, 1 }, { 0, 1 } }, name = "conv_pad_" .. number }(x) end
  x = layers.DepthwiseConv2D(3, { strides = stride, padding = stride == 1 and "same" or "valid", use_bias = false,
    depth_multiplier = options.depth_multiplier, name = "conv_dw_" .. number })(x)
  x = activate(x, "conv_dw_" .. number)
  x = layers.Conv2D(math.floor(filters * options.alpha), 1, { padding = "same", use_bias = false, name = "conv_pw_" .. number })(x)
  return activate(x, "conv_pw_" .. number)
end

local function body(x, options)
  x = layers.Conv2D(math.floor(32 * options.alpha), 3, { padding = "same", use_bias = false, strides = 2, name = "conv1" })(x)
  x = activate(x, "conv1")
  for i, filters in ipairs { 64, 128, 128, 256, 256, 512, 512, 512, 512, 512, 512, 1024, 1024 } do
    x = separable(x, filters, (i == 2 or i == 4 or i == 6 or i == 12) and 2 or 1, i, options)
  end
  return x
end

local function top(x, options)
  x = layers.GlobalAveragePooling2D { keepdims = true }(x)
  x = layers.Dropout(options.dropout, { name = "dropout" })(x)
  x = layers.Conv2D(options.classes, 1, { padding = "same", name = "conv_preds" })(x)
  x = layers.Reshape({ options.classes }, { name = "reshape_2" })(x)
  return layers.Activation(application.activation(options), { name = "predictions" })(x)
end

-- The size that published weights are for: that of square pictures of such a size, else 224.
local function rows_of(shape) return shape and shape[1] == shape[2] and SIZES[shape[1]] and shape[1] or 224 end

return { MobileNet = {
  name = function(options, shape) return ("mobilenet_%.2f_%s"):format(options.alpha, shape[1] == -1 and "None" or shape[1]) end,
  default_size = rows_of, least_size = 32, body = body, top = top,
  options = "input_shape?: list, alpha: number = 1, depth_multiplier: count = 1, dropout: number = 0.001",
  files = function(options, shape)
    local alpha = ({ ["1"] = "1_0", ["0.75"] = "7_5", ["0.5"] = "5_0", ["0.25"] = "2_5" })[("%g"):format(options.alpha)]
    return ("https://storage.googleapis.com/tensorflow/keras-applications/mobilenet/mobilenet_%s_%d_tf%s.h5"):format(
      alpha or ("%g"):format(options.alpha), rows_of(shape), options.include_top and "" or "_no_top")
  end,
} }
