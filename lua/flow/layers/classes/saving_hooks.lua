-- saving_hooks.lua: what a script's class of layers or models may say of how it is saved, with Keras' methods:
--
--   save_own_variables(store), load_own_variables(store)      store: a table of tensors by name; by default "0", "1", ... for its variables
--   save_assets(folder), load_assets(folder)                  files of its own, which a .keras file then has, too
--   get_build_config(), build_from_config(config)             what it was built with
--
-- saving/weights.lua, saving/keras.lua and entries.lua ask here.

local errors = require "flow.errors"
local json = require "flow.json"
local object = require "flow.object"
local takes = require("flow.signature").takes
local ops = require "flow.tensor.ops"

local hooks = {}

-- The method of that name that a script's class has in place of the library's; nil: it has none.
function hooks.of(layer, name)
  local class, found = object.class_of(layer), nil
  if not rawget(class, "in_lua") then return nil end
  while class and rawget(class, "in_lua") do
    found = found or class.methods[name]
    class = class.parent
  end
  return found
end

-- The variables that are a layer's own, in the order in which files have them.
local function own_variables(layer)
  local list, inside = {}, {}
  for _, child in ipairs(layer._handle and layer._children or {}) do
    for _, v in ipairs(child.weights) do inside[v] = true end
  end
  for _, v in ipairs(layer._handle and layer.weights or {}) do list[#list + 1] = not inside[v] and v or nil end
  if layer._handle then return list end
  for _, trainable in ipairs { true, false } do
    for _, v in ipairs(layer._own) do list[#list + 1] = v.trainable == trainable and v or nil end
  end
  return list
end
hooks.own_variables = own_variables

-- Whether a script says which variables are a layer's own, or the layer itself does (lora.lua).
function hooks.stores(layer)
  return rawget(layer, "_lora") ~= nil or (hooks.of(layer, "save_own_variables") or hooks.of(layer, "load_own_variables")) ~= nil
end

-- What a layer stores, { name =, value = } sorted by name. in_bytes: a layer with LoRA has kernels of bytes.
function hooks.stored(layer, in_bytes)
  local store, list = {}, {}
  if in_bytes and rawget(layer, "_lora") then require("flow.layers.kernels.lora").store_bytes(layer, store)
  else layer:save_own_variables(store) end
  for name, value in pairs(store) do
    list[#list + 1] = { name = tostring(name), value = ops.operand(value, nil, object.title(layer) .. ": save_own_variables") }
  end
  table.sort(list, function(a, b) return a.name < b.name end)
  return list
end

-- A build config for a file, in which nil sizes are null, and back.
local function plain(value, from, to)
  if type(value) ~= "table" or value == json.null then return value end
  local result = json.is_list(value) and json.list() or {}
  for key, entry in pairs(value) do
    if entry == from then entry = to end
    result[key] = plain(entry, from, to)
  end
  return result
end
function hooks.to_file(config) return plain(config, -1, json.null) end
function hooks.from_file(config) return plain(config, json.null, -1) end

-- Adds the methods by default to Layer.
function hooks.install(Layer)
  -- Puts the values of its own variables into a table, by their numbers from 0 as text.
  takes "store: table"
  function Layer:save_own_variables(store)
    for i, v in ipairs(own_variables(self)) do store[tostring(i - 1)] = v:value() end
  end

  -- Sets them from such a table.
  takes "store: table"
  function Layer:load_own_variables(store)
    local list = own_variables(self)
    for i, v in ipairs(list) do
      local value = store[tostring(i - 1)]
      if value == nil then
        errors.raise("%s: load_own_variables() found no %q; the layer has %d variables", object.title(self), tostring(i - 1), #list)
      end
      v:assign(value)
    end
  end
end

return hooks
