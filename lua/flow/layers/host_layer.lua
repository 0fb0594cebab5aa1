-- host_layer.lua: layers that prepare data on the host, in C, but in no plan: those that take strings, and others that hash. They are
-- called
--
--   eagerly               on strings (flow.tensor.strings, or lists), or on tensors of numbers
--   in ds:map             on components as they come: a step of the pipeline, on its threads (flow.tensor.host_calls)
--   on symbolic tensors   first in a model, on its inputs or on what such a layer gives: model/host_inputs.lua runs them before the plan
--
-- A class extends HostLayer and has: _takes(specs), what it is called on as lists of { shape =, dtype = }, which raises what does not fit
-- and returns { shape =, dtype = } of the result; _apply(values), which returns the result for strings and tensors; _step(components,
-- specs, result), a flow_function for ds:map; get_config(), and class._from_config(content). _several: it is called on a list.

local native = require "flow.ffi"
local errors = require "flow.errors"
local object = require "flow.object"
local signature = require "flow.signature"
local ops = require "flow.tensor.ops"
local tensor = require "flow.tensor"
local strings = require "flow.tensor.strings"
local host_calls = require "flow.tensor.host_calls"
local symbolic = require "flow.layers.symbolic"
local Layer = require "flow.layers.layer"
local scopes = require "flow.scopes"

local raise = errors.raise

local HostLayer = object.class("HostLayer", Layer)
function HostLayer.fields._on_host() return true end
function HostLayer.fields._several() return false end
function HostLayer.fields._autocasts() return false end
function HostLayer.fields._takes_several() return false end
function HostLayer.fields._takes_whole() return false end      -- numbers in lists are whole ones, if they can be

local CALL = { training = true }

-- A value that the layer is called on: strings as such, all else as a tensor.
local function value_of(self, value)
  if strings.are(value) then
    if type(value) == "string" or strings.is(value) then return value end
    return strings.tensor(object.title(self), value)
  end
  local t = ops.operand(value, nil, object.title(self))
  local is_list = self._takes_whole and (type(value) == "number" or type(value) == "table" and not getmetatable(value))
  return is_list and t:eq(t:floor()):all():item() and t:to "int64" or t
end

local function spec_of(value)
  if type(value) == "string" then return { shape = {}, dtype = "string" } end
  return { shape = native.is_tensor(value) and symbolic.dims(value) or value.shape, dtype = value.dtype }
end

-- The components of a data set's elements that the values stand for while a map is traced, or that a map before it made of them; nil: no
-- map is traced.
local function components_of(self, list)
  local components, specs = {}, {}
  if not host_calls.recorder() then return nil end
  for i, value in ipairs(list) do
    components[i], specs[i] = host_calls.component(value)
    if not components[i] and native.is_tensor(value) and tensor.is_symbolic(value) then
      components[i], specs[i] = host_calls.computed(value)
    elseif not components[i] then
      raise("%s is called on what ds:map gets, or on what its function makes of it: input %d is %s", object.title(self), i,
        errors.describe(value))
    end
  end
  return components, specs
end

-- Whether a call in a step of a model stands for one that ran before the plan (model/host_replay.lua), and what that gave.
local function replayed(self, inputs, replay)
  local stands = symbolic.any(inputs)
  for _, value in ipairs(native.is_tensor(inputs) and { inputs } or type(inputs) == "table" and inputs or {}) do
    stands = stands or native.is_tensor(value) and tensor.is_symbolic(value)
  end
  if not stands then return false end
  local count = (replay.counts[self] or 0) + 1
  local output = replay.calls[self] and replay.calls[self][count]
  if not output then
    raise("%s is called on the model's data here, but not when training = false: it runs before the model's step, which has to call it in "
      .. "both cases", object.title(self))
  end
  replay.counts[self] = count
  return true, replay.values[output] or output
end

-- Called on symbolic tensors it becomes a node of a model; inside of the function of ds:map a step of the pipeline (host_calls.lua); on
-- values it works at once. Inside of a traced function it raises: there are no values.
function HostLayer:_call(inputs, options, ...)
  if options ~= nil and (type(options) ~= "table" or getmetatable(options) or options[1] ~= nil) or ... ~= nil then
    raise("%s takes one input%s and options by name, got %s as well", object.title(self), self._several and ", a list," or "",
      errors.describe(options))
  end
  errors.check_options(object.title(self), options, CALL)
  if inputs == nil then raise("%s: called without an input", object.title(self)) end
  local replay = scopes.own().host_replay
  if replay then
    local known, output = replayed(self, inputs, replay)
    if known then return output end
  end
  if symbolic.any(inputs) then
    local output, record = symbolic.call(self, inputs, options or {}), scopes.own().host_record
    if record then record[#record + 1] = { layer = self, output = output } end
    return output
  end
  local list = self._several and inputs or { inputs }
  if type(list) ~= "table" or getmetatable(list) then
    raise("%s is called on a list of tensors, got %s", object.title(self), errors.describe(inputs))
  end
  errors.check_list(object.title(self) .. ": the inputs", list)
  local components, specs = components_of(self, list)
  if components then
    local result = self:_takes(specs)
    return host_calls.add(self:_step(components, specs, result), result)
  end
  local values = {}
  specs = {}
  for i, value in ipairs(list) do
    values[i] = value_of(self, value)
    if native.is_tensor(values[i]) and tensor.is_symbolic(values[i]) then
      raise("%s prepares data on the host: inside of a traced function it has none; call it before, in ds:map, or first in a model",
        object.title(self))
    end
    specs[i] = spec_of(values[i])
  end
  self:_takes(specs)
  rawset(self, "_built", true)
  return self:_apply(values)
end

-- Of a call on symbolic tensors: shapes without a trace.
function HostLayer:_infer(list)
  local result = self:_takes(list)
  return { { shape = result.shape, dtype = result.model_dtype or result.dtype }, single = true }
end

function HostLayer:build() end

-- The config that all layers of Keras begin with.
function HostLayer:_base_config() return require("flow.layers.entries").base(self) end

-- What flow_function_lookup is told of a component.
function HostLayer._form(spec) return (spec.dtype == "string" and 1 or 0) + (spec.column and 2 or 0) end

-- What a file keeps of the layer beside variables: texts of its own files, and tensors, by their names; and back: read(name), or nil.
function HostLayer:_assets() return {} end
function HostLayer:_read_assets() end
function HostLayer:_named_tensors() return {} end
function HostLayer:_read_tensors() end

-- Writes the files that the layer keeps in a model's file, such as its vocabulary, into a folder; load_assets reads them.
signature.takes "dir_path: path"
function HostLayer:save_assets(folder)
  local io = require "flow.io"
  io.makedirs(folder)
  for name, text in pairs(self:_assets()) do io.write(io.join(folder, name), text) end
end

-- Reads what save_assets wrote; files that are not there are left out.
signature.takes "dir_path: path"
function HostLayer:load_assets(folder)
  local io = require "flow.io"
  self:_read_assets(function(name)
    local path = io.join(folder, name)
    return io.exists(path) and io.read_file(path) or nil
  end)
end

-- Raises that the layer takes something else than was found, unless ok.
function HostLayer:_need(what, ok, found)
  if not ok then raise("%s takes %s, found %s", object.title(rawget(self, "_holder") or self), what, found) end
end

return HostLayer
