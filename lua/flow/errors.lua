-- errors.lua: how flowlua raises. Every error is one sentence that says what was asked, what was found and what to do, and
-- carries the position of the first line outside lua/flow: the line the user wrote.

local errors = {
  namespaces = setmetatable({}, { __mode = "k" }),      -- modules and classes, with their titles
}

local home = "@" .. (debug.getinfo(1, "S").source:match("^@(.*[/\\])") or "./")

function errors.is_ours(source)
  return source:sub(1, #home) == home or source:sub(1, 6) == "=[flow"
end

-- The innermost frame outside lua/flow as "file:line" (nil if there is none, as in a bare C host).
function errors.position()
  local level = 2
  while true do
    local info = debug.getinfo(level, "Sl")
    if not info then return nil end
    if info.what ~= "C" and info.currentline > 0 and not errors.is_ours(info.source) then
      return info.short_src .. ":" .. info.currentline
    end
    level = level + 1
  end
end

-- What a message quotes of a text that a user gave: a long one is cut.
local MOST_QUOTED, MOST_LISTED = 100, 2000

local function cut(text, most)
  return #text <= most and text or ("%s... (%d bytes)"):format(text:sub(1, most), #text)
end

-- Text, formatted with the further arguments if there are any, with the caller's line in front.
function errors.text(text, ...)
  local count = select("#", ...)
  if count > 0 then
    local values = { ... }
    for i = 1, count do
      if type(values[i]) == "string" then values[i] = cut(values[i], MOST_LISTED) end
    end
    text = text:format(unpack(values, 1, count))
  end
  local position = errors.position()
  return position and position .. ": " .. text or text
end

-- Raises it.
function errors.raise(text, ...)
  error(errors.text(text, ...), 0)
end

-- A value as error messages show it: the number 3, "same", nil, a table.
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
    return text:find("^Tensor") and "a " .. text:gsub("^T", "t") or text
  end
  if kind == "table" then
    local title, metatable = errors.namespaces[value], getmetatable(value)
    if title then return (title:find("%u%w*$") and "the class %s itself" or "the module %s"):format(title) end
    local class = type(metatable) == "table" and rawget(metatable, "class")
    if class then return (class.name:find("^[AEIOU]") and "an " or "a ") .. class.name end
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

-- The position of the nearest of a list of texts, nil if none is near: the library's rule, which flow.ffi puts in this place.
function errors.nearest_in(name, list, most)
  require "flow.ffi"
  return errors.nearest_in(name, list, most)
end

-- The nearest of the names (keys of a table, or its list part), nil if none is near: within `most` edits, by default a
-- third of its letters.
function errors.nearest(name, names, most)
  local list = listed(names)
  local position = errors.nearest_in(name, list, most)
  return position and list[position]
end

-- '; did you mean "units"?' for it, "" if none is near.
function errors.suggestion(name, names)
  local best = errors.nearest(name, names)
  return best and ('; did you mean "%s"?'):format(best) or ""
end

-- The end of the sentence that says that a module has no field of this name, where other libraries have one; nil: none is known.
function errors.elsewhere(module, name)
  local place = (require("flow.elsewhere")[module] or {})[name]
  return place and ": " .. place
end

-- The end of a sentence that says that a name is unknown: '; did you mean "adam"? There are adam, sgd'.
function errors.choices(name, names)
  local list = listed(names)
  return (errors.suggestion(name, list):gsub("^$", ".")) .. " There are " .. table.concat(list, ", ")
end

-- The length of a list; raises if an entry before the last one is nil. message: with a %d for the position, which counts from `before` on.
function errors.check_list(what, list, message, before)
  local count = table.maxn(list)
  for i = 1, count do
    if list[i] == nil then
      errors.raise("%s: " .. (message or "entry %d of the list is nil: is a name misspelt?"), what, i + (before or 0))
    end
  end
  return count
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

return errors
