-- class_signature.lua: the guards of classes: what methods and constructors take, and the check of every call against it. The second half
-- of signature.lua, in whose table these functions are; it is loaded when the first of them is called.
--
-- A guard of a method checks self before anything else: the metatable of an object has each of its classes as a key (object.lua), so the
-- check is one look-up. It then passes the call on: as it is (any_method), with tables of names sorted into positions (METHODS), or read by
-- its text (read, read_named).

local debug = require("flow.host").debug
local errors = require "flow.errors"
local signature = require "flow.signature"

local raise, namespaces, entries = errors.raise, signature.namespaces, signature.entries
local pop, register, sort, read, read_named = signature.pop, signature.guarded, signature.sort, signature.read, signature.read_named

-- Raises if the first argument of a class that makes its objects itself is a module: flow.callbacks:History().
function signature.refuse_colon(class, first)
  if first ~= nil and namespaces[first] and entries[class] then signature.refuse_namespace(entries[class], first) end
end

-- From now on numbers, texts and booleans that scripts assign to a module, as if they were settings, are errors. Classes and functions of
-- theirs may be put there.
function signature.close(module)
  local metatable, title = getmetatable(module), namespaces[module]
  local define = rawget(metatable, "internal") and rawget(metatable, "__newindex")
  if define then
    metatable.__newindex = function(_, key, value)
      errors.check_assigned(title, module, key, value)
      define(module, key, value)
    end
  end
end

---- methods -----------------------------------------------------------------------------------------------------------------

-- Raises for a call of a method with another self, or with `extra` as one argument too many.
local function refuse_method(entry, class, self, extra)
  local metatable = getmetatable(self)
  if not metatable or not metatable[class] then
    raise("%s is a method, it was called with a dot: write %s(...), with a colon", entry.title:match("[^:]*$"), entry.title)
  end
  signature.too_many(entry, extra)
end

-- The guards of methods, as those of functions; an object's metatable has its classes as keys.
local METHODS = {
  [0] = function(f, e, class) return function(self, x)
    local m = getmetatable(self)
    if x ~= nil or not m or not m[class] then refuse_method(e, class, self, x) end
    return f(self)
  end end,
  function(f, e, class) return function(self, a, x)
    local m = getmetatable(self)
    if x ~= nil or not m or not m[class] then refuse_method(e, class, self, x) end
    if type(a) == "table" then a = sort(e, a) end
    return f(self, a)
  end end,
  function(f, e, class) return function(self, a, b, x)
    local m = getmetatable(self)
    if x ~= nil or not m or not m[class] then refuse_method(e, class, self, x) end
    if type(a) == "table" or type(b) == "table" then return f(self, sort(e, a, b)) end
    return f(self, a, b)
  end end,
  function(f, e, class) return function(self, a, b, c, x)
    local m = getmetatable(self)
    if x ~= nil or not m or not m[class] then refuse_method(e, class, self, x) end
    return f(self, sort(e, a, b, c))
  end end,
  function(f, e, class) return function(self, a, b, c, d, x)
    local m = getmetatable(self)
    if x ~= nil or not m or not m[class] then refuse_method(e, class, self, x) end
    return f(self, sort(e, a, b, c, d))
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

-- A method of a class, guarded. title: "model:fit", as messages name it. text: of takes, or false. reads_itself: see signature.takes, or
-- the table of takes_named. inherited: the method of a parent that it overrides; false: the parent only names it, as Callback does its
-- hooks; nil: there is none.
--
-- Methods of scripts, and those that override one which takes anything, are checked for self only. A method without a text that has fewer
-- parameters than the one it overrides is still given as many arguments: Lua drops the rest.
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
  if text and signature.needs_reading(text) then
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
  local count = text and signature.count_of(text) or info.nparams - 1
  entry.count = math.max(count, above and above.count or 0)
  if above and not text and above.count and above.count > count then entry.like, entry.skip = above, 0 end
  return register(METHODS[entry.count](f, entry, class), entry)
end

---- classes -----------------------------------------------------------------------------------------------------------------

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
    rawset(class, "made_by", signature.entry(class.name, f, text))
    entries[class] = class.made_by
    return guarded
  elseif first == "self" or first == "_" then
    return signature.guard_method(class.receiver .. ":" .. key, class, f, text, inherited, reads_itself)
  elseif first == "parent" or first == "class" or not errors.is_ours(debug.getinfo(f, "S").source) then
    return f
  end
  return signature.guard(class.name .. "." .. key, f, text, reads_itself)
end

-- A constructor that reads its calls by a record of the library: parameters are its names in order, of which `positional` may be given by
-- position. call(...) makes the object. type_of(i), default_of(i): what the library's record says of parameter i, from 0, as C texts, for
-- people; both or neither.
function signature.of_record(class, title, parameters, positional, call, type_of, default_of)
  local list, options = table.concat(parameters, "?, ", 1, positional), table.concat(parameters, "?, ", positional + 1)
  local text = list .. (list ~= "" and "?" or "") .. (options ~= "" and (list ~= "" and ", { " or "{ ") .. options .. "? }" or "")
  local entry = signature.entry(title, call, text)
  entry.type_of, entry.default_of = type_of, default_of
  local function guarded(...)
    if namespaces[(...)] then signature.refuse_namespace(entry, (...)) end
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

-- The methods of objects that are not instances of a class, by what messages call such an object.
-- Tables that the reference (lua/flow/reference) goes through.
signature.receivers = {}
signature.receiver_fields = {}      -- the fields of those that are not objects of object.lua, by the names of their receivers

-- A table for the methods of objects that are not instances of a class (object.lua), which have this metatable.
function signature.methods(receiver, metatable)
  local methods = {}
  metatable[methods], signature.receivers[receiver] = true, methods
  return setmetatable(methods, { __newindex = function(_, key, f)
    local text, reads_itself = pop()
    rawset(methods, key, signature.guard_method(receiver .. ":" .. key, methods, f, text, nil, reads_itself))
  end })
end

return signature
