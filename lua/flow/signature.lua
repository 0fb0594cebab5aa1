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
-- default, `name: kind` is checked (KINDS below; 'a'|'b' are texts). A parameter `name...` takes the rest of the positions as a list, or
-- one list. Text after " -- " is the form that the message about one argument too many recommends. Every positional parameter may be given
-- by its name, too. The function gets its positional parameters in order, with defaults, and then, if it has a part in braces, the table
-- of options, with defaults. Without a kind, a default, options or a `...` in its text a function takes the path that costs next to
-- nothing: it is only refused more arguments than it has parameters.
--
-- A method (its first parameter is self) is refused another self: model.fit(x) says that a colon belongs there. A function of a module is
-- refused a module as its first argument: flow:tensor(x) says that a dot belongs there. Methods that users define are checked for self
-- only: Lua calls them with more arguments than they name.

local errors = require "flow.errors"

local raise = errors.raise
local signature = {}

---- kinds ------------------------------------------------------------------------------------------------------------------

local floor, huge = math.floor, math.huge

local function whole_from(least)
  return function(value) return type(value) == "number" and value >= least and value == floor(value) and value < huge end
end

local function of_type(name)
  return function(value) return type(value) == name end
end

-- A number or a 64-bit integer, an int64_t or a uint64_t.
local function is_numeric(value)
  return type(value) == "number" or type(value) == "cdata" and tostring(value):find("^%-?%d+U?LL$") ~= nil
end

local function is_callable(value)
  if type(value) == "function" then return true end
  local metatable = type(value) == "table" and getmetatable(value)
  return type(metatable) == "table" and rawget(metatable, "__call") ~= nil
end

-- Whether a table has a key that is no list position.
local function is_named(value)
  local key = next(value)
  while key ~= nil do
    if type(key) ~= "number" then return true end
    key = next(value, key)
  end
  return false
end

-- Name of a kind -> its test, and how messages name it. A test may raise what it knows better. named: tables with names are values.
local KINDS = {
  any = { function() return true end, "anything" },
  data = { function() return true end, "data", named = true },
  number = { of_type "number", "a number" },
  numeric = { is_numeric, "a number" },
  positive = { function(value) return type(value) == "number" and value > 0 end, "a number above 0" },
  integer = { whole_from(-huge), "a whole number" },
  whole = { whole_from(0), "a whole number from 0" },
  count = { whole_from(1), "a whole number from 1" },
  boolean = { of_type "boolean", "true or false" },
  string = { of_type "string", "a string" },
  text = { function(value) return type(value) == "string" and value ~= "" end, "a text" },
  path = { of_type "string", "a path" },
  callable = { is_callable, "a function" },
  table = { of_type "table", "a table", named = true },
  list = { function(value) return type(value) == "table" and getmetatable(value) == nil and not is_named(value) end, "a list" },
  verbosity = { function(value) return type(value) == "boolean" or value == "auto" or whole_from(0)(value) end, '0, 1, 2 or "auto"' },
}
signature.KINDS = KINDS

-- Raises unless f can be called.
function signature.check_callable(what, f)
  if not is_callable(f) then raise("%s takes a function, got %s", what, errors.describe(f)) end
  return f
end

local function describe_kind(kind)
  local parts = {}
  for i, name in ipairs(kind.names) do
    local literal = name:match("^'(.*)'$")
    parts[i] = literal and ("%q"):format(literal) or KINDS[name][2]
  end
  if #parts == 1 then return parts[1] end
  return table.concat(parts, ", ", 1, #parts - 1) .. " or " .. parts[#parts]
end

local function fits(kind, value)
  for _, name in ipairs(kind.names) do
    local literal = name:match("^'(.*)'$")
    if literal then
      if value == literal then return true end
    elseif KINDS[name][1](value) then
      return true
    end
  end
  return false
end

---- records ----------------------------------------------------------------------------------------------------------------

local function parse_default(text)
  if text == "" or text == "nil" then return nil end
  if text == "true" or text == "false" then return text == "true" end
  return tonumber(text) or text:match("^'(.*)'$") or error("signature: default " .. text)
end

-- { name =, optional =, variadic =, kind = { names = {...} }, default = } of "name?: kind = default".
local function parse_parameter(text)
  local head, default = text:match("^(.-)%s*=%s*(.*)$")
  local name, kinds = (head or text):match("^%s*([^:]-)%s*:%s*(.-)%s*$")
  name = name or (head or text):match("^%s*(.-)%s*$")
  local parameter = { default = parse_default(default or ""), default_text = default }
  parameter.name = name:gsub("%.%.%.$", function() parameter.variadic = true return "" end):gsub("%?$", function()
    parameter.optional = true
    return ""
  end)
  if kinds then
    parameter.kind = { names = {} }
    for kind in kinds:gmatch("[^|]+") do
      if not kind:find("^'") and not KINDS[kind] then error("signature: unknown kind " .. kind) end
      table.insert(parameter.kind.names, kind)
      parameter.kind.named = parameter.kind.named or KINDS[kind] and KINDS[kind].named
      parameter.kind.list = parameter.kind.list or kind == "list"
    end
  end
  parameter.optional = parameter.optional or default ~= nil
  return parameter
end

local function parse_list(text, by_name)
  local list = {}
  text = text:gsub("'[^']*'", function(quoted) return (quoted:gsub(",", "\1")) end)      -- commas between quotes separate nothing
  for part in text:gmatch("[^,]+") do
    list[#list + 1] = parse_parameter((part:match("^%s*(.-)%s*$"):gsub("\1", ",")))
    by_name[list[#list].name] = list[#list]
  end
  return list
end

-- The record of an entry: { title =, positional = list, options = list or nil, by_name =, variadic =, form =, method = }.
local record_of
function record_of(entry)
  if entry.record then return entry.record end
  local record = { title = entry.title, by_name = {}, method = entry.method, any = entry.any or false }
  if entry.like then      -- another function's, whose first parameter is self here
    local other = record_of(entry.like)
    record.options, record.variadic, record.positional = other.options, other.variadic, { unpack(other.positional, entry.skip + 1) }
    for _, list in ipairs { record.positional, record.options or {} } do
      for _, parameter in ipairs(list) do record.by_name[parameter.name] = parameter end
    end
    entry.record = record
    return record
  elseif entry.text then
    local text, form = entry.text:match("^(.-)%s+%-%- (.*)$")
    text, record.form = text or entry.text, form
    local head, braces = text:match("^(.-),?%s*{(.*)}%s*$")
    record.positional = parse_list(head or text, record.by_name)
    record.options = braces and parse_list(braces, record.by_name) or nil
  else
    record.positional = {}
    for i = entry.method and 2 or 1, huge do
      local name = debug.getlocal(entry.f, i)
      if not name then break end
      record.positional[#record.positional + 1] = { name = name, optional = true }
      record.by_name[name] = record.positional[#record.positional]
    end
  end
  local last = record.positional[#record.positional]
  record.variadic = last and last.variadic or false
  entry.record = record
  return record
end

signature.record_of = record_of
local entries = setmetatable({}, { __mode = "k" })      -- by the guarded function

-- What a public function takes, or nil: see record_of.
function signature.of(f)
  return entries[f] and record_of(entries[f])
end

-- The function that a guarded one calls.
function signature.unguarded(f)
  return entries[f] and entries[f].f or f
end

local function usage_of(parameter)
  local text = parameter.name .. (parameter.variadic and "..." or "")
  if parameter.default_text and parameter.default_text ~= "nil" then return text .. " = " .. parameter.default_text:gsub("'", '"') end
  return text
end

-- "(x, y, { epochs = 1, callbacks })", as messages show what is taken.
function signature.usage(record)
  local parts, options = {}, {}
  for i, parameter in ipairs(record.positional) do parts[i] = usage_of(parameter) end
  for i, parameter in ipairs(record.options or {}) do options[i] = usage_of(parameter) end
  if #options > 0 then parts[#parts + 1] = "{ " .. table.concat(options, ", ") .. " }" end
  if #parts == 0 then return "no arguments" end
  return "(" .. table.concat(parts, ", ") .. ")"
end

---- options ----------------------------------------------------------------------------------------------------------------

-- Whether a table is options: it has a key that is no list position. An empty table is options.
function signature.is_options(value)
  return type(value) == "table" and not getmetatable(value) and (next(value) == nil or is_named(value))
end
local is_options = signature.is_options

-- Whether the last of `count` arguments is the table of options.
local function ends_in_options(record, value, count)
  if not is_options(value) then return false end
  local parameter = record.positional[count]
  if not parameter then return true end
  if next(value) == nil then      -- {} is a value where a table may stand, or where something must
    if parameter.kind then return not fits(parameter.kind, value) end
    return parameter.optional and not parameter.variadic
  end
  if not (parameter.kind and parameter.kind.named) then return true end
  for name in pairs(value) do
    if record.by_name[name] then return true end
  end
  return false
end

local function unknown_option(record, name)
  local known = {}
  for key in pairs(record.by_name) do known[key] = true end
  if type(name) == "string" then
    raise("%s: unknown option %q%s", record.title, name, errors.suggestion(name, known))
  end
  raise("%s: an option has a name, got %s", record.title, errors.describe(name))
end

-- Raises that `value`, argument `position`, is one too many.
local function too_many(record, value)
  if is_options(value) and next(value) ~= nil then
    for name in pairs(value) do
      if type(name) ~= "string" or not record.by_name[name] then unknown_option(record, name) end
    end
  end
  local usage = signature.usage(record)
  raise("%s takes %s; %s is one argument too many%s", record.title, usage, errors.describe(value),
    record.form and ": write " .. record.form or "")
end

---- reading a call -----------------------------------------------------------------------------------------------------------

-- Spreads a table of options over positions and options.
local function spread(record, named, values, options)
  local first = record.positional[1]
  for name, value in pairs(named) do
    if type(name) == "number" then
      if not first then raise("%s takes no value by position", record.title) end
      if values[1] == nil then values[1] = {} end
      if values[1] == named or type(values[1]) ~= "table" then
        raise("%s: %s is given twice, as an argument and in the table of options", record.title, first.name)
      end
      values[1][name] = value
    elseif not record.by_name[name] then
      unknown_option(record, name)
    end
  end
  for i, parameter in ipairs(record.positional) do
    local value = named[parameter.name]
    if value ~= nil then
      if values[i] ~= nil then raise("%s: %s is given twice, by position and by name", record.title, parameter.name) end
      values[i] = value
    end
  end
  for _, parameter in ipairs(record.options or {}) do options[parameter.name] = named[parameter.name] end
end

-- The value of a parameter, checked, or its default.
local function checked(record, parameter, value)
  if value == nil then
    if parameter.default ~= nil then return parameter.default end
    if parameter.kind and not parameter.optional then
      raise("%s: %s is missing: it is %s", record.title, parameter.name, describe_kind(parameter.kind))
    end
    return nil
  end
  if parameter.kind and not fits(parameter.kind, value) then
    raise("%s: %s is %s, got %s", record.title, parameter.name, describe_kind(parameter.kind), errors.describe(value))
  end
  if parameter.kind and parameter.kind.list and type(value) == "table" then
    errors.check_list(record.title .. ": " .. parameter.name, value)
  end
  return value
end

-- The values from position n on as a list: of one that is a list, or a shape, it is that.
local function gather_rest(record, values, n, count)
  local only = values[n]
  if count == n and (type(only) == "cdata" or type(only) == "table" and not getmetatable(only)) then return end
  local rest = {}
  for i = n, count do rest[i - n + 1], values[i] = values[i], nil end
  errors.check_list(record.title, rest, "argument %d is nil: is a name misspelt?", n - 1)
  values[n] = rest
end

-- The arguments of a call as the function gets them.
function signature.read(entry, ...)
  local record, values, count = record_of(entry), { ... }, select("#", ...)
  local n, options = #record.positional, {}
  while count > 0 and values[count] == nil do count = count - 1 end
  local named = count > 0 and ends_in_options(record, values[count], count) and values[count]
  if named then values[count], count = nil, count - 1 end
  if record.variadic and count >= n then gather_rest(record, values, n, count)
  elseif count > n then too_many(record, values[count]) end
  if named then spread(record, named, values, options) end
  for i = 1, n do values[i] = checked(record, record.positional[i], values[i]) end
  if not record.options then return unpack(values, 1, n) end
  for _, parameter in ipairs(record.options) do options[parameter.name] = checked(record, parameter, options[parameter.name]) end
  values[n + 1] = options
  return unpack(values, 1, n + 1)
end

local read = signature.read

---- guards ------------------------------------------------------------------------------------------------------------------

local namespaces = errors.namespaces
signature.namespaces = namespaces

-- Raises if the first argument of a function is the module that it stands in: flow:tensor(x).
local function refuse_namespace(entry, first)
  if first ~= nil and namespaces[first] then
    raise("%s is no method, it was called with a colon: write %s(...), with a dot", entry.title:match("[^.]*$"), entry.title)
  end
end

-- Raises for a function whose first argument is a module, or that got `extra` as one argument too many.
function signature.refuse(entry, extra, first)
  refuse_namespace(entry, first)
  too_many(record_of(entry), extra)
end
local refuse = signature.refuse

local function refuse_method(entry, class, self, extra)
  local metatable = getmetatable(self)
  if not metatable or not metatable[class] then
    raise("%s is a method, it was called with a dot: write %s(...), with a colon", entry.title:match("[^:]*$"), entry.title)
  end
  too_many(record_of(entry), extra)
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

local function count_of(text)
  local _, commas = text:gsub(",", "")
  return text:find("%S") and commas + 1 or 0
end

local pending, described = false, false      -- the text of the function that is defined next; whether the function reads its calls itself

-- Says what the function takes that is defined next. reads_itself: the text is for people, the function checks what it is given.
function signature.takes(text, reads_itself)
  if pending then error("signature: no function follows " .. pending) end
  pending, described = text, reads_itself or false
end

-- That text, or false, and whether the function reads its calls itself.
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
  if reads_itself then
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
  if first == "self" or first == "_" then
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

-- A table for the methods of objects that are no instances of a class (object.lua), which have this metatable.
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
      raise("%s has no %q%s", title, tostring(name), errors.suggestion(tostring(name), known))
    end,
  })
end

-- Where a module keeps what other modules of lua/flow take from it and users do not see: module.name finds it, pairs(module) does not.
function signature.internal(module)
  return getmetatable(module).internal
end

return signature
