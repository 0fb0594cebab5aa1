-- user_class.lua: classes of layers, losses, metrics, optimizers, schedules and data sets written in Lua: local Rate =
-- flow.metrics.Metric:extend("Rate").
--
-- An object of such a class is made in three steps: new() makes what the library needs, the script's init gets the arguments by its own
-- parameters (arguments.for_init), and what it was given is kept in _given_to_init, for files.

local debug = require("flow.host").debug
local errors = require "flow.errors"
local names = require "flow.names"
local object = require "flow.object"
local arguments = require "flow.arguments"
local signature = require "flow.signature"

-- The init of the library's class at the root of a script's classes, which a script's own init may call as Keras' calls super().__init__():
-- takes the options that every instance has, such as { name = "m" }.
local function root_init(class_name, assign)
  return function(_, self, options)
    if options == nil then return end
    if not arguments.is_options(options) then
      errors.raise("%s.init takes the object and a table of options, such as { name = \"a\" }, got %s", class_name,
        errors.describe(options))
    end
    for name, value in pairs(options) do
      if name ~= "name" then assign(self, name, value)
      elseif type(value) == "string" then rawset(self, "name", value)
      else errors.raise("%s: name is a string, got %s", object.class_of(self).name, errors.describe(value)) end
    end
  end
end

local MOST_DEPTH = 32      -- of tables in tables; a table that holds itself is deeper

-- Whether a file can hold a value as it is: a number, text or boolean, or a list or table by name of these.
local function is_plain(value, depth)
  local kind = type(value)
  if kind == "number" or kind == "string" or kind == "boolean" then return true end
  if kind ~= "table" or getmetatable(value) or depth > MOST_DEPTH then return false end
  local is_list = #value > 0
  for key, entry in pairs(value) do
    if (type(key) == "string") == is_list or not is_plain(entry, depth + 1) then return false end
  end
  return true
end

-- Calls init(self, ...), and keeps its arguments by the names of its parameters: `given` are those that a file can hold, `lost` the others.
-- A class without a get_config of its own is saved with `given`, as Keras' classes are. The options of the last parameter have their own
-- names, under which from_config gives them back (arguments.for_init); those of every object, keys of `taken`, are kept elsewhere.
local function initialize(self, init, taken, ...)
  local f, given, lost = signature.unguarded(init), {}, {}
  local last = debug.getinfo(f, "u").nparams - 1
  local function keep(name, value)
    if value ~= nil then (is_plain(value, 1) and given or lost)[name] = value end
  end
  for i = 1, select("#", ...) do
    local name, value = debug.getlocal(f, i + 1), (select(i, ...))
    if name and i == last and arguments.is_options(value) then
      for option, entry in pairs(value) do
        if type(option) == "string" and not (taken and taken[option]) then keep(option, entry) end
      end
    elseif name then keep(name, value)
    end
  end
  rawset(self, "_given_to_init", { given = given, lost = lost })
  init(self, ...)
end

-- A class that extends parent. Class(a, b, { name = "m" }) makes new(Class, name, options) and calls Class.init(self, a, b, ...) if there
-- is one; without init a table of options becomes fields, except for those whose names are keys of `taken`. assign(self, name, value): how
-- an option becomes a field; without it rawset.
local function extend(parent, class_name, new, taken, assign)
  local class = object.open(object.class(class_name, parent))
  rawset(class, "in_lua", true)
  object.root_init(class, root_init, assign or rawset)
  getmetatable(class).__call = function(_, ...)
    local count = select("#", ...)
    local last = count > 0 and (select(count, ...))
    local options = arguments.is_options(last) and last or {}
    if options.name ~= nil and type(options.name) ~= "string" then
      errors.raise("%s: name is a string, got %s", class_name, errors.describe(options.name))
    end
    local self = new(class, options.name or names.auto(class_name), options)
    local init = object.own_init(class)
    if init then
      arguments.check_init(class_name, init, taken, ...)
      initialize(self, init, taken, arguments.for_init(class_name, init, ...))
    elseif count > 1 or count == 1 and last ~= nil and not arguments.is_options(last) then
      errors.raise("%s takes a table of options; function %s:init(...) would name arguments by position", class_name, class_name)
    else
      for name, value in pairs(options) do
        if name ~= "name" and not (taken and taken[name]) then (assign or rawset)(self, name, value) end
      end
    end
    return self
  end
  return class
end

return setmetatable({ initialize = initialize }, { __call = function(_, ...) return extend(...) end })
