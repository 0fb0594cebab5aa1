-- states.lua: what recurrent layers with stateful = true keep from call to call: a state for each row of a batch, with which the same row
-- of the next batch begins. As in Keras these are not weights of the layer, and files do not hold them.

local native = require "flow.ffi"
local tensor = require "flow.tensor"
local variable = require "flow.tensor.variable"

local C = native.C
local states = {}

local function is_stateful(layer)
  return layer._handle and C.flow_layer_state_count(layer._handle) > 0 or rawget(layer, "stateful") == true
end

-- Whether the layer, or one inside of it, keeps states.
function states.kept(layer)
  for _, inside in ipairs(layer:_inside()) do
    if is_stateful(inside) then return true end
  end
  return false
end

-- Those of the layer and of the layers inside, as variables; none before the first call.
function states.list(layer)
  local list = {}
  for _, inside in ipairs(layer:_inside()) do
    for i = 0, inside._handle and C.flow_layer_state_count(inside._handle) - 1 or -1 do
      local pointer = C.flow_layer_state(inside._handle, i)
      if pointer ~= nil then list[#list + 1] = variable.wrap(pointer) end
    end
    for _, v in ipairs(rawget(inside, "_kept_states") or {}) do list[#list + 1] = v end      -- of RNN
  end
  return list
end

-- Zeros again.
function states.reset(layer)
  for _, v in ipairs(states.list(layer)) do v:assign(tensor.zeros(v.shape, { dtype = v.dtype })) end
end

return states
