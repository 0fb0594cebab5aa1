-- activations.lua: activations that few models use; those of layers by name are in C (flow_activate).

local native = require "flow.ffi"
local tools = require "flow.tensor.composed.tools"
local formulas = require "flow.tensor.composed.formulas"
local takes = require("flow.signature").takes

local ops, define, floats = tools.ops, tools.define, tools.floats
local out = native.out "flow_tensor"

local function activation(name, f) define(function(x) return f(floats(x, name)) end, name) end

for _, name in ipairs { "log_sigmoid", "tanh_shrink", "hard_tanh", "sparse_sigmoid", "sparse_plus" } do
  activation(name, function(x)
    native.try(native.C.flow_activate, native.context, name, native.pointer(x), out)
    return native.tensor(out[0])
  end)
end

takes "x, alpha: scalar = 1"
define(function(x, alpha)
  x, alpha = floats(x, "celu"), alpha or 1
  return formulas.apply(function(o, y) return o.maximum(y, 0) + o.expm1(o.minimum(y, 0) / alpha) * alpha end, x)
end, "celu")

takes "x, threshold: scalar = 0.5"
define(function(x, threshold)
  x, threshold = floats(x, "hard_shrink"), threshold or 0.5
  return formulas.apply(function(o, y) return o.where(o.gt(o.abs(y), threshold), y, 0) end, x)
end, "hard_shrink")
takes "x, threshold: scalar = 0.5"
define(function(x, threshold)
  x, threshold = floats(x, "soft_shrink"), threshold or 0.5
  return formulas.apply(function(o, y)
    return o.where(o.gt(y, threshold), y - threshold, o.where(o.lt(y, -threshold), y + threshold, 0))
  end, x)
end, "soft_shrink")
takes "x, threshold: scalar, default_value: scalar"
define(function(x, threshold, value)
  x = floats(x, "threshold")
  return formulas.apply(function(o, y) return o.where(o.gt(y, threshold), y, value) end, x)
end, "threshold")
takes "x, b: scalar = 4"
define(function(x, b)
  x = floats(x, "squareplus")
  return formulas.apply(function(o, y) return (y + o.sqrt(o.square(y) + (b or 4))) * 0.5 end, x)
end, "squareplus")

-- One half of an axis times the sigmoid of the other.
takes "x, axis = -1"
define(function(x, axis)
  x = floats(x, "glu")
  local halves = ops.split(x, 2, axis or -1)
  return halves[1] * ops.sigmoid(halves[2])
end, "glu")

-- As Keras computes it: after A. Martins and R. Astudillo, "From Softmax to Sparsemax", 2016, the k largest entries less a threshold, but
-- the threshold adds up the cumulated sums of all k, where the paper takes the last, so that the result's sum is 1 for k = 1 only.
takes "x, axis = -1"
define(function(x, axis)
  x = floats(x, "sparsemax")
  axis = tools.axis(x, axis or -1, "sparsemax")
  local last, back = tools.axis_last(x, axis)
  local n = tools.length(last, #tools.dims(last), "sparsemax")
  local sorted = ops.sort(last, -1, { descending = true })
  local sums, ranks = ops.cumsum(sorted, -1), ops.cast(require("flow.tensor").arange(1, n + 1), x.dtype)
  local stays = ops.gt(sorted * ranks + 1, sums):to(x.dtype)
  local count = ops.sum(stays, -1, true)
  local excess = (ops.sum(ops.where(ops.gt(stays, 0), sums, 0), -1, true) - 1) / count
  return back(ops.maximum(last - excess, 0))
end, "sparsemax")
