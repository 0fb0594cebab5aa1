--- The nets of spec/golden/nets.py, whose training is compared step by step.
local flow = require "flow"
local layers = flow.layers

local nets = {}

function nets.mnist(size)
  return flow.Sequential {
    layers.Input { size, size }, layers.Reshape { size, size, 1 }, layers.Conv2D(32, 3, { activation = "relu" }), layers.Flatten(),
    layers.Dense(128, { activation = "relu" }), layers.Dense(10),
  }
end

function nets.flowers(size)
  local list = { layers.Input { size, size, 3 }, layers.Rescaling(1 / 255) }
  for _, filters in ipairs { 16, 32, 64 } do
    list[#list + 1] = layers.Conv2D(filters, 3, { padding = "same", activation = "relu" })
    list[#list + 1] = layers.MaxPooling2D()
  end
  list[#list + 1] = layers.Flatten()
  list[#list + 1] = layers.Dense(128, { activation = "relu" })
  list[#list + 1] = layers.Dense(5, { activation = "softmax" })
  return flow.Sequential(list)
end

function nets.residual(size)
  local x = flow.Input { size, size, 4 }
  local h = layers.Conv2D(8, 3, { padding = "same", use_bias = false })(x)
  h = layers.ReLU()(layers.BatchNormalization { momentum = 0.9 }(h))
  h = layers.BatchNormalization { momentum = 0.9 }(layers.Conv2D(8, 3, { padding = "same", use_bias = false })(h))
  h = layers.ReLU()(layers.Add()({ h, layers.Conv2D(8, 1)(x) }))
  return flow.Model { inputs = x, outputs = layers.Dense(5)(layers.GlobalAveragePooling2D()(h)) }
end

function nets.odd(size)
  return flow.Sequential {
    layers.Input { size, size, 3 }, layers.Conv2D(17, 5, { strides = 2, padding = "same", activation = "relu" }),
    layers.Conv2D(33, 3, { activation = "relu" }), layers.MaxPooling2D(3, { strides = 2 }), layers.Flatten(),
    layers.Dense(11, { activation = "tanh" }), layers.Dense(3),
  }
end

return nets
