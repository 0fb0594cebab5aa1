-- composed_edges_spec.lua: what the functions of lua/flow/tensor/composed do with arguments that are nearly right, and with many rows.
local support = require "spec.support.init"
local flow = require "flow"
local ops = flow.keras.ops

local NAN = 0 / 0

local function refuses(pattern, f)
  local text = support.message_of(f)
  assert.truthy(text:find(pattern, 1, true), text)
end

describe("loops over rows", function()
  it("take more of them than Lua returns values of a call", function()
    local x = flow.arange(20000):to "float32"
    local doubled = flow.map(function(v) return { v * 2, { v } } end, x)
    assert.equal(39998, doubled[1][-1]:item())
    assert.same({ 20000 }, { unpack(doubled[2][1].shape) })
    local sums = flow.scan(function(state, v) return state + v end, flow.tensor(0), flow.ones { 9000 })
    assert.equal(9000, sums[-1]:item())
    local one = ops.vectorize(function(v) return v + 1 end)(flow.zeros { 9000 })
    assert.equal(9000, one:sum():item())
  end)

  it("give results of one structure", function()
    local calls = 0
    refuses("the structures of two results differ", function()
      flow.map(function(v)
        calls = calls + 1
        return calls == 1 and { v, v } or { v }
      end, flow.ones { 2 })
    end)
  end)

  it("choose branches by whole numbers", function()
    for _, position in ipairs { 1.5, NAN } do
      refuses("a position is a whole number from 1", function() ops.switch(position, { function() end, function() end }) end)
    end
  end)
end)

describe("clip_by_norm", function()
  it("has the slope of x where x is zero, as in TensorFlow", function()
    local z, tape = flow.zeros { 3 }, flow.GradientTape()
    tape:watch(z)
    local y = tape:record(function() return flow.clip_by_norm(z, 1):sum() end)
    assert.same({ 1, 1, 1 }, tape:gradient(y, z):totable())      -- tensorflow 2.21
    assert.same({ 0, 0, 0 }, flow.clip_by_norm(z, 1):totable())
    assert.near(1, flow.clip_by_norm(flow.tensor { 3, 4 }, 1):square():sum():item(), 1e-6)
  end)
end)

describe("roll", function()
  local x = flow.arange(12):reshape { 3, 4 }
  local function same(a, b) assert.same(a:totable(), b:totable()) end
  local function whole(list) return flow.tensor(list, { dtype = "int32" }) end

  it("takes shifts as tensors, also those of a trace, whose gradients roll back", function()
    local expected = flow.roll(x, { 1, -2 }, { 1, 2 })
    same(expected, flow.roll(x, whole { 1, -2 }, { 1, 2 }))
    same(flow.roll(x, 5), flow.roll(x, whole(5)))
    local rolled = flow.fn(function(a, shift) return flow.roll(a, shift, { 1, 2 }) end)
    same(expected, rolled(x, whole { 1, -2 }))
    same(flow.roll(x, { 0, 7 }, { 1, 2 }), rolled(x, whole { 0, 7 }))
    same(flow.roll(x, 5), flow.fn(function(a, shift) return flow.roll(a, shift) end)(x, whole(5)))
    same(x, flow.fn(function(a)
      local shift = flow.random.randint({ 2 }, -9, 9)
      return flow.roll(flow.roll(a, shift, { 1, 2 }), -shift, { 1, 2 })
    end)(x))
    local v, weights = flow.Variable(flow.ones { 3, 4 }), x:to "float32"
    same(flow.roll(weights, { -1, 2 }, { 1, 2 }), flow.fn(function(shift)
      local tape = flow.GradientTape()
      return tape:gradient(tape:record(function() return (flow.roll(v, shift, { 1, 2 }) * weights):sum() end), v)
    end)(whole { 1, -2 }))
  end)
end)

describe("arguments of composed functions", function()
  local x = flow.ones { 2, 3 }

  it("that are not whole numbers are named", function()
    refuses("a shift is a whole number", function() ops.roll(x, "a") end)
    refuses("a shift is a whole number", function() ops.roll(x, 0.5, 1) end)
    refuses("a shift is a whole number", function() ops.roll(x, flow.tensor { 0.5 }, 1) end)
    refuses("the length of h is a whole number", function() flow.rearrange(x, "(h a) b -> h a b", { h = "a" }) end)
    for _, count in ipairs { -5, 2.5, 1e300 } do
      refuses("num_segments is a whole number from 0", function() ops.segment_sum(flow.ones { 3 }, { 0, 1, 2 }, count) end)
    end
    refuses("size 2 of output_shape is a whole number", function()
      ops.image.scale_and_translate(flow.ones { 4, 4, 1 }, { 2, "a", 1 }, { 1, 1 }, { 0, 0 }, { 1, 2 }, "linear")
    end)
  end)

  it("that do not fit the rank are named", function()
    refuses("columns are {batch, channels kh kw, blocks}", function() ops.fold(flow.ones { 4 }, 2, 2) end)
    refuses("2 axes are summed of tensors of rank 1 and 2", function() ops.tensordot(flow.ones { 2 }, flow.ones { 2, 2 }, 2) end)
  end)

  it("that are quantiles are from 0 to 1, also where NaN is left out", function()
    refuses("flow.nanquantile: quantiles are from 0 to 1", function() ops.nanquantile(x, 2) end)
    refuses("flow.quantile: quantiles are from 0 to 1", function() ops.quantile(x, { { 0.5 } }) end)
    refuses("flow.percentile: quantiles are from 0 to 100", function() ops.percentile(x, { 50, 101 }) end)
    assert.same({ 1, 1 }, ops.percentile(x, flow.tensor { 0, 100 }):totable())
  end)

  it("that are ranges are two numbers", function()
    refuses("range is a list of two numbers", function() ops.histogram(x, 3, { 1 }) end)
    refuses("range is a list of two numbers", function() ops.histogram(x, 3, 1) end)
    assert.same({ 0, 6, 0 }, ops.histogram(x, 3, flow.tensor { 0, 3 })[1]:totable())
  end)

  it("that are sizes of pictures are heights and widths", function()
    for _, size in ipairs { { 3 }, { 0, 3 }, { 2 ^ 32 + 1, 3 }, { 2.5, 3 } } do
      refuses("flow.keras.ops.image.resize: the size", function() ops.image.resize(flow.ones { 4, 4, 1 }, size) end)
    end
    refuses("crop_size is {height, width}", function()
      flow.image.crop_and_resize(flow.ones { 1, 4, 4, 1 }, flow.ones { 1, 4 }, { 1 }, { 2 })
    end)
    local picture = flow.ones { 4, 4, 1 }
    refuses("a kernel size has 1 entries, expected 2", function() ops.image.gaussian_blur(picture, { kernel_size = { 3 } }) end)
    refuses("sigma is a number above 0", function() ops.image.gaussian_blur(flow.ones { 4, 4, 1 }, { sigma = { 1 } }) end)
    refuses("iou_threshold is from 0 to 1", function() flow.image.non_max_suppression(flow.ones { 1, 4 }, { 1 }, 1, NAN) end)
  end)

  it("of ctc_decode are lengths within the steps, and a class", function()
    local y = flow.ones { 1, 3, 4 }
    refuses("the length of row 1 is the number 5", function() ops.ctc_decode(y, { 5 }) end)
    refuses("one number for each of 1 rows", function() ops.ctc_decode(y, 3) end)
    refuses("one number for each of 2 rows", function() ops.ctc_decode(flow.ones { 2, 3, 4 }, { 3 }) end)
    refuses("mask_index is 7, the inputs have 4 classes", function() ops.ctc_decode(y, { 3 }, { mask_index = 7 }) end)
    refuses("inputs are {batch, steps, classes}", function() ops.ctc_decode(flow.ones { 3, 4 }, { 3 }) end)
  end)
end)

describe("svd", function()
  it("of matrices without columns has the identity as U", function()
    local u = ops.svd(flow.zeros { 2, 0 })
    assert.same({ { 1, 0 }, { 0, 1 } }, u:totable())      -- numpy.linalg.svd
  end)
end)

describe("infinity and NaN", function()
  local inf = math.huge

  it("have the angles of C's atan2, also in a model from a file", function()
    local y = flow.tensor { { inf }, { inf }, { -inf }, { -inf }, { 1 }, { inf } }
    local x = flow.tensor { { inf }, { -inf }, { inf }, { -inf }, { inf }, { 1 } }
    local expected = { 0.25, 0.75, -0.25, -0.75, 0, 0.5 }
    local a, b = flow.Input { 1 }, flow.Input { 1 }
    local path = support.folder() .. "/angles.keras"
    flow.Model({ inputs = { a, b }, outputs = flow.arctan2(a, b) }):save(path)
    for _, angles in ipairs { flow.arctan2(y, x), flow.load_model(path):predict({ y, x }, { verbose = 0 }) } do
      for i, angle in ipairs(expected) do assert.near(angle, angles[{ i, 1 }]:item() / math.pi, 1e-6) end
    end
  end)

  it("have their places in sorted sequences, NaN after all numbers, as sort has it", function()
    local sequence, values = flow.tensor { -inf, 0, inf, NAN, NAN }, flow.tensor { NAN, inf, -inf, 0 }
    assert.same({ 4, 3, 1, 2 }, flow.searchsorted(sequence, values):totable())
    assert.same({ 6, 4, 2, 3 }, flow.searchsorted(sequence, values, "right"):totable())
    assert.same({ 3, 3, 1, 2 }, flow.digitize(values, flow.tensor { -inf, 0, inf }):totable())
    assert.same({ 4, 4 }, flow.searchsorted(flow.tensor { 1, 2, 3 }, flow.tensor { NAN, NAN }):totable())
  end)

  it("compare float64 edges as float64", function()
    local x = flow.tensor({ 0.1 - 1e-12, 0.1 }, { dtype = "float64" })
    assert.same({ 0, 1 }, flow.digitize(x, flow.tensor({ 0.1 }, { dtype = "float64" })):totable())
    assert.same({ 0 }, flow.digitize(flow.tensor { 0 }, flow.tensor({ 1e-50 }, { dtype = "float64" })):totable())
  end)
end)

describe("positions of blocks that have no value while a function is traced", function()
  local function update(x, row, block) return flow.slice_update(x, { 1, row, 2 }, block) end
  local traced = flow.fn(update)

  it("are clamped when they have one: the block is inside", function()
    local x, block = flow.zeros { 2, 5, 3 }, flow.arange(8):to("float32"):reshape { 2, 2, 2 } + 1
    for row, first in ipairs { 1, 2, 3, 4, 4, 4 } do
      local result = traced(x, flow.tensor(row, { dtype = "int32" }), block)
      assert.same(update(x, first, block):totable(), result:totable())
      assert.equal(36, result:sum():item())
      assert.same(block:totable(), result[{ {}, { first, first + 1 }, { 2, 3 } }]:totable())
    end
  end)

  it("take the block's gradient and leave the others theirs", function()
    local x, block, row = flow.ones { 2, 5, 3 }, flow.ones { 2, 2, 2 }, flow.tensor(3, { dtype = "int64" })
    local weights = flow.arange(30):to("float32"):reshape { 2, 5, 3 }
    local gradients = flow.fn(function(a, at, b)
      local tape = flow.GradientTape()
      tape:watch { a, b }
      local loss = tape:record(function() return (update(a, at, b) * weights):sum() end)
      return unpack(tape:gradient(loss, { a, b }))
    end)
    local of_x, of_block = gradients(x, row, block)
    assert.same(weights[{ {}, { 3, 4 }, { 2, 3 } }]:totable(), of_block:totable())
    assert.same(update(weights, 3, flow.zeros { 2, 2, 2 }):totable(), of_x:totable())
  end)

  it("may be one tensor, and an empty block changes nothing", function()
    local whole = flow.fn(function(x, starts, block) return flow.slice_update(x, starts, block) end)
    local x, starts = flow.arange(12):to("float32"):reshape { 3, 4 }, flow.tensor({ 2, 3 }, { dtype = "int32" })
    assert.same({ { 0, 1, 2, 3 }, { 4, 5, 7, 7 }, { 8, 9, 7, 7 } }, whole(x, starts, flow.full({ 2, 2 }, 7)):totable())
    assert.same(x:totable(), whole(x, starts, flow.zeros { 2, 0 }):totable())
    refuses("do not fit in axis 2", function() whole(x, starts, flow.zeros { 2, 5 }) end)
  end)
end)

describe("no elements", function()
  it("are split in equal parts, and are the largest of none", function()
    local parts = flow.split(flow.zeros { 2, 0 }, 3, 2)
    assert.equal(3, #parts)
    for _, part in ipairs(parts) do assert.same({ 2, 0 }, { unpack(part.shape) }) end
    assert.same({ 0, 3 }, { unpack(flow.glu(flow.zeros { 0, 3 }, 1).shape) })
    for _, k in ipairs { 0, flow.tensor(0) } do
      local values, positions = flow.top_k(flow.ones { 2, 3 }, k)
      assert.same({ 2, 0 }, { unpack(values.shape) })
      assert.same({ 2, 0 }, { unpack(positions.shape) })
    end
    refuses("k is a whole number from 0", function() flow.top_k(flow.ones { 3 }, -1) end)
  end)
end)

describe("expand_dims", function()
  it("takes several new axes by their places in the result", function()
    for _, case in ipairs { { { 1, 3 }, { 1, 2, 1, 3 } }, { { -1, 1 }, { 1, 2, 3, 1 } }, { { 4, 3 }, { 2, 3, 1, 1 } } } do
      assert.same(case[2], { unpack(flow.expand_dims(flow.ones { 2, 3 }, case[1]).shape) })
    end
    refuses("axis 1 is named twice", function() flow.expand_dims(flow.ones { 2 }, { 1, -3 }) end)
  end)
end)

describe("bincount", function()
  it("sums weights in the dtype of their sum with the numbers, as Keras", function()
    for _, case in ipairs { { "int64", "int32", "int64" }, { "uint8", "int32", "int32" }, { "int32", "bool", "int32" },
                            { "int64", "float32", "float32" } } do
      local counts = flow.bincount(flow.tensor({ 1, 2 }, { dtype = case[1] }), flow.ones({ 2 }, { dtype = case[2] }))
      assert.equal(case[3], counts.dtype)
      assert.same({ 0, 1, 1 }, counts:totable())
    end
  end)
end)
