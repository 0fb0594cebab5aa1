-- structure.lua: elements with parts by name: { age = tensor, job = strings } where others have one tensor. C knows components side by
-- side; a structure tells which of them are such a table.
--
-- A structure is a list with an entry for each value of an element: false: one component; { "age", "job" }: a table, its components in the
-- order of the names, which are sorted. Elements without tables have the structure false.

local errors = require "flow.errors"
local arguments = require "flow.arguments"

local raise = errors.raise
local structure = {}

-- Whether a value is a table of values by name.
function structure.is_named(value)
  return type(value) == "table" and not getmetatable(value) and arguments.is_options(value) and next(value) ~= nil
end

local function names_of(what, value)
  local names = {}
  for name in pairs(value) do
    if type(name) ~= "string" then
      raise("%s: a table of values by name has the key %s among them: lists stand side by side, { x1, x2, y }", what, tostring(name))
    end
    names[#names + 1] = name
  end
  table.sort(names)
  return names
end

-- The structure of these values, or false.
function structure.of(what, values)
  local made, any = {}, false
  for i = 1, table.maxn(values) do
    made[i] = structure.is_named(values[i]) and names_of(what, values[i]) or false
    any = any or made[i]
  end
  return any and made or false
end

-- The components of values, as the structure says (nil: as they are), and the structure.
function structure.flatten(what, values, wanted)
  local own = structure.of(what, values)
  local expected = wanted
  if wanted == nil then expected = own end
  if not expected and not own then return values, false end
  local list = {}
  for i = 1, table.maxn(values) do
    local names, value = (expected or {})[i], values[i]
    local is_named = own and own[i] and true or false
    if is_named ~= (names and true or false) then
      raise("%s: value %d is %s, expected %s", what, i, is_named and "a table by names" or errors.describe(value),
        names and "a table with " .. table.concat(names, ", ") or "a tensor")
    end
    for k, name in ipairs(names or {}) do
      if own[i][k] ~= name then
        raise("%s: value %d has the names %s, expected %s", what, i, table.concat(own[i], ", "), table.concat(names, ", "))
      end
      list[#list + 1] = value[name]
    end
    if names and #own[i] ~= #names then
      raise("%s: value %d has the names %s, expected %s", what, i, table.concat(own[i], ", "), table.concat(names, ", "))
    end
    if not names then list[#list + 1] = value end
  end
  return list, expected
end

-- The values of components, and how many there are.
function structure.pack(own, components)
  if not own then return components, #components end
  local values, at = {}, 0
  for i, names in ipairs(own) do
    if names then
      values[i] = {}
      for _, name in ipairs(names) do
        at = at + 1
        values[i][name] = components[at]
      end
    else
      at = at + 1
      values[i] = components[at]
    end
  end
  return values, #own
end

-- The structure of elements side by side. datasets: with _structure and _specs.
function structure.join(datasets)
  local made, any = {}, false
  for _, dataset in ipairs(datasets) do
    for i = 1, dataset._structure and #dataset._structure or #dataset._specs do
      made[#made + 1] = dataset._structure and dataset._structure[i] or false
      any = any or made[#made]
    end
  end
  return any and made or false
end

-- Two structures say the same.
function structure.equal(a, b)
  if not a or not b then return a == b end
  for i = 1, math.max(#a, #b) do
    if table.concat(a[i] or {}, "\0") ~= table.concat(b[i] or {}, "\0") then return false end
  end
  return true
end

return structure
