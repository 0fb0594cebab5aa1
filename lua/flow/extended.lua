-- extended.lua: classes of scripts that extend one of the library's whose objects a constructor makes: layers.Dropout:extend("MCDropout").
-- An object is what that constructor makes, with the methods of the script's class. Without its own init the class takes what the
-- library's takes; an init calls the library's as super().__init__() in Python: flow.layers.Dropout.init(self, rate, options).
--
-- The object has the metatable of the script's class, so that its methods come before the library's; become() copies the fields of what the
-- library's constructor made. State while an object is made: _common_options are options that every object takes and the script's init did
-- not hand on; _after is what the caller of extended.class wants done; _is_made says that the library's constructor ran.

local errors = require "flow.errors"
local names = require "flow.names"
local object = require "flow.object"
local arguments = require "flow.arguments"
local initialize = require "flow.user_class".initialize

local extended = {}

-- The class of the library that a class of a script extends, or is.
function extended.base(class)
  while class and rawget(class, "in_lua") do class = class.parent end
  return class
end

-- The arguments with the options in `more` that they do not have, at their end.
local function with_options(more, ...)
  if next(more) == nil then return ... end
  local list, count, options = { ... }, select("#", ...), {}
  if count > 0 and arguments.is_options(list[count]) then
    for name, value in pairs(list[count]) do options[name] = value end
  else
    count = count + 1
  end
  for name, value in pairs(more) do
    if options[name] == nil then options[name] = value end
  end
  list[count] = options
  return unpack(list, 1, count)
end

-- Gives an object all that another one has, which the library's constructor made for it. Fields that were set before stay.
local function become(self, made)
  local assigned = rawget(self, "_assignments") or {}
  if rawget(made, "name") == nil then rawset(self, "name", nil) end
  for key, value in pairs(made) do rawset(self, key, value) end
  for key, value in pairs(assigned) do self[key] = value end
end

-- An object of the library's class base, which gets its automatic name after the script's class.
local function make(class, base, ...) return names.instead(base.name, class.name, base, ...) end

-- A class that extends parent, which is of the library or extends such a class. common: names of the options that every object takes, and
-- that init need not hand on. prepare(class, name): an object on which init can set fields; after(self, class, base): called once it is
-- made.
function extended.class(parent, class_name, common, prepare, after)
  local class, base = object.open(object.class(class_name, parent)), extended.base(parent)
  rawset(class, "in_lua", true)
  if not rawget(base, "has_root_init") then      -- once for each class of the library
    rawset(base, "has_root_init", true)
    object.static(base, "init", function(_, self, ...)
      local own = type(self) == "table" and getmetatable(self)
      own = type(own) == "table" and rawget(own, "class")
      if not own or not object.descends(own, base) then
        errors.raise("%s.init takes the object and the arguments of %s: %s.init(self, ...)", base.name, base.name, base.name)
      end
      become(self, make(own, base, with_options(rawget(self, "_common_options") or {}, ...)))
      rawset(self, "_common_options", nil)
      rawset(self, "_is_made", true)
      if rawget(self, "_after") then self._after(self, own, base) end
    end)
  end
  getmetatable(class).__call = function(_, ...)
    local init = object.own_init(class)
    if not init then
      local self = setmetatable(make(class, base, ...), class.metatable)
      rawset(self, "_is_made", true)
      if after then after(self, class, base) end
      return self
    end
    local count = select("#", ...)
    local last = count > 0 and (select(count, ...))
    local self, given = prepare(class), {}
    for name, value in pairs(arguments.is_options(last) and last or {}) do
      if common[name] then given[name] = value end      -- trainable = false, too
    end
    rawset(self, "_common_options", given)
    rawset(self, "_after", after)
    arguments.check_init(class_name, init, common, ...)
    initialize(self, init, common, arguments.for_init(class_name, init, ...))
    rawset(self, "_after", nil)
    if not rawget(self, "_is_made") then
      errors.raise("%s: init() has to call %s.init(self, ...), as super().__init__(...) in Python", class_name, base.name)
    end
    return self
  end
  return class
end

return extended
