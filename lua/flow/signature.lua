-- signature.lua: what each public function takes, and the check of every call against it.
--
-- A function says what it takes in the line above it, and is in a table that guards what is put into it: a module
-- (signature.module) or a class (object.class).
--
--   local random = signature.module "flow.random"
--
--   takes "n: whole, { seed?: whole }"
--   function random.permutation(n, options) ... end
--
-- Positional parameters come in order, then, in braces, those that are given by name. Those before a semicolon in the braces may be given
-- by position, too, in their order, the one of Keras or TensorFlow: `{ strides?, padding = 'valid'; device? }`. `name?` may be left out,
-- `name = 3` has a default, `name: kind` is checked (KINDS of calls.lua; 'a'|'b' are texts). A parameter `name...` takes the rest of the
-- positions as a list, or one list. Text after " -- " is the form that the message about one argument too many recommends. Every positional
-- parameter may be given by its name, too. The function gets its positional parameters in order, with defaults, and then, if it has a part
-- in braces, the table of options, with defaults. Without a kind, a default, options or a `...` in its text a function takes the path that
-- costs next to nothing: it is only refused more arguments than it has parameters.
--
-- A method (its first parameter is self) is refused another self: model.fit(x) says that a colon belongs there. A function of a module is
-- refused a module as its first argument: flow:tensor(x) says that a dot belongs there. Methods that users define are checked for self
-- only: Lua calls them with more arguments than they name.
--
-- What is said of a function is in its entry, by the guarded function: { title =, f = the function itself, text = or false, method =, class
-- = of a method, any = takes whatever it is given, like = and skip = another entry whose parameters from skip + 1 on it has, record = made
-- on demand }. A guard costs one comparison in the usual case, and keeps `...` out of compiled code.

local debug = debug
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

-- Entries by the guarded function, or by the class that it makes. Weak in both, since an entry leads to its function: were it kept for the
-- key alone, a class of a script would stay with all that its methods use. A guard holds its own entry; others are in `kept`.
local entries, kept = setmetatable({}, { __mode = "kv" }), {}
signature.entries = entries

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

-- What a parameter of a record is, or nil.
function signature.kind_text(parameter)
  return require("flow.calls").kind_text(parameter)
end

-- The arguments of a call as the function gets them.
function signature.read(entry, ...)
  return require("flow.calls").read(entry, ...)
end
local read = signature.read

-- The same as a table by names; self: of a method.
function signature.read_named(entry, self, ...)
  return require("flow.calls").read_named(entry, self, ...)
end

-- Raises that an argument is one too many.
function signature.too_many(entry, value)
  require("flow.calls").too_many(record_of(entry), value)
end

---- guards ------------------------------------------------------------------------------------------------------------------

local namespaces = errors.namespaces
signature.namespaces = namespaces

-- Raises if the first argument of a function is the module that it is in, flow:tensor(x), or a class where an object of it is meant,
-- flow.optimizers.get(flow.optimizers.Adam).
function signature.refuse_namespace(entry, first)
  local title = first ~= nil and namespaces[first]
  if not title then return end
  if title:find("%u%w*$") and entry.title:sub(1, #title + 1) ~= title .. "." then
    raise("%s was given %s: write %s() for an object of it", entry.title, errors.describe(first), title)
  end
  raise("%s is not a method, it was called with a colon: write %s(...), with a dot", entry.title:match("[^.]*$"), entry.title)
end

-- Raises for a function whose first argument is a module, or that got `extra` as one argument too many.
function signature.refuse(entry, extra, first)
  signature.refuse_namespace(entry, first)
  signature.too_many(entry, extra)
end
local refuse = signature.refuse

-- The last of up to four arguments.
local function last_of(a, b, c, d)
  if d ~= nil then return d elseif c ~= nil then return c elseif b ~= nil then return b end
  return a
end

-- The arguments by position, also where the last one is a table of names; one of them is a table.
local function sort(entry, a, b, c, d)
  local last = last_of(a, b, c, d)
  if type(last) == "table" and not getmetatable(last) and is_named(last) then
    return require("flow.calls").sort(entry, last, a, b, c, d)
  end
  return a, b, c, d
end
signature.sort = sort

-- The guards of functions by their number of parameters: one more must be nil. They keep compiled code free of `...`.
local FUNCTIONS = {
  [0] = function(f, e) return function(x) if x ~= nil then refuse(e, x, x) end return f() end end,
  function(f, e) return function(a, x)
    if x ~= nil or namespaces[a] then refuse(e, x, a) end
    if type(a) == "table" then a = sort(e, a) end
    return f(a)
  end end,
  function(f, e) return function(a, b, x)
    if x ~= nil or namespaces[a] then refuse(e, x, a) end
    if type(a) == "table" or type(b) == "table" then return f(sort(e, a, b)) end
    return f(a, b)
  end end,
  function(f, e) return function(a, b, c, x)
    if x ~= nil or namespaces[a] then refuse(e, x, a) end
    return f(sort(e, a, b, c))
  end end,
  function(f, e) return function(a, b, c, d, x)
    if x ~= nil or namespaces[a] then refuse(e, x, a) end
    return f(sort(e, a, b, c, d))
  end end,
}

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
-- whether a table with names that is last, where a parameter of the kind data may be, is that parameter and not the options.
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
  return { title = title, f = f, text = text, method = false, is_op = false }
end

-- The entry of a function of the library that does not hold it itself, for as long as the library is there.
function signature.register(guarded, entry)
  entries[guarded], kept[#kept + 1] = entry, entry
  return guarded
end

-- The entry of a guard, which holds it.
function signature.guarded(guard, entry)
  entries[guard] = entry
  return guard
end
local register = signature.guarded

-- A function around a guarded one, which it calls, with its entry.
function signature.rewrapped(guarded, around)
  if entries[guarded] then register(around, entries[guarded]) end
  return around
end

-- A function of a module, guarded. text: what it takes, or false: as many arguments as it has parameters.
function signature.guard(title, f, text, reads_itself)
  local entry = signature.entry(title, f, text)
  if type(reads_itself) == "table" then
    entry.is_data = reads_itself.is_data
    return register(function(...)
      if namespaces[(...)] then signature.refuse_namespace(entry, (...)) end
      return f(signature.read_named(entry, nil, ...))
    end, entry)
  elseif reads_itself then
    return register(function(...)
      if namespaces[(...)] then signature.refuse_namespace(entry, (...)) end
      return f(...)
    end, entry)
  elseif text and needs_reading(text) then
    return register(function(...)
      if namespaces[(...)] then signature.refuse_namespace(entry, (...)) end
      return f(read(entry, ...))
    end, entry)
  end
  local info = debug.getinfo(f, "u")
  if not text and info.isvararg then return f end
  return register(FUNCTIONS[text and count_of(text) or info.nparams](f, entry), entry)
end

-- What the method of an op knows: the op's entry without its first parameter.
function signature.method_of(entry, title)
  return { title = title, f = entry.f, text = false, method = true, like = entry, skip = 1 }
end

---- modules -----------------------------------------------------------------------------------------------------------------

-- A function of a module; one whose first parameter is self is a method of the module, such as flow.random:get_state().
local function guard_of_module(module, title, key, f)
  local first = debug.getlocal(f, 1)
  if first == "class" then return f end      -- for classes written in Lua, which are first
  if first ~= "self" then return signature.guard(title .. "." .. key, f, pop()) end
  local class = getmetatable(module)
  class[class] = true      -- the module is its own class
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
      raise("%s has no %q%s", title, tostring(name), errors.instead(title, module, tostring(name)))
    end,
  })
end

-- Where a module keeps what other modules of lua/flow take from it and users do not see: module.name finds it, pairs(module) does not.
function signature.internal(module)
  return getmetatable(module).internal
end

-- names(): a list of what a module has that its table gets when it is asked for.
function signature.names_of(module, names)
  getmetatable(module).names = names
end

-- What classes need is in class_signature.lua.
return setmetatable(signature, { __index = function(_, name)
  require "flow.class_signature"
  return rawget(signature, name)
end })
