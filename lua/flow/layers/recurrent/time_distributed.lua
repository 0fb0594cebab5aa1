-- time_distributed.lua: TimeDistributed: a layer or model applied to every step of a sequence. Names, defaults, results and files are
-- Keras' (keras.src.layers.rnn.time_distributed).
--
-- Where the layer computes each row by itself, all steps of all rows are one batch. Where it does not, as BatchNormalization in training
-- and what is written in Lua may not, it is called on one step after the other.

local native = require "flow.ffi"
local errors = require "flow.errors"
local object = require "flow.object"
local signature = require "flow.signature"
local tensor = require "flow.tensor"
local loops = require "flow.tensor.loops"
local ops = require "flow.tensor.ops"
local layers = require "flow.layers"
local Layer = require "flow.layers.layer"
local penalties = require "flow.layers.added_losses"
local entries = require "flow.layers.entries"
local own_build = require "flow.layers.classes.build"
local recurrent_calls = require "flow.layers.recurrent.calls"
local several = require "flow.layers.several"
local symbolic = require "flow.layers.symbolic"
local scopes = require "flow.scopes"

local C, raise = native.C, errors.raise

local TimeDistributed = object.class("TimeDistributed", Layer)

signature.takes("layer, { name?: string, trainable: boolean = true, dtype? }")
signature.constructor(TimeDistributed, "flow.layers.TimeDistributed", function(layer, options)
  if type(layer) == "table" and not getmetatable(layer) and #layer == 1 then layer = layer[1] end
  if not object.is(layer, Layer) then
    raise("TimeDistributed takes a layer such as layers.Dense(8), got %s", errors.describe(layer))
  end
  local self = object.new(TimeDistributed):_prepare("TimeDistributed", options)
  rawset(self, "_assignments", { layer = layer })
  self._children[1] = layer
  return self
end)

local inputs = several.inputs { "inputs", "mask" }
function TimeDistributed.fields._named_inputs() return inputs end
function TimeDistributed.fields._autocasts() return false end      -- its layer does

---- steps --------------------------------------------------------------------------------------------------------------------------

-- {n, steps, ...} as {n, ...}
local function without_steps(self, shape)
  if #shape < 3 then
    raise("%s: input has shape %s, expected 3 dimensions or more {batch, steps, ...}", object.title(self), symbolic.shape_text(shape))
  end
  return { shape[1], unpack(shape, 3) }
end

-- Arithmetic on symbolic tensors, which is by rows.
local ARITHMETIC = { [ops.add] = true, [ops.sub] = true, [ops.mul] = true, [ops.div] = true, [ops.neg] = true, [ops.pow] = true }

-- Whether a layer computes each row by itself, and what it adds to the loss, too.
local function is_by_rows(layer, training, seen)
  if seen[layer] then return true end      -- it is being looked at
  seen[layer] = true
  if layer:_keeps_states() then return false end
  if layer._handle and not rawget(layer, "_own_call") then
    for i = 0, training and layer._trainable and C.flow_layer_variable_count(layer._handle) - 1 or -1 do
      if C.flow_variable_trainable(C.flow_layer_variable(layer._handle, i)) == 0 then return false end      -- statistics of a batch
    end
    return true
  end
  local operation = rawget(layer, "_operation")
  if operation then return ARITHMETIC[operation.op] or false end
  if object.is(layer, layers.InputLayer) then return true end
  local is_ours = layers._in_lua(layer.class_name) == object.class_of(layer) and not layer._on_host
  if not is_ours and not rawget(layer, "_order") then return false end      -- written in Lua
  for _, child in ipairs(layer._children) do
    -- What each step adds is divided by the batch's rows.
    if child._activity or not is_by_rows(child, training, seen) then return false end
  end
  return #layer._children > 0
end

-- Whether the layer is given the mask of a step x, which may say of rows, {n}, what counts: that is for rows of features.
local function takes_mask(layer, mask, x)
  local named, fits = layer._named_inputs, mask.rank > 1 or x.rank == 2
  if named then return named.names.mask ~= nil and fits end
  if layer._handle and not rawget(layer, "_own_call") then return false end
  return layer._takes_mask and fits or layer.supports_masking
end

-- Keras' TimeDistributed does what the layer computes, but for its activity_regularizer; those of layers inside of it count.
local function call_layer(self, x, mask, training)
  local options = { training = training }
  if mask and takes_mask(self.layer, mask, x) then options.mask = mask end
  if not self.layer._activity then return several.gathered(self.layer(x, options)) end
  return penalties.without_activity(self.layer, function() return several.gathered(self.layer(x, options)) end)
end

-- f of each tensor of a result, which is a tensor or a list of them.
local function map(f, result)
  if native.is_tensor(result) then return f(result) end
  local list = {}
  for i, entry in ipairs(result) do list[i] = f(entry) end
  return list
end

-- The results of all steps, tensors or lists of equally many, along the axis of steps. Without unpack(): a call takes some thousand values
-- only.
local function stacked(results)
  local first, list = results[1], {}
  if native.is_tensor(first) then return ops.stack(results, 2) end
  for k = 1, #first do
    local steps = {}
    for i, result in ipairs(results) do steps[i] = result[k] end
    list[k] = ops.stack(steps, 2)
  end
  return list
end

-- All steps as rows of one batch.
local function together(self, x, mask, training, dims)
  local function merged(t)
    local own = tensor.raw_shape(t)
    return ops.reshape_raw(t, { own[1] * own[2], unpack(own, 3) })
  end
  return map(function(y)
    return ops.reshape_raw(y, { dims[1], dims[2], unpack(tensor.raw_shape(y), 2) })
  end, call_layer(self, merged(x), mask and merged(mask), training))
end

-- {n, steps, ...} as {steps, n, ...}, and back.
local function swapped(t) return ops.swapaxes(t, 1, 2) end

-- Calls the layer for each step, in a traced loop where that is possible, else one after the other; the results are stacked along the
-- steps' axis. For layers that may treat rows together: BatchNormalization in training, layers that are written in Lua.
local function one_by_one(self, x, mask, training, dims)
  local results = {}
  local single
  local _, found = loops.run_if_possible({}, { swapped(x), mask and swapped(mask) }, dims[2], false, function(_, rows)
    local result = call_layer(self, rows[1], rows[2], training)
    single = native.is_tensor(result)
    return {}, single and { result } or result
  end)
  if found then return map(swapped, single and found[1] or found) end
  for i = 1, dims[2] do results[i] = call_layer(self, recurrent_calls.step(x, i), mask and recurrent_calls.step(mask, i), training) end
  return stacked(results)
end

---- calls --------------------------------------------------------------------------------------------------------------------------

local function check_single(self, is_single)
  if not is_single then raise("%s is called on one tensor, got a list", object.title(self)) end
end

local function check_mask(self, mask, dims)
  local own = tensor.raw_shape(mask)
  if own[1] ~= dims[1] or own[2] ~= dims[2] then
    raise("%s: the mask has shape %s, the input %s: the first two dimensions must be the same", object.title(self),
      symbolic.shape_text(own), symbolic.shape_text(dims))
  end
end

-- call(x, options), or call(x, mask, options), or call({ inputs =, mask =, ... }). Steps are put into the batch's axis and the layer is
-- called once, where it treats each row by itself.
function TimeDistributed:call(x, ...)
  local mask, options = ...
  if options == nil then mask, options = nil, mask end
  if options == nil then x, options = x.inputs, x end
  if mask == nil then mask = options.mask end
  check_single(self, native.is_tensor(x))
  local dims, training = tensor.raw_shape(x), options.training
  without_steps(self, dims)
  if mask then check_mask(self, mask, dims) end
  if training == nil then training = scopes.own().training end
  if dims[2] < 1 then raise("%s: input has shape %s, expected one step or more", object.title(self), symbolic.shape_text(dims)) end
  return (is_by_rows(self.layer, training, {}) and together or one_by_one)(self, x, mask, training, dims)
end

TimeDistributed.build = own_build.once(function(self, shape)
  self.layer:_ensure_built({ without_steps(self, shape) }, true)
end)

-- Shapes of the outputs, as the layer says of a step: see symbolic.infer.
function TimeDistributed:_infer(list, single, training, as_call)
  check_single(self, single or as_call)
  local shape = without_steps(self, list[1].shape)
  self:build(list[1].shape)
  local results = self.layer:_infer({ { shape = shape, dtype = list[1].dtype } }, true, training)
  local found = { single = results.single }
  for i, output in ipairs(results) do
    found[i] = { shape = { output.shape[1], list[1].shape[2], unpack(output.shape, 2) }, dtype = output.dtype }
  end
  return found
end

function TimeDistributed:compute_mask(_, mask) return mask end

---- files --------------------------------------------------------------------------------------------------------------------------

function TimeDistributed:get_config()
  local config = entries.base(self)
  config.layer = entries.inner(self.layer)
  return config
end

function TimeDistributed._from_config(class, content, reader)
  return class(entries.options_with_layer(content, reader, "layer", "TimeDistributed"))
end

return { TimeDistributed = TimeDistributed }
