-- resnet.lua: ResNet50, ResNet101, ResNet152 (He et al. 2015, arXiv:1512.03385) and their second version (arXiv:1603.05027), with the
-- names of keras/src/applications/resnet.py and resnet_v2.py.

local layers = require "flow.layers"

local EPSILON = 1.001e-5

local function normalize(x, name) return layers.BatchNormalization { epsilon = EPSILON, name = name }(x) end
local function relu(x, name) return layers.Activation("relu", { name = name })(x) end

-- A bottleneck of three convolutions, 1 x 1, 3 x 3 and 1 x 1 with 4 * filters channels. project: the shortcut is a convolution of 1 x 1,
-- where size or channels change, else the input. Activations come after the sum.
local function block_v1(x, filters, stride, project, name)
  local shortcut = x
  if project then
    shortcut = layers.Conv2D(4 * filters, 1, { strides = stride, name = name .. "_0_conv" })(x)
    shortcut = normalize(shortcut, name .. "_0_bn")
  end
  x = layers.Conv2D(filters, 1, { strides = stride, name = name .. "_1_conv" })(x)
  x = relu(normalize(x, name .. "_1_bn"), name .. "_1_relu")
  x = layers.Conv2D(filters, 3, { padding = "same", name = name .. "_2_conv" })(x)
  x = relu(normalize(x, name .. "_2_bn"), name .. "_2_relu")
  x = layers.Conv2D(4 * filters, 1, { name = name .. "_3_conv" })(x)
  x = normalize(x, name .. "_3_bn")
  return relu(layers.Add { name = name .. "_add" } { shortcut, x }, name .. "_out")
end

local function stack_v1(x, filters, blocks, stride, name)
  for i = 1, blocks do x = block_v1(x, filters, i == 1 and stride or 1, i == 1, ("%s_block%d"):format(name, i)) end
  return x
end

-- The same with normalization and activation before each convolution. A stride without projection takes every second place of the input, by
-- pooling of one place. As in Keras the last block of a stack has the stride, in the first version the first one.
local function block_v2(x, filters, stride, project, name)
  local before = relu(normalize(x, name .. "_preact_bn"), name .. "_preact_relu")
  local shortcut = x
  if project then shortcut = layers.Conv2D(4 * filters, 1, { strides = stride, name = name .. "_0_conv" })(before)
  elseif stride > 1 then shortcut = layers.MaxPooling2D(1, { strides = stride })(x) end
  x = layers.Conv2D(filters, 1, { strides = 1, use_bias = false, name = name .. "_1_conv" })(before)
  x = relu(normalize(x, name .. "_1_bn"), name .. "_1_relu")
  x = layers.ZeroPadding2D { padding = { { 1, 1 }, { 1, 1 } }, name = name .. "_2_pad" }(x)
  x = layers.Conv2D(filters, 3, { strides = stride, use_bias = false, name = name .. "_2_conv" })(x)
  x = relu(normalize(x, name .. "_2_bn"), name .. "_2_relu")
  x = layers.Conv2D(4 * filters, 1, { name = name .. "_3_conv" })(x)
  return layers.Add { name = name .. "_out" } { shortcut, x }
end

local function stack_v2(x, filters, blocks, stride, name)
  for i = 1, blocks do x = block_v2(x, filters, i == blocks and stride or 1, i == 1, ("%s_block%d"):format(name, i)) end
  return x
end

-- second: the second version; blocks: of each of the four stacks.
local function record(name, second, blocks)
  return {
    name = name, default_size = 224, least_size = 32, named_pooling = true,
    files = function(options)
      return ("https://storage.googleapis.com/tensorflow/keras-applications/resnet/%s_weights_tf_dim_ordering_tf_kernels%s.h5"):format(name,
        options.include_top and "" or "_notop")
    end,
    body = function(x)
      x = layers.ZeroPadding2D { padding = { { 3, 3 }, { 3, 3 } }, name = "conv1_pad" }(x)
      x = layers.Conv2D(64, 7, { strides = 2, name = "conv1_conv" })(x)
      if not second then x = relu(normalize(x, "conv1_bn"), "conv1_relu") end
      x = layers.ZeroPadding2D { padding = { { 1, 1 }, { 1, 1 } }, name = "pool1_pad" }(x)
      x = layers.MaxPooling2D(3, { strides = 2, name = "pool1_pool" })(x)
      for i, filters in ipairs { 64, 128, 256, 512 } do
        if second then x = stack_v2(x, filters, blocks[i], i == 4 and 1 or 2, "conv" .. i + 1)
        else x = stack_v1(x, filters, blocks[i], i == 1 and 1 or 2, "conv" .. i + 1) end
      end
      return second and relu(normalize(x, "post_bn"), "post_relu") or x
    end,
  }
end

return {
  ResNet50 = record("resnet50", false, { 3, 4, 6, 3 }), ResNet101 = record("resnet101", false, { 3, 4, 23, 3 }),
  ResNet152 = record("resnet152", false, { 3, 8, 36, 3 }),
  ResNet50V2 = record("resnet50v2", true, { 3, 4, 6, 3 }), ResNet101V2 = record("resnet101v2", true, { 3, 4, 23, 3 }),
  ResNet152V2 = record("resnet152v2", true, { 3, 8, 36, 3 }),
}
