-- bidirectional.lua: Bidirectional: a recurrent layer, one that reads the steps in the other order, and what becomes of both outputs.
-- Names, defaults, results and files are Keras' (keras.src.layers.rnn.bidirectional). Both are copies of the layer that is given, which
-- keeps its own weights.

local errors = require "flow.errors"
local object = require "flow.object"
local json = require "flow.json"
local signature = require "flow.signature"
local ops = require "flow.tensor.ops"
local Layer = require "flow.layers.layer"
local entries = require "flow.layers.entries"
local own_build = require "flow.layers.classes.build"
local recurrent_calls = require "flow.layers.recurrent.calls"

local raise = errors.raise

local Bidirectional = object.class("Bidirectional", Layer)

local MERGE = {
  concat = function(a, b) return ops.concat({ a, b }, -1) end,
  sum = function(a, b) return a + b end,
  mul = function(a, b) return a * b end,
  ave = function(a, b) return (a + b) / 2 end,
}

local ALIKE = { "stateful", "return_sequences", "return_state" }      -- what both layers have the same of

---- making ------------------------------------------------------------------------------------------------------------------------

local function check_layer(what, value)
  if type(value) == "table" and not getmetatable(value) and #value == 1 then value = value[1] end      -- of a single table of options
  if not object.is(value, Layer) then raise("Bidirectional: %s is a layer such as layers.LSTM(8), got %s", what, errors.describe(value)) end
  return value
end

-- A copy of a layer under a name that begins with prefix; changes: what else differs.
local function copy(layer, prefix, changes)
  local sequences = recurrent_calls.option(layer, "return_sequences", "Bidirectional")
  local zero = layer._handle and layer:get_config().zero_output_for_mask
  if not layer._handle and object.has(layer, "zero_output_for_mask") then zero = layer.zero_output_for_mask end
  if zero ~= nil then changes.zero_output_for_mask = sequences end      -- as in Keras
  changes.name = prefix .. layer.name:gsub("^" .. prefix, "")
  return entries.copy(layer, changes)
end

-- Raises unless the two layers go in different directions and are alike in what their results' shape depends on; these options become
-- fields.
local function check_pair(self, forward, backward)
  local option, title = recurrent_calls.option, object.title(self)
  if option(forward, "go_backwards", title) == option(backward, "go_backwards", title) then
    raise("%s: layer and backward_layer go in the same direction: set go_backwards = true for one of them", title)
  end
  for _, name in ipairs(ALIKE) do
    local one, other = option(forward, name, title), option(backward, name, title)
    if one ~= other then
      raise("%s: layer has %s = %s, backward_layer %s: both need the same", title, name, tostring(one), tostring(other))
    end
    rawset(self, name, one)
  end
end

-- merge_mode = false: both outputs, as None in Python.
signature.takes("layer, merge_mode = 'concat', weights?, backward_layer?, { name?: string, trainable: boolean = true, dtype? }")
signature.constructor(Bidirectional, "flow.layers.Bidirectional", function(layer, merge_mode, weights, backward_layer, options)
  layer = check_layer("layer", layer)
  if merge_mode ~= false and not MERGE[merge_mode] then
    raise("Bidirectional: merge_mode is \"concat\", \"sum\", \"mul\", \"ave\" or false, got %s", errors.describe(merge_mode))
  end
  if weights ~= nil then raise "Bidirectional: weights is not supported: call set_weights() on the built layer" end
  local self = object.new(Bidirectional):_prepare("Bidirectional", options)
  local forward, backward = copy(layer, "forward_", {}), backward_layer
  if backward == nil then backward = copy(layer, "backward_", { go_backwards = true })
  else backward = check_layer("backward_layer", backward) end
  rawset(self, "merge_mode", merge_mode)
  check_pair(self, forward, backward)
  rawset(self, "_assignments", { forward_layer = forward, backward_layer = backward })
  self._children[1], self._children[2] = forward, backward
  local inputs = recurrent_calls.inputs(2 * recurrent_calls.states(forward))
  rawset(self, "_named_inputs", inputs)
  return self
end)

require "flow.layers.recurrent.reset" (Bidirectional)      -- of both layers

function Bidirectional.fields._autocasts() return false end      -- its layers do

---- calls --------------------------------------------------------------------------------------------------------------------------

Bidirectional.build = own_build.once(function(self, shape)
  for _, layer in ipairs(self._children) do layer:_ensure_built({ shape }, true) end
end)

-- sequences, { initial_state = states of the forward layer, then those of the backward one, mask =, training = }.
function Bidirectional:call(...)
  local x, states, mask, training = recurrent_calls.read(...)
  local half = states and #states / 2
  if states and half % 1 ~= 0 then
    raise("%s: initial_state holds %d tensors, of which each direction has half", object.title(self), #states)
  end
  local function run(layer, first)
    local given = states and { unpack(states, first, first + half - 1) }
    local result = layer(x, { initial_state = given, mask = mask, training = training })
    return self.return_state and result or { result }
  end
  local dtype = self._policy.compute_dtype
  local forward, backward = run(self.forward_layer, 1), run(self.backward_layer, 1 + (half or 0))
  local y, reversed = forward[1]:to(dtype), backward[1]:to(dtype)
  if self.return_sequences then reversed = ops.flip(reversed, 2) end
  local results = self.merge_mode and { MERGE[self.merge_mode](y, reversed) } or { y, reversed }
  for _, list in ipairs { forward, backward } do
    for i = 2, #list do results[#results + 1] = list[i] end
  end
  return #results == 1 and results[1] or results
end

-- Shapes of the outputs, as the layers say: see symbolic.infer.
function Bidirectional:_infer(list, _, training)
  local specs, found = { { shape = list[1].shape, dtype = list[1].dtype } }, {}
  self:build(specs[1].shape)
  for i, layer in ipairs(self._children) do found[i] = layer:_infer(specs, true, training) end
  local results = { found[1][1] }
  if not self.merge_mode then results[2] = found[2][1]
  elseif self.merge_mode == "concat" then
    local shape, other = { unpack(found[1][1].shape) }, found[2][1].shape
    shape[#shape] = shape[#shape] + other[#other]
    results[1] = { shape = shape, dtype = found[1][1].dtype }
  end
  for _, outputs in ipairs(found) do
    for i = 2, #outputs do results[#results + 1] = outputs[i] end
  end
  results.single = #results == 1
  return results
end

function Bidirectional:compute_mask(_, mask)
  if type(mask) == "table" and not getmetatable(mask) then mask = mask[1] end
  if not self.return_sequences or not mask then return nil end
  return self.merge_mode and mask or { mask, mask }
end

---- files --------------------------------------------------------------------------------------------------------------------------

function Bidirectional:get_config()
  local config = entries.base(self)
  config.merge_mode = self.merge_mode or json.null
  config.layer, config.backward_layer = entries.inner(self.forward_layer), entries.inner(self.backward_layer)
  return config
end

function Bidirectional._from_config(class, content, reader)
  local options = entries.options(content)
  if content.merge_mode == json.null then options.merge_mode = false end
  options.dtype = entries.dtype(content)
  for _, name in ipairs { "layer", "backward_layer" } do
    if options[name] then options[name] = entries.read_inner(options[name], reader, "Bidirectional: " .. name) end
  end
  return class(options)
end

return { Bidirectional = Bidirectional }
