-- math.lua: flow.math: functions over predictions that TensorFlow has in tf.math. Its other names are those of flow's operations:
-- flow.math.log is flow.log of tensors.

local native = require "flow.ffi"
local errors = require "flow.errors"
local ops = require "flow.tensor.ops"
local tensor = require "flow.tensor"

local raise = errors.raise
local signature = require "flow.signature"

local math_ = signature.module("flow.math", nil, function(_, name) return type(name) == "string" and ops[name] or nil end)

-- Labels {samples}, or {samples, 1}, as int64, one after the other in memory.
local function labels_of(what, name, value)
  local t = native.is_tensor(value) and value or tensor.tensor(value, { dtype = "int64" })
  local shape = t.shape
  if #shape == 2 and shape[2] == 1 then t = t:reshape { shape[1] } end
  if t.rank ~= 1 then raise("%s: %s is a tensor of labels {samples}, got %s", what, name, errors.describe(t)) end
  return t:to("int64"):contiguous()
end

-- How often samples of class i (row) were predicted as class j (column), a tensor {classes, classes}; classes count from 0.
-- options: num_classes, weights of the samples, dtype ("int32").
signature.takes "labels, predictions, { num_classes?: count, weights?, dtype = 'int32' }"
function math_.confusion_matrix(labels, predictions, options)
  local what = "flow.math.confusion_matrix"
  local truth, guess = labels_of(what, "labels", labels), labels_of(what, "predictions", predictions)
  local count = truth.shape[1]
  if guess.shape[1] ~= count then raise("%s: %d labels for %d predictions", what, count, guess.shape[1]) end
  local weights = options.weights and tensor.tensor(options.weights)
  if weights and (weights.rank ~= 1 or weights.shape[1] ~= count) then raise("%s: weights are %d numbers, one a sample", what, count) end
  local a, b, w = native.data(truth), native.data(guess), weights and native.doubles(weights)
  local classes, most = options.num_classes, -1
  for i = 0, count - 1 do
    local row, column = tonumber(a[i]), tonumber(b[i])
    if row < 0 or column < 0 then raise("%s: sample %d has the negative label %d", what, i, math.min(row, column)) end
    most = math.max(most, row, column)
  end
  if classes == nil then classes = math.max(most + 1, 1) end
  if most >= classes then raise("%s: there is a label %d, expected labels below num_classes = %d", what, most, classes) end
  local matrix = tensor.new(native.dtype("float64"), { classes, classes })
  local cells = native.data(matrix)
  for i = 0, count - 1 do
    local at = tonumber(a[i]) * classes + tonumber(b[i])
    cells[at] = cells[at] + (w and w[i] or 1)
  end
  return matrix:to(options.dtype)
end

return math_
