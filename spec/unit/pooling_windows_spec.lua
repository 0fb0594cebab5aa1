--- Poolings over images and volumes of random sizes beside the definition, cell by cell: with and without positions (predictions need
--- none), gradients too. Values are few, so that windows have equal ones, of which the first gets the gradient. FLOW_CASES=10000 tries
--- this many.
local flow = require "flow"
local arguments = require "spec.backend.random_ops.arguments"

local layers = flow.layers
local FIRST, LAST = (require "spec.support.case_numbers")(60)

-- Windows of one axis: the first and the last cell of each, from 1, inside of the axis.
local function windows(size, window, stride, padding)
  local count, before = math.floor((size - window) / stride) + 1, 0
  if padding == "same" then
    count = math.ceil(size / stride)
    before = math.floor(math.max((count - 1) * stride + window - size, 0) / 2)
  end
  local made = {}
  for i = 1, count do
    local first = (i - 1) * stride - before + 1
    made[i] = { math.max(first, 1), math.min(first + window - 1, size) }
  end
  return made
end

-- x {n, d, h, w, c} as a list, g the gradient of the results: the results and the gradient of x, as lists.
local function pool(x, dims, axes, average, g)
  local n, d, h, w, c = unpack(dims)
  local y, dx = {}, {}
  for i = 1, n * d * h * w * c do dx[i] = 0 end
  for image = 0, n - 1 do
    for _, planes in ipairs(axes[1]) do for _, rows in ipairs(axes[2]) do for _, columns in ipairs(axes[3]) do
      for channel = 1, c do
        local best, sum, cells = nil, 0, {}
        for k = planes[1], planes[2] do for i = rows[1], rows[2] do for j = columns[1], columns[2] do
          local at = (((image * d + k - 1) * h + i - 1) * w + j - 1) * c + channel
          cells[#cells + 1] = at
          sum = sum + x[at]
          if not best or x[at] > x[best] then best = at end
        end end end
        y[#y + 1] = average and sum / #cells or x[best]
        if average then
          for _, at in ipairs(cells) do dx[at] = dx[at] + g[#y] / #cells end
        else
          dx[best] = dx[best] + g[#y]
        end
      end
    end end end
  end
  return y, dx
end

local function random_case(number)
  local draw = arguments.source(number).draw
  local volume, average, padding = draw(1, 3) == 1, draw(1, 2) == 1, draw(1, 2) == 1 and "same" or "valid"
  local channels = ({ 1, 3, 8, 16, draw(1, 40) })[draw(1, 5)]
  local size, stride, dims, axes = {}, {}, { draw(1, 3), 1 }, { { { 1, 1 } } }
  for axis = 1, volume and 3 or 2 do
    local most = volume and 3 or 6
    size[axis] = draw(1, most)
    stride[axis] = draw(1, 3) == 1 and size[axis] or draw(1, 3)
    local extent = draw(size[axis], volume and 6 or 14)
    local at = volume and axis or axis + 1
    dims[at + 1] = extent
    axes[at] = windows(extent, size[axis], stride[axis], padding)
  end
  dims[5] = channels
  local shape = volume and dims or { dims[1], dims[3], dims[4], dims[5] }
  local name = (average and "Average" or "Max") .. "Pooling" .. (volume and "3D" or "2D")
  return {
    layer = layers[name] { pool_size = size, strides = stride, padding = padding }, dims = dims, axes = axes, average = average,
    x = flow.random.uniform(shape, { maxval = 9, dtype = "int32", seed = number }):to "float32",
    label = ("number %d: %s of {%s}, windows {%s}, strides {%s}, %s"):format(number, name, table.concat(shape, ", "),
      table.concat(size, ", "), table.concat(stride, ", "), padding),
  }
end

-- Windows of more cells than positions are counted for (254): as random_case.
local function large_case(size, stride, dims, padding)
  local axes, volume = {}, #size == 3
  local shape = volume and dims or { dims[1], dims[3], dims[4], dims[5] }
  if not volume then size, stride = { 1, size[1], size[2] }, { 1, stride[1], stride[2] } end
  for axis = 1, 3 do axes[axis] = windows(dims[axis + 1], size[axis], stride[axis], padding) end
  local options = { pool_size = volume and size or { size[2], size[3] }, strides = volume and stride or { stride[2], stride[3] },
    padding = padding }
  return { layer = layers["MaxPooling" .. (volume and "3D" or "2D")](options), options = options, dims = dims, axes = axes,
    x = flow.random.uniform(shape, { maxval = 99, dtype = "int32", seed = 1 }):to "float32",
    label = ("windows {%s}, %s"):format(table.concat(size, ", "), padding) }
end

local function is_close(expected, found, label)
  assert.equal(#expected, found.size, label)
  for i, value in ipairs(found:reshape({ -1 }):totable()) do
    if math.abs(value - expected[i]) > 1e-5 * math.max(1, math.abs(expected[i])) then
      error(("%s: element %d is %g, expected %g"):format(label, i, value, expected[i]))
    end
  end
end

describe("windows of poolings", function()
  it("have the values and gradients of the definition", function()
    for number = FIRST, LAST do
      local case = random_case(number)
      local shape = case.layer(case.x).shape
      local g = flow.random.uniform(shape, { minval = 1, maxval = 9, dtype = "int32", seed = number + 1 }):to "float32"
      local f = flow.fn(function(x)
        local tape, y = flow.GradientTape(), nil
        tape:watch(x)
        tape:record(function() y = case.layer(x) end)
        return y, tape:gradient(y, x, g)
      end)
      local y, dx = pool(case.x:reshape({ -1 }):totable(), case.dims, case.axes, case.average, g:reshape({ -1 }):totable())
      local found, found_dx = f(case.x)
      is_close(y, found, case.label)
      is_close(dx, found_dx, case.label .. ", gradient")
      is_close(y, flow.fn(function(x) return case.layer(x) end)(case.x), case.label .. ", without positions")
    end
  end)

  it("may have more cells than positions are counted for", function()
    for _, padding in ipairs { "valid", "same" } do
      for _, case in ipairs {
        large_case({ 16, 16 }, { 16, 16 }, { 2, 1, 33, 40, 3 }, padding), large_case({ 1, 300 }, { 1, 7 }, { 1, 1, 2, 620, 2 }, padding),
        large_case({ 520, 3 }, { 500, 2 }, { 2, 1, 530, 6, 1 }, padding), large_case({ 17, 256 }, { 3, 1 }, { 1, 1, 20, 257, 2 }, padding),
        large_case({ 300, 1, 2 }, { 150, 1, 1 }, { 1, 601, 2, 3, 2 }, padding),
        large_case({ 2, 20, 13 }, { 1, 20, 13 }, { 1, 3, 30, 30, 1 }, padding),
      } do
        local f = flow.fn(function(x)
          local tape, y = flow.GradientTape(), nil
          tape:watch(x)
          tape:record(function() y = case.layer(x) end)
          return y, tape:gradient(y, x)
        end)
        local found, found_dx = f(case.x)
        local ones = {}
        for i = 1, found.size do ones[i] = 1 end
        local y, dx = pool(case.x:reshape({ -1 }):totable(), case.dims, case.axes, false, ones)
        is_close(y, found, case.label)
        is_close(dx, found_dx, case.label .. ", gradient")
        is_close(y, case.layer(case.x), case.label .. ", eager")
        is_close(y, flow.max_pool(case.x, case.options.pool_size, { strides = case.options.strides, padding = padding }),
          case.label .. ", flow.max_pool")
      end
    end
    local _, message = pcall(layers.MaxPooling1D(300), flow.ones { 1, 200, 2 })
    assert.matches("the width of the input is 200 %(200 with padding%), a window spans 300", message)
  end)

  it("may be as long as an axis of adaptive poolings", function()
    local picture = flow.random.uniform({ 1, 700, 3, 2 }, { seed = 2 })
    local adaptive = layers.AdaptiveMaxPooling2D({ 2, 3 })(picture)
    assert.same(flow.max(picture[{ {}, { 1, 350 } }], 2):totable(), adaptive[{ {}, 1 }]:totable())
    assert.same(flow.max(picture[{ {}, { 351, 700 } }], 2):totable(), adaptive[{ {}, 2 }]:totable())
  end)

  it("give NaN where a cell is NaN, and the infinite values that are there", function()
    local x = flow.zeros { 1, 10, 10, 20 }:to "float32"
    x[{ 1, 4, 4 }] = 0 / 0
    x[{ 1, 1, 1 }] = -math.huge
    x[{ 1, 10, 10 }] = math.huge
    for _, options in ipairs { { 3, 1 }, { 5, 1 }, { 2, 2 } } do
      local layer = layers.MaxPooling2D { pool_size = options[1], strides = options[2] }
      local eager, planned = layer(x), flow.fn(function(t) return layer(t) end)(x)
      local nans = flow.sum(flow.isnan(planned):to "float32"):item()
      assert.is_true(nans >= 20)
      assert.equal(flow.sum(flow.isnan(eager):to "float32"):item(), nans)
      assert.same(flow.nan_to_num(eager):totable(), flow.nan_to_num(planned):totable())
      assert.equal(math.huge, planned[{ 1, -1, -1, 1 }]:item())
    end
  end)
end)
