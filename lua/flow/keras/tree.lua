-- tree.lua: flow.keras.tree: nested lists and tables of anything, as keras.tree sees them. Leaves come in the order of lists, and of a
-- table's keys, sorted. Tensors, layers and other objects are leaves.
--
--   tree.map_structure(function(a, b) return a + b end, { x = 1, y = { 2, 3 } }, { x = 10, y = { 20, 30 } })      11, { 22, 33 }
--
-- A structure is a table without a metatable, or a list that json.list marked; anything else is a leaf. Lua cannot keep nil in a table, so
-- there are no empty leaves as Python's None. Structures are not changed; results are new tables, marked as lists where the first structure
-- was. A table that contains itself has no end: walking it raises.

local errors = require "flow.errors"
local json = require "flow.json"
local signature = require "flow.signature"

local raise, takes = errors.raise, signature.takes
local tree = signature.module "flow.keras.tree"

local WHERE = "flow.keras.tree"

local function nested(value) return type(value) == "table" and (not getmetatable(value) or json.is_list(value)) end

-- The order of keys: numbers, then texts.
local function before(a, b)
  if type(a) == type(b) then return a < b end
  return type(a) == "number"
end

-- The keys of a table in this order; raises for keys of another type.
local function keys_of(node)
  local keys = {}
  for key in pairs(node) do
    if type(key) ~= "number" and type(key) ~= "string" then
      raise("flow.keras.tree: a key is %s; keys are positions and names", errors.describe(key))
    end
    keys[#keys + 1] = key
  end
  table.sort(keys, before)
  return keys
end

-- Where something is, for messages: "at y.2".
local function place(path) return #path == 0 and "at the top" or ("at %s"):format(table.concat(path, ".")) end

-- Calls visit(path, leaf) for each leaf; path: the keys down to it, a list that is only lent.
local function walk(node, visit, path)
  if not nested(node) then return visit(path, node) end
  errors.deeper(WHERE, #path)
  for _, key in ipairs(keys_of(node)) do
    path[#path + 1] = key
    walk(node[key], visit, path)
    path[#path] = nil
  end
end

-- Whether it is a list or table with its own entries.
takes("structure", true)
function tree.is_nested(structure) return nested(structure) end

-- All leaves as a list.
takes("structure", true)
function tree.flatten(structure)
  local list = {}
  walk(structure, function(_, leaf) list[#list + 1] = leaf end, {})
  return list
end

-- A list of { path, leaf }: the path is the list of keys down to the leaf.
takes("structure", true)
function tree.flatten_with_path(structure)
  local list = {}
  walk(structure, function(path, leaf) list[#list + 1] = { { unpack(path) }, leaf } end, {})
  return list
end

-- Raises unless both have the same keys at each level.
local function check_same(what, a, b, path)
  if nested(a) ~= nested(b) then
    raise("%s: %s one has %s, the other %s", what, place(path), errors.describe(a), errors.describe(b))
  end
  if not nested(a) then return end
  errors.deeper(what, #path)
  local keys, others = keys_of(a), keys_of(b)
  for i = 1, math.max(#keys, #others) do
    if keys[i] ~= others[i] then
      raise("%s: %s one has the key %s, the other %s", what, place(path), tostring(keys[i]), tostring(others[i]))
    end
  end
  for _, key in ipairs(keys) do
    path[#path + 1] = key
    check_same(what, a[key], b[key], path)
    path[#path] = nil
  end
end

takes("a, b", true)
function tree.assert_same_structure(a, b) check_same("flow.keras.tree.assert_same_structure", a, b, {}) end
takes("a, b", true)
function tree.assert_same_paths(a, b) check_same("flow.keras.tree.assert_same_paths", a, b, {}) end

-- The structure of the first, with f(leaves...) of each place of all of them.
local function map(shallow, f, others, depth)
  if not nested(shallow) then return f(unpack(others)) end
  depth = errors.deeper(WHERE, depth)
  local result = json.is_list(shallow) and json.list() or {}
  for _, key in ipairs(keys_of(shallow)) do
    local inner = {}
    for i, other in ipairs(others) do inner[i] = other[key] end
    result[key] = map(shallow[key], f, inner, depth)
  end
  return result
end

-- A new structure like the first one, with f(leaf of the first, leaf of the second, ...) in place of each leaf. Raises unless all
-- structures have the same keys.
takes("f: callable, structures...", true)
function tree.map_structure(f, ...)
  local structures = { ... }
  signature.check_callable("flow.keras.tree.map_structure", f)
  if #structures == 0 then raise("flow.keras.tree.map_structure takes a function and at least one structure") end
  for i = 2, #structures do check_same("flow.keras.tree.map_structure", structures[1], structures[i], {}) end
  return map(structures[1], f, structures)
end

-- As map_structure, down to the leaves of shallow only: f gets what the structures have in these places, leaves or tables. They may have
-- more keys than shallow; raises where one lacks a key of it.
takes("shallow, f, structures...", true)
function tree.map_structure_up_to(shallow, f, ...)
  signature.check_callable("flow.keras.tree.map_structure_up_to", f)
  local function check(upper, lower, path)
    if not nested(upper) then return end
    errors.deeper("flow.keras.tree.map_structure_up_to", #path)
    if not nested(lower) then
      raise("flow.keras.tree.map_structure_up_to: %s a structure has %s, expected a table", place(path), errors.describe(lower))
    end
    for _, key in ipairs(keys_of(upper)) do
      if lower[key] == nil then
        raise("flow.keras.tree.map_structure_up_to: %s a structure has no %s", place(path), tostring(key))
      end
      path[#path + 1] = key
      check(upper[key], lower[key], path)
      path[#path] = nil
    end
  end
  for _, structure in ipairs { ... } do check(shallow, structure, {}) end
  return map(shallow, f, { ... })
end

-- The structure of the first with the leaves of a list, in the order of flatten. Raises unless there are as many.
takes("structure, flat_sequence", true)
function tree.pack_sequence_as(structure, flat)
  local count = #tree.flatten(structure)
  if type(flat) ~= "table" then raise("flow.keras.tree.pack_sequence_as takes a list of leaves, got %s", errors.describe(flat)) end
  if #flat ~= count then
    raise("flow.keras.tree.pack_sequence_as: the structure has %d leaves, the list %d entries", count, #flat)
  end
  local position = 0
  local function pack(node)
    if not nested(node) then
      position = position + 1
      return flat[position]
    end
    local result = json.is_list(node) and json.list() or {}
    for _, key in ipairs(keys_of(node)) do result[key] = pack(node[key]) end
    return result
  end
  return pack(structure)
end

-- What f(node) makes of each node and leaf, from the top down, or from the leaves up; where it returns nil the node stays and, from the
-- top, what is below it is visited.
takes("f, structure, top_down = true", true)
function tree.traverse(f, structure, top_down)
  signature.check_callable("flow.keras.tree.traverse", f)
  if top_down == nil then top_down = true end
  local function visit(node, depth)
    if top_down then
      local value = f(node)
      if value ~= nil then return value end
    end
    if nested(node) then
      depth = errors.deeper("flow.keras.tree.traverse", depth)
      local result = json.is_list(node) and json.list() or {}
      for _, key in ipairs(keys_of(node)) do result[key] = visit(node[key], depth) end
      node = result
    end
    if top_down then return node end
    local value = f(node)
    if value == nil then return node end
    return value
  end
  return visit(structure)
end

return tree
