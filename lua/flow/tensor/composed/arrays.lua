-- arrays.lua: how elements are arranged: joining and cutting, diagonals and triangles, turns and rolls, numbers in a row.

local native = require "flow.ffi"
local errors = require "flow.errors"
local tensor = require "flow.tensor"
local tools = require "flow.tensor.composed.tools"
local takes = require("flow.signature").takes

local raise = errors.raise
local ops, define, operand = tools.ops, tools.define, tools.operand

---- values -----------------------------------------------------------------------------------------

tools.create("array", "value: data, { dtype?; device? }", function(value, options) return tensor.tensor(value, options) end)
-- A tensor of a value; a tensor, of the dtype that is asked for, is returned unchanged.
tools.create("convert_to_tensor", "value: data, { dtype?; }", function(value, options)
  if type(value) == "cdata" and native.is_tensor(value) then return options.dtype and value:to(options.dtype) or value end
  return tensor.tensor(value, options)
end)
define(function(x)
  x = operand(x, "convert_to_numpy")
  tensor.need_value(x, "convert_to_numpy()")
  return tensor.on_host(x):contiguous()
end, "convert_to_numpy")
tools.create("empty", "shape..., { dtype?, device? }", function(shape, options) return tensor.zeros(shape, options) end)
takes "x, { dtype?; }"
define(function(x, options) return ops.zeros_like(x, options or {}) end, "empty_like")
tools.create("identity", "n: whole, { dtype?; device? }", function(n, options) return tensor.eye(n, nil, 0, options) end)

define(function(x) return #tools.dims(operand(x, "ndim")) end, "ndim")
define(function(x) return operand(x, "size").size end, "size")
define(function(x) return operand(x, "dtype").dtype end, "dtype")
native.methods.ndim, native.methods.size, native.methods.dtype = nil, nil, nil      -- fields have these names

-- x[key], as brackets take it.
define(function(x, key) return operand(x, "get_item")[key] end, "get_item")

---- joining and cutting ----------------------------------------------------------------------------

takes "a, b, axis?"
define(function(a, b, axis)
  a, b = ops.operands(a, b, "flow.append")
  if axis == nil then return ops.concat({ ops.flatten(a), ops.flatten(b) }, 1) end
  return ops.concat({ a, b }, axis)
end, "append")

-- Of at least this rank: what has a lower one gets axes as numpy.atleast_1d to 3d give them.
local function with_rank(x, rank)
  local own = #tools.dims(x)
  if rank == 1 and own == 0 then return ops.expand_dims(x, 1) end
  if rank == 2 and own < 2 then return ops.expand_dims(own == 0 and ops.expand_dims(x, 1) or x, 1) end
  if rank == 3 and own < 3 then return ops.expand_dims(with_rank(x, 2), 3) end
  return x
end

for name, how in pairs { hstack = { 1, 2 }, vstack = { 2, 1 }, dstack = { 3, 3 } } do
  takes "values"
  define(function(values)
    local list = {}
    if type(values) ~= "table" or getmetatable(values) then
      raise("flow.%s takes a list of tensors, got %s", name, errors.describe(values))
    end
    for i = 1, errors.check_list("flow." .. name, values) do list[i] = with_rank(operand(values[i], name), how[1]) end
    local axis = name == "hstack" and #tools.dims(list[1]) == 1 and 1 or how[2]
    return ops.concat(list, axis)
  end, name)
  native.methods[name] = nil
end

for name, axis in pairs { vsplit = 1, hsplit = 2, dsplit = 3 } do
  takes "x, cuts"
  define(function(x, cuts)
    x = operand(x, name)
    return ops.split(x, cuts, name == "hsplit" and #tools.dims(x) == 1 and 1 or axis)
  end, name)
end

-- This many parts, of which the first ones are longer by one where the length is not a multiple.
takes "x, cuts, axis = 1"
define(function(x, cuts, axis)
  x = operand(x, "array_split")
  axis = tools.axis(x, axis or 1, "array_split")
  if type(cuts) ~= "number" then return ops.split(x, cuts, axis) end
  local n, parts, first = tools.length(x, axis, "array_split"), {}, 1
  for i = 1, tools.whole(cuts, 1, "array_split", "the number of parts") do
    local length = math.floor(n / cuts) + (i <= n % cuts and 1 or 0)
    parts[i] = tools.part(x, axis, first, first + length - 1)
    first = first + length
  end
  return parts
end, "array_split")

takes "x, n = 1, axis = -1"
define(function(x, n, axis)
  x = operand(x, "diff")
  axis = tools.axis(x, axis or -1, "diff")
  for _ = 1, tools.whole(n or 1, 0, "diff", "n") do
    local length = tools.length(x, axis, "diff")
    local after, before = tools.part(x, axis, 2, math.max(length, 1)), tools.part(x, axis, 1, length - 1)
    x = x.dtype == "bool" and ops.logical_xor(after, before) or after - before
  end
  return x
end, "diff")

---- turning ----------------------------------------------------------------------------------------

define(function(x) return ops.flip(operand(x, "flipud"), 1) end, "flipud")
define(function(x) return ops.flip(operand(x, "fliplr"), 2) end, "fliplr")

-- Axes moved to other places, a number or a list each; the others stay in their order.
define(function(x, source, destination)
  x = operand(x, "moveaxis")
  local function list_of(axes) return type(axes) == "table" and axes or { axes } end
  local from, to, rank = list_of(source), list_of(destination), #tools.dims(x)
  errors.check_list("flow.moveaxis: source", from)
  errors.check_list("flow.moveaxis: destination", to)
  if #from ~= #to then raise("flow.moveaxis: %d axes are moved to %d places", #from, #to) end
  local order, moved, rest = {}, {}, {}
  for i = 1, #from do
    local axis, place = tools.axis(x, from[i], "moveaxis"), tools.axis(x, to[i], "moveaxis")
    if moved[axis] or order[place] then raise("flow.moveaxis: an axis is named twice") end
    order[place], moved[axis] = axis, true
  end
  for axis = 1, rank do rest[#rest + 1] = not moved[axis] and axis or nil end
  for place = 1, rank do order[place] = order[place] or table.remove(rest, 1) end
  return ops.transpose(x, order)
end, "moveaxis")

takes "x, k: integer = 1, axes?: list"
define(function(x, k, axes)
  x, axes = operand(x, "rot90"), axes or { 1, 2 }
  if type(axes) ~= "table" or #axes ~= 2 then raise("flow.rot90: axes are two, got %s", errors.describe(axes)) end
  local a, b = tools.axis(x, axes[1], "rot90"), tools.axis(x, axes[2], "rot90")
  if a == b then raise("flow.rot90: the two axes are the same") end
  k = (k or 1) % 4
  if k == 0 then return x end
  if k == 2 then return ops.flip(ops.flip(x, a), b) end
  if k == 1 then return ops.swapaxes(ops.flip(x, b), a, b) end
  return ops.flip(ops.swapaxes(x, a, b), b)
end, "rot90")

-- Elements moved along an axis; those that leave it at one end come in at the other. A list of shifts goes with a list of axes.
local function roll(x, shift, axis)
  local n = tools.length(x, axis, "roll")
  local first = n > 0 and (-shift) % n or 0
  if first == 0 then return x end
  return ops.concat({ tools.part(x, axis, first + 1, n), tools.part(x, axis, 1, first) }, axis)
end

-- The same by a shift that has no value yet: each place says which element comes to it.
local function roll_by(x, shift, axis)
  local n = tools.length(x, axis, "roll")
  if n == 0 then return x end
  local from = tensor.arange(n, { dtype = "int64" }) - shift
  return ops.take(x, ops.mod(from, n) + 1, axis)
end

-- Shifts as a list: numbers, and scalars of a trace. A tensor has one, or a list of them.
local function shifts_of(shift)
  if not native.is_tensor(shift) then return type(shift) == "table" and shift or { shift } end
  local dims = tools.dims(shift)
  if #dims > 1 or tools.is_float(shift) then raise("flow.roll: a shift is a whole number, got %s", errors.describe(shift)) end
  local list = {}
  if not tensor.is_symbolic(shift) then
    list = shift:totable()
    return type(list) == "table" and list or { list }
  end
  for i = 1, dims[1] or 1 do list[i] = #dims == 0 and shift or shift[i] end
  return list
end
takes "x, shift, axis?"
define(function(x, shift, axis)
  x = operand(x, "roll")
  local shifts, axes = shifts_of(shift), type(axis) == "table" and axis or { axis }
  if #shifts == 0 then raise("flow.roll: shift is a whole number or a list of them, got %s", errors.describe(shift)) end
  local one = roll
  for _, s in ipairs(shifts) do
    if native.is_tensor(s) then one = roll_by
    elseif type(s) ~= "number" or s % 1 ~= 0 then raise("flow.roll: a shift is a whole number, got %s", errors.describe(s)) end
  end
  if axis == nil then
    local total = 0
    for _, s in ipairs(shifts) do total = total + s end
    return ops.reshape_raw(one(ops.flatten(x), total, 1), tools.dims(x))
  end
  for i = 1, math.max(#axes, #shifts) do
    x = one(x, shifts[#shifts == 1 and 1 or i], tools.axis(x, axes[#axes == 1 and 1 or i], "roll"))
  end
  return x
end, "roll")

tools.alias("repeat", "repeat_")

-- Axes by name: "b (h w) c -> b h w c", { h = 2 } says how long axes in brackets are of which that does not follow. A name of the left side
-- stands on the right side, too; 1 is an axis of one element.
local function parse_side(text)
  local groups, group = {}, nil
  for token in text:gsub("([()])", " %1 "):gmatch "%S+" do
    if token == "(" then
      group = {}
      groups[#groups + 1] = group
    elseif token == ")" then group = nil
    elseif group then group[#group + 1] = token ~= "1" and token or nil
    else groups[#groups + 1] = token ~= "1" and { token } or {} end
  end
  return groups
end

-- einops.rearrange: splits the axes of the left side into the names in brackets, puts them in the order of the right side, and joins those
-- in brackets there. lengths: sizes by name, for names that the tensor's shape does not decide; one of each bracket may be left out.
local function rearrange(x, pattern, lengths)
  x = operand(x, "rearrange")
  local left, right = tostring(pattern):match "^(.-)%->(.*)$"
  if not left then raise("flow.rearrange: the pattern is a text such as \"b h w c -> b (h w) c\", got %s", errors.describe(pattern)) end
  local from, to, dims = parse_side(left), parse_side(right), tools.dims(x)
  if #from ~= #dims then raise("flow.rearrange: %q names %d axes, the tensor has %d", pattern, #from, #dims) end
  local size, split, place = {}, {}, {}
  for i, group in ipairs(from) do
    local known, unknown = 1, nil
    for _, name in ipairs(group) do
      size[name] = lengths[name] and tools.whole(lengths[name], 0, "rearrange", "the length of " .. name)
      if size[name] then known = known * size[name] else
        if unknown then raise("flow.rearrange: the lengths of %s and %s do not follow from %q: give one", unknown, name, pattern) end
        unknown = name
      end
    end
    if unknown then size[unknown] = dims[i] / known end
    if unknown and size[unknown] % 1 ~= 0 or not unknown and known ~= dims[i] then
      raise("flow.rearrange: axis %d has %d elements, which %q does not divide into", i, dims[i], pattern)
    end
    for _, name in ipairs(group) do split[#split + 1], place[name] = size[name], #split + 1 end
  end
  local order, joined = {}, {}
  for i, group in ipairs(to) do
    joined[i] = 1
    for _, name in ipairs(group) do
      if not place[name] then raise("flow.rearrange: %q stands on the right side of %q only", name, pattern) end
      order[#order + 1], joined[i] = place[name], joined[i] * size[name]
    end
  end
  if #order ~= #split then raise("flow.rearrange: the sides of %q do not have the same names", pattern) end
  return ops.reshape_raw(ops.transpose(ops.reshape_raw(x, split), order), joined)
end
takes "x, pattern: string, lengths?: table"
define(function(x, pattern, lengths) return rearrange(x, pattern, lengths or {}) end, "rearrange")

---- diagonals and triangles ------------------------------------------------------------------------

-- Whether column - row is `test` k, for matrices of rows and columns.
local function band(rows, columns, test, k)
  local row, column = tensor.arange(rows):reshape { rows, 1 }, tensor.arange(columns)
  return ops[test](column - row, k)
end

-- Defines tril or triu: zeros where test(row, column, k) does not hold, in each matrix of the last two axes.
local function triangle(name, test)
  takes "x, k = 0"
  define(function(x, k)
    x = operand(x, name)
    local rank = #tools.dims(x)
    if rank < 2 then raise("flow.%s: a matrix or several, got shape %s", name, tensor.shape_text(tools.dims(x))) end
    local kept = band(tools.length(x, rank - 1, name), tools.length(x, rank, name), test, k or 0)
    return ops.where(kept, x, tools.constant(0, x.dtype))
  end, name)
end
triangle("tril", "le")
triangle("triu", "ge")

tools.create("tri", "n: whole, m?: whole, k: integer = 0, { dtype = 'float32'; }", function(n, m, k, options)
  return band(n, m or n, "le", k):to(options.dtype)
end)

-- The elements (i, i + offset) of two axes, which become the last one.
local function diagonal(x, offset, a, b, what)
  a, b = tools.axis(x, a, what), tools.axis(x, b, what)
  if a == b then raise("flow.%s: the two axes are the same", what) end
  local order, dims = {}, tools.dims(x)
  for i = 1, #dims do order[#order + 1] = i ~= a and i ~= b and i or nil end
  order[#order + 1], order[#order + 2] = a, b
  local rows, columns = tools.length(x, a, what), tools.length(x, b, what)
  if a ~= #dims - 1 or b ~= #dims then x = ops.transpose(x, order) end
  local first = offset >= 0 and offset or -offset * columns
  local count = math.max(math.min(rows + math.min(offset, 0), columns - math.max(offset, 0)), 0)
  local flat = tools.dims(x)
  flat[#flat - 1], flat[#flat] = rows * columns, nil
  local last = count > 0 and first + (count - 1) * (columns + 1) + 1 or first
  return tools.part(ops.reshape_raw(x, flat), #flat, count > 0 and first + 1 or 1, count > 0 and last or 0, columns + 1)
end
takes "x, offset: integer = 0, axis1: integer = 1, axis2: integer = 2"
define(function(x, offset, a, b) return diagonal(operand(x, "diagonal"), offset or 0, a or 1, b or 2, "diagonal") end, "diagonal")
takes "x, offset: integer = 0, axis1: integer = 1, axis2: integer = 2"
define(function(x, offset, a, b)
  x = tools.numbers(x, "trace")
  return ops.sum(diagonal(x, offset or 0, a or 1, b or 2, "trace"), -1)
end, "trace")

-- The matrix of zeros with the numbers of x, of rank 1, on a diagonal.
local function diagonal_matrix(x, k)
  local n = tools.length(x, 1, "diag")
  local size = n + math.abs(k)
  local row = ops.pad(x, { { math.max(k, 0), math.max(-k, 0) } })
  return ops.where(band(size, size, "eq", k), row, tools.constant(0, x.dtype))
end
takes "x, k: integer = 0"
define(function(x, k)
  x = operand(x, "diag")
  local rank = #tools.dims(x)
  if rank == 2 then return diagonal(x, k or 0, 1, 2, "diag") end
  if rank ~= 1 then raise("flow.diag: numbers or a matrix, got shape %s", tensor.shape_text(tools.dims(x))) end
  return diagonal_matrix(x, k or 0)
end, "diag")
takes "x, k: integer = 0"
define(function(x, k) return diagonal_matrix(ops.flatten(operand(x, "diagflat")), k or 0) end, "diagflat")

---- grids and windows ------------------------------------------------------------------------------

-- A list of tensors of one shape, each of which repeats one of the rows along the others' axes; "xy" swaps the first two axes.
tools.create("meshgrid", "vectors..., { indexing: 'xy'|'ij' = 'xy' }", function(vectors, options)
  local list, dims = {}, {}
  for i, x in ipairs(type(vectors) == "table" and not getmetatable(vectors) and vectors or { vectors }) do
    list[i] = ops.flatten(operand(x, "meshgrid"))
    dims[i] = list[i].size
  end
  for i, x in ipairs(list) do
    local own = {}
    for k = 1, #list do own[k] = k == i and dims[i] or 1 end
    list[i] = x:reshape(own):broadcast_to(dims)
    if options.indexing == "xy" and #list > 1 then list[i] = list[i]:swapaxes(1, 2) end
  end
  return list
end)

-- Windows of n numbers: f(position, last position).
local function window(name, f)
  tools.create(name, "n: whole, { dtype = 'float32' }", function(n, options)
    local values = {}
    for i = 0, n - 1 do values[i + 1] = n == 1 and 1 or f(i, n - 1) end
    return tools.constant(values, options.dtype)
  end)
end
local cos, tau = math.cos, 2 * math.pi
window("bartlett", function(i, last) return 1 - math.abs(2 * i / last - 1) end)
window("hanning", function(i, last) return 0.5 - 0.5 * cos(tau * i / last) end)
window("hamming", function(i, last) return 0.54 - 0.46 * cos(tau * i / last) end)
window("blackman", function(i, last) return 0.42 - 0.5 * cos(tau * i / last) + 0.08 * cos(2 * tau * i / last) end)

-- Bessel's I0 by its series, whose terms are all positive.
local function bessel(x)
  local sum, term, k = 1, 1, 1
  while term > sum * 1e-17 do
    term = term * (x / 2 / k) ^ 2
    sum, k = sum + term, k + 1
  end
  return sum
end
tools.create("kaiser", "n: whole, beta: number, { dtype = 'float32' }", function(n, beta, options)
  local values = {}
  for i = 0, n - 1 do values[i + 1] = n == 1 and 1 or bessel(beta * math.sqrt(1 - (2 * i / (n - 1) - 1) ^ 2)) / bessel(beta) end
  return tools.constant(values, options.dtype)
end)

---- blocks -----------------------------------------------------------------------------------------

-- The block of this shape whose first element is at the positions `starts`, a list or a tensor, which are clamped so that the block is in
-- x.
local function block_at(x, starts, shape, what)
  local dims, list = tools.dims(x), starts
  if type(starts) ~= "table" then
    starts = operand(starts, what)
    if #tools.dims(starts) ~= 1 then raise("flow.%s: the positions have the shape %s, expected one for each axis", what,
      tensor.shape_text(tools.dims(starts))) end
    list = starts:totable()
  end
  errors.check_list(("flow.%s: the positions"):format(what), list)
  errors.check_list(("flow.%s: the shape"):format(what), shape)
  if #list ~= #dims or #shape ~= #dims then
    raise("flow.%s: %d positions and a shape of %d axes for rank %d", what, #list, #shape, #dims)
  end
  local first, last = {}, {}
  for i, n in ipairs(dims) do
    local start = list[i]
    if native.is_tensor(start) and not tensor.is_symbolic(start) then start = start:item() end
    if type(start) ~= "number" or start ~= math.floor(start) then
      raise("flow.%s: position %d is %s, expected a whole number", what, i, errors.describe(start))
    end
    if start < 0 then start = n + start + 1 end
    local length = shape[i] == -1 and n - start + 1 or shape[i]
    if length < 0 or n >= 0 and (length > n or start < 1) then
      raise("flow.%s: %d elements from position %d do not fit in axis %d of %d", what, length, start, i, n)
    end
    if n >= 0 then start = math.min(start, n - length + 1) end
    first[i], last[i] = start, start + length - 1
  end
  return first, last
end

-- The parts of `starts` that have no value yet, by axis, and starts and a shape with all of those axes.
local function moving_parts(x, starts, shape, what)
  local moving = {}
  if native.is_tensor(starts) and tensor.is_symbolic(starts) then
    local parts = {}
    for i = 1, tools.dims(starts)[1] do parts[i] = starts[i] end
    starts = parts
  end
  if type(starts) ~= "table" or type(shape) ~= "table" then return moving, starts, shape end
  errors.check_list(("flow.%s: the positions"):format(what), starts)
  for i = 1, errors.check_list(("flow.%s: the shape"):format(what), shape) do
    local size = shape[i]
    local known = not require("flow.tensor.shapes").is_rows(size)
    if known and (type(size) ~= "number" or size < -1 or size ~= math.floor(size)) then
      raise("flow.%s: entry %d of the shape is %s, expected a whole number from 0, or -1 for all that follow", what, i,
        errors.describe(size))
    end
  end
  local fixed, sizes, dims = {}, { unpack(shape) }, tools.dims(x)
  for i, start in ipairs(starts) do
    fixed[i] = start
    if native.is_tensor(start) and tensor.is_symbolic(start) then
      local n, size = dims[i] or 0, shape[i] or -1
      if n < 0 or size < 0 or size > n then
        raise("flow.%s: %d elements from a position that is not known while f is traced do not fit in axis %d", what, size, i)
      end
      local first = ops.clip(start:to("int32"), 1, n - size + 1)
      moving[#moving + 1] = { axis = i, start = first, size = size, length = n }
      fixed[i], sizes[i] = 1, n
    end
  end
  return moving, fixed, sizes
end

-- shape elements from the positions `starts` on, which may be tensors: a block that leaves x is moved so that it is inside, as in Keras.
takes "x, starts, shape: list"
define(function(x, starts, shape)
  x = operand(x, "slice")
  local moving
  moving, starts, shape = moving_parts(x, starts, shape, "slice")
  for _, part in ipairs(moving) do
    x = ops.take(x, ops.add(tensor.arange(0, part.size, 1, { dtype = "int32" }), part.start), part.axis)
  end
  for _, part in ipairs(moving) do shape[part.axis] = part.size end
  local first, last = block_at(x, starts, shape, "slice")
  for axis, n in ipairs(tools.dims(x)) do
    if n < 0 or first[axis] > 1 or last[axis] < n then x = tools.part(x, axis, first[axis], last[axis]) end
  end
  return x
end, "slice")

-- x with the block at these positions replaced. A position that has no value yet is clamped when it has one, as in Keras: along its axis
-- each place takes the element of `updates` that is there, if there is one.
takes "x, starts, updates"
define(function(x, starts, updates)
  x = operand(x, "slice_update")
  updates = operand(updates, "slice_update", x.dtype):to(x.dtype)
  local dims, inside = tools.dims(x), nil
  local moving, fixed, shape = moving_parts(x, starts, tools.dims(updates), "slice_update")
  local function within(axis, first, last)
    local own, place = {}, tensor.arange(1, dims[axis] + 1, 1, { dtype = "int32" })
    for i = 1, #dims do own[i] = i == axis and dims[axis] or 1 end
    local hits = ops.logical_and(ops.ge(place, first), ops.le(place, last)):reshape(own)
    inside = inside and ops.logical_and(inside, hits) or hits
  end
  for _, part in ipairs(moving) do
    if part.size == 0 then return x end
    local place = ops.add(tensor.arange(1, part.length + 1, 1, { dtype = "int32" }), 1 - part.start)
    updates = ops.take(updates, ops.clip(place, 1, part.size), part.axis)
    within(part.axis, part.start, part.start + (part.size - 1))
  end
  local first, last = block_at(x, fixed, shape, "slice_update")
  local widths, is_part = {}, false
  for axis, n in ipairs(dims) do
    if n < 0 then raise("flow.slice_update: axis %d is that of the batch, whose size is not known in a trace", axis) end
    widths[axis] = { first[axis] - 1, n - last[axis] }
    if last[axis] - first[axis] + 1 < n then
      within(axis, first[axis], last[axis])
      is_part = true
    end
  end
  if is_part then updates = ops.pad(updates, widths) end
  return inside and ops.where(inside, updates, x) or updates
end, "slice_update")
