-- masks.lua: masks that travel. A tensor may carry a mask, t._keras_mask: bool, of its first axes, false where a step does not count.
-- Built-in layers hand masks on in the library (core/layers/masks.h says how); here is the same for layers written in Lua:
--
--   function Scale:init() self.supports_masking = true end      the output has the mask of the first input
--   function Scale:compute_mask(inputs, mask)                    or what this returns
--   function Scale:call(x, options)                              options.mask: of x, if any; of a list, a list with false for none
--   function Cross:call(query, value, options)                   of several tensors: options.query_mask, options.value_mask
--
-- A mask that the caller gives, layer(x, { mask = m }), counts in place of the tensor's. All is as in Keras 3 (keras/src/layers/layer.py).

local debug = require("flow.host").debug
local native = require "flow.ffi"
local object = require "flow.object"
local log = require "flow.log"
local ops = require "flow.tensor.ops"
local symbolic = require "flow.layers.symbolic"

local C = native.C
local masks = {}

-- The mask of a tensor or nil; of a list, a list with false for those without.
function masks.of(value)
  if native.is_tensor(value) or symbolic.is(value) then return value._keras_mask end
  if type(value) ~= "table" or getmetatable(value) then return nil end
  local list = {}
  for i, entry in ipairs(value) do list[i] = masks.of(entry) or false end
  return list
end

-- Gives a tensor a mask in place of its own; nil: none. Returns the tensor.
function masks.set(t, mask)
  native.try(C.flow_tensor_set_mask, native.pointer(t), mask and native.pointer(mask) or nil)
  return t
end

-- made, a tensor that stands for another one (a cast of it), with that one's mask.
function masks.keep(made, of)
  local mask = made ~= of and masks.of(of)
  return mask and masks.set(made, mask) or made
end

local function flat(value)
  if type(value) ~= "table" or getmetatable(value) then return { value or nil } end
  return value
end

local function listed(value, ...)
  if select("#", ...) > 0 then return { value or false, ... } end
  return flat(value)
end

-- What compute_mask() of a layer says, as a list by output: of one mask, of a list of them, or of several.
function masks.computed(layer, first, given) return listed(layer:compute_mask(first, given)) end

local function has_any(list)
  for _, entry in ipairs(list) do
    if entry then return true end
  end
  return false
end

-- After a call of a layer written in Lua: sets the masks of its outputs, or warns that they end here. first: what it was called on;
-- previous: the mask of that, or the one that was given.
function masks.pass(layer, first, previous, results)
  if not layer.supports_masking then
    if rawget(layer, "_ended_masks") or rawget(layer, "_operation") or not has_any(flat(masks.of(first))) then return end
    rawset(layer, "_ended_masks", true)
    return log.warning("%s was called on a tensor with a mask, which it does not support: its output has none, and layers after it " ..
      "count every step; set self.supports_masking = true, or define compute_mask", object.title(layer))
  end
  local outputs, computed = native.is_tensor(results) and { results } or results, nil
  for i, t in ipairs(type(outputs) == "table" and outputs or {}) do
    if native.is_tensor(t) and not masks.of(t) then
      computed = computed or masks.computed(layer, first, previous)
      if computed[i] then masks.set(t, ops.operand(computed[i], nil, "compute_mask()")) end
    end
  end
end

-- Names of the parameters of a layer's call(), without self.
local function parameter_names(layer)
  local call, names = require("flow.signature").unguarded(layer.call), {}
  for i = 2, 64 do
    names[i - 1] = debug.getlocal(call, i)
    if not names[i - 1] then break end
  end
  return names
end

-- Fills in the masks that a call on several tensors, or with options (several.lua), did not give: options.mask of a call on one tensor,
-- options.NAME_mask of one on several, by the name of the parameter or of the option. call.options is changed. Returns the mask of the
-- first argument.
function masks.fill(layer, call)
  local options, count, names = call.options, #call.arguments, nil
  local first, found = call.arguments[1], {}
  for name, value in pairs(options) do
    local is_tensors = native.is_tensor(value) or type(value) == "table" and native.is_tensor(value[1])
    if is_tensors and not name:find "mask" then
      count = count + 1
      found[name .. "_mask"] = masks.of(value)
    end
  end
  for name, mask in pairs(found) do      -- afterwards: a table that gets new keys while pairs() walks it loses some of its own
    if options[name] == nil then options[name] = mask end
  end
  if count == 1 then
    if options.mask == nil then options.mask = masks.of(first) end
  else
    for i, value in ipairs(call.arguments) do
      names = names or parameter_names(layer)
      local own = names[i] and names[i] .. "_mask"
      if own and options[own] == nil then options[own] = masks.of(value) end
    end
  end
  if options.mask ~= nil then return options.mask end
  return masks.of(first)
end

-- layer:compute_mask() of a built-in layer.
function masks.compute(layer, inputs, mask)
  if symbolic.any(inputs) then return require("flow.layers.symbolic_masks").compute(layer, inputs, mask) end
  local list, given = flat(inputs), flat(mask)
  local pointers, of_inputs = native.array("flow_tensor *", #list), native.array("flow_tensor *", #list)
  local out = native.out("flow_tensor")
  for i, t in ipairs(list) do
    pointers[i - 1] = native.pointer(t)
    if given[i] then of_inputs[i - 1] = native.pointer(given[i]) end
  end
  native.keep(list)
  native.keep(given)
  native.try(C.flow_layer_compute_mask, native.context, layer._handle, pointers, of_inputs, #list, out)
  return out[0] ~= nil and native.tensor(out[0]) or nil
end

return masks
