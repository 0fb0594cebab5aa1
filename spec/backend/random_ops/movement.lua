--- Ops that move elements, products of matrices and tensors of one value.
local flow = require "flow"
local assert = require "luassert"
local arrays = require "spec.support.arrays"
local arguments = require "spec.backend.random_ops.arguments"

local DTYPES, INTEGERS, NUMBERS = arguments.DTYPES, arguments.INTEGERS, arguments.NUMBERS
local promoted, values, input, to_tensor = arguments.promoted, arguments.values, arguments.input, arguments.to_tensor

local ops = {}

ops.reshape = function(s)
  local a, x, dtype = input(s, s.shape(), DTYPES)
  local shape = arguments.shape_of(s, a.n)
  local asked = { unpack(shape) }
  if s.maybe(0.4) and a.n > 0 then asked[s.draw(1, #asked)] = -1 end
  return { { x:reshape(asked), arrays.reshape(a, shape), dtype, 0, 0 }, { x:flatten(), arrays.reshape(a, { a.n }), dtype, 0, 0 } }
end

ops.broadcast_to = function(s)
  local shape = s.shape()
  local a, x, dtype = input(s, s.partner(shape), DTYPES)
  return { { x:broadcast_to(shape), arrays.broadcast_to(a, shape), dtype, 0, 0 } }
end

ops.expand_dims = function(s)
  local a, x, dtype = input(s, s.shape(0, 3), DTYPES)
  local axis, shape = s.draw(1, #a.shape + 1), { unpack(a.shape) }
  table.insert(shape, axis, 1)
  local found = x:expand_dims(axis)
  local back = found:squeeze(axis)
  return { { found, arrays.reshape(a, shape), dtype, 0, 0 }, { back, a, dtype, 0, 0 } }
end

ops.transpose = function(s)
  local a, x, dtype = input(s, s.shape(), DTYPES)
  local order, reversed = {}, {}
  for i = 1, #a.shape do
    table.insert(order, s.draw(1, i), i)
    table.insert(reversed, 1, i)
  end
  local turned = arrays.transpose(a, order)
  local checks = { { x:transpose(order), turned, dtype, 0, 0 }, { x:permute(order), turned, dtype, 0, 0 },
                   { x:transpose(), arrays.transpose(a, reversed), dtype, 0, 0 } }
  if #order > 0 then
    local swapped, i, j = { unpack(reversed) }, s.draw(1, #order), s.draw(1, #order)
    table.sort(swapped)
    swapped[i], swapped[j] = swapped[j], swapped[i]
    checks[4] = { x:swapaxes(i, j - #order - 1), arrays.transpose(a, swapped), dtype, 0, 0 }
  end
  return checks
end

ops.index = function(s)
  local a, x, dtype = input(s, s.shape(1), DTYPES)
  local key, lists, shape = {}, {}, {}
  local count = s.draw(1, #a.shape)
  for axis, n in ipairs(a.shape) do
    local dropped
    if axis <= count then
      key[axis], lists[axis], dropped = arguments.index(s, n)
    else
      lists[axis] = {}
      for i = 1, n do lists[axis][i] = i end
    end
    if not dropped then shape[#shape + 1] = #lists[axis] end
  end
  local taken = arrays.reshape(arrays.pick(a, lists), shape)
  local checks = { { x[key], taken, dtype, 0, 0 } }
  if s.maybe(0.5) then      -- an assignment changes those and no others
    local own, marks = x:clone(), arrays.map(function() return 0 end, a)
    own[key] = 1
    for _, list in ipairs(lists) do for i, position in ipairs(list) do list[position < 0 and i or -position] = true end end
    arrays.build(a.shape, function(positions, i)
      local hit = 1
      for axis, list in ipairs(lists) do hit = list[-positions[axis]] and hit or 0 end
      marks[i] = hit
      return 0
    end)
    checks[2] = { own, arrays.zip(function(v, hit) return hit == 1 and 1 or v end, a, marks), dtype, 0, 0 }
  end
  return checks
end

ops.concat = function(s)
  local shape, list, tensors, dtype = s.shape(1), {}, {}, nil
  local axis = s.draw(1, #shape)
  for i = 1, s.draw(1, 4) do
    local own, found = { unpack(shape) }
    own[axis] = s.maybe(0.2) and 0 or s.draw(1, 4)
    list[i], tensors[i], found = input(s, own, DTYPES)
    dtype = dtype and promoted("concatenate", dtype, found) or found
  end
  return { { flow.concat(tensors, s.maybe(0.5) and axis or axis - #shape - 1), arrays.concat(list, axis), dtype, 0, 0 } }
end

ops.stack = function(s)
  local shape, list, tensors, dtype = s.shape(0, 3), {}, {}, nil
  local axis, longer = s.draw(1, #shape + 1), { unpack(shape) }
  table.insert(longer, axis, 1)
  for i = 1, s.draw(1, 4) do
    local found
    list[i], tensors[i], found = input(s, shape, DTYPES)
    list[i] = arrays.reshape(list[i], longer)
    dtype = dtype and promoted("stack", dtype, found) or found
  end
  return { { flow.stack(tensors, axis), arrays.concat(list, axis), dtype, 0, 0 } }
end

local function all_positions(shape)
  local lists = {}
  for axis, n in ipairs(shape) do
    lists[axis] = {}
    for i = 1, n do lists[axis][i] = i end
  end
  return lists
end

ops.split = function(s)
  local a, x, dtype = input(s, s.shape(1), DTYPES)
  local axis = s.draw(1, #a.shape)
  local n, cuts, before, checks = a.shape[axis], {}, 0, {}
  for i = 1, s.draw(0, 3) do
    cuts[i] = s.draw(before, n)
    before = cuts[i]
  end
  local parts = flow.split(x, cuts, axis)
  for i = 1, #cuts + 1 do
    local lists = all_positions(a.shape)
    lists[axis] = {}
    for position = (cuts[i - 1] or 0) + 1, cuts[i] or n do table.insert(lists[axis], position) end
    checks[i] = { parts[i], arrays.pick(a, lists), dtype, 0, 0 }
  end
  local slices, shape = flow.unstack(x, nil, axis), { unpack(a.shape) }
  table.remove(shape, axis)
  assert.equals(n, #slices)
  for i = 1, n do
    local lists = all_positions(a.shape)
    lists[axis] = { i }
    checks[#checks + 1] = { slices[i], arrays.reshape(arrays.pick(a, lists), shape), dtype, 0, 0 }
  end
  return checks
end

ops.take = function(s)
  local a, x, dtype = input(s, s.shape(1, 3), DTYPES)
  local axis = s.draw(1, #a.shape)
  local n = a.shape[axis]
  local shape = s.shape(0, 2)
  if n == 0 then shape = { 0 } end
  local places = arrays.build(shape, function() return s.draw(1, n) end)
  local asked = arrays.map(function(p) return s.maybe(0.3) and p - n - 1 or p end, places)
  return { { flow.take(x, to_tensor(s, asked, s.pick { "int32", "int64", "int8" }), axis), arrays.take(a, places, axis), dtype, 0, 0 } }
end

ops.flip = function(s)
  local a, x, dtype = input(s, s.shape(), DTYPES)
  local axis, lists = #a.shape > 0 and s.maybe(0.7) and s.draw(1, #a.shape) or nil, all_positions(a.shape)
  for i, list in ipairs(lists) do
    if axis == nil or i == axis then
      for k = 1, #list do list[k] = #list + 1 - k end
    end
  end
  return { { flow.flip(x, axis), arrays.pick(a, lists), dtype, 0, 0 } }
end

ops.tile = function(s)
  local a, x, dtype = input(s, s.shape(1, 3), DTYPES)
  local repeats, lists = {}, all_positions(a.shape)
  for axis, list in ipairs(lists) do
    repeats[axis] = s.maybe(0.1) and 0 or s.draw(1, 3)
    lists[axis] = {}
    for _ = 1, repeats[axis] do for _, position in ipairs(list) do table.insert(lists[axis], position) end end
  end
  local axis, count, again = s.draw(1, #a.shape), s.draw(0, 3), all_positions(a.shape)
  again[axis] = {}
  for position = 1, a.shape[axis] do for _ = 1, count do table.insert(again[axis], position) end end
  return { { flow.tile(x, repeats), arrays.pick(a, lists), dtype, 0, 0 },
           { flow.repeat_(x, count, axis), arrays.pick(a, again), dtype, 0, 0 } }
end

ops.pad = function(s)
  local a, x, dtype = input(s, s.shape(1, 3), DTYPES)
  local mode = s.pick { "constant", "reflect", "symmetric" }
  local skip = mode == "reflect" and 1 or 0
  local widths = {}
  for axis, n in ipairs(a.shape) do
    local most = mode == "constant" and 3 or math.max(n - skip, 0)
    widths[axis] = { s.draw(0, most), s.draw(0, most) }
  end
  local value = s.draw(0, 1)
  local padded = arrays.pad(a, widths, value, mode ~= "constant" and skip or nil)
  return { { flow.pad(x, widths, { mode = mode, constant_values = value }), padded, dtype, 0, 0 } }
end

ops.matmul = function(s)
  local rank, outer = s.draw(0, 2), {}
  for i = 1, rank do outer[i] = s.maybe(0.1) and 0 or s.draw(1, 3) end
  local inner = s.maybe(0.1) and 0 or s.draw(1, 9)
  local first, second = s.partner(outer), s.partner(outer)
  for _, dim in ipairs { s.maybe(0.1) and 0 or s.draw(1, 20), inner } do first[#first + 1] = dim end
  for _, dim in ipairs { inner, s.maybe(0.1) and 0 or s.draw(1, 20) } do second[#second + 1] = dim end
  if s.maybe(0.1) then first = { inner } end
  if s.maybe(0.1) then second = { inner } end
  local one = s.pick(NUMBERS)
  local a = values(s, first, one, 0, 4)
  local b, y, other = input(s, second, NUMBERS, 0, 4)
  local expected, scales = arrays.matmul(a, b)
  return { { flow.matmul(to_tensor(s, a, one), y), expected, promoted("matmul", one, other), scales, 4 + inner } }
end

ops.one_hot = function(s)
  local labels, x = input(s, s.shape(0, 3), INTEGERS, -1, 5)
  local count, shape = s.draw(0, 5), { unpack(labels.shape) }
  shape[#shape + 1] = count
  local expected = arrays.build(shape, function(positions, i)
    return labels[math.ceil(i / count)] == positions[#shape] - 1 and 1 or 0
  end)
  return { { flow.one_hot(x, count), expected, "float32", 0, 0 } }
end

ops.full_like = function(s)
  local a, x, dtype = input(s, s.shape(), DTYPES)
  local function filled(value) return arrays.map(function() return value end, a) end
  return { { flow.zeros_like(x), filled(0), dtype, 0, 0 }, { flow.ones_like(x), filled(1), dtype, 0, 0 },
           { flow.full_like(x, 1), filled(1), dtype, 0, 0 }, { flow.full(a.shape, 3), filled(3), "float32", 0, 0 } }
end

return ops
