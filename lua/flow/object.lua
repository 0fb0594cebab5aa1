-- object.lua: what layers, models and optimizers share as Lua objects: methods inherited along a chain of classes, computed fields, hooks
-- on assignments, and an error that names a missing field.
--
-- A class with a method _assigned(self, key, value, before) keeps what its users assign in its own table, self._assignments,
-- so that assigning a field again is seen, too. Its own fields are set with rawset.
--
--   local Layer = object.class("Layer")
--   function Layer:call(x) ... end
--   function Layer.fields.built(self) return ... end          layer.built
--   function Layer.setters.trainable(self, value) ... end      layer.trainable = false
--   local Dense = object.class("Dense", Layer)
--
-- What a class of ours does not know cannot be set: adam.learnig_rate = 1 is an error with the name that is near. Classes that users
-- extend, and models, on which scripts keep what they like, are open: they refuse only what is nearly the name of a field that can be
-- set. A name that begins with _ is ours. Class.settable lists the fields that can be set, beside those with setters.
--
-- In an open class a method of the name of a computed field of its parent computes that field: function GAN:metrics() return { ... } end.
--
-- A method _missing(self, key) finds fields that have no other place: it returns whether there is one, its value, and a table of which the
-- keys are the names that there are. A method _set_missing(self, key, value) sets such fields, and returns whether it did.
--
-- Methods are guarded as they are defined (signature.lua): another self than an instance, as model.fit(x) gives one, is an error.

local debug = require("flow.host").debug
local errors = require "flow.errors"
local signature = require "flow.signature"

local object = { classes = setmetatable({}, { __mode = "k" }) }      -- classes: all that there are

-- class[kind][key], kind being methods, fields, setters or settable, of the class or of the nearest parent that has it; nil: none has. No
-- loop: LuaJIT compiles none in the middle of a caller's.
local function lookup(class, kind, key)
  local found = class[kind][key]
  if found ~= nil or not class.parent then return found end
  return lookup(class.parent, kind, key)
end

-- Whether a class, or one that it extends, is open (object.open).
local function is_open(class)
  while class do
    if rawget(class, "is_open") then return true end
    class = class.parent
  end
  return false
end

-- Names that can be set: those with setters, those of `settable`, and on an object of ours its public fields.
local function settable_names(self, class)
  local names = {}
  for name in pairs(is_open(class) and {} or self) do
    if type(name) == "string" and not name:find("^_") then names[name] = true end
  end
  while class do
    for _, list in ipairs { class.setters, class.settable } do
      for name in pairs(list) do names[name] = true end
    end
    class = class.parent
  end
  return names
end

local MOST = 2      -- edits between a field of the script's and what it seems to be meant for

-- Raises for a name that is nearly, but not quite, one of `names`. title: what messages call the object or class.
local function check_near(title, key, names)
  local near = errors.nearest(key, names, MOST)
  if near then
    errors.raise("%s: the field %q is nearly %q: did you mean that? Another field needs a name that differs more", title, key, near)
  end
end

-- Raises unless an assignment to a field that is not there, which has no setter, makes sense: see the head of the file.
local function check_assignment(self, class, key)
  if type(key) ~= "string" or key:find("^_") or rawget(self, "_making") or lookup(class, "settable", key) then return end
  if is_open(class) then
    check_near(object.title(self), key, settable_names({}, class))
    if not rawget(class, "is_open") and lookup(class, "fields", key) then
      errors.raise("%s: its field %q cannot be set", object.title(self), key)
    end
  elseif lookup(class, "fields", key) or lookup(class, "methods", key) ~= nil then
    errors.raise("%s: its field %q cannot be set", object.title(self), key)
  else
    local missing = lookup(class, "methods", "_missing")
    if missing and missing(self, key) then
      errors.raise("%s: %s is fixed when it is made: make another one with it", object.title(self), key)
    end
    errors.raise("%s has no field %q that could be set%s", object.title(self), key,
      errors.suggestion(key, settable_names(self, class)))
  end
end

-- The names that can be read of an object, for messages about another one: a table with them as keys. more: of _missing, or nil.
local function known_names(self, class, more)
  local known = {}
  local function add(list)
    for name in pairs(list) do
      if not tostring(name):find("^_") then known[name] = true end
    end
  end
  add(self)
  add(rawget(self, "_assignments") or {})
  add(more or {})
  while class do
    add(class.methods)
    add(class.fields)
    class = class.parent
  end
  return known
end

-- What messages call an instance of a class: dataset, strategy.
local function receiver_of(name)
  return (name:match("%u%l+$") or name:match("%a%w*$") or name):lower()
end

-- A function of the class itself, or nil.
local function of_class(class, key)
  while class do
    local statics = rawget(class, "statics")
    if statics and statics[key] then return statics[key] end
    class = class.parent
  end
end

-- class.key is a function of the class itself, which takes it first: Dense.from_config(config), Dense:from_config(config). What extends the
-- class inherits it.
local function define_static(class, key, f)
  if not rawget(class, "statics") then rawset(class, "statics", {}) end
  class.statics[key] = f
end
object.static = define_static

-- What a class makes of a method that one which extends it defines under a name: Class.wraps[name](method, class), or nil.
local function wrap_of(class, key)
  while class do
    local wraps = rawget(class, "wraps")
    if wraps then return wraps[key] end
    class = class.parent
  end
end

-- Raises unless what Class.from_config was given can be a config.
function object.check_config(class_name, config)
  if type(config) == "table" then return end
  errors.raise("%s.from_config takes a table, as get_config() gives it, got %s", class_name, errors.describe(config))
end

-- A class's extend(parent, class_name), which checks what it is given.
local function checked_extend(extend)
  return signature.rewrapped(extend, function(parent, class_name, ...)
    if type(parent) ~= "table" or not object.classes[parent] then
      errors.raise("extend is a method of a class, it was called with a dot: write Class:extend(\"Name\"), with a colon")
    elseif type(class_name) ~= "string" then
      errors.raise("extend(): the class needs a name, got %s", errors.describe(class_name))
    end
    return extend(parent, class_name, ...)
  end)
end

-- A class that is there to be extended is not called, unless something makes instances of it after all.
local function refuse_call(class)
  local metatable = getmetatable(class)
  metatable.__call = metatable.__call or function()
    errors.raise("%s is extended, not made: local My%s = %s:extend(\"My%s\")", class.name, class.name, class.name, class.name)
  end
end

-- f of a class as it is called: with the class, or an instance of it, before the other arguments or without.
local function bind(owner, f, class)
  class = class or owner
  return f and function(first, ...)
    if first == owner then return f(class, ...) end
    return f(class, first, ...)
  end
end

-- What scripts define as Class.from_config(config), Class:from_config(config) or Class.from_config(class, config), as a static.
local function from_config(f)
  local first = debug.getlocal(f, 1)
  if first == "self" or first == "class" or first == "cls" then return f end
  return function(_, config) return f(config) end
end

-- The metatable of a class's instances: object[key], which raises for an unknown name, and object[key] = value.
local function instance_metatable(class)
  return {
    class = class,
    __index = function(self, key)
      local assignments = rawget(self, "_assignments")
      if assignments and assignments[key] ~= nil then return assignments[key] end
      local method = lookup(class, "methods", key)
      if method ~= nil then return method end
      local field = lookup(class, "fields", key)
      if field then return field(self) end
      local missing, more = lookup(class, "methods", "_missing"), nil
      if missing then
        local known, value
        known, value, more = missing(self, key)
        if known then return value end
      end
      local nils = rawget(self, "_set_to_nil")
      if nils and nils[key] then return nil end
      if key == "__class__" then return rawget(class, "of_script") or class end
      if key == "from_config" and of_class(class, key) then return bind(self, of_class(class, key), class) end
      local item = type(key) == "number" and lookup(class, "methods", "__getitem__")      -- sequence[0], as in Python
      if item then
        local values = { item(self, key) }
        return values[2] == nil and values[1] or values
      end
      if type(key) ~= "string" then errors.raise("%s is indexed by names, got %s%s", object.title(self), errors.describe(key),
        errors.elsewhere(class.receiver, "[]") or "") end
      errors.raise("%s has no field %q%s", object.title(self), key,
        errors.elsewhere(class.receiver, key) or errors.suggestion(key, known_names(self, class, more)))
    end,
    __newindex = function(self, key, value)
      local setter = lookup(class, "setters", key)
      if setter then return setter(self, value) end
      local set_missing = lookup(class, "methods", "_set_missing")
      if set_missing and set_missing(self, key, value) then return end
      check_assignment(self, class, key)
      local assigned = lookup(class, "methods", "_assigned")
      if value == nil or not assigned and is_open(class) then      -- from now on the field is there, where it is nil as one that is None
        if not rawget(self, "_set_to_nil") then rawset(self, "_set_to_nil", {}) end
        self._set_to_nil[key] = true
      end
      if not assigned then return rawset(self, key, value) end
      local assignments = rawget(self, "_assignments")
      local before = assignments[key]
      assignments[key] = value
      assigned(self, key, value, before)
    end,
    __call = function(self, ...) return self:_call(...) end,
    __tostring = function(self) return object.title(self) end,
  }
end

-- Class[key] = value: defines a method, or what a script's class puts in place of a field or a static of its parent.
local function define(class, key, value)
  local parent = class.parent
  if key == "__call__" and parent and lookup(parent, "methods", "call") then key = "call" end      -- as Keras names it
  if type(value) == "function" then
    if key == "from_config" then
      define_static(class, key, from_config(value))
      return
    end
    if rawget(class, "is_open") and parent and type(key) == "string" and not key:find("^_")
      and lookup(parent, "methods", key) == nil then
      check_near(class.name, key, settable_names({}, parent))
    end
    if rawget(class, "is_open") and parent and lookup(parent, "fields", key) then      -- as a property in Python
      class.fields[key] = type(value) == "function" and function(self) return require "flow.classes.printed" (value(self)) end or value
      return
    end
    local inherited = nil
    if parent then inherited = lookup(parent, "methods", key) end
    value = signature.in_class(class, key, value, inherited)
    local wrap = wrap_of(parent, key)
    if wrap then value = signature.rewrapped(value, wrap(value, class)) end
    if key == "extend" then
      value = checked_extend(value)
      refuse_call(class)
    end
  end
  class.methods[key] = value
end

-- A class: writing to it defines methods; see object.static, too. Instances are made by object.new(class). receiver: what messages call an
-- instance, by default as of the parent.
--
-- The fields of a class: name, parent (or false), methods, fields (functions of self), setters (functions of self and a value), settable
-- (names as keys), statics, metatable (of its instances). A metatable has the class and all its parents as keys, for the guards of methods.
--
-- A name is looked up in this order: the object's own table, _assignments, methods, fields, _missing, names that were set to nil.
function object.class(name, parent, receiver)
  local class = { name = name, parent = parent or false, methods = {}, fields = {}, setters = {}, settable = {} }
  class.receiver = receiver or parent and parent.receiver or receiver_of(name)
  signature.namespaces[class], object.classes[class] = name, true
  class.metatable = instance_metatable(class)
  class.metatable[class] = true      -- the guards of methods look here for their class
  for key in pairs(parent and parent.metatable or {}) do
    if type(key) == "table" then class.metatable[key] = true end
  end
  return setmetatable(class, {
    __newindex = define,
    __index = function(_, key)
      local found = lookup(class, "methods", key)
      if found == nil then found = bind(class, of_class(class, key)) end
      return found
    end,
  })
end

-- A class with the methods and fields of another, whatever is added to that, and with another parent. Its instances are the other's, too,
-- for its methods.
function object.under(class, parent)
  local made = object.class(class.name, parent)
  for _, kind in ipairs { "methods", "fields", "setters", "settable", "statics" } do rawset(made, kind, rawget(class, kind)) end
  rawset(made, "is_open", rawget(class, "is_open"))
  for key in pairs(class.metatable) do
    if type(key) == "table" then made.metatable[key] = true end
  end
  return made
end

-- The init that a script defines for a class, or for one that it extends; nil: none does.
function object.own_init(class)
  return lookup(class, "methods", "init")
end

-- Gives the library's class at the root of a script's class a function Class.init(self, options), unless it has one: make(name, assign).
function object.root_init(class, make, assign)
  local root = class
  while root.parent do root = root.parent end
  if root.init == nil then define_static(root, "init", make(root.name, assign)) end
end

-- From now on a method that the class does not have is an error when it is asked for by class.name, too.
function object.strict(class, title)
  getmetatable(class).__index = function(_, key)
    local found = lookup(class, "methods", key)
    if found == nil then found = bind(class, of_class(class, key)) end
    if found ~= nil then return found end
    errors.raise("%s has no %q%s", title, tostring(key), errors.suggestion(tostring(key), class.methods))
  end
end

-- An instance, made of a table of fields, which becomes the object itself; nil: a new one. No constructor runs.
function object.new(class, fields)
  return setmetatable(fields or {}, class.metatable)
end

-- Lets scripts add fields to the instances of a class; returns the class.
function object.open(class)
  rawset(class, "is_open", true)
  return class
end

-- Of a class that users see nothing of: the reference leaves it out; returns it.
function object.hide(class)
  rawset(class, "is_hidden", true)
  return class
end

-- make(self, ...): a constructor, which may give the object any fields.
function object.while_making(self, make, ...)
  rawset(self, "_making", true)
  make(self, ...)
  rawset(self, "_making", nil)
end

-- Whether a class is another or extends it.
function object.descends(class, other)
  while class do
    if class == other then return true end
    class = type(class) == "table" and rawget(class, "parent")
  end
  return false
end

-- Whether value is an instance of class or of one that extends it.
function object.is(value, class)
  local metatable = type(value) == "table" and getmetatable(value)
  return object.descends(type(metatable) == "table" and rawget(metatable, "class"), class)
end

-- Whether an object has a method or field of that name, of its own or of its class.
function object.has(self, key)
  local metatable = getmetatable(self)
  local class = type(metatable) == "table" and rawget(metatable, "class")
  if not class then return false end
  return rawget(self, key) ~= nil or lookup(class, "methods", key) ~= nil or lookup(class, "fields", key) ~= nil
end

-- The class of an instance. The value must be one: nothing is checked.
function object.class_of(value)
  return getmetatable(value).class
end

-- Conv2D "conv2d_1", as messages name an object.
function object.title(self)
  local name = rawget(self, "name") or rawget(self, "_title")
  return getmetatable(self).class.name .. (name and (' "%s"'):format(name) or "")
end

return object
