-- define_op.lua: makes a Lua function an op: flow.name(x, ...), guarded like every public function (signature.lua), and the method
-- x:name(...) of tensors. Ops run for every number that a user computes, so their guards are compiled code without `...`.
--
-- An operand that has __apply in its metatable (the nodes of functional models) takes the call over: __apply(op, a, b, c, d).

local debug = debug
local native = require "flow.ffi"
local errors = require "flow.errors"
local scopes = require "flow.scopes"
local signature = require "flow.signature"

local is_tensor, namespaces, sort = native.is_tensor, signature.namespaces, signature.sort

local function apply_of(value)
  local metatable = type(value) == "table" and getmetatable(value)
  return metatable and metatable.__apply
end

-- What takes the call over because of one of its operands, which is a table, or of an entry of the first, where that is a list.
local function deferred(entry, a, b, c, d)
  if namespaces[a] then signature.refuse(entry, nil, a) end
  if type(a) == "table" and not getmetatable(a) then
    for i = 1, #a do
      local call = apply_of(a[i])
      if call then return call end
    end
  end
  return apply_of(a) or apply_of(b) or apply_of(c) or apply_of(d)
end

-- By number of parameters; a further argument must be nil.
local PLAIN = {
  function(f, e)
    local function op(a, x)
      if x ~= nil then signature.refuse(e, x, a) end
      if type(a) == "table" then
        a = sort(e, a)
        local call = deferred(e, a)
        if call then return call(op, a) end
      end
      return f(a)
    end
    return op
  end,
  function(f, e)
    local function op(a, b, x)
      if x ~= nil then signature.refuse(e, x, a) end
      if type(a) == "table" or type(b) == "table" then
        a, b = sort(e, a, b)
        local call = deferred(e, a, b)
        if call then return call(op, a, b) end
      end
      return f(a, b)
    end
    return op
  end,
  function(f, e)
    local function op(a, b, c, x)
      if x ~= nil then signature.refuse(e, x, a) end
      if type(a) == "table" or type(b) == "table" or type(c) == "table" then
        a, b, c = sort(e, a, b, c)
        local call = deferred(e, a, b, c)
        if call then return call(op, a, b, c) end
      end
      return f(a, b, c)
    end
    return op
  end,
}

-- Whether a text names a second position that must be given.
local function needs_second(text)
  local second = text:match("^[^{]*"):match "^[^,]*,([^,]*)"
  return second ~= nil and second:find "%w" ~= nil and not second:find "[?=]"
end

-- Of an op whose text has options or defaults: a table among the arguments, or one argument too many, is read by the record. f gets nil
-- where nothing was given. checked: any argument after the first is, so that its kind, or that it is missing, is looked at, which costs
-- some microseconds.
local function reading(f, e, positional, checked)
  local always = checked and needs_second(e.text)
  local function op(a, b, c, d, x, g, h, i, j, k)
    if x ~= nil or type(b) == "table" or type(c) == "table" or type(d) == "table" or b ~= nil and positional < 2
      or c ~= nil and positional < 3 or d ~= nil and positional < 4 then
      if namespaces[a] then signature.refuse(e, nil, a) end
      a, b, c, d = signature.read(e, a, b, c, d, x, g, h, i, j, k)
    else
      if type(a) == "table" then a, b, c, d = sort(e, a, b, c, d) end
      if always or checked and (b ~= nil or c ~= nil or d ~= nil) then signature.read(e, a, b, c, d) end      -- f gets what was given
    end
    if type(a) == "table" or type(b) == "table" or type(c) == "table" then
      local call = deferred(e, a, b, c, d)
      if call then return call(op, a, b, c, d) end
    end
    return f(a, b, c, d)
  end
  return op
end

local function not_a_tensor(name, value)
  errors.raise("%s is a method, it was called with a dot: write tensor:%s(...), with a colon, or flow.%s(x, ...); got %s", name, name, name,
    errors.describe(value))
end

-- The method of tensors.
local function method(op, name)
  return function(a, b, c, d, x, g, h, i, j, k)
    if not is_tensor(a) then not_a_tensor(name, a) end
    return op(a, b, c, d, x, g, h, i, j, k)
  end
end

local define = {}

-- Whether a function is an op: given symbolic tensors, it calls nothing but their __apply.
function define.is_op(f)
  local entry = signature.entries[f]
  return entry ~= nil and entry.is_op == true
end

-- Makes op, a function that takes symbolic tensors, the op of an entry. f: what computes it, the function whose messages name the op: that
-- of the entry, or a frame around it.
function define.register(op, entry, f)
  entry.is_op, errors.ops[f] = true, entry.title
  return signature.register(op, entry)
end

---- temporaries ----------------------------------------------------------------------------------------------------------

-- An op that is made of others makes tensors on its way that nobody else sees. They are released when it returns, so that the next ones
-- find their memory; while a tape or a trace is open, which may name them, they are left to the collector.

-- Tensors that ops made since the outermost such op began, how many, nil: none runs; and of how many at most that is known. What is
-- interrupted in between may leave a count: no tensor is kept for that, and it ends at MOST.
local made, made_count, MOST = setmetatable({}, { __mode = "v" }), nil, 1000

-- t, which an op just made.
function define.note(t)
  if made_count then
    made_count = made_count + 1
    made[made_count] = t
    if made_count == MOST then made_count = nil end
  end
  return t
end

-- Whether a result is the tensor with this pointer, or may hold it.
local function holds(result, p)
  if is_tensor(result) then return result.p == p end
  if type(result) ~= "table" then return type(result) == "function" end
  if getmetatable(result) then return true end
  for _, entry in pairs(result) do
    if holds(entry, p) then return true end
  end
  return false
end

local function is_held(p, ...)
  for i = 1, select("#", ...) do
    if holds((select(i, ...)), p) then return true end
  end
  return false
end

-- The results of a call that ended, without what else it made since there were `before` (nil: none).
local function released(before, ok, ...)
  local last = made_count
  made_count = before
  if not ok then error((...), 0) end
  for i = (before or 0) + 1, last or 0 do
    local t = made[i]
    made[i] = nil
    if t and t.p ~= nil then
      if not is_held(t.p, ...) then native.close_tensor(t)
      elseif before then define.note(t) end
    end
  end
  return ...
end

local function all(...) return ... end

-- The same as f, in its own frame, so that messages name it (errors.ops) when f ends in a call of another op. Its temporaries are released.
function define.framed(f)
  return function(...)
    if scopes.any_open() then return all(f(...)) end
    local before = made_count
    made_count = before or 0
    return released(before, pcall(f, ...))
  end
end

-- Makes f an op under its names: functions of ops, methods of tensors. What it takes says the text above (signature.takes), or the names
-- of its parameters.
local function define_named(ops, checked, f, ...)
  local text, first = signature.pop(), (...)
  local entry = signature.entry("flow." .. first, f, text)
  local op
  local count = debug.getinfo(f, "u").nparams
  if checked then f = define.framed(f) end
  if text and signature.needs_reading(text) then op = reading(f, entry, signature.count_of(text), checked)
  else op = PLAIN[count](f, entry) end
  define.register(op, entry, f)
  for _, name in ipairs { ... } do
    ops[name] = op
    native.methods[name] = signature.register(method(op, name), signature.method_of(entry, "tensor:" .. name))
  end
  return op
end
function define.op(ops, f, ...) return define_named(ops, false, f, ...) end
-- The same of an op that leaves it to its text to say what is missing or of another kind; ops that run for every number do that themselves.
function define.checked(ops, f, ...) return define_named(ops, true, f, ...) end

-- The same of a function f(x, ...) that takes any number of arguments.
function define.variadic(ops, f, name)
  local entry = signature.entry("flow." .. name, f, signature.pop())
  local function by_position(op, x, ...)
    local call = type(x) == "table" and deferred(entry, x)
    if call then return call(op, x, ...) end
    return f(x, ...)
  end
  local function op(x, ...)
    local last = ...
    if last == nil then last = x end
    if type(last) == "table" and not getmetatable(last) and signature.is_named(last) then
      return by_position(op, signature.read(entry, x, ...))
    end
    return by_position(op, x, ...)
  end
  ops[name] = define.register(op, entry, f)
  native.methods[name] = signature.register(function(x, ...)
    if not is_tensor(x) then not_a_tensor(name, x) end
    return op(x, ...)
  end, signature.method_of(entry, "tensor:" .. name))
end

-- A function f(...) of flow any of whose arguments may be an operand; it is not a method of tensors.
function define.of_any(ops, f, name)
  local entry = signature.entry("flow." .. name, f, signature.pop())
  local function by_position(op, ...)
    for i = 1, select("#", ...) do
      local call = apply_of((select(i, ...)))
      if call then return call(op, ...) end
    end
    return f(...)
  end
  local function op(...)
    local first = ...
    if namespaces[first] then signature.refuse(entry, nil, first) end
    if type(first) == "table" and not getmetatable(first) and signature.is_named(first) then
      local value, list = signature.read(entry, ...)
      if list == nil then return by_position(op, value) end
      if type(list) ~= "table" or getmetatable(list) then return by_position(op, value, list) end
      return by_position(op, value, unpack(list))
    end
    return by_position(op, ...)
  end
  ops[name] = define.register(op, entry, f)
end

-- A method of tensors that is not a function of flow.
function define.method(name, f)
  local entry = signature.entry("tensor:" .. name, f, "")
  entry.method = true
  native.methods[name] = signature.register(function(a, x)
    if not is_tensor(a) then not_a_tensor(name, a) end
    if x ~= nil then signature.refuse(entry, x) end
    return f(a)
  end, entry)
end

---- ops that are made later ----------------------------------------------------------------------------------------------------

-- Ops of which there are many of a kind are made when they are first asked for: a program uses few of them, and each takes time to make and
-- about a kilobyte, which the collector visits in every collection.

-- Second names of ops of ops.def.
local aliases = {
  neg = "negative", abs = "absolute", is_finite = "isfinite", copy = "clone", sub = "subtract", mul = "multiply", div = "divide",
  pow = "power", eq = "equal", ne = "not_equal", lt = "less", le = "less_equal", gt = "greater", ge = "greater_equal",
}
define.aliases = aliases
local name_of_alias = {}
for name, alias in pairs(aliases) do name_of_alias[alias] = name end

local waiting = native.late_methods      -- by name and alias: the function that makes the op of a name

-- Makes the op of this name or alias. Somebody may ask for it between a text for signature.takes and the function which that is of.
local function make_now(name)
  local first, make = name_of_alias[name] or name, waiting[name]
  local text, reads_itself = signature.pop()
  make(first)
  waiting[first] = nil      -- after it: an error in it, such as Ctrl-C, is not the end of the op
  if aliases[first] then waiting[aliases[first]] = nil end
  if text then signature.takes(text, reads_itself) end
end

-- ops[name] calls make(name) when it is first asked for, which defines the op and its alias.
function define.later(name, make)
  waiting[name] = make
  if aliases[name] then waiting[aliases[name]] = make end
end

-- Has ops[name] find what waits to be made, else what composed.lua knows: ops that fewer programs use are in files that are loaded when the
-- first of them is asked for.
function define.find_later(ops)
  setmetatable(ops, { __index = function(_, name)
    if not waiting[name] then return require("flow.tensor.composed").find(name) end
    make_now(name)
    return rawget(ops, name)
  end })
end

return define
