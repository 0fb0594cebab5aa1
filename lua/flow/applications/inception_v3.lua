-- inception_v3.lua: InceptionV3 (Szegedy et al. 2016, arXiv:1512.00567; keras/src/applications/inception_v3.py).

local layers = require "flow.layers"

-- Convolutions one after the other, each { filters, rows, columns [, stride] }; with a stride there is no padding.
local function convolve(x, list)
  for _, c in ipairs(list) do
    local padding = (c[4] or c.valid) and "valid" or "same"
    x = layers.Conv2D(c[1], { c[2], c[3] }, { strides = c[4] or 1, padding = padding, use_bias = false })(x)
    x = layers.Activation("relu")(layers.BatchNormalization { scale = false }(x))
  end
  return x
end

local function join(list, name) return layers.Concatenate { axis = -1, name = name }(list) end

-- Branches of convolutions beside one of pooling: of the mean, followed by a convolution, or of the largest at every second place.
local function mixed(x, branches, pooled, name)
  local list = {}
  for i, branch in ipairs(branches) do list[i] = convolve(x, branch) end
  if pooled then
    local mean = layers.AveragePooling2D(3, { strides = 1, padding = "same" })(x)
    list[#list + 1] = convolve(mean, { { pooled, 1, 1 } })
  else
    list[#list + 1] = layers.MaxPooling2D(3, { strides = 2 })(x)
  end
  return join(list, name)
end

-- The last blocks, whose branches fork.
local function forked(x, i)
  local one = convolve(x, { { 320, 1, 1 } })
  local three = convolve(x, { { 384, 1, 1 } })
  local left, right = convolve(three, { { 384, 1, 3 } }), convolve(three, { { 384, 3, 1 } })
  three = join({ left, right }, "mixed9_" .. i)
  local double = convolve(x, { { 448, 1, 1 }, { 384, 3, 3 } })
  left, right = convolve(double, { { 384, 1, 3 } }), convolve(double, { { 384, 3, 1 } })
  double = join { left, right }
  local mean = layers.AveragePooling2D(3, { strides = 1, padding = "same" })(x)
  return join({ one, three, double, convolve(mean, { { 192, 1, 1 } }) }, "mixed" .. 9 + i)
end

local function body(x)
  x = convolve(x, { { 32, 3, 3, 2 }, { 32, 3, 3, valid = true }, { 64, 3, 3 } })
  x = layers.MaxPooling2D(3, { strides = 2 })(x)
  x = convolve(x, { { 80, 1, 1, valid = true }, { 192, 3, 3, valid = true } })
  x = layers.MaxPooling2D(3, { strides = 2 })(x)
  for i, pooled in ipairs { 32, 64, 64 } do
    local double = { { 64, 1, 1 }, { 96, 3, 3 }, { 96, 3, 3 } }
    x = mixed(x, { { { 64, 1, 1 } }, { { 48, 1, 1 }, { 64, 5, 5 } }, double }, pooled, ("mixed%d"):format(i - 1))
  end
  x = mixed(x, { { { 384, 3, 3, 2 } }, { { 64, 1, 1 }, { 96, 3, 3 }, { 96, 3, 3, 2 } } }, nil, "mixed3")
  for i, width in ipairs { 128, 160, 160, 192 } do
    x = mixed(x, { { { 192, 1, 1 } }, { { width, 1, 1 }, { width, 1, 7 }, { 192, 7, 1 } },
      { { width, 1, 1 }, { width, 7, 1 }, { width, 1, 7 }, { width, 7, 1 }, { 192, 1, 7 } } }, 192, "mixed" .. 3 + i)
  end
  x = mixed(x, { { { 192, 1, 1 }, { 320, 3, 3, 2 } }, { { 192, 1, 1 }, { 192, 1, 7 }, { 192, 7, 1 }, { 192, 3, 3, 2 } } }, nil, "mixed8")
  return forked(forked(x, 0), 1)
end

return { InceptionV3 = {
  name = "inception_v3", default_size = 299, least_size = 75, top_pooling = true, body = body,
  files = function(options)
    return ("https://storage.googleapis.com/tensorflow/keras-applications/inception_v3/" ..
      "inception_v3_weights_tf_dim_ordering_tf_kernels%s.h5"):format(options.include_top and "" or "_notop")
  end,
} }
