-- added_losses.lua: what layers written in Lua add to the loss besides it: regularizers of their weights, and layer:add_loss(value).

local native = require "flow.ffi"
local errors = require "flow.errors"
local object = require "flow.object"
local json = require "flow.json"
local arguments = require "flow.arguments"
local scopes = require "flow.scopes"
local ops = require "flow.tensor.ops"
local tensor = require "flow.tensor"

local C, raise = native.C, errors.raise
local context, out = native.context, native.out("flow_tensor")
local penalties = {}

-- A regularizer as a file describes it, as an object.
local function read(value)
  if type(value) ~= "table" or getmetatable(value) or type(value.class_name) ~= "string" then return value end
  return object.new(arguments.Choice, { class_name = value.class_name, options = value.config or {} })
end

-- A function weight -> scalar, of flow.regularizers.L2(1e-4), "l2", what a file has for one or a function.
function penalties.regularizer(what, value, option)
  value = read(value)
  if type(value) == "function" then return value end
  if object.is(value, arguments.Choice) and rawget(value, "_in_lua") then return function(weight) return value:call(weight) end end
  local name, options = value, nil
  if object.is(value, arguments.Choice) then name, options = value.class_name, arguments.native(value.class_name, value.options) end
  if type(name) ~= "string" or C.flow_choice_find(C.FLOW_CHOICE_REGULARIZER, name) < 0 then
    raise("%s: %s is one such as flow.regularizers.L2(1e-4), \"l2\" or a function of the weight, got %s", what,
      option or "regularizer", errors.describe(value))
  end
  return function(weight)
    native.try(C.flow_regularize, context, name, options, native.pointer(ops.operand(weight)), out)
    return native.tensor(out[0])
  end
end

-- A layer's activity_regularizer for its file; nil: there is none, or it is a function, which a file does not hold.
function penalties.describe(layer)
  local value = read(layer._activity or nil)
  if type(value) == "string" then return value end
  if not object.is(value, arguments.Choice) then return nil end
  return { module = "keras.regularizers", class_name = value.class_name, config = value.options, registered_name = json.null }
end

local used = false      -- whether any layer ever added a loss

-- Takes a scalar of the call that is running.
function penalties.add(layer, value)
  if not (native.is_tensor(value) and value.rank == 0) then
    raise("%s: add_loss takes a tensor with one number, got %s%s", object.title(layer), errors.describe(value),
      native.is_tensor(value) and ": loss:mean() is one, or loss:sum(), which Keras takes" or "")
  end
  if C.flow_trace_depth(context) > 0 and require("flow.tensor.loops").write_out() then return end      -- it comes again, round by round
  local list = rawget(layer, "_added") or {}
  list[#list + 1] = value
  rawset(layer, "_added", list)
  used = true
end

-- What the activity_regularizer of a layer written in Lua makes of its outputs, divided by the batch's rows.
function penalties.add_activity(layer, result)
  if rawget(layer, "_activity_is_left_out") then return end
  local regularize = penalties.regularizer(object.title(layer), read(layer._activity), "activity_regularizer")
  for _, output in ipairs(native.is_tensor(result) and { result } or result) do
    local ok, value = pcall(regularize, output)
    if not ok then      -- where only shapes are asked for, the number of rows may be what is missing
      if scopes.own().scratch_trace then return end
      error(value, 0)
    end
    local row = output
    while row.rank > 1 do row = row[{ {}, 1 }] end
    if row.rank == 1 then value = value / ops.ones_like(row):sum() end      -- as many as the batch has when the plan runs
    penalties.add(layer, value)
  end
end

--- f(), in which the layer's own activity_regularizer adds nothing; those of layers inside of it do.
function penalties.without_activity(layer, f)
  local before = rawget(layer, "_activity_is_left_out")
  return native.between(function() rawset(layer, "_activity_is_left_out", true) end,
    function() rawset(layer, "_activity_is_left_out", before) end, f)
end

-- Forgets what a layer and those inside of it added, before they are called again.
function penalties.clear(layer)
  if not used then return end
  for _, inside in ipairs(layer:_inside()) do rawset(inside, "_added", nil) end
end

-- Appends what the layer itself has: added losses, but those of a trace that has ended, and regularizers of weights that are trained.
function penalties.collect(layer, list)
  for _, value in ipairs(rawget(layer, "_added") or {}) do
    if C.flow_trace_depth(native.context) > 0 or not tensor.is_symbolic(value) then list[#list + 1] = value end
  end
  for _, entry in ipairs(rawget(layer, "_regularizers") or {}) do
    local weight, regularize = entry[1], entry[2]
    if weight.trainable and layer._trainable then
      local value = regularize(weight)
      if value == nil then raise("%s: the regularizer of %s returned nil, expected a scalar", object.title(layer), weight.path) end
      list[#list + 1] = value
    end
  end
end

return penalties
