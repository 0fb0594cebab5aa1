-- parameters_spec.lua: functions take their parameters by the names that Keras has for them (parameters.py), but for those that are listed,
-- and have the same defaults.
local flow = require "flow"
local calls = require "flow.calls"
local signature = require "flow.signature"
local parameters = require "spec.golden.parameters"
for module, text in pairs(require "spec.golden.parameters_of_classes") do parameters[module] = text end

-- What is missing here, by function; of all: sparse and ragged tensors, and other frameworks' things. A parameter for which a table with
-- names is a value has one name.
local MISSING = {
  all = "sparse ragged synchronized",
  array = "x", convert_to_tensor = "x", deserialize = "config name", deserialize_keras_object = "config safe_mode",
  serialize = "activation constraint initializer layer learning_rate_schedule loss metric optimizer regularizer",
  serialize_keras_object = "obj",
  custom_object_scope = "custom_objects", CustomObjectScope = "custom_objects",
  clear_session = "free_memory", get_registered_object = "module_objects",
  geomspace = "axis", linspace = "axis retstep", logspace = "axis", one_hot = "axis", shuffle = "axis",
  jvp = "has_aux", max = "initial", min = "initial", prod = "dtype", unique = "axis fill_value size",
  plot_model = "splines", vectorize = "excluded signature",
  split_dataset = "preferred_backend", timeseries_dataset_from_array = "format", SeedGenerator = "name",
  save_model = "zipped", save_weights = "max_shard_size", assert_same_structure = "check_types", map_structure = "none_is_leaf",
  Dense = "quantization_config", Embedding = "quantization_config",
}

local function set_of(text)
  local set = {}
  for name in (text or ""):gmatch "%S+" do set[name] = true end
  return set
end

local function module_of(path)
  local found = flow.keras
  for part in path:gmatch "[^.]+" do found = found[part] end
  return found
end

-- Whether the constructor of a class refuses an option of this name as unknown.
local function is_unknown(class, name)
  local ok, problem = pcall(class, { [name] = "x" })
  return not ok and tostring(problem):find(('unknown option "%s"'):format(name), 1, true) ~= nil
end

local function lacking(path)
  local lines, all = {}, set_of(MISSING.all)
  for name, text in parameters[path]:gmatch "(%S+): ([^;]*);" do
    local ok, f = pcall(function() return module_of(path)[name] end)
    local entry, is_class = ok and type(f) == "function" and signature.entries[f], ok and type(f) == "table" and name:find "^%u"
    local known, missing = entry and calls.record_of(entry).by_name, set_of(MISSING[path .. "." .. name] or MISSING[name])
    for word in text:gmatch "%S+" do
      local parameter = word:match "^[^=]+"
      local excused = all[parameter] or missing[parameter] or false
      local absent = known and not known[parameter] or is_class and is_unknown(f, parameter)
      if absent and not excused then lines[#lines + 1] = name .. ": " .. parameter end
    end
  end
  table.sort(lines)
  return table.concat(lines, ", ")
end

-- Whether a default is what Keras' text says. Axes count from 1.
local function is_default(name, value, text)
  if name:find "axis" or name:find "axes" then return true end
  if type(value) == "number" then return math.abs(value - (tonumber(text) or 1 / 0)) <= 1e-9 end
  return tostring(value) == text
end

local COUNT = 390      -- of defaults that are compared: what signatures say; those of records are in attributes_spec.lua

local function other_defaults(path, count)
  local lines = {}
  for name, text in parameters[path]:gmatch "(%S+): ([^;]*);" do
    local ok, f = pcall(function() return module_of(path)[name] end)
    local entry = ok and f and signature.entries[f]
    local known = entry and calls.record_of(entry).by_name or {}
    for parameter, default in text:gmatch "([^%s=]+)=(%S+)" do
      local ours = known[parameter] and known[parameter].default
      if ours ~= nil then
        count = count + 1
        if not is_default(parameter, ours, default) then
          lines[#lines + 1] = ("%s: %s is %s by itself, in Keras %s"):format(name, parameter, tostring(ours), default)
        end
      end
    end
  end
  table.sort(lines)
  return table.concat(lines, "\n"), count
end

describe("defaults are Keras'", function()
  it("for every parameter that has one in both", function()
    local count, found = 0, {}
    for path in pairs(parameters) do
      local lines
      lines, count = other_defaults(path, count)
      if lines ~= "" then found[#found + 1] = "keras." .. path .. "\n" .. lines end
    end
    assert.equal("", table.concat(found, "\n"))
    assert.is_true(count >= COUNT, count)
  end)
end)

describe("parameters have Keras' names", function()
  for path in pairs(parameters) do
    it("in keras." .. path, function() assert.equal("", lacking(path)) end)
  end

  it("which calls may use, by themselves and beside positions", function()
    local ops, x = flow.keras.ops, flow.tensor { { 1, 2, 3, 4 } }
    assert.same({ { 3, 4 } }, ops.split(x, { indices_or_sections = 2, axis = -1 })[2]:totable())
    assert.same({ { 2, 2, 3, 3 } }, ops.clip(x, { x_min = 2, x_max = 3 }):totable())
    assert.same({ { 2, 2, 3, 4 } }, x:clip { x_min = 2, x_max = 4 }:totable())
    assert.same({ { 2, 3, 4, 5 } }, ops.add({ x1 = x, x2 = 1 }):totable())
    assert.same({ 3, 3 }, ops.full({ 2 }, { fill_value = 3 }):totable())
    assert.equal(2, ops.concatenate({ xs = { x, x }, axis = 1 }).shape[1])
    local ok, problem = pcall(ops.clip, x, { x_min = 1, low = 2 })
    assert.is_false(ok)
    assert.truthy(problem:find("low is given twice, as low and as x_min", 1, true))
  end)
end)
