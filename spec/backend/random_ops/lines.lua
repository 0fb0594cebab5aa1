--- Ops that work along the lines of an axis: order, sums up to each element, transforms; against loops over each line.
local flow = require "flow"
local arrays = require "spec.support.arrays"
local arguments = require "spec.backend.random_ops.arguments"

local input = arguments.input
local REAL, WHOLE = { "float32", "float64" }, { "int32", "int64" }
local EITHER = { "float32", "float64", "int32", "int64" }

local ops = {}

--- f(line) for each line of `a` along an axis, where line is a list; what f returns are the lines of the result, of the same length or
--- another one for all.
local function along(a, axis, f)
  local stride, n = 1, a.shape[axis]
  for i = axis + 1, #a.shape do stride = stride * a.shape[i] end
  local lines, length = {}, nil
  for first = 0, a.n / math.max(n, 1) - 1 do
    local line, at = {}, math.floor(first / stride) * stride * n + first % stride
    for i = 1, n do line[i] = a[at + (i - 1) * stride + 1] end
    lines[first] = f(line)
    length = #lines[first]
  end
  local shape = { unpack(a.shape) }
  shape[axis] = length or n
  local result = { shape = shape, n = arrays.product(shape) }
  for first, line in pairs(lines) do
    local at = math.floor(first / stride) * stride * #line + first % stride
    for i, value in ipairs(line) do result[at + (i - 1) * stride + 1] = value end
  end
  return result
end

--- A shape without sizes of 0, and one of its axes as it may be written.
local function shape_and_axis(s)
  local shape = s.shape(1, 3)
  for i, n in ipairs(shape) do shape[i] = math.max(n, 1) end
  local axis = s.draw(1, #shape)
  return shape, axis, s.maybe(0.5) and axis or axis - #shape - 1
end

--- Positions of a line in order: NaN comes last, equal ones keep their order.
local function order_of(line, descending)
  local list = {}
  for i = 1, #line do list[i] = i end
  local function less(i, k)
    local a, b = line[i], line[k]
    if a ~= a or b ~= b then
      if (a ~= a) ~= (b ~= b) then return b ~= b end
      return i < k
    end
    if a ~= b then return (a < b) ~= descending end
    return i < k
  end
  table.sort(list, less)
  return list
end

ops.sort = function(s)
  local shape, axis, asked = shape_and_axis(s)
  local a, x, dtype = input(s, shape, EITHER)
  local descending = s.maybe(0.5)
  for _, v in ipairs(a) do descending = descending and v == v end      -- where NaN goes then is Keras' to say
  local options = { descending = descending or nil }
  return {
    { flow.argsort(x, asked, options), along(a, axis, function(line) return order_of(line, descending) end), "int64", 0, 0 },
    { flow.sort(x, asked, options), along(a, axis, function(line)
      local list = order_of(line, descending)
      for i, from in ipairs(list) do list[i] = line[from] end
      return list
    end), dtype, 0, 0 },
  }
end

--- What an operation makes of the elements up to each one.
local function running(line, reverse, exclusive, first, f)
  local list, so_far, n = {}, first, #line
  for k = 1, n do
    local i = reverse and n + 1 - k or k
    local before = so_far
    so_far = f(so_far, line[i])
    list[i] = exclusive and before or so_far
  end
  return list
end

ops.cumsum = function(s)
  local shape, axis, asked = shape_and_axis(s)
  local a, x, dtype = input(s, shape, EITHER)
  local reverse, exclusive = s.maybe(0.4), s.maybe(0.4)
  local function sum(p, q) return p + q end
  local found = flow.cumsum(x, asked, { reverse = reverse or nil, exclusive = exclusive or nil })
  return { { found, along(a, axis, function(line) return running(line, reverse, exclusive, 0, sum) end), dtype, 80, 20 } }
end

ops.cumprod = function(s)
  local shape, axis, asked = shape_and_axis(s)
  shape[axis] = math.min(shape[axis], 6)
  local a, x, dtype = input(s, shape, EITHER, 1, 3)
  local function product(p, q) return p * q end
  return { { flow.cumprod(x, asked), along(a, axis, function(line) return running(line, false, false, 1, product) end), dtype, 0, 8 } }
end

-- Sums with sines and cosines, in doubles. Lengths: a few with large prime factors, most without.
ops.fourier = function(s)
  local shape = s.shape(1, 2)
  local n = s.pick { 1, 2, 3, 4, 5, 8, 9, 12, 15, 16, 21, 32, 36, 49, 60, 64, 67, 128, 134, s.draw(1, 150) }
  shape[#shape] = s.maybe(0.7) and n or s.draw(1, n)
  shape = #shape == 1 and { s.draw(1, 3), shape[1] } or shape
  local is_complex, inverse, count = s.maybe(0.5), s.maybe(0.5), s.maybe(0.5) and n or s.draw(0, n)
  local function finite(dtypes)      -- an infinity makes a whole line NaN, as it meets infinities of the other sign
    local a, x, dtype = input(s, shape, dtypes, -1, 1)
    for i, v in ipairs(a) do a[i] = v - v == 0 and v or 0 end
    return a, flow.where(flow.is_finite(x), x, 0), dtype
  end
  local re, x, dtype = finite(REAL)
  local im, y
  if is_complex then im, y = finite { dtype } end
  local made = flow.raw_op("fourier", { x, y }, { size = n, count = count, inverse = inverse })
  local function part(f)
    local result, given = { shape = { shape[1], count }, n = shape[1] * count }, shape[2]
    for line = 0, shape[1] - 1 do
      for k = 0, count - 1 do
        local sum = 0
        for j = 0, given - 1 do
          local angle = 2 * math.pi * (j * k % n) / n * (inverse and 1 or -1)
          sum = sum + f(re[line * given + j + 1], im and im[line * given + j + 1] or 0, math.cos(angle), math.sin(angle))
        end
        result[line * count + k + 1] = sum
      end
    end
    return result
  end
  return { { made[1], part(function(a, b, cos, sin) return a * cos - b * sin end), dtype, 10, 20 },
    { made[2], part(function(a, b, cos, sin) return a * sin + b * cos end), dtype, 10, 20 } }
end

ops.take_along_axis = function(s)
  local shape, axis, asked = shape_and_axis(s)
  local a, x, dtype = input(s, shape, arguments.DTYPES)
  local n, count = shape[axis], s.draw(1, 5)
  local wanted = { unpack(shape) }
  wanted[axis] = count
  local places = arrays.build(wanted, function() return s.draw(1, n) end)
  local written = arrays.map(function(p) return s.maybe(0.3) and p - n - 1 or p end, places)
  local expected, stride = { shape = wanted, n = places.n }, 1
  for i = axis + 1, #shape do stride = stride * shape[i] end
  for i = 1, places.n do
    local outer, inner = math.floor((i - 1) / (stride * count)), (i - 1) % stride
    expected[i] = a[outer * stride * n + (places[i] - 1) * stride + inner + 1]
  end
  local indices = arguments.to_tensor(s, written, s.pick(WHOLE))
  return { { flow.take_along_axis(x, indices, asked), expected, dtype, 0, 0 } }
end

ops.searchsorted = function(s)
  local dtype = s.pick(EITHER)
  local sequence, values = arguments.values(s, { s.draw(1, 30) }, dtype, 0, 9), arguments.values(s, s.shape(1, 2), dtype, 0, 9)
  table.sort(sequence)
  local right = s.maybe(0.5)
  local expected = arrays.map(function(v)
    local place = 1
    for _, entry in ipairs(sequence) do
      if entry < v or (right and entry == v) then place = place + 1 end
    end
    return place
  end, values)
  local x, y = arguments.to_tensor(s, sequence, dtype), arguments.to_tensor(s, values, dtype)
  return { { flow.searchsorted(x, y, right and "right" or "left"), expected, "int32", 0, 0 } }
end

ops.roll = function(s)
  local shape, axis, asked = shape_and_axis(s)
  local a, x, dtype = input(s, shape, arguments.DTYPES)
  local shift = s.draw(-25, 25)
  return { { flow.roll(x, shift, asked), along(a, axis, function(line)
    local list = {}
    for i, v in ipairs(line) do list[(i - 1 + shift) % #line + 1] = v end
    return list
  end), dtype, 0, 0 } }
end

ops.diff = function(s)
  local shape, axis, asked = shape_and_axis(s)
  shape[axis] = shape[axis] + 1
  local a, x, dtype = input(s, shape, EITHER)
  return { { flow.diff(x, 1, asked), along(a, axis, function(line)
    local list = {}
    for i = 2, #line do list[i - 1] = line[i] - line[i - 1] end
    return list
  end), dtype, 8, 2 } }
end

--- The discrete Fourier transform of a line, of its real and imaginary parts.
local function transform(re, im, count)
  local a, b, n = {}, {}, #re
  for k = 0, (count or n) - 1 do
    local x, y = 0, 0
    for t = 0, n - 1 do
      local angle = -2 * math.pi * (k * t % n) / n
      local c, d = math.cos(angle), math.sin(angle)
      x, y = x + re[t + 1] * c - im[t + 1] * d, y + re[t + 1] * d + im[t + 1] * c
    end
    a[k + 1], b[k + 1] = x, y
  end
  return a, b
end

ops.fft = function(s)
  local shape = shape_and_axis(s)
  local dtype, rank = s.pick(REAL), #shape
  local re, im = arguments.values(s, shape, dtype, 0, 4), arguments.values(s, shape, dtype, 0, 4)
  local n, checks = shape[rank], {}
  flow.config.set_precision "exact"      -- on GPUs factors of the products that transforms are made of have 10 bits otherwise
  local found = { flow.fft { arguments.to_tensor(s, re, dtype), arguments.to_tensor(s, im, dtype) } }
  local real = { flow.rfft(arguments.to_tensor(s, re, dtype)) }
  flow.config.set_precision "fast"
  local zeros = {}
  for i = 1, n do zeros[i] = 0 end
  for part = 1, 2 do
    local both, at = { shape = shape, n = re.n }, 0
    along(re, rank, function(line)
      local other = {}
      for i = 1, n do other[i] = im[at + i] end
      for i, v in ipairs((select(part, transform(line, other)))) do both[at + i] = v end
      at = at + n
      return line
    end)
    local size = 16 * n
    checks[#checks + 1] = { found[part], both, dtype, size, 4 }
    checks[#checks + 1] = { real[part], along(re, rank, function(line)
      return (select(part, transform(line, zeros, math.floor(n / 2) + 1)))
    end), dtype, size, 4 }
  end
  return checks
end

return ops
