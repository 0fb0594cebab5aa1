-- host_replay.lua: models with their own call() that give some of their inputs to layers which prepare data on the host
-- (layers/host_layer.lua), such as TextVectorization on strings. Plans do not contain these layers, so call() runs twice:
--
--   record()   on symbolic tensors, once, when the model meets its first data: the calls of such layers, and what they need, become
--              model._host, by which host_inputs.lua runs them before the plans, as those of a graph
--   replay()   in the model's steps, where it is called on what the plans take: text is a symbolic tensor again, and the n-th call of such
--              a layer gives what its n-th call gave before the plan
--
-- model._host has besides: inputs, the symbolic tensors of the model's data; form, these as call() gets them;
-- calls = { [layer] = outputs }; inside: the layers that it consists of.

local errors = require "flow.errors"
local native = require "flow.ffi"
local object = require "flow.object"
local ops = require "flow.tensor.ops"
local strings = require "flow.tensor.strings"
local symbolic = require "flow.layers.symbolic"
local scopes = require "flow.scopes"
local call_order = require "flow.model.call_order"
local host_inputs = require "flow.model.host_inputs"

local host_replay = {}

-- { shape =, dtype = } of a value, or of a component of a data set, which is such a table already; nil: it is a table by name.
local function spec_of(value)
  local is_plain = type(value) == "table" and not getmetatable(value)
  if is_plain and value.dtype then return value end
  if strings.are(value) then
    value = strings.tensor("x", type(value) == "string" and { value } or value)
    return { shape = value.shape, dtype = "string" }
  end
  if is_plain and type(value[1]) ~= "number" and type(value[1]) ~= "table" then return nil end
  value = ops.operand(value, nil, "x")
  return { shape = symbolic.dims(value), dtype = value.dtype }
end

-- Whether a model consists of other layers than when it was recorded.
local function has_changed(model, host)
  local now = model:_inside()
  for i = 1, math.max(#now, #host.inside) do
    if now[i] ~= host.inside[i] then return true end
  end
  return false
end

-- Sets model._host if its call() gives the data, a value, a list of them or the spec of one, to layers that prepare data.
function host_replay.record(model, data)
  local host = rawget(model, "_host")
  if host and host.calls and has_changed(model, host) then
    host = nil
    model:_forget_steps()      -- and _host
  end
  if host or rawget(model, "inputs") or not model:_prepares() then return end
  local is_list = type(data) == "table" and not getmetatable(data) and not data.dtype
    and (native.is_tensor(data[1]) or type(data[1]) == "table" and getmetatable(data[1]))
  local inputs, shapes = {}, {}
  for i, value in ipairs(is_list and data or { data }) do
    local spec = spec_of(value)
    if not spec or #spec.shape == 0 then return end
    inputs[i] = require("flow.layers").Input({ unpack(spec.shape, 2) }, { dtype = spec.dtype })
    shapes[i] = inputs[i].shape
  end
  local own, calls = scopes.own(), {}
  local form = is_list and inputs or inputs[1]
  model:_ensure_built(shapes, not is_list)
  native.between(function() own.host_record = calls end, function() own.host_record = nil end, function()
    return model:call(form, { training = false })
  end)
  local outputs, by_layer = {}, {}
  for _, call in ipairs(calls) do
    by_layer[call.layer] = by_layer[call.layer] or {}
    table.insert(by_layer[call.layer], call.output)
    if call.output.dtype ~= "string" then outputs[#outputs + 1] = call.output end
  end
  for _, input in ipairs(inputs) do
    if input.dtype ~= "string" then outputs[#outputs + 1] = input end
  end
  host = host_inputs.of_graph(model, call_order.of(model, outputs, inputs), inputs, outputs)
  if not host then return end
  host.inputs, host.form, host.calls, host.inside = inputs, form, by_layer, model:_inside()
  rawset(model, "_host", host)
end

-- Whether a model is called on the inputs of its plans, for which call() has to be replayed.
function host_replay.is_fed(model, inputs)
  local host = rawget(model, "_host")
  return host and host.calls and not host_inputs.are_raw(model, inputs)
end

-- run(form) calls the model on `form`, which stands for the inputs of the plans, a tensor or a list of them.
function host_replay.replay(model, given, run)
  local host, own, values = rawget(model, "_host"), scopes.own(), {}
  local list = type(given) == "table" and not getmetatable(given) and given or { given }
  if #list ~= #host.fed then
    errors.raise("%s is called on other data than its step was given: its layers for text run before the step, so that it can be called "
      .. "on the x of its step alone", object.title(model))
  end
  for i, t in ipairs(host.fed) do values[t] = list[i] end
  local form = {}
  for i, input in ipairs(host.inputs) do form[i] = values[input] or input end
  local before = own.host_replay
  return native.between(function() own.host_replay = { calls = host.calls, values = values, counts = {} } end,
    function() own.host_replay = before end, run, host.form == host.inputs and form or form[1])
end

return host_replay
