-- array_ops.lua: take, split, pad, tile and their kin: ops of keras.ops that are made of others. Axes and positions count from 1, negative
-- ones from the end. Used by ops.lua.

local errors = require "flow.errors"
local native = require "flow.ffi"
local tensor = require "flow.tensor"

local raise = errors.raise
local LAST = 2 ^ 62      -- a slice that ends there takes all of its axis
local takes = require("flow.signature").takes

local function whole(value, least, what, name)
  if native.is_tensor(value) then value = require "flow.classes.number_of"(value) end
  if type(value) ~= "number" or value ~= math.floor(value) or value < least or value >= 2 ^ 53 then
    raise("%s: %s is a whole number from %d, got %s", what, name, least, errors.describe(value))
  end
  return value
end

-- Elements first .. last of an axis; last may be -1.
local function part(x, axis, first, last, step)
  local key = {}
  for i = 1, axis do key[i] = i == axis and { first, last, step } or {} end
  return tensor.select(x, key)
end

-- The length of an axis, which must be known.
local function length(x, axis, what)
  local n = tensor.raw_shape(x)[axis]
  if n < 0 then raise("%s: axis %d is that of the batch, whose size is not known in a trace", what, axis) end
  return n
end

-- {before, after} for each axis, out of a number, one such pair or a list of them.
local function read_widths(widths, rank, what)
  if type(widths) == "number" then widths = { widths, widths } end
  if type(widths) ~= "table" then raise("%s: widths are {before, after} for each axis, got %s", what, errors.describe(widths)) end
  errors.check_holes(what .. ": widths", widths)
  local pairs_of = {}
  for axis = 1, rank do
    local pair = type(widths[1]) == "number" and widths or widths[axis]
    if type(pair) ~= "table" or #pair ~= 2 then raise("%s: widths are {before, after} for each of %d axes", what, rank) end
    pairs_of[axis] = { whole(pair[1], 0, what, "a width"), whole(pair[2], 0, what, "a width") }
  end
  if type(widths[1]) ~= "number" and #widths ~= rank then
    raise("%s: there are widths for %d axes, the tensor has %d", what, #widths, rank)
  end
  return pairs_of
end

-- define, axis_from: of ops.lua. gather(table, indices): rows by their numbers from 0.
return function(ops, define, axis_from, gather)
  local operand = ops.operand

  local function axis_of(x, axis, what)
    return axis_from(axis, #tensor.raw_shape(x), what) + 1
  end

  ---- take ------------------------------------------------------------------------------------------------------------------------

  -- Positions as numbers from 0 of n elements; n < 0: not known, then they cannot count from the end.
  local function from_zero(positions, n, what)
    if positions.dtype == "bool" then raise("%s: positions are whole numbers, got a tensor of bool", what) end
    if n >= 0 and not tensor.is_symbolic(positions) and positions.size > 0 then
      local least, most = tonumber(positions:min():item()), tonumber(positions:max():item())
      local wrong = most > n and most or least < -n and least or least <= 0 and most >= 0 and positions:eq(0):any():item() and 0
      if wrong then
        raise("%s: position %d is out of range: the axis has %d elements%s", what, wrong, n, wrong == 0 and ", counted from 1" or "")
      end
      if least > 0 then return positions - 1 end
    end
    if n < 0 then return positions - 1 end
    return ops.where(positions:lt(0), positions + n, positions - 1)
  end
  ops.positions_from_zero = from_zero

  -- The elements at positions (a number, a list or a tensor of whole numbers) of an axis, or of the flattened tensor.
  local function take(x, positions, axis)
    local what = "flow.take"
    x, positions = operand(x, nil, what), operand(positions, "int32", what)
    if positions.dtype ~= "int64" or tensor.is_symbolic(positions) then positions = positions:to("int32") end
    if axis == nil then x, axis = ops.reshape(x, -1), 1 end
    axis = axis_of(x, axis, what)
    local rank, order = #tensor.raw_shape(x), { axis }
    positions = from_zero(positions, tensor.raw_shape(x)[axis], what)
    local within = axis > 1 and not tensor.is_symbolic(x) and not tensor.is_symbolic(positions)
      and require("flow.tensor.composed.rows_within")(x, positions, axis, gather)
    if within then return within end
    for i = 1, rank do order[#order + 1] = i ~= axis and i or nil end
    local taken = gather(axis == 1 and x or ops.transpose(x, order):contiguous(), positions)
    local count, back = #tensor.raw_shape(positions), {}
    if axis == 1 then return taken end
    for i = 1, axis - 1 do back[i] = count + i end
    for i = 1, count do back[#back + 1] = i end
    for i = axis, rank - 1 do back[#back + 1] = count + i end
    return ops.transpose(taken, back)
  end
  takes "x, positions, axis?"
  define(take, "take")

  -- The order of an axis, of some, or of all turned round: one slice that goes back along them.
  takes "x, axis?: number|list"
  define(function(x, axis)
    local what, turned = "flow.flip", {}
    x = operand(x, nil, what)
    local begins, ends, steps = {}, {}, {}
    if axis then
      for _, i in ipairs(type(axis) == "table" and axis or { axis }) do turned[axis_of(x, i, what)] = true end
    end
    for i = 1, #tensor.raw_shape(x) do
      local n = (axis == nil or turned[i]) and length(x, i, what) or 0
      if n > 1 then begins[i], ends[i], steps[i] = n - 1, -1, -1
      else begins[i], ends[i], steps[i] = 0, LAST, 1 end
    end
    return ops.slice_from_zero(x, begins, ends, steps)
  end, "flip")

  ---- parts ------------------------------------------------------------------------------------------------------------------------

  -- A list of parts along an axis (1): this many equal ones, or those between cuts after this many elements: {2, 5} cuts 7 in 2, 3 and 2.
  takes "x, cuts, axis = 1"
  define(function(x, cuts, axis)
    local what = "flow.split"
    x = operand(x, nil, what)
    axis = axis_of(x, axis or 1, what)
    local n, parts, before = length(x, axis, what), {}, 0
    if type(cuts) == "number" then
      local count = whole(cuts, 1, what, "the number of parts")
      if n % count ~= 0 then raise("%s: %d elements of axis %d cannot be split in %.0f equal parts", what, n, axis, count) end
      cuts = {}
      for i = 1, count - 1 do cuts[i] = i * n / count end
    elseif type(cuts) ~= "table" or getmetatable(cuts) then
      raise("%s: a number of parts or a list of cuts, got %s", what, errors.describe(cuts))
    end
    errors.check_list(what .. ": the cuts", cuts)
    for i = 1, #cuts + 1 do
      local cut = cuts[i] and whole(cuts[i], before, what, ("cut %d"):format(i)) or n
      if cut > n then raise("%s: cut %d is after %d elements, axis %d has %d", what, i, cut, axis, n) end
      parts[i] = part(x, axis, before + 1, cut)
      before = cut
    end
    return parts
  end, "split")

  -- A list of the elements along an axis (1), which they do not have any more. num: how many there are, if it is given.
  takes "x, num?: whole, axis = 1"
  define(function(x, num, axis)
    x = operand(x, nil, "flow.unstack")
    axis = axis_of(x, axis or 1, "flow.unstack")
    local list, count = {}, length(x, axis, "flow.unstack")
    if num and num ~= count then raise("flow.unstack: num is %d, axis %d has %d elements", num, axis, count) end
    for i = 1, count do list[i] = ops.squeeze(part(x, axis, i, i), axis) end
    return list
  end, "unstack")

  ---- repetitions ------------------------------------------------------------------------------------------------------------------

  local MOST_COPIES = 1e6

  local function copies(x, count, axis)
    if count == 0 then return part(x, axis, 1, 0) end
    local list = {}
    if count > MOST_COPIES then
      raise("%.0f copies are too many, at most %d can be put together: broadcast_to makes more", count, MOST_COPIES)
    end
    for i = 1, count do list[i] = x end
    return ops.concat(list, axis)
  end

  -- As many copies along the first axis as a batch has rows, in a trace that does not know how many.
  local function copies_by_rows(x, rows, axis, what)
    if axis ~= 1 then raise("%s: axis %d cannot be repeated by the rows of a batch, only the first one can", what, axis) end
    local shape = tensor.raw_shape(x)
    local spread = ops.broadcast_to(ops.expand_dims(x, 1), { rows, unpack(shape) })
    shape[1] = shape[1] == 1 and rows or rows * length(x, 1, what)
    return ops.reshape(spread, shape)
  end

  -- x this many times along each axis; fewer numbers than axes are for the last ones.
  takes "x, repeats"
  define(function(x, repeats)
    local what = "flow.tile"
    x = operand(x, nil, what)
    if native.is_tensor(repeats) then repeats = require("flow.tensor.shapes").values_of(repeats) end
    if type(repeats) == "number" then repeats = { repeats } end
    if type(repeats) ~= "table" then raise("%s: a list of numbers, one an axis, got %s", what, errors.describe(repeats)) end
    errors.check_list(what, repeats)
    while #tensor.raw_shape(x) < #repeats do x = ops.expand_dims(x, 1) end
    local first = #tensor.raw_shape(x) - #repeats
    for i, count in ipairs(repeats) do
      if require("flow.tensor.shapes").is_rows(count) then
        x = copies_by_rows(x, count, first + i, what)
      else
        count = whole(count, 0, what, ("entry %d"):format(i))
        if count ~= 1 then x = copies(x, count, first + i) end
      end
    end
    return x
  end, "tile")

  -- Each element of an axis, or of the flattened tensor, this many times; a list, or a tensor with values, has a number for each element.
  takes "x, repeats, axis?"
  define(function(x, count, axis)
    local what = "flow.repeat_"
    x = operand(x, nil, what)
    if axis == nil then x, axis = ops.reshape(x, -1), 1 end
    axis = axis_of(x, axis, what)
    if type(count) ~= "number" then return require "flow.tensor.composed.repetitions" (x, count, axis, copies_by_rows) end
    count = whole(count, 0, what, "the number of repetitions")
    local dims = tensor.raw_shape(x)
    dims[axis] = dims[axis] * count      -- of the batch's, this many rows for each of its rows
    return ops.reshape_raw(copies(ops.expand_dims(x, axis + 1), count, axis + 1), dims)
  end, "repeat_")

  ---- pad --------------------------------------------------------------------------------------------------------------------------

  -- What is before and after x along an axis: number times a value.
  local function with_constant(x, axis, pair, value)
    length(x, axis, "flow.pad")
    local list, dims, dtype = { x }, tensor.raw_shape(x), native.dtype(x.dtype)
    local function border(width)
      dims[axis] = width
      return ops.full_raw(x, dims, value, dtype, "flow.pad")
    end
    if pair[1] > 0 then table.insert(list, 1, border(pair[1])) end
    if pair[2] > 0 then list[#list + 1] = border(pair[2]) end
    return ops.concat(list, axis)
  end

  -- x in zeros, along all axes but the first in one pass: what a slice of that size gives back as its gradient.
  local function with_zeros(x, pairs_of)
    local begins, finishes, dims = {}, {}, tensor.raw_shape(x)
    for axis, n in ipairs(dims) do
      local pair = axis > 1 and pairs_of[axis] or { 0, 0 }
      if pair[1] + pair[2] > 0 then length(x, axis, "flow.pad") end      -- known
      begins[axis], finishes[axis], dims[axis] = pair[1], pair[1] + pair[2] == 0 and LAST or pair[1] + n, pair[1] + n + pair[2]
    end
    return ops.slice_into_zeros(x, begins, finishes, dims)
  end

  -- Mirrored at the outer elements, which occur once (reflect, skip = 1) or twice (symmetric, skip = 0).
  local function mirrored(x, axis, pair, skip, what)
    local n = length(x, axis, what)
    if math.max(pair[1], pair[2]) > n - skip then
      raise("%s: %d elements of axis %d can be mirrored at most %d wide", what, n, axis, math.max(n - skip, 0))
    end
    local list = { x }
    if pair[1] > 0 then table.insert(list, 1, part(x, axis, pair[1] + skip, 1 + skip, -1)) end
    if pair[2] > 0 then list[#list + 1] = part(x, axis, n - skip, n - skip - pair[2] + 1, -1) end
    return ops.concat(list, axis)
  end

  -- x with more elements before and after each axis: constant_values, or those that are there, mirrored.
  takes "x, widths, mode = 'constant', constant_values = 0"
  define(function(x, widths, mode, value)
    local what = "flow.pad"
    local given = operand(x, nil, what)
    x = given
    mode = mode or "constant"
    mode = type(mode) == "string" and mode:lower() or mode
    if mode ~= "constant" and mode ~= "reflect" and mode ~= "symmetric" then
      raise("%s: mode is constant, reflect or symmetric, got %s", what, errors.describe(mode))
    end
    local pairs_of, last = read_widths(widths, #tensor.raw_shape(x), what), #tensor.raw_shape(x)
    if mode == "constant" and (value or 0) == 0 and last > 1 and not tensor.is_symbolic(x) then x, last = with_zeros(x, pairs_of), 1 end
    for axis = 1, last do
      local pair = pairs_of[axis]
      if pair[1] + pair[2] > 0 then
        local before = x
        if mode == "constant" then x = with_constant(x, axis, pair, value or 0)
        else x = mirrored(x, axis, pair, mode == "reflect" and 1 or 0, what) end
        if before ~= given then native.close_tensor(before) end      -- its memory, still in the processor's caches, is there for the next
      end
    end
    return x
  end, "pad")

  ---- the largest ones ---------------------------------------------------------------------------------------------------------------

  -- The k largest entries along the last axis, the largest first, and their positions (int64); NaN counts as the largest. Without sorted
  -- Keras leaves their order open.
  local function top_k(x, k, sorted)
    local what, tools = "flow.top_k", require "flow.tensor.composed.tools"
    x = operand(x, nil, what)
    local rank = #tensor.raw_shape(x)
    if rank == 0 then raise("%s: a single number has no last axis", what) end
    if sorted ~= nil and type(sorted) ~= "boolean" then raise("%s: sorted is true or false, got %s", what, errors.describe(sorted)) end
    local n = length(x, rank, what)
    k = whole(k, 0, what, "k")
    if k > n then raise("%s: k is %d, the last axis has %d elements", what, k, n) end
    local from_zero_on = tools.argsort(x, rank, true, 0, k)
    if k == 0 then from_zero_on = part(from_zero_on, rank, 1, 0) end      -- argsort has no number for none
    return tools.take_along(x, from_zero_on, rank), from_zero_on + 1
  end
  takes "x, k, sorted?"
  define(top_k, "top_k")
end
