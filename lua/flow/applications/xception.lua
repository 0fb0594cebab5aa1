-- xception.lua: Xception (Chollet 2017, arXiv:1610.02357; keras/src/applications/xception.py).

local layers = require "flow.layers"

local function relu(x, name) return layers.Activation("relu", { name = name })(x) end

local function separable(x, filters, name)
  x = layers.SeparableConv2D(filters, 3, { padding = "same", use_bias = false, name = name })(x)
  return layers.BatchNormalization { name = name .. "_bn" }(x)
end

-- A block that halves the picture; its first convolution comes without an activation before it where `bare`. first, second: the channels of
-- its two separable convolutions.
local function shrink(x, first, second, number, bare)
  local name = "block" .. number
  local residual = layers.Conv2D(second, 1, { strides = 2, padding = "same", use_bias = false })(x)
  residual = layers.BatchNormalization()(residual)
  if not bare then x = relu(x, name .. "_sepconv1_act") end
  x = relu(separable(x, first, name .. "_sepconv1"), name .. "_sepconv2_act")
  x = separable(x, second, name .. "_sepconv2")
  x = layers.MaxPooling2D(3, { strides = 2, padding = "same", name = name .. "_pool" })(x)
  return layers.Add() { x, residual }
end

local function body(x)
  for i, filters in ipairs { 32, 64 } do
    local name = "block1_conv" .. i
    x = layers.Conv2D(filters, 3, { strides = i == 1 and 2 or 1, use_bias = false, name = name })(x)
    x = relu(layers.BatchNormalization { name = name .. "_bn" }(x), name .. "_act")
  end
  x = shrink(x, 128, 128, 2, true)
  x = shrink(x, 256, 256, 3)
  x = shrink(x, 728, 728, 4)
  for block = 5, 12 do
    local residual = x
    for i = 1, 3 do
      local name = ("block%d_sepconv%d"):format(block, i)
      x = separable(relu(x, name .. "_act"), 728, name)
    end
    x = layers.Add() { x, residual }
  end
  x = shrink(x, 728, 1024, 13)
  for i, filters in ipairs { 1536, 2048 } do
    local name = "block14_sepconv" .. i
    x = relu(separable(x, filters, name), name .. "_act")
  end
  return x
end

return { Xception = {
  name = "xception", default_size = 299, least_size = 71, top_pooling = true, body = body,
  files = function(options)
    return ("https://storage.googleapis.com/tensorflow/keras-applications/xception/xception_weights_tf_dim_ordering_tf_kernels%s.h5")
      :format(options.include_top and "" or "_notop")
  end,
} }
