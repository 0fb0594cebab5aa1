-- text_calls.lua: layers written in Lua that are called on strings, such as one that looks words up and embeds what it finds. Their call()
-- gets the strings as they come:
--
--   eagerly               flow.tensor.strings
--   in ds:map             what stands for components of text: the layers inside become steps of the pipeline (flow.tensor.host_calls)
--   on symbolic tensors   these: the model then consists of the calls inside, of which those that take strings run before the plans
--                         (model/host_inputs.lua). No plan holds strings, so that the layer itself cannot be a node.

local errors = require "flow.errors"
local native = require "flow.ffi"
local object = require "flow.object"
local ops = require "flow.tensor.ops"
local strings = require "flow.tensor.strings"
local host_calls = require "flow.tensor.host_calls"
local arguments = require "flow.arguments"
local symbolic = require "flow.layers.symbolic"
local several = require "flow.layers.several"
local scopes = require "flow.scopes"

local function is_list(value) return type(value) == "table" and not getmetatable(value) end

-- An argument with lists of strings as tensors of these, and numbers as tensors.
local function settled(title, value)
  if symbolic.is(value) or host_calls.component(value) or strings.is(value) then return value end
  local is_several = is_list(value) and type(value[1]) == "table" and getmetatable(value[1])      -- tensors of strings are several inputs
  if not is_several and strings.are(value) then return strings.tensor(title, type(value) == "string" and { value } or value) end
  if not is_list(value) or type(value[1]) == "number" then return ops.operand(value, nil, title) end
  local list = {}
  for key, entry in pairs(value) do list[key] = settled(title, entry) end
  return list
end

-- The shape of each tensor among the arguments, in their form.
local function shapes_of(value)
  local _, spec = host_calls.component(value)
  if spec then return spec.shape end
  if not is_list(value) then return { unpack(native.is_tensor(value) and symbolic.dims(value) or value.shape) } end
  local list = {}
  for key, entry in pairs(value) do list[key] = shapes_of(entry) end
  return list
end

-- A layer with its own weights would not be a part of the model that its call() makes.
local function check_weights(layer)
  if #layer._own == 0 then return end
  errors.raise("%s is called on strings and has its own weights, \"%s\" among them: a model holds the layers that it calls, not these. "
    .. "Call what takes strings before it, and the layer on what that gives, or keep the weights in layers inside of it",
    object.title(layer), layer._own[1].name)
end

-- Calls the layer. run_call(layer, inputs, list, training, call): how layers run on values.
return function(layer, run_call, ...)
  local title, given, options = object.title(layer), { ... }, {}
  local count = select("#", ...)
  while count > 0 and given[count] == nil do count = count - 1 end
  if count > 1 and arguments.is_options(given[count]) then count, options = count - 1, given[count] end
  local call = { arguments = {}, options = {}, list = {} }
  for i = 1, count do
    local plain = given[i] == nil or type(given[i]) == "boolean" or i > 1 and type(given[i]) == "string"
    if plain then call.arguments[i] = given[i] else call.arguments[i] = settled(title, given[i]) end
  end
  for name, value in pairs(options) do
    if name ~= "training" then call.options[name] = value end
  end
  local first, training, shapes, is_symbolic = call.arguments[1], options.training, {}, false
  for i, value in ipairs(call.arguments) do
    if type(value) ~= "boolean" and type(value) ~= "string" then shapes[i] = shapes_of(value) end
    for _, entry in pairs(is_list(value) and value or { value }) do is_symbolic = is_symbolic or symbolic.is(entry) end
  end
  layer:_ensure_built(is_list(first) and shapes[1] or { shapes[1] }, not is_list(first), count > 1 and shapes or nil)
  local single = count == 1 and next(call.options) == nil
  if not is_symbolic or scopes.own().host_replay then return run_call(layer, first, {}, training, not single and call or nil) end
  if not scopes.own().host_record then check_weights(layer) end
  if not single then return several.run(layer, call, training) end
  return several.noted(layer, layer:call(first, { training = training }))
end
