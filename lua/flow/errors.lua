-- errors.lua: how flowlua raises. Every error is one sentence that says what was asked, what was found and what to do, and
-- carries the position of the first line outside lua/flow: the line the user wrote.

local errors = {}

local home = "@" .. (debug.getinfo(1, "S").source:match("^@(.*[/\\])") or "./")

local function is_ours(source)
  return source:sub(1, #home) == home or source:sub(1, 6) == "=[flow"
end

-- The innermost frame outside lua/flow as "file:line" (nil if there is none, as in a bare C host).
function errors.position()
  local level = 2
  while true do
    local info = debug.getinfo(level, "Sl")
    if not info then return nil end
    if info.what ~= "C" and info.currentline > 0 and not is_ours(info.source) then
      return info.short_src .. ":" .. info.currentline
    end
    level = level + 1
  end
end

-- Raises text, formatted with the further arguments if there are any, at the caller's line.
function errors.raise(text, ...)
  if select("#", ...) > 0 then text = text:format(...) end
  local position = errors.position()
  error(position and position .. ": " .. text or text, 0)
end

-- A value as error messages show it: the number 3, "same", nil, a table.
function errors.describe(value)
  local kind = type(value)
  if kind == "number" then return ("the number %.14g"):format(value) end
  if kind == "string" then return ("the string %q"):format(value) end
  if kind == "nil" or kind == "boolean" then return tostring(value) end
  if kind == "cdata" then
    local text = tostring(value):match("^[^\n]*")
    return text:find("^Tensor") and "a " .. text:gsub("^T", "t") or text
  end
  return "a " .. kind
end

local function distance(a, b)   -- Levenshtein, case-insensitive
  a, b = a:lower(), b:lower()
  local row = {}
  for j = 0, #b do row[j] = j end
  for i = 1, #a do
    local diagonal = row[0]
    row[0] = i
    for j = 1, #b do
      local cost = a:byte(i) == b:byte(j) and 0 or 1
      diagonal, row[j] = row[j], math.min(row[j] + 1, row[j - 1] + 1, diagonal + cost)
    end
  end
  return row[#b]
end

-- '; did you mean "units"?' for the nearest of the names (keys of a table, or its list part), "" if none is near.
function errors.suggestion(name, names)
  local best, least = nil, math.max(1, math.floor(#name / 3)) + 1
  for key, value in pairs(names) do
    local candidate = type(key) == "number" and value or key
    if type(candidate) == "string" then
      local d = distance(name, candidate)
      if d < least or (d == least and best and candidate < best) then best, least = candidate, d end
    end
  end
  return best and ('; did you mean "%s"?'):format(best) or ""
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
