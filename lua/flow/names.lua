-- names.lua: Keras' automatic names: conv2d, conv2d_1, ... counted per Lua state; and names in order.

local native = require "flow.ffi"

local names = {}
local counters = {}

-- Keras' snake case: Conv2D -> conv2d, MaxPooling2D -> max_pooling2d, ReLU -> re_lu.
function names.snake(class)
  return native.text(native.C.flow_snake_case, class)
end

-- The class of a record whose name is in snake case, which find(name) knows; nil: it has none.
function names.camel(name, find)
  local class = ("_" .. name):gsub("_(%l)", string.upper):gsub("^Kl", "KL"):gsub("^Logcosh$", "LogCoshError")
  return find(class) >= 0 and class or nil
end

-- The name under which a script defines a function, as f.__name__ in Python. It is read from the source line that begins the function; nil:
-- that line names none.
function names.of_function(f)
  local info = debug.getinfo(f, "S")
  local source, text = info.source, nil
  if info.what ~= "Lua" then return nil end
  if source:find("^@") then
    local file = io.open(source:sub(2), "r")
    if not file then return nil end
    for _ = 1, info.linedefined do text = file:read("*l") end
    file:close()
  elseif not source:find("^=") then
    local line = 0
    for one in (source .. "\n"):gmatch "(.-)\n" do
      line = line + 1
      if line == info.linedefined then text = one end
    end
  end
  text = text or ""
  return text:match("function%s+[%w_.:]-([%a_][%w_]*)%s*%(") or text:match("^%s*local%s+([%a_][%w_]*)%s*=%s*function%s*%(")
    or text:match("^%s*[%w_.]+%.([%a_][%w_]*)%s*=%s*function%s*%(")
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

-- Instead of pairs(), in the order of names.keys, where what is done for an entry has an order: ops of a trace, random numbers, what
-- workers do together.
function names.ordered(t)
  local count = 0
  for _ in pairs(t) do count = count + 1 end
  if count == #t then return ipairs(t) end
  local keys, at = names.keys(t), 0
  return function()
    at = at + 1
    return keys[at], t[keys[at]]
  end
end

-- The next free automatic name of a class.
function names.auto(class)
  local base = names.snake(class)
  local count = counters[base] or 0
  counters[base] = count + 1
  return count == 0 and base or base .. "_" .. count
end

-- Counting starts again, as after keras.backend.clear_session().
function names.reset()
  counters = {}
end

return names
