-- item_keys.lua: the key of x[key] as Keras' files have it: a list of positions and slices, which count from 0 and leave their ends out,
-- while ranges here count from 1 and take both ends. Used by operations.lua.

local errors = require "flow.errors"
local json = require "flow.json"
local symbolic = require "flow.layers.symbolic"

local raise = errors.raise

local item_keys = {}

local function value_or_null(value) return value == nil and json.null or value end

-- The end that Python leaves out for the last position that a range takes; nil: none, it goes on to the end of the axis.
local function stop_of(to, step)
  if to == nil or step > 0 and to == -1 or step < 0 and to == 1 then return nil end
  if step > 0 then return to >= 0 and to or to + 1 end
  return to > 0 and to - 2 or to - 1
end

-- x[key] as Keras' list of positions and slices.
function item_keys.to_file(key)
  local list = json.list()
  for i, entry in ipairs(type(key) == "table" and key or { key }) do
    if type(entry) == "number" then list[i] = entry > 0 and entry - 1 or entry
    elseif entry == false then list[i] = json.null
    elseif entry == "..." then list[i] = { class_name = "__ellipsis__", config = {} }
    else
      local from, to, step = entry[1], entry[2], entry[3]
      list[i] = { class_name = "__slice__", config = { start = value_or_null(from and (from > 0 and from - 1 or from)),
        stop = value_or_null(stop_of(to, step or 1)), step = value_or_null(step) } }
    end
  end
  return list
end

-- A slice of an axis of n elements as a range. Python cuts ends that are beyond the axis. What is missing stays out and what counts from
-- the end still does, so that they are written as they were read. Where n < 0, not known, ends are taken as they are.
local function range_of(start, stop, step, n)
  local by = step or 1
  if n < 0 and by < 0 then raise("an operation goes back along an axis whose size is not known") end
  local least, most = by > 0 and 0 or -1, by > 0 and n or n - 1
  local function cut(at, missing)
    if at == nil then return missing end
    return math.min(math.max(at < 0 and at + n or at, least), most)
  end
  if n >= 0 then
    local first, last = cut(start, by > 0 and 0 or most), cut(stop, by > 0 and n or least)
    if by > 0 and last <= first or by < 0 and last >= first then return { 1, 0 } end      -- nothing
    if start and (start >= n or start < -n) then start = first end
    if stop and (stop > n or stop < -n) then stop = by > 0 and last or nil end
  end
  local to = stop and (by > 0 and (stop >= 0 and stop or stop - 1) or stop >= 0 and stop + 2 or stop + 1) or nil
  return { start and (start >= 0 and start + 1 or start), to, step }
end

-- A position of a file as a whole number; nil: there is none.
local function position(value)
  if value == nil or value == json.null then return nil end
  if type(value) ~= "number" or value % 1 ~= 0 then raise("a part of a tensor begins or ends at %s", errors.describe(value)) end
  return value
end

-- What to index x, a symbolic tensor, with for the key of a file.
function item_keys.from_file(key, x)
  if not symbolic.is(x) then raise("an operation takes a part of %s, expected a tensor of the model", errors.describe(x)) end
  local shape, list = x.shape, {}
  local entries = type(key) == "table" and key.class_name == nil and key or { key }
  local axis, named = 1, 0
  for _, entry in ipairs(entries) do
    if entry ~= false and not (type(entry) == "table" and entry.class_name == "__ellipsis__") then named = named + 1 end
  end
  for i, entry in ipairs(entries) do
    if type(entry) == "number" then list[i] = position(entry) >= 0 and entry + 1 or entry
    elseif entry == false then list[i] = false      -- null, as config.lua hands it on
    elseif type(entry) == "table" and entry.class_name == "__ellipsis__" then
      list[i] = "..."
      axis = axis + #shape - named - 1
    elseif type(entry) == "table" and entry.class_name == "__slice__" then
      local slice = type(entry.config) == "table" and entry.config or {}
      list[i] = range_of(position(slice.start), position(slice.stop), position(slice.step), shape[axis] or -1)
    else raise("an operation takes a part of a tensor in a way that is not supported") end
    axis = axis + (entry == false and 0 or 1)
  end
  return list
end

return item_keys
