-- contents.lua: what is in the fields of a layer: layers and variables that are assigned to it, also in lists and tables by name, at any
-- depth, are parts of it. Entries that a list gets after it was assigned are, too: self.blocks = {}, then self.blocks[1] = layers.Dense(8).
--
-- _children and _own are lists of a layer. Of one that has tables in its fields they are computed fields: the tables are looked through
-- whenever the parts are asked for. A layer is not a part of itself, but two layers may be parts of each other, as when both know the
-- table of a game that has both: what goes through a layer and all inside of it takes layer:_inside(), or remembers where it was.

local native = require "flow.ffi"
local object = require "flow.object"
local variable = require "flow.tensor.variable"

local C = native.C
local contents = {}

-- Whether a value is a plain table, not an object.
local function is_container(value) return type(value) == "table" and not getmetatable(value) end

local MANY = 64
-- Whether a table is a long list of plain values, which is data, and not looked through.
local function is_data(list)
  return #list > MANY and type(list[1]) ~= "table" and type(list[#list]) ~= "table"
end

-- Numbers before texts.
local function by_key(a, b)
  if type(a) ~= type(b) then return type(a) == "number" end
  return a < b
end

-- Calls f(entry) for each object in a table: those of its list first, then those with names, sorted.
local function each_object(container, f, seen)
  if seen[container] or is_data(container) then return end
  seen[container] = true
  local function visit(entry)
    if is_container(entry) then each_object(entry, f, seen) elseif type(entry) == "table" then f(entry) end
  end
  local count, named = 0, {}
  for _, entry in ipairs(container) do
    count = count + 1
    visit(entry)
  end
  for key, entry in pairs(container) do
    local is_listed = type(key) == "number" and key >= 1 and key <= count
    if type(entry) == "table" and not is_listed and (type(key) == "number" or type(key) == "string") then named[#named + 1] = key end
  end
  table.sort(named, by_key)
  for _, key in ipairs(named) do visit(container[key]) end
end

-- The objects in a table that are of a class, in order; a table of one such object, or an empty one, for what is not a table.
function contents.objects(value, class)
  local list = {}
  local function add(entry)
    if object.is(entry, class) then list[#list + 1] = entry end
  end
  if is_container(value) then each_object(value, add, {}) elseif type(value) == "table" then add(value) end
  return list
end

local function add_inside(layer, list, seen)
  if seen[layer] then return list end
  seen[layer], list[#list + 1] = true, layer
  for _, child in ipairs(layer._children) do add_inside(child, list, seen) end
  return list
end

local function position_of(list, value)
  for i = 1, #list do
    if list[i] == value then return i end
  end
end

local function add_once(list, value)
  if not position_of(list, value) then list[#list + 1] = value end
end

-- Takes a value out of a list, if it is there.
local function drop(list, value)
  local position = position_of(list, value)
  if position then table.remove(list, position) end
end

-- Adds to the class Layer what sees assignments and keeps the lists. Called once.
local function install(Layer)
  Layer._takes_layers = true      -- false, of a class: layers in the fields of its objects are not parts of them
  local function add(self, children, own, value)
    if value == self then return end
    if object.is(value, Layer) then
      if self._takes_layers then add_once(children, value) end
    elseif variable.is_variable(value) then add_once(own, value) end
  end

  -- The lists of a layer's parts, with what its tables have by now. Tables are kept in the order in which they were assigned.
  local function parts(self)
    local kept = rawget(self, "_kept")
    for _, container in ipairs(kept.containers) do
      each_object(container, function(value) add(self, kept._children, kept._own, value) end, {})
    end
    return kept
  end
  for _, name in ipairs { "_children", "_own" } do
    Layer.fields[name] = function(self) return parts(self)[name] end
  end

  local function keep(self, container)
    local kept = rawget(self, "_kept")
    if not kept then
      kept = { containers = {}, _children = self._children, _own = self._own }
      rawset(self, "_kept", kept)
      rawset(self, "_children", nil)
      rawset(self, "_own", nil)
    end
    kept.containers[#kept.containers + 1] = container
  end

  -- The layer and all layers inside of it, each once, an outer one before those inside of it.
  function Layer:_inside() return add_inside(self, {}, {}) end

  -- What training may change, as text: equal for equal sets. Layers count as well: BatchNormalization runs differently.
  function Layer:_trainable_text()
    local list = {}
    for _, layer in ipairs(self:_inside()) do
      list[#list + 1] = layer._trainable and "+" or "-"
      for i = 0, (layer._handle and C.flow_layer_variable_count(layer._handle) or 0) - 1 do
        list[#list + 1] = C.flow_variable_trainable(C.flow_layer_variable(layer._handle, i)) ~= 0 and "1" or "0"
      end
      for _, v in ipairs(layer._own) do list[#list + 1] = v.trainable and "1" or "0" end
      if rawget(layer, "_changes") then list[#list + 1] = ("c%d"):format(layer._changes) end
      if rawget(layer, "_quantized") then list[#list + 1] = "q" .. layer._quantized end
    end
    return table.concat(list)
  end

  -- Sees assignments to fields; what stood there before leaves, unless another field has it.
  function Layer:_assigned(_, value, before)
    local children, own = self._children, self._own
    if type(before) == "table" and before ~= value then
      local kept, left = rawget(self, "_kept"), {}
      if is_container(before) then
        for i, container in ipairs(kept and kept.containers or {}) do
          if container == before then table.remove(kept.containers, i) break end
        end
        each_object(before, function(entry) left[#left + 1] = entry end, {})
      else
        left[1] = before
      end
      for _, entry in ipairs(left) do
        drop(children, entry)
        drop(own, entry)
      end
      for _, entry in pairs(self._assignments) do
        if not is_container(entry) then
          for _, gone in ipairs(left) do
            if gone == entry then add(self, children, own, entry) end
          end
        end
      end
    end
    if type(value) ~= "table" then return end
    if is_container(value) then keep(self, value) else add(self, children, own, value) end
  end
end

return setmetatable(contents, { __call = function(_, Layer) return install(Layer) end })
