-- walk.lua: every public function, method, class, field and constant, found by walking through what require "flow" returns: its modules,
-- their classes, the methods and fields of tensors and of objects. Nothing is listed here, so nothing can be forgotten.

local debug = require("flow.host").debug
local native = require "flow.ffi"
local errors = require "flow.errors"
local object = require "flow.object"
local signature = require "flow.signature"
local names = require "flow.reference.names"

-- Names that stand for others' names, and so give no further page: flow.keras.layers is flow.layers.
local ALIASES = { keras = true, experimental = true, gfile = true, cluster_resolver = true, coordinator = true }

-- walk.found: the list of all entries so far; walk.by_key: the same by their keys.
local function add(walk, name, f, kind)
  local entry = signature.entries[f]
  while entry and entry.like do entry = entry.like end
  local key = entry or f
  local item = walk.by_key[key]
  if not item then
    item = { names = {}, f = f, kind = kind, title = entry and entry.title }
    walk.by_key[key] = item
    walk.found[#walk.found + 1] = item
  end
  if not item.names[name] then
    item.names[name] = true
    item.names[#item.names + 1] = name
  end
  return item
end

-- A field or a constant, which is what it is by its name: value is that of a constant.
local function add_value(walk, name, kind, value)
  if walk.by_key[name] or name:find("%.experimental%.") or name:find("^flow%.keras%.") then return end
  local item = { names = { name, [name] = true }, name = name, kind = kind, value = value }
  walk.by_key[name] = item
  walk.found[#walk.found + 1] = item
end

-- Whether a table has constants: names with plain values, or a list of them.
local function is_constants(value)
  for _, inner in pairs(value) do
    if type(inner) == "table" or type(inner) == "function" then return false end
  end
  return next(value) ~= nil
end

local function is_ours(class)
  for _, f in pairs(class.methods) do
    if type(f) == "function" and not errors.is_ours(debug.getinfo(signature.unguarded(f), "S").source) then return false end
  end
  return true
end

local function visit_class(walk, name, class)
  if signature.of(class) or rawget(getmetatable(class), "__call") or next(names.of(class)) then add(walk, name, class, "class") end
end

local function visit_module(walk, path, module)
  if walk.seen[module] then return end
  walk.seen[module] = true
  local list = require("flow.names").sorted(names.of(module))
  local inner = {}
  for _, name in ipairs(list) do
    local ok, value = pcall(function() return module[name] end)
    if not ok then value = nil end
    local full = path .. "." .. name
    if type(value) == "function" then
      add(walk, full, value, "function")
    elseif names.is_class(value) then
      if not rawget(value, "is_hidden") then visit_class(walk, full, value) end
    elseif type(value) == "number" or type(value) == "string" or type(value) == "boolean" then
      add_value(walk, full, "constant", value)
    elseif type(value) == "table" and not errors.namespaces[value] and is_constants(value) then
      add_value(walk, full, "constant", value)
    elseif value ~= errors and type(value) == "table" and type(getmetatable(value)) == "table"
      and not rawget(getmetatable(value), "class") then      -- flow.errors is for modules beside lua/flow
      if rawget(getmetatable(value), "__call") then add(walk, full, value, "function") end
      inner[#inner + 1] = { full, value, ALIASES[name] }
    end
  end
  for _, alias in ipairs { false, true } do      -- aliases last: the first name that is met is the one that counts
    for _, entry in ipairs(inner) do
      if (entry[3] or false) == alias then visit_module(walk, entry[1], entry[2]) end
    end
  end
end

-- parent: a class; a method that overrides one of its methods has the name of the latter.
local function visit_methods(walk, receiver, list, parent)
  for name, f in pairs(list) do
    local entry = type(f) == "function" and type(name) == "string" and not name:find("^_") and signature.entries[f]
    if entry and entry.method and name ~= "init" then
      local item = add(walk, receiver .. ":" .. name, f, "method")
      local above = parent
      while above do
        if above.methods[name] ~= nil then item.override = above.receiver .. ":" .. name end
        above = above.parent
      end
    end
  end
end

local function visit_fields(walk, receiver, list)
  for name in pairs(list) do
    if type(name) == "string" and not name:find("^_") then add_value(walk, receiver .. "." .. name, "field") end
  end
end

local function visit_classes(walk)
  for class in pairs(object.classes) do
    if is_ours(class) and not rawget(class, "is_hidden") then
      visit_methods(walk, class.receiver, class.methods, class.parent)
      visit_fields(walk, class.receiver, class.fields)
      visit_fields(walk, class.receiver, class.setters)
      for name, f in pairs(class.methods) do
        local entry = type(f) == "function" and signature.entries[f]
        local is_function = entry and not entry.method and not name:find("^_") or name == "extend"
        if is_function then add(walk, class.name .. "." .. name, f, "function") end
      end
    end
  end
  for receiver, methods in pairs(signature.receivers) do visit_methods(walk, receiver, methods) end
  for receiver, fields in pairs(signature.receiver_fields) do visit_fields(walk, receiver, fields) end
  visit_methods(walk, "tensor", native.methods)
  visit_fields(walk, "tensor", native.fields)
end

-- The name that counts: the one that messages use, that of the class itself, else the shortest that begins with flow, else the first.
local function choose(item)
  if not item.f then return item.name end
  table.sort(item.names)
  if item.override then return item.override end
  local best
  local own = item.kind == "class" and rawget(item.f, "name")
  for _, name in ipairs(item.names) do
    if name == item.title or own and name:match("^flow%.%l+%.(%w+)$") == own then return name end
    if not best or name:find("^flow%.") and (not best:find("^flow%.") or #name < #best) then best = name end
  end
  if best:find("^symbolic:") or best:find("^tensor:") and item.title:find("^flow%.") then return item.title end      -- of flow.log
  return best
end

-- The list of { name =, names = all names, f =, kind = "function", "class", "method", "field" or "constant", value = of a constant },
-- sorted by name; what is not called has no f.
return function(flow)
  local walk = { found = {}, by_key = {}, seen = {} }
  visit_module(walk, "flow", flow)
  visit_classes(walk)
  local by_name = {}
  for _, item in ipairs(walk.found) do
    item.name = choose(item)
    local other = by_name[item.name]      -- a method that several classes have
    if other then
      for _, name in ipairs(item.names) do other.names[#other.names + 1] = name end
    else
      by_name[item.name] = item
    end
  end
  local list = {}
  for _, item in pairs(by_name) do list[#list + 1] = item end
  table.sort(list, function(a, b) return a.name < b.name end)
  return list
end
