-- build_shapes.lua: the shapes that a script gives to build(), checked: see build.lua.

local arguments = require "flow.arguments"
local errors = require "flow.errors"
local object = require "flow.object"
local shapes = require "flow.tensor.shapes"

-- The dimensions of a shape that a script gave to build(), from 0, -1 for a size that is not known. The rows of a batch that is traced are
-- not known; the library's own calls have them as other numbers below 0.
local function checked(what, shape)
  local result = {}
  for i = 1, errors.check_list(what .. ": the shape", shape) do
    local n = shape[i]
    if shapes.is_rows(n) then n = -1 end
    if type(n) ~= "number" or n < (i == 1 and -2 ^ 53 or -1) or n ~= math.floor(n) or n >= 2 ^ 53 then
      errors.raise("%s: dimension %d of a shape is a whole number from 0, or -1 for a size that is not known, got %s", what, i,
        errors.describe(shape[i]))
    end
    result[i] = n
  end
  return result
end

-- The shapes that a script gave to build(): of one input, then true, or a list of several.
return function(layer, given)
  local what = object.title(layer) .. ": build()"
  if arguments.is_options(given) and next(given) ~= nil then given = given.input_shape end
  if type(given) ~= "table" then errors.raise("%s takes a shape such as {-1, 4}, got %s", what, errors.describe(given)) end
  if type(given[1]) ~= "table" or getmetatable(given[1]) then return { checked(what, given) }, true end
  local list = {}
  for i = 1, errors.check_list(what .. ": the list of shapes", given) do
    if type(given[i]) ~= "table" then
      errors.raise("%s: entry %d of a list of shapes is %s, expected a shape such as {-1, 4}", what, i, errors.describe(given[i]))
    end
    list[i] = checked(what, given[i])
  end
  return list, false
end
