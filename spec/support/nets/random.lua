--- Random nets for the specs: a seed makes a net, whatever layers are put together.
local backend = require "spec.support.backend"

--- A source of numbers for one model: draw(low, high) is whole, pick(list) an entry, maybe(p) true in p of the cases.
local function source(seed)
  local numbers, at = backend.uniform({ 400 }, 1000 + seed, 0, 0.999999):totable(), 0
  local function next_number()
    at = at % #numbers + 1
    return numbers[at]
  end
  local self = {}
  function self.draw(low, high) return low + math.floor(next_number() * (high - low + 1)) end
  function self.pick(list) return list[self.draw(1, #list)] end
  function self.maybe(p) return next_number() < p end
  return self
end

--- One block as a function(b, y), for an image of the size in `shape` { height, width, channels }, which it changes.
local function block(s, shape)
  local height, width, channels = unpack(shape)
  local function resize(stride, same, window)
    for i = 1, 2 do shape[i] = same and math.ceil(shape[i] / stride) or math.floor((shape[i] - window) / stride) + 1 end
  end
  local kind = s.pick { "conv", "conv", "normalized", "pool", "residual", "concat", "depthwise" }
  if kind == "pool" and math.min(height, width) >= 3 then
    local window, same = s.draw(2, 3), s.maybe(0.4)
    local stride = s.draw(1, 3)
    resize(stride, same, window)
    local layer = (window + stride) % 2 == 0 and "AveragePooling2D" or "MaxPooling2D"
    return function(b, y) return b[layer](y, window, { strides = stride, padding = same and "same" or "valid" }) end
  elseif kind == "residual" then
    local activation, kernel = s.pick { "relu", "tanh" }, s.draw(1, 3)
    return function(b, y)
      return b.Activation(b.Add { b.Conv2D(y, channels, kernel, { padding = "same" }), y }, activation)
    end
  elseif kind == "concat" then
    local filters = s.draw(1, 9)
    shape[3] = channels + filters
    return function(b, y) return b.Concatenate { y, b.Conv2D(y, filters, 3, { padding = "same", activation = "relu" }) } end
  elseif kind == "depthwise" then
    local multiplier = 1 + channels % 2
    shape[3] = channels * multiplier
    return function(b, y) return b.DepthwiseConv2D(y, 3, { padding = "same", depth_multiplier = multiplier }) end
  end
  local window, filters, same = s.draw(1, 5), s.draw(1, 21), true
  if window <= math.min(height, width) then same = s.maybe(0.6) end
  local stride, dilation = s.pick { 1, 1, 2 }, 1
  if stride == 1 and same and s.maybe(0.2) then dilation = 2 end
  local normalized = kind == "normalized"
  local activation = s.pick { "linear", "relu", "relu", "sigmoid", "elu" }
  resize(stride, same, window)
  shape[3] = filters
  return function(b, y)
    y = b.Conv2D(y, filters, window, { strides = stride, padding = same and "same" or "valid", dilation_rate = dilation,
      use_bias = not normalized, activation = not normalized and activation or nil })
    return normalized and b.Activation(b.BatchNormalization(y), activation) or y
  end
end

--- A net as function(b, x) for the builders of spec.support.reference, the shape of its input, its number of classes, and a number of rows.
return function(seed)
  local s = source(seed)
  local input = { s.draw(5, 12), s.draw(5, 12), s.draw(1, 5) }
  local shape, blocks = { unpack(input) }, {}
  for i = 1, s.draw(0, 4) do blocks[i] = block(s, shape) end
  local flat, hidden, classes = s.maybe(0.6), s.draw(0, 2), s.draw(2, 7)
  local units, activations = {}, {}
  for i = 1, hidden do units[i], activations[i] = s.draw(1, 40), s.pick { "relu", "tanh", "softplus" } end
  local function net(b, x)
    local y = x
    for i = 1, #blocks do y = blocks[i](b, y) end
    y = flat and b.Flatten(y) or b.GlobalAveragePooling2D(y)
    for i = 1, hidden do y = b.Dense(y, units[i], { activation = activations[i] }) end
    return b.Dense(y, classes)
  end
  return net, input, classes, s.draw(2, 19)
end
