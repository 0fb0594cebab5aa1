-- named_data.lua: data by name: { image = x, age = a } for the inputs of a functional model, { kind = y1, price = y2 } for its outputs.

local errors = require "flow.errors"
local log = require "flow.log"
local object = require "flow.object"
local arguments = require "flow.arguments"
local printed = require "flow.classes.printed"

local raise = errors.raise
local named = {}

-- Whether value is data by name.
function named.is(value)
  return arguments.is_options(value) and next(value) ~= nil
end

-- The names of a model's inputs or outputs (kind) in their order: the keys of the table that it was made of, or the names of the layers.
-- nil: the model is not a graph of layers.
function named.names(model, kind)
  local given = rawget(model, "_names_of_" .. kind)
  if given then return given end
  local ends, names = rawget(model, kind), {}
  for i, tensor in ipairs(ends or {}) do names[i] = tensor.layer.name end
  return ends and names
end

-- Whether a script wrote call(), which may return a table by name: then its keys, or those of the losses or the data, are the names.
function named.is_own(model)
  return rawget(object.class_of(model), "in_lua") and rawget(model, "inputs") == nil or false
end

local function sorted_keys(...)
  local seen, list = {}, {}
  for _, value in pairs { ... } do
    for name in pairs(named.is(value) and value or {}) do
      if not seen[name] then list[#list + 1] = name end
      seen[name] = true
    end
  end
  table.sort(list)
  return list
end

-- Of such a model: its outputs have the names that these tables by name have as keys; false: they have none, until data tells them.
function named.declare(model, ...)
  if not named.is_own(model) then return end
  local names = sorted_keys(...)
  rawset(model, "_names_of_outputs", #names > 0 and names or nil)
end

-- What a layer or a model gave as a list in the order of its outputs: of a call() that a script wrote, in the order of the names, which are
-- the second result.
function named.outputs_of(layer, value)
  local own = named.is(value) and named.is_own(layer) and sorted_keys(value) or nil
  if not own then return named.order(layer, "its output", "outputs", value) end
  local list = {}
  for i, name in ipairs(own) do list[i] = value[name] end
  return list, own
end

-- The results of a prediction as a list, in the order that named.results takes: one tensor, or a list of them.
function named.result_list(model, value)
  rawset(model, "_names_of_results", nil)
  if not named.is_own(model) then return named.complete(model, "the output", "outputs", value) end
  local list, own = named.outputs_of(model, value)
  rawset(model, "_names_of_results", own)
  return list
end

-- A list of tensors, and of lists of them at any depth, as one list, and its form: the same lists with positions in the place of tensors.
-- Another value stays unchanged, and has no form.
function named.flattened(value, is_tensor)
  local list, is_nested = {}, false
  local function form_of(entry, depth)
    if type(entry) ~= "table" or getmetatable(entry) or is_tensor(entry) or arguments.is_options(entry) or #entry == 0 then
      list[#list + 1] = entry
      return #list
    end
    is_nested, depth = is_nested or depth > 1, errors.deeper("flow.Model: outputs", depth)
    local form = {}
    for i, one in ipairs(entry) do form[i] = form_of(one, depth) end
    return form
  end
  local form = form_of(value, 1)
  if not is_nested then return value, nil end
  return list, form
end

-- What flow.Model(inputs, outputs, options) was given: a table of outputs by name, flow.Model(x, { kind = a, price = b }), is not taken for
-- options. is_tensor(value): whether it is an output.
function named.of_graph(is_tensor, inputs, outputs, ...)
  local by_name, options = named.is(outputs), (...)
  for _, output in pairs(by_name and outputs or {}) do by_name = by_name and is_tensor(output) end
  if not by_name then return inputs, outputs, ... end
  if options ~= nil and type(options) ~= "table" then
    raise("flow.Model takes inputs, outputs and a table of options, got %s", errors.describe(options))
  end
  local all = { inputs = inputs, outputs = outputs }
  for name, value in pairs(options or {}) do all[name] = value end
  return all
end

-- The outputs that a model is made of as one list; the model keeps their form.
function named.of_outputs(model, outputs, is_tensor)
  local list, form = named.flattened(outputs, is_tensor)
  rawset(model, "_form_of_outputs", form)
  return list
end

-- The entries of a list in a form: see flattened.
local function in_form(list, form)
  if type(form) == "number" then return list[form] end
  local result = {}
  for i, one in ipairs(form) do result[i] = in_form(list, one) end
  return result
end

-- Converts a list of results to the form that the model returns: a tensor, a list, lists of lists, or, if it was made of a table, a table
-- by name.
function named.results(model, list)
  local names, form = rawget(model, "_names_of_results"), rawget(model, "_form_of_outputs")
  if not names and not named.is_own(model) then names = rawget(model, "_names_of_outputs") end
  if form then return in_form(list, form) end
  if not names then return #list == 1 and list[1] or printed(list) end
  local by_name = {}
  for i, name in ipairs(names) do by_name[name] = list[i] end
  return printed(by_name)
end

-- Whether value, which may also be options, is targets: data by name with the name of an output.
function named.has_outputs(model, value)
  if not named.is(value) then return false end
  for _, name in ipairs(named.names(model, "outputs") or {}) do
    if value[name] ~= nil then return true end
  end
  return false
end

-- Columns of a table that are not inputs, as in Keras: one warning for each name. count: that of the inputs, which are all in `list`, or it
-- is an error, since an input's name may be misspelt.
local function ignore(model, what, others, list, count)
  for i = 1, count do
    if list[i] == nil then return false end
  end
  local warned = rawget(model, "_warned_of_data") or {}
  rawset(model, "_warned_of_data", warned)
  for _, name in ipairs(others) do
    if not warned[name] then
      warned[name] = true
      log.warning("%s: %s has %q, which is not one of the inputs and is ignored", object.title(model), what, tostring(name))
    end
  end
  return true
end

-- Its entries in the order of the model's inputs or outputs (kind), nil for missing ones, and the names in that order. Returns other values
-- unchanged.
function named.order(model, what, kind, value)
  if not named.is(value) then return value end
  if kind == "outputs" and not named.names(model, kind) then named.declare(model, value) end
  local names, positions = named.names(model, kind), {}
  local others = what == "y_pred" and named.is_own(model)      -- of which no loss and no target says anything
  if not names then raise("%s: %s is given by name, which needs a functional model; give a list", object.title(model), what) end
  for i, name in ipairs(names) do positions[name] = i end
  local list, unknown = {}, {}
  for name, entry in pairs(value) do
    if positions[name] then list[positions[name]] = entry else unknown[#unknown + 1] = name end
  end
  table.sort(unknown, function(x, y) return tostring(x) < tostring(y) end)
  local first = not others and unknown[1]
  if first and not (kind == "inputs" and ignore(model, what, unknown, list, #names)) then
    raise("%s: %s has %q, which is not one of the %s %s%s", object.title(model), what, tostring(first), kind, table.concat(names, ", "),
      errors.suggestion(tostring(first), names))
  end
  for i, name in ipairs(others and names or {}) do
    if list[i] == nil then
      raise("%s: the output %q has a loss, a metric or a target, but call() returns %s", object.title(model), name,
        table.concat(sorted_keys(value), ", "))
    end
  end
  return list, names
end

-- The same; no entry may be missing.
function named.complete(model, what, kind, value)
  local list, names = named.order(model, what, kind, value)
  for i, name in ipairs(names or {}) do
    if list[i] == nil then raise("%s: %s lacks %q", object.title(model), what, name) end
  end
  return list
end

return named
