-- custom_objects.lua: classes and functions of scripts, by the names that files of models have for them: registered for good, or within a
-- function. They belong to the Lua state, scopes to the running coroutine.
--
--   flow.utils.register_keras_serializable("mine")(Scale)                      "mine>Scale"
--   flow.utils.custom_object_scope({ Scale = Scale }, function() return flow.load_model "a.keras" end)
--
-- Two places hold them: `registered`, by "package>name", for good; and tables that custom_object_scope puts into the running coroutine's
-- scope (scopes.lua), each with the enclosing one as its __index. internal.all() merges both for a reader.

local errors = require "flow.errors"
local names_of = require "flow.names"
local scopes = require "flow.scopes"
local signature = require "flow.signature"

local raise, takes = errors.raise, signature.takes
local objects = signature.module("flow.utils", {})
local internal = signature.internal(objects)

local registered, names = {}, {}      -- by name; names by object

-- The name of a class or function by itself.
local function own_name(value)
  if type(value) == "table" and type(rawget(value, "name")) == "string" then return value.name end
end

-- Registers `value`, a class or function, and returns it. name: nil is the class's own.
local function register(value, package, name)
  if type(value) ~= "table" and type(value) ~= "function" then
    raise("register_keras_serializable: expected a class or a function, got %s", errors.describe(value))
  end
  name = name or own_name(value) or raise("register_keras_serializable: a function has no name: give one, { name = \"f\" }")
  if type(name) ~= "string" then raise("register_keras_serializable: name is a string, got %s", errors.describe(name)) end
  local full = package .. ">" .. name
  registered[full], names[value] = value, full
  return value
end

-- Returns a function that registers a class, or a function, and returns it; so does a class in the place of the package. Models with it
-- open without custom_objects then.
function objects.register_keras_serializable(class, name)
  local options = type(class) == "table" and not getmetatable(class) and class or { package = class, name = name }
  local package = options.package == nil and "Custom" or options.package
  if type(package) ~= "string" then return register(package, "Custom", options.name) end
  return function(value) return register(value, package, options.name) end
end

-- The name under which a class is registered, else its own.
function objects.get_registered_name(class) return names[class] or own_name(class) end

-- The class of that name, registered or among custom_objects; nil: there is none.
takes "name: string, custom_objects?: table"
function objects.get_registered_object(name, custom) return internal.all(custom)[name] end

-- What is registered, and what scopes add, by name.
function objects.get_custom_objects() return internal.all() end

-- Calls f while files of models find these classes and functions by their names, and returns what f returns. An error of f ends the scope,
-- too.
takes "objects: table, f: callable"
function objects.custom_object_scope(added, f)
  local own = scopes.own()
  local before = own.custom_objects
  own.custom_objects = setmetatable({}, { __index = before })
  for name, value in pairs(added) do own.custom_objects[name] = value end
  local function finish(ok, ...)
    own.custom_objects = before
    if not ok then error((...), 0) end
    return ...
  end
  return finish(pcall(f))
end
objects.CustomObjectScope = objects.custom_object_scope

-- What they take; calls are not guarded, since a class that is first looks like a call with a colon.
for name, text in pairs { get_registered_name = "obj: any", register_keras_serializable = "package: any = 'Custom', name?: string" } do
  local f = objects[name]
  signature.register(f, signature.entry("flow.utils." .. name, f, text))
end

-- The function that is registered under a name, or that a scope adds.
function internal.function_of(name)
  local found = (next(registered) or scopes.own().custom_objects) and internal.all()[name]
  return type(found) == "function" and found or nil
end

-- All of them by name, in a new table: what is registered, by its full name and, where that is free, by its own; then what scopes add, the
-- innermost last; then `given`, or nil. Later ones take the place of earlier ones of the same name.
function internal.all(given)
  local found = {}
  for _, full in ipairs(names_of.sorted(registered)) do      -- so that of two packages with one name the same one is found in every process
    local value = registered[full]
    found[full] = value
    local name = full:match(">(.*)$")
    if found[name] == nil then found[name] = value end
  end
  local levels, level = {}, scopes.own().custom_objects
  while level do
    table.insert(levels, 1, level)
    level = getmetatable(level).__index
  end
  levels[#levels + 1] = given
  for _, one in ipairs(levels) do
    for name, value in pairs(one) do found[name] = value end
  end
  return found
end

-- The name that files have for a class: the registered one, else nil.
function internal.registered_name(class) return names[class] end

return objects
