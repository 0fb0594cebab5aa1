-- strings.lua: what strings are in Lua, where others have tensors: one string is a string of Lua, a tensor of strings is a list of them, of
-- lists for more axes, which knows its shape. Strings are bytes on the host; they can be picked and moved, and layers such as
-- TextVectorization make numbers of them: everything else refuses them.
--
--   local names = flow.tensor { "ann", "bob" }        names[1], #names, names.shape, names.dtype ("string"), names:reshape { 2, 1 }
--
-- Where a function of flow takes strings, a plain list of them will do.

local native = require "flow.ffi"
local errors = require "flow.errors"
local signature = require "flow.signature"

local C, raise = native.C, errors.raise
local strings = {}

local metatable = {}
local methods = signature.methods("strings", metatable)
local one = native.out("flow_tensor")

---- shapes ---------------------------------------------------------------------------------------------------------------

function strings.is(value)
  return getmetatable(value) == metatable and type(value) == "table"
end

-- Whether value is a string or (a tensor of, lists of) strings, by its first leaf.
function strings.are(value)
  local depth
  while type(value) == "table" and (not getmetatable(value) or strings.is(value)) do
    if strings.is(value) then return true end
    value, depth = value[1], errors.deeper("a list", depth)
  end
  return type(value) == "string"
end

-- The shape of nested lists by their first entries; put_in_order checks the others.
local function shape_of(value)
  local shape = {}
  while type(value) == "table" do
    shape[errors.deeper("a list of strings", #shape)] = #value
    value = value[1]
  end
  return shape
end

-- Adds all strings below a value to list, row by row. Raises where a row has another length than shape says.
local function put_in_order(what, value, shape, depth, list)
  if depth > #shape then
    if type(value) ~= "string" then raise("%s: a list of strings has %s among them", what, errors.describe(value)) end
    list[#list + 1] = value
    return list
  end
  if type(value) ~= "table" or #value ~= shape[depth] then
    raise("%s: rows of strings have different lengths: %s where %d strings or lists are expected", what,
      type(value) == "table" and #value .. " of them" or errors.describe(value), shape[depth])
  end
  if not strings.is(value) then errors.check_list(what, value) end
  for i = 1, #value do put_in_order(what, value[i], shape, depth + 1, list) end
  return list
end

-- The strings one after the other, and their shape, which has at most as many axes as a flow_strings has room for.
function strings.flat(what, value)
  local shape = shape_of(value)
  if #shape > C.FLOW_MAX_RANK then raise("%s: a tensor has at most %d dimensions, got %d", what, C.FLOW_MAX_RANK, #shape) end
  return put_in_order(what, value, shape, 1, {}), shape
end

-- Strings of a flat list from a position on as nested lists, and the position after them.
local function build(list, shape, depth, position)
  if depth > #shape then return list[position], position + 1 end
  local result = {}
  for i = 1, shape[depth] do result[i], position = build(list, shape, depth + 1, position) end
  return setmetatable(result, metatable), position
end

-- A tensor of strings out of all of them; a string for the shape {}.
function strings.of(list, shape)
  return (build(list, shape, 1, 1))
end

-- A tensor of strings out of lists of them.
function strings.tensor(what, value)
  return strings.of(strings.flat(what, value))
end

-- What flow.tensor makes of lists of strings.
function strings.made(value, options)
  if options.dtype and options.dtype ~= "string" then
    raise("flow.tensor: strings have the dtype \"string\", not %q: tonumber() and layers such as StringLookup make numbers of them",
      tostring(options.dtype))
  end
  if options.device and options.device ~= "cpu" then
    raise("flow.tensor: strings are on \"cpu\" only, not on %q", tostring(options.device))
  end
  return strings.tensor("flow.tensor", value)
end

---- fields and methods ---------------------------------------------------------------------------------------------------

local function count_of(shape)
  local count = 1
  for _, n in ipairs(shape) do count = count * n end
  return count
end

local FIELDS = {
  shape = function(self) return require "flow.tensor.shape_list" (shape_of(self), require "flow.tensor") end,
  dtype = function() return "string" end, device = function() return "cpu" end,
  rank = function(self) return #shape_of(self) end, size = function(self) return count_of(shape_of(self)) end,
}

local function refuse()
  raise("strings are not numbers: layers such as TextVectorization, StringLookup and Hashing make numbers of them")
end

-- A position that may be a tensor with one number, as of tensors of numbers.
local function place_of(key)
  return native.is_tensor(key) and key.size == 1 and tonumber(key:item()) or key
end

-- What keys[at] and those after it pick: a position drops the axis, { from, to } is a range, {} is the whole axis, false makes a new one.
local function picked(value, keys, at)
  local key = keys[at]
  if key == nil then return value end
  if key == false then return setmetatable({ (picked(value, keys, at + 1)) }, metatable) end
  if type(value) ~= "table" then raise("a tensor of strings is indexed along more axes than it has") end
  local is_range = type(key) == "table"
  local from = place_of(is_range and (key[1] or 1) or key)
  local to = is_range and place_of(key[2] or -1) or from
  if type(from) ~= "number" or type(to) ~= "number" or from % 1 ~= 0 or to % 1 ~= 0 or is_range and key[3] ~= nil then
    raise("a tensor of strings is indexed by positions and ranges { from, to }, got %s", errors.describe(key))
  end
  from, to = from < 0 and #value + 1 + from or from, to < 0 and #value + 1 + to or to
  if from < 1 or to > #value then raise("positions %d to %d are not among %d strings", from, to, #value) end
  if not is_range then return picked(value[from], keys, at + 1) end
  local list = {}
  for i = from, to do list[#list + 1] = picked(value[i], keys, at + 1) end
  return setmetatable(list, metatable)
end

-- strings[{ {}, 1 }]: as tensors of numbers are indexed, without steps.
local function indexed(self, keys)
  local all, axes = {}, 0
  for _, key in ipairs(keys) do axes = axes + ((key == false or key == "...") and 0 or 1) end
  for _, key in ipairs(keys) do
    if key == "..." then
      for _ = axes + 1, #shape_of(self) do all[#all + 1] = {} end
    else all[#all + 1] = key end
  end
  return picked(self, all, 1)
end

metatable.__index = function(self, key)
  if type(key) == "number" then return key < 0 and rawget(self, #self + 1 + key) or nil end
  if key == false or native.is_tensor(key) then key = { key } end
  if type(key) == "table" then return indexed(self, key) end
  local field = FIELDS[key]
  if field then return field(self) end
  return methods[key] or raise("a tensor of strings has no field %q: it can be picked from and reshaped, numbers are made of it by layers "
    .. "such as TextVectorization", tostring(key))
end
metatable.__tensor = refuse
for _, event in ipairs { "add", "sub", "mul", "div", "mod", "pow", "unm", "lt", "le" } do metatable["__" .. event] = refuse end

metatable.__tostring = function(self)
  local list, shape = strings.flat("tostring", self)
  local parts = {}
  for i = 1, math.min(#list, 10) do parts[i] = ("%q"):format(#list[i] > 60 and list[i]:sub(1, 57) .. "..." or list[i]) end
  return ("strings {%s}: %s%s"):format(table.concat(shape, ", "), table.concat(parts, ", "), #list > 10 and ", ..." or "")
end

local function plain(value)
  if type(value) ~= "table" then return value end
  local list = {}
  for i = 1, #value do list[i] = plain(value[i]) end
  return list
end

-- Plain lists.
function methods:totable() return plain(self) end

-- The one string that there is.
function methods:item()
  local list = strings.flat("item", self)
  if #list ~= 1 then raise("item() needs exactly one string, there are %d", #list) end
  return list[1]
end

-- Which of them are equal to a string, or to those of a tensor of strings; which differ: flow.equal, flow.not_equal.
signature.takes "b"
function methods:eq(b) return require "flow.tensor.text.comparison" ("eq", self, b, true) end
signature.takes "b"
function methods:ne(b) return require "flow.tensor.text.comparison" ("ne", self, b, false) end

-- Itself: parts of texts of different lengths are filled up already; with other texts in the place of what was filled up.
signature.takes "default_value: string = ''"
function methods:to_tensor(default_value)
  local counts = rawget(self, "_counts")
  if default_value == "" or not counts then return self end
  local list, shape = strings.flat("to_tensor", self)
  local longest = shape[#shape]
  for row, count in ipairs(counts) do
    for i = count + 1, longest do list[(row - 1) * longest + i] = default_value end
  end
  return strings.of(list, shape)
end

---- moving ---------------------------------------------------------------------------------------------------------------

-- flow.reshape, flow.expand_dims and flow.squeeze move strings, too. Of each: the shape that it makes of another, whose sizes may be -1
-- where they vary. Axes count from 1, -1 is the last.
local MOVES = {}

-- A position among `count` axes, from 1; negative ones count from the end.
local function axis_of(what, axis, count)
  if type(axis) ~= "number" or axis % 1 ~= 0 then raise("%s: an axis is a whole number, got %s", what, errors.describe(axis)) end
  local at = axis < 0 and count + 1 + axis or axis
  if at < 1 or at > count then raise("%s: axis %d is out of range: there are %d axes, counted from 1", what, axis, count) end
  return at
end

-- One size may be -1: what is left.
function MOVES.reshape(shape, wanted, ...)
  if type(wanted) == "number" then wanted = { wanted, ... } end
  if type(wanted) ~= "table" then raise("reshape takes a shape such as { -1, 1 }, got %s", errors.describe(wanted)) end
  errors.check_list("reshape: the shape", wanted)
  local made, count, known, free = {}, count_of(shape), 1, nil
  for _, n in ipairs(shape) do count = n < 0 and -1 or count end
  for i = 1, errors.check_list("reshape: the shape", wanted) do
    local n = wanted[i]
    if type(n) ~= "number" or n % 1 ~= 0 or n < -1 then
      raise("reshape: dimension %d of the shape is %s, expected a whole number from 0, or -1: worked out", i, errors.describe(n))
    elseif n == -1 and free then
      raise("reshape: dimensions %d and %d are both -1, at most one can be worked out", free, i)
    end
    made[i] = n
    if n == -1 then free = i else known = known * n end
  end
  if count >= 0 and free then made[free] = known > 0 and count / known or 0 end
  if count >= 0 and (count_of(made) ~= count or free and made[free] % 1 ~= 0) then
    raise("reshape: %d strings do not fit the shape {%s}", count, table.concat(wanted, ", "))
  end
  return made
end

-- An axis of size 1 at that position, by default in front.
function MOVES.expand_dims(shape, axis)
  local made = { unpack(shape) }
  table.insert(made, axis_of("expand_dims", axis or 1, #made + 1), 1)
  return made
end

-- Without that axis of size 1, or these; without all of them if none is named.
function MOVES.squeeze(shape, axis)
  local made, drop = {}, {}
  for _, named in ipairs(type(axis) == "table" and axis or { axis }) do
    local at = axis_of("squeeze", named, #shape)
    if shape[at] ~= 1 then raise("squeeze: axis %d of the strings is not of size 1", named) end
    drop[at] = true
  end
  for i, n in ipairs(shape) do
    if not (drop[i] or axis == nil and n == 1) then made[#made + 1] = n end
  end
  return made
end

for name, shape_after in pairs(MOVES) do
  methods[name] = function(self, ...)
    local list, shape = strings.flat(name, self)
    return strings.of(list, shape_after(shape, ...))
  end
end

-- What an op of flow makes of the shape of strings; nil: it takes numbers.
function strings.move_of(op)
  local ops = require "flow.tensor.ops"
  for name, shape_after in pairs(MOVES) do
    if op == ops[name] then return shape_after end
  end
end

-- The op that moves strings, by its name; nil: it is another one.
function strings.moves(name) return MOVES[name] and require("flow.tensor.ops")[name] end

-- Strings in another shape, whose sizes after the first are known.
function strings.reshaped(value, shape)
  local wanted = { unpack(shape) }
  if wanted[1] and wanted[1] < 0 then wanted[1] = -1 end
  local list, own = strings.flat("reshape", value)
  return strings.of(list, MOVES.reshape(own, wanted))
end

-- Lists of equal depth as one, along an axis.
local function joined(parts, axis)
  local result = {}
  if axis == 1 then
    for _, part in ipairs(parts) do
      for i = 1, #part do result[#result + 1] = part[i] end
    end
    return result
  end
  for i = 1, #parts[1] do
    local row = {}
    for k, part in ipairs(parts) do row[k] = part[i] end
    result[i] = joined(row, axis - 1)
  end
  return result
end

-- What joins strings: flow.concat and flow.stack. Of each: a list of tensors of strings, or of lists, as one, along an axis, 1 by itself.
local JOINS = {}

function JOINS.concat(what, list, axis)
  local rank = #shape_of(list[1])
  local along = (axis or 1) < 0 and rank + 1 + axis or axis or 1
  if along < 1 or along > rank or along % 1 ~= 0 then raise("%s: axis %s of strings with %d axes", what, tostring(axis), rank) end
  for i, part in ipairs(list) do
    local shape, first = shape_of(part), shape_of(list[1])
    local fits = #shape == rank
    for k = 1, rank do fits = fits and (k == along or shape[k] == first[k]) end
    if not fits then
      raise("%s: tensors 1 and %d have shapes {%s} and {%s}; these must be equal but for axis %d", what, i, table.concat(first, ", "),
        table.concat(shape, ", "), along)
    end
  end
  return strings.tensor(what, joined(list, along))
end

function JOINS.stack(what, list, axis)
  local wider = {}
  for i, part in ipairs(list) do
    local flat, shape = strings.flat(what, part)
    wider[i] = strings.of(flat, MOVES.expand_dims(shape, axis or 1))
  end
  return JOINS.concat(what, wider, axis)
end

local function join_of(op)
  local ops = require "flow.tensor.ops"
  for name, join in pairs(JOINS) do
    if op == ops[name] then return join, "flow." .. name end
  end
end

-- An op that strings are an operand of (define_op.lua).
function metatable.__apply(op, x, ...)
  local join, what = join_of(op)
  if join then
    for i = 1, errors.check_list(what, x) do
      if not strings.are(x[i]) then raise("%s: strings are joined with strings, entry %d is %s", what, i, errors.describe(x[i])) end
    end
    return join(what, x, ...)
  end
  local ops = require "flow.tensor.ops"
  if op == ops.eq or op == ops.ne then
    local equal = op == ops.eq
    return require "flow.tensor.text.comparison" (equal and "flow.equal" or "flow.not_equal", x, (...), equal)
  end
  local shape_after = strings.is(x) and strings.move_of(op)
  if not shape_after then refuse() end
  local list, shape = strings.flat("strings", x)
  return strings.of(list, shape_after(shape, ...))
end

---- in the library's forms (flow_strings) -----------------------------------------------------------------------------------

local function new_tensor(dtype, shape)
  local dims, rank = native.dims(shape)
  native.check(C.flow_tensor_new(native.dtype(dtype), rank, dims, one))
  return native.tensor(one[0])
end

-- A list of strings as bytes and offsets.
function strings.pack(what, list)
  local starts, position = new_tensor("int64", { errors.check_list(what, list) + 1 }), 0
  local at = native.data(starts)
  for i, text in ipairs(list) do
    if type(text) ~= "string" then raise("%s: entry %d of a list of strings is %s", what, i, errors.describe(text)) end
    position = position + #text
    at[i] = position
  end
  local bytes = new_tensor("uint8", { position })
  native.copy(native.data(bytes), table.concat(list), position)
  return bytes, starts
end

-- The same as uint8 { ..., longest }, each followed by zeros; of one string uint8 {bytes}.
function strings.padded(what, value)
  local list, shape = strings.flat(what, value)
  local longest = 0
  for _, text in ipairs(list) do longest = math.max(longest, #text) end
  shape[#shape + 1] = longest
  local t = new_tensor("uint8", shape)
  local to = native.cast("char *", C.flow_tensor_data(native.pointer(t)))
  for i, text in ipairs(list) do native.copy(to + (i - 1) * longest, text, #text) end
  return t
end

-- The strings of a contiguous uint8 tensor in that form.
function strings.read(t)
  local pointer = native.pointer(t)
  local bytes, rank = native.cast("const char *", C.flow_tensor_data(pointer)), C.flow_tensor_rank(pointer)
  if rank == 1 then return native.string(bytes, C.flow_tensor_size(pointer)) end
  local list, shape, length = {}, {}, C.flow_tensor_dim(pointer, rank - 1)
  for axis = 0, rank - 2 do shape[axis + 1] = tonumber(C.flow_tensor_dim(pointer, axis)) end
  for i = 0, count_of(shape) - 1 do list[i + 1] = native.string(bytes + i * length, length):gsub("%z+$", "") end
  return strings.of(list, shape)
end

-- A flow_strings of strings or a tensor of numbers, and what must be kept while it is used.
function strings.view(what, value)
  local view = native.new("flow_strings")
  if native.is_tensor(value) then
    view.values = native.pointer(value)
    return view, { value }
  end
  local list, shape = strings.flat(what, value)
  local bytes, starts = strings.pack(what, list)
  view.values, view.offsets, view.is_text, view.rank = native.pointer(bytes), native.pointer(starts), 1, #shape
  for axis, n in ipairs(shape) do view.shape[axis - 1] = n end
  return view, { bytes, starts }
end

return strings
