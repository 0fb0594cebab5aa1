-- extended.lua: classes of layers that extend one of the library's: flow.layers.Dropout:extend("MCDropout"). Dropout.call(self, x, options)
-- is what the library's layer computes, Dropout.build(self, shape) makes its variables.

local errors = require "flow.errors"
local object = require "flow.object"
local native = require "flow.ffi"
local signature = require "flow.signature"
local extended = require "flow.extended"
local ops = require "flow.tensor.ops"
local scopes = require "flow.scopes"
local several = require "flow.layers.several"

local raise = errors.raise

local own_extended = {}

local COMMON = { name = true, trainable = true, dtype = true, activity_regularizer = true }

-- Methods that a class may have in place of parts of a layer's computation, and the modules that compute the rest.
local CONVOLUTION = { convolution_op = "convolution_hook" }
local ATTENTION = { _compute_attention = "attention_hook" }
local HOOKS = { MultiHeadAttention = ATTENTION, CachedMultiHeadAttention = ATTENTION, Conv1D = CONVOLUTION, Conv2D = CONVOLUTION,
                Conv3D = CONVOLUTION }

-- Whether its class has its own call or build in place of the library's.
local function look(layer, class, base)
  rawset(layer, "_extended", true)
  rawset(layer, "_own_call", class.call ~= base.call or nil)
  rawset(layer, "_own_build", class.build ~= base.build or nil)
  for name, module in pairs(HOOKS[base.name] or {}) do
    if class[name] ~= base[name] then
      rawset(layer, "_hook", "flow.layers.classes." .. module)
      rawset(layer, "_own_call", true)
    end
  end
end

-- A class that extends parent; nil if no layer of the library is above it.
function own_extended.class(Layer, parent, class_name)
  local base = extended.base(parent)
  if not (signature.namespaces[base] or ""):find "^flow%.layers%." or base == Layer then return nil end
  return extended.class(parent, class_name, COMMON, function(class) return object.new(class):_prepare(class.name, { name = "?" }) end, look)
end

-- What the library's layer computes, whatever class extends it: as a call of it.
function own_extended.call(layer, run_native, inputs, options, ...)
  if rawget(layer, "_hook") then return require(layer._hook).call(layer, inputs, options, ...) end
  if layer._named_inputs then
    local call, training = several.read(layer, inputs, options, ...)
    if training == nil then training = scopes.own().training or false end
    local results = several.run_native(layer, call, training)
    if layer._named_inputs.names["states[1]"] then return results[1], { unpack(results, 2) } end      -- a cell
    return several.spread(layer, results)
  end
  if options and type(options) ~= "table" then
    raise("%s: call() takes the inputs, and options such as { training = true }, got %s", layer.name, errors.describe(options))
  end
  local training = options and options.training
  if training == nil then training = scopes.own().training or false end
  local list = {}
  if several.is_single(inputs) then list[1] = ops.operand(inputs, nil, layer.name)
  else for i = 1, #inputs do list[i] = ops.operand(inputs[i], nil, layer.name) end end
  local outputs = run_native(layer, list, training)
  return native.is_tensor(outputs) and outputs or several.spread(layer, outputs)
end

return own_extended
