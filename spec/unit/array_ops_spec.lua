-- array_ops_spec.lua: take, split, pad, tile and their kin: as NumPy and keras.ops, with positions from 1.
local support = require "spec.support.init"
local flow = require "flow"
local message_of = support.message_of

local x = flow.tensor { { 1, 2, 3 }, { 4, 5, 6 } }

local function lists(tensors)
  local result = {}
  for i, t in ipairs(tensors) do result[i] = t:totable() end
  return result
end

describe("windows", function()
  it("take sizes in TensorFlow's form, with 1 for batch and channels", function()
    local pictures, kernel = flow.ones { 2, 8, 8, 3 }, flow.ones { 3, 3, 3, 2 }
    assert.same({ 2, 3, 3, 2 }, { unpack(flow.keras.ops.conv(pictures, kernel, { strides = { 1, 2, 2, 1 } }).shape) })
    assert.same({ 2, 4, 4, 12 },
      { unpack(flow.keras.ops.image.extract_patches(pictures, { size = { 2, 2 }, strides = { 1, 2, 2, 1 } }).shape) })
    assert.has_error(function() flow.keras.ops.conv(pictures, kernel, { strides = { 2, 2, 2, 1 } }) end)
  end)
end)

describe("products of the elements up to each one", function()
  it("are of those from each one on, or of the others only, as cumsum's sums", function()
    local factors = flow.tensor { { 2, 3, 4 }, { 5, 6, 7 } }
    assert.same({ { 1, 2, 6 }, { 1, 5, 30 } }, flow.cumprod(factors, 2, { exclusive = true }):totable())
    assert.same({ { 24, 12, 4 }, { 210, 42, 7 } }, flow.cumprod(factors, -1, { reverse = true }):totable())
    assert.same({ { 5, 6, 7 }, { 1, 1, 1 } }, flow.cumprod(factors, 1, { reverse = true, exclusive = true }):totable())
    assert.same({ 1 }, flow.cumprod(flow.tensor { 5 }, 1, { exclusive = true }):totable())
    assert.same({ 2, 0 }, { unpack(flow.cumprod(flow.zeros { 2, 0 }, 2, { exclusive = true, reverse = true }).shape) })
  end)
end)

describe("flow.take", function()
  it("takes elements of an axis by their positions", function()
    assert.same({ { 4, 5, 6 }, { 1, 2, 3 }, { 4, 5, 6 } }, flow.take(x, { 2, 1, -1 }, 1):totable())
    assert.same({ { 3, 1 }, { 6, 4 } }, x:take({ -1, 1 }, -1):totable())
    assert.same({ 2, 5 }, flow.take(x, 2, 2):totable())
    assert.same({ 6, 1 }, flow.take(x, { 6, 1 }):totable())
    assert.same({ { { 1, 2 }, { 3, 3 } }, { { 4, 5 }, { 6, 6 } } }, flow.take(x, { { 1, 2 }, { 3, 3 } }, 2):totable())
    assert.equal("flow.take: position 0 is out of range: the axis has 2 elements, counted from 1",
      message_of(function() flow.take(x, { 0 }, 1) end))
    assert.equal("flow.take: position 4 is out of range: the axis has 3 elements", message_of(function() flow.take(x, { 1, 4 }, 2) end))
    assert.equal("flow.take: position -4 is out of range: the axis has 3 elements", message_of(function() flow.take(x, { -4 }, 2) end))
    assert.truthy(message_of(function() flow.take(x, { 1 }, 3) end):find("axis 3 is out of range", 1, true))
  end)

  it("has a gradient, which adds up where an element was taken twice", function()
    local v = flow.Variable(x)
    local tape = flow.GradientTape()
    local loss = tape:record(function() return (v:take({ 1, 1, 3 }, 2) * flow.tensor { 1, 10, 100 }):sum() end)
    assert.same({ { 11, 0, 100 }, { 11, 0, 100 } }, tape:gradient(loss, v):totable())
  end)
end)

describe("parts and repetitions", function()
  it("eye() has its diagonal where k says", function()
    assert.same({ { 0, 1, 0 }, { 0, 0, 1 } }, flow.eye(2, 3, 1):totable())
    assert.same({ { 0, 0 }, { 0, 0 }, { 1, 0 } }, flow.eye(3, 2, -2):totable())
    assert.same({ { 0, 0 }, { 0, 0 } }, flow.eye(2, { k = 2 }):totable())
    assert.same({ { 1, 0 }, { 0, 1 } }, flow.keras.ops.eye({ N = 2 }):totable())
  end)

  it("split at cuts or in equal parts, and unstack", function()
    assert.same({ { { 1 }, { 4 } }, { { 2, 3 }, { 5, 6 } } }, lists(flow.split(x, { 1 }, 2)))
    assert.same({ { { 1, 2, 3 } }, { { 4, 5, 6 } } }, lists(flow.split(x, 2)))
    assert.same({ { 1, 4 }, { 2, 5 }, { 3, 6 } }, lists(flow.unstack(x, 3, -1)))
    assert.truthy(message_of(function() flow.unstack(x, 3) end):find("num is 3, axis 1 has 2 elements", 1, true))
    assert.equal("flow.split: 3 elements of axis 2 cannot be split in 2 equal parts", message_of(function() flow.split(x, 2, 2) end))
    assert.equal("flow.split: cut 1 is after 4 elements, axis 2 has 3", message_of(function() flow.split(x, { 4 }, 2) end))
  end)

  it("tile, repeat and flip", function()
    assert.same({ { 1, 2, 3, 1, 2, 3 }, { 4, 5, 6, 4, 5, 6 } }, flow.tile(x, 2):totable())
    assert.same({ { 1, 2, 1, 2 }, { 1, 2, 1, 2 } }, flow.tile({ 1, 2 }, { 2, 2 }):totable())
    assert.same({ { 1, 2, 1, 2 }, { 1, 2, 1, 2 } }, flow.tile({ 1, 2 }, flow.tensor({ 2, 2 }, { dtype = "int32" })):totable())
    assert.same({ { 1, 1, 2, 2, 3, 3 }, { 4, 4, 5, 5, 6, 6 } }, flow.repeat_(x, 2, 2):totable())
    assert.same({ { 1, 2, 3 }, { 1, 2, 3 }, { 4, 5, 6 }, { 4, 5, 6 } }, flow.repeat_(x, 2, 1):totable())
    assert.same({ 1, 1, 2, 2 }, flow.repeat_({ 1, 2 }, 2):totable())
    assert.same({ { 6, 5, 4 }, { 3, 2, 1 } }, flow.flip(x):totable())
    assert.same({ { 3, 2, 1 }, { 6, 5, 4 } }, flow.flip(x, 2):totable())
  end)

  it("repeat takes a number for each element, and repeats one row by the rows of a batch", function()
    assert.same({ { 1, 2, 3 }, { 4, 5, 6 }, { 4, 5, 6 } }, flow.repeat_(x, { 1, 2 }, 1):totable())
    assert.same({ { 1, 3, 3 }, { 4, 6, 6 } }, flow.repeat_(x, flow.tensor({ 1, 0, 2 }, { dtype = "int32" }), 2):totable())
    assert.same({ 1, 1, 2, 2 }, flow.repeat_({ 1, 2 }, { 2 }):totable())
    assert.same({ 0, 3 }, flow.repeat_(x, { 0, 0 }, 1).shape)
    local spread = flow.fn(function(rows) return flow.repeat_(flow.ones { 1, 2 }, rows.shape[1], 1) end)
    assert.same({ 2, 2 }, spread(x).shape)
    local message = message_of(function() flow.repeat_(x, { 1, 2, 3 }, 1) end)
    assert.truthy(message:find("3 numbers of repetitions for axis 1, which has 2", 1, true))
  end)

  it("pad with a constant or mirrored", function()
    assert.same({ { 2, 1, 2 }, { 5, 4, 5 } }, flow.pad(x, { { 0, 0 }, { 1, 0 } }, "REFLECT")[{ {}, { 1, 3 } }]:totable())
    assert.same({ { 0, 0, 0, 0 }, { 1, 2, 3, 0 }, { 4, 5, 6, 0 } }, flow.pad(x, { { 1, 0 }, { 0, 1 } }):totable())
    assert.same({ { 9, 1, 2, 3, 9 }, { 9, 4, 5, 6, 9 } }, flow.pad(x, { { 0, 0 }, { 1, 1 } }, { constant_values = 9 }):totable())
    assert.same({ 3, 2, 1, 2, 3, 2 }, flow.pad({ 1, 2, 3 }, { 2, 1 }, "reflect"):totable())
    assert.same({ 2, 1, 1, 2, 3, 3, 2, 1 }, flow.pad({ 1, 2, 3 }, { { 2, 3 } }, { mode = "symmetric" }):totable())
    assert.equal("flow.pad: 3 elements of axis 1 can be mirrored at most 2 wide",
      message_of(function() flow.pad({ 1, 2, 3 }, 3, "reflect") end))
    assert.equal("flow.pad: mode is constant, reflect or symmetric, got the string \"edge\"",
      message_of(function() flow.pad(x, 1, "edge") end))
    assert.equal("flow.pad: widths are {before, after} for each of 2 axes", message_of(function() flow.pad(x, { { 1, 1 } }) end))
    assert.equal("flow.pad: there are widths for 3 axes, the tensor has 2",
      message_of(function() flow.pad(x, { { 1, 1 }, { 1, 1 }, { 1, 1 } }) end))
  end)

  it("tile by the rows of a batch that is traced, as keras.ops.tile takes shape(x)[0]", function()
    local masks = flow.fn(function(batch)
      local rows = flow.shape(batch)[1]
      return flow.tile({ { { 1, 0 } } }, { rows, 2, 1 }), flow.tile({ { 1 }, { 2 } }, { rows, 1 }), flow.tile({ 1, 2 }, { rows, 1 })
    end)
    local a, b, c = masks(flow.ones { 3, 5 })
    assert.same({ { { 1, 0 }, { 1, 0 } }, { { 1, 0 }, { 1, 0 } }, { { 1, 0 }, { 1, 0 } } }, a:totable())
    assert.same({ { 1 }, { 2 }, { 1 }, { 2 }, { 1 }, { 2 } }, b:totable())
    assert.same({ { 1, 2 }, { 1, 2 }, { 1, 2 } }, c:totable())
  end)

  it("sum segments where the batch is another axis, or the one of the segments", function()
    local ids = flow.tensor({ 0, 1, 1, 0 }, { dtype = "int32" })
    local f = function(batch)
      return flow.segment_sum(batch:transpose(), ids, 2), flow.segment_max(batch:transpose(), ids, 2),
        flow.segment_sum(batch, batch[{ {}, 1 }]:to "int32", 2)
    end
    local batch = flow.tensor { { 1, 2, 3, 4 }, { 0, 1, 1, 1 }, { 0, 0, 1, 1 } }
    local expected, found = { f(batch) }, { flow.fn(f)(batch) }
    for i = 1, 3 do assert.same(expected[i]:totable(), found[i]:totable()) end
    assert.same({ { 5, 1, 1 }, { 5, 2, 1 } }, found[1]:totable())
  end)

  it("count the elements of a batch that is traced", function()
    local sizes = flow.fn(function(batch)
      local sums = batch:sum(-1)
      local size = flow.keras.ops.size
      return batch:sum() / batch.size, size(sums) * 1, flow.ones { sums.size, 2 }, flow.cast(size(batch), "float32")
    end)
    local Sizes = flow.Model:extend "Sizes"
    function Sizes:call(batch) return { batch * 0 + batch.size, flow.zeros { batch.size } } end
    for _, rows in ipairs { 3, 5 } do
      local mean, count, ones, size = sizes(flow.full({ rows, 4 }, 2))
      assert.same({ 2, rows, rows * 4 }, { mean:item(), count:item(), size:item() })
      assert.same({ rows, 2 }, ones.shape)
      local filled, zeros = unpack(Sizes()(flow.ones { rows, 2 }))
      assert.same({ rows * 2, rows * 2, rows * 2 }, { filled[1][1]:item(), filled[rows][2]:item(), zeros.size })
    end
  end)

  it("find the largest entries", function()
    assert.same({ 9, 3 }, (flow.top_k({ 3, 9, 1 }, { k = 2, sorted = false })):totable())
    local values, positions = flow.top_k({ { 3, 9, -math.huge, 9 }, { -math.huge, 5, 7, 6 } }, 4)
    assert.same({ { 9, 9, 3, -math.huge }, { 7, 6, 5, -math.huge } }, values:totable())
    assert.same({ { 2, 4, 1, 3 }, { 3, 4, 2, 1 } }, positions:totable())
    local v = flow.Variable { 3, 1, 2 }
    local tape = flow.GradientTape()
    local loss = tape:record(function() return (v:top_k(2) * flow.tensor { 10, 1 }):sum() end)
    assert.same({ 10, 0, 1 }, tape:gradient(loss, v):totable())
    assert.equal("flow.top_k: k is 4, the last axis has 3 elements", message_of(function() flow.top_k(x, 4) end))
  end)

  it("find the largest entries of long lines, the first of equal ones and NaN before all numbers", function()
    local list, order = {}, {}
    for i = 1, 9000 do list[i], order[i] = (i * 7919) % 1009 - (i % 3) * 500, i end
    list[8000] = 0 / 0
    table.sort(order, function(i, j)
      if (list[i] ~= list[i]) ~= (list[j] ~= list[j]) then return list[i] ~= list[i] end
      if list[i] == list[j] or i == 8000 then return i < j end
      return list[i] > list[j]
    end)
    for _, dtype in ipairs { "float32", "float64" } do
      local line = flow.tensor(list, { dtype = dtype })
      for _, k in ipairs { 1, 5, 300, 6000 } do
        local _, positions = flow.top_k(line, k)
        assert.same({ unpack(order, 1, k) }, positions:totable())
      end
    end
  end)

  it("take one number for a long row, several long rows and parts of them", function()
    local n = 1300
    local rows, column = flow.arange(3 * n):reshape { 3, n }, flow.tensor { { 1 }, { 20 }, { 300 } }
    local added, within, whole = (rows + column):totable(), rows:clip(100, 2000):totable(), rows[{ {}, { 2, n - 1 } }]:to("int32"):totable()
    for row = 1, 3 do
      for at = 1, n do
        local value = (row - 1) * n + at - 1
        assert.equal(value + ({ 1, 20, 300 })[row], added[row][at])
        assert.equal(math.min(math.max(value, 100), 2000), within[row][at])
        if at > 1 and at < n then assert.equal(value, whole[row][at - 1]) end
      end
    end
  end)

  it("are the same while a function is traced for any number of rows, and in functional models", function()
    local function f(rows)
      local parts = flow.split(rows, { 1 }, 2)
      local padded = flow.pad(parts[2], { { 0, 0 }, { 1, 1 } }, "symmetric")
      return flow.concat({ flow.tile(parts[1], { 1, 2 }), padded, flow.take(rows, { -1 }, 2), flow.flip(rows, 2),
                           (flow.top_k(rows, 2)), flow.pad(parts[1], { { 0, 0 }, { 2, 0 } }) }, 2)
    end
    local input = flow.Input { 3 }
    local both = flow.concat({ input:take({ 3, 1 }, 2), flow.pad(input, { { 0, 0 }, { 1, 0 } }) }, 2)
    local model = flow.Model { inputs = input, outputs = both }
    assert.same({ { 3, 1, 0, 1, 2, 3 }, { 6, 4, 0, 4, 5, 6 } }, model(x):totable())
    local Custom = flow.layers.Layer:extend("Custom")
    function Custom:call(rows) return f(rows) end
    local sequential = flow.Sequential { flow.layers.Input { 3 }, Custom() }
    assert.same(f(x):totable(), sequential:predict(x, { verbose = 0 }):totable())
  end)
end)
