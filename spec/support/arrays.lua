--- arrays.lua: NumPy's rules in plain loops over doubles: what random_ops_spec.lua compares the tensor ops with.
--- An array is { shape = list, n = number of elements, [1 .. n] = doubles, row by row }; booleans are 0 and 1. Axes count from 1.
local arrays = {}

local function product(shape)
  local n = 1
  for _, dim in ipairs(shape) do n = n * dim end
  return n
end
arrays.product = product

--- An array of that shape whose element at the positions (a list, from 1) is f(positions, i).
local function build(shape, f)
  local array, positions = { shape = shape, n = product(shape) }, {}
  for axis = 1, #shape do positions[axis] = 1 end
  for i = 1, array.n do
    array[i] = f(positions, i)
    for axis = #shape, 1, -1 do
      positions[axis] = positions[axis] + 1
      if positions[axis] <= shape[axis] then break end
      positions[axis] = 1
    end
  end
  return array
end
arrays.build = build

--- The element at positions.
local function at(array, positions)
  local i = 0
  for axis, dim in ipairs(array.shape) do i = i * dim + positions[axis] - 1 end
  return array[i + 1]
end

local function copy(list)
  local result = {}
  for i = 1, #list do result[i] = list[i] end
  return result
end

--- Of two numbers; NaN if one is NaN.
function arrays.maximum(a, b) return (a ~= a or b ~= b) and 0 / 0 or math.max(a, b) end
function arrays.minimum(a, b) return (a ~= a or b ~= b) and 0 / 0 or math.min(a, b) end

function arrays.map(f, a)
  return build(a.shape, function(_, i) return f(a[i]) end)
end

--- The shape that all broadcast to, or nil.
function arrays.broadcast_shape(...)
  local shape, rank = {}, 0
  for _, a in ipairs { ... } do rank = math.max(rank, #a.shape) end
  for axis = 1, rank do
    local dim = 1
    for _, a in ipairs { ... } do
      local own = a.shape[axis - rank + #a.shape] or 1
      if own ~= 1 and dim ~= 1 and own ~= dim then return nil end
      if own ~= 1 then dim = own end
    end
    shape[axis] = dim
  end
  return shape
end

function arrays.broadcast_to(a, shape)
  local missing, own = #shape - #a.shape, {}
  return build(shape, function(positions)
    for axis = 1, #a.shape do own[axis] = a.shape[axis] == 1 and 1 or positions[axis + missing] end
    return at(a, own)
  end)
end

--- f of the elements of arrays that broadcast.
function arrays.zip(f, ...)
  local shape, list = arrays.broadcast_shape(...), { ... }
  for i, a in ipairs(list) do list[i] = arrays.broadcast_to(a, shape) end
  return build(shape, function(_, i) return f(list[1][i], list[2] and list[2][i], list[3] and list[3][i]) end)
end

--- f(list of the elements) over axes, a set { [axis] = true }.
function arrays.reduce(f, a, axes, keepdims)
  local kept, shape, gathered = {}, {}, {}
  for axis, dim in ipairs(a.shape) do
    if not axes[axis] then
      kept[#kept + 1] = axis
      shape[#shape + 1] = dim
    elseif keepdims then
      kept[#kept + 1] = false
      shape[#shape + 1] = 1
    end
  end
  local result = build(shape, function(_, i)
    gathered[i] = {}
    return 0
  end)
  local target = { shape = shape }
  for i = 1, result.n do target[i] = gathered[i] end
  build(a.shape, function(positions, i)
    local own = {}
    for k, axis in ipairs(kept) do own[k] = axis and positions[axis] or 1 end
    local list = at(target, own)
    list[#list + 1] = a[i]
    return 0
  end)
  for i = 1, result.n do result[i] = f(gathered[i]) end
  return result
end

function arrays.reshape(a, shape)
  return build(shape, function(_, i) return a[i] end)
end

--- New axis i is old axis order[i].
function arrays.transpose(a, order)
  local shape, own = {}, {}
  for i, axis in ipairs(order) do shape[i] = a.shape[axis] end
  return build(shape, function(positions)
    for i, axis in ipairs(order) do own[axis] = positions[i] end
    return at(a, own)
  end)
end

--- The elements at lists of positions, one list an axis.
function arrays.pick(a, lists)
  local shape, own = {}, {}
  for axis, list in ipairs(lists) do shape[axis] = #list end
  return build(shape, function(positions)
    for axis, list in ipairs(lists) do own[axis] = list[positions[axis]] end
    return at(a, own)
  end)
end

--- The elements at positions (an array of them, from 1) of an axis, whose place the axes of positions take.
function arrays.take(a, positions, axis)
  local shape, own = {}, {}
  for i = 1, axis - 1 do shape[i] = a.shape[i] end
  for _, dim in ipairs(positions.shape) do shape[#shape + 1] = dim end
  for i = axis + 1, #a.shape do shape[#shape + 1] = a.shape[i] end
  return build(shape, function(place)
    local inner = {}
    for i = 1, #positions.shape do inner[i] = place[axis - 1 + i] end
    for i = 1, axis - 1 do own[i] = place[i] end
    own[axis] = at(positions, inner)
    for i = axis + 1, #a.shape do own[i] = place[i - 1 + #positions.shape] end
    return at(a, own)
  end)
end

function arrays.concat(list, axis)
  local shape, starts, total = copy(list[1].shape), {}, 0
  for i, a in ipairs(list) do
    starts[i] = total
    total = total + a.shape[axis]
  end
  shape[axis] = total
  return build(shape, function(positions)
    local i = #list
    while positions[axis] <= starts[i] do i = i - 1 end
    local own = copy(positions)
    own[axis] = positions[axis] - starts[i]
    return at(list[i], own)
  end)
end

--- x with pairs[axis] = { before, after } more elements: value, or those at other positions where mirror is 0 or 1.
function arrays.pad(a, widths, value, mirror)
  local shape = {}
  for axis, dim in ipairs(a.shape) do shape[axis] = widths[axis][1] + dim + widths[axis][2] end
  return build(shape, function(positions)
    local own = {}
    for axis, dim in ipairs(a.shape) do
      local position = positions[axis] - widths[axis][1]
      if (position < 1 or position > dim) and not mirror then return value end
      if position < 1 then position = 1 - position + mirror end
      if position > dim then position = 2 * dim + 1 - position - mirror end
      own[axis] = position
    end
    return at(a, own)
  end)
end

--- Products of matrices in the last two axes, the others broadcast; a of rank 1 is a row, b of rank 1 a column. The second result holds
--- the sums of the absolute products, by which errors are judged.
function arrays.matmul(a, b)
  local row, column = #a.shape == 1, #b.shape == 1
  if row then a = arrays.reshape(a, { 1, a.shape[1] }) end
  if column then b = arrays.reshape(b, { b.shape[1], 1 }) end
  local function outer(x)
    local shape = {}
    for axis = 1, #x.shape - 2 do shape[axis] = x.shape[axis] end
    return shape
  end
  local batch = arrays.broadcast_shape({ shape = outer(a) }, { shape = outer(b) })
  local function whole(x)
    local shape = copy(batch)
    shape[#shape + 1], shape[#shape + 2] = x.shape[#x.shape - 1], x.shape[#x.shape]
    return arrays.broadcast_to(x, shape)
  end
  a, b = whole(a), whole(b)
  local rank, inner, scales = #batch + 2, a.shape[#batch + 2], {}
  local shape = copy(batch)
  shape[rank - 1], shape[rank] = a.shape[rank - 1], b.shape[rank]
  local result = build(shape, function(positions, i)
    local left, right, sum, scale = copy(positions), copy(positions), 0, 0
    for k = 1, inner do
      left[rank], right[rank - 1] = k, k
      local term = at(a, left) * at(b, right)
      sum, scale = sum + term, scale + math.abs(term)
    end
    scales[i] = scale
    return sum
  end)
  local final = copy(batch)
  if not row then final[#final + 1] = result.shape[rank - 1] end
  if not column then final[#final + 1] = result.shape[rank] end
  return arrays.reshape(result, final), scales
end

return arrays
