--- Means and variances of batches are those of doubles wherever the rows are: far from zero, far from the first rows, in blocks, on ramps,
--- among a few outliers, all equal. FLOW_CASES=10000 tries ten thousand random batches; a failure names its number.
require "spec.support.init"
local flow = require "flow"
local native = require "flow.ffi"
local backend = require "spec.support.backend"

local FIRST, LAST = (require "spec.support.case_numbers")(300)
local DTYPES = { "float32", "float32", "float32", "float16", "bfloat16", "float64" }
local ROUNDING = { float32 = 2 ^ -24, float64 = 0, float16 = 2 ^ -11, bfloat16 = 2 ^ -8 }      -- of the results
local CHANNELS = { 1, 2, 3, 5, 8, 16, 17, 33, 64, 70, 130 }
local ELEMENTS = 6000      -- of a random batch, at most

--- What the rows of a channel are made of: each takes draw(low, high) and returns a function of the row's number, from 1.
local shapes = {
  function(draw)      -- far from zero
    local center, spread = draw(-1, 1) * 10 ^ draw(0, 4), 10 ^ draw(-1, 1)
    return function() return center + spread * draw(-1, 1) end
  end,
  function(draw)      -- the first rows far from all others
    local first, distance, center = draw(1, 100), 10 ^ draw(0, 4), draw(-10, 10)
    return function(row) return center + draw(-1, 1) + (row <= first and distance or 0) end
  end,
  function(draw)      -- a ramp
    local from, slope, noise = draw(-100, 100), draw(-1, 1), draw(0, 2)
    return function(row) return from + slope * row + noise * draw(-1, 1) end
  end,
  function(draw)      -- blocks of rows, high and low in turn
    local length, height, noise = math.floor(draw(1, 100)), 10 ^ draw(0, 3), math.max(0, draw(-1, 1))
    return function(row) return (math.floor(row / length) % 2 * 2 - 1) * height + noise * draw(-1, 1) end
  end,
  function(draw)      -- a few outliers
    local share, distance = draw(0, 0.02), 10 ^ draw(1, 4)
    return function() return draw(-1, 1) + (draw(0, 1) < share and distance or 0) end
  end,
  function(draw)      -- all rows equal
    local value = draw(-1, 1) * 10 ^ draw(-3, 4)
    return function() return value end
  end,
  function(draw)      -- one of two values
    local low, high = draw(-1, 1), draw(-1, 1) * 10 ^ draw(0, 2)
    return function() return draw(0, 1) < 0.5 and low or high end
  end,
}

--- A source of uniform numbers: draw(low, high).
local function source(seed)
  local state = (seed * 2654435761 + 12345) % 2147483647
  return function(low, high)
    state = state * 48271 % 2147483647
    return low + (state - 1) / 2147483646 * (high - low)
  end
end

local function read(t)
  t = t:to("float64"):copy()
  local values = native.array("double", t.size)
  native.check(native.C.flow_tensor_read(t.p, values, t.size))
  return values
end

--- Batch number `number`: x {rows, channels} or {n, rows / n, channels} of that dtype, and its values as doubles.
local function random_batch(number)
  local draw = source(number)
  for _ = 1, 3 do draw(0, 1) end
  local channels = CHANNELS[math.floor(draw(1, #CHANNELS + 0.999))]
  local inside = math.floor(draw(1, 4.99))
  local rows = inside * math.max(1, math.floor(ELEMENTS ^ draw(0.3, 1) / channels / inside))
  local dtype = DTYPES[math.floor(draw(1, #DTYPES + 0.999))]
  local values = native.array("double", rows * channels)
  for c = 0, channels - 1 do
    local value = shapes[math.floor(draw(1, #shapes + 0.999))](draw)
    for row = 0, rows - 1 do values[row * channels + c] = value(row + 1) end
  end
  local x = flow.zeros({ rows / inside, inside, channels }, { dtype = "float64" })
  native.check(native.C.flow_tensor_write(x.p, values, rows * channels))
  x = x:to(dtype)
  return { x = x, values = read(x), rows = rows, channels = channels, dtype = dtype,
           label = ("number %d: %d rows of %d channels, %s"):format(number, rows, channels, dtype) }
end

--- Mean and variance of a channel by plain loops.
local function reference(batch, channel)
  local mean, variance, values, step = 0, 0, batch.values, batch.channels
  local first = values[channel]
  for row = 0, batch.rows - 1 do mean = mean + (values[row * step + channel] - first) end
  mean = first + mean / batch.rows
  for row = 0, batch.rows - 1 do variance = variance + (values[row * step + channel] - mean) ^ 2 end
  return mean, variance / batch.rows
end

local function check(batch, means, variances)
  local rounding = ROUNDING[batch.dtype]
  for channel = 0, batch.channels - 1 do
    local mean, variance = reference(batch, channel)
    local function near(found, expected, tolerance, what)
      if math.abs(found - expected) <= tolerance then return end
      error(("%s, channel %d: %s %.10g, expected %.10g within %.3g"):format(batch.label, channel + 1, what, found, expected, tolerance), 0)
    end
    near(means[channel], mean, (rounding + 1e-12) * math.abs(mean) + 1e-6 * math.sqrt(variance), "mean")
    local tiny = batch.dtype == "float16" and 2 ^ -25 or 0      -- half the distance of its smallest numbers
    if batch.dtype == "float16" and variance >= 65520 then variance = math.huge end      -- its largest is 65504
    if variance ~= variances[channel] then
      near(variances[channel], variance, (rounding + 1e-6) * variance + 1e-24 * mean ^ 2 + tiny, "variance")
    end
  end
end

local function statistics(x)
  local channels = x.shape[#x.shape]
  local parameters = { flow.ones({ channels }, { dtype = x.dtype }), flow.zeros({ channels }, { dtype = x.dtype }) }
  local outputs = backend.apply("batch_norm", { x, parameters[1], parameters[2] }, { normalization = { epsilon = 1e-3, axis = -1 } })
  return read(outputs[2]), read(outputs[3])
end

describe("the statistics of a batch", function()
  it("are those of doubles", function()
    for number = FIRST, LAST do
      local batch = random_batch(number)
      check(batch, statistics(batch.x))
      if number % 50 == 0 then collectgarbage() end
    end
  end)

  it("are those of doubles if the first rows of many are far away", function()
    for _, channels in ipairs { 1, 3, 8, 20, 64 } do
      local rows = 40000
      local x = flow.random.normal({ rows, channels }, { seed = channels })
      x[{ { 1, 32 } }] = x[{ { 1, 32 } }] + 1000
      check({ values = read(x), rows = rows, channels = channels, dtype = "float32", label = "40000 rows" }, statistics(x))
    end
  end)

  it("reach the moving averages of the layer", function()
    local rows, channels = 3000, 5
    local x = flow.random.normal({ rows, channels }, { seed = 1 }) + 5000
    x[{ { 1, 32 } }] = x[{ { 1, 32 } }] - 4000
    local layer = flow.layers.BatchNormalization { momentum = 0 }
    local batch = { values = read(x), rows = rows, channels = channels, dtype = "float32", label = "the layer" }
    layer(x, { training = true })
    check(batch, read(layer.moving_mean:value()), read(layer.moving_variance:value()))
    local traced = flow.layers.BatchNormalization { momentum = 0 }
    traced(x)
    flow.fn(function(t) return traced(t, { training = true }) end)(x)
    check(batch, read(traced.moving_mean:value()), read(traced.moving_variance:value()))
  end)
end)
