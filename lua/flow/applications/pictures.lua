-- pictures.lua: what goes into an application and what comes out: preprocess_input and decode_predictions
-- (keras/src/applications/imagenet_utils.py).

local host = require "flow.host"
local native = require "flow.ffi"
local errors = require "flow.errors"
local json = require "flow.json"
local tensor = require "flow.tensor"
local ops = require "flow.tensor.ops"
local symbolic = require "flow.layers.symbolic"
local application = require "flow.applications.application"

local raise = errors.raise
local pictures = {}

local CLASSES = "https://storage.googleapis.com/download.tensorflow.org/data/imagenet_class_index.json"

-- What values from 0 to 255 become: "tf": -1 to 1; "torch": each channel by mean and deviation; "caffe": BGR without the mean; "none".
local MODES = {
  none = function(x) return x end,
  tf = function(x) return x / 127.5 - 1 end,
  torch = function(x) return (x / 255 - tensor.tensor { 0.485, 0.456, 0.406 }) / tensor.tensor { 0.229, 0.224, 0.225 } end,
  caffe = function(x)
    local rank = #x.shape
    local function channel(i)
      local index = {}
      for axis = 1, rank do index[axis] = axis == rank and { i, i } or {} end
      return x[index]
    end
    return ops.concat({ channel(3), channel(2), channel(1) }, rank) - tensor.tensor { 103.939, 116.779, 123.68 }
  end,
}

-- Pictures {rows, columns, 3} or {count, rows, columns, 3} with values from 0 to 255, as float32 as the application wants them: a new
-- tensor, or a symbolic one of a symbolic x. mode: a key of MODES; "none" only changes the dtype, as these applications have a layer that
-- scales. what: the function's name, for messages.
function pictures.preprocess(what, mode, x)
  if not native.is_tensor(x) and not symbolic.is(x) then x = tensor.tensor(x) end
  if mode ~= "none" and x.shape[#x.shape] ~= 3 then
    raise("%s: the last axis are the 3 channels, got the shape {%s}", what, table.concat(x.shape, ", "))
  end
  return MODES[mode](x:to "float32")
end

local class_index

-- The `top` best classes of each row {count, 1000}, all of them where it is more: lists of { id, name, score }. As in Keras, which sorts by
-- numpy.argsort, NaN counts as the best and the later one of two equal scores comes first.
function pictures.decode(what, predictions, top)
  if not native.is_tensor(predictions) then predictions = tensor.tensor(predictions) end
  local shape = predictions.shape
  if #shape ~= 2 or shape[2] ~= 1000 then
    raise("%s: predictions are {count, 1000}, got the shape {%s}", what, table.concat(shape, ", "))
  end
  if not class_index then
    local file = host.io.open(application.fetched(what, CLASSES), "rb")
    class_index = json.decode(file:read "*a", "imagenet_class_index.json")
    file:close()
  end
  local results = {}
  for row = 1, shape[1] do
    local scores, order = predictions[row]:totable(), {}
    for i = 1, 1000 do order[i] = i end
    local function value(i) return scores[i] == scores[i] and scores[i] or math.huge end
    table.sort(order, function(a, b)
      if value(a) ~= value(b) then return value(a) > value(b) end
      return a > b
    end)
    results[row] = {}
    for i = 1, math.min(top, 1000) do
      local class = class_index[tostring(order[i] - 1)]
      results[row][i] = { class[1], class[2], scores[order[i]] }
    end
  end
  return results
end

return pictures
