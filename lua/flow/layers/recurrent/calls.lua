-- calls.lua: what layers over sequences that are written in Lua share with the library's: their inputs are called sequences,
-- initial_state (a list) and mask.

local errors = require "flow.errors"
local object = require "flow.object"
local tensor = require "flow.tensor"
local ops = require "flow.tensor.ops"
local several = require "flow.layers.several"

local recurrent_calls = {}

-- The inputs of a layer with this many states, as several.record gives those of the library's.
function recurrent_calls.inputs(states)
  local names = { "sequences" }
  for i = 1, states do names[1 + i] = ("initial_state[%d]"):format(i) end
  names[#names + 1] = "mask"
  return several.inputs(names)
end

-- The arguments of call(): sequences, initial_state or nil, mask or nil, training.
function recurrent_calls.read(...)
  local count = select("#", ...)
  local x, states, mask = ...
  local options = (select(count, ...))
  if count < 4 then mask = nil end
  if count < 3 then states = nil end
  if count < 2 then x = nil end
  if states == nil then states = options.initial_state end
  if mask == nil then mask = options.mask end
  if states and getmetatable(states) then states = { states } end
  return x or options.sequences, states, mask, options.training
end

-- x[:, t] of {n, steps, ...}: {n, ...}. t: from 1.
function recurrent_calls.step(x, t)
  local dims = tensor.raw_shape(x)
  local begins, ends, strides = {}, {}, {}
  for axis = 1, #dims do begins[axis], ends[axis], strides[axis] = 0, 2 ^ 62, 1 end
  begins[2], ends[2] = t - 1, t
  return ops.reshape_raw(ops.slice_from_zero(x, begins, ends, strides), { dims[1], unpack(dims, 3) })
end

-- How many states a layer takes.
function recurrent_calls.states(layer)
  local named, count = layer._named_inputs, 0
  while named and named.names[("initial_state[%d]"):format(count + 1)] do count = count + 1 end
  return count
end

-- An option of a layer by its name; raises if the layer has none of that name.
function recurrent_calls.option(layer, name, title)
  local value
  if layer._handle then value = layer:get_config()[name]
  elseif object.has(layer, name) or rawget(layer, "_assignments")[name] ~= nil then value = layer[name] end
  if value == nil then
    errors.raise("%s takes a recurrent layer such as LSTM or GRU, or one written in Lua with go_backwards, return_sequences and " ..
      "return_state; %s has no %s", title, object.title(layer), name)
  end
  return value
end

return recurrent_calls
