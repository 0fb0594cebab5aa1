-- names.lua: Keras' automatic names: conv2d, conv2d_1, ... counted per Lua state; and names in order.

local debug = require("flow.host").debug
local native = require "flow.ffi"

local names = {}
local counters = {}

-- Keras' snake case: Conv2D -> conv2d, MaxPooling2D -> max_pooling2d, ReLU -> re_lu.
function names.snake(class)
  return native.text(native.C.flow_snake_case, class)
end

-- A name that a user gave; raises if it has a zero byte, at which C and the formats of files would end it.
function names.checked(what, name)
  if type(name) == "string" and name:find("\0", 1, true) then
    require("flow.errors").raise("%s: a name has no zero bytes, got %q", what, name)
  end
  return name
end

-- The class of a record whose name is in snake case, which find(name) knows; nil: it has none.
function names.camel(name, find)
  local class = ("_" .. name):gsub("_(%l)", string.upper):gsub("^Kl", "KL"):gsub("^Logcosh$", "LogCoshError")
  return find(class) >= 0 and class or nil
end

local of_functions = setmetatable({}, { __mode = "k" })      -- the names that were found, by function
local own_files = debug.getinfo(1, "S").source:match("^(@.*)names%.lua$")

-- The smallest name that a table has for a function.
local function key_of(t, f)
  local found
  for key, value in next, t do
    if value == f and type(key) == "string" and (not found or key < found) then found = key end
  end
  return found
end

-- The name of a function among the local variables, parameters and upvalues of a call at this level of the stack, or in a table that one of
-- them holds.
local function name_at(level, f)
  local in_table
  local function look(name, value)
    if value == f and name:find "^[%a_]" then return name end
    if type(value) == "table" then in_table = in_table or key_of(value, f) end
  end
  for i = 1, math.huge do
    local name, value = debug.getlocal(level + 1, i)
    if not name then break end
    if look(name, value) then return name end
  end
  local called = debug.getinfo(level + 1, "f").func
  for i = 1, math.huge do
    local name, value = debug.getupvalue(called, i)
    if not name then break end
    if look(name, value) then return name end
  end
  return in_table
end

-- The name under which a script has a function, as f.__name__ in Python: of a variable, or of a field, that a function of the script which
-- runs just now sees, the outermost one first. Once found it stays. nil: it has none, as a function that is written where it is passed.
function names.of_function(f)
  if of_functions[f] then return of_functions[f] end
  local levels = {}
  for level = 2, math.huge do
    local info = debug.getinfo(level, "S")
    if not info then break end
    if info.what ~= "C" and not (own_files and info.source:sub(1, #own_files) == own_files) then levels[#levels + 1] = level end
  end
  local found
  for i = #levels, 1, -1 do found = found or name_at(levels[i], f) end
  of_functions[f] = found or key_of(_G, f)
  return of_functions[f]
end

-- The names of records, which name(index) gives up to NULL, and of their classes.
function names.of_records(name, find)
  local list, index = {}, 0
  while name(index) ~= nil do
    local own = native.string(name(index))
    list[#list + 1] = own
    list[#list + 1] = names.camel(own, find)
    index = index + 1
  end
  return list
end

-- The keys of a table, which are all texts or all numbers, sorted.
function names.sorted(set)
  local list = {}
  for key in pairs(set) do list[#list + 1] = key end
  table.sort(list)
  return list
end

-- The order of names.keys: numbers by their size, then all others by their texts.
local function before(a, b)
  local first, second = type(a) == "number", type(b) == "number"
  if first ~= second then return first end
  if first then return a < b end
  return tostring(a) < tostring(b)
end

-- The keys of any table in one order: numbers, then texts. That of pairs() is another one in each process.
function names.keys(t)
  local list = {}
  for key in pairs(t) do list[#list + 1] = key end
  table.sort(list, before)
  return list
end

-- Whether the keys of a table are 1 to n and no others: not so of one with a hole, whatever # says of it, nor of an empty one.
function names.is_sequence(t)
  local count = 0
  for key in pairs(t) do
    if type(key) ~= "number" or key < 1 or key ~= math.floor(key) then return false end
    count = count + 1
  end
  return count > 0 and count == table.maxn(t)
end

-- Instead of pairs(), in the order of names.keys, where what is done for an entry has an order: ops of a trace, random numbers, what
-- workers do together.
function names.ordered(t)
  if names.is_sequence(t) then return ipairs(t) end
  local keys, at = names.keys(t), 0
  return function()
    at = at + 1
    return keys[at], t[keys[at]]
  end
end

local named_as = {}      -- by the names of classes: the class after which their objects are named just now

-- The next free automatic name of a class.
function names.auto(class)
  local base = names.snake(named_as[class] or class)
  local count = counters[base] or 0
  counters[base] = count + 1
  return count == 0 and base or base .. "_" .. count
end

-- 1, 2, ...: how many names with this beginning are taken, this one included, as keras.backend.get_uid counts.
function names.count(prefix)
  counters[prefix] = (counters[prefix] or 0) + 1
  return counters[prefix]
end

-- The first result of f(...), in which names.auto(class) names an object as one of `other`. An error of f ends that, too.
function names.instead(class, other, f, ...)
  local earlier = named_as[class]
  named_as[class] = other
  local found = { pcall(f, ...) }
  named_as[class] = earlier
  if not found[1] then error(found[2], 0) end
  return found[2]
end

-- Counting starts again, as after keras.backend.clear_session().
function names.reset()
  counters = {}
end

return names
