-- names.lua: the public names of a value: the fields of a module, the methods and fields of an object, a tensor or a variable. The prompt's
-- completion and the walk over all of flow (walk.lua) ask here.

local native = require "flow.ffi"
local errors = require "flow.errors"
local signature = require "flow.signature"

local names = {}

-- What each kind of name is followed by: a method by ":", anything else by ".".
names.METHOD, names.FIELD = "method", "field"

local function is_public(name)
  return type(name) == "string" and name:find("^%a[%w_]*$") ~= nil
end

local function add(found, list, kind)
  for name in pairs(list or {}) do
    if is_public(name) and not found[name] then found[name] = kind end
  end
end

-- Methods of a class (object.lua) and its parents; hooks that a class leaves empty are not shown. Its functions that are not methods, such
-- as extend, are names of the class only.
local function add_class(found, class, of_instance)
  while class do
    for name, value in pairs(class.methods) do
      if is_public(name) and not found[name] and type(value) == "function" then
        local entry = signature.entries[value]
        if entry and entry.method and name ~= "init" or not of_instance then found[name] = names.METHOD end
      end
    end
    add(found, class.fields, names.FIELD)
    add(found, class.setters, names.FIELD)
    class = class.parent
  end
end

local function class_of(value)
  local metatable = getmetatable(value)
  return type(metatable) == "table" and rawget(metatable, "class") or nil
end

function names.is_class(value)
  return type(value) == "table" and type(rawget(value, "methods")) == "table" and type(rawget(value, "metatable")) == "table"
end

-- The table of a module that is filled when its names are asked for: what could be asked (signature.names_of).
local function add_lazy(found, module)
  local metatable = getmetatable(module)
  local list = type(metatable) == "table" and rawget(metatable, "names")
  for _, name in ipairs(list and list() or {}) do
    if is_public(name) and not found[name] then found[name] = names.FIELD end
  end
end

-- { [name] = names.METHOD or names.FIELD } of a value; empty for one without names.
function names.of(value)
  local found = {}
  if native.is_tensor(value) then
    add(found, native.methods, names.METHOD)
    add(found, native.late_methods, names.METHOD)
    add(found, native.fields, names.FIELD)
  elseif names.is_class(value) then
    add_class(found, value)
  elseif type(value) == "table" then
    local class, metatable = class_of(value), getmetatable(value)
    if class then
      add_class(found, class, true)
      add(found, rawget(value, "_assignments"), names.FIELD)
      add(found, value, names.FIELD)
    elseif type(metatable) == "table" and rawget(metatable, "describe_names") then
      for _, list in ipairs(metatable.describe_names) do add(found, list[1], list[2]) end
    else
      add(found, value, names.FIELD)
      add_lazy(found, value)
      if type(metatable) == "table" and type(metatable.__index) == "table" and not errors.namespaces[value] then
        add(found, metatable.__index, names.FIELD)
      end
    end
  elseif type(value) == "string" then
    add(found, string, names.METHOD)
  end
  return found
end

-- The names of the parameters of a public function, method or constructor: { positional..., options... }; nil: it is not known.
function names.parameters(value)
  local record = (type(value) == "function" or names.is_class(value)) and signature.of(value)
  if not record then return nil end
  local list = {}
  for _, parameters in ipairs { record.positional, record.options or {} } do
    for _, parameter in ipairs(parameters) do list[#list + 1] = parameter.name end
  end
  return list
end

return names
