-- errors.lua: how flowlua raises. Every error is one sentence that says what was asked, what was found and what to do, and
-- carries the position of the first line outside lua/flow: the line the user wrote.
--
-- errors.raise is what all of lua/flow calls. The position comes from the stack, not from a level that each caller would have to count: the
-- first frame whose source is not in this folder. Texts that describe values are in errors/texts.lua, loaded by the first error.

local debug = debug
local errors = {
  namespaces = setmetatable({}, { __mode = "k" }),      -- modules and classes, with their titles
  ops = setmetatable({}, { __mode = "k" }),             -- functions that compute ops, with the names that users call: "flow.exp"
  passing = false,    -- the text of the latest raise_passing()
  obstacles = 0,      -- how often the library refused something, or gave a size that has no number in a trace (tensor/fn.lua)
}

local home = "@" .. (debug.getinfo(1, "S").source:match("^@(.*[/\\])") or "./")

-- Whether a chunk's source (debug.getinfo) is a file of lua/flow, or a chunk that flowlua itself loads under a name that begins with
-- "=[flow".
function errors.is_ours(source)
  return source:sub(1, #home) == home or source:sub(1, 6) == "=[flow"
end

-- The innermost frame outside lua/flow as "file:line" (nil: none, as in a bare C host), or the tail call in its place; and the name of the
-- op that was called there, if it was one: several may be at work, one inside of the other.
function errors.position()
  local level, op = 2, nil
  while true do
    local info = debug.getinfo(level, "Slf")
    if not info then return nil, op end
    op = errors.ops[info.func] or op
    if info.what ~= "C" and info.currentline > 0 and not errors.is_ours(info.source) then
      local loaded, tail_calls = pcall(require, "flow.errors.tail_calls")      -- fails where no more files can be opened
      return loaded and tail_calls.position(level) or info.short_src .. ":" .. info.currentline, op
    end
    level = level + 1
  end
end

-- How much of a text that a user gave is in a message.
local MOST_LISTED = 2000

-- At most `most` bytes of a text, with a note how long it is.
local function cut(text, most)
  return #text <= most and text or ("%s... (%d bytes)"):format(text:sub(1, most), #text)
end

-- text with its values. One that should be a number, and is what a user gave instead, is described, so that a message about a wrong value
-- never fails because of that value. values: changed.
local function formatted(text, values, count)
  local ok, result = pcall(string.format, text, unpack(values, 1, count))
  if ok then return result end
  local i = 0
  text = text:gsub("%%[^%a%%]*[%a%%]", function(conversion)
    if conversion == "%%" then return nil end
    i = i + 1
    if type(values[i]) == "number" or conversion:find("[sq]$") and type(values[i]) == "string" then return nil end
    values[i] = errors.describe(values[i])
    return "%s"
  end)
  return text:format(unpack(values, 1, count))
end

-- Text, formatted with the further arguments if there are any, with the caller's line in front. A text that begins with an op, as in
-- "flow.mean: ", gets the name of the one that was called: flow.var is made of others.
function errors.text(text, ...)
  local count = select("#", ...)
  if count > 0 then
    local values = { ... }
    for i = 1, count do
      if type(values[i]) == "string" then values[i] = cut(values[i], MOST_LISTED) end
    end
    text = formatted(text, values, count)
  end
  text = text:gsub("[%z\1-\8\11-\31\127]", "?")      -- as in C: terminals would obey them
  local position, op = errors.position()
  if op then text = text:gsub("^flow%.[%w_]+: ", function() return op .. ": " end) end
  if not position or text:sub(1, #position + 2) == position .. ": " then return text end      -- said on its way through C already
  return position .. ": " .. text
end

-- Raises that text as an error. Never returns; callers write `x or raise(...)`.
function errors.raise(text, ...)
  errors.obstacles = errors.obstacles + 1
  error(errors.text(text, ...), 0)
end

-- An error that is about no value: what is tried is neither right nor wrong by it. errors.attempt raises it again.
function errors.raise_passing(text)
  errors.passing = text
  errors.raise("%s", text)
end

-- The length of a list; raises if it is something else, or if an entry before the last one is nil. message: with a %d for the position,
-- which counts from `before` on.
function errors.check_list(what, list, message, before)
  if type(list) ~= "table" then errors.raise("%s is a list, got %s", what, errors.describe(list)) end
  local count = table.maxn(list)
  for i = 1, count do
    if list[i] == nil then
      errors.raise("%s: " .. (message or "entry %d of the list is nil: is a name misspelt?"), what, i + (before or 0))
    end
  end
  return count
end

-- The depth of what a table at `depth` (nil: the outermost) holds. Walks over tables of users pass it down: a table that contains itself
-- raises.
function errors.deeper(what, depth)
  if (depth or 0) >= 800 then errors.raise("%s: the value is nested more than 800 deep; does a table contain itself?", what) end
  return (depth or 0) + 1
end

local MOST_NESTED = 8

-- Raises if a value that was given as `what` is a list with a hole, { -1, nil, -2 }, or holds one at a position. A table with a metatable
-- is an object, whose entries are its own; entries with names are not looked at.
function errors.check_holes(what, value, depth)
  if type(value) ~= "table" or getmetatable(value) or (depth or 0) > MOST_NESTED then return end
  for i = 1, errors.check_list(what, value) do
    if type(value[i]) == "table" then errors.check_holes(("%s[%d]"):format(what, i), value[i], (depth or 0) + 1) end
  end
end

-- What sentences say of values and of names that are near is in errors/texts.lua, and attempt().
return setmetatable(errors, { __index = function(_, name)
  require "flow.errors.texts"
  return rawget(errors, name)
end })
