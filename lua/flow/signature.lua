-- signature.lua: what each public function takes, and the check of every call against it.
--
-- A function says what it takes in the line above it, and stands in a table that guards what is put into it: a module
-- (signature.module) or a class (object.class).
--
--   local random = signature.module "flow.random"
--
--   takes "n: whole, { seed?: whole }"
--   function random.permutation(n, options) ... end
--
-- Positional parameters come in order, then, in braces, those that are given by name only. `name?` may be left out, `name = 3` has a
-- default, `name: kind` is checked (KINDS of calls.lua; 'a'|'b' are texts). A parameter `name...` takes the rest of the positions as a
-- list, or one list. Text after " -- " is the form that the message about one argument too many recommends. Every positional parameter may
-- be given by its name, too. The function gets its positional parameters in order, with defaults, and then, if it has a part in braces,
-- the table of options, with defaults. Without a kind, a default, options or a `...` in its text a function takes the path that costs next
-- to nothing: it is only refused more arguments than it has parameters.
--
-- A method (its first parameter is self) is refused another self: model.fit(x) says that a colon belongs there. A function of a module is
-- refused a module as its first argument: flow:tensor(x) says that a dot belongs there. Methods that users define are checked for self
-- only: Lua calls them with more arguments than they name.

local errors = require "flow.errors"

local raise = errors.raise
local signature = {}

---- values ------------------------------------------------------------------------------------------------------------------

local function is_callable(value)
  if type(value) == "function" then return true end
  local metatable = type(value) == "table" and getmetatable(value)
  return type(metatable) == "table" and rawget(metatable, "__call") ~= nil
end
signature.is_callable = is_callable

-- Raises unless f can be called.
function signature.check_callable(what, f)
  if not is_callable(f) then raise("%s takes a function, got %s", what, errors.describe(f)) end
  return f
end

-- Whether a table has a key that is not a list position.
local function is_named(value)
  local key = next(value)
  while key ~= nil do
    if type(key) ~= "number" then return true end
    key = next(value, key)
  end
  return false
end
signature.is_named = is_named

-- Whether a table is options: it has a key that is not a list position. An empty table is options.
function signature.is_options(value)
  return type(value) == "table" and not getmetatable(value) and (next(value) == nil or is_named(value))
end

---- records -----------------------------------------------------------------------------------------------------------------

local entries = setmetatable({}, { __mode = "k" })      -- by the guarded function

-- The record of an entry: { title =, positional = list, options = list or nil, by_name =, variadic =, form =, method = }.
function signature.record_of(entry)
  return entry.record or require("flow.calls").record_of(entry)
end
local record_of = signature.record_of

-- What a public function takes, or nil: see record_of.
function signature.of(f)
  return entries[f] and record_of(entries[f])
end

-- The function that a guarded one calls.
function signature.unguarded(f)
  return entries[f] and entries[f].f or f
end

-- "(x, y, { epochs = 1, callbacks })", as messages show what is taken.
function signature.usage(record)
  return require("flow.calls").usage(record)
end

-- The arguments of a call as the function gets them.
function signature.read(entry, ...)
  return require("flow.calls").read(entry, ...)
end
local read = signature.read

-- The same as a table by names; self: of a method.
local function read_named(entry, self, ...)
  return require("flow.calls").read_named(entry, self, ...)
end

-- Raises that an argument is one too many.
local function too_many(entry, value)
  require("flow.calls").too_many(record_of(entry), value)
end

---- guards ------------------------------------------------------------------------------------------------------------------

local namespaces = errors.namespaces
signature.namespaces = namespaces

-- Raises if the first argument of a function is the module that it stands in: flow:tensor(x).
local function refuse_namespace(entry, first)
  if first ~= nil and namespaces[first] then
    raise("%s is not a method, it was called with a colon: write %s(...), with a dot", entry.title:match("[^.]*$"), entry.title)
  end
end

-- The same for a class that makes its objects itself, and the first argument of that.
function signature.refuse_colon(class, first)
  if first ~= nil and namespaces[first] and entries[class] then refuse_namespace(entries[class], first) end
end

-- Raises for a function whose first argument is a module, or that got `extra` as one argument too many.
function signature.refuse(entry, extra, first)
  refuse_namespace(entry, first)
  too_many(entry, extra)
end
local refuse = signature.refuse

local function refuse_method(entry, class, self, extra)
  local metatable = getmetatable(self)
  if not metatable or not metatable[class] then
    raise("%s is a method, it was called with a dot: write %s(...), with a colon", entry.title:match("[^:]*$"), entry.title)
  end
  too_many(entry, extra)
end

-- The guards of functions by their number of parameters: one more must be nil. They keep compiled code free of `...`.
local FUNCTIONS = {
  [0] = function(f, e) return function(x) if x ~= nil then refuse(e, x, x) end return f() end end,
  function(f, e) return function(a, x) if x ~= nil or namespaces[a] then refuse(e, x, a) end return f(a) end end,
  function(f, e) return function(a, b, x) if x ~= nil or namespaces[a] then refuse(e, x, a) end return f(a, b) end end,
  function(f, e) return function(a, b, c, x) if x ~= nil or namespaces[a] then refuse(e, x, a) end return f(a, b, c) end end,
  function(f, e) return function(a, b, c, d, x) if x ~= nil or namespaces[a] then refuse(e, x, a) end return f(a, b, c, d) end end,
}

-- The same of methods; an object's metatable has its classes as keys.
local METHODS = {
  [0] = function(f, e, class) return function(self, x)
    local m = getmetatable(self)
    if x ~= nil or not m or not m[class] then refuse_method(e, class, self, x) end
    return f(self)
  end end,
  function(f, e, class) return function(self, a, x)
    local m = getmetatable(self)
    if x ~= nil or not m or not m[class] then refuse_method(e, class, self, x) end
    return f(self, a)
  end end,
  function(f, e, class) return function(self, a, b, x)
    local m = getmetatable(self)
    if x ~= nil or not m or not m[class] then refuse_method(e, class, self, x) end
    return f(self, a, b)
  end end,
  function(f, e, class) return function(self, a, b, c, x)
    local m = getmetatable(self)
    if x ~= nil or not m or not m[class] then refuse_method(e, class, self, x) end
    return f(self, a, b, c)
  end end,
  function(f, e, class) return function(self, a, b, c, d, x)
    local m = getmetatable(self)
    if x ~= nil or not m or not m[class] then refuse_method(e, class, self, x) end
    return f(self, a, b, c, d)
  end end,
}

-- Of a method that takes whatever it is given.
local function any_method(f, e, class)
  return function(self, ...)
    local m = getmetatable(self)
    if not m or not m[class] then refuse_method(e, class, self) end
    return f(self, ...)
  end
end

function signature.needs_reading(text)
  return text:find("[:={?]") ~= nil or text:find("...", 1, true) ~= nil or text:find(" -- ", 1, true) ~= nil
end

local needs_reading = signature.needs_reading

-- The number of positions in a text.
function signature.count_of(text)
  text = text:match("^[^{]*"):gsub(",%s*$", "")
  local _, commas = text:gsub(",", "")
  return text:find("%S") and commas + 1 or 0
end
local count_of = signature.count_of

local pending, described = false, false      -- the text of the function that is defined next, and how its calls are read

-- Says what the function takes that is defined next. reads_itself: the text is for people, the function checks what it is given.
function signature.takes(text, reads_itself)
  if pending then error("signature: no function follows " .. pending) end
  pending, described = text, reads_itself or false
end

-- The same of a function f(given) or f(self, given) that gets all its parameters in one table by their names. is_data(self, value, name):
-- whether a table with names that stands last, where a parameter of the kind data may stand, is that parameter and not the options.
function signature.takes_named(text, is_data)
  signature.takes(text, { is_data = is_data or false })
end

-- That text, or false, and how its calls are read: false as here, true by the function itself, or as takes_named says.
function signature.pop()
  local text, reads_itself = pending, described
  pending, described = false, false
  return text, reads_itself
end
local pop = signature.pop

-- What the guard of a function knows of it. title: how messages name it; text: see above, or false.
function signature.entry(title, f, text)
  return { title = title, f = f, text = text, method = false }
end

function signature.register(guarded, entry)
  entries[guarded] = entry
  return guarded
end
local register = signature.register

-- A function of a module, guarded. text: what it takes, or false: as many arguments as it has parameters.
function signature.guard(title, f, text, reads_itself)
  local entry = signature.entry(title, f, text)
  if type(reads_itself) == "table" then
    entry.is_data = reads_itself.is_data
    return register(function(...)
      if namespaces[(...)] then refuse_namespace(entry, (...)) end
      return f(read_named(entry, nil, ...))
    end, entry)
  elseif reads_itself then
    return register(function(...)
      if namespaces[(...)] then refuse_namespace(entry, (...)) end
      return f(...)
    end, entry)
  elseif text and needs_reading(text) then
    return register(function(...)
      if namespaces[(...)] then refuse_namespace(entry, (...)) end
      return f(read(entry, ...))
    end, entry)
  end
  local info = debug.getinfo(f, "u")
  if not text and info.isvararg then return f end
  return register(FUNCTIONS[text and count_of(text) or info.nparams](f, entry), entry)
end

-- A method of a class, guarded. inherited: the method of a parent that it overrides, false: the parent names it, or nil.
function signature.guard_method(title, class, f, text, inherited, reads_itself)
  local entry = { title = title, f = f, text = text, method = true, class = class }
  local info = debug.getinfo(f, "Su")
  if type(reads_itself) == "table" then
    entry.is_data = reads_itself.is_data
    return register(function(self, ...)
      local m = getmetatable(self)
      if not m or not m[class] then refuse_method(entry, class, self) end
      return f(self, read_named(entry, self, ...))
    end, entry)
  end
  if reads_itself then return register(any_method(f, entry, class), entry) end
  if text and needs_reading(text) then
    return register(function(self, ...)
      local m = getmetatable(self)
      if not m or not m[class] then refuse_method(entry, class, self) end
      return f(self, read(entry, ...))
    end, entry)
  end
  local above = inherited and entries[inherited]
  if not errors.is_ours(info.source) or not text and (inherited == false or info.isvararg) or above and above.any then
    entry.any = true
    return register(any_method(f, entry, class), entry)
  end
  local count = text and count_of(text) or info.nparams - 1
  entry.count = math.max(count, above and above.count or 0)
  if above and not text and above.count and above.count > count then entry.like, entry.skip = above, 0 end
  return register(METHODS[entry.count](f, entry, class), entry)
end

-- What the method of an op knows: the op's entry without its first parameter.
function signature.method_of(entry, title)
  return { title = title, f = entry.f, text = false, method = true, like = entry, skip = 1 }
end

-- A method that hands its arguments to a guarded function or method, whose first is self, or what convert(self) makes of it.
function signature.forward(title, class, f, convert)
  local entry = { title = title, f = f, text = false, method = true, like = entries[f], skip = entries[f] and entries[f].method and 0 or 1 }
  local call = convert and function(self, ...) return f(convert(self), ...) end or f
  return register(any_method(call, entry, class), entry)
end

-- Guards what is defined in a class: functions whose first parameter is self are methods, those of a parent belong to classes, others are
-- functions.
function signature.in_class(class, key, f, inherited)
  local text, reads_itself = pop()
  text = text or entries[f] and entries[f].text
  f = signature.unguarded(f)
  if type(key) ~= "string" or key:find("^_") then return f end
  local first = debug.getlocal(f, 1)
  if key == "init" and text then      -- what its class takes when it is called
    local guarded = signature.guard_method(class.name, class, f, text, nil, reads_itself)
    entries[class] = signature.entry(class.name, f, text)
    return guarded
  elseif first == "self" or first == "_" then
    return signature.guard_method(class.receiver .. ":" .. key, class, f, text, inherited, reads_itself)
  elseif first == "parent" or first == "class" or not errors.is_ours(debug.getinfo(f, "S").source) then
    return f
  end
  return signature.guard(class.name .. "." .. key, f, text, reads_itself)
end

-- A constructor that reads its calls by a record of the library: parameters are its names in order, of which `positional` may be given by
-- position. call(...) makes the object.
function signature.of_record(class, title, parameters, positional, call)
  local list, options = table.concat(parameters, "?, ", 1, positional), table.concat(parameters, "?, ", positional + 1)
  local text = list .. (list ~= "" and "?" or "") .. (options ~= "" and (list ~= "" and ", { " or "{ ") .. options .. "? }" or "")
  local entry = signature.entry(title, call, text)
  local function guarded(...)
    if namespaces[(...)] then refuse_namespace(entry, (...)) end
    return call(...)
  end
  register(guarded, entry)
  if class then
    entries[class], namespaces[class] = entry, title
    getmetatable(class).__call = function(_, ...) return guarded(...) end
  end
  return guarded
end

-- A constructor: what calling a class does. title: "flow.Model".
function signature.constructor(class, title, f)
  local guarded = signature.guard(title, f, pop())      -- the text, and whether f reads its calls itself
  namespaces[class] = title
  entries[class] = entries[guarded]
  getmetatable(class).__call = function(_, ...) return guarded(...) end
end

-- A table for the methods of objects that are not instances of a class (object.lua), which have this metatable.
function signature.methods(receiver, metatable)
  local methods = {}
  metatable[methods] = true
  return setmetatable(methods, { __newindex = function(_, key, f)
    local text, reads_itself = pop()
    rawset(methods, key, signature.guard_method(receiver .. ":" .. key, methods, f, text, nil, reads_itself))
  end })
end

---- modules -----------------------------------------------------------------------------------------------------------------

-- A function of a module; one whose first parameter is self is a method of the module, such as flow.random:get_state().
local function guard_of_module(module, title, key, f)
  local first = debug.getlocal(f, 1)
  if first == "class" then return f end      -- for classes written in Lua, which stand first
  if first ~= "self" then return signature.guard(title .. "." .. key, f, pop()) end
  local class = getmetatable(module)
  class[class] = true
  return signature.guard_method(title .. ":" .. key, class, f, (pop()))
end

-- A table for the public functions of a module, which are guarded as they are defined. A name that it does not have is an error, unless
-- missing(module, name) finds it. declared_only: functions without a text above them are not public.
function signature.module(title, fields, missing, declared_only)
  local module = fields or {}
  namespaces[module] = title
  return setmetatable(module, {
    __newindex = function(_, key, value)
      if type(value) == "function" and type(key) == "string" and not key:find("^_") and (pending or not declared_only) then
        if not entries[value] or pending then value = guard_of_module(module, title, key, signature.unguarded(value)) end
      end
      rawset(module, key, value)
    end,
    internal = {},
    __index = function(_, name)
      local own = getmetatable(module).internal[name]
      if own ~= nil then return own end
      if missing then
        local found = missing(module, name)
        if found ~= nil then return found end
      end
      local known = {}
      for key in pairs(module) do
        if type(key) == "string" and not key:find("^_") then known[key] = true end
      end
      raise("%s has no %q%s", title, tostring(name), errors.elsewhere(title, name) or errors.suggestion(tostring(name), known))
    end,
  })
end

-- Where a module keeps what other modules of lua/flow take from it and users do not see: module.name finds it, pairs(module) does not.
function signature.internal(module)
  return getmetatable(module).internal
end

return signature
