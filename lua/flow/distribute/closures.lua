-- closures.lua: whether two functions are one that is written inside of another and made at each call of that: the same code, which sees
-- the same values.

local debug = require("flow.host").debug
local closures = {}

local MOST_DEPTH = 8      -- of functions that functions see

-- The code of a function of Lua, and what it sees outside of itself; nil: it is not one.
local function parts_of(f)
  if type(f) ~= "function" then return nil end
  local info = debug.getinfo(f, "S")
  if info.what == "C" then return nil end
  local found = { source = info.source, line = info.linedefined, last = info.lastlinedefined, count = 0, environment = debug.getfenv(f) }
  for i = 1, math.huge do
    local name, value = debug.getupvalue(f, i)
    if not name then break end
    found.count, found[i] = i, value
  end
  return found
end

-- What `same` compares a function with later, as it is now: what it sees may change then.
function closures.note(f, depth, seen)
  local found = parts_of(f)
  depth, seen = depth or 1, seen or {}
  if not found or depth > MOST_DEPTH or seen[f] then return { f = f } end
  seen[f] = true
  found.f, found.inner = f, {}
  for i = 1, found.count do
    if type(found[i]) == "function" then found.inner[i] = closures.note(found[i], depth + 1, seen) end
  end
  seen[f] = nil
  return found
end

-- Whether g is the noted function, or the same code that sees the same values.
function closures.same(note, g)
  if rawequal(note.f, g) then return true end
  local other = note.count and parts_of(g)
  if not other or other.count ~= note.count or other.line ~= note.line or other.last ~= note.last or other.source ~= note.source
    or other.environment ~= note.environment then
    return false
  end
  for i = 1, note.count do
    if not rawequal(note[i], other[i]) and not (note.inner[i] and closures.same(note.inner[i], other[i])) then return false end
  end
  note.code = note.code or string.dump(note.f)      -- two may stand in one line
  return note.code == string.dump(g)
end

return closures
