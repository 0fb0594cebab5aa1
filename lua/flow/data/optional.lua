-- optional.lua: what iterators give as their next element or none: get_next() and get_next_as_optional() of those of data sets, and of what
-- strategies divide.

local errors = require "flow.errors"
local object = require "flow.object"

local Optional = object.class "Optional"

-- Whether there was one more element.
function Optional:has_value() return self._count > 0 end

-- Its values; raises at the end.
function Optional:get_value()
  if self._count == 0 then errors.raise("get_value: the data set has no more elements: has_value() is false there") end
  return unpack(self._values, 1, self._count)
end

local methods = {}

function methods:get_next_as_optional()
  local function made(...)
    return object.new(Optional, { _values = { ... }, _count = (...) ~= nil and select("#", ...) or 0 })
  end
  return made(self:next())
end

-- As tf.data's iterators it raises at the end.
function methods:get_next()
  local function checked(first, ...)
    if first == nil then errors.raise("get_next: the data set has no more elements: next() returns nil there") end
    return first, ...
  end
  return checked(self:next())
end

return methods
