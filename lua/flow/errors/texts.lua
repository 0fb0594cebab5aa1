-- texts.lua: what the sentences of errors say of a value, of a name that is not known and of those that are near it; and errors
-- that are tried. The second half of errors.lua, in whose table these functions are; it is loaded when the first of them is called.

local debug = require("flow.host").debug
local errors = require "flow.errors"

local MOST_QUOTED = 100      -- of a text that a user gave

-- A value as error messages show it: the number 3, the string "same", nil, a tensor float32 {2}, a Dense, the module flow.layers.
function errors.describe(value)
  local kind = type(value)
  if kind == "number" then return ("the number %.14g"):format(value) end
  if kind == "string" then
    if #value <= MOST_QUOTED then return ("the string %q"):format(value) end
    return ("the string %q... of %d bytes"):format(value:sub(1, MOST_QUOTED), #value)
  end
  if kind == "nil" or kind == "boolean" then return tostring(value) end
  if kind == "cdata" then
    local text = tostring(value):match("^[^\n]*")
    if text:find("^%-?%d+U?LL$") then return ("the C integer %s (tonumber makes a number of it)"):format(text) end
    return text:find("^Tensor") and "a " .. text:gsub("^T", "t") or text
  end
  if kind == "table" then
    local title, metatable = errors.namespaces[value], getmetatable(value)
    if title then return (title:find("%u%w*$") and "the class %s itself" or "the module %s"):format(title) end
    local class = type(metatable) == "table" and rawget(metatable, "class")
    if class then return (class.name:find("^[AEIOU]") and "an " or "a ") .. class.name end
    local own = type(metatable) == "table" and rawget(metatable, "__tostring") and tostring(value):match "^Variable [^\n]*"
    if own then return "the v" .. own:sub(2) end
    if metatable then return "a table with a metatable" end      -- plain ones are lists and options
  end
  return "a " .. kind
end

-- The texts of a table of names, its keys or its list part, in order.
local function listed(names)
  local list = {}
  for key, value in pairs(names) do
    local name = type(key) == "number" and value or key
    if type(name) == "string" then list[#list + 1] = name end
  end
  table.sort(list)
  return list
end

require "flow.ffi"      -- which gives errors.nearest_in(name, list, most), the library's rule: the position of the nearest text, or nil

-- The nearest of the names (keys of a table, or its list part), nil if none is near: within `most` edits, by default a
-- third of its letters.
function errors.nearest(name, names, most)
  if type(name) ~= "string" then return nil end
  local list = listed(names)
  local position = errors.nearest_in(name, list, most)
  return position and list[position]
end

-- The end of a message about an unknown name: '; did you mean "units"?'; without a near name '; there are ResNet50, ResNet101', the names
-- that begin with it; else "".
function errors.suggestion(name, names)
  if type(name) ~= "string" then return "" end
  local best, longer, least = errors.nearest(name, names), {}, 3      -- letters that say enough
  for _, known in ipairs(not best and #name >= least and listed(names) or {}) do
    if known:sub(1, #name):lower() == name:lower() then longer[#longer + 1] = known end
  end
  if #longer == 1 then best = longer[1] end
  if best then return ('; did you mean "%s"?'):format(best) end
  return #longer > 0 and "; there are " .. table.concat(longer, ", ") or ""
end

-- Modules that have flow's operations, which other libraries call by the same names in all of them: tf.reduce_mean, tf.math.reduce_mean.
local HAS_OPERATIONS = { ["flow.math"] = true, ["flow.nn"] = true, ["flow.keras.ops"] = true }

-- The end of the sentence that says that a module has no field of this name, where other libraries have one; nil: none is known.
function errors.elsewhere(module, name)
  if module == "tensor" and name:find ":" then
    return ": a slice is a list of positions: x[{ { 2, 3 } }] has rows 2 and 3, x[{ {}, 1 }] the first column"
  end
  local places = require "flow.errors.elsewhere"
  local place = (places[module] or {})[name] or HAS_OPERATIONS[module] and places.flow[name]
  return place and ": " .. place
end

-- The names that a module has, or gets when it is asked (names of its metatable), or finds elsewhere (near), as keys.
local function names_in(module)
  local known, metatable = {}, getmetatable(module)
  for key in pairs(module) do
    if type(key) == "string" and not key:find("^_") then known[key] = true end
  end
  for _, names in pairs { metatable.names or nil, metatable.near or nil } do
    for _, key in ipairs(names() or {}) do known[key] = true end
  end
  return known
end

-- Raises for a plain value that a script assigns to a name which a module does not have: nobody would read it. Where a function sets it, it
-- is named.
function errors.check_assigned(title, module, name, value)
  local kind = type(value)
  if kind ~= "number" and kind ~= "string" and kind ~= "boolean" or type(name) ~= "string" or name:find("^_") then return end
  local known, settable = names_in(module), {}
  for key in pairs(known) do
    local set = key:match "^set_(.+)"
    if set then settable[set] = true end
  end
  local near = errors.nearest(name, settable)
  errors.raise("%s has no field %q that could be set%s", title, name,
    near and (": call %s.set_%s(...)"):format(title, near) or errors.elsewhere(title, name) or errors.suggestion(name, known))
end

-- The end of the sentence that says that a module has no such name: where it is, or which one is meant.
function errors.instead(title, module, name)
  return errors.elsewhere(title, name) or errors.suggestion(name, names_in(module))
end

-- Gives a module that has no metatable of its own one by which a field that it does not have is an error.
function errors.strict(title, module)
  setmetatable(module, {
    __index = function(fields, name)
      errors.raise("%s has no %q%s", title, tostring(name), errors.elsewhere(title, name) or errors.suggestion(tostring(name), fields))
    end,
    __newindex = function(fields, name, value)
      errors.check_assigned(title, fields, name, value)
      rawset(fields, name, value)
    end,
  })
end

-- The end of a sentence that says that a name is unknown: '; did you mean "adam"? There are adam, sgd'.
function errors.choices(name, names)
  local list = listed(names)
  return (errors.suggestion(name, list):gsub("^$", ".")) .. " There are " .. table.concat(list, ", ")
end

-- Raises unless every name in the option table is one of the known ones (keys of `known`). options may be nil.
function errors.check_options(what, options, known)
  if options == nil then return {} end
  if type(options) ~= "table" then
    errors.raise("%s: options are a table of names, got %s", what, errors.describe(options))
  end
  for name in pairs(options) do
    if not known[name] then
      errors.raise("%s: unknown option %s%s", what, type(name) == "string" and ("%q"):format(name) or tostring(name),
        type(name) == "string" and errors.suggestion(name, known) or "")
    end
  end
  return options
end

-- What f(...) returns. A function of Lua's own libraries, such as tostring, names the line that called it, which is ours: its message gets
-- the user's line, and what it was called for.
function errors.of_library(what, f, ...)
  if type(f) ~= "function" or debug.getinfo(f, "S").what ~= "C" then return f(...) end
  local results = { pcall(f, ...) }
  if not results[1] then errors.raise("%s: %s", what, (tostring(results[2]):gsub("^[^\n]-:%d+: ", ""))) end
  return unpack(results, 2, table.maxn(results))
end

-- As pcall, for what has another way where f fails: a file that is older, a model that is not compiled. That is so if f fails by what it is
-- given, not for want of memory.
function errors.attempt(f, ...)
  local ok, result = pcall(f, ...)
  local passing = errors.passing
  if not ok and type(result) == "string" and (result == "not enough memory" or passing and result:sub(-#passing) == passing) then
    error(result, 0)
  end
  return ok, result
end

return errors
