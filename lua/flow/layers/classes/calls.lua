-- calls.lua: how a layer written in Lua runs: in the dtype of its policy, with the masks of its inputs.

local native = require "flow.ffi"
local object = require "flow.object"
local masks = require "flow.layers.masks"
local penalties = require "flow.layers.added_losses"
local several = require "flow.layers.several"

local C, raise = native.C, native.errors.raise
local own_calls = {}

local FLOATS = { float32 = true, float16 = true, bfloat16 = true }

-- Calls it on a tensor or a list of them, or as `call` says (several.lua), and sets the masks of what it gives.
local function run(layer, inputs, training, call)
  local previous, result
  if call then
    previous = masks.fill(layer, call)
    result = several.run(layer, call, training)
  else
    previous = masks.of(inputs)
    result = several.noted(layer, layer:call(inputs, { training = training, mask = previous }))
  end
  if result == nil then
    raise("%s: call() returned nothing, expected a tensor or a list of tensors: is a return missing?", object.title(layer))
  end
  if result == layer then
    raise("%s: call() returned the layer itself: is it defined with a colon, function %s:call(x)?", object.title(layer), layer.class_name)
  end
  masks.pass(layer, call and call.arguments[1] or inputs, previous, result)
  if layer._activity and not layer._handle then penalties.add_activity(layer, result) end
  return result
end

-- The inputs, and the weights as they are read, are in the dtype of the layer's policy.
function own_calls.run(layer, inputs, list, training, call)
  local dtype = layer._policy.compute_dtype
  if dtype == "float32" or not layer._autocasts then return run(layer, inputs, training, call and several.copy(call)) end
  local function cast(x) return FLOATS[x.dtype] and x.dtype ~= dtype and masks.keep(x:to(dtype), x) or x end
  for i, x in ipairs(list) do list[i] = cast(x) end
  local before
  return native.between(function() before = C.flow_context_set_autocast(native.context, native.dtype(dtype)) end,
    function() if before then C.flow_context_set_autocast(native.context, before) end end,
    function() return run(layer, inputs == list and list or list[1], training, call and several.copy(call, cast)) end)
end

return own_calls
