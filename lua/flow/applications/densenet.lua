-- densenet.lua: DenseNet121, DenseNet169 and DenseNet201 (Huang et al. 2017, arXiv:1608.06993; keras/src/applications/densenet.py).

local layers = require "flow.layers"

local GROWTH, EPSILON = 32, 1.001e-5

local function activate(x, name, bn, relu)
  x = layers.BatchNormalization { epsilon = EPSILON, name = name .. bn }(x)
  return layers.Activation("relu", { name = name .. relu })(x)
end

-- One layer of a dense block: its GROWTH channels are put after those that it reads.
local function conv_block(x, name)
  local y = activate(x, name, "_0_bn", "_0_relu")
  y = layers.Conv2D(4 * GROWTH, 1, { use_bias = false, name = name .. "_1_conv" })(y)
  y = activate(y, name, "_1_bn", "_1_relu")
  y = layers.Conv2D(GROWTH, 3, { padding = "same", use_bias = false, name = name .. "_2_conv" })(y)
  return layers.Concatenate { axis = -1, name = name .. "_concat" } { x, y }
end

-- Between dense blocks: half of the channels, half of the size.
local function transition(x, name)
  x = activate(x, name, "_bn", "_relu")
  x = layers.Conv2D(math.floor(x.shape[4] / 2), 1, { use_bias = false, name = name .. "_conv" })(x)
  return layers.AveragePooling2D(2, { strides = 2, name = name .. "_pool" })(x)
end

-- blocks: how many layers each of the four dense blocks has.
local function record(name, blocks)
  return {
    name = name, default_size = 224, least_size = 32, named_pooling = true,
    files = function(options)
      return ("https://storage.googleapis.com/tensorflow/keras-applications/densenet/%s_weights_tf_dim_ordering_tf_kernels%s.h5")
        :format(name, options.include_top and "" or "_notop")
    end,
    body = function(x)
      x = layers.ZeroPadding2D { padding = { { 3, 3 }, { 3, 3 } } }(x)
      x = layers.Conv2D(64, 7, { strides = 2, use_bias = false, name = "conv1_conv" })(x)
      x = activate(x, "conv1", "_bn", "_relu")
      x = layers.ZeroPadding2D { padding = { { 1, 1 }, { 1, 1 } } }(x)
      x = layers.MaxPooling2D(3, { strides = 2, name = "pool1" })(x)
      for stage, count in ipairs(blocks) do
        for i = 1, count do x = conv_block(x, ("conv%d_block%d"):format(stage + 1, i)) end
        if stage < #blocks then x = transition(x, "pool" .. stage + 1) end
      end
      return activate(x, "", "bn", "relu")
    end,
  }
end

return { DenseNet121 = record("densenet121", { 6, 12, 24, 16 }), DenseNet169 = record("densenet169", { 6, 12, 32, 32 }),
         DenseNet201 = record("densenet201", { 6, 12, 48, 32 }) }
