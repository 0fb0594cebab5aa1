-- structure.lua: elements with parts: { age = tensor, job = strings } or { x, y } where others have one tensor. C knows components side by
-- side; a structure tells which of them belong together.
--
-- A structure is a list with an entry for each value of an element: false: one component; { "age", "job" }: a table, its components in the
-- order of the names, which are sorted; { parts = { ... } }: a list, with an entry for each of its values; { names = ..., parts = ... }: a
-- table by name, of which some values have parts themselves. Elements whose values are single components have the structure false.

local errors = require "flow.errors"
local arguments = require "flow.arguments"

local raise = errors.raise
local structure = {}
local NIL = "value %d is nil: is a name misspelt?"

-- Whether a value is a table of values by name.
function structure.is_named(value)
  return type(value) == "table" and not getmetatable(value) and arguments.is_options(value) and next(value) ~= nil
end

-- The names of a table by names, sorted; raises unless all keys are texts.
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

-- Whether a value is a list of values that stand together: its first one is a tensor, or has parts itself.
local function is_list(value)
  local depth
  repeat
    if type(value) ~= "table" or getmetatable(value) then return false end
    local first = value[1]
    depth = errors.deeper("a list", depth)
    if type(first) == "cdata" or type(first) == "table" and (getmetatable(first) or structure.is_named(first)) then return true end
    value = first
  until type(first) ~= "table"
  return false
end

-- The entry of a structure for one value; false for a single component. Raises for a list with a hole.
local function node_of(what, value, depth)
  local names = structure.is_named(value) and names_of(what, value)
  if not names and not is_list(value) then return false end
  if not names then errors.check_list(what, value, NIL) end
  local parts, is_deep = {}, not names
  depth = errors.deeper(what, depth)
  for i = 1, names and #names or #value do
    parts[i] = node_of(what, value[names and names[i] or i], depth)
    is_deep = is_deep or parts[i]
  end
  return is_deep and { names = names or nil, parts = parts } or names
end

-- The structure of these values, or false.
function structure.of(what, values)
  local made, any = {}, false
  for i = 1, table.maxn(values) do
    made[i] = node_of(what, values[i])
    any = any or made[i]
  end
  return any and made or false
end

-- Whether a structure has parts in parts, or lists of them.
function structure.is_deep(own)
  for _, node in ipairs(own or {}) do
    if node and node.parts then return true end
  end
  return false
end

-- An entry in words, for messages.
local function text_of(node)
  if not node then return "a tensor" end
  if not node.parts then return "a table with " .. table.concat(node, ", ") end
  return node.names and "a table with " .. table.concat(node.names, ", ") or ("a list of %d"):format(#node.parts)
end

-- Appends the components of a value.
local function add(what, i, node, value, list)
  if not node then
    list[#list + 1] = value
    return
  end
  local names = node.names or not node.parts and node
  for k = 1, names and #names or #node.parts do
    add(what, i, node.parts and node.parts[k], value[names and names[k] or k], list)
  end
end

-- Whether two entries of structures are equal.
local function same(a, b)
  if not a or not b then return not a and not b end
  if (a.parts == nil) ~= (b.parts == nil) then return false end
  if table.concat(a.names or not a.parts and a or {}, "\0") ~= table.concat(b.names or not b.parts and b or {}, "\0") then return false end
  for i = 1, a.parts and math.max(#a.parts, #b.parts) or 0 do
    if not same(a.parts[i], b.parts[i]) or a.parts[i] == nil or b.parts[i] == nil then return false end
  end
  return true
end

-- The components of values, as the structure says (nil: as they are), and the structure.
function structure.flatten(what, values, wanted)
  errors.check_list(what, values, NIL)
  local own = structure.of(what, values)
  local expected = wanted
  if wanted == nil then expected = own end
  if not expected and not own then return values, false end
  local list = {}
  for i = 1, table.maxn(values) do
    local node, found = (expected or {})[i] or false, own and own[i] or false
    if not same(node, found) then
      raise("%s: value %d is %s, expected %s", what, i, found and text_of(found) or errors.describe(values[i]), text_of(node))
    end
    add(what, i, node, values[i], list)
  end
  return list, expected
end

-- A setting of components that was given in their structure, { text = { -1 }, age = {} }, as a list with an entry for each of them.
-- Settings without names are what they are. A missing one is the default, or an error that calls the setting `option`.
function structure.settings(what, option, own, value, default)
  local values, is_by_name = structure.is_named(value) and { value } or value, false
  for _, entry in ipairs(type(values) == "table" and values or {}) do is_by_name = is_by_name or structure.is_named(entry) end
  if not is_by_name then return value end
  local list = {}
  local function put(node, entry, name)
    if not node or entry == nil then
      if structure.is_named(entry) then raise("%s: %s has a table with names where elements have %s", what, option, text_of(node)) end
      if entry == nil then entry = default end
      if entry == nil then raise("%s: %s has no entry for %s", what, option, tostring(name)) end
      list[#list + 1] = entry
      return
    end
    local names, known = node.names or not node.parts and node, {}
    for k = 1, names and #names or #node.parts do
      local key = names and names[k] or k
      known[key] = true
      put(node.parts and node.parts[k], entry[key], key)
    end
    for key in pairs(entry) do
      if not known[key] then raise("%s: %s has an entry %s, elements have %s", what, option, tostring(key), text_of(node)) end
    end
  end
  for i = 1, own and #own or 1 do put(own and own[i], values[i], i) end
  return list
end

-- The value of an entry, whose components begin at position `at`, and the position after them.
local function packed(node, components, at)
  if not node then return components[at], at + 1 end
  local names, value = node.names or not node.parts and node, {}
  for k = 1, names and #names or #node.parts do
    value[names and names[k] or k], at = packed(node.parts and node.parts[k], components, at)
  end
  return require "flow.classes.printed" (value), at
end

-- The number of components of an entry of a structure.
function structure.count(node)
  if not node then return 1 end
  if not node.parts then return #node end
  local count = 0
  for _, part in ipairs(node.parts) do count = count + structure.count(part) end
  return count
end

-- The values of components, and how many there are.
function structure.pack(own, components)
  if not own then return components, #components end
  local values, at = {}, 1
  for i = 1, #own do values[i], at = packed(own[i], components, at) end
  return values, #own
end

-- The components of one value of an element, as entry `node` of its structure says.
function structure.components(node, value)
  local list = {}
  add("", 0, node, value, list)
  return list
end

-- Texts of components, with those of a list in brackets: one text for each value of an element.
function structure.bracketed(own, texts)
  if not structure.is_deep(own) then return texts end
  local function join(node, at)
    if not node then return texts[at], at + 1 end
    local parts = {}
    for k = 1, node.parts and #node.parts or #node do parts[k], at = join(node.parts and node.parts[k], at) end
    return (node.names or not node.parts) and table.concat(parts, ", ") or "(" .. table.concat(parts, ", ") .. ")", at
  end
  local list, at = {}, 1
  for i = 1, #own do list[i], at = join(own[i], at) end
  return list
end

-- The entry of a structure for an element of a data set, with _structure and _specs, as one value: a list where it has several values.
function structure.of_element(dataset)
  local own, parts = dataset._structure, {}
  for k = 1, own and #own or #dataset._specs do parts[k] = own and own[k] or false end
  return #parts == 1 and parts[1] or #parts > 1 and { parts = parts }
end

-- The structure of a number before the values of elements.
function structure.numbered(dataset)
  return dataset._structure and { false, unpack(dataset._structure) }
end

-- A structure as a text.
function structure.text(own)
  local texts = {}
  for i, node in ipairs(own) do
    local names = node and (node.names or not node.parts and node)
    texts[i] = names and table.concat(names, ",") .. ":" or ""
    if node and node.parts then texts[i] = texts[i] .. structure.text(node.parts) end
  end
  return "{" .. table.concat(texts, ";") .. "}"
end

-- Two structures say the same.
function structure.equal(a, b)
  if not a or not b then return a == b end
  for i = 1, math.max(#a, #b) do
    if not same(a[i], b[i]) or a[i] == nil or b[i] == nil then return false end
  end
  return true
end

return structure
